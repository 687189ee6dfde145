"""Mobility: how a secret changes from one step to the next, and so how a belief about it moves when time passes."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from math import floor, isfinite
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import SMALLEST_POSITIVE, FloatArray, IntArray, freeze, require_nonnegative
from privacygames.beliefs.moves import Tracked, counted_moves
from privacygames.beliefs.prior import SUM_TOLERANCE, Prior
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.spaces import Grid, Label, Space
from privacygames.time_zones import time_zone
from privacygames.validation import is_integer, is_number, require_choice, require_instance

Matrix = Any
"""A transition matrix: a dense array, or SciPy's compressed rows where most entries are 0."""

Toward = Literal["prior", "neighbours"]
Moment = float | datetime

HOURS, HOUR = 24, 3600
SPARSE_BELOW = 0.2
SPARSE_FROM = 64
"""A matrix is kept sparse from so many secrets on, where at most that share of it is not 0."""

MOST_DENSE = 3000
"""Up to so many secrets, powers of the matrix are computed; beyond, a belief is moved step by step."""

LATEST = 1e11
"""Seconds: the year 5138. A number above is in other units, and windows of time would be too short."""

FEW_STEPS = 16
MOST_STEPS = 1_000_000
"""So many steps that differ by the hour: 19 years of ten minutes."""

ABOUT = 1 + 1e-9


