"""Optimised interleaving: the most sensitive unbiased distribution over lists."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_option
from rankcore._core.warning import warn
from rankcore.interleaving.methods import Credited, Interleaved
from rankcore.interleaving.rankings import Rankings, check_seed

# Kinds of credit, by place.
CREDITS = ("inverse", "negative")
# Biases up to this count as 0: the precision of equations in a linear program.
_UNBIASED = 1e-6
# Tolerance of the minimum biases in the second program, for rounding.
_SLACK = 1e-9
# Number of draws per list, if there are too many lists to enumerate.
_DRAWS = 20
# Places of lists that are drawn at a time.
_BLOCK = 2**16


@dataclass(frozen=True)
class Plan:
    """Lists for some rankings, with probabilities.

    Attributes
    ----------
    lists : list of list
        Lists with positive probability.
    probabilities : ndarray of float64, shape (n_lists,)
        Probabilities of the lists, with sum 1.
    rankings : tuple of list
        The rankings.
    bias : float
        Maximum difference of the expected credits of two neighbouring rankings, over all lengths of
        the list, if all documents have the same probability of a click.
    """

    lists: list[list[Any]]
    probabilities: Floats
    rankings: tuple[list[Any], ...]
    bias: float

    def draw(self, seed: int) -> Interleaved:
        """Draw the list of an impression.

        Parameters
        ----------
        seed : int
            Seed from 0 to 2**64 - 1; use a different one for each impression, such as a counter, or
            a hash of the session and the query.

        Returns
        -------
        Interleaved
            A list without owners: every ranking has a credit for every click.

        Raises
        ------
        ValueError
            For repeated documents in a ranking, and numbers out of range.
        TypeError
            For rankings that are not sequences, and documents that are not hashable.
        """
        from rankcore._ext import interleave

        index = np.empty(1, dtype=np.int32)
        seeds = np.array([check_seed(seed)], dtype=np.uint64)
        interleave.pick(np.cumsum(self.probabilities), seeds, index)
        documents = self.lists[index[0]]
        return Interleaved([*documents], np.full(len(documents), -1, dtype=np.int32), self.rankings)


@dataclass(frozen=True)
class Optimized(Credited):
    """Optimised interleaving of two or more rankings.

    Every ranker has a credit for every click, by its place of the document. Among the distributions
    over lists for which random clicks give all rankers the same expected credit, at every length,
    it is the one with the minimum expected variance of credits, which is the most sensitive.

    Parameters
    ----------
    credit_by : {"inverse", "negative"}
        Credit for a click: 1 / place or -place; for a ranking without the document, the place after
        its last one.
    max_lists : int
        Maximum number of lists. If rankings allow more, this many are drawn with a fixed seed.

    Notes
    -----
    Radlinski and Craswell (2013), with the variance of Schuth et al. (2014), who extend it to more
    than two rankings. Two rankings of the same length had an unbiased distribution in all our
    tests; more than two often have none. Every document of a list is the best remaining one of a
    ranking, so that two rankings of n documents allow at most 2^n lists. The cost is one linear
    program per query: compute its `plan` once and draw from it. Plain form:
    ``tests/reference/interleaving.py``, ``prefix_lists``.

    Examples
    --------
    >>> from rankcore.interleaving import Optimized
    >>> plan = Optimized().plan([["a", "b"], ["b", "c"]])
    >>> for documents, p in zip(plan.lists, plan.probabilities):
    ...     print(documents, f"{p:.3f}")
    ['a', 'b'] 0.429
    ['b', 'a'] 0.371
    ['b', 'c'] 0.200
    >>> shown = plan.draw(seed=0)
    >>> shown.documents, Optimized().credit(shown, [1, 0]).tolist()
    (['b', 'a'], [0.5, 1.0])
    """

    credit_by: str = "inverse"
    max_lists: int = 2048

    def __post_init__(self) -> None:
        """Validate the parameters."""
        check_option(self.credit_by, "credit_by", CREDITS)
        check_count(self.max_lists, "max_lists")

    @property
    def _method(self) -> str:
        return self.credit_by

    def plan(self, rankings: Iterable[Sequence[Hashable]], *, length: int | None = None) -> Plan:
        """Compute the distribution over lists.

        Parameters
        ----------
        rankings : iterable of sequences
            Documents of each ranker, best first, without repeats; any hashable values.
        length : int, optional
            Maximum number of documents to show; None: that of the shortest ranking.

        Returns
        -------
        Plan

        Raises
        ------
        ValueError
            For repeated documents in a ranking, and numbers out of range.
        TypeError
            For rankings that are not sequences, and documents that are not hashable.

        Warns
        -----
        UserWarning
            If no distribution over these lists is unbiased, which is common for more than two
            rankings.
        """
        numbered = Rankings.of(rankings)
        lists = self._lists(numbered, numbered.length(length))
        credits = np.empty((len(numbered.names), len(numbered)))  # for a click on each document
        for r, ranking in enumerate(numbered.each()):
            places = np.full(len(numbered.names), ranking.size + 1.0)
            places[ranking] = np.arange(1.0, ranking.size + 1.0)
            credits[:, r] = 1.0 / places if self.credit_by == "inverse" else -places
        probabilities, bias = _most_sensitive(credits[np.array(lists, dtype=np.intp)])
        if bias:
            warn(
                f"no distribution over lists of these {len(numbered)} rankings is unbiased: its "
                f"bias is {bias:.3g}; TeamDraft has none"
            )
        kept = np.flatnonzero(probabilities > 0)
        shown = [numbered.named(lists[i]) for i in kept]
        return Plan(shown, probabilities[kept], numbered.lists(), bias)

    def interleave(
        self,
        rankings: Iterable[Sequence[Hashable]],
        *,
        length: int | None = None,
        seed: int,
    ) -> Interleaved:
        """Create the list of an impression from a new plan.

        Parameters
        ----------
        rankings : iterable of sequences
            Documents of each ranker, best first, without repeats; any hashable values.
        length : int, optional
            Maximum number of documents to show; None: that of the shortest ranking.
        seed : int
            Seed from 0 to 2**64 - 1; use a different one for each impression, such as a counter, or
            a hash of the session and the query.

        Returns
        -------
        Interleaved

        Raises
        ------
        ValueError
            For repeated documents in a ranking, and numbers out of range.
        TypeError
            For rankings that are not sequences, and documents that are not hashable.
        """
        return self.plan(rankings, length=length).draw(seed)

    def _lists(self, rankings: Rankings, length: int) -> list[tuple[int, ...]]:
        """Return all lists, ordered by their documents; or a sample if there are too many."""
        each = [ranking.tolist() for ranking in rankings.each()]
        lists: list[tuple[int, ...]] = [()]
        for _ in range(length):
            longer = {
                (*shown, best)
                for shown in lists
                for ranking in each
                if (best := next((d for d in ranking if d not in shown), None)) is not None
            }
            if len(longer) > self.max_lists:
                break
            lists = sorted(longer)
        else:
            return lists
        drawn: dict[tuple[int, ...], None] = {}
        # In blocks, whose memory is small beside that of the lists themselves.
        block = max(1, _BLOCK // max(1, length))
        for start in range(0, _DRAWS * self.max_lists, block):
            stop = min(start + block, _DRAWS * self.max_lists)
            seeds = np.arange(start, stop, dtype=np.uint64)
            shown, _, n = rankings.draw("prefixes", seeds, length, np.ones(1))
            for row, k in zip(shown.tolist(), n, strict=True):
                drawn[tuple(row[:k])] = None
                if len(drawn) == self.max_lists:
                    return sorted(drawn)
        return sorted(drawn)


def _most_sensitive(credits: Floats) -> tuple[Floats, float]:
    """Return probabilities of lists and their bias, given credits (lists, places, rankings).

    Unbiased at every length if possible, otherwise with the minimum sum of biases; among these,
    with the minimum expected variance of credits.
    """
    n, length, _ = credits.shape
    if not length:
        return np.ones(n), 0.0
    upto = credits.cumsum(axis=1)
    bias = (upto[:, :, :-1] - upto[:, :, 1:]).reshape(n, -1).T
    # Random clicks, with fewer further down.
    total = (credits / np.arange(1.0, length + 1.0)[:, np.newaxis]).sum(axis=1)
    variance = ((total - total.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    p = _distribution(variance, bias, np.zeros(len(bias)))
    if p is None:
        p = _distribution(variance, bias, _least_bias(bias) + _SLACK)
    if p is None:
        raise ArithmeticError("the linear program of optimised interleaving has no solution")
    p = np.where(p > 1e-12, p, 0.0)
    p /= p.sum()
    largest = float(np.abs(bias @ p).max(initial=0.0))
    return p, largest if largest > _UNBIASED else 0.0


def _distribution(variance: Floats, bias: Floats, allowed: Floats) -> Floats | None:
    """Find probabilities of minimum variance within the allowed biases; None without any."""
    from scipy.optimize import linprog

    constraint: dict[str, Any] = {"A_eq": np.ones((1, variance.size)), "b_eq": [1.0]}
    if allowed.any():
        constraint |= {"A_ub": np.vstack([bias, -bias]), "b_ub": np.tile(allowed, 2)}
    else:
        equal = np.vstack([np.ones(variance.size), bias])
        constraint = {"A_eq": equal, "b_eq": np.eye(1, len(equal))[0]}
    solution = linprog(variance, **constraint, bounds=(0, 1), method="highs-ds")
    return np.asarray(solution.x) if solution.success else None


def _least_bias(bias: Floats) -> Floats:
    """Return the magnitudes of biases with the minimum sum."""
    from scipy.optimize import linprog

    m, n = bias.shape
    sizes = -np.eye(m)
    solution = linprog(
        np.repeat([0.0, 1.0], [n, m]),
        A_eq=np.repeat([[1.0, 0.0]], [n, m], axis=1),
        b_eq=[1.0],
        A_ub=np.block([[bias, sizes], [-bias, sizes]]),
        b_ub=np.zeros(2 * m),
        method="highs-ds",
    )
    return np.abs(bias @ solution.x[:n])
