# Kernel values of a block of rows with a pool of support vectors, and the block's scratch. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from rankcore._ext._units cimport rc_units
from rankcore.core cimport rc_kernel, rc_row, rc_rows, rc_rows_get


cdef extern from "_kernel_values.h" nogil:
    enum:
        RC_ROWS_
        RC_SUPPORT_CHUNK
        RC_SUMMED_SLOTS

    ctypedef struct rc_support:
        const void *data
        const int32_t *indices
        const int64_t *starts
        const int64_t *lengths
        const double *norms
        int64_t n_features
        int32_t dtype

    ctypedef struct rc_block:
        const rc_rows *rows
        const int64_t *which
        int64_t n
        const rc_units *units
        double *standardized
        double *tiles
        double *norms
        double *dots
        int32_t *place_of
        double *places

    void rc_block_fill(const rc_block *block, int dense) noexcept
    void rc_block_values(
        const rc_kernel *kernel, const rc_support *pool, const rc_block *block, int64_t first,
        int64_t last, double *values, int64_t stride,
    ) noexcept
    double rc_dual_dot(
        const int32_t *slots, const double *coefs, int64_t n, const double *values
    ) noexcept
    double rc_dual_rest(
        const int32_t *slots, const double *coefs, int64_t first, int64_t n, const double *values,
        const double *sums,
    ) noexcept

    void rc_copy_kept(
        const double *row, const int64_t *support, int64_t n, const double *next, int64_t n_rows,
        double *values,
    ) noexcept

    ctypedef struct rc_lists:
        const int32_t *slots
        const double *coefs
        const int64_t *sizes
        int64_t capacity
        int64_t n

    void rc_block_sums(
        const rc_kernel *kernel, const rc_support *pool, const rc_block *block, int64_t n_support,
        const rc_lists *lists, const uint8_t *wanted, double *values, int64_t *places, double *sums,
    ) noexcept


cdef inline int64_t padded(int64_t n) noexcept nogil:
    """Round a number of rows up to whole tiles."""
    return (n + RC_ROWS_ - 1) // RC_ROWS_ * RC_ROWS_


cdef inline void free_block(rc_block *block) noexcept nogil:
    free(<void *> block.which)
    free(block.standardized)
    free(block.tiles)
    free(block.norms)
    free(block.dots)
    free(block.place_of)
    free(block.places)


cdef inline int new_block(
    rc_block *block, const rc_rows *rows, const int32_t *order, int64_t start, int64_t stop,
    bint dense, const rc_units *units,
) noexcept nogil:
    """Describe the rows at positions start .. stop - 1 of an order; return -1 if out of memory.

    The order may be NULL.

    Positions and the rows of the order were checked. ``units`` are those of dense support vectors,
    or NULL. Call `free_block` even if this fails.
    """
    cdef int64_t i, n = stop - start, width = padded(n), stored = 0, most = 0
    cdef int64_t *which = <int64_t *> malloc(width * sizeof(int64_t))
    block.rows = rows
    block.which = which
    block.n = n
    block.norms = <double *> malloc(width * sizeof(double))
    block.tiles = block.places = block.dots = block.standardized = NULL
    block.place_of = NULL
    block.units = units
    if which == NULL or block.norms == NULL:
        return -1
    if units != NULL:
        block.standardized = <double *> malloc(rows.n_features * sizeof(double))
        if block.standardized == NULL:
            return -1
    for i in range(n):
        which[i] = start + i if order == NULL else order[start + i]
    if dense:
        block.tiles = <double *> malloc(width * rows.n_features * sizeof(double))
        block.dots = <double *> malloc(width * RC_SUPPORT_CHUNK * sizeof(double))
        return 0 if block.tiles != NULL and block.dots != NULL else -1
    for i in range(n):
        stored = (stored if i % RC_ROWS_ else 0) + rc_rows_get(rows, which[i]).n
        most = stored if stored > most else most
    most = rows.n_features if rows.n_features < most else most
    block.dots = <double *> malloc(RC_ROWS_ * RC_SUPPORT_CHUNK * sizeof(double))
    block.places = <double *> malloc((most + 1) * RC_ROWS_ * sizeof(double))
    block.place_of = <int32_t *> calloc(rows.n_features, sizeof(int32_t))
    if block.dots == NULL or block.places == NULL or block.place_of == NULL:
        return -1
    return 0
