"""Kernel learners that standardise columns: against scikit-learn's scaler, in fits and streams."""

import copy
from itertools import cycle, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from kernel_problems import POLICIES
from rankcore._ext.kernel_learners import span
from rankcore.ordinal.kernel import pools

pytestmark = pytest.mark.kernel


def square_kernel(A, B):
    """Return (x . z + 1) ** 2 of dense rows."""
    return (A @ B.T + 1) ** 2


LEARNERS = {
    "prank": rc.KernelPRank(random_state=0, max_iter=8),
    "cusum": rc.KernelCuSumRank(random_state=0, max_iter=5),
    "oap": rc.KernelOAPBPM(5, random_state=0, max_iter=3),
}
KERNELS = {"rbf": "rbf", "poly": "poly", "linear": "linear", "function": square_kernel}
every = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def table(n=240, seed=0, far=100.0):
    """Rows whose columns are on different scales, the last one constant, and curved ranks."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 5))
    score = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] / 2 + 0.3 * rng.normal(size=n)
    X = Z * [1.0, 100.0, 1e-3, 1e4, 1.0] + [0.0, 100.0 * far, 1.0, -1e4 * far, 0.0]
    X[:, 4] = 7.0
    return X, 1 + np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75]))


def learned(model):
    """Return all arrays of a model as bytes, without free room."""
    arrays = pools.trimmed(model._state.model.saved())
    return {name: (one.shape, one.dtype, one.tobytes()) for name, one in arrays.items()}


def stream(learner, X, y, cuts=()):
    """Return a copy that learned the rows in parts."""
    model = clone(learner)
    for start, stop in pairwise([0, *cuts, len(y)]):
        model.partial_fit(X[start:stop], y[start:stop], [1, 2, 3, 4])
    return model


# ------------------------------------------------------------------------ fits


@every
@each_kernel
def test_fit_equals_one_after_a_standard_scaler(learner, kernel):
    X, y = table()
    model = clone(learner).set_params(kernel=kernel).fit(X, y)
    plain = clone(model).set_params(standardize=False)
    expected = make_pipeline(StandardScaler(), plain).fit(X, y)
    assert_array_equal(model.support_, expected[-1].support_)
    assert_array_equal(model.predict(X), expected.predict(X))
    Z = expected[0].transform(X)
    assert_allclose(model.project(X), plain.project(Z), rtol=1e-7, atol=1e-7)
    assert_allclose(model.support_vectors_, plain.support_vectors_, atol=1e-9)
    assert model.gamma_ == pytest.approx(plain.gamma_, rel=1e-12)
    assert_allclose(model.mean_, expected[0].mean_, rtol=1e-12)
    assert_allclose(model.scale_, expected[0].scale_, rtol=1e-9)


@every
@pytest.mark.parametrize("gamma", ["scale", "half", "auto", 0.3])
def test_gamma_refers_to_standardised_columns(learner, gamma):
    X, y = table()
    model = clone(learner).set_params(gamma=gamma, max_iter=1).fit(X, y)
    variance = StandardScaler().fit_transform(X).var()
    expected = {"scale": 1 / (5 * variance), "half": 1 / (10 * variance), "auto": 0.2}
    assert model.gamma_ == pytest.approx(expected.get(gamma, gamma), rel=1e-12)


@pytest.mark.parametrize("far", [1e4, 1e8])
@every
def test_mean_many_deviations_from_zero_does_not_matter(learner, far):
    X, y = table()
    Z = StandardScaler().fit_transform(X)[:, :4]
    model = clone(learner).fit(far + Z, y)
    plain = clone(learner).set_params(standardize=False)
    plain.fit(StandardScaler().fit_transform(far + Z), y)
    assert np.mean(model.predict(far + Z) == plain.predict(Z)) > 0.95
    assert_allclose(model.support_vectors_, Z[model.support_], atol=1e-15 * far)


@every
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_containers_and_types_of_equal_values_give_the_same_model(learner, kernel):
    X, y = table()
    X[::3, 0] = 0
    X[::2, 4] = 0  # a column of 0 and 7
    X = X.astype(np.float32)
    learner = clone(learner).set_params(kernel=kernel, max_iter=2)
    model = clone(learner).fit(X.astype(np.float64), y)
    for rows in (X, sp.csr_array(X), sp.csr_array(X.astype(np.float64))):
        other = clone(learner).fit(rows, y)
        assert learned(other) == learned(model)
        assert_array_equal(other.project(rows), model.project(X))
        assert learned(stream(learner, rows, y)) == learned(stream(learner, X, y, [9, 100]))


@every
def test_sparse_rows_are_not_standardised(learner):
    rng = np.random.default_rng(0)
    X = sp.random(200, 40, 0.1, random_state=0, format="csr")
    y = rng.integers(1, 5, size=200)
    model = clone(learner).set_params(max_iter=2).fit(X, y)
    plain = clone(model).set_params(standardize=False).fit(X, y)
    assert sp.issparse(model.support_vectors_)
    assert not model.mean_.any()
    assert (model.scale_ == 1).all()
    assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert_array_equal(model.project(X), plain.project(X))
    assert model.gamma_ == plain.gamma_
    dense = clone(learner).set_params(max_iter=2).fit(X.toarray(), y)
    assert_array_equal(dense.dual_coef_, plain.dual_coef_)
    # No row of this stream is dense enough, so that it is never standardised.
    parts = stream(learner, X, y, [100])
    assert_array_equal(
        parts.dual_coef_,
        stream(clone(learner).set_params(standardize=False), X, y, [100]).dual_coef_,
    )


@every
def test_binary_columns_are_not_standardised(learner):
    X, y = table()
    X[:, 3] = X[:, 3] > X[:, 3].mean()
    model = clone(learner).fit(X, y)
    assert (model.mean_[3], model.scale_[3]) == (0, 1)
    assert {*model.support_vectors_[:, 3].tolist()} == {0.0, 1.0}


@every
def test_rows_of_weight_zero_do_not_count(learner):
    X, y = table()
    weights = np.where(np.arange(len(y)) < 200, 1.0, 0.0)
    X[200:] = 1e6
    model = clone(learner).fit(X, y, sample_weight=weights)
    scaler = StandardScaler().fit(X[:200])
    assert_allclose(model.mean_, scaler.mean_, rtol=1e-9)
    assert_allclose(model.scale_, scaler.scale_, rtol=1e-9)


def test_moments_are_weighted():
    X, y = table()
    weights = np.random.default_rng(0).integers(1, 4, size=len(y)).astype(float)
    model = rc.KernelCuSumRank(max_iter=1, random_state=0).fit(X, y, sample_weight=weights)
    scaler = StandardScaler().fit(X, sample_weight=weights)
    assert_allclose(model.mean_, scaler.mean_, rtol=1e-9)
    assert_allclose(model.scale_, scaler.scale_, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_an_intercept_a_linear_kernel_does_not_centre(kernel):
    X, y = table()
    model = rc.KernelCuSumRank(kernel, fit_intercept=False, random_state=0).fit(X, y)
    if kernel == "rbf":
        assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-9)
    else:
        assert not model.mean_.any()
        assert_allclose(model.scale_, np.sqrt(np.mean(X**2, axis=0)), rtol=1e-9)


@every
def test_a_precomputed_kernel_has_nothing_to_standardise(learner):
    X, y = table(100)
    values = rbf_kernel(StandardScaler().fit_transform(X), gamma=0.2)
    learner = clone(learner).set_params(kernel="precomputed")
    model = clone(learner).fit(values, y)
    plain = learner.set_params(standardize=False).fit(values, y)
    assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert_array_equal(model.predict(values), plain.predict(values))


@every
def test_published_settings_do_not_standardise_rows(learner):
    X, y = table()
    model = type(learner).published(random_state=0).fit(X, y)
    assert model.get_params()["standardize"] is False
    assert_array_equal(model.support_vectors_, X[model.support_])


@every
def test_cached_kernel_values_equal_those_of_blocks(learner, monkeypatch):
    X, y = table()
    kept = clone(learner).fit(X, y)
    monkeypatch.setattr("rankcore.ordinal.kernel._base.KEPT_ROWS", 0)
    assert learned(clone(learner).fit(X, y)) == learned(kept)


@every
def test_one_row_and_words_are_learned(learner):
    X, y = table()
    words = np.array(["bad", "fair", "good", "best"])
    model = clone(learner).fit(X, words[y - 1], classes=words)
    assert_array_equal(model.predict(X), words[clone(learner).fit(X, y).predict(X) - 1])
    one = clone(learner).partial_fit(X[:1], words[:1], words)
    assert_array_equal(one.mean_, X[0])
    assert (one.scale_ == 1).all()
    assert one.predict(X[:1])[0] in words


# ------------------------------------------------------------------------ streams


@every
@pytest.mark.parametrize(
    ("policy", "kernel"), [*zip([None, *POLICIES], cycle(["rbf", "poly", "linear"]), strict=False)]
)
def test_chunk_sizes_do_not_change_the_model(learner, policy, kernel):
    X, y = table(160)
    X[90, 1] = 1e6  # far beyond the rows before it
    budget = {} if policy is None else {"budget": 12, "budget_policy": policy}
    learner = clone(learner).set_params(kernel=kernel, **budget)
    whole = stream(learner, X, y)
    rng = np.random.default_rng(1)
    for _ in range(3):
        cuts = np.sort(rng.choice(np.arange(1, 160), 10, replace=False))
        assert learned(stream(learner, X, y, cuts)) == learned(whole)
    assert learned(stream(learner, X, y, range(1, 160))) == learned(whole)


@every
@each_kernel
def test_stream_updates_its_units_at_powers_of_two(learner, kernel):
    X, y = table(200)
    model = stream(clone(learner).set_params(kernel=kernel), X, y, [50])
    scaler = StandardScaler().fit(X[:128])
    assert_allclose(model.mean_, scaler.mean_, rtol=1e-9)
    assert_allclose(model.scale_, scaler.scale_, rtol=1e-7)
    assert_allclose(model.support_vectors_, scaler.transform(X)[model.support_], atol=1e-7)
    vectors, Z = model.support_vectors_, scaler.transform(X)
    values = {
        "rbf": lambda: rbf_kernel(Z, vectors, gamma=model.gamma_),
        "poly": lambda: (model.gamma_ * Z @ vectors.T + model.coef0) ** model.degree,
        "linear": lambda: Z @ vectors.T,
    }.get(kernel, lambda: square_kernel(Z, vectors))()
    scores = values @ model.dual_coef_.T
    if isinstance(learner, rc.KernelCuSumRank):
        scores += model.intercept_
    assert_allclose(scores.sum(axis=1), model.project(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("policy", ["forgetron", "projectron"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "function"])
def test_kernel_matrices_of_budgets_follow_the_units(policy, kernel):
    X, y = table(64)
    learner = rc.KernelPRank(KERNELS[kernel], budget=10, budget_policy=policy, random_state=0)
    arrays = pools.trimmed(stream(learner, X, y, [20])._state.model.saved())
    vectors = arrays["vectors"]
    expected = {
        "rbf": lambda: rbf_kernel(vectors, gamma=float(arrays["gamma"][0])),
        "linear": lambda: vectors @ vectors.T,
        "function": lambda: square_kernel(vectors, vectors),
    }[kernel]()
    assert len(vectors) > 2
    assert_allclose(arrays["diagonal"], np.diagonal(expected), rtol=1e-9)
    assert_allclose(arrays["norms"], (vectors**2).sum(axis=1), rtol=1e-9)
    if policy == "forgetron":
        assert_allclose(arrays["gram"], expected, rtol=1e-9, atol=1e-9)
    else:
        assert_allclose(arrays["inverse"] @ expected, np.eye(len(vectors)), atol=1e-6)


def test_vectors_are_combinations_of_the_independent_ones():
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    values, inverse, shares = vectors @ vectors.T, np.zeros((6, 6)), np.zeros((6, 6))
    kept = span(values, 1e-9, inverse, shares)
    assert kept.tolist() == [0, 1, 2]
    assert_allclose(shares[:, :3] @ vectors[kept], vectors, atol=1e-9)
    assert_allclose(inverse[:3, :3], np.linalg.inv(values[:3, :3]), rtol=1e-7)


def test_support_vectors_that_become_dependent_are_projected():
    # Three points on a line: with the linear kernel their centred multiples span one dimension.
    X = np.array([[1.0, 2.0], [2.0, 4.0], [4.0, 8.0], [8.0, 16.0]])
    learner = rc.KernelPRank("linear", budget=4, budget_policy="projectron", average=False)
    model = stream(learner, X, np.array([4, 1, 4, 1]), [1, 2, 3])
    assert model.support_.size == 1
    Z = StandardScaler().fit_transform(X)
    assert_allclose(model.project(X), Z @ (model.dual_coef_ @ model.support_vectors_)[0])


@every
def test_a_saved_stream_continues_bit_identically(learner, tmp_path):
    X, y = table(150)
    whole = stream(learner, X, y)
    model = stream(learner, X[:77], y[:77])
    rc.save(model, tmp_path / "m")
    for other in (rc.load(tmp_path / "m"), copy.deepcopy(model)):
        other.partial_fit(X[77:], y[77:])
        assert learned(other) == learned(whole)


@every
def test_a_fit_continues_as_a_stream(learner):
    X, y = table(200)
    model = clone(learner).fit(X[:100], y[:100])
    model.partial_fit(X[100:], y[100:])
    scaler = StandardScaler().fit(X[:128])
    assert_allclose(model.mean_, scaler.mean_, rtol=1e-9)
    assert_allclose(model.scale_, scaler.scale_, rtol=1e-7)


@every
def test_stream_switches_between_dense_and_sparse_vectors(learner):
    # The first rows are dense, and all rows together sparse.
    rng = np.random.default_rng(0)
    X = np.zeros((300, 20))
    X[:10] = rng.normal(size=(10, 20)) + 3
    X[10:, 0] = rng.normal(size=290)
    y = rng.integers(1, 5, size=300)
    for rows in (X, sp.csr_array(X)):
        early, late = stream(learner, rows[:20], y[:20]), stream(learner, rows, y, [5, 100])
        assert early.mean_.any()
        assert not late.mean_.any()
        assert_allclose(late.support_vectors_, X[late.support_], atol=1e-12)
        assert learned(late) == learned(stream(learner, X, y))


@every
def test_rejected_row_does_not_change_the_moments(learner):
    X, y = table(100)
    bad = X.copy()
    bad[70] = 1e200
    model = clone(learner)
    with pytest.raises(ValueError, match="row 50"):
        model.partial_fit(bad[:20], y[:20], [1, 2, 3, 4]).partial_fit(bad[20:], y[20:])
    assert learned(model)["units"] == learned(stream(learner, X[:70], y[:70]))["units"]


@every
def test_standardize_cannot_change_within_a_stream(learner):
    X, y = table(50)
    model = stream(learner, X, y)
    with pytest.raises(ValueError, match="standardize"):
        model.set_params(standardize=False).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"standardize must be .*auto.*False"):
        clone(learner).set_params(standardize=True).fit(X, y)


# ------------------------------------------------------------------------ around a model


@pytest.mark.parametrize("learner", ["prank", "cusum"])
def test_contributions_of_a_linear_kernel_are_of_raw_features(learner):
    X, y = table()
    model = clone(LEARNERS[learner]).set_params(kernel="linear").fit(X, y)
    found = model.contributions(X[:20], background=X)
    assert_allclose(found.scores(), model.project(X[:20]), rtol=1e-7, atol=1e-7)
    # A feature has the part of the score that changes with it.
    moved = X[:20].copy()
    moved[:, 1] = X[:, 1].mean()
    change = model.project(X[:20]) - model.project(moved)
    assert_allclose(found.values[:, 1], change, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("learner", ["prank", "cusum"])
def test_rank_changes_are_given_in_raw_features(learner):
    X, y = table()
    model = clone(LEARNERS[learner]).set_params(kernel="linear").fit(X, y)
    moved = 0
    for row, predicted in zip(X[:10], model.predict(X[:10]), strict=True):
        found = rc.explain.rank(model, row)
        for j, value in enumerate(found.up):
            if not np.isnan(value):
                other = row.copy()
                other[j] = value + 1e-9 * (value - row[j])
                assert model.predict(other[np.newaxis])[0] > predicted
                other[j] = row[j] + 0.99 * (value - row[j])
                assert model.predict(other[np.newaxis])[0] <= predicted
                moved += 1
    assert moved > 10


@pytest.mark.parametrize("learner", ["prank", "cusum"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_exported_source_scores_raw_rows_to_the_bit(learner, kernel, tmp_path, capsys):
    X, y = table()
    model = clone(LEARNERS[learner]).set_params(kernel=kernel).fit(X, y)
    for exported in (model, make_pipeline(StandardScaler(), clone(model)).fit(X, y)):
        found = rc.export(exported, tmp_path / "m.c", "c", check=X)
        assert found.largest_difference == 0
    assert "no order changed" in capsys.readouterr().out


def test_a_linear_kernel_is_exported_as_a_sum_of_raw_features(tmp_path, capsys):
    X, y = table()
    names = ["a", "b", "c", "d", "e"]
    model = clone(LEARNERS["prank"]).set_params(kernel="linear").fit(X, y)
    rc.export(model, tmp_path / "m.sql", "sql", feature_names=names, check=X)
    assert "no order changed" in capsys.readouterr().out
    with pytest.raises(ValueError, match="cannot express a KernelPRank"):
        rc.export(LEARNERS["prank"].fit(X, y), tmp_path / "m.sql", "sql", feature_names=names)


@every
def test_calibrated_probabilities_do_not_depend_on_scales(learner):
    X, y = table()
    learner = clone(learner).set_params(max_iter=2)
    found = rc.CalibratedOrdinal(learner).fit(X, y).predict_proba(X)
    scaled = rc.CalibratedOrdinal(clone(learner)).fit(1e6 * X - 5, y).predict_proba(1e6 * X - 5)
    assert_allclose(found, scaled, atol=1e-6)


@every
def test_scale_warning_is_issued_only_without_standardisation(learner, recwarn):
    X, y = table()
    clone(learner).fit(X, y)
    assert not [one for one in recwarn if "one scale" in str(one.message)]
    with pytest.warns(UserWarning, match="not on one scale"):
        clone(learner).set_params(standardize=False).fit(X, y)
