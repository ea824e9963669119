"""Best-first growth of trees, wherever the rows are.

A `TreeGrower` decides which leaf is split next; a `HistogramSource` has the rows. It sums their
gradients and hessians by bin (histograms), finds the best split of leaves and partitions rows: in
memory (`rankcore.boosting._histograms`), or on the workers of a cluster. Histograms are sums of
integers, so that trees do not depend on the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import frexp, inf, ldexp
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import splitting

# Minimum gain of a split as a fraction of the hessian of its rows; less may be rounding errors.
MIN_GAIN = 1e-12
# Mask of 64-bit integers.
BITS_64 = 2**64 - 1


@dataclass(frozen=True)
class GrowthParams:
    """Constraints on the growth of a tree."""

    max_leaf_nodes: int
    max_depth: int | None = None
    min_samples_leaf: int = 1
    min_hessian: float = 0.0  # of a leaf
    l2_leaf: float = 0.0  # added to the hessian in the values of leaves
    # (n_features,): monotone constraint of each feature, 1, 0 or -1.
    signs: NDArray[np.int8] | None = None
    # Whether no row's gradient exceeds its hessian, which bounds the gain of sparse features.
    bounded: bool = True

    @classmethod
    def of(
        cls,
        params: Any,
        min_samples_leaf: int,
        min_hessian: float,
        signs: NDArray[np.int8] | None,
        bounded: bool,
    ) -> Self:
        """Take the constraints from the parameters of a learner."""
        depth = None if params.max_depth is None else int(params.max_depth)
        most, l2_leaf = int(params.max_leaf_nodes or 2 ** (depth or 1)), float(params.l2_leaf)
        return cls(most, depth, min_samples_leaf, min_hessian, l2_leaf, signs, bounded)


class Units(NamedTuple):
    """Units of the packed sums of a tree: a hessian of 1 is ``scale`` units."""

    scale: float
    power: float  # gradients are ``scale * power`` units

    @classmethod
    def of(
        cls, hessian: float, magnitude: float, n_rows: int, *, bounded: bool, weight: float
    ) -> Self:
        """Return the finest units in which no sum over some rows overflows 32 bits.

        They are powers of two of derivatives times ``weight``, by which these were divided: the
        rounding of sums does not change them, and most trees have those of the tree before.
        ``hessian`` and ``magnitude`` are the sums of hessians and of absolute gradients.
        """
        if not 0 < hessian < inf:
            return cls(0.0, 1.0)
        limit = 2.0 ** (31 if bounded else 32) - 1 - 2 * n_rows  # rows add up to 2 by rounding
        scale, power = ldexp(weight, exponent(limit / hessian / weight)), 1.0
        if not bounded and magnitude > 0:
            power = ldexp(1.0, exponent((2.0**31 - 1 - n_rows) / (magnitude * scale)))
        return cls(scale, power)

    def min_hessian(self, params: GrowthParams) -> float:
        """Return the minimum hessian of a leaf in these units."""
        return max(params.min_hessian * self.scale, 1.0)

    def l2(self, params: GrowthParams) -> float:
        """Return the penalty ``l2_leaf`` in these units."""
        return params.l2_leaf * self.scale


def exponent(number: float) -> int:
    """Return the exponent of the largest power of two that is not above a positive number."""
    return frexp(number)[1] - 1


class Split(NamedTuple):
    """Best split of a leaf.

    Rows of the bin and of those above go to the right child and, if ``missing_right``, those with
    missing values. For a categorical feature, ``bin`` is the number of categories on the right.
    """

    gain: float = -1.0  # of both children, without subtracting that of the leaf; negative: no split
    packed: int = 0  # sum over the rows of the right child
    feature: int = -1
    bin: int = -1
    missing_right: int = 0


NO_SPLIT = Split()


@dataclass(frozen=True)
class FeatureDraws:
    """Draws of the features that the nodes of a tree may split by.

    They depend on the place of a node in the tree, not on the order in which nodes are split.
    """

    n_features: int
    fraction: float
    seed: tuple[int, ...]  # of the tree

    def mask(self, path: int) -> NDArray[np.bool_]:
        """Return the mask of the features of a node."""
        rng = np.random.default_rng([*self.seed, path])
        return drawn_mask(rng, self.n_features, self.fraction)


def drawn_mask(rng: np.random.Generator, n: int, fraction: float) -> NDArray[np.bool_]:
    """Return the mask of a random fraction of n items, at least one."""
    drawn = np.zeros(n, dtype=bool)
    drawn[rng.choice(n, max(1, round(fraction * n)), replace=False)] = True
    return drawn


@dataclass(eq=False)
class Leaf:
    """Leaf of a growing tree."""

    node: int  # the source's number of the leaf
    n_rows: int
    packed: int  # sum of the gradients and hessians of its rows
    units: Units
    feature_draws: FeatureDraws | None = None  # None: all features may be used
    path: int = 1  # 1 is the root; 2 p and 2 p + 1 are the left and the right child of p
    tries_others: bool = False  # whether the features may be used that were not drawn
    depth: int = 0
    # Bounds on its value, in units.
    low: float = -inf
    high: float = inf
    split: Split = NO_SPLIT
    gain: float = -1.0  # of the split, over the leaf as it is
    # Left and right child, once the source has expanded the leaf; none if one has too few rows.
    children: tuple[Leaf, Leaf] | tuple[()] | None = None
    # Categories on the other side than missing values, if the split is categorical.
    categories: NDArray[np.int64] | None = None
    # Place in the tree: number of the leaf, node of the parent (-1: none), side of it.
    number: int = 0
    parent: int = -1
    is_right: int = 0

    def may_split(self, params: GrowthParams) -> bool:
        """Return whether the leaf is large enough for two children."""
        return (
            (params.max_depth is None or self.depth < params.max_depth)
            and self.n_rows >= 2 * params.min_samples_leaf
            and splitting.hessian(self.packed) >= 2 * self.units.min_hessian(params)
        )

    def allowed(self) -> NDArray[np.bool_] | None:
        """Return the mask of the features that may be used; None: all."""
        if self.feature_draws is None:
            return None
        drawn = self.feature_draws.mask(self.path)
        return ~drawn if self.tries_others else drawn

    @property
    def gains(self) -> bool:
        """Whether the split gains more than rounding errors."""
        return self.gain > MIN_GAIN * self.units.power**2 * splitting.hessian(self.packed)

    def try_others(self) -> bool:
        """Try the features that were not drawn if no drawn feature splits the root.

        Return whether it did. Other leaves stay leaves: their gain would no longer be bounded by
        that of the drawn features, before rows are counted.
        """
        if self.gains or self.tries_others or self.path > 1 or self.feature_draws is None:
            return False
        self.tries_others = True
        return True

    def take(self, split: Split, params: GrowthParams) -> None:
        """Set the split."""
        own = splitting.leaf_gain(self.packed, self.units.l2(params), self.low, self.high)
        self.split, self.gain = split, split.gain - own if split.gain > 0 else -1.0

    def divide(
        self, params: GrowthParams, nodes: tuple[int, int], n_left: int
    ) -> tuple[Leaf, Leaf]:
        """Return the children of the split, with bounds on values that keep the tree monotone."""
        sums = (self.packed - self.split.packed) & BITS_64, self.split.packed
        left, right = (
            Leaf(
                node,
                n_rows,
                packed,
                self.units,
                self.feature_draws,
                2 * self.path + side,
                depth=self.depth + 1,
                low=self.low,
                high=self.high,
            )
            for side, (node, n_rows, packed) in enumerate(
                zip(nodes, (n_left, self.n_rows - n_left), sums, strict=True)
            )
        )
        sign = 0 if params.signs is None else int(params.signs[self.split.feature])
        if sign:
            l2 = self.units.l2(params)
            middle = 0.5 * sum(
                splitting.leaf_value(packed, l2, self.low, self.high) for packed in sums
            )
            lower, upper = (left, right) if sign > 0 else (right, left)
            lower.high = upper.low = middle
        return left, right


class HistogramSource(Protocol):
    """Rows of a fit: their gradients and hessians, histograms and partition.

    A source also begins trees: a method with arguments of its own returns the root, whose split is
    found.
    """

    def expand(self, leaf: Leaf, tree: GrownTree, room: int) -> None:
        """Set the children of a leaf of ``tree`` and, if ``room`` > 1, the children's splits.

        ``room`` is the number of splits that the tree may still have. Children are those of
        `Leaf.divide`; their splits, by the features of `Leaf.allowed`, are set by `Leaf.take` where
        `Leaf.may_split`, and once more after `Leaf.try_others`. ``children`` is empty if one has
        fewer rows than ``min_samples_leaf``. A source may expand other leaves with this one, such
        as those of `GrownTree.likely_splits`: the tree does not depend on it.
        """

    def recount(self, leaf: Leaf) -> None:
        """Replace a split that leaves a child too few rows by the best one that does not."""


@dataclass
class GrownTree:
    """A tree on binned features."""

    features: list[int] = field(default_factory=list)
    # For each node: rows of the bin and above go right and, if 1, those with missing values.
    bins: list[int] = field(default_factory=list)
    missing_right: list[int] = field(default_factory=list)
    # For nodes that split categories: those on the other side than missing values. The bins of
    # these nodes are unused.
    categories: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    # For each node, the left and the right child: a node, or ``~leaf``.
    children: list[list[int]] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    # (n_leaves,): bounds on the value of each leaf.
    lows: Floats = field(default_factory=lambda: np.empty(0))
    highs: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, leaf: Leaf) -> None:
        """Replace a leaf by its children."""
        node, split, units = len(self.features), leaf.split, leaf.units
        assert leaf.children
        if leaf.parent >= 0:
            self.children[leaf.parent][leaf.is_right] = node
        self.features.append(split.feature)
        self.bins.append(split.bin)
        self.missing_right.append(split.missing_right)
        if leaf.categories is not None:
            self.categories[node] = leaf.categories
        numbers = leaf.number, len(self.leaves)
        self.children.append([~number for number in numbers])
        self.gains.append(leaf.gain / (units.scale * units.power**2))
        for is_right, (child, number) in enumerate(zip(leaf.children, numbers, strict=True)):
            child.number, child.parent, child.is_right = number, node, is_right
        self.leaves[leaf.number] = leaf.children[0]
        self.leaves.append(leaf.children[1])

    def likely_splits(self, room: int) -> list[tuple[int, Leaf]]:
        """Return the next ``room`` splits if no child that is still unknown gains more than these.

        In order, with the number that each leaf has then.
        """
        heap = [(-leaf.gain, number, leaf) for number, leaf in enumerate(self.leaves) if leaf.gains]
        heapify(heap)
        likely: list[tuple[int, Leaf]] = []
        while heap and len(likely) < room:
            _, number, leaf = heappop(heap)
            numbers = number, len(self.leaves) + len(likely)
            likely.append((number, leaf))
            for place, child in zip(numbers, leaf.children or (), strict=False):
                if child.gains:
                    heappush(heap, (-child.gain, place, child))
        return likely


class TreeGrower:
    """Grows trees leaf by leaf: the one whose split gains most is split next."""

    def __init__(self, source: HistogramSource, params: GrowthParams) -> None:
        self._source, self._params = source, params

    def grow(self, root: Leaf) -> GrownTree:
        """Grow a tree from its root; it has one leaf if no split gains."""
        most = self._params.max_leaf_nodes
        tree = GrownTree(leaves=[root])
        heap: list[tuple[float, int, Leaf]] = []
        self._push(heap, root)
        while heap and len(tree.leaves) < most:
            leaf = heappop(heap)[-1]
            if leaf.children is None:
                self._source.expand(leaf, tree, most - len(tree.leaves))
            if not leaf.children:
                # Sources may count rows only when a leaf is split. Until then, the gain of its
                # best split is an upper bound.
                self._source.recount(leaf)
                leaf.children = None
                self._push(heap, leaf)
                continue
            tree.add(leaf)
            for child in leaf.children:
                self._push(heap, child)
        power = root.units.power
        tree.lows = np.array([leaf.low for leaf in tree.leaves]) / power
        tree.highs = np.array([leaf.high for leaf in tree.leaves]) / power
        return tree

    @staticmethod
    def _push(heap: list[tuple[float, int, Leaf]], leaf: Leaf) -> None:
        if leaf.gains:
            heappush(heap, (-leaf.gain, leaf.number, leaf))
