"""Averages of pairwise perceptrons that forget: compared with all stored hypotheses."""

import numpy as np
import pytest

import rankcore as rc

pytestmark = pytest.mark.kernel

SOLVERS = ["plain", "lazy", "packed", "gram"]


def queries(n=30, size=12, seed=0, integers=True):
    """Return noisy rows of queries; sums of small integers are exact."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n * size, 5)).astype(np.float64)
    if not integers:
        X += rng.normal(size=X.shape)
    y = np.digitize(X @ [2, 1, -1, 0, 0] + 6 * rng.normal(size=n * size), [-3, 3])
    return X, y, np.repeat(np.arange(n), size)


def fitted(half_life, solver="auto", integers=True, **params):
    X, y, qid = queries(integers=integers)
    given = {"max_iter": 8, "standardize": False, "balance": None, "random_state": 0} | params
    model = rc.PairwisePerceptron(half_life=half_life, **given)
    model._solver = solver
    return model.fit(X, y, qid=qid)


def by_age(half_life, **params):
    """Return the mean of all hypotheses, weighted by successes and by mistakes since."""
    kept = {"variant": "voted", "combine": "rank", "max_hypotheses": None}
    model = fitted(None, **kept, **params)._state.model
    n = model.kept
    weights = np.vstack([model["members"][:n], model["weights"]])
    successes = np.append(model["successes"][:n], model.present())
    assert np.array_equal(model["born"][:n], np.arange(n))
    successes *= 0.5 ** (np.arange(n, -1, -1) / half_life)
    return successes @ weights / successes.sum(), n


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("count", ["pair", "query"])
@pytest.mark.parametrize("half_life", [1, 20.5, 1e6])
def test_average_equals_that_of_all_hypotheses_by_age(half_life, count, solver):
    found = fitted(half_life, solver, count=count).coef_
    expected, n_mistakes = by_age(half_life, count=count)
    assert n_mistakes > 1000  # with a half-life of 1 the weights are divided several times
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("balance", ["query", None])
def test_half_life_follows_steps_of_any_length(balance, shuffle):
    params = {"balance": balance, "shuffle": shuffle, "integers": False}
    found = fitted(12, **params).coef_
    np.testing.assert_allclose(found, by_age(12, **params)[0], rtol=1e-9, atol=1e-9)


def test_chunk_sizes_do_not_change_the_model_of_queries():
    X, y, qid = queries()
    learner = rc.PairwisePerceptron(half_life=1.5, random_state=0)
    whole = learner.partial_fit(X, y, qid=qid)
    cut = rc.PairwisePerceptron(half_life=1.5, random_state=0)
    for part in np.split(np.arange(len(y)), [12, 24, 120, 132]):
        cut.partial_fit(X[part], y[part], qid=qid[part])
    assert cut._state.model == whole._state.model


def test_saved_pairwise_model_continues_as_if_uninterrupted(tmp_path):
    X, y, qid = queries()
    whole = rc.PairwisePerceptron(half_life=1.5, random_state=0).partial_fit(X, y, qid=qid)
    begun = rc.PairwisePerceptron(half_life=1.5, random_state=0)
    begun.partial_fit(X[:240], y[:240], qid=qid[:240])
    rc.save(begun, tmp_path / "begun")
    loaded = rc.load(tmp_path / "begun").partial_fit(X[240:], y[240:], qid=qid[240:])
    assert loaded._state.model == whole._state.model


def test_half_life_of_pairs_requires_an_average():
    with pytest.raises(ValueError, match="half_life .* requires variant='averaged'; got"):
        fitted(10, variant="committee")


@pytest.mark.parametrize("half_life", [0, -1, np.nan, True, "auto", np.inf])
def test_half_life_of_pairs_rejects_other_values(half_life):
    with pytest.raises((ValueError, TypeError), match="PairwisePerceptron: half_life must be"):
        fitted(half_life)
