"""RankLib model files, which Elasticsearch and OpenSearch also read as ``model/ranklib``."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as xml

import numpy as np

from rankcore.exporters.described import Described
from rankcore.exporters.floats import singles
from rankcore.exporters.reduced import Tree, as_forest, as_linear


def export_ranklib(described: Described, path: Path) -> list[Path]:
    """Write "Linear Regression" or "LambdaMART"; features are numbered from 1."""
    linear = as_linear(described, "ranklib")
    if linear is not None:
        weights, intercept = linear.folded(described.n_features)
        pairs = [f"0:{intercept!r}"]
        pairs += [f"{f}:{weight!r}" for f, weight in enumerate(weights.tolist(), start=1)]
        lines = ["## Linear Regression", "## Lambda = 0.0", " ".join(pairs)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return [path]
    trees = as_forest(described, "ranklib", np.float32).without_missing_zeros("ranklib")
    trees = [tree.of_numbers() for tree in trees]
    leaves = max(int(tree.is_leaf.sum()) for tree in trees)
    head = [
        "## LambdaMART",
        f"## No. of trees = {len(trees)}",
        f"## No. of leaves = {leaves}",
        "## No. of threshold candidates = 256",
        "## Learning rate = 1.0",
        f"## Stop early = {len(trees)}",
    ]
    root = xml.Element("ensemble")
    for number, tree in enumerate(trees, start=1):
        element = xml.SubElement(root, "tree", id=str(number), weight="1.0")
        _split(element, tree, 0, singles(tree.values, "a leaf").tolist(), "")
    xml.indent(root, "\t")
    text = xml.tostring(root, encoding="unicode")
    path.write_text("\n".join(head) + f"\n\n{text}\n", encoding="utf-8")
    return [path]


def _split(parent: xml.Element, tree: Tree, node: int, values: list[float], side: str) -> None:
    element = xml.SubElement(parent, "split", {"pos": side} if side else {})
    if tree.features[node] < 0:
        xml.SubElement(element, "output").text = f" {values[node]!r} "
        return
    xml.SubElement(element, "feature").text = f" {int(tree.features[node]) + 1} "
    xml.SubElement(element, "threshold").text = f" {float(tree.thresholds[node])!r} "
    for child, pos in zip(tree.children[node].tolist(), ("left", "right"), strict=True):
        _split(element, tree, child, values, pos)
