"""privacygames: optimal obfuscation mechanisms with differential and distortion privacy guarantees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers read; at run time each name is imported on first use
    __version__: str
    from privacygames import (
        approximations as approximations,
        attacks as attacks,
        baselines as baselines,
        composition as composition,
        device as device,
        fleet as fleet,
        leakage as leakage,
        metrics as metrics,
        place_attacks as place_attacks,
        plots as plots,
        points as points,
        policies as policies,
        tables as tables,
        traces as traces,
        tracking as tracking,
    )
    from privacygames.analysis import (
        Comparison as Comparison,
        Finding as Finding,
        PointComparison as PointComparison,
        PointReport as PointReport,
        Report as Report,
        TightestBound as TightestBound,
        TieBreak as TieBreak,
        break_ties as break_ties,
        calibrated_baselines as calibrated_baselines,
        compare as compare,
        evaluate as evaluate,
        tightest_bound as tightest_bound,
        trade_off as trade_off,
    )
    from privacygames.beliefs import (
        Mobility as Mobility,
        PointPrior as PointPrior,
        Prior as Prior,
    )
    from privacygames.certificates import (
        AdversaryDuals as AdversaryDuals,
        Certificate as Certificate,
        DualSolution as DualSolution,
        RatioDuals as RatioDuals,
    )
    from privacygames.designer import (
        design as design,
        estimate_solve as estimate_solve,
    )
    from privacygames.errors import (
        BudgetExceeded as BudgetExceeded,
        Cancelled as Cancelled,
        GuaranteeViolated as GuaranteeViolated,
        Infeasible as Infeasible,
        InvalidFile as InvalidFile,
        InvalidProblem as InvalidProblem,
        PrivacyGamesError as PrivacyGamesError,
        SolveFailed as SolveFailed,
        StaleFleet as StaleFleet,
        StoreUnavailable as StoreUnavailable,
        Status as Status,
        TooLarge as TooLarge,
        UnknownLabel as UnknownLabel,
        UnreadableFile as UnreadableFile,
        UselessMechanism as UselessMechanism,
    )
    from privacygames.many_designs import (
        design_many as design_many,
    )
    from privacygames.mechanism import (
        EpsilonGuarantee as EpsilonGuarantee,
        FiniteMechanism as FiniteMechanism,
        Mechanism as Mechanism,
        PublicMechanism as PublicMechanism,
        RowSampler as RowSampler,
        Sampleable as Sampleable,
    )
    from privacygames.mechanism_files import (
        load as load,
        load_public as load_public,
        verify as verify,
    )
    from privacygames.points import (
        PointMechanism as PointMechanism,
        PointProblem as PointProblem,
    )
    from privacygames.policy_comparison import (
        PolicyComparison as PolicyComparison,
        PolicyRow as PolicyRow,
        compare_policies as compare_policies,
    )
    from privacygames.presentation import (
        explain as explain,
    )
    from privacygames.problem import (
        Adversary as Adversary,
        Bounds as Bounds,
        Problem as Problem,
        max_distortion as max_distortion,
    )
    from privacygames.problem_files import (
        read_problem as read_problem,
    )
    from privacygames.progress import (
        Cancellation as Cancellation,
        Progress as Progress,
    )
    from privacygames.releases import (
        Budget as Budget,
        FixedReleases as FixedReleases,
        Guarantees as Guarantees,
        InferenceTarget as InferenceTarget,
        Ledger as Ledger,
        LedgerStore as LedgerStore,
        PlaceGuarantee as PlaceGuarantee,
        PointReleases as PointReleases,
        Release as Release,
        Releases as Releases,
    )
    from privacygames.solvers import (
        Highs as Highs,
        Interior as Interior,
        InteriorSettings as InteriorSettings,
        Solution as Solution,
        SolveEstimate as SolveEstimate,
        SolveOptions as SolveOptions,
        Solver as Solver,
    )
    from privacygames.spaces import (
        Area as Area,
        Categories as Categories,
        Graph as Graph,
        Grid as Grid,
        Interval as Interval,
        Label as Label,
        Numbers as Numbers,
        Places as Places,
        Product as Product,
        Region as Region,
        Sets as Sets,
        Space as Space,
        Subsets as Subsets,
        register_space as register_space,
    )
    from privacygames.tables import (
        estimate as estimate,
    )

_PACKAGES = {
    "analysis": (
        "Comparison",
        "Finding",
        "PointComparison",
        "PointReport",
        "Report",
        "TightestBound",
        "TieBreak",
        "break_ties",
        "calibrated_baselines",
        "compare",
        "evaluate",
        "tightest_bound",
        "trade_off",
    ),
    "beliefs": (
        "Mobility",
        "PointPrior",
        "Prior",
    ),
    "certificates": (
        "AdversaryDuals",
        "Certificate",
        "DualSolution",
        "RatioDuals",
    ),
    "designer": (
        "design",
        "estimate_solve",
    ),
    "errors": (
        "BudgetExceeded",
        "Cancelled",
        "GuaranteeViolated",
        "Infeasible",
        "InvalidFile",
        "InvalidProblem",
        "PrivacyGamesError",
        "SolveFailed",
        "StaleFleet",
        "StoreUnavailable",
        "Status",
        "TooLarge",
        "UnknownLabel",
        "UnreadableFile",
        "UselessMechanism",
    ),
    "many_designs": ("design_many",),
    "mechanism": (
        "EpsilonGuarantee",
        "FiniteMechanism",
        "Mechanism",
        "PublicMechanism",
        "RowSampler",
        "Sampleable",
    ),
    "mechanism_files": (
        "load",
        "load_public",
        "verify",
    ),
    "points": (
        "PointMechanism",
        "PointProblem",
    ),
    "policy_comparison": (
        "PolicyComparison",
        "PolicyRow",
        "compare_policies",
    ),
    "presentation": ("explain",),
    "problem": (
        "Adversary",
        "Bounds",
        "Problem",
        "max_distortion",
    ),
    "problem_files": ("read_problem",),
    "progress": (
        "Cancellation",
        "Progress",
    ),
    "releases": (
        "Budget",
        "FixedReleases",
        "Guarantees",
        "InferenceTarget",
        "Ledger",
        "LedgerStore",
        "PlaceGuarantee",
        "PointReleases",
        "Release",
        "Releases",
    ),
    "solvers": (
        "Highs",
        "Interior",
        "InteriorSettings",
        "Solution",
        "SolveEstimate",
        "SolveOptions",
        "Solver",
    ),
    "spaces": (
        "Area",
        "Categories",
        "Graph",
        "Grid",
        "Interval",
        "Label",
        "Numbers",
        "Places",
        "Product",
        "Region",
        "Sets",
        "Space",
        "Subsets",
        "register_space",
    ),
    "tables": ("estimate",),
}
"""The package or module that defines each public name, so that importing privacygames loads nothing else."""

_MODULES = (
    "approximations",
    "attacks",
    "baselines",
    "composition",
    "device",
    "fleet",
    "leakage",
    "metrics",
    "place_attacks",
    "plots",
    "points",
    "policies",
    "tables",
    "traces",
    "tracking",
)
"""Modules and packages that are public themselves."""

_DEFINED_IN = {name: package for package, names in _PACKAGES.items() for name in names}

__all__ = list(sorted((*_DEFINED_IN, *_MODULES, "__version__")))  # noqa: C413


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("privacygames.version").VERSION
    if name in _MODULES:
        return import_module(f"privacygames.{name}")
    if name not in _DEFINED_IN:
        raise AttributeError(f"privacygames has no public name {name!r}")
    value = getattr(import_module(f"privacygames.{_DEFINED_IN[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
