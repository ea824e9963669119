"""Scores of rows by a sum of regression trees.

Rows that are dense go through trees of few leaves in tiles, which try all nodes and walk nowhere,
and through others several at a time: each waits for its own memory, not for the others. Sparse rows
are spread out first, and swept up after.
"""

from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport stored
from rankcore.core cimport rc_row, rc_rows, rc_rows_get, rc_trees, rc_trees_leaf

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
    # The same of models that split categories.
    void rc_trees_add_sets_f32(
        const rc_trees *model, int64_t first, int64_t last, const int32_t *depths, const float *x,
        int64_t stride, int64_t n, double *scores
    ) noexcept
    void rc_trees_add_sets_f64(
        const rc_trees *model, int64_t first, int64_t last, const int32_t *depths,
        const double *x, int64_t stride, int64_t n, double *scores
    ) noexcept

cdef extern from "_tree_masks.h" nogil:
    enum:
        RC_MASK_ROWS

    ctypedef struct rc_masks:
        char *block

    int rc_masks_make(
        rc_masks *masks, const rc_trees *model, int64_t first, int64_t last, bint single
    ) noexcept
    void rc_masks_add(
        const rc_masks *masks, const void *x, bint single, int64_t stride, int64_t n,
        double *scores
    ) noexcept


ctypedef void (*add_f32_t)(
    const rc_trees *, int64_t, int64_t, const int32_t *, const float *, int64_t, int64_t, double *
) noexcept nogil
ctypedef void (*add_f64_t)(
    const rc_trees *, int64_t, int64_t, const int32_t *, const double *, int64_t, int64_t, double *
) noexcept nogil

# Sparse rows of more columns than this are not spread out, but searched.
cdef enum:
    WIDE = 1 << 20
    FEW = 128  # rows below this number do not pay for tiles


cdef bint _consistent(
    const int64_t[::1] offsets, const int32_t[::1] features, const int32_t[:, ::1] children,
    const uint8_t[::1] sides, const double[::1] thresholds, const double[::1] values,
    const int64_t[::1] sets, const uint32_t[::1] words, int64_t n_features, int32_t[::1] depths,
) noexcept nogil:
    """Whether every node leads down to leaves of its own tree; writes the depth of each tree."""
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
        or depths.shape[0] != n_trees
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
        depths[t] = 0
        # A child comes after its parent: its height is known when the parent is met.
        for i in range(n_nodes):
            if not 0 <= features[first + i] < n_features or sides[first + i] > 1:
                return False
            for k in range(2):
                child = children[first + i, k]
                if not (i < child < n_nodes or 0 <= ~child <= n_nodes):
                    return False
    return True


def measure_depths(
    const int64_t[::1] offsets not None,
    const int32_t[::1] features not None,
    const int32_t[:, ::1] children not None,
    const uint8_t[::1] sides not None,
    const double[::1] thresholds not None,
    const double[::1] values not None,
    const int64_t[::1] sets not None,
    const uint32_t[::1] words not None,
    int64_t n_features,
    int32_t[::1] depths not None,
):
    """Check trees, and write how deep each one is.

    Parameters
    ----------
    offsets, features, children, sides, thresholds, values, sets, words
        In. As for ``rc_trees`` in rankcore.h; sets and words are empty if no node has categories.
    n_features : int
        In.
    depths : int32 array, shape (n_trees,)
        Out. Splits on the longest way down.

    Raises
    ------
    ValueError
        Unless every node leads down to leaves of its tree.

    Notes
    -----
    O(nodes).
    """
    from array import array

    cdef int64_t t, i, k, first, n_nodes
    cdef int32_t[::1] heights = array("i", bytes(4 * (features.shape[0] + 1)))
    cdef int32_t child, height
    if not _consistent(offsets, features, children, sides, thresholds, values, sets, words,
                       n_features, depths):
        raise ValueError("the nodes are not those of trees")
    with nogil:
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


