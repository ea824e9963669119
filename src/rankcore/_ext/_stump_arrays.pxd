"""Bind the arrays of a sum of stumps to the struct of rankcore.h."""

from libc.stdint cimport int64_t

from rankcore.core cimport rc_stumps


cdef inline bint bind_stumps(
    rc_stumps *model,
    int64_t n_features,
    double base,
    const int64_t[::1] offsets,
    const double[::1] thresholds,
    const double[::1] values,
    const double[::1] missing,
    const double[::1] at_zero,
) noexcept:
    """Point the model to the arrays if they fit together; return whether they do."""
    cdef int64_t i, n = thresholds.shape[0]
    cdef bint fits = (
        offsets.shape[0] == n_features + 1
        and missing.shape[0] == n_features
        and at_zero.shape[0] == n_features
        and offsets[0] == 0
        and offsets[n_features] == n
        and values.shape[0] == n + n_features
    )
    for i in range(n_features if fits else 0):
        fits = fits and offsets[i] <= offsets[i + 1]
    if fits:
        model.offsets = &offsets[0]
        model.thresholds = &thresholds[0] if n else NULL
        model.values = &values[0] if values.shape[0] else NULL
        model.missing = &missing[0] if n_features else NULL
        model.at_zero = &at_zero[0] if n_features else NULL
        model.base = base
        model.n_features = n_features
    return fits
