"""Folds of whole queries, cross-validation in one line, and queries that nobody may lose."""

import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import rankcore as rc
from rankcore.datasets import make_letor
from rankcore.metrics import evaluate, ndcg_score
from rankcore.model_selection import QueryKFold, cross_val_predict, cross_validate_queries
from strategies import examples


@given(
    qid=st.lists(st.integers(0, 12), min_size=8, max_size=60),
    n_splits=st.integers(2, 4),
    shuffle=st.booleans(),
    stratify=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
def test_folds_keep_queries_whole_and_cover_all_rows(qid, n_splits, shuffle, stratify):
    qid = np.array(qid)
    y = (qid * 7) % 5
    seed = 0 if shuffle else None
    folds = QueryKFold(n_splits, shuffle=shuffle, stratify=stratify, random_state=seed)
    if np.unique(qid).size < n_splits:
        with pytest.raises(ValueError, match="must be at most the number of queries"):
            list(folds.split(np.zeros((qid.size, 1)), y, qid=qid))
        return
    parts = list(folds.split(np.zeros((qid.size, 1)), y, qid=qid))
    assert len(parts) == n_splits == folds.get_n_splits()
    np.testing.assert_array_equal(
        np.sort(np.concatenate([test for _, test in parts])), range(len(y))
    )
    sizes = []
    for train, test in parts:
        assert not set(qid[train]) & set(qid[test])
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), range(len(y)))
        sizes.append(np.unique(qid[test]).size)
    assert max(sizes) - min(sizes) <= 1
    again = list(folds.split(np.zeros((qid.size, 1)), y, qid))  # as groups
    for (_, one), (_, other) in zip(parts, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_stratified_folds_have_the_same_labels():
    qid = np.repeat(np.arange(40), 5)
    y = np.where(qid < 10, 1, 0)  # the first ten queries have all that is relevant
    spreads = {True: [], False: []}
    for stratify, found in spreads.items():
        for seed in range(10):
            folds = QueryKFold(4, shuffle=True, stratify=stratify, random_state=seed)
            parts = [test for _, test in folds.split(qid, y, qid)]
            relevant = [np.unique(qid[test][y[test] > 0]).size for test in parts]
            found.append(max(relevant) - min(relevant))
    assert max(spreads[True]) <= 1
    assert max(spreads[False]) > 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: QueryKFold(1), ValueError, "n_splits"),
        (lambda: QueryKFold(2, random_state=1), ValueError, "requires shuffle=True"),
        (lambda: next(QueryKFold(2).split(np.zeros((4, 1)))), ValueError, "query of each row"),
        (
            lambda: next(QueryKFold(2, stratify=True).split(np.zeros((4, 1)), qid=[1, 1, 2, 2])),
            ValueError,
            "requires y",
        ),
    ],
)
def test_bad_folds_are_rejected(make, error, message):
    with pytest.raises(error, match=message):
        make()


def data(n_queries=30, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), 10)
    X = rng.normal(size=(qid.size, 3))
    return X, np.digitize(X @ [1, -1, 0] + 0.5 * rng.normal(size=qid.size), [-1, 1]), qid


@pytest.mark.parametrize("kind", ["alone", "piped", "ordinal"])
def test_cross_validation_equals_a_loop(kind):
    X, y, qid = data()
    learner = rc.PRank(random_state=0) if kind == "ordinal" else rc.RankBoost(20)
    model = make_pipeline(StandardScaler(), learner) if kind == "piped" else learner
    metrics = ["ndcg@5", "map", "misranking"]
    found = cross_validate_queries(model, X, y, qid, metrics=metrics, cv=3)
    assert found.names == metrics
    for fold, (train, test) in enumerate(QueryKFold(3).split(X, y, qid)):
        steps = StandardScaler().fit(X[train])
        left, right = X[train], X[test]
        if kind == "piped":
            left, right = steps.transform(left), steps.transform(right)
        fitted = clone(learner)
        if kind == "ordinal":
            scores = fitted.fit(X[train], y[train]).project(X[test])
        else:
            fitted.fit(left, y[train], qid=qid[train])
            scores = fitted.predict(right)
        expected = evaluate(y[test], scores, qid=qid[test], metrics=metrics)
        np.testing.assert_allclose(found.values[fold], [expected[name] for name in metrics])
    assert found.mean() == dict(zip(metrics, found.values.mean(axis=0).tolist(), strict=True))
    text = str(found).splitlines()
    assert text[0].split() == ["fold", *metrics]
    assert [line.split()[0] for line in text[1:6]] == ["1", "2", "3", "mean", "deviation"]
    assert "<table>" in found._repr_html_()
    assert len(found.estimators) == 3


