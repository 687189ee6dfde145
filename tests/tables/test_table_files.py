"""CSV files: what is written reads back as the same cells, and what cannot be read is refused with its line."""

import csv
import gzip
import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.tables import ReleaseKey, Rule, apply_files, file_release, preview_file

ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0)
AGES = pg.Numbers(range(20, 32), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.4)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)


def released(folder: Path, data: bytes, ending: str = ".csv", **options: Any) -> bytes:
    (folder / f"in{ending}").write_bytes(data)
    apply_files(folder / f"in{ending}", folder / f"out{ending}", {"ill": ILL}, **options)
    return (folder / f"out{ending}").read_bytes()


def cells(text: str, separator: str = ",") -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(TEXT, TEXT | st.sampled_from(["", '"', "a,b", 'x"y', "a\nb", "a\r\nb", " x ", "007", "NA"]))
    ),
    name=TEXT,
    separator=st.sampled_from([",", ";", "\t", "|"]),
    quote_all=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    ending=st.sampled_from([".csv", ".csv.gz"]),
)
def test_every_cell_comes_back(
    rows: list[tuple[str, str]], name: str, separator: str, quote_all: bool, newline: str, mark: bool, ending: str
) -> None:
    """Whatever is in it, however the input had quoted it; with a byte order mark, and compressed."""
    table = [["ill", f"{name}!", "b"], *(["flu", one, other] for one, other in rows)]
    special = {separator, '"', "\n", "\r"}

    def written(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if quote_all or special & set(cell) else cell

    text = "".join(separator.join(map(written, row)) + newline for row in table)
    data = text.encode("utf-8-sig" if mark else "utf-8")
    with TemporaryDirectory() as folder:
        packed = gzip.compress(data) if ending == ".csv.gz" else data
        made = released(Path(folder), packed, ending, separator=separator)
    made = gzip.decompress(made) if ending == ".csv.gz" else made
    found = cells(made.decode(), separator)
    assert [row[1:] for row in found] == [row[1:] for row in table]
    assert all(row[0] in ILLS.labels for row in found[1:])


def test_quotation_marks_stand_where_a_cell_needs_them(tmp_path: Path) -> None:
    """Not around every text of a batch that has a comma somewhere: 007 in quotation marks is a text to many readers."""
    data = b'ill,n,note\nflu,"007","a ""b"", c"\nflu,8,\nflu,9,""\n'
    lines = released(tmp_path, data).decode().splitlines()
    assert [line.partition(",")[2] for line in lines[1:]] == ['007,"a ""b"", c"', "8,", '9,""']


def test_an_answer_of_a_single_column_is_never_an_empty_line(tmp_path: Path) -> None:
    """Readers skip empty lines: a row would be gone without a word."""
    (tmp_path / "in.csv").write_text('ill\nflu\n""\nplague\n')
    manifest = apply_files(
        tmp_path / "in.csv", tmp_path / "out.csv", {"ill": Rule(mechanism=ILL, invalid="null", missing="null")}
    )
    assert manifest.rows_out == 3
    assert (tmp_path / "out.csv").read_text().splitlines()[2:] == ['""', '""']


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ill,note\nflu,a\nflu\nflu,hush\n", "line 3 has 1 cells, but the first line names 2 columns"),
        (b"ill,note\nflu,a\nflu,b,hush\n", "line 3 has 3 cells"),
        (b'ill,note\nflu,"two\nlines"\nflu,b,hush\n', "line 4 has 3 cells"),
        (b"ill,note\n\nflu,a\n  \nflu,hush\n", "line 4 has 1 cells"),
        (b'ill,note\nflu,"hush\nflu,b\nflu,c\n', "a quotation mark is opened, and never closed"),
        (b"ill,note\nflu,a\nflu,hush\xe4\n", "line 3 is not UTF-8 text: save it as UTF-8"),
        ("ill,note\nflu,hush\n".encode("utf-16"), "line 1 is not UTF-8 text"),
        (b"ill,note\nflu,a\nflu," + b"hush" * 1_000_000 + b"\nflu,b\n", "line 3 is too long"),
        (b"ill,note," + b"x" * 70_000 + b"\nflu,hush,b\n", "its first line must name the columns"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_what_cannot_be_read_is_refused_with_its_line_and_without_its_cells(
    tmp_path: Path, data: bytes, message: str, ending: str
) -> None:
    packed = gzip.compress(data) if ending == ".csv.gz" else data
    with pytest.raises((pg.InvalidProblem, pg.UnreadableFile), match=message) as raised:
        released(tmp_path, packed, ending)
    assert "hush" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == [f"in{ending}"]


def test_a_fault_far_behind_is_named_by_its_line(tmp_path: Path) -> None:
    lines = ["ill,note", *["flu,some text to fill a few blocks"] * 200_000, "flu,a,b"]
    with pytest.raises(pg.InvalidProblem, match="line 200002 has 3 cells"):
        released(tmp_path, "\n".join(lines).encode())
    bad = "\n".join(lines[:-1]).encode() + b"\nflu,\xe4\n"
    with pytest.raises((pg.InvalidProblem, pg.UnreadableFile), match="line 200002 is not UTF-8"):
        released(tmp_path, bad)


def test_a_quotation_mark_that_ends_a_last_cell_of_lines_is_closed(tmp_path: Path) -> None:
    for data in (b'ill,note\nflu,"a\nb"\n', b'ill,note\nflu,"a\nb"', b'ill,note\nflu,"a\n""b"""\r\n\r\n'):
        found = cells(released(tmp_path, data).decode())
        assert found[1][1] == cells(data.decode())[1][1]
        (tmp_path / "out.csv").unlink()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gzip.compress(b"ill,note\nflu,a\n" * 50, mtime=0)[:-12], id="truncated"),
        pytest.param(b"ill,note\nflu,a\n", id="not-compressed"),
        pytest.param(b"\x1f\x8bno", id="bad-header"),
    ],
)
def test_a_damaged_gzip_file_is_refused_whole(tmp_path: Path, data: bytes) -> None:
    """A file that was cut off must not become a release of the rows that are left."""
    with pytest.raises(pg.UnreadableFile, match=r"damaged|Not a gzip"):
        released(tmp_path, data, ".csv.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv.gz"]


