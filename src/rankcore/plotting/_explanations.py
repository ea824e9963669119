"""Plots of explanations: pairs, queries, ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankcore._core.numbers import largest
from rankcore.plotting._style import (
    BLUE,
    GREY,
    ORANGE,
    bar_height,
    beside,
    diverging,
    heat_map,
    label_text,
    literal,
    new_axes,
    styled,
    value_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def plot_pair(why: Any, *, max_features: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the contributions to the difference of two scores as a waterfall.

    Parameters
    ----------
    why : PairExplanation
        Result of `rankcore.explain.pair`.
    max_features : int
        Number of features with the largest contributions to draw; the others are summed.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        From the score of the second row, at the top, to that of the first, at the bottom; each bar
        starts where the one above it ends, and shows the feature's values in both rows.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    listed = largest(why.contributions, max_features)
    names = [
        f"{literal(why.feature_names[j])}: {literal(a)} against {literal(b)}"
        for j, a, b in zip(
            listed,
            map(value_text, why.values_a[listed]),
            map(value_text, why.values_b[listed]),
            strict=True,
        )
    ]
    ax = ax or new_axes(7.0, bar_height(len(listed) + 1) + 0.4)
    _waterfall(ax, why.score_b, why.contributions, listed, names, why.score_a)
    ax.set_ylim(ax.get_ylim()[0] + 0.7, -0.7)  # space for the score at the bottom
    ax.set_xlabel(why.score_name)
    ax.set_title(f"{literal(why.a)} against {literal(why.b)}: {why.difference:+.4f}", pad=22)
    _above(ax, f"{literal(why.b)} {why.score_b:.4g}", why.score_b)
    _above(ax, f"{literal(why.a)} {why.score_a:.4g}", why.score_a, 0.0, xytext=(4, 4), ha="left")
    ax.axvline(why.score_b, color="black", linewidth=0.8)
    ax.axvline(why.score_a, color="black", linewidth=0.8, linestyle="--")
    return ax


def _above(ax: Any, text: str, x: float, edge: float = 1.0, **style: Any) -> None:
    """Write a text above the axes or, with ``edge=0``, above their lower edge."""
    style = {"xytext": (0, 3), "ha": "center", **style}
    transform = ax.get_xaxis_transform()
    ax.annotate(
        text, (x, edge), xycoords=transform, textcoords="offset points", va="bottom", **style
    )


def _waterfall(
    ax: Any, start: float, parts: Any, listed: list[int], names: list[str], end: float
) -> None:
    """Draw the bars of a waterfall; features that are not listed share one bar."""
    values = [float(parts[j]) for j in listed]
    others = int(np.count_nonzero(parts)) - len(listed)
    if others:
        values.append(end - start - sum(values))
        names = [*names, f"{others} others"]
    reached = start + np.cumsum([0.0, *values])
    span = np.ptp(reached) or 1.0
    for place, value in enumerate(values):
        colour = BLUE if value >= 0 else ORANGE
        ax.barh(place, value, left=reached[place], height=0.7, color=colour)
        right = max(reached[place], reached[place + 1])
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
        ax.text(right + 0.01 * span, place, f"{value:+.3g}", va="center", fontsize=8, bbox=behind)
        if place + 1 < len(values):
            ax.plot([reached[place + 1]] * 2, [place + 0.35, place + 0.65], color=GREY, lw=0.8)
    ax.set_yticks(range(len(values)), names)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(values), 1) - 0.2, -0.7)
    ax.set_xlim(reached.min() - 0.05 * span, reached.max() + 0.14 * span)


@styled
def plot_query(
    found: Any, *, max_features: int = 8, max_documents: int = 25, ax: Axes | None = None
) -> Axes:
    """Draw the documents of a query in ranked order, with contributions to their scores.

    Parameters
    ----------
    found : QueryExplanation
        Result of `rankcore.explain.query`.
    max_features : int
        Number of features to draw, by their effect on the top.
    max_documents : int
        Number of documents to draw.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One line per document, the best at the top: place, name, label, the contributions of
        features relative to the mean of the query, and the score. A line marks the end of the top.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    listed = largest(found.decided, max_features)
    n = min(found.rows.size, max_documents)
    shown = found.contributions[:n][:, listed]
    names = [literal(found.feature_names[j]) for j in listed]
    if np.count_nonzero(found.contributions.any(axis=0)) > len(listed):
        rest = np.delete(found.contributions[:n], listed, axis=1).sum(axis=1)
        shown = np.column_stack([shown, rest])
        names.append("others")
    # The colour scale is that of single features; the sum of the others may exceed it.
    most = np.abs(shown[:, : len(listed)]).max(initial=0.0) or 1.0
    labels = [""] * n
    if found.labels is not None:
        labels = [f"  [{label_text(label)}]" for label in found.labels[:n]]
    lines = [f"{i + 1}.  {literal(found.names[i])}{labels[i]}" for i in range(n)]
    ax = ax or new_axes(2.8 + 0.55 * len(names), 1.5 + 0.26 * n)
    image = heat_map(ax, shown, lines, names, **diverging(most))
    ax.set_xticks(range(len(names)), names, rotation=35, ha="right")
    for i, j in np.ndindex(shown.shape):
        dark = abs(shown[i, j]) > 0.7 * most
        text = f"{shown[i, j]:+.2f}" if abs(shown[i, j]) >= 0.005 else "0"
        colour = "white" if dark else "black"
        ax.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    for i in range(n):
        beside(ax, f"{found.scores[i]:.3f}", i)
    beside(ax, "score", -0.9)
    if found.top_k < n:
        ax.axhline(found.top_k - 0.5, color="black", linewidth=1.2)
    more = f", {found.rows.size - n} more" if found.rows.size > n else ""
    shown_labels = ", [label]" if found.labels is not None else ""
    ax.set_title(
        f"{literal(found.title)}: place, document{shown_labels}; top {found.top_k}{more}", pad=18
    )
    ax.figure.colorbar(
        image,
        ax=ax,
        label=f"contribution to the {found.score_name}, relative to the mean of the query",
        orientation="horizontal",
        shrink=0.8,
        aspect=40,
    )
    return ax


