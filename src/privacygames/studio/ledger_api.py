"""The routes about ledgers: outputs day after day, each charged to a budget on this machine before it is seen."""

from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from math import exp, log, sqrt
from time import time
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from pydantic import Field

from privacygames.immutable import to_json_value
from privacygames.mechanism import Mechanism
from privacygames.points import PointMechanism
from privacygames.presentation import point_json
from privacygames.releases import ReleaseRecord
from privacygames.spaces import Area, Grid, Space, display_label
from privacygames.studio.http_errors import Refused
from privacygames.studio.ledger_folder import DAY, DailySettings, LedgerFolder, LedgerName, OpenLedger
from privacygames.studio.peer import is_other_user
from privacygames.studio.requests import Body, Name, SecretBody
from privacygames.studio.stored_mechanism import StoredMechanism, StoredPointMechanism
from privacygames.studio.views import View, json_label

HISTORY = 50
"""Maximum number of outputs that a view of a ledger lists, the latest first."""

LARGEST_FACTOR = 1e6
"""Odds that shift by more than this are not bounded in any useful way; a larger factor is not written out."""

SAFELY = Context(prec=3, rounding=ROUND_CEILING)
"""Factors are told with three digits, rounded up: what is guaranteed is never more than what is said."""

Stored = StoredMechanism | StoredPointMechanism


class LedgerBody(DailySettings):
    """A new ledger for a mechanism that the server keeps."""

    name: LedgerName
    mechanism: Name


class DailyReleaseBody(SecretBody):
    """What is true now; and a name of this release, by which a repeated request gets the same output, uncharged."""

    key: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class PauseBody(Body):
    """Whether nothing may be released."""

    paused: bool


def add_ledgers(app: FastAPI, ledgers: LedgerFolder, mechanism: Callable[[str], Stored], *, token: bool) -> None:
    """Add the routes.

    Args:
        app: the application.
        ledgers: the ledgers of the person.
        mechanism: a mechanism of the server, by its name.
        token: whether requests need a token; otherwise those of other users of this machine are refused.
    """

    def own_user(request: Request) -> None:
        if not token and is_other_user(request.scope):
            raise Refused(403, "OTHER_USER", "these ledgers belong to another user of this machine")

    options: dict[str, Any] = {"tags": ["every day"], "dependencies": [Depends(own_user)]}

    @app.get("/api/ledgers", **options)
    def names() -> View:
        """The ledgers of this person on this machine, by name, and the folder they are in."""
        return {"folder": str(ledgers.folder), "ledgers": ledgers.names()}

    @app.post("/api/ledgers", status_code=201, **options)
    def create(body: LedgerBody) -> View:
        """Make a ledger: a mechanism, a budget for any 24 hours, and a policy, in files that only this person reads."""
        settings = DailySettings(**{name: getattr(body, name) for name in DailySettings.model_fields})
        ledgers.create(body.name, mechanism(body.mechanism).mechanism, settings)
        return ledger(body.name)

    @app.get("/api/ledgers/{name}", **options)
    def ledger(name: str) -> View:
        """A ledger: what it releases, what is left of its budget, and its latest outputs. It knows no secret."""
        with ledgers.opened(name) as opened:
            return ledger_view(opened)

    @app.post("/api/ledgers/{name}/release", **options)
    def release(name: str, body: DailyReleaseBody) -> View:
        """Draw one output, charged and committed before this responds."""
        with ledgers.opened(name) as opened:
            number = opened.release(SecretBody(secret=body.secret, at=body.at), body.key)
            return ledger_view(opened, released=number)

    @app.post("/api/ledgers/{name}/pause", **options)
    def pause(name: str, body: PauseBody) -> View:
        """Pause a ledger, for every program that uses it here, or resume it."""
        with ledgers.opened(name) as opened:
            opened.pause(body.paused)
            return ledger_view(opened)


