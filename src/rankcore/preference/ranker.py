"""Ranker by calls of a preference, with budgets, retries, a cache, a journal and concurrency."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import KW_ONLY
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.doc_links import Documented
from rankcore._core.docs import parameters
from rankcore.preference.forms import (
    Choice,
    Items,
    Judges,
    Places,
    Preference,
    as_indexed,
    as_items,
    in_order,
    is_async,
)
from rankcore.preference.journal import Journal, OpenJournal, lasting_key, memory_key, open_journal
from rankcore.preference.ledger import AnswerKey, Ledger, Retry
from rankcore.preference.methods import call_plan, check_parameters, make_method
from rankcore.preference.rating import Rating
from rankcore.preference.ratings import RatedResults
from rankcore.preference.running import CallRun, Method, Run, results_of
from rankcore.preference.sending import send_all, send_all_async
from rankcore.preference.sequential import Insertion


@parameters
class RankerParameters:
    """Parameters of `PreferenceRanker`."""

    preference: Preference | Judges | Choice
    _: KW_ONLY
    method: str = "auto"
    top_k: int | None = None
    max_calls: int | None = None
    repeats: int | None = None
    both_orders: bool = False
    decide: Literal["majority", "sample"] = "majority"
    opponents: int = 8
    noise: float | None = None
    confidence: float | None = None
    prior: ArrayLike | Callable[[Any], float] | BaseEstimator | None = None
    batch: int | None = None
    cache: bool = True
    key: Callable[[Any], Hashable] | None = None
    journal: str | os.PathLike[str] | Journal | None = None
    concurrency: int = 1
    retry: Retry | None = None
    progress: Callable[..., None] | None = None
    random_state: int | np.random.Generator | None = None


class PreferenceRanker(RankerParameters, RatedResults, Documented, BaseEstimator):
    """Ranker of items by a preference: a model, a person, or a language model.

    Parameters
    ----------
    preference : callable, Batch, Judges, Choice, Order, Indexed, or matrix of shape (n, n)
        ``preference(u, v)`` is the degree in [0, 1], or the boolean, to which item u should precede
        item v. It may be ``async``. A `Batch` takes lists of pairs, `Judges` are several judges, a
        `Choice` names the best of k items, an `Order` orders k items, an `Indexed` is computed from
        positions, and a matrix has the degree in row u and column v.
    method : str
        "auto": "rating" if there is a ``confidence``; else "halving" if there is a ``top_k``; else
        "rating" if ``max_calls`` or ``noise`` is given; else "quicksort", as for ``noise=0``. With
        more than 2,000 items "rating" is chosen only for judges of several items. Or "rating",
        "quicksort", "degree", "halving", "insertion", "heap" or "sliding"; `call_plan` has the cost
        and guarantee of each method except "rating"; `plan` simulates the result for a budget. A
        `Choice` or `Order` requires "halving", "rating" or, for the first k by an exact judge,
        "heap".
    top_k : int, optional
        Number of items to find, at least 1. None: all.
    max_calls : int, optional
        Maximum number of calls, including failed calls; with a journal, counted since the start of
        its run. None: no limit.
    repeats : int, optional
        Calls per pair, whose answers are averaged. Repeats reduce random errors, not systematic
        ones. With "rating", the maximum. None: one; with "rating" as many as are informative,
        unless the preference turns out to repeat its answers.
    both_orders : bool
        Whether pairs are shown in both orders, and the answers averaged: (g(u, v) + 1 - g(v, u)) /
        2, which removes position bias.
    decide : {"majority", "sample"}
        How QuickSort converts a degree to a decision: by rounding, with a random decision for 1/2,
        or by drawing with the degree as probability, as in the theorems.
    opponents : int
        For "halving": comparisons of each item per round; an even number.
    noise : float, optional
        Approximate share of wrong answers, from 0 to 1/2, used by "auto".
    confidence : float, optional
        For "rating": stop when the first ``top_k`` items are the right ones with this probability
        or, without ``top_k``, when this share of the pairs is expected to be in the right order.
        None: use all of ``max_calls``; without ``max_calls``, 0.95.
    prior : array-like of shape (n,), callable or estimator, optional
        For "rating": prior scores of the items, for example of a fitted ranker if items are rows of
        features. A function, or the ``predict`` of an estimator, is called with the items. The
        weight of the prior is learned from the answers.
    batch : int, optional
        For "rating": pairs per round, of different items for up to half the number of items. None:
        a quarter of the number of items.
    cache : bool
        Whether answers are kept, so that their calls are not repeated.
    key : callable, optional
        Function that returns a hashable key for an item; items with the same key are the same item.
        None: the item itself if it is hashable, or the bytes of an array. With a journal keys must
        be strings; with None, items may be strings, numbers and tuples of these.
    journal : str, path-like or Journal, optional
        File in which answers are stored. A ranker with the same journal continues where another
        one, or a killed process, stopped; with ``random_state=None`` it continues with the stored
        seed.
    concurrency : int
        Maximum number of calls in parallel: in threads, or in the event loop for an ``async``
        preference. The order does not depend on it.
    retry : Retry, optional
        Policy for failed calls. None: ``Retry()``, with three attempts.
    progress : callable, optional
        Called with a `RankingProgress` after each answer, one at a time.
    random_state : int, numpy.random.Generator or None
        Seed of pivots, draws and opponents. None: drawn once for this ranker. A Generator gives new
        numbers in each call, so that an interrupted ranking compares other pairs when it is called
        again.

    Attributes
    ----------
    order_ : ndarray of intp, shape (n,)
        Positions of all items, in the order found: with a ``top_k`` the first k are in order.
    complete_ : bool
        Whether all pairs that the method requires have answers. If not, the order is provisional.
    n_calls_ : int
        Calls made for this ranking, including failed calls and, with a journal, earlier calls.
    n_reused_ : int
        Number of answers from the cache or the journal.
    n_rounds_ : int
        Number of rounds with at least one call.
    certainty_ : ndarray of float64, shape (n,)
        For each item, the agreement of the answers about it with the order, from 0 to 1: the mean
        degree in favour of the order, with one additional answer of 1/2, mixed with 1/2 by the
        share of the other items that it is not ordered against.
    n_answers_ : ndarray of intp, shape (n,)
        Number of answered pairs of each item.
    pairs_ : ndarray of intp, shape (m, 2)
        The answered pairs.
    degrees_ : ndarray of float64, shape (m,)
        Degrees to which the first item of each pair should precede the second.
    items_ : sequence
        The items.
    ratings_ : Ratings
        Bradley-Terry fit of the answers, for any method, from which `ranking_`, `scores_`,
        `standard_errors_`, `place_interval_` and `probability_of_top` are computed.
    doubt_ : ndarray of float64, shape (n_rounds, 2)
        After "rating" of up to 2,000 items: number of answers after each round, and expected share
        of pairs in the wrong order.

    Notes
    -----
    A call that fails at all attempts raises `PreferenceError`, an interrupt `KeyboardInterrupt`. In
    both cases the calls in progress are awaited, the attributes have the results so far, and `rank`
    continues from there when it is called again.

    A ranker may be used by one thread at a time. Memory: up to about 500 bytes per answer of a
    call, 31 per computed degree.

    Plain form: ``tests/reference/preference.py``, ``quicksort_orders``;
    ``tests/reference/preference.py``, ``degree_order``.

    Examples
    --------
    >>> from rankcore.preference import PreferenceRanker
    >>> ranker = PreferenceRanker(lambda u, v: u > v, top_k=2, random_state=0)
    >>> ranker.rank([5, 1, 9, 7])
    [9, 7]
    >>> ranker.complete_, ranker.n_calls_, ranker.n_rounds_
    (True, 6, 1)
    """

    complete_: bool
    n_calls_: int
    n_reused_: int
    n_rounds_: int
    certainty_: NDArray[np.float64]
    n_answers_: Places
    items_: Any

    def rank(self, items: Items) -> Any:
        """Rank items.

        Parameters
        ----------
        items : sequence, length n
            Any objects.

        Returns
        -------
        list, or ndarray for an ndarray of items
            The first ``top_k`` items in order, or all.

        Raises
        ------
        PreferenceError
            If a call failed at all attempts.
        ValueError, TypeError
            For unknown options, items without a key that a journal can keep, or a journal that is
            damaged or about other items.
        OSError
            If the journal cannot be read or written, as on a full disk.
        RuntimeError
            For an ``async`` preference inside a running event loop; await `arank` there.
        """
        items = as_items(items)
        return self._rank(items, *self._method(items))

    async def arank(self, items: Items) -> Any:
        """Rank items inside an event loop; calls that are not ``async`` run in threads. See `rank`.

        Parameters
        ----------
        items : sequence, length n

        Returns
        -------
        list or ndarray
        """
        items = as_items(items)
        with self._ranking(items, *self._method(items)) as run:
            await self._send_rounds(run)
        return in_order(items, self.order_[: self.top_k])

    def extend(self, more: Items) -> Any:
        """Insert more items into the order by binary search.

        Parameters
        ----------
        more : sequence
            New items.

        Returns
        -------
        list
            The first ``top_k`` items in order, or all; `items_` has all items.

        Raises
        ------
        ValueError
            If there is no complete ranking.
        """
        if not getattr(self, "complete_", False):
            raise ValueError("extend requires a complete ranking; call rank first")
        items = [*self.items_, *as_items(more)]
        method = Insertion(len(items), ordered=self.order_, top_k=self.top_k)
        expected = (
            call_plan(max(1, len(items)))["insertion"].calls
            - call_plan(max(1, len(self.items_)))["insertion"].calls
        )
        return self._rank(items, method, expected)

    def _rank(self, items: Any, method: Method | Rating, expected: float) -> Any:
        with self._ranking(items, method, expected) as run:
            if is_async(self.preference):
                _refuse_loop()
                asyncio.run(self._send_rounds(run))
            else:
                for requests in run.requests():
                    send_all(requests, run.ledger, self.concurrency)
        return in_order(items, self.order_[: self.top_k])

    async def _send_rounds(self, run: Run) -> None:
        in_threads = not is_async(self.preference)
        for requests in run.requests():
            await send_all_async(requests, run.ledger, self.concurrency, in_threads)

    def _method(self, items: Any) -> tuple[Method | Rating, float]:
        check_parameters(self)
        return make_method(self, items, self._keys(items), np.random.default_rng(self._seed()))

    def _keys(self, items: Any) -> list[Hashable]:
        """Keys of the items; none for a computed preference."""
        if as_indexed(self.preference, len(items)) is not None:
            return []
        key = self.key or (memory_key if self.journal is None else lasting_key)
        return [key(item) for item in items]

    def _seed(self) -> Any:
        """The random state; if there is none, a seed drawn once for this ranker."""
        if self.random_state is not None:
            return self.random_state
        if self.journal is None:
            return self._new_seed()
        with closing(OpenJournal(self._journal())) as journal:
            return journal.seed(str(self._new_seed()))

    def _new_seed(self) -> int:
        if "_drawn_seed" not in self.__dict__:
            self._drawn_seed: Any = np.random.SeedSequence().entropy
        return int(self._drawn_seed)

    def _journal(self) -> Journal:
        journal = self.journal
        assert journal is not None
        return journal if isinstance(journal, Journal) else Journal(journal)

    @contextmanager
    def _ranking(self, items: Any, method: Method | Rating, expected: float) -> Iterator[Run]:
        """A run that reuses known answers; its results become attributes even if it fails."""
        asked = (self.preference, None if self.journal is None else repr(self._journal()))
        before = self.__dict__.get("_asked", (None, None))
        if asked[0] is not before[0] or asked[1] != before[1] or not self.cache:
            self._asked = asked
            self._answers: dict[AnswerKey, Any] = {}
            self._kept: list[Any] = []
        keys = self._keys(items)
        with self._opened(keys, items) as journal:
            ledger = Ledger(
                preference=self.preference,
                items=items,
                keys=keys,
                answers=self._answers,
                repeats=self.repeats or 1,
                both_orders=self.both_orders,
                max_calls=self.max_calls,
                retry=self.retry or Retry(),
                journal=journal,
                progress=self.progress,
                expected_calls=expected,
            )
            run = (CallRun if isinstance(method, Rating) else Run)(method, ledger)
            try:
                yield run
            finally:
                run.close()
                self._learn(run, items)

    def _opened(
        self, keys: list[Hashable], items: Any
    ) -> AbstractContextManager[OpenJournal | None]:
        """The journal with the answers about items with these keys; None if there is none."""
        if keys and self.journal is not None:
            several, seed = isinstance(self.preference, Choice), str(self._new_seed())
            journal = self._journal()
            return closing(open_journal(journal, keys, self._answers, several, seed))
        if keys:
            self._kept.append(items)  # keys may be the addresses of these objects
        return nullcontext()

    def _learn(self, run: Run, items: Any) -> None:
        """Set the attributes from a complete or incomplete ranking."""
        found = results_of(run, items)
        if isinstance(run.method, Rating):
            found["ratings_"] = run.method.ratings()
            found["doubt_"] = np.array(run.method.doubt).reshape(-1, 2)
        else:
            self.__dict__.pop("doubt_", None)
            self.__dict__.pop("ratings_", None)  # fitted on access
        self.__dict__.update(found)


def _refuse_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this preference is async and an event loop is running: await arank()")
