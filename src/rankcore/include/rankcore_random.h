/* rankcore_random.h - one stream of random numbers for all kernels: SplitMix64. Part of
 * rankcore_interleave.h. C99 (and C++11), header only. Every function is O(1). */
#ifndef RANKCORE_RANDOM_H
#define RANKCORE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a hash of 64 bits: the finaliser of SplitMix64 (Steele, Lea and Flood 2014). */
static inline uint64_t rc_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Returns the initial state of a separate stream for each visit. */
static inline uint64_t rc_stream(uint64_t seed, uint64_t visit)
{
    return rc_mix(seed + UINT64_C(0x9E3779B97F4A7C15) * (visit + 1));
}

static inline uint64_t rc_draw(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    return rc_mix(*state);
}

/* Draws uniformly from 0 .. n - 1, n at least 1 (Lemire 2019). */
static inline uint32_t rc_below(uint64_t *state, uint32_t n)
{
    for (;;) {
        const uint64_t product = (rc_draw(state) >> 32) * n;
        if ((uint32_t)product >= (0u - n) % n)
            return (uint32_t)(product >> 32);
    }
}

/* Draws uniformly from [0, 1), a multiple of 2**-53. */
static inline double rc_unit(uint64_t *state)
{
    return (double)(int64_t)(rc_draw(state) >> 11) * (1.0 / 9007199254740992.0);
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_RANDOM_H */
