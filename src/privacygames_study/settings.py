"""The parameters of a study: the paper's values by default, and coarse ones."""

from dataclasses import dataclass
from math import inf

from privacygames.errors import InvalidProblem

PARTS = ("scenario-1", "scenario-2", "scenario-3", "prior", "approximation", "robust")


@dataclass(frozen=True)
class Settings:
    """The parameters of all parts; ε is per km.

    Attributes:
        epsilons: of scenario 1, of the effect of the prior, and of guarantees against better informed adversaries.
        epsilons_2: of scenario 2 ("some values").
        shares: scenario 2's d_m, as shares of the way from the differential mechanism's privacy to the largest.
        epsilons_3: of scenario 3.
        step: scenario 3's d_m is every multiple of this, in km, and the largest possible.
        strengths: how many times likelier the evidence of a better informed adversary makes the likeliest places.
        places: how many places that is.
        epsilons_approximation: of appendix C.
        share_approximation: its d_m, as a share of the same way.
        radii: beyond which constraints are left out there, in km.
        coarse_cells: largest number of cells there, as blocks of the grid's, since only the slow solver applies.
        parts: the parts to run.

    >>> from privacygames_study import Settings
    >>> Settings(parts=("scenario-1",)).epsilons
    (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
    """

    epsilons: tuple[float, ...] = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
    epsilons_2: tuple[float, ...] = (0.3, 0.6, 0.9)
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)
    epsilons_3: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)
    step: float = 0.5
    strengths: tuple[float, ...] = (2.0, 5.0, 20.0)
    places: int = 2
    epsilons_approximation: tuple[float, ...] = (0.3, 0.6, 0.9)
    share_approximation: float = 0.5
    radii: tuple[float, ...] = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
    coarse_cells: int = 60
    parts: tuple[str, ...] = PARTS

    def __post_init__(self) -> None:
        for name in ("epsilons", "epsilons_2", "epsilons_3", "epsilons_approximation", "radii", "shares", "strengths"):
            values = getattr(self, name)
            if not values or not all(0 < value < inf for value in values) or len(set(values)) < len(values):
                raise InvalidProblem(f"{name} must be positive numbers, one at least, each given once")
        if not all(share <= 1 for share in (*self.shares, self.share_approximation)) or not all(
            strength >= 1 for strength in self.strengths
        ):
            raise InvalidProblem("shares must be at most 1, and strengths at least 1 (which is no evidence)")
        if not self.step > 0 or self.places < 1 or self.coarse_cells < 1:
            raise InvalidProblem("step must be a positive number of km, and places and coarse_cells at least 1")
        for part in self.parts:
            if part not in PARTS:
                raise InvalidProblem(f"there is no part {part!r}; choose from {', '.join(PARTS)}")


QUICK = Settings(
    epsilons=(0.3, 0.6, 0.9),
    epsilons_2=(0.6,),
    shares=(0.3, 0.7),
    epsilons_3=(0.4, 0.8),
    step=1.0,
    strengths=(2.0, 10.0),
    epsilons_approximation=(0.6,),
    radii=(3.0, 6.0),
    coarse_cells=30,
)
"""Coarse settings for a run of a minute."""
