"""Shareable exports: the question and the promises, built from what the user asked and nothing that was measured."""

from math import exp
from typing import Any

from privacygames.analysis import cost_scale, distance_scale, distinguishability_scale
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Disclosure
from privacygames.presentation import limitations, render
from privacygames.problem import Problem
from privacygames.spaces import Grid
from privacygames.studio.export_files import EXPORTS
from privacygames.studio.exports import toml_of
from privacygames.studio.views import Shelved
from privacygames.traces import SYNTHETIC_WINDOW, is_public_box

Tables = dict[str, Any]
LARGEST_EXPONENT = 700.0
"""From here on the exponential overflows."""


def shareable_problem(kept: Shelved) -> str:
    """The problem file with a uniform prior instead of the user's, and without the adversaries' tables."""
    tables = _public_tables(kept)
    return EXPORTS["shareable-toml"].disclosure.comment + toml_of(tables)


def shareable_report(kept: Shelved) -> str:
    """One page about what is promised, without a number that was computed from the prior."""
    _public_tables(kept)  # or the refusal
    return render(
        "promises.html",
        title="What a certified mechanism promises",
        disclosure=Disclosure.SHAREABLE.value,
        rows=[("secrets", _secrets(kept.mechanism.problem)), *_promises(kept)],
        limitations=limitations(kept.mechanism.certificate.bounds),
    )


def _public_tables(kept: Shelved) -> Tables:
    """The tables of the problem that no visit had a part in; refused where that cannot be known."""
    if kept.tables is None:
        raise InvalidProblem("this mechanism was not designed here: what its file was computed from is not known")
    if not kept.own_bounds:
        raise InvalidProblem(
            "the bounds of this mechanism are steps that were computed from the prior: to share it, design with a "
            "round bound of your own"
        )
    space, measures = kept.tables["space"], kept.tables.get("problem", {})
    box = space.get("box")
    if box is not None and not (is_public_box(box) or tuple(box) == SYNTHETIC_WINDOW):
        raise InvalidProblem(
            "the box of this grid is not on the public lattice (multiples of 0.02 degrees), so it may have been "
            "computed from visits: nothing about it is exported as shareable; round its edges outward"
        )
    if not all(isinstance(measure, str) for measure in measures.values()):
        raise InvalidProblem("cost and distances are given as tables, which may be private: name them instead")
    kinds = ("space", "problem", "observables")
    found = {key: value for key, value in kept.tables.items() if key in kinds}
    return found | {"prior": {"uniform": True}, "bounds": kept.tables.get("bounds", {})}


def _secrets(problem: Problem) -> str:
    space = problem.space
    if not isinstance(space, Grid):
        return f"{len(space)}"
    size = f"{len(space)} cells, {space.columns} × {space.rows} over {space.width:.3g} × {space.height:.3g} km"
    if space.box is None:
        return size
    west, south, east, north = space.box
    return f"{size}, from longitude {west:g} to {east:g} and latitude {south:g} to {north:g}"


def _promises(kept: Shelved) -> list[tuple[str, str]]:
    """What was asked, in the problem's units; shares and not amounts against further adversaries."""
    tables, problem = kept.tables or {}, kept.mechanism.problem
    bounds = tables.get("bounds", {})
    cost, distance, per = cost_scale(problem), distance_scale(problem), distinguishability_scale(problem)
    rows = []
    if "epsilon" in bounds:
        factor = exp(min(bounds["epsilon"], LARGEST_EXPONENT))
        if "within" in bounds:
            apart, any_pair = f"two secrets at most {per.amount(format(bounds['within'], 'g'))} apart", None
        else:
            apart = f"two secrets 1 {per.one} apart" if per.unit else "two secrets at distance 1"
            any_pair = bounds["epsilon"] * float(problem.distinguishability.max())
        shift = f"no answer shifts the odds between {apart} by more than a factor of {factor:.3g}"
        told = per.epsilon(format(bounds["epsilon"], "g"), any_pair, within=bounds.get("within"))
        rows.append(("epsilon", f"at most {told}: {shift}"))
    if "distortion" in bounds:
        rows.append(("error of the best attack", f"at least {distance.amount(format(bounds['distortion'], 'g'))}"))
    if "cost_at_most" in bounds:
        rows.append(("cost", f"at most {cost.amount(format(bounds['cost_at_most'], 'g'))}"))
    if "worst_cost_at_most" in bounds:
        rows.append(("cost of every secret", f"at most {cost.amount(format(bounds['worst_cost_at_most'], 'g'))}"))
    for table in tables.get("adversary", []):
        share = f"{table['share']:.0%} of the error without an answer" if "share" in table else "a promise of its own"
        rows.append((f"against “{table['name']}”", f"at least {share}" if "share" in table else share))
    return rows
