"""CITATION.cff is valid, and names the papers that docs/citing.md has as BibTeX."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
if not (ROOT / "CITATION.cff").exists():
    pytest.skip("the sources are not here", allow_module_level=True)
yaml = pytest.importorskip("yaml")

FOUND = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
# Of version 1.2.0 of the format: types of references and forms of some values.
TYPES = {"article", "conference-paper", "generic"}


def people(authors):
    return authors and all({"family-names", "name"} & one.keys() for one in authors)


def test_citation_file_has_the_required_keys():
    assert {"cff-version", "message", "title", "authors"} <= FOUND.keys()
    assert FOUND["cff-version"] == "1.2.0"
    assert FOUND["type"] == "software"
    assert people(FOUND["authors"])
    for one in FOUND["references"]:
        assert {"type", "title", "authors", "year"} <= one.keys()
        assert one["type"] in TYPES
        assert people(one["authors"])
        assert re.fullmatch(r"10\.\d{4,9}/\S+", one.get("doi", "10.1145/1"))
        assert one.get("end", 2) > one.get("start", 1)


def test_citation_has_the_release_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert str(FOUND["version"]) == project["version"]
    assert FOUND["license"] == project["license"]
    assert [one["name"] for one in FOUND["authors"]] == [one["name"] for one in project["authors"]]


def entries():
    text = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    found = []
    for kind, key, body in re.findall(r"@(\w+)\{(\w+),\n(.*?)\n\}", text, re.DOTALL):
        fields = dict(re.findall(r"^  (\w+)\s*= \{(.*)\},?$", body, re.MULTILINE))
        assert len(fields) == len(body.splitlines()), key
        assert body.count("{") == body.count("}"), key
        found.append((kind, fields))
    return found


def test_bibtex_equals_the_citation_file():
    (kind, package), *papers = entries()
    assert kind == "software"
    assert (package["title"], package["version"]) == (FOUND["title"], str(FOUND["version"]))
    assert len(papers) == len(FOUND["references"]) == 5
    for (_, fields), one in zip(papers, FOUND["references"], strict=True):
        assert fields["title"] == one["title"]
        assert int(fields["year"]) == one["year"]
        assert fields.get("doi") == one.get("doi")
        assert fields.get("booktitle") == one.get("collection-title")
        pages = f"{one['start']}--{one['end']}" if "start" in one else None
        assert fields.get("pages") == pages
        names = [
            name.split(", ")[0].replace(r"{\'u}", "ú") for name in fields["author"].split(" and ")
        ]
        assert names == [author["family-names"] for author in one["authors"]]


def test_the_readme_links_the_citation():
    assert "docs/citing.md" in (ROOT / "README.md").read_text(encoding="utf-8")
