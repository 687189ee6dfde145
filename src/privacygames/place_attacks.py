"""Attacks on weeks of published positions: where somebody's home, or another place they return to, is.

Points are rows of coordinates in one unit of distance, such as kilometres; times are seconds since a local midnight
(unix seconds plus the time zone's offset). Attacks under a Markov model are in :mod:`privacygames.tracking`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats, freeze, require_nonnegative
from privacygames.errors import InvalidProblem
from privacygames.validation import is_integer, is_number, require_sides

__all__ = [
    "PlaceInference",
    "StayPoints",
    "disk_bound",
    "hole_attack",
    "impossible_moves",
    "mean_attack",
    "memoised_posterior_attack",
    "most_frequent_output",
    "posterior_attack",
    "presence_at",
    "stay_point_attack",
    "stay_points",
]


def __dir__() -> list[str]:
    return __all__


DAY, HOUR = 86_400, 3600

NIGHT = (22.0, 6.0)
"""Hours between which most people are at home."""

RADII = 400
"""Radii around a disk that a bound is the least of: neighbours differ by a few per cent, and the bound by less."""

REWEIGHTINGS = 20
"""Rounds of reweighted least squares: the weights change by less than a thousandth afterwards."""


@dataclass(frozen=True, eq=False)
class PlaceInference:
    """What an adversary believes about one place after many outputs.

    Attributes:
        candidates: the points where the place may be, (candidates, axes).
        probabilities: of each of them.

    >>> line = [[0.0], [1.0], [2.0]]
    >>> inference = pg.place_attacks.posterior_attack(np.log([[0.5, 0.3, 0.2]]), line)
    >>> inference, inference.guess.tolist(), inference.error
    (PlaceInference(3 candidates, expected error 0.7), [0.0], 0.7)
    """

    candidates: FloatArray
    probabilities: FloatArray

    @property
    def guess(self) -> FloatArray:
        """The most probable candidate."""
        return np.asarray(self.candidates[self.probabilities.argmax()])

    @property
    def error(self) -> float:
        """The expected distance of the most probable candidate from the place."""
        return float(np.linalg.norm(self.candidates - self.guess, axis=1) @ self.probabilities)

    def best_disk(self, radius: float) -> tuple[FloatArray, float]:
        """The candidate that most probably has the place within a radius, and that probability.

        Args:
            radius: in the unit of distances.

        >>> inference = pg.place_attacks.posterior_attack(np.log([[0.4, 0.3, 0.3]]), [[0.0], [4.0], [5.0]])
        >>> centre, probability = inference.best_disk(1.0)
        >>> centre.tolist(), round(probability, 6)
        ([4.0], 0.6)
        """
        from scipy.spatial import cKDTree

        radius = _positive(radius, "the radius")
        tree = cKDTree(self.candidates)
        pairs = tree.query_pairs(radius, output_type="ndarray")
        inside = self.probabilities.copy()
        np.add.at(inside, pairs[:, 0], self.probabilities[pairs[:, 1]])
        np.add.at(inside, pairs[:, 1], self.probabilities[pairs[:, 0]])
        best = int(inside.argmax())
        return np.asarray(self.candidates[best]), float(inside[best])

    def __repr__(self) -> str:
        return f"PlaceInference({len(self.candidates)} candidates, expected error {self.error:.4g})"


@dataclass(frozen=True, eq=False)
class StayPoints:
    """Clusters of published positions.

    Attributes:
        centres: the mean position of each cluster, (clusters, axes).
        labels: the cluster of each position; -1: none.

    >>> stays = pg.place_attacks.stay_points([[0.0], [0.1], [0.2], [5.0]], radius=0.15, least=2)
    >>> stays.centres.round(6).tolist(), stays.labels.tolist()
    ([[0.1]], [0, 0, 0, -1])
    """

    centres: FloatArray
    labels: IntArray


def mean_attack(outputs: ArrayLike) -> FloatArray:
    """The mean of all outputs of one place: of independent noise around it, it has the place as its limit.

    >>> pg.place_attacks.mean_attack([[0.0, 0.0], [2.0, 1.0]]).tolist()
    [1.0, 0.5]
    """
    return np.asarray(_points(outputs).mean(axis=0))


def posterior_attack(
    log_likelihoods: ArrayLike, candidates: ArrayLike, *, prior: ArrayLike | None = None, presence: ArrayLike = 1.0
) -> PlaceInference:
    r"""The posterior of a place given independent outputs: the optimal attack on it, by Bayes' rule.

    At each release the user is at the place with a probability that their habits determine, and anywhere, by the prior,
    otherwise: :math:`P(c \mid o) ∝ π(c) \prod_t \big(h_t\,p(o_t|c) + (1 - h_t) \sum_x π(x)\,p(o_t|x)\big)`.

    Args:
        log_likelihoods: ln p(o|c) of each release for each candidate, (releases, candidates).
        candidates: the points where the place may be, (candidates, axes).
        prior: of the candidates; by default all are equally likely.
        presence: the probability of being at the place at each release, as :func:`presence_at` gives it, or one number.

    >>> outputs, candidates = np.array([0.9, 1.4, 0.8]), np.array([[0.0], [1.0], [2.0]])
    >>> inference = pg.place_attacks.posterior_attack(-2 * np.abs(outputs[:, None] - candidates.T), candidates)
    >>> inference.guess.tolist(), inference.probabilities.round(3).tolist()
    ([1.0], [0.008, 0.98, 0.012])
    """
    points, logs, log_prior = _posterior_arguments(log_likelihoods, candidates, prior)
    here = np.broadcast_to(_presence(presence), len(logs))[:, None]
    if (here < 1).any():
        elsewhere = _log_sum(logs + log_prior)[:, None]
        with np.errstate(divide="ignore"):
            logs = np.logaddexp(np.log(here) + logs, np.log1p(-here) + elsewhere)
    return PlaceInference(points, freeze(_normalised(logs.sum(axis=0) + log_prior)))


def memoised_posterior_attack(
    log_likelihoods: ArrayLike,
    candidates: ArrayLike,
    outputs: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    presence: ArrayLike = 1.0,
) -> PlaceInference:
    r"""The posterior of a place given memoised outputs, one of which is its own; which one, habits tell.

    Each distinct output counts as one draw for a place of its own. The output v is the place's with a probability
    proportional to :math:`\prod_{t: o_t = v} h_t \prod_{t: o_t ≠ v} (1 - h_t)`, and other places lie anywhere, by the
    prior.

    Args:
        log_likelihoods: as in :func:`posterior_attack`.
        candidates: likewise.
        outputs: the index of each release's output; equal indices are one draw.
        prior: as in :func:`posterior_attack`.
        presence: likewise.

    >>> outputs, candidates = np.array([1, 1, 1, 1]), np.array([[0.0], [1.0], [2.0]])
    >>> logs = -np.abs(outputs[:, None] - candidates.T)
    >>> inference = pg.place_attacks.memoised_posterior_attack(logs, candidates, outputs)
    >>> inference.probabilities.round(3).tolist()  # as after one output
    [0.212, 0.576, 0.212]
    """
    points, logs, log_prior = _posterior_arguments(log_likelihoods, candidates, prior)
    indices = np.asarray(outputs)
    if indices.shape != logs.shape[:1]:
        raise InvalidProblem("give the index of the output of each release")
    _, first, which = np.unique(indices, return_index=True, return_inverse=True)
    here = np.broadcast_to(_presence(presence), len(logs))
    with np.errstate(divide="ignore"):
        log_here, log_away = np.log(here), np.log1p(-here)
    own = which == np.arange(len(first))[:, None]
    log_own = np.where(own, log_here, log_away).sum(axis=1)
    one_draw = logs[first] - _log_sum(logs[first] + log_prior)[:, None]
    if not log_own.max() > -np.inf:
        raise InvalidProblem("with these habits no output can be the place's own")
    mixed = np.logaddexp.reduce(log_own[:, None] + one_draw, axis=0)
    return PlaceInference(points, freeze(_normalised(mixed + log_prior)))


def presence_at(times: ArrayLike, by_hour: ArrayLike) -> FloatArray:
    """The probability of being at a place at each time, from habits by hour of the day.

    Args:
        times: seconds since a local midnight.
        by_hour: the probability for each hour of the day, 24 numbers.

    >>> at_home = [0.95] * 7 + [0.4] * 11 + [0.8] * 6
    >>> pg.place_attacks.presence_at([3 * 3600, 12 * 3600], at_home).tolist()
    [0.95, 0.4]
    """
    habits = _presence(by_hour)
    if habits.shape != (24,):
        raise InvalidProblem("habits are a probability for each of the 24 hours of the day")
    return np.asarray(habits[(_times(times) // HOUR % 24).astype(np.int64)])


def stay_points(points: ArrayLike, *, radius: float, least: int) -> StayPoints:
    """Density-based clusters of positions (DBSCAN, Ester et al. 1996): the places where somebody stays.

    A position is a core if at least ``least`` positions, itself included, lie within ``radius``; cores within the
    radius of each other are one cluster, and other positions belong to a cluster if one of its cores is that near.

    Args:
        points: published positions, (positions, axes).
        radius: in the unit of distances.
        least: number of positions that make a core.

    >>> pg.place_attacks.stay_points(np.zeros((4, 2)), radius=0.1, least=5).centres.shape
    (0, 2)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    radius = _positive(radius, "the radius")
    if not is_integer(least):
        raise InvalidProblem("least must be a whole number, 1 or more")
    positions, which, copies = np.unique(_points(points), axis=0, return_inverse=True, return_counts=True)
    count = len(positions)
    pairs = cKDTree(positions).query_pairs(radius, output_type="ndarray")
    near = np.bincount(pairs.ravel(), copies[pairs[:, ::-1]].ravel(), minlength=count)
    core = copies + near >= least
    edges = pairs[core[pairs].all(axis=1)]
    graph = coo_array((np.ones(len(edges), dtype=np.int8), edges.T), shape=(count, count))
    components = connected_components(graph, directed=False)[1]
    labels = np.full(count, -1, dtype=np.int64)
    labels[core] = np.unique(components[core], return_inverse=True)[1]
    for one, other in ((0, 1), (1, 0)):
        border = pairs[core[pairs[:, one]] & ~core[pairs[:, other]]]
        labels[border[:, other]] = labels[border[:, one]]
    inside, clusters = labels >= 0, int(labels.max(initial=-1)) + 1
    sizes = np.bincount(labels[inside], copies[inside], minlength=clusters)
    sums = [np.bincount(labels[inside], (copies * axis)[inside], minlength=clusters) for axis in positions.T]
    return StayPoints(freeze(np.stack(sums, axis=1) / sizes[:, None]), freeze(labels[which.ravel()]))


