r"""The release key, and the pseudo-random bits derived from it: the same row gets the same bits every time.

Engines recompute rows: a second action, a retried task, an optimiser that moves an expression. With fresh bits each of
these would be another release of the same secret, whose cost is not counted. So the bits of a row are

.. math:: \text{AES-256}(k, \text{identity} \oplus \text{secret}), \qquad
          k = \text{HMAC-SHA-256}(\text{release key}, \text{purpose}).

For distinct blocks, AES gives 128 bits that nobody without the key can tell from random ones; the first 64 are used.
The secret is part of the block: if two rows share an identity, draws for different secrets are as independent as those
of different rows, and the same secret gets the same output.

A key records its uses. The same rows, secrets, mechanism and columns get the same outputs again, which is the same
release. Anything else for a column that it has released is refused, since it would share draws with the first release
(equal secrets of a row get equal outputs, so that where outputs differ, the secrets certainly do), or be a second draw
of the same secrets. Another release takes another key.
"""

import hmac
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import InvalidFile, InvalidProblem, UnreadableFile
from privacygames.tables.append_log import AppendLog, Entry
from privacygames.tables.optional_imports import import_optional

SIZE = 32
"""Bytes of a key."""

FIRST_LINE = "privacygames release key 2"
OLD_FIRST_LINE = "privacygames release key 1"
HEADER_BYTES = 200
"""Bytes of a key file that contain its first two lines."""

PART_ROWS = 1 << 12
"""Rows whose blocks are encrypted at a time: plain and encrypted ones, 64 KB each, fit a processor's second cache."""

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class KeyUse:
    """A use of a key: one rule of one release.

    Attributes:
        columns: the columns of secrets.
        mechanism: the digest of the mechanism.
        told_apart_by: the columns of the row identity.
        draws: a hash, under the key, of the identities and secrets of all rows, equal for equal draws only.
    """

    columns: tuple[str, ...]
    mechanism: str
    told_apart_by: tuple[str, ...]
    draws: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    def conflict(self, entry: Entry) -> str | None:
        """How an earlier use of the key for one of these columns differs; None if it does not."""
        if not set(self.columns) & set(entry["columns"]):
            return None
        use = self.to_dict()
        if use["columns"] != entry["columns"] or use["mechanism"] != entry["mechanism"]:
            return "by another mechanism"
        if use["told_apart_by"] != entry["told_apart_by"]:
            return f"with rows told apart by {', '.join(entry['told_apart_by'])}"
        return None if use["draws"] == entry["draws"] else "of other rows or other values"


class ReleaseKey:
    """A secret key that makes outputs reproducible for whoever has it, and unpredictable for everybody else.

    From the key, the mechanism and an output one can tell which secrets are possible: keep the key as you keep the
    original data, or delete it after the release. It appears in no output, manifest, message or representation.

    One key is for one release of a column: it records that release (in its file, or in memory), gives the same outputs
    for the same rows again, and refuses any other. A copy of a key does not know the later uses of the original: make
    new keys, not copies.

    Args:
        secret: 32 bytes; by default from the operating system.

    >>> key = pg.tables.ReleaseKey.create("release.key")
    >>> pg.tables.ReleaseKey.load("release.key") == key
    True
    """

    _uses: AppendLog

    def __init__(self, secret: bytes | None = None) -> None:
        key_bytes = secrets.token_bytes(SIZE) if secret is None else secret
        if not isinstance(key_bytes, bytes) or len(key_bytes) != SIZE:
            raise InvalidProblem(f"a release key is {SIZE} bytes; leave it out to have it made by the operating system")
        self._secret = key_bytes
        self._uses = AppendLog(None, b"", self.check_value())

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> "ReleaseKey":
        """A new key in a new file that only its owner can read; an existing file is never replaced."""
        key = cls()
        header = f"{FIRST_LINE}\n{key._secret.hex()}\n".encode()
        key._uses = AppendLog.create(Path(path), header, key.check_value())
        return key

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ReleaseKey":
        """The key in a file that :meth:`create` made."""
        file = Path(path)
        try:
            if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
                raise InvalidProblem(
                    f"{path} can be read by others than its owner: chmod 600 it, if it is still secret"
                )
            with file.open("rb") as opened:
                content = opened.read(HEADER_BYTES)
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        lines = content.decode("ascii", errors="replace").split("\n")
        if lines[0] == OLD_FIRST_LINE:
            raise InvalidFile(
                f"{path} is a release key of format 1, under which rows had other identities and mechanisms other "
                "digests: it would draw other outputs for the same rows again, which is another release. Repeat what "
                "it released with the version that made it, and make a new key for what comes"
            )
        try:
            if lines[0] != FIRST_LINE:
                raise ValueError
            key = cls(bytes.fromhex(lines[1]))
        except (ValueError, IndexError):
            raise InvalidFile(f"{path} is not a release key") from None
        header = b"".join(line + b"\n" for line in content.split(b"\n")[:2])
        key._uses = AppendLog(file.absolute(), header, key.check_value())
        return key

    def __repr__(self) -> str:
        return "ReleaseKey(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReleaseKey) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.check_value())

    def derive(self, *purpose: str) -> bytes:
        """A key for one purpose; keys of purposes that differ in any part are independent."""
        text = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in purpose)
        return hmac.new(self._secret, text, sha256).digest()

    def require_new_or_same(self, uses: Iterable[KeyUse]) -> None:
        """Refuse uses that conflict with recorded ones."""
        _require_new_or_same(uses, self._uses.entries())

    def record(self, uses: Iterable[KeyUse]) -> None:
        """Record uses, durably, before the outputs can be seen; refuse those that conflict with recorded ones."""
        new_uses = list(uses)
        with self._uses.exclusive() as log:
            _require_new_or_same(new_uses, log.entries)
            for use in new_uses:
                if use.to_dict() not in log.entries:
                    log.append(use.to_dict())

    def check_value(self) -> str:
        """A value that is equal for equal keys, and reveals nothing else about them."""
        return self.derive("check value").hex()[:32]


