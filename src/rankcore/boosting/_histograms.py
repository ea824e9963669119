"""Histograms, splits and partition of leaves, for binned rows of this process.

Features are divided among threads, each with a `FeatureBlock` of `rankcore._ext.histograms`. Only
the smaller child of a leaf is summed; the histogram of its sibling is that of the parent minus
this (the subtraction trick). A tree costs at most O(values * (1 + depth / 2)), counting stored
values of sparse columns. Memory: 25 bytes per row and 8 bytes per bin of each leaf; dense columns
of byte codes take one more byte per value, sparse columns four per entry and eight per row, on disk
if the codes are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import release
from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import histogram_layout, histograms, partition, splitting
from rankcore.boosting._binning import Bins
from rankcore.boosting._grower import (
    NO_SPLIT,
    FeatureDraws,
    GrownTree,
    GrowthParams,
    Leaf,
    Split,
    Units,
)

# Sparse columns with fewer entries per bin have one sum, which bounds the gain of their splits.
ENTRIES_PER_BIN = 4
# Sparse rows refer to sums by 32-bit integers.
MAX_SUMS = 2**31 - 1
# Entries of sparse rows that are arranged at a time: those of more fit no cache, and of fewer than
# this number of a column leave nothing to gain.
ARRANGED, ARRANGED_OF_COLUMN = 1 << 18, 16
# Records of a leaf and of the best split by a feature: see ``_splitting.pxd``.
LEAF = np.dtype(
    [
        ("packed", np.uint64),
        ("n_rows", np.int64),
        ("low", np.float64),
        ("high", np.float64),
        ("node", np.int32),
    ],
    align=True,
)
SPLIT = np.dtype(
    [
        ("gain", np.float64),
        ("packed", np.uint64),
        ("bin", np.int32),
        ("missing_right", np.uint8),
    ],
    align=True,
)


@dataclass
class Features:
    """Some features, in ascending order, arranged for one thread."""

    numbers: NDArray[np.int32]
    block: histograms.FeatureBlock
    n_sums: int  # size of a histogram
    usable: NDArray[np.bool_] | None  # mask of those that can split; None: all
    spare: list[NDArray[np.uint64]] = field(default_factory=list)  # histograms to use again

    @classmethod
    def of(cls, bins: Bins, numbers: NDArray[np.int32], params: GrowthParams) -> Features:
        """Arrange some features of binned rows."""
        n_rows, columns = bins.columns.n_rows, bins.columns
        n_bins = bins.n_bins[numbers].astype(np.int64)
        one_sum = panels = row_starts = row_sums = usable = None
        if bins.n_entries is not None:
            one_sum = (bins.n_entries[numbers] < ENTRIES_PER_BIN * n_bins).astype(np.uint8)
            one_sum[:] &= params.bounded
            offsets = np.concatenate([[0], np.cumsum(np.where(one_sum, 1, n_bins + 1))])
            n_sums = int(offsets[-1])
            if n_sums > MAX_SUMS:
                raise ValueError(
                    f"trees support at most {MAX_SUMS} bins; got {n_sums}: set max_bins"
                )
            row_starts, row_sums = arrange_rows(bins, numbers, offsets, one_sum)
            # A child without zeros has no other rows than those with an entry.
            usable = bins.n_entries[numbers] >= params.min_samples_leaf
        elif bins.narrow:
            lanes, codes = histogram_layout.LANES, histogram_layout.CODES
            offsets = np.arange(numbers.size + 1, dtype=np.int64) * codes
            padded = -(-numbers.size // lanes) * lanes
            panels = bins.empty(padded * n_rows, np.uint8)
            histogram_layout.lay_out_panels(columns, numbers, panels)
            release(panels)
            n_sums = padded * codes
        else:
            offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
            n_sums = int(offsets[-1])
        block = histograms.FeatureBlock(
            columns,
            numbers,
            offsets,
            n_sums,
            one_sum if params.bounded else None,
            params.signs,
            bins.is_categorical,
            panels,
            row_starts,
            row_sums,
            params.min_samples_leaf,
        )
        return cls(numbers, block, n_sums, None if usable is None or usable.all() else usable)

    def allowed(self, mask: NDArray[np.bool_] | None) -> NDArray[np.uint8] | None:
        """Select these features from a mask of all; exclude those that cannot split."""
        masks = [self.usable, None if mask is None else mask[self.numbers]]
        present = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(present).astype(np.uint8) if present else None

    def empty_histogram(self) -> NDArray[np.uint64]:
        """Return an array for a histogram, not initialised."""
        return self.spare.pop() if self.spare else np.empty(self.n_sums, dtype=np.uint64)

    def best(self, candidates: NDArray[np.void]) -> Split:
        """Return the best of the splits by each feature; ties go to the first feature."""
        at = int(candidates["gain"].argmax())
        gain, packed, bin, missing_right = candidates[at].tolist()
        if not gain > 0:
            return NO_SPLIT
        return Split(gain, packed, int(self.numbers[at]), bin, missing_right)


@dataclass
class LeafRows:
    """Rows of a leaf, and its splits so far."""

    start: int  # range of its rows among those that the tree learns from
    stop: int
    others: slice  # its rows among those that were not drawn
    # Of each block of features: the histogram, and the best split by each feature.
    histograms: list[NDArray[np.uint64]] = field(default_factory=list)
    candidates: dict[int, NDArray[np.void]] = field(default_factory=dict)


class MemoryHistograms:
    """A `HistogramSource` for binned rows of this process; the left child keeps its parent's node.

    Splits do not depend on the number of threads.
    """

    def __init__(self, bins: Bins, params: GrowthParams, threads: Threads) -> None:
        self._bins, self._params, self._threads = bins, params, threads
        self._features = [
            Features.of(bins, part, params) for part in divide_features(bins, threads.n)
        ]
        n = bins.columns.n_rows
        self._all = np.arange(n, dtype=np.int32)
        self._goes_right = np.empty(n, dtype=np.uint8)
        self._spare, self._packed = np.empty(n, np.int32), np.empty(n, np.uint64)
        self._leaves: dict[int, LeafRows] = {}

    def begin_tree(
        self,
        gradients: Floats,
        hessians: Floats,
        drawn: NDArray[np.bool_] | None = None,
        feature_draws: FeatureDraws | None = None,
        weight: float = 1.0,
    ) -> Leaf:
        """Begin a tree, and return its root.

        Gradients are minus the derivatives of the loss of each row, divided by ``weight`` as the
        hessians. ``drawn`` is a mask of the rows to learn from.
        """
        n, params = self._all.size, self._params
        for features, held in (
            (features, histogram)
            for leaf in self._leaves.values()
            for features, histogram in zip(self._features, leaf.histograms, strict=False)
        ):
            features.spare.append(held)
        self._rows = self._all.copy() if drawn is None else np.flatnonzero(drawn).astype(np.int32)
        self._others = self._all[:0] if drawn is None else np.flatnonzero(~drawn).astype(np.int32)
        units = units_of_rows(gradients, hessians, drawn, params.bounded, weight)
        histograms.quantise(
            gradients,
            hessians,
            self._rows,
            params.bounded,
            self._packed,
            units.scale,
            units.power,
        )
        self._node_of = np.zeros(n, dtype=np.int32)
        self._node_of[self._others] = -1
        for features in self._features:
            features.block.begin_tree(
                self._packed, self._node_of, units.l2(params), units.min_hessian(params)
            )
        root = Leaf(0, self._rows.size, int(self._packed.sum()), units, feature_draws)
        self._leaves = {0: LeafRows(0, self._rows.size, slice(0, self._others.size))}
        if root.may_split(params):
            self._find_splits([root], root, None)
        return root

    def leaf_of(self, leaves: Sequence[Leaf]) -> NDArray[np.int32]:
        """Return the number of the leaf of each row."""
        for leaf in leaves:
            at = self._leaves[leaf.node]
            partition.label_rows(self._rows[at.start : at.stop], leaf.number, self._node_of)
            partition.label_rows(self._others[at.others], leaf.number, self._node_of)
        return self._node_of

    def expand(self, leaf: Leaf, tree: GrownTree, room: int) -> None:
        parent = self._leaves[leaf.node]
        leaf.children = children = self._partition(leaf)
        if not children:
            return
        eligible = [child for child in children if room > 1 and child.may_split(self._params)]
        if not eligible:
            for features, histogram in zip(self._features, parent.histograms, strict=True):
                features.spare.append(histogram)
            return
        left, right = children
        smaller, larger = (left, right) if left.n_rows <= right.n_rows else (right, left)
        # The histograms of the parent become those of its larger child.
        self._leaves[larger.node].histograms = parent.histograms
        self._find_splits(eligible, smaller, larger)

    def recount(self, leaf: Leaf) -> None:
        held, params, units = self._leaves[leaf.node], self._params, leaf.units
        at, feature = self._best(leaf).index(leaf.split), leaf.split.feature
        histogram, counts = self._column_histogram(leaf, feature)
        signs, categorical = params.signs, self._bins.is_categorical
        counted = np.empty(1, SPLIT)
        splitting.find_splits(
            histogram,
            np.array([0, histogram.size]),
            counts,
            self._record(leaf),
            None,
            None if signs is None else signs[feature : feature + 1],
            None if categorical is None else categorical[feature : feature + 1],
            units.l2(params),
            units.min_hessian(params),
            params.min_samples_leaf,
            np.empty(4 * histogram.size, dtype=np.uint64),
            np.empty(2 * histogram.size),
            counted,
        )
        place = int(np.searchsorted(self._features[at].numbers, feature))
        held.candidates[at][place] = counted[0]
        self._choose(leaf)

    def _find_splits(self, leaves: list[Leaf], summed: Leaf, larger: Leaf | None) -> None:
        """Build histograms, and find splits: of the root, or of the children of a leaf.

        ``summed`` is the leaf, of both children the smaller, whose rows are visited; ``larger`` is
        its sibling, which has the histograms of the parent.
        """
        at = self._leaves[summed.node]
        rows = self._rows[at.start : at.stop]
        at.histograms = [features.empty_histogram() for features in self._features]
        masks = [leaf.allowed() for leaf in leaves]

        def build(number: int) -> None:
            block, histogram = self._features[number].block, at.histograms[number]
            larger_histogram = (
                None if larger is None else self._leaves[larger.node].histograms[number]
            )
            block.sum_rows(rows, histogram, larger_histogram)
            for leaf, mask in zip(leaves, masks, strict=True):
                self._search(number, leaf, mask)

        self._threads.map(build, range(len(self._features)))
        for leaf in leaves:
            self._choose(leaf)

    def _search(self, number: int, leaf: Leaf, mask: NDArray[np.bool_] | None) -> None:
        """Find the best split of a leaf by each feature of a block; ``mask`` is of all features."""
        features, held = self._features[number], self._leaves[leaf.node]
        candidates = np.empty(features.numbers.size, dtype=SPLIT)
        features.block.find_splits(
            held.histograms[number], self._record(leaf), features.allowed(mask), candidates
        )
        held.candidates[number] = candidates

    def _choose(self, leaf: Leaf) -> None:
        """Set the best split of a leaf; for the root also try features that were not drawn."""
        self._take_best(leaf)
        if leaf.try_others():
            mask = leaf.allowed()
            self._threads.map(
                lambda number: self._search(number, leaf, mask), range(len(self._features))
            )
            self._take_best(leaf)

    def _record(self, leaf: Leaf) -> NDArray[np.void]:
        record = leaf.packed, leaf.n_rows, leaf.low, leaf.high, leaf.node
        return np.array([record], dtype=LEAF)

    def _take_best(self, leaf: Leaf) -> None:
        """Set the best split of a leaf; ties go to the first feature."""
        leaf.take(max(self._best(leaf), key=lambda split: split.gain), self._params)

    def _best(self, leaf: Leaf) -> list[Split]:
        """Return the best split of a leaf by each block of features."""
        candidates = self._leaves[leaf.node].candidates
        return [features.best(candidates[i]) for i, features in enumerate(self._features)]

    def _partition(self, leaf: Leaf) -> tuple[Leaf, Leaf] | tuple[()]:
        """Partition the rows of a leaf; return its children, none if one has too few rows."""
        split, at = leaf.split, self._leaves[leaf.node]
        if split.bin == histograms.BOUNDED:
            return ()
        goes_right = leaf.categories = None
        if split.feature in self._bins.categories:
            goes_right = self._mark_categories(leaf)
        rows, min_rows = self._rows[at.start : at.stop], self._params.min_samples_leaf
        n_left = self._divide(split, goes_right, min_rows, rows)
        if n_left < 0:
            return ()
        middle, others = at.start + n_left, at.others.start
        if self._others.size:
            others += self._divide(split, goes_right, 0, self._others[at.others])
        left, right = leaf.divide(self._params, (leaf.node, len(self._leaves)), n_left)
        self._leaves[left.node] = LeafRows(at.start, middle, slice(at.others.start, others))
        self._leaves[right.node] = LeafRows(middle, at.stop, slice(others, at.others.stop))
        if self._bins.n_entries is not None:
            partition.label_rows(self._rows[middle : at.stop], right.node, self._node_of)
        return left, right

    def _mark_categories(self, leaf: Leaf) -> NDArray[np.uint8]:
        """Return the mask of bins that go right, and set the categories of a leaf's split."""
        split = leaf.split
        histogram, _ = self._column_histogram(leaf, split.feature)
        scratch = np.empty(2 * histogram.size, dtype=np.uint64)
        goes_right = np.empty(histogram.size, dtype=np.uint8)
        splitting.mark_categories(histogram, split.bin, split.missing_right, scratch, goes_right)
        others = np.flatnonzero(goes_right[:-1] != split.missing_right)
        leaf.categories = self._bins.categories[split.feature][others]
        return goes_right

    def _column_histogram(
        self, leaf: Leaf, feature: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the histogram of a leaf for one feature, and the number of rows of each bin."""
        at, n = self._leaves[leaf.node], int(self._bins.n_bins[feature]) + 1
        histogram, counts = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.int32)
        histograms.column_histogram(
            self._bins.columns,
            feature,
            self._rows[at.start : at.stop],
            self._packed,
            leaf.packed,
            self._node_of,
            leaf.node,
            histogram,
            counts,
        )
        return histogram, counts

    def _divide(
        self,
        split: Split,
        goes_right: NDArray[np.uint8] | None,
        min_rows: int,
        rows: NDArray[np.int32],
    ) -> int:
        return partition.partition_rows(
            self._bins.columns,
            split.feature,
            split.bin,
            split.missing_right,
            goes_right,
            min_rows,
            self._goes_right,
            rows,
            self._spare,
        )


def units_of_rows(
    gradients: Floats,
    hessians: Floats,
    drawn: NDArray[np.bool_] | None,
    bounded: bool,
    weight: float,
) -> Units:
    """Return the units for sums over drawn rows of this process; None: all."""
    if drawn is not None:
        gradients, hessians = gradients[drawn], hessians[drawn]
    magnitude = 0.0 if bounded else float(np.abs(gradients).sum())
    n = hessians.size
    return Units.of(float(hessians.sum()), magnitude, n, bounded=bounded, weight=weight)


def arrange_rows(
    bins: Bins,
    features: NDArray[np.int32],
    offsets: NDArray[np.int64],
    one_sum: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the list of each sparse row begins, and the sums that its entries add to."""
    assert bins.n_entries is not None
    n_rows = bins.columns.n_rows
    bounds = np.empty(n_rows + 1, dtype=np.int64)
    histogram_layout.count_row_entries(bins.columns, features, bounds)
    row_sums = bins.empty(bounds[-1], np.int32)
    starts = np.concatenate([[0], np.cumsum(bins.n_entries)])[features]
    step = max(ARRANGED, ARRANGED_OF_COLUMN * features.size)
    cuts = np.searchsorted(bounds, np.arange(step, int(bounds[-1]), step)).tolist()
    for first, last in pairwise([0, *cuts, n_rows]):
        histogram_layout.lay_out_rows(
            bins.columns, features, offsets, one_sum, starts, bounds, first, last, row_sums
        )
        release(row_sums[bounds[first] : bounds[last]])
    return bounds, row_sums


def divide_features(bins: Bins, n_threads: int) -> list[NDArray[np.int32]]:
    """Divide features among threads into consecutive parts of about equal work."""
    features = np.arange(bins.n_bins.size, dtype=np.int32)
    work = np.ones(features.size) if bins.n_entries is None else bins.n_entries + 256.0
    ends = np.cumsum(work)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_threads) / n_threads)
    if bins.n_entries is None:
        # Whole blocks; the first thread, which is already running, takes the remainder.
        lanes = histogram_layout.LANES
        cuts = np.ceil(cuts / lanes).astype(np.int64) * lanes
    return [part for part in np.split(features, cuts) if part.size]
