"""The promises in a mechanism file: bounds, and the adversaries they are against."""

from collections.abc import Callable
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.errors import InvalidFile
from privacygames.mechanism.binary_container import Arrays, Header
from privacygames.mechanism.header_fields import array_of, real_of, text_of
from privacygames.problem import MOST_ADVERSARIES, Adversary, Bounds, DistortionGuarantee
from privacygames.spaces import LabelBudget, Space, decode_space, encode_space

MOST_ENTRIES = 2 * 10**8
"""The most numbers that all adversaries' errors and attacks may have together: a file can name one array many times."""

OLD_PROMISES = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")
"""What version 2 of the format knows; the others are written only where they are given."""


def pack_promises(bounds: Bounds, arrays: Arrays, store: Callable[[FloatArray], str]) -> Header:
    """The bounds for the header; the numbers of adversaries go into ``arrays``, each once."""
    promises: Header = {name: getattr(bounds, name) for name in OLD_PROMISES}
    if bounds.worst_cost_at_most is not None:
        promises["worst_cost_at_most"] = bounds.worst_cost_at_most
    if bounds.against:
        promises["against"] = [_pack_promise(each, arrays, store) for each in bounds.against]
    return promises


def _pack_promise(promise: DistortionGuarantee, arrays: Arrays, store: Callable[[FloatArray], str]) -> Header:
    adversary = promise.adversary
    prior = None if adversary.prior is None else _kept(adversary.prior.probabilities, "belief", arrays)
    errors = None if adversary.errors is None else _kept(adversary.errors, "errors", arrays)
    guesses = None if adversary.guesses is None else encode_space(adversary.guesses, store=store)
    return {
        "name": adversary.name,
        "distortion": promise.distortion,
        "prior": prior,
        "errors": errors,
        "guesses": guesses,
    }


def _kept(numbers: FloatArray, kind: str, arrays: Arrays) -> str:
    """The name under which numbers are in the file: an array that is there already, if one is the same."""
    for name, array in arrays.items():
        if array.dtype == numbers.dtype and np.array_equal(array, numbers):
            return name
    name = f"{kind}_{len(arrays)}"
    arrays[name] = numbers
    return name


def unpack_promises(header: Any, arrays: Arrays, secrets: Space, allowance: LabelBudget) -> Bounds:
    """The bounds of a file; what does not fit raises one of the errors of :func:`unpack`."""
    given = dict(header)
    against = given.pop("against", [])
    if not isinstance(against, list) or len(against) > MOST_ADVERSARIES:
        raise InvalidFile(f"what is promised against adversaries must be a list, of at most {MOST_ADVERSARIES}")
    guesses = [len(secrets if each["errors"] is None else arrays[text_of(each["errors"])]) for each in against]
    if sum(guesses) * sum(arrays["weights"].shape) > MOST_ENTRIES:
        raise InvalidFile(f"the adversaries' errors and attacks would have more than {MOST_ENTRIES} numbers")
    return Bounds(**given, against=tuple(_unpack_promise(each, arrays, secrets, allowance) for each in against))


def _unpack_promise(header: Any, arrays: Arrays, secrets: Space, allowance: LabelBudget) -> DistortionGuarantee:
    count = len(secrets)
    prior = errors = guesses = None
    if header["prior"] is not None:
        weights = array_of(arrays, text_of(header["prior"]), "<f8", (count,))
        prior = Prior(secrets, weights)
        if not np.array_equal(prior.probabilities, weights):
            raise InvalidFile("the prior of an adversary does not sum to one")
    if header["errors"] is not None:
        name = text_of(header["errors"])
        errors = array_of(arrays, name, "<f8", (len(arrays[name]), count))
        if header["guesses"] is not None:
            guesses = decode_space(header["guesses"], matrices=arrays, size=len(errors), allowance=allowance)
    asked = None if header["distortion"] is None else real_of(header["distortion"])
    return DistortionGuarantee(Adversary(text_of(header["name"]), prior=prior, errors=errors, guesses=guesses), asked)
