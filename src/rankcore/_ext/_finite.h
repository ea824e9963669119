/* Check for finite contiguous numbers, used by all measures. Private. */
#ifndef RANKCORE_FINITE_H
#define RANKCORE_FINITE_H

#include <stdint.h>
#include <string.h>

/* glibc's headers define what _clones.h requires, so they come first. */
#include "rankcore_vectors.h"

/* Returns whether no number is NaN or infinite: these have every bit of the exponent set. */
RC_CLONES_ static int rc_all_finite(const double *x, int64_t n)
{
    const uint64_t exponent = UINT64_C(0x7ff0000000000000);
    uint64_t odd = 0;
    int64_t i;
    for (i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, x + i, sizeof bits);
        odd |= (uint64_t)((bits & exponent) == exponent);
    }
    return !odd;
}

#endif /* RANKCORE_FINITE_H */
