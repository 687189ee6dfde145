"""The adversaries of a problem document: its ``[[adversary]]`` tables."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.problem.adversary import Adversary, max_distortion
from privacygames.problem.bounds import PROBLEM_ADVERSARY
from privacygames.problem.prior_document import prior_from
from privacygames.problem.problem import Problem
from privacygames.problem.visit_csv import PAIR_KEYS, csv_path, pairs_from_csv
from privacygames.spaces import Categories, Space, error_context
from privacygames.table_reader import TableReader

KEYS = ("name", "distortion", "share", "prior", "sharpened", "errors", "guesses", "attribute")
MAXIMISED = "most"
"""The value of ``distortion`` that asks for as much as possible."""

MAX_ADVERSARIES = 32
"""Adversaries in a document from somebody else: each may have a table of errors, which takes memory."""


@dataclass(frozen=True)
class DocumentAdversary:
    """An adversary of a document.

    Attributes:
        adversary: the adversary.
        distortion: the distortion asked for against them; None for none.
        maximised: whether it is to be as large as possible.
    """

    adversary: Adversary
    distortion: float | None
    maximised: bool


def parse_adversaries(
    tables: object, problem: Problem, folder: Path | None, *, most: int | None = None
) -> list[DocumentAdversary]:
    """The adversaries that tables describe.

    Args:
        tables: the tables.
        problem: what the adversaries are about.
        folder: where the files are that the tables name; None refuses all files.
        most: how many guesses and attribute values there may be; with it, no more than 32 adversaries.
    """

    def read(given: TableReader) -> DocumentAdversary:
        adversary = _adversary(given, problem, folder, most)
        adversary.require_fit(problem)
        return document_adversary(given, adversary, lambda: max_distortion(problem, adversary))

    if most is not None and isinstance(tables, list) and len(tables) > MAX_ADVERSARIES:
        raise TooLarge(f"[[adversary]] there are {len(tables)}; at most {MAX_ADVERSARIES} are allowed here")
    return read_adversaries(tables, KEYS, read)


def read_adversaries(
    tables: object, keys: tuple[str, ...], read: Callable[[TableReader], DocumentAdversary]
) -> list[DocumentAdversary]:
    """The adversaries of the ``[[adversary]]`` tables of a document, whose names must differ.

    Args:
        tables: the tables.
        keys: the keys that each may have.
        read: reads one of them.
    """
    if not isinstance(tables, list):
        raise InvalidProblem("[[adversary]] is written with two brackets, one table for each")
    adversaries = []
    for number, table in enumerate(tables, start=1):
        given = TableReader(table, f"[[adversary]] {number}", keys)
        with error_context(f"[[adversary]] {number}"):
            adversaries.append(read(given))
    names = [each.adversary.name for each in adversaries]
    for name in names:
        if names.count(name) > 1:
            raise InvalidProblem(f"[[adversary]] two are called {name!r}; names tell them apart")
    return adversaries


def document_adversary(given: TableReader, adversary: Adversary, largest: Callable[[], float]) -> DocumentAdversary:
    """An adversary with the distortion that their table asks for.

    Args:
        given: the table.
        adversary: the adversary that it describes.
        largest: computes the largest distortion possible against them.
    """
    if "share" in given:
        share = given.number("share")
        if "distortion" in given or not 0 <= share <= 1:
            raise InvalidProblem("share is between 0 and 1, of the largest distortion possible, instead of distortion")
        return DocumentAdversary(adversary, share * largest(), maximised=False)
    if given.value("distortion", None) == MAXIMISED:
        return DocumentAdversary(adversary, None, maximised=True)
    return DocumentAdversary(adversary, given.number("distortion", None), maximised=False)


def distortion_bounds(bounds: dict[str, Any], named: list[DocumentAdversary]) -> dict[str, Any]:
    """The distortion by adversary, where it is about more than the problem's own; else nothing.

    Args:
        bounds: the bounds of the document.
        named: its adversaries.
    """
    guaranteed = {each.adversary: each.distortion for each in named if each.distortion is not None}
    maximised = [each.adversary for each in named if each.maximised]
    if not guaranteed and not maximised:
        return {}
    if len(maximised) > 1:
        raise InvalidProblem('[[adversary]] the distortion of two is "most"; only that of one can be maximised')
    own = {PROBLEM_ADVERSARY: bounds["distortion"]} if "distortion" in bounds else {}
    if maximised or "cost_at_most" in bounds:
        return {"distortion": {(maximised or [PROBLEM_ADVERSARY])[0]: None} | own | guaranteed}
    return {"distortion": own | guaranteed}


def _adversary(given: TableReader, problem: Problem, folder: Path | None, most: int | None) -> Adversary:
    name = given.string("name")
    prior = _prior(given, problem, folder)
    errors = given.array("errors", None, max_length=most)
    guesses = None if "guesses" not in given else _space(given.array("guesses", max_length=most))
    if "attribute" not in given:
        return Adversary(name, prior=prior, errors=errors, guesses=guesses)
    about = TableReader(given.value("attribute"), "attribute", ("given", "csv", *PAIR_KEYS))
    if ("given" in about) == ("csv" in about):
        raise InvalidProblem("attribute needs either given = [[…], …], P(a|s) with a row for each secret, or csv = …")
    if "given" in about:
        table = TableReader(about.table, "attribute with given = …", ("given",)).array("given", max_length=most)
        return Adversary.of_attribute(name, given=table, errors=errors, guesses=guesses, prior=prior)
    pairs = pairs_from_csv(problem.space, about, csv_path(folder, about))
    smoothing = about.number("smoothing", 0.0)
    return Adversary.from_table(
        name, problem.space, pairs, errors=errors, attributes=guesses, smoothing=smoothing, prior=prior
    )


def _prior(given: TableReader, problem: Problem, folder: Path | None) -> Prior | None:
    prior = prior_from(problem.space, given.value("prior"), folder) if "prior" in given else None
    if "sharpened" not in given:
        return prior
    evidence = TableReader(given.value("sharpened"), "sharpened", ("strength", "places"))
    return (prior or problem.prior).sharpen(evidence.number("strength"), places=evidence.integer("places", 2))


def _space(labels: list[Any]) -> Space:
    return Categories(labels)
