"""Learners of labels that learn online: interrupted calls, copies, files and streams."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from declared import ONLINE, walk
from rankcore.online import evaluate
from rankcore.progress import watch


def ordinal_data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X @ [1, 2, -1, 0] + rng.normal(size=n), [-2, 0, 2])


@walk(ONLINE)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_interrupted_partial_fit_has_learned_the_blocks_before(monkeypatch, learner, form):
    X, y = ordinal_data(400)
    monkeypatch.setattr(type(learner), "_block_rows", lambda self, rows, state: 10)
    learner = clone(learner).set_params(random_state=0)
    model = clone(learner).partial_fit(form(X[:60]), y[:60], classes=[0, 1, 2, 3])
    model.predict(form(X[:5]))
    seen = []

    def interrupt(progress):
        seen.append(progress.done)
        if len(seen) == 20:
            raise KeyboardInterrupt

    with watch(interrupt), pytest.raises(KeyboardInterrupt):
        model.partial_fit(form(X[60:]), y[60:])
    alone = clone(learner).partial_fit(form(X[:60]), y[:60], classes=[0, 1, 2, 3])
    for first, last in [(60, 60 + seen[-1]), (60 + seen[-1], 400)]:
        if first > 60:
            model.partial_fit(form(X[first:last]), y[first:last])
        alone.partial_fit(form(X[first:last]), y[first:last])
        expected = alone.decision_function(X[:9])
        np.testing.assert_array_equal(model.decision_function(X[:9]), expected)
        assert model.history_ == alone.history_


@walk(ONLINE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_pickled_models_continue(learner):
    X, y = ordinal_data()
    model = clone(learner).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(
        copy.partial_fit(X, y).decision_function(X), model.partial_fit(X, y).decision_function(X)
    )


def uses_last_parameters(learner):
    """Whether `predict` can be set to the rule of the updates: no votes, no sorted thresholds."""
    return "average" in learner.get_params() and type(learner).__name__ != "OrdinalLogistic"


@walk([one for one in ONLINE if uses_last_parameters(one)])
def test_update_loss_curve_measures_the_last_parameters(learner):
    """Of rows as they are: standardised ones change their units with each row."""
    X, y = ordinal_data(100)
    known = learner.get_params()
    plain = {"average": False, "standardize": False, "half_life": None, "decision": "cusum"}
    plain = {name: value for name, value in plain.items() if name in known}
    model = clone(learner).set_params(**plain)
    rows = [(X[i : i + 1], y[i : i + 1]) for i in range(100)]
    found = evaluate(model, rows, window=1, classes=[0, 1, 2, 3])
    losses = [one.latest["rank_loss"] for one in found.windows[1:]]
    seen, means = model.update_loss_curve_.T
    assert seen.tolist() == [*range(1, 101)]
    np.testing.assert_allclose(np.diff(means * seen), losses, atol=1e-9)
