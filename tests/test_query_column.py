"""Columns of queries in data frames: named once, in the fit."""

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc

pandas = pytest.importorskip("pandas")

X, Y, QID = rc.datasets.make_letor(20, 10, random_state=0)
NAMES = [f"f{j}" for j in range(X.shape[1])]
PLAIN = pandas.DataFrame(np.asarray(X), columns=NAMES)
FRAME = PLAIN.assign(query=QID)
RANKERS = [
    rc.RankBoost(5),
    rc.RankSVM(),
    rc.PairwisePerceptron(random_state=0),
    rc.BipartiteRankBoost(5, rel=1),
]


@pytest.fixture(params=RANKERS, ids=lambda ranker: type(ranker).__name__)
def both(request):
    """Fit a ranker to a frame with a column of queries, and to one without."""
    ranker = request.param
    plain = clone(ranker)
    return ranker.fit(FRAME, Y, qid="query"), plain.fit(PLAIN, Y, qid=QID)


def test_predictions_remove_the_column_of_the_fit(both):
    ranker, plain = both
    assert ranker.query_column_ == "query"
    expected = plain.predict(PLAIN)
    assert np.array_equal(ranker.predict(FRAME), expected)
    assert np.array_equal(ranker.predict(PLAIN), expected)
    assert np.array_equal(ranker.predict_rank(FRAME), plain.predict_rank(PLAIN, qid=QID))
    assert ranker.score(FRAME, Y) == plain.score(PLAIN, Y, qid=QID)


def test_explicit_qid_replaces_the_column(both):
    ranker, plain = both
    other = QID[::-1]
    assert np.array_equal(ranker.predict(FRAME, qid=other), plain.predict(PLAIN, qid=other))
    found = ranker.predict_rank(FRAME, qid=other)
    assert np.array_equal(found, plain.predict_rank(PLAIN, qid=other))
    sizes = np.unique(QID, return_counts=True)[1]
    assert ranker.score(FRAME, Y, group=sizes) == plain.score(PLAIN, Y, group=sizes)


def test_advice_names_the_column(both):
    with pytest.raises(ValueError, match="a column named 'query'"):
        both[0].score(PLAIN, Y)


def test_explanations_take_queries_from_the_column(both):
    ranker, plain = both
    found = rc.explain.permutation_importance(ranker, FRAME, Y, n_repeats=1)
    expected = rc.explain.permutation_importance(plain, PLAIN, Y, qid=QID, n_repeats=1)
    assert found.n_units == expected.n_units > 1
    assert np.array_equal(found.changes, expected.changes)
    found = rc.explain.global_importance(ranker, FRAME).importances
    expected = rc.explain.global_importance(plain, PLAIN, qid=QID).importances
    assert np.array_equal(found, expected)
    found = rc.explain.query(ranker, FRAME, which=QID[-1]).rows
    assert np.array_equal(found, rc.explain.query(plain, PLAIN, QID, which=QID[-1]).rows)


@pytest.mark.parametrize("name", ["query", "qid"])
@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_methods_without_queries_remove_the_column(ranker, name):
    frame = PLAIN.assign(**{name: QID})
    fitted = clone(ranker).fit(frame, Y, qid=None if name == "qid" else name)
    for background in (None, frame):
        found = fitted.contributions(frame, background=background)
        behind = None if background is None else PLAIN
        expected = fitted.contributions(PLAIN, background=behind)
        assert np.array_equal(found.values, expected.values)
        assert found.base == expected.base
    if hasattr(fitted, "staged_predict"):
        *_, last = fitted.staged_predict(frame)
        assert last == pytest.approx(fitted.predict(PLAIN), abs=1e-12)


@pytest.mark.parametrize("ranker", [rc.RankSVM(), rc.PairwisePerceptron(random_state=0)], ids=str)
def test_fits_with_positions_remove_the_column(ranker):
    position = np.tile(np.arange(1, 11), 20)
    found = clone(ranker).fit(FRAME, Y, qid="query", position=position)
    plain = clone(ranker).fit(PLAIN, Y, qid=QID, position=position)
    assert found.feature_names_in_.tolist() == NAMES
    assert np.array_equal(found.predict(FRAME), plain.predict(PLAIN))


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_a_feature_may_be_named_qid_if_another_column_has_the_queries(ranker):
    odd = FRAME.rename(columns={"f0": "qid"})
    found = clone(ranker).fit(odd, Y, qid="query")
    plain = clone(ranker).fit(PLAIN, Y, qid=QID)
    assert "qid" in found.feature_names_in_
    assert np.array_equal(found.predict(odd), plain.predict(PLAIN))
    assert found.score(odd, Y) == plain.score(PLAIN, Y, qid=QID)


