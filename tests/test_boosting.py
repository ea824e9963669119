"""RankBoost and BipartiteRankBoost: against the plain form on every pair, and what theory says."""

from contextlib import contextmanager
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext import edge_bounds, stumps
from rankcore.boosting import _stump_search
from rankcore.boosting._binning import Binning
from reference import boosting as plain
from strategies import examples

pytestmark = pytest.mark.kernel

X_GOLDEN = np.array([3, 1, 2, 2.5, 0])[:, None]
Y_GOLDEN = np.array([1, 1, 1, 0, 0])


@contextmanager
def all_columns_evaluated():
    """Let no bound rule out a column."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stump_search, "MARGIN", inf)
        yield


@st.composite
def problems(draw):
    """Rows with ties, zero blocks, negative and missing values, graded labels, queries, weights."""
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-3, 4, size=(n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.3, 1.0])))
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X[rng.random((n, d)) < 0.2] = np.nan
    y = rng.integers(0, draw(st.sampled_from([2, 3, 9])), size=n).astype(float)
    qid = rng.integers(0, draw(st.sampled_from([1, 2, 4])), size=n)
    weight = rng.integers(0, 4, size=n) if draw(st.booleans()) else None
    return X, y, qid, weight, draw(st.booleans()), draw(st.booleans())


def follow(model, X, pairs, D, select, zero_missing=False):
    """Check each round on the list of pairs; returns their last weights."""
    thresholds = [plain.midpoints(column, zero_missing) for column in X.T]
    history, scores = model.history_, np.zeros(len(X))
    left, first = 1.0, D
    for t, (feature, threshold, side, alpha) in enumerate(model.estimators_.tolist()):
        _, best = plain.best_stump(X, D, pairs, thresholds, select, zero_missing)
        h = plain.fires(X[:, feature], threshold, side, zero_missing)
        assert plain.merit(D, pairs, h, select) == pytest.approx(best, abs=1e-9)
        plus, minus = plain.epsilons(D, pairs, h)
        assert history["edge"][t] == pytest.approx(plus - minus, abs=1e-10)
        rule = {"exact": "discrete"}.get(model.step, model.step)
        smoothing = 0.5 / len(pairs) if model.smoothing == "auto" else model.smoothing
        if rule == "mohri":
            both = D[(h[pairs[:, 0]] == 1) & (h[pairs[:, 1]] == 1)].sum()
            expected = plain.step_size("discrete", plus + both, minus + both, smoothing)
        else:
            least = rule == "discrete" and smoothing == 0
            expected = plain.step_size("least" if least else rule, plus, minus, smoothing)
        # The longest step is the logarithm of a difference of 1e-12 to 1, which has four digits.
        rel = 1e-5 if abs(alpha) > 14 else 1e-7
        assert alpha == pytest.approx(expected, rel=rel, abs=1e-9)
        D, Z = plain.reweigh(D, pairs, h, alpha)
        scores += alpha * h
        left *= Z
        assert history["normalizer"][t] == pytest.approx(Z, rel=1e-8, abs=1e-14)
        assert history["bound"][t] == pytest.approx(left, rel=1e-8, abs=1e-14)
        assert plain.training_error(scores, pairs, first) <= history["bound"][t] + 1e-9
        assert history["bound"][t] <= history["cap"][t] + 1e-9
    return D, scores


@settings(max_examples=examples(150), deadline=None)
@given(
    problems(),
    st.sampled_from([("third", "auto"), ("discrete", "auto"), ("discrete", 0.0)]),
    st.sampled_from(["edge", "normalizer"]),
)
def test_rounds_equal_the_plain_form_on_every_pair(problem, step, select):
    X, y, qid, weight, sparse, balance = problem
    pairs, D = plain.label_pairs(y, qid, balance, weight)
    model = rc.RankBoost(
        6,
        step=step[0],
        smoothing=step[1],
        select=select,
        balance="query" if balance else None,
        max_bins=None,
    )
    given_X = sp.csr_array(X) if sparse else X
    if not len(pairs):
        with pytest.raises(ValueError, match="nothing to learn|not be all zero"):
            model.fit(given_X, y, qid=qid, sample_weight=weight)
        return
    model.fit(given_X, y, qid=qid, sample_weight=weight)
    _, scores = follow(model, X, pairs, D, select)
    np.testing.assert_allclose(model.predict(given_X), scores, rtol=1e-12, atol=1e-12)


@settings(max_examples=examples(80), deadline=None)
@given(
    problems(),
    st.sampled_from(["exact", "mohri", "third"]),
    st.sampled_from(["edge", "normalizer"]),
    st.sampled_from(["learn", "zero"]),
)
def test_bipartite_rounds_equal_the_plain_form_on_every_pair(problem, step, select, missing):
    X, y, qid, weight, sparse, _ = problem
    pairs, D = plain.label_pairs(y >= 1, qid, True, weight)
    assume(len(pairs))
    model = rc.BipartiteRankBoost(5, step=step, rel=1, select=select, missing=missing)
    model.fit(sp.csr_array(X) if sparse else X, y, qid=qid, sample_weight=weight)
    follow(model, X, pairs, D, select, missing == "zero")


@settings(max_examples=examples(60), deadline=None)
@given(problems(), st.sampled_from(["edge", "normalizer"]))
def test_listed_pairs_equal_those_of_labels(problem, select):
    X, y, qid, weight, sparse, _ = problem
    pairs, D = plain.label_pairs(y, qid, False, weight)
    assume(len(pairs))
    model = rc.RankBoost(5, step="discrete", select=select, balance=None)
    model.fit(sp.csr_array(X) if sparse else X, qid=qid, pairs=pairs, pairs_weight=D)
    follow(model, X, pairs, D, select)


def test_three_rounds_equal_those_by_hand():
    for model in (rc.RankBoost(3, step="discrete"), rc.BipartiteRankBoost(3, step="exact")):
        model.fit(X_GOLDEN, Y_GOLDEN, qid=np.zeros(len(Y_GOLDEN)))
        np.testing.assert_array_equal(model.estimators_["threshold"], [0.5, 2.25, 2.75])
        np.testing.assert_allclose(
            model.estimators_["alpha"], [0.972955, -0.588584, 0.950052], atol=1e-6
        )
        np.testing.assert_allclose(
            model.history_["normalizer"], [0.688982, 0.858037, 0.709377], atol=1e-6
        )
        assert model.history_["edge"][1] == pytest.approx(-0.392375, abs=1e-6)
        assert model.history_["bound"][-1] == pytest.approx(0.419364, abs=1e-6)
        np.testing.assert_allclose(
            model.predict(X_GOLDEN), [1.334424, 0.972955, 0.972955, 0.384371, 0], atol=1e-6
        )


@pytest.mark.parametrize(
    ("a", "b", "mohri", "mohri_left", "exact", "exact_left", "third"),
    [
        (0.75, 0.25, 0.549306, 0.808013, 1.098612, 0.750000, 0.549306),
        (0.50, 0.25, 0.346574, 0.941942, 0.549306, 0.933013, 0.255413),
        (0.10, 0.02, 0.804719, 0.968076, 0.847298, 0.968000, 0.080171),
        (0.90, 0.80, 0.058892, 0.994558, 0.405465, 0.980000, 0.100335),
    ],
)
def test_bipartite_steps_equal_those_by_hand(a, b, mohri, mohri_left, exact, exact_left, third):
    # One binary feature, that fires on a share a of the relevant and b of the other documents.
    x = np.r_[np.arange(100) < 100 * a, np.arange(100) < 100 * b].astype(float)[:, None]
    y = np.repeat([1, 0], 100)
    for step, alpha, left in [("mohri", mohri, mohri_left), ("exact", exact, exact_left)]:
        model = rc.BipartiteRankBoost(1, step=step, smoothing=0.0).fit(x, y)
        assert model.estimators_["alpha"] == pytest.approx(alpha, abs=1e-6)
        assert model.history_["normalizer"] == pytest.approx([left], abs=1e-6)
        assert model.history_["bound"][0] <= model.history_["cap"][0] + 1e-12
    model = rc.BipartiteRankBoost(1, step="third").fit(x, y)
    assert model.estimators_["alpha"] == pytest.approx(third, abs=1e-6)


def text_like(n=4000, d=2000, per_row=60, seed=0, missing=False):
    """Sparse rows whose columns are of very different frequency, and two labels."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (np.arange(d) + 200)
    columns = rng.choice(d, size=(n, per_row), p=p / p.sum())
    X = sp.csr_array(
        (rng.lognormal(size=n * per_row), (np.repeat(np.arange(n), per_row), columns.ravel())),
        shape=(n, d),
    )
    X.sum_duplicates()
    if missing:
        X.data[rng.random(X.nnz) < 0.05] = np.nan
    w = rng.normal(size=d) * (rng.random(d) < 0.3)
    z = np.nan_to_num(X.toarray()) @ w + 2 * rng.normal(size=n)
    return X, (z > np.quantile(z, 0.9)).astype(int)


