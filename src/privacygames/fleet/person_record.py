"""One person's mechanism as a record, and back: what comes back was verified on the bytes it came from."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray, freeze
from privacygames.certificates import BITS, Provenance, Statement, check
from privacygames.errors import InvalidFile
from privacygames.fleet.packing import Packed, pack
from privacygames.fleet.records import decode, encode, header_in, name_hash
from privacygames.fleet.shared_data import Shared
from privacygames.mechanism import Mechanism, MechanismContent

PACKED = ("exponents", "digits", "last_column", "last_weight")


def record_of(name: str, mechanism: Mechanism, about: dict[str, Any]) -> bytes:
    """A mechanism as a record's payload: the observables it uses, their weights, and the prior it was made for.

    Args:
        name: whose.
        mechanism: certified.
        about: what else is to be known of it: plain values.
    """
    weights, prior = mechanism.weights, mechanism.statement.prior
    used = np.flatnonzero(weights.any(axis=0))
    packed = pack(weights[:, used])
    seen = np.flatnonzero(prior)
    arrays: dict[str, Any] = {
        "used": used.astype(np.uint32),
        "seen": seen.astype(np.uint32),
        "prior": prior[seen],
    }
    if packed is None:
        arrays["weights"] = weights[:, used]
    else:
        arrays |= {field: getattr(packed, field) for field in PACKED}
    return encode({"name": name, "provenance": asdict(mechanism.certificate.provenance), **about}, arrays)


def mechanism_of(payload: bytes, shared: Shared) -> Mechanism:
    """The mechanism in a record, certified for what the fleet promises: every promise is checked here.

    Raises:
        InvalidFile: the record is not of the form that records have.
        GuaranteeViolated: it is, and does not keep the promises.
    """
    statement = statement_of(payload, shared)
    contents = MechanismContent(statement, shared.problem.space, shared.problem.observables, _provenance(payload))
    return Mechanism(contents, check(statement))


def statement_of(payload: bytes, shared: Shared) -> Statement:
    """What a record says, for the verifier."""
    _, arrays = decode(payload)
    problem = shared.problem
    n, m = problem.shape
    weights = np.zeros((n, m), dtype=np.int64)
    used = _positions(arrays, "used", m)
    weights[:, used] = _weights(arrays, n, len(used))
    return Statement(
        weights=freeze(weights),
        bits=BITS,
        prior=freeze(_prior(arrays, n)),
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=shared.bounds,
        dual_solution=None,
    )


def prior_in(payload: bytes, shared: Shared) -> FloatArray:
    """The prior that a record's mechanism was designed for."""
    return _prior(decode(payload)[1], shared.problem.shape[0])


def about_in(payload: bytes) -> tuple[int | None, str | None]:
    """How many visits a record's prior is from, and whether it is its person's ``"own"`` or ``"pooled"``."""
    header, _ = header_in(payload)
    visits, prior_from = header.get("visits"), header.get("prior_from")
    if (visits is None or (type(visits) is int and visits >= 0)) and prior_from in ("own", "pooled", None):
        return visits, prior_from
    raise InvalidFile("a record of the fleet is damaged: it does not say what its prior is from")


def require_owner(payload: bytes, hashed: bytes) -> None:
    """Refuse a record that is not of the person whom the index has it for."""
    if name_hash(header_in(payload)[0]["name"]) != hashed:
        raise InvalidFile("a record of the fleet is another person's than its index says: files were mixed up")


def _provenance(payload: bytes) -> Provenance:
    told = header_in(payload)[0].get("provenance")
    if isinstance(told, dict) and set(told) == {"solver", "version", "repair_cost"}:
        solver, version, cost = told["solver"], told["version"], told["repair_cost"]
        if isinstance(solver, str) and isinstance(version, str) and type(cost) in (int, float):
            return Provenance(solver, version, cost)
    raise InvalidFile("a record of the fleet does not say where it comes from")


def _prior(arrays: dict[str, NDArray[Any]], n: int) -> FloatArray:
    seen = _positions(arrays, "seen", n)
    prior = np.zeros(n)
    prior[seen] = _array(arrays, "prior", "<f8", (len(seen),))
    return prior


def _weights(arrays: dict[str, NDArray[Any]], n: int, k: int) -> IntArray:
    """The weights of the observables that are used, for a statement: whether they are right, the verifier says."""
    if "weights" in arrays:
        return _array(arrays, "weights", "<i8", (n, k)).astype(np.int64)
    exponents = _array(arrays, "exponents", "|u1", (n, k))
    digits = _array(arrays, "digits", "<u2", (n, k))
    last_column = _array(arrays, "last_column", "<u4", (n,))
    last_weight = _array(arrays, "last_weight", "<i8", (n,))
    if (last_column >= k).any():
        raise InvalidFile("a record of the fleet is damaged: it points outside its weights")
    return Packed(exponents, digits, last_column, last_weight).unpacked()


def _positions(arrays: dict[str, NDArray[Any]], name: str, limit: int) -> IntArray:
    """Increasing positions below a limit."""
    positions = _array(arrays, name, "<u4", None).astype(np.int64)
    if (np.diff(positions) <= 0).any() or (positions >= limit).any():
        raise InvalidFile("a record of the fleet is damaged: it points outside the secrets or observables")
    return positions


def _array(arrays: dict[str, NDArray[Any]], name: str, kind: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """An array of the type and shape it must have; without a shape, of one axis."""
    array = arrays.get(name)
    if array is None or array.dtype != np.dtype(kind) or (array.ndim != 1 if shape is None else array.shape != shape):
        raise InvalidFile("a record of the fleet does not fit its shared part")
    return array
