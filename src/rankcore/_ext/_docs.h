/* Numbers in vector lanes, and sums of listed rows. Private.
 *
 * Sums are formed in the order documented here and in rankcore.h, so that a model is
 * bit-identical on every CPU: lanes hold separate partial sums.
 */
#ifndef RANKCORE_DOCS_H
#define RANKCORE_DOCS_H

#include "rankcore.h"

#include "rankcore_vectors.h"

/* Documents are padded to panels of 8; pairs come in batches. */
enum { RC_PANEL = 8, RC_DEPTH = 256, RC_BATCH = 256, RC_LINES = 8 };

#define RC_ADD4_(TYPE)                                                                   \
    do {                                                                                 \
        const TYPE *a = (const TYPE *)X->data + docs[k] * X->stride;                     \
        const TYPE *b = (const TYPE *)X->data + docs[k + 1] * X->stride;                 \
        const TYPE *c = (const TYPE *)X->data + docs[k + 2] * X->stride;                 \
        const TYPE *d = (const TYPE *)X->data + docs[k + 3] * X->stride;                 \
        const double p = by[k], q = by[k + 1], r = by[k + 2], s = by[k + 3];             \
        for (f = 0; f < X->n_features; f++)                                              \
            w[f] = (((w[f] + p * (double)a[f]) + q * (double)b[f]) + r * (double)c[f]) + \
                   s * (double)d[f];                                                     \
    } while (0)

/* w += by[k] * row docs[k], for k < n in this order; rows with a factor of 0 are skipped. */
RC_CLONES_ static void rc_add_docs(const rc_rows *X, const int64_t *docs, const double *by,
                                   int64_t n, double *restrict w)
{
    int64_t k = 0, f;
    while (k < n) {
        if (X->indptr == NULL && k + 4 <= n) { /* adding a zero changes no bit but the sign of 0 */
            if (X->dtype == RC_FLOAT32)
                RC_ADD4_(float);
            else
                RC_ADD4_(double);
            k += 4;
        } else {
            if (by[k] != 0.0)
                rc_axpy(rc_rows_get(X, docs[k]), by[k], w);
            k++;
        }
    }
}

#endif /* RANKCORE_DOCS_H */
