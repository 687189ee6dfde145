"""Errors of adversaries: guaranteed, realised and possible against each, as a table."""

from collections.abc import Iterable, Sequence

import numpy as np

from privacygames.certificates import AdversaryResult
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.metrics import adversary_error
from privacygames.problem import Adversary, AdversaryArrays, Problem
from privacygames.validation import as_list, require_instance

ADVERSARY_HEADINGS = ("adversary", "guaranteed", "realised", "best possible")


def adversary_results(
    mechanism: Mechanism, problem: Problem, adversaries: Iterable[Adversary]
) -> tuple[AdversaryResult, ...]:
    """For each adversary, the error guaranteed for the same prior and errors, realised and possible."""
    known = require_adversaries(adversaries)
    guarantees = mechanism.certificate.bounds.adversaries(mechanism.problem)
    results = []
    for each in known:
        arrays = each.arrays(problem)
        guaranteed = max(
            (
                guarantee.distortion
                for guarantee in guarantees
                if guarantee.distortion is not None and _same(guarantee, arrays)
            ),
            default=None,
        )
        results.append(
            AdversaryResult(each.name, guaranteed, adversary_error(mechanism, problem, each), arrays.max_distortion)
        )
    return tuple(results)


def require_adversaries(adversaries: Iterable[Adversary]) -> list[Adversary]:
    """The adversaries as a list, if they have different names."""
    known = [require_instance(each, Adversary, "an adversary") for each in as_list(adversaries, "adversaries")]
    if len({each.name for each in known}) < len(known):
        raise InvalidProblem("two adversaries have one name; names tell them apart")
    return known


def adversary_table(results: Sequence[AdversaryResult]) -> str:
    """Adversary × (guaranteed, realised, best possible), as text."""
    return aligned([ADVERSARY_HEADINGS, *map(adversary_cells, results)], texts=(0,))


def adversary_cells(result: AdversaryResult) -> tuple[str, str, str, str]:
    """One line of the table."""
    guaranteed = "" if result.guaranteed is None else f"{result.guaranteed:.4f}"
    return result.adversary, guaranteed, f"{result.realised:.4f}", f"{result.maximum:.4f}"


def aligned(lines: Sequence[tuple[str, ...]], texts: tuple[int, ...]) -> str:
    """Rows of cells as aligned columns: texts to the left, numbers to the right."""
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _same(first: AdversaryArrays, second: AdversaryArrays) -> bool:
    """Whether two adversaries have the same prior and errors: a guarantee against one is one against the other."""
    return np.array_equal(first.prior, second.prior) and np.array_equal(first.errors, second.errors)
