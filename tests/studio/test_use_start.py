"""From nothing to the studio: an entry in the menu of applications, and a container image."""

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from privacygames.studio import install_entry, remove_entry

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "studio.Dockerfile").read_text()
STUDIO = [sys.executable, "-m", "privacygames", "studio"]


def entry_of(file: Path) -> configparser.SectionProxy:
    """The group of a desktop entry, read as the specification says: keys with their case, and no interpolation."""
    parser = configparser.ConfigParser(interpolation=None, delimiters="=", strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(file)
    return parser["Desktop Entry"]


def test_the_entry_comes_and_goes(tmp_path: Path) -> None:
    env = os.environ | {"XDG_DATA_HOME": str(tmp_path)}
    subprocess.run([*STUDIO, "--desktop"], env=env, check=True, capture_output=True)
    file = tmp_path / "applications" / "privacygames-studio.desktop"
    entry = entry_of(file)
    assert {"Type": "Application", "Terminal": "true", "Icon": "privacygames-studio"}.items() <= dict(entry).items()
    command = shlex.split(entry["Exec"])
    assert command == [*STUDIO, "--port", "0"]
    assert subprocess.run([*command, "--help"], capture_output=True, check=True).stdout
    icon = tmp_path / "icons" / "hicolor" / "scalable" / "apps" / "privacygames-studio.svg"
    assert icon.read_text().startswith("<svg")
    for said in ("no longer in the menu", "was not in the menu"):
        removed = subprocess.run([*STUDIO, "--no-desktop"], env=env, check=True, capture_output=True, text=True)
        assert said in removed.stdout
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_program_in_a_folder_with_odd_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my programs/100%/python")
    assert (
        entry_of(install_entry(tmp_path))["Exec"] == '"/opt/my programs/100%%/python" -m privacygames studio --port 0'
    )
    assert remove_entry(tmp_path)


def test_the_image_listens_to_nobody_else_by_default() -> None:
    final = DOCKERFILE.rsplit("\nFROM ", 1)[1]
    assert re.search(r"^USER \d{4,}$", final, re.MULTILINE)
    entry = re.search(r"^ENTRYPOINT (\[.*\])$", final, re.MULTILINE)
    assert entry is not None
    assert json.loads(entry[1])[1:] == ["studio", "--no-browser"]  # no shell, and no address but loopback
    assert "CMD" not in final
    assert "XDG_DATA_HOME=/data" in final
    assert "VOLUME /data" in final
    named = {path for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE) for path in line.split()}
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_published_without_a_token_it_does_not_start() -> None:
    """As the image is started with -p, but without its token."""
    published = re.search(r"#     (--host 0.0.0.0 .*)$", DOCKERFILE, re.MULTILINE)
    assert published is not None
    env = {name: value for name, value in os.environ.items() if name != "PRIVACYGAMES_TOKEN"}
    command = [*STUDIO, "--no-browser", "--port", "0", *published[1].split()]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "set a token" in done.stderr
