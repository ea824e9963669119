"""Scores of rows by a sum of regression trees.

Arrays of all trees, tree after tree from node ``offsets[t]``: ``features``, ``thresholds``,
``sides`` (of missing values) and ``children`` by node, (n_nodes,) and (n_nodes, 2), ``values`` of
leaves, (n_nodes + n_trees,). Rows in, scores (n_rows, n_sums) out: a row costs O(depth) per tree.

Many rows are scored by trees with few leaves in tiles, which evaluate all nodes without walking,
and by others several at a time, to overlap their memory accesses. Sparse rows are expanded for
this, and cleared afterwards.
"""

from cpython.pycapsule cimport PyCapsule_New
from cython cimport final
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport stored
from rankcore.core cimport (
    RC_FLOAT32,
    RC_FLOAT64,
    rc_row,
    rc_rows,
    rc_rows_get,
    rc_trees,
    rc_trees_add,
)

cdef extern from "_tree_scores.h" nogil:
    enum:
        RC_TREE_ROWS

    void rc_trees_add_f32(
        const rc_trees *model, int64_t first, int64_t last, const int32_t *depths, const float *x,
        int64_t stride, int64_t n, double *scores
    ) noexcept
    void rc_trees_add_f64(
        const rc_trees *model, int64_t first, int64_t last, const int32_t *depths,
        const double *x, int64_t stride, int64_t n, double *scores
    ) noexcept
    # The same for models that split categories.
    void rc_trees_add_sets_f32(
        const rc_trees *model, int64_t first, int64_t last, const int32_t *depths, const float *x,
        int64_t stride, int64_t n, double *scores
    ) noexcept
    void rc_trees_add_sets_f64(
        const rc_trees *model, int64_t first, int64_t last, const int32_t *depths,
        const double *x, int64_t stride, int64_t n, double *scores
    ) noexcept

cdef extern from "rankcore_trees.h" nogil:
    ctypedef struct rc_tiles_:
        pass

    enum:
        RC_TILED_ROWS_

    bint rc_trees_alike_(const rc_trees *model, int32_t n_sums) noexcept
    void rc_trees_add_sums_(
        const rc_trees *model, int32_t n_sums, const rc_rows *X, double *scores, double *sums,
        rc_tiles_ *room
    ) noexcept
    bint rc_trees_tile_(const rc_trees *model, int64_t t) noexcept
    int64_t rc_trees_add_tiled_(
        const rc_trees *model, int32_t n_sums, int64_t first, int64_t last, const rc_rows *X,
        double *scores, rc_tiles_ *room
    ) noexcept


# Sparse rows of more columns than this are searched instead of expanded.
cdef enum:
    WIDE = 1 << 20


cdef bint _consistent(
    const int64_t[::1] offsets, const int32_t[::1] features, const int32_t[:, ::1] children,
    const uint8_t[::1] sides, const double[::1] thresholds, const double[::1] values,
    const int64_t[::1] sets, const uint32_t[::1] words, int64_t n_features,
) noexcept nogil:
    """Return whether every node leads down to leaves of its own tree."""
    cdef int64_t t, i, k, first, n_nodes, n_trees = offsets.shape[0] - 1, n = features.shape[0]
    cdef int32_t child
    if (
        n_trees < 0
        or offsets[0] != 0
        or offsets[n_trees] != n
        or children.shape[0] != n
        or children.shape[1] != 2
        or sides.shape[0] != n
        or thresholds.shape[0] != n
        or values.shape[0] != n + n_trees
        or (sets.shape[0] != n + 1 and (sets.shape[0] or words.shape[0]))
        or (sets.shape[0] and (sets[0] != 0 or sets[n] != words.shape[0]))
    ):
        return False
    for i in range(n if sets.shape[0] else 0):
        if sets[i] > sets[i + 1]:
            return False
    for t in range(n_trees):
        if offsets[t] > offsets[t + 1]:
            return False
    for t in range(n_trees):
        first = offsets[t]
        n_nodes = offsets[t + 1] - first
        # A child comes after its parent: its height is known when the parent is met.
        for i in range(n_nodes):
            if not 0 <= features[first + i] < n_features or sides[first + i] > 1:
                return False
            for k in range(2):
                child = children[first + i, k]
                if not (i < child < n_nodes or 0 <= ~child <= n_nodes):
                    return False
    return True


