/* The functions of rankcore_interleave.h behind symbols that a test can load. C99 and C++11. */
#include "rankcore_interleave.h"

#ifdef __cplusplus
extern "C" {
#endif

int32_t probe_list(int32_t method, const rc_rankings *R, const double *weights, int32_t length,
                   uint64_t seed, double *room, int64_t *shown, int32_t *owners)
{
    switch (method) {
    case 0:
        return rc_interleave_team_draft(R, length, seed, shown, owners);
    case 1:
        return rc_interleave_balanced(R, length, seed, shown, owners);
    case 2:
        return rc_interleave_probabilistic(R, weights, length, seed, room, shown, owners);
    default:
        return rc_interleave_prefixes(R, length, seed, shown, owners);
    }
}

int32_t probe_credit(int32_t method, const rc_rankings *R, const double *weights,
                     const int64_t *shown, const int32_t *owners, const double *clicks, int32_t n,
                     double *room, double *credit)
{
    switch (method) {
    case 0:
        return rc_credit_owners(owners, clicks, n, R->n_rankings, credit);
    case 1:
        return rc_credit_balanced(R, shown, clicks, n, credit);
    case 2:
        return rc_credit_probabilistic(R, weights, shown, clicks, n, room, credit);
    default:
        return rc_credit_places(R, shown, clicks, n, RC_CREDIT_INVERSE, credit);
    }
}

void probe_weights(double tau, int64_t n, double *weights)
{
    rc_interleave_weights(tau, n, weights);
}

int32_t probe_pick(const double *cumulative, int32_t n, uint64_t seed)
{
    return rc_interleave_pick(cumulative, n, seed);
}

#ifdef __cplusplus
}
#endif
