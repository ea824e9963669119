/* Rows times numbers, rounded to integers. Private.
 *
 * In C for vectorisation: few CPUs have an instruction for conversion to 64-bit integers, and
 * rint is a call. A number is rounded in two steps, each of which adds a constant whose last bit
 * has the value of the rounding unit, and takes the integer from the bits of the sum. */
#ifndef RANKCORE_EXACT_SUMS_H
#define RANKCORE_EXACT_SUMS_H

#include <stdint.h>
#include <string.h>

#include "rankcore.h"

#include "rankcore_vectors.h"

/* 1.5 * 2**62 and 1.5 * 2**52: the last bits of sums with them are worth 2**10 and 1. */
#define RC_COARSE_ 6917529027641081856.0
#define RC_FINE_ 6755399441055744.0

static inline int64_t rc_difference_of_bits_(double a, double b)
{
    int64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x - y;
}

/* The integer nearest to x, halves to even, for |x| <= 2**61. The first sum rounds x to a
 * multiple of 2**10, the difference is exact, and the second rounds the remainder. */
static inline int64_t rc_nearest(double x)
{
    const double coarse = x + RC_COARSE_, left = x - (coarse - RC_COARSE_);
    return rc_difference_of_bits_(coarse, RC_COARSE_) * 1024 +
           rc_difference_of_bits_(left + RC_FINE_, RC_FINE_);
}

#define RC_ADD_NEAREST_(TYPE)                                          \
    do {                                                               \
        const TYPE *v = (const TYPE *)x.data;                          \
        if (x.indices)                                                 \
            for (f = 0; f < x.n; f++) {                                \
                const int64_t at = x.indices[f];                       \
                sums[at] += rc_nearest(by * (double)v[f] * scale[at]); \
            }                                                          \
        else                                                           \
            for (f = 0; f < x.n; f++)                                  \
                sums[f] += rc_nearest(by * (double)v[f] * scale[f]);   \
    } while (0)

/* sums[f] += by * x[f] * scale[f], rounded. */
RC_CLONES_ static void rc_add_nearest(rc_row x, double by, const double *restrict scale,
                                      int64_t *restrict sums)
{
    int64_t f;
    if (x.dtype == RC_FLOAT32)
        RC_ADD_NEAREST_(float);
    else
        RC_ADD_NEAREST_(double);
}

#endif /* RANKCORE_EXACT_SUMS_H */
