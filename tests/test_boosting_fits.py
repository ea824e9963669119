"""Boosting: fits that follow a fit, held-out rows, and numbers at the ends of their range."""

import tracemalloc
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc


def graded(n=90, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(X[:, 0] + rng.normal(size=n), [0, 1]), np.arange(n) % 5


def watched(X, y, qid):
    return {"eval_set": (X, y), "eval_qid": qid}


@pytest.mark.parametrize("learner", [rc.RankBoost, rc.BipartiteRankBoost])
@pytest.mark.parametrize(
    ("params", "n_estimators", "learning_rate"),
    [
        ({}, 300, 1.0),
        ({"weak": "stump"}, 300, 1.0),
        ({"max_leaf_nodes": 4}, 100, 0.1),
        ({"weak": "tree"}, 100, 0.1),
        ({"max_leaf_nodes": None, "max_depth": 2}, 100, 0.1),
        ({"n_estimators": 7}, 7, 1.0),
        ({"learning_rate": 0.5}, 300, 0.5),
        ({"max_leaf_nodes": 4, "n_estimators": np.int64(7)}, 7, 0.1),
        ({"max_leaf_nodes": 4, "learning_rate": 1}, 100, 1.0),
    ],
)
def test_auto_rounds_and_rate_depend_on_stumps_or_trees(
    learner, params, n_estimators, learning_rate, tmp_path
):
    X, y, qid = graded()
    model = learner(**params).fit(X, y, qid=qid)
    assert (model.n_estimators_, model.learning_rate_) == (n_estimators, learning_rate)
    explicit = params | {"n_estimators": n_estimators, "learning_rate": learning_rate}
    expected = learner(**explicit).fit(X, y, qid=qid)
    assert model.history_ == expected.history_
    assert len(model.history_["edge"]) == model.n_iter_ == n_estimators
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    # The values that a fit used do not follow the parameters, nor do those of a file.
    model.set_params(n_estimators=5, learning_rate=0.3)
    rc.save(model, tmp_path / "model")
    for one in (model, rc.load(tmp_path / "model"), clone(model).fit(X, y, qid=qid)):
        used = (5, 0.3) if one.n_iter_ == 5 else (n_estimators, learning_rate)
        assert (one.n_estimators_, one.learning_rate_) == used
        assert type(one.n_estimators_) is int
        assert type(one.learning_rate_) is float


def test_warm_start_continues_up_to_the_auto_rounds():
    X, y, qid = graded()
    model = rc.RankBoost(20, max_leaf_nodes=4, warm_start=True).fit(X, y, qid=qid)
    model.set_params(n_estimators="auto").fit(X, y, qid=qid)
    whole = rc.RankBoost(max_leaf_nodes=4).fit(X, y, qid=qid)
    assert (model.n_iter_, model.n_estimators_) == (100, 100)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-6)
    model.set_params(n_estimators=101).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="n_estimators must be at least 101, .*; got 100"):
        model.set_params(n_estimators="auto").fit(X, y, qid=qid)


def test_early_stopping_ends_before_the_auto_rounds():
    X, y, qid = graded()
    held_out = watched(*graded(seed=1))
    model = rc.RankBoost(max_leaf_nodes=4, early_stopping_rounds=3).fit(X, y, qid=qid, **held_out)
    assert model.n_iter_ == model.best_iteration_ + 3 < model.n_estimators_ == 100
    expected = rc.RankBoost(model.best_iteration_, max_leaf_nodes=4).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("name", ["n_estimators", "learning_rate"])
def test_rounds_and_rate_accept_no_string_but_auto(name):
    X, y, qid = graded()
    with pytest.raises(ValueError, match=f"{name} must be 'auto' or a.*; got 'few'"):
        rc.RankBoost(**{name: "few"}).fit(X, y, qid=qid)


def test_warm_start_without_a_new_round_keeps_the_stumps():
    X, y, qid = graded()
    model = rc.RankBoost(15, warm_start=True).fit(X, y, qid=qid)
    before = model.predict(X)
    model.fit(X, y, qid=qid, **watched(X, y, qid))
    np.testing.assert_array_equal(model.predict(X), before)
    model.set_params(early_stopping_rounds=3).fit(X, y, qid=qid, **watched(X, y, qid))
    assert model.best_iteration_ == np.argmax(model.history_["valid_ndcg@10"]) + 1
    assert len(model.estimators_) == model.best_iteration_


