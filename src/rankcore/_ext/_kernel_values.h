/* Kernel values of many rows with many support vectors. Private.
 *
 * Rows are grouped in tiles of RC_ROWS_: the values of a column in the rows of a tile are
 * contiguous, so that a value of a support vector is multiplied by all of them at once. Each lane
 * sums its products column by column, independently of other lanes. An inner product is therefore
 * bit-identical for any division of rows into tiles and blocks, dense or sparse, on every
 * CPU; products with zeros that are not stored would add nothing.
 */
#ifndef RANKCORE_KERNEL_VALUES_H
#define RANKCORE_KERNEL_VALUES_H

#include "rankcore.h"

#include <string.h>

#include "_standardized.h"
#include "rankcore_vectors.h"

/* A line is the unit of processing: the rows of a tile if the compiler has vectors, else one
 * row. */
#if defined(__GNUC__)
#define RC_ROWS_ 8
typedef double rc_rows8_ __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t rc_bits8_ __attribute__((vector_size(64), aligned(8), may_alias));
typedef double rc_two_ __attribute__((vector_size(16), aligned(8), may_alias));
#define RC_CHOOSE_(comparison, a, b) \
    ((rc_rows8_)(((rc_bits8_)(a) & (comparison)) | ((rc_bits8_)(b) & ~(comparison))))
#else
#define RC_ROWS_ 1
typedef double rc_rows8_;
typedef int64_t rc_bits8_;
#define RC_CHOOSE_(comparison, a, b) ((comparison) ? (a) : (b))
#endif
#define RC_LINE_OF_(p) (*(const rc_rows8_ *)(p))
#define RC_LINE_AT_(p) (*(rc_rows8_ *)(p))

/* Support vectors are taken this many at a time and this many columns of them, so that both they
 * and the columns of a tile stay in the nearest caches. */
#define RC_SUPPORT_CHUNK 64
#define RC_COLUMN_PANEL 256

/* A pool of support vectors: dense (`starts` NULL; vector s at s * n_features), or sparse (vector s
 * has `lengths[s]` values from `starts[s]` on). */
typedef struct rc_support {
    const void *data; /* double or float, by dtype */
    const int32_t *indices;
    const int64_t *starts;
    const int64_t *lengths;
    const double *norms; /* squared lengths */
    int64_t n_features;
    int32_t dtype;
} rc_support;

/* Tiles of a block of rows. Dense support vectors: column f of tile j at
 * ((j * n_features) + f) * RC_ROWS_. Sparse ones: a tile at a time, whose columns are listed.
 * With `units`, support vectors are dense, and rows are standardized first. */
typedef struct rc_block {
    const rc_rows *rows;
    const int64_t *which; /* indices of the rows */
    int64_t n;
    const rc_units *units; /* NULL: rows are taken as they are */
    double *standardized;  /* a row in these units */
    double *tiles;
    double *norms;     /* squared lengths of the rows, padded with zeros to whole tiles */
    double *dots;      /* a chunk of support vectors for each tile */
    int32_t *place_of; /* sparse: for each column its place in the tile, 0 for none */
    double *places;    /* sparse: the columns of a tile, the first a line of zeros */
} rc_block;

/* ------------------------------------------------------------------------ from inner products */

/* The exponential of lines that are at most 0: the steps of rc_kernel_exp, see there. */
#if defined(__GNUC__)
RC_INLINE_ void rc_exp_line_(double *line)
{
    const rc_rows8_ x = RC_LINE_OF_(line);
    const rc_bits8_ low = (rc_bits8_)(x < RC_EXP_LEAST_);
    const rc_rows8_ a = RC_CHOOSE_(low, x - x, x);
    const rc_rows8_ t = a * RC_EXP_LOG2E_ + RC_EXP_MAGIC_;
    const rc_rows8_ n = t - RC_EXP_MAGIC_;
    const rc_rows8_ r = (a - n * RC_EXP_LN2_HIGH_) - n * RC_EXP_LN2_LOW_;
    rc_rows8_ p, e;
    RC_EXP_SUM_(p, r);
    e = (rc_rows8_)((rc_bits8_)p + ((rc_bits8_)t << 52));
    RC_LINE_AT_(line) = RC_CHOOSE_(low, e - e, e);
}
#else
RC_INLINE_ void rc_exp_line_(double *line) { *line = rc_kernel_exp(*line); }
#endif

