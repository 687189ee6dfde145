"""Mechanism files for the user's own device, which the TypeScript package in ``device/`` reads, verifies and samples.

A file holds what sampling and verification need: weights, distances or a mesh, and epsilon; neither prior nor cost.
Every byte is described in docs/reference/device-file.md.

>>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=0.5)
>>> pg.device.write("numbers.pgd", mechanism)
>>> pg.device.read("numbers.pgd").sample(2) in (1, 2, 3)
True
"""

from privacygames.device.device_file import decode, encode, read, write
from privacygames.device.device_mechanism import DeviceMechanism, DeviceOutput
from privacygames.device.disclosure import disclosure_of
from privacygames.device.offline_page import WrittenPage, write_page
from privacygames.device.ratios import exponential_below

__all__ = [
    "DeviceMechanism",
    "DeviceOutput",
    "WrittenPage",
    "decode",
    "disclosure_of",
    "encode",
    "exponential_below",
    "read",
    "write",
    "write_page",
]


def __dir__() -> list[str]:
    return __all__
