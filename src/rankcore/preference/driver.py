"""The driver of a sampler: calls of a judge, with a budget, retries, a journal and concurrency."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankcore.preference.comparisons import Comparison
from rankcore.preference.forms import Batch, Choice, Indexed, Judges, is_async, shown
from rankcore.preference.journal import OpenJournal, Record
from rankcore.preference.retries import AnswerError, OutOfBudget, PreferenceError, as_async
from rankcore.preference.rounds import RoundSampler
from rankcore.preference.samplers import Sampler

logger = logging.getLogger("rankcore.preference")

# Seconds between looks for an interrupt.
_POLL = 0.1


@dataclass(frozen=True)
class RankingProgress:
    """Progress of a ranking.

    Attributes
    ----------
    calls : int
        Calls made, including failed calls and those in the journal.
    max_calls : int or None
        The budget.
    answered, running, failed : int
        Comparisons with an answer; comparisons of calls in progress; failed calls.
    cost : float
        Sum of the prices of the calls, for `Judges` with prices.
    seconds : float
        Seconds since the ranking started.
    """

    calls: int
    max_calls: int | None
    answered: int
    running: int
    failed: int
    cost: float
    seconds: float


Request = list[Comparison]


class Driver:
    """Puts the comparisons of a sampler to a judge until nothing is left to ask.

    ``records`` are earlier answers and failed calls about items with these ``keys``; new ones are
    appended to it.
    """

    def __init__(
        self,
        sampler: Sampler,
        preference: Any,
        keys: Sequence[Hashable],
        records: list[Record],
        *,
        judge: str,
        max_calls: int | None,
        confidence: float | None,
        both_orders: bool,
        concurrency: int,
        retry: Any,
        journal: OpenJournal | None,
        unwritten: list[Record],
        progress: Callable[[RankingProgress], None] | None,
    ):
        self.sampler, self.preference, self.records = sampler, preference, records
        self._keys, self._judge, self._both_orders = keys, judge, both_orders
        self._place = {key: place for place, key in enumerate(keys)}
        self._max_calls, self.confidence, self._concurrency = max_calls, confidence, concurrency
        self._retry, self._journal, self._progress = retry, journal, progress
        self._unwritten = unwritten  # records that the journal lacks, as after a full disk
        self._lock, self._stopped = threading.Lock(), threading.Event()
        # Answers of the current round, in the order asked.
        self._answers: dict[Comparison, list[Any]] = {}
        self._began = time.monotonic()
        self.n_reused = self.n_rounds = self._running = 0
        mine = [record for record in records if self._about_these(record)]
        self._next_request = 1 + max((record.request for record in records), default=0)
        calls = {record.request: record.judge for record in mine}
        self.n_calls, self.failed = len(calls), sum(record.failure is not None for record in mine)
        self.answered, self.cost = 0, sum(self._price(name) for name in calls.values())
        self._stored: dict[tuple[tuple[int, ...], str], list[Any]] = defaultdict(list)
        for record in mine:
            if record.failure is None:
                places = tuple(self._place[key] for key in record.keys)
                self._stored[places, record.judge].append(record.answer)
        if not isinstance(sampler, RoundSampler):
            self._tell_stored()

    # ------------------------------------------------------------------ rounds

    def next_round(self) -> list[Request] | None:
        """Return the calls of the next round, after those of the last one; None at the end."""
        self._tell_answers()
        while True:
            if self.confidence is not None and self.sampler.done(self.confidence):
                return None
            left = None if self._max_calls is None else self._max_calls - self.n_calls
            if left is not None and left <= 0:
                return None
            size = self._batch_size()
            n = None if left is None or size is None else left * size
            comparisons = self._ask(n, size)
            if not comparisons:
                return None
            fresh = [comparison for comparison in comparisons if not self._reuse(comparison)]
            if fresh:
                self.n_rounds += 1
                self._answers = {comparison: [] for comparison in fresh}
                step = len(fresh) if size is None else size
                return [fresh[k : k + step] for k in range(0, len(fresh), step)]

    def _ask(self, n: int | None, size: int | None) -> list[Comparison]:
        """The comparisons of a round, as many as fill its batches if there are so many."""
        if isinstance(self.sampler, RoundSampler):
            return self.sampler.ask(n)
        found = self.sampler.ask()
        if size is not None and found and len(found) % size:
            found += self.sampler.ask(-len(found) % size)
        return found if n is None else found[:n]

    def _batch_size(self) -> int | None:
        """Comparisons of a call; None for a whole round."""
        return self.preference.size if isinstance(self.preference, Batch) else 1

    def finish(self) -> None:
        """Tell the sampler the answers of an unfinished round."""
        self._tell_answers()

    def compute(self, preference: Indexed) -> None:
        """Answer all comparisons with a preference that is computed from positions."""
        while (left := self._left()) != 0:
            if self.confidence is not None and self.sampler.done(self.confidence):
                return
            rounds = isinstance(self.sampler, RoundSampler)
            comparisons = self.sampler.ask(left) if rounds else self.sampler.ask()[:left]
            if not comparisons:
                return
            pairs = np.array([comparison.places for comparison in comparisons], dtype=np.intp)
            degrees = preference.degrees(pairs[:, 0], pairs[:, 1]).tolist()
            self.n_calls += len(comparisons)
            self.n_rounds += 1
            for comparison, degree in zip(comparisons, degrees, strict=True):
                self.sampler.tell(comparison, degree)

    def _left(self) -> int | None:
        return None if self._max_calls is None else max(0, self._max_calls - self.n_calls)

    def _tell_answers(self) -> None:
        """Tell the answers of a round in the order asked, not in that of their arrival."""
        for comparison, answers in self._answers.items():
            for answer in answers:
                self.sampler.tell(comparison, answer)
        self._answers.clear()

    def _tell_stored(self) -> None:
        names = {str(name): name for name in self.sampler.judges}
        for (places, judge), answers in self._stored.items():
            name = names.get(judge)
            if name is None and judge != self._judge:
                continue
            for answer in answers:
                self.sampler.tell(Comparison(places, name), answer)
                self.n_reused += 1
        self._stored.clear()

    def _reuse(self, comparison: Comparison) -> bool:
        """Tell a stored answer to a comparison; False if there is none."""
        stored = self._stored.get((comparison.places, self._judge))
        turned = False
        if not stored and not self._both_orders:
            stored, turned = self._stored.get((comparison.places[::-1], self._judge)), True
        if not stored:
            return False
        answer = stored.pop(0)
        if turned and answer is not None:
            answer = 1 - answer
        self.sampler.tell(comparison, answer)
        self.n_reused += 1
        return True

    def _about_these(self, record: Record) -> bool:
        return all(key in self._place for key in record.keys)

    # ------------------------------------------------------------------ calls

    def send_all(self, requests: list[Request]) -> None:
        """Send calls that are not async; await those in progress before an error is raised."""
        waiting = iter(requests)

        def work() -> None:
            while not self._stopped.is_set():
                with self._lock:
                    request = next(waiting, None)
                if request is None:
                    return
                self._send(request)

        workers = min(self._concurrency, len(requests))
        if workers <= 1:
            work()
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="preference") as pool:
            running = [pool.submit(work) for _ in range(workers)]
            for worker in running:
                worker.add_done_callback(
                    lambda ended: self._stopped.set() if ended.exception() else None
                )
            try:
                while wait(running, timeout=_POLL).not_done:
                    pass  # an interrupt is raised here, whichever thread it came to
            finally:
                self._stopped.set()
        self._stopped.clear()
        for worker in running:
            worker.result()

    async def send_all_async(self, requests: list[Request]) -> None:
        """As `send_all`, in an event loop; calls that are not async run in threads."""
        waiting = iter(requests)

        async def work() -> None:
            while not self._stopped.is_set():
                request = next(waiting, None)
                if request is None:
                    return
                try:
                    await self._send_async(request)
                except BaseException:
                    self._stopped.set()
                    raise

        tasks = [asyncio.create_task(work()) for _ in range(min(self._concurrency, len(requests)))]
        try:
            await asyncio.wait(tasks)
        finally:
            self._stopped.set()
            await asyncio.wait(tasks)
            self._stopped.clear()
        # All exceptions are retrieved, as asyncio requires; the first one is raised.
        for error in [task.exception() for task in tasks]:
            if error is not None:
                raise error

    def _send(self, request: Request) -> None:
        attempts = _Attempts(self, request)

        def attempt() -> None:
            started = attempts.begin()
            try:
                answer = self._call(attempts.left)
            except Exception as error:
                attempts.failed(error, started)
                raise
            attempts.settle(answer, started)

        try:
            if self._retry is None:
                attempt()
            else:
                self._retry.copy(sleep=self._stopped.wait)(attempt)
        except OutOfBudget:
            return
        except Exception as error:
            raise attempts.error(error) from error

    async def _send_async(self, request: Request) -> None:
        attempts = _Attempts(self, request)
        in_threads = not is_async(self.preference)

        async def attempt() -> None:
            started = attempts.begin()
            try:
                if in_threads:
                    answer = await asyncio.to_thread(self._call, attempts.left)
                else:
                    answer = await self._call(attempts.left)
            except Exception as error:
                attempts.failed(error, started)
                raise
            attempts.settle(answer, started)

        try:
            if self._retry is None:
                await attempt()
            else:
                await as_async(self._retry)(attempt)
        except OutOfBudget:
            return
        except Exception as error:
            raise attempts.error(error) from error

    def _call(self, request: Request) -> Any:
        preference = self.preference
        if isinstance(preference, Batch):
            return preference.function([comparison.items for comparison in request])
        (comparison,) = request
        if isinstance(preference, Choice):
            return preference.function(list(comparison.items))
        if isinstance(preference, Judges):
            return preference.functions[str(comparison.judge)](*comparison.items)
        return preference(*comparison.items)

    def price_of(self, request: Request) -> float:
        """Return the price of a call."""
        return self._price(str(request[0].judge))

    def _price(self, judge: str) -> float:
        if isinstance(self.preference, Judges):
            return self.preference.prices.get(judge, 0.0)
        return 0.0

    def judge_of(self, comparison: Comparison) -> str:
        """Return the name of the judge of a comparison in the journal."""
        return self._judge if comparison.judge is None else str(comparison.judge)

    def parse(self, comparison: Comparison, answer: Any) -> Any:
        """Return a checked answer of a plain type, or raise AnswerError."""
        if answer is None:
            return None
        try:
            return self.sampler.parse(comparison, answer)
        except (TypeError, ValueError) as error:
            raise AnswerError(str(error)) from error

    def record(self, records: list[Record], answered: Sequence[tuple[Comparison, Any]]) -> None:
        """Store answers in memory first, so that none is lost if the journal cannot be written."""
        self.records += records
        for comparison, answer in answered:
            self._answers[comparison].append(answer)
        self.answered += len(answered)
        if self._journal is not None:
            self._unwritten += records
            self._journal.write(self._unwritten)
            self._unwritten.clear()

    def report(self) -> None:
        """Call ``progress``."""
        if self._progress is not None:
            self._progress(
                RankingProgress(
                    self.n_calls, self._max_calls, self.answered, self._running, self.failed,
                    self.cost, time.monotonic() - self._began,
                )
            )  # fmt: skip


class _Attempts:
    """The attempts of one call; ``left`` are the comparisons without a usable answer."""

    def __init__(self, driver: Driver, request: Request):
        self._driver, self._all, self.left, self._n = driver, request, list(request), 0
        self._request = 0

    def begin(self) -> float:
        """Count a call, or raise OutOfBudget."""
        driver = self._driver
        with driver._lock:
            if driver._left() == 0 or (driver._stopped.is_set() and self._n):
                raise OutOfBudget
            self._n += 1
            self._request, driver._next_request = driver._next_request, driver._next_request + 1
            driver.n_calls += 1
            driver.cost += driver.price_of(self.left)
            driver._running += len(self.left)
        return time.monotonic()

    def failed(self, error: Exception, started: float) -> None:
        """Record a call without an answer."""
        driver, first = self._driver, self.left[0]
        what = f"{type(error).__name__}: {error}"
        logger.info("attempt %d on %s failed: %s", self._n, shown(first.items), what)
        with driver._lock:
            driver._running -= len(self.left)
            driver.failed += 1
            driver.record([self._record(first, None, time.monotonic() - started, what)], [])

    def settle(self, answer: Any, started: float) -> None:
        """Record the usable answers of a call; AnswerError if some are not."""
        driver, asked = self._driver, self.left
        answers = [answer]
        wrong: AnswerError | None = None
        if isinstance(driver.preference, Batch):
            try:
                answers = list(answer)
            except TypeError as error:
                wrong = AnswerError(f"a batch must return a list of answers; found {shown(answer)}")
                wrong.__cause__ = error
                answers = []
            if wrong is None and len(answers) != len(asked):
                wrong = AnswerError(
                    f"a batch must answer each of {len(asked)} pairs; found {len(answers)} answers"
                )
                answers = []
        good, left = [], [] if answers else list(asked)
        for comparison, one in zip(asked, answers, strict=False):
            try:
                good.append((comparison, driver.parse(comparison, one)))
            except AnswerError as error:
                wrong = error
                left.append(comparison)
        seconds = time.monotonic() - started
        with driver._lock:
            driver._running -= len(asked)
            records = [self._record(c, parsed, seconds, None) for c, parsed in good]
            if wrong is not None:
                driver.failed += 1
                records.append(self._record(left[0], None, seconds, str(wrong)))
            self.left = left
            driver.record(records, good)
            driver.report()
        if wrong is not None:
            logger.info("attempt %d: %s", self._n, wrong)
            raise wrong

    def error(self, error: Exception) -> Exception:
        """Return what to raise after the last attempt."""
        if isinstance(error, OSError) and "journal" in str(error):
            return error
        cause = error
        attempt = getattr(error, "last_attempt", None)  # of tenacity's RetryError
        if attempt is not None:
            cause = attempt.exception() or error
        what = str(cause) if isinstance(cause, AnswerError) else f"{type(cause).__name__}: {cause}"
        found = PreferenceError(tuple(self.left[0].items), self._n, what)
        found.__cause__ = cause
        return found

    def _record(
        self, comparison: Comparison, answer: Any, seconds: float, failure: str | None
    ) -> Record:
        keys = tuple(self._driver._keys[place] for place in comparison.places)
        judge = self._driver.judge_of(comparison)
        return Record(self._request, keys, judge, answer, round(seconds, 3), failure)
