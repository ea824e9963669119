"""Plots of learners on streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rankcore.plotting._style import GREY, literal, new_axes, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankcore.online import StreamEvaluation


@styled
def plot_stream(
    found: StreamEvaluation | Mapping[str, StreamEvaluation],
    *,
    metric: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measure in the windows of a stream, for one learner or several.

    Parameters
    ----------
    found : StreamEvaluation, or mapping of str to StreamEvaluation
        Results of `rankcore.online.evaluate`, by the name of the learner.
    metric : str, optional
        A measure of all results; by default the first.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; None: new axes.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each learner; for one alone also the measure over the whole stream so far, in
        grey.

    Raises
    ------
    ValueError
        If a result is empty, or has no such measure.
    ModuleNotFoundError
        If Matplotlib is not installed.
    """
    results = dict(found) if isinstance(found, Mapping) else {"": found}
    for name, evaluation in results.items():
        of_learner = f" of {name}" if name else ""
        if not evaluation.windows:
            raise ValueError(f"the evaluation{of_learner} has no windows: its stream was empty")
        metric = next(iter(evaluation.overall)) if metric is None else metric
        if metric not in evaluation.overall:
            raise ValueError(
                f"metric must be a measure of the evaluation{of_learner}: "
                f"{', '.join(evaluation.overall)}; got {metric!r}"
            )
    assert metric is not None
    ax = ax or new_axes()
    for name, evaluation in results.items():
        seen = [window.seen for window in evaluation.windows]
        if not name:
            values = [window.overall[metric] for window in evaluation.windows]
            ax.plot(seen, values, color=GREY, linewidth=1, label="since the begin")
        latest = np.array([window.latest[metric] for window in evaluation.windows])
        ax.plot(seen, latest, label=literal(name) or "in the window")
    ax.set_xlabel(f"{next(iter(results.values())).unit} of the stream")
    ax.set_ylabel(metric.replace("_", " "))
    ax.legend()
    return ax
