r"""Second-order cones :math:`\{(t, u) : \|u\| \le t\}` in arrays (…, 3): products, step lengths, Nesterov–Todd scaling.

The Jordan algebra of the cone: :math:`a \circ b = (a^\top b,\ a_0 b_1 + b_0 a_1)` with the unit e = (1, 0, 0), and
:math:`\det a = a_0^2 - \|a_1\|^2` (Alizadeh and Goldfarb, Second-order cone programming, 2003).
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray

TINY = 1e-300
"""Below this a determinant is rounding, and is raised to it."""


def determinant(a: FloatArray) -> FloatArray:
    """a₀² − ‖a₁‖², without the cancellation of the squares."""
    length = np.hypot(a[..., 1], a[..., 2])
    return np.maximum((a[..., 0] - length) * (a[..., 0] + length), TINY)


def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """The Jordan product a ∘ b."""
    out = a[..., :1] * b + b[..., :1] * a
    out[..., 0] = (a * b).sum(axis=-1)
    return out


def quotient(a: FloatArray, b: FloatArray) -> FloatArray:
    """The x with a ∘ x = b."""
    size, inner = determinant(a)[..., None], (a[..., 1:] * b[..., 1:]).sum(axis=-1, keepdims=True)
    first = (a[..., :1] * b[..., :1] - inner) / size
    return np.concatenate([first, (b[..., 1:] - first * a[..., 1:]) / a[..., :1]], axis=-1)


def max_step(a: FloatArray, change: FloatArray) -> float:
    """The largest t for which a + t·change is in the cone everywhere; ∞ where nothing limits it."""
    root = np.sqrt(determinant(a))[..., None]
    a, change = a / root, change / root
    inner = a[..., 0] * change[..., 0] - (a[..., 1:] * change[..., 1:]).sum(axis=-1)
    factor = (change[..., 0] + inner) / (a[..., 0] + 1)
    rest = change[..., 1:] - factor[..., None] * a[..., 1:]
    fastest = float((np.hypot(rest[..., 0], rest[..., 1]) - inner).max())
    return 1 / fastest if fastest > 0 else float("inf")


@dataclass(frozen=True)
class Scaling:
    """The Nesterov–Todd scaling W of a slack s and a dual value z: W z = W⁻¹ s = λ.

    Attributes:
        direction: the unit vector w, of determinant 1, that W is made of.
        size: the factor η before it, (…, 1).
    """

    direction: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, slack: FloatArray, dual: FloatArray) -> "Scaling":
        """The scaling at a point in the interior of both cones."""
        root_s, root_z = np.sqrt(determinant(slack))[..., None], np.sqrt(determinant(dual))[..., None]
        s, z = slack / root_s, dual / root_z
        gamma = np.sqrt((1 + (s * z).sum(axis=-1, keepdims=True)) / 2)
        w = np.concatenate([s[..., :1] + z[..., :1], s[..., 1:] - z[..., 1:]], axis=-1) / (2 * gamma)
        return cls(w, np.sqrt(root_s / root_z))

    def apply(self, a: FloatArray) -> FloatArray:
        """W a."""
        return self.size * self._reflected(a, self.direction[..., 1:])

    def apply_inverse(self, a: FloatArray) -> FloatArray:
        """W⁻¹ a."""
        return self._reflected(a, -self.direction[..., 1:]) / self.size

    def _reflected(self, a: FloatArray, rest: FloatArray) -> FloatArray:
        first = self.direction[..., :1]
        inner = (rest * a[..., 1:]).sum(axis=-1, keepdims=True)
        return np.concatenate(
            [first * a[..., :1] + inner, a[..., 1:] + rest * (inner / (1 + first) + a[..., :1])], axis=-1
        )

    @property
    def inverse_square(self) -> FloatArray:
        """W⁻² = (2 (J w)(J w)ᵀ − J) / η² with J = diag(1, −1, −1), as (…, 6): entries 00, 11, 22, 01, 02, 12."""
        w0, w1, w2 = np.moveaxis(self.direction, -1, 0)
        entries = (2 * w0**2 - 1, 2 * w1**2 + 1, 2 * w2**2 + 1, -2 * w0 * w1, -2 * w0 * w2, 2 * w1 * w2)
        return np.stack(entries, axis=-1) / self.size**2
