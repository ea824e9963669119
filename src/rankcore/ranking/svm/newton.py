"""Newton's method for ranking SVMs, in the space of the model.

The objective is |w|^2 / 2 + loss(scores of w). Its curvature is at least 1 in every direction, so
that half the squared norm of its gradient bounds its distance above the minimum. For the squared
hinge this is exactly the duality gap with the dual variables alpha = 2 C max(0, 1 - d) of the
pairs. The hinge is smoothed, and alpha is minus the slope of the smoothed loss, which is feasible
in the dual of the hinge. Its gap is half the squared norm of the gradient of the smoothed
objective, plus C u (1 - u / width), u = 1 - d, for each pair in the smoothed part (0 < u < width).
Summing these terms would cancel digits; they are replaced by their bound C width / 4, and the
number of such pairs follows from second derivatives. The width decreases with the gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankcore._core.equal_rows import EQUAL_WITHIN_QUERIES
from rankcore._core.monitor import Monitor
from rankcore._core.numbers import Floats
from rankcore._core.sources import Window
from rankcore._core.training import Learner
from rankcore.progress import Progress, report
from rankcore.ranking.svm.losses import Evaluation, Terms

Solve = Callable[[Floats], Floats]

# A step is long enough when the slope along it falls to this share of the initial slope.
FLAT = 0.1
# Share of an objective, a sum of many numbers, that may be due to rounding.
ROUNDING = 1e-14
# Maximum evaluations along a step, and products with second derivatives per step.
MOST_TRIALS, MOST_PRODUCTS = 40, 300
# Initial width of the smoothed hinge, and the share of the gap at which it is halved.
FIRST_WIDTH, WORTH = 1.0, 0.3
# Below this width the sums of the smoothed hinge have no significant digits.
LEAST_WIDTH = 1e-12


class Space(ABC):
    """Space of models: elements are arrays that can be added and multiplied by numbers."""

    weight: float  # of all pairs: C times this is the loss of zero scores

    @abstractmethod
    def zero(self) -> Floats:
        """Return the element with zero scores."""

    @abstractmethod
    def dot(self, u: Floats, v: Floats) -> float:
        """Return the inner product."""

    @abstractmethod
    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """Return the loss at an element, and the gradient of the objective as an element."""

    @abstractmethod
    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """Return the loss at given scores."""

    @abstractmethod
    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Return the scores of an element, and the second derivatives of the loss times it."""

    def preconditioner(self, at: Evaluation, products: int) -> Solve | None:
        """Return the approximate inverse of 1 + second derivatives; None if not worthwhile.

        ``products`` is the number of products in the last step, with the previous preconditioner.
        """
        return None


class Goal(NamedTuple):
    """Parameters of an estimator that steps use."""

    C: float
    loss: str
    tol: float
    max_iter: int


@dataclass(frozen=True)
class _Gap:
    objective: float  # |w|^2 / 2 + loss, of the chosen loss
    gap: float  # upper bound of the objective's distance above its minimum

    @property
    def share(self) -> float:
        """The gap as a fraction of the objective; 0 if the losses underflow."""
        return self.gap / self.objective if self.gap > 0.0 else 0.0


@dataclass(frozen=True)
class Step(_Gap):
    """Result of a step."""

    gradient_norm: float  # of the minimised function
    width: float  # of the smoothed hinge; 0 for the squared hinge
    products: int  # products with second derivatives in the step


@dataclass(frozen=True)
class Solution(_Gap):
    """The best element found."""

    w: Floats
    n_iter: int  # number of steps
    # {"converged", "stopped", "max_iter", "precision"}: the gap is small enough, the caller
    # stopped, the maximum number of steps was reached, or float64 allows no further improvement.
    outcome: str


def minimise(
    steps: Generator[tuple[Floats, Step], bool | None, Solution],
    watch: Callable[[Floats, Step], None] | None = None,
) -> Solution:
    """Run all steps of `newton_steps`; call ``watch`` with each element and its statistics."""
    while True:
        try:
            w, step = next(steps)
        except StopIteration as end:
            return end.value
        if watch is not None:
            watch(w, step)


