"""Remarks on answers that say nothing, or never serve somebody: what is wrong, and what helps."""

from privacygames.analysis.formatting import percent
from privacygames.certificates import Usefulness
from privacygames.problem import Problem
from privacygames.spaces import display_label

MOST_NAMED = 5
FEW_KINDS = 0.5
"""Where less than this share of the secrets that occur can be told apart, that is worth a remark."""

HELPS = (
    "What helps: a larger epsilon, the worst secret's cost instead of the average, or a cost that values rare secrets."
)


def remarks(useful: Usefulness, problem: Problem) -> list[str]:
    """What a user should be told before anything else; empty where answers are as useful as they look."""
    found = []
    if useful.limitless:
        found.append("The epsilon promised is so large that it limits nothing: lower it.")
    occurring = int((problem.prior.probabilities > 0).sum())
    if useful.constant and len(problem.space) > 1:
        return [*found, f"The answers do not depend on the secret at all: they tell nobody anything. {HELPS}"]
    if useful.unserved:
        names = [display_label(problem.space.labels[position]) for position in useful.unserved[:MOST_NAMED]]
        more = len(useful.unserved) - len(names)
        listed = ", ".join(names) + (f" and {more} more" if more else "")
        count = "one never gets its" if len(useful.unserved) == 1 else f"{len(useful.unserved)} never get their"
        found.append(
            f"Of the {occurring} secrets that occur, {count} best answer ({listed}: "
            f"{percent(useful.unserved_share)} of the prior)."
        )
    if useful.kinds < FEW_KINDS * occurring:
        found.append(
            f"Many secrets get almost the same answers ({useful.kinds} kinds of rows for the {occurring} that occur); "
            f"an answer carries {useful.bits:.2g} bits."
        )
    return [*found, HELPS] if useful.unserved or useful.kinds < FEW_KINDS * occurring else found
