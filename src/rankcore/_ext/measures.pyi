from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS: dict[str, int]
TIES: dict[str, int]
GAINS: dict[str, int]
DIVISORS: dict[str, int]
TROUBLES: list[str]

def measure(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    gains: NDArray[np.float64] | None,
    rows: NDArray[np.int64] | None,
    retrieved: NDArray[np.uint8] | None,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    measures: NDArray[Any],
    discounts: NDArray[np.float64],
    ties: int,
    values: NDArray[np.float64],
) -> tuple[int, int]: ...
