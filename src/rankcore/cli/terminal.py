"""Output of the commands: a progress bar during work, results at the end."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from rankcore.progress import Progress as FitProgress
from rankcore.progress import watch

if TYPE_CHECKING:
    from rankcore.callbacks import Iteration


class ProgressBar:
    """Bar on standard error: progress, units per second, a quality measure, time left."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.note = ""  # a quality measure, instead of the learner's own
        self.task = bar.add_task("reading", total=None, note="", unit="lines")

    def reading(self, n_lines: int) -> None:
        """Show the number of lines read."""
        self.bar.update(self.task, completed=n_lines)

    def working(self, what: str, done: float, total: float | None, unit: str) -> None:
        """Show the progress of other work."""
        self.bar.update(self.task, description=what, completed=done, total=total, unit=unit)

    def learning(self, now: FitProgress) -> None:
        """Show the progress of a fit."""
        if now.n_epochs == 0:
            self.bar.update(
                self.task,
                total=now.total or None,
                completed=now.done,
                unit=now.unit,
                note=f"{now.value:,.0f} {now.measure}",
            )
            return
        total = now.n_epochs * now.total
        if self.bar.tasks[0].total != total:
            self.bar.reset(self.task, total=total)  # reading has another speed
        self.bar.update(
            self.task,
            description=f"epoch {now.epoch} of {now.n_epochs}",
            completed=(now.epoch - 1) * now.total + now.done,
            unit=now.unit,
            # The statistics of boosting and pairs (bounds, pairs within a margin) do not measure
            # a ranking.
            note=self.note or (f"rank loss {now.value:.4f}" if now.measure == "rank loss" else ""),
        )

    def measured(self, iteration: Iteration) -> None:
        """Show measures on held-out rows; implements a callback of a fit."""
        values = [f"{name} {result.value:.4f}" for name, result in iteration.results.items()]
        self.note = ", ".join(values)


class _Speed(ProgressColumn):
    """Lines, examples, queries, rounds or megabytes per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed or 0
        unit = task.fields["unit"]
        if unit == "bytes":
            return Text(f"{speed / 1e6:,.1f} MB/s")
        return Text(f"{speed:,.0f} {unit}/s")


@contextmanager
def progress_bar(quiet: bool) -> Iterator[ProgressBar]:
    """Show reading and fits in a bar on standard error; then their warnings, one per line.

    Shows nothing if ``quiet``, or if standard error is not a terminal.
    """
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),  # the remaining width
        _Speed(Column(no_wrap=True)),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        expand=True,
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(sys.stderr),  # verbose=1 prints; stdout is for results
        # Some versions of Rich print an empty line when a disabled bar ends: do not start it.
        nullcontext() if bar.disable else bar,
    ):
        warnings.simplefilter("always")
        # Held-out rows have the same columns, selected by name.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        shown = ProgressBar(bar)
        with nullcontext() if bar.disable else watch(shown.learning):
            yield shown
    for warning in caught:
        complain(f"warning: {warning.message}")


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print numbers, strings, lists and dicts by name: one per line, or as one JSON object."""
    if as_json:
        print(json.dumps(facts, default=repr))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):{width}}  {_as_text(value)}")


def print_table(table: Any, for_terminal: Any) -> None:
    """Print a table as text, or with Rich on a terminal."""
    if sys.stdout.isatty():
        Console().print(for_terminal)
    else:
        print(table)


def label_text(label: Any) -> str:
    """Format a label: 3.0 as 3."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def finite(value: Any) -> Any:
    """Replace numbers that are not finite, which JSON cannot represent, by None."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _as_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_as_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_as_text, value))
    return str(value)


def complain(message: str) -> None:
    """Print one line on standard error."""
    print("rankcore:", " ".join(message.split()), file=sys.stderr)
