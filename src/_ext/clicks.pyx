"""Click models: passes of expectation maximisation over counts and sessions, click probabilities.

Impressions are arrays of shape ``(n,)`` with the index of their (query, document) pair; ``bounds``,
``(n_sessions + 1,)``, divides them into sessions, by position. Parameters have shape
``(n_pairs,)`` or ``(n_positions,)``. Each function is one pass, O(n). Probabilities lie
within (0, 1). Counts of impressions are float64, exact to 2**53.
"""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t


cdef int64_t _check_sessions(const int64_t[::1] bounds, int64_t n) except -1:
    """Check that sessions divide n impressions; return the length of the longest."""
    cdef int64_t q, n_sessions = bounds.shape[0] - 1, longest = 0
    cdef bint fits = n_sessions >= 0 and bounds[0] == 0 and bounds[n_sessions] == n
    for q in range(n_sessions if fits else 0):
        fits = fits and bounds[q] <= bounds[q + 1]
        longest = max(longest, bounds[q + 1] - bounds[q])
    if not fits:
        raise ValueError(f"bounds must ascend from 0 to the number of impressions, {n}")
    return longest


cdef int _check_codes(const int32_t[::1] codes, int64_t n) except -1:
    """Check that codes are below n."""
    cdef int64_t i
    cdef bint fits = True
    with nogil:
        for i in range(codes.shape[0]):
            fits = fits and 0 <= codes[i] < n
    if not fits:
        raise ValueError(f"pairs and positions must be from 0 to {n - 1}, the number of parameters")
    return 0


def position_pass(
    const int32_t[::1] pair not None,  # (n_cells,)
    const int32_t[::1] position not None,  # (n_cells,), from 0
    const double[:, ::1] counts not None,  # (n_cells, 2): impressions without and with a click
    const double[::1] examination not None,  # (n_positions,)
    const double[::1] attraction not None,  # (n_pairs,)
    double[::1] examined not None,  # out, (n_positions,): expected examinations
    double[::1] attracted not None,  # out, (n_pairs,): expected attractive impressions
):
    """Compute the expectations of the position-based model; return the log-likelihood."""
    cdef int64_t i
    cdef double theta, gamma, skip, total = 0.0
    if (
        position.shape[0] != pair.shape[0]
        or counts.shape[0] != pair.shape[0]
        or counts.shape[1] != 2
        or examined.shape[0] != examination.shape[0]
        or attracted.shape[0] != attraction.shape[0]
    ):
        raise ValueError("the cells, their counts and the parameters are inconsistent")
    _check_codes(position, examination.shape[0])
    _check_codes(pair, attraction.shape[0])
    examined[:] = 0.0
    attracted[:] = 0.0
    with nogil:
        for i in range(pair.shape[0]):
            theta = examination[position[i]]
            gamma = attraction[pair[i]]
            skip = 1.0 - theta * gamma
            total += counts[i, 0] * log(skip)
            if counts[i, 1] > 0:
                total += counts[i, 1] * log(theta * gamma)
            examined[position[i]] += counts[i, 1] + counts[i, 0] * theta * (1.0 - gamma) / skip
            attracted[pair[i]] += counts[i, 1] + counts[i, 0] * gamma * (1.0 - theta) / skip
    return total


cdef double _after_click(double satisfied, double onward, double silent) noexcept nogil:
    """Return the probability of no click below a click.

    ``silent`` is the probability of no click from the next document on, if it is examined.
    """
    return satisfied + (1.0 - satisfied) * (1.0 - onward + onward * silent)


