"""OneHotEncoder in model files: the categories of each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
# Python's numeric types in object columns, and the array dtype that stores each.
_NUMBERS: dict[str, type] = {"int64": int, "float64": float, "bool": bool}


def describe_encoder(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a OneHotEncoder."""
    arrays, kinds = {}, []
    for j, categories in enumerate(step.categories_):
        kind, found = _as_array(categories, j)
        kinds.append(kind)
        arrays[f"{prefix}categories.{j}"] = found
    facts: dict[str, Any] = {"categories": kinds}
    if step._infrequent_enabled:
        rare = step._infrequent_indices
        facts["infrequent"] = [j for j, one in enumerate(rare) if one is not None]
        for j in facts["infrequent"]:
            arrays[f"{prefix}infrequent.{j}"] = np.asarray(rare[j], dtype=np.int64)
    return facts, arrays


def restore_encoder(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    """Restore the state from the result of `describe_encoder`; return the number of columns."""
    kinds, n = facts["categories"], step.n_features_in_
    if len(kinds) != n or not n:
        raise ValueError(f"its OneHotEncoder has categories of {len(kinds)} columns, not {n}")
    step.categories_ = [
        _as_categories(kind, arrays[f"{prefix}categories.{j}"]) for j, kind in enumerate(kinds)
    ]
    step._check_infrequent_enabled()
    if step._infrequent_enabled:
        step._infrequent_indices = [None] * n
        step._default_to_infrequent_mappings = [None] * n
        for j in facts["infrequent"]:
            rare, size = arrays[f"{prefix}infrequent.{j}"], step.categories_[j].size
            if (
                rare.ndim != 1
                or rare.dtype != np.int64
                or not rare.size
                or rare[0] < 0
                or rare[-1] >= size
                or (np.diff(rare) <= 0).any()
            ):
                raise ValueError(f"the rare categories of column {j} are not among its categories")
            step._infrequent_indices[j] = rare
            step._default_to_infrequent_mappings[j] = _grouped(rare, size)
    # The dropped categories follow from the parameter `drop`.
    step._set_drop_idx()
    step._n_features_outs = step._compute_n_features_outs()
    return int(sum(step._n_features_outs))


def _grouped(rare: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Indices of categories; infrequent ones share the last."""
    found = np.full(size, size - rare.size, dtype=np.int64)
    frequent = np.ones(size, dtype=bool)
    frequent[rare] = False
    found[frequent] = np.arange(size - rare.size)
    return found


def _as_array(categories: NDArray[Any], j: int) -> tuple[str, NDArray[Any]]:
    """Kind of the categories of a column, and an array for the file.

    The kind is "" for a plain array, "int64", "float64" or "bool" for Python's numbers, "str" for
    strings, with the suffixes "+None" and "+nan" if these categories come last.
    """
    if categories.dtype != object:
        return "", categories
    values, after = categories.tolist(), ""
    if values and isinstance(values[-1], float) and values[-1] != values[-1]:
        values, after = values[:-1], "+nan"
    if values and values[-1] is None:
        values, after = values[:-1], "+None" + after
    types = {type(one) for one in values}
    if types <= {str}:
        return "str" + after, np.array(values, dtype=object)
    for kind, of in _NUMBERS.items():
        if types == {of}:
            try:
                return kind + after, np.array(values, dtype=kind)
            except OverflowError:
                break
    raise TypeError(
        f"the categories of column {j} of this OneHotEncoder are of "
        f"{' and '.join(sorted(one.__name__ for one in types))}: model files hold texts or numbers"
    )


def _as_categories(kind: Any, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1 or not (array.size or "+" in kind):
        raise ValueError("the categories of its OneHotEncoder are no list")
    if kind == "":
        if array.dtype == object:
            raise ValueError("the categories of its OneHotEncoder have no kind")
        return array
    name, *after = kind.split("+")
    if after not in ([], ["nan"], ["None"], ["None", "nan"]):
        raise ValueError(f"its categories are of the kind {kind!r}")
    if (name == "str") != (array.dtype == object) or (name != "str" and array.dtype != name):
        raise ValueError(f"its categories are not of the kind {kind!r}")
    if name not in ("str", *_NUMBERS):
        raise ValueError(f"its categories are of the kind {kind!r}")
    missing = {"None": None, "nan": float("nan")}
    found = np.empty(array.size + len(after), dtype=object)
    found[: array.size] = array.tolist()
    found[array.size :] = [missing[one] for one in after]
    return found
