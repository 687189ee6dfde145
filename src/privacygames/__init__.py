"""privacygames: optimal obfuscation mechanisms with differential and distortion privacy guarantees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from privacygames import approximations, baselines, fleet, study, tables, traces
    from privacygames.analysis import (
        Comparison,
        Report,
        SearchResult,
        TieBreak,
        attacks,
        break_ties,
        calibrated_baselines,
        compare,
        evaluate,
        metrics,
        tightest_bound,
        trade_off,
    )
    from privacygames.beliefs import Mobility, Prior
    from privacygames.certificates import Certificate
    from privacygames.designer import design, effort
    from privacygames.errors import (
        BudgetExceeded,
        Cancelled,
        GuaranteeViolated,
        Infeasible,
        InvalidFile,
        InvalidProblem,
        PrivacyGamesError,
        SolveFailed,
        StaleFleet,
        Status,
        TooLarge,
        UnknownLabel,
        UnreadableFile,
        UselessMechanism,
    )
    from privacygames.mechanism import Mechanism, PublicMechanism, load, load_public, verify
    from privacygames.presentation import explain, plots
    from privacygames.problem import Adversary, Bounds, Problem, max_distortion
    from privacygames.progress import Cancellation, Progress
    from privacygames.releases import (
        Budget,
        Guarantees,
        InferenceTarget,
        Ledger,
        Release,
        Releases,
        policies,
        replays,
        tracking,
    )
    from privacygames.solvers import Highs, Interior, Solution, SolveEstimate, SolveOptions, Solver
    from privacygames.spaces import Categories, Graph, Grid, Label, Numbers, Product, Sets, Space, Subsets
    from privacygames.tables import estimate

_ROOMS = {
    "analysis": (
        *(
            "Comparison",
            "SearchResult",
            "Report",
            "TieBreak",
            "attacks",
            "break_ties",
            "compare",
            "calibrated_baselines",
            "evaluate",
        ),
        *("tightest_bound", "metrics", "trade_off"),
    ),
    "beliefs": ("Mobility", "Prior"),
    "certificates": ("Certificate",),
    "designer": ("design", "effort"),
    "errors": (
        *("GuaranteeViolated", "BudgetExceeded", "Cancelled", "Infeasible", "InvalidFile", "InvalidProblem"),
        "PrivacyGamesError",
        *("SolveFailed", "StaleFleet", "Status", "TooLarge", "UnknownLabel", "UnreadableFile"),
        "UselessMechanism",
    ),
    "progress": ("Cancellation", "Progress"),
    "mechanism": ("Mechanism", "PublicMechanism", "load", "load_public", "verify"),
    "presentation": ("explain", "plots"),
    "problem": ("Adversary", "Bounds", "Problem", "max_distortion"),
    "releases": (
        "Budget",
        "Guarantees",
        "Ledger",
        "InferenceTarget",
        "Release",
        "Releases",
        "policies",
        "replays",
        "tracking",
    ),
    "solvers": ("SolveEstimate", "Highs", "Interior", "Solution", "SolveOptions", "Solver"),
    "spaces": ("Categories", "Graph", "Grid", "Label", "Numbers", "Product", "Sets", "Space", "Subsets"),
    "tables": ("estimate",),
}
"""Which room each public name lives in. Read on first use: imports stay quick."""

_WHOLE = ("approximations", "baselines", "fleet", "study", "tables", "traces")
"""Rooms that are public names themselves."""

_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Adversary",
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Cancellation",
    "Cancelled",
    "Categories",
    "Certificate",
    "Comparison",
    "Graph",
    "Grid",
    "GuaranteeViolated",
    "Guarantees",
    "Highs",
    "Infeasible",
    "InferenceTarget",
    "Interior",
    "InvalidFile",
    "InvalidProblem",
    "Label",
    "Ledger",
    "Mechanism",
    "Mobility",
    "Numbers",
    "Prior",
    "PrivacyGamesError",
    "Problem",
    "Product",
    "Progress",
    "PublicMechanism",
    "Release",
    "Releases",
    "Report",
    "SearchResult",
    "Sets",
    "Solution",
    "SolveEstimate",
    "SolveFailed",
    "SolveOptions",
    "Solver",
    "Space",
    "StaleFleet",
    "Status",
    "Subsets",
    "TieBreak",
    "TooLarge",
    "UnknownLabel",
    "UnreadableFile",
    "UselessMechanism",
    "__version__",
    "approximations",
    "attacks",
    "baselines",
    "break_ties",
    "calibrated_baselines",
    "compare",
    "design",
    "effort",
    "estimate",
    "evaluate",
    "explain",
    "fleet",
    "load",
    "load_public",
    "max_distortion",
    "metrics",
    "plots",
    "policies",
    "replays",
    "study",
    "tables",
    "tightest_bound",
    "traces",
    "tracking",
    "trade_off",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("privacygames")
    if name in _WHOLE:
        return import_module(f"privacygames.{name}")
    if name not in _HOMES:
        raise AttributeError(f"privacygames has no public name {name!r}")
    value = getattr(import_module(f"privacygames.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
