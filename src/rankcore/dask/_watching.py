"""What a fit on shards shows at the client: held-out rows are measured there, callbacks called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from rankcore._core.watch import Callback, Watch


class Watching(NamedTuple):
    """Arguments of ``fit`` for those who watch it: as in memory, of rows that the client has."""

    eval_set: Any
    eval_qid: Any
    callbacks: Iterable[Callback] | None

    def watch(self, model: Any, fitted: Any, form: Any, in_queries: bool) -> Watch:
        """What looks at a model that is being fitted.

        Parameters
        ----------
        model, fitted : estimator
            What asks for the measures, and what it will be if all goes well.
        form : array-like, shape (any, n_features)
            A table of the same columns as X.
        in_queries : bool
            Whether the fit learns from queries.
        """
        held_out = model._validation(
            form, fitted.n_features_in_, in_queries, self.eval_set, None, None, self.eval_qid, None
        )
        return Watch(fitted, held_out, self.callbacks)
