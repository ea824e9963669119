/* Scans of contiguous numbers. Private. */
#ifndef RANKCORE_SCAN_H
#define RANKCORE_SCAN_H

#include <float.h>
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

/* Puts value in its place among the first `filled` of top, descending; the last one is dropped
 * if full. */
RC_INLINE_ void rc_insert_(double *top, int64_t k, int64_t filled, double value)
{
    int64_t i = filled < k ? filled : k - 1;
    for (; i > 0 && top[i - 1] < value; i--)
        top[i] = top[i - 1];
    top[i] = value;
}

/* The k largest of n >= k numbers, descending. Numbers are compared with the minimum of those
 * found so far, 64 and then 8 at a time; in random order about k ln(n / k) exceed it. */
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

enum { RC_LANES = 32 };

/* A number that at least k <= RC_LANES of n >= RC_LANES numbers reach, and usually few more: the
 * k-th largest of the maxima of every 32nd number. It is found without branches, while finding
 * the k largest takes several unpredictable ones for each of k ln(n / k) numbers. */
RC_CLONES_ static double rc_reached(const double *x, int64_t n, int64_t k)
{
    double most[RC_LANES], reached = DBL_MAX;
    int64_t above[RC_LANES];
    int64_t i, j, l;
    for (j = 0; j < RC_LANES; j += 16) {
        double here[16];
        for (l = 0; l < 16; l++)
            here[l] = x[j + l];
        for (i = RC_LANES; i + RC_LANES <= n; i += RC_LANES) {
            for (l = 0; l < 16; l++)
                here[l] = x[i + j + l] > here[l] ? x[i + j + l] : here[l];
        }
        for (l = 0; l < 16; l++)
            most[j + l] = here[l];
    }
    /* The minimum of the numbers that fewer than k exceed. */
    for (j = 0; j < RC_LANES; j++)
        above[j] = 0;
    for (j = 0; j < RC_LANES; j++)
        for (l = 0; l < RC_LANES; l++)
            above[l] += most[j] > most[l];
    for (j = 0; j < RC_LANES; j++)
        reached = above[j] < k && most[j] < reached ? most[j] : reached;
    return reached;
}

/* Writes the places of the numbers that are at least `least`, ascending; returns how many. Any
 * of the n entries may be overwritten. Also prefetches as many following numbers, usually those
 * of the next query. */
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
