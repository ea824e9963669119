"""Models trained on shards and merged."""

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rankcore as rc
from declared import ONLINE, fitted, walk
from rankcore.ordinal import merge as mixing
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel


def merges(learner):
    """Whether models of a learner can be merged."""
    try:
        return rc.merge([fitted(learner)]) is not None
    except TypeError:
        return False


LEARNERS = [
    *(clone(one).set_params(shuffle=False, max_iter=1) for one in ONLINE if merges(one)),
    rc.PRank.published(threshold_scale=0.7),
    rc.CuSumRank.published(update="pa1", C=0.1),
]


def ordinal_data(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    z = X @ [1, -2, 0.5, 0, 1, -1] + 0.3 * rng.normal(size=n)
    return sp.csr_array(X), np.digitize(z, [-3, -1, 1, 3]) + 1


@walk(LEARNERS)
def test_four_mixed_shards_learn_as_well_as_one_model(learner):
    X, y = ordinal_data()
    X_test, y_test = ordinal_data(2000, seed=1)
    mixed = deepcopy(learner).partial_fit(X[:8], y[:8], classes=[1, 2, 3, 4, 5])
    for _ in range(4):
        shards = [deepcopy(mixed).partial_fit(X[i::4], y[i::4]) for i in range(4)]
        mixed = rc.merge(shards, base=mixed)
    assert mixed.t_ == 8 + 4 * 4000
    assert mixed.history_["examples"] == [8, *[4000] * 4]
    alone = deepcopy(learner).set_params(max_iter=4).fit(X, y)
    constant = -np.abs(y_test - np.median(y)).mean()
    assert mixed.score(X_test, y_test) > constant
    # Mixing learns what one pass over everything does, or nearly.
    assert mixed.score(X_test, y_test) > alone.score(X_test, y_test) - 0.1


@given(
    problem=ordinal_problems(max_rows=40),
    shares=st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=3, max_size=3).filter(any),
)
@settings(max_examples=examples(60), deadline=None)
def test_merge_averages_parameters(problem, shares):
    X, y, k = problem
    classes = range(1, k + 1)
    cut = max(1, len(y) // 3)
    base = rc.PRank.published(average=True).fit(X[:cut], y[:cut], classes=classes)
    parts = [np.arange(i, len(y), 3) for i in range(3)]
    shards = [deepcopy(base) for _ in parts]
    rounds_w, rounds_b = [], []  # parameters after each new example, of all shards
    for shard, part in zip(shards, parts, strict=True):
        for i in part:
            shard.partial_fit(X[[i]], y[[i]])
            last = shard._state
            rounds_w.append(last.model["weights"].copy())
            rounds_b.append(last.model["thresholds"].copy())
    mixed = rc.merge(shards, shares, base=base)
    mu = np.array(shares) / sum(shares)
    w = sum(m * s._state.model["weights"] for m, s in zip(mu, shards, strict=True))
    b = sum(m * s._state.model["steps"] for m, s in zip(mu, shards, strict=True))
    np.testing.assert_allclose(mixed._state.model["weights"], w, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(mixed._state.model["steps"], np.rint(b))
    assert (np.diff(mixed._state.model["steps"]) >= 0).all()
    assert mixed.t_ == cut + len(y)
    # Every example of every shard counts the same in the average.
    total_w = cut * base.coef_ + sum(rounds_w)
    total_b = cut * base.thresholds_ + sum(rounds_b)
    np.testing.assert_allclose(mixed.coef_, total_w / mixed.t_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(mixed.thresholds_, total_b / mixed.t_, rtol=1e-9, atol=1e-9)
    losses = [s._state.counts - base._state.counts for s in shards]
    np.testing.assert_array_equal(mixed._state.counts, base._state.counts + sum(losses))
    mixed.partial_fit(X, y)
    assert (np.diff(mixed.thresholds_) >= 0).all()


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("name", ["OAPBPM", "OAPBagging", "OAPVoting"])
def test_members_of_ensembles_are_merged_one_by_one(name, average):
    X, y = ordinal_data(300)
    params = {"n_estimators": 19, "average_members": average, "random_state": 0}
    base = getattr(rc, name)(**params).fit(X[:60], y[:60])
    shards = [deepcopy(base).partial_fit(X[i::3], y[i::3]) for i in range(3)]
    merged = rc.merge(shards, [1, 2, 1], base=base)
    alone = [
        rc.merge([shard.estimators_[j] for shard in shards], [1, 2, 1], base=base.estimators_[j])
        for j in range(19)
    ]
    for found, expected in zip(merged.estimators_, alone, strict=True):
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.thresholds_, expected.thresholds_, rtol=1e-12)
        np.testing.assert_array_equal(found._state.counts, expected._state.counts)
    mean = np.mean([one._state.model["weights"] for one in alone], axis=0)
    np.testing.assert_allclose(merged._state.model["mean"], mean, rtol=1e-12, atol=1e-12)
    steps = np.sum([one._state.model["steps"] for one in alone], axis=0)
    np.testing.assert_array_equal(merged._state.model["totals"], steps)
    # Rows since the last mistake, the rows of all shards being later than those of the base.
    survived = [one._state.model["survived"] for one in [base, *shards]]
    unbroken = [one._state.model["seen"][:, 2] == base._state.model["seen"][:, 2] for one in shards]
    for j in range(19):
        after = [survived[1 + k][j] - survived[0][j] * unbroken[k][j] for k in range(3)]
        before = survived[0][j] if all(one[j] for one in unbroken) else 0
        assert merged._state.model["survived"][j] == before + sum(after)
    assert merged.partial_fit(X, y).score(X, y) > -1


@walk(LEARNERS)
def test_models_are_merged_by_the_parameters_they_learned_with(learner):
    X, y = ordinal_data(300)
    model = clone(learner).fit(X, y)
    expected = rc.merge([model, model]).predict(X)
    for name in model._state.settings.keys() & {"average", "average_members"}:
        model.set_params(**{name: not getattr(model, name)})
    if "n_estimators" in model.get_params():
        model.set_params(n_estimators=model.n_estimators + 4)
    assert np.array_equal(rc.merge([model, model]).predict(X), expected)


@walk(LEARNERS)
def test_merging_copies_changes_nothing(learner, tmp_path):
    X, y = ordinal_data(300)
    model = deepcopy(learner).fit(X, y)
    mixed = rc.merge([model, deepcopy(model)], base=model)
    np.testing.assert_array_equal(mixed.predict(X), model.predict(X))
    assert mixed.t_ == model.t_
    assert mixed.history_ == model.history_
    rc.save(mixed, tmp_path / "m")
    loaded = rc.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.partial_fit(X, y).coef_, mixed.partial_fit(X, y).coef_)
    before = model.coef_
    mixed.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)  # nothing is shared


