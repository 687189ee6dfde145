"""The throttle of wrong tokens: how long an address has to wait after too many of them."""

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from math import ceil
from time import monotonic

FREE_ATTEMPTS = 5
"""Wrong tokens before an address has to wait: people mistype."""

LONGEST_WAIT_SECONDS = 300.0
"""Seconds: the wait doubles with every further wrong token up to this."""

FORGET_SECONDS = 3600.0
"""Seconds after its last wrong token after which an address starts anew."""

MOST_ADDRESSES = 4096
"""Addresses that are remembered: this bounds the memory they take."""

IPV6_NETWORK = 64
"""Bits of an IPv6 address that are counted as one: one customer has all addresses of such a network."""


class TokenThrottle:
    """Counts wrong tokens by address, so that no address is locked out because of another.

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
        """Whole seconds until a token from this address is checked again; 0 if it is checked now."""
        count, last = self._wrong.get(_network(address), (0, 0.0))
        if count < FREE_ATTEMPTS:
            return 0
        longest = min(2.0 ** min(count - FREE_ATTEMPTS, 20), LONGEST_WAIT_SECONDS)
        return max(0, ceil(last + longest - self._clock()))

    def count(self, address: str) -> None:
        """Note a wrong token."""
        now, network = self._clock(), _network(address)
        count, last = self._wrong.pop(network, (0, now))
        self._wrong[network] = (1 if now - last > FORGET_SECONDS else count + 1, now)
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's own."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _network(address: str) -> str:
    """The network that is counted as one address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ip_network((int(parsed), IPV6_NETWORK), strict=False))
    return str(parsed)
