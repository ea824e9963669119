"""Rows on disk: text files and row caches, whole queries, damage that is found."""

import bz2
import gzip
import importlib.util
import io
import json
import math
import os
import shutil
import signal
import tracemalloc
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from rankcore._core.survey import Surveyor
from rankcore._ext.held_signals import signals_held
from rankcore._ext.survey import raise_sizes, sum_squares
from rankcore.datasets import (
    dump_letor,
    file_rows,
    load_letor,
    open_rows,
    row_cache,
    row_cache_writer,
    streams,
)
from rankcore.datasets.text_rows import reading_options, text_parts
from strategies import examples


@pytest.fixture
def small(monkeypatch):
    """Blocks of few values, so that small data have many."""
    for module in (file_rows, row_cache_writer):
        monkeypatch.setattr(module, "BLOCK_VALUES", 100)


@pytest.fixture
def queries(tmp_path):
    """A LETOR file of 40 queries, and what it holds."""
    rng = np.random.default_rng(0)
    qid = np.repeat(rng.permutation(40), rng.integers(1, 9, 40))
    X = sp.random(qid.size, 12, 0.4, format="csr", random_state=1)
    path = tmp_path / "queries.txt"
    dump_letor(X, rng.integers(0, 4, qid.size), path, qid=qid)
    return path


def collected(rows, order=None, n_features=12):
    """All windows of a pass as one, with the numbers of their rows and how many there were."""
    parts = []
    for window in rows.windows(n_features, order, 0):
        data, indices, indptr = window.rows.arrays
        X = sp.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(len(indptr) - 1, 12))
        queries = None if window.queries is None else window.queries.copy()
        parts.append((X, window.labels.copy(), queries, window.number, window.done))
    return parts


@pytest.mark.parametrize("kind", ["text", "cache"])
def test_windows_are_the_rows_of_the_file(kind, queries, small, tmp_path):
    rows = open_rows(queries, cache=tmp_path / "rows" if kind == "cache" else None)
    expected = load_letor(queries)
    parts = collected(rows)
    assert len(parts) > 5
    assert [part[3] for part in parts] == list(range(len(parts)))
    assert parts[-1][4] == rows.size
    assert (sp.vstack([part[0] for part in parts]) != expected.X).nnz == 0
    assert np.array_equal(np.concatenate([part[1] for part in parts]), expected.y)
    lengths = np.concatenate([np.bincount(part[2]) for part in parts])
    changes = np.flatnonzero(np.diff(expected.qid)) + 1
    assert np.array_equal(lengths, np.diff(changes, prepend=0, append=expected.qid.size))


@pytest.mark.parametrize("kind", ["text", "cache"])
def test_an_order_has_each_row_once_and_is_repeatable(kind, queries, small, tmp_path):
    rows = open_rows(queries, window=3, cache=tmp_path / "rows" if kind == "cache" else None)
    expected = load_letor(queries)
    passes = [collected(rows, order) for order in [(7, 1), (7, 1), (7, 2)]]
    sums = [[part[0].sum(axis=1) for part in one] for one in passes]
    changes = np.flatnonzero(np.diff(expected.qid)) + 1
    sizes = np.diff(changes, prepend=0, append=expected.qid.size)
    for one, of_rows in zip(passes, sums, strict=True):
        assert np.array_equal(np.sort(np.concatenate(of_rows)), np.sort(expected.X.sum(axis=1).A1))
        lengths = np.concatenate([np.bincount(part[2]) for part in one])
        assert np.array_equal(np.sort(lengths), np.sort(sizes))
    assert all(map(np.array_equal, sums[0], sums[1]))
    if kind == "cache":  # of text, blocks stay in order
        assert not all(map(np.array_equal, sums[0], sums[2]))
    # A pass that begins in the middle has the rest of the same windows.
    rest = [window.labels.copy() for window in rows.windows(12, (7, 1), 2)]
    assert all(map(np.array_equal, rest, [part[1] for part in passes[0][2:]]))


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    n_values=st.integers(1, 40),
    n_rows=st.integers(1, 20),
    block=st.sampled_from([1, 50, 10**6]),
    with_qid=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_parts_end_where_they_are_full(sizes, n_values, n_rows, block, with_qid):
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = sp.random(qid.size, 5, 0.5, format="csr", random_state=0)
    file = io.BytesIO()
    dump_letor(X, np.arange(qid.size), file, qid=qid if with_qid else None)
    before, streams.BLOCK = streams.BLOCK, block
    try:
        source = io.BytesIO(file.getvalue())
        found = text_parts([source], reading_options(False, np.float64, 5), n_values, n_rows)
        parts = [(X_part.copy(), labels.copy()) for X_part, labels, _, _ in found]
    finally:
        streams.BLOCK = before
    assert np.concatenate([part[1] for part in parts]).tolist() == list(range(qid.size))
    units = sizes if with_qid else [1] * qid.size
    ends = np.cumsum(units)
    start = 0
    for X_part, labels in parts:
        # The first unit with which the part is full, found one by one.
        stop = next(
            (
                end
                for end in ends[ends > start].tolist()
                if end - start >= n_rows or X[start:end].nnz >= n_values
            ),
            qid.size,
        )
        assert (start, stop) == (labels[0], labels[-1] + 1)
        assert (X_part != X[start:stop]).nnz == 0
        start = stop


