"""Interleaved lists and credits of many impressions of the same rankings: rankcore_interleave.h.

Rankings are ``documents``, ranker after ranker, and ``offsets`` (n_rankings + 1,). Lists, owners
and clicks have shape (n_impressions, length), credits (n_impressions, n_rankings). Costs per
impression are in the header.
"""

from cpython.exc cimport PyErr_Occurred
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from *:
    """
    /* Long calls poll for Ctrl-C, whose error `raise_error` raises. */
    static int rc_interrupted_(void)
    {
        PyGILState_STATE state = PyGILState_Ensure();
        int stops = PyErr_CheckSignals();
        PyGILState_Release(state);
        return stops;
    }
    #define RC_INTERLEAVE_STOP() rc_interrupted_()
    """


cdef extern from "rankcore_interleave.h" nogil:
    enum:
        RC_INTERLEAVE_MAX_RANKINGS

    ctypedef struct rc_rankings:
        const int64_t *documents
        const int64_t *offsets
        int32_t n_rankings

    int32_t rc_interleave_team_draft(
        const rc_rankings *R, int32_t length, uint64_t seed, int64_t *shown, int32_t *owners)
    int32_t rc_interleave_balanced(
        const rc_rankings *R, int32_t length, uint64_t seed, int64_t *shown, int32_t *owners)
    int32_t rc_interleave_prefixes(
        const rc_rankings *R, int32_t length, uint64_t seed, int64_t *shown, int32_t *owners)
    void rc_interleave_weights(double tau, int64_t n, double *weights)
    int32_t rc_interleave_probabilistic(
        const rc_rankings *R, const double *weights, int32_t length, uint64_t seed, double *room,
        int64_t *shown, int32_t *owners)
    int64_t rc_interleave_room(const rc_rankings *R)
    int32_t rc_interleave_pick(const double *cumulative, int32_t n, uint64_t seed)
    int32_t rc_credit_owners(
        const int32_t *owners, const double *clicks, int32_t n, int32_t n_rankings, double *credit)
    int32_t rc_credit_balanced(
        const rc_rankings *R, const int64_t *shown, const double *clicks, int32_t n, double *credit)
    int32_t rc_credit_probabilistic(
        const rc_rankings *R, const double *weights, const int64_t *shown, const double *clicks,
        int32_t n, double *room, double *credit)
    int32_t rc_credit_places(
        const rc_rankings *R, const int64_t *shown, const double *clicks, int32_t n, int32_t kind,
        double *credit)

# Methods of interleaving; INVERSE and NEGATIVE are credits by place, in the order of the header.
cpdef enum Method:
    TEAM_DRAFT
    BALANCED
    PROBABILISTIC
    PREFIXES
    INVERSE
    NEGATIVE


cdef rc_rankings _rankings(
    int method,
    const int64_t[::1] documents,
    const int64_t[::1] offsets,
    const double[::1] weights,
    const double[::1] room,
) except *:
    """Check the rankings, and the arrays that probabilistic interleaving reads and writes."""
    cdef rc_rankings R
    cdef int64_t r, n = offsets.shape[0] - 1, longest = 0
    if not 1 <= n <= RC_INTERLEAVE_MAX_RANKINGS or (method == BALANCED and n != 2):
        raise ValueError(
            f"rankings must be {2 if method == BALANCED else f'1 to {RC_INTERLEAVE_MAX_RANKINGS}'}"
            f"; got {n}"
        )
    if not 0 <= method <= <int> NEGATIVE:
        raise ValueError(f"method must be a Method; got {method}")
    if offsets[0] < 0 or offsets[n] > documents.shape[0]:
        raise ValueError(
            f"offsets must be from 0 to the number of documents, {documents.shape[0]}; got "
            f"{offsets[0]} to {offsets[n]}"
        )
    for r in range(n):
        if offsets[r] > offsets[r + 1]:
            raise ValueError(f"offsets must ascend; got {offsets[r]} before {offsets[r + 1]}")
        longest = max(longest, offsets[r + 1] - offsets[r])
    R.documents = &documents[0] if documents.shape[0] else NULL
    R.offsets = &offsets[0]
    R.n_rankings = <int32_t> (offsets.shape[0] - 1)
    if method == PROBABILISTIC and (
        weights.shape[0] < max(longest, 1) or room.shape[0] < rc_interleave_room(&R)
    ):
        raise ValueError(
            f"weights has {weights.shape[0]} entries and room {room.shape[0]}; the rankings "
            f"require {max(longest, 1)} and {rc_interleave_room(&R)}"
        )
    return R


cdef int raise_error(int64_t length) except -1 nogil:
    """Raise the error that ended a call early, if one did."""
    if length > 255:
        with gil:
            if PyErr_Occurred():
                return -1
    return 0


def place_weights(double tau, double[::1] weights not None):
    """Write the weights of the places of a ranking, the best place first; at least one place."""
    if weights.shape[0] < 1:
        raise ValueError("weights must have at least one entry")
    rc_interleave_weights(tau, weights.shape[0], &weights[0])


