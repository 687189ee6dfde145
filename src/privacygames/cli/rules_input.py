"""The rules that release the columns of a table, from options or from a TOML file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.tables import Rule

RULE_KEYS = (
    "columns",
    "mechanism",
    "fleet",
    "answer",
    "into",
    "original",
    "invalid",
    "missing",
    "far_share_at_most",
)
"""Keys of a ``[[rule]]`` table in a file; ``answer`` is the key for ``output_form`` of a rule."""

RULE_OPTIONS = ("into", "original", "invalid", "missing", "far_share_at_most")
"""Those of them that are parameters of :class:`privacygames.tables.Rule` under the same name."""


def rules_for(mechanism: Path | None, fleet: Any, columns: str | None, options: dict[str, Any]) -> "dict[Any, Rule]":
    """The rules for a command: one rule from a mechanism or fleet and its options, or those of a TOML file."""
    from privacygames.tables import Rule

    settings = {key: value for key, value in options.items() if value is not None}
    if mechanism is not None and mechanism.suffix.lower() == ".toml":
        if columns is not None or settings:
            raise InvalidProblem(
                "a file of rules defines columns and options itself: leave out --columns and options of rules"
            )
        return _from_file(mechanism)
    if columns is None:
        raise InvalidProblem(
            "--columns is missing: name the column that holds the secret, such as age, or longitude,latitude"
        )
    if "into" in settings:
        settings["into"] = settings["into"].split(",")
    source = fleet if fleet is not None else mechanism_in(mechanism)
    return {_column_key(columns.split(",")): Rule(mechanism=source, **settings)}


def mechanism_in(path: Path | None) -> Any:
    """The mechanism in a file, with or without its prior and cost."""
    from privacygames.mechanism_files import load_any

    if path is None:
        raise InvalidProblem("give a mechanism file, or --fleet")
    return load_any(path)


def _from_file(path: Path) -> "dict[Any, Rule]":
    from privacygames.fleet import open_fleet
    from privacygames.table_reader import TableReader
    from privacygames.tables import Rule
    from privacygames.text_files import read_toml

    document = TableReader(read_toml(path), path.name, ("rule",))
    rules: dict[Any, Rule] = {}
    for number, table in enumerate(document.array("rule"), start=1):
        keys = TableReader(table, f"[[rule]] {number}", RULE_KEYS)
        if ("mechanism" in keys) == ("fleet" in keys):
            raise InvalidProblem(f"[[rule]] {number} needs either a mechanism or a fleet")
        options = {key: value for key, value in keys.table.items() if key in RULE_OPTIONS}
        if "answer" in keys:
            options["output_form"] = keys.string("answer")
        file = path.parent / keys.string("mechanism" if "mechanism" in keys else "fleet")
        source: Any = mechanism_in(file) if "mechanism" in keys else open_fleet(file)
        rules[_column_key(keys.array("columns"))] = Rule(mechanism=source, **options)
    return rules


def _column_key(names: list[Any]) -> Any:
    """The key of a rule: the name of one column, or a tuple of names, which may be nested."""
    return (
        names[0] if len(names) == 1 else tuple(_column_key(name) if isinstance(name, list) else name for name in names)
    )
