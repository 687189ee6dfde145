"""Measures that are rational numbers: computed in fractions, returned as floats unless asked for exactly."""

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, Protocol, cast

P = ParamSpec("P")


class RationalMeasure(Protocol[P]):
    """A function whose value is rational: called, it returns the nearest float; ``exact`` returns the fraction."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """The float nearest to the value."""
        ...

    def exact(self, *args: P.args, **kwargs: P.kwargs) -> Fraction:
        """The value itself, with the same arguments."""
        ...


def rational(function: Callable[P, Fraction]) -> RationalMeasure[P]:
    """A measure from a function that computes its exact value."""

    @wraps(function)
    def measure(*args: P.args, **kwargs: P.kwargs) -> float:
        return float(function(*args, **kwargs))

    presented: Any = measure
    presented.exact = function
    presented.__signature__ = signature(function).replace(return_annotation=float)  # what the reference shows
    return cast("RationalMeasure[P]", measure)
