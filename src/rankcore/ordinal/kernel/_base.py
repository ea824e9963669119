"""Shared base of the ordinal learners in dual form: state, model file, and passes by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from rankcore._core.arguments import Gamma, KernelLike
from rankcore._core.concurrency import uninterrupted
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import COMPILED, call_kernel, columns_of, gram
from rankcore._core.model_spec import ModelSpec
from rankcore._core.numbers import power_of_two
from rankcore._core.params import Constraints, as_generator
from rankcore._core.scoring import Scoring, no_scoring
from rankcore._core.standardization import Moments, Units
from rankcore._core.threads import n_threads
from rankcore._ext.online_loop import follow_rows
from rankcore._ext.rows import Rows
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.kernel import pools
from rankcore.ordinal.kernel.dual import (
    OF_KERNEL,
    OVERFLOW_HINT,
    are_alike,
    compiled_budget,
    compiled_kernel,
    deviations,
    dual_coefs,
    given_values,
    kernel_settings,
    means,
    outputs,
    renew_values,
    resolved_gamma,
    rows_at_once,
    rows_in_units,
    set_gamma,
    set_gamma_in_units,
    slots_of,
    support_rows,
    support_vectors,
)
from rankcore.ordinal.projecting import project, thresholds_of
from rankcore.ordinal.scale import fix_scale, forget_scale
from rankcore.ordinal.standardizing import moments_of
from rankcore.ordinal.weights import Block, Examples

# Maximum number of rows whose kernel matrix is kept between passes, in 2**28 bytes.
KEPT_ROWS = 5792
# Rows from which an automatic scale is chosen, if that requires kernel values.
SCALED_ROWS = 256


@dataclass(kw_only=True)
class KernelRecord(OnlineRecord):
    """Record of a learner in dual form."""

    # During a pass: the number of the first row, and for each row the slot of its support vector or
    # -1 (None if no row can be one).
    visit: tuple[int, np.ndarray | None] = field(default=(0, None), repr=False, compare=False)
    # During the later passes of a fit: the kernel matrix of its rows, if kept.
    gram: np.ndarray | None = field(default=None, repr=False, compare=False)

    @property
    def pool(self) -> Mapping[str, np.ndarray]:
        """The arrays of `pools`."""
        arrays: Mapping[str, np.ndarray] = self.model.arrays
        return arrays

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "visit": (0, None), "gram": None}


class KernelClassifier(OnlineOrdinalClassifier):
    """An online ordinal learner in dual form. Not public: subclasses define the rule.

    A subclass provides ``_model_class``, a ``KernelModel``.
    """

    # A support vector is identified by the number of its row.
    _in_windows = False

    # Number of outputs that are sums of others.
    _n_sums = 0
    _record_class = KernelRecord

    _constraints: ClassVar[Constraints] = OF_KERNEL
    kernel: KernelLike
    gamma: Gamma
    degree: int
    coef0: float
    budget: int | None
    n_jobs: int | None
    _overflow_hint = OVERFLOW_HINT

    support_ = support_rows
    support_vectors_ = support_vectors
    dual_coef_ = dual_coefs
    gamma_ = resolved_gamma
    mean_ = means
    scale_ = deviations
    project = project

    def _output_lists(self, state: KernelRecord) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        slots, coefs, sizes, _ = state.model.parameters()
        return slots, coefs, sizes

    # ---------------------------------------------------------------- parameters and state

    def _settings(self) -> dict[str, Any]:
        return kernel_settings(self) | super()._settings()

    def _new_model(self, n_features: int, n_ranks: int) -> Any:
        room = {"room": pools.FIRST_CAPACITY, "entries": pools.FIRST_CAPACITY}
        model = self._model_class(n_features, n_ranks, self._settings(), **room)
        if "evict_seed" in model.arrays:
            model["evict_seed"][:] = as_generator(self.random_state).integers(2**63, size=1)
        return model

    def _restore(self, spec: ModelSpec) -> None:
        super()._restore(spec)
        model = self._state.model
        model.take_arrays(pools.roomy(model.saved()))

    def _describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if callable(self._state.settings["kernel"]):
            raise TypeError(
                "save requires a kernel by name; got a function; use pickle or "
                "joblib, or a precomputed kernel"
            )
        facts, arrays = super()._describe()
        return facts, arrays | pools.trimmed(self._state.model.saved())

    def _rule(self) -> dict[str, str | int]:
        """Return the decision rule of the outputs, for `Scoring`."""
        return {"rule": "thresholds"}

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        state: Any = self._state
        settings = state.settings
        if settings["kernel"] == "precomputed":
            return no_scoring("the kernel is precomputed: a row does not hold features")
        kernel = compiled_kernel(state.settings, state.pool)
        slots, coefs, sizes = self._output_lists(state)
        longest = int(sizes.max(initial=0))
        used = np.arange(longest) < sizes[:, np.newaxis]  # what is behind them is left over
        facts = {"kernel": settings["kernel"], "degree": kernel["degree"], **self._rule()}
        parts = {
            "constants": np.array([kernel["gamma"], kernel["coef0"]]),
            "coefs": np.where(used, coefs[:, :longest], 0),
            "slots": np.where(used, slots[:, :longest], 0),
            "sizes": sizes.astype(np.int64, copy=False),
            "norms": arrays["norms"],
            "thresholds": thresholds_of(self),
        }
        vectors = arrays["vectors"]
        if state.model.rows_change:
            parts |= {"means": state.model["units"][0], "factors": state.model["unit_factors"][0]}
        if "starts" not in arrays:
            return Scoring("kernel", {**parts, "vectors": vectors}, facts)
        indptr = np.concatenate([arrays["starts"], [vectors.size]])
        parts |= {"values": vectors, "indices": arrays["indices"], "indptr": indptr}
        return Scoring("kernel", parts, facts)

    # ---------------------------------------------------------------- learning

    def _block_rows(self, rows: Rows, state: Any) -> int:
        return rows_at_once(rows, state.model.arrays)

    def _check_columns(self, rows: Rows, last: int) -> None:
        if self.kernel == "precomputed" and last > rows.n_features:
            raise ValueError(
                "kernel='precomputed' requires X to have a column for each learned row, "
                f"in the same order; got {rows.n_features} columns for {last} rows"
            )

    def _change_units(self, model: Any, moments: Moments, *, first: bool) -> None:
        # Distances of rows need the means to be subtracted, whatever the intercepts.
        centered = self.kernel != "linear" or model.settings.get("fit_intercept", True)
        units = moments.units(centered)
        old = Units.of_rows(model["units"].copy())
        if not first and are_alike(units, old, moments.n_rows):
            return
        model.refold(units.center, units.deviation)
        if not (units.are_raw and old.are_raw and model["gamma"][0] > 0):
            set_gamma_in_units(self, model.arrays, moments, units)
            renew_values(self, model.settings, model.arrays)
        if first and model.follows:
            forget_scale(model)
            fix_scale(
                model,
                self,
                lambda: self._square_in_units(model, moments, units),
                lambda: float(moments.totals[2] / (moments.totals[0] * model.n_features)),
            )
            model.derive()

    def _square_in_units(self, model: Any, moments: Moments, units: Units) -> float:
        """Return about the mean of K(x, x) over standardised rows of a stream."""
        if self.kernel == "rbf":
            return 1.0
        square = moments.mean_square(units)
        if callable(self.kernel):  # that of support vectors, as there are no rows
            diagonal = model["diagonal"][: model["book"][pools.N_SUPPORT]]
            square = float(diagonal.mean()) if diagonal.size else 1.0
        elif self.kernel == "poly":
            with np.errstate(over="ignore"):
                square = (model["gamma"][0] * square + self.coef0) ** self.degree
        return power_of_two(square) if np.isfinite(square) else 1.0

    def _check_more_rows(self, state: Any, rows: Rows) -> None:
        self._check_columns(rows, int(state.model["book"][pools.FIRST]) + rows.n_rows)

    def _run_pass(self, state: Any, examples: Examples, epoch: int, n_epochs: int) -> None:
        model, rows, order = state.model, examples.rows, examples.order
        model.ensure_writable()
        first = int(model["book"][pools.FIRST]) if state.streaming else 0
        last = first + rows.n_rows
        self._check_columns(rows, last)
        with uninterrupted():
            model["book"][pools.FIRST] = last  # also if Ctrl-C ends the pass
            if self.kernel != "precomputed":
                model.reshape(partial(pools.add_vectors, rows=rows))
        if self.kernel == "precomputed":
            # Its values are found by the places of rows.
            examples = replace(examples, weights=None)
        standardized = pools.are_standardized(model.arrays)
        if state.t == 0 and not standardized and (not model.follows or np.isfinite(rows.squares)):
            set_gamma(self, model.arrays, examples.weighted)
        twice = order is not None and np.unique(order).size < order.size
        slot_of = slots_of(model.arrays, rows, first) if epoch > 1 or twice else None
        if epoch > 1 and state.gram is None and self._keeps_values(state, rows, n_epochs - epoch):
            kernel, all_rows = compiled_kernel(state.settings, state.pool), rows
            if model.rows_change:
                all_rows = as_rows(rows_in_units(model.arrays, rows, slice(0, rows.n_rows)))
            state.gram = gram(all_rows, 0, rows.n_rows, kernel, n_threads(self.n_jobs))
        state.visit = first, slot_of
        try:
            super()._run_pass(state, examples, epoch, n_epochs)
        finally:
            state.visit = 0, None

    def _keeps_values(self, state: Any, rows: Rows, n_further: int) -> bool:
        """Return whether one kernel matrix of all rows is faster for ``n_further + 1`` passes.

        It has fewer values than those of rows and current support vectors in all of these passes.
        """
        n = int(state.model["book"][pools.N_SUPPORT])
        wanted = (n_further + 1) * n > rows.n_rows
        small = rows.n_rows <= KEPT_ROWS and (
            not state.model.rows_change or rows.n_features <= KEPT_ROWS
        )
        return self.kernel in COMPILED and small and wanted

    def _replace_with(self, fitted: Any) -> None:
        fitted._state.gram = None
        super()._replace_with(fitted)

    def _mean_square(self, state: Any, rows: Rows) -> float:
        if self.kernel == "rbf":
            return 1.0
        standardized = state.model.rows_change
        if self.kernel == "linear" and not standardized:
            return super()._mean_square(state, rows)
        if self.kernel == "linear":
            units = Units.of_rows(state.model["units"])
            return power_of_two(moments_of(state.model).mean_square(units))
        n = min(rows.n_rows, SCALED_ROWS)
        block = rows_in_units(state.pool, rows, slice(0, n))
        if self.kernel == "precomputed":
            own = np.diagonal(columns_of(block, state.visit[0] + np.arange(n)))
        elif self.kernel == "poly":
            with np.errstate(over="ignore"):
                lengths = np.asarray((block * block).sum(axis=1), dtype=np.float64).reshape(-1)
                own = (state.model["gamma"][0] * lengths + self.coef0) ** self.degree
        else:
            own = np.diagonal(call_kernel(self.kernel, block, block))
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(np.mean(own))
        return power_of_two(mean) if np.isfinite(mean) else 1.0

    def _learn(self, state: Any, block: Block) -> int:
        examples, start = block.examples, block.start
        while start < block.stop:  # rows that are learned in the same units
            before = int(state.pool["book"][pools.N_SUPPORT])
            stop = follow_rows(
                state.model,
                self,
                examples.rows,
                examples.order,
                examples.steps,
                start,
                block.stop,
            )
            if stop < 0:
                return start
            n, (first, slot_of) = int(state.pool["book"][pools.N_SUPPORT]), state.visit
            if n < before and slot_of is not None:
                slot_of[:] = slots_of(state.pool, examples.rows, first)
            reached = self._learn_in_units(state, replace(block, start=start, stop=stop))
            if reached < stop:
                return reached
            start = stop
        return start

    def _learn_in_units(self, state: Any, block: Block) -> int:
        first, slot_of = state.visit
        rows, order = block.examples.rows, block.examples.order
        start, stop, model = block.start, block.stop, state.model
        which = np.arange(start, stop) if order is None else order[start:stop]
        model.reshape(partial(pools.make_room, rows=rows, which=which, budget=self.budget))
        values = among = None
        if state.gram is None:
            values, among = given_values(self, state, rows, which, first)
        model.take(
            compiled_kernel(state.settings, state.pool),
            compiled_budget(self, state),
            self._n_sums,
            rows,
            order,
            start,
            stop,
            first,
            slot_of,
            values,
            among,
            state.gram,
        )
        return block.learn(model, self, block.examples.steps, follow=False)

    def _projected(self, rows: Rows) -> np.ndarray:
        return np.ascontiguousarray(outputs(self, rows)[:, 0])

    def _summary(self) -> dict[str, Any]:
        return super()._summary() | {"support_vectors": int(self.support_.size)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
