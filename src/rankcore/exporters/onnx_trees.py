"""Sums of trees as ONNX operators."""

from __future__ import annotations

import numpy as np

from rankcore.exporters.onnx_operators import INT64, ML, Graph
from rankcore.exporters.reduced import Forest


def tree_ensemble(graph: Graph, x: str, forest: Forest) -> str:
    """The sum of trees, (n, 1).

    The operator for trees adds in float32: it gives the number of the leaf in each tree, which is
    exact, and the values of the leaves are gathered and added in double precision.
    """
    trees = [tree for tree in forest.trees if tree.features[0] >= 0]
    constant = float(sum(tree.values[0] for tree in forest.trees if tree.features[0] < 0))
    axis = graph.array([1], np.int64)
    if not trees:
        zeros = graph.add("ReduceSum", graph.add("Mul", x, graph.array(0.0)), axis, keepdims=1)
        return graph.plus(zeros, [[constant]])
    sizes = [tree.features.size for tree in trees]
    of_tree = np.repeat(np.arange(len(trees)), sizes)
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
        nodes_treeids=of_tree.tolist(),
        nodes_nodeids=number.tolist(),
        nodes_featureids=np.where(leaf, 0, features).tolist(),
        nodes_modes=np.where(leaf, "LEAF", modes).tolist(),
        nodes_values_as_tensor=thresholds,
        nodes_truenodeids=children[:, 0].tolist(),
        nodes_falsenodeids=children[:, 1].tolist(),
        nodes_missing_value_tracks_true=(1 - missing).tolist(),
        target_treeids=of_tree[leaf].tolist(),
        target_nodeids=number[leaf].tolist(),
        target_ids=of_tree[leaf].tolist(),
        target_weights_as_tensor=number[leaf].astype(np.float64),
    )
    starts = graph.array(np.cumsum([0, *sizes[:-1]]), np.int64)
    at = graph.add("Add", graph.add("Cast", reached, to=INT64), starts)
    values = graph.array(np.concatenate([tree.values for tree in trees]))
    found = graph.add("ReduceSum", graph.add("Gather", values, at), axis, keepdims=1)
    return graph.plus(found, [[constant]])
