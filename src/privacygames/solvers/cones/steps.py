"""One step of the method: affine direction, weighted correctors, step lengths.

A corrector is a change of the direction that improves the products of slacks and dual values. Primal and dual part are
weighted separately, each by the weight that makes its step longest (Colombo and Gondzio, Further development of
multiple centrality correctors, 2008): with weight one only, every third corrector is of no use.
"""

from privacygames.arrays import FloatArray
from privacygames.solvers import predictor_corrector
from privacygames.solvers.cones.newton import Newton
from privacygames.solvers.cones.program import ConeProgram
from privacygames.solvers.cones.second_order import centrality_correction, max_step, product
from privacygames.solvers.cones.state import State
from privacygames.solvers.linalg import BlockAlgebra

TO_BOUNDARY = 0.99
"""Share of the longest step that is taken, so that the next point is in the interior."""

CORRECTORS = 4
"""Centrality correctors of a step at most: each costs some 4 % of the factors, and four save a fifth of them."""

WEIGHTS = (1.0, 0.75, 0.5, 0.25)
"""Weights of a corrector that are tried."""

LEAST_GAIN = 0.05
"""Gain in the primal and dual step lengths, added up, below which a corrector is not used."""

Steps = tuple[float, float]
"""A primal and a dual step length."""


def next_point(program: ConeProgram, at: State, algebra: BlockAlgebra) -> State:
    """One predictor–corrector step."""
    newton = Newton(program, at, algebra)
    prices = at.prices
    linear = -at.guesses * at.w, -at.surplus * prices
    affine = newton.direction(-newton.scaled, *linear)
    primal, dual = (min(1.0, step) for step in _max_steps(newton, affine))
    remaining = max(at.moved(affine, primal, dual).gap / at.gap, 0.0)
    target = predictor_corrector.centring_parameter(remaining) * at.gap / at.degree
    scaled_change = newton.scaling.apply_inverse(affine.cones), newton.scaling.apply(affine.z)
    products = -product(*scaled_change)
    products[0] += target
    corrected = newton.direction(
        newton.towards(products) - newton.scaled,
        target + linear[0] - affine.guesses * affine.w,
        target + linear[1] - affine.surplus * affine.prices,
    )
    change, steps = _weighted(newton, affine, corrected.moved(affine, -1.0, -1.0), (0.0, 0.0))
    for _ in range(CORRECTORS):
        if min(steps) >= 1 / TO_BOUNDARY:
            break
        better, longer = _weighted(newton, change, _centrality_corrector(newton, change, target), steps)
        if sum(min(1.0, step) for step in longer) - sum(min(1.0, step) for step in steps) < LEAST_GAIN:
            break
        change, steps = better, longer
    return at.moved(change, *(min(1.0, TO_BOUNDARY * step) for step in steps))


def _weighted(newton: Newton, change: State, corrector: State, steps: Steps) -> tuple[State, Steps]:
    """A direction with the multiple of a corrector that makes the steps longest, and the steps.

    Args:
        newton: the system.
        change: the direction.
        corrector: the change of it.
        steps: the steps to surpass; where no multiple does, that part of the direction stays.
    """
    primal, dual = (steps[0], 0.0), (steps[1], 0.0)
    for weight in WEIGHTS:
        longest = _max_steps(newton, change.moved(corrector, weight, weight))
        primal, dual = max(primal, (longest[0], weight)), max(dual, (longest[1], weight))
        if min(primal[0], dual[0]) >= 1 / TO_BOUNDARY:
            break
    return change.moved(corrector, primal[1], dual[1]), (primal[0], dual[0])


def _centrality_corrector(newton: Newton, change: State, target: float) -> State:
    """Gondzio's corrector: products after full steps return to the neighbourhood of the target."""
    at, scaling = newton.at, newton.scaling
    s = newton.scaled + scaling.apply_inverse(change.cones)
    z = newton.scaled + scaling.apply(change.z)
    guesses = (at.guesses + change.guesses) * (at.w + change.w)
    surplus = (at.surplus + change.surplus) * (at.prices + change.prices)
    return newton.direction(
        newton.towards(centrality_correction(product(s, z), target)),
        predictor_corrector.centrality_correction(guesses, target),
        predictor_corrector.centrality_correction(surplus, target),
        whole=False,
    )


def _max_steps(newton: Newton, change: State) -> Steps:
    """The longest primal and dual steps that stay in the cones."""
    at, (root_s, root_z) = newton.at, newton.scaling.roots
    primal = ((at.guesses, change.guesses), (at.surplus, change.surplus))
    dual = ((at.w, change.w), (at.prices, change.prices))
    return (
        min(max_step(at.cones, change.cones, root_s), *(_max_step(*pair) for pair in primal)),
        min(max_step(at.z, change.z, root_z), *(_max_step(*pair) for pair in dual)),
    )


def _max_step(value: FloatArray, change: FloatArray) -> float:
    """The largest t for which value + t·change ≥ 0."""
    fastest = float((-change / value).max(initial=0.0))
    return 1 / fastest if fastest > 0 else float("inf")
