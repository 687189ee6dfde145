"""Errors as HTTP responses, all of one JSON shape: ``{"error": {kind, status, message}}``.

An error about one field of the request has its name as ``field``, and its location as ``pointer`` (RFC 6901).
"""

from collections.abc import Mapping

from privacygames.errors import PrivacyGamesError, Status
from privacygames.immutable import to_json_value
from privacygames.studio.requests import BoundsBody, JobBody

CODES = {
    Status.TOO_LARGE: 413,
    Status.INFEASIBLE: 409,
    Status.SPENT: 409,
    Status.CANCELLED: 409,
    Status.WORKERS_DIED: 503,
    Status.TIME_LIMIT: 503,
    Status.UNAVAILABLE: 503,
}
"""HTTP status code by the status of an error; 422 for the others: the request cannot be processed."""

POINTERS = {name: f"/{name}" for name in (*JobBody.model_fields, "secret", "observable")} | {
    name: f"/bounds/{name}" for name in BoundsBody.model_fields
}
"""The locations of the library's parameters in requests."""


class Refused(PrivacyGamesError):
    """A request that is not served.

    Args:
        code: the HTTP status code.
        reason: a word for programs, instead of the name of a status.
        message: a sentence for people.
        retry_after: seconds to wait before another try, where that helps.
    """

    def __init__(self, code: int, reason: str, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message)
        self.code, self.reason, self.retry_after = code, reason, retry_after

    def to_dict(self) -> dict[str, object]:
        """With the reason as its status."""
        return super().to_dict() | {"status": self.reason}


class JobFailed(PrivacyGamesError):
    """The error of a worker process, passed on as that process wrote it."""

    def __init__(self, error: dict[str, object]) -> None:
        super().__init__(str(error["message"]))
        self._error = error
        self.status = Status[str(error["status"])]

    def to_dict(self) -> dict[str, object]:
        """As it was written."""
        return self._error


def status_code(error: PrivacyGamesError) -> int:
    """The HTTP status code of an error."""
    return error.code if isinstance(error, Refused) else CODES.get(error.status, 422)


def error_body(error: PrivacyGamesError) -> dict[str, object]:
    """The JSON body of an error."""
    return {"error": with_pointer(error.to_dict())}


def with_pointer(error: Mapping[str, object]) -> dict[str, object]:
    """An error as JSON values, with a pointer to its field where that is part of a request.

    >>> with_pointer(pg.InvalidProblem("must be positive", field="epsilon").to_dict())["pointer"]
    '/bounds/epsilon'
    """
    values: dict[str, object] = dict(to_json_value(error))  # type: ignore[call-overload]
    pointer = POINTERS.get(str(values.get("field")))
    return values if pointer is None else values | {"pointer": pointer}