cdef void _measure_depths(
    const int64_t[::1] offsets, const int32_t[:, ::1] children,  # in
    int32_t[::1] heights, int32_t[::1] depths,  # scratch, by node; out, by tree
) noexcept nogil:
    """Write the depth of each tree: the splits on its longest path."""
    cdef int64_t t, i, k, first, n_nodes
    cdef int32_t child, height
    for t in range(offsets.shape[0] - 1):
        first = offsets[t]
        n_nodes = offsets[t + 1] - first
        for i in range(n_nodes - 1, -1, -1):
            height = 0
            for k in range(2):
                child = children[first + i, k]
                if child >= 0:
                    height = max(height, heights[first + child])
            heights[first + i] = height + 1
        depths[t] = heights[first] if n_nodes else 0


@final
cdef class Trees:
    """Trees of which every node leads down to leaves of its own tree; ValueError for others."""

    cdef rc_trees model
    cdef int32_t[::1] depths
    cdef tuple arrays  # keeps alive what the model points to
    cdef readonly object capsule  # the ``rc_trees``, valid while this object lives
    cdef readonly int32_t n_sums

    def __init__(
        self,
        # as for ``rc_trees`` in rankcore.h; sets and words are empty if no node has categories
        const int64_t[::1] offsets not None,
        const int32_t[::1] features not None,
        const int32_t[:, ::1] children not None,
        const uint8_t[::1] sides not None,
        const double[::1] thresholds not None,
        const double[::1] values not None,
        const int64_t[::1] sets not None,
        const uint32_t[::1] words not None,
        int64_t n_features,
        bint zero_missing,  # whether 0 is missing, as NaN is
        # Sums of equally many trees, one after the other; only the values of leaves differ.
        int32_t n_sums=1,
    ):
        from array import array

        cdef int64_t n_trees = offsets.shape[0] - 1, n = features.shape[0]
        cdef int32_t[::1] heights = array("i", bytes(4 * (n + 1)))
        if not _consistent(
            offsets, features, children, sides, thresholds, values, sets, words, n_features
        ):
            raise ValueError("the nodes do not form trees")
        if n_sums < 1 or n_trees % n_sums:
            raise ValueError(f"{n_trees} trees cannot be divided among {n_sums} sums")
        self.depths = array("i", bytes(4 * max(n_trees, 1)))[:n_trees]
        _measure_depths(offsets, children, heights, self.depths)
        self.arrays = (offsets, features, children, sides, thresholds, values, sets, words)
        self.model.offsets = &offsets[0]
        self.model.features = &features[0] if n else NULL
        self.model.children = &children[0, 0] if n else NULL
        self.model.missing = &sides[0] if n else NULL
        self.model.thresholds = &thresholds[0] if n else NULL
        self.model.values = &values[0] if values.shape[0] else NULL
        self.model.n_trees = n_trees
        self.model.n_features = n_features
        self.model.zero_missing = zero_missing
        self.model.sets = &sets[0] if words.shape[0] else NULL
        self.model.words = &words[0] if words.shape[0] else NULL
        self.n_sums = n_sums
        if not rc_trees_alike_(&self.model, n_sums):
            raise ValueError(f"the trees of {n_sums} sums differ in more than their values")
        self.capsule = PyCapsule_New(&self.model, "rankcore.trees", NULL)

    @property
    def n_nodes(self):
        return self.model.offsets[self.model.n_trees]


def add_scores(
    object rows not None,
    Trees trees not None,
    int64_t first,
    int64_t last,
    double[::1] scores not None,  # in and out, (n_rows,)
):
    """Add the values of the trees first .. last - 1 to the scores of rows, tree by tree.

    O(n_rows * nodes) for trees of few leaves, O(n_rows * trees * depth) for others, and the values
    of sparse rows.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef const rc_trees *model = &trees.model
    cdef int64_t t = first, tiled
    cdef rc_tiles_ *room = NULL
    cdef int failed = 0
    if (
        scores.shape[0] != X.n_rows or not 0 <= first <= last <= model.n_trees
        or model.n_features != X.n_features or not rows.canonical
    ):
        raise ValueError("the scores, rows and trees are inconsistent")
    if first == last or X.n_rows == 0:
        return
    if X.n_rows >= RC_TILED_ROWS_:
        room = <rc_tiles_ *> malloc(sizeof(rc_tiles_))
        if room == NULL:
            raise MemoryError
    with nogil:
        while t < last and not failed:
            tiled = rc_trees_add_tiled_(model, 1, t, last, X, &scores[0], room)
            t += tiled
            if not tiled:
                first = t
                t += 1
                while t < last and not rc_trees_tile_(model, t):
                    t += 1
                failed = add_walked(model, first, t, &trees.depths[0], X, &scores[0])
    free(room)
    if failed:
        raise MemoryError


def add_sums(
    object rows not None,
    Trees trees not None,
    double[:, ::1] scores not None,  # in and out, (n_sums, n_rows)
):
    """Add the values of the trees of each sum to its scores of rows, tree by tree.

    A row goes only once through the trees of all sums. Cost as `add_scores`.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int32_t m = trees.n_sums
    if (
        scores.shape[0] != m or scores.shape[1] != X.n_rows
        or trees.model.n_features != X.n_features or not rows.canonical
    ):
        raise ValueError("the scores, rows and trees are inconsistent")
    if m == 1:
        add_scores(rows, trees, 0, trees.model.n_trees, scores[0])
    elif X.n_rows:
        _add_to_all(&trees.model, m, X, &scores[0, 0])


