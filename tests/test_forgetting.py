"""Averages that forget: compared with averages of all stored iterates, by age."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import ORDINAL, as_they_are, first_of_each, walk

pytestmark = pytest.mark.kernel

CLASSES = [0, 1, 2, 3]


def averaging(learner):
    """Return the name of the parameter on which a learner averages."""
    return type(learner)._model_class.averaged_by


# Constants that do not depend on the rows of the first call.
CONSTANTS = {"threshold_scale": 2.0, "margin": 1.0, "intercept_scaling": 2.0}


def with_constants(learner):
    """Return a copy with fixed constants that learns from rows as they are."""
    known = learner.get_params()
    given = {name: value for name, value in CONSTANTS.items() if name in known}
    return as_they_are(learner).set_params(**given)


# Learners whose averages can forget.
FORGETFUL = [
    clone(one).set_params(**{averaging(one): True})
    for one in first_of_each(ORDINAL)
    if "half_life" in one.get_params()
]


def stream(n=80, seed=0, n_features=5):
    """Return rows with zeros, and ranks of a direction that turns halfway."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    score = X[:, 0] * np.where(np.arange(n) < n // 2, 1, -1) + X[:, 1]
    y = np.digitize(score + rng.normal(size=n) / 3, [-1, 0, 1])
    y[:4] = CLASSES
    return X, y


def iterates(learner, X, y):
    """Yield the averaged arrays after each row, of a learner that does not average."""
    last = clone(learner).set_params(**{averaging(learner): False})
    for row, label in zip(X, y, strict=True):
        last.partial_fit([row], [label], classes=CLASSES)
        model = last._state.model
        averaged = [name for name, form in model.forms.items() if form.averaged]
        yield {name: model[name].copy() for name in averaged}


def by_age(arrays, half_life):
    """Return the mean of arrays, of which the last has the age 0, weighted by age."""
    age = np.arange(len(arrays))[::-1]
    weights = 0.5 ** (age / half_life)
    return np.tensordot(weights / weights.sum(), np.array(arrays, dtype=np.float64), axes=1)


@walk(FORGETFUL)
@pytest.mark.parametrize("half_life", [1, 7.5, 1e3, 1e12])
def test_average_equals_that_of_all_iterates_by_age(learner, half_life):
    X, y = stream()
    learner = with_constants(learner)
    found = clone(learner).set_params(half_life=half_life)
    stored = []
    for row, label, arrays in zip(X, y, iterates(learner, X, y), strict=True):
        found.partial_fit([row], [label], classes=CLASSES)
        stored.append(arrays)
        if len(stored) in (1, 2, 3, 30, 80):
            for name in arrays:
                if name == "thresholds" and isinstance(learner, rc.OrdinalLogistic):
                    continue  # the first row of a rank moves them for all rows before, too
                expected = by_age([one[name] for one in stored], half_life)
                mean = found._state.model.mean(name)
                np.testing.assert_allclose(mean, expected, rtol=1e-10, atol=1e-10)


@walk(FORGETFUL)
def test_average_remains_that_of_all_iterates_when_weights_are_divided(learner):
    X, y = stream(1200)
    learner = with_constants(learner)
    found = clone(learner).set_params(half_life=1.3).partial_fit(X, y, classes=CLASSES)
    assert found._state.model.times() < 2**512  # of 2**923
    stored = [*iterates(learner, X, y)][-200:]
    for name in stored[0]:
        expected = by_age([one[name] for one in stored], 1.3)
        mean = found._state.model.mean(name)
        np.testing.assert_allclose(mean, expected, rtol=1e-10, atol=1e-10)


@walk(FORGETFUL)
def test_average_in_units_remains_when_weights_are_divided(learner):
    X, y = stream(1200)
    X = X * [1, 10, 0.1, 3, 1] + [5, -40, 0, 1, 1]  # columns with means of their own
    learner = clone(learner).set_params(random_state=0)
    found = clone(learner).set_params(half_life=1.3)
    last = clone(learner).set_params(**{averaging(learner): False})
    stored = []
    for i in range(1200):
        for one in (found, last):
            one.partial_fit(X[i : i + 1], y[i : i + 1], classes=CLASSES)
        if i >= 1000:  # units change for the last time at row 1,024
            stored.append(public(last))
    for name, mean in public(found).items():
        expected = by_age([one[name] for one in stored], 1.3)
        np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9, err_msg=name)


