"""Data shared by the tests of pairwise perceptrons."""

import pickle

import numpy as np
import scipy.sparse as sp

import rankcore as rc
from reference import pairwise as plain
from reference.pair_loss import query_weights

# Worked by hand in exact binary fractions; two queries, lexicographic, two passes.
X = np.array([[2, 1], [0, 2], [1, 0], [1, 2], [2, 2], [0, 1], [1, 0]], dtype=np.float64)


Y = np.array([1, 0, 0, 1, 1, 0, 0])


QID = np.array([1, 1, 1, 2, 2, 2, 2])


SOLVERS = ["gram", "packed", "lazy", "plain"]


FORMS = [np.asarray, sp.csr_array]


def perceptron(variant="last", solver="auto", **params):
    defaults = {"margin": 0.0, "shuffle": False, "max_iter": 2, "standardize": False}
    return solved_by(solver, rc.PairwisePerceptron(variant, **{**defaults, **params}))


def solved_by(solver, model):
    """Make a PairwisePerceptron that keeps scores the same way for all queries."""
    model._solver = solver
    return model


def as_variant(model, variant, **params):
    """Return the same fitted model, answering as another variant."""
    return pickle.loads(pickle.dumps(model)).set_params(variant=variant, **params)


def queries_of(qid):
    """Rows of each query, in order of first appearance."""
    return [np.flatnonzero(qid == one) for one in dict.fromkeys(qid.tolist())]


def lexicographic(y, qid, *, balance=True, epochs=1, count="pair", weights=None):
    """Visits for the plain implementation."""
    weights = np.ones(len(y)) if weights is None else weights
    of_queries = query_weights(qid, weights)
    visits = []
    for rows in queries_of(qid) * epochs:
        pairs = [(rows[i], rows[j]) for i, j in plain.pairs_of(y[rows])]
        pairs = [(i, j) for i, j in pairs if weights[i] * weights[j] > 0]
        of_pairs = np.array([weights[i] * weights[j] for i, j in pairs])
        eta = of_queries[qid[rows[0]]] / of_pairs.sum() if balance and pairs else 1.0
        unit = 1 / len(pairs) if count == "query" and pairs else 1.0
        if pairs:
            visits.append((pairs, eta * of_pairs, unit))
    return visits


def real_data(n_queries=8, n_docs=17, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, d))
    y = np.digitize(X[:, 0] - X[:, 1] + rng.normal(size=len(X)), [-1, 0.5, 1.5])
    return X, y, np.repeat(np.arange(n_queries), n_docs)
