"""Validated rows, through which all examples reach a kernel.

``dense_rows`` and ``csr_rows`` check an input once and return ``Rows``, which hold the arrays in
place (nothing is copied) together with their C description. A kernel takes ``Rows`` and indexes
them without further checks.

A capsule carries the C description between the modules, so that no extension type has to be
shared: each kernel reads it through ``_checked.pxd``.
"""

from cpython.pycapsule cimport PyCapsule_New
from cython cimport final
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._checked cimport checked_rows
from rankcore.core cimport RC_FLOAT32, RC_FLOAT64, rc_dot, rc_dots, rc_rows, rc_rows_get

ctypedef fused real:
    float
    double

cdef extern from "_reading.h" nogil:
    ctypedef struct rc_reading:
        double largest
        double squares

    void rc_read_f64(const double *x, int64_t n, rc_reading *r)
    void rc_read_f32(const float *x, int64_t n, rc_reading *r)

cdef extern from "_platform.h" nogil:
    const char *rc_platform_fault()


# All learners import this module, where the assumptions about the machine are checked.
if rc_platform_fault() is not NULL:
    raise ImportError(
        f"the kernels of rankcore require {rc_platform_fault().decode()}; this build or machine "
        "does not have them"
    )


cdef enum Fault:
    NONE
    INDPTR_START
    INDPTR_DECREASES
    INDPTR_END
    COLUMN


cdef int32_t NOTHING = 0


@final
cdef class Rows:
    """Checked examples: ``n_rows`` x ``n_features`` values, dense or CSR."""

    cdef rc_rows view
    # The values, dense; or data, indices and indptr. Not to be written to.
    cdef readonly tuple arrays
    cdef readonly object capsule  # the ``rc_rows`` of the C header, valid while this object lives
    cdef readonly object columns  # of the stored values; None if dense
    cdef readonly int64_t n_values  # number of stored values
    # Maximum magnitude of the values, and the sum of their squares, which may have overflowed; of
    # rows with NaN, only the first is meaningful.
    cdef readonly double largest, squares
    # Whether each row's columns are distinct and ascending, as the kernels need them.
    cdef readonly bint canonical

    @property
    def n_rows(self):
        return self.view.n_rows

    @property
    def n_features(self):
        return self.view.n_features


cdef Rows _new_rows(tuple arrays):
    cdef Rows rows = Rows.__new__(Rows)
    rows.arrays = arrays
    rows.capsule = PyCapsule_New(&rows.view, "rankcore.rows", NULL)
    rows.canonical = True
    return rows


cdef inline void _read(const real *values, int64_t n, rc_reading *reading) noexcept nogil:
    if real is float:
        rc_read_f32(values, n, reading)
    else:
        rc_read_f64(values, n, reading)


cdef inline bint _accepted(const rc_reading *reading, bint nan) noexcept nogil:
    # Squares are not negative, so that their sum is NaN only if a value is.
    return reading.largest < INFINITY and (nan or reading.squares == reading.squares)


cdef int64_t _first_rejected(const real *values, int64_t n, bint nan) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if values[i] - values[i] != 0 and not (nan and values[i] != values[i]):
            return i
    return n


cdef bint _ascending(const int32_t *columns, int64_t n) noexcept nogil:
    cdef int64_t i
    cdef int bad = 0
    for i in range(1, n):
        bad |= columns[i] <= columns[i - 1]
    return not bad


