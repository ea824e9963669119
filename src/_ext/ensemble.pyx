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

import numpy as np

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._forgetting cimport forget
from rankcore._ext._prank cimport count, update_lazy_sum
from rankcore._ext._units cimport rc_units
from rankcore._ext.online_model cimport OnlineModel, update_t
from rankcore.core cimport (
    rc_axpy, rc_counts, rc_dot, rc_forgetting, rc_rank, rc_row, rc_rows, rc_rows_get
)

from rankcore._ext.online_model import (
    MARGIN, MOST_COUNTED, SCALE, Array, are_counts, check_ascending, check_steps
)


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
        const double *offsets
        double *moves
        double *changes
        int64_t *units
        int64_t n
        int64_t width
        double scale
        double margin
        double gain
        double past
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
        const rc_units *units
        double *standardized
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
    double *real_step_sums  # or NULL, of averages that forget
    rc_counts *seen
    int64_t *survived


cdef void _begin(const Tile *members, const rc_lanes *m) noexcept nogil:
    """Copy the members to the lanes."""
    cdef int64_t r, j
    for r in range(m.n_ranks - 1):
        for j in range(m.n):
            m.steps[r * m.n + j] = <double> members.steps[r * m.width + j]
            if members.real_step_sums != NULL:
                m.late[r * m.n + j] = -members.real_step_sums[r * m.width + j]
            elif m.late != NULL:
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
                members.step_sums[at] = update_lazy_sum(
                    update_lazy_sum(members.step_sums[at], 1, <int64_t> m.late[lane]),
                    members.seen[j].t, members.steps[at] - steps,
                )
            if members.real_step_sums != NULL:
                members.real_step_sums[at] = -m.late[lane]
            members.steps[at] = steps
            members.thresholds[at] = m.scale * m.steps[lane]
    for j in range(m.n):
        members.seen[j].t += <int64_t> m.taken[j]
        members.seen[j].rank_loss += <int64_t> m.rank_loss[j]
        members.seen[j].mistakes += <int64_t> m.mistakes[j]
        members.survived[j] = <int64_t> m.survived[j]


cdef struct MeanState:
    double *weights  # n_features: the mean of the members' weights
    int64_t *totals  # n_ranks - 1: the sum of the members' steps
    double *thresholds  # n_ranks - 1: scale * totals / n_members
    const int32_t *moved  # what the members moved their thresholds by, example for example
    int64_t left  # examples in moved yet to come
    const double *offset  # what all thresholds have besides multiples of the scale
    double scale
    double n_members
    int32_t n_ranks
    rc_forgetting forgetting  # of the members
    double *offset_sums  # of the members, or NULL: changed only by new units and by fading
    int64_t n_offset_sums
    rc_counts seen


