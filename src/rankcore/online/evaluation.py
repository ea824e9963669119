"""Progressive validation: each chunk of a stream is predicted, and learned afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankcore._core.inputs import n_rows_of
from rankcore._core.labels import words_of
from rankcore._core.numbers import Floats
from rankcore._core.params import Integer, check_count
from rankcore._core.queries import group_rows
from rankcore.metrics import Evaluation, row_evaluation
from rankcore.metrics import evaluate as evaluate_queries
from rankcore.online.chunks import Chunk, Stream, as_chunks
from rankcore.online.wrapper import encode_labels, learn_chunk, probabilities_by_rank, rank_losses
from rankcore.ranking.base import SCORE, Ranker

if TYPE_CHECKING:
    from pandas import DataFrame

# Measures of probabilities of ranks.
OF_PROBABILITIES = {"ranked_probability_score", "brier_score", "log_loss"}


@dataclass(frozen=True)
class StreamWindow:
    """Measures at one point of a stream.

    Parameters
    ----------
    seen : int
        Rows, or queries, up to this point.
    seconds : float
        Time since the begin, for reading, predicting and learning.
    latest : dict of str to float
        Mean of each measure since the previous point; NaN if nothing was predicted.
    overall : dict of str to float
        Mean of each measure since the begin.
    """

    seen: int
    seconds: float
    latest: dict[str, float]
    overall: dict[str, float]


@dataclass(frozen=True)
class StreamEvaluation:
    """Result of `evaluate`: measures after each window of a stream.

    Parameters
    ----------
    unit : {"rows", "queries"}
        What windows count.
    windows : list of StreamWindow
        One for each window, the last of which may be shorter.
    """

    unit: Literal["rows", "queries"]
    windows: list[StreamWindow]

    @property
    def overall(self) -> dict[str, float]:
        """Mean of each measure over the whole stream."""
        return self.windows[-1].overall if self.windows else {}

    def to_frame(self) -> DataFrame:
        """Convert to a pandas DataFrame with one row per window.

        Returns
        -------
        pandas.DataFrame
            Indexed by the number of rows or queries seen. Columns: ``seconds``; each measure in the
            window, by its name; and over the stream so far, as ``rank_loss (overall)``.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas

        found = [
            {"seconds": one.seconds, **one.latest}
            | {f"{name} (overall)": value for name, value in one.overall.items()}
            for one in self.windows
        ]
        index = pandas.Index([one.seen for one in self.windows], name=self.unit)
        return pandas.DataFrame(found, index=index)


def evaluate(
    model: BaseEstimator,
    stream: Stream,
    *,
    metrics: str | Iterable[str] | None = None,
    window: int = 1000,
    delay: int = 0,
    classes: ArrayLike | None = None,
    callbacks: Iterable[Callable[[StreamWindow], object]] | None = None,
) -> StreamEvaluation:
    """Predict and measure each chunk of a stream, then learn it: progressive validation.

    No row is measured after it was learned, so that no rows need to be held out.

    Parameters
    ----------
    model : estimator with partial_fit
        A learner of ordered labels or `rankcore.PairwisePerceptron`, fitted or not. It learns the
        stream in place. The first chunks of a new one are learned, but not predicted.
    stream : iterable of (X, y), Chunk or LetorData
        Chunks in the order of time. Rows of a chunk are predicted together by the model before it:
        with chunks larger than the ``window``, the rows of several windows are. Chunks without rows
        are left out.
    metrics : str or list of str, optional
        Of labels, measures that are means over rows: ``"rank_loss"`` (the default),
        ``"accuracy"``, ``"accuracy_within"`` and, by ``predict_proba``,
        ``"ranked_probability_score"`` (or ``"rps"``), ``"brier_score"`` and ``"log_loss"``. Of
        rankings, those of `rankcore.metrics.evaluate`, by default ``"ndcg@10"``.
    window : int, default=1000
        Rows, for rankers queries, between two points of the curves.
    delay : int, default=0
        Rows, for rankers queries, between a chunk and its labels: the chunk is learned before the
        next one that follows after at least this many. Those left at the end are learned then.
    classes : array-like, shape (n_classes,), optional
        Every label, lowest rank first, for the first call of ``partial_fit``.
    callbacks : iterable of callables, optional
        Called after each window with its `StreamWindow`; the evaluation ends after the chunk in
        which one returns True.

    Returns
    -------
    StreamEvaluation
        Curves of the measures. `rankcore.plotting.plot_stream` draws them.

    Raises
    ------
    TypeError
        If the stream has items of another form, or the model lacks a method.
    ValueError
        For unknown measures, and as ``partial_fit``.

    See Also
    --------
    DriftMonitor : Start again when the rank loss rises.

    Notes
    -----
    Memory is that of the chunks that wait for their labels, and of a `StreamWindow` per window.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> def stream():
    ...     for _ in range(40):
    ...         X = rng.normal(size=(50, 3))
    ...         yield X, np.digitize(X.sum(axis=1), [-1, 1])
    >>> found = rc.online.evaluate(rc.PRank(), stream(), classes=[0, 1, 2])
    >>> [(one.seen, one.latest["rank_loss"] < 0.1) for one in found.windows]
    [(1000, True), (2000, True)]
    """
    check_count(window, "window")
    Integer(0).check(delay, "delay")
    if not hasattr(model, "partial_fit"):
        raise TypeError(
            f"model must have partial_fit, to learn a stream; got {type(model).__name__}: use "
            "PRank or another online learner"
        )
    measures: _Measures = _OfQueries(metrics) if isinstance(model, Ranker) else _OfRows(metrics)
    curves = _Curves(measures.names, window)
    watching = list(callbacks or ())
    waiting: deque[tuple[Chunk, int]] = deque()
    n_waiting = 0
    fitted = hasattr(model, "n_features_in_")

    def learn_oldest() -> int:
        chunk, size = waiting.popleft()
        measures.learn(model, chunk, None if fitted else classes)
        return size

    for chunk in as_chunks(stream):
        if not n_rows_of(chunk.X):
            continue
        while waiting and n_waiting - waiting[0][1] >= delay:
            n_waiting -= learn_oldest()
            fitted = True
        values = measures.values(model, chunk) if fitted else measures.missing(chunk)
        waiting.append((chunk, values.shape[1]))
        n_waiting += values.shape[1]
        closed = curves.add(values)
        if any([watch(one) for one in closed for watch in watching]):
            break
    while waiting:
        learn_oldest()
        fitted = True
    for one in curves.finish():
        for watch in watching:
            watch(one)
    return StreamEvaluation(measures.unit, curves.windows)


