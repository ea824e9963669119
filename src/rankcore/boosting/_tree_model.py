"""Sums of regression trees: the model of boosting with trees.

`TreeSum` is the list of trees that rounds add to; packed into one set of arrays, it is scored (by
the kernel `rankcore._ext.trees`), saved and exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, read_fields
from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore._ext.rows import Rows
from rankcore._ext.trees import Trees, add_scores
from rankcore.boosting.stump_model import Contribution


class Tree(NamedTuple):
    """A tree. Node 0 is the root; a tree without nodes is one leaf."""

    features: NDArray[np.int32]  # (n_nodes,)
    thresholds: Floats  # (n_nodes,)
    # (n_nodes,): whether missing values take the second child.
    sides: NDArray[np.uint8]
    # (n_nodes, 2): child of values up to the threshold, and of values above: a node, or ``~leaf``.
    children: NDArray[np.int32]
    # (n_nodes,): twice the reduction of the weight by the split, to second order.
    gains: Floats
    values: Floats  # (n_nodes + 1,): value of each leaf
    # (n_nodes + 1,): offset of each node's set in ``words``. If the set is not empty, the node
    # splits categories: those in the set take the other child than missing values, all others the
    # same child. The threshold is then infinite.
    sets: NDArray[np.int64]
    words: NDArray[np.uint32]  # bits of 32 categories each, the first in the lowest bit

    def categories(self, node: int) -> list[int]:
        """Return the categories in the set of a node, ascending; none if it has a threshold."""
        words = self.words[self.sets[node] : self.sets[node + 1]]
        bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).tolist()

    def goes_above(self, node: int, value: float) -> bool:
        """Return whether a value takes the second child of a node."""
        if self.sets[node] < self.sets[node + 1]:
            return (value in self.categories(node)) != bool(self.sides[node])
        if value != value:
            return bool(self.sides[node])
        return bool(value > self.thresholds[node])


# The empty set.
NONE = np.empty(0, dtype=np.uint32)


def pack_set(categories: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Encode a non-empty set of categories as words of a tree."""
    bits = np.zeros(32 * (int(categories.max()) // 32 + 1), dtype=np.uint8)
    bits[categories] = 1
    words = np.packbits(bits, bitorder="little").view("<u4")
    return words.astype(np.uint32)


class Packed(NamedTuple):
    """All trees, in the layout of ``rc_trees`` in rankcore.h.

    Without categorical splits, ``sets`` and ``words`` are empty.
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.int32]
    children: NDArray[np.int32]
    sides: NDArray[np.uint8]
    thresholds: Floats
    values: Floats
    sets: NDArray[np.int64]
    words: NDArray[np.uint32]

    def trees(self, n_features: int, zero_missing: bool, n_sums: int = 1) -> Trees:
        """Return the trees of ``n_sums`` sums for the kernels; raise ValueError if invalid."""
        return Trees(
            self.offsets,
            self.features,
            self.children,
            self.sides,
            self.thresholds,
            self.values,
            self.sets,
            self.words,
            n_features,
            zero_missing,
            n_sums,
        )


# Arrays of a model file: those with one item per node, and all.
OF_NODES = {
    "features": Field(("nodes",), "int32"),
    "thresholds": Field(("nodes",), infinite=True),
    "sides": Field(("nodes",), "uint8"),
    "children": Field(("nodes", 2), "int32"),
    "gains": Field(("nodes",)),
}
FIELDS = {
    **OF_NODES,
    "offsets": Field(("offsets",), "int64"),
    "sets": Field(("sets",), "int64"),
    "words": Field(("words",), "uint32"),
}


@dataclass
class TreeSum:
    """Trees in order of rounds."""

    n_features: int
    zero_missing: bool  # whether 0 is missing, as NaN is
    trees: list[Tree] = field(default_factory=list)
    _packed: tuple[int, Packed] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.trees)

    def add(self, tree: Tree) -> None:
        """Add a tree."""
        self.trees.append(tree)

    def first(self, n: int) -> TreeSum:
        """Return a copy of the first n trees."""
        return TreeSum(self.n_features, self.zero_missing, self.trees[:n])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed": None}

    def packed(self) -> Packed:
        """Pack the trees into one set of arrays. O(nodes)."""
        if self._packed is None or self._packed[0] != len(self):
            self._packed = len(self), _pack(self.trees)
        return self._packed[1]

    def zeros(self, n_rows: int) -> Floats:
        """Return the scores of rows before the first round."""
        return np.zeros(n_rows)

    def score(self, rows: Rows) -> Floats:
        """Score rows."""
        scores = np.zeros(rows.n_rows)
        trees = self.packed().trees(self.n_features, self.zero_missing)
        add_scores(rows, trees, 0, len(self), scores)
        return scores

    def add_member(self, i: int, rows: Rows, scores: Floats) -> None:
        """Add tree i to the scores of rows."""
        tree = _pack(self.trees[i : i + 1]).trees(self.n_features, self.zero_missing)
        add_scores(rows, tree, 0, 1, scores)

    def contribution(self, feature: int) -> Contribution:
        """Return the shape function of a feature, if no tree combines it with another feature.

        Thresholds of categories lie between their codes.
        """
        thresholds = [tree.thresholds[tree.features == feature] for tree in self.trees]
        for tree in self.trees:
            used = np.unique(tree.features)
            if feature in used and used.size > 1:
                raise ValueError(
                    f"contribution requires a feature that no tree combines with others; column "
                    f"{feature} is combined with column {int(used[used != feature][0])}: fit with "
                    "max_leaf_nodes=2"
                )
        cuts = np.unique(np.concatenate([*thresholds, np.empty(0)]))
        # A value in each interval between thresholds.
        probes = (
            np.concatenate([cuts[:1], np.nextafter(cuts, np.inf)]) if cuts.size else np.zeros(1)
        )
        if np.isposinf(cuts).any():
            nodes = [
                tree.categories(node)
                for tree in self.trees
                for node in np.flatnonzero(tree.features == feature).tolist()
            ]
            most = max(max(categories, default=0) for categories in nodes)
            probes = np.arange(most + 2.0)  # the last is in no set
            cuts = probes[:-1] + 0.5
        values = np.zeros(probes.size + 1)
        for tree in self.trees:
            if feature in tree.features:
                for k, probe in enumerate([*probes, np.nan]):
                    at = 0
                    while at >= 0:
                        at = int(tree.children[at, int(tree.goes_above(at, probe))])
                    values[k] += tree.values[~at]
        return Contribution(cuts, values[:-1], float(values[-1]))

    def importances(self) -> Floats:
        """Return the fraction of each feature in the sum of gains."""
        sums = np.zeros(self.n_features)
        for tree in self.trees:
            sums += np.bincount(tree.features, tree.gains, minlength=self.n_features)
        total = sums.sum()
        return sums / total if total > 0 else sums

    def records(self) -> NDArray[np.void]:
        """Return all nodes as a structured array; ``values`` is 0 for children that are nodes."""
        kinds: list[Any] = [("tree", np.int32), ("node", np.int32), ("feature", np.int32)]
        kinds += [("threshold", np.float64), ("missing", np.uint8), ("gain", np.float64)]
        kinds += [("children", np.int32, (2,)), ("values", np.float64, (2,))]
        kinds += [("categories", object)]
        records = np.empty(sum(tree.features.size for tree in self.trees), dtype=kinds)
        at = 0
        for number, tree in enumerate(self.trees):
            n = tree.features.size
            part = records[at : at + n]
            part["tree"], part["node"] = number, np.arange(n)
            part["feature"], part["threshold"] = tree.features, tree.thresholds
            part["missing"], part["gain"], part["children"] = tree.sides, tree.gains, tree.children
            leaves = tree.children < 0
            part["values"] = np.where(leaves, tree.values[~tree.children * leaves], 0.0)
            for node in range(n):
                part["categories"][node] = tuple(tree.categories(node))
            at += n
        return records

    def scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        """Return the scoring form of the arrays of `to_arrays`."""
        parts = {name: arrays[name] for name in Packed._fields}
        return Scoring("trees", parts, {"zero_missing": int(self.zero_missing)})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        packed = self.packed()
        gains = np.concatenate([np.empty(0), *(tree.gains for tree in self.trees)])
        return {**packed._asdict(), "gains": gains}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], n_features: int, zero_missing: bool
    ) -> TreeSum:
        """Restore from the arrays of a model file; raise ValueError if they are invalid."""
        fields = read_fields({**arrays}, FIELDS)
        n, n_trees = fields["features"].size, fields["offsets"].size - 1
        if n_trees < 0:
            raise ValueError("the array offsets must not be empty")
        fields |= read_fields({**arrays}, {"values": Field((n + n_trees,))})
        packed = Packed(**{name: fields[name] for name in Packed._fields})
        packed.trees(n_features, zero_missing)  # checks them
        _check_leaves(packed)
        sets = packed.sets if packed.sets.size else np.zeros(n + 1, dtype=np.int64)
        if np.any((np.diff(sets) > 0) != np.isposinf(packed.thresholds)):
            raise ValueError("nodes of trees must have either a set or a finite threshold")
        trees = []
        for number, (first, last) in enumerate(pairwise(packed.offsets.tolist())):
            parts = {name: fields[name][first:last] for name in OF_NODES}
            values, begins = packed.values[first + number :], sets[first : last + 1]
            parts |= {"values": values[: last - first + 1], "sets": begins - begins[0]}
            trees.append(Tree(**parts, words=packed.words[begins[0] : begins[-1]]))
        return cls(n_features, zero_missing, trees)


def _pack(trees: list[Tree]) -> Packed:
    offsets = np.concatenate([[0], np.cumsum([tree.features.size for tree in trees])])
    words = np.concatenate([NONE, *(tree.words for tree in trees)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(tree.sets) for tree in trees)])
    sets = np.concatenate([[0], np.cumsum(lengths)]) if words.size else lengths[:0]
    return Packed(
        offsets.astype(np.int64),
        np.concatenate([np.empty(0, np.int32), *(tree.features for tree in trees)]),
        np.concatenate([np.empty((0, 2), np.int32), *(tree.children for tree in trees)]),
        np.concatenate([np.empty(0, np.uint8), *(tree.sides for tree in trees)]),
        np.concatenate([np.empty(0), *(tree.thresholds for tree in trees)]),
        np.concatenate([np.empty(0), *(tree.values for tree in trees)]),
        sets.astype(np.int64),
        words,
    )


def _check_leaves(packed: Packed) -> None:
    """Raise ValueError unless each node but the roots, and each leaf, has one parent."""
    for first, last in pairwise(packed.offsets.tolist()):
        if first < last:
            children = np.sort(packed.children[first:last], axis=None)
            expected = np.concatenate([np.arange(first - last - 1, 0), np.arange(1, last - first)])
            if not np.array_equal(children, expected):
                raise ValueError("each node and leaf of a tree must have one parent")
