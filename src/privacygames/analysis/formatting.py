"""Numbers as text, for tables and sentences."""

CERTAIN = 1e-9


def format_amount(value: float) -> str:
    """Three digits, without powers of ten below a million."""
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def format_percent(share: float) -> str:
    """A share as a whole percentage, which rounds nothing but 0 and 1 to 0 % and 100 %."""
    if CERTAIN < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1 - CERTAIN:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def format_decimals(value: float) -> str:
    """Four decimals, or four digits where those would be zeros."""
    return f"{value:.4g}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
