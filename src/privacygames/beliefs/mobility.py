"""Mobility: a Markov model of how a secret, and therefore a belief about it, changes over time."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from math import floor, isfinite
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import SMALLEST_POSITIVE, FloatArray, IntArray, freeze, require_nonnegative
from privacygames.beliefs.moves import SlottedVisits, extract_moves
from privacygames.beliefs.prior import SUM_TOLERANCE, Prior
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.spaces import Grid, Label, Space
from privacygames.time_zones import time_zone
from privacygames.validation import is_integer, is_number, require_choice, require_instance

Matrix = Any
"""A transition matrix: a dense array, or a SciPy CSR matrix if most entries are 0."""

Toward = Literal["prior", "neighbours"]
Timestamp = float | datetime

HOURS, HOUR = 24, 3600
MAX_SPARSE_DENSITY = 0.2
"""Share of non-zero entries up to which a matrix is stored sparse."""

MIN_SPARSE_SIZE = 64
"""Number of secrets from which a matrix may be stored sparse."""

MAX_DENSE_POWER_SIZE = 3000
"""Number of secrets up to which powers of the matrix are computed; beyond, a belief is advanced step by step."""

MAX_TIME = 1e11
"""Unix seconds of the year 5138. A larger number is in other units, and windows of time would be too short."""

MAX_SINGLE_STEPS = 16
"""Steps up to which a belief is advanced one by one rather than by powers of the matrix."""

MAX_HOURLY_STEPS = 1_000_000
"""Steps by the hour of the day that one call may advance: 19 years of ten minutes."""

NEAREST = 1 + 1e-9
"""Distances up to this factor of the smallest one belong to nearest neighbours; the rest is rounding."""


class Mobility(Value):
    """A Markov chain over secrets, homogeneous or by the hour of the day.

    Args:
        space: the secrets.
        matrix: P(x → y) in one step, (from, to), every row summing to 1; dense or SciPy sparse. Or 24 of them, for the
            steps that begin in each hour of the day.
        step: seconds per step. None: times are counted in steps.
        timezone: of the hours of the day, with 24 matrices.

    >>> weather = pg.Categories(["sun", "rain"])
    >>> chain = pg.Mobility(weather, [[0.9, 0.1], [0.5, 0.5]])
    >>> chain.advance(pg.Prior(weather, [1.0, 0.0]), steps=2)["rain"]
    0.14
    """

    space: Space
    matrices: tuple[Matrix, ...]
    step: float | None
    timezone: str

    def __init__(self, space: Space, matrix: Any, *, step: float | None = None, timezone: str = "UTC") -> None:
        require_instance(space, Space, "what a Mobility is over")
        if step is not None and not (is_number(step) and 0 < step < np.inf):
            raise InvalidProblem(f"step is {repr(step)[:40]}; it must be a positive number of seconds, or None")
        matrices = tuple(_validate_matrix(each, space) for each in _matrix_list(matrix))
        if len(matrices) not in (1, HOURS):
            raise InvalidProblem(f"there are {len(matrices)} matrices; give one, or {HOURS}: one per hour of the day")
        if len(matrices) == HOURS and step is None:
            raise InvalidProblem("matrices by the hour of the day need step: how many seconds a step takes")
        time_zone(timezone)
        self._fill(space=space, matrices=matrices, step=None if step is None else float(step), timezone=timezone)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.space, *self.fingerprint

    @cached_property
    def fingerprint(self) -> tuple[object, ...]:
        """Digests of the matrices, with step and time zone: equal for equal chains in every process."""
        return tuple(_hash(each) for each in self.matrices), self.step, self.timezone

    @classmethod
    def still(cls, space: Space) -> "Mobility":
        """The chain of a secret that does not change, such as an age, a home or a diagnosis.

        >>> pg.Mobility.still(pg.Numbers([20, 30])).is_still
        True
        """
        require_instance(space, Space, "what a Mobility is over")
        return cls(space, _identity(len(space)))

    @classmethod
    def from_visits(
        cls,
        space: Space,
        visits: SlottedVisits | Sequence[Label | None],
        user: str | None = None,
        *,
        smoothing: float = 1.0,
        toward: Toward = "prior",
        by_hour: bool = False,
        timezone: str = "UTC",
        within: float | None = None,
        step: float | None = None,
    ) -> "Mobility":
        """The chain estimated from a sequence of visits.

        Row x is (N(x,·) + smoothing·r_x) / (N(x) + smoothing), where N counts moves and r_x is the default
        distribution: each secret as often as it was visited (``"prior"``), or x itself and its nearest neighbours with
        equal probability (``"neighbours"``). A row without moves is r_x, also without smoothing.

        Args:
            space: the secrets.
            visits: :class:`privacygames.traces.Visits`, whose slots become steps; or labels, one per step, with None
                for unknown ones (moves from and to these do not count).
            user: whose visits, if there are several people's.
            smoothing: the number of moves that r_x counts for, in every row.
            toward: the default distribution r_x.
            by_hour: one matrix for each hour of the day; each row is smoothed toward that of the whole day.
            timezone: of the hours.
            within: as in :meth:`privacygames.traces.Visits.transitions`.
            step: seconds between labels; visits have their slot.

        >>> week = ["home", "work", "home", "work", "home", "home"]
        >>> chain = pg.Mobility.from_visits(pg.Categories(["home", "work"]), week, smoothing=0.0)
        >>> chain.transition(0, 1).round(2).tolist()
        [[0.33, 0.67], [1.0, 0.0]]
        """
        require_instance(space, Space, "what a Mobility is over")
        require_choice(toward, get_args(Toward), "toward")
        require_instance(by_hour, bool, "by_hour")
        if not (is_number(smoothing) and 0 <= smoothing < np.inf):
            raise InvalidProblem(f"smoothing is {repr(smoothing)[:40]}; it must be a number, 0 or more")
        moves = extract_moves(space, visits, user, within)
        if by_hour and moves.times is None:
            raise InvalidProblem("by_hour needs visits with times: privacygames.traces.Visits, not a list of labels")
        if step is not None and moves.slot is not None:
            raise InvalidProblem("step is for labels: visits in slots have their own")
        step = moves.slot if step is None else step
        default = _default_distributions(space, moves.visits, toward)
        day = _estimate_matrix(len(space), moves.before, moves.after, default, smoothing)
        if not by_hour or moves.times is None:
            return cls(space, day, step=step, timezone=timezone)
        zone, hours = time_zone(timezone), np.zeros(len(moves.before), dtype=np.int64)
        hours[:] = [datetime.fromtimestamp(int(time), zone).hour for time in moves.times]
        parts = [
            _estimate_matrix(len(space), moves.before[hours == hour], moves.after[hours == hour], day, smoothing)
            for hour in range(HOURS)
        ]
        return cls(space, parts, step=step, timezone=timezone)

    @cached_property
    def is_still(self) -> bool:
        """Whether the secret never changes."""
        return len(self.matrices) == 1 and _is_identity(_csr(self.matrices[0]))

    @property
    def by_hour(self) -> bool:
        """Whether steps depend on the hour of the day."""
        return len(self.matrices) > 1

    def slot(self, at: Timestamp) -> int:
        """The step of the chain that contains a time. Without a step in seconds, times count steps."""
        seconds = to_seconds(at)
        if isinstance(at, datetime) and self.step is None and not self.is_still:
            raise InvalidProblem("the mobility has no step in seconds, so times are counted in steps: give a number")
        return floor(seconds / (self.step or 1.0))

    def transition(self, start: int, steps: int) -> Matrix:
        """The transition matrix of ``steps`` steps from slot ``start`` on: a power, or a product over the hours."""
        if not is_integer(steps, minimum=0):
            raise InvalidProblem(f"steps is {repr(steps)[:40]}; it must be a whole number, 0 or more")
        if self.is_still or steps == 1:
            return self._at(start)
        if not self.by_hour:
            return _power(self.matrices[0], steps)
        product: Matrix = np.eye(len(self.space))
        for slot in range(start, start + steps):
            product = product @ self._at(slot)
        return np.asarray(product)

    def advance(self, belief: Prior, steps: int = 1, *, start: Timestamp | None = None) -> Prior:
        """The belief after some steps.

        Args:
            belief: over the same secrets.
            steps: number of steps, such as elapsed time divided by ``step``.
            start: the time of the belief; required if steps depend on the hour of the day.

        >>> ages = pg.Numbers([20, 30])
        >>> pg.Mobility.still(ages).advance(pg.Prior.uniform(ages), steps=10)[20]
        0.5
        """
        if require_instance(belief, Prior, "the belief").space != self.space:
            raise InvalidProblem("the belief is over other secrets than the mobility's")
        if start is None and self.by_hour:
            raise InvalidProblem("steps depend on the hour of the day here: give start, the time from which")
        if not is_integer(steps, minimum=0):
            raise InvalidProblem(f"steps is {repr(steps)[:40]}; it must be a whole number, 0 or more")
        slot = 0 if start is None else self.slot(start)
        weights = self.push_forward(belief.probabilities, slot, steps)
        return Prior(self.space, weights / weights.sum())

    def push_forward(self, weights: FloatArray, start: int, steps: int) -> FloatArray:
        """Weights at slot ``start`` advanced by some steps, w·P^steps, without checks or normalisation."""
        return self._propagate(weights, range(start, start + steps), lambda before, matrix: before @ matrix)

    def pull_back(self, weights: FloatArray, start: int, steps: int) -> FloatArray:
        """Weights ``steps`` after slot ``start`` carried back to it, P^steps·w, without checks or normalisation."""
        return self._propagate(weights, range(start + steps - 1, start - 1, -1), lambda before, matrix: matrix @ before)

    def _propagate(
        self, weights: FloatArray, slots: range, apply: Callable[[FloatArray, Matrix], FloatArray]
    ) -> FloatArray:
        steps = len(slots)
        if self.is_still or steps == 0:
            return weights
        if self.by_hour and steps > MAX_HOURLY_STEPS:
            raise InvalidProblem(
                f"{steps} steps have passed, hour by hour: are times in seconds? At most {MAX_HOURLY_STEPS}"
            )
        if not self.by_hour and steps > MAX_SINGLE_STEPS and len(self.space) <= MAX_DENSE_POWER_SIZE:
            for bit, matrix in enumerate(self._squares(steps.bit_length())):
                if steps >> bit & 1:
                    weights = np.asarray(apply(weights, matrix))
            return weights
        for slot in slots:
            before, weights = weights, np.asarray(apply(weights, self._at(slot)))
            if not self.by_hour and np.array_equal(before, weights):  # stationary: more steps change nothing
                break
        return weights

    def _at(self, slot: int) -> Matrix:
        return self.matrices[self.hour(slot) if self.by_hour else 0]

    def hour(self, slot: int) -> int:
        """The local hour of the day at which a step begins."""
        try:
            return datetime.fromtimestamp(slot * (self.step or 1.0), time_zone(self.timezone)).hour
        except (ValueError, OverflowError, OSError):
            raise InvalidProblem("a time is outside the calendar: give unix seconds, or a datetime") from None

    @cached_property
    def _powers(self) -> list[Matrix]:
        return [self.matrices[0]]

    def _squares(self, count: int) -> list[Matrix]:
        """P, P², P⁴, …, cached."""
        while len(self._powers) < count:
            last = self._powers[-1]
            dense = last.toarray() if _is_sparse(last) else last
            self._powers.append(dense @ dense)
        return self._powers[:count]

    def __repr__(self) -> str:
        kind = "still" if self.is_still else "by the hour of the day" if self.by_hour else "one matrix"
        step = "" if self.step is None else f", a step every {self.step:g} s"
        return f"Mobility({len(self.space)} secrets, {kind}{step})"


def to_seconds(at: Timestamp) -> float:
    """A time in seconds: unix seconds of a datetime, or the number itself."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidProblem("a time without a time zone could mean anything: give it one, such as UTC")
        return at.timestamp()
    if is_number(at) and isfinite(at):
        if abs(at) > MAX_TIME:
            raise InvalidProblem("a time is too far away for seconds: is it in milliseconds? Divide it by 1000")
        return float(at)
    raise InvalidProblem("a time must be a finite number or a datetime with a time zone")


