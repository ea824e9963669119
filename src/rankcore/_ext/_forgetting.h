/* Weights of examples in averages that forget. Private.
 *
 * Example s weighs a_s = (1 + gain) ** (s - 1), and the lazy sum of a parameter is that of its
 * changes times the weight of the examples before each. With A = a_1 + ... + a_t, the next weight
 * is gain * A + 1, so that A alone is kept. Before it overflows, A and all sums are multiplied by a
 * power of two, which is exact; the 1 is then below the last bit of A. */
#ifndef RANKCORE_FORGETTING_H
#define RANKCORE_FORGETTING_H

/* The largest weight of the examples so far, with which sums of usual changes do not overflow, and
 * the factor beyond it. */
#define RC_MOST_PAST_ 0x1p512
#define RC_FADE_ 0x1p-448

/* Weighs one more example; returns whether all sums must be multiplied by RC_FADE_. */
static inline int rc_outgrown(double *past, double gain)
{
    *past += gain * *past + 1.0;
    if (*past <= RC_MOST_PAST_)
        return 0;
    *past *= RC_FADE_;
    return 1;
}

#endif