def test_merge_rejects_incompatible_models():
    X, y = ordinal_data(50)
    model = rc.PRank.published().fit(X, y)
    with pytest.raises(ValueError, match="at least one"):
        rc.merge([])
    with pytest.raises(TypeError, match="got VotedPRank"):
        rc.merge([rc.VotedPRank().fit(X, y)])
    with pytest.raises(TypeError, match="PRank and CuSumRank"):
        rc.merge([model, rc.CuSumRank.published().fit(X, y)])
    with pytest.raises(NotFittedError):
        rc.merge([model, rc.PRank.published()])
    with pytest.raises(ValueError, match="differ in their classes"):
        rc.merge([model, rc.PRank.published().fit(X, y, classes=[1, 2, 3, 4, 5, 6])])
    with pytest.raises(ValueError, match="differ in their number of features"):
        rc.merge([model, rc.PRank.published().fit(X[:, :3], y)])
    with pytest.raises(ValueError, match="differ in their parameters"):
        rc.merge([model, rc.PRank.published(average=True).fit(X, y)])
    with pytest.raises(ValueError, match="differ in their parameters"):
        rc.merge([model, rc.PRank.published(tie="strict").fit(X, y)])
    more = deepcopy(model).partial_fit(X, y)
    with pytest.raises(ValueError, match="base has learned from more examples"):
        rc.merge([model, model], base=more)
    for weights in [[1], [1, -1], [0, 0], [np.nan, 1]]:
        with pytest.raises(ValueError, match="weights must"):
            rc.merge([model, model], weights)


def test_weights_of_any_size_are_normalised():
    X, y = ordinal_data(50)
    models = [
        rc.PRank.published().fit(X[part], y[part], classes=range(1, 6)) for part in [y > 0, y > 2]
    ]
    expected = rc.merge(models)
    for weights in [[1e308, 1e308], [5e-324, 5e-324]]:
        np.testing.assert_array_equal(rc.merge(models, weights).coef_, expected.coef_)
    shares = mixing._shares([3, 1, 7], 3)
    np.testing.assert_array_equal(shares, np.array([3, 1, 7]) / 11)  # no further rounding


def test_overflowing_merge_is_rejected():
    shard = rc.CuSumRank.published(average=True).fit(np.diag([1e308, 0, 0, 0]), [1, 3, 2, 1])
    with pytest.raises(ValueError, match="overflowed"):
        rc.merge([shard, shard])
