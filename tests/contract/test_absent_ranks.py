"""Ranks that are declared but have no rows: the probabilities of the others are as without them."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import KFold, cross_val_score

import rankcore as rc
from rankcore.ordinal.curves import expected_costs, fit_cumulative, fit_isotonic
from reference import calibration
from reference import ordinal_boosting as plain


def scored_rows(seed):
    """Scores, ranks with absent ones among ``k``, weights or None, and the ranks that occur."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9))
    occurring = np.flatnonzero(rng.random(k) < rng.choice([0.4, 0.7, 1.0]))
    if occurring.size == 0:
        occurring = np.array([k // 2])
    n = int(rng.integers(20, 300))
    scores = rng.normal(size=n)
    noise = rng.choice([0.1, 0.5, 2.0]) * rng.normal(size=n)
    shares = np.sort(rng.random(occurring.size - 1))
    sign = rng.choice([1, 1, 1, -1])
    places = np.digitize(sign * scores + noise, np.quantile(scores, shares))
    ranks = occurring[places].astype(np.int32)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if rng.random() < 0.5 else None
    kept = np.ones(n) if weights is None else weights
    return scores, ranks, k, weights, np.unique(ranks[kept > 0])


@pytest.mark.parametrize("block", range(3))
def test_cumulative_logits_with_absent_ranks_are_the_optimum_of_the_others(block):
    for seed in range(20 * block, 20 * block + 20):
        scores, ranks, k, weights, occurring = scored_rows(seed)
        found = fit_cumulative(scores, ranks, k, weights)
        assert (np.diff(found.thresholds) > 0).all(), seed
        table = found.probabilities(scores)
        assert (table > 0).all(), seed
        kept = np.ones(scores.size) if weights is None else weights
        at, places = kept > 0, np.searchsorted(occurring, ranks[kept > 0])
        expected = np.ones((scores.size, 1))
        if occurring.size > 1:
            free = calibration.most_likely(scores[at], places, kept[at])
            expected = calibration.probabilities(scores, *free)
        assert_allclose(table[:, occurring], expected, rtol=0, atol=1e-4, err_msg=f"seed {seed}")


@pytest.mark.parametrize("seed", range(20))
def test_absent_ranks_do_not_change_isotonic_curves_of_the_others(seed):
    scores, ranks, k, weights, occurring = scored_rows(seed)
    kept = np.ones(scores.size) if weights is None else weights
    at, places = kept > 0, np.searchsorted(occurring, ranks)
    found = fit_isotonic(scores, ranks, k, weights)
    table = found.probabilities(scores[at])
    assert (table > 0).all()
    expected = np.zeros((at.sum(), occurring.size + 1))
    expected[:, 0] = 1.0
    if occurring.size > 1:
        free = calibration.most_likely(scores[at], places[at], kept[at])
        logits = calibration.probabilities(found.knots, *free)
    rows, of_logits = kept.sum(), 80 * occurring.size  # logits count as 80 rows per rank
    for r in range(1, occurring.size):
        step = IsotonicRegression().fit(scores[at], (places >= r)[at], kept[at])
        smooth = np.interp(scores[at], found.knots, logits[:, r:].sum(axis=1))
        mean = rows * step.predict(scores[at]) + of_logits * smooth
        expected[:, r] = mean / (rows + of_logits)
    assert_allclose(table[:, occurring], -np.diff(expected, axis=1), rtol=0, atol=1e-4)


# ---------------------------------------------------------------- every learner

NAMES = sorted(
    name
    for name in rc.__all__
    if isinstance(getattr(rc, name), type)
    and hasattr(getattr(rc, name), "classes_")
    and not name.startswith("Python")  # bases of rules that users write
)
PROBABLE = ("CalibratedOrdinal", "OrdinalBoost")
WORDS = np.array(["awful", "poor", "fair", "good", "great"])  # not in alphabetical order
RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 3))
LATENT = X @ [1.0, 2.0, -1.0] + 0.5 * RNG.normal(size=400)
TRAIN, TEST = slice(300), slice(300, 400)


