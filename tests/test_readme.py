"""The README's Python runs, and prints what it says; so does that of the guides."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
if not README.exists():
    pytest.skip("the README is not beside the tests", allow_module_level=True)
# Guides whose code has no prompts; that of the others is run as doctests.
GUIDES = [
    "bounds",
    "files",
    "kernels",
    "ordinal",
    "own_rule",
    "pair_measures",
    "pairwise",
    "ranksvm",
    "scikit_learn",
]


def test_the_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    expected = re.findall(r"^print.*# (.*)$", "".join(blocks), re.MULTILINE)
    names = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert len(expected) == 3
    assert [*printed[:2], printed[-1]] == expected
    assert printed[3].startswith("ndcg@10")


def test_every_link_leads_to_a_file():
    docs = README.parent / "docs"
    # Written when the site is built, from files whose links lead elsewhere.
    made = {docs / "project" / f"{name}.md" for name in ("changelog", "contributing")}
    made |= set((docs / "reproductions").glob("*.md")) - {docs / "reproductions" / "index.md"}
    for text in [README, *sorted(set(docs.rglob("*.md")) - made)]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text.read_text(encoding="utf-8")):
            path = text.parent / link
            if path.resolve().is_relative_to(docs / "examples"):  # the site makes these pages
                below = path.resolve().relative_to(docs / "examples")
                path = README.parent / "examples" / "gallery" / below.with_suffix(".py")
                path = path if path.stem != "index" else path.with_name("GALLERY_HEADER.rst")
            if path.parent == docs / "reproductions":  # the site makes a page of a study
                path = README.parent / "reproduce" / path.name
            if path.name == "command_line.md" and path.parent.name == "reference":
                continue  # written from the command's help
            assert path.exists(), f"{text.name}: {link}"


def test_every_page_is_in_an_index():
    docs = README.parent / "docs"
    linked = set(re.findall(r"\((\w+\.md)\)", (docs / "README.md").read_text(encoding="utf-8")))
    home = (docs / "index.md").read_text(encoding="utf-8")
    navigation = home.partition("```{toctree}")[2]
    pages = {f"{name}.md" for name in re.findall(r"^(\w+)$", navigation, re.MULTILINE)}
    assert {"install.md", "README.md"} <= pages
    assert linked | pages | {"index.md"} == {guide.name for guide in docs.glob("*.md")}


@pytest.mark.parametrize("name", GUIDES)
def test_the_code_of_guides_runs(name, tmp_path, monkeypatch):
    if name in ("bounds", "ranksvm"):
        pytest.importorskip("matplotlib").use("agg")
    guide = README.parent / "docs" / f"{name}.md"
    if not guide.exists():
        pytest.skip("the guides are not here")
    monkeypatch.chdir(tmp_path)
    if name == "scikit_learn":
        pytest.importorskip("pandas")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
        if ">>>" not in block:
            exec(compile(block, str(guide), "exec"), names)
    assert names
