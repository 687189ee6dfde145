"""A mechanism without its prior: weights, distances and the guarantee of epsilon, but neither prior nor cost.

Differential privacy is a bound on ratios of weights alone, so anyone who has such a file can verify it. Distortion
privacy and cost are averages over the prior and cannot be verified without it; the certificate says so.

The weights still depend on the prior: they show that outputs near the user's frequent secrets are the most accurate.
The disclosure of a file is therefore "computed from the prior": share it only with those who may know the mechanism.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from privacygames.arrays import FloatArray, IntArray, content_hash, freeze
from privacygames.canonical import digest_of
from privacygames.certificates import RatioStatement, check_ratios, largest_log_ratio
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.mechanism import binary_container
from privacygames.mechanism.binary_container import require_integer, well_formed
from privacygames.mechanism.disclosure import Disclosure
from privacygames.mechanism.mechanism import Mechanism
from privacygames.mechanism.protocol import EpsilonGuarantee
from privacygames.mechanism.sampling import Sampler
from privacygames.mechanism.weight_table import Many, WeightRowSampler, WeightTable
from privacygames.problem import BETWEEN_COORDINATES, Bounds, Scale, measure_scale
from privacygames.spaces import Grid, Label, LabelBudget, Space, decode_space, encode_space, space_digest

WITHHELD = ["prior", "cost"]

SAME_PROBABILITY = 1e-6
"""Probabilities that differ by less than this are the same, as in ``certificates/usefulness.py``."""

HEADER_KEYS = {"withheld", "promises", "bits", "secrets", "observables", "arrays", "format"}
ARRAYS, DISTANCES_PREFIX = {"weights", "distinguishability"}, "distances_"
"""The arrays that a file may hold, and the prefix of arrays of distances of spaces; others might be private."""


@dataclass(frozen=True)
class PublicCertificate(Displayed):
    """The certificate of a mechanism without prior and cost.

    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Grid(2, 1, 2.0, 1.0))), epsilon=0.5)
    >>> pg.PublicMechanism.of(mechanism).certificate.rows()[0]
    ('guaranteed epsilon', '0.25 per km; 0.25 between any two secrets')

    Attributes:
        epsilon: the ε that holds for every pair of secrets and every output.
        within: the threshold, in the threshold form.
        scale: the scale of the distances in whose units ε is counted.
        any_pair: largest log-ratio between any two secrets, at any distance; ∞ where an output excludes a secret.
        largest_ratio: the largest ratio of weights as a fraction of what is allowed; at most 1.
        distinguishability: SHA-256 of the distances in whose units ε is counted.
        digest: SHA-256 of the mechanism.
        cells: whether the secrets are the cells of a grid: ε holds between cells, and between coordinates none does.
    """

    epsilon: float
    within: float | None
    scale: Scale
    any_pair: float
    largest_ratio: float
    distinguishability: str
    digest: str
    cells: bool = False

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self) | {"counted": self.scale.per(self.within)}

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as pairs of name and value."""
        return [
            ("guaranteed epsilon", self.scale.epsilon(f"{self.epsilon:.6g}", self.any_pair, within=self.within)),
            *([BETWEEN_COORDINATES] if self.cells and self.any_pair > 0 else []),
            ("largest ratio", f"{self.largest_ratio:.9f} of what is allowed"),
            ("distortion, cost", "cannot be verified: prior and cost are withheld"),
        ]

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("What is guaranteed", ("", ""), self.rows(), texts=(1,))

    def __str__(self) -> str:
        return "\n".join(f"{name:<22}{value}" for name, value in self.rows())


