"""One lock per estimator, and a context that delays Ctrl-C.

`fit` builds a model and then swaps it in, so that only ``partial_fit`` changes one in place: it
excludes readers and other learning threads. Reading methods run at once in any number of threads.

Locks are only ever held by ``with``, whose entry and exit are C code: Ctrl-C, which Python raises
between two bytecodes, leaves none of them locked.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

Method = TypeVar("Method", bound=Callable[..., Any])


class _Reader:
    """A reading thread's lock, and the depth of its nested calls."""

    def __init__(self) -> None:
        self.lock, self.depth = threading.RLock(), 0


class _Lock:
    """Lock for one thread that learns, or for any number of threads that read.

    A learner holds ``turn`` and the locks of all readers. A reader passes through ``turn`` first,
    so that readers who come and go do not keep a learner waiting.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self._learner: int | None = None
        self._mine = threading.local()
        self._readers: list[ref[_Reader]] = []  # a reader goes with its thread

    def reader(self, what: str) -> _Reader:
        """Return this thread's reader, whose lock keeps the estimator from changing."""
        if self._learner is not None:
            self._check_not_learning(what)
        me: _Reader | None = getattr(self._mine, "reader", None)
        if me is None:
            me = _Reader()
            with self.turn:
                self._readers = [reader for reader in self._readers if reader() is not None]
                self._readers.append(ref(me))
            self._mine.reader = me  # last: Ctrl-C leaves no reader that learners do not know
        elif not me.depth:
            with self.turn:
                pass
        return me

    def learn(self, what: str, run: Callable[[], Any]) -> Any:
        """Call a function while no other thread reads or changes the estimator."""
        self._check_not_learning(what)
        with self.turn:
            self._learner = threading.get_ident()
            try:
                readers = [reader() for reader in self._readers]
                return _holding([reader.lock for reader in readers if reader is not None], run)
            finally:
                self._learner = None

    def is_learning(self) -> bool:
        """Return whether this thread is within `learn`."""
        return self._learner == threading.get_ident() and self.turn.locked()

    def _check_not_learning(self, what: str) -> None:
        if self.is_learning():
            raise RuntimeError(
                f"{what} was called while the same estimator learns, from a callback or a signal "
                "handler: call it after partial_fit has returned"
            )


def _holding(locks: Sequence[Any], run: Callable[[], Any]) -> Any:
    if not locks:
        return run()
    if len(locks) < 4:
        with locks[0]:
            return _holding(locks[1:], run)
    # Four at a time, for hundreds of threads.
    with locks[0], locks[1], locks[2], locks[3]:
        return _holding(locks[4:], run)


# Stored outside of estimators, as a lock can neither be copied nor pickled. A forked process lacks
# the threads that held the locks.
_locks: WeakKeyDictionary[Any, _Lock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.clear)


def _lock_of(estimator: Any) -> _Lock:
    return _locks.get(estimator) or _locks.setdefault(estimator, _Lock())


def exclusive(method: Method) -> Method:
    """Decorate a method that changes the model in place."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _lock_of(self).learn(method.__name__, lambda: method(self, *args, **kwargs))

    return call  # type: ignore[return-value]


def consistent_read(method: Method) -> Method:
    """Decorate a method that reads the model, which does not change meanwhile."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return read_model(method.__name__, self, lambda: method(self, *args, **kwargs))

    return call  # type: ignore[return-value]


def read_model(what: str, estimator: Any, run: Callable[[], Any]) -> Any:
    """Call a function while no thread changes an estimator; ``what`` names the call in errors."""
    me = _lock_of(estimator).reader(what)
    with me.lock:
        me.depth += 1
        try:
            return run()
        finally:
            me.depth -= 1


def replace_state(estimator: Any, attributes: dict[str, Any]) -> None:
    """Replace all attributes of an estimator at once, also within a method that learns."""

    def replace() -> None:
        estimator.__dict__ = attributes

    lock = _lock_of(estimator)
    if lock.is_learning():
        replace()
    else:
        lock.learn("fit", replace)


class uninterrupted:
    """Context that delays Ctrl-C to its end, for steps that must be made together.

    A KeyboardInterrupt can be raised between any two bytecodes of the main thread.
    """

    _handler: Any = None

    def __enter__(self) -> None:
        self._interrupts = 0
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler) and not isinstance(handler, uninterrupted):
                self._handler = handler
                signal.signal(signal.SIGINT, self)

    def __call__(self, number: int, frame: Any) -> None:
        """Count a Ctrl-C that is delayed."""
        self._interrupts += 1

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            for _interrupt in range(self._interrupts):
                signal.raise_signal(signal.SIGINT)
