"""Conversion of user input to validated rows and integer ranks."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from rankcore._core.numbers import objects_as_floats, refuse_mask
from rankcore._ext.rows import Rows, csr_rows, dense_rows

# Kernels use 32-bit column indices, with half the memory traffic of 64-bit ones.
MAX_FEATURES = 2**31 - 1
# Native floats, which kernels read in place.
KERNEL_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
KERNEL_STARTS = (np.dtype(np.int32), np.dtype(np.int64))
# Labels are encoded in blocks of this size, so that temporaries do not grow with the data.
LABEL_BLOCK = 8192
# Maximum number of classes for which Python finds one label faster than NumPy.
FEW_CLASSES = 32
# Maximum number of labels in a message.
MOST_SHOWN = 20
_ENCODERS = (
    "encode it first, with OneHotEncoder or TargetEncoder of sklearn.preprocessing; trees, as "
    "OrdinalBoost and RankBoost(max_leaf_nodes=31), take columns of a category dtype as they are: "
    "astype('category')"
)
_NUMBERED = (
    ". Tools of scikit-learn that number words (cross_val_predict for probabilities, voting, "
    "stacking, bagging) number them alphabetically, which is not their rank: use "
    "rankcore.model_selection.cross_val_predict, or number the labels by rank yourself, 0 for the "
    "lowest, and leave classes out"
)


def as_rows(X: Any, name: str = "X", nan: bool = False) -> Rows:
    """Validate a feature matrix and wrap it for the kernels.

    float32 and float64 C-ordered arrays and canonical CSR matrices are used in place; other input
    is converted, never modified. With ``nan``, NaN is accepted as a missing value; infinity never
    is.
    """
    if isinstance(X, type):
        raise TypeError(f"{name} must be a matrix, found the class {X.__name__}")
    if hasattr(X, "tocsr") and hasattr(X, "format"):
        return _sparse_rows(X, name, nan)
    refuse_mask(X, name)
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        return _frame_rows(X, name, nan)
    if hasattr(X, "to_frame"):
        raise ValueError(
            f"{name} must have two dimensions, found a {type(X).__name__}: pass a DataFrame, such "
            f"as {name}.to_frame()"
        )
    return _dense_rows(X, name, nan)


def _frame_rows(X: Any, name: str, nan: bool) -> Rows:
    """Rows of a pandas or polars DataFrame with numeric columns."""
    dtypes = list(X.dtypes)
    for column, dtype in zip(X.columns, dtypes, strict=True):
        # pandas has the kind of a dtype as a letter, polars as methods.
        kind = getattr(dtype, "kind", None)
        odd = kind in ("c", "m", "M")
        if hasattr(dtype, "is_temporal"):
            odd = not (dtype.is_numeric() or str(dtype) in ("Boolean", "Object", "Null"))
        elif hasattr(dtype, "categories") or str(dtype).startswith(("str", "period", "interval")):
            odd = True
        if odd:
            raise ValueError(
                f"{name} must be numeric; its column {column!r} has dtype {dtype}: "
                + ("complex numbers are not supported" if kind == "c" else _ENCODERS)
            )
        if str(dtype) in ("object", "Object"):
            try:
                objects_as_floats(
                    np.asarray(X[column], dtype=object), f"column {column!r} of {name}"
                )
            except TypeError as error:  # of a frame, for any dtype of such a column
                raise ValueError(str(error)) from None
    if hasattr(X, "iloc"):  # pandas
        sparse = [hasattr(dtype, "subtype") and hasattr(dtype, "fill_value") for dtype in dtypes]
        if sparse and all(sparse):
            return _sparse_rows(X.sparse.to_coo(), name, nan)
        if any(dtype.kind not in "fiub" or not isinstance(dtype, np.dtype) for dtype in dtypes):
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
    return _dense_rows(X, name, nan)


def n_rows_of(X: Any) -> int:
    """Number of rows of a matrix, frame or list of texts."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) < 2:
        raise ValueError(
            f"{name} must have two dimensions, found shape {shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) if it has a single feature, {name}.reshape(1, -1) if it is a "
            "single row"
        )
    if len(shape) > 2:
        raise ValueError(f"{name} must have two dimensions, found {len(shape)}: shape {shape}")
    if shape[0] == 0:
        raise ValueError(f"Found 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] == 0:
        raise ValueError(f"Found 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[1] > MAX_FEATURES:
        raise ValueError(
            f"{name} has {shape[1]} features; at most {MAX_FEATURES} are supported (column indices "
            "are 32-bit): number the features consecutively, or hash them"
        )


def _as_float(values: np.ndarray, name: str) -> np.ndarray:
    """Convert real dtypes other than float32 and float64 to the nearest of these."""
    if values.dtype in KERNEL_FLOATS:
        return values
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {values.dtype}")
    if values.dtype.kind == "O":
        return objects_as_floats(values, name)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numeric, found dtype {values.dtype}: encode it first")
    if values.dtype.kind == "f" and values.dtype.itemsize <= 4:
        return values.astype(np.float32, copy=False)
    # Byte-swapped arrays have an equal kind and size: astype also makes them native.
    with np.errstate(over="ignore"):  # of a long double: infinity is rejected afterwards
        return values.astype(np.float64, copy=False)


def _dense_rows(X: Any, name: str, nan: bool) -> Rows:
    values = np.asarray(X)
    _check_shape(values.shape, name)
    values = _as_float(values, name)
    usable = (
        values.flags.aligned
        and (values.shape[1] == 1 or values.strides[1] == values.itemsize)
        and values.strides[0] % values.itemsize == 0
    )
    return dense_rows(values if usable else values.copy(order="C"), name, nan)


def _sparse_rows(X: Any, name: str, nan: bool) -> Rows:
    _check_shape(X.shape, name)
    if X.format == "csr":
        parts = X.data, X.indices, X.indptr
    else:
        parts = _csr_parts(X)
    return _checked_csr(*parts, X.shape, name, nan)


def _csr_parts(X: Any) -> tuple[Any, Any, Any]:
    """CSR arrays of another scipy sparse format.

    scipy's conversions trust their input and may crash on arrays that were edited by hand, so each
    is rebuilt by a validating constructor.
    """
    import scipy.sparse as sp

    if X.format == "lil":
        lengths = [len(columns) for columns in X.rows]
        if lengths != [len(values) for values in X.data]:
            raise ValueError("the row lists and value lists of a LIL matrix differ in length")
        n_values = sum(lengths)
        return (
            np.fromiter(chain.from_iterable(X.data), dtype=X.dtype, count=n_values),
            np.fromiter(chain.from_iterable(X.rows), dtype=np.int64, count=n_values),
            np.concatenate([[0], np.cumsum(lengths)]),
        )
    if X.format in {"csc", "bsr"}:
        kind = {"csc": sp.csc_array, "bsr": sp.bsr_array}[X.format]
        for part, array in [("indices", X.indices), ("indptr", X.indptr)]:
            check_integers(array, f"X.{part}")
        rebuilt = kind((X.data, X.indices, X.indptr), shape=X.shape)
        rebuilt.check_format(full_check=True)
    elif X.format == "dia":
        rebuilt = sp.dia_array((X.data, X.offsets), shape=X.shape)
    else:
        coo = X.tocoo()
        rebuilt = sp.coo_array((coo.data, (coo.row, coo.col)), shape=X.shape)
    csr = rebuilt.tocsr()
    if X.format == "bsr":
        # Padding zeros of blocks are not part of the matrix. Stored, they would change the order of
        # sums, and so their rounding.
        csr.sum_duplicates()
        csr.eliminate_zeros()
    return csr.data, csr.indices, csr.indptr


def _checked_csr(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], name: str, nan: bool
) -> Rows:
    n_rows, n_features = shape
    if _in_place(data, indices, indptr) and indptr.size == n_rows + 1:
        rows = csr_rows(data, indices, indptr.astype(np.int64, copy=False), n_features, name, nan)
        if rows.canonical:
            return rows
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    for part, array in (("data", data), ("indices", indices), ("indptr", indptr)):
        if array.ndim != 1:
            raise ValueError(f"{name}.{part} must have one dimension, found shape {array.shape}")
    check_integers(indices, name, ".indices")
    check_integers(indptr, name, ".indptr")
    if indptr.size != n_rows + 1:
        raise ValueError(
            f"{name}.indptr has {indptr.size} entries; {n_rows} rows need {n_rows + 1}"
        )
    # Narrowing could map an invalid index to a valid one: check first.
    narrow = indices.dtype == np.int32 or not indices.size
    if not narrow and (indices.min() < 0 or indices.max() >= n_features):
        where = int(((indices < 0) | (indices >= n_features)).argmax())
        row = int(np.searchsorted(indptr, where, side="right")) - 1
        raise ValueError(
            f"{name} has column index {indices[where]} in row {row}; accepted are 0 to "
            f"{n_features - 1}"
        )
    data = _packed(_as_float(data, name))
    indices = _packed(indices.astype(np.int32, copy=False))
    indptr = _packed(indptr.astype(np.int64, copy=False))
    rows = csr_rows(data, indices, indptr, n_features, name, nan)
    if rows.canonical:
        return rows

    import scipy.sparse as sp

    copy = sp.csr_array((data, indices, indptr), shape=shape, copy=True)
    copy.sum_duplicates()
    return _checked_csr(copy.data, copy.indices, copy.indptr, shape, name, nan)


def _in_place(data: Any, indices: Any, indptr: Any) -> bool:
    """Whether kernels can read the arrays of a CSR matrix in place, except int32 starts."""
    return (
        type(data) is type(indices) is type(indptr) is np.ndarray
        and data.dtype in KERNEL_FLOATS
        and indices.dtype == np.int32
        and indptr.dtype in KERNEL_STARTS
        and data.ndim == indices.ndim == indptr.ndim == 1
        and data.flags.carray
        and indices.flags.carray
        and indptr.flags.carray
    )


def _packed(values: np.ndarray) -> np.ndarray:
    """An aligned, contiguous array."""
    flags = values.flags
    return values if flags.c_contiguous and flags.aligned else values.copy(order="C")


def check_integers(array: Any, name: str, part: str = "") -> None:
    """Raise ValueError unless an array holds integers; SciPy would round other numbers."""
    dtype = np.asarray(array).dtype
    if dtype.kind not in "iu":
        raise ValueError(f"{name}{part} must hold integers, found dtype {dtype}")


def as_labels(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as a one-dimensional array, and their declared order, or None.

    The order is that of an ordered pandas categorical or a polars Enum, lowest first.
    """
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    refuse_mask(y, "y")
    classes = order_of(y)
    if isinstance(y, list | tuple) and any(isinstance(one, str) and one[-1:] == "\0" for one in y):
        raise ValueError("y has a string that ends in a zero byte, which NumPy drops: strip it")
    labels = np.asarray(y)
    if labels.ndim != 1:
        from sklearn.utils import column_or_1d

        labels = column_or_1d(labels, warn=True)
    if labels.shape[0] != n_rows:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {n_rows} rows and "
            f"{labels.shape[0]} labels"
        )
    if labels.dtype.kind in ("O", "T"):
        labels = labels.astype(object, copy=False)
        kinds = {str if isinstance(label, str) else type(label) for label in labels}
        missing = {"NoneType", "NAType", "NaTType"}
        if missing & {kind.__name__ for kind in kinds} or any(
            isinstance(label, float) and label != label for label in labels
        ):
            raise ValueError("Input y contains NaN or None: every row needs a label")
        if str in kinds and len(kinds) > 1:
            raise ValueError("y mixes strings with other labels; use labels of one type")
    return _with_order(labels, "Input y"), classes


def order_of(y: Any) -> np.ndarray | None:
    """The categories of an ordered pandas categorical or a polars Enum; None for other labels."""
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":
        return np.asarray(dtype.categories)
    return None


def _with_order(labels: np.ndarray, name: str) -> np.ndarray:
    """Labels in an ordered dtype of NumPy; raise if there is none."""
    if labels.dtype.kind in ("O", "T"):
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels must have an order")
    if labels.dtype.kind not in "biufmMUS" or labels.ndim != 1:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(f"labels of type {kinds} are not supported: use numbers, strings or dates")
    if labels.dtype.kind in "fmM" and not np.isfinite(labels).all():
        what = "NaN" if np.isnan(labels).any() else "infinity"
        raise ValueError(f"{name} contains {what}: every label must be finite")
    return labels


def check_classes(classes: Any) -> np.ndarray:
    """Validated copy of declared labels, lowest first; raise if they have no order."""
    refuse_mask(classes, "classes")
    classes = np.array(classes)  # a copy that no caller can modify
    if classes.ndim != 1 or classes.size < 2:
        raise ValueError(
            f"classes must list at least two labels, lowest rank first; found {classes.tolist()}"
        )
    classes = _with_order(classes, "classes")
    if np.unique(classes).size != classes.size:
        raise ValueError(f"classes repeats a label: {classes.tolist()}")
    if classes.dtype.kind in "biuf" and not (classes[:-1] < classes[1:]).all():
        raise ValueError(
            f"numeric classes must ascend, found {classes.tolist()}: ranks are in the numbers' own "
            "order (negate or relabel y for another)"
        )
    return classes


def find_classes(labels: np.ndarray, learner: str = "PRank") -> np.ndarray:
    """Distinct labels in ascending order, which are the ranks.

    Raises ValueError for strings, whose alphabetical order is rarely the intended one, for a single
    class, and for an apparently continuous target. ``learner`` is the class name in messages.
    """
    if labels.dtype.kind in "US":
        found = np.unique(labels)
        shown = found[:MOST_SHOWN].tolist()
        more = ", ..." if found.size > MOST_SHOWN else ""
        raise ValueError(
            "string labels have no order of their own: list them, lowest rank first, as in "
            f"{learner}(classes=[{', '.join(map(repr, shown))}{more}]), which has them in "
            "alphabetical order: put them into that of the ranks"
        )
    classes = _distinct(labels)
    if classes.size < 2:
        raise ValueError(
            f"y has only one class, {classes[0].item()!r}; ordinal learning requires two or more. "
            "List the possible labels in classes= if others will follow"
        )
    continuous = labels.dtype.kind == "f" and not (classes == np.floor(classes)).all()
    if continuous and classes.size > max(20, labels.size // 2):
        raise ValueError(
            f"Unknown label type: continuous. y has {classes.size} distinct fractional values in "
            f"{labels.size} rows; ordinal learners require few ordered labels: bin y first, for "
            "example with np.digitize"
        )
    return classes


def _distinct(labels: np.ndarray) -> np.ndarray:
    """The distinct labels, ascending."""
    low, n_between = _span(labels)
    if n_between:
        counts = np.zeros(n_between, dtype=np.int64)
        for start in range(0, labels.size, LABEL_BLOCK):
            block = labels[start : start + LABEL_BLOCK].astype(np.int64)
            counts += np.bincount(block - low, minlength=n_between)
        return (np.flatnonzero(counts) + low).astype(labels.dtype)
    classes = np.unique(labels[:LABEL_BLOCK])
    for start in range(LABEL_BLOCK, labels.size, LABEL_BLOCK):
        block = np.unique(labels[start : start + LABEL_BLOCK])
        if block.size > classes.size or not np.isin(block, classes, assume_unique=True).all():
            classes = np.union1d(classes, block)
    return classes


def _span(labels: np.ndarray) -> tuple[int, int]:
    """Minimum of some integers, and the size of their range.

    The size is 0 if a table of this size is not worthwhile.
    """
    if not _fits_int64(labels) or not labels.size:
        return 0, 0
    low, high = int(labels.min()), int(labels.max())
    return (low, high - low + 1) if high - low < LABEL_BLOCK else (0, 0)


def _fits_int64(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "bi" or (labels.dtype.kind == "u" and labels.dtype.itemsize < 8)


def encode(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Ranks 0 .. k - 1 of labels: their indices in ``classes``, which may be in any order.

    O(n) time for integers of a small range, else O(n log k). Only the result takes memory
    proportional to n.
    """
    if (labels.dtype.kind in "US") != (classes.dtype.kind in "US"):
        words = classes.dtype.kind in "US"
        raise ValueError(
            f"y holds {labels.dtype} labels and the classes are {classes.dtype}: {classes.tolist()}"
            + (_NUMBERED if words and labels.dtype.kind in "iu" else "")
        )
    if labels.size == 1 and classes.size <= FEW_CLASSES and labels.dtype.kind == classes.dtype.kind:
        with suppress(ValueError):
            return np.array([classes.tolist().index(labels.item())], dtype=np.int32)
    low, n_between = _span(classes)
    if 0 < n_between <= labels.size and _fits_int64(labels):
        rank_of = np.full(n_between, -1, dtype=np.int32)
        rank_of[classes.astype(np.int64) - low] = np.arange(classes.size)
    else:
        rank_of, sorter = None, np.argsort(classes)
    ranks = np.empty(labels.size, dtype=np.int32)
    for start in range(0, labels.size, LABEL_BLOCK):
        block = labels[start : start + LABEL_BLOCK]
        if rank_of is not None:
            place = block.astype(np.int64) - low
            found = rank_of.take(place, mode="clip")
            unknown = (found < 0) | (place < 0) | (place >= n_between)
        else:
            place = np.searchsorted(classes, block, sorter=sorter)
            found = sorter[np.minimum(place, classes.size - 1)].astype(np.int32)
            unknown = classes[found] != block
        if unknown.any():
            where = int(unknown.argmax())
            raise ValueError(
                f"y contains the label {block[where].item()!r} at row {start + where}, which is "
                f"not among the model's classes {classes.tolist()}; to learn it, include it in "
                "classes= from the first call on"
            )
        ranks[start : start + LABEL_BLOCK] = found
    return ranks