def assert_same(one, other):
    for name in one.estimators_.dtype.names:
        np.testing.assert_array_equal(one.estimators_[name], other.estimators_[name])
    assert one.history_ == other.history_


@pytest.mark.parametrize(
    ("step", "missing", "weighted"),
    [
        ("exact", "learn", False),
        ("exact", "zero", True),
        ("third", "learn", True),
        ("third", "zero", False),
    ],
)
def test_columns_excluded_by_bounds_do_not_change_the_model(step, missing, weighted, monkeypatch):
    monkeypatch.setattr(_stump_search, "RENEW", 40)
    X, y = text_like(missing=missing == "learn")
    weights = np.random.default_rng(0).uniform(0.1, 2, size=len(y)) if weighted else None

    def fit(n_jobs=None):
        model = rc.BipartiteRankBoost(100, step=step, missing=missing, n_jobs=n_jobs)
        return model.fit(X, y, sample_weight=weights)

    with all_columns_evaluated():
        expected = fit()
    assert_same(fit(), expected)
    assert_same(fit(3), expected)


def test_edge_bounds_hold_and_changes_equal_a_loop():
    X, y = text_like(n=600, d=90, per_row=9)
    X = X[np.argsort(-y, kind="stable")]
    n, n_winning = len(y), int(y.sum())
    rng = np.random.default_rng(0)
    bins = Binning(as_rows(X), np.arange(n), 255, False)
    present = (X.toarray() != 0).T
    wins = np.arange(n) < n_winning

    def edges_of(factors):
        weights = np.where(wins, 1 / factors[wins].sum(), -1 / factors[~wins].sum()) * factors
        search = _stump_search.StumpSearch(bins, 1)
        found = search.best(weights)
        return search._edges.copy(), found

    factors = rng.uniform(0.5, 2, n)
    edges, _ = edges_of(factors)
    scales = np.array([1 / factors[wins].sum(), 1 / factors[~wins].sum()])
    masses = np.array([present @ (factors * wins), present @ (factors * ~wins)]) * scales[:, None]
    then = np.ones((4, 90))
    then[:2] = scales[:, None]
    added, removed = np.zeros((2, 90)), np.zeros((2, 90))
    for feature in (3, 40, 60):
        changed, by = (present[feature] & (rng.random(n) < 0.5)).astype(np.uint8), 1.3
        before = factors.copy()
        factors[changed > 0] *= np.where(wins, by, 1 / by)[changed > 0]
        expected = [added[0] + present @ ((factors - before) * wins),
                    removed[1] + present @ ((before - factors) * ~wins)]  # fmt: skip
        edge_bounds.sum_changes(
            bins.columns, bins.rows, bins.taken, feature, changed, factors, n_winning, by,
            added[0], removed[1],
        )  # fmt: skip
        np.testing.assert_allclose([added[0], removed[1]], expected, rtol=1e-9, atol=1e-12)
    now = np.array([1 / factors[wins].sum(), 1 / factors[~wins].sum(), 1.0, 1.0])
    bounds = np.empty(90)
    edge_bounds.bound_edges(
        np.arange(90, dtype=np.int32), edges, masses, then, now, added, removed, bounds
    )
    after, _ = edges_of(factors)
    assert (np.abs(after) <= bounds + 1e-12).all()
    assert np.median(bounds) < 2 * np.median(np.abs(after))  # they would rule out something


