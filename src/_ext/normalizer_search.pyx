"""Find the stump of each column that leaves the minimum weight of pairs, e0 + 2 sqrt(e+ e-).

Here the weights e+ of the pairs that a stump orders correctly and e- of those it orders wrongly are
computed for every stump. The bins of a column are visited in descending order; the rows that fire
so far are a set A, and both weights are updated as rows enter it. A row x of label l and query q
changes them by

    e+ += u (V of the labels below - those in A) - v (U of the labels above that are in A)
    e- += v (U of the labels above - those in A) - u (V of the labels below that are in A)

with the factors u, v of its weight, scaled so that all pairs add up to 1. The rows of a sparse
column without an entry enter together, query by query, by the remaining sums; a query without an
entry in the column has no pairs to order. Listed pairs are updated when either row enters.

Arrays by row, (n_rows,), hold u, v and the level of each row; arrays by level, (n_levels,), hold
the sums of u and v in A, and over all rows. A level is a label of a query. Cost of a column:
O(entries * levels of a query); with listed pairs, O(entries + n_rows + n_pairs).
"""

from cython cimport final
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._columns cimport Binned, binned_of


@final
cdef class LabelScan:
    """Pairs of all rows of a query that differ in label."""

    cdef const int32_t[::1] level_of
    cdef const int32_t[::1] first
    cdef const int32_t[::1] last
    cdef const double[::1] u
    cdef const double[::1] v
    cdef const double[::1] all_u
    cdef const double[::1] all_v
    cdef double[::1] in_u
    cdef double[::1] in_v
    cdef double[::1] held_u
    cdef double[::1] held_v
    cdef int32_t[::1] touched
    cdef uint8_t[::1] seen
    cdef int64_t n_touched
    cdef double plus
    cdef double minus

    def __init__(
        self,
        # (n_rows,): level of each row; levels are numbered through the queries, the best of each
        # first
        const int32_t[::1] level_of not None,
        # each (n_levels,): first level of the query of a level, and the one after its last
        const int32_t[::1] first not None,
        const int32_t[::1] last not None,
        # each (n_rows,), renewed by the caller in each round: factors of the weights of pairs,
        # which add up to 1
        const double[::1] u not None,
        const double[::1] v not None,
        const double[::1] all_u not None,  # each (n_levels,): their sums by level, also renewed
        const double[::1] all_v not None,
        double[::1] in_u not None,  # each (n_levels,): scratch, zeros
        double[::1] in_v not None,
        double[::1] held_u not None,
        double[::1] held_v not None,
        int32_t[::1] touched not None,  # (n_levels,): scratch
        uint8_t[::1] seen not None,  # (n_levels,): scratch, zeros
    ):
        cdef int64_t i, n = level_of.shape[0], m = first.shape[0]
        cdef bint fits = (
            u.shape[0] == v.shape[0] == n
            and last.shape[0] == all_u.shape[0] == all_v.shape[0] == m
            and in_u.shape[0] == in_v.shape[0] == held_u.shape[0] == held_v.shape[0] == m
            and touched.shape[0] == seen.shape[0] == m
        )
        for i in range(n if fits else 0):
            fits = fits and 0 <= level_of[i] < m
        for i in range(m if fits else 0):
            fits = fits and 0 <= first[i] <= i < last[i] <= m
        if not fits:
            raise ValueError("the levels and rows are inconsistent")
        self.level_of, self.first, self.last = level_of, first, last
        self.u, self.v, self.all_u, self.all_v = u, v, all_u, all_v
        self.in_u, self.in_v, self.held_u, self.held_v = in_u, in_v, held_u, held_v
        self.touched, self.seen = touched, seen

    cdef void hold(self, int64_t row) noexcept nogil:
        """Record a row with an entry."""
        cdef int64_t k = self.level_of[row], i
        if not self.seen[k]:
            for i in range(self.first[k], self.last[k]):
                self.seen[i] = 1
                self.touched[self.n_touched] = <int32_t> i
                self.n_touched += 1
        self.held_u[k] += self.u[row]
        self.held_v[k] += self.v[row]

    cdef void clear(self, bint held) noexcept nogil:
        """Empty A; also forget the entries of the column if ``held``."""
        cdef int64_t i, k
        for i in range(self.n_touched):
            k = self.touched[i]
            self.in_u[k] = self.in_v[k] = 0.0
            if held:
                self.held_u[k] = self.held_v[k] = 0.0
                self.seen[k] = 0
        if held:
            self.n_touched = 0
        self.plus = self.minus = 0.0

    cdef void enter(self, int64_t row) noexcept nogil:
        """Add a row to A."""
        cdef int64_t k = self.level_of[row], i
        cdef double u = self.u[row], v = self.v[row]
        for i in range(k + 1, self.last[k]):
            self.plus += u * (self.all_v[i] - self.in_v[i])
            self.minus -= u * self.in_v[i]
        for i in range(self.first[k], k):
            self.plus -= v * self.in_u[i]
            self.minus += v * (self.all_u[i] - self.in_u[i])
        self.in_u[k] += u
        self.in_v[k] += v

    cdef void enter_others(self) noexcept nogil:
        """Add all rows without an entry to A."""
        cdef int64_t i, k
        for i in range(self.n_touched):
            k = self.touched[i]
            if k == self.first[k]:
                self._count(k, self.last[k], -1.0)
        for i in range(self.n_touched):
            k = self.touched[i]
            self.in_u[k] += self.all_u[k] - self.held_u[k]
            self.in_v[k] += self.all_v[k] - self.held_v[k]
        for i in range(self.n_touched):
            k = self.touched[i]
            if k == self.first[k]:
                self._count(k, self.last[k], 1.0)

    cdef void _count(self, int64_t first, int64_t last, double sign) noexcept nogil:
        """Add or subtract the weight of a query."""
        cdef int64_t k
        cdef double inside = 0.0, outside = 0.0  # V of the levels below
        for k in range(last - 1, first - 1, -1):
            self.plus += sign * self.in_u[k] * outside
            self.minus += sign * (self.all_u[k] - self.in_u[k]) * inside
            inside += self.in_v[k]
            outside += self.all_v[k] - self.in_v[k]


