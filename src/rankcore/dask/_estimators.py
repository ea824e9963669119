"""Base classes of the learners of `rankcore.dask`: ``fit``, lazy predictions, `to_local`.

A learner inherits from one of them and from the ordinary estimator, whose parameters it has. Its
``_fit_shards`` is a function of `_online`, `_svm` or `_boosting`, which returns a fitted copy of
the ordinary estimator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from inspect import isfunction, signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import DaskColumn, EvalSet
from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.monitor import Callback, Monitor
from rankcore._core.params import check_count
from rankcore.dask._blocks import Client, cluster, delayed, delayed_shards, gathered
from rankcore.dask._shards import Shards
from rankcore.ordinal.validation import HeldOutLabels, held_out_labels
from rankcore.ranking.data import held_out_sets


@dataclass(frozen=True)
class FitArguments:
    """Arguments of ``fit`` besides the rows on the cluster."""

    classes: Any = None
    eval_set: Any = None
    eval_qid: Any = None
    callbacks: Iterable[Callback] | None = None

    def monitor_of_queries(self, fitted: Any, shards: Shards) -> Monitor:
        """Return the monitor of a ranker."""
        eval_set, eval_qid = gathered(self.eval_set, self.eval_qid)
        sets = fitted._graded_sets(held_out_sets(eval_set, eval_qid=eval_qid), None)
        held_out = fitted._validation(shards.form, shards.n_features, shards.in_queries, sets)
        return Monitor(fitted, held_out, self.callbacks)

    def monitor_of_labels(self, fitted: Any, kind: Any = HeldOutLabels) -> Monitor:
        """Return the monitor of a learner of ordered labels."""
        (eval_set,), metric = gathered(self.eval_set), fitted.eval_metric
        sets = as_eval_sets(eval_set, None, None, {})
        held_out = held_out_labels(sets, fitted._more_rows, fitted.ranks_, metric, kind)
        return Monitor(fitted, held_out, self.callbacks)


def check_supported(model: Any, **accepted: tuple[Any, ...]) -> None:
    """Raise ValueError for parameters with values that a fit on shards does not support."""
    for name, values in accepted.items():
        value = getattr(model, name)
        if np.ndim(value) or value not in values:
            listed = " or ".join(map(repr, values))
            raise ValueError(f"a fit on shards requires {name}={listed}; got {value!r}")


class LocalMethod:
    """A method of the ordinary estimator that takes rows in memory: absent on a cluster."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> Any:
        raise AttributeError(
            f"rankcore.dask.{owner.__name__} has no {self._name}, which takes rows in memory: "
            f"gather some, and call to_local().{self._name}, as in "
            f"model.to_local().{self._name}(X.compute(), ...)"
        )


class Distributed:
    """A learner whose fit runs on the workers of a Dask cluster. Not public."""

    # Function of a model, `Shards` and `FitArguments`, which returns a fitted copy of the model.
    _fit_shards: ClassVar[Any]
    _nan: ClassVar[bool] = False  # whether values may be missing

    def __init_subclass__(cls, **more: Any) -> None:
        """Replace methods of the ordinary estimator that take rows in memory."""
        super().__init_subclass__(**more)
        on_cluster = [base for base in cls.__mro__ if issubclass(base, Distributed)]
        for name in {*dir(cls)}.difference(*map(vars, on_cluster)):
            method = None if name.startswith("_") else getattr(cls, name, None)
            if isfunction(method) and "X" in signature(method).parameters:
                setattr(cls, name, LocalMethod(name))

    def to_local(self) -> Any:
        """Return a copy of the model as an ordinary estimator, to be saved or trained further."""
        check_is_fitted(self)
        local = self._unfitted()
        local.__dict__ = deepcopy(vars(self))
        return local

    def _unfitted(self) -> Any:
        """Return an ordinary estimator with the parameters."""
        local = next(base for base in type(self).__mro__ if not issubclass(base, Distributed))
        return local(**self.get_params(deep=False))  # type: ignore[attr-defined]

    def _fit_on(
        self,
        X: Any,
        y: Any,
        qid: Any,
        sample_weight: Any,
        given: FitArguments,
        client: Any,
        n_shards: int | None,
    ) -> Self:
        """Fit to the rows of collections, joined to shards."""
        client = cluster.get_client() if client is None else client
        if not isinstance(client, cluster.Client):
            raise TypeError(
                f"client must be a distributed.Client; got {client!r}: pass one, as in "
                'client=distributed.Client("tcp://127.0.0.1:8786")'
            )
        if n_shards is None:
            n_shards = max(1, sum(client.nthreads().values()))
        check_count(n_shards, "n_shards")
        model, name = self._unfitted(), type(self).__name__.lower()
        model._check_params()
        parts = delayed_shards(X, y, qid, sample_weight, int(n_shards))
        with Shards(client, name, parts) as shards:
            shards.describe(self._nan)
            fitted = self._fit_shards(model, shards, given)
        self.__dict__ = dict(vars(fitted))
        return self

    def predict(self, X: DaskColumn) -> Any:
        """Predict scores, as a lazy collection of the same kind as X."""
        return self._lazily("predict", X, None, np.float64)

    def _lazily(self, method: str, X: Any, width: int | None, dtype: Any) -> Any:
        """Return a method's results by block, with ``width`` columns, or one dimension if None."""
        model = self.to_local()

        def compute(block: Any) -> Any:
            if not block.shape[0]:
                return np.empty(0 if width is None else (0, width), dtype)
            return getattr(model, method)(block)

        if isinstance(X, list | tuple):
            call = delayed(compute, pure=False)  # Dask takes slices of an Arrow table as equal
            return [call(block) for block in X]
        if hasattr(type(X), "map_partitions"):
            import pandas as pd

            kind: Any = pd.Series if width is None else pd.DataFrame
            meta = kind(np.empty(0 if width is None else (0, width), dtype))
            table = X.map_partitions(lambda part: kind(compute(part), part.index), meta=meta)
            return table if width is None else table.to_dask_array()
        if not hasattr(type(X), "map_blocks"):
            raise TypeError(
                "X must be a dask array or dataframe, or a list of delayed blocks; got "
                f"{type(X).__name__} (to_local() predicts for rows in memory)"
            )
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        if width is None:
            return X.map_blocks(compute, drop_axis=1, meta=np.empty(0, dtype))
        return X.map_blocks(compute, chunks=(X.chunks[0], (width,)), meta=np.empty((0, 0), dtype))


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
            Held-out rows, arrays or collections, which are gathered at the client and measured
            there by ``eval_metric`` after each pass or round.
        callbacks : iterable of callables, optional
            Called at the client after each pass or round with a `rankcore.callbacks.Iteration`; the
            fit ends after one returns True.
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
        given = FitArguments(classes, eval_set, None, callbacks)
        return self._fit_on(X, y, None, sample_weight, given, client, n_shards)

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
            Labels, numbers, higher for better.
        qid : the same kind as X, with the same divisions; or str, optional
            Query of each row; a string names a column of a dataframe. All rows of a query must be
            in one shard. None if all rows belong to one query, which may be divided among shards
            for boosting with two labels only.
        sample_weight : the same kind as X, with the same divisions; or str, optional
            Weights of the rows, with the same meaning as in memory; a string names a column of a
            dataframe. The weight of a pair is the product of its rows' weights.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, arrays or collections, which are gathered at the client and measured
            there by ``eval_metric`` after each pass, round or step.
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
        given = FitArguments(None, eval_set, eval_qid, callbacks)
        return self._fit_on(X, y, qid, sample_weight, given, client, n_shards)
