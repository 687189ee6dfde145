"""One page that ties a study together: what was run, what the paper claims and what was found, every figure."""

from collections import Counter
from pathlib import Path
from urllib.parse import quote

import numpy as np

from privacygames.study.about import MANIFEST, About
from privacygames.study.figures import PLANS, Figure
from privacygames.study.figures.rows import columns, distinct, done
from privacygames.study.figures.words import count, plain, seconds, size, tidy
from privacygames.study.markup import Markup, page, table, tag, together
from privacygames.study.tables import Table, Value, where

REPORT = "report.html"
VERDICTS = {"holds": "holds", "holds except": "except", "does not hold": "fails", "not tested": "untested"}
"""How a verdict begins, to how it is shown."""


def write(folder: Path, about: About, tables: dict[str, Table], claims: Table, figures: list[Figure]) -> Path:
    """Write the report into a study's folder; it links to the figures and tables there, and to nothing else."""
    title = f"The paper's evaluation: {about.data}"
    sections = {
        "Claims": _claims(claims, figures),
        "Figures": _figures(folder, figures, tables),
        "Setting": _setting(about),
        "Users": _users(tables.get("users", [])),
        "Times": _times(about, tables),
        "Files": _files(folder, tables),
    }
    kept = {name: body for name, body in sections.items() if body}
    links = (tag("a", name, href=f"#{name.lower()}") for name in kept)
    bodies = (tag("section", tag("h2", name), body, id=name.lower()) for name, body in kept.items())
    text = page(title, tag("h1", title), _lead(about), _tally(claims), tag("nav", *links), *bodies)
    path = folder / REPORT
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    return partial.replace(path)


def _lead(about: About) -> Markup:
    invented = "invented " if about.format == "synthetic" else ""
    said = tag(
        "p",
        f"{count(about.users, invented + 'user')}, {about.columns} × {about.rows} cells over "
        f"{size(about.width_km)} × {size(about.height_km)} km. {count(about.designs, 'mechanism')} designed, "
        f"{about.failed or 'none'} failed.",
    )
    if not about.quick:
        return said
    return together(
        said,
        tag(
            "p",
            "The quick version: it shows how the study works, on a grid too coarse to judge the claims.",
            class_="note",
        ),
    )


def _tally(claims: Table) -> Markup:
    """How many claims hold, hold in part, do not, or were not tested."""
    tally = Counter(_kind(claim.get("verdict")) for claim in claims)
    entries = [
        tag("li", tag("span", f"{text}: {tally[kind]}", class_=f"badge {kind}"))
        for text, kind in VERDICTS.items()
        if tally[kind]
    ]
    return tag("ul", *entries, class_="tally") if entries else Markup()


def _kind(verdict: Value) -> str:
    starts = [start for start in VERDICTS if str(verdict).startswith(start)]
    return VERDICTS[max(starts, key=len)] if starts else "untested"


def _claims(claims: Table, figures: list[Figure]) -> Markup:
    if not claims:
        return Markup()
    titles = {figure.name: figure.title for figure in figures}
    rows = []
    for claim in claims:
        name, verdict = str(claim.get("figure")), claim.get("verdict")
        rows.append(
            (
                _text(claim.get("statement")),
                tag("span", _text(verdict), class_=f"badge {_kind(verdict)}"),
                f"{_text(claim.get('holds'))} of {_text(claim.get('cases'))}" if claim.get("cases") else "none",
                _text(claim.get("evidence")),
                _text(claim.get("tolerance")),
                tag("a", titles[name], href=f"#{quote(name)}") if name in titles else "not drawn",
            )
        )
    return table(("The paper's claim", "Verdict", "Cases", "Evidence", "Tolerance", "Figure"), rows, class_="claims")


def _figures(folder: Path, figures: list[Figure], tables: dict[str, Table]) -> Markup:
    left_out = [plan.title for plan in PLANS if plan.table not in tables]
    note = tag("p", f"Not drawn, because not run: {', '.join(left_out)}.", class_="soft") if left_out else Markup()
    return together(tag("div", *(_figure(folder, figure) for figure in figures), class_="figures"), note)


