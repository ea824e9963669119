from typing import Any, final

import numpy as np
from numpy.typing import NDArray

@final
class Mean:
    def __init__(
        self,
        weights: NDArray[np.float64],
        totals: NDArray[np.int64],
        thresholds: NDArray[np.float64],
        moved: NDArray[np.int32],
        scale: float,
        n_members: int,
    ) -> None: ...
    @property
    def capsule(self) -> Any: ...
