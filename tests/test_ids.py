"""Ids and labels are what users gave, or an error: every place where they enter."""

import io
import json
import tracemalloc

import numpy as np
import pytest

import rankcore as rc
from rankcore import metrics
from rankcore._core.ids import Codes, as_column, as_ids, as_words
from rankcore.clicks import ClickLog, click_pairs, read_clicks, read_ubi, simulate_sessions
from rankcore.clicks import evaluate as evaluate_clicks
from rankcore.datasets import Qrels, Run, dump_letor
from rankcore.plotting import plot_contributions
from rankcore.preference import rate, read_games

X = np.eye(4)[:, :2] + [[0, 0], [0, 0], [1, 2], [2, 1]]
SCORES = [0.4, 0.3, 0.2, 0.1]


def log_of(query=(1, 1, 1, 1), document=(1, 2, 3, 4), **columns):
    return ClickLog(list(query), document, [1, 2, 3, 4], [1, 0, 1, 0], **columns)


def ranking_of(**columns):
    return {"query": [1] * 4, "document": [1, 2, 3, 4], "score": SCORES, **columns}


def reread(**columns):
    file = io.BytesIO()
    dump_letor(X, [1, 2, 1, 2], file, **columns)
    return file.getvalue().decode()


# Calls with four ids, one a row, by the name of the argument.
ENTRIES = {
    "labels": lambda ids: rc.PRank(classes=[*"abc"]).fit(X, ids),
    "y_true": lambda ids: metrics.rank_loss(ids, [*"abca"], labels=[*"abc"]),
    "classes": lambda ids: rc.PRank(classes=ids).fit(X, ids),
    "qid of fit": lambda ids: rc.RankSVM().fit(X, [1, 2, 1, 2], qid=ids),
    "qid of measures": lambda ids: metrics.evaluate([1, 0, 1, 0], SCORES, qid=ids, metrics="mrr"),
    "docid of measures": lambda ids: metrics.evaluate(
        [1, 0, 1, 0], [0.5] * 4, docid=ids, convention="trec_eval", metrics="map"
    ),
    "Run.docid": lambda ids: Run(["q"] * 4, ids, SCORES),
    "Run.qid": lambda ids: Run(ids, [*"abcd"], SCORES),
    "Qrels.docid": lambda ids: Qrels(["q"] * 4, ids, [1, 0, 1, 0]),
    "Qrels.qid": lambda ids: Qrels(ids, [*"abcd"], [1, 0, 1, 0]),
    "ClickLog.query": lambda ids: log_of(query=ids),
    "ClickLog.document": lambda ids: log_of(document=ids),
    "ClickLog.session": lambda ids: log_of(session=ids),
    "ClickLog.ranker": lambda ids: log_of(ranker=ids),
    "click_pairs docid": lambda ids: click_pairs(log_of(document=ids), [1] * 4, ids, np.ones(4)),
    "click_pairs qid": lambda ids: click_pairs(log_of(), ids, [1, 2, 3, 4], np.ones(4)),
    "simulate_sessions": lambda ids: simulate_sessions([1] * 4, ids, SCORES, 3, random_state=0),
    "clicks.evaluate": lambda ids: evaluate_clicks(
        log_of(document=ids), ranking_of(document=ids), np.ones(4), n_resamples=9
    ),
    "dump_letor docid": lambda ids: reread(docid=ids),
    "dump_letor qid": lambda ids: reread(qid=ids),
    "explain.query docid": lambda ids: rc.explain.query(
        rc.RankSVM().fit(X, [1, 2, 1, 2], qid=[1] * 4), X, docid=ids
    ),
    "rate": lambda ids: rate(ids, ["w", "x", "y", "z"], disconnected="prior"),
    "rate judge": lambda ids: rate([*"abca"], [*"bcab"], judge=ids),
}
# These accept values of any type, and keep different ones apart.
APART = {"qid of fit", "qid of measures", "docid of measures", "explain.query docid"}
MISSING = {
    "None": None,
    "NaN": float("nan"),
    "float64": np.float64("nan"),
    "NaT": np.datetime64("NaT"),
}


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("entry", ENTRIES)
def test_missing_value_among_strings_is_rejected(entry, missing):
    ids = ["a", "b", "c", MISSING[missing]]
    for form in (ids, tuple(ids), np.array(ids, dtype=object)):
        with pytest.raises(ValueError, match="in row 3"):
            ENTRIES[entry](form)


