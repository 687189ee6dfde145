"""Pages: a template filled with values. Text is escaped, and a page asks nothing from elsewhere."""

from functools import cache
from typing import Any

from privacygames.presentation.optional_imports import needed


def render(template: str, **values: object) -> str:
    """A template of ours, filled in; whatever is text stays text."""
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    jinja2 = needed("jinja2", what="writing a page")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("privacygames.presentation"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