def add_scores(
    object rows not None,
    const int64_t[::1] offsets not None,
    const int32_t[::1] features not None,
    const int32_t[:, ::1] children not None,
    const uint8_t[::1] sides not None,
    const double[::1] thresholds not None,
    const double[::1] values not None,
    const int64_t[::1] sets not None,
    const uint32_t[::1] words not None,
    bint zero_missing,
    int64_t first,
    int64_t last,
    double[::1] scores not None,
):
    """Add to the scores of rows what the trees first .. last - 1 give them, tree by tree.

    Parameters
    ----------
    rows : Rows
        In.
    offsets, features, children, sides, thresholds, values, sets, words
        In. As for ``rc_trees`` in rankcore.h; sets and words are empty if no node has categories.
    zero_missing : bool
        In. Whether 0 is missing, as NaN is.
    first, last : int
        In.
    scores : float64 array, shape (n_rows,)
        In and out.

    Notes
    -----
    O(n_rows * trees * depth), and the values of sparse rows.
    """
    from array import array

    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i, j, k, n, d = X.n_features, n_trees = offsets.shape[0] - 1
    cdef int32_t[::1] depths = array("i", bytes(4 * max(n_trees, 1)))[:max(n_trees, 0)]
    cdef rc_trees model
    cdef rc_row x
    cdef rc_masks masks
    cdef int masked = 0
    memset(&masks, 0, sizeof(masks))
    cdef double *spread = NULL
    cdef double background = NAN if zero_missing else 0.0
    if scores.shape[0] != X.n_rows or not 0 <= first <= last <= n_trees or not rows.canonical:
        raise ValueError("the scores, rows and trees do not fit together")
    measure_depths(offsets, features, children, sides, thresholds, values, sets, words, d, depths)
    if first == last or X.n_rows == 0:
        return
    model.offsets = &offsets[0]
    model.features = &features[0] if features.shape[0] else NULL
    model.children = &children[0, 0] if features.shape[0] else NULL
    model.missing = &sides[0] if features.shape[0] else NULL
    model.thresholds = &thresholds[0] if features.shape[0] else NULL
    model.values = &values[0]
    model.n_trees = n_trees
    model.n_features = d
    model.zero_missing = zero_missing
    model.sets = &sets[0] if words.shape[0] else NULL
    model.words = &words[0] if words.shape[0] else NULL
    cdef add_f32_t add_f32 = rc_trees_add_f32 if model.sets == NULL else rc_trees_add_sets_f32
    cdef add_f64_t add_f64 = rc_trees_add_f64 if model.sets == NULL else rc_trees_add_sets_f64
    cdef bint in_place = X.indptr == NULL and not zero_missing
    # As many rows at a time as do not fill the memory.
    cdef int64_t room = max(1, min(RC_TREE_ROWS, 2**22 // d))
    if X.n_rows >= FEW and (in_place or (room >= RC_MASK_ROWS and d <= WIDE)):
        masked = rc_masks_make(&masks, &model, first, last, in_place and X.dtype != 0)
        if masked < 0:
            raise MemoryError
    if in_place:
        with nogil:
            i = 0
            if masked:
                x = rc_rows_get(X, 0)
                rc_masks_add(&masks, x.data, x.dtype, X.stride, X.n_rows, &scores[0])
                free(masks.block)
                i = X.n_rows
            while i < X.n_rows:
                n = min(RC_TREE_ROWS, X.n_rows - i)
                x = rc_rows_get(X, i)
                if x.dtype:
                    add_f32(&model, first, last, &depths[0], <const float *> x.data, X.stride, n,
                            &scores[i])
                else:
                    add_f64(&model, first, last, &depths[0], <const double *> x.data, X.stride, n,
                            &scores[i])
                i += n
        return
    if X.indptr != NULL and d > WIDE:
        with nogil:
            for i in range(X.n_rows):
                x = rc_rows_get(X, i)
                for k in range(first, last):
                    scores[i] += values[offsets[k] + k + rc_trees_leaf(&model, k, x)]
        return
    spread = <double *> malloc(room * d * sizeof(double))
    if spread == NULL:
        free(masks.block)
        raise MemoryError
    with nogil:
        for k in range(room * d):
            spread[k] = background
        i = 0
        while i < X.n_rows:
            n = min(room, X.n_rows - i)
            for j in range(n):
                x = rc_rows_get(X, i + j)
                for k in range(x.n):
                    if not zero_missing or stored(&x, k) != 0:
                        spread[j * d + (k if x.indices == NULL else x.indices[k])] = stored(&x, k)
            if masked:
                rc_masks_add(&masks, spread, False, d, n, &scores[i])
            else:
                add_f64(&model, first, last, &depths[0], spread, d, n, &scores[i])
            for j in range(n):
                x = rc_rows_get(X, i + j)
                for k in range(x.n):
                    spread[j * d + (k if x.indices == NULL else x.indices[k])] = background
            i += n
    free(spread)
    free(masks.block)
