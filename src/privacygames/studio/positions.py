"""The secret of a request: a label, or a position, which must be on the map."""

from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.points import PointMechanism
from privacygames.spaces import Grid, Label
from privacygames.studio.point_views import point_of
from privacygames.studio.requests import PlanePointBody, PositionBody, SecretBody
from privacygames.studio.views import label_from


def secret_of(mechanism: Mechanism, body: SecretBody) -> Label:
    """The label of a request, or the cell that its position lies in; no error shows either."""
    if body.at is None:
        if body.secret is None:
            raise InvalidProblem("give a secret, or where its cell is on the map", field="secret")
        return label_from(mechanism.secrets, body.secret, "secret")
    space = mechanism.secrets
    if body.secret is not None or not isinstance(space, Grid):
        raise InvalidProblem("give a secret: this mechanism's are labels, not positions", field="secret")
    if space.box is None:
        point = (body.at.x, body.at.y) if isinstance(body.at, PlanePointBody) else None
    else:
        point = (body.at.longitude, body.at.latitude) if isinstance(body.at, PositionBody) else None
    if point is None:
        wanted = "x and y in kilometres" if space.box is None else "latitude and longitude"
        raise InvalidProblem(f"a position on this map has {wanted}", field="at")
    cell = int(space.locate([point], outside="drop")[0])
    if cell < 0:
        raise _outside()
    return space.labels[cell]


def point_inside(mechanism: PointMechanism, body: SecretBody) -> tuple[float, ...]:
    """The point of a request in the region's coordinates, which must lie in the region; no error shows it."""
    point = point_of(mechanism, body)
    if not mechanism.secrets.contains([point] if len(point) > 1 else list(point)).all():
        raise _outside()
    return point


def _outside() -> InvalidProblem:
    return InvalidProblem("this position lies outside of the map", field="at")
