"""PRank against the paper: worked numbers, a plain implementation, and its theorems."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from reference.prank import prank
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel

TIES = ["crammer", "strict"]
GOLDEN_A = np.array([[1, 0], [0, 1], [1, 1], [2, 0]]), np.array([3, 1, 2, 3])
GOLDEN_B = np.array([[1, 0], [0, 1], [1, 1], [1, -1], [0, 1]]), np.array([2, 1, 3, 2, 3])
# Per step: score, predicted rank, w, b.
TRACE_A = [
    (0, 3, (0, 0), (0, 0)),
    (0, 3, (0, -2), (1, 1)),
    (-2, 1, (1, -1), (0, 1)),
    (2, 3, (1, -1), (0, 1)),
]
TRACE_B = {
    "crammer": [
        (0, 3, (0, 0), (-1, 1)),
        (0, 2, (0, -1), (0, 1)),
        (-1, 1, (2, 1), (-1, 0)),
        (1, 3, (1, 2), (-1, 1)),
        (2, 3, (1, 2), (-1, 1)),
    ],
    "strict": [
        (0, 3, (-1, 0), (0, 1)),
        (0, 2, (-1, -1), (1, 1)),
        (-2, 1, (1, 1), (0, 0)),
        (0, 3, (0, 2), (0, 1)),
        (2, 3, (0, 2), (0, 1)),
    ],
}


def check_trace(X, y, trace, tie):
    model = rc.PRank.published(tie=tie)
    total = 0
    for t, (x, true, (score, rank, w, b)) in enumerate(zip(X, y, trace, strict=True)):
        if t:
            assert model.project([x]) == score
            assert model.predict([x]) == rank
        else:
            assert (score, rank) == (0, 3)  # nothing learned: score 0, all thresholds 0
        model.partial_fit([x], [true], classes=[1, 2, 3])
        np.testing.assert_array_equal(model.coef_, w)
        np.testing.assert_array_equal(model.thresholds_, b)
        total += abs(rank - true)
        assert model.history_["average_rank_loss"] == [total / (t + 1)]
    return model, total


@pytest.mark.parametrize("tie", TIES)
def test_first_run_has_the_golden_values(tie):
    X, y = GOLDEN_A
    model, total = check_trace(X, y, TRACE_A, tie)
    assert total == 3
    model = rc.PRank.published(max_iter=2, tie=tie).fit(X, y)
    assert model.history_["mistakes"] == [2, 0]
    assert model.history_["average_rank_loss"] == [3 / 4, 3 / 8]


@pytest.mark.parametrize("tie", TIES)
def test_second_run_has_the_golden_values(tie):
    X, y = GOLDEN_B
    _, total = check_trace(X, y, TRACE_B[tie], tie)
    assert total == 5
    assert np.abs(prank(X, y, 3, tie)["taus"]).sum() == {"crammer": 6, "strict": 5}[tie]
    model = rc.PRank.published(average=True, tie=tie).fit(X, y)
    w, b = {"crammer": ((0.8, 0.8), (-0.8, 0.8)), "strict": ((-0.2, 0.8), (0.2, 0.8))}[tie]
    np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-15)  # one rounding of 1/5
    np.testing.assert_allclose(model.thresholds_, b, rtol=0, atol=1e-15)


def as_forms(X):
    """Return the same matrix in forms that must learn the same model."""
    dense = X.toarray()
    padded = np.full((len(dense), dense.shape[1] + 3), np.nan, dense.dtype)
    padded[:, 1 : 1 + dense.shape[1]] = dense
    return {
        "csr": X,
        "dense": dense,
        "fortran": np.asfortranarray(dense),
        "strided rows": padded[:, 1 : 1 + dense.shape[1]],
        "csc": sp.csc_array(X),
        "int64 indices": sp.csr_array(
            (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape
        ),
    }


@given(
    problem=ordinal_problems(),
    tie=st.sampled_from(TIES),
    scale=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    epochs=st.integers(1, 3),
)
@settings(max_examples=examples(150), deadline=None)
def test_models_of_integer_data_equal_the_plain_form(problem, tie, scale, epochs):
    # Integer values: every score is exact in any order of summation, so ties between score and
    # threshold are real, and every decision and every weight must agree to the bit.
    X, y, k = problem
    expected = prank(X.toarray().astype(float), y, k, tie, scale, epochs)
    for form, data in as_forms(X).items():
        model = rc.PRank.published(max_iter=epochs, tie=tie, threshold_scale=scale)
        model.fit(data, y, classes=range(1, k + 1))
        np.testing.assert_array_equal(model.coef_, expected["w"], form)
        np.testing.assert_array_equal(model.thresholds_, expected["b"], form)
        per_epoch = expected["losses"].reshape(epochs, -1)
        assert model.history_["rank_loss"] == per_epoch.mean(axis=1).tolist()
        assert model.history_["mistakes"] == (per_epoch > 0).sum(axis=1).tolist()
        assert model.t_ == epochs * len(y)


@given(problem=ordinal_problems(integers=False, max_rows=60), tie=st.sampled_from(TIES))
@settings(max_examples=examples(100), deadline=None)
def test_models_of_real_data_equal_the_plain_form(problem, tie):
    # Scores are sums in different orders here, but they decide alike unless a score is within
    # rounding of a threshold, which random reals do not reach; then the weights, formed by the
    # same multiply-adds in the same order, agree to the bit (float32 rows are exact in float64).
    X, y, k = problem
    expected = prank(X.toarray().astype(float), y, k, tie)
    for form, data in as_forms(X).items():
        model = rc.PRank.published(tie=tie).fit(data, y, classes=range(1, k + 1))
        np.testing.assert_array_equal(model.coef_, expected["w"], form)
        np.testing.assert_array_equal(model.thresholds_, expected["b"], form)


@given(
    problem=ordinal_problems(),
    tie=st.sampled_from(TIES),
    scale=st.sampled_from([0.3, 1.0]),
    epochs=st.integers(1, 3),
)
@settings(max_examples=examples(100), deadline=None)
def test_lazy_average_is_the_mean_over_rounds(problem, tie, scale, epochs):
    X, y, k = problem
    expected = prank(X.toarray().astype(float), y, k, tie, scale, epochs)
    model = rc.PRank.published(max_iter=epochs, tie=tie, threshold_scale=scale, average=True)
    model.fit(X, y, classes=range(1, k + 1))
    # Sums of up to 90 integers below 2**53 are exact; what remains is one division each.
    np.testing.assert_allclose(model.coef_, expected["w_mean"], rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(model.thresholds_, expected["b_mean"], rtol=1e-14, atol=1e-13)
    assert (np.diff(model.thresholds_) >= 0).all()


@given(problem=ordinal_problems(), tie=st.sampled_from(TIES), scale=st.sampled_from([0.1, 1.0, 7]))
@settings(max_examples=examples(100), deadline=None)
def test_thresholds_stay_ordered_on_their_lattice(problem, tie, scale):
    X, y, k = problem
    model = rc.PRank.published(tie=tie, threshold_scale=scale)
    before = np.zeros(k - 1)
    for i in range(len(y)):
        weights = model.coef_ if i else np.zeros(X.shape[1])
        wrong = i == 0 or model.predict(X[[i]])[0] != y[i]
        model.partial_fit(X[[i]], y[[i]], classes=range(1, k + 1))
        steps = model.thresholds_ / scale**2
        np.testing.assert_allclose(steps, np.rint(steps), rtol=0, atol=1e-9)  # division rounds
        assert (np.diff(model.thresholds_) >= 0).all()
        assert np.abs(np.rint(steps) - np.rint(before)).max() <= 1
        if not wrong:
            np.testing.assert_array_equal(model.coef_, weights)
            np.testing.assert_array_equal(steps, before)
        # The weights move along the example only.
        moved = np.flatnonzero(model.coef_ - weights)
        assert set(moved) <= set(X[[i]].indices)
        before = steps


@given(seed=st.integers(0, 10**6), k=st.integers(2, 6), tie=st.sampled_from(TIES))
@settings(max_examples=examples(60), deadline=None)
def test_mistakes_on_separable_data_stay_below_the_bound(seed, k, tie):
    rng = np.random.default_rng(seed)
    d, n = 5, 60
    w = rng.normal(size=d)
    b = np.sort(rng.normal(size=k - 1))
    X = rng.normal(size=(n, d))
    margins = np.abs((X @ w)[:, None] - b).min(axis=1)
    X = X[margins > 0.05]
    y = 1 + ((X @ w)[:, None] >= b).sum(axis=1)
    norm = np.sqrt(w @ w + b @ b)
    gamma = (np.abs((X @ w)[:, None] - b) / norm).min()
    R2 = (X**2).sum(axis=1).max()
    sharp = ((k - 1) * R2 + 1) / gamma**2
    assert sharp <= (k - 1) * (R2 + 1) / gamma**2

    model = rc.PRank.published(max_iter=200, tie=tie).fit(X, y, classes=range(1, k + 1))
    total = np.dot(model.history_["rank_loss"], model.history_["examples"])
    assert total <= sharp
    moved = np.abs(prank(X, y, k, tie, epochs=5)["taus"]).sum()
    assert moved <= sharp


@given(problem=ordinal_problems(), power=st.integers(-4, 4), tie=st.sampled_from(TIES))
@settings(max_examples=examples(50), deadline=None)
def test_scaling_rows_and_thresholds_together_changes_nothing(problem, power, tie):
    X, y, k = problem
    factor = 2.0**power  # exact
    one = rc.PRank.published(tie=tie).fit(X, y, classes=range(1, k + 1))
    other = rc.PRank.published(tie=tie, threshold_scale=factor).fit(
        X * factor, y, classes=range(1, k + 1)
    )
    assert one.history_ == other.history_
    np.testing.assert_array_equal(one.predict(X), other.predict(X * factor))


@given(problem=ordinal_problems(), scale=st.sampled_from([1.0, 2.0, 0.5]))
@settings(max_examples=examples(50), deadline=None)
def test_threshold_scale_is_a_shared_constant_feature(problem, scale):
    # PRank on x augmented by the constant c, with thresholds as that feature's weights: a step of
    # the threshold's weight v by tau * c moves its product c * v by c**2 * tau.
    X, y, k = problem
    dense = X.toarray().astype(float)
    w, v = np.zeros(dense.shape[1]), np.zeros(k - 1)
    for x, true in zip(dense, y, strict=True):
        score = w @ x
        predicted = 1 + (score >= scale * v).sum()
        if predicted != true:
            sign = np.where(true > np.arange(1, k), 1, -1)
            tau = sign * ((score - scale * v) * sign <= 0)
            w, v = w + tau.sum() * x, v - tau * scale
    model = rc.PRank.published(threshold_scale=scale).fit(X, y, classes=range(1, k + 1))
    np.testing.assert_array_equal(model.coef_, w)
    np.testing.assert_array_equal(model.thresholds_, scale * v)


@given(
    problem=ordinal_problems(integers=False),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    average=st.booleans(),
    tie=st.sampled_from(TIES),
)
@settings(max_examples=examples(100), deadline=None)
def test_partial_fit_over_chunks_is_fit(problem, cuts, average, tie):
    X, y, k = problem
    whole = rc.PRank.published(average=average, tie=tie).fit(X, y, classes=range(1, k + 1))
    chunked = rc.PRank.published(average=average, tie=tie)
    edges = sorted({0, len(y), *(cut for cut in cuts if cut < len(y))})
    for start, stop in pairwise(edges):
        chunked.partial_fit(X[start:stop], y[start:stop], classes=range(1, k + 1))
    np.testing.assert_array_equal(whole.coef_, chunked.coef_)
    np.testing.assert_array_equal(whole.thresholds_, chunked.thresholds_)
    np.testing.assert_array_equal(whole.update_loss_curve_, chunked.update_loss_curve_)
    assert whole.history_ == chunked.history_
    assert whole.n_iter_ == chunked.n_iter_ == 1


def test_shuffle_uses_a_permutation_of_numpy_s_generator():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.integers(1, 4, size=50)
    model = rc.PRank.published(max_iter=3, shuffle=True, random_state=7).fit(X, y)
    generator, order = np.random.default_rng(7), np.arange(50, dtype=np.int32)
    rows = []
    for _ in range(3):
        generator.shuffle(order)
        rows.extend(order.tolist())
    assert rows[:50] != rows[50:100]
    expected = rc.PRank.published().fit(X[rows], y[rows], classes=[1, 2, 3])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.thresholds_, expected.thresholds_)


def test_loss_curve_is_the_running_mean_at_round_counts():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(1234, 3)), rng.integers(1, 6, size=1234)
    losses = prank(X, y, 5)["losses"]
    curve = rc.PRank.published().fit(X, y).update_loss_curve_
    counts = [*range(1, 100), *range(100, 1000, 10), *range(1000, 1235, 100)]
    assert curve[:, 0].tolist() == counts
    expected = np.cumsum(losses)[np.array(counts) - 1] / counts
    np.testing.assert_array_equal(curve[:, 1], expected)


def separable(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    z = X @ [1.0, -2.0, 0.5]
    keep = np.abs(z[:, None] - [-1.0, 1.0]).min(axis=1) > 0.2
    return X[keep], 1 + (z[keep, None] >= [-1.0, 1.0]).sum(axis=1)


def test_tol_stops_after_a_perfect_pass():
    X, y = separable()
    model = rc.PRank.published(max_iter=1000, tol=0.0).fit(X, y)
    assert model.history_["mistakes"][-1] == 0
    assert 0 not in model.history_["mistakes"][:-1]
    assert model.n_iter_ < 1000
    assert model.score(X, y) == 0
    assert not np.signbit(model.score(X, y))


def test_tol_stops_when_the_loss_stalls():
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(1, 4, size=100)
    model = rc.PRank.published(max_iter=500, tol=0.01).fit(X, y)
    losses = model.history_["rank_loss"]
    assert 6 <= model.n_iter_ < 500
    best, stale = np.inf, 0
    for i, loss in enumerate(losses):
        stale = 0 if loss < best - 0.01 else stale + 1
        best = min(best, loss)
        assert (stale == 5) == (i == len(losses) - 1)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        rc.PRank.published(max_iter=3, tol=0.01).fit(X, y)
    assert rc.PRank.published(max_iter=20).fit(X, y).n_iter_ == 20


@pytest.mark.parametrize("average", [False, True])
def test_predict_is_searchsorted_of_the_projection(average):
    rng = np.random.default_rng(3)
    X, y = rng.integers(-2, 3, size=(300, 4)), rng.integers(0, 40, size=300)
    model = rc.PRank.published(average=average).fit(X, y)
    assert len(model.classes_) > 17  # more thresholds than are counted one by one
    scores = model.project(X)
    np.testing.assert_allclose(scores, X @ model.coef_, rtol=1e-12, atol=1e-12)  # sum order
    ranks = np.searchsorted(model.thresholds_, scores, side="right")
    np.testing.assert_array_equal(model.predict(X), model.classes_[ranks])
    assert model.score(X, y) == -np.abs(ranks - np.searchsorted(model.classes_, y)).mean()


def test_averages_follow_the_stream():
    # The average is kept between predictions: it must not outlive the examples it was taken over.
    X, y = separable()
    model = rc.PRank.published(average=True).fit(X, y)
    first = model.coef_
    model.partial_fit(X, y)
    expected = rc.PRank.published(average=True, max_iter=2).fit(X, y)
    assert (model.coef_ != first).any()
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_verbose_prints_a_line_a_pass(capsys):
    X, y = separable()
    rc.PRank.published(max_iter=2, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "epoch 2 of 2" in lines[1]
    rc.PRank.published(max_iter=5, verbose=2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert ["epoch 2 of 5" in lines[0], "epoch 4 of 5" in lines[1]] == [True, True]
    rc.PRank.published(max_iter=2).fit(X, y)
    assert capsys.readouterr().out == ""


def test_interrupt_at_the_end_of_a_fit_leaves_a_valid_model():
    class Stop(BaseException):
        """Ctrl-C, but for this test alone."""

    class Interrupted(rc.PRank):
        """Stopped as soon as any of these attributes is set by itself."""

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name in {"feature_names_in_", "n_features_in_", "ranks_"}:
                raise Stop

    X, y = separable()
    model = Interrupted().fit(X, y)
    assert model.fit(X[:, :2], y + 1) is model
    assert (model.coef_.size, model.classes_.tolist()) == (model.n_features_in_, [2, 3, 4])