def public(model):
    """Return the parameters of a fitted model that averages of rows have, too."""
    names = ["coef_", "intercept_"] if hasattr(model, "intercept_") else ["coef_"]
    if isinstance(model, rc.PRank) or hasattr(model, "estimators_"):
        names.append("thresholds_")
    return {name: np.asarray(getattr(model, name)) for name in names}


def test_worked_example_has_the_computed_average():
    X, y = [[1, 0], [0, 1], [1, 1], [1, -1], [0, 1]], [2, 1, 3, 2, 3]
    model = rc.PRank.published(average=True, half_life=1).fit(X, y)
    # (0, 0), (0, -1), (2, 1), (1, 2), (1, 2) with weights 1, 2, 4, 8, 16.
    np.testing.assert_allclose(model.coef_, [32 / 31, 50 / 31], rtol=1e-15)
    np.testing.assert_allclose(model.thresholds_, [-29 / 31, 27 / 31], rtol=1e-15)


@walk(FORGETFUL)
@pytest.mark.parametrize("standardize", [False, "auto"])
@pytest.mark.parametrize("half_life", [1, 40])
def test_chunk_sizes_do_not_change_the_model(learner, half_life, standardize):
    X, y = stream(900)
    learner = with_constants(learner).set_params(
        half_life=half_life, standardize=standardize, random_state=0
    )
    whole = clone(learner).partial_fit(X, y, classes=CLASSES)
    cut = clone(learner)
    for part in np.split(np.arange(900), [1, 2, 10, 130, 131, 700]):
        cut.partial_fit(X[part], y[part], classes=CLASSES)
    assert cut._state.model == whole._state.model
    # With its zeros: omitted ones change the order in which products are summed.
    columns, starts = np.tile(np.arange(5), 900), np.arange(0, 4501, 5)
    stored = sp.csr_array((X.ravel(), columns, starts), shape=X.shape)
    sparse = clone(learner).partial_fit(stored, y, classes=CLASSES)
    for name, array in whole._state.model.saved().items():
        np.testing.assert_array_equal(sparse._state.model[name], array, err_msg=name)


