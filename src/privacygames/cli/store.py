"""``privacygames store``: the ledgers of many people in one database, and tokens of the service that uses it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.ledger import account_row
from privacygames.cli.output import Json, print_json, print_rows
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.releases import LedgerStore

Url = Annotated[str, typer.Argument(metavar="STORE", help="An SQLite file, or postgresql://user@host/database.")]
PERSON = typer.Option(help="A person, as the fleet names them.")


def show(url: Url, person: Annotated[str | None, PERSON] = None, as_json: Json = False) -> None:
    """Show how many people are in a store, or what was charged to one of them."""
    from privacygames.problem import ANY_PAIR

    with _existing(url) as store:
        if person is None:
            values: dict[str, object] = {"people": len(store)}
            print_json(values) if as_json else print_rows(store.name, [("people", str(len(store)))])
            return
        ledger = store.ledger(person, create=False)
        accounts, count = ledger.accounts(), ledger.head().release_count
    if as_json:
        print_json({"accounts": accounts, "total": count})
        return
    headings = ("budget", "epsilon is counted", "spent in all", ANY_PAIR, "limit", "left")
    print_rows(f"releases made: {count}", [account_row(each) for each in accounts], headings)


def verify(url: Url, as_json: Json = False) -> None:
    """Recompute every balance, window and hash chain of everybody; exit status 0 if all is well, 6 otherwise."""
    with _existing(url) as store:
        count = store.verify()
    _report(as_json, "people whose ledgers are in order", count)


def erase(
    url: Url,
    person: Annotated[str, PERSON],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete everything about a person, and remove the bytes from the database's files as far as it can.

    What was spent is forgotten, too. Remove the person from the fleet first: the service gives whoever is in it an
    account. Backups, and PostgreSQL's write-ahead log and replicas, hold the bytes for longer: docs/how-to/store.md.
    """
    if not yes:
        typer.confirm("Everything about this person, and what they have spent, will be gone. Go on?", abort=True)
    with _existing(url) as store:
        store.erase(person)
    _report(as_json, "people erased", 1)


def scrub(url: Url) -> None:
    """Remove the bytes of deleted rows from the database's files, as far as it can."""
    with _existing(url) as store:
        store.scrub()


def prune(
    url: Url,
    older_than: Annotated[
        float | None, typer.Option(min=0.0, help="Delete releases that are older than so many days, too.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Delete the keys of releases that have expired, and releases older than --older-than days.

    What they were charged stays: the balances they led to are written first. A retry with an expired key is a new
    release.
    """
    from time import time

    with _existing(url) as store:
        keys = store.forget_keys()
        events = 0 if older_than is None else store.prune(time() - 86_400.0 * older_than)
    if as_json:
        print_json({"keys": keys, "events": events})
        return
    print_rows("", [("expired keys deleted", str(keys)), ("events deleted", str(events))])


def backup(url: Url, file: Annotated[Path, typer.Argument(help="The copy, which must not exist yet.")]) -> None:
    """Write a copy of an SQLite store while it is in use; for PostgreSQL, use its own pg_dump."""
    with _existing(url) as store:
        store.backup(file)


def copy(
    url: Url,
    to: Annotated[str, typer.Argument(metavar="TO", help="The other store: an SQLite file, or a URL of PostgreSQL.")],
    as_json: Json = False,
) -> None:
    """Copy everybody's ledgers to another store, and verify what arrived. Stop the service first."""
    from privacygames.releases import LedgerStore

    with _existing(url) as store, LedgerStore(to) as other:
        count = store.copy_to(other)
    _report(as_json, "people copied and verified", count)


def migrate(url: Url) -> None:
    """Bring the tables of a store to the version of this release. Stop what uses it, and make a backup first."""
    _existing(url, migrate=True).close()


def token(
    file: Annotated[Path, typer.Argument(help="The file of tokens, created if necessary.")],
    scope: Annotated[
        list[str], typer.Option(help="What it allows: release, sample, balance, people or metrics. Repeatable.")
    ],
    label: Annotated[str, typer.Option(help="What the line is for, to tell later which one to delete.")] = "",
) -> None:
    """Make a token for the service, print it once, and append its digest to a file.

    The service reads the file again when it changed: delete a line to revoke a token.
    """
    try:
        from privacygames.service import new_token
    except ModuleNotFoundError as error:
        raise InvalidProblem(
            f"the service needs the library {error.name}: pip install 'privacygames[studio]'"
        ) from None

    typer.echo(new_token(file, scope, label))


def key(file: Annotated[Path, typer.Argument(help="The file, which must not exist yet.")]) -> None:
    """Make a random key for memoised outputs (serve --memo-key). Another key gives every secret another output."""
    import os
    import secrets

    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidProblem(
            f"{file.name} exists already: another key would give every secret another output"
        ) from None
    with os.fdopen(handle, "wb") as opened:
        opened.write(secrets.token_bytes(32))


def _existing(url: str, *, migrate: bool = False) -> "LedgerStore":
    """The store, which must exist if it is a file."""
    from privacygames.errors import UnreadableFile
    from privacygames.releases import LedgerStore

    if "://" not in url and not Path(url).is_file():
        raise UnreadableFile(Path(url), "there is no such store")
    return LedgerStore(url, migrate=migrate)


def _report(as_json: bool, what: str, count: int) -> None:
    print_json({"people": count}) if as_json else print_rows("", [(what, str(count))])
