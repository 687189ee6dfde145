"""The bodies of requests and responses, field by field, with units; nothing else is accepted in a request."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from privacygames.studio import Body, LabelBody

PERSON = "The person, as the fleet names them."
Coordinate = Annotated[float, Field(allow_inf_nan=False)]
PointBody = Annotated[list[Coordinate], Field(min_length=1, max_length=2)]
"""The coordinates of a point as the fleet's region has them: (x, y) in its unit, (longitude, latitude) in degrees, or
one number on an interval."""

OutputBody = str | int | float | list[str] | list[float]


class SecretBody(Body):
    """The true value: a cell or label, or a point. It is not stored and not logged."""

    secret: LabelBody | None = Field(None, description="The true cell or label, where the fleet's secrets are such.")
    point: PointBody | None = Field(
        None,
        description="The true point, where the fleet's secrets are points: longitude and latitude in degrees, x and y "
        "in the region's unit, or one number on an interval. A point outside is moved to the nearest one inside.",
    )


class SampleBody(SecretBody):
    """The true value, and how many outputs to draw for it."""

    count: int = Field(1, ge=1, le=1000, description="How many outputs are drawn.")


class WeightBody(Body):
    """How often a person is at a cell or label."""

    secret: LabelBody = Field(description="The cell or label.")
    weight: float = Field(ge=0, allow_inf_nan=False, description="Its weight: a number of visits, or a probability.")


class PointWeightBody(Body):
    """How often a person is at a point."""

    point: PointBody = Field(description="The point, as in a release.")
    weight: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="Its weight: a number of visits, or a probability."
    )


class PersonBody(Body):
    """A person's prior: the secrets or the points where they are, and how often. The weights need not sum to one."""

    weights: list[WeightBody] = Field([], max_length=100_000, description="For cells or labels; others have weight 0.")
    points: list[PointWeightBody] = Field([], max_length=100_000, description="For points.")


class BudgetView(BaseModel):
    """One budget of a person."""

    name: str = Field(description="The budget's name.")
    limit: str | None = Field(description="The largest charge, in all or in a window, as a decimal; null: no limit.")
    window_seconds: float | None = Field(description="The length of the sliding window, in seconds; null: all time.")
    spent: str = Field(description="The charges so far, in all, as a decimal.")
    left: str | None = Field(description="What is left now, in the window or in all, as a decimal; null: no limit.")
    counted: str = Field(description="What charges count: epsilon per unit of distance, or a Rényi divergence.")
    releases_left: int | None = Field(
        description="About how many more releases there is room for, if they cost as much as the last one; null: no "
        "limit, or not known."
    )


class ReleaseView(BaseModel):
    """A release: its output, and what it was charged."""

    output: OutputBody = Field(description="The released cell, label or point.")
    number: int = Field(description="Its number among the person's releases, from 1.")
    time: float | None = Field(description="When, in unix seconds; null where releases are counted.")
    epsilon: float = Field(description="Epsilon charged for it, per unit of distance.")
    counted: str = Field(description="The unit that epsilon is counted in, such as per km.")
    spent: float = Field(description="Epsilon charged to the person so far, including this release.")
    left: float | None = Field(description="The least that is left of the budgets in epsilon; null: no limit.")
    source: Literal["drawn", "kept", "memoised", "away", "repeated", "belief"] = Field(
        description="Where the output is from: drawn now, memoised, or repeated because the budget is spent."
    )
    repeated_key: bool = Field(description="Whether an earlier request with the same Idempotency-Key made it.")


class StoredReleaseView(BaseModel):
    """A release as the store holds it."""

    output: str = Field(description="The released cell, label or point, as a text.")
    number: int = Field(description="Its number among the person's releases, from 1.")
    time: float | None = Field(description="When, in unix seconds; null where releases are counted.")
    epsilon: str = Field(description="Epsilon charged for it, per unit of distance, as a decimal.")
    spent: str = Field(description="Epsilon charged to the person up to and including it, as a decimal.")


class SamplesView(BaseModel):
    """Outputs that were charged to nobody."""

    outputs: list[OutputBody] = Field(description="Independent outputs for the secret.")


class BalanceView(BaseModel):
    """What was charged to a person, and what is left."""

    releases: int = Field(description="The number of releases so far.")
    budgets: list[BudgetView] = Field(description="The budgets; none before the first release.")


class PersonView(BaseModel):
    """A person whose mechanism is designed and verified."""

    epsilon: float | None = Field(description="Epsilon of one release, per unit of distance; null: none is guaranteed.")
    counted: str = Field(description="The unit that epsilon is counted in, such as per km.")
    added: bool = Field(description="Whether the person is new in the fleet; otherwise their prior was replaced.")


class HealthView(BaseModel):
    """That the process answers, or that it can release."""

    status: Literal["ok"] = Field(description="Always ok; trouble is an error.")
