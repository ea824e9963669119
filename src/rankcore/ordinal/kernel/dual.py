"""Shared functions of learners in dual form: kernel, budget, support vectors, scores by blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import (
    COMPILED,
    GAMMAS,
    KERNELS,
    call_kernel,
    columns_of,
    gamma_of_variance,
    gram,
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
from rankcore._core.standardization import Moments, Units
from rankcore._core.threads import for_each, n_threads
from rankcore._ext import kernel_scores
from rankcore._ext.kernel_learners import POLICIES, span
from rankcore._ext.rows import Rows
from rankcore.ordinal.kernel import pools

Compiled = dict[str, Any]  # parameters of the compiled learners

# Rows per block: large enough to compute kernel values together, small enough for these to fit into
# the nearer caches.
LEAST_ROWS, BLOCK_ROWS = 8, 64
BLOCK_VALUES = 2**20
# Rows scored by a thread at a time.
SCORED_ROWS = 1024

# Changes of means and deviations, in deviations, that are small.
ALIKE = 0.1

# What the parameters of learners in dual form accept.
OF_KERNEL: Constraints = {
    "kernel": Options(*KERNELS) | Function(),
    "gamma": Options(*GAMMAS) | Real(0, 1e100),
    "degree": Integer(1, 2**20),
    "coef0": Real(-1e100, 1e100),
    "budget": Integer(1, 2**63 - 1) | None,
    "decay": Real(0, 1),
    "projection_tol": Real(0, 1),
    "n_jobs": N_JOBS,
}
# A hint of the remedy for values that overflow.
OVERFLOW_HINT = "X or the kernel's values are too large; scale X, or reduce degree or gamma"

# A learner in dual form has a state with ``settings``, which include those of `kernel_settings`,
# and ``pool``, the arrays of `_pool`. It provides ``_fitted_state``, and ``_output_lists`` of a
# state: slots, coefficients and sizes of the lists for predictions.


def kernel_settings(learner: Any) -> dict[str, Any]:
    """Return the parameters of the kernel and the budget that are built into a model."""
    named = isinstance(learner.gamma, str)
    return {
        "kernel": learner.kernel,
        "gamma": learner.gamma if named else float(learner.gamma),
        "degree": int(learner.degree),
        "coef0": float(learner.coef0),
        "budget": None if learner.budget is None else int(learner.budget),
        "budget_policy": learner.budget_policy,
    }


def new_pool(
    learner: Any, n_outputs: int, averaged: bool, zeros: pools.Zeros = np.zeros
) -> pools.Arrays:
    """Create the arrays of a learner without support vectors."""
    policy = None if learner.budget is None else learner.budget_policy
    arrays = pools.new_lists(n_outputs, averaged, policy, zeros)
    if policy == "random":
        arrays["evict_seed"] = as_generator(learner.random_state).integers(2**63, size=1)
    return arrays


def rows_at_once(rows: Rows, arrays: pools.Arrays) -> int:
    """Return the number of rows of a block."""
    n = int(arrays["book"][pools.N_SUPPORT]) + BLOCK_ROWS
    if rows.columns is None:  # a column-major copy of the rows takes memory too
        n = max(n, rows.n_features // 4)
    return max(LEAST_ROWS, min(BLOCK_ROWS, BLOCK_VALUES // n))


def set_gamma(learner: Any, arrays: pools.Arrays, rows: Rows) -> None:
    """Resolve ``gamma`` from the first rows."""
    if learner.kernel in ("poly", "rbf"):
        arrays["gamma"][0] = resolve_gamma(learner.gamma, rows)


def set_gamma_in_units(learner: Any, arrays: pools.Arrays, moments: Moments, units: Units) -> None:
    """Resolve ``gamma`` from the moments of rows: their variance is that of standardised values."""
    if learner.kernel not in ("poly", "rbf"):
        return
    means = (moments.means() - units.center) / units.deviation
    square = moments.mean_square(units) / means.size
    arrays["gamma"][0] = gamma_of_variance(learner.gamma, means.size, square - means.mean() ** 2)


def are_alike(units: Units, old: Units, n_rows: int) -> bool:
    """Return whether a row changes the units too little for kernel values to be computed again.

    Units are always renewed when the number of rows is a power of two.
    """
    if n_rows & (n_rows - 1) == 0:
        return False
    ratio = units.deviation / old.deviation
    moved = np.abs(units.center - old.center) / old.deviation
    return bool((moved <= ALIKE).all() and (np.abs(ratio - 1) <= ALIKE).all())


def slots_of(arrays: pools.Arrays, rows: Rows, first: int) -> np.ndarray:
    """Return the slots of the rows from number ``first`` on; -1 for rows without one."""
    slot_of = np.full(rows.n_rows, -1, dtype=np.int32)
    n = int(arrays["book"][pools.N_SUPPORT])
    row_numbers = arrays["support"][:n] - first  # negative for earlier calls
    slot_of[row_numbers[row_numbers >= 0]] = np.flatnonzero(row_numbers >= 0)
    return slot_of


def renew_values(learner: Any, settings: Mapping[str, Any], arrays: pools.Arrays) -> None:
    """Compute kernel values of support vectors again, after their units changed.

    With "projectron", those that are now near the span of others become combinations of these.
    """
    n = int(arrays["book"][pools.N_SUPPORT])
    if n == 0:
        return
    vectors, kernel = arrays["vectors"][:n], compiled_kernel(settings, arrays)
    compiled = isinstance(learner.kernel, str)
    values = None
    if any(name in arrays for name in pools.BY_PAIR):
        values = (
            gram(as_rows(vectors), 0, n, kernel, n_threads(learner.n_jobs))
            if compiled
            else call_kernel(learner.kernel, vectors, vectors)
        )
    if compiled:
        kernel_scores.diagonal(kernel, arrays["norms"][:n], arrays["diagonal"][:n])
    elif values is not None:
        arrays["diagonal"][:n] = np.diagonal(values)
    else:
        for start in range(0, n, BLOCK_ROWS):
            some = vectors[start : start + BLOCK_ROWS]
            own = np.diagonal(call_kernel(learner.kernel, some, some))
            arrays["diagonal"][start : start + own.size] = own
    if "gram" in arrays:
        arrays["gram"][:n, :n] = values
    if "inverse" in arrays:
        arrays["inverse"][...] = 0
        shares = np.zeros((n, n))
        kept = span(values, learner.projection_tol, arrays["inverse"], shares)
        if kept.size < n:
            pools.keep_independent(arrays, kept, shares)


def rows_in_units(arrays: Any, rows: Rows, which: slice | np.ndarray) -> Any:
    """Return some rows in the units of the support vectors: dense, if they are standardised."""
    if not pools.are_standardized(arrays):
        return some_rows(rows, which)
    if isinstance(which, slice):
        which = np.arange(which.start, which.stop)
    return Units.of_rows(arrays["units"]).standardize(rows, which.astype(np.int32))


def given_values(
    learner: Any, state: Any, rows: Rows, which: np.ndarray, first: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Compute kernel values of a block with the support vectors and itself, if not compiled."""
    if isinstance(learner.kernel, str) and learner.kernel in COMPILED:
        return None, None
    n = int(state.pool["book"][pools.N_SUPPORT])
    if learner.kernel == "precomputed":
        block, support = some_rows(rows, which), state.pool["support"][:n]
        return columns_of(block, support), columns_of(block, first + which)
    block = rows_in_units(state.pool, rows, which)
    among = call_kernel(learner.kernel, block, block)
    if n == 0:
        return np.empty((which.size, 0)), among
    vectors = pools.support_matrix(state.pool, rows.n_features)
    return call_kernel(learner.kernel, block, vectors), among


