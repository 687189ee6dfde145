"""The user behind a connection from this machine: other users reach the loopback address, but own no ledger here."""

import os
import sys
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

SOCKETS = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
"""The tables of TCP sockets of Linux, with the user that each belongs to, by the version of IP."""

LOCAL, REMOTE, USER = 1, 2, 7
"""The columns of these tables that are read."""


def is_other_user(scope: Mapping[str, Any]) -> bool:
    """Whether a connection of ASGI comes from another user of this machine.

    Where the system does not tell (only Linux does), it is taken to be the same user. A connection from this machine
    whose socket is not there (any more) counts as another user's.

    >>> is_other_user({"client": ("testclient", 50000), "server": ("testserver", 80)})
    False
    """
    client, server = scope.get("client"), scope.get("server")
    if client is None or server is None:
        return False
    try:
        version = ip_address(client[0]).version
        ends = _as_listed(*client), _as_listed(*server)
    except ValueError:  # no socket: an application that is called in its own process
        return False
    try:
        rows = [line.split() for line in SOCKETS[version].read_text().splitlines()[1:]]
    except OSError:
        return False
    users = [int(row[USER]) for row in rows if (row[LOCAL], row[REMOTE]) == ends]
    return users != [os.getuid()]


def _as_listed(host: str, port: int) -> str:
    """An address as these tables write it: words of 32 bits in the order of this machine, in hexadecimal digits."""
    packed = ip_address(host).packed
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return f"{''.join(f'{int.from_bytes(word, sys.byteorder):08X}' for word in words)}:{port:04X}"
