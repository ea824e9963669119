"""TREC files: read, written, rejected with the line; runs joined with judgments."""

import bz2
import gzip
import io
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._ext import tokens as kernel
from rankcore.datasets import (
    JoinedRun,
    Qrels,
    Run,
    join_run,
    read_qrels,
    read_run,
    streams,
    write_qrels,
    write_run,
)
from strategies import examples

pytestmark = pytest.mark.kernel

PAGE = Path(__file__).parents[1] / "docs" / "files.md"

QRELS = b"""\
301 0 FT911-1 1
301 0 FT911-2 0

302\t1  FT911-1\t2\r
q-3 0 d\xc3\xa9 -1
"""
RUN = b"""\
301 Q0 FT911-9 1 9.5 bm25
301 Q0 FT911-1 2 -1e-3 bm25
302 Q0 FT911-1 1 0.30000000000000004 bm25
"""

IDS = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\n\r\v\f\0"), min_size=1, max_size=5
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
QUERIES = IDS.filter(lambda text: not text.startswith("#"))  # lines of # are comments
NESTED = st.dictionaries(QUERIES, st.dictionaries(IDS, FINITE, min_size=1, max_size=6), max_size=5)


def judgments(nested):
    return {q: {d: int(v) % 4 for d, v in docs.items()} for q, docs in nested.items()}


def test_read_qrels_reads_judgments():
    qrels = read_qrels(io.BytesIO(QRELS))
    assert repr(qrels) == "Qrels(4 documents, 3 queries)"
    assert qrels.qid.tolist() == ["301", "301", "302", "q-3"]
    assert qrels.docid.tolist() == ["FT911-1", "FT911-2", "FT911-1", "dé"]
    assert qrels.rel.tolist() == [1, 0, 2, -1]
    assert qrels.rel.dtype == np.int64
    assert len(qrels) == 4


