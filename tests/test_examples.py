"""The ``>>>`` examples in docstrings, run as tests."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import numpy as np
import pytest

import privacygames as pg
import privacygames_study

MODULES = sorted(
    module.name
    for package in (pg, privacygames_study)
    for module in walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples know ``pg`` and ``np``, and run in an empty folder."""
    try:
        module = import_module(name)
    except ImportError as error:  # an optional library
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(module, extraglobs={"pg": pg, "np": np}, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def public_functions_and_classes() -> dict[str, object]:
    """What a user can call, by name: in the package and in its public modules."""
    values: dict[str, object] = {}
    for name in pg.__all__:
        value = getattr(pg, name)
        if isinstance(value, ModuleType):
            values |= {f"{name}.{each}": getattr(value, each) for each in value.__all__}
        else:
            values[name] = value
    return {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)}


def test_every_public_function_and_class_has_an_example() -> None:
    missing = {
        name for name, value in public_functions_and_classes().items() if ">>>" not in (inspect.getdoc(value) or "")
    }
    assert missing == set()
