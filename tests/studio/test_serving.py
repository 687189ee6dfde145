"""``privacygames serve`` and ``studio`` as commands: what they say, and how they stop."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from urllib.request import urlopen

import psutil
import pytest

from waiting import GUARD

RUN = [sys.executable, "-m", "privacygames"]
MISSING = """
import sys
sys.modules["fastapi"] = None
from privacygames.cli.app import app
app(["studio", "--no-browser"])
"""


def said(*arguments: str) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != "PRIVACYGAMES_TOKEN"}
    done = subprocess.run([*RUN, *arguments], capture_output=True, text=True, check=False, env=env, timeout=GUARD)
    return done.returncode, done.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "pip install 'privacygames[studio]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_other_machines_need_a_token() -> None:
    code, message = said("serve", "--host", "0.0.0.0", "--port", "0")
    assert code == 3
    assert "PRIVACYGAMES_TOKEN" in message


def test_a_port_that_is_taken() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        code, message = said("serve", "--port", str(taken.getsockname()[1]))
    assert code == 3
    assert "choose another --port" in message


@pytest.mark.parametrize("name", ["serve", "studio"])
def test_interrupted_it_stops_and_leaves_nothing(name: str) -> None:
    options = ["--no-browser"] if name == "studio" else []
    process = subprocess.Popen(
        [*RUN, name, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = re.findall(r"http://\S+", process.stdout.readline())[0]
    with urlopen(f"{url}api/about") as answer:
        assert b"limits" in answer.read()
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=GUARD)
    assert complaints in ("", "interrupted\n")
    assert not any(child.is_running() for child in children)
