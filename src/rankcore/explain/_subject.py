"""The subject of an explanation: a learner, its preprocessing steps, and its rows with names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rankcore._core.contributions import dense_values, is_additive
from rankcore._core.front import Display, names_after, take_apart, takes_texts, transformed
from rankcore._core.inputs import n_rows_of
from rankcore._core.model_spec import Specified
from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore.metrics.tables import Table
from rankcore.ordinal._held_out import thawed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Subject:
    """A fitted model: a learner alone, at the end of a pipeline, or the best of a search.

    ``inner`` is the learner after the steps in ``front``, possibly the one ``within`` a calibrated
    learner; ``display`` transforms rows to values for display, before scaling.
    The ``names`` of features are those of the learner, of its steps, or numbers.
    """

    def __init__(self, model: Any, feature_names: Sequence[str] | None = None) -> None:
        self.within: Any = None
        self.front, self.learner = take_apart(thawed(model))
        if not isinstance(self.learner, Specified):
            raise TypeError(
                "model must be a learner of rankcore that scores rows, or a pipeline or search of "
                f"one; found {type(self.learner).__name__}"
            )
        check_is_fitted(self.learner)
        self.inner = cast(Any, self.learner)
        if type(self.learner).__name__ == "CalibratedOrdinal":
            inside, self.within = take_apart(thawed(self.inner.estimator_))
            if inside and hasattr(self.within, "project"):
                self.front, self.inner = self.front + inside, self.within
        self.display = Display(self.front)
        self.names = names_after(self.front, self.inner, feature_names)

    @property
    def name(self) -> str:
        """Name of the learner in messages."""
        return type(self.learner).__name__

    @property
    def additive(self) -> bool:
        """Whether the contribution of a feature does not depend on the other features."""
        return is_additive(self.scoring)

    @property
    def scoring(self) -> Scoring:
        """Scoring form of the learner."""
        scoring = self.learner._spec().scoring
        if scoring is None:
            raise TypeError(f"{self.name} has no scoring form")
        return scoring

    def transformed(self, X: Any) -> Any:
        """Rows after the preprocessing steps."""
        return transformed(self.front, X)

    def one_row(self, x: Any, name: str) -> Any:
        """A single row, as a matrix, frame or list of one row.

        After steps it may be a text, or have columns that are not numeric.
        """
        if isinstance(x, str | bytes):
            x = [x]
        elif takes_texts(self.front) or (isinstance(x, list | tuple) and len(x) == 1 and _texts(x)):
            x = x if hasattr(x, "shape") else list(x)
        elif hasattr(x, "to_frame") and not hasattr(x, "columns"):  # a row of a pandas frame
            frame = x.to_frame().T
            x = frame.infer_objects()
            if self.front and x.dtypes.nunique() > 1:  # a missing category is not a number
                missing = frame.columns[frame.isna().to_numpy()[0]]
                x = x.astype({name: object for name in missing})
        else:
            x = x if sparse.issparse(x) or hasattr(x, "columns") else np.asarray(x)
            x = x.reshape((1, -1)) if x.ndim == 1 else x
        if n_rows_of(x) != 1:
            raise ValueError(f"{name} must be one row; found {n_rows_of(x)}")
        return x

    def values(self, X: Any) -> Floats:
        """Values of rows for display, dense; categories as numbers."""
        if self.display.scales:
            return self.display.values(X)
        return dense_values(self.inner._more_rows(self.transformed(X)))

    def dense(self, X: Any, background: Any = None, output: Any = None) -> tuple[Floats, float]:
        """Contributions of features to the scores of rows, as a dense matrix, and the base."""
        behind = None if background is None else self.transformed(background)
        found = self.inner.contributions(self.transformed(X), behind, output=output)
        values = found.values
        return (values if isinstance(values, np.ndarray) else values.toarray()), found.base


def take(X: Any, rows: Any) -> Any:
    """Some rows of a matrix, frame or list of texts."""
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    if isinstance(X, list | tuple) and not _texts(X):
        X = np.asarray(X)
    return _safe_indexing(X, rows)


def _texts(X: Sequence[Any]) -> bool:
    """Whether a sequence starts with a text."""
    return bool(X) and isinstance(X[0], str | bytes)


def number(value: float) -> str:
    """Short form of a feature's value."""
    return "missing" if value != value else f"{value:.4g}"


def signed(value: float) -> str:
    """Format a contribution with its sign; zero is 0."""
    text = f"{value:+.4f}"
    return "0" if float(text) == 0 else text


class Shown:
    """Base of results for display: text, HTML in notebooks, tables of Rich, figures."""

    _listed = 10  # features in text output; others are summed in one line
    _plot: str  # name of its function in `rankcore.plotting`

    @abstractmethod
    def headline(self) -> str:
        """One-sentence summary."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Result as tables."""

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
        """Tables for Rich consoles."""
        from rich.console import Group
        from rich.text import Text

        return Group(Text(self.headline()), *(table.rich() for table in self.tables()))

    def _repr_html_(self) -> str:
        """Tables for notebooks."""
        from html import escape

        tables = "".join(table.html() for table in self.tables())
        return f"<div><p>{escape(self.headline())}</p>{tables}</div>"
