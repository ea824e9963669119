import numpy as np
from numpy.typing import NDArray

def position_losses(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    rows: NDArray[np.int64] | None,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    k: int,
    split: int,
    position_values: NDArray[np.float64] | None,
    values: NDArray[np.float64],
) -> tuple[int, int]: ...
