"""The HTTP API and the page as one ASGI application, behind the request guard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from privacygames.beliefs import Prior
from privacygames.device import encode as encode_for_device
from privacygames.errors import InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.mechanism import Mechanism
from privacygames.mechanism_files import load_bytes
from privacygames.studio.app_state import AppState
from privacygames.studio.error_handlers import add_error_handlers
from privacygames.studio.exports import (
    COMMAND,
    EXPORTS,
    PROBLEM_FILE,
    private_python,
    private_toml,
    report,
    shareable_problem,
    shareable_report,
)
from privacygames.studio.file_routes import add_files
from privacygames.studio.http_errors import Refused
from privacygames.studio.ledger_api import add_ledgers
from privacygames.studio.ledger_folder import LedgerFolder
from privacygames.studio.limits import Limits
from privacygames.studio.point_source import PointProblemSource
from privacygames.studio.point_views import (
    drawn_at,
    outputs_at_view,
    point_beliefs_view,
    point_mechanism_view,
    point_problem_view,
)
from privacygames.studio.positions import point_inside, secret_of
from privacygames.studio.problem_source import ProblemSource
from privacygames.studio.requests import (
    AttackBody,
    BoxBody,
    ErrorBody,
    EvaluateBody,
    ForgetBody,
    JobBody,
    ProblemBody,
    SampleBody,
    SecretBody,
    SendBody,
    TilesBody,
)
from privacygames.studio.security import LOOPBACK, Asgi, Guard
from privacygames.studio.stored_mechanism import StoredMechanism, StoredPointMechanism
from privacygames.studio.surroundings import CREDITS, VENDORED
from privacygames.studio.tile_server import tile_origin
from privacygames.studio.views import (
    beliefs_view,
    json_label,
    label_from,
    mechanism_view,
    outputs_view,
    problem_view,
    releases_view,
    rounded,
    visits_view,
)
from privacygames.version import VERSION

Json = dict[str, Any]
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HTML = "text/html; charset=utf-8"
BYTES = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
BINARY: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
CODES = (400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 500, 503)
ERRORS: dict[int | str, dict[str, Any]] = {code: {"model": ErrorBody} for code in CODES}


def create_app(
    *,
    limits: Limits | None = None,
    hosts: frozenset[str] = LOOPBACK,
    token: str | None = None,
    page: bool = True,
    ledgers: Path | None = None,
) -> Asgi:
    """The application behind the guard that checks every request.

    Args:
        limits: its limits.
        hosts: the names it may be called by.
        token: the token that requests to the API need, if any.
        page: whether the page is served, too.
        ledgers: the folder of the ledgers of the person whose machine this is; None: it keeps none.
    """
    limits = limits or Limits()
    state = AppState(limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        expiring = asyncio.create_task(state.expire_periodically())
        yield
        expiring.cancel()
        state.close()

    app = FastAPI(
        title="privacygames",
        version=VERSION,
        description="Design, sample, evaluate, attack, verify and compare mechanisms.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # those pages load scripts from other servers
        redoc_url=None,
        lifespan=lifespan,
        responses=ERRORS,
    )
    add_error_handlers(app)
    _add_problems(app, state, ledgers=ledgers is not None)
    _add_jobs(app, state)
    _add_mechanisms(app, state)
    _add_exports(app, state)
    add_files(app, state)
    if ledgers is not None:
        folder = LedgerFolder(ledgers, secrets=limits.secrets)
        add_ledgers(app, folder, state.mechanisms.get, token=token is not None)
    if page:
        _add_map(app, state)
        _add_page(app)
    return Guard(app, hosts=hosts, token=token, limits=limits, image_source=lambda: state.tile_origin)


def _add_problems(app: FastAPI, state: AppState, *, ledgers: bool) -> None:
    @app.get("/api/about", tags=["server"])
    def about() -> Json:
        """The version, the limits of this server, and whether it keeps ledgers."""
        return {"version": VERSION, "limits": vars(state.limits), "ledgers": ledgers}

    @app.post("/api/traces", tags=["problems"], status_code=201, openapi_extra=BYTES)
    async def send_traces(
        request: Request, form: Literal["csv", "parquet", "gpx", "geolife", "checkins"] = "csv"
    ) -> Json:
        """Read positions (the body is the file); they stay in memory until they are forgotten."""
        name, visits = await state.read_traces(await request.body(), form)
        return {"id": name} | visits_view(visits)

    @app.post("/api/problems", tags=["problems"], status_code=201)
    def store_problem(body: ProblemBody) -> Json:
        """Check a problem and store it: its secrets, its prior, the ranges of its bounds."""
        source = state.problem_source(body)
        return _problem(state.problems.put(source), source)

    @app.get("/api/problems/{name}", tags=["problems"])
    def problem(name: str) -> Json:
        """A stored problem."""
        return _problem(name, state.problems.get(name))

    @app.post("/api/forget", tags=["server"])
    def forget(body: ForgetBody) -> Json:
        """Forget problems, traces, jobs and mechanisms by their names; jobs among them are cancelled."""
        return {"forgotten": state.forget(body.ids)}


def _add_jobs(app: FastAPI, state: AppState) -> None:
    @app.post("/api/jobs", tags=["jobs"], status_code=202)
    def start(body: JobBody) -> Json:
        """Start a design, a frontier or a comparison, of mechanisms or policies; the response has its name, to poll."""
        return state.job_view(state.start_job(body))

    @app.get("/api/jobs/{name}", tags=["jobs"])
    def job(name: str) -> Json:
        """The state of a job: queued, running, done, failed or cancelled."""
        return state.job_view(name)

    @app.delete("/api/jobs/{name}", tags=["jobs"])
    def cancel(name: str) -> Json:
        """Cancel a job; its process is ended."""
        state.queue.cancel(state.jobs.get(name).ticket)
        return state.job_view(name)


def _add_mechanisms(app: FastAPI, state: AppState) -> None:
    @app.post("/api/verify", tags=["mechanisms"], openapi_extra=BYTES)
    async def verify(request: Request) -> Json:
        """Verify every guarantee of a mechanism file (the body), and store it."""
        content = await request.body()
        mechanism = await run_in_threadpool(lambda: load_bytes(content, max_size=state.limits.secrets))
        if not isinstance(mechanism, Mechanism):
            points = StoredPointMechanism(mechanism)
            return point_mechanism_view(state.mechanisms.put(points), points)
        stored = StoredMechanism(mechanism, label="from a file")
        problem = problem_view("", ProblemSource({}, mechanism.problem))
        return _json(mechanism_view(state.mechanisms.put(stored), stored) | {"problem": problem})

    @app.get("/api/mechanisms/{name}", tags=["mechanisms"])
    def mechanism(name: str) -> Json:
        """The guarantees of a mechanism, its measurements, and what they mean."""
        return _mechanism(name, state.mechanisms.get(name))

    @app.post("/api/mechanisms/{name}/sample", tags=["mechanisms"])
    def sample(name: str, body: SampleBody) -> Json:
        """Random outputs for a secret or a point, from the operating system's randomness."""
        if body.count > state.limits.samples:
            raise Refused(413, "TOO_LARGE", f"at most {state.limits.samples} outputs are drawn at once")
        mechanism = state.mechanisms.get(name).mechanism
        if not isinstance(mechanism, Mechanism):
            return {"answers": drawn_at(mechanism, point_inside(mechanism, body), body.count)}
        secret = mechanism.secrets.index(secret_of(mechanism, body))
        drawn = mechanism.sampler().draw([secret] * body.count)  # type: ignore[arg-type]
        return {"answers": [json_label(mechanism.observables.labels[output]) for output in drawn]}

    @app.post("/api/mechanisms/{name}/answers", tags=["mechanisms"])
    def outputs(name: str, body: SecretBody) -> Json:
        """The probability of each output for a secret or a point."""
        stored = state.mechanisms.get(name)
        if isinstance(stored, StoredPointMechanism):
            return outputs_at_view(stored, body)
        return outputs_view(stored, _secret(body))

    @app.get("/api/mechanisms/{name}/table", tags=["mechanisms"])
    def table(name: str) -> Json:
        """The whole table p(o|s), a row for each secret, rounded for pictures."""
        rows = state.mechanism(name).mechanism.probabilities
        return {"probabilities": [rounded(row) for row in rows]}

    @app.post("/api/mechanisms/{name}/attack", tags=["mechanisms"])
    def attack(name: str, body: AttackBody) -> Json:
        """Each adversary's belief and best guess after an output, and their error on average."""
        stored = state.mechanisms.get(name)
        if isinstance(stored, StoredPointMechanism):
            return _json(point_beliefs_view(stored, body.observable))
        return _json(beliefs_view(state.mechanism(name), body.observable))

    @app.post("/api/mechanisms/{name}/evaluate", tags=["mechanisms"])
    def evaluate(name: str, body: EvaluateBody) -> Json:
        """Cost and privacy, against an adversary who knows the prior or has another one."""
        from privacygames.analysis import evaluate as evaluated

        stored: StoredMechanism | StoredPointMechanism = state.mechanisms.get(name)
        if body.adversary_prior is None:
            return _json(stored.report.to_dict())
        stored = state.mechanism(name)
        prior = Prior(stored.mechanism.secrets, body.adversary_prior)
        return _json(evaluated(stored.mechanism, stored.mechanism.problem, adversary_prior=prior).to_dict())

    @app.post("/api/mechanisms/{name}/send", tags=["mechanisms"])
    def send(name: str, body: SendBody) -> Json:
        """Release a secret several times, or a typical day, with the adversary's belief after each release."""
        stored = state.mechanism(name)
        if body.secret is not None:
            secret = label_from(stored.mechanism.secrets, body.secret, "secret")
            return releases_view(stored, [secret] * body.times, moving=False)
        day = None if stored.source is None else stored.source.typical_day
        if day is None:
            raise InvalidProblem("without traces there is no typical day: give a secret", field="secret")
        return releases_view(stored, day, moving=True)


