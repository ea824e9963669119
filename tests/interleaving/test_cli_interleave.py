"""``rankcore interleave``: lists of runs, and results of clicks on them."""

import csv
import gzip
import io

import numpy as np
import pytest

from rankcore.interleaving import Probabilistic, TeamDraft, sequential_test
from test_cli import fail, run, succeed

pytest.importorskip("typer", reason="the command is not installed")

RUNS = {
    "old": {"q1": ["a", "b", "c"], "q2": ["d", "e", "f"]},
    "new": {"q1": ["b", "x", "a"], "q2": ["f", "d", "y"], "q3": ["z"]},
}


@pytest.fixture
def runs(tmp_path):
    paths = []
    for name, queries in RUNS.items():
        lines = [
            f"{query} Q0 {document} 0 {10 - i} {name}\n"
            for query, documents in queries.items()
            for i, document in enumerate(documents)
        ]
        paths.append(tmp_path / f"{name}.run")
        paths[-1].write_text("".join(lines[::-1]))  # scores decide
    return paths


def table(text):
    return [*csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize(
    ("name", "method"), [("team_draft", TeamDraft()), ("probabilistic", Probabilistic())]
)
def test_command_prints_the_lists_of_the_functions(runs, name, method):
    result = run(
        "interleave", *runs, "--method", name, "--length", 2, "--impressions", 3, "--seed", 5
    )
    assert result.exit_code == 0
    assert result.stderr == "1 queries are not in all runs: omitted\n"
    rows = table(result.stdout)
    found = {}
    for row in rows:
        one = found.setdefault((row["query"], int(row["impression"])), ([], []))
        assert int(row["position"]) == len(one[0]) + 1
        one[0].append(row["document"])
        one[1].append(row["ranker"])
    assert {seed for _, seed in found} == {*range(5, 11)}
    for (query, seed), (documents, rankers) in found.items():
        expected = method.interleave([run[query] for run in RUNS.values()], length=2, seed=seed)
        assert documents == expected.documents
        assert rankers == [[*RUNS][owner] for owner in expected.owners]


def test_ties_are_in_the_order_of_trec_eval(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("q Q0 d1 1 3 t\nq Q0 d2 2 3 t\n")
    rows = table(succeed("interleave", tmp_path / "a", tmp_path / "b"))
    assert [row["document"] for row in rows] == ["d2", "d1"]


def test_command_prints_the_results_of_the_functions(tmp_path):
    rng = np.random.default_rng(0)
    preferences, lines = [], ["query,impression,ranker,clicked,day\n"]
    for i in range(1500):
        clicks = rng.random(2) < [0.2, 0.4]
        preferences.append(int(clicks[1]) - int(clicks[0]))
        for ranker, clicked in zip(["new", "old"], clicks[::-1], strict=True):
            lines.append(f"q,{i},{ranker},{int(clicked)},{'mon' if i < 1000 else 'tue'}\n")
    (tmp_path / "log.csv").write_text("".join(lines))
    found = table(succeed("interleave", tmp_path / "log.csv"))
    expected = sequential_test([-x for x in preferences], looks=[1000, 1500])
    assert [(row["day"], row["impressions"]) for row in found] == [("mon", "1000"), ("tue", "1500")]
    for i, row in enumerate(found):
        assert (row["a"], row["b"], row["winner"]) == ("new", "old", "new")
        assert row["preference"] == f"{expected.mean[i]:.4f}"
        assert row["p_value"] == f"{expected.p_value[i]:.3g}"
        assert (row["low"], row["high"]) == (f"{expected.low[i]:.4f}", f"{expected.high[i]:.4f}")


def test_several_pairs_share_alpha(tmp_path):
    lines = ["query,impression,ranker,clicked\n"]
    lines += [f"q,{i},{r},{int(r == 'c')}\n" for i in range(40) for r in "abc"]
    (tmp_path / "log.csv").write_text("".join(lines))
    found = {row["a"] + row["b"]: row for row in table(succeed("interleave", tmp_path / "log.csv"))}
    assert {pair: row["winner"] for pair, row in found.items()} == {"ab": "", "ac": "c", "bc": "c"}
    expected = sequential_test(np.ones(40), alpha=0.05 / 3)
    assert found["ac"]["p_value"] == f"{3 * expected.p_value[0]:.3g}"
    assert found["ac"]["low"] == f"{expected.low[0]:.4f}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,impression,clicked\n", "no column 'ranker'; it has query, impression, clicked"),
        ("", "is empty: it must have a header"),
        ("query,impression,ranker,clicked\n", "at least one impression is required"),
        ("query,impression,ranker,clicked\nq,1,a,2\n", "line 2: clicked must be 0 or 1; got 2"),
        ("query,impression,ranker,clicked\nq,1,,1\n", "line 2: ranker must not be empty"),
        ("query,impression,ranker,clicked\nq,1,a,1\n", "must have two rankers or more; got a"),
        ('query,impression,ranker,clicked\nq,1,"a,1\n', "unexpected end of data"),
    ],
)
def test_bad_logs_are_rejected(tmp_path, text, message):
    (tmp_path / "log.csv").write_text(text)
    assert message in fail("interleave", tmp_path / "log.csv")


