"""Plots of comparisons: of systems by a measure, and of items by ratings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankcore._core.params import COUNT
from rankcore.metrics.names import greater_is_better
from rankcore.plotting._style import (
    BLUE,
    GREY,
    ORANGE,
    bar_height,
    beside,
    draw_interval,
    label_text,
    literal,
    new_axes,
    styled,
    whole_ticks,
)

# Maximum number of queries whose ids fit under bars.
FEW = 40

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankcore.metrics.comparison import Comparison


@styled
def plot_comparison(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw the contrasts of a comparison as a forest plot.

    Parameters
    ----------
    comparison : Comparison
        Result of `rankcore.metrics.compare`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One line per contrast, the first at the top: the difference of the means with its interval
        and the p-value after Holm's correction. Markers are filled, in the colour of the better
        system, if the p-value is below one minus the confidence level.

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
    n = len(comparison)
    ax = ax or new_axes(height=bar_height(n))
    places = np.arange(n, 0, -1)
    alpha = 1 - comparison.confidence_level
    for place, c in zip(places, comparison, strict=True):
        b_is_better = (c.difference > 0) == greater_is_better(c.measure)
        colour = GREY if c.p_holm >= alpha else BLUE if b_is_better else ORANGE
        draw_interval(ax, place, [c.low, c.high], c.difference, colour, c.p_holm < alpha)
        beside(ax, p_text(c.p_holm), place)
    beside(ax, "p (Holm)", n + 0.75)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(places, [f"{literal(c.b)} - {literal(c.a)}, {c.measure}" for c in comparison])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(0.5, n + 0.5)
    ax.set_xlabel(
        f"difference of the means, {comparison.confidence_level:.0%} interval; "
        f"filled: p {short(alpha, '<')} after Holm"
    )
    return ax


def p_text(p_value: float) -> str:
    """Format a p-value."""
    return "< .001" if p_value < 0.001 else short(p_value)


def short(p_value: float, sign: str = "") -> str:
    """Format a number up to 1 without the 0 before its point."""
    text = f"{p_value:.3f}".removeprefix("0") if p_value < 0.9995 else "1"
    text = text.rstrip("0") if sign else text
    return f"{sign} {text}".strip()


@styled
def plot_query_differences(
    comparison: Comparison, contrast: int = 0, *, ax: Axes | None = None
) -> Axes:
    """Draw the differences of two systems by query, or by row, in descending order.

    Parameters
    ----------
    comparison : Comparison
        Result of `rankcore.metrics.compare`.
    contrast : int
        Index of a contrast.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One bar per query, or per row, coloured by the better system, with the id of the query if
        there are up to 40; otherwise only the first and the last have ids.

    Raises
    ------
    IndexError
        If there is no such contrast.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    c = comparison[contrast]
    measured = comparison.evaluations[c.a]
    differences = comparison.differences(contrast)
    order = np.argsort(-differences, kind="stable")
    difference = differences[order]
    names = [literal(name) for name in comparison.queries(contrast)[order]]
    a, b = literal(c.a), literal(c.b)
    ax = ax or new_axes()
    b_is_better = (difference > 0) == greater_is_better(c.measure)
    colours = np.where(b_is_better, BLUE, ORANGE)
    width = 0.8 if difference.size <= FEW else 1.0
    ax.bar(np.arange(1, difference.size + 1), difference, width=width, color=colours)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.axhline(c.difference, color=GREY, linestyle="--", label=f"mean {c.difference:+.4f}")
    ax.set_xlim(0.5, difference.size + 0.5)
    if difference.size <= FEW:
        ax.set_xticks(np.arange(1, difference.size + 1), names)
        ax.tick_params(axis="x", rotation=90 if max(map(len, names)) > 2 else 0)
    else:
        whole_ticks(ax.xaxis)
        # The queries with the maximum differences.
        for place, y, side in ((0, difference[0], "left"), (-1, difference[-1], "right")):
            if y != 0:
                x = difference.size if place else 1
                ax.annotate(
                    f"{measured.unit} {names[place]}",
                    (x, y),
                    textcoords="offset points",
                    xytext=(6 if side == "left" else -6, 0),
                    ha=side,
                    va="center",
                )
    ax.set_xlabel(f"{measured.units}: {c.wins} won by {b}, {c.ties} tied, {c.losses} won by {a}")
    ax.set_ylabel(f"{c.measure}, {b} - {a}")
    ax.legend()
    return ax


@styled
def plot_place_intervals(
    ratings: Any, *, level: float = 0.9, top: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the places of items, the best at the top, with credible intervals.

    Parameters
    ----------
    ratings : Ratings
        Result of `rankcore.preference.rate`, or ``ratings_`` of a `PreferenceRanker`.
    level : float
        Probability of an interval.
    top : int, optional
        Number of items to draw. None: all.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        One line per item over the interval of its place, and a point at its place. New axes are
        high enough for the names, of which the first 60 characters are shown.

    Raises
    ------
    ValueError
        If ``level`` is not between 0 and 1.
    TypeError
        If ``ratings`` are of another type.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    if not hasattr(ratings, "place_interval"):
        raise TypeError(
            f"ratings must be Ratings, as rate and Sampler.ratings return; got "
            f"{type(ratings).__name__}"
        )
    (COUNT | None).check(top, "top")
    intervals = ratings.place_interval(level)
    shown = ratings.ranking[:top]
    rows = np.arange(1, shown.size + 1)
    ax = ax or new_axes(height=max(4.0, 0.22 * shown.size + 1))
    ax.hlines(rows, intervals[shown, 0], intervals[shown, 1], color=BLUE, linewidth=2)
    ax.plot(rows, rows, "o", color=ORANGE, markersize=4)
    ax.set_yticks(rows, [label_text(item) for item in ratings.items[shown]])
    ax.set_ylim(shown.size + 0.7, 0.3)
    ax.set_xlabel(f"place, with probability {level:g}")
    return ax
