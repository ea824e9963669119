"""Learner interface of pairwise perceptrons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.scales import warn_of_scales
from rankcore._core.sources import RowBlocks, Source, Window
from rankcore._core.training import Learner
from rankcore.ranking._feature_scale import fix_feature_scale, rows_of_pass
from rankcore.ranking._pairs import Pairing, check_useful, make_pairing, warn_of_pairs
from rankcore.ranking._perceptron_pass import bind_pairs, run_pass
from rankcore.ranking._perceptron_state import PairwiseState

# Logged figures of each pass.
FIGURES = ("pairs", "mistakes", "hypotheses", "queries", "skipped")


class PairwiseLearner(Learner):
    """Learner of `PairwisePerceptron`.

    ``model`` does not change; ``held_out`` has the arguments of ``fit`` for held-out rows,
    ``resumed`` is a model to continue.
    """

    def __init__(
        self, model: Any, source: Source, held_out: tuple[Any, ...], resumed: Any = None
    ) -> None:
        self.n_iterations, self.shuffle = int(model.max_iter), bool(model.shuffle)
        n_features, known = source.n_features, source.kept
        if isinstance(source, RowBlocks) and (n_features is None or source.surveyed):
            n_features, known = source.facts().n_features, True
        assert n_features is not None
        largest, in_queries = 0, True
        self._pairing: Pairing | None = None
        self._data: Any = None
        if source.kept:
            (window,) = source.windows(n_features, None, 0)
            in_queries = window.queries is not None
            self._pairing, self._skipped, largest = pairing_of(model, window)
            check_useful(self._pairing, window.rows.n_rows)
        self.validation = model._validation(source.given, n_features, in_queries, held_out)
        self.generator = as_generator(model.random_state)
        if resumed is None:
            state: PairwiseState = model._new_state(n_features, self.generator)
        else:
            state, largest = resumed._state, resumed._largest_query
            if resumed.n_features_in_ != n_features:
                raise ValueError(
                    f"the checkpoint has {resumed.n_features_in_} features, but the data have "
                    f"{n_features}"
                )
        if known:
            fix_feature_scale(state, source.deviations, source.share_of_nonzero)
            if state.scale is None or not state.scale.size:
                warn_of_scales(source.largest_of_unequal(), type(model).__name__)
        self.seed = source.seed(self.generator)
        self._quality = model._quality(self.validation[0] if self.validation else None)
        self.fitted = model._shadow(source.given, n_features, largest, state)

    @property
    def _record(self) -> list[int]:
        record: list[int] = self.fitted._state.log[-1]
        return record

    def open(self, number: int) -> None:
        """As `Learner.open`."""
        log = self.fitted._state.log
        if number > len(log):
            log.append([0] * len(FIGURES))

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """As `Learner.learn`."""
        fitted, state = self.fitted, self.fitted._state
        pairing, skipped, passes = self._pairing, 0, self.n_iterations
        if pairing is None:
            if window.queries is None:
                raise ValueError(
                    "a fit to rows on disk requires the query of each row; found no qid"
                )
            pairing, skipped, largest = pairing_of(fitted, window)
            fitted._largest_query = max(fitted._largest_query, largest)
            data = bind_pairs(fitted, pairing, rows_of_pass(state, window.rows), state.seed)
        else:
            skipped = self._skipped
            if self._data is None:
                rows = rows_of_pass(state, window.rows)
                self._data = bind_pairs(fitted, pairing, rows, state.seed, passes)
            data = self._data
        self._record[4] += skipped
        sequence: NDArray[np.int64] = pairing.visited()
        if self.shuffle:
            generator.shuffle(sequence)
        run_pass(fitted, data, pairing, sequence, self._quality, (number, passes))

    def close(self) -> None:
        """As `Learner.close`."""
        if self._record[0] == 0:
            raise ValueError(
                "nothing to learn from: no query has two documents with different labels"
            )

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """As `Learner.outputs`."""
        return [self.fitted._scores(one.rows, one.queries) for one in held_out]

    def line(self, number: int) -> str:
        """As `Learner.line`."""
        return pass_line(self._record, number, self.n_iterations)

    def converged(self, measured: bool) -> bool:
        """As `Learner.converged`: a pass without mistakes is the last."""
        return self._record[1] == 0 and not measured


def pairing_of(model: Any, window: Window) -> tuple[Pairing, int, int]:
    """Pairs of a window, number of queries without pairs, and number of rows of the largest query.

    The last is 0 if there are no queries.
    """
    queries = group_rows(window.queries, window.rows.n_rows)
    pairing = make_pairing(
        replace(window, queries=queries),
        balanced=model.balance == "query",
        in_row_order=not model.shuffle,
    )
    if pairing.listed is None:
        warn_of_pairs(int(pairing.n_pairs.max(initial=0)))
    skipped = queries.ids.size - pairing.visited().size
    largest = 0 if window.queries is None else queries.largest
    return pairing, skipped, largest


def pass_line(record: list[int], number: int, n_passes: int) -> str:
    """A line for ``verbose``."""
    return f"epoch {number} of {n_passes}: {record[1]} mistakes in {record[0]} pairs"
