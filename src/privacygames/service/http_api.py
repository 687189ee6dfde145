"""The HTTP API of the service as one ASGI application, behind the guard that checks every request."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer

from privacygames.atomic_io import file_lock
from privacygames.beliefs import PointPrior, Prior
from privacygames.errors import BudgetExceeded, InvalidProblem, PrivacyGamesError, StoreUnavailable
from privacygames.fleet import AnyFleet, PointFleet, add, remove, update
from privacygames.releases import LedgerStore, Release
from privacygames.service.accounts import Accounts, CurrentFleet, ServiceSettings, unknown_person
from privacygames.service.bodies import (
    PERSON,
    BalanceView,
    BudgetView,
    HealthView,
    PersonBody,
    PersonView,
    ReleaseView,
    SampleBody,
    SamplesView,
    SecretBody,
    StoredReleaseView,
)
from privacygames.service.commits import GroupCommit, ReleaseRequest
from privacygames.service.guard import ServiceGuard
from privacygames.service.logs import log, log_error
from privacygames.service.metrics import Metrics
from privacygames.service.tokens import Tokens
from privacygames.studio import (
    LOOPBACK,
    Asgi,
    ErrorBody,
    Limits,
    Refused,
    add_error_handlers,
    json_label,
    label_from,
)
from privacygames.version import VERSION

CODES = (400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 500, 503)
ERRORS: dict[int | str, dict[str, Any]] = {code: {"model": ErrorBody} for code in CODES}
for _code in (429, 503):
    ERRORS[_code] |= {"headers": {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}}
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Where the release, or the person, is."}}

Person = Annotated[str, PathParameter(min_length=1, max_length=200, description=PERSON)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Your name for this release, chosen without looking at the secret. A second request with it "
        "returns the stored output and charges nothing; the store keeps its digest, until it expires.",
    ),
]


@dataclass
class ServiceState:
    """What requests share in one worker process.

    Attributes:
        settings: of the service.
        fleet: the fleet.
        commits: the releases that wait.
        writing: the store, for releases.
        reading: the store, for everything else; requests take turns.
        metrics: the counters.
    """

    settings: ServiceSettings
    fleet: CurrentFleet
    commits: GroupCommit
    writing: LedgerStore
    reading: LedgerStore
    metrics: Metrics

    @classmethod
    def open(cls, settings: ServiceSettings, metrics: Metrics) -> "ServiceState":
        """Open the fleet and the store."""

        def switched() -> None:
            metrics.count("privacygames_fleet_generations_total")
            log("fleet", state="switched to another generation")

        def observe(releases: int, seconds: float) -> None:
            metrics.observe("privacygames_commit_releases", releases)
            metrics.observe("privacygames_commit_seconds", seconds)

        fleet = CurrentFleet(settings.fleet, switched)
        writing, reading = (LedgerStore(settings.store, key_seconds=settings.key_seconds) for _ in range(2))
        commits = GroupCommit(Accounts(settings, writing, fleet), writing, observe)
        return cls(settings, fleet, commits, writing, reading, metrics)

    def close(self) -> None:
        """Commit what waits, and end the connections."""
        self.commits.close()
        self.writing.close()
        self.reading.close()


def create_service(
    settings: ServiceSettings,
    *,
    hosts: frozenset[str] = LOOPBACK,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    metrics: Metrics | None = None,
    log_requests: bool = False,
) -> Asgi:
    """The application behind the guard that checks every request.

    Args:
        settings: what is released, and within which budgets.
        hosts: the names it may be called by.
        tokens: the tokens that requests may have; none are needed by default.
        limits: limits of the size and duration of requests.
        metrics: the counters.
        log_requests: whether a line is logged for every request.
    """
    counters = metrics or Metrics()
    state: list[ServiceState] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state.append(await asyncio.to_thread(ServiceState.open, settings, counters))
        yield
        await asyncio.to_thread(state.pop().close)

    app = FastAPI(
        title="privacygames service",
        version=VERSION,
        description="Release outputs of people's mechanisms within their budgets.",
        openapi_url="/openapi.json",
        docs_url=None,  # those pages load scripts from other servers
        redoc_url=None,
        lifespan=lifespan,
        responses=ERRORS,
    )
    add_error_handlers(app)
    bearer = HTTPBearer(auto_error=False, description="A token with the scope that the operation names.")
    _add_releases(app, state, [Depends(bearer)])
    _add_people(app, state, [Depends(bearer)])
    _add_operation(app, state, counters)
    guard_limits = limits or Limits()
    return ServiceGuard(
        app,
        hosts=hosts,
        tokens=tokens or Tokens(),
        limits=guard_limits,
        metrics=counters,
        log_requests=log_requests,
    )


def _add_releases(app: FastAPI, state: list[ServiceState], needed: list[Any]) -> None:
    @app.post(
        "/v1/people/{person}/releases",
        tags=["release"],
        status_code=201,
        response_model=ReleaseView,
        responses={
            200: {"model": ReleaseView, "headers": LOCATION, "description": "Made by an earlier request with this key"},
            201: {"headers": LOCATION},
        },
        dependencies=needed,
    )
    async def release(person: Person, body: SecretBody, response: Response, key: Key = None) -> ReleaseView:
        """Release one output (scope release): it is charged to every budget, and committed, before it is returned."""
        own = state[0]
        request = ReleaseRequest(person, _secret(own.fleet.get(), body), key, own.settings.clock)
        try:
            released: Release[Any] = await asyncio.wrap_future(own.commits.submit(request))
        except PrivacyGamesError as error:
            outcome = "refused" if isinstance(error, BudgetExceeded) else "failed"
            own.metrics.count("privacygames_releases_total", outcome=outcome)
            raise
        except Exception as error:
            own.metrics.count("privacygames_releases_total", outcome="failed")
            log_error(error)
            raise Refused(500, "INTERNAL", "an unforeseen error happened") from None
        outcome = "repeated" if released.already_made else "released"
        own.metrics.count("privacygames_releases_total", outcome=outcome)
        response.status_code = 200 if released.already_made else 201
        response.headers["location"] = f"/v1/people/{quote(person, safe='')}/releases/{released.number}"
        return ReleaseView(
            output=_output(released.observable),
            number=released.number,
            time=released.time,
            epsilon=released.epsilon,
            counted=released.counted,
            spent=released.spent,
            left=released.left,
            source=released.source,
            repeated_key=released.already_made,
        )

    @app.get("/v1/people/{person}/releases/{number}", tags=["release"], dependencies=needed)
    def stored_release(person: Person, number: int) -> StoredReleaseView:
        """A release that was made before (scope balance)."""
        records = _ledger(state[0].reading, person).records()
        if not 0 < number <= len(records):
            raise Refused(404, "UNKNOWN", "there is no release of this number")
        record = records[number - 1]
        return StoredReleaseView(
            output=str(record.report["answer"]),
            number=record.number,
            time=record.time,
            epsilon=str(record.charges[0]),
            spent=str(record.totals[0]),
        )

    @app.post("/v1/people/{person}/samples", tags=["release"], dependencies=needed)
    def sample(person: Person, body: SampleBody) -> SamplesView:
        """Draw outputs that are charged to nobody (scope sample): for experiments, never for publication."""
        fleet = state[0].fleet.get()
        _require_known(fleet, person)
        secret = _secret(fleet, body)
        return SamplesView(outputs=[_output(fleet.sample(person, secret)) for _ in range(body.count)])

    @app.get("/v1/people/{person}/balance", tags=["release"], dependencies=needed)
    def balance(person: Person) -> BalanceView:
        """What was charged to a person, and what is left (scope balance)."""
        store = state[0].reading
        if person not in store:
            _require_known(state[0].fleet.get(), person)
            return BalanceView(releases=0, budgets=[])
        ledger = _ledger(store, person)
        rows = ledger.accounts()
        return BalanceView(
            releases=ledger.head().release_count,
            budgets=[
                BudgetView.model_validate(
                    {**{name: row[name] for name in BudgetView.model_fields if name in row}}
                    | {"window_seconds": row["every"]}
                )
                for row in rows
            ],
        )


def _add_people(app: FastAPI, state: list[ServiceState], needed: list[Any]) -> None:
    @app.put(
        "/v1/people/{person}",
        tags=["people"],
        response_model=PersonView,
        responses={201: {"model": PersonView, "headers": LOCATION, "description": "The person was added"}},
        dependencies=needed,
    )
    def put_person(person: Person, body: PersonBody, response: Response) -> PersonView:
        """Add a person, or replace their prior (scope people): their mechanism is designed and verified first.

        A person whose prior is replaced keeps their account. All workers use the new mechanism from then on.
        """
        fleet = state[0].fleet.get()
        prior = _prior(fleet, body)
        with _changing(fleet):
            fleet = fleet.reopen()
            added = person not in fleet
            change: Any = add if added else update
            change(fleet, {person: prior}, jobs=1)
        guarantee = state[0].fleet.get().epsilon_guarantee
        if added:
            response.status_code = 201
            response.headers["location"] = f"/v1/people/{quote(person, safe='')}"
        return PersonView(epsilon=guarantee.epsilon, counted=guarantee.per, added=added)

    @app.delete("/v1/people/{person}", tags=["people"], status_code=204, dependencies=needed)
    def erase_person(person: Person) -> None:
        """Remove a person's mechanism from the fleet and their account from the store (scope people)."""
        own = state[0]
        fleet = own.fleet.get()
        with _changing(fleet):
            fleet = fleet.reopen()
            known = person in fleet
            if known:
                names: Any = [person]
                remove(fleet, names, jobs=1)
        if person in own.reading:
            own.reading.erase(person)
        elif not known:
            raise Refused(404, "UNKNOWN", "there is no such person")


