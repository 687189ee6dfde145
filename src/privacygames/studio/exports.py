"""Everything the studio exports: files, programs and reports, each marked as private or shareable.

Private exports contain the user's data or numbers computed from it. Shareable ones are made of what the user asked for
alone, and of nothing that was computed from visits.
"""

import re
from dataclasses import dataclass
from math import exp
from typing import Any

import tomli_w

from privacygames.analysis import cost_scale, distance_scale, distinguishability_scale
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Disclosure
from privacygames.presentation import limitations, render
from privacygames.problem import PROBLEM_ADVERSARY, Problem, parse_problem
from privacygames.spaces import Grid, Numbers, Space
from privacygames.studio.problem_source import Tables
from privacygames.studio.stored_mechanism import StoredMechanism, StoredPointMechanism
from privacygames.traces import SYNTHETIC_WINDOW, is_public_box


@dataclass(frozen=True)
class ExportFile:
    """One export.

    Attributes:
        stem: the name of the file, without the word that says whether it is private.
        disclosure: what the file says about the user's data.
    """

    stem: str
    disclosure: Disclosure

    @property
    def name(self) -> str:
        """The file name, such as ``"private-mechanism.pgm"``."""
        return f"{'private' if self.disclosure.is_private else 'shareable'}-{self.stem}"

    def to_dict(self) -> dict[str, str]:
        """Plain values, for JSON."""
        return {"name": self.name, "disclosure": self.disclosure.value}


EXPORTS = {
    "file": ExportFile("mechanism.pgm", Disclosure.PRIOR),
    "device": ExportFile("mechanism.pgd", Disclosure.COMPUTED),
    "certificate": ExportFile("certificate.json", Disclosure.COMPUTED),
    "toml": ExportFile("problem.toml", Disclosure.PRIOR),
    "python": ExportFile("design_mechanism.py", Disclosure.PRIOR),
    "report": ExportFile("report.html", Disclosure.COMPUTED),
    "report-with-counts": ExportFile("report.html", Disclosure.PRIOR),
    "svg": ExportFile("picture.svg", Disclosure.PRIOR),
    "png": ExportFile("picture.png", Disclosure.PRIOR),
    "shareable-toml": ExportFile("problem.toml", Disclosure.SHAREABLE),
    "shareable-report": ExportFile("report.html", Disclosure.SHAREABLE),
}
"""Every export by its key. Pictures show the prior, or numbers computed from it for one secret or output."""

MECHANISM_FILE, PROBLEM_FILE = EXPORTS["file"].name, EXPORTS["toml"].name
COMMAND = f"privacygames design {PROBLEM_FILE} --out {MECHANISM_FILE}"
"""The command that designs the mechanism again from the private problem file."""

NUMBER_LISTS = re.compile(r"\[\s+(?:(?:[-+.\deE]+|\[[-+.\deE, ]+\]),\s+)+\]")
"""Lists of numbers, or of short lists of them, that TOML was written with one number a line."""

LARGEST_EXPONENT = 700.0
"""Exponents above this overflow a double."""


def private_toml(tables: Tables) -> str:
    """The problem file, with its disclosure in the first line."""
    return EXPORTS["toml"].disclosure.comment + _toml(tables)


def private_python(tables: Tables) -> str:
    """A program that designs the mechanism again, with its disclosure in the first line."""
    return EXPORTS["python"].disclosure.comment + _program(tables)


def report(stored: StoredMechanism | StoredPointMechanism, view: dict[str, Any], *, counts: bool = False) -> str:
    """One page about a mechanism, for people who did not see the studio.

    Args:
        stored: the mechanism.
        view: its view, as the page gets it.
        counts: whether the problem file, with its visit counts, is part of the page.
    """
    disclosure = EXPORTS["report-with-counts" if counts else "report"].disclosure.value
    toml = _toml(stored.tables) if counts and stored.tables is not None else ""
    names = {"command": COMMAND, "file": MECHANISM_FILE, "problem": PROBLEM_FILE}
    return render("mechanism.html", title="A certified mechanism", disclosure=disclosure, view=view, toml=toml, **names)


