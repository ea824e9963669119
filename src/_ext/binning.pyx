"""Bin rows in memory: columns of codes, each the number of thresholds below a value.

Thresholds lie halfway between neighbouring distinct values of a column where there are at most
``max_bins`` of them; else neighbours share bins of about equal counts, and zero keeps one of its
own. They are stored for columns with many values per bin only: in others, the threshold between two
bins is recomputed from their values, for the few splits that are chosen.

`Columns` holds the result: dense rows become one code per value, column by column,
``codes[f * n_rows + row]``; sparse rows become entries (row, code) of column f from ``bounds[f]``,
five bytes each, and their zeros are not stored. Codes have one byte for at most 255
bins, else four; the code n_bins[f] means missing.

Cost: O(values * log(bins)) after a sort, some columns at a time, whose values fit the cache.
"""

from cpython.pycapsule cimport PyCapsule_New
from cython cimport final
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport Binned, binned_of, code_t, find, stored, value_at
from rankcore._ext._bin_edges cimport count_below, cut, split
from rankcore.core cimport RC_FLOAT32, rc_row, rc_rows, rc_rows_get


cdef extern from "_places.h" nogil:
    void rc_places(
        const double *values, const double *cuts, int64_t n_cuts, int64_t *places
    ) noexcept

cdef extern from "rankcore_vectors.h" nogil:
    void RC_FETCH_(const void *address)

cdef enum:
    FETCHED = 24  # rows prefetched ahead
    # Minimum values per bin for which the thresholds of a column are stored: at most half a byte
    # per value. Others are recomputed within tens of microseconds.
    KEPT = 16

ENTRIES_KEPT = KEPT


@final
cdef class Columns:
    """Binned columns, bound for the kernels."""

    cdef Binned view
    cdef tuple arrays  # keeps alive what view points into
    cdef readonly object capsule  # the C description, valid while this object lives

    def __init__(
        self,
        int64_t n_rows,
        codes not None,
        const int32_t[::1] n_bins not None,
        const int32_t[::1] zero_bin not None,
        const uint8_t[::1] has_missing not None,
        const int64_t[::1] bounds=None,
        const int32_t[::1] rows=None,
    ):
        cdef int64_t n_features = n_bins.shape[0], n_codes, f
        cdef const uint8_t[::1] narrow
        cdef const int32_t[::1] wide
        if codes.itemsize == 1:
            narrow = codes
            n_codes = narrow.shape[0]
            self.view.codes = &narrow[0] if n_codes else NULL
        else:
            wide = codes
            n_codes = wide.shape[0]
            self.view.codes = &wide[0] if n_codes else NULL
        if (
            n_features < 1
            or zero_bin.shape[0] != n_features
            or has_missing.shape[0] != n_features
            or (bounds is None) != (rows is None)
            or n_codes != (n_rows * n_features if rows is None else rows.shape[0])
            or (bounds is not None and bounds.shape[0] != n_features + 1)
        ):
            raise ValueError("the arrays of the columns are inconsistent")
        if bounds is not None and (bounds[0] != 0 or bounds[n_features] != n_codes):
            raise ValueError(f"bounds must ascend from 0 to the number of entries, {n_codes}")
        for f in range(n_features if bounds is not None else 0):
            if not bounds[f] <= bounds[f + 1]:
                raise ValueError(f"bounds must ascend from 0 to the number of entries, {n_codes}")
        self.view.n_rows = n_rows
        self.view.n_features = n_features
        self.view.width = codes.itemsize
        self.view.n_bins = &n_bins[0]
        self.view.zero_bin = &zero_bin[0]
        self.view.has_missing = &has_missing[0]
        if bounds is not None:
            self.view.bounds = &bounds[0]
            self.view.rows = &rows[0] if rows.shape[0] else NULL
        self.arrays = (codes, n_bins, zero_bin, has_missing, bounds, rows)
        self.capsule = PyCapsule_New(&self.view, "rankcore.columns", NULL)

    @property
    def n_rows(self):
        return self.view.n_rows

    @property
    def n_features(self):
        return self.view.n_features


