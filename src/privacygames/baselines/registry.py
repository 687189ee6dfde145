"""The registry of baselines that comparisons use by name; :func:`register` adds others."""

from collections.abc import Callable
from dataclasses import dataclass

from privacygames.baselines.exponential_mechanism import exponential, randomised_response
from privacygames.baselines.integer_noise import geometric, staircase
from privacygames.baselines.planar import planar_laplace
from privacygames.baselines.trivial import constant, uniform
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism

REMAP = "+remap"
"""Ending of the names of mechanisms whose outputs are post-processed by :func:`privacygames.baselines.remap`."""

RESERVED = ("optimal", "spanner")
"""Names of mechanisms that are designed, not baselines."""


@dataclass(frozen=True)
class Baseline:
    """A registered baseline.

    Attributes:
        make: makes the mechanism for a problem and, where the baseline has a parameter, a value of it.
        parametrised: whether ``make`` takes a parameter to calibrate: the larger, the less private the mechanism.
        needs_sensitivity: whether ``make`` takes the threshold of ε as ``sensitivity``.

    >>> pg.baselines.BASELINES["uniform"].parametrised
    False
    """

    make: Callable[..., Mechanism]
    parametrised: bool = True
    needs_sensitivity: bool = False


BASELINES = {
    "planar-laplace": Baseline(planar_laplace),
    "exponential": Baseline(exponential),
    "geometric": Baseline(geometric),
    "staircase": Baseline(staircase, needs_sensitivity=True),
    "randomised-response": Baseline(randomised_response),
    "uniform": Baseline(uniform, parametrised=False),
    "constant": Baseline(constant, parametrised=False),
}
"""Every baseline by name."""


def register(name: str, make: Callable[..., Mechanism], *, parametrised: bool = True) -> None:
    """Add a baseline of your own, for :func:`privacygames.calibrated_baselines` and :func:`privacygames.trade_off`.

    Args:
        name: what comparisons call it; with a parameter, ``name + "+remap"`` is known as well.
        make: ``make(problem, parameter)`` or, without a parameter, ``make(problem)`` returns the mechanism, or raises
            ``InvalidProblem`` where it does not suit the problem. :meth:`privacygames.Mechanism.from_probabilities`
            turns probabilities into a certified mechanism.
        parametrised: whether there is a parameter to calibrate: the larger, the less private the mechanism.

    Raises:
        InvalidProblem: the name is taken, or an argument has the wrong type.

    >>> def half_truth(problem, epsilon):
    ...     keep = 1 - np.exp(-epsilon)
    ...     table = keep * np.eye(len(problem.space)) + (1 - keep) / len(problem.space)
    ...     return pg.Mechanism.from_probabilities(problem, table, origin="half truth")
    >>> pg.baselines.register("half-truth", half_truth)
    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold", "none"])))
    >>> mechanism = pg.calibrated_baselines(problem, epsilon=1.0, names=["half-truth"])["half-truth"]()
    >>> bool(0.999 < pg.metrics.epsilon(mechanism, problem) <= 1)
    True
    >>> del pg.baselines.BASELINES["half-truth"]
    """
    if not isinstance(name, str) or not name.isprintable() or not name or name.endswith(REMAP):
        raise InvalidProblem(f"the name of a baseline must be a printable text that does not end in {REMAP!r}")
    if name in BASELINES or name in RESERVED:
        raise InvalidProblem(f"there is a mechanism {name!r} already: choose another name")
    if not callable(make):
        raise InvalidProblem(f"make must be a function that makes the mechanism {name!r}")
    BASELINES[name] = Baseline(make, parametrised)


def baseline_names() -> tuple[str, ...]:
    """The names of all baselines: those with a parameter, each also remapped, then the others.

    >>> pg.baselines.baseline_names()[:2]
    ('planar-laplace', 'planar-laplace+remap')
    """
    parametrised = [name for name, baseline in BASELINES.items() if baseline.parametrised]
    without_parameter = [name for name, baseline in BASELINES.items() if not baseline.parametrised]
    return (*(name + ending for name in parametrised for ending in ("", REMAP)), *without_parameter)
