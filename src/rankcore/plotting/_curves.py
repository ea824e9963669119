"""Plots of curves: learning, ROC, regularisation, margins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import roc_curve

from rankcore._core.labels import as_grades
from rankcore._core.numbers import as_vector
from rankcore._core.queries import Queries, group_rows
from rankcore.metrics.auc import auc_score
from rankcore.plotting._style import BLUE, GREY, ORANGE, learner_of, new_axes, styled, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankcore.bounds import MarginCurve

# Main training statistics of a history, and the unit of its iterations.
KINDS = {
    "rank_loss": "pass",
    "bound": "round",
    "log_loss": "round",
    "objective": "step",
    "mistakes": "pass",
}


@styled
def plot_roc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    rel: float = 1.0,
    name: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the ROC curve with the range over orders of ties, or the mean over queries.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        Labels; positive if at least ``rel``.
    y_score : array-like of numbers, shape (n,)
        Scores.
    qid : array-like, shape (n,), optional
        The query of each row: draws a thin curve per query that has both classes, and their mean.
        None: one curve of all rows, pooled.
    rel : float
        The minimum positive label.
    name : str
        Name in the legend.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        Without ``qid``, the curve through the distinct scores, and a band between the best and the
        worst order of each group of equal scores; the legend shows the three areas. With ``qid``,
        curves are straight within groups of equal scores, and the legend shows the mean area.

    Raises
    ------
    ValueError
        If a class is missing (with ``qid``: in every query), and as `rankcore.metrics.auc_score`.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    labels, scores = as_vector(as_grades(y_true, None)[0], "y_true"), as_vector(y_score, "y_score")
    if qid is None:
        ax = ax or new_axes(4.6, 4.6)
        _pooled_roc(ax, labels, scores, rel, name)
    else:
        curves = _roc_of_queries(labels, scores, group_rows(qid, labels.size), rel)
        ax = ax or new_axes(4.6, 4.6)
        _mean_roc(ax, curves, name)
    ax.axline((0, 0), slope=1, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("share of the negatives above the threshold")
    ax.set_ylabel("share of the positives above the threshold")
    ax.legend(loc="lower right")
    return ax


def _roc(labels: Any, scores: Any, rel: float) -> tuple[Any, Any]:
    """Compute the fractions of negatives and positives above each distinct score."""
    negatives, positives, _ = roc_curve(labels >= rel, scores, drop_intermediate=False)
    return negatives, positives


def _pooled_roc(ax: Any, labels: Any, scores: Any, rel: float, name: str) -> None:
    areas = [
        cast(float, auc_score(labels, scores, rel=rel, ties=ties, empty="raise"))
        for ties in ("half", "pessimistic", "optimistic")
    ]
    negatives, positives = _roc(labels, scores, rel)
    label = f"{name} AUC {areas[0]:.4f}, all rows pooled".strip()
    (line,) = ax.plot(negatives, positives, label=label)
    if areas[2] > areas[1]:
        # In the best order of a group the curve first rises, in the worst it first moves right.
        best = np.repeat(negatives, 2)[:-1], np.repeat(positives, 2)[1:]
        worst = np.repeat(negatives, 2)[1:], np.repeat(positives, 2)[:-1]
        ax.fill(
            np.append(best[0], worst[0][::-1]),
            np.append(best[1], worst[1][::-1]),
            color=line.get_color(),
            alpha=0.25,
            linewidth=0,
            label=f"ties: {areas[1]:.4f} to {areas[2]:.4f}",
        )


def _roc_of_queries(
    labels: Any, scores: Any, queries: Queries, rel: float
) -> list[tuple[Any, Any]]:
    """Compute the curve of each query that has both classes."""
    curves = []
    for first, last in pairwise(queries.bounds.tolist()):
        rows = slice(first, last) if queries.rows is None else queries.rows[first:last]
        positive = labels[rows] >= rel
        if positive.any() and not positive.all():
            curves.append(_roc(labels[rows], scores[rows], rel))
    if not curves:
        raise ValueError("each query lacks positive or negative labels: there is no curve")
    return curves


def _mean_roc(ax: Any, curves: list[tuple[Any, Any]], name: str) -> None:
    (line,) = ax.plot([], [])
    thin = {"color": line.get_color(), "linewidth": 0.5, "alpha": min(0.5, 10 / len(curves))}
    for negatives, positives in curves:
        ax.plot(negatives, positives, **thin)
    shares = np.linspace(0, 1, 201)
    # Where a curve rises straight up, its top.
    mean = np.mean(
        [np.interp(shares, negatives, positives) for negatives, positives in curves], axis=0
    )
    area = np.mean([np.trapezoid(positives, negatives) for negatives, positives in curves])
    label = f"{name} mean of {len(curves)} queries, AUC {area:.4f}".strip()
    line.set_data(np.append(0.0, shares), np.append(0.0, mean))
    line.set(label=label, linewidth=2, zorder=3)


@styled
def plot_learning_curve(
    model: BaseEstimator, *, figures: str | Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the statistics of training by pass, round or step.

    Parameters
    ----------
    model : estimator
        Fitted, with ``history_``; also at the end of a pipeline or the best of a search.
    figures : str or list of str, optional
        Keys of ``history_``. None: the measures on held-out rows; without any, the main training
        statistic: the rank loss, the bound on the training error, the log loss, the objective or
        the share of mistakes among pairs.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One line per figure, and a dashed line at the iteration that early stopping chose.

    Raises
    ------
    TypeError
        For a model without history.
    ValueError
        If there is no such figure, or the history is empty.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    learner = learner_of(model)
    if not hasattr(learner, "history_"):
        raise TypeError(
            f"{type(learner).__name__} has no history_: it is not fitted, or not a learner"
        )
    history = learner.history_
    kind = next(name for name in KINDS if name in history)
    if figures is None:
        figures = [name for name in learner._state.validation if name in history] or kind
    chosen = [figures] if isinstance(figures, str) else [*figures]
    unknown = [name for name in chosen if name not in history]
    if unknown:
        raise ValueError(f"history_ has no {unknown[0]!r}; it has {', '.join(history)}")
    if not len(history[chosen[0]]):
        raise ValueError("history_ is empty: nothing was learned")
    ax = ax or new_axes()
    for one in chosen:
        values = history[one]
        label = one.replace("_", " ")
        if one == "mistakes" and "pairs" in history:
            values = np.divide(values, np.maximum(history["pairs"], 1))
            label = "mistakes, share of pairs"
        marker = "o" if len(values) <= 30 else ""
        ax.plot(np.arange(1, len(values) + 1), values, marker=marker, label=label)
    best = getattr(learner, "best_iteration_", None)
    if best is not None:
        ax.axvline(best, color=GREY, linestyle="--", linewidth=1, label=f"best: {best}")
    whole_ticks(ax.xaxis)
    ax.set_xlabel(KINDS[kind])
    if len(chosen) == 1 and best is None:
        ax.set_ylabel(label)
    else:
        ax.legend()
    return ax


@styled
def plot_ranksvm_path(path: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the measure of ranking SVMs on held-out queries, as a function of C.

    Parameters
    ----------
    path : SVMPath or RankSVMCV
        Fitted, and measured on held-out rows.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The measure (in cross-validation the mean ± one standard error), and a dashed line at the
        chosen C.

    Raises
    ------
    ValueError
        If a path was not measured.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    svm_path: Any = path
    if hasattr(svm_path, "scores_"):
        Cs = svm_path.Cs_
        values = svm_path.scores_.mean(axis=0)
        name = svm_path.scoring
        best = svm_path.C_
    elif svm_path.measure is None:
        raise ValueError("nothing was measured along the path: pass eval_set to ranksvm_path")
    else:
        Cs = svm_path.Cs
        values = svm_path.values
        name = svm_path.measure
        best = Cs[svm_path.best]
    ax = ax or new_axes()
    if hasattr(svm_path, "scores_") and len(svm_path.scores_) > 1:
        error = svm_path.scores_.std(axis=0, ddof=1) / np.sqrt(len(svm_path.scores_))
        ax.fill_between(Cs, values - error, values + error, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(Cs, values, "o-", color=BLUE, markersize=4)
    ax.axvline(best, color=ORANGE, linewidth=1, linestyle="--", label=f"C = {best:.3g}")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel(f"{name if isinstance(name, str) else 'measure'}, held-out queries")
    ax.legend()
    return ax


@styled
def plot_margin_curve(
    curve: MarginCurve,
    *,
    certificate: ArrayLike | None = None,
    held_out: float | None = None,
    norm: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the empirical margin loss as a function of the margin, with its bound.

    Parameters
    ----------
    curve : MarginCurve
    certificate : array-like of float, shape (n_points,), optional
        Bounds on the misranking of unseen pairs, from ``curve.certificate``.
    held_out : float, optional
        Misranking of held-out pairs.
    norm : float, default=1.0
        Divisor of the margins: |w| for geometric margins.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The curve on a logarithmic scale of margins; the minimum bound is marked.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    ax = ax or new_axes()
    rhos = curve.rhos / norm
    ax.plot(rhos, curve.losses, color=BLUE, label="empirical margin loss")
    top = 1.0
    if certificate is not None:
        bounds = np.asarray(certificate, dtype=np.float64)
        ax.plot(rhos, bounds, color=ORANGE, label="bound of the unseen pairs")
        if not np.isnan(bounds).all():
            least = int(np.nanargmin(bounds))
            ax.plot(rhos[least], bounds[least], "o", color=ORANGE)
            ax.annotate(
                f"{bounds[least]:.3f}",
                (rhos[least], bounds[least]),
                textcoords="offset points",
                xytext=(0, 8),
                ha="center",
            )
            top = max(top, 1.3 * float(bounds[least]))
    if held_out is not None:
        label = f"held-out misranking, {held_out:.3f}"
        ax.axhline(held_out, color=GREY, linestyle="--", linewidth=1, label=label)
    ax.set_xscale("log")
    ax.set_ylim(0, top)
    ax.set_xlabel("margin" if norm == 1.0 else "margin / |w|")
    ax.set_ylabel("share of pairs")
    ax.legend()
    return ax
