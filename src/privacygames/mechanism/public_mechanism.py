"""A mechanism without its owner's habits: weights, distances and the ε promise, but neither prior nor cost.

The promise of differential privacy is about ratios of weights alone, so whoever gets such a file can verify it. About
distortion privacy and cost, which are averages over the prior, it cannot speak, and says so. The weights themselves
remain: a mechanism that was designed for somebody's prior serves their places best, and that can be seen in it. So the
file's disclosure is "computed from the prior": it is for those who may know the mechanism, not for everybody.
"""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray, content_hash, sealed
from privacygames.canonical import digest_of
from privacygames.certificates import Provenance, Statement, check, largest_log_ratio
from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.mechanism import binary_container
from privacygames.mechanism.disclosure import Disclosure
from privacygames.mechanism.header_fields import well_formed
from privacygames.mechanism.mechanism import Mechanism
from privacygames.mechanism.mechanism_content import MechanismContent
from privacygames.mechanism.sampling import Sampler
from privacygames.problem import Bounds, Scale, measure_scale
from privacygames.spaces import Label, LabelBudget, Space, decode_space, encode_space, space_digest

WITHHELD = ["prior", "cost"]

HEADER = {"withheld", "promises", "bits", "secrets", "observables", "arrays", "format"}
ARRAYS, OWN_DISTANCES = {"weights", "distinguishability"}, "distances_"
"""All that such a file has, and how a space's own distances are called: nothing else may travel with it."""


@dataclass(frozen=True)
class PublicCertificate:
    """What can be verified without prior and cost.

    Attributes:
        epsilon: the ε that holds for every pair of secrets and every observable.
        within: the threshold, in the threshold form.
        scale: of the distances in which ε is counted.
        any_pair: the largest log-ratio between any two secrets, however far apart; ∞ where an output rules one out.
        largest_ratio: the largest ratio of weights as a share of what is allowed; at most 1.
        distinguishability: SHA-256 of the distances in which ε counts.
        digest: of the mechanism.
    """

    epsilon: float
    within: float | None
    scale: Scale
    any_pair: float
    largest_ratio: float
    distinguishability: str
    digest: str

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self) | {"counted": self.scale.per(self.within)}

    def rows(self) -> list[tuple[str, str]]:
        """The certificate in words: pairs of name and value."""
        return [
            ("promised epsilon", self.scale.epsilon(f"{self.epsilon:.6g}", self.any_pair, within=self.within)),
            ("largest ratio", f"{self.largest_ratio:.9f} of what is allowed"),
            ("distortion, cost", "nothing can be said: prior and cost are withheld"),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<22}{value}" for name, value in self.rows())


