"""Mechanisms for beliefs: one fixed for all, or each designed against the belief at its moment, and kept."""

from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import numpy as np
from threadpoolctl import ThreadpoolController

from privacygames.arrays import FloatArray
from privacygames.designer import designed
from privacygames.errors import Infeasible, InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Bounds, Problem, max_distortion
from privacygames.releases.amounts import at_most
from privacygames.solvers import SolveOptions, Solver

KEPT = 64
"""So many designs are kept, the last used last."""

WhenImpossible = Literal["largest", "refuse"]


@dataclass(frozen=True, eq=False)
class Wishes:
    """What is asked of every design.

    Attributes:
        distortion: promised against the belief; None: nothing.
        when_impossible: what becomes of a distortion that the belief does not allow.
        reuse: up to which total variation between two beliefs one's design does for the other; what is asked of it is
            checked against the belief at hand.
        solver: as in :func:`privacygames.design`.
        options: of the solver.
    """

    distortion: float | None
    when_impossible: WhenImpossible
    reuse: float
    solver: Literal["auto"] | Solver
    options: SolveOptions


class Designs:
    """Designs by belief and ε."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes
        self._known: OrderedDict[tuple[Decimal, bytes], tuple[FloatArray, Mechanism]] = OrderedDict()

    def mechanism(self, problem: Problem, epsilon: Decimal | None) -> Mechanism:
        """The mechanism that costs least for the problem's prior with this ε, and the distortion asked for."""
        if epsilon is None:
            raise InvalidProblem("say how much epsilon a release may use, or give a mechanism that has one")
        belief, distortion = problem.prior.probabilities, self.distortion(problem)
        found = self._nearest(problem, epsilon, distortion)
        if found is None:
            bounds = Bounds(epsilon=at_most(epsilon), distortion=distortion)
            made = designed(problem, bounds, solver=self._wishes.solver, options=self._wishes.options)
            found = epsilon, belief.tobytes()
            self._known[found] = belief, made
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(found)
        return self._known[found][1]

    def distortion(self, problem: Problem) -> float | None:
        """The distortion to promise: what was asked for, or the largest that the belief allows, or a refusal."""
        asked = self._wishes.distortion
        if asked is None:
            return None
        most = max_distortion(problem)
        if asked > most and self._wishes.when_impossible == "refuse":
            raise Infeasible(
                f"after what was released, no mechanism has distortion privacy {asked:.9g}: the most is {most!r}; "
                "when_impossible='largest' promises that instead",
                limit=most,
            )
        return min(asked, most)

    def _nearest(self, problem: Problem, epsilon: Decimal, distortion: float | None) -> tuple[Decimal, bytes] | None:
        belief = problem.prior.probabilities
        exact = epsilon, belief.tobytes()
        if exact in self._known:
            return exact
        for key in reversed(self._known) if self._wishes.reuse else ():
            other, mechanism = self._known[key]
            near = key[0] == epsilon and np.abs(other - belief).sum() / 2 <= self._wishes.reuse
            if near and (distortion is None or best_error(mechanism.probabilities, problem) >= distortion):
                return key
        return None


def best_error(channel: FloatArray, problem: Problem, errors: FloatArray | None = None) -> float:
    """How far off the best attack is on average once it sees what comes out of a channel (secrets, outcomes).

    Args:
        channel: the probability of each outcome for each secret.
        problem: whose prior is the belief.
        errors: (guesses, secrets); by default the problem's distance.
    """
    measured = problem.distance if errors is None else errors
    with _libraries().limit(limits=1, user_api="blas"):  # milliseconds of work: threads would wait for each other
        return float(((measured * problem.prior.probabilities) @ channel).min(axis=0).sum())


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
