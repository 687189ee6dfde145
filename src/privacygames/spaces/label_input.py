"""Labels as users provide them: lists, arrays, columns of tables, counts by label. Ambiguous input is refused."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray, as_floats
from privacygames.errors import InvalidProblem, UnknownLabel
from privacygames.spaces.space import Space

COUNT_NAMES = ("count", "proportion")
"""What pandas calls the values of ``value_counts()``."""


def list_labels(given: Any) -> list[Any] | None:
    """Several labels as a list; None where the value is one label.

    Lists, tuples, arrays, columns (pandas, Polars, Arrow) and other iterables are several labels. Texts, numbers and
    sets are one label, and so is an array without axes.

    Raises:
        InvalidProblem: a table, a mapping or an array with more axes, which are no lists of labels.
    """
    if isinstance(given, str | bytes | int | float | set | frozenset | np.generic):
        return None
    if isinstance(given, Mapping):
        raise InvalidProblem(
            "labels are wanted, one after the other; a mapping was given: list its keys, or its values"
        )
    if hasattr(given, "columns"):
        raise InvalidProblem("labels are wanted, one after the other; a table was given: pass one of its columns")
    if isinstance(given, np.ndarray):
        if given.ndim > 1:
            raise InvalidProblem(f"labels are wanted, one after the other; an array of shape {given.shape} was given")
        return given.tolist() if given.ndim else None
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(given, name):
            return list(getattr(given, name)())
    return list(given) if isinstance(given, Iterable) else None


def count_visits(space: Space, given: Any) -> tuple[IntArray, FloatArray]:
    """Visits as positions in a space and the count of each, from labels one by one or from counts by label.

    A value with an index and values (a dict, a Counter, the result of pandas' ``value_counts()``) means label → count.
    A column of labels with a default index is one label per visit. Input that could mean both is refused.
    """
    if isinstance(given, Mapping):
        return _by_label(space, list(given), list(given.values()))
    if _has_index(given):
        return _counted_series(space, given)
    labels = list_labels(given)
    if labels is None:
        raise InvalidProblem("visits must be a list of labels, or counts by label; one single value was given")
    return space.indices(labels), np.ones(len(labels))


def _has_index(given: Any) -> bool:
    """Whether it is a column with an index, as in pandas; lists and texts have a *method* of that name."""
    index = getattr(given, "index", None)
    return index is not None and not callable(index) and hasattr(given, "items") and not hasattr(given, "columns")


def _counted_series(space: Space, given: Any) -> tuple[IntArray, FloatArray]:
    keys, values = given.index.tolist(), given.tolist()
    if getattr(given, "name", None) in COUNT_NAMES or not _all_labels(space, values):
        return _by_label(space, keys, values)
    plain_index = keys == list(range(len(keys))) and not _all_labels(space, keys)
    if _all_numbers(values) and not plain_index:  # the values may be labels, or counts of what the index says
        raise InvalidProblem(
            "this column may mean counts by label, or one label a visit: pass column.to_dict() for the first, or "
            "column.tolist() for the second"
        )
    return space.indices(values), np.ones(len(values))


def _by_label(space: Space, labels: list[Any], counts: list[Any]) -> tuple[IntArray, FloatArray]:
    return space.indices(labels), as_floats(counts, "the counts").reshape(len(labels))


def _all_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int | float | np.integer | np.floating) for value in values)


def _all_labels(space: Space, values: list[Any]) -> bool:
    try:
        space.indices(values)
    except UnknownLabel:
        return False
    return True
