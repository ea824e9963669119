"""Send calls: one after the other, in threads, or in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from rankcore.preference.forms import Batch, Choice, Judges
from rankcore.preference.ledger import Ledger, Request

Send = Callable[[Request], Any]


def _sender(ledger: Ledger) -> Send:
    """Function that sends a request to the preference; it is async if the preference is."""
    preference = ledger.preference
    if isinstance(preference, Batch):
        return lambda request: preference.function(ledger.pairs(request))
    if isinstance(preference, Choice):
        return lambda request: preference.function(list(ledger.pair(request)))
    if isinstance(preference, Judges):
        judges = preference.functions
        return lambda request: judges[request[0][-1] % len(judges)](*ledger.pair(request))
    return lambda request: preference(*ledger.pair(request))


def _limited(send: Send, seconds: float | None) -> Send:
    """Raise TimeoutError for a call that takes longer; its thread is abandoned."""
    if seconds is None:
        return send

    def limited(request: Request) -> Any:
        found: Future[Any] = Future()

        def call() -> None:
            try:
                found.set_result(send(request))
            except BaseException as error:  # raised where the answer is awaited
                found.set_exception(error)

        threading.Thread(target=call, name="preference", daemon=True).start()
        return found.result(seconds)

    return limited


def send_all(requests: list[Request], ledger: Ledger, concurrency: int) -> None:
    """Send all requests to a preference that is not async, within the budget.

    PreferenceError if one failed at all attempts. Requests in progress are awaited and recorded
    first, also on an interrupt.
    """
    send = _limited(_sender(ledger), ledger.retry.timeout)
    coming, lock, stopped = iter(requests), threading.Lock(), threading.Event()

    def pause_after(request: Request, attempt: int) -> float | None:
        try:
            answer = send(request)
        except Exception as error:
            with lock:
                return ledger.failed(request, attempt, error)
        with lock:
            return ledger.settle(request, attempt, answer)

    def reserved(request: Request) -> bool:
        with lock:
            return ledger.reserve(request)

    def work() -> None:
        while not stopped.is_set():
            with lock:
                request = next(coming, None)
            if request is None:
                return
            attempt = 0
            while not stopped.is_set() and reserved(request):
                attempt += 1
                pause = pause_after(request, attempt)
                if pause is None or stopped.wait(pause):
                    break

    workers = min(concurrency, len(requests))
    if workers <= 1:
        work()
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="preference") as pool:
        running = [pool.submit(work) for _ in range(workers)]
        for worker in running:
            worker.add_done_callback(lambda ended: stopped.set() if ended.exception() else None)
        try:
            wait(running)
        finally:
            stopped.set()
    for worker in running:
        worker.result()


async def send_all_async(
    requests: list[Request], ledger: Ledger, concurrency: int, in_threads: bool
) -> None:
    """As `send_all`, for an ``async`` preference, or one called ``in_threads``.

    If cancelled, it awaits and records the calls in progress first.
    """
    send, timeout = _sender(ledger), ledger.retry.timeout
    if in_threads:
        send, timeout = _limited(send, timeout), None
    coming, stopped = iter(requests), asyncio.Event()

    async def pause_after(request: Request, attempt: int) -> float | None:
        call: Awaitable[Any] = asyncio.to_thread(send, request) if in_threads else send(request)
        try:
            answer = await asyncio.wait_for(call, timeout)
        except Exception as error:
            return ledger.failed(request, attempt, error)
        return ledger.settle(request, attempt, answer)

    async def work() -> None:
        while not stopped.is_set() and (request := next(coming, None)) is not None:
            attempt = 0
            while not stopped.is_set() and ledger.reserve(request):
                attempt += 1
                if (pause := await pause_after(request, attempt)) is None:
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), pause)

    tasks = [asyncio.create_task(work()) for _ in range(min(concurrency, len(requests)))]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        stopped.set()
        await asyncio.wait(tasks)
    # All exceptions are retrieved, as asyncio requires; the first one is raised.
    for error in [task.exception() for task in tasks]:
        if error is not None:
            raise error