@pytest.mark.parametrize("queries", [1, 40])
def test_bounds_exclude_most_columns(queries, monkeypatch):
    X, y = text_like()
    evaluated, evaluate = [], _stump_search.StumpSearch._evaluate

    def counted(self, gradients, features):
        evaluated.append(features.size)
        evaluate(self, gradients, features)

    monkeypatch.setattr(_stump_search.StumpSearch, "_evaluate", counted)
    rc.BipartiteRankBoost(100).fit(X, y, qid=np.arange(len(y)) % queries)
    assert sum(evaluated[:2]) == X.shape[1]
    assert sum(evaluated[2:]) < 0.5 * 100 * X.shape[1]


def graded(n=3000, d=30, seed=1, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[:, ::3] = np.maximum(np.round(2 * X[:, ::3]), 0)
    z = X[:, :6] @ rng.normal(size=min(6, d)) + rng.normal(size=n)
    return X, np.searchsorted(np.quantile(z, [0.5, 0.75, 0.9]), z), rng.integers(0, 60, size=n)


@pytest.mark.parametrize("max_bins", [255, 16, None])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_bounds_and_threads_do_not_matter(max_bins, layout):
    X, y, qid = graded()
    with all_columns_evaluated():
        expected = rc.RankBoost(60, max_bins=max_bins).fit(layout(X), y, qid=qid)
    for n_jobs in (1, 3):
        model = rc.RankBoost(60, max_bins=max_bins, n_jobs=n_jobs).fit(layout(X), y, qid=qid)
        assert_same(model, expected)


@pytest.mark.parametrize("select", ["edge", "normalizer"])
def test_sparse_and_dense_rows_give_the_same_model(select):
    X, y, qid = graded(n=600, d=9)
    dense = rc.RankBoost(30, select=select, n_jobs=2).fit(X, y, qid=qid)
    sparse = rc.RankBoost(30, select=select).fit(sp.csr_array(X), y, qid=qid)
    for name in ("feature", "threshold", "missing"):
        np.testing.assert_array_equal(dense.estimators_[name], sparse.estimators_[name])
    np.testing.assert_allclose(dense.estimators_["alpha"], sparse.estimators_["alpha"], rtol=1e-9)
    np.testing.assert_array_equal(dense.predict(X), dense.predict(sp.csr_array(X)))


def test_exact_bipartite_steps_equal_rankboost_on_all_pairs():
    X, y = text_like(n=300, d=80, per_row=10)
    pairs, _ = plain.label_pairs(y)
    listed = rc.RankBoost(40, step="discrete").fit(X, pairs=pairs)
    by_label = rc.RankBoost(40, step="discrete").fit(X, y, qid=np.zeros(len(y)))
    bipartite = rc.BipartiteRankBoost(40, step="exact").fit(X, y)
    assert_same(by_label, bipartite)
    for name in ("edge", "alpha", "normalizer"):
        np.testing.assert_allclose(listed.history_[name], bipartite.history_[name], rtol=1e-7)


def test_remaining_weight_is_the_product_of_normalizers():
    # F_RB = sum over i, j of exp(-(F_i - F_j)) = F_+ F_-, and the product of Z is F_RB / (m n).
    X, y = text_like(n=500, d=80, per_row=10)
    model = rc.BipartiteRankBoost(50).fit(X, y)
    scores = model.predict(X)
    left = np.exp(-scores[y == 1]).sum() * np.exp(scores[y == 0]).sum()
    total = np.count_nonzero(y == 1) * np.count_nonzero(y == 0)
    assert model.history_["bound"][-1] == pytest.approx(left / total, rel=1e-9)


def test_after_an_exact_step_the_stump_has_no_edge_left():
    X, y, qid = graded(n=200, d=5)
    pairs, D = plain.label_pairs(y, qid)
    model = rc.RankBoost(1, step="discrete", smoothing=0.0).fit(X, y, qid=qid)
    feature, threshold, side, alpha = model.estimators_[0].tolist()
    h = plain.fires(X[:, feature], threshold, side)
    D, _ = plain.reweigh(D, pairs, h, alpha)
    plus, minus = plain.epsilons(D, pairs, h)
    assert plus - minus == pytest.approx(0, abs=1e-12)


def test_potentials_of_graded_labels_equal_those_by_hand():
    from rankcore._ext.pair_weights import LabelWeights

    scores = np.array([0.5, 0, 1])
    factors = np.exp([-0.5, 0, 1])  # u, u, and v of the last level
    weights = LabelWeights(
        factors, None, np.arange(4), np.array([0, 3]), np.ones(1), np.empty((2, 3))
    )
    pi = np.empty(3)
    assert weights.differentiate(pi, None) == pytest.approx(4.973534, abs=1e-6)
    np.testing.assert_allclose(pi, [0.453451, 0.424598, -0.878048], atol=1e-6)
    pairs, D = plain.label_pairs([2, 1, 0])
    D, _ = plain.reweigh(D, pairs, scores, 1.0)
    np.testing.assert_allclose(pi, plain.potentials(D, pairs, 3), atol=1e-12)
    fires = np.array([1, 0, 1], dtype=np.uint8)
    assert weights.measure(fires)[:2] == pytest.approx(plain.epsilons(D, pairs, fires.astype(int)))


def test_scores_are_shifted_to_lie_around_zero():
    from rankcore._ext.pair_weights import LabelWeights

    # Of the first query far above 0, of the second far below; v of each query's last row.
    scores, signs = np.array([303.0, 300, 301, -251, -250, -248]), np.array([-1, -1, 1, -1, -1, 1])
    factors = np.exp(signs * scores)
    weights = LabelWeights(
        factors, None, np.arange(7), np.array([0, 3, 6]), np.ones(2), np.empty((2, 6))
    )
    assert weights.centre()
    np.testing.assert_allclose(
        signs * np.log(factors), [1.5, -1.5, -0.5, -1.5, -0.5, 1.5], atol=1e-12
    )


def test_missing_values_go_to_the_side_of_greater_gain():
    x = np.array([5, np.nan, 2, np.nan, 1])[:, None]
    model = rc.RankBoost(1).fit(x, [1, 1, 0, 0, 0], sample_weight=[3, 2, 1, 2.5, 1.5], qid=[0] * 5)
    _, threshold, side, _ = model.estimators_[0].tolist()
    assert (threshold, side) == (3.5, 0)
    # Better where it is missing: it fires there.
    model.fit(np.array([1, np.nan, 2, np.nan, 1])[:, None], [0, 1, 1, 1, 0], qid=[0] * 5)
    assert model.estimators_[0]["missing"] == 1
    assert model.predict([[np.nan], [0.0]])[0] > model.predict([[np.nan], [0.0]])[1]


@pytest.mark.parametrize("select", ["edge", "normalizer"])
def test_missing_values_fire_if_both_sides_gain_equally(select):
    """The middle document wins as much as it loses."""
    model = rc.RankBoost(1, select=select).fit([[2.0], [np.nan], [1.0]], [2, 1, 0], qid=[0] * 3)
    assert model.estimators_[["threshold", "missing"]].tolist() == [(1.5, 1)]


def test_zero_may_be_missing():
    dense = np.array([[0, 1.0], [0, 1], [5, 0], [0, 0]])
    y = [2, 2, 1, 0]
    for X in (dense, sp.csr_array(dense)):
        model = rc.RankBoost(20, missing="zero").fit(X, y, qid=np.zeros(len(y)))
        assert set(model.estimators_["threshold"]) == {-np.inf}
        np.testing.assert_array_equal(model.predict_rank(X), [1, 2, 3, 4])
        np.testing.assert_array_equal(model.predict(dense), model.predict(sp.csr_array(dense)))


def test_staged_scores_end_at_the_prediction():
    X, y, qid = graded(n=300, d=6)
    model = rc.RankBoost(25).fit(X, y, qid=qid)
    stages = list(model.staged_predict(X))
    assert len(stages) == 25 == model.n_iter_
    h = X[:, model.estimators_["feature"]] > model.estimators_["threshold"]
    expected = np.cumsum(model.estimators_["alpha"] * h, axis=1)
    np.testing.assert_allclose(np.transpose(stages), expected, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), expected[:, -1], atol=1e-12)


