"""``privacygames sample``: draw outputs."""

import os
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from privacygames.cli.output import Json, print_json, warn
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.mechanism import Mechanism, PublicMechanism
    from privacygames.spaces import Label

BLOCK_BYTES = 1 << 18
"""Largest number of bytes read at once; if fewer are available, their lines get outputs without waiting for more."""


class OnError(StrEnum):
    """What happens to a line that is not a secret."""

    STOP = "stop"
    SKIP = "skip"


class Source(Protocol):
    """What reads the secrets of one mechanism from texts, and draws outputs for them.

    >>> from privacygames.cli.sample import LabelSource
    >>> source: Source = LabelSource(pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30])))))
    >>> [source.text(output) for output in source.draw([source.parse("30")])]
    ['30']
    """

    def parse(self, text: str) -> Any:
        """The secret that a text names; the error for any other text does not show it."""

    def draw(self, secrets: list[Any]) -> Sequence[int]:
        """The index of an output for each secret."""

    def text(self, output: int) -> str:
        """An output as a line."""

    def json(self, output: int) -> Any:
        """An output for JSON."""

    @property
    def warnings(self) -> list[str]:
        """What to say once all outputs are drawn."""


def sample(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    secret: Annotated[
        list[str] | None,
        typer.Argument(help="The secret. Other users can see it in the process list: prefer standard input."),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LATITUDE,LONGITUDE",
            help="The point, where the secrets are points; X,Y in plain km, a number for an interval. May be repeated.",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Outputs per secret.")] = 1,
    on_error: Annotated[
        OnError, typer.Option(help="What happens to a line that is not a secret; the message has its number only.")
    ] = OnError.STOP,
    as_json: Json = False,
) -> None:
    """Draw a random output for a secret, with randomness from the operating system.

    Without SECRET or --at, secrets are read from standard input, one per line, and each output is printed at once.
    Blank lines and spaces around a secret are ignored. The guarantees hold for one output: further outputs for the same
    secret reveal more.

    Where the secrets are points, a line has the form of --at, and so have outputs: the latitude comes first. A point
    outside the area is moved to its nearest point.
    """
    source = _source(file, secret or [], at or [])
    drawn: list[Any] = []
    given = secret or at
    reader = _Reader(source, "--at" if at else "secret" if secret else "line", on_error)
    for batch in [list(enumerate(given, start=1))] if given else _lines():
        secrets = [each for each in reader.secrets(batch) for _ in range(count)]
        outputs = source.draw(secrets) if secrets else []
        if as_json:
            drawn += map(source.json, outputs)
        elif secrets:
            sys.stdout.write("".join(f"{source.text(output)}\n" for output in outputs))
            sys.stdout.flush()
        if reader.error is not None:
            raise reader.error
    if as_json:
        print_json({"answers": drawn})
    warn(source.warnings)


def _source(file: Path, labels: list[str], points: list[str]) -> Source:
    """What draws from a mechanism file, which must take the secrets that are given."""
    from privacygames.analysis import ConstantOutputs, usefulness_warnings
    from privacygames.mechanism import Mechanism, PublicMechanism
    from privacygames.mechanism_files import load_any

    mechanism = load_any(file)
    if isinstance(mechanism, Mechanism | PublicMechanism):
        if points:
            raise InvalidProblem(
                "--at is for mechanisms whose secrets are points; those of this one are cells or labels: give one of "
                "them, or a line for each on standard input"
            )
        if isinstance(mechanism, Mechanism):
            warn(usefulness_warnings(mechanism.certificate.usefulness, mechanism.problem))
        return LabelSource(mechanism)
    from privacygames.cli.points_input import PointSource

    if labels:
        raise InvalidProblem(
            "the secrets of this mechanism are points, not cells or labels: give each with --at, or on a line of "
            "standard input"
        )
    warn([ConstantOutputs()] if mechanism.constant else [])
    return PointSource(mechanism)


class LabelSource:
    """Draws outputs for labels that are given as texts.

    Args:
        mechanism: the mechanism.
    """

    def __init__(self, mechanism: "Mechanism | PublicMechanism") -> None:
        from privacygames.spaces import display_label

        self._mechanism, self._sampler = mechanism, mechanism.sampler()
        self._known = {display_label(label): label for label in mechanism.secrets.labels}

    def parse(self, text: str) -> "Label":
        """The label that a text stands for."""
        label = self._known.get(text, self._known.get(text.strip()))
        return self._mechanism.secrets.labels[self._mechanism.secrets.index(text)] if label is None else label

    def draw(self, secrets: "list[Label]") -> Sequence[int]:
        """The index of an output for each label."""
        return self._sampler.draw(self._mechanism.secrets.indices(secrets)).tolist()  # type: ignore[no-any-return]

    def text(self, output: int) -> str:
        """An output as a line: its label."""
        from privacygames.spaces import display_label

        return display_label(self._mechanism.observables.labels[output])

    def json(self, output: int) -> Any:
        """An output for JSON: its label."""
        return self._mechanism.observables.labels[output]

    @property
    def warnings(self) -> list[str]:
        """None: every label of the space is as good as another."""
        return []


class _Reader:
    """Reads secrets from texts; errors name a text by its position, never by its content."""

    def __init__(self, source: Source, unit: str, on_error: OnError) -> None:
        self._source, self._unit, self._on_error = source, unit, on_error
        self.error: Exception | None = None

    def secrets(self, batch: list[tuple[int, str]]) -> Iterator[Any]:
        """The secrets of a batch up to the first text that is not one; or all, where such texts are skipped."""
        for number, text in batch:
            try:
                yield self._source.parse(text)
            except InvalidProblem as error:
                if self._unit == "line" and not text.strip():
                    continue
                message = f"{self._unit} {number}: {error}"
                if self._on_error is OnError.STOP:
                    self.error = type(error)(message)
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
