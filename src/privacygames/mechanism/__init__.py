"""Mechanisms you can trust: exact weights, exact sampling, certificates, files, and a verifier that stands alone."""
