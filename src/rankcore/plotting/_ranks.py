"""Plots of ordinal learners: ranks, thresholds, probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore.metrics.labels import ordered
from rankcore.metrics.ordinal import confusion_by_rank
from rankcore.metrics.scorers import ranking_scores
from rankcore.plotting._style import (
    BLUE,
    GREY,
    ORANGE,
    beside,
    heat_map,
    label_text,
    learner_of,
    new_axes,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def plot_scores_by_rank(
    model: BaseEstimator, X: RowsLike, y: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw the scores of each true rank and the thresholds of an ordinal learner.

    Parameters
    ----------
    model : estimator
        Fitted, with one score per row (``project``) and ``thresholds_``: `PRank`,
        `OAPBPM`; or a pipeline or search that ends in one.
    X : array-like or sparse, shape (n, n_features)
    y : array-like, shape (n,)
        True labels.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One violin per rank with its median, and the thresholds as labelled lines.

    Raises
    ------
    TypeError
        For a model without thresholds, or with several scores per row.
    ValueError
        If ``X`` and ``y`` do not match, or ``y`` has a label that is not a rank of the model.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    learner = learner_of(model)
    scores = np.asarray(ranking_scores(model, X, None)) if hasattr(learner, "thresholds_") else None
    if scores is None or scores.ndim != 1:
        raise TypeError(
            f"{type(learner).__name__} lacks one score per row with thresholds between the ranks, "
            "as PRank and OAPBPM have"
        )
    labels = np.asarray(y)
    if labels.shape != scores.shape:
        raise ValueError(
            f"y must have a label for each of {scores.size} rows; got shape {labels.shape}"
        )
    ranks = learner.ranks_.tolist()
    unknown = set(labels.tolist()) - set(ranks)
    if unknown:
        raise ValueError(
            f"y has {min(unknown)!r}, which is not among the ranks {', '.join(map(str, ranks))}"
        )
    ax = ax or new_axes()
    places = [i for i, label in enumerate(ranks) if (labels == label).any()]
    parts: Any = ax.violinplot(
        [scores[labels == ranks[i]] for i in places],
        positions=places,
        widths=0.8,
        showmedians=True,
        showextrema=False,
    )
    for body in parts["bodies"]:
        body.set_facecolor(BLUE)
    parts["cmedians"].set_color(BLUE)
    names = [*map(label_text, ranks)]
    for threshold in learner.thresholds_:
        ax.axhline(threshold, color=ORANGE, linewidth=1, linestyle="--")
    span = np.ptp(np.concatenate([scores, learner.thresholds_]))
    _label_thresholds(ax, names, learner.thresholds_, span)
    ax.set_xticks(range(len(ranks)), names)
    ax.set_xlim(-0.6, len(ranks) - 0.4)
    ax.set_xlabel("true rank")
    ax.set_ylabel("score; dashed: thresholds between ranks")
    return ax


def _label_thresholds(ax: Any, names: list[str], thresholds: Any, span: float) -> None:
    """Label thresholds at the right by the ranks on both sides; close ones share a label."""
    groups: list[list[int]] = []
    for i, threshold in enumerate(thresholds):
        if groups and threshold - thresholds[groups[-1][0]] < 0.035 * span:
            groups[-1].append(i)
        else:
            groups.append([i])
    for group in groups:
        text = ", ".join(f"{names[i]} | {names[i + 1]}" for i in group)
        beside(ax, text, float(np.mean(thresholds[group])), 1.01, color=ORANGE)


@styled
def plot_reliability(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the observed frequency of ranks above each threshold by predicted probability.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True labels.
    y_proba : array-like, shape (n, k)
        Probabilities of the labels, as from ``predict_proba``.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first, as for `rankcore.metrics.ranked_probability_score`.
    n_bins : int
        Number of bins of equal size, by probability.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One line per threshold; it is on the diagonal if the probabilities are calibrated.

    Raises
    ------
    ValueError, TypeError
        As `rankcore.metrics.ranked_probability_score`.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    from matplotlib import colormaps
    from sklearn.calibration import calibration_curve

    from rankcore.metrics.probabilities import checked_probabilities

    table, place, all_labels = checked_probabilities(y_true, y_proba, labels)
    ax = ax or new_axes(4.6, 4.6)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    above = 1 - np.cumsum(table, axis=1)
    colours = colormaps["viridis"](np.linspace(0, 0.8, len(all_labels) - 1))
    for r, colour in enumerate(colours):
        share, called = calibration_curve(
            place > r, np.clip(above[:, r], 0, 1), n_bins=n_bins, strategy="quantile"
        )
        label = f"above {label_text(all_labels[r])}"
        ax.plot(called, share, color=colour, marker="o", markersize=3, linewidth=1.5, label=label)
    ax.set_xlabel("probability")
    ax.set_ylabel("share of rows")
    ax.set_aspect("equal")
    ax.legend(title="rank")
    return ax


@styled
def plot_confusion(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    normalize: Literal["true", "pred", "all"] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the confusion matrix of true and predicted ranks.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted labels.
    labels : array-like, shape (k,), optional
        All labels, lowest first. None: the order of a categorical, or the numbers that occur.
    normalize : {"true", "pred", "all"}, optional
        Draw shares of each row, of each column, or of all rows, instead of counts.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The lowest rank is at the bottom left. Colours are shares of each true rank, for any
        ``normalize``.

    Raises
    ------
    ValueError, TypeError
        As `rankcore.metrics.confusion_by_rank`.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    labels = ordered(labels, y_true, y_pred)
    table = confusion_by_rank(y_true, y_pred, labels=labels, normalize=normalize)
    shares = confusion_by_rank(y_true, y_pred, labels=labels, normalize="true")
    all_labels = np.union1d(y_true, y_pred) if labels is None else np.asarray(labels)
    names = [*map(label_text, all_labels)]
    size = 1.8 + 0.55 * len(names)
    ax = ax or new_axes(size, size)
    heat_map(ax, shares, names, names, cmap="Blues", vmin=0, vmax=1, origin="lower")
    for (i, j), value in np.ndenumerate(table):
        text = f"{value:g}" if normalize is None else f"{value:.2f}"
        colour = "white" if shares[i, j] > 0.55 else "black" if value else GREY
        ax.text(j, i, text, ha="center", va="center", color=colour)
    ax.set_xlabel("predicted rank")
    ax.set_ylabel("true rank")
    return ax
