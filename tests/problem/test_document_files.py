"""What a problem document from anybody can make us read, and what a message shows of it."""

import os
import sys
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.problem import ProblemFile
from privacygames.text_files import MAX_BYTES, MAX_NESTING, MAX_TOML_BYTES, parse_toml

DOCUMENT = """
[space]
kind = "categories"
labels = ["a", "b"]
[prior]
csv = {path}
"""
SECRET = "label:s3cret:secret\na:1:2\n"


def read(folder: Path, path: object) -> pg.Problem:
    (folder / "p.toml").write_text(DOCUMENT.format(path=f'"{path}"'))
    return ProblemFile(folder / "p.toml").problem


def test_files_beside_the_document_and_below_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for place in ("v.csv", "data/v.csv", "./data/../v.csv"):
        (tmp_path / place).write_text("label\na\nb\nb\n")
        assert read(tmp_path, place).prior["b"] == pytest.approx(2 / 3)
    (tmp_path / "data" / "link.csv").symlink_to(tmp_path / "v.csv")  # stays inside
    assert read(tmp_path, "data/link.csv").prior["a"] == pytest.approx(1 / 3)


def test_no_other_file_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.csv").write_text(SECRET)
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "up").symlink_to(tmp_path)
    outside = [
        "/etc/passwd",
        tmp_path / "secret.csv",
        "../secret.csv",
        "sub/../../secret.csv",
        "link.csv",
        "up/secret.csv",
    ]
    for path in (*outside, "loop.csv"):
        with pytest.raises(pg.InvalidProblem, match=r"beside the document|cannot be read") as caught:
            read(folder, path)
        assert "s3cret" not in str(caught.value)
    pairs = '\n[[adversary]]\nname = "x"\nattribute = { csv = "../secret.csv" }\n'
    (folder / "v.csv").write_text("label\na\n")
    (folder / "p.toml").write_text(DOCUMENT.format(path='"v.csv"') + pairs)
    with pytest.raises(pg.InvalidProblem, match="beside the document"):
        _ = ProblemFile(folder / "p.toml").problem


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(pg.UnreadableFile, match="not a regular file"):
        read(tmp_path, "pipe.csv")
    with pytest.raises(pg.UnreadableFile, match="not a regular file"):
        _ = ProblemFile(tmp_path / "pipe.csv").problem
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    with pytest.raises(pg.InvalidProblem, match="beside the document"):
        read(tmp_path, "zero.csv")
    with pytest.raises(pg.UnreadableFile, match="not a regular file"):
        _ = ProblemFile(Path("/dev/zero")).problem


def test_large_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    for name, size in (("v.csv", MAX_BYTES + 1), ("large.toml", MAX_TOML_BYTES + 1)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)  # a hole: it takes no room on the disk
    with pytest.raises(pg.TooLarge, match="bytes; at most"):
        read(tmp_path, "v.csv")
    with pytest.raises(pg.TooLarge, match="bytes; at most"):
        _ = ProblemFile(tmp_path / "large.toml").problem


@pytest.mark.parametrize("content", [SECRET, "-----BEGIN s3cret KEY-----\nabc\n", '"s3cret\n', "s3cret\x00\n1\n"])
def test_no_message_shows_what_is_in_a_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "v.csv").write_text(content)
    with pytest.raises(pg.InvalidProblem) as caught:
        read(tmp_path, "v.csv")
    assert "s3cret" not in str(caught.value)
    (tmp_path / "p.toml").write_text(content)
    with pytest.raises(pg.InvalidProblem) as caught:
        _ = ProblemFile(tmp_path / "p.toml").problem
    assert "s3cret" not in str(caught.value)


def test_a_table_is_read_in_parts(tmp_path: Path) -> None:
    """More rows than are in memory at a time, by name and by point."""
    rows = 25_000
    (tmp_path / "v.csv").write_text("label,n\n" + "a,1\nb,2\n" * (rows // 2))
    (tmp_path / "p.toml").write_text(DOCUMENT.format(path='"v.csv"') + 'count = "n"\n')
    assert ProblemFile(tmp_path / "p.toml").problem.prior["b"] == pytest.approx(2 / 3)


NESTED = {
    "lists": "a = " + "[" * 100_000,
    "closed lists": "a = " + "[" * 500 + "]" * 500,
    "tables": "a = " + "{a = " * 300 + "1" + "}" * 300,
    "dotted": ".".join("a" * 100_000) + " = 1",
    "header": "[" + ".".join("a" * 100_000) + "]",
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_documents_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "p.toml").write_text(NESTED[name])
    with pytest.raises(pg.InvalidProblem, match=f"at most {MAX_NESTING}|more than {MAX_NESTING}"):
        _ = ProblemFile(tmp_path / "p.toml").problem


def test_numbers_and_texts_with_dots_are_no_dotted_keys() -> None:
    numbers = ", ".join(f"{at}.5" for at in range(1000))
    tables = parse_toml(f'a = [{numbers}]\nb = "one. two. three."\nc.d.e = 1\n', "it")
    assert len(tables["a"]) == 1000
    assert sys.getrecursionlimit() > MAX_NESTING


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"[a{number}.b.c.d.e]" for number in range(20_001)),
        "\n".join(f"a{number}.b.c.d.e = 1" for number in range(20_001)),
        "\n".join("[[a]]" for _ in range(100_001)),
        "a = {" + ", ".join(f"k{number}.b = 1" for number in range(50_001)) + "}",
    ],
    ids=["headers", "dotted keys", "arrays of tables", "inline"],
)
def test_many_tables_are_refused_before_they_are_built(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.5 million tables of a document of 6 MB took a server 47 seconds and 1.6 GB."""
    with monkeypatch.context() as patched:
        patched.setattr("privacygames.text_files.tomllib.loads", lambda _: pytest.fail("it was parsed"))
        with pytest.raises(pg.TooLarge, match="too many keys and tables"):
            parse_toml(text, "the document")


def test_large_matrices_are_no_keys() -> None:
    row = ", ".join(["0.5"] * 1000)
    matrix = ",\n".join(f"  [{row}]" for _ in range(300))
    assert len(parse_toml(f"[problem]\ncost = [\n{matrix}\n]", "the document")["problem"]["cost"]) == 300


@pytest.mark.parametrize("place", ["", ".", "folder"])
def test_a_folder_is_no_file_and_is_named(tmp_path: Path, place: str) -> None:
    """The message named the number of the file handle, which stayed open."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(pg.UnreadableFile, match="it is not a regular file") as caught:
        read(tmp_path, place)
    assert str((tmp_path / place).resolve()) in str(caught.value)
