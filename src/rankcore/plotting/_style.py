"""Shared style: colours, the style file, new axes, and label formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankcore._core.docs import documented
from rankcore._core.front import take_apart

# Three colours of the colour-blind-safe palette of Okabe and Ito.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"
STYLE = Path(__file__).with_name("rankcore.mplstyle")

Plot = TypeVar("Plot", bound=Callable[..., Any])


_SHARED = """\
Pictures.

Parameters
----------
ax : matplotlib.axes.Axes, optional
    Axes to draw into; None: new axes.

Raises
------
ModuleNotFoundError
    If Matplotlib is not installed."""


def styled(plot: Plot) -> Plot:
    """Draw in the style of this package; document ``ax`` and the error if Matplotlib is missing."""

    @wraps(documented(_SHARED)(plot))
    def draw(*args: Any, **kwargs: Any) -> Any:
        try:
            from matplotlib import style
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            raise ModuleNotFoundError(
                "plots require Matplotlib: pip install 'rankcore[plot]'", name="matplotlib"
            ) from None
        with style.context(STYLE):
            return plot(*args, **kwargs)

    return draw  # type: ignore[return-value]


def new_axes(width: float = 6.4, height: float = 4.0) -> Any:
    """New axes in a new figure of a size in inches."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height))[1]


def diverging() -> Any:
    """Diverging colours from orange over white to blue, for numbers around 0."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("rankcore", [ORANGE, "#ffffff", BLUE])


def learner_of(model: Any) -> Any:
    """The last step of a pipeline, or the best model of a search."""
    return take_apart(model)[1]


def label_text(label: Any) -> str:
    """Format a label: 3.0 as 3."""
    label = label.item() if hasattr(label, "item") else label
    return f"{label:g}" if isinstance(label, float) else str(label)


def whole_ticks(axis: Any) -> None:
    """Place ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def bar_height(n: int) -> float:
    """Height in inches of n horizontal bars."""
    return 1.0 + 0.26 * max(n, 3)


def signed_bars(ax: Any, names: Sequence[str], values: Any, starts: Any = None) -> None:
    """Horizontal bars, the first at the top, coloured by sign; ``starts`` are their origins."""
    values = np.asarray(values, dtype=np.float64)
    places = np.arange(values.size)
    colours = np.where(values >= 0, BLUE, ORANGE)
    ax.barh(places, values, left=starts, height=0.7, color=colours)
    ax.set_yticks(places, names)
    ax.set_ylim(values.size - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
