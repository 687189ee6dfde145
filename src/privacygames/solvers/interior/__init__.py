"""The block interior-point method: exact reductions, then a primal-dual method with one dense block per observable.

A design program has one block of unknowns per observable (its column of the mechanism, and an x for each adversary);
blocks are linked only by a few coupling rows (sums to one, total distortions, limits on the cost). The mathematics is
in docs/theory/solver.md; this is where each part of it is.

From a problem to a mechanism, outermost first:

- ``solver``: :class:`Interior`, which runs the next three and returns mechanism and dual solution;
- ``presolve/``: exact reductions of the problem to a ``program`` (plain arrays), and postsolve;
- ``start``: a strictly feasible mechanism, with central dual values;
- ``main_loop``: iterates until the gap is small enough; every iterate is a valid mechanism.

The state of the iteration, all immutable values:

- ``restricted_program``: the program restricted to the secrets that are in it now, and its blocks in batches;
- ``state``: unknowns, slacks and dual values of one iterate;
- ``lower_bound``: the bound on the optimum that its dual values prove.

One iteration:

- ``steps``: affine direction, Mehrotra's corrector, Gondzio's correctors, step length, deferred secrets that join;
- ``newton``: the Newton system: Schur complement of the coupling rows, above ``batch_newton``: the blocks of a batch;
- ``blocking_constraints``: directions with longer steps, with the help of ``sensitivities`` (how a direction responds
  to shifted dual values) and ``smoothed_complementarity`` (a small complementarity system).

The inequalities:

- ``working_set`` (``compiled_working_set`` with kernels): ratio bounds in the Newton matrix, and the check of all
  others;
- ``constraint_families``: positivity, and guesses of adversaries; ``batch``: all families of some blocks;
- ``coupling``: the coupling rows J and Jᵀ; ``elementwise``: operations on slacks and dual values.

Three words recur. A *product* is slack · dual value of one inequality. The *complementarity* is the sum of all
products. The *target* is the size that a step aims to give to every product.

``settings`` holds every numerical choice, with reasons. Linear algebra is in ``solvers/linalg``: the same code runs
with NumPy, compiled kernels, or PyTorch on a GPU.
"""

from privacygames.solvers.interior.presolve import dominating_observables, implied_pairs
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.solver import Interior

__all__ = ["Interior", "InteriorSettings", "dominating_observables", "implied_pairs"]