def test_read_run_reads_scores():
    run = read_run(io.BytesIO(RUN))
    assert repr(run) == "Run(3 documents, 2 queries)"
    assert run.tag == "bm25"
    assert run.docid.tolist() == ["FT911-9", "FT911-1", "FT911-1"]
    assert run.score.tolist() == [9.5, -1e-3, 0.30000000000000004]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_every_kind_of_source_is_read(pack, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(pack(RUN))
    expected = read_run(io.BytesIO(RUN)).to_dict()
    with open(path, "rb") as file:
        for source in [path, str(path), file]:
            assert read_run(source).to_dict() == expected
    with pytest.raises(FileNotFoundError):
        read_qrels(tmp_path / "gone")


def test_relevance_of_every_integer_type_is_accepted():
    for dtype in ("u1", "i1", "u8", "i8", "f4", "?"):
        assert Qrels(["a"], ["b"], np.ones(1, dtype)).rel.tolist() == [1]


def test_an_empty_run_can_be_written_again():
    file = io.BytesIO()
    write_run(read_run(io.BytesIO(b"\n")), file)
    assert file.getvalue() == b""


@given(nested=NESTED, size=st.sampled_from([1, 7, 40, 10**6]))
@settings(max_examples=examples(200), deadline=None)
def test_written_files_are_read_back(nested, size):
    before, streams.BLOCK = streams.BLOCK, size
    try:
        run = Run.from_dict(nested, tag="mine")
        file = io.BytesIO()
        write_run(run, file)
        found = read_run(io.BytesIO(file.getvalue()))
        assert found.to_dict() == run.to_dict() == nested
        assert list(found.to_dict()) == [query for query in nested]
        assert found.tag == ("mine" if nested else "rankcore")  # no line, no tag
        qrels = Qrels.from_dict(judgments(nested))
        file = io.BytesIO()
        write_qrels(qrels, file)
        found = read_qrels(io.BytesIO(file.getvalue()))
        assert found.to_dict() == qrels.to_dict() == judgments(nested)
    finally:
        streams.BLOCK = before


def test_written_text_is_exact(tmp_path):
    run = Run(["b", "a", "b", "b"], [1, 2, 3, 4], [0.5, 1, 2, 2], tag="x")
    write_run(run, tmp_path / "run.gz")
    assert gzip.decompress((tmp_path / "run.gz").read_bytes()) == (
        b"b Q0 3 1 2.0 x\nb Q0 4 2 2.0 x\nb Q0 1 3 0.5 x\na Q0 2 1 1.0 x\n"
    )
    write_qrels(Qrels(["b", "a"], ["x", "y"], [2, -1]), tmp_path / "qrels")
    assert (tmp_path / "qrels").read_bytes() == b"b 0 x 2\na 0 y -1\n"
    for wrong, message in [
        (Run(["#a"], ["x"], [1]), "query '#a' starts with #, like comments"),
        (Run(["a b"], ["x"], [1]), "qid 'a b' of row 0 cannot be written"),
        (Run(["a"], ["x", "y z"][1:], [1]), "docid 'y z' of row 0 cannot be written"),
        (Run(["a"], ["x"], [1], tag="my run"), "tag 'my run' of row 0 cannot be written"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_run(wrong, io.BytesIO())


@pytest.mark.parametrize(
    ("read", "line", "message"),
    [
        (
            read_qrels,
            b"1 0 d",
            "cannot read '1 0 d': found 3 words, expected 4: query iteration doc",
        ),
        (
            read_qrels,
            b"x",
            "cannot read 'x': found 1 word, expected 4: query iteration document rel",
        ),
        (read_qrels, b"1 0 d 1 1", "cannot read '1 0 d 1 1': found 5 words, expected 4"),
        (read_qrels, b"1 0 d x", "relevance must be a finite number; got 'x'"),
        (
            read_qrels,
            b"1 0 d 1.5",
            "relevance must be a whole number of absolute value below 2**53; got 1.5",
        ),
        (
            read_qrels,
            b"1 0 d 1e300",
            "relevance must be a whole number of absolute value below 2**53; got 1e+300",
        ),
        (read_qrels, b"301 1 FT911-1 2", "document 'FT911-1' of query '301' is in line 1, too"),
        (read_qrels, b"1 0 d\x00 1", "found a NUL byte in '1 0 d\\x00 1': is this a text file?"),
        (read_qrels, b"1 0 " + b"d" * 4097 + b" 1", "an id of 4097 bytes, which begins with 'dddd"),
        (read_run, b"1 Q0 d 1 0.5", "found 5 words, expected 6: query Q0 document rank score tag"),
        (read_run, b"1 Q0 d 1 nan t", "score must be a finite number; got 'nan'"),
        (read_run, b"1 Q0 d 1 1e999 t", "score must be a finite number; got '1e999'"),
        (read_run, b"1 Q0 d 1 0.5x t", "score must be a finite number; got '0.5x'"),
        (read_run, b"301 Q0 FT911-1 5 3 t", "document 'FT911-1' of query '301' is in line 2, too"),
    ],
)
@pytest.mark.parametrize("size", [1, 10**6])
def test_malformed_lines_are_named(read, line, message, size, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", size)
    path = tmp_path / "file"
    before = QRELS if read is read_qrels else RUN
    path.write_bytes(before + b"\n" + line + b"\n9 0 d 1 1 1"[: 9 if read is read_qrels else 99])
    number = before.count(b"\n") + 2
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read(path)
    assert str(caught.value).startswith(f"{path}, line {number}: ")
    assert message in str(caught.value)


@given(text=st.binary(max_size=80), words=st.booleans())
@settings(max_examples=examples(500), deadline=None)
def test_arbitrary_bytes_are_read_or_rejected(text, words):
    if words:
        text = b" ".join(text[i : i + 2] for i in range(0, len(text), 2))
    rows = [line.split() for line in text.split(b"\n") if line.split()]
    try:
        expected = [(row[0], row[2], int(row[3])) for row in rows]
        fine = (
            all(len(row) == 4 and row[3].lstrip(b"+-").isdigit() for row in rows)
            and b"\0" not in text
            and len({row[:2] for row in expected}) == len(expected)
        )
    except (IndexError, ValueError):
        fine = False
    if fine:
        qrels = read_qrels(io.BytesIO(text))
        assert qrels.rel.tolist() == [row[2] for row in expected]
        found = [word.encode("utf-8", "surrogateescape") for word in qrels.docid]
        assert found == [row[1] for row in expected]
    else:
        # What Python's int() does not take may still be whole: 1.0, 1e2.
        with suppress(ValueError):
            read_qrels(io.BytesIO(text))


def test_empty_files_are_read():
    assert len(read_run(io.BytesIO(b""))) == len(read_qrels(io.BytesIO(b"\n\n"))) == 0
    assert read_run(io.BytesIO(b"")).to_dict() == {}
    assert repr(Run.from_dict({})) == "Run(0 documents, 0 queries)"


# ---------------------------------------------------------------- columns


def test_columns_are_converted():
    qrels = Qrels([1, 1, 2], np.array(["a", "b", "a"], object), np.array([1.0, 0.0, 2.0]))
    assert qrels.to_dict() == {"1": {"a": 1, "b": 0}, "2": {"a": 2}}
    assert qrels.rel.dtype == np.int64
    run = Run(["q"], ["d"], [True])
    assert run.score.tolist() == [1.0]
    assert run.tag == "rankcore"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Qrels(["a"], ["b"], [1.5]), ValueError, "rel must hold whole numbers"),
        (lambda: Qrels(["a"], ["b"], ["x"]), ValueError, "rel must hold whole numbers"),
        (lambda: Qrels(["a"], ["b"], [-(2**63)]), ValueError, "rel must hold whole numbers"),
        (lambda: Qrels(["a"], ["b"], [np.nan]), ValueError, "rel must hold whole numbers"),
        (lambda: Run(["a"], ["b"], [np.inf]), ValueError, "score must hold finite numbers"),
        (
            lambda: Run(["a"], ["b", "c"], [1, 2]),
            ValueError,
            "must have the same length; got shapes",
        ),
        (lambda: Run([["a"]], [["b"]], [[1]]), ValueError, "qid must have one dimension"),
        (
            lambda: Run([1.5], ["b"], [1]),
            TypeError,
            "qid must be all integers or all str; got float 1.5 in row 0",
        ),
        (
            lambda: Run(["a"], [None], [1]),
            ValueError,
            "docid contains None in row 0",
        ),
        (
            lambda: Run(["a", "b", "a"], ["c", "c", "c"], [1, 2, 3]),
            ValueError,
            "document 'c' of query 'a' is in rows 0 and 2; a pair must occur once",
        ),
    ],
)
def test_wrong_columns_are_rejected(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_read(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"query_id": ["a", "a"], "doc_id": ["x", "y"], "score": [0.5, 2.0]})
    assert Run.from_frame(frame).to_dict() == {"a": {"x": 0.5, "y": 2.0}}
    with pytest.raises(ValueError, match="must have the columns query_id, doc_id, relevance; got"):
        Qrels.from_frame(frame)


def test_frames_have_all_columns_and_are_read_back():
    pytest.importorskip("pandas")
    qrels = read_qrels(io.BytesIO(QRELS))
    frame = qrels.to_frame()
    assert list(frame.columns) == ["query_id", "doc_id", "relevance"]
    assert Qrels.from_frame(frame).to_dict() == qrels.to_dict()
    run = read_run(io.BytesIO(RUN))
    assert Run.from_frame(run.to_frame()).to_dict() == run.to_dict()


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["", "a", "b", "ab", "ba", "é\U0001f600"]))
    ),
)
@settings(max_examples=examples(300), deadline=None)
def test_first_equal_row_equals_that_of_a_loop(pairs):
    from rankcore.datasets.ids import first_rows

    codes = np.array([code for code, _ in pairs], np.int64)
    words = np.array([word for _, word in pairs], "U7")
    assert first_rows(codes, words).tolist() == [pairs.index(pair) for pair in pairs]
    names = words.tolist()
    assert first_rows(None, words).tolist() == [names.index(name) for name in names]
    swapped = words.astype(words.dtype.newbyteorder())
    assert first_rows(None, swapped).tolist() == [names.index(name) for name in names]


