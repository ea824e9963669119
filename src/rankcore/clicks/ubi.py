"""Logs of OpenSearch's User Behavior Insights: queries with their results, and events."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from rankcore._core.ids import Codes, as_names
from rankcore._core.numbers import ranges
from rankcore._core.warning import warn
from rankcore.clicks.log import ClickLog, warn_of_dropped
from rankcore.datasets.streams import title
from rankcore.datasets.table_files import json_object, numbered_lines

# Names of actions that are clicks.
ACTIONS = ("click", "item_click", "product_click")


def read_ubi(
    queries: str | os.PathLike[str],
    events: str | os.PathLike[str],
    *,
    actions: Sequence[str] = ACTIONS,
    depth: int | None = None,
    on_error: Literal["raise", "drop"] = "raise",
) -> ClickLog:
    """Read a log of OpenSearch's User Behavior Insights, version 1.0.

    Each record of the index ``ubi_queries`` is a session: the hits in ``query_response_hit_ids``
    were shown for ``user_query``, at positions 1, 2, ... Events of the index ``ubi_events`` with
    its ``query_id`` are clicks on ``event_attributes.object.object_id``.

    Parameters
    ----------
    queries, events : str or path-like
        JSON lines, optionally compressed: records, or hits of a search with records in ``_source``.
    actions : sequence of str, default=("click", "item_click", "product_click")
        Values of ``action_name`` that are clicks.
    depth : int, optional
        Maximum number of hits per query that users see.
    on_error : {"raise", "drop"}, default="raise"
        What to do with hits that repeat a document: see `ClickLog`.

    Returns
    -------
    ClickLog
        With ``ranker`` if the queries have a field ``application``.

    Raises
    ------
    ValueError
        For an invalid line, with its number, or a repeated ``query_id``.

    Warns
    -----
    UserWarning
        If clicks are on objects that their query did not return; they are ignored.

    Notes
    -----
    Memory: the log, and the clicks. Clicks with a ``query_id`` that is not in ``queries`` are
    ignored: they are from another period.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankcore.clicks import read_ubi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     queries, events = (os.path.join(folder, name) for name in ("q.jsonl", "e.jsonl"))
    ...     with open(queries, "w") as file:
    ...         _ = file.write('{"query_id": "1", "user_query": "toner", '
    ...                        '"query_response_hit_ids": ["a", "b"]}')
    ...     with open(events, "w") as file:
    ...         _ = file.write('{"query_id": "1", "action_name": "click", '
    ...                        '"event_attributes": {"object": {"object_id": "b"}}}')
    ...     log = read_ubi(queries, events)
    >>> log.clicked
    array([False,  True])
    """
    clicked = _clicks(events, frozenset(as_names(actions, "actions")))
    columns: dict[str, list[Any]] = {name: [] for name in ("query", "document", "ranker")}
    sizes: list[int] = []
    lines: list[int] = []
    clicks: list[bool] = []
    lost = 0
    seen = set()
    for record, where, line in _records(queries):
        query_id = _field(record, "query_id", where)
        if query_id in seen:
            raise ValueError(f"{where}: query_id must occur once; got {query_id!r} again")
        seen.add(query_id)
        hits = record.get("query_response_hit_ids")
        if not isinstance(hits, list):
            raise ValueError(f"{where}: query_response_hit_ids must be a list of ids; got {hits!r}")
        shown = [_word(hit, "query_response_hit_ids", where) for hit in hits[:depth]]
        clicked_objects = clicked.get(query_id, set())
        lost += len(clicked_objects.difference(shown))
        columns["query"] += [_field(record, "user_query", where)] * len(shown)
        columns["document"] += shown
        ranker = record.get("application") or "unknown"
        columns["ranker"] += [_word(ranker, "application", where)] * len(shown)
        clicks += [hit in clicked_objects for hit in shown]
        sizes.append(len(shown))
        lines += [line] * len(shown)
    if lost:
        warn(f"{lost} clicks are on objects that their query did not return, and are left out")
    name = title(queries)
    codes = {column: Codes(column) for column in columns}
    if set(columns["ranker"]) <= {"unknown"}:
        del columns["ranker"]
    numbers: dict[str, Any] = {
        column: codes[column].number(ids, lambda i: f"{name}, line {lines[i]}")
        for column, ids in columns.items()
    }
    n = np.array(sizes, dtype=np.int64)
    numbers["session"] = np.repeat(np.arange(n.size), n)
    numbers["position"] = ranges(1, n)
    numbers["clicked"] = np.array(clicks)
    log = ClickLog._of(numbers, codes, lambda i: f"{name}, line {lines[i]}", on_error)
    warn_of_dropped(log.n_dropped)
    return log


def _clicks(path: str | os.PathLike[str], actions: frozenset[str]) -> dict[str, set[str]]:
    """Collect the clicked objects by query."""
    objects_by_query: dict[str, set[str]] = {}
    for record, where, _ in _records(path):
        if _action(record, where) not in actions:
            continue
        attributes = record.get("event_attributes")
        clicked = attributes.get("object") if isinstance(attributes, dict) else None
        if not isinstance(clicked, dict) or clicked.get("object_id") is None:
            raise ValueError(f"{where}: a click requires event_attributes.object.object_id")
        document = _word(clicked["object_id"], "event_attributes.object.object_id", where)
        objects_by_query.setdefault(_field(record, "query_id", where), set()).add(document)
    return objects_by_query


def _action(record: dict[str, Any], where: str) -> str | None:
    """Return the name of the action of an event; None for events without one."""
    action = record.get("action_name")
    if not isinstance(action, str | None):
        raise ValueError(f"{where}: action_name must be a word; got {action!r:.60}")
    return action


def _records(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Yield records, with their location and line number."""
    name = title(path)
    for line, number in numbered_lines(path):
        where = f"{name}, line {number}"
        record = json_object(line, where)
        source = record.get("_source", record)
        if not isinstance(source, dict):
            raise ValueError(f"{where}: _source must be a JSON object")
        yield source, where, number


def _field(record: dict[str, Any], key: str, where: str) -> str:
    return _word(record.get(key), key, where)


def _word(value: Any, key: str, where: str) -> str:
    if type(value) not in (int, str) or value == "" or "\0" in str(value):
        raise ValueError(f"{where}: {key} must be a word without zero bytes; got {value!r:.60}")
    return str(value)