def stay_point_attack(
    times: ArrayLike, points: ArrayLike, *, radius: float, least: int = 6, hours: tuple[float, float] = NIGHT
) -> FloatArray | None:
    """The centre of the cluster with most positions at certain hours, such as at night; None if there is none.

    Args:
        times: seconds since a local midnight, one for each position.
        points: published positions, (positions, axes).
        radius: as in :func:`stay_points`.
        least: likewise.
        hours: the first and the last hour, which may lie after midnight.

    >>> nights = np.arange(20) * 600.0
    >>> pg.place_attacks.stay_point_attack(nights, np.tile([2.0, 1.0], (20, 1)), radius=0.1).tolist()
    [2.0, 1.0]
    """
    stays = stay_points(points, radius=radius, least=least)
    at_hours = _during(_times(times, len(stays.labels)), hours) & (stays.labels >= 0)
    if not at_hours.any():
        return None
    return np.asarray(stays.centres[np.bincount(stays.labels[at_hours]).argmax()])


def most_frequent_output(
    times: ArrayLike, outputs: ArrayLike, *, hours: tuple[float, float] = NIGHT
) -> tuple[FloatArray, float] | None:
    """The most frequent output at certain hours, and its share of the outputs then; None without any.

    If the same place always has the same output, this is the home's, however much noise it has.

    Args:
        times: seconds since a local midnight, one for each output.
        outputs: (outputs, axes).
        hours: the first and the last hour, which may lie after midnight.

    >>> outputs = [[0.0], [3.0], [3.0], [0.5]]
    >>> output, share = pg.place_attacks.most_frequent_output([0, 600, 1200, 43200], outputs)
    >>> output.tolist(), round(share, 3)
    ([3.0], 0.667)
    """
    given = _points(outputs)
    nightly = given[_during(_times(times, len(given)), hours)]
    if len(nightly) == 0:
        return None
    distinct, counts = np.unique(nightly, axis=0, return_counts=True)
    return np.asarray(distinct[counts.argmax()]), float(counts.max() / len(nightly))


