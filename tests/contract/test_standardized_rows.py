"""Linear learners of standardised rows: models of rows as they are, whatever their units."""

import contextlib
import signal
import warnings
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from declared import ONLINE, name_of, walk
from rankcore._core.inputs import as_rows
from rankcore._core.standardization import Moments

RANKS = [1, 2, 3, 4]
LINEAR = [one for one in ONLINE if getattr(one._new_model(3, 3), "folds", ())]


def table(n=240, seed=0):
    """Rows with columns of different scales, and ranks that depend on all of them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 4))
    y = np.digitize(Z @ [1, -2, 0.5, 1] + rng.normal(size=n), [-2, 0, 2]) + 1
    return Z * [1, 300, 0.01, 20] + [0, 5000, 3, -40], y


def fitted(learner, X, y, **params):
    """Return a fitted copy, without the warnings of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(learner).set_params(**params).fit(X, y, classes=RANKS)


def streamed(learner, X, y, cuts=()):
    """Return a copy that learned rows in calls that end at the cuts."""
    model = clone(learner)
    for start, stop in pairwise([0, *cuts, len(y)]):
        model.partial_fit(X[start:stop], y[start:stop], classes=RANKS)
    return model


def fixed(learner):
    """Return a copy without automatic scales and margins."""
    given = learner.get_params()
    return clone(learner).set_params(
        **{
            name: value
            for name, value in {
                "threshold_scale": 2.0,
                "margin": 1.0,
                "intercept_scaling": 2.0,
            }.items()
            if name in given
        }
    )


def test_learners_are_linear_ones_with_the_parameter():
    assert {"PRank", "CuSumRank", "OAPVoting", "VotedPRank"} <= {
        type(one).__name__ for one in LINEAR
    }
    for learner in LINEAR:
        assert learner.get_params()["standardize"] == "auto"
        assert type(learner).published().standardize is False


@walk(LINEAR)
def test_fit_equals_a_fit_after_a_standard_scaler(learner):
    X, y = table()
    scaler = StandardScaler().fit(X)
    model = fitted(learner, X, y)
    other = fitted(learner, scaler.transform(X), y, standardize=False)
    more = table(seed=1)[0]
    np.testing.assert_allclose(
        model.decision_function(more), other.decision_function(scaler.transform(more)), rtol=1e-6
    )


@walk(LINEAR)
def test_weighted_fit_equals_a_fit_after_a_weighted_scaler(learner):
    X, y = table()
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    scaler = StandardScaler().fit(X, sample_weight=weights)
    model, other = clone(learner), clone(learner).set_params(standardize=False)
    model.fit(X, y, sample_weight=weights)
    other.fit(scaler.transform(X), y, sample_weight=weights)
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(scaler.transform(X)), rtol=1e-6
    )


@walk(LINEAR)
def test_csr_and_chunk_sizes_do_not_change_a_bit(learner):
    X, y = table()
    X[: len(X) // 2, 0] = 0
    csr = sp.csr_array(X)
    assert fitted(learner, csr, y)._state.model == fitted(learner, X, y)._state.model
    whole = streamed(learner, X, y)
    assert whole._state.model.rows_change
    for cuts in ([1, 2, 3, 17, 100], range(1, len(y))):
        assert streamed(learner, X, y, cuts)._state.model == whole._state.model
    assert streamed(learner, csr, y, [5, 60])._state.model == whole._state.model


@walk(LINEAR)
def test_chunk_sizes_of_a_weighted_stream_do_not_change_a_bit(learner):
    X, y = table()
    X[150, 1] = 1e5  # far from its mean
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    models = []
    for cuts in ((), range(1, len(y)), [2, 5, 90, 131]):
        model = clone(learner)
        for start, stop in pairwise([0, *cuts, len(y)]):
            some = slice(start, stop)
            model.partial_fit(X[some], y[some], classes=RANKS, sample_weight=weights[some])
        models.append(model._state.model)
    assert models[0] == models[1] == models[2]


@walk(LINEAR)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_a_standardised_copy_of_the_rows_changes_no_bit(learner, form, monkeypatch):
    X, y = table()
    model = fitted(learner, form(X), y, max_iter=3)
    monkeypatch.setattr("rankcore.ordinal.training.STANDARDIZED_BYTES", 0)
    assert fitted(learner, form(X), y, max_iter=3)._state.model == model._state.model


@walk(LINEAR)
def test_units_of_a_stream_change_no_score(learner):
    X, y = table()
    model = streamed(learner, X, y)
    before, learned = model.decision_function(X), model._state.model
    rng = np.random.default_rng(0)
    learned.refold(rng.normal(size=4) * [1, 300, 1, 20], rng.uniform(0.2, 5, size=4))
    np.testing.assert_allclose(model.decision_function(X), before, rtol=1e-9, atol=1e-9)
    parts = learned.members() if hasattr(learned, "members") else model._parameters()
    assert all(np.isfinite(np.asarray(part, dtype=float)).all() for part in parts)


@walk(LINEAR)
def test_stream_learns_the_table_about_as_well_as_standardised_rows(learner):
    X, y = table(n=2000)
    Z = StandardScaler().fit_transform(X)
    found = -streamed(learner, X, y).score(X, y)
    raw = -clone(learner).set_params(standardize=False).partial_fit(X, y, RANKS).score(X, y)
    scaled = -clone(learner).set_params(standardize=False).partial_fit(Z, y, RANKS).score(Z, y)
    assert found < 1.15 * scaled
    assert found < 0.8 * raw


@walk(LINEAR)
def test_stream_continues_from_the_units_of_a_fit(learner, tmp_path):
    X, y = table()
    model = fitted(learner, X[:100], y[:100])
    rc.save(model, tmp_path / "model.rankcore")
    loaded = rc.load(tmp_path / "model.rankcore")
    assert loaded._state.model == model._state.model
    for one in (model, loaded):
        one.partial_fit(X[100:], y[100:])
    assert loaded._state.model == model._state.model
    assert model._state.model["column_totals"][0] == len(y)


@walk(LINEAR)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_sparse_rows_are_not_standardised(learner, form):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(300, 24)) * (rng.random((300, 24)) < 0.1)
    y = np.digitize(X[:, :12].sum(axis=1) - X[:, 12:].sum(axis=1), [-0.5, 0, 0.5]) + 1
    X = form(X)
    alone, other = fitted(learner, X, y), fitted(learner, X, y, standardize=False)
    assert not alone._state.model.has_units
    assert np.array_equal(alone.decision_function(X), other.decision_function(X))
    rule = fixed(learner)
    alone = streamed(rule, X, y, [1, 2, 70])
    assert not alone._state.model.has_units
    other = streamed(rule.set_params(standardize=False), X, y)
    assert np.array_equal(alone.decision_function(X), other.decision_function(X))