@pytest.mark.parametrize("entry", sorted(set(ENTRIES) - APART))
def test_number_among_strings_is_rejected(entry):
    """NumPy makes the same string of 1 and "1"."""
    with pytest.raises((TypeError, ValueError)):
        ENTRIES[entry](["1", "b", "c", 1])
    assert len({*Codes("x").number([1, 2, 1]).tolist()}) == 2


@pytest.mark.parametrize("entry", sorted(set(ENTRIES) - APART))
def test_string_that_ends_in_a_zero_byte_is_rejected(entry):
    with pytest.raises((TypeError, ValueError)):
        ENTRIES[entry](["a", "b", "c", "a\0"])


def test_ids_that_end_in_zero_bytes_stay_apart_where_they_are_accepted():
    found = metrics.evaluate([1, 0, 1, 0], SCORES, qid=["a", "a\0", "b", "b"], metrics="mrr")
    assert found.qid.tolist() == ["a", "a\0", "b"]
    by_id = metrics.evaluate(
        [1, 0], [1, 1], docid=["a\0", "a"], convention="trec_eval", metrics="mrr"
    )
    assert by_id["mrr"] == 1.0  # ties are in descending order of ids


@pytest.mark.parametrize(
    ("winners", "losers"),
    [
        (np.array([2**63, 2**63 + 1], dtype=np.uint64), np.array([1, 1])),
        ([2**53, 2**53 + 1], [2**64 - 1, 2**64 - 1]),
        (np.array([2**53, 2**53 + 1]), [2**54, 2**54]),
    ],
    ids=["unsigned and signed", "signed and large", "array and list"],
)
def test_ratings_keep_large_integers_apart(winners, losers):
    expected = sorted({*np.asarray(winners).tolist(), *np.asarray(losers).tolist()})
    assert len(expected) == 3
    found = rate(winners, losers)
    assert found.items.tolist() == expected
    assert found.n_answers.tolist() == [1 if item in winners else 2 for item in expected]


@pytest.mark.parametrize("large", [2**63, 2**64 - 1])
@pytest.mark.parametrize("form", [list, lambda ids: np.array(ids, dtype=np.uint64)])
def test_unsigned_ids_keep_their_values(form, large):
    ids = form([large, 1, large - 1, 2])
    log = log_of(document=ids, query=ids)
    assert log.documents.tolist() == log.queries.tolist() == [large, 1, large - 1, 2]
    assert Run([1] * 4, ids, SCORES).docid.tolist() == [str(large), "1", str(large - 1), "2"]
    pairs, _ = click_pairs(log_of(document=ids), [1] * 4, ids, np.ones(4))
    assert pairs.tolist() == [[0, 1], [0, 3], [2, 1], [2, 3]]
    assert f"docid = {large}\n" in reread(docid=ids)
    assert metrics.evaluate([1, 0, 1, 0], SCORES, qid=ids, metrics="mrr").qid.tolist() == [*ids]
    model = rc.PRank(classes=[1, 2, large - 1, large]).fit(X, ids)
    assert model.ranks_.tolist() == [1, 2, large - 1, large]


@pytest.mark.parametrize("labels", [["a", b"a"], [1, b"1"], [1, "1"], [b"a", 2.5]], ids=str)
def test_labels_of_two_kinds_are_rejected(labels):
    for form in (list, tuple, lambda mixed: np.array(mixed, dtype=object)):
        with pytest.raises(ValueError, match="mixes strings with other labels"):
            rc.PRank(classes=["a", "b"]).fit(X, form([*labels, *labels]))
    with pytest.raises(ValueError, match="zero byte"):
        rc.PRank(classes=[b"a", b"b"]).fit(X, [b"a", b"a\0", b"a", b"b"])


