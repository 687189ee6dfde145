"""Access tokens with scopes; a file holds their digests only, and is read again whenever it changes."""

import hmac
import secrets
import threading
from hashlib import sha256
from pathlib import Path

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.studio import check_token_strength

SCOPES = {
    "release": "release outputs, which is charged to a person's budgets",
    "sample": "draw outputs that are charged to nobody: for experiments, not for publication",
    "balance": "read what was charged to a person, and the outputs they released",
    "people": "add people, change their priors, and erase them",
    "metrics": "read the counters of the service",
}
"""The scopes of tokens, and what each allows."""

TOKEN_BYTES = 32


def new_token(file: Path, scopes: list[str], label: str = "") -> str:
    """Make a token, append its digest and scopes to a file, and return it: it is stored nowhere.

    >>> from privacygames.service import Tokens, new_token
    >>> token = new_token(Path("tokens"), ["release"])
    >>> sorted(Tokens(Path("tokens")).scopes(f"Bearer {token}".encode()))
    ['release']

    Args:
        file: the file, created if necessary, readable by its owner only.
        scopes: of the token.
        label: what the line is for, to tell later which one to delete.
    """
    unknown = set(scopes) - set(SCOPES)
    if unknown or not scopes:
        raise InvalidProblem(f"a scope is one of {', '.join(SCOPES)}")
    if not label.isprintable() or "#" in label:
        raise InvalidProblem("a label is a printable text without #")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    file.touch(0o600)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{_digest(token.encode())} {','.join(sorted(set(scopes)))}{f'  # {label}' if label else ''}\n")
    return token


class Tokens:
    """The tokens that requests may have, from a file with a digest and scopes in each line.

    Args:
        file: the file; it is read again after it changed, so that a token is revoked by deleting its line. None: there
            is none.
        all_scopes: one more token, which has every scope.
    """

    def __init__(self, file: Path | None = None, all_scopes: str | None = None) -> None:
        self._file, self._lock = file, threading.Lock()
        self._signature: tuple[int, ...] | None = None
        self._from_file: dict[str, frozenset[str]] = {}
        self._own: dict[str, frozenset[str]] = {}
        if all_scopes is not None:
            check_token_strength(all_scopes)
            self._own = {_digest(all_scopes.encode()): frozenset(SCOPES)}
        self._current()

    @property
    def are_needed(self) -> bool:
        """Whether requests need a token at all."""
        return self._file is not None or bool(self._own)

    def scopes(self, authorization: bytes) -> frozenset[str]:
        """The scopes of a value of the header Authorization; none of a wrong one."""
        kind, _, token = authorization.partition(b" ")
        if kind.lower() != b"bearer":
            return frozenset()
        sent, scopes = _digest(token), frozenset[str]()
        for digest, allowed in self._current().items():
            if hmac.compare_digest(digest, sent):
                scopes = allowed
        return scopes

    def _current(self) -> dict[str, frozenset[str]]:
        if self._file is None:
            return self._own
        with self._lock:
            try:
                status = self._file.stat()
                signature = (status.st_ino, status.st_size, status.st_mtime_ns)
                if signature != self._signature:
                    self._from_file, self._signature = _parsed(self._file.read_text("utf-8")), signature
            except (OSError, UnicodeDecodeError):
                raise UnreadableFile(self._file, "it holds the tokens") from None
            return {**self._from_file, **self._own}


def _digest(token: bytes) -> str:
    return sha256(token).hexdigest()


def _parsed(text: str) -> dict[str, frozenset[str]]:
    """The scopes by the digest of their token."""
    tokens = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        scopes = frozenset(words[-1].split(","))
        if len(words) != 2 or len(words[0]) != 64 or not scopes <= set(SCOPES):
            raise InvalidProblem(f"line {number} of the file of tokens is not a digest and scopes")
        tokens[words[0]] = scopes
    return tokens
