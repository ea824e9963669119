"""Pictures of rankings: comparisons, queries, ROC curves, scores by rank, features.

Every function draws into the axes it is given, or into new ones, and returns them. They need
Matplotlib: ``pip install 'rankcore[plot]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rankcore._core.numbers import as_vector
from rankcore.metrics.auc import auc_score
from rankcore.metrics.names import greater_is_better
from rankcore.metrics.scorers import ranking_scores

if TYPE_CHECKING:
    from rankcore.bounds import MarginCurve
    from rankcore.metrics.comparison import Comparison

# Three of the colours that Okabe and Ito chose so that everybody can distinguish them.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ModuleNotFoundError(
            "plots need Matplotlib: pip install 'rankcore[plot]'", name="matplotlib"
        ) from None
    return pyplot.subplots(layout="constrained")[1]


def _learner(model: Any) -> Any:
    """What is at the end of a pipeline, the best of a search."""
    learner = getattr(model, "best_estimator_", model)
    return learner.steps[-1][1] if hasattr(learner, "steps") else learner


def plot_comparison(comparison: Comparison, *, ax: Any = None) -> Any:
    """Draw the contrasts of a comparison as a forest plot.

    Parameters
    ----------
    comparison : Comparison
        What `rankcore.metrics.compare` found.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A line a contrast, the first on top: the difference of the means with its interval, filled
        and coloured by the system that is better if Holm's p-value is below one minus the
        confidence level, and that p-value.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.

    Examples
    --------
    >>> import rankcore as rc
    >>> y, qid = [1, 0, 1, 0, 0, 1], [1, 1, 2, 2, 3, 3]
    >>> found = rc.metrics.compare({"a": [1, 2, 1, 2, 1, 2], "b": [2, 1, 2, 1, 1, 2]}, y, qid=qid)
    >>> rc.plotting.plot_comparison(found).get_xlabel()  # doctest: +SKIP
    'difference of the means, 95% interval'
    """
    ax = ax or _new_axes()
    places = np.arange(len(comparison), 0, -1)
    alpha = 1 - comparison.confidence_level
    for place, c in zip(places, comparison, strict=True):
        b_is_better = (c.difference > 0) == greater_is_better(c.measure)
        colour = GREY if c.p_holm >= alpha else BLUE if b_is_better else ORANGE
        ax.plot([c.low, c.high], [place, place], color=colour, linewidth=2)
        face = colour if c.p_holm < alpha else "white"
        ax.plot([c.difference], [place], "o", color=colour, markerfacecolor=face)
        text = f"p = {c.p_holm:.4f}"
        ax.annotate(text, (1.02, place), xycoords=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(places, [f"{c.b} - {c.a}, {c.measure}" for c in comparison])
    ax.set_ylim(0.5, len(comparison) + 0.5)
    ax.set_xlabel(f"difference of the means, {comparison.confidence_level:.0%} interval")
    return ax


def plot_query_differences(comparison: Comparison, contrast: int = 0, *, ax: Any = None) -> Any:
    """Draw by how much two systems differ in every query, in descending order.

    Parameters
    ----------
    comparison : Comparison
        What `rankcore.metrics.compare` found.
    contrast : int
        Which of its contrasts.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A bar a query, coloured by the system that is better in it.

    Raises
    ------
    IndexError
        If there is no such contrast.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    c = comparison[contrast]
    difference = np.sort(comparison.differences(contrast))[::-1]
    ax = ax or _new_axes()
    b_is_better = (difference > 0) == greater_is_better(c.measure)
    colours = np.where(b_is_better, BLUE, ORANGE)
    ax.bar(np.arange(1, difference.size + 1), difference, width=1.0, color=colours)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.axhline(c.difference, color=GREY, linestyle="--", label=f"mean {c.difference:+.4f}")
    ax.set_xlim(0.5, difference.size + 0.5)
    ax.set_xlabel(f"queries: {c.wins} won by {c.b}, {c.ties} tied, {c.losses} won by {c.a}")
    ax.set_ylabel(f"{c.measure}, {c.b} - {c.a}")
    ax.legend()
    return ax