def test_large_ids_of_both_signs_keep_their_values():
    ids = [-1, 2**63, 2**63 + 1, -(2**70)]
    assert log_of(document=ids).documents.tolist() == ids
    assert as_words(ids, "docid").tolist() == [*map(str, ids)]
    with pytest.raises(ValueError, match="number the labels"):
        rc.PRank(classes=[1, 2]).fit(X, [-1, 2**63, 2**63 + 1, 5])


@pytest.mark.parametrize(
    "values",
    [
        ["a"],
        ["a", "bcd", ""],
        ["é", "\U0001f600", "\ud800"],
        (np.str_("a"), "b"),
        [1, 2],
        [1, 2.5],
        [True, False],
    ],
)
def test_id_columns_equal_those_of_numpy(values):
    found, expected = as_column(values, "y"), np.asarray(values)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("values", [[True, 2], [1.5], [b"a"], [object()], [["a"]]])
def test_invalid_ids_are_rejected(values):
    with pytest.raises((TypeError, ValueError), match="docid must"):
        as_ids(values, "docid")


def test_one_long_id_does_not_take_memory_for_all():
    ids = [str(i) for i in range(20000)] + ["x" * 50_000]
    tracemalloc.start()
    try:
        run = Run(["q"] * len(ids), ids, np.arange(len(ids)))
        log = ClickLog(["q"] * len(ids), ids, np.arange(len(ids)) + 1, [0] * len(ids))
        assert run.docid.tolist() == log.documents.tolist() == ids
        assert len(run.to_dict()["q"]) == len(ids)
        assert rate(ids[1:], ids[:-1]).items.tolist() == sorted(ids)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6, f"{peak / 1e6:.0f} MB for {len(ids)} ids"
    with pytest.raises(ValueError, match="document '5' of query 'q' is in rows 5 and"):
        Run(["q"] * (len(ids) + 1), [*ids, "5"], np.arange(len(ids) + 1))


ROW = {"session": 1, "query": "q", "document": "a", "position": 1, "clicked": 0}


@pytest.mark.parametrize("value", [None, 1.5, True, [1], {}, "", "a\0"])
@pytest.mark.parametrize("name", ["session", "query", "document", "ranker"])
def test_json_ids_must_be_integers_or_words(tmp_path, name, value):
    (tmp_path / "log").write_text(json.dumps({**ROW, "ranker": "r", name: value}) + "\n")
    wanted = f"line 1: (ids of {name} must be integers or words|{name} must be a word or a number)"
    with pytest.raises(ValueError, match=wanted):
        read_clicks(tmp_path / "log")


@pytest.mark.parametrize("value", [None, True, ["a"], "", "a\0"])
def test_ids_of_user_behaviour_insights_must_be_words(tmp_path, value):
    query = {"query_id": "1", "user_query": "x", "query_response_hit_ids": ["a", value]}
    (tmp_path / "queries").write_text(json.dumps(query) + "\n")
    (tmp_path / "events").write_text("{}\n")
    with pytest.raises(ValueError, match="line 1: query_response_hit_ids must be a word"):
        read_ubi(tmp_path / "queries", tmp_path / "events")


NAMES = {
    "read_games covariates": lambda names: read_games("games.csv", covariates=names),
    "read_ubi actions": lambda names: read_ubi("queries", "events", actions=names),
    "explain feature_names": lambda names: rc.explain.global_importance(
        rc.PRank(classes=[1, 2]).fit(X, [1, 2, 1, 2]), X, feature_names=names
    ),
    "explain.pair names": lambda names: rc.explain.pair(
        rc.RankSVM().fit(X, [1, 2, 1, 2], qid=[1] * 4), X[0], X[1], names=names
    ),
    "plot_contributions features": lambda names: plot_contributions(
        rc.PRank(classes=[1, 2]).fit(X, [1, 2, 1, 2]), X, names
    ),
    "export feature_names": lambda names: rc.export(
        rc.PRank(classes=[1, 2]).fit(X, [1, 2, 1, 2]), "model.sql", "sql", feature_names=names
    ),
}


@pytest.mark.parametrize("entry", NAMES)
def test_string_in_place_of_a_list_of_names_is_rejected(entry):
    with pytest.raises(TypeError, match="must be a list of names; got the string 'ab'"):
        NAMES[entry]("ab")
