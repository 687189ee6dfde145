"""Excel workbooks (.xlsx): the cells of the first sheet that holds any, as texts. Nothing in them is executed.

A workbook is a zip archive of XML files. What they unfold to is limited, document types and entities are refused, and
formulas are read as the values that were saved with them.
"""

import re
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import BytesIO
from posixpath import join, normpath
from typing import IO

from privacygames.csv_reader import MAX_EXPANSION, MIN_EXPANSION_LIMIT
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.xml_reader import XmlParser

MOST_COLUMNS = 1000
"""Columns of a sheet: a single cell far to the right would make every row that wide."""

MAX_TEXTS = 1 << 27
"""Characters of all shared texts: 128 million."""

DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
"""Numbers of Excel's own formats of dates and times."""

IN_QUOTES = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
DATE_LETTERS = re.compile(r"[dmyhs]", re.IGNORECASE)
CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
FIRST_DAY, FIRST_DAY_1904 = datetime(1899, 12, 30), datetime(1904, 1, 1)
"""Day 0 of the two calendars of workbooks; the first is right from March 1900 on."""

DAMAGED = "the workbook is damaged, or not one of Excel: save it again as .xlsx, or as CSV"


def read_workbook(content: bytes, *, rows: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of the first sheet that holds any: their numbers, and their cells up to the last one with a value.

    Args:
        content: the file.
        rows: the largest number of rows.

    Raises:
        InvalidProblem: it is damaged, or uses what attacks use.
        TooLarge: it has more rows or columns, or unfolds to more than a workbook does.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            unfolded = sum(each.file_size for each in archive.infolist())
            if unfolded > max(MIN_EXPANSION_LIMIT, MAX_EXPANSION * len(content)):
                raise TooLarge("the workbook unfolds to far more than its size, as no table does")
            yield from _Workbook(archive).rows(rows)
    except (zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, OSError, EOFError):
        raise InvalidProblem(DAMAGED) from None


class _Workbook:
    """The parts of a workbook."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())

    def rows(self, most: int) -> Iterator[tuple[int, list[str]]]:
        """The rows of the first sheet that holds any."""
        book = _Elements("workbook", ("sheet", "workbookPr"))
        self._parse(book, "xl/workbook.xml")
        links = _Elements("relations", ("Relationship",))
        self._parse(links, "xl/_rels/workbook.xml.rels")
        targets = {each.get("Id"): each.get("Target", "") for _, each in links.elements}
        calendar = FIRST_DAY
        for tag, each in book.elements:
            if tag == "workbookPr" and each.get("date1904") in ("1", "true"):
                calendar = FIRST_DAY_1904
        texts, styles = _Texts(), _Styles()
        for part, parser in (("xl/sharedStrings.xml", texts), ("xl/styles.xml", styles)):
            if part in self._names:
                self._parse(parser, part)
        for tag, each in book.elements:
            target = next((targets.get(value) for key, value in each.items() if key.endswith(" id")), None)
            if tag != "sheet" or not target or each.get("state", "visible") != "visible":
                continue
            path = normpath(target.lstrip("/") if target.startswith("/") else join("xl", target))
            if path in self._names:
                sheet = _Sheet(texts.texts, styles.dates, calendar)
                is_empty = True
                for number, cells in self._sheet_rows(sheet, path):
                    if number > most + 1:
                        raise TooLarge(f"the sheet has more than {most} rows: leave some out, or use the command line")
                    is_empty = False
                    yield number, cells
                if not is_empty:
                    return

    def _sheet_rows(self, sheet: "_Sheet", path: str) -> Iterator[tuple[int, list[str]]]:
        with self._archive.open(path) as file:
            for broken in sheet.feed(file):
                if broken is not None:
                    raise InvalidProblem(DAMAGED)
                yield from sheet.ready
                sheet.ready.clear()

    def _parse(self, parser: XmlParser, path: str) -> None:
        with self._archive.open(path) as file:
            _parse_all(parser, file)


def _parse_all(parser: XmlParser, file: IO[bytes]) -> None:
    if any(broken is not None for broken in parser.feed(file)):
        raise InvalidProblem(DAMAGED)


class _Elements(XmlParser):
    """The attributes of some elements."""

    def __init__(self, name: str, tags: tuple[str, ...]) -> None:
        super().__init__(name)
        self._tags = tags
        self.elements: list[tuple[str, dict[str, str]]] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in self._tags:
            self.elements.append((tag, attributes))

    def text(self, text: str) -> None:
        pass

    def end(self, tag: str) -> None:
        pass


class _Texts(XmlParser):
    """The texts that cells share; how they are pronounced is left out."""

    def __init__(self) -> None:
        super().__init__("the workbook")
        self.texts: list[str] = []
        self._parts: list[str] = []
        self._in_text, self._spoken, self._length = False, 0, 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:  # noqa: ARG002 - none are read
        if tag == "si":
            self._parts = []
        self._in_text = tag == "t" and not self._spoken
        self._spoken += tag == "rPh"

    def text(self, text: str) -> None:
        if self._in_text:
            self._parts.append(text)
            self._length += len(text)
            if self._length > MAX_TEXTS:
                raise TooLarge("the workbook has more text than is read here")

    def end(self, tag: str) -> None:
        self._in_text = False
        self._spoken -= tag == "rPh"
        if tag == "si":
            self.texts.append("".join(self._parts))


class _Styles(XmlParser):
    """Which of the cell styles show dates."""

    def __init__(self) -> None:
        super().__init__("the workbook")
        self.dates: list[bool] = []
        self._own: dict[str, str] = {}
        self._in_cells = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "numFmt":
            self._own[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif tag == "cellXfs":
            self._in_cells = True
        elif tag == "xf" and self._in_cells:
            self.dates.append(self._is_date(attributes.get("numFmtId", "0")))

    def text(self, text: str) -> None:
        pass

    def end(self, tag: str) -> None:
        if tag == "cellXfs":
            self._in_cells = False

    def _is_date(self, number: str) -> bool:
        if number in self._own:
            return DATE_LETTERS.search(IN_QUOTES.sub("", self._own[number])) is not None
        return number.isdecimal() and int(number) in DATE_FORMATS


class _Sheet(XmlParser):
    """The rows of a sheet.

    Attributes:
        ready: rows that were read and not yet taken.
    """

    def __init__(self, texts: list[str], dates: list[bool], calendar: datetime) -> None:
        super().__init__("the workbook")
        self.ready: list[tuple[int, list[str]]] = []
        self._texts, self._dates, self._calendar = texts, dates, calendar
        self._cells: list[str] = []
        self._row = self._column = 0
        self._kind = self._style = ""
        self._value: list[str] = []
        self._in_value = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            number = attributes.get("r", "")
            self._row = int(number) if number.isdecimal() and len(number) < 8 else self._row + 1
            self._cells, self._column = [], 0
        elif tag == "c":
            match = CELL.fullmatch(attributes.get("r", ""))
            self._column = _column_number(match[1]) if match else self._column + 1
            self._kind, self._style, self._value = attributes.get("t", "n"), attributes.get("s", ""), []
            if self._column > MOST_COLUMNS:
                raise TooLarge(f"the sheet has more than {MOST_COLUMNS} columns")
        self._in_value = tag == "v" or (tag == "t" and self._kind == "inlineStr")

    def text(self, text: str) -> None:
        if self._in_value:
            self._value.append(text)

    def end(self, tag: str) -> None:
        self._in_value = False
        if tag == "c":
            value = self._written("".join(self._value))
            if value:
                self._cells += [""] * (self._column - len(self._cells))
                self._cells[self._column - 1] = value
        elif tag == "row" and self._cells:
            self.ready.append((self._row, self._cells))

    def _written(self, value: str) -> str:
        """The text of a cell: of a date, in ISO 8601; of a number, without the digits that only a computer sees."""
        if self._kind == "s":
            return self._texts[int(value)] if value.isdecimal() and int(value) < len(self._texts) else ""
        if self._kind == "b":
            return {"1": "TRUE", "0": "FALSE"}.get(value, "")
        if self._kind != "n":
            return "" if self._kind == "e" else value
        try:
            number = float(value)
            if self._style.isdecimal() and int(self._style) < len(self._dates) and self._dates[int(self._style)]:
                return _date(self._calendar, number)
            return format(number, ".15g") if "e" not in format(number, ".15g") else value
        except (ValueError, OverflowError):
            return value


def _date(calendar: datetime, days: float) -> str:
    """A date in ISO 8601, with its time if it has one; a time of day alone where there is no day."""
    time = calendar + timedelta(seconds=round(86_400 * days))
    if 0 <= days < 1:
        return time.time().isoformat()
    return time.date().isoformat() if time.time() == datetime.min.time() else time.isoformat(sep=" ")


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number
