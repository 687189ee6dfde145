"""GPX without times, GeoJSON, KML and Google's Timelines, as programs write them and as attackers do."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg

MIDNIGHT = 1_704_067_200  # 2024-01-01 UTC
HOME, WORK = (46.5, 6.5), (46.6, 6.6)
GPX = "<gpx>{}<trk><trkseg>{}</trkseg></trk></gpx>"
POINT = '<trkpt lat="46.5" lon="6.5">{}</trkpt>'
TIME = "<time>2024-01-01T00:00:01Z</time>"


def read(folder: Path, name: str, content: str | bytes, **options: Any) -> pg.traces.Visits:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return pg.traces.read(folder / name, **options)


def places(visits: pg.traces.Visits) -> list[tuple[float, float]]:
    return list(zip(visits.latitude.tolist(), visits.longitude.tolist(), strict=True))


def test_gpx_without_times_has_visits_in_the_order_of_the_file(tmp_path: Path) -> None:
    later = POINT.replace("46.5", "46.4")
    visits = read(tmp_path, "anna.gpx", GPX.format("", POINT.format("") + later.format("") + POINT.format("")))
    assert (visits.has_times, visits.slot, visits.skipped["bad time"]) == (False, None, 0)
    assert visits.latitude.tolist() == [46.5, 46.4, 46.5]
    grid = pg.Grid.over((6.0, 46.0, 7.0, 47.0), columns=2, rows=2)
    assert visits.counts(grid, "anna").sum() == 3
    for needs_times in (
        lambda: visits.transitions(grid, "anna"),
        lambda: visits.trace(grid, "anna"),
        lambda: visits.during(days="weekdays"),
        lambda: visits.before(1),
    ):
        with pytest.raises(pg.InvalidProblem, match="have no times"):
            needs_times()


@pytest.mark.parametrize("reverse", [False, True])
def test_points_without_a_time_are_skipped_where_others_have_one(tmp_path: Path, reverse: bool) -> None:
    points = [POINT.format(""), POINT.format(TIME)]
    visits = read(tmp_path, "anna.gpx", GPX.format("", "".join(points[::-1] if reverse else points)))
    assert (len(visits), visits.has_times, visits.skipped["bad time"], visits.rows) == (1, True, 1, 2)


def test_a_time_that_cannot_be_read_is_bad_although_no_other_point_has_one(tmp_path: Path) -> None:
    visits = read(tmp_path, "a.gpx", GPX.format("", POINT.format("") + POINT.format("<time>soon</time>")))
    assert (len(visits), visits.skipped["bad time"], visits.rows) == (1, 1, 2)


def test_marked_places_count_where_there_is_no_track(tmp_path: Path) -> None:
    mark = '<wpt lat="46.9" lon="6.9"><name>source</name></wpt><rte><rtept lat="46.8" lon="6.8"/></rte>'
    assert places(read(tmp_path, "marks.gpx", f"<gpx>{mark}</gpx>")) == [(46.9, 6.9), (46.8, 6.8)]
    assert places(read(tmp_path, "both.gpx", GPX.format(mark, POINT.format("")))) == [HOME]


def collection(*features: Any) -> str:
    return json.dumps({"type": "FeatureCollection", "features": features})


def feature(kind: str, coordinates: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}, "properties": properties}


def test_geojson(tmp_path: Path) -> None:
    text = collection(
        feature("Point", [6.5, 46.5], user="anna", time="2024-01-01T00:00:01Z"),
        feature("Point", [6.6, 46.6, 400.0], user="anna", Timestamp="2024-01-01T01:00:00Z"),
        feature("LineString", [[6.5, 46.5], [6.6, 46.6]], coordTimes=["2024-01-02T00:00:00Z", "2024-01-02T01:00:00Z"]),
        feature("Polygon", [[[6, 46], [7, 46], [7, 47], [6, 46]]]),
        feature("Point", [6.5, 446.5], user="anna", time="2024-01-01T02:00:00Z"),
        feature("Point", "6.5", user="anna"),
        None,
    )
    visits = read(tmp_path, "tour.geojson", text)
    assert visits.format == "geojson"
    assert visits.users == ("anna", "tour")
    assert places(visits) == [HOME, WORK, HOME, WORK]
    assert (visits.skipped["bad coordinates"], visits.skipped["broken line"]) == (1, 3)


@pytest.mark.parametrize(
    "document",
    [
        {"type": "Point", "coordinates": [6.5, 46.5]},
        feature("MultiPoint", [[6.5, 46.5]]),
        feature("MultiLineString", [[[6.5, 46.5]]]),
        {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [6.5, 46.5]}]},
    ],
)
@pytest.mark.parametrize("name", ["places.geojson", "places.json", "places.json.gz"])
def test_geojson_without_times_of_any_shape_and_name(tmp_path: Path, document: Any, name: str) -> None:
    content = json.dumps(document).encode()
    visits = read(tmp_path, name, gzip.compress(content) if name.endswith("gz") else content)
    assert (visits.format, visits.users, visits.has_times, places(visits)) == ("geojson", ("places",), False, [HOME])


KML = """<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>
 <Placemark><name>café</name><TimeStamp><when>2024-01-01T00:00:01Z</when></TimeStamp>
  <Point><coordinates> 6.5,46.5,400 </coordinates></Point></Placemark>
 <Placemark><Point><coordinates>6.6,46.6</coordinates></Point>
  <TimeSpan><begin>2024-01-01T01:00:00Z</begin><end>2024-01-01T02:00:00Z</end></TimeSpan></Placemark>
 <Placemark><gx:Track><when>2024-01-01T03:00:00Z</when><when>2024-01-01T04:00:00Z</when>
  <gx:coord>6.5 46.5 0</gx:coord><gx:coord>6.6 46.6 0</gx:coord></gx:Track></Placemark>
 <Placemark><Polygon><outerBoundaryIs><LinearRing><coordinates>1,1 2,2</coordinates></LinearRing></outerBoundaryIs>
  </Polygon></Placemark>
