"""Rows that come in blocks, from files that need not fit into memory: what learners ask of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankcore._core.concurrency import raise_signals, signals_held
from rankcore._ext.rows import Rows
from rankcore.progress import Progress, translated

# Seconds between two copies of the state that an interrupted fit can go back to.
COPY_SECONDS = 1.0


@dataclass(frozen=True)
class Survey:
    """What a first reading of all rows finds.

    Attributes
    ----------
    n_rows, n_features, n_values : int
        Shape, and how many values are stored.
    labels : ndarray, shape (n_labels,)
        The distinct labels, ascending; int64 if all are whole numbers.
    counts : ndarray of int64, shape (n_labels,)
        Rows of each label.
    mean_square : float
        The power of two nearest to the mean squared length of the rows.
    magnitudes : ndarray of float64, shape (n_features,)
        Greatest magnitude of each feature.
    in_queries : bool
        Whether the rows have query ids.
    """

    n_rows: int
    n_features: int
    n_values: int
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    mean_square: float
    magnitudes: NDArray[np.float64]
    in_queries: bool


@dataclass(frozen=True)
class Window:
    """Rows that are in memory together, of whole queries.

    Attributes
    ----------
    rows : Rows
        Canonical.
    labels : ndarray of float64, shape (n_rows,)
    queries : ndarray of int64, shape (n_rows,), or None
        A number for the query of each row.
    number : int
        Windows of this pass that came before.
    done : int
        Bytes of this pass up to and with these rows.
    """

    rows: Rows
    labels: NDArray[np.float64]
    queries: NDArray[np.int64] | None
    number: int
    done: int


@dataclass(frozen=True)
class Position:
    """How far a fit has come.

    Attributes
    ----------
    epoch : int
        The pass under way, from 1 on.
    window : int
        Windows of it that were learned.
    seed : int
        Of the order of all passes.
    """

    epoch: int
    window: int
    seed: int


class RowBlocks(ABC):
    """Rows on disk. Not public: `rankcore.datasets.open_rows` makes them.

    Attributes
    ----------
    n_features : int or None
        None if only a survey can say.
    size : int
        Bytes that a pass reads, for progress.
    surveyed : bool
        Whether a survey costs nothing.
    dtype : dtype
        float32 or float64.
    feature_names : ndarray of str, shape (n_features,), or None
    """

    n_features: int | None
    size: int
    surveyed: bool
    dtype: np.dtype[Any]
    feature_names: NDArray[Any] | None = None
    _survey: Survey | None

    @abstractmethod
    def survey(self) -> Survey:
        """What a reading of all rows finds; reads them at most once."""

    @abstractmethod
    def windows(
        self, n_features: int, order: tuple[int, int] | None, first: int
    ) -> Iterator[Window]:
        """The rows of a pass, each window valid until the next is asked for.

        Parameters
        ----------
        n_features : int
        order : (seed, epoch) or None
            What an order of blocks is drawn from; None for that of the file.
        first : int
            The window to begin with.
        """

    def widen(self, n_features: int) -> None:
        """Add features that are 0 in all rows, so that there are as many."""
        known = self.survey()
        if n_features > known.n_features:
            magnitudes = np.zeros(n_features)
            magnitudes[: known.n_features] = known.magnitudes
            self._survey = replace(known, n_features=n_features, magnitudes=magnitudes)
            self.n_features = n_features

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: rows on disk are not laid out in memory."""
        raise TypeError(
            "rows from open_rows are no array: only the fit of a rankcore learner takes them. To "
            "scale them, give open_rows(..., scaler=StandardScaler())"
        )

    @abstractmethod
    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Labels and queries of all rows; raise ValueError if they take a reading of all."""

    @abstractmethod
    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """X, y and qid of all rows, in place; raise ValueError if they are not laid out so."""


@dataclass(frozen=True)
class Pauses:
    """A fit that can be interrupted and go on later.

    Attributes
    ----------
    save : callable
        Takes a fitted estimator, the `Position` that it is at, whether it was interrupted there
        (otherwise a pass has just ended), and the fitted estimator of the best pass by held-out
        rows, or None.
    resume : (estimator, Position, estimator or None) or None
        What ``save`` was given.
    """

    save: Callable[[Any, Position, bool, Any], None]
    resume: tuple[Any, Position, Any] | None = None


def with_parameters(fitted: Any, parameters: Any, best: int) -> Any:
    """A copy of an estimator with the parameters of its best pass; None if there are none."""
    if parameters is None:
        return None
    copied = copy(fitted)
    copied._state = deepcopy(fitted._state)
    copied._state.put_back(parameters)
    copied.best_iteration_ = best
    return copied


def between_passes(pauses: Pauses | None) -> AbstractContextManager[None]:
    """Keep Ctrl-C, between two passes of a fit that can go on later, until the next begins.

    `run_windows` then finds it, and saves.
    """
    return nullcontext() if pauses is None else signals_held()


def run_windows(
    blocks: RowBlocks,
    n_features: int,
    shuffle: bool,
    position: Position,
    n_epochs: int,
    snapshot: Callable[[], Callable[[], None]],
    visit: Callable[[Window], None],
    save: Callable[[Position, bool], None] | None,
) -> None:
    """Visit the windows of one pass.

    Parameters
    ----------
    blocks : RowBlocks
    n_features : int
    shuffle : bool
        Whether the order of blocks is drawn.
    position : Position
        Where to begin.
    n_epochs : int
        For progress.
    snapshot : callable
        Returns a function that puts the present state back.
    visit : callable
        Learns a window.
    save : callable or None
        Called with the position of the last copy, and True, if the fit is interrupted, in the state
        of that copy.
    """
    epoch, total = position.epoch, max(blocks.size, 1)
    order = (position.seed, epoch) if shuffle else None
    done = last = 0
    first = position.window

    def in_bytes(now: Progress) -> Progress:
        here = last + (done - last) * now.done // max(now.total, 1)
        return Progress(epoch, n_epochs, min(here, total), total, now.value, now.measure, "bytes")

    with translated(in_bytes):
        if save is None:
            for window in blocks.windows(n_features, order, position.window):
                last, done = done, window.done
                visit(window)
            return
        # Signals are raised where the state is whole, or can be put back.
        with signals_held():
            restore, since = snapshot(), monotonic()
            try:
                n_windows = 0
                for window in blocks.windows(n_features, order, position.window):
                    n_windows += 1
                    raise_signals()
                    if monotonic() - since > COPY_SECONDS:
                        restore, since = snapshot(), monotonic()
                        position = Position(epoch, window.number, position.seed)
                    last, done = done, window.done
                    visit(window)
                if not n_windows:
                    raise ValueError(
                        f"there is no window {first} of these rows to go on from: the checkpoint "
                        "is damaged, or of other rows"
                    )
                raise_signals()
            except KeyboardInterrupt:
                restore()
                save(position, True)
                raise


def check_blocks_alone(**given: Any) -> None:
    """Raise TypeError if rows from a file come with arguments that the file has itself."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(
                f"rows from open_rows have their own labels and queries: leave {name} out"
            )


def whole_rows(X: Any, y: Any, qid: Any, **more: Any) -> tuple[Any, Any, Any]:
    """X, y and qid of a fit that looks at all rows at once, taken out of a row cache.

    Parameters
    ----------
    X : RowBlocks, or what else a fit takes
    y, qid
        Returned as they are unless X is `RowBlocks`.
    **more
        Other arguments that must then be None.
    """
    if not isinstance(X, RowBlocks):
        return X, y, qid
    check_blocks_alone(y=y, qid=qid, **more)
    return X.whole()


def named(given: Any, X: Any) -> Any:
    """What names the features of X: the rows on disk that it was taken out of, or X itself."""
    return given if isinstance(given, RowBlocks) else X
