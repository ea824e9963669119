/* Gram matrices of a query's documents, and visits that keep all its scores current. Private. */
#ifndef RANKCORE_GRAM_H
#define RANKCORE_GRAM_H

#include "_docs.h"
#include "_forgetting.h"

/* ---------------------------------------------------------------- Gram matrices */

/* Puts columns first .. first + depth - 1 of the documents into panels: value f of document
 * p * 8 + j at panels[(p * depth + f) * 8 + j], zeros for documents beyond the last. The first
 * document is subtracted, which changes no difference of scores, so that columns far from 0 lose no
 * digits. Values are multiplied by `scale`, unless it is NULL. */
RC_CLONES_ static void rc_pack_docs(const rc_rows *X, const int64_t *docs, int64_t n,
                                    const double *scale, int64_t first, int64_t depth,
                                    double *panels)
{
    int64_t k, f, j;
    for (k = 0; k < (n + RC_PANEL - 1) / RC_PANEL * RC_PANEL; k++) {
        double *to = panels + k / RC_PANEL * depth * RC_PANEL + k % RC_PANEL;
        const int64_t row = first + (k < n ? docs[k] : docs[0]) * X->stride;
        const int64_t origin = first + docs[0] * X->stride;
        if (k >= n) {
            for (f = 0; f < depth; f++)
                to[f * RC_PANEL] = 0.0;
        } else if (X->dtype == RC_FLOAT32) {
            const float *v = (const float *)X->data + row, *o = (const float *)X->data + origin;
            for (f = 0; f < depth; f++)
                to[f * RC_PANEL] = (double)v[f] - (double)o[f];
        } else {
            const double *v = (const double *)X->data + row, *o = (const double *)X->data + origin;
            for (f = 0; f < depth; f++)
                to[f * RC_PANEL] = v[f] - o[f];
        }
    }
    if (scale)
        for (k = 0; k < (n + RC_PANEL - 1) / RC_PANEL; k++)
            for (f = 0; f < depth; f++, panels += RC_PANEL)
                for (j = 0; j < RC_PANEL; j++)
                    panels[j] *= scale[first + f];
}

/* Adds to a 4 x 8 tile of G the products of four documents of one panel with eight of another. */
RC_INLINE_ void rc_gram_tile_(const double *left, const double *right, int64_t depth, double *G,
                              int64_t stride)
{
    int64_t f;
#if defined(__GNUC__)
    rc_eight s0, s1, s2, s3, b;
    RC_LOAD_(s0, G);
    RC_LOAD_(s1, G + stride);
    RC_LOAD_(s2, G + 2 * stride);
    RC_LOAD_(s3, G + 3 * stride);
    for (f = 0; f < depth; f++, left += RC_PANEL, right += RC_PANEL) {
        RC_LOAD_(b, right);
        s0 += left[0] * b;
        s1 += left[1] * b;
        s2 += left[2] * b;
        s3 += left[3] * b;
    }
    RC_STORE_(G, s0);
    RC_STORE_(G + stride, s1);
    RC_STORE_(G + 2 * stride, s2);
    RC_STORE_(G + 3 * stride, s3);
#else
    int i, j;
    for (f = 0; f < depth; f++)
        for (i = 0; i < 4; i++)
            for (j = 0; j < RC_PANEL; j++)
                G[i * stride + j] += left[f * RC_PANEL + i] * right[f * RC_PANEL + j];
#endif
}

/* Adds the products of the documents of panel p with those of panels p and on to G, n_padded a
 * multiple of 8. */
RC_CLONES_ static void rc_gram_panel(const double *panels, int64_t p, int64_t n_padded,
                                     int64_t depth, double *G)
{
    const int64_t n_panels = n_padded / RC_PANEL, size = depth * RC_PANEL;
    int64_t q;
    for (q = p; q < n_panels; q++) {
        double *tile = G + p * RC_PANEL * n_padded + q * RC_PANEL;
        rc_gram_tile_(panels + p * size, panels + q * size, depth, tile, n_padded);
        rc_gram_tile_(panels + p * size + 4, panels + q * size, depth, tile + 4 * n_padded,
                      n_padded);
    }
}

