# A learner in dual form: support vectors, the lists of their coefficients, and budgets. Private.
#
# A learner has one or more outputs f_j(x), each the sum of coefs[j, i] * K(x, support vector
# slots[j, i]) over its list. Lists ascend by slot, so that an output is summed in one order. All
# outputs share the pool: a kernel value is computed once. A support vector that leaves the pool
# frees its slot for the next one, so that there are no holes.
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memmove, memset

from rankcore._ext._kernel_block cimport (
    RC_ROWS_,
    rc_block,
    rc_block_sums,
    rc_block_values,
    rc_copy_kept,
    rc_dual_dot,
    rc_dual_rest,
    rc_lists,
    rc_support,
)
from rankcore._ext._units cimport rc_units
from rankcore.core cimport RC_FLOAT32, rc_kernel, rc_kernel_value, rc_row


cdef extern from "rankcore_random.h" nogil:
    uint64_t rc_stream(uint64_t seed, uint64_t visit) noexcept
    uint32_t rc_below(uint64_t *state, uint32_t n) noexcept


cdef extern from "_draws.h" nogil:
    int64_t rc_draws_(
        uint64_t seed, int64_t t, int64_t first, int64_t n, const uint64_t *cumulative,
        int64_t n_cumulative, uint64_t *draws, int64_t *times,
    ) noexcept


# Policies of the budget: which vector is removed, or how its coefficients are kept small.
cdef enum:
    OLDEST
    RANDOM
    SMALLEST
    FORGETRON
    NORMA
    PROJECTRON

# Indices of the counters in `book`.
cdef enum:
    N_SUPPORT  # support vectors
    STORED  # values of sparse support vectors, those of removed ones included
    JOINED  # support vectors that have joined so far
    FIRST  # number of the next new example
    UPDATES  # outputs changed, over all examples
    BOOK_SIZE


cdef struct Dual:
    rc_kernel kernel
    rc_support pool
    # Writable arrays of the pool: one entry per slot, except values of sparse vectors.
    void *data
    int32_t *indices
    int64_t *starts
    int64_t *lengths
    double *norms
    double *diagonal  # kernel value of each vector with itself
    const rc_units *units  # of rows, or NULL to take them as they are
    int64_t *support  # number of the example that each vector was
    int64_t *born  # number of vectors that had joined before it
    int64_t capacity
    # Lists: output j at j * list_capacity.
    int32_t *slots
    double *coefs
    double *coef_sums  # lazy sums of the average, or NULL
    int64_t *sizes
    int64_t list_capacity
    int32_t n_outputs
    int32_t n_free  # outputs that are not sums of others
    int64_t *book
    # Budget.
    int64_t budget  # or -1
    int32_t policy
    double decay
    double tolerance
    double *gram  # forgetron: capacity * capacity, or NULL
    double *inverse  # projectron: the same, of the inverse of the Gram matrix, or NULL
    double *damage  # forgetron: cost of all removals so far
    double *scratch  # capacity
    uint64_t seed
    # Examples of this call.
    int32_t *slot_of  # slot of each row, or -1; NULL if no row comes twice
    int64_t first  # number of row 0
    rc_block block
    double *values  # kernel values of the block's rows, stride apart; with ``kept`` of one row
    int64_t stride
    # If no coefficient of an earlier support vector can change in the block: sums over the lists
    # at its beginning, for each row and output, and their lengths. Kernel values are then needed
    # of joining vectors only.
    double *sums  # four lines for each tile of rows and output, see rc_block_sums; or NULL
    int64_t *summed  # number of summed entries of each output; then scratch of two numbers for each
    double *room  # scratch of rc_block_sums
    uint8_t *wanted  # scratch: a flag for each tile and output
    int64_t n_summed  # support vectors at the beginning; -1 after the sums were made
    const double *among  # kernel values of the block's rows with one another, or NULL
    const double *kept  # kernel values of all rows with one another, or NULL
    int64_t position  # of the next row in the block
    # Decision of the rule for an output: change of its coefficient of the row, that change
    # times the examples before it, and their number.
    double *change
    double *late
    double *seen


