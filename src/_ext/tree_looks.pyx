"""Looks at the leaves of a tree: sums of words by bin, and the best cut by each column.

Each thread has a `Look` at some of the columns. Threads meet twice per split, for a tenth of a
millisecond of work, about as long as it takes to wake a thread. Those of a `Crew` wait without the
GIL and try a lock for a while before they sleep.

For sparse columns with few entries only one sum is kept. It bounds the worth of all cuts of the
column; the entries are visited only if the bound exceeds the best other worth.
"""

from cpython.pythread cimport (
    NOWAIT_LOCK,
    WAIT_LOCK,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
)
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._splits cimport best_of, imply, rc_leaf, rc_most_worth, rc_split, walk
from rankcore._ext._tree_panels cimport (
    RC_CHUNK,
    RC_CODES,
    RC_EIGHT,
    RC_PANEL,
    panel_width,
    rc_sum_panel,
)


cdef extern from "_relax.h" nogil:
    void rc_relax() noexcept

# Bytes that sums of panels work in.
ROOM = RC_CHUNK * RC_PANEL
# Bounds are computed in another order than worths: they are raised by more than the rounding.
cdef double RAISED = 1.0 + 1e-12
cdef enum:
    # Value of `bins` for a column that is bounded rather than summed by bin.
    UNSEEN = -2
    # Times that a thread tries a lock before it sleeps: some hundred microseconds, longer than the
    # first thread takes to divide the rows of most leaves.
    TRIES = 4000

BOUNDED = UNSEEN


cdef packed struct Leaf:
    uint64_t word
    int64_t n_rows
    double low
    double high
    int32_t number
    uint8_t is_less

ctypedef struct Work:
    const Binned *binned
    int64_t m
    const int32_t *features
    const int64_t *offsets
    const uint8_t *whole
    const int8_t *signs
    const uint8_t *categorical
    int64_t least_rows
    int32_t slopes
    # Layout of the codes: panels, or the cells of sparse rows, or neither.
    const uint8_t *panels
    int64_t padded
    const int64_t *bounds
    const int32_t *cells
    int64_t n_sums
    uint8_t *rows_room
    uint64_t *scratch
    double *room
    int32_t *counts
    # Of a tree.
    const uint8_t *allowed
    const int32_t *leaf_of
    const uint64_t *words
    double l2
    double least
    # Of one look.
    const int32_t *rows
    int64_t n_rows
    uint64_t *new
    uint64_t *parent
    const Leaf *leaves
    int64_t n_leaves
    double *worths
    uint64_t *firing
    int32_t *bins
    uint8_t *sides


cdef void _sum_column(const Work *w, const code_t *codes, uint64_t *out) noexcept nogil:
    cdef int64_t i
    for i in range(w.n_rows):
        out[codes[w.rows[i]]] += w.words[w.rows[i]]


cdef void _sum_columns(const Work *w) noexcept nogil:
    """Sum words by bin, of dense columns."""
    cdef int64_t j, at
    for j in range(w.m):
        at = w.features[j] * w.binned.n_rows
        if w.binned.width == 1:
            _sum_column(w, <const uint8_t *> w.binned.codes + at, w.new + w.offsets[j])
        else:
            _sum_column(w, <const int32_t *> w.binned.codes + at, w.new + w.offsets[j])


cdef void _sum_panels(const Work *w) noexcept nogil:
    cdef int64_t first = 0, width
    while w.n_rows and first < w.padded:
        width = panel_width(first, w.padded)
        rc_sum_panel(w.panels + first * w.binned.n_rows, width, w.rows, w.words, w.n_rows,
                     w.rows_room, w.new + first * RC_CODES)
        first += width


cdef void _sum_cells(const Work *w) noexcept nogil:
    """Sum words by bin, of sparse columns: their entries only."""
    cdef int64_t i, k
    cdef int32_t row
    cdef uint64_t word
    for i in range(w.n_rows):
        row = w.rows[i]
        word = w.words[row]
        for k in range(w.bounds[row], w.bounds[row + 1]):
            w.new[w.cells[k]] += word


cdef inline bint _is_set(const Work *w, int64_t feature) noexcept nogil:
    return w.categorical != NULL and w.categorical[feature]


