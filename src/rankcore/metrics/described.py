"""Docstrings of measures, in which what several measures share is written once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, cleandoc, signature
from textwrap import wrap
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ORDER = ("Parameters", "Returns", "Raises", "See Also", "Notes", "Examples")

_ENTRIES = """\
y_true : array-like of numbers, shape (n,)
    True labels, higher for better; any finite numbers.
y_score : array-like of numbers, shape (n,)
    Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
qid : array-like, shape (n,), optional
    The query of each row: any type, any order. None: all rows are one query.
k : int, optional
    Positions that count; None: all.
rel : float, optional
    The smallest label that is relevant; None: the convention's, 1.
gain : {"exp2", "linear"}, sequence of floats or callable, optional
    Gain of a label; None: the convention's, ``2**y - 1``. See `Convention`.
discount : {"log2", "letor"}, optional
    Divisor of the gain at a position; None: the convention's, ``log2(1 + position)``.
ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
    Documents of equal score: the expectation over all their orders, the order of the rows,
    the reverse of it, or the order that is best or worst. None: the convention's, "average".
empty : float, "skip" or "raise", optional
    A query in which nothing is relevant (for NDCG: nothing has gain): its value; left out of the
    mean (NaN in ``per_query``); or an error. None: the convention's, 0.
convention : str or Convention, optional
    Source of the choices that are not made here: the name of a tool, or your own.
per_query : bool
    Whether to return the value of every query instead of the mean.
query_weight : array-like, shape (n_queries,), optional
    Non-negative weights of the queries in the mean, in order of first appearance.
docid : array-like, shape (n,), optional
    Document ids, whose order replaces that of the rows where it breaks ties.
n_jobs : int, optional
    Threads; -1 for one per processor. The values do not depend on it."""


@dataclass(frozen=True)
class Shared:
    """Sections that measures of one kind share."""

    entries: Mapping[str, str]  # of parameters, by name
    returns: str  # types of the result
    rest: str  # what follows the range of the values
    raises: str


def entries_of(text: str) -> dict[str, str]:
    """Entries of a section, by the first name of each."""
    found = re.split(r"\n(?=\S)", text.strip()) if text.strip() else []
    return {re.split(r"[ ,]", entry, maxsplit=1)[0]: entry for entry in found}


OF_QUERIES = Shared(
    entries_of(_ENTRIES),
    "float, or (ndarray of query ids, ndarray of values)",
    " The latter if ``per_query``, in order of first appearance.",
    """\
ValueError
    On empty input, different lengths, NaN or infinity, bad weights or unknown options.
TypeError
    For labels, scores or weights that are not real numbers.""",
)


def described(
    shared: Shared, values: str = "", notes: str = "", options: type | None = None
) -> Callable[[_F], _F]:
    """Add to a docstring the entries and sections that it lacks.

    ``options``, a TypedDict, has the keywords that ``**options`` stands for.
    """

    def put(function: _F) -> _F:
        form = signature(function)
        named = list(form.parameters.values())
        if options is not None:
            named[-1:] = [
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    default=False if name == "per_query" else None,
                    annotation=kind.__forward_arg__,
                )
                for name, kind in options.__annotations__.items()
            ]
            function.__signature__ = form.replace(parameters=named)  # type: ignore[attr-defined]
        if not function.__doc__:  # under python -OO
            return function
        summary, *parts = _SECTION.split(cleandoc(function.__doc__))
        sections = dict(zip(parts[::2], parts[1::2], strict=True))
        entries = {**shared.entries} | entries_of(sections.get("Parameters", ""))
        sections["Parameters"] = "\n".join(
            entries[one.name] for one in named if one.name in entries
        )
        result = wrap(f"{values}.{shared.rest}", 96)
        sections.setdefault("Returns", "\n    ".join([shared.returns, *result]))
        sections.setdefault("Raises", shared.raises)
        if notes:
            sections.setdefault("Notes", notes)
        texts = [
            f"{title}\n{'-' * len(title)}\n{sections[title].strip()}"
            for title in _ORDER
            if title in sections
        ]
        function.__doc__ = "\n\n".join([summary.strip(), *texts]) + "\n"
        return function

    return put
