"""Adversaries: the belief each has about the secret, and what each tries to guess."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, content_hash, require_nonnegative
from privacygames.beliefs import PointPrior, Prior
from privacygames.canonical import digest_of
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.immutable import Value
from privacygames.problem.problem import MAX_ENTRIES, Problem, distortion_rounding
from privacygames.spaces import Categories, Label, Space, label_text, space_digest
from privacygames.validation import as_ordered_list, is_number, require_instance

MAX_NAME_LENGTH = 100
"""Characters in an adversary's name: it fits a line of a table or a message."""

SUM_TOLERANCE = 1e-9
"""How far from 1 the sums of conditional distributions may be: rounding of numbers with nine digits, and no more."""


class Adversary(Value):
    """An adversary to be private against: a belief π_k over secrets, and a table of errors E_k(g, s).

    E_k(g, s) is the error of guess g when the secret is s; guesses are any finite set, and no entry need be zero.
    Distortion privacy against the adversary is the expected error of their best guesses: A_k(p) = Σ_o min_g Σ_s π_k(s)
    p(o|s) E_k(g, s). What is left out is the problem's: ``Adversary("the paper's")`` knows the prior and guesses the
    secret.

    Args:
        name: what messages, tables and files call the adversary.
        prior: the adversary's belief; by default the problem's prior. Where secrets are points, a
            :class:`privacygames.PointPrior`.
        errors: E_k, (guesses, secrets), 0 or more; by default the problem's distance: they guess the secret. Where
            secrets are points, the columns are the points of the belief, in their order.
        guesses: names for the rows of ``errors``; by default they are numbered.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> health = pg.Categories(["ill", "well"])
    >>> insurer = pg.Adversary("insurer", errors=[[0, 0, 1], [1, 1, 0]], guesses=health)
    >>> mechanism = pg.design(problem, distortion={insurer: 0.4})
    >>> round(pg.metrics.adversary_error(mechanism, problem, insurer), 3)
    0.4
    """

    name: str
    prior: Prior | PointPrior | None
    errors: FloatArray | None
    guesses: Space | None

    def __init__(
        self,
        name: str,
        *,
        prior: Prior | PointPrior | None = None,
        errors: ArrayLike | None = None,
        guesses: Space | None = None,
    ) -> None:
        if not (isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= MAX_NAME_LENGTH):
            raise InvalidProblem(f"an adversary's name must be a printable text of 1 to {MAX_NAME_LENGTH} characters")
        if prior is not None and not isinstance(prior, PointPrior):
            require_instance(prior, Prior, f"the prior of {name!r}")
        if guesses is not None:
            require_instance(guesses, Space, f"the guesses of {name!r}")
        if errors is None and guesses is not None:
            raise InvalidProblem(f"the guesses of {name!r} name the rows of their errors; give errors, too")
        table = None if errors is None else _table(name, errors, prior, guesses)
        self._fill(name=name, prior=prior, errors=table, guesses=guesses)

    @classmethod
    def of_attribute(
        cls,
        name: str,
        *,
        given: ArrayLike,
        errors: ArrayLike | None = None,
        guesses: Space | None = None,
        prior: Prior | PointPrior | None = None,
    ) -> Self:
        """An adversary who guesses not the secret but an attribute that depends on it.

        The errors are E(â, s) = Σ_a P(a|s) e(â, a).

        Args:
            name: what to call the adversary.
            given: P(a|s), (secrets, attributes); every row sums to one, as a mechanism's does.
            errors: e(â, a), (guesses, attributes); by default the distance of the space ``guesses``, or 1 for every
                wrong value and 0 for the right one.
            guesses: names for the guesses; by default they are numbered.
            prior: the adversary's belief about the secret; by default the problem's prior.

        >>> pg.Adversary.of_attribute("tenant?", given=[[0.9, 0.1], [0.2, 0.8]]).errors
        array([[0.1, 0.8],
               [0.9, 0.2]])
        """
        shares = as_floats(given, f"given of {name!r}")
        if shares.ndim != 2 or not shares.size:
            raise InvalidProblem(f"given of {name!r} must be a table (secrets, attributes)")
        chances = require_nonnegative(
            shares, what=f"given of {name!r}", shape=shares.shape, meaning="(secrets, attributes)"
        )
        if (np.abs(chances.sum(axis=1) - 1) > SUM_TOLERANCE).any():
            raise InvalidProblem(
                f"every row of given of {name!r} must sum to 1: P(·|s) is a distribution over attributes"
            )
        count = chances.shape[1]
        if errors is None and count**2 > MAX_ENTRIES:
            raise TooLarge(f"{name!r} has {count} attributes: their table of errors would be too large; give errors")
        if errors is not None:
            wrong = as_floats(errors, f"the errors of {name!r}")
        elif guesses is not None and len(guesses) == count:
            wrong = guesses.distance(guesses.default_distance)
        else:
            wrong = 1.0 - np.eye(count)
        if wrong.ndim != 2 or wrong.shape[1] != count:
            raise InvalidProblem(
                f"the errors of {name!r} have shape {wrong.shape}; {count} attributes need (guesses, {count})"
            )
        per_attribute = require_nonnegative(
            wrong, what=f"the errors of {name!r}", shape=wrong.shape, meaning="(guesses, attributes)"
        )
        if len(per_attribute) * len(chances) > MAX_ENTRIES:
            raise TooLarge(f"{name!r} has {len(per_attribute)} guesses about {len(chances)} secrets: too many to hold")
        return cls(name, prior=prior, errors=per_attribute @ chances.T, guesses=guesses)

    @classmethod
    def from_table(
        cls,
        name: str,
        space: Space,
        table: Iterable[tuple[Label, Label]] | Mapping[tuple[Label, Label], float],
        *,
        errors: ArrayLike | None = None,
        attributes: Space | None = None,
        smoothing: float = 0.0,
        prior: Prior | PointPrior | None = None,
    ) -> Self:
        """An adversary who guesses an attribute, P(a|s) counted from a table of (secret, attribute).

        Args:
            name: what to call the adversary.
            space: the secrets.
            table: pairs of a secret and its attribute, one a case; or a mapping from pairs to how often each occurs.
            errors: as in :meth:`of_attribute`.
            attributes: the values the attribute may have; by default those that occur, in the order they do.
            smoothing: added to how often each value occurs with each secret. Without it, every secret must occur.
            prior: as in :meth:`of_attribute`.

        >>> pairs = [("home", "west"), ("home", "west"), ("work", "east")]
        >>> pg.Adversary.from_table("side", pg.Categories(["home", "work"]), pairs).errors
        array([[0., 1.],
               [1., 0.]])
        """
        require_instance(space, Space, "the space of secrets")
        cases = _cases(name, table)
        if not (is_number(smoothing) and 0 <= smoothing < np.inf):
            raise InvalidProblem(f"smoothing is {repr(smoothing)[:40]}; it must be a number, 0 or more")
        values = attributes or Categories(list(dict.fromkeys(label_text(value) for _, value in cases)))
        counts = np.full((len(space), len(values)), float(smoothing))
        for (secret, value), times in cases.items():
            label = value if attributes is not None else label_text(value)
            counts[space.index(secret), values.index(label)] += times
        totals = require_nonnegative(counts, what=f"the table of {name!r}", shape=counts.shape, meaning="counts").sum(
            axis=1
        )
        if not (totals > 0).all():
            raise InvalidProblem(
                f"{int((totals == 0).sum())} of {len(space)} secrets do not occur in the table of {name!r}: nothing "
                "says what their attribute is; add them, or give smoothing > 0"
            )
        own = errors is not None and len(as_floats(errors, f"the errors of {name!r}")) != len(values)
        given = counts / totals[:, None]
        return cls.of_attribute(name, given=given, errors=errors, guesses=None if own else values, prior=prior)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        errors = None if self.errors is None else content_hash(self.errors)
        return self.name, self.prior, errors, self.guesses

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the name and the exact numbers; what is left out counts as left out."""
        prior = None if self.prior is None else content_hash(self.prior.probabilities)
        if isinstance(self.prior, PointPrior):
            prior = digest_of("points", prior, content_hash(self.prior.xy))
        errors = None if self.errors is None else content_hash(self.errors)
        guesses = None if self.guesses is None else space_digest(self.guesses)
        return digest_of("adversary", self.name, prior, errors, guesses)

    def require_fit(self, problem: Problem) -> None:
        """Raise unless the belief and errors are about the problem's secrets."""
        if self.prior is not None and (isinstance(self.prior, PointPrior) or self.prior.space != problem.space):
            raise InvalidProblem(f"{self.name!r} has a prior over other secrets than the problem's")
        if self.errors is not None and self.errors.shape[1] != len(problem.space):
            raise InvalidProblem(
                f"the errors of {self.name!r} are about {self.errors.shape[1]} secrets and the problem has "
                f"{len(problem.space)}: give shape (guesses, secrets)"
            )

    def arrays(self, problem: Problem) -> "AdversaryArrays":
        """The adversary as arrays, with the problem's prior and distance for what is left out."""
        self.require_fit(problem)
        return self.arrays_for(problem.prior.probabilities, problem.distance)

    def arrays_for(self, prior: FloatArray, distance: FloatArray, distortion: float | None = None) -> "AdversaryArrays":
        """The adversary as arrays, with these for what is left out, and the distortion guaranteed against them."""
        return AdversaryArrays(
            self.name,
            prior if self.prior is None else self.prior.probabilities,
            distance if self.errors is None else self.errors,
            distortion,
        )

    def guess_space(self, secrets: Space) -> Space:
        """The space of guesses: by their names, by numbers, or the secrets themselves."""
        if self.errors is None:
            return secrets
        return self.guesses or Categories([f"guess {number}" for number in range(1, len(self.errors) + 1)])

    def __repr__(self) -> str:
        belief = "the problem's prior" if self.prior is None else "a prior of their own"
        target = "the secret" if self.errors is None else f"one of {len(self.errors)} guesses"
        return f"Adversary({self.name!r}, {belief}, {target})"


