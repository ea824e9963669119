"""Scores as one expression, in SQL and in Vespa's rank profiles."""

from __future__ import annotations

import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from rankcore.exporters.described import Described, Files
from rankcore.exporters.operations import ARITHMETIC, Columns
from rankcore.exporters.reduced import Tree, as_forest, as_linear

# Terms added without parentheses: databases limit the depth of expressions.
TERMS = 32


def export_sql(described: Described, path: Path) -> Files:
    """Write an expression over columns with the names of the features.

    NULL is a missing value: stumps and trees treat it as NaN; a weighted sum with NULL is NULL.
    """
    names = described.named("sql")
    _check_case(names)
    columns = [*map(quoted, names)]
    linear = as_linear(described, "sql", clips=True)
    if linear is not None:
        values = _after_steps(linear.columns, columns)
        added = [
            _operation(value, "*", weight)
            for weight, value in zip(linear.weights.tolist(), values, strict=True)
            if weight != 0.0
        ]
        if linear.intercept or not added:
            added.append(_literal(linear.intercept))
    else:
        forest = as_forest(described, "sql")
        added = [_case(tree, 0, columns, forest.zero_missing) for tree in forest.trees]
    return {path: _sum(added) + "\n"}


def _check_case(names: list[str]) -> None:
    """Raise ValueError for names of columns that differ only in case."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise ValueError(
                f"sql requires feature names that differ by more than case; got {other!r} and "
                f"{name!r}, which are one column in SQLite, MySQL and others: rename one by "
                "feature_names="
            )


def quoted(name: str) -> str:
    """Quote an identifier."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _literal(value: float) -> str:
    """Write a double with an exponent, without which it would be a decimal."""
    text = repr(float(value))
    return f"({text})" if "e" in text else f"({text}e0)"


def _sum(added: list[str]) -> str:
    plus = "\n + "
    while len(added) > TERMS:
        starts = range(0, len(added), TERMS)
        added = [f"({plus.join(added[first : first + TERMS])})" for first in starts]
    return plus.join(added)


def _after_steps(columns: Columns, names: list[str]) -> list[str]:
    """Write preprocessed columns, with Python's order of operations."""
    expressions = [names[source] for source in columns.source.tolist()]
    for step in columns.steps:
        if step.kind == "clip":
            low, high = map(_literal, step.values.tolist())
            expressions = [
                f"(CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END)"
                for x in expressions
            ]
            continue
        pairs = zip(expressions, step.values.tolist(), strict=True)
        if step.kind == "impute":
            expressions = [f"COALESCE({x}, {_literal(value)})" for x, value in pairs]
        else:
            sign = ARITHMETIC[step.kind][0]
            expressions = [f"({_operation(x, sign, value)})" for x, value in pairs]
    return expressions


def _operation(x: str, sign: str, value: float) -> str:
    """Write an operation; results that underflow are 0, where PostgreSQL raises an error."""
    expression = f"{x} {sign} {_literal(value)}"
    if sign in "+-":
        return expression
    factor = Fraction(value) if sign == "*" else 1 / Fraction(value)
    if not factor:
        return expression
    # The maximum number that rounds to 0: half of the smallest one, by ties to even.
    bound = float(min(Fraction(2) ** -1075 / abs(factor), Fraction(sys.float_info.max)))
    while Fraction(bound) * abs(factor) > Fraction(2) ** -1075:
        bound = math.nextafter(bound, 0.0)
    if bound == 0.0:
        return expression
    ends = f"{_literal(-bound)} AND {_literal(bound)}"
    return f"CASE WHEN {x} BETWEEN {ends} THEN {_literal(0.0)} ELSE {expression} END"


def _case(tree: Tree, node: int, columns: list[str], zero_missing: bool) -> str:
    if tree.features[node] < 0:
        return _literal(tree.values[node])
    x = columns[int(tree.features[node])]
    bound = float(tree.thresholds[node])
    left, right = (
        _case(tree, child, columns, zero_missing) for child in tree.children[node].tolist()
    )
    if bound == -np.inf:
        return f"CASE WHEN {x} IS NULL THEN {left} ELSE {right} END"
    condition = f"{x} <= {_literal(bound)}"
    if tree.missing[node] == 0:
        condition += f" OR {x} IS NULL"
        condition += f" OR {x} = 0" if zero_missing else ""
    elif zero_missing:
        condition += f" AND {x} <> 0"
    return f"CASE WHEN {condition} THEN {left} ELSE {right} END"


# ------------------------------------------------------------------------ Vespa


def export_vespa(described: Described, path: Path, *, name: str | None = None) -> Files:
    """Write a rank profile whose first phase is the score; ``name`` is by default the file's.

    Features of the model are named as rank features, ``bm25(title)``.
    """
    profile = path.stem if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", profile):
        raise ValueError(f"name must be a word of letters, digits and _; got {profile!r}")
    names = described.named("vespa")
    for feature in names:
        if not re.fullmatch(r"[A-Za-z_][\w.]*(\([^\s(){}]*\)[\w.]*)?", feature, flags=re.ASCII):
            raise ValueError(
                f"feature_names must be rank features, such as 'bm25(title)'; got {feature!r}"
            )
    linear = as_linear(described, "vespa")
    if linear is not None:
        weights, intercept = linear.folded(described.n_features)
        added = [
            f"{_decimal(weight)} * {feature}"
            for weight, feature in zip(weights.tolist(), names, strict=True)
            if weight != 0.0
        ]
        if intercept or not added:
            added.append(_decimal(intercept))
    else:
        trees = as_forest(described, "vespa").without_missing_zeros("vespa")
        added = [_if(tree, 0, names) for tree in trees]
    lines = " +\n            ".join(added)
    return {
        path: f"rank-profile {profile} {{\n    first-phase {{\n        expression {{\n            "
        f"{lines}\n        }}\n    }}\n}}\n"
    }


def _decimal(value: float) -> str:
    text = repr(float(value))
    return f"({text})" if value < 0 else text


def _if(tree: Tree, node: int, names: list[str]) -> str:
    """Write a tree as nested conditions; comparisons with NaN are false."""
    if tree.features[node] < 0:
        return _decimal(tree.values[node])
    x = names[int(tree.features[node])]
    bound = float(tree.thresholds[node])
    left, right = (_if(tree, child, names) for child in tree.children[node].tolist())
    if bound == -np.inf:  # only a NaN goes left
        return f"if (isNan({x}), {left}, {right})"
    if tree.missing[node] == 0:
        return f"if ({x} > {_decimal(bound)}, {right}, {left})"
    return f"if ({x} <= {_decimal(bound)}, {left}, {right})"
