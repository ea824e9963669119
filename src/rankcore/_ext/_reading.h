/* One pass over input values: their maximum magnitude and the sum of their squares. Private.
 *
 * The sum is NaN or infinite if a value is, so that it also shows whether all are finite, unless
 * squares overflow. Always eight partial sums, so that the result is the same on every
 * processor. */
#ifndef RANKCORE_READING_H
#define RANKCORE_READING_H

#include <math.h>
#include <stdint.h>

/* glibc's headers define what _clones.h requires, so they come first. */
#include "rankcore_vectors.h"

typedef struct {
    double largest; /* in, out: maximum magnitude; NaN is ignored */
    double squares; /* in, out: sum of squares */
} rc_reading;

RC_INLINE_ void rc_read_one_(rc_reading *r, double x)
{
    const double size = fabs(x);
    r->largest = size > r->largest ? size : r->largest;
    r->squares += x * x;
}

#if defined(__GNUC__)
typedef int64_t rc_four_bits_ __attribute__((vector_size(32)));

/* Four lanes of maxima m and of sums s take four values. A macro, as ABIs differ for vector
 * arguments. */
#define RC_READ_FOUR_(v, m, s)                                             \
    do {                                                                   \
        const rc_four_bits_ size_ = (rc_four_bits_)(v) & magnitude;        \
        const rc_four_bits_ more_ = (rc_four_bits_)((rc_four)size_ > (m)); \
        (m) = (rc_four)((size_ & more_) | ((rc_four_bits_)(m) & ~more_));  \
        (s) += (v) * (v);                                                  \
    } while (0)

/* Reads eight at a time; LOAD sets v and w to those from i on. */
#define RC_READ_(LOAD)                                                \
    do {                                                              \
        const int64_t mask_ = INT64_MAX;                              \
        const rc_four_bits_ magnitude = {mask_, mask_, mask_, mask_}; \
        rc_four m0 = {0, 0, 0, 0}, m1 = m0, s0 = m0, s1 = m0, v, w;   \
        for (; i + 8 <= n; i += 8) {                                  \
            LOAD;                                                     \
            RC_READ_FOUR_(v, m0, s0);                                 \
            RC_READ_FOUR_(w, m1, s1);                                 \
        }                                                             \
        for (k = 0; k < 4; k++) {                                     \
            r->largest = m0[k] > r->largest ? m0[k] : r->largest;     \
            r->largest = m1[k] > r->largest ? m1[k] : r->largest;     \
            r->squares += s0[k] + s1[k];                              \
        }                                                             \
    } while (0)
#endif

RC_CLONES_ static void rc_read_f64(const double *x, int64_t n, rc_reading *r)
{
    int64_t i = 0;
#if defined(__GNUC__)
    int k;
    if (n >= 8)
        RC_READ_(RC_LOAD_(v, x + i); RC_LOAD_(w, x + i + 4));
#endif
    for (; i < n; i++)
        rc_read_one_(r, x[i]);
}

RC_CLONES_ static void rc_read_f32(const float *x, int64_t n, rc_reading *r)
{
    int64_t i = 0;
#if defined(__GNUC__)
    int k;
    rc_four_f32 a, b;
    if (n >= 8)
        RC_READ_(RC_LOAD_(a, x + i); RC_LOAD_(b, x + i + 4);
                 v = __builtin_convertvector(a, rc_four); w = __builtin_convertvector(b, rc_four));
#endif
    for (; i < n; i++)
        rc_read_one_(r, x[i]);
}

#endif /* RANKCORE_READING_H */
