"""Homes found after weeks of sharing: independent and sticky noise, home zones, and frequent places, under attack.

The scenario is that of geoprivacy-bench (github.com/ZAABY/geoprivacy-bench), rebuilt from its description: synthetic
people in a city of 16 × 16 km go to work and out, and a position is published every five minutes for two weeks.
``python benchmarks/weeks.py`` writes results/weeks.json, results/weeks.md and the tables in docs/theory/weeks.md;
``--quick`` measures 30 people, as the original does, and prints the table only. The people are always the same; the
noise is the operating system's, so numbers vary by their standard errors.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marked_tables import replace_table
from privacygames import place_attacks
from privacygames.baselines import PlateauNoise, planar_laplace_noise
from privacygames.place_attacks import PlaceInference

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "theory" / "weeks.md"
HOUR, DAY, TICK = 3600.0, 86_400.0, 300.0
HALF = 8.0
"""Half the side of the city, in km."""
SPEED = 8.0 * 3.6
"""Of everybody on the way, in km per hour."""
JITTER = 0.008
"""Standard deviation of a fix along each axis, in km."""
NEAR = 0.1
"""How far from a frequent place its fixes count as being there, in km."""
FOUND = 0.2
"""A home is found if the guess is as near, in km."""
RECALLED = 0.25
"""A stay is recalled if a published one is as near, in km."""
CLUSTER = 0.15
"""Radius of a cluster of positions, in km."""
FINE = FOUND / 6
"""Step of the candidates for a home, in km: 113 of them are in a disk, as its area says within a thousandth."""
COARSE = FOUND / 4
"""The same where several outputs count."""
REPEATS = 4
"""How often each person is protected anew where one draw decides."""
ALLOWED = place_attacks.disk_bound(5.0, FOUND)
"""What ε = 0.005/m allows an attack on one output to find."""
DEPARTURE, DEPARTURE_ERROR = 8.0, 0.25
"""When people leave for work: mean and standard deviation in hours, which the adversary knows."""


@dataclass(frozen=True)
class Person:
    """A person and their true trace, in km and seconds from a Monday's midnight on."""

    home: Array
    work: Array
    leisure: Array
    times: Array
    positions: Array

    @property
    def places(self) -> Array:
        return np.vstack([self.home, self.work, self.leisure])

    @property
    def visits(self) -> NDArray[np.int64]:
        """The index of the frequent place of each fix; −1 on the way."""
        distances = np.linalg.norm(self.positions[:, None] - self.places, axis=2)
        return np.where(distances.min(axis=1) <= NEAR, distances.argmin(axis=1), -1)


@dataclass(frozen=True)
class Published:
    """What everybody sees: positions at times; equal indices of outputs are one draw, −1 is a draw of its own."""

    times: Array
    positions: Array
    outputs: NDArray[np.int64]


Attack = Callable[[Published], Array | None]


@dataclass(frozen=True)
class Row:
    """A defence, and the attacks made for it beside those made on all."""

    name: str
    defend: Callable[[Person], Published]
    attacks: dict[str, Attack] = field(default_factory=dict)
    best_disk: Callable[[Published], tuple[Array, float]] | None = None
    """The optimal attack on the one output of home, where there is one, and its expected success."""
    repeats: int = 1


def person(number: int, days: int) -> Person:
    """A person of the synthetic city, the same in every run."""
    rng = np.random.default_rng([32, number])
    home, work, *leisure = rng.uniform(-HALF, HALF, (5, 2))
    while np.linalg.norm(work - home) < 1.5:
        work = rng.uniform(-HALF, HALF, 2)
    when, where = [0.0], [home]

    def go(place: Array, leave: float) -> float:
        leave = max(leave, when[-1])
        arrive = leave + max(float(np.linalg.norm(place - where[-1])) / SPEED * HOUR, 1.0)
        when.extend([leave, arrive])
        where.extend([where[-1], place])
        return arrive

    for day in range(days):
        now = day * DAY
        if day % 7 < 5:
            go(work, now + rng.normal(DEPARTURE, DEPARTURE_ERROR) * HOUR)
            now += rng.normal(17.0, 1 / 3) * HOUR
        else:
            now += rng.normal(11.0, 0.5) * HOUR
        if rng.random() < 0.5:
            now = go(leisure[rng.integers(3)], now) + rng.uniform(1.5, 3.0) * HOUR
        go(home, now)
    times = np.arange(0.0, days * DAY, TICK)
    path = np.array(where)
    positions = np.stack([np.interp(times, when, path[:, axis]) for axis in (0, 1)], axis=1)
    return Person(home, work, np.array(leisure), times, positions + rng.normal(0, JITTER, positions.shape))


