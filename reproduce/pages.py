"""Pages of reproductions: tables in Markdown, printed and written."""

from collections.abc import Iterable
from pathlib import Path


def as_row(*cells: object) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def head(*cells: object, numbers: bool = False) -> list[str]:
    """Return the head of a table; ``numbers`` aligns all columns but the first to the right."""
    return [as_row(*cells), "|---|" + ("---:|" if numbers else "---|") * (len(cells) - 1)]


def table(rows: Iterable[Iterable[object]], columns: Iterable[object]) -> list[str]:
    """Lines of a table."""
    return [*head(*columns), *(as_row(*one) for one in rows)]


def publish(text: str, path: Path | None) -> None:
    """Print a page, and write it if there is a path."""
    print(text)
    if path is not None:
        path.write_text(text, encoding="utf-8")
