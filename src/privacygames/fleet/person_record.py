"""One person's mechanism as a record, and back."""

from dataclasses import asdict
from typing import Any

import numpy as np

from privacygames.arrays import IntArray, sealed
from privacygames.certificates import BITS, Findings, Provenance, Statement
from privacygames.errors import InvalidFile
from privacygames.fleet.packing import Packed, pack
from privacygames.fleet.records import Record, encode
from privacygames.fleet.shared_part import Shared
from privacygames.mechanism import Contents, Mechanism

PACKED = ("exponents", "digits", "last_column", "last_weight")


def record_of(name: str, key: str, mechanism: Mechanism, about: dict[str, Any]) -> bytes:
    """A mechanism as a record's payload: the observables it uses, their weights, and the prior it was made for.

    Args:
        name: whose.
        key: of the work that made it.
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
    provenance = mechanism.certificate.provenance
    header = {
        "name": name,
        "key": key,
        "findings": asdict(mechanism.certificate.findings),
        "provenance": asdict(provenance),
        **about,
    }
    return encode(header, arrays)


def mechanism_of(record: Record, shared: Shared) -> Mechanism:
    """The mechanism in a record, with what was found when it was certified; :meth:`Fleet.verify` finds it again."""
    header, _ = record
    statement = statement_of(record, shared)
    try:
        findings = Findings(**header["findings"] | {"against": ()})
        provenance = Provenance(**header["provenance"])
    except (KeyError, TypeError):
        raise InvalidFile("a record of the fleet does not fit together") from None
    problem = shared.problem
    return Mechanism(Contents(statement, problem.space, problem.observables, provenance), findings)


def statement_of(record: Record, shared: Shared) -> Statement:
    """What a record says, for the verifier."""
    _, arrays = record
    problem = shared.problem
    n, m = problem.shape
    try:
        prior = np.zeros(n)
        prior[arrays["seen"]] = arrays["prior"]
        weights = np.zeros((n, m), dtype=np.int64)
        weights[:, arrays["used"]] = weights_in(record)
    except (KeyError, IndexError, ValueError):
        raise InvalidFile("a record of the fleet does not fit together") from None
    return Statement(
        weights=sealed(weights),
        bits=BITS,
        prior=sealed(prior),
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=shared.bounds,
        multipliers=None,
    )


def weights_in(record: Record) -> IntArray:
    """The weights of the observables that are used."""
    _, arrays = record
    if "weights" in arrays:
        return arrays["weights"].astype(np.int64)
    return Packed(*(arrays[field] for field in PACKED)).unpacked()
