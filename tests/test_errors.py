"""Errors carry the field they are about, and each interface names it in its own language."""

import pickle
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.cli import apply, design, find
from privacygames.cli.app import in_options, option_names
from privacygames.errors import Field, UnreadableFile


def test_a_message_names_fields_as_whoever_shows_it_calls_them() -> None:
    error = pg.InvalidProblem("give ", Field("epsilon"), " or ", Field("cost_at_most"), ": epsilon is in the text, too")
    assert str(error) == "give epsilon or cost_at_most: epsilon is in the text, too"
    assert error.message(str.upper) == "give EPSILON or COST_AT_MOST: epsilon is in the text, too"
    assert error.field == "epsilon"
    assert error.to_dict()["field"] == "epsilon"


def test_an_error_without_a_field_has_none_in_json() -> None:
    assert pg.InvalidProblem("wrong").to_dict() == {"kind": "InvalidProblem", "status": "INVALID", "message": "wrong"}


def test_a_location_comes_before_the_message_and_stays() -> None:
    error = pg.InvalidProblem(Field("epsilon"), " is -1").at("problem.toml, [bounds]")
    assert str(error) == "problem.toml, [bounds] epsilon is -1"
    assert (error.field, error.message()) == ("epsilon", "epsilon is -1")


@pytest.mark.parametrize(
    "error",
    [
        pg.Infeasible("none", limit=0.5, bound="distortion"),
        pg.SolveFailed("late", status=pg.Status.TIME_LIMIT),
        UnreadableFile("a.pgm", "it is a folder"),
        pg.InvalidProblem(Field("within"), " is -1").at("[bounds]"),
    ],
)
def test_errors_cross_processes_whole(error: pg.PrivacyGamesError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.to_dict()) == (type(error), str(error), error.to_dict())
    assert (copy.field, copy.location, copy.status) == (error.field, error.location, error.status)


@pytest.mark.parametrize(
    ("bounds", "field"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "within": "far"}, "within"),
        ({"cost_at_most": "cheap"}, "cost_at_most"),
        ({"epsilon": 1, "worst_case": 2}, "worst_case"),
        ({"distortion": {}}, "distortion"),
    ],
)
def test_bounds_say_which_of_them_is_wrong(bounds: dict[str, object], field: str) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    with pytest.raises(pg.InvalidProblem) as caught:
        pg.design(problem, **bounds)  # type: ignore[call-overload]
    assert caught.value.field == field


def test_a_key_of_a_document_has_its_table_as_location(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text('[space]\nkind = "numbers"\nfrom = 1\nto = 3\nstep = "x"\n[prior]\nuniform = true\n')
    from privacygames.problem import ProblemFile

    with pytest.raises(pg.InvalidProblem) as caught:
        _ = ProblemFile(file).problem
    assert (caught.value.field, caught.value.location) == ("step", "[space]")


def test_options_are_read_from_the_commands_signature() -> None:
    assert option_names(design.design)["worst_cost_at_most"] == "--worst-cost-at-most"
    assert option_names(apply.apply)["as_json"] == "--json"
    assert "paths" not in option_names(apply.apply)  # an argument, which has no option
    own = pg.InvalidProblem("give ", Field("cost_at_most"), ", not ", Field("tolerance"))
    assert in_options(own, find.find) == "give --cost-at-most, not tolerance"
    assert in_options(own.at("[bounds]"), find.find) == "[bounds] give cost_at_most, not tolerance"
