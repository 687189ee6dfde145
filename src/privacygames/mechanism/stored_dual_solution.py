"""The multipliers in a mechanism file: the evidence that no mechanism does better."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals
from privacygames.errors import InvalidFile
from privacygames.mechanism.binary_container import Arrays, Header
from privacygames.mechanism.header_fields import array_of, integer_of, positions_of, real_of


def pack_dual_solution(given: DualSolution) -> tuple[Header, Arrays]:
    """The header and the arrays that multipliers become."""
    arrays = _pack_attack("attack", given.attack) | {
        "like": given.like.astype(np.int32),
        "ratio_observable": given.ratios.observable,
        "ratio_secret": given.ratios.secret,
        "ratio_other": given.ratios.other,
        "ratio_value": given.ratios.value,
    }
    if given.secret_weights is not None:
        arrays["secret_weights"] = given.secret_weights
    if given.limit_weights is not None:
        arrays["limit_weights"] = given.limit_weights
    duals: Header = {"cost": given.cost_dual, "distortion": given.distortion_dual, "rows": len(given.attack)}
    if given.against:
        duals["against"] = [each.dual for each in given.against]
        for place, each in enumerate(given.against):
            arrays |= _pack_attack(f"attack{place}", each.attack)
    return duals, arrays


def unpack_dual_solution(header: Any, arrays: Arrays, shape: tuple[int, int], guesses: Sequence[int]) -> DualSolution:
    """The multipliers of a file.

    Args:
        header: their part of the header.
        arrays: all arrays of the file.
        shape: how many secrets and observables there are.
        guesses: of each of several adversaries, how many guesses she has.
    """
    n, m = shape
    rows = integer_of(header["rows"])
    if not 1 <= rows <= m:
        raise InvalidFile("the multipliers do not fit the observables")
    duals = header.get("against", [])
    if len(duals) != len(guesses):
        raise InvalidFile("the multipliers do not fit the adversaries")
    count = (len(arrays["ratio_value"]),)
    ratios = RatioDuals(
        positions_of(arrays, "ratio_observable", count, rows),
        positions_of(arrays, "ratio_secret", count, n),
        positions_of(arrays, "ratio_other", count, n),
        array_of(arrays, "ratio_value", "<f8", count),
    )
    weights, limited = (
        array_of(arrays, name, "<f8", (n,)) if name in arrays else None for name in ("secret_weights", "limit_weights")
    )
    return DualSolution(
        real_of(header["cost"]),
        real_of(header["distortion"]),
        _unpack_attack("attack", arrays, rows, n),
        ratios,
        weights,
        positions_of(arrays, "like", (m,), rows).astype(np.int64),
        tuple(
            AdversaryDuals(real_of(dual), _unpack_attack(f"attack{place}", arrays, rows, size))
            for place, (dual, size) in enumerate(zip(duals, guesses, strict=True))
        ),
        limited,
    )


def _pack_attack(name: str, attack: FloatArray) -> Arrays:
    """A sparse table, as three arrays."""
    row, column = np.nonzero(attack)
    return {
        f"{name}_row": row.astype(np.int32),
        f"{name}_estimate": column.astype(np.int32),
        f"{name}_value": attack[row, column],
    }


def _unpack_attack(name: str, arrays: Arrays, rows: int, columns: int) -> FloatArray:
    count = (len(arrays[f"{name}_value"]),)
    attack = np.zeros((rows, columns))
    row = positions_of(arrays, f"{name}_row", count, rows)
    attack[row, positions_of(arrays, f"{name}_estimate", count, columns)] = array_of(
        arrays, f"{name}_value", "<f8", count
    )
    return attack
