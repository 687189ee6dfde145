"""Problem files (TOML) of every kind: secrets that are cells or labels, and secrets that are points."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacygames.problem import Problem, ProblemFile
from privacygames.spaces import is_region
from privacygames.text_files import read_toml

if TYPE_CHECKING:
    from privacygames.point_document import PointProblemFile
    from privacygames.points import PointProblem


def open_problem(path: Path) -> "ProblemFile | PointProblemFile":
    r"""A problem file, with its problem, its bounds and its adversaries.

    >>> from pathlib import Path
    >>> from privacygames.problem_files import open_problem
    >>> lines = ["[space]", 'kind = "area"', "width = 3.0", "height = 2.0", "[prior]", "points = [[1.0, 1.0]]"]
    >>> _ = Path("town.toml").write_text("\n".join([*lines, "[observables]", "columns = 3", "rows = 2"]))
    >>> open_problem(Path("town.toml")).problem
    PointProblem(1 points of Area(3 × 2 km), 6 outputs)
    """
    tables = read_toml(path)
    if not (is_region(tables.get("space")) or "mesh" in tables):
        return ProblemFile(path, tables)
    from privacygames.point_document import PointProblemFile

    return PointProblemFile(path, tables)


def read_problem(path: Path) -> "tuple[Problem | PointProblem, dict[str, Any]]":
    r"""The problem of a file, and its bounds, as keyword arguments of :func:`privacygames.design`.

    >>> from pathlib import Path
    >>> space = ["[space]", 'kind = "numbers"', "from = 20", "to = 40"]
    >>> lines = [*space, "[prior]", "uniform = true", "[bounds]", "epsilon = 1"]
    >>> _ = Path("ages.toml").write_text("\n".join(lines))
    >>> problem, bounds = pg.read_problem(Path("ages.toml"))
    >>> len(problem.space), bounds["epsilon"]
    (21, 1)

    Returns:
        A :class:`privacygames.Problem`, or a :class:`privacygames.PointProblem` where the space is an area or an
        interval; and the bounds.
    """
    file = open_problem(path)
    return file.problem, dict(file.bounds)
