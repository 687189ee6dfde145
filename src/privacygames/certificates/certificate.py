"""The certificate: what is promised, what was verified, and how far from the best possible it is."""

from dataclasses import asdict, dataclass, replace

from privacygames.certificates.loss_scale import NEGLIGIBLE, negligible_loss
from privacygames.certificates.realised import largest_log_ratio
from privacygames.certificates.statement import ContentHashes, Statement
from privacygames.certificates.usefulness import MOST_KINDS, Usefulness, usefulness
from privacygames.certificates.verifier import Verification
from privacygames.problem import Bounds, Scale, mixture_groups


@dataclass(frozen=True)
class Provenance:
    """Where a mechanism comes from: for the record, not part of any promise.

    ``repair_cost`` is what turning the solver's numbers into exact weights added to the cost.
    """

    solver: str
    version: str
    repair_cost: float = 0.0


@dataclass(frozen=True)
class AdversaryResult:
    """Where an adversary stands.

    Attributes:
        adversary: her name.
        promised: the privacy promised against her; None where nothing is, or it was maximised.
        realised: what her best guesses err by.
        possible: what they err by without an answer: nothing leaves her more.
    """

    adversary: str
    promised: float | None
    realised: float
    possible: float


@dataclass(frozen=True)
class Certificate:
    """Promises that were checked on the very integers that are sampled.

    Attributes:
        bounds: what is promised.
        hashes: SHA-256 of the prior, cost, distance and distinguishability the promise is about.
        findings: what the verifier found, rounded to the safe side.
        cost: the cost of this mechanism, at most (average, or of the worst secret if that was asked for).
        bound: no mechanism with these promises costs less; when the cost is what is limited, none has more
            distortion privacy. None if no evidence is attached.
        gap: the difference between what this mechanism achieves and ``bound``, relative to the larger of the two; or
            to a millionth of what is at stake (what revealing nothing costs, at most) where they are smaller than that,
            or to 10⁸ units of weight on a moderate cost, which is as exactly as a mechanism can be stored.
        provenance: solver, version, cost of the repair.
        usefulness: how much an answer says, and whom answers never serve. Not a promise: a remark.
        scale: of the distinguishability, in units of which ε is counted.
        any_pair: the largest log-ratio between any two secrets, however far apart; ∞ where an output rules one out.
        blind: where promises are against several adversaries, the most that is possible against each.
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
    blind: tuple[float, ...] = ()

    @classmethod
    def of(
        cls, statement: Statement, verification: Verification, provenance: Provenance, scale: Scale
    ) -> "Certificate":
        """The certificate of a statement whose promises were found to hold; ``scale`` is its distinguishability's."""
        bounds = statement.bounds
        cost = verification.cost(worst_case=bounds.worst_case)
        least = negligible_loss(bounds, statement.cost, statement.prior, statement.adversaries, statement.bits)
        if bounds.maximises_distortion:
            gap = _gap(verification.optimum, achieved(bounds, verification), least)
        else:
            gap = _gap(cost, verification.optimum, least)
        useful = usefulness(statement)
        blind = tuple(adversary.max_distortion for adversary in statement.adversaries) if bounds.against else ()
        return cls(
            bounds=bounds,
            hashes=statement.content_hashes,
            verification=verification,
            cost=cost,
            bound=verification.optimum,
            gap=gap,
            provenance=provenance,
            usefulness=useful,
            scale=scale,
            any_pair=largest_log_ratio(statement.weights),
            blind=blind,
        )

    @property
    def achieved(self) -> float:
        """The privacy that is maximised where the cost is limited: against the first adversary, or the only one."""
        return achieved(self.bounds, self.verification)

    @property
    def adversary_results(self) -> tuple["AdversaryResult", ...]:
        """Where each of several adversaries stands: what is promised, verified and possible against her."""
        against = zip(self.bounds.against, self.verification.against, self.blind, strict=True)
        return tuple(
            AdversaryResult(each.adversary.name, each.distortion, found, most) for each, found, most in against
        )

    @property
    def mixtures(self) -> list[tuple[list[str], float]]:
        """Sets of adversaries who want the same, by name, and what is promised for *every* mixture of their beliefs.

        Privacy is concave in the belief, so a mixture is left at least the same mixture of promises, and never less
        than the least of them (docs/theory/adversaries.md).
        """
        promised = {each.adversary: each.distortion for each in self.bounds.against if each.distortion is not None}
        together = ([(each.name, promised[each]) for each in hull] for hull in mixture_groups(list(promised)))
        return [([name for name, _ in hull], min(least for _, least in hull)) for hull in together]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        plain = asdict(replace(self, bounds=Bounds(distortion=0.0)))
        plain["counted"] = self.scale.per(self.bounds.within)
        plain |= {"bounds": self.bounds.to_dict(), "against": [asdict(stand) for stand in self.adversary_results]}
        mixtures = [{"adversaries": names, "distortion": least} for names, least in self.mixtures]
        return plain | {"mixtures": mixtures}

    def __str__(self) -> str:
        rows = self.rows()
        width = max(22, *(len(name) + 2 for name, _ in rows))
        return "\n".join(f"{name:<{width}}{value}" for name, value in rows)

    def rows(self) -> list[tuple[str, str]]:
        """The certificate in words: pairs of name and value."""
        bounds, found = self.bounds, self.verification
        rows = []
        if bounds.epsilon is not None:
            promised = self.scale.epsilon(f"{bounds.epsilon:.6g}", self.any_pair, within=bounds.within)
            rows.append(("promised epsilon", promised))
            rows.append(("largest ratio", f"{found.largest_ratio:.9f} of what is allowed"))
        if bounds.distortion is not None:
            rows.append(("promised distortion", f"{bounds.distortion:.6g}"))
        if bounds.against:
            rows += self._rows_against()
        else:
            rows.append(("verified distortion", f"{found.distortion:.6g}"))
        if bounds.cost_at_most is not None:
            rows.append(("promised cost", f"at most {bounds.cost_at_most:.6g}"))
        kind = "worst secret" if bounds.worst_case else "average"
        rows.append(("verified cost", f"{self.cost:.6g} ({kind})"))
        if bounds.worst_cost_at_most is not None:
            limit = f"at most {bounds.worst_cost_at_most:.6g} promised"
            rows.append(("worst secret's cost", f"{found.worst_cost:.6g} ({limit})"))
        if self.provenance.repair_cost > NEGLIGIBLE * self.cost:
            rows.append(("of which repair", f"{self.provenance.repair_cost:.6g}"))
        if self.bound is not None and self.gap is not None:
            what = "most distortion" if bounds.maximises_distortion else "least cost"
            rows.append((f"{what} possible", f"{self.bound:.6g} (gap {self.gap:.1e})"))
        rows.append(("an answer carries", _carried(self.usefulness)))
        if self.usefulness.unserved:
            count, share = len(self.usefulness.unserved), self.usefulness.unserved_share
            rows.append(("never served best", f"{count} secrets that occur, {share:.1%} of the prior"))
        rows.append(("solver", self.provenance.solver))
        return rows

    def _rows_against(self) -> list[tuple[str, str]]:
        """What is promised, verified and possible against each adversary; and what follows for mixtures."""
        rows = []
        for stand in self.adversary_results:
            asked = "as much as possible" if stand.promised is None else f"{stand.promised:.6g} promised"
            rows.append((f"against {stand.adversary}", f"{stand.realised:.6g} ({asked}, {stand.possible:.6g} at most)"))
        for names, least in self.mixtures:
            rows.append(("for every mixture", f"of the beliefs of {', '.join(names)}: {least:.6g} or more"))
        return rows


def achieved(bounds: Bounds, verification: Verification) -> float:
    """The privacy that is maximised where the cost is limited."""
    return verification.against[0] if bounds.against else verification.distortion


def _carried(useful: Usefulness) -> str:
    """How many bits, and how many kinds of rows."""
    if useful.constant:
        return "nothing: the answers do not depend on the secret"
    more = "at least " if useful.kinds == MOST_KINDS else ""
    return f"{useful.bits:.3g} bits; {more}{useful.kinds} kinds of secrets are told apart"


def _gap(upper: float | None, lower: float | None, least: float) -> float | None:
    """(upper − lower) / upper, or relative to ``least`` where upper is smaller."""
    if upper is None or lower is None:
        return None
    return max(upper - lower, 0.0) / max(upper, least)