cdef void _search(
    const Work *w, const Leaf *leaf, const uint64_t *sums, double *worths, uint64_t *firing,
    int32_t *bins, uint8_t *sides,
) noexcept nogil:
    """The best cut of a leaf by each column."""
    cdef int64_t i, b, f, n
    cdef rc_leaf made
    cdef rc_split found
    cdef const uint64_t *here
    cdef double best = 0.0
    made.word = leaf.word
    made.l2 = w.l2
    made.least = w.least
    made.low = leaf.low
    made.high = leaf.high
    made.slopes = w.slopes
    for i in range(w.m):
        worths[i] = -1.0
        firing[i] = 0
        bins[i] = -1
        sides[i] = 0
        if w.allowed != NULL and not w.allowed[i]:
            continue
        f = w.features[i]
        here = sums + w.offsets[i]
        if w.whole != NULL and w.whole[i]:
            # One side of a cut has no rows but those with an entry.
            if here[0] and w.binned.bounds[f + 1] - w.binned.bounds[f] >= w.least_rows:
                worths[i] = RAISED * rc_most_worth(here[0], leaf.word, w.l2)
                bins[i] = UNSEEN
            continue
        n = w.binned.n_bins[f] + 1
        if w.binned.bounds != NULL:
            for b in range(n):
                w.scratch[b] = here[b]
            here = w.scratch
            imply(w.binned, f, leaf.word, w.scratch)
        made.sign = 0 if _is_set(w, f) or w.signs == NULL else w.signs[f]
        found = best_of(_is_set(w, f), here, NULL, n - 1, &made, 0, 0, w.scratch + n, w.room)
        worths[i] = found.gain
        firing[i] = found.word
        bins[i] = found.bin
        sides[i] = found.side
        best = max(best, found.gain)
    for i in range(w.m if w.whole != NULL else 0):
        if bins[i] != UNSEEN or worths[i] < best:
            continue
        f = w.features[i]
        made.sign = 0 if _is_set(w, f) or w.signs == NULL else w.signs[f]
        found = walk(w.binned, f, _is_set(w, f), w.leaf_of, leaf.number, w.words, &made,
                     leaf.n_rows, w.least_rows, w.scratch, w.room, w.counts)
        worths[i] = found.gain
        firing[i] = found.word
        bins[i] = found.bin
        sides[i] = found.side
        best = max(best, found.gain)


cdef void _look(const Work *w) noexcept nogil:
    cdef int64_t i
    cdef const uint64_t *own = w.new
    cdef const uint64_t *sums = own
    memset(w.new, 0, w.n_sums * sizeof(uint64_t))
    if w.bounds != NULL:
        _sum_cells(w)
    elif w.panels != NULL:
        _sum_panels(w)
    else:
        _sum_columns(w)
    if w.parent != NULL:
        sums = w.parent
        for i in range(w.n_sums):
            w.parent[i] -= w.new[i]
    for i in range(w.n_leaves):
        _search(w, &w.leaves[i], own if w.leaves[i].is_less else sums, w.worths + i * w.m,
                w.firing + i * w.m, w.bins + i * w.m, w.sides + i * w.m)


