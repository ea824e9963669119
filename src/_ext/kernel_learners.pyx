"""Learners in dual form: PRank, CuSum Rank, OAP and structured ones on a pool of support vectors.

The rules are those of the linear learners. Instead of adding a multiple of an example to the
weights, a dual learner makes the example a support vector with that multiple as its coefficient,
and scores by the kernel. Harrington's dual form of OAP ("Online ranking/collaborative filtering
using the perceptron algorithm", ICML 2003) multiplies the sum of the threshold steps by the label
once more; the coefficient is the sum itself, whose sign is already right.

A block of rows is evaluated against all support vectors before it is learned; a row of the block
that becomes a support vector is then evaluated against the following rows. Each score is summed
over the current lists of coefficients, so that the result does not depend on the division of a
stream into blocks.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._dual cimport (
    BOOK_SIZE,
    FIRST,
    FORGETRON,
    JOINED,
    N_SUPPORT,
    NORMA,
    OLDEST,
    PROJECTRON,
    RANDOM,
    SMALLEST,
    STORED,
    UPDATES,
    Dual,
    age,
    begin_block,
    dual_output,
    take_up,
)
from rankcore._ext._dual_rules cimport (
    CuSumRule,
    OAPRule,
    PRankRule,
    cusum_update,
    cusum_weighted,
    forget_changes,
    oap_update,
    prank_update,
)
from rankcore._ext._kernel_block cimport (
    RC_ROWS_,
    RC_SUMMED_SLOTS,
    free_block,
    new_block,
    padded,
    rc_block_fill,
    rc_block_values,
)
from rankcore._ext._learner cimport Learner, capsule_of, update_t, weighted_t
from rankcore.core cimport (
    RC_FLOAT32,
    RC_FLOAT64,
    RC_TIE_HIGH,
    RC_TIE_LOW,
    rc_counts,
    rc_cusum_state,
    rc_rows,
    rc_rows_get,
)


# Policies of a budget, and places in the array "book", by name.
POLICIES = {
    "oldest": OLDEST,
    "random": RANDOM,
    "smallest": SMALLEST,
    "forgetron": FORGETRON,
    "norma": NORMA,
    "projectron": PROJECTRON,
}
BOOK = {
    "n_support": N_SUPPORT,
    "stored": STORED,
    "joined": JOINED,
    "first": FIRST,
    "updates": UPDATES,
}


cdef class DualState:
    """The pool and the lists of a learner, whose arrays were checked."""

    cdef Dual m
    cdef Learner learner
    cdef readonly object capsule  # the learner for ``online_loop.learn``, while this object lives
    cdef list arrays  # keeps alive what the state points to
    cdef double *values
    cdef double *room
    cdef double *sums
    cdef int64_t *summed
    cdef int64_t n_stored  # values that sparse support vectors have room for

    def __dealloc__(self):
        free_block(&self.m.block)
        free(self.values)
        free(self.room)
        free(self.sums)
        free(self.summed)

    cdef void *entries(self, object array, str dtype, int64_t size) except? NULL:
        """Pointer to an array of a given type and size; NULL for None."""
        cdef uint8_t[::1] raw
        if array is None:
            return NULL
        if array.dtype != dtype or array.size != size or size == 0:
            raise ValueError(
                f"a state array has {array.size} entries of {array.dtype}; it needs {size} of "
                f"{dtype}"
            )
        raw = array.reshape(-1).view("uint8")
        self.arrays.append(raw)
        return &raw[0]

    cdef double *doubles(self, object array, int64_t size) except? NULL:
        return <double *> self.entries(array, "float64", size)

    cdef int64_t *integers(self, object array, int64_t size) except? NULL:
        return <int64_t *> self.entries(array, "int64", size)

    cdef int32_t *shorts(self, object array, int64_t size) except? NULL:
        return <int32_t *> self.entries(array, "int32", size)

    cdef int bind_pool(
        self, dict arrays, dict kernel, dict budget, int64_t n_features, int32_t n_sums
    ) except -1:
        """Check and take the arrays that all learners have.

        The last ``n_sums`` outputs are sums of others.
        """
        cdef Dual *m = &self.m
        cdef float[::1] singles
        cdef int32_t j
        self.arrays = []
        m.kernel.kind = kernel["kind"]
        m.kernel.gamma = kernel["gamma"]
        m.kernel.coef0 = kernel["coef0"]
        m.kernel.degree = kernel["degree"]
        m.capacity = arrays["support"].size
        m.support = self.integers(arrays["support"], m.capacity)
        m.born = self.integers(arrays["born"], m.capacity)
        m.norms = self.doubles(arrays["norms"], m.capacity)
        m.diagonal = self.doubles(arrays["diagonal"], m.capacity)
        m.book = self.integers(arrays["book"], BOOK_SIZE)
        m.n_outputs = arrays["sizes"].size
        m.n_free = m.n_outputs - n_sums
        m.sizes = self.integers(arrays["sizes"], m.n_outputs)
        m.list_capacity = arrays["slots"].shape[1]
        m.slots = self.shorts(arrays["slots"], m.n_outputs * m.list_capacity)
        m.coefs = self.doubles(arrays["coefs"], m.n_outputs * m.list_capacity)
        m.coef_sums = self.doubles(arrays.get("coefs_sums"), m.n_outputs * m.list_capacity)
        m.pool.n_features = n_features
        vectors = arrays.get("vectors")
        if vectors is not None:
            size = n_features * m.capacity
            if "starts" in arrays:
                size = self.n_stored = vectors.size
                m.indices = self.shorts(arrays["indices"], size)
                m.starts = self.integers(arrays["starts"], m.capacity)
                m.lengths = self.integers(arrays["lengths"], m.capacity)
            m.pool.dtype = RC_FLOAT32 if vectors.itemsize == 4 else RC_FLOAT64
            if m.pool.dtype == RC_FLOAT32:
                singles = vectors.reshape(-1)
                if singles.shape[0] != size:
                    raise ValueError(f"the pool has {singles.shape[0]} values; it needs {size}")
                self.arrays.append(singles)
                m.data = &singles[0]
            else:
                m.data = self.doubles(vectors, size)
        m.pool.data = m.data
        m.pool.indices = m.indices
        m.pool.starts = m.starts
        m.pool.lengths = m.lengths
        m.pool.norms = m.norms
        m.budget = budget["budget"]
        m.policy = budget["policy"]
        m.decay = budget["decay"]
        m.tolerance = budget["tolerance"]
        m.seed = budget["seed"]
        m.gram = self.doubles(arrays.get("gram"), m.capacity * m.capacity)
        m.inverse = self.doubles(arrays.get("inverse"), m.capacity * m.capacity)
        m.damage = self.doubles(arrays.get("damage"), 1)
        self.room = <double *> malloc((m.capacity + 3 * m.n_outputs) * sizeof(double))
        if self.room == NULL:
            raise MemoryError
        m.scratch = self.room
        m.change = self.room + m.capacity
        m.late = m.change + m.n_outputs
        m.seen = m.late + m.n_outputs
        if not 0 <= m.book[N_SUPPORT] <= m.capacity or not 0 <= m.n_free:
            raise ValueError("the number of support vectors is impossible")
        for j in range(m.n_outputs):
            if not 0 <= m.sizes[j] <= m.list_capacity:
                raise ValueError("the length of a list of coefficients is impossible")
        return 0

    cdef int make_sums(self, int64_t n) except -1:
        """Allocate memory for the sums of a block of n rows."""
        cdef Dual *m = &self.m
        cdef int64_t sums = 4 * padded(n) * m.n_outputs
        self.sums = <double *> malloc((sums + padded(n) * RC_SUMMED_SLOTS) * sizeof(double))
        self.summed = <int64_t *> malloc(
            3 * m.n_outputs * sizeof(int64_t) + padded(n) // RC_ROWS_ * m.n_outputs
        )
        if self.sums == NULL or self.summed == NULL:
            raise MemoryError
        memset(self.sums, 0, sums * sizeof(double))
        memset(self.summed, 0, m.n_outputs * sizeof(int64_t))
        m.sums = self.sums
        m.room = self.sums + sums
        m.summed = self.summed
        m.wanted = <uint8_t *> (self.summed + 3 * m.n_outputs)
        return 0

    cdef void bind(
        self, update_t update, weighted_t weighted, void *state, rc_counts *seen, int32_t n_ranks
    ):
        self.capsule = capsule_of(
            &self.learner, update, weighted, state, seen, self.m.pool.n_features, n_ranks
        )

    def take(
        self,
        object rows not None,  # canonical
        const int32_t[::1] order,  # or None: row at each position; None for the rows as they come
        int64_t start,  # range of positions
        int64_t stop,
        int64_t first,  # number of row 0 in ``support``
        # in and out, (n_rows,), or None: the slot of each row that is a support vector, else -1;
        # None if no row comes twice
        int32_t[::1] slot_of,
        # (stop - start, n_support), or None: kernel values of the block with the support vectors;
        # None to compute them
        const double[:, ::1] values,
        # (stop - start, stop - start), or None: kernel values of the block's rows; required with
        # ``values``
        const double[:, ::1] among,
        # (n_rows, n_rows), or None: kernel values of all rows, in place of ``values``, for learners
        # that begin each row; ``support`` then numbers the rows
        const double[:, ::1] gram=None,
    ):
        """Prepare for learning the rows at positions start .. stop - 1, once per state.

        Raises ValueError if shapes do not fit together, or the arrays have no room for the rows.
        """
        cdef const rc_rows *X = checked_rows(rows)
        cdef Dual *m = &self.m
        cdef int64_t n = stop - start, support = m.book[N_SUPPORT], i, row, width, stored = 0
        cdef int64_t joining = n if m.budget < 0 else m.budget - support
        cdef bint dense = m.starts == NULL and m.data != NULL
        cdef const int32_t *visited = NULL
        cdef int failed
        cdef int32_t j
        joining = n if n < joining else joining
        if (
            self.values != NULL
            or not rows.canonical
            or m.pool.n_features != X.n_features
            or not 0 <= start < stop <= (X.n_rows if order is None else order.shape[0])
            or (slot_of is not None and slot_of.shape[0] != X.n_rows)
            or (values is None) != (among is None)
            or (among is None and m.data == NULL)
            or (among is not None and (among.shape[0] != n or among.shape[1] != n))
            or (gram is not None and (
                values is not None
                or first != 0
                or gram.shape[0] != X.n_rows
                or gram.shape[1] != X.n_rows
            ))
            or (values is not None and (
                values.shape[0] != n or values.shape[1] != support
            ))
        ):
            raise ValueError("rows, order, range, values and state do not fit together")
        for i in range(start, stop):
            row = i if order is None else order[i]
            if not 0 <= row < X.n_rows:
                raise ValueError(f"order has the row {row} of {X.n_rows}")
            stored += rc_rows_get(X, row).n
        for j in range(m.n_outputs):
            if m.list_capacity < m.capacity and (
                m.inverse != NULL or m.sizes[j] + n > m.list_capacity
            ):
                raise ValueError("the lists of coefficients have no room")
        if gram is not None:
            for i in range(support):
                if not 0 <= m.support[i] < X.n_rows:
                    raise ValueError(f"support vector {i} is the row {m.support[i]} of {X.n_rows}")
        if joining < 0 or support + joining > m.capacity or (
            m.starts != NULL and m.book[STORED] + stored > self.n_stored
        ):
            raise ValueError("the pool of support vectors has no room")
        if order is not None:
            visited = &order[0]
        if among is not None:
            m.among = &among[0, 0]
        if slot_of is not None:
            m.slot_of = &slot_of[0]
        failed = new_block(&m.block, X, visited, start, stop, dense)
        m.stride = support + joining
        width = m.stride
        if gram is not None:  # of one row at a time
            m.kept = &gram[0, 0]
            m.stride = 0
        else:
            width *= padded(n)
        self.values = <double *> malloc((width if width else 1) * sizeof(double))
        if failed or self.values == NULL:
            raise MemoryError
        m.values = self.values
        m.first = first
        m.position = 0
        m.n_summed = -1
        self.arrays += [rows, slot_of, among, gram]
        if values is None and gram is None and slot_of is None and m.budget < 0 and support > 0:
            self.make_sums(n)
            m.n_summed = support
        with nogil:
            rc_block_fill(&m.block, dense and m.among == NULL and m.kept == NULL)
            if m.sums != NULL or m.kept != NULL:
                pass  # what is known is summed by `begin_block`, or copied by `begin_row`
            elif m.among == NULL:
                rc_block_values(
                    &m.kernel, &m.pool, &m.block, 0, support, m.values, m.stride
                )
            elif support > 0:
                for i in range(n):
                    memcpy(
                        m.values + i * m.stride, &values[i, 0], support * sizeof(double)
                    )


@final
cdef class KernelPRankState(DualState):
    """PRank in dual form. The sums are None unless averaging."""

    cdef PRankRule rule

    def __init__(
        self,
        dict arrays not None,
        dict kernel not None,
        dict budget not None,
        int64_t n_features,
        double scale,
        double margin,
        bint strict,
    ):
        cdef int64_t tasks = arrays["steps"].size
        self.bind_pool(arrays, kernel, budget, n_features, 0)
        if self.m.n_outputs != 1:
            raise ValueError("PRank has one output")
        self.rule.dual = &self.m
        self.rule.steps = self.integers(arrays["steps"], tasks)
        self.rule.thresholds = self.doubles(arrays["thresholds"], tasks)
        self.rule.step_sums = self.integers(arrays.get("steps_sums"), tasks)
        self.rule.scale = scale
        self.rule.margin = margin
        self.rule.ties_err = not strict
        self.rule.n_ranks = <int32_t> tasks + 1
        self.bind(<update_t> prank_update, NULL, &self.rule, &self.rule.seen, self.rule.n_ranks)


@final
cdef class KernelCuSumState(DualState):
    """CuSum Rank in dual form, see ``ordinal.CuSumState``."""

    cdef CuSumRule rule
    cdef double *scores

    def __dealloc__(self):
        free(self.scores)

    def __init__(
        self,
        dict arrays not None,
        dict kernel not None,
        dict budget not None,
        int64_t n_features,
        double C,
        double delta,
        double margin,
        bint low,
        int32_t update,
        bint zero_one,
        double scale,
    ):
        cdef int64_t tasks = arrays["thresholds"].size
        cdef rc_cusum_state *rule = &self.rule.rule
        self.bind_pool(arrays, kernel, budget, n_features, 0)
        if self.m.n_outputs != tasks:
            raise ValueError("CuSum Rank has an output for each task")
        self.scores = <double *> malloc(2 * (tasks + 1) * sizeof(double))
        if self.scores == NULL:
            raise MemoryError
        self.rule.dual = &self.m
        rule.thresholds = self.doubles(arrays["thresholds"], tasks)
        rule.threshold_sums = self.doubles(arrays.get("thresholds_sums"), tasks)
        rule.scores = self.scores
        rule.C = C
        rule.delta = delta
        rule.margin = margin
        rule.n_features = n_features
        rule.n_ranks = <int32_t> tasks + 1
        rule.tie = RC_TIE_LOW if low else RC_TIE_HIGH
        rule.update = update
        rule.zero_one = zero_one
        rule.scale = scale
        cdef weighted_t weighted = <weighted_t> cusum_weighted
        self.bind(<update_t> cusum_update, weighted, &self.rule, &rule.seen, rule.n_ranks)


@final
cdef class KernelOAPState(DualState):
    """PRanks in dual form that sample one stream; the last output is the sum of the members."""

    cdef OAPRule rule
    cdef uint64_t[::1] cumulative
    cdef char *drawing

    def __dealloc__(self):
        free(self.drawing)

    def __init__(
        self,
        dict arrays not None,
        dict kernel not None,
        dict budget not None,
        int64_t n_features,
        double scale,
        double margin,
        bint strict,
        uint64_t[::1] cumulative not None,
    ):
        cdef OAPRule *rule = &self.rule
        cdef int64_t tasks = arrays["totals"].size, n
        cdef int64_t *members
        self.bind_pool(arrays, kernel, budget, n_features, 1)
        n = self.m.n_free
        if n < 1 or cumulative.shape[0] < 1:
            raise ValueError("an ensemble needs members and a rule of drawing")
        rule.dual = &self.m
        rule.steps = self.integers(arrays["steps"], n * tasks)
        rule.thresholds = self.doubles(arrays["thresholds"], n * tasks)
        rule.step_sums = self.integers(arrays.get("steps_sums"), n * tasks)
        members = self.integers(arrays["seen"], 3 * n)
        rule.members = <rc_counts *> members
        rule.totals = self.integers(arrays["totals"], tasks)
        rule.mean_thresholds = self.doubles(arrays["mean_thresholds"], tasks)
        self.cumulative = cumulative
        rule.cumulative = &cumulative[0]
        rule.n_cumulative = cumulative.shape[0]
        self.drawing = <char *> malloc(16 * (n + 1) + 4 * tasks)
        if self.drawing == NULL:
            raise MemoryError
        rule.draws = <uint64_t *> self.drawing
        rule.times = <int64_t *> (rule.draws + n + 1)
        rule.moved = <int32_t *> (rule.times + n + 1)
        rule.seed = <uint64_t> (<int64_t> arrays["seed"][0])
        rule.scale = scale
        rule.margin = margin
        rule.n_members = <int32_t> n
        rule.n_ranks = <int32_t> tasks + 1
        rule.ties_err = not strict
        self.bind(<update_t> oap_update, NULL, rule, &rule.seen, rule.n_ranks)


@final
cdef class KernelAtomsState(DualState):
    """Outputs in dual form, one for each label of atoms. The caller defines the updates."""

    def __init__(
        self,
        dict arrays not None,
        dict kernel not None,
        dict budget not None,
        int64_t n_features,
    ):
        self.bind_pool(arrays, kernel, budget, n_features, 0)

    cdef int check_range(self, int64_t first, int64_t last) except -1:
        if not 0 <= first <= last <= (self.m.block.n if self.values != NULL else 0):
            raise ValueError(f"the block has no rows {first} .. {last - 1}")
        return 0

    def scores(
        self,
        int64_t first,  # 0 <= first <= last <= rows of the block
        int64_t last,
        double[:, ::1] out not None,  # out, (last - first, n_outputs)
    ):
        """Write the outputs of some rows of the block. O((last - first) * entries of the lists)."""
        cdef int64_t i
        cdef int32_t j
        self.check_range(first, last)
        if out.shape[0] != last - first or out.shape[1] != self.m.n_outputs:
            raise ValueError("out must have a row for each row and a column for each output")
        with nogil:
            begin_block(&self.m, NULL)
            for i in range(last - first):
                for j in range(self.m.n_outputs):
                    out[i, j] = dual_output(&self.m, first + i, j)

    def learn(
        self,
        # 0 <= first <= last <= rows of the block; no earlier than those learned before
        int64_t first,
        int64_t last,
        # (last - first, n_outputs): change of each output's coefficient of each row. A row of zeros
        # stays as it is.
        const double[:, ::1] changes not None,
        int64_t t,  # examples before this one
    ):
        """Learn an example: add to the coefficients of some rows of the block, in order.

        A row that joins costs its kernel values with the later rows of the block.
        """
        cdef Dual *m = &self.m
        cdef int64_t i
        cdef int32_t j
        self.check_range(first, last)
        if changes.shape[0] != last - first or changes.shape[1] != m.n_outputs:
            raise ValueError("changes must have a row for each row and a column for each output")
        if first < last and first < m.position:
            raise ValueError(f"row {first} of the block comes after row {m.position - 1}")
        with nogil:
            forget_changes(m, <double> t)
            age(m)
            for i in range(last - first):
                for j in range(m.n_outputs):
                    m.change[j] = changes[i, j]
                    m.late[j] = <double> t * changes[i, j]
                m.position = first + i
                take_up(m, rc_rows_get(m.block.rows, m.block.which[first + i]))
