"""The margin of PRank's thresholds: parity with plain forms, order, bounds, files."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankcore as rc
from rankcore.bounds import prank_mistake_bound
from reference.ensemble import largest, oap, times, voted
from reference.kernel import kernel_oap, kernel_prank, linear
from reference.prank import prank
from strategies import NIGHTLY, examples, ordinal_problems

TIES = st.sampled_from(["crammer", "strict"])
MARGINS = st.sampled_from([0.5, 1.0, 7.0])
FAMILY = [rc.PRank, rc.VotedPRank, rc.OAPBPM, rc.OAPBagging, rc.OAPVoting]
KERNELS = [rc.KernelPRank, rc.KernelOAPBPM]


AUTO = 2.0  # mean squared lengths


def numbers(n=200, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n, 4))
    return X, np.digitize(X @ [1, -1, 0.5, 0] / scale + 0.5 * rng.normal(size=n), [-1, 0, 1])


def quick(kind, **params):
    names = kind().get_params()
    fixed = {"n_estimators": 4, "max_iter": 2, "random_state": 0}
    return kind(**{name: value for name, value in fixed.items() if name in names}, **params)


# ---------------------------------------------------------------------------- plain forms


@given(
    problem=ordinal_problems(),
    tie=TIES,
    margin=MARGINS,
    scale=st.sampled_from([0.5, 1.0, 2.0]),
    epochs=st.integers(1, 3),
)
@settings(max_examples=examples(100), deadline=None)
def test_prank_with_a_margin_equals_the_plain_form(problem, tie, margin, scale, epochs):
    # Integers and binary fractions: sums are exact, so that scores at an edge are really there.
    X, y, k = problem
    expected = prank(X.toarray().astype(float), y, k, tie, scale, epochs, margin)
    params = {"max_iter": epochs, "tie": tie, "threshold_scale": scale, "margin": margin}
    for rows in (X, X.toarray()):
        model = rc.PRank.published(**params).fit(rows, y, range(1, k + 1))
        np.testing.assert_array_equal(model.coef_, expected["w"])
        np.testing.assert_array_equal(model.thresholds_, expected["b"])
        losses = expected["losses"].reshape(epochs, -1)
        assert model.history_["rank_loss"] == losses.mean(axis=1).tolist()
        assert model.history_["mistakes"] == (losses > 0).sum(axis=1).tolist()
    mean = rc.PRank.published(average=True, **params).fit(X, y, range(1, k + 1))
    np.testing.assert_allclose(mean.coef_, expected["w_mean"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mean.thresholds_, expected["b_mean"], rtol=1e-12, atol=1e-12)


@given(
    problem=ordinal_problems(max_rows=30), tie=TIES, margin=MARGINS, count_init=st.integers(0, 1)
)
@settings(max_examples=examples(60), deadline=None)
def test_voted_prank_with_a_margin_equals_the_plain_form(problem, tie, margin, count_init):
    X, y, k = problem
    hypotheses, counts = voted(X.toarray().astype(float), y, k, tie, count_init, margin)
    kept = largest(counts, 5)
    model = rc.VotedPRank.published(
        tie=tie, margin=margin, count_init=count_init, max_hypotheses=5
    ).fit(X, y, range(1, k + 1))
    assert model.votes_.tolist() == [counts[i] for i in kept]
    np.testing.assert_array_equal(model.hypotheses_, [hypotheses[i][0] for i in kept])
    np.testing.assert_array_equal(model.hypothesis_thresholds_, [hypotheses[i][1] for i in kept])


@given(
    problem=ordinal_problems(max_rows=25),
    tie=TIES,
    margin=MARGINS,
    sampling=st.sampled_from(["bernoulli", "poisson"]),
    n=st.integers(1, 6),
)
@settings(max_examples=examples(60), deadline=None)
def test_members_with_a_margin_equal_the_plain_form(problem, tie, margin, sampling, n):
    X, y, k = problem
    dense = X.toarray().astype(float)
    params = {
        "n_estimators": n,
        "tau": 0.4,
        "sampling": sampling,
        "tie": tie,
        "margin": margin,
        "random_state": 5,
    }
    model = rc.OAPBPM.published(**params).fit(X, y, range(1, k + 1))
    seed, tau = int(model._state.model["seed"][0]), 0.4 if sampling == "bernoulli" else None
    masks = np.array([[times(seed, j, t, tau) for t in range(len(y))] for j in range(n)])
    members, w, b = oap(dense, y, k, masks, tie, margin)
    for found, member in zip(model.estimators_, members, strict=True):
        if member is None:
            continue
        assert found.margin_ == margin
        np.testing.assert_array_equal(found.coef_, member["w"])
        np.testing.assert_array_equal(found.thresholds_, member["b"])
        assert found.t_ == len(member["losses"])
        assert found.history_["mistakes"] == [np.count_nonzero(member["losses"])]
        assert found.history_["rank_loss"] == [member["losses"].mean()]
    np.testing.assert_allclose(model.coef_, w[-1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.thresholds_, b[-1], rtol=1e-12, atol=1e-12)
    if sampling == "bernoulli":
        dual = rc.KernelOAPBPM.published(kernel="linear", **params).fit(X, y, range(1, k + 1))
        expected = kernel_oap(dense, y, k, linear, masks, tie, margin)
        np.testing.assert_array_equal(dual.member_thresholds_, expected["b"])
        np.testing.assert_array_equal(dual.thresholds_, model.thresholds_)


@given(problem=ordinal_problems(max_rows=30), tie=TIES, margin=MARGINS, epochs=st.integers(1, 2))
@settings(max_examples=examples(60), deadline=None)
def test_kernel_prank_with_a_margin_equals_the_plain_form(problem, tie, margin, epochs):
    X, y, k = problem
    expected = kernel_prank(X.toarray().astype(float), y, k, linear, tie, epochs, margin)
    model = rc.KernelPRank.published(kernel="linear", tie=tie, margin=margin, max_iter=epochs)
    model.fit(X, y, range(1, k + 1))
    np.testing.assert_array_equal(model.thresholds_, expected["b"])
    np.testing.assert_array_equal(model.dual_coef_[0], expected["alpha"].reshape(-1))


# ---------------------------------------------------------------------------- theorems


@given(
    rows=st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=60),
    margin=st.floats(0, 1e4),
    scale=st.floats(1e-3, 1e3),
    tie=TIES,
    seed=st.integers(0, 9),
)
@settings(max_examples=examples(100), deadline=None)
def test_thresholds_stay_ordered_whatever_margin_and_scale(rows, margin, scale, tie, seed):
    # No number is round here, so that the order must survive rounding too.
    X = np.array(rows)[: len(rows) // 2 * 2].reshape(-1, 2)
    y = np.random.default_rng(seed).integers(0, 5, len(X))
    model = rc.PRank.published(margin=margin, threshold_scale=scale, tie=tie)
    before = np.zeros(4, np.int64)
    for x, one in zip(X, y, strict=True):
        model.partial_fit([x], [one], range(5))
        steps = model._state.model["steps"]
        assert (np.diff(steps) >= 0).all()
        assert (np.diff(model.thresholds_) >= 0).all()
        assert (np.abs(steps - before) <= 1).all()
        before = steps.copy()


@pytest.mark.sampled
@pytest.mark.parametrize("demanded", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_prank_stays_below_its_bound(demanded, scale):
    rng = np.random.default_rng(3)
    cuts = np.array([-0.7, 0.7])
    for _ in range(5 if NIGHTLY else 2):
        X = rng.normal(size=(40, 3))
        w = rng.normal(size=3)
        w /= np.linalg.norm(w)
        X = X[np.abs((X @ w)[:, None] - cuts).min(axis=1) > 0.1]
        y = np.digitize(X @ w, cuts)
        unit = np.sqrt(1 + ((cuts / scale) ** 2).sum())
        separated = np.abs((X @ w)[:, None] - cuts).min() / unit
        model = rc.PRank.published(max_iter=1000, margin=demanded, threshold_scale=scale)
        model.fit(X, y)
        longest = np.linalg.norm(X, axis=1).max()
        bound = prank_mistake_bound(3, longest, separated, threshold_scale=scale, demanded=demanded)
        assert 0 < model.update_loss_curve_[-1].prod() <= bound
        # The bound is one on all moves.
        moves = np.abs(prank(X, y + 1, 3, "crammer", scale, 200, demanded)["taus"])
        assert moves.sum() <= bound
        if demanded == 20.0:
            plain = prank_mistake_bound(3, longest, separated, threshold_scale=scale)
            assert bound > plain
    # In the end every row beats every threshold by the margin.
    assert model.history_["mistakes"][-1] == 0
    distances = np.abs(model.project(X)[:, None] - model.thresholds_)
    assert distances.min() >= demanded


def test_the_bound_needs_the_margin():
    # Two rows that a perceptron separates at once go on moving thresholds for a margin's sake.
    X, y = np.array([[1.0], [-1.0]]), np.array([2, 1])
    moves = np.abs(prank(X, y, 2, epochs=500, margin=100.0)["taus"]).sum()
    separated = 1.0  # by w = 1, b = 0
    assert prank_mistake_bound(2, 1.0, separated) < moves
    assert moves <= prank_mistake_bound(2, 1.0, separated, demanded=100.0)


# ---------------------------------------------------------------------------- the parameter


@pytest.mark.parametrize("kind", FAMILY)
def test_automatic_margin_is_fixed_by_the_first_call(kind):
    X, y = numbers(scale=4.0)
    square = quick(kind).fit(X, y)._state.model["scale"][0] / 4
    model = quick(kind, margin="auto").fit(X, y)
    assert model.margin_ == AUTO * square
    given_ = quick(kind, margin=AUTO * square).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), given_.decision_function(X))
    plain = quick(kind, margin=0.0).fit(X, y)
    assert (model.decision_function(X) != plain.decision_function(X)).any()
    stream = quick(kind, margin="auto")
    for rows in np.split(np.arange(200), 4):
        stream.partial_fit(X[rows] * (1 if rows[0] == 0 else 100), y[rows], range(4))
    first = quick(kind, margin="auto", threshold_scale=1.0).partial_fit(X[:50], y[:50], range(4))
    assert stream.margin_ == first.margin_ > 0


@pytest.mark.parametrize("kind", KERNELS)
def test_automatic_margin_of_kernels_uses_the_feature_space(kind):
    X, y = numbers()
    assert quick(kind, margin="auto").fit(X, y).margin_ == AUTO
    of_rows = quick(kind, margin="auto", kernel="linear").fit(X, y).margin_
    assert of_rows == quick(rc.PRank, margin="auto").fit(X, y).margin_


@pytest.mark.parametrize("kind", FAMILY + KERNELS)
def test_published_preset_has_no_margin(kind):
    X, y = numbers()
    assert kind.published().get_params()["margin"] == 0.0
    assert kind.published().fit(X, y).margin_ == 0.0


@pytest.mark.parametrize("kind", FAMILY + KERNELS)
@pytest.mark.parametrize("margin", [-1.0, np.nan, np.inf, "large", None])
def test_bad_margins_are_rejected(kind, margin):
    with pytest.raises((TypeError, ValueError), match="margin"):
        quick(kind, margin=margin).fit(*numbers())


def test_a_stream_keeps_its_margin():
    X, y = numbers()
    model = rc.PRank(margin=2.0).partial_fit(X, y)
    with pytest.raises(ValueError, match="margin"):
        model.set_params(margin=3.0).partial_fit(X, y)


@pytest.mark.parametrize("kind", FAMILY + KERNELS)
@pytest.mark.parametrize("margin", ["auto", 1.5])
def test_files_keep_the_margin(tmp_path, kind, margin):
    X, y = numbers()
    model = quick(kind, margin=margin).fit(X, y)
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.margin_ == model.margin_ > 0
    np.testing.assert_array_equal(
        loaded.partial_fit(X, y).decision_function(X), model.partial_fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("kind", FAMILY + KERNELS)
def test_load_rejects_negative_margins(tmp_path, kind):
    X, y = numbers()
    model = quick(kind, margin=1.0).fit(X, y)
    model._state.model["margin"][0] = -2.0
    rc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"margin must be >= 0, .* got -2\.0"):
        rc.load(tmp_path / "model")


def test_models_of_different_margins_are_not_merged():
    X, y = numbers()
    learner = rc.PRank(margin="auto", threshold_scale=1.0, standardize=False)
    models = [clone(learner).partial_fit(factor * X, y, range(4)) for factor in (1, 100)]
    with pytest.raises(ValueError, match="different margins"):
        rc.merge(models)
    base = rc.PRank(margin="auto").partial_fit(X, y, range(4))
    shards = [deepcopy(base).partial_fit(X[i::2], y[i::2]) for i in range(2)]
    assert rc.merge(shards, base=base).margin_ == base.margin_


def test_rows_within_the_margin_are_no_mistakes():
    # All are ranked rightly from the first on, and yet within the margin.
    X, y = [[2.0], [-2.0]] * 5, [2, 1] * 5
    model = rc.PRank.published(margin=1000.0).fit(X, y)
    assert model.history_["mistakes"] == [0]
    assert np.abs(model.coef_) == 20.0  # every row moves it by its length
    members = rc.OAPVoting.published(n_estimators=1, tau=1.0, margin=1000.0).fit(X, y)
    assert members._votes().tolist() == [10]
    assert members.coef_ == model.coef_