def test_missing_values_of_whole_queries_fire_as_in_other_ties():
    # Potentials of a query sum to 0, so that both directions of the missing are as good.
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 7)
    X, y = rng.normal(size=(210, 6)), rng.integers(0, 3, 210)
    X[rng.random((30, 6))[qid] < 0.3] = np.nan
    model = rc.RankBoost(40).fit(X, y, qid=qid)
    assert model.estimators_["missing"].tolist() == 40 * [1]


def test_float32_and_float64_values_take_the_same_side():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 4))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=500) > 0).astype(int)
    model = rc.RankBoost(200, max_bins=None).fit(X, y, qid=np.zeros(len(y)))
    np.testing.assert_array_equal(model.predict(X), model.predict(X.astype(np.float32)))
    close = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))], [1 + 1e-12], [3.0]])
    model = rc.RankBoost(20, max_bins=None).fit(close, [0, 2, 1, 3], qid=[0] * 4)
    assert list(model.predict_rank(close)) == [4, 2, 3, 1]


def test_early_stopping_keeps_the_best_round():
    X, y, qid = graded(n=1500, d=10)
    train, held = qid < 30, qid >= 30
    eval_set = {"eval_set": (X[held], y[held]), "eval_qid": qid[held]}
    model = rc.RankBoost(400, early_stopping_rounds=5, eval_metric="map")
    model.fit(X[train], y[train], qid=qid[train], **eval_set)
    values = model.history_["valid_map"]
    assert model.best_iteration_ == np.argmax(values) + 1 == len(model.estimators_)
    assert model.n_iter_ == len(values) == model.best_iteration_ + 5
    measured = rc.metrics.evaluate(y[held], model.predict(X[held]), qid=qid[held], metrics=["map"])[
        "map"
    ]
    assert measured == pytest.approx(max(values))
    whole = rc.RankBoost(model.n_iter_).fit(X[train], y[train], qid=qid[train], **eval_set)
    assert len(whole.estimators_) == whole.n_iter_
    np.testing.assert_array_equal(whole.estimators_[: model.best_iteration_], model.estimators_)
    with pytest.raises(ValueError, match="early_stopping_rounds requires eval_set"):
        model.fit(X, y, qid=qid)


