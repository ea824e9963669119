"""Maximum a posteriori fit of Bradley-Terry and Plackett-Luce models, with Laplace covariance.

A *choice* is one item named before the others of a set. A comparison is a choice from two items, an
order of k items is a choice from k, then one from the remaining k - 1, and so on. In a choice from
S, item i is named with probability exp(t_i) / sum_{j in S} exp(t_j), where t_i = a (theta_i + b
x_i): a is the reliability of the judge, and b its bias for the item shown first (x_i = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_array

from rankcore._core.numbers import Floats
from rankcore.preference.forms import Places

# Above this many items the second derivative is a sparse matrix.
_DENSE = 400
# Prior standard deviations of the position bias of a judge, and of its log-reliability.
BIAS_SCALE, RELIABILITY_SCALE = 0.5, 0.5
# Prior standard deviation of strengths.
SCALE = 1.5


@dataclass
class Choices:
    """Choices, each of the first item of a row from all items of the row."""

    items: Places  # (m, k): the item that was named first; -1 behind the last item of a smaller set
    # (m,): a degree d is a choice of weight d, and one of the other item with weight 1 - d
    weights: Floats
    # (m,): column of the item that was shown first, -1 if it has been removed
    shown_first: Places | None = None
    judges: Places | None = None  # (m,): numbers of judges; None: one judge
    n_judges: int = 1


def choices_of(
    pairs: Places, degrees: Floats, judges: Places | None = None, n_judges: int = 1
) -> Choices:
    """Pairwise choices from degrees to which the item shown first precedes the other."""
    won, lost = degrees > 0, degrees < 1
    return Choices(
        np.concatenate([pairs[won], pairs[lost, ::-1]]),
        np.concatenate([degrees[won], 1 - degrees[lost]]),
        np.repeat([0, 1], [won.sum(), lost.sum()]),
        None if judges is None else np.concatenate([judges[won], judges[lost]]),
        n_judges,
    )


@dataclass
class Posterior:
    """The mode of the posterior, with its second derivative."""

    theta: Floats
    bias: float  # bias for the first position
    slope: float  # factor of the prior scores
    reliability: Floats  # of each judge
    _problem: _Problem
    _parameters: Floats

    @cached_property
    def _inverted(self) -> tuple[Floats, float]:
        """Inverse of the second derivative, and its log-determinant."""
        matrix = self._problem.second_at(self._parameters).dense()
        factor, info = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if info:
            raise np.linalg.LinAlgError("the second derivative is not positive definite")
        log_determinant = 2 * float(np.log(np.diagonal(factor)).sum())
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        lower = np.tril(inverse)
        return lower + np.tril(lower, -1).T, log_determinant

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of theta = strengths + slope * prior; O(n^3) time, O(n^2) memory."""
        inverse, n, prior = self._inverted[0], self.theta.size, self._problem.prior
        if prior is None:
            return inverse[:n, :n]
        # theta = strengths + slope * prior
        beside = np.outer(inverse[:n, -1], prior)
        own = inverse[-1, -1] * np.outer(prior, prior)
        return np.asarray(inverse[:n, :n] + beside + beside.T + own)

    def log_evidence(self) -> float:
        """Log-evidence of the choices by Laplace's approximation."""
        problem = self._problem
        prior = float(np.log(problem.precision).sum())
        return 0.5 * (prior - self._inverted[1]) - problem.derivatives(self._parameters)[0]

    def precision(self) -> Floats:
        """Diagonal of the second derivative for the strengths."""
        return self._problem.second_at(self._parameters).diagonal[: self.theta.size]

    def variances(self, probes: int) -> Floats:
        """Stochastic estimate of the diagonal of the covariance about the mean, in O(n) memory.

        It is the mean over ``probes`` random sign vectors.
        """
        problem, n = self._problem, self.theta.size
        second = problem.second_at(self._parameters)
        signs = np.zeros((self._parameters.size, probes))
        signs[:n] = np.random.default_rng(0).choice([-1.0, 1.0], (n, probes))
        solved = second.solve(signs, 1e-3)[:n]
        # The inverse of the diagonal is known exactly; only the remainder is estimated.
        near = 1.0 / second.diagonal[:n]
        rest = signs[:n] * (solved - solved.mean(axis=0) - near[:, None] * signs[:n])
        return np.maximum(near + rest.mean(axis=1), near / 2)


