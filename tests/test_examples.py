"""The ``>>>`` examples in docstrings, run as tests."""

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

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
