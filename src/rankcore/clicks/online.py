"""Learning while users click: pairwise differentiable gradient descent."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from rankcore._core.numbers import Floats, as_reals
from rankcore._core.params import check_count, check_real


class PairwiseGradientRanker(BaseEstimator):
    """A linear ranker that learns from the clicks on its own lists.

    It shows lists drawn by its scores, better documents more often on top, and moves its weights
    towards clicked documents and away from those that were seen and not clicked. It explores only
    as far as it is in doubt, and needs no propensities.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Length of steps, above 0.
    length : int, default=10
        Maximum number of documents of a list.
    alpha : float, default=0.02
        Shrinkage, at least 0: each step divides the weights by 1 + learning_rate * alpha. Without
        it, weights grow with the impressions of the same queries and fit their chance relevance.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights of predictions: the mean of those after each impression, which counts the more the
        later it was.
    list_coef_ : ndarray of float64, shape (n_features,)
        Weights of the next list; before the first impression all documents are alike.
    n_features_in_ : int
    t_ : int
        Impressions learned from.

    Notes
    -----
    Pairwise differentiable gradient descent (Oosterhuis and de Rijke, 2018). A list R is drawn from
    the Plackett-Luce model of the scores f. A clicked document k is preferred to each document l
    without a click, above the last click or directly below it. The step of the pair is the gradient
    of its probability exp(f_k) / (exp(f_k) + exp(f_l)), times P(R*) / (P(R) + P(R*)), where R* is R
    with the two documents swapped: so a pair counts the same in expectation whichever of the two
    was on top. Constant steps keep the weights of lists in motion; their mean is the better ranker.
    Impressions without such a pair change nothing.
    Bring features to one scale, as by ``StandardScaler``. O(n_documents n_features +
    length^3) for an impression. Plain form: ``tests/reference/pdgd.py``, ``gradient``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.clicks.online import PairwiseGradientRanker
    >>> rng, ranker = np.random.default_rng(0), PairwiseGradientRanker(length=5)
    >>> for seed in range(500):
    ...     X = rng.normal(size=(20, 3))
    ...     shown = ranker.rank(X, seed=seed)
    ...     clicked = X[shown, 1] > 1  # what users like
    ...     ranker = ranker.partial_fit(X, shown, clicked)
    >>> int(np.argmax(ranker.coef_))
    1
    """

    def __init__(
        self, learning_rate: float = 0.1, *, length: int = 10, alpha: float = 0.02
    ) -> None:
        self.learning_rate = learning_rate
        self.length = length
        self.alpha = alpha

    def rank(self, X: ArrayLike, *, seed: int) -> NDArray[np.intp]:
        """Draw a list for an impression.

        Parameters
        ----------
        X : array-like, shape (n_documents, n_features)
            Documents of a query.
        seed : int
            Another one for each impression; the same gives the same list.

        Returns
        -------
        ndarray of intp, shape (min(length, n_documents),)
            Rows of X, best first.
        """
        check_count(self.length, "length")
        rows = self._rows(X)
        drawn = hasattr(self, "list_coef_")
        scores = rows @ self.list_coef_ if drawn else np.zeros(len(rows))
        # The order of scores with Gumbel noise is one of the Plackett-Luce model.
        noisy = scores + np.random.default_rng(seed).gumbel(size=len(rows))
        return np.argsort(-noisy, kind="stable")[: self.length]

    def partial_fit(self, X: ArrayLike, shown: ArrayLike, clicked: ArrayLike) -> Self:
        """Learn from an impression.

        Parameters
        ----------
        X : array-like, shape (n_documents, n_features)
            Documents of the query, as for `rank`.
        shown : array-like of int, shape (n_shown,)
            The list that `rank` drew.
        clicked : array-like of bool, shape (n_shown,)
            Or 0 and 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For features that are not finite or of another number than before, a list with a row
            that is not there or is there twice, and clicks of another length or value.
        """
        check_real(self.learning_rate, "learning_rate", np.nextafter(0, 1))
        check_real(self.alpha, "alpha", 0.0)
        rows = self._rows(X)
        places, clicks = _checked(shown, clicked, len(rows))
        weights = getattr(self, "list_coef_", np.zeros(rows.shape[1]))
        step = _gradient(rows @ weights, places, clicks)
        moved = weights
        if step.any():
            moved = weights + self.learning_rate * (step @ rows[places])
            moved /= 1.0 + self.learning_rate * self.alpha
        if not np.isfinite(moved).all():
            raise ValueError("weights would overflow: bring features to one scale")
        self.list_coef_: Floats = moved
        self.n_features_in_: int = rows.shape[1]
        self.t_: int = getattr(self, "t_", 0) + 1
        # Impression s has the weight s.
        mean = getattr(self, "coef_", weights)
        self.coef_: Floats = mean + (moved - mean) * (2.0 / (self.t_ + 1))
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Scores of documents, higher for better.

        Parameters
        ----------
        X : array-like, shape (n_documents, n_features)

        Returns
        -------
        ndarray of float64, shape (n_documents,)
        """
        if not hasattr(self, "coef_"):
            raise NotFittedError("partial_fit must learn from an impression first")
        return np.asarray(self._rows(X) @ self.coef_)

    def _rows(self, X: Any) -> Floats:
        rows = np.asarray(as_reals(X, "X"), dtype=np.float64)
        if rows.ndim != 2 or not rows.size:
            raise ValueError(f"X must have documents and features; found shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("X must be finite")
        known = getattr(self, "list_coef_", rows[0]).size
        if rows.shape[1] != known:
            raise ValueError(f"X must have {known} features, as before; found {rows.shape[1]}")
        return rows


def _checked(shown: Any, clicked: Any, n: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    places = as_reals(shown, "shown")
    if places.ndim != 1 or places.dtype.kind not in "iu" or len({*places.tolist()}) < places.size:
        raise ValueError("shown must be different integers, rows of X")
    if places.size and not 0 <= places.min() <= places.max() < n:
        raise ValueError(f"shown must be rows of X, 0 to {n - 1}")
    clicks = as_reals(clicked, "clicked")
    if clicks.shape != places.shape or not np.isin(clicks, (0, 1)).all():
        raise ValueError(f"clicked must be {places.size} values of 0 or 1, one per document shown")
    return places.astype(np.intp), clicks.astype(bool)


def _gradient(scores: Floats, shown: NDArray[np.intp], clicked: NDArray[np.bool_]) -> Floats:
    """By how much each score of a list is to grow."""
    step = np.zeros(shown.size)
    if not clicked.any() or clicked.all():
        return step
    last = int(np.flatnonzero(clicked)[-1])
    winners, losers = np.flatnonzero(clicked), np.flatnonzero(~clicked[: last + 2])
    if not losers.size:
        return step
    strength = np.exp(scores - scores.max())
    listed = strength[shown]
    # What is left at each place: of the list from there on, and of what was not shown.
    rest = np.delete(strength, shown).sum()
    left = rest + listed[::-1].cumsum()[::-1]
    won, lost = (each.ravel() for each in np.meshgrid(winners, losers, indexing="ij"))
    above, below = np.minimum(won, lost), np.maximum(won, lost)
    # The swap changes what is left behind the upper place, down to the lower one.
    place = np.arange(shown.size)
    between = (place > above[:, np.newaxis]) & (place <= below[:, np.newaxis])
    change = (listed[above] - listed[below])[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(between, np.log(left) - np.log(left + change), 0.0).sum(axis=1)
        gap = scores[shown[won]] - scores[shown[lost]]
        rho = 1.0 / (1.0 + np.exp(-ratios))
        size = rho / (2.0 + np.exp(gap) + np.exp(-gap))
    size = np.where(np.isfinite(size), size, 0.0)
    np.add.at(step, won, size)
    np.add.at(step, lost, -size)
    return step
