"""OrdinalBoost: against plain forms, logistic boosting, and what its constraints promise."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

import rankcore as rc
from model_files import rewrite, set_in
from rankcore._ext import ordinal_loss
from rankcore.metrics import log_loss, ranked_probability_score
from rankcore.ordinal.curves import expected_costs
from reference import ordinal_boosting as plain
from strategies import examples

FORMS = [("vector", "adjacent"), ("shared", "adjacent"), ("shared", "cumulative")]


def data(n=300, seed=0, k=4, missing=True):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    z = X[:, 0] * np.sign(X[:, 1]) + X[:, 2] + 0.5 * rng.normal(size=n)
    if missing:
        X[rng.random((n, 4)) < 0.1] = np.nan
    return X, np.digitize(z, np.quantile(z, np.arange(1, k) / k))


def small(tasks="vector", link="adjacent", **params):
    settings = {"max_leaf_nodes": 6, "min_samples_leaf": 3, "tasks": tasks, "link": link}
    return rc.OrdinalBoost(params.pop("n_estimators", 8), **{**settings, **params})


def trees_of(model):
    return [tree for one in model._state.model.sums for tree in one.trees]


def same_trees(one, other):
    for a, b in zip(trees_of(one), trees_of(other), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(one.biases_, other.biases_)


# -------------------------------------------------------------------- the loss


def drawn_scores(seed, tasks, link):
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 7)), int(rng.integers(1, 9))
    m = 1 if tasks == "shared" else k - 1
    scores, biases = 2 * rng.normal(size=(m, n)), rng.normal(size=k - 1)
    if link == "cumulative":
        biases = np.sort(biases) + 0.5 * np.arange(k - 1)
    ranks = rng.integers(0, k, size=n).astype(np.int32)
    return scores, biases, ranks, rng.random(n) + 0.1


@pytest.mark.parametrize(("tasks", "link"), FORMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(30), deadline=None)
def test_slopes_of_one_score_are_the_derivatives_of_the_loss(tasks, link, seed):
    scores, biases, ranks, weights = drawn_scores(seed, tasks, link)
    if tasks == "vector":  # the score of the only task of two ranks
        scores, biases, ranks = scores[:1], biases[:1], np.minimum(ranks, 1)
    n, d = ranks.size, biases.size
    steep, curved, of_biases, of_pairs = np.empty(n), np.empty(n), np.empty(d), np.empty((d, d))
    arguments = (tasks == "shared", link == "cumulative", ranks, weights)
    found = ordinal_loss.differentiate(
        scores, biases, *arguments, steep, curved, of_biases, of_pairs
    )

    def loss(scores, biases):
        return plain.loss(scores, biases, link, ranks, weights)

    assert found == pytest.approx(loss(scores, biases), rel=1e-12)
    h = 1e-4
    for j in range(n):
        step = np.zeros_like(scores)
        step[0, j] = h
        up, here, down = (loss(scores + s * step, biases) for s in (1, 0, -1))
        # Central differences: the third and fourth derivatives times h**2, and rounding.
        assert steep[j] == pytest.approx((down - up) / (2 * h), abs=1e-6)
        assert curved[j] == pytest.approx((up - 2 * here + down) / h**2, abs=1e-5)
    for i in range(d):
        at = [biases + s * h * np.eye(d)[i] for s in (1, -1)]
        up, down = (loss(scores, one) for one in at)
        assert of_biases[i] == pytest.approx((down - up) / (2 * h), abs=1e-6)
        other, first = np.empty((2, d)), np.empty_like(of_pairs)
        for one, out in zip(at, other, strict=True):
            ordinal_loss.differentiate(scores, one, *arguments, steep, curved, out, first)
        numeric = (other[1] - other[0]) / (2 * h)
        np.testing.assert_allclose(of_pairs[i, i:], numeric[i:], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("tasks", "link"), FORMS)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([1.0, 30.0, 1e4, 1e100]))
@settings(max_examples=examples(40), deadline=None)
def test_probabilities_are_a_distribution_for_any_scores(tasks, link, seed, scale):
    scores, biases, _, _ = drawn_scores(seed, tasks, link)
    table, n = np.empty((scores.shape[1], biases.size + 1)), scores.shape[1]
    form = scale * scores, biases, tasks == "shared", link == "cumulative"
    for rows in ((0, n // 3), (n // 3, n)):
        ordinal_loss.probabilities(*form, *rows, table)
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-14)
    if scale == 1:
        expected = plain.probabilities(scores, biases, link)
        np.testing.assert_allclose(table, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("tasks", "link"), FORMS)
def test_cumulative_probabilities_never_decrease(tasks, link):
    X, y = data(k=7)
    model = small(tasks, link, n_estimators=30).fit(X, y)
    below = model.predict_cumulative_proba(X)
    assert (np.diff(below, axis=1) >= 0).all()
    assert (below[:, -1] == 1).all()


# -------------------------------------------------------------------- trees


def derivatives(model, t, ranks, weights, scores):
    """Minus the first, and the second derivative of each row's loss, for the splits of round t."""
    form, biases, n = model._state.model.form, model._state.model.biases[t], ranks.size
    steep, curved = np.empty((2, n))
    if form.n_scores > 1:
        direction = np.random.default_rng([0, t, 1]).normal(size=form.n_scores)
        table = np.ascontiguousarray(plain.probabilities(scores, biases, form.link))
        places = np.concatenate([[0.0], np.cumsum(direction)])
        ordinal_loss.differentiate_along(table, ranks, weights, places, 0, n, steep, curved)
    else:
        known = form.shared, form.cumulative, ranks, weights
        ordinal_loss.differentiate(scores, biases, *known, steep, curved, None, None)
    return steep, curved


