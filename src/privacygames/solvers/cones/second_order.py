r"""Second-order cones :math:`\{(t, u) : \|u\| \le t\}` of dimension one to three, the coordinates along the first axis.

The Jordan algebra of the cone: :math:`a \circ b = (a^\top b,\ a_0 b_1 + b_0 a_1)` with the unit e = (1, 0, 0), and
:math:`\det a = a_0^2 - \|a_1\|^2` (Alizadeh and Goldfarb, Second-order cone programming, 2003). A cone of dimension one
is the half-line of non-negative numbers.
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray

TINY = 1e-300
"""Below this a determinant is rounding, and is raised to it."""

CENTRAL_NEIGHBOURHOOD = 10.0
"""Factor of the target within which the eigenvalues of a product count as central."""


def length(rest: FloatArray) -> FloatArray:
    """The Euclidean length along the first axis, for at most two coordinates."""
    if len(rest) == 1:
        return np.asarray(np.abs(rest[0]))
    return np.asarray(np.sqrt(inner(rest, rest)))


def inner(a: FloatArray, b: FloatArray) -> FloatArray:
    """The inner product along the first axis; 0 for no coordinates."""
    total = np.zeros(a.shape[1:]) if len(a) == 0 else a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total += x * y
    return np.asarray(total)


def determinant(a: FloatArray) -> FloatArray:
    """a₀² − ‖a₁‖², without the cancellation of the squares."""
    if len(a) == 1:
        return np.asarray(np.maximum(a[0] * a[0], TINY))
    size = length(a[1:])
    return np.asarray(np.maximum((a[0] - size) * (a[0] + size), TINY))


def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """The Jordan product a ∘ b."""
    out = np.empty_like(a)
    out[0] = inner(a, b)
    out[1:] = a[0] * b[1:]
    out[1:] += b[0] * a[1:]
    return out


def quotient(a: FloatArray, b: FloatArray) -> FloatArray:
    """The x with a ∘ x = b."""
    if len(a) == 1:
        return b / a
    out = np.empty_like(a)
    out[0] = (a[0] * b[0] - inner(a[1:], b[1:])) / determinant(a)
    out[1:] = (b[1:] - out[0] * a[1:]) / a[0]
    return out


def max_step(a: FloatArray, change: FloatArray, root: FloatArray | None = None) -> float:
    """The largest t for which a + t·change is in the cone everywhere; ∞ where nothing limits it.

    ``root`` is the square root of the determinants of a, where it is known.
    """
    if not a.size:
        return float("inf")
    if len(a) == 1:
        fastest = float(-(change / a).min())
        return 1 / fastest if fastest > 0 else float("inf")
    scale = 1 / (np.sqrt(determinant(a)) if root is None else root)
    a, change = a * scale, change * scale
    bilinear = a[0] * change[0] - inner(a[1:], change[1:])
    factor = (change[0] + bilinear) / (a[0] + 1)
    fastest = float((length(change[1:] - factor * a[1:]) - bilinear).max())
    return 1 / fastest if fastest > 0 else float("inf")


def centrality_correction(a: FloatArray, target: float) -> FloatArray:
    """Gondzio's correction: what brings the eigenvalues a₀ ± ‖a₁‖ of products to the neighbourhood of the target."""
    low, high = target / CENTRAL_NEIGHBOURHOOD, target * CENTRAL_NEIGHBOURHOOD
    size = length(a[1:])
    upper, lower = ((value.clip(low, high) - value).clip(min=-high) for value in (a[0] + size, a[0] - size))
    out = np.empty_like(a)
    out[0] = (upper + lower) / 2
    out[1:] = a[1:] * ((upper - lower) / (2 * np.maximum(size, TINY)))
    return out


@dataclass(frozen=True)
class Scaling:
    """The Nesterov–Todd scaling W of a slack s and a dual value z: W z = W⁻¹ s = λ.

    Attributes:
        direction: the unit vector w, of determinant 1, that W is made of.
        size: the factor η before it.
        roots: the square roots of the determinants of s and z.
    """

    direction: FloatArray
    size: FloatArray
    roots: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, slack: FloatArray, dual: FloatArray) -> "Scaling":
        """The scaling at a point in the interior of both cones."""
        root_s, root_z = np.sqrt(determinant(slack)), np.sqrt(determinant(dual))
        s, z = slack / root_s, dual / root_z
        gamma = np.sqrt((1 + inner(s, z)) / 2)
        w = np.empty_like(s)
        w[0] = s[0] + z[0]
        w[1:] = s[1:] - z[1:]
        w /= 2 * gamma
        return cls(w, np.sqrt(root_s / root_z), (root_s, root_z))

    def apply(self, a: FloatArray) -> FloatArray:
        """W a."""
        return self.size * self._reflected(a, 1.0)

    def apply_inverse(self, a: FloatArray) -> FloatArray:
        """W⁻¹ a."""
        return self._reflected(a, -1.0) / self.size

    def _reflected(self, a: FloatArray, sign: float) -> FloatArray:
        if len(a) == 1:
            return a
        w, out = self.direction, np.empty_like(a)
        dot = inner(w[1:], a[1:])
        dot *= sign
        out[0] = w[0] * a[0]
        out[0] += dot
        dot /= 1 + w[0]
        dot += a[0]
        dot *= sign
        np.multiply(w[1:], dot, out=out[1:])
        out[1:] += a[1:]
        return out

    @property
    def inverse_square(self) -> FloatArray:
        """W⁻² = (2 (J w)(J w)ᵀ − J) / η² with J = diag(1, −1, −1): its entries, in the order of :func:`entries`."""
        w, square = self.direction, 1 / (self.size * self.size)
        out = np.empty((len(entries(len(w))), *w.shape[1:]))
        for place, (first, second) in enumerate(entries(len(w))):
            np.multiply(w[first], w[second], out=out[place])
            out[place] *= 2.0 if (first == 0) == (second == 0) else -2.0
            if first == second:
                out[place] -= 1.0 if first == 0 else -1.0
            out[place] *= square
        return out


def entries(dimension: int) -> tuple[tuple[int, int], ...]:
    """The entries on and above the diagonal of a symmetric matrix of a cone's dimension."""
    return tuple((first, second) for first in range(dimension) for second in range(first, dimension))
