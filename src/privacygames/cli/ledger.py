"""``privacygames ledger``: what was released and charged, and whether it all adds up."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.output import Json, print_json, print_rows

if TYPE_CHECKING:
    from privacygames.releases import Record

LAST = 20


def show(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    last: Annotated[int, typer.Option(min=1, help="How many releases to show, the last ones.")] = LAST,
    as_json: Json = False,
) -> None:
    """Show the budgets of a ledger and its last releases. No true secret is in it."""
    from privacygames.releases import Ledger

    with Ledger.existing(file) as ledger:
        accounts, records = ledger.accounts(), ledger.records()
    shown = records[-last:]
    if as_json:
        print_json({"accounts": accounts, "releases": [_plain(each) for each in shown], "total": len(records)})
        return
    print_rows(
        f"{file.name}: releases made: {len(records)}",
        [(str(each["name"]), str(each["spent"]), str(each["limit"] or "no limit")) for each in accounts],
        ("budget", "spent in all", "limit"),
    )
    rows = [_row(each) for each in shown]
    if rows:
        print_rows(f"The last {len(rows)}", rows, ("number", "time", "answer", "where from", "epsilon", "spent", "key"))


def verify(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    as_json: Json = False,
) -> None:
    """Recompute every balance and window of a ledger, and check that nothing was altered; exit status 0 if all is well.

    Exit status 6: a balance does not add up, or a budget is exceeded. 7: the file is damaged or was altered.
    """
    from privacygames.releases import Ledger

    with Ledger.existing(file) as ledger:
        found = ledger.verify()
    if as_json:
        print_json(found.to_dict())
        return
    rows = [(name, found.spent[name], found.fullest[name], found.limits[name] or "no limit") for name in found.spent]
    title = f"{file.name}: every balance adds up, none above its limit; releases made: {found.releases}"
    print_rows(title, rows, ("budget", "spent in all", "fullest window", "limit"))


def _plain(record: "Record") -> dict[str, object]:
    return {
        "number": record.number,
        "time": record.time,
        "answer": record.report["answer"],
        "source": record.report["source"],
        "charged": [str(each) for each in record.charges],
        "spent": [str(each) for each in record.totals],
        "key": record.key,
    }


def _row(record: "Record") -> tuple[str, ...]:
    when = "" if record.time is None else _time(record.time)
    said = (str(record.number), when, str(record.report["answer"]), str(record.report["source"]))
    return (*said, str(record.charges[0]), str(record.totals[0]), record.key or "")


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # some other count of time
        return f"{seconds:g}"
