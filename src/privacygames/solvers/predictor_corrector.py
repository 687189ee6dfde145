"""Pieces that primal-dual interior-point methods share: step lengths, centring, centrality correctors."""

from privacygames.arrays import FloatArray

LEAST_CENTRING = 1e-4
BACK_OFF = 0.995
"""How much of the way to the boundary a step goes."""

NEIGHBOURHOOD = 10.0
"""Products within this factor of the target count as central."""

WORTHWHILE = 0.02
"""A corrector that lengthens the steps by less than this, together, is not worth another."""


def longest(value: FloatArray, change: FloatArray) -> float:
    """The largest step, at most 1, that keeps value + step·change ≥ 0."""
    return longest_at(float((-change / value).max()) if all(value.shape) else 0.0)


def longest_at(fastest: float) -> float:
    """The largest step, at most 1, where one uses up this share of what limits it soonest."""
    return 1.0 if fastest <= 1 else 1 / fastest


def shortened(step: float) -> float:
    """A step that stays inside."""
    return min(1.0, BACK_OFF * step)


def farther(step: float) -> float:
    """How far Gondzio's correctors look beyond a step."""
    return min(1.0, 1.5 * step + 0.1)


def centring(left: float) -> float:
    """Mehrotra's heuristic: how much to centre, given the share of the products that a plain step would leave."""
    return min(1.0, max(left**3, LEAST_CENTRING))


def centrality(product: FloatArray, target: float) -> FloatArray:
    """Gondzio's correction: what brings outlying products back to the neighbourhood of the target."""
    low, high = target / NEIGHBOURHOOD, target * NEIGHBOURHOOD
    return (product.clip(low, high) - product).clip(min=-high)