/* Copies the rows of panel p, from its own columns on, to the columns. */
static void rc_mirror_panel(double *G, int64_t p, int64_t n_padded)
{
    int64_t i, j, q;
    for (q = p * RC_PANEL; q < n_padded; q += RC_PANEL)
        for (i = p * RC_PANEL; i < (p + 1) * RC_PANEL; i++)
            for (j = q; j < q + RC_PANEL; j++)
                G[j * n_padded + i] = G[i * n_padded + j];
}

/* Returns the first document from j on with a lower label whose score exceeds `score` or is within
 * the margin of it; n_padded if there is none. Adds to `passed` the number of documents with a
 * lower label before it. Scores and labels are padded, the labels with +inf. */
RC_INLINE_ int64_t rc_next_violation_(const double *scores, const double *labels, int64_t j,
                                      int64_t n_padded, double score, double label, double margin,
                                      int64_t *passed)
{
#if defined(__GNUC__)
    int64_t base = j - j % RC_PANEL, seen = -1; /* a bit for each document that counts */
    seen = (int64_t)((uint64_t)seen << (j - base));
    for (; base < n_padded; base += 32, seen = -1) {
        rc_four_flags lower = {0}, wrong = {0}, bits = {1, 2, 4, 8};
        int64_t k, bad, all;
        rc_four s, l;
        for (k = base; k < n_padded && k < base + 32; k += 4, bits <<= 4) {
            rc_four_flags here;
            RC_LOAD_(s, scores + k);
            RC_LOAD_(l, labels + k);
            here = (l < label) & bits;
            lower |= here;
            wrong |= (score - s <= margin) & here;
        }
        bad = (wrong[0] | wrong[1] | wrong[2] | wrong[3]) & seen;
        all = (lower[0] | lower[1] | lower[2] | lower[3]) & seen;
        if (bad) {
            all &= (bad & -bad) - 1;
            *passed += __builtin_popcountll((uint64_t)all);
            return base + __builtin_ctzll((uint64_t)bad);
        }
        *passed += __builtin_popcountll((uint64_t)all);
    }
#else
    for (; j < n_padded; j++)
        if (labels[j] < label) {
            if (score - scores[j] <= margin)
                return j;
            ++*passed;
        }
#endif
    return n_padded;
}

/* ---------------------------------------------------------------- visits with a Gram matrix */

/* Bytes that the next visit will read, prefetched gradually: the order of rows of a Gram matrix
 * is not predictable for the CPU. */
typedef struct rc_ahead {
    const char *next;
    const char *stop;
} rc_ahead;

RC_INLINE_ void rc_ask_ahead_(rc_ahead *ahead)
{
#if defined(__GNUC__)
    int line;
    if (ahead->next < ahead->stop) {
        for (line = 0; line < RC_LINES; line++)
            __builtin_prefetch((const void *)((uintptr_t)ahead->next + 64 * (uintptr_t)line), 0, 2);
        ahead->next +=
            ahead->stop - ahead->next < 64 * RC_LINES ? ahead->stop - ahead->next : 64 * RC_LINES;
    }
#else
    (void)ahead;
#endif
}

/* A query with current scores, and counters: see rc_pair_state. */
typedef struct rc_gram_visit {
    double *scores;  /* padded */
    const double *G; /* padded * padded */
    int64_t padded;  /* documents, a multiple of 8 */
    double *alpha;   /* steps of each document in this visit */
    double *beta;    /* the same times the successes before each */
    double margin;
    double streak;
    double total;
    double unit;
    double gain;
    double past;
    int64_t faded; /* how often sums are to be multiplied by RC_FADE_ */
    int64_t run;
    int64_t right;
    int64_t mistakes;   /* in this visit */
    double judge_above; /* a hypothesis with more successes is first judged by the caller */
    int32_t judged;     /* whether the current hypothesis was judged */
    rc_ahead gram_ahead;
    rc_ahead rows_ahead;
} rc_gram_visit;

