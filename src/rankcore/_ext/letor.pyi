import numpy as np
from numpy.typing import NDArray

def parse(
    text: bytes | memoryview,
    name: str,
    first_line: int,
    first_number: int,
    zero_allowed: bool,
    nan_allowed: bool,
    inf_allowed: bool,
    labels: NDArray[np.float64],
    ends: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32] | NDArray[np.float64],
    runs: NDArray[np.int64],
    comments: NDArray[np.int64] | None,
) -> tuple[int, int, int, bool, int, bool, int, int]: ...
def scatter(
    ends: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32] | NDArray[np.float64],
    start: int,
    shift: int,
    out: NDArray[np.float32] | NDArray[np.float64],
) -> None: ...
