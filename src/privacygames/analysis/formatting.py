"""Numbers as people write them: for tables and sentences alike."""

CERTAIN = 1e-9


def amount(value: float) -> str:
    """Three digits, and no powers of ten below a million."""
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share as a whole percentage that never rounds to never or always."""
    if CERTAIN < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1 - CERTAIN:
        return "over 99 %"
    return f"{100 * share:.0f} %"
