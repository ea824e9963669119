/* Weighted moments of the values of columns that are not 0. Private.
 *
 * Sums are of differences from an origin, the first value of a column that is not 0, which moves
 * to the mean whenever the number of rows is a power of two. So they lose no digits to a mean that
 * is far from 0, need no division for a value, and depend on the order of rows alone: dense rows
 * and CSR add the same numbers. */
#ifndef RANKCORE_MOMENTS_H
#define RANKCORE_MOMENTS_H

#include "_units.h"
#include "rankcore_vectors.h"

/* Adds a value of weight w to the numbers of its column, in registers. */
#define RC_ADD_VALUE_(value, w)                                   \
    do {                                                          \
        const double x_ = (double)(value), old_ = origin;         \
        const double d_ = x_ - (origin = weight > 0 ? old_ : x_); \
        const double w_ = x_ != 0 ? (w) : 0, wd_ = w_ * d_;       \
        weight += w_;                                             \
        sum += wd_;                                               \
        square += wd_ * d_;                                       \
    } while (0)

/* Adds a dense row, or four rows of `stride` values from each to the next, which access the sums
 * once: each column adds the same numbers in the same order. Weights are read before the loop, as
 * it would not be vectorised with loads that depend on a condition. */
#define RC_ADD_DENSE_(name, real, WEIGHTS, ADD)                                                  \
    RC_INLINE_ void name(rc_moments *m, const real *restrict x, int64_t stride, const double *w) \
    {                                                                                            \
        double *restrict weights = m->weights, *restrict origins = m->origins;                   \
        double *restrict sums = m->sums, *restrict squares = m->squares;                         \
        const int64_t n = m->n_features;                                                         \
        const double WEIGHTS;                                                                    \
        int64_t i;                                                                               \
        (void)stride;                                                                            \
        for (i = 0; i < n; i++) {                                                                \
            double weight = weights[i], origin = origins[i], sum = sums[i], square = squares[i]; \
            ADD;                                                                                 \
            weights[i] = weight;                                                                 \
            origins[i] = origin;                                                                 \
            sums[i] = sum;                                                                       \
            squares[i] = square;                                                                 \
        }                                                                                        \
    }
#define RC_ONE_WEIGHT_ w0 = w[0]
#define RC_FOUR_WEIGHTS_ w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3]
#define RC_ADD_ONE_ RC_ADD_VALUE_(x[i], w0)
#define RC_ADD_FOUR_                      \
    RC_ADD_VALUE_(x[i], w0);              \
    RC_ADD_VALUE_(x[i + stride], w1);     \
    RC_ADD_VALUE_(x[i + 2 * stride], w2); \
    RC_ADD_VALUE_(x[i + 3 * stride], w3)

RC_ADD_DENSE_(rc_add_f64_, double, RC_ONE_WEIGHT_, RC_ADD_ONE_)
RC_ADD_DENSE_(rc_add_f32_, float, RC_ONE_WEIGHT_, RC_ADD_ONE_)
RC_ADD_DENSE_(rc_add_four_f64_, double, RC_FOUR_WEIGHTS_, RC_ADD_FOUR_)
RC_ADD_DENSE_(rc_add_four_f32_, float, RC_FOUR_WEIGHTS_, RC_ADD_FOUR_)

/* Adds the values of a sparse row. */
RC_INLINE_ void rc_add_sparse_(rc_moments *m, rc_row row, const double w)
{
    int64_t i;
    for (i = 0; i < row.n; i++) {
        const int32_t j = row.indices[i];
        const double x = row.dtype == RC_FLOAT32 ? (double)((const float *)row.data)[i]
                                                 : ((const double *)row.data)[i];
        if (x != 0) {
            double weight = m->weights[j], origin = m->origins[j];
            double sum = m->sums[j], square = m->squares[j];
            RC_ADD_VALUE_(x, w);
            m->weights[j] = weight;
            m->origins[j] = origin;
            m->sums[j] = sum;
            m->squares[j] = square;
        }
    }
}

/* Counts the values of a row that are not 0. */
RC_INLINE_ int64_t rc_n_nonzero(rc_row x)
{
    int64_t i, n = 0;
    if (x.dtype == RC_FLOAT32) {
        for (i = 0; i < x.n; i++)
            n += ((const float *)x.data)[i] != 0;
    } else {
        for (i = 0; i < x.n; i++)
            n += ((const double *)x.data)[i] != 0;
    }
    return n;
}

/* Moves the origins to the means of the values that are not 0. */
static inline void rc_moments_center_(rc_moments *m)
{
    int64_t j;
    for (j = 0; j < m->n_features; j++) {
        if (m->weights[j] > 0) {
            const double origin = m->origins[j] + m->sums[j] / m->weights[j];
            const double moved = origin - m->origins[j];
            const double sum = m->sums[j] - m->weights[j] * moved;
            m->squares[j] -= moved * (m->sums[j] + sum);
            m->sums[j] = sum;
            m->origins[j] = origin;
        }
    }
}

/* Adds a row with a weight; a weight of 0 adds nothing. O(values), but O(n_features) at 1, 2, 4,
 * 8, ... rows. */
RC_INLINE_ void rc_moments_add_(rc_moments *m, rc_row x, double weight)
{
    int64_t rows;
    if (!(weight > 0)) {
        return;
    }
    m->totals[0] += 1;
    m->totals[1] += weight;
    m->totals[2] += (double)rc_n_nonzero(x);
    if (x.indices != NULL) {
        rc_add_sparse_(m, x, weight);
    } else if (x.dtype == RC_FLOAT32) {
        rc_add_f32_(m, (const float *)x.data, 0, &weight);
    } else {
        rc_add_f64_(m, (const double *)x.data, 0, &weight);
    }
    rows = (int64_t)m->totals[0];
    if ((rows & (rows - 1)) == 0) {
        rc_moments_center_(m);
    }
}

/* Adds rows; weights may be NULL for 1. */
RC_CLONES_ static void rc_moments_add_rows(rc_moments *m, const rc_rows *X, const double *weights,
                                           int64_t start, int64_t stop)
{
    static const double ones[4] = {1, 1, 1, 1};
    int64_t i = start, k;
    while (i < stop) {
        const double *w = weights == NULL ? ones : weights + i;
        const int64_t rows = (int64_t)m->totals[0];
        /* Origins move between groups of four only: at powers of two. */
        if (X->indices == NULL && rows % 4 == 0 && rows > 0 && i + 4 <= stop && w[0] > 0 &&
            w[1] > 0 && w[2] > 0 && w[3] > 0) {
            const rc_row x = rc_rows_get(X, i);
            for (k = 0; k < 4; k++) {
                m->totals[0] += 1;
                m->totals[1] += w[k];
                m->totals[2] += (double)rc_n_nonzero(rc_rows_get(X, i + k));
            }
            if (x.dtype == RC_FLOAT32) {
                rc_add_four_f32_(m, (const float *)x.data, X->stride, w);
            } else {
                rc_add_four_f64_(m, (const double *)x.data, X->stride, w);
            }
            if (((rows + 4) & (rows + 3)) == 0) {
                rc_moments_center_(m);
            }
            i += 4;
        } else {
            rc_moments_add_(m, rc_rows_get(X, i), w[0]);
            i++;
        }
    }
}

#endif