def _require_new_or_same(uses: Iterable[KeyUse], entries: list[Entry]) -> None:
    for use in uses:
        try:
            reasons = [use.conflict(entry) for entry in entries]
        except (KeyError, TypeError):
            raise InvalidFile("the release key's file holds what is no use of a key: it was altered") from None
        if reason := next((reason for reason in reasons if reason is not None), None):
            raise InvalidProblem(
                f"this release key has released {', '.join(use.columns)} before, {reason}: under one key the outputs "
                "for two inputs show where these differ. This is another release: give it a new key, or use the "
                "outputs of before"
            )


class KeyedBits:
    """A keyed pseudo-random function from 128-bit blocks to 64 bits, in bulk.

    Args:
        key: 32 bytes, derived for one purpose.
    """

    def __init__(self, key: bytes) -> None:
        ciphers: Any = import_optional("cryptography.hazmat.primitives.ciphers")
        # Each block is encrypted separately ("ECB") on purpose: AES serves as a pseudo-random function here.
        self._cipher = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.ECB())

    def encrypt(self, blocks: Words) -> Words:
        """AES-256 of each block, from an array of shape (rows, 2) to another one."""
        encrypted = np.empty(blocks.shape, dtype=np.uint64)
        for part, words in self._encrypt_parts(blocks, None):
            encrypted[part] = words
        return encrypted

    def words(self, identity: Words, tweak: NDArray[np.int64]) -> Words:
        """64 bits for each row, from its identity, of shape (rows, 2), and a number."""
        first_words = np.empty(len(identity), dtype=np.uint64)
        for part, words in self._encrypt_parts(identity, tweak):
            first_words[part] = words[:, 0]
        return first_words

    def blocks(self, identity: Words, tweak: NDArray[np.int64]) -> Words:
        """128 bits for each row, from its identity, of shape (rows, 2), and a number."""
        encrypted = np.empty(identity.shape, dtype=np.uint64)
        for part, words in self._encrypt_parts(identity, tweak):
            encrypted[part] = words
        return encrypted

    def _encrypt_parts(
        self, identity: Words, tweak: NDArray[np.int64] | None
    ) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Rows and their encrypted blocks, part by part; what is yielded is overwritten by the next part."""
        encryptor = self._cipher.encryptor()
        rows = min(len(identity), PART_ROWS)
        plain, encrypted = np.empty((rows, 2), dtype="<u8"), np.empty((rows + 1, 2), dtype="<u8")  # one spare block
        for start in range(0, len(identity), PART_ROWS):
            part = slice(start, min(start + PART_ROWS, len(identity)))
            count = part.stop - start
            if tweak is None:
                plain[:count] = identity[part]
            else:
                plain[:count, 0] = identity[part, 0]
                np.bitwise_xor(identity[part, 1], tweak[part].astype(np.uint64, copy=False), out=plain[:count, 1])
            encryptor.update_into(plain[:count].data.cast("B"), encrypted.data.cast("B"))
            yield part, encrypted[:count]