def test_warm_start_continues_the_fit():
    X, y, qid = graded(n=600, d=8)
    whole = rc.RankBoost(40).fit(X, y, qid=qid)
    model = rc.RankBoost(15, warm_start=True).fit(X, y, qid=qid)
    first = model.predict(X)
    model.set_params(n_estimators=40).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.estimators_["feature"], whole.estimators_["feature"])
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.history_["bound"], whole.history_["bound"], rtol=1e-9)
    np.testing.assert_allclose(next(model.staged_predict(X)), next(whole.staged_predict(X)))
    with pytest.raises(ValueError, match="n_estimators must be at least 40"):
        model.set_params(n_estimators=10).fit(X, y, qid=qid)
    cold = model.set_params(warm_start=False, n_estimators=15).fit(X, y, qid=qid)
    np.testing.assert_array_equal(cold.predict(X), first)


def test_callbacks_see_the_model_and_may_end_the_fit():
    X, y, qid = graded(n=200, d=4)
    seen = []

    def look(now):
        seen.append(now.model.predict(X))
        return len(seen) == 7

    model = rc.RankBoost(50).fit(X, y, qid=qid, callbacks=[look])
    assert model.n_iter_ == 7
    np.testing.assert_allclose(seen, list(model.staged_predict(X)), atol=1e-12)


