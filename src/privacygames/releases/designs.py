"""Mechanisms for beliefs: one fixed for all, or each designed against the belief at its moment, and kept."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.designer import design_bounds
from privacygames.errors import Infeasible, InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Adversary, Bounds, DistortionGuarantee, Problem, max_distortion
from privacygames.releases.decimal_epsilon import at_most
from privacygames.solvers import SolveOptions, Solver
from privacygames.threads import single_threaded_blas

KEPT = 64
"""So many designs are kept, the last used last."""

WhenImpossible = Literal["largest", "refuse"]
Named = tuple[Decimal, bytes, tuple[tuple[Adversary, float | None], ...]]

NOW = Adversary("now")
"""Who knows the belief and guesses the secret as it is now."""


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """What is asked of every design.

    Attributes:
        when_impossible: what becomes of a distortion that the belief does not allow.
        reuse: up to which total variation between two beliefs one's design does for the other; what is asked of it is
            checked against the belief at hand.
        solver: as in :func:`privacygames.design`.
        options: of the solver.
    """

    when_impossible: WhenImpossible
    reuse: float
    solver: Literal["auto"] | Solver
    options: SolveOptions


class MechanismDesigner:
    """Designs by belief, ε and what is promised against whom."""

    def __init__(self, wishes: DesignSettings) -> None:
        self._wishes = wishes
        self._known: OrderedDict[Named, tuple[FloatArray, Mechanism]] = OrderedDict()

    def mechanism(self, problem: Problem, epsilon: Decimal | None, asked: Sequence[DistortionGuarantee]) -> Mechanism:
        """The mechanism that costs least for the problem's prior with this ε, and the distortions asked for."""
        if epsilon is None:
            raise InvalidProblem("say how much epsilon a release may use, or give a mechanism that has one")
        promises = [self._possible(problem, each) for each in asked]
        belief = problem.prior.probabilities
        named = epsilon, belief.tobytes(), tuple((each.adversary, each.distortion) for each in promises)
        found = self._nearest(problem, named, promises)
        if found is None:
            bounds = Bounds(epsilon=at_most(epsilon), **_stated(promises))
            made = design_bounds(problem, bounds, solver=self._wishes.solver, options=self._wishes.options)
            found = named
            self._known[found] = belief, made
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(found)
        return self._known[found][1]

    def _possible(self, problem: Problem, asked: DistortionGuarantee) -> DistortionGuarantee:
        """What was asked for, or the largest that the belief allows, or a refusal."""
        most = max_distortion(problem, asked.adversary)
        if asked.distortion is None or asked.distortion <= most:
            return asked
        if self._wishes.when_impossible == "refuse":
            raise Infeasible(
                f"after what was released, no mechanism has distortion privacy {asked.distortion:.9g} against "
                f"{asked.adversary.name!r}: the most is {most!r}; when_impossible='largest' promises that instead",
                limit=most,
            )
        return DistortionGuarantee(asked.adversary, most)

    def _nearest(self, problem: Problem, named: Named, promises: list[DistortionGuarantee]) -> Named | None:
        if named in self._known:
            return named
        belief = problem.prior.probabilities
        for key in reversed(self._known) if self._wishes.reuse else ():
            other, mechanism = self._known[key]
            near = key[0] == named[0] and np.abs(other - belief).sum() / 2 <= self._wishes.reuse
            if near and all(_keeps(mechanism, problem, each) for each in promises):
                return key
        return None


def _keeps(mechanism: Mechanism, problem: Problem, promise: DistortionGuarantee) -> bool:
    errors = promise.adversary.errors
    return promise.distortion is None or best_error(mechanism.probabilities, problem, errors) >= promise.distortion


def _stated(promises: list[DistortionGuarantee]) -> dict[str, Any]:
    """As bounds: one promise about the secret itself is the plain distortion."""
    if len(promises) == 1 and promises[0].adversary == NOW:
        return {"distortion": promises[0].distortion}
    return {"against": tuple(promises)}


def best_error(channel: FloatArray, problem: Problem, errors: FloatArray | None = None) -> float:
    """How far off the best attack is on average once it sees what comes out of a channel (secrets, outcomes).

    Args:
        channel: the probability of each outcome for each secret.
        problem: whose prior is the belief.
        errors: (guesses, secrets); by default the problem's distance.
    """
    measured = problem.distance if errors is None else errors
    with single_threaded_blas():  # milliseconds of work: threads would wait for each other
        return float(((measured * problem.prior.probabilities) @ channel).min(axis=0).sum())
