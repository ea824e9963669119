"""Ratings from a table of comparisons."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.ids import as_column
from rankcore._core.numbers import Floats, check_lengths
from rankcore.preference.forms import Places
from rankcore.preference.plackett_luce import SCALE, Choices, choices_of, fit_choices
from rankcore.preference.ratings import Ratings, components_of


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
        Degree of the win in [0, 1]: 1/2 for a tie, below 1/2 if the winner lost. None: 1.
    judge : array-like, shape (m,), optional
        Judge of each row; the reliability of each judge is learned. None: one judge.
    scale : float
        Standard deviation of the normal prior of strengths; in choix ``alpha = 1 / (2 *
        scale**2)``.
    disconnected : {"raise", "prior"}
        If no comparisons connect two groups of items: raise an error, or order the groups by the
        prior alone. `Ratings.components` has the groups.

    Returns
    -------
    Ratings
        Items in sorted order, judges in the order of `Ratings.judges`.

    Raises
    ------
    ValueError
        For columns of different lengths, no rows, missing labels, an item compared with itself,
        degrees that are not in [0, 1], a scale that is not positive, or disconnected items.

    Notes
    -----
    Rows are first summed by pair: time and memory grow with the number of distinct pairs.

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


class Tally:
    """Counts of comparisons by pair and judge, updated by blocks of rows."""

    def __init__(self, first_row: int = 0):
        self._n_rows = first_row  # number of the next row, for errors
        self._items: dict[Any, int] = {}
        self._judges: dict[Any, int] = {}
        self._rows: NDArray[np.int64] = np.empty((0, 3), dtype=np.int64)
        self._weights: Floats = np.empty(0)

    def add(self, winners: Any, losers: Any, *, degree: Any = None, judge: Any = None) -> None:
        """Add rows; parameters as in `rate`."""
        given = {"winners": winners, "losers": losers, "judge": judge}
        columns = {
            name: _labels(name, column, self._n_rows)
            for name, column in given.items()
            if column is not None
        }
        m = columns["winners"].size
        columns["degree"] = np.ones(m) if degree is None else np.asarray(degree, dtype=np.float64)
        check_lengths(**columns)
        share = columns["degree"]
        if share.ndim != 1:
            raise ValueError(f"degree must have one dimension; found shape {share.shape}")
        for row in np.flatnonzero(~((share >= 0) & (share <= 1))):
            where = f"row {self._n_rows + row}"
            raise ValueError(f"degree must be in [0, 1]; found {share[row]} in {where}")
        both = np.concatenate([columns["winners"], columns["losers"]])
        won, lost = np.split(_numbered(both, self._items), 2)
        for row in np.flatnonzero(won == lost):
            where = f"row {self._n_rows + row}"
            raise ValueError(f"an item must be compared with another one; {where} has it twice")
        by = _numbered(columns["judge"], self._judges) if judge is not None else np.zeros_like(won)
        found = choices_of(np.column_stack([won, lost]), share, by)
        rows = np.column_stack([found.items, np.asarray(found.judges)])
        self._rows = np.concatenate([self._rows, rows])
        self._weights = np.concatenate([self._weights, found.weights])
        self._n_rows += m
        # Rows with the same winner, loser and judge are merged.
        n, n_judges = max(1, len(self._items)), max(1, len(self._judges))
        key = (self._rows[:, 0] * n + self._rows[:, 1]) * n_judges + self._rows[:, 2]
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        self._weights = np.bincount(group, self._weights, first.size).astype(np.float64)
        self._rows = self._rows[first]

    def ratings(self, *, scale: float, disconnected: str) -> Ratings:
        """Fit ratings to the added rows; parameters as in `rate`."""
        if disconnected not in ("raise", "prior"):
            raise ValueError(f'disconnected must be "raise" or "prior"; found {disconnected!r}')
        if not 0 < scale < np.inf:
            raise ValueError(f"scale must be positive and finite; found {scale!r}")
        if not self._items:
            raise ValueError("ratings require at least one comparison; found none")
        labels = np.array(list(self._items))
        in_order = np.argsort(labels, kind="stable")
        labels, n = labels[in_order], labels.size
        pairs: Places = np.argsort(in_order)[self._rows[:, :2]]
        components = components_of(n, pairs)
        groups = int(components.max()) + 1
        if groups > 1 and disconnected == "raise":
            some = [labels[np.flatnonzero(components == g)[0]].item() for g in range(2)]
            raise ValueError(
                f"comparisons must connect all items; found {groups} groups without comparisons "
                f"between them, such as those of {some[0]!r} and {some[1]!r}: rate each on its "
                'own, or order groups by the prior with disconnected="prior"'
            )
        judges = np.array(list(self._judges) or [0])
        several = self._rows[:, 2].astype(np.intp) if judges.size > 1 else None
        choices = Choices(pairs, self._weights, judges=several, n_judges=judges.size)
        posterior = fit_choices(n, choices, scale=scale, tolerance=1e-10)
        counts = np.bincount(pairs.ravel(), np.repeat(self._weights, 2), n).astype(np.float64)
        return Ratings(labels, counts, components, judges, posterior, np.arange(n))


def _labels(name: str, values: Any, first_row: int) -> NDArray[Any]:
    labels = as_column(values, name)
    if labels.ndim != 1:
        raise ValueError(f"{name} must have one dimension; found shape {labels.shape}")
    if labels.dtype.kind == "O":
        odd = [label for label in labels.tolist() if not isinstance(label, str)]
        if odd:
            raise ValueError(f"{name} must be all numbers or all strings; found {odd[0]!r}")
        labels = labels.astype(np.str_)
    if labels.dtype.kind == "U":
        for row in np.flatnonzero(labels == ""):
            raise ValueError(f"{name} must not be empty; found '' in row {first_row + row}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} must be finite; found {labels[~np.isfinite(labels)][0]}")
    if labels.dtype.kind not in "biufU":
        raise ValueError(f"{name} must be numbers or strings; found dtype {labels.dtype}")
    return labels


def _numbered(labels: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """Indices of labels, in order of first appearance by block; updates ``known``."""
    distinct, codes = np.unique(labels, return_inverse=True)
    numbers = [known.setdefault(label, len(known)) for label in distinct.tolist()]
    return np.array(numbers, dtype=np.int64)[codes.ravel()]