cdef Fault _check_columns(
    const int32_t *indices, const int64_t *indptr,  # in
    int64_t n_rows, int64_t n_features, int64_t n_stored,
    int64_t *row, int64_t *where, bint *canonical,  # out: the place of a fault; sorted rows
) noexcept nogil:
    cdef int64_t first, stop, i
    canonical[0] = True
    row[0] = where[0] = 0
    if indptr[0] != 0:
        return Fault.INDPTR_START
    for row[0] in range(n_rows):
        first = indptr[row[0]]
        stop = indptr[row[0] + 1]
        if stop < first:
            return Fault.INDPTR_DECREASES
        if stop > n_stored:
            return Fault.INDPTR_END
        if stop == first:
            continue
        if not _ascending(indices + first, stop - first):
            canonical[0] = False
            for i in range(first, stop):
                if not 0 <= indices[i] < n_features:
                    where[0] = i
                    return Fault.COLUMN
        elif indices[first] < 0 or indices[stop - 1] >= n_features:
            where[0] = first if indices[first] < 0 else stop - 1
            return Fault.COLUMN
    return Fault.NONE


cdef int64_t _row_of(const int64_t *indptr, int64_t n_rows, int64_t where) noexcept nogil:
    """Return the row of a stored value."""
    cdef int64_t low = 0, high = n_rows, middle
    while high - low > 1:
        middle = low + (high - low) // 2
        if indptr[middle] <= where:
            low = middle
        else:
            high = middle
    return low


def csr_rows(
    const real[::1] data not None,  # contiguous (n_stored,)
    const int32_t[::1] indices not None,  # contiguous (n_stored,)
    const int64_t[::1] indptr not None,  # contiguous (n_rows + 1,)
    int64_t n_features,
    str name not None,  # name of the matrix in error messages
    bint nan=False,  # whether NaN is accepted, for a missing value
):
    """Check a CSR matrix and wrap it in place.

    ``canonical`` is False where a row's columns are unsorted or repeated. Raises ValueError, naming
    the row, if the arrays do not form a CSR matrix of finite values. O(n_rows + n_stored); columns
    and values are read once, and nothing is allocated.
    """
    cdef int64_t n_stored = data.shape[0], n_rows = indptr.shape[0] - 1, row = 0, where = 0
    cdef bint canonical = True
    cdef rc_reading reading = rc_reading(0, 0)
    cdef Fault fault
    cdef const real *values = &data[0] if n_stored else NULL
    # Without columns a row would be dense: a matrix that stores nothing has an address, too.
    cdef const int32_t *columns = &indices[0] if indices.shape[0] else &NOTHING
    if n_rows < 0:
        raise ValueError(f"{name}.indptr is empty; a CSR matrix of n rows needs n + 1 offsets")
    if indices.shape[0] != n_stored:
        raise ValueError(
            f"{name}.indices has {indices.shape[0]} entries and {name}.data {n_stored}; "
            "they must match"
        )
    with nogil:
        fault = _check_columns(
            columns, &indptr[0], n_rows, n_features, n_stored, &row, &where, &canonical
        )
        if fault == Fault.NONE:
            _read(values, indptr[n_rows], &reading)
    if fault == Fault.INDPTR_START:
        raise ValueError(f"{name}.indptr must start at 0; got {indptr[0]}")
    elif fault == Fault.INDPTR_DECREASES:
        raise ValueError(
            f"{name}.indptr decreases at row {row}, from {indptr[row]} to {indptr[row + 1]}"
        )
    elif fault == Fault.INDPTR_END:
        raise ValueError(
            f"{name}.indptr ends row {row} at entry {indptr[row + 1]}, beyond the "
            f"{n_stored} stored values"
        )
    elif fault == Fault.COLUMN:
        raise ValueError(
            f"{name} has column index {indices[where]} in row {row}; accepted are 0 to "
            f"{n_features - 1}"
        )
    if not _accepted(&reading, nan):
        where = _first_rejected(values, n_stored, nan)
        row = _row_of(&indptr[0], n_rows, where)
        raise ValueError(_not_finite_message(name, values[where], row, indices[where]))
    cdef Rows rows = _new_rows((data.base, indices.base, indptr.base))
    rows.largest, rows.squares = reading.largest, reading.squares
    rows.view.data = values
    rows.view.indices = columns
    rows.view.indptr = &indptr[0]
    rows.view.n_rows = n_rows
    rows.view.n_features = n_features
    rows.view.dtype = RC_FLOAT32 if real is float else RC_FLOAT64
    rows.n_values = indptr[n_rows]
    rows.canonical = canonical
    rows.columns = indices.base[:rows.n_values]
    return rows


