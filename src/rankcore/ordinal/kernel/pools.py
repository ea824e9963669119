"""Arrays of a learner in dual form: support vectors, lists of coefficients, and spare capacity.

Slot s of the pool is one support vector. Output j has a list of slots and their coefficients,
ascending by slot; the outputs share the pool. The kernels in ``_ext/kernel_learners`` fill the
arrays and move nothing; arrays are grown and compacted here, between blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankcore._core.state import widened
from rankcore._ext.kernel_learners import BOOK
from rankcore._ext.online_model import RAW_UNITS
from rankcore._ext.rows import Rows

Arrays = dict[str, np.ndarray]
Zeros = Callable[..., np.ndarray]

FIRST_CAPACITY = 64
# Places in the array "book".
N_SUPPORT: int = BOOK["n_support"]  # support vectors
STORED: int = BOOK["stored"]  # values of sparse support vectors, those of removed ones included
JOINED: int = BOOK["joined"]  # how often a vector has joined
FIRST: int = BOOK["first"]  # number of the next row that is new
# Arrays with an entry for each slot, and those with an entry for each pair of slots.
BY_SLOT = ("support", "born", "norms", "diagonal", "starts", "lengths")
BY_PAIR = ("gram", "inverse")
BY_ENTRY = ("slots", "coefs", "coefs_sums")
BY_VALUE = ("vectors", "indices")
PAIR_OF_POLICY = {"forgetron": "gram", "projectron": "inverse"}


def new_lists(n_outputs: int, averaged: bool, policy: str | None, zeros: Zeros) -> Arrays:
    """Create the arrays of a model without support vectors; vectors are added by `add_vectors`.

    ``zeros`` creates them, as `numpy.zeros`.
    """
    arrays: Arrays = {
        "book": zeros(len(BOOK), dtype=np.int64),
        "gamma": zeros(1),
        "support": zeros(FIRST_CAPACITY, dtype=np.int64),
        "born": zeros(FIRST_CAPACITY, dtype=np.int64),
        "norms": zeros(FIRST_CAPACITY),
        "diagonal": zeros(FIRST_CAPACITY),
        "sizes": zeros(n_outputs, dtype=np.int64),
        "slots": zeros((n_outputs, FIRST_CAPACITY), dtype=np.int32),
        "coefs": zeros((n_outputs, FIRST_CAPACITY)),
    }
    if averaged:
        arrays["coefs_sums"] = zeros((n_outputs, FIRST_CAPACITY))
    if policy in PAIR_OF_POLICY:
        arrays[PAIR_OF_POLICY[policy]] = zeros((FIRST_CAPACITY, FIRST_CAPACITY))
    if policy == "forgetron":
        arrays["damage"] = zeros(1)
    return arrays


def are_standardized(arrays: Arrays) -> bool:
    """Return whether rows and support vectors are standardised."""
    units = arrays.get("units")
    return units is not None and bool((units != RAW_UNITS).any())


def add_vectors(arrays: Arrays, rows: Rows) -> bool:
    """Set the format and dtype of the pool's vectors to those of the rows, or a wider dtype.

    Standardised vectors are dense, of float64. Returns whether arrays were replaced.
    """
    dense = rows.columns is None or are_standardized(arrays)
    dtype = np.dtype(np.float64) if are_standardized(arrays) else rows.arrays[0].dtype
    capacity = arrays["support"].size
    if "vectors" in arrays:
        if arrays["vectors"].dtype == dtype or dtype != np.float64:
            return False
        arrays["vectors"] = arrays["vectors"].astype(np.float64)
    elif dense:
        arrays["vectors"] = np.zeros((capacity, rows.n_features), dtype=dtype)
    else:
        arrays["vectors"] = np.zeros(FIRST_CAPACITY, dtype=dtype)
        arrays["indices"] = np.zeros(FIRST_CAPACITY, dtype=np.int32)
        arrays["starts"] = np.zeros(capacity, dtype=np.int64)
        arrays["lengths"] = np.zeros(capacity, dtype=np.int64)
    return True


def make_room(arrays: Arrays, rows: Rows, which: np.ndarray, budget: int | None) -> bool:
    """Reserve capacity for the maximum number of rows that can become support vectors.

    Returns whether arrays were replaced.
    """
    changed = False
    n = int(arrays["book"][N_SUPPORT])
    capacity = arrays["support"].size
    wanted = n + which.size if budget is None else min(n + which.size, budget)
    if wanted > capacity:
        _grow_slots(arrays, max(wanted, 2 * capacity))
        changed = True
        capacity = arrays["support"].size
    list_capacity = arrays["slots"].shape[1]
    longest = int(arrays["sizes"].max()) + which.size
    longest = capacity if "inverse" in arrays else min(longest, capacity)
    if longest > list_capacity:
        size = longest if longest == capacity else min(capacity, max(longest, 2 * list_capacity))
        for name in BY_ENTRY:
            if name in arrays:
                arrays[name] = widened(arrays[name], (arrays[name].shape[0], size))
        changed = True
    if "starts" in arrays:
        if rows.columns is None:
            coming = which.size * rows.n_features
        else:
            coming = int(np.diff(rows.arrays[2])[which].sum())
        changed |= _tidy_values(arrays, coming)
    return changed


def _grow_slots(arrays: Arrays, capacity: int) -> None:
    for name in BY_SLOT:
        if name in arrays:
            arrays[name] = widened(arrays[name], (capacity,))
    for name in BY_PAIR:
        if name in arrays:
            arrays[name] = widened(arrays[name], (capacity, capacity))
    if "vectors" in arrays and "starts" not in arrays:
        arrays["vectors"] = widened(arrays["vectors"], (capacity, arrays["vectors"].shape[1]))


def _live_values(arrays: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the values of sparse support vectors by slot, and the ends of slots."""
    n = int(arrays["book"][N_SUPPORT])
    lengths = arrays["lengths"][:n]
    ends = np.cumsum(lengths)
    place = np.repeat(arrays["starts"][:n] - (ends - lengths), lengths)
    return place + np.arange(place.size), ends


