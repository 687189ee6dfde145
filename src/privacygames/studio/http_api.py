"""The HTTP API and the page, as one application; the guard stands in front of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem, PrivacyGamesError
from privacygames.immutable import to_json_value
from privacygames.mechanism import load_bytes
from privacygames.studio.app_state import AppState
from privacygames.studio.descriptions import Described
from privacygames.studio.export_files import EXPORTS
from privacygames.studio.exports import COMMAND, PROBLEM, private_python, private_toml, report_of
from privacygames.studio.http_errors import Refused, code_of, shape
from privacygames.studio.limits import Limits
from privacygames.studio.requests import (
    AttackBody,
    ErrorBody,
    EvaluateBody,
    ForgetBody,
    JobBody,
    ProblemBody,
    SampleBody,
    SecretBody,
    SendBody,
)
from privacygames.studio.security import LOOPBACK, Asgi, Guard
from privacygames.studio.shareable import shareable_problem, shareable_report
from privacygames.studio.views import (
    Shelved,
    answers_view,
    beliefs_view,
    label_from,
    mechanism_view,
    problem_view,
    rounded,
    sent_view,
    visits_view,
    written,
)

Json = dict[str, Any]
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HTML = "text/html; charset=utf-8"
BYTES = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
BINARY: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}
CODES = (400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 500, 503)
ERRORS: dict[int | str, dict[str, Any]] = {code: {"model": ErrorBody} for code in CODES}


def create_app(
    *, limits: Limits | None = None, hosts: frozenset[str] = LOOPBACK, token: str | None = None, page: bool = True
) -> Asgi:
    """The application, guarded.

    Args:
        limits: what it does at most.
        hosts: the names it may be called by.
        token: what requests to the API have to bring, if anything.
        page: whether the page is served, too.
    """
    bounded = limits or Limits()
    workshop = AppState(bounded)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(workshop.tidied())
        yield
        tidying.cancel()
        workshop.close()

    app = FastAPI(
        title="privacygames",
        version=version("privacygames"),
        description="Design, sample, evaluate, attack, verify and compare mechanisms.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # those pages load their scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses=ERRORS,
    )
    _add_errors(app)
    _add_problems(app, workshop)
    _add_jobs(app, workshop)
    _add_mechanisms(app, workshop)
    _add_exports(app, workshop)
    if page:
        _add_page(app)
    return Guard(app, hosts=hosts, token=token, limits=bounded)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(PrivacyGamesError)
    def known(_: Request, error: PrivacyGamesError) -> JSONResponse:
        code = code_of(error)
        return JSONResponse(shape(error), code, headers={"retry-after": "5"} if code == 429 else None)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        # Where it is wrong and what is wanted; what was sent is not repeated. A key may be what was sent, too.
        found = [
            f"{'.'.join(_shown(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors()
            if each["type"] != "extra_forbidden"
        ]
        extra = any(each["type"] == "extra_forbidden" for each in error.errors())
        found += ["there is a field that is not known here"] if extra else []
        return JSONResponse(shape(Refused(422, "INVALID", "; ".join(found)[:1000])), 422)

    @app.exception_handler(HTTPException)
    def other(_: Request, error: HTTPException) -> JSONResponse:
        words = {404: "there is nothing at this address", 405: "this address does not take that method"}
        message = words.get(error.status_code, "the request cannot be read")
        refusal = Refused(error.status_code, "REFUSED", message)
        return JSONResponse(shape(refusal), error.status_code, headers=error.headers)


def _shown(part: object) -> str:
    return part if isinstance(part, str) and part.isidentifier() and len(part) < 30 else "…"


def _add_problems(app: FastAPI, workshop: AppState) -> None:
    @app.get("/api/about", tags=["server"])
    def about() -> Json:
        """The version, and the limits of this server."""
        return {"version": version("privacygames"), "limits": vars(workshop.limits)}

    @app.post("/api/traces", tags=["problems"], status_code=201, openapi_extra=BYTES)
    async def send_traces(
        request: Request, form: Literal["csv", "parquet", "gpx", "geolife", "checkins"] = "csv"
    ) -> Json:
        """Read positions (the body is the file); they stay in memory, and only until they are forgotten."""
        name, visits = await workshop.read(await request.body(), form)
        return {"id": name} | visits_view(visits)

    @app.post("/api/problems", tags=["problems"], status_code=201)
    def describe(body: ProblemBody) -> Json:
        """Check a problem and keep it: what is secret, what is believed, what answers cost."""
        found = workshop.describe(body)
        return _json(problem_view(workshop.problems.put(found), found))

    @app.get("/api/problems/{name}", tags=["problems"])
    def problem(name: str) -> Json:
        """A problem that is kept."""
        return _json(problem_view(name, workshop.problems.get(name)))

    @app.post("/api/forget", tags=["server"])
    def forget(body: ForgetBody) -> Json:
        """Forget problems, traces, jobs and mechanisms by their names; jobs among them are cancelled."""
        return {"forgotten": workshop.forget(body.ids)}


def _add_jobs(app: FastAPI, workshop: AppState) -> None:
    @app.post("/api/jobs", tags=["jobs"], status_code=202)
    def start(body: JobBody) -> Json:
        """Start a design, a frontier or a comparison; the answer says under which name to ask for it."""
        return workshop.job_view(workshop.start(body))

    @app.get("/api/jobs/{name}", tags=["jobs"])
    def job(name: str) -> Json:
        """Where a job stands: queued, running, done, failed or cancelled."""
        return workshop.job_view(name)

    @app.delete("/api/jobs/{name}", tags=["jobs"])
    def cancel(name: str) -> Json:
        """Cancel a job; its process is ended."""
        workshop.queue.cancel(workshop.jobs.get(name).ticket)
        return workshop.job_view(name)


def _add_mechanisms(app: FastAPI, workshop: AppState) -> None:
    @app.post("/api/verify", tags=["mechanisms"], openapi_extra=BYTES)
    async def verify(request: Request) -> Json:
        """Re-check every promise of a mechanism file (the body), and keep it."""
        content = await request.body()
        mechanism = await _aside(lambda: load_bytes(content, most=workshop.limits.secrets))
        kept = Shelved(mechanism, label="from a file")
        problem = problem_view("", Described({}, mechanism.problem))
        return _json(mechanism_view(workshop.mechanisms.put(kept), kept) | {"problem": problem})

    @app.get("/api/mechanisms/{name}", tags=["mechanisms"])
    def mechanism(name: str) -> Json:
        """What a mechanism promises, what was measured, and what that means."""
        return mechanism_view(name, workshop.mechanisms.get(name))

    @app.post("/api/mechanisms/{name}/sample", tags=["mechanisms"])
    def sample(name: str, body: SampleBody) -> Json:
        """Random answers for a secret, from the operating system's randomness."""
        if body.count > workshop.limits.samples:
            raise Refused(413, "TOO_LARGE", f"at most {workshop.limits.samples} answers are drawn at once")
        made = workshop.mechanisms.get(name).mechanism
        secret = label_from(made.secrets, body.secret, "secret")
        position = made.secrets.index(secret)
        drawn = made.sampler().draw([position] * body.count)  # type: ignore[arg-type]
        return {"answers": [written(made.observables.labels[each]) for each in drawn]}

    @app.post("/api/mechanisms/{name}/answers", tags=["mechanisms"])
    def answers(name: str, body: SecretBody) -> Json:
        """With which probability each answer is given for a secret."""
        return answers_view(workshop.mechanisms.get(name), body.secret)

    @app.get("/api/mechanisms/{name}/table", tags=["mechanisms"])
    def table(name: str) -> Json:
        """The whole table p(o|s), a row for each secret, rounded for pictures."""
        rows = workshop.mechanisms.get(name).mechanism.probabilities
        return {"probabilities": [rounded(row) for row in rows]}

    @app.post("/api/mechanisms/{name}/attack", tags=["mechanisms"])
    def attack(name: str, body: AttackBody) -> Json:
        """What each attacker believes and guesses after an answer, and how wrong she is on average."""
        return _json(beliefs_view(workshop.mechanisms.get(name), body.observable))

    @app.post("/api/mechanisms/{name}/evaluate", tags=["mechanisms"])
    def evaluate(name: str, body: EvaluateBody) -> Json:
        """Everything measured, against an adversary who knows the prior or believes something else."""
        from privacygames.analysis import evaluate as measured

        kept = workshop.mechanisms.get(name)
        if body.adversary_prior is None:
            return _json(kept.report.to_dict())
        prior = Prior(kept.mechanism.secrets, body.adversary_prior)
        return _json(measured(kept.mechanism, kept.mechanism.problem, adversary_prior=prior).to_dict())

    @app.post("/api/mechanisms/{name}/send", tags=["mechanisms"])
    def send(name: str, body: SendBody) -> Json:
        """Send a secret again and again, or a typical day, and see what an observer believes by then."""
        kept = workshop.mechanisms.get(name)
        if body.secret is not None:
            secret = label_from(kept.mechanism.secrets, body.secret, "secret")
            return sent_view(kept, [secret] * body.times, moving=False)
        day = None if kept.described is None else kept.described.day
        if day is None:
            raise InvalidProblem("no traces are known, so neither is a day: give a secret")
        return sent_view(kept, day, moving=True)


