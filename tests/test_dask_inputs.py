"""Learners on a cluster learn what they learn in memory, from rows and weights of any kind."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from declared import learns_from
from rankcore.datasets import make_letor

pytest.importorskip("distributed", reason="needs the dask extra")

from dask import delayed

import rankcore.dask as rd

N_QUERIES, N_DOCS = 30, 12
N = N_QUERIES * N_DOCS
WORDS = np.array(["awful", "poor", "fair", "good", "best"])  # neither ascending nor descending
TREES = {"n_estimators": 4, "max_leaf_nodes": 8}
NEWTON = {"leaf_step": "newton", "l2_leaf": 0.01}
ONE_BY_ONE = {"max_iter": 2, "shuffle": False}
ENSEMBLE = {**ONE_BY_ONE, "n_estimators": 5, "random_state": 0}
# Name and parameters of a learner of each family. Online learners have one shard: more are mixed.
LEARNERS = {
    "stumps": ("RankBoost", {"n_estimators": 6}),
    "stumps of all pairs": ("RankBoost", {"n_estimators": 6, "balance": None}),
    "trees": ("RankBoost", TREES),
    "newton trees": ("RankBoost", {**TREES, **NEWTON}),
    "ndcg trees": ("RankBoost", {**TREES, "pair_weight": "ndcg"}),
    "bipartite": ("BipartiteRankBoost", {"n_estimators": 6}),
    "vector": ("OrdinalBoost", {"n_estimators": 4}),
    "cumulative": ("OrdinalBoost", {"n_estimators": 4, "tasks": "shared", "link": "cumulative"}),
    "svm": ("RankSVM", {"C": 0.1, "random_state": 0, "tol": 1e-9}),
    "svm of all pairs": ("RankSVM", {"C": 1e-3, "random_state": 0, "tol": 1e-9, "balance": None}),
    "pairwise": ("PairwisePerceptron", ONE_BY_ONE),
    "pairwise of all pairs": ("PairwisePerceptron", {**ONE_BY_ONE, "balance": None}),
    "PRank": ("PRank", ONE_BY_ONE),
    "CuSumRank": ("CuSumRank", ONE_BY_ONE),
    "OrdinalLogistic": ("OrdinalLogistic", ONE_BY_ONE),
    "WidrowHoff": ("WidrowHoff", ONE_BY_ONE),
    "MulticlassPerceptron": ("MulticlassPerceptron", ONE_BY_ONE),
    "OAPBPM": ("OAPBPM", ENSEMBLE),
    "OAPBagging": ("OAPBagging", ENSEMBLE),
    "OAPVoting": ("OAPVoting", ENSEMBLE),
}
# Weights of rows and of whole queries that differ by less than 10^2, and those times a factor.
RNG = np.random.default_rng(1)
WEIGHTS = {"rows": RNG.choice([0.5, 1.0, 3.0], N), "queries": RNG.choice([1.0, 20.0], N_QUERIES)}
WEIGHTS["queries"] = np.repeat(WEIGHTS["queries"], N_DOCS)


OF_LABELS = [
    one for one, (name, _) in LEARNERS.items() if learns_from(getattr(rc, name)) == "labels"
]
# Learners of ratios of weights only, and those whose weights are counts of visits or draws.
OF_RATIOS = ["stumps", "stumps of all pairs", "trees", "newton trees", "ndcg trees", "bipartite"]
OF_RATIOS += ["svm", "pairwise"]
TREES_OF_31 = ["trees", "newton trees", "ndcg trees", "bipartite", "vector", "cumulative"]
OF_COUNTS = ["PRank", "OAPBPM", "OAPBagging", "OAPVoting"]


def walk(learners):
    """Parametrize a test of ``which`` learner."""
    return pytest.mark.parametrize("which", [*learners])


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(N_QUERIES, N_DOCS, n_features=90, random_state=0)
    X = X[:, ::6].astype(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, qid


def cut(array, edges, convert=lambda block: block):
    """Return delayed blocks of an array."""
    return [delayed(convert)(array[a:b]) for a, b in pairwise(edges)]


def fits(which, X, y, qid, weights=None, *, edges=(0, 120, 240, N), convert=None, **params):
    """Return the predictions of fits on shards and in memory.

    ``convert`` makes blocks of rows from those of X.
    """
    name, known = LEARNERS[which]
    if learns_from(getattr(rc, name)) == "binary queries" and y.dtype.kind == "i":
        y = (3 * y > y.max()).astype(int)
    memory, cluster = (getattr(module, name)(**{**known, **params}) for module in (rc, rd))
    given = {"y": y}
    if learns_from(memory) != "labels":
        given["qid"] = qid
    if weights is not None:
        given["sample_weight"] = weights
    blocks = {key: cut(array, edges) for key, array in given.items()}
    n_shards = 1 if hasattr(memory, "shuffle") else 3
    bX = cut(X, edges, convert) if convert else cut(X, edges)
    found = cluster.fit(bX, n_shards=n_shards, **blocks).to_local()
    return predictions(found, X), predictions(memory.fit(X, **given), X)


def predictions(model, X):
    """Return numbers by which models are compared, relative to their size."""
    if hasattr(model, "coef_"):
        return model.coef_ / max(np.abs(model.coef_).max(), 1e-300)
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def check(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the mean weight is below:UserWarning")
@pytest.mark.parametrize("factor", [1e-4, 1e4])
@pytest.mark.parametrize("of", WEIGHTS)
@walk([one for one in LEARNERS if one not in OF_COUNTS])
def test_weights_of_any_size_have_the_meaning_of_memory(which, of, factor, client, queries):
    found, expected = fits(which, *queries, factor * WEIGHTS[of])
    check(found, expected)
    if which in OF_RATIOS:
        check(found, fits(which, *queries, WEIGHTS[of])[1])


@walk(OF_COUNTS)
def test_weights_that_count_too_many_visits_are_rejected(which, client, queries):
    with pytest.raises(ValueError, match="shard 0: .*weights must be at most 1000"):
        fits(which, *queries, 1e4 * WEIGHTS["rows"])


@pytest.mark.parametrize("of", ["rows", "queries"])
@pytest.mark.parametrize("seed", range(3))
@walk(TREES_OF_31)
def test_trees_of_weights_over_six_orders_equal_those_in_memory(which, seed, of, client, queries):
    rng = np.random.default_rng(seed)
    weights = 10.0 ** rng.uniform(-3, 3, N)
    if of == "queries":
        weights = np.repeat(10.0 ** rng.choice([-3, 3], N_QUERIES), N_DOCS)
    size = {"n_estimators": 20}
    if which not in ("vector", "cumulative"):
        size["max_leaf_nodes"] = 31
    check(*fits(which, *queries, weights, **size))


@walk(LEARNERS)
def test_rows_and_shards_without_weight_count_for_nothing(which, client, queries):
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], N)
    weights[:120] = 0  # the first of three shards
    check(*fits(which, *queries, weights))


@walk(LEARNERS)
def test_shards_without_some_ranks_are_accepted(which, client, queries):
    X, y, qid = queries
    check(*fits(which, X, np.where(np.arange(N) < 120, np.minimum(y, 2), y), qid))


@pytest.mark.parametrize(
    "edges", [(0, 120, 120, 240, N, N), range(37)], ids=["some empty", "of one row"]
)
@walk(LEARNERS)
def test_blocks_may_have_one_row_or_none(which, edges, client, queries):
    check(*fits(which, *(array[: edges[-1]] for array in queries), edges=edges))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
@walk(LEARNERS)
def test_blocks_may_be_sparse(which, form, client, queries):
    X, y, qid = queries
    check(*fits(which, sp.csr_array(np.where(X > 0.5, X, 0.0)), y, qid, convert=form))


@pytest.mark.filterwarnings("ignore:the order of the ranks is that of y's categories")
@pytest.mark.parametrize("way", ["declared", "ordered categorical"])
@walk(OF_LABELS)
def test_labels_may_be_words(which, way, client, queries):
    X, y, qid = queries
    pd = pytest.importorskip("pandas")
    words, params = WORDS[y], {"classes": WORDS[: y.max() + 1].tolist()}
    if way == "ordered categorical":
        words, params = pd.Series(pd.Categorical(words, params["classes"], ordered=True)), {}
    check(*fits(which, X, words, qid, **params))
