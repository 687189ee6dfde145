"""The evidence on better informed adversaries and on approximations: one function per claim."""

from itertools import pairwise

import numpy as np

from privacygames.jobs import Table, Value, number, where
from privacygames_study.claims.evidence import Evidence, steps, summary, three_digits
from privacygames_study.claims.scenario_evidence import METRE, METRES, NEAR_KM, TENS_OF_METRES
from privacygames_study.tasks import DONE

ALMOST = 0.1
"""Largest share of privacy lost that counts as "almost the same"."""

FASTER = 1.0
"""Ratio of times above which a design is faster."""

MILLIMETRE = 1e-6
"""Kilometres by which privacy may be below its guarantee: rounding."""

SAME_COST = 1e-5
"""Difference of cost that counts as equal: ten times the tolerance of designs, for costs up to 1."""


def knowledge_helps(table: Table) -> Evidence:
    """For every mechanism, distortion privacy does not rise from one strength of the adversary to the next."""
    pairs = steps(table, ["user", "epsilon", "mechanism"], "strength")
    changes = [number(later, "privacy_km") - number(earlier, "privacy_km") for earlier, later in pairs]
    return Evidence([change <= METRE for change in changes], f"change per step {summary(changes, ' km')}", METRES)


def equal_without_evidence(table: Table) -> Evidence:
    """Both mechanisms have the same privacy if the adversary's belief is the prior they were designed for."""
    gains = _differential_gains(table, informed=False)
    return Evidence(
        [abs(gain) <= NEAR_KM for gain in gains],
        f"differential minus distortion {summary(gains, ' km')}",
        TENS_OF_METRES,
    )


def differential_resists_knowledge(table: Table) -> Evidence:
    """Against adversaries with more evidence, the differential mechanism has at least as much privacy."""
    gains = _differential_gains(table, informed=True)
    return Evidence(
        [gain >= -METRE for gain in gains], f"differential minus distortion {summary(gains, ' km')}", METRES
    )


def guarantees_hold(table: Table) -> Evidence:
    """Privacy is at least its guarantee, against every adversary."""
    pairs = [
        (number(row, "privacy_km"), number(row, "promised_km")) for row in where(table, mechanism="robust", status=DONE)
    ]
    return Evidence(
        [privacy >= guaranteed - MILLIMETRE for privacy, guaranteed in pairs],
        f"privacy minus guarantee {summary((privacy - guaranteed for privacy, guaranteed in pairs), ' km')}",
        "1 mm",
    )


def robust_costs_no_more(table: Table) -> Evidence:
    """The robust mechanism costs at most as much as the differential one, which has the same guarantees."""
    costs = {
        mechanism: {(row["user"], row["epsilon"]): number(row, "cost") for row in rows}
        for mechanism in ("differential", "distortion", "robust")
        for rows in [where(table, mechanism=mechanism, status=DONE, strength=1.0)]
    }
    cases = [case for case in costs["robust"] if case in costs["differential"] and case in costs["distortion"]]
    extra = [costs["robust"][case] - costs["distortion"][case] for case in cases]
    saved = [costs["differential"][case] - costs["robust"][case] for case in cases]
    numbers = f"more than the distortion mechanism {summary(extra)}; less than the differential one {summary(saved)}"
    return Evidence([value >= -SAME_COST for value in saved], numbers, "0.00001")


def error_falls_with_radius(table: Table, *, kind: str) -> Evidence:
    """The median of the absolute error over users does not rise from one radius to the next."""
    line = _medians(_pruned(table, kind), "error_km")
    return Evidence(
        [abs(second[1]) <= abs(first[1]) + METRE for first, second in pairwise(line)],
        f"medians over users and ε: {_listed(line, 'km')}",
        METRES,
    )


