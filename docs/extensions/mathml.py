"""Formulae as MathML, which browsers draw themselves: no scripts, no fonts, nothing from elsewhere."""

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def _formula(text: str, display: str) -> str:
    made = str(convert(text, display=display))
    if "\\" in made:
        raise ValueError(f"a formula has a command that cannot be drawn: {text}")
    return made


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(_formula(node.astext(), "inline"))
    raise SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula" tabindex="0">{_formula(node.astext(), "block")}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
