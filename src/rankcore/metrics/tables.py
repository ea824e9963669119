"""Results as readable tables: text, Rich and HTML."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


def p_text(p_value: float) -> str:
    """Format a p-value with four digits, or as "< 0.0001"."""
    return f"{p_value:.4f}" if p_value >= 0.00005 else "<0.0001"


@dataclass(frozen=True)
class Table:
    """Rows of text with headings and a caption.

    The first ``n_names`` columns are names, aligned left; the others are numbers, aligned right.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    n_names: int = 1

    def __str__(self) -> str:
        lines = [self.headings, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
        padded = [
            "  ".join(
                text.ljust(width) if i < self.n_names else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*padded, self.caption])

    def rich(self) -> Any:
        """Return a table for Rich consoles; names wrap in narrow consoles, numbers do not."""
        from rich.table import Table as RichTable
        from rich.text import Text

        several = any("\n" in text for row in self.rows for text in row)
        table = RichTable(caption=self.caption, show_lines=several)
        for i, heading in enumerate(self.headings):
            if i < self.n_names:
                table.add_column(heading, overflow="fold")
            else:
                table.add_column(heading, justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(*[Text(text) for text in row])
        return table

    def html(self) -> str:
        """Convert the table to HTML, for notebooks."""
        head = "".join(f"<th>{escape(heading)}</th>" for heading in self.headings)
        body = "".join(
            "<tr>"
            + "".join(
                f"<th>{escape(text)}</th>" if i < self.n_names else f"<td>{escape(text)}</td>"
                for i, text in enumerate(row)
            )
            + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{escape(self.caption)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Tabular:
    """Base of results displayed as tables: as text, in notebooks and in Rich consoles."""

    @abstractmethod
    def _table(self) -> Table:
        """Return the result as a table."""

    def _narrow_table(self) -> Table:
        """Return the result as a table that fits a terminal."""
        return self._table()

    def __str__(self) -> str:
        return str(self._table())

    def __rich__(self) -> Any:
        """Return the table for Rich consoles."""
        return self._narrow_table().rich()

    def _repr_html_(self) -> str:
        """Return the table for notebooks."""
        return self._table().html()


def fold_table(names: Sequence[str], values: Any, caption: str) -> Table:
    """Tabulate a cross-validation: a row for each fold, the mean and the deviation."""
    named = [*((str(i), row) for i, row in enumerate(values, 1)), ("mean", values.mean(axis=0))]
    named.append(("deviation", values.std(axis=0, ddof=1)))
    rows = [[name, *map("{:.4f}".format, row)] for name, row in named]
    return Table(["fold", *names], rows, caption)