class _Curves:
    """Sums of measures, which are closed at the end of each window."""

    def __init__(self, names: list[str], window: int) -> None:
        self.names, self.window = names, window
        self.windows: list[StreamWindow] = []
        self.start = perf_counter()
        self.seen = self.n_open = 0
        # Sums of the values, and their numbers: since the last window, and since the begin.
        self.latest, self.overall = np.zeros((2, 2, len(names)))

    def add(self, values: Floats) -> list[StreamWindow]:
        """Add values, shape (n_measures, n); return the windows that they end."""
        before = len(self.windows)
        while values.shape[1]:
            part, values = np.split(values, [self.window - self.n_open], axis=1)
            self.latest += np.nansum(part, axis=1), np.count_nonzero(part == part, axis=1)
            self.seen += part.shape[1]
            self.n_open += part.shape[1]
            if self.n_open == self.window:
                self._close()
        return self.windows[before:]

    def finish(self) -> list[StreamWindow]:
        """Close a last window, if it has begun."""
        if not self.n_open:
            return []
        self._close()
        return self.windows[-1:]

    def _close(self) -> None:
        self.overall += self.latest
        seconds = perf_counter() - self.start
        latest, overall = self._means(self.latest), self._means(self.overall)
        self.windows.append(StreamWindow(self.seen, seconds, latest, overall))
        self.latest[:] = 0
        self.n_open = 0

    def _means(self, sums: Floats) -> dict[str, float]:
        totals, counts = sums
        means = np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)
        return dict(zip(self.names, means.tolist(), strict=True))


class _OfRows:
    """Measures of predicted labels, row by row."""

    unit: Literal["rows", "queries"] = "rows"

    def __init__(self, metrics: str | Iterable[str] | None) -> None:
        given = [metrics] if isinstance(metrics, str) else metrics
        self.names = ["rank_loss"] if given is None else list(given)
        self.full_names = row_evaluation.row_measures(self.names)
        self.of_probabilities = not OF_PROBABILITIES.isdisjoint(self.full_names)

    def missing(self, chunk: Chunk) -> Floats:
        """Return NaN for each row."""
        return np.full((len(self.names), n_rows_of(chunk.X)), np.nan)

    def values(self, model: Any, chunk: Chunk) -> Floats:
        """Return the value of each measure for each row."""
        ranks = encode_labels(model, chunk.y, n_rows_of(chunk.X))
        distances = rank_losses(model, chunk.X, ranks)
        table = probabilities_by_rank(model, chunk.X) if self.of_probabilities else None
        found = row_evaluation.Predictions(distances, table, ranks)
        return np.array([row_evaluation.ROW_MEASURES[name](found) for name in self.full_names])

    def learn(self, model: Any, chunk: Chunk, classes: Any) -> None:
        """Learn the rows."""
        learn_chunk(model, chunk.X, chunk.y, classes, chunk.sample_weight)


class _OfQueries:
    """Measures of rankings, query by query."""

    unit: Literal["rows", "queries"] = "queries"

    def __init__(self, metrics: str | Iterable[str] | None) -> None:
        given = SCORE if metrics is None else metrics
        self.metrics = [given] if isinstance(given, str) else list(given)
        # The names of sets of measures, such as "official", are those of their members.
        self.names = [*evaluate_queries([1, 0], [1, 0], metrics=self.metrics)]

    def missing(self, chunk: Chunk) -> Floats:
        """Return NaN for each query."""
        n_queries = group_rows(chunk.qid, n_rows_of(chunk.X)).ids.size
        return np.full((len(self.names), n_queries), np.nan)

    def values(self, model: Any, chunk: Chunk) -> Floats:
        """Return the value of each measure for each query, NaN where it is undefined."""
        scores = model.predict(chunk.X, qid=chunk.qid)
        found: Evaluation = evaluate_queries(
            chunk.y, scores, qid=chunk.qid, metrics=self.metrics, labels=words_of(model)
        )
        return np.array([found.per_query[name] for name in self.names])

    def learn(self, model: Any, chunk: Chunk, classes: Any) -> None:
        """Learn the queries."""
        model.partial_fit(chunk.X, chunk.y, qid=chunk.qid, sample_weight=chunk.sample_weight)


_Measures = _OfRows | _OfQueries
