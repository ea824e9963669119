"""Margin of projections over thresholds, of PRank, its ensembles and kernel forms."""

from __future__ import annotations

from typing import Any, ClassVar

from rankcore._core.concurrency import reads
from rankcore._core.model_spec import Specified
from rankcore._core.state import OnlineState


class WithMargin(Specified):
    """A learner whose thresholds have a margin. Not public.

    Attributes
    ----------
    margin_ : float
        The resolved ``margin``.
    """

    _since: ClassVar = {"margin": 0.0}

    @property
    @reads
    def margin_(self) -> float:
        """The resolved ``margin``, in units of the projections."""
        return margin_of(self._fitted_state())


def margin_of(state: OnlineState) -> float:
    return float(state.others["margin"][0])


def moves_of(state: OnlineState, examples: Any, mistakes: Any) -> tuple[Any, Any]:
    """Examples, and how many of them may have moved thresholds: with a margin all."""
    return examples, examples if margin_of(state) else mistakes
