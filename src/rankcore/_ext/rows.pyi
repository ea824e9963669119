from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

_Real: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

@final
class Rows:
    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_values(self) -> int: ...
    @property
    def canonical(self) -> bool: ...
    @property
    def columns(self) -> NDArray[np.int32] | None: ...
    @property
    def capsule(self) -> Any: ...

def csr_rows(
    data: _Real,
    indices: NDArray[np.int32],
    indptr: NDArray[np.int64],
    n_features: int,
    name: str,
) -> Rows: ...
def dense_rows(X: _Real, name: str) -> Rows: ...
def project(rows: Rows, weights: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
