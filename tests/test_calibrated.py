"""Probabilities of ranks: the curves against plain forms, held-out rows, coverage of sets."""

import itertools
import tracemalloc
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import rankcore as rc
from declared import ONLINE, walk, with_defaults
from model_files import rewrite, set_in
from rankcore._core.conformal import before_each, conformal_quantile
from rankcore.ordinal.curves import fit_cumulative, fit_isotonic
from reference import calibration
from strategies import examples

pytestmark = pytest.mark.kernel


def problem(n=600, seed=0, k=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.clip(np.round(X.sum(axis=1) + rng.normal(size=n)) + (k + 1) // 2, 1, k)
    return X, y.astype(int)


# ---------------------------------------------------------------- curves


@given(st.integers(0, 10**6), st.integers(2, 6), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_cumulative_logits_are_the_most_likely(seed, k, weighted):
    rng = np.random.default_rng(seed)
    n = 60
    ranks = np.concatenate([np.arange(k), rng.integers(0, k, n - k)]).astype(np.int32)
    scores = ranks * rng.normal() + rng.normal(size=n)
    weights = rng.integers(0, 3, n).astype(float) if weighted else np.ones(n)
    weights[:k] = np.maximum(weights[:k], 1)
    found = fit_cumulative(scores, ranks, k, weights if weighted else None)
    assert (np.diff(found.thresholds) > 0).all()
    free = np.append(found.thresholds, found.slope)

    def slope(step):
        """Central difference of the plain penalised loss."""
        both = (calibration.penalised_loss(free + h, scores, ranks, weights, k) for h in step)
        return (next(both) - next(both)) / 2e-5

    slopes = np.array([slope((h, -h)) for h in 1e-5 * np.eye(k)])
    if found.slope == 0:  # the best slope is not positive
        assert slopes[-1] > -1e-6
        slopes = slopes[:-1]
    # Differences of a function of some tens are good for six digits.
    assert np.abs(slopes).max() < 1e-4 * max(1.0, found.slope, abs(found.thresholds).max())


def test_probabilities_of_cumulative_logits_keep_both_tails():
    found = fit_cumulative(np.array([0.0, 1, 2, 3]), np.array([0, 1, 0, 1], np.int32), 2, None)
    far = 800 / found.slope
    # Far out on both sides: no 0 / 0, and the smaller one is not lost.
    for score in (-far, far):
        table = found.probabilities(np.array([score]))
        assert np.isfinite(table).all()
        assert table.sum() == pytest.approx(1)
    expected = 1 / (1 + np.exp(found.slope * 0.3 - found.thresholds[0]))
    assert found.probabilities(np.array([0.3]))[0, 0] == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(2, 5))
@settings(max_examples=examples(40), deadline=None)
def test_isotonic_curves_average_each_threshold_with_the_logits(seed, k):
    rng = np.random.default_rng(seed)
    ranks = np.concatenate([np.arange(k), rng.integers(0, k, 50 - k)]).astype(np.int32)
    scores = rng.integers(0, 12, 50) / 4.0  # ties
    found = fit_isotonic(scores, ranks, k, None)
    table = found.probabilities(scores)
    assert (table >= 0).all()
    assert_allclose(table.sum(axis=1), 1, rtol=1e-14)
    above = 1 - np.cumsum(table, axis=1)
    # Cumulative logits, linear between steps, count as 80 rows of each rank beside the 50 rows.
    at_steps = fit_cumulative(scores, ranks, k, None).probabilities(found.knots)
    logits = 1 - np.cumsum(at_steps, axis=1)
    for r in range(k - 1):
        step = IsotonicRegression().fit_transform(scores, ranks > r)
        smooth = np.interp(scores, found.knots, logits[:, r])
        expected = (50 * step + 80 * k * smooth) / (50 + 80 * k)
        assert_allclose(above[:, r], expected, atol=1e-12)
    assert (found.above > 0).all()
    assert (found.above < 1).all()
    assert (np.diff(found.above, axis=0) >= 0).all()
    assert (np.diff(found.above, axis=1) <= 0).all()
    between = found.probabilities(np.linspace(-1, 4, 101))
    assert (np.diff(1 - np.cumsum(between, axis=1), axis=0) >= -1e-12).all()


# ---------------------------------------------------------------- sets


def plain_before(p):
    members = [int(np.argmax(p))]
    found = {members[0]: 0.0}
    while len(members) < len(p):
        sides = [i for i in (min(members) - 1, max(members) + 1) if 0 <= i < len(p)]
        taken = max(sides, key=lambda i: (p[i], -i))
        found[taken] = sum(p[i] for i in members)
        members.append(taken)
    return [found[i] for i in range(len(p))]


@given(st.lists(st.integers(1, 5), min_size=2, max_size=7))
@settings(max_examples=examples(200), deadline=None)
def test_sets_grow_towards_the_more_probable_rank(counts):
    p = np.array(counts) / sum(counts)
    assert_allclose(before_each(p[None])[0], plain_before(p), rtol=1e-12, atol=0)


def test_conformal_quantiles_equal_those_by_hand():
    scores = np.arange(1.0, 20)[::-1]
    assert conformal_quantile(scores, 0.9) == 18  # the 18th of 19: 20 * .9
    assert conformal_quantile(scores, 0.95) == 19
    assert conformal_quantile(scores, 0.96) == np.inf
    assert conformal_quantile(scores, 0.05) == 1


@pytest.mark.parametrize("method", ["cumulative", "isotonic"])
def test_coverage_equals_the_requested_probability(method):
    shares = []
    for seed in range(8):
        X, y = problem(2400, seed)
        model = rc.CalibratedOrdinal(rc.PRank(random_state=0), method=method, cv=3)
        model.fit(X[:400], y[:400]).conformalize(X[400:1400], y[400:1400])
        low, high = model.predict_set(X[1400:], 0.8).T
        shares.append(((low <= y[1400:]) & (y[1400:] <= high)).mean())
    # Beta(801, 200) over calibration rows, and 1000 rows each to count: .018 a run.
    assert abs(np.mean(shares) - 0.8) < 4 * 0.018 / np.sqrt(8)


@pytest.mark.parametrize(
    "model",
    [
        rc.CalibratedOrdinal(rc.PRank(random_state=0)),
        rc.CalibratedOrdinal(rc.CuSumRank(random_state=0), method="isotonic"),
        rc.OrdinalBoost(10),
        rc.OrdinalBoost(10, tasks="shared"),
        rc.OrdinalBoost(10, tasks="shared", link="cumulative"),
    ],
    ids=repr,
)
def test_sets_grow_with_coverage_from_the_most_probable_rank_to_all_ranks(model):
    X, y = problem()
    model.fit(X[:300], y[:300]).conformalize(X[300:340], y[300:340])
    levels = [0, 0.0, 1e-12, 0.01, 1 / 41, 0.1, 0.3, 0.5, 0.9, 40 / 41, 0.99, 1]
    sets = [model.predict_set(X, coverage) for coverage in levels]
    probable = model.classes_[model.predict_proba(X).argmax(axis=1)]
    assert_array_equal(sets[0], np.column_stack([probable, probable]))
    assert_array_equal(sets[-1], np.tile([1, 5], (len(X), 1)))
    for smaller, larger in itertools.pairwise(sets):
        assert (larger[:, 0] <= smaller[:, 0]).all()
        assert (smaller[:, 1] <= larger[:, 1]).all()


def test_sets_are_neighbours_and_never_empty():
    X, y = problem()
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X[:300], y[:300])
    with pytest.raises(NotFittedError, match=r"call conformalize\(X, y\)"):
        model.predict_set(X)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        rc.CalibratedOrdinal().predict_set(X)
    model.conformalize(X[300:], y[300:])
    smaller = model.predict_set(X, 0.01)
    assert (smaller[:, 0] == smaller[:, 1]).all()
    assert_array_equal(model.predict_set(X, 0.9999), np.tile([1, 5], (len(X), 1)))
    sizes = [np.ptp(model.predict_set(X, coverage), axis=1).mean() for coverage in (0.5, 0.7, 0.9)]
    assert sizes == sorted(sizes)
    with pytest.raises(ValueError, match="coverage"):
        model.predict_set(X, 1.5)


# ---------------------------------------------------------------- the estimator


class Recorder(ClassifierMixin, BaseEstimator):
    """A learner that writes down which rows it has learned, and which it predicts."""

    log: ClassVar[list] = []

    def fit(self, X, y, classes=None):
        self.seen_ = set(X[:, 0].tolist())
        self.classes_ = np.asarray(classes)
        return self

    def project(self, X):
        Recorder.log.append((len(self.seen_), self.seen_ & set(X[:, 0].tolist()), len(X)))
        return X[:, 0]


def test_calibration_uses_scores_of_held_out_rows():
    X = np.arange(100.0)[:, None]
    y = np.repeat([1, 2], 50)
    Recorder.log.clear()
    model = rc.CalibratedOrdinal(Recorder(), cv=KFold(4, shuffle=True, random_state=0)).fit(X, y)
    learned, held_out = Recorder.log[:-1:2], Recorder.log[1:-1:2]
    assert [(n, rows) for n, _, rows in learned] == [(75, 75)] * 4
    assert [(n, seen, rows) for n, seen, rows in held_out] == [(75, set(), 25)] * 4
    assert Recorder.log[-1][0] == 100
    assert model.center_ == X.mean()
    assert model.scale_ == X.std()


PIPED = make_pipeline(StandardScaler(), rc.PRank(random_state=0))


@walk([*with_defaults(ONLINE), PIPED])
@pytest.mark.parametrize(("method", "k"), [("cumulative", 4), ("isotonic", 2)])
def test_every_ordinal_learner_is_calibrated(learner, method, k):
    X, y = problem(k=k)
    model = rc.CalibratedOrdinal(learner, method=method).fit(X[:400], y[:400])
    table = model.predict_proba(X[400:])
    assert table.shape == (200, k)
    assert_allclose(table.sum(axis=1), 1)
    assert (np.diff(model.predict_cumulative_proba(X[400:]), axis=1) >= 0).all()
    constant = np.tile(np.bincount(y[:400], minlength=k + 1)[1:] / 400, (200, 1))
    loss = rc.metrics.ranked_probability_score
    labels = range(1, k + 1)
    # Half of what the shares of the labels score.
    assert loss(y[400:], table, labels=labels) < 0.6 * loss(y[400:], constant, labels=labels)
    if k == 2 and not hasattr(learner, "steps"):
        again = rc.CalibratedOrdinal(learner, method=method).fit(sp.csr_array(X[:400]), y[:400])
        assert_allclose(again.predict_proba(sp.csr_array(X[400:])), table, atol=1e-6)


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "squared"])
def test_predictions_minimise_the_expected_cost(loss):
    X, y = problem()
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0), loss=loss).fit(X, y)
    table = model.predict_proba(X)
    cost = {"absolute": lambda d: abs(d), "zero_one": lambda d: d != 0, "squared": lambda d: d**2}
    for p, predicted in zip(table[:100], model.predict(X[:100]), strict=True):
        expected = [sum(p[r] * cost[loss](r - j) for r in range(5)) for j in range(5)]
        assert expected[predicted - 1] == pytest.approx(min(expected))