def test_several_files_patterns_and_compression(queries, tmp_path):
    text = queries.read_bytes()
    lines = text.splitlines(keepends=True)
    pieces = [b"".join(lines[:50]), b"".join(lines[50:90]), b"".join(lines[90:])]
    (tmp_path / "part-0.gz").write_bytes(gzip.compress(pieces[0]))
    (tmp_path / "part-1.bz2").write_bytes(bz2.compress(pieces[1]))
    (tmp_path / "part-2").write_bytes(pieces[2])
    expected = collected(open_rows(queries))
    # Query 90 of the rows may go on in the next file: it stays one.
    for source in [str(tmp_path / "part-*"), sorted(tmp_path.glob("part-*"))]:
        found = collected(open_rows(source))
        assert len(found) == len(expected) == 1
        assert (found[0][0] != expected[0][0]).nnz == 0
        assert np.array_equal(found[0][2], expected[0][2])


@pytest.mark.skipif(
    not (importlib.util.find_spec("compression") or importlib.util.find_spec("backports")),
    reason="needs Python 3.14 or backports.zstd",
)
def test_zstandard(queries, tmp_path):
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    path = tmp_path / "rows.zst"
    content = zstd.compress(queries.read_bytes())
    path.write_bytes(content)
    assert (load_letor(path).X != load_letor(queries).X).nnz == 0
    path.write_bytes(content[:-20])
    with pytest.raises(ValueError, match="rows.zst is damaged"):
        load_letor(path)
    path.write_bytes(content[:40] + bytes(40) + content[80:])
    with pytest.raises(ValueError, match="rows.zst is damaged"):
        load_letor(path)