@walk(LINEAR)
def test_binary_columns_are_not_scaled_and_constants_have_no_effect(learner):
    rng = np.random.default_rng(0)
    X = (rng.random((200, 5)) < 0.5).astype(float)
    y = np.clip(X @ [1, 1, 1, -1, 0], 0, 3).astype(int) + 1
    alone, other = fitted(learner, X, y), fitted(learner, X, y, standardize=False)
    assert np.array_equal(alone.decision_function(X), other.decision_function(X))
    constant = np.column_stack([X, np.full(len(X), 1e6)])
    with_constant = fitted(learner, constant, y)
    np.testing.assert_allclose(
        with_constant.decision_function(constant), alone.decision_function(X), rtol=1e-6, atol=1e-6
    )


@walk(LINEAR)
def test_column_that_changes_its_scale_does_not_dominate(learner):
    X, y = table(n=1500)
    X = np.column_stack([X, np.zeros(len(X))])
    X[500::7, 4] = 5000.0  # 0 in all rows before
    Z = StandardScaler().fit_transform(X)
    scaled = streamed(clone(learner).set_params(standardize=False), Z, y)
    assert -streamed(learner, X, y).score(X, y) < 1.3 * -scaled.score(Z, y)


def stars(n=3000, seed=0):
    """Make standard normal rows, and ranks that are cut from their sum."""
    Z = np.random.default_rng(seed).normal(size=(n, 4))
    return Z, np.digitize(Z.sum(axis=1), [-2, 0, 2]) + 1


@walk(LINEAR)
@pytest.mark.parametrize(
    ("rows", "factor"), [(50, 1e-3), (100, 1e-6), (1000, 0.01)], ids=["50", "100", "1000"]
)
def test_column_that_is_nearly_constant_at_first_does_not_dominate(learner, rows, factor):
    Z, y = stars()
    X = Z.copy()
    X[:rows, 0] *= factor
    losses = [
        np.abs(streamed(learner, data[:2500], y[:2500]).predict(data[2500:]) - y[2500:]).mean()
        for data in (X, Z)
    ]
    # Fewer rows tell about this column; without it the loss is about .5. Hypotheses of the first
    # rows keep their votes.
    assert losses[0] < losses[1] + (0.45 if isinstance(learner, rc.VotedPRank) else 0.3)


@walk(LINEAR)
def test_sparse_rows_before_dense_ones_do_not_dominate(learner):
    Z, _ = stars()
    X = np.abs(Z) * [1e4, 1, 1, 1]
    y = np.digitize(np.abs(Z).sum(axis=1), [2, 3, 4.5]) + 1
    X[:10] = 0
    X[1:10:2, 0] = 2e4
    found = streamed(learner, X[:2500], y[:2500])
    dense = streamed(learner, X[10:2500], y[10:2500])
    losses = [np.abs(one.predict(X[2500:]) - y[2500:]).mean() for one in (found, dense)]
    assert losses[0] < losses[1] + 0.1


