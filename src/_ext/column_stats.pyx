"""Statistics of columns: maximum magnitudes and sums of squares, in one pass over rows.

Values come as (column, value) pairs, or as rows. O(values).
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._checked cimport checked_rows
from rankcore.core cimport RC_FLOAT32, rc_row, rc_rows, rc_rows_get

ctypedef fused real:
    float
    double


cdef int64_t _raise(
    const int32_t *columns, const real *values, int64_t n,  # in
    double *sizes, int64_t n_sizes,  # in, out: maximum magnitude of each column
    double *largest,  # out
) noexcept nogil:
    """Return the position of the first column beyond ``sizes``, or n. NaN is ignored."""
    cdef int64_t i
    cdef double size
    largest[0] = 0
    for i in range(n):
        if not 0 <= columns[i] < n_sizes:
            return i
        size = fabs(values[i])
        if size > sizes[columns[i]]:
            sizes[columns[i]] = size
        if size > largest[0]:
            largest[0] = size
    return n


def raise_sizes(
    const int32_t[::1] columns not None,  # (n_values,)
    const real[::1] values not None,  # (n_values,): NaN is ignored
    double[::1] sizes not None,  # in and out, (n_columns,)
):
    """Update the maximum magnitudes of columns with some values.

    Returns the maximum magnitude of these values; 0 if there are none. Raises ValueError if the
    arrays are inconsistent, or a column is beyond ``sizes``. O(n_values), one pass.
    """
    cdef int64_t n = values.shape[0], n_sizes = sizes.shape[0], reached = 0
    cdef double largest = 0
    if columns.shape[0] != n:
        raise ValueError(f"{n} values do not match {columns.shape[0]} columns")
    if n == 0:
        return 0.0
    if n_sizes:
        with nogil:
            reached = _raise(&columns[0], &values[0], n, &sizes[0], n_sizes, &largest)
    if reached < n:
        raise ValueError(f"found column {columns[reached]}; there are {n_sizes}")
    return largest


cdef double _squares(const real *values, int64_t n, double factor) noexcept nogil:
    # Four sums, because each addition waits for the one before it.
    cdef double s[4]
    cdef double x
    cdef int64_t i, j
    s[0] = s[1] = s[2] = s[3] = 0
    i = 0
    while i + 4 <= n:
        for j in range(4):
            x = values[i + j] * factor
            s[j] += x * x if x == x else 0
        i += 4
    while i < n:
        x = values[i] * factor
        s[0] += x * x if x == x else 0
        i += 1
    return (s[0] + s[1]) + (s[2] + s[3])


def sum_squares(
    const real[::1] values not None,  # (n_values,)
    double factor,  # a power of two, so that products are exact and no square leaves float64
):
    """Return the sum of the squares of values times a factor. NaN is ignored."""
    cdef int64_t n = values.shape[0]
    cdef double total = 0
    if n:
        with nogil:
            total = _squares(&values[0], n, factor)
    return total


cdef int64_t _reach(
    const rc_rows *X, double least, uint8_t *states, int64_t *nonzero
) noexcept nogil:
    """Count the columns that reach a magnitude; stop once more than half of all columns do."""
    cdef int64_t i, k, column, reached = 0, enough = X.n_features // 2 + 1
    cdef double size
    cdef rc_row x
    nonzero[0] = 0
    least = max(least, 5e-324)  # a value of 0 reaches nothing
    for i in range(X.n_rows):
        x = rc_rows_get(X, i)
        for k in range(x.n):
            column = k if x.indices == NULL else x.indices[k]
            if states[column] == 2:
                continue
            if x.dtype == RC_FLOAT32:
                size = fabs((<const float *> x.data)[k])
            else:
                size = fabs((<const double *> x.data)[k])
            # The state is tested first, as whether a value is 0 is unpredictable.
            if states[column] == 0 and size > 0:
                states[column] = 1
                nonzero[0] += 1
            if size >= least:
                states[column] = 2
                reached += 1
        if reached >= enough:
            break
    return reached


def most_reach(
    object rows not None,  # finite
    double least,  # the magnitude
    uint8_t[::1] states not None,  # of zeros, (n_features,): overwritten
):
    """Return whether more than half of the columns with nonzero values reach a magnitude.

    Returns True if all columns are 0. O(n_values), but rows are read only until more than half of
    all columns reach it.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t reached, nonzero = 0
    if states.shape[0] != X.n_features:
        raise ValueError(f"states has {states.shape[0]} entries; there are {X.n_features} features")
    if X.n_features == 0:
        return True
    with nogil:
        reached = _reach(X, least, &states[0], &nonzero)
    return 2 * reached > nonzero or nonzero == 0
