"""Features of any scale, which a pairwise perceptron standardises while it learns."""

import warnings
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore._core.standardization import Moments
from rankcore.datasets import dump_letor, open_rows

WIDTHS = np.array([0.01, 1.0, 300.0, 0.2, 5.0])
VARIANTS = ["averaged", "committee", "pocket", "last"]


def queries(n=30, seed=0):
    """Rows in queries of 8, with a constant feature and one of 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n, 5)) * WIDTHS + [0, 3, 0, 0, 0]
    y = np.digitize((X / WIDTHS) @ [1, -1, 2, 0, 1] + rng.normal(size=8 * n), [0, 2])
    flag = rng.integers(2, size=8 * n)
    return np.column_stack([X, np.full(8 * n, 7.0), flag]), y, np.repeat(np.arange(n), 8)


def divisors(X, weights=None):
    """Return what the features are divided by, so that rows have about the length 1."""
    scaler = StandardScaler(with_mean=False)
    found = scaler.fit(np.asarray(X, dtype=np.float64), sample_weight=weights).scale_
    found[6] = 1.0
    return found * np.sqrt(7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("solver", ["plain", "lazy", "packed", "gram"])
def test_a_fit_equals_that_to_scaled_rows(solver, variant, form, dtype):
    X, y, qid = queries()
    X = X.astype(dtype)
    params = {"max_iter": 3, "random_state": 0}
    model = rc.PairwisePerceptron(variant, **params)
    hand = rc.PairwisePerceptron(variant, **params, standardize=False)
    model._solver = hand._solver = solver
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scales need no warning
        model.fit(form(X), y, qid=qid)
        hand.fit(form(X / divisors(X)), y, qid=qid)
    assert model.history_ == hand.history_
    np.testing.assert_allclose(model.coef_ * divisors(X), hand.coef_, rtol=1e-9, atol=1e-12)
    found, expected = model.committee_, hand.committee_
    np.testing.assert_allclose(found.weights * divisors(X), expected.weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.successes, expected.successes)


@pytest.mark.parametrize("with_mean", [False, True])
def test_a_fit_ranks_as_a_pipeline_with_a_scaler_and_a_margin_for_each_feature(with_mean):
    X, y, qid = queries()
    X = X[:, :6]  # the scaler divides flags, too
    scaler = StandardScaler(with_mean=with_mean)
    model = rc.PairwisePerceptron(max_iter=3, random_state=0)
    pipeline = make_pipeline(scaler, rc.PairwisePerceptron(**model.get_params()))
    pipeline[-1].set_params(standardize=False, margin=6.0)
    pipeline.fit(X, y, pairwiseperceptron__qid=qid)
    model.fit(X, y, qid=qid)
    expected = pipeline[-1].coef_ / scaler.scale_ / 6
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-9, atol=1e-12)
    order = model.predict_rank(X, qid=qid), pipeline[-1].predict_rank(scaler.transform(X), qid=qid)
    np.testing.assert_array_equal(*order)


@pytest.mark.parametrize("most", [None, 5])
def test_votes_and_criteria_have_weights_of_original_features(most):
    X, y, qid = queries()
    params = {"max_iter": 3, "random_state": 0, "max_hypotheses": most}
    voted = rc.PairwisePerceptron("voted", **params).fit(X, y, qid=qid)
    hand = rc.PairwisePerceptron("voted", standardize=False, **params)
    hand.fit(X / divisors(X), y, qid=qid)
    found = voted.committee_.weights * divisors(X)
    np.testing.assert_allclose(found, hand.committee_.weights, rtol=1e-9, atol=1e-12)
    seen = []
    criterion = {"quality": lambda weights: seen.append(weights) or -abs(weights[0])}
    model = rc.PairwisePerceptron("committee", random_state=0, max_iter=1, **criterion)
    model.fit(X, y, qid=qid)
    members = model.committee_.weights
    assert all(any(np.array_equal(one, other) for other in seen) for one in members)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_deviations_are_weighted(method, form):
    X, y, qid = queries()
    weights = np.random.default_rng(1).integers(0, 3, size=len(y))
    weights[qid == 4] = 0
    given = {"qid": qid, "sample_weight": weights}

    def learned(X, y, **given):
        model = rc.PairwisePerceptron(random_state=0, shuffle=False)
        return getattr(model, method)(form(X), y, **given)._state.model

    model = learned(X, y, **given)
    seen = weights > 0
    if method == "partial_fit":  # only queries with pairs
        seen &= np.isin(qid, [k for k in range(30) if np.unique(y[seen & (qid == k)]).size > 1])
    moments = Moments(7, model["column_moments"], model["column_totals"])
    expected = divisors(X[seen], weights[seen]) / np.sqrt(7)
    np.testing.assert_allclose(moments.units().deviation, expected, rtol=1e-9)
    kept = weights > 0
    assert model == learned(X[kept], y[kept], qid=qid[kept], sample_weight=weights[kept])
    large = learned(X, y, qid=qid, sample_weight=2.0**800 * weights)
    np.testing.assert_allclose(large["scale"], model["scale"], rtol=1e-9)


def normalised(seed, n=60, n_docs=40, d=45):
    """Correlated features on a scale from 0 to 1 within each query, and noisy labels."""
    rng = np.random.default_rng(seed)
    causes = rng.normal(size=(n, n_docs, 3))
    X = causes @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, n_docs, d))
    low, high = X.min(axis=1, keepdims=True), X.max(axis=1, keepdims=True)
    level = causes[..., 0] + rng.normal(size=(n, 1)) + 1.5 * rng.normal(size=(n, n_docs))
    y = np.digitize(level, [1, 2]).ravel()
    return ((X - low) / (high - low)).reshape(-1, d), y, np.repeat(np.arange(n), n_docs)


@pytest.mark.parametrize("variant", VARIANTS)
def test_standardisation_helps_raw_features_and_does_not_harm_normalised_ones(variant):
    found = []
    for seed in range(3):
        X, y, qid = normalised(seed)
        widths = 10.0 ** np.random.default_rng(seed).uniform(-2, 2, X.shape[1])
        train, test = qid < 30, qid >= 30
        found.append([])
        for rows in (X, X * widths):
            for standardize in ("auto", False):
                model = rc.PairwisePerceptron(variant, random_state=0, standardize=standardize)
                model.fit(rows[train], y[train], qid=qid[train])
                found[-1].append(model.score(rows[test], y[test], qid=qid[test]))
    auto, as_they_are, auto_of_raw, raw = np.mean(found, axis=0)
    assert auto > as_they_are - 0.01
    assert auto_of_raw > as_they_are - 0.01
    if variant != "averaged":
        assert auto_of_raw > raw + 0.03


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_sparse_rows_are_not_standardised(method, form):
    X, y, qid = queries()
    words = np.where(np.random.default_rng(1).random(X.shape) < 0.1, X, 0.0)
    ones = [
        getattr(rc.PairwisePerceptron(random_state=0, standardize=one), method)(
            form(words), y, qid=qid
        )
        for one in ("auto", False)
    ]
    if method == "fit":
        np.testing.assert_array_equal(ones[0].coef_, ones[1].coef_)
    assert ones[0]._state.model["scale"].size == ones[1]._state.model["scale"].size == 0


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e200])
def test_columns_whose_deviations_have_no_square_are_constant_or_an_error(scale):
    X, y, qid = queries()
    X = np.column_stack([X, scale * np.arange(X.shape[0])])
    model = rc.PairwisePerceptron(max_iter=1, random_state=0)
    if scale > 1:
        with pytest.raises(ValueError, match="squares of the values of X overflowed: scale X"):
            model.fit(X, y, qid=qid)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, qid=qid)
    assert ["column 7" in str(one.message) for one in caught] == ([True] if scale else [])
    assert model._state.model["scale"][-1] == model.coef_[-1] == 0
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shuffle", [True, False])
def test_stream_may_be_divided_anywhere_and_saved(shuffle, variant, tmp_path):
    X, y, qid = queries()
    X[qid >= 10] *= 100  # later rows are of another scale
    params = {"variant": variant, "shuffle": shuffle, "random_state": 0}
    whole = rc.PairwisePerceptron(**params).partial_fit(X, y, qid=qid)
    for edges in ([0, 1, 2, 3, 4, 5, 16, 17, 30], [0, 11, 30]):
        model = rc.PairwisePerceptron(**params)
        for first, last in pairwise(edges):
            part = (qid >= first) & (qid < last)
            model.partial_fit(X[part], y[part], qid=qid[part])
            rc.save(model, tmp_path / "model")
            model = deepcopy(rc.load(tmp_path / "model"))
        assert model._state.model == whole._state.model
    with pytest.raises(ValueError, match="standardize"):
        model.set_params(standardize=False).partial_fit(X, y, qid=qid)


@pytest.mark.parametrize("late", [0.0, 1e-3])
def test_a_stream_learns_with_deviations_of_powers_of_two_or_of_growth(late):
    X, y, qid = queries()
    X[qid < 12, 2] *= late
    X[qid < 9, 6] = 1.0
    model = rc.PairwisePerceptron("last", shuffle=False, random_state=0)
    plain = rc.PairwisePerceptron("last", shuffle=False, random_state=0, standardize=False)
    weights, scale, seen = np.zeros(7), None, np.zeros(0, dtype=int)
    still = np.ones(7, dtype=bool)
    for k in range(30):
        rows = np.flatnonzero(qid == k)
        if (y[rows] == y[rows[0]]).all():
            continue  # without pairs
        before, seen = seen.size, np.append(seen, rows)
        found = divisors(X[seen])
        if scale is None:
            scale = found
        grown = found > 1.1 * scale
        were_still, still = still, np.ptp(X[seen], axis=0) == 0
        moves = (were_still & ~still) | ((scale == np.sqrt(7)) & (found != np.sqrt(7)))
        if seen.size.bit_length() > before.bit_length() or grown.any() or moves.any():
            weights[grown] *= scale[grown] / found[grown]  # the same in units of the moment
            scale = found
        if before:  # go on from the same weights, in the units of the moment
            plain._state.model["weights"][...] = weights * scale
        plain.partial_fit(X[rows] / scale, y[rows], qid=qid[rows])
        weights = plain.coef_ / scale
    model.partial_fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("first", [40, 20, 2600])
@pytest.mark.parametrize("still", [0.0, 7.0, None])
@pytest.mark.parametrize("width", [1e3, 1.0])
def test_feature_of_a_stream_may_be_constant_at_first(width, still, first, variant):
    """The stream ranks about as well as one of rows divided by the deviations of all rows."""
    rng = np.random.default_rng(0)
    Z, qid = rng.normal(size=(5000, 5)), np.repeat(np.arange(250), 20)
    y, X = np.digitize(Z.sum(axis=1), [0, 2]), Z * [width, 1, 1, 1, 1]
    X[:first, 0] = 1e-3 * X[:first, 0] if still is None else still
    model = rc.PairwisePerceptron(variant, random_state=0).partial_fit(X, y, qid=qid)
    known = rc.PairwisePerceptron(variant, random_state=0, standardize=False)
    scaled = X / X.std(axis=0) / np.sqrt(5)
    known.partial_fit(scaled, y, qid=qid)
    late = {"y": y[first:], "qid": qid[first:]}
    assert model.score(X[first:], **late) > known.score(scaled[first:], **late) - 0.01


def test_members_of_a_stream_shrink_with_deviations_that_grow():
    X, y, qid = queries()
    first, last = qid < 20, qid == 20
    model = rc.PairwisePerceptron("committee", committee_size=10**4, random_state=0)
    model.partial_fit(X[first], y[first], qid=qid[first])
    learned = model._state.model
    before, scale = learned["members"][: learned.kept].copy(), learned["scale"].copy()
    model.partial_fit(X[last] * [1e4, 1, 1, 1, 1, 1, 1], y[last], qid=qid[last])
    factors, members = model._state.model["scale"], model._state.model["members"]
    assert factors[0] < scale[0] / 100
    before[:, 0] *= factors[0] / scale[0]
    grown = np.flatnonzero(scale > 1.1 * factors)
    np.testing.assert_array_equal(grown, [0])
    np.testing.assert_allclose(members[: len(before)], before, rtol=1e-12)


def test_a_stream_of_dense_rows_equals_one_of_csr():
    X, y, qid = queries()
    ones = [
        rc.PairwisePerceptron(random_state=0).partial_fit(form(X), y, qid=qid)
        for form in (np.asarray, sp.csr_array)
    ]
    np.testing.assert_allclose(ones[0].coef_, ones[1].coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(*(one._state.model["scale"] for one in ones))


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_rows_on_disk_are_scaled_as_rows_in_memory(known, cached, tmp_path):
    X, y, qid = queries()
    X = X.astype(np.float32).astype(np.float64)
    dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    more = ({"cache": tmp_path / "cache"} if cached else {}) | ({"n_features": 7} if known else {})
    rows = open_rows(tmp_path / "rows.txt", **more)
    model = rc.PairwisePerceptron(max_iter=1, shuffle=False, random_state=0)
    found = rc.PairwisePerceptron(**model.get_params()).fit(rows)
    model.fit(X, y, qid=qid)
    np.testing.assert_array_equal(found._state.model["scale"], model._state.model["scale"])
    expected = 1 / divisors(X)
    expected[5] = 0  # the constant
    np.testing.assert_allclose(model._state.model["scale"], expected, rtol=1e-12)
    np.testing.assert_allclose(found.coef_, model.coef_, rtol=1e-9, atol=1e-12)


def test_effects_of_positions_are_standardised_and_removed(tmp_path):
    X, y, qid = queries()
    position = np.tile(np.arange(1, 9), 30)
    model = rc.PairwisePerceptron(max_iter=2, random_state=0)
    model.fit(X, (y > 1).astype(int), qid=qid, position=position)
    assert model.coef_.shape == model._state.model["scale"].shape == (7,)
    model.partial_fit(X, y, qid=qid)
    rc.save(model, tmp_path / "model")
    np.testing.assert_array_equal(rc.load(tmp_path / "model").predict(X), model.predict(X))


def test_load_rejects_factors_of_other_features():
    X, y, qid = queries()
    model = rc.PairwisePerceptron(max_iter=1, random_state=0).fit(X, y, qid=qid)
    spec, scale = model._spec(), model._state.model["scale"]
    for bad in (scale[:3], np.full_like(scale, np.nan), scale[:, None], -scale):
        changed = replace(spec, arrays={**spec.arrays, "scale": bad})
        with pytest.raises(ValueError, match="the array (scale|column_moments)"):
            rc.PairwisePerceptron()._restore(changed)
