from typing import final

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns

@final
class LabelScan:
    def __init__(
        self,
        level_of: NDArray[np.int32],
        first: NDArray[np.int32],
        last: NDArray[np.int32],
        u: NDArray[np.float64],
        v: NDArray[np.float64],
        all_u: NDArray[np.float64],
        all_v: NDArray[np.float64],
        in_u: NDArray[np.float64],
        in_v: NDArray[np.float64],
        held_u: NDArray[np.float64],
        held_v: NDArray[np.float64],
        touched: NDArray[np.int32],
        seen: NDArray[np.uint8],
    ) -> None: ...

@final
class PairScan:
    def __init__(
        self,
        starts: NDArray[np.int64],
        others: NDArray[np.int32],
        wins: NDArray[np.uint8],
        which: NDArray[np.int32],
        weights: NDArray[np.float64],
        inside: NDArray[np.uint8],
        held: NDArray[np.uint8],
    ) -> None: ...

def evaluate(
    columns: Columns,
    scan: LabelScan | PairScan,
    features: NDArray[np.int32],
    order: NDArray[np.int32],
    counts: NDArray[np.int64],
    edges: NDArray[np.float64],
    merits: NDArray[np.float64],
    bins: NDArray[np.int32],
    sides: NDArray[np.uint8],
) -> None: ...
