"""Trees in the formats of XGBoost and RankLib, and numbers of engines in single precision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.exporters.described import Described, Files
from rankcore.exporters.reduced import Tree, UnsupportedModelError, as_forest, as_linear

LARGEST = float(np.finfo(np.float32).max)
# Added by Solr to each threshold, in single precision.
SLACK = np.float32(1e-6)


def single(value: float, what: str) -> float:
    """Return the nearest single-precision number as a double; raise if there is none."""
    return float(singles(np.array([value]), what)[0])


def singles(values: Floats, what: str) -> Floats:
    """Round an array to single precision, as `single`."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
    beyond = ~np.isfinite(rounded)
    if beyond.any():
        value = float(values[beyond][0])
        raise UnsupportedModelError(f"{what} is {value!r}, beyond the range of single precision")
    return rounded


def before_slack(thresholds: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Find thresholds that Solr's tolerance maps to the required ones, and where they exist.

    All are single-precision numbers. There may be none if numbers a millionth below are spaced
    more widely than at the threshold, as around zero, or if their sums with the tolerance are
    ties, as for about half of those between 2.9e-6 and 3.8e-6.
    """
    wanted = thresholds.astype(np.float32)
    candidates = wanted - SLACK
    for direction in (np.float32(-np.inf), np.float32(np.inf)):
        candidate = wanted - SLACK
        for _ in range(4):
            candidates = np.where(candidates + SLACK == wanted, candidates, candidate)
            candidate = np.nextafter(candidate, direction)
    return candidates.astype(np.float64), candidates + SLACK == wanted


# The format of this release; later ones read it.
VERSION = [2, 0, 0]


def export_xgboost(described: Described, path: Path) -> Files:
    """Write JSON that ``xgboost.Booster(model_file=path)`` loads: gbtree, or gblinear.

    XGBoost recognises the format by the extension .json.
    """
    if path.suffix != ".json":
        raise ValueError(
            f"path must end in .json, by which XGBoost recognises the format; got {path.name!r}"
        )
    linear = as_linear(described, "xgboost")
    d = described.n_features
    if linear is None:
        trees = strict_trees(described, "xgboost")
        booster: dict[str, Any] = {
            "name": "gbtree",
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                "iteration_indptr": [*range(len(trees) + 1)],
                "tree_info": [0] * len(trees),
                "trees": [_tree(number, tree, d) for number, tree in enumerate(trees)],
            },
        }
    else:
        weights, intercept = linear.folded(d)
        numbers = singles(np.append(weights, intercept), "a weight")
        booster = {"name": "gblinear", "model": {"boosted_rounds": 1, "weights": numbers.tolist()}}
    document = {
        "learner": {
            "attributes": {},
            "feature_names": described.names or [],
            "feature_types": ["float"] * d if described.names else [],
            "gradient_booster": booster,
            "learner_model_param": {
                **{"base_score": "0E0", "boost_from_average": "0", "num_class": "0"},
                **{"num_feature": str(d), "num_target": "1"},
            },
            "objective": {"name": "rank:pairwise", "lambdarank_param": _LAMBDARANK},
        },
        "version": VERSION,
    }
    return {path: json.dumps(document, allow_nan=False)}


_LAMBDARANK = {
    **{"lambdarank_num_pair_per_sample": "4294967295", "lambdarank_pair_method": "topk"},
    **{"lambdarank_unbiased": "0", "lambdarank_bias_norm": "1", "ndcg_exp_gain": "1"},
}


def strict_trees(described: Described, target: str) -> list[Tree]:
    """Convert trees for engines where single-precision values below a threshold go left.

    Thresholds send each single-precision value to the same side as in Python; values of
    leaves are in single precision.
    """
    forest = as_forest(described, target, np.float32)
    return [_strict(tree) for tree in forest.without_missing_zeros(target)]


def trees_of_numbers(described: Described, target: str) -> list[Tree]:
    """Convert trees for engines without missing values, in single precision."""
    forest = as_forest(described, target, np.float32)
    return [tree.of_numbers() for tree in forest.without_missing_zeros(target)]


def _strict(tree: Tree) -> Tree:
    inner = ~tree.is_leaf
    # x < bound is equivalent to x <= threshold.
    with np.errstate(over="ignore"):
        above = np.nextafter(tree.thresholds.astype(np.float32), np.float32(np.inf))
    bounds = np.where(inner, above.astype(np.float64), 0.0)
    # All values go left: none is below the lowest number, so the children are swapped.
    swapped = inner & (tree.thresholds >= LARGEST)
    bounds[swapped] = -LARGEST
    children = np.where(swapped[:, None], tree.children[:, ::-1], tree.children)
    missing = np.where(swapped, 1 - tree.missing, tree.missing)
    values = singles(tree.values, "a leaf")
    # XGBoost expects the right child directly after the left.
    order = [0]
    for node in order:
        order += [child for child in children[node].tolist() if child >= 0]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    moved = np.where(children < 0, -1, place[children])[order]
    return Tree(tree.features[order], bounds[order], moved, missing[order], values[order])


def _tree(number: int, tree: Tree, n_features: int) -> dict[str, Any]:
    leaf = tree.is_leaf
    n = tree.features.size
    parents = np.full(n, 2**31 - 1)
    for side in (0, 1):
        parents[tree.children[~leaf, side]] = np.flatnonzero(~leaf)
    return {
        "base_weights": np.where(leaf, tree.values, 0.0).tolist(),
        **{name: [] for name in _CATEGORIES},
        "default_left": np.where(leaf, 0, 1 - tree.missing).tolist(),
        "id": number,
        "left_children": tree.children[:, 0].tolist(),
        "loss_changes": [0.0] * n,
        "parents": parents.tolist(),
        "right_children": tree.children[:, 1].tolist(),
        "split_conditions": np.where(leaf, tree.values, tree.thresholds).tolist(),
        "split_indices": np.where(leaf, 0, tree.features).tolist(),
        "split_type": [0] * n,
        "sum_hessian": [1.0] * n,
        "tree_param": {
            **{"num_deleted": "0", "num_feature": str(n_features)},
            **{"num_nodes": str(n), "size_leaf_vector": "1"},
        },
    }


_CATEGORIES = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


def dump(trees: list[Tree], names: list[str]) -> list[dict[str, Any]]:
    """Write trees in the format of ``Booster.get_dump(dump_format="json")``."""
    return [_dumped(tree, 0, 0, names) for tree in trees]


def _dumped(tree: Tree, node: int, depth: int, names: list[str]) -> dict[str, Any]:
    if tree.features[node] < 0:
        return {"nodeid": node, "leaf": float(tree.values[node])}
    left, right = tree.children[node].tolist()
    return {
        "nodeid": node,
        "depth": depth,
        "split": names[int(tree.features[node])],
        "split_condition": float(tree.thresholds[node]),
        "yes": left,
        "no": right,
        "missing": right if tree.missing[node] else left,
        "children": [_dumped(tree, child, depth + 1, names) for child in (left, right)],
    }


def export_xgboost_dump(described: Described, path: Path) -> Files:
    """Write trees in the format of ``Booster.get_dump(dump_format="json")``, as for Vespa."""
    if as_linear(described, "xgboost_dump") is not None:
        raise UnsupportedModelError(
            f"xgboost_dump cannot express a linear {described.learner}: export it as xgboost, "
            "elasticsearch, solr or vespa"
        )
    trees = strict_trees(described, "xgboost_dump")
    document = dump(trees, described.named("xgboost_dump"))
    return {path: json.dumps(document, allow_nan=False, indent=1)}


def export_ranklib(described: Described, path: Path) -> Files:
    """Write RankLib's "Linear Regression" or "LambdaMART"; features are numbered from 1."""
    linear = as_linear(described, "ranklib")
    if linear is not None:
        weights, intercept = linear.folded(described.n_features)
        pairs = [f"0:{intercept!r}"]
        pairs += [f"{f}:{weight!r}" for f, weight in enumerate(weights.tolist(), start=1)]
        return {path: f"## Linear Regression\n## Lambda = 0.0\n{' '.join(pairs)}\n"}
    trees = trees_of_numbers(described, "ranklib")
    leaves = max(int(tree.is_leaf.sum()) for tree in trees)
    head = (
        f"## LambdaMART\n## No. of trees = {len(trees)}\n## No. of leaves = {leaves}\n"
        "## No. of threshold candidates = 256\n## Learning rate = 1.0\n"
        f"## Stop early = {len(trees)}\n\n"
    )
    root = xml.Element("ensemble")
    for number, tree in enumerate(trees, start=1):
        element = xml.SubElement(root, "tree", id=str(number), weight="1.0")
        _split(element, tree, 0, singles(tree.values, "a leaf").tolist(), "")
    xml.indent(root, "\t")
    return {path: f"{head}{xml.tostring(root, encoding='unicode')}\n"}


def _split(parent: xml.Element, tree: Tree, node: int, values: list[float], side: str) -> None:
    element = xml.SubElement(parent, "split", {"pos": side} if side else {})
    if tree.features[node] < 0:
        xml.SubElement(element, "output").text = f" {values[node]!r} "
        return
    xml.SubElement(element, "feature").text = f" {int(tree.features[node]) + 1} "
    xml.SubElement(element, "threshold").text = f" {float(tree.thresholds[node])!r} "
    for child, pos in zip(tree.children[node].tolist(), ("left", "right"), strict=True):
        _split(element, tree, child, values, pos)
