/* Moments of columns, and units that follow from them. Private. */
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

#endif
