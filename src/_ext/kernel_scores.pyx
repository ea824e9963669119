"""Kernel values and outputs of fitted learners in dual form.

Blocks of rows are evaluated against all support vectors: kernel values (n_rows, n_support), or
outputs (n_rows, n_outputs), sums of coefficients times kernel values. O(rows * values of the
support vectors).
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._kernel_block cimport (
    free_block,
    new_block,
    rc_block,
    rc_block_fill,
    rc_block_values,
    rc_dual_dot,
    rc_support,
)
from rankcore._ext._units cimport rc_units
from rankcore.core cimport (
    RC_FLOAT32,
    RC_FLOAT64,
    RC_KERNEL_LINEAR,
    RC_KERNEL_POLY,
    RC_KERNEL_RBF,
    rc_kernel,
    rc_kernel_value,
    rc_norm2,
    rc_rows,
    rc_rows_get,
)

KERNELS = {"linear": RC_KERNEL_LINEAR, "poly": RC_KERNEL_POLY, "rbf": RC_KERNEL_RBF}

ctypedef fused real:
    float
    double

# Rows that are evaluated at once, and the maximum number of their kernel values.
cdef int64_t BLOCK_ROWS = 64
cdef int64_t BLOCK_VALUES = 2**22


cdef int _outputs(
    const rc_kernel *kernel, const rc_support *pool, int64_t n_support, const rc_rows *X,
    int64_t start, int64_t stop, const int32_t *slots, const double *coefs, const int64_t *sizes,
    int64_t n_outputs, int64_t list_capacity, const rc_units *units, double *out,
    double *values_out,
) noexcept nogil:
    """Write outputs, or kernel values, of the rows start .. stop - 1; -1 means out of memory."""
    cdef int64_t rows = BLOCK_VALUES // (n_support + 1), first, last, i, j
    cdef rc_block block
    cdef bint dense = pool.starts == NULL and pool.indices == NULL
    cdef int failed
    cdef double *values
    if dense and rows > BLOCK_VALUES // X.n_features:
        rows = BLOCK_VALUES // X.n_features
    rows = 8 if rows < 8 else (BLOCK_ROWS if rows > BLOCK_ROWS else rows)
    values = <double *> malloc((rows * n_support + 1) * sizeof(double))
    if values == NULL:
        return -1
    first = start
    while first < stop:
        last = first + rows if first + rows < stop else stop
        failed = new_block(&block, X, NULL, first, last, dense, units)
        if not failed:
            rc_block_fill(&block, dense)
            if values_out != NULL:
                rc_block_values(
                    kernel, pool, &block, 0, n_support,
                    values_out + (first - start) * n_support, n_support,
                )
            else:
                rc_block_values(kernel, pool, &block, 0, n_support, values, n_support)
                for i in range(last - first):
                    for j in range(n_outputs):
                        out[(first - start + i) * n_outputs + j] = rc_dual_dot(
                            slots + j * list_capacity, coefs + j * list_capacity, sizes[j],
                            values + i * n_support,
                        )
        free_block(&block)
        if failed:
            free(values)
            return -1
        first = last
    free(values)
    return 0


def squared_lengths(
    object rows not None,
    int64_t start,  # 0 <= start <= start + out.shape[0] <= n_rows
    double[::1] out not None,  # out
):
    """Write the squared lengths of the rows from ``start`` on."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i
    if not 0 <= start <= X.n_rows - out.shape[0]:
        raise ValueError("rows, range and out are inconsistent")
    for i in range(out.shape[0]):
        out[i] = rc_norm2(rc_rows_get(X, start + i))


def diagonal(
    dict kernel not None,  # as for `outputs`
    const double[::1] norms not None,  # squared lengths of rows
    double[::1] out not None,  # out, same length
):
    """Write the kernel values of rows with themselves."""
    cdef rc_kernel K
    cdef int64_t i
    K.kind = kernel["kind"]
    K.gamma = kernel["gamma"]
    K.coef0 = kernel["coef0"]
    K.degree = kernel["degree"]
    if out.shape[0] != norms.shape[0]:
        raise ValueError("norms and out are inconsistent")
    for i in range(norms.shape[0]):
        out[i] = rc_kernel_value(&K, norms[i], norms[i], norms[i])


