"""Contributions of features to the score of a row, for sums of stumps and of trees.

A sum of stumps is a step function of each feature: a search in the thresholds of each value.

Trees combine features. A contribution is then the Shapley value of the game in which each feature
has the value of the row or of another row, the background (Lundberg, Erion et al., "From local
explanations to global understanding with explainable AI for trees", Nature Machine Intelligence 2,
2020). A tree is walked once for each pair of rows: where both take the same child there is one
path; where they first differ by a feature, both paths are taken, and later nodes of the feature
follow the same row. A leaf with p features of the row and q of the background on its way counts (p
- 1)! q! / (p + q)! for each of the p, and p! (q - 1)! / (p + q)! against each of the q.

Rows are dense, ``(n_rows, n_features)``, or the stored values of CSR rows; contributions of stumps
have the shape of the values, those of trees are ``(n_rows, n_columns)``. Stumps take
O(log(thresholds)) per value, trees O(nodes) per pair of a row and a background row.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport stored
from rankcore._ext._stump_arrays cimport bind_stumps
from rankcore._ext._tree_arrays cimport trees_of
from rankcore.core cimport (
    RC_FLOAT32, rc_row, rc_row_value, rc_rows, rc_rows_get, rc_stumps, rc_stumps_value, rc_trees,
    rc_trees_has,
)

cdef extern from "_places.h" nogil:
    void rc_places(
        const double *values, const double *cuts, int64_t n_cuts, int64_t *places
    ) noexcept

ctypedef fused real:
    float
    double


cdef void _dense_stumps(
    const rc_stumps *model, const real *X, int64_t stride, int64_t n_rows,
    const double *reference, double *out,
) noexcept nogil:
    """Write the contributions of dense rows, eight rows at a time for independent searches."""
    cdef int64_t i, k, f, n, first, d = model.n_features
    cdef const double *values
    cdef double held[8]
    cdef int64_t places[8]
    cdef double zero, taken
    for i in range(0, n_rows, 8):
        n = min(8, n_rows - i)
        for f in range(d):
            first = model.offsets[f]
            taken = reference[f]
            zero = model.at_zero[f] - taken
            if first == model.offsets[f + 1]:
                for k in range(n):
                    out[k * d + f] = zero
                continue
            for k in range(8):
                held[k] = X[min(k, n - 1) * stride + f]
            rc_places(held, model.thresholds + first, model.offsets[f + 1] - first, places)
            values = model.values + first + f
            for k in range(n):
                if held[k] == 0:
                    out[k * d + f] = zero
                elif held[k] != held[k]:
                    out[k * d + f] = model.missing[f] - taken
                else:
                    out[k * d + f] = values[places[k]] - taken
        X += 8 * stride
        out += 8 * d


def stumps(
    object rows not None,
    const int64_t[::1] offsets not None,  # as for ``rc_stumps`` in rankcore.h
    const double[::1] thresholds not None,
    const double[::1] values not None,
    const double[::1] missing not None,
    const double[::1] at_zero not None,
    # (n_features,): reference value of each feature's step function, which is subtracted
    const double[::1] reference not None,
    double[::1] out not None,  # out, (n_values,): one number for each stored value, row by row
):
    """Compute the contribution of each stored value to a sum of stumps, minus a reference.

    O(n_values * log thresholds of a column).
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_stumps model
    cdef rc_row x
    cdef int64_t i, k, f, at = 0, d = X.n_features
    cdef double value
    if (
        out.shape[0] != rows.n_values
        or reference.shape[0] != d
        or not bind_stumps(&model, d, 0.0, offsets, thresholds, values, missing, at_zero)
    ):
        raise ValueError("the rows and the arrays of the model are inconsistent")
    if X.n_rows == 0 or d == 0 or rows.n_values == 0:
        return
    if X.indptr == NULL:
        with nogil:
            if X.dtype == RC_FLOAT32:
                _dense_stumps(
                    &model, <const float *> X.data, X.stride, X.n_rows, &reference[0], &out[0]
                )
            else:
                _dense_stumps(
                    &model, <const double *> X.data, X.stride, X.n_rows, &reference[0], &out[0]
                )
        return
    with nogil:
        for i in range(X.n_rows):
            x = rc_rows_get(X, i)
            for k in range(x.n):
                f = x.indices[k]
                if offsets[f] == offsets[f + 1]:
                    out[at] = at_zero[f] - reference[f]
                else:
                    value = stored(&x, k)
                    value = at_zero[f] if value == 0 else rc_stumps_value(&model, f, value)
                    out[at] = value - reference[f]
                at += 1