def error_vanishes(table: Table, *, kind: str) -> Evidence:
    """The error is negligible at the largest radius."""
    done = _with_error(table, kind)
    largest = max((number(row, "radius_km") for row in done), default=0.0)
    errors = [number(row, "error_km") for row in where(done, radius_km=largest)]
    return Evidence(
        [abs(error) <= NEAR_KM for error in errors],
        f"error at {largest:g} km {summary(errors, ' km')}",
        TENS_OF_METRES,
    )


def small_radius_suffices(table: Table, *, kind: str) -> Evidence:
    """At the middle one of the radii, at most a tenth of the privacy is lost."""
    done = _with_error(table, kind)
    radii = sorted({number(row, "radius_km") for row in done})
    middle = radii[(len(radii) - 1) // 2] if radii else 0.0
    lost = [
        number(row, "error_km") / number(row, "exact_privacy_km")
        for row in where(done, radius_km=middle)
        if row["exact_privacy_km"]  # a person who is always in one place has no privacy to lose
    ]
    return Evidence(
        [value <= ALMOST for value in lost], f"share of privacy lost at {middle:g} km {summary(lost)}", "10 %"
    )


def time_grows_with_radius(table: Table, *, kind: str) -> Evidence:
    """The median of processor time over users does not fall from one radius to the next."""
    line = _medians(_pruned(table, kind), "processor_seconds")
    return Evidence(
        [second[1] >= first[1] for first, second in pairwise(line)],
        f"medians of processor time over users and ε: {_listed(line, 's')}",
        "none",
    )


def approximating_is_faster(table: Table, *, kind: str) -> Evidence:
    """Approximating takes less processor time than the exact design; only rows by the same solver are compared."""
    same = [row for row in _pruned(table, kind) if row["solver"] is not None and row["solver"] == row["exact_solver"]]
    ratios = [number(row, "exact_processor_seconds") / number(row, "processor_seconds") for row in same]
    solvers = " or ".join(sorted({str(row["solver"]) for row in same})) or "no solver"
    return Evidence(
        [ratio > FASTER for ratio in ratios],
        f"times as fast as the exact design, both by {solvers}, in processor time: {summary(ratios)}",
        "none",
    )


def epsilon_is_kept(table: Table, *, kind: str) -> Evidence:
    """The realised ε is at most the nominal one."""
    ratios = [number(row, "realised_epsilon") / number(row, "epsilon") for row in _pruned(table, kind)]
    infinite = sum(bool(np.isinf(ratio)) for ratio in ratios)
    return Evidence(
        [ratio <= 1 + 1e-6 for ratio in ratios],
        f"realised ε as a multiple of the nominal {summary(ratios)}; infinite in {infinite} of {len(ratios)}",
        "one millionth",
    )


def _differential_gains(table: Table, *, informed: bool) -> list[float]:
    distortion = {_case(row): number(row, "privacy_km") for row in where(table, mechanism="distortion")}
    return [
        number(row, "privacy_km") - distortion[_case(row)]
        for row in where(table, mechanism="differential")
        if _case(row) in distortion and (row["strength"] != 1.0) == informed
    ]


def _case(row: dict[str, Value]) -> tuple[Value, ...]:
    return row["user"], row["epsilon"], row["strength"]


def _pruned(table: Table, kind: str) -> Table:
    """The approximations of one kind."""
    return where(table, status=DONE, kind=kind)


def _with_error(table: Table, kind: str) -> Table:
    """The approximations of one kind whose exact design is known."""
    return [row for row in _pruned(table, kind) if row["error_km"] is not None]


def _medians(table: Table, column: str) -> list[tuple[float, float]]:
    """The median of a column at each radius, in increasing order of the radius."""
    values_by_radius: dict[float, list[float]] = {}
    for row in table:
        if row[column] is not None:
            values_by_radius.setdefault(number(row, "radius_km"), []).append(number(row, column))
    return [(radius, float(np.median(values))) for radius, values in sorted(values_by_radius.items())]


def _listed(line: list[tuple[float, float]], unit: str) -> str:
    return ", ".join(f"{three_digits(value)} {unit} at {radius:g} km" for radius, value in line)