def outputs(
    object rows not None,  # canonical
    int64_t start,  # 0 <= start <= stop <= n_rows
    int64_t stop,
    dict kernel not None,  # ``kind`` (as in rankcore.h), ``gamma``, ``coef0``, ``degree``
    # support vectors, dense one after the other, or the values of sparse ones
    const real[::1] vectors not None,
    # int32, or None: columns of the values of sparse support vectors, and where each vector's begin
    const int32_t[::1] indices,
    const int64_t[::1] starts,
    const int64_t[::1] lengths,
    const double[::1] norms not None,  # squared lengths of the support vectors
    int64_t n_support,
    # each (n_outputs, list_capacity): support vectors of each output, and their coefficients. None:
    # write kernel values.
    const int32_t[:, ::1] slots,
    const double[:, ::1] coefs,
    const int64_t[::1] sizes,  # (n_outputs,): entries of each list
    # each (2, n_features), or None: units of the support vectors and their factors, of an
    # `OnlineModel`
    const double[:, ::1] units,
    const double[:, ::1] factors,
    double[:, ::1] out not None,  # out, (stop - start, n_outputs), or (stop - start, n_support)
):
    """Write the outputs of the rows start .. stop - 1: sums of coefficients times kernel values.

    O(rows * values of the support vectors); a few megabytes of scratch. The GIL is released.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_support pool
    cdef rc_kernel K
    cdef int64_t s, i, j, n_values, d = X.n_features
    cdef int failed
    cdef bint plain = slots is None
    cdef const int32_t *list_slots = NULL
    cdef const double *list_coefs = NULL
    cdef const int64_t *list_sizes = NULL
    cdef rc_units standard
    cdef int64_t n_outputs = 0, list_capacity = 0
    cdef double *values = NULL
    pool.data = NULL
    pool.indices = NULL
    pool.starts = NULL
    pool.lengths = NULL
    pool.norms = NULL
    pool.n_features = d
    pool.dtype = RC_FLOAT32 if real is float else RC_FLOAT64
    K.kind = kernel["kind"]
    K.gamma = kernel["gamma"]
    K.coef0 = kernel["coef0"]
    K.degree = kernel["degree"]
    if (
        not rows.canonical
        or not 0 <= start <= stop <= X.n_rows
        or not 0 <= n_support <= norms.shape[0]
        or out.shape[0] != stop - start
        or (starts is None and vectors.shape[0] < n_support * d)
        or (plain and out.shape[1] != n_support)
        or (units is None) != (factors is None)
        or (units is not None and (
            starts is not None or units.shape[0] != 2 or units.shape[1] != d
            or factors.shape[0] != 2 or factors.shape[1] != d
        ))
        or (not plain and (
            coefs is None or sizes is None or coefs.shape[0] != slots.shape[0]
            or coefs.shape[1] != slots.shape[1] or sizes.shape[0] != slots.shape[0]
            or out.shape[1] != slots.shape[0]
        ))
    ):
        raise ValueError("rows, range, support vectors, coefficients and out are inconsistent")
    if units is not None:
        standard.center = &units[0, 0]
        standard.factor = &factors[0, 0]
        standard.blank = &factors[1, 0]
        standard.n_features = d
    if vectors.shape[0]:
        pool.data = &vectors[0]
    if norms.shape[0]:
        pool.norms = &norms[0]
    if starts is not None:
        if indices is None or lengths is None or min(starts.shape[0], lengths.shape[0]) < n_support:
            raise ValueError("sparse support vectors need indices, starts and lengths")
        for s in range(n_support):
            n_values = min(vectors.shape[0], indices.shape[0])
            if not (0 <= starts[s] <= n_values and 0 <= lengths[s] <= n_values - starts[s]):
                raise ValueError(f"support vector {s} ends beyond the {vectors.shape[0]} values")
            for i in range(starts[s], starts[s] + lengths[s]):
                if not 0 <= indices[i] < d:
                    raise ValueError(f"support vector {s} has the column {indices[i]} of {d}")
        if n_support:
            pool.starts = &starts[0]
            pool.lengths = &lengths[0]
        if indices.shape[0]:
            pool.indices = &indices[0]
    if not plain:
        if sizes.shape[0]:
            list_sizes = &sizes[0]
        if coefs.shape[0] and coefs.shape[1]:
            list_slots = &slots[0, 0]
            list_coefs = &coefs[0, 0]
        for j in range(sizes.shape[0]):
            if not 0 <= sizes[j] <= slots.shape[1]:
                raise ValueError(f"the list of output {j} has {sizes[j]} entries")
            for i in range(sizes[j]):
                if not 0 <= slots[j, i] < n_support:
                    raise ValueError(f"output {j} has the support vector {slots[j, i]}")
    if start == stop or out.shape[1] == 0:
        return
    if plain:
        values = &out[0, 0]
    else:
        n_outputs = slots.shape[0]
        list_capacity = slots.shape[1]
    with nogil:
        failed = _outputs(
            &K, &pool, n_support, X, start, stop, list_slots, list_coefs, list_sizes, n_outputs,
            list_capacity, NULL if units is None else &standard, &out[0, 0], values,
        )
    if failed:
        raise MemoryError
