"""Columns of one thread in the growth of trees: layout, histograms and best cuts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import release
from rankcore._core.numbers import Floats
from rankcore._ext import tree_histograms, tree_looks, tree_splits
from rankcore.boosting._binning import Binning

# Sparse columns with fewer entries per bin have one sum, which bounds the worth of their cuts.
ENTRIES_PER_BIN = 4
# Sparse rows refer to sums by 32-bit integers.
MAX_SUMS = 2**31 - 1
# Entries of sparse rows that are arranged at a time: those of more fit no cache, and of fewer than
# this number of a column leave nothing to gain.
ARRANGED, ARRANGED_OF_COLUMN = 1 << 18, 16
# Record of a leaf for `tree_looks.Look`.
LEAF = np.dtype(
    {
        "names": ["word", "n_rows", "low", "high", "number", "is_less"],
        "formats": [np.uint64, np.int64, np.float64, np.float64, np.int32, np.uint8],
    }
)


class Cut(NamedTuple):
    """Best cut of a leaf."""

    worth: float = -1.0  # sum over both children; negative if there is no cut
    word: int = 0  # sum of the words of the rows that fire
    # Rows fire in this bin and above and, if ``side``, where the value is missing. For categories,
    # this is the number of them that fire; `tree_splits.mark_set` finds which.
    feature: int = -1
    bin: int = -1
    side: int = 0


@dataclass(frozen=True)
class Rules:
    """Constraints on the growth of a tree."""

    max_leaf_nodes: int
    max_depth: int | None = None
    min_samples_leaf: int = 1
    # Minimum W + L of a leaf, where the sum of W + L over all leaves is 2.
    min_pair_weight: float = 0.0
    l2_leaf: float = 0.0  # added to W + L in the values of leaves
    # (n_features,): monotone constraint of each feature, 1, 0 or -1.
    signs: NDArray[np.int8] | None = None
    # Whether rows have first and second derivatives of a loss instead of W - L and W + L.
    slopes: bool = False

    @classmethod
    def of(
        cls,
        params: Any,
        min_samples_leaf: int,
        min_pair_weight: float,
        signs: NDArray[np.int8] | None,
        slopes: bool = False,
    ) -> Self:
        """Constraints by the parameters of a learner."""
        depth = None if params.max_depth is None else int(params.max_depth)
        most, l2_leaf = int(params.max_leaf_nodes or 2 ** (depth or 1)), float(params.l2_leaf)
        return cls(most, depth, min_samples_leaf, min_pair_weight, l2_leaf, signs, slopes)

    def mass(self, word: int) -> int:
        """W + L of a sum of words, in units of the words."""
        return int(tree_splits.mass(word, self.slopes))

    def least(self, scale: float) -> float:
        """Minimum W + L of a leaf, in units of the words."""
        return max(self.min_pair_weight * scale, 1.0)


class Found(NamedTuple):
    """Best cut of a leaf in each of some columns."""

    # (n_columns,): as in `Cut`; an upper bound if the bin is `tree_looks.BOUNDED`.
    worths: Floats
    words: NDArray[np.uint64]
    bins: NDArray[np.int32]
    sides: NDArray[np.uint8]


@dataclass
class Leaf:
    """Leaf of a tree during growth."""

    number: int
    # Range of its rows among those of the tree.
    start: int
    stop: int
    rest: slice  # its rows among those the tree does not learn from
    depth: int
    word: int  # sum of the words of its rows
    # Parent node, -1 for the root, and whether its rows fire there.
    parent: int = -1
    side: int = 0
    # Bounds on its value.
    low: float = -np.inf
    high: float = np.inf
    sums: list[NDArray[np.uint64]] = field(default_factory=list)  # of each shard
    found: list[Found] = field(default_factory=list)  # of each shard
    # The best of them; it may leave a child too few rows.
    cut: Cut = field(default_factory=Cut)
    gain: float = -1.0  # gain of the cut over the leaf


class Shard:
    """Some columns, in ascending order.

    Memory: dense columns of byte codes take one more byte per value, sparse columns four per entry
    and eight per row, on disk if the rows are in a mapped file.
    """

    def __init__(self, binning: Binning, features: NDArray[np.int32], rules: Rules) -> None:
        self.columns, self.features, self._rules = binning.columns, features, rules
        self._categorical: NDArray[np.uint8] | None = None
        if binning.categories:
            self._categorical = np.zeros(binning.n_bins.size, dtype=np.uint8)
            self._categorical[list(binning.categories)] = 1
        self._n_rows = binning.taken.size
        n_bins = binning.n_bins[features].astype(np.int64)
        one_sum = panels = bounds = cells = None
        self._splits: NDArray[np.bool_] | None = None
        if binning.n_entries is not None:
            whole = (binning.n_entries[features] < ENTRIES_PER_BIN * n_bins).astype(np.uint8)
            whole[:] &= not rules.slopes  # sums of signed gradients are no bounds
            sizes = np.where(whole, 1, n_bins + 1)
            # A child without zeros has no other rows than those with an entry.
            splits = binning.n_entries[features] >= rules.min_samples_leaf
            self._splits = None if splits.all() else splits
        elif binning.narrow:
            sizes = np.full(features.size, tree_histograms.CODES, dtype=np.int64)
        else:
            sizes = n_bins + 1
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        size = int(offsets[-1])
        if binning.n_entries is not None:
            if size > MAX_SUMS:
                raise ValueError(
                    f"trees support at most {MAX_SUMS} bins; found {size}: set max_bins"
                )
            bounds, cells = lay_out_cells(binning, features, offsets, whole)
            one_sum = None if rules.slopes else whole
        elif binning.narrow:
            lanes = tree_histograms.LANES
            padded = -(-features.size // lanes) * lanes
            panels = binning.empty(padded * self._n_rows, np.uint8)
            tree_histograms.lay_out(self.columns, features, panels)
            release(panels)
            size = padded * tree_histograms.CODES
        self._size = size
        most = int(n_bins.max()) + 1
        self._scratch = np.empty(5 * most, dtype=np.uint64)
        self._room = np.empty(2 * most)
        self._counts = np.empty(most, dtype=np.int32)
        self.spare: list[NDArray[np.uint64]] = []  # arrays of sums to use again
        moved = np.empty(0 if panels is None else tree_looks.ROOM, dtype=np.uint8)
        self.look = tree_looks.Look(
            self.columns,
            features,
            offsets,
            size,
            one_sum,
            rules.signs,
            self._categorical,
            panels,
            bounds,
            cells,
            moved,
            self._scratch,
            self._room,
            self._counts,
            rules.min_samples_leaf,
            rules.slopes,
        )

    def begin(
        self,
        scale: float,
        leaf_of: NDArray[np.int32],
        words: NDArray[np.uint64],
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        """Begin a tree in which ``scale`` units of the words are a weight of 1.

        ``words`` are of all rows; ``leaf_of`` is used with sparse columns only.
        """
        rules = self._rules
        self._scale, self._leaf_of, self._words = scale, leaf_of, words
        masks = [self._splits, None if allowed is None else allowed[self.features]]
        known = [mask for mask in masks if mask is not None]
        usable = np.logical_and.reduce(known).astype(np.uint8) if known else None
        self.look.begin(words, leaf_of, usable, rules.l2_leaf * scale, rules.least(scale))

    def prepare(
        self, rows: NDArray[np.int32], leaves: NDArray[np.void], parent: NDArray[np.uint64] | None
    ) -> tuple[NDArray[np.uint64], list[Found]]:
        """Set what the next look is at: the sums by bin of rows, and the best cuts of leaves.

        ``leaves`` are records of the root, or of the children of a leaf with the sums ``parent``;
        the sums of the rows, which belong to the smaller child, are subtracted from these. Returns
        the arrays to be filled. Rows are not counted.
        """
        sums = self.spare.pop() if self.spare else np.empty(self._size, dtype=np.uint64)
        shape = leaves.size, self.features.size
        worths, words = np.empty(shape), np.empty(shape, dtype=np.uint64)
        bins, sides = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.uint8)
        self.look.prepare(rows, sums, parent, leaves, worths, words, bins, sides)
        found = [Found(worths[i], words[i], bins[i], sides[i]) for i in range(leaves.size)]
        return sums, found

    def best(self, found: Found) -> Cut:
        """Best cut of all columns; ties go to the first column."""
        at = int(found.worths.argmax())
        if not found.worths[at] > 0:
            return Cut()
        return Cut(
            worth=float(found.worths[at]),
            word=int(found.words[at]),
            feature=int(self.features[at]),
            bin=int(found.bins[at]),
            side=int(found.sides[at]),
        )

    def count(self, leaf: Leaf, found: Found, rows: NDArray[np.int32]) -> None:
        """Replace the best cut by the best in its column that leaves both children enough rows."""
        rules, scale = self._rules, self._scale
        at = int(found.worths.argmax())
        feature = int(self.features[at])
        sign = 0 if rules.signs is None else int(rules.signs[feature])
        categorical = self._categorical is not None and bool(self._categorical[feature])
        worth, word, bin, side = tree_splits.search_counted(
            self.columns,
            feature,
            sign,
            categorical,
            rows,
            self._words,
            leaf.word,
            rules.l2_leaf * scale,
            rules.least(scale),
            rules.min_samples_leaf,
            leaf.low,
            leaf.high,
            self._leaf_of,
            leaf.number,
            self._scratch,
            self._room,
            self._counts,
            rules.slopes,
        )
        found.worths[at] = worth
        found.words[at] = word
        found.bins[at] = bin
        found.sides[at] = side


def lay_out_cells(
    binning: Binning,
    features: NDArray[np.int32],
    offsets: NDArray[np.int64],
    whole: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Bounds of the list of each row, and the place in the sums of each of its entries."""
    assert binning.n_entries is not None
    n_rows = binning.taken.size
    bounds = np.empty(n_rows + 1, dtype=np.int64)
    tree_histograms.count_cells(binning.columns, features, bounds)
    cells = binning.empty(bounds[-1], np.int32)
    starts = np.concatenate([[0], np.cumsum(binning.n_entries)])[features]
    step = max(ARRANGED, ARRANGED_OF_COLUMN * features.size)
    cuts = np.searchsorted(bounds, np.arange(step, int(bounds[-1]), step)).tolist()
    for first, last in pairwise([0, *cuts, n_rows]):
        tree_histograms.lay_out_cells(
            binning.columns, features, offsets, whole, starts, bounds, first, last, cells
        )
        release(cells[bounds[first] : bounds[last]])
    return bounds, cells


def share_columns(binning: Binning, n_jobs: int) -> list[NDArray[np.int32]]:
    """Divide columns among threads into consecutive parts of about equal work."""
    features = np.arange(binning.n_bins.size, dtype=np.int32)
    work = np.ones(features.size) if binning.n_entries is None else binning.n_entries + 256.0
    ends = np.cumsum(work)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_jobs) / n_jobs)
    if binning.n_entries is None:
        # Whole blocks; the first thread, which is already running, takes the remainder.
        lanes = tree_histograms.LANES
        cuts = np.ceil(cuts / lanes).astype(np.int64) * lanes
    return [part for part in np.split(features, cuts) if part.size]
