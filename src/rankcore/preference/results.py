"""Results of a ranking, and those that come from its ratings: strengths, places, the top."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.preference.forms import Places
from rankcore.preference.games import ratings_of_pairs
from rankcore.preference.ratings import Ratings
from rankcore.preference.running import CallRun, Run


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


def results_of(run: Run | CallRun, items: Any) -> dict[str, Any]:
    """Attributes of a ranker after a ranking, whether it was completed or not."""
    order, together = run.method.order(), run.method.together()
    pairs, degrees = run.answers()
    n = order.size
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n)
    upper = place[pairs[:, 0]] < place[pairs[:, 1]]
    agreement = np.tile(np.where(upper, degrees, 1.0 - degrees), 2)
    both = pairs.T.ravel()
    counts = np.bincount(both, minlength=n)
    mean = (np.bincount(both, agreement, n) + 0.5) / (counts + 1)
    unordered = (together - 1) / max(n - 1, 1)
    return {
        "order_": order,
        "complete_": run.complete,
        "n_calls_": run.ledger.n_calls,
        "n_reused_": run.ledger.n_reused,
        "n_rounds_": run.ledger.n_rounds,
        "certainty_": (1 - unordered) * mean + unordered * 0.5,
        "n_answers_": counts,
        "pairs_": pairs,
        "degrees_": degrees,
        "items_": items,
    }
