"""``privacygames device``: mechanism files for phones and browsers."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, check_new_file, print_json, print_rows

Source = Annotated[Path, typer.Argument(help="A mechanism file, also one without prior and cost.")]
Out = Annotated[Path, typer.Option("--out", help="The file to write, such as home.pgd.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
DeviceFile = Annotated[Path, typer.Argument(help="A file that device export wrote.")]


def export(file: Source, out: Out, force: Force = False, as_json: Json = False) -> None:
    """Write the file that a phone or browser needs to draw outputs: no prior, no cost, and as small as possible.

    It holds the secrets and outputs, the weights, and epsilon with its distances, so that the device verifies every
    ratio itself. The weights of a mechanism that was designed for a prior show which secrets are frequent: such a file
    says "private" in its second line and belongs on its owner's devices only. One for a uniform prior, with named costs
    and a box on the public lattice, says "shareable".
    """
    from privacygames.atomic_io import write_bytes
    from privacygames.device import decode, encode
    from privacygames.mechanism_files import load_any

    check_new_file(out, force=force)
    content = encode(load_any(file))
    exported = decode(content)  # verifies it as the device will
    write_bytes(out, content, private=True)
    rows = {"file": str(out), "bytes": exported.size, "disclosure": exported.disclosure.value}
    rows |= {"kind": exported.kind, "outputs": len(exported.outputs), "epsilon": exported.epsilon}
    if as_json:
        print_json(rows | {"digest": exported.digest})
    else:
        print_rows(f"{out.name}: {exported.size:,} bytes", [(name, str(value)) for name, value in rows.items()][2:])


def verify(file: DeviceFile, as_json: Json = False) -> None:
    """Verify a file for a device: its digest, its structure, and every ratio, as the device does."""
    from privacygames.device import read

    mechanism = read(file)
    rows = {"kind": mechanism.kind, "epsilon": mechanism.epsilon, "unit": mechanism.unit, "within": mechanism.within}
    rows |= {"outputs": len(mechanism.outputs), "bytes": mechanism.size, "disclosure": mechanism.disclosure.value}
    rows |= {"digest": mechanism.digest}
    if as_json:
        print_json(rows)
    else:
        shown = [(name, str(value)) for name, value in rows.items() if value not in (None, "")]
        print_rows(f"{file.name}: every ratio is at most what epsilon allows", shown)
