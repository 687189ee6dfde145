"""Positions as people write them, read by the page's own code in Node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import privacygames.studio

PAGE = Path(privacygames.studio.__file__).parent / "page"
READ = """
import { parsePosition } from "file://PAGE/position.js";
for (const text of JSON.parse(process.argv[1])) {
  try { const { latitude, longitude } = parsePosition(text); console.log(JSON.stringify([latitude, longitude])); }
  catch (error) { console.log(JSON.stringify(error.message)); }
}
"""
HERE = [
    "39.9, 116.4",
    "39.9 116.4",
    "(39.9;116.4)",
    "39,9; 116,4",
    "39,9, 116,4",
    "39.9° 116.4°",
    "39°54′N 116°24′E",
    "39° 54' 0\" N, 116° 24' 0\" E",
    "N 39 54 E 116 24",
    "116.4E 39.9N",
    "39.9 North, 116.4 East",
    "geo:39.9,116.4;u=35",
    "https://www.google.com/maps/@39.9,116.4,15z",
    "https://www.google.com/maps/place/X/@1,2,15z/data=!3m1!4b1!8m2!3d39.9!4d116.4",
    "https://maps.google.com/?q=39.9,116.4",
    "https://www.openstreetmap.org/#map=15/39.9/116.4",
    "https://www.openstreetmap.org/?mlat=39.9&mlon=116.4#map=12/1/2",
    "https://maps.apple.com/?ll=39.9,116.4&q=Home",
    "https://www.bing.com/maps?cp=39.9~116.4&lvl=12",
]
SOUTH_WEST = ["-33.5, -70.25", "\u221233.5, \u221270.25", "33°30′S 70°15′W", "W 70.25 S 33.5"]
REFUSED = {
    "": "Say where you are first",
    "Beijing": "cannot be read",
    "39.87": "cannot be read",
    "39°75′N 116°29′E": "cannot be read",
    "39.91N 116.4N": "cannot be read",
    "116.4, 39.91": "are the two numbers exchanged",
    "39.91, 216.4": "from −180",
    "https://maps.app.goo.gl/secret": "This link has no position in it",
}

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here: apt-get install nodejs")


def read(texts: list[str]) -> list[object]:
    program = READ.replace("PAGE", str(PAGE))
    command = ["node", "--input-type=module", "-e", program, json.dumps(texts)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_every_way_to_write_a_position() -> None:
    assert read(HERE) == [pytest.approx([39.9, 116.4])] * len(HERE)
    assert read(SOUTH_WEST) == [pytest.approx([-33.5, -70.25])] * len(SOUTH_WEST)


def test_what_cannot_be_read_is_not_repeated() -> None:
    for (text, wanted), message in zip(REFUSED.items(), read(list(REFUSED)), strict=True):
        assert wanted in str(message)
        assert not text or text not in str(message)
