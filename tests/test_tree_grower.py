"""Trees on pair weights, column sums and partitions: against the plain grower, to the bit."""

import time
from fractions import Fraction
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._core.inputs import as_rows
from rankcore._core.threads import Threads
from rankcore._ext import tree_histograms, tree_leaves, tree_looks, tree_splits
from rankcore.boosting import _tree_shards
from rankcore.boosting._binning import Binning
from rankcore.boosting._tree_grower import TreeGrower
from rankcore.boosting._tree_shards import Rules
from reference import trees as plain
from strategies import examples

pytestmark = pytest.mark.kernel


@st.composite
def problems(draw):
    """Rows with ties, blocks of zeros and missing values; what each wins and loses with."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = rng.integers(2, 50), rng.integers(1, 12)  # not drawn: those would be small
    X = rng.integers(-3, 4, size=(n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.2, 1.0])))
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        X[rng.random((n, d)) < 0.2] = np.nan
    won, lost = rng.random((2, n)) * (rng.random((2, n)) < 0.8)
    kind = draw(st.sampled_from(["even", "of many sizes", "tied"]))
    if kind == "of many sizes":
        won, lost = won**20, lost**20
    elif kind == "tied":
        won, lost = np.round(3 * won), np.round(3 * lost)
    return X, won / max(won.sum(), 1e-300), lost / max(lost.sum(), 1e-300)


def rules(rng, d):
    """Most of the time loose: trees that grow show more than those that do not."""
    return Rules(
        int(rng.choice([40, 40, 8, 3, 2])),
        [None, None, None, 3, 1][rng.integers(5)],
        int(rng.choice([1, 1, 2, 5])),
        float(rng.choice([0.0, 0.0, 0.1])),
        float(rng.choice([0.0, 0.0, 0.3])),
        rng.integers(-1, 2, d).astype(np.int8) if rng.random() < 0.4 else None,
    )


def grow(X, won, lost, how, n_jobs=1, max_bins=255, zero_missing=False, mask=None, **drawn):
    rows = as_rows(X, nan=True)
    categorical = {} if mask is None else {f: str(f) for f in np.flatnonzero(mask).tolist()}
    binning = Binning(rows, np.arange(rows.n_rows), max_bins, zero_missing, categorical)
    with Threads(n_jobs) as threads:
        grower = TreeGrower(binning, how, threads)
        tree = grower.grow(won, lost, **drawn)
        again = grower.grow(won, lost, **drawn)  # what is left of a tree does not matter
    assert described(tree, binning) == described(again, binning)
    return described(tree, binning)


def described(tree, binning):
    thresholds = [
        frozenset(tree.sets[node].tolist()) if node in tree.sets else binning.threshold(*cut)
        for node, cut in enumerate(zip(tree.features, tree.bins, strict=True))
    ]
    nodes = [
        [feature, threshold, side, *children]
        for feature, threshold, side, children in zip(
            tree.features, thresholds, tree.sides, tree.children, strict=True
        )
    ]
    ranges = list(zip(tree.lows.tolist(), tree.highs.tolist(), strict=True))
    return nodes, tree.gains, tree.leaf_of.tolist(), ranges


@settings(max_examples=examples(200), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_trees_are_those_of_the_plain_grower(problem, seed, sparse, zero_missing):
    X, won, lost = problem
    rng = np.random.default_rng(seed)
    how, max_bins = rules(rng, X.shape[1]), [255, None][rng.integers(2)]
    drawn = {}
    if rng.random() < 0.4:
        drawn["taken"] = rng.random(len(X)) < 0.7
        drawn["allowed"] = rng.random(X.shape[1]) < 0.7
    expected = plain.grow(X, won, lost, how, drawn.get("taken"), drawn.get("allowed"), zero_missing)
    given_X = sp.csr_array(X) if sparse else X
    found = grow(given_X, won, lost, how, 1, max_bins, zero_missing, **drawn)
    assert found[0] == expected[0]
    assert found[1:3] == (expected[1], expected[2])
    assert found[3] == expected[3]


def categorical(X, rng):
    """The rows with some columns of categories, and which."""
    mask = rng.random(X.shape[1]) < 0.6
    mask[rng.integers(X.shape[1])] = True
    X = X.copy()
    scale = rng.choice([1, 40])  # sets of more than one word
    X[:, mask] = np.where(X[:, mask] > -3, scale * (X[:, mask] + 2), -1.0)
    return np.where(rng.random(X.shape) < 0.5, X, 0.0).astype(X.dtype), mask


@settings(max_examples=examples(200), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans())
def test_splits_of_categories_are_those_of_the_plain_grower(problem, seed, sparse):
    X, won, lost = problem
    rng = np.random.default_rng(seed)
    X, mask = categorical(X, rng)
    how, max_bins = rules(rng, X.shape[1]), [255, None][rng.integers(2)]
    if how.signs is not None:
        how.signs[mask] = 0
    drawn = {}
    if rng.random() < 0.4:
        drawn["taken"] = rng.random(len(X)) < 0.7
        drawn["allowed"] = rng.random(X.shape[1]) < 0.7
    where = frozenset(np.flatnonzero(mask).tolist())
    expected = plain.grow(X, won, lost, how, drawn.get("taken"), drawn.get("allowed"), False, where)
    given_X = sp.csr_array(X) if sparse else X
    for n_jobs in (1, 3):
        found = grow(given_X, won, lost, how, n_jobs, max_bins, False, mask, **drawn)
        assert found[0] == expected[0]
        assert found[1:3] == (expected[1], expected[2])
        assert found[3] == expected[3]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8),
    st.sampled_from([0, 1, 50]),
    st.sampled_from([(-inf, inf), (-0.2, 0.3), (0.1, 0.2)]),
)
def test_no_set_of_categories_gains_more_than_the_sorted_ones(masses, l2, bounds):
    """By integers and fractions: the theorem that the search rests on.

    A convex function has its maximum in a corner. No split at all is one: with l2 it may be the
    best, and then some other set may lose less than the sorted ones do.
    """
    bounds = [bound if bound in (-inf, inf) else Fraction(bound) for bound in bounds]
    masses = dict(enumerate(masses))
    whole = [sum(mass[k] for mass in masses.values()) for k in range(2)]

    def worth(high):
        total = Fraction(0)
        one = [sum(masses[category][k] for category in high) for k in range(2)]
        for w, m in (one, [whole[k] - one[k] for k in range(2)]):
            if h := w + m + l2:
                best = min(max(Fraction(w - m, h), bounds[0]), bounds[1])
                total += (2 * (w - m) - h * best) * best
        return total

    corners = [(), *plain.sorted_sets(masses)]
    assert max(map(worth, plain.all_sets(masses)), default=worth(())) <= max(map(worth, corners))


def test_a_leaf_of_very_many_categories():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 300, size=(1500, 1)).astype(float)
    won, lost = rng.random((2, 1500)) / 750
    mask = np.ones(1, dtype=bool)
    found = grow(X, won, lost, Rules(2), max_bins=None, mask=mask)
    assert found[:3] == plain.grow(X, won, lost, Rules(2), categorical={0})[:3]
    with pytest.raises(ValueError, match="column 0 has .* more than max_bins=255: set max_bins"):
        grow(X, won, lost, Rules(2), mask=mask)


@settings(max_examples=examples(60), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([2, 3, 7]))
def test_trees_do_not_depend_on_threads(problem, seed, sparse, n_jobs):
    X, won, lost = problem
    how = rules(np.random.default_rng(seed), X.shape[1])
    X = sp.csr_array(X) if sparse else X
    assert grow(X, won, lost, how, n_jobs) == grow(X, won, lost, how)


@pytest.mark.parametrize("kept", [0, 2, 10**9])
def test_bounds_of_sparse_columns_spare_nothing_that_matters(kept, monkeypatch):
    rng = np.random.default_rng(5)
    X = sp.random(400, 60, density=0.05, random_state=rng, format="csr")
    won, lost = rng.random((2, 400)) ** 3 / 400
    how = Rules(30, None, 3)
    expected = grow(X.toarray(), won, lost, how)
    monkeypatch.setattr(_tree_shards, "ENTRIES_PER_BIN", kept)
    assert grow(X, won, lost, how) == expected
    assert len(expected[0]) == 29


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 200), st.integers(0, 2**32 - 1), st.sampled_from([1, 30]))
def test_sums_of_words_are_as_close_as_stated(n, seed, power):
    rng = np.random.default_rng(seed)
    won, lost = rng.random((2, n)) ** power
    won, lost = won / won.sum(), lost / lost.sum()
    rows = np.flatnonzero(rng.random(n) < 0.8).astype(np.int32)
    words = np.empty(n, dtype=np.uint64)
    scale = tree_histograms.quantise(won, lost, rows, words)
    assert not np.delete(words, rows).any()
    words = words[rows]
    W, L = words >> np.uint64(32), words & np.uint64(2**32 - 1)
    assert int(W.sum()) < 2**32
    assert int(L.sum()) < 2**32
    part = rng.random(rows.size) < 0.5
    for mass, units in ((won, W), (lost, L)):
        wrong = abs(mass[rows][part].sum() - float(units[part].sum()) / scale) if scale else 0.0
        assert wrong <= part.sum() / 2 / scale + 1e-12 if scale else True
    if rows.size:
        whole = max(won[rows].sum(), lost[rows].sum())
        assert 1 / scale <= 1.0001 * whole / 2**32


def record(is_less=0):
    return np.array([(1, 10, -np.inf, np.inf, 0, is_less)], dtype=_tree_shards.LEAF)


@pytest.mark.parametrize("d", [1, 8, 17, 24, 136, 257, 300, 600])
@pytest.mark.parametrize("n", [1, 25, 1024, 1025, 3000])
def test_sums_of_dense_columns_are_those_of_a_loop(n, d):
    rng = np.random.default_rng(1000 * n + d)
    X = rng.integers(0, 255, (n, d)).astype(np.float32)
    X[rng.random((n, d)) < 0.05] = np.nan
    binning = Binning(as_rows(X, nan=True), np.arange(n), 255, False)
    features = np.arange(d, dtype=np.int32)
    words = rng.integers(0, 2**53, n, dtype=np.uint64)
    shard = _tree_shards.Shard(binning, features, Rules(2))
    shard.begin(1.0, np.zeros(n, np.int32), words, None)
    crew = tree_looks.Crew([shard.look])
    for rows in (np.arange(n), np.flatnonzero(rng.random(n) < 0.3), np.arange(n // 3, n)):
        sums, _ = shard.prepare(rows.astype(np.int32), record(), None)
        crew.look()
        sums = sums.reshape(-1, tree_histograms.CODES)
        for f in range(d):
            bins = int(binning.n_bins[f])
            present = np.unique(X[:, f][~np.isnan(X[:, f])])  # a bin for each value
            codes = np.where(np.isnan(X[:, f]), bins, np.searchsorted(present, X[:, f]))
            expected = np.zeros(tree_histograms.CODES, np.uint64)
            np.add.at(expected, codes[rows], words[rows])
            assert (sums[f] == expected).all()


def test_kernels_refuse_what_does_not_fit():
    X = np.arange(20.0).reshape(10, 2)
    columns = Binning(as_rows(X), np.arange(10), 255, False).columns
    wide = Binning(as_rows(X), np.arange(10), None, False).columns
    features, rows = np.arange(2, dtype=np.int32), np.arange(10, dtype=np.int32)
    words, fires = np.ones(10, np.uint64), np.empty(10, np.uint8)
    spare = np.empty(10, np.int32)
    beyond = np.full(10, 10, dtype=np.int32)
    with pytest.raises(ValueError, match="do not fit"):
        tree_histograms.quantise(np.ones(9), np.ones(10), rows, words)
    with pytest.raises(ValueError, match="do not fit"):
        tree_histograms.quantise(np.ones(10), np.ones(10), beyond, words)
    with pytest.raises(ValueError, match="not dense, of one byte"):
        tree_histograms.lay_out(wide, features, np.empty(80, np.uint8))
    with pytest.raises(IndexError, match="no column 2"):
        tree_histograms.lay_out(columns, features + 1, np.empty(80, np.uint8))
    with pytest.raises(ValueError, match="not sparse"):
        tree_histograms.count_cells(columns, features, np.empty(11, np.int64))
    bounds = np.zeros(11, np.int64)
    with pytest.raises(ValueError, match="not sparse"):
        tree_histograms.lay_out_cells(
            columns, features, np.array([0, 11, 22]), fires[:2], bounds[:2], bounds, 0, 10, spare
        )
    stored = Binning(as_rows(sp.csr_array(X)), np.arange(10), 255, False).columns
    layout = stored, features, np.array([0, 12, 24]), np.zeros(2, np.uint8)
    tree_histograms.count_cells(stored, features, bounds)
    cells = np.empty(bounds[-1], np.int32)
    with pytest.raises(ValueError, match="not sparse, or the arrays"):
        tree_histograms.lay_out_cells(*layout, np.array([0, 9]), bounds, 0, 11, cells)
    with pytest.raises(ValueError, match="not of their columns"):
        tree_histograms.lay_out_cells(*layout, np.array([0, 8]), bounds, 0, 10, cells)
    with pytest.raises(ValueError, match="do not fit the columns"):
        tree_leaves.divide(columns, 0, 1, 0, None, 0, fires, beyond, spare)
    with pytest.raises(ValueError, match="do not fit the columns"):
        tree_leaves.divide(columns, 2, 1, 0, None, 0, fires, rows, spare)
    with pytest.raises(ValueError, match="do not fit the columns"):
        tree_leaves.divide(columns, 0, 1, 0, fires, 0, fires, rows, spare)
    with pytest.raises(ValueError, match="no such rows"):
        tree_leaves.label(beyond, 0, rows.copy())
    mass, leaves = np.ones(10), np.zeros(10, np.int32)
    with pytest.raises(ValueError, match="leaves do not fit the rows"):
        tree_leaves.weigh(leaves + 1, mass, mass, None, *np.empty((3, 1)))
    with pytest.raises(ValueError, match="do not fit the rows"):
        tree_leaves.weigh(leaves, mass, mass[:9], None, *np.empty((3, 1)))
    with pytest.raises(ValueError, match="do not fit the rows"):
        tree_leaves.weigh(leaves, mass, mass, fires[:9], *np.empty((3, 1)))
    room = np.empty(80, np.uint64), np.empty(80)
    with pytest.raises(ValueError, match="do not fit the columns"):
        tree_splits.search_counted(
            columns, 0, 0, False, beyond, words, 10, 0.0, 1.0, 1, -np.inf, np.inf, None, 0,
            *room, np.empty(20, np.int32),
        )  # fmt: skip
    for odd_rows, n_codes in ((beyond, 11), (rows, 10)):
        with pytest.raises(ValueError, match="do not fit the columns"):
            tree_splits.mark_set(
                columns, 0, 1, 0, odd_rows, words, 10, None, 0, room[0],
                np.empty(20, np.int32), np.empty(n_codes, np.uint8),
            )  # fmt: skip


def test_looks_refuse_what_does_not_fit():
    X = np.arange(20.0).reshape(10, 2)
    columns = Binning(as_rows(X), np.arange(10), 255, False).columns
    wide = Binning(as_rows(X), np.arange(10), None, False).columns
    features, offsets = np.arange(2, dtype=np.int32), np.array([0, 11, 22])
    room = np.empty(0, np.uint8), np.empty(80, np.uint64), np.empty(80), np.empty(20, np.int32)
    panels, ones = np.zeros(80, np.uint8), np.ones(2, np.uint8)

    def made(columns=wide, features=features, offsets=offsets, size=22, whole=None, panels=None,
             cells=None, room=room):  # fmt: skip
        bounds = None if cells is None else np.zeros(11, np.int64)
        return tree_looks.Look(
            columns, features, offsets, size, whole, None, None, panels, bounds, cells, *room, 1,
            False,
        )  # fmt: skip

    for odd in (
        {"features": features + 1},
        {"offsets": offsets[:2]},
        {"offsets": offsets - 1},
        {"size": 21},
        {"whole": ones},
        {"panels": panels},
        {"columns": columns, "panels": panels},
        {"columns": columns, "panels": panels[1:], "size": 2048},
        {"cells": np.empty(0, np.int32)},
        {"room": (room[0], room[1][:54], *room[2:])},
    ):
        with pytest.raises(ValueError, match="do not fit the columns"):
            made(**odd)
    look = made()
    words, leaf_of = np.ones(10, np.uint64), np.zeros(10, np.int32)
    rows = np.arange(10, dtype=np.int32)
    out = [np.empty((1, 2), dtype) for dtype in (np.float64, np.uint64, np.int32, np.uint8)]
    enough = np.ones(22, np.uint64)
    with pytest.raises(ValueError, match="do not fit"):  # no tree has begun
        look.prepare(rows, enough, None, record(), *out)
    for odd in ((words[1:], leaf_of, None), (words, leaf_of[1:], None), (words, leaf_of, ones[1:])):
        with pytest.raises(ValueError, match="do not fit the columns"):
            look.begin(*odd, 0.0, 1.0)
    look.begin(words, leaf_of, None, 0.0, 1.0)
    for odd in (
        (rows + 1, enough, None, record()),
        (rows, words, None, record()),
        (rows, enough, words, record()),
        (rows, enough, None, record(1)),
        (rows, enough, enough, record().repeat(2)),
        (rows, enough, None, record()[:0]),
    ):
        with pytest.raises(ValueError, match="do not fit the columns"):
            look.prepare(*odd, *out)
    with pytest.raises(ValueError, match="not prepared"):
        tree_looks.Crew([look]).look()
    with pytest.raises(IndexError, match="no look 1"):
        tree_looks.Crew([look]).serve(1)
    with pytest.raises(TypeError):
        tree_looks.Crew([None])


def test_a_crew_that_sleeps_wakes_and_may_be_late(monkeypatch):
    rng = np.random.default_rng(0)
    n, d = 500, 24
    X = rng.normal(size=(n, d))
    won, lost = rng.random((2, n))
    expected = grow(X, won, lost, Rules(20))
    binning = Binning(as_rows(X), np.arange(n), 255, False, {})
    with Threads(3) as threads:
        late = [threads.submit(time.sleep, 0.05) for _ in range(2)]
        grower = TreeGrower(binning, Rules(20), threads)
        look = grower._look

        def slow(*leaves):
            time.sleep(0.002)
            look(*leaves)

        grower._look = slow
        assert described(grower.grow(won, lost), binning) == expected
        assert all(one.done() for one in late)

        def failing(*leaves):
            raise KeyboardInterrupt

        grower._look = failing
        with pytest.raises(KeyboardInterrupt):
            grower.grow(won, lost)
        grower._look = look
        assert described(grower.grow(won, lost), binning) == expected
        start, started = threads.submit, []

        def submit(*args):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(start(*args))

        monkeypatch.setattr(threads, "submit", submit)
        with pytest.raises(RuntimeError, match="start new thread"):
            grower.grow(won, lost)
        assert started[0].result() is None


def test_a_leaf_without_rows_divides_only_if_parts_may_be_empty():
    columns = Binning(as_rows(np.arange(20.0).reshape(10, 2)), np.arange(10), 255, False).columns
    rows, fires = np.empty(0, np.int32), np.empty(10, np.uint8)
    found = [
        tree_leaves.divide(columns, 0, 1, 0, None, least, fires, rows, rows)
        for least in (-1, 0, 1, 2)
    ]
    assert found == [0, 0, -1, -1]


@given(
    st.integers(0, 60),
    st.integers(1, 5),
    st.integers(0, 2**31),
    st.booleans(),
)
@settings(max_examples=examples(60))
def test_leaves_are_weighed_in_the_order_of_the_rows(n, n_leaves, seed, all_taken):
    rng = np.random.default_rng(seed)
    won, lost = rng.random((2, n)) ** 20
    leaf_of = rng.integers(0, n_leaves, n).astype(np.int32)
    taken = None if all_taken else rng.integers(0, 2, n).astype(np.uint8)
    found = np.empty((3, n_leaves))
    tree_leaves.weigh(leaf_of, won, lost, taken, *found)
    expected = np.zeros((3, n_leaves))
    for row, leaf in enumerate(leaf_of):
        counts = taken is None or taken[row]
        expected[:, leaf] += won[row] * counts, lost[row] * counts, won[row] - lost[row]
    assert (found == expected).all()


def test_labels_are_of_the_rows_alone():
    leaf_of = np.arange(6, dtype=np.int32)
    tree_leaves.label(np.array([1, 4], np.int32), 9, leaf_of)
    assert leaf_of.tolist() == [0, 9, 2, 3, 9, 5]
