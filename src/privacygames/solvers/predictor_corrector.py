"""Pieces that primal-dual interior-point methods share: step lengths, centring, centrality correctors."""

from privacygames.arrays import FloatArray

MIN_CENTRING = 1e-4
BOUNDARY_FRACTION = 0.995
"""How much of the way to the boundary a step goes."""

CENTRAL_NEIGHBOURHOOD = 10.0
"""Products within this factor of the target count as central."""

MIN_STEP_GAIN = 0.02
"""A corrector that lengthens the steps by less than this, together, is not worth another."""


def max_step(value: FloatArray, change: FloatArray) -> float:
    """The largest step, at most 1, that keeps value + step·change ≥ 0."""
    return step_from_ratio(float((-change / value).max()) if all(value.shape) else 0.0)


def step_from_ratio(fastest: float) -> float:
    """The largest step, at most 1, where one uses up this share of what limits it soonest."""
    return 1.0 if fastest <= 1 else 1 / fastest


def back_off(step: float) -> float:
    """A step that stays inside."""
    return min(1.0, BOUNDARY_FRACTION * step)


def trial_step(step: float) -> float:
    """How far Gondzio's correctors look beyond a step."""
    return min(1.0, 1.5 * step + 0.1)


def centring_parameter(left: float) -> float:
    """Mehrotra's heuristic: how much to centre, given the share of the products that a plain step would leave."""
    return min(1.0, max(left**3, MIN_CENTRING))


def centrality_correction(product: FloatArray, target: float) -> FloatArray:
    """Gondzio's correction: what brings outlying products back to the neighbourhood of the target."""
    low, high = target / CENTRAL_NEIGHBOURHOOD, target * CENTRAL_NEIGHBOURHOOD
    return (product.clip(low, high) - product).clip(min=-high)
