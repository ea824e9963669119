"""Models of online learners own their arrays: forms, copies, checks for overflow."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, walk

pytestmark = pytest.mark.kernel

N_FEATURES, N_RANKS = 3, 4
FIXED = ("features", "ranks", "tasks")


def new_model(learner):
    return learner._new_model(N_FEATURES, N_RANKS)


def rebuilt(model, arrays):
    return type(model)(N_FEATURES, N_RANKS, model.settings, arrays)


@walk(ONLINE)
def test_model_rejects_an_array_of_another_form(learner):
    model = new_model(learner)
    arrays = model.saved()
    assert rebuilt(model, arrays) == model
    for name, array in arrays.items():
        other = np.float32 if array.dtype == np.float64 else np.float64
        wrong = [array.astype(other), array[np.newaxis]]
        for at, axis in enumerate(model.forms[name].axes):
            if axis in FIXED or isinstance(axis, int):
                wrong += [np.concatenate([array, array], axis=at), array.take([], axis=at)]
        for changed in wrong:
            with pytest.raises(ValueError, match=f"the array {name} has shape .* expected"):
                rebuilt(model, arrays | {name: changed})
        if sum(size > 1 for size in array.shape) > 1:
            with pytest.raises(ValueError, match=f"the array {name} must be in C order"):
                rebuilt(model, arrays | {name: np.asfortranarray(array)})
    del arrays[name]
    with pytest.raises(ValueError, match=f"the array {name} is missing"):
        rebuilt(model, arrays)


@walk(ONLINE)
def test_model_requires_features_and_two_ranks(learner):
    model = new_model(learner)
    for n_features, n_ranks in [(0, 3), (3, 1)]:
        with pytest.raises(ValueError, match="requires n_features >= 1 and n_ranks >= 2"):
            type(model)(n_features, n_ranks, model.settings, model.saved())


@walk(ONLINE)
def test_copies_of_a_model_do_not_change_with_it(learner):
    model = new_model(learner)
    model["counts"][0] = 7
    for copied in (model.copy(), deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert copied == model
        assert copied.t == 7
        copied["counts"][0] = 8
        assert copied != model
        assert model.t == 7


@walk(ONLINE)
def test_model_detects_overflow_in_any_column(learner):
    model = new_model(learner)
    assert model.is_finite()
    for name, (array, axis) in model.by_feature().items():
        if model.forms[name].past:
            continue
        for column in range(N_FEATURES):
            place = tuple(column if at == axis else -1 for at in range(array.ndim))
            for value in (np.inf, -np.inf, np.nan):
                array[place] = value
                assert not model.is_finite()
                assert not model.is_finite(np.array([column], np.int32))
                assert model.is_finite(np.array([(column + 1) % N_FEATURES], np.int32))
                array[place] = 0.0
    assert model.is_finite()
    with pytest.raises(ValueError, match="no column 3"):
        model.is_finite(np.array([3, 0], np.int32))


def test_read_only_model_learns_in_copies():
    X, y = np.eye(3), [1, 2, 3]
    learner = rc.PRank(random_state=0).fit(X, y)
    expected = deepcopy(learner).partial_fit(X, y)
    for array in learner._state.model.arrays.values():
        array.flags.writeable = False
    frozen = learner._state.model = rebuilt_as(learner)
    assert not frozen["weights"].flags.writeable
    learner.partial_fit(X, y)
    assert learner._state == expected._state


def rebuilt_as(learner):
    model = learner._state.model
    return type(model)(3, 3, model.settings, model.saved())


@walk(ONLINE)
def test_model_may_be_restored_with_more_ranks(learner):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40)
    small, large = (clone(learner).fit(X, y % k) for k in (2, 40))
    model = small._state.model
    model.__setstate__(deepcopy(large._state.model).__getstate__())
    assert model == large._state.model
    small.ranks_ = large.ranks_
    assert np.array_equal(small.partial_fit(X, y).predict(X), large.partial_fit(X, y).predict(X))


@walk(ONLINE)
def test_model_without_arrays_cannot_be_used(learner):
    kind = type(new_model(learner))
    with pytest.raises((TypeError, AttributeError)):
        kind.__new__(kind).t  # noqa: B018  raises
