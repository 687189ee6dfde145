"""``privacygames ledger``: show what was released and charged, verify the sums, and plan what a budget buys."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.budget_text import parse_budget
from privacygames.cli.output import Json, print_json, print_rows
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.releases import LedgerBalances, ReleaseRecord, VerifiedLedger
    from privacygames.tables import LedgerState, ReleaseLedger

LAST = 20
"""Number of releases shown, by default."""

TOGETHER = "for all together"
"""What a budget with a delta counts ε for."""

NOT_COVERED = "not covered"
"""What a budget with a delta says of any two secrets, however far apart."""

OLDER_COPY = "To detect an older copy"


def show(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    last: Annotated[int, typer.Option(min=1, help="Number of releases to show, counted from the last.")] = LAST,
    as_json: Json = False,
) -> None:
    """Show the budgets of a ledger and its last releases. A ledger contains no true secret."""
    from privacygames.problem import ANY_PAIR
    from privacygames.releases import Ledger
    from privacygames.tables import ReleaseLedger, is_release_ledger

    if is_release_ledger(file):
        _show_tables(file, ReleaseLedger(file), last, as_json=as_json)
        return
    with Ledger.open_existing(file) as ledger:
        accounts, records, state = ledger.accounts(), ledger.records(), ledger.balances()
    shown = records[-last:]
    if as_json:
        print_json({"accounts": accounts, "releases": [_plain(each, state) for each in shown], "total": len(records)})
        return
    print_rows(
        f"{file.name}: releases made: {len(records)}",
        [account_row(each) for each in accounts],
        ("budget", "epsilon is counted", "spent in all", ANY_PAIR, "limit", "left"),
    )
    _print_with_delta(state.verified().with_delta)
    rows = [_row(each, state) for each in shown]
    if rows:
        headings = ("number", "time", "output", "source", "epsilon", "spent", ANY_PAIR, "key")
        print_rows(f"The last {len(rows)}", rows, headings)


def verify(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    head: Annotated[
        str | None,
        typer.Option(
            help="The head that an earlier verify printed; a ledger that does not continue from it is refused."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute every balance and window of a ledger, and check that nothing was altered; exit status 0 if all is well.

    Exit status 6: a balance does not add up, or a budget is exceeded. 7: the file is damaged or was altered. An older
    copy of the whole file passes these checks: to detect one, store the printed head elsewhere, and pass it with
    --head. The manifest of a table's release contains the head of its ledger, too, as chain.
    """
    from privacygames.problem import ANY_PAIR
    from privacygames.releases import Ledger
    from privacygames.tables import ReleaseLedger, is_release_ledger

    if is_release_ledger(file):
        state = ReleaseLedger(file).verify(head)
        if as_json:
            print_json(state.to_dict())
            return
        _print_state(f"{file.name}: every entry is as it was written, no account above its limit", state)
        print_rows(OLDER_COPY, [("head", state.head)])
        return
    with Ledger.open_existing(file) as ledger:
        balances = ledger.verify(head)
    if as_json:
        print_json(balances.to_dict())
        return
    rows = [_verified_row(balances, name) for name in balances.spent]
    title = f"{file.name}: every balance adds up, none above its limit; releases made: {balances.releases}"
    headings = ("budget", "epsilon is counted", "spent in all", ANY_PAIR, "fullest window", "limit")
    print_rows(title, rows, headings)
    _print_with_delta(balances.with_delta)
    print_rows(OLDER_COPY, [("head", balances.head)])


