"""Names and levels that a screen reader needs, and that Sphinx and the theme leave out."""

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

ADDITIONS = {
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside aria-label="All pages" class="sidebar-drawer"',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
}
"""What is replaced in a finished page: a caption's level, the names of both sidebars, and code that can be scrolled."""


def add_names(app: Sphinx, error: Exception | None) -> None:
    """Complete every page once the site is built."""
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = complete = page.read_text(encoding="utf-8")
        for before, after in ADDITIONS.items():
            if after not in complete:  # an unchanged page of an earlier build is complete
                complete = complete.replace(before, after)
        if complete != text:
            page.write_text(complete, encoding="utf-8")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.connect("build-finished", add_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
