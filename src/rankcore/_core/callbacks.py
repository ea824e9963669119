"""Arguments of callbacks, and callbacks with special treatment in a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankcore._core.params import check_count

if TYPE_CHECKING:
    from rankcore._core.sources import Position


@dataclass(frozen=True)
class Result:
    """The latest value of a measure on held-out rows.

    Attributes
    ----------
    value : float
    greater_is_better : bool
        Whether higher values are better; False for losses.
    """

    value: float
    greater_is_better: bool


@dataclass(frozen=True)
class Iteration:
    """State of a fit after a pass, round or step.

    Attributes
    ----------
    number : int
        Number of the completed pass, round or step, from 1.
    results : mapping of str to Result
        Measures on held-out rows after it, by the names in ``history_``.
    model : estimator
        A copy of the current model, for prediction, inspection or saving, not for training. Its
        arrays change when training continues: save it to keep it.
    """

    number: int
    results: Mapping[str, Result]
    model: Any


@dataclass(frozen=True)
class EarlyStopping:
    """End a fit that no longer improves, and keep the model of the best iteration.

    Equivalent to the parameter ``early_stopping_rounds`` of the learners.

    Parameters
    ----------
    rounds : int
        Maximum number of successive iterations without improvement of the first measure on the
        first held-out set.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = np.digitize(X @ [1, 2, 3], [-2, 2])
    >>> model = rc.PRank(max_iter=100, random_state=0)
    >>> stop = rc.callbacks.EarlyStopping(5)
    >>> model = model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]), callbacks=[stop])
    >>> model.n_iter_ == min(model.best_iteration_ + 5, 100)
    True
    """

    rounds: int

    def __post_init__(self) -> None:
        """Raise unless ``rounds`` is a valid number."""
        check_count(self.rounds, "rounds")

    def __call__(self, iteration: Iteration) -> bool:
        """Do nothing: the learner counts iterations, since it keeps the best model."""
        return False


@dataclass(frozen=True)
class Pauses:
    """A callback that saves a resumable fit on rows read in windows."""

    # Function of a fitted estimator, its `Position`, whether the fit was interrupted there
    # (otherwise a pass has just ended), and the fitted estimator of the best pass by held-out rows,
    # or None.
    save: Callable[[Any, Position, bool, Any], None]
    resume: tuple[Any, Position, Any] | None = None  # the arguments of an earlier ``save``

    def __call__(self, iteration: Iteration) -> None:
        """Do nothing: the trainer saves, also within a pass."""
