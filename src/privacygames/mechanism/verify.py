"""``verify``: re-check a file from nothing but its content."""

import os

from privacygames.mechanism import container
from privacygames.mechanism.certificate import Certificate
from privacygames.mechanism.files import unpack
from privacygames.mechanism.verifier import check


def verify(path: str | os.PathLike[str]) -> Certificate:
    """Re-check every promise in a mechanism file and return the certificate it earns.

    Raises:
        InvalidFile: the file is damaged, altered, too large or of another version.
        BrokenPromise: the file is in order but the mechanism does not keep what it promises.
    """
    contents = unpack(*container.read(path))
    return Certificate.of(contents.statement, check(contents.statement), contents.hashes, contents.provenance)
