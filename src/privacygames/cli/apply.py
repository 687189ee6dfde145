"""``privacygames apply``: mechanisms on the columns of CSV and Parquet files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.cli.output import Json, print_json, print_rows, warn, working
from privacygames.cli.rules_input import rules_for
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.fleet import Fleet
    from privacygames.tables import Manifest, ReleaseKey, Rule


def apply(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MECHANISM] IN OUT",
            help="A mechanism file, or a TOML file of rules (none with --fleet); then the CSV or Parquet file, or "
            "folder of them, to read, and the one to write.",
        ),
    ],
    columns: Annotated[
        str | None, typer.Option(help="The column of the secret; several that belong together: longitude,latitude.")
    ] = None,
    fleet: Annotated[Path | None, typer.Option(help="A fleet's folder: each person's own mechanism.")] = None,
    unknown: Annotated[
        str | None, typer.Option(help="People the fleet does not know: refuse, or default.", show_default="refuse")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The column that says whose row it is.")] = None,
    answer: Annotated[
        str | None, typer.Option(help="label, centre, point, bounds or set.", show_default="label")
    ] = None,
    into: Annotated[str | None, typer.Option(help="Names of the columns of answers, separated by commas.")] = None,
    original: Annotated[
        str | None, typer.Option(help="What becomes of originals: replace, drop or null.", show_default="replace")
    ] = None,
    invalid: Annotated[
        str | None,
        typer.Option(help="Rows that are no secret: error, drop, null or nearest.", show_default="error"),
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Rows without a value: error, drop or null.", show_default="as --invalid")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="A release key, made if it is not there: with it, the same command gives the same answers. Each "
            "release needs its own."
        ),
    ] = None,
    key_columns: Annotated[
        str | None,
        typer.Option(help="What tells rows apart, separated by commas.", show_default="file and position"),
    ] = None,
    repeat: Annotated[
        str, typer.Option(help="fresh: every row is drawn. same: each secret of a user once; needs --key.")
    ] = "fresh",
    epsilon_limit: Annotated[
        float | None, typer.Option(help="Refuse a release that costs a user (or a row) more than this ε in all.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between the fields of CSV files.", show_default="told from the first line")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, each at a file.")] = 1,
    scheduler: Annotated[str | None, typer.Option(help="A Dask scheduler's address: work on its cluster.")] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show how well statistics would survive; write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Replace secrets in tables by random answers, row by row; a manifest beside the output says what it costs.

    Answers take the place of the columns named; all others stay as they are. Interrupted, the same command goes on, and
    until it is done nothing that looks complete is there.
    """
    from privacygames.tables import apply_files

    mechanism, source, out = _paths(paths, fleet, preview=preview)
    opened = None if fleet is None else _fleet(fleet, unknown)
    if fleet is None and unknown is not None:
        raise InvalidProblem("--unknown goes with --fleet")
    asked = {"answer": answer, "into": into, "original": original, "invalid": invalid, "missing": missing}
    rules = rules_for(mechanism, opened, columns, asked)
    if preview:
        _preview(rules, source, separator, as_json)
        return
    try:
        with working("applying …") as show:
            manifest = apply_files(
                source,
                out,
                rules,
                key=_key(key),
                key_columns=None if key_columns is None else key_columns.split(","),
                user=user,
                repeat=repeat,  # type: ignore[arg-type]  # checked where it is used
                epsilon_limit=epsilon_limit,
                separator=separator,
                jobs=jobs,
                scheduler=scheduler,
                progress=show,
            )
    except KeyboardInterrupt:
        typer.echo("What is finished is kept in a hidden folder beside OUT: the same command goes on.", err=True)
        raise
    _print(manifest, out, as_json)


def _paths(paths: list[Path], fleet: Path | None, *, preview: bool) -> tuple[Path | None, Path, Path]:
    """Mechanism, input and output, of which a fleet needs no first and a preview no last."""
    wanted = ([] if fleet else ["MECHANISM"]) + ["IN"] + ([] if preview else ["OUT"])
    if len(paths) != len(wanted):
        raise InvalidProblem(f"{' '.join(wanted)} are wanted: {len(wanted)} paths; {len(paths)} were given")
    named = dict(zip(wanted, paths, strict=True))
    return named.get("MECHANISM"), named["IN"], named.get("OUT", Path())


def _fleet(folder: Path, unknown: str | None) -> "Fleet":
    from privacygames.fleet import Fleet

    return Fleet(folder, unknown=unknown or "refuse")  # type: ignore[arg-type]  # checked there


def _key(path: Path | None) -> "ReleaseKey | None":
    from privacygames.tables import ReleaseKey

    if path is None:
        return None
    if path.exists():
        return ReleaseKey.load(path)
    typer.echo(f"A new release key is in {path}: keep it as secret as the original data.", err=True)
    return ReleaseKey.create(path)


def _preview(rules: "dict[Any, Rule]", source: Path, separator: str | None, as_json: bool) -> None:
    from privacygames.tables import preview_file

    found = preview_file(source, rules, separator=separator)
    if as_json:
        print_json([each.to_dict() for each in found])
        return
    for each in found:
        print_rows(each.title, each.rows(), headings=("", "truth", "as released", "estimated"))


def _print(manifest: "Manifest", out: Path, as_json: bool) -> None:
    if as_json:
        print_json(manifest.to_dict())
        return
    warn(manifest.warnings)
    account = manifest.account
    rows = [
        ("rows in, out, dropped", f"{manifest.rows_in:,}, {manifest.rows_out:,}, {manifest.rows_dropped:,}"),
        *(
            (f"{name}: {reason}", f"{count:,} rows: {manifest.became(name, reason)}")
            for (name, reason), count in sorted(manifest.tally.odd.items())
        ),
        *((f"epsilon of {each.columns}", f"{each.epsilon:.6g} {each.form}") for each in account.charges),
    ]
    if manifest.epsilon_per_user is not None:
        whom = f"{account.people:,} people, at most {account.rows:,} rows each"
        rows.append(("epsilon of a person", f"{manifest.epsilon_per_user:.6g} ({whom})"))
    print_rows(f"{out} is written; the manifest is beside it.", rows)
