"""Learners with intercepts: the weights of a constant feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankcore._core.state import OnlineState
from rankcore.ordinal._base import OnlineOrdinalClassifier, Zeros
from rankcore.ordinal._scale import check_known_scale, new_scale, scale_setting


class InterceptClassifier(OnlineOrdinalClassifier):
    """A learner with intercepts, whose steps a weight multiplies. Not public."""

    _weighs_steps = True
    fit_intercept: bool
    intercept_scaling: float | str

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {
            "average": bool(self.average),
            "fit_intercept": bool(self.fit_intercept),
            "intercept_scaling": scale_setting(self.intercept_scaling),
        }

    def _other_arrays(self, n_ranks: int, zeros: Zeros) -> dict[str, np.ndarray]:
        scale = new_scale(self.intercept_scaling) if self.fit_intercept else np.zeros(1)
        return {"scale": scale}

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        super()._check_state(state, n_ranks)
        if state.settings["fit_intercept"]:
            check_known_scale(state, state.settings["intercept_scaling"])
        elif state.others["scale"][0] != 0:
            raise ValueError("it has a scale of intercepts, and no intercepts")
