"""Releases of one secret that is a point: each is chosen from the balances, charged, drawn, committed, and returned."""

import os
from collections import OrderedDict
from dataclasses import replace
from decimal import Decimal
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats
from privacygames.beliefs import Timestamp
from privacygames.errors import Field, InvalidProblem
from privacygames.points import PointProblem, PointSampleable, design
from privacygames.releases.budgets import Budgets, point_accounts, point_charges
from privacygames.releases.decimal_epsilon import float_rounded_down, total
from privacygames.releases.guarantees import Guarantees, trace_guarantees
from privacygames.releases.ledger import BaseLedger, LedgerHead, ReleaseEntry, WhenChanged, point_scope
from privacygames.releases.ledger_session import LedgerSession
from privacygames.releases.place_guarantee import PlaceGuarantee, place_guarantee
from privacygames.releases.policies import BudgetPolicy, FrequentPlaces, Memoised, Policy, Predictive
from privacygames.releases.release import Point, PointPreview, Release, output_text
from privacygames.releases.sampling import (
    DrawnOutput,
    MemoisedFrequentPlaces,
    MemoisedPlaces,
    PointFunction,
    draw_point_output,
    draw_tested_point_output,
    memoised_output,
)
from privacygames.releases.timeline import CLOCK_TOLERANCE, ReleaseClock, ReleaseTime
from privacygames.releases.validation import checked_policy, require_clock_tolerance
from privacygames.spaces import Area, Region
from privacygames.validation import require_choice

WithoutBudget = Literal["refuse", "repeat"]
"""What happens without budget left: an error, or the last output again."""

MOST_DESIGNS = 16
"""Maximum number of stored designs, one for each ε; the least recently used one is dropped."""

SMALLEST_PLACE = 2.0**-24
"""Smallest side of a place, as a share of the region: below a metre in a region of the size of the Earth."""


