"""A case: a problem in plain numbers, what is asked of it, and how it is asked."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privacygames as pg

Array = NDArray[np.float64]

TASKS = ("design", "find epsilon", "find distortion", "find cost", "compare")


@dataclass(frozen=True)
class ReducedAdversary:
    """An adversary in plain numbers; None stands for the problem's own prior or distance."""

    prior: Array | None = None
    errors: Array | None = None
    distortion: float | None = None


@dataclass(frozen=True)
class Case:
    """A problem, bounds and options, all in plain numbers: what the fuzzer asks the library and the oracle.

    Attributes:
        seed: the number that generates it again.
        traits: the choices that were made for it, in words.
        prior: π(s).
        cost: c(o, s); ∞ forbids an output for a secret.
        distance: d(ŝ, s).
        distinguishability: d^ε(s, s').
        adversaries: adversaries that something is promised against; empty for the paper's alone.
        bounds: the numbers among the arguments of ``design``; ``distortion`` only where there are no adversaries.
        task: one of ``TASKS``.
        solver: ``"auto"``, or a name in ``SOLVERS``.
        tolerance: the gap that is asked for.
        space: the secrets as the library's space; None for plain categories.
        observables: the outputs as the library's space; None for plain categories.
    """

    seed: int
    traits: tuple[str, ...]
    prior: Array
    cost: Array
    distance: Array
    distinguishability: Array
    adversaries: tuple[ReducedAdversary, ...] = ()
    bounds: dict[str, Any] = field(default_factory=dict)
    task: str = "design"
    solver: str = "auto"
    tolerance: float = 1e-6
    space: pg.Space | None = None
    observables: pg.Space | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """How many secrets and outputs there are."""
        return len(self.prior), len(self.cost)

    @property
    def kind(self) -> str:
        """What is asked, in words: a row of the table of outcomes."""
        if self.task != "design":
            return self.task
        words = []
        if "epsilon" in self.bounds:
            words.append("threshold ε" if "within" in self.bounds else "ε")
        if self.adversaries:
            words.append("adversaries")
        elif "distortion" in self.bounds:
            words.append("distortion")
        if "cost_at_most" in self.bounds:
            words.append("cost limit")
        if "worst_cost_at_most" in self.bounds:
            words.append("worst-cost limit")
        if self.bounds.get("worst_case"):
            words.append("worst case")
        return ", ".join(words)

    def opponents(self) -> list[tuple[Array, Array, float | None]]:
        """Belief, errors and promised distortion of everybody a promise is about; the first may be maximised."""
        if self.adversaries:
            return [
                (
                    self.prior if each.prior is None else each.prior,
                    self.distance if each.errors is None else each.errors,
                    each.distortion,
                )
                for each in self.adversaries
            ]
        if "distortion" in self.bounds or "cost_at_most" in self.bounds:
            return [(self.prior, self.distance, self.bounds.get("distortion"))]
        return []

    def problem(self) -> pg.Problem:
        """The library's problem."""
        n, m = self.shape
        space = self.space or pg.Categories([f"s{i}" for i in range(n)])
        observables = self.observables or (pg.Categories([f"o{i}" for i in range(m)]))
        return pg.Problem(
            pg.Prior(space, self.prior),
            cost=self.cost,
            distance=self.distance,
            distinguishability=self.distinguishability,
            observables=observables,
        )

    def arguments(self, problem: pg.Problem) -> dict[str, Any]:
        """Keyword arguments of ``design``, without solver and options."""
        given = dict(self.bounds)
        if self.adversaries:
            given["distortion"] = {
                pg.Adversary(
                    f"adversary {place}",
                    prior=None if each.prior is None else pg.Prior(problem.space, each.prior),
                    errors=each.errors,
                ): each.distortion
                for place, each in enumerate(self.adversaries)
            }
        return given

    def with_bounds(self, **bounds: Any) -> "Case":
        """The same case with some bounds changed; None removes one."""
        merged = {name: value for name, value in (self.bounds | bounds).items() if value is not None}
        return replace(self, bounds=merged)

    def script(self) -> str:
        """Python that poses the case again, to be pasted."""
        n, m = self.shape
        lines = [
            "import numpy as np, privacygames as pg",
            "from numpy import array, inf",
            f"space = pg.Categories([f's{{i}}' for i in range({n})])",
            f"outputs = pg.Categories([f'o{{i}}' for i in range({m})])",
            f"problem = pg.Problem(pg.Prior(space, {_shown(self.prior)}),",
            f"    cost={_shown(self.cost)},",
            f"    distance={_shown(self.distance)},",
            f"    distinguishability={_shown(self.distinguishability)}, observables=outputs)",
        ]
        words = [f"{name}={value!r}" for name, value in self.bounds.items()]
        if self.adversaries:
            entries = []
            for place, each in enumerate(self.adversaries):
                prior = "" if each.prior is None else f", prior=pg.Prior(space, {_shown(each.prior)})"
                errors = "" if each.errors is None else f", errors={_shown(each.errors)}"
                entries.append(f"pg.Adversary('adversary {place}'{prior}{errors}): {each.distortion!r}")
            words.append(f"distortion={{{', '.join(entries)}}}")
        text = ", ".join(words)
        if self.task == "design":
            options = "" if self.solver == "auto" else f", solver=pg.{self.solver}"
            options += "" if self.tolerance == 1e-6 else f", tolerance={self.tolerance!r}"
            lines.append(f"pg.design(problem, {text}{options})")
        elif self.task == "compare":
            lines.append(f"pg.compare(problem, pg.calibrated_baselines(problem, {text}))")
        else:
            lines.append(f"pg.tightest_bound(problem, {self.task.split()[1]!r}, {text})")
        return "\n".join(lines)


SOLVERS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "Highs()": pg.Highs,
    "Highs('simplex')": lambda: pg.Highs("simplex"),
    "Interior()": pg.Interior,
}


def _shown(values: Array) -> str:
    """An array as Python reads it, every digit of it."""
    return repr(np.asarray(values).tolist()).replace("nan", "np.nan")
