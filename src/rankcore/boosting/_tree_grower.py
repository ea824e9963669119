"""Best-first growth of regression trees."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from rankcore._core.concurrency import uninterrupted
from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import tree_histograms, tree_leaves, tree_looks, tree_splits
from rankcore.boosting._binning import Binning
from rankcore.boosting._tree_shards import LEAF, Cut, Leaf, Rules, Shard, share_columns

# Minimum gain of a split as a share of the weight of its rows; less may be rounding errors.
LEAST_GAIN = 1e-12
# Mask of 64-bit words.
WORD = 2**64 - 1


@dataclass
class Grown:
    """A tree on binned columns."""

    leaf_of: NDArray[np.int32]  # (n_rows,)
    # For each node: rows fire in the bin and above and, if the side is 1, where values are missing.
    features: list[int] = field(default_factory=list)
    bins: list[int] = field(default_factory=list)
    sides: list[int] = field(default_factory=list)
    # For nodes that split categories: the categories on the other side than missing values. The
    # bins of these nodes are unused.
    sets: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    # For each node, the children of rows that do not fire and that do: a node, or ``~leaf``.
    children: list[list[int]] = field(default_factory=list)
    # Gain of each split, for weights that sum to 1.
    gains: list[float] = field(default_factory=list)
    # (n_leaves,): bounds on the value of each leaf.
    lows: Floats = field(default_factory=lambda: np.empty(0))
    highs: Floats = field(default_factory=lambda: np.empty(0))


class TreeGrower:
    """Grows trees on binned columns, divided among threads; trees do not depend on these.

    Only the smaller child of a node is summed; the histograms of its sibling are those of the
    parent minus these. A tree costs at most O(values * (1 + depth / 2)), counting stored values of
    sparse columns. Memory: 25 bytes per row and 8 bytes per bin of each leaf.
    """

    def __init__(self, binning: Binning, rules: Rules, threads: Threads) -> None:
        self.binning, self.rules, self._threads = binning, rules, threads
        self._shards = [Shard(binning, part, rules) for part in share_columns(binning, threads.n)]
        self._crew = tree_looks.Crew([shard.look for shard in self._shards])
        n = binning.taken.size
        self._all = np.arange(n, dtype=np.int32)
        self._fires = np.empty(n, dtype=np.uint8)
        self._spare, self._words = np.empty(n, np.int32), np.empty(n, np.uint64)

    def grow(
        self,
        won: Floats,
        lost: Floats,
        taken: NDArray[np.bool_] | None = None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> Grown:
        """Grow a tree from the weights each row wins and loses; one leaf if no split gains.

        With ``rules.slopes``, from the gradient and second derivative of each row's loss. ``taken``
        is a mask of the rows to learn from, ``allowed`` of the columns to use.
        """
        serving = 0
        with uninterrupted():  # the other threads wait in a kernel until they are dismissed
            try:
                for i in range(1, len(self._shards)):
                    self._threads.submit(self._crew.serve, i)
                    serving += 1
                return self._grow(won, lost, taken, allowed)
            finally:
                self._crew.dismiss(serving)

    def _grow(
        self,
        won: Floats,
        lost: Floats,
        taken: NDArray[np.bool_] | None,
        allowed: NDArray[np.bool_] | None,
    ) -> Grown:
        n = self._all.size
        self._rows = self._all.copy() if taken is None else np.flatnonzero(taken).astype(np.int32)
        self._rest = np.flatnonzero(~taken).astype(np.int32) if taken is not None else self._all[:0]
        # `_scale` units of the words are a weight of 1; those of gradients are scaled by a further
        # power of two.
        self._power = 1.0
        if self.rules.slopes:
            self._scale, self._power = tree_histograms.quantise_slopes(
                won, lost, self._rows, self._words
            )
        else:
            self._scale = tree_histograms.quantise(won, lost, self._rows, self._words)
        self._leaf_of = np.zeros(n, dtype=np.int32)
        self._leaf_of[self._rest] = -1
        for shard in self._shards:
            shard.begin(self._scale, self._leaf_of, self._words, allowed)
        tree = Grown(self._leaf_of)
        root = Leaf(
            number=0,
            start=0,
            stop=self._rows.size,
            rest=slice(0, self._rest.size),
            depth=0,
            word=int(self._words.sum()),
        )
        leaves = [root]
        heap: list[tuple[float, int, Leaf]] = []
        if self._may_split(root):
            self._look([root], None)
            self._push(heap, root)
        while heap and len(leaves) < self.rules.max_leaf_nodes:
            leaf = heappop(heap)[-1]
            children = self._split(tree, leaf, len(leaves))
            if not children:
                self._count(leaf)
                self._push(heap, leaf)
                continue
            leaves[leaf.number] = children[0]
            leaves.append(children[1])
            if len(leaves) < self.rules.max_leaf_nodes:
                eligible = [child for child in children if self._may_split(child)]
                self._look(eligible, (leaf, children) if eligible else None)
                for child in eligible:
                    self._push(heap, child)
            if leaf.sums:
                self._free(leaf)
        for leaf in leaves:
            tree_leaves.label(self._rows[leaf.start : leaf.stop], leaf.number, self._leaf_of)
            tree_leaves.label(self._rest[leaf.rest], leaf.number, self._leaf_of)
            if leaf.sums:
                self._free(leaf)
        tree.lows = np.array([leaf.low for leaf in leaves]) / self._power
        tree.highs = np.array([leaf.high for leaf in leaves]) / self._power
        return tree

    def _push(self, heap: list[tuple[float, int, Leaf]], leaf: Leaf) -> None:
        if leaf.gain > LEAST_GAIN * self._power**2 * self.rules.mass(leaf.word):
            heappush(heap, (-leaf.gain, leaf.number, leaf))

    def _may_split(self, leaf: Leaf) -> bool:
        rules = self.rules
        return (
            (rules.max_depth is None or leaf.depth < rules.max_depth)
            and leaf.stop - leaf.start >= 2 * rules.min_samples_leaf
            and rules.mass(leaf.word) >= 2 * rules.least(self._scale)
        )

    def _free(self, leaf: Leaf) -> None:
        for shard, sums in zip(self._shards, leaf.sums, strict=True):
            shard.spare.append(sums)
        leaf.sums = []

    def _look(self, leaves: list[Leaf], split: tuple[Leaf, list[Leaf]] | None) -> None:
        """Sum leaves and find their best cuts: the root, or the children of a split leaf."""
        if not leaves:
            return
        small = large = None
        if split is not None:
            small, large = sorted(split[1], key=lambda leaf: leaf.stop - leaf.start)
        here = small or leaves[0]
        rows = self._rows[here.start : here.stop]
        records = np.array(
            [
                (leaf.word, leaf.stop - leaf.start, leaf.low, leaf.high, leaf.number, leaf is small)
                for leaf in leaves
            ],
            dtype=LEAF,
        )
        parents = [None] * len(self._shards) if split is None else split[0].sums
        parts = [
            shard.prepare(rows, records, parent)
            for shard, parent in zip(self._shards, parents, strict=True)
        ]
        self._crew.look()
        here.sums = [sums for sums, _ in parts]
        if split is not None and large is not None:
            # The sums of the parent have become those of its larger child.
            large.sums, split[0].sums = split[0].sums, []
        for i, leaf in enumerate(leaves):
            leaf.found = [found[i] for _, found in parts]
            self._take_best(leaf)

    def _take_best(self, leaf: Leaf) -> None:
        """Choose the best cut of a leaf; ties go to the first column."""
        cuts = [shard.best(found) for shard, found in zip(self._shards, leaf.found, strict=True)]
        leaf.cut = max(cuts, key=lambda cut: cut.worth)
        own = self.rules.l2_leaf * self._scale
        worth = tree_splits.worth(leaf.word, own, leaf.low, leaf.high, self.rules.slopes)
        leaf.gain = leaf.cut.worth - worth if leaf.cut.worth > 0 else -1.0

    def _count(self, leaf: Leaf) -> None:
        """Replace a cut that leaves a child too few rows by the next best one.

        Rows are counted only when a leaf is about to be split. Until then the gain of its best cut
        is an upper bound.
        """
        cuts = [shard.best(found) for shard, found in zip(self._shards, leaf.found, strict=True)]
        best, here = cuts.index(leaf.cut), slice(leaf.start, leaf.stop)
        self._shards[best].count(leaf, leaf.found[best], self._rows[here])
        self._take_best(leaf)

    def _split(self, tree: Grown, leaf: Leaf, number: int) -> list[Leaf]:
        """Divide the rows of a leaf; return its children, none if one would have too few rows."""
        cut, node = leaf.cut, len(tree.features)
        if cut.bin == tree_looks.BOUNDED:
            return []
        fires = self._find_set(leaf) if cut.feature in self.binning.categories else None
        here, least = slice(leaf.start, leaf.stop), self.rules.min_samples_leaf
        first = self._divide(cut, fires, least, self._rows[here])
        if first < 0:
            return []
        middle, rest = leaf.start + first, leaf.rest.start
        if self._rest.size:
            rest += self._divide(cut, fires, 0, self._rest[leaf.rest])
        if fires is not None:
            others = np.flatnonzero(fires[:-1] != cut.side)
            tree.sets[node] = self.binning.categories[cut.feature][others]
        if leaf.parent >= 0:
            tree.children[leaf.parent][leaf.side] = node
        tree.features.append(cut.feature)
        tree.bins.append(cut.bin)
        tree.sides.append(cut.side)
        tree.children.append([~leaf.number, ~number])
        tree.gains.append(leaf.gain / (self._scale * self._power**2))
        depth = leaf.depth + 1
        word = (leaf.word - cut.word) & WORD  # sums of negative gradients borrow
        low = Leaf(
            number=leaf.number,
            start=leaf.start,
            stop=middle,
            rest=slice(leaf.rest.start, rest),
            depth=depth,
            word=word,
            parent=node,
            side=0,
        )
        high = Leaf(
            number=number,
            start=middle,
            stop=leaf.stop,
            rest=slice(rest, leaf.rest.stop),
            depth=depth,
            word=cut.word,
            parent=node,
            side=1,
        )
        self._restrict(leaf, low, high)
        if self.binning.n_entries is not None:
            tree_leaves.label(self._rows[middle : leaf.stop], number, self._leaf_of)
        return [low, high]

    def _find_set(self, leaf: Leaf) -> NDArray[np.uint8]:
        """Mask of the bins of a categorical column that fire in the cut of a leaf."""
        n = int(self.binning.n_bins[leaf.cut.feature]) + 1
        fires, here = np.empty(n, dtype=np.uint8), slice(leaf.start, leaf.stop)
        tree_splits.mark_set(
            self.binning.columns,
            leaf.cut.feature,
            leaf.cut.bin,
            leaf.cut.side,
            self._rows[here],
            self._words,
            leaf.word,
            self._leaf_of,
            leaf.number,
            np.empty(5 * n, dtype=np.uint64),
            np.empty(n, dtype=np.int32),
            fires,
            self.rules.slopes,
        )
        return fires

    def _divide(
        self, cut: Cut, fires: NDArray[np.uint8] | None, least: int, rows: NDArray[np.int32]
    ) -> int:
        return tree_leaves.divide(
            self.binning.columns,
            cut.feature,
            cut.bin,
            cut.side,
            fires,
            least,
            self._fires,
            rows,
            self._spare,
        )

    def _restrict(self, leaf: Leaf, low: Leaf, high: Leaf) -> None:
        """Bound the values of children, so that monotone constraints hold in the whole tree."""
        low.low = high.low = leaf.low
        low.high = high.high = leaf.high
        sign = 0 if self.rules.signs is None else int(self.rules.signs[leaf.cut.feature])
        if not sign:
            return
        l2 = self.rules.l2_leaf * self._scale
        values = [
            tree_splits.value(one.word, l2, leaf.low, leaf.high, self.rules.slopes)
            for one in (low, high)
        ]
        middle = 0.5 * (values[0] + values[1])
        if sign > 0:
            low.high = high.low = middle
        else:
            low.low = high.high = middle
