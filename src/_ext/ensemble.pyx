"""Ensembles of PRanks: sampled members, their average and their votes.

OAP (Harrington, "Online ranking/collaborative filtering using the perceptron algorithm", ICML
2003): every member is a PRank that learns from the examples it draws. The mean of the members
approximates the Bayes point and is kept up to date: an example moves it by the mean of the
members' steps times the example.

Draws are a pure function of (seed, member, time), so that the result does not depend on the order
in which members and examples are visited. Members are grouped in tiles: the weights of a feature in
a tile are contiguous, so that one access to memory serves all of them, and all operations are
vectorised (_lanes.h). Each tile processes a block of examples before the next tile; tiles are wide
with few features and narrow with many.

The steps of the members are integers, so their sums over members do not depend on the order of
summation either: members are divided among threads with exact results.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint64_t

from array import array

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._prank cimport less_late
from rankcore.core cimport rc_counts, rc_row, rc_rows, rc_rows_get


cdef extern from "_lanes.h" nogil:
    ctypedef struct rc_lanes:
        double *weights
        double *weight_sums
        double *steps
        double *late
        double *before
        double *taken
        double *rank_loss
        double *mistakes
        double *survived
        int64_t *times
        double *scores
        double *moves
        double *changes
        int64_t *units
        int64_t n
        int64_t width
        double scale
        double margin
        int32_t n_ranks
        int32_t ties_err
    int64_t rc_lane_draws(
        uint64_t seed, int64_t t, int64_t first, int64_t n, const uint64_t *cumulative,
        int64_t n_cumulative, uint64_t *draws, int64_t *times,
    ) noexcept
    void rc_lane_scores(rc_row x, const double *weights, int64_t width, double *scores) noexcept
    void rc_lane_fetch(
        const double *weights, int64_t n_columns, int64_t n, int64_t width
    ) noexcept
    ctypedef struct rc_lesson:
        const rc_rows *rows
        const int32_t *ranks
        const int32_t *order
        int64_t start
        int64_t stop
        int64_t t
        uint64_t seed
        const uint64_t *cumulative
        int64_t n_cumulative
        int64_t per_row
        int64_t first
        int64_t n
        int32_t *moved
    int64_t rc_lane_learn(const rc_lanes *m, const rc_lesson *lesson) noexcept


# ------------------------------------------------------------------------------ sampling


def draws(
    uint64_t seed,
    int64_t t,
    # ascending: a member takes the example once for each entry at most its 32-bit draw
    const uint64_t[::1] cumulative not None,
    int32_t[::1] out not None,  # out, (n_members,)
):
    """Write how many times each member takes the example at time t. O(members)."""
    cdef int64_t j, n = out.shape[0]
    if cumulative.shape[0] < 1:
        raise ValueError("cumulative is empty")
    if n == 0:
        return
    cdef uint64_t[::1] bits = array("Q", bytes(8 * (n + 1)))
    cdef int64_t[::1] times = array("q", bytes(8 * (n + 1)))
    rc_lane_draws(seed, t, 0, n, &cumulative[0], cumulative.shape[0], &bits[0], &times[0])
    for j in range(n):
        out[j] = <int32_t> times[j]


# ------------------------------------------------------------------------------ members


cdef struct Tile:
    int64_t *steps  # (n_ranks - 1) * width, as are the next two
    double *thresholds
    int64_t *step_sums  # or NULL
    rc_counts *seen
    int64_t *survived


cdef void _begin(const Tile *members, const rc_lanes *m) noexcept nogil:
    """Copy the members to the lanes."""
    cdef int64_t r, j
    for r in range(m.n_ranks - 1):
        for j in range(m.n):
            m.steps[r * m.n + j] = <double> members.steps[r * m.width + j]
            if m.late != NULL:
                m.late[r * m.n + j] = 0
    for j in range(m.n):
        m.before[j] = <double> members.seen[j].t
        m.survived[j] = <double> members.survived[j]
        m.taken[j] = m.rank_loss[j] = m.mistakes[j] = 0
        m.times[j] = 0


cdef void _end(const Tile *members, const rc_lanes *m) noexcept nogil:
    """Copy the lanes back to the members."""
    cdef int64_t r, j, at, lane, steps
    for r in range(m.n_ranks - 1):
        for j in range(m.n):
            at = r * m.width + j
            lane = r * m.n + j
            steps = <int64_t> m.steps[lane]
            if members.step_sums != NULL:
                # All integers: a product with the number of examples exceeds the range of a lane.
                members.step_sums[at] = less_late(
                    less_late(members.step_sums[at], 1, <int64_t> m.late[lane]),
                    members.seen[j].t, members.steps[at] - steps,
                )
            members.steps[at] = steps
            members.thresholds[at] = m.scale * m.steps[lane]
    for j in range(m.n):
        members.seen[j].t += <int64_t> m.taken[j]
        members.seen[j].rank_loss += <int64_t> m.rank_loss[j]
        members.seen[j].mistakes += <int64_t> m.mistakes[j]
        members.survived[j] = <int64_t> m.survived[j]


@final
cdef class Members:
    """The members of an ensemble, whose arrays were checked.

    Arrays of n_tiles tiles of ``width`` members side by side, a multiple of 4; the lanes beyond
    ``n_members`` are padding.
    """

    cdef double[:, :, ::1] weights, thresholds, weight_sums
    cdef int64_t[:, :, ::1] steps, step_sums
    cdef int64_t[:, ::1] seen
    cdef int64_t[::1] survived
    cdef int64_t n_members, before
    cdef double scale, margin
    cdef bint strict

    def __init__(
        self,
        # each (n_tiles, n_features, width): the sums, those of the steps too, are None unless
        # averaging
        double[:, :, ::1] weights not None,
        double[:, :, ::1] weight_sums,
        int64_t[:, :, ::1] steps not None,  # each (n_tiles, n_ranks - 1, width)
        double[:, :, ::1] thresholds not None,
        int64_t[:, :, ::1] step_sums,
        # (n_tiles * width, 3): examples drawn, their total rank loss, mistakes
        int64_t[:, ::1] seen not None,
        # (n_tiles * width,): examples ranked rightly since the last mistake
        int64_t[::1] survived not None,
        int64_t n_members,
        double scale,  # as in ``PRankState``
        double margin,
        bint strict,
        # members of the ensemble before these, a multiple of 4: who draws what depends on it
        int64_t before=0,
    ):
        cdef int64_t n_tiles = weights.shape[0], width = weights.shape[2], tasks = steps.shape[1]
        if (
            tasks < 1
            or before < 0
            or before % 4
            or width < 4
            or width % 4
            or weights.shape[1] < 1
            or not 1 <= n_members <= n_tiles * width
            or not _same_shape(steps.shape, n_tiles, tasks, width)
            or not _same_shape(thresholds.shape, n_tiles, tasks, width)
            or seen.shape[0] != n_tiles * width
            or seen.shape[1] != 3
            or survived.shape[0] != n_tiles * width
            or (weight_sums is None) != (step_sums is None)
            or (
                weight_sums is not None
                and not _same_shape(weight_sums.shape, n_tiles, weights.shape[1], width)
            )
            or (step_sums is not None and not _same_shape(step_sums.shape, n_tiles, tasks, width))
        ):
            raise ValueError("the arrays of the members do not fit together")
        self.weights, self.weight_sums = weights, weight_sums
        self.steps, self.thresholds, self.step_sums = steps, thresholds, step_sums
        self.seen, self.survived = seen, survived
        self.n_members, self.before = n_members, before
        self.scale, self.margin, self.strict = scale, margin, strict

    cdef void place(self, int64_t member, int64_t last, Tile *tile, rc_lanes *m) noexcept nogil:
        """Point to the members from one on, within its tile."""
        cdef int64_t width = self.weights.shape[2]
        cdef int64_t t = member // width, lane = member % width
        m.n = min(last - member, width - lane)
        m.weights = &self.weights[t, 0, lane]
        m.weight_sums = &self.weight_sums[t, 0, lane] if self.weight_sums is not None else NULL
        tile.steps = &self.steps[t, 0, lane]
        tile.thresholds = &self.thresholds[t, 0, lane]
        tile.step_sums = &self.step_sums[t, 0, lane] if self.step_sums is not None else NULL
        tile.seen = <rc_counts *> &self.seen[member, 0]
        tile.survived = &self.survived[member]


def learn_members(
    Members members not None,  # in and out
    object rows not None,  # as in ``online_loop.learn``
    const int32_t[::1] ranks not None,
    const int32_t[::1] order,
    int64_t start,
    int64_t stop,
    int64_t t,  # examples seen before position start
    uint64_t seed,  # of the draws, see `draws`
    # (1 or n_rows, any): thresholds of the draws, for all rows or for each
    const uint64_t[:, ::1] cumulative not None,
    int64_t first,  # range of the members, padding included: multiples of 4
    int64_t last,
    # in and out, (stop - start, n_ranks - 1): the members' threshold steps are added
    int32_t[:, ::1] moved not None,
):
    """Let the members first .. last - 1 learn the examples of a block that they draw.

    Returns ``stop``, or a position whose score overflowed for some member.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t width = members.weights.shape[2], tasks = moved.shape[1]
    cdef int64_t i, j, member = first, reached = stop
    cdef Tile tile
    cdef rc_lanes m
    cdef rc_lesson lesson
    if (
        not rows.canonical
        or ranks.shape[0] != X.n_rows
        or not 0 <= start <= stop <= (X.n_rows if order is None else order.shape[0])
        or moved.shape[0] != stop - start
        or tasks != members.steps.shape[1]
        or members.weights.shape[1] != X.n_features
        or not 0 <= first <= last <= members.weights.shape[0] * width
        or first % 4
        or last % 4
        or cumulative.shape[0] not in (1, X.n_rows)
        or cumulative.shape[1] < 1
    ):
        raise ValueError("rows, ranks, order, range and members do not fit together")
    if order is not None:
        for i in range(start, stop):
            if not 0 <= order[i] < X.n_rows:
                raise ValueError(f"order has no row {order[i]}")
    if stop == start or first == last:
        return stop
    for i in range(cumulative.shape[0]):
        for j in range(cumulative.shape[1]):
            if cumulative[i, j] > <uint64_t> 1 << 32:
                raise ValueError("cumulative has more than 32 bits")
    cdef double[::1] lanes = array("d", bytes(8 * (2 * tasks + 8) * width))
    cdef int64_t[::1] times = array("q", bytes(8 * 2 * width))
    m.times = &times[0]
    m.units = m.times + width
    m.before = &lanes[0]
    m.taken = m.before + width
    m.rank_loss = m.taken + width
    m.mistakes = m.rank_loss + width
    m.survived = m.mistakes + width
    m.scores = m.survived + width
    m.moves = m.scores + width
    m.changes = m.moves + width
    m.steps = m.changes + width
    m.late = m.steps + tasks * width if members.step_sums is not None else NULL
    m.width = width
    m.scale = members.scale
    m.margin = members.margin
    m.n_ranks = <int32_t> tasks + 1
    m.ties_err = not members.strict
    lesson.rows = X
    lesson.ranks = &ranks[0]
    lesson.order = &order[0] if order is not None else NULL
    lesson.start = start
    lesson.stop = stop
    lesson.t = t
    lesson.seed = seed
    lesson.cumulative = &cumulative[0, 0]
    lesson.n_cumulative = cumulative.shape[1]
    lesson.per_row = cumulative.shape[1] if cumulative.shape[0] > 1 else 0
    lesson.moved = &moved[0, 0]
    cdef bint fetch = (  # the rows will use most columns
        X.indptr != NULL and X.n_features < X.indptr[X.n_rows] // X.n_rows * (stop - start)
    )
    with nogil:
        while member < last:
            members.place(member, last, &tile, &m)
            lesson.first = members.before + member
            lesson.n = max(0, min(m.n, members.n_members - member))
            if fetch:
                rc_lane_fetch(m.weights, X.n_features, m.n, width)
                if m.weight_sums != NULL:
                    rc_lane_fetch(m.weight_sums, X.n_features, m.n, width)
            _begin(&tile, &m)
            reached = rc_lane_learn(&m, &lesson)
            if reached < stop:
                break
            _end(&tile, &m)
            member += m.n
    return reached


