"""Thresholds from groups of values, and columns filled a part at a time, beside those of memory."""

import struct
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext import stumps
from rankcore.boosting import _streamed_bins
from rankcore.boosting._binning import Binning
from rankcore.boosting._streamed_bins import StreamedBins, ValueGroups, merge_parts
from rankcore.datasets import dump_letor, load_letor, make_bipartite, make_letor, open_rows


def table(seed, n=400, kind="dense", scale=30):
    """Rows with zeros, missing values, heavy values and a constant column."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 6)) * scale) / 8
    X[:, 1] = np.exp(rng.normal(size=n) * 20) * rng.choice([-1, 1], n)
    X[:, 2] = 3
    X[:, 3] = np.abs(X[:, 3]) + 1
    X[rng.random(X.shape) < 0.2] = 0
    X[:, 2] = 3
    X[rng.random(n) < 0.1, 4] = np.nan
    return sp.csr_array(X) if kind == "csr" else X


def thresholds(binning, f):
    return [binning.threshold(f, b) for b in range(1, int(binning.n_bins[f]))]


@pytest.mark.parametrize("zero_missing", [False, True])
@pytest.mark.parametrize("max_bins", [2, 7, 255])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_thresholds_equal_those_of_rows_in_memory(kind, max_bins, zero_missing):
    rows = as_rows(table(0, kind=kind), nan=True)
    taken = np.flatnonzero(np.arange(rows.n_rows) % 5)[::-1].copy()
    expected = Binning(rows, taken, max_bins, zero_missing)
    cuts = ValueGroups.of(rows, taken).edges(max_bins, zero_missing)
    assert cuts.n_bins.tolist() == expected.n_bins.tolist()
    assert cuts.zero_bin.tolist() == expected.zero_bin.tolist()
    assert cuts.has_missing.tolist() == expected.has_missing.tolist()
    for f in range(rows.n_features):
        assert thresholds(cuts, f) == thresholds(expected, f)


def grouped_plainly(values, most):
    """Group distinct values by their first bits, the longest prefix with few enough groups."""
    values = sorted(set(values))
    bits = [struct.unpack(">Q", struct.pack(">d", value))[0] for value in values]
    keys = [~b % 2**64 if b >> 63 else b | 1 << 63 for b in bits]
    for shift in range(64):
        found = {}
        for key, value in zip(keys, values, strict=True):
            found.setdefault(key >> shift, []).append(value)
        if len(found) <= most:
            return [(group[0], group[-1]) for group in found.values()]
    raise AssertionError


@given(st.data())
@settings(deadline=None)
def test_groups_do_not_depend_on_how_rows_are_divided(data):
    most = 1 << 3  # of so few groups some have both zero's neighbours, but never both signs
    values = data.draw(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
            | st.integers(-20, 20).map(float)
            | st.floats(1, 2),
            min_size=1,
            max_size=60,
        )
    )
    column = np.array(values)[:, None]
    cut = data.draw(st.lists(st.integers(0, len(values)), max_size=4).map(sorted))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_streamed_bins, "MAX_GROUPS", most)
        rows = as_rows(column)
        whole = ValueGroups.of(rows, np.arange(len(values)))
        edges = [0, *cut, len(values)]
        parts = [ValueGroups.of(rows, np.arange(a, b)) for a, b in pairwise(edges)]
        for joined in [merge_parts(parts, 1), ValueGroups.joined(parts[::-1])]:
            for name in ["low", "high", "counts", "bounds", "shifts", "zeros", "entries"]:
                assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    groups = list(zip(whole.low.tolist(), whole.high.tolist(), strict=True))
    assert groups == grouped_plainly([value for value in values if value != 0], most)
    counts = [sum(low <= value <= high for value in values) for low, high in groups]
    assert whole.counts.tolist() == [
        count - sum(value == 0 for value in values) * (low <= 0 <= high)
        for count, (low, high) in zip(counts, groups, strict=True)
    ]


def test_bins_of_many_values_are_about_equal():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=60_000), np.exp(4 * rng.normal(size=60_000))], axis=1)
    groups = ValueGroups.of(as_rows(X), np.arange(len(X)))
    assert (np.diff(groups.bounds) <= _streamed_bins.MAX_GROUPS).all()
    assert groups.shifts.min() > 0
    cuts = groups.edges(255, False)
    for f in range(2):
        counts = np.bincount(np.searchsorted(thresholds(cuts, f), X[:, f]), minlength=255)
        # A bin is wrong by one group at most, at each end.
        heaviest = groups.counts[groups.bounds[f] : groups.bounds[f + 1]].max()
        assert counts.size == cuts.n_bins[f] >= 250
        assert counts.max() <= len(X) / 255 + 2 * heaviest


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_columns_filled_in_parts_equal_those_of_rows_in_memory(kind):
    X = table(1, kind=kind)
    rows = as_rows(X, nan=True)
    taken = np.random.default_rng(0).permutation(rows.n_rows)[:300]
    expected = Binning(rows, taken, 20, False)
    groups = ValueGroups.of(rows, taken)
    places = np.full(rows.n_rows, -1, dtype=np.int32)
    places[taken] = np.arange(taken.size)

    def parts():
        for first in range(0, rows.n_rows, 90):
            here = np.arange(first, min(first + 90, rows.n_rows))
            here = here[places[here] >= 0]
            yield as_rows(X, nan=True), here, places[here]

    entries = groups.entries if kind == "csr" else None
    found = StreamedBins(parts(), taken.size, entries, groups.edges(20, False))
    fires = np.empty((2, taken.size), dtype=np.uint8)
    for f in range(rows.n_features):
        for b in range(int(expected.n_bins[f]) + 1):
            for binning, out in zip([found, expected], fires, strict=True):
                stumps.mark(binning.columns, f, b, 1, out)
            assert np.array_equal(*fires)


@pytest.fixture
def files(tmp_path):
    X, y, qid = make_letor(60, 30, 90, random_state=0)
    X = np.round(X, 2)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = 0
    dump_letor(X, y, tmp_path / "queries.txt", qid=qid)
    X, y = make_bipartite(3000, 300, random_state=0)
    dump_letor(X, y, tmp_path / "labels.txt")
    return tmp_path


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"max_bins": 8},
        {"missing": "zero", "max_bins": 16},
        {"select": "normalizer"},
        {"step": "discrete", "n_jobs": 2},
    ],
)
def test_stumps_from_a_cache_equal_those_of_rows_in_memory(params, files, monkeypatch):
    rows = open_rows(files / "queries.txt", cache=files / "cache")
    monkeypatch.setattr(type(rows), "whole", None)  # which maps all values
    data = load_letor(files / "queries.txt")
    found = rc.RankBoost(30, **params).fit(rows)
    expected = rc.RankBoost(30, **params).fit(data.X, data.y, qid=data.qid)
    assert found.estimators_.tolist() == expected.estimators_.tolist()
    assert found.history_ == expected.history_


@pytest.mark.parametrize("every", [False, True], ids=["bounded", "every column"])
@pytest.mark.parametrize("params", [{}, {"max_bins": 4}, {"step": "exact"}])
def test_rows_without_queries_are_one_query(params, every, files, monkeypatch):
    if every:
        monkeypatch.setattr("rankcore.boosting._stump_search.MARGIN", np.inf)
    rows = open_rows(files / "labels.txt", cache=files / "cache")
    data = load_letor(files / "labels.txt")
    found = rc.BipartiteRankBoost(30, **params).fit(rows)
    # In memory another search finds the same stumps, by sums of another order.
    expected = rc.BipartiteRankBoost(30, **params).fit(data.X, data.y)
    names = ["feature", "threshold", "missing"]
    assert found.estimators_[names].tolist() == expected.estimators_[names].tolist()
    assert np.allclose(found.estimators_["alpha"], expected.estimators_["alpha"], rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        rc.RankBoost(5, max_leaf_nodes=4),
        rc.RankBoost(5, max_leaf_nodes=4, pair_weight="ndcg@5"),
        rc.RankBoost(
            5, max_leaf_nodes=6, subsample=0.5, max_features=0.5, random_state=0, n_jobs=2
        ),
        rc.RankBoost(5, weak="tree", missing="zero"),
        rc.OrdinalBoost(5, max_leaf_nodes=6),
        rc.OrdinalBoost(5, max_leaf_nodes=6, tasks="shared", loss="kappa"),
    ],
    ids=str,
)
def test_trees_from_a_cache_equal_those_of_rows_in_memory(model, files, monkeypatch):
    rows = open_rows(files / "queries.txt", cache=files / "cache")
    data = load_letor(files / "queries.txt")
    ranks = isinstance(model, rc.OrdinalBoost)
    expected = clone(model).fit(data.X, data.y, **({} if ranks else {"qid": data.qid}))
    monkeypatch.setattr(type(rows), "whole", None)  # which maps all values
    found = clone(model).fit(rows)
    assert found.history_ == expected.history_
    assert np.array_equal(found.predict(data.X), expected.predict(data.X))


def test_early_stopping_from_a_cache_restores_the_best_round(files):
    rows = open_rows(files / "queries.txt", cache=files / "cache")
    data = load_letor(files / "queries.txt")
    model = rc.OrdinalBoost(40, learning_rate=0.9, early_stopping_rounds=2, loss="kappa")
    held_out = {"eval_set": (data.X[::3], data.y[::3][::-1])}
    found = clone(model).fit(rows, **held_out)
    expected = clone(model).fit(data.X, data.y, **held_out)
    assert found.best_iteration_ == expected.best_iteration_ < found.n_iter_
    assert np.array_equal(found.costs_, expected.costs_)
    assert np.array_equal(found.predict(data.X), expected.predict(data.X))


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "model", [rc.RankBoost(5), rc.RankBoost(5, max_leaf_nodes=4), rc.OrdinalBoost(5)], ids=str
)
def test_values_may_be_missing_in_a_cache(model, scaled, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)).round(2), rng.integers(0, 3, 200)
    X[rng.random(X.shape) < 0.2] = np.nan
    lines = [
        " ".join([str(label), "qid:1", *(f"{j + 1}:{value!r}" for j, value in enumerate(row))])
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    scaler = MaxAbsScaler().fit(X) if scaled else None
    rows = open_rows(tmp_path / "rows.txt", cache=tmp_path / "cache", scaler=scaler)
    given = scaler.transform(X) if scaled else X
    queries = {} if isinstance(model, rc.OrdinalBoost) else {"qid": np.zeros(200)}
    expected = clone(model).fit(given, y, **queries)
    found = clone(model).fit(rows)
    np.testing.assert_allclose(found.predict(given), expected.predict(given), rtol=1e-12)


def test_search_by_every_value_of_a_cache_equals_that_in_memory(files):
    rows = open_rows(files / "queries.txt", cache=files / "cache")
    data = load_letor(files / "queries.txt")
    for params in [{"max_bins": None}, {"max_bins": None, "max_leaf_nodes": 4}]:
        found = rc.RankBoost(5, **params).fit(rows)
        expected = rc.RankBoost(5, **params).fit(data.X, data.y, qid=data.qid)
        assert np.array_equal(found.predict(data.X), expected.predict(data.X))
    with pytest.raises(TypeError, match="omit y"):
        rc.RankBoost().fit(rows, data.y, qid=np.zeros(len(data.y)))


def test_kernels_reject_mismatched_arrays(files):
    from rankcore._ext.streamed_bins import encode_rows, find_edges

    one, zero = np.ones(1), np.zeros(1, dtype=np.uint8)
    counts, bounds = np.ones(1, dtype=np.int64), np.array([0, 1])
    with pytest.raises(ValueError, match="are inconsistent"):
        find_edges(one, one, counts, bounds, zero, 5, np.empty(1), bounds.copy())
    rows = as_rows(np.ones((2, 1)))
    taken, places = np.array([0, 1]), np.array([0, 2], dtype=np.int32)
    codes = np.empty(2, dtype=np.uint8)
    with pytest.raises(ValueError, match="row numbers are out of range"):
        encode_rows(rows, taken, places, 2, one, bounds, False, codes, None, None)
    with pytest.raises(ValueError, match="are inconsistent"):
        encode_rows(rows, taken, places, 3, one, bounds, False, codes, None, None)
    sparse = as_rows(sp.csr_array(np.ones((2, 1))))
    places = np.array([0, 1], dtype=np.int32)
    room = np.empty(1, dtype=np.int32)
    with pytest.raises(ValueError, match="too small for the entries"):
        encode_rows(sparse, taken, places, 2, one, bounds, False, codes[:1], np.zeros(1, int), room)
