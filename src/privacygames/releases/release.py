"""A release: the answer, what it cost, and what it leaves."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from privacygames.errors import InvalidFile
from privacygames.problem import format_epsilon
from privacygames.releases.entries import Record
from privacygames.releases.ledger_state import LedgerBalances, any_pair
from privacygames.spaces import Label, Space

Source = Literal["drawn", "kept", "memoised", "repeated", "belief"]
WORDS: dict[str, str] = {
    "drawn": "drawn from a mechanism",
    "kept": "the prediction, which passed its test",
    "memoised": "the answer this place always gets",
    "repeated": "the last answer again: the budget is spent",
    "belief": "from the belief alone: the budget is spent",
}


@dataclass(frozen=True)
class Balance:
    """One budget after a release.

    Attributes:
        name: which.
        charged: what the release cost.
        left: what is left, in all or in the window that ends now; None: nothing limits it.
        counted: what these are counted for: ``"per km"``.
        left_any_pair: what is left allows between any two secrets; None: nothing limits it, or that is not known.
    """

    name: str
    charged: float
    left: float | None
    counted: str
    left_any_pair: float | None


@dataclass(frozen=True)
class TargetResult:
    """One who is after something else than where she is now; numbers hold under the declared chain only.

    Attributes:
        name: who.
        promised: how far off her best guess is on average over what could have been answered.
        realised: the same after this very answer.
    """

    name: str
    promised: float
    realised: float


@dataclass(frozen=True)
class Release:
    """What was released, and what it cost.

    Attributes:
        observable: the answer.
        epsilon: ε charged for it, in the problem's distinguishability.
        spent: ε charged so far, this release included.
        counted: what ε is counted for: ``"per km"``.
        any_pair: the largest log-ratio between any two secrets that ``epsilon`` allows, and
        spent_any_pair: that ``spent`` does; None where distances are infinite, or unknown to an older ledger.
        left: the least that any budget in the problem's distinguishability has left; None: there is none.
        balances: every budget.
        source: ``"drawn"``; ``"kept"`` (a prediction that passed its test); ``"memoised"``; or, the budget being spent,
            ``"repeated"`` or from the ``"belief"``.
        entropy: of the belief after it, in bits.
        promised: under the declared chain, how far off the best attack on *now* is on average over what could have
            been answered.
        realised: the same after this very answer.
        pursuits: the same for each who is after something else.
        mechanism: the digest of what answered; None where nothing looked at the secret.
        gap: how far from the least cost its design may be, relatively; None where it was designed for another belief.
        time: unix seconds; None where steps are counted.
        number: its place in the ledger, from 1.
        key: the caller's name for it.
        again: whether it was made before, with the same key, and is returned from the ledger.
        remarks: what should not go unsaid.
    """

    observable: Label
    epsilon: float
    spent: float
    counted: str
    any_pair: float | None
    spent_any_pair: float | None
    left: float | None
    balances: tuple[Balance, ...]
    source: Source
    entropy: float | None
    promised: float | None
    realised: float | None
    pursuits: tuple[TargetResult, ...]
    mechanism: str | None
    gap: float | None
    time: float | None
    number: int
    key: str | None
    again: bool
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        found = asdict(self)
        if isinstance(self.observable, frozenset):
            found["observable"] = sorted(self.observable)
        return found

    def rows(self) -> list[tuple[str, str]]:
        """Names and values, for people."""
        shown = [("answer", str(self.observable)), ("where from", WORDS[self.source])]
        shown.append(("epsilon charged", format_epsilon(f"{self.epsilon:g}", self.counted, self.any_pair)))
        shown.append(("epsilon spent", format_epsilon(f"{self.spent:g}", self.counted, self.spent_any_pair)))
        for each in self.balances:
            left = "no limit" if each.left is None else f"{each.left:g}"
            shown.append((f"left: {each.name}", format_epsilon(left, each.counted, each.left_any_pair)))
        if self.entropy is not None:
            shown.append(("what an observer does not know", f"{self.entropy:.3f} bits"))
        if self.promised is not None and self.realised is not None:
            shown.append(("best attack on now, on average", f"{self.promised:.4g} off, under the declared chain"))
            shown.append(("best attack on now, this answer", f"{self.realised:.4g} off, under the declared chain"))
        return [*shown, *(("remark", each) for each in self.remarks)]


def released(record: Record, state: LedgerBalances, observables: Space, *, again: bool) -> Release:
    """A release from what stands in the ledger."""
    try:
        return _released(record, state, observables, again=again)
    except (KeyError, IndexError, TypeError, ValueError):
        raise InvalidFile(f"release {record.number} of the ledger is not one of ours: it was altered") from None


def _released(record: Record, state: LedgerBalances, observables: Space, *, again: bool) -> Release:
    report = record.report
    if record.observable < 0:
        raise IndexError(record.observable)
    left = cast("list[float | None]", report["left"])
    own = cast("list[bool]", report["own"])
    charges = [float(each) for each in record.charges]
    terms = state.charged_in(record.change)
    total = terms[0]
    balances = [
        Balance(each.name, charge, most, each.scale.per(), None if most is None else any_pair(most, each.largest))
        for each, charge, most in zip(terms, charges, left, strict=True)
    ]
    limits = [each for each, mine in zip(left, own, strict=True) if mine and each is not None]
    return Release(
        observable=observables.labels[record.observable],
        epsilon=charges[0],
        spent=float(record.totals[0]),
        counted=total.scale.per(),
        any_pair=any_pair(charges[0], total.largest),
        spent_any_pair=state.any_pair(total.name, record.totals[0], record.change),
        left=min(limits, default=None),
        balances=tuple(balances),
        source=cast("Source", report["source"]),
        entropy=cast("float | None", report["entropy"]),
        promised=cast("float | None", report["promised"]),
        realised=cast("float | None", report["realised"]),
        pursuits=tuple(TargetResult(**each) for each in cast("list[dict[str, Any]]", report["pursuits"])),
        mechanism=record.mechanism,
        gap=cast("float | None", report["gap"]),
        time=record.time,
        number=record.number,
        key=record.key,
        again=again,
        remarks=tuple(cast("list[str]", report["remarks"])),
    )
