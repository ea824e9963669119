/* Large values. Private. */
#ifndef RANKCORE_BEYOND_H
#define RANKCORE_BEYOND_H

#include <math.h>

#include "rankcore.h"
#include "rankcore_vectors.h"

/* Whether a value of a row is farther from 0 than a limit. The flags have the width of the values,
 * and no branch, so that the loops are vectorised. */
RC_CLONES_ static int rc_any_beyond(const rc_row *x, double limit)
{
    int64_t i, found = 0;
    if (x->dtype == RC_FLOAT32) {
        const float *values = (const float *)x->data;
        for (i = 0; i < x->n; i++) {
            found |= fabs((double)values[i]) > limit;
        }
    } else {
        const double *values = (const double *)x->data;
        for (i = 0; i < x->n; i++) {
            found |= fabs(values[i]) > limit;
        }
    }
    return found != 0;
}

#endif
