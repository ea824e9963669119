"""A score as one SQL expression."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from rankcore.exporters.described import Described
from rankcore.exporters.front import ARITHMETIC, Columns
from rankcore.exporters.reduced import Tree, as_forest, as_linear

# Terms added without parentheses: databases limit the depth of expressions.
TERMS = 32


def export_sql(described: Described, path: Path) -> list[Path]:
    """Write an expression over columns with the names of the features.

    NULL is a missing value: stumps and trees treat it as NaN; a weighted sum with NULL is NULL.
    """
    columns = [_quoted(name) for name in described.named("sql")]
    linear = as_linear(described, "sql", clips=True)
    if linear is not None:
        values = _after_steps(linear.columns, columns)
        added = [
            _operation(value, "*", weight)
            for weight, value in zip(linear.weights.tolist(), values, strict=True)
            if weight != 0.0
        ]
        if linear.intercept or not added:
            added.append(_number(linear.intercept))
    else:
        forest = as_forest(described, "sql")
        added = [_case(tree, 0, columns, forest.zero_missing) for tree in forest.trees]
    path.write_text(_sum(added) + "\n", encoding="utf-8")
    return [path]


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _number(value: float) -> str:
    """Double-precision literal, with an exponent, without which it would be a decimal."""
    text = repr(float(value))
    return f"({text})" if "e" in text else f"({text}e0)"


def _sum(added: list[str]) -> str:
    while len(added) > TERMS:
        added = [
            f"({_joined(added[first : first + TERMS])})" for first in range(0, len(added), TERMS)
        ]
    return _joined(added)


def _joined(added: list[str]) -> str:
    return "\n + ".join(added)


def _after_steps(columns: Columns, names: list[str]) -> list[str]:
    """SQL expressions of columns after the preceding steps, in Python's order of operations."""
    found = [names[source] for source in columns.source.tolist()]
    for step in columns.steps:
        if step.kind == "clip":
            low, high = map(_number, step.values.tolist())
            found = [
                f"(CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END)"
                for x in found
            ]
            continue
        pairs = zip(found, step.values.tolist(), strict=True)
        if step.kind == "impute":
            found = [f"COALESCE({x}, {_number(value)})" for x, value in pairs]
        else:
            sign = ARITHMETIC[step.kind][0]
            found = [f"({_operation(x, sign, value)})" for x, value in pairs]
    return found


def _operation(x: str, sign: str, value: float) -> str:
    """An operation; products and quotients are 0 on underflow, where PostgreSQL raises an error."""
    found = f"{x} {sign} {_number(value)}"
    if sign in "+-":
        return found
    factor = Fraction(value) if sign == "*" else 1 / Fraction(value)
    if not factor:
        return found
    # The maximum number that rounds to 0: half of the smallest one, by ties to even.
    bound = float(min(Fraction(2) ** -1075 / abs(factor), Fraction(sys.float_info.max)))
    while Fraction(bound) * abs(factor) > Fraction(2) ** -1075:
        bound = math.nextafter(bound, 0.0)
    if bound == 0.0:
        return found
    ends = f"{_number(-bound)} AND {_number(bound)}"
    return f"CASE WHEN {x} BETWEEN {ends} THEN {_number(0.0)} ELSE {found} END"


def _case(tree: Tree, node: int, columns: list[str], zero_missing: bool) -> str:
    if tree.features[node] < 0:
        return _number(tree.values[node])
    x, bound = columns[int(tree.features[node])], float(tree.thresholds[node])
    left, right = (
        _case(tree, child, columns, zero_missing) for child in tree.children[node].tolist()
    )
    if bound == -np.inf:
        return f"CASE WHEN {x} IS NULL THEN {left} ELSE {right} END"
    condition = f"{x} <= {_number(bound)}"
    if tree.missing[node] == 0:
        condition += f" OR {x} IS NULL"
        condition += f" OR {x} = 0" if zero_missing else ""
    elif zero_missing:
        condition += f" AND {x} <> 0"
    return f"CASE WHEN {condition} THEN {left} ELSE {right} END"