def test_predictions_for_kappa_beat_all_others_in_expectation():
    X, y = problem(40, k=3)
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0), loss="kappa", cv=2).fit(X, y)
    ranks = np.arange(3)
    # The rows to which the rule was fitted: scores of held-out rows.
    scores = np.linspace(-2, 2, 7)
    table = model.curves_.probabilities(scores)
    from itertools import product

    from rankcore.ordinal.curves import expected_costs

    costs = expected_costs("kappa", table, ranks)
    mean = table.mean(axis=0) @ ranks
    spread = table.mean(axis=0) @ (ranks - mean) ** 2

    def one_minus_kappa(predicted):
        squared = sum(table[i] @ (ranks - p) ** 2 for i, p in enumerate(predicted))
        chance = sum((p - mean) ** 2 + spread for p in predicted)
        return squared / chance

    best = min(map(one_minus_kappa, product(range(3), repeat=7)))
    assert one_minus_kappa((table @ costs).argmin(axis=1)) == pytest.approx(best)
    assert model.score(X, y) == pytest.approx(
        rc.metrics.quadratic_weighted_kappa(y, model.predict(X), labels=[1, 2, 3])
    )


def test_the_lowest_of_ranks_with_equal_costs_is_predicted():
    from rankcore._ext.calibration import cheapest_ranks

    costs = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    tie = np.array([0.1, 0.4, 0.25, 0.25])  # the second and the third rank cost 0.85
    towards = np.array([0.0, -1.0, 1.0, 0.0])
    table = np.vstack([tie + by * towards for by in (0.0, 1e-15, -1e-15, 1e-9, -1e-9)])
    found = np.empty(5, dtype=np.int32)
    cheapest_ranks(table, costs, found)
    assert found.tolist() == [1, 1, 1, 2, 1]
    cheapest_ranks(table, costs - 10.0, found)  # those of kappa may be below 0
    assert found.tolist() == [1, 1, 1, 2, 1]


