"""The extension in Debian's Firefox, which ``web-ext`` starts; the page itself tells this test what it was told.

Firefox asks a server of this test for the device's position, and allows every question that it would put to the user:
so whatever passes by the extension is told the true position.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from extension_browser import ASK, TRUE
from waiting import GUARD, wait_until

DEVICE = Path(__file__).parents[2] / "device"
EXTENSION = DEVICE / "extension" / "dist" / "firefox"
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
WEB_EXT = DEVICE / "node_modules" / ".bin" / "web-ext"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXTENSION.exists(), reason="the extension is not built: make device"),
    pytest.mark.skipif(not WEB_EXT.exists(), reason="web-ext is not installed: make device"),
]

PAGE = f"""<!doctype html><body><script>
  const early = ({ASK})();
  const ask = (geolocation) => new Promise((resolve) => geolocation.getCurrentPosition(
    ({{ coords }}) => resolve([coords.latitude, coords.longitude]), ({{ code }}) => resolve(code)));
  const frame = (attributes) =>
    document.body.appendChild(Object.assign(document.createElement("iframe"), attributes));
  (async () => {{
    const report = {{ early: await early, again: await ({ASK})() }};
    report.blank = await ask(frame({{}}).contentWindow.navigator.geolocation);
    report.pristine = await ask(frame({{ src: "/other" }}).contentWindow.navigator.geolocation);
    report.text = navigator.geolocation.getCurrentPosition.toString();
    report.shape = await new Promise((resolve) => navigator.geolocation.getCurrentPosition((position) =>
      resolve([position instanceof GeolocationPosition, `${{position}}`, Reflect.ownKeys(position).length])));
    report.state = (await navigator.permissions.query({{ name: "geolocation" }})).state;
    try {{ navigator.geolocation.getCurrentPosition(); }} catch ({{ message }}) {{ report.thrown = message; }}
    await fetch("/report", {{ method: "POST", body: JSON.stringify(report) }});
  }})();
</script>"""
WAIT = """<!doctype html><script>
  navigator.permissions.query({ name: "geolocation" }).then(({ state }) => {
    if (state === "granted") location.replace("/page");
    else setTimeout(() => location.reload(), 100);
  });
</script>"""
"""Reloads until the extension is installed: web-ext opens the first page before."""


class Site(BaseHTTPRequestHandler):
    reports: list[dict[str, Any]]

    def reply(self, body: str, kind: str = "text/html") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        self.reply({"/": WAIT, "/page": PAGE}.get(self.path, "<!doctype html><body>other"))

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/device":
            location = {"lat": TRUE["latitude"], "lng": TRUE["longitude"]}
            self.reply(json.dumps({"location": location, "accuracy": 20}), "application/json")
            return
        self.reports.append(json.loads(content))
        self.reply("")

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@contextmanager
def served() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    handler = type("Pages", (Site,), {"reports": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}", handler.reports  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


def test_mozillas_linter_finds_nothing() -> None:
    command = [str(WEB_EXT), "lint", "--source-dir", str(EXTENSION), "--no-config-discovery", "--output", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=GUARD, check=False).stdout)
    assert [report["errors"], report["warnings"], report["notices"]] == [[], [], []]


@pytest.mark.skipif(FIREFOX is None, reason="there is no firefox here: apt-get install firefox-esr")
def test_a_page_in_firefox_is_told_the_one_output() -> None:
    with served() as (address, reports):
        preferences = {
            "geo.provider.network.url": f"{address}/device",
            "geo.provider.testing": "true",
            "geo.provider.use_geoclue": "false",
            "geo.prompt.testing": "true",
            "geo.prompt.testing.allow": "true",
        }
        options = [f"--pref={name}={value}" for name, value in preferences.items()]
        options += [f"--source-dir={EXTENSION}", f"--firefox={FIREFOX}", f"--start-url={address}/", "--arg=-headless"]
        command = [str(WEB_EXT), "run", "--no-config-discovery", "--no-input", "--no-reload", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            wait_until(lambda: reports or process.poll() is not None)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=GUARD)
    [report] = reports
    here = [TRUE["latitude"], TRUE["longitude"]]
    assert report["early"] == report["again"] == report["blank"] != here
    assert report["pristine"] == here  # not covered: Firefox asks the user, who always allows here
    assert report["text"] == "function getCurrentPosition() {\n    [native code]\n}"
    assert report["shape"] == [True, "[object GeolocationPosition]", 0]
    assert report["state"] == "granted"
    assert report["thrown"] == "Geolocation.getCurrentPosition: At least 1 argument required, but only 0 passed"