def _add_operation(app: FastAPI, state: list[ServiceState], metrics: Metrics) -> None:
    @app.get("/healthz", tags=["operation"])
    async def health() -> HealthView:
        """That this process answers; no token is needed."""
        return HealthView(status="ok")

    @app.get("/readyz", tags=["operation"])
    def ready() -> HealthView:
        """That the store can be reached and the fleet be read; no token is needed."""
        state[0].reading.ready()
        state[0].fleet.get()
        return HealthView(status="ok")

    @app.get(
        "/metrics",
        tags=["operation"],
        response_class=PlainTextResponse,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    def counters(_: Request) -> PlainTextResponse:
        """The counters of all workers, in Prometheus's text format (scope metrics)."""
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")


def _secret(fleet: AnyFleet, body: SecretBody) -> Any:
    """The secret of a request, which no error repeats."""
    if isinstance(fleet, PointFleet):
        if body.point is None or body.secret is not None:
            raise InvalidProblem("the secrets of this fleet are points: give a point", field="point")
        return _coordinates(fleet, body.point)
    if body.secret is None or body.point is not None:
        raise InvalidProblem("the secrets of this fleet are cells or labels: give a secret", field="secret")
    return label_from(fleet.secrets, body.secret, "secret")


def _coordinates(fleet: PointFleet, point: list[float]) -> Any:
    if len(point) != fleet.secrets.dimension:
        raise InvalidProblem(f"a point of this fleet has {fleet.secrets.dimension} coordinates", field="point")
    return tuple(point) if len(point) == 2 else point[0]


def _prior(fleet: AnyFleet, body: PersonBody) -> Prior | PointPrior:
    if isinstance(fleet, PointFleet):
        if not body.points or body.weights:
            raise InvalidProblem("the secrets of this fleet are points: give points", field="points")
        points = [_coordinates(fleet, each.point) for each in body.points]
        return PointPrior(fleet.secrets, points, [each.weight for each in body.points])
    if not body.weights or body.points:
        raise InvalidProblem("the secrets of this fleet are cells or labels: give weights", field="weights")
    counts = [0.0] * len(fleet.secrets)
    for each in body.weights:
        counts[fleet.secrets.index(label_from(fleet.secrets, each.secret, "secret"))] += each.weight
    return Prior.from_counts(fleet.secrets, counts)


def _output(output: Any) -> Any:
    return [float(each) for each in output] if isinstance(output, tuple) else json_label(output)


def _ledger(store: LedgerStore, person: str) -> Any:
    if person not in store:
        raise Refused(404, "UNKNOWN", "there is no account of this person")
    return store.ledger(person, create=False)


def _require_known(fleet: AnyFleet, person: str) -> None:
    if person not in fleet:
        raise unknown_person()


@contextmanager
def _changing(fleet: AnyFleet) -> Iterator[None]:
    """The lock of changes by the service's workers, one at a time."""
    with file_lock(fleet.folder / ".service-lock") as acquired:
        if not acquired:
            raise StoreUnavailable("another request is changing the fleet: try again in a while")
        yield
