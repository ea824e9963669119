"""Results of explanations as text, HTML, tables and figures."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from rankcore.metrics.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def is_known(value: Any) -> bool:
    """Return whether a value is neither None nor NaN."""
    return value is not None and bool(value == value)


def number(value: Any) -> str:
    """Return the short form of a feature's value: a number, or the name of a category."""
    if not is_known(value):
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def typical(values: Any, categorical: bool) -> str:
    """Return the mean of a feature's values, or its most frequent category with its fraction."""
    present = [value for value in values.tolist() if is_known(value)]
    if not present:
        return "missing"
    if not categorical:
        return number(float(np.mean(present)))
    value, count = Counter(present).most_common(1)[0]
    return f"{value} ({count / len(values):.0%})"


def signed(value: float) -> str:
    """Format a contribution with its sign; zero is 0."""
    text = f"{value:+.4f}"
    return "0" if float(text) == 0 else text


class ExplanationResult:
    """Base of results for display: text, HTML in notebooks, tables of Rich, figures."""

    _listed = 10  # features in text output; others are summed in one line
    _plot: str  # name of its function in `rankcore.plotting`

    @abstractmethod
    def headline(self) -> str:
        """Summarise in one sentence."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Return the result as tables."""

    def plot(self, *, ax: Axes | None = None, **options: int) -> Axes:
        """Draw by the function of `rankcore.plotting` for this kind of result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
        **options : int
            ``max_features`` and, for a query, ``max_documents``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from rankcore import plotting

        drawn: Axes = getattr(plotting, self._plot)(self, ax=ax, **options)
        return drawn

    def __str__(self) -> str:
        return "\n\n".join([self.headline(), *map(str, self.tables())])

    def __rich__(self) -> Any:
        """Return the tables for Rich consoles."""
        from rich.console import Group
        from rich.text import Text

        return Group(Text(self.headline()), *(table.rich() for table in self.tables()))

    def _repr_html_(self) -> str:
        """Return the tables for notebooks."""
        from html import escape

        tables = "".join(table.html() for table in self.tables())
        return f"<div><p>{escape(self.headline())}</p>{tables}</div>"
