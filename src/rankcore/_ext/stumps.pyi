import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns
from rankcore._ext.rows import Rows

LANES: int
CODES: int

def evaluate(
    columns: Columns,
    potentials: NDArray[np.float64],
    features: NDArray[np.int32],
    scratch: NDArray[np.float64],
    edges: NDArray[np.float64],
    bins: NDArray[np.int32],
    sides: NDArray[np.uint8],
    n_winning: int = 0,
    masses: NDArray[np.float64] | None = None,
) -> None: ...
def mark(columns: Columns, feature: int, bin: int, side: int, fires: NDArray[np.uint8]) -> None: ...
def fire(
    rows: Rows,
    feature: int,
    threshold: float,
    side: int,
    zero_missing: bool,
    fires: NDArray[np.uint8],
) -> None: ...
def score(
    rows: Rows,
    offsets: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    values: NDArray[np.float64],
    missing: NDArray[np.float64],
    at_zero: NDArray[np.float64],
    base: float,
    out: NDArray[np.float64],
) -> None: ...
