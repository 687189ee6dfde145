"""One person's mechanism as a record of a fleet: encoded, and decoded with every guarantee verified.

A record is a header and arrays (``mechanism/binary_container.py``). It holds the observables that the mechanism uses,
their weights (packed where 17 bits are enough) and the prior that it was designed for; the rest is shared by all.
"""

from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray, freeze
from privacygames.certificates import BITS, Provenance, Statement, check
from privacygames.errors import InvalidFile
from privacygames.fleet.packed_weights import PackedWeights, pack_weights
from privacygames.fleet.shared_problem import SharedProblem
from privacygames.mechanism import (
    Arrays,
    Header,
    Mechanism,
    MechanismContent,
    decode_record,
    decode_record_header,
    encode_record,
)

PACKED_FIELDS = ("exponents", "digits", "last_column", "last_weight")

NAME_HASH_BYTES = 16


def name_hash(name: str) -> bytes:
    """The hash by which a person's record is found in the index of a fleet."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=NAME_HASH_BYTES).digest()


def encode_person(name: str, mechanism: Mechanism, details: dict[str, Any]) -> bytes:
    """The record of a person's mechanism.

    Args:
        name: the person.
        mechanism: their certified mechanism.
        details: plain values for the header: where the prior is from.
    """
    weights, prior = mechanism.weights, mechanism.statement.prior
    positive = np.flatnonzero(prior)
    encoded = encode_weights(weights)
    arrays: Arrays = {
        "used": encoded.pop("used"),
        "seen": positive.astype(np.uint32),
        "prior": prior[positive],
        **encoded,
    }
    return encode_record({"name": name, "provenance": asdict(mechanism.provenance), **details}, arrays)


def relabel_record(record: bytes, name: str, details: dict[str, Any]) -> bytes:
    """The record of another person with the same prior, who has the same mechanism.

    Args:
        record: a person's record, of cells or of points.
        name: the other person.
        details: plain values for the header: where their prior is from.
    """
    header, arrays = decode_record(record)
    return encode_record(header | {"name": name, **details}, arrays)


def certified_mechanism(record: bytes, shared: SharedProblem) -> Mechanism:
    """The mechanism in a record, after checking everything that the fleet guarantees.

    Raises:
        InvalidFile: the record is damaged, or of another fleet.
        GuaranteeViolated: its mechanism does not keep the guarantees.
    """
    statement = statement_of(record, shared)
    content = MechanismContent(statement, shared.problem.space, shared.problem.observables, provenance_of(record))
    return Mechanism(content, check(statement))


def statement_of(record: bytes, shared: SharedProblem) -> Statement:
    """The statement about the mechanism in a record, for the verifier."""
    _, arrays = decode_record(record)
    problem = shared.problem
    n, m = problem.shape
    return Statement(
        weights=freeze(decode_weights(arrays, n, m)),
        bits=BITS,
        prior=freeze(_prior(arrays, n)),
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=shared.bounds,
        dual_solution=None,
    )


def header_of(record: bytes) -> Header:
    """The header of a record, which names a person."""
    header = decode_record_header(record)
    if not isinstance(header.get("name"), str):
        raise InvalidFile("a record of the fleet is damaged: it does not say whose it is")
    return header


def prior_of(record: bytes, shared: SharedProblem) -> FloatArray:
    """The prior that a record's mechanism was designed for."""
    return _prior(decode_record(record)[1], shared.problem.shape[0])


def prior_source_of(record: bytes) -> tuple[int | None, str | None]:
    """The number of visits that a record's prior is from, and whether it is the person's ``"own"`` or ``"pooled"``."""
    header = header_of(record)
    visits, source = header.get("visits"), header.get("prior_from")
    if (visits is None or (type(visits) is int and visits >= 0)) and source in ("own", "pooled", None):
        return visits, source
    raise InvalidFile("a record of the fleet is damaged: it does not say what its prior is from")


def require_owner(record: bytes, hashed: bytes) -> None:
    """Refuse a record of another person than the one with this hash."""
    if name_hash(header_of(record)["name"]) != hashed:
        raise InvalidFile("a record of the fleet is another person's than its index says: files were mixed up")


def provenance_of(record: bytes) -> Provenance:
    """The solver and version that made the mechanism in a record."""
    table = header_of(record).get("provenance")
    if isinstance(table, dict) and set(table) == {"solver", "version", "repair_cost"}:
        solver, version, cost = table["solver"], table["version"], table["repair_cost"]
        if isinstance(solver, str) and isinstance(version, str) and type(cost) in (int, float):
            return Provenance(solver, version, cost)
    raise InvalidFile("a record of the fleet does not say where it comes from")


def _prior(arrays: Arrays, n: int) -> FloatArray:
    positive = decode_indices(arrays, "seen", n)
    prior = np.zeros(n)
    prior[positive] = record_array(arrays, "prior", "<f8", (len(positive),))
    return prior


def encode_weights(weights: IntArray) -> Arrays:
    """Weights as arrays: which columns are used, and their weights, packed if 17 bits are enough."""
    used = np.flatnonzero(weights.any(axis=0))
    arrays: Arrays = {"used": used.astype(np.uint32)}
    packed = pack_weights(weights[:, used])
    if packed is None:
        return arrays | {"weights": weights[:, used]}
    return arrays | {field: getattr(packed, field) for field in PACKED_FIELDS}


def decode_weights(arrays: Arrays, n: int, m: int) -> IntArray:
    """The weights, (n, m); whether they keep the guarantees is left to the verifier."""
    used = decode_indices(arrays, "used", m)
    weights = np.zeros((n, m), dtype=np.int64)
    weights[:, used] = _weights(arrays, n, len(used))
    return weights


def _weights(arrays: Arrays, n: int, k: int) -> IntArray:
    """The weights of the k observables that are used."""
    if "weights" in arrays:
        return record_array(arrays, "weights", "<i8", (n, k)).astype(np.int64)
    exponents = record_array(arrays, "exponents", "|u1", (n, k))
    digits = record_array(arrays, "digits", "<u2", (n, k))
    last_column = record_array(arrays, "last_column", "<u4", (n,))
    last_weight = record_array(arrays, "last_weight", "<i8", (n,))
    if (last_column >= k).any():
        raise InvalidFile("a record of the fleet is damaged: it points outside its weights")
    return PackedWeights(exponents, digits, last_column, last_weight).unpack()


def decode_indices(arrays: Arrays, name: str, limit: int) -> IntArray:
    """An array of increasing indices, all below a limit."""
    indices = record_array(arrays, name, "<u4", None).astype(np.int64)
    if (np.diff(indices) <= 0).any() or (indices >= limit).any():
        raise InvalidFile("a record of the fleet is damaged: it points outside the secrets or observables")
    return indices


def record_array(arrays: Arrays, name: str, kind: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    """An array, which must have this type and shape; without a shape, one axis."""
    array = arrays.get(name)
    if array is None or array.dtype != np.dtype(kind) or (array.ndim != 1 if shape is None else array.shape != shape):
        raise InvalidFile("a record of the fleet does not fit its shared part")
    return array
