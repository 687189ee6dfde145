"""``privacygames apply``: replace the secrets in CSV and Parquet files by random outputs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.cli.output import Json, print_json, print_rows, warn, working
from privacygames.cli.rules_input import rules_for
from privacygames.errors import InvalidProblem, UnreadableFile

if TYPE_CHECKING:
    from privacygames.tables import Manifest, ReleaseKey, ReleaseLedger, Rule


def apply(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MECHANISM] IN OUT",
            help="A mechanism file, or a TOML file of rules (neither with --fleet); then the CSV or Parquet file, or "
            "the folder of such files, to read; then the one to write.",
        ),
    ],
    columns: Annotated[
        str | None,
        typer.Option(help="The column that holds the secret, or the columns that do together: longitude,latitude."),
    ] = None,
    fleet: Annotated[Path | None, typer.Option(help="The folder of a fleet, with a mechanism for each person.")] = None,
    unknown: Annotated[
        str | None,
        typer.Option(
            help="People without a mechanism in the fleet: refuse, or use its default.", show_default="refuse"
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="The column with the user of each row.")] = None,
    output_form: Annotated[
        str | None,
        typer.Option(
            help="label, centre, point, bounds or set.",
            show_default="label; centre, where secrets are points of an area",
        ),
    ] = None,
    into: Annotated[str | None, typer.Option(help="Names of the columns of outputs, separated by commas.")] = None,
    original: Annotated[
        str | None,
        typer.Option(help="What happens to the original columns: replace, drop or null.", show_default="replace"),
    ] = None,
    invalid: Annotated[
        str | None,
        typer.Option(
            help="Rows whose value is not a secret: error, drop, null or nearest.",
            show_default="error; nearest, where secrets are points",
        ),
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Rows without a value: error, drop or null.", show_default="as --invalid")
    ] = None,
    far_share_at_most: Annotated[
        float | None,
        typer.Option(
            help="With --invalid nearest: largest share of rows that may lie more than one step outside all secrets.",
            show_default="0.05",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="A release key: the same rows get the same outputs again. Each release needs a key of its own. Goes "
            "with --key-columns, or --repeat same."
        ),
    ] = None,
    new_key: Annotated[bool, typer.Option("--new-key", help="Create the key: --key names a new file.")] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="Charge the release to this ledger, and refuse it if the budget is spent.")
    ] = None,
    new_ledger: Annotated[
        bool, typer.Option("--new-ledger", help="Start the ledger: --ledger names a new file.")
    ] = False,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="With --new-ledger: the largest total epsilon, as 60 between any two secrets, or in the unit of the "
            "columns: 'per km=2'. Repeatable."
        ),
    ] = None,
    key_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns that together identify every row, separated by commas. With a key, a row then gets the same "
            "output in any order and format of the file.",
            show_default="every run draws new outputs",
        ),
    ] = None,
    repeat: Annotated[
        str, typer.Option(help="fresh: draw an output for every row. same: one for each secret of a user; needs --key.")
    ] = "fresh",
    any_pair_limit: Annotated[
        float | None,
        typer.Option(
            help="Refuse a release whose total log-ratio between any two secrets, for a user (or a row), may be larger."
        ),
    ] = None,
    per_unit_limit: Annotated[
        str | None,
        typer.Option(
            help="The same for epsilon in the unit of the columns: 0.5; with several units, 'per km=2,per year=0.5'."
        ),
    ] = None,
    epsilon_limit: Annotated[str | None, typer.Option(hidden=True)] = None,
    separator: Annotated[
        str | None,
        typer.Option(help="Separator of the fields of CSV files.", show_default="detected from the first line"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes; each works on one file at a time.")] = 1,
    scheduler: Annotated[str | None, typer.Option(help="A Dask scheduler's address: work on its cluster.")] = None,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Show how well statistics can be estimated from the outputs; write nothing."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Replace secrets in tables by random outputs, row by row; a manifest beside the result states the privacy cost.

    Outputs replace the named columns; all others stay as they are. After an interruption the same command continues,
    and nothing that looks complete is written before the end.
    """
    from privacygames.tables import apply_files

    mechanism, source, out = _paths(paths, fleet, preview=preview)
    opened = None if fleet is None else _fleet(fleet, unknown)
    if fleet is None and unknown is not None:
        raise InvalidProblem("--unknown goes with --fleet")
    options: dict[str, Any] = {
        "output_form": output_form,
        "into": into,
        "original": original,
        "invalid": invalid,
        "missing": missing,
        "far_share_at_most": far_share_at_most,
    }
    rules = rules_for(mechanism, opened, columns, options)
    if preview:
        _preview(rules, source, separator, as_json)
        return
    try:
        with working("applying …") as show:
            manifest = apply_files(
                source,
                out,
                rules,
                key=_key(key, new=new_key),
                key_columns=None if key_columns is None else key_columns.split(","),
                user=user,
                repeat=repeat,  # type: ignore[arg-type]  # checked there
                any_pair_limit=any_pair_limit,
                per_unit_limit=_per_unit(per_unit_limit),
                epsilon_limit=epsilon_limit,  # type: ignore[arg-type]  # refused there
                ledger=_ledger(ledger, budget, new=new_ledger),
                separator=separator,
                jobs=jobs,
                scheduler=scheduler,
                progress=show,
            )
    except KeyboardInterrupt:
        typer.echo(
            "Finished parts are stored in a hidden folder beside OUT; run the same command again to resume.", err=True
        )
        raise
    _print(manifest, out, as_json)