/* Turns the inner products of a tile's rows with a support vector into kernel values. The same
 * operations as rc_kernel_value. */
RC_INLINE_ void rc_values_line_(const rc_kernel *kernel, const double *row_norms, double norm,
                                double *line)
{
    rc_rows8_ v = RC_LINE_OF_(line);
    if (kernel->kind == RC_KERNEL_RBF) {
        rc_rows8_ distance = (RC_LINE_OF_(row_norms) + norm) - (v + v);
        distance = RC_CHOOSE_((rc_bits8_)(distance < 0.0), distance - distance, distance);
        RC_LINE_AT_(line) = -kernel->gamma * distance;
        rc_exp_line_(line);
    } else if (kernel->kind == RC_KERNEL_POLY) {
        rc_rows8_ base = kernel->gamma * v + kernel->coef0, power = base - base + 1.0;
        int32_t left;
        for (left = kernel->degree; left; left >>= 1) {
            if (left & 1)
                power = power * base;
            base = base * base;
        }
        RC_LINE_AT_(line) = power;
    }
}

/* Writes the values of a chunk of support vectors with the rows of a tile, a line each. */
RC_INLINE_ void rc_keep_lines_(const rc_kernel *kernel, const rc_block *block, int64_t tile,
                               const double *norms, double *dots, int64_t n, double *lines)
{
    int64_t s;
    for (s = 0; s < n; s++) {
        rc_values_line_(kernel, block->norms + tile * RC_ROWS_, norms[s], dots + s * RC_ROWS_);
        RC_LINE_AT_(lines + s * RC_ROWS_) = RC_LINE_OF_(dots + s * RC_ROWS_);
    }
}

/* Writes the values of a chunk of support vectors with the rows of a tile, row by row. */
RC_INLINE_ void rc_spread_(const rc_kernel *kernel, const rc_block *block, int64_t tile,
                           const double *norms, double *dots, int64_t n, double *values,
                           int64_t stride)
{
    const int64_t first = tile * RC_ROWS_;
    const int64_t rows = block->n - first < RC_ROWS_ ? block->n - first : RC_ROWS_;
    int64_t s, i;
    for (s = 0; s < n; s++)
        rc_values_line_(kernel, block->norms + first, norms[s], dots + s * RC_ROWS_);
    for (i = 0; i < rows; i++) {
        double *out = values + (first + i) * stride;
        for (s = 0; s < n; s++)
            out[s] = dots[s * RC_ROWS_ + i];
    }
}

/* Adds the values of a chunk of support vectors with the rows of a tile, times coefficients, to
 * four lines of sums: support vector s of the chunk to line s % 4. */
RC_INLINE_ void rc_sum_tile_(const rc_kernel *kernel, const rc_block *block, int64_t tile,
                             const double *norms, double *dots, int64_t n, const double *coefs,
                             double *sums)
{
    rc_rows8_ s0 = RC_LINE_OF_(sums), s1 = RC_LINE_OF_(sums + RC_ROWS_);
    rc_rows8_ s2 = RC_LINE_OF_(sums + 2 * RC_ROWS_), s3 = RC_LINE_OF_(sums + 3 * RC_ROWS_);
    int64_t s;
    for (s = 0; s < n; s++)
        rc_values_line_(kernel, block->norms + tile * RC_ROWS_, norms[s], dots + s * RC_ROWS_);
    for (s = 0; s + 4 <= n; s += 4) {
        s0 += coefs[s] * RC_LINE_OF_(dots + s * RC_ROWS_);
        s1 += coefs[s + 1] * RC_LINE_OF_(dots + (s + 1) * RC_ROWS_);
        s2 += coefs[s + 2] * RC_LINE_OF_(dots + (s + 2) * RC_ROWS_);
        s3 += coefs[s + 3] * RC_LINE_OF_(dots + (s + 3) * RC_ROWS_);
    }
    if (s < n)
        s0 += coefs[s] * RC_LINE_OF_(dots + s * RC_ROWS_);
    if (s + 1 < n)
        s1 += coefs[s + 1] * RC_LINE_OF_(dots + (s + 1) * RC_ROWS_);
    if (s + 2 < n)
        s2 += coefs[s + 2] * RC_LINE_OF_(dots + (s + 2) * RC_ROWS_);
    RC_LINE_AT_(sums) = s0;
    RC_LINE_AT_(sums + RC_ROWS_) = s1;
    RC_LINE_AT_(sums + 2 * RC_ROWS_) = s2;
    RC_LINE_AT_(sums + 3 * RC_ROWS_) = s3;
}

