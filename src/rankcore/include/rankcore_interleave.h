/* rankcore_interleave.h - show documents of several rankers in one list, and divide the clicks
 * among the rankers. C99 (and C++11), header only, no Python.
 *
 *     rc_rankings R = {documents, offsets, 2};
 *     n = rc_interleave_team_draft(&R, 10, seed, shown, owners);
 *     ...
 *     rc_credit_owners(owners, clicks, n, 2, credit);
 *
 * There is no state between calls: a list is a function of the rankings and the seed, which should
 * be different for each impression (a counter or a hash of the session suffices, as it is mixed).
 * Numbers come from SplitMix64 (rankcore_random.h), one for each choice among several rankers, in
 * the order of the list, so that rankcore.interleaving in Python gives the same lists.
 *
 * Ownership: no function allocates or frees memory. Thread safety: functions only read and write
 * through their arguments. Documents are identified by distinct numbers. A ranking lists a
 * document at most once. Compile without -ffast-math, see rankcore.h.
 */
#ifndef RANKCORE_INTERLEAVE_H
#define RANKCORE_INTERLEAVE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "rankcore_random.h"

/* A program may define this before it includes the header, as an expression that is not 0 to end a
 * call with long rankings early: calls then return RC_INTERLEAVE_BAD. It
 * is evaluated every 256 documents of a list. */
#ifndef RC_INTERLEAVE_STOP
#define RC_INTERLEAVE_STOP() 0
#endif
#define RC_INTERLEAVE_STOPS_(n) (((n) & 255) == 255 && RC_INTERLEAVE_STOP())

