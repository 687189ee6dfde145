"""The interior-point method's settings: documented, validated, passed down, and by default what they always were."""

import ast
import inspect
from dataclasses import fields
from pathlib import Path

import pytest

import privacygames as pg
from formulations import scattered
from privacygames.solvers.interior import settings as settings_module
from support import block_iterations

INTERIOR = Path(str(settings_module.__file__)).parent


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("boundary_fraction", 1.5),
        ("boundary_fraction", 0.0),
        ("boundary_fraction", float("nan")),
        ("neighbourhood", 0.5),
        ("second_order_limit", -1.0),
        ("second_order_limit", float("inf")),
        ("max_correctors", -1),
        ("max_correctors", 1.5),
        ("max_iterations", 0),
        ("max_iterations", True),
        ("join_at", "0.8"),
    ],
)
def test_wrong_values_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(pg.InvalidProblem, match=f"^{name} is"):
        pg.InteriorSettings(**{name: value})  # type: ignore[arg-type]


def test_settings_are_of_their_kind() -> None:
    with pytest.raises(pg.InvalidProblem, match="settings"):
        pg.Interior(settings={"join_at": 0.7})  # type: ignore[arg-type]


def test_every_setting_is_documented() -> None:
    """A text below each field says what it is."""
    (class_definition,) = ast.parse(inspect.getsource(pg.InteriorSettings)).body
    assert isinstance(class_definition, ast.ClassDef)
    documented = {
        str(field.target.id)
        for field, text in zip(class_definition.body, class_definition.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
    }
    assert documented == {field.name for field in fields(pg.InteriorSettings)}


def test_every_setting_is_used() -> None:
    """Outside the file that defines them."""
    sources = [path.read_text(encoding="utf-8") for path in INTERIOR.rglob("*.py") if path.name != "settings.py"]
    unused = [
        field.name for field in fields(pg.InteriorSettings) if not any(f".{field.name}" in text for text in sources)
    ]
    assert unused == []


def test_settings_change_the_way_and_not_the_result() -> None:
    problem = scattered(30, 1)
    cautious = pg.InteriorSettings(boundary_fraction=0.5, max_correctors=0)
    assert block_iterations(problem, cautious, epsilon=1.0) > block_iterations(problem, epsilon=1.0)
    costs = [
        pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=1, settings=settings)).certificate.cost
        for settings in (cautious, pg.InteriorSettings())
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)
