"""``privacygames sample``: draw outputs."""

import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.output import Json, print_json, warn

if TYPE_CHECKING:
    from privacygames.mechanism import Mechanism, PublicMechanism
    from privacygames.spaces import Label

BLOCK_BYTES = 1 << 18
"""Largest number of bytes read at once; if fewer are available, their lines get outputs without waiting for more."""


class OnError(StrEnum):
    """What happens to a line that is not a secret."""

    STOP = "stop"
    SKIP = "skip"


def sample(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    secret: Annotated[
        list[str] | None,
        typer.Argument(help="The secret. Other users can see it in the process list: prefer standard input."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Outputs per secret.")] = 1,
    on_error: Annotated[
        OnError, typer.Option(help="What happens to a line that is not a secret; the message has its number only.")
    ] = OnError.STOP,
    as_json: Json = False,
) -> None:
    """Draw a random output for a secret, with randomness from the operating system.

    Without SECRET, secrets are read from standard input, one per line, and each output is printed at once. Blank
    lines and spaces around a secret are ignored. The guarantees hold for one output: further outputs for the same
    secret reveal more.
    """
    from privacygames.analysis import usefulness_warnings
    from privacygames.mechanism import is_public, load, load_public
    from privacygames.spaces import display_label

    mechanism: Mechanism | PublicMechanism
    if is_public(file):
        mechanism = load_public(file)
    else:
        mechanism = load(file)
        warn(usefulness_warnings(mechanism.certificate.usefulness, mechanism.problem))
    sampler, outputs = mechanism.sampler(), mechanism.observables.labels
    drawn: list[Label] = []
    batches = [list(enumerate(secret, start=1))] if secret else _lines()
    lookup = _LabelLookup(mechanism, "secret" if secret else "line", on_error)
    for batch in batches:
        secrets = [label for label in lookup.labels(batch) for _ in range(count)]
        sampled = [outputs[index] for index in sampler.draw(mechanism.secrets.indices(secrets))] if secrets else []
        if as_json:
            drawn += sampled
        elif sampled:
            sys.stdout.write("".join(f"{display_label(output)}\n" for output in sampled))
            sys.stdout.flush()
        if lookup.error is not None:
            raise lookup.error
    if as_json:
        print_json({"answers": drawn})


class _LabelLookup:
    """Finds the label that each text stands for; errors name a text by its position, never by its content."""

    def __init__(self, mechanism: "Mechanism | PublicMechanism", unit: str, on_error: OnError) -> None:
        from privacygames.spaces import display_label

        self._space, self._unit, self._on_error = mechanism.secrets, unit, on_error
        self._known = {display_label(label): label for label in mechanism.secrets.labels}
        self.error: Exception | None = None

    def labels(self, batch: list[tuple[int, str]]) -> "Iterator[Label]":
        """The labels of a batch up to the first text that is not one, or of all other texts where those are skipped."""
        from privacygames.errors import UnknownLabel

        for number, text in batch:
            label = self._known.get(text, self._known.get(text.strip()))
            if label is not None:
                yield label
            elif text.strip():
                try:
                    self._space.index(text)
                except UnknownLabel as error:
                    message = f"{self._unit} {number}: {error}"
                    if self._on_error is OnError.STOP:
                        self.error = UnknownLabel(message)
                        return
                    warn([f"{message}; skipped"])


def _lines() -> Iterator[list[tuple[int, str]]]:
    """The lines of standard input with their numbers, as many at a time as are available."""
    if sys.stdin is None:  # closed: there is no input
        return
    handle, rest, number = sys.stdin.fileno(), b"", 1
    while True:
        block = os.read(handle, BLOCK_BYTES)
        whole, newline, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
        if newline or (not block and whole):
            texts = whole.removesuffix(b"\r").decode("utf-8", errors="replace").split("\n")
            if number == 1:
                texts[0] = texts[0].removeprefix("\ufeff")
            yield [(number + at, text.removesuffix("\r")) for at, text in enumerate(texts)]
            number += len(texts)
        if not block:
            return
