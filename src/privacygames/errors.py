"""Everything privacygames can raise on purpose, and how a job can end.

No message ever contains a secret: labels given for sampling, visited places and the like are described by
their position, never by their value, because messages end up in logs.
"""

from enum import Enum
from math import isfinite


class Status(Enum):
    """How a job ended; the value is advice."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit reached: raise time_limit or loosen tolerance"
    NUMERICAL = "numerical trouble: rescale distances or costs, or loosen epsilon"
    INFEASIBLE = "no mechanism meets these bounds: loosen one of them"
    TOO_LARGE = "too large for this machine: use fewer secrets or observables"
    WORKERS_DIED = "the processes at work died: with too little memory, fewer jobs help"
    CANCELLED = "cancelled by whoever started it"
    INVALID = "something given does not fit: see the message"
    BROKEN_PROMISE = "a promise does not hold: do not use this mechanism"
    INVALID_FILE = "not a readable file of this kind: fetch it again, or upgrade privacygames"
    SPENT = "the budget is spent: wait until its window has passed, or choose what to answer then with when_spent"
    FILE_TROUBLE = "a file cannot be read or written: check its name and permissions"

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.value


class PrivacyGamesError(Exception):
    """The root: catch this to catch everything below. ``status`` says how the job ended."""

    status: Status = Status.INVALID

    def to_dict(self) -> dict[str, object]:
        """The one form of an error in JSON: kind, status and message."""
        return {"kind": type(self).__name__, "status": self.status.name, "message": str(self)}


class InvalidProblem(PrivacyGamesError, ValueError):
    """The caller's mistake: something given does not fit. Says what, what is allowed, and what to do."""


class TooLarge(InvalidProblem):
    """What was asked for would not fit into this machine's memory; the message has the estimate."""

    status = Status.TOO_LARGE


class UnknownLabel(InvalidProblem):
    """A label is not in the space. The label itself is never shown: it may be the secret."""


class StaleFleet(InvalidProblem):
    """The fleet in a folder is another one than when it was opened: nothing is answered from what it was."""


class UselessMechanism(UserWarning):
    """A warning: the mechanism keeps its promises, and its answers do not depend on the secret at all."""


class Infeasible(PrivacyGamesError):
    """No mechanism meets the bounds, with a proof; ``limit`` is the nearest value of ``bound`` for which one does."""

    status = Status.INFEASIBLE

    def __init__(self, message: str, *, limit: float, bound: str | None = None) -> None:
        super().__init__(message)
        self.limit, self.bound = limit, bound

    def to_dict(self) -> dict[str, object]:
        """With the limit, and which bound it is of where that is one of several."""
        limit = self.limit if isfinite(self.limit) else str(self.limit)  # JSON has no infinity
        return super().to_dict() | {"limit": limit} | ({} if self.bound is None else {"bound": self.bound})


class SolveFailed(PrivacyGamesError):
    """A solver stopped without an answer good enough to certify; ``status`` says why."""

    def __init__(self, message: str, *, status: Status = Status.NUMERICAL) -> None:
        super().__init__(message)
        self.status = status


class BudgetExceeded(PrivacyGamesError):
    """A release would have cost more than the budget has left; nothing was released, and nothing was charged."""

    status = Status.SPENT


class Cancelled(PrivacyGamesError):
    """The job was cancelled. Raise it in a progress callback to stop any job; nothing half-written is left."""

    status = Status.CANCELLED


class GuaranteeViolated(PrivacyGamesError):
    """A mechanism does not keep what its certificate promises."""

    status = Status.BROKEN_PROMISE


class InvalidFile(PrivacyGamesError, ValueError):
    """A file is not a readable mechanism file or ledger: truncated, altered, too large or of an unknown version."""

    status = Status.INVALID_FILE


class UnreadableFile(InvalidFile, InvalidProblem):
    """A file is not there, or may not be read; the message names it."""

    status = Status.FILE_TROUBLE

    def __init__(self, path: object, reason: object) -> None:
        super().__init__(f"{path} cannot be read: {reason}")