def _add_exports(app: FastAPI, state: AppState) -> None:
    @app.get("/api/mechanisms/{name}/file", tags=["take away"], response_class=Response, responses=BINARY)
    def file(name: str) -> Response:
        """The mechanism file, with the evidence for its certificate."""
        content = state.mechanisms.get(name).mechanism.to_bytes()
        return _attachment(content, "file", "application/octet-stream")

    @app.get("/api/mechanisms/{name}/device", tags=["take away"], response_class=Response, responses=BINARY)
    def device_file(name: str) -> Response:
        """The file that a phone or browser needs to verify epsilon and draw outputs: neither prior nor cost."""
        content = encode_for_device(state.mechanisms.get(name).mechanism, EXPORTS["device"].disclosure)
        return _attachment(content, "device", "application/octet-stream")

    @app.get("/api/mechanisms/{name}/recipe", tags=["take away"])
    def recipe(name: str) -> Json:
        """The problem file, Python program and command that design the mechanism again."""
        tables = state.mechanisms.get(name).tables
        if tables is None:
            raise InvalidProblem("this mechanism was not designed here, so there is no problem file for it")
        program = private_python(tables)
        return {"toml": private_toml(tables), "python": program, "command": COMMAND, "file": PROBLEM_FILE}

    @app.get("/api/mechanisms/{name}/report", tags=["take away"], response_class=Response)
    def private_report(name: str, counts: bool = False) -> Response:
        """One page about the mechanism; with ``counts``, the visit counts of the problem file are part of it."""
        stored = state.mechanisms.get(name)
        text = report(stored, _mechanism(name, stored), counts=counts)
        return _attachment(text.encode(), "report-with-counts" if counts else "report", HTML)

    @app.get("/api/mechanisms/{name}/shareable/problem", tags=["take away"], response_class=Response)
    def problem_to_share(name: str) -> Response:
        """The problem file with a uniform prior: nothing in it was computed from visits."""
        text = shareable_problem(state.mechanism(name))
        return _attachment(text.encode(), "shareable-toml", "text/plain; charset=utf-8")

    @app.get("/api/mechanisms/{name}/shareable/report", tags=["take away"], response_class=Response)
    def report_to_share(name: str) -> Response:
        """One page about the guarantees: nothing in it was computed from visits."""
        text = shareable_report(state.mechanism(name))
        return _attachment(text.encode(), "shareable-report", HTML)


