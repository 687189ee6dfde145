"""What a file holds, by its first bytes: a recording of places, or a table, which is read into columns of texts."""

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from privacygames.csv_reader import MAX_EXPANSION, MIN_EXPANSION_LIMIT, QUOTED, SEPARATORS
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.studio.column_roles import COMMA_POSITION, NAMELESS, Column
from privacygames.studio.workbooks import read_workbook

GZIP, ZIP, PARQUET, OLD_EXCEL = b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0"
"""What files of these kinds begin with."""

Header = Literal["auto", "yes", "no"]
"""Whether the first row of a table names its columns; ``"auto"`` guesses."""

BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
WINDOWS = "cp1252"
"""What Excel on Windows writes in western Europe and America: Latin-1 with quotation marks and the euro."""

CHECKIN_LINE = re.compile(r"[^\t]+\t\d{4}-\d\d-\d\dT[^\t]*\t-?[\d.]+\t-?[\d.]+\t[^\t]*")
"""A line of SNAP's check-ins: user, time, latitude, longitude and place, without a line of names."""

SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""The line that tells Excel the separator."""

DECIMAL_COMMAS = re.compile(r"\s*[-+]?\d+,\d+\s*")
NUMBERS = re.compile(r"[-+\d.,'°%; \t\u00a0]*\d[-+\d.,'°%; \t\u00a0]*")
"""A cell of numbers, such as coordinates, and of nothing else."""

DIGITS = re.compile(r"\d")

SAMPLE_LINES = 50
"""Lines by which separator and header are guessed."""

MOST_COLUMNS, MOST_BAD_ROWS, MAX_CELL = 1000, 5, 1 << 17
"""Columns that are read, bad rows that are shown, and characters of a cell."""


class BadRow(NamedTuple):
    """A row that was left out: its line or row number, its cells, and why."""

    line: int
    cells: list[str]
    reason: str


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Attributes:
        names: the names of the columns, each once.
        rows: the cells, one text for each column.
        lines: the line or row of the file that each row begins in.
        form: ``"csv"`` or ``"xlsx"``.
        separator: between the cells of a CSV file.
        has_mark: whether a protected file should begin with a byte order mark, so that Excel reads it as UTF-8.
        has_header: whether the first row named the columns.
        left_out: rows that were left out.
        bad: the first of them.
    """

    names: list[str]
    rows: list[list[str]]
    lines: list[int]
    form: str
    separator: str = ","
    has_mark: bool = False
    has_header: bool = True
    left_out: int = 0
    bad: list[BadRow] = field(default_factory=list)


def unpacked(content: bytes) -> bytes:
    """The content of a file, unfolded if it was gzipped; one that unfolds as no data do is refused."""
    if not content.startswith(GZIP):
        return content
    limit = max(MIN_EXPANSION_LIMIT, MAX_EXPANSION * len(content))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            whole = file.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, OSError):
        raise InvalidProblem("the compressed file is damaged: fetch it again") from None
    if len(whole) > limit:
        raise TooLarge("the file unfolds to far more than its size, as no data do")
    return whole


def kind_of(content: bytes) -> str:
    """What a file holds: a form of recording of ``trace_uploads``, ``"parquet"``, ``"xlsx"`` or ``"csv"``."""
    if not content.strip(b"\0\t\r\n "):
        raise InvalidProblem("the file is empty")
    if content.startswith(PARQUET):
        return "parquet"
    if content.startswith(ZIP):
        return _kind_of_archive(content)
    if content.startswith(OLD_EXCEL):
        raise InvalidProblem(
            "this is an Excel file of before 2007, or one with a password: save it as .xlsx without a password, or as "
            "CSV"
        )
    start = decoded(content[: 1 << 16], whole=False)[0].lstrip()
    if start.startswith("<"):
        root = re.search(r"<(?:\w+:)?(gpx|kml)[\s>]", start)
        if root is None:
            raise InvalidProblem("this is XML or a web page, and no GPX or KML: export the places as GPX, KML or CSV")
        return root[1]
    if start.startswith(("{", "[")):
        return "json"
    is_checkins = CHECKIN_LINE.fullmatch(start.partition("\n")[0].rstrip("\r"))
    return "geolife" if start.startswith("Geolife trajectory") else "checkins" if is_checkins else "csv"