class Mobility(Value):
    """A Markov chain over secrets: P(x → y) in one step, the same always or by the hour of the day.

    Args:
        space: the secrets.
        matrix: P, (from, to), every row summing to 1; dense or SciPy sparse. Or 24 of them, for the steps that begin in
            each hour of the day.
        step: how many seconds a step takes. None: times are counted in steps.
        timezone: whose hours of the day, where there are 24 matrices.
    """

    space: Space
    matrices: tuple[Matrix, ...]
    step: float | None
    timezone: str

    def __init__(self, space: Space, matrix: Any, *, step: float | None = None, timezone: str = "UTC") -> None:
        require_instance(space, Space, "what a Mobility is over")
        if step is not None and not (is_number(step) and 0 < step < np.inf):
            raise InvalidProblem(f"step is {repr(step)[:40]}; it must be a positive number of seconds, or None")
        given = _several(matrix)
        matrices = tuple(_checked_matrix(each, space) for each in given)
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
        """What makes the chain, short: the same in every process, whoever builds it."""
        return tuple(_hash(each) for each in self.matrices), self.step, self.timezone

    @classmethod
    def still(cls, space: Space) -> "Mobility":
        """The secret does not change: an age, a home, a diagnosis."""
        require_instance(space, Space, "what a Mobility is over")
        return cls(space, _identity(len(space)))

    @classmethod
    def from_visits(
        cls,
        space: Space,
        visits: Tracked | Sequence[Label | None],
        user: str | None = None,
        *,
        smoothing: float = 1.0,
        toward: Toward = "prior",
        by_hour: bool = False,
        timezone: str = "UTC",
        within: float | None = None,
        step: float | None = None,
    ) -> "Mobility":
        """The chain estimated from a trace: how often each secret followed each, one slot later.

        Row x is (N(x,·) + smoothing·r_x) / (N(x) + smoothing), where N counts moves and r_x is where one goes if
        nothing is known: to each secret as often as it was visited (``"prior"``), or to x itself and its nearest
        neighbours alike (``"neighbours"``). A row with no moves is r_x, also without smoothing.

        Args:
            space: the secrets.
            visits: :class:`privacygames.traces.Visits`, whose slots become steps; or labels, one per step, with None
                where nothing is known (moves from and to there do not count).
            user: whose visits, where there are several people's.
            smoothing: how many moves r_x counts for, in every row.
            toward: what r_x is.
            by_hour: a matrix for each hour of the day; each row is smoothed toward that of the whole day.
            timezone: whose hours.
            within: as in :meth:`privacygames.traces.Visits.transitions`.
            step: seconds between labels; visits have their slot.
        """
        require_instance(space, Space, "what a Mobility is over")
        require_choice(toward, get_args(Toward), "toward")
        require_instance(by_hour, bool, "by_hour")
        if not (is_number(smoothing) and 0 <= smoothing < np.inf):
            raise InvalidProblem(f"smoothing is {repr(smoothing)[:40]}; it must be a number, 0 or more")
        moves = counted_moves(space, visits, user, within)
        if by_hour and moves.times is None:
            raise InvalidProblem("by_hour needs visits with times: privacygames.traces.Visits, not a list of labels")
        if step is not None and moves.slot is not None:
            raise InvalidProblem("step is for labels: visits in slots have their own")
        step = moves.slot if step is None else step
        rest = _rest(space, moves.visits, toward)
        day = _estimated(len(space), moves.before, moves.after, rest, smoothing)
        if not by_hour or moves.times is None:
            return cls(space, day, step=step, timezone=timezone)
        zone, hours = time_zone(timezone), np.zeros(len(moves.before), dtype=np.int64)
        hours[:] = [datetime.fromtimestamp(int(time), zone).hour for time in moves.times]
        parts = [
            _estimated(len(space), moves.before[hours == hour], moves.after[hours == hour], day, smoothing)
            for hour in range(HOURS)
        ]
        return cls(space, parts, step=step, timezone=timezone)

    @cached_property
    def is_still(self) -> bool:
        """Whether nothing ever changes."""
        only = self.matrices[0]
        return len(self.matrices) == 1 and _is_identity(_csr(only))

    @property
    def by_hour(self) -> bool:
        """Whether steps depend on the hour of the day."""
        return len(self.matrices) > 1

    def slot(self, at: Moment) -> int:
        """Which step of the chain a time is in: seconds or a datetime where it has a step in seconds, else steps."""
        seconds = moment(at)
        if isinstance(at, datetime) and self.step is None and not self.is_still:
            raise InvalidProblem("the mobility has no step in seconds, so times are counted in steps: give a number")
        return floor(seconds / (self.step or 1.0))

    def transition(self, start: int, steps: int) -> Matrix:
        """The matrix of ``steps`` steps from slot ``start`` on: a power, or a product over the hours."""
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

    def moved(self, belief: Prior, steps: int = 1, *, start: Moment | None = None) -> Prior:
        """The belief after ``steps`` steps.

        Args:
            belief: over the same secrets.
            steps: how many; elapsed time divided by ``step``.
            start: the time from which, needed where steps depend on the hour of the day.
        """
        if require_instance(belief, Prior, "the belief").space != self.space:
            raise InvalidProblem("the belief is over other secrets than the mobility's")
        if start is None and self.by_hour:
            raise InvalidProblem("steps depend on the hour of the day here: give start, the time from which")
        if not is_integer(steps, minimum=0):
            raise InvalidProblem(f"steps is {repr(steps)[:40]}; it must be a whole number, 0 or more")
        slot = 0 if start is None else self.slot(start)
        found = self.pushed(belief.probabilities, slot, steps)
        return Prior(self.space, found / found.sum())

    def pushed(self, weights: FloatArray, start: int, steps: int) -> FloatArray:
        """Weights at slot ``start`` carried forward: w·P^steps. No checks, and no normalisation."""
        return self._carried(weights, range(start, start + steps), lambda before, matrix: before @ matrix)

    def pulled(self, weights: FloatArray, start: int, steps: int) -> FloatArray:
        """Weights of what comes ``steps`` after slot ``start`` carried back: P^steps·w. No checks either."""
        return self._carried(weights, range(start + steps - 1, start - 1, -1), lambda before, matrix: matrix @ before)

    def _carried(
        self, weights: FloatArray, slots: range, apply: Callable[[FloatArray, Matrix], FloatArray]
    ) -> FloatArray:
        steps = len(slots)
        if self.is_still or steps == 0:
            return weights
        if self.by_hour and steps > MOST_STEPS:
            raise InvalidProblem(f"{steps} steps have passed, hour by hour: are times in seconds? At most {MOST_STEPS}")
        if not self.by_hour and steps > FEW_STEPS and len(self.space) <= MOST_DENSE:
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
        """The local hour of the day in which a step begins."""
        try:
            return datetime.fromtimestamp(slot * (self.step or 1.0), time_zone(self.timezone)).hour
        except (ValueError, OverflowError, OSError):
            raise InvalidProblem("a time is outside the calendar: give unix seconds, or a datetime") from None

    @cached_property
    def _powers(self) -> list[Matrix]:
        return [self.matrices[0]]

    def _squares(self, count: int) -> list[Matrix]:
        """P, P², P⁴, … as many as asked for; kept."""
        while len(self._powers) < count:
            last = self._powers[-1]
            dense = last.toarray() if _is_sparse(last) else last
            self._powers.append(dense @ dense)
        return self._powers[:count]

    def __repr__(self) -> str:
        kind = "still" if self.is_still else "by the hour of the day" if self.by_hour else "one matrix"
        step = "" if self.step is None else f", a step every {self.step:g} s"
        return f"Mobility({len(self.space)} secrets, {kind}{step})"