@dataclass(frozen=True)
class AdversaryArrays:
    """An adversary as arrays.

    Attributes:
        name: the adversary's.
        prior: π_k(s).
        errors: E_k(g, s), (guesses, secrets).
        distortion: the distortion guaranteed against them; None where it is maximised, or none is guaranteed.
    """

    name: str
    prior: FloatArray
    errors: FloatArray
    distortion: float | None = None

    @property
    def joint_errors(self) -> FloatArray:
        """π_k(s) E_k(g, s), (guesses, secrets)."""
        return self.errors * self.prior

    @cached_property
    def max_distortion(self) -> float:
        """The expected error of the best guess without an output: no mechanism has more distortion privacy."""
        return float((self.errors @ self.prior).min())


def max_distortion(problem: Problem, adversary: Adversary | None = None) -> float:
    r"""The largest distortion privacy of any mechanism: d_m^max, the error of the best guess from the prior alone.

    .. math:: d_m^{max} = \min_{ŝ} \sum_s π(s)\,d(ŝ,s)

    Rounded down by some units in the last place, so that it can be guaranteed and verified.

    Args:
        problem: the problem.
        adversary: against whom; by default one who knows the problem's prior and guesses the secret.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> round(pg.max_distortion(pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))), 6)
    0.5
    """
    require_instance(problem, Problem, "the problem")
    if adversary is None:
        error = float((problem.distance @ problem.prior.probabilities).min())
    else:
        error = require_instance(adversary, Adversary, "the adversary").arrays(problem).max_distortion
    return error * (1 - 4 * distortion_rounding(problem))


