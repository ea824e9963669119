"""The warning that a fitted learner is no better than one rank for all rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

import rankcore as rc

MESSAGE = "ranks the rows it learned from no better than one rank"
CORNERS = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])


def crossed(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which no direction tells the two ranks apart better than one rank for all."""
    return np.tile(CORNERS, (n, 1)), np.tile([1, 1, 2, 2], n)


def quiet_fit(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X, y, **more)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n", [10, 1000])
def test_a_learner_behind_the_constant_names_those_that_need_no_line(form, n):
    X, y = crossed(n)
    with pytest.warns(UserWarning, match=rf"^PRank {MESSAGE}.*KernelPRank or OrdinalBoost$"):
        model = rc.PRank.published(max_iter=3).fit(form(X), y)
    assert np.abs(model.predict(X) - y).mean() >= 0.5


def test_a_kernel_learner_names_trees_alone():
    X, y = crossed(10)
    with pytest.warns(UserWarning, match=rf"^KernelPRank {MESSAGE}.*try OrdinalBoost$"):
        rc.KernelPRank.published(kernel="linear", max_iter=3).fit(X, y)


@pytest.mark.parametrize("learner", [rc.KernelPRank, rc.KernelCuSumRank])
def test_a_learner_that_beats_the_constant_is_quiet(learner):
    X, y = crossed(10)
    model = quiet_fit(learner(random_state=0), X, y)
    assert np.array_equal(model.predict(X), y)


def test_a_mean_that_beats_the_constant_is_quiet_though_its_last_pass_did_not():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 2 * rng.normal(size=60) > 0).astype(int)
    model = quiet_fit(rc.PRank(margin=0.0, random_state=0), X, y)
    constant = np.abs(y - np.median(y)).mean()
    assert model.history_["rank_loss"][-1] >= constant > np.abs(model.predict(X) - y).mean()


def test_one_label_has_nothing_to_beat():
    quiet_fit(rc.PRank(classes=[1, 2], random_state=0), [[1.0], [2.0]], [1, 1])


def test_weighted_rows_are_not_compared():
    X, y = crossed(10)
    quiet_fit(rc.PRank.published(), X, y, sample_weight=np.full(y.size, 2))
