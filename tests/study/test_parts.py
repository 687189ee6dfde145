"""Each part as a function: the same table as from the whole study."""

import pytest

import privacygames as pg
import privacygames_study as study
from privacygames_study import Person, Settings, Table, compute


@pytest.fixture(scope="module")
def people() -> list[Person]:
    city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=4, rows=3)
    return study.select_people(pg.traces.synthetic(2), city, users=2)


def untimed(table: Table) -> Table:
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in table]


def test_each_function_gives_its_part_of_the_study(people: list[Person]) -> None:
    settings = Settings(
        epsilons=(0.5,),
        epsilons_2=(0.5,),
        shares=(0.5,),
        epsilons_3=(0.5,),
        step=1.0,
        strengths=(4.0,),
        epsilons_approximation=(0.5,),
        radii=(4.0,),
    )
    whole = compute(people, settings)
    parts = {
        "scenario-1": study.scenario_1(people, epsilons=[0.5]),
        "scenario-2": study.scenario_2(people, epsilons=[0.5], shares=[0.5]),
        "scenario-3": study.scenario_3(people, epsilons=[0.5], step=1.0),
        "prior": study.effect_of_the_prior(people, epsilons=[0.5], strengths=[4.0]),
        "approximation": study.approximation(people, epsilons=[0.5], radii=[4.0]),
        "robust": study.robust(people, epsilons=[0.5], strengths=[4.0]),
    }
    for name, table in parts.items():
        assert untimed(table) == untimed(whole[name])
        assert table