def test_a_frozen_learner_is_not_fitted_again():
    X, y = problem()
    learner = rc.PRank(random_state=0).fit(X[:300], y[:300])
    model = rc.CalibratedOrdinal(FrozenEstimator(learner)).fit(X[300:], y[300:])
    assert_allclose(learner.project(X), model.estimator_.estimator.project(X))
    assert model.score(X[300:], y[300:]) > -1


def test_string_labels_weights_and_feature_names_are_passed_on():
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    names = np.array(["", "bad", "poor", "fair", "good", "best"])
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0))
    model.fit(frame, names[y], classes=names[1:], sample_weight=np.ones(len(y)))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    numbers = clone(model).fit(X, y)
    assert_array_equal(model.predict(frame), names[numbers.predict(X)])
    doubled = clone(model).fit(X, y, sample_weight=np.where(y < 3, 4.0, 1.0))
    assert doubled.predict_proba(X)[:, :2].sum() > 1.3 * numbers.predict_proba(X)[:, :2].sum()


def test_searches_run_and_failed_fits_change_nothing():
    X, y = problem(200)
    search = GridSearchCV(
        rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=3),
        {"method": ["cumulative", "isotonic"], "estimator__max_iter": [1, 5]},
        cv=3,
    ).fit(X, y)
    assert search.best_score_ > -1
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X, y)
    before = model.predict_proba(X)
    for change, message in [
        ({"method": "platt"}, "method must be"),
        ({"loss": "hinge"}, "loss must be"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"cv": 500}, "cv=500 exceeds the number of rows of every label"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.set_params(**change).fit(X, y)
        model.set_params(method="cumulative", loss="absolute", cv=5)
        assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(TypeError, match="with project or decision_function"):
        rc.CalibratedOrdinal(_Mute()).fit(X, y)


def test_labels_may_be_half_stars():
    X, y = problem()
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0))
    table = clone(model).fit(X, y).predict_proba(X)
    halves = model.fit(X, y + 0.5)
    assert halves.classes_.tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert_array_equal(halves.predict_proba(X), table)


