"""Drawing all figures of a study into a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privacygames.jobs import Table, write_table
from privacygames_study.figures.approximations import APPROXIMATION
from privacygames_study.figures.captions import data_sentence, failed_sentence
from privacygames_study.figures.joint_bounds import JOINT
from privacygames_study.figures.plan import FigurePlan, Tables
from privacygames_study.figures.prior_effect import PRIOR
from privacygames_study.figures.robust import ROBUST
from privacygames_study.figures.rows import distinct
from privacygames_study.figures.scenario_1 import SCENARIO_1
from privacygames_study.figures.style import save, sentence
from privacygames_study.manifest import StudyManifest

PLANS: tuple[FigurePlan, ...] = (*SCENARIO_1, *JOINT, *PRIOR, *ROBUST, *APPROXIMATION)
"""All figures in the order of the paper, ours after the one each extends."""

NOTHING = "No result to draw."


@dataclass(frozen=True)
class DrawnFigure:
    """A figure that was drawn.

    Attributes:
        name: of its files; claims refer to it.
        title: a short title.
        caption: plain text: what is drawn, what it shows, and from which data.
        files: PNG, PDF and CSV.
    """

    name: str
    title: str
    caption: str
    files: tuple[Path, ...]


def draw(tables: Tables, manifest: StudyManifest, folder: Path) -> list[DrawnFigure]:
    """Draw every figure whose table is present into a folder, which is created if it is missing.

    A table without results makes a figure that says so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [_draw(plan, tables, manifest, folder) for plan in PLANS if plan.table in tables]


def _draw(plan: FigurePlan, tables: Tables, manifest: StudyManifest, folder: Path) -> DrawnFigure:
    rows = plan.select(tables)
    picture = plan.draw(rows) if rows else sentence(NOTHING)
    data = folder / f"{plan.name}.csv"
    write_table(data, rows, plan.columns)
    seen = plan.describe(rows) if rows else NOTHING
    where = data_sentence(manifest, _grids(rows)) if plan.has_own_grid else data_sentence(manifest)
    caption = " ".join(filter(None, (plan.caption, seen, where, failed_sentence(tables[plan.table]))))
    return DrawnFigure(plan.name, plan.title, caption, (*save(picture, folder, plan.name), data))


def _grids(rows: Table) -> Sequence[tuple[int, int]]:
    return [(int(str(across)), int(str(down))) for across, down in distinct(rows, "columns", "rows")]
