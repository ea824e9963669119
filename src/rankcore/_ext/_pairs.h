/* Scores of a query's documents, and of pairs of documents laid out as doubles. Private. */
#ifndef RANKCORE_PAIRS_H
#define RANKCORE_PAIRS_H

#include "_docs.h"

/* ---------------------------------------------------------------- scores */

/* The lanes are the four partial sums of rc_dot, so that scores are bit-identical; four
 * documents at a time, as each addition depends on the previous one. */
#if defined(__GNUC__)
#define RC_SCORE4_(TYPE, FOUR)                                            \
    do {                                                                  \
        const TYPE *v0 = (const TYPE *)X->data + docs[k] * X->stride;     \
        const TYPE *v1 = (const TYPE *)X->data + docs[k + 1] * X->stride; \
        const TYPE *v2 = (const TYPE *)X->data + docs[k + 2] * X->stride; \
        const TYPE *v3 = (const TYPE *)X->data + docs[k + 3] * X->stride; \
        rc_four s0 = {0.0}, s1 = {0.0}, s2 = {0.0}, s3 = {0.0}, u;        \
        FOUR x0, x1, x2, x3;                                              \
        for (f = 0; f + 4 <= X->n_features; f += 4) {                     \
            RC_LOAD_(u, w + f);                                           \
            RC_LOAD_(x0, v0 + f);                                         \
            RC_LOAD_(x1, v1 + f);                                         \
            RC_LOAD_(x2, v2 + f);                                         \
            RC_LOAD_(x3, v3 + f);                                         \
            s0 += __builtin_convertvector(x0, rc_four) * u;               \
            s1 += __builtin_convertvector(x1, rc_four) * u;               \
            s2 += __builtin_convertvector(x2, rc_four) * u;               \
            s3 += __builtin_convertvector(x3, rc_four) * u;               \
        }                                                                 \
        for (; f < X->n_features; f++) {                                  \
            s0[0] += (double)v0[f] * w[f];                                \
            s1[0] += (double)v1[f] * w[f];                                \
            s2[0] += (double)v2[f] * w[f];                                \
            s3[0] += (double)v3[f] * w[f];                                \
        }                                                                 \
        scores[k] = (s0[0] + s0[2]) + (s0[1] + s0[3]);                    \
        scores[k + 1] = (s1[0] + s1[2]) + (s1[1] + s1[3]);                \
        scores[k + 2] = (s2[0] + s2[2]) + (s2[1] + s2[3]);                \
        scores[k + 3] = (s3[0] + s3[2]) + (s3[1] + s3[3]);                \
    } while (0)
#endif

/* scores[k] = rc_dot of row docs[k] with w, to the bit, for k < n. */
RC_CLONES_ static void rc_score_docs(const rc_rows *X, const int64_t *docs, int64_t n,
                                     const double *w, double *scores)
{
    int64_t k = 0;
#if defined(__GNUC__)
    int64_t f;
    for (; !X->indptr && k + 4 <= n; k += 4) {
        if (X->dtype == RC_FLOAT32)
            RC_SCORE4_(float, rc_four_f32);
        else
            RC_SCORE4_(double, rc_four);
    }
#endif
    for (; k < n; k++)
        scores[k] = rc_dot(rc_rows_get(X, docs[k]), w);
}

/* ---------------------------------------------------------------- visits of unfolded documents */

/* weights += a * (x - y); n a multiple of 8. */
RC_CLONES_ static void rc_add_difference(double *restrict weights, const double *restrict x,
                                         const double *restrict y, double a, int64_t n)
{
    int64_t k;
#if defined(__GNUC__)
    for (k = 0; k < n; k += RC_PANEL) {
        rc_eight w, b, c;
        RC_LOAD_(w, weights + k);
        RC_LOAD_(b, x + k);
        RC_LOAD_(c, y + k);
        w += a * (b - c);
        RC_STORE_(weights + k, w);
    }
#else
    for (k = 0; k < n; k++)
        weights[k] += a * (x[k] - y[k]);
#endif
}

/* Documents as doubles, `width` apart: a multiple of 8, with zeros behind the last feature. Values
 * are multiplied by `scale`, unless it is NULL. */
RC_CLONES_ static void rc_unfold_docs(const rc_rows *X, const int64_t *docs, int64_t n,
                                      const double *scale, int64_t width, double *unfolded)
{
    int64_t k, f;
    for (k = 0; k < n; k++, unfolded += width) {
        for (f = 0; f < X->n_features; f++)
            unfolded[f] = X->dtype == RC_FLOAT32
                              ? (double)((const float *)X->data)[docs[k] * X->stride + f]
                              : ((const double *)X->data)[docs[k] * X->stride + f];
        for (; f < width; f++)
            unfolded[f] = 0.0;
        if (scale)
            for (f = 0; f < X->n_features; f++)
                unfolded[f] *= scale[f];
    }
}

/* w += a * factors * x, for each column of x. */
RC_CLONES_ static void rc_add_scaled(rc_row x, double a, const double *restrict factors,
                                     double *restrict w)
{
    int64_t k;
    for (k = 0; k < x.n; k++) {
        const int64_t f = x.indices ? x.indices[k] : k;
        const double value = x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[k]
                                                   : ((const double *)x.data)[k];
        w[f] += a * value * factors[f];
    }
}

/* Returns the first of the pairs at .. stop - 1 whose difference of scores is not above the margin;
 * `stop` if there is none. Eight partial sums, added in pairs. */
RC_CLONES_ static int64_t rc_next_wrong(const double *unfolded, int64_t width,
                                        const double *weights, const int32_t *winners,
                                        const int32_t *losers, int64_t at, int64_t stop,
                                        double margin)
{
    for (; at < stop; at++) {
        const double *x = unfolded + winners[at] * width, *y = unfolded + losers[at] * width;
        double sums[RC_PANEL] = {0.0};
        int64_t f;
#if defined(__GNUC__)
        rc_eight sum = {0.0};
        for (f = 0; f < width; f += RC_PANEL) {
            rc_eight w, a, b;
            RC_LOAD_(w, weights + f);
            RC_LOAD_(a, x + f);
            RC_LOAD_(b, y + f);
            sum += w * (a - b);
        }
        RC_STORE_(sums, sum);
#else
        for (f = 0; f < width; f++)
            sums[f % RC_PANEL] += weights[f] * (x[f] - y[f]);
#endif
        if (!(((sums[0] + sums[4]) + (sums[2] + sums[6])) +
                  ((sums[1] + sums[5]) + (sums[3] + sums[7])) >
              margin))
            return at;
    }
    return stop;
}

#endif /* RANKCORE_PAIRS_H */
