"""Ratings with uncertainty: strengths, standard errors, places, and probabilities of the top."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from rankcore._core.docs import documented
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count
from rankcore.preference.equal_errors import EqualErrors
from rankcore.preference.forms import Places
from rankcore.preference.plackett_luce import SCALE, Posterior, choices_of, fit_choices

# Above this many items the covariance is not kept, and standard errors are estimated by probes.
_EXACT = 4000
_PROBES, _DRAWS = 64, 2000


@dataclass
class Ratings:
    """Strengths of items from comparisons, with uncertainties.

    Attributes
    ----------
    items : ndarray
        Labels of the items, or their positions.
    n_answers : ndarray of float64, shape (n,)
        Number of comparisons of each item; an order of several items counts as one.
    components : ndarray of intp, shape (n,)
        Items with the same number are connected by comparisons; others are ordered by the prior
        only.
    judges : ndarray, shape (n_judges,)
        Labels of the judges, or their positions.
    scores : ndarray of float64, shape (n,)
        Strengths: item i precedes item j with probability 1 / (1 + exp(scores[j] - scores[i])).
    position_bias : float
        Bias of judges for the item that is shown first, added to its strength.
    reliability : ndarray of float64, shape (n_judges,)
        Factor of differences of strengths for each judge: 1 for a typical judge, 0 for one whose
        answers are uninformative.

    Notes
    -----
    Scores are the posterior mode of the Bradley-Terry or Plackett-Luce model with a normal prior;
    their covariance is Laplace's approximation. Places are computed from 2,000 draws with a fixed
    seed. If the errors of a ranker's judge do not depend on the distance between items, or there
    are none, `ranking` is the order that contradicts the fewest answers instead of the order of the
    scores. Places are then computed from sampled orders, and `beats` and `expected_inversions` from
    moves of single items.

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
    n_answers: Floats
    components: Places
    judges: NDArray[Any]
    _posterior: Posterior = field(repr=False)
    _same: Places = field(repr=False)  # indices of strengths; identical items share one
    _orders: EqualErrors | None = field(default=None, repr=False)  # if they explain answers better
    scores: Floats = field(init=False)
    position_bias: float = field(init=False)
    reliability: Floats = field(init=False)

    def __post_init__(self) -> None:
        posterior = self._posterior
        self.scores = posterior.theta[self._same]
        self.position_bias, self.reliability = posterior.bias, posterior.reliability

    @property
    def ranking(self) -> Places:
        """Positions of the items by descending strength; ties in input order."""
        if self._orders is not None:
            return np.argsort(self._orders.place[self._same], kind="stable")
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the strengths, shape (n, n), about their mean."""
        covariance = self._posterior.covariance[np.ix_(self._same, self._same)]
        mean = covariance.sum(axis=0) / max(1, len(covariance))
        covariance -= mean
        covariance -= (mean - mean.sum() / max(1, mean.size))[:, None]
        return covariance

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of the strengths, about their mean; shape (n,).

        Above 4,000 items they are estimated from 64 probes, to about 2%.
        """
        if self.scores.size <= _EXACT:
            return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))
        return np.sqrt(self._posterior.variances(_PROBES))[self._same]

    def beats(self) -> Floats:
        """Probability that item i is stronger than item j, as entry (i, j).

        Returns
        -------
        ndarray of float64, shape (n, n)
        """
        if self._orders is not None:
            return self._orders.beats()[np.ix_(self._same, self._same)]
        variances = np.diagonal(self.covariance)
        spread = np.sqrt(np.maximum(variances[:, None] + variances - 2 * self.covariance, 0.0))
        apart = self.scores[:, None] - self.scores
        return ndtr(np.divide(apart, spread, out=np.zeros_like(apart), where=spread > 1e-12))

    def place_interval(self, level: float = 0.9) -> Places:
        """Credible interval of the place of each item, from 1 for the strongest.

        Parameters
        ----------
        level : float
            Credibility level, between 0 and 1.

        Returns
        -------
        ndarray of intp, shape (n, 2)

        Raises
        ------
        ValueError
            For a level out of range.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; found {level!r}")
        tail = (1 - level) / 2
        bounds = np.quantile(self._places, [tail, 1 - tail], axis=0, method="closest_observation")
        return (bounds.T + 1).astype(np.intp)

    def probability_of_top(self, k: int) -> Floats:
        """Probability that each item is among the k strongest.

        Parameters
        ----------
        k : int

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        ValueError
            For k below 1.
        """
        check_count(k, "k")
        return (self._places < k).mean(axis=0)

    @documented(probability_of_top)
    def certainty_of_top(self, k: int) -> float:
        """Probability that the first k of `ranking` are the k strongest, in any order.

        Returns
        -------
        float
        """
        check_count(k, "k")
        return float((self._places[:, self.ranking[:k]] < k).all(axis=1).mean())

    def expected_inversions(self) -> float:
        """Expected share of the pairs in the wrong order in `ranking`, in [0, 1/2]."""
        n = self.scores.size
        if n < 2:
            return 0.0
        beats = self.beats()
        wrong = np.minimum(beats, 1 - beats)
        wrong[self._same[:, None] == self._same] = 0.0  # identical items
        return float(wrong.sum() / (n * (n - 1)))

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """Places from 0, of draws from the posterior or of sampled orders, shape (draws, n)."""
        rng = np.random.default_rng(0)
        if self._orders is not None:
            draws = -self._orders.draws(rng).astype(np.float64)
        else:
            root = np.linalg.cholesky(self._posterior.covariance)
            draws = rng.standard_normal((_DRAWS, len(root))) @ root.T
            draws += self._posterior.theta
        order = np.argsort(-draws[:, self._same], axis=1, kind="stable")
        places = np.empty(order.shape, dtype=np.int32)
        np.put_along_axis(places, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
        return places


def components_of(n: int, pairs: Places) -> Places:
    """Component number of each item in the graph of pairs."""
    graph = coo_array((np.ones(len(pairs)), pairs.T), (n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


class RatedResults:
    """Attributes of a ranker from a Bradley-Terry fit of its answers."""

    order_: Places
    pairs_: Places
    degrees_: Floats

    @cached_property
    def ratings_(self) -> Ratings:
        """A Bradley-Terry fit of the answers."""
        n, pairs = self.order_.size, self.pairs_
        choices = replace(choices_of(pairs, self.degrees_), shown_first=None)
        posterior = fit_choices(n, choices, scale=SCALE, tolerance=1e-8)
        counts = np.bincount(pairs.ravel(), minlength=n).astype(np.float64)
        all_items, groups = np.arange(n), components_of(n, pairs)
        return Ratings(all_items, counts, groups, np.arange(1), posterior, all_items)

    @property
    def ranking_(self) -> Places:
        """Positions of the items in order; the same as `order_`."""
        return self.order_

    @property
    def scores_(self) -> Floats:
        """Strengths of the items."""
        return self.ratings_.scores

    @property
    def standard_errors_(self) -> Floats:
        """Standard errors of the strengths."""
        return self.ratings_.standard_errors

    @property
    def place_interval_(self) -> Places:
        """90% credible interval of the place of each item, from 1 for the strongest."""
        return self.ratings_.place_interval()

    @documented(Ratings.probability_of_top)
    def probability_of_top(self, k: int) -> Floats:
        """Probability that each item is among the k strongest."""
        return self.ratings_.probability_of_top(k)
