"""Plots of comparisons, queries, curves, ranks, features and explanations.

Every function draws into the given axes, or into new ones, and returns them. The functions share
the style file ``STYLE`` and a colour-blind-safe palette. They require Matplotlib:
``pip install 'rankcore[plot]'``.
"""

from rankcore.plotting._comparisons import (
    plot_comparison,
    plot_place_intervals,
    plot_query_differences,
)
from rankcore.plotting._curves import (
    plot_learning_curve,
    plot_margin_curve,
    plot_ranksvm_path,
    plot_roc,
)
from rankcore.plotting._explanations import plot_pair, plot_query, plot_rank
from rankcore.plotting._features import (
    plot_contributions,
    plot_importances,
    plot_weights,
)
from rankcore.plotting._ranks import plot_confusion, plot_reliability, plot_scores_by_rank
from rankcore.plotting._streams import plot_stream
from rankcore.plotting._style import BLUE, GREY, ORANGE, STYLE

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "STYLE",
    "plot_comparison",
    "plot_confusion",
    "plot_contributions",
    "plot_importances",
    "plot_learning_curve",
    "plot_margin_curve",
    "plot_pair",
    "plot_place_intervals",
    "plot_query",
    "plot_query_differences",
    "plot_rank",
    "plot_ranksvm_path",
    "plot_reliability",
    "plot_roc",
    "plot_scores_by_rank",
    "plot_stream",
    "plot_weights",
]
