"""Newton's method for ranking SVMs, in whatever space the model lives in.

The objective is |w|^2 / 2 + loss(scores of w). Its curvature is at least 1 in every direction, so
that half the squared length of its gradient is no less than what it lies above its minimum. It is
exactly the gap to the dual objective at the dual variables that follow from the scores, for the
squared hinge: alpha = 2 C max(0, 1 - d) for each pair. For the hinge, the method minimises it with
its kink rounded off, and alpha is the slope of the rounded loss: a feasible point of the dual of
the hinge itself. Its gap is half the squared length of the gradient of the rounded objective, plus
C u (1 - u / width), u = 1 - d, for each pair where the loss is rounded (0 < u < width). A sum of
these would be a difference that cancels, so that C width / 4 stands for each: second derivatives
count such pairs. The width follows the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankcore._core.numbers import Floats
from rankcore.ranking.svm._losses import Evaluation, Terms

Solve = Callable[[Floats], Floats]

# Length of the slope along a step, relative to where it began, at which the step is long enough.
FLAT = 0.1
# Share of an objective, a sum of many numbers, that rounding may add.
ROUNDING = 1e-14
# Evaluations along a step, and products with second derivatives for one step.
MOST_TRIALS, MOST_PRODUCTS = 40, 300
# The first width of the rounding of the hinge, and its share of the gap that is worth halving.
FIRST_WIDTH, WORTH = 1.0, 0.3
# Below this width the sums of the rounded hinge have no digits left.
LEAST_WIDTH = 1e-12


class Space(Protocol):
    """Where a model lives: elements are arrays, which may be added and multiplied by numbers."""

    def zero(self) -> Floats:
        """The element of zero scores."""

    def dot(self, u: Floats, v: Floats) -> float:
        """Inner product."""

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """The loss at an element, and its gradient as an element."""

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """The loss at scores."""

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Scores of an element, and the second derivatives of the loss times the element."""

    def preconditioner(self, at: Evaluation, products: int) -> Solve | None:
        """An approximate inverse of 1 + second derivatives; None if none pays.

        ``products`` is how many the last step took with the one before.
        """


class Goal(NamedTuple):
    """Parameters of an estimator that steps look at."""

    C: float
    loss: str
    tol: float
    max_iter: int


@dataclass(frozen=True)
class _Gap:
    objective: float  # |w|^2 / 2 + loss, of the chosen loss
    gap: float  # no less than what the objective lies above its minimum

    @property
    def share(self) -> float:
        """The gap as a share of the objective; 0 if float64 takes the losses for 0."""
        return self.gap / self.objective if self.gap > 0.0 else 0.0


@dataclass(frozen=True)
class Step(_Gap):
    """Where a step led."""

    gradient_norm: float  # of what is minimised
    width: float  # of the rounding of the hinge; 0 for the squared hinge
    products: int  # products with second derivatives that the step took


@dataclass(frozen=True)
class Solution(_Gap):
    """The best element that was found."""

    w: Floats
    n_iter: int  # steps taken
    # {"converged", "stopped", "max_iter", "precision"}: whether the gap is small enough, the caller
    # stopped, there were no steps left, or float64 has no digits left to improve.
    outcome: str


def minimise(
    steps: Generator[tuple[Floats, Step], bool | None, Solution],
    watch: Callable[[Floats, Step], None] | None = None,
) -> Solution:
    """Take all steps of `newton_steps`; ``watch`` gets each element and its figures."""
    while True:
        try:
            w, step = next(steps)
        except StopIteration as end:
            solution: Solution = end.value
            return solution
        if watch is not None:
            watch(w, step)


def newton_steps(
    model: Any, space: Space, start: Floats
) -> Generator[tuple[Floats, Step], bool | None, Solution]:
    """Minimise |w|^2 / 2 + C * loss until the gap is at most the share ``tol`` of it.

    C, loss, ``tol`` and ``max_iter`` are those of an estimator, or of a `Goal`.

    Yields the element after each step and its figures; send True to stop. Returns the solution.
    """
    C, tol, max_iter = model.C, model.tol, int(model.max_iter)
    hinge = model.loss == "hinge"
    width = FIRST_WIDTH if hinge else 0.0
    w, best, lowest, dual = start, start, np.inf, -np.inf
    products, steps, first_norm, norm, value = 0, 0, 0.0, np.inf, np.inf
    stuck = moved = False
    while True:
        terms = Terms.smooth_hinge(C, width) if hinge else Terms.squared_hinge(C)
        at, gradient = space.evaluate(w, terms)
        square = max(space.dot(gradient, gradient), 0.0)
        length = space.dot(w, w)
        if hinge:
            objective = 0.5 * length + C * float(at.sums[0, 0])
            # Of the trace each pair that is rounded has 2 C / width.
            dual = max(dual, objective - 0.5 * square - 0.125 * width**2 * at.trace)
        else:
            objective = 0.5 * length + at.loss
        if objective < lowest:
            best, lowest = w, objective
        gap = max(lowest - dual, 0.0) if hinge else 0.5 * square
        # A step that neither descends nor flattens has met the digits of float64.
        last_norm, last_value = norm, value
        norm, value = float(np.sqrt(square)), 0.5 * length + at.loss
        stuck |= moved and value >= last_value and norm >= 0.5 * last_norm
        stop = moved and (yield w, Step(objective, gap, norm, width, products))
        moved = False
        if gap <= tol * lowest:
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
            return Solution(lowest, gap, best, steps, "precision" if stuck else "max_iter")
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
    """Conjugate gradients on (1 + second derivatives) p = -gradient.

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
        of_d, curved = space.curve(d, at)
        curved += d
        products += 1
        bend = space.dot(d, curved)
        if not bend > 0.0:  # no digits left
            break
        a = rz / bend
        p += a * d
        scores += a * of_d
        r = r - a * curved
        z = r if solve is None else solve(r)
        before, rz = rz, space.dot(r, z)
        d = z + (rz / before) * d
    return p, scores, products


def _step_length(
    space: Space, at: Evaluation, ray: Floats, wp: float, pp: float, ww: float
) -> float:
    """How far to go along a step: to where the slope is next to nothing.

    The slope along a ray ascends piece by piece in straight lines, so that a secant finds its root
    in few evaluations; each costs a walk over the scores. 0 if float64 sees no way down.
    """
    start = wp + float(at.slopes @ ray)
    if not start < 0.0:
        return 0.0
    value = 0.5 * ww + at.loss

    def look(t: float) -> tuple[float, float]:
        found = space.along(at.scores + t * ray, at.terms)
        return (
            0.5 * ww + t * wp + 0.5 * t * t * pp + found.loss,
            wp + t * pp + float(found.slopes @ ray),
        )

    low, slope_low, high, slope_high = 0.0, start, 0.0, 0.0
    t, last = 1.0, 0
    for _ in range(MOST_TRIALS):
        reached, slope = look(t)
        if abs(slope) <= -FLAT * start and reached <= value * (1.0 + ROUNDING):
            return t
        # The end that stays twice in a row loses half its pull (the Illinois rule).
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
