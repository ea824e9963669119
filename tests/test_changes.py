"""News fragments have names that towncrier takes: it passes over others in silence."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "changes").exists():
    pytest.skip("the sources are not here", allow_module_level=True)

TOWNCRIER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]


def test_names_and_lengths():
    kinds = "|".join(one["directory"] for one in TOWNCRIER["type"])
    for path in (ROOT / TOWNCRIER["directory"]).iterdir():
        if path.name == "README.md":
            continue
        assert re.fullmatch(rf"(\d+|\+[\w-]+)\.({kinds})(\.\d+)?\.md", path.name)
        text = path.read_text(encoding="utf-8")
        assert text.endswith("\n")
        assert not text.startswith(("-", "*", "#"))
        assert 1 <= len(text.splitlines()) <= 6
        assert max(map(len, text.splitlines())) <= 125


def test_news_go_below_the_head_of_the_changelog():
    text = (ROOT / TOWNCRIER["filename"]).read_text(encoding="utf-8")
    head, _, releases = text.partition(TOWNCRIER["start_string"])
    assert head.startswith("# Changelog")
    assert releases.lstrip().startswith("## [")