@final
cdef class PairScan:
    """Listed pairs."""

    cdef const int64_t[::1] starts
    cdef const int32_t[::1] others
    cdef const uint8_t[::1] wins
    cdef const int32_t[::1] which
    cdef const double[::1] weights
    cdef uint8_t[::1] inside
    cdef uint8_t[::1] held
    cdef double plus
    cdef double minus

    def __init__(
        self,
        # (n_rows + 1,): where the pairs of each row begin in the following arrays
        const int64_t[::1] starts not None,
        const int32_t[::1] others not None,  # (2 * n_pairs,): the other row of the pair
        const uint8_t[::1] wins not None,  # (2 * n_pairs,): whether this row is the winner
        const int32_t[::1] which not None,  # (2 * n_pairs,): number of the pair
        # (n_pairs,), renewed by the caller in each round; they add up to 1
        const double[::1] weights not None,
        uint8_t[::1] inside not None,  # each (n_rows,): scratch, zeros
        uint8_t[::1] held not None,
    ):
        cdef int64_t i, n = starts.shape[0] - 1, m = others.shape[0]
        cdef bint fits = (
            inside.shape[0] == held.shape[0] == n
            and wins.shape[0] == which.shape[0] == m
            and starts[0] == 0
            and starts[n] == m
        )
        for i in range(n if fits else 0):
            fits = fits and starts[i] <= starts[i + 1]
        for i in range(m if fits else 0):
            fits = fits and 0 <= others[i] < n and 0 <= which[i] < weights.shape[0]
        if not fits:
            raise ValueError("the pairs and rows are inconsistent")
        self.starts, self.others, self.wins, self.which = starts, others, wins, which
        self.weights, self.inside, self.held = weights, inside, held

    cdef void hold(self, int64_t row) noexcept nogil:
        self.held[row] = 1

    cdef void clear(self, bint held) noexcept nogil:
        cdef int64_t i
        for i in range(self.inside.shape[0]):
            self.inside[i] = 0
            if held:
                self.held[i] = 0
        self.plus = self.minus = 0.0

    cdef void enter(self, int64_t row) noexcept nogil:
        cdef int64_t k
        cdef double weight
        for k in range(self.starts[row], self.starts[row + 1]):
            weight = self.weights[self.which[k]]
            if self.inside[self.others[k]]:
                if self.wins[k]:
                    self.minus -= weight
                else:
                    self.plus -= weight
            elif self.wins[k]:
                self.plus += weight
            else:
                self.minus += weight
        self.inside[row] = 1

    cdef void enter_others(self) noexcept nogil:
        cdef int64_t row
        for row in range(self.held.shape[0]):
            if not self.held[row]:
                self.enter(row)