def dense_rows(
    # (n_rows, n_features): each row contiguous; the rows may be any whole number of values apart
    const real[:, :] X not None,
    str name not None,  # name of the matrix in error messages
    bint nan=False,  # whether NaN is accepted, for a missing value
):
    """Check a dense matrix and wrap it in place.

    Raises ValueError, naming the value, if one is NaN or infinite, or if a row is not contiguous.
    O(n_rows * n_features), one pass, no allocation.
    """
    cdef int64_t n_rows = X.shape[0], n_features = X.shape[1], i = 0
    cdef rc_reading reading = rc_reading(0, 0)
    cdef const real *values = &X[0, 0] if n_rows and n_features else NULL
    cdef int64_t stride = X.strides[0] // <int64_t> sizeof(real) if values != NULL else 0
    if values != NULL and (
        (n_features > 1 and X.strides[1] != sizeof(real)) or X.strides[0] % sizeof(real)
    ):
        raise ValueError(f"{name} must have contiguous rows")
    with nogil:
        if stride == n_features:
            _read(values, n_rows * n_features, &reading)
        elif values != NULL:
            for i in range(n_rows):
                _read(values + i * stride, n_features, &reading)
    cdef int64_t column = 0
    if not _accepted(&reading, nan):
        for i in range(n_rows):
            column = _first_rejected(values + i * stride, n_features, nan)
            if column < n_features:
                break
        raise ValueError(_not_finite_message(name, values[i * stride + column], i, column))
    cdef Rows rows = _new_rows((X.base,))
    rows.largest, rows.squares = reading.largest, reading.squares
    rows.view.data = values
    rows.view.stride = stride
    rows.view.n_rows = n_rows
    rows.view.n_features = n_features
    rows.view.dtype = RC_FLOAT32 if real is float else RC_FLOAT64
    rows.n_values = n_rows * n_features
    return rows


cdef str _not_finite_message(str name, double value, int64_t row, int64_t column):
    what = "NaN" if value != value else "infinity"
    return (
        f"Input {name} contains {what} at row {row}, column {column}; "
        "every value must be finite: impute or drop it first"
    )


def project(
    object rows not None,
    const double[::1] weights not None,  # (n_features,)
    double[::1] out not None,  # (n_rows,): overwritten
):
    """Write each row's inner product with ``weights`` into ``out``. O(n_values)."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i
    if weights.shape[0] != X.n_features or out.shape[0] != X.n_rows:
        raise ValueError(
            f"weights {weights.shape[0]} and out {out.shape[0]} do not match rows of shape "
            f"({X.n_rows}, {X.n_features})"
        )
    if X.n_rows == 0 or X.n_features == 0:
        out[:] = 0.0
        return
    with nogil:
        for i in range(X.n_rows):
            out[i] = rc_dot(rc_rows_get(X, i), &weights[0])


def project_many(
    object rows not None,
    # (n_features * k,): weight j of a column at ``column * k + j``
    const double[::1] weights not None,
    double[:, ::1] out not None,  # (n_rows, k): overwritten
):
    """Write each row's inner products with k weight vectors into ``out``. O(n_values * k)."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i, k = out.shape[1]
    if k < 1 or weights.shape[0] != X.n_features * k or out.shape[0] != X.n_rows:
        raise ValueError(
            f"{weights.shape[0]} weights and out of shape ({out.shape[0]}, {k}) do not match rows "
            f"of shape ({X.n_rows}, {X.n_features})"
        )
    with nogil:
        for i in range(X.n_rows):
            rc_dots(rc_rows_get(X, i), &weights[0], <int> k, &out[i, 0])
