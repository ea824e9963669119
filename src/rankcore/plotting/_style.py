"""Shared style: colours, the style file, new axes, and label formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankcore._core.preprocessing import split_pipeline

# Three colours of the colour-blind-safe palette of Okabe and Ito.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"
# Characters of a name; longer ones leave too little room for the plot.
LONGEST_NAME = 60
STYLE = Path(__file__).with_name("rankcore.mplstyle")

Plot = TypeVar("Plot", bound=Callable[..., Any])


def styled(plot: Plot) -> Plot:
    """Draw in the style of this package; raise ModuleNotFoundError without Matplotlib."""

    @wraps(plot)
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
    """Create axes in a new figure of a size in inches."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height))[1]


def heat_map(
    ax: Any, values: Any, rows: Sequence[str], columns: Sequence[str], **colours: Any
) -> Any:
    """Draw a table as cells, with names of its rows and columns; return the image."""
    image = ax.imshow(values, **colours)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def diverging(most: float) -> dict[str, Any]:
    """Return options of `heat_map` for numbers up to ``most``: orange, white at 0, blue."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("rankcore", [ORANGE, "#ffffff", BLUE])
    return {"cmap": colours, "vmin": -most, "vmax": most, "aspect": "auto"}


def learner_of(model: Any) -> Any:
    """Return the last step of a pipeline, or the best model of a search."""
    return split_pipeline(model)[1]


def literal(name: Any) -> str:
    """Return a name that Matplotlib shows as it is, on one line: no formula, and not too long."""
    text = " ".join(str(name).splitlines())
    if len(text) > LONGEST_NAME:
        text = text[: LONGEST_NAME - 1].rstrip() + "…"
    return text.replace("$", r"\$")


def label_text(label: Any) -> str:
    """Format a label: 3.0 as 3."""
    label = label.item() if hasattr(label, "item") else label
    return f"{label:g}" if isinstance(label, float) else literal(label)


def value_text(value: Any) -> str:
    """Format a feature's value: a number, or the name of a category."""
    if value is None or value != value:
        return "missing"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def whole_ticks(axis: Any) -> None:
    """Place ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def bar_height(n: int) -> float:
    """Return the height in inches of n horizontal bars."""
    return 1.0 + 0.26 * max(n, 3)


def beside(ax: Any, text: str, y: Any, x: float = 1.02, **style: Any) -> None:
    """Write a text to the right of the axes."""
    transform = ax.get_yaxis_transform()
    ax.annotate(text, (x, y), xycoords=transform, va="center", annotation_clip=False, **style)


def signed_bars(ax: Any, names: Sequence[str], values: Any) -> None:
    """Draw horizontal bars, the first at the top, coloured by sign."""
    values = np.asarray(values, dtype=np.float64)
    colours = np.where(values >= 0, BLUE, ORANGE)
    ax.barh(np.arange(values.size), values, height=0.7, color=colours)
    name_lines(ax, names)


def draw_interval(
    ax: Any, place: Any, bounds: Sequence[float], value: float, colour: str, filled: bool
) -> None:
    """Draw a horizontal interval, and a point at its value."""
    ax.plot(bounds, [place, place], color=colour, linewidth=2)
    face = colour if filled else "white"
    ax.plot([value], [place], "o", color=colour, markerfacecolor=face, markersize=6)


def name_lines(ax: Any, names: Sequence[str]) -> None:
    """Name the lines of a plot, the first at the top."""
    ax.set_yticks(np.arange(len(names)), [*map(literal, names)])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
