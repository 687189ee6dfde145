"""Budgets as the command line writes them: ``2``, ``0.5/24h``, ``4/24h,delta=1e-6,within=1``."""

from typing import TYPE_CHECKING

from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.releases import Budget

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
"""The units of windows, in seconds."""

BUDGET_FORMS = (
    "Largest total epsilon: 2, or 0.5/24h in every sliding 24 hours. Or 4/24h,delta=1e-6,within=1: epsilon 4 for all "
    "releases together, failing with probability delta, between secrets at most 1 (km) apart at every release."
)
"""The forms of a budget, for help."""


def parse_budget(text: str, delta: float | None = None, within: float | None = None) -> "Budget":
    """A budget from its text.

    Args:
        text: what the command line gives.
        delta: the probability that it may fail, where the text says none.
        within: the distance that it then holds for.
    """
    from privacygames.releases import Budget

    limit, *settings = text.split(",")
    amount, slash, window = limit.partition("/")
    try:
        values = dict(_setting(each) for each in settings)
        if len(values) < len(settings):
            raise KeyError
        every = None
        if slash:
            every = float(window[:-1]) * UNITS[window[-1]] if window[-1:] in UNITS else float(window)
        if values and delta is not None:
            raise InvalidProblem("it says its own delta: leave --delta out")
        stated = values if delta is None else {"delta": delta, "within": within}
        return Budget(float(amount), every=every, delta=stated.get("delta"), within=stated.get("within"))
    except (ValueError, KeyError) as error:
        if isinstance(error, InvalidProblem):
            raise InvalidProblem(f"--budget {text[:40]}: {error}") from None
        raise InvalidProblem(
            "--budget takes an epsilon such as 2, one per window such as 0.5/24h, or one with a probability of failure "
            f"such as 4/24h,delta=1e-6,within=1; got {text[:40]!r}"
        ) from None


def _setting(text: str) -> tuple[str, float]:
    """The name and value of ``delta=1e-6`` or ``within=1``."""
    name, _, value = text.strip().partition("=")
    if name not in ("delta", "within"):
        raise KeyError(name)
    return name, float(value)
