"""Click logs: sessions of arrays, and files that are read in windows."""

import gzip
import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from rankcore.clicks import ClickLog, open_clicks, read_clicks

ROWS = [
    # session, query, document, position, clicked, dwell, ranker
    ("s1", "shoes", "a", 1, 0, None, "old"),
    ("s1", "shoes", "b", 2, 1, 12.5, "old"),
    ("s1", "shoes", "c", 4, 1, None, "old"),
    ("s2", "shoes", "b", 1, 1, 3.0, "new"),
    ("s2", "shoes", "a", 2, 0, None, "new"),
    ("s3", "hats", "a", 1, 0, None, "old"),
]
NAMES = ("session", "query", "document", "position", "clicked", "dwell", "ranker")


def columns(rows=ROWS):
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def whole(log):
    """Contents of a log, with ids in place of numbers."""
    return [
        (
            int(session),
            log.queries[log.query[i]],
            log.documents[log.document[i]],
            int(log.position[i]),
            bool(log.clicked[i]),
        )
        for i, session in enumerate(log.session)
    ]


def write(path, form, rows=ROWS):
    table = columns(rows)
    if form == "csv":
        lines = [",".join(NAMES)]
        lines += [",".join("" if one is None else str(one) for one in row) for row in rows]
        path.write_text("\n".join(lines) + "\n")
    elif form == "jsonl":
        records = [
            {name: one for name, one in zip(NAMES, row, strict=True) if one is not None}
            for row in rows
        ]
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
    else:
        arrow = pytest.importorskip("pyarrow", reason="no pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow")
        parquet.write_table(arrow.table(table), path, row_group_size=2)
    return path


def test_rows_are_sorted_by_session_and_position():
    rng = np.random.default_rng(0)
    given = {k: np.array(v)[order] for order in [rng.permutation(6)] for k, v in columns().items()}
    log = ClickLog(**given | {"dwell": given["dwell"].astype(float)})
    expected = {}
    for session in dict.fromkeys(given["session"].tolist()):
        expected[session] = [row[1:] for row in ROWS if row[0] == session]
    found = [
        (
            log.queries[log.query[i]],
            log.documents[log.document[i]],
            int(log.position[i]),
            int(log.clicked[i]),
            None if np.isnan(log.dwell[i]) else log.dwell[i],
            log.rankers[log.ranker[i]],
        )
        for i in range(len(log))
    ]
    for (first, stop), rows in zip(pairwise(log.bounds), expected.values(), strict=True):
        assert found[first:stop] == sorted(rows, key=lambda row: row[2])


def test_sessions_begin_with_a_query_or_position():
    table = columns()
    log = ClickLog(*(table[name] for name in ("query", "document", "position", "clicked")))
    assert log.bounds.tolist() == [0, 3, 5, 6]
    assert whole(log) == whole(ClickLog(**table))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": [1, 2, 0, 1, 2, 1]}, r"row 2: positions must be .* got 0 \(add 1"),
        ({"position": [1, -1, 0, 1, 2, 1]}, "row 1: positions must be .* got -1$"),
        ({"position": [1, 2, 2.5, 1, 2, 1]}, "row 2: positions must be integers .* got 2.5"),
        ({"position": [1, 2, 10**6, 1, 2, 1]}, "row 2: positions must be"),
        (
            {"position": [1, 2, 2, 1, 2, 1]},
            r"two documents are at position 2 of one session \(rows 1 and 2\)",
        ),
        (
            {"document": [*"abbbaa"]},
            r"document 'b' occurs twice in one session \(rows 1 and 2\); pass session=",
        ),
        ({"clicked": [0, 2, 0, 0, 0, 0]}, "row 1: clicked must be 0 or 1; got 2"),
        ({"dwell": [0, -1.0, 0, 0, 0, 0]}, "row 1: dwell must be"),
        ({"query": [*"xxyxxz"]}, "row 2 and row 1 are of one session and of different queries"),
        ({"query": [*"xxxxx"]}, "query, document.* must have the same length; got 5, 6, 6"),
        ({"document": ["", *"bcbaa"]}, "row 0: ids of document must be integers or words"),
    ],
)
def test_bad_columns_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        ClickLog(**columns() | changes)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("window", [1, 3, 4, 100])
def test_written_logs_are_read_back(tmp_path, form, window):
    path = write(tmp_path / "log", form)
    expected = ClickLog(**columns())
    log = read_clicks(path)
    assert whole(log) == whole(expected)
    assert np.array_equal(log.dwell, expected.dwell, equal_nan=True)
    assert log.rankers[log.ranker].tolist() == expected.rankers[expected.ranker].tolist()
    file = open_clicks(path, window=window)
    for _ in range(2):
        found, n = [], 0
        for part in file:
            assert len(part) <= max(window, 3)
            found += [(row[0] + n, *row[1:]) for row in whole(part)]
            n += part.bounds.size - 1
        assert found == whole(expected)


