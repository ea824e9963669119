"""Plots of features: importances, weights and contributions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.contributions import cuts_of, dense_values
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.ids import as_names
from rankcore._core.inputs import n_rows_of, take_rows
from rankcore._core.numbers import largest
from rankcore._core.preprocessing import feature_names as names_of
from rankcore._ext.rows import dense_rows
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
    literal,
    name_lines,
    new_axes,
    signed_bars,
    styled,
    value_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows drawn as points, and rows of their background; categories of a feature that are drawn.
_MAX_POINTS, _MAX_BACKGROUND, _MAX_CATEGORIES = 500, 100, 12


@styled
def plot_contributions(
    model: BaseEstimator,
    X: RowsLike,
    features: Sequence[int | str] | None = None,
    *,
    output: Hashable | None = None,
    max_features: int = 6,
    axes: NDArray[Any] | Sequence[Axes] | None = None,
) -> NDArray[Any]:
    """Draw the contributions of features to the score by their values, side by side on one scale.

    Parameters
    ----------
    model : estimator
        A fitted learner with ``contributions``, or a pipeline or search that ends in one. Features
        are then the columns of its input, and the words of texts.
    X : array-like, scipy sparse or frame, shape (n, n_features)
        Rows as for ``predict``, which select the features, and are the background: contributions
        are relative to their mean.
    features : list of int or str, optional
        None: those whose contributions vary most over the rows; unused ones are omitted.
    output : label, optional
        The rank to explain, as for ``contributions``.
    max_features : int
        Maximum number of features selected.
    axes : array of matplotlib.axes.Axes, optional
        Axes to draw into, at least one per feature; None: new axes in rows of three.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One per feature; new axes share the vertical axis. Where features are added up: a curve over
        the values of the rows, which are marked below it, a dashed line for missing values, and
        bars for categories. For trees with interactions: a point per row, of at most 500, and a
        background of at most 100 of them; missing values are at the right.

    Raises
    ------
    TypeError, ValueError
        As ``contributions`` of the model.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    from matplotlib import pyplot

    explained = ExplainedModel(model)
    if not explained.additive:
        X = _some(X, _MAX_POINTS)
    background = X if explained.additive else _some(X, _MAX_BACKGROUND)
    drawn = _Drawn(explained, X, background, output)
    if features is None:
        chosen = largest(drawn.parts.std(axis=0), max_features)
    else:
        chosen = [_number_of(name, explained.names) for name in as_names(features, "features")]
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
            first.set_ylabel(fill(f"added to the {explained.score_name(output)}", 22))
    axes = np.asarray(axes).ravel()
    for ax, number in zip(axes, chosen, strict=False):
        drawn.draw(ax, number)
        ax.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        ax.set_xlabel(literal(explained.names[number]))
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
    return axes[: len(chosen)]


def _some(X: Any, most: int) -> Any:
    """Select rows at equal steps, if there are too many."""
    n = n_rows_of(X)
    return X if n <= most else take_rows(X, np.linspace(0, n - 1, most).astype(np.int64))


