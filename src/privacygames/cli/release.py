"""``privacygames release``: one output, charged to a ledger before it is printed."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.cli.budget_text import BUDGET_FORMS, parse_budget
from privacygames.cli.output import Json, print_json, print_rows
from privacygames.errors import InvalidProblem, UnreadableFile

if TYPE_CHECKING:
    from privacygames.beliefs import Mobility
    from privacygames.mechanism import Mechanism
    from privacygames.points import PointMechanism, PointProblem, PublicPointMechanism
    from privacygames.problem import Problem
    from privacygames.releases import Policy, Release
    from privacygames.spaces import Label, Region, Space

    PointSource = PointMechanism | PublicPointMechanism | PointProblem

LONGEST_KEY_FILE = 4096


def release(
    file: Annotated[
        Path, typer.Argument(help="A problem file (.toml), or a mechanism file that every output is drawn from.")
    ],
    ledger: Annotated[Path, typer.Option("--ledger", "-l", help="The ledger; created on first use.")],
    secret: Annotated[
        str | None,
        typer.Argument(
            help="The secret; where secrets are points LATITUDE,LONGITUDE (X,Y in plain km, a number for an interval). "
            "Other users can see it in the process list: prefer standard input."
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Epsilon of every release, per unit of distance.")] = None,
    distortion: Annotated[
        float | None, typer.Option(help="Least error of the optimal attack on the present secret.")
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(help=BUDGET_FORMS + " Repeatable."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Every --budget is for all releases together and fails with this probability, such as 1e-6."),
    ] = None,
    when_spent: Annotated[
        str,
        typer.Option(
            help="With the budget spent: refuse, repeat the last output, or release the best under the belief."
        ),
    ] = "refuse",
    when_impossible: Annotated[
        str, typer.Option(help="If the belief no longer allows the distortion: largest (possible) or refuse.")
    ] = "largest",
    when_changed: Annotated[
        str,
        typer.Option(
            help="If prior, mobility or problem differ from the ledger's: refuse; record the change, with all charges "
            "so far; or same-unit: also allow other secrets, with distances in the same unit."
        ),
    ] = "refuse",
    spread: Annotated[int | None, typer.Option(help="Spread the budget evenly over so many releases.")] = None,
    test: Annotated[float | None, typer.Option(help="Predict first: epsilon of the test of the last output.")] = None,
    within: Annotated[
        float | None,
        typer.Option(
            help="With --delta: largest distance of two secrets at every release (without it: any). With --test: "
            "largest error of the last output."
        ),
    ] = None,
    memoised: Annotated[
        Path | None, typer.Option(help="Same secret, same output: a file with at least 16 random bytes, the key.")
    ] = None,
    place: Annotated[
        float | None,
        typer.Option(help="With --memoised and secrets that are points: side of the cells that get one output."),
    ] = None,
    places: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --place: a file of the places that you return to, a line for each, as secrets are."
        ),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="With --places: how far from a place counts as being there.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="A file of past labels, one per step, blank if unknown, to learn from how the secret moves.",
            show_default="still",
        ),
    ] = None,
    step: Annotated[float | None, typer.Option(help="With --trace: seconds between its labels.")] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(help="With --trace: moves added to each row of the transition matrix.", show_default="1"),
    ] = None,
    toward: Annotated[str | None, typer.Option(help="With --trace: prior or neighbours.", show_default="prior")] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Time of the release: 2024-05-01T12:00:00+02:00 or unix seconds.", show_default="now"),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="A name for this release: a second request with it returns the stored output and charges nothing."
        ),
    ] = None,
    clock_tolerance: Annotated[
        float | None,
        typer.Option(help="Seconds that --at may be ahead of this machine's clock; inf: any.", show_default="300"),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the design.")] = None,
    as_json: Json = False,
) -> None:
    """Release one output for a secret, designed against the present belief, and charge it to a ledger.

    The output is printed after it is charged. Without SECRET, the secret is the first line of standard input. Epsilon
    and distortion are the problem file's unless given here. Budgets must stay the same from release to release. Another
    problem or --trace is refused unless --when-changed says to record it; charges so far remain. Exit status
    10: the budget is spent, nothing was released. `privacygames ledger plan` says how many releases a budget buys.

    Where secrets are points, there is no belief: --distortion and --trace are for cells and labels.
    """
    from privacygames.releases import CLOCK_TOLERANCE, Releases

    if delta is not None and budget is None:
        raise InvalidProblem("--delta goes with --budget: it says how likely the budget may fail")
    if delta is not None and test is not None:
        raise InvalidProblem("--within is that of --test here: write budgets as --budget 4,delta=1e-6,within=1")
    if within is not None and delta is None and test is None:
        raise InvalidProblem("--within goes with --delta, as the distance that budgets hold for, or with --test")
    of_policy = within if test is not None or delta is None else None
    source, bounds = _source(file)
    settings: dict[str, Any] = {
        "budget": [parse_budget(text, delta, within if test is None else None) for text in budget or []] or None,
        "when_spent": when_spent,
        "when_changed": when_changed,
        "clock_tolerance": CLOCK_TOLERANCE if clock_tolerance is None else clock_tolerance,
        "ledger": ledger,
        "time_limit": time_limit,
    }
    of_file = bounds.get("epsilon") if spread is None else None
    frequent = None if places is None and radius is None else (places, radius)
    limits = of_file if epsilon is None else epsilon, spread, test, of_policy
    policy = partial(_policy, *limits, memoised, place, frequent)
    if not isinstance(source, tuple):
        for_cells = {"distortion": distortion, "trace": trace, "step": step}
        impossible = None if when_impossible == "largest" else when_impossible
        _refuse_for_points(for_cells | {"smoothing": smoothing, "toward": toward, "when-impossible": impossible})
        _release_point(source, secret, policy, settings, at=_clock_time(at), key=key, as_json=as_json)
        return
    problem, mechanism = source
    label = _secret(problem.space, secret)
    mobility = _mobility(problem.space, trace, step, smoothing, toward)
    releases = Releases(
        problem,
        mobility,
        distortion=bounds.get("distortion") if distortion is None else distortion,
        mechanism=mechanism,
        policy=policy(fixed_mechanism=mechanism is not None),
        when_impossible=when_impossible,  # type: ignore[arg-type]  # Releases checks it
        **settings,
    )
    release_made = releases.release(label, at=_time(at, mobility), key=key)
    if as_json:
        print_json(release_made.to_dict())
    else:
        print_rows(_title(release_made), release_made.rows())


def _title(release_made: "Release[Any]") -> str:
    return "The stored output for this key" if release_made.already_made else "Released"


def _release_point(
    source: "PointSource",
    secret: str | None,
    policy: "Callable[..., Policy]",
    settings: dict[str, Any],
    *,
    at: "float | datetime",
    key: str | None,
    as_json: bool,
) -> None:
    """Release an output for a point, which is printed as it is given: the latitude comes first."""
    from privacygames.cli.points_input import parse_point
    from privacygames.points import PointProblem
    from privacygames.presentation import point_json, point_text
    from privacygames.releases import PointReleases

    fixed = not isinstance(source, PointProblem)
    region = source.region if isinstance(source, PointProblem) else source.secrets
    releases = PointReleases(source, policy=policy(fixed_mechanism=fixed, region=region), **settings)
    try:
        coordinates = parse_point(releases.region, _secret_text(secret))
    except InvalidProblem as error:
        raise InvalidProblem(f"the secret: {error}") from None
    release_made = releases.release(coordinates if len(coordinates) > 1 else coordinates[0], at=at, key=key)
    output = release_made.observable
    point = output if isinstance(output, tuple) else (output,)
    if as_json:
        print_json(release_made.to_dict() | {"observable": point_json(releases.region, point)})
    else:
        rows = [("output", point_text(releases.region, point)), *release_made.rows()[1:]]
        print_rows(_title(release_made), rows)


def _refuse_for_points(options: dict[str, object]) -> None:
    """Refuse options that need a belief over finitely many secrets."""
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise InvalidProblem(f"{', '.join(given)}: between points there is no belief; this works with cells and labels")


def _source(file: Path) -> "tuple[tuple[Problem, Mechanism | None] | PointSource, dict[str, Any]]":
    """The problem and its mechanism, or a source of outputs for points; and the bounds of the problem file."""
    from privacygames.mechanism import Mechanism, PublicMechanism
    from privacygames.mechanism_files import load_any, load_finite
    from privacygames.problem import Problem
    from privacygames.problem_files import read_problem

    if file.suffix.lower() == ".toml":
        problem, bounds = read_problem(file)
        used = ("epsilon", "distortion") if isinstance(problem, Problem) else ("epsilon",)
        for name in bounds:
            if name not in used or not isinstance(bounds[name], int | float):
                raise InvalidProblem(f"{file.name}, [bounds] {name}: releases over time use only {' and '.join(used)}")
        return ((problem, None) if isinstance(problem, Problem) else problem), bounds
    mechanism = load_any(file)
    if isinstance(mechanism, PublicMechanism):
        mechanism = load_finite(file)  # which says what is missing
    return ((mechanism.problem, mechanism) if isinstance(mechanism, Mechanism) else mechanism), {}


def _mobility(
    space: "Space", trace: Path | None, step: float | None, smoothing: float | None, toward: str | None
) -> "Mobility":
    from privacygames.beliefs import Mobility
    from privacygames.spaces import find_label

    if trace is None:
        for name, value in (("step", step), ("smoothing", smoothing), ("toward", toward)):
            if value is not None:
                raise InvalidProblem(f"--{name} goes with --trace; without it the secret is assumed not to change")
        return Mobility.still(space)
    labels: list[Label | None] = []
    for number, line in enumerate(_text(trace).splitlines(), start=1):
        try:
            labels.append(find_label(space, line.strip()) if line.strip() else None)
        except InvalidProblem as error:
            raise InvalidProblem(f"{trace.name}, line {number}: {error}") from None
    return Mobility.from_visits(
        space,
        labels,
        smoothing=1.0 if smoothing is None else smoothing,
        toward="prior" if toward is None else toward,  # type: ignore[arg-type]
        step=step,
    )


def _policy(
    epsilon: float | None,
    spread: int | None,
    test: float | None,
    within: float | None,
    memoised: Path | None,
    place: float | None,
    frequent: tuple[Path | None, float | None] | None,
    *,
    fixed_mechanism: bool,
    region: "Region | None" = None,
) -> "Policy":
    from privacygames.releases import EvenSpread, Fixed, FrequentPlaces, Memoised, Predictive

    if sum(each is not None for each in (spread, test, memoised)) > 1:
        raise InvalidProblem("--spread, --test and --memoised are three policies: give one of them")
    if (test is None) != (within is None):
        raise InvalidProblem(
            "--test and --within go together: the test's epsilon, and the largest error of a prediction"
        )
    if spread is not None and epsilon is not None:
        raise InvalidProblem("--spread sets the epsilon of each release: leave --epsilon out")
    if place is not None and memoised is None:
        raise InvalidProblem("--place goes with --memoised: how large a place is that gets one output")
    if frequent is not None and (memoised is None or place is not None or None in frequent):
        raise InvalidProblem("--places and --radius go together, with --memoised, and instead of --place")
    if frequent is not None and region is None:
        raise InvalidProblem("--places is for secrets that are points; with cells and labels, --memoised is enough")
    if epsilon is None and not fixed_mechanism and spread is None:
        raise InvalidProblem("--epsilon is missing: give the epsilon of each release, or a mechanism file")
    if spread is not None:
        return EvenSpread(spread)
    if test is not None and within is not None:
        return Predictive(epsilon, test=test, within=within)
    if memoised is None:
        return Fixed(epsilon)
    if region is not None and frequent is not None and frequent[0] is not None and frequent[1] is not None:
        return FrequentPlaces(_key(memoised), _places(region, frequent[0]), radius=frequent[1], epsilon=epsilon)
    return Memoised(_key(memoised), epsilon, place=place)


def _places(region: "Region", path: Path) -> list[float] | list[tuple[float, ...]]:
    """The places in a file, which no message shows."""
    from privacygames.cli.points_input import parse_point

    points = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            try:
                points.append(parse_point(region, line.strip()))
            except InvalidProblem as error:
                raise InvalidProblem(f"line {number} of {path.name}: {error}") from None
    return points if region.dimension > 1 else [point[0] for point in points]


def _time(text: str | None, mobility: "Mobility") -> "float | datetime | None":
    if not mobility.is_still and mobility.step is None:
        if text is not None:
            raise InvalidProblem("--at needs --step: without it one step of the trace passes between releases")
        return None
    return _clock_time(text)


def _clock_time(text: str | None) -> "float | datetime":
    """The time that a text names, by default now."""
    if text is None:
        return time()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidProblem(f"--at takes 2024-05-01T12:00:00+02:00 or unix seconds; got {text[:40]!r}") from None
    if moment.tzinfo is None:
        raise InvalidProblem("--at needs an offset, such as 2024-05-01T12:00:00+02:00, or Z for UTC")
    return moment.astimezone(UTC)


def _secret(space: "Space", argument: str | None) -> "Label":
    from privacygames.spaces import find_label

    return find_label(space, _secret_text(argument))


def _secret_text(argument: str | None) -> str:
    """The secret as it was given, as an argument or on standard input."""
    text = argument if argument is not None else sys.stdin.readline() if sys.stdin is not None else ""
    if not text.strip():
        raise InvalidProblem("there is no secret: give it as an argument, or as a line on standard input")
    return text.strip()


def _key(path: Path) -> bytes:
    try:
        key = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    if len(key) > LONGEST_KEY_FILE:
        raise InvalidProblem(f"{path.name} is too long for a key: make one with 32 random bytes")
    return key


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except UnicodeDecodeError:
        raise InvalidProblem(f"{path.name} is not a text file") from None
