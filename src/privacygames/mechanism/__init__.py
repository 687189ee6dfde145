"""Mechanisms: exact weights, exact sampling, files, and ``certify``, the one way to make one."""

from privacygames.mechanism.certification import Realised
from privacygames.mechanism.mechanism import Mechanism, certify, load, verify

__all__ = ["Mechanism", "Realised", "certify", "load", "verify"]
