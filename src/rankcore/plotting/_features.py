"""Plots of features: importances, weights and contributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.front import feature_names as names_of
from rankcore._core.numbers import largest
from rankcore.plotting._style import (
    BLUE,
    GREY,
    ORANGE,
    bar_height,
    diverging,
    draw_interval,
    heat_map,
    label_text,
    learner_of,
    name_lines,
    new_axes,
    signed_bars,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def plot_contribution(
    model: BaseEstimator, feature: int | str, X: RowsLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the contribution of a feature to the score of a boosted ranker, by its value.

    Parameters
    ----------
    model : RankBoost or BipartiteRankBoost
        Fitted; or a pipeline or search that ends in one, whose transformed features are then
        drawn.
    feature : int or str
        Index of the column, or its name if the model was fitted to named columns.
    X : array-like or scipy sparse, shape (n, n_features), optional
        Rows after the preceding steps of a pipeline, whose values are drawn as a rug.

    Returns
    -------
    matplotlib.axes.Axes
        The step function, extended beyond the thresholds by a twentieth of their range, and a
        dashed line at the contribution of missing values.

    Raises
    ------
    TypeError
        For a model without stumps.
    ValueError
        If there is no such feature.
    """
    learner = learner_of(model)
    if not hasattr(learner, "contribution"):
        raise TypeError(f"{type(learner).__name__} has no stumps, as RankBoost has")
    ax = ax or new_axes()
    names = names_of(model)
    j = names.index(feature) if isinstance(feature, str) and feature in names else feature
    column = None if X is None or isinstance(j, str) else column_of(learner, X, j)
    _draw_curve(ax, learner, j, column)
    ax.set_xlabel(names[j] if isinstance(j, int) else str(j))
    ax.set_ylabel("added to the score")
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax


def column_of(learner: Any, X: Any, j: int) -> Any:
    """The values of a feature in rows."""
    from rankcore._core.contributions import dense_values

    return dense_values(learner._more_rows(X))[:, j]


def _draw_curve(ax: Any, learner: Any, feature: int | str, column: Any) -> None:
    """The step function of a feature, the contribution of a missing value if seen, and a rug."""
    thresholds, values, missing = learner.contribution(feature)
    finite = np.isfinite(thresholds)  # nothing is below -inf
    thresholds, values = thresholds[finite], values[values.size - finite.sum() - 1 :]
    known = None if column is None else column[~np.isnan(column)]
    ends = thresholds[[0, -1]] if thresholds.size else np.zeros(2)
    if known is not None and known.size:
        ends = np.array([min(ends[0], known.min()), max(ends[1], known.max())])
    beyond = 0.05 * (ends[1] - ends[0]) or 1.0
    edges = [ends[0] - beyond, *thresholds, ends[1] + beyond]
    ax.stairs(values, edges, baseline=None, color=BLUE, linewidth=1.5)
    seen = missing != 0 if column is None else bool(np.isnan(column).any())
    if seen:
        ax.axhline(missing, color=ORANGE, linewidth=1, linestyle="--", label="missing")
    if known is not None:
        _draw_rug(ax, known)


def _draw_rug(ax: Any, values: Any) -> None:
    """Marks of values under the axes; of many, a sample at equal steps of the sorted values."""
    some = np.sort(values)[np.linspace(0, values.size - 1, min(values.size, 150)).astype(int)]
    ax.plot(
        some,
        np.zeros(some.size),
        "|",
        color="black",
        alpha=0.3,
        markersize=7,
        transform=ax.get_xaxis_transform(),
        clip_on=False,
    )