/* ------------------------------------------------------------------------ inner products */

/* Adds the products of n <= 4 dense support vectors, `width` columns of them, with a tile; the
 * first columns begin the sums. */
#define RC_DENSE_DOTS_(TYPE, N)                                    \
    do {                                                           \
        const TYPE *v0 = (const TYPE *)vectors, *v1 = v0 + stride; \
        const TYPE *v2 = v1 + stride, *v3 = v2 + stride;           \
        rc_rows8_ s0 = {0}, s1 = s0, s2 = s0, s3 = s0;             \
        if (!begin)                                                \
            s0 = RC_LINE_OF_(dots);                                \
        if (!begin && (N) == 4) {                                  \
            s1 = RC_LINE_OF_(dots + RC_ROWS_);                     \
            s2 = RC_LINE_OF_(dots + 2 * RC_ROWS_);                 \
            s3 = RC_LINE_OF_(dots + 3 * RC_ROWS_);                 \
        }                                                          \
        for (f = 0; f < width; f++) {                              \
            const rc_rows8_ x = RC_LINE_OF_(tile + f * RC_ROWS_);  \
            s0 += (double)v0[f] * x;                               \
            if ((N) == 4) {                                        \
                s1 += (double)v1[f] * x;                           \
                s2 += (double)v2[f] * x;                           \
                s3 += (double)v3[f] * x;                           \
            }                                                      \
        }                                                          \
        RC_LINE_AT_(dots) = s0;                                    \
        if ((N) == 4) {                                            \
            RC_LINE_AT_(dots + RC_ROWS_) = s1;                     \
            RC_LINE_AT_(dots + 2 * RC_ROWS_) = s2;                 \
            RC_LINE_AT_(dots + 3 * RC_ROWS_) = s3;                 \
        }                                                          \
    } while (0)

RC_INLINE_ void rc_dense_dots_(const void *vectors, const int single, int64_t stride,
                               const double *tile, int64_t width, int64_t n, const int begin,
                               double *dots)
{
    int64_t f;
    if (single && n == 4)
        RC_DENSE_DOTS_(float, 4);
    else if (single)
        RC_DENSE_DOTS_(float, 1);
    else if (n == 4)
        RC_DENSE_DOTS_(double, 4);
    else
        RC_DENSE_DOTS_(double, 1);
}

/* Use of the values of a chunk of support vectors and a tile: written row by row,
 * `stride` apart; written line by line, `stride` lines for each tile; or summed with coefficients.
 */
enum { RC_BY_ROWS_, RC_BY_LINES_, RC_SUMMED_ };

RC_INLINE_ void rc_hand_on_(const int form, const rc_kernel *kernel, const rc_block *block,
                            int64_t tile, const double *norms, double *dots, int64_t n,
                            const double *coefs, double *values, int64_t at, int64_t stride)
{
    if (form == RC_SUMMED_)
        rc_sum_tile_(kernel, block, tile, norms, dots, n, coefs + at, values + tile * 4 * RC_ROWS_);
    else if (form == RC_BY_LINES_)
        rc_keep_lines_(kernel, block, tile, norms, dots, n,
                       values + (tile * stride + at) * RC_ROWS_);
    else
        rc_spread_(kernel, block, tile, norms, dots, n, values + at, stride);
}

