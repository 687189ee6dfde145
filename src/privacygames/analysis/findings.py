"""Findings about a mechanism: typed statements with their numbers and units, and the one wording of each.

The terminal, the studio's page, its report and a printed :class:`privacygames.Report` all show these.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from math import exp
from typing import ClassVar

from privacygames.analysis.formatting import format_amount, format_percent
from privacygames.certificates import Usefulness
from privacygames.problem import Problem
from privacygames.spaces import display_label

MOST_NAMED = 5
FEW_KINDS = 0.5
"""Share of the secrets that occur: where fewer can be told apart by their outputs, a warning says so."""

LARGEST_FACTOR = 1e4
"""Factors from here on are written as powers of e."""

LARGEST_EXPONENT = 700.0
"""Exponents above this overflow a double."""

REMEDY = (
    "What helps: a larger epsilon, the worst secret's cost instead of the average, or a cost that values rare secrets."
)


class Severity(StrEnum):
    """How a finding is to be shown.

    >>> Severity.WARNING.value
    'warning'
    """

    DANGER = "danger"
    """Privacy is gone, outputs claim what is not so about somebody, or they tell nothing: red on the studio's page."""

    WARNING = "warning"
    """To be read before anything else: outputs that say nothing, secrets that never get a good output."""

    INFORMATION = "information"
    LIMITATION = "limitation"
    """What a guarantee does not cover."""


@dataclass(frozen=True)
class Quantity:
    """A number with its unit.

    Attributes:
        value: the number.
        unit: ``"km"``, ``"years"``; empty where there is none, and ``"share"`` for shares of cases.

    >>> str(Quantity(0.4999, "km")), str(Quantity(0.25, "share")), str(Quantity(2.0))
    ('0.5 km', '25 %', '2')
    """

    value: float
    unit: str = ""

    def __str__(self) -> str:
        return (
            format_percent(self.value) if self.unit == "share" else f"{format_amount(self.value)} {self.unit}".rstrip()
        )

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"value": self.value, "unit": self.unit}


