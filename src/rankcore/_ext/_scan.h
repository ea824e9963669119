/* Scans of contiguous numbers. Private. */
#ifndef RANKCORE_SCAN_H
#define RANKCORE_SCAN_H

#include <stdint.h>

/* glibc's headers define what _clones.h requires, so they come first. */
#include "_finite.h"
#include "rankcore_vectors.h"

/* How many numbers are at least `least`. */
RC_CLONES_ static int64_t rc_count_from(const double *x, int64_t n, double least)
{
    int64_t i, count = 0;
    for (i = 0; i < n; i++)
        count += x[i] >= least;
    return count;
}

/* Puts value in its place among the first `filled` of top, descending; the last falls out of a
 * full one. */
RC_INLINE_ void rc_insert_(double *top, int64_t k, int64_t filled, double value)
{
    int64_t i = filled < k ? filled : k - 1;
    for (; i > 0 && top[i - 1] < value; i--)
        top[i] = top[i - 1];
    top[i] = value;
}

/* The k largest of n >= k numbers, descending. A number is compared with the least of those found
 * so far, 64 and then 8 at a time; in random order k ln(n / k) of them get further. */
RC_CLONES_ static void rc_top_values(const double *x, int64_t n, int64_t k, double *top)
{
    int64_t i, j;
    for (i = 0; i < k; i++)
        rc_insert_(top, k, i, x[i]);
    while (i < n) {
        const int64_t stop = n - i < 64 ? n : i + 64;
        const double least = top[k - 1];
        int64_t above = 0;
        for (j = i; j < stop; j++)
            above += x[j] > least;
        for (j = i; above && j + 8 <= stop; j += 8) {
            const double now = top[k - 1];
            int64_t here = 0, l;
            for (l = j; l < j + 8; l++)
                here += x[l] > now;
            for (l = j; here && l < j + 8; l++) {
                if (x[l] > top[k - 1])
                    rc_insert_(top, k, k, x[l]);
            }
        }
        for (; above && j < stop; j++) {
            if (x[j] > top[k - 1])
                rc_insert_(top, k, k, x[j]);
        }
        i = stop;
    }
}

/* Writes the places of the numbers that are at least `least`, ascending; how many there are. */
RC_CLONES_ static int64_t rc_places_from(const double *x, int64_t n, double least, uint32_t *places)
{
    int64_t i = 0, j, found = 0;
    while (i < n) {
        const int64_t stop = n - i < 64 ? n : i + 64;
        int64_t some = 0;
        for (j = i; j < stop; j++)
            some += x[j] >= least;
        for (j = i; some && j + 8 <= stop; j += 8) {
            int64_t here = 0, l;
            for (l = j; l < j + 8; l++)
                here += x[l] >= least;
            for (l = j; here && l < j + 8; l++) {
                if (x[l] >= least)
                    places[found++] = (uint32_t)l;
            }
        }
        for (; some && j < stop; j++) {
            if (x[j] >= least)
                places[found++] = (uint32_t)j;
        }
        i = stop;
    }
    return found;
}

#endif /* RANKCORE_SCAN_H */