#ifdef __cplusplus
extern "C" {
#endif

/* Codes in place of a number of documents, and limits. */
enum {
    RC_INTERLEAVE_BAD = -1,         /* the number of rankings or the length is out of range */
    RC_INTERLEAVE_MAX_RANKINGS = 64 /* maximum number of rankings */
};

/* Credit of a ranker for a click, by its place of the document. */
enum {
    RC_CREDIT_INVERSE = 0, /* 1 / place */
    RC_CREDIT_NEGATIVE = 1 /* -place */
};

/* Rankings of one query: ranker r has documents[offsets[r]] .. documents[offsets[r + 1] - 1],
 * best first. */
typedef struct rc_rankings {
    const int64_t *documents;
    const int64_t *offsets; /* n_rankings + 1 */
    int32_t n_rankings;
} rc_rankings;

static inline int32_t rc_interleave_bad_(const rc_rankings *R, int32_t length)
{
    return R->n_rankings < 1 || R->n_rankings > RC_INTERLEAVE_MAX_RANKINGS || length < 0;
}

static inline int32_t rc_interleave_has_(const int64_t *shown, int32_t n, int64_t document)
{
    int32_t i;
    for (i = 0; i < n; i++)
        if (shown[i] == document)
            return 1;
    return 0;
}

/* Returns the place of a document in a ranking, from 0; the length of the ranking if it is missing.
 */
static inline int64_t rc_interleave_place_(const rc_rankings *R, int32_t r, int64_t document)
{
    const int64_t first = R->offsets[r], n = R->offsets[r + 1] - first;
    int64_t i;
    for (i = 0; i < n; i++)
        if (R->documents[first + i] == document)
            break;
    return i;
}

/* Returns a random ranker whose bit is set; draws a number only if there are several. */
static inline int32_t rc_interleave_ranker_(uint64_t bits, uint64_t *state)
{
    uint64_t left = bits;
    uint32_t n = 0, skip;
    int32_t r = 0;
    for (; left; left &= left - 1)
        n++;
    for (skip = n > 1 ? rc_below(state, n) : 0; skip; skip--)
        bits &= bits - 1;
    for (; !(bits & 1); bits >>= 1)
        r++;
    return r;
}

static inline uint64_t rc_interleave_all_(const rc_rankings *R)
{
    return ~UINT64_C(0) >> (64 - R->n_rankings);
}

/* Returns the next ranker: if `fair`, among those with the fewest documents; otherwise among all.
 */
static inline int32_t rc_interleave_turns_(const rc_rankings *R, int32_t length, uint64_t seed,
                                           int32_t fair, int64_t *shown, int32_t *owners)
{
    int64_t next[RC_INTERLEAVE_MAX_RANKINGS];
    uint64_t state = rc_stream(seed, 0), open, waiting;
    int32_t n = 0, r;
    if (rc_interleave_bad_(R, length))
        return RC_INTERLEAVE_BAD;
    for (r = 0; r < R->n_rankings; r++)
        next[r] = R->offsets[r];
    /* Among rankers with remaining documents, those that have not had their turn in this round. */
    open = waiting = rc_interleave_all_(R);
    while (n < length && open) {
        if (RC_INTERLEAVE_STOPS_(n))
            return RC_INTERLEAVE_BAD;
        r = rc_interleave_ranker_(fair ? waiting : open, &state);
        while (next[r] < R->offsets[r + 1] && rc_interleave_has_(shown, n, R->documents[next[r]]))
            next[r]++;
        if (next[r] < R->offsets[r + 1]) {
            owners[n] = r;
            shown[n++] = R->documents[next[r]++];
        } else {
            open &= ~(UINT64_C(1) << r);
        }
        waiting &= ~(UINT64_C(1) << r);
        if (!waiting)
            waiting = open;
    }
    return n;
}

/* Team draft (Radlinski, Kurup and Joachims 2008), with more than two rankers its multileaving
 * form (Schuth et al. 2014): in each round every ranker adds its best document that is not shown
 * yet, in random order. Writes at most `length` documents and the ranker of each; returns their
 * number, or RC_INTERLEAVE_BAD. O(length (length + rankings)), plus skipped documents. */
static inline int32_t rc_interleave_team_draft(const rc_rankings *R, int32_t length, uint64_t seed,
                                               int64_t *shown, int32_t *owners)
{
    return rc_interleave_turns_(R, length, seed, 1, shown, owners);
}

/* The same without rounds: the ranker of each document is drawn among all with remaining
 * documents. These are the candidate lists of optimised interleaving. */
static inline int32_t rc_interleave_prefixes(const rc_rankings *R, int32_t length, uint64_t seed,
                                             int64_t *shown, int32_t *owners)
{
    return rc_interleave_turns_(R, length, seed, 0, shown, owners);
}

/* Balanced interleaving of two rankings (Joachims 2002): in turns, starting with a random
 * ranker. It ends when one of them ends. Arguments, result and cost are those of team draft. */
static inline int32_t rc_interleave_balanced(const rc_rankings *R, int32_t length, uint64_t seed,
                                             int64_t *shown, int32_t *owners)
{
    uint64_t state = rc_stream(seed, 0);
    int64_t next[2];
    int32_t n = 0, first, r;
    if (R->n_rankings != 2 || length < 0)
        return RC_INTERLEAVE_BAD;
    first = (int32_t)rc_below(&state, 2);
    next[0] = next[1] = 0;
    while (n < length && next[0] < R->offsets[1] - R->offsets[0] &&
           next[1] < R->offsets[2] - R->offsets[1]) {
        int64_t document;
        if (RC_INTERLEAVE_STOPS_(n))
            return RC_INTERLEAVE_BAD;
        r = next[0] == next[1] ? first : next[1] < next[0];
        document = R->documents[R->offsets[r] + next[r]++];
        if (!rc_interleave_has_(shown, n, document)) {
            owners[n] = r;
            shown[n++] = document;
        }
    }
    return n;
}

/* Writes the weights 1 / place^tau of the places 1 .. n; for integer tau by multiplications, whose
 * bits are the same everywhere. They may be reused. O(n). */
static inline void rc_interleave_weights(double tau, int64_t n, double *weights)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        const double place = (double)(i + 1);
        double power = 1.0, left = tau;
        if (tau >= 0.0 && tau <= 64.0 && tau == floor(tau))
            for (; left > 0.0; left -= 1.0)
                power *= place;
        else
            power = pow(place, tau);
        weights[i] = 1.0 / power;
    }
}

