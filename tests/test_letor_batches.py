"""LETOR files in batches for partial_fit: whole queries, bounded memory."""

import io
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from builds import run
from letor_rows import assert_rows, load
from rankcore.datasets import LetorData, dump_letor, iter_letor, load_letor, open_rows, streams
from strategies import examples

pytestmark = pytest.mark.kernel


def joined(batches):
    """Batches as one result."""
    parts = list(batches)
    assert all(isinstance(part, LetorData) for part in parts)
    qid = None if parts[0].qid is None else np.concatenate([part.qid for part in parts])
    X = sp.vstack([part.X for part in parts], format="csr")
    return LetorData(X, np.concatenate([part.y for part in parts]), qid, None, None)


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    rows=st.integers(1, 20),
    block=st.sampled_from([1, 50, 10**6]),
    by_queries=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_batches_consist_of_whole_queries(sizes, rows, block, by_queries):
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = sp.random(qid.size, 5, 0.5, format="csr", random_state=0)
    file = io.BytesIO()
    dump_letor(X, np.arange(qid.size), file, qid=qid, docid=np.arange(qid.size))
    name = "queries_per_batch" if by_queries else "rows_per_batch"
    before, streams.BLOCK = streams.BLOCK, block
    try:
        parts = list(iter_letor(io.BytesIO(file.getvalue()), n_features=5, **{name: rows}))
    finally:
        streams.BLOCK = before
    whole = joined(parts)
    assert_rows(whole, X, np.arange(qid.size).astype(float), qid)
    assert np.concatenate([part.docid for part in parts]).tolist() == list(
        map(str, range(qid.size))
    )
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        queries = np.unique(part.qid)
        assert part.y.size == sum(sizes[query] for query in queries)
        if by_queries:
            assert queries.size == rows or (after is None and queries.size < rows)
        else:
            without_last = part.y.size - sizes[part.qid[-1]]
            assert without_last < rows
            assert part.y.size >= rows or after is None


@pytest.mark.parametrize("block", [1, 10, 10**6])
def test_batches_without_queries_have_the_requested_size(block, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", block)
    text = b"".join(b"%d 1:%d\n" % (i, i) for i in range(25))
    parts = list(iter_letor(io.BytesIO(text), n_features=1, rows_per_batch=10))
    assert [part.y.size for part in parts] == [10, 10, 5]
    assert joined(parts).y.tolist() == list(range(25))
    with pytest.raises(
        ValueError, match="line 1: the row has no qid:, and queries_per_batch counts"
    ):
        list(iter_letor(io.BytesIO(text), n_features=1, queries_per_batch=2))


def test_batches_reject_interrupted_queries():
    text = b"1 qid:1 1:1\n1 qid:2 1:1\n\n1 qid:01 1:1\n"
    with pytest.raises(ValueError, match="line 4: query 1 continues after another one started"):
        list(iter_letor(io.BytesIO(text), n_features=1))
    assert load(text).qid.tolist() == [1, 2, 1]
    for options, error, message in [
        ({"zero_based": "auto"}, ValueError, "zero_based must be True or False; got 'auto'"),
        ({"rows_per_batch": 0}, ValueError, "rows_per_batch must be an integer >= 1; got 0"),
        (
            {"queries_per_batch": 0},
            ValueError,
            "queries_per_batch must be an integer >= 1; got 0",
        ),
        ({"n_features": None}, TypeError, "n_features must be an integer >= 1; got None"),
    ]:
        with pytest.raises(error, match=message):
            iter_letor(io.BytesIO(text), **{"n_features": 1, **options})
    zero_based = iter_letor(io.BytesIO(b"1 qid:1 0:1\n"), n_features=1, zero_based=True)
    assert next(zero_based).X.toarray().tolist() == [[1]]


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("ids", [["1", "01", "b"], ["a", "+1"], ["9" * 20, "7", "007"]])
def test_batches_reject_mixed_spellings_of_ids(ids, rows, tmp_path):
    # In one batch 01 beside b is a word and another query than 1; alone it would be 1.
    text = "".join(f"{label} qid:{one} 1:1\n" for one in ids for label in (0, 1))
    line = 2 * len(ids) - 1
    with pytest.raises(ValueError, match=rf"line {line}: .* got both"):
        list(iter_letor(io.BytesIO(text.encode()), n_features=1, rows_per_batch=rows))
    path = tmp_path / "rows.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"rows.txt, line {line}: .* got both"):
        rc.PairwisePerceptron(max_iter=1).fit(open_rows(path))


@pytest.mark.parametrize("ids", [["1", "b", "2"], ["01", "2", "+3"], ["a", "9" * 20]])
def test_files_of_integer_or_word_ids_are_read_in_batches(ids, tmp_path):
    text = "".join(f"{label} qid:{one} 1:1\n" for one in ids for label in (0, 1)).encode()
    batches = iter_letor(io.BytesIO(text), n_features=1, rows_per_batch=1)
    found = [str(one) for batch in batches for one in batch.qid]
    whole = load_letor(io.BytesIO(text)).qid
    assert found == [str(one) for one in whole]


MEASURED = """
import gc, sys
from rankcore.datasets import iter_letor, load_letor
def load(path):
    return load_letor(path)
def batches(path):
    return [None for _ in iter_letor(path, n_features=50, rows_per_batch=1000)]
def of(what):
    return 1024 * int(open("/proc/self/status").read().split(what + ":")[1].split()[0])
task, few, many = sys.argv[1:]
globals()[task](few)
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = of("VmRSS")
globals()[task](many)
print(of("VmHWM") - before)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs Linux")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers add pages")
def test_reading_takes_the_memory_of_the_result(tmp_path):
    """Of the process, in pages: an array is shrunk in place, which tracemalloc may not see.

    NumPy 2.5 tells it of the new block before the end of the old one, though they are the same.
    """
    rows = sp.random(40_000, 50, 1.0, format="csr", random_state=0)
    paths = tmp_path / "few", tmp_path / "many"
    for path, n in zip(paths, [1000, 40_000], strict=True):
        dump_letor(rows[:n], np.zeros(n), path, qid=np.arange(n) // 100)
    result = 40_000 * 50 * 12
    scratch = 8 * streams.BLOCK
    # Blocks from 128 kB on are given back when they are freed, not kept for the next ones.
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**17)}
    for task, limit in [("load", 1.2 * result + scratch), ("batches", 3e6 + scratch)]:
        grown = int(run(sys.executable, "-c", MEASURED, task, *paths, env=env))
        assert grown < limit, task
        assert task == "batches" or grown > result  # which is in memory at the end
