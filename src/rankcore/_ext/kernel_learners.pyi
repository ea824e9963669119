from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from rankcore._ext.rows import Rows

_Arrays = dict[str, NDArray[Any]]

@disjoint_base
class DualState:
    @property
    def capsule(self) -> Any: ...
    def take(
        self,
        rows: Rows,
        order: NDArray[np.int32] | None,
        start: int,
        stop: int,
        first: int,
        slot_of: NDArray[np.int32] | None,
        values: NDArray[np.float64] | None,
        among: NDArray[np.float64] | None,
    ) -> None: ...

@final
class KernelPRankState(DualState):
    def __init__(
        self,
        arrays: _Arrays,
        kernel: dict[str, Any],
        budget: dict[str, Any],
        n_features: int,
        scale: float,
        strict: bool,
    ) -> None: ...

@final
class KernelCuSumState(DualState):
    def __init__(
        self,
        arrays: _Arrays,
        kernel: dict[str, Any],
        budget: dict[str, Any],
        n_features: int,
        C: float,
        delta: float,
        margin: float,
        low: bool,
        update: int,
        zero_one: bool,
        scale: float,
    ) -> None: ...

@final
class KernelOAPState(DualState):
    def __init__(
        self,
        arrays: _Arrays,
        kernel: dict[str, Any],
        budget: dict[str, Any],
        n_features: int,
        scale: float,
        strict: bool,
        cumulative: NDArray[np.uint64],
    ) -> None: ...

@final
class KernelAtomsState(DualState):
    def __init__(
        self,
        arrays: _Arrays,
        kernel: dict[str, Any],
        budget: dict[str, Any],
        n_features: int,
    ) -> None: ...
    def scores(self, first: int, last: int, out: NDArray[np.float64]) -> None: ...
    def learn(self, first: int, last: int, changes: NDArray[np.float64], t: int) -> None: ...
