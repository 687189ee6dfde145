"""The release key, and the pseudo-random bits that follow from it: the same row gets the same bits every time.

Engines recompute: a second action, a retried task, an optimiser that moves an expression. With fresh bits each of
these would be another release of the same secret, which nobody accounted for. So a row's bits are

    AES-256(subkey, row's identity ⊕ secret)       subkey = HMAC-SHA-256(release key, what the bits are for)

For distinct blocks AES gives 128 bits that nobody without the key can tell from random ones; the upper 64 of them are
used. The secret is part of the block: should two rows share an identity, or a file change under its name, draws for
different secrets are as independent as different rows' are, and the same secret gets the same answer again.
"""

import hmac
import os
import secrets
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import InvalidFile, InvalidProblem, UnreadableFile
from privacygames.storage import write_bytes

SIZE = 32
FIRST_LINE = "privacygames release key 1"

Words = NDArray[np.uint64]


class ReleaseKey:
    """What makes answers repeatable by whoever has it, and unpredictable for everybody else.

    Whoever has the key, the mechanism and an answer can tell which secrets fit: keep it as you keep the original
    data, or let it go when the release is done. It appears in no output, manifest, message or representation.

    One key is for one release. Another table whose rows are told apart in the same way (the same positions in a source
    of the same name, the same key columns) would share bits with it: rows with equal secrets would get equal answers.

    Args:
        secret: 32 bytes; by default from the operating system.
    """

    def __init__(self, secret: bytes | None = None) -> None:
        given = secrets.token_bytes(SIZE) if secret is None else secret
        if not isinstance(given, bytes) or len(given) != SIZE:
            raise InvalidProblem(f"a release key is {SIZE} bytes; leave it out to have it made by the operating system")
        self._secret = given

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> "ReleaseKey":
        """A new key in a new file that only its owner can read; a file that is there already is never replaced."""
        if Path(path).exists():
            raise InvalidProblem(f"{path} exists already: a release key is never replaced")
        key = cls()
        write_bytes(path, f"{FIRST_LINE}\n{key._secret.hex()}\n".encode(), private=True)
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
            content = file.read_bytes()[:200]
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        lines = content.decode("ascii", errors="replace").split("\n")
        try:
            if lines[0] != FIRST_LINE:
                raise ValueError
            return cls(bytes.fromhex(lines[1]))
        except (ValueError, IndexError):
            raise InvalidFile(f"{path} is not a release key") from None

    def __repr__(self) -> str:
        return "ReleaseKey(hidden)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReleaseKey) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.check_value())

    def derive(self, *purpose: str) -> bytes:
        """A key of its own for one purpose; purposes that differ in any part have keys that have nothing in common."""
        text = b"".join(len(part.encode()).to_bytes(8, "little") + part.encode() for part in purpose)
        return hmac.new(self._secret, text, sha256).digest()

    def check_value(self) -> str:
        """Equal for equal keys, and says nothing else about them."""
        return self.derive("check value").hex()[:32]


class KeyedBits:
    """A keyed pseudo-random function from 128-bit blocks to 64 bits, in bulk.

    Args:
        key: 32 bytes of its own for each purpose.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, blocks: Words) -> Words:
        """AES-256 of each block: an array (rows, 2) to another one."""
        from privacygames.tables.libraries import needed_for_tables

        ciphers: Any = needed_for_tables("cryptography.hazmat.primitives.ciphers")
        # Each block is encrypted on its own ("ECB") on purpose: it is the function wanted, not a way to hide a text.
        cipher = ciphers.Cipher(ciphers.algorithms.AES(self._key), ciphers.modes.ECB())
        plain = np.ascontiguousarray(blocks, dtype="<u8")
        found = np.empty_like(plain)
        buffer = bytearray(plain.nbytes + 16)
        count = cipher.encryptor().update_into(plain.data.cast("B"), buffer) if plain.size else 0
        found.view(np.uint8).reshape(-1)[:] = np.frombuffer(buffer, dtype=np.uint8, count=count)
        return found.astype(np.uint64, copy=False)

    def words(self, identity: Words, tweak: NDArray[np.int64]) -> Words:
        """64 bits for each row, from its identity (rows, 2) and a number."""
        blocks = identity.copy()
        blocks[:, 1] ^= tweak.astype(np.uint64)
        return np.ascontiguousarray(self.encrypt(blocks)[:, 0])
