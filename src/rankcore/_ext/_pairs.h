/* The loops of the pairwise perceptrons that run in vector lanes, and the order of pairs. Private.
 *
 * Every sum is formed in an order that is written down here and in rankcore.h, so that a model is
 * the same to the bit on every CPU: the lanes hold sums that are apart anyway.
 */
#ifndef RANKCORE_PAIRS_H
#define RANKCORE_PAIRS_H

#include "_docs.h"

enum { RC_PANEL = 8, RC_DEPTH = 256, RC_BATCH = 256, RC_LINES = 8 };

/* ---------------------------------------------------------------- scores */

/* The four partial sums of rc_dot are the lanes, so the score has its bits; four documents at a
 * time, because each addition waits for the one before it. */
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
RC_WIDE_ static void rc_score_docs(const rc_rows *X, const int64_t *docs, int64_t n,
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

/* ---------------------------------------------------------------- Gram matrices */

/* Puts columns first .. first + depth - 1 of the documents into panels: value f of document
 * p * 8 + j at panels[(p * depth + f) * 8 + j], zeros for documents beyond the last. */
RC_WIDE_ static void rc_pack_docs(const rc_rows *X, const int64_t *docs, int64_t n, int64_t first,
                                  int64_t depth, double *panels)
{
    int64_t k, f;
    for (k = 0; k < (n + RC_PANEL - 1) / RC_PANEL * RC_PANEL; k++) {
        double *to = panels + k / RC_PANEL * depth * RC_PANEL + k % RC_PANEL;
        if (k >= n) {
            for (f = 0; f < depth; f++)
                to[f * RC_PANEL] = 0.0;
        } else if (X->dtype == RC_FLOAT32) {
            const float *v = (const float *)X->data + docs[k] * X->stride + first;
            for (f = 0; f < depth; f++)
                to[f * RC_PANEL] = (double)v[f];
        } else {
            const double *v = (const double *)X->data + docs[k] * X->stride + first;
            for (f = 0; f < depth; f++)
                to[f * RC_PANEL] = v[f];
        }
    }
}

/* Adds to a 4 x 8 tile of G the products of four documents of one panel with eight of another. */
RC_INLINED_ void rc_gram_tile_(const double *left, const double *right, int64_t depth, double *G,
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
RC_WIDE_ static void rc_gram_panel(const double *panels, int64_t p, int64_t n_padded, int64_t depth,
                                   double *G)
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

/* The first document from j on that is of a lower label and beats `score` or comes within the
 * margin of it; n_padded if there is none. Adds to `passed` how many of a lower label come before
 * it. Scores and labels are padded, the labels with +inf. */
RC_INLINED_ int64_t rc_next_violation_(const double *scores, const double *labels, int64_t j,
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

/* Bytes that the next visit will read, asked of memory a little at a time: rows of a Gram matrix
 * are met in no order that the CPU could guess. */
typedef struct rc_ahead {
    const char *next;
    const char *stop;
} rc_ahead;

RC_INLINED_ void rc_ask_ahead_(rc_ahead *ahead)
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

/* A query whose scores are kept current, and what is counted meanwhile: see rc_pair_state. */
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
    int64_t run;
    int64_t right;
    int64_t mistakes;   /* in this visit */
    double judge_above; /* successes beyond which a hypothesis is not ended here ... */
    int32_t judged;     /* ... but for the present one, if this is set */
    rc_ahead gram_ahead;
    rc_ahead rows_ahead;
} rc_gram_visit;

/* Counts successes, then ends the hypothesis by a mistake on documents i and j; 0 if the caller has
 * to judge it first. */
RC_INLINED_ int rc_gram_mistake_(rc_gram_visit *v, int64_t i, int64_t j, double step)
{
    const double *g = v->G + i * v->padded, *h = v->G + j * v->padded;
    double *scores = v->scores, before;
    int64_t k;
    if (!v->judged && v->streak + (double)v->run * v->unit > v->judge_above)
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
    before = (v->total + (double)v->right * v->unit) * step;
    v->alpha[i] += step;
    v->alpha[j] -= step;
    v->beta[i] += before;
    v->beta[j] -= before;
    v->streak = 0.0;
    v->run = 0;
    v->judged = 0;
    v->mistakes++;
    return 1;
}

/* Looks at the listed pairs from `at` on; `stop`, or the pair whose mistake waits for a judge. */
RC_WIDE_ static int64_t rc_gram_batch(rc_gram_visit *visit, const int32_t *winners,
                                      const int32_t *losers, const double *steps, double eta,
                                      int64_t at, int64_t stop)
{
    rc_gram_visit v = *visit; /* no store to scores can be taken for a change of a counter */
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

/* Looks at the pairs of winner i with the documents from j on, in this order; the padded number of
 * documents, or the loser of the pair whose mistake waits for a judge. Adds to `seen` the pairs
 * that were looked at. `labels` are padded with +inf, weights of documents may be NULL. */
RC_WIDE_ static int64_t rc_gram_scan(rc_gram_visit *visit, const double *labels,
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

/* ---------------------------------------------------------------- visits of unfolded documents */

/* weights += a * (x - y); n a multiple of 8. */
RC_WIDE_ static void rc_add_difference(double *restrict weights, const double *restrict x,
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

/* Documents as doubles, `width` apart: a multiple of 8, with zeros behind the last feature. */
RC_WIDE_ static void rc_unfold_docs(const rc_rows *X, const int64_t *docs, int64_t n, int64_t width,
                                    double *unfolded)
{
    int64_t k, f;
    for (k = 0; k < n; k++, unfolded += width) {
        for (f = 0; f < X->n_features; f++)
            unfolded[f] = X->dtype == RC_FLOAT32
                              ? (double)((const float *)X->data)[docs[k] * X->stride + f]
                              : ((const double *)X->data)[docs[k] * X->stride + f];
        for (; f < width; f++)
            unfolded[f] = 0.0;
    }
}

/* The first of the pairs at .. stop - 1 whose difference the weights do not put above the margin;
 * `stop` if there is none. Eight partial sums, added in pairs. */
RC_WIDE_ static int64_t rc_next_wrong(const double *unfolded, int64_t width, const double *weights,
                                      const int32_t *winners, const int32_t *losers, int64_t at,
                                      int64_t stop, double margin)
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

/* ---------------------------------------------------------------- order of pairs */

/* SplitMix64 (Steele, Lea and Flood 2014). */
static inline uint64_t rc_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint64_t rc_stream(uint64_t seed, uint64_t visit)
{
    return rc_mix(seed + 0x9E3779B97F4A7C15u * (visit + 1));
}

static inline uint64_t rc_draw(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    return rc_mix(*state);
}

/* Uniform on 0 .. n - 1 (Lemire 2019). */
static inline uint32_t rc_below(uint64_t *state, uint32_t n)
{
    for (;;) {
        const uint64_t product = (rc_draw(state) >> 32) * n;
        if ((uint32_t)product >= (0u - n) % n)
            return (uint32_t)(product >> 32);
    }
}

/* Uniform on [0, 1). */
static inline double rc_unit(uint64_t *state)
{
    return (double)(int64_t)(rc_draw(state) >> 11) * 0x1p-53;
}

/* Winners of one label: pairs first_pair and on, `width` losers each, those up to the last
 * document. Pair number k of them is winner (k - origin) / width, rounded down. */
typedef struct rc_level {
    double first_pair;
    double width;
    double inverse; /* 1 / width */
    double origin;  /* first_pair - (first winner) * width */
} rc_level;

/* A walk over n pair numbers in equal steps modulo n; eight neighbours at a time. Numbers are
 * doubles, exact to 2^53 and fast to divide. */
typedef struct rc_walk {
    double n;
    double stride; /* of eight steps, modulo n */
    double next[RC_PANEL];
} rc_walk;

static inline uint64_t rc_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Steps of about n over the golden ratio spread neighbours in time over all winners and losers;
 * a step without common divisor with n meets every number once. */
static void rc_walk_start(rc_walk *walk, uint64_t n, uint64_t *state)
{
    uint64_t step = (uint64_t)((0.6180339887498949 + rc_unit(state) / 16) * (double)n) % n;
    uint64_t k;
    int lane;
    while (rc_gcd(step, n) != 1)
        step = (step + 1) % n;
    k = (uint64_t)(rc_unit(state) * (double)n) % n;
    for (lane = 0; lane < RC_PANEL; lane++) {
        walk->next[lane] = (double)(int64_t)k;
        k = (k + step) % n;
    }
    walk->n = (double)(int64_t)n;
    walk->stride = (double)(int64_t)(step * RC_PANEL % n);
}

/* Writes the next RC_BATCH numbers (more than n: they repeat, the caller stops after n). */
RC_WIDE_ static void rc_walk_numbers(rc_walk *walk, double *numbers)
{
    const double n = walk->n, stride = walk->stride;
    double k[RC_PANEL];
    int64_t t;
    int lane;
    memcpy(k, walk->next, sizeof k);
    for (t = 0; t < RC_BATCH; t += RC_PANEL)
        for (lane = 0; lane < RC_PANEL; lane++) {
            numbers[t + lane] = k[lane];
            k[lane] += stride;
            k[lane] -= k[lane] >= n ? n : 0.0;
        }
    memcpy(walk->next, k, sizeof k);
}

#if defined(__GNUC__)
#define RC_SPREAD_(x) ((rc_four){x, x, x, x})
#define RC_SELECT_(flags, yes, no) \
    ((rc_four)(((rc_four_flags)(yes) & (flags)) | ((rc_four_flags)(no) & ~(flags))))

/* Turns RC_BATCH pair numbers into winners and losers among n documents, by `few` levels: a
 * constant, so that the compiler unrolls them. */
RC_INLINED_ void rc_walk_levels_(const double *numbers, const rc_level *levels, const int few,
                                 double n, int32_t *winners, int32_t *losers)
{
    int t, l;
    for (t = 0; t < RC_BATCH; t += 4) {
        rc_four k, origin = RC_SPREAD_(levels[0].origin), width = RC_SPREAD_(levels[0].width);
        rc_four inverse = RC_SPREAD_(levels[0].inverse);
        rc_four_i32 winner, loser;
        RC_LOAD_(k, numbers + t);
        for (l = 1; l < few; l++) {
            const rc_four_flags here = k >= RC_SPREAD_(levels[l].first_pair);
            origin = RC_SELECT_(here, RC_SPREAD_(levels[l].origin), origin);
            width = RC_SELECT_(here, RC_SPREAD_(levels[l].width), width);
            inverse = RC_SELECT_(here, RC_SPREAD_(levels[l].inverse), inverse);
        }
        k -= origin;
        winner = __builtin_convertvector((k + 0.5) * inverse, rc_four_i32);
        k -= __builtin_convertvector(winner, rc_four) * width;
        loser = __builtin_convertvector((n - width) + k, rc_four_i32);
        RC_STORE_(winners + t, winner);
        RC_STORE_(losers + t, loser);
    }
}
#endif

/* Turns RC_BATCH pair numbers into winners and losers among n documents. Levels are followed by
 * others whose first_pair is infinite, to 4 or 8 in all.
 *
 * Multiplying by an inverse is exact: its relative error is below 2^-52, and (k - origin + 1/2) /
 * width is at least 1 / (2 * width) away from the next integer, for fewer than 2^50 pairs. */
RC_WIDE_ static void rc_walk_pairs(const double *numbers, const rc_level *levels, int64_t n_levels,
                                   int64_t n, int32_t *winners, int32_t *losers)
{
    int64_t t;
#if defined(__GNUC__)
    if (n_levels == 1) {
        rc_walk_levels_(numbers, levels, 1, (double)n, winners, losers);
        return;
    }
    if (n_levels <= 4) {
        rc_walk_levels_(numbers, levels, 4, (double)n, winners, losers);
        return;
    }
    if (n_levels <= 8) {
        rc_walk_levels_(numbers, levels, 8, (double)n, winners, losers);
        return;
    }
#endif
    for (t = 0; t < RC_BATCH; t++) {
        int64_t low = 0, high = n_levels;
        double within;
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (numbers[t] >= levels[middle].first_pair)
                low = middle;
            else
                high = middle;
        }
        within = numbers[t] - levels[low].origin;
        winners[t] = (int32_t)((within + 0.5) * levels[low].inverse);
        within -= (double)winners[t] * levels[low].width;
        losers[t] = (int32_t)(((double)n - levels[low].width) + within);
    }
}

#endif /* RANKCORE_PAIRS_H */
