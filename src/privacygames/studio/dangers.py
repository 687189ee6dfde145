"""What the page shows in red: privacy is gone, outputs claim what is not so about somebody, or they tell nothing."""

import re
from math import isfinite

import numpy as np

from privacygames.analysis import (
    ExactGuesses,
    FalseClaims,
    Finding,
    NothingTold,
    NoUse,
    PointReport,
    Quantity,
    Report,
    SettledOdds,
)
from privacygames.arrays import loss_matmul
from privacygames.mechanism import Mechanism
from privacygames.problem import distinguishability_scale
from privacygames.spaces import Categories
from privacygames.studio.starts import NEAR_ODDS_SETTLED, ODDS_SETTLED

MOST_EXACT = 0.9
"""Share of exact guesses above which privacy counts as gone."""

LEAST_TOLD = 0.01
"""Share of the bits of a secret, or of the cost of telling nothing, below which outputs count as telling nothing."""

UNTRUE, RARE = 0.01, 1e-4
"""Share of untrue reports that is worth a warning, and how often an output has to be given for that."""

KILOMETRES = re.compile(r"(?<![\d.,])(\d+(?:\.\d+)?(?:e-\d+)?) km\b")
KILOMETRE_IN_TEXT = 0.995
"""Distances below this many kilometres are written in metres, everywhere on the page."""


def dangers(mechanism: Mechanism, report: Report) -> list[Finding]:
    """The findings about a mechanism that are shown in red; empty where there is none."""
    problem = mechanism.problem
    guaranteed = report.epsilon_guaranteed
    unit = distinguishability_scale(problem).unit
    findings = _settled(report.epsilon, report.any_pair, unit) if guaranteed else []
    findings += _exact(report.vulnerability, report.prior_vulnerability)
    findings += _false_claims(mechanism)
    if report.usefulness.constant:  # the library warns of it
        return findings
    return findings + _nothing(report, blind=float(loss_matmul(problem.cost, problem.prior.probabilities).min()))


def point_dangers(report: PointReport) -> list[Finding]:
    """The same for a mechanism for points."""
    epsilon, any_pair = report.epsilon, report.any_pair
    settled = [] if epsilon is None or any_pair is None else _settled(epsilon, any_pair, report.distance_scale.unit)
    blind = float((report.problem.prior.probabilities @ report.problem.costs).min())
    return [*settled, *_exact(report.vulnerability, report.prior_vulnerability), *_nothing(report, blind=blind)]


def with_metres(text: str) -> str:
    """A sentence with distances below a kilometre in metres, as the rest of the page writes them.

    >>> with_metres("off by 0.533 km; 1 km apart, 0.6 per km")
    'off by 533 m; 1 km apart, 0.6 per km'
    """
    return KILOMETRES.sub(_in_metres, text)


def _in_metres(amount: re.Match[str]) -> str:
    kilometres = float(amount[1])
    return amount[0] if kilometres == 0 or kilometres >= KILOMETRE_IN_TEXT else f"{1000 * kilometres:.0f} m"


def _settled(epsilon: float, any_pair: float, unit: str) -> list[Finding]:
    if any_pair <= ODDS_SETTLED:
        return []
    within = Quantity(NEAR_ODDS_SETTLED / epsilon, unit) if unit and isfinite(epsilon) and epsilon > 0 else None
    return [SettledOdds(any_pair, within)]


def _exact(exact: float, exact_from_prior: float) -> list[Finding]:
    return [ExactGuesses(exact, exact_from_prior)] if exact > MOST_EXACT else []


def _nothing(report: Report | PointReport, *, blind: float) -> list[Finding]:
    """Whether outputs tell next to nothing, or nothing that lowers the cost of always giving the same one."""
    bits, entropy = report.mutual_information, report.prior_entropy
    if bits < LEAST_TOLD * entropy:
        return [NothingTold(bits, entropy)]
    return [NoUse()] if blind > 0 and report.cost > (1 - LEAST_TOLD) * blind else []


def _false_claims(mechanism: Mechanism) -> list[Finding]:
    """The category that is reported untruly most often, where outputs are categories of people."""
    space = mechanism.secrets
    if not isinstance(space, Categories) or mechanism.observables != space:
        return []
    joint = mechanism.problem.prior.probabilities[:, None] * mechanism.probabilities
    share = joint.sum(axis=0)
    untrue = np.where(share >= RARE, 1 - np.diag(joint) / np.maximum(share, RARE), 0.0)
    worst = int(untrue.argmax())
    if untrue[worst] < UNTRUE:
        return []
    return [FalseClaims(str(space.labels[worst]), float(untrue[worst]), float(share[worst]))]