def ledger_view(opened: OpenLedger, released: int | None = None) -> View:
    """A ledger: its mechanism's secrets, its settings without key and places, its balance, and its latest outputs.

    Args:
        opened: the ledger.
        released: the number of the output that was asked for; None: none was.
    """
    now, settings, account = time(), opened.settings, opened.session.accounts[-1]
    limit = account.limit or Decimal(0)
    left = _left(opened, now)
    records = opened.session.ledger.records()
    view = {
        "name": opened.name,
        "folder": str(opened.folder),
        "paused": opened.paused,
        "secrets": _secrets_view(opened.mechanism),
        "policy": settings.policy,
        "place": settings.place,
        "places": None if settings.places is None else len(settings.places),
        "radius": settings.radius,
        "when_spent": settings.when_spent,
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "within": settings.within,
        "unit": account.scale.per(),
        "share_left": float(left / limit) if limit else 0.0,
        "charge": None if settings.delta is not None else float(opened.charge),
        "releases_left": int(left // opened.charge) if opened.charge else None,
        "next": _next_room(opened, records, now),
        "guarantee": _guarantee(opened),
        "total": len(records),
        "released": None if released is None else _record_view(opened.mechanism, records[released - 1]),
        "history": [_record_view(opened.mechanism, each) for each in records[: -HISTORY - 1 : -1]],
    }
    return dict(to_json_value(view))  # type: ignore[call-overload,no-any-return]


def _left(opened: OpenLedger, at: float) -> Decimal:
    """What is left of the budget of the 24 hours that end at a time."""
    account = opened.session.accounts[-1]
    spent = opened.session.ledger.spent((account,), at)[0].amount
    return max((account.limit or Decimal(0)) - spent, Decimal(0))


def _next_room(opened: OpenLedger, records: list[ReleaseRecord], now: float) -> float | None:
    """When the budget has room again for a new output; None where it has room now."""
    if _left(opened, now) >= opened.charge:
        return None
    ends = sorted({each.time + DAY + 1 for each in records if each.time is not None and each.time + DAY >= now})
    return next((end for end in ends if _left(opened, end) >= opened.charge), None)


def _record_view(mechanism: Mechanism | PointMechanism, record: ReleaseRecord) -> View:
    """An output in a ledger, with its coordinates where it has some."""
    return {
        "number": record.number,
        "time": record.time,
        "output": output_view(mechanism, record.output_index),
        "source": record.report["source"],
        "charged": bool(record.charges[-1]),
    }


def output_view(mechanism: Mechanism | PointMechanism, output: int) -> View:
    """An output: its label, and the coordinates of the point or of the centre of the cell."""
    label = mechanism.observables.labels[output]
    view: View = {"label": json_label(label), "text": display_label(label)}
    if isinstance(mechanism, PointMechanism):
        region = mechanism.secrets
        return view | point_json(region, mechanism.outputs[output].tolist()) if isinstance(region, Area) else view
    space = mechanism.observables
    if not isinstance(space, Grid):
        return view
    first, second = space.centre(label)
    size = {"width": space.width / space.columns, "height": space.height / space.rows}
    return view | size | ({"x": first, "y": second} if space.box is None else {"longitude": first, "latitude": second})


def _secrets_view(mechanism: Mechanism | PointMechanism) -> View:
    """What a person gives to this mechanism: a position on a map, a number of an interval, or one of some labels."""
    space = mechanism.secrets
    if isinstance(space, Grid):
        return {"kind": "map", "box": space.box, "width": space.width, "height": space.height}
    if isinstance(space, Space):
        return {"kind": "labels", "labels": [json_label(label) for label in space.labels]}
    if isinstance(space, Area):
        return {"kind": "map", "box": space.box, "width": space.width, "height": space.height}
    return {"kind": "number"}


def _guarantee(opened: OpenLedger) -> str:
    """What the budget guarantees about all outputs of a day, in a sentence."""
    account, settings = opened.session.accounts[-1], opened.settings
    if account.statement is not None:
        return f"{account.statement[0].upper()}{account.statement[1:]}."
    unit = account.scale.singular_unit
    secrets = f"two secrets 1 {unit} apart" if unit else f"{'any ' if account.all_distances_one else ''}two secrets"
    on_map = not isinstance(opened.mechanism.secrets, Space) or isinstance(opened.mechanism.secrets, Grid)
    apart = f"two days that are never more than 1 {unit} apart" if on_map else secrets
    exponent = settings.epsilon * (1 + _moved(settings))
    by = (
        f"at most {float(SAFELY.create_decimal(exp(exponent))):g} times"
        if exponent < log(LARGEST_FACTOR)
        else "a great deal"
    )
    sentence = f"All outputs of any 24 hours together shift the odds between {apart} by {by}, whoever looks."
    if settings.policy != "fresh":
        sentence += " That you return to a place can be seen, and is not counted."
    return sentence


def _moved(settings: DailySettings) -> float:
    """How much further apart two points may be once each is taken for its place: a diagonal, or two radii."""
    if settings.policy == "places":
        return 2 * (settings.radius or 0.0)
    return sqrt(2) * (settings.place or 0.0)
