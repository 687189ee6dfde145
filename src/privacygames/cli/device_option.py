"""``--device``: the processor that solves."""

from typing import Annotated

import typer

Device = Annotated[
    str | None,
    typer.Option(help="host, or cuda for a GPU (needs PyTorch).", show_default="a GPU where it is faster"),
]


def use_device_option(device: str | None) -> None:
    """Use a device for all solves, in child processes as well; raises where there is no such device."""
    from privacygames.solvers import use_device

    if device is not None:
        use_device(device)