def newton_values(model, t, leaf_of, ranks, weights, scores, l2):
    """Return the Newton step of each score and leaf."""
    form = model._state.model.form
    if form.n_scores > 1:
        biases = model._state.model.biases[t]
        return plain.newton_values(leaf_of, scores, biases, ranks, weights, l2)
    steep, curved = derivatives(model, t, ranks, weights, scores)
    return (np.bincount(leaf_of, steep) / (np.bincount(leaf_of, curved) + l2))[np.newaxis]


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("tasks", "link"), FORMS)
@given(seed=st.integers(0, 2**32 - 1), sparse=st.booleans())
@settings(max_examples=examples(8), deadline=None)
def test_every_split_is_the_best_one(tasks, link, k, categorical, seed, sparse):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    X = rng.integers(0, 4, size=(n, 3)).astype(float)
    X[rng.random((n, 3)) < 0.15] = np.nan
    ranks = rng.integers(0, k, size=n).astype(np.int32)
    ranks[:k] = range(k)
    weights = rng.integers(1, 4, size=n).astype(float)
    columns, least = ([1], 1) if categorical else (None, 2)  # a least could rule out sorted sets
    model = small(
        tasks,
        link,
        n_estimators=3,
        min_samples_leaf=least,
        l2_leaf=0.5,
        categorical_features=columns,
    )
    model.fit(sp.csr_array(X) if sparse else X, ranks, sample_weight=weights)
    sums = model._state.model.sums
    scores = np.zeros((len(sums), n))
    for t in range(len(model._state.model)):
        steep, curved = derivatives(model, t, ranks, weights, scores)
        tree, leaf_of = sums[0].trees[t], np.zeros(n, dtype=np.int64)
        rows = {0: np.arange(n)}
        for node in range(tree.features.size):
            here, f = rows[node], tree.features[node]
            best = plain.best_gain(X, here, steep, curved, 0.5, least, columns or ())
            # Slopes are rounded to one part in 2^31 of all.
            assert tree.gains[node] == pytest.approx(best, rel=1e-6, abs=1e-7)
            above = np.array([tree.goes_above(node, x) for x in X[here, f]])
            for child, part in zip(tree.children[node], (here[~above], here[above]), strict=True):
                rows[child] = part
                if child < 0:
                    leaf_of[part] = ~child
        expected = newton_values(model, t, leaf_of, ranks, weights, scores, 0.5)
        values = np.array([one.trees[t].values for one in sums])
        np.testing.assert_allclose(values, 0.1 * expected, rtol=1e-6, atol=1e-9)
        scores += values[:, leaf_of]
    np.testing.assert_array_equal(scores, model._state.model.score(model._more_rows(X)))


def test_the_first_tree_equals_one_by_hand():
    """Half the rows of x = 0 have label 0, none of x = 1: gradients -.5 and .5, curvature .375."""
    X, y = [[0], [0], [1], [1]], [0, 1, 1, 1]
    model = rc.OrdinalBoost(1, min_samples_leaf=1, l2_leaf=0.0).fit(X, y)
    assert model.biases_[0] == pytest.approx(-np.log(3))
    values = model._state.model.sums[0].trees[0].values
    np.testing.assert_allclose(values, [-0.4 / 3, 0.4 / 3], rtol=1e-15)
    odds = 3 * np.exp([-0.4 / 3, 0.4 / 3])
    np.testing.assert_allclose(model.predict_proba([[0], [1]])[:, 1], odds / (1 + odds))


