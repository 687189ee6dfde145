"""The certificate of a mechanism for points: what is guaranteed, what was verified, and the gap to the optimum."""

from dataclasses import asdict, dataclass

import numpy as np

from privacygames.certificates import AdversaryResult, Provenance
from privacygames.display import Displayed, ShownTable
from privacygames.points.verification import PointVerification
from privacygames.problem import Bounds, format_epsilon

BETWEEN = "between any two points"
"""The pairs that epsilon is about."""


@dataclass(frozen=True)
class PointCertificate(Displayed):
    """Guarantees for points that were checked on the very integers that are sampled.

    Attributes:
        bounds: what is guaranteed; epsilon is per unit of distance, between any two points.
        verification: what was verified, rounded to the safe side.
        bound: no mechanism with these guarantees costs less, of whatever form; where the cost is limited, none has more
            distortion privacy. None where that was not computed.
        unit: the unit of distances, such as ``"km"``.
        resolution: coordinates are rounded by at most this much, which adds ε times twice as much to the exponent.
        any_pair: largest log-ratio between any two points, at most; ∞ where an output excludes a point.
        max_distortions: maximum distortion of any mechanism against each adversary of the bounds, in their order.
        provenance: solver and version.
        constant: whether outputs are independent of the secret.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> certificate = pg.design(problem, epsilon=1.0).certificate
    >>> certificate.bounds.epsilon, certificate.bound <= certificate.cost
    (1.0, True)
    """

    bounds: Bounds
    verification: PointVerification
    bound: float | None
    unit: str
    resolution: float
    any_pair: float
    max_distortions: tuple[float, ...]
    provenance: Provenance
    constant: bool

    @property
    def cost(self) -> float:
        """Upper bound on the cost: the expected one, or with ``worst_case`` the largest at any point."""
        return self.verification.cost(worst_case=self.bounds.worst_case)

    @property
    def achieved(self) -> float:
        """The distortion against the first adversary, which is maximised where the cost is limited."""
        return self.verification.adversary_distortions[0] if self.bounds.distortion else self.verification.distortion

    @property
    def gap(self) -> float | None:
        """How far the mechanism may be from the best of any form, as a share of the larger value; None if not known."""
        if self.bound is None:
            return None
        upper, lower = (self.bound, self.achieved) if self.bounds.maximises_distortion else (self.cost, self.bound)
        return max(upper - lower, 0.0) / upper if upper > 0 else 0.0

    @property
    def adversary_results(self) -> tuple[AdversaryResult, ...]:
        """The guaranteed, realised and maximum distortion against each adversary of the bounds."""
        realised = self.verification.adversary_distortions
        return tuple(
            AdversaryResult(guarantee.adversary.name, guarantee.distortion, value, maximum)
            for guarantee, value, maximum in zip(self.bounds.distortion, realised, self.max_distortions, strict=True)
        )

    @property
    def per(self) -> str:
        """What epsilon is counted for: ``"per km between any two points"``."""
        return f"{per_unit(self.unit)} {BETWEEN}"

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "bounds": self.bounds.to_dict(),
            "verification": asdict(self.verification),
            "cost": self.cost,
            "bound": self.bound,
            "gap": self.gap,
            "unit": self.unit,
            "resolution": self.resolution,
            "any_pair": self.any_pair,
            "counted": self.per,
            "constant": self.constant,
            "against": [result.to_dict() for result in self.adversary_results],
            "provenance": asdict(self.provenance),
        }

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as pairs of name and value."""
        bounds, verified = self.bounds, self.verification
        rows: list[tuple[str, str]] = []
        if bounds.epsilon is not None:
            rows += epsilon_rows(bounds.epsilon, self.unit, self.resolution, self.any_pair)
        for result in self.adversary_results:
            if bounds.named_adversaries:
                wanted = "as much as possible" if result.guaranteed is None else f"{result.guaranteed:.6g} guaranteed"
                values = f"{result.realised:.6g} ({wanted}, {result.maximum:.6g} at most)"
                rows.append((f"against {result.adversary}", values))
            elif result.guaranteed is not None:
                rows.append(("guaranteed distortion", f"{result.guaranteed:.6g}"))
        rows.append(("verified distortion", f"{verified.distortion:.6g}, whichever point is guessed"))
        if bounds.cost_at_most is not None:
            rows.append(("guaranteed cost", f"at most {bounds.cost_at_most:.6g}"))
        kind = "largest at any point" if bounds.worst_case else "expected"
        rows.append(("verified cost", f"{self.cost:.6g} ({kind})"))
        if bounds.worst_cost_at_most is not None and verified.worst_cost is not None:
            limit = f"at most {bounds.worst_cost_at_most:.6g} guaranteed"
            rows.append(("largest cost", f"{verified.worst_cost:.6g} ({limit})"))
        if self.bound is not None and self.gap is not None:
            name = "upper bound on the distortion" if bounds.maximises_distortion else "lower bound on the cost"
            rows.append((name, f"{self.bound:.6g}, of any mechanism whatever (gap {self.gap:.2%})"))
        rows.append(("solver", self.provenance.solver))
        return rows

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("What is guaranteed between any two points", ("", ""), self.rows(), texts=(1,))

    def __str__(self) -> str:
        rows = self.rows()
        width = max(24, *(len(name) + 2 for name, _ in rows))
        return "\n".join(f"{name:<{width}}{value}" for name, value in rows)


def per_unit(unit: str) -> str:
    """What epsilon is counted for, given the unit of distances: ``"per km"``, ``"per unit of distance"``."""
    single = unit.removesuffix("s") if len(unit) > 2 else unit
    return f"per {single or 'unit of distance'}"


def epsilon_rows(epsilon: float, unit: str, resolution: float, any_pair: float) -> list[tuple[str, str]]:
    """The guarantee of epsilon as pairs of name and value.

    Args:
        epsilon: the guarantee, per unit of distance.
        unit: the unit of distances.
        resolution: how far coordinates are rounded, at most.
        any_pair: largest log-ratio between any two points, at most.
    """
    rows = [("guaranteed epsilon", format_epsilon(f"{epsilon:.6g}", f"{per_unit(unit)} {BETWEEN}"))]
    if np.isfinite(any_pair):
        rows.append(("largest log-ratio", f"{any_pair:.6g}, however far apart"))
    return [*rows, ("coordinates rounded by", f"at most {resolution:.2g} {unit}".rstrip())]
