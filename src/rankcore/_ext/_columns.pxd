# Binned columns as the boosting kernels read them: codes of values, column by column, of all rows
# (dense) or of stored entries (sparse). Besides, values of a row by column, for scores, and the
# best stump of a column from its sums. Private.
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore.core cimport RC_FLOAT32, rc_row

# One byte per value for at most 255 bins, else four.
ctypedef fused code_t:
    uint8_t
    int32_t

ctypedef struct Binned:
    int64_t n_rows
    int64_t n_features
    const int64_t *bounds  # sparse: entries of column f at bounds[f]; NULL if dense
    const int32_t *rows  # sparse: the row of each entry, ascending within a column
    const void *codes  # bin of each entry, or of each row, column by column
    int32_t width  # bytes per code
    const int32_t *n_bins  # number of bins of a column, and its code of missing values
    const int32_t *zero_bin  # sparse: code of the rows without an entry
    const uint8_t *has_missing


cdef inline const Binned *binned_of(object columns) except NULL:
    """Return the C columns inside a ``Columns``, which live as long as it does."""
    return <const Binned *> PyCapsule_GetPointer(columns.capsule, "rankcore.columns")


cdef inline double stored(const rc_row *x, int64_t i) noexcept nogil:
    """Return stored value i of a row."""
    return (<const float *> x.data)[i] if x.dtype == RC_FLOAT32 else (<const double *> x.data)[i]


cdef inline int64_t find(const rc_row *x, int64_t column) noexcept nogil:
    """Return the position of the first entry of a sparse row at or beyond a column."""
    cdef int64_t low = 0, high = x.n, middle
    while low < high:
        middle = (low + high) >> 1
        if x.indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double value_at(const rc_row *x, int64_t column) noexcept nogil:
    """Return the value of a row in a column."""
    cdef int64_t i
    if x.indices == NULL:
        return stored(x, column)
    i = find(x, column)
    return stored(x, i) if i < x.n and x.indices[i] == column else 0.0


cdef inline void sweep(
    const double *sums, int64_t n_bins, bint has_missing,  # in: the last sum is of the missing
    double *edge, int32_t *bin, uint8_t *side,  # out: the best of the column
) noexcept nogil:
    """Find the cut of maximum |edge|; ties go to the highest, and to side 1 for missing values."""
    cdef double present = 0.0, best = -1.0, above = 0.0, other
    cdef int64_t b
    edge[0] = 0.0
    bin[0] = -1
    side[0] = 0
    if not has_missing:
        for b in range(n_bins - 1, 0, -1):
            above += sums[b]
            if fabs(above) > best:
                best = fabs(above)
                edge[0] = above
                bin[0] = <int32_t> b
        return
    for b in range(n_bins):
        present += sums[b]
    # The potentials of whole queries sum to 0: if only these miss the feature, both sides tie.
    if fabs(present) < 1e-12:
        present = 0.0
    for b in range(n_bins - 1, -1, -1):
        above += sums[b]
        # All potentials but those of the present rows at or below the cut.
        other = above - present
        if b > 0 and fabs(other) > best:
            best = fabs(other)
            edge[0] = other
            bin[0] = <int32_t> b
            side[0] = 1
        if fabs(above) > best:
            best = fabs(above)
            edge[0] = above
            bin[0] = <int32_t> b
            side[0] = 0
