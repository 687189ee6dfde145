"""Amounts of ε: decimal numbers, added exactly, never below what a mechanism was certified with."""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal, Inexact, InvalidOperation
from math import nextafter

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE
from privacygames.errors import Field, InvalidFile, InvalidProblem
from privacygames.validation import is_number

EXACT = Context(prec=400, traps=[Inexact, InvalidOperation])
"""Enough digits for any sum of amounts; if it ever were not, an error and not a rounded sum."""

DIGITS = Context(prec=15, rounding=ROUND_CEILING)
NOTHING = Decimal(0)
LONGEST = 200
PLAIN = re.compile(r"[0-9]+(\.[0-9]+)?(E[+-]?[0-9]{1,3})?", re.ASCII)


def amount(value: object, name: str) -> Decimal:
    """A positive number as people write it: 0.1 is a tenth."""
    if is_number(value):
        plain = float(value)  # type: ignore[arg-type]
        if SMALLEST_POSITIVE <= plain <= LARGEST_FINITE:
            return Decimal(repr(plain))
    raise InvalidProblem(
        Field(name), f" is {repr(value)[:40]}; it must be a positive number, no larger than {LARGEST_FINITE:g}"
    )


def at_most(asked: Decimal) -> float:
    """The largest float that is not above an amount: what to certify where that much may be charged."""
    nearest = float(asked)
    return nearest if Decimal(nearest) <= asked else nextafter(nearest, 0.0)


def at_least(epsilon: float) -> Decimal:
    """A short decimal number that is not below a float: what to charge for it."""
    written = Decimal(repr(epsilon))
    return written if written >= Decimal(epsilon) else DIGITS.create_decimal(Decimal(epsilon))


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum."""
    found = NOTHING
    for each in amounts:
        found = EXACT.add(found, each)
    return found


def minus(first: Decimal, second: Decimal) -> Decimal:
    """The exact difference."""
    return EXACT.subtract(first, second)


def read_amount(text: object) -> Decimal:
    """An amount as a ledger holds it."""
    if isinstance(text, str) and len(text) <= LONGEST and PLAIN.fullmatch(text):
        return Decimal(text)
    raise InvalidFile("a ledger holds an amount that is no number, 0 or more: it was altered or is damaged")