def shareable_problem(stored: StoredMechanism) -> str:
    """The problem file with a uniform prior instead of the user's, and without the adversaries' tables."""
    return EXPORTS["shareable-toml"].disclosure.comment + _toml(_public_tables(stored))


def shareable_report(stored: StoredMechanism) -> str:
    """One page about the guarantees, without a number that was computed from the prior."""
    _public_tables(stored)  # or the refusal
    return render(
        "guarantees.html",
        title="The guarantees of a certified mechanism",
        disclosure=Disclosure.SHAREABLE.value,
        rows=[("secrets", _secrets(stored.mechanism.problem)), *_guarantees(stored)],
        limitations=limitations(stored.mechanism.certificate.bounds, stored.mechanism.problem.space),
    )


def _toml(tables: Tables) -> str:
    """A problem document as text, its lists of numbers on one line each."""
    text = tomli_w.dumps(tables)
    for _ in range(2):  # lists, then lists of lists
        text = NUMBER_LISTS.sub(lambda match: " ".join(match[0].split()).replace(", ]", "]").replace("[ ", "["), text)
    return text


def _program(tables: Tables) -> str:
    """Python that designs the mechanism: from values where they are short, or else from the problem file."""
    kind = tables["space"]["kind"]
    short = kind in ("grid", "numbers", "categories") and "observables" not in tables
    short = short and all(_is_preset(table) for table in tables.get("adversary", []))
    if not short or "counts" not in tables.get("prior", {}) or not isinstance(tables["prior"]["counts"], list):
        return _program_reading_file()
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
    problem_adversary = f"    pg.Adversary({PROBLEM_ADVERSARY.name!r})"
    guarantees = [f"{problem_adversary}: {bounds['distortion']!r},"] if "distortion" in bounds else []
    for number, table in enumerate(tables.get("adversary", []), start=1):
        lines += _adversary(number, table)
        guarantees.append(
            f"    adversary_{number}: {table['share']!r} * pg.max_distortion(problem, adversary_{number}),"
        )
    if tables.get("adversary"):
        bounds.pop("distortion", None)
        maximised = [f"{problem_adversary}: None,"] if "cost_at_most" in bounds else []
        lines += ["guarantees = {", *maximised, *guarantees, "}"]
    arguments = [f"{key}={value!r}" for key, value in bounds.items()]
    arguments += ["distortion=guarantees"] if tables.get("adversary") else []
    lines.append(f"mechanism = pg.design(problem, {', '.join(arguments)})")
    return "\n".join([*lines, *_saving()]) + "\n"


def _program_reading_file() -> str:
    lines = [
        "from pathlib import Path",
        "",
        "import privacygames as pg",
        "",
        f'problem, bounds = pg.read_problem(Path("{PROBLEM_FILE}"))',
        "mechanism = pg.design(problem, **bounds)",
    ]
    return "\n".join([*lines, *_saving()]) + "\n"


def _saving() -> list[str]:
    return [f'mechanism.save("{MECHANISM_FILE}")', f'print(pg.verify("{MECHANISM_FILE}"))']


def _space(space: Space) -> str:
    if isinstance(space, Grid):
        if space.box is not None:
            return f"pg.Grid.over({space.box!r}, columns={space.columns}, rows={space.rows})"
        return f"pg.Grid(columns={space.columns}, rows={space.rows}, width={space.width!r}, height={space.height!r})"
    if isinstance(space, Numbers):
        return f"pg.Numbers({list(space.labels)!r}, unit={space.unit!r})"
    return f"pg.Categories({list(space.labels)!r})"


def _is_preset(table: Tables) -> bool:
    """Whether an adversary is one of those the studio lists itself."""
    keys = set(table) - {"name", "share"}
    return keys == {"sharpened"} or (keys == {"attribute", "guesses"} and set(table["attribute"]) == {"given"})