def plot_roc(y_true: Any, y_score: Any, *, rel: float = 1.0, name: str = "", ax: Any = None) -> Any:
    """Draw the ROC curve with the band that ties leave open.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        Labels; positive from ``rel`` on.
    y_score : array-like of numbers, shape (n,)
        Scores.
    rel : float
        The smallest positive label.
    name : str
        For the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The curve through the distinct scores, and between its best and worst course within each
        group of equal scores a band; the legend has the three areas.

    Raises
    ------
    ValueError
        If one class is missing, and as `rankcore.metrics.auc_score`.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    areas = [
        cast(float, auc_score(y_true, y_score, rel=rel, ties=ties, empty="raise"))
        for ties in ("half", "pessimistic", "optimistic")
    ]
    labels, scores = as_vector(y_true, "y_true"), as_vector(y_score, "y_score")
    order = np.argsort(-scores, kind="stable")
    positive = labels[order] >= rel
    last = np.append(np.flatnonzero(np.diff(scores[order])), positive.size - 1)
    positives = np.append(0.0, np.cumsum(positive)[last] / positive.sum())
    negatives = np.append(0.0, np.cumsum(~positive)[last] / (~positive).sum())
    ax = ax or _new_axes()
    (line,) = ax.plot(negatives, positives, label=f"{name} AUC {areas[0]:.4f}".strip())
    if areas[2] > areas[1]:
        # Up first is the best course of a group, to the right first the worst.
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
    ax.axline((0, 0), slope=1, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("share of the negatives above the threshold")
    ax.set_ylabel("share of the positives above the threshold")
    ax.legend(loc="lower right")
    return ax


def plot_scores_by_rank(model: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """Draw how the scores of each true rank lie between the thresholds of an ordinal learner.

    Parameters
    ----------
    model : estimator
        Fitted, with one score a row (``project``) and ``thresholds_``: `PRank`,
        `OAPBPM`; or a pipeline or search around one.
    X : array-like or sparse, shape (n, n_features)
    y : array-like, shape (n,)
        True labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A violin a rank with its median, and the thresholds as lines.

    Raises
    ------
    TypeError
        For a model without thresholds, or with several scores a row.
    ValueError
        If ``X`` and ``y`` do not match, or ``y`` has a label that the model does not know.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    learner = _learner(model)
    scores = np.asarray(ranking_scores(model, X, None)) if hasattr(learner, "thresholds_") else None
    if scores is None or scores.ndim != 1:
        raise TypeError(
            f"{type(learner).__name__} has not one score a row with thresholds between the ranks, "
            "as PRank and OAPBPM have"
        )
    labels = np.asarray(y)
    if labels.shape != scores.shape:
        raise ValueError(f"X has {scores.size} rows, y has shape {labels.shape}")
    known = learner.classes_.tolist()
    unknown = set(labels.tolist()) - set(known)
    if unknown:
        raise ValueError(
            f"y has {min(unknown)!r}, which is not among the ranks {', '.join(map(str, known))}"
        )
    ax = ax or _new_axes()
    places = [i for i, label in enumerate(known) if (labels == label).any()]
    parts = ax.violinplot(
        [scores[labels == known[i]] for i in places],
        positions=places,
        widths=0.8,
        showmedians=True,
        showextrema=False,
    )
    for body in parts["bodies"]:
        body.set_facecolor(BLUE)
    parts["cmedians"].set_color(BLUE)
    for i, threshold in enumerate(learner.thresholds_):
        label = "thresholds" if i == 0 else None
        ax.axhline(threshold, color=ORANGE, linewidth=1, linestyle="--", label=label)
    ax.set_xticks(range(len(known)), list(map(str, known)))
    ax.set_xlabel("true rank")
    ax.set_ylabel("score")
    ax.legend()
    return ax


