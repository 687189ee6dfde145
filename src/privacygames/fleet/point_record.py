"""One person's mechanism for points as a record of a fleet: encoded, and decoded with every guarantee verified.

A record holds the mesh (unless everybody has the same one), the outputs that the mechanism uses, their weights at the
control points (packed where 17 bits are enough) and the weighted points of the prior; the rest is shared by all.
"""

from dataclasses import asdict
from typing import Any

import numpy as np

from privacygames.arrays import freeze, freeze_floats
from privacygames.beliefs import PointPrior
from privacygames.certificates import BITS
from privacygames.errors import InvalidFile
from privacygames.fleet.person_record import (
    decode_weights,
    encode_weights,
    header_of,
    provenance_of,
    record_array,
)
from privacygames.fleet.shared_problem import SharedPoints
from privacygames.mechanism import Arrays, Header, decode_record, encode_record, well_formed
from privacygames.points import Mesh, PointMechanism, certify_points, decode_mesh, encode_mesh
from privacygames.spaces import encode_region


def encode_point_person(name: str, mechanism: PointMechanism, details: dict[str, Any], shared: SharedPoints) -> bytes:
    """The record of a person's mechanism for points.

    Args:
        name: the person.
        mechanism: their certified mechanism.
        details: plain values for the header: where the prior is from.
        shared: what all people share.
    """
    prior = mechanism.problem.prior
    arrays: Arrays = {"xy": prior.xy, "prior": prior.probabilities, **encode_weights(mechanism.weights)}
    header: Header = {"name": name, "provenance": asdict(mechanism.certificate.provenance), **details}
    if mechanism.mesh != shared.problem.mesh:
        table = encode_mesh(mechanism.mesh, arrays)
        header["mesh"] = {key: value for key, value in table.items() if key != "region"}  # everybody has the same
        if "cells" in arrays:
            arrays["cells"] = arrays["cells"].astype(np.uint32)
    return encode_record(header, arrays)


def certified_point_mechanism(record: bytes, shared: SharedPoints) -> PointMechanism:
    """The mechanism in a record, after checking everything that the fleet guarantees.

    Raises:
        InvalidFile: the record is damaged, or of another fleet.
        GuaranteeViolated: its mechanism does not keep the guarantees.
    """
    header, arrays = header_of(record), decode_record(record)[1]
    with well_formed("a record of the fleet"):
        mesh = _mesh(header, arrays, shared)
        weights = decode_weights(arrays, mesh.controls, len(shared.problem.outputs))
        problem = shared.problem.with_prior(_prior(arrays, shared))
        return certify_points(problem, shared.bounds, mesh, freeze(weights), BITS, provenance=provenance_of(record))


def point_prior_of(record: bytes, shared: SharedPoints) -> PointPrior:
    """The prior that a record's mechanism was designed for."""
    with well_formed("a record of the fleet"):
        return _prior(decode_record(record)[1], shared)


def _mesh(header: Header, arrays: Arrays, shared: SharedPoints) -> Mesh:
    """The mesh of a record: its own, or everybody's."""
    if "mesh" not in header:
        if not isinstance(shared.problem.mesh, Mesh):
            raise InvalidFile("a record of the fleet has no mesh, and nor has the fleet")
        return shared.problem.mesh
    region = encode_region(shared.problem.region)
    own: Arrays = {name: array for name, array in arrays.items() if name.startswith("lines_")}
    if "cells" in arrays:
        cells = arrays["cells"]
        if cells.dtype != np.dtype("<u4") or (cells >= 2**31).any():
            raise InvalidFile("a record of the fleet does not fit its shared part")
        own["cells"] = cells.astype(np.int32)
    return decode_mesh({"region": region, "degree": header["mesh"]["degree"]}, own)


def _prior(arrays: Arrays, shared: SharedPoints) -> PointPrior:
    probabilities = record_array(arrays, "prior", "<f8", None)
    xy = record_array(arrays, "xy", "<f8", (len(probabilities), shared.problem.region.dimension))
    prior = PointPrior.from_projected(shared.problem.region, freeze_floats(xy), freeze_floats(probabilities))
    if not (np.array_equal(prior.xy, xy) and np.array_equal(prior.probabilities, probabilities)):
        raise InvalidFile("a record of the fleet is damaged: its prior is not one of distinct points in order")
    return prior
