"""The guarantees of many releases together: three statements, in numbers."""

from dataclasses import asdict, dataclass, replace
from decimal import Decimal

import numpy as np

from privacygames.beliefs import Mobility
from privacygames.problem import Problem, Scale, distinguishability_scale
from privacygames.tracking import Observations, filtering_attack, smoothing_attack

UNDER_MODEL = "only under the declared mobility model"


@dataclass(frozen=True)
class Guarantees:
    """The three guarantees of docs/theory/sharing.md, after some releases.

    Attributes:
        charging: ``"releases"``: guarantee 1 holds unchanged; ``"places"``: with memoised outputs it holds only between
            traces with the same returns.
        scale: of the distinguishability that ε counts in.
        trace_epsilon: guarantee 1, for any correlation and any adversary: no sequence of outputs shifts the odds
            between two traces by more than exp(ε · their largest distance at any moment). A memoised secret is
            charged once. After a change of the problem, distances are those of the problem at that moment.
        trace_any_pair: the exponent itself between any two traces (∞ where secrets are infinitely far apart).
        moment_exponent: guarantee 2, for any correlation: the exponent for one moment in the worst case over all
            traces, distances included (∞ where secrets are infinitely far apart). None for memoised outputs.
        moment_epsilon_under_chain: guarantee 2 under the declared mobility model only: by how much the actual outputs
            shifted the odds at the worst moment, per unit of distance.
        moment_any_pair_under_chain: the exponent itself between any two secrets.
        error_now: guarantee 3 under the declared mobility model only: expected error of the optimal attack on the last
            moment.
        errors_past: the same on each moment so far, given all outputs.
        added_distance: for points with memoised outputs: distances between points count up to this much more, since
            each point is moved to the centre of its cell, or to the frequent place it is at; 0 otherwise.
        with_delta: what each budget with a delta guarantees, whatever is released until it is spent; with memoised
            outputs between traces with the same returns only.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> problem = pg.Problem(pg.Prior.uniform(city), cost="euclidean")
    >>> walk = pg.Mobility(city, np.full((3, 3), 1 / 3))
    >>> releases = pg.Releases(problem, walk, epsilon=0.5)
    >>> for _ in range(3):
    ...     _ = releases.release("cell-1")
    >>> guarantees = releases.guarantees()
    >>> guarantees.trace_epsilon, guarantees.moment_exponent
    (1.5, 3.0)
    """

    charging: str
    scale: Scale
    trace_epsilon: float
    trace_any_pair: float
    moment_exponent: float | None
    moment_epsilon_under_chain: float | None
    moment_any_pair_under_chain: float | None
    error_now: float | None
    errors_past: tuple[float, ...] | None
    added_distance: float = 0.0
    with_delta: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = asdict(self)
        return {"counts": values.pop("charging"), **values, "counted": self.scale.per()}

    def __str__(self) -> str:
        trace = self.scale.epsilon(f"{self.trace_epsilon:g}", self.trace_any_pair)
        statements = {
            "releases": f"whole trace, any correlation, any adversary: epsilon {trace}",
            "places": f"memoised: epsilon {trace}, between traces with the same returns only, each secret charged "
            "once; the returns themselves show",
        }
        lines = [statements[self.charging]]
        if self.added_distance:
            added = self.scale.amount(f"{self.added_distance:.4g}")
            lines.append(
                f"between points: each distance counts up to {added} more, for points are moved to their place"
            )
        returns = "" if self.charging == "releases" else ", with the same returns"
        lines += [f"whole trace{returns}: {each}" for each in self.with_delta]
        if self.moment_exponent is not None:
            lines.append(f"one moment, any correlation: odds shift by exp({self.moment_exponent:.4g}) at most")
        if self.moment_epsilon_under_chain is not None:
            shift = self.scale.epsilon(f"{self.moment_epsilon_under_chain:.4g}", self.moment_any_pair_under_chain)
            lines.append(f"one moment, {UNDER_MODEL}: epsilon {shift}, for the outputs released")
        if self.error_now is not None and self.errors_past is not None:
            past = np.mean(self.errors_past)
            lines.append(f"best attack on the present secret, {UNDER_MODEL}: expected error {self.error_now:.4g}")
            lines.append(f"best attack on the past, {UNDER_MODEL}: expected error {past:.4g} on average")
        return "\n".join(lines)


@dataclass(frozen=True)
class EarlierReleases:
    """The releases of a ledger about earlier problems.

    Attributes:
        memoised_before: whether memoised outputs were released before the present problem.
        memoised_now: whether the present policy is memoised.
        max_distance: the largest distinguishability that earlier releases were charged in; ∞ if it is not known.
    """

    memoised_before: bool
    memoised_now: bool
    max_distance: float


def guarantees_after(
    problem: Problem, mobility: Mobility, observations: Observations | None, spent: Decimal, earlier: EarlierReleases
) -> Guarantees:
    """The guarantees after some outputs.

    Args:
        problem: secrets, distances and the prior before the first release.
        mobility: the declared mobility model.
        observations: the outputs; None leaves out the guarantees under the mobility model.
        spent: ε charged in the problem's own distinguishability.
        earlier: the releases about earlier problems.
    """
    max_distance, scale = float(problem.distinguishability.max()), distinguishability_scale(problem)
    trace = trace_guarantees(scale, max_distance, spent, earlier, still=mobility.is_still)
    if observations is None:
        return trace
    smoothing = smoothing_attack(problem, mobility, observations)
    filtering = filtering_attack(problem, mobility, observations)
    return replace(
        trace,
        moment_epsilon_under_chain=float(smoothing.odds_shift(problem.distinguishability).max()),
        moment_any_pair_under_chain=float(smoothing.odds_shift(1.0 - np.eye(len(problem.space))).max()),
        error_now=float(filtering.errors[-1]),
        errors_past=tuple(float(error) for error in smoothing.errors),
    )


def trace_guarantees(
    scale: Scale, max_distance: float, spent: Decimal, earlier: EarlierReleases, *, still: bool
) -> Guarantees:
    """The guarantees that no mobility model is needed for.

    Args:
        scale: of the distinguishability that ε counts in.
        max_distance: the largest distinguishability between any two secrets.
        spent: ε charged in it.
        earlier: the releases about earlier problems.
        still: whether the secret is known not to change.
    """
    epsilon = float(spent)
    exponent = epsilon * max(max_distance, earlier.max_distance) if epsilon else 0.0
    returns_show = earlier.memoised_before or (earlier.memoised_now and not still)
    return Guarantees(
        charging="places" if earlier.memoised_before or earlier.memoised_now else "releases",
        scale=scale,
        trace_epsilon=epsilon,
        trace_any_pair=exponent,
        moment_exponent=None if returns_show else exponent,
        moment_epsilon_under_chain=None,
        moment_any_pair_under_chain=None,
        error_now=None,
        errors_past=None,
    )
