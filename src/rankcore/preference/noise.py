"""Strengths of items and errors of judges, learned together from answers about pairs.

A judge errs in two ways: with a constant probability it ignores the items (a lapse) and answers at
random or with the item shown first, otherwise it errs the more often the closer two items are.
All parameters have a posterior distribution, which Markov chains draw from. They start where they
stopped before, so that a few new answers need few sweeps.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from rankcore._core.numbers import Floats
from rankcore._ext import judge_noise
from rankcore._ext.judge_noise import (
    BIAS,
    FAVOURED,
    FIRST,
    LAPSE,
    SAME,
    SAME_AGREES,
    SAME_DIFFERS,
    SIGN,
    SLOPE,
    TURNED,
    TURNED_AGREES,
    TURNED_DIFFERS,
)
from rankcore.preference.bradley_terry import right_minus_wrong

Ints = NDArray[np.int32]

CHAINS = 8
# Two numbers for each: of beta distributions, but mean and standard deviation for slope and bias.
# Lapse rates near 0 (no errors) and near 1 (a coin) are likelier than those between. More weight
# near 1, as (0.3, 0.2) has, raises the claimed inversions of a coin (of 30 items and 300 answers,
# from .39 to .42), but those of 40% wrong answers more (from .35 to .40, where .34 are true): the
# Bayes factor between the two is near 1 for either. Of 8 lists each, (0.3, 0.3) raises the claims
# for a coin from .37 to .40, but makes intervals for 10% wrong answers half again as wide, though
# they cover all places as they are. A third of the questions about pairs far apart,
# while the error rate is uncertain, raises the claims for a coin from .34 to .42, but lowers tau of
# 60 items, 300 calls and 20% wrong answers from .67 to .62.
_PRIORS = np.array([0.3, 0.7, 4, 4, np.log(6), 2.5, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 0], dtype=float)
_POSITIVE = 0.97  # prior probability that one of several judges is not an adversary
_START = np.array([-1.0, 0.0, np.log(6), 0.0, -1.0, -1.0, 1.0])
# Answers that a given error rate counts for.
_NOISE_COUNTS = 40.0
# Answers that the sweeps of a chain visit in an update, and in a report, so that time stays
# bounded; and bounds of the number of sweeps. With 20 sweeps for few answers, chains lagged behind
# these, and the next questions were almost random.
_UPDATE, _REPORT = (30_000, 4, 100), (1_500_000, 200, 1000)


class _Row(NamedTuple):
    """An answer about two items."""

    judge: int
    first: int
    second: int
    position: int  # 1 if the first item was shown at the first position, -1 if the second was
    kind: int
    degree: float
    weight: float


@dataclass
class Draws:
    """Draws from the posterior."""

    theta: Floats  # (draws, items)
    parameters: Floats  # (draws, judges, 7)

    def lapse(self) -> Floats:
        """Return the probability that a judge ignores the items, (draws, judges)."""
        return expit(self.parameters[:, :, LAPSE])

    def position_bias(self) -> Floats:
        """Return the probability that a judge prefers the first of two equal items, minus 1/2."""
        lapse, favoured = self.lapse(), expit(self.parameters[:, :, FAVOURED])
        equal = expit(self.parameters[:, :, BIAS])
        return lapse * (favoured - 0.5) + (1 - lapse) * (equal - 0.5)

    def copies(self, *, turned: bool = False) -> Floats:
        """Return the probability that an answer about a pair repeats the one before."""
        return expit(self.parameters[:, :, TURNED if turned else SAME])

    def reliability(self, rng: np.random.Generator) -> Floats:
        """Return the fraction of right minus wrong answers about random pairs, (draws, judges)."""
        slope = self.parameters[:, :, SIGN] * np.exp(self.parameters[:, :, SLOPE])
        return (1 - self.lapse()) * right_minus_wrong(self.theta, slope, 200, rng)


class JudgeModel:
    """Answers about pairs of n items, and the state of the chains."""

    def __init__(
        self,
        n: int,
        seed: int,
        *,
        n_judges: int = 1,
        noise: float | None = None,
        scores: Floats | None = None,
    ):
        rng = np.random.default_rng(seed)
        self._n, self._n_judges = n, n_judges
        prior = _PRIORS.copy()
        if n_judges > 1:
            prior[2 * SIGN] = _POSITIVE
        if noise is not None:
            lapse = min(2 * noise, 1.0)
            prior[:2] = _NOISE_COUNTS * lapse + 0.5, _NOISE_COUNTS * (1 - lapse) + 0.5
        self._priors = np.tile(prior, (n_judges, 1))
        self._scores = np.empty(0) if scores is None else scores
        self._theta = rng.standard_normal((CHAINS, n))
        if scores is not None:
            self._theta += scores
        self._parameters = np.tile(_START, (CHAINS, n_judges, 1))
        self._influence = np.ones((CHAINS, 1))
        self._states = rng.integers(0, 2**63, (CHAINS, 1)).astype(np.uint64)
        self._rows: list[_Row] = []
        self._told: dict[tuple[int, int, int], float] = {}  # the first answer, by judge and pair
        self._n_fitted = 0

    def add_pair(self, first: int, second: int, degree: float, judge: int = 0) -> None:
        """Add an answer about two items, the first one shown first."""
        same = self._told.get((judge, first, second))
        turned = self._told.get((judge, second, first))
        kind = FIRST
        if same is not None:
            kind = SAME_AGREES if same == degree else SAME_DIFFERS
        else:
            self._told[judge, first, second] = degree
            if turned is not None:
                kind = TURNED_AGREES if turned == 1 - degree else TURNED_DIFFERS
        self._rows.append(_Row(judge, first, second, 1, kind, degree, 1.0))

    def answered(self) -> NDArray[np.bool_]:
        """Return whether a judge answered about a pair in an order, (judges, items, items)."""
        answered = np.zeros((self._n_judges, self._n, self._n), dtype=bool)
        judges, first, second = np.array(list(self._told), dtype=np.intp).reshape(-1, 3).T
        answered[judges, first, second] = True
        return answered

    def add_order(self, shown: tuple[int, ...], order: list[int], *, best_only: bool) -> None:
        """Add an order of several items, or only its first item, as pairs of a lower weight."""
        weight = 2.0 / len(order)
        stages = order[:1] if best_only else order[:-1]
        for k, u in enumerate(stages):
            for v in order[k + 1 :]:
                position = 1 if u == shown[0] else -1 if v == shown[0] else 0
                self._rows.append(_Row(0, u, v, position, FIRST, 1.0, weight))

    def update(self) -> Draws:
        """Return some draws given all answers, in time that grows slowly with their number."""
        return self._run(10, _UPDATE)

    def report(self) -> Draws:
        """Return more draws, for intervals, and leave the chains where they are."""
        return self.copy()._run(100, _REPORT)

    def copy(self) -> JudgeModel:
        """Return a model of the same answers, with its own chains."""
        other = copy(self)
        other._theta, other._parameters = self._theta.copy(), self._parameters.copy()
        other._influence, other._states = self._influence.copy(), self._states.copy()
        return other

    def _run(self, kept: int, effort: tuple[int, int, int]) -> Draws:
        m = len(self._rows)
        theta = np.empty((CHAINS, kept, self._n))
        parameters = np.empty((CHAINS, kept, self._n_judges, _PRIORS.size // 2))
        if m == 0 or self._n == 0:  # the prior
            theta[:] = self._theta[:, None]
            parameters[:] = self._parameters[:, None]
            return self._merged(theta, parameters)
        table = np.array(sorted(self._rows, key=itemgetter(0)), dtype=np.float64).T.copy()
        judges, degree, weight = table[0], table[5], table[6]
        first, second, position, kind = table[1:5].astype(np.int32)
        judge_starts = np.searchsorted(judges, np.arange(self._n_judges + 1)).astype(np.int64)
        both = np.concatenate([first, second])
        by_item = np.argsort(both, kind="stable")
        item_starts = np.searchsorted(both[by_item], np.arange(self._n + 1)).astype(np.int64)
        # The answers of an item ascend, as those of a judge are adjacent.
        item_answers = (by_item % m).astype(np.int64)
        in_item = np.repeat(np.arange(self._n), np.diff(item_starts))
        item_answers = item_answers[np.lexsort((item_answers, in_item))]
        visits, least, most = effort
        sweeps = int(np.clip(visits / m, least, most))
        thin, spare = max(1, sweeps // kept), np.empty(2 * m)
        kept = min(kept, sweeps)
        warm_up = 0
        if m > 2 * self._n_fitted + 20:
            self._start(first, second, degree)
            warm_up = 5 * sweeps
        self._n_fitted = m
        for chain in range(CHAINS):
            for n_kept, every in ((1, warm_up), (kept, thin)):
                if every == 0:
                    continue
                judge_noise.run_chain(
                    first, second, position, kind, degree, weight, judge_starts, item_starts,
                    item_answers, self._scores, self._priors, self._theta[chain],
                    self._parameters[chain], self._influence[chain], self._states[chain], spare,
                    theta[chain, :n_kept], parameters[chain, :n_kept], every,
                )  # fmt: skip
        return self._merged(theta[:, :kept], parameters[:, :kept])

    def _start(self, first: Ints, second: Ints, degree: Floats) -> None:
        """Move the chains near the fractions of answers that the items won."""
        both = np.concatenate([first, second])
        wins = np.bincount(both, np.concatenate([degree, 1 - degree]), self._n)
        fraction = (wins + 0.5) / (np.bincount(both, minlength=self._n) + 1)
        if self._scores.size:
            fraction = fraction + 1e-3 * self._scores
        quantiles = (np.argsort(np.argsort(fraction, kind="stable")) + 0.5) / self._n
        self._theta[:] = ndtri(quantiles) + 0.1 * self._theta

    def _merged(self, theta: Floats, parameters: Floats) -> Draws:
        n_draws = theta.shape[0] * theta.shape[1]
        return Draws(
            theta.reshape(n_draws, self._n),
            parameters.reshape(n_draws, self._n_judges, parameters.shape[-1]),
        )
