from typing import final

import numpy as np
from numpy.typing import NDArray

SPREAD: int

@final
class LabelWeights:
    def __init__(
        self,
        factors: NDArray[np.float64],
        masses: NDArray[np.float64] | None,
        levels: NDArray[np.int64],
        queries: NDArray[np.int64],
        scales: NDArray[np.float64],
        sums: NDArray[np.float64],
    ) -> None: ...
    def potentials(self, out: NDArray[np.float64]) -> float: ...
    def potentials_by_query(
        self, out: NDArray[np.float64], totals: NDArray[np.float64]
    ) -> None: ...
    def measure(self, fires: NDArray[np.uint8]) -> tuple[float, float, float]: ...
    def measure_by_query(self, fires: NDArray[np.uint8], sums: NDArray[np.float64]) -> None: ...
    def advance(self, fires: NDArray[np.uint8], alpha: float) -> None: ...
    def shares(self, won: NDArray[np.float64], lost: NDArray[np.float64]) -> float: ...
    def between(
        self,
        leaf_of: NDArray[np.int32],
        below: NDArray[np.float64],
        here: NDArray[np.float64],
        out: NDArray[np.float64],
    ) -> None: ...
    def move(self, leaf_of: NDArray[np.int32], values: NDArray[np.float64]) -> None: ...
    def centre(self) -> bool: ...
    def shape(
        self,
        level_of: NDArray[np.int32] | None,
        first: NDArray[np.int32] | None,
        last: NDArray[np.int32] | None,
    ) -> int: ...
    def split(
        self,
        u: NDArray[np.float64],
        v: NDArray[np.float64],
        all_u: NDArray[np.float64],
        all_v: NDArray[np.float64],
    ) -> None: ...
