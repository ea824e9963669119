"""Preprocessing steps of a pipeline, as operations for exporters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats

# Operations with one number per column: operator in C and SQL, and NumPy function.
ARITHMETIC: dict[str, tuple[str, Any]] = {
    "subtract": ("-", np.subtract),
    "divide": ("/", np.divide),
    "multiply": ("*", np.multiply),
    "add": ("+", np.add),
}


@dataclass(frozen=True)
class Step:
    """One operation on rows, in the order and the rounding of scikit-learn.

    Kinds are "select" (``values``: the columns kept, in order), "impute" (NaN becomes
    ``values``), "subtract", "divide", "multiply", "add" (``values``), "clip" (to ``values[0]`` and
    ``values[1]`` of all columns) and "normalize" (divides each row by its ``norm``: "l1", "l2" or
    "max").
    """

    kind: str
    values: NDArray[Any]
    norm: str = ""


def steps_of(transformer: Any) -> list[Step]:
    """Return the steps of a fitted transformer or "passthrough"; raise TypeError for others."""
    name = type(transformer).__name__
    convert = _KNOWN.get(name)
    if convert is not None and type(transformer).__module__.startswith("sklearn."):
        return convert(transformer)
    if transformer is None or transformer == "passthrough":
        return []
    if hasattr(transformer, "get_support"):
        return [Step("select", np.flatnonzero(transformer.get_support()).astype(np.int64))]
    raise TypeError(
        "export takes a learner with StandardScaler, MinMaxScaler, MaxAbsScaler, Normalizer, "
        f"SimpleImputer or a selection of columns before it; got {name} in the pipeline"
    )


def width_after(steps: Sequence[Step], n_columns: int) -> int:
    """Count the columns after the steps."""
    for step in steps:
        if step.kind == "select":
            n_columns = step.values.size
    return n_columns


def _learned(kind: str, values: Any) -> Step:
    return Step(kind, np.asarray(values, dtype=np.float64))


def _standard(scaler: Any) -> list[Step]:
    steps = [_learned("subtract", scaler.mean_)] if scaler.with_mean else []
    return [*steps, _learned("divide", scaler.scale_)] if scaler.with_std else steps


def _min_max(scaler: Any) -> list[Step]:
    steps = [_learned("multiply", scaler.scale_), _learned("add", scaler.min_)]
    return [*steps, _learned("clip", scaler.feature_range)] if scaler.clip else steps


def _max_abs(scaler: Any) -> list[Step]:
    steps = [_learned("divide", scaler.scale_)]
    return [*steps, _learned("clip", [-1.0, 1.0])] if getattr(scaler, "clip", False) else steps


def _normalizer(normalizer: Any) -> list[Step]:
    return [Step("normalize", np.empty(0), str(normalizer.norm))]


def _imputer(imputer: Any) -> list[Step]:
    if imputer.missing_values is not np.nan and imputer.missing_values == imputer.missing_values:
        raise TypeError(
            "export takes a SimpleImputer of missing_values=nan; got "
            f"missing_values={imputer.missing_values!r}"
        )
    if imputer.add_indicator:
        raise TypeError("export takes a SimpleImputer without add_indicator=True")
    values = np.asarray(imputer.statistics_, dtype=np.float64)
    steps = []
    kept = ~np.isnan(values)
    if not kept.all():  # columns without values, which the imputer drops
        steps.append(Step("select", np.flatnonzero(kept).astype(np.int64)))
    return [*steps, _learned("impute", values[kept])]


def _columns(transformer: Any) -> list[Step]:
    """Convert a ColumnTransformer that only selects."""
    taken: list[int] = []
    for name, part, _ in transformer.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        through = isinstance(part, str) and part == "passthrough"
        # A fitted ColumnTransformer replaces it by a FunctionTransformer without a function.
        identity = type(part).__name__ == "FunctionTransformer" and part.func is None
        if not (through or identity):
            raise TypeError(
                "export takes a ColumnTransformer that only selects columns; got "
                f"{type(part).__name__} as {name!r}: put it after the selection"
            )
        taken += transformer._transformer_to_input_indices[name]
    return [Step("select", np.array(taken, dtype=np.int64))]


_KNOWN = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "Normalizer": _normalizer,
    "SimpleImputer": _imputer,
    "ColumnTransformer": _columns,
}


# ------------------------------------------------------------------------ steps on single values


@dataclass(frozen=True)
class Columns:
    """Steps on single columns: source of each column, and its operations."""

    source: NDArray[np.int64]  # column of the row that reaches the first step
    steps: list[Step]  # all but "select" and "normalize", with one value for each column

    def apply(self, values: Floats, columns: NDArray[Any]) -> Floats:
        """Transform values of some of the n_out columns; non-decreasing in each value."""
        for step in self.steps:
            if step.kind == "clip":
                low, high = step.values
                values = np.clip(values, low, high)
                continue
            constants = step.values[columns]
            if step.kind == "impute":
                values = np.where(np.isnan(values), constants, values)
            else:
                values = ARITHMETIC[step.kind][1](values, constants)
        return values

    def affine(self) -> tuple[Floats, Floats]:
        """Return the factor and offset of each column, without clipping and imputing."""
        factor = np.ones(self.source.size)
        summand = np.zeros(self.source.size)
        for step in self.steps:
            if step.kind == "subtract":
                summand = summand - step.values
            elif step.kind == "add":
                summand = summand + step.values
            elif step.kind in ("multiply", "divide"):
                by = step.values if step.kind == "multiply" else 1.0 / step.values
                factor = factor * by
                summand = summand * by
        return factor, summand

    def has(self, kind: str) -> bool:
        """Return whether some step is of this kind."""
        return any(step.kind == kind for step in self.steps)


def by_column(steps: Sequence[Step], n_columns: int) -> Columns | None:
    """Convert steps to `Columns`; None if one of them depends on the whole row."""
    source = np.arange(n_columns, dtype=np.int64)
    converted: list[Step] = []
    for step in steps:
        if step.kind == "normalize":
            return None
        if step.kind == "select":
            source = source[step.values]
            converted = [
                old if old.kind == "clip" else Step(old.kind, old.values[step.values])
                for old in converted
            ]
        else:
            converted.append(step)
    return Columns(source, converted)


def last_not_above(
    columns: Columns, which: NDArray[Any], bounds: Floats, dtype: type[np.floating[Any]]
) -> Floats:
    """Find the maximum number of the dtype whose scaled value does not exceed a bound.

    Scaling is non-decreasing, so ``value <= found`` is equivalent to ``scaled(value) <= bound`` for
    all values of the dtype. ``which`` is the column of each bound. The result is -inf if even the
    lowest number exceeds the bound.
    """
    integer = np.int32 if dtype is np.float32 else np.int64
    top = int(np.array(np.finfo(dtype).max, dtype=dtype).view(integer))
    # Floats as integers in ascending order: 0 is 0, -1 the next below it.
    low = np.full(bounds.size, -top - 1, dtype=np.int64)
    high = np.full(bounds.size, top, dtype=np.int64)

    def number(codes: NDArray[np.int64]) -> Floats:
        magnitude = np.where(codes < 0, -codes, codes).astype(integer).view(dtype)
        return np.where(codes < 0, -magnitude, magnitude).astype(np.float64)

    with np.errstate(over="ignore"):
        while (low < high).any():
            middle = (low | high) - ((low ^ high) >> 1)  # the mean, rounded up: no overflow
            below = columns.apply(number(np.maximum(middle, -top)), which) <= bounds
            low = np.where(below & (low < high), middle, low)
            high = np.where(below | (low >= high), high, middle - 1)
    return np.where(low < -top, -np.inf, number(np.maximum(low, -top)))