cdef int32_t mean_update(MeanState *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double score = rc_dot(x, m.weights) - m.offset[0]
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
    forget(&m.forgetting, m.offset_sums, m.n_offset_sums, NULL, 0)
    count(&m.seen, predicted, rank)
    return predicted


@final
cdef class OAPModel(OnlineModel):
    """PRanks that sample one stream, in tiles of members side by side, and their mean.

    The width of the tiles is a multiple of 4; lanes beyond the members are padding.

    Each example is learned twice: a block of rows by the members, in `learn_members`, and then row
    by row by the mean, in ``online_loop.learn`` after `follow_members`.
    """

    averaged_by = "average_members"
    declared = {
        "weights": Array("tiles", "features", "width", averaged=True, aligned=True),
        "steps": Array("tiles", "tasks", "width", dtype="int64", averaged=True),
        "thresholds": Array("tiles", "tasks", "width", derived=True),  # without the offsets
        "member_offsets": Array("tiles", 1, "width", averaged=True, aligned=True),
        "mean": Array("features"),
        "mean_offset": Array(1),
        "totals": Array("tasks", dtype="int64"),
        "mean_thresholds": Array("tasks", derived=True),
        "seen": Array("lanes", 3, dtype="int64", added=True),
        "survived": Array("lanes", dtype="int64"),
        "seed": Array(1, dtype="int64"),
        "scale": SCALE,
        "margin": MARGIN,
    }
    folds = (("weights", "member_offsets", 1), ("mean", "mean_offset", 1))

    cdef MeanState m
    cdef double *offsets
    cdef double *weights
    cdef double *weight_sums
    cdef int64_t *steps
    cdef double *thresholds
    cdef int64_t *step_sums
    cdef double *real_step_sums
    cdef rc_counts *seen
    cdef int64_t *survived
    cdef const double *scale
    cdef readonly int64_t n_tiles, width
    cdef object moved  # keeps alive what the mean will learn from

    cdef int bind(self) except -1:
        self.n_tiles, _, self.width = self["weights"].shape
        if self.width < 4 or self.width % 4:
            raise ValueError(
                f"members must be stored in tiles of a multiple of 4; got tiles of {self.width}"
            )
        n, n_lanes = self.settings["n_estimators"], self.n_tiles * self.width
        if self.n_tiles != -(-n // self.width) or len(self["survived"]) != n_lanes:
            raise ValueError(f"{self.n_tiles} tiles of {self.width} are not those of {n} members")
        self.weights = <double *> self.at("weights")
        self.weight_sums = <double *> self.at("weights_sums")
        self.steps = <int64_t *> self.at("steps")
        self.thresholds = <double *> self.at("thresholds")
        self.step_sums = <int64_t *> self.at("steps_sums") if not self.forgets else NULL
        self.real_step_sums = <double *> self.at("steps_sums") if self.forgets else NULL
        self.seen = <rc_counts *> self.at("seen")
        self.survived = <int64_t *> self.at("survived")
        self.scale = <const double *> self.at("scale")
        self.offsets = <double *> self.at("member_offsets")
        self.m.offset = <const double *> self.at("mean_offset")
        self.m.weights = <double *> self.at("mean")
        self.m.totals = <int64_t *> self.at("totals")
        self.m.thresholds = <double *> self.at("mean_thresholds")
        self.m.left = 0
        self.m.offset_sums = <double *> self.at("member_offsets_sums")
        self.m.n_offset_sums = self["member_offsets"].size
        self.m.n_members = self.settings["n_estimators"]
        self.m.n_ranks = self.n_ranks
        return self.learns_by(
            <update_t> mean_update, NULL, &self.m, &self.m.seen, &self.m.forgetting
        )

    cdef int follow(self, object params) except -1:
        self.m.scale = self.scale[0]
        return 0

    def derive(self):
        self["thresholds"][...] = self["scale"] * self["steps"]
        mean = self["totals"] / self.settings["n_estimators"]
        self["mean_thresholds"][...] = self["scale"] * mean

    def check(self):
        seen, survived = self["seen"], self["survived"]
        if (
            not are_counts(seen, survived)
            or survived.sum(dtype=np.float64) > MOST_COUNTED
            or self["seed"][0] < 0
        ):
            raise ValueError(f"the counts of the members must be from 0 to {MOST_COUNTED}")
        check_steps(self.arrays, axis=1)
        check_ascending(self.arrays, "totals")

    def members(self):
        """Return the members' weights and thresholds for predictions, in tiles."""
        means = {name: self.mean(name) for name in ("weights", "member_offsets")}
        weights, offsets = self.folded(means).values()
        return weights, self["scale"][0] * self.mean("steps") + offsets

    def times(self):
        if self.forgets:  # the age of an example is the number of rows since, drawn or not
            return OnlineModel.times(self)
        return self["seen"][:, 0].reshape(self.n_tiles, 1, self.width)

    def merge_counts(self, models, base):
        survived = np.zeros_like(base["survived"])
        unbroken = np.ones(survived.size, dtype=bool)
        for one in models:
            same = one["seen"][:, 2] == base["seen"][:, 2]  # no mistake since
            survived += one["survived"] - base["survived"] * same
            unbroken &= same
        self["survived"][...] = survived + base["survived"] * unbroken

    def renew(self):
        self["mean"][...] = self._of_members(self["weights"]).mean(axis=1)
        self["mean_offset"][...] = self._of_members(self["member_offsets"]).mean(axis=1)
        self["totals"][...] = self._of_members(self["steps"]).sum(axis=1)

    def _of_members(self, tiles):
        """Return the columns of the members in an array of tiles."""
        n = self.settings["n_estimators"]
        return tiles.transpose(1, 0, 2).reshape(tiles.shape[1], -1)[:, :n]

    def compute(self):
        """Return the means of the members' parameters, summed in the order of the members."""
        if not self.averages:
            means = {name: self[name] for name in ("mean", "mean_offset")}
            weights, offset = self.folded(means).values()
            return weights, self["mean_thresholds"] + offset
        weights, thresholds = map(self._of_members, self.members())
        return weights.copy().mean(axis=1), thresholds.copy().mean(axis=1)

    def follow_members(self, const int32_t[:, ::1] moved not None):
        """Let the mean learn further examples, given the threshold steps of all members."""
        if moved.shape[0] < 1 or moved.shape[1] != self.n_ranks - 1:
            raise ValueError("moved must have a row for each example and a column for each task")
        self.moved = moved
        self.m.moved = &moved[0, 0]
        self.m.left = moved.shape[0]

    cdef void place(self, int64_t member, int64_t last, Tile *tile, rc_lanes *m) noexcept nogil:
        """Point to the members from ``member`` up to ``last`` that share its tile."""
        cdef int64_t width = self.width, d = self.n_features, tasks = self.n_ranks - 1
        cdef int64_t t = member // width, lane = member % width
        m.n = min(last - member, width - lane)
        m.weights = self.weights + t * d * width + lane
        m.weight_sums = NULL
        if self.weight_sums != NULL:
            m.weight_sums = self.weight_sums + t * d * width + lane
        m.offsets = self.offsets + t * width + lane if self.standard.active else NULL
        tile.steps = self.steps + t * tasks * width + lane
        tile.thresholds = self.thresholds + t * tasks * width + lane
        tile.step_sums = NULL
        if self.step_sums != NULL:
            tile.step_sums = self.step_sums + t * tasks * width + lane
        tile.real_step_sums = NULL
        if self.real_step_sums != NULL:
            tile.real_step_sums = self.real_step_sums + t * tasks * width + lane
        tile.seen = self.seen + member
        tile.survived = self.survived + member

    def learn_members(
        self,
        object params not None,  # parameters of the rule, as attributes: the estimator
        object rows not None,  # as in ``online_loop.learn``
        const int32_t[::1] ranks not None,
        const int32_t[::1] order,
        int64_t start,
        int64_t stop,
        # (1 or n_rows, any): thresholds of the draws, for all rows or for each, see `draws`
        const uint64_t[:, ::1] cumulative not None,
        int64_t first,  # range of the members, padding included: multiples of 4
        int64_t last,
        # in and out, (stop - start, n_ranks - 1): the members' threshold steps are added
        int32_t[:, ::1] moved not None,
    ):
        """Let the members first .. last - 1 learn the examples of a block that they draw.

        Threads may call it at once for different members. Returns ``stop``, or a position whose
        score overflowed for some member.
        """
        cdef const rc_rows *X = checked_rows(rows)
        cdef int64_t width = self.width, tasks = self.n_ranks - 1
        cdef int64_t i, j, member = first, reached = stop
        cdef int64_t n_members = self.settings["n_estimators"]
        cdef Tile tile
        cdef rc_lanes m
        cdef rc_lesson lesson
        if (
            not rows.canonical
            or ranks.shape[0] != X.n_rows
            or not 0 <= start <= stop <= (X.n_rows if order is None else order.shape[0])
            or moved.shape[0] != stop - start
            or moved.shape[1] != tasks
            or self.n_features != X.n_features
            or not 0 <= first <= last <= self.n_tiles * width
            or first % 4
            or last % 4
            or cumulative.shape[0] not in (1, X.n_rows)
            or cumulative.shape[1] < 1
        ):
            raise ValueError("rows, ranks, order, range and members are inconsistent")
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
        if not self.writable:
            raise ValueError("the arrays of the members are read-only")
        self.computed = None
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
        m.late = m.steps + tasks * width if self.averages else NULL
        m.gain = self.gain
        m.past = self.past[0] if self.past != NULL else 0
        m.width = width
        m.scale = self.scale[0]
        m.margin = self["margin"][0]
        m.n_ranks = self.n_ranks
        m.ties_err = params.tie != "strict"
        lesson.rows = X
        lesson.ranks = &ranks[0]
        lesson.order = &order[0] if order is not None else NULL
        lesson.start = start
        lesson.stop = stop
        lesson.t = self.counts[0]  # the mean learns the block later
        lesson.seed = <uint64_t> (<int64_t> self["seed"][0])
        lesson.cumulative = &cumulative[0, 0]
        lesson.n_cumulative = cumulative.shape[1]
        lesson.per_row = cumulative.shape[1] if cumulative.shape[0] > 1 else 0
        lesson.moved = &moved[0, 0]
        lesson.units = NULL
        if self.standard.active and not self.standard.done:
            lesson.units = &self.standard.units
        cdef double[::1] standardized = array("d", bytes(8 * self.n_features))
        lesson.standardized = &standardized[0]
        cdef bint fetch = (  # the rows will use most columns
            X.indptr != NULL and not self.standard.active
            and X.n_features < X.indptr[X.n_rows] // X.n_rows * (stop - start)
        )
        with nogil:
            while member < last:
                self.place(member, last, &tile, &m)
                lesson.first = member
                lesson.n = max(0, min(m.n, n_members - member))
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
    """Add the votes of models for the ranks of rows. O(n_values * models).

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
        raise ValueError("rows, weights, thresholds, votes and out are inconsistent")
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
