"""One step of the method: affine direction, Mehrotra's corrector, centrality correctors, step lengths."""

from privacygames.arrays import FloatArray
from privacygames.solvers import predictor_corrector
from privacygames.solvers.cones.newton import Newton
from privacygames.solvers.cones.program import ConeProgram
from privacygames.solvers.cones.second_order import centrality_correction, max_step, product
from privacygames.solvers.cones.state import State
from privacygames.solvers.linalg import BlockAlgebra

TO_BOUNDARY = 0.99
"""Share of the longest step that is taken, so that the next point is in the interior."""

CORRECTORS = 2
"""Centrality correctors of a step at most."""

LEAST_GAIN = 0.05
"""Gain in the primal and dual step lengths, added up, below which a corrector is not used."""


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
    change = newton.direction(
        newton.towards(products) - newton.scaled,
        target + linear[0] - affine.guesses * affine.w,
        target + linear[1] - affine.surplus * affine.prices,
    )
    steps = _max_steps(newton, change)
    for _ in range(CORRECTORS):
        if min(steps) >= 1 / TO_BOUNDARY:
            break
        trial = _correction(newton, change, target, steps)
        longer = _max_steps(newton, trial)
        if _gain(steps, longer) < LEAST_GAIN:
            break
        change, steps = trial, longer
    return at.moved(change, *(min(1.0, TO_BOUNDARY * step) for step in steps))


def _gain(steps: tuple[float, float], longer: tuple[float, float]) -> float:
    return sum(min(1.0, step) for step in longer) - sum(min(1.0, step) for step in steps)


def _correction(newton: Newton, change: State, target: float, steps: tuple[float, float]) -> State:
    """A direction with Gondzio's corrector: products after trial steps return to the neighbourhood of the target."""
    at, scaling = newton.at, newton.scaling
    primal, dual = (predictor_corrector.trial_step(min(1.0, step)) for step in steps)
    s = newton.scaled + primal * scaling.apply_inverse(change.cones)
    z = newton.scaled + dual * scaling.apply(change.z)
    guesses = (at.guesses + primal * change.guesses) * (at.w + dual * change.w)
    surplus = (at.surplus + primal * change.surplus) * (at.prices + dual * change.prices)
    correction = newton.direction(
        newton.towards(centrality_correction(product(s, z), target)),
        predictor_corrector.centrality_correction(guesses, target),
        predictor_corrector.centrality_correction(surplus, target),
        whole=False,
    )
    return change.moved(correction, 1.0, 1.0)


def _max_steps(newton: Newton, change: State) -> tuple[float, float]:
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
