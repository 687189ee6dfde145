"""What one takes away: the problem file, the Python and the command that reproduce a mechanism, and a report."""

import re
from typing import Any

import tomli_w

from privacygames.presentation import render
from privacygames.problem import PROBLEM_ADVERSARY, parse_problem
from privacygames.spaces import Grid, Numbers
from privacygames.studio.export_files import EXPORTS
from privacygames.studio.views import Shelved

FILE, PROBLEM = EXPORTS["file"].name, EXPORTS["toml"].name
NUMBERS = re.compile(r"\[\s+(?:(?:[-+.\deE]+|\[[-+.\deE, ]+\]),\s+)+\]")
"""Lists of numbers, or of short lists of them, which are written one a line."""

COMMAND = f"privacygames design {PROBLEM} --out {FILE}"


def toml_of(tables: dict[str, Any]) -> str:
    """The problem document as a file."""
    text = tomli_w.dumps(tables)
    for _ in range(2):  # lists, then lists of lists
        text = NUMBERS.sub(lambda found: " ".join(found[0].split()).replace(", ]", "]").replace("[ ", "["), text)
    return text


def python_of(tables: dict[str, Any]) -> str:
    """A program that designs the mechanism again."""
    kind = tables["space"]["kind"]
    plain = kind in ("grid", "numbers", "categories") and "observables" not in tables
    plain = plain and all(_is_ours(table) for table in tables.get("adversary", []))
    if not plain or "counts" not in tables.get("prior", {}) or not isinstance(tables["prior"]["counts"], list):
        return _from_file()
    problem, _ = parse_problem(tables)
    measures = ", ".join(f"{key}={value!r}" for key, value in tables.get("problem", {}).items())
    lines = [
        "import privacygames as pg",
        "",
        f"space = {_space(problem.space)}",
        f"prior = pg.Prior.from_counts(space, {tables['prior']['counts']!r})",
        f"problem = pg.Problem(prior, {measures})",
    ]
    bounds = dict(tables["bounds"])
    promises = (
        [f"    pg.Adversary({PROBLEM_ADVERSARY.name!r}): {bounds['distortion']!r},"] if "distortion" in bounds else []
    )
    for number, table in enumerate(tables.get("adversary", []), start=1):
        lines += _adversary(number, table)
        promises.append(f"    adversary_{number}: {table['share']!r} * pg.max_distortion(problem, adversary_{number}),")
    if tables.get("adversary"):
        bounds.pop("distortion", None)
        first = [f"    pg.Adversary({PROBLEM_ADVERSARY.name!r}): None,"] if "cost_at_most" in bounds else []
        lines += ["promises = {", *first, *promises, "}"]
    given = [f"{key}={value!r}" for key, value in bounds.items()]
    given += ["distortion=promises"] if tables.get("adversary") else []
    lines.append(f"mechanism = pg.design(problem, {', '.join(given)})")
    return "\n".join([*lines, *_ending()]) + "\n"


def private_toml(tables: dict[str, Any]) -> str:
    """The problem file, with its disclosure in the first line."""
    return EXPORTS["toml"].disclosure.comment + toml_of(tables)


def private_python(tables: dict[str, Any]) -> str:
    """The program, with its disclosure in the first line."""
    return EXPORTS["python"].disclosure.comment + python_of(tables)


def report_of(kept: Shelved, view: dict[str, Any], *, counts: bool = False) -> str:
    """One page about a mechanism, for people who were not there.

    Args:
        kept: the mechanism.
        view: what is known of it.
        counts: whether the problem file, with its visit counts, is part of the page.
    """
    said = EXPORTS["report-with-counts" if counts else "report"].disclosure.value
    toml = toml_of(kept.tables) if counts and kept.tables is not None else ""
    names = {"command": COMMAND, "file": FILE, "problem": PROBLEM}
    return render("mechanism.html", title="A certified mechanism", disclosure=said, view=view, toml=toml, **names)


def _from_file() -> str:
    lines = [
        "from pathlib import Path",
        "",
        "import privacygames as pg",
        "from privacygames.problem import read_problem",
        "",
        f'problem, bounds = read_problem(Path("{PROBLEM}"))',
        "mechanism = pg.design(problem, **bounds)",
    ]
    return "\n".join([*lines, *_ending()]) + "\n"


def _ending() -> list[str]:
    return [f'mechanism.save("{FILE}")', f'print(pg.verify("{FILE}"))']


def _space(space: Any) -> str:
    if isinstance(space, Grid):
        if space.box is not None:
            return f"pg.Grid.over({space.box!r}, columns={space.columns}, rows={space.rows})"
        return f"pg.Grid(columns={space.columns}, rows={space.rows}, width={space.width!r}, height={space.height!r})"
    if isinstance(space, Numbers):
        return f"pg.Numbers({list(space.labels)!r}, unit={space.unit!r})"
    return f"pg.Categories({list(space.labels)!r})"


def _is_ours(table: dict[str, Any]) -> bool:
    """Whether an adversary is one of those the studio offers itself."""
    keys = set(table) - {"name", "share"}
    return keys == {"sharpened"} or (keys == {"attribute", "guesses"} and set(table["attribute"]) == {"given"})


def _adversary(number: int, table: dict[str, Any]) -> list[str]:
    name = f"adversary_{number}"
    if "attribute" in table:
        guesses = f"pg.Categories({table['guesses']!r})"
        given = table["attribute"]["given"]
        return [f"{name} = pg.Adversary.of_attribute({table['name']!r}, given={given!r}, guesses={guesses})"]
    strength, places = table["sharpened"]["strength"], table["sharpened"]["places"]
    return [f"{name} = pg.Adversary({table['name']!r}, prior=prior.sharpened({strength!r}, places={places!r}))"]
