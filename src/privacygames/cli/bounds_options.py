"""Options for bounds, and how they combine with the bounds of a problem file."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.bound_fields import BOUND_FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privacygames.mechanism import Mechanism
    from privacygames.point_document import PointProblemFile
    from privacygames.points import PointMechanism
    from privacygames.problem import Adversary, ProblemFile

BoundOptions = dict[str, Any]
"""The values of the options that :func:`takes_bounds` adds to a command, by the names of the bounds."""

NAME_ALONE = (
    "--against NAME, without a number, maximises the distortion against NAME: it goes with --cost-at-most in design, "
    "and with distortion in find"
)


def takes_bounds(command: Callable[..., Any]) -> Callable[..., Any]:
    """Replace a command's parameter ``bounds`` by one option for each bound; it gets the options that are not None."""

    @wraps(command)
    def run(**arguments: Any) -> Any:
        values = {name: arguments.pop(name, None) for name in BOUND_FIELDS}
        return command(**arguments, bounds={name: value for name, value in values.items() if value is not None})

    options = {
        name: Annotated[bool | None if about.is_switch else float | None, typer.Option(help=about.help)]
        for name, about in BOUND_FIELDS.items()
    }
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name != "bounds":
            parameters.append(parameter)
            continue
        kind = Parameter.POSITIONAL_OR_KEYWORD
        parameters += [Parameter(name, kind, default=None, annotation=hint) for name, hint in options.items()]
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {name: hint for name, hint in command.__annotations__.items() if name != "bounds"} | options
    return run


def merged_bounds(
    file: Path,
    from_file: dict[str, Any],
    options: dict[str, Any],
    adversaries: "Sequence[Adversary]" = (),
    against: "Sequence[str]" = (),
) -> dict[str, Any]:
    """The file's bounds, with those of the command line added or in their place; errors name the source of a value.

    Args:
        file: the problem file.
        from_file: its bounds.
        options: the command line's bounds by name; None for those left out.
        adversaries: those of the file.
        against: ``NAME=DISTORTION``, or ``NAME`` alone for the largest distortion possible.
    """
    from privacygames.errors import Field, InvalidProblem
    from privacygames.problem import Bounds

    options = {name: value for name, value in options.items() if value is not None}
    merged = from_file | options
    sought = merged.get("cost_at_most") is not None
    numbers = from_file.get("distortion"), options.get("distortion")
    if not sought and isinstance(numbers[0], dict) and None in numbers[0].values():
        raise InvalidProblem('an adversary has distortion = "most", which goes with ', Field("cost_at_most"))
    merged["distortion"] = merged_distortion(*numbers, adversaries, against, sought=sought)
    try:
        Bounds(**merged)
    except InvalidProblem as error:
        if error.field in from_file and error.field not in options:
            raise error.at(f"{file.name}, [bounds]") from None
        raise
    return merged


def by_name(adversaries: "Sequence[Adversary]", name: str) -> "Adversary":
    """The adversary of that name; the error for an unknown name lists the known ones."""
    from privacygames.errors import InvalidProblem

    for each in adversaries:
        if each.name == name:
            return each
    known = ", ".join(repr(each.name) for each in adversaries) or "none at all"
    raise InvalidProblem(f"there is no adversary called {name[:100]!r}; there is {known}")


def known_adversaries(
    mechanism: "Mechanism | PointMechanism", file: "ProblemFile | PointProblemFile | None"
) -> "list[Adversary]":
    """The adversaries in a mechanism's bounds, and those of a problem file; a name may not stand for two of them."""
    from privacygames.errors import InvalidProblem

    known = {adversary.name: adversary for adversary in mechanism.bounds.named_adversaries}
    problem: Any = mechanism.problem  # of the same kind as the file's
    for each in [] if file is None else file.adversaries_for(problem):
        if known.setdefault(each.name, each) != each:
            raise InvalidProblem(
                f"{each.name!r} of {file.path.name if file else ''} is not the {each.name!r} that the mechanism has a "
                "guarantee against: give them another name in that file"
            )
    return list(known.values())


def merged_distortion(
    from_file: Any,
    number: float | None,
    adversaries: "Sequence[Adversary]",
    against: "Sequence[str]",
    *,
    sought: bool,
    floor: bool = True,
) -> Any:
    """The required distortion: None, a number, or a number for each of several adversaries.

    Args:
        from_file: the file's: None, a number, or numbers by adversary.
        number: the option ``--distortion``, which is about the problem's own adversary.
        adversaries: those of the file.
        against: as in :func:`merged_bounds`.
        sought: whether the distortion against one adversary is maximised; that adversary then comes first.
        floor: whether that adversary's number remains a lower bound.
    """
    from privacygames.errors import InvalidProblem
    from privacygames.problem import PROBLEM_ADVERSARY, Adversary

    options = _distortion_options(against, [*adversaries, PROBLEM_ADVERSARY])
    maximised = [adversary for adversary, distortion in options.items() if distortion is None]
    if maximised and not sought:
        raise InvalidProblem(NAME_ALONE)
    if len(maximised) > 1:
        raise InvalidProblem(
            f"--against asks for the largest distortion against {maximised[0].name!r} and against "
            f"{maximised[1].name!r}; only one can be maximised: give a number for the other"
        )
    merged: dict[Adversary, float | None]
    merged = dict(from_file) if isinstance(from_file, dict) else {PROBLEM_ADVERSARY: from_file}
    if from_file is None:
        merged = {}
    if number is not None:
        merged.pop(PROBLEM_ADVERSARY, None)
        merged = {PROBLEM_ADVERSARY: number, **merged}
    open_in_file = [adversary for adversary, distortion in merged.items() if distortion is None]
    first = (maximised or open_in_file or [PROBLEM_ADVERSARY])[0]
    merged |= options
    if sought:
        own = merged.pop(first, None)
        merged = {first: own if floor else None, **merged}
    required = {
        adversary: distortion
        for adversary, distortion in merged.items()
        if distortion is not None or (sought and adversary == first)
    }
    return required if set(required) - {PROBLEM_ADVERSARY} else required.get(PROBLEM_ADVERSARY)


def seeks_another(against: "Sequence[str]", adversaries: "Sequence[Adversary]") -> bool:
    """Whether --against maximises the distortion against an adversary of the file, not the problem's own."""
    names = [adversary.name for adversary in adversaries]
    return any(distortion is None and name in names for name, distortion in (_against(text, names) for text in against))


def _distortion_options(
    against: "Sequence[str]", adversaries: "Sequence[Adversary]"
) -> "dict[Adversary, float | None]":
    """The distortions in --against by adversary; None is the largest possible."""
    from privacygames.errors import InvalidProblem

    names = [adversary.name for adversary in adversaries]
    options: dict[Adversary, float | None] = {}
    for text in against:
        name, distortion = _against(text, names)
        adversary = by_name(adversaries, name)
        if adversary in options:
            raise InvalidProblem(f"--against names {adversary.name!r} twice: give each adversary one number")
        options[adversary] = distortion
    return options


def _against(text: str, names: "Sequence[str]") -> tuple[str, float | None]:
    """The adversary's name and the distortion in a text; None is the largest possible.

    Args:
        text: the option.
        names: of the adversaries, which may contain equals signs.
    """
    from privacygames.errors import InvalidProblem

    name, equals, number = text.rpartition("=")
    if not equals or text in names:
        return text, None
    try:
        return name, float(number)
    except ValueError:
        raise InvalidProblem("--against takes NAME=DISTORTION, with a number; or NAME, with --cost-at-most") from None
