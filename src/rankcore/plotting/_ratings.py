"""Pictures of ratings: places with their doubt, and what calls take away of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankcore.plotting._style import BLUE, ORANGE, label_text, new_axes, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def plot_place_intervals(
    ratings: Any, *, level: float = 0.9, top: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the places of items, the best at the top, with intervals of credibility.

    Parameters
    ----------
    ratings : Ratings
        Of `rankcore.preference.rate`, or ``ratings_`` of a `PreferenceRanker`.
    level : float
        Probability of an interval.
    top : int, optional
        How many items to draw. None: all.

    Returns
    -------
    matplotlib.axes.Axes
        A line per item from its first to its last place, and a point at its place.

    Raises
    ------
    ValueError
        If ``level`` is not between 0 and 1.
    """
    intervals = ratings.place_interval(level)
    shown = ratings.ranking[:top]
    rows = np.arange(1, shown.size + 1)
    ax = ax or new_axes()
    ax.hlines(rows, intervals[shown, 0], intervals[shown, 1], color=BLUE, linewidth=2)
    ax.plot(rows, rows, "o", color=ORANGE, markersize=4)
    ax.set_yticks(rows, [label_text(item) for item in ratings.items[shown]])
    ax.set_ylim(shown.size + 0.7, 0.3)
    ax.set_xlabel(f"place, with probability {level:g}")
    return ax


@styled
def plot_doubt(ranker: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of pairs that is expected in the wrong order, against calls.

    Parameters
    ----------
    ranker : PreferenceRanker
        With ``doubt_``: after a ranking by ratings.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        For a ranker without ``doubt_``.
    """
    doubt = getattr(ranker, "doubt_", None)
    if doubt is None:
        raise TypeError('plot_doubt requires a ranker that has ranked with method="rating"')
    ax = ax or new_axes()
    ax.plot(doubt[:, 0], doubt[:, 1], color=BLUE)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("calls")
    ax.set_ylabel("pairs expected in the wrong order")
    return ax
