"""Base classes of the learners of `rankcore.dask`: ``fit``, lazy predictions, `to_local`.

A learner inherits from one of them and from the ordinary estimator, whose parameters it has. Its
``_fit_shards`` is a function of `_online`, `_svm` or `_boosting`, which returns a fitted copy of
the ordinary estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import DaskColumn, EvalSet
from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.labels import check_words
from rankcore._core.monitor import Callback, Monitor
from rankcore.dask._cluster import (
    Client,
    Shards,
    client_of,
    count_shards,
    delayed,
    is_dask_collection,
)
from rankcore.dask._shards import Columns, ShardedRows
from rankcore.ordinal.validation import held_out_labels
from rankcore.ranking.data import held_out_sets


@dataclass(frozen=True)
class Watching:
    """Arguments of ``fit`` for monitoring, with held-out rows at the client."""

    eval_set: Any = None
    eval_qid: Any = None
    callbacks: Iterable[Callback] | None = None

    def of_queries(self, fitted: Any, rows: ShardedRows) -> Monitor:
        """Return the monitor of a ranker."""
        self._check()
        words = vars(fitted).get("grades_")
        sets = fitted._graded_sets(held_out_sets(self.eval_set, eval_qid=self.eval_qid), words)
        n_features = fitted.n_features_in_
        held_out = fitted._validation(rows.form, n_features, rows.in_queries, sets)
        return Monitor(fitted, held_out, self.callbacks)

    def of_labels(self, fitted: Any, kind: Any = None) -> Monitor:
        """Return the monitor of a learner of ordered labels."""
        self._check()
        sets = as_eval_sets(self.eval_set, None, None, {})
        rows, ranks = fitted._more_rows, fitted.ranks_
        of_kind = {} if kind is None else {"kind": kind}
        held_out = held_out_labels(sets, rows, ranks, fitted.eval_metric, **of_kind)
        return Monitor(fitted, held_out, self.callbacks)

    def _check(self) -> None:
        sets = self.eval_set if isinstance(self.eval_set, list) else [self.eval_set]
        for pair in sets:
            parts = pair if isinstance(pair, tuple) else ()
            if any(isinstance(part, list) and any(map(is_dask_collection, part)) for part in parts):
                raise TypeError(
                    "eval_set must be arrays at the client; got delayed blocks: compute them first"
                )


# Function of an unfitted model, the rows of all shards and `Watching` that returns a fitted copy.
Fit = Callable[[Any, ShardedRows, Watching], Any]


class Distributed:
    """A learner whose fit runs on the workers of a Dask cluster. Not public."""

    # Function that fits a model on shards; some have further arguments.
    _fit_shards: ClassVar[Callable[..., Any]]
    _nan: ClassVar[bool] = False  # whether values may be missing

    @classmethod
    def _local(cls, **params: Any) -> Any:
        """Return the ordinary learner with these parameters."""
        local = next(base for base in cls.__mro__ if not issubclass(base, Distributed))
        return local(**params)

    def to_local(self) -> Any:
        """Return a copy of the model as an ordinary estimator, to be saved or trained further."""
        check_is_fitted(self)
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        local = self._local(**params)
        local.__dict__ = deepcopy(vars(self))
        return local

    def _fit_on(
        self,
        columns: Columns,
        fit: Fit,
        watching: Watching,
        client: Client | None,
        n_shards: int | None,
    ) -> Self:
        """Fit to the rows of ``columns`` in shards."""
        client = client_of(client)
        n_shards = count_shards(n_shards, client)
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        model = self._local(**params)
        model._check_params()
        delayed_shards = columns.delayed_shards(n_shards)
        with Shards(client, type(self).__name__.lower(), delayed_shards) as shards:
            fitted = fit(model, ShardedRows.of(shards, columns, self._nan), watching)
        self.__dict__ = dict(vars(fitted))
        return self

    def predict(self, X: DaskColumn) -> Any:
        """Predict scores, as a lazy collection of the same kind as X."""
        return self._lazily("predict", X, None, np.float64)

    def _lazily(self, method: str, X: Any, columns: int | None, dtype: Any) -> Any:
        """Return the results of a method by block, as a lazy collection of the same kind as X."""
        model = self.to_local()

        def compute(block: Any) -> Any:
            if not block.shape[0]:
                return np.empty(0 if columns is None else (0, columns), dtype)
            return getattr(model, method)(block)

        if isinstance(X, list | tuple):
            call = delayed(compute, pure=False)  # Dask takes slices of an Arrow table as equal
            return [call(block) for block in X]
        if hasattr(type(X), "map_partitions"):
            import pandas as pd

            if columns is None:
                return X.map_partitions(
                    lambda part: pd.Series(compute(part), index=part.index), meta=(None, dtype)
                )
            meta = pd.DataFrame(np.empty((0, columns), dtype))
            table = X.map_partitions(
                lambda part: pd.DataFrame(compute(part), index=part.index), meta=meta
            )
            return table.to_dask_array()
        if not hasattr(type(X), "map_blocks"):
            raise TypeError(
                "X must be a dask array or dataframe, or a list of delayed blocks; got "
                f"{type(X).__name__} (to_local() predicts for rows in memory)"
            )
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        shape: dict[str, Any] = {"drop_axis": 1}
        if columns is not None:
            shape = {"chunks": (X.chunks[0], (columns,))}
        meta = np.empty((0,) if columns is None else (0, 0), dtype)
        return X.map_blocks(compute, dtype=dtype, meta=meta, **shape)


class DistributedClassifier(Distributed):
    """A learner of ordered labels on a cluster. Not public."""

    def fit(
        self,
        X: DaskColumn,
        y: DaskColumn | None = None,
        classes: ArrayLike | None = None,
        *,
        sample_weight: DaskColumn | str | None = None,
        eval_set: EvalSet | None = None,
        callbacks: Iterable[Callback] | None = None,
        client: Client | None = None,
        n_shards: int | None = None,
    ) -> Self:
        """Fit a new model on all workers.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed blocks
            Blocks of dense or sparse rows.
        y : the same kind as X, with the same divisions
            Ordered labels.
        classes : array-like, shape (n_classes,), optional
            All labels, lowest rank first; required for strings. By default the order of an ordered
            categorical, the same in all blocks, or the distinct numbers, ascending.
        sample_weight : the same kind as X, with the same divisions; or str, optional
            Weights of the rows, with the same meaning as in memory; a string names a column of a
            dataframe.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, as arrays at the client, measured there by ``eval_metric`` after each
            pass, round or step.
        callbacks : iterable of callables, optional
            Called at the client after each pass, round or step with a
            `rankcore.callbacks.Iteration`; the fit ends after one returns True.
        client : distributed.Client, optional
            By default the current client.
        n_shards : int, optional
            Number of shards into which neighbouring blocks are joined; by default one per thread of
            the workers. Online models depend on it, others only by the rounding of sums.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid; the message names the shard. The estimator is not
            changed.
        RuntimeError
            If workers are lost repeatedly.
        """
        columns = Columns(X, y, None, sample_weight)
        watching = Watching(eval_set, None, callbacks)
        fit = partial(self._fit_shards, classes=classes)
        return self._fit_on(columns, fit, watching, client, n_shards)

    def predict(self, X: DaskColumn) -> Any:
        """Predict labels, as a lazy collection of the same kind as X."""
        check_is_fitted(self)
        return self._lazily("predict", X, None, self.classes_.dtype)  # type: ignore[attr-defined]

    def decision_function(self, X: DaskColumn) -> Any:
        """Compute the margin of each rank over the best other one, as a lazy collection."""
        check_is_fitted(self)
        k = self.classes_.size  # type: ignore[attr-defined]
        return self._lazily("decision_function", X, None if k == 2 else k, np.float64)


def predict_proba(self: Any, X: DaskColumn) -> Any:
    """Predict the probability of each class, as a lazy collection."""
    check_is_fitted(self)
    return self._lazily("predict_proba", X, self.classes_.size, np.float64)


class DistributedRanker(Distributed):
    """A learner of queries on a cluster. Not public."""

    def fit(
        self,
        X: DaskColumn,
        y: DaskColumn | None = None,
        *,
        qid: DaskColumn | str | None = None,
        sample_weight: DaskColumn | str | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
        client: Client | None = None,
        n_shards: int | None = None,
    ) -> Self:
        """Fit a new model on all workers.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed blocks
            Blocks of dense or sparse rows.
        y : the same kind as X, with the same divisions
            Labels, higher for better: numbers, or words as in memory.
        qid : the same kind as X, with the same divisions; or str, optional
            Query of each row; a string names a column of a dataframe. All rows of a query must be
            in one shard. None if all rows belong to one query, which may be divided among shards
            for boosting with two labels only.
        sample_weight : the same kind as X, with the same divisions; or str, optional
            Weights of the rows, with the same meaning as in memory; a string names a column of a
            dataframe. The weight of a pair is the product of its rows' weights.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, as arrays at the client, measured there by ``eval_metric`` after each
            pass, round or step.
        eval_qid : array-like, or a list of them, optional
            Queries of held-out rows.
        callbacks : iterable of callables, optional
            Called at the client after each pass, round or step with a
            `rankcore.callbacks.Iteration`; the fit ends after one returns True.
        client : distributed.Client, optional
            By default the current client.
        n_shards : int, optional
            Number of shards into which neighbouring blocks are joined; by default one per thread of
            the workers. Online models depend on it, others only by the rounding of sums.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, for example if a query is in two shards. The
            estimator is not changed.
        RuntimeError
            If workers are lost repeatedly.
        """
        columns = Columns(X, y, qid, sample_weight)
        watching = Watching(eval_set, eval_qid, callbacks)
        return self._fit_on(columns, self._fit_grades, watching, client, n_shards)

    def _fit_grades(self, model: Any, rows: ShardedRows, watching: Watching) -> Any:
        """Fit a model to the shards, whose labels that are words become grades."""
        declared = None if model.classes is None else check_words(model.classes)
        rows, words = rows.graded(declared, type(model).__name__)
        return self._fit_shards(model._with_names(None, words), rows, watching)
