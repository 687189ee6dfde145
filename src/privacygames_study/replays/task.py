"""A task of a replay: release one person's days under one strategy, and attack the outputs."""

from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from privacygames import tracking
from privacygames.arrays import FloatArray, content_hash
from privacygames.beliefs import Prior
from privacygames.canonical import digest_of
from privacygames.errors import BudgetExceeded, PrivacyGamesError
from privacygames.jobs import Measurements
from privacygames.policy_comparison import PersonDays
from privacygames.releases import Release, Releases
from privacygames.spaces import Label
from privacygames.tracking import Observations, TrackingResult
from privacygames_study.replays.strategies import STRATEGIES, DailyBudget

FORMAT = 2
"""Version of replays and measurements, part of every key: results of another version are not reused."""

DONE = "done"
FRESH = ("drawn", "kept", "memoised")
HOURS = 24


@dataclass(frozen=True, eq=False)
class ReplayTask:
    """One person's days under one strategy, independent of all other tasks."""

    days: PersonDays
    strategy: str
    daily: DailyBudget
    seed: int

    @cached_property
    def key(self) -> str:
        """A digest of the task, under which its result is stored."""
        person = self.days
        settings = (FORMAT, self.strategy, asdict(self.daily), self.seed, person.mobility.fingerprint, person.home)
        matrices = (person.problem.prior.probabilities, person.problem.cost, person.problem.distinguishability)
        arrays = (*matrices, person.problem.distance, person.cells, person.times, person.hours)
        return digest_of("replay", *settings, *map(content_hash, arrays))[:32]

    def run(self) -> Measurements:
        """Release every request in order, then attack the outputs."""
        try:
            return _measured(self)
        except PrivacyGamesError as error:
            return {"status": f"failed: {type(error).__name__}"}


def _measured(job: ReplayTask) -> Measurements:
    person = job.days
    generator = np.random.default_rng([job.seed, int(job.key[:8], 16)])
    releases = STRATEGIES[job.strategy](person.problem, person.mobility, job.daily, generator)
    outputs = [_release_or_none(releases, person, at) for at in range(len(person.cells))]
    observations = _observations(releases, person, outputs)
    positions = [None if each is None else person.problem.observables.index(each.observable) for each in outputs]
    pairs = zip(positions, person.cells, strict=True)
    costs = np.array([np.nan if o is None else person.problem.cost[o, s] for o, s in pairs])
    spent = np.array([0.0 if each is None else each.balances[-1].charged for each in outputs])  # in the daily budget
    now, past = (
        attack(person.problem, person.mobility, observations)
        for attack in (tracking.filtering_attack, tracking.smoothing_attack)
    )
    path = tracking.viterbi_attack(person.problem, person.mobility, observations)
    blind = tracking.filtering_attack(person.problem, person.mobility, _no_observations(observations))
    fresh = np.array([each is not None and each.source in FRESH for each in outputs])
    columns = {"now": _errors(person, now), "past": _errors(person, past), "cost": costs, "spent": spent}
    model_is_known = releases.policy.charging == "releases" or person.mobility.is_still
    per_day = np.bincount(person.days, weights=spent)
    return {
        "status": DONE,
        "requests": len(outputs),
        "days": len(per_day),
        "answered": float(fresh.mean()),
        "kept": float(np.mean([each is not None and each.source == "kept" for each in outputs])),
        "cost": _mean(costs),
        "spent_a_day": float(per_day.mean()),
        "now": float(columns["now"].mean()),
        "now_expected": float(now.errors.mean()) if model_is_known else None,
        "past": float(columns["past"].mean()),
        "past_expected": float(past.errors.mean()) if model_is_known else None,
        "path": float(_errors(person, path).mean()),
        "blind": float(_errors(person, blind).mean()),
        **_home(job, releases, observations, outputs),
        **_by_hour(person, columns),
    }


def _release_or_none(releases: Releases, person: PersonDays, at: int) -> Release[Label] | None:
    try:
        return releases.release(person.problem.space.labels[person.cells[at]], at=float(person.times[at]))
    except BudgetExceeded:
        return None


def _observations(releases: Releases, person: PersonDays, outputs: list[Release[Label] | None]) -> Observations:
    """The adversary's observations: a likelihood for every request, constant if there was no informative output.

    Memoised outputs are treated as independent draws: an attack, but not the optimal one, which is not known.
    """
    rows = np.zeros((len(outputs), len(person.problem.space)))
    stored = iter(releases.ledger.likelihoods()[2])
    for at, output in enumerate(outputs):
        if output is None:
            continue
        row = next(stored)
        rows[at] = row if row is not None else _column(releases, output)
    slots = [person.mobility.slot(float(time)) for time in person.times]
    return Observations(rows, np.array(slots))


def _column(releases: Releases, output: Release[Label]) -> FloatArray:
    choice = releases.preview(at=output.time).choice
    if choice is None:
        return np.zeros(len(releases.problem.space))
    column = choice.mechanism.probabilities[:, choice.mechanism.observables.index(output.observable)]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(column))


def _no_observations(observations: Observations) -> Observations:
    return Observations(np.zeros_like(observations.log_likelihoods), observations.slots)


def _errors(person: PersonDays, track: TrackingResult) -> FloatArray:
    """The true error of an attack at each request."""
    return person.problem.distance[track.guesses, person.cells]


def _home(
    job: ReplayTask, releases: Releases, observations: Observations, outputs: list[Release[Label] | None]
) -> Measurements:
    """The distance of the averaging attack from home after each day, for an adversary without prior knowledge.

    They treat all outputs at night as outputs for one place. Of memoised outputs they use the most frequent one, once.
    """
    person = job.days
    if person.home is None:
        return {"home": None}
    night = person.at_night
    stranger = person.problem.with_prior(Prior.uniform(person.problem.space))
    errors_by_day: Measurements = {}
    for day in range(int(person.days.max()) + 1):
        seen = np.flatnonzero(night & (person.days <= day))
        rows = observations.log_likelihoods[seen]
        if releases.policy.charging == "places" and len(seen):
            observables = [each.observable for each in (outputs[at] for at in seen) if each is not None]
            commonest = max(dict.fromkeys(observables), key=observables.count)  # the first one if several tie
            rows = rows[[observables.index(commonest)]]
        error = float((stranger.distance @ stranger.prior.probabilities).min())
        if len(rows):
            guess = tracking.averaging_attack(
                stranger, Observations(rows, np.zeros(len(rows), dtype=np.int64))
            ).guesses[-1]
            error = float(person.problem.distance[guess, person.home])
        errors_by_day[f"home after {day + 1}"] = error
    return errors_by_day | {"home": error}


def _by_hour(person: PersonDays, columns: dict[str, FloatArray]) -> Measurements:
    """Sums over the requests of each hour of the day, and the number of these requests."""
    sums: Measurements = {}
    for hour in range(HOURS):
        in_hour = person.hours == hour
        sums[f"requests at {hour}"] = int(in_hour.sum())
        for name, values in columns.items():
            sums[f"{name} at {hour}"] = float(np.nansum(values[in_hour]))
    return sums


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
