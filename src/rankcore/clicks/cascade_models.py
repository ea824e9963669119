"""Models of users who examine a list from the top: cascade and dynamic Bayesian network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.params import check_params
from rankcore._ext.clicks import bayesian_pass, bayesian_probabilities
from rankcore.clicks._counts import Counts, count
from rankcore.clicks._maximum import MARGIN, maximise
from rankcore.clicks.log import ClickLog, Log, windows
from rankcore.clicks.models import ClickModel, Z, interval

# Events of impressions.
UNSEEN = 0
SKIPPED = 1
CLICKED = 2
SATISFIED = 3


def clicks_before(log: ClickLog) -> NDArray[np.int64]:
    """Count the clicks above each impression in its session."""
    before: NDArray[np.int64] = np.cumsum(log.clicked) - log.clicked
    return before - np.repeat(before[log.bounds[:-1]], np.diff(log.bounds))


def first_clicks(log: ClickLog) -> NDArray[np.uint8]:
    """Return events by the cascade model: documents after the first click are unseen."""
    events = np.where(log.clicked, CLICKED, SKIPPED)
    return np.where(clicks_before(log) == 0, events, UNSEEN).astype(np.uint8)


def last_clicks(log: ClickLog) -> NDArray[np.uint8]:
    """Return events by the simplified model: the last click satisfies, the rest is unseen."""
    in_sessions = np.add.reduceat(log.clicked.astype(np.int64), log.bounds[:-1])
    before = clicks_before(log)
    total = np.repeat(in_sessions, np.diff(log.bounds))
    events = np.where(log.clicked, CLICKED, SKIPPED)
    events[log.clicked & (before == total - 1)] = SATISFIED
    events[(before == total) & (total > 0)] = UNSEEN
    return events.astype(np.uint8)


class _TopDown(ClickModel):
    """A user who examines documents from the top. Not public."""

    attraction_: Floats
    satisfaction_: Floats
    continuation_: float

    def _take(self, counts: Counts, attraction: Floats, satisfaction: Floats) -> None:
        """Store the parameters learned for each document of a query."""
        self._pairs = counts.pairs
        self.attraction_ = attraction
        self.satisfaction_ = satisfaction
        self.query_ = counts.pairs.query_ids
        self.document_ = counts.pairs.document_ids
        with np.errstate(invalid="ignore"):
            self._mean_attraction = float(np.nanmean(attraction))
            self._mean_satisfaction = float(np.nanmean(satisfaction))

    def _parameter_numbers(self, log: ClickLog) -> NDArray[np.int32]:
        """Return each impression's place in the parameters of `_with_mean`."""
        pair = self._pairs.of(log)
        return np.where(pair < 0, self.attraction_.size, pair).astype(np.int32)

    def _probabilities(self, log: ClickLog) -> Floats:
        probabilities = np.empty(len(log))
        bayesian_probabilities(
            log.bounds,
            self._parameter_numbers(log),
            _with_mean(self.attraction_, self._mean_attraction),
            _with_mean(self.satisfaction_, self._mean_satisfaction),
            self.continuation_,
            probabilities,
        )
        return probabilities

    def _log_likelihood(self, log: ClickLog) -> float:
        return _pass(
            log,
            self._parameter_numbers(log),
            _with_mean(self.attraction_, self._mean_attraction),
            _with_mean(self.satisfaction_, self._mean_satisfaction),
            self.continuation_,
            np.zeros((self.attraction_.size + 1, 4)),
            np.zeros(3),
        )


def _with_mean(parameters: Floats, mean: float) -> Floats:
    """Append the mean, for documents that were not in the log."""
    return np.append(np.nan_to_num(parameters), [0.0 if np.isnan(mean) else mean])


