"""Rows on disk behind a scaler: the numbers and models of the same scaler in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import rankcore as rc
from rankcore.datasets import (
    dump_letor,
    file_rows,
    load_letor,
    make_ordinal,
    open_rows,
    row_cache_writer,
)
from rankcore.datasets.scaled_rows import ScaledRows

# The mean and variance of blocks are put together block by block, those of memory are summed over
# all rows at once: they differ by the rounding of sums of 500 terms of like size.
ROUNDING = {"rtol": 1e-12, "atol": 1e-14}

SCALERS = {
    "maxabs": MaxAbsScaler(),
    "standard": StandardScaler(with_mean=False),
    "centred": StandardScaler(),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks of few values, so that small data have many."""
    for module in (file_rows, row_cache_writer):
        monkeypatch.setattr(module, "BLOCK_VALUES", 200)


@pytest.fixture
def path(tmp_path):
    """Sparse rows whose features differ in scale by orders, one of them constant."""
    X, y = make_ordinal(500, 7, mean_nnz=4, random_state=0)
    X = sp.csr_matrix(X) @ sp.diags_array(10.0 ** np.arange(-3, 4))
    X = sp.hstack([X, np.full((500, 1), 2.5)], format="csr")
    dump_letor(X, y, tmp_path / "rows.txt")
    return tmp_path / "rows.txt"


def opened(path, kind, **more):
    cache = path.with_name("cache") if kind == "cache" else None
    return open_rows(path, cache=cache, **more)


def taken(scaler, X):
    """Rows as a scaler takes them: a scaler that centres takes no sparse ones."""
    return X.toarray() if getattr(scaler, "with_mean", False) else X


@pytest.mark.parametrize("kind", ["text", "cache"])
@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaler_is_fitted_to_rows_on_disk(dtype, name, kind, path):
    data = load_letor(path, dtype=dtype)
    expected = clone(SCALERS[name]).fit(taken(SCALERS[name], data.X))
    scaler = clone(SCALERS[name])
    opened(path, kind, scaler=scaler, dtype=dtype)
    assert scaler.n_samples_seen_ == expected.n_samples_seen_ == 500
    if name == "maxabs":
        assert np.array_equal(scaler.scale_, expected.scale_)
        assert scaler.scale_.dtype == expected.scale_.dtype == dtype
    else:
        # scikit-learn rounds what it finds in sparse float32 values to float32; we do not.
        single = dtype == np.float32 and name == "standard"
        rounding = {"rtol": 2.0**-23} if single else ROUNDING
        assert np.allclose(scaler.mean_, expected.mean_, **rounding)
        assert np.allclose(scaler.scale_, expected.scale_, **rounding)


@pytest.mark.parametrize("name", SCALERS)
def test_text_and_cache_give_one_scaler(name, path):
    scalers = [clone(SCALERS[name]) for _ in range(2)]
    for kind, scaler in zip(["text", "cache"], scalers, strict=True):
        opened(path, kind, scaler=scaler)
    assert np.array_equal(scalers[0].scale_, scalers[1].scale_)


