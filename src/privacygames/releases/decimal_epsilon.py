"""Amounts of ε as decimal numbers: added exactly, and never below what a mechanism was certified with."""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal, Inexact, InvalidOperation
from math import nextafter

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE
from privacygames.errors import Field, InvalidFile, InvalidProblem
from privacygames.validation import is_number

EXACT = Context(prec=400, traps=[Inexact, InvalidOperation])
"""Digits that suffice for any sum of amounts; a sum that needed more would raise an error rather than be rounded."""

ROUND_UP = Context(prec=15, rounding=ROUND_CEILING)
"""A charge whose shortest decimal is below the float is rounded up to 15 digits, a float's precision."""

NOTHING = Decimal(0)
MAX_DIGITS = 200
"""Characters of an amount in a ledger: more than any sum of amounts needs."""

AMOUNT = re.compile(r"[0-9]+(\.[0-9]+)?(E[+-]?[0-9]{1,3})?", re.ASCII)


def exact_amount(value: object, name: str) -> Decimal:
    """A positive number as its shortest decimal: the float 0.1 is one tenth."""
    if is_number(value):
        plain = float(value)  # type: ignore[arg-type]
        if SMALLEST_POSITIVE <= plain <= LARGEST_FINITE:
            return Decimal(repr(plain))
    raise InvalidProblem(
        Field(name), f" is {repr(value)[:40]}; it must be a positive number, no larger than {LARGEST_FINITE:g}"
    )


def float_rounded_down(epsilon: Decimal) -> float:
    """The largest float that is not above an amount: the ε to certify where that much may be charged."""
    nearest = float(epsilon)
    return nearest if Decimal(nearest) <= epsilon else nextafter(nearest, 0.0)


def decimal_rounded_up(epsilon: float) -> Decimal:
    """A short decimal that is not below a float: the charge for a mechanism certified with it."""
    shortest = Decimal(repr(epsilon))
    return shortest if shortest >= Decimal(epsilon) else ROUND_UP.create_decimal(Decimal(epsilon))


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum."""
    exact = NOTHING
    for each in amounts:
        exact = EXACT.add(exact, each)
    return exact


def minus(first: Decimal, second: Decimal) -> Decimal:
    """The exact difference."""
    return EXACT.subtract(first, second)


def read_amount(text: object) -> Decimal:
    """An amount from the text that a ledger holds."""
    if isinstance(text, str) and len(text) <= MAX_DIGITS and AMOUNT.fullmatch(text):
        return Decimal(text)
    raise InvalidFile("a ledger holds an amount that is not a number, 0 or more: it was altered or is damaged")
