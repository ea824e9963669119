"""Weights of rows and of classes: what they mean for each learner, and against repeated rows."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from declared import ONLINE, SAVED_RANKERS, as_they_are, learns_from, walk
from rankcore._core.declaration import declaration_of
from rankcore.ordinal._members import least_draws
from reference.ensemble import uniform32
from strategies import examples, ordinal_problems


def weighing_by(meaning):
    """Return the instances of learners of streams that declare a meaning of weights."""
    return [one for one in ONLINE if declaration_of(type(one)).weights == meaning]


BY_VISITS, BY_STEPS, BY_DRAWS = map(weighing_by, ["visits", "steps", "draws"])
EVERY = [*BY_VISITS, *BY_STEPS, *BY_DRAWS]


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(8 * rng.normal(size=(n, 3))) / 8
    return X, np.digitize(X @ [1, 2, -1] + 0.7 * rng.normal(size=n), [-2, 0, 2])


def decided(model, X):
    return model.decision_function(X)


# Where there is a budget, a row that is repeated takes several of its places.
@walk([one for one in BY_VISITS if getattr(one, "budget", None) is None])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_integer_weights_are_repeated_rows(learner, form):
    X, y = data()
    weights = np.random.default_rng(1).integers(0, 4, size=len(y))
    whole = clone(learner).fit(form(X), y, sample_weight=weights, classes=range(4))
    again = clone(learner).fit(
        form(np.repeat(X, weights, axis=0)), np.repeat(y, weights), classes=range(4)
    )
    if getattr(learner, "threshold_scale", 1.0) == "auto":  # it is chosen by the rows of X
        scale = whole._state.model["scale"][0]
        fixed = clone(learner).set_params(threshold_scale=float(np.sqrt(scale)))
        whole = clone(fixed).fit(form(X), y, sample_weight=weights, classes=range(4))
        again = clone(fixed).fit(
            form(np.repeat(X, weights, axis=0)), np.repeat(y, weights), classes=range(4)
        )
    if getattr(learner, "gamma", None) is not None:  # as is the width of the kernel
        whole, again = (
            clone(whole)
            .set_params(gamma=0.3)
            .fit(form(rows), labels, sample_weight=given, classes=range(4))
            for rows, labels, given in [
                (X, y, weights),
                (np.repeat(X, weights, axis=0), np.repeat(y, weights), None),
            ]
        )
    np.testing.assert_allclose(decided(whole, X), decided(again, X), rtol=1e-9, atol=1e-9)
    assert whole.t_ == again.t_


@walk([*BY_STEPS, *BY_DRAWS])
def test_weight_one_changes_nothing_and_weight_zero_omits_rows(learner):
    X, y = data()
    plain = clone(learner).fit(X, y)
    ones = clone(learner).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(decided(plain, X), decided(ones, X))
    zero = np.ones(len(y))
    zero[::2] = 0
    spoilt = np.where(zero > 0, y, 3 - y)  # what rows of no weight say does not matter
    there = clone(learner).fit(X, y, sample_weight=zero)
    other = clone(learner).fit(X, spoilt, sample_weight=zero, classes=range(4))
    np.testing.assert_array_equal(decided(there, X), decided(other, X))


@given(
    problem=ordinal_problems(max_rows=15, integers=False),
    weight=st.integers(1, 5),
    step=st.sampled_from([("normalized", 0.3), ("normalized", 1.0), ("constant", 1e-3)]),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_weighted_least_squares_step_is_that_many_steps_in_a_row(problem, weight, step):
    X, y, k = problem
    params = {"step": step[0], "eta0": step[1], "intercept_scaling": 1.0, "average": False}
    once = rc.WidrowHoff(**params, max_iter=1, shuffle=False)
    often = clone(once)
    weights = np.full(len(y), float(weight))
    once.fit(X, y, classes=range(1, k + 1), sample_weight=weights)
    dense = np.repeat(X.toarray().astype(float), weight, axis=0)
    often.fit(dense, np.repeat(y, weight), classes=range(1, k + 1))
    np.testing.assert_allclose(once.coef_, often.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(once.intercept_, often.intercept_, rtol=1e-9, atol=1e-12)


def test_a_perceptron_step_is_as_long_as_the_weight():
    X, y = [[1.0, 2.0]], [3]
    for learner in [rc.CuSumRank.published(), rc.MulticlassPerceptron.published()]:
        one = clone(learner).fit(X, y, classes=[1, 2, 3, 4])
        two = clone(learner).fit(X, y, classes=[1, 2, 3, 4], sample_weight=[2.5])
        assert one.coef_.any()
        np.testing.assert_array_equal(two.coef_, 2.5 * one.coef_)


def test_aggressiveness_is_weighted_in_passive_aggressive_steps():
    X, y = [[1.0, 2.0]], [2]
    for rule in ["pa1", "pa2"]:
        scaled = rc.CuSumRank.published(update=rule, C=0.01)
        weighted = clone(scaled).fit(X, y, classes=[1, 2, 3, 4], sample_weight=[3.0])
        direct = scaled.set_params(C=0.03).fit(X, y, classes=[1, 2, 3, 4])
        assert direct.coef_.any()
        np.testing.assert_allclose(weighted.coef_, direct.coef_, rtol=1e-15)
    for learner in (rc.CuSumRank(update="pa"), rc.KernelCuSumRank(update="pa")):
        for method in (learner.fit, learner.partial_fit):
            with pytest.raises(ValueError, match="use 'pa1' or 'pa2', whose C is multiplied"):
                method(X, y, classes=[1, 2, 3, 4], sample_weight=[9.0])


@pytest.mark.parametrize("sampling", ["bernoulli", "poisson"])
def test_members_take_an_example_in_proportion_to_its_weight(sampling):
    settings = {"sampling": sampling, "tau": 0.3}
    weights = np.array([0.0, 0.5, 1.0, 4.0, 7.5])
    tables = least_draws(settings, weights)
    draws = np.array([uniform32(11, j, t) for j in range(40) for t in range(500)], np.uint64)
    for weight, table in zip(weights, tables, strict=True):
        times = (draws[:, None] >= table[None, :]).sum(axis=1)
        expected = weight * (0.3 if sampling == "bernoulli" else 1.0)
        # 20,000 draws, five standard errors; a Bernoulli count varies by less than a Poisson one.
        assert abs(times.mean() - expected) <= 5 * np.sqrt(max(expected, 1e-12) / draws.size)


def test_members_draw_by_the_weight_of_the_row():
    X, y = data()
    heavy = np.where(np.arange(len(y)) % 2, 3.0, 0.0)
    model = rc.OAPBPM(30, 0.2, random_state=3, max_iter=1).fit(X, y, sample_weight=heavy)
    seen = [member.t_ for member in model.estimators_]
    # 60 rows at probability .6: 36 each, within five standard errors of the mean of 30 members.
    assert abs(np.mean(seen) - 36) < 5 * np.sqrt(60 * 0.6 * 0.4 / 30)
    assert max(seen) <= 60


def test_fractional_visits_average_out_over_the_passes():
    X, y = data(40)
    weights = np.full(40, 1.25)
    model = rc.PRank(max_iter=200, random_state=0).fit(X, y, sample_weight=weights)
    # 8000 draws of a quarter.
    assert abs(model.t_ - 200 * 50) < 5 * np.sqrt(8000 * 0.25 * 0.75)
    again = rc.PRank(max_iter=200, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@walk(EVERY)
def test_class_weights_equal_the_same_row_weights(learner):
    X, y = data()
    by_class = {0: 2, 3: 3}
    rows = np.array([by_class.get(label, 1) for label in y], dtype=float)
    one = clone(learner).set_params(class_weight=by_class).fit(X, y)
    other = clone(learner).fit(X, y, sample_weight=rows)
    np.testing.assert_array_equal(decided(one, X), decided(other, X))
    balanced = clone(learner).set_params(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    other = clone(learner).fit(X, y, sample_weight=(len(y) / (4 * counts))[y])
    np.testing.assert_array_equal(decided(balanced, X), decided(other, X))


@walk(EVERY)
def test_weights_of_a_stream_count_as_in_one_fit(learner):
    X, y = data()
    weights = np.random.default_rng(2).integers(0, 3, size=len(y)).astype(float)
    base = as_they_are(learner).set_params(max_iter=1, shuffle=False)
    for name in ("threshold_scale", "intercept_scaling"):
        if name in base.get_params():
            base.set_params(**{name: 1.0})
    if "gamma" in base.get_params():
        base.set_params(gamma=0.3)
    if base.get_params().get("margin") == "auto":
        base.set_params(margin=0.3)
    whole = clone(base).fit(X, y, sample_weight=weights)
    parts = clone(base)
    if isinstance(learner, rc.OrdinalLogistic):  # its fit divides them
        weights /= weights[weights > 0].mean()
    for part in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(X[part], y[part], range(4), sample_weight=weights[part])
    np.testing.assert_allclose(decided(parts, X), decided(whole, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("params", "given", "error", "message"),
    [
        ({}, [-1, 1, 1], ValueError, "sample_weight"),
        ({}, [np.nan, 1, 1], ValueError, "sample_weight"),
        ({}, [1, 1], ValueError, "sample_weight"),
        ({}, [0, 0, 0], ValueError, "sample_weight"),
        ({}, [1e9] * 3, ValueError, "at most 1000 on average"),
        ({"class_weight": "even"}, None, ValueError, "class_weight must be 'balanced'"),
        (
            {"class_weight": {7: 2}},
            None,
            ValueError,
            r"must name classes, \[1, 2, 3\]; got \[7\]",
        ),
        ({"class_weight": {1: -2}}, None, ValueError, "class_weight"),
        ({"class_weight": {1: 0, 2: 0, 3: 0}}, None, ValueError, "must not be all zero"),
    ],
)
def test_bad_weights_are_rejected(params, given, error, message):
    with pytest.raises(error, match=message):
        rc.PRank(**params).fit(np.eye(3), [1, 2, 3], sample_weight=given)


def test_numbers_of_visits_below_one_are_relative():
    X, y = data()
    shares = np.random.default_rng(3).integers(1, 4, size=len(y)) / 1000
    mean = float(sum(map(Fraction, shares.tolist())) / len(y))
    for learner in [rc.PRank(), rc.KernelPRank(), rc.OAPBPM(5, 1.0)]:
        learner.set_params(random_state=0)
        one = clone(learner).fit(X, y, sample_weight=shares)
        other = clone(learner).fit(X, y, sample_weight=shares / mean)
        np.testing.assert_array_equal(decided(one, X), decided(other, X))
    with pytest.raises(ValueError, match="weights must be at most 1000; got 1e"):
        rc.OAPBPM(5).fit(X, y, sample_weight=np.where(y == 0, 1e5, 1.0))


def test_fractions_in_a_stream_of_single_rows_are_visits_on_average():
    X, y = data()
    model = rc.PRank().partial_fit(X[:20], y[:20], range(4))
    for i in range(20, 120):
        model.partial_fit(X[[i]], y[[i]], sample_weight=[0.4])
    # 100 draws, five standard errors; a part of a stream has no mean to be scaled by.
    assert abs(model.t_ - 20 - 40) < 5 * np.sqrt(100 * 0.4 * 0.6)
    seen, before = model.t_, model.coef_
    for learner in (model, rc.CuSumRank().fit(X, y)):
        seen, before = learner.t_, learner.coef_
        learner.partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))  # nothing to learn
        assert learner.t_ == seen
        np.testing.assert_array_equal(learner.coef_, before)


@walk(BY_STEPS)
def test_rows_of_weight_zero_have_no_effect(learner):
    X, y = data()
    there = np.arange(len(y)) % 3 > 0
    fixed = clone(learner).set_params(max_iter=2, shuffle=False)
    for name, value in {"intercept_scaling": 1.0, "gamma": 0.3}.items():
        if name in fixed.get_params():
            fixed.set_params(**{name: value})
    one = clone(fixed).fit(X, y, sample_weight=there.astype(float))
    other = clone(fixed).fit(X[there], y[there])
    np.testing.assert_allclose(decided(one, X), decided(other, X), rtol=1e-9, atol=1e-9)
    assert one.history_["rank_loss"] == other.history_["rank_loss"]


@walk(EVERY)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("by", ["sample_weight", "class_weight"])
def test_automatic_scales_ignore_rows_of_weight_zero(learner, method, by):
    """Automatic thresholds, intercepts, margins and gamma, as if other rows were not there."""
    X, y = data()
    there = y != 3 if by == "class_weight" else np.random.default_rng(5).random(y.size) < 0.7
    X[~there] *= 1000.0
    given = {"sample_weight": there.astype(float)} if by == "sample_weight" else {}
    if by == "class_weight":
        learner = clone(learner).set_params(class_weight={0: 1.0, 3: 0.0})
    learner = clone(learner).set_params(shuffle=False)
    one = getattr(clone(learner), method)(X, y, classes=range(4), **given)
    left = clone(learner).set_params(class_weight=None)
    other = getattr(left, method)(X[there], y[there], classes=range(4))
    scales = [name for name in ("scale", "margin", "gamma") if name in other._state.model.arrays]
    by_rows = {"threshold_scale", "intercept_scaling"} & learner.get_params().keys()
    assert ("scale" in scales) == bool(by_rows)
    for name in scales:
        assert one._state.model[name].tolist() == other._state.model[name].tolist(), name
    if "OAP" not in str(learner):
        np.testing.assert_array_equal(one.predict(X), other.predict(X))  # draws count all rows


@pytest.mark.parametrize("variant", ["committee", "averaged"])
def test_feature_scales_of_a_stream_ignore_rows_of_weight_zero(variant):
    X, y = data(60)
    X = X * [1.0, 100.0, 1.0]
    there = np.random.default_rng(5).random(60) < 0.7
    X[~there] *= 1000.0
    qid = np.arange(60) // 13
    learner = rc.PairwisePerceptron(variant=variant, random_state=0)
    one = clone(learner).partial_fit(X, y, qid=qid, sample_weight=there.astype(float))
    other = clone(learner).partial_fit(X[there], y[there], qid=qid[there])
    assert (other._state.model["scale"] != 1).any()
    assert one._state.model["scale"].tolist() == other._state.model["scale"].tolist()


def test_labels_that_a_fold_lacks_may_have_weights():
    X, y = data()
    some = y < 3
    one = rc.PRank(class_weight={1: 2, 3: 5}, random_state=0).fit(X[some], y[some])
    other = rc.PRank(class_weight={1: 2}, random_state=0).fit(X[some], y[some])
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_balanced_classes_need_all_rows():
    with pytest.raises(ValueError, match="partial_fit does not have; pass a dict"):
        rc.PRank(class_weight="balanced").partial_fit(np.eye(3), [1, 2, 3])


def test_balanced_weights_improve_rare_ranks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.digitize(X @ [1, 1] + rng.normal(size=2000), [2.5])  # one row in twenty
    rare = y == 1
    for learner in [rc.PRank(), rc.CuSumRank(), rc.WidrowHoff(), rc.OAPBPM(20)]:
        learner.set_params(random_state=0)
        plain = clone(learner).fit(X, y)
        balanced = clone(learner).set_params(class_weight="balanced").fit(X, y)
        assert (balanced.predict(X)[rare] == 1).mean() > (plain.predict(X)[rare] == 1).mean() + 0.2


@pytest.mark.parametrize(
    "learner", dict.fromkeys(type(one) for one in BY_VISITS), ids=lambda learner: learner.__name__
)
def test_overflowing_weights_are_rejected_without_a_warning(learner):
    X, y = np.eye(4), [1, 2, 1, 2]
    for weights in [np.full(4, 1e308), [1e308, 1e308, 0, 0]]:
        for method in (learner().fit, learner().partial_fit):
            mean = np.divide(weights, 4).sum()
            with pytest.raises(ValueError, match=re.escape(f"on average; got {mean:.3g}: scale")):
                method(X, y, sample_weight=weights)
    # Exactly as many visits as are allowed, and one more.
    learner(max_iter=1).fit(X[:1].repeat(4, axis=0), y, sample_weight=[1000] * 4)
    with pytest.raises(ValueError, match="at most 1000 on average"):
        learner(max_iter=1).fit(X, y, sample_weight=[1000, 1000, 1000, 1001])
    with pytest.raises(ValueError, match="sample_weight times class_weight must be finite"):
        learner(class_weight={1: 1e200}).fit(X, y, sample_weight=np.full(4, 1e200))


SHARES = [0.1, 0.3, 0.7, 1 / 3, 0.001, 1e-300]
# Learners that multiply steps or losses by weights.
FACTORS = [*BY_STEPS, rc.OrdinalBoost(5), rc.CalibratedOrdinal(rc.CuSumRank(random_state=0), cv=2)]


@pytest.mark.parametrize("learner", FACTORS, ids=str)
def test_factors_of_steps_and_losses_are_never_rescaled(learner):
    X, y = data()
    weights = np.random.default_rng(3).uniform(0.2, 1, size=len(y))
    weights[0] = 1.0
    above = weights.copy()
    above[0] += 1e-9  # only weights of at most 1 were rescaled
    output = "predict_proba" if hasattr(learner, "predict_proba") else "decision_function"
    one, other = (
        getattr(clone(learner).fit(X, y, sample_weight=some), output)(X)
        for some in (weights, above)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "learner", [one for one in FACTORS if not isinstance(one, rc.OrdinalLogistic)], ids=str
)
def test_a_small_mean_weight_warns_with_the_remedy(learner):
    X, y = data()
    small = np.where(np.arange(len(y)) % 2, 0.009, 0)  # the mean is that of positive weights
    with pytest.warns(UserWarning, match="mean weight is below 0.01.* by the number of rows"):
        clone(learner).fit(X, y, sample_weight=small)
    clone(learner).fit(X, y, sample_weight=small * len(y))
    clone(learner).fit(X, y, sample_weight=np.full(len(y), 0.01))


@pytest.mark.parametrize(
    "learner", [*FACTORS, rc.PairwisePerceptron(balance=None), rc.RankSVM(balance=None)], ids=str
)
@pytest.mark.filterwarnings("ignore:fit found no qid")
def test_overflowing_sum_of_weights_is_rejected(learner):
    X, y = data()
    with pytest.raises(ValueError, match=r"overflow|weights are too large"):
        clone(learner).fit(X, y, sample_weight=np.full(len(y), 1e307))


def of_sums(X, noise, cuts):
    return np.digitize(X @ [1, 2, -1, 0, 0.5] + noise, cuts)


def three_sets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    yield X, of_sums(X, rng.normal(size=1200), [-2, 0, 2])
    diabetes, wine = load_diabetes(), load_wine()
    quartiles = np.quantile(diabetes.target, [0.25, 0.5, 0.75])
    yield diabetes.data, np.digitize(diabetes.target, quartiles)
    yield wine.data, wine.target


def by_rows(learner):
    """Make the learner of docs/scikit_learn.md that multiplies weights by the number of rows."""

    class ByRows(type(learner)):
        def fit(self, X, y, sample_weight=None):
            weights = None if sample_weight is None else len(y) * sample_weight
            return super().fit(X, y, sample_weight=weights)

    return ByRows(**learner.get_params())


# Accuracies when weights of at most 1 were divided by their mean.
BEFORE = {
    rc.WidrowHoff(random_state=0): [0.668, 0.416, 0.933],
    rc.CuSumRank(random_state=0): [0.715, 0.403, 0.989],
    rc.OrdinalBoost(20): [0.623, 0.367, 0.989],
}


@pytest.mark.parametrize("learner", BEFORE, ids=str)
def test_adaboost_is_as_accurate_as_with_rescaled_weights(learner):
    for (X, y), before in zip(three_sets(), BEFORE[learner], strict=True):
        X = StandardScaler().fit_transform(X) if len(y) < 1000 else X
        train, test = np.array_split(np.random.default_rng(1).permutation(len(y)), [len(y) // 2])
        boosted = AdaBoostClassifier(by_rows(learner), n_estimators=10, random_state=0)
        boosted.fit(X[train], y[train])
        assert boosted.score(X[test], y[test]) >= before - 0.001


def test_adaboost_alone_warns():
    X, y = next(three_sets())
    with pytest.warns(UserWarning, match="the mean weight is below 0.01"):
        AdaBoostClassifier(rc.WidrowHoff(random_state=0), n_estimators=1).fit(X, y - y % 2)


@walk([*BY_VISITS, *BY_DRAWS])
def test_equal_fractions_equal_no_weights(learner):
    X, y = data(113)
    plain = decided(clone(learner).fit(X, y), X)
    for share in SHARES:
        one = clone(learner).fit(X, y, sample_weight=np.full(len(y), share))
        np.testing.assert_array_equal(decided(one, X), plain)
        other = clone(learner).set_params(class_weight=dict.fromkeys(range(4), share)).fit(X, y)
        np.testing.assert_array_equal(decided(other, X), plain)


@walk([*BY_VISITS, *BY_DRAWS])
def test_equal_fractions_equal_no_weights_despite_rows_of_weight_zero(learner):
    X, y = data(112)
    half = np.arange(len(y)) % 2 == 0  # a mean of half the share: 2 visits, and none is drawn
    one, *others = (
        clone(learner).fit(X, y, sample_weight=share * half) for share in [0.5, *SHARES]
    )
    for other in others:
        np.testing.assert_array_equal(decided(other, X), decided(one, X))


RANKERS = [
    *(
        one
        for one in SAVED_RANKERS
        if learns_from(one) == "queries" and getattr(one, "combine", "score") != "rank"
    ),
    rc.RankBoost(5, balance=None),
]


@walk(RANKERS)
def test_equal_weights_of_rankers_equal_no_weights_exactly(learner):
    # They weigh pairs beside others of the query (or, when boosting, beside all).
    X, y = data(60)
    qid = np.arange(60) // 13
    pairs = np.array([(i, j) for i in range(13) for j in range(13) if y[i] > y[j]])

    def scores(**given):
        return clone(learner).fit(X, y, qid=qid, **given).predict(X)

    plain, listed = scores(), scores(pairs=pairs)
    for weight in [*SHARES, 3.0, 7.3, 1e300]:
        rows = np.full(60, weight)
        np.testing.assert_array_equal(scores(sample_weight=rows), plain)
        np.testing.assert_array_equal(scores(sample_weight=rows, pairs=pairs), listed)
        by_pair = np.full(len(pairs), weight)
        np.testing.assert_array_equal(scores(pairs=pairs, pairs_weight=by_pair), listed)
        np.testing.assert_array_equal(scores(sample_weight=rows[:5]), plain)
        if isinstance(learner, rc.RankBoost):
            two = rc.BipartiteRankBoost(5, balance=learner.balance)
            np.testing.assert_array_equal(
                clone(two).fit(X, y > 1, sample_weight=rows).predict(X),
                clone(two).fit(X, y > 1).predict(X),
            )


BALANCED = [
    *RANKERS[:4],
    rc.RankBoost(5, max_leaf_nodes=4, min_samples_leaf=1),
]


@pytest.mark.parametrize(
    ("learner", "by"),
    [*product(BALANCED, ["labels", "pairs"]), (rc.BipartiteRankBoost(5), "labels")],
    ids=str,
)
def test_query_weights_equal_the_same_weights_of_their_rows(learner, by):
    X, y = data(60)
    qid = np.arange(60) % 5  # in the order of first appearance, with rows apart
    pairs = [(i, i + 5) for i in range(55) if y[i] != y[i + 5]]
    if getattr(learner, "kernel", None):
        learner = clone(learner).set_params(gamma=0.3)

    def scores(rows=slice(None), **weights):
        if by == "pairs":
            return clone(learner).fit(X, qid=qid, pairs=pairs, **weights).predict(X)
        return clone(learner).fit(X[rows], y[rows] > 1, qid=qid[rows], **weights).predict(X)

    of_queries = np.array([3.0, 0.2, 1.0, 7.0, 0.5])
    by_row = scores(sample_weight=of_queries[qid])
    np.testing.assert_array_equal(scores(sample_weight=of_queries), by_row)
    assert np.abs(by_row - scores()).max() > 1e-3
    # Only their ratios matter.
    np.testing.assert_allclose(
        scores(sample_weight=1000 * of_queries), by_row, rtol=1e-6, atol=1e-12
    )
    if by == "labels":
        of_queries[2] = 0
        removed = scores(np.flatnonzero(qid != 2), sample_weight=of_queries[[0, 1, 3, 4]])
        np.testing.assert_allclose(scores(sample_weight=of_queries), removed, rtol=1e-9)


@pytest.mark.parametrize(
    "learner", [rc.RankSVM(), rc.RankBoost(5), rc.PairwisePerceptron(random_state=0)], ids=str
)
def test_searches_and_cross_validation_accept_weights_of_queries(learner):
    X, y, qid = rc.datasets.make_letor(12, 8, random_state=0)
    of_queries = np.random.default_rng(0).uniform(0.1, 5, size=12)
    weights = np.repeat(of_queries, 8)
    parts = [qid % 3 == fold for fold in range(3)]
    folds = [(np.flatnonzero(~part), np.flatnonzero(part)) for part in parts]
    expected, weighted = [], []
    for train, test in folds:
        model = clone(learner).fit(X[train], y[train], qid=qid[train], sample_weight=weights[train])
        expected.append(model.score(X[test], y[test], qid=qid[test]))
        weighted.append(model.score(X[test], y[test], weights[test], qid=qid[test]))
    for some in (of_queries, weights):
        found = rc.model_selection.cross_validate_queries(
            learner, X, y, qid, metrics="ndcg@10", cv=folds, fit_params={"sample_weight": some}
        )
        np.testing.assert_allclose(found.values[:, 0], expected, rtol=1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(learner, {"balance": ["query"]}, cv=folds)
        search.fit(X, y, qid=qid, sample_weight=weights)
        with pytest.raises(ValueError, match="in a search, repeat weights of queries by row"):
            GridSearchCV(learner, {"balance": ["query"]}, cv=folds, error_score="raise").fit(
                X, y, qid=qid, sample_weight=of_queries
            )
    assert search.best_score_ == pytest.approx(np.mean(weighted), rel=1e-12)
    whole = clone(learner).fit(X, y, qid=qid, sample_weight=of_queries)
    np.testing.assert_array_equal(search.predict(X), whole.predict(X))


@walk(RANKERS)
def test_rows_of_weight_zero_have_no_effect_on_rankers(learner):
    X, y = data(60)
    qid = np.arange(60) // 13
    weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], size=60)
    there = weights > 0
    X = X * [1.0, 100.0, 1.0]  # so that features are put on one scale
    X[~there] *= 1000.0  # which scales must not show
    one = clone(learner).fit(X, y, qid=qid, sample_weight=weights)
    other = clone(learner).fit(X[there], y[there], qid=qid[there], sample_weight=weights[there])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("learner", "told"),
    [(rc.RankBoost(3), "weights of some pairs underflow"), (rc.RankSVM(), "weights are too")],
    ids=["RankBoost", "RankSVM"],
)
def test_a_weight_above_0_never_leaves_a_row_out(learner, told):
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    y, qid = [1, 0, 1, 0], [0, 0, 1, 1]
    # Each pair of the first query weighs less than float64 holds: 0 would be a query without pairs.
    with pytest.raises(ValueError, match=told):
        learner.fit(X, y, qid=qid, sample_weight=[5e-324, 1.0, 1.0, 1.0])


@walk(RANKERS)
def test_listed_pairs_whose_weight_underflows_are_rejected(learner):
    X, qid = data(4)[0], np.zeros(4)
    given = {"qid": qid, "pairs": [[3, 2], [1, 0]], "sample_weight": [1e-200, 1e-200, 1, 1]}
    learner = as_they_are(learner)
    with pytest.raises(ValueError, match=r"pairs\[1\] and those of rows 1 and 0 underflows"):
        clone(learner).fit(X, **given)
    by_pair = {"pairs_weight": [1, 1e-300], "sample_weight": [1e-20, 1e-20, 1, 1]}
    with pytest.raises(ValueError, match=r"weight of pairs\[1\]"):
        clone(learner).fit(X, **given | by_pair)
    # What weighs 0 is left out, as it always was.
    zero = clone(learner).fit(X, **given | {"sample_weight": [0, 1e-200, 1, 1]})
    alone = clone(learner).fit(X, qid=qid, pairs=[[3, 2]], sample_weight=[0, 1, 1, 1])
    np.testing.assert_array_equal(zero.predict(X), alone.predict(X))
