"""Names of measures, several of them at once, and what the result shows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.metrics import (
    Convention,
    auc_score,
    average_precision,
    compare,
    evaluate,
    hit_rate,
    kendall_tau,
    ndcg_score,
    pairwise_misranking,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)
from strategies import examples

RNG = np.random.default_rng(0)
Y, S = RNG.integers(0, 4, 400), RNG.integers(0, 50, 400) / 7
QID = RNG.integers(0, 12, 400)


def ndcg(**options):
    return ndcg_score(Y, S, qid=QID, **options)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["ndcg@10", "ndcg_cut_10", "nDCG@10", "NDCG@10", "ndcg@10-"],
            ndcg(k=10),
        ),
        (["ndcg", "nDCG", "ndcg-"], ndcg()),
        (["nDCG(dcg='exp-log2')@5", "ndcg_burges@5"], ndcg(k=5, gain="exp2")),
        (["nDCG(dcg='log2')@5"], ndcg(k=5, gain="linear")),
        (["map", "AP", "MAP", "average_precision"], average_precision(Y, S, qid=QID)),
        (["map@5", "map_cut_5", "AP@5", "map@5-"], average_precision(Y, S, qid=QID, k=5)),
        (["AP(rel=2)@5"], average_precision(Y, S, qid=QID, k=5, rel=2)),
        (["P@5", "P_5", "pre@5", "precision@5"], precision_at_k(Y, S, 5, qid=QID)),
        (["P(rel=2)@5", "P(rel=2.0)@5"], precision_at_k(Y, S, 5, qid=QID, rel=2)),
        (["recall@20", "recall_20", "R@20"], recall_at_k(Y, S, 20, qid=QID)),
        (["Rprec", "r-precision", "r_precision"], r_precision(Y, S, qid=QID)),
        (["mrr", "recip_rank", "RR"], reciprocal_rank(Y, S, qid=QID)),
        (["mrr@3", "RR@3"], reciprocal_rank(Y, S, qid=QID, k=3)),
        (["hit@2", "Success@2", "success_2", "hit_rate@2"], hit_rate(Y, S, 2, qid=QID)),
        (["auc", "AUC", "auc_score"], auc_score(Y, S, qid=QID)),
        (["auc(rel=2)", "AUC(rel=2.0)"], auc_score(Y, S, qid=QID, rel=2)),
        (["misranking", "pairwise_misranking"], pairwise_misranking(Y, S, qid=QID)),
        (["kendall_tau", "tau", "Kendall"], kendall_tau(Y, S, qid=QID)),
    ],
)
def test_names_of_every_tool_are_accepted(names, expected):
    found = evaluate(Y, S, qid=QID, metrics=names)
    assert list(found) == names
    assert set(found.values()) == {expected}


def test_list_of_cutoffs_gives_one_measure_per_cutoff():
    found = evaluate(Y, S, qid=QID, metrics=["P.5,10", "ndcg_cut.3,7", "map@2,4", "R.9"])
    names = ["P_5", "P_10", "ndcg_cut_3", "ndcg_cut_7", "map@2", "map@4", "R_9"]
    assert list(found) == names
    assert found["P_10"] == precision_at_k(Y, S, 10, qid=QID)
    assert found["map@4"] == average_precision(Y, S, qid=QID, k=4)


def test_minus_after_a_name_counts_empty_queries_as_zero():
    found = evaluate([0, 0], [1, 2], metrics=["ndcg@1", "ndcg@1-"], convention="xgboost")
    assert dict(found) == {"ndcg@1": 1, "ndcg@1-": 0}


def test_measures_of_pairs_and_documents_are_evaluated_together():
    names = ["auc", "map", "misranking", "kendall_tau"]
    weights = np.arange(12.0)
    for n_jobs in (None, 2):
        found = evaluate(Y, S, qid=QID, metrics=names, query_weight=weights, n_jobs=n_jobs)
        assert list(found) == names
        assert found["auc"] == auc_score(Y, S, qid=QID, query_weight=weights)
        assert found["kendall_tau"] == kendall_tau(Y, S, qid=QID, query_weight=weights)
        values = pairwise_misranking(Y, S, qid=QID, per_query=True)[1]
        np.testing.assert_array_equal(found.per_query["misranking"], values)
    alone = evaluate(Y, S, metrics="auc")
    assert (alone["auc"], alone.qid.tolist()) == (auc_score(Y, S), [0])
    # The convention says from which label on documents are relevant; a name may say otherwise.
    strict = evaluate(Y, S, qid=QID, metrics=["auc", "auc(rel=1)"], convention=Convention(rel=3))
    assert strict["auc"] == auc_score(Y, S, qid=QID, rel=3)
    assert strict["auc(rel=1)"] == auc_score(Y, S, qid=QID)


def test_measures_of_pairs_leave_out_queries_without_any():
    found = evaluate([0, 1, 1, 1], [1, 2, 3, 4], qid=[1, 1, 2, 2], metrics=["auc", "tau"])
    assert dict(found) == {"auc": 1, "tau": 1}
    assert math.isnan(found.per_query["auc"][1])
    assert str(found).splitlines()[1].split() == ["auc", "1.0000", "1"]


def test_measures_of_pairs_need_every_score():
    with pytest.raises(ValueError, match="auc compares the scores of all documents"):
        evaluate([0, 1], [1, 2], metrics=["map", "auc"], retrieved=np.array([True, False]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg10", "did you mean 'ndcg@10'"),
        ("ndgc10", "did you mean 'ndcg@10'"),
        ("P5", "did you mean 'p@5'"),
        ("ndgc@10", "no measure 'ndgc@10'; did you mean 'ndcg@10'"),
        ("kendall_tua", "did you mean 'kendall_tau'"),
        ("bm25", "there are ndcg@10"),
        ("recall_at_k", "'recall_at_k' requires a cut-off, such as recall_at_k@10"),
        ("ndcg-l2", "a relevance level, -l2, requires a binary measure; ndcg has none"),
        ("map_cut(rel=2)", "requires a cut-off"),
        ("ndcg@0", "at least 1"),
        ("P.5,9223372036854775808", "a cut-off must be below 2\\*\\*63"),
        ("Rprec@5", "has no cut-off"),
        ("auc@5", "has no cut-off"),
        ("tau(rel=2)", "does not take"),
        ("P(k=2)@5", "rel=NUMBER"),
        ("P(rel)@5", "key=value"),
        ("ndcg(rel=2)", "does not take"),
        ("mrr-", "ends in '-'"),
        ("ndcg@@5", "not the name"),
        ("", "not the name"),
    ],
)
def test_unknown_names_are_rejected(name, message):
    with pytest.raises(ValueError, match=message):
        evaluate(Y, S, metrics=name)


def test_metrics_other_than_names_are_rejected():
    with pytest.raises(TypeError, match="must be given by name; got 10"):
        evaluate(Y, S, metrics=[10])
    with pytest.raises(ValueError, match="metrics is empty"):
        evaluate(Y, S, metrics=[])


def test_result_is_a_mapping_with_values_of_every_query():
    weights = np.arange(12.0)
    names = ["mrr", "ndcg@5"]
    found = evaluate(Y, S, qid=QID, metrics=names, query_weight=weights)
    assert dict(found) == {name: found[name] for name in names}
    assert len(found) == 2
    assert "mrr" in found
    assert "map" not in found
    assert found.qid.tolist() == list(dict.fromkeys(QID.tolist()))
    values = reciprocal_rank(Y, S, qid=QID, per_query=True)[1]
    np.testing.assert_array_equal(found.per_query["mrr"], values)
    assert found["mrr"] == pytest.approx((values * weights).sum() / weights.sum())
    assert found.convention.gain == "exp2"


def test_result_has_text_table_and_frame():
    pandas = pytest.importorskip("pandas")
    console = pytest.importorskip("rich.console").Console(width=120, record=True, file=None)
    found = evaluate([0, 1, 0, 0], [1, 2, 3, 4], qid=["<a>", "<a>", "b", "b"], metrics=["mrr"])
    assert str(found).splitlines()[1].split() == ["mrr", "0.5000", "2"]
    assert "mrr" in repr(found)
    html = found._repr_html_()
    assert "<td>0.5000</td>" in html
    with console.capture() as capture:
        console.print(found)
    assert "0.5000" in capture.get()
    frame = found.to_frame()
    queries = pandas.Index(["<a>", "b"], name="qid")
    expected = pandas.DataFrame({"n_rows": [2, 2], "mrr": [1.0, 0.0]}, index=queries)
    pandas.testing.assert_frame_equal(frame, expected)
    pandas.testing.assert_frame_equal(found.to_frame(worst_first="mrr"), expected.iloc[::-1])
    with pytest.raises(KeyError, match="worst_first must be one of mrr; got 'map'"):
        found.to_frame(worst_first="map")


def test_skipped_queries_are_not_counted():
    skipping = evaluate([0, 1, 0, 0], [1, 2, 3, 4], qid=[1, 1, 2, 2], metrics=["mrr"])
    assert skipping["mrr"] == 0.5
    skipping = evaluate(
        [0, 1, 0, 0],
        [1, 2, 3, 4],
        qid=[1, 1, 2, 2],
        metrics=["mrr"],
        convention=Convention(empty="skip"),
    )
    assert skipping["mrr"] == 1
    assert math.isnan(skipping.per_query["mrr"][1])
    assert str(skipping).splitlines()[1].split() == ["mrr", "1.0000", "1"]


@settings(max_examples=examples(150))
@given(
    st.integers(1, 60),
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from(["average", "first", "last", "optimistic", "pessimistic"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_measures_computed_together_equal_those_computed_alone(
    n, n_queries, levels, ties, apart, named, seed
):
    """Together they share one sort, which must leave equal scores in their order."""
    rng = np.random.default_rng(seed)
    y, s = rng.integers(0, 3, n), rng.integers(0, levels, n) / 7
    qid = rng.integers(0, n_queries, n) if apart else np.sort(rng.integers(0, n_queries, n))
    names = ["ndcg", "dcg@3", "map", "P@2", "auc", "misranking", "kendall_tau"]
    options = {
        "qid": qid,
        "convention": Convention(ties=ties, empty="skip"),
        "docid": rng.permutation(n) if named else None,
    }
    together = evaluate(y, s, metrics=names, **options)
    for name in names:
        alone = evaluate(y, s, metrics=name, **options)
        np.testing.assert_array_equal(together.per_query[name], alone.per_query[name])
        np.testing.assert_array_equal(together.qid, alone.qid)


@pytest.mark.parametrize("convention", ["trec_eval", "lightgbm", "letor4"])
def test_measures_of_long_queries_computed_together_equal_those_alone(convention):
    rng = np.random.default_rng(1)
    y, s = rng.integers(0, 5, 30_000), rng.normal(size=30_000).astype(np.float32).astype(float)
    s[::3] = s[1::3] + 1e-12  # equal in single precision alone
    qid = rng.integers(0, 3, 30_000)
    names = ["ndcg", "ndcg@10", "map", "auc", "misranking", "kendall_tau"]
    together = evaluate(y, s, qid=qid, metrics=names, convention=convention)
    for name in names:
        alone = evaluate(y, s, qid=qid, metrics=name, convention=convention)
        np.testing.assert_array_equal(together.per_query[name], alone.per_query[name])


@pytest.mark.parametrize(
    ("convention", "text", "with_ids"),
    [
        (None, "ties averaged", "ties averaged"),
        ("trec_eval", "ties in reverse row order", "ties in descending order of document ids"),
        ("ranx", "ties in row order", "ties in ascending order of document ids"),
        (Convention(ties="optimistic"), "ties optimistic", "ties optimistic"),
    ],
)
def test_text_names_the_order_of_ties_that_was_used(convention, text, with_ids):
    y, s, qid, docid = [1, 0, 1, 0], [1, 1, 1, 1], [1, 1, 2, 2], ["b", "a", "a", "b"]
    given = {"qid": qid, "metrics": "mrr", "convention": convention}
    plain, by_id = evaluate(y, s, **given), evaluate(y, s, docid=docid, **given)
    assert text in str(plain)
    assert with_ids in str(by_id)
    both = {"a": s, "b": [2, 1, 1, 2]}
    assert text in str(compare(both, y, **given))
    assert with_ids in str(compare(both, y, docid=docid, **given))
    # What the text says: the value of the rows in the order that it names.
    if "document ids" in with_ids:
        rows = sorted(range(4), key=lambda i: docid[i], reverse="descending" in with_ids)
        ordered = [[column[i] for i in rows] for column in (y, qid)]
        expected = evaluate(ordered[0], s, qid=ordered[1], metrics="mrr", convention="ranx")
        assert by_id["mrr"] == expected["mrr"]


def test_several_measures_in_one_name_are_listed():
    with pytest.raises(ValueError, match="each measure on its own, as 'ndcg@5,10', 'map'"):
        evaluate([1, 0], [2, 1], metrics="ndcg@5,10, map")
