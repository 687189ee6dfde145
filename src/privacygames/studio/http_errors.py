"""What a server refuses, and errors as HTTP tells them: one JSON shape, ``{"error": {kind, status, message}}``."""

from privacygames.errors import PrivacyGamesError, Status
from privacygames.immutable import to_json_value

CODES = {
    Status.TOO_LARGE: 413,
    Status.INFEASIBLE: 409,
    Status.SPENT: 409,
    Status.CANCELLED: 409,
    Status.WORKERS_DIED: 503,
    Status.TIME_LIMIT: 503,
}
"""HTTP's number for how something ended; 422 for the rest: what was sent cannot be worked with."""


class Refused(PrivacyGamesError):
    """A request that is not served; ``code`` is HTTP's number, ``reason`` a word for programs.

    ``retry_after`` is how many seconds to wait before another try, where that helps.
    """

    def __init__(self, code: int, reason: str, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message)
        self.code, self.reason, self.retry_after = code, reason, retry_after

    def to_dict(self) -> dict[str, object]:
        """With the reason as its status."""
        return super().to_dict() | {"status": self.reason}


class JobFailed(PrivacyGamesError):
    """What went wrong in a process at work, told on: the error as that process wrote it."""

    def __init__(self, error: dict[str, object]) -> None:
        super().__init__(str(error["message"]))
        self._error = error
        self.status = Status[str(error["status"])]

    def to_dict(self) -> dict[str, object]:
        """As it was written."""
        return self._error


def code_of(error: PrivacyGamesError) -> int:
    """HTTP's number for an error."""
    return error.code if isinstance(error, Refused) else CODES.get(error.status, 422)


def shape(error: PrivacyGamesError) -> dict[str, object]:
    """The one shape of an error."""
    return {"error": to_json_value(error.to_dict())}
