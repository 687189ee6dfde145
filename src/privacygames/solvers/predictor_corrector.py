"""Rules that the primal-dual interior-point methods share: step lengths, centring, centrality correctors."""

from privacygames.arrays import FloatArray

BOUNDARY_FRACTION = 0.995
"""Fraction of the way to the boundary that a step goes."""

MIN_CENTRING = 1e-4
"""Least centring parameter: a step reduces the complementarity by no more than this factor."""

CENTRAL_NEIGHBOURHOOD = 10.0
"""Factor of the target within which a product slack · dual counts as central."""

MIN_STEP_GAIN = 0.02
"""Gain in the primal and dual step lengths, added up, below which another corrector is not worth its time."""

TRIAL_STEP_FACTOR, TRIAL_STEP_INCREMENT = 1.5, 0.1
"""Gondzio's correctors look ahead to this multiple of the present step length, plus this increment."""


def max_step(value: FloatArray, change: FloatArray) -> float:
    """The largest step length, at most 1, that keeps value + step·change ≥ 0."""
    return step_from_ratio(float((-change / value).max()) if all(value.shape) else 0.0)


def step_from_ratio(ratio: float) -> float:
    """The largest step length, at most 1, given the largest ratio −change/value."""
    return 1.0 if ratio <= 1 else 1 / ratio


def back_off(step: float, fraction: float = BOUNDARY_FRACTION) -> float:
    """A step length that stays clear of the boundary."""
    return min(1.0, fraction * step)


def trial_step(step: float, factor: float = TRIAL_STEP_FACTOR, increment: float = TRIAL_STEP_INCREMENT) -> float:
    """The step length that Gondzio's correctors look ahead to."""
    return min(1.0, factor * step + increment)


def centring_parameter(remaining: float, least: float = MIN_CENTRING) -> float:
    """Mehrotra's σ, given the fraction of the complementarity that the affine direction would leave."""
    return min(1.0, max(remaining**3, least))


def centrality_correction(
    product: FloatArray, target: float, neighbourhood: float = CENTRAL_NEIGHBOURHOOD
) -> FloatArray:
    """Gondzio's correction: the change that brings outlying products back to the neighbourhood of the target."""
    low, high = target / neighbourhood, target * neighbourhood
    return (product.clip(low, high) - product).clip(min=-high)
