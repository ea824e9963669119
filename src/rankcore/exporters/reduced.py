"""Models reduced to a weighted sum of features or a sum of trees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore.exporters.described import Described
from rankcore.exporters.operations import Columns, by_column, last_not_above


class UnsupportedModelError(ValueError):
    """Raised if a target format cannot express a model."""


@dataclass(frozen=True)
class Linear:
    """A score ``weights . x' + intercept`` of a preprocessed row ``x'``."""

    weights: Floats
    intercept: float
    columns: Columns  # the steps, and the feature each weight belongs to

    def folded(self, n_features: int) -> tuple[Floats, float]:
        """Return the weights of the features themselves, and the intercept."""
        factor, summand = self.columns.affine()
        weights = np.zeros(n_features)
        np.add.at(weights, self.columns.source, self.weights * factor)
        return weights, self.intercept + float(self.weights @ summand)


@dataclass(frozen=True)
class Tree:
    """A regression tree whose nodes, including leaves, are numbered from the root, 0."""

    features: NDArray[np.int64]  # -1 of a leaf
    thresholds: Floats  # a value up to it goes left; -inf where only NaN does
    children: NDArray[np.int64]  # (n, 2), left and right: higher numbers than the node's
    missing: NDArray[np.int64]  # child that NaN follows
    values: Floats  # of leaves

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Mask of the leaves among the nodes."""
        return self.features < 0

    def of_numbers(self) -> Tree:
        """Prune splits that separate only missing values, for targets without NaN."""
        if self.thresholds[0] == -np.inf:
            start = int(self.children[0, 1])  # the leaf of the NaN is node 1, the others follow
            children = np.where(self.children < 0, -1, self.children - start)
            return Tree(
                features=self.features[start:],
                thresholds=self.thresholds[start:],
                children=children[start:],
                missing=self.missing[start:],
                values=self.values[start:],
            )
        return self


# Forms whose score is a sum of trees.
OF_TREES = ("stumps", "trees", "ordinal_trees")


@dataclass(frozen=True)
class Forest:
    """A sum of trees."""

    trees: list[Tree]
    zero_missing: bool  # whether a zero is missing, as a NaN is
    imputes: bool = False  # whether a step replaces NaN

    @property
    def knows_missing(self) -> bool:
        """Whether NaN was learned or is imputed, and is scored differently from 0.

        Without NaN in training, NaN goes left at every node.
        """
        nodes = [
            (tree.thresholds[tree.features >= 0], tree.missing[tree.features >= 0])
            for tree in self.trees
        ]
        learned = self.imputes or any(
            ((thresholds == -np.inf) | (missing == 1)).any() for thresholds, missing in nodes
        )
        return learned and any(
            (missing != (thresholds < 0.0)).any() for thresholds, missing in nodes
        )

    def without_missing_zeros(self, target: str) -> list[Tree]:
        """Return the trees; raise if zeros are missing in them and scored differently."""
        if self.zero_missing:
            for tree in self.trees:
                inner = ~tree.is_leaf
                right = (tree.thresholds < 0).astype(np.int64)
                if (right[inner] != tree.missing[inner]).any():
                    raise UnsupportedModelError(
                        f"{target} cannot express missing='zero' of this model; "
                        "export it as c, onnx or sql, or fit with missing='learn'"
                    )
        return self.trees


# ------------------------------------------------------------------------ linear


def linear_weights(scoring: Scoring) -> tuple[Floats, float] | None:
    """Return the weights and intercept of a form with one linear score; None for other forms."""
    arrays, form = scoring.arrays, scoring.form
    if form in ("linear", "thresholds"):
        return np.asarray(arrays["weights"], dtype=np.float64), 0.0
    if form == "rounded":
        return np.asarray(arrays["weights"], dtype=np.float64), float(arrays["intercept"][0])
    if form == "tasks":  # the last cumulative score: the sum of the tasks
        return arrays["weights"].sum(axis=1), -float(arrays["thresholds"].sum())
    if form == "kernel" and scoring.facts["kernel"] == "linear":
        weights = support_matrix(scoring).T @ dense_coefs(scoring).sum(axis=0)
        tasks = scoring.facts["rule"] == "tasks"
        return np.asarray(weights), -float(arrays["thresholds"].sum()) if tasks else 0.0
    return None


def support_matrix(scoring: Scoring) -> Any:
    """Return support vectors as rows, dense or CSR."""
    arrays = scoring.arrays
    if "vectors" in arrays:
        return np.asarray(arrays["vectors"], dtype=np.float64)
    import scipy.sparse as sp

    parts = arrays["values"].astype(np.float64), arrays["indices"], arrays["indptr"]
    shape = (arrays["norms"].size, int(arrays["indices"].max(initial=-1)) + 1)
    return sp.csr_array(parts, shape=shape)


