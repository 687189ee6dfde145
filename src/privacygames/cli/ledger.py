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
        [_account_row(each) for each in accounts],
        ("budget", "epsilon is counted", "spent in all", ANY_PAIR, "limit", "left"),
    )
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
    print_rows(OLDER_COPY, [("head", balances.head)])


def plan(
    file: Annotated[Path, typer.Argument(help="A mechanism file, of cells, labels or points.")],
    budget: Annotated[str, typer.Option(help="The budget: 4,delta=1e-6,within=1, also per window.")],
    as_json: Json = False,
) -> None:
    """Say how many releases of a mechanism a budget with a delta buys, and how many by adding up epsilon.

    The budget is written as for `privacygames release`: epsilon, delta, and the distance within which the secrets of
    two sequences differ at every release (without it: any). The ledger's number holds whatever later choices of
    mechanisms depend on. Nothing is released or charged.
    """
    from privacygames.composition import releases_within
    from privacygames.mechanism_files import load_any

    given = parse_budget(budget)
    if given.delta is None:
        raise InvalidProblem("--budget needs a delta here, such as 4,delta=1e-6,within=1: without one, epsilons add up")
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
    print_rows(f"{file.name}: releases that --budget {budget} buys", rows)


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


def _account_row(account: dict[str, object]) -> tuple[str, ...]:
    """An account as a table shows it: of one with a delta, what is left is a part of its limit, and no epsilon."""
    with_delta = None if account["approximate"] is None else str(account["limit_in_words"])
    any_pair = NOT_COVERED if with_delta else account["any_pair"]
    spent = f"{float(str(account['spent'])):.6g}" if with_delta else account["spent"]
    limit = _limit_text(account["limit"], with_delta)
    columns = (account["name"], account["counted"], spent, any_pair, limit, account["left_in_words"])
    return tuple(map(_text, columns))


def _verified_row(balances: "VerifiedLedger", name: str) -> tuple[str, ...]:
    with_delta = balances.with_delta.get(name)
    spent, fullest = balances.spent[name], balances.fullest[name]
    if with_delta is not None:
        spent, fullest = (f"{float(each):.6g}" for each in (spent, fullest))
    any_pair = balances.any_pair(name) if with_delta is None else NOT_COVERED
    limit = _limit_text(balances.limits[name], with_delta)
    return tuple(map(_text, (name, balances.counted[name], spent, any_pair, fullest, limit)))


def _limit_text(limit: object, with_delta: str | None) -> object:
    """A limit; of an account with a delta, and what it guarantees."""
    return limit if with_delta is None else f"{float(str(limit)):.6g}, which keeps {with_delta}"


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