def _paths(paths: list[Path], fleet: Path | None, *, preview: bool) -> tuple[Path | None, Path, Path]:
    """Mechanism, input and output; there is no mechanism with a fleet, and no output with a preview."""
    names = ([] if fleet else ["MECHANISM"]) + ["IN"] + ([] if preview else ["OUT"])
    if len(paths) != len(names):
        raise InvalidProblem(f"{' '.join(names)} are needed, {len(names)} paths; got {len(paths)}")
    named = dict(zip(names, paths, strict=True))
    return named.get("MECHANISM"), named["IN"], named.get("OUT", Path())


def _fleet(folder: Path, unknown: str | None) -> Any:
    from privacygames.fleet import open_fleet

    return open_fleet(folder, unknown=unknown or "refuse")  # type: ignore[arg-type]  # checked there


def _per_unit(text: str | None) -> float | dict[str, float] | None:
    """A limit for ε: one number, or one for each unit."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        pairs = (part.rpartition("=") for part in text.split(","))
        return {per.strip(): float(limit) for per, _, limit in pairs}
    except ValueError:
        raise InvalidProblem(
            f"--per-unit-limit takes a number such as 0.5, or several such as 'per km=2,per year=0.5'; "
            f"got {text[:40]!r}"
        ) from None


def _key(path: Path | None, *, new: bool) -> "ReleaseKey | None":
    from privacygames.tables import ReleaseKey

    if path is None:
        if new:
            raise InvalidProblem("--new-key goes with --key, the file to create")
        return None
    if not new:
        if not path.exists():
            raise UnreadableFile(path, "there is no such release key; --new-key creates one, for a new release")
        return ReleaseKey.load(path)
    if path.exists():
        raise InvalidProblem(f"{path} exists already: leave --new-key out to use it, or name another file")
    key = ReleaseKey.create(path)
    typer.echo(f"A new release key is in {path}: keep it as secret as the original data.", err=True)
    return key


def _ledger(path: Path | None, budget: list[str] | None, *, new: bool) -> "ReleaseLedger | None":
    from privacygames.tables import ReleaseLedger

    if path is None:
        if new or budget:
            raise InvalidProblem("--new-ledger and --budget go with --ledger, the file to start")
        return None
    if not new:
        if budget:
            raise InvalidProblem("the budget of a ledger cannot be changed: leave --budget out")
        if not path.exists():
            raise UnreadableFile(path, "there is no such ledger; --new-ledger starts one with nothing spent")
        return ReleaseLedger(path)
    return ReleaseLedger.create(path, budget=dict(map(_limit, budget)) if budget else None)


def _limit(text: str) -> tuple[str, float]:
    """The account and the limit in a text such as ``per km=2``; a number alone limits ε between any two secrets."""
    from privacygames.tables import ANY_PAIR

    per, _, limit = text.rpartition("=")
    try:
        return per.strip() or ANY_PAIR, float(limit)
    except ValueError:
        raise InvalidProblem(
            f"--budget takes an epsilon such as 60, or one with its unit such as 'per km=2'; got {text[:40]!r}"
        ) from None


def _preview(rules: "dict[Any, Rule]", source: Path, separator: str | None, as_json: bool) -> None:
    from privacygames.tables import preview_file

    previews = preview_file(source, rules, separator=separator)
    if as_json:
        print_json([each.to_dict() for each in previews])
        return
    for preview in previews:
        print_rows(preview.title, preview.rows(), headings=("", "truth", "as released", "estimated"))


def _print(manifest: "Manifest", out: Path, as_json: bool) -> None:
    if as_json:
        print_json(manifest.to_dict())
        return
    warn(manifest.warnings)
    account = manifest.account
    rows = [
        ("rows in, out, dropped", f"{manifest.rows_in:,}, {manifest.rows_out:,}, {manifest.rows_dropped:,}"),
        *manifest.describe_invalid_rows(),
        *((f"epsilon of {each.columns}", str(each)) for each in account.charges),
    ]
    if account.per_user is None:
        rows.append(("a row, in all", str(account.per_row)))
    else:
        rows.append(("whose rows", f"{account.people:,} people, at most {account.rows:,} rows each"))
        rows.append(("a person, in all", str(account.per_user)))
    if manifest.charge is not None:
        rows += [(f"spent, {name}", f"{each:.6g}") for name, each in manifest.charge.spent.items()]
    print_rows(f"{out} is written; the manifest is beside it.", rows)