def learners(name, every=False):
    """Each form of a learner, without ``classes``; calibrated ones of ``every`` learner, or two."""
    kind = getattr(rc, name)
    if name == "CalibratedOrdinal":
        inner = [one for one in NAMES if one not in (name, "OrdinalBoost")] if every else ["PRank"]
        inner = [getattr(rc, one)(random_state=0) for one in inner] + [rc.OrdinalBoost(5)]
        methods = ["cumulative", "isotonic"]
        if every:  # in turn
            return [kind(one, method=methods[i % 2]) for i, one in enumerate(inner)]
        return [kind(one, method=m) for one in inner for m in methods]
    if name == "OrdinalBoost":
        forms = [("vector", "adjacent"), ("shared", "adjacent"), ("shared", "cumulative")]
        return [kind(20, tasks=tasks, link=link) for tasks, link in forms]
    return [kind(random_state=0)]


def labels(absent):
    """Ranks 0 .. 4 of all rows, without the absent ones."""
    occurring = np.setdiff1d(np.arange(5), absent)
    cuts = np.quantile(LATENT, np.arange(1, occurring.size) / occurring.size)
    return occurring[np.digitize(LATENT, cuts)]


def fitted(model, ranks, form):
    """Return a model of five declared ranks, and its predicted ranks."""
    if form == "numbers":
        model = clone(model).set_params(classes=range(5)).fit(X[TRAIN], ranks[TRAIN])
        return model, model.predict(X[TEST])
    if form == "words":
        model = clone(model).set_params(classes=WORDS).fit(X[TRAIN], WORDS[ranks[TRAIN]])
    elif form == "categories":
        y = pd.Categorical.from_codes(ranks[TRAIN], WORDS, ordered=True)
        with pytest.warns(UserWarning, match="the order of the ranks"):
            model = clone(model).fit(X[TRAIN], y)
    else:  # rows of the absent ranks have the weight 0
        absent = np.setdiff1d(np.arange(5), ranks)
        more = np.resize(absent, 50)
        weights = np.append(np.ones(300), np.zeros(50))
        y = np.append(ranks[TRAIN], more)
        model = clone(model).fit(np.vstack([X[TRAIN], X[:50]]), y, sample_weight=weights)
        return model, model.predict(X[TEST])
    return model, np.array([WORDS.tolist().index(word) for word in model.predict(X[TEST])])


