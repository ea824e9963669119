"""What is read from the ratings of a ranking: strengths, places, and who is in the top."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankcore.preference.forms import Places
from rankcore.preference.games import ratings_of_pairs
from rankcore.preference.ratings import Ratings


class RatedResults:
    """Results of a ranker that come from a Bradley-Terry fit of its answers."""

    order_: Places
    pairs_: Places
    degrees_: NDArray[np.float64]

    @cached_property
    def ratings_(self) -> Ratings:
        """A Bradley-Terry fit of the answers."""
        return ratings_of_pairs(self.order_.size, self.pairs_, self.degrees_)

    @property
    def ranking_(self) -> Places:
        """Positions of the items in the order found; another name of `order_`."""
        return self.order_

    @property
    def scores_(self) -> NDArray[np.float64]:
        """Strengths of the items."""
        return self.ratings_.scores

    @property
    def standard_errors_(self) -> NDArray[np.float64]:
        """Standard errors of the strengths."""
        return self.ratings_.standard_errors

    @property
    def place_interval_(self) -> Places:
        """First and last place of each item, 1 for the strongest, at a credibility of 90%."""
        return self.ratings_.place_interval()

    def probability_of_top(self, k: int) -> NDArray[np.float64]:
        """Probability of each item to be one of the k strongest.

        Parameters
        ----------
        k : int

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        return self.ratings_.probability_of_top(k)