def draws(count: int) -> NDArray[np.int64]:
    return np.full(count, -1)


def independent(epsilon: float) -> Callable[[Person], Published]:
    """Planar Laplace noise for every fix."""

    def defend(user: Person) -> Published:
        noise = planar_laplace_noise(epsilon, len(user.times)) if np.isfinite(epsilon) else 0.0
        return Published(user.times, user.positions + noise, draws(len(user.times)))

    return defend


def sticky(epsilon: float, side: float = 0.1) -> Callable[[Person], Published]:
    """The same planar Laplace noise for all fixes in one cell."""

    def defend(user: Person) -> Published:
        cells, which = np.unique(np.floor(user.positions / side), axis=0, return_inverse=True)
        noise = planar_laplace_noise(epsilon, len(cells))
        return Published(user.times, user.positions + noise[which.ravel()], which.ravel())

    return defend


def zone(least: float, most: float, epsilon: float = np.inf) -> Callable[[Person], Published]:
    """No fix within a radius of home, drawn anew for every half day; noise on the others."""

    def defend(user: Person) -> Published:
        halves = (user.times // (DAY / 2)).astype(np.int64)
        radius = least + (most - least) * np.random.default_rng().random(halves.max() + 1)[halves]
        outside = np.linalg.norm(user.positions - user.home, axis=1) > radius
        count = int(outside.sum())
        noise = planar_laplace_noise(epsilon, count) if np.isfinite(epsilon) else 0.0
        return Published(user.times[outside], user.positions[outside] + noise, draws(count))

    return defend


def frequent_places(home: PlateauNoise, others: PlateauNoise) -> Callable[[Person], Published]:
    """One draw for each frequent place; on the way, the last output again: what pg.policies.FrequentPlaces does."""

    def defend(user: Person) -> Published:
        outputs = user.places + np.vstack([home.sample(1), others.sample(len(user.places) - 1)])
        visits = user.visits
        last = np.maximum.accumulate(np.where(visits >= 0, np.arange(len(visits)), 0))
        return Published(user.times, outputs[visits[last]], visits[last])

    return defend


def blind(user: Person) -> Published:
    """The centre of the city, whatever is true."""
    return Published(user.times, np.zeros_like(user.positions), np.zeros(len(user.times), dtype=np.int64))


def lattice(centre: Array, reach: float, step: float) -> Array:
    """Candidates around a point, within the city."""
    axis = np.arange(-reach, reach + step / 2, step)
    points = centre + np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    inside = points[(np.abs(points) <= HALF).all(axis=1)]
    return inside if len(inside) else np.clip(centre, -HALF, HALF)[None]


def at_night(seen: Published) -> NDArray[np.bool_]:
    hour = seen.times % DAY / HOUR
    return np.asarray((hour >= 22) | (hour < 6))


def averaging(epsilon: float, most: int = 400) -> Attack:
    """The posterior of home given independent outputs at night."""

    def attack(seen: Published) -> Array:
        nights = seen.positions[at_night(seen)]
        nights = nights[:: max(1, len(nights) // most)]
        reach = 8 / epsilon / np.sqrt(len(nights)) + 0.1
        candidates = lattice(np.median(nights, axis=0), reach, max(0.02, reach / 40))
        logs = -epsilon * np.linalg.norm(nights[:, None] - candidates, axis=2)
        return place_attacks.posterior_attack(logs, candidates).best_disk(FOUND)[0]

    return attack


def averaging_cells(epsilon: float) -> Attack:
    """The posterior of home given one draw for each cell that it is in at night: more than one near a border."""

    def attack(seen: Published) -> Array:
        nights = np.flatnonzero(at_night(seen))
        cells, counts = np.unique(seen.outputs[nights], return_counts=True)
        often = cells[counts >= max(0.02 * len(nights), 1)]
        means = np.array([seen.positions[nights[seen.outputs[nights] == cell]].mean(axis=0) for cell in often])
        candidates = lattice(means.mean(axis=0), 8 / epsilon, 0.05)
        logs = -epsilon * np.linalg.norm(means[:, None] - candidates, axis=2)
        return place_attacks.posterior_attack(logs, candidates).best_disk(FOUND)[0]

    return attack


def home_output(seen: Published) -> Array:
    """The one output of home, which the nights tell."""
    night = place_attacks.most_frequent_output(seen.times, seen.positions)
    assert night is not None
    return night[0]


def home_posterior(noise: PlateauNoise, output: Array, step: float) -> PlaceInference:
    """The posterior of home given its one output, and that home is in the city."""
    candidates = lattice(output, noise.plateau + 8 / noise.epsilon, step)
    logs = noise.log_density(np.linalg.norm(output - candidates, axis=1))[None]
    return place_attacks.posterior_attack(logs, candidates)


def best_disk(noise: PlateauNoise) -> Callable[[Published], tuple[Array, float]]:
    """The optimal attack on the one output of home; far from the city's border it guesses the output itself."""

    def attack(seen: Published) -> tuple[Array, float]:
        output = home_output(seen)
        if (np.abs(output) <= HALF - noise.plateau - 8 / noise.epsilon).all():
            return output, noise.probability_within(FOUND)
        return home_posterior(noise, output, FINE).best_disk(FOUND)

    return attack


def with_arrivals(home: PlateauNoise, others: PlateauNoise) -> Attack:
    """The same, and how long people are on the way to work, from when they arrive and what is usual."""

    def attack(seen: Published) -> Array:
        inference = home_posterior(home, home_output(seen), COARSE)
        hour, weekday = seen.times % DAY / HOUR, seen.times // DAY % 7 < 5
        office = (hour >= 10) & (hour < 16) & weekday
        outputs, counts = np.unique(seen.outputs[office], return_counts=True)
        work_output = outputs[counts.argmax()]
        arrived = np.flatnonzero((np.diff(seen.outputs) != 0) & (seen.outputs[1:] == work_output)) + 1
        arrivals = hour[arrived][(hour[arrived] > 6) & (hour[arrived] < 11) & weekday[arrived]]
        if len(arrivals) == 0:
            return inference.best_disk(FOUND)[0]
        travelled = (arrivals.mean() - TICK / 2 / HOUR - DEPARTURE) * SPEED
        error = DEPARTURE_ERROR * SPEED / np.sqrt(len(arrivals))
        work = seen.positions[seen.outputs == work_output][0]
        works = lattice(work, others.plateau + 5 / others.epsilon, max(0.1, 0.5 / others.epsilon))
        weights = np.exp(others.log_density(np.linalg.norm(work - works, axis=1)))
        distances = np.linalg.norm(inference.candidates[:, None] - works, axis=2)
        likelihood = np.exp(-(((distances - travelled) / error) ** 2) / 2) @ weights + 1e-300
        logs = np.log(inference.probabilities * likelihood + 1e-300)[None]
        return place_attacks.posterior_attack(logs, inference.candidates).best_disk(FOUND)[0]

    return attack


def rounded(positions: Array) -> Array:
    """Positions to ten metres: many are then equal, which makes clusters fast, and hardly moves their centres."""
    return np.round(positions, 2)


def stay_points(seen: Published) -> Array | None:
    return place_attacks.stay_point_attack(seen.times, rounded(seen.positions), radius=CLUSTER)


def most_frequent(seen: Published) -> Array | None:
    """The mean position of the most frequent output at night; without memoised outputs there is none."""
    nights = at_night(seen) & (seen.outputs >= 0)
    if not nights.any():
        return None
    return np.asarray(
        seen.positions[nights & (seen.outputs == np.bincount(seen.outputs[nights]).argmax())].mean(axis=0)
    )


def holes(radius: float) -> Attack:
    return lambda seen: place_attacks.hole_attack(seen.times, seen.positions, radius=radius)


def rows() -> list[Row]:
    """All defences: those of the original, and frequent places."""
    laplace, plateau = PlateauNoise(5.0, 0.0), PlateauNoise.against_disks(10.0, radius=FOUND, probability=ALLOWED)
    steep, light = PlateauNoise.against_disks(20.0, radius=FOUND, probability=ALLOWED), PlateauNoise(20.0, 0.0)
    ours = (
        (laplace, laplace, "frequent places, planar Laplace, ε = 0.005/m"),
        (plateau, plateau, "frequent places, plateau noise, ε = 0.01/m"),
        (steep, steep, "frequent places, plateau noise, ε = 0.02/m"),
        (plateau, light, "plateau noise, ε = 0.01/m, for home; planar Laplace, ε = 0.02/m, for other places"),
    )
    return [
        Row("none", independent(np.inf)),
        *(
            Row(
                f"independent planar Laplace, ε = {epsilon / 1000:g}/m",
                independent(epsilon),
                {"averaging": averaging(epsilon)},
            )
            for epsilon in (10.0, 5.0)
        ),
        *(
            Row(
                f"sticky noise, ε = {epsilon / 1000:g}/m",
                sticky(epsilon),
                {"averaging": averaging_cells(epsilon)},
                repeats=REPEATS,
            )
            for epsilon in (10.0, 5.0)
        ),
        Row("home zone 300 m", zone(0.3, 0.3), {"hole": holes(0.3)}),
        Row("home zone 600 m", zone(0.6, 0.6), {"hole": holes(0.6)}),
        Row("home zone, random 300 to 1500 m", zone(0.3, 1.5), {"hole": holes(0.9)}),
        Row("home zone 600 m, planar Laplace outside, ε = 0.01/m", zone(0.6, 0.6, 10.0), {"hole": holes(0.6)}),
        *(
            Row(
                name,
                frequent_places(home, others),
                {"arrivals": with_arrivals(home, others)},
                best_disk(home),
                repeats=REPEATS,
            )
            for home, others, name in ours
        ),
        Row("blind guess", blind),
    ]


def stays(positions: Array) -> Array:
    return place_attacks.stay_points(rounded(positions), radius=CLUSTER, least=6).centres


def measured(row: Row, user: Person, true_stays: Array) -> dict[str, Any]:
    """One defence for one person: the distance of each attack's guess from home, stay recall, and cost."""
    seen = row.defend(user)
    attacks: dict[str, Attack] = {"stay points": stay_points, "most frequent": most_frequent, **row.attacks}
    guesses = {name: attack(seen) for name, attack in attacks.items()}
    published = stays(seen.positions)
    nearest = np.linalg.norm(true_stays[:, None] - published, axis=2).min(axis=1, initial=np.inf)
    at = np.searchsorted(user.times, seen.times)
    moved = np.linalg.norm(user.positions[at] - seen.positions, axis=1)
    values: dict[str, Any] = {
        "misses": {
            name: np.inf if guess is None else float(np.linalg.norm(guess - user.home))
            for name, guess in guesses.items()
        },
        "recall": float((nearest <= RECALLED).mean()),
        "cost": float(moved.mean()),
        "cost_at_places": float(moved[user.visits[at] >= 0].mean()),
        "published": len(seen.times) / len(user.times),
    }
    if row.best_disk is not None:
        guess, probability = row.best_disk(seen)
        values["misses"]["posterior"] = float(np.linalg.norm(guess - user.home))
        values["posterior"] = probability
    return values


def summary(name: str, people: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares of homes found by each attack, and means over people."""
    misses = {attack: np.array([each["misses"][attack] for each in people]) for attack in people[0]["misses"]}
    found = {attack: float((values <= FOUND).mean()) for attack, values in misses.items()}
    best = max(found, key=lambda attack: found[attack])
    posterior = [each["posterior"] for each in people if "posterior" in each]
    return {
        "name": name,
        "found_by": found,
        "best_attack": best,
        "found": found[best],
        "standard_error": float(np.sqrt(found[best] * (1 - found[best]) / len(people))),
        "found_100_m": max(float((values <= 0.1).mean()) for values in misses.values()),
        "expected_by_posterior": float(np.mean(posterior)) if posterior else None,
        **{
            key: float(np.mean([each[key] for each in people]))
            for key in ("recall", "cost", "cost_at_places", "published")
        },
    }


def by_weeks(count: int) -> list[dict[str, Any]]:
    """Homes found by the posterior given more and more weeks."""
    noise = PlateauNoise.against_disks(10.0, radius=FOUND, probability=ALLOWED)
    defences: dict[str, tuple[Callable[[Person], Published], Attack]] = {
        f"independent planar Laplace, ε = {epsilon / 1000:g}/m": (independent(epsilon), averaging(epsilon, most=10_000))
        for epsilon in (10.0, 1.0, 0.3)
    }
    attack_one = best_disk(noise)
    defences["frequent places, plateau noise, ε = 0.01/m"] = (
        frequent_places(noise, noise),
        lambda seen: attack_one(seen)[0],
    )
    table = []
    for name, (defend, attack) in defences.items():
        repeats = 20 if name.startswith("frequent") else 1
        hits = []
        for number in range(count):
            user = person(number, 56)
            for _ in range(repeats):
                seen = defend(user)
                parts = [seen.times < days * DAY for days in (1, 7, 28, 56)]
                guesses = [
                    attack(Published(seen.times[part], seen.positions[part], seen.outputs[part])) for part in parts
                ]
                hits.append(
                    [guess is not None and bool(np.linalg.norm(guess - user.home) <= FOUND) for guess in guesses]
                )
        table.append({"name": name, "found": np.mean(hits, axis=0).tolist()})
    return table


def percent(value: float) -> str:
    return f"{value:.1%}" if 0 < value < 0.01 else f"{value:.0%}"


def lines_of(results: dict[str, Any]) -> list[str]:
    """The table; distances in metres, and home's optimal attack where one output decides."""
    lines = [
        "| defence | homes found within 200 m | one output allows | within 100 m | stays recalled | "
        "metres, at places | metres, all fixes |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        error = f"\u00a0±\u00a0{row['standard_error']:.0%}" if row["standard_error"] >= 0.005 else ""
        expected = row["expected_by_posterior"]
        cells = [
            row["name"],
            f"{percent(row['found'])}{error}",
            "" if expected is None else f"{expected:.1%}",
            percent(row["found_100_m"]),
            percent(row["recall"]),
            f"{row['cost_at_places'] * 1000:.0f}",
            f"{row['cost'] * 1000:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def week_lines(results: dict[str, Any]) -> list[str]:
    lines = ["| defence | 1 day | 1 week | 4 weeks | 8 weeks |", "|---|---|---|---|---|"]
    lines += [f"| {row['name']} | {' | '.join(map(percent, row['found']))} |" for row in results["weeks"]]
    return lines


def main() -> None:
    """Measure all defences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="30 people, and nothing is written")
    parser.add_argument("--people", type=int, default=300, help="number of people")
    parser.add_argument("--days", type=int, default=14, help="days of each person")
    parser.add_argument("--rows", help="numbers of the rows to measure, or weeks, by commas; others keep their numbers")
    options = parser.parse_args()
    count = 30 if options.quick else options.people
    users = [person(number, options.days) for number in range(count)]
    true_stays = [stays(user.positions) for user in users]
    measured_rows = {}
    for number, row in enumerate(rows()):
        if options.rows is None or str(number) in options.rows.split(","):
            people = [
                measured(row, user, each)
                for user, each in zip(users, true_stays, strict=True)
                for _ in range(1 if options.quick else row.repeats)
            ]
            measured_rows[row.name] = summary(row.name, people)
            print(lines_of({"rows": [measured_rows[row.name]]})[-1], measured_rows[row.name]["found_by"], flush=True)
    again = options.rows is None or "weeks" in options.rows.split(",")
    weeks = by_weeks(10 if options.quick else 60) if again else None
    if options.quick:
        return
    path = RESULTS / "weeks.json"
    known = json.loads(path.read_text()) if path.exists() else {"rows": [], "weeks": []}
    measured_rows = {row["name"]: row for row in known["rows"]} | measured_rows
    results: dict[str, Any] = {
        "people": count,
        "days": options.days,
        "allowed": ALLOWED,
        "rows": [measured_rows[row.name] for row in rows() if row.name in measured_rows],
        "weeks": known["weeks"] if weeks is None else weeks,
    }
    heading = f"{count} people, {options.days} days, a fix every five minutes. Allowed by ε = 0.005/m: {ALLOWED:.1%}."
    (RESULTS / "weeks.json").write_text(json.dumps(results, indent=1) + "\n")
    page = ["# Homes found after weeks of sharing", "", heading, "", *lines_of(results), "", *week_lines(results), ""]
    (RESULTS / "weeks.md").write_text("\n".join(page))
    if PAGE.exists():
        replace_table(PAGE, "homes", lines_of(results))
        replace_table(PAGE, "weeks", week_lines(results))


if __name__ == "__main__":
    main()