class PublicMechanism:
    """A mechanism of which the ε promise can be verified and answers drawn, and nothing else.

    Get one from :meth:`of` or :func:`load_public`.
    """

    def __init__(
        self, weights: IntArray, bits: int, distinguishability: FloatArray, bounds: Bounds, spaces: tuple[Space, Space]
    ) -> None:
        if bounds.epsilon is None:
            raise InvalidProblem(
                "without a promise of epsilon nothing is left to verify once prior and cost are withheld"
            )
        n, m = weights.shape
        statement = Statement(
            weights=weights,
            bits=bits,
            prior=np.full(n, 1.0 / n),  # any would do: nothing that depends on it is told
            cost=np.zeros((m, n)),
            distance=np.zeros((n, n)),
            distinguishability=distinguishability,
            bounds=Bounds(epsilon=bounds.epsilon, within=bounds.within),
            dual_solution=None,
        )
        verification = check(statement)
        self._largest_ratio = verification.largest_ratio
        self._mechanism = Mechanism(MechanismContent(statement, *spaces, Provenance("withheld", "")), verification)

    @classmethod
    def of(cls, mechanism: Mechanism) -> "PublicMechanism":
        """A mechanism without its prior and cost."""
        spaces = (mechanism.secrets, mechanism.observables)
        return cls(mechanism.weights, mechanism.bits, mechanism.distinguishability, mechanism.bounds, spaces)

    @property
    def weights(self) -> IntArray:
        """Integers (secrets, observables); every row sums to ``2**bits``."""
        return self._mechanism.weights

    @property
    def bits(self) -> int:
        """The power of two every row of weights sums to."""
        return self._mechanism.bits

    @property
    def probabilities(self) -> FloatArray:
        """p(o|s) = weights / 2^bits, as floats."""
        return self._mechanism.probabilities

    @property
    def bounds(self) -> Bounds:
        """What is promised: ε."""
        return self._mechanism.bounds

    @property
    def distinguishability(self) -> FloatArray:
        """d^ε(s, s'): the distances in which epsilon counts."""
        return self._mechanism.distinguishability

    @property
    def secrets(self) -> Space:
        """What may be secret."""
        return self._mechanism.secrets

    @property
    def observables(self) -> Space:
        """What may be answered."""
        return self._mechanism.observables

    @cached_property
    def digest(self) -> str:
        """SHA-256 of weights, promise and distances: names the mechanism, without saying whose."""
        hashes = content_hash(self.weights), content_hash(self.distinguishability)
        spaces = space_digest(self.secrets), space_digest(self.observables)
        return digest_of("public mechanism", *hashes, self.bits, self.bounds.content, *spaces)

    @property
    def certificate(self) -> PublicCertificate:
        """What was verified."""
        return PublicCertificate(
            epsilon=self.bounds.epsilon or 0.0,
            within=self.bounds.within,
            scale=measure_scale(self.distinguishability, self.secrets),
            any_pair=largest_log_ratio(self.weights),
            largest_ratio=self._largest_ratio,
            distinguishability=content_hash(self.distinguishability),
            digest=self.digest,
        )

    def sample(self, secret: Label) -> Label:
        """One observable for a secret, with randomness from the operating system."""
        return self._mechanism.sample(secret)

    def sampler(self) -> Sampler:
        """The sampler behind :meth:`sample`, for positions instead of labels."""
        return self._mechanism.sampler()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file without prior and cost, which :func:`load_public` reads."""
        arrays: dict[str, Any] = {"weights": self.weights, "distinguishability": self.distinguishability}

        def store(matrix: FloatArray) -> str:
            name = f"{OWN_DISTANCES}{len(arrays)}"
            arrays[name] = matrix
            return name

        shared = self.observables == self.secrets
        header = {
            "withheld": WITHHELD,
            "disclosure": Disclosure.COMPUTED.value,
            "promises": {"epsilon": self.bounds.epsilon, "within": self.bounds.within},
            "bits": self.bits,
            "secrets": encode_space(self.secrets, store=store),
            "observables": None if shared else encode_space(self.observables, secrets=self.secrets, store=store),
        }
        binary_container.write(path, header, arrays)

    def __repr__(self) -> str:
        secrets, observables = self.weights.shape
        told = self.certificate
        promised = told.scale.epsilon(f"{told.epsilon:.4g}", told.any_pair, within=told.within)
        return f"PublicMechanism({secrets} secrets, {observables} observables, ε {promised})"


def load_public(path: str | os.PathLike[str]) -> PublicMechanism:
    """Read a file without prior and cost, checking every ratio in it.

    Raises:
        InvalidFile: the file is damaged, altered, or not of this kind.
        GuaranteeViolated: the weights do not keep the ε that the file promises.
    """
    header, arrays = binary_container.read(path)
    if "withheld" not in header:
        raise InvalidFile("this file has prior and cost in it: read it with load")
    with well_formed("the content of the file"):
        return _unpacked(header, arrays)


def is_public(path: str | os.PathLike[str]) -> bool:
    """Whether a mechanism file was exported without prior and cost."""
    return "withheld" in binary_container.read(path)[0]


def _unpacked(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> PublicMechanism:
    weights, separation = arrays["weights"], arrays["distinguishability"]
    n, m = weights.shape
    if weights.dtype != np.int64 or separation.dtype != np.float64 or separation.shape != (n, n):
        raise InvalidFile("an array of the file has the wrong type or shape")
    expected = HEADER | ({"disclosure"} & set(header))  # older files do not have it
    others = [name for name in arrays if name not in ARRAYS and not name.startswith(OWN_DISTANCES)]
    disclosure = header.get("disclosure", Disclosure.COMPUTED.value)
    if set(header) != expected or others or disclosure != Disclosure.COMPUTED.value:
        raise InvalidFile("the file holds more, or less, than a mechanism without prior and cost does")
    allowance = LabelBudget()
    secrets = decode_space(header["secrets"], matrices=arrays, size=n, allowance=allowance)
    observables = secrets
    if header["observables"] is not None:
        observables = decode_space(header["observables"], secrets=secrets, matrices=arrays, size=m, allowance=allowance)
    elif n != m:
        raise InvalidFile("the weights do not fit the secrets")
    if set(header["promises"]) != {"epsilon", "within"}:
        raise InvalidFile("a file without prior and cost promises epsilon, and within where it has a threshold")
    promises = Bounds(**header["promises"])
    if type(header["bits"]) is not int:
        raise InvalidFile("a number in the header is not whole")
    return PublicMechanism(sealed(weights), header["bits"], sealed(separation), promises, (secrets, observables))