def compiled_kernel(settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Compiled:
    """Return the parameters of the kernel for compiled code."""
    kernel = settings["kernel"]
    return {
        "kind": COMPILED[kernel] if isinstance(kernel, str) and kernel in COMPILED else 0,
        "gamma": float(arrays["gamma"][0]),
        "coef0": settings["coef0"],
        "degree": settings["degree"],
    }


def compiled_budget(learner: Any, state: Any) -> Compiled:
    """Return the parameters of the budget for compiled code."""
    settings = state.settings
    seed = state.pool.get("evict_seed")
    return {
        "budget": -1 if settings["budget"] is None else settings["budget"],
        "policy": POLICIES[settings["budget_policy"]],
        "decay": float(learner.decay),
        "tolerance": float(learner.projection_tol),
        "seed": 0 if seed is None else int(seed[0]),
    }


def outputs(learner: Any, rows: Rows) -> np.ndarray:
    """Return sums of coefficients times kernel values, shape (n_rows, n_outputs)."""
    state = learner._fitted_state()
    # Copies: another thread may be learning, and validated arrays must not change.
    slots, coefs, sizes = (part.copy() for part in learner._output_lists(state))
    arrays = dict(state.pool)
    for name in ("starts", "lengths"):
        if name in arrays:
            arrays[name] = arrays[name].copy()
    units = arrays["units"] if pools.are_standardized(arrays) else None
    out = np.zeros((rows.n_rows, sizes.size))
    n = int(arrays["book"][pools.N_SUPPORT])
    if n == 0:
        return out
    kernel = state.settings["kernel"]
    compiled = isinstance(kernel, str) and kernel in COMPILED
    if compiled:
        constants = compiled_kernel(state.settings, arrays)
        vectors = arrays["vectors"].reshape(-1)
    else:
        lists = {"book": arrays["book"], "slots": slots, "coefs": coefs, "sizes": sizes}
        table = np.ascontiguousarray(pools.coefficient_table(lists).T)
        support = arrays["support"][:n]
        if kernel != "precomputed":
            matrix = pools.support_matrix(arrays, rows.n_features)

    def score(start: int) -> None:
        stop = min(start + SCORED_ROWS, rows.n_rows)
        if compiled:
            kernel_scores.outputs(
                rows,
                start,
                stop,
                constants,
                vectors,
                arrays.get("indices"),
                arrays.get("starts"),
                arrays.get("lengths"),
                arrays["norms"],
                n,
                slots,
                coefs,
                sizes,
                units,
                None if units is None else arrays["unit_factors"],
                out[start:stop],
            )
            return
        if kernel == "precomputed":
            values = columns_of(some_rows(rows, slice(start, stop)), support)
        else:
            block = rows_in_units(arrays, rows, slice(start, stop))
            values = call_kernel(kernel, block, matrix)
        out[start:stop] = values @ table

    for_each(score, range(0, rows.n_rows, SCORED_ROWS), n_threads(learner.n_jobs))
    return check_scores(out)


@property  # type: ignore[misc]
@consistent_read
def support_rows(learner: Any) -> np.ndarray:
    """Row numbers of the support vectors, in order of arrival."""
    arrays = learner._fitted_state().pool
    return arrays["support"][: arrays["book"][pools.N_SUPPORT]].copy()


@property  # type: ignore[misc]
@consistent_read
def support_vectors(learner: Any) -> Any:
    """Support vectors, shape (n_support, n_features): standardised, or an array or CSR like X."""
    return pools.support_matrix(learner._fitted_state().pool, learner.n_features_in_)


@property  # type: ignore[misc]
@consistent_read
def dual_coefs(learner: Any) -> np.ndarray:
    """Coefficients of the support vectors in predictions, (n_outputs, n_support)."""
    state = learner._fitted_state()
    slots, coefs, sizes = learner._output_lists(state)
    lists = {"book": state.pool["book"], "slots": slots, "coefs": coefs, "sizes": sizes}
    return pools.coefficient_table(lists)


@property  # type: ignore[misc]
@consistent_read
def means(learner: Any) -> np.ndarray:
    """Means that are subtracted from columns, shape (n_features_in_,); 0 where none is."""
    arrays = learner._fitted_state().pool
    standardized = pools.are_standardized(arrays)
    return arrays["units"][0].copy() if standardized else np.zeros(learner.n_features_in_)


@property  # type: ignore[misc]
@consistent_read
def deviations(learner: Any) -> np.ndarray:
    """Deviations by which columns are divided, shape (n_features_in_,); 1 where they are not."""
    arrays = learner._fitted_state().pool
    standardized = pools.are_standardized(arrays)
    return arrays["units"][1].copy() if standardized else np.ones(learner.n_features_in_)


@property  # type: ignore[misc]
@consistent_read
def resolved_gamma(learner: Any) -> float:
    """The resolved ``gamma``; 0 if the kernel has none."""
    return float(learner._fitted_state().pool["gamma"][0])
