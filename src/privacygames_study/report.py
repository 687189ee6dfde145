"""The report of a study as one HTML page: settings, claims with verdicts, figures and times."""

from base64 import b64encode
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import numpy as np

from privacygames.atomic_io import write_text
from privacygames.jobs import Row, Table, Value, where
from privacygames.presentation import render
from privacygames_study.figures import (
    PLANS,
    DrawnFigure,
    columns,
    counted_noun,
    distinct,
    done,
    duration,
    kilometres,
    parameter,
    rounded,
)
from privacygames_study.manifest import MANIFEST, StudyManifest

REPORT = "report.html"
VERDICTS = {"holds": "holds", "holds except": "except", "does not hold": "fails", "not tested": "untested"}
"""The beginning of a verdict, and the CSS class of its badge."""

SOURCES = {"paper": "the paper", "ours": "ours"}
"""The source of a claim, and how it is printed."""

USER_COLUMNS = {
    "user": "User",
    "visits": "Visits",
    "cells": "Cells visited",
    "entropy_bits": "Entropy of the prior (bits)",
    "commonest_share": "Share of the commonest cell",
    "blind_km": "Error of a blind guess (km)",
}


def write(
    folder: Path, manifest: StudyManifest, tables: dict[str, Table], claims: Table, figures: list[DrawnFigure]
) -> Path:
    """Write the report as one file that contains its figures, with links to their data in the same folder."""
    users = [tuple(_text(row.get(name)) for name in USER_COLUMNS) for row in tables.get("users", [])]
    files = _files(folder, tables)
    optional = {"Claims": claims, "Users": users, "Files": files}
    names = ("Claims", "Figures", "Setting", "Users", "Times", "Files")
    text = render(
        "study.html",
        package="privacygames_study",
        title=f"The paper's evaluation: {manifest.data}",
        lead=_lead(manifest),
        quick=manifest.quick,
        tally=_tally(claims),
        sections=[name for name in names if optional.get(name, True)],
        claims=[_claim(claim, {figure.name: figure.title for figure in figures}) for claim in claims],
        figures=[_figure(folder, figure) for figure in figures],
        left_out=[plan.title for plan in PLANS if plan.table not in tables],
        setting=_setting(manifest),
        users={"head": tuple(USER_COLUMNS.values()), "rows": users} if users else None,
        times=_times(manifest, tables),
        files=files,
    )
    path = folder / REPORT
    write_text(path, text)
    return path


def _lead(manifest: StudyManifest) -> str:
    origin = "synthetic " if manifest.format == "synthetic" else ""
    return (
        f"{counted_noun(manifest.users, origin + 'user')}, {manifest.columns} × {manifest.rows} cells over "
        f"{kilometres(manifest.width_km)} × {kilometres(manifest.height_km)} km. "
        f"{counted_noun(manifest.designs, 'mechanism')} designed, "
        f"{manifest.failed or 'none'} failed."
    )


def _tally(claims: Table) -> list[tuple[str, str]]:
    """The number of claims that hold, hold with exceptions, do not hold, or were not tested, with CSS classes."""
    tally = Counter(_kind(claim.get("verdict")) for claim in claims)
    return [(f"{text}: {tally[kind]}", kind) for text, kind in VERDICTS.items() if tally[kind]]


def _kind(verdict: Value) -> str:
    starts = [start for start in VERDICTS if str(verdict).startswith(start)]
    return VERDICTS[max(starts, key=len)] if starts else "untested"


def _claim(claim: Row, titles: dict[str, str]) -> dict[str, str]:
    figure, verdict = str(claim.get("figure")), claim.get("verdict")
    return {
        "statement": _text(claim.get("statement")),
        "source": SOURCES.get(str(claim.get("source")), ""),
        "verdict": _text(verdict),
        "kind": _kind(verdict),
        "cases": f"{_text(claim.get('holds'))} of {_text(claim.get('cases'))}" if claim.get("cases") else "none",
        "evidence": _text(claim.get("evidence")),
        "tolerance": _text(claim.get("tolerance")),
        "figure": figure,
        "title": titles.get(figure, ""),
    }


def _figure(folder: Path, figure: DrawnFigure) -> dict[str, object]:
    links = {path.suffix[1:].upper(): _link(path, folder) for path in figure.files}
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "shown": _inside(next(path for path in figure.files if path.suffix == ".png")),
        "opens": links.get("PDF", links["PNG"]),
        "links": list(links.items()),
    }


