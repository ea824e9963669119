"""Features of different deviations, which a pairwise perceptron scales while it learns."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._core.scales import deviations_of, moments_of
from rankcore._ext.column_stats import add_moments, column_moments
from rankcore.datasets import dump_letor, open_rows
from rankcore.ranking.feature_scale import WIDE, feature_scale

WIDTHS = np.array([0.01, 1.0, 300.0, 0.2, 5.0])


def queries(n=30, seed=0):
    """Rows in queries of 8, with a constant feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n, 5)) * WIDTHS + [0, 3, 0, 0, 0]
    y = np.digitize((X / WIDTHS) @ [1, -1, 2, 0, 1] + rng.normal(size=8 * n), [0, 2])
    return np.column_stack([X, np.full(8 * n, 7.0)]), y, np.repeat(np.arange(n), 8)


def by_hand(X):
    """Factors of the features: the power of two nearest to the inverse deviation, by ratio."""
    deviations = np.asarray(X, dtype=np.float64).std(axis=0)
    return np.array([1.0 if one < 1e-9 else 2.0 ** -np.rint(np.log2(one)) for one in deviations])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("variant", ["averaged", "committee", "pocket", "last"])
def test_model_equals_that_of_rows_scaled_by_hand(variant, form, dtype):
    X, y, qid = queries()
    X = X.astype(dtype)
    factors = by_hand(X)
    model = rc.PairwisePerceptron(variant, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scales are no longer worth a warning
        model.fit(form(X), y, qid=qid)
    hand = rc.PairwisePerceptron(variant, max_iter=3, random_state=0, feature_scale=None)
    hand.fit(form((X * factors).astype(dtype)), y, qid=qid)
    assert np.array_equal(model.coef_, hand.coef_ * factors)
    assert np.array_equal(model.committee_.weights, hand.committee_.weights * factors)
    assert model.history_ == hand.history_


@pytest.mark.parametrize("most", [None, 5])
def test_votes_and_criteria_have_weights_of_given_features(most):
    X, y, qid = queries()
    factors = by_hand(X)
    params = {"max_iter": 3, "random_state": 0, "max_hypotheses": most}
    voted = rc.PairwisePerceptron("voted", **params).fit(X, y, qid=qid)
    hand = rc.PairwisePerceptron("voted", feature_scale=None, **params)
    hand.fit(X * factors, y, qid=qid)
    assert np.array_equal(voted.committee_.weights, hand.committee_.weights * factors)
    seen = []
    criterion = {"quality": lambda weights: seen.append(weights) or -abs(weights[0])}
    model = rc.PairwisePerceptron("committee", random_state=0, max_iter=1, **criterion)
    model.fit(X, y, qid=qid)
    members = model.committee_.weights
    assert all(any(np.array_equal(one, other) for other in seen) for one in members)


def test_similar_features_and_sparse_rows_are_not_scaled():
    X, y, qid = queries()
    even = X[:, :5] / WIDTHS
    words = np.where(np.random.default_rng(1).random(X.shape) < 0.1, X, 0.0)
    assert words.std(axis=0).max() > WIDE * words.std(axis=0).min()
    for rows in (even, sp.csr_array(words)):
        model = rc.PairwisePerceptron(max_iter=2, random_state=0).fit(rows, y, qid=qid)
        plain = rc.PairwisePerceptron(max_iter=2, random_state=0, feature_scale=None)
        assert np.array_equal(model.coef_, plain.fit(rows, y, qid=qid).coef_)
        assert (model._state.model["scale"] == 1).all()


@pytest.mark.parametrize(
    ("deviations", "share", "expected"),
    [
        ([1.0, 63.0], 1.0, []),
        ([1.0, 64.0], 1.0, [1.0, 1 / 64]),
        ([1.0, 64.0], 0.125, []),
        ([0.0, 3.0, 0.0, 300.0], 0.5, [1.0, 1 / 4, 1.0, 1 / 256]),
        ([0.0, 0.0], 1.0, []),
        ([1e-30, 1.0], 1.0, []),
        ([1.0, 1e30], 1.0, []),
    ],
)
def test_the_rule(deviations, share, expected):
    assert feature_scale(lambda: np.array(deviations), share).tolist() == expected


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_stream_keeps_the_factors_of_its_first_call(shuffle, tmp_path):
    X, y, qid = queries()
    first = qid < 10
    factors = by_hand(X[first])
    params = {"shuffle": shuffle, "random_state": 0}
    model, hand = (rc.PairwisePerceptron(**params, feature_scale=one) for one in ("auto", None))
    # Later rows are of another scale.
    for part, times in ((first, 1.0), (~first & (qid < 20), 100.0), (qid >= 20, 0.1)):
        model.partial_fit(times * X[part], y[part], qid=qid[part])
        hand.partial_fit(times * X[part] * factors, y[part], qid=qid[part])
        rc.save(model, tmp_path / "model")
        model = rc.load(tmp_path / "model")
    assert np.array_equal(model.coef_, hand.coef_ * factors)
    with pytest.raises(ValueError, match="feature_scale"):
        model.set_params(feature_scale=None).partial_fit(X, y, qid=qid)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_rows_on_disk_have_the_factors_of_rows_in_memory(known, cached, tmp_path):
    X, y, qid = queries()
    X = X.astype(np.float32).astype(np.float64)
    dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    more = ({"cache": tmp_path / "cache"} if cached else {}) | ({"n_features": 6} if known else {})
    rows = open_rows(tmp_path / "rows.txt", **more)
    model = rc.PairwisePerceptron(max_iter=1, shuffle=False, random_state=0)
    found = rc.PairwisePerceptron(**model.get_params()).fit(rows)
    model.fit(X, y, qid=qid)
    assert (
        found._state.model["scale"].tolist()
        == model._state.model["scale"].tolist()
        == by_hand(X).tolist()
    )
    np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-9, atol=1e-12)


