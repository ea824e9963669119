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

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from functools import partial

import numpy as np

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._cusum cimport follow_cusum
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
    extend_inverse,
    nearest,
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
from rankcore._ext.online_model cimport OnlineModel, update_t, weighted_t
from rankcore.core cimport (
    RC_FLOAT32,
    RC_FLOAT64,
    rc_counts,
    rc_cusum_state,
    rc_norm2,
    rc_row_f64,
    rc_rows,
    rc_rows_get,
)

from rankcore._ext.online_model import (
    MARGIN, MOST_COUNTED, SCALE, Array, are_counts, averages, check_ascending, check_steps
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


def span(
    const double[:, ::1] gram not None,  # (n, n): kernel values of the support vectors
    double tolerance,
    double[:, ::1] inverse not None,  # out, (capacity >= n, capacity): of the matrix of those kept
    double[:, ::1] shares not None,  # out, (n, n): each as a combination of those kept
):
    """Add support vectors one by one by the policy "projectron"; return those it keeps.

    A support vector near the span of those before is a combination of these. O(n ** 3).
    """
    cdef int64_t n = gram.shape[0], s, k, m = 0
    cdef double own, distance
    cdef int64_t[::1] kept = np.empty(n, dtype=np.int64)
    cdef double[::1] values = np.empty(n + 1)
    if gram.shape[1] != n or inverse.shape[1] != inverse.shape[0] or not (
        n <= inverse.shape[0] and shares.shape[0] == n and shares.shape[1] == n
    ):
        raise ValueError("kernel values, inverse and shares are inconsistent")
    for s in range(n):
        for k in range(m):
            values[k] = gram[s, kept[k]]
        own = gram[s, s]
        distance = nearest(&inverse[0, 0], inverse.shape[0], m, &values[0], own, &shares[s, 0])
        if distance <= tolerance * own:
            continue
        extend_inverse(&inverse[0, 0], inverse.shape[0], m, &shares[s, 0], distance)
        for k in range(m):
            shares[s, k] = 0.0
        shares[s, m] = 1.0
        kept[m] = s
        m += 1
    return np.asarray(kept[:m])


cdef class DualState:
    """The pool and the lists of a learner, whose arrays were checked."""

    cdef Dual m
    cdef list arrays  # keeps alive what the state points to
    cdef double *values
    cdef double *room
    cdef double *sums
    cdef int64_t *summed
    cdef int64_t n_stored  # capacity for values of sparse support vectors

    def __dealloc__(self):
        free_block(&self.m.block)
        free(self.values)
        free(self.room)
        free(self.sums)
        free(self.summed)

    cdef void *entries(self, object array, str dtype, int64_t size) except? NULL:
        """Return a pointer to an array of a type and size; NULL for None."""
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
        """Check the arrays common to all learners, and point to them.

        The last ``n_sums`` outputs are sums of others.
        """
        cdef Dual *m = &self.m
        cdef float[::1] singles
        self.arrays = []
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
        m.gram = self.doubles(arrays.get("gram"), m.capacity * m.capacity)
        m.inverse = self.doubles(arrays.get("inverse"), m.capacity * m.capacity)
        m.damage = self.doubles(arrays.get("damage"), 1)
        self.begin(kernel, budget)
        return 0

    cdef DualState of_next_block(self, dict kernel, dict budget):
        """Return a state of the same arrays, for another block."""
        cdef DualState state = DualState.__new__(DualState)
        state.m, state.arrays, state.n_stored = self.m, self.arrays[:], self.n_stored
        state.begin(kernel, budget)
        return state

    cdef int begin(self, dict kernel, dict budget) except -1:
        """Read the parameters, and allocate memory for a block."""
        cdef Dual *m = &self.m
        cdef int32_t j
        m.kernel.kind = kernel["kind"]
        m.kernel.gamma = kernel["gamma"]
        m.kernel.coef0 = kernel["coef0"]
        m.kernel.degree = kernel["degree"]
        m.budget = budget["budget"]
        m.policy = budget["policy"]
        m.decay = budget["decay"]
        m.tolerance = budget["tolerance"]
        m.seed = budget["seed"]
        self.room = <double *> malloc((m.capacity + 3 * m.n_outputs) * sizeof(double))
        if self.room == NULL:
            raise MemoryError
        m.scratch = self.room
        m.change = self.room + m.capacity
        m.late = m.change + m.n_outputs
        m.seen = m.late + m.n_outputs
        if not 0 <= m.book[N_SUPPORT] <= m.capacity or not 0 <= m.n_free:
            raise ValueError("the number of support vectors must be from 0 to the capacity")
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

        Raises ValueError if shapes are inconsistent, or the arrays have no room for the rows.
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
            raise ValueError("rows, order, range, values and state are inconsistent")
        for i in range(start, stop):
            row = i if order is None else order[i]
            if not 0 <= row < X.n_rows:
                raise ValueError(f"order has the row {row} of {X.n_rows}")
            stored += rc_rows_get(X, row).n
        for j in range(m.n_outputs):
            if m.list_capacity < m.capacity and (
                m.inverse != NULL or m.sizes[j] + n > m.list_capacity
            ):
                raise ValueError("the lists of coefficients are too small for the block")
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
        failed = new_block(&m.block, X, visited, start, stop, dense, m.units)
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
                pass  # `begin_block` sums over support vectors, or `begin_row` copies kept values
            elif m.among == NULL:
                rc_block_values(
                    &m.kernel, &m.pool, &m.block, 0, support, m.values, m.stride
                )
            elif support > 0:
                for i in range(n):
                    memcpy(
                        m.values + i * m.stride, &values[i, 0], support * sizeof(double)
                    )


def _make_dense(arrays, n_features):
    """Make the support vectors dense, of float64; return whether arrays were replaced."""
    vectors = arrays["vectors"]
    if "starts" in arrays:
        dense = np.zeros((arrays["support"].size, n_features))
        for s in range(arrays["book"][N_SUPPORT]):
            place = slice(arrays["starts"][s], arrays["starts"][s] + arrays["lengths"][s])
            dense[s, arrays["indices"][place]] = vectors[place]
        for name in ("indices", "starts", "lengths"):
            del arrays[name]
        arrays["book"][STORED] = 0
        arrays["vectors"] = dense
        return True
    arrays["vectors"] = vectors.astype(np.float64, copy=False)
    return arrays["vectors"] is not vectors


cdef class KernelModel(OnlineModel):
    """A model in dual form: a pool of support vectors and lists of coefficients, with spare room.

    ``rankcore.ordinal.kernel.pools`` describes the arrays, and enlarges them between blocks. A
    block of rows is prepared by `take` and then learned.
    """

    cdef DualState bound  # bound to the arrays; None if they have been replaced
    cdef DualState block  # the block to learn, or None

    def _pool_forms(self, n_outputs, arrays):
        """Return the declarations of the arrays of the pool, for a number of outputs."""
        policy = None if self.settings["budget"] is None else self.settings["budget_policy"]
        forms = {
            "book": Array(BOOK_SIZE, dtype="int64"),
            "gamma": Array(1),
            "support": Array("room", dtype="int64"),
            "born": Array("room", dtype="int64"),
            "norms": Array("room"),
            "diagonal": Array("room"),
            "sizes": Array(n_outputs, dtype="int64"),
            "slots": Array(n_outputs, "entries", dtype="int32"),
            "coefs": Array(n_outputs, "entries", averaged=True),
        }
        if policy == "forgetron":
            forms |= {"gram": Array("room", "room"), "damage": Array(1)}
        if policy == "projectron":
            forms["inverse"] = Array("room", "room")
        if policy == "random":
            forms["evict_seed"] = Array(1, dtype="int64")
        if "vectors" not in arrays:  # a new model, or a precomputed kernel
            return forms
        dtype = arrays["vectors"].dtype
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"support vectors must be float32 or float64; got {dtype}")
        if "starts" not in arrays:
            return forms | {"vectors": Array("room", "features", dtype=dtype)}
        return forms | {
            "vectors": Array("values", dtype=dtype),
            "indices": Array("values", dtype="int32"),
            "starts": Array("room", dtype="int64"),
            "lengths": Array("room", dtype="int64"),
        }

    def wider(self, n_features, below=0, above=0):
        """Raise TypeError: values of kernels may depend on the number of features."""
        raise TypeError(
            "grow=True requires a linear learner, not one with a kernel: pass all columns from the "
            "first call on, with 0 where a value is not known, and all ranks as classes"
        )

    cdef int bind(self) except -1:
        self.bound = self.block = None
        return 0

    cdef Dual *taken(self) except NULL:
        """Return the block, to be learned once."""
        if self.block is None:
            raise ValueError("there is no block of rows to learn: call take")
        return &self.block.m

    cdef void end(self) noexcept:
        OnlineModel.end(self)
        self.block = None

    def take(
        self,
        dict kernel not None,
        dict budget not None,
        int32_t n_sums,  # number of outputs, the last ones, that are sums of others
        object rows not None,  # this and the following arguments are those of ``DualState.take``
        const int32_t[::1] order,
        int64_t start,
        int64_t stop,
        int64_t first,
        int32_t[::1] slot_of,
        const double[:, ::1] values,
        const double[:, ::1] among,
        const double[:, ::1] gram,
    ):
        """Prepare for learning a block of rows."""
        cdef DualState taken
        self.ensure_writable()
        if self.learner.update == NULL:
            raise ValueError("the arrays of the model are inconsistent")
        if self.bound is None:
            taken = DualState()
            taken.bind_pool(dict(self.arrays), kernel, budget, self.n_features, n_sums)
            taken.arrays = []  # the model keeps them alive, and may replace them
            self.bound = taken
        taken = self.bound.of_next_block(kernel, budget)
        taken.m.units = &self.standard.units if self.standard.active else NULL
        taken.take(rows, order, start, stop, first, slot_of, values, among, gram)
        self.block = taken

    @property
    def standardizes(self):
        """Whether rows are standardised; never for a precomputed kernel."""
        return self.settings["kernel"] != "precomputed" and bool(self.settings["standardize"])

    def refold(self, center, deviation):
        """Change the units of rows and of support vectors, which become dense, of float64.

        Squared lengths follow; all else that depends on the units is left to the caller.
        """
        units = np.stack([center, deviation])
        if np.array_equal(self["units"], units):
            return
        old = self["units"].copy()
        self["units"][...] = units
        self._read_units()
        if "vectors" in self.arrays:
            self.reshape(partial(_make_dense, n_features=self.n_features))
            self._change_vectors(old, units)
        self.computed = None

    def set_units(self, center, deviation):
        """Change the units as `refold` does: support vectors are rows in any units."""
        self.refold(center, deviation)

    def _change_vectors(self, old, new):
        cdef int64_t s, n = self["book"][N_SUPPORT], d = self.n_features
        cdef double[:, ::1] vectors = self["vectors"]
        cdef double[::1] norms = self["norms"]
        live = self["vectors"][:n]
        live *= old[1]
        live += old[0]
        live -= new[0]
        live *= 1 / new[1]
        for s in range(n):
            norms[s] = rc_norm2(rc_row_f64(&vectors[s, 0], NULL, d))

    def check(self):
        """Raise ValueError unless lists, counts and sparse vectors lie within their arrays."""
        arrays = self.arrays
        n, budget = arrays["support"].size, self.settings["budget"]
        book, sizes = arrays["book"], arrays["sizes"]
        used = np.arange(arrays["slots"].shape[1]) < sizes[:, np.newaxis]
        slots = np.where(used, arrays["slots"], -1)
        if (
            book[N_SUPPORT] != n
            or (budget is not None and n > budget)
            or not are_counts(book, arrays["born"], arrays["support"])
            or (arrays["norms"] < 0).any()
            or arrays["gamma"][0] < 0
        ):
            raise ValueError("the number, counts or norms of the support vectors are out of range")
        if (
            (sizes < 0).any()
            or (sizes > min(n, slots.shape[1])).any()
            or (np.diff(slots, axis=1)[used[:, 1:]] < 1).any()
            or (slots >= n).any()
            or (slots[used] < 0).any()
        ):
            raise ValueError("the coefficients must be in the order of the support vectors")
        if "starts" in arrays:
            n_values = arrays["vectors"].size
            if (
                (arrays["starts"] < 0).any()
                or (arrays["lengths"] < 0).any()
                or (arrays["lengths"] > n_values).any()
                or (arrays["starts"] > n_values - arrays["lengths"]).any()
                or book[STORED] != n_values
                or (arrays["indices"] < 0).any()
            ):
                raise ValueError("the sparse support vectors must lie within their values")
        if self.standard.active and "vectors" in arrays and (
            "starts" in arrays or arrays["vectors"].dtype != np.float64
        ):
            raise ValueError("standardised support vectors must be dense, of float64")
        precomputed = self.settings["kernel"] == "precomputed"
        if precomputed or "indices" in arrays:
            if (arrays["support" if precomputed else "indices"] >= self.n_features).any():
                raise ValueError(f"the columns of support vectors must be < {self.n_features}")

    def lists(self):
        """Return the slots, coefficients and sizes of the lists to predict with."""
        return self["slots"], self.mean("coefs"), self["sizes"]

    def compute(self):
        """Return the lists and thresholds to predict with."""
        return (*self.lists(), self.cuts())


