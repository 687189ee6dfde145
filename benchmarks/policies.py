"""Policies × attacks over weeks: ten invented people who share four weeks, and ten real ones who share a few days.

``python benchmarks/policies.py [--data FOLDER] [--repeats 10] [--budget 60]`` writes results/policies.json, the tables
in docs/how-to/weeks.md and its figure. Invented people (``pg.traces.synthetic``) live eight weeks: four to learn from,
four to share. With ``--data``, a folder with usp_saopaulo_window.csv and windows.json, ten phones of São Paulo, whose
13 days are all there are, are compared, too; the data is not part of this project, and only means over people are
written. ``--quick`` compares three people for two weeks, and writes nothing. The noise is the operating system's.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import privacygames as pg
from marked_tables import replace_table

RESULTS = Path(__file__).parent / "results" / "policies.json"
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "weeks.md"
FIGURES = {"invented": PAGE.with_name("weeks.png"), "sao_paulo": PAGE.with_name("weeks-sao-paulo.png")}
PEOPLE, DAYS = 10, 56
COLUMNS, ROWS = 20, 15
"""Of cells of 750 × 530 m, in windows of 15 × 8 km."""


def invented(people: int, days: int, **settings: Any) -> pg.PolicyComparison:
    """People of the synthetic city."""
    city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=COLUMNS, rows=ROWS)
    return pg.compare_policies(pg.traces.synthetic(people, days=days), city, people, **settings)


def sao_paulo(data: Path, people: int, **settings: Any) -> pg.PolicyComparison:
    """The phones that the data's own list recommends."""
    known = json.loads((data / "windows.json").read_text())["usp_saopaulo"]
    box, users = tuple(known["bounds_west_south_east_north"]), known["users10"][:people]
    visits = pg.traces.read(
        data / "usp_saopaulo_window.csv",
        window=box,
        timezone="America/Sao_Paulo",
        columns={"user": "user", "time": "time", "latitude": "lat", "longitude": "lon"},
        users=users,
    )
    grid = pg.Grid.over(box, columns=COLUMNS, rows=ROWS)
    return pg.compare_policies(visits, grid, users, timezone="America/Sao_Paulo", **settings)


def lines_of(compared: dict[str, Any]) -> list[str]:
    """A table of the page."""
    lines = [
        "| policy | metres off | refused | homes found within 100 m | within 200 m | at most, by its guarantee "
        "| stays recalled | place now: error | true cell named | budget left | keeps |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in compared["rows"]:
        cells = [
            row["policy"],
            f"{row['cost']:.0f} m",
            f"{row['refused']:.0%}",
            f"{row['home_100_m']:.0%}",
            f"{row['home_200_m']:.0%} ({row['home_attack']})",
            f"{row['home_bound']:.0%}",
            f"{row['stays_recalled']:.0%}",
            f"{row['error_now']:.0f} m ({row['now_attack']})",
            f"{row['presence_known']:.0%} ({100 * row['presence_low']:.0f} to {row['presence_high']:.0%})",
            f"{row['budget_left']:.0%}",
            "; ".join([", ".join(row["keeps"]) or "nothing", *(f"{name} undecided" for name in row["undecided"])]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return [
        *lines,
        "",
        f"{compared['people']} people, {compared['repeats']} repetitions, {compared['days']} days with "
        f"{compared['requests']} releases in all, ε = {compared['budget']:g} per km a day. Without any output: "
        f"{compared['habits_error']:.0f} m, {compared['habits_known']:.0%} of cells named.",
    ]


def main() -> None:
    """Compare, and write what is to be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with usp_saopaulo_window.csv and windows.json")
    parser.add_argument("--repeats", type=int, default=10, help="repetitions with other random draws")
    parser.add_argument("--budget", type=float, default=60.0, help="ε per km in every 24 hours")
    parser.add_argument("--quick", action="store_true", help="three people, two weeks, one repetition; writes nothing")
    options = parser.parse_args()
    people = 3 if options.quick else PEOPLE
    settings = {"budget": options.budget, "repeats": 1 if options.quick else options.repeats, "matters": "home"}
    compared = {"invented": invented(people, 14 if options.quick else DAYS, **settings)}
    if options.data is not None:
        compared["sao_paulo"] = sao_paulo(options.data, people, **settings)
    for name, comparison in compared.items():
        print(f"{name}\n{comparison}\n", flush=True)
    if options.quick:
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = known | {name: each.to_dict() for name, each in compared.items()}
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    for name, comparison in compared.items():
        pg.plots.policies(comparison).savefig(FIGURES[name], dpi=130)
        replace_table(PAGE, name.replace("_", "-"), lines_of(results[name]))


if __name__ == "__main__":
    main()