@walk(FORGETFUL)
def test_fit_in_order_equals_one_pass_of_a_stream(learner):
    X, y = stream()
    learner = as_they_are(learner).set_params(half_life=9, random_state=0)
    streamed = clone(learner).partial_fit(X, y, classes=CLASSES)
    fitted = clone(learner).set_params(max_iter=1, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(fitted.decision_function(X), streamed.decision_function(X))


@walk(FORGETFUL)
def test_saved_model_continues_as_if_uninterrupted(learner, tmp_path):
    X, y = stream(700)
    learner = clone(learner).set_params(half_life=1.5, random_state=0)
    whole = clone(learner).partial_fit(X, y, classes=CLASSES)
    begun = clone(learner).partial_fit(X[:500], y[:500], classes=CLASSES)
    rc.save(begun, tmp_path / "begun.rankcore")
    loaded = rc.load(tmp_path / "begun.rankcore").partial_fit(X[500:], y[500:])
    assert loaded.half_life == 1.5
    assert loaded._state.model == whole._state.model


@walk([one for one in FORGETFUL if averaging(one) == "average"])
def test_long_half_life_equals_the_plain_average(learner):
    X, y = stream()
    plain = clone(learner).set_params(random_state=0).fit(X, y)
    forgetful = clone(learner).set_params(random_state=0, half_life=1e100).fit(X, y)
    np.testing.assert_allclose(
        forgetful.decision_function(X), plain.decision_function(X), rtol=1e-9, atol=1e-9
    )


@walk(FORGETFUL)
def test_thresholds_of_an_average_ascend(learner):
    X, y = stream(3000, seed=3)
    learner = clone(learner).set_params(half_life=2.0, random_state=0)
    for start in range(0, 3000, 100):
        learner.partial_fit(X[start : start + 100], y[start : start + 100], classes=CLASSES)
        for one in getattr(learner, "estimators_", [learner]):
            if hasattr(one, "thresholds_"):
                assert (np.diff(one.thresholds_) >= 0).all()


@walk(FORGETFUL)
@pytest.mark.parametrize("half_life", [0, 0.5, -3, np.nan, np.inf, 10**400])
def test_half_life_rejects_numbers_out_of_range(learner, half_life):
    X, y = stream()
    name = type(learner).__name__
    with pytest.raises(ValueError, match=rf"{name}: half_life must be .*number in \[1, 1e\+100\]"):
        clone(learner).set_params(half_life=half_life).fit(X, y)


@walk(FORGETFUL)
@pytest.mark.parametrize("half_life", [True, "long", [3]])
def test_half_life_rejects_other_types(learner, half_life):
    X, y = stream()
    with pytest.raises((TypeError, ValueError), match="half_life must be .*; got"):
        clone(learner).set_params(half_life=half_life).fit(X, y)


@walk(FORGETFUL)
def test_half_life_requires_an_average(learner):
    X, y = stream()
    average = averaging(learner)
    learner = clone(learner).set_params(**{average: False, "half_life": 10})
    with pytest.raises(ValueError, match=f"half_life .* requires {average}=True; got"):
        learner.fit(X, y)


@walk(FORGETFUL)
def test_half_life_is_built_into_a_model(learner):
    X, y = stream()
    model = clone(learner).partial_fit(X, y, classes=CLASSES)
    with pytest.raises(ValueError, match="half_life=10.0 differs from the None"):
        model.set_params(half_life=10).partial_fit(X, y)


@walk(FORGETFUL)
def test_models_that_forget_are_merged_by_their_averages(learner):
    X, y = stream(300)
    learner = clone(learner).set_params(half_life=20, random_state=0)
    base = clone(learner).partial_fit(X[:100], y[:100], classes=CLASSES)
    shards = [rc.merge([base]).partial_fit(X[i:300:2], y[i:300:2]) for i in (100, 101)]
    merged = rc.merge(shards, [3, 1], base=base)
    assert merged.t_ == 300
    mean = (3 * shards[0].coef_ + shards[1].coef_) / 4
    np.testing.assert_allclose(merged.coef_, mean, rtol=1e-10, atol=1e-10)
    continued = merged.partial_fit(X, y)
    assert np.isfinite(continued.decision_function(X)).all()


@walk(FORGETFUL)
def test_half_life_may_change_in_a_stream(learner):
    X, y = stream()
    model = with_constants(learner).set_params(half_life=30.0)
    model.partial_fit(X[:40], y[:40], classes=CLASSES)
    model.set_params(half_life=5.0).partial_fit(X[40:], y[40:])
    total, means = 0.0, {}
    for t, arrays in enumerate(iterates(with_constants(learner).set_params(half_life=None), X, y)):
        weight = (2 ** (1 / (30 if t < 40 else 5)) - 1) * total + 1
        total += weight
        for name, array in arrays.items():
            mean = means.setdefault(name, np.zeros_like(array, dtype=float))
            mean += weight / total * (array - mean)
    for name, mean in means.items():
        if name == "thresholds" and isinstance(learner, rc.OrdinalLogistic):
            continue  # the first row of a rank moves them for all rows before, too
        np.testing.assert_allclose(model._state.model.mean(name), mean, rtol=1e-9, atol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    assert again.partial_fit(X, y)._state.model == model.partial_fit(X, y)._state.model


@walk(FORGETFUL)
def test_failed_call_does_not_change_the_half_life(learner):
    X, y = stream()
    model = clone(learner).set_params(half_life=30.0).partial_fit(X, y, classes=CLASSES)
    calls = [
        (np.full_like(X, np.nan), y, {}),
        (X, y + 4, {}),
        (X[:, :2], y, {}),
        (X, y, {"class_weight": "balanced"}),
        (X, y, {"standardize": not model.standardize}),
    ]
    before, params = model._state.model.copy(), model.get_params()
    for rows, labels, more in calls:
        with pytest.raises((ValueError, TypeError), match="NaN|label|features|weight|standardize"):
            model.set_params(half_life=5.0, **more).partial_fit(rows, labels)
        model.set_params(**params)
        assert model._state.model == before
        assert model._state.settings["half_life"] == 30.0
    model.set_params(half_life=5.0).partial_fit(X, y)
    assert model._state.settings["half_life"] == model._state.model.half_life == 5.0


def test_half_life_may_change_after_columns_appeared():
    X, y = stream()
    model = rc.PRank(half_life=30.0).partial_fit(X[:, :3], y, classes=CLASSES)
    model.partial_fit(X, y, grow=True).set_params(half_life=5.0).partial_fit(X, y)
    model.partial_fit(X, y)
    assert model._state.model.half_life == 5.0


def test_half_life_may_not_begin_or_be_chosen_in_a_stream():
    X, y = stream()
    model = rc.PRank().partial_fit(X, y, classes=CLASSES)
    with pytest.raises(ValueError, match="half_life=5.0 differs from the None"):
        model.set_params(half_life=5).partial_fit(X, y)
    model = rc.PRank(half_life=5).partial_fit(X, y, classes=CLASSES)
    with pytest.raises(ValueError, match="half_life='auto' differs from the 5.0"):
        model.set_params(half_life="auto").partial_fit(X, y)
