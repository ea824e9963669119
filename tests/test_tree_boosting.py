"""RankBoost with trees: against every pair, what theory says, and what stumps have too."""

import ctypes
import pickle
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext import trees as kernels
from rankcore.boosting._grower import GrowthParams
from rankcore.boosting._pair_weights import MAX_STEP
from rankcore.datasets import make_letor
from reference import boosting as plain
from reference import trees as plain_trees
from strategies import examples

pytestmark = pytest.mark.kernel


def problem(seed, missing=True):
    """Rows with ties, zeros and missing values, graded labels, queries, perhaps weights."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(4, 40), rng.integers(1, 6)
    X = rng.integers(-3, 4, size=(n, d)) * (rng.random((n, d)) < rng.choice([0.3, 1.0]))
    X = X.astype(rng.choice([np.float32, np.float64]))
    if missing and rng.random() < 0.5:
        X[rng.random((n, d)) < 0.2] = np.nan
    y = rng.integers(0, rng.choice([2, 3, 9]), size=n).astype(float)
    y[:2] = 0, 1
    qid = rng.integers(0, rng.choice([1, 2, 4]), size=n)
    qid[:2] = 0
    weight = rng.integers(1, 4, size=n) if rng.random() < 0.5 else None
    return X, y, qid, weight


def ranking_data(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1) * (rng.random((n, 4)) < 0.8)
    X[rng.random((n, 4)) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    z = Z[:, 0] * np.sign(Z[:, 1] + 0.1) + 0.5 * rng.normal(size=n)
    return X, np.digitize(z, [-0.5, 0.5]), np.repeat(np.arange(n // 15), 15)


def as_nodes(tree):
    """Return a tree as the plain form has it."""
    columns = (tree.features, tree.thresholds, tree.sides, *tree.children.T)
    return [list(node) for node in zip(*(column.tolist() for column in columns), strict=True)]


def follow(model, X, pairs, D, rate, line_search, rules):
    """Check each round on the list of pairs."""
    history, scores, first, left = model.history_, np.zeros(len(X)), D, 1.0
    for t, tree in enumerate(model._state.model.trees):
        won, lost = np.zeros((2, len(X)))
        np.add.at(won, pairs[:, 0], D)
        np.add.at(lost, pairs[:, 1], D)
        nodes = as_nodes(tree)
        best = plain_trees.grow(X, won - lost, won + lost, rules)
        assert tree.gains[0] == pytest.approx(best[1][0], abs=1e-6)  # weights are rounded to 2^-31
        leaf_of = np.array([plain_trees.find_leaf(nodes, x) for x in X])
        n = len(nodes) + 1
        w, m = (np.bincount(leaf_of, mass, n) for mass in (won, lost))
        values = (w - m) / (w + m + rules.l2_leaf)
        if line_search:
            width = np.ptp(values)
            values *= plain_trees.line_search(D, pairs, values[leaf_of], MAX_STEP / width)
        values *= rate
        np.testing.assert_allclose(tree.values, values, rtol=1e-6, atol=1e-8)
        h = tree.values[leaf_of]
        D, Z = plain.reweigh(D, pairs, h, 1.0)
        scores += h
        left *= Z
        assert history["normalizer"][t] == pytest.approx(Z, rel=1e-8)
        assert history["bound"][t] == pytest.approx(left, rel=1e-8)
        assert history["alpha"][t] == pytest.approx(np.ptp(tree.values))
        apart = (h[pairs[:, 0]] - h[pairs[:, 1]]) / np.ptp(h)
        edge = float((D * np.exp(h[pairs[:, 0]] - h[pairs[:, 1]]) * Z) @ apart)
        assert history["edge"][t] == pytest.approx(edge, abs=1e-8)
        assert plain.training_error(scores, pairs, first) <= left + 1e-9
    return scores


@settings(max_examples=examples(120), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.booleans())
def test_rounds_equal_the_plain_form_on_every_pair(seed, sparse, balance, line_search):
    X, y, qid, weight = problem(seed)
    pairs, D = plain.label_pairs(y, qid, balance, weight)
    rules = GrowthParams(4, 3, 2, 0.0, 0.01)
    model = rc.RankBoost(
        5,
        max_leaf_nodes=4,
        max_depth=3,
        min_samples_leaf=2,
        l2_leaf=0.01,
        learning_rate=0.5,
        leaf_step="search" if line_search else "newton",
        balance="query" if balance else None,
    )
    docs = np.unique(pairs)  # rows of no pair are not looked at
    X, y, qid, place = X[docs], y[docs], qid[docs], np.searchsorted(docs, pairs)
    weight = None if weight is None else weight[docs]
    given_X = sp.csr_array(X) if sparse else X
    model.fit(given_X, y, qid=qid, sample_weight=weight)
    scores = follow(model, X, place, D, 0.5, line_search, rules)
    np.testing.assert_allclose(model.predict(given_X), scores, rtol=1e-12, atol=1e-12)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_listed_pairs_and_two_labels_equal_the_plain_form(seed, listed):
    X, y, qid, weight = problem(seed)
    if listed:
        pairs, D = plain.label_pairs(y, qid, False, weight)
        model = rc.RankBoost(4, weak="tree", learning_rate=1, min_samples_leaf=1, balance=None)
        given_pairs = {"pairs": pairs, "pairs_weight": D}
    else:
        pairs, D = plain.label_pairs(y >= 1, qid, True, weight)
        model = rc.BipartiteRankBoost(4, weak="tree", learning_rate=1, min_samples_leaf=1, rel=1)
        given_pairs = {"y": y, "sample_weight": weight}
    docs = np.unique(pairs)
    if listed:
        model.fit(X, qid=qid, **given_pairs)
    else:
        model.fit(X, qid=qid, **given_pairs)
    rows = X[docs]
    scores = follow(model, rows, np.searchsorted(docs, pairs), D, 1.0, True, GrowthParams(2))
    np.testing.assert_allclose(model.predict(rows), scores, rtol=1e-12, atol=1e-12)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.1, 1.0]),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from([2, 8]),
)
@example(seed=79, rate=1.0, share=0.5, leaves=8)  # a step of 700 along values that are near 1
def test_training_error_stays_below_the_certificate(seed, rate, share, leaves):
    X, y, qid, weight = problem(seed)
    pairs, D = plain.label_pairs(y, qid, True, weight)
    model = rc.RankBoost(
        15,
        weak="tree",
        max_leaf_nodes=leaves,
        min_samples_leaf=1,
        learning_rate=rate,
        subsample=share,
        max_features=share,
        random_state=0,
    )
    model.fit(X, y, qid=qid, sample_weight=weight)
    history = model.history_
    for scores, bound in zip(model.staged_predict(X), history["bound"], strict=True):
        assert plain.training_error(scores, pairs, D) <= bound + 1e-9
    assert all(b <= c + 1e-9 for b, c in zip(history["bound"], history["cap"], strict=True))
    # The line search leaves no more weight than there was, whatever was drawn.
    assert (np.array(history["normalizer"]) <= 1 + 1e-12).all()
    # Normalised margins, as the bounds of rankcore.bounds take them.
    if history["alpha"]:
        margins = scores[pairs[:, 0]] - scores[pairs[:, 1]]
        assert np.abs(margins).max() <= sum(history["alpha"]) * (1 + 1e-9)


def test_two_leaves_with_a_line_search_equal_the_discrete_step():
    X, y, qid = ranking_data(n=60)
    X = np.nan_to_num(X[:, :1])
    options = {"balance": None, "select": "normalizer", "step": "discrete", "smoothing": 0}
    stump = rc.RankBoost(1, **options).fit(X, y, qid=qid)
    tree = rc.RankBoost(1, weak="tree", learning_rate=1, min_samples_leaf=1, balance=None)
    tree.fit(X, y, qid=qid)
    if tree.estimators_["threshold"] == stump.estimators_["threshold"]:
        assert tree.history_["bound"] == pytest.approx(stump.history_["bound"])
    assert tree.history_["bound"][0] >= stump.history_["bound"][0] - 1e-12


@pytest.mark.parametrize("kind", ["dense32", "dense64", "sparse"])
@pytest.mark.parametrize("missing", ["learn", "zero"])
def test_scores_are_sums_of_leaves(kind, missing):
    X, y, qid = ranking_data()
    X = X.astype(np.float32 if kind == "dense32" else np.float64)
    given_X = sp.csr_array(X) if kind == "sparse" else X
    model = rc.RankBoost(7, max_leaf_nodes=9, min_samples_leaf=3, missing=missing)
    model.fit(given_X, y, qid=qid)
    expected = np.zeros(len(X))
    for tree in model._state.model.trees:
        nodes = as_nodes(tree)
        expected += [tree.values[plain_trees.find_leaf(nodes, x, missing == "zero")] for x in X]
    np.testing.assert_array_equal(model.predict(given_X), expected)
    *_, last = model.staged_predict(given_X)
    np.testing.assert_array_equal(last, expected)


@pytest.mark.parametrize("missing", ["learn", "zero"])
def test_sparse_rows_of_very_many_columns_are_scored(missing):
    X, y, qid = ranking_data()
    narrow = sp.csr_array(np.nan_to_num(X))
    wide = sp.csr_array((narrow.data, narrow.indices * 2**16, narrow.indptr), (120, 2**18))
    fitted = [
        rc.RankBoost(3, max_leaf_nodes=5, min_samples_leaf=3, missing=missing).fit(Z, y, qid=qid)
        for Z in (narrow, wide)
    ]
    np.testing.assert_array_equal(fitted[0].predict(narrow), fitted[1].predict(wide))


C_SOURCE = """
#include <rankcore.h>
void scores(const rc_trees *model, const rc_rows *X, double *out)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        out[i] = rc_trees_score(model, rc_rows_get(X, i));
}
"""


def test_c_scores_equal_those_of_predict(tmp_path):
    import subprocess

    X, y, qid = ranking_data()
    (tmp_path / "trees.c").write_text(C_SOURCE)
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared"]
    command += ["-fPIC", f"-I{rc.get_include()}", tmp_path / "trees.c", "-o", tmp_path / "trees.so"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(tmp_path / "trees.so"))

    def address(array):
        return ctypes.c_void_p(None if array is None else array.ctypes.data)

    for missing in ("learn", "zero"):
        for matrix in (X, X.astype(np.float32), sp.csr_array(X)):
            model = rc.RankBoost(5, max_leaf_nodes=6, min_samples_leaf=3, missing=missing)
            model.fit(matrix, y, qid=qid)
            packed = model._state.model.packed()

            class Trees(ctypes.Structure):
                _fields_ = [(name, ctypes.c_void_p) for name in "ofcmtv"]
                _fields_ += [("n", ctypes.c_int64), ("d", ctypes.c_int64), ("z", ctypes.c_int32)]
                _fields_ += [("s", ctypes.c_void_p), ("w", ctypes.c_void_p)]

            class Rows(ctypes.Structure):
                _fields_ = [(name, ctypes.c_void_p) for name in ("data", "indices", "indptr")]
                _fields_ += [(name, ctypes.c_int64) for name in ("stride", "n", "d")]
                _fields_ += [("dtype", ctypes.c_int32)]

            n_trees = len(model._state.model)
            trees = Trees(*map(address, packed[:6]), n_trees, 4, missing == "zero", None, None)
            if sp.issparse(matrix):
                arrays = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(int)
            else:
                arrays = matrix, None, None
            single = int(matrix.dtype == np.float32)
            rows = Rows(*map(address, arrays), 4, len(y), 4, single)
            out = np.empty(len(y))
            library.scores(ctypes.byref(trees), ctypes.byref(rows), address(out))
            np.testing.assert_array_equal(out, model.predict(matrix))


MODELS = [
    rc.RankBoost(12, max_leaf_nodes=6, learning_rate=0.3, min_samples_leaf=3),
    rc.RankBoost(12, max_leaf_nodes=None, max_depth=2, missing="zero", min_samples_leaf=3),
    rc.RankBoost(
        12, weak="tree", leaf_step="newton", subsample=0.6, max_features=0.5, random_state=3
    ),
    rc.BipartiteRankBoost(12, max_leaf_nodes=4, max_bins=None, min_samples_leaf=3),
]


@pytest.mark.parametrize("learner", MODELS, ids=range(len(MODELS)))
def test_loaded_model_equals_the_saved_one(tmp_path, learner):
    X, y, qid = ranking_data()
    model = clone(learner).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    for one in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(one.estimators_, model.estimators_)
        np.testing.assert_array_equal(one.predict(X), model.predict(X))


@pytest.mark.parametrize("learner", MODELS, ids=range(len(MODELS)))
def test_warm_start_equals_one_long_fit(learner):
    X, y, qid = ranking_data()
    whole = clone(learner).fit(X, y, qid=qid)
    parts = clone(learner).set_params(n_estimators=5, warm_start=True).fit(X, y, qid=qid)
    parts.set_params(n_estimators=12).fit(X, y, qid=qid)
    assert parts.n_iter_ == whole.n_iter_
    # Weights are computed anew from scores: rounding.
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(parts.estimators_["feature"], whole.estimators_["feature"])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_files_are_the_same_for_every_number_of_threads(tmp_path, sparse):
    X, y, qid = ranking_data(n=600)
    X = np.hstack([X, np.round(np.random.default_rng(0).normal(size=(600, 30)), 2)])
    X = sp.csr_array(np.nan_to_num(X)) if sparse else X
    files = set()
    for n_jobs in (1, 2, 4):
        model = rc.RankBoost(6, max_leaf_nodes=12, min_samples_leaf=5, n_jobs=n_jobs)
        model.fit(X, y, qid=qid)
        rc.save(model.set_params(n_jobs=None), tmp_path / "model")
        files.add((tmp_path / "model").read_bytes())
    assert len(files) == 1


def test_early_stopping_keeps_the_best_round_and_draws_repeat():
    X, y, qid = ranking_data(n=300)
    train, test = qid < 14, qid >= 14
    held = {"eval_set": (X[test], y[test]), "eval_qid": qid[test]}
    model = rc.RankBoost(60, max_leaf_nodes=8, min_samples_leaf=3, early_stopping_rounds=4)
    model.fit(X[train], y[train], qid=qid[train], **held)
    assert len(model._state.model) == model.best_iteration_ <= model.n_iter_ - 4
    values = model.history_["valid_ndcg@10"]
    assert (
        values[model.best_iteration_ - 1]
        == max(values)
        == model.score(X[test], y[test], qid=qid[test])
    )
    seen = []
    model = rc.RankBoost(60, max_leaf_nodes=8).fit(
        X, y, qid=qid, callbacks=[lambda now: seen.append(now.model.n_iter_) or len(seen) == 3]
    )
    assert seen == [1, 2, 3]
    assert model.n_iter_ == 3
    drawn = rc.RankBoost(5, max_leaf_nodes=8, subsample=0.5, max_features=0.5, random_state=1)
    first, again = (clone(drawn).fit(X, y, qid=qid).predict(X) for _ in range(2))
    other = clone(drawn).set_params(random_state=2).fit(X, y, qid=qid).predict(X)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


OF_TREES = [
    rc.RankBoost(6, max_leaf_nodes=6, min_samples_leaf=3),
    rc.BipartiteRankBoost(6, max_leaf_nodes=6, min_samples_leaf=3),
    rc.OrdinalBoost(6, max_leaf_nodes=6, min_samples_leaf=3),
    rc.OrdinalBoost(6, max_leaf_nodes=6, min_samples_leaf=3, tasks="shared"),
]
NAMES_OF_TREES = ["RankBoost", "BipartiteRankBoost", "vector", "shared"]


def labels_for(learner, y):
    return y > 0 if isinstance(learner, rc.BipartiteRankBoost) else y


@pytest.mark.parametrize("learner", OF_TREES, ids=NAMES_OF_TREES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_rounds_continue_if_no_drawn_feature_splits_the_root(learner, sparse):
    X, y, qid = ranking_data(n=300)
    wide = np.ones((300, 40))
    wide[:, 17] = np.nan_to_num(X[:, 0])
    X = sp.csr_array(wide) if sparse else wide
    model = clone(learner).set_params(max_features=0.05, random_state=0)
    given = {} if isinstance(learner, rc.OrdinalBoost) else {"qid": qid}
    model.fit(X, labels_for(learner, y), **given)
    assert model.n_iter_ == 6
    np.testing.assert_array_equal(np.flatnonzero(model.feature_importances_), [17])


@pytest.mark.parametrize("learner", OF_TREES, ids=NAMES_OF_TREES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_drawn_features_depend_on_the_seed_only(learner, sparse):
    X, y, qid = ranking_data(n=600)
    X = np.hstack([X, np.round(np.random.default_rng(0).normal(size=(600, 30)), 2)])
    X = sp.csr_array(np.nan_to_num(X)) if sparse else X
    given = {} if isinstance(learner, rc.OrdinalBoost) else {"qid": qid}

    def scores(**params):
        model = clone(learner).set_params(**params).fit(X, labels_for(learner, y), **given)
        return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)

    drawn = [scores(max_features=0.3, random_state=0, n_jobs=n) for n in (1, 2, 4)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])
    assert (drawn[0] != scores(max_features=0.3, random_state=1)).any()
    whole = scores(random_state=0)
    np.testing.assert_array_equal(whole, scores(max_features=1.0, random_state=0))
    assert (drawn[0] != whole).any()


def test_importances_and_contributions_follow_from_the_trees():
    X, y, qid = ranking_data()
    model = rc.RankBoost(10, max_leaf_nodes=5, min_samples_leaf=3).fit(X, y, qid=qid)
    nodes = model.estimators_
    gains = np.bincount(nodes["feature"], nodes["gain"], minlength=4)
    np.testing.assert_allclose(model.feature_importances_, gains / gains.sum())
    with pytest.raises(ValueError, match="no tree combines with others"):
        model.contribution(int(nodes["feature"][0]))
    alone = rc.RankBoost(10, weak="tree", min_samples_leaf=3).fit(X, y, qid=qid)
    scores = np.zeros(len(X))
    for feature in range(4):
        curve = alone.contribution(feature)
        at = np.searchsorted(curve.thresholds, X[:, feature])
        missing = np.isnan(X[:, feature])
        scores += np.where(missing, curve.missing, curve.values[at * ~missing])
    np.testing.assert_allclose(scores, alone.predict(X), rtol=1e-12, atol=1e-12)


def test_monotone_constraints_hold_everywhere():
    X, y, qid = ranking_data(n=300)
    X = np.nan_to_num(X)
    signs = [1, 0, -1, 0]
    model = rc.RankBoost(20, max_leaf_nodes=12, min_samples_leaf=3, monotonic_cst=signs)
    model.fit(X, y, qid=qid)
    free = clone(model).set_params(monotonic_cst=None).fit(X, y, qid=qid)
    grid = np.linspace(-3, 3, 121)
    broken = 0
    for row in X[:50]:
        for feature, sign in enumerate(signs):
            rows = np.tile(row, (grid.size, 1))
            rows[:, feature] = grid
            steps = sign * np.diff(model.predict(rows))
            assert (steps >= -1e-12).all()
            broken += (sign * np.diff(free.predict(rows)) < -1e-12).any()
    assert broken > 0
    named = clone(model).set_params(monotonic_cst={"a": 1, "c": -1})
    pandas = pytest.importorskip("pandas")
    named.fit(pandas.DataFrame(X, columns=list("abcd")), y, qid=qid)
    np.testing.assert_array_equal(named._state.model.score(as_rows(X)), model.predict(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weak": "forest"}, "weak must be one of"),
        ({"weak": "stump", "max_leaf_nodes": 3}, "weak='stump' requires max_leaf_nodes=2"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes must be .*; got 1"),
        ({"max_leaf_nodes": None}, "requires max_depth"),
        (
            {"max_leaf_nodes": None, "max_depth": 99},
            "max_depth must be .*; got 99",
        ),
        ({"max_leaf_nodes": 3, "max_depth": 0}, "max_depth must be .*; got 0"),
        ({"learning_rate": 0}, "learning_rate must be 'auto' or a number in "),
        ({"learning_rate": 1.5}, "learning_rate must be .*; got 1.5"),
        ({"leaf_step": "exact"}, "leaf_step must be one of"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be .*; got 0"),
        ({"min_pair_weight": -1.0}, "min_pair_weight must be .*; got -1"),
        ({"l2_leaf": -1.0}, "l2_leaf must be .*; got -1"),
        ({"subsample": 0.0}, "subsample must be a number in "),
        ({"max_features": 2.0}, "max_features must be .*; got 2"),
        ({"max_features": 0.0}, "max_features must be .*; got 0"),
        ({"monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst requires trees"),
        ({"max_leaf_nodes": 3, "monotonic_cst": [1]}, "monotonic_cst must be -1, 0 or 1"),
        ({"max_leaf_nodes": 3, "monotonic_cst": [2, 0, 0, 0]}, "must be -1, 0 or 1"),
        ({"max_leaf_nodes": 3, "monotonic_cst": {"a": 1}}, "a column not in X"),
        ({"max_leaf_nodes": 3, "select": "normalizer"}, "select is for stumps"),
        ({"max_leaf_nodes": 3, "step": "discrete"}, "step is for stumps"),
        ({"min_samples_leaf": 5}, "min_samples_leaf is for trees; got min_samples_leaf=5"),
        ({"max_depth": 3}, "max_depth is for trees"),
    ],
    ids=str,
)
def test_bad_parameters_are_rejected(parameters, message):
    X, y, qid = ranking_data()
    with pytest.raises(ValueError, match=message):
        rc.RankBoost(3, **parameters).fit(X, y, qid=qid)


def test_warm_start_cannot_mix_stumps_and_trees():
    X, y, qid = ranking_data()
    model = rc.RankBoost(3, warm_start=True).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="requires weak rankers of the same kind"):
        model.set_params(max_leaf_nodes=4, n_estimators=6).fit(X, y, qid=qid)


def test_shrunk_stumps_keep_their_bounds():
    X, y, qid = ranking_data()
    pairs, D = plain.label_pairs(y, qid)
    for step in ("third", "discrete"):
        model = rc.RankBoost(20, step=step, learning_rate=0.3).fit(X, y, qid=qid)
        history = model.history_
        assert all(b <= c + 1e-12 for b, c in zip(history["bound"], history["cap"], strict=True))
        for scores, bound in zip(model.staged_predict(X), history["bound"], strict=True):
            assert plain.training_error(scores, pairs, D) <= bound + 1e-9


def test_only_trees_learn_interactions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    train, test = slice(1000), slice(1000, None)
    aucs = []
    for leaves in (2, 4):
        model = rc.BipartiteRankBoost(30, weak="tree", max_leaf_nodes=leaves)
        model.fit(X[train], y[train])
        aucs.append(rc.metrics.auc_score(y[test], model.predict(X[test])))
    assert aucs[0] < 0.7 < 0.95 < aucs[1]


def damaged(arrays, **changes):
    return {**arrays, **changes}


def test_arrays_that_do_not_form_trees_are_rejected():
    from rankcore.boosting._tree_model import TreeSum

    X, y, qid = ranking_data()
    model = rc.RankBoost(2, max_leaf_nodes=4, min_samples_leaf=3).fit(X, y, qid=qid)
    arrays = model._state.model.to_arrays()
    assert len(TreeSum.from_arrays(arrays, 4, False)) == 2
    children, features = arrays["children"], arrays["features"]
    loop, shared, gone = children.copy(), children.copy(), children.copy()
    loop[1, 0], shared[0], gone[0, 0] = 0, -1, 99
    infinite = arrays["values"] * inf
    for changes, message in [
        ({"children": loop}, "do not form trees"),
        ({"children": shared}, "must have one parent"),
        ({"children": gone}, "do not form trees"),
        ({"features": features + 4}, "do not form trees"),
        ({"features": features - 9}, "do not form trees"),
        ({"sides": arrays["sides"] + np.uint8(2)}, "do not form trees"),
        ({"offsets": arrays["offsets"] + 1}, "do not form trees"),
        ({"offsets": arrays["offsets"][::-1].copy()}, "do not form trees"),
        ({"values": infinite}, "NaN or infinity"),
        ({"values": arrays["values"][1:]}, "array values has shape"),
        (
            {"thresholds": arrays["thresholds"].astype(np.float32)},
            "array thresholds has shape",
        ),
        ({"offsets": arrays["offsets"].astype(np.int32)}, "array offsets has shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            TreeSum.from_arrays(damaged(arrays, **changes), 4, False)
    packed = kernels.Trees(*model._state.model.packed(), 4, False)
    with pytest.raises(ValueError, match="are inconsistent"):
        kernels.add_scores(as_rows(X, nan=True), packed, 0, 3, np.zeros(len(X)))


@pytest.mark.parametrize("leaves", [8, 31])
def test_parity_with_lightgbm_on_the_same_loss(leaves):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = make_letor(150, random_state=1)
    train, test = qid <= 100, qid > 100
    n = int(train.sum())
    ids = qid[train]

    def exponential(scores, data):
        """Gradients and second derivatives of the weight of all pairs, query by query."""
        gradient, hessian = np.zeros((2, n))
        for q in np.unique(ids):
            rows = np.flatnonzero(ids == q)
            s, labels = scores[rows], y[train][rows]
            better = labels[:, None] > labels
            weights = np.exp(s - s[:, None]) * better / max(better.sum(), 1)
            gradient[rows] = weights.sum(axis=0) - weights.sum(axis=1)
            hessian[rows] = weights.sum(axis=0) + weights.sum(axis=1)
        return 1e4 * gradient, 1e4 * hessian

    data = lightgbm.Dataset(X[train], y[train], group=np.bincount(ids)[np.unique(ids)])
    params = {"num_leaves": leaves, "learning_rate": 0.2, "verbose": -1, "num_threads": 1}
    params |= {"objective": exponential, "deterministic": True, "min_sum_hessian_in_leaf": 0}
    peer = lightgbm.train(params, data, 20)
    ours = rc.RankBoost(20, max_leaf_nodes=leaves, learning_rate=0.2, leaf_step="newton")
    ours.fit(X[train], y[train], qid=ids)
    values = [
        rc.metrics.ndcg_score(y[test], model.predict(X[test]), qid=qid[test], k=10, per_query=True)[
            1
        ]
        for model in (ours, peer)
    ]
    difference = values[0] - values[1]
    # Bins, and ties between cuts, differ: the mean over queries does by no more than noise.
    assert abs(difference.mean()) <= 3 * difference.std() / np.sqrt(difference.size)
    assert values[0].mean() > 0.5


@pytest.mark.slow
def test_auto_trees_beat_stumps_where_features_interact():
    X, y, qid = make_letor(1800, 60, random_state=0)
    train, test = qid <= 1400, qid > 1400
    stumps, trees = (
        model.fit(X[train], y[train], qid=qid[train]).score(X[test], y[test], qid=qid[test])
        for model in (rc.RankBoost(), rc.RankBoost(max_leaf_nodes=31))
    )
    assert trees > stumps + 0.05
