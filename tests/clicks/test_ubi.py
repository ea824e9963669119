"""Logs of User Behavior Insights."""

import json

import pytest

from rankcore.clicks import read_ubi

QUERIES = [
    {"query_id": "1", "user_query": "toner", "query_response_hit_ids": ["a", "b", "c"]},
    {"query_id": "2", "user_query": "toner", "query_response_hit_ids": ["b", "a"]},
    {"query_id": "3", "user_query": "ink", "query_response_hit_ids": []},
    {"query_id": "4", "user_query": "ink", "query_response_hit_ids": [7]},
]


def event(query_id, object_id, action="click"):
    attributes = {"object": {"object_id": object_id, "object_id_field": "sku"}}
    attributes["position"] = {"ordinal": 1}
    return {
        "application": "shop",
        "action_name": action,
        "query_id": query_id,
        "client_id": "c",
        "timestamp": "2026-01-01T00:00:00Z",
        "event_attributes": attributes,
    }


EVENTS = [
    event("1", "b"),
    event("1", "b"),  # twice
    event("1", "c", "item_click"),
    event("1", "a", "purchase"),
    {"action_name": "search", "query_id": "2"},
    event("9", "a"),  # of another time
    event("4", 7),
]


def read(folder, queries=QUERIES, events=EVENTS, **options):
    for name, records in [("queries", queries), ("events", events)]:
        text = "\n".join(map(json.dumps, records)) + "\n"
        (folder / name).write_text(text)
    return read_ubi(folder / "queries", folder / "events", **options)


def rows(log):
    return [
        (log.queries[q], log.documents[d], int(p), bool(c))
        for q, d, p, c in zip(log.query, log.document, log.position, log.clicked, strict=True)
    ]


def test_queries_are_sessions_and_events_are_clicks(tmp_path):
    log = read(tmp_path)
    assert rows(log) == [
        ("toner", "a", 1, False),
        ("toner", "b", 2, True),
        ("toner", "c", 3, True),
        ("toner", "b", 1, False),
        ("toner", "a", 2, False),
        ("ink", "7", 1, True),
    ]
    assert log.bounds.tolist() == [0, 3, 5, 6]
    assert log.ranker is None
    bought = read(tmp_path, actions=["purchase"])
    assert [row[1] for row in rows(bought) if row[3]] == ["a"]
    wrapped = read(tmp_path, [{"_id": "x", "_source": one} for one in QUERIES])
    assert rows(wrapped) == rows(log)
    named = read(tmp_path, [{**one, "application": f"v{i}"} for i, one in enumerate(QUERIES)])
    assert named.rankers[named.ranker].tolist() == ["v0"] * 3 + ["v1"] * 2 + ["v3"]


def test_clicks_below_the_list_are_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="1 clicks are on objects that their query did not return"):
        log = read(tmp_path, depth=2)
    assert [row[1:] for row in rows(log)[:2]] == [("a", 1, False), ("b", 2, True)]


@pytest.mark.parametrize(
    ("queries", "events", "message"),
    [
        (
            [*QUERIES, QUERIES[0]],
            EVENTS,
            "queries, line 5: query_id must occur once; got '1' again",
        ),
        ([{**QUERIES[0], "user_query": None}], EVENTS, "line 1: user_query must be a word"),
        ([{**QUERIES[0], "query_response_hit_ids": "a"}], EVENTS, "line 1: query_response_hit_ids"),
        (
            [{**QUERIES[0], "query_response_hit_ids": ["a", "a"]}],
            [],
            "document 'a' occurs twice in one session",
        ),
        (
            QUERIES,
            [EVENTS[0], {"action_name": "click", "query_id": "1"}],
            "events, line 2: a click",
        ),
        (QUERIES, [{**EVENTS[0], "query_id": None}], "events, line 1: query_id must be"),
        (QUERIES, [[1]], "events, line 1: expected a JSON object; got list"),
        ([{"_source": 3}], EVENTS, "line 1: _source must be"),
    ],
)
def test_bad_records_are_rejected(tmp_path, queries, events, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, queries, events)