def bayesian_pass(
    const int64_t[::1] bounds not None,  # (n_sessions + 1,)
    const int32_t[::1] pair not None,  # (n,), by position within each session
    const uint8_t[::1] clicked not None,  # (n,)
    const double[::1] attraction not None,  # (n_pairs,)
    const double[::1] satisfaction not None,  # (n_pairs,)
    double onward,  # probability of continuing without satisfaction
    # Added to, (n_pairs, 4): expected examinations and satisfied clicks; and the information about
    # attraction and satisfaction, sums of squared derivatives of the log-likelihood.
    double[:, ::1] expected not None,
    # Added to, (3,): expected chances to continue, continuations, and the information about
    # ``onward``.
    double[::1] going not None,
    double[::1] silent not None,  # working memory, (longest session + 1,)
):
    """Add the expectations of the dynamic Bayesian network; return the log-likelihood."""
    cdef int64_t q, i, first, stop, last
    cdef double seen, after, satisfied, derivative, chances, taken, total = 0.0
    cdef int64_t n_pairs = attraction.shape[0], longest = _check_sessions(bounds, pair.shape[0])
    if (
        clicked.shape[0] != pair.shape[0]
        or satisfaction.shape[0] != n_pairs
        or expected.shape[0] != n_pairs
        or expected.shape[1] != 4
        or going.shape[0] != 3
        or silent.shape[0] <= longest
    ):
        raise ValueError("the impressions, parameters and expectations are inconsistent")
    _check_codes(pair, n_pairs)
    with nogil:
        for q in range(bounds.shape[0] - 1):
            chances = taken = 0.0
            first, stop = bounds[q], bounds[q + 1]
            last = stop - 1
            while last >= first and not clicked[last]:
                last -= 1
            # All documents down to the last click were examined.
            for i in range(first, last + 1):
                expected[pair[i], 0] += 1.0
                if clicked[i]:
                    total += log(attraction[pair[i]])
                else:
                    total += log(1.0 - attraction[pair[i]])
                    expected[pair[i], 2] += 1.0
                if i < last:
                    chances += 1.0
                    taken += 1.0
                    total += log(onward)
                    if clicked[i]:
                        derivative = 1.0 / (1.0 - satisfaction[pair[i]])
                        expected[pair[i], 3] += derivative * derivative
                        total += log(1.0 - satisfaction[pair[i]])
            # silent[j]: probability of no click from document j on, given that it is examined.
            silent[stop - first] = 1.0
            for i in range(stop - 1, last, -1):
                silent[i - first] = (1.0 - attraction[pair[i]]) * (
                    1.0 - onward + onward * silent[i - first + 1]
                )
            seen = 1.0
            if last >= first:
                satisfied = satisfaction[pair[last]]
                after = _after_click(satisfied, onward, silent[last - first + 1])
                total += log(after)
                expected[pair[last], 1] += satisfied / after
                derivative = (1.0 - _after_click(0.0, onward, silent[last - first + 1])) / after
                expected[pair[last], 3] += derivative * derivative
                seen = (1.0 - satisfied) * onward * silent[last - first + 1] / after
                if last < stop - 1:
                    chances += 1.0 - satisfied / after
                    taken += seen
            else:
                total += log(silent[0])
            for i in range(last + 1, stop):
                expected[pair[i], 0] += seen
                expected[pair[i], 2] += seen * seen
                if i < stop - 1:
                    chances += seen
                    after = _after_click(0.0, onward, silent[i - first + 1])
                    seen *= onward * silent[i - first + 1] / after
                    taken += seen
            going[0] += chances
            going[1] += taken
            if 0.0 < onward < 1.0:
                derivative = taken / onward - (chances - taken) / (1.0 - onward)
                going[2] += derivative * derivative
    return total


def bayesian_probabilities(
    const int64_t[::1] bounds not None,  # (n_sessions + 1,)
    const int32_t[::1] pair not None,  # (n,)
    const double[::1] attraction not None,  # (n_pairs,)
    const double[::1] satisfaction not None,  # (n_pairs,)
    double onward,
    double[::1] probability not None,  # out, (n,)
):
    """Compute the marginal probability of a click on each document."""
    cdef int64_t q, i
    cdef double seen
    _check_sessions(bounds, pair.shape[0])
    if probability.shape[0] != pair.shape[0] or satisfaction.shape[0] != attraction.shape[0]:
        raise ValueError("the impressions, parameters and probabilities are inconsistent")
    _check_codes(pair, attraction.shape[0])
    with nogil:
        for q in range(bounds.shape[0] - 1):
            seen = 1.0
            for i in range(bounds[q], bounds[q + 1]):
                probability[i] = seen * attraction[pair[i]]
                seen *= onward * (1.0 - attraction[pair[i]] * satisfaction[pair[i]])


def bayesian_clicks(
    const int64_t[::1] bounds not None,  # (n_sessions + 1,)
    const double[::1] attraction not None,  # (n,), of each impression
    const double[::1] satisfaction not None,  # (n,)
    double onward,
    const double[:, ::1] draws not None,  # (n, 3), from [0, 1)
    uint8_t[::1] clicked not None,  # out, (n,)
):
    """Draw the clicks of users who examine a list from the top; three draws per document."""
    cdef int64_t q, i
    cdef bint examining
    cdef int64_t n = attraction.shape[0]
    _check_sessions(bounds, n)
    if (
        satisfaction.shape[0] != n
        or draws.shape[0] != n
        or draws.shape[1] != 3
        or clicked.shape[0] != n
    ):
        raise ValueError("the impressions, draws and clicks are inconsistent")
    with nogil:
        for q in range(bounds.shape[0] - 1):
            examining = True
            for i in range(bounds[q], bounds[q + 1]):
                clicked[i] = examining and draws[i, 0] < attraction[i]
                if examining and clicked[i] and draws[i, 1] < satisfaction[i]:
                    examining = False
                if draws[i, 2] >= onward:
                    examining = False