class PublicMechanism:
    """A mechanism without prior and cost: its guarantee of ε can be verified and outputs can be drawn, nothing else.

    Get one from :meth:`of` or :func:`privacygames.load_public`.

    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
    >>> public = pg.PublicMechanism.of(mechanism)
    >>> hasattr(public, "problem"), public.sample(1) in (1, 2, 3)
    (False, True)
    >>> public.certificate.largest_ratio <= 1
    True
    """

    def __init__(
        self, weights: IntArray, bits: int, distinguishability: FloatArray, bounds: Bounds, spaces: tuple[Space, Space]
    ) -> None:
        if bounds.epsilon is None:
            raise InvalidProblem(
                "without a guarantee of epsilon nothing is left to verify once prior and cost are withheld"
            )
        self._table = WeightTable(weights, bits, *spaces)
        self._bounds = Bounds(epsilon=bounds.epsilon, within=bounds.within)
        self._distinguishability = distinguishability
        self._largest_ratio = check_ratios(RatioStatement(weights, bits, distinguishability, self._bounds))

    @classmethod
    def of(cls, mechanism: Mechanism) -> "PublicMechanism":
        """A mechanism without its prior and cost."""
        spaces = (mechanism.secrets, mechanism.observables)
        return cls(mechanism.weights, mechanism.bits, mechanism.distinguishability, mechanism.bounds, spaces)

    @classmethod
    def from_container(cls, header: binary_container.Header, arrays: binary_container.Arrays) -> "PublicMechanism":
        """A mechanism without prior and cost from the header and arrays of a file, every ratio verified.

        Raises:
            InvalidFile: they are invalid or inconsistent.
            GuaranteeViolated: the weights do not keep the guaranteed ε.
        """
        with well_formed("the content of the file"):
            return _decode(header, arrays)

    @property
    def weights(self) -> IntArray:
        """Integers (secrets, observables); every row sums to ``2**bits``."""
        return self._table.weights

    @property
    def bits(self) -> int:
        """The power of two that every row of weights sums to."""
        return self._table.bits

    @property
    def probabilities(self) -> FloatArray:
        """p(o|s) = weights / 2^bits, as floats."""
        return self._table.probabilities

    @property
    def bounds(self) -> Bounds:
        """The guaranteed ε."""
        return self._bounds

    @property
    def distinguishability(self) -> FloatArray:
        """d^ε(s, s'): the distances in whose units epsilon is counted."""
        return self._distinguishability

    @property
    def secrets(self) -> Space:
        """The space of secrets."""
        return self._table.secrets

    @property
    def observables(self) -> Space:
        """The space of outputs."""
        return self._table.observables

    @cached_property
    def digest(self) -> str:
        """SHA-256 of weights, guarantee and distances: identifies the mechanism, but not its prior."""
        hashes = content_hash(self.weights), content_hash(self.distinguishability)
        spaces = space_digest(self.secrets), space_digest(self.observables)
        return digest_of("public mechanism", *hashes, self.bits, self.bounds.content, *spaces)

    @property
    def certificate(self) -> PublicCertificate:
        """The certificate: the verified guarantee of epsilon."""
        return PublicCertificate(
            epsilon=self.bounds.epsilon or 0.0,
            within=self.bounds.within,
            scale=measure_scale(self.distinguishability, self.secrets),
            any_pair=largest_log_ratio(self.weights),
            largest_ratio=self._largest_ratio,
            distinguishability=content_hash(self.distinguishability),
            digest=self.digest,
            cells=isinstance(self.secrets, Grid),
        )

    @overload
    def sample(self, secret: Label | set[str]) -> Label: ...
    @overload
    def sample(self, secret: Many) -> list[Label]: ...
    def sample(self, secret: Label | set[str] | Many) -> Label | list[Label]:
        """One output for a secret, or a list of them for several, with randomness from the operating system."""
        return self._table.sample(secret)

    def sampler(self) -> Sampler:
        """The sampler behind :meth:`sample`, for indices instead of labels."""
        return self._table.sampler

    @property
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """The guarantee of differential privacy of one output, with its unit."""
        scale = measure_scale(self.distinguishability, self.secrets)
        any_pair = largest_log_ratio(self.weights)
        return EpsilonGuarantee(self.bounds.epsilon, scale.per(self.bounds.within), scale.unit, any_pair)

    @property
    def per_user(self) -> bool:
        """False: everybody's outputs are drawn from the same mechanism."""
        return False

    @property
    def usefulness(self) -> None:
        """None: the information in an output depends on the prior, which is withheld."""
        return None

    @property
    def constant(self) -> bool:
        """Whether outputs are independent of the secret."""
        return float(np.ptp(self.probabilities, axis=0).max()) <= SAME_PROBABILITY

    def row_sampler(self, users: Any = None) -> WeightRowSampler:  # noqa: ARG002 - of the protocol
        """The sampler for the rows of a batch, the same for all users."""
        return self._table.row_sampler()

    def to_manifest(self) -> dict[str, Any]:
        """The verified guarantee as plain values, for the manifest of a release."""
        certificate = self.certificate
        return {
            "certificate": {
                "largest_ratio": certificate.largest_ratio,
                "distinguishability": certificate.distinguishability,
                "withheld": "prior and cost: nothing can be said of distortion",
            }
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file without prior and cost, for :func:`privacygames.load_public` to read."""
        arrays: dict[str, Any] = {"weights": self.weights, "distinguishability": self.distinguishability}

        def store(matrix: FloatArray) -> str:
            name = f"{DISTANCES_PREFIX}{len(arrays)}"
            arrays[name] = matrix
            return name

        same_space = self.observables == self.secrets
        header = {
            "withheld": WITHHELD,
            "disclosure": Disclosure.COMPUTED.value,
            "promises": {"epsilon": self.bounds.epsilon, "within": self.bounds.within},
            "bits": self.bits,
            "secrets": encode_space(self.secrets, store=store),
            "observables": None if same_space else encode_space(self.observables, secrets=self.secrets, store=store),
        }
        binary_container.write(path, header, arrays)

    def __repr__(self) -> str:
        secrets, observables = self.weights.shape
        certificate = self.certificate
        epsilon = certificate.scale.epsilon(
            f"{certificate.epsilon:.4g}", certificate.any_pair, within=certificate.within
        )
        return f"PublicMechanism({secrets} secrets, {observables} observables, ε {epsilon})"


def _decode(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> PublicMechanism:
    weights, distinguishability = arrays["weights"], arrays["distinguishability"]
    n, m = weights.shape
    if weights.dtype != np.int64 or distinguishability.dtype != np.float64 or distinguishability.shape != (n, n):
        raise InvalidFile("an array of the file has the wrong type or shape")
    expected = HEADER_KEYS | ({"disclosure"} & set(header))  # which older files do not have
    unexpected = [name for name in arrays if name not in ARRAYS and not name.startswith(DISTANCES_PREFIX)]
    disclosure = header.get("disclosure", Disclosure.COMPUTED.value)
    if set(header) != expected or unexpected or disclosure != Disclosure.COMPUTED.value:
        raise InvalidFile("the file must hold exactly the parts of a mechanism without prior and cost")
    allowance = LabelBudget()
    secrets = decode_space(header["secrets"], matrices=arrays, size=n, allowance=allowance)
    observables = secrets
    if header["observables"] is not None:
        observables = decode_space(header["observables"], secrets=secrets, matrices=arrays, size=m, allowance=allowance)
    elif n != m:
        raise InvalidFile("the weights do not fit the secrets")
    if set(header["promises"]) != {"epsilon", "within"}:
        raise InvalidFile("a file without prior and cost guarantees epsilon, and within where it has a threshold")
    bounds = Bounds(**header["promises"])
    bits = require_integer(header["bits"])
    return PublicMechanism(freeze(weights), bits, freeze(distinguishability), bounds, (secrets, observables))