@walk(LINEAR)
def test_an_interrupt_while_units_change_waits_for_the_rows(learner, monkeypatch):
    X, y = table()
    expected = streamed(learner, X, y, cuts=range(1, len(y)))
    model = streamed(learner, X[:1], y[:1])
    calls = []

    def interrupted(*arguments, **named):
        calls.append(signal.raise_signal(signal.SIGINT))
        return units(*arguments, **named)

    units = Moments.units
    monkeypatch.setattr(Moments, "units", interrupted)
    for i in range(1, len(y)):
        with contextlib.suppress(KeyboardInterrupt):
            model.partial_fit(X[[i]], y[[i]], classes=RANKS)
    assert calls
    assert model.t_ == expected.t_
    assert model._state.model == expected._state.model


@walk(LINEAR)
def test_one_row_is_enough_to_learn_and_predict(learner):
    model = clone(learner).partial_fit([[5000.0, 0.001]], [2], classes=RANKS)
    assert model.predict([[5000.0, 0.001]]).shape == (1,)
    assert np.isfinite(model.decision_function([[1e4, 0.0]])).all()


@walk([one for one in LINEAR if type(one)._merges])
def test_merged_models_use_units_of_all_rows(learner):
    values = {"half_life": None, "average": False, "average_members": False}
    last = {name: value for name, value in values.items() if name in learner.get_params()}
    X, y = table()
    other = X + np.array([100, 0, 0, 500])
    base = streamed(clone(learner).set_params(**last), X[:40], y[:40])

    models = [deepcopy(base).partial_fit(X[40:], y[40:]), deepcopy(base).partial_fit(other, y)]
    merged = rc.merge(models, weights=[1, 0], base=base)
    for name in ("coef_", "thresholds_", "intercept_"):
        if hasattr(merged, name):
            expected = getattr(models[0], name)
            np.testing.assert_allclose(getattr(merged, name), expected, rtol=1e-6, atol=1e-6)
    found = Moments(4, merged._state.model["column_moments"], merged._state.model["column_totals"])
    expected = Moments(4).add(as_rows(np.vstack([X, other])))
    np.testing.assert_allclose(found.means(), expected.means(), rtol=1e-9)
    np.testing.assert_allclose(found.variances(), expected.variances(), rtol=1e-6)
    merged.partial_fit(other, y)
    assert np.isfinite(merged.decision_function(X)).all()


@walk(LINEAR)
def test_scale_warning_is_issued_only_without_standardised_rows(learner):
    X, y = table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(learner).fit(X, y)
    with pytest.warns(UserWarning, match="not on one scale"):
        clone(learner).set_params(standardize=False).fit(X, y)


@walk(LINEAR)
def test_values_whose_squares_overflow_are_rejected(learner):
    X, y = table()
    X[30, 0], X[31, 0] = 1e300, -1e300
    with pytest.raises(ValueError, match="overflow"):
        clone(learner).fit(X, y)
    model = clone(learner).partial_fit(X[:30], y[:30], classes=RANKS)
    known = model._state.model.copy()
    with pytest.raises(ValueError, match="row 0 overflowed"):
        model.partial_fit(X[30:], y[30:])
    assert model._state.model == known
    model.partial_fit(X[32:], y[32:])
    assert (
        model._state.model
        == streamed(learner, np.delete(X, [30, 31], axis=0), np.delete(y, [30, 31]))._state.model
    )


@walk(LINEAR)
def test_exports_keep_the_digits_of_a_column_far_from_zero(learner, tmp_path):
    pytest.importorskip("onnxruntime")
    X, y = table()
    X[:, 0] += 1e4  # deviations
    model = fitted(learner, X, y)
    # Rows are rounded to float32, products and sums are not.
    found = rc.export(model, tmp_path / "model.onnx", "onnx", check=X)
    assert found.largest_difference < 1e-6
    single = X.astype(np.float32)
    assert np.mean(model.predict(single) == model.predict(X)) > 0.98


@pytest.mark.slow
@walk([one for one in LINEAR if hasattr(type(one), "thresholds_")])
def test_thresholds_ascend_over_a_million_rows_of_drifting_scale(learner):
    rng = np.random.default_rng(0)
    model, n = clone(learner), 20_000
    for part in range(50):
        Z = rng.normal(size=(n, 3))
        y = np.digitize(Z @ [1, -1, 0.5], [-1, 0, 1]) + 1
        X = Z * 10.0 ** (part / 10) + 3.0 * part
        model.partial_fit(X, y, classes=RANKS)
        assert (np.diff(model.thresholds_) >= 0).all()
    assert model.t_ == 1_000_000


def test_test_ids_of_learners_are_unique():
    assert len({name_of(one) for one in LINEAR}) == len(LINEAR)
