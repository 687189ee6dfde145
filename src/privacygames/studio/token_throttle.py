"""Throttle of wrong tokens: how long an address has to wait after it brought too many."""

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from math import ceil
from time import monotonic

FREE_ATTEMPTS = 5
"""Wrong tokens before an address has to wait: people mistype."""

LONGEST_WAIT = 300.0
"""Seconds: the wait doubles with every further wrong token up to this."""

MEMORY = 3600.0
"""Seconds after its last wrong token after which an address starts anew."""

MOST_ADDRESSES = 4096
IPV6_NETWORK = 64
"""Bits of an IPv6 address that are counted as one: whoever has one address has the rest of its network, too."""


class TokenThrottle:
    """Counts wrong tokens by address, so that nobody locks out anybody at another address.

    >>> throttle = TokenThrottle()
    >>> for _ in range(6):
    ...     throttle.count("192.0.2.7")
    >>> throttle.wait("192.0.2.7"), throttle.wait("192.0.2.8")
    (2, 0)

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Whole seconds until a token from this address is looked at again; 0 for now."""
        count, last = self._wrong.get(_network(address), (0, 0.0))
        if count < FREE_ATTEMPTS:
            return 0
        longest = min(2.0 ** min(count - FREE_ATTEMPTS, 20), LONGEST_WAIT)
        return max(0, ceil(last + longest - self._clock()))

    def count(self, address: str) -> None:
        """Note a wrong token."""
        now, network = self._clock(), _network(address)
        count, last = self._wrong.pop(network, (0, now))
        self._wrong[network] = (1 if now - last > MEMORY else count + 1, now)
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _network(address: str) -> str:
    """What is counted as one address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ip_network((int(parsed), IPV6_NETWORK), strict=False))
    return str(parsed)