def test_a_stump_that_orders_all_pairs_ends_learning():
    model = rc.RankBoost(100).fit([[1.0], [2.0], [3.0]], [0, 0, 1], qid=[0] * 3)
    assert model.n_iter_ == 1
    assert np.isfinite(model.predict([[9.0]])).all()


@pytest.mark.parametrize("step", ["third", "discrete"])
def test_separable_rows_do_not_overflow(step):
    X = np.arange(60.0)[:, None]
    model = rc.RankBoost(2000, step=step, max_bins=None).fit(X, np.arange(60), qid=np.zeros(60))
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.history_["edge"]).all()
    assert model.history_["bound"][-1] < 0.1


def test_constant_features_add_no_round():
    with pytest.warns(UserWarning, match="RankBoost learned nothing"):
        model = rc.RankBoost(5).fit(np.ones((4, 2)), [0, 1, 2, 3], qid=[0] * 4)
    assert model.n_iter_ == 0
    np.testing.assert_array_equal(model.predict(np.eye(2)), [0, 0])
    np.testing.assert_array_equal(model.feature_importances_, [0, 0])


@pytest.mark.parametrize("select", ["edge", "normalizer"])
@pytest.mark.parametrize("missing", ["learn", "zero"])
def test_rows_without_an_entry_count_as_zeros(select, missing):
    X = sp.csr_array((4, 3))
    with pytest.warns(UserWarning, match="BipartiteRankBoost learned nothing"):
        model = rc.BipartiteRankBoost(5, select=select, missing=missing).fit(X, [0, 1, 0, 1])
    assert model.n_iter_ == 0
    X = sp.csr_array(np.array([[0, 0], [0, 2.0], [0, 0], [0, 1]]))
    model = rc.BipartiteRankBoost(5, select=select, missing=missing).fit(X, [0, 1, 0, 1])
    assert set(model.predict_rank(X)[[1, 3]]) == {1, 2}