/* Values of the dense support vectors first .. last - 1 with all tiles. `coefs` are of these. */
RC_INLINE_ void rc_dense_values_(const int form, const rc_kernel *kernel, const rc_support *pool,
                                 const rc_block *block, int64_t first, int64_t last, double *values,
                                 int64_t stride, const double *coefs)
{
    const int single = pool->dtype == RC_FLOAT32;
    const int64_t size = single ? 4 : 8, d = pool->n_features;
    const int64_t tiles = (block->n + RC_ROWS_ - 1) / RC_ROWS_;
    int64_t chunk, column, tile, s;
    for (chunk = first; chunk < last; chunk += RC_SUPPORT_CHUNK) {
        const int64_t n = last - chunk < RC_SUPPORT_CHUNK ? last - chunk : RC_SUPPORT_CHUNK;
        for (column = 0; column < d; column += RC_COLUMN_PANEL) {
            const int64_t width = d - column < RC_COLUMN_PANEL ? d - column : RC_COLUMN_PANEL;
            for (tile = 0; tile < tiles; tile++) {
                const double *x = block->tiles + (tile * d + column) * RC_ROWS_;
                double *dots = block->dots + tile * RC_SUPPORT_CHUNK * RC_ROWS_;
                for (s = 0; s < n;) {
                    const int64_t some = n - s >= 4 ? 4 : 1;
                    const char *vectors =
                        (const char *)pool->data + ((chunk + s) * d + column) * size;
                    rc_dense_dots_(vectors, single, d, x, width, some, column == 0,
                                   dots + s * RC_ROWS_);
                    s += some;
                }
            }
        }
        for (tile = 0; tile < tiles; tile++) {
            double *dots = block->dots + tile * RC_SUPPORT_CHUNK * RC_ROWS_;
            rc_hand_on_(form, kernel, block, tile, pool->norms + chunk, dots, n, coefs, values,
                        chunk - first, stride);
        }
    }
}

RC_INLINE_ double rc_row_value_(rc_row x, int64_t i)
{
    return x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i] : ((const double *)x.data)[i];
}

/* Writes a row into its lane of a dense tile, which is zero. */
RC_INLINE_ void rc_fill_lane_(rc_row x, double *lane)
{
    int64_t i;
    for (i = 0; i < x.n; i++)
        lane[(x.indices ? x.indices[i] : i) * RC_ROWS_] = rc_row_value_(x, i);
}

/* Lists the columns of a tile's rows, and their values; or forgets them. Returns how many. */
RC_INLINE_ int64_t rc_list_columns_(const rc_block *block, int64_t tile, const int forget)
{
    int64_t i, j, n = 0;
    for (i = tile * RC_ROWS_; i < block->n && i < (tile + 1) * RC_ROWS_; i++) {
        const rc_row x = rc_rows_get(block->rows, block->which[i]);
        for (j = 0; j < x.n; j++) {
            int32_t *place = block->place_of + (x.indices ? x.indices[j] : j);
            if (forget) {
                *place = 0;
                continue;
            }
            if (!*place) {
                *place = (int32_t)++n;
                memset(block->places + n * RC_ROWS_, 0, RC_ROWS_ * sizeof *block->places);
            }
            block->places[*place * RC_ROWS_ + i % RC_ROWS_] = rc_row_value_(x, j);
        }
    }
    return n;
}

#define RC_SPARSE_DOTS_(TYPE)                                                                    \
    do {                                                                                         \
        const TYPE *v = (const TYPE *)pool->data + pool->starts[s];                              \
        for (i = 0; i < pool->lengths[s]; i++)                                                   \
            sum += (double)v[i] *                                                                \
                   RC_LINE_OF_(block->places + block->place_of[indices[i]] * (int64_t)RC_ROWS_); \
    } while (0)

