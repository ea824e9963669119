from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

ENTRIES_KEPT: int

@final
class Columns:
    def __init__(
        self,
        n_rows: int,
        codes: NDArray[np.uint8] | NDArray[np.int32],
        n_bins: NDArray[np.int32],
        zero_bin: NDArray[np.int32],
        has_missing: NDArray[np.uint8],
        bounds: NDArray[np.int64] | None = None,
        rows: NDArray[np.int32] | None = None,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def capsule(self) -> Any: ...

def count(rows: Rows, taken: NDArray[np.int64], counts: NDArray[np.int64]) -> None: ...
def gather(
    rows: Rows,
    taken: NDArray[np.int64],
    first: int,
    last: int,
    cursors: NDArray[np.int64],
    values: NDArray[np.float64],
    places: NDArray[np.int32] | None,
) -> None: ...
def encode(
    values: NDArray[np.float64],
    ascending: NDArray[np.float64],
    bounds: NDArray[np.int64],
    n_rows: int,
    max_bins: int,
    zero_missing: bool,
    cuts: NDArray[np.float64],
    codes: NDArray[np.uint8] | NDArray[np.int32],
    n_bins: NDArray[np.int32],
    zero_bin: NDArray[np.int32],
    has_missing: NDArray[np.uint8],
    thresholds: NDArray[np.float64],
    places: NDArray[np.int64],
) -> int: ...
def threshold(
    columns: Columns, rows: Rows, taken: NDArray[np.int64], feature: int, bin: int
) -> float: ...
