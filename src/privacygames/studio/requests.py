"""The bodies of requests, field by field; nothing else is accepted."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from privacygames.bound_fields import BOUND_FIELDS
from privacygames.studio.column_roles import Decimal, Role
from privacygames.studio.file_content import MOST_COLUMNS
from privacygames.traces import DateOrder

Side = Annotated[int, Field(ge=1, le=60)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
LabelBody = Annotated[str, Field(max_length=1000)] | int | float | list[str]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Latitude = Annotated[float, Field(ge=-90, le=90)]
Longitude = Annotated[float, Field(ge=-180, le=180)]
Cost = Literal["hamming", "euclidean"]
Places = Literal["cells", "points"]
Outside = Literal["leave", "nearest", "other", "stop"]
"""What happens to rows whose value is none of a mechanism's secrets: they are left out, take the nearest secret, or
the category of all others, or nothing is protected."""


class Body(BaseModel):
    """Unknown fields are refused, and texts are not converted to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class InventedBody(Body):
    """A synthetic person. For points, columns and rows are those of outputs, and no cost is used."""

    seed: Annotated[int, Field(ge=0, le=9999)] = 0
    person: Annotated[int, Field(ge=0, le=9)] = 0
    columns: Side = 12
    rows: Side = 8
    cost: Cost = "euclidean"
    secrets: Places = "cells"


class TracesBody(Body):
    """One user of traces that were sent before (null: everyone); for points, as for a synthetic person."""

    id: Name
    user: Annotated[str, Field(max_length=1000)] | None
    columns: Side = 12
    rows: Side = 8
    cost: Cost = "euclidean"
    secrets: Places = "cells"


class ProblemBody(Body):
    """One of: the tables of a problem document, the document as text, a synthetic person, or a user of traces."""

    document: dict[str, Any] | None = None
    toml: str | None = None
    invented: InventedBody | None = None
    traces: TracesBody | None = None


class _AnyBounds(Body):
    """The bounds of a design; a bound that is left out does not apply."""

    def given(self) -> dict[str, Any]:
        """The bounds that apply."""
        return {key: value for key, value in self.model_dump().items() if value is not None and value is not False}


if TYPE_CHECKING:
    BoundsBody = _AnyBounds
else:  # one field for each bound
    BoundsBody = create_model(
        "BoundsBody",
        __base__=_AnyBounds,
        __doc__=_AnyBounds.__doc__,
        **{
            name: (bool, Field(default=False, description=about.help))
            if about.is_switch
            else (Amount | None, Field(default=None, description=about.help))
            for name, about in BOUND_FIELDS.items()
        },
    )


class JobBody(Body):
    """A design; the frontier of cost against distortion around one; known mechanisms, or policies, side by side.

    ``adversaries`` says which share of the largest possible error is guaranteed against each; null: the problem file's
    own guarantee. ``names`` is for comparisons, which take ``epsilon``, ``distortion`` and ``within`` only. ``budget``,
    in ε per km a day, is for policies, which take no bounds; the problem must come from traces, or a synthetic person.
    """

    kind: Literal["design", "frontier", "compare", "policies"] = "design"
    problem: Name
    bounds: BoundsBody = BoundsBody()
    adversaries: dict[str, Annotated[float, Field(ge=0, le=1)] | None] = {}
    time_limit: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    names: Annotated[list[str], Field(max_length=20)] | None = None
    budget: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None


class PositionBody(Body):
    """A point of an area over degrees."""

    latitude: Latitude
    longitude: Longitude


class PlanePointBody(Body):
    """A point of an area in kilometres."""

    x: Annotated[float, Field(allow_inf_nan=False)]
    y: Annotated[float, Field(allow_inf_nan=False)]


class SecretBody(Body):
    """A secret, or a point where the secrets are points (a number, for an interval)."""

    secret: LabelBody | None = None
    at: PositionBody | PlanePointBody | Annotated[float, Field(allow_inf_nan=False)] | None = None


class SampleBody(SecretBody):
    """A secret or a point, and how many outputs to draw."""

    count: Annotated[int, Field(ge=1)] = 1


class AttackBody(Body):
    """An output that somebody saw."""

    observable: LabelBody


class EvaluateBody(Body):
    """Another prior for the adversary, one probability for each secret; by default the problem's prior."""

    adversary_prior: list[Amount] | None = None


class SendBody(Body):
    """A secret to release several times; or, without one, the typical day of the user whose traces these are."""

    secret: LabelBody | None = None
    times: Annotated[int, Field(ge=1, le=48)] = 1


class BoxBody(Body):
    """A box of degrees."""

    west: Longitude
    south: Latitude
    east: Longitude
    north: Latitude


class TilesBody(Body):
    """The template of a tile server's addresses, with ``{z}``, ``{x}`` and ``{y}``; null for none."""

    template: Annotated[str, Field(max_length=500)] | None


class ColumnsBody(Body):
    """What the columns of a table are, how its numbers and dates are written, and whose rows are read."""

    roles: Annotated[list[Role], Field(max_length=MOST_COLUMNS)]
    decimal: Decimal = "point"
    dates: DateOrder | None = None
    person: Annotated[str, Field(max_length=1000)] | None = None


class ProtectBody(Body):
    """The mechanism and the table, which columns hold the secret and the person, and what becomes of other rows."""

    mechanism: Name
    table: Name
    columns: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=2)]
    who: Annotated[int, Field(ge=0)] | None = None
    decimal: Decimal = "point"
    outside: Outside = "leave"


class ForgetBody(Body):
    """Names of items that may be forgotten."""

    ids: Annotated[list[Name], Field(max_length=1000)]


class ErrorDetail(BaseModel):
    """An error: its kind, a word for programs, a sentence for people; and the field it is about, if it is about one."""

    model_config = ConfigDict(extra="allow")
    kind: str
    status: str
    message: str
    field: str | None = None
    pointer: str | None = None


class ErrorBody(BaseModel):
    """The one shape of every error."""

    error: ErrorDetail
