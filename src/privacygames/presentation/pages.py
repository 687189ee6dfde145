"""Pages: a template filled with values. Text is escaped, and a page asks nothing from elsewhere."""

from functools import cache
from typing import Any

from privacygames.presentation.optional_imports import needed


def render(template: str, /, *, package: str = "privacygames.presentation", **values: object) -> str:
    """A template filled with values, which are escaped.

    Args:
        template: its file name.
        package: whose folder ``templates`` holds it; it may extend the templates of this package.
        values: what it is filled with.
    """
    return str(_environment(package).get_template(template).render(**values))


@cache
def _environment(package: str) -> Any:
    jinja2 = needed("jinja2", what="writing a page")
    packages = dict.fromkeys((package, "privacygames.presentation"))
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name) for name in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