def test_rounds_before_the_validation_set_are_measured_too(tmp_path):
    X, y, qid = graded()
    whole = rc.RankBoost(12).fit(X, y, qid=qid, **watched(X, y, qid))
    model = rc.RankBoost(5, warm_start=True).fit(X, y, qid=qid)
    model.set_params(n_estimators=12).fit(X, y, qid=qid, **watched(X, y, qid))
    assert model.history_["valid_ndcg@10"] == pytest.approx(whole.history_["valid_ndcg@10"])
    assert model.best_iteration_ == whole.best_iteration_
    rc.save(model, tmp_path / "model")
    assert rc.load(tmp_path / "model").history_ == model.history_
    # Without one, or with another measure, there is nothing to go on with.
    model.set_params(n_estimators=14, eval_metric="map").fit(X, y, qid=qid, **watched(X, y, qid))
    assert {len(values) for values in model.history_.values()} == {14}
    assert "ndcg@10" not in model.history_
    model.set_params(n_estimators=15).fit(X, y, qid=qid)
    assert "map" not in model.history_
    rc.save(model, tmp_path / "model")
    rc.load(tmp_path / "model")


def test_a_fit_forgets_an_earlier_fit():
    pd = pytest.importorskip("pandas")
    X, y, qid = graded()
    named = pd.DataFrame(X, columns=list("abcd"))
    model = rc.RankBoost(5).fit(named, y, qid=qid, eval_set=(named, y), eval_qid=qid)
    model.fit(X, y, qid=qid)
    assert not hasattr(model, "best_iteration_")
    assert not hasattr(model, "feature_names_in_")


def test_a_measure_that_is_not_defined_is_an_error():
    X, y, qid = graded()
    model = rc.RankBoost(5, eval_metric="auc", early_stopping_rounds=2)
    with pytest.raises(ValueError, match="'auc' returned nan"):
        model.fit(X, y, qid=qid, **watched(X, np.zeros_like(y), qid))


def test_measures_of_any_name_have_separate_lists():
    def edge(labels, scores, qid):
        return 0.5

    X, y, qid = graded()
    model = rc.RankBoost(3, eval_metric=edge).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert {len(values) for values in model.history_.values()} == {3}


def test_callbacks_that_come_once_are_called_in_each_round():
    X, y, _ = graded()
    seen = []
    rc.RankBoost(4).fit(
        X, y, callbacks=iter([lambda now: seen.append(now.model.n_iter_)]), qid=np.zeros(len(y))
    )
    assert seen == [1, 2, 3, 4]


def test_pairs_of_weight_zero_are_rejected():
    X, _, _ = graded()
    weight = np.arange(len(X)) > 1
    with pytest.raises(ValueError, match="all pairs have weight 0"):
        rc.RankBoost().fit(X, pairs=[[0, 1]], sample_weight=weight)


@pytest.mark.parametrize("smoothing", [1e4, 1e8, 1e17, 1e100])
def test_cap_stays_above_the_bound_with_large_smoothing(smoothing):
    X, y, qid = graded()
    model = rc.RankBoost(20, step="discrete", smoothing=smoothing).fit(X, y, qid=qid)
    bound, cap = np.array(model.history_["bound"]), np.array(model.history_["cap"])
    assert (bound <= cap + 1e-14).all()
    assert (cap <= 1 + 1e-14).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("balance", ["query", None])
