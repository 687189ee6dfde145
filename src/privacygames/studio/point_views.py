"""JSON views of problems, mechanisms and beliefs about points, for the page and other programs."""

from math import exp, hypot

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.immutable import to_json_value
from privacygames.points import Mesh, PointMechanism, PointProblem
from privacygames.presentation import limitations, output_json, point_json, point_text
from privacygames.spaces import Area, Region, encode_region
from privacygames.studio.dangers import point_dangers, with_metres
from privacygames.studio.exports import EXPORTS, LARGEST_EXPONENT
from privacygames.studio.requests import PlanePointBody, PositionBody, SecretBody
from privacygames.studio.starts import epsilon_gone, point_start_view
from privacygames.studio.stored_mechanism import PROBLEM_ADVERSARY_NAME, StoredPointMechanism
from privacygames.studio.views import (
    ODDS_UNMOVED,
    View,
    findings_view,
    json_label,
    label_from,
    rounded,
    rows_view,
)

MAP_DECIMALS = 4
"""Decimal places of kilometres on a map: a tenth of a metre."""

CLOSE_POINTS = 0.1
"""Distance in kilometres of two points that count as close where ε is explained."""

LARGEST_MESH = 400
"""Control points of the mesh of the largest ε that the page offers: a design takes ten seconds."""


def point_problem_view(name: str, problem: PointProblem, bounds: View, left_out: int = 0) -> View:
    """A problem about the points of an area: a map, visited places, outputs, and the useful ranges of its bounds."""
    area, prior = problem.region, problem.prior
    width, height = area.lengths
    epsilon = _point_epsilon_range(problem)
    return {
        "id": name,
        "kind": "points",
        "shape": [len(prior), len(problem.observables)],
        "map": {"width": width, "height": height, "box": getattr(area, "box", None)},
        "labels": [point_text(area, point) for point in prior.points.tolist()],
        "places": np.round(prior.xy, MAP_DECIMALS).tolist(),
        "answers": [json_label(label) for label in problem.observables.labels],
        "outputs": np.round(problem.outputs, MAP_DECIMALS).tolist(),
        "same_answers": False,
        "grid": None,
        "prior": rounded(prior.probabilities),
        "most_distortion": problem.max_distortion(),
        "blind_cost": float((prior.probabilities @ problem.costs).min()),
        "units": {
            "cost": area.unit,
            "distance": area.unit,
            "epsilon": f"per {area.unit} between any two points",
            "distinguishability": area.unit,
        },
        "measures": {"cost": problem.cost.name, "distance": problem.distance},
        "epsilon": epsilon | {"gone": epsilon_gone(epsilon)},
        **point_start_view(problem, epsilon),
        "asked": bounds,
        "adversaries": [],
        "has_day": False,
        "left_out": left_out,
    }


def point_mechanism_view(name: str, stored: StoredPointMechanism) -> View:
    """A mechanism for points: its guarantees, its measurements, the region of its secrets, and its outputs."""
    mechanism, report = stored.mechanism, stored.report
    certificate = mechanism.certificate
    view = {
        "id": name,
        "kind": "points",
        "label": stored.label,
        "seconds": stored.seconds,
        "certificate": certificate.to_dict(),
        "certificate_rows": rows_view(certificate.rows()),
        "secrets": encode_region(mechanism.secrets),
        "answers": [output_json(mechanism, output) for output in range(len(mechanism.observables))],
        "report": report.to_dict(),
        "report_rows": rows_view(report.rows()),
        "findings": point_findings(stored),
        "gap": certificate.gap,
        "cost": report.cost,
        "worst_cost": report.worst_cost,
        "distortion": report.attack_error,
        "epsilon": report.epsilon,
        "any_pair": report.any_pair if report.epsilon is not None else None,
        "bound": certificate.bound,
        "against": [],
        "reproducible": stored.tables is not None,
        "exports": {key: export.to_dict() for key, export in EXPORTS.items()},
    }
    if isinstance(mechanism.secrets, Area) and stored.tables is None:
        view["problem"] = point_problem_view("", mechanism.problem, {})
    return dict(to_json_value(view))  # type: ignore[call-overload,no-any-return]


