"""Every exception and warning that privacygames raises on purpose, and the status a job can end with.

No message contains a secret: labels passed for sampling, visited places and the like are described by their
position, never by their value, because messages end up in logs.
"""

from enum import Enum
from math import isfinite
from typing import Any, Self


class Status(Enum):
    """How a job ended; the value is advice.

    >>> Status.TIME_LIMIT.advice
    'time limit reached: raise time_limit or loosen tolerance'
    """

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit reached: raise time_limit or loosen tolerance"
    NUMERICAL = "numerical trouble: rescale distances or costs, or loosen epsilon"
    INFEASIBLE = "no mechanism meets these bounds: loosen one of them"
    TOO_LARGE = "too large for this machine: use fewer secrets or observables"
    WORKERS_DIED = "the worker processes died: with too little memory, fewer jobs help"
    CANCELLED = "cancelled by the caller"
    INVALID = "an argument is not valid: see the message"
    GUARANTEE_VIOLATED = "a guarantee does not hold: do not use this mechanism"
    INVALID_FILE = "not a readable file of this kind: fetch it again, or upgrade privacygames"
    SPENT = "the budget is spent: wait until its window has passed, or choose what to release then with when_spent"
    FILE_TROUBLE = "a file cannot be read or written: check its name and permissions"
    UNAVAILABLE = "the database cannot be reached: nothing was returned; try again, with the same key"

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.value


class Field(str):
    """The name of a parameter of the library inside an error message.

    The command line shows it as an option, and the HTTP API points to it in the request, so messages name parameters
    by this type rather than as plain text.

    >>> error = InvalidProblem("give ", Field("epsilon"), " or ", Field("cost_at_most"))
    >>> str(error), error.field
    ('give epsilon or cost_at_most', 'epsilon')
    >>> error.message(lambda field: f"--{field}".replace("_", "-"))
    'give --epsilon or --cost-at-most'
    """

    __slots__ = ()


class PrivacyGamesError(Exception):
    """The base class of all errors below. ``status`` says how the job ended.

    Args:
        parts: the message, in pieces; the pieces that name parameters of the library are of type :class:`Field`.
        field: the parameter that the error is about; by default the first one that the message names.
        location: the file and table that the field stands in, such as ``"problem.toml, [bounds]"``; empty where it
            was passed as an argument.

    >>> try:
    ...     pg.Bounds(epsilon=-1.0)
    ... except pg.PrivacyGamesError as error:
    ...     print(error.field, error.status.name)
    epsilon INVALID
    """

    status: Status = Status.INVALID

    def __init__(self, *parts: str, field: str | None = None, location: str = "") -> None:
        super().__init__(*parts)
        named = (str(part) for part in parts if isinstance(part, Field))
        self.field: str | None = field if field is not None else next(named, None)
        self.location = location

    def __str__(self) -> str:
        return f"{self.location} {self.message()}" if self.location else self.message()

    def __reduce__(self) -> tuple[Any, ...]:  # subclasses have parameters of their own: restored without them
        return _restored, (type(self), self.args), self.__dict__

    def message(self, name: Any = str) -> str:
        """The message without the location.

        Args:
            name: what to call each parameter of the library, as a function of its :class:`Field`.
        """
        return "".join(name(part) if isinstance(part, Field) else str(part) for part in self.args)

    def at(self, location: str) -> Self:
        """This error with a location, for whoever knows which file or table the field stands in."""
        located: Self = _restored(type(self), self.args)
        located.__dict__.update(self.__dict__, location=location)
        return located

    def to_dict(self) -> dict[str, object]:
        """The one form of an error in JSON: kind, status, message and, where there is one, the field."""
        error: dict[str, object] = {"kind": type(self).__name__, "status": self.status.name, "message": str(self)}
        return error if self.field is None else error | {"field": self.field}


class InvalidProblem(PrivacyGamesError, ValueError):
    """An argument is not valid; the message says what was given, what is allowed and what to do.

    >>> pg.Prior(pg.Categories(["flu", "cold"]), [0.5, 0.4])
    Traceback (most recent call last):
    ...
    privacygames.errors.InvalidProblem: the prior sums to 0.9, not 1...
    """


class TooLarge(InvalidProblem):
    """The problem would not fit into this machine's memory; the message has the estimate.

    >>> pg.Subsets.all(pg.Numbers(range(100)))
    Traceback (most recent call last):
    ...
    privacygames.errors.TooLarge: that is ... subsets or more; at most 100000 are allowed: choose another at_most
    """

    status = Status.TOO_LARGE


class UnknownLabel(InvalidProblem):
    """A label is not in the space. The label itself is never shown: it may be the secret.

    >>> pg.Categories(["flu", "cold"]).index("plague")
    Traceback (most recent call last):
    ...
    privacygames.errors.UnknownLabel: ... is not one of the 2 labels of this space...
    """


