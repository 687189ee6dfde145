"""Metrics of the user's own, in addition to those of a report."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from privacygames.errors import InvalidProblem

Function = TypeVar("Function", bound=Callable[..., Any])


def checked_metrics(metrics: Mapping[str, Function] | None, taken: set[str]) -> Mapping[str, Function]:
    """The metrics, if each is a function under a name that a report does not use already.

    Args:
        metrics: functions of a mechanism and a problem by name; None for no metrics.
        taken: the names that the report uses.
    """
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping) or not all(callable(metric) for metric in metrics.values()):
        raise InvalidProblem("metrics must be functions by name: a dict from names to functions (mechanism, problem)")
    used = taken & set(metrics)
    if used:
        raise InvalidProblem(f"metrics has the name {min(used)!r}, which a report uses already: choose another")
    return metrics
