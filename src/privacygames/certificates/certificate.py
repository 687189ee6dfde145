"""The certificate: what is promised, what was verified, and how far from the best possible it is."""

from dataclasses import asdict, dataclass

from privacygames.arrays import FloatArray
from privacygames.certificates.statement import Statement, Subject
from privacygames.certificates.usefulness import MOST_KINDS, Usefulness, usefulness
from privacygames.certificates.verifier import Findings
from privacygames.problem import Bounds

NEGLIGIBLE = 1e-6
"""A gap is relative to the cost, or to this part of the dearest answer if the cost is smaller still."""


@dataclass(frozen=True)
class Provenance:
    """Where a mechanism comes from: for the record, not part of any promise.

    ``repair_cost`` is what turning the solver's numbers into exact weights added to the cost.
    """

    solver: str
    version: str
    repair_cost: float = 0.0


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
        gap: the relative difference between what this mechanism achieves and ``bound``.
        provenance: solver, version, cost of the repair.
        usefulness: how much an answer says, and whom answers never serve. Not a promise: a remark.
    """

    bounds: Bounds
    hashes: Subject
    findings: Findings
    cost: float
    bound: float | None
    gap: float | None
    provenance: Provenance
    usefulness: Usefulness

    @classmethod
    def of(cls, statement: Statement, findings: Findings, provenance: Provenance) -> "Certificate":
        """The certificate of a statement whose promises were found to hold."""
        bounds = statement.bounds
        cost = findings.cost(worst_case=bounds.worst_case)
        if bounds.reverse:
            gap = _gap(findings.optimum, findings.distortion, statement.distance)
        else:
            gap = _gap(cost, findings.optimum, statement.cost)
        useful = usefulness(statement)
        return cls(bounds, statement.subject, findings, cost, findings.optimum, gap, provenance, useful)

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(f"{name:<22}{value}" for name, value in self.rows())

    def rows(self) -> list[tuple[str, str]]:
        """The certificate in words: pairs of name and value."""
        bounds, found = self.bounds, self.findings
        rows = []
        if bounds.epsilon is not None:
            form = "times distance" if bounds.within is None else f"within distance {bounds.within:g}"
            rows.append(("promised epsilon", f"{bounds.epsilon:.6g} ({form})"))
            rows.append(("largest ratio", f"{found.largest_ratio:.9f} of what is allowed"))
        if bounds.distortion is not None:
            rows.append(("promised distortion", f"{bounds.distortion:.6g}"))
        rows.append(("verified distortion", f"{found.distortion:.6g}"))
        if bounds.cost_at_most is not None:
            rows.append(("promised cost", f"at most {bounds.cost_at_most:.6g}"))
        kind = "worst secret" if bounds.worst_case else "average"
        rows.append(("verified cost", f"{self.cost:.6g} ({kind})"))
        if self.provenance.repair_cost > NEGLIGIBLE * self.cost:
            rows.append(("of which repair", f"{self.provenance.repair_cost:.6g}"))
        if self.bound is not None and self.gap is not None:
            what = "most distortion" if bounds.reverse else "least cost"
            rows.append((f"{what} possible", f"{self.bound:.6g} (gap {self.gap:.1e})"))
        rows.append(("an answer carries", _carried(self.usefulness)))
        if self.usefulness.unserved:
            count, share = len(self.usefulness.unserved), self.usefulness.unserved_share
            rows.append(("never served best", f"{count} secrets that occur, {share:.1%} of the prior"))
        rows.append(("solver", self.provenance.solver))
        return rows


def _carried(useful: Usefulness) -> str:
    """How many bits, and how many kinds of rows."""
    if useful.constant:
        return "nothing: the answers do not depend on the secret"
    more = "at least " if useful.kinds == MOST_KINDS else ""
    return f"{useful.bits:.3g} bits; {more}{useful.kinds} kinds of secrets are told apart"


def _gap(upper: float | None, lower: float | None, measure: FloatArray) -> float | None:
    """(upper − lower) / upper, where upper is not negligible beside the largest entry of ``measure``."""
    if upper is None or lower is None:
        return None
    largest = float(measure.max()) or 1.0
    return max(upper - lower, 0.0) / max(upper, NEGLIGIBLE * largest)
