"""The offline page: the files that ``make device`` built, a mechanism, and the rules of a ledger, in one folder.

The page is described in ``device/page/``. Its files are fixed; the service worker's first line names the content of the
folder, so that a phone that has it already notices a change.
"""

import json
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from privacygames.atomic_io import write_bytes
from privacygames.device.device_file import decode, encode
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Disclosure
from privacygames.mechanism_files import load_any

ASSETS = Path(__file__).parent / "page"
"""Where ``make device`` puts the page's files; a wheel has them too."""

SERVICE_WORKER = "service-worker.js"
SETTINGS = "settings.json"
MECHANISM = "mechanism.pgd"

VERSION_LENGTH = 16
"""Hexadecimal digits of the folder's digest: enough to tell versions of one folder apart."""


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """What was written.

    Attributes:
        files: number of files.
        size: of all files, in bytes.
        disclosure: what the mechanism's weights show of the data it was made from.
        version: the digest of all files, abridged.

    >>> WrittenPage(files=10, size=90_000, disclosure=Disclosure.SHAREABLE, version="00ff00ff00ff00ff").files
    10
    """

    files: int
    size: int
    disclosure: Disclosure
    version: str


def write_page(
    folder: str | os.PathLike[str],
    mechanism: str | os.PathLike[str],
    *,
    name: str = "mechanism",
    answers: int = 6,
    repeat: int = 60,
) -> WrittenPage:
    """Write a static page that draws protected positions on a phone.

    Args:
        folder: new, empty, or one that this function wrote.
        mechanism: a mechanism file for positions: cells or points over degrees, with an epsilon.
        name: what the page calls the mechanism.
        answers: new positions within a day.
        repeat: minutes for which a position is repeated.

    >>> city = pg.Grid(4, 4, box=(16.2, 48.1, 16.5, 48.3))
    >>> pg.baselines.exponential(pg.Problem(pg.Prior.uniform(city)), epsilon=0.5).save("home.pgm")
    >>> write_page("page", "home.pgm").files if ASSETS.is_dir() else 10
    10
    """
    target = Path(folder)
    assets = _assets()
    if target.is_dir() and any(target.iterdir()) and not (target / SETTINGS).is_file():
        raise InvalidProblem(Field("out"), " is a folder with other files in it; name a new one")
    content = encode(load_any(mechanism))
    exported = decode(content)
    space = exported.secrets if exported.points is None else exported.points.mesh.region
    if getattr(space, "box", None) is None:
        raise InvalidProblem("the page needs a mechanism for positions: cells or points over a box of degrees")
    settings = {"name": name, "answersPerDay": answers, "repeatMinutes": repeat}
    files = assets | {MECHANISM: content, SETTINGS: json.dumps(settings, indent=2).encode() + b"\n"}
    digest = sha256(b"".join(sha256(part).digest() for _, part in sorted(files.items()))).hexdigest()[:VERSION_LENGTH]
    files[SERVICE_WORKER] = f'const VERSION = "{digest}";\n'.encode() + files[SERVICE_WORKER]
    target.mkdir(parents=True, exist_ok=True)
    for file, part in files.items():
        write_bytes(target / file, part)
    return WrittenPage(len(files), sum(map(len, files.values())), exported.disclosure, digest)


def _assets() -> dict[str, bytes]:
    """The page's files by name."""
    if not (ASSETS / SERVICE_WORKER).is_file():
        raise InvalidProblem("the page is not built here: run make device in a checkout, or install a wheel")
    return {path.name: path.read_bytes() for path in sorted(ASSETS.iterdir())}