def _figure(folder: Path, figure: Figure) -> Markup:
    files = {path.suffix[1:].upper(): _link(path, folder) for path in figure.files}
    links = [tag("a", kind, href=address) for kind, address in files.items()]
    spaced = [piece for link in links for piece in (link, " · ")][:-1]
    return tag(
        "figure",
        tag("h3", figure.title),
        tag("a", tag("img", src=files["PNG"], alt=figure.title), href=files.get("PDF", files["PNG"])),
        tag("figcaption", figure.caption),
        tag("p", *spaced, class_="files"),
        id=figure.name,
    )


def _setting(about: About) -> Markup:
    window = ", ".join(f"{degrees:.4f}°" for degrees in about.window or ())
    entries = {
        "Data": f"{about.data}, read as {about.format}",
        "Users": str(about.users),
        "Grid": f"{about.columns} × {about.rows} cells over {size(about.width_km)} × {size(about.height_km)} km",
        "Window": f"{window} (west, south, east, north)" if window else "plain kilometres",
        "Scenario 1": f"ε = {_list(about.epsilons)} per km",
        "Scenario 2": f"ε = {_list(about.epsilons_2)} per km; d_m at {_list(about.shares)} of the way from what the "
        "differential mechanism reaches to the largest possible",
        "Scenario 3": f"ε = {_list(about.epsilons_3)} per km; d_m = every {plain(about.step_km)} km, and the largest",
        "Prior": f"{_list(about.strengths)} times the evidence on the {count(about.places, 'most visited place')}",
        "Approximation": f"ε = {_list(about.epsilons_approximation)} per km; d_m at {plain(about.share_approximation)} "
        f"of the same way; constraints up to {_list(about.radii_km)} km; "
        f"{about.approximation_columns} × {about.approximation_rows} cells",
        "Parts run": ", ".join(about.parts),
        "Versions": ", ".join(f"{name} {version}" for name, version in about.versions.items()),
    }
    return tag("dl", *(piece for name, text in entries.items() for piece in (tag("dt", name), tag("dd", text))))


def _users(users: Table) -> Markup:
    heads = {
        "user": "User",
        "visits": "Visits",
        "cells": "Cells visited",
        "entropy_bits": "Entropy of the prior (bits)",
        "commonest_share": "Share of the commonest cell",
        "blind_km": "Error of a blind guess (km)",
    }
    rows = [tuple(_text(row.get(name)) for name in heads) for row in users]
    return tag("div", table(tuple(heads.values()), rows, class_="numbers"), class_="scroll") if rows else Markup()


def _times(about: About, tables: dict[str, Table]) -> Markup:
    cores = f" on a machine with {count(about.cores, 'core')}" if about.cores else ""
    said = tag(
        "p",
        f"All designs together took {seconds(about.design_seconds)}, added up over all processes and runs; the last "
        f"run took {seconds(about.wall_seconds)}{cores}.",
    )
    rows = []
    for part, whole in tables.items():
        designed = [row for row in done(whole) if row.get("reused") is not True]
        for (mechanism,) in distinct(designed, "mechanism"):
            (times,) = columns(where(designed, mechanism=mechanism), "seconds")
            if len(times):
                middle, longest = seconds(float(np.median(times))), seconds(float(times.max()))
                rows.append((part, _text(mechanism) or "approximate joint", middle, longest))
    body = table(("Part", "Mechanism", "Median", "Longest"), rows, class_="numbers times") if rows else Markup()
    return together(said, tag("div", body, class_="scroll"))


def _files(folder: Path, tables: dict[str, Table]) -> Markup:
    paths = [folder / MANIFEST, *(folder / "tables" / f"{name}.csv" for name in (*tables, "claims"))]
    there = dict.fromkeys(path for path in paths if path.is_file())
    return (
        tag("ul", *(tag("li", tag("a", _link(path, folder), href=_link(path, folder))) for path in there))
        if there
        else Markup()
    )


def _link(path: Path, folder: Path) -> str:
    """A path as an address relative to the report."""
    return quote(path.relative_to(folder).as_posix())


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(plain(value) for value in values)


def _text(value: Value) -> str:
    if value is None:
        return ""
    return tidy(value) if isinstance(value, float) else str(value)