def _adversary(number: int, table: Tables) -> list[str]:
    name = f"adversary_{number}"
    if "attribute" in table:
        guesses = f"pg.Categories({table['guesses']!r})"
        given = table["attribute"]["given"]
        return [f"{name} = pg.Adversary.of_attribute({table['name']!r}, given={given!r}, guesses={guesses})"]
    strength, places = table["sharpened"]["strength"], table["sharpened"]["places"]
    return [f"{name} = pg.Adversary({table['name']!r}, prior=prior.sharpen({strength!r}, places={places!r}))"]


def _public_tables(stored: StoredMechanism) -> Tables:
    """The tables of the problem that no visit had a part in; refused where that cannot be known."""
    if stored.tables is None:
        raise InvalidProblem("this mechanism was not designed here: what its file was computed from is not known")
    if not stored.bounds_by_user:
        raise InvalidProblem(
            "the bounds of this mechanism are steps that were computed from the prior: to share it, design with a "
            "round bound of your own"
        )
    space, measures = stored.tables["space"], stored.tables.get("problem", {})
    box = space.get("box")
    if box is not None and not (is_public_box(box) or tuple(box) == SYNTHETIC_WINDOW):
        raise InvalidProblem(
            "the box of this grid is not on the public lattice (multiples of 0.02 degrees), so it may have been "
            "computed from visits: nothing about it is exported as shareable; round its edges outward"
        )
    if not all(isinstance(measure, str) for measure in measures.values()):
        raise InvalidProblem("cost and distances are given as tables, which may be private: name them instead")
    public = {key: value for key, value in stored.tables.items() if key in ("space", "problem", "observables")}
    return public | {"prior": {"uniform": True}, "bounds": stored.tables.get("bounds", {})}


def _secrets(problem: Problem) -> str:
    space = problem.space
    if not isinstance(space, Grid):
        return f"{len(space)}"
    size = f"{len(space)} cells, {space.columns} × {space.rows} over {space.width:.3g} × {space.height:.3g} km"
    if space.box is None:
        return size
    west, south, east, north = space.box
    return f"{size}, from longitude {west:g} to {east:g} and latitude {south:g} to {north:g}"


def _guarantees(stored: StoredMechanism) -> list[tuple[str, str]]:
    """The required bounds, in the problem's units; shares, not amounts, against further adversaries."""
    tables, problem = stored.tables or {}, stored.mechanism.problem
    bounds = tables.get("bounds", {})
    cost, distance, per = cost_scale(problem), distance_scale(problem), distinguishability_scale(problem)
    rows = []
    if "epsilon" in bounds:
        factor = exp(min(bounds["epsilon"], LARGEST_EXPONENT))
        if "within" in bounds:
            apart, any_pair = f"two secrets at most {per.amount(format(bounds['within'], 'g'))} apart", None
        else:
            apart = f"two secrets 1 {per.singular_unit} apart" if per.unit else "two secrets at distance 1"
            any_pair = bounds["epsilon"] * float(problem.distinguishability.max())
        shift = f"no output shifts the odds between {apart} by more than a factor of {factor:.3g}"
        epsilon = per.epsilon(format(bounds["epsilon"], "g"), any_pair, within=bounds.get("within"))
        rows.append(("epsilon", f"at most {epsilon}: {shift}"))
    if "distortion" in bounds:
        rows.append(("error of the best attack", f"at least {distance.amount(format(bounds['distortion'], 'g'))}"))
    if "cost_at_most" in bounds:
        rows.append(("cost", f"at most {cost.amount(format(bounds['cost_at_most'], 'g'))}"))
    if "worst_cost_at_most" in bounds:
        rows.append(("cost of every secret", f"at most {cost.amount(format(bounds['worst_cost_at_most'], 'g'))}"))
    for table in tables.get("adversary", []):
        known = f"at least {table['share']:.0%} of the error without an output" if "share" in table else None
        rows.append((f"against “{table['name']}”", known or "a guarantee of its own"))
    return rows
