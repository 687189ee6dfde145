"""Mechanisms: exact weights, exact sampling, files, and ``certify``, the one way to make one."""

from privacygames.mechanism.certification import Realised
from privacygames.mechanism.container import read as read_container
from privacygames.mechanism.container import write as write_container
from privacygames.mechanism.contents import Contents
from privacygames.mechanism.mechanism import Mechanism, certify, load, load_bytes, require_fit, require_secrets, verify
from privacygames.mechanism.public import PublicCertificate, PublicMechanism, is_public, load_public
from privacygames.mechanism.sampling import Sampler

__all__ = [
    "Contents",
    "Mechanism",
    "PublicCertificate",
    "PublicMechanism",
    "Realised",
    "Sampler",
    "certify",
    "is_public",
    "load",
    "load_bytes",
    "load_public",
    "read_container",
    "require_fit",
    "require_secrets",
    "verify",
    "write_container",
]
