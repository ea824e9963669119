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


def test_a_fit_without_a_named_column_forgets_it():
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