@styled
def plot_contributions(
    model: BaseEstimator,
    X: RowsLike,
    features: Sequence[int | str] | None = None,
    *,
    max_features: int = 6,
    axes: NDArray[Any] | Sequence[Axes] | None = None,
) -> NDArray[Any]:
    """Draw the contributions of several features, side by side on one scale.

    Parameters
    ----------
    model : estimator
        A fitted learner with stumps, trees without interactions, or weights and one score
        per row; or a pipeline or search that ends in one.
    X : array-like or scipy sparse, shape (n, n_features)
        Rows after the preceding steps of a pipeline: their values are drawn as a rug, and select
        the features.
    features : list of int or str, optional
        None: those whose contributions vary most over the rows; unused ones are omitted.
    max_features : int
        Maximum number of features selected.
    axes : array of matplotlib.axes.Axes, optional
        Axes to draw into, at least one per feature; None: new axes in rows of three.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One per feature; new axes share the vertical axis.

    Raises
    ------
    TypeError, ValueError
        As ``contributions`` of the model, and if trees have interactions with a feature.
    """
    from matplotlib import pyplot

    learner = learner_of(model)
    parts = learner.contributions(X).values
    parts = parts if isinstance(parts, np.ndarray) else parts.toarray()
    names = names_of(model)
    if features is None:
        chosen = largest(parts.std(axis=0), max_features)
    else:
        chosen = [names.index(one) if isinstance(one, str) else int(one) for one in features]
    if not chosen:
        raise ValueError("no feature adds different amounts to the scores of these rows")
    if axes is None:
        n_columns = min(3, len(chosen))
        n_rows = -(-len(chosen) // n_columns)
        _, grid = pyplot.subplots(
            n_rows,
            n_columns,
            sharey=True,
            squeeze=False,
            figsize=(2.3 * n_columns + 0.6, 2.0 * n_rows + 0.3),
        )
        for spare in grid.ravel()[len(chosen) :]:
            spare.set_visible(False)
        axes = grid.ravel()[: len(chosen)]
        for first in grid[:, 0]:
            first.set_ylabel("added to the score")
    axes = np.asarray(axes).ravel()
    for ax, j in zip(axes, chosen, strict=False):
        column = column_of(learner, X, j)
        if hasattr(learner, "contribution"):
            _draw_curve(ax, learner, j, column)
        else:
            ends = np.array([column.min(), column.max()])
            i = int(np.abs(column).argmax())
            slope = parts[i, j] / column[i] if column[i] else 0.0  # the weight of the feature
            ax.plot(ends, slope * ends, color=BLUE)
            _draw_rug(ax, column)
        ax.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        ax.set_xlabel(names[j])
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
    return axes[: len(chosen)]


@styled
def plot_importances(found: Any, *, max_features: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the importances of features, the most important at the top.

    Parameters
    ----------
    found : GlobalImportance, PermutationImportance or estimator
        Result of `rankcore.explain.global_importance` or `permutation_importance`, or a fitted
        model with ``feature_importances_``.
    max_features : int
        Maximum number of features drawn; unused ones are omitted.

    Returns
    -------
    matplotlib.axes.Axes
        One bar per feature; for permutation importance the change of the measure with its
        interval.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        If no feature is used.
    """
    if hasattr(found, "changes"):
        return _draw_changes(found, max_features, ax)
    if hasattr(found, "importances"):
        sizes, names, label = found.importances, found.feature_names, "mean absolute contribution"
    else:
        learner = learner_of(found)
        if not hasattr(learner, "feature_importances_"):
            raise TypeError(
                f"{type(learner).__name__} has no feature_importances_: pass the result of "
                "rankcore.explain.global_importance"
            )
        sizes = learner.feature_importances_
        names = names_of(found)
        # Records of stumps have no tree.
        records = getattr(learner, "estimators_", None)
        trees = records is None or "tree" in (records.dtype.names or ())
        what = "gains" if trees else "|alpha|"
        label = f"share of all {what}"
    listed = largest(sizes, max_features)
    if not listed:
        raise ValueError("no feature is used: there is nothing to draw")
    ax = ax or new_axes(height=bar_height(len(listed)))
    signed_bars(ax, [names[j] for j in listed], sizes[listed])
    left = int(np.count_nonzero(sizes)) - len(listed)
    ax.set_xlabel(label + (f"; {left} smaller ones are not shown" if left else ""))
    return ax


def _draw_changes(found: Any, max_features: int, ax: Any) -> Any:
    used = [j for j in found.order.tolist() if found.per_query[j].any()]
    listed = used[:max_features]
    if not listed:
        raise ValueError("shuffling changed nothing: there is nothing to draw")
    ax = ax or new_axes(height=bar_height(len(listed)))
    for place, j in enumerate(listed):
        low, high = found.low[j], found.high[j]
        apart = bool(low > 0 or high < 0)
        colour = BLUE if apart else GREY
        draw_interval(ax, place, [low, high], found.changes[j], colour, apart)
    ax.axvline(0, color="black", linewidth=0.8)
    name_lines(ax, [found.feature_names[j] for j in listed])
    where = "within queries" if found.scope == "within" else "among all rows"
    ax.set_xlabel(
        f"change of {found.measure} ({found.baseline:.4f}) when shuffled {where}, "
        f"{found.confidence_level:.0%} interval"
    )
    left = len(used) - len(listed)
    if left:
        ax.set_title(f"{left} features that matter less are not shown", fontsize=8.5, color=GREY)
    return ax


@styled
def plot_weights(
    model: BaseEstimator,
    *,
    feature_names: Sequence[str] | None = None,
    max_features: int = 15,
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest weights of a linear model: of its direction, or by rank.

    Parameters
    ----------
    model : estimator
        Fitted, with ``coef_``; or a pipeline or search that ends in one.
    feature_names : sequence of str, optional
        None: the names of the model, or of its pipeline's steps.
    max_features : int
        Maximum number of features, selected by their maximum absolute weight.

    Returns
    -------
    matplotlib.axes.Axes
        Bars for one direction; a heat map for one weight vector per threshold or rank.

    Raises
    ------
    TypeError
        For a model without feature weights.
    ValueError
        If all weights are 0, or the number of names is wrong.
    """
    learner = learner_of(model)
    if not hasattr(learner, "coef_"):
        raise TypeError(f"{type(learner).__name__} has no coef_, the weights of features")
    weights = np.atleast_2d(learner.coef_)
    names = names_of(model, feature_names)
    listed = largest(np.abs(weights).max(axis=0), max_features)
    if not listed:
        raise ValueError("all weights are 0: there is nothing to draw")
    called = [names[j] for j in listed]
    if len(weights) == 1:
        ax = ax or new_axes(height=bar_height(len(listed)))
        signed_bars(ax, called, weights[0, listed])
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel("weight")
        return ax
    between = len(weights) == learner.classes_.size - 1
    labels = [*map(label_text, learner.ranks_ if between else learner.classes_)]
    columns = [f"{a} | {b}" for a, b in pairwise(labels)] if between else labels
    ax = ax or new_axes(2.6 + 0.6 * len(columns), 0.6 + bar_height(len(listed)))
    shown = weights[:, listed].T
    image = heat_map(ax, shown, called, columns, **diverging(np.abs(shown).max()))
    ax.set_xlabel("threshold" if between else "rank")
    ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.8)
    return ax