def newton_steps(
    model: Any, space: Space, start: Floats
) -> Generator[tuple[Floats, Step], bool | None, Solution]:
    """Minimise |w|^2 / 2 + C * loss until the gap is at most ``tol`` of this objective.

    It must also be at most ``tol`` times the objective's decrease from w = 0: with features of a
    small scale the minimum is close to w = 0, and so is its objective, but not the order of its
    scores. The decrease is at least |w|^2 / 2, which has more digits if it is small.

    C, loss, ``tol`` and ``max_iter`` are those of an estimator, or of a `Goal`. Yields the element
    after each step and its statistics; send True to stop. Returns the solution.
    """
    C, tol, max_iter = model.C, model.tol, int(model.max_iter)
    hinge = model.loss == "hinge"
    width = FIRST_WIDTH if hinge else 0.0
    w = best = start
    lowest = norm = value = np.inf
    dual, least = -np.inf, 0.0
    products = steps = 0
    first_norm = 0.0
    stuck = moved = False
    while True:
        terms = Terms.smooth_hinge(C, width) if hinge else Terms.squared_hinge(C)
        at, gradient = space.evaluate(w, terms)
        square = max(space.dot(gradient, gradient), 0.0)
        length = space.dot(w, w)
        gap, objective = 0.5 * square, 0.5 * length + at.loss
        if hinge:
            objective = 0.5 * length + C * float(at.sums[0, 0])
            # Each pair in the smoothed part contributes 2 C / width to the trace.
            gap += 0.125 * width**2 * at.trace
            dual = max(dual, objective - gap)
        if objective <= lowest * (1.0 + ROUNDING):
            best, lowest, least = w, min(lowest, objective), 0.5 * length
        if hinge and lowest - dual > ROUNDING * lowest:
            gap = lowest - dual
        enough = tol * min(lowest, max(least, C * space.weight - lowest))
        # A step that reduces neither the objective nor the gradient has reached the precision of
        # float64.
        last_norm, last_value = norm, value
        norm, value = float(np.sqrt(square)), 0.5 * length + at.loss
        stuck |= moved and value >= last_value and norm >= 0.5 * last_norm
        stop = moved and (yield w, Step(objective, gap, norm, width, products))
        moved = False
        if gap <= enough:
            return Solution(lowest, gap, best, steps, "converged")
        if stop:
            return Solution(lowest, gap, best, steps, "stopped")
        if hinge and width > LEAST_WIDTH:
            rounding = objective - dual - 0.5 * square
            if stuck or 0.5 * square <= WORTH * rounding:
                wanted = np.sqrt(0.5 * tol * objective / max(rounding, 1e-300))
                width *= min(max(float(wanted), 0.1), 0.5)
                stuck, value = False, np.inf
                continue
        if stuck or steps == max_iter:
            ended = "precision" if stuck else "max_iter"
            return Solution(lowest, gap, best, steps, "converged" if gap <= tol * lowest else ended)
        first_norm = max(first_norm, norm)
        solve = space.preconditioner(at, products)
        p, ray, products = _direction(space, at, gradient, norm / first_norm, solve)
        t = _step_length(space, at, ray, space.dot(w, p), space.dot(p, p), length)
        steps += 1
        stuck, moved = t == 0.0, True
        if not stuck:
            w = w + t * p


def _direction(
    space: Space, at: Evaluation, gradient: Floats, progress: float, solve: Solve | None
) -> tuple[Floats, Floats, int]:
    """Solve (1 + second derivatives) p = -gradient by conjugate gradients.

    Returns p, its scores, and the number of products with the second derivatives.
    """
    p = np.zeros_like(gradient)
    scores = np.zeros_like(at.scores)
    r = -gradient
    z = r if solve is None else solve(r)
    d = z.copy()
    rz = space.dot(r, z)
    enough = min(0.1, progress**0.5) ** 2 * rz
    products = 0
    while products < MOST_PRODUCTS and rz > enough:
        scores_of_d, curved = space.curve(d, at)
        curved += d
        products += 1
        bend = space.dot(d, curved)
        if not bend > 0.0:  # rounding errors dominate
            break
        a = rz / bend
        p += a * d
        scores += a * scores_of_d
        r = r - a * curved
        z = r if solve is None else solve(r)
        before, rz = rz, space.dot(r, z)
        d = z + (rz / before) * d
    return p, scores, products