def _add_map(app: FastAPI, state: AppState) -> None:
    @app.get("/api/map", tags=["map"])
    def about_map() -> Json:
        """The files of the map that are there, their credits, and the tile server that was allowed."""
        present = state.surroundings.present
        return {
            "present": present,
            "missing": [name for name in CREDITS if name not in present],
            "credits": [CREDITS[name] for name in present],
            "tiles": state.tile_template,
            "origin": state.tile_origin,
        }

    @app.post("/api/map/surroundings", tags=["map"])
    def surroundings(body: BoxBody) -> Json:
        """Names of populated places, land, coasts and borders in a box."""
        if not (body.west < body.east and body.south < body.north):
            raise InvalidProblem("west must be less than east, and south less than north", field="west")
        return state.surroundings.around((body.west, body.south, body.east, body.north))

    @app.post("/api/map/tiles", tags=["map"])
    def allow_tiles(body: TilesBody) -> Json:
        """Allow the page to show the images of one tile server once it is loaded again; null forbids them again."""
        state.tile_origin = "" if body.template is None else tile_origin(body.template)
        state.tile_template = body.template
        return {"origin": state.tile_origin}


def _add_page(app: FastAPI) -> None:
    """Serve the page's files, which are read once: no address is ever turned into a path."""
    folder = files("privacygames.studio") / "page"
    vendored = [(f"/page/vendor/{entry.name}", entry) for entry in (VENDORED.iterdir() if VENDORED.is_dir() else ())]
    own = [("/" if entry.name == "index.html" else f"/page/{entry.name}", entry) for entry in folder.iterdir()]
    for address, entry in [*own, *vendored]:
        ending = PurePosixPath(entry.name).suffix
        if ending in TYPES:
            app.add_api_route(
                address, _static(entry.read_bytes(), TYPES[ending]), include_in_schema=False, methods=["GET", "HEAD"]
            )