def test_folds_that_divide_queries_are_rejected():
    X, y, qid = data()
    with pytest.raises(ValueError, match=r"fold that divides query \d+:"):
        cross_validate_queries(rc.RankBoost(3), X, y, qid, cv=KFold(4, shuffle=True))
    with pytest.raises(ValueError, match="requires qid"):
        cross_validate_queries(rc.RankBoost(3), X, y)


# ---------------------------------------------------------- queries that came with the rows


def test_columns_of_frames_are_queries():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y, qid = data()
    plain = rc.PairwisePerceptron(random_state=0).fit(X, y, qid=qid)
    of_pandas = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    of_polars = pl.DataFrame(of_pandas.to_dict("list"))
    for frame in (of_pandas, of_polars):
        model = clone(plain).fit(frame, y)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert model.feature_names_in_.tolist() == list("abc")
        np.testing.assert_array_equal(model.predict_rank(frame), plain.predict_rank(X, qid=qid))
        assert model.score(frame, y) == plain.score(X, y, qid=qid)
        held = clone(plain).fit(frame, y, eval_set=(frame, y))
        assert held.history_["valid_ndcg@10"][-1] == pytest.approx(plain.score(X, y, qid=qid))
        stream = clone(plain).partial_fit(frame, y)
        assert stream.n_features_in_ == 3
    renamed = of_pandas.rename(columns={"qid": "session"})
    named = clone(plain).fit(renamed, y, qid="session")
    np.testing.assert_array_equal(named.coef_, plain.coef_)
    assert named.score(renamed, y, qid="session") == plain.score(X, y, qid=qid)
    with pytest.raises(ValueError, match="no column named 'query'"):
        clone(plain).fit(renamed, y, qid="query")
    with pytest.raises(TypeError, match="requires a DataFrame X"):
        clone(plain).fit(X, y, qid="session")
    with pytest.raises(ValueError, match="qid and the column .* of X have the same meaning"):
        clone(plain).fit(of_pandas, y, qid=qid)
    boosted = rc.RankBoost(5)
    by_name = cross_validate_queries(boosted, renamed, y, "session", cv=3)
    np.testing.assert_array_equal(
        by_name.values, cross_validate_queries(boosted, of_pandas, y, cv=3).values
    )
    two = [(renamed, y), (renamed[:100], y[:100])]
    boosted.fit(renamed, y, qid="session", eval_set=two, eval_qid="session")
    assert len(boosted.history_["valid_1_ndcg@10"]) == 5
    with pytest.raises(ValueError, match="group and the column .* of X have the same meaning"):
        clone(plain).fit(of_pandas, y, group=[10] * 30)


def test_calls_without_queries_warn_or_raise():
    X, y, qid = data()
    for ranker in (rc.RankBoost(5), rc.PairwisePerceptron("committee", combine="rank")):
        model = ranker.fit(X, y, qid=qid)
        with pytest.warns(UserWarning, match="largest training query had 10"):
            model.predict_rank(X)
        with pytest.raises(ValueError, match="score requires qid"):
            model.score(X, y)
        with pytest.raises(ValueError, match="eval_set requires eval_qid"):
            clone(ranker).fit(X, y, qid=qid, eval_set=(X, y))
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            model.predict_rank(X[:10])  # a query, as it may come
            model.predict_rank(X, qid=qid)
    with pytest.warns(UserWarning, match="predict found no qid"):
        model.predict(X)  # ranks are voted on within queries


def test_the_largest_query_is_saved(tmp_path):
    X, y, qid = data()
    for ranker in (rc.RankBoost(3), rc.PairwisePerceptron(), rc.RankSVM(C=0.01)):
        rc.save(ranker.fit(X, y, qid=qid), tmp_path / "model")
        with pytest.warns(UserWarning, match="had 10"):
            rc.load(tmp_path / "model").predict_rank(X)


