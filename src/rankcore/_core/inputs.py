"""Conversion of user input to validated rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import Frame, frame_of, is_lazy, remedy_for
from rankcore._ext.rows import Rows, csr_rows, dense_rows

# Kernels use 32-bit column indices, with half the memory traffic of 64-bit ones.
MAX_FEATURES = 2**31 - 1
# Native floats, which kernels read in place.
KERNEL_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
KERNEL_STARTS = (np.dtype(np.int32), np.dtype(np.int64))
_ENCODERS = (
    "encode it first, with OneHotEncoder or TargetEncoder of sklearn.preprocessing; trees, as "
    "OrdinalBoost and RankBoost(max_leaf_nodes=31), take columns of a category dtype as they are: "
    "astype('category')"
)
# By kinds of columns.
_REMEDIES = {
    "complex": "complex numbers are not supported",
    "other": "convert it to a number, such as the days since a date",
}


def as_rows(X: Any, name: str = "X", nan: bool = False) -> Rows:
    """Validate a feature matrix and wrap it for the kernels.

    float32 and float64 C-ordered arrays and canonical CSR matrices are used in place; other input
    is converted, never modified. With ``nan``, NaN is accepted as a missing value; infinity never
    is.
    """
    check_matrix(X, name)
    frame = None if hasattr(X, "tocsr") else frame_of(X)
    if frame is not None:
        X = frame_matrix(frame, name)
    if hasattr(X, "tocsr") and hasattr(X, "format"):
        return _sparse_rows(X, name, nan)
    reject_mask(X, name)
    try:
        return _dense_rows(X, name, nan)
    except ValueError:
        if frame is not None:
            _check_finite(X, frame.names, name, nan)
        raise


def _check_finite(X: NDArray[Any], names: list[Any], name: str, nan: bool) -> None:
    """Raise ValueError for the first value that is not finite, with the name of its column."""
    bad = np.isinf(X) if nan else ~np.isfinite(X)
    if bad.any():
        row, j = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"Input {name} contains {'NaN' if np.isnan(X[row, j]) else 'infinity'} at row {row} in "
            f"column {names[j]!r}; every value must be finite: impute or drop it first"
        )


def check_matrix(X: Any, name: str = "X") -> None:
    """Raise TypeError or ValueError, with a remedy, for objects that are no matrix."""
    if isinstance(X, np.ndarray) or (hasattr(X, "tocsr") and not isinstance(X, type)):
        return
    if (frame := frame_of(X)) is not None:
        _check_names(frame.names, name)
        return
    problem, remedy = f"a {type(X).__name__}", remedy_for(X, name)
    kind: type[Exception] = TypeError
    if isinstance(X, type):
        problem = f"the class {X.__name__}"
    elif remedy:
        kind = TypeError if is_lazy(X) else ValueError
    elif hasattr(X, "shape"):
        return
    elif isinstance(X, dict):
        remedy = (
            f"for one row pass pandas.DataFrame([{name}]), for columns pandas.DataFrame({name})"
        )
    elif isinstance(X, list | tuple) and X and isinstance(X[0], dict):
        problem, remedy = "a list of dicts", f"pass pandas.DataFrame({name})"
    elif isinstance(X, str | PathLike):
        remedy = "read the file by rankcore.datasets.load_letor or open_rows"
    elif X is None:
        problem = "None"
    elif hasattr(X, "__next__"):
        remedy = f"pass a list of its rows, list({name})"
    else:
        return
    raise kind(
        f"{name} must be a matrix of two dimensions, an array, sparse matrix or DataFrame; got "
        f"{problem}" + (f": {remedy}" if remedy else "")
    )


def _check_names(names: list[Any], name: str) -> None:
    """Raise ValueError if two columns of a frame have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"{name} must have columns with different names; got {names.count(twice)} named "
            f"{twice!r}: rename all but one of them"
        )


def frame_matrix(frame: Frame, name: str, codes: Mapping[int, NDArray[Any]] | None = None) -> Any:
    """Return a data frame with numeric columns as a matrix: sparse if all columns are.

    ``codes`` replace some columns.
    """
    whole = None if codes else frame.whole()
    if whole is not None:
        return whole
    columns = [
        codes[j] if codes and j in codes else _frame_column(frame, j, name)
        for j in range(len(frame.names))
    ]
    return np.column_stack(columns) if columns else np.empty(frame.shape)