@pytest.mark.parametrize(("tasks", "link"), FORMS)
def test_two_classes_are_logistic_boosting(tasks, link):
    X, y = data(600, k=2)
    model = rc.OrdinalBoost(
        25, max_leaf_nodes=8, tasks=tasks, link=link, l2_leaf=0.7, min_samples_leaf=10
    ).fit(X, y)
    peer = HistGradientBoostingClassifier(
        max_iter=25,
        max_leaf_nodes=8,
        l2_regularization=0.7,
        min_samples_leaf=10,
        early_stopping=False,
    ).fit(X, y)
    # Its gradients are of 24 bits.
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=1e-5)


def test_threads_and_sparse_rows_do_not_change_a_bit():
    X, y = data(missing=False)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0
    for tasks, link in FORMS:
        model = small(tasks, link).fit(X, y)
        same_trees(model, small(tasks, link, n_jobs=2).fit(X, y))
        same_trees(model, small(tasks, link).fit(sp.csr_array(X), y))
        table = model.predict_proba(X)
        np.testing.assert_array_equal(table, model.predict_proba(sp.csr_array(X)))
        np.testing.assert_array_equal(table, [model.predict_proba(x[None])[0] for x in X])


@pytest.mark.parametrize(("tasks", "link"), FORMS)
@given(seed=st.integers(0, 2**32 - 1), leaves=st.integers(2, 12))
@settings(max_examples=examples(10), deadline=None)
def test_monotone_constraints_hold_for_every_rank(tasks, link, seed, leaves):
    X, y = data(120, seed, missing=seed % 2 == 0)
    signs = np.random.default_rng(seed).integers(-1, 2, size=4)
    model = small(tasks, link, monotonic_cst=signs, max_leaf_nodes=leaves, learning_rate=0.5)
    model.fit(X, y)
    for f in np.flatnonzero(signs):
        values = np.sort(np.unique(X[~np.isnan(X[:, f]), f]))
        for row in X[:10]:
            line = np.tile(row, (values.size, 1))
            line[:, f] = values
            scores = model._state.model.score(model._more_rows(line))
            assert (signs[f] * np.diff(scores, axis=1) >= 0).all()
            above = model.predict_proba(line)[:, ::-1].cumsum(axis=1)
            # Of scores in order; the last digits of probabilities are rounded.
            assert (signs[f] * np.diff(above, axis=0) >= -1e-14).all()


# -------------------------------------------------------------------- rounds


@pytest.mark.parametrize(("tasks", "link"), FORMS)
def test_logged_loss_falls_and_equals_the_loss_of_the_model(tasks, link):
    X, y = data()
    weights = np.arange(len(y)) % 3
    for of_rows in (None, weights):
        model = small(tasks, link, n_estimators=30).fit(X, y, sample_weight=of_rows)
        losses = model.history_["log_loss"]
        assert (np.diff(losses) < 0).all()
        found = [
            log_loss(y, table, sample_weight=of_rows) for table in model.staged_predict_proba(X)
        ]
        np.testing.assert_allclose(losses, found, rtol=1e-12)


@pytest.mark.parametrize(("tasks", "link"), FORMS)
def test_stages_measures_and_warm_starts_equal_shorter_fits(tasks, link):
    X, y = data()
    held = data(100, seed=1)
    metrics = ["ranked_probability_score", "log_loss", "rank_loss"]
    params = {"subsample": 0.7, "max_features": 0.6, "random_state": 3}
    model = small(tasks, link, eval_metric=metrics, **params).fit(X, y, eval_set=held)
    stages = zip(model.staged_predict_proba(held[0]), model.staged_predict(held[0]), strict=True)
    for t, (table, labels) in enumerate(stages):
        shorter = small(tasks, link, n_estimators=t + 1, **params).fit(X, y)
        np.testing.assert_array_equal(shorter.predict_proba(held[0]), table)
        np.testing.assert_array_equal(shorter.predict(held[0]), labels)
        history = {name: values[t] for name, values in model.history_.items()}
        score = ranked_probability_score(held[1], table)
        assert history["valid_ranked_probability_score"] == pytest.approx(score, rel=1e-12)
        assert history["valid_log_loss"] == pytest.approx(log_loss(held[1], table), rel=1e-12)
        assert history["valid_rank_loss"] == pytest.approx(np.abs(labels - held[1]).mean())
    warm = small(tasks, link, n_estimators=3, warm_start=True, **params).fit(X, y)
    same_trees(warm.set_params(n_estimators=8).fit(X, y), model)