@pytest.mark.parametrize("cv", [3, GroupKFold(3), LeaveOneGroupOut()], ids=str)
def test_rows_of_a_group_are_held_out_together(cv):
    X, y = problem(300)
    groups = np.random.default_rng(0).integers(0, 9, 300)
    seen = []

    class Watched(rc.PRank):
        def fit(self, X, y, classes=None):
            seen.append(set(X[:, 0]))
            return super().fit(X, y, classes)

    rc.CalibratedOrdinal(Watched(random_state=0), cv=cv).fit(X, y, groups=groups)
    *folds, every = seen
    assert len(every) == 300
    assert len(folds) == (9 if cv is None or "Leave" in str(cv) else 3)
    for group in range(9):
        rows = set(X[groups == group, 0])
        inside = [len(rows & learned) for learned in folds]
        assert sorted({*inside}) == [0, len(rows)]
        assert inside.count(0) == 1


def test_groups_come_by_metadata_routing():
    X, y = problem(300)
    groups = np.repeat(np.arange(30), 10)
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=GroupKFold(3))
    with pytest.raises(ValueError, match=r"cv=GroupKFold.* splits by groups.*groups=users"):
        model.fit(X, y)
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            model, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
        )
    learned, held_out = next(GroupKFold(3).split(X, y, groups))
    model.fit(X[learned], y[learned], groups=groups[learned])
    assert scores[0] == model.score(X[held_out], y[held_out])


def test_pipelines_are_calibrated_with_metadata_routing():
    X, y = problem(300)
    weights = np.random.default_rng(0).integers(1, 4, 300)
    groups = np.repeat(np.arange(30), 10)
    model = rc.CalibratedOrdinal(make_pipeline(StandardScaler(), rc.PRank(random_state=0)))
    plain = clone(model).fit(X, y, sample_weight=weights, groups=groups)
    with config_context(enable_metadata_routing=True):
        routed = clone(model).fit(X, y, sample_weight=weights, groups=groups)
        scores = cross_val_score(
            model, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
        )
    assert_array_equal(routed.predict_proba(X), plain.predict_proba(X))
    learned, held_out = next(GroupKFold(3).split(X, y, groups))
    model.fit(X[learned], y[learned], groups=groups[learned])
    assert scores[0] == model.score(X[held_out], y[held_out])