def dense_coefs(scoring: Scoring) -> Floats:
    """Return the coefficients of all support vectors, (n_outputs, n_support)."""
    arrays = scoring.arrays
    coefs = np.zeros((arrays["sizes"].size, arrays["norms"].size))
    for output, size in enumerate(arrays["sizes"].tolist()):
        coefs[output, arrays["slots"][output, :size]] = arrays["coefs"][output, :size]
    return coefs


def as_linear(described: Described, target: str, clips: bool = False) -> Linear | None:
    """Express the score as a weighted sum; None for stumps and trees.

    Raises UnsupportedModelError if the model has no such score, or a preprocessing step combines
    columns; targets with ``clips`` can clip values and impute missing ones.
    """
    scoring = described.scoring
    if scoring.form in OF_TREES:
        return None
    linear = linear_weights(scoring)
    if linear is None:
        raise UnsupportedModelError(_no_sum(described, target))
    columns = _columns(described, target)
    if not clips:
        for kind, name in [("clip", "a scaler with clip=True"), ("impute", "SimpleImputer")]:
            if columns.has(kind):
                raise UnsupportedModelError(
                    f"{target} cannot express {name} before a linear model: export it as c, "
                    "onnx or sql"
                )
    weights, intercept = linear
    whole = np.zeros(columns.source.size)
    whole[: weights.size] = weights  # of sparse support vectors, trailing columns may be missing
    return Linear(whole, intercept, columns)


def _no_sum(described: Described, target: str) -> str:
    form = described.scoring.form
    what = {
        "classes": "it has a score per class, but none that orders rows",
        "votes": "its score is a count of votes",
        "kernel": f"its score is a sum over {described.scoring.facts.get('kernel')} kernels",
    }[form]
    return f"{target} cannot express a {described.learner}: {what}; export it as c or onnx"


def _columns(described: Described, target: str) -> Columns:
    columns = by_column(described.steps, described.n_features)
    if columns is None:
        raise UnsupportedModelError(
            f"{target} cannot express Normalizer, which needs whole rows: export it as c or onnx"
        )
    return columns


# ------------------------------------------------------------------------ trees


def as_forest(
    described: Described, target: str, dtype: type[np.floating[Any]] = np.float64
) -> Forest:
    """Convert stumps and trees to trees with thresholds on the original features.

    Preprocessing steps are folded into the thresholds, exactly: each value of `dtype` goes to the
    same side as in Python. Raises UnsupportedModelError for categories, and for a step that
    combines columns.
    """
    columns = _columns(described, target)
    if described.scoring.form == "stumps":
        trees = _trees_of_stumps(described.scoring, columns, dtype)
        return Forest(trees, False, columns.has("impute"))
    if described.scoring.arrays["sets"].size:
        category_names = ", ".join(described.categorical)
        raise UnsupportedModelError(
            f"{target} cannot express splits by category, which this {described.learner} has"
            + (f" for {category_names}: export it as c" if category_names else ": export it as c")
        )
    zero_missing = bool(described.scoring.facts["zero_missing"])
    if zero_missing and columns.steps:
        raise UnsupportedModelError(
            f"{target} cannot express missing='zero' after a step of the pipeline, which moves "
            "zeros: export it as c or onnx"
        )
    trees = _trees_of_trees(described.scoring, columns, dtype)
    return Forest(trees, zero_missing, columns.has("impute"))


def rounded(values: Floats, dtype: type[np.floating[Any]]) -> Floats:
    """Round values down to numbers of a dtype."""
    with np.errstate(over="ignore"):
        result = values.astype(dtype)
        lower = np.nextafter(result, dtype(-np.inf))
    return np.where(result.astype(np.float64) > values, lower, result).astype(np.float64)


def _moved(
    columns: Columns, which: NDArray[Any], bounds: Floats, dtype: type[np.floating[Any]]
) -> Floats:
    """Convert thresholds to those of values before the steps."""
    if not any(step.kind != "impute" for step in columns.steps):
        return rounded(bounds, dtype)
    return last_not_above(columns, which, bounds, dtype)


def _missing(columns: Columns, n: int) -> Floats | None:
    """Return the value that replaces NaN before the learner; None if NaN stays."""
    if not columns.has("impute"):
        return None
    return columns.apply(np.full(n, np.nan), np.arange(n))


def _trees_of_trees(
    scoring: Scoring, columns: Columns, dtype: type[np.floating[Any]]
) -> list[Tree]:
    arrays = scoring.arrays
    features = np.asarray(arrays["features"], dtype=np.int64)
    thresholds = _moved(columns, features, arrays["thresholds"], dtype)
    missing = np.asarray(arrays["sides"], dtype=np.int64)
    replaced = _missing(columns, columns.source.size)
    if replaced is not None:
        missing = (replaced[features] > arrays["thresholds"]).astype(np.int64)
    trees = []
    for number, (first, last) in enumerate(pairwise(arrays["offsets"].tolist())):
        n = last - first
        part = slice(first, last)
        children = arrays["children"][part].astype(np.int64)
        leaves = arrays["values"][first + number : last + number + 1]
        # Leaf i is node n + i.
        trees.append(
            Tree(
                np.concatenate([columns.source[features[part]], np.full(n + 1, -1)]),
                np.concatenate([thresholds[part], np.zeros(n + 1)]),
                np.vstack([np.where(children < 0, n - 1 - children, children), _none(n + 1)]),
                np.concatenate([missing[part], np.zeros(n + 1, dtype=np.int64)]),
                np.concatenate([np.zeros(n), leaves]),
            )
        )
    return trees


