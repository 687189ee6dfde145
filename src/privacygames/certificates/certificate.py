"""The certificate: the guarantees of a mechanism, what was verified, and the gap to the optimum."""

from dataclasses import asdict, dataclass

from privacygames.certificates.loss_scale import NEGLIGIBLE, negligible_loss
from privacygames.certificates.realised import largest_log_ratio
from privacygames.certificates.statement import ContentHashes, Statement
from privacygames.certificates.usefulness import MOST_KINDS, Usefulness, usefulness
from privacygames.certificates.verifier import Verification
from privacygames.display import Displayed, ShownTable
from privacygames.problem import BETWEEN_COORDINATES, Bounds, Scale, mixture_groups


@dataclass(frozen=True)
class Provenance:
    """Where a mechanism comes from; not part of any guarantee.

    ``repair_cost`` is the cost added by turning the solver's numbers into exact weights.
    """

    solver: str
    version: str
    repair_cost: float = 0.0


@dataclass(frozen=True)
class AdversaryResult:
    """The distortion privacy of a mechanism against one adversary.

    Attributes:
        adversary: the adversary's name.
        guaranteed: the distortion guaranteed against them; None where there is no guarantee, or it was maximised.
        realised: the expected error of their optimal attack.
        maximum: the expected error of their best guess without an output, which no mechanism exceeds.
    """

    adversary: str
    guaranteed: float | None
    realised: float
    maximum: float

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "adversary": self.adversary,
            "promised": self.guaranteed,
            "realised": self.realised,
            "possible": self.maximum,
        }


