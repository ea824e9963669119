"""Sending calls out: one after the other, in threads, or in one event loop."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from rankcore.preference.forms import Batch, Judges
from rankcore.preference.ledger import Ledger, Request
from rankcore.preference.retry import PreferenceError
from rankcore.preference.several import Choice

Send = Callable[[Request], Any]


def sender(preference: Any, ledger: Ledger) -> Send:
    """A function that puts a request to the preference and returns its degrees, one for each call.

    For an ``async`` preference it returns an awaitable of them.
    """
    if isinstance(preference, Batch):
        return lambda request: preference.function(ledger.pairs(request))
    if isinstance(preference, Choice):
        return lambda request: preference.function(list(ledger.pair(request)))
    if isinstance(preference, Judges):
        judges = preference.functions
        return lambda request: judges[request.calls[0][-1] % len(judges)](*ledger.pair(request))
    return lambda request: preference(*ledger.pair(request))


def as_values(answer: Any, preference: Any) -> Any:
    """The degrees of a request: a `Batch` gives a list of them, other preferences a single one."""
    return answer if isinstance(preference, Batch) else [answer]


def send_all(requests: list[Request], preference: Any, ledger: Ledger, concurrency: int) -> None:
    """Put all requests to a preference that is not async, until the budget is spent.

    PreferenceError if one failed for good. What was under way is awaited and recorded first, on an
    interrupt as well.
    """
    send = sender(preference, ledger)
    if concurrency == 1 or len(requests) == 1:
        for request in requests:
            _send_one(request, send, preference, ledger)
    elif requests:
        _send_in_threads(requests, send, preference, ledger, concurrency)


def _send_one(request: Request, send: Send, preference: Any, ledger: Ledger) -> None:
    attempt = 0
    while ledger.reserve(request):
        attempt += 1
        try:
            answer = send(request)
        except Exception as error:
            time.sleep(ledger.failed(request, attempt, error))
        else:
            pause = ledger.settle(request, attempt, as_values(answer, preference))
            if pause is None:
                return
            time.sleep(pause)


def _send_in_threads(
    requests: list[Request], send: Send, preference: Any, ledger: Ledger, concurrency: int
) -> None:
    """Threads only call the preference; what they bring is recorded here, in one thread."""
    waiting = deque((request, 1) for request in requests)
    later: list[tuple[float, int, Request, int]] = []  # attempts to be made, when
    running: dict[Future[Any], tuple[Request, int]] = {}
    with ThreadPoolExecutor(concurrency, thread_name_prefix="preference") as pool:
        try:
            while waiting or later or running:
                while later and later[0][0] <= time.monotonic():
                    _, _, request, attempt = heapq.heappop(later)
                    waiting.appendleft((request, attempt))
                while waiting and len(running) < concurrency:
                    request, attempt = waiting.popleft()
                    if ledger.reserve(request):
                        running[pool.submit(send, request)] = (request, attempt)
                pause = max(0.0, later[0][0] - time.monotonic()) if later else None
                if running:
                    done, _ = wait(running, timeout=pause, return_when=FIRST_COMPLETED)
                    for future in done:
                        request, attempt = running[future]
                        error = future.exception()
                        if isinstance(error, Exception):
                            del running[future]
                            due = time.monotonic() + ledger.failed(request, attempt, error)
                            heapq.heappush(later, (due, len(later), request, attempt + 1))
                            continue
                        try:
                            values = as_values(future.result(), preference)
                            again = ledger.settle(request, attempt, values)
                        except Exception:
                            del running[future]  # what it brought is written down
                            raise
                        # An interrupt between these lines finds the answer still running.
                        del running[future]
                        if again is not None:
                            due = time.monotonic() + again
                            heapq.heappush(later, (due, len(later), request, attempt + 1))
                elif pause is not None:
                    time.sleep(pause)
        finally:
            # After an error or an interrupt: what is under way is paid for.
            unwritten = None
            for future, (request, _) in running.items():
                if ledger.has(request):
                    continue
                try:
                    if future.exception() is None:
                        values = as_values(future.result(), preference)
                        ledger.keep(request, ledger.parsed(request, values)[0])
                    else:
                        ledger.lose(request)
                except PreferenceError:
                    pass  # written down as lost; the first error is the one to raise
                except OSError as error:
                    unwritten = error  # the other answers are kept all the same
            if unwritten is not None:
                raise unwritten


async def send_all_async(
    requests: list[Request],
    preference: Any,
    ledger: Ledger,
    concurrency: int,
    in_threads: bool,
) -> None:
    """As `send_all`, for a preference that is awaited, or called ``in_threads``.

    When it is cancelled it lets the calls that are under way end, and records them.
    """
    send = sender(preference, ledger)
    coming = iter(requests)
    stopped = asyncio.Event()

    async def call(request: Request) -> Any:
        answer: Awaitable[Any] = asyncio.to_thread(send, request) if in_threads else send(request)
        return as_values(await asyncio.wait_for(answer, ledger.retry.timeout), preference)

    async def work() -> None:
        for request in coming:
            attempt = 0
            while not stopped.is_set() and ledger.reserve(request):
                attempt += 1
                try:
                    values = await call(request)
                except Exception as error:
                    pause: float | None = ledger.failed(request, attempt, error)
                else:
                    pause = ledger.settle(request, attempt, values)
                    if pause is None:
                        break
                try:
                    await asyncio.wait_for(stopped.wait(), pause)
                except TimeoutError:
                    continue
            if stopped.is_set():
                return

    tasks = [asyncio.create_task(work()) for _ in range(min(concurrency, len(requests)))]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        stopped.set()
        await asyncio.wait(tasks)
    # All are looked at, or asyncio complains; the first is raised.
    for error in [task.exception() for task in tasks]:
        if error is not None:
            raise error