@styled
def plot_rank(why: Any, *, max_features: int = 10, ax: Axes | None = None) -> Axes:
    """Draw the contributions to a row's score, and the thresholds.

    Parameters
    ----------
    why : RankExplanation
        Result of `rankcore.explain.rank`.
    max_features : int
        Number of features with the largest contributions to draw; the others are summed.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A waterfall from the score of the background to that of the row, relative to the nearest
        threshold; the other thresholds are lines if all apply to the same score.

    Raises
    ------
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    near = why.nearest()
    parts = why.contributions[:, near]
    listed = largest(parts, max_features)
    names = [
        f"{literal(why.feature_names[j])} = {literal(value_text(why.values[j]))}" for j in listed
    ]
    ax = ax or new_axes(7.0, bar_height(len(listed) + 1) + 0.4)
    _waterfall(ax, why.bases[near], parts, listed, names, why.distances[near])
    is_shared = bool((why.contributions == why.contributions[:, :1]).all())
    shown = range(why.distances.size) if is_shared else [near]
    places = {t: why.distances[near] - why.distances[t] for t in shown}
    reached = [*ax.get_xlim(), *(1.05 * place for place in places.values())]
    ax.set_xlim(min(reached), max(reached))
    for t, place in places.items():
        ax.axvline(place, color=ORANGE, linewidth=1, linestyle="--", zorder=0)
        _above(ax, _threshold(why, t), place, color=ORANGE)
    ax.axvline(why.distances[near], color="black", linewidth=1)
    what = f"score beyond threshold {_threshold(why, near)}"
    if why.log_odds:
        low, high = map(label_text, why.labels[near : near + 2])
        what = f"log-odds of {high} against {low}"
    ax.set_xlabel(f"{what}; black: this row")
    ax.set_title(f"predicted: {label_text(why.label)}", pad=18)
    return ax


def _threshold(why: Any, t: int) -> str:
    return f"{label_text(why.labels[t])} | {label_text(why.labels[t + 1])}"
