"""``PYTHONPATH=tests python -m points [PAIRS] [SEED]``: ten million random pairs for each mechanism, as a table."""

import sys

from points.examples import MAKERS, example
from points.pairs import search_pairs


def main() -> None:
    """Search; exit with 1 where a pair breaks the guarantee."""
    given = [int(argument) for argument in sys.argv[1:]]
    pairs, seed = [*given, *(10_000_000, 1)[len(given) :]]
    print("| mechanism | control points | pairs | decided exactly | broken | largest share of ε·distance |")
    print("|---|---|---|---|---|---|")
    broken = 0
    for name in MAKERS:
        mechanism = example(name)
        search = search_pairs(mechanism, pairs, seed)
        broken += search.broken
        print(
            f"| {name} | {mechanism.mesh.controls} | {search.pairs:,} | {search.exact:,} | {search.broken} | "
            f"{search.largest:.9f} |",
            flush=True,
        )
    sys.exit(broken > 0)


if __name__ == "__main__":
    main()