def test_query_weights_apply_to_the_score():
    X, y, qid = data()
    model = rc.RankBoost(3).fit(X, y, qid=qid)
    scores = model.predict(X)
    values = [rc.metrics.ndcg_score(y[qid == q], scores[qid == q], k=10) for q in range(30)]
    weights = np.random.default_rng(0).random(30)
    expected = np.average(values, weights=weights)
    assert model.score(X, y, weights, qid=qid) == pytest.approx(expected)
    assert model.score(X, y, np.repeat(weights, 10), qid=qid) == pytest.approx(expected)
    shuffled = np.random.default_rng(1).permutation(len(y))
    assert model.score(
        X[shuffled], y[shuffled], np.repeat(weights, 10)[shuffled], qid=qid[shuffled]
    ) == pytest.approx(expected)


def test_a_pipeline_transforms_held_out_rows():
    X, y, qid = data()
    X = 1000 * X + 5000
    train, held = qid < 20, qid >= 20
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler(), rc.PairwisePerceptron(random_state=0), transform_input=["eval_X"]
        )
        pipeline.fit(
            X[train], y[train], qid=qid[train],
            eval_X=X[held], eval_y=y[held], eval_qid=qid[held],
        )  # fmt: skip
    scaler = StandardScaler().fit(X[train])
    alone = rc.PairwisePerceptron(random_state=0).fit(
        scaler.transform(X[train]), y[train], qid=qid[train],
        eval_set=(scaler.transform(X[held]), y[held]), eval_qid=qid[held],
    )  # fmt: skip
    assert pipeline[-1].history_ == alone.history_


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7),
    reason="before 1.7 scikit-learn passed no metadata on to the default score of a pipeline",
)
def test_searches_in_pipelines_score_by_default():
    X, y, qid = data()
    pipeline = make_pipeline(StandardScaler(), rc.PairwisePerceptron(random_state=0))
    grid = {"pairwiseperceptron__margin": [0.1, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, grid, cv=QueryKFold(3)).fit(X, y, qid=qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def by_hand(ranker, X, y, qid, folds, weights):
    """Fit a ranker of another library to rows by query, and measure it on each fold."""
    values = []
    for train, test in folds:
        # Queries in order of first appearance: with weights, XGBoost's models depend on it.
        queries = [*dict.fromkeys(qid[train].tolist())]
        rows = [train[qid[train] == query] for query in queries]
        train, group = np.concatenate(rows), [*map(len, rows)]
        fitted = clone(ranker).fit(X[train], y[train], group=group, **weights(queries, group))
        values.append(ndcg_score(y[test], fitted.predict(X[test]), qid=qid[test], k=10))
    return values


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_rankers_of_other_libraries_receive_groups(library, weighted):
    module = pytest.importorskip(library)
    X, y, qid = make_letor(40, 20, random_state=0)
    mixed = np.random.default_rng(0).permutation(y.size)
    X, y, qid = np.asarray(X)[mixed], y[mixed], qid[mixed]
    by_query = np.random.default_rng(1).uniform(0.1, 5, qid.max() + 1)
    if library == "lightgbm":
        ranker = module.LGBMRanker(n_estimators=5, n_jobs=1, verbose=-1)
    else:
        ranker = module.XGBRanker(n_estimators=5, n_jobs=1)

    def weights(queries, group):
        if not weighted:
            return {}
        found = by_query[queries]  # XGBoost weighs queries, LightGBM rows
        return {"sample_weight": np.repeat(found, group) if library == "lightgbm" else found}

    folds = [*QueryKFold(4).split(X, qid=qid)]
    given = {"sample_weight": by_query[qid]} if weighted else None
    found = cross_validate_queries(ranker, X, y, qid, metrics="ndcg@10", cv=folds, fit_params=given)
    expected = by_hand(ranker, X, y, qid, folds, weights)
    assert found.values[:, 0] == pytest.approx(expected, abs=1e-12)
    assert type(found.estimators[0]) is type(ranker)
    piped = cross_validate_queries(
        make_pipeline(MaxAbsScaler(), ranker), X, y, qid, metrics="ndcg@10", cv=folds
    )
    assert type(piped.estimators[0][-1]) is type(ranker)


def test_rankers_that_vote_are_measured_by_query():
    """Their scores depend on the other documents of the query, which ``predict`` must get."""
    X, y, qid = rc.datasets.make_letor(24, 10, random_state=0)
    ranker = rc.PairwisePerceptron("voted", max_hypotheses=None, max_iter=2, random_state=0)
    found = rc.model_selection.cross_validate_queries(ranker, X, y, qid, metrics="ndcg@5", cv=3)
    expected = []
    for train, test in rc.model_selection.QueryKFold(3).split(X, y, qid=qid):
        model = clone(ranker).fit(X[train], y[train], qid=qid[train])
        scores = model.predict(X[test], qid=qid[test])
        expected.append(rc.metrics.ndcg_score(y[test], scores, qid=qid[test], k=5))
    assert found.values[:, 0].tolist() == expected


# ------------------------------------------------------------------- scores of held-out rows


RANKERS = {
    "stumps": lambda: rc.RankBoost(20),
    "piped": lambda: make_pipeline(StandardScaler(), rc.RankSVM()),
    "voted": lambda: rc.PairwisePerceptron("voted", max_hypotheses=None, random_state=0),
    "search": lambda: GridSearchCV(rc.RankBoost(5), {"step": ["third"]}, cv=QueryKFold(2)),
    "ordinal": lambda: rc.PRank(random_state=0),
    "lightgbm": lambda: pytest.importorskip("lightgbm").LGBMRanker(
        n_estimators=5, n_jobs=1, verbose=-1
    ),
    "xgboost": lambda: pytest.importorskip("xgboost").XGBRanker(n_estimators=5, n_jobs=1),
}


@pytest.mark.parametrize("name", RANKERS)
def test_held_out_scores_have_the_measures_of_cross_validation(name):
    ranker = RANKERS[name]()
    X, y, qid = data()
    qid = np.array([f"q{number}" for number in qid])
    mixed = np.random.default_rng(0).permutation(y.size)
    X, y, qid = X[mixed], y[mixed], qid[mixed]
    cv = QueryKFold(3, shuffle=True, random_state=1)
    scores = cross_val_predict(ranker, X, y, qid=qid, cv=cv)
    expected = cross_validate_queries(ranker, X, y, qid, metrics=["ndcg@5", "map"], cv=cv)
    for fold, (_, test) in enumerate(cv.split(X, y, qid)):
        found = evaluate(y[test], scores[test], qid=qid[test], metrics=["ndcg@5", "map"])
        assert expected.values[fold].tolist() == pytest.approx(list(found.values()), abs=1e-12)


def test_held_out_scores_are_of_whole_queries_by_default():
    pd = pytest.importorskip("pandas")
    X, y, qid = data()
    words = pd.Categorical(np.array(["bad", "fair", "good"])[y], ["bad", "fair", "good"], True)
    frame = pd.DataFrame(X, columns=list("abc")).assign(qid=qid)
    expected = np.empty(y.size)
    for train, test in QueryKFold(5).split(X, qid=qid):
        expected[test] = rc.RankBoost(9).fit(X[train], y[train], qid=qid[train]).predict(X[test])
    np.testing.assert_array_equal(cross_val_predict(rc.RankBoost(9), frame, words), expected)
    renamed = frame.rename(columns={"qid": "session"})
    found = cross_val_predict(rc.RankBoost(9), renamed, words, qid="session", cv=5)
    np.testing.assert_array_equal(found, expected)


def test_held_out_scores_of_rankers_require_whole_queries():
    X, y, qid = data()
    with pytest.raises(ValueError, match="requires qid= for a ranker"):
        cross_val_predict(rc.RankBoost(3), X, y)
    with pytest.raises(ValueError, match=r"fold that divides query \d+:"):
        cross_val_predict(rc.RankBoost(3), X, y, qid=qid, cv=KFold(4, shuffle=True))
    with pytest.raises(ValueError, match="groups must be None with qid"):
        cross_val_predict(rc.RankBoost(3), X, y, qid=qid, groups=qid)


def test_weights_of_queries_apply_to_held_out_scores():
    X, y, qid = data()
    weights = np.random.default_rng(0).uniform(0.1, 5, 30)
    found = cross_val_predict(rc.RankSVM(), X, y, qid=qid, cv=3, params={"sample_weight": weights})
    for train, test in QueryKFold(3).split(X, qid=qid):
        model = rc.RankSVM().fit(
            X[train], y[train], qid=qid[train], sample_weight=weights[qid][train]
        )
        np.testing.assert_allclose(found[test], model.predict(X[test]), atol=1e-9)
