"""KML, plain or zipped (KMZ): the places, paths and recorded tracks of its placemarks, with or without times."""

import zipfile
from collections.abc import Iterator

from privacygames.csv_reader import MIN_EXPANSION_LIMIT, expansion_limit, open_decompressed
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.traces.readers.gpx import user_of_file
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource
from privacygames.traces.readers.xml_points import PointParser, WrittenPoint

READ_TEXTS = ("coordinates", "when", "begin", "coord")
"""Elements whose text is read."""


class _KmlParser(PointParser):
    """An XML parser that collects the positions of placemarks; areas (polygons) are no positions."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._text: list[str] | None = None
        self._polygons = 0
        self._time = ""
        self._times: list[str] = []
        self._placed: list[tuple[int, str, str]] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:  # noqa: ARG002 - positions are texts here
        if tag == "Placemark":
            self._time = ""
            self._placed.clear()
        elif tag == "Track":
            self._times.clear()
        elif tag == "Polygon":
            self._polygons += 1
        self._text = [] if tag in READ_TEXTS else None

    def text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def end(self, tag: str) -> None:
        text = "" if self._text is None else "".join(self._text)
        self._text = None
        match tag:
            case "coordinates" if not self._polygons:
                self._placed += [(self.line, *_split(each, ",")) for each in text.split()]
            case "coord":  # of a recorded track, each after the time of the same number
                time = self._times.pop(0) if self._times else ""
                longitude, latitude = _split(text.strip(), " ")
                self.points.append(WrittenPoint(self.line, latitude, longitude, time))
            case "when" | "begin":
                self._time = text.strip()
                self._times.append(self._time)
            case "Polygon":
                self._polygons -= 1
            case "Placemark":
                self.points += [
                    WrittenPoint(line, latitude, longitude, self._time) for line, longitude, latitude in self._placed
                ]
                self._placed.clear()


def _split(text: str, separator: str) -> tuple[str, str]:
    """The first two of some numbers: longitude and latitude."""
    longitude, _, rest = text.partition(separator)
    return longitude, rest.partition(separator)[0]


def read_kml(source: TraceSource) -> Iterator[RowBatch]:
    """The positions of a KML or KMZ file."""
    parser = _KmlParser(source.path.name)
    if source.path.suffix.lower() != ".kmz":
        with open_decompressed(source.path, max_expanded=expansion_limit(source.path)) as (file, position):
            yield from parser.read(source, file, position)
        return
    try:
        with zipfile.ZipFile(source.path) as archive:
            inner = next((each for each in archive.infolist() if each.filename.lower().endswith(".kml")), None)
            if inner is None:
                raise InvalidProblem(f"{source.path.name} holds no KML document")
            if inner.file_size > max(MIN_EXPANSION_LIMIT, expansion_limit(source.path)):
                raise InvalidProblem(f"{source.path.name} unfolds to far more than its size, as no recording does")
            size = source.path.stat().st_size
            with archive.open(inner) as file:  # yields no more than the size that was checked
                yield from parser.read(source, file, lambda: size)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError):  # damaged, or encrypted
        raise UnreadableFile(source.path, "it is damaged, or not a KMZ file") from None


KML = TraceFormat(read_kml, endings=(".kml", ".kml.gz", ".kmz"), user_of=user_of_file)