def _none(n: int) -> NDArray[np.int64]:
    return np.full((n, 2), -1, dtype=np.int64)


def _trees_of_stumps(
    scoring: Scoring, columns: Columns, dtype: type[np.floating[Any]]
) -> list[Tree]:
    """Build a balanced tree per feature, whose leaves are the values of its step function."""
    arrays = scoring.arrays
    offsets = arrays["offsets"].tolist()
    replaced = _missing(columns, columns.source.size)
    trees = [_leaf(float(arrays["base"][0]))]
    for f in range(columns.source.size):
        first = offsets[f]
        last = offsets[f + 1]
        if first == last:
            continue
        at_zero = float(arrays["at_zero"][f])
        bounds = arrays["thresholds"][first:last]
        values = arrays["values"][first + f : last + f + 1]
        bounds, values = _with_zero(bounds, values, at_zero)
        missing = float(arrays["missing"][f])
        if replaced is not None:
            missing = float(values[np.searchsorted(bounds, replaced[f])])
        bounds = _moved(columns, np.full(bounds.size, f), bounds, dtype)
        values, bounds = _segments(values, bounds)
        trees.append(balanced(int(columns.source[f]), bounds, values - at_zero, missing - at_zero))
    return trees


def _with_zero(bounds: Floats, values: Floats, at_zero: float) -> tuple[Floats, Floats]:
    """Add a step at zero alone to a step function, if its value there differs."""
    at = int(np.searchsorted(bounds, 0.0))
    if values[at] == at_zero:
        return bounds, values
    below = -np.nextafter(0.0, 1.0)
    first = int(np.searchsorted(bounds, below))
    around = [values[first], at_zero, values[int(np.searchsorted(bounds, 0.0, side="right"))]]
    kept_low = bounds[bounds < below]
    kept_high = bounds[bounds > 0.0]
    return (
        np.concatenate([kept_low, [below, 0.0], kept_high]),
        np.concatenate([values[: kept_low.size], around, values[values.size - kept_high.size :]]),
    )


def _segments(values: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """Remove redundant thresholds from a step function."""
    kept_values = [float(values[0])]
    kept_bounds: list[float] = []
    for bound, value in zip(bounds.tolist(), values[1:].tolist(), strict=True):
        if bound == -np.inf or (kept_bounds and kept_bounds[-1] == bound):
            kept_values[-1] = value
        else:
            kept_bounds.append(bound)
            kept_values.append(value)
    return np.array(kept_values), np.array(kept_bounds)


def _leaf(value: float) -> Tree:
    zero = np.zeros(1, dtype=np.int64)
    return Tree(zero - 1, np.zeros(1), _none(1), zero, np.array([value]))


def balanced(feature: int, bounds: Floats, values: Floats, missing: float) -> Tree:
    """Build a tree over the steps of one feature; NaN reaches a separate leaf if required."""
    side = int(np.argmax(values == missing)) if (values == missing).any() else -1
    at_zero = int(np.searchsorted(bounds, 0.0))
    if values[at_zero] == missing:  # the path of 0, for targets where a missing feature is 0
        side = at_zero
    features: list[int] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    after_nan: list[int] = []
    values_of_nodes: list[float] = []

    def add(node_feature: int, threshold: float, value: float) -> int:
        features.append(node_feature)
        thresholds.append(threshold)
        children.append([-1, -1])
        after_nan.append(0)
        values_of_nodes.append(value)
        return len(features) - 1

    def grow(first: int, last: int) -> int:
        """Add a tree over the values first .. last and the thresholds between them."""
        if first == last:
            return add(-1, 0.0, float(values[first]))
        middle = (first + last) // 2
        node = add(feature, float(bounds[middle]), 0.0)
        children[node] = [grow(first, middle), grow(middle + 1, last)]
        after_nan[node] = int(side > middle)
        return node

    if side < 0:
        # No number is at or below its threshold: only NaN goes left.
        root = add(feature, -np.inf, 0.0)
        children[root] = [add(-1, 0.0, missing), grow(0, values.size - 1)]
    else:
        grow(0, values.size - 1)
    return Tree(
        features=np.array(features),
        thresholds=np.array(thresholds),
        children=np.array(children),
        missing=np.array(after_nan),
        values=np.array(values_of_nodes),
    )
