"""Mechanisms: exact weights, exact sampling, files, and ``certify``, the one way to make one."""

from privacygames.mechanism.certification import Realised
from privacygames.mechanism.container import content as container_content
from privacygames.mechanism.container import parse as parse_container
from privacygames.mechanism.container import read as read_container
from privacygames.mechanism.container import write as write_container
from privacygames.mechanism.contents import Contents
from privacygames.mechanism.disclosure import Disclosure
from privacygames.mechanism.fields import well_formed
from privacygames.mechanism.mechanism import Mechanism, certify, load, load_bytes, require_fit, require_secrets, verify
from privacygames.mechanism.public import PublicCertificate, PublicMechanism, is_public, load_public
from privacygames.mechanism.sampling import Sampler

__all__ = [
    "Contents",
    "Disclosure",
    "Mechanism",
    "PublicCertificate",
    "PublicMechanism",
    "Realised",
    "Sampler",
    "certify",
    "container_content",
    "is_public",
    "load",
    "load_bytes",
    "load_public",
    "parse_container",
    "read_container",
    "require_fit",
    "require_secrets",
    "verify",
    "well_formed",
    "write_container",
]
