"""Publishing a finished study: its figures and its report, in the folder of its tables."""

from pathlib import Path

from privacygames.jobs import read_table
from privacygames_study.manifest import read_manifest
from privacygames_study.result_tables import COLUMNS
from privacygames_study.runner import FIGURES, TABLES, Study


def publish(study: Study, folder: Path) -> Path:
    """Draw all figures, write the report and return its path. Figures of an earlier study in the folder are deleted."""
    from privacygames_study.figures import PLANS, draw
    from privacygames_study.report import write

    drawn = draw(study.tables, study.manifest, folder / FIGURES)
    written = {path.name for figure in drawn for path in figure.files}
    for name in {f"{plan.name}.{kind}" for plan in PLANS for kind in ("png", "pdf", "csv")} - written:
        (folder / FIGURES / name).unlink(missing_ok=True)
    return write(folder, study.manifest, study.tables, study.claims, drawn)


def read_study(folder: Path) -> Study:
    """The study in a folder."""
    paths = {name: folder / TABLES / f"{name}.csv" for name in COLUMNS}
    tables = {name: read_table(path) for name, path in paths.items() if path.exists()}
    return Study(read_manifest(folder), tables, read_table(folder / TABLES / "claims.csv"), fresh=0)
