"""Lists of ONNX operators, for a file or for skl2onnx."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.exporters.reduced import Forest

# Type codes of TensorProto.
DOUBLE = 11
INT64 = 7
ML = "ai.onnx.ml"


@dataclass(frozen=True)
class Node:
    """An operator with the names of its inputs and of its output."""

    operator: str
    inputs: list[str]
    output: str
    domain: str
    attributes: dict[str, Any]


@dataclass
class Graph:
    """Operators in order, and the arrays they read."""

    nodes: list[Node] = field(default_factory=list)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    prefix: str = ""  # of all names between input and outputs

    def array(self, values: Any, dtype: Any = np.float64) -> str:
        """Add a constant; return its name."""
        name = f"{self.prefix}c{len(self.arrays)}"
        self.arrays[name] = np.asarray(values, dtype=dtype)
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator; return the name of its output."""
        output = f"{self.prefix}t{len(self.nodes)}"
        self.nodes.append(Node(operator, [*inputs], output, domain, attributes))
        return output

    # A single number that rounds to 1, or 0, in single precision: onnxruntime treats it as the
    # neutral element and drops the operation. The following forms give the same bits.

    def plus(self, x: str, numbers: Any) -> str:
        """Add one number, or one per column."""
        if _looks_like(numbers, 0.0):
            return self.add("Neg", self.add("Sub", self.array(-np.asarray(numbers)), x))
        return self.add("Add", x, self.array(numbers))

    def minus(self, x: str, numbers: Any) -> str:
        """Subtract one number, or one per column."""
        return self.plus(x, -np.asarray(numbers))

    def times(self, x: str, numbers: Any) -> str:
        """Multiply by one number, or one per column."""
        if _looks_like(numbers, 1.0):
            return self.add("Mul", self.times(x, 2.0 * np.asarray(numbers)), self.array(0.5))
        return self.add("Mul", x, self.array(numbers))

    def over(self, x: str, numbers: Any) -> str:
        """Divide by one number, or one per column."""
        if _looks_like(numbers, 1.0):
            return self.over(self.add("Add", x, x), 2.0 * np.asarray(numbers))
        return self.add("Div", x, self.array(numbers))

    def double(self, name: str) -> str:
        """Convert a tensor to doubles."""
        return self.add("Cast", name, to=DOUBLE)

    def keep(self, outputs: Iterable[str]) -> None:
        """Remove operators that no output needs."""
        needed = {*outputs}
        kept = []
        for node in reversed(self.nodes):
            if node.output in needed:
                needed.update(node.inputs)
                kept.append(node)
        self.nodes[:] = reversed(kept)
        self.arrays = {name: array for name, array in self.arrays.items() if name in needed}


def _looks_like(numbers: Any, neutral: float) -> bool:
    """Return whether a constant is a single number that rounds to a neutral element."""
    values = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return values.size == 1 and bool((rounded == neutral).all() and (values != neutral).all())


def tree_ensemble(graph: Graph, x: str, forest: Forest) -> str:
    """Add the sum of trees, (n, 1).

    The operator for trees sums in float32: here it returns the index of the leaf in each tree,
    which is exact, and the values of the leaves are gathered and summed in double precision.
    """
    trees = [tree for tree in forest.trees if tree.features[0] >= 0]
    constant = float(sum(tree.values[0] for tree in forest.trees if tree.features[0] < 0))
    axis = graph.array([1], np.int64)
    if not trees:
        zeros = graph.add("ReduceSum", graph.add("Mul", x, graph.array(0.0)), axis, keepdims=1)
        return graph.plus(zeros, [[constant]])
    sizes = [tree.features.size for tree in trees]
    tree_numbers = np.repeat(np.arange(len(trees)), sizes)
    number = np.concatenate([np.arange(size) for size in sizes])
    leaf = np.concatenate([tree.is_leaf for tree in trees])
    children = np.where(leaf[:, None], 0, np.concatenate([tree.children for tree in trees]))
    features = np.concatenate([tree.features for tree in trees])
    missing = np.concatenate([tree.missing for tree in trees])
    thresholds = np.concatenate([tree.thresholds for tree in trees])
    # Where only missing values go left, -inf goes right with all other numbers.
    modes = np.where(thresholds == -np.inf, "BRANCH_LT", "BRANCH_LEQ")
    reached = graph.add(
        "TreeEnsembleRegressor",
        x,
        domain=ML,
        n_targets=len(trees),
        nodes_treeids=tree_numbers.tolist(),
        nodes_nodeids=number.tolist(),
        nodes_featureids=np.where(leaf, 0, features).tolist(),
        nodes_modes=np.where(leaf, "LEAF", modes).tolist(),
        nodes_values_as_tensor=thresholds,
        nodes_truenodeids=children[:, 0].tolist(),
        nodes_falsenodeids=children[:, 1].tolist(),
        nodes_missing_value_tracks_true=(1 - missing).tolist(),
        target_treeids=tree_numbers[leaf].tolist(),
        target_nodeids=number[leaf].tolist(),
        target_ids=tree_numbers[leaf].tolist(),
        target_weights_as_tensor=number[leaf].astype(np.float64),
    )
    starts = graph.array(np.cumsum([0, *sizes[:-1]]), np.int64)
    at = graph.add("Add", graph.add("Cast", reached, to=INT64), starts)
    values = graph.array(np.concatenate([tree.values for tree in trees]))
    # In the order of the trees, unlike ReduceSum.
    sums = graph.add("CumSum", graph.add("Gather", values, at), graph.array(1, np.int64))
    last_sum = graph.add("Gather", sums, graph.array([len(trees) - 1], np.int64), axis=1)
    return graph.plus(last_sum, [[constant]]) if constant else last_sum
