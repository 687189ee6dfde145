"""Mechanisms designed against the belief at each release, and reused for the same belief or a near one."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.designer import design_bounds
from privacygames.errors import Infeasible, InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import Adversary, Bounds, DistortionGuarantee, Problem, max_distortion
from privacygames.releases.decimal_epsilon import float_rounded_down
from privacygames.solvers import SolveOptions, Solver
from privacygames.threads import single_threaded_blas

MAX_DESIGNS = 64
"""Maximum number of stored designs; the least recently used one is dropped."""

WhenImpossible = Literal["largest", "refuse"]
"""How a distortion is treated that the belief no longer allows."""

DesignKey = tuple[Decimal, bytes, tuple[tuple[Adversary, float | None], ...]]

PRESENT_SECRET = Adversary("now")  # the name is part of the digests of mechanisms
"""The adversary who knows the belief and guesses the present secret."""


@dataclass(frozen=True, eq=False)
class DesignSettings:
    """Settings of all designs.

    Attributes:
        when_impossible: how a distortion is treated that the belief does not allow.
        reuse: total variation between two beliefs up to which the design for one serves the other; its distortions are
            checked against the belief at hand.
        solver: as in :func:`privacygames.design`.
        options: of the solver.
    """

    when_impossible: WhenImpossible
    reuse: float
    solver: Literal["auto"] | Solver
    options: SolveOptions


class DesignCache:
    """Designs by belief, ε and distortion guarantees."""

    def __init__(self, settings: DesignSettings) -> None:
        self._settings = settings
        self._designs: OrderedDict[DesignKey, tuple[FloatArray, Mechanism]] = OrderedDict()

    def mechanism(
        self, problem: Problem, epsilon: Decimal | None, guarantees: Sequence[DistortionGuarantee]
    ) -> Mechanism:
        """The mechanism of least cost for the problem's prior, under this ε and these distortion guarantees."""
        if epsilon is None:
            raise InvalidProblem("specify how much epsilon a release may use, or give a mechanism that has one")
        possible = [self._possible(problem, each) for each in guarantees]
        belief = problem.prior.probabilities
        key = epsilon, belief.tobytes(), tuple((each.adversary, each.distortion) for each in possible)
        reusable = self._reusable(problem, key, possible)
        if reusable is None:
            bounds = Bounds(epsilon=float_rounded_down(epsilon), distortion=_distortion(possible))
            mechanism = design_bounds(problem, bounds, solver=self._settings.solver, options=self._settings.options)
            reusable = key
            self._designs[key] = belief, mechanism
            if len(self._designs) > MAX_DESIGNS:
                self._designs.popitem(last=False)
        self._designs.move_to_end(reusable)
        return self._designs[reusable][1]

    def _possible(self, problem: Problem, guarantee: DistortionGuarantee) -> DistortionGuarantee:
        """The guarantee itself if the belief allows it; otherwise the largest possible one, or a refusal."""
        largest = max_distortion(problem, guarantee.adversary)
        if guarantee.distortion is None or guarantee.distortion <= largest:
            return guarantee
        if self._settings.when_impossible == "refuse":
            raise Infeasible(
                f"after what was released, no mechanism has distortion privacy {guarantee.distortion:.9g} against "
                f"{guarantee.adversary.name!r}: the most is {largest!r}; when_impossible='largest' guarantees "
                "that instead",
                limit=largest,
            )
        return DistortionGuarantee(guarantee.adversary, largest)

    def _reusable(self, problem: Problem, key: DesignKey, guarantees: list[DistortionGuarantee]) -> DesignKey | None:
        """The key of a design for this belief, or of one for a near belief that satisfies the guarantees."""
        if key in self._designs:
            return key
        belief = problem.prior.probabilities
        for other in reversed(self._designs) if self._settings.reuse else ():
            other_belief, mechanism = self._designs[other]
            near = other[0] == key[0] and np.abs(other_belief - belief).sum() / 2 <= self._settings.reuse
            if near and all(_satisfies(mechanism, problem, each) for each in guarantees):
                return other
        return None


def _satisfies(mechanism: Mechanism, problem: Problem, guarantee: DistortionGuarantee) -> bool:
    errors = guarantee.adversary.errors
    return guarantee.distortion is None or best_error(mechanism.probabilities, problem, errors) >= guarantee.distortion


def _distortion(guarantees: list[DistortionGuarantee]) -> float | tuple[DistortionGuarantee, ...] | None:
    """The argument of ``Bounds``: one guarantee about the present secret is about the problem's own adversary."""
    if len(guarantees) == 1 and guarantees[0].adversary == PRESENT_SECRET:
        return guarantees[0].distortion
    return tuple(guarantees)


def best_error(channel: FloatArray, problem: Problem, errors: FloatArray | None = None) -> float:
    """The expected error of the optimal attack on the output of a channel.

    Args:
        channel: the probability of each outcome for each secret, (secrets, outcomes).
        problem: its prior is the belief.
        errors: (guesses, secrets); by default the problem's distance.
    """
    distances = problem.distance if errors is None else errors
    with single_threaded_blas():  # milliseconds of work: threads would wait for each other
        return float(((distances * problem.prior.probabilities) @ channel).min(axis=0).sum())
