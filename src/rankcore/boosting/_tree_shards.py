"""The columns that one thread looks at while a tree grows: their layout, sums and best cuts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import tree_histograms, tree_splits
from rankcore.boosting._binning import Binning

# Sparse columns of fewer entries per bin have one sum, which bounds what their cuts are worth.
ENTRIES_PER_BIN = 4
# Sums are numbered by 32-bit integers in the lists of sparse rows.
MAX_SUMS = 2**31 - 1


class Cut(NamedTuple):
    """The best cut of a leaf by some columns.

    Attributes
    ----------
    worth : float
        What both children are worth together; negative if there is no cut.
    feature, bin, side : int
        Rows fire in this bin and those above and, if ``side``, where the value is missing. Of
        categories, this number of them fire: `tree_splits.mark_set` says which.
    """

    worth: float = -1.0
    feature: int = -1
    bin: int = -1
    side: int = 0


@dataclass(frozen=True)
class Rules:
    """What restricts the growth of a tree.

    Attributes
    ----------
    max_leaf_nodes : int
    max_depth : int or None
    min_samples_leaf : int
    min_pair_weight : float
        Least sum of what the rows of a leaf win and lose with, of 2 in all.
    l2_leaf : float
        Added to that sum where a leaf's value is computed.
    signs : ndarray of int8, shape (n_features,), or None
        1 where the score must not fall as the feature rises, -1 where it must not rise.
    """

    max_leaf_nodes: int
    max_depth: int | None = None
    min_samples_leaf: int = 1
    min_pair_weight: float = 0.0
    l2_leaf: float = 0.0
    signs: NDArray[np.int8] | None = None


@dataclass
class Leaf:
    """A leaf of a tree that grows.

    Attributes
    ----------
    number : int
    start, stop : int
        Its rows, among those of the tree.
    rest : tuple of int
        The same among the rows that the tree does not learn from.
    depth : int
    word : int
        Sum of the words of its rows.
    parent, side : int
        Node that it is a child of, -1 for the root; and whether it fires there.
    low, high : float
        Range of its value.
    sums : list of arrays
        Of each shard.
    cut : Cut
    gain : float
        What the cut is worth more than the leaf.
    """

    number: int
    start: int
    stop: int
    rest: tuple[int, int]
    depth: int
    word: int
    parent: int = -1
    side: int = 0
    low: float = -np.inf
    high: float = np.inf
    sums: list[NDArray[np.uint64]] = field(default_factory=list)
    cut: Cut = field(default_factory=Cut)
    gain: float = -1.0

    @property
    def mass(self) -> int:
        """W + L, in units of the words."""
        return (self.word >> 32) + (self.word & 0xFFFFFFFF)


class Shard:
    """Some columns.

    Parameters
    ----------
    binning : Binning
    features : ndarray of int32
        Ascending.

    Notes
    -----
    Dense columns of byte codes take one more byte per value, sparse ones four per entry and eight
    per row.
    """

    def __init__(self, binning: Binning, features: NDArray[np.int32]) -> None:
        self.columns, self.features = binning.columns, features
        self._categorical: NDArray[np.uint8] | None = None
        if binning.categories:
            self._categorical = np.zeros(binning.n_bins.size, dtype=np.uint8)
            self._categorical[list(binning.categories)] = 1
        self._n_rows = binning.taken.size
        n_bins = binning.n_bins[features].astype(np.int64)
        self._whole: NDArray[np.uint8] | None = None
        self._blocks: NDArray[np.uint8] | None = None
        self._cells: NDArray[np.int32] | None = None
        if binning.n_entries is not None:
            whole = (binning.n_entries[features] < ENTRIES_PER_BIN * n_bins).astype(np.uint8)
            sizes = np.where(whole, 1, n_bins + 1)
        elif binning.narrow:
            sizes = np.full(features.size, tree_histograms.CODES, dtype=np.int64)
        else:
            sizes = n_bins + 1
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        size = int(self._offsets[-1])
        if binning.n_entries is not None:
            if size > MAX_SUMS:
                raise ValueError(f"trees take {MAX_SUMS} bins at most; found {size}: set max_bins")
            self._bounds = np.empty(self._n_rows + 1, dtype=np.int64)
            self._cells, self._whole = self._list_cells(whole), whole
        elif binning.narrow:
            lanes = tree_histograms.LANES
            n_blocks = -(-features.size // lanes)
            self._blocks = np.empty(n_blocks * self._n_rows * lanes, dtype=np.uint8)
            tree_histograms.lay_out(self.columns, features, self._blocks)
            size = n_blocks * lanes * tree_histograms.CODES
        self._size = size
        most = int(n_bins.max()) + 1
        self._scratch = np.empty(5 * most, dtype=np.uint64)
        self._room = np.empty(2 * most)
        self._counts = np.empty(most, dtype=np.int32)
        self._spare: list[NDArray[np.uint64]] = []
        self.allowed: NDArray[np.uint8] | None = None

    def _list_cells(self, whole: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Where the entries of each sparse row are summed, row by row."""
        layout = (self.columns, self.features, self._offsets, whole, self._bounds)
        tree_histograms.lay_out_cells(*layout, None)
        cells = np.empty(self._bounds[-1], dtype=np.int32)
        tree_histograms.lay_out_cells(*layout, cells)
        return cells

    def take_back(self, sums: NDArray[np.uint64]) -> None:
        """Keep an array of sums that is no longer needed for another leaf."""
        self._spare.append(sums)

    def sum(self, rows: NDArray[np.int32], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Sums of the words of rows by bin."""
        sums = self._spare.pop() if self._spare else np.empty(self._size, dtype=np.uint64)
        if self._cells is not None:
            tree_histograms.sum_cells(self._bounds, self._cells, rows, words, sums)
        elif self._blocks is not None:
            tree_histograms.sum_blocks(self._blocks, self._n_rows, rows, words, sums)
        else:
            tree_histograms.sum_columns(
                self.columns, self.features, self._offsets, rows, words, sums
            )
        return sums

    def best(
        self,
        leaf: Leaf,
        sums: NDArray[np.uint64],
        rows: NDArray[np.int32],
        words: NDArray[np.uint64],
        scale: float,
        rules: Rules,
        leaf_of: NDArray[np.int32],
        row_words: NDArray[np.uint64],
    ) -> Cut:
        """The best cut of a leaf by these columns; of equal ones by the first.

        Parameters
        ----------
        leaf : Leaf
        sums : ndarray of uint64
            From `sum`.
        rows, words : ndarray
            Of the leaf.
        scale : float
            Units of the words in a weight of 1.
        rules : Rules
        leaf_of, row_words : ndarray, shape (n_rows,)
            Leaf and word of each row; of use if columns are sparse.
        """
        n = self.features.size
        worths, bins = np.empty(n), np.empty(n, dtype=np.int32)
        sides = np.empty(n, dtype=np.uint8)
        l2, least = rules.l2_leaf * scale, max(rules.min_pair_weight * scale, 1.0)
        tree_splits.search(
            self.columns,
            self.features,
            self._offsets,
            self._whole,
            self.allowed,
            rules.signs,
            self._categorical,
            sums,
            leaf.word,
            l2,
            least,
            leaf.low,
            leaf.high,
            leaf_of,
            leaf.number,
            row_words,
            rows.size,
            rules.min_samples_leaf,
            self._scratch,
            self._room,
            self._counts,
            worths,
            bins,
            sides,
        )
        # Where entries were walked through, rows were counted.
        seen = None if self._whole is None else self._whole * (bins != tree_splits.BOUNDED)
        counted: set[int] = set()
        while True:
            at = int(worths.argmax())
            if not worths[at] > 0:
                return Cut()
            feature = int(self.features[at])
            if rules.min_samples_leaf == 1 or at in counted or (seen is not None and seen[at]):
                return Cut(float(worths[at]), feature, int(bins[at]), int(sides[at]))
            # Rows are counted where it matters: a cut that leaves each child enough of them is
            # worth no more than the best one of the column.
            counted.add(at)
            worths[at], bins[at], sides[at] = tree_splits.search_counted(
                self.columns,
                feature,
                0 if rules.signs is None else int(rules.signs[feature]),
                self._categorical is not None and bool(self._categorical[feature]),
                rows,
                words,
                leaf.word,
                l2,
                least,
                rules.min_samples_leaf,
                leaf.low,
                leaf.high,
                leaf_of,
                leaf.number,
                row_words,
                self._scratch,
                self._room,
                self._counts,
            )


def share_columns(binning: Binning, n_jobs: int) -> list[NDArray[np.int32]]:
    """Columns that follow each other for each thread, of about equal work."""
    features = np.arange(binning.n_bins.size, dtype=np.int32)
    work = np.ones(features.size) if binning.n_entries is None else binning.n_entries + 256.0
    ends = np.cumsum(work)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_jobs) / n_jobs)
    if binning.n_entries is None:  # whole blocks
        lanes = tree_histograms.LANES
        cuts = np.round(cuts / lanes).astype(np.int64) * lanes
    return [part for part in np.split(features, cuts) if part.size]
