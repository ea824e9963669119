"""Shared base of the ordinal learners in dual form: state, model file, and passes by blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rankcore._core.concurrency import uninterrupted
from rankcore._core.kernels import COMPILED, call_kernel, columns_of, gram, some_rows
from rankcore._core.model_spec import outline
from rankcore._core.numbers import power_of_two
from rankcore._core.scoring import Scoring, no_scoring
from rankcore._core.state import OnlineState, are_counts
from rankcore._core.threads import n_threads
from rankcore._ext.rows import Rows
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._projecting import LatentScoreMixin
from rankcore.ordinal._weights import Block, Examples
from rankcore.ordinal.kernel import _pool
from rankcore.ordinal.kernel._dual import DualLearner
from rankcore.ordinal.kernel._pool import DualState, Zeros

# Maximum number of rows whose kernel matrix is kept between passes, in 2**28 bytes.
KEPT_ROWS = 5792
# Rows from which an automatic scale is chosen, if that requires kernel values.
SCALED_ROWS = 256


class KernelClassifier(DualLearner, LatentScoreMixin, OnlineOrdinalClassifier):
    """An online ordinal learner in dual form. Not public: subclasses define the rule.

    A subclass provides ``_bind_rule``, ``_rule_arrays`` and ``_output_lists``.
    """

    # A support vector is identified by the number of its row.
    _in_windows = False

    # ---------------------------------------------------------------- hooks of a subclass

    @abstractmethod
    def _rule_arrays(self, n_ranks: int, zeros: Zeros) -> tuple[dict[str, np.ndarray], int]:
        """Arrays of the rule, created by ``zeros``, and the number of outputs."""

    @abstractmethod
    def _bind_rule(self, state: OnlineState, n_features: int) -> Any:
        """Return validated arrays of the state in the form of the compiled rule."""

    def _bind(self, state: OnlineState) -> Any:
        return self._bind_rule(state, self.n_features_in_)

    @abstractmethod
    def _cuts(self) -> np.ndarray:
        """Return the thresholds for predictions."""

    def _averages(self) -> bool:
        """Whether lists of coefficients have lazy sums."""
        return bool(self.average)

    # ---------------------------------------------------------------- parameters and state

    def _settings(self) -> dict[str, Any]:
        return self._kernel_settings() | super()._settings()

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> DualState:
        zeros = np.zeros if like is None else outline
        arrays, n_outputs = self._rule_arrays(n_ranks, zeros)
        arrays |= self._new_pool(n_outputs, self._averages(), zeros)
        if like is not None:
            self._resize(arrays, n_features, like)
        return DualState(by_feature={}, others=arrays, settings=self._settings())

    def _resize(
        self, arrays: _pool.Arrays, n_features: int, saved: Mapping[str, np.ndarray]
    ) -> None:
        """Set outlines of arrays to the dtypes and shapes required in a model file."""
        shapes = getattr(saved, "shapes", None)

        def shape(name: str) -> tuple[int, ...]:
            name = f"others.{name}"
            return saved[name].shape if shapes is None else shapes[name]

        n = int((0, *shape("support"))[-1])
        longest = int((0, *shape("coefs"))[-1])
        for name, array in arrays.items():
            if name in _pool.BY_SLOT:
                arrays[name] = outline(n, dtype=array.dtype)
            elif name in _pool.BY_PAIR:
                arrays[name] = outline((n, n))
            elif name in _pool.BY_ENTRY:
                arrays[name] = outline((array.shape[0], longest), dtype=array.dtype)
        columns = "others.support"
        if self.kernel != "precomputed":
            vectors = saved["others.vectors"]
            if vectors.dtype not in (np.float32, np.float64) or vectors.ndim not in (1, 2):
                raise ValueError(
                    "support vectors must be float32 or float64, with 1 or 2 dimensions; found "
                    f"{vectors.dtype} with {vectors.ndim}"
                )
            if vectors.ndim == 2:
                arrays["vectors"] = outline((n, n_features), dtype=vectors.dtype)
                return
            columns = "others.indices"
            arrays["vectors"] = outline(vectors.size, dtype=vectors.dtype)
            arrays["indices"] = outline(vectors.size, dtype=np.int32)
            arrays["starts"] = arrays["lengths"] = outline(n, dtype=np.int64)
        if (np.asarray(saved[columns]) >= n_features).any():
            raise ValueError(f"the columns of support vectors must be < {n_features}")

    def _check_state(self, state: Any, n_ranks: int) -> None:
        arrays = state.others
        n = arrays["support"].size
        book, sizes = arrays["book"], arrays["sizes"]
        used = np.arange(arrays["slots"].shape[1]) < sizes[:, np.newaxis]
        slots = np.where(used, arrays["slots"], -1)
        if (
            book[_pool.N_SUPPORT] != n
            or (state.settings["budget"] is not None and n > state.settings["budget"])
            or not are_counts(book, arrays["born"], arrays["support"])
            or (arrays["norms"] < 0).any()
            or arrays["gamma"][0] < 0
        ):
            raise ValueError("the number, counts or norms of its support vectors are out of range")
        if (
            (sizes < 0).any()
            or (sizes > min(n, slots.shape[1])).any()
            or (np.diff(slots, axis=1)[used[:, 1:]] < 1).any()
            or (slots >= n).any()
            or (slots[used] < 0).any()
        ):
            raise ValueError("its coefficients are not of its support vectors, in their order")
        if "starts" in arrays:
            n_values = arrays["vectors"].size
            if (
                (arrays["starts"] < 0).any()
                or (arrays["lengths"] < 0).any()
                or (arrays["lengths"] > n_values).any()
                or (arrays["starts"] > n_values - arrays["lengths"]).any()
                or book[_pool.STORED] != n_values
                or (arrays["indices"] < 0).any()
            ):
                raise ValueError("its sparse support vectors are not within their values")
        state.others = _pool.roomy(arrays)

    def _describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if callable(self._state.settings["kernel"]):
            raise TypeError(
                "save requires a kernel by name; found a function; use pickle or "
                "joblib, or a precomputed kernel"
            )
        facts, arrays = super()._describe()
        trimmed = _pool.trimmed(self._state.others)
        return facts, arrays | {f"others.{name}": array for name, array in trimmed.items()}

    def _rule(self) -> dict[str, str | int]:
        """Decision rule of the outputs, for `Scoring`."""
        return {"rule": "thresholds"}

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        state: Any = self._state
        settings = state.settings
        if settings["kernel"] == "precomputed":
            return no_scoring("the kernel is precomputed: a row does not hold features")
        kernel = self._compiled_kernel(state)
        slots, coefs, sizes = self._output_lists(state)
        longest = int(sizes.max(initial=0))
        used = np.arange(longest) < sizes[:, np.newaxis]  # what is behind them is left over
        facts = {"kernel": settings["kernel"], "degree": kernel["degree"], **self._rule()}
        parts = {
            "constants": np.array([kernel["gamma"], kernel["coef0"]]),
            "coefs": np.where(used, coefs[:, :longest], 0),
            "slots": np.where(used, slots[:, :longest], 0),
            "sizes": sizes.astype(np.int64, copy=False),
            "norms": arrays["others.norms"],
            "thresholds": self._cuts(),
        }
        vectors = arrays["others.vectors"]
        if "others.starts" not in arrays:
            return Scoring("kernel", {**parts, "vectors": vectors}, facts)
        indptr = np.concatenate([arrays["others.starts"], [vectors.size]])
        parts |= {"values": vectors, "indices": arrays["others.indices"], "indptr": indptr}
        return Scoring("kernel", parts, facts)

    # ---------------------------------------------------------------- learning

    def _block_rows(self, rows: Rows, state: Any) -> int:
        return self._rows_at_once(rows, state.others)

    def _check_columns(self, rows: Rows, last: int) -> None:
        if self.kernel == "precomputed" and last > rows.n_features:
            raise ValueError(
                "kernel='precomputed' requires X to have a column for each learned row, "
                f"in the same order; found {rows.n_features} columns for {last} rows"
            )

    def _check_more_rows(self, state: Any, rows: Rows) -> None:
        self._check_columns(rows, int(state.others["book"][_pool.FIRST]) + rows.n_rows)

    def _run_pass(self, state: Any, examples: Examples, epoch: int, n_epochs: int) -> None:
        arrays, rows, order = state.others, examples.rows, examples.order
        first = int(arrays["book"][_pool.FIRST]) if state.streaming else 0
        last = first + rows.n_rows
        self._check_columns(rows, last)
        with uninterrupted():
            arrays["book"][_pool.FIRST] = last  # also if Ctrl-C ends the pass
            if self.kernel != "precomputed":
                _pool.add_vectors(arrays, rows)
        if self.kernel == "precomputed":
            # Its values are found by the places of rows.
            examples = replace(examples, weights=None)
        if state.t == 0:
            self._resolve_gamma(arrays, examples.weighted)
        twice = order is not None and np.unique(order).size < order.size
        slot_of = self._slots_of(arrays, rows, first) if epoch > 1 or twice else None
        if epoch > 1 and state.gram is None and self._keeps_values(state, rows, n_epochs - epoch):
            kernel = self._compiled_kernel(state)
            state.gram = gram(rows, 0, rows.n_rows, kernel, n_threads(self.n_jobs))
        state.visit = first, slot_of
        try:
            super()._run_pass(state, examples, epoch, n_epochs)
        finally:
            state.visit = 0, None

    def _keeps_values(self, state: Any, rows: Rows, n_further: int) -> bool:
        """Whether to compute the kernel matrix of all rows once, before ``n_further + 1`` passes.

        It has fewer values than those of rows and current support vectors in all of these passes.
        """
        n = int(state.others["book"][_pool.N_SUPPORT])
        wanted = (n_further + 1) * n > rows.n_rows
        return self.kernel in COMPILED and rows.n_rows <= KEPT_ROWS and wanted

    def _replace_with(self, fitted: Any) -> None:
        fitted._state.gram = None
        super()._replace_with(fitted)

    def _mean_square(self, state: Any, rows: Rows) -> float:
        if self.kernel == "rbf":
            return 1.0
        if self.kernel == "linear":
            return super()._mean_square(state, rows)
        n = min(rows.n_rows, SCALED_ROWS)
        block = some_rows(rows, slice(0, n))
        if self.kernel == "precomputed":
            own = np.diagonal(columns_of(block, state.visit[0] + np.arange(n)))
        elif self.kernel == "poly":
            with np.errstate(over="ignore"):
                lengths = np.asarray((block * block).sum(axis=1), dtype=np.float64).reshape(-1)
                own = (state.others["gamma"][0] * lengths + self.coef0) ** self.degree
        else:
            own = np.diagonal(call_kernel(self.kernel, block, block))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(np.mean(own))
        return power_of_two(mean) if np.isfinite(mean) else 1.0

    def _learn(self, state: Any, block: Block) -> int:
        first, slot_of = state.visit
        rows, order = block.examples.rows, block.examples.order
        start, stop = block.start, block.stop
        which = np.arange(start, stop) if order is None else order[start:stop]
        before = int(state.others["book"][_pool.N_SUPPORT])
        _pool.make_room(state.others, rows, which, self.budget)
        values = among = None
        if state.gram is None:
            values, among = self._given_values(state, rows, which, first)
        bound = self._bind_rule(state, rows.n_features)
        bound.take(rows, order, start, stop, first, slot_of, values, among, state.gram)
        reached = block.learn(bound, block.examples.steps, state.counts)
        self._check_diagonal(state.others, before)
        return reached

    def _projected(self, rows: Rows) -> np.ndarray:
        return np.ascontiguousarray(self._outputs(rows)[:, 0])

    def _summary(self) -> dict[str, Any]:
        return super()._summary() | {"support_vectors": int(self.support_.size)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
