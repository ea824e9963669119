"""Shared base of all learners in dual form: kernel, budget, support vectors, scoring by blocks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np

from rankcore._core.arguments import Gamma, KernelLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.kernels import (
    COMPILED,
    GAMMAS,
    KERNELS,
    call_kernel,
    columns_of,
    resolve_gamma,
    some_rows,
)
from rankcore._core.numbers import check_scores
from rankcore._core.params import (
    N_JOBS,
    Constraints,
    Function,
    Integer,
    Options,
    Real,
    as_generator,
)
from rankcore._core.threads import for_each, n_threads
from rankcore._ext import kernel_scores
from rankcore._ext.kernel_learners import POLICIES
from rankcore._ext.rows import Rows
from rankcore.ordinal.kernel import _pool

Compiled = dict[str, Any]  # parameters of the compiled learners

# Rows per block: large enough to compute kernel values together, small enough for these to fit into
# the nearer caches.
LEAST_ROWS, BLOCK_ROWS = 8, 64
BLOCK_VALUES = 2**20
# Rows scored by a thread at a time.
SCORED_ROWS = 1024


class DualLearner:
    """A learner in dual form. Not public.

    Its state has ``settings``, which include those of ``_kernel_settings``, and
    ``pool``, the arrays of ``_pool``. A class with this base provides ``_fitted_state`` and
    ``_output_lists``.
    """

    _constraints: ClassVar[Constraints] = {
        "kernel": Options(*KERNELS) | Function(),
        "gamma": Options(*GAMMAS) | Real(0, 1e100),
        "degree": Integer(1, 2**20),
        "coef0": Real(-1e100, 1e100),
        "budget": Integer(1, 2**63 - 1) | None,
        "decay": Real(0, 1),
        "projection_tol": Real(0, 1),
        "n_jobs": N_JOBS,
    }
    kernel: KernelLike
    gamma: Gamma
    degree: int
    coef0: float
    budget: int | None
    budget_policy: Literal["oldest", "random", "smallest", "forgetron", "norma", "projectron"]
    decay: float
    projection_tol: float
    n_jobs: int | None
    average: bool
    random_state: Any
    n_features_in_: int
    _fitted_state: Any  # a method
    _overflow_hint = "X or the kernel's values are too large; scale X, or reduce degree or gamma"

    @abstractmethod
    def _output_lists(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return slots, coefficients and sizes of the lists for predictions."""

    # ---------------------------------------------------------------- parameters

    def _kernel_settings(self) -> dict[str, Any]:
        named = isinstance(self.gamma, str)
        return {
            "kernel": self.kernel,
            "gamma": self.gamma if named else float(self.gamma),
            "degree": int(self.degree),
            "coef0": float(self.coef0),
            "budget": None if self.budget is None else int(self.budget),
            "budget_policy": self.budget_policy,
        }

    def _new_pool(
        self, n_outputs: int, averaged: bool, zeros: _pool.Zeros = np.zeros
    ) -> _pool.Arrays:
        policy = None if self.budget is None else self.budget_policy
        arrays = _pool.new_lists(n_outputs, averaged, policy, zeros)
        if policy == "random":
            arrays["evict_seed"] = as_generator(self.random_state).integers(2**63, size=1)
        return arrays

    # ---------------------------------------------------------------- learning

    def _rows_at_once(self, rows: Rows, arrays: _pool.Arrays) -> int:
        """Return the number of rows of a block."""
        n = int(arrays["book"][_pool.N_SUPPORT]) + BLOCK_ROWS
        if rows.columns is None:  # a column-major copy of the rows takes memory too
            n = max(n, rows.n_features // 4)
        return max(LEAST_ROWS, min(BLOCK_ROWS, BLOCK_VALUES // n))

    def _resolve_gamma(self, arrays: _pool.Arrays, rows: Rows) -> None:
        if self.kernel in ("poly", "rbf"):
            arrays["gamma"][0] = resolve_gamma(self.gamma, rows)

    def _slots_of(self, arrays: _pool.Arrays, rows: Rows, first: int) -> np.ndarray:
        """Return the slot of each row from number ``first`` on, or -1."""
        slot_of = np.full(rows.n_rows, -1, dtype=np.int32)
        n = int(arrays["book"][_pool.N_SUPPORT])
        known = arrays["support"][:n] - first  # negative for earlier calls
        slot_of[known[known >= 0]] = np.flatnonzero(known >= 0)
        return slot_of

    def _check_diagonal(self, arrays: _pool.Arrays, before: int) -> None:
        """Raise if the kernel of a new support vector with itself overflowed."""
        joined = slice(0 if self.budget is not None else before, None)
        if not np.isfinite(arrays["diagonal"][joined]).all():
            raise ValueError(f"a kernel value overflowed: {self._overflow_hint}")

    def _given_values(
        self, state: Any, rows: Rows, which: np.ndarray, first: int
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Compute kernel values of a block with the support vectors and itself, if not compiled."""
        if isinstance(self.kernel, str) and self.kernel in COMPILED:
            return None, None
        block = some_rows(rows, which)
        n = int(state.pool["book"][_pool.N_SUPPORT])
        if self.kernel == "precomputed":
            support = state.pool["support"][:n]
            return columns_of(block, support), columns_of(block, first + which)
        among = call_kernel(self.kernel, block, block)
        if n == 0:
            return np.empty((which.size, 0)), among
        vectors = _pool.support_matrix(state.pool, rows.n_features)
        return call_kernel(self.kernel, block, vectors), among

    def _compiled_kernel(self, state: Any) -> Compiled:
        settings = state.settings
        kernel = settings["kernel"]
        return {
            "kind": COMPILED[kernel] if isinstance(kernel, str) and kernel in COMPILED else 0,
            "gamma": float(state.pool["gamma"][0]),
            "coef0": settings["coef0"],
            "degree": settings["degree"],
        }

    def _compiled_budget(self, state: Any) -> Compiled:
        settings = state.settings
        seed = state.pool.get("evict_seed")
        return {
            "budget": -1 if settings["budget"] is None else settings["budget"],
            "policy": POLICIES[settings["budget_policy"]],
            "decay": float(self.decay),
            "tolerance": float(self.projection_tol),
            "seed": 0 if seed is None else int(seed[0]),
        }

    # ---------------------------------------------------------------- predicting

    def _outputs(self, rows: Rows) -> np.ndarray:
        """Return sums of coefficients times kernel values, shape (n_rows, n_outputs)."""
        state = self._fitted_state()
        # Copies: another thread may be learning, and validated arrays must not change.
        slots, coefs, sizes = (part.copy() for part in self._output_lists(state))
        arrays = dict(state.pool)
        for name in ("starts", "lengths"):
            if name in arrays:
                arrays[name] = arrays[name].copy()
        out = np.zeros((rows.n_rows, sizes.size))
        n = int(arrays["book"][_pool.N_SUPPORT])
        if n == 0:
            return out
        kernel = state.settings["kernel"]
        compiled = isinstance(kernel, str) and kernel in COMPILED
        if compiled:
            compiled_kernel = self._compiled_kernel(state)
            vectors = arrays["vectors"].reshape(-1)
        else:
            lists = {"book": arrays["book"], "slots": slots, "coefs": coefs, "sizes": sizes}
            table = np.ascontiguousarray(_pool.coefficient_table(lists).T)
            support = arrays["support"][:n]
            if kernel != "precomputed":
                matrix = _pool.support_matrix(arrays, rows.n_features)

        def score(start: int) -> None:
            stop = min(start + SCORED_ROWS, rows.n_rows)
            if compiled:
                kernel_scores.outputs(
                    rows,
                    start,
                    stop,
                    compiled_kernel,
                    vectors,
                    arrays.get("indices"),
                    arrays.get("starts"),
                    arrays.get("lengths"),
                    arrays["norms"],
                    n,
                    slots,
                    coefs,
                    sizes,
                    out[start:stop],
                )
                return
            block = some_rows(rows, slice(start, stop))
            if kernel == "precomputed":
                values = columns_of(block, support)
            else:
                values = call_kernel(kernel, block, matrix)
            out[start:stop] = values @ table

        for_each(score, range(0, rows.n_rows, SCORED_ROWS), n_threads(self.n_jobs))
        return check_scores(out)

    # ---------------------------------------------------------------- what was learned

    @property
    @consistent_read
    def support_(self) -> np.ndarray:
        """Row numbers of the support vectors, in order of arrival."""
        arrays = self._fitted_state().pool
        return arrays["support"][: arrays["book"][_pool.N_SUPPORT]].copy()

    @property
    @consistent_read
    def support_vectors_(self) -> Any:
        """Support vectors, shape (n_support, n_features): an array or CSR, like X."""
        return _pool.support_matrix(self._fitted_state().pool, self.n_features_in_)

    @property
    @consistent_read
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the support vectors in predictions, (n_outputs, n_support)."""
        state = self._fitted_state()
        slots, coefs, sizes = self._output_lists(state)
        lists = {"book": state.pool["book"], "slots": slots, "coefs": coefs, "sizes": sizes}
        return _pool.coefficient_table(lists)

    @property
    @consistent_read
    def gamma_(self) -> float:
        """The resolved ``gamma``; 0 if the kernel has none."""
        return float(self._fitted_state().pool["gamma"][0])