class CascadeModel(_TopDown):
    """Cascade model: the user examines documents from the top until the first click.

    Parameters
    ----------
    smoothing : float, default=1.0
        Number of attractive and of unattractive examinations added to each document of a query. 0
        gives maximum likelihood.

    Attributes
    ----------
    attraction_ : ndarray of float64, shape (n_pairs,)
        Probability of a click on each document of a query if examined. NaN if it was never examined
        and ``smoothing`` is 0.
    attraction_interval_ : ndarray of float64, shape (n_pairs, 2)
        95% intervals by the posterior of Jeffreys' prior.
    query_, document_ : ndarray, shape (n_pairs,)
        Ids of the documents of queries.

    Notes
    -----
    Clicks after the first are impossible in this model: ``fit`` ignores them, and the likelihood of
    a log with such clicks is 0. O(n log n).

    Plain form: ``tests/reference/clicks.py``, ``cascade``.

    References
    ----------
    .. [1] N. Craswell, O. Zoeter, M. Taylor and B. Ramsey. "An Experimental Comparison of Click
       Position-Bias Models". WSDM 2008.

    Examples
    --------
    >>> from rankcore.clicks import CascadeModel, ClickLog
    >>> log = ClickLog(["q"] * 4, [*"abab"], [1, 2, 1, 2], [0, 1, 1, 0])
    >>> CascadeModel(smoothing=0).fit(log).attraction_
    array([0.5, 1. ])
    """

    def __init__(self, smoothing: float = 1.0) -> None:
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
        counts = count(log, first_clicks, 3, by_position=False)
        clicked = counts.events[:, CLICKED]
        examined = clicked + counts.events[:, SKIPPED]
        self.continuation_ = 1.0
        self._take(counts, _rate(clicked, examined, self.smoothing), np.ones(clicked.size))
        self.attraction_interval_ = interval(clicked, examined)
        self._equivalent_counts = [examined]
        return self

    def _evidence(self) -> tuple[Floats, Floats]:
        return self.attraction_, self._equivalent_counts[0]


