/* Large values. Private. */
#ifndef RANKCORE_BEYOND_H
#define RANKCORE_BEYOND_H

#include "rankcore.h"
#include "rankcore_vectors.h"

/* Whether a value of a row is farther from 0 than a limit. */
RC_CLONES_ static int rc_any_beyond(rc_row x, double limit)
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
