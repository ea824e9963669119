"""The margin by which projections must beat thresholds, of PRank and what is made of it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from rankcore._core.concurrency import reads
from rankcore._core.docs import parameters
from rankcore._core.model_spec import Specified
from rankcore._core.params import Constraint, option
from rankcore._core.state import OnlineState
from rankcore.ordinal._scale import MARGIN, SCALE


@parameters
class WithMargin(Specified):
    """A learner whose thresholds have a margin. Not public.

    Parameters
    ----------
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection that hits a threshold below its true rank exactly moves that threshold
        (the paper's rule, and what happens on the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Equivalent to a constant feature of this value behind the thresholds: these live on the
        multiples of its square. "auto" takes twice the root mean square length of the rows of the
        first call, so that thresholds keep up with projections whatever the scale and the number
        of features; the square is rounded to a power of two. The paper has 1.
    margin : float or "auto", default=0.0
        By how much a projection must be on the right side of a threshold: one that it does not beat
        by this moves, though the row may be ranked rightly. "auto" takes twice the mean squared
        length of the rows of the first call, rounded to a power of two, which is what two updates
        with a row move its projection by. The paper has 0.

    Attributes
    ----------
    margin_ : float
        The resolved ``margin``.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "margin": MARGIN,
        "threshold_scale": SCALE,
        "tie": option("crammer", "strict"),
    }
    _since: ClassVar = {"margin": 0.0}

    tie: Literal["crammer", "strict"] = "crammer"
    threshold_scale: float | str = "auto"
    margin: float | str = 0.0

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