def _inside(picture: Path) -> str:
    """A picture as a data URL, so that the page needs no other file."""
    return f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"


def _setting(manifest: StudyManifest) -> list[tuple[str, str]]:
    window = ", ".join(f"{degrees:.4f}°" for degrees in manifest.window or ())
    return [
        ("Data", f"{manifest.data}, read as {manifest.format}"),
        ("Users", str(manifest.users)),
        (
            "Grid",
            f"{manifest.columns} × {manifest.rows} cells over "
            f"{kilometres(manifest.width_km)} × {kilometres(manifest.height_km)} km",
        ),
        ("Window", f"{window} (west, south, east, north)" if window else "plain kilometres"),
        ("Scenario 1", f"ε = {_list(manifest.epsilons)} per km"),
        (
            "Scenario 2",
            f"ε = {_list(manifest.epsilons_2)} per km; d_m at {_list(manifest.shares)} of the way from what the "
            "differential mechanism reaches to the largest possible",
        ),
        (
            "Scenario 3",
            f"ε = {_list(manifest.epsilons_3)} per km; d_m = every {parameter(manifest.step_km)} km, and the largest",
        ),
        (
            "Prior",
            f"{_list(manifest.strengths)} times the evidence on the "
            f"{counted_noun(manifest.places, 'most visited place')}",
        ),
        (
            "Approximation",
            f"ε = {_list(manifest.epsilons_approximation)} per km; d_m at {parameter(manifest.share_approximation)} "
            f"of the same way; constraints up to {_list(manifest.radii_km)} km; "
            f"{manifest.approximation_columns} × {manifest.approximation_rows} cells",
        ),
        ("Robust", "scenario 1's ε; guarantees against all adversaries of the effect of the prior"),
        ("Parts run", ", ".join(manifest.parts)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())),
        *((name, text) for name, text in _provenance(manifest) if text),
    ]


def _provenance(manifest: StudyManifest) -> list[tuple[str, str]]:
    """Command, data, source and machine behind the numbers; empty if unknown."""
    read = f"{counted_noun(manifest.data_files, 'file')}, {manifest.data_bytes} bytes, SHA-256 {manifest.data_sha256}"
    parallel = (
        f"{counted_noun(manifest.processes or 0, 'worker')} with {counted_noun(manifest.threads or 0, 'thread')} each"
    )
    return [
        ("Command", manifest.command),
        ("Data files", read if manifest.data_sha256 else ""),
        ("Source", f"Git revision {manifest.revision}" if manifest.revision else ""),
        ("Machine", manifest.processor),
        ("Parallel", parallel if manifest.processes else ""),
        ("Finished", manifest.finished),
    ]


def _times(manifest: StudyManifest, tables: dict[str, Table]) -> dict[str, object]:
    cores = f" on a machine with {counted_noun(manifest.cores, 'core')}" if manifest.cores else ""
    text = (
        f"All designs together took {duration(manifest.design_seconds)}, added up over all processes and runs; "
        "the last "
        f"run took {duration(manifest.wall_seconds)}{cores}."
    )
    rows = []
    for part, whole in tables.items():
        designed = [row for row in done(whole) if row.get("reused") is not True]
        for (mechanism,) in distinct(designed, "mechanism"):
            (times,) = columns(where(designed, mechanism=mechanism), "seconds")
            if len(times):
                middle, longest = duration(float(np.median(times))), duration(float(times.max()))
                rows.append((part, _text(mechanism) or "approximate joint", middle, longest))
    return {"text": text, "rows": rows}


def _files(folder: Path, tables: dict[str, Table]) -> list[str]:
    paths = [folder / MANIFEST, *(folder / "tables" / f"{name}.csv" for name in (*tables, "claims"))]
    return [_link(path, folder) for path in dict.fromkeys(paths) if path.is_file()]


def _link(path: Path, folder: Path) -> str:
    """A path as a URL relative to the report."""
    return quote(path.relative_to(folder).as_posix())


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(parameter(value) for value in values)


def _text(value: Value) -> str:
    if value is None:
        return ""
    return rounded(value) if isinstance(value, float) else str(value)