def _kind_of_archive(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name.lower() for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError):
        raise InvalidProblem("the file is a damaged archive: save it again") from None
    if "xl/workbook.xml" in names:
        return "xlsx"
    if any(name.endswith(".kml") for name in names):
        return "kmz"
    if "content.xml" in names or "xl/workbook.bin" in names:
        raise InvalidProblem("this spreadsheet is read once it is saved as .xlsx or CSV")
    raise InvalidProblem("this is an archive of files: unpack it, and choose one of them")


def decoded(content: bytes, *, whole: bool = True) -> tuple[str, bool]:
    """The text of a file, and whether it was anything but plain UTF-8.

    Args:
        content: the file, or its beginning.
        whole: whether it is all of it; its beginning may end within a character.
    """
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, errors="replace" if not whole else "strict"), True
    if b"\0" in content[:1000]:
        wide = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be"
        return content.decode(wide, errors="replace"), True
    try:
        return content.decode("utf-8"), False
    except UnicodeDecodeError as error:
        if not whole and error.start > len(content) - 4:
            return content[: error.start].decode("utf-8"), False
    return content.decode(WINDOWS, errors="replace"), True


def read_table(content: bytes, kind: str, *, header: Header, rows: int) -> TextTable:
    """The table of a CSV file, a pasted column or a workbook.

    Args:
        content: the file.
        kind: ``"csv"`` or ``"xlsx"``.
        header: whether the first row names the columns.
        rows: the largest number of rows.

    Raises:
        InvalidProblem: there is no table in it.
        TooLarge: it has more rows or columns.
    """
    if kind == "xlsx":
        return _table(list(read_workbook(content, rows=rows)), header, form="xlsx", has_mark=True)
    try:
        text, has_mark = decoded(content)
    except UnicodeDecodeError:
        raise InvalidProblem("the file's text cannot be read: save it as UTF-8") from None
    if "\0" in text:
        raise InvalidProblem("this is no table, recording or text: choose a file of one of the kinds listed")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    told = SEPARATOR_LINE.fullmatch(text.partition("\n")[0])
    skipped = text.partition("\n")[2] if told else text
    separator = told[1] if told else guess_separator(skipped)
    numbered = list(_csv_rows(skipped, separator, rows, first=2 if told else 1))
    return _table(numbered, header, form="csv", separator=separator, has_mark=has_mark)


def guess_separator(text: str) -> str:
    r"""The separator that splits the most of the first lines into equally many cells.

    >>> guess_separator("name;weight\nAnn;34,5\nBob;51,0")
    ';'
    """
    lines = [QUOTED.sub("", line) for line in text[: 1 << 16].split("\n") if line.strip()][:SAMPLE_LINES]
    body = lines[1:] or lines
    if any(all(one.fullmatch(line) for line in body) for one in (DECIMAL_COMMAS, COMMA_POSITION)):
        return ";"  # one column of numbers or places with decimal commas
    scores = {}
    for separator in SEPARATORS:
        counts = [line.count(separator) for line in lines]
        scores[separator] = (sum(count == counts[0] for count in counts) if counts and counts[0] else 0, counts[:1])
    return max(SEPARATORS, key=lambda separator: scores[separator])


def _csv_rows(text: str, separator: str, most: int, first: int) -> Iterator[tuple[int, list[str]]]:
    """The line and the cells of each row."""
    csv.field_size_limit(MAX_CELL)
    reader, line = csv.reader(io.StringIO(text, newline=""), delimiter=separator), first
    try:
        for count, cells in enumerate(reader):
            if count > most:
                raise TooLarge(f"the file has more than {most} rows: leave some out, or use the command line")
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = first + reader.line_num
    except csv.Error:
        raise InvalidProblem(f"line {line} is too long, or has a quotation mark that is never closed") from None