/* Returns the leaves of the tree of sums of n weights: a power of two. */
static inline int64_t rc_interleave_leaves_(int64_t n)
{
    int64_t leaves = 1;
    while (leaves < n)
        leaves *= 2;
    return leaves;
}

/* Returns the number of doubles of scratch for probabilistic lists and credits. O(rankings log
 * documents). */
static inline int64_t rc_interleave_room(const rc_rankings *R)
{
    int64_t room = R->offsets[R->n_rankings] - R->offsets[0];
    int32_t r;
    for (r = 0; r < R->n_rankings; r++)
        room += 2 * rc_interleave_leaves_(R->offsets[r + 1] - R->offsets[r]);
    return room;
}

/* The remaining documents of rankings. */
typedef struct rc_interleave_left_ {
    double *order;                              /* places in documents, by ascending document */
    double *sums[RC_INTERLEAVE_MAX_RANKINGS];   /* node i is the sum of nodes 2 i and 2 i + 1 */
    int64_t leaves[RC_INTERLEAVE_MAX_RANKINGS]; /* place p is node leaves + p; node 1 is the sum */
} rc_interleave_left_;

/* Restores the heap of `order`, of n places, below i. */
static inline void rc_interleave_sift_(const int64_t *documents, double *order, int64_t i,
                                       int64_t n)
{
    const double moved = order[i];
    int64_t child;
    for (; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n &&
            documents[(int64_t)order[child]] < documents[(int64_t)order[child + 1]])
            child++;
        if (documents[(int64_t)moved] >= documents[(int64_t)order[child]])
            break;
        order[i] = order[child];
    }
    order[i] = moved;
}

static inline void rc_interleave_begin_(const rc_rankings *R, const double *weights, double *room,
                                        rc_interleave_left_ *left)
{
    const int64_t first = R->offsets[0], m = R->offsets[R->n_rankings] - first;
    int64_t i;
    int32_t r;
    left->order = room;
    for (i = 0; i < m; i++)
        room[i] = (double)(first + i);
    for (i = m / 2; i-- > 0;)
        rc_interleave_sift_(R->documents, room, i, m);
    for (i = m; i-- > 1;) {
        const double last = room[i];
        room[i] = room[0];
        room[0] = last;
        rc_interleave_sift_(R->documents, room, 0, i);
    }
    room += m;
    for (r = 0; r < R->n_rankings; r++) {
        const int64_t n = R->offsets[r + 1] - R->offsets[r];
        const int64_t leaves = rc_interleave_leaves_(n);
        left->sums[r] = room;
        left->leaves[r] = leaves;
        for (i = 0; i < leaves; i++)
            room[leaves + i] = i < n ? weights[i] : 0.0;
        for (i = leaves; i-- > 1;)
            room[i] = room[2 * i] + room[2 * i + 1];
        room += 2 * leaves;
    }
}

