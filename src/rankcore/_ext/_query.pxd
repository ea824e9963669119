# A query with sorted documents, and the parameters of a measure. Private.
#
# measures.pyx sorts a query of n documents by score and fills a Query; a measure reads labels and
# gains by position, as deep as its cut-off. Documents of equal score form a group if no order is
# defined for them: every order of a group is equally likely, and the value of a measure is its
# expectation.
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.math cimport exp2
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct Measure:
    # What measures.pyx prepares for the measure.
    int32_t whole  # reads all positions, whatever k is
    int32_t gained  # reads gains of labels, and discounts
    int32_t ideal  # reads the ideal order
    int32_t ordered  # has no expectation over the orders of tied documents in closed form
    int32_t counted  # reads the number of relevant documents
    int32_t bounded  # labels are at most x
    # Parameters of the measure; each measure reads some of them.
    int32_t given  # gains are those of the query; else they are computed from labels
    int32_t exp2  # 2**y - 1 instead of y
    int32_t clipped  # negative gains count 0
    int32_t option  # a value of an enum of the measure, or a truth value
    int32_t together  # tied documents all have the last position of their group
    int32_t up  # fractions of the relevant documents are rounded up
    int64_t k  # cut-off; for phi its m, 0 for the number of relevant documents
    int64_t z  # for phi, 0 for the number of relevant documents
    double rel  # minimum label of a relevant document
    double x  # the parameter in the measure's name
    double weights[4]


cdef struct Query:
    int64_t n_judged  # number of documents
    int64_t n  # number of retrieved documents, which come first
    const double *score
    const double *label
    const double *gain
    bint grouped  # whether documents of equal score are a group
    const double *y  # labels by position, up to the maximum cut-off
    const double *g  # gains by position
    const uint32_t *ends  # end of the group of each position, if grouped
    double *ideal  # the best labels or gains, descending
    int64_t n_ideal  # length of `ideal`
    double *chances  # scratch of n + 1 numbers
    double *products  # scratch of n + 1 numbers
    const double *discount  # reciprocal, by position, as deep as the gains are read


# Computes the value of a query, given the number of its relevant documents: NAN if it is undefined
# without these, INFINITY if a sum is beyond float64.
ctypedef double (*value_t)(const Measure *m, const Query *q, int64_t relevant) noexcept nogil


cdef inline object registered(value_t value):
    """Return the function as an object, which `as_function` reads."""
    return PyCapsule_New(<void *> value, "rankcore.measure", NULL)


cdef inline value_t as_function(object capsule) except NULL:
    return <value_t> PyCapsule_GetPointer(capsule, "rankcore.measure")


cdef inline int64_t count_relevant(
    const Query *q, int64_t start, int64_t stop, double rel
) noexcept nogil:
    cdef int64_t i, count = 0
    for i in range(start, stop):
        count += q.y[i] >= rel
    return count


cdef inline double found_in(const Query *q, int64_t depth, double rel) noexcept nogil:
    """Return the (expected) number of relevant documents in the first `depth` positions."""
    cdef int64_t start, stop, r
    if not q.grouped or q.ends[depth - 1] == depth:
        return count_relevant(q, 0, depth, rel)
    start = depth - 1
    stop = q.ends[start]
    while start > 0 and q.ends[start - 1] == stop:
        start -= 1
    r = count_relevant(q, start, stop, rel)
    return count_relevant(q, 0, start, rel) + r * <double> (depth - start) / (stop - start)


cdef inline double gain_of(const Measure *m, double x) noexcept nogil:
    cdef int64_t level
    if m.exp2:
        if 0 <= x < 63:
            level = <int64_t> x
            x = <double> ((<int64_t> 1 << level) - 1) if level == x else exp2(x) - 1.0
        else:
            x = exp2(x) - 1.0
    return 0.0 if m.clipped and x < 0 else x
