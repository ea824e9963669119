"""Imports only go down: what docs/architecture.md says of the rooms is so."""

import ast
import functools
from pathlib import Path

import pytest

import rankcore

ROOT = Path(__file__).parents[1]
PACKAGE = Path(rankcore.__file__).parent
# From the bottom up; rooms of one level may know each other, but not in circles.
LEVELS = [
    {"_ext", "include", "_core", "progress"},
    {"metrics", "datasets"},
    {"clicks", "ordinal", "ranking", "model_selection"},
    {"boosting", "structured", "preference", "bounds", "interleaving"},
    {"plotting", "dask"},
    {"explain"},
    {"io", "exporters"},
    {"callbacks"},
    {"cli", "__main__"},
]
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


@functools.cache
def import_statements(path):
    return [
        node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def imports():
    """Pairs of rooms: one that imports, the other that is imported."""
    for path in PACKAGE.rglob("*.py"):
        if path.parent == PACKAGE and path.stem == "__init__":
            continue  # binds public names on first use
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in import_statements(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankcore"):
                modules = [node.module]
                if node.module == "rankcore":
                    modules = [f"rankcore.{alias.name}" for alias in node.names]
            else:
                modules = [alias.name for alias in node.names]
            for module in modules:
                parts = module.split(".")
                if parts[0] == "rankcore" and len(parts) > 1 and parts[1] != room:
                    yield room, parts[1], path


def test_imports_only_go_down():
    found = list(imports())
    assert len(found) > 100
    rooms = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}
    assert {room for pair in found for room in pair[:2]} <= LEVEL_OF.keys() <= rooms
    up = [
        (room, other, path.name) for room, other, path in found if LEVEL_OF[other] > LEVEL_OF[room]
    ]
    assert up == []


def test_only_the_top_reaches_names_of_the_whole_package():
    """``import rankcore`` gives every room, whatever its level."""
    whole = set()
    for path in PACKAGE.rglob("*.py"):
        for node in import_statements(path):
            if isinstance(node, ast.Import) and any(one.name == "rankcore" for one in node.names):
                whole.add(path.relative_to(PACKAGE).parts[0].removesuffix(".py"))
    assert whole == {"cli", "exporters"}  # the latter write the version


def module_imports():
    """Pairs of modules: one that imports when it is loaded, the other that is imported."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    for name, path in names.items():
        for node in parsed(path).body:  # what functions import comes later
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rankcore."):
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    yield name, full if full in names else node.module
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield name, alias.name


def test_single_files_have_no_circles():
    below = {}
    for one, other in module_imports():
        if other.startswith("rankcore."):
            below.setdefault(one, set()).add(other)
    assert len(below) > 150
    done = set()

    def visit(module, path):
        assert module not in path, [*path, module]
        if module not in done:
            for other in below.get(module, ()):
                visit(other, [*path, module])
            done.add(module)

    for module in list(below):
        visit(module, [])


def test_one_place_keeps_the_best_model_of_a_fit():
    asking = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if ".keeps_best" in path.read_text()
    }
    # Boosting says which of the rounds that it continues was the best.
    assert asking == {"_core/training.py", "boosting/_training.py"}


def test_rooms_of_one_level_have_no_circles():
    below = {}
    for room, other, _ in imports():
        below.setdefault(room, set()).add(other)
    below["_ext"] = set()

    def visit(room, path):
        assert room not in path, [*path, room]
        for other in below.get(room, ()):
            visit(other, [*path, room])

    for room in below:
        visit(room, [])


def depth(kind):
    """Classes of the package that stand above each other, down to this one."""
    above = [base for base in kind.__bases__ if base.__module__.startswith("rankcore")]
    return 1 + max(map(depth, above), default=0)


def depths(room):
    # Rooms, whose names are in lower case, may need what is not installed.
    kinds = {name: getattr(room, name) for name in room.__all__ if name[0].isupper()}
    return {name: depth(kind) for name, kind in kinds.items() if isinstance(kind, type)}


def test_learners_are_at_most_four_classes_deep():
    found = depths(rankcore)
    assert found["PRank"] == 3
    assert {name: n for name, n in found.items() if n > 4} == {}


def test_learners_on_clusters_are_no_deeper():
    found = depths(pytest.importorskip("rankcore.dask"))
    assert found["PRank"] == 4
    assert {name: n for name, n in found.items() if n > 4} == {}


def public_names():
    """Names of every ``__all__`` of the package, and commands."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in parsed(path).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                names |= {*ast.literal_eval(node.value)}
    commands = (PACKAGE / "cli" / "commands").glob("*.py")
    return names | {
        node.name
        for path in commands
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef)
    }


def functions(folder):
    for path in folder.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path.stem, node


def n_lines(function):
    """Lines of a body, without the docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def n_parameters(function):
    given = function.args
    names = [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@pytest.mark.parametrize("folder", [PACKAGE, ROOT / "benchmarks", ROOT / "reproduce"])
def test_functions_are_short_and_take_few_parameters(folder):
    if not folder.exists():
        pytest.skip("the sources are not here")
    public = public_names() | {"__init__", "fit", "partial_fit"}
    found = list(functions(folder))
    assert len(found) > 100
    long = {(path, one.name): n for path, one in found if (n := n_lines(one)) > 60}
    wide = {
        (path, one.name): n
        for path, one in found
        if (n := n_parameters(one)) > 6 and one.name not in public
    }
    assert (long, wide) == ({}, {})


def test_files_are_short():
    long = {path: n for path in PACKAGE.rglob("*.py") if (n := path.read_text().count("\n")) > 500}
    assert long == {}
