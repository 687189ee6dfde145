"""The CSV reader: one dialect for rows, record batches and lines; messages name the line and never show a cell."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames import csv_reader
from privacygames.csv_reader import CsvFile, expansion_limit, read_lines

DIALECT = 'name;note\r\n\r\nAnn;"a;b"\r\nBob;"two\nlines, ""quoted"""\r\nCleo;'
ROWS = [(3, ["Ann", "a;b"]), (4, ["Bob", 'two\nlines, "quoted"']), (6, ["Cleo", ""])]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_rows_and_record_batches_read_one_dialect(tmp_path: Path, ending: str, mark: str) -> None:
    data = (mark + DIALECT).encode()
    (tmp_path / f"a{ending}").write_bytes(gzip.compress(data) if ending == ".csv.gz" else data)
    file = CsvFile(tmp_path / f"a{ending}")
    assert file.header == (["name", "note"], ";")
    assert list(file.rows()) == ROWS
    cells = [list(row.values()) for batch in file.record_batches() for row in batch.to_pylist()]
    assert cells == [[cell or None for cell in row] for _, row in ROWS]
    assert [batch.schema.names for batch in file.record_batches(["note"])] == [["note"]]


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=2, max_size=2)))
def test_rows_are_those_that_were_written(table: list[list[str]]) -> None:
    import csv
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, quoting=csv.QUOTE_ALL).writerows([["a", "b"], *table])
        assert [cells for _, cells in CsvFile(path).rows()] == table


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must name the columns"),
        (b"\n\n", "must name the columns"),
        (b"a,b\n1,hush\n2\n", "line 3 has 1 cells, but the first line names 2 columns"),
        (b'a,b\n1,"x\ny"\nhush,2,3\n', "line 4 has 3 cells"),
        (b'a,b\n1,"hush\n', "a quotation mark is opened, and never closed"),
        (b"a,b\nhush,\xff\n", "line 2 is not UTF-8 text: save it as UTF-8"),
        (b"a,b\nhush," + b"x" * 200_000 + b"\n", "line 2 is too long"),
    ],
)
def test_errors_name_the_line_and_never_show_a_cell(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        list(CsvFile(tmp_path / "a.csv").rows())
    assert "hush" not in str(caught.value)


def test_a_column_must_be_there_once_and_others_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("hush,x,x\n1,2,3\n")
    file = CsvFile(tmp_path / "a.csv")
    assert file.column("hush") == 0
    for name, message in (("y", "no column 'y'.*it names 3"), ("x", "several columns 'x'")):
        with pytest.raises(pg.InvalidProblem, match=message) as caught:
            file.column(name)
        assert "hush" not in str(caught.value)
    with pytest.raises(pg.InvalidProblem, match="each once"):
        list(file.record_batches())


def test_what_expands_beyond_its_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
    with pytest.raises(pg.InvalidProblem, match="unfolds to over 200 times its size, or 1,000 bytes"):
        list(CsvFile(tmp_path / "a.csv.gz", max_expanded=1000).rows())
    assert sum(1 for _ in CsvFile(tmp_path / "a.csv.gz", max_expanded=10**6).rows()) == 100_000
    assert expansion_limit(tmp_path / "a.csv.gz") == csv_reader.MIN_EXPANSION_LIMIT
    with pytest.raises(pg.TooLarge, match="at most 10 are read"):
        list(CsvFile(tmp_path / "a.csv.gz", max_bytes=10).rows())


def test_lines_are_numbered_and_long_ones_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n" + b"x" * 100 + b"\nthree\nf\xffour")
    monkeypatch.setattr(csv_reader, "BLOCK", 16)
    lines = {block.first + at: line for block in read_lines(tmp_path / "a.txt") for at, line in enumerate(block.lines)}
    assert lines == {1: "one", 2: csv_reader.OVERLONG, 3: "three", 4: "f\ufffdour"}
