"""Mechanisms: exact weights, exact sampling, the protocol of what can be sampled, and files.

Every :class:`Mechanism` is made by :func:`certify`, which verifies it.
"""

from privacygames.mechanism.binary_container import (
    POINTS_KIND,
    POINTS_VERSION,
    Arrays,
    Header,
    decode_record,
    decode_record_header,
    encode_record,
    well_formed,
)
from privacygames.mechanism.binary_container import content as container_content
from privacygames.mechanism.binary_container import parse as parse_container
from privacygames.mechanism.binary_container import read as read_container
from privacygames.mechanism.binary_container import write as write_container
from privacygames.mechanism.certification import RealisedBounds
from privacygames.mechanism.disclosure import Disclosure
from privacygames.mechanism.mechanism import Mechanism, certify, require_fit, require_secrets
from privacygames.mechanism.mechanism_content import MechanismContent
from privacygames.mechanism.protocol import (
    EpsilonGuarantee,
    FiniteMechanism,
    RandomWords,
    RegionMechanism,
    RowSampler,
    Sampleable,
    is_region_mechanism,
    is_sampleable,
    require_finite_mechanism,
)
from privacygames.mechanism.public_mechanism import PublicCertificate, PublicMechanism
from privacygames.mechanism.sampling import Sampler

__all__ = [
    "POINTS_KIND",
    "POINTS_VERSION",
    "Arrays",
    "Disclosure",
    "EpsilonGuarantee",
    "FiniteMechanism",
    "Header",
    "Mechanism",
    "MechanismContent",
    "PublicCertificate",
    "PublicMechanism",
    "RandomWords",
    "RealisedBounds",
    "RegionMechanism",
    "RowSampler",
    "Sampleable",
    "Sampler",
    "certify",
    "container_content",
    "decode_record",
    "decode_record_header",
    "encode_record",
    "is_region_mechanism",
    "is_sampleable",
    "parse_container",
    "read_container",
    "require_finite_mechanism",
    "require_fit",
    "require_secrets",
    "well_formed",
    "write_container",
]
