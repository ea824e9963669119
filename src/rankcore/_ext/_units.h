/* Moments of columns, units that follow from them, and large values. Private. */
#ifndef RANKCORE_UNITS_H
#define RANKCORE_UNITS_H

#include <stdint.h>

#include "rankcore.h"

/* Moments of the values that are not 0, see _moments.h. */
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

/* Units of columns: a standardised value is (value - center) * factor. */
typedef struct {
    const double *center;
    const double *factor; /* 1 / deviation */
    const double *blank;  /* the standardised row of zeros: -center * factor */
    int64_t n_features;
} rc_units;

/* Whether a value of a row is farther from 0 than a limit. */
static inline int rc_any_beyond(rc_row x, double limit)
{
    int64_t i;
    int found = 0;
    if (x.dtype == RC_FLOAT32) {
        const float *values = (const float *)x.data;
        for (i = 0; i < x.n; i++) {
            found |= values[i] > limit || values[i] < -limit;
        }
    } else {
        const double *values = (const double *)x.data;
        for (i = 0; i < x.n; i++) {
            found |= values[i] > limit || values[i] < -limit;
        }
    }
    return found;
}

#endif