class PointReleases(LedgerSession[FloatArray, Point, PointPreview]):
    """Releases of a point over time, each charged ε per unit of distance between any two points.

    No belief is maintained and no movement is modelled: each release is chosen from the ledger's balances and the clock
    alone. All releases together guarantee that no sequence of outputs shifts the odds between two sequences of points
    by more than exp(Σ ε_t · distance at t), for any correlation and any adversary (docs/theory/sharing.md). No
    coordinate is ever written to the ledger.

    Args:
        source: a mechanism for points that every output is drawn from (without its prior, too), or a problem that a
            mechanism is designed for, for each ε.
        epsilon: of every release, with a problem; alternatively ``policy`` determines it.
        policy: :class:`Fixed`, :class:`EvenSpread` or a :class:`BudgetPolicy` of your own; :class:`Predictive` with the
            last output; or :class:`FrequentPlaces`, or :class:`Memoised` with the size of a ``place``.
        budget: as in :class:`Releases`; ε counts in the distance between points.
        when_spent: without budget left, ``"refuse"`` (an error) or ``"repeat"`` the last output.
        ledger: as in :class:`Releases`.
        when_changed: as in :class:`Releases`; another mechanism for the same region and outputs is no change.
        clock_tolerance: as in :class:`Releases`.
        time_limit: seconds for each design.
        tolerance: as in :func:`privacygames.points.design`.
        generator: for experiments: outputs are then reproducible, and not private.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> mechanism = pg.design(problem, epsilon=0.5)
    >>> releases = pg.PointReleases(mechanism, budget=pg.Budget(1.0, every=24 * 3600))
    >>> first, second = releases.release((0.51, 0.48), at=1.7e9), releases.release((1.2, 0.9), at=1.7e9 + 60)
    >>> first.observable in [(0.5, 0.5), (1.5, 1.2)], second.spent, second.left, second.counted
    (True, 1.0, 0.0, 'per km')
    >>> releases.release((0.51, 0.48), at=1.7e9 + 120)
    Traceback (most recent call last):
        ...
    privacygames.errors.BudgetExceeded: the budget has no room for another release ...
    """

    def __init__(
        self,
        source: PointSampleable | PointProblem,
        *,
        epsilon: float | None = None,
        policy: Policy | None = None,
        budget: Budgets = None,
        when_spent: WithoutBudget = "refuse",
        ledger: BaseLedger | str | os.PathLike[str] | None = None,
        when_changed: WhenChanged = "refuse",
        clock_tolerance: float | None = CLOCK_TOLERANCE,
        time_limit: float | None = None,
        tolerance: float = 1e-6,
        generator: np.random.Generator | None = None,
    ) -> None:
        if not isinstance(source, PointSampleable | PointProblem):
            raise InvalidProblem("give a mechanism for points or a PointProblem; for cells and labels use Releases")
        require_choice(when_spent, ("refuse", "repeat"), "when_spent")
        require_choice(when_changed, ("refuse", "record", "same-unit"), "when_changed")
        require_clock_tolerance(clock_tolerance)
        fixed = isinstance(source, PointSampleable)
        if isinstance(source, PointSampleable) and source.bounds.epsilon is None:
            raise InvalidProblem("the mechanism guarantees no epsilon, and a ledger of points charges nothing else")
        self.source, self.when_spent, self._generator = source, when_spent, generator
        self.policy = _checked_policy(checked_policy(epsilon, policy, fixed_mechanism=fixed), self.region)
        planned = source if isinstance(source, PointSampleable) else self.policy.epsilon
        self.accounts = point_accounts(self.region, budget, self._place, planned)
        windows = any(account.every is not None for account in self.accounts)
        self._clock = ReleaseClock(windows=windows, clock_tolerance=clock_tolerance)
        self._outputs = _outputs(source)
        self._time_limit, self._tolerance = time_limit, tolerance
        self._designs: OrderedDict[Decimal, PointSampleable] = OrderedDict()
        self._charges: dict[tuple[str, Decimal | None], tuple[Decimal, ...]] = {}
        scope = point_scope(self.region, source.observables, self.policy.charging, self.accounts)
        self._open(ledger, scope, when_changed)

    @property
    def region(self) -> Region:
        """The region of the secrets."""
        return self.source.region if isinstance(self.source, PointProblem) else self.source.secrets

    def release(self, point: ArrayLike, at: Timestamp | None = None, key: str | None = None) -> Release[Point]:
        """Draw one output for the present point; it is charged and committed before it is returned.

        Args:
            point: the true point in the region's coordinates: a pair, or a number on an interval; a point outside is
                moved to the nearest point of the region.
            at: the time: unix seconds, or a datetime with a time zone. If left out, releases are counted.
            key: as in :meth:`Releases.release`.

        Raises:
            BudgetExceeded: if ``when_spent`` is ``"refuse"``, or there is no output to repeat yet.
        """
        given = as_floats(point, "the point")
        if given.ndim != self.region.dimension - 1:
            raise InvalidProblem("one release is of one point: a pair of numbers, or a number on an interval")
        self.region.project(given[None])  # raises where it is no point, before anything is chosen
        return self._release(given[None], at, key)

    def guarantees(self) -> Guarantees:
        """What is guaranteed about all releases so far, for any correlation and any adversary."""
        head, first = self._head(), self.accounts[0]
        spent = self.ledger.spent((first,), head.time)[0].amount
        statement = trace_guarantees(first.scale, first.max_distance, spent, self._earlier_releases(), still=False)
        return replace(statement, added_distance=2 * self._place_radius, with_delta=self._statements_with_delta())

    def place_guarantee(self) -> PlaceGuarantee:
        """What is guaranteed about where one place lies, such as home, with memoised outputs."""
        if self.policy.charging != "places":
            raise InvalidProblem("outputs of a place are independent draws here: only FrequentPlaces and Memoised")
        self._head()
        if self.ledger.balances().deleted:
            raise InvalidProblem(f"releases of {self.ledger.name} were deleted: what they said of a place is not known")
        return place_guarantee(self.ledger.records(), self.accounts[0].scale, self._place_radius)

    @property
    def _place_radius(self) -> float:
        """How far from what they are replaced by points may be; 0 where they are not replaced."""
        if isinstance(self.policy, FrequentPlaces):
            return self.policy.radius
        return 0.0 if self._place is None else float(np.sqrt(self.region.dimension) * self._place / 2)

    @property
    def _place(self) -> float | None:
        return self.policy.place if isinstance(self.policy, Memoised) else None

    def _preview(self, head: LedgerHead, when: ReleaseTime) -> PointPreview:
        spent = self.ledger.spent(self.accounts, when.time)
        if isinstance(self.policy, BudgetPolicy):
            epsilon = self.policy.next_epsilon(self.accounts, spent)
        else:
            epsilon = self.policy.epsilon
        mechanism = None if epsilon == 0 else self._mechanism(epsilon)
        charges = self._no_charges if mechanism is None else self._charges_of(mechanism, epsilon)
        test = None
        if isinstance(self.policy, Predictive) and head.releases_in_scope:
            test = self.policy.distance_test
            charges = tuple(total(pair) for pair in zip(charges, self._test_charges(test), strict=True))
        function = None if mechanism is None else self._function(mechanism)
        if function is None and not self._affordable(charges, spent):
            mechanism, test, charges = None, None, self._no_charges
        return PointPreview(
            number=head.release_count + 1,
            when=when,
            charges=charges,
            spent=spent,
            last_output=head.output_index if head.releases_in_scope else None,
            used_before=function is not None and self.ledger.has_used(function.name),
            mechanism=mechanism,
            test=test,
        )

    def _entry(self, preview: PointPreview, secret: FloatArray, key: str | None) -> ReleaseEntry:
        drawn = self._output(preview, secret)
        memoised = preview.mechanism is not None and self.policy.charging == "places"
        return self._entry_without_belief(preview, drawn, key, new_function=memoised and not preview.used_before)

    def _output(self, preview: PointPreview, point: FloatArray) -> DrawnOutput:
        function = None if preview.mechanism is None else self._function(preview.mechanism)
        cell = None if function is None else function.cell(point)
        if function is not None and cell is not None:
            drawn = self._charged_once(memoised_output(function, cell, preview.charges), preview)
            if drawn is not None:
                return drawn
        elif isinstance(self.policy, FrequentPlaces) and self.policy.elsewhere == "repeat":
            if preview.last_output is None:
                raise InvalidProblem("the first release must be at one of the places: there is no output to repeat yet")
            return DrawnOutput(preview.last_output, "away", None, None, self._no_charges)
        elif preview.mechanism is not None and preview.test is not None and preview.last_output is not None:
            mechanism, epsilon = preview.mechanism, self.policy.epsilon
            return draw_tested_point_output(
                preview.test,
                self._distance(point, preview.last_output),
                preview.last_output,
                self._test_charges(preview.test),
                lambda: draw_point_output(mechanism, point, self._charges_of(mechanism, epsilon), self._generator),
                generator=self._generator,
            )
        elif preview.mechanism is not None and self._affordable(preview.charges, preview.spent):
            return draw_point_output(preview.mechanism, point, preview.charges, self._generator)
        self._require_fallback(preview)
        return DrawnOutput(preview.last_output or 0, "repeated", None, None, self._no_charges)

    def _distance(self, point: FloatArray, output_index: int) -> float:
        """The distance of a point (1, axes), moved into the region, from an output."""
        output = self.region.project(np.array([self._outputs[output_index]]))
        return float(np.linalg.norm(self.region.clamp(point) - output))

    def _test_charges(self, test: PointSampleable) -> tuple[Decimal, ...]:
        return self._charges_of(test, self.policy.test_epsilon if isinstance(self.policy, Predictive) else None)

    def _output_text(self, output_index: int) -> str:
        """The coordinates of an output as the command line writes them: over degrees the latitude comes first."""
        point = self._outputs[output_index]
        latitude_first = isinstance(self.region, Area) and self.region.box is not None
        return output_text(point[::-1] if latitude_first and isinstance(point, tuple) else point)

    def _function(self, mechanism: PointSampleable) -> PointFunction | None:
        """The memoised function of a mechanism; None where each output is drawn independently."""
        if isinstance(self.policy, FrequentPlaces):
            return MemoisedFrequentPlaces(mechanism, self.policy.memo_key, self.policy.places, self.policy.radius)
        if not isinstance(self.policy, Memoised) or self.policy.place is None:
            return None
        return MemoisedPlaces(mechanism, self.policy.memo_key, self.policy.place)

    def _mechanism(self, epsilon: Decimal | None) -> PointSampleable:
        """The fixed mechanism, or the design for an ε."""
        if isinstance(self.source, PointSampleable):
            return self.source
        if epsilon is None:
            raise InvalidProblem("specify how much epsilon a release may use, or give a mechanism that has one")
        if epsilon not in self._designs:
            self._designs[epsilon] = design(
                self.source,
                epsilon=float_rounded_down(epsilon),
                prove_bound=False,
                time_limit=self._time_limit,
                tolerance=self._tolerance,
            )
            if len(self._designs) > MOST_DESIGNS:
                self._designs.popitem(last=False)
        self._designs.move_to_end(epsilon)
        return self._designs[epsilon]

    def _charges_of(self, mechanism: PointSampleable, epsilon: Decimal | None) -> tuple[Decimal, ...]:
        key = mechanism.digest, epsilon
        if key not in self._charges:
            self._charges[key] = point_charges(mechanism, epsilon, self.accounts)
        return self._charges[key]

    def __repr__(self) -> str:
        return f"PointReleases({self.region!r}, {type(self.policy).__name__}, {self.ledger!r})"


