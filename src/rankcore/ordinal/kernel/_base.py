"""What the learners in dual form share: kernels, budgets, the pool, and scoring by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_scalar

from rankcore._core.concurrency import raise_signals, reads
from rankcore._core.numbers import check_scores
from rankcore._core.params import as_generator, check_option, check_real
from rankcore._core.threads import check_n_jobs, n_threads
from rankcore._ext import kernel_scores
from rankcore._ext.online_loop import learn
from rankcore._ext.rows import Rows
from rankcore.ordinal._base import ProjectingClassifier
from rankcore.ordinal._scale import mean_square_length, power_of_two
from rankcore.ordinal.kernel import _pool
from rankcore.ordinal.kernel._functions import (
    COMPILED,
    call_kernel,
    check_kernel,
    columns_of,
    resolve_gamma,
    some_rows,
)
from rankcore.ordinal.kernel._pool import DualState

Compiled = dict[str, Any]  # parameters as the compiled learners take them
# In the order of _ext/_dual.pxd.
POLICIES = ("oldest", "random", "smallest", "forgetron", "norma", "projectron")

# A block of rows is learned at once: long enough for its kernel values to be computed together,
# short enough for these to stay in the nearer caches.
LEAST_ROWS, BLOCK_ROWS = 8, 64
BLOCK_VALUES = 2**20
# Rows by which an automatic scale is chosen, if that takes kernel values.
SCALED_ROWS = 256
# Rows that a thread scores between two looks at pending signals.
SCORED_ROWS = 1024


class KernelClassifier(ProjectingClassifier):
    """An online ordinal learner in dual form. Not public: subclasses say their rule.

    A subclass provides ``_bind_rule``, ``_rule_arrays``, ``_rule_settings``, ``_check_rule`` and
    ``_output_lists``.
    """

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    budget: int | None
    budget_policy: str
    decay: float
    projection_tol: float
    n_jobs: int | None
    average: bool
    max_iter: int
    random_state: Any
    _overflow_hint = "X or the kernel's values are too large; scale X, or lower degree or gamma"

    # ---------------------------------------------------------------- what a subclass says

    def _rule_arrays(self, n_ranks: int) -> tuple[dict[str, np.ndarray], int]:
        """Arrays of the rule itself, and the number of outputs."""
        raise NotImplementedError

    def _rule_settings(self) -> dict[str, Any]:
        """Parameters of the rule that are built into the arrays."""
        raise NotImplementedError

    def _bind_rule(
        self, state: DualState, kernel: Compiled, budget: Compiled, n_features: int
    ) -> Any:
        """The state's arrays, checked, as the compiled rule takes them."""
        raise NotImplementedError

    def _averages(self) -> bool:
        """Whether lists of coefficients have lazy sums."""
        return bool(self.average)

    def _output_lists(self, state: DualState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slots, coefficients and sizes of the lists to predict with."""
        raise NotImplementedError

    # ---------------------------------------------------------------- parameters and state

    def _check_kernel_params(self) -> None:
        self._check_common_params()
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        if self.budget is not None:
            check_scalar(self.budget, "budget", Integral, min_val=1)
        check_option(self.budget_policy, "budget_policy", POLICIES)
        check_real(self.decay, "decay", 0, 1)
        check_real(self.projection_tol, "projection_tol", 0, 1)
        check_n_jobs(self.n_jobs)

    def _settings(self) -> dict[str, Any]:
        named = isinstance(self.gamma, str)
        return {
            "kernel": self.kernel,
            "gamma": self.gamma if named else float(self.gamma),
            "degree": int(self.degree),
            "coef0": float(self.coef0),
            "budget": None if self.budget is None else int(self.budget),
            "budget_policy": self.budget_policy,
            **self._rule_settings(),
        }

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> DualState:
        arrays, n_outputs = self._rule_arrays(n_ranks)
        policy = None if self.budget is None else self.budget_policy
        arrays |= _pool.new_lists(n_outputs, self._averages(), policy)
        if policy == "random":
            arrays["evict_seed"] = as_generator(self.random_state).integers(2**63, size=1)
        if like is not None:
            self._resize(arrays, n_features, like)
        return DualState(by_feature={}, others=arrays, settings=self._settings())

    def _resize(
        self, arrays: _pool.Arrays, n_features: int, saved: Mapping[str, np.ndarray]
    ) -> None:
        """Give arrays the types and sizes that those of a model file must have."""
        shapes = getattr(saved, "shapes", None)

        def shape(name: str) -> tuple[int, ...]:
            name = f"others.{name}"
            return saved[name].shape if shapes is None else shapes[name]

        n = int((0, *shape("support"))[-1])
        longest = int((0, *shape("coefs"))[-1])
        for name, array in arrays.items():
            if name in _pool.BY_SLOT:
                arrays[name] = np.zeros(n, dtype=array.dtype)
            elif name in _pool.BY_PAIR:
                arrays[name] = np.zeros((n, n))
            elif name in _pool.BY_ENTRY:
                arrays[name] = np.zeros((array.shape[0], longest), dtype=array.dtype)
        if self.kernel == "precomputed":
            if (np.asarray(saved["others.support"]) >= n_features).any():
                raise ValueError(f"its support vectors have columns beyond {n_features - 1}")
            return
        vectors = saved["others.vectors"]
        if vectors.dtype not in (np.float32, np.float64) or vectors.ndim not in (1, 2):
            raise ValueError(f"its support vectors have dtype {vectors.dtype}")
        if vectors.ndim == 2:
            arrays["vectors"] = np.zeros((n, n_features), dtype=vectors.dtype)
        else:
            arrays["vectors"] = np.zeros(vectors.size, dtype=vectors.dtype)
            arrays["indices"] = np.zeros(vectors.size, dtype=np.int32)
            if (np.asarray(saved["others.indices"]) >= n_features).any():
                raise ValueError(f"its support vectors have columns beyond {n_features - 1}")
            arrays["starts"] = np.zeros(n, dtype=np.int64)
            arrays["lengths"] = np.zeros(n, dtype=np.int64)

    def _check_state(self, state: Any, n_ranks: int) -> None:
        arrays = state.others
        n = arrays["support"].size
        book, sizes = arrays["book"], arrays["sizes"]
        used = np.arange(arrays["slots"].shape[1]) < sizes[:, np.newaxis]
        slots = np.where(used, arrays["slots"], -1)
        if (
            book[_pool.N_SUPPORT] != n
            or (state.settings["budget"] is not None and n > state.settings["budget"])
            or (book < 0).any()
            or book[_pool.JOINED] < n
            or (arrays["born"] < 0).any()
            or (arrays["born"] >= max(1, book[_pool.JOINED])).any()
            or (arrays["support"] < 0).any()
            or (arrays["support"] >= max(1, book[_pool.FIRST])).any()
            or (arrays["norms"] < 0).any()
            or arrays["gamma"][0] < 0
        ):
            raise ValueError("its support vectors are impossible")
        if (
            (sizes < 0).any()
            or (sizes > min(n, slots.shape[1])).any()
            or (np.diff(slots, axis=1)[used[:, 1:]] < 1).any()
            or (slots >= n).any()
            or (slots[used] < 0).any()
        ):
            raise ValueError("its lists of coefficients are impossible")
        if "starts" in arrays:
            ends = arrays["starts"] + arrays["lengths"]
            if (
                (arrays["starts"] < 0).any()
                or (arrays["lengths"] < 0).any()
                or (ends > arrays["vectors"].size).any()
                or book[_pool.STORED] != arrays["vectors"].size
                or (arrays["indices"] < 0).any()
            ):
                raise ValueError("its sparse support vectors are impossible")
        state.others = _pool.roomy(arrays)

    def _describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if callable(self._state.settings["kernel"]):
            raise TypeError(
                "save requires a kernel that it knows by name; found a function: use pickle or "
                "joblib, or a precomputed kernel"
            )
        facts, arrays = super()._describe()
        trimmed = _pool.trimmed(self._state.others)
        return facts, arrays | {f"others.{name}": array for name, array in trimmed.items()}

    # ---------------------------------------------------------------- learning

    def _block_rows(self, rows: Rows, state: Any) -> int:
        n = int(state.others["book"][_pool.N_SUPPORT]) + BLOCK_ROWS
        if rows.columns is None:  # a copy of the rows, column by column, takes room too
            n = max(n, rows.n_features // 4)
        return max(LEAST_ROWS, min(BLOCK_ROWS, BLOCK_VALUES // n))

    def _run_pass(
        self,
        state: Any,
        rows: Rows,
        ranks: np.ndarray,
        order: np.ndarray | None,
        epoch: int,
        n_epochs: int,
    ) -> None:
        arrays = state.others
        first = int(arrays["book"][_pool.FIRST]) if state.streaming else 0
        if self.kernel == "precomputed":
            self._check_precomputed(rows, first)
        else:
            _pool.add_vectors(arrays, rows)
        if state.t == 0 and self.kernel in ("poly", "rbf"):
            arrays["gamma"][0] = resolve_gamma(self.gamma, rows)
        slot_of = None
        twice = order is not None and np.unique(order).size < order.size
        if epoch > 1 or twice:  # a row may come that is a support vector already
            slot_of = np.full(rows.n_rows, -1, dtype=np.int32)
            n = int(arrays["book"][_pool.N_SUPPORT])
            known = arrays["support"][:n] - first  # those of earlier calls are below 0
            slot_of[known[known >= 0]] = np.flatnonzero(known >= 0)
        state.visit = first, slot_of
        try:
            super()._run_pass(state, rows, ranks, order, epoch, n_epochs)
        finally:
            state.visit = 0, None
        state.others["book"][_pool.FIRST] = first + rows.n_rows

    def _mean_square(self, state: Any, rows: Rows) -> float:
        if self.kernel == "rbf":
            return 1.0
        if self.kernel == "linear":
            return mean_square_length(rows)
        n = min(rows.n_rows, SCALED_ROWS)
        block = some_rows(rows, slice(0, n))
        if self.kernel == "precomputed":
            own = np.diagonal(columns_of(block, state.visit[0] + np.arange(n)))
        elif self.kernel == "poly":
            lengths = np.asarray((block * block).sum(axis=1), dtype=np.float64).reshape(-1)
            with np.errstate(over="ignore"):
                own = (state.others["gamma"][0] * lengths + self.coef0) ** self.degree
        else:
            own = np.diagonal(call_kernel(self.kernel, block, block))
        mean = float(np.mean(own))
        return power_of_two(mean) if np.isfinite(mean) else 1.0

    def _check_precomputed(self, rows: Rows, first: int) -> None:
        if first + rows.n_rows > rows.n_features:
            raise ValueError(
                "kernel='precomputed' requires X to have a column for every row that is learned, "
                f"in the same order; found {rows.n_features} columns for {first + rows.n_rows} rows"
            )

    def _learn(
        self,
        state: Any,
        rows: Rows,
        ranks: np.ndarray,
        order: np.ndarray | None,
        start: int,
        stop: int,
        marks: np.ndarray,
        losses: np.ndarray,
    ) -> int:
        first, slot_of = state.visit
        which = np.arange(start, stop) if order is None else order[start:stop]
        before = int(state.others["book"][_pool.N_SUPPORT])
        _pool.make_room(state.others, rows, which, self.budget)
        values, among = self._given_values(state, rows, which, first)
        kernel, budget = self._compiled_kernel(state), self._compiled_budget(state)
        bound = self._bind_rule(state, kernel, budget, rows.n_features)
        bound.take(rows, order, start, stop, first, slot_of, values, among)
        weights = state.weights
        reached = learn(
            bound, rows, ranks, order, weights, start, stop, state.counts, marks, losses
        )
        joined = slice(0 if self.budget is not None else before, None)
        if not np.isfinite(state.others["diagonal"][joined]).all():
            raise ValueError(f"a kernel value overflowed: {self._overflow_hint}")
        return reached

    def _given_values(
        self, state: DualState, rows: Rows, which: np.ndarray, first: int
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Kernel values of a block with the support vectors and with itself, if not compiled."""
        if isinstance(self.kernel, str) and self.kernel in COMPILED:
            return None, None
        block, n = some_rows(rows, which), int(state.others["book"][_pool.N_SUPPORT])
        if self.kernel == "precomputed":
            support = state.others["support"][:n]
            return columns_of(block, support), columns_of(block, first + which)
        among = call_kernel(self.kernel, block, block)
        if n == 0:
            return np.empty((which.size, 0)), among
        return call_kernel(self.kernel, block, self._vectors(state, rows.n_features)), among

    def _vectors(self, state: DualState, n_features: int) -> Any:
        return _pool.support_matrix(state.others, n_features)

    def _compiled_kernel(self, state: DualState) -> Compiled:
        settings = state.settings
        kernel = settings["kernel"]
        return {
            "kind": COMPILED.index(kernel) if isinstance(kernel, str) and kernel in COMPILED else 0,
            "gamma": float(state.others["gamma"][0]),
            "coef0": settings["coef0"],
            "degree": settings["degree"],
        }

    def _compiled_budget(self, state: DualState) -> Compiled:
        settings = state.settings
        seed = state.others.get("evict_seed")
        return {
            "budget": -1 if settings["budget"] is None else settings["budget"],
            "policy": POLICIES.index(settings["budget_policy"]),
            "decay": float(self.decay),
            "tolerance": float(self.projection_tol),
            "seed": 0 if seed is None else int(seed[0]),
        }

    # ---------------------------------------------------------------- predicting

    def _outputs(self, rows: Rows) -> np.ndarray:
        """Sums of coefficients times kernel values, shape (n_rows, n_outputs)."""
        state = self._fitted_state()
        # Copies: another thread may learn meanwhile, and what the kernel has checked must stay.
        slots, coefs, sizes = (part.copy() for part in self._output_lists(state))
        arrays = dict(state.others)
        for name in ("starts", "lengths"):
            if name in arrays:
                arrays[name] = arrays[name].copy()
        out = np.zeros((rows.n_rows, sizes.size))
        n = int(arrays["book"][_pool.N_SUPPORT])
        if n == 0:
            return out
        kernel = state.settings["kernel"]
        compiled = isinstance(kernel, str) and kernel in COMPILED
        if not compiled:
            table = np.zeros((n, sizes.size))
            for j, size in enumerate(sizes):
                table[slots[j, :size], j] = coefs[j, :size]
            support = arrays["support"][:n]
            vectors = None if kernel == "precomputed" else self._vectors(state, rows.n_features)

        def score(start: int) -> None:
            stop = min(start + SCORED_ROWS, rows.n_rows)
            if compiled:
                kernel_scores.outputs(
                    rows,
                    start,
                    stop,
                    self._compiled_kernel(state),
                    arrays["vectors"].reshape(-1),
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
            if vectors is None:
                values = columns_of(block, support)
            else:
                values = call_kernel(kernel, block, vectors)
            out[start:stop] = values @ table

        starts = range(0, rows.n_rows, SCORED_ROWS)
        jobs = min(n_threads(self.n_jobs), len(starts))
        if jobs > 1:
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(score, starts))
        else:
            for start in starts:
                raise_signals()
                score(start)
        return check_scores(out)

    # ---------------------------------------------------------------- what was learned

    @property
    @reads
    def support_(self) -> np.ndarray:
        """Numbers of the examples that are support vectors: rows of X, in the order they came."""
        arrays = self._fitted_state().others
        return arrays["support"][: arrays["book"][_pool.N_SUPPORT]].copy()

    @property
    @reads
    def support_vectors_(self) -> Any:
        """Support vectors, shape (n_support, n_features): an array or CSR, as X was."""
        return _pool.support_matrix(self._fitted_state().others, self.n_features_in_)

    @property
    @reads
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the support vectors that are predicted with, (n_outputs, n_support)."""
        state = self._fitted_state()
        slots, coefs, sizes = self._output_lists(state)
        lists = {"book": state.others["book"], "slots": slots, "coefs": coefs, "sizes": sizes}
        return _pool.coefficient_table(lists)

    @property
    @reads
    def gamma_(self) -> float:
        """The number that ``gamma`` stands for; 0 if the kernel has none."""
        return float(self._fitted_state().others["gamma"][0])

    def _summary(self) -> dict[str, Any]:
        return super()._summary() | {"support_vectors": int(self.support_.size)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
