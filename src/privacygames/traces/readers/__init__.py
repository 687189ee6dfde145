"""Readers of trace files: one format a file, each of which yields batches of rows."""

from privacygames.traces.readers.delimited_lines import CHECKINS, GEOLIFE
from privacygames.traces.readers.geojson import GEOJSON
from privacygames.traces.readers.gpx import GPX
from privacygames.traces.readers.kml import KML
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource
from privacygames.traces.readers.tabular import (
    TABLE,
    checked_names,
    list_names,
    read_frame,
    require_names,
    table_format,
)
from privacygames.traces.readers.timeline import TIMELINE

FORMATS = {
    "geolife": GEOLIFE,
    "checkins": CHECKINS,
    "gpx": GPX,
    "geojson": GEOJSON,
    "kml": KML,
    "timeline": TIMELINE,
    "table": TABLE,
}
"""The formats by name. To add one, write a module with a :class:`TraceFormat` and list it here."""

__all__ = [
    "FORMATS",
    "RowBatch",
    "TraceFormat",
    "TraceSource",
    "checked_names",
    "list_names",
    "read_frame",
    "require_names",
    "table_format",
]
