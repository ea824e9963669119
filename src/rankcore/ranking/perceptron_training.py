"""Training of pairwise perceptrons: passes over queries, with Gram matrices or scores on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.equal_rows import EQUAL_WITHIN_QUERIES, equal_in_groups
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.scales import warn_of_scales
from rankcore._core.sources import MemoryRows, RowBlocks, Source, Window
from rankcore._core.training import Learner
from rankcore._ext import pairs as kernels
from rankcore._ext.online_model import zeros_by_line
from rankcore._ext.pair_model import PairModel
from rankcore._ext.rows import Rows
from rankcore.progress import Progress, report
from rankcore.ranking.data import HeldOut
from rankcore.ranking.pairs import (
    Pairing,
    check_useful,
    make_pairing,
    warn_of_pairs,
    weighted_rows,
)
from rankcore.ranking.perceptron_state import PairwiseState
from rankcore.ranking.standardizing import moments_of_fit, scale_by

# Logged statistics of each pass.
STATISTICS = ("pairs", "mistakes", "hypotheses", "queries", "skipped")
# Pairs to visit, or equivalent work, between checks for signals: some milliseconds.
BUDGET = 500_000
# Maximum number of documents of a Gram matrix (128 MiB).
GRAM_DOCS = 4096
# Maximum number of values of a query to copy (32 MiB).
PACKED_VALUES = 2**22
# Documents are padded to a multiple of this.
PANEL = 8


class PairwiseLearner(Learner):
    """Learner of `PairwisePerceptron`.

    ``model`` does not change; ``resumed`` is a model to continue.
    """

    def __init__(
        self, model: Any, source: Source, held_out: Sequence[HeldOut], resumed: Any = None
    ) -> None:
        self.n_iterations, self.shuffle = int(model.max_iter), bool(model.shuffle)
        n_features, has_rows = source.n_features, source.kept
        if isinstance(source, RowBlocks) and (n_features is None or source.has_stats):
            n_features, has_rows = source.stats().n_features, True
        assert n_features is not None
        largest, in_queries = 0, True
        self._pairing: Pairing | None = None
        self._tied = True  # whether all rows compared so far are equal within their queries
        self._data: Any = None
        if source.kept:
            (window,) = source.windows(n_features, None)
            in_queries = window.queries is not None
            self._pairing, self._skipped, largest = pairing_of(model, window)
            check_useful(self._pairing, window.rows.n_rows)
            self._note_ties(window.rows, self._pairing)
            if isinstance(source, MemoryRows):
                source.weighted = weighted_rows(window)
        self.validation = model._validation(source.given, n_features, in_queries, held_out)
        self.generator = as_generator(model.random_state)
        state: PairwiseState = model._new_state(n_features, self.generator)  # draws its seed
        if resumed is not None:
            state, largest = resumed._state, resumed._largest_query
            if resumed.n_features_in_ != n_features:
                raise ValueError(
                    f"the checkpoint has {resumed.n_features_in_} features, but the data have "
                    f"{n_features}"
                )
        elif state.model.has_factors:
            moments = moments_of_fit(source, n_features, has_rows)
            scale_by(state.model, moments, source.names, type(model).__name__)
        if has_rows and not state.model.has_factors:
            columns = source.columns_off_scale(centred=True)
            warn_of_scales(columns, source.names, type(model).__name__)
        self.seed = source.seed(self.generator)
        self._quality = model._quality(self.validation[0] if self.validation else None)
        self.fitted = model._fitted_copy(source.given, n_features, state, _largest_query=largest)

    @property
    def _record(self) -> list[int]:
        return self.fitted._state.log[-1]

    def open(self, number: int) -> None:
        """Implement `Learner.open`."""
        log = self.fitted._state.log
        if number > len(log):
            log.append([0] * len(STATISTICS))

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """Implement `Learner.learn`."""
        fitted = self.fitted
        pairing, skipped, passes = self._pairing, 0, self.n_iterations
        if pairing is None:
            if window.queries is None:
                raise ValueError("a fit to rows on disk requires the query of each row; got no qid")
            pairing, skipped, largest = pairing_of(fitted, window)
            fitted._largest_query = max(fitted._largest_query, largest)
            self._note_ties(window.rows, pairing)
            data = bind_pairs(fitted, pairing, window.rows)
        else:
            skipped = self._skipped
            if self._data is None:
                self._data = bind_pairs(fitted, pairing, window.rows, passes)
            data = self._data
        self._record[4] += skipped
        sequence: NDArray[np.int64] = np.arange(pairing.n_pairs.size)
        if self.shuffle:
            generator.shuffle(sequence)
        run_pass(fitted, data, pairing, sequence, self._quality, (number, passes))

    def _note_ties(self, rows: Rows, pairing: Pairing) -> None:
        self._tied = self._tied and equal_in_groups(rows, pairing.docs, pairing.bounds)

    def idle(self) -> str | None:
        """Implement `Learner.idle`: no scores can differ."""
        return EQUAL_WITHIN_QUERIES if self._tied else None

    def close(self) -> None:
        """Implement `Learner.close`."""
        if self._record[0] == 0:
            raise ValueError(
                "nothing to learn from: no query has two documents with different labels"
            )

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """Implement `Learner.outputs`."""
        return [self.fitted._scores(rows.rows, rows.queries) for rows in held_out]

    def line(self, number: int) -> str:
        """Implement `Learner.line`."""
        pairs, mistakes, *_ = self._record
        return f"epoch {number} of {self.n_iterations}: {mistakes} mistakes in {pairs} pairs"

    def converged(self, measured: bool) -> bool:
        """Implement `Learner.converged`: a pass without mistakes is the last."""
        return self._record[1] == 0 and not measured


def pairing_of(model: Any, window: Window, in_part: bool = False) -> tuple[Pairing, int, int]:
    """Return the pairs of a window, the number of queries without pairs, and the longest query.

    The last is 0 if there are no queries. ``in_part``: as in `make_pairing`.
    """
    queries = group_rows(window.queries, window.rows.n_rows)
    pairing = make_pairing(
        replace(window, queries=queries),
        balanced=model.balance == "query",
        in_row_order=not model.shuffle,
        in_part=in_part,
    )
    if pairing.listed_pairs is None:
        warn_of_pairs(int(pairing.n_pairs.max(initial=0)))
    skipped = queries.ids.size - pairing.n_pairs.size
    largest = 0 if window.queries is None else queries.largest
    return pairing, skipped, largest


def run_pass(
    model: Any,
    data: kernels.PairData,
    pairing: Pairing,
    sequence: NDArray[np.int64],
    quality: Callable[[Any], float] | None,
    passes: tuple[int, int] = (1, 1),
) -> None:
    """Visit queries of a pairing in the order of ``sequence``, and log statistics in the model.

    ``quality`` is the criterion for members of the committee, if any. Raises ValueError if weights,
    scores or qualities are not finite, or hypotheses require more than ``memory_limit``.
    """
    learned: PairModel = model._state.model
    n_queries = pairing.n_pairs.size
    steps = pairing.finite_steps(model.balance == "query")
    units = np.ones(n_queries) if model.count == "pair" else 1.0 / pairing.n_pairs
    record = model._state.log[-1]
    before, base, position = learned["counts"].copy(), list(record), 0
    while True:
        position, outcome = kernels.learn(
            learned, data, sequence, position, steps, units, model, BUDGET
        )
        pairs, mistakes = (learned["counts"] - before)[:2].tolist()
        record[:2] = base[0] + pairs, base[1] + mistakes
        record[2:4] = learned.n_mistakes + 1, base[3] + position
        if outcome == kernels.OUTCOMES["candidate"]:
            kernels.judge(learned, data, quality)
            continue
        if outcome == kernels.OUTCOMES["full"]:
            learned.grow(int(model.memory_limit))
            continue
        if outcome == kernels.OUTCOMES["overflowed"]:
            raise _overflow("scores")
        share = record[1] / max(record[0], 1)
        number, last = passes
        measure = "share of mistakes"
        report(Progress(number, last, position, sequence.size, share, measure, "queries"))
        if outcome == kernels.OUTCOMES["reached"]:
            break
    if not learned.is_finite():
        raise _overflow("weights")


def _overflow(what: str) -> ValueError:
    return ValueError(
        f"{what} overflowed: X or sample_weight is too large; scale X, for example with "
        "sklearn.preprocessing.StandardScaler"
    )


def bind_pairs(model: Any, pairing: Pairing, rows: Rows, passes: int = 1) -> kernels.PairData:
    """Bind pairs and rows for the kernel, with a cache of Gram matrices.

    Pairs are visited in order or, with ``shuffle``, in the random order of the seed of a fitted
    ``model``. The number of
    passes and ``memory_limit``, the size of the cache, change only the time.
    """
    state: PairwiseState = model._state
    lexicographic, scale = not model.shuffle, state.model["scale"]
    n_docs = np.diff(pairing.bounds)
    ways = _ways(pairing, rows, model._solver, passes, lexicographic)
    cached = np.full(n_docs.size, -1, dtype=np.int64)
    size = 0
    if passes > 1:
        sizes = np.where(ways == kernels.WAYS["gram"], (-(-n_docs // PANEL) * PANEL) ** 2, 0)
        stops = np.cumsum(sizes)
        fits = (sizes > 0) & (stops <= int(model.memory_limit) // 8)
        cached[fits] = (stops - sizes)[fits]
        size = int(stops[fits].max(initial=0))
    listed = pairing.listed_pairs
    return kernels.PairData(
        rows,
        pairing.docs,
        pairing.bounds,
        pairing.labels,
        pairing.doc_weights,
        None if listed is None else listed.offsets,
        None if listed is None else listed.winners,
        None if listed is None else listed.losers,
        None if listed is None else listed.weights,
        pairing.n_pairs,
        ways,
        cached,
        zeros_by_line((size,)),
        lexicographic,
        state.seed,
        scale if scale.size else None,
    )


def _ways(
    pairing: Pairing, rows: Rows, solver: str, passes: int, lexicographic: bool
) -> NDArray[np.uint8]:
    """Choose the cheapest way to compute each query's scores, independently of the machine."""
    n_docs, dense = np.diff(pairing.bounds), rows.columns is None
    if solver == "packed" and not dense:
        solver = "lazy"
    if solver != "auto":
        return np.full(n_docs.size, kernels.WAYS[solver], dtype=np.uint8)
    # Inner products: n^2 / 2 for a Gram matrix, otherwise up to two per pair and pass. Those of
    # dense rows are computed in blocks, eight times as fast.
    gram = n_docs.astype(np.float64) ** 2 / 2 / (8 if dense else 1)
    lazy = 2.0 * pairing.n_pairs * min(passes, 4)
    worth = (gram <= lazy) & (n_docs <= GRAM_DOCS)
    ways = np.where(worth, kernels.WAYS["gram"], kernels.WAYS["lazy"])
    if dense and not lexicographic:
        # A mistake costs n_docs with a Gram matrix; here mistakes and pairs cost n_features.
        packed = (n_docs > 2 * rows.n_features) & (pairing.n_pairs > 4 * n_docs)
        packed &= n_docs * (rows.n_features + PANEL) <= PACKED_VALUES
        ways[packed] = kernels.WAYS["packed"]
    return ways.astype(np.uint8)
