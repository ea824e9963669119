# Sums over the pairs of a query that are less than a margin apart. Private.
#
# A walk goes through the scores in descending order. Of a pair the better row is the one of higher
# level; its distance is d = (score of the better row) - (score of the worse row), and the pair
# counts if d < margin, as float64 computes it. As rounding keeps order, the worse rows that count
# for one row are a run from the top, which only grows as the walk goes down: each row is entered
# once into a Fenwick tree over levels, and read once.
#
# The sums are of margin - d > 0 for the row that the walk has reached. Moving on to a row that is
# lower by x adds x for each row entered: only positive numbers are ever added, so that no digits
# are lost however far the scores are apart. A node is moved when it is read.
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset


cdef struct Sums:
    double count  # sum of the weights
    double first  # sum of weight * (margin - d)
    double second  # sum of weight * (margin - d)^2
    double at  # score of the row for which they are


cdef inline void _move(Sums *node, double score, bint squares) noexcept nogil:
    """Change the sums of a node to those for a lower score, by (g + by)^2 = g^2 + 2 g by + by^2."""
    cdef double by = node.at - score
    if squares:
        node.second += by * (2.0 * node.first + node.count * by)
    node.first += node.count * by
    node.at = score


cdef inline void walk_sums(
    const double *score, const uint32_t *level, const double *weight, int64_t n,  # descending
    int64_t n_levels, double margin, bint squares,
    Sums *tree,  # room for n_levels
    double *counts, double *firsts,  # out: for each row, over the rows it should be above
    double *total_first, double *total_second,  # out: over pairs
) noexcept nogil:
    cdef int64_t k, node, j = 0
    cdef double here, gap, v, count, first, second, all_first = 0.0, all_second = 0.0
    memset(tree, 0, n_levels * sizeof(Sums))
    for k in range(n):
        here = score[k]
        while j < n and here - score[j] < margin:
            gap = margin - (here - score[j])
            v = weight[j]
            node = level[j] + 1
            while node < n_levels:  # rows of the highest level are below none
                _move(&tree[node], here, squares)
                tree[node].count += v
                tree[node].first += v * gap
                if squares:
                    tree[node].second += v * gap * gap
                node += node & -node
            j += 1
        count = first = second = 0.0
        node = level[k]
        while node > 0:
            _move(&tree[node], here, squares)
            count += tree[node].count
            first += tree[node].first
            if squares:
                second += tree[node].second
            node -= node & -node
        counts[k] = count
        firsts[k] = first
        all_first += weight[k] * first
        if squares:
            all_second += weight[k] * second
    total_first[0] = all_first
    total_second[0] = all_second


cdef inline void walk_values(
    const double *score, const uint32_t *level, const double *values, int64_t n,  # descending
    int64_t n_levels, double margin,
    double *tree,  # room for n_levels
    double *sums,  # out: for each row, the values of the rows that count for it
) noexcept nogil:
    cdef int64_t k, node, j = 0
    cdef double here, total
    memset(tree, 0, n_levels * sizeof(double))
    for k in range(n):
        here = score[k]
        while j < n and here - score[j] < margin:
            node = level[j] + 1
            while node < n_levels:
                tree[node] += values[j]
                node += node & -node
            j += 1
        total = 0.0
        node = level[k]
        while node > 0:
            total += tree[node]
            node -= node & -node
        sums[k] = total


cdef inline void walk_rows(
    const double *score, const uint32_t *level, const double *weight, int64_t n,  # descending
    int64_t n_levels, double margin,
    const double *rows, const uint32_t *place, int64_t width,  # row of the k-th: rows[place[k]]
    double *tree,  # room for n_levels * width
    double factor,
    double *sums,  # added to: factor * weight * (sum of weight * row over what counts for it)
) noexcept nogil:
    cdef int64_t k, f, node, j = 0
    cdef double here, v
    cdef double *to
    cdef const double *x
    memset(tree, 0, n_levels * width * sizeof(double))
    for k in range(n):
        here = score[k]
        while j < n and here - score[j] < margin:
            x = rows + place[j] * width
            v = weight[j]
            node = level[j] + 1
            while node < n_levels:
                to = tree + node * width
                for f in range(width):
                    to[f] += v * x[f]
                node += node & -node
            j += 1
        to = sums + place[k] * width
        v = factor * weight[k]
        node = level[k]
        while node > 0:
            x = tree + node * width
            for f in range(width):
                to[f] += v * x[f]
            node -= node & -node