cdef inline double dual_output(const Dual *m, int64_t row, int32_t j) noexcept nogil:
    """Return output j of a row of the block."""
    cdef int64_t at = j * m.list_capacity, s
    cdef double sums[4]
    if m.sums != NULL:
        for s in range(4):
            sums[s] = m.sums[
                ((row // RC_ROWS_ * m.n_outputs + j) * 4 + s) * RC_ROWS_ + row % RC_ROWS_
            ]
        return rc_dual_rest(
            m.slots + at, m.coefs + at, m.summed[j], m.sizes[j], m.values + row * m.stride, sums
        )
    return rc_dual_dot(m.slots + at, m.coefs + at, m.sizes[j], m.values + row * m.stride)


cdef inline void begin_block(Dual *m, const uint8_t *wanted) noexcept nogil:
    """Compute the sums before the first output of a block; ``wanted`` as in `rc_block_sums`."""
    cdef rc_lists lists
    cdef int32_t j
    if m.sums == NULL or m.n_summed < 0:
        return
    lists.slots = m.slots
    lists.coefs = m.coefs
    lists.sizes = m.sizes
    lists.capacity = m.list_capacity
    lists.n = m.n_outputs
    rc_block_sums(
        &m.kernel, &m.pool, &m.block, m.n_summed, &lists, wanted, m.room, m.summed + m.n_outputs,
        m.sums,
    )
    for j in range(m.n_outputs):
        m.summed[j] = m.sizes[j]
    m.n_summed = -1


cdef inline void begin_row(Dual *m) noexcept nogil:
    """Look up kept kernel values of the current row, before its first output."""
    cdef int64_t n = m.block.rows.n_rows, row = m.position, following = row
    if m.kept == NULL:
        return
    if row + 1 < m.block.n:
        following += 1
    rc_copy_kept(
        m.kept + m.block.which[row] * n, m.support, m.book[N_SUPPORT],
        m.kept + m.block.which[following] * n, n, m.values,
    )


cdef inline double dual_self(const Dual *m, int64_t row) noexcept nogil:
    """Return the kernel value of a row of the block with itself."""
    cdef double norm
    if m.kept != NULL:
        return m.kept[m.block.which[row] * (m.block.rows.n_rows + 1)]
    if m.among != NULL:
        return m.among[row * m.block.n + row]
    norm = m.block.norms[row]
    return rc_kernel_value(&m.kernel, norm, norm, norm)


cdef inline bint dual_overflows(const Dual *m, int64_t row) noexcept nogil:
    """Return whether a row cannot join because its kernel value with itself is not finite."""
    cdef double own = dual_self(m, row)
    return own - own != 0


cdef inline int64_t list_place(const Dual *m, int32_t j, int64_t slot) noexcept nogil:
    """Return the first place in the list of output j that is not before the slot."""
    cdef const int32_t *slots = m.slots + j * m.list_capacity
    cdef int64_t low = 0, high = m.sizes[j], middle
    if high == 0 or slots[high - 1] < slot:
        return high
    while low < high:
        middle = (low + high) // 2
        if slots[middle] < slot:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline void list_shift(Dual *m, int32_t j, int64_t place, int64_t by) noexcept nogil:
    """Move the entries of a list from a place on, by one up or down."""
    cdef int64_t at = j * m.list_capacity + place
    cdef int64_t n = m.sizes[j] - place
    if n > 0:
        memmove(m.slots + at + by, m.slots + at, n * sizeof(int32_t))
        memmove(m.coefs + at + by, m.coefs + at, n * sizeof(double))
        if m.coef_sums != NULL:
            memmove(m.coef_sums + at + by, m.coef_sums + at, n * sizeof(double))
    m.sizes[j] += by


cdef inline void list_add(
    Dual *m, int32_t j, int64_t slot, double change, double late
) noexcept nogil:
    """Add to the coefficient of a slot in output j."""
    cdef int64_t place = list_place(m, j, slot), at = j * m.list_capacity + place
    if place == m.sizes[j] or m.slots[at] != slot:
        list_shift(m, j, place, 1)
        m.slots[at] = <int32_t> slot
        m.coefs[at] = 0.0
        if m.coef_sums != NULL:
            m.coef_sums[at] = 0.0
    m.coefs[at] += change
    if m.coef_sums != NULL:
        m.coef_sums[at] += late


cdef inline double list_coef(const Dual *m, int32_t j, int64_t slot) noexcept nogil:
    cdef int64_t place = list_place(m, j, slot), at = j * m.list_capacity + place
    return m.coefs[at] if place < m.sizes[j] and m.slots[at] == slot else 0.0


cdef inline void shrink(Dual *m, double factor) noexcept nogil:
    """Multiply every coefficient."""
    cdef int32_t j
    cdef int64_t i, at
    cdef double shrunk
    for j in range(m.n_outputs):
        for i in range(m.sizes[j]):
            at = j * m.list_capacity + i
            shrunk = factor * m.coefs[at]
            if m.coef_sums != NULL:
                m.coef_sums[at] += m.seen[j] * (shrunk - m.coefs[at])
            m.coefs[at] = shrunk


# ------------------------------------------------------------------------------ removal


cdef inline int64_t oldest(const Dual *m) noexcept nogil:
    cdef int64_t s, slot = 0
    for s in range(1, m.book[N_SUPPORT]):
        if m.born[s] < m.born[slot]:
            slot = s
    return slot


cdef inline int64_t drawn(const Dual *m) noexcept nogil:
    """Return a slot drawn uniformly, by the seed and the number of vectors that have joined."""
    cdef uint64_t state = rc_stream(m.seed, <uint64_t> m.book[JOINED])
    return rc_below(&state, <uint32_t> m.book[N_SUPPORT])


cdef inline int64_t smallest(Dual *m, double own) noexcept nogil:
    """Return the slot with the minimum of coefficients times length; -1 for the row itself.

    ``own`` is the square of that product for the joining row. Ties go to the oldest slot.
    """
    cdef int64_t s, i, slot = -1
    cdef int32_t j
    cdef double least = own
    memset(m.scratch, 0, m.book[N_SUPPORT] * sizeof(double))
    for j in range(m.n_free):
        for i in range(m.sizes[j]):
            s = m.slots[j * m.list_capacity + i]
            m.scratch[s] += m.coefs[j * m.list_capacity + i] * m.coefs[j * m.list_capacity + i]
    for s in range(m.book[N_SUPPORT]):
        m.scratch[s] *= m.diagonal[s]
        if m.scratch[s] < least or (
            m.scratch[s] == least and (slot < 0 or m.born[s] < m.born[slot])
        ):
            least = m.scratch[s]
            slot = s
    return slot


cdef inline double forgetron_factor(Dual *m, int64_t row, int64_t leaving) noexcept nogil:
    """Return the largest factor at which removing a slot keeps the damage within its bound.

    Removal of coefficients a_j from outputs f_j that were multiplied by p costs, in the square of
    their distance from any competitor, at most damage(p) = sum over j of
    p**2 a_j**2 K + 2 p |a_j| - 2 p**2 a_j f_j; all removals together may cost 15/32 per update.
    """
    cdef const double *values = m.values + row * m.stride
    cdef double square = 0.0, linear = 0.0, left, a, f, factor = 1.0
    cdef int32_t j
    for j in range(m.n_free):
        a = list_coef(m, j, leaving)
        if a != 0.0:
            f = rc_dual_dot(
                m.slots + j * m.list_capacity, m.coefs + j * m.list_capacity, m.sizes[j],
                m.gram + leaving * m.capacity,
            ) + m.change[j] * values[leaving]
            square += a * a * m.diagonal[leaving] - 2.0 * a * f
            linear += a if a > 0.0 else -a
    left = 15.0 / 32.0 * <double> m.book[UPDATES] - m.damage[0]
    left = left if left > 0.0 else 0.0
    if square + 2.0 * linear > left:
        factor = left / (linear + sqrt(linear * linear + square * left))
    m.damage[0] += factor * factor * square + 2.0 * factor * linear
    return factor


cdef inline int64_t make_place(Dual *m, int64_t row) noexcept nogil:
    """Return a free slot for a joining row, or -1 if the row itself is evicted."""
    cdef int64_t slot = m.book[N_SUPPORT], number, at
    cdef int32_t j
    cdef double own = 0.0, factor
    if m.budget < 0 or slot < m.budget:
        m.book[N_SUPPORT] += 1
        return slot
    if m.policy == RANDOM:
        slot = drawn(m)
    elif m.policy == SMALLEST:
        for j in range(m.n_free):
            own += m.change[j] * m.change[j]
        slot = smallest(m, own * dual_self(m, row))
        if slot < 0:
            return -1
    else:
        slot = oldest(m)
    if m.policy == FORGETRON:
        factor = forgetron_factor(m, row, slot)
        if factor < 1.0:
            shrink(m, factor)
            for j in range(m.n_outputs):
                m.late[j] += m.seen[j] * (factor - 1.0) * m.change[j]
                m.change[j] *= factor
    for j in range(m.n_outputs):
        at = list_place(m, j, slot)
        if at < m.sizes[j] and m.slots[j * m.list_capacity + at] == slot:
            list_shift(m, j, at + 1, -1)
    if m.slot_of != NULL:
        number = m.support[slot] - m.first
        if 0 <= number < m.block.rows.n_rows:
            m.slot_of[number] = -1
    return slot


# ------------------------------------------------------------------------------ insertion


cdef inline double row_value(rc_row x, int64_t i) noexcept nogil:
    return (<const float *> x.data)[i] if x.dtype == RC_FLOAT32 else (<const double *> x.data)[i]


cdef inline void store(Dual *m, rc_row x, int64_t slot) noexcept nogil:
    """Copy a row into the pool."""
    cdef int64_t i, at, d = m.pool.n_features
    cdef bint single = m.pool.dtype == RC_FLOAT32
    if m.pool.data == NULL:  # a precomputed kernel has no vectors
        return
    if m.pool.starts != NULL:
        at = m.book[STORED]
        m.starts[slot] = at
        for i in range(x.n):
            if row_value(x, i) != 0.0:
                m.indices[at] = x.indices[i] if x.indices != NULL else <int32_t> i
                if single:
                    (<float *> m.data)[at] = <float> row_value(x, i)
                else:
                    (<double *> m.data)[at] = row_value(x, i)
                at += 1
        m.lengths[slot] = at - m.book[STORED]
        m.book[STORED] = at
        return
    memset(<char *> m.data + slot * d * (4 if single else 8), 0, d * (4 if single else 8))
    for i in range(x.n):
        at = slot * d + (x.indices[i] if x.indices != NULL else i)
        if single:
            (<float *> m.data)[at] = <float> row_value(x, i)
        else:
            (<double *> m.data)[at] = row_value(x, i)


cdef inline void join(Dual *m, rc_row x, int64_t row, int64_t slot) noexcept nogil:
    """Make a row of the block the support vector in a slot."""
    cdef int64_t i, s, done, which = m.block.which[row]
    cdef double value
    cdef rc_block rest
    store(m, x, slot)
    m.norms[slot] = m.block.norms[row]
    m.diagonal[slot] = dual_self(m, row)
    m.support[slot] = m.first + which
    m.born[slot] = m.book[JOINED]
    m.book[JOINED] += 1
    if m.slot_of != NULL:
        m.slot_of[which] = <int32_t> slot
    if m.gram != NULL:
        for s in range(m.book[N_SUPPORT]):
            value = m.values[row * m.stride + s] if s != slot else m.diagonal[slot]
            m.gram[slot * m.capacity + s] = m.gram[s * m.capacity + slot] = value
    if m.kept != NULL:
        pass  # later rows look up its kernel values
    elif m.among != NULL:
        for i in range(row + 1, m.block.n):
            m.values[i * m.stride + slot] = m.among[i * m.block.n + row]
    elif row + 1 < m.block.n:
        done = (row + 1) // RC_ROWS_ * RC_ROWS_
        rest = m.block
        rest.which += done
        rest.norms += done
        rest.n -= done
        if rest.tiles != NULL:
            rest.tiles += done * m.pool.n_features
        rc_block_values(
            &m.kernel, &m.pool, &rest, slot, slot + 1, m.values + done * m.stride + slot, m.stride
        )


cdef inline double nearest(
    const double *inverse, int64_t capacity, int64_t n, const double *values, double own,
    double *shares
) noexcept nogil:
    """Write the combination of n support vectors nearest to a row; return its squared distance.

    ``inverse`` is that of their kernel matrix, ``values`` are theirs with the row.
    """
    cdef int64_t s, r
    cdef double sum
    for s in range(n):
        sum = 0.0
        for r in range(n):
            sum += inverse[s * capacity + r] * values[r]
        shares[s] = sum
        own -= sum * values[s]
    return own


cdef inline void extend_inverse(
    double *inverse, int64_t capacity, int64_t n, const double *shares, double distance
) noexcept nogil:
    """Add a row and a column for a row to the inverse, by Schur's complement."""
    cdef int64_t s, r
    for s in range(n):
        for r in range(n):
            inverse[s * capacity + r] += shares[s] * shares[r] / distance
        inverse[s * capacity + n] = inverse[n * capacity + s] = -shares[s] / distance
    inverse[n * capacity + n] = 1.0 / distance


cdef inline bint project(Dual *m, int64_t row) noexcept nogil:
    """Add a row's change as that of the nearest combination of support vectors, if it is near."""
    cdef int64_t n = m.book[N_SUPPORT], s
    cdef const double *values = m.values + row * m.stride
    cdef double own = dual_self(m, row), distance
    cdef int32_t j
    distance = nearest(m.inverse, m.capacity, n, values, own, m.scratch)
    if n > 0 and (distance <= m.tolerance * own or n == m.budget):
        for j in range(m.n_outputs):
            if m.change[j] != 0.0 or m.late[j] != 0.0:
                for s in range(n):
                    list_add(m, j, s, m.change[j] * m.scratch[s], m.late[j] * m.scratch[s])
        return True
    if n == 0 and own <= 0.0:  # a row without length would contribute nothing
        return True
    extend_inverse(m.inverse, m.capacity, n, m.scratch, distance)
    return False


cdef inline void absorb(Dual *m, rc_row x) noexcept nogil:
    """Apply the decision of the rule for the current row of the block, and go to the next."""
    age(m)
    take_up(m, x)


cdef inline void age(Dual *m) noexcept nogil:
    """Shrink the coefficients, if the policy shrinks them at every example."""
    if m.policy == NORMA and m.budget >= 0 and m.decay > 0.0:
        shrink(m, 1.0 - m.decay)


cdef inline void take_up(Dual *m, rc_row x) noexcept nogil:
    """Add the decided changes for the current row of the block, and go to the next."""
    cdef int64_t row = m.position, slot = -1
    cdef int32_t j
    cdef int64_t changed = 0
    m.position += 1
    for j in range(m.n_outputs):
        if m.change[j] != 0.0 or m.late[j] != 0.0:
            changed += 1
    if changed == 0:
        return
    for j in range(m.n_free):
        m.book[UPDATES] += m.change[j] != 0.0
    if m.slot_of != NULL:
        slot = m.slot_of[m.block.which[row]]
    if slot < 0:
        if m.inverse != NULL and project(m, row):
            return
        slot = make_place(m, row)
        if slot < 0:
            return
        join(m, x, row, slot)
    # Sums of outputs list every slot, so that their products need no look-up.
    for j in range(m.n_outputs):
        if m.change[j] != 0.0 or m.late[j] != 0.0 or j >= m.n_free:
            list_add(m, j, slot, m.change[j], m.late[j])
