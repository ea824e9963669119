"""Scores of many rows by trees of few leaves, which walk nowhere: to the bit those of a walk."""

from itertools import accumulate

import numpy as np
import pytest
import scipy.sparse as sp

from rankcore._core.inputs import as_rows
from rankcore._ext import trees as kernels
from reference.trees import find_leaf

pytestmark = pytest.mark.kernel

FLOAT_MAX = float(np.finfo(np.float32).max)
# Where the two precisions part: halfway between floats, beyond them, subnormal, zeros.
EDGES = [0.1, 1 + 2.0**-24, -1 - 2.0**-25, FLOAT_MAX, 1.5 * FLOAT_MAX, 1e300, -1e300, 1e-50, -1e-50]
EDGES += [0.0, -0.0, 2.0**-149, -np.inf]


def random_tree(rng, n_leaves, n_features, thresholds):
    """Nodes of a tree that grows at random leaves: [feature, threshold, side, low, high]."""
    nodes, open_ends = [], [None]
    for _ in range(n_leaves - 1):
        end = open_ends.pop(rng.integers(len(open_ends)))
        if end is not None:
            nodes[end[0]][3 + end[1]] = len(nodes)
        nodes.append(
            [
                int(rng.integers(n_features)),
                float(rng.choice(thresholds)),
                int(rng.integers(2)),
                0,
                0,
            ]
        )
        open_ends += [(len(nodes) - 1, 0), (len(nodes) - 1, 1)]
    for leaf, k in enumerate(rng.permutation(len(open_ends)).tolist()):
        if open_ends[k] is not None:
            nodes[open_ends[k][0]][3 + open_ends[k][1]] = ~leaf
    return nodes


def packed(trees, values):
    """Arrays that the kernel takes."""
    nodes = [node for tree in trees for node in tree]
    columns = np.array(nodes, dtype=object).reshape(-1, 5).T
    return (
        np.array([0, *accumulate(map(len, trees))], dtype=np.int64),
        columns[0].astype(np.int32),
        np.ascontiguousarray(columns[3:].T.astype(np.int32)),
        columns[2].astype(np.uint8),
        columns[1].astype(np.float64),
        np.concatenate(values),
        np.empty(0, dtype=np.int64),
        np.empty(0, dtype=np.uint32),
    )


def scores_of(X, trees, values, zero_missing, start):
    rows = as_rows(X, nan=True)
    scores = start.copy()
    model = kernels.Trees(*packed(trees, values), X.shape[1], zero_missing)
    kernels.add_scores(rows, model, 0, len(trees), scores)
    return scores


def walked(X, trees, values, zero_missing, start):
    scores = start.copy()
    for tree, value in zip(trees, values, strict=True):
        scores += [value[find_leaf(tree, x, zero_missing)] for x in X.astype(np.float64)]
    return scores


def a_problem(seed, most_leaves, dtype, n):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    X = rng.choice([*EDGES[:4], -FLOAT_MAX, *EDGES[7:-1], 3.0], size=(n, d)).astype(dtype)
    thresholds = [*EDGES, *rng.normal(size=5)]
    sizes = rng.integers(1, most_leaves + 1, size=7)
    sizes[0] = most_leaves
    trees = [random_tree(rng, size, d, thresholds) for size in sizes.tolist()]
    values = [rng.normal(size=size) for size in sizes.tolist()]
    return rng, X, trees, values, rng.normal(size=n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most_leaves", [1, 2, 31, 32, 33, 63, 64, 65, 200])
@pytest.mark.parametrize("missing", [False, True])
def test_scores_equal_those_of_a_traversal(dtype, most_leaves, missing):
    for n in [1, 127, 128, 129, 159, 160, 225]:
        seed = most_leaves * 1000 + n
        rng, X, trees, values, start = a_problem(seed, most_leaves, dtype, n)
        if missing:
            X[rng.random(X.shape) < 0.2] = np.nan
        found = scores_of(X, trees, values, False, start)
        expected = walked(X, trees, values, False, start)
        np.testing.assert_array_equal(found, expected, err_msg=f"{n} rows")


@pytest.mark.parametrize("most_leaves", [3, 32, 64, 65])
@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_rows_with_missing_zeros_score_as_in_a_traversal(most_leaves, sparse):
    rng, X, trees, values, start = a_problem(most_leaves, most_leaves, np.float32, 200)
    X *= rng.random(X.shape) < 0.5
    X = X + 0.0  # no negative zeros, which a sparse matrix keeps
    expected = {zero: walked(X, trees, values, zero, start) for zero in (False, True)}
    assert not np.array_equal(expected[False], expected[True])
    for zero, wanted in expected.items():
        given = sp.csr_matrix(X) if sparse else X
        assert np.array_equal(scores_of(given, trees, values, zero, start), wanted)


def test_values_beyond_single_precision_score_as_in_a_traversal():
    rng, X, trees, values, start = a_problem(5, 31, np.float64, 160)
    X = np.where(rng.random(X.shape) < 0.3, 2 * FLOAT_MAX, X) * rng.choice([-1, 1], size=X.shape)
    found = scores_of(X, trees, values, False, start)
    assert np.array_equal(found, walked(X, trees, values, False, start))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_leaves", [2, 32, 33, 64, 65])
def test_every_leaf_is_reached(dtype, n_leaves):
    """The last leaf is the first that is left when all nodes have fired."""
    last = n_leaves - 2
    chain = [[0, float(i), 0, ~i, i + 1 if i < last else ~(last + 1)] for i in range(n_leaves - 1)]
    X, values = np.arange(n_leaves, dtype=dtype)[:, np.newaxis], np.arange(n_leaves) + 0.5
    X = np.concatenate([X] * 70)
    found = scores_of(X, [chain], [values], False, np.zeros(len(X)))
    assert np.array_equal(found, X[:, 0] + 0.5)


def test_range_of_trees_is_scored():
    _, X, trees, values, start = a_problem(8, 31, np.float32, 160)
    found = start.copy()
    model = kernels.Trees(*packed(trees, values), X.shape[1], False)
    kernels.add_scores(as_rows(X), model, 2, 5, found)
    assert np.array_equal(found, walked(X, trees[2:5], values[2:5], False, start))


def test_rows_with_a_stride_are_scored():
    _, X, trees, values, start = a_problem(9, 31, np.float32, 160)
    wide = np.full((160, X.shape[1] + 5), np.nan, dtype=np.float32)
    wide[:, : X.shape[1]] = X
    found = start.copy()
    rows = as_rows(wide[:, : X.shape[1]])
    model = kernels.Trees(*packed(trees, values), X.shape[1], False)
    kernels.add_scores(rows, model, 0, len(trees), found)
    assert np.array_equal(found, walked(X, trees, values, False, start))


def test_invalid_trees_are_rejected():
    """A node that two lead to, and one that none does: only a walk knows what they mean."""
    rng = np.random.default_rng(0)
    X, start = rng.normal(size=(160, 1)).astype(np.float32), np.zeros(160)
    shared = [[0, 0.5, 0, 1, 2], [0, -0.5, 0, 2, ~0], [0, 0.1, 0, ~1, ~2]]
    unreached = [[0, 0.5, 0, 2, ~1], [0, -9.0, 1, ~0, ~0], [0, -0.5, 0, ~0, ~2]]
    for nodes in (shared, unreached):
        values = [rng.normal(size=len(nodes) + 1)]
        found = scores_of(X, [nodes], values, False, start)
        assert np.array_equal(found, walked(X, [nodes], values, False, start))
