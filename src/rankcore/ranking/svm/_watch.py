"""What happens after each step of a fit: figures, held-out rows, callbacks."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.progress import Progress, report
from rankcore.ranking._base import Validation
from rankcore.ranking.svm._newton import Step
from rankcore.ranking.svm._problems import Problem


class Watch:
    """Keeps the history of a model that is being fitted, and shows the model to who asked.

    Parameters
    ----------
    shadow : RankSVM
        What the estimator will be if all goes well.
    problem : Problem
    validation : Validation or None
    callbacks : list of callables
    begin : float
        When the fit began, by `time.perf_counter`.
    """

    def __init__(
        self,
        shadow: Any,
        problem: Problem,
        validation: Validation | None,
        callbacks: list[Callable[[Any], Any]],
        begin: float,
    ) -> None:
        self._shadow, self._problem, self._validation = shadow, problem, validation
        self._callbacks, self._begin = callbacks, begin
        if validation is not None:
            shadow._history[shadow._metric_name()] = []

    def __call__(self, w: NDArray[np.float64], step: Step) -> bool:
        model, history = self._shadow, self._shadow._history
        model._note(step, perf_counter() - self._begin)
        share = history["gap"][-1]
        if self._validation is not None or self._callbacks:
            model._state = self._problem.model(w)
            model.objective_, model.gap_ = step.objective, share
            model.n_iter_ = len(history["objective"])
        text = ""
        if self._validation is not None:
            name = model._metric_name()
            scores = model._scores(self._validation.rows, self._validation.queries)
            history[name].append(self._validation.measure(scores))
            text = f", {name} {history[name][-1]:.4f}"
        n = len(history["objective"])
        report(Progress(n, int(model.max_iter), 1, 1, share, "gap", "steps"))
        if model.verbose:
            print(
                f"[{type(model).__name__}] step {n}: objective {step.objective:.8g}, at most "
                f"{share:.1e} of it above the minimum{text}"
            )
        return any([bool(callback(copy(model))) for callback in self._callbacks])
