"""Guesses what the columns of a table are, by their names in four languages and by what is in them."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

from privacygames.traces import DateOrder

Role = Literal["who", "latitude", "longitude", "position", "time", "number", "category", "count", "ignore"]
"""What a column is: whose row it is, a coordinate or both, a time, the secret number or category, how many rows a row
stands for, or none of these."""

ROLES = get_args(Role)
SECRET_ROLES = ("latitude", "longitude", "position", "number", "category")
Decimal = Literal["point", "comma"]

WORDS: dict[str, tuple[str, ...]] = {
    "latitude": ("lat", "latitude", "latitud", "breite", "breitengrad", "latitudine"),
    "longitude": ("lon", "lng", "long", "longitude", "longitud", "lange", "laengengrad", "langengrad", "longitudine"),
    "position": ("coordinates", "coordinate", "coords", "koordinaten", "position", "latlng", "latlon", "geo", "gps"),
    "time": (
        "time", "date", "datetime", "timestamp", "when", "datum", "zeit", "uhrzeit", "zeitpunkt", "zeitstempel",
        "aufnahme", "entlassung", "fecha", "hora", "heure", "besuchsdatum",
    ),
    "count": (
        "count", "counts", "visits", "anzahl", "besuche", "besucher", "total", "number", "n", "menge", "haufigkeit",
        "frequency", "freq", "nombre", "cantidad", "orders", "bestellungen",
    ),
    "who": (
        "user", "uid", "id", "who", "person", "patient", "patienten", "patientennr", "fall", "fallnummer", "name",
        "customer", "kunde", "kundennummer", "kundennr", "client", "cliente", "member", "mitglied", "schuler",
        "student", "pupil", "device", "gerat", "email", "mail", "case", "employee", "mitarbeiter", "teilnehmer",
    ),
    "number": (
        "age", "ages", "alter", "edad", "birth", "birthyear", "geburtsjahr", "jahrgang", "salary", "income", "gehalt",
        "einkommen", "lohn", "weight", "gewicht", "bmi", "height", "grosse", "score", "punkte", "note", "grade",
    ),
    "category": (
        "diagnosis", "diagnose", "diagnosen", "icd", "disease", "illness", "condition", "krankheit", "befund",
        "religion", "konfession", "party", "partei", "orientation", "ethnicity", "store", "shop", "filiale", "markt",
        "branch", "laden", "tienda", "magasin", "category", "kategorie", "city", "stadt", "town", "plz", "zip",
        "district", "bezirk", "product", "produkt", "job", "beruf", "occupation", "label", "group", "gruppe",
    ),
}  # fmt: skip
"""Words in the names of columns of each role, without accents and in lower case; the likelier roles first."""

SENSITIVE = ("diagnos", "icd", "disease", "illness", "krankheit", "befund", "religion", "konfession", "partei", "hiv")
"""Parts of names of what is most probably the secret of a table."""

AGES = ("age", "ages", "alter", "edad", "years", "jahre", "birth", "birthyear", "geburtsjahr", "jahrgang")
"""Names of columns that are in years."""

NUMBER = re.compile(r"[-+]?(\d+([.,]\d+)?|\d{1,3}([.' \u00a0]\d{3})+(,\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")
POSITION = re.compile(
    r"\(?\s*(-?\d{1,3}(?:\.\d+)?)\s*°?\s*[,; \t]\s*(-?\d{1,3}(?:\.\d+)?)\s*°?\s*\)?"
    r"|\(?\s*(-?\d{1,3},\d+)\s*°?\s*[; \t]\s*(-?\d{1,3},\d+)\s*°?\s*\)?"
)
"""Latitude and longitude in one text: 52.1, 5.2 or 52,1 5,2."""

WRITTEN_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?)|(\d{1,2}[./-]\d{1,2}[./-]\d{4}([ T,]+\d{1,2}:\d\d.*)?)|(\d{1,2}:\d\d(:\d\d)?)"
)
COMMA_POSITION = re.compile(r"\s*-?\d{1,3},\d+\s+-?\d{1,3},\d+\s*")
"""Latitude and longitude with decimal commas and nothing but space between them."""

DAY_AND_MONTH = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-]\d{4}")

NAMELESS = "Column "
"""What the names of columns that have none begin with."""

MOSTLY = 0.8
"""Share of the values of a column that decides what it holds."""

HALF = 0.5
"""The same, where its name says what it holds."""

NUMERIC_ROLES = ("latitude", "longitude", "number", "count")

MOST_CATEGORIES = 400
"""Different values of a column of categories."""


class Column(NamedTuple):
    """A column by name, with some of its values that are not empty, and how many different ones all rows have."""

    name: str
    values: Sequence[str]
    distinct: int
    rows: int

    @property
    def words(self) -> list[str]:
        """The words of its name, and the whole name, without accents and in lower case."""
        plain = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name)).lower()
        letters = "".join(letter for letter in plain if not unicodedata.combining(letter))
        words = [word for word in re.split(r"[^a-z0-9]+", letters) if word]
        return [*words, "".join(words)]

    def share(self, pattern: re.Pattern[str]) -> float:
        """The share of its values that a pattern matches."""
        return sum(bool(pattern.fullmatch(value.strip())) for value in self.values) / max(len(self.values), 1)

    def named(self, role: str) -> bool:
        """Whether its name says that it has a role."""
        return any(word in WORDS[role] for word in self.words)

    @property
    def is_known(self) -> bool:
        """Whether its name is one that columns have."""
        return any(self.named(role) for role in WORDS) or self.is_sensitive

    @property
    def is_sensitive(self) -> bool:
        """Whether its name is that of a secret."""
        return any(part in word for word in self.words for part in SENSITIVE)

    @property
    def is_years(self) -> bool:
        """Whether its name says that it is in years."""
        return any(word in AGES for word in self.words)


def guess_roles(columns: Sequence[Column], decimal: Decimal) -> list[Role]:
    """What each column is: at most one of each, and one secret.

    >>> ages = Column("Alter", ["34", "51", "34"], 2, 3)
    >>> guess_roles([Column("Schüler", ["Ann", "Bob", "Eva"], 3, 3), ages], "point")
    ['who', 'number']
    """
    roles: list[Role] = ["ignore"] * len(columns)
    numeric = [
        column.share(NUMBER) >= (HALF if any(map(column.named, NUMERIC_ROLES)) else MOSTLY) for column in columns
    ]
    dated = [column.share(WRITTEN_DATE) >= MOSTLY for column in columns]
    pair = _coordinates(columns, numeric, decimal)
    if pair is not None:
        roles[pair[0]], roles[pair[1]] = "latitude", "longitude"
    for index, column in enumerate(columns):
        if roles[index] == "ignore" and dated[index] and "time" not in roles:
            roles[index] = "time"
        elif "position" not in roles and pair is None and column.share(POSITION) >= MOSTLY and not numeric[index]:
            roles[index] = "position"
    times = [index for index, column in enumerate(columns) if column.named("time") and roles[index] == "ignore"]
    if times and "time" not in roles and not columns[times[0]].is_sensitive:
        roles[times[0]] = "time"
    for index, column in enumerate(columns):
        if roles[index] == "ignore" and "who" not in roles and column.named("who") and not column.is_sensitive:
            roles[index] = "who"
    if not {"latitude", "position"} & set(roles):
        _guess_secret(columns, roles, numeric)
    secrets = [index for index, role in enumerate(roles) if role == "category"]
    for index, column in enumerate(columns):
        lists_values = not secrets or columns[secrets[0]].distinct == columns[secrets[0]].rows
        if roles[index] == "ignore" and numeric[index] and column.named("count") and lists_values:
            roles[index] = "count"
            break
    return roles


def _guess_secret(columns: Sequence[Column], roles: list[Role], numeric: Sequence[bool]) -> None:
    """Choose the one column that is most probably the secret."""
    free = [index for index, role in enumerate(roles) if role == "ignore" and columns[index].values]
    texts = [index for index in free if not numeric[index]]
    numbers = [index for index in free if numeric[index]]
    few = [index for index in texts if 2 <= columns[index].distinct <= MOST_CATEGORIES]
    candidates: list[tuple[list[int], Role]] = [
        ([index for index in free if columns[index].is_sensitive and columns[index].distinct > 1], "category"),
        ([index for index in numbers if columns[index].named("number")], "number"),
        ([index for index in free if columns[index].named("category")], "category"),
        ([index for index in few if columns[index].distinct < columns[index].rows], "category"),
        ([index for index in numbers if not columns[index].named("count")], "number"),
        (few, "category"),
    ]
    for indices, role in candidates:
        if indices:
            roles[indices[0]] = role
            return


def _coordinates(columns: Sequence[Column], numeric: Sequence[bool], decimal: Decimal) -> tuple[int, int] | None:
    """The columns of latitude and longitude: by name, or two next to each other that only coordinates look like."""
    by_name = [
        next((index for index, column in enumerate(columns) if numeric[index] and column.named(role)), None)
        for role in ("latitude", "longitude")
    ]
    if by_name[0] is not None and by_name[1] is not None:
        return by_name[0], by_name[1]
    x_and_y = [
        next((i for i, each in enumerate(columns) if numeric[i] and each.words[-1] == axis), None) for axis in "yx"
    ]
    candidates = [(x_and_y[0], x_and_y[1])] + [(index, index + 1) for index in range(len(columns) - 1)]
    for first, second in candidates:
        if (
            first is not None
            and second is not None
            and all(
                numeric[index] and _has_decimals(columns[index], decimal, limit)
                for index, limit in ((first, 90), (second, 180))
            )
        ):
            return first, second
    return None


def _has_decimals(column: Column, decimal: Decimal, limit: float) -> bool:
    """Whether nearly all values are degrees with three decimal places or more, or with any in a column without name."""
    places = 1 if column.name.startswith(NAMELESS) else 3
    precise = re.compile(rf"[-+]?\d{{1,3}}[.,]\d{{{places},}}")
    values = [parse_number(value, decimal) for value in column.values]
    return column.share(precise) >= MOSTLY and all(value is not None and abs(value) <= limit for value in values)


def guess_decimal(columns: Sequence[Column]) -> Decimal:
    """Whether numbers have decimal commas: of those with one separator, whether more have a comma than a point."""
    texts = [value.strip() for column in columns for value in column.values]
    commas = sum(bool(re.fullmatch(r"[-+]?[\d.' \u00a0]*\d,\d+", text)) for text in texts)
    points = sum(bool(re.fullmatch(r"[-+]?[\d,' \u00a0]*\d\.\d+", text)) for text in texts)
    return "comma" if commas > points else "point"


def guess_dates(values: Sequence[str]) -> tuple[DateOrder | None, bool]:
    """The order of day and month, None where no date needs one; and whether the values leave no doubt."""
    pairs = [(int(match[1]), int(match[2])) for match in map(DAY_AND_MONTH.match, values) if match]
    if not pairs:
        return None, True
    if any(first > 12 for first, _ in pairs):
        return "day-first", True
    if any(second > 12 for _, second in pairs):
        return "month-first", True
    return "day-first", False


def parse_number(text: str, decimal: Decimal) -> float | None:
    """The number in a cell, with separators of thousands or not; None where there is none.

    >>> parse_number("1.234,5", "comma"), parse_number("1,234.5", "point"), parse_number("n/a", "point")
    (1234.5, 1234.5, None)
    """
    plain = text.strip().strip("°%").replace("\u00a0", "").replace(" ", "").replace("'", "")
    if plain.count(",") + plain.count(".") == 1 and not re.search(r"[.,]\d{3}$", plain):
        plain = plain.replace(",", ".")  # 3,5 or 3.5 has no other reading
    elif decimal == "comma":
        plain = plain.replace(".", "").replace(",", ".")
    else:
        plain = plain.replace(",", "")
    try:
        number = float(plain) if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", plain) else None
    except (ValueError, OverflowError):
        return None
    return number if number is None or abs(number) < 1e300 else None


def parse_position(text: str) -> tuple[float, float] | None:
    """The latitude and longitude in a cell; None where there are none.

    >>> parse_position("52.1, 5.2"), parse_position("52,1 5,2")
    ((52.1, 5.2), (52.1, 5.2))
    """
    match = POSITION.fullmatch(text.strip())
    if match is None:
        return None
    latitude, longitude = (match[1], match[2]) if match[1] else (match[3], match[4])
    return float(latitude.replace(",", ".")), float(longitude.replace(",", "."))