class DynamicBayesianModel(_TopDown):
    """Dynamic Bayesian network: the user examines documents from the top until a click satisfies.

    After a click the user is satisfied with the probability ``satisfaction_`` of the document.
    Otherwise, and after documents that are not clicked, the next one is examined with probability
    ``continuation_``.

    Parameters
    ----------
    simplified : bool, default=False
        Count instead of maximising the likelihood: documents down to the last click (all if there
        is none) are assumed examined, and the last click satisfied. This is fast, assumes a
        continuation of 1, and overestimates satisfaction if the rest of a list does not attract.
    continuation : float, optional
        A known ``continuation_``; None estimates it.
    smoothing : float, default=1.0
        Number of attractive and unattractive examinations, and of satisfied and unsatisfied clicks,
        added to each document of a query. 0 gives maximum likelihood.
    tol : float, default=1e-6
        Passes end when no probability changes by more than this.
    max_iter : int, default=500
        Maximum number of passes.

    Attributes
    ----------
    attraction_, satisfaction_ : ndarray of float64, shape (n_pairs,)
        Probabilities for each document of a query; NaN without examinations or clicks.
    attraction_interval_, satisfaction_interval_ : ndarray of float64, shape (n_pairs, 2)
        95% intervals by the posterior of Jeffreys' prior, for the number of observations with the
        same information, from the squared derivatives of the log-likelihood of sessions by each
        parameter.
    continuation_ : float
    continuation_interval_ : ndarray of float64, shape (2,)
    query_, document_ : ndarray, shape (n_pairs,)
        Ids of the documents of queries.
    n_iter_ : int
        Number of passes; 1 if ``simplified``.

    Notes
    -----
    A pass reads all sessions, O(n). Memory beyond the log: some numbers for each document of a
    query; a log in windows is read again in each pass.

    Plain form: ``tests/reference/clicks.py``, ``bayesian_posteriors``.

    References
    ----------
    .. [1] O. Chapelle and Y. Zhang. "A Dynamic Bayesian Network Click Model for Web Search
       Ranking". WWW 2009.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, DynamicBayesianModel
    >>> log = ClickLog(["q"] * 4, [*"abab"], [1, 2, 1, 2], [1, 1, 1, 0])
    >>> model = DynamicBayesianModel(simplified=True, smoothing=0).fit(log)
    >>> model.attraction_, model.satisfaction_
    (array([1., 1.]), array([0.5, 1. ]))
    """

    def __init__(
        self,
        simplified: bool = False,
        continuation: float | None = None,
        smoothing: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        self.simplified = simplified
        self.continuation = continuation
        self.smoothing = smoothing
        self.tol = tol
        self.max_iter = max_iter

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
        counts = count(log, last_clicks, 4, by_position=False)
        satisfied = counts.events[:, SATISFIED]
        clicked = counts.events[:, CLICKED] + satisfied
        examined = clicked + counts.events[:, SKIPPED]
        self.continuation_ = 1.0
        self.n_iter_ = 1
        # Numbers of observed outcomes with the same information on attraction and satisfaction.
        equivalent = [examined, clicked]
        self.continuation_interval_ = np.full(2, self.continuation_)
        if not self.simplified:
            expected, going = self._maximise(log, counts, clicked)
            examined = expected[:, 0]
            satisfied = expected[:, 1]
            equivalent = _equivalent_counts(clicked, expected)
            if self.continuation is None:
                spread = Z / np.sqrt(max(going[2], MARGIN))
                ends = self.continuation_ + np.array([-spread, spread])
                self.continuation_interval_ = np.clip(ends, 0.0, 1.0)
        b = self.smoothing
        self._take(counts, _rate(clicked, examined, b), _rate(satisfied, clicked, b))
        for_attraction, for_satisfaction = equivalent
        attracted = _rate(clicked, examined, 0.0) * for_attraction
        self.attraction_interval_ = interval(np.nan_to_num(attracted), for_attraction)
        satisfying = _rate(satisfied, clicked, 0.0) * for_satisfaction
        self.satisfaction_interval_ = interval(np.nan_to_num(satisfying), for_satisfaction)
        self._equivalent_counts = equivalent
        return self

    def _evidence(self) -> tuple[Floats, Floats]:
        a = self.attraction_
        s = self.satisfaction_
        relevance = a * s
        attraction_counts, satisfaction_counts = self._equivalent_counts
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = (
                s**2 * a * (1 - a) / attraction_counts + a**2 * s * (1 - s) / satisfaction_counts
            )
            trials = relevance * (1 - relevance) / variance
        return relevance, np.where(np.isfinite(trials), trials, attraction_counts)

    def _maximise(self, log: Log, counts: Counts, clicked: Floats) -> tuple[Floats, Floats]:
        """Return expectations, for documents and for continuation, at the maximum likelihood."""
        n = clicked.size
        b = self.smoothing
        fixed = self.continuation
        kept = counts.pairs.of(log).astype(np.int32) if isinstance(log, ClickLog) else None
        expected = np.zeros((n, 4))
        going = np.zeros(3)

        def step(at: Floats) -> tuple[Floats, float]:
            expected[:] = 0.0
            going[:] = 0.0
            value = 0.0
            for window in windows(log):
                of = counts.pairs.of(window).astype(np.int32) if kept is None else kept
                value += _pass(window, of, at[:n], at[n:-1], float(at[-1]), expected, going)
            if b:
                value += b * float(np.log(at[:-1] * (1.0 - at[:-1])).sum())
            then = fixed if fixed is not None else going[1] / max(going[0], MARGIN)
            following = np.concatenate(
                [_rate(clicked, expected[:, 0], b), _rate(expected[:, 1], clicked, b), [then]]
            )
            # A known continuation may be 1.
            return np.append(np.clip(np.nan_to_num(following[:-1]), 0.0, 1.0 - MARGIN), then), value

        start = np.full(2 * n + 1, 0.5)
        start[:n] = np.where(clicked > 0, 0.5, 0.0) if not b else 0.5
        start[-1] = 0.9 if fixed is None else fixed
        maximum, self.n_iter_ = maximise(step, start, self.tol, self.max_iter)
        step(maximum)
        self.continuation_ = float(maximum[-1])
        return expected, going


def _pass(
    log: ClickLog,
    of: Any,
    attraction: Floats,
    satisfaction: Floats,
    continuation: float,
    expected: Floats,
    going: Floats,
) -> float:
    """Return the log-likelihood of the sessions of a log; add their expectations."""
    longest = np.empty(int(np.diff(log.bounds).max()) + 1)  # memory of probabilities
    clicked = log.clicked.view(np.uint8)
    return float(
        bayesian_pass(
            log.bounds,
            of,
            clicked,
            attraction,
            satisfaction,
            continuation,
            expected,
            going,
            longest,
        )
    )


def _equivalent_counts(clicked: Floats, expected: Floats) -> list[Floats]:
    """Return the numbers of observed outcomes with the same information as the log."""
    examined = expected[:, 0]
    satisfied = expected[:, 1]
    a = _rate(clicked, examined, 0.0)
    s = _rate(satisfied, clicked, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The information of n outcomes is n / (p (1 - p)).
        attraction_counts = (1.0 - a) * clicked / a + a * expected[:, 2] / (1.0 - a)
        satisfaction_counts = s * (1.0 - s) * expected[:, 3]
    return [
        np.where((a > 0) & (a < 1), attraction_counts, examined),
        np.where((s > 0) & (s < 1), satisfaction_counts, clicked),
    ]


def _rate(happened: Floats, trials: Floats, smoothing: float) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray((happened + smoothing) / (trials + 2 * smoothing))
