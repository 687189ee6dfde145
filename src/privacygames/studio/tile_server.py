"""A tile server that the user has allowed: the template of its addresses, and the origin the page may load from."""

import re
from urllib.parse import urlsplit

from privacygames.errors import InvalidProblem

PLACEHOLDERS = ("{z}", "{x}", "{y}")
"""What an address of a tile is made from: its zoom level, column and row."""

HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?")
"""A host name with an optional port, and nothing that means something else in a content-security policy."""

LONGEST = 500
"""Most characters of a template."""


def tile_origin(template: str) -> str:
    """The origin of a template of tile addresses, as a content-security policy names it.

    Args:
        template: an address with ``{z}``, ``{x}`` and ``{y}``.

    Raises:
        InvalidProblem: it is no such address, or neither encrypted nor on this machine.

    >>> tile_origin("https://tiles.example/{z}/{x}/{y}.png")
    'https://tiles.example'
    """
    try:
        parts = urlsplit(template)
    except ValueError:
        parts = urlsplit("")
    host = parts.netloc.lower()
    if len(template) > LONGEST or not HOST.fullmatch(host) or not all(each in parts.path for each in PLACEHOLDERS):
        raise InvalidProblem(
            "the address of a tile server looks like https://tiles.example/{z}/{x}/{y}.png: a host, and {z}, {x} and "
            "{y} after it",
            field="template",
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")):
        raise InvalidProblem("a tile server must be asked over https, or be on this machine", field="template")
    return f"{parts.scheme}://{host}"
