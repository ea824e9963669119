/* Search of eight values at a time in ascending thresholds: O(log n_cuts). Private. */
#ifndef RANKCORE_PLACES_H
#define RANKCORE_PLACES_H

#include <stdint.h>

/* places[k] = number of the n_cuts ascending thresholds below values[k], for eight values at a
 * time: their searches are independent and without branches. */
static inline void rc_places(const double values[8], const double *cuts, int64_t n_cuts,
                             int64_t places[8])
{
    int64_t left = n_cuts;
    int k;
    for (k = 0; k < 8; k++)
        places[k] = 0;
    while (left > 1) {
        const int64_t half = left >> 1;
        for (k = 0; k < 8; k++)
            places[k] += half & -(int64_t)(cuts[places[k] + half - 1] < values[k]);
        left -= half;
    }
    if (left == 1)
        for (k = 0; k < 8; k++)
            places[k] += cuts[places[k]] < values[k];
}

#endif /* RANKCORE_PLACES_H */