def test_bins_have_equal_counts_and_zero_its_own():
    rng = np.random.default_rng(0)
    x = np.r_[np.zeros(400), rng.normal(size=600)]
    y = np.r_[np.full(400, 600), np.argsort(np.argsort(x[400:]))]
    model = rc.RankBoost(300, max_bins=8).fit(x[:, None], y, qid=np.zeros(len(y)))
    thresholds = np.unique(model.estimators_["threshold"])
    assert len(thresholds) == 7  # 8 bins: all are of use here
    # Zero has a bin of its own, the others share the rest evenly.
    below, above = x[x < 0].max(), x[x > 0].min()
    assert ((thresholds > below) & (thresholds < 0)).sum() == 1
    assert ((thresholds >= 0) & (thresholds < above)).sum() == 1
    counts = np.histogram(x[x != 0], np.r_[-np.inf, thresholds[thresholds != 0], np.inf])[0]
    assert counts[counts > 0].min() > 60
    few = rc.RankBoost(50, max_bins=8).fit(np.arange(5.0)[:, None], np.arange(5), qid=[0] * 5)
    assert set(few.estimators_["threshold"]) <= {0.5, 1.5, 2.5, 3.5}


def test_contributions_add_up():
    X, y, qid = graded(n=300, d=6)
    X[::7, 1] = np.nan
    model = rc.RankBoost(60).fit(X, y, qid=qid)
    total = np.zeros(len(X))
    for feature in range(6):
        thresholds, values, missing = model.contribution(feature)
        assert len(values) == len(thresholds) + 1
        assert (np.diff(thresholds) > 0).all()
        x = X[:, feature]
        total += np.where(np.isnan(x), missing, values[np.searchsorted(thresholds, x)])
    np.testing.assert_allclose(model.predict(X), total, atol=1e-12)
    share = np.bincount(model.estimators_["feature"], np.abs(model.estimators_["alpha"]), 6)
    np.testing.assert_allclose(model.feature_importances_, share / share.sum())


