"""Signals held while a state changes.

Compiled, since Python runs handlers between any two bytecodes, in a ``finally`` too: a second signal
there would leave handlers behind. C runs none but where `signal` is called, which tells of it.
"""

from threading import current_thread, main_thread

import signal as names

# The functions of `signal` without their conversions to enumerations, which would take longer than
# a model takes to learn from one row.
from _signal import getsignal, signal

# Signals whose Python handlers may raise: between two bytecodes, whatever is half done.
cdef tuple HELD = tuple(
    [int(getattr(names, name)) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(names, name)]
)

# Signals that came while they were held, in the main thread, as (handler, number, frame); None
# while they are not.
cdef list held = None


def raise_signals():
    """Run the handlers of signals that are held: Ctrl-C raises KeyboardInterrupt here."""
    if held and current_thread() is main_thread():
        run(held, None)


cdef run(list pending, first):
    """Run handlers even if one raises; the first error, or the one given, is raised afterwards."""
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
        """Take a signal."""
        self.pending.append((self.handlers[number], number, frame))

    def __exit__(self, *error):
        if self.handlers is not None:
            self.end(None)

    cdef end(self, first):
        """Restore the handlers, run those of signals that came, and raise the first error."""
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
