"""Simpler cases than a given one: fewer secrets, outputs, adversaries and bounds; rounder numbers."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.case import Array, Case, ReducedAdversary


def smaller(case: Case) -> Iterator[Case]:
    """Simpler cases, the simplest first."""
    plain = replace(case, space=None, observables=None)
    if case.space is not None or case.observables is not None:
        yield plain
    n, m = case.shape
    if n > 1:
        yield from (_without_secret(plain, s) for s in range(n))
    if m > 1:
        yield from (replace(plain, cost=np.delete(case.cost, o, axis=0)) for o in range(m))
    for place in range(len(case.adversaries)):
        rest = case.adversaries[:place] + case.adversaries[place + 1 :]
        if rest:
            yield replace(plain, adversaries=rest)
    for name in case.bounds:
        rest_of_bounds = {other: value for other, value in case.bounds.items() if other != name}
        if rest_of_bounds or case.adversaries:
            yield replace(plain, bounds=rest_of_bounds)
    if case.solver != "auto":
        yield replace(plain, solver="auto")
    if case.tolerance != 1e-6:
        yield replace(plain, tolerance=1e-6)
    yield from _rounder(plain)


def _without_secret(case: Case, s: int) -> Case:
    prior = np.delete(case.prior, s)
    both = [np.delete(np.delete(each, s, axis=0), s, axis=1) for each in (case.distance, case.distinguishability)]
    adversaries = tuple(_guesser_without(each, s) for each in case.adversaries)
    return replace(
        case,
        prior=_normal(prior),
        cost=np.delete(case.cost, s, axis=1),
        distance=both[0],
        distinguishability=both[1],
        adversaries=adversaries,
    )


def _guesser_without(guesser: ReducedAdversary, s: int) -> ReducedAdversary:
    prior = None if guesser.prior is None else _normal(np.delete(guesser.prior, s))
    errors = None if guesser.errors is None else np.delete(guesser.errors, s, axis=1)
    return replace(guesser, prior=prior, errors=errors)


def _normal(prior: Array) -> Array:
    total = prior.sum()
    return np.asarray(prior / total if total > 0 else np.full(len(prior), 1 / len(prior)))


def _rounder(case: Case) -> Iterator[Case]:
    """Fewer digits, one table at a time."""
    n, _ = case.shape
    uniform = np.full(n, 1 / n)
    if not np.array_equal(case.prior, uniform):
        yield replace(case, prior=uniform)
    for digits in (1, 2):
        for name in ("prior", "cost", "distance", "distinguishability"):
            values = getattr(case, name)
            rounded = np.vectorize(lambda value, digits=digits: float(f"{value:.{digits}g}"))(values)
            rounded = _normal(rounded) if name == "prior" else rounded
            if not np.array_equal(rounded, values) and not np.allclose(rounded, values, rtol=1e-15, atol=0):
                changed: dict[str, Any] = {name: rounded}
                yield replace(case, **changed)
        for name, value in case.bounds.items():
            if isinstance(value, float) and float(f"{value:.{digits}g}") != value:
                yield case.with_bounds(**{name: float(f"{value:.{digits}g}")})


def shrink(case: Case, keeps: Callable[[Case], bool], seconds: float) -> Case:
    """A smaller and rounder case that still has what it should keep."""
    ends = time.monotonic() + seconds
    shrunk = True
    while shrunk:
        shrunk = False
        for other in smaller(case):
            if time.monotonic() > ends:
                return case
            if keeps(other):
                case, shrunk = other, True
                break
    return case
