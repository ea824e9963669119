"""A list of ONNX operators, which becomes a file of its own or a part of skl2onnx's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# TensorProto's numbers of types.
DOUBLE, INT64 = 11, 7
ML = "ai.onnx.ml"


@dataclass
class Graph:
    """Operators in order, and the arrays they read."""

    # operator, inputs, output, domain, attributes
    nodes: list[tuple[str, list[str], str, str, dict[str, Any]]] = field(default_factory=list)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    prefix: str = ""  # of all names between input and outputs

    def array(self, values: Any, dtype: Any = np.float64) -> str:
        """A constant."""
        name = f"{self.prefix}c{len(self.arrays)}"
        self.arrays[name] = np.asarray(values, dtype=dtype)
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """An operator; returns the name of what it computes."""
        output = f"{self.prefix}t{len(self.nodes)}"
        self.nodes.append((operator, [*inputs], output, domain, attributes))
        return output

    # One number that is 1, or 0, in single precision only: onnxruntime takes it for the neutral
    # element and leaves the operation out. These have the same result to the bit without one.

    def plus(self, x: str, numbers: Any) -> str:
        """Add numbers, one or one for each column."""
        if _looks_like(numbers, 0.0):
            return self.add("Neg", self.add("Sub", self.array(-np.asarray(numbers)), x))
        return self.add("Add", x, self.array(numbers))

    def minus(self, x: str, numbers: Any) -> str:
        """Subtract numbers, one or one for each column."""
        return self.plus(x, -np.asarray(numbers))

    def times(self, x: str, numbers: Any) -> str:
        """Multiply by numbers, one or one for each column."""
        if _looks_like(numbers, 1.0):
            return self.add("Mul", self.times(x, 2.0 * np.asarray(numbers)), self.array(0.5))
        return self.add("Mul", x, self.array(numbers))

    def over(self, x: str, numbers: Any) -> str:
        """Divide by numbers, one or one for each column."""
        if _looks_like(numbers, 1.0):
            return self.over(self.add("Add", x, x), 2.0 * np.asarray(numbers))
        return self.add("Div", x, self.array(numbers))

    def double(self, name: str) -> str:
        """A tensor as doubles."""
        return self.add("Cast", name, to=DOUBLE)

    def keep(self, outputs: Iterable[str]) -> None:
        """Remove operators that no output needs."""
        needed = {*outputs}
        kept = []
        for node in reversed(self.nodes):
            if node[2] in needed:
                needed.update(node[1])
                kept.append(node)
        self.nodes[:] = reversed(kept)
        self.arrays = {name: array for name, array in self.arrays.items() if name in needed}


def _looks_like(numbers: Any, neutral: float) -> bool:
    """Whether a constant is a single number that changes values only by rounding."""
    values = np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return values.size == 1 and bool((rounded == neutral).all() and (values != neutral).all())
