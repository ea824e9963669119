"""Held-out rows and callbacks of a fit on shards, at the client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.monitor import Callback, Monitor
from rankcore.dask._engine import is_delayed
from rankcore.ordinal._validation import held_out_labels


class Watching(NamedTuple):
    """Arguments of ``fit`` for those who watch it: as in memory, of rows that the client has."""

    eval_set: Any
    eval_qid: Any
    callbacks: Iterable[Callback] | None

    def watch(self, model: Any, fitted: Any, form: Any, in_queries: bool) -> Monitor:
        """The monitor of a model that is fitted to rows of the columns of ``form``."""
        self._check()
        sets = self.eval_set, None, None, self.eval_qid, None
        held_out = model._validation(form, fitted.n_features_in_, in_queries, sets)
        return Monitor(fitted, held_out, self.callbacks)

    def watch_labels(self, model: Any, fitted: Any, classes: NDArray[Any]) -> Monitor:
        """The same of an ordinal learner."""
        self._check()
        sets = as_eval_sets(self.eval_set, None, None, {})
        rows, metrics = fitted._more_rows, model.eval_metric
        held_out = held_out_labels(sets, rows, classes, metrics)
        return Monitor(fitted, held_out, self.callbacks)

    def _check(self) -> None:
        sets = self.eval_set if isinstance(self.eval_set, list) else [self.eval_set]
        for one in sets:
            parts = one if isinstance(one, tuple) else ()
            if any(isinstance(part, list) and any(map(is_delayed, part)) for part in parts):
                raise TypeError(
                    "eval_set must be arrays that the client has; found delayed blocks: compute "
                    "them first"
                )