/* Counts successes, then ends the hypothesis after a mistake on documents i and j; returns 0 if
 * the caller has to evaluate it first. */
RC_INLINE_ int rc_gram_mistake_(rc_gram_visit *v, int64_t i, int64_t j, double step)
{
    const double *g = v->G + i * v->padded, *h = v->G + j * v->padded;
    const double present = v->streak + (double)v->run * v->unit;
    double *scores = v->scores, before;
    int64_t k;
    if (!v->judged && present > v->judge_above)
        return 0;
#if defined(__GNUC__)
    for (k = 0; k < v->padded; k += RC_PANEL) {
        rc_eight s, x, y;
        RC_LOAD_(s, scores + k);
        RC_LOAD_(x, g + k);
        RC_LOAD_(y, h + k);
        s += step * (x - y);
        RC_STORE_(scores + k, s);
    }
#else
    for (k = 0; k < v->padded; k++)
        scores[k] += step * (g[k] - h[k]);
#endif
    rc_ask_ahead_(&v->gram_ahead);
    rc_ask_ahead_(&v->rows_ahead);
    if (v->gain > 0) {
        v->total += (v->gain * v->past + 1.0) * present;
        before = v->total * step;
    } else
        before = (v->total + (double)v->right * v->unit) * step;
    v->alpha[i] += step;
    v->alpha[j] -= step;
    v->beta[i] += before;
    v->beta[j] -= before;
    if (v->gain > 0 && rc_outgrown(&v->past, v->gain)) {
        v->total *= RC_FADE_;
        v->faded++;
        for (k = 0; k < v->padded; k++)
            v->beta[k] *= RC_FADE_;
    }
    v->streak = 0.0;
    v->run = 0;
    v->judged = 0;
    v->mistakes++;
    return 1;
}

/* Visits the listed pairs from `at` on; returns `stop`, or the pair whose mistake awaits an
 * evaluation. */
RC_CLONES_ static int64_t rc_gram_batch(rc_gram_visit *visit, const int32_t *winners,
                                        const int32_t *losers, const double *steps, double eta,
                                        int64_t at, int64_t stop)
{
    rc_gram_visit v = *visit; /* a copy: stores to scores cannot alias its counters */
    for (;;) {
        const int64_t from = at;
        while (at < stop && v.scores[winners[at]] - v.scores[losers[at]] > v.margin)
            at++;
        v.run += at - from;
        v.right += at - from;
        if (at == stop || !rc_gram_mistake_(&v, winners[at], losers[at], steps ? steps[at] : eta))
            break;
        at++;
    }
    *visit = v;
    return at;
}

/* Visits the pairs of winner i with the documents from j on, in order; returns the padded number
 * of documents, or the loser of the pair whose mistake awaits an evaluation. Adds the number of
 * visited pairs to `seen`. `labels` are padded with +inf, weights of documents may be NULL. */
RC_CLONES_ static int64_t rc_gram_scan(rc_gram_visit *visit, const double *labels,
                                       const double *weights, double eta, int64_t i, int64_t j,
                                       int64_t *seen)
{
    rc_gram_visit v = *visit;
    for (;;) {
        int64_t passed = 0;
        j = rc_next_violation_(v.scores, labels, j, v.padded, v.scores[i], labels[i], v.margin,
                               &passed);
        v.run += passed;
        v.right += passed;
        *seen += passed;
        if (j == v.padded ||
            !rc_gram_mistake_(&v, i, j, weights ? eta * (weights[i] * weights[j]) : eta))
            break;
        j++;
        ++*seen;
    }
    *visit = v;
    return j;
}

#endif /* RANKCORE_GRAM_H */