@pytest.mark.parametrize("kind", ["text", "cache"])
@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize(
    "model",
    [
        rc.PRank(max_iter=3, shuffle=False),
        rc.CuSumRank(max_iter=2, shuffle=False),
        rc.OAPBPM(n_estimators=5, max_iter=2, shuffle=False, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_equal_those_of_rows_in_memory(model, name, kind, path):
    data = load_letor(path)
    scaler = clone(SCALERS[name])
    rows = opened(path, kind, scaler=scaler)
    found = clone(model).fit(rows)
    # With the same numbers, all else is the same to the bit.
    expected = clone(model).fit(scaler.transform(taken(scaler, data.X)), data.y.astype(int))
    assert np.array_equal(found.coef_, expected.coef_)
    assert found._state.model == expected._state.model
    assert found.history_ == expected.history_
    if name == "maxabs":  # whose numbers are those of memory, too
        pipeline = make_pipeline(MaxAbsScaler(), clone(model)).fit(data.X, data.y.astype(int))
        assert np.array_equal(found.coef_, pipeline[-1].coef_)


@pytest.mark.parametrize("name", SCALERS)
def test_scan_covers_the_scaled_rows(name, path):
    scaler = clone(SCALERS[name])
    stats = opened(path, "cache", scaler=scaler).stats()
    X = scaler.transform(taken(scaler, load_letor(path).X))
    X = X.toarray() if sp.issparse(X) else X
    assert np.array_equal(stats.magnitudes, np.abs(X).max(axis=0))
    assert stats.mean_square == 2.0 ** round(np.log2((X**2).sum(axis=1).mean()))


@pytest.mark.parametrize("name", SCALERS)
def test_learners_of_all_rows_equal_fits_in_memory(name, tmp_path):
    X, y, qid = rc.datasets.make_letor(20, 8, n_features=90, random_state=0)
    dump_letor(X, y, tmp_path / "queries.txt", qid=qid)
    data = load_letor(tmp_path / "queries.txt")
    scaler = clone(SCALERS[name])
    rows = open_rows(tmp_path / "queries.txt", cache=tmp_path / "rows", scaler=scaler)
    scaled = scaler.transform(taken(scaler, data.X))
    for model in [rc.RankSVM(random_state=0), rc.RankBoost(5), rc.RankBoost(3, max_leaf_nodes=4)]:
        expected = clone(model).fit(scaled, data.y, qid=data.qid)
        found = clone(model).fit(rows)
        # Bins of dense rows are kept by row or by column, and sums of weights formed in the order
        # of either: the same stumps, whose steps differ in their last digits.
        assert np.allclose(found.predict(scaled), expected.predict(scaled), rtol=1e-13, atol=1e-13)
        if isinstance(model, rc.RankSVM):
            assert np.array_equal(found.coef_, expected.coef_)


def test_a_fitted_scaler_is_applied_as_it_is(path):
    data = load_letor(path)
    scaler = MaxAbsScaler().fit(data.X * 2)
    before = scaler.scale_.copy()
    rows = open_rows(path, scaler=scaler)
    assert np.array_equal(scaler.scale_, before)
    window = next(rows.windows(8, None))
    n = window.rows.n_rows
    assert np.array_equal(window.rows.arrays[0], scaler.transform(data.X)[:n].data)
    with pytest.raises(ValueError, match="features"):
        opened(path, "cache", scaler=MaxAbsScaler().fit(data.X[:, :3]))
    with pytest.raises(ValueError, match="expecting 3 features"):
        rc.PRank().fit(open_rows(path, scaler=MaxAbsScaler().fit(data.X[:, :3])))


def test_other_scalers_are_rejected_with_a_remedy(path):
    with pytest.raises(TypeError, match="must be a StandardScaler or a MaxAbsScaler"):
        open_rows(path, scaler=MinMaxScaler())
    with pytest.raises(TypeError, match=r"open_rows\(..., scaler=StandardScaler\(\)\)"):
        make_pipeline(StandardScaler(), rc.PRank()).fit(open_rows(path), [1, 2])


def test_pipeline_of_scaler_and_learner_predicts_and_is_saved(path, tmp_path):
    data = load_letor(path)
    scaler = MaxAbsScaler()
    learner = rc.PRank(random_state=0).fit(open_rows(path, scaler=scaler))
    pipeline = make_pipeline(scaler, learner)
    rc.save(pipeline, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(data.X), pipeline.predict(data.X))
    assert pipeline.score(data.X, data.y) > -1.0


def test_rows_may_have_more_features_than_the_file(path):
    rows = open_rows(path)
    rows.widen(11)
    assert rows.stats().n_features == 11
    assert rc.PRank().fit(rows).n_features_in_ == 11
    rows.widen(9)
    assert rows.n_features == 11
    cached = opened(path, "cache")
    cached.widen(11)
    found = rc.PRank(shuffle=False).fit(cached)
    expected = rc.PRank(shuffle=False).fit(load_letor(path, n_features=11).X, load_letor(path).y)
    assert np.array_equal(found.coef_, expected.coef_)


def test_scaled_rows_name_their_scaler(path):
    rows = open_rows(path, scaler=MaxAbsScaler())
    assert isinstance(rows, ScaledRows)
    assert "scaled by MaxAbsScaler()" in repr(rows)