def moment(at: Moment) -> float:
    """A time as a number: unix seconds of a datetime, or the number itself."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise InvalidProblem("a time without a time zone could mean anything: give it one, such as UTC")
        return at.timestamp()
    if is_number(at) and isfinite(at):
        if abs(at) > LATEST:
            raise InvalidProblem("a time is too far away for seconds: is it in milliseconds? Divide it by 1000")
        return float(at)
    raise InvalidProblem("a time must be a finite number or a datetime with a time zone")


def _csr(matrix: Any) -> Any:
    """Compressed rows. SciPy is loaded here and not before: a verifier needs no mobility."""
    from scipy.sparse import csr_matrix

    return csr_matrix(matrix)


def _identity(size: int) -> Any:
    from scipy.sparse import identity

    return identity(size, format="csr")


def _is_sparse(matrix: Any) -> bool:
    return hasattr(matrix, "tocsr")


def _several(matrix: Any) -> list[Any]:
    if _is_sparse(matrix):
        return [matrix]
    if isinstance(matrix, np.ndarray) and matrix.ndim == 3:
        return list(matrix)
    parts = isinstance(matrix, list | tuple) and matrix
    if parts and all(_is_sparse(each) or np.ndim(each) == 2 for each in _tried(matrix)):
        return list(matrix)
    return [matrix]


def _tried(values: Iterable[Any]) -> list[Any]:
    """The parts of a list, each as an array where it is one; what is ragged is left to the check that follows."""
    found = []
    for each in values:
        try:
            found.append(each if _is_sparse(each) else np.asarray(each))
        except ValueError:
            found.append(None)
    return found


def _checked_matrix(given: Any, space: Space) -> Matrix:
    what, meaning, size = "the transition matrix", "(from, to)", len(space)
    if _is_sparse(given):
        rows = _csr(given)
        if rows.shape != (size, size):
            raise InvalidProblem(f"{what} has shape {rows.shape}, but {(size, size)} is needed: {meaning}")
        rows = rows.astype(np.float64).copy()
        rows.sum_duplicates()
        require_nonnegative(_tidy(rows.data), what=what, shape=rows.data.shape, meaning=meaning)
        rows.data = _tidy(rows.data)
    else:
        try:
            plain = _tidy(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError, OverflowError):
            raise InvalidProblem(f"{what} is not an array of numbers; give shape {(size, size)}: {meaning}") from None
        rows = require_nonnegative(plain, what=what, shape=(size, size), meaning=meaning)
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if (abs(sums - 1) > SUM_TOLERANCE).any():
        worst = int(abs(sums - 1).argmax())
        raise InvalidProblem(
            f"every row of {what} must sum to 1, since one goes somewhere; row {worst} sums to {sums[worst]:.9g}"
        )
    return _stored(rows, sums)


def _stored(rows: Matrix, sums: FloatArray) -> Matrix:
    """Rows that sum to one as nearly as floats do, sparse where that pays, and read-only."""
    sums = np.where(abs(sums - 1) <= 1e-12, 1.0, sums)
    scaled = _csr(rows) if _is_sparse(rows) else rows
    filled = scaled.nnz if _is_sparse(scaled) else np.count_nonzero(scaled)
    size = len(sums)
    pays = size >= SPARSE_FROM and filled <= SPARSE_BELOW * size * size
    if pays or (_is_sparse(scaled) and _is_identity(scaled)):
        found = _csr(scaled).multiply(1.0 / sums[:, None]).tocsr()
        found.eliminate_zeros()
        found.sort_indices()
        for part in (found.data, found.indices, found.indptr):
            part.flags.writeable = False
        return found
    dense = scaled.toarray() if _is_sparse(scaled) else scaled
    return freeze(np.asarray(dense / sums[:, None]))


def _tidy(values: FloatArray) -> FloatArray:
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


def _rest(space: Space, visits: IntArray, toward: Toward) -> FloatArray:
    """r: where one goes if nothing is known, a row for each secret."""
    size = len(space)
    if toward == "prior":
        counts = np.bincount(visits, minlength=size).astype(np.float64)
        if not counts.any():
            raise InvalidProblem("there are no visits to estimate a mobility from")
        return np.broadcast_to(counts / counts.sum(), (size, size))
    near = _neighbours(space)
    return np.asarray(near / near.sum(axis=1, keepdims=True))


def _neighbours(space: Space) -> NDArray[np.bool_]:
    """Which secrets are next to each other: cells that touch, else the nearest; every secret is next to itself."""
    if isinstance(space, Grid):
        row, column = np.divmod(np.arange(len(space)), space.columns)
        return np.asarray((abs(row[:, None] - row) <= 1) & (abs(column[:, None] - column) <= 1))
    apart = space.distance(space.default_distance, space).astype(np.float64, copy=True)
    np.fill_diagonal(apart, np.inf)
    near = apart <= ABOUT * apart.min(axis=1, keepdims=True)
    near |= near.T
    np.fill_diagonal(near, val=True)
    return np.asarray(near)


def _estimated(size: int, before: IntArray, after: IntArray, rest: FloatArray, smoothing: float) -> FloatArray:
    counts = np.zeros((size, size))
    np.add.at(counts, (before, after), 1.0)
    seen = counts.sum(axis=1, keepdims=True)
    total = seen + smoothing
    return np.where(total > 0, (counts + smoothing * rest) / np.where(total > 0, total, 1.0), rest)