def plan(
    file: Annotated[Path, typer.Argument(help="A mechanism file, of cells, labels or points.")],
    budget: Annotated[str, typer.Option(help="The epsilon of all releases together: 4, or 4,delta=1e-6,within=1.")],
    delta: Annotated[float | None, typer.Option(help="The probability that the budget fails, such as 1e-6.")] = None,
    within: Annotated[
        float | None,
        typer.Option(help="The largest distance of two secrets, at every release.", show_default="any two secrets"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say how many releases of a mechanism a budget with a delta buys, and how many by adding up epsilon.

    The budget is written as for `privacygames release`; a window such as 4/24h makes no difference here. The ledger's
    number holds whatever later choices of mechanisms depend on. Nothing is released or charged.
    """
    from privacygames.composition import releases_within
    from privacygames.mechanism_files import load_any

    given = parse_budget(budget, delta, within)
    if given.delta is None:
        raise InvalidProblem("--delta is missing, such as 1e-6: without one, a budget is the sum of epsilons")
    counts = releases_within(load_any(file), given.epsilon, given.delta, given.within)
    if as_json:
        print_json(asdict(counts))
        return
    rows = [
        ("adding up epsilon", str(counts.added)),
        ("by a ledger with this budget", str(counts.ledger)),
        ("if all releases are of this mechanism, composed exactly", str(counts.composed)),
        ("epsilon of one release within the distance", f"{counts.largest_loss:.6g}"),
    ]
    print_rows(f"{file.name}: number of releases that the budget buys", rows)


def correct_clock(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    as_json: Json = False,
) -> None:
    """Set a ledger back to this machine's clock, after a release at a time in the future.

    Charges at later times count as made now, so that they stay in their windows for as long as possible.
    """
    from privacygames.releases import Ledger

    with Ledger.open_existing(file) as ledger:
        ahead = ledger.correct_clock()
    if as_json:
        print_json({"ahead": ahead})
        return
    print_rows(file.name, [("was ahead by", f"{ahead:.0f} s" if ahead else "nothing: unchanged")])


def _show_tables(file: Path, ledger: "ReleaseLedger", last: int, *, as_json: bool) -> None:
    """Show a ledger of table releases: what they cost, and which columns were released."""
    state, entries = ledger.state(), ledger.entries()
    if as_json:
        print_json({"accounts": state.to_dict(), "releases": entries[-last:], "total": len(entries)})
        return
    counted_for = f", counted for {state.protects}" if state.protects else ""
    _print_state(f"{file.name}: releases of tables: {len(entries)}{counted_for}", state)
    rows = [
        (str(entry["time"]), rule["columns"], rule["mechanism"][:12], f"{float(amount):.6g}", name)
        for entry in entries[-last:]
        for rule in entry["rules"]
        for name, amount in rule["amounts"].items()
    ]
    if rows:
        print_rows(f"The last {min(last, len(entries))}", rows, ("time", "columns", "mechanism", "epsilon", "account"))


def account_row(account: dict[str, object]) -> tuple[str, ...]:
    """An account as a table shows it."""
    spent, limit, any_pair = account["spent"], account["limit"], account["any_pair"]
    columns: tuple[object, ...] = (account["counted"], spent, any_pair, limit)
    if account["approximate"] is not None:
        columns = (TOGETHER, _share(spent, limit), NOT_COVERED, account["approximate"]["epsilon"])  # type: ignore[index]
    return tuple(map(_text, (account["name"], *columns, account["left_in_words"])))


def _verified_row(balances: "VerifiedLedger", name: str) -> tuple[str, ...]:
    spent, fullest, limit = balances.spent[name], balances.fullest[name], balances.limits[name]
    columns: tuple[object, ...] = (balances.counted[name], spent, balances.any_pair(name), fullest, limit)
    if name in balances.with_delta:
        columns = (TOGETHER, _share(spent, limit), NOT_COVERED, _share(fullest, limit), "100 %")
    return tuple(map(_text, (name, *columns)))


def _share(part: object, limit: object) -> str:
    """A charge of an account with a delta: a part of its limit, since it is no epsilon."""
    return f"{100 * float(str(part)) / float(str(limit)):.1f} %"


def _print_with_delta(guarantees: dict[str, str]) -> None:
    """What budgets with a delta guarantee."""
    if guarantees:
        print_rows("With a delta, for all releases together", list(guarantees.items()))


def _print_state(title: str, state: "LedgerState") -> None:
    names = list(dict.fromkeys([*state.limits, *state.spent]))
    limits = [f"{state.limits[name]:g}" if name in state.limits else "no limit" for name in names]
    rows = [(name, f"{state.spent.get(name, 0.0):.6g}", limit) for name, limit in zip(names, limits, strict=True)]
    print_rows(title, rows or [("nothing is charged", "0", "no limit")], ("account", "spent in all", "limit"))


def _plain(record: "ReleaseRecord", state: "LedgerBalances") -> dict[str, object]:
    terms = state.terms_at(record.scope_event)
    return {
        "number": record.number,
        "time": record.time,
        "answer": record.report["answer"],
        "source": record.report["source"],
        "charged": [str(each) for each in record.charges],
        "spent": [str(each) for each in record.totals],
        "counted": [each.scale.per() for each in terms],
        "key": record.key,
    }


def _row(record: "ReleaseRecord", state: "LedgerBalances") -> tuple[str, ...]:
    when = "" if record.time is None else _time(record.time)
    columns = (str(record.number), when, str(record.report["answer"]), str(record.report["source"]))
    terms = state.terms_at(record.scope_event)[0]
    per, spent = terms.scale.per(), record.totals[0]
    allowed = state.max_log_ratio(terms.name, spent, record.scope_event)
    return (*columns, f"{record.charges[0]} {per}", f"{spent} {per}", _text(allowed), record.key or "")


def _text(value: object) -> str:
    """The text of a cell. None means no limit, also on what ε allows between secrets infinitely far apart."""
    return "no limit" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # a ledger may count time in other units
        return f"{seconds:g}"