def point_findings(stored: StoredPointMechanism) -> list[View]:
    """The findings about a mechanism for points: measurements, then limitations."""
    report, certificate, unit = stored.report, stored.mechanism.certificate, stored.mechanism.secrets.unit or "unit"
    cost, distance = report.cost_scale, report.distance_scale
    sentences = [
        f"An adversary's best guess, which may be any point, is off by {distance.amount(f'{report.attack_error:.3g}')} "
        f"on average. Without the output it would be off by {distance.amount(f'{report.distortion_from_prior:.3g}')}.",
        f"Outputs are off by {cost.amount(f'{report.cost:.3g}')} on average.",
    ]
    if report.epsilon is not None:
        factor = exp(min(report.epsilon, LARGEST_EXPONENT))
        sentences.append(
            f"No output shifts the odds between two points 1 {unit} apart by more than a factor of {factor:.3g}, and "
            "the less the closer they are. This holds between any two points, whatever the adversary knows."
        )
    if certificate.bound is not None and certificate.gap is not None and not certificate.bounds.maximises_distortion:
        sentences.append(
            f"No mechanism with these guarantees, of whatever form, costs less than "
            f"{cost.amount(f'{certificate.bound:.3g}')} (gap {certificate.gap:.1%})."
        )
    measurements = [{"kind": "points", "severity": "information", "text": with_metres(text)} for text in sentences]
    red, not_covered = findings_view(point_dangers(report)), findings_view(list(limitations(certificate.bounds)))
    return [*red, *measurements, *not_covered]


def outputs_at_view(stored: StoredPointMechanism, body: SecretBody) -> View:
    """The probability of each output at the point of a request."""
    return {"probabilities": rounded(stored.mechanism.probabilities([point_of(stored.mechanism, body)])[0])}


def point_beliefs_view(stored: StoredPointMechanism, observable: object) -> View:
    """The belief over the visited places after an output, and the best guess; None if the output is never given."""
    mechanism, attack = stored.mechanism, stored.attack
    output = mechanism.observables.index(label_from(mechanism.observables, observable, "observable"))
    prior = mechanism.problem.prior
    joint = prior.probabilities * mechanism.probabilities(prior.points)[:, output]
    possible = bool(joint.any())
    guess = None if attack.guesses is None else point_json(mechanism.secrets, attack.guesses[output].tolist())
    adversary = {
        "name": PROBLEM_ADVERSARY_NAME,
        "belief": rounded(joint / joint.sum()) if possible else None,
        "guess": guess if possible else None,
        "guesses_secret": True,
        "error": attack.error,
    }
    return {"attackers": [adversary], "possible": possible}


def drawn_at(mechanism: PointMechanism, point: tuple[float, ...], count: int) -> list[object]:
    """Random outputs for a point."""
    drawn = mechanism.draw(np.repeat([point], count, axis=0))
    return [output_json(mechanism, output) for output in drawn.tolist()]


def point_of(mechanism: PointMechanism, body: SecretBody) -> tuple[float, ...]:
    """The point of a request in the region's coordinates; the error about a wrong one does not show it."""
    point = _point(mechanism.secrets, body.at)
    if point is None or body.secret is not None:
        raise InvalidProblem(
            "the secrets of this mechanism are points: give at, with latitude and longitude for an area over degrees, "
            "x and y for one in kilometres, or a number for an interval; and no secret",
            field="at",
        )
    return point


def _point(region: Region, at: PositionBody | PlanePointBody | float | None) -> tuple[float, ...] | None:
    """The point of a request in the region's coordinates; None where it has another form than the region's."""
    if not isinstance(region, Area):
        return (float(at),) if isinstance(at, int | float) else None
    if region.box is None:
        return (at.x, at.y) if isinstance(at, PlanePointBody) else None
    if not isinstance(at, PositionBody):
        return None
    position = at.longitude, at.latitude
    if region.looks_swapped([position]):
        raise InvalidProblem(
            "the position lies outside the area, and inside with latitude and longitude swapped", field="at"
        )
    return position


def _point_epsilon_range(problem: PointProblem) -> View:
    """Range of ε: at the low end outputs hardly depend on the secret; at the high end a design gets slow."""
    xy, weights = problem.prior.xy, problem.prior.probabilities
    lengths = problem.region.lengths
    far = max(2 * float(np.linalg.norm(xy - weights @ xy, axis=1) @ weights), max(lengths) / 10)
    low = high = ODDS_UNMOVED / far
    while Mesh.for_epsilon(problem.region, 1.1 * high).controls <= LARGEST_MESH:
        high *= 1.1
    farthest = hypot(*lengths)
    return {"low": low, "high": high, "near": CLOSE_POINTS, "far": far, "farthest": farthest}
