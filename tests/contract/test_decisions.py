"""decision_function as scikit-learn has it, and the latent projection."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, first_of_each, walk
from rankcore.ordinal.projecting import margins
from reference.decisions import cumulated
from reference.decisions import margins as plain_margins
from strategies import examples, ordinal_problems

# Settings of predictions, each with the learners that have it.
OPTIONS = {
    "output": ["mean", "median", "plurality"],
    "tie_break": ["low"],
    "decision": ["count"],
    "average": [False],
}
LEARNERS = [
    *first_of_each(ONLINE),
    *(
        clone(one).set_params(**{name: value})
        for one in first_of_each(ONLINE)
        for name, values in OPTIONS.items()
        for value in values
        if name in one.get_params()
    ),
]


@walk(LEARNERS)
@given(problem=ordinal_problems(max_rows=12))
@settings(max_examples=examples(25), deadline=None)
def test_predict_is_the_argmax_ties_included(learner, problem):
    # Rows of small integers: scores tie with each other and hit thresholds all the time.
    X, y, k = problem
    model = clone(learner).fit(X, y, classes=range(1, k + 1))
    decisions = model.decision_function(X)
    ranks = model._ranks(model._more_rows(X))
    if k == 2:
        assert decisions.shape == (len(y),)
        np.testing.assert_array_equal(decisions > 0, ranks == 1)
        return
    assert decisions.shape == (len(y), k)
    np.testing.assert_array_equal(decisions.argmax(axis=1), ranks)
    np.testing.assert_array_equal((decisions > 0).sum(axis=1), 1)  # one rank beats all others


@given(
    scores=st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=6),
    high=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
def test_margins_are_differences_to_the_best_other_rank(scores, high):
    scores = np.array(scores, dtype=float)
    ranks = 3 - scores[:, ::-1].argmax(axis=1) if high else scores.argmax(axis=1)
    np.testing.assert_array_equal(margins(scores, ranks), plain_margins(scores, ranks))
    two = scores[:, :2]
    ranks = 1 - two[:, ::-1].argmax(axis=1) if high else two.argmax(axis=1)
    np.testing.assert_array_equal(margins(two, ranks), plain_margins(two, ranks))


def data(k, n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    cuts = np.linspace(-2, 2, k - 1) if k > 2 else [0.5]
    return X, np.digitize(X @ [2, -1, 1] + 0.3 * rng.normal(size=n), cuts)


def test_prank_scores_are_cumulative_sums_of_projection_minus_threshold():
    X, y = data(4)
    for model in [rc.PRank(random_state=0).fit(X, y), rc.OAPBPM(9, random_state=0).fit(X, y)]:
        scores = cumulated((X @ model.coef_)[:, None] - model.thresholds_)
        ranks = model.classes_.searchsorted(model.predict(X))
        np.testing.assert_allclose(
            model.decision_function(X), plain_margins(scores, ranks), rtol=1e-9, atol=1e-9
        )


def test_two_ranks_are_centred_on_the_threshold():
    X, y = data(2)
    model = rc.PRank(random_state=0).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), model.project(X) - model.thresholds_[0], rtol=1e-12, atol=1e-12
    )
    squares = rc.WidrowHoff(random_state=0).fit(X, y)
    np.testing.assert_allclose(
        squares.decision_function(X), squares.project(X) - 1.5, rtol=1e-12, atol=1e-12
    )


def test_projections_equal_their_definitions():
    X, y = data(4)
    squares = rc.WidrowHoff(random_state=0).fit(X, y)
    np.testing.assert_allclose(squares.project(X), X @ squares.coef_ + squares.intercept_)
    tasks = rc.CuSumRank(random_state=0).fit(X, y)
    np.testing.assert_allclose(
        tasks.project(X), (X @ tasks.coef_.T + tasks.intercept_).sum(axis=1), atol=1e-9
    )
    votes = rc.OAPBagging(7, random_state=0).fit(X, y)
    ranks = [one.classes_.searchsorted(one.predict(X)) + 1 for one in votes.estimators_]
    np.testing.assert_allclose(votes.project(X), np.mean(ranks, axis=0))
    assert not hasattr(rc.MulticlassPerceptron(), "project")  # it has no one direction


def test_decisions_of_votes_are_expected_losses():
    X, y = data(5, n=60)
    model = rc.OAPBagging(6, random_state=1, output="median").fit(X, y)
    votes = np.array([one.classes_.searchsorted(one.predict(X)) for one in model.estimators_])
    for output, power in [("median", 1), ("round", 2)]:
        model.set_params(output=output)
        expected = np.array(
            [[-np.mean(np.abs(row - r) ** power) for r in range(5)] for row in votes.T]
        )
        ranks = model.classes_.searchsorted(model.predict(X))
        found, plain = model.decision_function(X), plain_margins(expected, ranks)
        # Equal votes are told apart by the mean of the members, by less than half a vote.
        np.testing.assert_allclose(found, plain, atol=1 / (2 * 6))
        apart = np.abs(plain) > 1e-9
        np.testing.assert_array_equal(found[apart] > 0, plain[apart] > 0)
