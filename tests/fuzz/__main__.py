"""``make fuzz``: random problems of all kinds and scales against the program written out and exact duality."""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from secrets import randbelow

from fuzz.case import Case
from fuzz.generator import generate
from fuzz.judge import WRONG, judge
from fuzz.run import TIME_LIMIT, Result, findings, run, table
from fuzz.shrinking import shrink

SHOWN = 60


def main() -> None:
    """Run what was asked for; exit with 1 where anything was found."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first problem; those after it have the seeds after it")
    parser.add_argument("--count", type=int, default=5000, help="how many problems")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after so long, whatever is left")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--shrink", type=float, default=0.0, help="seconds to simplify each finding for")
    given = parser.parse_args()
    first = randbelow(10**9) if given.seed is None else given.seed
    print(f"{given.count} problems from seed {first} on (SEED={first} repeats them)", flush=True)
    results = collect(first, given.count, given.minutes, given.processes)
    print()
    print(table(results))
    worst = findings(results)
    for each in worst[:SHOWN]:
        print(f"\nSEED={each.seed} COUNT=1: {each.outcome.name}; {each.kind}; {'; '.join(each.traits)}")
        print(f"  {each.outcome.detail}")
        if given.shrink and each.outcome.name != "late":
            print(simplified(each, given.shrink))
        elif given.count == 1:
            print(generate(each.seed).script())
    if len(worst) > SHOWN:
        print(f"\nand {len(worst) - SHOWN} more: {', '.join(str(each.seed) for each in worst[SHOWN:])}")
    wrong = sum(each.outcome.name in WRONG for each in worst)
    print(f"\n{len(results)} problems: {wrong} wrong, {len(worst) - wrong} other findings")
    sys.exit(bool(worst))


def collect(first: int, count: int, minutes: float, processes: int) -> list[Result]:
    """Results of as many problems as there is time for, with a line of progress now and then."""
    ends = time.monotonic() + 60 * minutes if minutes else float("inf")

    def seeds() -> Iterator[int]:
        for seed in range(first, first + count):
            if time.monotonic() > ends:
                return
            yield seed

    results: list[Result] = []
    told = 0.0
    for result in run(seeds(), processes):
        results.append(result)
        if time.monotonic() - told > 5:
            told = time.monotonic()
            print(f"{len(results)} of {count}: {len(findings(results))} findings", flush=True)
    return results


def simplified(result: Result, seconds: float) -> str:
    """A small case with the same outcome, as Python."""
    wanted = (result.outcome.name, result.outcome.detail.split(" ")[0])

    def keeps(other: Case) -> bool:
        found = judge(other, time_limit=TIME_LIMIT)
        return (found.name, found.detail.split(" ")[0]) == wanted

    case = shrink(generate(result.seed), keeps, seconds)
    return f"{case.script()}\n# {judge(case, time_limit=TIME_LIMIT)}"


if __name__ == "__main__":
    main()