@final
cdef class KernelPRankModel(KernelModel):
    """PRank in dual form."""

    cdef PRankRule rule
    cdef const double *scale
    cdef const double *margin

    def declare(self, arrays):
        return {
            "steps": Array("tasks", dtype="int64", averaged=True),
            "thresholds": Array("tasks", derived=True),
            "scale": SCALE,
            "margin": MARGIN,
        } | self._pool_forms(1, arrays)

    cdef int bind(self) except -1:
        self.bound = self.block = None
        self.rule.steps = <int64_t *> self.at("steps")
        self.rule.thresholds = <double *> self.at("thresholds")
        self.rule.step_sums = <int64_t *> self.at("steps_sums")
        self.rule.n_ranks = self.n_ranks
        self.scale = <const double *> self.at("scale")
        self.margin = <const double *> self.at("margin")
        return self.learns_by(<update_t> prank_update, NULL, &self.rule, &self.rule.seen)

    cdef int follow(self, object params) except -1:
        self.rule.dual = self.taken()
        self.rule.scale = self.scale[0]
        self.rule.margin = self.margin[0]
        self.rule.ties_err = params.tie != "strict"
        return 0

    def derive(self):
        self["thresholds"][...] = self["scale"] * self["steps"]

    def check(self):
        KernelModel.check(self)
        check_steps(self.arrays)

    def cuts(self):
        """Return the thresholds to predict with."""
        return self["scale"][0] * self.mean("steps")


