"""Active Bradley-Terry rating: compares items of similar strength and uncertain order."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from rankcore._core.numbers import Floats
from rankcore.preference.equal_errors import EqualErrors, fit_equal_errors
from rankcore.preference.forms import Places
from rankcore.preference.plackett_luce import SCALE, Choices, Posterior, choices_of, fit_choices
from rankcore.preference.ratings import Ratings

# Calls: items in the order shown, and the index of the repeat.
Calls = list[tuple[int, ...]]
# Maximum distance in the order of the ratings of two compared items, while such pairs remain.
_NEIGHBOURS = 64
# Without a confidence, stop below this many pairs expected in the wrong order, or this doubt about
# the top.
_WRONG_PAIRS, _WRONG_TOP = 0.05, 0.01
# Doubt is not recorded after each round for more items, as its time is cubic.
_TRACKED = 2000
# After this many identical repeated answers a judge is assumed to repeat itself.
_TRIALS = 20


@dataclass(eq=False)
class Rating:
    """Fit ratings to the answers so far, compare the most informative pairs, and repeat.

    The next pair maximises P(wrong order) * standard error of the difference under the posterior.
    An item is in at most one pair of a batch, unless the batch has more pairs than half the items.
    With a ``top_k`` this is multiplied by the probability that one of the two is among the first k.
    """

    same: Places  # for each item, the first one with the same key, which is the same item
    rng: np.random.Generator  # draws the item shown first, and breaks ties between pairs
    _: KW_ONLY
    top_k: int | None = None
    # Stop when the first k are the k best with this probability or, for a whole order, this share
    # of the pairs is expected to be in the right order. None: stop when 1/20 of a pair is expected
    # in the wrong order, or the first k are the k best with a probability of 99%.
    confidence: float | None = None
    # Maximum number of calls per pair. None: as many as are informative, unless the judge turns out
    # to repeat itself.
    repeats: int | None = None
    both_orders: bool = False
    judges: int = 1  # calls go to each in turn: to the index of the repeat modulo this number
    prior: Floats | None = None  # prior scores, shape (n,)
    batch: int | None = None
    limit: int | None = None  # maximum number of calls

    def __post_init__(self) -> None:
        self._distinct, self._same = np.unique(self.same, return_inverse=True)
        self._m = m = self._distinct.size
        self.top_k = None if self.top_k is None or self.top_k >= self.same.size else self.top_k
        if self.prior is not None:
            centred = self.prior - self.prior.mean()
            self.prior = (centred / (centred.std() or 1.0))[self._distinct]
        self._batch = self.batch or max(1, m // 4)
        self._n_repeats: dict[tuple[int, int], int] = {}  # number of calls, by pair
        self._first_shown: dict[tuple[int, int], int] = {}
        self._calls: Calls = []
        self._degrees: list[float] = []
        self._last: dict[tuple[int, ...], float] = {}  # last answer to an identical call
        self._again: list[int] = [0, 0]  # identical repeats, those answered differently
        self._start: Posterior | None = None
        self._ratings: Ratings | None = None
        self.n_calls = 0
        self.doubt: list[tuple[int, float]] = []

    def rounds(self) -> Generator[Calls, Sequence[float | None], None]:
        """Yield calls, and receive their degrees; None means that no answers will follow."""
        while self._m > 1 and (self.limit is None or self.n_calls < self.limit):
            calls = [] if self._certain() else self._next()
            if not calls:
                return
            if self.limit is not None:
                calls = calls[: self.limit - self.n_calls]
            self.n_calls += len(calls)
            answers = yield self._of_items(calls)
            if any(answer is not None for answer in answers):
                self._take(calls, answers)
            if None not in answers and self._m <= _TRACKED:
                self.doubt.append((len(self._calls), self.ratings().expected_inversions()))

    def _of_items(self, calls: Calls) -> Calls:
        """Calls with positions of items instead of distinct items."""
        return [(*self._distinct[list(call[:-1])].tolist(), call[-1]) for call in calls]

    def ratings(self) -> Ratings:
        """Ratings of all items from the answers so far."""
        if self._ratings is None:
            choices, counts = self._choices()
            prior, start = self.prior, self._start
            self._start = fitted = fit_choices(
                self._m, choices, scale=SCALE, prior=prior, start=start, tolerance=1e-6
            )
            self._ratings = Ratings(
                np.arange(self._same.size),
                counts[self._same],
                np.zeros(self._same.size, dtype=np.intp),
                np.arange(self.judges),
                fitted,
                self._same,
                self._orders(choices, fitted),
            )
        return self._ratings

    def _orders(self, choices: Choices, fitted: Posterior) -> EqualErrors | None:
        """An order under equally frequent errors, if it explains the answers better."""
        begin = np.argsort(-fitted.theta, kind="stable")
        found = fit_equal_errors(self._m, choices, begin)
        better = found is not None and found.log_evidence > fitted.log_evidence()
        return found if better else None

    def order(self) -> Places:
        """Items by descending strength; ties in input order."""
        return self.ratings().ranking

    def together(self) -> Places:
        """For each item, the number of items that it is not ordered against, with itself."""
        n = self._same.size
        met = np.zeros(self._m, dtype=bool)
        for call in self._calls:
            met[list(call[:-1])] = True
        return np.where(met[self._same], 1, n)

    def pairs(self) -> tuple[Places, Floats]:
        """Answered pairs and their mean degrees."""
        sums: dict[tuple[int, int], list[float]] = {}
        for (u, v, _), degree in zip(self._calls, self._degrees, strict=True):
            pair, towards = ((u, v), degree) if u < v else ((v, u), 1 - degree)
            total = sums.setdefault(pair, [0.0, 0.0])
            total[0] += towards
            total[1] += 1
        pairs = self._distinct[np.array(list(sums), dtype=np.intp).reshape(-1, 2)]
        return pairs, np.array([total / count for total, count in sums.values()])

    def _certain(self) -> bool:
        """Whether the order reaches the required confidence."""
        ratings, n, k = self.ratings(), self._same.size, self.top_k
        if self.confidence is not None:
            allowed = 1 - self.confidence
        elif ratings._orders is None:
            return False
        else:
            allowed = _WRONG_TOP if k else 2 * _WRONG_PAIRS / (n * (n - 1))
        if k is None:
            return ratings.expected_inversions() <= allowed
        first, rest = ratings.ranking[:k], ratings.ranking[k:]
        if 1 - ratings.beats()[np.ix_(first, rest)].min() > allowed:
            return False  # decided by two items alone, and cheaper to check
        return 1 - ratings.certainty_of_top(k) <= allowed

    def _take(self, calls: Calls, degrees: Sequence[float | None]) -> None:
        for call, degree in zip(calls, degrees, strict=True):
            if degree is None:
                continue
            as_before = (*call[:2], call[2] % self.judges)
            if as_before in self._last:
                self._again[0] += 1
                self._again[1] += self._last[as_before] != degree
            self._last[as_before] = degree
            self._calls.append(call)
            self._degrees.append(float(degree))
        self._ratings = None

    def _choices(self) -> tuple[Choices, Floats]:
        """Answers as weighted choices: the degree for one item, its complement for the other."""
        calls = np.array(self._calls, dtype=np.intp).reshape(-1, 3)
        degrees = np.array(self._degrees)
        if self._repeats_itself() and len(calls):
            # An identical repeat adds no information.
            key = np.column_stack([calls[:, :2], calls[:, 2] % self.judges])
            _, kept = np.unique(key, axis=0, return_index=True)
            calls, degrees = calls[kept], degrees[kept]
        counts = np.bincount(calls[:, :2].ravel(), minlength=self._m).astype(np.float64)
        judges = calls[:, 2] % self.judges if self.judges > 1 else None
        return choices_of(calls[:, :2], degrees, judges, self.judges), counts

    def _repeats_itself(self) -> bool:
        """Whether all repeated calls so far had the same answer."""
        return self._again[0] >= _TRIALS and self._again[1] == 0

    def _next(self) -> Calls:
        """The calls of the next batch."""
        pairs = self._pick(_NEIGHBOURS)
        if not pairs:  # all neighbours have reached their maximum
            pairs = self._pick(self._m)
        calls: Calls = []
        for pair in pairs:
            self._add_calls(pair, calls)
        return calls

    def _pick(self, neighbours: int) -> list[tuple[int, int]]:
        """The most informative pairs of items at most ``neighbours`` places apart."""
        fitted = self.ratings()._posterior
        scores, covariance = fitted.theta, fitted.covariance
        near_order = np.lexsort((self.rng.random(self._m), -scores))
        apart = range(1, min(self._m, neighbours + 1))
        i = np.concatenate([near_order[:-d] for d in apart])
        j = np.concatenate([near_order[d:] for d in apart])
        variances = np.diagonal(covariance)
        spread = np.sqrt(np.maximum(variances[i] + variances[j] - 2 * covariance[i, j], 1e-300))
        worth = ndtr(-np.abs(scores[i] - scores[j]) / spread) * spread
        if self.top_k is not None:
            # Probability that one of the two is among the first k, for a fixed threshold.
            k = min(self.top_k, self._m - 1)
            bar = np.sort(scores)[::-1][k - 1 : k + 1].mean()
            out = ndtr((bar - scores) / np.sqrt(variances))
            worth *= 1 - out[i] * out[j]
        some = 32 * self._batch  # nearly always enough, and faster to sort
        if worth.size > 2 * some and 2 * self._batch <= self._m:
            few = np.argpartition(-worth, some)[:some]
            pairs = self._disjoint(i, j, few[np.argsort(-worth[few], kind="stable")])
            if len(pairs) == self._batch:
                return pairs
        return self._disjoint(i, j, np.argsort(-worth, kind="stable"))

    def _disjoint(self, i: Places, j: Places, ranked: Places) -> list[tuple[int, int]]:
        """The first pairs with repeats left; disjoint if the batch is small enough."""
        most = 1 if self.repeats is None and self._repeats_itself() else self.repeats
        pairs: dict[tuple[int, int], None] = {}
        while True:
            used = [False] * self._m
            for u, v in zip(i[ranked].tolist(), j[ranked].tolist(), strict=True):
                if used[u] or used[v]:
                    continue
                pair = (u, v) if u < v else (v, u)
                if pair in pairs:  # in the other order
                    continue
                if most is not None and self._n_repeats.get(pair, 0) >= most:
                    continue
                used[u] = used[v] = True
                pairs[pair] = None
                if len(pairs) == self._batch:
                    return list(pairs)
            if 2 * self._batch <= self._m or not any(used):
                return list(pairs)

    def _add_calls(self, pair: tuple[int, int], calls: Calls) -> None:
        repeat = self._n_repeats.get(pair, 0)
        # The second call is identical to the first, which shows whether a judge repeats itself.
        turned = self._first_shown[pair] if repeat == 1 else int(self.rng.integers(2))
        self._first_shown.setdefault(pair, turned)
        self._n_repeats[pair] = repeat + 1
        judge = (pair[0] + pair[1] + repeat) % self.judges
        orders = [pair[::-1] if turned else pair]
        if self.both_orders:
            orders.append(orders[0][::-1])
        calls.extend((*order, repeat * self.judges + judge) for order in orders)


def prior_scores(prior: Any, items: Any) -> Floats | None:
    """Prior scores: as given, or computed by a function or estimator."""
    if prior is None:
        return None
    if callable(getattr(prior, "predict", None)):
        prior = prior.predict(items)
    elif callable(prior):
        prior = prior(items)
    scores = np.asarray(prior)
    if scores.shape != (len(items),) or scores.dtype.kind not in "biuf":
        raise ValueError(
            f"prior must give one number for each of {len(items)} items; found {scores.dtype} of "
            f"shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError("prior must be finite")
    return scores.astype(np.float64)