def test_zstandard_without_the_library(tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(streams, "import_module", missing)
    path = tmp_path / "rows.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(ValueError, match=r"Zstandard.*pip install backports.zstd"):
        load_letor(path)


def test_a_survey_finds_what_memory_shows(queries, small, tmp_path):
    data = load_letor(queries)
    for rows in [open_rows(queries), open_rows(queries, cache=tmp_path / "rows")]:
        survey = rows.facts()
        labels, counts = np.unique(data.y, return_counts=True)
        assert (survey.n_rows, survey.n_features) == data.X.shape
        assert survey.labels.dtype == np.int64
        assert survey.labels.tolist() == labels.tolist()
        assert survey.counts.tolist() == counts.tolist()
        assert np.array_equal(survey.magnitudes, abs(data.X).max(axis=0).toarray()[0])
        mean = (data.X.data**2).sum() / data.X.shape[0]
        assert survey.mean_square == 2.0 ** round(np.log2(mean))
        assert survey.in_queries


def test_a_survey_is_interruptible_while_signals_are_held(queries, small):
    rows = open_rows(queries)
    with signals_held():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            rows.facts()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_a_survey_in_parts_is_that_of_all_rows(scale, dtype):
    rng = np.random.default_rng(0)
    X = sp.random(300, 40, 0.3, format="csr", random_state=1)
    X.data = (rng.normal(size=X.nnz) * scale * 2.0 ** rng.integers(-9, 9, X.nnz)).astype(dtype)
    X.data[::50] = np.nan
    surveyor = Surveyor(None)
    for first in range(0, 300, 37):
        part = X[first : first + 37]
        surveyor.add(np.ones(part.shape[0]), part.indices, part.data)
    survey = surveyor.finish(False, "rows")
    dense = np.nan_to_num(X.toarray().astype(np.float64))
    assert np.array_equal(survey.magnitudes, np.abs(dense).max(axis=0))
    mean = (dense**2).sum() / 300
    assert survey.mean_square == 2.0 ** round(np.log2(mean))
    assert survey.n_values == X.nnz
    assert survey.n_nonzero == np.count_nonzero(X.data)  # NaN is not 0


def test_blocks_without_values_are_surveyed(small, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1\n2\n" * 500)
    facts = open_rows(path, n_features=3).facts()
    assert (facts.n_rows, facts.n_values, facts.n_features) == (1000, 0, 3)
    assert facts.magnitudes.tolist() == [0, 0, 0]
    assert (facts.labels.tolist(), facts.counts.tolist()) == ([1, 2], [500, 500])


@pytest.mark.parametrize("value", [5e-324, 1e-320, 1e308, np.inf])
def test_a_survey_of_extreme_values(value):
    surveyor = Surveyor(3)
    surveyor.add(np.ones(2), np.array([0, 2], np.int32), np.array([value, -value]))
    survey = surveyor.finish(False, "rows")
    assert survey.magnitudes.tolist() == [value, 0, value]
    # Within what a scale may be.
    assert survey.mean_square in (2.0**-664, 2.0**664, 1.0)


def test_kernels_of_a_survey_check_their_arrays():
    columns, values = np.array([0, 3], np.int32), np.ones(2)
    with pytest.raises(ValueError, match="found column 3; there are 3"):
        raise_sizes(columns, values, np.zeros(3))
    with pytest.raises(ValueError, match="found column -1"):
        raise_sizes(-columns[:1] - 1, values[:1], np.zeros(3))
    with pytest.raises(ValueError, match="found column 0; there are 0"):
        raise_sizes(columns, values, np.zeros(0))
    with pytest.raises(ValueError, match="2 values do not fit 1 columns"):
        raise_sizes(columns[:1], values, np.zeros(3))
    assert raise_sizes(columns[:0], values[:0], np.zeros(0)) == 0.0
    assert sum_squares(np.arange(7.0), 0.5) == 91 / 4


def test_a_cache_is_used_again_until_files_change(queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    before = os.stat(cache / "values.npy").st_mtime_ns
    open_rows(queries, cache=cache)
    assert os.stat(cache / "values.npy").st_mtime_ns == before
    with pytest.raises(ValueError, match="other settings"):
        open_rows(queries, cache=cache, dtype=np.float32)
    queries.write_text(queries.read_text() + "1 qid:999 1:1\n")
    with pytest.raises(ValueError, match="row cache of other files"):
        open_rows(queries, cache=cache)


def test_a_file_after_a_stream_may_not_change(queries, tmp_path):
    def opened():
        return open_rows([io.BytesIO(b"1 qid:900 1:1\n"), queries], cache=tmp_path / "rows")

    assert opened().facts().n_rows == opened().facts().n_rows
    queries.write_text(queries.read_text() + "1 qid:999 1:1\n")
    with pytest.raises(ValueError, match="row cache of other files"):
        opened()


def test_arrays_of_a_cache_are_plain(queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows", dtype=np.float32)
    data = load_letor(queries, dtype=np.float32)
    read = {name: np.load(tmp_path / "rows" / f"{name}.npy") for name in row_cache.PARTS}
    assert np.array_equal(read["values"], data.X.data)
    assert read["values"].dtype == np.float32
    assert np.array_equal(read["columns"], data.X.indices)
    assert np.array_equal(read["starts"], data.X.indptr)
    assert np.array_equal(read["labels"], data.y)


def test_a_failed_cache_leaves_nothing(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("1 1:1\n2 1:x\n")
    with pytest.raises(ValueError, match=r"bad.txt, line 2"):
        open_rows(path, cache=tmp_path / "rows")
    assert [one.name for one in tmp_path.iterdir()] == ["bad.txt"]


@pytest.mark.parametrize("name", row_cache.PARTS)
def test_damage_is_found(name, queries, small, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / f"{name}.npy"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}.npy is damaged in block"):
        collected(open_rows(tmp_path / "rows"))
    with pytest.raises(ValueError, match=f"{name}.npy is damaged in block"):
        open_rows(tmp_path / "rows").whole()
    file.write_bytes(content[:-8])
    with pytest.raises(ValueError, match="not have the length in its header"):
        open_rows(tmp_path / "rows")


@pytest.mark.parametrize("name", ["queries", "blocks", "checksums", "magnitudes", "counts"])
def test_damage_of_small_arrays_is_found(name, queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / f"{name}.npy"
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}.npy is damaged"):
        open_rows(tmp_path / "rows")


def test_columns_are_checked_whatever_the_checksums_say(queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    columns = np.load(cache / "columns.npy")
    columns[3] = 10**6
    np.save(cache / "columns.npy", columns)
    rows = open_rows(cache)
    rows._known[:] = True  # as after a first pass
    with pytest.raises(ValueError, match="X has column index 1000000"):
        collected(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a row cache"),
        ({"version": 99}, "version 99"),
        ({"n_rows": 3}, "do not fit together"),
        ({"n_rows": 0}, "do not fit together"),
        ({"n_rows": "3"}, "its n_rows is '3'"),
        ({"n_features": 10**15}, "labels and magnitudes"),
        ({"in_queries": False}, "do not fit together"),
        ({"mean_square": 0.3}, "labels and magnitudes"),
        ({"n_nonzero": -1}, "labels and magnitudes"),
        ({"n_nonzero": 10**6}, "labels and magnitudes"),
        ({"mean_square": math.nan}, "labels and magnitudes"),
        ({"checksums": {}}, "damaged"),
    ],
)
def test_descriptions_are_checked(change, message, queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / "rows.json"
    about = json.loads(file.read_text()) | change
    file.write_text(json.dumps(about | {"checksum": row_cache.own_checksum(about)}))
    with pytest.raises(ValueError, match=message):
        open_rows(tmp_path / "rows")
    file.write_text(json.dumps(about))  # a change alone
    with pytest.raises(ValueError, match="checksum|not a row cache|version"):
        open_rows(tmp_path / "rows")


def test_a_description_that_is_no_file_or_too_deep(queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / "rows.json"
    file.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="not a row cache, or it is damaged"):
        open_rows(tmp_path / "rows")
    file.unlink()
    with pytest.raises(ValueError, match="there is no such file"):
        row_cache.read_description(tmp_path / "rows")


def put(cache, name, array):
    """Write an array of a cache anew, with checksums that fit it."""
    np.save(cache / f"{name}.npy", array)
    file = cache / "rows.json"
    about = json.loads(file.read_text())
    if name in row_cache.PARTS:
        assert np.load(cache / "checksums.npy").shape[0] == 1
        sums = np.load(cache / "checksums.npy")
        content = array[1:] if name == "starts" else array
        sums[0, row_cache.PARTS.index(name)] = zlib.crc32(content.tobytes())
        np.save(cache / "checksums.npy", sums)
        name = "checksums"
    about["checksums"][name] = zlib.crc32((cache / f"{name}.npy").read_bytes())
    file.write_text(json.dumps(about | {"checksum": row_cache.own_checksum(about)}))


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("distinct", lambda a: a[::-1].copy(), "labels and magnitudes"),
        ("distinct", lambda a: changed(a, 0, np.nan), "labels and magnitudes"),
        ("distinct", lambda a: changed(a, -1, np.inf), "labels and magnitudes"),
        ("distinct", lambda a: a[:-1].copy(), "labels and magnitudes"),
        ("distinct", lambda a: a.reshape(1, -1), "labels and magnitudes"),
        ("distinct", lambda a: changed(a, -1, a[-1] + 1), "labels that distinct.npy lacks"),
        ("labels", lambda a: changed(a, 3, 99), "labels that distinct.npy lacks"),
        ("counts", lambda a: changed(a, 0, a[0] + 1), "labels and magnitudes"),
        ("counts", lambda a: changed(a, [0, 1], [0, a[0] + a[1]]), "labels and magnitudes"),
        ("counts", lambda a: changed(a, [0, 1], 2**63 - 1), "labels and magnitudes"),
        ("magnitudes", lambda a: changed(a, 0, np.nan), "labels and magnitudes"),
        ("magnitudes", lambda a: changed(a, 0, -1), "labels and magnitudes"),
        ("magnitudes", lambda a: a[:-1].copy(), "labels and magnitudes"),
        ("queries", lambda a: changed(a, 0, 1), "do not fit together"),
        ("queries", lambda a: changed(a, 1, 0), "do not fit together"),
        ("queries", lambda a: changed(a, -1, 10**6), "do not fit together"),
        ("queries", lambda a: a.astype(np.int32), "it has dtype int32"),
        ("starts", lambda a: changed(a, 0, 1), "do not fit together"),
        ("starts", lambda a: changed(a, 1, 10**12), "ends row 0 at entry 1000000000000"),
    ],
)
def test_arrays_with_fitting_checksums_are_checked(name, change, message, queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    put(cache, name, change(np.load(cache / f"{name}.npy")))
    with pytest.raises(ValueError, match=message):
        rc.PairwisePerceptron(max_iter=1).fit(open_rows(cache))


@pytest.mark.parametrize("name", row_cache.DTYPES)
def test_what_a_header_claims_takes_no_memory(name, queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    about = json.loads((cache / "rows.json").read_text())
    dtype = np.load(cache / f"{name}.npy").dtype
    for shape in [(10**9,), (2**32, 2**32), (-1,), (-8, -1), (1, 1, 1)]:
        header = io.BytesIO()
        form = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, form)
        (cache / f"{name}.npy").write_bytes(header.getvalue())
        about["checksums"][name] = zlib.crc32(header.getvalue())
        about["checksum"] = row_cache.own_checksum(about)
        (cache / "rows.json").write_text(json.dumps(about))
        tracemalloc.start()
        with pytest.raises(ValueError, match=f"{name}.npy is damaged"):
            open_rows(cache)
        assert tracemalloc.get_traced_memory()[1] < 2**20
        tracemalloc.stop()


def test_every_change_of_a_cache_is_refused_or_harmless(queries, tmp_path):
    cache, rng = tmp_path / "rows", np.random.default_rng(0)
    open_rows(queries, cache=cache)
    whole = collected(open_rows(cache))
    tried = refused = 0
    for file in sorted(cache.iterdir()):
        content = file.read_bytes()
        for place in rng.integers(len(content), size=examples(30)).tolist():
            tried += 1
            bad = bytearray(content)
            bad[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(bad)
            try:
                rows = open_rows(cache)
                rows.check()
            except ValueError:
                refused += 1
                continue
            finally:
                file.write_bytes(content)
            # Spaces of a header, or a letter's case, which say nothing.
            assert file.suffix == ".npy"
            assert place < 128
            for found, expected in zip(collected(rows), whole, strict=True):
                assert (found[0] != expected[0]).nnz == 0
                assert np.array_equal(found[1], expected[1])
                assert np.array_equal(found[2], expected[2])
    assert refused > 0.9 * tried


@pytest.mark.skipif(os.name == "nt", reason="makes a pipe")
def test_pipes_in_a_cache_are_not_opened(queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    for name in ["values", "distinct"]:
        shutil.move(tmp_path / "rows" / f"{name}.npy", tmp_path / "kept")
        os.mkfifo(tmp_path / "rows" / f"{name}.npy")
        with pytest.raises(ValueError, match=f"{name}.npy is missing or not a file"):
            open_rows(tmp_path / "rows")
        os.unlink(tmp_path / "rows" / f"{name}.npy")
        shutil.move(tmp_path / "kept", tmp_path / "rows" / f"{name}.npy")
    assert open_rows(tmp_path / "rows").facts().n_rows


def started_at(column):
    """An edit of the bounds of blocks: the first one does not begin at 0."""

    def edit(blocks, sums):
        blocks[0, column] = 1
        return blocks, sums

    return edit


def swapped(columns):
    """An edit: a block ends before it begins."""

    def edit(blocks, sums):
        blocks[1:3, columns] = blocks[2:0:-1, columns]
        return blocks, sums

    return edit


@pytest.mark.parametrize(
    "change",
    [
        started_at(0),
        started_at(1),
        started_at(2),
        swapped([0]),
        swapped([1]),
        swapped([2]),
        lambda blocks, sums: (np.insert(blocks, 2, blocks[2], 0), np.insert(sums, 2, 0, 0)),
    ],
    ids=["row", "value", "query", "rows back", "values back", "queries back", "no rows"],
)
def test_blocks_that_do_not_follow_each_other_are_refused(change, queries, small, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    file = cache / "rows.json"
    about = json.loads(file.read_text())
    blocks, sums = (np.load(cache / f"{name}.npy") for name in ("blocks", "checksums"))
    assert len(sums) > 3
    for name, array in zip(("blocks", "checksums"), change(blocks, sums), strict=True):
        np.save(cache / f"{name}.npy", array)
        about["checksums"][name] = zlib.crc32((cache / f"{name}.npy").read_bytes())
    about["checksum"] = row_cache.own_checksum(about)
    file.write_text(json.dumps(about))
    with pytest.raises(ValueError, match="do not fit together"):
        open_rows(cache)


def test_a_stream_is_kept_while_its_rows_are_used(queries):
    rows = open_rows(io.BytesIO(queries.read_bytes()))
    folder = rows.path
    assert folder.exists()
    assert len(collected(rows, (1, 1))) == len(collected(rows, (1, 2))) == 1
    del rows
    assert not folder.exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nothing-*.txt", "no file matches nothing"),
        ([], "at least one file"),
        (["."], "is a directory, but not a row cache, and has no Parquet files"),
    ],
)
def test_sources_that_are_none(source, message):
    with pytest.raises(ValueError, match=message):
        open_rows(source)


def test_mixed_sources(queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    with pytest.raises(ValueError, match="cannot be read together"):
        open_rows([queries, tmp_path / "rows"])
    plain = tmp_path / "plain.txt"
    plain.write_text("1 1:1\n")
    with pytest.raises(ValueError, match="has no qid:, while the files before it have some"):
        open_rows([queries, plain]).facts()
    shutil.copy(queries, tmp_path / "again.txt")
    with pytest.raises(ValueError, match=r"again.txt, line 1: query .* continues after another"):
        collected(open_rows([queries, tmp_path / "again.txt"]))
    with pytest.raises(TypeError, match="expected paths or files"):
        open_rows([3])


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "rows.txt"
    line = b"1 " + b" ".join(b"%d:0.25" % k for k in range(1, 61)) + b"\n"
    peaks = []
    for n in [20_000, 60_000]:
        path.write_bytes(line * n)
        rows = open_rows(path)
        tracemalloc.start()
        n_rows = sum(window.rows.n_rows for window in rows.windows(60, None, 0))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n_rows == n
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 40e6


def test_numbers_of_features_are_known_before_rows_are_read(tmp_path):
    dump_letor(np.eye(3), np.arange(3), tmp_path / "rows.txt")
    with pytest.raises(TypeError, match="zero_based must be True or False; found 'auto'"):
        open_rows(tmp_path / "rows.txt", zero_based="auto")