def test_compressed_files_are_released_like_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts, in folders, and by the same key the same bytes."""
    key, rows = ReleaseKey(), 300_000
    data = pd.DataFrame({"age": [20 + at % 12 for at in range(rows)], "n": range(rows)})
    for folder in ("plain", "packed"):
        (tmp_path / folder).mkdir()
    data.to_csv(tmp_path / "plain" / "t.csv", index=False)
    data.to_csv(tmp_path / "packed" / "t.csv.gz", index=False)
    monkeypatch.setattr(file_release, "PART_ROWS", 50_000)
    for name in ("packed", "plain"):
        apply_files(tmp_path / name, tmp_path / f"{name} out", {"age": AGE}, key=key, key_columns="n")
    made = pd.read_csv(tmp_path / "packed out" / "t.csv.gz")
    assert made["n"].tolist() == list(range(rows))
    apply_files(tmp_path / "packed", tmp_path / "again", {"age": AGE}, key=key, key_columns="n")
    assert (tmp_path / "again" / "t.csv.gz").read_bytes() == (tmp_path / "packed out" / "t.csv.gz").read_bytes()
    (told,) = preview_file(tmp_path / "packed", {"age": AGE})
    assert told.rows_read == rows
    with pytest.raises(pg.InvalidProblem, match=r"must end alike, in \.csv, \.csv\.gz, \.parquet"):
        apply_files(tmp_path / "packed" / "t.csv.gz", tmp_path / "t.csv", {"age": AGE})


def test_separators_are_told_from_outside_of_quotation_marks(tmp_path: Path) -> None:
    made = released(tmp_path, b'ill,"a;b;c;d","two\nlines"\nflu,1,2\n').decode()
    assert cells(made)[0] == ["ill", "a;b;c;d", "two\nlines"]
    assert cells(made)[1][1:] == ["1", "2"]
    for wrong in ("", ",,", '"', "\n"):
        with pytest.raises(pg.InvalidProblem, match="it must be one character"):
            apply_files(tmp_path / "in.csv", tmp_path / "o.csv", {"ill": ILL}, separator=wrong)
