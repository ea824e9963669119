from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

def learn(
    bound: Any,
    rows: Rows,
    ranks: NDArray[np.int32],
    order: NDArray[np.int32] | None,
    weights: NDArray[np.float64] | None,
    start: int,
    stop: int,
    counts: NDArray[np.int64],
    marks: NDArray[np.int64],
    losses: NDArray[np.int64],
) -> int: ...
