"""Attacks on what a policy showed: on the present place, by a model of the person; and on home, without one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacygames import place_attacks, tracking
from privacygames.arrays import FloatArray, IntArray
from privacygames.place_attacks import NIGHT
from privacygames.policy_comparison.people import PersonDays
from privacygames.policy_comparison.replayed_policies import (
    CLUSTER_FIXES,
    CLUSTER_RADIUS,
    HOME_RADIUS,
    NOTHING,
    Fixes,
    Shown,
)
from privacygames.tracking import Observations

Mask = NDArray[np.bool_]

DAY, HOUR = 86_400.0, 3600.0

HABIT_HOURS = 3
"""Hours that habits are counted together for: an hour of its own has too few fixes in a few weeks."""

AT_NIGHT = 0.9
"""The probability that an adversary gives to somebody's being at home at night."""

MOST_NIGHT_OUTPUTS = 300
"""Independent outputs that the attack on home uses: more do not move its guess."""

COARSE_STEP, FINE_STEP, FINE_REACH = 0.25, 0.04, 0.5
"""Steps of the candidates for home in km, over the whole map and then around the best of these, and how far around."""


@dataclass(frozen=True, eq=False)
class PresentAttack:
    """What an attack says about the present place at each moment.

    Attributes:
        name: of the attack.
        cells: the most probable cell.
        guesses: the guess of least expected error, as the index of a cell.
    """

    name: str
    cells: IntArray
    guesses: IntArray


def present_attacks(
    person: PersonDays, earlier: Fixes, fixes: Fixes, shown: Shown | None, centres: FloatArray
) -> list[PresentAttack]:
    """The attacks on the present place by who knows the person's earlier days; without outputs, by habits alone.

    Args:
        person: with the model that was learned from the earlier days.
        earlier: the fixes of these days.
        fixes: the true ones of the days that were shared.
        shown: what a policy showed; None: nothing.
        centres: of the cells in km.
    """
    count = len(fixes.times)
    logs = np.zeros((count, len(centres))) if shown is None else shown.log_likelihoods(centres, np.arange(count))
    slots = np.array([person.mobility.slot(float(time)) for time in fixes.times])
    chain = tracking.filtering_attack(person.problem, person.mobility, Observations(logs, slots)).beliefs
    habits = _habits(earlier, len(centres))[_habit_of(fixes.local)]
    with np.errstate(divide="ignore"):
        by_hour = np.log(habits)
    beliefs = {"tracking": chain, "habits by hour": tracking.normalise(by_hour + logs)}
    if shown is not None and shown.memoised:
        beliefs["habits of each output"] = _place_beliefs(shown.place, logs, habits)
    return [
        PresentAttack(name, belief.argmax(axis=1), (belief @ person.problem.distance.T).argmin(axis=1))
        for name, belief in beliefs.items()
    ]


def home_attacks(fixes: Fixes, shown: Shown, size: tuple[float, float]) -> dict[str, FloatArray | None]:
    """Guesses of home by who knows the map, and nothing about the person.

    Args:
        fixes: the true ones; only their times are used.
        shown: what a policy showed.
        size: of the map in km.
    """
    seen = ~np.isnan(shown.xy[:, 0])
    if not seen.any():
        return {"nothing seen": None}
    times, outputs = fixes.local[seen], shown.xy[seen]
    common = place_attacks.most_frequent_output(times, outputs)
    night = at_night(fixes.local) & seen
    return {
        "stay points": place_attacks.stay_point_attack(
            times, np.round(outputs, 2), radius=CLUSTER_RADIUS, least=CLUSTER_FIXES
        ),
        "most frequent output": None if common is None else common[0],
        "mean of nights": place_attacks.mean_attack(shown.xy[night]) if night.any() else None,
        "posterior": _home_posterior(shown, night, size),
    }


def at_night(local: FloatArray) -> Mask:
    """Whether local times are between the hours at which most people are at home."""
    hour = local % DAY / HOUR
    return np.asarray((hour >= NIGHT[0]) | (hour < NIGHT[1]))


def _home_posterior(shown: Shown, night: Mask, size: tuple[float, float]) -> FloatArray | None:
    """The best disk for home given the outputs at night; of memoised ones the most frequent one counts, once."""
    informative = shown.drawn | ~np.isnan(shown.predicted[:, 0])
    moments = np.flatnonzero(night & informative)
    if len(moments) == 0:
        return None
    presence = AT_NIGHT
    if shown.memoised:
        places = shown.place[moments]
        moments, presence = moments[[int((places == np.bincount(places).argmax()).argmax())]], 1.0
    moments = moments[:: max(1, len(moments) // MOST_NIGHT_OUTPUTS)]
    coarse = _lattice((0.0, 0.0), size, COARSE_STEP)
    logs = shown.log_likelihoods(coarse, moments)
    centre = place_attacks.posterior_attack(logs, coarse, presence=presence).guess
    reach = max(FINE_REACH, shown.noise.plateau + HOME_RADIUS) if shown.memoised else FINE_REACH
    low, high = np.maximum(centre - reach, 0.0), np.minimum(centre + reach, size)
    fine = _lattice(low, high, FINE_STEP)
    logs = shown.log_likelihoods(fine, moments)
    return place_attacks.posterior_attack(logs, fine, presence=presence).best_disk(HOME_RADIUS)[0]


def _lattice(low: FloatArray | tuple[float, float], high: FloatArray | tuple[float, float], step: float) -> FloatArray:
    axes = [np.arange(start, end + step / 2, step) for start, end in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def _habit_of(local: FloatArray) -> IntArray:
    return np.asarray(local % DAY // (HABIT_HOURS * HOUR)).astype(np.int64)


def _habits(earlier: Fixes, cells: int) -> FloatArray:
    """The probability of each cell by the hour of the day, from earlier days, (hours, cells)."""
    counts = np.zeros((24 // HABIT_HOURS, cells))
    np.add.at(counts, (_habit_of(earlier.local), earlier.cells), 1.0)
    overall = counts.sum(axis=0) + 0.1
    counts += overall / overall.sum()
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _place_beliefs(places: IntArray, logs: FloatArray, habits: FloatArray) -> FloatArray:
    """The belief about the place of each memoised output: one draw, and the times at which it was and was not shown."""
    present = np.log(np.maximum(habits, np.finfo(float).tiny))
    beliefs = tracking.normalise(present)
    hidden = np.log1p(-habits.clip(max=1 - 1e-9))
    for place in np.unique(places[places != NOTHING]):
        at = places == place
        scores = logs[at.argmax()] + present[at].sum(axis=0) + hidden[~at & (places != NOTHING)].sum(axis=0)
        beliefs[at] = tracking.normalise(scores)
    return beliefs
