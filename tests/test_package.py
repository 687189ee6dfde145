"""The package as a whole: public names, quick imports, examples and documents that run."""

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import privacygames as pg

ROOT = Path(__file__).parents[1]


def public_modules() -> list[ModuleType]:
    """The modules that are public names themselves."""
    values = [getattr(pg, name) for name in pg.__all__ if name not in ("replays", "study")]
    return [value for value in values if isinstance(value, ModuleType)]


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_public_name_can_be_had() -> None:
    assert pg.__all__ == sorted(set(pg.__all__))
    for name in pg.__all__:
        assert getattr(pg, name) is not None
    with pytest.raises(AttributeError, match="no public name 'nothing'"):
        _ = pg.nothing


def test_types_and_lazy_names_agree() -> None:
    """What a type checker reads in the package's ``__init__`` is what is imported on first use, and from there."""
    tree = ast.parse((ROOT / "src/privacygames/__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    declared = {str(alias.asname): f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    assert sorted([*declared, "__version__"]) == pg.__all__
    for name, place in declared.items():
        module, _, attribute = place.rpartition(".")
        assert getattr(pg, name) is getattr(import_module(module), attribute)


def test_tab_completion_shows_public_names_only() -> None:
    assert dir(pg) == pg.__all__
    for module in public_modules():
        assert dir(module) == sorted(set(module.__all__)), module.__name__


@pytest.mark.parametrize("module", public_modules(), ids=lambda module: module.__name__)
def test_a_public_module_is_an_ordinary_module(module: ModuleType) -> None:
    """``import privacygames.attacks`` and ``from privacygames.attacks import optimal`` work, in a new process, too."""
    name = module.__name__
    code = f"import {name} as module; from {name} import *; print(module.__name__, *sorted(n for n in module.__all__))"
    assert run_python(code).split() == [name, *sorted(module.__all__)]
    assert module.__spec__ is not None
    assert Path(str(module.__spec__.origin)).is_relative_to(ROOT)


def test_importing_a_public_module_by_attribute_or_by_import_is_the_same() -> None:
    for module in public_modules():
        assert import_module(module.__name__) is getattr(pg, module.__name__.rpartition(".")[2])


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, privacygames; print(*[m for m in ('numpy', 'scipy', 'highspy', 'matplotlib') if m in sys.modules])"
    )
    assert run_python(code) == ""


def test_a_first_design_loads_only_what_it_needs() -> None:
    """Together these take longer to import than everything that a design on a grid needs."""
    code = (
        "import sys, privacygames as pg\n"
        "problem = pg.Problem(pg.Prior.uniform(pg.Grid(3, 4)), cost='euclidean')\n"
        "pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=1))\n"
        "names = 'scipy.linalg scipy.sparse highspy numpy.random importlib.metadata tempfile privacygames.points'\n"
        "print(*[name for name in names.split() if name in sys.modules])"
    )
    assert run_python(code) == ""


def test_the_command_line_starts_without_anything_heavy() -> None:
    code = (
        "import sys; sys.argv = ['privacygames', '--version']\n"
        "from privacygames.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*[m for m in ('numpy', 'scipy', 'highspy', 'matplotlib') if m in sys.modules])"
    )
    assert run_python(code).splitlines()[1:] in ([], [""])


def test_the_library_does_not_load_the_evaluation() -> None:
    code = (
        "import sys, privacygames, privacygames.cli.app\n"
        "for name in privacygames.__all__: getattr(privacygames, name)\n"
        "print(*[m for m in sys.modules if m.startswith('privacygames_study')])"
    )
    assert run_python(code) == ""


def test_the_verifier_runs_without_solvers(tmp_path: Path) -> None:
    space = pg.Categories("ab")
    pg.design(pg.Problem(pg.Prior.uniform(space)), epsilon=1.0).save(tmp_path / "m.pgm")
    code = (
        "import sys; from privacygames import verify\n"
        f"verify({str(tmp_path / 'm.pgm')!r})\n"
        "print(*[m for m in sys.modules if m.startswith(('scipy', 'highspy', 'privacygames.solvers', "
        "'privacygames.programs', 'privacygames.designer'))])"
    )
    assert run_python(code) == ""


WITHOUT_EXTRAS = """
import sys
for missing in ("matplotlib", "jinja2", "pyarrow", "distributed", "pandas", "torch"):
    sys.modules[missing] = None
import privacygames as pg
problem = pg.Problem(pg.Prior.uniform(pg.Grid(2, 2)))
pg.design(problem, epsilon=1.0).save(sys.argv[1])
assert pg.load(sys.argv[1]).sample("cell-0") in problem.space.labels
pg.verify(sys.argv[1])
pg.explain(pg.evaluate(pg.load(sys.argv[1]), problem), problem)
for call in (
    lambda: pg.plots.comparison(pg.compare(problem, {"uniform": pg.baselines.uniform(problem)})),
    lambda: pg.traces.read(sys.argv[1], format="parquet"),
):
    try:
        call()
    except pg.InvalidProblem as error:
        print(error)
from privacygames.cli.app import app
app(["demo", "--figure", "x.png"])
"""


def test_without_extras_everything_but_figures_works(tmp_path: Path) -> None:
    """``pip install privacygames`` alone loads, verifies, samples and designs; what needs more names it."""
    command = [sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path / "m.pgm")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "drawing a figure needs matplotlib: pip install 'privacygames[figures]'" in done.stdout
    assert "--figure needs matplotlib: pip install 'privacygames[figures]'" in done.stderr
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(path: Path) -> None:
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert "realised epsilon" in done.stdout


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.stem)
def test_python_snippets_in_documents_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a document run one after the other; a block ``text`` after one is what it prints."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```(\w+)\n(.*?)```", path.read_text(), flags=re.DOTALL)
    printed = ""
    for kind, body in blocks:
        if kind == "python":
            printed = run_block(body, namespace)
        elif kind == "text" and printed:
            assert body.strip() == printed.strip()


def test_the_shell_block_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    block = next(body for body in blocks if "cd examples" in body)
    assert block.count("privacygames ") == 6
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = ["sh", "-e", "-c", block]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "every guarantee holds" in done.stdout
    assert (tmp_path / "examples" / "compared.png").stat().st_size > 10_000


def run_block(body: str, namespace: dict[str, object]) -> str:
    from contextlib import redirect_stdout
    from io import StringIO

    output = StringIO()
    with redirect_stdout(output):
        exec(compile(body, "<document>", "exec"), namespace)
    return output.getvalue()


def test_nothing_about_a_machine_is_in_the_tree() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not names:
        pytest.skip("not a git checkout")
    pattern = re.compile(r"/(home|root|work|Users)/\w+|pypi\.org|registry\.npmjs")
    found = [
        name
        for name in names
        if (ROOT / name).suffix in {".py", ".md", ".toml", ".txt", ""}
        and (ROOT / name).is_file()
        and name != "tests/test_package.py"
        and pattern.search((ROOT / name).read_text(errors="ignore"))
    ]
    assert found == []
