"""Maximum a posteriori fit of Bradley-Terry models, with Laplace's approximation.

A row compares item u with item v. Its utility is x = a (theta_u - theta_v + b s + g z): a is the
reliability of its judge, b the bias for the item shown first (s = 1 if that is u, else -1), and g
the effects of covariates z. Item u wins with probability e^(x/2) / Z, item v with e^(-x/2) / Z.
Without a model of ties Z is the sum of both, and a tie counts half for each; with Davidson's, a tie
has probability nu / Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import block_array, csr_array, diags_array
from scipy.sparse.linalg import LinearOperator, cg

from rankcore._core.numbers import Floats
from rankcore.preference.forms import Places

# Up to this many items the second derivative is a dense matrix; up to the second number its
# inverse is computed.
_DENSE, _EXACT = 1500, 4000
# Prior standard deviation of the logarithm of nu, and of reliabilities, around 1.
_TIE_SCALE, _RELIABILITY_SCALE = 10.0, 1.0
_ROUNDS = 50


@dataclass
class Comparisons:
    """Rows of comparisons between n items."""

    n: int
    first: Places
    second: Places
    degree: Floats  # 1 if the first item won
    weight: Floats
    tie: Floats | None = None  # fraction of the weight that is ties; None: a tie counts half
    shown: Floats | None = None  # 1 if the first item was shown first, else -1
    covariates: Floats | None = None  # (m, c)
    judge: Places | None = None
    n_judges: int = 1

    def merged(self) -> Comparisons:
        """Return one row for each pair, judge and order shown, if no covariates tell them apart."""
        if self.covariates is not None:
            return self
        swap = self.first > self.second
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        won = self.weight * np.where(swap, 1 - self.degree, self.degree)
        columns, sizes = [low, high], [self.n, self.n]
        if self.judge is not None:
            columns, sizes = [*columns, self.judge], [*sizes, self.n_judges]
        if self.shown is not None:
            low_first = np.where(swap, -self.shown, self.shown) > 0
            columns, sizes = [*columns, low_first.astype(np.intp)], [*sizes, 2]
        group = np.ravel_multi_index(tuple(columns), sizes)
        kept: Any = slice(None)
        if np.prod(sizes, dtype=np.float64) <= 8 * group.size:  # faster than sorting
            kept = distinct = np.flatnonzero(np.bincount(group))
        else:
            distinct, group = np.unique(group, return_inverse=True)

        def total(values: Floats) -> Floats:
            return np.asarray(np.bincount(group, values)[kept], dtype=np.float64)

        weight = total(self.weight)
        safe = np.where(weight > 0, weight, 1.0)
        first, second, *others = np.unravel_index(distinct, sizes)
        return Comparisons(
            self.n,
            first,
            second,
            total(won) / safe,
            weight,
            tie=None if self.tie is None else total(self.weight * self.tie) / safe,
            shown=None if self.shown is None else np.where(others[-1], 1.0, -1.0),
            judge=None if self.judge is None else others[0],
            n_judges=self.n_judges,
        )


@dataclass
class Posterior:
    """Mode of the posterior, with its second derivative."""

    parameters: Floats
    slopes: Floats  # a of each judge
    _problem: _Problem

    @property
    def theta(self) -> Floats:
        """Strengths of the items."""
        return self.parameters[: self._problem.rows.n]

    def bias(self) -> float | None:
        """Return the position bias b; None if the order shown is not known."""
        problem = self._problem
        return None if problem.rows.shown is None else float(self.parameters[problem.rows.n])

    def effects(self) -> tuple[Floats, Floats]:
        """Return the effects of the covariates, and their standard errors."""
        n, problem = self._problem.rows.n, self._problem
        c = 0 if problem.rows.covariates is None else problem.rows.covariates.shape[1]
        start = n + (problem.rows.shown is not None)
        if c == 0:
            return np.empty(0), np.empty(0)
        second, errors = self._problem.second(self.parameters), []
        for column in range(start, start + c):
            unit = np.zeros(self.parameters.size)
            unit[column] = 1.0
            errors.append(_solve(second, unit, 1e-10)[column] ** 0.5)
        return self.parameters[start : start + c], np.array(errors)

    def tie_probability(self) -> float | None:
        """Return the probability of a tie between equal items; None without a model of ties."""
        if self._problem.rows.tie is None:
            return None
        nu = float(np.exp(self.parameters[-1]))
        return nu / (2 + nu)

    @cached_property
    def _covariance(self) -> Floats:
        second = self._problem.second(self.parameters)
        dense = second if isinstance(second, np.ndarray) else second.toarray()
        inverse = cho_solve(cho_factor(dense, overwrite_a=True), np.eye(len(dense)))
        n = self._problem.rows.n
        return np.asarray(inverse[:n, :n])

    def standard_errors(self) -> Floats:
        """Return the standard errors about the mean; above 4,000 items estimated from 200 draws."""
        if self.theta.size <= _EXACT:
            covariance = self._covariance
            mean = covariance.mean(axis=0)
            return np.sqrt(np.maximum(np.diagonal(covariance) - 2 * mean + mean.mean(), 0.0))
        draws = self.draws(200, np.random.default_rng(0))
        return np.asarray((draws - draws.mean(axis=1, keepdims=True)).std(axis=0))

    def draws(self, n_draws: int, rng: np.random.Generator) -> Floats:
        """Return draws of the strengths, shape (draws, n); at most 200 above 4,000 items."""
        n = self.theta.size
        if n <= _EXACT:
            root = np.linalg.cholesky(self._covariance)
            return self.theta + rng.standard_normal((n_draws, n)) @ root.T
        # A solution for a right-hand side with the second derivative as its covariance.
        second = self._problem.second(self.parameters)
        steps = [
            _solve(second, self._problem.noise(self.parameters, rng), 1e-3)[:n]
            for _ in range(min(n_draws, 200))
        ]
        return self.theta + np.array(steps)


def fit(rows: Comparisons, *, scale: float, tolerance: float = 1e-9) -> Posterior:
    """Return the posterior mode; strengths, bias and effects have the prior N(0, scale^2).

    Reliabilities of several judges, N(1, 1), are fitted in turn with the rest. ``tolerance`` bounds
    the last step.
    """
    slopes = np.ones(rows.n_judges)
    problem = _Problem(rows, scale, slopes)
    parameters = np.zeros(problem.precision.size)
    total = np.bincount(rows.first, rows.weight, rows.n)
    total += np.bincount(rows.second, rows.weight, rows.n)
    won = np.bincount(rows.first, rows.weight * rows.degree, rows.n)
    won += np.bincount(rows.second, rows.weight * (1 - rows.degree), rows.n)
    parameters[: rows.n] = np.log((won + 1) / (total - won + 1))
    parameters = problem.maximum(parameters, tolerance)
    if rows.n_judges > 1:
        for _ in range(_ROUNDS):
            before, slopes = slopes, problem.reliabilities(parameters)
            problem = _Problem(rows, scale, slopes)
            parameters = problem.maximum(parameters, tolerance)
            if np.abs(slopes - before).max() < 1e-5:
                break
    return Posterior(parameters, slopes, problem)


def right_minus_wrong(
    strengths: Floats, slopes: Floats, n_pairs: int, rng: np.random.Generator
) -> Floats:
    """Return the fraction of right minus wrong answers about random pairs.

    ``strengths`` are draws, shape (draws, n); ``slopes`` are the factors of judges, shape (draws,
    judges), as is the result.
    """
    n = strengths.shape[1]
    if n < 2:
        return np.ones(slopes.shape)
    i = rng.integers(0, n, n_pairs)
    j = (i + rng.integers(1, n, n_pairs)) % n
    apart = np.abs(strengths[:, i] - strengths[:, j])
    return np.asarray(np.tanh(slopes[:, :, None] * apart[:, None, :] / 2).mean(axis=2))


@dataclass(frozen=True)
class _Outcomes:
    """Outcomes of comparisons by the model."""

    utility: Floats  # of the first item, minus that of the second
    log_z: Floats  # logarithm of the normaliser of the probabilities
    win: Floats  # probability that the first item wins
    loss: Floats  # that the second does


class _Problem:
    """Posterior of strengths and effects, given reliabilities."""

    def __init__(self, rows: Comparisons, scale: float, slopes: Floats):
        self.rows, self._slopes = rows, slopes
        m, n = rows.first.size, rows.n
        columns = []
        if rows.shown is not None:
            columns.append(rows.shown)
        if rows.covariates is not None:
            columns.extend(rows.covariates.T)
        self._columns = np.array(columns).reshape(len(columns), m)  # (q, m)
        self._slope = np.ones(m) if rows.judge is None else slopes[rows.judge]
        self._ties = rows.tie is not None
        precision = np.full(n + len(columns) + self._ties, 1 / scale**2)
        if self._ties:
            precision[-1] = 1 / _TIE_SCALE**2
        self.precision = precision
        self._last: tuple[Floats, _Outcomes] | None = None  # parameters and their outcomes

    def _utility(self, parameters: Floats) -> Floats:
        """Return the utilities before the factor of the judge."""
        rows, n = self.rows, self.rows.n
        utility = parameters[rows.first] - parameters[rows.second]
        if len(self._columns):
            utility = utility + parameters[n : n + len(self._columns)] @ self._columns
        return np.asarray(utility)

    def _outcomes(self, parameters: Floats) -> _Outcomes:
        """Return the probable outcomes of the comparisons."""
        if self._last is not None and self._last[0] is parameters:
            return self._last[1]
        x = self._slope * self._utility(parameters)
        high = np.abs(x) / 2
        if self._ties:
            high = np.maximum(high, parameters[-1])
        up, down = np.exp(x / 2 - high), np.exp(-x / 2 - high)
        total = up + down
        if self._ties:
            total = total + np.exp(parameters[-1] - high)
        outcomes = _Outcomes(x, high + np.log(total), up / total, down / total)
        self._last = parameters, outcomes
        return outcomes

    def value(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the negative log-posterior and its gradient."""
        rows = self.rows
        at = self._outcomes(parameters)
        win, loss = at.win, at.loss
        total = float(rows.weight @ (at.log_z - (rows.degree - 0.5) * at.utility))
        steep = rows.weight * self._slope * ((win - loss) / 2 - (rows.degree - 0.5))
        gradient = self._gather(steep, parameters.size)
        if rows.tie is not None:
            total -= parameters[-1] * float(rows.weight @ rows.tie)
            gradient[-1] = float(rows.weight @ (1 - win - loss - rows.tie))
        total += 0.5 * float(parameters @ (self.precision * parameters))
        return total, gradient + self.precision * parameters

    def _gather(self, values: Floats, size: int) -> Floats:
        """Return the derivatives for all parameters, given those for the utilities."""
        n, rows = self.rows.n, self.rows
        derivatives = np.zeros(size)
        derivatives[:n] = np.bincount(rows.first, values, n) - np.bincount(rows.second, values, n)
        derivatives[n : n + len(self._columns)] = self._columns @ values
        return derivatives

    def _curvature(self, at: _Outcomes) -> Floats:
        """Return the second derivatives for the utilities."""
        spread = (at.win + at.loss) / 4 - ((at.win - at.loss) / 2) ** 2
        return np.asarray(self.rows.weight * self._slope**2 * spread)

    def second(self, parameters: Floats) -> Any:
        """Return the second derivative, a sparse matrix for many items."""
        rows, n, size = self.rows, self.rows.n, parameters.size
        at = self._outcomes(parameters)
        curve = self._curvature(at)
        diagonal = np.bincount(rows.first, curve, n) + np.bincount(rows.second, curve, n)
        border = np.zeros((size - n, size))
        for k, column in enumerate(self._columns):
            border[k] = self._gather(curve * column, size)
        if self._ties:
            tied = 1 - at.win - at.loss
            mixed = -rows.weight * self._slope * (at.win - at.loss) / 2 * tied
            border[-1] = self._gather(mixed, size)
            border[:-1, -1] = border[-1, n:-1]
            border[-1, -1] = float(rows.weight @ (tied * (1 - tied)))
        if n <= _DENSE:
            half: Any = np.bincount(rows.first * n + rows.second, curve, n * n).reshape(n, n)
            whole: Any = np.block([[-half - half.T, border[:, :n].T], [border]])
            whole[np.diag_indices(n)] += diagonal
            whole[np.diag_indices(size)] += self.precision
            return whole
        half = csr_array((curve, (rows.first, rows.second)), (n, n))
        whole = csr_array(diags_array(diagonal) - half - half.T)
        if size > n:
            sides = csr_array(border[:, :n])
            whole = block_array([[whole, sides.T], [sides, csr_array(border[:, n:])]])
        return csr_array(whole + diags_array(self.precision))

    def noise(self, parameters: Floats, rng: np.random.Generator) -> Floats:
        """Return a normal vector whose covariance is the second derivative, up to ties."""
        curve = self._curvature(self._outcomes(parameters))
        noise = self._gather(np.sqrt(curve) * rng.standard_normal(curve.size), parameters.size)
        return noise + np.sqrt(self.precision) * rng.standard_normal(parameters.size)

    def maximum(self, parameters: Floats, tolerance: float) -> Floats:
        """Return the mode, by Newton's method with conjugate gradients and step halving."""
        loss, gradient = self.value(parameters)
        for _ in range(100):
            # Exact near the mode, where steps of Newton's method square the error.
            exact = min(1e-3, float(np.abs(gradient / self.precision).max()))
            step = _solve(self.second(parameters), -gradient, max(exact, 1e-10))
            slope, size = float(gradient @ step), 1.0
            while True:
                tried = parameters + size * step
                value = self.value(tried)
                if value[0] <= loss + 1e-4 * size * slope + 1e-12 * abs(loss) or size < 1e-6:
                    break
                size /= 2
            parameters, (loss, gradient) = tried, value
            if size * np.abs(step).max() < tolerance or size < 1e-6:
                break
        return parameters

    def reliabilities(self, parameters: Floats) -> Floats:
        """Return the most probable factor of each judge, given the rest, by Newton's method."""
        rows, utility, slopes = self.rows, self._utility(parameters), self._slopes.copy()
        assert rows.judge is not None
        for _ in range(50):
            self._slope, self._last = slopes[rows.judge], None
            at = self._outcomes(parameters)
            win, loss = at.win, at.loss
            lean = (win - loss) / 2
            gradient = rows.weight * utility * (lean - (rows.degree - 0.5))
            curve = rows.weight * utility**2 * ((win + loss) / 4 - lean**2)
            total: Any = np.bincount(rows.judge, gradient, slopes.size)
            total = total + (slopes - 1) / _RELIABILITY_SCALE**2
            curvature = np.bincount(rows.judge, curve, slopes.size) + 1 / _RELIABILITY_SCALE**2
            step = np.clip(total / curvature, -0.5, 0.5)
            slopes = slopes - step
            if np.abs(step).max() < 1e-10:
                break
        return slopes


def _solve(matrix: Any, right: Floats, tolerance: float) -> Floats:
    """Return the solution by conjugate gradients, preconditioned by the diagonal."""
    inverse = 1 / matrix.diagonal()
    scaling = LinearOperator(matrix.shape, lambda v: inverse * v.ravel(), dtype=np.float64)
    iterations = 10 * right.size + 100
    solution, _ = cg(matrix, right, rtol=tolerance, maxiter=iterations, M=scaling)
    return np.asarray(solution)
