"""The warning of a fit that is no better than the best constant rank."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, walk, with_defaults
from rankcore.datasets import dump_letor, open_rows
from rankcore.ordinal.training import FEW_ROWS, MEASURED_ROWS, constant_loss

# Whose fits are measured: others count votes, or compute kernels, which may cost more than the fit.
MEASURED = [one for one in with_defaults(ONLINE) if one._checks_constant]
MESSAGE = "no better than the best constant label"


def curved(n=300, seed=0):
    """Rows whose ranks depend on their length alone."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.digitize((X**2).sum(axis=1), [0.6, 4.0])


def noisy(n=400, seed=0):
    """Rows of which a direction explains little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(0.4 * X[:, 0] + rng.normal(size=n), [-1.5, 0.0, 1.5])


def messages(learner, X, y=None, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.fit(X, y, **given)
    return [str(one.message) for one in caught if MESSAGE in str(one.message)]


@pytest.mark.parametrize("n", [3, 4, 10])
def test_the_best_constant_is_the_median(n):
    for seed in range(20):
        counts = np.random.default_rng(seed).integers(0, 9, n)
        counts[0] += 1
        ranks = np.repeat(np.arange(n), counts)
        least = min(np.abs(ranks - one).mean() for one in range(n))
        assert constant_loss(counts) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("n", [100, 3 * MEASURED_ROWS])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_a_curve_is_not_fitted_by_a_direction(n, form):
    X, y = curved(n)
    X = form(X)
    found = messages(rc.PRank(random_state=0), X, y)
    assert len(found) == 1
    assert "try KernelPRank or OrdinalBoost" in found[0]
    assert not messages(rc.KernelPRank(random_state=0, max_iter=5), X[:300], y[:300])


@walk(MEASURED)
def test_a_direction_that_explains_little_is_better_than_a_constant(learner):
    X, y = noisy()
    model = clone(learner)
    assert not messages(model, X, y)
    constant = constant_loss(np.bincount(y))
    assert -model.score(X, y) < constant
    if isinstance(learner, rc.PRank):  # the mean of the models is better than each
        assert model.history_["rank_loss"][-1] > constant


@walk(ONLINE)
def test_rows_of_one_label_are_named(learner):
    X = noisy(60)[0]
    with pytest.warns(UserWarning, match="all training rows have the label 2, and") as of:
        clone(learner).fit(X, np.full(60, 2), classes=[1, 2, 3])
    assert len(of) == 1


def test_a_kernel_learner_does_not_name_itself():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.permutation(np.repeat([0, 1, 2], [3, 34, 3]))
    model = rc.KernelPRank(kernel="linear", random_state=0, max_iter=1)
    (found,) = messages(model, X, y)
    assert "try OrdinalBoost, or" in found


@pytest.mark.parametrize(
    "given",
    [
        {"learner": rc.PRank.published(max_iter=3)},
        {"learner": rc.OAPBPM.published(random_state=0)},
        {"learner": rc.VotedPRank(random_state=0)},
        {"learner": rc.PRank(class_weight="balanced", random_state=0)},
        {"learner": rc.PRank(random_state=0), "sample_weight": np.tile([1.0, 2.0], 150)},
    ],
    ids=["published", "published ensemble", "votes", "class weights", "weights"],
)
def test_constant_is_not_checked_for_presets_votes_and_weights(given):
    assert not messages(given.pop("learner"), *curved(), **given)


def test_few_rows_are_not_measured():
    X, y = curved()
    model = rc.PRank(random_state=0, classes=[0, 1, 2])
    assert messages(model, X[: 2 * FEW_ROWS], y[: 2 * FEW_ROWS])
    assert not messages(model, X[: FEW_ROWS - 1], y[: FEW_ROWS - 1])


def test_a_stream_is_not_measured():
    X, y = curved()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rc.PRank().partial_fit(X, y).partial_fit(X, y)


@pytest.mark.parametrize("cached", [False, True])
def test_all_rows_on_disk_are_measured(cached, tmp_path, monkeypatch):
    for name, (X, y) in (("curved", curved(150)), ("noisy", noisy(150))):
        order = np.argsort(y, kind="stable")
        dump_letor(X[order], y[order], tmp_path / f"{name}.txt")
        cache = {"cache": tmp_path / name} if cached else {}
        rows = open_rows(tmp_path / f"{name}.txt", n_features=X.shape[1], **cache)
        found = messages(rc.PRank(random_state=0), rows)
        assert len(found) == (name == "curved")


def test_labels_may_be_words_in_any_order():
    X, y = curved()
    words = np.array(["low", "mid", "high"])[y]
    assert messages(rc.PRank(random_state=0, classes=["low", "mid", "high"]), X, words)


def test_overflowing_scores_are_reported_by_predict():
    X, y = curved()
    messages(rc.PRank(random_state=0), 1e150 * X, y)
