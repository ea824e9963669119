"""Samplers: what to ask next, given the answers so far. Without calls, threads or files."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from rankcore._core.numbers import Floats
from rankcore._core.params import COUNT, check_integer, check_option, check_real
from rankcore.preference.comparisons import (
    ENOUGH,
    USELESS,
    Comparison,
    Uncertainty,
    as_degree,
    as_positions,
    judge_names,
    prior_scores,
    useless_judges,
    who,
)
from rankcore.preference.forms import Items, Places, as_items, item_array, shown
from rankcore.preference.noise import Draws, JudgeModel
from rankcore.preference.ratings import Ratings, places_of

# Maximum distance in the ranking of two compared items, while such pairs are asked about.
_NEIGHBOURS = 64
# Without a confidence, nothing is worth asking below this doubt about the top, or this fraction of
# pairs expected in the wrong order and this number of them.
_WRONG, _WRONG_PAIRS = 0.05, 0.5
# Abstentions may leave open this fraction of the pairs of an order that is called complete.
OPEN = 0.05
# Items whose probability of being among the first k is below this are not asked about in groups.
_OUT = 0.02
# Above this probability of copying an earlier answer, a judge is not asked again about a pair.
_REPEATS = 0.9

Question = tuple[tuple[int, ...], Hashable]  # places, and the judge


class Sampler:
    """Chooses comparisons of items by what the answers so far leave open.

    The core of `PreferenceRanker`, for answers that come from people, queues, batch interfaces or
    notebooks: `ask` returns comparisons, `tell` takes their answers in any order.

    Parameters
    ----------
    items : sequence, length n
        Any objects.
    top_k : int, optional
        Number of items to find, at least 1. None: all.
    size : int
        Number of items of a comparison, at least 2.
    answers : {"degree", "best", "order"}
        What `tell` takes: the degree in [0, 1], or the boolean, to which the first of two items
        precedes the second; the position of the best of ``size`` items, from 0; or their positions,
        best first.
    noise : float, optional
        Approximate fraction of wrong answers, from 0 to 1/2. None: learned from the answers alone.
    prior : array-like of shape (n,), optional
        Prior scores of the items, whose weight is learned from the answers.
    judges : sequence of hashable, or mapping to float, optional
        Names of several judges, or their prices per answer. None: one judge.
    seed : int, numpy.random.Generator or None

    Notes
    -----
    Of pairs near each other in the ranking, those are asked whose order is uncertain and whose
    strengths may be far apart. The model is that of `Ratings` of a sampler: Bradley-Terry strengths
    and, for each judge, a probability of ignoring the items, a position bias, a slope that is
    negative for adversaries, and a probability of copying earlier answers about a pair. All of them
    have posterior distributions, from which Markov chains draw.

    Two samplers with the same ``seed`` that are asked and told the same in the same order ask the
    same. Samplers can be pickled, to go on in another process.

    Examples
    --------
    >>> from rankcore.preference import Sampler
    >>> sampler = Sampler(["fig", "pear", "banana"], seed=0)
    >>> while comparisons := sampler.ask(1):
    ...     for comparison in comparisons:
    ...         first, second = comparison.items
    ...         sampler.tell(comparison, len(first) < len(second))
    >>> [sampler.items[place] for place in sampler.ranking()]
    ['fig', 'pear', 'banana']
    """

    method = "rating"

    def __init__(
        self,
        items: Items,
        *,
        top_k: int | None = None,
        size: int = 2,
        answers: Literal["degree", "best", "order"] = "degree",
        noise: float | None = None,
        prior: ArrayLike | None = None,
        judges: Sequence[Hashable] | Mapping[Any, float] | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        (COUNT | None).check(top_k, "top_k")
        check_integer(size, "size", 2)
        check_option(answers, "answers", ("degree", "best", "order"))
        if noise is not None:
            check_real(noise, "noise", 0, 0.5)
        if answers == "degree" and size > 2:
            raise ValueError(
                f'Sampler: size={size} requires answers="best" or "order"; got "degree"'
            )
        if size > 2 and judges is not None and len(judge_names(judges)) > 1:
            raise ValueError(
                f"Sampler: several judges require size=2; got size={size}: use a sampler for each"
            )
        self.items = as_items(items)
        self.n_answers = 0
        n = len(self.items)
        self._top_k = None if top_k is None or top_k >= n else top_k
        self._size, self.answers = size, answers
        self._judges = judge_names(judges)
        prices = list(judges.values()) if isinstance(judges, Mapping) else [1.0] * len(self._judges)
        for price in prices:
            check_real(price, "price of a judge", 0)
        self._prices = np.maximum(np.array(prices, dtype=np.float64), 1e-12)
        self._rng = np.random.default_rng(seed)
        self._model = JudgeModel(
            n,
            int(self._rng.integers(2**63)),
            n_judges=len(self._judges),
            noise=noise,
            scores=prior_scores(prior, n),
        )
        self._counts = np.zeros(n)
        self._by_judge = np.zeros(len(self._judges))
        self._first_won = np.zeros(len(self._judges))  # degrees of the items shown first
        self._decided = np.zeros(len(self._judges))  # differences of the degrees of both items
        self._queue: deque[Question] = deque()
        self._asked: Counter[tuple[int, int]] = Counter()  # by pair, the smaller position first
        self._shown: dict[tuple[int, int], tuple[int, int]] = {}  # the order shown at first
        self._waiting: Counter[Comparison] = Counter()
        # By the number of a judge and a pair, since the last answer of the judge about it.
        self._abstained: Counter[tuple[int, int, int]] = Counter()
        self._declined: set[tuple[int, int, int]] = set()
        self._draws: Draws | None = None
        # By the number of answers that they are given.
        self._next: tuple[int, tuple[JudgeModel, Draws]] | None = None
        self._report: tuple[int, Draws] | None = None

    @property
    def judges(self) -> tuple[Hashable, ...]:
        """Names of the judges; (None,) without names."""
        return self._judges

    def ask(self, n: int | None = None, *, confidence: float | None = None) -> list[Comparison]:
        """Return up to n comparisons to make next.

        Parameters
        ----------
        n : int, optional
            Any number; comparisons of earlier calls may still be without an answer. None: as many
            as should be made before the answers are used.
        confidence : float, optional
            As for `done`: nothing more is worth asking once it is reached.

        Returns
        -------
        list of Comparison
            Shorter than n if nothing more is worth asking, or if answers are needed first.
        """
        (COUNT | None).check(n, "n")
        if confidence is not None:
            check_real(confidence, "confidence", 0, 1)
        comparisons: list[Comparison] = []
        while n is None or len(comparisons) < n:
            if not self._queue and ((n is None and comparisons) or not self._plan(confidence)):
                break
            places, judge = self._queue.popleft()
            comparison = Comparison(places, judge, tuple(self.items[place] for place in places))
            self._waiting[comparison] += 1
            comparisons.append(comparison)
        return comparisons

    def tell(self, comparison: Comparison, answer: Any, judge: Hashable = None) -> None:
        """Take the answer to a comparison, whether or not this sampler has asked it.

        Parameters
        ----------
        comparison : Comparison
        answer : bool, float, int, sequence of int or None
            See ``answers``. An order may lack items, about which it then says nothing. None is an
            abstention, as is an order of one item: the judge is not asked again about the pair, nor
            about a group whose pairs were all in two abstentions since their last answer.
        judge : hashable, optional
            Name of the judge. None: that of the comparison.

        Raises
        ------
        ValueError, TypeError
            For an answer that is not of the expected form, and unknown items or judges; the sampler
            is unchanged.
        """
        places, number = self._checked(comparison, judge)
        parsed = self.parse(comparison, answer)
        self._waiting[comparison] -= 1
        if self._waiting[comparison] <= 0:
            del self._waiting[comparison]
        if parsed is None or (self.answers == "order" and len(parsed) == 1):
            for u, v in _pairs_of(places):
                self._abstained[number, u, v] += 1
                # One abstention from a group does not tell which of its pairs has no answer.
                if self._abstained[number, u, v] >= min(2, len(places) - 1):
                    self._declined.add((number, u, v))
            return
        order = list(places)
        if self.answers == "order":
            order = [places[place] for place in parsed]
        elif self.answers == "best":
            order = [places[parsed], *places[:parsed], *places[parsed + 1 :]]
        for u, v in _pairs_of(order):
            self._abstained.pop((number, u, v), None)
            self._declined.discard((number, u, v))
        if len(places) == 2:
            degree = parsed if self.answers == "degree" else float(order[0] == places[0])
            self._model.add_pair(places[0], places[1], degree, number)
        else:
            self._model.add_order(places, order, best_only=self.answers == "best")
        self._counts[list(places)] += 1
        self._by_judge[number] += 1
        self._first_won[number] += parsed if self.answers == "degree" else 0.5
        self._decided[number] += abs(2 * parsed - 1) if self.answers == "degree" else 1.0
        self.n_answers += 1

    def ranking(self) -> Places:
        """Return the positions of the items, the best first.

        Returns
        -------
        ndarray of intp, shape (n,)
        """
        return self.ratings().ranking

    def ratings(self) -> Ratings:
        """Return strengths of the items, with uncertainties."""
        theta, u = self._reported().theta, self.uncertainty()
        n = len(self.items)
        return Ratings(
            items=item_array(self.items),
            scores=(theta - theta.mean(axis=1, keepdims=True)).mean(axis=0) if n else np.empty(0),
            ranking=np.argsort(places_of(theta).mean(axis=0), kind="stable"),
            n_answers=self._counts.copy(),
            components=np.zeros(n, dtype=np.intp),
            judges=np.array([str(name) for name in self._judges]),
            reliability=1 - 2 * u.error_rate,
            position_bias=float(u.position_bias.mean()),
            _source=theta,
            _is_sampled=True,
        )

    def uncertainty(self) -> Uncertainty:
        """Return what the answers so far leave open, about items and judges."""
        draws, n = self._reported(), len(self.items)
        errors = (1 - draws.reliability(np.random.default_rng(0))) / 2
        rates = errors.mean(axis=0)
        inversions, top = self._doubt(draws, np.zeros((n, n), dtype=bool))
        contrary = [
            f"{who(name)} prefers the worse item"
            for name, rate, n_answers in zip(self._judges, rates, self._by_judge, strict=True)
            if n_answers >= ENOUGH and 1 - 2 * rate <= -USELESS
        ]
        return Uncertainty(
            inversions,
            top,
            rates,
            np.quantile(errors, [0.05, 0.95], axis=0).T,
            draws.position_bias().mean(axis=0),
            draws.copies().mean(axis=0),
            (*self.useless_judges(1 - 2 * rates).values(), *contrary),
        )

    def done(self, confidence: float | None = None) -> bool:
        """Return whether the ranking is as certain as required.

        Parameters
        ----------
        confidence : float, optional
            With a ``top_k``, the probability that these items are the right ones; else the expected
            fraction of pairs in the right order. None: so high that nothing is worth asking.

        Notes
        -----
        Without a ``confidence`` pairs count as right if no answer is left that could decide them:
        those that all judges abstained from and, of judges that repeat themselves, those that they
        were asked about in both orders. Then `ask` returns no more comparisons, although a
        ``confidence`` may not be reached. The answers of a coin are never used up: bound their
        number.
        """
        if confidence is not None:
            check_real(confidence, "confidence", 0, 1)
        n = len(self.items)
        if n < 2:
            return True
        if confidence is None:
            return not self._is_worth_asking(None)
        return self.n_answers > 0 and not self._is_open(confidence, np.zeros((n, n), dtype=bool))

    def n_declined(self, confidence: float | None = None) -> int:
        """Return from how many pairs all judges abstained, if only these leave the order open.

        Parameters
        ----------
        confidence : float, optional
            As for `done`. None: 0.95.

        Returns
        -------
        int
            0 while there is something to ask, and if the order is certain without these pairs.
        """
        n_pairs = int(np.triu(self._declined_by_judge().all(axis=0)).sum())
        confidence = 1 - OPEN if confidence is None else confidence
        if n_pairs and self.done() and self._is_open(confidence, self._used_up(abstained=False)):
            return n_pairs
        return 0

    def _is_worth_asking(self, confidence: float | None) -> bool:
        """Return whether answers are left that could make the order as certain as required."""
        if self.n_answers == 0 and not self._declined:
            return True
        used = self._used_up()
        if confidence is None:
            return self._is_open(None, used)
        # Pairs that are used up are wrong or right, and other answers may make up for these.
        is_open = self._is_open(None, used) or self._is_open(confidence, used)
        return is_open and not self.done(confidence)

    def _is_open(self, confidence: float | None, ignored: NDArray[np.bool_]) -> bool:
        """Return whether more than allowed may be wrong; ``ignored`` pairs count as right."""
        n, k = len(self.items), self._top_k
        if confidence is not None:
            allowed = 1 - confidence
        else:
            allowed = _WRONG if k is not None else min(_WRONG, 2 * _WRONG_PAIRS / (n * (n - 1)))

        def wrong(draws: Draws) -> float:
            inversions, top = self._doubt(draws, ignored)
            return inversions if k is None else 1 - top

        # Once chains run, a few of their draws show that much is open.
        if self._draws is not None and wrong(self._next_fit()[1]) > allowed:
            return True
        return wrong(self._reported()) > allowed

    def _declined_by_judge(self) -> NDArray[np.bool_]:
        """Return whether a judge abstained from a pair, (judges, items, items), symmetric."""
        n = len(self.items)
        declined = np.zeros((len(self._judges), n, n), dtype=bool)
        for judge, u, v in self._declined:
            declined[judge, u, v] = declined[judge, v, u] = True
        return declined

    def _used_up(self, *, abstained: bool = True) -> NDArray[np.bool_]:
        """Return the pairs that no more answers can decide, as a symmetric matrix.

        Unless ``abstained``, those that judges abstained from are left out.
        """
        draws = self._next_fit()[1]
        used = self._declined_by_judge()
        if not abstained:
            used[:] = False
        same, turned = (
            draws.copies(turned=turned).mean(axis=0) > _REPEATS for turned in (False, True)
        )
        if self._size == 2 and same.any():
            answered = self._model.answered()
            back = answered.transpose(0, 2, 1)
            in_both = np.where(turned[:, None, None], answered | back, answered & back)
            used |= same[:, None, None] & in_both
        return np.asarray(used.all(axis=0))

    def _doubt(self, draws: Draws, ignored: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the expected fraction of inversions, and the probability that the top is right.

        ``ignored`` pairs count as right.
        """
        n, k, places = len(self.items), self._top_k, places_of(draws.theta)
        if n < 2:
            return 0.0, 1.0
        order = np.argsort(places.mean(axis=0), kind="stable")
        places = places[:, order]
        counted = np.triu(~ignored[np.ix_(order, order)], 1)
        few = places[:: max(1, len(places) // 100)]
        inversions = np.mean([((row[:, None] > row) & counted).sum() for row in few])
        top = 1.0
        if k is not None:
            wrong = [((row[:k, None] > row[k:]) & counted[:k, k:]).any() for row in places]
            top = 1 - float(np.mean(wrong))
        return float(inversions) / (n * (n - 1) / 2), top

    def useless_judges(self, reliability: Floats | None = None) -> dict[Hashable, str]:
        """Return sentences about judges whose answers do not depend on the items.

        Parameters
        ----------
        reliability : ndarray, shape (n_judges,), optional
            As in `ratings`. None: only judges who answer by the order shown are named.
        """
        return useless_judges(
            self._judges, self._by_judge, self._first_won, self._decided, reliability
        )

    def _fit(self) -> Draws:
        """Draw models given the answers so far, from which the next chains start."""
        self._model, self._draws = self._next_fit()
        return self._draws

    def _next_fit(self) -> tuple[JudgeModel, Draws]:
        """Return a fit like `_fit`, leaving the next questions unchanged."""
        if self._next is None or self._next[0] != self.n_answers:
            model = self._model.copy()
            self._next = self.n_answers, (model, model.update())
        return self._next[1]

    def _reported(self) -> Draws:
        """Draw more models for intervals, leaving the next questions unchanged."""
        if self._report is None or self._report[0] != self.n_answers:
            self._report = self.n_answers, self._next_fit()[0].report()
        return self._report[1]

    # ------------------------------------------------------------------ answers

    def _checked(self, comparison: Comparison, judge: Hashable) -> tuple[tuple[int, ...], int]:
        if not isinstance(comparison, Comparison):
            raise TypeError(
                "comparison must be a Comparison, as ask returns, or Comparison((i, j)) of "
                f"positions; got {shown(comparison)}"
            )
        places, n = comparison.places, len(self.items)
        if (
            not isinstance(places, tuple)
            or not all(isinstance(place, Integral) and 0 <= place < n for place in places)
            or not 2 <= len(set(places)) == len(places)
        ):
            raise ValueError(
                f"a comparison must have a tuple of two or more different positions, from 0, of "
                f"{n} items; got {shown(places)}"
            )
        name = comparison.judge if judge is None else judge
        if name is None and len(self._judges) == 1:
            return places, 0
        if name not in self._judges:
            raise ValueError(f"judge must be one of {list(self._judges)}; got {name!r}")
        return places, self._judges.index(name)

    def parse(self, comparison: Comparison, answer: Any) -> Any:
        """Return an answer in plain types, without taking it.

        Parameters
        ----------
        comparison : Comparison
        answer : object
            As `tell` takes it.
        """
        n = len(comparison.places)
        if answer is None:
            return None
        if self.answers == "degree":
            return as_degree(answer, n)
        if self.answers == "best":
            return as_positions([answer], n, answer)[0]
        if not isinstance(answer, Sequence | np.ndarray) or isinstance(answer, str):
            raise TypeError(f"an order must be a list of positions; got {shown(answer)}")
        return as_positions(answer, n, answer)

    # ------------------------------------------------------------------ questions

    def _plan(self, confidence: float | None) -> bool:
        """Queue the next comparisons; False if nothing is worth asking."""
        if len(self.items) < 2 or not self._is_worth_asking(confidence):
            return False
        draws = self._fit()
        self._queue.extend(self._pairs(draws) if self._size == 2 else self._groups(draws))
        return bool(self._queue)

    def _pairs(self, draws: Draws) -> list[Question]:
        pairs = self._pick(draws, _NEIGHBOURS)
        if not pairs and len(self.items) > _NEIGHBOURS:
            pairs = self._pick(draws, len(self.items))
        queue: list[Question] = []
        for pair in pairs:
            # The second time in the same order, which shows whether a judge repeats itself.
            turned = bool(self._rng.integers(2))
            places = pair[::-1] if turned else pair
            if self._asked[pair] == 1:
                places = self._shown[pair]
            self._shown.setdefault(pair, places)
            self._asked[pair] += 1
            queue.append((places, self._choose_judge(draws, pair)))
        return queue

    def _pick(self, draws: Draws, neighbours: int) -> list[tuple[int, int]]:
        """Choose the most informative disjoint pairs, a quarter as many as items."""
        theta, n = draws.theta, len(self.items)
        mean = theta.mean(axis=0)
        ranked = np.lexsort((self._rng.random(n), -mean))
        apart = range(1, min(n, neighbours + 1))
        i = np.concatenate([ranked[:-d] for d in apart])
        j = np.concatenate([ranked[d:] for d in apart])
        spread = np.concatenate(
            [(theta[:, ranked[:-d]] - theta[:, ranked[d:]]).std(0) for d in apart]
        )
        spread = np.maximum(spread, 1e-9)
        worth = ndtr(-np.abs(mean[i] - mean[j]) / spread) * spread
        if self._top_k is not None:
            bar = np.sort(mean)[::-1][self._top_k - 1 : self._top_k + 1].mean()
            out = ndtr((bar - mean) / np.maximum(theta.std(axis=0), 1e-9))
            worth *= 1 - out[i] * out[j]
        # Pairs that were asked before are worth less if judges repeat themselves.
        asked = np.zeros((n, n), dtype=bool)
        asked[tuple(np.array(list(self._asked), dtype=np.intp).reshape(-1, 2).T)] = True
        worth[asked[np.minimum(i, j), np.maximum(i, j)]] *= 1 - float(draws.copies().mean())
        closed = self._used_up()
        for comparison in self._waiting:
            closed[comparison.places] = closed[comparison.places[::-1]] = True
        worth[closed[i, j]] = -1.0
        used = [False] * n
        pairs: list[tuple[int, int]] = []
        for k in np.argsort(-worth, kind="stable").tolist():
            u, v = int(i[k]), int(j[k])
            if worth[k] < 0 or len(pairs) == max(1, n // 4):
                break
            if not (used[u] or used[v]):
                used[u] = used[v] = True
                pairs.append((min(u, v), max(u, v)))
        return pairs

    def _choose_judge(self, draws: Draws, pair: tuple[int, int]) -> Hashable:
        """Choose the judge with the most information for its price in one Thompson draw.

        Judges who abstained from the pair are left out, unless all did.
        """
        if len(self._judges) == 1:
            return self._judges[0]
        draw = int(self._rng.integers(len(draws.theta)))
        part = Draws(draws.theta[draw : draw + 1], draws.parameters[draw : draw + 1])
        value = part.reliability(self._rng)[0] ** 2 / self._prices
        declined = [(judge, *pair) in self._declined for judge in range(len(self._judges))]
        return self._judges[int(np.argmax(np.where(declined, -1.0, value)))]

    def _is_declined(self, places: Sequence[int]) -> bool:
        """Return whether the only judge abstained from all pairs of some places."""
        return self._declined.issuperset((0, u, v) for u, v in _pairs_of(places))

    def _groups(self, draws: Draws) -> list[Question]:
        """Return groups of items of similar strength in one draw; those that may be in the top."""
        n, drawn = len(self.items), draws.theta[int(self._rng.integers(len(draws.theta)))]
        pool = np.arange(n)
        if self._top_k is not None and self.n_answers * self._size >= n:
            inside = (places_of(draws.theta) < self._top_k).mean(axis=0)
            enough = np.sort(inside)[::-1][min(n, self._top_k + self._size) - 1]
            pool = np.flatnonzero((inside >= _OUT) | (inside >= enough) & (inside > 0))
            if pool.size < self._size:
                pool = np.argsort(-draws.theta.mean(axis=0), kind="stable")[: self._size]
        size = min(self._size, pool.size)
        pool = pool[np.argsort(-drawn[pool], kind="stable")]
        queue: list[Question] = []
        # Groups begin anywhere, so that all neighbours meet; smaller ones at the ends tell the
        # order of the last items, which the best of many does not.
        best, shift = self.answers == "best" and self._top_k is None, 0
        if self._top_k is None and (best or pool.size > size):
            shift = int(self._rng.integers(size))
        for start in range(-shift, pool.size, size):
            low, high = max(start, 0), min(start + size, pool.size)
            if not best:
                low, high = min(low, pool.size - size), max(high, size)
            group = self._rng.permutation(pool[low:high]).tolist()
            if len(group) > 1 and not self._is_declined(group):
                queue.append((tuple(group), self._judges[0]))
        if not queue:
            ranked = pool.tolist()
            left = (pair for pair in combinations(ranked, 2) if not self._is_declined(pair))
            if (pair := next(left, None)) is not None:
                others = [place for place in ranked if place not in pair]
                queue.append(((*pair, *others[: size - 2]), self._judges[0]))
        return queue


def _pairs_of(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of some places, the smaller one first."""
    return list(combinations(sorted(places), 2))