def hole_attack(
    times: ArrayLike, points: ArrayLike, *, radius: float, gap: float = 4 * HOUR, noise: float = 0.03
) -> FloatArray | None:
    """The centre of a zone around a home in which no position is published; None without gaps.

    Somebody who leaves home, or comes back, passes the edge of the zone on the way: the line through the two published
    positions next to a long gap leads home. Along the line home is the zone's radius, and up to one step between two
    positions, away. Least squares over all gaps give the centre; lines that miss it get less weight in every round.

    Args:
        times: seconds, one for each position, in order.
        points: published positions, (positions, 2).
        radius: of the zone; its mean where it varies.
        gap: seconds without a position that count as a stay in the zone.
        noise: standard deviation of positions from a straight way, in the unit of distances.

    >>> way_out, way_in = [[1.0, 0.0], [2.0, 0.0]], [[0.0, 2.0], [0.0, 1.0]]
    >>> times = [0, 300, 900, 1200, 40000, 40300, 41000, 41300]
    >>> pg.place_attacks.hole_attack(times, [*way_out, *way_in, *way_out, *way_in], radius=0.5).round(2).tolist()
    [0.0, 0.0]
    """
    positions = _points(points)
    when = _times(times, len(positions))
    if positions.shape[1] != 2 or (np.diff(when) < 0).any():
        raise InvalidProblem("a hole attack needs positions in the plane, in the order of their times")
    radius, noise = _positive(radius, "the radius"), _positive(noise, "the noise")
    gaps = np.flatnonzero(np.diff(when) > gap)
    nearest, next_ones = np.concatenate([gaps, gaps + 1]), np.concatenate([gaps - 1, gaps + 2])
    inside = (next_ones >= 0) & (next_ones < len(when))
    edges = positions[nearest[inside]]
    ways = edges - positions[next_ones[inside]]
    lengths = np.linalg.norm(ways, axis=1)
    edges, ways, lengths = edges[lengths > noise], ways[lengths > noise], lengths[lengths > noise]
    if len(edges) == 0:
        return None
    along = ways / lengths[:, None]
    step = float(np.median(lengths))
    means = edges + along * (radius + step / 2)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    precisions = np.einsum("ni,nj->nij", across, across) / noise**2
    precisions += np.einsum("ni,nj->nij", along, along) * (12 / step**2)
    trust = np.ones(len(edges))
    centre = np.median(means, axis=0)
    for _ in range(REWEIGHTINGS):
        weighted = precisions * trust[:, None, None]
        centre = np.linalg.solve(weighted.sum(axis=0), np.einsum("nij,nj->i", weighted, means))
        misses = means - centre
        trust = 1 / (1 + np.einsum("ni,nij,nj->n", misses, precisions, misses) / 2)
    return np.asarray(centre)


