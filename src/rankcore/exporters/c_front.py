"""Steps before a learner, as C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.exporters.front import ARITHMETIC, Step


def front_function(
    steps: Sequence[Step], n_features: int, table: Callable[[str, NDArray[Any]], str]
) -> str:
    """C function that applies the steps to a row; ``table`` writes a named array."""
    lines = [f"    for (j = 0; j < {n_features}; j++)\n        y[j] = x[j];\n"]
    n, norm = n_features, False
    for number, step in enumerate(steps):
        each = f"    for (j = 0; j < {n}; j++)\n        "
        constants = ""
        if step.kind not in ("normalize", "clip"):
            kind = np.int64 if step.kind == "select" else np.float64
            constants = table(f"step_{number}", step.values.astype(kind))
        if step.kind == "select":
            n = step.values.size
            lines.append(
                f"    for (j = 0; j < {n}; j++)\n        z[j] = y[{constants}[j]];\n"
                f"    for (j = 0; j < {n}; j++)\n        y[j] = z[j];\n"
            )
        elif step.kind == "impute":
            lines.append(f"{each}y[j] = y[j] != y[j] ? {constants}[j] : y[j];\n")
        elif step.kind == "clip":
            low, high = (float(value).hex() for value in step.values)
            lines.append(f"{each}y[j] = y[j] < {low} ? {low} : y[j] > {high} ? {high} : y[j];\n")
        elif step.kind == "normalize":
            norm = True
            lines.append(_normalized(step.norm, each))
        else:
            lines.append(f"{each}y[j] = y[j] {ARITHMETIC[step.kind][0]} {constants}[j];\n")
    variables = "    int64_t j;\n"
    if any(step.kind == "select" for step in steps):
        variables += f"    double z[{n_features}];\n"
    variables += "    double norm;\n" if norm else ""
    return (
        "/* Apply the preprocessing steps to a row. */\n"
        f"static void front(const double *x, double *y)\n{{\n{variables}{''.join(lines)}}}\n"
    )


def _normalized(norm: str, each: str) -> str:
    """Divide a row by its norm, unless it is close to zero, as scikit-learn does."""
    add = {
        "l1": "norm = norm + fabs(y[j]);",
        "l2": "norm = norm + y[j] * y[j];",
        "max": "norm = fabs(y[j]) > norm ? fabs(y[j]) : norm;",
    }[norm]
    root = "    norm = sqrt(norm);\n" if norm == "l2" else ""
    return (
        f"    norm = 0.0;\n{each}{add}\n{root}    if (norm < 10.0 * DBL_EPSILON)\n"
        f"        norm = 1.0;\n{each}y[j] = y[j] / norm;\n"
    )
