"""Trees, their histograms, splits and partitions: against the plain grower, to the bit."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._core.inputs import as_rows
from rankcore._core.threads import Threads
from rankcore._ext import histogram_layout, histograms, partition, splitting
from rankcore.boosting import _histograms
from rankcore.boosting._binning import Binning
from rankcore.boosting._grower import FeatureDraws, GrowthParams, Leaf, Split, TreeGrower
from rankcore.boosting._histograms import (
    LEAF,
    SPLIT,
    Features,
    MemoryHistograms,
    units_of_rows,
)
from reference import trees as plain
from strategies import examples

pytestmark = pytest.mark.kernel


def pair_derivatives(weights):
    """Gradients and hessians of rows by the weights of pairs that they win and lose."""
    won, lost = weights
    return won - lost, won + lost


@st.composite
def problems(draw):
    """Rows with ties, blocks of zeros and missing values; gradients and hessians."""
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
    won, lost = won / max(won.sum(), 1e-300), lost / max(lost.sum(), 1e-300)
    return X, *pair_derivatives((won, lost))


def random_params(rng, d):
    """Most of the time loose: trees that grow show more than those that do not."""
    return GrowthParams(
        int(rng.choice([40, 40, 8, 3, 2])),
        [None, None, None, 3, 1][rng.integers(5)],
        int(rng.choice([1, 1, 2, 5])),
        float(rng.choice([0.0, 0.0, 0.1])),
        float(rng.choice([0.0, 0.0, 0.3])),
        rng.integers(-1, 2, d).astype(np.int8) if rng.random() < 0.4 else None,
    )


def grow(X, gradients, hessians, params, n_jobs=1, max_bins=255, zero_missing=False, mask=None,
         **drawn):  # fmt: skip
    rows = as_rows(X, nan=True)
    categorical = {} if mask is None else {f: str(f) for f in np.flatnonzero(mask).tolist()}
    binning = Binning(rows, np.arange(rows.n_rows), max_bins, zero_missing, categorical)
    with Threads(n_jobs) as threads:
        source = MemoryHistograms(binning, params, threads)
        grower, trees = TreeGrower(source, params), []
        for _ in range(2):  # what is left of a tree does not matter
            tree = grower.grow(source.begin_tree(gradients, hessians, **drawn))
            trees.append(described(tree, source.leaf_of(tree.leaves), binning))
    assert trees[0] == trees[1]
    return trees[0]


def mask_of(drawn):
    draws = drawn.get("feature_draws")
    return None if draws is None else draws.mask


def described(tree, leaf_of, binning):
    categories = tree.categories
    thresholds = [
        frozenset(categories[node].tolist()) if node in categories else binning.threshold(*cut)
        for node, cut in enumerate(zip(tree.features, tree.bins, strict=True))
    ]
    nodes = [
        [feature, threshold, side, *children]
        for feature, threshold, side, children in zip(
            tree.features, thresholds, tree.missing_right, tree.children, strict=True
        )
    ]
    ranges = list(zip(tree.lows.tolist(), tree.highs.tolist(), strict=True))
    return nodes, tree.gains, leaf_of.tolist(), ranges


@settings(max_examples=examples(200), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_trees_equal_the_plain_grower(problem, seed, sparse, zero_missing):
    X, gradients, hessians = problem
    rng = np.random.default_rng(seed)
    params, max_bins = random_params(rng, X.shape[1]), [255, None][rng.integers(2)]
    drawn = {}
    if rng.random() < 0.4:
        drawn["drawn"] = rng.random(len(X)) < 0.7
        drawn["feature_draws"] = FeatureDraws(X.shape[1], rng.random(), (seed, 1))
    expected = plain.grow(
        X, gradients, hessians, params, drawn.get("drawn"), mask_of(drawn), zero_missing
    )
    given_X = sp.csr_array(X) if sparse else X
    found = grow(given_X, gradients, hessians, params, 1, max_bins, zero_missing, **drawn)
    assert found[0] == expected[0]
    assert found[1:3] == (expected[1], expected[2])
    assert found[3] == expected[3]


def categorical(X, rng):
    """Return the rows with some columns of categories, and which."""
    mask = rng.random(X.shape[1]) < 0.6
    mask[rng.integers(X.shape[1])] = True
    X = X.copy()
    scale = rng.choice([1, 40])  # sets of more than one word
    X[:, mask] = np.where(X[:, mask] > -3, scale * (X[:, mask] + 2), -1.0)
    return np.where(rng.random(X.shape) < 0.5, X, 0.0).astype(X.dtype), mask


@settings(max_examples=examples(200), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans())
def test_splits_of_categories_equal_the_plain_grower(problem, seed, sparse):
    X, gradients, hessians = problem
    rng = np.random.default_rng(seed)
    X, mask = categorical(X, rng)
    params, max_bins = random_params(rng, X.shape[1]), [255, None][rng.integers(2)]
    if params.signs is not None:
        params.signs[mask] = 0
    drawn = {}
    if rng.random() < 0.4:
        drawn["drawn"] = rng.random(len(X)) < 0.7
        drawn["feature_draws"] = FeatureDraws(X.shape[1], rng.random(), (seed, 1))
    where = frozenset(np.flatnonzero(mask).tolist())
    expected = plain.grow(
        X, gradients, hessians, params, drawn.get("drawn"), mask_of(drawn), False, where
    )
    given_X = sp.csr_array(X) if sparse else X
    for n_jobs in (1, 3):
        found = grow(given_X, gradients, hessians, params, n_jobs, max_bins, False, mask, **drawn)
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


def test_a_leaf_of_very_many_categories_is_split_by_sorting():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 300, size=(1500, 1)).astype(float)
    gradients, hessians = pair_derivatives(rng.random((2, 1500)) / 750)
    mask = np.ones(1, dtype=bool)
    found = grow(X, gradients, hessians, GrowthParams(2), max_bins=None, mask=mask)
    assert found[:3] == plain.grow(X, gradients, hessians, GrowthParams(2), categorical={0})[:3]
    with pytest.raises(ValueError, match="column 0 has .* more than max_bins=255: set max_bins"):
        grow(X, gradients, hessians, GrowthParams(2), mask=mask)


@settings(max_examples=examples(60), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([2, 3, 7]))
def test_trees_do_not_depend_on_threads(problem, seed, sparse, n_jobs):
    X, gradients, hessians = problem
    params = random_params(np.random.default_rng(seed), X.shape[1])
    X = sp.csr_array(X) if sparse else X
    assert grow(X, gradients, hessians, params, n_jobs) == grow(X, gradients, hessians, params)


@pytest.mark.parametrize("kept", [0, 2, 10**9])
def test_skipped_sparse_columns_would_not_win(kept, monkeypatch):
    rng = np.random.default_rng(5)
    X = sp.random(400, 60, density=0.05, random_state=rng, format="csr")
    gradients, hessians = pair_derivatives(rng.random((2, 400)) ** 3 / 400)
    params = GrowthParams(30, None, 3)
    expected = grow(X.toarray(), gradients, hessians, params)
    monkeypatch.setattr(_histograms, "ENTRIES_PER_BIN", kept)
    assert grow(X, gradients, hessians, params) == expected
    assert len(expected[0]) == 29


@settings(max_examples=examples(100), deadline=None)
@given(
    st.integers(1, 200),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 30]),
    st.booleans(),
    st.sampled_from([1.0, 0.7, 3e-14, 1e300]),
)
def test_packed_sums_are_as_close_as_stated(n, seed, power, bounded, weight):
    rng = np.random.default_rng(seed)
    weights = rng.random((2, n)) ** power
    gradients, hessians = pair_derivatives(weights)
    if not bounded:
        gradients *= 100 * rng.random(n) ** power
    rows = np.flatnonzero(rng.random(n) < 0.8).astype(np.int32)
    packed = np.empty(n, dtype=np.uint64)
    units = units_of_rows(gradients[rows], hessians[rows], None, bounded, weight)
    scale, by = units
    histograms.quantise(gradients, hessians, rows, bounded, packed, scale, by)
    assert not np.delete(packed, rows).any()
    first = (packed >> np.uint64(32)).astype(np.uint32).view(np.int32).astype(np.int64)
    second = (packed & np.uint64(2**32 - 1)).astype(np.int64)
    assert np.abs(first).sum() < 2**31
    assert second.sum() < 2**32
    assert by == 1 if bounded else not rows.size or np.frexp(by)[0] == 0.5
    if bounded:
        assert (np.abs(first) <= second).all()
    part = rows[rng.random(rows.size) < 0.5]
    for exact, units, unit in (
        (gradients, first, scale * by), (hessians, second, scale)
    ):  # fmt: skip
        wrong = abs(exact[part].sum() * unit - units[part].sum())
        assert wrong <= part.size + 1e-6 * unit * hessians.sum() * 1e-3
    if rows.size and rows.size < 2**20:  # more than half of the range is used
        assert np.frexp(scale / weight)[0] == 0.5
        assert second.sum() > (2**29 if bounded else 2**30)


def record():
    return np.array([(1, 10, -np.inf, np.inf, 0)], dtype=LEAF)


@pytest.mark.parametrize("d", [1, 8, 17, 24, 136, 257, 300, 600])
@pytest.mark.parametrize("n", [1, 25, 1024, 1025, 3000])
def test_histograms_of_dense_columns_equal_a_loop(n, d):
    rng = np.random.default_rng(1000 * n + d)
    X = rng.integers(0, 255, (n, d)).astype(np.float32)
    X[rng.random((n, d)) < 0.05] = np.nan
    binning = Binning(as_rows(X, nan=True), np.arange(n), 255, False)
    packed = rng.integers(0, 2**53, n, dtype=np.uint64)
    features = Features.of(binning, np.arange(d, dtype=np.int32), GrowthParams(2))
    features.block.begin_tree(packed, np.zeros(n, np.int32), 0.0, 1.0)
    found = np.empty(features.n_sums, np.uint64)
    for rows in (np.arange(n), np.flatnonzero(rng.random(n) < 0.3), np.arange(n // 3, n)):
        features.block.sum_rows(rows.astype(np.int32), found, None)
        by_column = found.reshape(-1, histogram_layout.CODES)
        for f in range(d):
            bins = int(binning.n_bins[f])
            present = np.unique(X[:, f][~np.isnan(X[:, f])])  # a bin for each value
            codes = np.where(np.isnan(X[:, f]), bins, np.searchsorted(present, X[:, f]))
            expected = np.zeros(histogram_layout.CODES, np.uint64)
            np.add.at(expected, codes[rows], packed[rows])
            assert (by_column[f] == expected).all()


@settings(max_examples=examples(60), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.booleans())
def test_histograms_of_one_column_equal_a_loop(problem, seed, sparse):
    X, gradients, hessians = problem
    rng = np.random.default_rng(seed)
    binning = Binning(
        as_rows(sp.csr_array(X) if sparse else X, nan=True), np.arange(len(X)), 255, False
    )
    packed = np.empty(len(X), np.uint64)
    units = units_of_rows(gradients, hessians, None, True, 1.0)
    every = np.arange(len(X), dtype=np.int32)
    histograms.quantise(gradients, hessians, every, True, packed, units.scale, units.power)
    node_of = rng.integers(0, 2, len(X)).astype(np.int32)
    rows = np.flatnonzero(node_of == 1).astype(np.int32)
    for f, column in enumerate(X.T):
        n = int(binning.n_bins[f]) + 1
        found, counts = np.empty(n, np.uint64), np.empty(n, np.int32)
        histograms.column_histogram(
            binning.columns, f, rows, packed, packed[rows].sum(), node_of, 1, found, counts
        )
        edges = [binning.threshold(f, b) for b in range(1, n - 1)]
        codes = np.where(np.isnan(column), n - 1, np.searchsorted(edges, column))
        expected, expected_counts = np.zeros(n, np.uint64), np.zeros(n, np.int32)
        np.add.at(expected, codes[rows], packed[rows])
        np.add.at(expected_counts, codes[rows], 1)
        assert found.tolist() == expected.tolist()
        assert counts.tolist() == expected_counts.tolist()


def test_features_are_drawn_evenly_and_by_the_place_of_a_node():
    draws = FeatureDraws(7, 0.4, (5, 0))
    masks = np.array([draws.mask(path) for path in range(1, 4001)])
    assert (masks.sum(axis=1) == 3).all()
    # Of independent draws, each pair is drawn with probability 1 / 7: within 4.5 deviations.
    together = masks.T.astype(float) @ masks / 4000
    expected = np.where(np.eye(7, dtype=bool), 3 / 7, 1 / 7)
    assert np.abs(together - expected).max() < 4.5 * 0.5 / np.sqrt(4000)
    np.testing.assert_array_equal(draws.mask(9), masks[8])
    for other in (FeatureDraws(7, 0.4, (5, 1)), FeatureDraws(7, 0.4, (6, 0))):
        assert any((other.mask(path) != draws.mask(path)).any() for path in range(1, 9))
    assert FeatureDraws(7, 0.01, (5, 0)).mask(1).sum() == 1


class Shards:
    """A `HistogramSource` whose rows lie in shards: plain, with histograms summed over these."""

    def __init__(self, binning, params, n_shards, batch_size):
        self.binning, self.params, self.batch_size = binning, params, batch_size
        self.n_shards, self.n_calls = n_shards, 0
        self.offsets = np.concatenate([[0], np.cumsum(binning.n_bins + 1)]).astype(np.int64)

    def begin_tree(self, gradients, hessians, feature_draws=None):
        n = gradients.size
        self.packed, rows = np.empty(n, np.uint64), np.arange(n, dtype=np.int32)
        units = units_of_rows(gradients, hessians, None, True, 1.0)
        histograms.quantise(gradients, hessians, rows, True, self.packed, units.scale, units.power)
        self.rows = [rows]
        root = Leaf(0, n, int(self.packed.sum()), units, feature_draws)
        self.search([root])
        return root

    def search(self, leaves):
        for leaf in (leaf for leaf in leaves if leaf.may_split(self.params)):
            whole = np.zeros(self.offsets[-1], np.uint64), np.zeros(self.offsets[-1], np.int32)
            for shard in range(self.n_shards):
                rows = self.rows[leaf.node]
                rows = rows[rows % self.n_shards == shard]
                for f in range(self.offsets.size - 1):
                    at = slice(*self.offsets[f : f + 2])
                    part = [np.empty(at.stop - at.start, one.dtype) for one in whole]
                    histograms.column_histogram(
                        self.binning.columns, f, rows, self.packed, 0, None, 0, *part
                    )
                    for one, more in zip(whole, part, strict=True):
                        one[at] += more
            self.choose(leaf, *whole)
            if leaf.try_others():
                self.choose(leaf, *whole)

    def choose(self, leaf, histogram, counts):
        params, units, mask = self.params, leaf.units, leaf.allowed()
        room = 4 * int(np.diff(self.offsets).max())
        splits = np.empty(self.offsets.size - 1, SPLIT)
        splitting.find_splits(
            histogram, self.offsets, counts,
            np.array([(leaf.packed, leaf.n_rows, leaf.low, leaf.high, 0)], LEAF),
            None if mask is None else mask.view(np.uint8), params.signs, None,
            units.l2(params), units.min_hessian(params), params.min_samples_leaf,
            np.empty(room, np.uint64), np.empty(room), splits,
        )  # fmt: skip
        best = int(splits["gain"].argmax())
        gain, packed, bin, missing_right = splits[best].tolist()
        leaf.take(Split(gain, packed, best, bin, missing_right), params)

    def expand(self, leaf, tree, room):
        self.n_calls += 1
        likely = [one for _, one in tree.likely_splits(room) if one.children is None]
        assert likely[0] is leaf
        for leaf in likely[: self.batch_size]:
            split, rows = leaf.split, self.rows[leaf.node].copy()
            n_left = partition.partition_rows(
                self.binning.columns, split.feature, split.bin, split.missing_right, None,
                self.params.min_samples_leaf, np.empty(self.packed.size, np.uint8), rows,
                np.empty(rows.size, np.int32),
            )  # fmt: skip
            assert n_left >= 0  # splits were found with counts
            nodes = len(self.rows), len(self.rows) + 1
            self.rows += [rows[:n_left], rows[n_left:]]
            leaf.children = leaf.divide(self.params, nodes, n_left)
            if room > 1:
                self.search(leaf.children)

    def recount(self, leaf):
        raise AssertionError

    def leaf_of(self, leaves):
        found = np.full(self.packed.size, -1, np.int32)
        for leaf in leaves:
            partition.label_rows(self.rows[leaf.node], leaf.number, found)
        return found


@settings(max_examples=examples(60), deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([1, 2, 8]))
def test_shards_and_leaves_expanded_ahead_do_not_change_trees(problem, seed, n_shards, batch_size):
    X, gradients, hessians = problem
    rng = np.random.default_rng(seed)
    params = random_params(rng, X.shape[1])
    draws = FeatureDraws(X.shape[1], rng.random(), (seed, 1)) if rng.random() < 0.5 else None
    binning = Binning(as_rows(X, nan=True), np.arange(len(X)), 255, False)
    source = Shards(binning, params, n_shards, batch_size)
    tree = TreeGrower(source, params).grow(source.begin_tree(gradients, hessians, draws))
    found = described(tree, source.leaf_of(tree.leaves), binning)
    assert found == grow(X, gradients, hessians, params, feature_draws=draws)


def test_expanding_leaves_ahead_saves_calls():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=4000)
    gradients, hessians = np.tanh(signal) / 4000, np.full(4000, 1 / 4000)
    params = GrowthParams(31, None, 20)
    binning = Binning(as_rows(X), np.arange(4000), 64, False)
    calls = []
    for batch_size in (1, 8):
        source = Shards(binning, params, 1, batch_size)
        tree = TreeGrower(source, params).grow(source.begin_tree(gradients, hessians))
        calls.append(source.n_calls)
        depth = max(leaf.depth for leaf in tree.leaves)
    assert len(tree.leaves) == 31
    assert calls[0] == 30
    assert calls[1] == depth == 8


def test_kernels_reject_mismatched_arrays():
    X = np.arange(20.0).reshape(10, 2)
    columns = Binning(as_rows(X), np.arange(10), 255, False).columns
    wide = Binning(as_rows(X), np.arange(10), None, False).columns
    features, rows = np.arange(2, dtype=np.int32), np.arange(10, dtype=np.int32)
    packed, goes_right = np.ones(10, np.uint64), np.empty(10, np.uint8)
    spare = np.empty(10, np.int32)
    beyond = np.full(10, 10, dtype=np.int32)
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        histograms.quantise(np.ones(9), np.ones(10), rows, True, packed, 1.0, 1.0)
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        histograms.quantise(np.ones(10), np.ones(10), beyond, True, packed, 1.0, 1.0)
    with pytest.raises(ValueError, match="not dense, of one byte"):
        histogram_layout.lay_out_panels(wide, features, np.empty(80, np.uint8))
    with pytest.raises(IndexError, match="no column 2"):
        histogram_layout.lay_out_panels(columns, features + 1, np.empty(80, np.uint8))
    with pytest.raises(ValueError, match="not sparse"):
        histogram_layout.count_row_entries(columns, features, np.empty(11, np.int64))
    bounds = np.zeros(11, np.int64)
    with pytest.raises(ValueError, match="not sparse"):
        histogram_layout.lay_out_rows(
            columns, features, np.array([0, 11, 22]), goes_right[:2], bounds[:2], bounds, 0, 10,
            spare,
        )  # fmt: skip
    stored = Binning(as_rows(sp.csr_array(X)), np.arange(10), 255, False).columns
    layout = stored, features, np.array([0, 12, 24]), np.zeros(2, np.uint8)
    histogram_layout.count_row_entries(stored, features, bounds)
    row_sums = np.empty(bounds[-1], np.int32)
    with pytest.raises(ValueError, match="not sparse, or the arrays"):
        histogram_layout.lay_out_rows(*layout, np.array([0, 9]), bounds, 0, 11, row_sums)
    with pytest.raises(ValueError, match="do not match their columns"):
        histogram_layout.lay_out_rows(*layout, np.array([0, 8]), bounds, 0, 10, row_sums)
    for odd in ((0, 1, 0, None, 0, goes_right, beyond), (2, 1, 0, None, 0, goes_right, rows),
                (0, 1, 0, goes_right, 0, goes_right, rows)):  # fmt: skip
        with pytest.raises(ValueError, match="do not match the columns"):
            partition.partition_rows(columns, *odd, spare)
    with pytest.raises(ValueError, match="row numbers are out of range"):
        partition.label_rows(beyond, 0, rows.copy())
    ones, leaves, sums = np.ones(10), np.zeros(10, np.int32), np.empty((2, 1))
    with pytest.raises(ValueError, match="leaves do not match the rows"):
        partition.sum_by_leaf(leaves + 1, ones, ones, None, sums, np.empty(1))
    for odd in ((ones, ones[:9], None, sums), (ones, ones, goes_right[:9], sums),
                (ones, ones, None, sums.T)):  # fmt: skip
        with pytest.raises(ValueError, match="do not match the rows"):
            partition.sum_by_leaf(leaves, *odd, np.empty(1))
    found = np.empty(11, np.uint64), np.empty(11, np.int32)
    for odd in ((0, beyond, packed, 10, None, 0, *found), (2, rows, packed, 10, None, 0, *found),
                (0, rows, packed, 10, None, 0, found[0][1:], found[1])):  # fmt: skip
        with pytest.raises(ValueError, match="do not match the columns"):
            histograms.column_histogram(columns, *odd)
    histogram, scratch = np.ones(22, np.uint64), np.empty(80, np.uint64)
    splits = np.empty(2, SPLIT)
    for offsets, counts, leaf, mask, room, out in (
        ([0, 11, 23], None, record(), None, scratch, splits),
        ([0, 1, 22], None, record(), None, scratch, splits),
        ([0, 11, 22], found[1], record(), None, scratch, splits),
        ([0, 11, 22], None, record().repeat(2), None, scratch, splits),
        ([0, 11, 22], None, record(), goes_right, scratch, splits),
        ([0, 11, 22], None, record(), None, scratch[:43], splits),
        ([0, 11, 22], None, record(), None, scratch, splits[1:]),
    ):
        with pytest.raises(ValueError, match="are inconsistent"):
            splitting.find_splits(
                histogram, np.array(offsets), counts, leaf, mask, None, None, 0.0, 1.0, 1, room,
                np.empty(80), out,
            )  # fmt: skip
    for sums, out in ((histogram[:11], goes_right), (histogram[:1], goes_right[:1])):
        with pytest.raises(ValueError, match="are inconsistent"):
            splitting.mark_categories(sums, 1, 0, scratch, out)


def test_feature_blocks_reject_mismatched_arrays():
    X = np.arange(20.0).reshape(10, 2)
    columns = Binning(as_rows(X), np.arange(10), 255, False).columns
    wide = Binning(as_rows(X), np.arange(10), None, False).columns
    features, offsets = np.arange(2, dtype=np.int32), np.array([0, 11, 22])
    panels, ones = np.zeros(80, np.uint8), np.ones(2, np.uint8)

    def made(columns=wide, features=features, offsets=offsets, size=22, one_sum=None, panels=None,
             row_sums=None):  # fmt: skip
        bounds = None if row_sums is None else np.zeros(11, np.int64)
        return histograms.FeatureBlock(
            columns, features, offsets, size, one_sum, None, None, panels, bounds, row_sums, 1
        )

    for odd in (
        {"features": features + 1},
        {"offsets": offsets[:2]},
        {"offsets": offsets - 1},
        {"size": 21},
        {"one_sum": ones},
        {"panels": panels},
        {"columns": columns, "panels": panels},
        {"columns": columns, "panels": panels[1:], "size": 2048},
        {"row_sums": np.empty(0, np.int32)},
    ):
        with pytest.raises(ValueError, match="do not match the columns"):
            made(**odd)
    block = made()
    packed, node_of = np.ones(10, np.uint64), np.zeros(10, np.int32)
    rows, splits = np.arange(10, dtype=np.int32), np.empty(2, SPLIT)
    enough = np.ones(22, np.uint64)
    for call in (
        lambda: block.sum_rows(rows, enough, None),
        lambda: block.find_splits(enough, record(), None, splits),
    ):
        with pytest.raises(ValueError, match="do not match the columns"):  # no tree has begun
            call()
    for odd in ((packed[1:], node_of), (packed, node_of[1:])):
        with pytest.raises(ValueError, match="do not match the columns"):
            block.begin_tree(*odd, 0.0, 1.0)
    block.begin_tree(packed, node_of, 0.0, 1.0)
    for odd in ((rows + 1, enough, None), (rows, packed, None), (rows, enough, packed)):
        with pytest.raises(ValueError, match="do not match the columns"):
            block.sum_rows(*odd)
    for odd in (
        (packed, record(), None, splits),
        (enough, record().repeat(2), None, splits),
        (enough, record()[:0], None, splits),
        (enough, record(), ones[1:], splits),
        (enough, record(), None, splits[1:]),
    ):
        with pytest.raises(ValueError, match="do not match the columns"):
            block.find_splits(*odd)


def test_empty_leaf_is_split_only_if_parts_may_be_empty():
    columns = Binning(as_rows(np.arange(20.0).reshape(10, 2)), np.arange(10), 255, False).columns
    rows, fires = np.empty(0, np.int32), np.empty(10, np.uint8)
    found = [
        partition.partition_rows(columns, 0, 1, 0, None, least, fires, rows, rows)
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
def test_leaves_are_summed_in_the_order_of_the_rows(n, n_leaves, seed, all_drawn):
    rng = np.random.default_rng(seed)
    gradients, hessians = rng.random((2, n)) ** 20
    leaf_of = rng.integers(0, n_leaves, n).astype(np.int32)
    drawn = None if all_drawn else rng.integers(0, 2, n).astype(np.uint8)
    sums, of_all = np.empty((2, n_leaves)), np.empty(n_leaves)
    partition.sum_by_leaf(leaf_of, gradients, hessians, drawn, sums, of_all)
    expected = np.zeros((3, n_leaves))
    for row, leaf in enumerate(leaf_of):
        counts = drawn is None or drawn[row]
        expected[:, leaf] += gradients[row] * counts, hessians[row] * counts, gradients[row]
    assert (np.vstack([sums, of_all]) == expected).all()


@given(st.integers(1, 60), st.integers(0, 2**31), st.booleans(), st.sampled_from([255, None]))
@settings(max_examples=examples(80), deadline=None)
def test_partitioned_rows_equal_a_loop(n, seed, sparse, max_bins):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 4, size=(n, 2)) * (rng.random((n, 2)) < 0.6).astype(float)
    X[rng.random((n, 2)) < 0.2] = np.nan
    given_X = sp.csr_array(X) if sparse else X
    binning = Binning(as_rows(given_X, nan=True), np.arange(n), max_bins, False)
    n_bins, missing_right = int(binning.n_bins[1]), int(rng.integers(2))
    bin = int(rng.integers(n_bins + 1))
    edges = [binning.threshold(1, b) for b in range(1, n_bins)]
    codes = np.where(np.isnan(X[:, 1]), n_bins, np.searchsorted(edges, X[:, 1]))
    of_code = rng.integers(0, 2, n_bins + 1).astype(np.uint8) if rng.random() < 0.4 else None
    by_bin = np.r_[np.arange(n_bins) >= bin, missing_right]
    right = (by_bin if of_code is None else of_code)[codes].astype(bool)
    rows = np.flatnonzero(rng.random(n) < 0.8).astype(np.int32)
    left_rows, right_rows = rows[~right[rows]], rows[right[rows]]
    scratch = np.empty(n, np.uint8), np.empty(n, np.int32)
    for min_rows in (0, min(left_rows.size, right_rows.size) + 1):
        moved = rows.copy()
        n_left = partition.partition_rows(
            binning.columns, 1, bin, missing_right, of_code, min_rows, scratch[0], moved, scratch[1]
        )
        assert n_left == (-1 if min_rows else left_rows.size)
        kept = rows if min_rows else np.concatenate([left_rows, right_rows])
        assert moved.tolist() == kept.tolist()


def test_leaf_numbers_are_written_only_for_the_rows():
    leaf_of = np.arange(6, dtype=np.int32)
    partition.label_rows(np.array([1, 4], np.int32), 9, leaf_of)
    assert leaf_of.tolist() == [0, 9, 2, 3, 9, 5]