def directions(
    object rows not None,
    object trees not None,
    int64_t first,  # the first row
    uint8_t[:, ::1] out not None,  # out, (n, n_nodes): of n rows: 1 for the second child
):
    """Write which child of each node rows would take.

    O(n * nodes), times a search in each row if they are sparse.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef const rc_trees *model = trees_of(trees)
    cdef int64_t i, node, n = model.offsets[model.n_trees]
    cdef rc_row x
    cdef double value
    cdef bint missing
    if (
        not 0 <= first <= first + out.shape[0] <= X.n_rows or out.shape[1] != n
        or model.n_features != X.n_features or not rows.canonical
    ):
        raise ValueError("the rows, the trees and out are inconsistent")
    with nogil:
        for i in range(out.shape[0]):
            x = rc_rows_get(X, first + i)
            for node in range(n):
                value = rc_row_value(x, model.features[node])
                if model.sets and model.sets[node] < model.sets[node + 1]:
                    out[i, node] = model.missing[node] ^ <uint8_t> rc_trees_has(model, node, value)
                    continue
                missing = value != value or (model.zero_missing and value == 0)
                out[i, node] = model.missing[node] if missing else value > model.thresholds[node]


cdef struct Walk:
    # One tree; arrays have an entry per node.
    const int32_t *columns
    const int32_t *children
    const double *values
    const int32_t *before  # the node above that splits the same feature; -1 if there is none
    const uint8_t *side  # the child of that node, 0 or 1, above this node
    const int32_t *parents
    const double *weights  # of leaves: [p * width + q] is p! q! / (p + q + 1)!
    int64_t width
    # Scratch of the walk; an entry per node.
    int32_t *order
    int32_t *of_row  # number of features above that have the value of the row
    int32_t *of_other  # number of those that have the value of the background
    int8_t *owner  # of the node's feature on arrival: 0 undecided, 1 the row, 2 the background
    uint8_t *parted
    double *gained
    double *lost


cdef inline void _arrive(
    const Walk *tree, int32_t child, int32_t p, int32_t q, int64_t *n,
    double *gained, double *lost,
) noexcept nogil:
    """Add the value of a leaf, or append a node to the walk."""
    cdef double value
    gained[0] = lost[0] = 0.0
    if child < 0:
        value = tree.values[~child]
        if p > 0:
            gained[0] = value * tree.weights[(p - 1) * tree.width + q]
        if q > 0:
            lost[0] = -value * tree.weights[p * tree.width + q - 1]
        return
    tree.of_row[child] = p
    tree.of_other[child] = q
    tree.order[n[0]] = child
    n[0] += 1


cdef void _walk(
    const Walk *tree, const uint8_t *row, const uint8_t *other, double *out
) noexcept nogil:
    """Add contributions of features to a row in one tree, relative to another row."""
    cdef int64_t i = 0, n = 1
    cdef int32_t node, above, p, q
    cdef int8_t owner
    cdef double gained, lost, more_gained, more_lost
    tree.order[0] = 0
    tree.of_row[0] = tree.of_other[0] = 0
    while i < n:
        node = tree.order[i]
        i += 1
        p = tree.of_row[node]
        q = tree.of_other[node]
        above = tree.before[node]
        owner = 0
        if above >= 0:
            owner = tree.owner[above]
            if tree.parted[above]:
                owner = 1 if tree.side[node] == row[above] else 2
        tree.owner[node] = owner
        tree.parted[node] = row[node] != other[node] and owner == 0
        if tree.parted[node]:
            _arrive(tree, tree.children[2 * node + row[node]], p + 1, q, &n, &gained, &lost)
            _arrive(tree, tree.children[2 * node + other[node]], p, q + 1, &n,
                    &more_gained, &more_lost)
            out[tree.columns[node]] += gained + more_lost
            gained += more_gained
            lost += more_lost
        else:
            _arrive(
                tree, tree.children[2 * node + (other if owner == 2 else row)[node]], p, q,
                &n, &gained, &lost,
            )
        tree.gained[node] = gained
        tree.lost[node] = lost
    for i in range(n - 1, 0, -1):  # a node comes after its parent
        node = tree.order[i]
        above = tree.parents[node]
        tree.gained[above] += tree.gained[node]
        tree.lost[above] += tree.lost[node]
        if tree.parted[above]:
            if tree.children[2 * above + row[above]] == node:
                out[tree.columns[above]] += tree.gained[node]
            else:
                out[tree.columns[above]] += tree.lost[node]


def interventional(
    const uint8_t[:, ::1] rows not None,  # (n, n_nodes): the child that the rows take at each node
    const uint8_t[:, ::1] others not None,  # (n_others, n_nodes): the same for the background
    # offsets, children, values: as for ``rc_trees`` in rankcore.h
    const int64_t[::1] offsets not None,
    # (n_nodes,): the column of ``out`` for the feature of each node
    const int32_t[::1] columns not None,
    const int32_t[:, ::1] children not None,
    const double[::1] values not None,
    double[:, ::1] out not None,  # out, (n, n_columns)
):
    """Compute Shapley values of features in sums of trees, summed over the rows of a background.

    Raises ValueError if the nodes do not form trees. O(n * n_others * n_nodes), counting only
    nodes that the row, the background row or a mixture of both reaches.
    """
    from array import array

    cdef int64_t i, j, t, k, first, n_nodes, n = columns.shape[0]
    cdef int64_t n_trees = offsets.shape[0] - 1, largest = 1, deepest = 0
    cdef int32_t child, above
    cdef Walk tree
    if (
        rows.shape[1] != n or others.shape[1] != n or children.shape[0] != n
        or children.shape[1] != 2 or n_trees < 0 or offsets[0] != 0 or offsets[n_trees] != n
        or values.shape[0] != n + n_trees or out.shape[0] != rows.shape[0]
    ):
        raise ValueError("the rows, the trees and out are inconsistent")
    cdef int32_t[::1] parents = array("i", [-1]) * (n + 1)
    cdef int32_t[::1] before = array("i", [-1]) * (n + 1)
    cdef int32_t[::1] depths = array("i", [0]) * (n + 1)
    cdef uint8_t[::1] side = bytearray(n + 1)
    cdef uint8_t[::1] into = bytearray(n + 1)  # which child of its parent a node is
    for t in range(n_trees):
        first = offsets[t]
        n_nodes = offsets[t + 1] - first
        if n_nodes < 0 or first + n_nodes > n:
            raise ValueError("the nodes do not form trees")
        largest = max(largest, n_nodes)
        for i in range(n_nodes):
            if not 0 <= columns[first + i] < out.shape[1] or (i and parents[first + i] < 0):
                raise ValueError("the nodes do not form trees")
            for k in range(2):
                child = children[first + i, k]
                if child >= 0:
                    # A node has one parent, which comes before it.
                    if not i < child < n_nodes or parents[first + child] >= 0:
                        raise ValueError("the nodes do not form trees")
                    parents[first + child] = <int32_t> i
                    into[first + child] = k
                    depths[first + child] = depths[first + i] + 1
                elif ~child > n_nodes:
                    raise ValueError("the nodes do not form trees")
            deepest = max(deepest, depths[first + i] + 1)
            above = parents[first + i]
            side[first + i] = into[first + i]
            while above >= 0 and columns[first + above] != columns[first + i]:
                side[first + i] = into[first + above]
                above = parents[first + above]
            before[first + i] = above
    # p! q! / (p + q + 1)!, without factorials.
    cdef int64_t width = min(deepest, out.shape[1]) + 1
    cdef double[::1] weights = array("d", [1.0]) * (width * width)
    for i in range(width):
        for j in range(width):
            if i > 0:
                weights[i * width + j] = weights[(i - 1) * width + j] * i / (i + j + 1)
            else:
                weights[j] = 1.0 / (j + 1)
    cdef int32_t[::1] order = array("i", [0]) * largest
    cdef int32_t[::1] of_row = array("i", [0]) * largest
    cdef int32_t[::1] of_other = array("i", [0]) * largest
    cdef int8_t[::1] owner = array("b", [0]) * largest
    cdef uint8_t[::1] parted = bytearray(largest)
    cdef double[::1] gained = array("d", [0.0]) * largest
    cdef double[::1] lost = array("d", [0.0]) * largest
    tree.order = &order[0]
    tree.of_row = &of_row[0]
    tree.of_other = &of_other[0]
    tree.owner = &owner[0]
    tree.parted = &parted[0]
    tree.gained = &gained[0]
    tree.lost = &lost[0]
    tree.weights = &weights[0]
    tree.width = width
    out[:, :] = 0.0
    if n == 0 or out.shape[1] == 0:
        return
    with nogil:
        for t in range(n_trees):
            first = offsets[t]
            if first == offsets[t + 1]:
                continue
            tree.columns = &columns[first]
            tree.children = &children[first, 0]
            tree.values = &values[first + t]
            tree.before = &before[first]
            tree.side = &side[first]
            tree.parents = &parents[first]
            for i in range(rows.shape[0]):
                for j in range(others.shape[0]):
                    _walk(&tree, &rows[i, first], &others[j, first], &out[i, 0])