def test_early_stopping_keeps_the_best_round():
    X, y = data()
    X_held, y_held = data(100, seed=1)
    model = small(n_estimators=200, learning_rate=0.3, early_stopping_rounds=4)
    model.fit(X, y, eval_set=(X_held, y_held))
    values = model.history_["valid_ranked_probability_score"]
    assert model.best_iteration_ == np.argmin(values) + 1 == model.n_iter_ - 4
    whole = small(n_estimators=model.best_iteration_, learning_rate=0.3).fit(X, y)
    same_trees(model, whole)


def test_every_measure_of_probabilities_is_an_eval_metric():
    X, y = data()
    held_out = data(100, seed=1)
    names = ["rps", "ranked_probability_score", "brier_score", "log_loss", "accuracy"]
    model = small(n_estimators=5, eval_metric=names).fit(X, y, eval_set=held_out)
    table = model.predict_proba(held_out[0])
    place = np.searchsorted(model.classes_, held_out[1])
    below = np.cumsum(table, axis=1) - (place[:, None] <= np.arange(table.shape[1]))
    true = np.eye(table.shape[1])[place]
    expected = {
        "rps": (below**2).sum(axis=1).mean(),
        "ranked_probability_score": (below**2).sum(axis=1).mean(),
        "brier_score": ((table - true) ** 2).sum(axis=1).mean(),
        "log_loss": -np.log((table * true).sum(axis=1)).mean(),
        "accuracy": (model.predict(held_out[0]) == held_out[1]).mean(),
    }
    found = {name: model.history_[f"valid_{name}"][-1] for name in names}
    assert found == pytest.approx(expected)


def test_kappa_has_the_costs_of_the_rows_learned_from():
    X, y = data()
    held = {"eval_set": data(100, seed=1)}
    model = small(loss="kappa", n_estimators=60, learning_rate=0.5, early_stopping_rounds=2)
    model.fit(X, y, **held)
    table = model.predict_proba(X)
    expected = expected_costs("kappa", table, np.arange(table.shape[1]))
    np.testing.assert_allclose(model.costs_, expected, rtol=1e-12)
    assert model.score(X, y) > 0.5


def test_callbacks_and_label_measures_use_the_costs_of_their_round():
    X, y = data()
    held = data(100, seed=1)
    seen = []

    def watch(iteration):
        seen.append((iteration.model.costs_, iteration.model.predict(held[0])))

    params = {"loss": "kappa", "learning_rate": 0.5}
    model = small(**params, eval_metric="rank_loss").fit(X, y, eval_set=held)
    small(**params).fit(X, y, callbacks=[watch])
    assert len(seen) == 8
    for t, (costs, labels) in enumerate(seen):
        shorter = small(**params, n_estimators=t + 1).fit(X, y)
        np.testing.assert_array_equal(costs, shorter.costs_)
        np.testing.assert_array_equal(labels, shorter.predict(held[0]))
        error = np.abs(labels - held[1]).mean()
        assert model.history_["valid_rank_loss"][t] == pytest.approx(error)


def test_costs_of_kappa_are_computed_without_a_pass_per_round(monkeypatch):
    X, y = data()
    made = []

    def counted(loss, table, occurring):
        made.append(len(table))
        return expected_costs(loss, table, occurring)

    monkeypatch.setattr("rankcore.boosting._ordinal_training.expected_costs", counted)
    small(loss="kappa").fit(X, y, eval_set=data(100, seed=1))
    assert len(made) == 2  # before the first round and after the last


def test_importances_are_fractions_of_the_gains_of_all_scores():
    X, y = data()
    model = small().fit(X, y)
    gains = np.zeros(4)
    for tree in trees_of(model):
        for feature, gain in zip(tree.features, tree.gains, strict=True):
            gains[feature] += gain
    np.testing.assert_allclose(model.feature_importances_, gains / gains.sum(), rtol=1e-12)
    assert model.feature_importances_[3] < model.feature_importances_[:3].min()  # of noise
    constant = small().fit(np.zeros((20, 2)), np.arange(20) % 3)
    np.testing.assert_array_equal(constant.feature_importances_, [0, 0])