def test_the_kernel_checks_its_arrays():
    with pytest.raises(ValueError, match="do not match a text of 4 bytes"):
        kernel.split(b"a b\n", "t", 1, "x", np.empty((1, 2, 2), np.int64), np.empty(1, np.int64))
    spans, lines = np.empty((2, 2, 2), np.int64), np.empty(2, np.int64)
    with pytest.raises(ValueError, match="does not end in a newline"):
        kernel.split(b"a b", "t", 1, "x", spans, lines)
    assert kernel.split(b"a b\n", "t", 5, "x", spans, lines) == 1
    assert (spans[0].tolist(), lines[0]) == ([[0, 1], [2, 3]], 5)
    outside = np.array([[2, 9]])
    with pytest.raises(ValueError, match="word 0, at 2 of 7 bytes, is out of range"):
        kernel.take(b"a b\n", outside, np.empty((1, 9), np.uint32))
    with pytest.raises(ValueError, match="word 0, at 0 of 3 bytes, is out of range"):
        kernel.take(b"a b\n", np.array([[0, 3]]), np.empty((1, 2), np.uint32))
    assert kernel.numbers(b"a b\n", outside, np.empty(1)) == 0
    with pytest.raises(ValueError, match="are inconsistent"):
        kernel.numbers(b"1", np.array([[0, 1]]), np.empty(1))
    for table in [1, 2, 3]:
        with pytest.raises(ValueError, match="are inconsistent"):
            kernel.first_equal(
                np.zeros(2, np.int64),
                np.zeros((2, 1), np.uint32),
                np.empty(table, np.int64),
                np.empty(2, np.int64),
            )
    with pytest.raises(ValueError, match="are inconsistent"):
        kernel.find_docids(b"a\n", np.zeros((2, 2), np.int64), np.zeros((1, 2), np.int64))
    spans = np.zeros((1, 2), np.int64)
    assert kernel.find_docids(b"a\n", np.array([[0, 99]]), spans) == 0


