"""Pages: a template filled with values. Text is escaped, and a page asks nothing from elsewhere."""

from functools import cache
from typing import Any


def render(template: str, **values: object) -> str:
    """A template of ours, filled in; whatever is text stays text."""
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("privacygames.presentation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
