"""Mechanisms: exact weights, exact sampling, files, and ``certify``, the one way to make one."""

from privacygames.mechanism.certification import Realised
from privacygames.mechanism.mechanism import Mechanism, certify, load, load_bytes, require_fit, require_secrets, verify

__all__ = ["Mechanism", "Realised", "certify", "load", "load_bytes", "require_fit", "require_secrets", "verify"]