# ---------------------------------------------------------------- joining


def plain_join(run, qrels, missing):
    """Rows by query as sets, each (document, label, score or None)."""
    result = {}
    for query in [*run, *qrels]:
        if query in qrels and (query in run or missing == "zero"):
            retrieved = run.get(query, {})
            rows = {(d, qrels[query].get(d, 0), s) for d, s in retrieved.items()}
            rows |= {(d, rel, None) for d, rel in qrels[query].items() if d not in retrieved}
            result[query] = rows
    return result


SMALL = st.dictionaries(
    st.sampled_from("abcd"),
    st.dictionaries(st.sampled_from("uvwxyz"), st.integers(-1, 3), min_size=1),
)


@given(run=SMALL, qrels=SMALL, missing=st.sampled_from(["zero", "skip"]), seed=st.integers(0, 99))
@settings(max_examples=examples(500), deadline=None)
def test_runs_are_joined_with_judgments(run, qrels, missing, seed):
    table = Run.from_dict(run)
    mixed = np.random.default_rng(seed).permutation(len(table))
    table = Run(table.qid[mixed], table.docid[mixed], table.score[mixed])
    if run and not set(run) & set(qrels):
        with pytest.raises(ValueError, match="the run and the qrels have no query in common"):
            join_run(table, Qrels.from_dict(qrels), missing=missing)
        return
    joined = join_run(table, Qrels.from_dict(qrels), missing=missing)
    found: dict = {}
    last = None
    for query, docid, y, s, retrieved in zip(
        *(getattr(joined, name).tolist() for name in ["qid", "docid", "y", "s", "retrieved"]),
        strict=True,
    ):
        assert query == last or query not in found  # a query's rows are next to each other
        last = query
        found.setdefault(query, []).append((docid, y, s if retrieved else None))
    for rows in found.values():
        kept = [row[2] is not None for row in rows]
        assert kept == sorted(kept, reverse=True)  # the retrieved ones come first
    assert {query: set(rows) for query, rows in found.items()} == plain_join(run, qrels, missing)
    assert sum(map(len, found.values())) == len(joined.y)
    # Queries in the order of the run, then of the judgments.
    order = [*dict.fromkeys(table.qid.tolist()), *qrels]
    assert list(found) == sorted(found, key=order.index)


def test_joined_runs_have_the_documented_columns():
    joined = join_run(read_run(io.BytesIO(RUN)), read_qrels(io.BytesIO(QRELS)))
    assert isinstance(joined, JoinedRun)
    assert repr(joined) == "JoinedRun(5 rows, 3 retrieved)"
    assert [getattr(joined, name).dtype.kind for name in vars(joined)] == list("ifUUbb")
    assert joined.y.tolist() == [0, 1, 0, 2, -1]
    assert joined.s.tolist() == [9.5, -1e-3, 0.0, 0.30000000000000004, 0.0]
    assert joined.retrieved.tolist() == [True, True, False, True, False]
    assert joined.unjudged.tolist() == [True, False, False, False, False]
    with pytest.raises(ValueError, match="missing must be 'zero' or 'skip'; got 'nan'"):
        join_run(read_run(io.BytesIO(RUN)), read_qrels(io.BytesIO(QRELS)), missing="nan")


def test_empty_run_scores_zero():
    joined = join_run(Run.from_dict({}), Qrels.from_dict({"a": {"b": 1}}))
    assert joined.retrieved.tolist() == [False]
    assert len(join_run(Run.from_dict({}), Qrels.from_dict({"a": {"b": 1}}), missing="skip").y) == 0


@pytest.mark.skipif(not PAGE.exists(), reason="no source tree beside the tests")
def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, namespace)
    assert namespace["model"].t_ == 4
    assert namespace["data"].docid.tolist() == ["d1", "d2", "d1", "d3"]
    assert namespace["joined"].retrieved.tolist() == [True, True, False, False]
