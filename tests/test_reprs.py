"""Representations in notebooks: links to guides, tables of runs and judgments."""

import pytest

import rankcore as rc
from rankcore._core import doc_links
from rankcore.datasets import Qrels, Run

URL = "https://guides.example/rankcore"


class Entries:
    def __init__(self, urls):
        self.urls = urls

    def get_all(self, name, default):
        assert name == "Project-URL"
        return self.urls or default


def test_links_lead_to_guides(monkeypatch):
    entries = Entries(["Source, https://code.example", f"Documentation, {URL}/"])
    monkeypatch.setattr(doc_links, "metadata", lambda name: entries)
    for learner, guide in [(rc.KernelPRank(), "kernels"), (rc.PreferenceRanker(len), "preference")]:
        assert learner._get_doc_link() == f"{URL}/{guide}.html"
        assert f'href="{URL}/{guide}.html"' in learner._repr_html_()

    class Mine(rc.PRank):
        pass

    assert Mine()._get_doc_link() == ""


def test_unknown_project_url_gives_no_link(monkeypatch):
    monkeypatch.setattr(doc_links, "metadata", lambda name: Entries([]))
    assert rc.PRank()._get_doc_link() == ""
    assert "Documentation for PRank" not in rc.PRank()._repr_html_()


@pytest.mark.parametrize(
    ("data", "column", "caption"),
    [
        (
            Run(["q1"] * 7, list("abcdefg"), range(7), "mine"),
            "score",
            "Run(7 documents, 1 queries), tag mine",
        ),
        (Qrels(["q1", "q2"], ["a", "<b>"], [1, 0]), "relevance", "Qrels(2 documents, 2 queries)"),
    ],
    ids=["run", "qrels"],
)
def test_runs_and_judgments_have_tables(data, column, caption):
    html = data._repr_html_()
    assert f"<caption>{caption}</caption>" in html
    assert f"<th>{column}</th>" in html
    assert html.count("<tr>") == 1 + min(5, len(data))
    assert "<b>" not in html
