"""The manifest of a study: its settings and provenance, in the file ``study.json`` and in captions."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from privacygames.atomic_io import write_text

MANIFEST = "study.json"


@dataclass(frozen=True)
class StudyManifest:
    """Settings and provenance of a study, as plain values.

    Attributes:
        data: the data set's name, for captions.
        format: the format it was read as; "synthetic" for synthetic people.
        users: number of people.
        columns: number of columns of the grid.
        rows: number of rows of the grid.
        width_km: width of the window.
        height_km: height of the window.
        window: west, south, east, north in degrees; None for counts in plain kilometres.
        epsilons: ε per km of scenario 1 and of the effect of the prior.
        epsilons_2: ε per km of scenario 2.
        epsilons_3: ε per km of scenario 3.
        step_km: d_m of scenario 3 is every multiple of this, and the largest possible.
        shares: scenario 2's d_m, as shares of the way from the differential mechanism's privacy to the largest.
        strengths: how much evidence an adversary has on the most visited places; 1 is none (π̂ = π).
        places: the number of these places.
        epsilons_approximation: ε per km of the approximations.
        share_approximation: their d_m, as a share of the same way as ``shares``.
        radii_km: the distances beyond which their constraints are left out.
        approximation_columns: of the coarser grid the approximations run on.
        approximation_rows: of the same.
        parts: the parts that were run.
        quick: whether these are the coarse settings.
        designs: number of mechanisms designed.
        failed: number of these that no solver could design.
        design_seconds: time of all designs, summed over processes and runs.
        wall_seconds: duration of the last run.
        cores: of the machine that handed out the work.
        versions: of Python, this library and what its numbers depend on.
        command: the command of the last run, with placeholders for people, files and addresses; empty from Python.
        data_files: number of files read.
        data_bytes: their total size.
        data_sha256: of the file, or of the listing of a folder (see :class:`~privacygames_study.DataDigest`); empty for
            synthetic people and from Python.
        revision: the Git revision of the library's source, if it runs from a checkout.
        processor: the model of that machine's processor. Designs finished in earlier runs may be another machine's.
        processes: number of processes; None on a cluster.
        threads: maximum number of threads per process; None on a cluster.
        finished: when the last run ended, in UTC.
    """

    data: str
    format: str
    users: int
    columns: int
    rows: int
    width_km: float
    height_km: float
    window: tuple[float, float, float, float] | None
    epsilons: tuple[float, ...]
    epsilons_2: tuple[float, ...]
    epsilons_3: tuple[float, ...]
    step_km: float
    shares: tuple[float, ...]
    strengths: tuple[float, ...]
    places: int
    epsilons_approximation: tuple[float, ...]
    share_approximation: float
    radii_km: tuple[float, ...]
    approximation_columns: int
    approximation_rows: int
    parts: tuple[str, ...]
    quick: bool
    designs: int = 0
    failed: int = 0
    design_seconds: float = 0.0
    wall_seconds: float = 0.0
    cores: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    data_files: int = 0
    data_bytes: int = 0
    data_sha256: str = ""
    revision: str | None = None
    processor: str = ""
    processes: int | None = None
    threads: int | None = None
    finished: str = ""

    def write(self, folder: Path) -> None:
        """Write the manifest into a folder."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"
        write_text(folder / MANIFEST, text)


def read_manifest(folder: Path) -> StudyManifest:
    """The manifest of a folder."""
    values = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return StudyManifest(**plain)