def test_compressed_text_and_other_column_names_are_read(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"rank,q,doc,clicked\n1,5,7,true\n\n2,5,8,false\n"))
    log = read_clicks(path, columns={"query": "q", "document": "doc", "position": "rank"})
    assert whole(log) == [(0, "5", "7", 1, True), (0, "5", "8", 2, False)]
    with pytest.raises(ValueError, match="has no column 'query'; it has rank, q, doc, clicked"):
        read_clicks(path)
    with pytest.raises(ValueError, match="keys from"):
        read_clicks(path, columns={"url": "doc"})


HEADER = "session,query,document,position,clicked\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1,q,a,1,0\n1,q,b,2\n", "line 3: 4 fields; the header has 5"),
        (HEADER + "1,q,a,1,0\n\n1,q,b,x,0\n", "line 4: position must be a number; got 'x'"),
        (HEADER + "1,q,a,1,0\n1,q,b,0,0\n", "line 3: positions must be"),
        (HEADER + "1,q,a,1,maybe\n", "line 2: clicked must be a number; got 'maybe'"),
        (HEADER + "1,q,a,1,0\n1,q,a,2,0\n", "'a' occurs twice in one session .*lines 2 and 3"),
        (HEADER + "1,q,a,1,0\n2,q,a,1,0\n1,q,b,2,0\n", "line 4: session '1' continues after"),
        (HEADER + '1,q,"a,1,0\n', "line 2: unexpected end of data"),
        (HEADER + '1,q,"a\nb",1,0\n1,q,c,2,0\n', "line 2: a line break"),
        (HEADER, "holds no impressions"),
        ("", "is empty"),
        ('{"query": "q", "document": 1, "position": 1, "clicked": 0}\n{]\n', "line 2: Expecting"),
        (
            '{"query": "q", "document": 1, "position": 1, "clicked": 0}\n\n{"query": "q"}\n',
            "line 3 has no field 'document'",
        ),
        (
            '{"query": "q", "document": 1, "position": 1, "clicked": 0}\n'
            '{"query": "q", "document": "1", "position": 2, "clicked": 0}\n',
            "line 2: ids of document must all be integers or all strings",
        ),
        ('{"query": "q", "document": null, "position": 1, "clicked": 0}\n', "line 1: ids of doc"),
    ],
)
def test_bad_lines_are_rejected_with_their_number(tmp_path, text, message):
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        list(open_clicks(path))


@pytest.mark.parametrize("distance", [1, 8191, 8192, 20_000])
@pytest.mark.parametrize("form", [str, int])
def test_interrupted_sessions_are_joined_or_rejected(tmp_path, distance, form):
    others = [f"{i},q,a,1,0" for i in range(2, distance + 2)]
    path = tmp_path / "log.csv"
    path.write_text(HEADER + "\n".join(["1,q,a,1,0", *others, "1,q,b,2,1"]) + "\n")
    if form is int:
        rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
        path = tmp_path / "log.jsonl"
        keys = ("query", "document", "position", "clicked", "session")
        path.write_text(
            "".join(
                json.dumps(dict(zip(keys, ["q", d, int(p), int(c), int(s)], strict=True))) + "\n"
                for s, _, d, p, c in rows
            )
        )
    log = read_clicks(path)
    assert log.bounds.size - 1 == distance + 1
    assert log.documents[log.document[:2]].tolist() == ["a", "b"]
    for window in (100, 1 << 20):
        with pytest.raises(ValueError, match="session '?1'? continues after another one started"):
            list(open_clicks(path, window=window))


