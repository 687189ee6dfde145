"""The paper's programs for the user: which mechanism costs least, given what it must promise.

Throughout, n is the number of secrets and m of observables; p(o|s) ≥ 0 and Σ_o p(o|s) = 1 are always meant, and
p(o|s) = 0 where c(o,s) = ∞.
Each takes the average cost (eq:objective:utility:avgmetric) or, with ``worst_case``, the cost of the worst
secret (eq:objective:utility:maxmetric), which adds one variable y and n rows.
"""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import loss_scale
from privacygames.problem import Bounds, Problem
from privacygames.programs.constraint_rows import (
    cost_limit,
    distortion_row,
    expected_cost,
    guess_rows,
    never_allowed,
    numbered,
    ratio_rows,
    row_sums,
    worst_cost_limit,
    worst_cost_rows,
)
from privacygames.programs.linear_program import LinearProgram, assemble

TIE_BREAK = 1e-8


def distortion_program(problem: Problem, distortion: float, *, worst_case: bool = False) -> LinearProgram:
    r"""Least cost under distortion privacy.

    Paper: eq:lp:user:utility-privacy:game (Theorem 1).

    .. math:: \min_{p,x} \sum_{s,o} π(s)\,p(o|s)\,c(o,s) \quad\text{s.t.}\quad
        \sum_s π(s)\,p(o|s)\,d(ŝ,s) ≥ x(o)\ ∀o,ŝ;\quad \sum_o x(o) ≥ d_m

    Size: n·m + m variables; n·m + 1 distortion rows, n sums.
    Deviations: none.
    """
    return assemble(
        _objective(problem, worst_case, with_distortion=True),
        row_sums(problem),
        worst_cost_rows(problem) if worst_case else None,
        guess_rows(problem),
        distortion_row(problem, distortion),
        free=("x",),
        upper=never_allowed(problem),
    )


def differential_program(
    problem: Problem, epsilon: float, *, within: float | None = None, worst_case: bool = False
) -> LinearProgram:
    r"""Least cost under differential privacy, in the metric form or, with ``within``, the threshold form.

    Paper: eq:lp:user:utility-privacy:diff:mult; with ``within`` eq:lp:user:utility-privacy:diff:mult2.

    .. math:: \min_p \sum_{s,o} π(s)\,p(o|s)\,c(o,s) \quad\text{s.t.}\quad
        p(o|s) ≤ e^{ε_m d^ε(s,s')}\,p(o|s')\ ∀s,s',o

    (threshold form: :math:`e^{ε_m}` where :math:`d^ε(s,s') ≤ d^ε_m`, nothing elsewhere).

    Size: n·m variables; n(n−1)·m ratio rows, n sums.
    Deviations: ratio rows are balanced by √γ; ratios above e^36 are left to the repair.
    """
    return assemble(
        _objective(problem, worst_case, with_distortion=False),
        row_sums(problem),
        worst_cost_rows(problem) if worst_case else None,
        ratio_rows(problem, Bounds(epsilon=epsilon, within=within)),
        upper=never_allowed(problem),
    )


def joint_program(
    problem: Problem,
    epsilon: float,
    distortion: float,
    *,
    within: float | None = None,
    worst_case: bool = False,
) -> LinearProgram:
    r"""Least cost under differential and distortion privacy together.

    Paper: eq:lp:user:utility-jointprivacy.

    .. math:: \min_{p,x} \sum_{s,o} π(s)\,p(o|s)\,c(o,s) \quad\text{s.t. the rows of both programs above}

    Size: n·m + m variables; n·m + 1 distortion rows, n(n−1)·m ratio rows, n sums.
    Deviations: ratio rows are balanced by √γ; ratios above e^36 are left to the repair.
    """
    return assemble(
        _objective(problem, worst_case, with_distortion=True),
        row_sums(problem),
        worst_cost_rows(problem) if worst_case else None,
        guess_rows(problem),
        distortion_row(problem, distortion),
        ratio_rows(problem, Bounds(epsilon=epsilon, within=within)),
        free=("x",),
        upper=never_allowed(problem),
    )