def mixture_groups(adversaries: Sequence[Adversary]) -> list[list[Adversary]]:
    """Groups of two or more adversaries with equal errors and different beliefs."""
    by_errors: dict[object, list[Adversary]] = {}
    for adversary in adversaries:
        errors = None if adversary.errors is None else content_hash(adversary.errors)
        by_errors.setdefault(errors, []).append(adversary)
    return [group for group in by_errors.values() if len({adversary.prior for adversary in group}) > 1]


def _cases(name: str, table: object) -> dict[tuple[Label, Label], float]:
    """How often each pair of a secret and an attribute occurs; messages show neither."""
    try:
        listed = None if isinstance(table, Mapping) else as_ordered_list(table, f"the table of {name!r}")
        cases = dict(table) if listed is None else dict(Counter(map(tuple, listed)))  # type: ignore[call-overload]
    except TypeError:
        cases = {}
    if not cases or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in cases):
        raise InvalidProblem(f"the table of {name!r} must have pairs of a secret and an attribute, one at least")
    if not all(is_number(times) and 0 <= times < np.inf for times in cases.values()):
        raise InvalidProblem(f"the table of {name!r} must say how often each pair occurs: numbers, 0 or more")
    return cases


def _table(name: str, errors: ArrayLike, prior: Prior | PointPrior | None, guesses: Space | None) -> FloatArray:
    """The errors, checked as far as they can be without a problem."""
    given = as_floats(errors, f"the errors of {name!r}")
    if given.ndim != 2 or not given.size:
        raise InvalidProblem(f"the errors of {name!r} must be a table (guesses, secrets); got shape {given.shape}")
    secrets = given.shape[1] if prior is None else len(prior.probabilities)
    rows = len(given) if guesses is None else len(guesses)
    return require_nonnegative(
        given, what=f"the errors of {name!r}", shape=(rows, secrets), meaning="(guesses, secrets)"
    )