/* The same for sparse support vectors. */
RC_INLINE_ void rc_sparse_values_(const int form, const rc_kernel *kernel, const rc_support *pool,
                                  const rc_block *block, int64_t first, int64_t last,
                                  double *values, int64_t stride, const double *coefs)
{
    const int64_t tiles = (block->n + RC_ROWS_ - 1) / RC_ROWS_;
    int64_t chunk, tile, s, i;
    memset(block->places, 0, RC_ROWS_ * sizeof *block->places);
    for (tile = 0; tile < tiles; tile++) {
        rc_list_columns_(block, tile, 0);
        for (chunk = first; chunk < last; chunk += RC_SUPPORT_CHUNK) {
            const int64_t n = last - chunk < RC_SUPPORT_CHUNK ? last - chunk : RC_SUPPORT_CHUNK;
            for (s = chunk; s < chunk + n; s++) {
                const int32_t *indices = pool->indices + pool->starts[s];
                rc_rows8_ sum = {0};
                if (pool->dtype == RC_FLOAT32)
                    RC_SPARSE_DOTS_(float);
                else
                    RC_SPARSE_DOTS_(double);
                RC_LINE_AT_(block->dots + (s - chunk) * RC_ROWS_) = sum;
            }
            rc_hand_on_(form, kernel, block, tile, pool->norms + chunk, block->dots, n, coefs,
                        values, chunk - first, stride);
        }
        rc_list_columns_(block, tile, 1);
    }
}

/* ------------------------------------------------------------------------ for the learners */

/* Returns the squared length of a row, column by column: equal to its inner product with itself, to
 * the bit. */
static inline double rc_row_norm(rc_row x) { return rc_norm2(x); }

/* Prepares a block: the squared lengths of its rows, and its tiles if the support vectors are
 * dense. Writes `norms` and `tiles`. */
static inline void rc_block_fill(const rc_block *block, const int dense)
{
    const int64_t padded = (block->n + RC_ROWS_ - 1) / RC_ROWS_ * RC_ROWS_;
    const int64_t d = block->rows->n_features;
    int64_t i;
    if (dense)
        memset(block->tiles, 0, (size_t)(padded * d) * sizeof *block->tiles);
    for (i = 0; i < padded; i++) {
        block->norms[i] = 0.0;
        if (i < block->n) {
            rc_row x = rc_rows_get(block->rows, block->which[i]);
            if (block->units)
                x = rc_standardized(block->units, x, block->standardized);
            block->norms[i] = rc_norm2(x); /* to the bit the tile's product of x and x */
            if (dense)
                rc_fill_lane_(x, block->tiles + i / RC_ROWS_ * d * RC_ROWS_ + i % RC_ROWS_);
        }
    }
}

/* Writes values[i * stride + s - first] = K(row i of the block, support vector s) for s in
 * first .. last - 1. O(rows * values of these vectors). */
RC_CLONES_ static void rc_block_values(const rc_kernel *kernel, const rc_support *pool,
                                       const rc_block *block, int64_t first, int64_t last,
                                       double *values, int64_t stride)
{
    if (pool->starts)
        rc_sparse_values_(RC_BY_ROWS_, kernel, pool, block, first, last, values, stride, NULL);
    else
        rc_dense_values_(RC_BY_ROWS_, kernel, pool, block, first, last, values, stride, NULL);
}

/* The same as lines: those of tile j at j * stride * RC_ROWS_. */
RC_CLONES_ static void rc_block_lines_(const rc_kernel *kernel, const rc_support *pool,
                                       const rc_block *block, int64_t first, int64_t last,
                                       double *values, int64_t stride)
{
    if (pool->starts)
        rc_sparse_values_(RC_BY_LINES_, kernel, pool, block, first, last, values, stride, NULL);
    else
        rc_dense_values_(RC_BY_LINES_, kernel, pool, block, first, last, values, stride, NULL);
}

/* The sums of `rc_block_sums` for one list of every slot. No value is written. */
RC_CLONES_ static void rc_block_whole_sums_(const rc_kernel *kernel, const rc_support *pool,
                                            const rc_block *block, int64_t n_support,
                                            const double *coefs, double *sums)
{
    if (pool->starts)
        rc_sparse_values_(RC_SUMMED_, kernel, pool, block, 0, n_support, sums, 0, coefs);
    else
        rc_dense_values_(RC_SUMMED_, kernel, pool, block, 0, n_support, sums, 0, coefs);
}

/* Adds the products of the entries first .. last - 1 of a list with the kernel values of their
 * slots to four sums: entry e to sums[e % 4]. O(last - first). */