def n_room(const int64_t[::1] offsets not None):
    """Return the number of entries of `room` for rankings with these ascending offsets."""
    cdef rc_rankings R
    cdef int64_t r
    if offsets.shape[0] < 2:
        raise ValueError(f"offsets must have two entries or more; got {offsets.shape[0]}")
    for r in range(offsets.shape[0] - 1):
        if offsets[r] > offsets[r + 1]:
            raise ValueError(f"offsets must ascend; got {offsets[r]} before {offsets[r + 1]}")
    R.offsets = &offsets[0]
    R.n_rankings = <int32_t> (offsets.shape[0] - 1)
    return rc_interleave_room(&R)


def draw(
    int method,
    const int64_t[::1] documents not None,
    const int64_t[::1] offsets not None,
    const double[::1] weights not None,
    double[::1] room not None,
    const uint64_t[::1] seeds not None,
    int64_t[:, ::1] shown not None,
    int32_t[:, ::1] owners not None,
    int32_t[::1] lengths not None,
):
    """Write a list for each seed, of at most as many documents as `shown` has columns.

    `weights` has the longest ranking's length and `room` that of `n_room`; at least one each.
    `shown` has at least one column.
    """
    cdef rc_rankings R = _rankings(method, documents, offsets, weights, room)
    cdef int32_t length = <int32_t> shown.shape[1]
    cdef int64_t i, n = seeds.shape[0]
    if (
        method > PREFIXES
        or not 1 <= shown.shape[1] < <int64_t> 1 << 31
        or owners.shape[1] != shown.shape[1]
        or not shown.shape[0] == owners.shape[0] == lengths.shape[0] == n
    ):
        raise ValueError("the method, seeds, shown, owners and lengths are inconsistent")
    with nogil:
        for i in range(seeds.shape[0]):
            if method == TEAM_DRAFT:
                lengths[i] = rc_interleave_team_draft(
                    &R, length, seeds[i], &shown[i, 0], &owners[i, 0])
            elif method == BALANCED:
                lengths[i] = rc_interleave_balanced(
                    &R, length, seeds[i], &shown[i, 0], &owners[i, 0])
            elif method == PREFIXES:
                lengths[i] = rc_interleave_prefixes(
                    &R, length, seeds[i], &shown[i, 0], &owners[i, 0])
            else:
                lengths[i] = rc_interleave_probabilistic(
                    &R, &weights[0], length, seeds[i], &room[0], &shown[i, 0], &owners[i, 0])
            raise_error(length)


def pick(const double[::1] cumulative not None, const uint64_t[::1] seeds not None,
         int32_t[::1] out not None):
    """Write an index for each seed, with probabilities whose cumulative sums are given."""
    cdef int64_t i
    if not 1 <= cumulative.shape[0] < <int64_t> 1 << 31 or out.shape[0] != seeds.shape[0]:
        raise ValueError(
            f"cumulative has {cumulative.shape[0]} entries, seeds {seeds.shape[0]} and out "
            f"{out.shape[0]}; cumulative requires at least one, and out as many as seeds"
        )
    with nogil:
        for i in range(seeds.shape[0]):
            out[i] = rc_interleave_pick(
                &cumulative[0], <int32_t> cumulative.shape[0], seeds[i])


def credit(
    int method,
    const int64_t[::1] documents not None,
    const int64_t[::1] offsets not None,
    const double[::1] weights not None,
    double[::1] room not None,
    const int64_t[:, ::1] shown not None,
    const int32_t[:, ::1] owners not None,
    const int32_t[::1] lengths not None,
    const double[:, ::1] clicks not None,
    double[:, ::1] out not None,
):
    """Write the credit of each ranker in each impression."""
    cdef rc_rankings R = _rankings(method, documents, offsets, weights, room)
    cdef int64_t i, n = shown.shape[0], width = shown.shape[1]
    if (
        method == PREFIXES
        or width < 1
        or not owners.shape[0] == lengths.shape[0] == clicks.shape[0] == out.shape[0] == n
        or not owners.shape[1] == clicks.shape[1] == width
        or out.shape[1] != R.n_rankings
    ):
        raise ValueError("the method, shown, owners, lengths, clicks and out are inconsistent")
    for i in range(n):
        if not 0 <= lengths[i] <= width:
            raise ValueError(f"list {i} has {lengths[i]} documents; shown has {width} columns")
    with nogil:
        for i in range(shown.shape[0]):
            if method == TEAM_DRAFT:
                rc_credit_owners(
                    &owners[i, 0], &clicks[i, 0], lengths[i], R.n_rankings, &out[i, 0])
            elif method == BALANCED:
                rc_credit_balanced(&R, &shown[i, 0], &clicks[i, 0], lengths[i], &out[i, 0])
            elif method == PROBABILISTIC:
                rc_credit_probabilistic(
                    &R, &weights[0], &shown[i, 0], &clicks[i, 0], lengths[i], &room[0],
                    &out[i, 0])
            else:
                rc_credit_places(
                    &R, &shown[i, 0], &clicks[i, 0], lengths[i], method - INVERSE, &out[i, 0])
            raise_error(lengths[i])
