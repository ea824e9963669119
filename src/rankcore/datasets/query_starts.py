"""Queries of rows that are read block by block."""

from __future__ import annotations

from collections.abc import Iterator

from rankcore.datasets.letor_blocks import Block


class QueryStarts:
    """Offsets of queries in consecutive blocks of rows.

    Parameters
    ----------
    name : str
        Name of the source in errors; may be set for each file of a sequence.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: set[int | str] = set()
        self.last: int | str | None = None

    def starts(self, block: Block) -> Iterator[int]:
        """The rows of a block with which a query begins, ascending."""
        for row, start, stop, number, line, kind in block.runs.tolist():
            query = number if kind else block.word(start, stop)
            if query == self.last:
                continue
            if query in self.seen:
                raise ValueError(
                    f"{self.name}, line {block.first_line + line - 1}: query {query} goes on after "
                    "another one began; a batch needs the rows of a query next to each other"
                )
            self.seen.add(query)
            self.last = query
            yield row
