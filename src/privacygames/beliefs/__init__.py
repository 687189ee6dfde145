"""What an adversary believes about secrets."""

from privacygames.beliefs.prior import Prior, entropy

__all__ = ["Prior", "entropy"]
