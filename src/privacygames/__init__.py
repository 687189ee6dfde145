"""privacygames: optimal obfuscation mechanisms with differential and distortion privacy guarantees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privacygames import approximations, attacks, metrics, plots, study, traces
    from privacygames.bounds import Bounds
    from privacygames.comparison import Comparison, compare, trade_off
    from privacygames.designer import design
    from privacygames.errors import (
        BrokenPromise,
        Infeasible,
        InvalidFile,
        InvalidProblem,
        PrivacyGamesError,
        SolveFailed,
        UnknownLabel,
    )
    from privacygames.finder import Found, find
    from privacygames.matching import contenders
    from privacygames.mechanism import baselines
    from privacygames.mechanism.certificate import Certificate
    from privacygames.mechanism.mechanism import Mechanism, load
    from privacygames.mechanism.verify import verify
    from privacygames.metrics import Report, evaluate
    from privacygames.prior import Prior
    from privacygames.problem import Problem, max_distortion
    from privacygames.solvers.highs import Highs
    from privacygames.solvers.interior import Interior
    from privacygames.solvers.solution import Progress
    from privacygames.spaces import Categories, Graph, Grid, Numbers, Sets, Space, Subsets
    from privacygames.ties import TieBreak, break_ties
    from privacygames.words import in_words

_HOMES = {
    "approximations": "approximations:",
    "attacks": "attacks:",
    "metrics": "metrics:",
    "plots": "plots:",
    "study": "study:",
    "traces": "traces:",
    "baselines": "mechanism.baselines:",
    "Bounds": "bounds",
    **dict.fromkeys(("Comparison", "compare", "trade_off"), "comparison"),
    "contenders": "matching",
    "design": "designer",
    **dict.fromkeys(
        (
            "BrokenPromise",
            "Infeasible",
            "InvalidFile",
            "InvalidProblem",
            "PrivacyGamesError",
            "SolveFailed",
            "UnknownLabel",
        ),
        "errors",
    ),
    "Found": "finder",
    "find": "finder",
    "Certificate": "mechanism.certificate",
    "Mechanism": "mechanism.mechanism",
    "load": "mechanism.mechanism",
    "verify": "mechanism.verify",
    "Report": "metrics",
    "evaluate": "metrics",
    "Prior": "prior",
    "Problem": "problem",
    "max_distortion": "problem",
    "Highs": "solvers.highs",
    "Interior": "solvers.interior",
    "Progress": "solvers.solution",
    "TieBreak": "ties",
    "break_ties": "ties",
    "in_words": "words",
    **dict.fromkeys(("Categories", "Graph", "Grid", "Numbers", "Sets", "Space", "Subsets"), "spaces"),
}
"""Where each public name lives (a trailing colon: the module itself). Read on first use: imports stay quick."""

__all__ = [
    "Bounds",
    "BrokenPromise",
    "Categories",
    "Certificate",
    "Comparison",
    "Found",
    "Graph",
    "Grid",
    "Highs",
    "Infeasible",
    "Interior",
    "InvalidFile",
    "InvalidProblem",
    "Mechanism",
    "Numbers",
    "Prior",
    "PrivacyGamesError",
    "Problem",
    "Progress",
    "Report",
    "Sets",
    "SolveFailed",
    "Space",
    "Subsets",
    "TieBreak",
    "UnknownLabel",
    "approximations",
    "attacks",
    "baselines",
    "break_ties",
    "compare",
    "contenders",
    "design",
    "evaluate",
    "find",
    "in_words",
    "load",
    "max_distortion",
    "metrics",
    "plots",
    "study",
    "traces",
    "trade_off",
    "verify",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"privacygames has no public name {name!r}")
    module = import_module(f"privacygames.{home.rstrip(':')}")
    value = module if home.endswith(":") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
