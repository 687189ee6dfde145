"""Drawing all figures of a study into a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privacygames.jobs import Table, write_table
from privacygames_study.figures.captions import missing, setting
from privacygames_study.figures.figure_plan import FigurePlan, Tables
from privacygames_study.figures.figure_rows import distinct
from privacygames_study.figures.joint_bounds import JOINT
from privacygames_study.figures.prior_effect import PRIOR
from privacygames_study.figures.pruning import APPROXIMATION
from privacygames_study.figures.robust_promises import ROBUST
from privacygames_study.figures.scenario_1 import SCENARIO_1
from privacygames_study.figures.style import save, sentence
from privacygames_study.metadata import About

PLANS: tuple[FigurePlan, ...] = (*SCENARIO_1, *JOINT, *PRIOR, *ROBUST, *APPROXIMATION)
"""All figures, in the order in which the paper has them; ours beside the one it answers."""

NOTHING = "No result to draw."


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that was drawn.

    Attributes:
        name: of its files; claims refer to it.
        title: a few words.
        caption: what is drawn, what to see, from which data; plain text.
        files: PNG, PDF and CSV.
    """

    name: str
    title: str
    caption: str
    files: tuple[Path, ...]


def draw(tables: Tables, about: About, folder: Path) -> list[DrawnFigure]:
    """Draw every figure whose table is there into a folder, which is made if need be.

    A table without results makes a figure that says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [_draw(plan, tables, about, folder) for plan in PLANS if plan.table in tables]


def _draw(plan: FigurePlan, tables: Tables, about: About, folder: Path) -> DrawnFigure:
    rows = plan.select(tables)
    picture = plan.paint(rows) if rows else sentence(NOTHING)
    data = folder / f"{plan.name}.csv"
    write_table(data, rows, plan.columns)
    seen = plan.see(rows) if rows else NOTHING
    where = setting(about, _grids(rows)) if plan.own_grid else setting(about)
    caption = " ".join(filter(None, (plan.shows, seen, where, missing(tables[plan.table]))))
    return DrawnFigure(plan.name, plan.title, caption, (*save(picture, folder, plan.name), data))


def _grids(rows: Table) -> Sequence[tuple[int, int]]:
    return [(int(str(across)), int(str(down))) for across, down in distinct(rows, "columns", "rows")]
