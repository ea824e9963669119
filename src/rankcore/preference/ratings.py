"""Ratings with uncertainty: strengths, standard errors, places, and leaderboards."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.preference.bradley_terry import Posterior
from rankcore.preference.forms import Places, shown

_DRAWS = 2000


class Standing(NamedTuple):
    """A row of a leaderboard.

    Attributes
    ----------
    item : object
        Label of the item.
    rating, low, high : float
        Strength, and its interval.
    place : int
        From 1 for the strongest.
    first_place, last_place : int
        Simultaneous interval of the places; see `Ratings.leaderboard`.
    n_answers : float
    """

    item: Any
    rating: float
    low: float
    high: float
    place: int
    first_place: int
    last_place: int
    n_answers: float


@dataclass(eq=False)
class Ratings:
    """Strengths of items from comparisons, with uncertainties.

    Attributes
    ----------
    items : ndarray
        Labels of the items; of a sampler, the items themselves.
    scores : ndarray of float64, shape (n,)
        Strengths: without other effects, item i precedes item j with probability
        1 / (1 + exp(scores[j] - scores[i])); of a sampler, in standard deviations of the items.
    ranking : ndarray of intp, shape (n,)
        Positions of the items, the best first.
    n_answers : ndarray of float64, shape (n,)
        Number of comparisons of each item.
    components : ndarray of intp, shape (n,)
        Items with the same number are connected by comparisons; others are ordered by the prior
        only.
    judges : ndarray, shape (n_judges,)
        Labels of the judges.
    reliability : ndarray of float64, shape (n_judges,)
        Fraction of right minus wrong answers of a judge about random pairs: 1 without errors, 0 for
        a coin, below 0 for an adversary.
    position_bias : float or None
        Probability that the item shown first precedes an equal one, minus 1/2; None if it is not
        known which item was shown first.
    effects : dict of (float, float)
        Effect of each covariate, as logarithm of the odds per unit of its difference, and its
        standard error.
    tie_probability : float or None
        Probability of a tie between equal items, with a model of ties.

    Notes
    -----
    `rate` returns the mode of the posterior with the covariance of Laplace's approximation; places
    are computed from 2,000 draws with a fixed seed. The ratings of a sampler are means over draws
    from the posterior of its model, which does not assume that errors depend on the distance of
    items; its ranking is by the mean place.

    Examples
    --------
    >>> from rankcore.preference import rate
    >>> ratings = rate(["a", "a", "b", "c"], ["b", "c", "c", "b"])
    >>> [str(item) for item in ratings.items[ratings.ranking]]
    ['a', 'b', 'c']
    >>> ratings.scores.round(2), ratings.standard_errors.round(2)
    (array([ 0.91, -0.46, -0.46]), array([0.85, 0.7 , 0.7 ]))
    >>> ratings.place_interval().tolist()
    [[1, 3], [1, 3], [1, 3]]
    """

    items: NDArray[Any]
    scores: Floats
    ranking: Places
    n_answers: Floats
    components: Places
    judges: NDArray[Any]
    reliability: Floats
    position_bias: float | None = None
    effects: dict[str, tuple[float, float]] = field(default_factory=dict)
    tie_probability: float | None = None
    _source: Posterior | Floats = field(default_factory=lambda: np.empty((0, 0)))
    _is_sampled: bool = False  # of the model of a sampler

    def __repr__(self) -> str:
        best = [shown(item) for item in self.items[self.ranking[:3]].tolist()]
        more = ", ..." if len(self.items) > 3 else ""
        return f"Ratings({len(self.items)} items, best first: {', '.join(best) or 'none'}{more})"

    def of_items(self, positions: Places) -> Ratings:
        """Return the ratings of a list of items, by their positions; some may occur twice.

        Parameters
        ----------
        positions : ndarray of intp, shape (m,)
        """
        place = np.argsort(self.ranking)
        return replace(
            self,
            items=self.items[positions],
            scores=self.scores[positions],
            ranking=np.argsort(place[positions], kind="stable"),
            n_answers=self.n_answers[positions],
            components=self.components[positions],
            _source=self._draws[:, positions],
        )

    @cached_property
    def _draws(self) -> Floats:
        """Draws of the strengths, (draws, n)."""
        if isinstance(self._source, np.ndarray):
            return self._source
        return self._source.draws(_DRAWS, np.random.default_rng(0))

    @cached_property
    def _centred(self) -> Floats:
        """Draws of the strengths about their mean, (draws, n)."""
        draws = self._draws
        return draws - draws.mean(axis=1, keepdims=True) if draws.size else draws

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        return places_of(self._draws)

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of the strengths, about their mean; shape (n,)."""
        if not isinstance(self._source, np.ndarray):
            return self._source.standard_errors()
        return np.asarray(self._centred.std(axis=0))

    def beats(self) -> Floats:
        """Return the probability that item i is stronger than item j, as entry (i, j).

        Returns
        -------
        ndarray of float64, shape (n, n)
        """
        n = self.scores.size
        beats = [(self._places[:, i, None] < self._places).mean(axis=0) for i in range(n)]
        matrix = np.reshape(beats, (n, n))
        np.fill_diagonal(matrix, 0.5)
        return matrix

    def place_interval(self, level: float = 0.9) -> Places:
        """Return credible intervals of the places, from 1 for the strongest.

        Parameters
        ----------
        level : float
            Credibility level, between 0 and 1.

        Returns
        -------
        ndarray of intp, shape (n, 2)
            A place before the interval has at most a probability of (1 - level) / 2, as has one
            after it: since places are whole numbers, intervals cover more than ``level``.
        """
        check_level(level)
        tails = [(1 - level) / 2, (1 + level) / 2]
        return np.quantile(self._places, tails, axis=0, method="inverted_cdf").T.astype(np.intp) + 1

    def leaderboard(self, level: float = 0.95) -> list[Standing]:
        """Return the items by descending strength, with simultaneous intervals.

        Parameters
        ----------
        level : float
            Probability that the intervals of all items, or the places of all items, are right
            together.

        Notes
        -----
        The intervals are scores with a multiple of the standard errors that covers all of them
        together in ``level`` of the draws of the posterior; places are from the intervals of all
        differences of two items in the same way (maximum of the studentised differences), so that
        items of equal strength share their places. Of a sampler, whose strengths are far from
        normal, they are mean places with a multiple of their standard deviations plus a half, since
        places are whole numbers, that covers all places together in ``level`` of the draws.
        """
        check_level(level)
        items = self.items.tolist()
        if not items:
            return []
        errors = np.maximum(self.standard_errors, 1e-12)
        apart = np.abs(self._centred - self._centred.mean(axis=0)) / errors
        width = float(np.quantile(apart.max(axis=1), level))
        places = self._places_of_draws if self._is_sampled else self._places_of_differences
        first, last = places(level)
        return [
            Standing(
                item=items[i],
                rating=float(self.scores[i]),
                low=float(self.scores[i] - width * errors[i]),
                high=float(self.scores[i] + width * errors[i]),
                place=place,
                first_place=int(first[i]),
                last_place=int(last[i]),
                n_answers=float(self.n_answers[i]),
            )
            for place, i in enumerate(self.ranking.tolist(), start=1)
        ]

    def _places_of_differences(self, level: float) -> tuple[Places, Places]:
        """Return the first and last places that significant differences of strengths leave.

        Places in draws are no substitute: about estimates of items that are equal, or nearly so,
        draws spread once more, and their extreme places exclude the true ones.
        """
        n = self.scores.size
        apart = self._centred[: max(200, int(1e8 / n**2))]
        apart = apart - apart.mean(axis=0)
        covariance = apart.T @ apart / len(apart)
        variance = np.diagonal(covariance)
        spreads = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 1e-24))
        largest = np.zeros(len(apart))
        for i in range(n):
            differences = np.abs(apart[:, i, None] - apart) / spreads[i]
            np.maximum(largest, differences.max(axis=1), out=largest)
        limit = float(np.quantile(largest, level))
        above = (self.scores - self.scores[:, None]) / spreads > limit  # j above i
        return above.sum(axis=1) + 1, n - above.sum(axis=0)

    def _places_of_draws(self, level: float) -> tuple[Places, Places]:
        """Return the first and last places of the items in ``level`` of the draws.

        Extremes of the draws themselves cover less with more items: of 100 items, most draws have
        some item at an extreme place of all draws.
        """
        places = self._places + 1.0
        mean, spread = places.mean(axis=0), places.std(axis=0) + 0.5
        limit = np.quantile(np.abs((places - mean) / spread).max(axis=1), level, method="higher")
        reach = limit * spread + 1e-9  # against rounding
        first = np.maximum(np.ceil(mean - reach), 1)
        last = np.minimum(np.floor(mean + reach), mean.size)
        return first.astype(np.intp), last.astype(np.intp)


def places_of(strengths: Floats) -> NDArray[np.int32]:
    """Return the places from 0 of the columns of each row, shape (rows, n)."""
    order = np.argsort(-strengths, axis=1, kind="stable")
    places = np.empty(order.shape, dtype=np.int32)
    np.put_along_axis(places, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
    return places


def check_level(level: float) -> None:
    """Raise ValueError for a level that is not a probability."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}")
