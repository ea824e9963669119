"""Seeded simulation of clicks by click models with known parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import Seed
from rankcore._core.ids import numbered
from rankcore._core.numbers import Floats, as_vector, check_lengths, ranges
from rankcore._core.params import as_generator, check_option, check_real
from rankcore._ext.clicks import bayesian_clicks
from rankcore.clicks.log import ClickLog

MODELS = ("position", "cascade", "bayesian")


@dataclass(frozen=True)
class User:
    """Click behaviour of a simulated user.

    Parameters
    ----------
    model : {"position", "cascade", "bayesian"}, default="position"
        "position": a document at position p is examined with probability ``examination[p - 1]``,
        independent of other documents. "cascade": documents are examined from the top to the first
        click. "bayesian": documents are examined from the top; a click satisfies with some
        probability, which ends the session; otherwise the user continues with probability
        ``continuation``.
    examination : array-like of float, optional
        For "position": probabilities by position, 0 beyond the last. None: 1 / p.
    trust : array-like of float, optional
        For "position": probabilities by position of a click on an examined document that is not
        attractive. None: 0.
    continuation : float, default=1.0
        For "bayesian". 1 gives the simplified model.

    Examples
    --------
    >>> from rankcore.clicks import User
    >>> User("bayesian", continuation=0.9).model
    'bayesian'
    """

    model: Literal["position", "cascade", "bayesian"] = "position"
    examination: ArrayLike | None = None
    trust: ArrayLike | None = None
    continuation: float = 1.0

    def __post_init__(self) -> None:
        check_option(self.model, "model", MODELS)
        check_real(self.continuation, "continuation", 0.0, 1.0)
        for name in ("examination", "trust"):
            value = getattr(self, name)
            if value is not None:
                _probabilities(value, name, None)


def simulate_clicks(
    log: ClickLog,
    attraction: ArrayLike,
    *,
    user: User | None = None,
    satisfaction: ArrayLike | None = None,
    random_state: Seed | None = None,
) -> ClickLog:
    """Draw clicks on the impressions of a log from a click model.

    Parameters
    ----------
    log : ClickLog
        Impressions; existing clicks are ignored.
    attraction : array-like of float, shape (n_impressions,)
        Probability of a click on each document if examined.
    user : User, optional
        How the user clicks. None: ``User()``.
    satisfaction : array-like of float, shape (n_impressions,), optional
        For a "bayesian" user: probability that a click satisfies. None: 1 / 2.
    random_state : int or numpy Generator, optional
        The same seed gives the same clicks on every platform.

    Returns
    -------
    ClickLog

    Raises
    ------
    ValueError
        For numbers that are not probabilities.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, User, simulate_clicks
    >>> log = ClickLog(["q"] * 6, list("abcabc"), [1, 2, 3, 1, 2, 3], [0] * 6)
    >>> simulate_clicks(log, [0.5] * 6, user=User("cascade"), random_state=0).clicked
    array([False,  True, False, False, False,  True])
    """
    user = User() if user is None else user
    generator = as_generator(random_state)
    attractive = _probabilities(attraction, "attraction", len(log))
    draws = generator.random((len(log), 3))
    if user.model == "position":
        examined = _by_position(user.examination, log.position, "examination")
        trusted: Floats | float = 0.0
        if user.trust is not None:
            trusted = _by_position(user.trust, log.position, "trust")
        return log.with_clicks(draws[:, 0] < examined * (attractive + (1.0 - attractive) * trusted))
    satisfying = np.full(len(log), 0.5)
    if user.model == "cascade":
        satisfying[:] = 1.0
    elif satisfaction is not None:
        satisfying = _probabilities(satisfaction, "satisfaction", len(log))
    onward = user.continuation if user.model == "bayesian" else 1.0
    clicked = np.empty(len(log), dtype=np.uint8)
    bayesian_clicks(log.bounds, attractive, satisfying, onward, draws, clicked)
    return log.with_clicks(clicked != 0)


def simulate_sessions(
    qid: ArrayLike,
    docid: ArrayLike,
    score: ArrayLike,
    n_sessions: int,
    *,
    depth: int = 10,
    swap: float = 0.0,
    random_state: Seed | None = None,
) -> tuple[ClickLog, NDArray[np.int64]]:
    """Simulate sessions that show rankings, for queries drawn with equal probability.

    Parameters
    ----------
    qid, docid : array-like of int or str, shape (n_rows,)
        Query and document of each row.
    score : array-like of float, shape (n_rows,)
        Lists are in descending order of scores; ties are in row order.
    n_sessions : int
        Number of lists to show.
    depth : int, default=10
        Maximum number of documents shown.
    swap : float, default=0.0
        Probability of swapping the document at position 1 with one at a random position, an
        experiment that identifies propensities.
    random_state : int or numpy Generator, optional
        Seed of the queries and swaps.

    Returns
    -------
    log : ClickLog
        Without clicks, for `simulate_clicks`.
    row : ndarray of int64, shape (n_impressions,)
        The row of each impression.

    Raises
    ------
    ValueError
        If lengths differ, or numbers are out of range.

    Examples
    --------
    >>> from rankcore.clicks import simulate_sessions
    >>> log, row = simulate_sessions([1, 1, 1], [7, 8, 9], [0.5, 0.9, 0.1], 2, depth=2)
    >>> row
    array([1, 0, 1, 0])
    """
    check_real(swap, "swap", 0.0, 1.0)
    if n_sessions < 1 or depth < 1:
        raise ValueError("n_sessions and depth must be at least 1")
    generator = as_generator(random_state)
    codes, query, document = numbered(qid, docid)
    scores = as_vector(score, "score")
    check_lengths(qid=query, score=scores)
    order = np.lexsort((-scores, query))
    first = np.searchsorted(query[order], np.arange(len(codes["query"])))
    sizes = np.minimum(np.diff(np.append(first, query.size)), depth)
    drawn = generator.integers(first.size, size=n_sessions)
    sizes, first = sizes[drawn], first[drawn]
    row = order[ranges(first, sizes)]
    tops = np.cumsum(sizes) - sizes
    other = tops + (generator.random(n_sessions) * sizes).astype(np.int64)
    swapped = np.flatnonzero(generator.random(n_sessions) < swap)
    top, other = tops[swapped], other[swapped]
    row[top], row[other] = row[other], row[top]
    columns: dict[str, NDArray[Any]] = {
        "query": query[row],
        "document": document[row],
        "position": ranges(1, sizes),
        "clicked": np.zeros(row.size),
        "session": np.repeat(np.arange(n_sessions), sizes),
    }
    return ClickLog._of(columns, codes, "row {}".format), row


def _probabilities(values: ArrayLike, name: str, n: int | None) -> Floats:
    probabilities = np.ascontiguousarray(values, dtype=np.float64)
    if probabilities.ndim != 1 or (n is not None and probabilities.size != n):
        raise ValueError(f"{name} must have shape ({n},); got {probabilities.shape}")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise ValueError(f"{name} must be probabilities from 0 to 1")
    return probabilities


def _by_position(behaviour: ArrayLike | None, position: NDArray[np.int32], name: str) -> Floats:
    if behaviour is None:
        return np.asarray(1.0 / position)
    by_position = np.zeros(int(position.max()))
    values = _probabilities(behaviour, name, None)[: by_position.size]
    by_position[: values.size] = values
    return by_position[position - 1]
