"""Judges that see several items: they name the best, or put all in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np


class Choice:
    """A judge that names the best of several items.

    Parameters
    ----------
    function : callable
        Takes a list of ``k`` items and returns the position of the best in it, from 0. It may be
        ``async``.
    k : int
        Items in a call, at least 2; fewer if there are not as many.

    Raises
    ------
    TypeError, ValueError
        For what cannot be called, or a k below 2.

    Notes
    -----
    The call of an answer that is no position is repeated, as one that failed; if it stays so, the
    call counts for nothing. If none of the first 20 answers is a position, ranking stops with a
    `PreferenceError`.

    Examples
    --------
    >>> from rankcore.preference import Choice, PreferenceRanker
    >>> shortest = Choice(lambda words: words.index(min(words, key=len)), k=3)
    >>> PreferenceRanker(shortest, top_k=1, random_state=0).rank(["banana", "fig", "pear", "mango"])
    ['fig']
    """

    def __init__(self, function: Callable[[list[Any]], Any], k: int):
        if not callable(function):
            raise TypeError(f"{type(self).__name__} needs a function of a list; found {function!r}")
        if not isinstance(k, Integral) or int(k) < 2:
            raise ValueError(f"k must be an integer from 2 on; found {k!r}")
        self.function: Callable[[list[Any]], Any] = function
        self.k: int = int(k)

    def _parse(self, answer: Any, n: int) -> tuple[tuple[int, ...], bool]:
        """Positions that an answer about n items names, the best first, and whether it is whole."""
        places = _positions([answer], n)
        return places, len(places) == 1


class Order(Choice):
    """A judge that puts several items in order, as rerankers by lists do.

    Parameters
    ----------
    function : callable
        Takes a list of ``k`` items and returns their positions in it, from 0, the best first. It
        may be ``async``.
    k : int
        As in `Choice`, and so are the errors.

    Notes
    -----
    The call of an answer that leaves positions out, has one twice or invents some is repeated, as
    one that failed; if it stays so, the positions that are right count, in their order.

    Examples
    --------
    >>> from rankcore.preference import Order, PreferenceRanker
    >>> judge = Order(lambda xs: sorted(range(len(xs)), key=xs.__getitem__), k=5)
    >>> ranker = PreferenceRanker(judge, top_k=3, random_state=0)
    >>> ranker.rank([8, 3, 5, 1, 9, 7, 2, 6, 4]), ranker.n_calls_
    ([1, 2, 3], 8)
    """

    def _parse(self, answer: Any, n: int) -> tuple[tuple[int, ...], bool]:
        named = list(answer) if isinstance(answer, Sequence | np.ndarray) else []
        places = _positions(named, n)
        return places, len(places) == len(named) == n


def _positions(named: Sequence[Any], n: int) -> tuple[int, ...]:
    """Those that are positions of n items, each once, in their order."""
    places = [
        int(place)
        for place in named
        if isinstance(place, Integral) and not isinstance(place, bool) and 0 <= int(place) < n
    ]
    return tuple(dict.fromkeys(places))
