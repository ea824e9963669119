"""Queries of rows that are read block by block."""

from __future__ import annotations

from collections.abc import Iterator

from rankcore.datasets.letor_blocks import Block


class QueryStarts:
    """Offsets of queries in consecutive blocks of rows."""

    def __init__(self) -> None:
        self.seen: set[int | str] = set()
        self.last: int | str | None = None
        # The first id of each of two kinds that no input may have both of.
        self._word: str | None = None
        self._odd: str | None = None

    def starts(self, block: Block) -> Iterator[int]:
        """The rows of a block with which a query begins, ascending."""
        for row, start, stop, number, line, kind in block.runs.tolist():
            query = number if kind else block.word(start, stop)
            if kind != 1:
                self._check_spelling(block, start, stop, line, kind)
            if query == self.last:
                continue
            if query in self.seen:
                raise ValueError(
                    f"{block.name}, line {block.first_line + line - 1}: query {query} goes on "
                    "after another one began; a batch needs the rows of a query next to each other"
                )
            self.seen.add(query)
            self.last = query
            yield row

    def _check_spelling(self, block: Block, start: int, stop: int, line: int, kind: int) -> None:
        """Raise if there are words among the ids and integers such as 01.

        If all ids are integers, 01 is 1; if not, all are words. The first are numbered before the
        others are known.
        """
        word = block.word(start, stop)
        if kind == 0:
            self._word = self._word or word
        else:
            self._odd = self._odd or word
        if self._word and self._odd:
            raise ValueError(
                f"{block.name}, line {block.first_line + line - 1}: query ids are integers, which "
                f"may be written as {self._odd}, or words such as {self._word}; found both: write "
                f"{int(self._odd)}, or use words alone"
            )
