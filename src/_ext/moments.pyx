"""Weighted moments of columns, O(values) in one pass, and standardised rows, O(n_features) each."""

from libc.stdint cimport int32_t, int64_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._moments cimport rc_moments_add_rows, rc_standardize_rows, rc_standardized
from rankcore._ext._units cimport rc_moments, rc_units
from rankcore.core cimport rc_rows, rc_rows_get

import numpy as np


def add_rows(
    object rows not None,  # finite, canonical
    const double[::1] weights,  # (n_rows,), >= 0; or None for weights of 1
    int64_t start,  # rows from ``start`` up to ``stop``
    int64_t stop,
    double[:, ::1] columns not None,  # in and out: arrays of `Moments`
    double[::1] totals not None,
):
    """Add some rows to the moments of their columns. O(values), one pass.

    Any division of the same rows into calls gives the same bits, as do dense rows and CSR.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_moments m
    cdef const double *first = NULL
    if (
        not rows.canonical
        or columns.shape[1] != X.n_features
        or (weights is not None and weights.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= X.n_rows
    ):
        raise ValueError("rows, weights, range and moments are inconsistent")
    if columns.shape[0] != 4 or columns.shape[1] < 1 or totals.shape[0] != 3:
        raise ValueError("moments must have arrays of shape (4, n_features) and (3,)")
    if weights is not None and weights.shape[0]:
        first = &weights[0]
    m.weights = &columns[0, 0]
    m.origins = &columns[1, 0]
    m.sums = &columns[2, 0]
    m.squares = &columns[3, 0]
    m.totals = &totals[0]
    m.n_features = X.n_features
    with nogil:
        rc_moments_add_rows(&m, X, first, start, stop)


def standardize(
    object rows not None,  # canonical
    const int32_t[::1] order,  # rows to write; or None for all
    const double[::1] center not None,  # (n_features,)
    const double[::1] factor not None,  # (n_features,): 1 / deviation
    const double[::1] blank not None,  # (n_features,): -center * factor
    double[:, ::1] out not None,  # out, (n_rows or rows of ``order``, n_features)
):
    """Write ``(rows - center) * factor``, dense. O(n_features) a row."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i, n = X.n_rows if order is None else order.shape[0]
    cdef rc_units u
    if (
        not rows.canonical
        or center.shape[0] != X.n_features
        or factor.shape[0] != X.n_features
        or blank.shape[0] != X.n_features
        or out.shape[0] != n
        or out.shape[1] != X.n_features
    ):
        raise ValueError("rows, order, units and out are inconsistent")
    if n == 0 or X.n_features == 0:
        return
    if order is not None:
        for i in range(n):
            if not 0 <= order[i] < X.n_rows:
                raise ValueError(f"order has no row {order[i]}")
    u.center = &center[0]
    u.factor = &factor[0]
    u.blank = &blank[0]
    u.n_features = X.n_features
    with nogil:
        if order is None:
            rc_standardize_rows(&u, X, 0, n, &out[0, 0])
        else:
            for i in range(n):
                rc_standardized(&u, rc_rows_get(X, order[i]), &out[i, 0])


def change_units(weights, int axis, old, new):
    """Return weights of features in other units, and the shift of the thresholds.

    ``old`` and ``new`` are (center, deviation); ``axis`` is that of the features. Scores are equal:
    ``v . (x - center) / deviation - threshold`` in either units.
    """
    shape = [1] * weights.ndim
    shape[axis] = -1
    raw = weights * (1 / old[1]).reshape(shape)
    # In order: the same bits on every platform.
    gained = np.cumsum(raw * (old[0] - new[0]).reshape(shape), axis=axis).take(-1, axis=axis)
    return raw * new[1].reshape(shape), gained
