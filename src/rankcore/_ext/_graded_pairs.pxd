# Losses of all pairs of a query whose levels differ, without enumeration, for pair_loss. Private.
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rankcore._ext._margin_sums cimport walk_rows, walk_sums, walk_values
from rankcore._ext._query_room cimport Room, sort_places


cdef struct Graded:
    # One query. Arrays are by place, the index of a document within the query.
    const uint32_t *levels
    const double *weights  # NULL: all weigh 1
    uint32_t *order  # places by the scores of the last evaluation, descending
    int64_t n, n_levels
    double step  # factor of all pairs


cdef inline void _line_up(Room *room, const Graded *query, const double *score) noexcept nogil:
    """Copy scores, levels and weights in descending order of scores, then in reverse."""
    cdef int64_t k, back
    cdef uint32_t place, top = <uint32_t> (query.n_levels - 1)
    for k in range(query.n):
        back = 2 * query.n - 1 - k
        place = query.order[k]
        room.score[k] = score[place]
        room.score[back] = -room.score[k]
        room.level[k] = query.levels[place]
        room.level[back] = top - room.level[k]
        room.weight[k] = 1.0 if query.weights == NULL else query.weights[place]
        room.weight[back] = room.weight[k]


cdef inline void sum_graded(
    Room *room, const Graded *query, const double *score,
    const double *margins, const double *factors, int64_t n_margins,
    double *slopes, double *curvatures, double *sums,  # out
) noexcept nogil:
    """Compute the loss and its derivatives by the scores; update the order."""
    cdef int64_t n = query.n, k, m, i
    cdef double factor, unused
    memset(slopes, 0, n * sizeof(double))
    memset(curvatures, 0, n * sizeof(double))
    sort_places(room, score, query.order, n)
    _line_up(room, query, score)
    for m in range(n_margins):
        walk_sums(
            room.score, room.level, room.weight, n, query.n_levels, margins[m], True, room.tree,
            room.count, room.first, sums + 2 * m, sums + 2 * m + 1,
        )
        walk_sums(
            room.score + n, room.level + n, room.weight + n, n, query.n_levels, margins[m], False,
            room.tree, room.count + n, room.first + n, &unused, &unused,
        )
        factor = 2.0 * factors[m] * query.step
        for k in range(n):
            i = query.order[k]
            slopes[i] += factor * room.weight[k] * (room.first[2 * n - 1 - k] - room.first[k])
            curvatures[i] += factor * room.weight[k] * (room.count[k] + room.count[2 * n - 1 - k])
        sums[2 * m] *= query.step
        sums[2 * m + 1] *= query.step


cdef inline void curve_graded(
    Room *room, const Graded *query, const double *score, const double *z,
    const double *margins, const double *factors, int64_t n_margins,
    const double *curvatures, double *out,
) noexcept nogil:
    """Multiply a vector by the second derivatives."""
    cdef int64_t n = query.n, k, m
    cdef double factor
    _line_up(room, query, score)
    for k in range(n):
        room.first[k] = room.first[2 * n - 1 - k] = room.weight[k] * z[query.order[k]]
        out[k] = curvatures[k] * z[k]
    for m in range(n_margins):
        walk_values(
            room.score, room.level, room.first, n, query.n_levels, margins[m], room.values,
            room.count,
        )
        walk_values(
            room.score + n, room.level + n, room.first + n, n, query.n_levels, margins[m],
            room.values, room.count + n,
        )
        factor = 2.0 * factors[m] * query.step
        for k in range(n):
            out[query.order[k]] -= (
                factor * room.weight[k] * (room.count[k] + room.count[2 * n - 1 - k])
            )


cdef inline void curve_graded_rows(
    Room *room, const Graded *query, const double *score, const double *rows, int64_t width,
    const double *margins, const double *factors, int64_t n_margins,
    const double *curvatures, double *out,
) noexcept nogil:
    """Multiply all columns of the query's rows, of `width` values, by the second derivatives."""
    cdef int64_t n = query.n, k, f, m
    cdef double factor
    cdef uint32_t *mirrored = <uint32_t *> room.key  # the order reversed
    _line_up(room, query, score)
    for k in range(n):
        mirrored[k] = query.order[n - 1 - k]
        for f in range(width):
            out[k * width + f] = curvatures[k] * rows[k * width + f]
    for m in range(n_margins):
        factor = -2.0 * factors[m] * query.step
        walk_rows(
            room.score, room.level, room.weight, n, query.n_levels, margins[m], rows, query.order,
            width, room.values, factor, out,
        )
        walk_rows(
            room.score + n, room.level + n, room.weight + n, n, query.n_levels, margins[m], rows,
            mirrored, width, room.values, factor, out,
        )
