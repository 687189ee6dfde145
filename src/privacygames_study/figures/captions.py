"""Sentences of captions, with numbers computed from the rows that are drawn."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.jobs import Table
from privacygames_study.figures.rows import done
from privacygames_study.manifest import StudyManifest

NEAR = 0.01
"""Differences below this (km, or share of outputs) cannot be seen in a figure and count as none."""


def rounded(value: float) -> str:
    """A number with three significant digits and no exponent."""
    if not np.isfinite(value):
        return "infinite"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    text = f"{value:.{decimals}f}"
    return "0" if float(text) == 0 else text.replace("-", "−")


def parameter(value: float) -> str:
    """A parameter in its shortest form: 0.15, 2, 0.9."""
    return f"{value:.6g}"


def kilometres(length: float) -> str:
    """A length of a map: ``15``, ``8.3``."""
    return f"{round(length, 1 if length >= 1 else 3):g}"


def at_most(value: float) -> str:
    """A largest difference: ``at most 0.02``, or ``less than 0.001``."""
    return "less than 0.001" if value < 0.001 else f"at most {rounded(value)}"


def duration(value: float) -> str:
    """A time span: ``0.42 s``, ``18 s``, ``12 min``, ``3 h 20 min``."""
    if value < 1:
        return f"{rounded(value)} s"
    if value < 120:
        return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
    minutes = round(value / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def median_range(values: FloatArray, unit: str = "") -> str:
    """The median and the range: ``0.31 km in the median, between 0.02 and 0.6``."""
    low, median, high = (rounded(float(value)) for value in np.quantile(values, (0, 0.5, 1)))
    unit = f" {unit}" if unit else ""
    return f"{median}{unit}" if low == high else f"{median}{unit} in the median, between {low} and {high}"


def count_of(holds: NDArray[np.bool_]) -> str:
    """How many of how many: ``58 of 60``."""
    return f"{int(np.sum(holds))} of {len(holds)}"


def diagonal_sentence(x: FloatArray, y: FloatArray) -> str:
    """How many points lie above, on and below the diagonal."""
    above, below = int(np.sum(y - x > NEAR)), int(np.sum(x - y > NEAR))
    return (
        f"Of {counted_noun(len(x), 'point')}, {above} lie above the diagonal, {len(x) - above - below} on it "
        f"(within {parameter(NEAR)} km) and {below} below."
    )


def counted_noun(number: int, noun: str) -> str:
    """``1 user``, ``10 users``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def reused_sentence(rows: Table) -> str:
    """The number of settings whose joint mechanism is the differential one; empty if there are none."""
    same = np.array([row.get("joint_reused") is True for row in rows], dtype=np.bool_)
    sentence = f"In {count_of(same)} the joint mechanism is the differential one, which reaches d_m by itself."
    return sentence if same.any() else ""


def data_sentence(manifest: StudyManifest, grids: Sequence[tuple[int, int]] = ()) -> str:
    """The data behind a figure: the data set, the number of users, and the grid, or the figure's own grids."""
    cells = " and ".join(f"{columns} × {rows}" for columns, rows in grids or [(manifest.columns, manifest.rows)])
    note = " (synthetic people)" if manifest.format == "synthetic" else ""
    return (
        f"Data: {manifest.data}{note}, {counted_noun(manifest.users, 'user')}; "
        f"grid of {cells} cells over {kilometres(manifest.width_km)} × {kilometres(manifest.height_km)} km."
    )


def failed_sentence(table: Table) -> str:
    """The number of rows without a result; empty if all have one."""
    failed = len(table) - len(done(table))
    return (
        f"{failed} of {counted_noun(len(table), 'design')} of this part failed; they are not drawn." if failed else ""
    )
