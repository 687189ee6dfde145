"""``privacygames sample``: draw answers."""

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

BLOCK = 1 << 18
"""Bytes read at once where they are there already; where they are not, each line is answered as it comes."""


class OnError(StrEnum):
    """What to do about a line that is no secret."""

    STOP = "stop"
    SKIP = "skip"


def sample(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    secret: Annotated[
        list[str] | None,
        typer.Argument(help="The secret. Other users can see it in the process list: prefer standard input."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Answers per secret.")] = 1,
    on_error: Annotated[
        OnError, typer.Option(help="What becomes of a line that is no secret; it is reported by its number.")
    ] = OnError.STOP,
    as_json: Json = False,
) -> None:
    """Draw a random answer for a secret, with randomness from the operating system.

    Without SECRET, secrets are read from standard input, one a line, and answered line by line as they come. Blank
    lines are passed over, and so are spaces around a secret. Each answer drawn for the same secret tells an observer
    more: the promises hold for one.
    """
    from privacygames.analysis import remarks
    from privacygames.mechanism import is_public, load, load_public
    from privacygames.spaces import display_label

    mechanism: Mechanism | PublicMechanism
    if is_public(file):
        mechanism = load_public(file)
    else:
        mechanism = load(file)
        warn(remarks(mechanism.certificate.usefulness, mechanism.problem))
    sampler, outputs = mechanism.sampler(), mechanism.observables.labels
    drawn: list[Label] = []
    batches = [list(enumerate(secret, start=1))] if secret else _lines()
    finder = _Finder(mechanism, "secret" if secret else "line", on_error)
    for batch in batches:
        given = [label for label in finder.labels(batch) for _ in range(count)]
        answers = [outputs[each] for each in sampler.draw(mechanism.secrets.indices(given))] if given else []
        if as_json:
            drawn += answers
        elif answers:
            sys.stdout.write("".join(f"{display_label(answer)}\n" for answer in answers))
            sys.stdout.flush()
        if finder.trouble is not None:
            raise finder.trouble
    if as_json:
        print_json({"answers": drawn})


class _Finder:
    """Finds the labels people typed; what is none is reported by where it stood, never by what it was."""

    def __init__(self, mechanism: "Mechanism | PublicMechanism", unit: str, on_error: OnError) -> None:
        from privacygames.spaces import display_label

        self._space, self._unit, self._on_error = mechanism.secrets, unit, on_error
        self._known = {display_label(label): label for label in mechanism.secrets.labels}
        self.trouble: Exception | None = None

    def labels(self, batch: list[tuple[int, str]]) -> "Iterator[Label]":
        """The labels of a batch, up to the first that is none (or all others, where those are to be skipped)."""
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
                        self.trouble = UnknownLabel(message)
                        return
                    warn([f"{message}; passed over"])


def _lines() -> Iterator[list[tuple[int, str]]]:
    """The lines of standard input with their numbers, as many at a time as have come."""
    if sys.stdin is None:  # closed: there is nothing to answer
        return
    handle, rest, number = sys.stdin.fileno(), b"", 1
    while True:
        block = os.read(handle, BLOCK)
        whole, found, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
        if found or (not block and whole):
            texts = whole.removesuffix(b"\r").decode("utf-8", errors="replace").split("\n")
            if number == 1:
                texts[0] = texts[0].removeprefix("\ufeff")
            yield [(number + at, text.removesuffix("\r")) for at, text in enumerate(texts)]
            number += len(texts)
        if not block:
            return
