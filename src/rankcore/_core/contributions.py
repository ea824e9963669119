"""Contributions of features to the score of a row, for every form of a fitted model.

Exact interventional Shapley values: features have the value of the row or of a background row. For
an additive score the contribution of a feature is its function of the row's value minus the mean of
the function over the background.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.numbers import Floats, check_scores
from rankcore._core.scoring import Scoring
from rankcore._ext import contributions as kernels
from rankcore._ext.rows import Rows, csr_rows
from rankcore._ext.trees import Trees

# Values of row directions in trees kept in memory, and node visits between two checks for signals.
_DIRECTIONS = 2**24
_WALKS = 2**20
# Arrays of trees in the form of the kernels.
TREES = ("offsets", "features", "children", "sides", "thresholds", "values", "sets", "words")


@dataclass(frozen=True)
class Contributions:
    """Contributions of features to the scores of rows.

    Attributes
    ----------
    values : ndarray of float64 or scipy.sparse.csr_array, shape (n_rows, n_features)
        Contributions by row; sparse if the rows are sparse and there is no background.
    base : float
        Mean score of the background; without one, the score of a row of zeros.
    feature_names : list of str or None
        Names of the columns, if the model has them.
    data : ndarray or None, shape (n_rows, n_features)
        Values of the features, from `rankcore.explain.contributions`: float64, or objects if some
        are categories or words. None: the rows themselves.
    """

    values: Floats | sp.csr_array
    base: float
    feature_names: list[str] | None = None
    data: NDArray[Any] | None = None

    def scores(self) -> Floats:
        """Return the scores of the rows, to rounding: the base plus the sums of contributions.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
        """
        sums = np.asarray(self.values.sum(axis=1), dtype=np.float64)
        return self.base + sums.reshape(-1)

    def __repr__(self) -> str:
        n_rows, n_features = self.values.shape
        form = "dense" if isinstance(self.values, np.ndarray) else "CSR"
        return f"Contributions({n_rows} x {n_features} {form}, base {self.base:.6g})"


def contributions_of(
    scoring: Scoring,
    rows: Rows,
    background: Rows | None,
    output: int | None,
    name: str,
    features: NDArray[np.int64] | None = None,
) -> tuple[Any, float]:
    """Return the contributions of features to a score, and the base.

    The default background is a row of zeros. ``output`` is the rank whose score is explained, from
    0; ``name`` is the name of the model in errors for scores that are not sums over features.
    ``features`` has the feature of each column, numbered from 0, whose columns change together;
    by default each column is a feature.
    """
    if scoring.has_trees_of_tasks:
        forest, constant = _summed_trees(scoring, output)
        values, base = _of_trees(forest, rows, background, features)
        return _checked(values, rows), base + constant
    if scoring.form in {"trees", "ordinal_trees"}:
        _reject_output(output, name)
        values, base = _of_trees(scoring, rows, background, features)
        return _checked(values, rows), base
    if scoring.form == "stumps":
        _reject_output(output, name)
        values, base = _of_stumps(scoring, rows, background)
    else:
        weights, constant = linear_score(scoring, rows.n_features, output, name)
        with np.errstate(over="ignore", invalid="ignore"):  # rejected below
            values, base = _of_weights(weights, constant, rows, background)
    if features is not None:
        columns = np.arange(features.size)
        values = values @ sp.csr_array((np.ones(features.size), (columns, features)))
    return _checked(values, rows), base


def _checked(values: Any, rows: Rows) -> Any:
    """Return contributions; raise ValueError if one overflowed."""
    if isinstance(values, np.ndarray):
        check_scores(values)
    elif not np.isfinite(values.data).all():
        row = int(np.searchsorted(values.indptr, np.isfinite(values.data).argmin(), "right")) - 1
        check_scores(np.where(np.arange(rows.n_rows) == row, np.inf, 0.0))
    return values


def is_additive(scoring: Scoring, numbers: NDArray[np.int64]) -> bool:
    """Return whether the score is a sum of functions of one feature each, for any background.

    ``of_columns`` has the feature of each column.
    """
    if scoring.form not in {"trees", "ordinal_trees"}:
        return True
    offsets, features = scoring.arrays["offsets"], numbers[scoring.arrays["features"]]
    first = np.repeat(offsets[:-1], np.diff(offsets))
    return bool((features == features[first]).all()) if features.size else True


def cuts_of(scoring: Scoring, column: int) -> Floats:
    """Return the thresholds of a feature in stumps or trees; none for a linear score."""
    arrays = scoring.arrays
    if scoring.form == "stumps":
        first, last = arrays["offsets"][column : column + 2]
        thresholds = arrays["thresholds"][first:last]
    elif scoring.form in {"trees", "ordinal_trees"}:
        thresholds = arrays["thresholds"][arrays["features"] == column]
    else:
        thresholds = np.empty(0)
    return np.unique(thresholds[np.isfinite(thresholds)])


def used_features(scoring: Scoring, n_features: int) -> NDArray[np.bool_]:
    """Return the features that affect a score; all if unknown."""
    arrays = scoring.arrays
    used: Any = np.ones(n_features, dtype=bool)
    if scoring.form == "stumps":
        used = np.diff(arrays["offsets"]) > 0
    elif scoring.form in {"trees", "ordinal_trees"}:
        used = np.bincount(arrays["features"], minlength=n_features) > 0
    elif scoring.form in {"linear", "thresholds", "rounded", "tasks", "classes"}:
        used = arrays["weights"].reshape(n_features, -1).any(axis=1)
    return np.asarray(used, dtype=bool)


def linear_score(
    scoring: Scoring, n_features: int, output: int | None, name: str
) -> tuple[Floats, float]:
    """Return the weights and the constant of a linear score; see `contributions_of`."""
    arrays, form = scoring.arrays, scoring.form
    if form == "none":
        raise TypeError(
            f"{name} has no score that is a sum over features: {scoring.facts['reason']}"
        )
    if form == "votes":
        raise TypeError(
            f"{name} votes: its score is a mean of ranks, not a sum over features. Use "
            "rankcore.explain.permutation_importance, or fit OAPBPM or PRank, whose scores are sums"
        )
    if form == "kernel":
        if scoring.facts["kernel"] != "linear":
            raise TypeError(
                f"{name} has kernel={scoring.facts['kernel']!r}, whose score is a sum over "
                "support vectors, not over features. Use rankcore.explain.permutation_importance, "
                "or fit with kernel='linear' or a learner of weights or stumps"
            )
        weights, shifts = kernel_weights(scoring, n_features)
        if scoring.facts["rule"] != "tasks":
            _reject_output(output, name)
            return weights[:, 0], -float(shifts[0])
        return _summed_tasks(weights, arrays["thresholds"].reshape(-1) + shifts, output)
    weights = np.asarray(arrays["weights"], dtype=np.float64)
    if form == "tasks":
        return _summed_tasks(weights, arrays["thresholds"], output)
    if form == "classes":
        if output is None:
            raise ValueError(
                f"{name} has a score for each rank: contributions requires output=, the label of "
                "the rank to explain"
            )
        return np.ascontiguousarray(weights[:, output]), float(arrays["intercepts"][output])
    _reject_output(output, name)
    return weights, float(arrays["intercept"].reshape(-1)[0]) if form == "rounded" else 0.0


class Tasks(NamedTuple):
    """Linear scores of the tasks "above rank r", and the constants of their sums."""

    weights: Floats  # (n_features, n_ranks - 1)
    # (n_ranks - 1,): task r is won if ``weights[:, r] . x`` reaches ``thresholds[r]``.
    thresholds: Floats
    # {"count", "cusum"}: the rank is the number of tasks won, or that of the maximum cumulative sum
    # of their scores.
    rule: str
    tie: str  # {"high", "low"}: rule for ties between sums


def tasks_of(scoring: Scoring, n_features: int, n_ranks: int, name: str) -> Tasks:
    """Return the tasks of a linear ordinal learner; raise TypeError for other learners."""
    arrays, facts = scoring.arrays, scoring.facts
    rule, tie = str(facts.get("decision", "count")), str(facts.get("tie", "high"))
    form = scoring.form
    if form == "kernel" and facts["kernel"] == "linear" and facts["rule"] != "score":
        weights, shifts = kernel_weights(scoring, n_features)
        thresholds = arrays["thresholds"].reshape(-1) + shifts
        rule = rule if facts["rule"] == "tasks" else "count"
    elif form == "rounded":
        # Rounding is thresholding halfway between the ranks, which start at 1.
        weights = arrays["weights"][:, np.newaxis]
        thresholds = np.arange(1.5, n_ranks) - arrays["intercept"].reshape(-1)[0]
    elif form in {"thresholds", "tasks"}:
        weights, thresholds = arrays["weights"].reshape(n_features, -1), arrays["thresholds"]
    else:
        raise TypeError(
            f"{name} has no sum over features with thresholds between ranks, as PRank, "
            "OAPBPM, CuSumRank and WidrowHoff do; see contributions and permutation_importance"
        )
    return Tasks(np.broadcast_to(weights, (n_features, n_ranks - 1)), thresholds, rule, tie)


def kernel_weights(scoring: Scoring, n_features: int) -> tuple[Floats, Floats]:
    """Return the weights and shifts of a model with a linear kernel.

    Their shapes are (n_features, n_outputs) and (n_outputs,). The outputs of a row, which is not
    standardized yet, are ``weights.T @ row - shifts``.
    """
    arrays = scoring.arrays
    lists = zip(arrays["slots"], arrays["coefs"], arrays["sizes"].tolist(), strict=True)
    n_support = arrays["norms"].size
    coefs = np.zeros((arrays["sizes"].size, n_support))
    for coefs_of_output, (slots, values, size) in zip(coefs, lists, strict=True):
        coefs_of_output[slots[:size]] = values[:size]
    if "vectors" not in arrays:
        parts = arrays["values"].astype(np.float64), arrays["indices"], arrays["indptr"]
        vectors = sp.csr_array(parts, shape=(n_support, n_features))
        return np.ascontiguousarray(vectors.T @ coefs.T), np.zeros(len(coefs))
    weights = np.ascontiguousarray((coefs @ arrays["vectors"].astype(np.float64)).T)
    if "means" not in arrays:
        return weights, np.zeros(len(coefs))
    weights *= arrays["factors"][:, np.newaxis]
    return weights, arrays["means"] @ weights


def _summed_tasks(weights: Floats, thresholds: Floats, output: int | None) -> tuple[Floats, float]:
    """Return the cumulative score of a rank; by default of the highest one, which orders rows."""
    n = thresholds.size if output is None else output
    return weights[:, :n].sum(axis=1), -float(thresholds[:n].sum())


def _reject_output(output: int | None, name: str) -> None:
    if output is not None:
        raise ValueError(f"{name} has one score per row: output must be None")


# ------------------------------------------------------------------------- linear scores


def _of_weights(
    weights: Floats, constant: float, rows: Rows, background: Rows | None
) -> tuple[Any, float]:
    if background is None:
        stored_weights = weights if rows.columns is None else weights[rows.columns]
        return _with_stored(rows, stored_values(rows) * stored_weights), constant
    mean = column_means(background)
    values = dense_values(rows)
    values -= mean
    values *= weights
    return values, constant + float(mean @ weights)


def stored_values(rows: Rows) -> Floats:
    """Return the stored values as float64, shape (n_values,) or (n_rows, n_features)."""
    values = rows.arrays[0]
    if rows.columns is None:
        return values.astype(np.float64)
    return values[: rows.n_values].astype(np.float64)


def _with_stored(rows: Rows, values: Floats) -> Any:
    """Return rows with their stored values replaced, in the same matrix format."""
    if rows.columns is None:
        return values.reshape(rows.n_rows, rows.n_features)
    shape = rows.n_rows, rows.n_features
    return sp.csr_array((values, rows.columns.copy(), rows.arrays[2].copy()), shape=shape)


def dense_values(rows: Rows) -> Floats:
    """Convert rows to a new dense matrix of float64."""
    values = stored_values(rows)
    return values if rows.columns is None else scattered(rows, values, np.zeros(rows.n_features))


def scattered(rows: Rows, values: Floats, at_zero: Floats) -> Floats:
    """Build a dense matrix from the stored values of sparse rows; others are ``at_zero``."""
    out = np.empty((rows.n_rows, rows.n_features))
    out[:] = at_zero
    out[np.repeat(np.arange(rows.n_rows), np.diff(rows.arrays[2])), rows.columns] = values
    return out


def column_means(rows: Rows) -> Floats:
    """Return the mean of each feature."""
    if rows.columns is None:
        return rows.arrays[0].mean(axis=0, dtype=np.float64)
    sums = np.bincount(rows.columns, stored_values(rows), minlength=rows.n_features)
    return sums / rows.n_rows


def column_ranges(rows: Rows) -> tuple[Floats, Floats]:
    """Return the minimum and maximum of each feature without NaN; NaN if all are missing."""
    if rows.columns is None:
        values = rows.arrays[0].astype(np.float64)
        missing = np.isnan(values)
        low = np.where(missing, np.inf, values).min(axis=0)
        high = np.where(missing, -np.inf, values).max(axis=0)
    else:
        d, values = rows.n_features, stored_values(rows)
        # A column with fewer stored values than rows has zeros.
        zeros = np.bincount(rows.columns, minlength=d) < rows.n_rows
        low, high = np.where(zeros, 0.0, np.inf), np.where(zeros, 0.0, -np.inf)
        present = ~np.isnan(values)
        np.minimum.at(low, rows.columns[present], values[present])
        np.maximum.at(high, rows.columns[present], values[present])
    return np.where(low > high, np.nan, low), np.where(low > high, np.nan, high)


# ------------------------------------------------------------------------- stumps


def _of_stumps(scoring: Scoring, rows: Rows, background: Rows | None) -> tuple[Any, float]:
    arrays = scoring.arrays
    at_zero = arrays["at_zero"]
    if background is None:
        return _with_stored(rows, _curve(arrays, rows, at_zero)), float(arrays["base"][0])
    mean = _with_stored(background, _curve(arrays, background, at_zero)).mean(axis=0) + at_zero
    if rows.columns is None:
        values = _with_stored(rows, _curve(arrays, rows, mean))
    else:
        values = scattered(rows, _curve(arrays, rows, mean), at_zero - mean)
    return values, float(mean.sum())


def _curve(arrays: Mapping[str, NDArray[Any]], rows: Rows, reference: Floats) -> Floats:
    """Evaluate the step functions of all stored values, minus their value at a reference."""
    out = np.empty(rows.n_values)
    kernels.stumps(
        rows,
        arrays["offsets"],
        arrays["thresholds"],
        arrays["values"],
        arrays["missing"],
        arrays["at_zero"],
        reference,
        out,
    )
    return out


# ------------------------------------------------------------------------- trees


def _of_trees(
    scoring: Scoring,
    rows: Rows,
    background: Rows | None,
    features: NDArray[np.int64] | None,
) -> tuple[Any, float]:
    arrays, others = scoring.arrays, background
    if others is None:  # a row of zeros
        none, starts = np.empty(0, dtype=np.int32), np.zeros(2, dtype=np.int64)
        others = csr_rows(np.empty(0), none, starts, rows.n_features, "background")
    trees = Trees(
        arrays["offsets"],
        arrays["features"],
        arrays["children"],
        arrays["sides"],
        arrays["thresholds"],
        arrays["values"],
        arrays["sets"],
        arrays["words"],
        rows.n_features,
        bool(scoring.facts["zero_missing"]),
    )
    node_features = arrays["features"] if features is None else features[arrays["features"]]
    used, inverse = np.unique(node_features, return_inverse=True)
    columns: NDArray[np.int32] = inverse.astype(np.int32).reshape(-1)
    at_once = max(1, _DIRECTIONS // max(columns.size, 1))
    n_trees = arrays["offsets"].size - 1
    contributions = np.zeros((rows.n_rows, used.size))
    base = 0.0
    for _, theirs in _directions(trees, others, at_once):
        base += _leaf_sum(arrays, theirs)
        step = max(1, min(at_once, _WALKS // max(len(theirs) * n_trees, 1)))
        for first, ours in _directions(trees, rows, step):
            part = np.empty((len(ours), used.size))
            children, values = arrays["children"], arrays["values"]
            kernels.interventional(ours, theirs, arrays["offsets"], columns, children, values, part)
            contributions[first : first + len(ours)] += part
    contributions /= others.n_rows
    base /= others.n_rows
    if background is not None or rows.columns is None or features is not None:
        n_features = rows.n_features if features is None else int(features.max()) + 1
        dense = np.zeros((rows.n_rows, n_features))
        dense[:, used] = contributions
        return dense, base
    # A stored value of a feature that no tree uses adds 0.
    place = np.full(rows.n_features, -1)
    place[used] = np.arange(used.size)
    at = place[rows.columns]
    row_numbers = np.repeat(np.arange(rows.n_rows), np.diff(rows.arrays[2]))
    stored = (
        np.where(at < 0, 0.0, contributions[row_numbers, at]) if used.size else np.zeros(at.size)
    )
    return _with_stored(rows, stored), base


def _summed_trees(scoring: Scoring, output: int | None) -> tuple[Scoring, float]:
    """Return the trees and the constant of the cumulative score of a rank, by default the highest.

    This is the log-odds of the rank against the lowest one. The trees of tasks differ in the values
    of their leaves only.
    """
    arrays = scoring.arrays
    n_tasks = arrays["biases"].size
    n = n_tasks if output is None else output
    trees = _first_trees(arrays, (arrays["offsets"].size - 1) // n_tasks if n else 0)
    if n:
        trees["values"] = arrays["values"].reshape(n_tasks, -1)[:n].sum(axis=0)
    facts = {"zero_missing": scoring.facts["zero_missing"]}
    return Scoring("trees", trees, facts), -float(arrays["biases"][:n].sum())


def _first_trees(arrays: Mapping[str, NDArray[Any]], n: int) -> dict[str, NDArray[Any]]:
    """Return the first n trees."""
    nodes = int(arrays["offsets"][n])
    sizes = dict.fromkeys(TREES, nodes) | {"offsets": n + 1, "values": nodes + n}
    if arrays["sets"].size:
        sizes |= {"sets": nodes + 1, "words": int(arrays["sets"][nodes])}
    return {key: arrays[key][:size] for key, size in sizes.items()}


def _directions(trees: Trees, rows: Rows, size: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield, for blocks of rows, the first row and the child that each row takes at each node."""
    for first in range(0, rows.n_rows, size):
        out = np.empty((min(size, rows.n_rows - first), trees.n_nodes), dtype=np.uint8)
        kernels.directions(rows, trees, first, out)
        yield first, out


def _leaf_sum(arrays: Mapping[str, NDArray[Any]], directions: NDArray[np.uint8]) -> float:
    """Sum the leaves that rows reach, given their directions."""
    total = 0.0
    children, values = arrays["children"], arrays["values"]
    n = np.arange(len(directions))
    for tree, (first, last) in enumerate(pairwise(arrays["offsets"].tolist())):
        at = np.full(n.size, 0 if last > first else -1)
        while (inner := at >= 0).any():
            node = first + at[inner]
            at[inner] = children[node, directions[n[inner], node]]
        total += float(values[first + tree + ~at].sum())
    return total