cdef const rc_rows *_taken(object rows, const int64_t[::1] taken) except NULL:
    """Return the C rows after checking that all taken rows exist."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i
    cdef bint fits = rows.canonical
    with nogil:
        for i in range(taken.shape[0]):
            fits = fits and 0 <= taken[i] < X.n_rows
    if not fits:
        raise ValueError("row numbers are out of range")
    return X


def count_entries(
    object rows not None,  # sparse
    const int64_t[::1] taken not None,  # the rows to count
    int64_t[::1] counts not None,  # in and out, (n_features,)
):
    """Add the number of entries of each column in sparse rows to ``counts``."""
    cdef const rc_rows *X = _taken(rows, taken)
    cdef rc_row x
    cdef int64_t i, k
    if counts.shape[0] != X.n_features or X.indptr == NULL:
        raise ValueError("counts do not match the rows, or these are dense")
    with nogil:
        for i in range(taken.shape[0]):
            x = rc_rows_get(X, taken[i])
            for k in range(x.n):
                counts[x.indices[k]] += 1


cdef void _gather_dense(
    const rc_rows *X, const int64_t *taken, int64_t n, int64_t first, int64_t last,
    const int64_t *starts, double *values,
) noexcept nogil:
    """Copy columns of dense rows, with prefetching, as rows are in any order."""
    cdef rc_row x
    cdef int64_t i, k
    for i in range(n):
        if i + FETCHED < n:
            x = rc_rows_get(X, taken[i + FETCHED])
            RC_FETCH_(<const char *> x.data + first * (4 if x.dtype == RC_FLOAT32 else 8))
        x = rc_rows_get(X, taken[i])
        for k in range(first, last):
            values[starts[k - first] + i] = stored(&x, k)


def gather_columns(
    object rows not None,
    const int64_t[::1] taken not None,  # the rows, in the order wanted
    int64_t first,  # the columns first .. last - 1
    int64_t last,
    # in and out, (last - first,): where each column begins in ``values``; of sparse rows, then
    # where it ended
    int64_t[::1] cursors not None,
    double[::1] values not None,  # out
    # out, same length, or None: position in ``taken`` of the row of each value, if rows are sparse
    int32_t[::1] places,
):
    """Copy some columns of rows, one after the other."""
    cdef const rc_rows *X = _taken(rows, taken)
    cdef rc_row x
    cdef int64_t i, k, f, at, n = last - first
    if not 0 <= first <= last <= X.n_features or cursors.shape[0] != n:
        raise ValueError("there are no such columns")
    if places is not None and places.shape[0] != values.shape[0]:
        raise ValueError("values and places differ in length")
    cdef bint fits = True
    if X.indptr == NULL and places is None:
        for i in range(n):
            fits = fits and 0 <= cursors[i] <= values.shape[0] - taken.shape[0]
        if not fits:
            raise ValueError("the columns have more values than room")
        if n and taken.shape[0]:
            with nogil:
                _gather_dense(X, &taken[0], taken.shape[0], first, last, &cursors[0], &values[0])
        return
    with nogil:
        for i in range(taken.shape[0]):
            x = rc_rows_get(X, taken[i])
            k = first if x.indices == NULL else (0 if first == 0 else find(&x, first))
            while k < x.n:
                f = k if x.indices == NULL else x.indices[k]
                if f >= last:
                    break
                at = cursors[f - first]
                if not 0 <= at < values.shape[0]:
                    fits = False
                    break
                values[at] = stored(&x, k)
                if places is not None:
                    places[at] = <int32_t> i
                cursors[f - first] = at + 1
                k += 1
    if not fits:
        raise ValueError("the columns have more values than room")


cdef void _encode(
    const double *values, int64_t n, const double *cuts, int64_t n_cuts, bint zero_missing,  # in
    code_t *codes,  # out
) noexcept nogil:
    cdef int64_t i, k, m
    cdef int64_t places[8]
    cdef double held[8]
    for i in range(0, n, 8):
        m = min(8, n - i)
        for k in range(8):
            held[k] = values[i + min(k, m - 1)]
        rc_places(held, cuts, n_cuts, places)
        for k in range(m):
            if held[k] != held[k] or (zero_missing and held[k] == 0):
                places[k] = n_cuts + 1
            codes[i + k] = <code_t> places[k]


def encode_columns(
    # the columns one after the other, as they are and each sorted, NaN last
    const double[::1] values not None,
    const double[::1] ascending not None,
    const int64_t[::1] bounds not None,  # (n_columns + 1,): where the columns begin and end
    int64_t n_rows,  # number of rows; those without a value are 0
    int64_t max_bins,  # maximum number of bins of a column
    bint zero_missing,  # whether 0 is missing, as NaN is
    # scratch, (2 * maximum number of values of a column + 1,)
    double[::1] cuts not None,
    code_t[::1] codes not None,  # out, shape of values
    int32_t[::1] n_bins not None,  # out, each (n_columns,): bins of the column, and the code of 0
    int32_t[::1] zero_bin not None,
    uint8_t[::1] has_missing not None,  # out, (n_columns,)
    # out, (>= values.size // ENTRIES_KEPT,): of columns with at least ENTRIES_KEPT values per bin
    double[::1] thresholds not None,
    # out, (n_columns,): where those of each column begin; -1 if not stored
    int64_t[::1] places not None,
):
    """Divide columns into bins. Returns the number of thresholds stored. O(n log n_bins)."""
    cdef int64_t f, n_columns = bounds.shape[0] - 1, first, last, i, n, n_cuts, at, kept = 0
    cdef bint implied
    cdef double *present
    if (
        ascending.shape[0] != values.shape[0]
        or codes.shape[0] != values.shape[0]
        or n_bins.shape[0] != n_columns
        or zero_bin.shape[0] != n_columns
        or has_missing.shape[0] != n_columns
        or places.shape[0] != n_columns
        or thresholds.shape[0] < values.shape[0] // KEPT
        or max_bins < 2
        or (code_t is uint8_t and max_bins > 255)
    ):
        raise ValueError("the arrays are inconsistent")
    for f in range(n_columns):
        n = bounds[f + 1] - bounds[f]
        if not 0 <= bounds[f] <= bounds[f + 1] <= values.shape[0] or 2 * n + 1 > cuts.shape[0]:
            raise ValueError("the columns do not match the values")
    if values.shape[0] == 0:
        for f in range(n_columns):
            n_bins[f] = 1
            zero_bin[f] = zero_missing
            has_missing[f] = zero_missing
            places[f] = -1
        return 0
    with nogil:
        for f in range(n_columns):
            first = bounds[f]
            last = bounds[f + 1]
            # Present values follow the thresholds, of which there is at most one per value.
            present = &cuts[0] + (last - first) + 1
            n = 0
            for i in range(first, last):
                if ascending[i] == ascending[i] and not (zero_missing and ascending[i] == 0):
                    present[n] = ascending[i]
                    n += 1
            implied = last - first < n_rows
            n_cuts = cut(
                present, present, NULL, n, implied and not zero_missing, max_bins, &cuts[0]
            )
            has_missing[f] = n < last - first or (implied and zero_missing)
            n_bins[f] = <int32_t> (n_cuts + 1)
            at = n_cuts + 1 if zero_missing else count_below(&cuts[0], n_cuts, 0.0)
            zero_bin[f] = <int32_t> at
            if last > first:
                _encode(&values[first], last - first, &cuts[0], n_cuts, zero_missing, &codes[first])
            places[f] = -1
            if last - first >= KEPT * (n_cuts + 1):
                places[f] = kept
                for i in range(n_cuts):
                    thresholds[kept + i] = cuts[i]
                kept += n_cuts
    return kept


cdef void _range(
    const Binned *columns, const code_t *codes, const rc_rows *X, const int64_t *taken,
    int64_t feature, int64_t bin, double *lower, double *upper,
) noexcept nogil:
    cdef int64_t k, first = 0, last = columns.n_rows, row
    cdef rc_row x
    cdef double value
    if columns.bounds != NULL:
        first = columns.bounds[feature]
        last = columns.bounds[feature + 1]
        if last - first < columns.n_rows and columns.zero_bin[feature] != columns.n_bins[feature]:
            if columns.zero_bin[feature] < bin:
                lower[0] = 0.0
            else:
                upper[0] = 0.0
    else:
        codes += feature * columns.n_rows
    for k in range(first, last):
        if codes[k] == columns.n_bins[feature]:
            continue
        row = taken[columns.rows[k] if columns.bounds != NULL else k]
        if not 0 <= row < X.n_rows:
            continue
        x = rc_rows_get(X, row)
        value = value_at(&x, feature)
        if codes[k] < bin:
            if value > lower[0]:
                lower[0] = value
        elif value < upper[0]:
            upper[0] = value


def threshold(
    object columns not None,
    object rows not None,  # rows that the columns were built from
    const int64_t[::1] taken not None,  # (columns.n_rows,): its rows
    int64_t feature,
    int64_t bin,  # values in this bin and above exceed the threshold; -inf for 0
):
    """Return the threshold below a bin.

    O(entries of the column), times a search in the row if it is sparse.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef const rc_rows *X = checked_rows(rows)
    cdef double lower = -INFINITY, upper = INFINITY
    if (
        taken.shape[0] != binned.n_rows
        or X.n_features != binned.n_features
        or not rows.canonical
    ):
        raise ValueError("the rows do not match the columns")
    if not 0 <= feature < binned.n_features or not 0 <= bin < binned.n_bins[feature]:
        raise IndexError(f"there is no bin {bin} in column {feature}")
    if bin == 0:
        return -INFINITY
    with nogil:
        if binned.width == 1:
            _range(binned, <const uint8_t *> binned.codes, X, &taken[0], feature, bin,
                   &lower, &upper)
        else:
            _range(binned, <const int32_t *> binned.codes, X, &taken[0], feature, bin,
                   &lower, &upper)
    return split(lower, upper)