/* Returns the first place in `order` whose document is not less. */
static inline int64_t rc_interleave_find_(const rc_rankings *R, const rc_interleave_left_ *left,
                                          int64_t document)
{
    int64_t low = 0, n = R->offsets[R->n_rankings] - R->offsets[0];
    while (n > 0) {
        const int64_t half = n / 2;
        if (R->documents[(int64_t)left->order[low + half]] < document) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* Returns the ranker of place i of `order` if it is of this document, and writes its node; -1
 * behind the last. */
static inline int32_t rc_interleave_node_(const rc_rankings *R, const rc_interleave_left_ *left,
                                          int64_t i, int64_t document, int64_t *node)
{
    int64_t place;
    int32_t r = 0;
    if (i >= R->offsets[R->n_rankings] - R->offsets[0])
        return -1;
    place = (int64_t)left->order[i];
    if (R->documents[place] != document)
        return -1;
    while (place >= R->offsets[r + 1])
        r++;
    *node = left->leaves[r] + place - R->offsets[r];
    return r;
}

/* Removes a document from all rankings. */
static inline void rc_interleave_take_(const rc_rankings *R, int64_t document,
                                       rc_interleave_left_ *left)
{
    int64_t i = rc_interleave_find_(R, left, document), node;
    int32_t r;
    for (; (r = rc_interleave_node_(R, left, i, document, &node)) >= 0; i++) {
        double *sums = left->sums[r];
        sums[node] = 0.0;
        for (node /= 2; node > 0; node /= 2)
            sums[node] = sums[2 * node] + sums[2 * node + 1];
    }
}

/* Probabilistic interleaving (Hofmann, Whiteson and de Rijke 2011), with more than two rankers
 * its multileaving form (Schuth et al. 2015): for each document a ranker is drawn, and a
 * document of its ranking with probabilities that decrease with the place. `weights` has the
 * longest ranking's length; `room` is scratch of rc_interleave_room(R) doubles. Otherwise as team
 * draft. O(documents log documents). */
static inline int32_t rc_interleave_probabilistic(const rc_rankings *R, const double *weights,
                                                  int32_t length, uint64_t seed, double *room,
                                                  int64_t *shown, int32_t *owners)
{
    uint64_t state = rc_stream(seed, 0), open;
    rc_interleave_left_ left;
    int32_t n = 0;
    if (rc_interleave_bad_(R, length))
        return RC_INTERLEAVE_BAD;
    rc_interleave_begin_(R, weights, room, &left);
    open = rc_interleave_all_(R);
    while (n < length && open) {
        const int32_t r = rc_interleave_ranker_(open, &state);
        const double *sums = left.sums[r];
        double rest;
        int64_t node = 1;
        if (!(sums[1] > 0.0)) {
            open &= ~(UINT64_C(1) << r);
            continue;
        }
        if (RC_INTERLEAVE_STOPS_(n))
            return RC_INTERLEAVE_BAD;
        rest = rc_unit(&state) * sums[1];
        while (node < left.leaves[r]) {
            node *= 2;
            /* Rounding may leave a remainder behind the last document. */
            if (rest >= sums[node] && sums[node + 1] > 0.0)
                rest -= sums[node++];
        }
        owners[n] = r;
        shown[n] = R->documents[R->offsets[r] + node - left.leaves[r]];
        rc_interleave_take_(R, shown[n++], &left);
    }
    return n;
}

/* Draws an index 0 .. n - 1 with probabilities whose cumulative sums are given, the last of them
 * above 0: for example for lists of optimised interleaving. O(log n). */
static inline int32_t rc_interleave_pick(const double *cumulative, int32_t n, uint64_t seed)
{
    uint64_t state = rc_stream(seed, 0);
    const double u = rc_unit(&state) * cumulative[n - 1];
    int32_t low = 0, left = n - 1;
    while (left > 0) {
        const int32_t half = left / 2;
        if (cumulative[low + half] <= u) {
            low += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    return low;
}

/* Credits. `clicks` has a number for each document shown: 0 without a click, 1 for one, or a weight
 * of it. All write credit[0 .. n_rankings - 1] and return 0; or RC_INTERLEAVE_BAD, with nothing
 * written, if the number of rankings (1 to RC_INTERLEAVE_MAX_RANKINGS, two for balanced lists) or
 * n is out of range. */

/* Credit of team draft: clicks on the documents of each ranker. Negative owners mean none. O(n). */
static inline int32_t rc_credit_owners(const int32_t *owners, const double *clicks, int32_t n,
                                       int32_t n_rankings, double *credit)
{
    int32_t i;
    if (n_rankings < 1 || n_rankings > RC_INTERLEAVE_MAX_RANKINGS || n < 0)
        return RC_INTERLEAVE_BAD;
    for (i = 0; i < n_rankings; i++)
        credit[i] = 0.0;
    for (i = 0; i < n; i++)
        if (owners[i] >= 0 && owners[i] < n_rankings)
            credit[owners[i]] += clicks[i];
    return 0;
}

/* Credit of balanced interleaving: the clicks on each ranker's best k documents, with the
 * smallest k for which the last clicked document is among the best k of one of them. O(n *
 * documents). */
static inline int32_t rc_credit_balanced(const rc_rankings *R, const int64_t *shown,
                                         const double *clicks, int32_t n, double *credit)
{
    int32_t last = n - 1, i, r;
    int64_t k;
    if (R->n_rankings != 2 || n < 0)
        return RC_INTERLEAVE_BAD;
    credit[0] = credit[1] = 0.0;
    while (last >= 0 && !(clicks[last] > 0.0))
        last--;
    if (last < 0)
        return 0;
    k = rc_interleave_place_(R, 0, shown[last]);
    if (rc_interleave_place_(R, 1, shown[last]) < k)
        k = rc_interleave_place_(R, 1, shown[last]);
    for (r = 0; r < 2; r++)
        for (i = 0; i <= last; i++) {
            int64_t place;
            if (RC_INTERLEAVE_STOPS_(i))
                return RC_INTERLEAVE_BAD;
            place = rc_interleave_place_(R, r, shown[i]);
            if (place <= k && place < R->offsets[r + 1] - R->offsets[r])
                credit[r] += clicks[i];
        }
    return 0;
}

/* Credit of probabilistic interleaving: each click is divided among rankers by the
 * probabilities, given the list, that they contributed the document. These are independent
 * between places, so that assignments are not enumerated. `weights` and `room` as for the list.
 * O(documents log documents + n rankings). */
static inline int32_t rc_credit_probabilistic(const rc_rankings *R, const double *weights,
                                              const int64_t *shown, const double *clicks, int32_t n,
                                              double *room, double *credit)
{
    double share[RC_INTERLEAVE_MAX_RANKINGS];
    rc_interleave_left_ left;
    int32_t i, r;
    if (rc_interleave_bad_(R, n))
        return RC_INTERLEAVE_BAD;
    rc_interleave_begin_(R, weights, room, &left);
    for (r = 0; r < R->n_rankings; r++)
        credit[r] = 0.0;
    for (i = 0; i < n; i++) {
        double total = 0.0;
        if (RC_INTERLEAVE_STOPS_(i))
            return RC_INTERLEAVE_BAD;
        if (clicks[i] > 0.0) {
            int64_t k = rc_interleave_find_(R, &left, shown[i]), node;
            for (r = 0; r < R->n_rankings; r++)
                share[r] = 0.0;
            for (; (r = rc_interleave_node_(R, &left, k, shown[i], &node)) >= 0; k++)
                if (left.sums[r][node] > 0.0)
                    share[r] = left.sums[r][node] / left.sums[r][1];
            for (r = 0; r < R->n_rankings; r++)
                total += share[r];
            for (r = 0; r < R->n_rankings && total > 0.0; r++)
                credit[r] += clicks[i] * (share[r] / total);
        }
        rc_interleave_take_(R, shown[i], &left);
    }
    return 0;
}

/* Credit of optimised interleaving: every ranker has a credit for each click, by its place of
 * the document; the place after the last one if it is missing. `kind` is RC_CREDIT_INVERSE or
 * RC_CREDIT_NEGATIVE. O(n * documents). */
static inline int32_t rc_credit_places(const rc_rankings *R, const int64_t *shown,
                                       const double *clicks, int32_t n, int32_t kind,
                                       double *credit)
{
    int32_t i, r;
    if (rc_interleave_bad_(R, n))
        return RC_INTERLEAVE_BAD;
    for (r = 0; r < R->n_rankings; r++) {
        credit[r] = 0.0;
        for (i = 0; i < n; i++) {
            if (RC_INTERLEAVE_STOPS_(i))
                return RC_INTERLEAVE_BAD;
            if (clicks[i] > 0.0) {
                const double place = (double)(rc_interleave_place_(R, r, shown[i]) + 1);
                credit[r] += clicks[i] * (kind == RC_CREDIT_INVERSE ? 1.0 / place : -place);
            }
        }
    }
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_INTERLEAVE_H */
