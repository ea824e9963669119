/* Weighted moments of the values of columns that are not 0, and standardised rows. Private.
 *
 * Sums are of differences from an origin, the first value of a column that is not 0, which moves
 * to the mean whenever the number of rows is a power of two. So they lose no digits to a mean that
 * is far from 0, need no division for a value, and depend on the order of rows alone: dense rows
 * and CSR add the same numbers. */
#ifndef RANKCORE_MOMENTS_H
#define RANKCORE_MOMENTS_H

#include <stdint.h>
#include <string.h>

#include "rankcore.h"
#include "rankcore_vectors.h"

typedef struct {
    /* (n_features,): weight of the values that are not 0, the origin, and their weighted sums of
     * differences from it and of the squares of these. */
    double *weights;
    double *origins;
    double *sums;
    double *squares;
    /* (3,): rows, their total weight, and their values that are not 0. */
    double *totals;
    int64_t n_features;
} rc_moments;

/* Adds n values at columns, NULL for 0 .. n - 1; returns how many are not 0. */
#define RC_ADD_VALUES_(name, real)                                                               \
    RC_INLINE_ double name(rc_moments *m, const real *values, const int32_t *columns, int64_t n, \
                           double weight)                                                        \
    {                                                                                            \
        double *restrict weights = m->weights, *restrict origins = m->origins;                   \
        double *restrict sums = m->sums, *restrict squares = m->squares;                         \
        double nonzero = 0;                                                                      \
        int64_t i;                                                                               \
        if (columns == NULL) {                                                                   \
            for (i = 0; i < n; i++) {                                                            \
                const double x = (double)values[i], before = weights[i], old = origins[i];       \
                const double origin = before > 0 ? old : x, d = x - origin;                      \
                const double w = x != 0 ? weight : 0, wd = w * d;                                \
                weights[i] = before + w;                                                         \
                origins[i] = origin;                                                             \
                sums[i] += wd;                                                                   \
                squares[i] += wd * d;                                                            \
            }                                                                                    \
            for (i = 0; i < n; i++) {                                                            \
                nonzero += values[i] != 0;                                                       \
            }                                                                                    \
            return nonzero;                                                                      \
        }                                                                                        \
        for (i = 0; i < n; i++) {                                                                \
            const double x = (double)values[i];                                                  \
            const int32_t j = columns[i];                                                        \
            if (x != 0) {                                                                        \
                const double origin = weights[j] > 0 ? origins[j] : x, d = x - origin;           \
                weights[j] += weight;                                                            \
                origins[j] = origin;                                                             \
                sums[j] += weight * d;                                                           \
                squares[j] += weight * d * d;                                                    \
                nonzero++;                                                                       \
            }                                                                                    \
        }                                                                                        \
        return nonzero;                                                                          \
    }

RC_ADD_VALUES_(rc_add_f64_, double)
RC_ADD_VALUES_(rc_add_f32_, float)

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
    m->totals[2] += x.dtype == RC_FLOAT32
                        ? rc_add_f32_(m, (const float *)x.data, x.indices, x.n, weight)
                        : rc_add_f64_(m, (const double *)x.data, x.indices, x.n, weight);
    rows = (int64_t)m->totals[0];
    if ((rows & (rows - 1)) == 0) {
        rc_moments_center_(m);
    }
}

/* Adds rows; weights may be NULL for 1. */
RC_CLONES_ static void rc_moments_add_rows(rc_moments *m, const rc_rows *X, const double *weights,
                                           int64_t start, int64_t stop)
{
    int64_t i;
    for (i = start; i < stop; i++) {
        rc_moments_add_(m, rc_rows_get(X, i), weights == NULL ? 1 : weights[i]);
    }
}

/* Adds one row. */
static inline void rc_moments_add(rc_moments *m, rc_row x, double weight)
{
    rc_moments_add_(m, x, weight);
}

/* Units of columns: a standardised value is (value - center) * factor. */
typedef struct {
    const double *center;
    const double *factor; /* 1 / deviation */
    const double *blank;  /* the standardised row of zeros: -center * factor */
    int64_t n_features;
} rc_units;

/* Writes a standardised row, dense, to out, and returns it. O(n_features). */
static inline rc_row rc_standardized(const rc_units *u, rc_row x, double *restrict out)
{
    const double *restrict center = u->center, *restrict factor = u->factor;
    const rc_row row = {out, NULL, u->n_features, RC_FLOAT64};
    int64_t i;
    if (x.indices != NULL) {
        memcpy(out, u->blank, (size_t)u->n_features * sizeof(double));
        for (i = 0; i < x.n; i++) {
            const int32_t j = x.indices[i];
            const double value = x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                                       : ((const double *)x.data)[i];
            out[j] = (value - center[j]) * factor[j];
        }
    } else if (x.dtype == RC_FLOAT32) {
        const float *restrict values = (const float *)x.data;
        for (i = 0; i < x.n; i++) {
            out[i] = ((double)values[i] - center[i]) * factor[i];
        }
    } else {
        const double *restrict values = (const double *)x.data;
        for (i = 0; i < x.n; i++) {
            out[i] = (values[i] - center[i]) * factor[i];
        }
    }
    return row;
}

#endif