def _csr(matrix: Any) -> Any:
    """A CSR matrix. SciPy is imported here only, since a verifier needs no mobility."""
    from scipy.sparse import csr_matrix

    return csr_matrix(matrix)


def _identity(size: int) -> Any:
    from scipy.sparse import identity

    return identity(size, format="csr")


def _is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "tocsr")


def _matrix_list(matrix: Any) -> list[Any]:
    if _is_sparse(matrix):
        return [matrix]
    if isinstance(matrix, np.ndarray) and matrix.ndim == 3:
        return list(matrix)
    parts = isinstance(matrix, list | tuple) and matrix
    if parts and all(_is_sparse(each) or np.ndim(each) == 2 for each in _as_arrays(matrix)):
        return list(matrix)
    return [matrix]


def _as_arrays(values: Iterable[Any]) -> list[Any]:
    """The items of a list as arrays; None for ragged ones, which validation then rejects."""
    arrays: list[Any] = []
    for each in values:
        try:
            arrays.append(each if _is_sparse(each) else np.asarray(each))
        except ValueError:
            arrays.append(None)
    return arrays


def _validate_matrix(matrix: Any, space: Space) -> Matrix:
    what, meaning, size = "the transition matrix", "(from, to)", len(space)
    if _is_sparse(matrix):
        rows = _csr(matrix)
        if rows.shape != (size, size):
            raise InvalidProblem(f"{what} has shape {rows.shape}, but {(size, size)} is needed: {meaning}")
        rows = rows.astype(np.float64).copy()
        rows.sum_duplicates()
        require_nonnegative(_flush_subnormals(rows.data), what=what, shape=rows.data.shape, meaning=meaning)
        rows.data = _flush_subnormals(rows.data)
    else:
        try:
            dense = _flush_subnormals(np.asarray(matrix, dtype=np.float64))
        except (TypeError, ValueError, OverflowError):
            raise InvalidProblem(f"{what} is not an array of numbers; give shape {(size, size)}: {meaning}") from None
        rows = require_nonnegative(dense, what=what, shape=(size, size), meaning=meaning)
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if (abs(sums - 1) > SUM_TOLERANCE).any():
        worst = int(abs(sums - 1).argmax())
        raise InvalidProblem(
            f"every row of {what} must sum to 1, since one goes somewhere; row {worst} sums to {sums[worst]:.9g}"
        )
    return _normalise(rows, sums)


