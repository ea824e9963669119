"""Vespa rank profiles."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rankcore.exporters.described import Described
from rankcore.exporters.reduced import Tree, as_forest, as_linear


def export_vespa(described: Described, path: Path, *, name: str | None = None) -> list[Path]:
    """Write a rank profile whose first phase is the score; ``name`` defaults to the file's name.

    Features of the model are named as rank features, ``bm25(title)``.
    """
    profile = path.stem if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", profile):
        raise ValueError(f"name must be a word of letters, digits and _; found {profile!r}")
    names = described.named("vespa")
    for feature in names:
        if not re.fullmatch(r"[A-Za-z_][\w.]*(\([^\s(){}]*\)[\w.]*)?", feature, flags=re.ASCII):
            raise ValueError(
                f"feature_names must be rank features, such as 'bm25(title)'; found {feature!r}"
            )
    linear = as_linear(described, "vespa")
    if linear is not None:
        weights, intercept = linear.folded(described.n_features)
        added = [
            f"{_number(weight)} * {feature}"
            for weight, feature in zip(weights.tolist(), names, strict=True)
            if weight != 0.0
        ]
        if intercept or not added:
            added.append(_number(intercept))
    else:
        trees = as_forest(described, "vespa").without_missing_zeros("vespa")
        added = [_if(tree, 0, names) for tree in trees]
    lines = " +\n            ".join(added)
    path.write_text(
        f"rank-profile {profile} {{\n    first-phase {{\n        expression {{\n            "
        f"{lines}\n        }}\n    }}\n}}\n",
        encoding="utf-8",
    )
    return [path]


def _number(value: float) -> str:
    text = repr(float(value))
    return f"({text})" if value < 0 else text


def _if(tree: Tree, node: int, names: list[str]) -> str:
    """A tree as nested conditions; comparisons with NaN are false."""
    if tree.features[node] < 0:
        return _number(tree.values[node])
    x, bound = names[int(tree.features[node])], float(tree.thresholds[node])
    left, right = (_if(tree, child, names) for child in tree.children[node].tolist())
    if bound == -np.inf:  # only a NaN goes left
        return f"if (isNan({x}), {left}, {right})"
    if tree.missing[node] == 0:
        return f"if ({x} > {_number(bound)}, {right}, {left})"
    return f"if ({x} <= {_number(bound)}, {left}, {right})"