@dataclass(frozen=True)
class Certificate(Displayed):
    """Guarantees that were checked on the very integers that are sampled.

    Attributes:
        bounds: what is guaranteed.
        hashes: SHA-256 of the prior, cost, distance and distinguishability the guarantees are about.
        verification: what was verified, rounded to the safe side.
        cost: upper bound on the cost of this mechanism: the average, or with ``worst_case`` that of the worst secret.
        bound: lower bound on the cost of every mechanism with these guarantees; where the cost is limited, upper bound
            on their distortion privacy. None without dual values.
        gap: the difference between the value of this mechanism and ``bound``, relative to the larger of the two. Where
            both are smaller, relative to a millionth of the stake (the largest cost of revealing nothing), or to 10⁸
            units of weight on a moderate cost, the accuracy to which a mechanism can be stored.
        provenance: solver, version, cost of the repair.
        usefulness: the information in an output, and the secrets that never get their best output. Not guaranteed.
        scale: the scale of the distinguishability, in whose units ε is counted.
        any_pair: largest log-ratio between any two secrets, at any distance; ∞ where an output excludes a secret.
        max_distortions: maximum distortion of any mechanism against each adversary of the bounds, in their order.
        cells: whether the secrets are the cells of a grid: ε holds between cells, and between coordinates none does.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(3))))
    >>> certificate = pg.design(problem, epsilon=1.0).certificate
    >>> certificate.verification.largest_ratio <= 1
    True
    """

    bounds: Bounds
    hashes: ContentHashes
    verification: Verification
    cost: float
    bound: float | None
    gap: float | None
    provenance: Provenance
    usefulness: Usefulness
    scale: Scale
    any_pair: float
    max_distortions: tuple[float, ...] = ()
    cells: bool = False

    @classmethod
    def of(
        cls,
        statement: Statement,
        verification: Verification,
        provenance: Provenance,
        scale: Scale,
        *,
        cells: bool = False,
    ) -> "Certificate":
        """The certificate of a verified statement.

        Args:
            statement: the statement.
            verification: the result of its verification.
            provenance: solver, version, cost of the repair.
            scale: the scale of its distinguishability.
            cells: whether its secrets are the cells of a grid.
        """
        bounds = statement.bounds
        cost = verification.cost(worst_case=bounds.worst_case)
        negligible = negligible_loss(bounds, statement.cost, statement.prior, statement.adversaries, statement.bits)
        if bounds.maximises_distortion:
            gap = _gap(verification.optimum, achieved(bounds, verification), negligible)
        else:
            gap = _gap(cost, verification.optimum, negligible)
        return cls(
            bounds=bounds,
            hashes=statement.content_hashes,
            verification=verification,
            cost=cost,
            bound=verification.optimum,
            gap=gap,
            provenance=provenance,
            usefulness=usefulness(statement),
            scale=scale,
            any_pair=largest_log_ratio(statement.weights),
            max_distortions=tuple(adversary.max_distortion for adversary in statement.adversaries),
            cells=cells,
        )

    @property
    def achieved(self) -> float:
        """The distortion privacy against the first adversary, which is maximised where the cost is limited."""
        return achieved(self.bounds, self.verification)

    @property
    def adversary_results(self) -> tuple["AdversaryResult", ...]:
        """The guaranteed, realised and maximum distortion against each adversary of the bounds."""
        realised, maxima = self.verification.adversary_distortions, self.max_distortions
        return tuple(
            AdversaryResult(guarantee.adversary.name, guarantee.distortion, value, maximum)
            for guarantee, value, maximum in zip(self.bounds.distortion, realised, maxima, strict=True)
        )

    @property
    def mixtures(self) -> list[tuple[list[str], float]]:
        """Groups of adversaries with equal errors, and the distortion that holds for *every* mixture of their beliefs.

        Distortion privacy is concave in the belief, so a mixture of beliefs has at least the same mixture of the
        guarantees, and never less than the smallest of them (docs/theory/adversaries.md).
        """
        guaranteed = {
            guarantee.adversary: guarantee.distortion
            for guarantee in self.bounds.distortion
            if guarantee.distortion is not None
        }
        return [
            ([adversary.name for adversary in group], min(guaranteed[adversary] for adversary in group))
            for group in mixture_groups(list(guaranteed))
        ]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        verification = asdict(self.verification)
        realised = verification.pop("adversary_distortions")
        named = bool(self.bounds.named_adversaries)
        return {
            "bounds": self.bounds.to_dict(),
            "hashes": asdict(self.hashes),
            "verification": {**verification, "against": realised if named else ()},
            "cost": self.cost,
            "bound": self.bound,
            "gap": self.gap,
            "provenance": asdict(self.provenance),
            "usefulness": asdict(self.usefulness),
            "scale": asdict(self.scale),
            "any_pair": self.any_pair,
            "blind": self.max_distortions if named else (),
            "counted": self.scale.per(self.bounds.within),
            "against": [result.to_dict() for result in self.adversary_results] if named else [],
            "mixtures": [{"adversaries": names, "distortion": distortion} for names, distortion in self.mixtures],
        }

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("What is guaranteed", ("", ""), self.rows(), texts=(1,))

    def __str__(self) -> str:
        rows = self.rows()
        width = max(22, *(len(name) + 2 for name, _ in rows))
        return "\n".join(f"{name:<{width}}{value}" for name, value in rows)

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as pairs of name and value."""
        bounds, verified = self.bounds, self.verification
        rows = []
        if bounds.epsilon is not None:
            epsilon = self.scale.epsilon(f"{bounds.epsilon:.6g}", self.any_pair, within=bounds.within)
            rows.append(("guaranteed epsilon", epsilon))
            rows += [BETWEEN_COORDINATES] if self.cells and self.any_pair > 0 else []
            rows.append(("largest ratio", f"{verified.largest_ratio:.9f} of what is allowed"))
        if bounds.named_adversaries:
            rows += self._adversary_rows()
        else:
            if bounds.problem_distortion is not None:
                rows.append(("guaranteed distortion", f"{bounds.problem_distortion:.6g}"))
            rows.append(("verified distortion", f"{verified.distortion:.6g}"))
        if bounds.cost_at_most is not None:
            rows.append(("guaranteed cost", f"at most {bounds.cost_at_most:.6g}"))
        kind = "worst secret" if bounds.worst_case else "average"
        rows.append(("verified cost", f"{self.cost:.6g} ({kind})"))
        if bounds.worst_cost_at_most is not None:
            limit = f"at most {bounds.worst_cost_at_most:.6g} guaranteed"
            rows.append(("worst secret's cost", f"{verified.worst_cost:.6g} ({limit})"))
        if self.provenance.repair_cost > NEGLIGIBLE * self.cost:
            rows.append(("of which repair", f"{self.provenance.repair_cost:.6g}"))
        if self.bound is not None and self.gap is not None:
            name = "upper bound on the distortion" if bounds.maximises_distortion else "lower bound on the cost"
            rows.append((name, f"{self.bound:.6g} (gap {self.gap:.1e})"))
        rows.append(("an output carries", _format_information(self.usefulness)))
        if self.usefulness.unserved:
            count, share = len(self.usefulness.unserved), self.usefulness.unserved_share
            rows.append(("never get best output", f"{count} secrets that occur, {share:.1%} of the prior"))
        rows.append(("solver", self.provenance.solver))
        return rows

    def _adversary_rows(self) -> list[tuple[str, str]]:
        """Rows for the guaranteed, realised and maximum distortion against each adversary, and for mixtures of them."""
        rows = []
        for result in self.adversary_results:
            guaranteed = "as much as possible" if result.guaranteed is None else f"{result.guaranteed:.6g} guaranteed"
            values = f"{result.realised:.6g} ({guaranteed}, {result.maximum:.6g} at most)"
            rows.append((f"against {result.adversary}", values))
        for names, distortion in self.mixtures:
            rows.append(("for every mixture", f"of the beliefs of {', '.join(names)}: {distortion:.6g} or more"))
        return rows


def achieved(bounds: Bounds, verification: Verification) -> float:
    """The distortion privacy against the first adversary, which is maximised where the cost is limited."""
    if bounds.maximises_distortion:
        return verification.adversary_distortions[0]
    return verification.distortion


def _format_information(useful: Usefulness) -> str:
    """The bits that an output carries about the secret, and how many distributions of outputs differ."""
    if useful.constant:
        return "nothing: the outputs do not depend on the secret"
    at_least = "at least " if useful.kinds == MOST_KINDS else ""
    return f"{useful.bits:.3g} bits; {at_least}{useful.kinds} distinguishable kinds of secrets"


def _gap(upper: float | None, lower: float | None, negligible: float) -> float | None:
    """The difference between an upper and a lower bound, relative to the larger of the upper one and ``negligible``."""
    if upper is None or lower is None:
        return None
    return max(upper - lower, 0.0) / max(upper, negligible)