cdef int _add_to_all(
    const rc_trees *model, int32_t m, const rc_rows *X, double *scores
) except -1:
    """Add the values of the trees of m sums in one walk."""
    cdef rc_tiles_ *room = NULL
    cdef double *sums = <double *> malloc(m * sizeof(double))
    if X.n_rows >= RC_TILED_ROWS_:
        room = <rc_tiles_ *> malloc(sizeof(rc_tiles_))
    if sums == NULL or (X.n_rows >= RC_TILED_ROWS_ and room == NULL):
        free(sums)
        free(room)
        raise MemoryError
    with nogil:
        rc_trees_add_sums_(model, m, X, scores, sums, room)
    free(sums)
    free(room)
    return 0


cdef void add_dense(
    const rc_trees *model, int64_t first, int64_t last, const int32_t *depths, const rc_row *x,
    int64_t stride, int64_t n, double *scores,
) noexcept nogil:
    """Add the values of some trees for n rows, from row x on."""
    if x.dtype == RC_FLOAT32:
        if model.sets == NULL:
            rc_trees_add_f32(model, first, last, depths, <const float *> x.data, stride, n, scores)
        else:
            rc_trees_add_sets_f32(
                model, first, last, depths, <const float *> x.data, stride, n, scores)
    elif model.sets == NULL:
        rc_trees_add_f64(model, first, last, depths, <const double *> x.data, stride, n, scores)
    else:
        rc_trees_add_sets_f64(
            model, first, last, depths, <const double *> x.data, stride, n, scores)


cdef int add_walked(
    const rc_trees *model, int64_t first, int64_t last, const int32_t *depths, const rc_rows *X,
    double *scores,
) noexcept nogil:
    """Add the values of some trees for rows by walking; return -1 if out of memory."""
    cdef int64_t i = 0, j, k, n, d = X.n_features
    # Rows that are expanded at a time, at most 32 MiB.
    cdef int64_t room = max(1, min(RC_TREE_ROWS, 2**22 // max(1, d)))
    cdef double background = NAN if model.zero_missing else 0.0
    cdef rc_row x, block
    cdef double *spread
    if X.indptr != NULL and d > WIDE:
        rc_trees_add(model, first, last, X, scores)
        return 0
    if X.indptr == NULL and not model.zero_missing:
        while i < X.n_rows:
            n = min(RC_TREE_ROWS, X.n_rows - i)
            x = rc_rows_get(X, i)
            add_dense(model, first, last, depths, &x, X.stride, n, scores + i)
            i += n
        return 0
    spread = <double *> malloc(room * d * sizeof(double))
    if spread == NULL:
        return -1
    for k in range(room * d):
        spread[k] = background
    block.data = spread
    block.dtype = RC_FLOAT64
    while i < X.n_rows:
        n = min(room, X.n_rows - i)
        for j in range(n):
            x = rc_rows_get(X, i + j)
            for k in range(x.n):
                if not model.zero_missing or stored(&x, k) != 0:
                    spread[j * d + (k if x.indices == NULL else x.indices[k])] = stored(&x, k)
        add_dense(model, first, last, depths, &block, d, n, scores + i)
        for j in range(n):
            x = rc_rows_get(X, i + j)
            for k in range(x.n):
                spread[j * d + (k if x.indices == NULL else x.indices[k])] = background
        i += n
    free(spread)
    return 0