RANKINGS = {
    "in the order of rows": "query,document\nq 1,a\nq 2,d\nq 1,b\n",
    "by rank": "document,rank,query,score\nd,1,q 2,9\nb,2,q 1,9\na,1,q 1,8\n",
    "by score": '{"query": "q 1", "document": "b", "score": 1}\n'
    '{"query": "q 1", "document": "a", "score": 2}\n'
    '{"query": "q 2", "document": "d", "score": 0}\n',
}


@pytest.mark.parametrize("form", RANKINGS)
@pytest.mark.parametrize("packed", [False, True])
def test_rankings_may_be_tables(tmp_path, form, packed):
    text = "\ufeff" + RANKINGS[form].replace("\n", "\r\n")
    (tmp_path / "table").write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    (tmp_path / "other.csv").write_text("query,document\nq 1,a\nq 1,b\nq 2,d\n")
    rows = table(succeed("interleave", tmp_path / "table", tmp_path / "other.csv"))
    found = [(row["query"], row["position"], row["document"]) for row in rows]
    assert sorted(found) == [("q 1", "1", "a"), ("q 1", "2", "b"), ("q 2", "1", "d")]


def test_a_table_and_a_run_are_interleaved(runs, tmp_path):
    lines = [f"{query},{d}\n" for query, found in RUNS["new"].items() for d in found]
    (tmp_path / "new.csv").write_text("query,document\n" + "".join(lines))
    found = run("interleave", runs[0], tmp_path / "new.csv")
    assert found.exit_code == 0
    assert found.stdout == run("interleave", *runs).stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,document\nq,a\n", "has no column 'query'; it has qid, document"),
        ("query;document\nq;a\n", "separate columns by commas"),
        ("query,document\nq,a\nr,a\nq,a\n", "line 4: document 'a' of query 'q' occurs twice"),
        ("query,document\nq,\n", "line 2: ids of document must be integers or words"),
        ("query,document\nq,a,b\n", "line 2: 3 fields; the header has 2"),
        ("query,document,rank\nq,a,first\n", "line 2: rank must be a number; got 'first'"),
        ("query,document,score\nq,a,1\nq,b,nan\n", "line 3: rank or score must be finite"),
        ("query,document\n", "has no rows"),
        ("q Q0 a 1\n", "line 1"),  # of a run
    ],
)
def test_bad_rankings_are_rejected(runs, tmp_path, text, message):
    (tmp_path / "bad").write_text(text)
    assert message in fail("interleave", runs[0], tmp_path / "bad")


def test_bad_commands_are_rejected(runs):
    assert "interleave requires two runs or more" in fail("interleave", runs[0])
    assert "method must be one of" in fail("interleave", *runs, "--method", "optimized")