class StaleFleet(InvalidProblem):
    """The fleet in a folder was replaced after it was opened; nothing is sampled from the earlier one.

    >>> issubclass(pg.StaleFleet, pg.InvalidProblem)
    True
    """


class UselessMechanism(UserWarning):
    """Warning: the mechanism keeps its guarantees, but its outputs do not depend on the secret at all.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pg.design(problem, epsilon=0.01)
    >>> [warning.category.__name__ for warning in caught]
    ['UselessMechanism']
    """


class Infeasible(PrivacyGamesError):
    """No mechanism meets the bounds, with a proof.

    Args:
        parts: the message, as in :class:`PrivacyGamesError`.
        limit: the nearest value of ``bound`` for which a mechanism exists.
        bound: the bound that cannot be met, where there are several; it is also the ``field``.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold"])))
    >>> try:
    ...     pg.design(problem, distortion=0.9)
    ... except pg.Infeasible as error:
    ...     print(error.bound, round(error.limit, 3))
    distortion 0.5
    """

    status = Status.INFEASIBLE

    def __init__(self, *parts: str, limit: float, bound: str | None = None) -> None:
        super().__init__(*parts, field=bound)
        self.limit, self.bound = limit, bound

    def to_dict(self) -> dict[str, object]:
        """With the limit and, where there are several bounds, the one it is of."""
        limit = self.limit if isfinite(self.limit) else str(self.limit)  # JSON has no infinity
        return super().to_dict() | {"limit": limit} | ({} if self.bound is None else {"bound": self.bound})


class SolveFailed(PrivacyGamesError):
    """A solver stopped without a solution accurate enough to certify; ``status`` says why.

    >>> error = pg.SolveFailed("no solver reached the tolerance", status=pg.Status.TIME_LIMIT)
    >>> error.status.advice
    'time limit reached: raise time_limit or loosen tolerance'
    """

    def __init__(self, *parts: str, status: Status = Status.NUMERICAL) -> None:
        super().__init__(*parts)
        self.status = status


class BudgetExceeded(PrivacyGamesError):
    """A release would have cost more than the budget has left; nothing was released, and nothing was charged.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold"])))
    >>> releases = pg.Releases(problem, pg.Mobility.still(problem.space), epsilon=1.0, budget=1.5)
    >>> _ = releases.release("flu")
    >>> releases.release("flu")
    Traceback (most recent call last):
    ...
    privacygames.errors.BudgetExceeded: ...
    """

    status = Status.SPENT


class StoreUnavailable(PrivacyGamesError):
    """The database of a store cannot be reached, or is busy: no output was returned.

    Where a release had begun, it is not known whether it was committed. The same call with the same key is charged
    at most once.

    >>> pg.StoreUnavailable("the database was stopped").status.name
    'UNAVAILABLE'
    """

    status = Status.UNAVAILABLE


class Cancelled(PrivacyGamesError):
    """The job was cancelled. Raise it in a progress callback to stop any job; no partial file is left.

    >>> def stop(progress: pg.Progress) -> None:
    ...     raise pg.Cancelled("enough")
    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    >>> pg.design(problem, epsilon=1.0, progress=stop)
    Traceback (most recent call last):
    ...
    privacygames.errors.Cancelled: enough
    """

    status = Status.CANCELLED


class GuaranteeViolated(PrivacyGamesError):
    """A mechanism does not keep the guarantees of its certificate.

    >>> pg.GuaranteeViolated("the ratio of two probabilities is above e^ε").status.advice
    'a guarantee does not hold: do not use this mechanism'
    """

    status = Status.GUARANTEE_VIOLATED


class InvalidFile(PrivacyGamesError, ValueError):
    """A file is not a readable mechanism file or ledger: truncated, altered, too large or of an unknown version.

    >>> from pathlib import Path
    >>> _ = Path("notes.pgm").write_text("not a mechanism")
    >>> try:
    ...     pg.load("notes.pgm")
    ... except pg.InvalidFile as error:
    ...     print(error.status.name)
    INVALID_FILE
    """

    status = Status.INVALID_FILE


class UnreadableFile(InvalidFile, InvalidProblem):
    """A file does not exist or may not be read; the message names it.

    >>> pg.load("missing.pgm")
    Traceback (most recent call last):
    ...
    privacygames.errors.UnreadableFile: missing.pgm cannot be read: ...
    """

    status = Status.FILE_TROUBLE

    def __init__(self, path: object, reason: object) -> None:
        super().__init__(f"{path} cannot be read: {reason}")


def _restored(kind: type[PrivacyGamesError], parts: tuple[str, ...]) -> Any:
    """An error made of its message alone, without calling the constructor of its class."""
    error = kind.__new__(kind)
    error.args = parts
    return error
