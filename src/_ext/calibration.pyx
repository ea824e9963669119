"""Probabilities of ranks, and ranks of minimum expected cost: rankcore_calibration.h.

Scores (n,) become probabilities (n, n_ranks), O(n_ranks + log n_knots) a row; probabilities and
costs (n_ranks, n_ranks) become ranks (n,), O(n_ranks ** 2) a row.
"""

from libc.stdint cimport int32_t, int64_t


cdef extern from "rankcore_calibration.h" nogil:
    ctypedef struct rc_calibration:
        int32_t n_ranks
        int64_t n_knots
        const double *curves
        const double *knots
        double slope
        double center
        double scale
        const double *costs

    void rc_calibration_probabilities(const rc_calibration *c, double score, double *p)
    int32_t rc_calibration_rank(const rc_calibration *c, const double *p)


def probabilities(
    const double[::1] scores not None,
    const double[:, ::1] curves not None,
    const double[::1] knots not None,
    double slope,
    double[:, ::1] out not None,
):
    """Write the probability of each rank at scores that are on the scale of the curves.

    ``curves`` has the thresholds in its only row, if there are no ``knots``; or a row per knot.
    """
    cdef rc_calibration c
    cdef int64_t i
    if (
        out.shape[0] != scores.shape[0]
        or out.shape[1] < 1
        or curves.shape[0] != max(knots.shape[0], 1)
        or curves.shape[1] != out.shape[1] - 1
    ):
        raise ValueError(
            f"out has shape ({out.shape[0]}, {out.shape[1]}) and curves "
            f"({curves.shape[0]}, {curves.shape[1]}); {scores.shape[0]} scores and "
            f"{knots.shape[0]} knots require ({scores.shape[0]}, n_ranks) and "
            f"({max(knots.shape[0], 1)}, n_ranks - 1)"
        )
    c.n_ranks = <int32_t> out.shape[1]
    c.n_knots = knots.shape[0]
    c.curves = &curves[0, 0]
    c.knots = &knots[0] if knots.shape[0] else NULL
    c.slope = slope
    c.center = 0.0
    c.scale = 1.0
    c.costs = NULL
    with nogil:
        for i in range(scores.shape[0]):
            rc_calibration_probabilities(&c, scores[i], &out[i, 0])


def cheapest_ranks(
    const double[:, ::1] table not None,
    const double[:, ::1] costs not None,
    int32_t[::1] out not None,
):
    """Write the rank of minimum expected cost for each row of a table of probabilities."""
    cdef rc_calibration c
    cdef int64_t i
    if (
        out.shape[0] != table.shape[0]
        or costs.shape[0] != table.shape[1]
        or costs.shape[1] != table.shape[1]
    ):
        raise ValueError(
            f"out has {out.shape[0]} entries and costs the shape ({costs.shape[0]}, "
            f"{costs.shape[1]}); a table of shape ({table.shape[0]}, {table.shape[1]}) requires "
            f"{table.shape[0]} and ({table.shape[1]}, {table.shape[1]})"
        )
    c.n_ranks = <int32_t> table.shape[1]
    c.costs = &costs[0, 0]
    with nogil:
        for i in range(table.shape[0]):
            out[i] = rc_calibration_rank(&c, &table[i, 0])
