"""Widrow-Hoff and the multiclass perceptron against worked numbers and plain implementations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankcore as rc
from reference.decisions import margins
from reference.rivals import multiclass, widrow_hoff
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel


def test_widrow_hoff_has_the_golden_values():
    model = rc.WidrowHoff.published(eta0=0.1)
    expected = [(0, (0.3, 0.3)), (0.3, (0.37, 0.3)), (0.97, (0.773, 1.106))]
    for (score, (b, w)), (a, y) in zip(expected, [(1, 3), (0, 1), (2, 5)], strict=True):
        if model.__sklearn_is_fitted__():
            np.testing.assert_allclose(model.project([[a]]), [score], rtol=1e-15)
        model.partial_fit([[a]], [y], classes=[1, 2, 3, 4, 5])
        np.testing.assert_allclose(model.intercept_, b, rtol=1e-15)
        np.testing.assert_allclose(model.coef_, [w], rtol=1e-15)


@given(
    problem=ordinal_problems(integers=False),
    intercept=st.booleans(),
    epochs=st.integers(1, 2),
)
@settings(max_examples=examples(80), deadline=None)
def test_widrow_hoff_equals_the_plain_form(problem, intercept, epochs):
    X, y, k = problem
    dense = X.toarray().astype(float)
    full = np.hstack([dense, np.ones((len(y), 1))]) if intercept else dense
    eta = 0.5 / (1 + (full**2).sum(axis=1).max())
    scores, weights, predictions = widrow_hoff(full, y, k, eta, epochs)
    model = rc.WidrowHoff.published(eta0=eta, fit_intercept=intercept, max_iter=epochs)
    model.fit(X, y, classes=range(1, k + 1))
    learned = np.append(model.coef_, model.intercept_) if intercept else model.coef_
    np.testing.assert_allclose(learned, weights[-1], rtol=1e-9, atol=1e-11)  # order of sums
    if (np.abs(scores - np.floor(scores) - 0.5) > 1e-9).all():  # no score on the edge of rounding
        loss = np.abs(predictions - np.tile(y, epochs)).reshape(epochs, -1)
        assert model.history_["rank_loss"] == loss.mean(axis=1).tolist()
    if not intercept:
        assert model.intercept_ == 0


def test_widrow_hoff_rounds_half_up_and_clips():
    model = rc.WidrowHoff.published(eta0=1.0, fit_intercept=False).partial_fit(
        [[1]], [1], classes=[1, 2, 3]
    )
    X = [[-5], [0.5], [1.49], [1.5], [2.5], [3.4], [1e300]]
    assert model.coef_ == [1]
    assert model.predict(X).tolist() == [1, 1, 1, 2, 3, 3, 3]


def test_diverging_widrow_hoff_suggests_scaling():
    X = np.full((2000, 1), 10.0)
    with pytest.raises(
        ValueError, match="overflowed: rows are too long, or constant steps too large.*lower eta0"
    ):
        rc.WidrowHoff.published(eta0=1.0).fit(X, np.tile([1, 2], 1000))


def test_multiclass_has_the_golden_values():
    model = rc.MulticlassPerceptron.published()
    predicted = []
    for x, y in [((1, 0), 3), ((0, 1), 1), ((1, 1), 2), ((1, 0), 3)]:
        predicted.append(model.predict([x])[0] if predicted else 1)
        model.partial_fit([x], [y], classes=[1, 2, 3])
    assert predicted == [1, 1, 3, 2]
    np.testing.assert_array_equal(model.coef_, [(-1, 0), (0, 1), (1, -1)])


@given(
    problem=ordinal_problems(),
    update=st.sampled_from(["worst", "uniform"]),
    epochs=st.integers(1, 3),
)
@settings(max_examples=examples(100), deadline=None)
def test_multiclass_equals_the_plain_form(problem, update, epochs):
    X, y, k = problem
    dense = X.toarray().astype(float)
    W, mean, predictions = multiclass(dense, y, k, update, epochs)
    model = rc.MulticlassPerceptron.published(update=update, max_iter=epochs)
    averaged = rc.MulticlassPerceptron.published(update=update, max_iter=epochs, average=True)
    model.fit(X, y, classes=range(1, k + 1))
    averaged.fit(X.toarray(), y, classes=range(1, k + 1))
    if update == "worst":  # shares of uniform updates round
        np.testing.assert_array_equal(model.coef_, W)
        losses = np.abs(predictions - np.tile(y, epochs)).reshape(epochs, -1)
        assert model.history_["rank_loss"] == losses.mean(axis=1).tolist()
        np.testing.assert_allclose(averaged.coef_, mean, rtol=1e-13, atol=1e-13)
        assert not model.coef_.sum(axis=0).any()
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0, atol=1e-12)
    found = X.toarray() @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(
        model.decision_function(X), margins(found, model.predict(X) - 1), rtol=1e-12, atol=1e-12
    )


@given(problem=ordinal_problems(integers=False))
@settings(max_examples=examples(60), deadline=None)
def test_uniform_updates_equal_the_plain_form(problem):
    # Shares of a mistake round, so the weights agree to rounding; classes that tie have had the
    # same updates, and tie in both.
    X, y, k = problem
    W, mean, _ = multiclass(X.toarray().astype(float), y, k, "uniform")
    for average, expected in [(False, W), (True, mean)]:
        model = rc.MulticlassPerceptron.published(update="uniform", average=average)
        model.fit(X, y, classes=range(1, k + 1))
        np.testing.assert_allclose(model.coef_, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("learner", "x", "what"),
    [
        (rc.WidrowHoff.published(eta0=1e100, fit_intercept=False), 1e210, "weights"),
        (rc.CuSumRank.published(update="pa", fit_intercept=False), 1e-160, "score of row 0"),
        (rc.CuSumRank.published(update="pa"), 1e160, "score of row 0"),
        (rc.CuSumRank.published(update="pa2"), 1e160, "score of row 0"),
    ],
    ids=str,
)
def test_parameters_that_overflow_are_an_error(learner, x, what):
    with pytest.raises(ValueError, match=f"the {what} overflowed"):
        learner.fit([[x]], [1], classes=[1, 2, 3])
    model = clone(learner).partial_fit([[0.0]], [2], classes=[1, 2, 3])
    with pytest.raises(ValueError, match=f"the {what} overflowed"):
        model.partial_fit([[x]], [1])