</Document></kml>
"""


def test_kml(tmp_path: Path) -> None:
    visits = read(tmp_path, "anna.kml", KML)
    assert (visits.format, visits.users, places(visits)) == ("kml", ("anna",), [HOME, WORK, HOME, WORK])
    assert (visits.time - MIDNIGHT).tolist() == [1, 3600, 3 * 3600, 4 * 3600]


def kmz(folder: Path, document: str, name: str = "doc.kml") -> Path:
    with zipfile.ZipFile(folder / "anna.kmz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, document)
    return folder / "anna.kmz"


def test_kmz(tmp_path: Path) -> None:
    assert len(pg.traces.read(kmz(tmp_path, KML))) == 4
    line = "<kml><Placemark><LineString><coordinates>6.5,46.5 6.6,46.6\n</coordinates></LineString></Placemark></kml>"
    visits = pg.traces.read(kmz(tmp_path, line))
    assert (visits.has_times, places(visits)) == (False, [HOME, WORK])


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PK\x03\x04 no archive", "not a KMZ file"), (None, "holds no KML document")],
)
def test_kmz_of_something_else(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = kmz(tmp_path, KML, "picture.png")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.traces.read(path)


def test_a_kmz_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    path = kmz(tmp_path, "<kml>" + " " * (80 * 2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(pg.InvalidProblem, match="unfolds to far more than its size"):
        pg.traces.read(path)


ENTITIES = (
    '<!DOCTYPE kml [<!ENTITY a "ha">]><kml><Placemark><Point><coordinates>&a;</coordinates></Point></Placemark></kml>'
)


def test_kml_with_entities_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pg.InvalidProblem, match="declares a document type or entities"):
        read(tmp_path, "anna.kml", ENTITIES)
    with pytest.raises(pg.InvalidProblem, match="declares a document type or entities"):
        pg.traces.read(kmz(tmp_path, ENTITIES))


E7 = {"latitudeE7": 465_000_000, "longitudeE7": 65_000_000}
WORK_E7 = {"latitudeE7": 466_000_000, "longitudeE7": 66_000_000}
HALFWAY_E7 = {"latE7": 465_500_000, "lngE7": 65_500_000}
RECORDS = {
    "locations": [
        {**E7, "accuracy": 20, "timestamp": "2024-01-01T00:00:01.123Z"},
        {**WORK_E7, "timestampMs": "1704070800000"},
        {"accuracy": 20},
        {"latitudeE7": 1},
    ]
}
SEMANTIC = {
    "timelineObjects": [
        {
            "placeVisit": {
                "location": {**E7, "name": "home"},
                "duration": {"startTimestamp": "2024-01-01T00:00:00Z", "endTimestampMs": "1704069000000"},
            }
        },
        {
            "activitySegment": {
                "startLocation": E7,
                "endLocation": WORK_E7,
                "duration": {"startTimestamp": "2024-01-01T02:00:00Z", "endTimestamp": "2024-01-01T03:00:00Z"},
                "simplifiedRawPath": {
                    "points": [{"latE7": 465_500_000, "lngE7": 65_500_000, "timestampMs": "1704076200000"}]
                },
            }
        },
    ]
}
ANDROID = {
    "semanticSegments": [
        {
            "startTime": "2024-01-01T01:00:00.000+01:00",
            "endTime": "2024-01-01T01:25:00.000+01:00",
            "visit": {"topCandidate": {"placeLocation": {"latLng": "46.5000000°, 6.5000000°"}}},
        },
        {
            "startTime": "2024-01-01T02:00:00.000+01:00",
            "endTime": "2024-01-01T03:00:00.000+01:00",
            "timelinePath": [{"point": "46.6°, 6.6°", "time": "2024-01-01T02:20:00.000+01:00"}],
        },
        {
            "startTime": "2024-01-01T03:00:00.000+01:00",
            "endTime": "2024-01-01T04:00:00.000+01:00",
            "activity": {"start": {"latLng": "46.6°, 6.6°"}, "end": {"latLng": "46.5°, 6.5°"}},
        },
    ],
    "rawSignals": [],
}
IPHONE: list[dict[str, Any]] = [
    {
        "startTime": "2024-01-01T01:00:00.000+01:00",
        "endTime": "2024-01-01T01:05:00.000+01:00",
        "visit": {"topCandidate": {"placeLocation": "geo:46.500000,6.500000"}},
    },
    {
        "startTime": "2024-01-01T02:00:00.000+01:00",
        "endTime": "2024-01-01T03:00:00.000+01:00",
        "timelinePath": [{"point": "geo:46.6,6.6", "durationMinutesOffsetFromStartTime": "30"}],
    },
]


@pytest.mark.parametrize(
    ("document", "minutes", "where"),
    [
        (RECORDS, [0, 60], [HOME, WORK]),
        (SEMANTIC, [0, 10, 20, 120, 150, 180], [HOME, HOME, HOME, HOME, (46.55, 6.55), WORK]),
        (ANDROID, [0, 10, 20, 80, 120, 180], [HOME, HOME, HOME, WORK, WORK, HOME]),
        (IPHONE, [0, 90], [HOME, WORK]),
    ],
    ids=["records", "semantic", "android", "iphone"],
)
def test_timelines(tmp_path: Path, document: Any, minutes: list[int], where: list[tuple[float, float]]) -> None:
    visits = read(tmp_path, "Timeline.json", json.dumps(document))
    assert (visits.format, visits.users) == ("timeline", ("Timeline",))
    assert ((visits.time - MIDNIGHT) // 60).tolist() == minutes
    assert places(visits) == where


def test_a_stay_without_end_is_limited(tmp_path: Path) -> None:
    stay = {**IPHONE[0], "endTime": "2190-01-01T00:00:00Z"}
    assert len(read(tmp_path, "t.json", json.dumps([stay]))) == 7 * 24 * 6


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": 1}', '"geo:46.5,6.5"', "\xff\xfe"])
@pytest.mark.parametrize("form", ["geojson", "timeline"])
def test_other_json_is_refused_without_showing_it(tmp_path: Path, text: str, form: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=r"^a\.json (is JSON, but not|is not a whole|is nested)") as refused:
        read(tmp_path, "a.json", text.encode("latin-1"), format=form)
    assert "46.5" not in str(refused.value)


KEYS = """type coordinates geometry geometries properties features time times point visit activity latLng start end
placeVisit activitySegment locations latitudeE7 longitudeE7 timestamp timestampMs startTime endTime duration
timelinePath topCandidate placeLocation"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("46.5°, 6.5°"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=6),
    max_leaves=30,
)


@settings(max_examples=300)
@given(document=st.lists(VALUES, max_size=4), form=st.sampled_from(["geojson", "timeline"]))
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, document: list[Any], form: str) -> None:
    whole = document if form == "timeline" else {"type": "FeatureCollection", "features": document}
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(whole))
    try:
        visits = pg.traces.read(path, format=form)
    except pg.InvalidProblem:
        return
    assert visits.rows == len(visits) + sum(visits.skipped.values())
