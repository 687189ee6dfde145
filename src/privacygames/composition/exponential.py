"""Rational bounds on exponentials."""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

DIGITS = 40
"""Digits of an exponential; ``decimal`` rounds it correctly to them."""


def exponential_below(exponent: float, *, above: bool = False) -> Fraction:
    """A rational number just below e^exponent, or just above it."""
    context = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999, flags=[], traps=[])
    nearest = Fraction(context.exp(Decimal(exponent)))
    margin = Fraction(1, 10 ** (DIGITS - 1))
    return nearest * (1 + margin if above else 1 - margin)
