"""Readers of trace files: each format to batches of rows."""

from privacygames.traces.readers.gpx import read_gpx
from privacygames.traces.readers.line_formats import read_checkins, read_geolife
from privacygames.traces.readers.row_batch import Format, RowBatch, Source
from privacygames.traces.readers.tabular import check_names, header_of, read_frame, shown, table_format
from privacygames.traces.readers.text_lines import lines_of, split_line

__all__ = [
    "Format",
    "RowBatch",
    "Source",
    "check_names",
    "header_of",
    "lines_of",
    "read_checkins",
    "read_frame",
    "read_geolife",
    "read_gpx",
    "shown",
    "split_line",
    "table_format",
]