def _normalise(rows: Matrix, sums: FloatArray) -> Matrix:
    """Rows normalised to sum to one within rounding, sparse where that saves work, and read-only."""
    sums = np.where(abs(sums - 1) <= 1e-12, 1.0, sums)
    scaled = _csr(rows) if _is_sparse(rows) else rows
    nonzero = scaled.nnz if _is_sparse(scaled) else np.count_nonzero(scaled)
    size = len(sums)
    store_sparse = size >= MIN_SPARSE_SIZE and nonzero <= MAX_SPARSE_DENSITY * size * size
    if store_sparse or (_is_sparse(scaled) and _is_identity(scaled)):
        sparse = _csr(scaled).multiply(1.0 / sums[:, None]).tocsr()
        sparse.eliminate_zeros()
        sparse.sort_indices()
        for part in (sparse.data, sparse.indices, sparse.indptr):
            part.flags.writeable = False
        return sparse
    dense = scaled.toarray() if _is_sparse(scaled) else scaled
    return freeze(np.asarray(dense / sums[:, None]))


def _flush_subnormals(values: FloatArray) -> FloatArray:
    return np.where((values > 0) & (values < SMALLEST_POSITIVE), 0.0, values)


def _is_identity(matrix: Any) -> bool:
    size = matrix.shape[0]
    return bool(matrix.nnz == size and (matrix.diagonal() == 1).all())