def fit_choices(
    n: int,
    choices: Choices,
    *,
    scale: float,
    prior: Floats | None = None,
    start: Posterior | None = None,
    tolerance: float = 1e-9,
) -> Posterior:
    """Posterior mode of the strengths of n items, theta ~ N(slope * prior, scale^2).

    The slope of the ``prior`` scores is learned, with the prior distribution N(1, 1). With several
    judges the reliability of each is learned, in alternation with the strengths. ``start`` is a
    previous fit to fewer choices; ``tolerance`` is the maximum element of the last step.
    """
    n_judges = choices.n_judges
    reliability = np.ones(n_judges) if start is None else start.reliability
    problem = _Problem(n, choices, scale, prior, reliability)
    parameters = problem.mean.copy() if start is None else start._parameters
    turns = 1 if n_judges == 1 else 20
    for turn in range(turns):
        if turn:
            problem = _Problem(n, choices, scale, prior, reliability)
        parameters = problem.maximum(parameters, tolerance)
        if n_judges == 1:
            break
        before, reliability = reliability, problem.reliabilities(parameters)
        if np.abs(reliability - before).max() < 1e-4:
            break
    strengths, bias, slope = problem.parts(parameters)
    return Posterior(strengths, bias, slope, reliability, problem, parameters)


class _Problem:
    """Posterior given choices and reliabilities. Columns are choices here."""

    def __init__(
        self, n: int, choices: Choices, scale: float, prior: Floats | None, reliability: Floats
    ):
        items = np.ascontiguousarray(choices.items.T)
        self.n = n
        self._absent = items < 0
        self._whole = not self._absent.any()
        self._items = items if self._whole else np.where(self._absent, 0, items)
        self._judges = choices.judges
        self._reliability = reliability
        self._sensitivity = (
            np.full(items.shape[1], reliability[0])
            if choices.judges is None
            else reliability[choices.judges]
        )
        self._weights = choices.weights
        self.prior = prior
        self._extra: list[Floats] = []  # factors of the parameters besides strengths
        precision = [np.full(n, 1 / scale**2)]
        self._has_bias = choices.shown_first is not None
        if choices.shown_first is not None:
            rows = np.arange(items.shape[0])[:, None]
            self._extra.append((choices.shown_first == rows).astype(np.float64))
            precision.append(np.array([1 / BIAS_SCALE**2]))
        if prior is not None:
            self._extra.append(prior[self._items])
            precision.append(np.array([1.0]))
        self.precision = np.concatenate(precision)
        self.mean = np.zeros(self.precision.size)
        if prior is not None:
            self.mean[-1] = 1.0
        # The sparsity pattern, and the entry to which each pair of a choice contributes.
        self._pattern: tuple[Places, Places, Places] | None = None
        if n > _DENSE:
            distinct, group = np.unique(self._keys(), return_inverse=True)
            sizes = np.bincount(distinct // n, minlength=n)
            self._pattern = group, distinct % n, np.concatenate([[0], np.cumsum(sizes)])

    def parts(self, parameters: Floats) -> tuple[Floats, float, float]:
        """Strengths, bias and slope."""
        strengths = parameters[: self.n]
        slope = 1.0
        if self.prior is not None:
            slope = float(parameters[-1])
            strengths = strengths + slope * self.prior
        bias = float(parameters[self.n]) if self._has_bias else 0.0
        return strengths, bias, slope

    def maximum(self, parameters: Floats, tolerance: float) -> Floats:
        """Minimise by Newton's method with conjugate gradients and step halving."""
        loss, gradient, p = self.derivatives(parameters)
        for _ in range(100):
            step = self.second(p).solve(-gradient, min(0.1, tolerance**0.5))
            slope = float(gradient @ step)
            size = 1.0
            while True:
                tried = parameters + size * step
                found = self.derivatives(tried)
                if found[0] <= loss + 1e-4 * size * slope or size < 1e-6:
                    break
                size /= 2
            if size < 1e-6:  # rounding prevents further decrease
                return parameters
            parameters, (loss, gradient, p) = tried, found
            if size * np.abs(step).max() < tolerance:
                break
        return parameters

    def derivatives(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        """Negative log posterior, its gradient, and the probabilities of items in each choice."""
        utility = self._sensitivity * self._utility(parameters)
        if not self._whole:
            utility[self._absent] = -np.inf
        utility -= utility.max(axis=0)
        p = np.exp(utility)
        total = p.sum(axis=0)
        p /= total
        apart = parameters - self.mean
        loss = float(self._weights @ (np.log(total) - utility[0]))
        loss += 0.5 * float(apart @ (self.precision * apart))
        steep = self._weights * self._sensitivity
        residual = steep * p
        residual[0] -= steep
        return loss, self._gather(residual) + self.precision * apart, p

    def _utility(self, parameters: Floats) -> Floats:
        utility = parameters[self._items]
        for extra, value in zip(self._extra, parameters[self.n :], strict=True):
            utility += value * extra
        return utility

    def _gather(self, values: Floats) -> Floats:
        """Sum a value for each place by the parameters of its utility."""
        sums = np.bincount(self._items.ravel(), values.ravel(), self.n)
        return np.concatenate([sums, [float((values * extra).sum()) for extra in self._extra]])

    def second(self, p: Floats) -> _Second:
        """The second derivative."""
        weights = self._weights * self._sensitivity**2
        i, j = np.triu_indices(p.shape[0], 1)
        both = (weights * p[i] * p[j]).ravel()
        n = self.n
        if self._pattern is None:
            half = np.bincount(self._keys(), both, n * n).reshape(n, n)
            matrix: Any = -(half + half.T)
        else:
            group, indices, starts = self._pattern
            half = csr_array((np.bincount(group, both, indices.size), indices, starts), (n, n))
            matrix = -(half + half.T).tocsr()
        diagonal = np.bincount(self._items.ravel(), (weights * p * (1 - p)).ravel(), n)
        beside = np.zeros((len(self._extra), n + len(self._extra)))
        for row, extra in enumerate(self._extra):
            beside[row] = self._gather(weights * p * (extra - (p * extra).sum(axis=0)))
        full = np.concatenate([diagonal, np.diagonal(beside[:, n:])]) + self.precision
        return _Second(matrix, beside, full)

    def _keys(self) -> Places:
        """Row and column of each pair of a choice, as one integer."""
        first, second = np.triu_indices(self._items.shape[0], 1)
        return np.asarray(self._items[first] * self.n + self._items[second]).ravel()

    def second_at(self, parameters: Floats) -> _Second:
        """The second derivative at ``parameters``."""
        return self.second(self.derivatives(parameters)[2])

    def reliabilities(self, parameters: Floats) -> Floats:
        """Most probable reliability of each judge, given the rest; log-normal around 1."""
        assert self._judges is not None
        utility = self._utility(parameters)
        utility[self._absent] = -np.inf
        shifted = utility - utility.max(axis=0)
        finite = np.where(self._absent, 0.0, shifted)
        logs = np.log(self._reliability)
        for _ in range(20):
            a = np.exp(logs)[self._judges]
            p = np.exp(a * shifted)
            p /= p.sum(axis=0)
            mean = (p * finite).sum(axis=0)
            spread = (p * (finite - mean) ** 2).sum(axis=0)
            gradient = logs / RELIABILITY_SCALE**2
            curvature = np.full(logs.size, 1 / RELIABILITY_SCALE**2)
            slopes, bends = self._weights * a * (mean - shifted[0]), self._weights * a**2 * spread
            gradient += np.bincount(self._judges, slopes, logs.size)
            curvature += np.bincount(self._judges, bends, logs.size)
            step = np.clip(gradient / curvature, -1, 1)
            logs = logs - step
            if np.abs(step).max() < 1e-9:
                break
        return np.exp(logs)


class _Second:
    """Second derivative: the block of strengths, the other parameters, and the diagonal."""

    def __init__(self, matrix: Any, beside: Floats, diagonal: Floats):
        self._matrix, self._beside, self.diagonal = matrix, beside, diagonal

    def solve(self, right: Floats, tolerance: float) -> Floats:
        """Solve for right-hand sides (size,) or (size, m) by preconditioned conjugate gradients.

        The preconditioner is the diagonal; ``tolerance`` bounds the relative residual.
        """
        diagonal = self.diagonal if right.ndim == 1 else self.diagonal[:, None]
        x = np.zeros_like(right)
        residual = right.copy()
        scaled = residual / diagonal
        direction = scaled.copy()
        product = (residual * scaled).sum(axis=0)
        target = tolerance**2 * product
        for _ in range(10 * right.shape[0]):
            if (product <= target).all():
                break
            image = self._times(direction)
            curved = (direction * image).sum(axis=0)
            length = np.divide(product, curved, out=np.zeros_like(product), where=curved > 0)
            x += length * direction
            residual -= length * image
            scaled = residual / diagonal
            before, product = product, (residual * scaled).sum(axis=0)
            direction *= np.divide(product, before, out=np.zeros_like(product), where=before > 0)
            direction += scaled
        return x

    def _times(self, vector: Floats) -> Floats:
        diagonal = self.diagonal if vector.ndim == 1 else self.diagonal[:, None]
        n = self._matrix.shape[0]
        image = diagonal * vector
        image[:n] += self._matrix @ vector[:n]
        for row, beside in enumerate(self._beside, start=n):
            others = beside.copy()
            others[row] = 0.0
            image[row] += others @ vector
            image[:n] += np.multiply.outer(beside[:n], vector[row])
        return image

    def dense(self) -> Floats:
        """The full matrix."""
        n = self._matrix.shape[0]
        size = self.diagonal.size
        whole = np.empty((size, size))
        dense = isinstance(self._matrix, np.ndarray)
        whole[:n, :n] = self._matrix if dense else self._matrix.todense()
        whole[n:] = self._beside
        whole[:n, n:] = self._beside[:, :n].T
        whole[np.arange(size), np.arange(size)] = self.diagonal
        return whole