def impossible_moves(times: ArrayLike, points: ArrayLike, *, speed: float) -> IntArray:
    """The indices of published positions that nobody could have reached in time from the one before.

    Such a pair shows that at least one of both is far from the truth, and an adversary who knows the fastest way to
    travel can exclude true positions.

    Args:
        times: seconds, one for each position, in order.
        points: published positions, (positions, axes).
        speed: the largest speed, in the unit of distances per hour.

    >>> pg.place_attacks.impossible_moves([0, 600, 1200], [[0.0, 0.0], [50.0, 0.0], [51.0, 0.0]], speed=130).tolist()
    [1]
    """
    positions = _points(points)
    hours = np.diff(_times(times, len(positions))) / HOUR
    if (hours < 0).any():
        raise InvalidProblem("positions must be in the order of their times")
    moved = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    return np.flatnonzero(moved > _positive(speed, "the speed") * hours) + 1


def disk_bound(epsilon: float, radius: float, *, sides: tuple[float, float] | None = None) -> float:
    r"""The largest probability with which any attack finds a point within a radius, after one output.

    It holds for every mechanism that guarantees ε between any two points, if all points are equally likely beforehand:
    in the plane :math:`G(εr) = 1 - (1 + εr)e^{-εr}`, which planar Laplace noise attains. On a map of width a and height
    b that the adversary knows it is at most :math:`G(εr)/G(ερ) \cdot (1 + 2ρ/a)(1 + 2ρ/b)`, whatever ρ
    (docs/theory/weeks.md): the least of these. For noise, :meth:`privacygames.baselines.PlateauNoise.largest_chance` is
    closer.

    Args:
        epsilon: ε per unit of distance.
        radius: in the same unit.
        sides: width and height of a map that the adversary knows the point to be on; by default the plane.

    >>> round(pg.place_attacks.disk_bound(5.0, 0.2), 4), round(pg.place_attacks.disk_bound(10.0, 0.2), 4)
    (0.2642, 0.594)
    >>> round(pg.place_attacks.disk_bound(5.0, 0.2, sides=(16.0, 16.0)), 4)
    0.348
    """
    reach = _positive(epsilon, "epsilon") * _positive(radius, "the radius")
    if sides is None:
        return float(_inside(np.array(reach)))
    lengths = np.array(require_sides(sides))
    if radius >= lengths.min():
        return 1.0
    around = np.geomspace(radius, lengths.min(), RADII + 1)[1:]
    factors = np.minimum(2.0, 1 + 2 * around[:, None] / lengths).prod(axis=1)
    return min(float((_inside(np.array(reach)) / _inside(epsilon * around) * factors).min()), 1.0)