@pytest.mark.parametrize("frame", [False, True])
def test_rows_may_have_any_form_that_the_estimator_accepts(frame):
    X, y = problem(300)
    X[::7, 1] = np.nan
    if frame:
        X = pd.DataFrame(X, columns=["a", "b", "c"])
        X["d"] = pd.Categorical(np.where(y > 2, "u", "v"))
    model = rc.CalibratedOrdinal(rc.OrdinalBoost(10), cv=3).fit(X, y)
    assert get_tags(model).input_tags.allow_nan
    constant = np.abs(y - np.median(y)).mean()
    assert -model.score(X, y) < 0.5 * constant
    plain = rc.CalibratedOrdinal(rc.PRank(random_state=0))
    assert not get_tags(plain).input_tags.allow_nan
    with pytest.raises(ValueError, match="X contains NaN|must be numeric"):
        plain.fit(X, y)


def test_unordered_classifier_is_rejected_by_name():
    X, y = problem(200)
    with pytest.raises(TypeError, match=r"fit takes classes=; got LogisticRegression: use a learn"):
        rc.CalibratedOrdinal(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match=r"fit takes classes=; got LogisticRegression"):
        rc.CalibratedOrdinal(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)


def test_a_frozen_learner_keeps_its_ranks(tmp_path):
    X, y = problem(400)
    frozen = FrozenEstimator(rc.PRank(random_state=0).fit(X[:200], y[:200]))
    kept = np.flatnonzero(y != 3)
    model = rc.CalibratedOrdinal(frozen).fit(X[kept], y[kept])
    assert model.classes_.tolist() == [1, 2, 3, 4, 5]
    rc.save(model, tmp_path / "m")
    assert_array_equal(rc.load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


class _Mute(ClassifierMixin, BaseEstimator):
    def fit(self, X, y, classes=None):
        return self


# ---------------------------------------------------------------- scores of probabilities


# ---------------------------------------------------------------- explanations


@pytest.mark.parametrize("scaled", [False, True])
def test_contributions_add_up_to_the_latent_score(scaled):
    X, y = problem(200)
    learner = rc.CuSumRank(random_state=0)
    model = rc.CalibratedOrdinal(make_pipeline(StandardScaler(), learner) if scaled else learner)
    found = model.fit(X, y).contributions(X[:9], X)
    assert_allclose(found.scores(), model.project(X[:9]), rtol=1e-12, atol=1e-12)
    assert_allclose(found.base, model.project(X).mean(), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- files


FROZEN = rc.PRank(random_state=0).fit(*problem(100, seed=1))


@pytest.mark.parametrize("method", ["cumulative", "isotonic"])
@pytest.mark.parametrize(
    "learner",
    [
        None,
        rc.OAPBPM(5, random_state=0),
        rc.MulticlassPerceptron(random_state=0),
        make_pipeline(StandardScaler(), rc.CuSumRank(C=0.5, random_state=0)),
        FrozenEstimator(FROZEN),
    ],
    ids=lambda one: type(one).__name__,
)
def test_loaded_model_equals_the_saved_one(tmp_path, learner, method):
    X, y = problem(300)
    model = rc.CalibratedOrdinal(learner, method=method, loss="kappa").fit(X, y)
    for held_out in (False, True):
        if held_out:
            model.conformalize(X[:90], y[:90])
        rc.save(model, tmp_path / "m")
        loaded = rc.load(tmp_path / "m")
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert_array_equal(loaded.predict(X), model.predict(X))
        assert repr(loaded) == repr(model)
        if held_out:
            assert_array_equal(loaded.predict_set(X), model.predict_set(X))
        else:
            with pytest.raises(NotFittedError):
                loaded.predict_set(X)
        # A fit of what was loaded is that of what was saved.
        if learner is None:  # whose seed is drawn
            continue
        again = clone(loaded).fit(X, y)
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_unsaveable_parts_are_named(tmp_path):
    X, y = problem(200)
    path = tmp_path / "m"
    search = GridSearchCV(rc.PRank(), {"max_iter": [1, 2]}, cv=2)
    with pytest.raises(TypeError, match="the estimator is a GridSearchCV"):
        rc.save(rc.CalibratedOrdinal(search).fit(X, y), path)
    with pytest.raises(TypeError, match="parameter cv=KFold"):
        rc.save(rc.CalibratedOrdinal(cv=KFold(3)).fit(X, y), path)
    with pytest.raises(NotFittedError):
        rc.save(rc.CalibratedOrdinal(), path)
    assert not path.exists()


def test_damaged_probabilities_are_rejected(tmp_path):
    X, y = problem(200)
    path = tmp_path / "m"

    def rejected(model, why, edit=None, **arrays):
        rc.save(model, path)
        rewrite(path, edit, {name.replace("__", "."): one for name, one in arrays.items()})
        with pytest.raises(ValueError, match=why):
            rc.load(path)

    model = rc.CalibratedOrdinal().fit(X, y)
    slope, center, scale = 1.0, model.center_, model.scale_
    rejected(model, "slope >= 0 and a scale > 0", moments=np.array([-slope, center, scale]))
    rejected(model, "slope >= 0 and a scale > 0", moments=np.array([slope, center, 0.0]))
    rejected(model, "array moments", moments=np.array([slope, np.nan, scale]))
    rejected(model, "array curves must ascend", curves=np.array([[4.0, 3.0, 2.0, 1.0]]))
    rejected(model, "array curves", curves=np.zeros((1, 3)))
    rejected(model, "array costs", costs=np.zeros((5, 4)))
    rejected(model, "labels", classes=np.arange(5))
    rejected(model, "'Nobody' is unknown", set_in("estimator.learner", value="Nobody"))
    rejected(model, "no model has the metadata", set_in("estimator.more", value="1"))
    rejected(model, "no learner of this kind", estimator__more=np.zeros(3))
    rejected(model, "features", set_in("estimator.n_features", value="4"))
    isotonic = rc.CalibratedOrdinal(method="isotonic").fit(X, y)
    rejected(isotonic, "array knots must ascend", knots=isotonic.curves_.knots[::-1].copy())


def test_brier_and_log_loss_equal_scikit_learn():
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(0)
    y, table = rng.integers(1, 5, 50), rng.dirichlet(np.ones(4), 50)
    weights = rng.random(50)
    given = {"labels": [1, 2, 3, 4], "sample_weight": weights}
    assert rc.metrics.log_loss(y, table, **given) == pytest.approx(log_loss(y, table, **given))
    plain = sum(
        w * sum((p - (j == label)) ** 2 for j, p in enumerate(row, 1))
        for w, label, row in zip(weights, y, table, strict=True)
    )
    assert rc.metrics.brier_score(y, table, **given) == pytest.approx(plain / weights.sum())
    assert rc.metrics.log_loss([1, 2], [[0.0, 1.0], [0.0, 1.0]]) == np.inf


@pytest.mark.parametrize(
    ("form", "limit"),
    [
        (np.ascontiguousarray, 1.3),
        (np.asfortranarray, 1.5),
        (sp.csr_array, 1.3),
        (sp.csc_array, 2.2),
    ],
)
def test_a_fit_holds_one_copy_of_rows_in_another_form(form, limit):
    # Besides a part of four fifths: none of CSR and C order; the CSR rows of other sparse formats.
    # Rows in Fortran order are copied one use at a time.
    rng = np.random.default_rng(0)
    X = form(rng.normal(size=(2000, 500)) * (rng.random((2000, 500)) < 0.5))
    y = rng.integers(1, 4, 2000)
    size = (
        sum(array.nbytes for array in (X.data, X.indices, X.indptr)) if sp.issparse(X) else X.nbytes
    )
    model = rc.CalibratedOrdinal(rc.PRank(max_iter=1, random_state=0), cv=5)
    clone(model).fit(X[:500], y[:500])  # what is imported then is not counted
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < limit * size
    dense = X.toarray() if sp.issparse(X) else X
    # Products with dense and with sparse rows are summed in different orders.
    np.testing.assert_allclose(
        model.predict_proba(X), clone(model).fit(dense, y).predict_proba(X), rtol=1e-12
    )
