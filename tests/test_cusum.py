"""CuSum Rank against its worked numbers, a plain implementation, and its bounds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankcore as rc
from reference.cusum import augment, clear_cut, cusum, scores
from reference.decisions import cumulated, margins
from reference.prank import prank
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel

D0 = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), np.array([1, 2, 2, 3])


def tasks(model):
    """Weights of the tasks with the threshold last, as the paper writes them."""
    return np.hstack([model.coef_, -model.intercept_[:, None]])


def trace(X, y, n, **params):
    """Predictions, and weights after each example, of n examples met in turn."""
    model = rc.CuSumRank.published(**params)
    predictions, weights = [], []
    for t in range(n):
        x, true = X[t % len(X)], y[t % len(X)]
        if t:
            predictions.append(model.predict([x])[0])
        else:
            predictions.append({"high": 3, "low": 1}[params.get("tie_break", "high")])
        model.partial_fit([x], [true], classes=[1, 2, 3])
        weights.append(tasks(model))
    return model, predictions, weights


def total_loss(predictions, y):
    return sum(abs(p - y[t % len(y)]) for t, p in enumerate(predictions))


def test_ties_to_the_highest_have_the_golden_values():
    X, y = D0
    model, predictions, weights = trace(X, y, 40)
    assert predictions[:9] == [3, 1, 2, 2, 3, 2, 3, 1, 2]
    assert total_loss(predictions, y) == 10
    assert total_loss(predictions[:9], y) == 10  # no mistake from example 10 on
    second = {0: (0, 0, 1), 1: (0, 1, 0), 7: (1, 1, 0), 8: (1, 1, 1), 39: (1, 1, 1)}
    third = {0: (0, 0, 1), 3: (1, 0, 0), 6: (0, -1, 2), 7: (1, -1, 1), 39: (1, -1, 1)}
    for task, steps in enumerate([second, third]):
        for t, expected in steps.items():
            np.testing.assert_array_equal(weights[t][task], expected)
    model = rc.CuSumRank.published().partial_fit(X[:1], y[:1], classes=[1, 2, 3])
    np.testing.assert_array_equal(model.decision_function(X[1:2]), [[1, -1, -2]])
    assert model.project(X[1:2]) == -2  # the sum of the tasks


def test_ties_to_the_lowest_have_the_golden_values():
    X, y = D0
    _, predictions, weights = trace(X, y, 40, tie_break="low")
    assert total_loss(predictions, y) == total_loss(predictions[:9], y) == 8
    assert predictions[8] != y[0]
    np.testing.assert_array_equal(weights[-1], [(1, 1, 0), (1, -1, 0)])


def test_margins_have_the_golden_values():
    X, y = D0
    _, _, plain = trace(X, y, 8)
    _, predictions, weights = trace(X, y, 8, margin=1.0)
    np.testing.assert_array_equal(weights[:3], plain[:3])
    assert predictions[3] == 2
    np.testing.assert_array_equal(weights[3], [(1, 1, -1), (1, 0, 0)])
    np.testing.assert_array_equal(weights[4], [(1, 1, 0), (1, 0, 1)])
    np.testing.assert_array_equal(weights[6], [(1, 1, 0), (0, -1, 2)])
    np.testing.assert_array_equal(weights[7], [(1, 1, 0), (1, -1, 1)])


@pytest.mark.parametrize(
    ("params", "rho"),
    [
        ({"update": "pa"}, Fraction(-1, 6)),
        ({"update": "pa1", "C": 0.05}, Fraction(-1, 20)),
        ({"update": "pa2", "C": 0.5}, Fraction(-3, 19)),
    ],
)
def test_passive_aggressive_steps_have_the_golden_values(params, rho):
    model = rc.CuSumRank.published(**params).partial_fit([[1, 2]], [1], classes=[1, 2, 3, 4])
    expected = float(rho) * np.array([[1, 2, -1]] * 3)
    np.testing.assert_allclose(tasks(model), expected, rtol=1e-15)  # one division


def exact_pa(X, y, k, zero_one, n):
    """Hard PA on D0 in rationals."""
    W = [[Fraction(0)] * 3 for _ in range(k - 1)]
    losses, rhos = [], []
    for t in range(n):
        x = [*map(Fraction, X[t % 4].tolist()), Fraction(-1)]
        true = y[t % 4]
        f = [sum(a * b for a, b in zip(w, x, strict=True)) for w in W]
        s = [sum(f[:r], Fraction(0)) for r in range(k)]
        predicted = max(range(k), key=lambda r: (s[r], r)) + 1
        losses.append(abs(predicted - true))
        if losses[-1]:
            low, high = sorted([predicted, true])
            sign = 1 if true > predicted else -1
            loss = 1 if zero_one else high - low
            rho = (sign * loss - sum(f[low - 1 : high - 1])) / (
                (high - low) * sum(a * a for a in x)
            )
            rhos.append(rho)
            for j in range(low - 1, high - 1):
                W[j] = [w + rho * a for w, a in zip(W[j], x, strict=True)]
    return W, losses, rhos


@pytest.mark.parametrize(
    ("pa_loss", "mistakes", "loss", "weights", "first"),
    [
        ("absolute", 9, 12, ["11/12 1 1/12", "31/27 -35/27 23/27"], "-1 1 1 -1 -1/3 11/12"),
        (
            "zero_one",
            11,
            14,
            ["25/48 11/8 3/8", "77/108 -127/108 29/54"],
            "-1/2 3/4 3/4 -3/4 -5/12",
        ),
    ],
)
def test_passive_aggressive_runs_have_the_golden_values(pa_loss, mistakes, loss, weights, first):
    X, y = D0
    W, losses, rhos = exact_pa(X, y, 3, pa_loss == "zero_one", 40)
    assert (np.count_nonzero(losses), sum(losses)) == (mistakes, loss)
    assert max(np.flatnonzero(losses)) + 1 == 15
    assert [[str(w) for w in row] for row in W] == [row.split() for row in weights]
    assert [str(rho) for rho in rhos[: len(first.split())]] == first.split()

    _, predictions, trained = trace(X, y, 40, update="pa", pa_loss=pa_loss)
    assert total_loss(predictions, y) == loss
    np.testing.assert_allclose(trained[-1], np.array(W, dtype=float), rtol=1e-13)  # 15 roundings


@given(
    problem=ordinal_problems(),
    tie=st.sampled_from(["high", "low"]),
    margin=st.sampled_from([0.0, 1.0, 2.5]),
    intercept=st.booleans(),
    epochs=st.integers(1, 3),
    average=st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_models_of_integer_data_equal_the_plain_form(
    problem, tie, margin, intercept, epochs, average
):
    X, y, k = problem
    expected = cusum(
        X.toarray().astype(float), y, k, tie=tie, margin=margin, epochs=epochs, intercept=intercept
    )
    params = {"tie_break": tie, "margin": margin, "fit_intercept": intercept, "max_iter": epochs}
    for form in [X, X.toarray(), X.tocsc()]:
        model = rc.CuSumRank.published(average=average, **params).fit(
            form, y, classes=range(1, k + 1)
        )
        weights = tasks(model) if intercept else model.coef_
        if average:
            # Exact sums, one division each.
            np.testing.assert_allclose(weights, expected["mean"], rtol=1e-13, atol=1e-13)
        else:
            np.testing.assert_array_equal(weights, expected["W"])
        if not intercept:
            assert not model.intercept_.any()
        losses = expected["losses"].reshape(epochs, -1)
        assert model.history_["rank_loss"] == losses.mean(axis=1).tolist()


@given(
    problem=ordinal_problems(integers=False),
    update=st.sampled_from(["pa", "pa1", "pa2"]),
    pa_loss=st.sampled_from(["absolute", "zero_one"]),
    margin=st.sampled_from([0.0, 0.7, 3.0]),
    C=st.sampled_from([0.05, 1.0]),
    delta=st.sampled_from([0.5, 1.0]),
    intercept=st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_passive_aggressive_models_equal_the_plain_form(
    problem, update, pa_loss, margin, C, delta, intercept
):
    X, y, k = problem
    dense = X.toarray().astype(float)
    expected = cusum(dense, y, k, update, C, delta, pa_loss, margin, intercept=intercept)
    model = rc.CuSumRank.published(
        update=update, C=C, delta=delta, pa_loss=pa_loss, margin=margin, fit_intercept=intercept
    )
    assume(clear_cut(model, dense, y, k, margin))
    model.fit(X, y, classes=range(1, k + 1))
    weights = tasks(model) if intercept else model.coef_
    # Steps are quotients of sums formed in another order: rounding grows with each of 30 steps.
    np.testing.assert_allclose(weights, expected["W"], rtol=1e-9, atol=1e-10)
    assert model.history_["rank_loss"] == [expected["losses"].mean()]


@given(problem=ordinal_problems(integers=False), power=st.integers(-3, 3))
@settings(max_examples=examples(60), deadline=None)
def test_hard_pa_is_independent_of_delta(problem, power):
    X, y, k = problem
    classes = range(1, k + 1)
    one = rc.CuSumRank.published(update="pa", max_iter=2).fit(X, y, classes=classes)
    delta = 2.0**power  # exact scaling
    other = rc.CuSumRank.published(update="pa", delta=delta, max_iter=2).fit(X, y, classes=classes)
    assert one.history_ == other.history_
    np.testing.assert_array_equal(one.coef_ * delta, other.coef_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@given(problem=ordinal_problems(integers=False))
@settings(max_examples=examples(60), deadline=None)
def test_hard_pa_attains_the_loss(problem):
    X, y, k = problem
    X = X.toarray().astype(float)
    model = rc.CuSumRank.published(update="pa")
    for i in range(len(y)):
        predicted = model.predict(X[[i]])[0] if i else k
        model.partial_fit(X[[i]], y[[i]], classes=range(1, k + 1))
        if predicted != y[i]:
            after = cumulated(X[[i]] @ model.coef_.T + model.intercept_)[0]
            gap = after[y[i] - 1] - after[predicted - 1]
            np.testing.assert_allclose(gap, abs(predicted - y[i]), rtol=1e-9)


def rank_separable(seed, k=4, d=4, n=80):
    """Examples whose every task has the same sign as a unit vector's, by at least delta."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    base, thresholds = rng.normal(size=d), np.sort(rng.normal(size=k - 1))
    W = np.hstack([np.tile(base, (k - 1, 1)), thresholds[:, None]])
    W /= np.linalg.norm(W)
    f = augment(X) @ W.T
    keep = np.abs(f).min(axis=1) > 0.02
    return X[keep], 1 + (f[keep] >= 0).sum(axis=1), np.abs(f[keep]).min()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(25), deadline=None)
