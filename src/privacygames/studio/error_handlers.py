"""The handlers that turn errors into responses of one JSON shape; no response repeats a value that was sent."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from privacygames.errors import PrivacyGamesError
from privacygames.studio.http_errors import Refused, error_body, status_code


def add_error_handlers(app: FastAPI) -> None:
    """Turn errors of the library, of requests and of routing into the one shape of an error."""

    @app.exception_handler(PrivacyGamesError)
    def of_library(_: Request, error: PrivacyGamesError) -> JSONResponse:
        code = status_code(error)
        return JSONResponse(error_body(error), code, headers={"retry-after": "5"} if code in (429, 503) else None)

    @app.exception_handler(RequestValidationError)
    def of_request(_: Request, error: RequestValidationError) -> JSONResponse:
        # The message has the place and what is allowed there, never the value; an unknown key may be a value, too.
        known = [each for each in error.errors() if each["type"] != "extra_forbidden"]
        messages = [f"{'.'.join(_safe(part) for part in each['loc'])}: {each['msg']}" for each in known]
        if len(known) < len(error.errors()):
            messages.append("there is an unknown field")
        if any(each["type"] == "json_invalid" for each in known):
            return JSONResponse(error_body(Refused(400, "REFUSED", "the body is not valid JSON")), 400)
        body = error_body(Refused(422, "INVALID", "; ".join(messages)[:1000]))
        if known and len(known[0]["loc"]) > 1:
            parts = [_safe(part) for part in known[0]["loc"][1:]]  # without "body", "path" or "query"
            detail: dict[str, object] = dict(body["error"])  # type: ignore[call-overload]
            body = {"error": {**detail, "field": parts[-1], "pointer": "/" + "/".join(parts)}}
        return JSONResponse(body, 422)

    @app.exception_handler(HTTPException)
    def of_routing(_: Request, error: HTTPException) -> JSONResponse:
        sentences = {404: "there is nothing at this address", 405: "this address does not take that method"}
        message = sentences.get(error.status_code, "the request cannot be read")
        refusal = Refused(error.status_code, "REFUSED", message)
        return JSONResponse(error_body(refusal), error.status_code, headers=error.headers)


def _safe(part: object) -> str:
    """A part of the location of an error in a request; "…" if it may be a value."""
    return part if isinstance(part, str) and part.isidentifier() and len(part) < 30 else "…"