@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e-160, 1e160, 1.7e308])
def test_the_unit_of_weights_does_not_matter(weight, balance):
    X, y, qid = graded()
    pairs = [[0, 5], [10, 5], [1, 6], [31, 11]]
    for size, more in [(len(y), {}), (5, {}), (len(y), {"pairs": pairs})]:
        model = rc.RankBoost(8, balance=balance).fit(X, y, qid=qid, **more)
        other = rc.RankBoost(8, balance=balance)
        if more:
            more = {**more, "pairs_weight": np.full(len(pairs), weight)}
        other.fit(X, y, qid=qid, sample_weight=np.full(size, weight), **more)
        np.testing.assert_array_equal(other.estimators_["feature"], model.estimators_["feature"])
        np.testing.assert_allclose(other.history_["bound"], model.history_["bound"], rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_weights_negligible_compared_with_others_are_rejected():
    X, y, qid = graded()
    weight = np.where(qid == 0, 1e-200, 1.0)
    within = np.where(qid == 0, 5e-324, 1.0)
    within[np.flatnonzero(qid == 0)[0]] = 1.0  # the scale of a query, whose other rows vanish
    with pytest.raises(ValueError, match="reduce the ratio"):
        rc.RankBoost(3).fit(X, y, qid=qid, sample_weight=within)
    # Where queries need not weigh alike, those pairs do not count.
    model = rc.RankBoost(3, balance=None).fit(X, y, qid=qid, sample_weight=weight)
    rest = qid > 0
    other = rc.RankBoost(3, balance=None).fit(X[rest], y[rest], qid=qid[rest])
    np.testing.assert_allclose(model.estimators_["alpha"], other.estimators_["alpha"])


def test_warm_start_after_convergence_adds_nothing():
    X, y = np.arange(60.0)[:, None], np.arange(60)
    for rows, labels, step in [([[1.0], [2.0]], [0, 1], "third"), (X, y, "discrete")]:
        model = rc.RankBoost(3000, step=step, warm_start=True, max_bins=None).fit(
            rows, labels, qid=np.zeros(len(labels))
        )
        n = model.n_iter_
        assert n < 3000
        assert model.fit(rows, labels, qid=np.zeros(len(labels))).n_iter_ == n
    # Not where the last stump orders all pairs of other rows the other way round.
    X = np.array([[1, 3], [2, 2], [3, 1.0]])
    model = rc.RankBoost(9, warm_start=True).fit(X, [0, 0, 1], qid=[0] * 3)
    assert model.n_iter_ == 1
    assert model.fit(X, [0, 0, 1], qid=[0] * 3).n_iter_ == 1
    assert model.fit(X[:, ::-1], [0, 0, 1], qid=[0] * 3).n_iter_ == 2


@pytest.mark.parametrize("listed", [False, True])
def test_warm_start_with_scores_far_apart_equals_one_fit(listed):
    X = np.arange(60.0)[:, None]
    y = np.arange(60) // 10
    pairs = np.argwhere(y[:, None] > y)
    more = {"pairs": pairs} if listed else {"qid": np.zeros(60)}
    whole = rc.RankBoost(55, step="discrete", smoothing=0.0).fit(X, y, **more)
    model = rc.RankBoost(45, step="discrete", smoothing=0.0, warm_start=True).fit(X, y, **more)
    assert 600 < np.ptp(model.predict(X)) < 900
    model.set_params(n_estimators=55).fit(X, y, **more)
    np.testing.assert_allclose(model.history_["bound"], whole.history_["bound"], rtol=1e-9)
    left = np.exp(model.predict(X)[pairs[:, 1]] - model.predict(X)[pairs[:, 0]]).mean()
    assert model.history_["bound"][-1] == pytest.approx(left, rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("listed", [False, True])
def test_warm_start_on_opposite_labels_is_rejected(listed):
    X, y = np.arange(60.0)[:, None], np.arange(60)
    model = rc.RankBoost(55, step="discrete", smoothing=0.0, warm_start=True, max_bins=None).fit(
        X, y, qid=np.zeros(len(y))
    )
    before = model.predict(X)
    more = {"pairs": np.argwhere(y[:, None] < y)} if listed else {"qid": np.zeros(60)}
    model.set_params(n_estimators=100)
    with pytest.raises(ValueError, match="warm_start cannot continue"):
        model.fit(X, -y, **more)
    np.testing.assert_array_equal(model.predict(X), before)


def held_while_learning(model, X, y, **more):
    """Bytes that a fit holds in its last round."""
    held = []
    tracemalloc.start()
    try:
        model.fit(X, y, **more, callbacks=[lambda _: held.append(tracemalloc.get_traced_memory())])
    finally:
        tracemalloc.stop()
    return held[-1][0]


@pytest.mark.parametrize(
    ("model", "a_value", "a_row"),
    [
        (rc.RankBoost(3), 1, 45),
        (rc.RankBoost(3, max_bins=None), 4, 53),  # a sum for each value
        (rc.BipartiteRankBoost(3), 1, 45),
    ],
    ids=str,
)
def test_memory_is_within_the_documented_bound(model, a_value, a_row):
    rng = np.random.default_rng(0)
    n, d = 30000, 4
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, size=n)
    model.fit(X[:50], y[:50], qid=np.zeros(50))
    assert held_while_learning(model, X, y, qid=np.zeros(n)) < n * (a_value * d + a_row) + 2**17


def test_more_threads_than_features_take_no_memory():
    X, y, _ = graded()
    model = rc.RankBoost(3, n_jobs=500)
    model.fit(X, y, qid=np.zeros(len(y)))
    assert held_while_learning(model, X, y, qid=np.zeros(len(y))) < 2**20


def test_a_file_with_a_parameter_out_of_range_is_rejected(tmp_path):
    X, y, _ = graded()
    model = rc.BipartiteRankBoost(2).fit(X, y)
    model.rel = "some"
    rc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="damaged: BipartiteRankBoost: rel must be"):
        rc.load(tmp_path / "model")


