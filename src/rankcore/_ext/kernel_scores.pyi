from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

def outputs(
    rows: Rows,
    start: int,
    stop: int,
    kernel: dict[str, Any],
    vectors: NDArray[np.float32] | NDArray[np.float64],
    indices: NDArray[np.int32] | None,
    starts: NDArray[np.int64] | None,
    lengths: NDArray[np.int64] | None,
    norms: NDArray[np.float64],
    n_support: int,
    slots: NDArray[np.int32] | None,
    coefs: NDArray[np.float64] | None,
    sizes: NDArray[np.int64] | None,
    out: NDArray[np.float64],
) -> None: ...