def test_the_choice_of_c_keeps_the_column():
    found = rc.RankSVMCV([0.1, 1.0], cv=2).fit(FRAME, Y, qid="query")
    plain = rc.RankSVMCV([0.1, 1.0], cv=2).fit(PLAIN, Y, qid=QID)
    for one in (found, found.best_estimator_):
        assert np.array_equal(one.predict(FRAME), plain.predict(PLAIN))
        assert one.score(FRAME, Y) == plain.score(PLAIN, Y, qid=QID)
    assert not hasattr(found.fit(PLAIN, Y, qid=QID), "query_column_")


def test_models_of_a_path_keep_the_column():
    found = rc.ranksvm_path(FRAME, Y, qid="query", Cs=[0.1, 1.0], eval_set=(FRAME, Y))
    held_out = {"eval_set": (PLAIN, Y), "eval_qid": QID}
    plain = rc.ranksvm_path(PLAIN, Y, qid=QID, Cs=[0.1, 1.0], **held_out)
    assert np.array_equal(found.values, plain.values)
    for one, other in zip(found.estimators, plain.estimators, strict=True):
        assert np.array_equal(one.predict(FRAME), other.predict(PLAIN))


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_more_rows_have_the_column_of_the_first(first):
    found, plain = (rc.PairwisePerceptron(random_state=0) for _ in range(2))
    getattr(found, first)(FRAME, Y, qid="query")
    getattr(plain, first)(PLAIN, Y, qid=QID)
    found.partial_fit(FRAME, Y).partial_fit(FRAME, Y, qid=QID)
    plain.partial_fit(PLAIN, Y, qid=QID).partial_fit(PLAIN, Y, qid=QID)
    assert np.array_equal(found.predict(FRAME), plain.predict(PLAIN))
    assert found.score(FRAME, Y) == plain.score(PLAIN, Y, qid=QID)


WARM = [one for one in RANKERS if "warm_start" in one.get_params()]


@pytest.mark.parametrize("ranker", WARM, ids=lambda ranker: type(ranker).__name__)
def test_continued_fits_have_the_column_of_the_first(ranker):
    found, plain = (clone(ranker).set_params(warm_start=True) for _ in range(2))
    found.fit(FRAME, Y, qid="query")
    plain.fit(PLAIN, Y, qid=QID)
    for one in (found, plain):
        if "n_estimators" in one.get_params():
            one.set_params(n_estimators=8)
    found.fit(FRAME, Y)
    plain.fit(PLAIN, Y, qid=QID)
    assert found.feature_names_in_.tolist() == NAMES
    assert np.array_equal(found.predict(FRAME), plain.predict(PLAIN))
    assert found.score(FRAME, Y) == plain.score(PLAIN, Y, qid=QID)


def test_files_keep_the_column(both, tmp_path):
    ranker, plain = both
    rc.save(ranker, tmp_path / "model")
    for found in (rc.load(tmp_path / "model"), rc.Predictor(tmp_path / "model")):
        assert np.array_equal(found.predict(FRAME), plain.predict(PLAIN))


def test_held_out_frames_have_the_same_column():
    ranker = rc.RankBoost(5, eval_metric="ndcg@10")
    found = ranker.fit(FRAME, Y, qid="query", eval_set=[(FRAME, Y)]).history_
    more = {"eval_set": [(PLAIN, Y)], "eval_qid": [QID]}
    assert found == ranker.fit(PLAIN, Y, qid=QID, **more).history_


def test_fit_without_a_named_column_resets_it():
    ranker = rc.RankSVM().fit(FRAME, Y, qid="query").fit(PLAIN, Y, qid=QID)
    assert not hasattr(ranker, "query_column_")
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        ranker.predict(FRAME)


def test_searches_divide_frames_with_the_column():
    import sklearn
    from sklearn.model_selection import GridSearchCV

    folds = rc.model_selection.QueryKFold(3)
    with sklearn.config_context(enable_metadata_routing=True):
        found = GridSearchCV(rc.RankSVM(), {"C": [0.1, 1]}, cv=folds).fit(FRAME, Y, qid="query")
        plain = GridSearchCV(rc.RankSVM(), {"C": [0.1, 1]}, cv=folds).fit(PLAIN, Y, qid=QID)
    assert found.best_score_ == plain.best_score_
    assert np.array_equal(found.predict(FRAME), plain.predict(PLAIN))
