/* Scans of n contiguous doubles in vector lanes: counts, the k largest, positions. O(n). Private.
 */
#ifndef RANKCORE_SCAN_H
#define RANKCORE_SCAN_H

#include <float.h>
#include <stdint.h>

/* glibc's headers define what _clones.h requires, so they come first. */
#include "_finite.h"
#include "rankcore_vectors.h"

/* Counts the numbers >= least. */
RC_CLONES_ static int64_t rc_count_from(const double *x, int64_t n, double least)
{
    int64_t i, count = 0;
    for (i = 0; i < n; i++)
        count += x[i] >= least;
    return count;
}

/* Inserts value into the first `filled` of the k numbers of top, which are descending; a full list
 * drops its last number. */
RC_INLINE_ void rc_insert_(double *top, int64_t k, int64_t filled, double value)
{
    int64_t i = filled < k ? filled : k - 1;
    for (; i > 0 && top[i - 1] < value; i--)
        top[i] = top[i - 1];
    top[i] = value;
}

/* Writes the k largest of n >= k numbers to top, descending. Blocks of 64 and then 8 numbers are
 * compared with the smallest of top; in random order about k ln(n / k) numbers exceed it. */
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
            const double smallest = top[k - 1];
            int64_t larger = 0, l;
            for (l = j; l < j + 8; l++)
                larger += x[l] > smallest;
            for (l = j; larger && l < j + 8; l++) {
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

enum { RC_LANES = 32 };

/* Returns a lower bound of the k-th largest of n >= RC_LANES >= k numbers, which few more than k
 * reach: the k-th largest of the maxima of the 32 residue classes of the index. Finding it takes no
 * branches; finding the k largest takes several unpredictable ones for each of k ln(n / k)
 * numbers. */
RC_CLONES_ static double rc_reached(const double *x, int64_t n, int64_t k)
{
    double maximum[RC_LANES], reached = DBL_MAX;
    int64_t above[RC_LANES];
    int64_t i, j, l;
    for (j = 0; j < RC_LANES; j += 16) {
        double lane[16];
        for (l = 0; l < 16; l++)
            lane[l] = x[j + l];
        for (i = RC_LANES; i + RC_LANES <= n; i += RC_LANES) {
            for (l = 0; l < 16; l++)
                lane[l] = x[i + j + l] > lane[l] ? x[i + j + l] : lane[l];
        }
        for (l = 0; l < 16; l++)
            maximum[j + l] = lane[l];
    }
    /* The minimum of the numbers that fewer than k exceed. */
    for (j = 0; j < RC_LANES; j++)
        above[j] = 0;
    for (j = 0; j < RC_LANES; j++)
        for (l = 0; l < RC_LANES; l++)
            above[l] += maximum[j] > maximum[l];
    for (j = 0; j < RC_LANES; j++)
        reached = above[j] < k && maximum[j] < reached ? maximum[j] : reached;
    return reached;
}

/* Writes the indices of the numbers >= least to places, (n,), ascending; returns their number. All
 * of places may be overwritten. Prefetches the n numbers after x, usually those of the next query.
 */
RC_CLONES_ static int64_t rc_places_from(const double *x, int64_t n, double least, uint32_t *places)
{
    int64_t i = 0, j, found = 0;
    while (i < n) {
        const int64_t stop = n - i < 32 ? n : i + 32;
        int64_t some = 0;
        if (stop - i < 32)
            some = 1;
        else {
            for (j = 0; j < 32; j += 8)
                RC_FETCH_SECOND_(x + n + i + j);
            for (j = 0; j < 32; j++)
                some += x[i + j] >= least;
        }
        /* A branch would be unpredictable. */
        for (j = i; some && j < stop; j++) {
            places[found] = (uint32_t)j;
            found += x[j] >= least;
        }
        i = stop;
    }
    return found;
}

#endif /* RANKCORE_SCAN_H */