@dataclass(frozen=True)
class Finding:
    """One statement about a mechanism: what it is about, its numbers, and a sentence.

    ``kind`` is a name for programs, ``severity`` says how to show it, and ``str(finding)`` is the sentence.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold"])))
    >>> mechanism = pg.design(problem, epsilon=1.0)
    >>> first, *_ = pg.explain(pg.evaluate(mechanism, problem), problem)
    >>> first.kind, str(first.severity), first.error.unit, round(first.exact, 3)
    ('best_guess', 'information', 'share', 0.731)
    >>> print(first)
    An adversary's best guess is wrong in 27 % of cases, and exact in 73 %.
    """

    kind: ClassVar[str] = "finding"
    severity: ClassVar[Severity] = Severity.INFORMATION

    def to_dict(self) -> dict[str, object]:
        """Kind, severity, every number with its unit and the sentence, for JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: value.to_dict() if isinstance(value, Quantity) else value for name, value in values.items()}
        return {"kind": self.kind, "severity": str(self.severity), **plain, "text": str(self)}


@dataclass(frozen=True)
class BestGuess(Finding):
    """The adversary's best guesses, after an output or without one.

    Attributes:
        error: the expected error of the guess with the least; with unit ``"share"`` where the distance counts wrong
            guesses.
        exact: how often the likeliest guess is the secret. It may be another guess than the one with the least error.
        distance: the name of the distance; empty where the space knows it by none.
        after_output: whether the adversary has seen an output.
    """

    kind: ClassVar[str] = "best_guess"

    error: Quantity
    exact: float
    distance: str
    after_output: bool = True

    def __str__(self) -> str:
        return self._after() if self.after_output else self._before()

    def _after(self) -> str:
        subject, exact = "An adversary's best guess", format_percent(self.exact)
        if self.distance == "hamming":
            return f"{subject} is wrong in {self.error} of cases, and exact in {exact}."
        if self.distance == "jaccard":
            apart = f"differs from the true set by {self.error} on average (0: the same, 1: nothing in common)"
            return f"{subject} {apart}; their likeliest guess is exact in {exact} of cases."
        return f"{subject} is off by {self.error} on average; their likeliest guess is exact in {exact} of cases."

    def _before(self) -> str:
        if self.distance == "hamming":
            return f"Without the output it would be wrong in {self.error} of cases."
        exact = format_percent(self.exact)
        return f"Without the output it would be off by {self.error}, and the likeliest guess exact in {exact} of cases."


@dataclass(frozen=True)
class OddsBound(Finding):
    """How far an output shifts the odds between two secrets, at most.

    Attributes:
        log_ratio: the realised ε: the logarithm of the factor between secrets at distance 1.
        apart: that distance in the singular of its unit, such as ``"1 km"``; empty where it has no unit.
        any_pair: the largest log-ratio between any two secrets; None where that is the same, ∞ where none holds.
    """

    kind: ClassVar[str] = "odds_bound"

    log_ratio: float
    apart: str
    any_pair: float | None

    def __str__(self) -> str:
        if self.any_pair is None:
            pair = "any two secrets"
        else:
            pair = f"two secrets {self.apart} apart" if self.apart else "two secrets at distance 1"
        near = f"No output shifts the odds between {pair} by more than a factor of {factor(self.log_ratio)}"
        if self.any_pair is None:
            return f"{near}."
        if self.any_pair == float("inf"):
            return f"{near}; between some secrets nothing limits it."
        return f"{near}, or between any two secrets by more than {factor(self.any_pair)}."


@dataclass(frozen=True)
class UnboundedOdds(Finding):
    """No ε is guaranteed, or none holds."""

    kind: ClassVar[str] = "unbounded_odds"

    def __str__(self) -> str:
        return "Nothing limits how far an output shifts the odds between two secrets."


@dataclass(frozen=True)
class AdversaryError(Finding):
    """The error of one adversary's best guesses, beside the guarantee and the error without an output.

    Attributes:
        adversary: their name.
        realised: the error after an output.
        guaranteed: the error that is guaranteed; None where none is.
        without_output: the error without an output.
    """

    kind: ClassVar[str] = "adversary_error"

    adversary: str
    realised: Quantity
    guaranteed: Quantity | None
    without_output: Quantity

    def __str__(self) -> str:
        verb = "are wrong in" if self.realised.unit == "share" else "err by"
        guaranteed = "" if self.guaranteed is None else f" ({self.guaranteed} is guaranteed)"
        most = self.without_output.value
        share = f", {format_percent(self.realised.value / most)} of the error without an output" if most else ""
        cases = " of cases" if self.realised.unit == "share" else ""
        return (
            f"Against “{self.adversary}” the best guesses after an output {verb} {self.realised}{cases}"
            f"{guaranteed}{share}."
        )


@dataclass(frozen=True)
class SettledOdds(Finding):
    """An output can shift the odds between far secrets so much that it settles which of them it is.

    Attributes:
        log_ratio: the largest log-ratio between any two secrets; ∞ where none holds.
        hidden_within: distance of secrets between which the odds shift by a factor of a hundred at most.
    """

    kind: ClassVar[str] = "settled_odds"
    severity: ClassVar[Severity] = Severity.DANGER

    log_ratio: float
    hidden_within: Quantity | None

    def __str__(self) -> str:
        shift = "without any limit" if self.log_ratio == float("inf") else f"by a factor of {factor(self.log_ratio)}"
        hidden = (
            "" if self.hidden_within is None else f" Only secrets within {self.hidden_within} of each other stay close."
        )
        return f"Between the farthest secrets privacy is gone: one output can shift the odds {shift}.{hidden}"


@dataclass(frozen=True)
class ExactGuesses(Finding):
    """The adversary's likeliest guess is nearly always the secret.

    Attributes:
        exact: how often, after an output.
        exact_from_prior: how often without an output.
    """

    kind: ClassVar[str] = "exact_guesses"
    severity: ClassVar[Severity] = Severity.DANGER

    exact: float
    exact_from_prior: float

    def __str__(self) -> str:
        before = format_percent(self.exact_from_prior)
        return (
            f"Privacy is gone: the adversary's likeliest guess is exact in {format_percent(self.exact)} of cases "
            f"(without an output: {before})."
        )


@dataclass(frozen=True)
class FalseClaims(Finding):
    """An output names a category that the person does not have.

    Attributes:
        output: the output that is most often untrue.
        untrue: the share of those who get it, and have another category.
        share: how often it is given.
    """

    kind: ClassVar[str] = "false_claims"
    severity: ClassVar[Severity] = Severity.DANGER

    output: str
    untrue: float
    share: float

    def __str__(self) -> str:
        return (
            f"Outputs make claims about people: of those who are reported as “{self.output}”, "
            f"{format_percent(self.untrue)} are not. Use outputs for statistics; never show one beside a name."
        )


@dataclass(frozen=True)
class NothingTold(Finding):
    """Outputs carry next to nothing about the secret.

    Attributes:
        bits: the mutual information of secret and output.
        entropy: bits that there are to tell.
    """

    kind: ClassVar[str] = "nothing_told"
    severity: ClassVar[Severity] = Severity.DANGER

    bits: float
    entropy: float

    def __str__(self) -> str:
        return (
            f"Next to nothing is told: an output carries {self.bits:.2g} of the {self.entropy:.2g} bits of a secret, "
            "so no service can use it. Ask for less privacy."
        )


@dataclass(frozen=True)
class NoUse(Finding):
    """Outputs cost as much as always giving the same one."""

    kind: ClassVar[str] = "no_use"
    severity: ClassVar[Severity] = Severity.DANGER

    def __str__(self) -> str:
        return (
            "Outputs are of no more use than always giving the same one, which costs as little: ask for less privacy."
        )


@dataclass(frozen=True)
class UnlimitedEpsilon(Finding):
    """The guaranteed ε is so large that it limits no ratio."""

    kind: ClassVar[str] = "unlimited_epsilon"
    severity: ClassVar[Severity] = Severity.DANGER

    def __str__(self) -> str:
        return "The guaranteed epsilon is so large that it limits nothing: lower it."


@dataclass(frozen=True)
class ConstantOutputs(Finding):
    """The outputs are the same whatever the secret is."""

    kind: ClassVar[str] = "constant_outputs"
    severity: ClassVar[Severity] = Severity.DANGER

    def __str__(self) -> str:
        return f"The outputs do not depend on the secret at all: they tell nobody anything. {REMEDY}"


@dataclass(frozen=True)
class UnservedSecrets(Finding):
    """Secrets that occur and never get an output that costs them least.

    Attributes:
        occurring: how many secrets occur.
        count: how many of them are unserved.
        named: the first of them.
        share: their probability under the prior.
    """

    kind: ClassVar[str] = "unserved_secrets"
    severity: ClassVar[Severity] = Severity.WARNING

    occurring: int
    count: int
    named: tuple[str, ...]
    share: float

    def __str__(self) -> str:
        more = self.count - len(self.named)
        listed = ", ".join(self.named) + (f" and {more} more" if more else "")
        which = "one never gets its" if self.count == 1 else f"{self.count} never get their"
        return (
            f"Of the {self.occurring} secrets that occur, {which} best output ({listed}: "
            f"{format_percent(self.share)} of the prior)."
        )


@dataclass(frozen=True)
class SimilarOutputs(Finding):
    """Many secrets have almost the same output distribution.

    Attributes:
        occurring: how many secrets occur.
        kinds: how many distributions can be told apart.
        bits: the mutual information of secret and output.
    """

    kind: ClassVar[str] = "similar_outputs"
    severity: ClassVar[Severity] = Severity.WARNING

    occurring: int
    kinds: int
    bits: float

    def __str__(self) -> str:
        return (
            f"Many secrets get almost the same outputs ({self.kinds} kinds of rows for the {self.occurring} that "
            f"occur); an output carries {self.bits:.2g} bits."
        )


@dataclass(frozen=True)
class Remedy(Finding):
    """What makes outputs more useful."""

    kind: ClassVar[str] = "remedy"
    severity: ClassVar[Severity] = Severity.WARNING

    def __str__(self) -> str:
        return REMEDY


@dataclass(frozen=True)
class OptimalityGap(Finding):
    """The design stopped before the optimum.

    Attributes:
        gap: the relative gap that is left.
        maximises_error: whether the adversary's error was maximised, rather than the cost minimised.
    """

    kind: ClassVar[str] = "optimality_gap"
    severity: ClassVar[Severity] = Severity.WARNING

    gap: float
    maximises_error: bool

    def __str__(self) -> str:
        if self.maximises_error:
            return f"Stopped before the optimum: the adversary's error may be {self.gap:.1%} below the most possible."
        return f"Stopped before the optimum: the cost may be {self.gap:.1%} above the least possible."


LIMITATIONS = {
    "single_output": "It holds for one output. Each further output for the same secret reveals more.",
    "cells": "It holds between cells; close points on two sides of a border differ like their cells. For coordinates, "
    "use privacygames.points.",
    "no_epsilon": "No ε is guaranteed: an adversary who knows more than your habits may learn more.",
    "no_error": "No error is guaranteed: for an adversary who knows your habits well it may be small.",
    "average_error": "The adversary's error is an average over your habits, not a guarantee for each single output.",
}
"""What a certificate does not cover, by what it is about."""


@dataclass(frozen=True)
class Limitation(Finding):
    """What the guarantees do not cover.

    Attributes:
        about: one of the keys of ``LIMITATIONS``.
    """

    kind: ClassVar[str] = "limitation"
    severity: ClassVar[Severity] = Severity.LIMITATION

    about: str

    def __str__(self) -> str:
        return LIMITATIONS[self.about]


def usefulness_warnings(useful: Usefulness, problem: Problem) -> list[Finding]:
    """Warnings about outputs that say nothing or never serve somebody; empty where there is no reason for one."""
    warnings: list[Finding] = [UnlimitedEpsilon()] if useful.limitless else []
    occurring = int((problem.prior.probabilities > 0).sum())
    if useful.constant and len(problem.space) > 1:
        return [*warnings, ConstantOutputs()]
    similar = useful.kinds < FEW_KINDS * occurring
    if useful.unserved:
        named = tuple(display_label(problem.space.labels[position]) for position in useful.unserved[:MOST_NAMED])
        warnings.append(UnservedSecrets(occurring, len(useful.unserved), named, useful.unserved_share))
    if similar:
        warnings.append(SimilarOutputs(occurring, useful.kinds, useful.bits))
    return [*warnings, Remedy()] if useful.unserved or similar else warnings


def factor(log_ratio: float) -> str:
    """By how much a log-ratio shifts the odds.

    >>> factor(0.0), factor(2.0), factor(20.0)
    ('1', '7.39', 'e^20')
    """
    shift = exp(min(log_ratio, LARGEST_EXPONENT))
    return format_amount(shift) if shift < LARGEST_FACTOR else f"e^{log_ratio:.3g}"