def test_order_of_rows_and_kind_of_qid_do_not_matter():
    X, y, qid = graded(n=400, d=6, dtype=np.float64)
    model = rc.RankBoost(20).fit(X, y, qid=qid)
    order = np.random.default_rng(0).permutation(len(y))
    other = rc.RankBoost(20).fit(X[order], y[order], qid=qid[order].astype(str))
    np.testing.assert_array_equal(model.estimators_["threshold"], other.estimators_["threshold"])
    np.testing.assert_allclose(model.estimators_["alpha"], other.estimators_["alpha"], rtol=1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"step": "fourth"}, "step"),
        ({"select": "z"}, "select"),
        ({"max_bins": 256}, "max_bins"),
        ({"max_bins": 1}, "max_bins"),
        ({"missing": "mean"}, "missing"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"smoothing": "some"}, "smoothing"),
        ({"balance": "pair"}, "balance"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds"),
        ({"eval_metric": "ndgc@10"}, "ndcg"),
    ],
)
def test_bad_parameters_are_rejected(params, message):
    with pytest.raises(ValueError, match=message):
        rc.RankBoost(**params).fit(X_GOLDEN, Y_GOLDEN, qid=np.zeros(len(Y_GOLDEN)))


def test_bad_input_is_rejected():
    with pytest.raises(ValueError, match="infinity"):
        rc.RankBoost().fit([[1.0], [np.inf]], [0, 1], qid=[0] * 2)
    with pytest.raises(ValueError, match="no query has two documents"):
        rc.RankBoost().fit(X_GOLDEN, Y_GOLDEN, qid=np.arange(5))
    with pytest.raises(ValueError, match="no query has two documents"):
        rc.BipartiteRankBoost(rel=5).fit(X_GOLDEN, Y_GOLDEN)
    with pytest.raises(ValueError, match="pairs_weight requires pairs"):
        rc.RankBoost().fit(X_GOLDEN, Y_GOLDEN, pairs_weight=[1.0], qid=np.zeros(len(Y_GOLDEN)))
    with pytest.raises(NotFittedError):
        rc.RankBoost().predict(X_GOLDEN)
    model = rc.RankBoost(3).fit(X_GOLDEN, Y_GOLDEN, qid=np.zeros(len(Y_GOLDEN)))
    before = model.predict(X_GOLDEN)
    with pytest.raises(ValueError, match="qid"):
        model.fit(X_GOLDEN, Y_GOLDEN, qid=[1, 2])
    np.testing.assert_array_equal(model.predict(X_GOLDEN), before)
    with pytest.raises(IndexError, match="no column"):
        stumps.fire(as_rows(X_GOLDEN), 1, 0.0, 0, False, np.empty(5, np.uint8))
