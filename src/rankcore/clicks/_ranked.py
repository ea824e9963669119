"""A new ranking and the impressions of its documents in a click log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.ids import Codes, id_list
from rankcore._core.numbers import Floats, as_vector, check_lengths
from rankcore.ranking.click_pairs import trust_of


class Log(Protocol):
    """Columns of a click log: arrays with an entry for each impression.

    With ``queries`` and ``documents``, those of ids are indices into these.
    """

    query: NDArray[Any]
    document: NDArray[Any]
    position: NDArray[Any]  # from 1
    clicked: NDArray[Any]


@dataclass(frozen=True)
class Ranked:
    """Documents of the new ranking, query by query, the best first."""

    queries: list[Any]
    bounds: NDArray[np.int64]  # of queries among the rows
    place: dict[tuple[Any, Any], int]  # rows by query and document
    model: Floats | None

    @classmethod
    def of(cls, ranking: Mapping[str, ArrayLike], logged: set[Any], modelled: bool) -> Ranked:
        """Read and sort a ranking; omit queries that are not ``logged``."""
        columns = ["query", "document", "score", *["relevance"] * modelled]
        lacking = [name for name in columns if name not in ranking]
        if lacking:
            raise ValueError(
                f"ranking must have the columns {', '.join(columns)}; {lacking[0]} is missing"
            )
        query, document = (id_list(ranking[name], name) for name in columns[:2])
        score = as_vector(ranking["score"], "score")
        model = as_vector(ranking["relevance"], "relevance") if modelled else None
        check_lengths(query=query, document=document, score=score)
        if model is not None:
            check_lengths(score=score, relevance=model)
        if not np.isfinite(score).all():
            raise ValueError("score must be finite; got NaN or infinity")
        if model is not None and not ((model >= 0) & (model <= 1)).all():
            raise ValueError("relevance must be in [0, 1] for each document")
        numbers: dict[Any, int] = {}
        kept = [i for i, name in enumerate(query) if name in logged]
        number = np.array([numbers.setdefault(query[i], len(numbers)) for i in kept], dtype=int)
        if not kept:
            raise ValueError("log and ranking must have queries in common; got none")
        order = np.asarray(kept)[np.lexsort((-score[kept], number))]
        place = {(query[i], document[i]): row for row, i in enumerate(order.tolist())}
        if len(place) < len(kept):
            raise ValueError("ranking must have each document of a query once; got one twice")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(number))])
        return cls([*numbers], bounds, place, None if model is None else model[order])


@dataclass(frozen=True)
class Impressions:
    """Impressions of documents that are in the new ranking."""

    row: NDArray[np.intp]  # of `Ranked`
    propensities: Floats
    clicks: Floats
    trust: Floats  # probability of a click by trust in the position


def queries_of(parts: Iterable[Log]) -> set[Any]:
    """Return the ids of the queries of a log."""
    query_ids: set[Any] = set()
    for log in parts:
        numbers, ids = _numbered(log, "query", "queries")
        query_ids.update(ids[number] for number in np.unique(numbers).tolist())
    return query_ids


def _numbered(log: Log, name: str, property_name: str) -> tuple[NDArray[np.int64], list[Any]]:
    """Replace ids by numbers; return the ids by number, too."""
    column = getattr(log, name)
    if hasattr(log, property_name):
        return np.asarray(column, dtype=np.int64), id_list(
            getattr(log, property_name), property_name
        )
    codes = Codes(name)
    numbers = codes.number(id_list(column, name))
    return numbers.astype(np.int64), codes.ids().tolist()


def impressions(log: Log, rows: Ranked, propensity: Any) -> Impressions:
    """Find the impressions of the documents of the ranking."""
    theta = as_vector(getattr(propensity, "theta", propensity), "propensity")
    position = np.asarray(log.position)
    if position.size and not 1 <= position.min() <= position.max() <= theta.size:
        raise ValueError(
            f"propensity must have one number for each position, 1 to {position.max()}; got "
            f"{theta.size}"
        )
    seen = theta[position - 1]
    if not ((seen > 0) & (seen < np.inf)).all():
        raise ValueError("propensity must be finite and above 0 at all positions of the log")
    trust = trust_of(propensity)
    trusted = np.zeros(seen.size) if trust is None else trust[position - 1]
    query, queries = _numbered(log, "query", "queries")
    document, documents = _numbered(log, "document", "documents")
    pairs, inverse = np.unique(query * max(1, len(documents)) + document, return_inverse=True)
    q, d = np.divmod(pairs, max(1, len(documents)))
    places = [
        rows.place.get((queries[i], documents[j]), -1)
        for i, j in zip(q.tolist(), d.tolist(), strict=True)
    ]
    row = np.array(places, dtype=np.intp)[inverse]
    ranked = row >= 0
    clicked = np.asarray(log.clicked, dtype=np.float64)
    return Impressions(row[ranked], seen[ranked], clicked[ranked], trusted[ranked])
