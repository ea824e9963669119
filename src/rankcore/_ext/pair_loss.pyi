from typing import final

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

@final
class PairLoss:
    def __init__(
        self,
        docs: NDArray[np.int64],
        bounds: NDArray[np.int64],
        levels: NDArray[np.uint32],
        n_levels: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        steps: NDArray[np.float64],
        pair_bounds: NDArray[np.int64] | None,
        winners: NDArray[np.int32] | None,
        losers: NDArray[np.int32] | None,
        pair_weights: NDArray[np.float64] | None,
        order: NDArray[np.uint32],
    ) -> None: ...

def evaluate(
    pairs: PairLoss,
    rows: Rows | None,
    weights: NDArray[np.float64] | None,
    scores: NDArray[np.float64],
    margins: NDArray[np.float64],
    factors: NDArray[np.float64],
    slopes: NDArray[np.float64],
    curvatures: NDArray[np.float64],
    sums: NDArray[np.float64],
    gradient: NDArray[np.float64] | None,
    first: int,
    last: int,
) -> None: ...
def curve(
    pairs: PairLoss,
    rows: Rows | None,
    weights: NDArray[np.float64] | None,
    scores: NDArray[np.float64],
    margins: NDArray[np.float64],
    factors: NDArray[np.float64],
    curvatures: NDArray[np.float64],
    z: NDArray[np.float64],
    out: NDArray[np.float64],
    product: NDArray[np.float64] | None,
    first: int,
    last: int,
) -> None: ...
def curve_rows(
    pairs: PairLoss,
    rows: Rows,
    scores: NDArray[np.float64],
    margins: NDArray[np.float64],
    factors: NDArray[np.float64],
    curvatures: NDArray[np.float64],
    q: int,
    dense: NDArray[np.float64],
    curved: NDArray[np.float64],
) -> None: ...
