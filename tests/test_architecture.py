"""Architecture: packages are imported through their ``__init__``, caches are listed, tests use public names only.

Which package may import which is checked by import-linter (``make check``); this file checks what it cannot express.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
ROOTS = ("privacygames", "privacygames_study")


def modules() -> dict[str, Path]:
    """Every module by its dotted name; a package by its own."""
    found = {}
    for path in sorted(path for root in ROOTS for path in (SOURCE / root).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py" and name not in ROOTS}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Every module imported from, with the name that is taken from it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def exported(package: str) -> set[str]:
    """The names in a package's ``__all__``."""
    for node in parsed(MODULES[package]).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def public_interface(importer: str, target: str) -> str | None:
    """The outermost package on the path to a module that the importer is not in: what it must import from."""
    parts = target.split(".")
    for length in range(2, len(parts) + 1):
        package = ".".join(parts[:length])
        if package in PACKAGES and importer != package and not importer.startswith(f"{package}."):
            return package
    return None


@pytest.mark.parametrize("importer", MODULES)
def test_packages_are_imported_through_their_init(importer: str) -> None:
    for module, name in imports(MODULES[importer]):
        if not module.startswith(tuple(f"{root}." for root in ROOTS)) or importer == "privacygames":
            continue
        package = public_interface(importer, module)
        if package is not None:
            assert module == package, f"{importer} imports {module}; {package} should export what it needs"
            assert name in exported(package), f"{importer} imports {name} from {package}, which does not export it"


def test_exported_class_names_are_unique() -> None:
    """Two packages may export the same class, but no two classes are exported under one name."""
    classes = defaultdict(set)
    for package in PACKAGES:
        for name in exported(package):
            value = getattr(import_module(package), name)
            if isinstance(value, type):
                classes[name].add(f"{value.__module__}.{value.__qualname__}")
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}


STATE = {
    "privacygames.certificates.exponentials.exact_enclosure": "two numbers",
    "privacygames.fleet.shared_problem._decoded": "SHA-256 of the bytes",
    "privacygames.fleet.stored_fleet: cache": "the number of a random word; of one batch",
    "privacygames.fleet.stored_fleet: lru_cache": "the position in an index that is pinned by its SHA-256",
    "privacygames.blas_routines.exported_routines": "nothing: what is installed",
    "privacygames.points.bernstein.halves": "a degree",
    "privacygames.points.bernstein.products": "two degrees and the number of axes",
    "privacygames.points.bernstein.slopes": "a degree and the number of axes",
    "privacygames.presentation.pages._environment": "a package's name: templates are installed with it",
    "privacygames.tables.kernel: cache": "a purpose in texts; of one batch and rule",
    "privacygames.threads._libraries": "nothing: what is loaded",
    "privacygames.tracking._cached_logs": "a Mobility, compared by content, and whole numbers",
    "privacygames.tracking._cached_products": "a Mobility, compared by content, and whole numbers",
    "privacygames.solvers.linalg.host.compiled_extension": "nothing: what is installed",
    "privacygames_study.provenance.revision": "nothing: the source that this process loaded",
}
"""What outlives a call, and by what it is found again. Never by a path: a path does not say what is there."""

CONTAINERS = {"dict", "list", "set", "OrderedDict", "defaultdict", "Counter", "deque", "bytearray"}
CONTAINERS |= {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "ContextVar", "local"}
PLACES = {"path", "paths", "folder", "file", "filename", "directory", "source", "target", "out", "where"}


def last_name(node: ast.expr) -> str:
    """``lru_cache`` of ``functools.lru_cache(maxsize=4)``."""
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called).rpartition(".")[2]


def cached_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            last_name(each) in ("cache", "lru_cache") for each in node.decorator_list
        ):
            yield node


def state(name: str, tree: ast.Module) -> Iterator[str]:
    """Caches, and containers of a module or class that start empty: what else would they be for?"""
    decorators = set()
    for function in cached_functions(tree):
        yield f"{name}.{function.name}"
        decorators |= set(function.decorator_list)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Call) and node not in decorators:
            yield from (f"{name}: {each}" for each in ("cache", "lru_cache") if each == last_name(node))
        if isinstance(node, ast.Global):
            yield from (f"{name}.{each}" for each in node.names)
        if isinstance(node, ast.Module | ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.Assign) and starts_empty(each.value):
                    yield f"{name}.{ast.unparse(each.targets[0])}"
                if isinstance(node, ast.Module) and isinstance(each, ast.AnnAssign) and starts_empty(each.value):
                    yield f"{name}.{ast.unparse(each.target)}"


def starts_empty(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return last_name(value) in CONTAINERS and not value.args
    return isinstance(value, ast.Dict | ast.List | ast.Set) and not ast.unparse(value).strip("{}[]")


def test_every_cache_is_listed() -> None:
    """Every cache is listed above with its key, which decides whether it can be stale."""
    assert sorted(each for name, path in MODULES.items() for each in state(name, parsed(path))) == sorted(STATE)


def test_no_cache_is_keyed_by_a_path() -> None:
    for name, path in MODULES.items():
        for function in cached_functions(parsed(path)):
            for argument in (*function.args.args, *function.args.kwonlyargs):
                kind = "" if argument.annotation is None else ast.unparse(argument.annotation)
                keyed_by_path = argument.arg in PLACES or "Path" in kind
                assert not keyed_by_path, f"{name}.{function.name} is keyed by a path"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: path.stem)
def test_tests_use_no_private_names(path: Path) -> None:
    """No attribute, import or patched name of the library that starts with an underscore, but for IPython's."""
    private = [
        node.attr
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")  # of a class of the tests
        and node.attr != "_repr_html_"
    ]
    private += [name for module, name in imports(path) if module.startswith("privacygames") and name.startswith("_")]
    assert [name for name in private if name != "_exit"] == []