@pytest.mark.parametrize("step", ["exact", "third", "mohri"])
@pytest.mark.parametrize("smoothing", ["auto", 0.0])
def test_excluded_columns_do_not_matter_when_weights_fall_fast(step, smoothing, monkeypatch):
    rng = np.random.default_rng(1)
    n, d, per_row = 300, 300, 30
    p = 1.0 / (np.arange(d) + 200)
    columns = rng.choice(d, size=n * per_row, p=p / p.sum())
    values = rng.integers(1, 5, size=columns.size).astype(float)
    X = sp.csr_array((values, (np.repeat(np.arange(n), per_row), columns)), shape=(n, d))
    X.sum_duplicates()
    y = X[:, [3]].toarray()[:, 0] + 2 * X[:, [40]].toarray()[:, 0] > 3  # two columns tell it all
    model = rc.BipartiteRankBoost(200, step=step, smoothing=smoothing).fit(X, y)
    plain = rc.BipartiteRankBoost(200, step=step, smoothing=smoothing)
    monkeypatch.setattr("rankcore.boosting._stump_search.MARGIN", np.inf)
    plain.fit(X, y)
    assert plain.history_["bound"][-1] < 1e-12
    np.testing.assert_array_equal(model.estimators_, plain.estimators_)


def test_too_many_rows_are_rejected(monkeypatch):
    X, y, _ = graded()
    monkeypatch.setattr("rankcore.boosting._binning.MAX_ROWS", len(X) - 1)
    with pytest.raises(ValueError, match="boosting supports at most 89 rows; got 90"):
        rc.RankBoost().fit(X, y, qid=np.zeros(len(y)))


def test_a_stump_that_orders_no_pair_takes_no_step():
    from rankcore.boosting._stump_rounds import MAX_STEP, _half_log

    assert [_half_log(*parts) for parts in [(0, 0), (1, 0), (0, 1)]] == [0, MAX_STEP, -MAX_STEP]


def test_memory_of_distinct_labels_is_linear():
    rng = np.random.default_rng(0)
    n = 30000
    X, y = rng.normal(size=(n, 2)), rng.permutation(n).astype(float)
    model = rc.RankBoost(3).fit(X[:50], y[:50], qid=np.zeros(50))
    held = held_while_learning(model, X, y, qid=np.zeros(n))
    assert held < n * (2 + 45 + 24) + 2**17  # and 24 a label


@pytest.mark.parametrize("model", [rc.RankBoost(12), rc.PairwisePerceptron(max_iter=12, margin=0)])
def test_best_round_by_a_loss_has_the_minimum(model):
    X, y, qid = graded()
    rng = np.random.default_rng(0)
    noisy = rng.permutation(y)  # nothing can be learned about these: quality wanders
    model = clone(model).set_params(eval_metric="misranking", early_stopping_rounds=12)
    if isinstance(model, rc.PairwisePerceptron):
        model.set_params(random_state=0)
    model.fit(X, y, qid=qid, eval_set=(X, noisy), eval_qid=qid)
    values = model.history_["valid_misranking"]
    assert min(values) < max(values)
    assert model.best_iteration_ == np.argmin(values) + 1
    ranked = model.predict(X)
    assert rc.metrics.pairwise_misranking(noisy, ranked, qid=qid) == pytest.approx(min(values))


