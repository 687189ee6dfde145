"""Formulae as MathML, which browsers draw themselves: no scripts, no fonts, nothing from elsewhere."""

from typing import Any

from latex2mathml.converter import convert


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(convert(node.astext()))
    from docutils.nodes import SkipNode

    raise SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
