"""CSR with int64 indices and offsets, as matrices of 2**31 values and more have them."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from declared import ORDINAL, RANKERS, data_for, walk
from kernel_structured_problems import COSTS, Multiclass
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import some_rows
from rankcore.structured import CuSumTask, KernelStructuredPerceptron, StructuredPerceptron

RNG = np.random.default_rng(7)
N, D = 240, 9
DENSE = np.round(4 * RNG.normal(size=(N, D))) / 4 * (RNG.random((N, D)) < 0.6)
Y = 1 + np.digitize(DENSE @ RNG.normal(size=D) + RNG.normal(size=N), [-1, 1])
QID = np.arange(N) // 8
ORDER = {"max_iter": 2, "random_state": 0}


def forms():
    """One matrix with indices of 32 and of 64 bits."""
    narrow, wide = sp.csr_array(DENSE), sp.csr_array(DENSE)
    # SciPy's constructors narrow indices that fit.
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert wide.indices.dtype == wide.indptr.dtype == np.int64
    assert narrow.indices.dtype == narrow.indptr.dtype == np.int32
    return narrow, wide


LEARNERS = [
    *ORDINAL,
    *RANKERS,
    rc.KernelPRank(kernel=linear_kernel, **ORDER),
    rc.RankSVM(kernel=linear_kernel, random_state=0),
    StructuredPerceptron(CuSumTask(3)),
]


@walk(LEARNERS)
def test_wide_indices_give_the_same_models_and_scores(learner):
    structured = isinstance(learner, StructuredPerceptron)
    given = {"Y": Y} if structured else data_for(learner, Y, QID)
    queries = {"qid": QID} if getattr(learner, "combine", "") == "rank" else {}
    found = []
    for X in forms():
        model = clone(learner).fit(X, **given)
        score = getattr(model, "decision_function", partial(model.predict, **queries))
        found.append((model.predict(X, **queries), score(X)))
        if not queries:
            found[-1] += (score(DENSE[:7]),)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_parts_of_structured_inputs_may_have_wide_indices():
    found = []
    for X in forms():
        inputs = [part(X, i) for i in range(60)]
        model = KernelStructuredPerceptron(Multiclass(COSTS), max_iter=2, random_state=0)
        model.fit(inputs, (Y[:60] - 1).tolist())
        found.append((model.predict(inputs), model.dual_coef_))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


def part(X, i):
    """Return a row as a matrix, with indices of the same type."""
    found = X[[i]]
    found.indices = found.indices.astype(X.indices.dtype)
    found.indptr = found.indptr.astype(X.indptr.dtype)
    return found


@pytest.mark.parametrize("standardize", ["auto", False])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_rows_of_weight_0_do_not_count_for_automatic_scales(kernel, standardize):
    weights = (np.arange(N) % 3 == 0).astype(float)
    kept = weights > 0
    params = {"kernel": kernel, "budget": 20, "standardize": standardize, **ORDER}
    model = rc.KernelCuSumRank(intercept_scaling=2.0, gamma="half", **params)
    model.fit(DENSE, Y, sample_weight=weights)
    learned = StandardScaler().fit_transform(DENSE[kept]) if standardize else DENSE[kept]
    assert model.gamma_ == pytest.approx(0.5 / (D * learned.var()), rel=1e-12)
    given = rc.KernelCuSumRank(intercept_scaling=2.0, gamma=model.gamma_, **params)
    given.fit(DENSE[kept], Y[kept], sample_weight=np.ones(kept.sum()))
    np.testing.assert_array_equal(model.decision_function(DENSE), given.decision_function(DENSE))


WHICH = [slice(0, 0), slice(0, 5), slice(3, 7), slice(2, N), np.array([4, 4, 0, N - 1]), QID[:0]]


@pytest.mark.parametrize("which", WHICH, ids=str)
def test_selected_rows_equal_those_of_scipy(which):
    X = sp.csr_array(DENSE)
    X.data[X.indptr[3] : X.indptr[4]] = 0  # stored zeros stay
    for given in (X, DENSE):
        found = some_rows(as_rows(given), which)
        assert found.shape == given[which].shape
        assert not (found != given[which]).sum()
    assert some_rows(as_rows(X), which).nnz == X[which].nnz


def test_selecting_rows_allocates_memory_for_these_alone():
    rows = as_rows(sp.csr_array((10**6, 3)))
    for which in (slice(10, 20), np.arange(10, 20)):
        tracemalloc.start()
        try:
            some_rows(rows, which)
            assert tracemalloc.get_traced_memory()[1] < 10_000
        finally:
            tracemalloc.stop()


def test_wide_indices_take_the_memory_of_narrow_ones():
    n = 10**6
    X = sp.csr_array((1000, 1000))
    X.data, X.indices = np.ones(n), np.tile(np.arange(1000), 1000)
    X.indptr = np.arange(0, n + 1, 1000)
    assert X.indices.dtype == np.int64
    tracemalloc.start()
    try:
        as_rows(X)
        assert tracemalloc.get_traced_memory()[1] < 4.5 * n
    finally:
        tracemalloc.stop()
