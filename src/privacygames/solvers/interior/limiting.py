"""The few inequalities that limit a step, not linearised.

A direction of Newton's method takes s z for linear, and where an inequality is about to bind, or to let go, that is
far from true. There are a few such among a hundred thousand, but the steps are as long as the worst of them allows.
A force on an inequality adds to its dual value; how all of the few answer to forces on each is a small matrix, which
costs a solution with one block each. With it their true complementarity is solved (``small_system.py``), the direction
is changed accordingly, and what limits it then joins the few. docs/theory/solver.md has the equations.
"""

from privacygames.solvers.interior.newton import Direction, Newton
from privacygames.solvers.interior.small_system import forces
from privacygames.solvers.interior.state import State

ROUNDS = 3
LONG = 0.9
"""Inequalities that allow steps as long as this limit nothing."""

MOST = 80
"""So many join the few at a time."""

WORTHWHILE = 0.02


def lengthened(newton: Newton, state: State, base: Direction, target: float) -> Direction:
    """A direction with longer steps than a given one, or that."""
    few, answers = newton.limiting(base, 1 / LONG, MOST), None
    best = base
    for _ in range(ROUNDS):
        new = few if answers is None else few.new_in(newton.limiting(step, 1 / LONG, MOST))
        if not len(new.at):
            break
        more = newton.answers(new)
        few, answers = (new, more) if answers is None else (few.and_then(new), answers.and_then(more))
        slack, dual = newton.values(few, state.inside)
        force = forces(slack, dual, newton.values(few, base.inside), answers.response, target)
        if force is None:
            break
        step = newton.forced(base, few, answers, force)
        if step.primal + step.dual > best.primal + best.dual + WORTHWHILE:
            best = step
    return best
