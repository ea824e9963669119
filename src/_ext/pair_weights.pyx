"""Weights of all pairs as products of one factor per row, without enumeration of pairs.

After any number of rounds the pair (i, j) of query q weighs c_q * exp(-F_i) * exp(F_j), up to a
common factor, where F is the score so far. With u = exp(-F), v = exp(F) and the sums U, V of both
over the rows of each label, the potential of a row is

    c_q / Z * (u * (V of the labels below) - v * (U of the labels above)),

and all quantities of a round are sums over rows (Freund et al. 2003 for two labels). Rows are
grouped by query, best label first. F may be shifted within a query, to keep u and v around 1.

For a row of the last level of its query, which only loses, v is stored; for all others u. Where
both are required, one is computed from the other.

Arrays: ``factors`` (n_rows,), u or v of each row; ``levels`` (n_levels + 1,), where each label of
each query begins; ``queries`` (n_queries + 1,), the levels of each query; ``scales`` (n_queries,),
c_q. A round costs O(n_rows): sums by level, then gradients (and hessians) by row; a pair is never
visited.
"""

from cython cimport final
from libc.math cimport exp, log
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._leaves cimport check_leaves, sum_apart, sum_of

# Maximum range of scores within a query for which weights are in the range of doubles.
cdef enum:
    WIDEST = 900

SPREAD = WIDEST