cdef bint _same_shape(const Py_ssize_t *shape, int64_t a, int64_t b, int64_t c) noexcept:
    return shape[0] == a and shape[1] == b and shape[2] == c


# ------------------------------------------------------------------------------ votes


def tally(
    object rows not None,
    # (n_tiles, n_features, width): of all models; the width is 1 or a multiple of 4
    const double[:, :, ::1] weights not None,
    const double[:, :, ::1] thresholds not None,  # (n_tiles, n_ranks - 1, width)
    # (n_models,): votes of each model; the lanes beyond are padding
    const int64_t[::1] votes not None,
    int64_t first,  # tiles from ``first`` up to ``last``
    int64_t last,
    int64_t start,  # rows from ``start`` up to ``stop``
    int64_t stop,
    int64_t[:, ::1] out not None,  # in and out, (n_rows, n_ranks)
):
    """Add the votes of some models for each rank of some rows. O(n_values * models).

    Returns ``stop``, or a row of which a score is not a number.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_tiles = weights.shape[0], width = weights.shape[2], tasks = out.shape[1] - 1
    cdef int64_t i = start, j, r, tile, n = votes.shape[0]
    cdef int32_t rank
    cdef double odd
    if (
        n < 1
        or n > n_tiles * width
        or (width != 1 and width % 4)
        or tasks < 1
        or weights.shape[1] != X.n_features
        or not _same_shape(thresholds.shape, n_tiles, tasks, width)
        or out.shape[0] != X.n_rows
        or not 0 <= first <= last <= n_tiles
        or not 0 <= start <= stop <= X.n_rows
    ):
        raise ValueError("rows, weights, thresholds, votes and out do not fit together")
    cdef double[::1] scores = array("d", bytes(8 * width))
    with nogil:
        for tile in range(first, last):
            for i in range(start, stop):
                rc_lane_scores(rc_rows_get(X, i), &weights[tile, 0, 0], width, &scores[0])
                odd = 0.0
                for j in range(min(width, n - tile * width)):
                    odd += scores[j] - scores[j]
                    rank = 0
                    for r in range(tasks):
                        rank += scores[j] >= thresholds[tile, r, j]
                    out[i, rank] += votes[tile * width + j]
                if odd != 0:
                    with gil:
                        return i
    return stop
