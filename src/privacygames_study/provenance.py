"""Provenance of a study: the data, software and machine behind its numbers, without names, paths or addresses."""

import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import file_digest, sha256
from importlib.metadata import version
from pathlib import Path

from privacygames.jobs import Executor, ProcessExecutor, SerialExecutor
from privacygames.threads import available_processors

PACKAGES = ("privacygames", "privacygames_study")
"""The packages whose source decides what a study computes."""

LIBRARIES = ("privacygames", "numpy", "scipy", "highspy")
PROCESSORS = Path("/proc/cpuinfo")
"""The file in which Linux describes its processors."""


@dataclass(frozen=True)
class DataDigest:
    """The digest of the data that was read.

    Attributes:
        files: number of files.
        size: of all files together, in bytes.
        sha256: of the file; for a folder, of the lines ``<SHA-256>  <relative path>`` of its files, sorted by path.
    """

    files: int
    size: int
    sha256: str


def data_digest(path: Path) -> DataDigest:
    """The digest of a file, or of every file in a folder."""
    if path.is_file():
        return DataDigest(1, path.stat().st_size, _sha256(path))
    inside = sorted((file.relative_to(path).as_posix(), file) for file in path.rglob("*") if file.is_file())
    listing = "".join(f"{_sha256(file)}  {name}\n" for name, file in inside)
    return DataDigest(len(inside), sum(file.stat().st_size for _, file in inside), sha256(listing.encode()).hexdigest())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """The versions of Python, this library and what its numbers depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


@cache
def revision() -> str | None:
    """The Git revision of this library's source, with "+changes" if files differ from it; None outside a checkout."""
    source = Path(__file__).parents[1]
    tracked = _git(source, "ls-files", "--error-unmatch", *(f"{package}/__init__.py" for package in PACKAGES))
    commit = _git(source, "rev-parse", "HEAD")
    if tracked is None or commit is None:  # installed, maybe inside somebody else's checkout
        return None
    return f"{commit}+changes" if _git(source, "status", "--porcelain", "--", *PACKAGES) else commit


def _git(folder: Path, *arguments: str) -> str | None:
    """The output of a Git command; None if it fails or Git is not installed."""
    try:
        completed = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):
        return None
    return completed.stdout.strip()


def processor_model() -> str:
    """The model of this machine's processor, or its architecture if the model is unknown."""
    try:
        named = _fields(PROCESSORS.read_text(encoding="utf-8").splitlines()).get("model name", "")
    except OSError:
        named = ""
    return named or platform.processor() or platform.machine()


def _fields(lines: Iterable[str]) -> dict[str, str]:
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def worker_counts(workers: Executor | None) -> tuple[int | None, int | None]:
    """The number of processes, and of threads per process; None if a cluster decides."""
    if workers is None or isinstance(workers, SerialExecutor):
        return 1, available_processors()
    if isinstance(workers, ProcessExecutor):
        return workers.jobs, max(1, available_processors() // workers.jobs)
    return None, None
