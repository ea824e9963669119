"""Fits that learn nothing warn, in every learner; so do fits of rankers without queries."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import (
    ONLINE,
    ORDINAL,
    RANKERS,
    SAVED_RANKERS,
    first_of_each,
    name_of,
    ranks_queries,
    walk,
)
from rankcore._core.equal_rows import EqualRows
from rankcore._core.inputs import as_rows
from rankcore.datasets import dump_letor, open_rows
from rankcore.structured import StructuredPerceptron, Task

BOOSTERS = [
    one
    for one in (*SAVED_RANKERS, *ORDINAL)
    if hasattr(one, "n_estimators") and hasattr(one, "max_leaf_nodes")
]


def fit(learner, X, y=None):
    n = X.shape[0]
    y = np.arange(n) % 3 if y is None else y
    qid = np.arange(n) % 2  # some learners need two queries
    return clone(learner).fit(X, y, **({"qid": qid} if ranks_queries(learner) else {}))


@walk([*RANKERS, *ORDINAL])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_constant_features_warn(learner):
    for form, value in ((np.asarray, 0.3), (sp.csr_array, 0.0)):
        with pytest.warns(UserWarning, match="learned nothing: .*equal"):
            fit(learner, form(np.full((40, 3), value)))
    one = np.zeros((40, 3))
    one[:20, 1] = 1  # one feature differs
    fit(learner, form(one), np.arange(40) < 20)


@walk(RANKERS)
def test_features_that_are_constant_within_queries_warn(learner):
    qid = np.repeat(np.arange(10), 5)
    X = np.random.default_rng(0).normal(size=(10, 3))[qid]
    y = np.arange(50) % 5 > 2
    with pytest.warns(UserWarning, match="learned nothing"):
        clone(learner).fit(X, y, qid=qid)
    X[::5, 0] += 1
    clone(learner).fit(X, y, qid=qid)


def test_a_path_of_constant_features_warns():
    X, y = np.ones((40, 3)), np.arange(40) % 3
    with pytest.warns(UserWarning, match="ranksvm_path learned nothing: .*equal"):
        rc.ranksvm_path(X, y, qid=np.zeros(40), Cs=[0.1, 1.0])
    rc.ranksvm_path(X + np.eye(40, 3), y, qid=np.zeros(40), Cs=[0.1, 1.0])


@walk(BOOSTERS)
def test_a_continued_fit_without_new_rounds_warns(learner):
    rng = np.random.default_rng(0)
    X, more = rng.normal(size=(2, 80, 3))
    model = clone(learner).set_params(warm_start=True)
    given = {"qid": np.zeros(80)} if ranks_queries(learner) else {}
    model.fit(X, np.arange(80) % 3, **given)
    with pytest.warns(UserWarning, match="learned nothing: .* raise n_estimators"):
        model.fit(more, np.arange(80) % 3, **given)
    more_rounds = model.n_estimators + 2
    model.set_params(n_estimators=more_rounds).fit(more, np.arange(80) % 3, **given)
    assert model.n_iter_ == more_rounds


@pytest.mark.parametrize(
    "learner",
    [one for one in BOOSTERS if one.max_leaf_nodes != 2 or one.weak == "tree"],
    ids=name_of,
)
def test_trees_warn_if_no_leaf_may_be_split(learner):
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.digitize(X[:, 0], [-0.3, 0.3])
    assert fit(learner, X, y).n_iter_ > 0
    large = clone(learner).set_params(min_samples_leaf=7)
    given = {"qid": np.zeros(12)} if ranks_queries(learner) else {}
    with pytest.warns(UserWarning, match="learned nothing: .*min_samples_leaf=7"):
        large.fit(X, y, **given)


def test_automatic_leaf_sizes_equal_those_of_large_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=300)
    qid = np.repeat(np.arange(3), 100)
    auto, twenty = (
        rc.RankBoost(5, max_leaf_nodes=8, **given).fit(X, y, qid=qid).predict(X)
        for given in ({}, {"min_samples_leaf": 20})
    )
    np.testing.assert_array_equal(auto, twenty)


@pytest.mark.parametrize("cached", [False, True], ids=["text", "cache"])
@walk(first_of_each([*ONLINE, *(one for one in SAVED_RANKERS if not hasattr(one, "rel"))]))
def test_constant_features_on_disk_warn(learner, cached, tmp_path):
    path = tmp_path / "rows.txt"
    dump_letor(np.full((40, 3), 0.3), np.arange(40) % 3, path, qid=np.zeros(40, dtype=int))
    given = {"cache": tmp_path / "cache"} if cached else {"n_features": 3}
    with pytest.warns(UserWarning, match="learned nothing: .*equal"):
        clone(learner).fit(open_rows(path, **given))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("cuts", [[0, 8], [0, 1, 2, 3, 8], [0, 4, 8]], ids=str)
def test_rows_of_windows_are_equal_only_if_all_values_are(cuts, form):
    X = np.tile([0.3, 0.0, 2.0], (8, 1))

    def equal(X, weights=None):
        rows = EqualRows()
        for start, stop in pairwise(cuts):
            some = None if weights is None else weights[start:stop]
            found = rows.add(as_rows(form(X[start:stop])), some)
        return found

    assert equal(X)
    for row in range(8):
        changed = X.copy()
        changed[row, 2] = np.nextafter(2.0, 3.0)
        assert not equal(changed)
        weights = np.ones(8)
        weights[row] = 0
        assert equal(changed, weights)
    alone = np.zeros(8)
    alone[3] = 1
    assert not equal(X, alone)  # one row is not compared with another


@dataclass(frozen=True)
class Halves(Task):
    """Labels 0 and 1 of rows, as inner products with a feature."""

    def n_parameters(self, X):
        return len(X[0])

    def candidates(self, x):
        return 0, 1

    def features(self, x, y):
        return np.arange(len(x)), np.multiply(x, y)


def test_outputs_of_equal_features_warn():
    X, y = np.zeros((20, 2)), [0, 1] * 10
    with pytest.warns(UserWarning, match="StructuredPerceptron learned nothing"):
        StructuredPerceptron(Halves()).fit(X, y)
    StructuredPerceptron(Halves()).fit(X + 1, y)
    StructuredPerceptron(Halves()).fit(X, [0] * 20)  # right from the start


def test_constant_features_on_a_cluster_warn(client):
    from dask import delayed

    import rankcore.dask as rd

    X, y, qid = np.full((40, 3), 0.3), np.arange(40) % 2, np.arange(40) // 20
    parts = [[delayed(one[:20]), delayed(one[20:])] for one in (X, y, qid)]
    with pytest.warns(UserWarning, match="RankBoost learned nothing: .*equal"):
        rd.RankBoost().fit(parts[0], parts[1], qid=parts[2])


@pytest.mark.parametrize(
    "learner", ["PRank", "CuSumRank", "OAPBPM", "PairwisePerceptron", "RankSVM"]
)
def test_features_whose_squares_vanish_on_a_cluster_warn(learner, client):
    from dask import delayed

    import rankcore.dask as rd

    X, y, qid = (
        np.random.default_rng(0).normal(size=(40, 3)),
        np.arange(40) % 2,
        np.arange(40) // 20,
    )
    X[:, 1] *= 1e-200
    parts = [[delayed(one[:20]), delayed(one[20:])] for one in (X, y, qid)]
    given = {} if learner in ("PRank", "CuSumRank", "OAPBPM") else {"qid": parts[2]}
    with pytest.warns(UserWarning, match=f"{learner}: the values of column 1 are so small"):
        getattr(rd, learner)().fit(parts[0], parts[1], **given)


@pytest.mark.parametrize("learner", first_of_each(SAVED_RANKERS), ids=name_of)
def test_a_fit_without_queries_warns(learner):
    X = np.random.default_rng(0).normal(size=(6, 2))
    y = np.array([0, 1, 0, 1, 1, 0])
    declared = [{"qid": np.zeros(6)}, {"group": [6]}]
    if isinstance(learner, rc.BipartiteRankBoost):
        declared.append({})
    else:
        declared.append({"pairs": [[1, 0], [3, 2]]})
        with pytest.warns(UserWarning, match=r"fit found no qid .* qid=np.zeros\(n\)"):
            expected = clone(learner).set_params(**seeded(learner)).fit(X, y).predict(X)
        given = clone(learner).set_params(**seeded(learner)).fit(X, y, qid=np.zeros(6))
        np.testing.assert_array_equal(given.predict(X), expected)
    for given in declared:
        clone(learner).fit(X, y, **given)
    if hasattr(learner, "partial_fit"):
        clone(learner).partial_fit(X, y)  # a call has one query


def seeded(learner):
    return {"random_state": 0} if "random_state" in learner.get_params() else {}