ctypedef fused scan_t:
    LabelScan
    PairScan


cdef inline int64_t _code(const Binned *columns, int64_t k) noexcept nogil:
    if columns.width == 1:
        return (<const uint8_t *> columns.codes)[k]
    return (<const int32_t *> columns.codes)[k]


cdef void _scan(
    const Binned *columns, int64_t feature, scan_t scan, int32_t *order, int64_t *counts,
    double *edge, double *merit, int32_t *bin, uint8_t *fires_missing,
) noexcept nogil:
    cdef int64_t first = feature * columns.n_rows, n = columns.n_rows, b, i, row
    cdef int64_t n_bins = columns.n_bins[feature], zero = -1, start, stop
    cdef bint missing = columns.has_missing[feature], fires
    cdef double value, difference
    if columns.bounds != NULL:
        first = columns.bounds[feature]
        n = columns.bounds[feature + 1] - first
        if n < columns.n_rows:
            zero = columns.zero_bin[feature]
    edge[0] = 0.0
    merit[0] = -1.0
    bin[0] = -1
    fires_missing[0] = 0
    # Sort the rows by bin.
    for b in range(n_bins + 2):
        counts[b] = 0
    for i in range(n):
        counts[_code(columns, first + i) + 1] += 1
    for b in range(n_bins + 1):
        counts[b + 1] += counts[b]
    for i in range(n):
        row = columns.rows[first + i] if columns.bounds != NULL else i
        b = _code(columns, first + i)
        order[counts[b]] = <int32_t> row
        counts[b] += 1
        scan.hold(row)
    for fires in range(1 + missing):
        scan.clear(False)
        for b in range(n_bins if fires else n_bins - 1, -1, -1):
            start = counts[b - 1] if b else 0
            stop = counts[b]
            for i in range(start, stop):
                scan.enter(order[i])
            if b == zero:
                scan.enter_others()
            if b == n_bins or (b == 0 and (fires or not missing)):
                continue
            difference = sqrt(max(scan.plus, 0.0)) - sqrt(max(scan.minus, 0.0))
            value = difference * difference
            # Ties go to the highest bin, and then to fires_missing = 1.
            if value > merit[0] or (value == merit[0] and b >= bin[0]):
                merit[0] = value
                edge[0] = scan.plus - scan.minus
                bin[0] = <int32_t> b
                fires_missing[0] = fires
    scan.clear(True)


def evaluate(
    object columns not None,
    object scan not None,  # LabelScan or PairScan: not shared by threads
    const int32_t[::1] features not None,  # (n,)
    int32_t[::1] order not None,  # (n_rows,): scratch
    int64_t[::1] counts not None,  # scratch, two more than the maximum number of bins
    # out, (n,): weight of the pairs ordered correctly minus that of the others
    double[::1] edges not None,
    double[::1] merits not None,  # out, (n,): 1 minus the remaining weight
    int32_t[::1] bins not None,  # out, (n,): as for `rankcore._ext.stumps.evaluate`
    uint8_t[::1] fires_missing not None,  # out, (n,)
):
    """Find the stump with the minimum remaining weight in each of some columns.

    O(entries * levels of a query), or O(entries + n_rows + n_pairs) a column.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t i, n = features.shape[0], n_rows
    cdef LabelScan labels = None
    cdef PairScan pairs = None
    if isinstance(scan, LabelScan):
        labels = scan
        n_rows = labels.level_of.shape[0]
    else:
        pairs = scan
        n_rows = pairs.held.shape[0]
    if (
        n_rows != binned.n_rows
        or order.shape[0] != n_rows
        or not edges.shape[0] == merits.shape[0] == bins.shape[0] == fires_missing.shape[0] == n
    ):
        raise ValueError("the arrays do not match the columns")
    for i in range(n):
        if not 0 <= features[i] < binned.n_features:
            raise IndexError(f"there is no column {features[i]}")
        if binned.n_bins[features[i]] + 2 > counts.shape[0]:
            raise ValueError("counts is too small for the bins")
    if n_rows == 0:
        return
    if labels is not None:
        with nogil:
            for i in range(n):
                _scan(binned, features[i], labels, &order[0], &counts[0],
                      &edges[i], &merits[i], &bins[i], &fires_missing[i])
    else:
        with nogil:
            for i in range(n):
                _scan(binned, features[i], pairs, &order[0], &counts[0],
                      &edges[i], &merits[i], &bins[i], &fires_missing[i])
