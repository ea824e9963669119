"""Exclusive learning: locks for threads, and Ctrl-C without half-finished updates.

One thread at a time trains an estimator; others wait. Methods that only read a model do
not lock: they read again, after waiting, if the model changed meanwhile. Signals that arrive while
a state is changed in place are deferred until the state can be restored.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

from rankcore._ext.held_signals import raise_signals, signals_held

Method = TypeVar("Method", bound=Callable[..., Any])

# Reads without a lock before waiting for the training thread.
TRIES = 3


class Versioned:
    """A state that is updated in place."""

    __slots__ = ("version",)
    # Incremented by every change, including failed ones; odd during a change. Not compared, copied
    # or saved.
    version: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Start with version 0, also for copied and unpickled states."""
        self = super().__new__(cls)
        self.version = 0
        return self

    def __getstate__(self) -> dict[str, Any]:
        """State for copying and pickling, without the version counter."""
        return self.__dict__.copy()


class _Guard:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.learning = False


# Stored outside of estimators, as a lock can neither be copied nor pickled.
_guards: WeakKeyDictionary[Any, _Guard] = WeakKeyDictionary()
_registry = threading.RLock()  # a signal handler may save a model at any time


def _guard_of(estimator: Any) -> _Guard:
    guard = _guards.get(estimator)
    if guard is None:
        with _registry:
            guard = _guards.setdefault(estimator, _Guard())
    return guard


def _forget_guards() -> None:
    """Create new locks in a child process, which lacks the threads that held them."""
    global _guards, _registry
    _guards, _registry = WeakKeyDictionary(), threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_guards)


def learns(method: Method) -> Method:
    """Decorate a method that learns: one thread at a time, not reentrant.

    The decorated method raises RuntimeError if the same thread is already training the estimator,
    as in a callback.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        guard = _guard_of(self)
        with guard.lock:
            _refuse_learning(self, guard, method.__name__)
            guard.learning = True
            try:
                return method(self, *args, **kwargs)
            finally:
                guard.learning = False

    return call  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """Decorate a method that reads the model: its result is consistent.

    It runs without a lock. If another thread changed the model meanwhile, the result is discarded
    and the method runs again; with the lock during a change, or after `TRIES`.
    """

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for _ in range(TRIES):
            state = self.__dict__.get("_state")
            seen = getattr(state, "version", 0)
            if seen % 2:
                break
            try:
                result = method(self, *args, **kwargs)
            except Exception:
                if self.__dict__.get("_state") is state and getattr(state, "version", 0) == seen:
                    raise
            else:
                if self.__dict__.get("_state") is state and getattr(state, "version", 0) == seen:
                    return result
        with _guard_of(self).lock:
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


@contextmanager
def unchanging(estimator: Any) -> Iterator[None]:
    """Keep other threads from training an estimator; raise if this thread is training it."""
    guard = _guard_of(estimator)
    with guard.lock:
        _refuse_learning(estimator, guard, "save or merge")
        yield


def _refuse_learning(estimator: Any, guard: _Guard, what: str) -> None:
    if guard.learning:
        raise RuntimeError(
            f"{what} was called while this {type(estimator).__name__} is learning, from a callback "
            "or a signal handler: call it after the fit has returned"
        )


@contextmanager
def changing(state: Versioned, restore: Callable[[], None]) -> Iterator[None]:
    """Change a state in place; on failure call ``restore``, without interruption."""
    with signals_held():
        state.version += 1
        try:
            yield
            raise_signals()
        except BaseException:
            restore()
            raise
        finally:
            state.version += 1
