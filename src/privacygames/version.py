"""The version of this release."""

VERSION = "0.2.0"
"""Written here alone: the package's build reads it, and so does every certificate, without asking what is installed."""