def _number_of(feature: int | str, names: list[str]) -> int:
    """Return the number of a feature, given its number or name."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"there is no feature {feature!r}; names are {', '.join(names[:10])}")
        return names.index(feature)
    if not 0 <= feature < len(names):
        raise ValueError(f"features must be numbers from 0 to {len(names) - 1}; got {feature}")
    return int(feature)


class _Drawn:
    """Contributions to draw: those of rows, and of further values of a feature."""

    def __init__(self, explained: ExplainedModel, X: Any, background: Any, output: Any) -> None:
        self._explained, self._output = explained, output
        self._background, rows = explained.rows(background), explained.rows(X)
        self._columns = dense_values(rows)
        self._values = explained.values(X)
        self.parts = explained.of_rows(rows, self._background, output)[0]

    def draw(self, ax: Any, number: int) -> None:
        """Draw the contributions of a feature by its values."""
        feature = self._explained.features[number]
        if feature.is_categorical:
            self._draw_categories(ax, number)
        elif self._explained.additive and feature.exact:
            self._draw_curve(ax, number)
        else:
            self._draw_points(ax, number)

    def _draw_curve(self, ax: Any, number: int) -> None:
        """Draw a curve through both sides of each step, and a line for missing values."""
        (column,) = self._explained.features[number].columns
        own = self._columns[:, column]
        present = own[~np.isnan(own)]
        if present.size:
            ends = np.array([present.min(), present.max()])
            cuts = cuts_of(self._explained.scoring, column)
            cuts = cuts[(cuts >= ends[0]) & (cuts < ends[1])]
            grid = np.unique(np.concatenate([ends, cuts, np.nextafter(cuts, np.inf)]))
            rows, parts = self._probe(column, grid, number)
            ax.plot(self._explained.unscaled(rows)[:, column], parts, color=BLUE, linewidth=1.5)
            shown = self._values[:, number].astype(np.float64)
            _draw_rug(ax, shown[~np.isnan(shown)])
        if present.size < own.size:
            _, missing = self._probe(column, np.array([np.nan]), number)
            ax.axhline(missing[0], color=ORANGE, linewidth=1, linestyle="--", label="missing")

    def _probe(self, column: int, values: Any, number: int) -> tuple[Any, Any]:
        """Return rows with other values in a column, and the contributions of its feature."""
        rows = np.repeat(self._columns[:1], values.size, axis=0)
        rows[:, column] = values
        checked = dense_rows(rows, "X", True)
        return rows, self._explained.of_rows(checked, self._background, self._output)[0][:, number]

    def _draw_points(self, ax: Any, number: int) -> None:
        """Draw a point for each row; missing values at the right."""
        values = self._values[:, number].astype(np.float64)
        parts = self.parts[:, number]
        missing = np.isnan(values)
        ax.plot(values[~missing], parts[~missing], ".", color=BLUE, markersize=4, alpha=0.6)
        if missing.any():
            present = values[~missing] if not missing.all() else np.zeros(1)
            right = present.max() + 0.08 * (np.ptp(present) or 1.0)
            place = np.full(int(missing.sum()), right)
            style = {"color": ORANGE, "markersize": 4, "alpha": 0.6}
            ax.plot(place, parts[missing], ".", label="missing", **style)

    def _draw_categories(self, ax: Any, number: int) -> None:
        """Draw a bar for each category, or a point for each row; the most frequent ones."""
        feature = self._explained.features[number]
        parts = self.parts[:, number]
        names = np.array(
            [value_text(value) for value in self._values[:, number].tolist()], dtype=object
        )
        order = {value_text(label): place for place, label in enumerate(feature.labels or [])}
        counts = Counter(names.tolist())
        frequent = [name for name, _ in counts.most_common(_MAX_CATEGORIES)]
        shown = sorted(frequent, key=lambda name: (order.get(name, len(order)), name))
        for place, name in enumerate(shown):
            own = parts[names == name]
            if self._explained.additive and feature.word is None:
                ax.bar(place, own[0], width=0.7, color=BLUE)
            else:
                at = np.full(own.size, place)
                ax.plot(at, own, ".", color=BLUE, markersize=4, alpha=0.6)
        turned = {"rotation": 30, "ha": "right"} if max(map(len, shown)) * len(shown) > 18 else {}
        ax.set_xticks(range(len(shown)), [*map(literal, shown)], **turned)
        ax.set_xlim(-0.6, len(shown) - 0.4)
        left = len(counts) - len(shown)
        if left:
            ax.set_title(f"{left} rarer categories are not shown", fontsize=8.5, color=GREY)


def _draw_rug(ax: Any, values: Any) -> None:
    """Mark values below the axes; if there are many, only equally spaced quantiles."""
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
def plot_importances(found: Any, *, max_features: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the importances of features, the most important at the top.

    Parameters
    ----------
    found : GlobalImportance, PermutationImportance or estimator
        Result of `rankcore.explain.global_importance` or `permutation_importance`, or a fitted
        model with ``feature_importances_``.
    max_features : int
        Maximum number of features drawn; unused ones are omitted.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

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
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    if hasattr(found, "changes"):
        return _draw_changes(found, max_features, ax)
    if hasattr(found, "importances"):
        sizes = found.importances
        names = found.feature_names
        label = "mean absolute contribution"
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


def _draw_changes(importance: Any, max_features: int, ax: Any) -> Any:
    used = [j for j in importance.order.tolist() if importance.used[j]]
    listed = used[:max_features]
    if not listed:
        raise ValueError("shuffling changed nothing: there is nothing to draw")
    ax = ax or new_axes(height=bar_height(len(listed)))
    for place, j in enumerate(listed):
        low, high = importance.low[j], importance.high[j]
        apart = bool(low > 0 or high < 0)
        colour = BLUE if apart else GREY
        draw_interval(ax, place, [low, high], importance.changes[j], colour, apart)
    ax.axvline(0, color="black", linewidth=0.8)
    name_lines(ax, [importance.feature_names[j] for j in listed])
    ax.set_xlabel(
        f"change of {importance.measure} ({importance.baseline:.4f}) when shuffled "
        f"{importance.where}, "
        f"{importance.confidence_level:.0%} interval"
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
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

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
    ModuleNotFoundError
        If Matplotlib is not installed.
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