@final
cdef class LabelWeights:
    """Weights of all pairs of different label, by their factors."""

    cdef double[::1] factors
    cdef const double[::1] masses
    cdef const int64_t[::1] levels
    cdef const int64_t[::1] queries
    cdef const double[::1] scales
    cdef double[:, ::1] sums

    def __init__(
        self,
        # in and out, (n_rows,): u of each row, or v if it is in the last level of its query.
        # Positive.
        double[::1] factors not None,
        # (n_rows,), or None: u times v of each row: the square of its weight. None: 1.
        const double[::1] masses,
        # (n_levels + 1,): where each level of each query begins
        const int64_t[::1] levels not None,
        # (n_queries + 1,): the levels of each query, at least two
        const int64_t[::1] queries not None,
        const double[::1] scales not None,  # (n_queries,): c_q
        double[:, ::1] sums not None,  # (2, n_levels): scratch
    ):
        cdef int64_t i, n_levels = levels.shape[0] - 1, n_queries = queries.shape[0] - 1
        cdef bint fits = (
            n_queries >= 1
            and queries[0] == 0
            and queries[n_queries] == n_levels
            and scales.shape[0] == n_queries
            and levels[0] == 0
            and levels[n_levels] == factors.shape[0]
            and sums.shape[0] == 2
            and sums.shape[1] == n_levels
            and (masses is None or masses.shape[0] == factors.shape[0])
        )
        if fits:
            for i in range(n_queries):
                fits = fits and queries[i] + 2 <= queries[i + 1]
            for i in range(n_levels):
                fits = fits and levels[i] < levels[i + 1]
        if not fits:
            raise ValueError("the levels, queries and rows are inconsistent")
        self.factors = factors
        self.masses = masses
        self.levels = levels
        self.queries = queries
        self.scales = scales
        self.sums = sums

    def differentiate(
        self,
        double[::1] gradients not None,  # out, (n_rows,): the potential of each row
        # out, (n_rows,), or None: sum of the weights of all pairs of the row, which is the second
        # derivative of Z by its score
        double[::1] hessians,
        double total=0.0,  # divisor of the weights; 0: their sum
    ):
        """Write gradients and hessians of the rows, for weights normalised to sum 1.

        Returns Z, the sum of the weights before they are divided. O(n_rows).
        """
        cdef double z = 0.0, by
        cdef int64_t q
        cdef double *second = NULL
        if gradients.shape[0] != self.factors.shape[0] or not (
            hessians is None or hessians.shape[0] == gradients.shape[0]
        ):
            raise ValueError("gradients and hessians do not match the rows")
        if hessians is not None:
            second = &hessians[0]
        with nogil:
            for q in range(self.scales.shape[0]):
                z += self._sum_query(q)
            by = total if total > 0 else z
            for q in range(self.scales.shape[0]):
                self._spread_query(q, by, &gradients[0], second)
        return z

    cdef double _sum_query(self, int64_t q) noexcept nogil:
        """Write U of each level and V of the levels below; return the query's part of Z."""
        cdef int64_t k, i, first = self.queries[q], last = self.queries[q + 1] - 1
        cdef double z = 0.0, below = 0.0, u, v
        for k in range(last, first - 1, -1):
            u = v = 0.0
            if k == last or k == first:
                u = sum_of(&self.factors[self.levels[k]], self.levels[k + 1] - self.levels[k])
                if k == last:
                    v = u
                    u = 0.0
            else:
                for i in range(self.levels[k], self.levels[k + 1]):
                    u += self.factors[i]
                    v += self._other(i)
            self.sums[0, k] = u
            self.sums[1, k] = below
            z += u * below
            below += v
        return z * self.scales[q]

    cdef void _spread_query(
        self, int64_t q, double total, double *gradients, double *hessians
    ) noexcept nogil:
        """Write derivatives from the sums of levels; hessians may be NULL."""
        cdef int64_t k, i, first = self.queries[q], last = self.queries[q + 1] - 1
        cdef double scale = self.scales[q] / total, above = 0.0, win, lose, won, lost
        for k in range(first, last + 1):
            win = scale * self.sums[1, k]
            lose = scale * above
            if k == first:
                for i in range(self.levels[k], self.levels[k + 1]):
                    gradients[i] = win * self.factors[i]
                    if hessians != NULL:
                        hessians[i] = gradients[i]
            elif k == last:
                for i in range(self.levels[k], self.levels[k + 1]):
                    gradients[i] = -lose * self.factors[i]
                    if hessians != NULL:
                        hessians[i] = -gradients[i]
            else:
                for i in range(self.levels[k], self.levels[k + 1]):
                    won = win * self.factors[i]
                    lost = lose * self._other(i)
                    gradients[i] = won - lost
                    if hessians != NULL:
                        hessians[i] = won + lost
            above += self.sums[0, k]

    cdef inline double _other(self, int64_t i) noexcept nogil:
        """Return the other factor of a row, v for u or u for v."""
        return (1.0 if self.masses is None else self.masses[i]) / self.factors[i]

    def measure(self, const uint8_t[::1] fires not None):  # fires: (n_rows,)
        """Return the weights of pairs ordered correctly, wrongly, or with the stump firing on both.

        The weights are normalised to sum 1. O(n_rows).
        """
        cdef double sums[4]
        cdef int64_t q
        if fires.shape[0] != self.factors.shape[0]:
            raise ValueError("fires does not match the rows")
        for q in range(4):
            sums[q] = 0.0
        with nogil:
            for q in range(self.scales.shape[0]):
                self._measure_query(q, &fires[0], sums)
        return sums[0] / sums[3], sums[1] / sums[3], sums[2] / sums[3]

    cdef void _measure_query(self, int64_t q, const uint8_t *fires, double *sums) noexcept nogil:
        cdef double scale = self.scales[q]
        cdef double apart[2]
        # V of the levels below, where the stump does not fire and does
        cdef double silent = 0.0, firing = 0.0
        cdef int64_t k, i, first = self.queries[q], last = self.queries[q + 1] - 1
        for k in range(last, first - 1, -1):
            i = self.levels[k]
            sum_apart(&self.factors[i], fires + i, self.levels[k + 1] - i, apart)
            if k < last:
                sums[0] += scale * apart[1] * silent
                sums[1] += scale * apart[0] * firing
                sums[2] += scale * apart[1] * firing
                sums[3] += scale * (apart[0] + apart[1]) * (silent + firing)
            if first < k < last:
                apart[0] = apart[1] = 0.0
                for i in range(self.levels[k], self.levels[k + 1]):
                    apart[fires[i] & 1] += self._other(i)
            silent += apart[0]
            firing += apart[1]

    def advance(self, const uint8_t[::1] fires not None, double alpha):  # fires: (n_rows,)
        """Add ``alpha`` to the scores of the rows where a stump fires. O(n_rows)."""
        cdef double by[2]
        cdef int64_t q, i, start, stop
        if fires.shape[0] != self.factors.shape[0]:
            raise ValueError("fires does not match the rows")
        with nogil:
            for q in range(self.scales.shape[0]):
                start = self.levels[self.queries[q]]
                stop = self.levels[self.queries[q + 1] - 1]
                by[0] = 1.0
                by[1] = exp(-alpha)
                for i in range(start, stop):
                    self.factors[i] *= by[fires[i] & 1]
                start = stop
                stop = self.levels[self.queries[q + 1]]
                by[1] = exp(alpha)
                for i in range(start, stop):
                    self.factors[i] *= by[fires[i] & 1]

    def between(
        self,
        const int32_t[::1] leaf_of not None,  # (n_rows,): the leaf of each row
        double[::1] below not None,  # each (n_leaves,): scratch
        double[::1] here not None,
        # out, (n_leaves, n_leaves): ``out[a, b]`` is of the pairs whose winner is in leaf a and
        # whose loser is in leaf b
        double[:, ::1] out not None,
    ):
        """Write the weight of the pairs between leaves, normalised to sum 1.

        O(n_rows * n_leaves) at most.
        """
        cdef int64_t q, k, i, a, b, first, last, n = out.shape[0]
        cdef double total = 0.0, scale
        check_leaves(leaf_of, self.factors.shape[0], n)
        if not out.shape[1] == below.shape[0] == here.shape[0] == n:
            raise ValueError("the leaves do not match the rows")
        with nogil:
            for q in range(self.scales.shape[0]):
                total += self._sum_query(q)
            for a in range(n):
                for b in range(n):
                    out[a, b] = 0.0
            for q in range(self.scales.shape[0]):
                first = self.queries[q]
                last = self.queries[q + 1] - 1
                scale = self.scales[q] / total
                for b in range(n):
                    below[b] = 0.0
                for k in range(last, first - 1, -1):
                    if k < last:
                        for a in range(n):
                            here[a] = 0.0
                        for i in range(self.levels[k], self.levels[k + 1]):
                            here[leaf_of[i]] += scale * self.factors[i]
                        for a in range(n):
                            if here[a] > 0.0:
                                for b in range(n):
                                    out[a, b] += here[a] * below[b]
                    if k > first:
                        for i in range(self.levels[k], self.levels[k + 1]):
                            below[leaf_of[i]] += (
                                self.factors[i] if k == last else self._other(i)
                            )

    def move(
        self,
        const int32_t[::1] leaf_of not None,  # (n_rows,)
        const double[::1] values not None,  # (n_leaves,)
    ):
        """Add to the score of each row the value of its leaf. O(n_rows + n_leaves)."""
        from array import array

        cdef int64_t q, i, start, middle, stop, n = values.shape[0]
        cdef double[:, ::1] by
        check_leaves(leaf_of, self.factors.shape[0], n)
        by = memoryview(array("d", bytes(16 * n))).cast("B").cast("d", (2, n))
        with nogil:
            for i in range(n):
                by[0, i] = exp(-values[i])
                by[1, i] = exp(values[i])
            for q in range(self.scales.shape[0]):
                start = self.levels[self.queries[q]]
                middle = self.levels[self.queries[q + 1] - 1]
                stop = self.levels[self.queries[q + 1]]
                for i in range(start, middle):
                    self.factors[i] *= by[0, leaf_of[i]]
                for i in range(middle, stop):
                    self.factors[i] *= by[1, leaf_of[i]]

    def shape(
        self,
        int32_t[::1] level_of,  # (n_rows,), or None
        int32_t[::1] first,  # out, each (n_levels,), or None
        int32_t[::1] last,
    ):
        """Write the level of each row, and the first and the end of the levels of its query.

        Returns the number of levels.
        """
        cdef int64_t q, k, i
        if level_of is None:
            return self.sums.shape[1]
        if (
            level_of.shape[0] != self.factors.shape[0]
            or first is None
            or last is None
            or not first.shape[0] == last.shape[0] == self.sums.shape[1]
        ):
            raise ValueError("the arrays do not match the levels")
        with nogil:
            for q in range(self.scales.shape[0]):
                for k in range(self.queries[q], self.queries[q + 1]):
                    first[k] = <int32_t> self.queries[q]
                    last[k] = <int32_t> self.queries[q + 1]
                    for i in range(self.levels[k], self.levels[k + 1]):
                        level_of[i] = <int32_t> k
        return self.sums.shape[1]

    def split(
        self,
        double[::1] u not None,  # each (n_rows,)
        double[::1] v not None,
        # out, each (n_levels,): u of the last level of a query and v of the first are 0
        double[::1] all_u not None,
        double[::1] all_v not None,
    ):
        """Write both factors of each row, with pair weights normalised to sum 1, and their sums."""
        cdef int64_t q, k, i, first, last
        cdef double total = 0.0, scale
        if not (
            u.shape[0] == v.shape[0] == self.factors.shape[0]
            and all_u.shape[0] == all_v.shape[0] == self.sums.shape[1]
        ):
            raise ValueError("the arrays do not match the rows")
        with nogil:
            for q in range(self.scales.shape[0]):
                total += self._sum_query(q)
            for q in range(self.scales.shape[0]):
                scale = self.scales[q] / total
                first = self.queries[q]
                last = self.queries[q + 1] - 1
                for k in range(first, last + 1):
                    all_u[k] = all_v[k] = 0.0
                    for i in range(self.levels[k], self.levels[k + 1]):
                        u[i] = 0.0 if k == last else scale * self.factors[i]
                        v[i] = 0.0
                        if k == last:
                            v[i] = self.factors[i]
                        elif k > first:
                            v[i] = self._other(i)
                        all_u[k] += u[i]
                        all_v[k] += v[i]

    def centre(self):
        """Shift the scores of each query so that they lie around 0.

        Returns whether the scores of every query are within the allowed range. O(n_rows).
        """
        cdef int64_t q, i, start, middle, stop
        cdef double least, largest, s, by
        cdef bint fits = True
        with nogil:
            for q in range(self.scales.shape[0]):
                start = self.levels[self.queries[q]]
                middle = self.levels[self.queries[q + 1] - 1]
                stop = self.levels[self.queries[q + 1]]
                least = largest = -log(self.factors[start])
                for i in range(start, stop):
                    s = log(self.factors[i])
                    if i < middle:
                        s = -s
                    least = min(least, s)
                    largest = max(largest, s)
                if not largest - least < WIDEST:
                    fits = False
                    continue
                by = exp(0.5 * (least + largest))
                for i in range(start, middle):
                    self.factors[i] *= by
                for i in range(middle, stop):
                    self.factors[i] /= by
        return fits