def plot_contribution(model: Any, feature: int | str, *, ax: Any = None) -> Any:
    """Draw what a feature adds to the score of a boosted ranker, as a function of its value.

    Parameters
    ----------
    model : RankBoost or BipartiteRankBoost
        Fitted; also at the end of a pipeline or the best of a search, whose transformed features
        it is then.
    feature : int or str
        Number of the column, or its name where the model was fitted to named ones.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The step function, a twentieth of their range beyond the thresholds on both sides, and a
        dashed line at what a missing value adds.

    Raises
    ------
    TypeError
        For a model without stumps.
    ValueError
        If there is no such feature.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    learner = _learner(model)
    if not hasattr(learner, "contribution"):
        raise TypeError(f"{type(learner).__name__} has no stumps, as RankBoost has")
    name = feature if isinstance(feature, str) else f"feature {feature}"
    thresholds, values, missing = learner.contribution(feature)
    finite = np.isfinite(thresholds)  # nothing is below -inf
    thresholds, values = thresholds[finite], values[values.size - finite.sum() - 1 :]
    ends = thresholds[[0, -1]] if thresholds.size else np.zeros(2)
    beyond = 0.05 * (ends[1] - ends[0]) or 1.0
    ax = ax or _new_axes()
    edges = [ends[0] - beyond, *thresholds, ends[1] + beyond]
    ax.stairs(values, edges, baseline=None, color=BLUE, linewidth=1.5)
    ax.axhline(missing, color=ORANGE, linewidth=1, linestyle="--", label="missing")
    ax.set_xlabel(name)
    ax.set_ylabel("added to the score")
    ax.legend()
    return ax


def plot_ranksvm_path(path: Any, *, ax: Any = None) -> Any:
    """Draw what ranking SVMs reach on held-out queries, as a function of C.

    Parameters
    ----------
    path : SVMPath or RankSVMCV
        Measured on held-out rows; fitted.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        The measure, of cross-validation its mean with one standard error on both sides, and the
        chosen C as a dashed line.

    Raises
    ------
    ValueError
        If a path was not measured.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    if hasattr(path, "scores_"):
        Cs, values = path.Cs_, path.scores_.mean(axis=0)
        name, best = path.scoring, path.C_
    elif path.measure is None:
        raise ValueError("nothing was measured along the path: give ranksvm_path an eval_set")
    else:
        Cs, values, name, best = path.Cs, path.values, path.measure, path.Cs[path.best]
    ax = ax or _new_axes()
    if hasattr(path, "scores_") and len(path.scores_) > 1:
        error = path.scores_.std(axis=0, ddof=1) / np.sqrt(len(path.scores_))
        ax.fill_between(Cs, values - error, values + error, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(Cs, values, "o-", color=BLUE, markersize=4)
    ax.axvline(best, color=ORANGE, linewidth=1, linestyle="--", label=f"C = {best:.3g}")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel(f"{name if isinstance(name, str) else 'measure'}, held-out queries")
    ax.legend()
    return ax


def plot_margin_curve(
    curve: MarginCurve,
    *,
    certificate: Any = None,
    held_out: float | None = None,
    norm: float = 1.0,
    ax: Any = None,
) -> Any:
    """Draw the empirical margin loss as a function of the margin, beside what it proves.

    Parameters
    ----------
    curve : MarginCurve
    certificate : array-like of float, shape (n_points,), optional
        Bounds of the misranking of unseen pairs, as ``curve.certificate`` gives them.
    held_out : float, optional
        Misranking of held-out pairs.
    norm : float, default=1.0
        By which margins are divided: |w| for geometric ones.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        On a logarithmic scale of margins; the least bound is marked.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    ax = ax or _new_axes()
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


def plot_reliability(
    y_true: Any, y_proba: Any, *, labels: Any = None, n_bins: int = 10, ax: Any = None
) -> Any:
    """Draw how often ranks above each threshold occur, by how probable they were called.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True labels.
    y_proba : array-like, shape (n, k)
        Probabilities of the ranks, lowest first.
    labels : array-like, shape (k,), optional
        The labels of the columns, lowest first. None: the distinct numbers in ``y_true``.
    n_bins : int
        Rows are cut into as many bins of equal size by their probability.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A line per threshold; on the diagonal, events are as frequent as they were called probable.

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

    table, place, known = checked_probabilities(y_true, y_proba, labels)
    ax = ax or _new_axes()
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    above = 1 - np.cumsum(table, axis=1)
    colours = colormaps["viridis"](np.linspace(0, 0.9, len(known) - 1))
    for r, colour in enumerate(colours):
        share, called = calibration_curve(
            place > r, np.clip(above[:, r], 0, 1), n_bins=n_bins, strategy="quantile"
        )
        rank = known[r].item()
        label = f"above {rank:g}" if isinstance(rank, float) else f"above {rank}"
        ax.plot(called, share, color=colour, marker="o", markersize=3, linewidth=1.5, label=label)
    ax.set_xlabel("probability")
    ax.set_ylabel("share of rows")
    ax.set_aspect("equal")
    ax.legend(title="rank")
    return ax