def _step_length(
    space: Space, at: Evaluation, ray: Floats, wp: float, pp: float, ww: float
) -> float:
    """Return the length of a step, at which the slope nearly vanishes.

    The slope along a ray is increasing and piecewise linear, so that the secant method finds its
    root in few evaluations; each costs a pass over the scores. 0 if there is no descent in float64.
    """
    start = wp + float(at.slopes @ ray)
    if not start < 0.0:
        return 0.0
    value = 0.5 * ww + at.loss

    def look(t: float) -> tuple[float, float]:
        evaluation = space.along(at.scores + t * ray, at.terms)
        return (
            0.5 * ww + t * wp + 0.5 * t * t * pp + evaluation.loss,
            wp + t * pp + float(evaluation.slopes @ ray),
        )

    low, slope_low = 0.0, start
    high, slope_high = 0.0, 0.0
    t, last = 1.0, 0
    for _ in range(MOST_TRIALS):
        reached, slope = look(t)
        if abs(slope) <= -FLAT * start and reached <= value * (1.0 + ROUNDING):
            return t
        # An end that stays twice in a row gets half its weight (the Illinois rule).
        side = -1 if slope < 0.0 else 1
        if side < 0:
            low, slope_low = t, slope
            slope_high *= 0.5 if last == side else 1.0
        else:
            high, slope_high = t, slope
            slope_low *= 0.5 if last == side else 1.0
        last = side
        if not high:
            t = 2.0 * t
            continue
        t = low - slope_low * (high - low) / (slope_high - slope_low)
        if not low < t < high:
            break
    return low


class NewtonLearner(Learner):
    """Learner of ranking SVMs by the steps of `newton_steps`.

    ``problem`` converts elements to models; ``tied``: whether compared rows are equal.
    """

    def __init__(
        self,
        fitted: Any,
        problem: Any,
        steps: Generator[tuple[Floats, Step], bool | None, Solution],
        monitor: Monitor,
        tied: bool,
    ) -> None:
        self.fitted, self.n_iterations = fitted, int(fitted.max_iter)
        self._problem, self._steps, self._tied = problem, steps, tied
        self._solution: Solution | None = None
        self._stopped = True
        self.monitor = monitor

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """Implement `Learner.learn`."""
        try:
            w, step = next(self._steps)
        except StopIteration as end:
            self._solution = end.value
            return
        fitted = self.fitted
        fitted._note(step)
        if self.monitor.used:
            fitted._state.model = self._problem.model(w)
            fitted.objective_, fitted.gap_ = step.objective, step.share
            fitted.n_iter_ = number
        self._step = step
        report(Progress(number, self.n_iterations, 1, 1, step.share, "gap", "steps"))

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """Implement `Learner.outputs`."""
        return [self.fitted._scores(rows.rows, rows.queries) for rows in held_out]

    def idle(self) -> str | None:
        """Implement `Learner.idle`: no scores can differ."""
        return EQUAL_WITHIN_QUERIES if self._tied else None

    def line(self, number: int) -> str:
        """Implement `Learner.line`."""
        return step_line(self.fitted, number, self._step)

    def exhausted(self) -> None:
        """Implement `Learner.exhausted`: as reported by the solution."""
        self._stopped = False

    def solution(self) -> Solution:
        """Return the best element, and end the steps."""
        if self._solution is None:
            try:
                self._steps.send(self._stopped)
            except StopIteration as end:
                self._solution = end.value
        assert self._solution is not None
        return self._solution


def step_line(model: Any, number: int, step: Step) -> str:
    """Format a line for ``verbose``."""
    return (
        f"C={model.C:g}, step {number}: objective {step.objective:.8g}, "
        f"at most {step.share:.1e} of it above the minimum"
    )