# -------------------------------------------------------------------- labels, weights, input


def test_words_are_learned_in_their_order():
    X, y = data()
    words = np.array(["poor", "fair", "good", "best"])
    numbers = small().fit(X, y)
    model = small(classes=words.tolist()).fit(X, words[y])
    assert model.ranks_.tolist() == words.tolist()
    assert model.classes_.tolist() == sorted(words)
    np.testing.assert_array_equal(model.predict(X), words[numbers.predict(X)])
    order = np.argsort(words)
    np.testing.assert_array_equal(model.predict_proba(X), numbers.predict_proba(X)[:, order])
    decided = model.classes_[model.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(decided, model.predict(X))
    with pytest.raises(ValueError, match="string labels have no order"):
        small().fit(X, words[y])


@pytest.mark.parametrize(("tasks", "link"), FORMS)
def test_a_class_without_rows_is_improbable(tasks, link):
    X, y = data()
    kept = y != 2
    model = small(tasks, link, n_estimators=20).fit(X[kept], y[kept], classes=range(4))
    table = model.predict_proba(X)
    assert table.shape == (300, 4)
    assert (table[:, 2] > 0).all()
    assert table[:, 2].mean() < 0.01
    alone = small(tasks, link, n_estimators=2).fit(X[y == 1], y[y == 1], classes=range(4))
    assert (alone.predict(X) == 1).all()
    with pytest.raises(ValueError, match="only one class"):
        small().fit(X, np.ones(300))


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "squared"])
def test_predictions_minimise_the_expected_loss(loss):
    X, y = data()
    model = small(loss=loss, n_estimators=30).fit(X, y)
    table = model.predict_proba(X)
    expected = {
        "absolute": (np.cumsum(table, axis=1) >= 0.5 - 1e-12).argmax(axis=1),
        "zero_one": table.argmax(axis=1),
        "squared": np.ceil(table @ np.arange(4) - 0.5 - 1e-12),
    }[loss]
    np.testing.assert_array_equal(model.predict(X), expected)


def test_weights_equal_repeated_rows():
    X, y = data(missing=False)
    weights = np.random.default_rng(0).integers(0, 4, size=len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    for tasks, link in FORMS:
        model = small(tasks, link, min_samples_leaf=1).fit(X, y, sample_weight=weights)
        other = small(tasks, link, min_samples_leaf=1).fit(X[repeated], y[repeated])
        np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    by_class = {0: 3, 1: 1, 2: 2, 3: 1}
    model = small(class_weight=by_class).fit(X, y)
    same_trees(model, small().fit(X, y, sample_weight=[by_class[one] for one in y]))


def test_categories_of_a_frame_are_learned():
    rng = np.random.default_rng(0)
    city = rng.choice(["bonn", "lima", "oslo", "rome"], size=400)
    size = rng.normal(size=400)
    y = np.isin(city, ["bonn", "oslo"]).astype(int) + (size > 0)
    frame = pd.DataFrame({"size": size, "city": pd.Categorical(city)})
    model = rc.OrdinalBoost(30).fit(frame, y)
    assert model.categories_ == {1: ["bonn", "lima", "oslo", "rome"]}
    assert (model.predict(frame) == y).all()
    rows = np.column_stack([size, frame["city"].cat.codes])
    same = rc.OrdinalBoost(30, categorical_features=[1]).fit(rows, y)
    np.testing.assert_array_equal(same.predict_proba(rows), model.predict_proba(frame))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"link": "cumulative"}, "link='cumulative' requires tasks='shared'; got tasks='vector'"),
        ({"tasks": "separate"}, "tasks must be one of 'vector', 'shared'"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"max_leaf_nodes": None}, "max_leaf_nodes=None requires max_depth"),
        ({"monotonic_cst": [1, 0]}, "monotonic_cst must be -1, 0 or 1"),
        ({"eval_metric": "ndcg"}, "eval_metric must be one or a list of"),
        ({"l2_leaf": -1.0}, "l2_leaf"),
        ({"early_stopping_rounds": 3}, "early_stopping_rounds requires eval_set"),
    ],
)
def test_bad_parameters_are_rejected(params, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        small(**params).fit(X, y)


def test_bad_input_does_not_change_the_model():
    X, y = data()
    model = small().fit(X, y)
    before = model.predict_proba(X)
    for bad_X, bad_y, more in [
        (np.full_like(X, np.inf), y, {}),
        (X, y[:-1], {}),
        (X, np.full(len(y), np.nan), {}),
        (X, y, {"sample_weight": -np.ones(len(y))}),
        (X, y, {"eval_set": (X[:, :2], y)}),
    ]:
        with pytest.raises(ValueError, match=r"\w"):
            model.fit(bad_X, bad_y, **more)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="warm_start requires the labels"):
        clone(model).set_params(warm_start=True).fit(X, y).fit(X, np.minimum(y, 2))
    np.testing.assert_array_equal(model.predict_proba(X), before)