def _add_exports(app: FastAPI, workshop: AppState) -> None:
    @app.get("/api/mechanisms/{name}/file", tags=["take away"], response_class=Response, responses=BINARY)
    def file(name: str) -> Response:
        """The mechanism file, with its certificate's evidence."""
        content = workshop.mechanisms.get(name).mechanism.to_bytes()
        return _attachment(content, "file", "application/octet-stream")

    @app.get("/api/mechanisms/{name}/recipe", tags=["take away"])
    def recipe(name: str) -> Json:
        """The problem file, the Python and the command that make the mechanism again."""
        tables = workshop.mechanisms.get(name).tables
        if tables is None:
            raise InvalidProblem("this mechanism was not designed here: there is no problem file of it")
        return {"toml": private_toml(tables), "python": private_python(tables), "command": COMMAND, "file": PROBLEM}

    @app.get("/api/mechanisms/{name}/report", tags=["take away"], response_class=Response)
    def report(name: str, counts: bool = False) -> Response:
        """One page about the mechanism; with ``counts``, the visit counts of the problem file are part of it."""
        kept = workshop.mechanisms.get(name)
        text = report_of(kept, mechanism_view(name, kept), counts=counts)
        return _attachment(text.encode(), "report-with-counts" if counts else "report", HTML)

    @app.get("/api/mechanisms/{name}/shareable/problem", tags=["take away"], response_class=Response)
    def problem_to_share(name: str) -> Response:
        """The problem file with a uniform prior: nothing in it was computed from visits."""
        text = shareable_problem(workshop.mechanisms.get(name))
        return _attachment(text.encode(), "shareable-toml", "text/plain; charset=utf-8")

    @app.get("/api/mechanisms/{name}/shareable/report", tags=["take away"], response_class=Response)
    def report_to_share(name: str) -> Response:
        """One page about what is promised: nothing in it was computed from visits."""
        text = shareable_report(workshop.mechanisms.get(name))
        return _attachment(text.encode(), "shareable-report", HTML)


def _add_page(app: FastAPI) -> None:
    """The page's files are read once: no address is ever turned into a path."""
    folder = files("privacygames.studio") / "page"
    for entry in folder.iterdir():
        ending = f".{entry.name.rpartition('.')[2]}"
        if ending in TYPES:
            address = "/" if entry.name == "index.html" else f"/page/{entry.name}"
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


def _json(values: object) -> Json:
    return dict(to_json_value(values))  # type: ignore[call-overload,no-any-return]


async def _aside(work: Any) -> Any:
    """Something that takes a while, in a thread: nobody else waits for it."""
    from starlette.concurrency import run_in_threadpool

    return await run_in_threadpool(work)
