"""The systemd unit and the Dockerfile, as far as a machine without either can tell."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "deploy" / "privacygames.service").read_text()
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """Without its user, who is made by the administrator, and with a program that is there."""
    program = str(Path(sys.executable).parent / "privacygames")
    text = UNIT.replace("/opt/privacygames/bin/privacygames", program).replace("User=privacygames\n", "")
    unit = tmp_path / "privacygames.service"
    unit.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    complaints = [line for line in done.stderr.splitlines() if "privacygames.service" in line]
    assert (done.returncode, complaints) == (0, [])


@pytest.mark.parametrize("text", [UNIT, DOCKERFILE], ids=["unit", "Dockerfile"])
def test_options_exist(text: str) -> None:
    """Every option that is written there is one of ``privacygames serve``."""
    command = [sys.executable, "-m", "privacygames", "serve", "--help"]
    known = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "300"}).stdout
    words = " ".join(line for line in text.splitlines() if "privacygames" in line or line.lstrip("# ").startswith("--"))
    options = set(re.findall(r"(?<=\s)--(?:fleet|store|tokens|budget|workers|name|host|port)\b", words))
    assert {"--fleet", "--store", "--tokens", "--budget", "--workers"} <= options
    assert all(option in known for option in options)


def test_the_image_runs_as_nobody_and_stops_on_sigterm() -> None:
    final = DOCKERFILE.rsplit("\nFROM ", 1)[1]
    assert re.search(r"^USER \d{4,}$", final, re.MULTILINE)
    assert 'ENTRYPOINT ["' in final  # no shell in between, so that the signal reaches the service
    assert "STOPSIGNAL SIGTERM" in final
    assert "HEALTHCHECK" in final
    assert "/readyz" in final


@pytest.mark.slow
def test_the_image_can_be_built() -> None:
    if shutil.which("docker") is None:
        pytest.skip("there is no docker")
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("docker has no daemon here")
    if subprocess.run(["docker", "pull", "-q", "python:3.12-slim"], capture_output=True, check=False).returncode:
        pytest.skip("the base image cannot be had here")
    command = ["docker", "build", "-q", "-f", "deploy/Dockerfile", "-t", "privacygames-test", "."]
    subprocess.run(command, cwd=ROOT, check=True)
    done = subprocess.run(["docker", "run", "--rm", "privacygames-test"], capture_output=True, text=True, check=True)
    assert "--fleet" in done.stdout
