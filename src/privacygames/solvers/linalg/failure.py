"""What goes wrong with blocks."""


class FactorisationFailed(Exception):
    """A block is not positive definite in floating point: the iterate is as accurate as it gets."""
