"""One page that ties a study together: what was run, what the paper claims and what was found, every figure."""

from base64 import b64encode
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import numpy as np

from privacygames.atomic_io import write_text
from privacygames.jobs import Row, Table, Value, where
from privacygames.presentation import render
from privacygames_study.figures import PLANS, DrawnFigure, columns, count, distinct, done, plain, seconds, size, tidy
from privacygames_study.metadata import MANIFEST, About

REPORT = "report.html"
VERDICTS = {"holds": "holds", "holds except": "except", "does not hold": "fails", "not tested": "untested"}
"""How a verdict begins, to how it is shown."""

SOURCES = {"paper": "the paper", "ours": "ours"}
"""The source of a claim, to how it is shown."""

USER_COLUMNS = {
    "user": "User",
    "visits": "Visits",
    "cells": "Cells visited",
    "entropy_bits": "Entropy of the prior (bits)",
    "commonest_share": "Share of the commonest cell",
    "blind_km": "Error of a blind guess (km)",
}


def write(folder: Path, about: About, tables: dict[str, Table], claims: Table, figures: list[DrawnFigure]) -> Path:
    """Write the report: one file with its figures inside; links lead to their data in the folder, and nowhere else."""
    users = [tuple(_text(row.get(name)) for name in USER_COLUMNS) for row in tables.get("users", [])]
    files = _files(folder, tables)
    optional = {"Claims": claims, "Users": users, "Files": files}
    names = ("Claims", "Figures", "Setting", "Users", "Times", "Files")
    text = render(
        "study.html",
        package="privacygames_study",
        title=f"The paper's evaluation: {about.data}",
        lead=_lead(about),
        quick=about.quick,
        tally=_tally(claims),
        sections=[name for name in names if optional.get(name, True)],
        claims=[_claim(claim, {figure.name: figure.title for figure in figures}) for claim in claims],
        figures=[_figure(folder, figure) for figure in figures],
        left_out=[plan.title for plan in PLANS if plan.table not in tables],
        setting=_setting(about),
        users={"head": tuple(USER_COLUMNS.values()), "rows": users} if users else None,
        times=_times(about, tables),
        files=files,
    )
    path = folder / REPORT
    write_text(path, text)
    return path


def _lead(about: About) -> str:
    invented = "invented " if about.format == "synthetic" else ""
    return (
        f"{count(about.users, invented + 'user')}, {about.columns} × {about.rows} cells over "
        f"{size(about.width_km)} × {size(about.height_km)} km. {count(about.designs, 'mechanism')} designed, "
        f"{about.failed or 'none'} failed."
    )


def _tally(claims: Table) -> list[tuple[str, str]]:
    """How many claims hold, hold in part, do not, or were not tested; each with how it is shown."""
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
    """A picture as an address that holds it: the page is whole wherever it is sent."""
    return f"data:image/png;base64,{b64encode(picture.read_bytes()).decode()}"


def _setting(about: About) -> list[tuple[str, str]]:
    window = ", ".join(f"{degrees:.4f}°" for degrees in about.window or ())
    return [
        ("Data", f"{about.data}, read as {about.format}"),
        ("Users", str(about.users)),
        ("Grid", f"{about.columns} × {about.rows} cells over {size(about.width_km)} × {size(about.height_km)} km"),
        ("Window", f"{window} (west, south, east, north)" if window else "plain kilometres"),
        ("Scenario 1", f"ε = {_list(about.epsilons)} per km"),
        (
            "Scenario 2",
            f"ε = {_list(about.epsilons_2)} per km; d_m at {_list(about.shares)} of the way from what the "
            "differential mechanism reaches to the largest possible",
        ),
        (
            "Scenario 3",
            f"ε = {_list(about.epsilons_3)} per km; d_m = every {plain(about.step_km)} km, and the largest",
        ),
        ("Prior", f"{_list(about.strengths)} times the evidence on the {count(about.places, 'most visited place')}"),
        (
            "Approximation",
            f"ε = {_list(about.epsilons_approximation)} per km; d_m at {plain(about.share_approximation)} "
            f"of the same way; constraints up to {_list(about.radii_km)} km; "
            f"{about.approximation_columns} × {about.approximation_rows} cells",
        ),
        ("Robust", "scenario 1's ε; promises against all adversaries of the effect of the prior"),
        ("Parts run", ", ".join(about.parts)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in about.versions.items())),
        *((name, text) for name, text in _provenance(about) if text),
    ]


def _provenance(about: About) -> list[tuple[str, str]]:
    """Which command, data, source and machine the numbers come from; empty where not known."""
    read = f"{count(about.data_files, 'file')}, {about.data_bytes} bytes, SHA-256 {about.data_sha256}"
    parallel = f"{count(about.processes or 0, 'worker')} with {count(about.threads or 0, 'thread')} each"
    return [
        ("Command", about.command),
        ("Data files", read if about.data_sha256 else ""),
        ("Source", f"Git revision {about.revision}" if about.revision else ""),
        ("Machine", about.processor),
        ("Parallel", parallel if about.processes else ""),
        ("Finished", about.finished),
    ]


def _times(about: About, tables: dict[str, Table]) -> dict[str, object]:
    cores = f" on a machine with {count(about.cores, 'core')}" if about.cores else ""
    text = (
        f"All designs together took {seconds(about.design_seconds)}, added up over all processes and runs; the last "
        f"run took {seconds(about.wall_seconds)}{cores}."
    )
    rows = []
    for part, whole in tables.items():
        designed = [row for row in done(whole) if row.get("reused") is not True]
        for (mechanism,) in distinct(designed, "mechanism"):
            (times,) = columns(where(designed, mechanism=mechanism), "seconds")
            if len(times):
                middle, longest = seconds(float(np.median(times))), seconds(float(times.max()))
                rows.append((part, _text(mechanism) or "approximate joint", middle, longest))
    return {"text": text, "rows": rows}


def _files(folder: Path, tables: dict[str, Table]) -> list[str]:
    paths = [folder / MANIFEST, *(folder / "tables" / f"{name}.csv" for name in (*tables, "claims"))]
    return [_link(path, folder) for path in dict.fromkeys(paths) if path.is_file()]


def _link(path: Path, folder: Path) -> str:
    """A path as an address relative to the report."""
    return quote(path.relative_to(folder).as_posix())


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(plain(value) for value in values)


def _text(value: Value) -> str:
    if value is None:
        return ""
    return tidy(value) if isinstance(value, float) else str(value)
