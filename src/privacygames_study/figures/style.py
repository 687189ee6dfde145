"""The style of figures: one palette (Okabe and Ito's, for colour-blind readers), one size, few lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.presentation import needed

Canvas = Any
"""A ``matplotlib.figure.Figure``."""
Axes = Any
"""A ``matplotlib.axes.Axes``."""

INK, GREY, FAINT, RED = "#333333", "#888888", "#dddddd", "#c1121f"
REFERENCE = {"color": GREY, "linewidth": 0.9, "dashes": (4, 3), "zorder": 1}
"""A dashed line to compare with."""
MIN_BOX_VALUES = 5
"""Number of values from which a box plot is drawn; quartiles of fewer say little."""

SIZE = (4.8, 3.7)
SQUARE = (4.6, 4.7)
"""In inches: at half a page's width the text is still seven points high."""


@dataclass(frozen=True)
class Mark:
    """Colour and shape of a mechanism in every figure; either is enough to identify it."""

    name: str
    colour: str
    marker: str
    under: bool = False

    def scatter(self, axes: Axes, x: FloatArray, y: FloatArray, *, size: float = 26) -> None:
        """Draw points; the mark under the others is larger, so that coinciding points all show."""
        axes.scatter(
            x,
            y,
            s=size * (2.6 if self.under else 1.0),
            marker=self.marker,
            color=self.colour,
            edgecolors="white",
            linewidths=0.0 if self.under or size < 14 else 0.4,
            label=self.name,
            zorder=2 if self.under else 3,
        )


MARKS = {
    "differential": Mark("differential", "#0072b2", "o"),
    "distortion": Mark("distortion", "#d55e00", "^"),
    "joint": Mark("joint", "#5fc9aa", "s", under=True),
}
"""The joint mechanism's green is lighter than Okabe and Ito's, because the others are drawn on it."""


def canvas(size: tuple[float, float] = SIZE) -> Canvas:
    """An empty figure, independent of windows and global state."""
    return needed("matplotlib.figure", what="drawing a figure").Figure(figsize=size, layout="constrained")


def panel(axes: Axes, x: str, y: str) -> Axes:
    """Label the axes, and remove the frame lines that carry no information."""
    axes.set_xlabel(x, fontsize=10)
    axes.set_ylabel(y, fontsize=10)
    axes.tick_params(labelsize=9, colors=INK, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes


def diagonal_panel(axes: Axes, names: Iterable[str], values: Iterable[FloatArray]) -> Axes:
    """Two axes of the same quantity: equal scale, equal range, and the line where both agree."""
    panel(axes, *names)
    low, high = limits(np.concatenate(list(values)))
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.locator_params(nbins=8)
    axes.axline((low, low), slope=1, **REFERENCE)
    return axes


def limits(values: FloatArray) -> tuple[float, float]:
    """A range with a margin around the values; it starts at zero if the smallest value is near zero."""
    low, high = float(values.min()), float(values.max())
    margin = max(0.06 * (high - low), 0.01 * high, 1e-3)
    return (min(low, 0.0) - (margin if low < 0 else margin / 3) if low < 0.4 * high else low - margin), high + margin


def legend(figure: Canvas, handles: Sequence[Any]) -> None:
    """A legend above the panels, where it covers no data."""
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=len(handles),
        frameon=False,
        fontsize=9,
        handletextpad=0.3,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def colour_scale(figure: Canvas, axes: Axes, values: FloatArray, label: str, *, ticks: FloatArray | None = None) -> Any:
    """A map from values to colours (dark to light in grey too), with its bar beside the panel unless all are equal."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colours = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.88, 256)))  # its end is too pale on white
    low, high = float(values.min()), float(values.max())
    scale = ScalarMappable(Normalize(low, high if high > low else low + 1.0), colours)
    if high > low:
        bar = figure.colorbar(scale, ax=axes, shrink=0.85, aspect=28, pad=0.02, ticks=ticks)
        bar.set_label(label, fontsize=9)
        bar.ax.tick_params(labelsize=8, length=2)
        bar.outline.set_visible(False)
    return scale


def box(axes: Axes, values: Sequence[float], *, place: float, width: float, colour: str) -> None:
    """One box plot: quartiles, median, whiskers to 1.5 times the box, dots beyond.

    Fewer than ``MIN_BOX_VALUES`` values are drawn as points, with their median.
    """
    if len(values) < MIN_BOX_VALUES:
        axes.scatter([place] * len(values), values, s=16, c=colour, edgecolors=INK, linewidths=0.5, zorder=3)
        if values:
            ends = (place - width / 2, place + width / 2)
            axes.hlines(float(np.median(values)), *ends, color="black", linewidth=1.8, zorder=2)
        return
    ink = {"color": INK, "linewidth": 0.8}
    dot = {"marker": "o", "markersize": 2.5, "markerfacecolor": colour, "markeredgecolor": INK, "markeredgewidth": 0.4}
    axes.boxplot(
        [values],
        positions=[place],
        widths=width,
        patch_artist=True,
        manage_ticks=False,
        whiskerprops=ink,
        boxprops={"facecolor": colour, "edgecolor": INK, "linewidth": 0.8},
        capprops=ink,
        flierprops=dot,
        medianprops={"color": "black", "linewidth": 1.8},
    )


def patches(names: Iterable[tuple[str, str]]) -> list[Any]:
    """Legend handles for filled shapes, from their names and colours."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=colour, edgecolor=INK, linewidth=0.8, label=name) for name, colour in names]


def plain_log(axes: Axes) -> None:
    """A logarithmic y axis with its numbers written out."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def sentence(text: str) -> Canvas:
    """A figure of one sentence, which says why there is nothing to draw."""
    figure = canvas((4.8, 1.6))
    figure.text(0.5, 0.5, text, ha="center", va="center", fontsize=10, color=INK, wrap=True)
    return figure


def save(figure: Canvas, folder: Path, name: str) -> Sequence[Path]:
    """Write a figure as PNG, at 200 dots per inch, and as PDF; the same figure gives the same bytes."""
    png, pdf = folder / f"{name}.png", folder / f"{name}.pdf"
    figure.savefig(png, dpi=200, metadata={"Software": None})
    figure.savefig(pdf, metadata={"CreationDate": None, "Producer": None, "Creator": None})
    return png, pdf
