from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from rankcore._ext.rows import Rows

# The C functions as capsules, for capi.pyx.
c_functions: dict[str, Any]

@disjoint_base
class Bound:
    @property
    def capsule(self) -> Any: ...

@final
class PRankState(Bound):
    def __init__(
        self,
        weights: NDArray[np.float64],
        steps: NDArray[np.int64],
        thresholds: NDArray[np.float64],
        weight_sums: NDArray[np.float64] | None,
        step_sums: NDArray[np.int64] | None,
        scale: float,
        strict: bool,
    ) -> None: ...

@final
class CuSumState(Bound):
    def __init__(
        self,
        weights: NDArray[np.float64],
        thresholds: NDArray[np.float64],
        weight_sums: NDArray[np.float64] | None,
        threshold_sums: NDArray[np.float64] | None,
        scratch: NDArray[np.float64],
        C: float,
        delta: float,
        margin: float,
        low: bool,
        update: int,
        zero_one: bool,
        scale: float,
    ) -> None: ...

@final
class WidrowHoffState(Bound):
    def __init__(
        self,
        weights: NDArray[np.float64],
        intercept: NDArray[np.float64],
        weight_sums: NDArray[np.float64] | None,
        intercept_sums: NDArray[np.float64] | None,
        eta: float,
        n_ranks: int,
        normalized: bool,
        scale: float,
    ) -> None: ...

@final
class MulticlassState(Bound):
    def __init__(
        self,
        weights: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        weight_sums: NDArray[np.float64] | None,
        intercept_sums: NDArray[np.float64] | None,
        scratch: NDArray[np.float64],
        uniform: bool,
        scale: float,
    ) -> None: ...

def threshold_ranks(
    scores: NDArray[np.float64], thresholds: NDArray[np.float64], out: NDArray[np.int32]
) -> None: ...
def rounded_ranks(scores: NDArray[np.float64], n_ranks: int, out: NDArray[np.int32]) -> None: ...
def cusum_ranks(
    rows: Rows,
    weights: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    low: bool,
    scores: NDArray[np.float64],
    out: NDArray[np.int32],
) -> None: ...