cdef class Look:
    """Some columns, whose sums one thread computes and searches.

    Arrays are kept, not copied. O(n * columns) for n dense rows or O(sums + entries) of sparse
    ones, O(n_leaves * sums), and O(entries) of some columns.
    """

    cdef Work work
    cdef tuple kept
    cdef object kept_of_tree, kept_of_look

    def __init__(
        self,
        object columns not None,
        const int32_t[::1] features not None,  # (m,): the columns
        const int64_t[::1] offsets not None,  # (m + 1,): where the sums of each column begin
        int64_t n_sums,  # number of sums
        const uint8_t[::1] whole,  # (m,), or None: whether a column has one sum of its entries
        # (n_features,), or None: by column, 1: the value must not fall as the column rises, -1: not
        # rise, 0: either
        const int8_t[::1] signs,
        # (n_features,), or None: by column, whether any set of its bins may fire. Their signs do
        # not matter.
        const uint8_t[::1] categorical,
        const uint8_t[::1] panels,  # dense columns of byte codes, from `tree_histograms.lay_out`
        const int64_t[::1] bounds,  # sparse columns, from `tree_histograms.lay_out_cells`
        const int32_t[::1] cells,
        uint8_t[::1] rows_room not None,  # with panels, ROOM bytes: scratch
        # B + 1 entries each for the most bins B of a column: five times, twice and once
        uint64_t[::1] scratch not None,
        double[::1] room not None,
        int32_t[::1] counts not None,
        int64_t least_rows,  # rows of a child at least; only columns of one sum look at this
        bint slopes,  # whether words hold slopes and curvatures; then not with ``whole``
    ):
        cdef Work *w = &self.work
        cdef const Binned *binned = binned_of(columns)
        cdef int64_t i, n, m = features.shape[0], n_rows = binned.n_rows
        cdef int64_t padded = (m + RC_EIGHT - 1) // RC_EIGHT * RC_EIGHT
        cdef bint sparse = binned.bounds != NULL
        cdef bint fits = (
            n_rows > 0
            and m > 0
            and offsets.shape[0] == m + 1
            and (whole is None or (not slopes and sparse and whole.shape[0] == m))
            and (signs is None or signs.shape[0] == binned.n_features)
            and (categorical is None or categorical.shape[0] == binned.n_features)
            and sparse == (cells is not None) == (bounds is not None)
            and (not sparse or (bounds.shape[0] == n_rows + 1 and cells.shape[0] == bounds[n_rows]))
            and (panels is None or (
                not sparse
                and binned.width == 1
                and panels.shape[0] == padded * n_rows
                and n_sums == padded * RC_CODES
                and rows_room.shape[0] == RC_CHUNK * RC_PANEL
            ))
        )
        for i in range(m if fits else 0):
            fits = fits and 0 <= features[i] < binned.n_features
            if fits:
                n = binned.n_bins[features[i]] + 1
                fits = scratch.shape[0] >= 5 * n and room.shape[0] >= 2 * n and counts.shape[0] >= n
                if whole is not None and whole[i]:
                    n = 1
                fits = fits and 0 <= offsets[i] and offsets[i] + n <= n_sums
                if panels is not None:
                    fits = fits and offsets[i] == i * RC_CODES
        if not fits:
            raise ValueError("the arrays do not fit the columns")
        self.kept = (columns, features, offsets, whole, signs, categorical, panels, bounds, cells,
                     rows_room, scratch, room, counts)
        w.binned, w.m, w.features, w.offsets = binned, m, &features[0], &offsets[0]
        w.whole = &whole[0] if whole is not None else NULL
        w.signs = &signs[0] if signs is not None else NULL
        w.categorical = &categorical[0] if categorical is not None else NULL
        w.panels = &panels[0] if panels is not None else NULL
        w.bounds = &bounds[0] if bounds is not None else NULL
        w.cells = &cells[0] if sparse and cells.shape[0] else NULL
        w.padded, w.n_sums = padded, n_sums
        w.rows_room = &rows_room[0] if rows_room.shape[0] else NULL
        w.scratch, w.room, w.counts = &scratch[0], &room[0], &counts[0]
        w.least_rows, w.slopes = least_rows, slopes

    def begin(
        self,
        const uint64_t[::1] words not None,  # (n_rows,): the word of each row
        const int32_t[::1] leaf_of not None,  # (n_rows,): for sparse columns: the leaf of each row
        const uint8_t[::1] allowed,  # (m,), or None: which columns may be used
        double l2,  # in units of the words: what is added to W + L, and the least W + L of a child
        double least,
    ):
        """Begin a tree."""
        cdef Work *w = &self.work
        if (
            words.shape[0] != w.binned.n_rows
            or leaf_of.shape[0] != w.binned.n_rows
            or (allowed is not None and allowed.shape[0] != w.m)
        ):
            raise ValueError("the arrays do not fit the columns")
        self.kept_of_tree = words, leaf_of, allowed
        w.words, w.leaf_of = &words[0], &leaf_of[0]
        w.allowed = &allowed[0] if allowed is not None else NULL
        w.l2, w.least = l2, least
        w.new = NULL

    def prepare(
        self,
        const int32_t[::1] rows not None,  # (n,): rows of the leaf, ascending
        uint64_t[::1] new not None,  # out, (n_sums,): their sums by bin; of sparse ones of entries
        # in and out, (n_sums,), or None: sums of the parent, less the new ones: of the other child
        uint64_t[::1] parent,
        # of records, (n_leaves,): those to look at: ``word``, the sum of the words of its rows,
        # ``n_rows``, how many, ``low`` and ``high``, the range of the values of its children,
        # ``number`` in leaf_of, and ``is_less``, whether the new sums are its own if there are more
        const Leaf[::1] leaves not None,
        # out, (n_leaves, m): of both children together, or a bound on it; negative: no cut
        double[:, ::1] worths not None,
        uint64_t[:, ::1] firing not None,  # out, (n_leaves, m): sum of the words of rows that fire
        # out, (n_leaves, m): BOUNDED if it is a bound, and less than the worth of another column.
        # Of categories, how many fire.
        int32_t[:, ::1] bins not None,
        uint8_t[:, ::1] sides not None,  # out, (n_leaves, m): whether missing values fire
    ):
        """Set what the next look is at: a leaf, or the children of one."""
        cdef Work *w = &self.work
        cdef int64_t i, n = leaves.shape[0]
        cdef bint fits = (
            w.words != NULL
            and (rows.shape[0] == 0 or 0 <= rows[0] <= rows[rows.shape[0] - 1] < w.binned.n_rows)
            and new.shape[0] == w.n_sums
            and (parent is None or parent.shape[0] == w.n_sums)
            and n > 0
            and worths.shape[0] == firing.shape[0] == bins.shape[0] == sides.shape[0] == n
            and worths.shape[1] == firing.shape[1] == bins.shape[1] == sides.shape[1] == w.m
        )
        for i in range(n):
            fits = fits and (parent is not None or not leaves[i].is_less)
        if not fits:
            raise ValueError("the rows, sums and leaves do not fit the columns")
        self.kept_of_look = rows, new, parent, leaves, worths, firing, bins, sides
        w.rows = &rows[0] if rows.shape[0] else NULL
        w.n_rows, w.n_leaves = rows.shape[0], n
        w.new, w.parent = &new[0], &parent[0] if parent is not None else NULL
        w.leaves = &leaves[0]
        w.worths, w.firing = &worths[0, 0], &firing[0, 0]
        w.bins, w.sides = &bins[0, 0], &sides[0, 0]


