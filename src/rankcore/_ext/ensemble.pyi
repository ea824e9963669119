from typing import final

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

def draws(seed: int, t: int, cumulative: NDArray[np.uint64], out: NDArray[np.int32]) -> None: ...

@final
class Members:
    def __init__(
        self,
        weights: NDArray[np.float64],
        weight_sums: NDArray[np.float64] | None,
        steps: NDArray[np.int64],
        thresholds: NDArray[np.float64],
        step_sums: NDArray[np.int64] | None,
        seen: NDArray[np.int64],
        survived: NDArray[np.int64],
        n_members: int,
        scale: float,
        strict: bool,
        before: int = 0,
    ) -> None: ...

def learn_members(
    members: Members,
    rows: Rows,
    ranks: NDArray[np.int32],
    order: NDArray[np.int32] | None,
    start: int,
    stop: int,
    t: int,
    seed: int,
    cumulative: NDArray[np.uint64],
    first: int,
    last: int,
    moved: NDArray[np.int32],
) -> int: ...
def tally(
    rows: Rows,
    weights: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    votes: NDArray[np.int64],
    first: int,
    last: int,
    start: int,
    stop: int,
    out: NDArray[np.int64],
) -> int: ...
