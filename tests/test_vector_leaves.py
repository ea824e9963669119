"""OrdinalBoost with a value for each task in a leaf: against plain NumPy, and its draws."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

import rankcore as rc
from rankcore._core.threads import Threads
from rankcore._ext import ordinal_loss
from rankcore.boosting import _ordinal_rounds, _vector_leaves
from rankcore.boosting._vector_leaves import LeafSums, TableRows, monotone_steps, newton_steps
from reference import ordinal_boosting as plain
from test_ordinal_boost import data, same_trees, small, trees_of


def differentiate_along(direction, table, ranks, weights, n_jobs=1):
    with Threads(n_jobs) as threads:
        return _vector_leaves.differentiate_along(
            direction, TableRows(table, ranks, weights), threads
        )


def sum_by_leaf(leaf_of, taken, n_leaves, table, ranks, weights, n_jobs=1):
    rows = TableRows(table, ranks, weights)
    with Threads(n_jobs) as threads:
        return _vector_leaves.sum_by_leaf(leaf_of, taken, n_leaves, rows, threads)


def drawn_rows(seed, k=5, n=60):
    rng = np.random.default_rng(seed)
    scores, biases = rng.normal(size=(k - 1, n)), rng.normal(size=k - 1)
    ranks, weights = rng.integers(0, k, size=n), rng.random(n) + 0.1
    table = np.ascontiguousarray(plain.probabilities(scores, biases, "adjacent"))
    return rng, scores, biases, ranks.astype(np.int32), weights, table


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("l2", [0.0, 1.0, 7.5])
def test_values_are_newton_steps_of_the_whole_leaf(k, l2):
    rng, scores, biases, ranks, weights, table = drawn_rows(k, k)
    leaf_of = rng.integers(0, 4, size=ranks.size).astype(np.int32)
    expected = plain.newton_values(leaf_of, scores, biases, ranks, weights, l2)
    found = newton_steps(sum_by_leaf(leaf_of, None, 4, table, ranks, weights), l2).T
    # The ridge is 1e-9, of hessians of about 1.
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    taken = (np.arange(ranks.size) % 2 == 0).astype(np.uint8)
    half = np.flatnonzero(taken)
    expected = plain.newton_values(
        leaf_of[half], scores[:, half], biases, ranks[half], weights[half], l2
    )
    found = newton_steps(sum_by_leaf(leaf_of, taken, 4, table, ranks, weights), l2).T
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("masked", [False, True])
def test_values_of_many_tasks_are_newton_steps_of_the_whole_leaf(masked, monkeypatch):
    rng, scores, biases, ranks, weights, table = drawn_rows(5, 40, 200)
    monkeypatch.setattr(_vector_leaves, "PRODUCT_ROWS", 16)  # several products for each leaf
    leaf_of = rng.integers(0, 4, size=ranks.size).astype(np.int32)
    taken = (np.arange(ranks.size) % 2 == 0).astype(np.uint8) if masked else None
    rows = np.flatnonzero(taken) if masked else np.arange(ranks.size)
    expected = plain.newton_values(
        leaf_of[rows], scores[:, rows], biases, ranks[rows], weights[rows], 1.0
    )
    found = newton_steps(sum_by_leaf(leaf_of, taken, 4, table, ranks, weights), 1.0).T
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_steps_across_a_node_are_bounded_by_the_mean_of_its_children():
    gradients, hessians = np.array([[2.0], [-2.0], [8.0]]), np.ones((3, 1, 1))
    children = np.array([[1, ~2], [~0, ~1]], dtype=np.int32)  # ((leaf 0, leaf 1), leaf 2)

    def steps(*signs):
        of_nodes = np.array(signs, dtype=np.int8)
        return monotone_steps(LeafSums(gradients, hessians), 1.0, children, of_nodes).ravel()

    # Steps of leaves are 1, -1 and 4; node 1 has 0. The ridge is 1e-9.
    np.testing.assert_allclose(steps(0, 0), [1, -1, 4], atol=1e-8)
    np.testing.assert_allclose(steps(0, 1), [0, 0, 4], atol=1e-8)
    np.testing.assert_allclose(steps(0, -1), [1, -1, 4], atol=1e-8)
    np.testing.assert_allclose(steps(1, 0), [1, -1, 4], atol=1e-8)
    np.testing.assert_allclose(steps(-1, 0), [2, 2, 2], atol=1e-8)


def test_slopes_along_a_direction_are_derivatives_of_the_loss():
    rng, scores, biases, ranks, weights, table = drawn_rows(1)
    direction, h = rng.normal(size=4), 1e-4
    gradients, hessians = differentiate_along(direction, table, ranks, weights)
    for row in range(ranks.size):
        of = [
            plain.loss(
                scores[:, [row]] + s * h * direction[:, None],
                biases,
                "adjacent",
                ranks[[row]],
                weights[[row]],
            )
            for s in (1, 0, -1)
        ]
        # Central differences: the third and fourth derivatives times h**2, and rounding.
        assert gradients[row] == pytest.approx((of[2] - of[0]) / (2 * h), abs=1e-6)
        assert hessians[row] == pytest.approx((of[0] - 2 * of[1] + of[2]) / h**2, abs=1e-5)


def test_trees_of_a_round_have_one_structure_and_newton_values():
    X, y = data()
    model = small("vector", n_estimators=1, learning_rate=1.0).fit(X, y)
    trees = trees_of(model)
    for tree in trees[1:]:
        for name in ("features", "thresholds", "sides", "children"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(trees[0], name))
    scores = model._state.model.score(model._more_rows(X))
    _, leaf_of = np.unique(scores, axis=1, return_inverse=True)
    assert leaf_of.max() + 1 == trees[0].values.size
    at_zero = np.zeros_like(scores)
    first = np.log(np.bincount(y)[:-1]) - np.log(np.bincount(y)[1:])
    expected = plain.newton_values(leaf_of.ravel(), at_zero, first, y, np.ones(len(y)), 1.0)
    np.testing.assert_allclose(scores, expected[:, leaf_of.ravel()], rtol=1e-6)


@pytest.mark.parametrize("k", [4, 40])
def test_blocks_of_rows_are_summed_in_order_by_any_number_of_threads(k, monkeypatch):
    rng, _, _, ranks, weights, table = drawn_rows(2, k, 500)
    direction, leaf_of = rng.normal(size=k - 1), rng.integers(0, 7, size=500).astype(np.int32)
    whole = sum_by_leaf(leaf_of, None, 7, table, ranks, weights)
    gradients = differentiate_along(direction, table, ranks, weights)
    monkeypatch.setattr(_vector_leaves, "BLOCK_ROWS", 64)
    one, two = (sum_by_leaf(leaf_of, None, 7, table, ranks, weights, n_jobs=n) for n in (1, 2))
    for name in ("gradients", "hessians"):
        found, again, other = (getattr(sums, name) for sums in (one, two, whole))
        np.testing.assert_array_equal(found, again)
        np.testing.assert_allclose(found, other, rtol=1e-12, atol=1e-12)  # sums in another order
    for found, other in zip(
        differentiate_along(direction, table, ranks, weights, n_jobs=2), gradients, strict=True
    ):
        np.testing.assert_array_equal(found, other)


def test_mismatched_arrays_are_rejected():
    _, _, _, ranks, weights, table = drawn_rows(3)
    sums = np.zeros((2, 4)), np.zeros((2, 4, 4))
    places, out = np.zeros(5), np.empty((2, 60))
    leaf_of = np.zeros(60, dtype=np.int32)
    scores = np.zeros((4, 60))
    for odd in ((np.zeros((3, 2)), leaf_of, 0, 60), (np.zeros((4, 2)), leaf_of[1:], 0, 60),
                (np.zeros((4, 2)), leaf_of, 0, 61)):  # fmt: skip
        with pytest.raises(ValueError, match="values do not match the scores"):
            ordinal_loss.add_values(scores, *odd)
    with pytest.raises(ValueError, match="row 0 has the leaf 2 of 2"):
        ordinal_loss.add_values(scores, np.zeros((4, 2)), leaf_of + 2, 0, 60)
    with pytest.raises(ValueError, match="require an array"):
        ordinal_loss.probabilities(scores, np.zeros(4), False, False, 0, 60, table.copy(), ranks)
    with pytest.raises(ValueError, match="row 0 has the leaf 2 of 2"):
        ordinal_loss.sum_by_leaf(table, ranks, weights, leaf_of + 2, None, 0, 60, *sums)
    odd = np.where(np.arange(60) == 3, 9, ranks).astype(np.int32)
    with pytest.raises(ValueError, match="row 3 has the rank 9 of 5"):
        ordinal_loss.sum_by_leaf(table, odd, weights, leaf_of, None, 0, 60, *sums)
    for start, stop in [(-1, 60), (0, 61), (5, 4)]:
        with pytest.raises(ValueError, match="do not match the probabilities"):
            ordinal_loss.differentiate_along(table, ranks, weights, places, start, stop, *out)
    with pytest.raises(ValueError, match="do not match the probabilities"):
        ordinal_loss.differentiate_along(table, ranks, weights, places[:4], 0, 60, *out)


def test_model_depends_on_random_state_and_not_on_threads():
    X, y = data()
    first = small("vector", random_state=1).fit(X, y)
    same_trees(first, small("vector", random_state=1, n_jobs=2).fit(X, y))
    same_trees(small("vector").fit(X, y), small("vector").fit(X, y))
    other = small("vector", random_state=2).fit(X, y)
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("params", [{}, {"subsample": 0.6, "max_features": 0.5}])
def test_a_warm_start_continues_the_fit(params):
    X, y = data()
    whole = small("vector", random_state=3, **params).fit(X, y)
    parts = small("vector", random_state=3, warm_start=True, n_estimators=3, **params).fit(X, y)
    same_trees(whole, parts.set_params(n_estimators=8).fit(X, y))


def test_weights_equal_repeated_rows():
    X, y = data()
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    settings = {"min_samples_leaf": 1, "max_bins": None}
    one = small("vector", **settings).fit(X, y, sample_weight=times)
    other = small("vector", **settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    # Sums in another order.
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=1e-9)


def test_classes_with_no_or_one_row_are_learned():
    X, y = data(k=5)
    X, y = X[y != 2], y[y != 2]
    table = (
        small("vector", l2_leaf=0.0, n_estimators=40).fit(X, y, classes=range(5)).predict_proba(X)
    )
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-14)
    assert (table[:, 2] < 0.05).all()
    y = np.where(np.arange(len(y)) == 0, 2, y)
    assert np.isfinite(small("vector").fit(X, y).predict_proba(X)).all()


def test_a_class_that_a_fold_lacks_is_improbable():
    X, y = data(k=4)
    y[:5] = 4  # all in the first fold
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        table = cross_val_predict(small("vector"), X, y, cv=KFold(4), method="predict_proba")
    assert table.shape == (len(y), 5)
    assert (table[: len(y) // 4, 4] == 0).all()
    scores = cross_val_score(small("vector"), X, y, cv=KFold(4), error_score="raise")
    first = small("vector").fit(X[75:], y[75:])
    assert scores[0] == pytest.approx(-np.abs(first.predict(X[:75]) - y[:75]).mean(), rel=1e-12)
    named = {"classes": range(5)}
    assert np.isfinite(cross_val_score(small("vector"), X, y, cv=KFold(4), params=named)).all()


def test_histograms_may_exceed_32_bit_indices():
    n, d = 2**16, 2**15 + 1
    few = sp.random(n, 3, 0.05, format="csr", random_state=0)
    y = np.digitize(few[:, [0]].toarray().ravel() + few[:, [2]].toarray().ravel(), [0.1, 0.6])
    at = np.array([0, 2**14, d - 1])
    many = sp.csr_array((few.data, at[few.indices], few.indptr), shape=(n, d))
    assert n * d > 2**31
    params = {"n_estimators": 2, "min_samples_leaf": 20}
    one, other = (small("vector", **params).fit(X, y) for X in (many, sp.csr_array(few)))
    np.testing.assert_array_equal(one.predict_proba(many), other.predict_proba(sp.csr_array(few)))


def test_rows_whose_slopes_32_bits_cannot_sum_are_rejected(monkeypatch):
    assert _ordinal_rounds.MAX_ROWS < 2**30  # the kernel's limit
    X, y = data()
    monkeypatch.setattr(_ordinal_rounds, "MAX_ROWS", len(y) - 1)
    with pytest.raises(ValueError, match=f"at most {len(y) - 1} rows; got {len(y)}"):
        small("vector").fit(X, y)


def test_crossing_cumulative_logits_are_rejected():
    X, y = data()
    with pytest.raises(ValueError, match="got tasks='vector', whose scores may cross"):
        small("vector", "cumulative").fit(X, y)


def test_vector_trees_beat_the_frequencies_of_ranks():
    X, y = data(n=900, k=6)
    model = rc.OrdinalBoost(40, tasks="vector").fit(X[:600], y[:600])
    rps = rc.metrics.ranked_probability_score
    shares = np.tile(np.bincount(y[:600]) / 600, (300, 1))
    assert rps(y[600:], model.predict_proba(X[600:])) < 0.7 * rps(y[600:], shares)
