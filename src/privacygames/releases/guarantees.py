"""What may be claimed of many releases: three statements, in numbers, and nothing else."""

from dataclasses import asdict, dataclass
from decimal import Decimal

import numpy as np

from privacygames.beliefs import Mobility
from privacygames.problem import Problem, Scale, distinguishability_scale
from privacygames.tracking import Observations, filtered, smoothed


@dataclass(frozen=True)
class Guarantees:
    """The three claims of docs/theory/sharing.md.

    Attributes:
        counts: ``"releases"``: claim 1 as it stands; ``"places"``: there are memoised answers, so it holds between
            traces with the same returns only.
        scale: of the distinguishability, in units of which ε is counted.
        any_pair: what ``trace`` allows between any two traces, however far apart (∞ where secrets are).
        trace: claim 1, whatever the correlation and the adversary: no sequence of answers shifts the odds between two
            traces by more than exp(trace · the largest distance between them at any moment). A memoised place counts
            once. Over a change of the problem, distances are those of the problem at that moment.
        moment: claim 2, whatever the correlation: the same for one moment, in the worst case over all traces; the
            exponent itself, distances included (∞ where secrets are infinitely far apart). None for memoised answers.
        moment_under_chain: claim 2 under the declared chain, and only there: by how much the answers that were given
            shifted the odds at the worst moment, per unit of distance.
        moment_any_pair: the exponent itself between any two secrets: no distance is in it.
        now: claim 3 under the declared chain, and only there: how far off the best attack on the last moment is,
        past: and on each moment so far, knowing everything.
    """

    counts: str
    scale: Scale
    any_pair: float
    trace: float
    moment: float | None
    moment_under_chain: float | None
    moment_any_pair: float | None
    now: float | None
    past: tuple[float, ...] | None

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self) | {"counted": self.scale.per()}

    def __str__(self) -> str:
        trace = self.scale.epsilon(f"{self.trace:g}", self.any_pair)
        said = {
            "releases": f"whole trace, any correlation, any adversary: epsilon {trace}",
            "places": f"memoised: epsilon {trace}, between traces with the same returns only, each place counted "
            "once; the returns themselves show",
        }
        lines = [said[self.counts]]
        if self.moment is not None:
            lines.append(f"one moment, any correlation: odds shift by exp({self.moment:.4g}) at most")
        if self.moment_under_chain is not None:
            shift = self.scale.epsilon(f"{self.moment_under_chain:.4g}", self.moment_any_pair)
            lines.append(f"one moment, only under the declared chain: epsilon {shift}, as answered")
        if self.now is not None and self.past is not None:
            lines.append(f"best attack on now, only under the declared chain: {self.now:.4g} off")
            lines.append(
                f"best attack on the past, only under the declared chain: {np.mean(self.past):.4g} off on average"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Earlier:
    """What a ledger holds besides releases about the present problem.

    Attributes:
        places: whether memoised answers were released before the present problem.
        now_places: whether the present policy is memoised.
        largest: the largest distinguishability that earlier releases were charged in; ∞ where it is not known.
    """

    places: bool
    now_places: bool
    largest: float


def guarantees_of(
    problem: Problem, mobility: Mobility, observations: Observations | None, spent: Decimal, earlier: Earlier
) -> Guarantees:
    """The claims after some answers; without observations (None) those under the chain are left out."""
    farthest = max(float(problem.distinguishability.max()), earlier.largest)
    trace = float(spent)
    counts = "places" if earlier.places or earlier.now_places else "releases"
    same_returns = earlier.places or (earlier.now_places and not mobility.is_still)
    worst = None if same_returns else trace * farthest if trace else 0.0
    scale, any_pair = distinguishability_scale(problem), trace * farthest if trace else 0.0
    if observations is None:
        return Guarantees(counts, scale, any_pair, trace, worst, None, None, None, None)
    smooth = smoothed(problem, mobility, observations)
    now = filtered(problem, mobility, observations)
    return Guarantees(
        counts=counts,
        scale=scale,
        any_pair=any_pair,
        trace=trace,
        moment=worst,
        moment_under_chain=float(smooth.shift(problem.distinguishability).max()),
        moment_any_pair=float(smooth.shift(1.0 - np.eye(len(problem.space))).max()),
        now=float(now.errors[-1]),
        past=tuple(float(each) for each in smooth.errors),
    )
