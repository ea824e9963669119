"""The driver of a sampler: calls of a judge, with a budget, retries, a journal and concurrency."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankcore.preference.comparisons import Comparison
from rankcore.preference.forms import Batch, Choice, Indexed, Judges, shown
from rankcore.preference.journal import OpenJournal, Record
from rankcore.preference.retries import AnswerError, PreferenceError
from rankcore.preference.rounds import RoundSampler
from rankcore.preference.samplers import Sampler

logger = logging.getLogger("rankcore.preference")

# Seconds between looks for an interrupt.
_POLL = 0.1
# Types of the answers that a journal has, by what a sampler takes.
_ANSWERS = {"degree": float, "best": int, "order": list}


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


@dataclass
class Driver:
    """Puts the comparisons of a sampler to a judge until nothing is left to ask.

    ``records`` are earlier answers and failed calls; new ones are appended to it. ``computed`` is
    the preference if it is computed from positions. An ``async`` preference requires ``loop``, a
    loop that runs in another thread than the driver.
    """

    sampler: Sampler
    preference: Any
    keys: Sequence[Hashable]
    records: list[Record]
    computed: Indexed | None
    loop: asyncio.AbstractEventLoop | None
    judge: str
    max_calls: int | None
    confidence: float | None
    concurrency: int
    retry: Any
    journal: OpenJournal | None
    progress: Callable[[RankingProgress], None] | None

    def __post_init__(self) -> None:
        self._lock, self._stopped = threading.Lock(), threading.Event()
        # Answers of the current round, in the order asked.
        self._answers: dict[Comparison, list[Any]] = {}
        self._began = time.monotonic()
        self.n_rounds = self._answered = self._running = 0
        names = {str(name): name for name in self.sampler.judges if name is not None}
        names = names or {self.judge: None}
        place = {key: place for place, key in enumerate(self.keys)}
        mine = [
            record
            for record in self.records
            if record.judge in names and all(key in place for key in record.keys)
        ]
        self._next_request = 1 + max((record.request for record in self.records), default=0)
        calls = {record.request: record.judge for record in mine}
        self.n_calls, self.cost = len(calls), sum(map(self._price, calls.values()))
        self._failed = sum(record.failure is not None for record in mine)
        self._stored: list[tuple[Comparison, Any]] = []
        for record in mine:
            places = tuple(place[key] for key in record.keys)
            if record.failure is None and self._is_answer(record.answer, places):
                comparison = Comparison(places, names[record.judge])
                self._stored.append((comparison, record.answer))
        self.n_reused = len(self._stored)

    def _is_answer(self, answer: Any, places: tuple[int, ...]) -> bool:
        """Return whether a stored answer has the number of items and the form of this judge's."""
        if answer is not None and type(answer) is not _ANSWERS[self.sampler.answers]:
            return False
        try:
            self.sampler.parse(Comparison(places), answer)
        except (TypeError, ValueError):
            return False
        return True

    # ------------------------------------------------------------------ rounds

    def run(self) -> None:
        """Ask until nothing is left to ask, the budget is used up, or `stop` is called."""
        try:
            asked = self._resume()
            while not self._stopped.is_set() and (asked or (asked := self._next_round())):
                self.n_rounds += 1
                if self.computed is not None:
                    self._compute(asked, self.computed)
                else:
                    for comparison in asked:
                        self._answers.setdefault(comparison, [])
                    step = self._size() or len(asked)
                    self._send_all([asked[k : k + step] for k in range(0, len(asked), step)])
                    self._tell_answers()
                asked = []
        finally:
            self._tell_answers()

    def _resume(self) -> list[Comparison]:
        """Tell the stored answers; return the comparisons of a last round that lack theirs.

        A sampler that is told the same asks the same, so that a run that stopped goes on as if it
        had not. Answers to other questions are told once it asks something new.
        """
        left: defaultdict[Comparison, deque[Any]] = defaultdict(deque)
        for comparison, answer in self._stored:
            left[comparison].append(answer)
        n_left, missing = len(self._stored), list[Comparison]()
        while n_left and not missing and not isinstance(self.sampler, RoundSampler):
            asked = self._ask_round()
            if not asked:
                break
            for comparison in asked:
                answers = self._answers.setdefault(comparison, [])
                if left[comparison]:
                    answers.append(left[comparison].popleft())
                    n_left -= 1
                else:
                    missing.append(comparison)
            if not missing:
                self._tell_answers()
        for comparison, others in left.items():
            for answer in others:
                self.sampler.tell(comparison, answer)
        return missing if self._left() != 0 else []

    def stop(self) -> None:
        """Make no more calls; `run` returns when those in progress have ended."""
        self._stopped.set()

    def _next_round(self) -> list[Comparison]:
        left, size = self._left(), self._size()
        if left == 0 or (self.confidence is not None and self.sampler.done(self.confidence)):
            return []
        n = None if left is None or size is None else left * size
        if isinstance(self.sampler, RoundSampler):
            return self.sampler.ask(n)
        return self._ask_round()[:n]

    def _ask_round(self) -> list[Comparison]:
        comparisons = self.sampler.ask(confidence=self.confidence)
        size = self._size()
        if size is not None and len(comparisons) % size:
            more = -len(comparisons) % size  # batches are filled
            comparisons += self.sampler.ask(more, confidence=self.confidence)
        return comparisons

    def _size(self) -> int | None:
        """Return the number of comparisons of a call; None for a whole round."""
        return self.preference.size if isinstance(self.preference, Batch) else 1

    def _left(self) -> int | None:
        return None if self.max_calls is None else max(0, self.max_calls - self.n_calls)

    def _compute(self, comparisons: list[Comparison], preference: Indexed) -> None:
        pairs = np.array([comparison.places for comparison in comparisons], dtype=np.intp)
        degrees = preference.degrees(pairs[:, 0], pairs[:, 1]).tolist()
        self.n_calls += len(comparisons)
        for comparison, degree in zip(comparisons, degrees, strict=True):
            self.sampler.tell(comparison, degree)

    def _tell_answers(self) -> None:
        """Tell the answers of a round in the order asked, not in that of their arrival."""
        for comparison, answers in self._answers.items():
            for answer in answers:
                self.sampler.tell(comparison, answer)
        self._answers.clear()

    # ------------------------------------------------------------------ calls

    def _send_all(self, requests: list[list[Comparison]]) -> None:
        """Send calls; await those in progress before an error or an interrupt is raised."""
        waiting = iter(requests)

        def work() -> None:
            while not self._stopped.is_set():
                with self._lock:
                    request = next(waiting, None)
                if request is None:
                    return
                try:
                    self._send(request)
                except BaseException:
                    self._stopped.set()
                    raise

        workers = min(self.concurrency, len(requests))
        if workers == 1 and self.loop is None:
            work()
            return
        with ThreadPoolExecutor(workers, thread_name_prefix="preference") as pool:
            running = [pool.submit(copy_context().run, work) for _ in range(workers)]
            try:
                while wait(running, timeout=_POLL).not_done:
                    pass  # an interrupt is raised here, whichever thread it came to
            except BaseException:
                self._stopped.set()
                raise
        for worker in running:
            worker.result()

    def _send(self, request: list[Comparison]) -> None:
        """Call the judge, again after failures, until each comparison has an answer.

        The policy of retries learns of failures of the judge alone: errors of the journal, of the
        callback for progress, and of functions of the policy are raised as they are.
        """
        error: Exception | None = None
        number, n_attempts = 0, 0
        try:
            for attempt in self._attempts():
                with self._lock:
                    if self._left() == 0 or (n_attempts and self._stopped.is_set()):
                        return
                    number, n_attempts = self._next_request, n_attempts + 1
                    self._next_request += 1
                    self.n_calls += 1
                    self.cost += self._price(self._judge_of(request[0]))
                    self._running += len(request)
                started = time.monotonic()
                good: list[tuple[Comparison, Any]] = []
                left, error = request, None
                try:
                    good, left, error = self._parse(request, self._call(request))
                except Exception as raised:
                    error = raised
                self._settle(number, good, left, error, time.monotonic() - started)
                if error is None:
                    return
                request = left
                items = shown(request[0].items)
                logger.info("attempt %d on %s: %s", n_attempts, items, _why(error))
                with attempt:
                    raise error
        except Exception as raised:
            if error is None or error not in (raised, raised.__cause__):
                raise
            pair = tuple(request[0].items)
            raise PreferenceError(pair, n_attempts, _why(error)) from error
        # The policy's retry_error_callback has dealt with the last failure.
        self._running += len(request)
        self._settle(number, [(comparison, None) for comparison in request], [], None, 0.0)

    def _attempts(self) -> Iterable[AbstractContextManager[Any]]:
        """Return the attempts of a call; an error within the last one is raised."""
        if self.retry is None:
            return [nullcontext()]
        policy: Iterable[AbstractContextManager[Any]] = self.retry.copy(sleep=self._stopped.wait)
        return policy

    def _call(self, request: list[Comparison]) -> Any:
        preference = self.preference
        if isinstance(preference, Batch):
            answer = preference.function([comparison.items for comparison in request])
        else:
            (comparison,) = request
            if isinstance(preference, Choice):
                answer = preference.function(list(comparison.items))
            elif isinstance(preference, Judges):
                answer = preference.functions[str(comparison.judge)](*comparison.items)
            else:
                answer = preference(*comparison.items)
        if self.loop is None:
            return answer
        return asyncio.run_coroutine_threadsafe(answer, self.loop).result()

    def _parse(
        self, request: list[Comparison], answer: Any
    ) -> tuple[list[tuple[Comparison, Any]], list[Comparison], Exception | None]:
        """Return comparisons with usable answers, those without, and why they have none."""
        answers = [answer]
        if isinstance(self.preference, Batch):
            try:
                answers = list(answer)
            except TypeError as error:
                raise AnswerError(
                    f"a batch must return a list of answers; got {shown(answer)}"
                ) from error
            if len(answers) != len(request):
                raise AnswerError(
                    f"a batch must answer each of {len(request)} pairs; got {len(answers)} answers"
                )
        good, left, wrong = [], [], None
        for comparison, value in zip(request, answers, strict=True):
            try:
                good.append((comparison, self.sampler.parse(comparison, value)))
            except (TypeError, ValueError) as error:
                left.append(comparison)
                wrong = AnswerError(str(error))
        return good, left, wrong

    def _settle(
        self,
        number: int,
        good: list[tuple[Comparison, Any]],
        left: list[Comparison],
        error: Exception | None,
        seconds: float,
    ) -> None:
        """Record the answers and the failure of a call, and report progress."""
        answered = [(comparison, answer, None) for comparison, answer in good]
        failed = [] if error is None else [(left[0], None, _why(error))]
        records = [
            Record(
                number,
                tuple(self.keys[place] for place in comparison.places),
                self._judge_of(comparison),
                answer,
                round(seconds, 3),
                failure,
            )
            for comparison, answer, failure in answered + failed
        ]
        with self._lock:
            self._running -= len(good) + len(left)
            self._answered += len(good)
            self._failed += len(failed)
            # In memory first, so that no answer is lost if the journal cannot be written.
            self.records += records
            for comparison, answer in good:
                self._answers[comparison].append(answer)
            if self.journal is not None:
                self.journal.write(records)
            if self.progress is not None:
                self.progress(
                    RankingProgress(
                        self.n_calls, self.max_calls, self._answered, self._running,
                        self._failed, self.cost, time.monotonic() - self._began,
                    )
                )  # fmt: skip

    def _judge_of(self, comparison: Comparison) -> str:
        """Return the name of the judge of a comparison in the journal."""
        return self.judge if comparison.judge is None else str(comparison.judge)

    def _price(self, judge: str) -> float:
        return self.preference.prices[judge] if isinstance(self.preference, Judges) else 0.0


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, AnswerError) else f"{type(error).__name__}: {error}"