# -------------------------------------------------------------------- files


@pytest.mark.parametrize(("tasks", "link"), FORMS)
def test_loaded_model_equals_the_saved_one(tasks, link, tmp_path):
    X, y = data()
    model = small(tasks, link, random_state=0, subsample=0.8).fit(X, y, eval_set=(X, y))
    model.conformalize(*data(50, seed=2))
    rc.save(model, tmp_path / "model")
    for other in (rc.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.get_params() == model.get_params()
        assert other.history_ == model.history_
        assert other.best_iteration_ == model.best_iteration_
        same_trees(other, model)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.predict_set(X), model.predict_set(X))
        longer = [clone(one).set_params(n_estimators=12, warm_start=True) for one in (model, other)]
        for one, of in zip(longer, (model, other), strict=True):
            one.__dict__ |= {name: v for name, v in vars(of).items() if name[-1] == "_"}
            one._state = of._state
            one.fit(X, y)
        same_trees(*longer)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ("facts", "settings", "tasks"),
            "shared",
            "the number of trees must be 1 times that of rounds",
        ),
        (("facts", "settings", "tasks"), "mixed", "settings"),
        (("facts", "settings", "link"), "probit", "settings"),
        (("facts", "best_iteration"), 99, "best_iteration must be one of"),
    ],
)
def test_edited_files_are_rejected(path, value, message, tmp_path):
    X, y = data()
    rc.save(small().fit(X, y), tmp_path / "model")
    rewrite(tmp_path / "model", set_in(*path, value=value))
    with pytest.raises(ValueError, match=message):
        rc.load(tmp_path / "model")


@pytest.mark.parametrize(("n", "least"), [(4, 1), (30, 6), (99, 19), (100, 20), (700, 20)])
def test_automatic_size_of_leaves_depends_on_the_rows(n, least):
    X, y = data(n)
    fitted, same, other = (
        rc.OrdinalBoost(5, min_samples_leaf=m).fit(X, y) for m in ("auto", least, least + 1)
    )
    same_trees(fitted, same)
    if n >= 30:
        assert (fitted.predict_proba(X) != other.predict_proba(X)).any()


def test_rows_of_weight_zero_do_not_count_for_leaf_sizes():
    X, y = data(100)
    weights = np.r_[np.ones(50), np.zeros(50)]
    few = rc.OrdinalBoost(5).fit(X[:50], y[:50], classes=range(4))
    same_trees(rc.OrdinalBoost(5).fit(X, y, classes=range(4), sample_weight=weights), few)


def test_size_of_leaves_is_auto_or_a_number():
    X, y = data(30)
    with pytest.raises(
        ValueError, match="min_samples_leaf must be 'auto' or an integer >= 1; got 'few'"
    ):
        rc.OrdinalBoost(5, min_samples_leaf="few").fit(X, y)


@pytest.mark.parametrize("zeros", ["learn", "zero"])
def test_columns_with_fewer_entries_than_a_leaf_split_neither_sparse_nor_dense_rows(zeros):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 30)) * (rng.random((400, 30)) < np.linspace(0.02, 0.2, 30))
    y = np.digitize(X @ rng.normal(size=30), [-0.3, 0, 0.3])
    models = []
    for rows in (X, sp.csr_array(X)):
        model = rc.OrdinalBoost(15, min_samples_leaf=25, missing=zeros).fit(rows, y)
        other = rc.RankBoost(15, max_leaf_nodes=8, min_samples_leaf=25, missing=zeros)
        models.append((model, other.fit(rows, y, qid=np.arange(400) // 40)))
    same_trees(models[0][0], models[1][0])
    np.testing.assert_array_equal(models[0][1].predict(X), models[1][1].predict(X))
    rare, used = (X != 0).sum(axis=0) < 25, models[0][0].feature_importances_ > 0
    assert rare.any()
    assert used.any()
    assert not (rare & used).any()
