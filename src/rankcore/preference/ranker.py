"""Ranker of items by calls of a judge: a sampler and its driver as one estimator."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankcore._core.declaration import Declaration
from rankcore._core.doc_links import guide_link
from rankcore._core.params import COUNT, Constraints, Function, Integer, Real, check_params
from rankcore.preference.comparisons import prior_scores
from rankcore.preference.driver import Driver, RankingProgress
from rankcore.preference.forms import (
    Choice,
    Items,
    Judges,
    Order,
    Places,
    Preference,
    as_indexed,
    as_items,
    in_order,
    is_async,
    shown,
)
from rankcore.preference.journal import (
    Journal,
    OpenJournal,
    Record,
    as_journal,
    item_key,
    judge_name,
)
from rankcore.preference.ratings import Ratings
from rankcore.preference.retries import make_retry
from rankcore.preference.rounds import RoundSampler
from rankcore.preference.samplers import Sampler

# Above this many items "auto" does not choose ratings of pairs.
_RATED = 2000
# Without a budget, ratings stop at this confidence.
_CONFIDENCE = 0.95


class PreferenceRanker(BaseEstimator):
    """Ranker of items by a preference: a model, a person, or a language model.

    A `Sampler` chooses the comparisons; this class makes the calls.

    Parameters
    ----------
    preference : callable, Batch, Judges, Choice, Order, Indexed, or matrix of shape (n, n)
        ``preference(u, v)`` is the degree in [0, 1], or the boolean, to which item u should precede
        item v, or None if it cannot be told. It may be ``async``. A `Batch` takes lists of pairs,
        `Judges` are several judges, a `Choice` names the best of k items, an `Order` orders k
        items, an `Indexed` is computed from positions, and a matrix has the degree in row u and
        column v.
    method : {"auto", "rating", "quicksort", "degree", "halving"}, default="auto"
        "auto": "rating" if there is a ``confidence``; else "halving" if there is a ``top_k``; else
        "rating" if ``max_calls`` or ``noise`` is given; else "quicksort", as for ``noise=0``. With
        more than 2,000 items "rating" is chosen only for judges of several items, for which it is
        the only method, as for `Judges`. `call_plan` has the cost and guarantee of the others;
        `plan` simulates the result for a budget.
    top_k : int, optional
        Number of items to find, at least 1. None: all. For a judge that errs pass a ``confidence``
        as well: "halving" compares the last items once, and misses some of the top.
    max_calls : int, optional
        Maximum number of calls of the judge about these items, each of which may be about a
        `Batch`, including failed calls and those in the journal. None: no limit; for "rating" n (n
        - 1) / 2, or 20 n if that is more.
    repeats : int, default=1
        For other methods than "rating": answers per pair, which are averaged. Repeats reduce random
        errors, not systematic ones.
    both_orders : bool, default=False
        For other methods than "rating", which learns the position bias: whether pairs are shown in
        both orders, and the answers averaged.
    noise : float, optional
        Approximate fraction of wrong answers, from 0 to 1/2. None: learned from the answers.
    confidence : float, optional
        For "rating": stop when the first ``top_k`` items are the right ones with this probability
        or, without ``top_k``, when this fraction of the pairs is expected to be in the right order.
        None: use all of ``max_calls``; without ``max_calls``, 0.95.
    prior : array-like of shape (n,), optional
        For "rating": prior scores of the items, as in `Sampler`.
    key : callable, optional
        Function that returns a hashable key for an item; items with the same key are the same item.
        None: the item itself if it is hashable, or the bytes of an array. With a journal keys must
        be strings; with None, items may be strings, numbers and tuples of these.
    journal : str, path-like or Journal, optional
        File in which answers are stored. A ranker with the same journal continues where another
        one, or a killed process, stopped, whatever the order of the items; with the same parameters
        it asks the same, and nothing once it is complete.
    concurrency : int, default=1
        Maximum number of calls in parallel: in threads, or in the event loop for an ``async``
        preference. The result does not depend on it.
    retry : int or tenacity.Retrying, optional
        Attempts per call, or a policy, also for ``async`` preferences. None: three attempts with
        increasing delays, if tenacity is installed (``pip install 'rankcore[judges]'``), else one.
        Errors such as TypeError, of the judge's own code, are not repeated.
    progress : callable, optional
        Called with a `RankingProgress` after each call, one at a time.
    random_state : int or numpy Generator, optional
        Seed of the sampler. None: drawn once for this ranker, or 0 with a journal.

    Attributes
    ----------
    order_ : ndarray of intp, shape (n,)
        Positions of all items, in the order found: with a ``top_k`` the first k are in order.
    complete_ : bool
        Whether the order is as certain as required: for "rating" by ``confidence``, or so that no
        answer of these judges could change it; for other methods, whether all of their comparisons
        are answered, right or wrong. False if no judge's answers depend on the items, or if the
        judges abstained from so many pairs that the order is uncertain. If it is False, the order
        is provisional.
    n_calls_ : int
        Calls about these items, including failed and earlier ones.
    n_reused_ : int
        Number of answers from earlier calls or the journal.
    n_rounds_ : int
        Number of rounds with at least one call.
    cost_ : float
        Sum of the prices of the calls, for `Judges` with prices.
    items_ : sequence
        The items.
    sampler_ : Sampler
        With the answers, `Sampler.ratings` and `Sampler.uncertainty`. Its items are the different
        items, with a journal in the order of their keys.
    ratings_ : Ratings
        Strengths and places of the items, for any method.

    Notes
    -----
    A call that fails at all attempts raises `PreferenceError`, an interrupt `KeyboardInterrupt`. In
    both cases the calls in progress are awaited, the attributes have the results so far, and `rank`
    continues from there when it is called again. The logger is ``rankcore.preference``.

    A ranker may be used by one thread at a time.

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

    _declaration: ClassVar = Declaration(guide="preference", learns_from="comparisons")

    _constraints: ClassVar[Constraints] = {
        "top_k": COUNT | None,
        "max_calls": Integer(0) | None,
        "repeats": COUNT,
        "noise": Real(0, 0.5) | None,
        "confidence": Real(0, 1) | None,
        "key": Function() | None,
        "concurrency": COUNT,
        "progress": Function() | None,
    }
    _doc_link_module, _doc_link_template = "rankcore", guide_link

    order_: Places
    complete_: bool
    n_calls_: int
    n_reused_: int
    n_rounds_: int
    cost_: float
    items_: Any
    sampler_: Sampler

    def __init__(
        self,
        preference: Preference | Judges | Choice,
        *,
        method: Literal["auto", "rating", "quicksort", "degree", "halving"] = "auto",
        top_k: int | None = None,
        max_calls: int | None = None,
        repeats: int = 1,
        both_orders: bool = False,
        noise: float | None = None,
        confidence: float | None = None,
        prior: ArrayLike | None = None,
        key: Callable[[Any], Hashable] | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
        concurrency: int = 1,
        retry: int | Callable[..., Any] | None = None,
        progress: Callable[[RankingProgress], None] | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.preference = preference
        self.method = method
        self.top_k = top_k
        self.max_calls = max_calls
        self.repeats = repeats
        self.both_orders = both_orders
        self.noise = noise
        self.confidence = confidence
        self.prior = prior
        self.key = key
        self.journal = journal
        self.concurrency = concurrency
        self.retry = retry
        self.progress = progress
        self.random_state = random_state

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
            For unknown options, items without a key that a journal can keep, or a damaged journal.
        OSError
            If the journal cannot be read or written, as on a full disk.
        RuntimeError
            For an ``async`` preference inside a running event loop; await `arank` there.
        """
        if is_async(self.preference):
            _reject_loop()
            return asyncio.run(self.arank(items))
        items = as_items(items)
        with self._driving(items, None) as driver:
            driver.run()
        return in_order(items, self.order_[: self.top_k])

    async def arank(self, items: Items) -> Any:
        """Rank items as `rank`, in an event loop; calls that are not ``async`` run in threads."""
        items, loop = as_items(items), asyncio.get_running_loop()
        with (
            self._driving(items, loop if is_async(self.preference) else None) as driver,
            ThreadPoolExecutor(1, thread_name_prefix="preference") as pool,
        ):
            run = loop.run_in_executor(pool, copy_context().run, driver.run)
            try:
                await asyncio.shield(run)
            except asyncio.CancelledError:
                driver.stop()
                await asyncio.wait([run])
                run.exception()  # the cancellation is raised instead
                raise
        return in_order(items, self.order_[: self.top_k])

    @contextmanager
    def _driving(self, items: Any, loop: asyncio.AbstractEventLoop | None) -> Iterator[Driver]:
        """Yield a driver; its results become attributes even if it fails."""
        check_params(self)
        computed = as_indexed(self.preference, len(items))
        journal = None if self.journal is None else as_journal(self.journal)
        if computed is not None and journal is not None:
            raise ValueError(
                "PreferenceRanker: preference must be called, not computed, with a journal, which "
                "stores answers of calls: omit journal"
            )
        keys = self._keys(items) if computed is None else list(range(len(items)))
        place = {key: k for k, key in reversed(list(enumerate(keys)))}
        # Different items; with a journal in the order of their keys, so that theirs is the same
        # whatever the order of the items.
        distinct = sorted(place, key=str) if journal is not None else list(dict.fromkeys(keys))
        number = {key: k for k, key in enumerate(distinct)}
        same = np.array([number[key] for key in keys], dtype=np.intp)
        sampler = self._sampler(items, [place[key] for key in distinct])
        max_calls, confidence, n = self.max_calls, self.confidence, len(distinct)
        if isinstance(sampler, RoundSampler):
            confidence = None
        elif max_calls is None:
            max_calls = max(n * (n - 1) // 2, 20 * n)
            confidence = _CONFIDENCE if confidence is None else confidence
        judge = "" if journal is None else judge_name(journal, self.preference)
        with nullcontext() if journal is None else closing(OpenJournal(journal)) as opened:
            driver = Driver(
                sampler,
                self.preference,
                distinct,
                self._earlier(items, opened),
                computed=computed,
                loop=loop,
                judge=judge,
                max_calls=max_calls,
                confidence=confidence,
                concurrency=self.concurrency,
                retry=make_retry(self.retry),
                journal=opened,
                progress=self.progress,
            )
            try:
                yield driver
            finally:
                self._learn(driver, items, same)

    def _learn(self, driver: Driver, items: Any, same: Places) -> None:
        """Set the attributes from a complete or incomplete ranking."""
        sampler = driver.sampler
        place = np.argsort(sampler.ranking())
        if isinstance(sampler, RoundSampler):  # whose order needs no ratings
            useless = sampler.useless_judges()
            sentences = tuple(useless.values())
        else:
            found = sampler.uncertainty()
            useless, sentences = sampler.useless_judges(1 - 2 * found.error_rate), found.warnings
        n_declined = sampler.n_declined(driver.confidence)
        if n_declined:
            sentences = (
                *sentences,
                f"no judge answers about {n_declined} of the pairs, without which the order is "
                "not certain: add another judge to decide these",
            )
        for sentence in sentences:
            warnings.warn(sentence[0].upper() + sentence[1:], UserWarning, stacklevel=6)
        self.order_ = np.argsort(place[same], kind="stable").astype(np.intp)
        self.complete_ = (
            not n_declined
            and sampler.done(driver.confidence)
            and len(useless) < len(sampler.judges)
        )
        self.n_calls_, self.n_reused_ = driver.n_calls, driver.n_reused
        self.n_rounds_, self.cost_ = driver.n_rounds, driver.cost
        self.items_, self.sampler_, self._same = items, sampler, same

    @property
    def ratings_(self) -> Ratings:
        """Strengths and places of the items."""
        return self.sampler_.ratings().of_items(self._same)

    def _check_together(self) -> None:
        if isinstance(self.preference, Choice | Judges) and self.method not in ("auto", "rating"):
            raise ValueError(
                "PreferenceRanker: method must be 'rating' for judges of several items, and for "
                f"several judges; got {self.method!r}"
            )

    def _method_name(self, n: int) -> str:
        """Return the name of the method for n items, with "auto" resolved."""
        if isinstance(self.preference, Choice | Judges):
            return "rating"
        if self.method != "auto":
            return str(self.method)
        sure = self.confidence is not None and n <= _RATED
        if self.top_k is not None and not sure:
            return "halving"
        called = as_indexed(self.preference, n) is None
        noisy = self.noise is not None or (self.max_calls is not None and called)
        rated = sure or (noisy and self.noise != 0 and n <= _RATED)
        return "rating" if rated else "quicksort"

    def _sampler(self, items: Any, first: list[int]) -> Sampler:
        """Return the sampler of the different items, whose first positions are given."""
        method = self._method_name(len(items))
        asked = [items[k] for k in first]
        params: dict[str, Any] = {"top_k": self.top_k, "noise": self.noise, "seed": self._seed()}
        if method != "rating":
            params |= {"method": method, "repeats": self.repeats, "both_orders": self.both_orders}
            return RoundSampler(asked, **params)
        judge, scores = self.preference, prior_scores(self.prior, len(items))
        if isinstance(judge, Choice):
            params |= {"size": judge.k, "answers": "order" if isinstance(judge, Order) else "best"}
        if isinstance(judge, Judges):
            params["judges"] = judge.prices
        return Sampler(asked, prior=None if scores is None else scores[first], **params)

    def _keys(self, items: Any) -> list[Hashable]:
        """Return the keys of the items of a preference that is called."""
        keys = list(map(self.key or item_key, items))
        for key, item in zip(keys, items, strict=True):
            if self.journal is not None and not isinstance(key, str):
                raise TypeError(
                    "a journal requires keys that are strings: pass key=, a function that returns "
                    f"a string for an item; got {shown(item)}"
                )
        return keys

    def _earlier(self, items: Any, journal: OpenJournal | None) -> list[Record]:
        """Return earlier answers and failed calls, of the journal or of this ranker."""
        if journal is not None:
            return journal.records()
        if self.__dict__.get("_judge") is not self.preference:
            self._judge = self.preference
            self._records: list[Record] = []
            self._kept: list[Any] = []
        self._kept.append(items)  # keys may be the addresses of these objects
        return self._records

    def _seed(self) -> Any:
        """Return the random state; without one, 0 with a journal, or drawn once for this ranker."""
        if self.random_state is not None:
            return self.random_state
        if self.journal is not None:
            return 0
        if "_drawn_seed" not in self.__dict__:
            self._drawn_seed = int(np.random.SeedSequence().generate_state(1)[0])
        return self._drawn_seed


def _reject_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("this preference is async and an event loop is running: await arank()")