@pytest.mark.parametrize(
    ("absent", "form"),
    [
        *([absent, "numbers"] for absent in ([0], [2], [4], [1, 2], [0, 3], [0, 1, 3, 4])),
        ([2], "words"),
        ([0, 3], "words"),
        ([0], "categories"),
        ([1, 2], "categories"),
        ([4], "weights"),
        ([0, 1, 3, 4], "weights"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", NAMES)
def test_every_learner_learns_the_other_ranks(name, absent, form):
    ranks = labels(absent)
    for model in learners(name, every=absent == [1, 2]):
        with warnings.catch_warnings():
            if absent == [0, 1, 3, 4]:  # a constant is as good
                warnings.simplefilter("ignore", UserWarning)
            found, predicted = fitted(model, ranks, form)
        distance = np.abs(predicted - ranks[TEST]).mean()
        constant = min(np.abs(rank - ranks[TEST]).mean() for rank in range(5))
        assert distance <= 0.7 * constant, model
        if hasattr(found, "decision_function"):
            assert np.isfinite(found.decision_function(X[TEST])).all(), model
        if hasattr(found, "predict_proba"):
            table = found.predict_proba(X)[:, np.argsort(np.argsort(found.ranks_))]
            assert (table > 0).all(), model
            assert table[:, absent].max() < 1e-4, model


@pytest.mark.parametrize("n", [24, 90])
@pytest.mark.parametrize("absent", [[0, 4], [2], [0, 1, 3]], ids=str)
@pytest.mark.parametrize(
    "name", [one for one in NAMES if hasattr(getattr(rc, one), "predict_proba")]
)
def test_learners_of_probabilities_predict_no_rank_without_rows(name, absent, n):
    ranks = labels(absent)
    far = np.vstack([X, 1e3 * X])
    for model in learners(name, every=n == 24):
        for first in (0, 120):
            rows = slice(first, first + n)
            found = clone(model).set_params(classes=range(5)).fit(X[rows], ranks[rows])
            assert np.isin(found.predict(far), ranks[rows]).all(), (model, first)


# ---------------------------------------------------------------- labels that a fold lacks


def folds_without_a_rank():
    """Rows whose rank 2 is in the first of four folds only."""
    ranks = labels([2])
    ranks[:5] = 2
    return X, ranks, KFold(4)


def expected_score(model, rows, truth):
    """Return the score of a model by its predictions, with ranks among all labels."""
    distance = np.abs(model.predict(rows) - truth)  # labels are ranks
    loss = getattr(model, "loss", "absolute")
    if loss == "kappa":
        return cohen_kappa_score(model.predict(rows), truth, weights="quadratic")
    if loss == "zero_one":
        return (distance == 0).mean()
    return -(distance**2).mean() if loss == "squared" else -distance.mean()


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "squared", "kappa"])
def test_scoring_accepts_unknown_labels(loss):
    rows, ranks, folds = folds_without_a_rank()
    for model in (rc.OrdinalBoost(5, loss=loss), rc.CalibratedOrdinal(rc.PRank(random_state=0))):
        model.set_params(loss=loss)
        scores = cross_val_score(model, rows, ranks, cv=folds, error_score="raise")
        train, test = next(folds.split(rows))
        first = clone(model).fit(rows[train], ranks[train])
        assert first.classes_.tolist() == [0, 1, 3, 4]
        assert_allclose(scores[0], expected_score(first, rows[test], ranks[test]), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_searches_score_folds_that_lack_a_label(name):
    rows, ranks, folds = folds_without_a_rank()
    model = learners(name)[0]
    scores = cross_val_score(model, rows, ranks, cv=folds, error_score="raise")
    assert np.isfinite(scores).all()
    assert len(set(scores)) > 1
    for metric in ["rank_loss", *(["rps", "log_loss", "brier_score"] if name in PROBABLE else [])]:
        scorer = rc.metrics.make_scorer(metric)
        scores = cross_val_score(model, rows, ranks, cv=folds, scoring=scorer, error_score="raise")
        assert np.isfinite(scores).all(), metric


def test_scorers_of_probabilities_take_unknown_labels_as_improbable():
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X, 2 * labels([2]))
    truth = 2 * labels([2])
    truth[:3] = [3, 4, 9]
    table = np.full((400, 7), 1e-7)  # 0, 2, 3, 4, 6, 8, 9
    table[:, [0, 1, 4, 5]] = model.predict_proba(X)
    table /= table.sum(axis=1, keepdims=True)
    known = [0, 2, 3, 4, 6, 8, 9]
    for metric in ("ranked_probability_score", "log_loss", "brier_score"):
        expected = getattr(rc.metrics, metric)(truth, table, labels=known)
        found = rc.metrics.make_scorer(metric)(model, X, truth)
        assert found == pytest.approx(-expected, rel=1e-12)


def test_held_out_rows_may_have_labels_that_the_fit_lacks():
    ranks = labels([2])
    held_out = ranks[TEST].copy()
    held_out[:5] = 2
    metrics = ["ranked_probability_score", "log_loss", "rank_loss"]
    model = rc.OrdinalBoost(3, eval_metric=metrics)
    model.fit(X[TRAIN], ranks[TRAIN], eval_set=(X[TEST], held_out))
    table = np.insert(model.predict_proba(X[TEST]), 2, 1e-7, axis=1)
    table /= table.sum(axis=1, keepdims=True)
    for metric in metrics[:2]:
        expected = getattr(rc.metrics, metric)(held_out, table, labels=range(5))
        assert model.history_[f"valid_{metric}"][-1] == pytest.approx(expected, rel=1e-12)
    expected = np.abs(model.predict(X[TEST]) - held_out).mean()
    assert model.history_["valid_rank_loss"][-1] == pytest.approx(expected, rel=1e-12)


# ---------------------------------------------------------------- boosting


def rows_of_boosting(seed):
    """Rows, ranks with absent ones among ``k``, weights, and the ranks that occur."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 9))
    occurring = np.sort(rng.choice(k, int(rng.integers(2, k + 1)), replace=False))
    n = int(rng.integers(60, 300))
    rows = rng.normal(size=(n, 3))
    latent = rows[:, 0] * np.sign(rows[:, 1]) + rng.choice([0.3, 1.0]) * rng.normal(size=n)
    # Each rank has at least a fiftieth of the rows.
    cuts = np.sort(rng.choice(np.arange(1, 50), occurring.size - 1, replace=False)) / 50
    ranks = occurring[np.digitize(latent, np.quantile(latent, cuts))]
    weights = rng.choice([0.0, 1.0, 2.0], size=n) if rng.random() < 0.5 else np.ones(n)
    return rows, ranks, k, weights, np.unique(ranks[weights > 0])


def boosted(seed, **params):
    """Return a model of all declared ranks, and what it learned from."""
    rows, ranks, k, weights, occurring = rows_of_boosting(seed)
    model = rc.OrdinalBoost(classes=range(k), min_samples_leaf=5, random_state=0, **params)
    model.fit(rows, ranks, sample_weight=weights)
    return model, rows, ranks, weights, occurring


@pytest.mark.parametrize("block", range(3))
def test_biases_of_a_shared_score_are_the_optimum_of_the_occurring_ranks(block):
    for seed in range(20 * block, 20 * block + 20):
        n_rounds, link = 1 + seed % 4, ("adjacent", "cumulative")[seed // 4 % 2]
        model, rows, ranks, weights, occurring = boosted(
            seed, n_estimators=n_rounds, tasks="shared", link=link
        )
        table = model.predict_proba(rows)
        assert (table > 0).all(), seed
        f = model._state.model.score(model._more_rows(rows))[0]
        at, places = weights > 0, np.searchsorted(occurring, ranks)
        if occurring.size == 2 and link == "cumulative":  # as of two declared ranks, biases stay
            counts = np.bincount(places[at], weights[at])
            biases = np.log(counts[:1] / counts[1:])
        else:
            biases = plain.best_biases(f[at], places[at], weights[at], occurring, link)
        expected = plain.occurring_probabilities(f, biases, occurring, link)
        assert_allclose(table[:, occurring], expected, rtol=0, atol=1e-4, err_msg=f"seed {seed}")


def leaves_of(tree, rows):
    """Return the leaf of each row."""
    found = []
    for row in rows:
        node = 0 if tree.features.size else -1
        while node >= 0:
            above = tree.goes_above(node, row[tree.features[node]])
            node = tree.children[node][int(above)]
        found.append(~node)
    return np.array(found)


@pytest.mark.parametrize("block", range(3))
def test_leaves_of_vectors_are_newton_steps_of_the_occurring_ranks(block):
    for seed in range(20 * block, 20 * block + 20):
        model, rows, ranks, weights, occurring = boosted(seed, n_estimators=1, learning_rate=1.0)
        table = model.predict_proba(rows)
        assert (table > 0).all(), seed
        leaf_of = leaves_of(model._state.model.sums[0].trees[0], rows)
        at, places = weights > 0, np.searchsorted(occurring, ranks)
        counts = np.bincount(places[at], weights[at])
        first = np.log(counts[:-1] / counts[1:])
        zeros = np.zeros((occurring.size - 1, at.sum()))
        values = plain.newton_values(leaf_of[at], zeros, first, places[at], weights[at], 1.0)
        expected = plain.probabilities(values[:, leaf_of], first, "adjacent")
        assert_allclose(table[:, occurring], expected, rtol=0, atol=1e-4, err_msg=f"seed {seed}")


@pytest.mark.parametrize(("tasks", "link"), [("vector", "adjacent"), ("shared", "cumulative")])
@pytest.mark.parametrize("seed", range(8))
def test_absent_ranks_do_not_change_boosting_of_the_others(tasks, link, seed):
    params = {"n_estimators": 30, "tasks": tasks, "link": link}
    model, rows, ranks, weights, occurring = boosted(seed, **params)
    other = rc.OrdinalBoost(classes=occurring, min_samples_leaf=5, random_state=0, **params).fit(
        rows[weights > 0], ranks[weights > 0], sample_weight=weights[weights > 0]
    )
    expected = other.predict_proba(rows)
    assert_allclose(model.predict_proba(rows)[:, occurring], expected, rtol=0, atol=1e-5)
    assert model.n_iter_ == other.n_iter_ == 30
    assert_allclose(model.feature_importances_, other.feature_importances_, rtol=1e-6)


def test_boosted_rank_without_rows_keeps_its_odds():
    model = rc.OrdinalBoost(20, classes=range(5)).fit(X, labels([2]))
    logs = np.log(model.predict_proba(X))
    assert_allclose(logs[:, 2] - logs[:, 1], logs[0, 2] - logs[0, 1], rtol=1e-9)
    assert np.ptp(logs[:, 3] - logs[:, 2]) > 1


@pytest.mark.parametrize(("tasks", "link"), [("vector", "adjacent"), ("shared", "cumulative")])
def test_a_warm_start_learns_a_rank_that_was_absent(tasks, link):
    ranks = labels([])
    first = np.flatnonzero(ranks != 2)
    model = rc.OrdinalBoost(10, tasks=tasks, link=link, classes=range(5), warm_start=True)
    model.fit(X[first], ranks[first])
    assert model.predict_proba(X)[:, 2].max() < 1e-4
    model.set_params(n_estimators=60).fit(X, ranks)
    fresh = rc.OrdinalBoost(60, tasks=tasks, link=link).fit(X, ranks)
    loss = rc.metrics.log_loss
    assert loss(ranks, model.predict_proba(X)) < 1.3 * loss(ranks, fresh.predict_proba(X))


@pytest.mark.parametrize("loss", ["absolute", "kappa"])
@pytest.mark.parametrize(("tasks", "link"), [("vector", "adjacent"), ("shared", "cumulative")])
def test_boosting_files_and_exports_include_absent_ranks(tmp_path, tasks, link, loss):
    ranks = labels([0, 2])
    model = rc.OrdinalBoost(10, tasks=tasks, link=link, loss=loss, classes=range(5))
    model.fit(X, ranks)
    rc.save(model, tmp_path / "m")
    assert_allclose(rc.load(tmp_path / "m").predict_proba(X), model.predict_proba(X), rtol=0)
    assert_allclose(rc.load(tmp_path / "m").predict(X), model.predict(X), rtol=0)
    rc.export(model, tmp_path / "m.c", "c", check=X)


@pytest.mark.parametrize("absent", [[0, 4], [2], [1, 3]], ids=str)
@pytest.mark.parametrize(
    "name", [one for one in NAMES if hasattr(getattr(rc, one), "predict_proba")]
)
def test_no_loss_predicts_a_rank_without_rows(name, absent):
    """Between two others, it has the minimum of the expected squared distance."""
    ranks = labels(absent)
    ranks = np.where(np.arange(400) % 3 == 0, ranks[::-1], ranks)  # uncertain
    far = np.vstack([X, 1e3 * X])
    for model in learners(name):
        for loss in ("absolute", "zero_one", "squared", "kappa"):
            if name != "OrdinalLogistic" or loss != "kappa":
                found = clone(model).set_params(classes=range(5), loss=loss).fit(X, ranks)
                assert np.isin(found.predict(far), ranks).all(), (found, loss)


def test_kappa_is_optimal_among_predictions_of_ranks_with_rows():
    table = np.random.default_rng(0).dirichlet([1, 1e-3, 1], 7)
    ranks, mean = np.arange(3), table.mean(axis=0)
    by_chance = [mean @ (ranks - p) ** 2 for p in ranks]
    squared = [[row @ (ranks - p) ** 2 for p in ranks] for row in table]

    def one_minus_kappa(predicted):
        found = sum(squared[i][p] for i, p in enumerate(predicted))
        return found / sum(by_chance[p] for p in predicted)

    best = min(map(one_minus_kappa, product([0, 2], repeat=7)))
    predicted = (table @ expected_costs("kappa", table, ranks[[0, 2]])).argmin(axis=1)
    assert one_minus_kappa(predicted) == pytest.approx(best)
