"""A release before and after it is drawn: :class:`Preview` and :class:`Release`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.errors import InvalidFile
from privacygames.mechanism import Mechanism
from privacygames.points import PointSampleable
from privacygames.problem import DistortionGuarantee, Problem, format_epsilon
from privacygames.releases.budgets import Spent, more_releases, releases_left, share_text
from privacygames.releases.ledger import LedgerBalances, ReleaseRecord, max_log_ratio
from privacygames.releases.policies import Choice
from privacygames.releases.timeline import ReleaseTime
from privacygames.spaces import Label, display_label

Point = float | tuple[float, float]
"""The coordinates of a point."""

Output = TypeVar("Output", bound=Label | Point)
"""The type of outputs: labels, or coordinates of points."""

Source = Literal["drawn", "kept", "memoised", "away", "repeated", "belief"]
SOURCES: dict[str, str] = {
    "drawn": "drawn from a mechanism",
    "kept": "the prediction, which passed its test",
    "memoised": "the memoised output of the secret",
    "away": "the last output again: the user is at none of the frequent places",
    "repeated": "the last output again: the budget is spent",
    "belief": "from the belief alone: the budget is spent",
}
"""The sources of an output, and how they are printed."""


@dataclass(frozen=True, eq=False)
class NextRelease:
    """What public information determines of the next release, whatever the secrets are.

    Attributes:
        number: its number in the ledger, from 1.
        when: the time it would be recorded with.
        charges: the largest possible charge to each account; a memoised secret that was charged already costs nothing.
        spent: what counts against each account at that time.
        last_output: the index of the last output about this problem; None before the first.
        used_before: whether memoised outputs of the same function were released before.
    """

    number: int
    when: ReleaseTime
    charges: tuple[Decimal, ...]
    spent: tuple[Spent, ...]
    last_output: int | None
    used_before: bool


@dataclass(frozen=True, eq=False)
class FixedPreview(NextRelease):
    """The next release from a fixed mechanism, from public information alone: no secret was read.

    Attributes:
        mechanism: the mechanism; None if the budget is spent.

    >>> mechanism = pg.design(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40]))), epsilon=0.5)
    >>> pg.FixedReleases(mechanism).preview().charges
    (Decimal('0.5'),)
    """

    mechanism: Mechanism | None


@dataclass(frozen=True, eq=False)
class PointPreview(NextRelease):
    """The next release of a point, from public information alone: no secret was read.

    Attributes:
        mechanism: the mechanism; None if the budget is spent.
        test: the test of the last output, run first, as a mechanism for distances from it; None without a test.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> pg.PointReleases(problem, epsilon=0.5).preview().charges
    (Decimal('0.5'),)
    """

    mechanism: PointSampleable | None
    test: PointSampleable | None


@dataclass(frozen=True, eq=False)
class Preview(NextRelease):
    """The next release, from public information alone: no secret was read.

    Attributes:
        problem: the problem, with the belief at that time as its prior.
        choice: the mechanism, and the test before it; None if the budget is spent.
        expected_error: of the optimal attack on the present secret, under the mobility model; None if it is not known.
        targets: the adversaries with other inference targets by then, and the distortion guaranteed against each.
        target_errors: the expected error of each of them.
        log_belief: the logarithms of the belief.
    """

    problem: Problem
    choice: Choice | None
    expected_error: float | None
    targets: tuple[DistortionGuarantee, ...]
    target_errors: tuple[float, ...]
    log_belief: FloatArray = field(repr=False)

    @property
    def belief(self) -> Prior:
        """The belief before the release, at its time."""
        return self.problem.prior

    @property
    def gap(self) -> float | None:
        """The relative optimality gap of the mechanism; None if it was designed for another belief."""
        if self.choice is None:
            return None
        mechanism = self.choice.mechanism
        own = np.array_equal(mechanism.statement.prior, self.belief.probabilities)
        return mechanism.certificate.gap if own else None


@dataclass(frozen=True)
class Balance:
    """One budget after a release.

    Attributes:
        name: of the budget.
        charged: the charge of the release.
        left: what is left, in all or in the window that ends now; None: no limit.
        counted: what ε is counted for: ``"per km"``; of a budget with a delta, which divergence is charged.
        left_any_pair: the bound between any two secrets that ``left`` implies; None: no limit, or unknown.
        limit: the largest charge, in all or in a window; None: no limit.
        guarantee: what the limit guarantees, in words.
        with_delta: whether it is a budget with a delta: what is left is then no ε, but a part of the limit.
        releases_left: about how many more releases that cost as much it has room for; None: no limit, or this one was
            free.
    """

    name: str
    charged: float
    left: float | None
    counted: str
    left_any_pair: float | None
    limit: float | None
    guarantee: str
    with_delta: bool
    releases_left: int | None

    def left_text(self) -> str:
        """What is left, in words."""
        if self.with_delta and self.left is not None and self.limit:
            text = f"{share_text(self.left, self.limit)} of {self.guarantee}"
        else:
            left = "no limit" if self.left is None else f"{self.left:g}"
            text = format_epsilon(left, self.counted, self.left_any_pair)
        return text if self.releases_left is None else f"{text}; {more_releases(self.releases_left)}"


@dataclass(frozen=True)
class TargetResult:
    """The error of an adversary with another inference target, under the mobility model only.

    Attributes:
        name: of the adversary.
        expected_error: of their best guess, on average over all possible outputs.
        realised_error: of their best guess after this output.
    """

    name: str
    expected_error: float
    realised_error: float


@dataclass(frozen=True)
class Release(Generic[Output]):
    """One released output, its charges, and what adversaries can infer after it.

    Attributes:
        observable: the output: a label, or the coordinates of a point.
        epsilon: ε charged for it, in the problem's distinguishability.
        spent: ε charged so far, including this release.
        counted: what ε is counted for: ``"per km"``.
        any_pair: the largest log-ratio between any two secrets that ``epsilon`` allows; None if distances are infinite,
            or unknown to an older ledger.
        spent_any_pair: the same for ``spent``.
        left: the smallest remainder of the budgets in the problem's distinguishability; None: there is none.
        balances: every budget.
        source: ``"drawn"``; ``"kept"`` (a prediction that passed its test); ``"memoised"``; ``"away"`` (the last output
            again, from none of the frequent places); or, if the budget is spent,
            ``"repeated"`` or from the ``"belief"``.
        entropy: of the belief after it, in bits.
        expected_error: of the optimal attack on the *present* secret, on average over all possible outputs, under the
            mobility model.
        realised_error: the same after this output.
        targets: the same for each adversary with another inference target.
        mechanism: the digest of the mechanism that drew it; None if the secret was not used.
        gap: relative optimality gap of the mechanism's design; None if it was designed for another belief.
        time: unix seconds; None if the ledger counts steps.
        number: its number in the ledger, from 1.
        key: the caller's name for it.
        already_made: whether it was made by an earlier call with the same key, and read from the ledger.
        remarks: circumstances that the user should know.

    >>> ages = pg.Numbers([20, 30, 40])
    >>> problem = pg.Problem(pg.Prior.uniform(ages))
    >>> releases = pg.Releases(problem, pg.Mobility.still(ages), epsilon=0.1, budget=1.0)
    >>> release = releases.release(30, key="survey 2024")
    >>> release.epsilon, release.left, release.number
    (0.1, 0.9, 1)
    >>> releases.release(30, key="survey 2024").observable == release.observable
    True
    """

    observable: Output
    epsilon: float
    spent: float
    counted: str
    any_pair: float | None
    spent_any_pair: float | None
    left: float | None
    balances: tuple[Balance, ...]
    source: Source
    entropy: float | None
    expected_error: float | None
    realised_error: float | None
    targets: tuple[TargetResult, ...]
    mechanism: str | None
    gap: float | None
    time: float | None
    number: int
    key: str | None
    already_made: bool
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = asdict(self)
        if isinstance(self.observable, frozenset):
            values["observable"] = sorted(self.observable)
        return values

    def rows(self) -> list[tuple[str, str]]:
        """Names and values, as a table prints them."""
        rows = [("output", output_text(self.observable)), ("source", SOURCES[self.source])]
        rows.append(("epsilon charged", format_epsilon(f"{self.epsilon:g}", self.counted, self.any_pair)))
        rows.append(("epsilon spent", format_epsilon(f"{self.spent:g}", self.counted, self.spent_any_pair)))
        for balance in self.balances:
            rows.append((f"left: {balance.name}", balance.left_text()))
        if self.entropy is not None:
            rows.append(("entropy of the belief", f"{self.entropy:.3f} bits"))
        if self.expected_error is not None and self.realised_error is not None:
            attack, model = "optimal attack on the present secret", "under the mobility model"
            rows.append((f"{attack}, expected error", f"{self.expected_error:.4g}, {model}"))
            rows.append((f"{attack}, given this output", f"{self.realised_error:.4g}, {model}"))
        return [*rows, *(("remark", remark) for remark in self.remarks)]


def output_text(output: Label | Point) -> str:
    """An output as text: a label, or the coordinates of a point."""
    return ",".join(f"{each:.10g}" for each in output) if isinstance(output, tuple) else display_label(output)


def release_from_record(
    record: ReleaseRecord, balances: LedgerBalances, outputs: Sequence[Output], *, already_made: bool
) -> Release[Output]:
    """A release from its record in the ledger.

    Args:
        record: the record.
        balances: those of the ledger.
        outputs: all outputs, by their indices.
        already_made: whether an earlier call made it.
    """
    try:
        return _from_record(record, balances, outputs, already_made=already_made)
    except (KeyError, IndexError, TypeError, ValueError):
        raise InvalidFile(f"release {record.number} of the ledger has an invalid report: it was altered") from None


def _from_record(
    record: ReleaseRecord, balances: LedgerBalances, outputs: Sequence[Output], *, already_made: bool
) -> Release[Output]:
    report = record.report
    if record.output_index < 0:
        raise IndexError(record.output_index)
    left = cast("list[float | None]", report["left"])
    own = cast("list[bool]", report["own"])
    charges = [float(charge) for charge in record.charges]
    accounts = balances.terms_at(record.scope_event)
    first = accounts[0]
    pairs = zip(left, own, strict=True)
    limits = [most for most, in_problem_distance in pairs if in_problem_distance and most is not None]
    return Release(
        observable=outputs[record.output_index],
        epsilon=charges[0],
        spent=float(record.totals[0]),
        counted=first.scale.per(),
        any_pair=max_log_ratio(charges[0], first.max_distance),
        spent_any_pair=balances.max_log_ratio(first.name, record.totals[0], record.scope_event),
        left=min(limits, default=None),
        balances=tuple(
            Balance(
                name=each.name,
                charged=float(charge),
                left=most,
                counted=each.counted,
                left_any_pair=None if most is None else max_log_ratio(most, each.distance),
                limit=None if each.limit is None else float(each.limit),
                guarantee=each.limit_text,
                with_delta=each.approximate is not None,
                releases_left=releases_left(most, charge, report["source"]),
            )
            for each, charge, most in zip(accounts, record.charges, left, strict=True)
        ),
        source=cast("Source", report["source"]),
        entropy=cast("float | None", report["entropy"]),
        expected_error=cast("float | None", report["promised"]),
        realised_error=cast("float | None", report["realised"]),
        targets=tuple(
            TargetResult(each["name"], each["promised"], each["realised"])
            for each in cast("list[dict[str, Any]]", report["pursuits"])
        ),
        mechanism=record.mechanism,
        gap=cast("float | None", report["gap"]),
        time=record.time,
        number=record.number,
        key=record.key,
        already_made=already_made,
        remarks=tuple(cast("list[str]", report["remarks"])),
    )