def _tidy_values(arrays: Arrays, coming: int) -> bool:
    """Reserve capacity for values of sparse support vectors; when full, drop removed ones."""
    room = arrays["vectors"].size
    stored = int(arrays["book"][STORED])
    if stored + coming <= room:
        return False
    n_live = int(arrays["lengths"][: arrays["book"][N_SUPPORT]].sum())
    wanted = 2 * (n_live + coming)
    size = room if wanted <= room else max(2 * room, wanted)
    if n_live == stored:  # nothing was removed
        for name in BY_VALUE:
            arrays[name] = widened(arrays[name][:stored], (size,))
        return True
    place, ends = _live_values(arrays)
    for name in BY_VALUE:
        tidy = np.zeros(size, dtype=arrays[name].dtype)
        tidy[: place.size] = arrays[name][place]
        arrays[name] = tidy
    arrays["starts"][: ends.size] = ends - arrays["lengths"][: ends.size]
    arrays["book"][STORED] = place.size
    return True


def trimmed(arrays: Arrays) -> Arrays:
    """Return the arrays without spare capacity and removed vectors, as saved."""
    n = int(arrays["book"][N_SUPPORT])
    longest = int(arrays["sizes"].max())
    out = dict(arrays)
    if "starts" in arrays:
        place, ends = _live_values(arrays)
        arrays = {**arrays, "starts": ends - arrays["lengths"][:n]}
        out["book"] = arrays["book"].copy()
        out["book"][STORED] = place.size
    for name, array in arrays.items():
        if name in BY_SLOT or (name == "vectors" and "starts" not in arrays):
            out[name] = array[:n]
        elif name in BY_PAIR:
            out[name] = array[:n, :n]
        elif name in BY_VALUE:
            out[name] = array[place]
        elif name in BY_ENTRY:
            used = np.arange(longest) < arrays["sizes"][:, np.newaxis]
            out[name] = np.where(used, array[:, :longest], 0)
    return out


def roomy(arrays: Arrays) -> Arrays:
    """Return saved arrays with one entry in place of empty ones, which kernels do not accept.

    Slots get theirs when a row may become a support vector.
    """
    out = dict(arrays)
    if arrays["slots"].shape[1] == 0:
        for name in BY_ENTRY:
            if name in out:
                out[name] = widened(out[name], (out[name].shape[0], 1))
    if "starts" in arrays and arrays["vectors"].size == 0:
        for name in BY_VALUE:
            out[name] = widened(out[name], (1,))
    return out


def keep_independent(arrays: Arrays, kept: np.ndarray, shares: np.ndarray) -> None:
    """Remove all support vectors but some, and express the removed ones by these; see `span`."""
    m = kept.size
    for name in BY_ENTRY[1:]:
        if name in arrays:
            table = coefficient_table(arrays, name)
            kept_coefs = np.zeros((len(table), m))
            for column, combination in zip(table.T, shares[:, :m], strict=True):
                kept_coefs += column[:, np.newaxis] * combination
            arrays[name][:, :m] = kept_coefs
    arrays["slots"][:, :m] = np.arange(m)
    arrays["sizes"][:] = m
    for name in BY_SLOT:
        if name in arrays:
            arrays[name][:m] = arrays[name][kept]
    arrays["vectors"][:m] = arrays["vectors"][kept]
    arrays["book"][N_SUPPORT] = m


def support_matrix(arrays: Arrays, n_features: int) -> Any:
    """Copy the support vectors to an array or CSR matrix of shape (n_support, n_features)."""
    n = int(arrays["book"][N_SUPPORT])
    if "vectors" not in arrays:
        return np.empty((0, 0))
    if "starts" not in arrays:
        return arrays["vectors"][:n].copy()
    place, ends = _live_values(arrays)
    indptr = np.concatenate([[0], ends])
    return sp.csr_array(
        (arrays["vectors"][place], arrays["indices"][place], indptr), shape=(n, n_features)
    )


def coefficient_table(arrays: Arrays, name: str = "coefs") -> np.ndarray:
    """Return coefficients of all outputs, shape (n_outputs, n_support); zero where missing."""
    n = int(arrays["book"][N_SUPPORT])
    table = np.zeros((arrays["sizes"].size, n))
    for j, size in enumerate(arrays["sizes"]):
        table[j, arrays["slots"][j, :size]] = arrays[name][j, :size]
    return table
