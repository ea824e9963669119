"""Click models: shared base class, and click-through rates."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np
from scipy.special import betaincinv
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankcore._core.numbers import Floats
from rankcore._core.params import COUNT, FLAG, Constraints, Real, check_params
from rankcore.clicks._counts import Pairs, clicks, count
from rankcore.clicks.log import ClickLog, Log, windows

# Quantile of the normal distribution for intervals of 95%.
Z = 1.959963984540054


class ClickModel(BaseEstimator):
    """A model of the clicks in a session. Not public.

    A subclass has ``fit`` and ``_probabilities``; ``_pairs`` are its documents of queries.
    """

    _constraints: ClassVar[Constraints] = {
        "simplified": FLAG,
        "continuation": Real(0, 1) | None,
        "smoothing": Real(0),
        "tol": Real(0),
        "max_iter": COUNT,
    }
    _pairs: Pairs
    smoothing: float

    @abstractmethod
    def _probabilities(self, log: ClickLog) -> Floats:
        """Compute `click_probabilities` of a log in memory."""

    @abstractmethod
    def _evidence(self) -> tuple[Floats, Floats]:
        """Return each document's relevance, and the number of observations with its variance."""

    def click_probabilities(self, log: ClickLog) -> Floats:
        """Predict the marginal probability of a click on each document.

        Parameters
        ----------
        log : ClickLog
            Documents of queries that were not in the log of the fit get mean parameters.

        Returns
        -------
        ndarray of float64, shape (n_impressions,)
        """
        check_is_fitted(self)
        return self._probabilities(log)

    def log_likelihood(self, log: Log) -> float:
        """Compute the natural logarithm of the probability of all clicks.

        Parameters
        ----------
        log : ClickLog or windows of one

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return float(sum(self._log_likelihood(window) for window in windows(log)))

    def _log_likelihood(self, log: ClickLog) -> float:
        p = self._probabilities(log)
        with np.errstate(divide="ignore"):
            return float(np.log(np.where(log.clicked, p, 1.0 - p)).sum())

    def perplexity(self, log: Log) -> Floats:
        """Compute the perplexity of clicks at each position: 1 for certain, 2 for random ones.

        It is ``2**-m``, where m is the mean binary logarithm of the marginal probability of the
        observed event, click or no click.

        Parameters
        ----------
        log : ClickLog or windows of one

        Returns
        -------
        ndarray of float64, shape (n_positions,)
            NaN at positions without impressions.
        """
        check_is_fitted(self)
        sums, shown = np.zeros(0), np.zeros(0)
        for window in windows(log):
            p = self._probabilities(window)
            with np.errstate(divide="ignore"):
                bits = np.log2(np.where(window.clicked, p, 1.0 - p))
            place = window.position - 1
            n = max(shown.size, int(window.position.max()))
            sums = np.pad(sums, (0, n - sums.size)) + np.bincount(place, bits, n)
            shown = np.pad(shown, (0, n - shown.size)) + np.bincount(place, minlength=n)
        with np.errstate(invalid="ignore"):
            return np.asarray(2.0 ** -(sums / shown))


class ClickRates(ClickModel):
    """Click-through rates: the baseline of click models.

    Parameters
    ----------
    by : {"document", "position", "all"}, default="document"
        One rate for each document of a query, for each position, or for all impressions.
    smoothing : float, default=1.0
        Number of impressions with and without a click added to each rate.

    Attributes
    ----------
    rate_ : ndarray of float64
        Rates, shape (n_pairs,), (n_positions,) or (1,).
    interval_ : ndarray of float64, shape (n, 2)
        95% intervals by the posterior of Jeffreys' prior.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, ClickRates
    >>> log = ClickLog(["q"] * 4, [*"abab"], [1, 2, 1, 2], [1, 0, 1, 1])
    >>> ClickRates("position", smoothing=0).fit(log).rate_
    array([1. , 0.5])
    """

    def __init__(
        self, by: Literal["document", "position", "all"] = "document", smoothing: float = 1.0
    ) -> None:
        self.by = by
        self.smoothing = smoothing

    def fit(self, log: Log) -> Self:
        """Learn from a log.

        Parameters
        ----------
        log : ClickLog or windows of one

        Returns
        -------
        self
        """
        check_params(self)
        counts = count(log, clicks, 2)
        if self.by == "document":
            events = counts.by_pair()
        elif self.by == "position":
            events = counts.by_position()
        else:
            events = counts.events.sum(axis=0)[None]
        self._pairs = counts.pairs
        shown = events.sum(axis=1)
        clicked = events[:, 1]
        with np.errstate(invalid="ignore"):
            self.rate_ = (clicked + self.smoothing) / (shown + 2 * self.smoothing)
        self._overall = float(clicked.sum() / shown.sum())
        self.interval_ = interval(clicked, shown)
        self._shown = shown
        return self

    def _evidence(self) -> tuple[Floats, Floats]:
        if self.by != "document":
            raise ValueError(
                "relevance requires rates by document, as of ClickRates('document'); got "
                f"by={self.by!r}"
            )
        return self.rate_, self._shown

    def _probabilities(self, log: ClickLog) -> Floats:
        # The last rate is for unknown documents or positions.
        rates = np.append(self.rate_, self._overall)
        if self.by == "all":
            return np.full(len(log), rates[0])
        if self.by == "position":
            return rates[np.minimum(log.position, rates.size) - 1]
        return rates[self._pairs.of(log)]


def interval(happened: Floats, trials: Floats) -> Floats:
    """Compute 95% intervals of probabilities from posteriors of Jeffreys' prior, shape (n, 2)."""
    missed = np.maximum(trials - happened, 0.0)
    low = betaincinv(happened + 0.5, missed + 0.5, 0.025)
    high = betaincinv(happened + 0.5, missed + 0.5, 0.975)
    return np.stack([np.where(happened <= 0, 0.0, low), np.where(missed <= 0, 1.0, high)], axis=1)
