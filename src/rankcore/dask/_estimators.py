"""Base of learners on clusters: fit on shards, predictions that are collections, to_local."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import DaskColumn, DaskRows, EvalSet
from rankcore._core.docs import documented
from rankcore._core.monitor import Callback
from rankcore._core.params import check_flag, check_option
from rankcore.dask._engine import Client, count_of, delayed, engine_of, release
from rankcore.dask._members import fit_members
from rankcore.dask._mixing import MIXINGS, fit_ordinal, fit_pairwise
from rankcore.dask._regrouping import shards_on
from rankcore.dask._run import Run, Watching
from rankcore.dask._shards import Finding, check_kinds, in_all, look, pieces_of, without_columns
from rankcore.ordinal._base import OnlineOrdinalClassifier

# Function of an unfitted model and the run that returns a fitted copy.
Learn = Callable[[Any, Run], Any]


class Distributed:
    """A learner whose fit runs on the workers of a Dask cluster. Not public."""

    _nan: ClassVar[bool] = False
    # Whether the model depends on the norms of rows.
    _by_length: ClassVar[bool] = True

    @classmethod
    def _local(cls, **params: Any) -> Any:
        """The ordinary learner with these parameters."""
        kind = next(one for one in cls.__mro__ if not issubclass(one, Distributed))
        return kind(**params)

    def to_local(self) -> Any:
        """The same model as an ordinary estimator, which can be saved and trained further."""
        check_is_fitted(self)
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        local = self._local(**params)
        local.__dict__ = dict(vars(self))
        return local

    def _fit_on(
        self,
        columns: tuple[Any, Any, Any, Any],
        learn: Learn,
        client: Client | None,
        files: tuple[int | None, bool],
        n_shards: int | None = None,
        regroup: bool = False,
    ) -> Self:
        """Fit to X, y, qid and weights; for files, with ``n_features`` and ``zero_based``."""
        (X, _, qid, sample_weight), (n_features, _) = columns, files
        check_flag(regroup, "regroup")
        engine = engine_of(client)
        n_shards = count_of(n_shards, "n_shards", engine)
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        model, token = self._local(**params), token_hex(4)
        model._check_params()
        pieces = pieces_of(columns, n_shards, files)
        wanted = shards_on(engine, pieces, n_shards, token, regroup)
        run = Run(engine, type(self).__name__.lower(), token)
        held: list[Any] = []
        try:
            held = engine.compute(wanted)
            run.numbers = list(range(len(held)))
            args = held, run.numbers, self._nan, self._by_length
            found = run.gather(run.map(look, *args, what="look"))
            run.drop()
            run.numbers = [at for at, finding in enumerate(found) if finding is not None]
            run.shards = [held[at] for at in run.numbers]
            findings = [found[at] for at in run.numbers]
            if not findings:
                raise ValueError("Found 0 sample(s) while a minimum of 1 is required.")
            in_all([finding.heaviest is not None for finding in findings], "weights")
            if all(finding.heaviest == 0 for finding in findings):
                raise ValueError("sample_weight must not be all zero")
            if not _is_text(X):
                check_kinds([finding.queries for finding in findings])
            if n_features is None and _is_text(X):
                n_features = max(finding.n_features for finding in findings)
            run.form = _form(X, (qid, sample_weight), findings, n_features)
            if n_features is not None:
                run.shards = run.map(widen, run.shards, n_features, what="wide")
                findings = [replace(finding, n_features=n_features) for finding in findings]
            run.findings = findings
            fitted = learn(model, run)
        finally:
            # Not left to garbage collection, as tracebacks of errors keep references.
            release([*run.futures, *run.shards, *held])
        self.__dict__ = dict(vars(fitted))
        return self

    def predict(self, X: DaskColumn) -> Any:
        """Predict scores, as a lazy collection of the same kind as X."""
        return self._lazily("predict", X, None, np.float64)

    def _lazily(self, method: str, X: Any, columns: int | None, dtype: Any) -> Any:
        """Results of a method by block, as a lazy collection of the same kind as X."""
        model = self.to_local()
        if isinstance(X, list | tuple):
            call = delayed(getattr(model, method), pure=True)
            return [call(block) for block in X]
        if hasattr(X, "map_partitions"):
            import pandas as pd

            def frame(part: Any) -> Any:
                values = getattr(model, method)(part) if len(part) else np.empty(0, dtype)
                return pd.Series(values, index=part.index)

            if columns is None:
                return X.map_partitions(frame, meta=(None, dtype))
            X = X.to_dask_array(lengths=True)
        if not hasattr(X, "map_blocks"):
            raise TypeError(
                "X must be a dask array or dataframe, or a list of delayed blocks; found "
                f"{type(X).__name__} (to_local() predicts for rows in memory)"
            )
        if len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        shape: dict[str, Any] = {"drop_axis": 1}
        if columns is not None:
            shape = {"chunks": (X.chunks[0], (columns,))}
        meta = np.empty((0,) if columns is None else (0, 0), dtype)
        return X.map_blocks(getattr(model, method), dtype=dtype, meta=meta, **shape)


def widen(shard: Any, n_features: int) -> Any:
    """Extend a shard of a file to all features, as its part may lack the last ones."""
    X = shard.X.copy()
    X.resize((X.shape[0], n_features))
    return replace(shard, X=X)


def _is_text(X: Any) -> bool:
    return not hasattr(X, "to_delayed") and not hasattr(
        X[0] if isinstance(X, list | tuple) else X, "compute"
    )


def _form(X: Any, apart: Any, findings: list[Finding], n_features: int | None) -> Any:
    """A small table with the columns of X, except those named in ``apart``."""
    if hasattr(X, "columns"):
        return without_columns(X._meta, *apart)
    widths = {finding.n_features for finding in findings}
    if n_features is None and len(widths) > 1:
        raise ValueError(f"blocks have different numbers of features: {sorted(widths)}")
    return np.broadcast_to(0.0, (1, n_features or widths.pop()))


class DistributedClassifier(Distributed):
    """An online learner of ordered labels on a cluster. Not public."""

    @documented(OnlineOrdinalClassifier.fit)
    def fit(
        self,
        X: DaskRows,
        y: DaskColumn | None = None,
        classes: ArrayLike | None = None,
        *,
        sample_weight: DaskColumn | str | None = None,
        eval_set: EvalSet | None = None,
        callbacks: Iterable[Callback] | None = None,
        client: Client | None = None,
        n_shards: int | None = None,
        mixing: Literal["uniform", "mistakes"] = "uniform",
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Self:
        """Fit a new model, in ``max_iter`` passes on all workers.

        Parameters
        ----------
        X : dask array, dask dataframe, list of delayed blocks, path, pattern or list of paths
            Blocks of dense or CSR rows; or LETOR and svmlight files, which are read by workers.
        y : the same kind as X, with the same divisions
            Ordered labels; None for files, which contain labels.
        classes : array-like, shape (n_classes,), optional
            All labels, lowest rank first; required for strings. By default the order of an ordered
            categorical, the same in all blocks, or the distinct numbers, ascending.
        sample_weight : the same kind as X, in the same division; or str, optional
            Weights of the rows, with the same meaning as in memory; a string names a column of a
            dataframe. Not supported for files.
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
            the workers. The model depends on the number of shards, not of workers.
        mixing : {"uniform", "mistakes"}, default="uniform"
            Weights of the shards' models after a pass: equal, or their numbers of mistakes in the
            pass.
        n_features : int, optional
            Number of features of files; by default the maximum that occurs.
        zero_based : bool, default=False
            Whether features in files are numbered from 0.

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid; the message names the shard. The estimator is not
            changed.
        RuntimeError
            If workers are lost repeatedly.
        """
        check_option(mixing, "mixing", MIXINGS)
        watching = Watching(eval_set, None, callbacks)
        learn = partial(fit_ordinal, classes=classes, mixing=mixing, watching=watching)
        files = n_features, zero_based
        return self._fit_on((X, y, None, sample_weight), learn, client, files, n_shards)

    def predict(self, X: DaskColumn) -> Any:
        """Predict labels, as a lazy collection of the same kind as X."""
        check_is_fitted(self)
        return self._lazily("predict", X, None, self.classes_.dtype)  # type: ignore[attr-defined]

    def decision_function(self, X: DaskColumn) -> Any:
        """Margin of each rank over the best other one, as a lazy collection."""
        check_is_fitted(self)
        k = self.classes_.size  # type: ignore[attr-defined]
        return self._lazily("decision_function", X, None if k == 2 else k, np.float64)


class DistributedEnsemble(DistributedClassifier):
    """An online ensemble of ordered labels on a cluster. Not public."""

    @documented(DistributedClassifier.fit)
    def fit(  # type: ignore[override]
        self,
        X: DaskRows,
        y: DaskColumn | None = None,
        classes: ArrayLike | None = None,
        *,
        sample_weight: DaskColumn | str | None = None,
        client: Client | None = None,
        n_blocks: int | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Self:
        """Fit a new model, equal to that of a fit in memory to the bit.

        Parameters
        ----------
        X
            All rows must fit into the memory of a worker.
        n_blocks : int, optional
            Number of blocks into which members are divided, in multiples of 8; by default one per
            thread of the workers. The model does not depend on it.

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid. The estimator is not changed.
        RuntimeError
            If workers are lost repeatedly.
        """
        engine = engine_of(client)
        n_blocks = count_of(n_blocks, "n_blocks", engine)
        learn = partial(fit_members, classes=classes, n_blocks=n_blocks)
        files = n_features, zero_based
        return self._fit_on((X, y, None, sample_weight), learn, engine, files)


class DistributedRanker(Distributed):
    """A learner of queries on a cluster. Not public."""

    @documented(DistributedClassifier.fit)
    def fit(
        self,
        X: DaskRows,
        y: DaskColumn | None = None,
        *,
        qid: DaskColumn | str | None = None,
        sample_weight: DaskColumn | str | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
        client: Client | None = None,
        n_shards: int | None = None,
        mixing: str = "uniform",
        regroup: bool = False,
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Self:
        """Fit a new model, in ``max_iter`` passes on all workers.

        Parameters
        ----------
        qid : the same kind as X, with the same divisions; or str
            Query of each row; a string names a column of a dataframe. None for files. All rows of a
            query must be in one shard.
        sample_weight
            The weight of a pair is the product of its rows' weights.
        eval_qid : array-like, or a list of them, optional
            Queries of held-out rows.
        regroup : bool, default=False
            Whether to move rows between workers so that queries are whole.

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, for example if a query is in two shards. The
            estimator is not changed.
        RuntimeError
            If workers are lost repeatedly.
        """
        check_option(mixing, "mixing", MIXINGS)
        watching = Watching(eval_set, eval_qid, callbacks)
        learn = partial(fit_pairwise, mixing=mixing, watching=watching)
        files = n_features, zero_based
        return self._fit_on((X, y, qid, sample_weight), learn, client, files, n_shards, regroup)


class ExactRanker(Distributed):
    """A learner of queries that sums over shards. Not public."""

    _by_length = False

    # Function that fits a model on shards.
    _learn: ClassVar[Callable[..., Any]]

    @documented(DistributedRanker.fit)
    def fit(
        self,
        X: DaskRows,
        y: DaskColumn | None = None,
        *,
        qid: DaskColumn | str | None = None,
        sample_weight: DaskColumn | str | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
        client: Client | None = None,
        n_shards: int | None = None,
        regroup: bool = False,
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Self:
        """Fit a new model, which does not depend on the shards.

        Parameters
        ----------
        qid
            Without qid all rows belong to one query; for boosting with two labels it may have rows
            in several shards.
        """
        files = n_features, zero_based
        learn = partial(self._learn, watching=Watching(eval_set, eval_qid, callbacks))
        return self._fit_on((X, y, qid, sample_weight), learn, client, files, n_shards, regroup)
