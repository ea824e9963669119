/* Rows in the units of a model. Private. */
#ifndef RANKCORE_STANDARDIZED_H
#define RANKCORE_STANDARDIZED_H

#include <string.h>

#include "_units.h"
#include "rankcore_vectors.h"

/* Writes a standardised row, dense, to out. O(n_features). */
RC_CLONES_ static void rc_standardize_(const rc_units *u, rc_row x, double *restrict out)
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

/* The same; returns the standardised row. */
static inline rc_row rc_standardized(const rc_units *u, rc_row x, double *out)
{
    const rc_row row = {out, NULL, u->n_features, RC_FLOAT64};
    rc_standardize_(u, x, out);
    return row;
}

#endif
