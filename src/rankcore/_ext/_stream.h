/* Scores of rows in main memory rather than in a cache. Private. */
#ifndef RANKCORE_STREAM_H
#define RANKCORE_STREAM_H

#include "_docs.h"

#if defined(__GNUC__)
#define RC_STREAM_(TYPE, EIGHT)                                                        \
    do {                                                                               \
        const TYPE *v = (const TYPE *)X->data + docs[k] * X->stride;                   \
        rc_eight s = {0.0}, t = {0.0}, u;                                              \
        EIGHT x;                                                                       \
        for (f = 0; f + 16 <= X->n_features; f += 16) {                                \
            RC_LOAD_(u, w + f);                                                        \
            RC_LOAD_(x, v + f);                                                        \
            s += __builtin_convertvector(x, rc_eight) * u;                             \
            RC_LOAD_(u, w + f + 8);                                                    \
            RC_LOAD_(x, v + f + 8);                                                    \
            t += __builtin_convertvector(x, rc_eight) * u;                             \
        }                                                                              \
        s += t;                                                                        \
        for (; f < X->n_features; f++)                                                 \
            s[f % 8] += (double)v[f] * w[f];                                           \
        scores[k] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])); \
    } while (0)
#endif

/* scores[k] = row docs[k] times w, for k < n. Dense rows one after the other, in sixteen partial
 * sums: memory is read in order, which is twice as fast as four rows at a time (rc_score_docs, for
 * rows in a cache). O(values). */
RC_CLONES_ static void rc_stream_docs(const rc_rows *X, const int64_t *docs, int64_t n,
                                      const double *w, double *scores)
{
    int64_t k;
    for (k = 0; k < n; k++) {
#if defined(__GNUC__)
        int64_t f;
        if (!X->indptr) {
            if (X->dtype == RC_FLOAT32)
                RC_STREAM_(float, rc_eight_f32);
            else
                RC_STREAM_(double, rc_eight);
            continue;
        }
#endif
        scores[k] = rc_dot(rc_rows_get(X, docs[k]), w);
    }
}

#endif /* RANKCORE_STREAM_H */
