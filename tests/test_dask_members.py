"""Ensembles whose members are divided among workers: the model of memory, to the bit."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from rankcore.datasets import dump_letor, make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask.array as da
from dask import delayed

import rankcore.dask as rd
from rankcore.dask import _members

NAMES = ["OAPBPM", "OAPBagging", "OAPVoting"]


@pytest.fixture(scope="module")
def rows():
    X, y = make_ordinal(400, 30, mean_nnz=8, random_state=0)
    return sp.csr_array(X), y


def parts(*arrays, n=3):
    """Lists of delayed blocks."""
    edges = np.linspace(0, arrays[0].shape[0], n + 1).astype(int)
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


def saved(model, tmp_path):
    rc.save(model, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    ("kind", "n_blocks", "params"),
    [
        ("csr", 1, {"n_estimators": 50}),
        ("csr", 4, {"n_estimators": 50}),
        ("dense", 7, {"n_estimators": 21, "average_members": False, "shuffle": False}),
        ("csr", 2, {"n_estimators": 3, "sampling": "poisson", "class_weight": "balanced"}),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_members_make_the_model_of_memory(
    name, kind, n_blocks, params, client, rows, tmp_path
):
    X, y = rows if kind == "csr" else (rows[0].toarray(), rows[1])
    expected = getattr(rc, name)(max_iter=3, random_state=5, **params).fit(X, y)
    model = getattr(rd, name)(max_iter=3, random_state=5, **params)
    model.fit(*parts(X, y), n_blocks=n_blocks)
    assert type(model.to_local()) is getattr(rc, name)
    assert saved(model.to_local(), tmp_path) == saved(expected, tmp_path)


def test_tiles_are_cut_anywhere(client, tmp_path):
    # So many features that a tile has eight members: blocks are of whole tiles and of parts.
    X, y = make_ordinal(60, 3000, mean_nnz=40, random_state=1)
    X = sp.csr_array(X)
    expected = rc.OAPBPM(n_estimators=61, max_iter=2, random_state=2).fit(X, y)
    assert len(expected._state.others["steps"]) > 1
    for n_blocks in [3, 5]:
        model = rd.OAPBPM(n_estimators=61, max_iter=2, random_state=2)
        model.fit(*parts(X, y, n=2), n_blocks=n_blocks)
        assert saved(model.to_local(), tmp_path) == saved(expected, tmp_path)


def test_shards_count_the_values_that_are_not_0(client, tmp_path):
    # Shards of different density, together an eighth of 24 * 20 values.
    X = np.zeros((24, 20))
    X.flat[:60] = 1.0 + np.arange(60) % 4
    y = np.arange(24) % 3
    for rows, factor in ((X, 1), (np.where(np.arange(20) == 7, 1.0, X), 4)):
        expected = rc.OAPBPM(n_estimators=5, max_iter=2, random_state=2).fit(rows, y)
        model = rd.OAPBPM(n_estimators=5, max_iter=2, random_state=2)
        model.fit(*parts(sp.csr_array(rows), y))
        assert saved(model.to_local(), tmp_path) == saved(expected, tmp_path)
        mean = 2.0 ** round(np.log2((rows**2).sum(axis=1).mean()))
        assert model.to_local().threshold_scale_ ** 2 == pytest.approx(factor * mean, rel=1e-12)


def test_blocks_have_each_member_once(rows):
    model = rc.OAPBPM(n_estimators=45)
    for n_features in [5, 500, 20_000]:
        state = model._new_state(n_features, 4)
        for n in [1, 2, 5, 100]:
            blocks = _members.cut_members(state, n)
            edges = [blocks[0].first, *(block.last for block in blocks)]
            assert len(blocks) == min(n, 6)
            assert edges[0] == 0
            assert edges[-1] == state.others["survived"].size
            assert [block.first for block in blocks[1:]] == edges[1:-1]


def test_the_fit_stops_by_tol_as_in_memory(client, rows, tmp_path):
    X, y = rows
    expected = rc.OAPBPM(n_estimators=16, max_iter=30, tol=0.05, random_state=0).fit(X, y)
    model = rd.OAPBPM(n_estimators=16, max_iter=30, tol=0.05, random_state=0)
    model.fit(*parts(X, y), n_blocks=2)
    assert model.n_iter_ < 30
    assert saved(model.to_local(), tmp_path) == saved(expected, tmp_path)


def test_predictions_are_lazy_and_files_are_read(client, rows, tmp_path):
    X, y = rows
    dump_letor(X, y, tmp_path / "rows.txt")
    model = rd.OAPBagging(n_estimators=10, max_iter=2, random_state=0)
    model.fit(tmp_path / "rows.txt", n_features=30)
    expected = rc.OAPBagging(n_estimators=10, max_iter=2, random_state=0).fit(X, y)
    dX = da.from_array(X.toarray(), chunks=(100, 30))
    assert np.array_equal(model.predict(dX).compute(), expected.predict(X))


def test_bad_arguments_and_overflow_leave_the_estimator(client, rows):
    X, y = rows
    bX, by = parts(X, y)
    model = rd.OAPBPM(n_estimators=8, max_iter=2, random_state=0, threshold_scale=1.0).fit(bX, by)
    before = model.coef_
    with pytest.raises(ValueError, match="n_blocks must be an integer >= 1; found 0"):
        model.fit(bX, by, n_blocks=0)
    with pytest.raises(ValueError, match="overflowed"):
        model.fit(*parts(X * 1e300, y))
    with pytest.raises(TypeError, match="mixing"):
        model.fit(bX, by, mixing="uniform")
    assert np.array_equal(model.coef_, before)