def _checked_policy(policy: Policy, region: Region) -> BudgetPolicy | FrequentPlaces | Memoised | Predictive:
    """The policy, if it works for points."""
    if isinstance(policy, FrequentPlaces):
        if policy.places.ndim != region.dimension:
            raise InvalidProblem("give each place as a point of the region: a pair, or a number on an interval")
        region.project(policy.places)  # raises where one is no point
        if policy.radius > max(region.lengths):
            raise InvalidProblem(Field("radius"), " is larger than the region: every point would be at every place")
        return policy
    if isinstance(policy, Memoised):
        smallest = SMALLEST_PLACE * max(region.lengths)
        if policy.place is None or not smallest <= policy.place <= max(region.lengths):
            raise InvalidProblem(
                Field("place"),
                " must say how large a place is, whose points all have one output: the side of its cells, from ",
                f"{smallest:.2g} to {max(region.lengths):.6g} {region.unit}".rstrip(),
                "; two coordinates of one place are never equal",
            )
        return policy
    if isinstance(policy, BudgetPolicy) or (isinstance(policy, Predictive) and policy.prediction == "last"):
        return policy
    if isinstance(policy, Predictive):
        raise InvalidProblem("between points there is no belief to predict from: use prediction='last'")
    raise InvalidProblem(
        f"{type(policy).__name__} needs a belief over finitely many secrets, and between points there is none: use "
        "Fixed, EvenSpread, Predictive, FrequentPlaces, Memoised or a BudgetPolicy of your own; or Releases on the "
        "cells of a grid, whose guarantees are between cells"
    )


def _outputs(source: PointSampleable | PointProblem) -> list[Point]:
    """The coordinates of all outputs, as :meth:`PointSampleable.sample` gives them."""
    region = source.region if isinstance(source, PointProblem) else source.secrets
    points = region.coordinates(source.outputs) if isinstance(source, PointProblem) else source.outputs
    return [(each[0], each[1]) if len(each) == 2 else each[0] for each in points.tolist()]