def _hash(matrix: Matrix) -> str:
    rows = _csr(matrix)
    rows.sort_indices()
    digest = sha256("({}, {})".format(*map(int, rows.shape)).encode())
    for part in (rows.indptr.astype("<i8"), rows.indices.astype("<i8"), rows.data.astype("<f8")):
        digest.update(part.tobytes())
    return digest.hexdigest()


def _power(matrix: Matrix, steps: int) -> Matrix:
    dense = matrix.toarray() if _is_sparse(matrix) else matrix
    return np.linalg.matrix_power(dense, steps)


def _default_distributions(space: Space, visits: IntArray, toward: Toward) -> FloatArray:
    """The default distributions r_x, one row per secret."""
    size = len(space)
    if toward == "prior":
        counts = np.bincount(visits, minlength=size).astype(np.float64)
        if not counts.any():
            raise InvalidProblem("there are no visits to estimate a mobility from")
        return np.broadcast_to(counts / counts.sum(), (size, size))
    near = _neighbours(space)
    return np.asarray(near / near.sum(axis=1, keepdims=True))


def _neighbours(space: Space) -> NDArray[np.bool_]:
    """Which secrets are neighbours: touching cells, or the nearest secrets; every secret is its own neighbour."""
    if isinstance(space, Grid):
        row, column = np.divmod(np.arange(len(space)), space.columns)
        return np.asarray((abs(row[:, None] - row) <= 1) & (abs(column[:, None] - column) <= 1))
    distance = space.distance(space.default_distance, space).astype(np.float64, copy=True)
    np.fill_diagonal(distance, np.inf)
    near = distance <= NEAREST * distance.min(axis=1, keepdims=True)
    near |= near.T
    np.fill_diagonal(near, val=True)
    return np.asarray(near)


def _estimate_matrix(size: int, before: IntArray, after: IntArray, default: FloatArray, smoothing: float) -> FloatArray:
    counts = np.zeros((size, size))
    np.add.at(counts, (before, after), 1.0)
    seen = counts.sum(axis=1, keepdims=True)
    total = seen + smoothing
    return np.where(total > 0, (counts + smoothing * default) / np.where(total > 0, total, 1.0), default)
