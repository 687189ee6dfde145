"""Everything privacygames can raise on purpose.

No message ever contains a secret: labels given for sampling, visited places and the like are described by
their position, never by their value, because messages end up in logs.
"""


class PrivacyGamesError(Exception):
    """The root: catch this to catch everything below."""


class InvalidProblem(PrivacyGamesError, ValueError):
    """The caller's mistake: something given does not fit. Says what, what is allowed, and what to do."""


class UnknownLabel(InvalidProblem):
    """A label is not in the space. The label itself is never shown: it may be the secret."""


class Infeasible(PrivacyGamesError):
    """No mechanism meets the bounds asked for; ``limit`` is the nearest value for which one exists."""

    def __init__(self, message: str, *, limit: float) -> None:
        super().__init__(message)
        self.limit = limit


class SolveFailed(PrivacyGamesError):
    """The solver stopped without an answer good enough to certify; ``status`` says why."""

    def __init__(self, message: str, *, status: str) -> None:
        super().__init__(message)
        self.status = status


class BrokenPromise(PrivacyGamesError):
    """A mechanism does not keep what its certificate promises."""


class InvalidFile(PrivacyGamesError, ValueError):
    """A file is not a readable mechanism file: truncated, altered, too large or of an unknown version."""
