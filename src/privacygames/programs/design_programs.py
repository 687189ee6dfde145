"""The paper's programs for the user: which mechanism costs least, given what it must guarantee.

Throughout, n is the number of secrets and m of outputs; p(o|s) ≥ 0 and Σ_o p(o|s) = 1 are always meant, and
p(o|s) = 0 where c(o,s) = ∞.
Each minimises the average cost (eq:objective:utility:avgmetric) or, with ``worst_case``, the cost of the worst secret
(eq:objective:utility:maxmetric), which adds one variable y and n rows. :func:`design_program` is the assembly; the
programs of the paper are what it gives for some bounds, under their own names.
"""

import numpy as np

from privacygames.certificates import loss_scale
from privacygames.problem import Bounds, Problem
from privacygames.programs.constraint_rows import (
    adversary_rows,
    cost_limit,
    expected_cost,
    never_allowed,
    numbered,
    ratio_rows,
    row_sums,
    worst_cost_limit,
    worst_cost_rows,
)
from privacygames.programs.linear_program import LinearProgram, assemble

TIE_BREAK = 1e-8
"""Weight of the cost where distortion is maximised, relative to typical errors and costs: of the many mechanisms with
the most distortion, a cheap one; small enough to give up less distortion than the certificate's gap resolves."""


def design_program(problem: Problem, bounds: Bounds) -> LinearProgram:
    r"""Least cost, or most distortion privacy against the first adversary, under any bounds.

    The paper has the programs below; several adversaries are docs/theory/adversaries.md. Adversary k has a belief
    :math:`π_k`, errors :math:`E_k(g,s)` and variables :math:`x_k(o)`.

    .. math:: \min_{p,x} \sum_{s,o} π(s)\,p(o|s)\,c(o,s) \quad\text{s.t.}\quad
        \sum_s π_k(s)\,p(o|s)\,E_k(g,s) ≥ x_k(o)\ ∀k,o,g;\quad \sum_o x_k(o) ≥ d_k\ ∀k;\quad
        \sum_o p(o|s)\,c(o,s) ≤ W\ ∀s;\quad p(o|s) ≤ γ(s,s')\,p(o|s')\ ∀s,s',o

    With ``cost_at_most``, :math:`\max \sum_o x_1(o)` under a limit on the cost and the rows of the others.

    Size: n·m + K·m variables; m·Σ_k G_k + K distortion rows, n(n−1)·m ratio rows, n sums, n rows for W.
    Deviations: ratio rows are balanced by √γ; ratios above e^36 are left to the repair; where distortion is maximised,
    the cost is in the objective with a weight of about 10⁻⁸, so that of many such mechanisms a cheap one results.
    """
    secrets, observables = problem.shape
    names = tuple(numbered("x", position) for position in range(len(bounds.distortion)))
    worst_case = bounds.worst_case and not bounds.maximises_distortion
    objective = {"p": np.zeros(secrets * observables) if worst_case else expected_cost(problem)}
    objective |= {name: np.zeros(observables) for name in names}
    if worst_case:
        objective["y"] = np.ones(1)
    if bounds.maximises_distortion:
        objective["p"] = tie_break(problem, bounds) * expected_cost(problem)
        objective[names[0]] = -np.ones(observables)
    return assemble(
        objective,
        row_sums(problem),
        worst_cost_rows(problem) if worst_case else None,
        *adversary_rows(problem, bounds),
        cost_limit(problem, bounds) if bounds.maximises_distortion else None,
        None if bounds.worst_cost_at_most is None else worst_cost_limit(problem, bounds.worst_cost_at_most),
        ratio_rows(problem, bounds),
        free=names,
        upper=never_allowed(problem),
    )


def distortion_program(problem: Problem, distortion: float, *, worst_case: bool = False) -> LinearProgram:
    r"""Least cost under distortion privacy.

    Paper: eq:lp:user:utility-privacy:game (Theorem 1).

    .. math:: \min_{p,x} \sum_{s,o} π(s)\,p(o|s)\,c(o,s) \quad\text{s.t.}\quad
        \sum_s π(s)\,p(o|s)\,d(ŝ,s) ≥ x(o)\ ∀o,ŝ;\quad \sum_o x(o) ≥ d_m

    Size: n·m + m variables; n·m + 1 distortion rows, n sums.
    Deviations: none.
    """
    return design_program(problem, Bounds(distortion=distortion, worst_case=worst_case))


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
    return design_program(problem, Bounds(epsilon=epsilon, within=within, worst_case=worst_case))


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
    bounds = Bounds(epsilon=epsilon, within=within, distortion=distortion, worst_case=worst_case)
    return design_program(problem, bounds)


def tie_break(problem: Problem, bounds: Bounds) -> float:
    """The weight of the cost where distortion is maximised: how much distortion a unit of cost is worth."""
    first = bounds.adversaries(problem)[0]
    return TIE_BREAK * loss_scale(first.errors, first.prior) / loss_scale(problem.cost, problem.prior.probabilities)
