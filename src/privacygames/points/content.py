"""The content of a file of a mechanism for points: encoding as a header and arrays, and decoding with validation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray, freeze, freeze_floats
from privacygames.beliefs import PointPrior
from privacygames.certificates import AdversaryDuals, DualSolution, Provenance, RatioDuals
from privacygames.errors import InvalidFile
from privacygames.mechanism import POINTS_KIND, Arrays, Disclosure, Header, well_formed
from privacygames.points.mesh import Mesh
from privacygames.points.problem import GIVEN, PointProblem
from privacygames.points.relaxation import RelaxedPart
from privacygames.problem import MAX_ADVERSARIES, Adversary, Bounds, DistortionGuarantee
from privacygames.spaces import LabelBudget, Region, decode_region, decode_space, encode_region, encode_space

BOUND_NAMES = ("epsilon", "distortion", "cost_at_most", "worst_case", "worst_cost_at_most")


@dataclass(frozen=True)
class PointContent:
    """The content of a file: the problem with its mesh, what is guaranteed, the weights and the proof of the bound."""

    problem: PointProblem
    mesh: Mesh
    bounds: Bounds
    weights: IntArray
    bits: int
    relaxation: tuple[RelaxedPart, ...]
    provenance: Provenance


def encode_mesh(mesh: Mesh, arrays: Arrays) -> Header:
    """A mesh as a table; its lines, and its cells where some are halved, are added to the arrays.

    >>> arrays = {}
    >>> mesh = pg.points.Mesh(pg.Interval(0.0, 4.0), 2)
    >>> table = pg.points.encode_mesh(mesh, arrays)
    >>> sorted(table), arrays["lines_0"].tolist(), pg.points.decode_mesh(table, arrays) == mesh
    (['degree', 'region'], [0.0, 2.0, 4.0], True)
    """
    for number, axis in enumerate(mesh.lines):
        arrays[f"lines_{number}"] = axis
    if mesh.tree.depth:
        arrays["cells"] = mesh.tree.cells.astype(np.int32)
    return {"region": encode_region(mesh.region), "degree": mesh.degree}


def decode_mesh(table: Any, arrays: Arrays) -> Mesh:
    """The mesh of a table, as :func:`encode_mesh` writes it; whatever else a table holds, an error is raised.

    >>> arrays = {"lines_0": np.array([0.0, 1.0, 4.0])}
    >>> region = {"kind": "interval", "low": 0.0, "high": 4.0, "unit": ""}
    >>> pg.points.decode_mesh({"region": region, "degree": 2}, arrays)
    Mesh(2 cells, degree 2, 5 control points)
    """
    region = decode_region(table["region"])
    lines = [_floats(arrays, f"lines_{number}", 1) for number in range(region.dimension)]
    cells = None
    if "cells" in arrays:
        cells = arrays["cells"]
        if cells.dtype != np.int32:
            raise InvalidFile("array 'cells' has the wrong type")
    mesh = Mesh.from_lines(region, *lines, degree=table["degree"], cells=cells)
    if cells is not None and not (mesh.tree.depth and np.array_equal(mesh.tree.cells, cells)):
        raise InvalidFile("the cells of the mesh are not in order, or none is halved")
    if any(not np.array_equal(axis, given) for axis, given in zip(mesh.lines, lines, strict=True)):
        raise InvalidFile("the lines of the mesh must begin and end at the region's edges, in ascending order")
    return mesh


def encode_content(content: PointContent, *, dual_solution: bool = True) -> tuple[Header, Arrays]:
    """The header and arrays of a file; without ``dual_solution`` it is smaller and proves no bound on the optimum."""
    problem, bounds = content.problem, content.bounds
    arrays: Arrays = {"weights": content.weights, "xy": problem.prior.xy, "prior": problem.prior.probabilities}
    if not problem.cost.is_convex:
        arrays["cost"] = problem.costs
    values = bounds.plain_values()
    header: Header = {
        "kind": POINTS_KIND,
        "disclosure": Disclosure.PRIOR.value,
        "mesh": encode_mesh(content.mesh, arrays),
        "observables": encode_space(problem.observables),
        "cost": problem.cost.name,
        "distance": problem.distance,
        "promises": {name: values[name] for name in BOUND_NAMES},
        "bits": content.bits,
        "provenance": asdict(content.provenance),
    }
    if bounds.named_adversaries:
        header["promises"]["against"] = [
            _encode_guarantee(guarantee, number, arrays) for number, guarantee in enumerate(bounds.distortion)
        ]
    if dual_solution and content.relaxation:
        header["relaxation"] = [
            _encode_part(part, f"part{number}_", arrays) for number, part in enumerate(content.relaxation)
        ]
    return header, arrays


def decode_content(header: Header, arrays: Arrays) -> PointContent:
    """Decode the header and arrays of a file.

    Raises:
        InvalidFile: they are invalid or inconsistent; no other error is raised for any content.
    """
    with well_formed("the content of the file"):
        return _decode_content(header, arrays)


def _decode_content(header: Header, arrays: Arrays) -> PointContent:
    weights = arrays["weights"]
    if weights.dtype != np.int64 or weights.ndim != 2:
        raise InvalidFile("array 'weights' has the wrong type or shape")
    mesh = decode_mesh(header["mesh"], arrays)
    allowance = LabelBudget()
    observables = decode_space(header["observables"], size=weights.shape[1], allowance=allowance)
    prior = _decode_prior(mesh.region, _floats(arrays, "xy", 2), _floats(arrays, "prior", 1))
    name = header["cost"]
    cost: Any = name
    if name == GIVEN:
        table = freeze_floats(_floats(arrays, "cost", 2))
        cost = lambda points, outputs: table  # noqa: E731, ARG005 - of the prior's points only
    problem = PointProblem(prior, observables, cost=cost, distance=header["distance"], mesh=mesh)
    bounds = _decode_bounds(header["promises"], arrays, mesh.region, allowance)
    parts = tuple(
        _decode_part(table, f"part{number}_", arrays, problem)
        for number, table in enumerate(_short_list(header.get("relaxation", [])))
    )
    origin = header["provenance"]
    provenance = Provenance(str(origin["solver"])[:200], str(origin["version"])[:200], float(origin["repair_cost"]))
    if type(header["bits"]) is not int:
        raise InvalidFile("a number in the header is not whole")
    return PointContent(problem, mesh, bounds, freeze(weights), header["bits"], parts, provenance)


def _decode_prior(region: Region, xy: FloatArray, probabilities: FloatArray) -> PointPrior:
    if xy.shape != (len(probabilities), region.dimension):
        raise InvalidFile("the points of a prior do not fit its probabilities")
    prior = PointPrior.from_projected(region, xy, probabilities)
    if not (np.array_equal(prior.xy, xy) and np.array_equal(prior.probabilities, probabilities)):
        raise InvalidFile("a prior must have distinct points of the region in order, and sum to one")
    return prior


def _encode_guarantee(guarantee: DistortionGuarantee, number: int, arrays: Arrays) -> Header:
    adversary = guarantee.adversary
    if isinstance(adversary.prior, PointPrior):
        arrays[f"xy_{number}"], arrays[f"prior_{number}"] = adversary.prior.xy, adversary.prior.probabilities
    if adversary.errors is not None:
        arrays[f"errors_{number}"] = adversary.errors
    guesses = None if adversary.guesses is None else encode_space(adversary.guesses)
    return {"name": adversary.name, "distortion": guarantee.distortion, "guesses": guesses}


def _decode_bounds(table: Any, arrays: Arrays, region: Region, allowance: LabelBudget) -> Bounds:
    values = {name: table[name] for name in BOUND_NAMES}
    against = table.get("against", [])
    if not isinstance(against, list) or len(against) > MAX_ADVERSARIES:
        raise InvalidFile(f"the guarantees against adversaries must be a list, of at most {MAX_ADVERSARIES}")
    guarantees = []
    for number, each in enumerate(against):
        prior = errors = guesses = None
        if f"xy_{number}" in arrays:
            prior = _decode_prior(region, _floats(arrays, f"xy_{number}", 2), _floats(arrays, f"prior_{number}", 1))
        if f"errors_{number}" in arrays:
            errors = _floats(arrays, f"errors_{number}", 2)
            if each["guesses"] is not None:
                guesses = decode_space(each["guesses"], size=len(errors), allowance=allowance)
        adversary = Adversary(each["name"], prior=prior, errors=errors, guesses=guesses)
        guarantees.append(DistortionGuarantee(adversary, each["distortion"]))
    if guarantees:
        values["distortion"] = tuple(guarantees)
    return Bounds(**values)


def _encode_part(part: RelaxedPart, prefix: str, arrays: Arrays) -> Header:
    duals = part.dual_solution
    arrays[f"{prefix}members"] = part.members.astype(np.int32)
    arrays[f"{prefix}lattice"] = part.lattice
    arrays[f"{prefix}rows"] = duals.output_rows.astype(np.int32)
    for name in ("observable", "secret", "other"):
        arrays[f"{prefix}{name}"] = getattr(duals.ratios, name).astype(np.int32)
    arrays[f"{prefix}value"] = duals.ratios.value
    for name in ("secret_weights", "worst_cost_duals"):
        values = getattr(duals, name)
        if values is not None:
            arrays[f"{prefix}{name}"] = values
    for number, adversary in enumerate(duals.adversaries):
        arrays[f"{prefix}attack{number}"] = adversary.attack
    return {"cost": duals.cost_dual, "adversaries": [adversary.dual for adversary in duals.adversaries]}


def _decode_part(table: Any, prefix: str, arrays: Arrays, problem: PointProblem) -> RelaxedPart:
    members = _indices(arrays, f"{prefix}members", len(problem.prior)).astype(np.int64)
    if not len(members) or (np.diff(members) <= 0).any():
        raise InvalidFile("the points of a part of the relaxation must be in ascending order")
    outputs = len(problem.outputs)
    rows = _indices(arrays, f"{prefix}rows", outputs).astype(np.int64)
    size = 2**31 - 1
    names = ("observable", "secret", "other")
    observable, secret, other = (_indices(arrays, f"{prefix}{name}", size) for name in names)
    ratios = RatioDuals(observable, secret, other, _floats(arrays, f"{prefix}value", 1))
    optional = {
        name: _floats(arrays, f"{prefix}{name}", 1) if f"{prefix}{name}" in arrays else None
        for name in ("secret_weights", "worst_cost_duals")
    }
    adversaries = tuple(
        AdversaryDuals(float(dual), _floats(arrays, f"{prefix}attack{number}", 2))
        for number, dual in enumerate(_short_list(table["adversaries"]))
    )
    duals = DualSolution(
        ratios=ratios, output_rows=rows, adversaries=adversaries, cost_dual=float(table["cost"]), **optional
    )
    lattice = freeze_floats(_floats(arrays, f"{prefix}lattice", 2))
    lengths = problem.region.lengths
    if lattice.shape[1] != len(lengths) or not ((lattice >= 0) & (lattice <= lengths)).all() or len(lattice) > 10_000:
        raise InvalidFile("the lattice of the relaxation must lie in the region")
    return RelaxedPart(members, lattice, duals)


def _short_list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > 10_000:
        raise InvalidFile("a list in the header is too long")
    return value


def _floats(arrays: Arrays, name: str, axes: int) -> FloatArray:
    array = arrays[name]
    if array.dtype != np.float64 or array.ndim != axes:
        raise InvalidFile(f"array {name!r} has the wrong type or shape")
    return freeze_floats(array)


def _indices(arrays: Arrays, name: str, limit: int) -> Any:
    array = arrays[name]
    if array.dtype != np.int32 or array.ndim != 1 or (len(array) and not 0 <= array.min() <= array.max() < limit):
        raise InvalidFile(f"array {name!r} has the wrong type, or points outside")
    return array
