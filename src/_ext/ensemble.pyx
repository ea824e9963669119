"""Ensembles of PRanks: sampled members, their average and their votes.

OAP (Harrington, "Online ranking/collaborative filtering using the perceptron algorithm", ICML
2003): every member is a PRank that learns from the examples it draws. The mean of the members
approximates the Bayes point and is kept up to date: an example moves it by the mean of the
members' steps times the example.

Who draws what is a pure function of (seed, member, time), so the result does not depend on the
order in which members and examples are visited. The members live in tiles of a few neighbours:
the weights of a feature in a tile are contiguous, so that one access to memory serves all of them
and their scores are formed in vector lanes. A tile walks over a block of examples that stays in
cache before the next tile does; with few features a tile is wide, with many narrow.

The steps of the members are integers, so their sums over members do not depend on the order of
summation either: threads share out the tiles and stay exact.
"""

from cpython.pycapsule cimport PyCapsule_New
from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from array import array

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._learner cimport Learner, update_t
from rankcore._ext._prank cimport count, move_thresholds
from rankcore.core cimport (
    rc_axpy,
    rc_counts,
    rc_dot,
    rc_rank,
    rc_row,
    rc_rows,
    rc_rows_get,
)


cdef extern from "_lanes.h" nogil:
    void rc_lane_scores(
        rc_row x, const double *weights, int64_t stride, const int32_t *lanes, int64_t n,
        double *scores,
    ) noexcept
    void rc_lane_axpys(
        rc_row x, const double *values, const int32_t *lanes, int64_t n, double *weights,
        int64_t stride,
    ) noexcept


# ------------------------------------------------------------------------------ sampling


