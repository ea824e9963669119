/* Many models side by side: their scores and updates in vector lanes. Private.
 *
 * Weight j of a column is at weights[column * stride + j]. Lanes are handled in blocks of four
 * neighbours; `lanes` lists the ones that matter, ascending, and the blocks without any are
 * skipped. The sums are formed in the order of rc_dot: each lane gets, to the bit, the score that
 * rc_dot gives its model.
 */
#ifndef RANKCORE_LANES_H
#define RANKCORE_LANES_H

#include "rankcore.h"

#include "_clones.h"

/* In clones: scoring a tile of eight then takes 1.4 instead of 2.4 ns a non-zero. Wider registers
 * change no sum. */
RC_INLINE_ double rc_value_(rc_row x, int64_t i)
{
    return x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i] : ((const double *)x.data)[i];
}

RC_INLINE_ int64_t rc_column_(rc_row x, int64_t i) { return x.indices ? x.indices[i] : i; }

/* Scores of `width` neighbouring lanes. A constant width of 4 keeps the four partial sums of each
 * in vector registers. */
RC_INLINE_ void rc_lane_block_(rc_row x, const double *weights, int64_t stride, const int width,
                               double *scores)
{
    double s0[4] = {0.0}, s1[4] = {0.0}, s2[4] = {0.0}, s3[4] = {0.0};
    int64_t i;
    int j;
    for (i = 0; i + 4 <= x.n; i += 4) {
        const double *w0 = weights + rc_column_(x, i) * stride;
        const double *w1 = weights + rc_column_(x, i + 1) * stride;
        const double *w2 = weights + rc_column_(x, i + 2) * stride;
        const double *w3 = weights + rc_column_(x, i + 3) * stride;
        const double v0 = rc_value_(x, i), v1 = rc_value_(x, i + 1);
        const double v2 = rc_value_(x, i + 2), v3 = rc_value_(x, i + 3);
        for (j = 0; j < width; j++) {
            s0[j] += v0 * w0[j];
            s1[j] += v1 * w1[j];
            s2[j] += v2 * w2[j];
            s3[j] += v3 * w3[j];
        }
    }
    for (; i < x.n; i++) {
        const double *w = weights + rc_column_(x, i) * stride;
        const double v = rc_value_(x, i);
        for (j = 0; j < width; j++)
            s0[j] += v * w[j];
    }
    for (j = 0; j < width; j++)
        scores[j] = (s0[j] + s2[j]) + (s1[j] + s3[j]);
}

/* Writes the scores of at least the n lanes listed; scores[j] is lane j's. The stride is a
 * multiple of 4, or 1. */
RC_CLONES_ static void rc_lane_scores(rc_row x, const double *weights, int64_t stride,
                                      const int32_t *lanes, int64_t n, double *scores)
{
    int64_t r, block = -1;
    if (stride > 1 && n > 1 && x.n < 32) { /* a block costs less than a mispredicted branch */
        for (block = 0; block < stride / 4; block++)
            rc_lane_block_(x, weights + 4 * block, stride, 4, scores + 4 * block);
        return;
    }
    for (r = 0; r < n; r++) {
        if (stride == 1) {
            rc_lane_block_(x, weights, 1, 1, scores);
        } else if (lanes[r] / 4 != block) {
            block = lanes[r] / 4;
            rc_lane_block_(x, weights + 4 * block, stride, 4, scores + 4 * block);
        }
    }
}

/* weights of lane lanes[r] += values[r] * x, for r < n. Its neighbours get a zero added, which
 * changes no number: no weight is ever -0. */
RC_CLONES_ static void rc_lane_axpys(rc_row x, const double *values, const int32_t *lanes,
                                     int64_t n, double *weights, int64_t stride)
{
    int64_t i, r = 0;
    int j;
    while (r < n) {
        const int64_t block = lanes[r] / 4;
        double *w = weights + 4 * block;
        double a[4] = {0.0, 0.0, 0.0, 0.0};
        for (; r < n && lanes[r] / 4 == block; r++)
            a[lanes[r] % 4] = values[r];
        for (i = 0; i < x.n; i++) {
            double *wi = w + rc_column_(x, i) * stride;
            const double v = rc_value_(x, i);
            for (j = 0; j < 4; j++)
                wi[j] += a[j] * v;
        }
    }
}

#endif /* RANKCORE_LANES_H */
