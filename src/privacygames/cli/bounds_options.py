"""The bounds of a command: those in the problem file, and those given as options."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privacygames.mechanism import Mechanism
    from privacygames.problem import Adversary, ProblemFile

NAME_ALONE = (
    "--against NAME, without a number, asks for the most against her: it goes with --cost-at-most in design, and with "
    "distortion in find"
)


def merged_bounds(
    file: Path,
    from_file: dict[str, Any],
    given: dict[str, Any],
    adversaries: "Sequence[Adversary]" = (),
    against: "Sequence[str]" = (),
) -> dict[str, Any]:
    """The file's bounds, with those given added or in place of them; errors say where a value stands.

    Args:
        file: the problem file.
        from_file: its bounds.
        given: the options, by the names of the bounds; None for those left out.
        adversaries: those of the file.
        against: ``NAME=DISTORTION``, or ``NAME`` alone for as much as possible.
    """
    from privacygames.errors import Field, InvalidProblem
    from privacygames.problem import Bounds

    options = {name: value for name, value in given.items() if value is not None}
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
    """The adversary of that name, or an error that lists the names there are."""
    from privacygames.errors import InvalidProblem

    for each in adversaries:
        if each.name == name:
            return each
    known = ", ".join(repr(each.name) for each in adversaries) or "none at all"
    raise InvalidProblem(f"there is no adversary called {name[:100]!r}; there is {known}")


def known_adversaries(mechanism: "Mechanism", file: "ProblemFile | None") -> "list[Adversary]":
    """Those a mechanism promises something against, and those of a problem file; a name means one of them."""
    from privacygames.errors import InvalidProblem

    found = {adversary.name: adversary for adversary in mechanism.bounds.named_adversaries}
    for each in [] if file is None else file.adversaries_for(mechanism.problem):
        if found.setdefault(each.name, each) != each:
            raise InvalidProblem(
                f"{each.name!r} of {file.path.name if file else ''} is not the {each.name!r} that the mechanism has a "
                "guarantee against: give them another name in that file"
            )
    return list(found.values())


def merged_distortion(
    from_file: Any,
    number: float | None,
    adversaries: "Sequence[Adversary]",
    against: "Sequence[str]",
    *,
    sought: bool,
    floor: bool = True,
) -> Any:
    """The distortion asked for: a number or nothing, or a number for each of several adversaries.

    Args:
        from_file: what the file asks for: a number, numbers by adversary, or None.
        number: the option, which is about the problem's own adversary.
        adversaries: those of the file.
        against: as in :func:`merged_bounds`.
        sought: whether privacy against one of them is to be as large as possible: she then comes first.
        floor: whether what is asked for against her is kept nevertheless.
    """
    from privacygames.errors import InvalidProblem
    from privacygames.problem import PROBLEM_ADVERSARY, Adversary

    plain = PROBLEM_ADVERSARY
    asked_for = _by_name_asked(against, [*adversaries, plain])
    open_ones = [who.name for who, least in asked_for.items() if least is None]
    if open_ones and not sought:
        raise InvalidProblem(NAME_ALONE)
    if len(open_ones) > 1:
        raise InvalidProblem(
            f"--against asks for the most against {open_ones[0]!r} and against {open_ones[1]!r}; only one can be "
            "maximised: give a number for the other"
        )
    found: dict[Adversary, float | None]
    found = dict(from_file) if isinstance(from_file, dict) else {} if from_file is None else {plain: from_file}
    if number is not None:
        found.pop(plain, None)
        found = {plain: number, **found}
    first = next((who for who, least in found.items() if least is None), plain)
    for who, least in asked_for.items():
        first = who if least is None else first
        found[who] = least
    if sought:
        own = found.pop(first, None)
        found = {first: own if floor else None, **found}
    asked: dict[Adversary, float | None] = {}
    for who, wanted in found.items():
        if wanted is not None or (sought and who == first):
            asked[who] = wanted
    return asked if set(asked) - {plain} else asked.get(plain)


def seeks_another(against: "Sequence[str]", adversaries: "Sequence[Adversary]") -> bool:
    """Whether --against asks for the most against somebody of the file, rather than the problem's own adversary."""
    return any(
        least is None and any(each.name == name for each in adversaries)
        for name, least in (_against(text, adversaries) for text in against)
    )


def _by_name_asked(against: "Sequence[str]", adversaries: "Sequence[Adversary]") -> "dict[Adversary, float | None]":
    """What --against asks for, each adversary once."""
    from privacygames.errors import InvalidProblem

    found: dict[Adversary, float | None] = {}
    for each in against:
        name, least = _against(each, adversaries)
        who = by_name(adversaries, name)
        if who in found:
            raise InvalidProblem(f"--against names {who.name!r} twice: say once what is promised against her")
        found[who] = least
    return found


def _against(text: str, adversaries: "Sequence[Adversary]") -> tuple[str, float | None]:
    """A name and what is promised against whoever has it, as a number; None for as much as possible."""
    from privacygames.errors import InvalidProblem

    name, equals, number = text.rpartition("=")
    if not equals or any(each.name == text for each in adversaries):
        return text, None
    try:
        return name, float(number)
    except ValueError:
        raise InvalidProblem("--against takes NAME=DISTORTION, with a number; or NAME, with --cost-at-most") from None