def _table(numbered: list[tuple[int, list[str]]], header: Header, **about: Any) -> TextTable:
    """A table of rows; those with another number of cells than the first one are left out."""
    numbered, titles = _without_titles(numbered)
    if not numbered:
        raise InvalidProblem("there are no rows in it")
    has_header = header == "yes" or (header == "auto" and _looks_like_header([cells for _, cells in numbered]))
    names = [cell.strip() for cell in numbered[0][1]] if has_header else []
    widest = max(len(cells) for _, cells in numbered[:SAMPLE_LINES])
    width = widest if about["form"] == "xlsx" else len(names) or widest  # workbooks store no empty cells at the end
    while (
        has_header
        and len(names) > 1
        and not names[-1]
        and not any("".join(cells[len(names) - 1 :]).strip() for _, cells in numbered[1:])
    ):
        names.pop()  # lines that end in a separator
        width = len(names)
    if width > MOST_COLUMNS:
        raise TooLarge(f"the table has {width} columns; at most {MOST_COLUMNS} are read")
    rows, lines, bad, left_out = [], [], list[BadRow](), len(titles)
    bad += [BadRow(line, cells, "above the table") for line, cells in titles]
    for line, cells in numbered[1:] if has_header else numbered:
        short = about["form"] == "xlsx" and len(cells) < width
        fitting = cells + [""] * (width - len(cells)) if short else cells
        while len(fitting) > width and not fitting[-1].strip():
            fitting = fitting[:-1]
        if len(fitting) == width:
            rows.append(fitting)
            lines.append(line)
            continue
        left_out += 1
        if len(bad) < MOST_BAD_ROWS:
            bad.append(BadRow(line, cells, f"{len(cells)} cells instead of {width}"))
    if not rows:
        raise InvalidProblem("there is nothing below the names of the columns" if has_header else "no row can be read")
    return TextTable(_distinct(names, width), rows, lines, **about, has_header=has_header, left_out=left_out, bad=bad)


def _without_titles(numbered: list[tuple[int, list[str]]]) -> tuple[list[Any], list[Any]]:
    """The table, and the titles above it: rows at the start with less than half as many cells as most rows have."""
    filled = [sum(bool(cell.strip()) for cell in cells) for _, cells in numbered[:SAMPLE_LINES]]
    usual = sorted(filled)[len(filled) // 2] if filled else 0
    titles = next((index for index, count in enumerate(filled[:MOST_BAD_ROWS]) if 2 * count >= usual), 0)
    return numbered[titles:], numbered[:titles]


def _looks_like_header(rows: Sequence[list[str]]) -> bool:
    """Whether the first row names columns: none of its cells is a number, while others in its column are, or recur."""
    first, others = rows[0], rows[1:SAMPLE_LINES]
    if any(NUMBERS.fullmatch(cell) for cell in first):
        return False
    if any(Column(cell, (), 0, 0).is_known for cell in first):
        return True
    if len(first) > 1:
        filled = [cell.strip() for cell in first if cell.strip()]
        return len(set(filled)) == len(filled) >= len(first) / 2
    below = [row[0].strip() for row in others if row]
    has_numbers = any(DIGITS.match(cell) for cell in below)
    return has_numbers or (first[0].strip() not in below and len(set(below)) < len(below))


def _distinct(names: Sequence[str], width: int) -> list[str]:
    """A name for every column, each once."""
    distinct: list[str] = []
    for index in range(width):
        name = (names[index] if index < len(names) else "") or f"{NAMELESS}{index + 1}"
        number, unique = 2, name
        while unique in distinct:
            unique, number = f"{name} ({number})", number + 1
        distinct.append(unique)
    return distinct
