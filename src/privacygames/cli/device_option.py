"""``--device``: where to solve."""

from typing import Annotated

import typer

Device = Annotated[
    str | None,
    typer.Option(help="host, or cuda for a GPU (needs PyTorch).", show_default="a GPU where it is faster"),
]


def solve_on(device: str | None) -> None:
    """Solve there from now on, in the processes started from here as well; raises where there is no such device."""
    from privacygames.solvers import use_device

    if device is not None:
        use_device(device)