cdef inline uint64_t _mix(uint64_t z) noexcept nogil:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014): a good hash of 64 bits."""
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline uint64_t _key(uint64_t seed, int64_t t) noexcept nogil:
    return _mix(seed + <uint64_t> 0x9E3779B97F4A7C15 * <uint64_t> (t + 1))


cdef inline uint64_t _pair(uint64_t key, int64_t pair) noexcept nogil:
    """64 random bits for two neighbouring members."""
    return _mix(key ^ (<uint64_t> 0xD1342543DE82EF95 * <uint64_t> (pair + 1)))


cdef inline uint32_t _draw(uint64_t key, int64_t member) noexcept nogil:
    cdef uint64_t bits = _pair(key, member >> 1)
    return <uint32_t> (bits >> 32 if member & 1 else bits)


cdef inline int32_t _times(uint32_t draw, const uint64_t *cumulative, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    cdef int32_t times = 0
    for i in range(n):
        times += draw >= cumulative[i]
    return times


def draws(
    uint64_t seed, int64_t t, const uint64_t[::1] cumulative not None, int32_t[::1] out not None
):
    """Write how often each member takes the example at time t. O(members).

    Parameters
    ----------
    seed, t : int
        In.
    cumulative : uint64 array
        In. Ascending: a member takes the example once for each entry at most its 32-bit draw.
    out : int32 array, shape (n_members,)
        Out.
    """
    cdef int64_t j
    cdef uint64_t key = _key(seed, t)
    if cumulative.shape[0] < 1:
        raise ValueError("cumulative is empty")
    for j in range(out.shape[0]):
        out[j] = _times(_draw(key, j), &cumulative[0], cumulative.shape[0])


# ------------------------------------------------------------------------------ members


cdef struct Tile:
    int64_t first  # number of the first member
    int64_t n  # members; the lanes beyond are padding
    int64_t width  # lanes
    double *weights  # n_features * width, lane j of a feature at feature * width + j
    int64_t *steps  # (n_ranks - 1) * width
    double *thresholds
    double *weight_sums  # or NULL
    int64_t *step_sums  # or NULL
    rc_counts *seen  # width
    int64_t *survived  # width
    int32_t n_ranks
    bint ties_err
    double scale
    double *scores  # width, scratch
    double *values  # width, scratch: changes along the example
    int32_t *drawn  # width + 2, scratch: lanes that take the example
    int32_t *times  # width, scratch: how often


cdef inline int32_t _strided_rank(
    const double *thresholds, int64_t stride, int32_t n_ranks, double score
) noexcept nogil:
    cdef int32_t r, rank = 0
    for r in range(n_ranks - 1):
        rank += score >= thresholds[r * stride]
    return rank


cdef inline int64_t _draw_once(
    const Tile *m, uint64_t key, uint32_t least
) noexcept nogil:
    """List the lanes that take an example, each at most once; their number."""
    cdef int64_t j, n = 0
    cdef uint64_t bits
    # Written always, kept when drawn: no branch to mispredict.
    for j in range(0, m.n, 2):
        bits = _pair(key, (m.first + j) >> 1)
        m.drawn[n] = <int32_t> j
        n += <uint32_t> bits >= least
        m.drawn[n] = <int32_t> (j + 1)
        n += <uint32_t> (bits >> 32) >= least
    if n and m.drawn[n - 1] == m.n:
        n -= 1  # the pair of an odd last member
    return n


cdef inline int64_t _draw_often(
    const Tile *m, uint64_t key, const uint64_t *cumulative, Py_ssize_t n_cumulative
) noexcept nogil:
    """List the lanes that take an example, and how often; their number."""
    cdef int64_t j, n = 0
    for j in range(m.n):
        m.times[n] = _times(_draw(key, m.first + j), cumulative, n_cumulative)
        m.drawn[n] = <int32_t> j
        n += m.times[n] > 0
    return n


cdef inline void _learn_wrong(
    const Tile *m, rc_row x, int32_t rank, const int32_t *lanes, int64_t n, int32_t *moved
) noexcept nogil:
    """What mistakes of the n lanes listed do to their parameters."""
    cdef int64_t r, j
    for r in range(n):
        j = lanes[r]
        m.values[r] = move_thresholds(
            m.scores[j], rank, m.n_ranks, m.ties_err, m.scale, m.seen[j].t - 1,
            m.thresholds + j, m.steps + j, m.step_sums + j if m.step_sums != NULL else NULL,
            m.width, moved,
        )
    rc_lane_axpys(x, m.values, lanes, n, m.weights, m.width)
    if m.weight_sums != NULL:
        for r in range(n):
            m.values[r] *= <double> (m.seen[lanes[r]].t - 1)  # the example is counted already
        rc_lane_axpys(x, m.values, lanes, n, m.weight_sums, m.width)


cdef inline bint _learn_once(
    const Tile *m, rc_row x, int32_t rank, int64_t n_drawn, int32_t *moved
) noexcept nogil:
    """Each lane listed learns the example; whether a score overflowed."""
    cdef int64_t j, r, wrong, n_wrong = 0
    cdef double score
    cdef int32_t predicted
    cdef bint overflow = False
    for r in range(n_drawn):
        j = m.drawn[r]
        score = m.scores[j]
        overflow |= score - score != 0
        predicted = _strided_rank(m.thresholds + j, m.width, m.n_ranks, score)
        wrong = predicted != rank
        count(m.seen + j, predicted, rank)
        m.survived[j] = (m.survived[j] + 1) & (wrong - <int64_t> 1)  # 0 if wrong
        m.drawn[n_wrong] = <int32_t> j  # n_wrong <= r: overwrites what was read
        n_wrong += wrong
    if n_wrong and not overflow:
        _learn_wrong(m, x, rank, m.drawn, n_wrong, moved)
    return overflow


cdef inline bint _learn_often(
    const Tile *m, rc_row x, int32_t rank, int64_t n_drawn, int32_t *moved
) noexcept nogil:
    """Each lane listed learns the example as often as it drew it."""
    cdef int64_t r
    cdef int32_t j, predicted, left
    for r in range(n_drawn):
        j = m.drawn[r]
        left = m.times[r]
        while True:
            if m.scores[j] - m.scores[j] != 0:
                return True
            predicted = _strided_rank(m.thresholds + j, m.width, m.n_ranks, m.scores[j])
            count(m.seen + j, predicted, rank)
            m.survived[j] += 1
            if predicted != rank:
                m.survived[j] = 0
                _learn_wrong(m, x, rank, &j, 1, moved)
            left -= 1
            if left == 0:
                break
            # Of its whole block: the neighbours that come later have the same scores again.
            rc_lane_scores(x, m.weights, m.width, &j, 1, m.scores)
    return False


cdef int64_t _learn_tile(
    const rc_rows *X, const int32_t *ranks, const int32_t *order, int64_t start, int64_t stop,
    int64_t t, uint64_t seed, const uint64_t *cumulative, Py_ssize_t n_cumulative,
    const Tile *m, int32_t *moved,
) noexcept nogil:
    """A tile over a block of examples; the first position it could not learn, or stop."""
    cdef int64_t i, row, n_drawn
    cdef uint64_t key
    cdef int32_t *row_moved
    cdef bint failed
    cdef rc_row x
    for i in range(start, stop):
        row = order[i] if order != NULL else i
        if not 0 <= ranks[row] < m.n_ranks:
            return i
        key = _key(seed, t + i - start)
        if n_cumulative == 1:
            n_drawn = _draw_once(m, key, <uint32_t> cumulative[0])
        else:
            n_drawn = _draw_often(m, key, cumulative, n_cumulative)
        if n_drawn == 0:
            continue
        x = rc_rows_get(X, row)
        rc_lane_scores(x, m.weights, m.width, m.drawn, n_drawn, m.scores)
        row_moved = moved + (i - start) * (m.n_ranks - 1)
        if n_cumulative == 1:
            failed = _learn_once(m, x, ranks[row], n_drawn, row_moved)
        else:
            failed = _learn_often(m, x, ranks[row], n_drawn, row_moved)
        if failed:
            return i
    return stop


def learn_members(
    object rows not None,
    const int32_t[::1] ranks not None,
    const int32_t[::1] order,
    int64_t start,
    int64_t stop,
    int64_t t,
    uint64_t seed,
    const uint64_t[::1] cumulative not None,
    int64_t n_members,
    int64_t first,
    int64_t last,
    double[:, :, ::1] weights not None,
    int64_t[:, :, ::1] steps not None,
    double[:, :, ::1] thresholds not None,
    double[:, :, ::1] weight_sums,
    int64_t[:, :, ::1] step_sums,
    int64_t[:, ::1] seen not None,
    int64_t[::1] survived not None,
    double scale,
    bint strict,
    int32_t[:, ::1] moved not None,
):
    """Let the members of tiles first .. last - 1 learn what they draw of a block of examples.

    Parameters
    ----------
    rows, ranks, order, start, stop
        In. As in ``passes.learn``.
    t : int
        In. Examples seen before position start.
    seed, cumulative
        In. Who draws what, see `draws`.
    n_members : int
        In. The lanes beyond are padding.
    first, last : int
        In. Range of the tiles.
    weights, weight_sums : float64 arrays, shape (n_tiles, n_features, width)
        In and out. The width is a multiple of 4. The sums, those of the steps too, are None unless
        averaging.
    steps, thresholds, step_sums : int64 and float64 arrays, shape (n_tiles, n_ranks - 1, width)
        In and out.
    seen : int64 array, shape (n_tiles * width, 3)
        In and out. Examples drawn, their total rank loss, mistakes.
    survived : int64 array, shape (n_tiles * width,)
        In and out. Examples ranked rightly since the last mistake.
    scale, strict
        In. As in ``PRankState``.
    moved : int32 array, shape (stop - start, n_ranks - 1)
        In and out. The members' threshold steps are added.

    Returns
    -------
    int
        ``stop``, or a position whose score overflowed for some member.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_tiles = weights.shape[0], width = weights.shape[2], tasks = moved.shape[1]
    cdef int64_t i, j, reached = stop
    cdef Tile m
    if (
        not rows.canonical
        or ranks.shape[0] != X.n_rows
        or (order is not None and order.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= X.n_rows
        or moved.shape[0] != stop - start
        or tasks < 1
        or width < 4
        or width % 4
        or not 0 <= first <= last <= n_tiles
        or not 1 <= n_members <= n_tiles * width
        or weights.shape[1] != X.n_features
        or not _same_shape(steps.shape, n_tiles, tasks, width)
        or not _same_shape(thresholds.shape, n_tiles, tasks, width)
        or seen.shape[0] != n_tiles * width
        or seen.shape[1] != 3
        or survived.shape[0] != n_tiles * width
        or cumulative.shape[0] < 1
        or (cumulative.shape[0] == 1 and cumulative[0] >> 32)
        or (weight_sums is None) != (step_sums is None)
        or (
            weight_sums is not None
            and not _same_shape(weight_sums.shape, n_tiles, X.n_features, width)
        )
        or (step_sums is not None and not _same_shape(step_sums.shape, n_tiles, tasks, width))
    ):
        raise ValueError("rows, ranks, order, range and members do not fit together")
    cdef const int32_t *visits = NULL
    if order is not None:
        visits = &order[0]
        for i in range(start, stop):
            if not 0 <= order[i] < X.n_rows:
                raise ValueError(f"order has no row {order[i]}")
    if stop == start or first == last:
        return stop
    cdef double[::1] scores = array("d", bytes(8 * width))
    cdef double[::1] values = array("d", bytes(8 * width))
    cdef int32_t[::1] drawn = array("i", bytes(4 * (width + 2)))
    cdef int32_t[::1] times = array("i", bytes(4 * (width + 2)))
    m.width = width
    m.n_ranks = <int32_t> tasks + 1
    m.ties_err = not strict
    m.scale = scale
    m.scores = &scores[0]
    m.values = &values[0]
    m.drawn = &drawn[0]
    m.times = &times[0]
    with nogil:
        for j in range(first, last):
            m.first = j * width
            m.n = min(width, n_members - m.first)
            m.weights = &weights[j, 0, 0]
            m.steps = &steps[j, 0, 0]
            m.thresholds = &thresholds[j, 0, 0]
            m.weight_sums = &weight_sums[j, 0, 0] if weight_sums is not None else NULL
            m.step_sums = &step_sums[j, 0, 0] if step_sums is not None else NULL
            m.seen = <rc_counts *> &seen[m.first, 0]
            m.survived = &survived[m.first]
            reached = _learn_tile(
                X, &ranks[0], visits, start, stop, t, seed, &cumulative[0], cumulative.shape[0],
                &m, &moved[0, 0],
            )
            if reached < stop:
                break
    return reached


cdef bint _same_shape(const Py_ssize_t *shape, int64_t a, int64_t b, int64_t c) noexcept:
    return shape[0] == a and shape[1] == b and shape[2] == c


# ------------------------------------------------------------------------------ their mean


cdef struct MeanState:
    double *weights  # n_features: the mean of the members' weights
    int64_t *totals  # n_ranks - 1: the sum of the members' steps
    double *thresholds  # n_ranks - 1: scale * totals / n_members
    const int32_t *moved  # what the members moved their thresholds by, example for example
    int64_t left  # examples in moved yet to come
    double scale
    double n_members
    int32_t n_ranks
    rc_counts seen


cdef int32_t mean_update(MeanState *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double score = rc_dot(x, m.weights)
    cdef int32_t predicted, r, tasks = m.n_ranks - 1, change = 0
    if score - score != 0 or not 0 <= rank < m.n_ranks or m.left == 0:
        return -1
    predicted = rc_rank(m.thresholds, m.n_ranks, score)
    for r in range(tasks):
        change += m.moved[r]
        m.totals[r] -= m.moved[r]
        # Quotients of ordered integers by one divisor stay ordered.
        m.thresholds[r] = m.scale * (<double> m.totals[r] / m.n_members)
    if change:
        rc_axpy(x, change / m.n_members, m.weights)
    m.moved += tasks
    m.left -= 1
    count(&m.seen, predicted, rank)
    return predicted


@final
cdef class Mean:
    """The mean of the members, about to follow them through a block of examples.

    Attributes
    ----------
    capsule : capsule
        The learner for ``passes.learn``, valid while this object lives.
    """

    cdef MeanState m
    cdef Learner learner
    cdef readonly object capsule
    cdef tuple arrays

    def __init__(
        self,
        double[::1] weights not None,
        int64_t[::1] totals not None,
        double[::1] thresholds not None,
        const int32_t[:, ::1] moved not None,
        double scale,
        int64_t n_members,
    ):
        cdef int64_t tasks = totals.shape[0]
        if (
            tasks < 1
            or weights.shape[0] < 1
            or thresholds.shape[0] != tasks
            or moved.shape[0] < 1
            or moved.shape[1] != tasks
            or n_members < 1
        ):
            raise ValueError("weights, totals, thresholds and moved do not fit together")
        self.arrays = (weights, totals, thresholds, moved)
        self.m.weights = &weights[0]
        self.m.totals = &totals[0]
        self.m.thresholds = &thresholds[0]
        self.m.moved = &moved[0, 0]
        self.m.left = moved.shape[0]
        self.m.scale = scale
        self.m.n_members = <double> n_members
        self.m.n_ranks = <int32_t> tasks + 1
        self.learner.update = <update_t> mean_update
        self.learner.state = &self.m
        self.learner.seen = &self.m.seen
        self.learner.n_features = weights.shape[0]
        self.learner.n_ranks = self.m.n_ranks
        self.capsule = PyCapsule_New(&self.learner, "rankcore.learner", NULL)


# ------------------------------------------------------------------------------ votes


def tally(
    object rows not None,
    const double[:, :, ::1] weights not None,
    const double[:, :, ::1] thresholds not None,
    const int64_t[::1] votes not None,
    int64_t[:, ::1] out not None,
):
    """Write how many votes each rank of each row gets. O(n_values * models).

    Parameters
    ----------
    rows : Rows
        In.
    weights : float64 array, shape (n_tiles, n_features, width)
        In. Of all models; the width is 1 or a multiple of 4.
    thresholds : float64 array, shape (n_tiles, n_ranks - 1, width)
        In.
    votes : int64 array, shape (n_models,)
        In. Votes of each model; the lanes beyond are padding.
    out : int64 array, shape (n_rows, n_ranks)
        Out.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_tiles = weights.shape[0], width = weights.shape[2], tasks = out.shape[1] - 1
    cdef int64_t i, j, tile, n = votes.shape[0]
    cdef int32_t rank
    if (
        n < 1
        or n > n_tiles * width
        or (width != 1 and width % 4)
        or tasks < 1
        or weights.shape[1] != X.n_features
        or not _same_shape(thresholds.shape, n_tiles, tasks, width)
        or out.shape[0] != X.n_rows
    ):
        raise ValueError("rows, weights, thresholds, votes and out do not fit together")
    cdef double[::1] scores = array("d", bytes(8 * width))
    cdef int32_t[::1] lanes = array("i", range(width))
    out[:, :] = 0
    with nogil:
        for tile in range(n_tiles):
            for i in range(X.n_rows):
                rc_lane_scores(
                    rc_rows_get(X, i), &weights[tile, 0, 0], width, &lanes[0], width, &scores[0]
                )
                for j in range(min(width, n - tile * width)):
                    rank = _strided_rank(
                        &thresholds[tile, 0, j], width, <int32_t> tasks + 1, scores[j]
                    )
                    out[i, rank] += votes[tile * width + j]