def _static(content: bytes, kind: str) -> Any:
    def serve() -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8")

    return serve


def _attachment(content: bytes, export: str, kind: str) -> Response:
    """An export as a download whose name and header say whether it is private."""
    file = EXPORTS[export]
    headers = {"content-disposition": f'attachment; filename="{file.name}"', "x-disclosure": file.disclosure.value}
    return Response(content, media_type=kind, headers=headers)


def _problem(name: str, source: ProblemSource | PointProblemSource) -> Json:
    """The view of a problem."""
    has_visits = {"has_visits": source.visits is not None and source.visits.has_times}
    if isinstance(source, PointProblemSource):
        return _json(point_problem_view(name, source.problem, source.bounds, source.visits_outside) | has_visits)
    return _json(problem_view(name, source) | has_visits)


def _mechanism(name: str, stored: StoredMechanism | StoredPointMechanism) -> Json:
    """The view of a mechanism."""
    return (
        point_mechanism_view(name, stored) if isinstance(stored, StoredPointMechanism) else mechanism_view(name, stored)
    )


def _secret(body: SecretBody) -> object:
    """The secret of a request about a mechanism whose secrets are cells or labels."""
    if body.secret is None or body.at is not None:
        raise InvalidProblem("give a secret: this mechanism's are cells or labels, not points", field="secret")
    return body.secret


def _json(values: object) -> Json:
    return dict(to_json_value(values))  # type: ignore[call-overload,no-any-return]
