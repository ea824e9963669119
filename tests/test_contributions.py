"""Contributions of features: they add up, and are Shapley values."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from declared import SAVED, adds_up, instances
from rankcore._ext import contributions as kernels
from rankcore.boosting._tree_model import Tree
from reference.shapley import shapley_values
from strategies import examples

pytestmark = pytest.mark.kernel

RNG = np.random.default_rng(7)
X = RNG.normal(size=(240, 5)).round(1)
X[RNG.random(X.shape) < 0.3] = 0
Y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * RNG.normal(size=len(X)), [-1, 0, 1])
QID = np.repeat(np.arange(24), 10)
HOLES = np.where(RNG.random(X.shape) < 0.15, np.nan, X)

LINEAR = [*filter(adds_up, SAVED), rc.RankSVM(kernel="linear")]
BOOSTED = [
    *(one for one in instances("queries") if hasattr(one, "max_leaf_nodes")),
    rc.RankBoost(30, missing="zero"),
    rc.RankBoost(8, max_leaf_nodes=12, missing="zero"),
    rc.RankBoost(8, max_leaf_nodes=2, weak="tree"),
]


def name(model):
    return repr(model)


def fitted(model):
    ranks = hasattr(model, "predict_rank")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, Y, **({"qid": QID} if ranks else {}))


def score_of(model):
    return model.project if hasattr(model, "project") else model.predict


# Sums of as many numbers as there are stumps or support vectors, in another order.
def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * (1 + np.abs(b).max()))


@pytest.mark.parametrize("model", [*LINEAR, *BOOSTED], ids=name)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, np.float32])
def test_contributions_add_up_to_the_score(model, form):
    score = score_of(fitted(model))
    rows = form(X)
    for background in (None, X[:7], sp.csr_array(X[:7]), rows):
        found = model.contributions(rows, background)
        assert found.values.shape == X.shape
        close(found.scores(), score(rows))
        zeros = np.zeros((1, X.shape[1])) if background is None else background
        close(found.base, score(zeros).mean())
        if background is None and sp.issparse(rows):
            assert sp.issparse(found.values)
            assert found.values.has_canonical_format
            assert found.values.nnz == rows.nnz
        else:
            assert isinstance(found.values, np.ndarray)


@pytest.mark.parametrize("model", [*LINEAR[::4], *BOOSTED], ids=name)
def test_contributions_are_shapley_values(model):
    score = score_of(fitted(model))
    background = X[40:45]
    found = model.contributions(X[:6], background).values
    from_zeros = model.contributions(sp.csr_array(X[:6])).values.toarray()
    for i in range(6):
        close(found[i], shapley_values(score, X[i], background))
        close(from_zeros[i], shapley_values(score, X[i], np.zeros((1, X.shape[1]))))


@pytest.mark.parametrize("model", BOOSTED, ids=name)
def test_missing_values_have_contributions(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(HOLES, Y, qid=QID)
    for rows in (HOLES, sp.csr_array(HOLES)):
        close(model.contributions(rows, HOLES[:20]).scores(), model.predict(rows))
        close(model.contributions(rows).scores(), model.predict(rows))
    found = model.contributions(HOLES[:4], HOLES[50:53]).values
    for i in range(4):
        close(found[i], shapley_values(model.predict, HOLES[i], HOLES[50:53]))


def test_categories_have_contributions():
    rows = np.column_stack([RNG.integers(0, 9, 240), X[:, :2]]).astype(np.float64)
    y = np.isin(rows[:, 0], [1, 4, 7]) + (rows[:, 1] > 0)
    model = rc.RankBoost(8, max_leaf_nodes=6, categorical_features=[0]).fit(rows, y, qid=QID)
    assert model.is_categorical_[0]
    found = model.contributions(rows[:5], rows[20:24])
    close(found.scores(), model.predict(rows[:5]))
    for i in range(5):
        close(found.values[i], shapley_values(model.predict, rows[i], rows[20:24]))


def test_contributions_of_frames_have_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = rc.RankBoost(10).fit(frame, Y, qid=QID)
    found = model.contributions(frame, frame[:3])
    assert found.feature_names == list("abcde")
    assert "240 x 5 dense" in repr(found)
    with pytest.raises(ValueError, match="feature names"):
        model.contributions(frame[["b", "a", "c", "d", "e"]])


def test_each_score_of_ranks_has_contributions():
    model = fitted(rc.MulticlassPerceptron(random_state=0))
    scores = np.column_stack([model.contributions(X, output=r).scores() for r in model.classes_])
    assert model.classes_[scores.argmax(axis=1)].tolist() == model.predict(X).tolist()
    close(scores - scores[:, :1], X @ (model.coef_ - model.coef_[0]).T + scores_at_zero(model))
    cusum = fitted(rc.CuSumRank(random_state=0))
    cumulative = [cusum.contributions(X, X[:9], output=r).scores() for r in cusum.classes_]
    assert np.array_equal(np.argmax(cumulative, axis=0), cusum.predict(X))
    close(cumulative[-1], cusum.project(X))


def scores_at_zero(model):
    zeros = np.zeros((1, X.shape[1]))
    bases = np.array([model.contributions(zeros, output=r).base for r in model.classes_])
    return bases - bases[0]


def refusals():
    many = rc.PairwisePerceptron("committee", combine="rank", max_iter=1, random_state=0)
    return [
        (rc.VotedPRank(), {}, TypeError, "VotedPRank votes.*permutation_importance"),
        (rc.OAPBagging(n_estimators=3), {}, TypeError, "OAPBagging votes"),
        (rc.KernelPRank(), {}, TypeError, "kernel='rbf'.*support vectors.*kernel='linear'"),
        (rc.RankSVM(kernel="poly"), {}, TypeError, "RankSVM has kernel='poly'"),
        (many, {}, TypeError, "combine='rank' scores depend on all documents of a query"),
        (rc.MulticlassPerceptron(), {}, ValueError, "requires output="),
        (rc.MulticlassPerceptron(), {"output": 9}, ValueError, "labels 0, 1, 2, 3; got 9"),
        (rc.PRank(), {"output": 1}, ValueError, "one score per row: output must be None"),
        (rc.RankBoost(3), {"output": 1}, ValueError, "one score per row: output must be None"),
        (rc.PRank(), {"background": X[:, :2]}, ValueError, "expecting 5 features"),
        (rc.PRank(), {"background": HOLES}, ValueError, "NaN"),
    ]


@pytest.mark.parametrize(("model", "more", "error", "message"), refusals(), ids=str)
def test_rejections_have_a_remedy(model, more, error, message):
    with pytest.raises(error, match=message):
        fitted(model).contributions(X, **more)


def test_unfitted_and_overflowing_models_are_rejected():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        rc.PRank().contributions(X)
    model = fitted(rc.PRank(random_state=0))
    huge = np.zeros((3, 5))
    huge[1] = 1e308
    for rows in (huge, sp.csr_array(huge)):
        with pytest.raises(ValueError, match="score of row 1 of X overflowed"):
            model.contributions(rows)


def test_matrices_without_stored_values_are_accepted():
    empty = sp.csr_array((3, 5))
    for model in (*LINEAR[:3], *BOOSTED):
        found = fitted(model).contributions(empty)
        assert found.values.nnz == 0
        close(found.scores(), score_of(model)(empty))
        if hasattr(model, "staged_predict"):
            close(list(model.staged_predict(empty))[-1], model.predict(empty))


def tree_arrays(trees):
    """Arrays for shap, which takes trees of any library as these."""
    found = []
    for tree in trees:
        n = tree.features.size
        total = 2 * n + 1
        left, right = np.full(total, -1), np.full(total, -1)
        feature, threshold, value = np.full(total, -2), np.zeros(total), np.zeros((total, 1))

        def place(child, n=n):
            return child if child >= 0 else n + ~child

        for node in range(n):
            left[node], right[node] = place(tree.children[node, 0]), place(tree.children[node, 1])
            feature[node], threshold[node] = tree.features[node], tree.thresholds[node]
        value[n:, 0] = tree.values
        found.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": left.copy(),
                "features": feature,
                "thresholds": threshold,
                "values": value,
                "node_sample_weight": np.ones(total),
            }
        )
    return {"trees": found}


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("shap")


@pytest.mark.filterwarnings("ignore")
def test_contributions_of_trees_equal_shap(shap):
    model = fitted(rc.RankBoost(20, max_leaf_nodes=8))
    explainer = shap.TreeExplainer(
        tree_arrays(model._state.model.trees), X[:50], feature_perturbation="interventional"
    )
    found = model.contributions(X, X[:50])
    # shap adds up the values of float32 thresholds: these have one decimal, as X has.
    np.testing.assert_allclose(found.values, explainer.shap_values(X), rtol=0, atol=1e-6)
    assert found.base == pytest.approx(float(np.ravel(explainer.expected_value)[0]), abs=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [rc.PRank(random_state=0), rc.RankSVM()], ids=name)
def test_contributions_of_weights_equal_shap(shap, model):
    fitted(model)
    masker = shap.maskers.Independent(X[:30], max_samples=30)
    explainer = shap.LinearExplainer((model.coef_, 0.0), masker)
    found = model.contributions(X, X[:30])
    close(found.values, explainer.shap_values(X))
    close(found.base, explainer.expected_value)


@pytest.mark.filterwarnings("ignore")
def test_contributions_of_stumps_equal_shap(shap):
    model = fitted(rc.RankBoost(30))
    stumps = model.estimators_
    trees = [
        Tree(
            stumps["feature"][[i]],
            stumps["threshold"][[i]],
            stumps["missing"][[i]],
            np.array([[-1, -2]], np.int32),
            np.zeros(1),
            np.array([0.0, stumps["alpha"][i]]),
            np.zeros(2, np.int64),
            np.empty(0, np.uint32),
        )
        for i in range(len(stumps))
        if np.isfinite(stumps["threshold"][i])  # others fire for every present value
    ]
    explainer = shap.TreeExplainer(
        tree_arrays(trees), X[:50], feature_perturbation="interventional"
    )
    found = model.contributions(X, X[:50]).values
    np.testing.assert_allclose(found, explainer.shap_values(X), rtol=0, atol=1e-6)


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4))
def test_contributions_of_random_trees_equal_enumeration(seed, n_nodes, n_features):
    """Trees of any shape, one feature on a way several times."""
    rng = np.random.default_rng(seed)
    children = np.full((n_nodes, 2), 99, dtype=np.int32)
    free = [(0, 0), (0, 1)]
    for node in range(1, n_nodes):
        parent, side = free.pop(rng.integers(len(free)))
        children[parent, side] = node
        free += [(node, 0), (node, 1)]
    for leaf, (parent, side) in enumerate(free):
        children[parent, side] = ~leaf
    columns = rng.integers(0, n_features, n_nodes).astype(np.int32)
    thresholds, values = rng.integers(-2, 3, n_nodes) / 1.0, rng.normal(size=n_nodes + 1)

    def directions(rows):
        return np.ascontiguousarray(rows[:, columns] > thresholds).astype(np.uint8, order="C")

    def score(rows):
        found = []
        for way in directions(rows):
            node = 0
            while node >= 0:
                node = children[node, way[node]]
            found.append(values[~node])
        return np.array(found)

    rows, others = (rng.integers(-3, 4, (3, n_features)) / 1.0 for _ in range(2))
    out = np.empty((3, n_features))
    offsets = np.array([0, n_nodes])
    kernels.interventional(
        directions(rows), directions(others), offsets, columns, children, values, out
    )
    for row, found in zip(rows, out, strict=True):
        np.testing.assert_allclose(found / 3, shapley_values(score, row, others), atol=1e-12)


def test_kernels_reject_mismatched_arrays():
    one = np.zeros((1, 1), dtype=np.uint8)
    tree = {
        "offsets": np.array([0, 1]),
        "columns": np.zeros(1, dtype=np.int32),
        "children": np.array([[-1, -2]], dtype=np.int32),
        "values": np.array([0.0, 1.0]),
        "out": np.zeros((1, 1)),
    }
    kernels.interventional(one, one, **tree)
    wrong = {
        "offsets": [np.array([0, 2]), np.array([1, 1]), np.array([0, 5, 1]), np.zeros(0, np.int64)],
        "columns": [np.ones(1, dtype=np.int32), -np.ones(1, dtype=np.int32)],
        "children": [
            np.array([[0, -1]], np.int32),
            np.array([[1, -1]], np.int32),
            np.array([[-1, -3]], np.int32),
        ],
        "values": [np.zeros(1)],
        "out": [np.zeros((2, 1)), np.zeros((1, 0))],
    }
    for key, bad in wrong.items():
        for one_bad in bad:
            with pytest.raises(ValueError, match="are inconsistent|do not form trees"):
                kernels.interventional(one, one, **(tree | {key: one_bad}))
    two_ways = np.array([[1, 1], [-1, -2]], dtype=np.int32)
    with pytest.raises(ValueError, match="do not form trees"):
        kernels.interventional(
            np.zeros((1, 2), np.uint8),
            np.zeros((1, 2), np.uint8),
            np.array([0, 2]),
            np.zeros(2, np.int32),
            two_ways,
            np.zeros(3),
            np.zeros((1, 1)),
        )
    model = fitted(rc.RankBoost(3))
    rows, arrays = model._more_rows(X), model._spec().scoring.arrays
    names = ("offsets", "thresholds", "values", "missing", "at_zero")
    parts = [arrays[name] for name in names]
    with pytest.raises(ValueError, match="are inconsistent"):
        kernels.stumps(rows, *parts, arrays["at_zero"], np.empty(3))
    with pytest.raises(ValueError, match="are inconsistent"):
        kernels.stumps(rows, *parts, np.zeros(2), np.empty(rows.n_values))