def _frame_column(frame: Frame, j: int, name: str) -> NDArray[Any]:
    """Return a column of a data frame as numbers; raise ValueError if it has others."""
    kind, column = frame.kind(j), frame.names[j]
    if kind not in ("number", "object"):
        raise ValueError(
            f"{name} must be numeric; its column {column!r} has dtype {frame.dtypes[j]}: "
            + _REMEDIES.get(kind, _ENCODERS)
        )
    values = frame.values(j)
    if values.dtype.kind != "O":
        return values
    try:
        return objects_as_floats(values, f"column {column!r} of {name}")
    except TypeError as error:  # of a frame, for any dtype of such a column
        raise ValueError(str(error)) from None


def n_rows_of(X: Any) -> int:
    """Count the rows of a matrix, frame or list of texts."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of a matrix, frame or list of texts."""
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    frame = frame_of(X)
    if frame is not None:
        return frame.take(rows)
    if isinstance(X, list | tuple) and not are_texts(X):
        X = np.asarray(X)
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows)


def are_texts(X: Sequence[Any]) -> bool:
    """Return whether a sequence starts with a text."""
    return bool(X) and isinstance(X[0], str | bytes)


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) < 2:
        raise ValueError(
            f"{name} must have two dimensions; got shape {shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) if it has a single feature, {name}.reshape(1, -1) if it is a "
            "single row"
        )
    if len(shape) > 2:
        raise ValueError(f"{name} must have two dimensions; got {len(shape)}: shape {shape}")
    if 0 in shape:
        what = "feature" if shape[0] else "sample"
        raise ValueError(f"Found 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
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
        raise ValueError(f"{name} must be numeric; got dtype {values.dtype}: encode it first")
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
    data, indices, indptr = (X.data, X.indices, X.indptr) if X.format == "csr" else _csr_parts(X)
    return _checked_csr(data, indices, indptr, X.shape, name, nan)


def _csr_parts(X: Any) -> tuple[Any, Any, Any]:
    """Convert another SciPy sparse format to CSR arrays.

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
            raise ValueError(f"{name}.{part} must have one dimension; got shape {array.shape}")
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
    """Return whether kernels can read a CSR matrix in place, perhaps except int32 ``indptr``."""
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
    """Return an aligned, contiguous array; without a copy if it is one already."""
    flags = values.flags
    return values if flags.c_contiguous and flags.aligned else values.copy(order="C")


def check_integers(array: Any, name: str, part: str = "") -> None:
    """Raise ValueError unless an array holds integers; SciPy would round other numbers."""
    dtype = np.asarray(array).dtype
    if dtype.kind not in "iu":
        raise ValueError(f"{name}{part} must hold integers; got dtype {dtype}")


def reject_mask(values: Any, name: str) -> None:
    """Raise TypeError for a masked array, whose mask NumPy would drop in conversions."""
    kinds = {type(values)}
    if isinstance(values, list | tuple):
        kinds |= set(map(type, values))
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        raise TypeError(
            f"{name} is a masked array, and masks are not supported: fill it or drop its "
            "masked entries"
        )


def objects_as_floats(array: np.ndarray, name: str) -> np.ndarray:
    """Convert Python objects to float64; None is NaN. Errors have the position."""
    kinds = set(map(type, array.flat))
    odd = tuple(
        kind
        for kind in kinds
        if not issubclass(kind, Real | np.bool_ | Decimal | type(None))
        and kind.__name__ not in ("NAType", "dict")
    )
    if odd:
        where = next(i for i, value in enumerate(array.flat) if isinstance(value, odd))
        raise TypeError(
            f"{name} must be real numbers; got {array.flat[where]!r:.60} of type "
            f"{type(array.flat[where]).__name__}{_place(where, array.shape)}: encode it first"
        )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        where = next(i for i, value in enumerate(array.flat) if not _is_float(value))
        kind: type[Exception] = ValueError if isinstance(error, OverflowError) else TypeError
        raise kind(
            f"{name} has {array.flat[where]!r:.60}{_place(where, array.shape)}: {error}"
        ) from None


def _is_float(value: Any) -> bool:
    try:
        np.array([value], dtype=object).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _place(where: int, shape: tuple[int, ...]) -> str:
    if len(shape) != 2:
        return f" at position {where}"
    row, column = divmod(where, shape[1])
    return f" at row {row}, column {column}"