@final
cdef class KernelCuSumModel(KernelModel):
    """CuSum Rank in dual form, see ``ordinal.CuSumModel``."""

    cdef CuSumRule rule
    cdef const double *scale

    def __dealloc__(self):
        PyMem_Free(self.rule.rule.scores)

    def declare(self, arrays):
        return {
            "thresholds": Array("tasks", averaged=True), "scale": SCALE
        } | self._pool_forms(self.n_ranks - 1, arrays)

    cdef int bind(self) except -1:
        cdef rc_cusum_state *rule = &self.rule.rule
        self.bound = self.block = None
        PyMem_Free(rule.scores)
        rule.scores = <double *> PyMem_Malloc(2 * self.n_ranks * sizeof(double))
        if rule.scores == NULL:
            raise MemoryError
        rule.thresholds = <double *> self.at("thresholds")
        rule.threshold_sums = <double *> self.at("thresholds_sums")
        rule.n_features = self.n_features
        rule.n_ranks = self.n_ranks
        self.scale = <const double *> self.at("scale")
        return self.learns_by(
            <update_t> cusum_update, <weighted_t> cusum_weighted, &self.rule, &rule.seen
        )

    cdef int follow(self, object params) except -1:
        self.rule.dual = self.taken()
        follow_cusum(&self.rule.rule, params, self.scale[0])
        return 0

    def cuts(self):
        """Return the thresholds to predict with."""
        return self.mean("thresholds")


