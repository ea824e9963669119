"""Weights of listed pairs, one number per pair, updated by the steps of a model.

``weights``, ``winners`` and ``losers`` (n_pairs,) have the weight and both rows of each pair. Each
method passes over the pairs once, in order: O(n_pairs).
"""

from cython cimport final
from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._leaves cimport check_leaves, sum_of


@final
cdef class ListedWeights:
    """Weights of listed pairs."""

    cdef double[::1] weights
    cdef const int32_t[::1] winners
    cdef const int32_t[::1] losers
    cdef int64_t n_rows

    def __init__(
        self,
        double[::1] weights not None,  # in and out, (n_pairs,): not negative
        const int32_t[::1] winners not None,  # each (n_pairs,): rows
        const int32_t[::1] losers not None,
        int64_t n_rows,
    ):
        cdef int64_t p
        cdef bint fits = weights.shape[0] == winners.shape[0] == losers.shape[0] > 0
        for p in range(winners.shape[0] if fits else 0):
            fits = fits and 0 <= winners[p] < n_rows and 0 <= losers[p] < n_rows
        if not fits:
            raise ValueError("the pairs do not match the rows")
        self.weights = weights
        self.winners = winners
        self.losers = losers
        self.n_rows = n_rows

    def differentiate(self, double[::1] gradients not None, double[::1] hessians):
        """Write gradients and hessians of the rows, and return Z.

        As `LabelWeights.differentiate`, O(n_pairs).
        """
        cdef int64_t p
        cdef double total, w
        if gradients.shape[0] != self.n_rows or not (
            hessians is None or hessians.shape[0] == self.n_rows
        ):
            raise ValueError("gradients and hessians do not match the rows")
        with nogil:
            total = sum_of(&self.weights[0], self.weights.shape[0])
            for p in range(self.n_rows):
                gradients[p] = 0.0
            for p in range(self.weights.shape[0]):
                w = self.weights[p] / total
                gradients[self.winners[p]] += w
                gradients[self.losers[p]] -= w
            if hessians is not None:
                for p in range(self.n_rows):
                    hessians[p] = 0.0
                for p in range(self.weights.shape[0]):
                    w = self.weights[p] / total
                    hessians[self.winners[p]] += w
                    hessians[self.losers[p]] += w
        return total

    def measure(self, const uint8_t[::1] fires not None):
        """Return the weights of pairs ordered correctly, wrongly, or firing on both. O(n_pairs)."""
        cdef int64_t p
        cdef double held[4]
        cdef double total
        held[:] = [0.0, 0.0, 0.0, 0.0]
        if fires.shape[0] != self.n_rows:
            raise ValueError("fires does not match the rows")
        with nogil:
            for p in range(self.weights.shape[0]):
                held[2 * (fires[self.winners[p]] & 1) + (fires[self.losers[p]] & 1)] += (
                    self.weights[p]
                )
            total = held[0] + held[1] + held[2] + held[3]
        return held[2] / total, held[1] / total, held[3] / total

    def advance(self, const uint8_t[::1] fires not None, double alpha):
        """Add ``alpha`` to the scores of the rows where a stump fires. O(n_pairs)."""
        cdef int64_t p
        cdef double by[3]
        if fires.shape[0] != self.n_rows:
            raise ValueError("fires does not match the rows")
        by[:] = [exp(alpha), 1.0, exp(-alpha)]
        with nogil:
            for p in range(self.weights.shape[0]):
                self.weights[p] *= by[
                    1 + (fires[self.winners[p]] & 1) - (fires[self.losers[p]] & 1)
                ]

    def between(
        self,
        const int32_t[::1] leaf_of not None,
        double[::1] below not None,
        double[::1] here not None,
        double[:, ::1] out not None,
    ):
        """Write the weight of the pairs between leaves. As `LabelWeights.between`, O(n_pairs)."""
        cdef int64_t p, a, b, n = out.shape[0]
        cdef double total
        check_leaves(leaf_of, self.n_rows, n)
        if not out.shape[1] == below.shape[0] == here.shape[0] == n:
            raise ValueError("the leaves do not match the rows")
        with nogil:
            total = sum_of(&self.weights[0], self.weights.shape[0])
            for a in range(n):
                for b in range(n):
                    out[a, b] = 0.0
            for p in range(self.weights.shape[0]):
                out[leaf_of[self.winners[p]], leaf_of[self.losers[p]]] += self.weights[p] / total

    def move(self, const int32_t[::1] leaf_of not None, const double[::1] values not None):
        """Add to the score of each row the value of its leaf. O(n_pairs)."""
        cdef int64_t p, n = values.shape[0]
        check_leaves(leaf_of, self.n_rows, n)
        with nogil:
            for p in range(self.weights.shape[0]):
                self.weights[p] *= exp(
                    values[leaf_of[self.losers[p]]] - values[leaf_of[self.winners[p]]]
                )

    def listed(self):
        """Return the weights (not normalised), winners and losers, without copies."""
        return self.weights.base, self.winners.base, self.losers.base

    def centre(self):
        """Do nothing: differences of scores are in range if the weights are."""
        return True
