"""Progress of long operations: learners report to a subscribed callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Progress:
    """Progress of a fit.

    Attributes
    ----------
    epoch, n_epochs : int
        Current pass, from 1, and planned number of passes; both 0 while rows are only read.
    done, total : int
        Units processed in this pass, and total units of the pass.
    value : float
        Value of ``measure`` so far in this pass.
    measure : str
        Name of the reported value, such as the mean rank loss of predictions before learning.
    unit : str
        Unit of the counts: examples, queries, rounds or bytes.
    """

    epoch: int
    n_epochs: int
    done: int
    total: int
    value: float
    measure: str = "rank loss"
    unit: str = "examples"


_watcher: ContextVar[Callable[[Progress], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watch(callback: Callable[[Progress], None]) -> Iterator[None]:
    """Call ``callback`` with a `Progress` several times a second during fits in this context.

    Parameters
    ----------
    callback : callable
        Function of a `Progress`. An exception that it raises stops the fit.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> from rankcore.progress import watch
    >>> seen = []
    >>> with watch(seen.append):
    ...     _ = rc.PRank(max_iter=2).fit(np.eye(3), [1, 2, 3])
    >>> [(p.epoch, p.done) for p in seen]
    [(1, 3), (2, 3)]
    """
    token = _watcher.set(callback)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def bar(console: Console | None = None) -> Iterator[None]:
    """Show a progress bar with the remaining time for fits in this context.

    Parameters
    ----------
    console : rich.console.Console, optional
        By default the output of a notebook cell, or standard error if it is a terminal, else none.

    Raises
    ------
    ModuleNotFoundError
        If Rich is not installed (``pip install 'rankcore[cli]'``).

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> with rc.progress.bar():
    ...     _ = rc.PRank(max_iter=2).fit(np.eye(3), [1, 2, 3])
    """
    try:
        from rich.console import Console
        from rich.progress import Progress as Bars
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a progress bar requires rich: pip install 'rankcore[cli]'", name=error.name
        ) from error
    output, console = console, console or Console(stderr=True)
    notebook = output is None and console.is_jupyter
    shown = notebook or console.is_terminal
    bars = Bars(console=console, transient=True, disable=not shown)
    # Rich's own display in notebooks is a widget, which files of executed notebooks do not contain.
    cell: Any = None

    def show(now: Progress) -> None:
        task = bars.tasks[0].id if bars.tasks else bars.add_task("", total=None)
        done, total = now.done, now.total
        if now.n_epochs:
            done, total = (now.epoch - 1) * now.total + now.done, now.n_epochs * now.total
        if bars.tasks[0].total != total:  # another fit, or the end of reading
            bars.reset(task, total=total)
        figure = f"{now.measure} {now.value:.4g}" if now.n_epochs else f"{now.value:,.0f} rows"
        bars.update(task, completed=done, description=figure)
        if notebook:
            nonlocal cell
            if cell is None:
                from IPython.display import display

                cell = display(bars, display_id=True)
            else:
                cell.update(bars)

    if bars.disable:
        yield  # some releases of Rich write an empty line when a disabled bar ends
        return
    with nullcontext() if notebook else bars, watch(show):
        yield


@contextmanager
def translated(translate: Callable[[Progress], Progress]) -> Iterator[None]:
    """Convert the progress reported inside the block for the callback of this context.

    Parameters
    ----------
    translate : callable
        Function of a `Progress` that returns a `Progress`.
    """
    callback = _watcher.get()
    if callback is None:
        yield
        return
    with watch(lambda progress: callback(translate(progress))):
        yield


def watched() -> bool:
    """Return whether this context has a callback."""
    return _watcher.get() is not None


def report(progress: Progress) -> None:
    """Call the callback of this context, if any."""
    callback = _watcher.get()
    if callback is not None:
        callback(progress)
