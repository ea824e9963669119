"""ColumnTransformer in model files: its parts, and the columns of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.io.settings import decode_setting, encode_setting

Arrays = Mapping[str, NDArray[Any]]
Describe = Callable[..., Any]
# A part and its number of output columns.
Part = tuple[Any, int]
Restore = Callable[[Any, Arrays | None, str], Part]


def describe_columns(
    step: Any, prefix: str, arrays: dict[str, Any], fitted: bool, describe_part: Describe
) -> dict[str, Any]:
    """The parts of a ColumnTransformer, and the input columns of each."""
    parts = {name: part for name, part, _ in step.transformers_} if fitted else {}
    described: dict[str, Any] = {}
    listed = [*step.transformers, ("remainder", step.remainder, None)]
    for i, (name, given, _) in enumerate(listed):
        part, under = parts.get(name, given), f"{prefix}{i}."
        if isinstance(given, str):
            described[name] = given
            if given == "passthrough" and not isinstance(part, str):
                inside = describe_part(part, under, arrays, fitted=True)
                assert isinstance(inside, dict)
                described[name] = {**inside, "passthrough": True}
        else:
            # A part without columns was not fitted.
            learned = fitted and name in parts and len(step._transformer_to_input_indices[name]) > 0
            described[name] = describe_part(part, under, arrays, fitted=learned)
        if fitted:
            inputs = np.array(step._transformer_to_input_indices[name], dtype=np.int64)
            arrays[f"{under}inputs"] = inputs
    remainder = described.pop("remainder")
    columns = {
        name: encode_setting(f"ColumnTransformer's {name!r}", "columns", of)
        for name, _, of in step.transformers
    }
    found = {
        "transformers": [
            [name, described[name], columns[name]] for name, _, _ in step.transformers
        ],
        "remainder": remainder,
    }
    return found | ({"sparse_output": bool(step.sparse_output_)} if fitted else {})


def restored_parts(
    facts: Any, arrays: Arrays | None, prefix: str, restore_part: Restore
) -> tuple[list[Any], list[Part]]:
    """Parameters and fitted parts of a ColumnTransformer, those of the remainder last."""
    from sklearn.base import clone

    given, parts = [], []
    listed = [*facts["transformers"], ["remainder", facts["remainder"], None]]
    for i, (name, one, columns) in enumerate(listed):
        # A part without columns has no inputs and no state.
        under = f"{prefix}{i}."
        fitted = arrays is not None and arrays[f"{under}inputs"].size > 0
        part, width = restore_part(one, arrays if fitted else None, under)
        through = isinstance(one, dict) and one.get("passthrough") is True
        plain = "passthrough" if through else part if isinstance(part, str) else clone(part)
        given.append((str(name), plain, decode_setting(columns)))
        parts.append((part, width))
    return given, parts


def restore_columns(step: Any, parts: list[Part], facts: Any, arrays: Arrays, prefix: str) -> None:
    """Put fitted parts into a ColumnTransformer; raise if they do not match its columns."""
    names = [name for name, _, _ in step.transformers]
    if len({*names, "remainder"}) <= len(names):
        raise ValueError("parts of its ColumnTransformer have one name")
    n = step.n_features_in_
    inputs = [arrays[f"{prefix}{i}.inputs"] for i in range(len(parts))]
    for one in inputs:
        if one.ndim != 1 or one.dtype != np.int64 or ((one < 0) | (one >= n)).any():
            raise ValueError("the inputs of its ColumnTransformer are not columns")
    # Each column is listed, which bounds their number by the size of the file.
    if np.unique(np.concatenate(inputs)).size != n:
        raise ValueError(f"the inputs of its ColumnTransformer are not {n} columns")
    for (part, _), one in zip(parts, inputs, strict=True):
        if not isinstance(part, str) and getattr(part, "n_features_in_", one.size) != one.size:
            raise ValueError(f"its {type(part).__name__} does not take {one.size} columns")
    step._columns = [columns for _, _, columns in step.transformers]
    step._transformer_to_input_indices = {
        name: one.tolist() for name, one in zip(names, inputs[:-1], strict=True)
    }
    step._validate_remainder(None)
    if step._transformer_to_input_indices["remainder"] != inputs[-1].tolist():
        raise ValueError(
            "the remainder of its ColumnTransformer does not have the remaining columns"
        )
    taken = [
        part
        for (part, _), one in zip(parts, inputs, strict=True)
        if one.size and not (isinstance(part, str) and part == "drop")
    ]
    if any(isinstance(part, str) for part in taken):
        raise ValueError("a part of its ColumnTransformer was not fitted")
    step._update_fitted_transformers(taken)
    step.sparse_output_ = facts["sparse_output"] is True
    widths = [width for (_, width), one in zip(parts, inputs, strict=True) if one.size]
    step._record_output_indices([np.empty((0, width)) for width in widths if width >= 0])
