"""Ratings from a table of comparisons that others have made."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rankcore.preference.forms import Places
from rankcore.preference.plackett_luce import Choices, Floats, Posterior, fit_choices
from rankcore.preference.ratings import Ratings

SCALE = 1.5


def rate(
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    degree: ArrayLike | None = None,
    judge: ArrayLike | None = None,
    scale: float = SCALE,
    disconnected: Literal["raise", "prior"] = "raise",
) -> Ratings:
    """Ratings of items from a table of comparisons, with standard errors.

    Parameters
    ----------
    winners, losers : array-like, shape (m,)
        Labels of two different items in each row: numbers or strings.
    degree : array-like of float, shape (m,), optional
        How much the winner won, in [0, 1]: 1/2 for a tie, below 1/2 if it lost. None: 1.
    judge : array-like, shape (m,), optional
        Who compared; the reliability of each judge is learned. None: one judge.
    scale : float
        Standard deviation of the normal prior of strengths; choix has it as
        ``alpha = 1 / (2 * scale**2)``.
    disconnected : {"raise", "prior"}
        What to do where no comparisons connect two groups of items, so that only the prior says
        which is better: raise, or let it; `Ratings.components` has the groups.

    Returns
    -------
    Ratings
        Items in sorted order.

    Raises
    ------
    ValueError
        For columns of different lengths, no rows, missing labels, an item compared with itself,
        degrees that are not in [0, 1], a scale that is not positive, or disconnected items.

    Notes
    -----
    Rows are added up by pairs first: time and memory grow with the different pairs.

    Examples
    --------
    >>> from rankcore.preference import rate
    >>> ratings = rate(["ann", "bob", "ann"], ["bob", "cyd", "cyd"], degree=[1.0, 0.5, 1.0])
    >>> dict(zip(ratings.items.tolist(), ratings.scores.round(2).tolist(), strict=True))
    {'ann': 0.91, 'bob': -0.46, 'cyd': -0.46}
    """
    tally = Tally()
    tally.add(winners, losers, degree=degree, judge=judge)
    return tally.ratings(scale=scale, disconnected=disconnected)


def ratings_of_pairs(n: int, pairs: Places, degrees: Floats) -> Ratings:
    """Ratings of n items by degrees to which the first of a pair precedes the second."""
    won, lost = degrees > 0, degrees < 1
    items = np.concatenate([pairs[won], pairs[lost, ::-1]])
    weights = np.concatenate([degrees[won], 1 - degrees[lost]])
    posterior = fit_choices(n, Choices(items, weights), scale=SCALE, tolerance=1e-8)
    counts = np.bincount(pairs.ravel(), minlength=n)
    return _ratings(np.arange(n), counts, _components(n, pairs), posterior)


def _ratings(
    items: NDArray[Any], counts: NDArray[Any], components: Places, posterior: Posterior
) -> Ratings:
    return Ratings(
        items=items,
        scores=posterior.theta,
        n_answers=counts.astype(np.float64),
        position_bias=0.0,
        reliability=posterior.reliability,
        components=components,
        _posterior=posterior,
    )


class Tally:
    """Comparisons added up by pair and judge, a block of rows at a time."""

    def __init__(self) -> None:
        self._items: dict[Any, int] = {}
        self._judges: dict[Any, int] = {}
        self._rows: NDArray[np.int64] = np.empty((0, 3), dtype=np.int64)
        self._weights: Floats = np.empty(0)

    def add(self, winners: Any, losers: Any, *, degree: Any = None, judge: Any = None) -> None:
        """Add rows; as `rate`."""
        won, lost = _labels("winners", winners), _labels("losers", losers)
        m = won.size
        by = None if judge is None else _labels("judge", judge)
        lengths = {"winners": m, "losers": lost.size}
        if by is not None:
            lengths["judge"] = by.size
        share = np.ones(m)
        if degree is not None:
            share = np.asarray(degree, dtype=np.float64)
            if share.ndim != 1:
                raise ValueError(f"degree must have one dimension; found shape {share.shape}")
            lengths["degree"] = share.size
            wrong = np.flatnonzero(~((share >= 0) & (share <= 1)))
            if wrong.size:
                row = int(wrong[0])
                raise ValueError(f"degree must be in [0, 1]; found {share[row]} in row {row}")
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must have the same length; found {lengths}")
        codes = _numbered(np.concatenate([won, lost]), self._items)
        won, lost = codes[:m], codes[m:]
        if (won == lost).any():
            row = int(np.flatnonzero(won == lost)[0])
            raise ValueError(f"an item must be compared with another one; row {row} has it twice")
        judges = np.zeros(m, dtype=np.int64) if by is None else _numbered(by, self._judges)
        rows = np.stack([won, lost, judges], axis=1)
        turned = np.stack([lost, won, judges], axis=1)
        for part, weights in ((rows, share), (turned, 1 - share)):
            used = weights > 0
            self._rows = np.concatenate([self._rows, part[used]])
            self._weights = np.concatenate([self._weights, weights[used]])
        self._add_up()

    def _add_up(self) -> None:
        """One row for each winner, loser and judge."""
        n, n_judges = max(1, len(self._items)), max(1, len(self._judges))
        key = (self._rows[:, 0] * n + self._rows[:, 1]) * n_judges + self._rows[:, 2]
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        self._weights = np.bincount(group, self._weights, first.size).astype(np.float64)
        self._rows = self._rows[first]

    def ratings(self, *, scale: float, disconnected: str) -> Ratings:
        """Fit what was added; as `rate`."""
        if disconnected not in ("raise", "prior"):
            raise ValueError(f'disconnected must be "raise" or "prior"; found {disconnected!r}')
        if not 0 < scale < np.inf:
            raise ValueError(f"scale must be positive and finite; found {scale!r}")
        if not self._items:
            raise ValueError("ratings need at least one comparison; found none")
        labels = np.array(list(self._items))
        in_order = np.argsort(labels, kind="stable")
        number = np.empty_like(in_order)
        number[in_order] = np.arange(labels.size)
        pairs: Places = number[self._rows[:, :2]]
        labels, n = labels[in_order], labels.size
        components = _components(n, pairs)
        groups = int(components.max()) + 1
        if groups > 1 and disconnected == "raise":
            some = [labels[np.flatnonzero(components == g)[0]].item() for g in range(2)]
            raise ValueError(
                f"comparisons must connect all items; found {groups} groups without comparisons "
                f"between them, such as those of {some[0]!r} and {some[1]!r}: rate each on its "
                'own, or let the prior decide with disconnected="prior"'
            )
        judges = self._rows[:, 2].astype(np.intp) if len(self._judges) > 1 else None
        posterior = fit_choices(
            n,
            Choices(pairs, self._weights, judges=judges),
            scale=scale,
            n_judges=max(1, len(self._judges)),
            tolerance=1e-10,
        )
        counts = np.bincount(pairs.ravel(), np.repeat(self._weights, 2), n)
        return _ratings(labels, counts, components, posterior)


def _components(n: int, pairs: Places) -> Places:
    """Numbers of the groups that comparisons connect."""
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)


def _labels(name: str, values: Any) -> NDArray[Any]:
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise ValueError(f"{name} must have one dimension; found shape {labels.shape}")
    if labels.dtype.kind == "O":
        odd = [label for label in labels.tolist() if not isinstance(label, str)]
        if odd:
            raise ValueError(f"{name} must be all numbers or all strings; found {odd[0]!r}")
        labels = labels.astype(np.str_)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} must be finite; found {labels[~np.isfinite(labels)][0]}")
    if labels.dtype.kind not in "biufU":
        raise ValueError(f"{name} must be numbers or strings; found dtype {labels.dtype}")
    return labels


def _numbered(labels: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """Numbers of labels, in the order of their first block; new ones are added to those known."""
    distinct, codes = np.unique(labels, return_inverse=True)
    numbers = [known.setdefault(label, len(known)) for label in distinct.tolist()]
    return np.array(numbers, dtype=np.int64)[codes.ravel()]
