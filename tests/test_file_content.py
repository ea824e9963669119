"""Odd content of files: every reader rejects it with the file, the line and a remedy."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankcore as rc
from rankcore.clicks import open_clicks, read_clicks, read_ubi
from rankcore.datasets import iter_letor, load_letor, open_rows, read_qrels, read_run

UBI = {"query_id": "1", "user_query": "toner", "query_response_hit_ids": ["a", "b"]}
EVENT = {
    "query_id": "1",
    "action_name": "click",
    "event_attributes": {"object": {"object_id": "b"}},
}
IMPRESSION = {
    "query": "q",
    "document": "a",
    "position": 1,
    "clicked": 1,
    "session": "s",
    "dwell": 2.5,
    "ranker": "r",
}


def as_json(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


def read_events(path):
    return read_ubi(written(path.with_name("queries"), as_json(UBI)), path)


def read_queries(path):
    return read_ubi(path, written(path.with_name("events"), as_json(EVENT)))


def written(path, text):
    path.write_bytes(text.encode())
    return path


def n_letor_rows(path):
    return sum(len(one.y) for one in iter_letor(path, n_features=2))


def n_opened_rows(path):
    return rc.PRank(max_iter=1).fit(open_rows(path)).t_


# A reader of text, a text of two lines or more, and what it should read of it.
TEXTS = {
    "load_letor": (
        lambda path: len(load_letor(path).y),
        "1 qid:1 1:0.5 2:1 # a comment\n2 qid:1 1:0.3 2:2\n",
        2,
    ),
    "iter_letor": (n_letor_rows, "1 qid:1 1:0.5 2:1 # a\n2 qid:1 1:0.3 2:2\n", 2),
    "open_rows": (
        n_opened_rows,
        "1 qid:1 1:0.5 2:1 # a\n2 qid:1 1:0.3 2:2\n",
        2,
    ),
    "read_run": (lambda path: len(read_run(path).docid), "q Q0 a 1 2 t\nq Q0 b 2 1 t\n", 2),
    "read_qrels": (lambda path: len(read_qrels(path).docid), "q 0 a 1\nq 0 b 0\n", 2),
    "clicks, CSV": (
        lambda path: len(read_clicks(path)),
        "query,document,position,clicked\nq,a,1,0\nq,b,2,1\n",
        2,
    ),
    "clicks, JSON lines": (
        lambda path: len(read_clicks(path)),
        as_json(IMPRESSION, {**IMPRESSION, "document": "b", "position": 2}),
        2,
    ),
    "open_clicks": (
        lambda path: sum(map(len, open_clicks(path))),
        "query,document,position,clicked\nq,a,1,0\nq,b,2,1\n",
        2,
    ),
    "queries of UBI": (
        lambda path: len(read_queries(path)),
        as_json(UBI, {**UBI, "query_id": "2"}),
        4,
    ),
    "events of UBI": (
        lambda path: int(read_events(path).clicked.sum()),
        as_json({**EVENT, "action_name": "scroll"}, EVENT),
        1,
    ),
}


def a_cut(text):
    """Text whose first line alone ends in a carriage return."""
    return text.replace("\n", "\r", 1)


@pytest.mark.parametrize("name", TEXTS)
def test_line_endings_are_read_or_rejected(name, tmp_path):
    read, text, expected = TEXTS[name]
    path = tmp_path / "file"
    for whole in (text, text.rstrip("\n"), text.replace("\n", "\r\n"), f"\ufeff{text}"):
        assert read(written(path, whole)) == expected
    many = "\n" * 3
    for cut in (text.replace("\n", "\r"), text.replace("\n", "\r").rstrip("\r"), a_cut(text)):
        with pytest.raises(ValueError, match=r"file, line 1: lines must end in LF or CR LF"):
            read(written(path, cut))
        with pytest.raises(ValueError, match=r"file, line 4: .* tr '\\r' '\\n'"):
            read(written(path, many + cut))


RECORDS = [IMPRESSION, {**IMPRESSION, "document": "b", "position": 2}]


@pytest.mark.parametrize("field", IMPRESSION)
@pytest.mark.parametrize("value", [["a"], {"a": 1}], ids=["list", "object"])
def test_clicks_reject_lists_and_objects(field, value, tmp_path):
    path = written(tmp_path / "log", as_json(RECORDS[0], {**RECORDS[1], field: value}))
    with pytest.raises(ValueError, match=f"log, line 2: {field} must be a word or a number"):
        read_clicks(path)
    columns = {name: [one[name] for one in RECORDS] for name in IMPRESSION}
    pq.write_table(pa.table({**columns, field: [value, value]}), path)
    with pytest.raises(ValueError, match=f"log, row 0: {field} must be a word or a number"):
        read_clicks(path)


@pytest.mark.parametrize("field", ["position", "clicked", "dwell"])
def test_clicks_reject_integers_beyond_float64(field, tmp_path):
    path = written(tmp_path / "log", as_json(RECORDS[0], {**RECORDS[1], field: 10**309}))
    message = f"log, line 2: {field} must be a number in the range of float64"
    with pytest.raises(ValueError, match=message) as raised:
        read_clicks(path)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("read", "record", "field"),
    [(read_queries, UBI, name) for name in UBI] + [(read_events, EVENT, name) for name in EVENT],
    ids=[*UBI, *(f"{name} of events" for name in EVENT)],
)
@pytest.mark.parametrize("value", [{"a": 1}, 1.5], ids=["object", "number"])
def test_records_of_ubi_with_a_field_of_another_kind_are_rejected(
    read, record, field, value, tmp_path
):
    path = written(tmp_path / "log", as_json({**record, field: value}))
    with pytest.raises(ValueError, match=rf"log, line 1: .*{field}"):
        read(path)


@pytest.mark.parametrize("read", [read_clicks, read_queries, read_events])
def test_integers_of_thousands_of_digits_are_rejected(read, tmp_path):
    path = written(tmp_path / "log", '{"query_id": ' + "1" * 5000 + "}\n")
    with pytest.raises(ValueError, match=r"log, line 1: an integer has more than 4300 digits"):
        read(path)
