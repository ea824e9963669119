from typing import final

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

WAYS: dict[str, int]
OUTCOMES: dict[str, int]
# C functions for the table of capi.pyx.

@final
class PairState:
    def __init__(
        self,
        weights: NDArray[np.float64],
        sums: NDArray[np.float64],
        members: NDArray[np.float64] | None,
        survived: NDArray[np.float64] | None,
        born: NDArray[np.int64] | None,
        clock: NDArray[np.float64],
        counts: NDArray[np.int64],
        margin: float,
    ) -> None: ...

@final
class PairData:
    def __init__(
        self,
        rows: Rows,
        docs: NDArray[np.int64],
        bounds: NDArray[np.int64],
        labels: NDArray[np.float64],
        doc_weights: NDArray[np.float64] | None,
        pair_bounds: NDArray[np.int64] | None,
        winners: NDArray[np.int32] | None,
        losers: NDArray[np.int32] | None,
        pair_weights: NDArray[np.float64] | None,
        n_pairs: NDArray[np.int64],
        ways: NDArray[np.uint8],
        cached: NDArray[np.int64],
        cache: NDArray[np.float64],
        lexicographic: bool,
        seed: int,
    ) -> None: ...

def learn(
    state: PairState,
    data: PairData,
    sequence: NDArray[np.int64],
    start: int,
    steps: NDArray[np.float64],
    units: NDArray[np.float64],
    judge_above: float,
    budget: int,
) -> tuple[int, int]: ...
def candidate(state: PairState, data: PairData, out: NDArray[np.float64]) -> float: ...
