/* Rows in the units of a model. Private. */
#ifndef RANKCORE_STANDARDIZED_H
#define RANKCORE_STANDARDIZED_H

#include <string.h>

#include "_units.h"
#include "rankcore_vectors.h"

/* Writes a standardised row, dense, to out. O(n_features). */
RC_INLINE_ void rc_standardize_(const rc_units *u, rc_row x, double *restrict out)
{
    const double *restrict center = u->center, *restrict factor = u->factor;
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
}

/* Writes some rows, one after the other. */
RC_CLONES_ static inline void rc_standardize_rows(const rc_units *u, const rc_rows *X,
                                                  int64_t start, int64_t stop, double *out)
{
    int64_t i;
    for (i = start; i < stop; i++, out += u->n_features) {
        rc_standardize_(u, rc_rows_get(X, i), out);
    }
}

RC_CLONES_ static void rc_standardize_one_(const rc_units *u, const rc_row *x, double *out)
{
    rc_standardize_(u, *x, out);
}

/* Writes a row, and returns the standardised one. */
static inline rc_row rc_standardized(const rc_units *u, rc_row x, double *out)
{
    const rc_row row = {out, NULL, u->n_features, RC_FLOAT64};
    rc_standardize_one_(u, &x, out);
    return row;
}

#endif