def test_effects_of_positions_are_scaled_and_removed():
    X, y, qid = queries()
    position = np.tile(np.arange(1, 9), 30)
    model = rc.PairwisePerceptron(max_iter=2, random_state=0)
    model.fit(X, (y > 1).astype(int), qid=qid, position=position)
    assert model.coef_.shape == model._state.model["scale"].shape == (6,)
    assert model.predict(X).shape == (240,)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_deviations_are_numpys(form, dtype):
    X = queries()[0].astype(dtype)
    found = deviations_of(moments_of(as_rows(form(X))), len(X))
    np.testing.assert_allclose(found, X.astype(np.float64).std(axis=0), rtol=1e-9, atol=1e-12)


def test_deviations_that_are_rounding_errors_or_overflow_are_0():
    X = np.column_stack([np.full(100, 0.1), 1e12 + np.arange(100.0), 1e300 * np.arange(100.0)])
    assert deviations_of(moments_of(as_rows(X)), 100).tolist() == [0.0, 0.0, 0.0]


def test_kernels_of_moments_check_their_arrays():
    columns, values = np.array([0, 3], np.int32), np.ones(2)
    with pytest.raises(ValueError, match="found column 3; there are 3"):
        add_moments(columns, values, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="found column 0; there are 0"):
        add_moments(columns, values, np.zeros((2, 0)))
    with pytest.raises(ValueError, match="2 values do not fit 1 columns"):
        add_moments(columns[:1], values, np.zeros((2, 4)))
    with pytest.raises(ValueError, match="moments has 3 rows"):
        add_moments(columns, values, np.zeros((3, 4)))
    moments = np.zeros((2, 4))
    add_moments(columns, np.array([np.nan, -3.0]), moments)
    add_moments(columns[:0], values[:0], moments)
    assert moments.tolist() == [[0, 0, 0, -3], [0, 0, 0, 9]]
    with pytest.raises(ValueError, match=r"moments has shape \(2, 3\); it requires \(2, 2\)"):
        column_moments(as_rows(np.ones((1, 2))), np.zeros((2, 3)))


def test_load_rejects_factors_of_other_features():
    X, y, qid = queries()
    model = rc.PairwisePerceptron(max_iter=1, random_state=0).fit(X, y, qid=qid)
    spec, scale = model._spec(), model._state.model["scale"]
    for bad in (scale[:3], np.full_like(scale, np.nan), scale[:, None]):
        changed = replace(spec, arrays={**spec.arrays, "scale": bad})
        with pytest.raises(ValueError, match=r"scale (must hold a factor|has|must be finite)"):
            rc.PairwisePerceptron()._restore(changed)
