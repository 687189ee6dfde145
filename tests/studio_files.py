"""Files as people have them, for tests of the studio: a hospital's, a teacher's, a shop's, a journalist's."""

import io
import zipfile
from collections.abc import Sequence
from random import Random
from xml.sax.saxutils import escape

DIAGNOSES = ("I10", "E11.9", "J45.0", "F32.1", "M54.5", "B24", "K21.0", "C50.9")
"""Codes of the ICD, the commonest first."""

STORES = ("Berlin-Mitte", "Hamburg", "Köln", "München Süd", "Leipzig")
SHEET = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'
)
BOOK = """<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
 <sheets><sheet name="Leer" sheetId="1" r:id="rId1"/><sheet name="Klasse 7b" sheetId="2" r:id="rId2"/></sheets>
</workbook>"""
LINKS = """<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
 <Relationship Id="rId1" Type="x" Target="worksheets/sheet1.xml"/>
 <Relationship Id="rId2" Type="x" Target="/xl/worksheets/sheet2.xml"/></Relationships>"""
STYLES = """<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
 <numFmts><numFmt numFmtId="164" formatCode="[$-407]dd/mm/yyyy;@"/></numFmts>
 <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
 <cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="22"/></cellXfs>
</styleSheet>"""


def hospital(rows: int = 1500) -> bytes:
    """What a German Excel writes as CSV: semicolons, Windows' Latin-1, dates with the day first, decimal commas."""
    random = Random(7)
    lines = ["Patientennr.;Geburtsjahr;Geschlecht;Aufnahme;Diagnose (ICD);Größe in m;Ärztin"]
    for number in range(rows):
        diagnosis = random.choices(DIAGNOSES, (30, 22, 16, 12, 9, 5, 4, 2))[0]
        day = f"{random.randint(1, 28):02}.{random.randint(1, 12):02}.2023 {random.randint(0, 23):02}:15"
        lines.append(
            f"P-{10_000 + number};{random.randint(1935, 2005)};{random.choice('mwd')};{day};{diagnosis};"
            f"1,{random.randint(50, 99)};Dr. Müller"
        )
    lines.insert(40, "P-x;1990;m;kaputt")
    lines.insert(60, "P-y;1991;w;01.02.2023 10:00;;1,70;Dr. Müller")
    return ("\r\n".join(lines) + "\r\n").encode("cp1252")


def ages(count: int = 240) -> list[int]:
    """How old a school's pupils are."""
    random = Random(3)
    return [min(max(round(random.gauss(13, 2)), 9), 19) for _ in range(count)]


def customers(rows: int = 1200) -> bytes:
    """A shop's table of customers: tabs, UTF-8."""
    random = Random(5)
    lines = ["customer_id\tvisit_date\tstore\tbasket_eur"]
    for number in range(rows):
        store = random.choices(STORES, (9, 6, 5, 3, 1))[0]
        day = f"2024-0{random.randint(1, 9)}-1{random.randint(0, 9)}"
        lines.append(f"c{number % 900}\t{day}\t{store}\t{random.random() * 90:.2f}")
    return ("\n".join(lines) + "\n").encode()


def store_visits() -> bytes:
    """A report of a shop: how often each store was visited."""
    visits = zip(STORES, (9204, 6120, 5011, 2950, 1013), strict=True)
    return ("store\tvisits\n" + "".join(f"{store}\t{count}\n" for store, count in visits)).encode()


def route(points: int = 400) -> bytes:
    """A route that a journalist drew or exported: GPX without a time."""
    random = Random(11)
    homes = ((52.5200, 13.4050), (52.4910, 13.4240), (52.5070, 13.3320))
    body = ""
    for latitude, longitude in random.choices(homes, (5, 3, 2), k=points):
        place = f'lat="{latitude + random.gauss(0, 0.004):.6f}" lon="{longitude + random.gauss(0, 0.006):.6f}"'
        body += f"<trkpt {place}><ele>34</ele></trkpt>\n"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="maps" '
        f'xmlns="http://www.topografix.com/GPX/1/1"><trk><name>Recherche</name><trkseg>\n{body}</trkseg></trk></gpx>\n'
    ).encode()


def workbook(rows: Sequence[Sequence[str | float]], *, dates: Sequence[int] = ()) -> bytes:
    """A workbook as Excel writes it: an empty sheet, then one with these rows; columns in ``dates`` are styled so."""
    texts: list[str] = []
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = []
        for column, value in enumerate(row):
            place = f'r="{chr(65 + column)}{number}"'
            if isinstance(value, str):
                if value:
                    cells.append(f'<c {place} t="s"><v>{len(texts)}</v></c>')
                    texts.append(value)
            else:
                cells.append(f'<c {place} s="{int(column in dates)}"><v>{value}</v></c>')
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    shared = "".join(f"<si><r><t>{escape(text)}</t></r><rPh><t>reading</t></rPh></si>" for text in texts)
    parts = {
        "xl/workbook.xml": BOOK,
        "xl/_rels/workbook.xml.rels": LINKS,
        "xl/styles.xml": STYLES,
        "xl/sharedStrings.xml": f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{shared}</sst>',
        "xl/worksheets/sheet1.xml": SHEET.format(""),
        "xl/worksheets/sheet2.xml": SHEET.format("".join(lines)),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return packed.getvalue()
