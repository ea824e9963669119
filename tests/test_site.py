"""The site as far as it shows without building it: pages of names."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import rankcore

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
if not (DOCS / "conf.py").exists():
    pytest.skip("the sources are not here", allow_module_level=True)

# Listed by hand: a module without __all__.
OTHERS = {"rankcore.progress": {"Progress", "bar", "watch"}}


def listed():
    """Names with a page, of each module: those of the tables of the reference."""
    found = {}
    for page in (DOCS / "reference").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", text, re.DOTALL):
            module = re.search(r"currentmodule:: (\S+)", block)[1]
            names = re.findall(r"^   (\w+)$", block, re.MULTILINE)
            found.setdefault(module, set()).update(names)
    return found


def public():
    """Names of the package, and of its public modules, that are not modules themselves."""
    modules = ["rankcore", "rankcore.structured"]
    for module in pkgutil.iter_modules(rankcore.__path__, "rankcore."):
        if module.name.rpartition(".")[2] in rankcore.__all__:
            modules.append(module.name)
    for name in modules:
        module = importlib.import_module(name)
        names = set(getattr(module, "__all__", ())) or OTHERS[name]
        yield name, {one for one in names if not is_module(getattr(module, one))}


def is_module(value):
    return type(value).__name__ == "module"


def test_every_public_name_has_a_page():
    pages = listed()
    anywhere = set().union(*pages.values())
    missing = []
    for module, names in public():
        # What `rankcore` has of one of its modules is described there.
        known = anywhere if module == "rankcore" else pages.get(module, set()) | pages["rankcore"]
        missing += [f"{module}.{name}" for name in sorted(names - known)]
    assert missing == []


def test_every_page_is_of_a_public_name():
    for module, names in listed().items():
        for name in names:
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_names_that_differ_by_case_have_distinct_pages():
    text = (DOCS / "conf.py").read_text(encoding="utf-8")
    renamed = ast.literal_eval(
        re.search(r"autosummary_filename_map = (\{.*?\})", text, re.DOTALL)[1]
    )
    pages = [f"{module}.{name}" for module, names in listed().items() for name in names]
    assert set(renamed) <= set(pages)
    files = [renamed.get(page, page).lower() for page in pages]
    assert sorted(files) == sorted(set(files))