def _inside(reach: FloatArray) -> FloatArray:
    """The mass of planar Laplace noise within a radius, which is given in units of 1/ε."""
    return np.asarray(-np.expm1(-reach) - reach * np.exp(-reach))


def _posterior_arguments(
    log_likelihoods: ArrayLike, candidates: ArrayLike, prior: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The candidates, the log-likelihoods and the logarithms of the prior."""
    points = _points(candidates)
    logs = np.asarray(log_likelihoods, dtype=np.float64)
    if logs.ndim != 2 or logs.shape[1] != len(points) or len(logs) == 0 or not (logs < np.inf).all():
        raise InvalidProblem("log-likelihoods must be numbers or −∞, of shape (releases, candidates), and not empty")
    weights = np.ones(len(points)) if prior is None else prior
    known = require_nonnegative(weights, what="the prior", shape=(len(points),), meaning="(candidates,)")
    if not known.sum() > 0:
        raise InvalidProblem("the prior is zero everywhere")
    with np.errstate(divide="ignore"):
        return points, logs, np.log(known / known.sum())


def _normalised(logs: FloatArray) -> FloatArray:
    if not logs.max() > -np.inf:
        raise InvalidProblem("no candidate could have had these outputs")
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _log_sum(logs: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp.reduce(logs, axis=1))


def _presence(values: ArrayLike) -> FloatArray:
    presence = as_floats(values, "the presence")
    if not ((presence >= 0) & (presence <= 1)).all():
        raise InvalidProblem("the presence is a probability, from 0 to 1")
    return presence


def _during(times: FloatArray, hours: tuple[float, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether times are between two hours of the day."""
    hour, (first, last) = times % DAY / HOUR, hours
    return np.asarray((hour >= first) & (hour < last) if first <= last else (hour >= first) | (hour < last))


def _points(values: ArrayLike) -> FloatArray:
    points = as_floats(values, "the positions")
    if points.ndim != 2 or len(points) == 0 or not np.isfinite(points).all():
        raise InvalidProblem("positions must be rows of coordinates, (positions, axes), and not empty")
    return points


def _times(values: ArrayLike, count: int | None = None) -> FloatArray:
    times = as_floats(values, "the times")
    if times.ndim != 1 or (count is not None and len(times) != count) or not np.isfinite(times).all():
        raise InvalidProblem("give one time in seconds for each position")
    return times


def _positive(value: float, name: str) -> float:
    if not (is_number(value) and 0 < value < np.inf):
        raise InvalidProblem(f"{name} must be a positive number")
    return float(value)