def test_total_loss_stays_below_its_bounds(seed):
    X, y, delta = rank_separable(seed)
    R2 = (augment(X) ** 2).sum(axis=1).max()
    for params in [{}, {"update": "pa"}]:
        model = rc.CuSumRank.published(max_iter=300, **params).fit(X, y, classes=[1, 2, 3, 4])
        assert np.dot(model.history_["rank_loss"], model.history_["examples"]) <= R2 / delta**2
    zero_one = rc.CuSumRank.published(max_iter=300, update="pa", pa_loss="zero_one")
    zero_one.fit(X, y, classes=[1, 2, 3, 4])
    # Each mistake off by l adds 1 / l, at least 1 / 3 here.
    assert sum(zero_one.history_["mistakes"]) / 3 <= R2 / delta**2


def test_the_perceptron_bound_is_tight():
    # One example of length 2 (constant included), five ranks, true rank lowest: loss 4 = R^2.
    model = rc.CuSumRank.published().partial_fit([[np.sqrt(3)]], [1], classes=[1, 2, 3, 4, 5])
    assert model.history_["rank_loss"] == [4]


@given(problem=ordinal_problems())
@settings(max_examples=examples(60), deadline=None)
def test_prank_is_a_special_case_of_the_predictor(problem):
    X, y, k = problem
    model = rc.PRank.published(tie="strict", max_iter=2).fit(X, y, classes=range(1, k + 1))
    W = np.hstack([np.tile(model.coef_, (k - 1, 1)), model.thresholds_[:, None]])
    x = augment(X.toarray().astype(float))
    best = [k - np.argmax(scores(W, row)[::-1]) for row in x]
    np.testing.assert_array_equal(model.predict(X), best)
    assert (prank(X.toarray().astype(float), y, k, "strict", epochs=2)["w"] == model.coef_).all()


