"""What a fit shows of each step: figures, held-out rows, callbacks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.watch import Watch
from rankcore.progress import Progress, report
from rankcore.ranking.svm._newton import Step
from rankcore.ranking.svm._problems import Problem


class Look:
    """Keeps the log of a model that is being fitted, and makes the model if somebody watches.

    Parameters
    ----------
    problem : Problem
    watch : Watch
    shadow : RankSVM
        What the estimator will be if all goes well.
    """

    def __init__(self, problem: Problem, watch: Watch, shadow: Any) -> None:
        self._problem, self._watch, self._shadow = problem, watch, shadow

    def __call__(self, w: NDArray[np.float64], step: Step) -> bool:
        model, state, watch = self._shadow, self._shadow._state, self._watch
        model._note(step)
        n = len(state.log)
        if watch.used:
            state.model = self._problem.model(w)
            model.objective_, model.gap_, model.n_iter_ = step.objective, step.share, n
        if watch.held_out:
            held_out: list[Any] = watch.held_out
            watch.measure([model._scores(one.rows, one.queries) for one in held_out])
        report(Progress(n, int(model.max_iter), 1, 1, step.share, "gap", "steps"))
        if model.verbose and n % model.verbose == 0:
            print(line(model, n, step) + watch.text())
        return watch.ends(n)


def line(model: Any, n: int, step: Step) -> str:
    """What ``verbose`` prints of a step."""
    return (
        f"[{type(model).__name__}] C={model.C:g}, step {n}: objective {step.objective:.8g}, "
        f"at most {step.share:.1e} of it above the minimum"
    )
