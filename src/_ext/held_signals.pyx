"""Deferral of signals while a state changes.

Compiled, as Python runs handlers between any two bytecodes, also in a ``finally``, where a second
signal would leave the handlers unrestored. C code runs them only in calls of `signal`.
"""

from threading import current_thread, main_thread

import signal as names

# The functions of `signal` without their conversions to enumerations, which would take longer than
# a model takes to learn from one row.
from _signal import getsignal, signal

# Signals whose Python handlers may raise between any two bytecodes.
cdef tuple HELD = tuple(
    [int(getattr(names, name)) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(names, name)]
)

# Signals received while deferred, in the main thread, as (handler, number, frame); None otherwise.
cdef list held = None


def raise_signals():
    """Run the handlers of deferred signals: Ctrl-C raises KeyboardInterrupt here."""
    if held and current_thread() is main_thread():
        run(held, None)


cdef run(list pending, first):
    """Run all handlers, then raise the first error, or the given one."""
    while pending:
        handler, number, frame = pending.pop(0)
        try:
            handler(number, frame)
        except BaseException as error:
            if first is None:
                first = error
    if first is not None:
        raise first


cdef class signals_held:
    """Context that defers signals until `raise_signals` or its end.

    Does nothing within another one, and in other threads: only the main thread receives signals.
    """

    cdef dict handlers
    cdef list pending

    def __enter__(self):
        global held
        if held is not None or current_thread() is not main_thread():
            return
        self.handlers = {}
        self.pending = held = []
        try:
            for number in HELD:
                handler = getsignal(number)
                if callable(handler):
                    self.handlers[number] = handler
                    signal(number, self)
        except BaseException as error:  # of a handler, which `signal` has run
            self.end(error)

    def __call__(self, number, frame):
        """Record a signal."""
        self.pending.append((self.handlers[number], number, frame))

    def __exit__(self, *error):
        if self.handlers is not None:
            self.end(None)

    cdef end(self, first):
        """Restore the handlers, run those of received signals, and raise the first error."""
        global held
        held = None
        for number, handler in self.handlers.items():
            while getsignal(number) is self:
                try:
                    signal(number, handler)
                except BaseException as error:  # of a handler that is back already
                    if first is None:
                        first = error
        self.handlers = None
        run(self.pending, first)
