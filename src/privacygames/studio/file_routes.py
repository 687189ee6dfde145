"""Routes of files: what an uploaded one holds, what its columns say, and the protected one."""

from typing import Any, Literal

from fastapi import FastAPI, Request, Response

from privacygames.errors import InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.studio.app_state import AppState, Protection
from privacygames.studio.file_protection import ProtectionRequest
from privacygames.studio.http_errors import Refused, with_pointer
from privacygames.studio.requests import ColumnsBody, ProtectBody
from privacygames.studio.table_uploads import Reading
from privacygames.studio.views import visits_view
from privacygames.traces import Visits

Json = dict[str, Any]
BYTES = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
BINARY: dict[int | str, dict[str, Any]] = {200: {"content": {"application/octet-stream": {}}}}


def add_files(app: FastAPI, state: AppState) -> None:
    """Add the routes of files to the application."""
    _add_uploads(app, state)
    _add_protection(app, state)


def _add_uploads(app: FastAPI, state: AppState) -> None:
    @app.post("/api/files", tags=["files"], status_code=201, openapi_extra=BYTES)
    async def open_file(request: Request, header: Literal["auto", "yes", "no"] = "auto") -> Json:
        """Read a file of any kind (the body): a recording's visits, or a table with its columns guessed."""
        opened = await state.run_reading({"kind": "open", "content": await request.body(), "header": header})
        table = {"id": state.tables.put(opened["stored"]), **_json(opened["preview"])}
        if "visits" in opened:
            return _stored_visits(state, opened) | {"table": table}
        return {"kind": "table", **table}

    @app.post("/api/files/{name}/columns", tags=["files"], status_code=201)
    async def read_columns(name: str, body: ColumnsBody) -> Json:
        """The visits, numbers or categories in the columns of a table that was sent before."""
        reading = Reading(tuple(body.roles), body.decimal, body.dates, body.person)
        columns = await state.run_reading({"kind": "columns", "table": state.tables.get(name), "reading": reading})
        if "visits" in columns:
            return _stored_visits(state, columns)
        return {"kind": "values", **_json(columns)}

    @app.post("/api/files/{name}/check", tags=["files"])
    async def check_rows(name: str, body: ProtectBody) -> Json:
        """How many rows of a table hold a secret of a mechanism, before anything is protected."""
        return _json(await state.run_reading({"kind": "check", **_protection(state, body, name)}))


def _add_protection(app: FastAPI, state: AppState) -> None:
    @app.post("/api/protected", tags=["files"], status_code=202)
    def protect(body: ProtectBody) -> Json:
        """Start to protect a file; the response has the name, to poll."""
        spec = {"kind": "protect", "time_limit": state.limits.job_seconds, **_protection(state, body, body.table)}
        name = state.protections.put(Protection(state.queue.submit(spec)))
        return _view(state, name)

    @app.get("/api/protected/{name}", tags=["files"])
    def progress(name: str) -> Json:
        """The state of a file that is being protected; once it is, what it costs and what can be read from it."""
        return _view(state, name)

    @app.delete("/api/protected/{name}", tags=["files"])
    def cancel(name: str) -> Json:
        """Stop protecting a file; its process is ended."""
        state.queue.cancel(state.protections.get(name).ticket)
        return _view(state, name)

    @app.get("/api/protected/{name}/table", tags=["files"], response_class=Response, responses=BINARY)
    def table(name: str) -> Response:
        """The protected table."""
        result = _result(state, name)
        return _download(result["content"], f"protected{result['ending']}", "application/octet-stream")

    @app.get("/api/protected/{name}/manifest", tags=["files"], response_class=Response)
    def manifest(name: str) -> Response:
        """The manifest of the protected table: what was done to which columns, and its privacy cost."""
        result = _result(state, name)
        return _download(result["manifest"].encode(), f"protected{result['ending']}.manifest.json", "application/json")


def _stored_visits(state: AppState, result: Json) -> Json:
    """The view of visits that a worker process read, once they are stored."""
    visits = Visits(**result["visits"])
    view = {"kind": "places", "id": state.traces.put(visits), "has_times": visits.has_times, "form": visits.format}
    return _json(view | visits_view(visits) | {"bad": result.get("bad", [])})


def _protection(state: AppState, body: ProtectBody, table: str) -> Json:
    """The mechanism, table and request of a job, as the worker process takes them."""
    if table != body.table:
        raise InvalidProblem("the address and the body name two tables", field="table")
    return {
        "mechanism": state.mechanisms.get(body.mechanism).mechanism.to_bytes(),
        "table": state.tables.get(table),
        "request": ProtectionRequest(tuple(body.columns), body.who, body.decimal, body.outside),
    }


def _view(state: AppState, name: str) -> Json:
    ticket = state.protections.get(name).ticket
    now = ticket.state  # read once: what follows is complete for it
    summary = (ticket.result or {}).get("summary")
    return _json(
        {
            "id": name,
            "state": now,
            "ahead": state.queue.ahead_of(ticket),
            "seconds": ticket.seconds,
            "progress": ticket.progress,
            "result": summary | {"ending": (ticket.result or {})["ending"]} if now == "done" and summary else None,
            "error": None if ticket.error is None else with_pointer(ticket.error),
        }
    )


def _result(state: AppState, name: str) -> Json:
    result = state.protections.get(name).ticket.result
    if result is None:
        raise Refused(409, "NOT_READY", "the file is not protected yet")
    return result


def _download(content: bytes, name: str, kind: str) -> Response:
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def _json(values: object) -> Json:
    return dict(to_json_value(values))  # type: ignore[call-overload,no-any-return]