@final
cdef class KernelOAPModel(KernelModel):
    """PRanks in dual form that sample one stream; the last output is the sum of the members."""

    averaged_by = "average_members"

    cdef OAPRule rule
    cdef const uint64_t[::1] cumulative
    cdef const double *scale
    cdef const double *margin
    cdef char *drawing

    def __dealloc__(self):
        PyMem_Free(self.drawing)

    def declare(self, arrays):
        n = self.settings["n_estimators"]
        return {
            "steps": Array(n, "tasks", dtype="int64", averaged=True),
            "thresholds": Array(n, "tasks", derived=True),
            "totals": Array("tasks", dtype="int64"),
            "mean_thresholds": Array("tasks", derived=True),
            "seen": Array(n, 3, dtype="int64"),
            "seed": Array(1, dtype="int64"),
            "scale": SCALE,
            "margin": MARGIN,
        } | self._pool_forms(n + 1, arrays)

    cdef int bind(self) except -1:
        cdef OAPRule *rule = &self.rule
        cdef int64_t n = self.settings["n_estimators"], tasks = self.n_ranks - 1
        self.bound = self.block = None
        PyMem_Free(self.drawing)
        self.drawing = <char *> PyMem_Malloc(16 * (n + 1) + 4 * tasks)
        if self.drawing == NULL:
            raise MemoryError
        rule.draws = <uint64_t *> self.drawing
        rule.times = <int64_t *> (rule.draws + n + 1)
        rule.moved = <int32_t *> (rule.times + n + 1)
        rule.steps = <int64_t *> self.at("steps")
        rule.thresholds = <double *> self.at("thresholds")
        rule.step_sums = <int64_t *> self.at("steps_sums")
        rule.members = <rc_counts *> self.at("seen")
        rule.totals = <int64_t *> self.at("totals")
        rule.mean_thresholds = <double *> self.at("mean_thresholds")
        rule.n_members = <int32_t> n
        rule.n_ranks = self.n_ranks
        self.scale = <const double *> self.at("scale")
        self.margin = <const double *> self.at("margin")
        return self.learns_by(<update_t> oap_update, NULL, rule, &rule.seen)

    def draw_by(self, const uint64_t[::1] cumulative not None):
        """Set the thresholds of draws with which members take an example, see `least_draws`."""
        if cumulative.shape[0] < 1:
            raise ValueError("cumulative is empty")
        self.cumulative = cumulative
        self.rule.cumulative = &cumulative[0]
        self.rule.n_cumulative = cumulative.shape[0]

    cdef int follow(self, object params) except -1:
        if self.cumulative is None:
            raise ValueError("an ensemble needs a rule of drawing: call draw_by")
        self.rule.dual = self.taken()
        self.rule.seed = <uint64_t> (<int64_t> self["seed"][0])
        self.rule.scale = self.scale[0]
        self.rule.margin = self.margin[0]
        self.rule.ties_err = params.tie != "strict"
        return 0

    def derive(self):
        self["thresholds"][...] = self["scale"] * self["steps"]
        mean = self["totals"] / self.settings["n_estimators"]
        self["mean_thresholds"][...] = self["scale"] * mean

    def check(self):
        KernelModel.check(self)
        if not are_counts(self["seen"]) or self["seed"][0] < 0:
            raise ValueError(f"the counts of the members must be from 0 to {MOST_COUNTED}")
        check_steps(self.arrays)
        check_ascending(self.arrays, "totals")

    def member_coefs(self):
        """Return the members' lists of coefficients for predictions; the last is the sum."""
        if not self.averages:
            return self["coefs"]
        t = np.append(self["seen"][:, 0], 1)[:, np.newaxis]
        return averages(self["coefs"], self["coefs_sums"], t)

    def member_thresholds(self):
        """Return the members' thresholds for predictions."""
        if not self.averages:
            return self["thresholds"]
        return self["scale"][0] * averages(self["steps"], self["steps_sums"], self["seen"][:, :1])

    def lists(self):
        """Return the lists of the mean of the members, to predict with."""
        n = self.settings["n_estimators"]
        if not self.averages:
            return self["slots"][n:], self["coefs"][n:] / n, self["sizes"][n:]
        coefs, table = self.member_coefs(), np.zeros((n, self["book"][N_SUPPORT]))
        for j, size in enumerate(self["sizes"][:n]):
            table[j, self["slots"][j, :size]] = coefs[j, :size]
        table = table.mean(axis=0, keepdims=True)
        return np.arange(table.size, dtype=np.int32)[np.newaxis], table, np.array([table.size])

    def cuts(self):
        """Return the thresholds to predict with."""
        if not self.averages:
            return self["mean_thresholds"]
        return self.member_thresholds().mean(axis=0)


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