@pytest.mark.parametrize("tie", ["high", "low"])
def test_decisions_are_cumulative_scores(tie):
    rng = np.random.default_rng(0)
    X, y = rng.integers(-2, 3, size=(200, 3)), rng.integers(1, 8, size=200)
    model = rc.CuSumRank.published(tie_break=tie).fit(X, y)
    f = X @ model.coef_.T + model.intercept_
    cumulative = np.hstack([np.zeros((200, 1)), np.cumsum(f, axis=1)])
    np.testing.assert_array_equal(cumulated(f), cumulative)
    best = cumulative.argmax(axis=1) if tie == "low" else 6 - cumulative[:, ::-1].argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), 1 + best)
    # Integers: exact.
    np.testing.assert_array_equal(model.decision_function(X), margins(cumulative, best))
    np.testing.assert_array_equal(model.project(X), cumulative[:, -1])
    counting = model.set_params(decision="count")
    count = (f >= 0).sum(axis=1)
    np.testing.assert_array_equal(counting.predict(X), 1 + count)
    falling = cumulated(-np.sort(-f, axis=1))
    np.testing.assert_array_equal(counting.decision_function(X), margins(falling, count))


def test_empty_rows_without_intercept_move_nothing():
    for update in ["perceptron", "pa", "pa1", "pa2"]:
        model = rc.CuSumRank.published(update=update, fit_intercept=False)
        model.fit(np.zeros((3, 2)), [1, 2, 3])
        assert not model.coef_.any()
        assert not model.intercept_.any()
