"""Kernel learners: values, parity, primal and dual, blocks and streams."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import rankcore as rc
from kernel_problems import FORMS, KERNELS, every, form, in_turn, known, problem
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import gram
from rankcore._ext import kernel_scores
from rankcore.ordinal.kernel import _base, dual
from reference.ensemble import times
from reference.kernel import kernel_cusum, kernel_oap, kernel_prank, rbf
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel


def compiled_values(rows, support, kernel):
    """Kernel values of rows with support vectors, by the compiled kernel."""
    rows, support = as_rows(rows), as_rows(support)
    out = np.empty((rows.n_rows, support.n_rows))
    values, *rest = support.arrays
    indices, indptr = rest or (None, None)
    starts = None if indptr is None else indptr[:-1].copy()
    lengths = None if indptr is None else np.diff(indptr)
    X = (
        values
        if indptr is None
        else sp.csr_array(support.arrays, (support.n_rows, rows.n_features))
    )
    X = np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)
    norms = np.array([sum(v * v for v in x) for x in X])
    kernel_scores.outputs(
        rows,
        0,
        rows.n_rows,
        kernel,
        values.reshape(-1),
        indices,
        starts,
        lengths,
        norms,
        support.n_rows,
        None,
        None,
        None,
        None,
        None,
        out,
    )
    return out


# ------------------------------------------------------------------------ kernel values


@form
@pytest.mark.parametrize("n_features", [1, 3, 54, 256, 257, 700])
@pytest.mark.parametrize("n_support", [1, 4, 7, 64, 131])
def test_kernel_values_equal_the_formulas(form, n_features, n_support):
    rng = np.random.default_rng(n_features + n_support)
    X = rng.normal(size=(21, n_features)) * (rng.random((21, n_features)) < 0.6)
    S = rng.normal(size=(n_support, n_features)) * (rng.random((n_support, n_features)) < 0.6)
    X, S = form(X), form(S)
    A, B = (np.asarray(M.todense() if sp.issparse(M) else M, dtype=np.float64) for M in (X, S))
    gamma = 1.0 / n_features
    found = compiled_values(X, S, {"kind": 2, "gamma": gamma, "coef0": 0.0, "degree": 1})
    # rounding of the distance, times gamma, is an error of the same relative size
    assert_allclose(found, rbf_kernel(A, B, gamma=gamma), rtol=1e-12)
    found = compiled_values(X, S, {"kind": 1, "gamma": gamma, "coef0": 1.5, "degree": 5})
    expected = polynomial_kernel(A, B, gamma=gamma, coef0=1.5, degree=5)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    found = compiled_values(X, S, {"kind": 0, "gamma": 0.0, "coef0": 0.0, "degree": 1})
    assert_allclose(found, A @ B.T, rtol=1e-12, atol=1e-12)


def test_the_same_row_in_any_form_has_the_same_values_to_the_bit():
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(30, 300)) * (rng.random((30, 300)) < 0.3)).astype(np.float32)
    kernel = {"kind": 2, "gamma": 0.01, "coef0": 0.0, "degree": 1}
    one = compiled_values(X, X, kernel)
    assert (np.diag(one) == 1).all()
    for A in [X, X.astype(np.float64), sp.csr_array(X)]:
        for B in [X, X.astype(np.float64), sp.csr_array(X)]:
            assert_array_equal(compiled_values(A, B, kernel), one)
            for cut in [1, 3, 8, 29]:
                parts = [compiled_values(A[:cut], B, kernel), compiled_values(A[cut:], B, kernel)]
                assert_array_equal(np.vstack(parts), one)


def test_exponential_is_accurate_to_the_last_bits():
    # exp(-|x - z|**2) of points on a line reaches every argument from 0 to where it underflows.
    x = np.sqrt(np.linspace(0, 750, 20011))[:, np.newaxis]
    found = compiled_values(x, np.zeros((1, 1)), {"kind": 2, "gamma": 1.0, "coef0": 0, "degree": 1})
    argument = (x[:, 0] * x[:, 0]).astype(np.longdouble)
    expected = np.exp(-argument)
    normal = argument <= 708
    error = np.abs(found[normal, 0] / expected[normal] - 1)
    assert error.max() < 1.5 * np.finfo(float).eps
    assert (found[~normal, 0] == 0).all()


def test_exponential_is_zero_below_minus_708():
    # gamma times a distance of 1, which nothing rounds.
    for gamma, expected in [(708.0, np.exp(-708.0)), (np.nextafter(708.0, 709.0), 0.0)]:
        kernel = {"kind": 2, "gamma": gamma, "coef0": 0.0, "degree": 1}
        for n in [1, 8, 21]:  # a row, a tile, a block
            found = compiled_values(np.ones((n, 1)), np.zeros((1, 1)), kernel)
            assert_allclose(found, np.full((n, 1), expected), rtol=4e-16)


# ------------------------------------------------------------------------ parity


@pytest.mark.parametrize(
    ("kernel", "tie"), [("rbf", "crammer"), ("poly", "strict"), ("linear", "crammer")]
)
@form
def test_kernel_prank_equals_the_plain_form(kernel, tie, form):
    X, y = problem()
    plain, params = KERNELS[kernel]
    expected = kernel_prank(X, y, 4, plain, tie, epochs=2)
    model = rc.KernelPRank.published(**params, tie=tie, max_iter=2).fit(form(X), y)
    losses = np.abs(expected["predictions"] - np.tile(y, 2)).reshape(2, -1).mean(axis=1)
    assert model.history_["rank_loss"] == losses.tolist()
    assert_array_equal(model.support_, expected["pool"].names)
    assert_array_equal(model.dual_coef_, expected["alpha"].T)
    assert_array_equal(model.thresholds_, expected["b"])
    vectors = model.support_vectors_
    assert sp.issparse(vectors) == sp.issparse(form(X))
    assert vectors.dtype == form(X).dtype
    assert_array_equal(
        np.asarray(vectors.todense() if sp.issparse(vectors) else vectors), X[model.support_]
    )
    mean = rc.KernelPRank.published(**params, tie=tie, max_iter=2, average=True).fit(form(X), y)
    assert_allclose(mean.dual_coef_, expected["alpha_mean"].T, rtol=1e-12, atol=1e-12)
    assert_allclose(mean.thresholds_, expected["b_mean"], rtol=1e-12, atol=1e-12)
    scores = [
        sum(a * plain(x, X[s]) for a, s in zip(mean.dual_coef_[0], mean.support_, strict=True))
        for x in X[:20]
    ]
    assert_allclose(mean.project(form(X[:20])), scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("update", ["perceptron", "pa", "pa1", "pa2"])
@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_kernel_cusum_equals_the_plain_form(kernel, update, margin):
    X, y = problem(200)
    plain, params = KERNELS[kernel]
    expected = kernel_cusum(X, y, 4, plain, update, 0.3, margin, epochs=2)
    params = params | {"update": update, "C": 0.3, "margin": margin, "max_iter": 2}
    model = rc.KernelCuSumRank.published(**params).fit(X, y)
    losses = np.abs(expected["predictions"] - np.tile(y, 2)).reshape(2, -1).mean(axis=1)
    assert model.history_["rank_loss"] == losses.tolist()
    assert_array_equal(model.support_, expected["pool"].names)
    # PA steps are quotients of sums in another order, each fed by those before it
    assert_allclose(model.dual_coef_, expected["alpha"].T, rtol=1e-7, atol=1e-9)
    assert_allclose(model.intercept_, -expected["b"], rtol=1e-7, atol=1e-9)
    mean = rc.KernelCuSumRank.published(**params, average=True).fit(X, y)
    assert_allclose(mean.dual_coef_, expected["alpha_mean"].T, rtol=1e-7, atol=1e-9)
    tasks = rbf_kernel(X, X[mean.support_], gamma=0.3) @ mean.dual_coef_.T + mean.intercept_
    if kernel == "rbf":
        scores = np.cumsum(np.hstack([np.zeros((200, 1)), tasks]), axis=1)
        assert_allclose(mean.project(X), scores[:, -1], rtol=1e-9, atol=1e-9)
        assert_array_equal(mean.predict(X), 1 + scores.argmax(axis=1))


@pytest.mark.parametrize("form", [FORMS["dense64"], FORMS["csr32"]], ids=["dense64", "csr32"])
def test_kernel_oap_equals_the_plain_form(form):
    X, y = problem(250)
    n, tau = 8, 0.4
    model = rc.KernelOAPBPM.published(n, tau, kernel="rbf", gamma=0.3, random_state=7).fit(
        form(X), y
    )
    seed = int(model._state.model["seed"][0])
    masks = np.array([[times(seed, j, t, tau) for t in range(len(X))] for j in range(n)])
    expected = kernel_oap(X, y, 4, rbf(0.3), masks)
    assert model.history_["rank_loss"] == [np.abs(expected["predictions"] - y).mean()]
    assert_array_equal(model.support_, expected["pool"].names)
    assert_array_equal(model.member_dual_coef_.todense(), expected["alpha"][:, :n].T)
    assert_array_equal(model.member_thresholds_, expected["b"])
    assert_array_equal(model.dual_coef_[0], expected["alpha"][:, n] / n)
    assert_array_equal(model.thresholds_, expected["b"].mean(axis=0))


# ------------------------------------------------------------------------ primal = dual


def quadratic(X):
    """Return the features of (x.z + 1)**2 in two dimensions."""
    x1, x2 = X.T
    root = np.sqrt(2)
    columns = [np.ones_like(x1), root * x1, root * x2, x1**2, root * x1 * x2, x2**2]
    return np.column_stack(columns)


TWINS = [
    (rc.PRank.published(average=True), rc.KernelPRank.published(average=True)),
    (
        rc.PRank.published(tie="strict", threshold_scale=2.0),
        rc.KernelPRank.published(tie="strict", threshold_scale=2.0),
    ),
    (rc.CuSumRank.published(average=True), rc.KernelCuSumRank.published(average=True)),
    (
        rc.CuSumRank.published(update="pa1", C=0.2, margin=1.0),
        rc.KernelCuSumRank.published(update="pa1", C=0.2, margin=1.0),
    ),
    (
        rc.CuSumRank.published(tie_break="low", fit_intercept=False),
        rc.KernelCuSumRank.published(tie_break="low", fit_intercept=False),
    ),
    # a power of two members: means of their integers are exact in both forms
    (rc.OAPBPM.published(16, random_state=1), rc.KernelOAPBPM.published(16, random_state=1)),
    (
        rc.OAPBPM.published(16, sampling="poisson", average_members=True, random_state=1),
        rc.KernelOAPBPM.published(16, sampling="poisson", average_members=True, random_state=1),
    ),
]


@pytest.mark.parametrize(("primal", "dual"), TWINS, ids=str)
def test_dual_learners_predict_as_their_linear_forms(primal, dual):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(800, 2))
    score = 3 * X[:, 0] ** 2 - X[:, 0] * X[:, 1] + rng.normal(size=800)
    y = np.digitize(score, [0, 1, 3, 6])
    dual.set_params(kernel="poly", gamma=1.0, degree=2, coef0=1.0, max_iter=2)
    primal.set_params(max_iter=2).fit(quadratic(X), y)
    dual.fit(X, y)
    assert dual.history_ == primal.history_
    assert_array_equal(dual.update_loss_curve_, primal.update_loss_curve_)
    assert_array_equal(dual.predict(X), primal.predict(quadratic(X)))
    assert_allclose(dual.project(X), primal.project(quadratic(X)), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("primal", "dual"), TWINS, ids=str)
def test_linear_kernel_on_sparse_text_equals_linear_learners(primal, dual):
    rng = np.random.default_rng(4)
    X = sp.random(500, 2000, density=0.01, random_state=rng, format="csr")
    X.data = rng.integers(1, 5, size=X.nnz).astype(np.float64)  # counts: sums are exact
    y = np.digitize(X @ rng.integers(-2, 3, size=2000), [-15, 0, 15])
    primal.set_params(max_iter=2).fit(X, y)
    dual.set_params(kernel="linear", max_iter=2).fit(X, y)
    assert dual.history_ == primal.history_
    assert_array_equal(dual.predict(X), primal.predict(X))


@given(ordinal_problems(), st.sampled_from([0, 1, 5]))
@settings(max_examples=examples(60), deadline=None)
def test_linear_and_dual_learners_agree_on_integers_with_ties(problem, twin):
    X, y, k = problem
    primal, dual = map(clone, TWINS[twin])
    primal.set_params(max_iter=2).fit(X, y, classes=range(1, k + 1))
    dual.set_params(kernel="linear", max_iter=2).fit(X, y, classes=range(1, k + 1))
    assert dual.history_ == primal.history_
    assert_allclose(dual.project(X), primal.project(X), rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------ blocks and streams


@in_turn
def test_blocks_and_chunks_do_not_change_a_bit(learner, form, monkeypatch):
    X, y = problem(400)
    learner = clone(learner).set_params(gamma=0.3)
    whole = learner.fit(form(X), y)
    _, arrays = known(whole)[0]
    for block in [1, 7, 8, 400]:
        monkeypatch.setattr(dual, "BLOCK_ROWS", block)
        monkeypatch.setattr(type(learner), "_block_rows", lambda self, rows, state: dual.BLOCK_ROWS)
        one = clone(learner).fit(form(X), y)
        np.testing.assert_equal(known(one)[0][1], arrays)
    rng = np.random.default_rng(0)
    cuts = [0, *np.sort(rng.choice(np.arange(1, 400), 30, replace=False)).tolist(), 400]
    chunks = type(learner)(**learner.get_params())
    for start, stop in pairwise(cuts):
        chunks.partial_fit(form(X)[start:stop], y[start:stop], classes=[1, 2, 3, 4])
    streamed = known(chunks)[0][1]
    assert_array_equal(chunks.project(X), whole.project(X))
    for name, array in arrays.items():
        assert_array_equal(streamed[name], array, err_msg=name)


@in_turn
def test_values_kept_between_passes_do_not_change_a_bit(learner, form, monkeypatch):
    X, y = problem(300)
    learner = clone(learner).set_params(gamma=0.3, max_iter=8, shuffle=True, random_state=0)
    kept = []

    def look(iteration):
        kept.append(iteration.model._state.gram is not None)

    monkeypatch.setattr(_base, "KEPT_ROWS", 299)
    without = clone(learner).fit(form(X), y, callbacks=[look])
    assert not any(kept)
    monkeypatch.undo()
    kept.clear()
    for n_jobs in (1, 2):
        model = clone(learner).set_params(n_jobs=n_jobs).fit(form(X), y, callbacks=[look])
        # With few support vectors it pays for few passes or none.
        assert any(kept) == (model.budget is None or 7 * model.budget > 300)
        assert model._state.gram is None
        np.testing.assert_equal(known(model)[0][1], known(without)[0][1])


@form
def test_cached_kernel_values_equal_those_of_a_user_s_kernel(form):
    X, y = problem(200)
    learner = rc.KernelPRank(gamma=0.3, max_iter=6, standardize=False, random_state=0)
    values = np.ascontiguousarray(rbf_kernel(X, gamma=0.3))
    given = clone(learner).set_params(kernel="precomputed").fit(values, y)
    model = learner.fit(form(X), y)
    assert_array_equal(model.support_, given.support_)
    # Kernel values by other sums: rounding.
    assert_allclose(model.project(form(X)), given.project(values), rtol=1e-9, atol=1e-9)


def test_kernel_values_are_symmetric():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 37)) * (rng.random((150, 37)) < 0.6)
    kernel = {"kind": 2, "gamma": 0.1, "coef0": 0.0, "degree": 1}
    for rows in (X, sp.csr_array(X)):
        expected = compiled_values(rows, rows, kernel)
        assert_array_equal(expected, expected.T)
        assert_array_equal(gram(as_rows(rows), 0, 150, kernel), expected)
        assert_array_equal(gram(as_rows(rows), 40, 111, kernel, 2), expected[40:111, 40:111])


@every
def test_dense_equals_sparse_to_the_bit(learner):
    X, y = problem(300)
    learner = clone(learner).set_params(gamma=0.3)
    dense = clone(learner).fit(X, y)
    sparse = clone(learner).fit(sp.csr_array(X), y)
    mixed = clone(learner).partial_fit(X[:150], y[:150], [1, 2, 3, 4])
    mixed.partial_fit(sp.csr_array(X[150:]), y[150:])
    other = clone(learner).partial_fit(sp.csr_array(X[:150]), y[:150], [1, 2, 3, 4])
    other.partial_fit(X[150:], y[150:])
    for model in [sparse, mixed, other]:
        assert_array_equal(model.dual_coef_, dense.dual_coef_)
        assert_array_equal(model.project(X), dense.project(X))
        assert_array_equal(model.project(sp.csr_array(X)), dense.project(X))


@every
def test_saved_models_continue_bit_identically(learner, tmp_path):
    X, y = problem(300)
    learner = clone(learner).set_params(gamma=0.3)
    for convert in [FORMS["dense32"], FORMS["csr64"]]:
        model = clone(learner).partial_fit(convert(X[:200]), y[:200], [1, 2, 3, 4])
        rc.save(model, tmp_path / "model")
        copy = rc.load(tmp_path / "model")
        assert_array_equal(copy.project(X), model.project(X))
        for one in [model, copy]:
            one.partial_fit(convert(X[200:]), y[200:])
        np.testing.assert_equal(known(copy)[0][1], known(model)[0][1])


def test_a_model_without_support_vectors_is_saved_and_continues(tmp_path):
    model = rc.KernelPRank.published(gamma=1.0).partial_fit([[1.0]], [2], classes=[1, 2])
    assert model.support_.size == 0
    assert_array_equal(model.project([[3.0]]), [0.0])
    rc.save(model, tmp_path / "model")
    copy = rc.load(tmp_path / "model")
    for one in [model, copy]:
        one.partial_fit([[1.0], [2.0]], [1, 2])
    assert_array_equal(copy.dual_coef_, model.dual_coef_)


def test_wider_rows_widen_the_pool():
    X, y = problem(200)
    model = rc.KernelPRank.published(gamma=0.3).partial_fit(X[:100].astype(np.float32), y[:100])
    assert model.support_vectors_.dtype == np.float32
    model.partial_fit(X[100:], y[100:])
    assert model.support_vectors_.dtype == np.float64
    assert_array_equal(model.dual_coef_, rc.KernelPRank.published(gamma=0.3).fit(X, y).dual_coef_)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_do_not_change_a_bit(n_jobs, monkeypatch):
    X, y = problem(300)
    model = rc.KernelCuSumRank.published(gamma=0.3).fit(X, y)
    expected = model.project(X)
    monkeypatch.setattr(dual, "SCORED_ROWS", 16)
    assert_array_equal(model.set_params(n_jobs=n_jobs).project(X), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_is_computed_without_a_copy_of_the_data(form, dtype):
    rng = np.random.default_rng(0)
    values = np.where(rng.random((2000, 1000)) < 0.5, rng.normal(2.0, 1.0, (2000, 1000)), 0.0)
    X, y = form(values.astype(dtype)), rng.integers(0, 3, 2000)
    learner = rc.KernelPRank(
        "rbf", gamma="scale", budget=5, max_iter=1, standardize=False, random_state=0
    )
    learner.fit(X[:20], y[:20])
    tracemalloc.start()
    try:
        learner.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    stored = X.nbytes if form is np.asarray else X.data.nbytes
    assert peak < stored / 2  # a copy in float64 is one or two times as large
    expected = 1.0 / (1000 * values.astype(dtype).astype(np.float64).var())
    assert learner.gamma_ == pytest.approx(expected, rel=1e-12)
