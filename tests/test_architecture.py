"""Imports only go down the rooms of docs/architecture.md."""

import ast
import functools
import importlib
import inspect
from pathlib import Path

import rankcore

PACKAGE = Path(rankcore.__file__).parent
# From the bottom up; rooms of one level may know each other, but not in circles.
LEVELS = [
    {"_ext", "include", "_core", "progress"},
    {"metrics", "datasets"},
    {"clicks", "ordinal", "ranking", "model_selection"},
    {"boosting", "structured", "preference", "bounds", "interleaving", "online"},
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


def test_packages_of_one_level_have_no_import_cycles():
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


# Rooms that are the ground of all others, whose modules are what they offer.
GROUND = {"_core", "_ext"}
MOST_OFFERED = 30


def imported_names():
    """Room that imports, room, module and name that it imports, for imports across rooms."""
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue  # binds public names on first use
        for node in import_statements(path):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("rank"):
                continue
            for alias in node.names:
                parts = f"{node.module}.{alias.name}".split(".")[1:]
                if parts[0] not in GROUND | {room}:
                    yield room, parts[0], node.module, alias.name, parts[1:]


def test_rooms_import_only_public_names_of_others():
    private = [
        f"{room} imports {name} of {module}"
        for room, _, module, name, inner in imported_names()
        if any(part.startswith("_") for part in inner)
    ]
    assert not private


def test_rooms_offer_few_names_with_docstrings():
    offered = {}
    for _, other, module, name, _ in imported_names():
        offered.setdefault(other, {})[name] = module
    for room, names in offered.items():
        assert len(names) <= MOST_OFFERED, (room, sorted(names))
        for name, module in names.items():
            found = getattr(importlib.import_module(module), name, None)
            if inspect.isclass(found) or inspect.isfunction(found) or inspect.ismodule(found):
                assert inspect.getdoc(found), f"{module}.{name} has no docstring"