def test_repeated_rows_are_dropped_and_counted(tmp_path):
    rng = np.random.default_rng(0)
    n = 400
    session = np.sort(rng.integers(0, 60, n))
    document, position = rng.integers(0, 8, n), rng.integers(1, 9, n)
    clicked = rng.integers(0, 2, n)
    rows = sorted(zip(session, position, range(n), document, clicked, strict=True))
    expected, seen, places = [], set(), set()
    for s, p, _, d, _ in rows:
        if (s, d) not in seen and not seen.add((s, d)) and (s, p) not in places:
            places.add((s, p))
            click = any(c for t, _, _, e, c in rows if (t, e) == (s, d))
            expected.append((int(d), int(p), bool(click)))
    n_dropped = n - len(expected)
    message = f"{n_dropped} rows repeat a document or a position of their session"
    with pytest.raises(ValueError, match="one session"):
        ClickLog(np.ones(n, int), document, position, clicked, session=session)
    with pytest.warns(UserWarning, match=message):
        log = ClickLog(
            np.ones(n, int), document, position, clicked, session=session, on_error="drop"
        )
    path = tmp_path / "log.csv"
    lines = [
        f"{s},1,{d},{p},{c}"
        for s, d, p, c in zip(session, document, position, clicked, strict=True)
    ]
    path.write_text("\n".join([HEADER.strip(), *lines]) + "\n")
    with pytest.warns(UserWarning, match=message):
        whole = read_clicks(path, on_error="drop")
    with pytest.warns(UserWarning, match=message):
        parts = list(open_clicks(path, window=50, on_error="drop"))
    assert len(parts) > 3
    for logs in ([log], [whole], parts):
        found = [
            (int(one.documents[d]), int(p), bool(c))
            for one in logs
            for d, p, c in zip(one.document, one.position, one.clicked, strict=True)
        ]
        assert found == expected
        assert sum(one.n_dropped for one in logs) == n_dropped
    with pytest.raises(ValueError, match="on_error"):
        ClickLog(["q"], ["a"], [1], [0], on_error="keep")


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(n_sessions):
        path = tmp_path / "log.csv"
        ids = [f"{'d' * 200}{p}" for p in range(11)]
        lines = [f"{s},q{s % 9},{ids[p]},{p},0\n" for s in range(n_sessions) for p in range(1, 11)]
        path.write_text(HEADER + "".join(lines))
        tracemalloc.start()
        n = sum(len(part) for part in open_clicks(path, window=5_000))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert n == 10 * n_sessions
        return size

    assert peak(6_000) < 1.1 * peak(2_000)


FOUR_COLUMNS = "query,document,position,clicked\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: it must have a header or JSON objects"),
        ("\n \n", "is empty"),
        (FOUR_COLUMNS.replace(",", ";") + "q;a;1;1\n", "clicked: separate columns by commas"),
        ("\n \n" + FOUR_COLUMNS + "q,a,0,1\n", "line 4: positions must be integers from 1"),
        ('[{"query": "q"}]\n', "begins with a JSON array: write one object per line"),
        ("query," + FOUR_COLUMNS + "q,r,a,1,1\n", "has 2 columns 'query'"),
        (
            '{"query": {}, "document": "a", "position": 1, "clicked": 1}\n',
            "line 1: query must be a word",
        ),
        ('{"query": ' + "[" * 100_000 + "\n", "line 1: JSON is nested too deeply"),
    ],
)
def test_other_formats_are_rejected_with_a_remedy(tmp_path, text, message):
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_clicks(path)


@pytest.mark.parametrize(
    "text",
    [
        "\n\n" + FOUR_COLUMNS + "q,a,1,1\nq,b,2,0\n",
        "query, document, position , clicked\nq,a,1,1\nq,b,2,0\n",
        '\n{"query": "q", "document": "a", "position": 1, "clicked": 1}\n\n'
        '{"query": "q", "document": "b", "position": 2, "clicked": 0}\n',
    ],
)
def test_blank_lines_and_spaces_around_names_are_ignored(tmp_path, text):
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    log = read_clicks(path)
    assert log.position.tolist() == [1, 2]
    assert log.clicked.tolist() == [True, False]