def test_committee_chosen_by_a_loss_has_the_minimum():
    X, y, qid = graded()
    losses = []

    def watch_quality(weights):
        losses.append(rc.metrics.pairwise_misranking(y, X @ weights, qid=qid))
        return -losses[-1]

    params = {"variant": "pocket", "committee_size": 1, "max_iter": 3, "random_state": 0}
    watched = {"eval_set": (X, y), "eval_qid": qid}
    by_name = rc.PairwisePerceptron(**params, quality="misranking").fit(X, y, qid=qid, **watched)
    by_call = rc.PairwisePerceptron(**params, quality=watch_quality).fit(X, y, qid=qid)
    np.testing.assert_array_equal(by_name.coef_, by_call.coef_)
    found = rc.metrics.pairwise_misranking(y, by_name.predict(X), qid=qid)
    assert found == pytest.approx(min(losses))


def test_warm_start_requires_the_same_columns():
    X, y, qid = graded()
    names = [f"f{j}" for j in range(X.shape[1])]
    model = rc.RankBoost(3, warm_start=True).fit(pd.DataFrame(X, columns=names), y, qid=qid)
    model.set_params(n_estimators=5)
    with pytest.raises(ValueError, match="warm_start requires the columns that the model was"):
        model.fit(pd.DataFrame(X, columns=names[::-1]), y, qid=qid)
    assert len(model.estimators_) == 3
    assert len(model.fit(pd.DataFrame(X, columns=names), y, qid=qid).estimators_) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_estimators": 2}, "n_estimators must be at least 3, .*; got 2"),
        ({"missing": "zero"}, "missing differs from what this model started with"),
    ],
)
def test_warm_start_rejects_changed_parameters(change, message):
    X, y, qid = graded()
    model = rc.RankBoost(3, warm_start=True).fit(X, y, qid=qid).set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="but warm_start continues a model of"):
        rc.RankBoost(3, warm_start=True).fit(X, y, qid=qid).fit(X[:, :2], y, qid=qid)


def test_a_callback_cannot_change_the_estimator():
    X, y, qid = graded()
    for model in (rc.RankBoost(3), rc.PairwisePerceptron(max_iter=3, random_state=0)):
        params = model.get_params()
        model.fit(X, y, qid=qid, callbacks=[lambda now: now.model.set_params(verbose=7) and None])
        assert model.get_params() == params


def test_a_subclass_with_a_required_parameter_watches_held_out_rows():
    class Named(rc.RankBoost):
        def __init__(self, name, n_estimators=3, eval_metric="ndcg@10"):
            super().__init__(n_estimators, eval_metric=eval_metric)
            self.name = name

    X, y, qid = graded()
    model = Named("mine").fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert len(model.history_["valid_ndcg@10"]) == 3


def test_verbose_prints_at_the_given_interval(capsys):
    X, y, qid = graded()
    rc.RankBoost(5, verbose=2).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "[RankBoost] round 2 of 5",
        "[RankBoost] round 4 of 5",
    ]
    assert all(
        "training error at most 0." in line and ", valid_ndcg@10 0." in line for line in lines
    )


def test_make_bipartite_has_the_requested_shape_and_fraction():
    X, y = rc.datasets.make_bipartite(400, 300, mean_nnz=20, relevant=0.2, random_state=0)
    assert X.shape == (400, 300)
    assert X.has_canonical_format
    assert X.indices.dtype == np.int32
    assert 15 < X.nnz / 400 < 25
    assert np.bincount(y).tolist() == [320, 80]
    # With little noise the label is a linear function of the row.
    X, y = rc.datasets.make_bipartite(600, 20, noise=0.01, n_informative=4, random_state=0)
    ranker = rc.PairwisePerceptron(random_state=0).fit(X, y, qid=np.zeros(len(y)))
    assert rc.metrics.auc_score(y, ranker.predict(X)) > 0.95
    one, same, other = (
        rc.datasets.make_bipartite(400, 300, random_state=seed)[0] for seed in (0, 0, 1)
    )
    assert (one != same).nnz == 0
    assert (one != other).nnz


@pytest.mark.parametrize("kind", [rc.RankBoost, rc.BipartiteRankBoost])
def test_parameters_of_one_kind_of_weak_ranker_have_the_defaults_of_the_signature(kind):
    from rankcore.boosting.params import OF_STUMPS, OF_TREES

    defaults = {name: one.default for name, one in signature(kind).parameters.items()}
    for name, default in (OF_STUMPS | OF_TREES).items():
        assert defaults[name] == default