def reverse_program(problem: Problem, bounds: Bounds) -> LinearProgram:
    r"""Most distortion privacy for a bounded cost, with or without differential privacy.

    Paper: the predecessor it builds on (ShokriTTHL12), with the constraints of eq:constraint:privacy:diff:mult.

    .. math:: \max_{p,x} \sum_o x(o) \quad\text{s.t.}\quad
        \sum_s π(s)\,p(o|s)\,d(ŝ,s) ≥ x(o)\ ∀o,ŝ;\quad \text{cost}(p) ≤ C;\quad \text{ratios}

    Size: n·m + m variables; n·m distortion rows, 1 (worst case: n) cost rows, n(n−1)·m ratio rows, n sums.
    Deviations: written as a minimisation of −Σx(o) + w·cost with w ≈ 10⁻⁸, so that of the many mechanisms with
    the most distortion a cheap one is found; ratios as in the joint program.
    """
    _, observables = problem.shape
    return assemble(
        {"p": tie_break(problem, bounds) * expected_cost(problem), "x": -np.ones(observables)},
        row_sums(problem),
        guess_rows(problem),
        cost_limit(problem, bounds),
        ratio_rows(problem, bounds),
        free=("x",),
        upper=never_allowed(problem),
    )


def several_program(problem: Problem, bounds: Bounds) -> LinearProgram:
    r"""Least cost, or most privacy against the first adversary, under promises against several adversaries at once.

    Not in the paper: docs/theory/adversaries.md. Adversary k has a belief :math:`π_k`, errors :math:`E_k(g,s)` and
    variables :math:`x_k(o)`.

    .. math:: \min_{p,x} \sum_{s,o} π(s)\,p(o|s)\,c(o,s) \quad\text{s.t.}\quad
        \sum_s π_k(s)\,p(o|s)\,E_k(g,s) ≥ x_k(o)\ ∀k,o,g;\quad \sum_o x_k(o) ≥ d_k\ ∀k;\quad
        \sum_o p(o|s)\,c(o,s) ≤ W\ ∀s;\quad \text{ratios}

    With ``cost_at_most``, :math:`\max \sum_o x_1(o)` under a limit on the cost and the rows of the others.

    Size: n·m + K·m variables; m·Σ_k G_k + K distortion rows, n(n−1)·m ratio rows, n sums, n rows for W.
    Deviations: as the joint and the reverse program's.
    """
    adversaries = bounds.adversaries(problem)
    _, observables = problem.shape
    objective = _objective(problem, bounds.worst_case and not bounds.maximises_distortion, with_distortion=False)
    families = [row_sums(problem), ratio_rows(problem, bounds)]
    if bounds.maximises_distortion:
        objective["p"] = tie_break(problem, bounds) * expected_cost(problem)
        families.append(cost_limit(problem, bounds))
    elif bounds.worst_case:
        families.append(worst_cost_rows(problem))
    if bounds.worst_cost_at_most is not None:
        families.append(worst_cost_limit(problem, bounds.worst_cost_at_most))
    names = [numbered("x", place) for place in range(len(adversaries))]
    for place, (name, adversary) in enumerate(zip(names, adversaries, strict=True)):
        maximised = bounds.maximises_distortion and place == 0
        objective[name] = np.full(observables, -1.0 if maximised else 0.0)
        families.append(guess_rows(problem, adversary, place))
        if not maximised:
            families.append(distortion_row(problem, adversary.distortion or 0.0, place))
    return assemble(objective, *families, free=tuple(names), upper=never_allowed(problem))


def tie_break(problem: Problem, bounds: Bounds) -> float:
    """The weight of the cost in the reverse program: what distortion is worth giving up a unit of cost for."""
    sought = bounds.adversaries(problem)[0]
    return TIE_BREAK * loss_scale(sought.errors, sought.prior) / loss_scale(problem.cost, problem.prior.probabilities)


def design_program(problem: Problem, bounds: Bounds) -> LinearProgram:
    """The program for the bounds asked for."""
    if bounds.against or bounds.worst_cost_at_most is not None:
        return several_program(problem, bounds)
    if bounds.maximises_distortion:
        return reverse_program(problem, bounds)
    if bounds.epsilon is None:
        return distortion_program(problem, bounds.distortion or 0.0, worst_case=bounds.worst_case)
    if bounds.distortion is None:
        return differential_program(problem, bounds.epsilon, within=bounds.within, worst_case=bounds.worst_case)
    return joint_program(problem, bounds.epsilon, bounds.distortion, within=bounds.within, worst_case=bounds.worst_case)


def _objective(problem: Problem, worst_case: bool, *, with_distortion: bool) -> dict[str, FloatArray]:
    secrets, observables = problem.shape
    costs = np.zeros(secrets * observables) if worst_case else expected_cost(problem)
    blocks = {"p": costs}
    if with_distortion:
        blocks["x"] = np.zeros(observables)
    if worst_case:
        blocks["y"] = np.ones(1)
    return blocks