static inline void rc_dual_add(const int32_t *slots, const double *coefs, int64_t first,
                               int64_t last, const double *values, double *sums)
{
    double s0, s1, s2, s3;
    int64_t i = first;
    for (; i < last && i % 4; i++)
        sums[i % 4] += coefs[i] * values[slots[i]];
    s0 = sums[0];
    s1 = sums[1];
    s2 = sums[2];
    s3 = sums[3];
    /* Slots ascend: a range as long as the number of entries has every slot. */
    if (i < last && slots[last - 1] - slots[i] == last - 1 - i) {
        const double *v = values + slots[i] - i;
#if defined(__GNUC__)
        rc_two_ a = {s0, s1}, b = {s2, s3};
        for (; i + 4 <= last; i += 4) {
            a += *(const rc_two_ *)(coefs + i) * *(const rc_two_ *)(v + i);
            b += *(const rc_two_ *)(coefs + i + 2) * *(const rc_two_ *)(v + i + 2);
        }
        s0 = a[0];
        s1 = a[1];
        s2 = b[0];
        s3 = b[1];
#else
        for (; i + 4 <= last; i += 4) {
            s0 += coefs[i] * v[i];
            s1 += coefs[i + 1] * v[i + 1];
            s2 += coefs[i + 2] * v[i + 2];
            s3 += coefs[i + 3] * v[i + 3];
        }
#endif
    }
    for (; i + 4 <= last; i += 4) {
        s0 += coefs[i] * values[slots[i]];
        s1 += coefs[i + 1] * values[slots[i + 1]];
        s2 += coefs[i + 2] * values[slots[i + 2]];
        s3 += coefs[i + 3] * values[slots[i + 3]];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    for (; i < last; i++)
        sums[i % 4] += coefs[i] * values[slots[i]];
}

/* Returns the sum of a list's coefficients times kernel values, to which some entries were added.
 * O(n). */
static inline double rc_dual_rest(const int32_t *slots, const double *coefs, int64_t first,
                                  int64_t n, const double *values, const double *sums)
{
    double s[4];
    memcpy(s, sums, sizeof s);
    rc_dual_add(slots, coefs, first, n, values, s);
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* Returns the sum of coefficients times the kernel values in their places. O(n). */
static inline double rc_dual_dot(const int32_t *slots, const double *coefs, int64_t n,
                                 const double *values)
{
    const double zeros[4] = {0.0, 0.0, 0.0, 0.0};
    return rc_dual_rest(slots, coefs, 0, n, values, zeros);
}

/* Copies the kept kernel values of a row with n support vectors, in the order of their slots, and
 * fetches the row that comes next: the CPU cannot predict cache lines in that order. */
static inline void rc_copy_kept(const double *row, const int64_t *support, int64_t n,
                                const double *next, int64_t n_rows, double *values)
{
    int64_t s = 0, i, fetched = 0;
    for (; s + 8 <= n; s += 8, fetched += 8) {
        RC_FETCH_SECOND_(next + fetched);
        for (i = s; i < s + 8; i++)
            values[i] = row[support[i]];
    }
    for (; s < n; s++)
        values[s] = row[support[s]];
    for (; fetched < n_rows; fetched += 8)
        RC_FETCH_SECOND_(next + fetched);
}

/* Lists of coefficients, as in _dual.pxd. */
typedef struct rc_lists {
    const int32_t *slots;
    const double *coefs;
    const int64_t *sizes;
    int64_t capacity;
    int64_t n;
} rc_lists;

/* Adds the products of the entries first .. last - 1 of a list with the lines of their slots,
 * line slot - offset, to four lines of sums: entry e to line e % 4. O(last - first). */
RC_INLINE_ void rc_add_lines_(const int32_t *slots, const double *coefs, int64_t first,
                              int64_t last, const double *lines, int64_t offset, double *sums)
{
#define RC_PRODUCT_(e) (coefs[e] * RC_LINE_OF_(lines + (slots[e] - offset) * RC_ROWS_))
    rc_rows8_ s0 = RC_LINE_OF_(sums), s1 = RC_LINE_OF_(sums + RC_ROWS_);
    rc_rows8_ s2 = RC_LINE_OF_(sums + 2 * RC_ROWS_), s3 = RC_LINE_OF_(sums + 3 * RC_ROWS_);
    int64_t i = first;
    if (i % 4 == 1 && i < last)
        s1 += RC_PRODUCT_(i), i++;
    if (i % 4 == 2 && i < last)
        s2 += RC_PRODUCT_(i), i++;
    if (i % 4 == 3 && i < last)
        s3 += RC_PRODUCT_(i), i++;
    for (; i + 4 <= last; i += 4) {
        s0 += RC_PRODUCT_(i);
        s1 += RC_PRODUCT_(i + 1);
        s2 += RC_PRODUCT_(i + 2);
        s3 += RC_PRODUCT_(i + 3);
    }
    if (i < last && i % 4 == 0) {
        s0 += RC_PRODUCT_(i);
        if (i + 1 < last)
            s1 += RC_PRODUCT_(i + 1);
        if (i + 2 < last)
            s2 += RC_PRODUCT_(i + 2);
    }
    RC_LINE_AT_(sums) = s0;
    RC_LINE_AT_(sums + RC_ROWS_) = s1;
    RC_LINE_AT_(sums + 2 * RC_ROWS_) = s2;
    RC_LINE_AT_(sums + 3 * RC_ROWS_) = s3;
#undef RC_PRODUCT_
}

/* Slots of a chunk: their lines with a tile fit into the nearer caches. */
#define RC_SUMMED_SLOTS 1024

/* Adds the entries places[2 * j] .. places[2 * j + 1] - 1 of each list j, see `rc_block_sums`. */
RC_CLONES_ static void rc_add_lists_(const rc_lists *lists, const int64_t *places, int64_t tiles,
                                     const uint8_t *wanted, const double *values, int64_t offset,
                                     double *sums)
{
    int64_t tile, j;
    for (tile = 0; tile < tiles; tile++)
        for (j = 0; j < lists->n; j++) {
            const int64_t at = tile * lists->n + j;
            if (places[2 * j] < places[2 * j + 1] && (!wanted || wanted[at]))
                rc_add_lines_(lists->slots + j * lists->capacity,
                              lists->coefs + j * lists->capacity, places[2 * j], places[2 * j + 1],
                              values + tile * RC_SUMMED_SLOTS * RC_ROWS_, offset,
                              sums + at * 4 * RC_ROWS_);
        }
}

/* Sums of all entries of the lists, for each row of a block and each list: entry e of list j adds
 * to line e % 4 of the four lines of the row's tile and of the list, which begin at
 * (tile * lists->n + j) * 4 * RC_ROWS_ and must be zero. `wanted` (or NULL) marks for each tile the
 * lists that one of its rows needs. `values` has room for RC_SUMMED_SLOTS for each row of whole
 * tiles, `places` for two for each list. All tiles finish the slots of a chunk before the next, so
 * that only the sums outlive it. O(rows * values of the support vectors +
 * entries). */
static inline void rc_block_sums(const rc_kernel *kernel, const rc_support *pool,
                                 const rc_block *block, int64_t n_support, const rc_lists *lists,
                                 const uint8_t *wanted, double *values, int64_t *places,
                                 double *sums)
{
    const int64_t tiles = (block->n + RC_ROWS_ - 1) / RC_ROWS_;
    int64_t chunk, j;
    if (lists->n == 1 && lists->sizes[0] == n_support) { /* one list, of every slot */
        rc_block_whole_sums_(kernel, pool, block, n_support, lists->coefs, sums);
        return;
    }
    memset(places, 0, (size_t)(2 * lists->n) * sizeof *places);
    for (chunk = 0; chunk < n_support; chunk += RC_SUMMED_SLOTS) {
        const int64_t left = n_support - chunk;
        const int64_t n = left < RC_SUMMED_SLOTS ? left : RC_SUMMED_SLOTS;
        rc_block_lines_(kernel, pool, block, chunk, chunk + n, values, RC_SUMMED_SLOTS);
        for (j = 0; j < lists->n; j++) {
            const int32_t *slots = lists->slots + j * lists->capacity;
            int64_t last = places[2 * j + 1];
            places[2 * j] = last;
            while (last < lists->sizes[j] && slots[last] < chunk + n)
                last++;
            places[2 * j + 1] = last;
        }
        rc_add_lists_(lists, places, tiles, wanted, values, chunk, sums);
    }
}

#endif /* RANKCORE_KERNEL_VALUES_H */