cdef void _take(PyThread_type_lock lock) noexcept nogil:
    """Take a lock that another thread is about to release."""
    cdef int _
    for _ in range(TRIES):
        if PyThread_acquire_lock(lock, NOWAIT_LOCK):
            return
        rc_relax()
    PyThread_acquire_lock(lock, WAIT_LOCK)


cdef void _end(PyThread_type_lock lock) noexcept:
    if lock != NULL:
        PyThread_release_lock(lock)
        PyThread_free_lock(lock)


cdef class Crew:
    """Threads that look at the same leaves at once, each with its own `Look`; one may be enough.

    All but the first must be in `serve` when `look` is called, or come to it, until `dismiss`.
    """

    cdef tuple looks
    cdef int64_t n
    cdef const Work **works
    # Each (n,), of the other threads: released to begin, and when done.
    cdef PyThread_type_lock *begun
    cdef PyThread_type_lock *done
    cdef bint dismissed

    def __cinit__(self, list looks not None):
        cdef int64_t i
        self.looks, self.n = tuple(looks), len(looks)
        self.works = <const Work **> calloc(max(self.n, 1), sizeof(Work *))
        self.begun = <PyThread_type_lock *> calloc(max(self.n, 1), sizeof(PyThread_type_lock))
        self.done = <PyThread_type_lock *> calloc(max(self.n, 1), sizeof(PyThread_type_lock))
        if self.works == NULL or self.begun == NULL or self.done == NULL:
            raise MemoryError
        for i in range(self.n):
            self.works[i] = &(<Look?> looks[i]).work
        for i in range(1, self.n):
            self.begun[i], self.done[i] = PyThread_allocate_lock(), PyThread_allocate_lock()
            if self.begun[i] == NULL or self.done[i] == NULL:
                raise MemoryError
            PyThread_acquire_lock(self.begun[i], WAIT_LOCK)
            PyThread_acquire_lock(self.done[i], WAIT_LOCK)

    def __dealloc__(self):
        cdef int64_t i
        for i in range(1, self.n if self.begun != NULL and self.done != NULL else 0):
            _end(self.begun[i])
            _end(self.done[i])
        free(self.works)
        free(self.begun)
        free(self.done)

    def serve(self, int64_t i):
        """Run the i-th look whenever the first thread looks, until it dismisses."""
        if not 1 <= i < self.n:
            raise IndexError(f"there is no look {i}")
        with nogil:
            while True:
                _take(self.begun[i])
                if self.dismissed:
                    break
                _look(self.works[i])
                PyThread_release_lock(self.done[i])
            PyThread_release_lock(self.done[i])

    def look(self):
        """Run all looks that were prepared; the first in this thread."""
        cdef int64_t i
        for i in range(self.n):
            if self.works[i].new == NULL:
                raise ValueError("a look is not prepared")
        with nogil:
            for i in range(1, self.n):
                PyThread_release_lock(self.begun[i])
            if self.n:
                _look(self.works[0])
            for i in range(1, self.n):
                _take(self.done[i])

    def dismiss(self, int64_t serving):
        """End `serve` of the other threads, of which the first ``serving`` have been started.

        If that is not all of them, the crew is of no further use.
        """
        cdef int64_t i
        with nogil:
            self.dismissed = True
            for i in range(1, self.n):
                PyThread_release_lock(self.begun[i])
            for i in range(1, min(serving + 1, self.n)):
                _take(self.done[i])
            self.dismissed = serving < self.n - 1
