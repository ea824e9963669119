"""Rows on disk: text files in windows of whole queries."""

import bz2
import gzip
import importlib.util
import io
import shutil
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import row_files
from rankcore._core.sources import StatsCollector
from rankcore._ext.column_stats import raise_sizes, sum_squares
from rankcore.datasets import (
    dump_letor,
    load_letor,
    open_rows,
    streams,
)
from rankcore.datasets.text_rows import reading_options, text_parts
from strategies import examples

queries, small = row_files.queries, row_files.small


@pytest.mark.parametrize("kind", ["text", "cache"])
def test_windows_have_the_rows_of_the_file(kind, queries, small, tmp_path):
    rows = open_rows(queries, cache=tmp_path / "rows" if kind == "cache" else None)
    expected = load_letor(queries)
    parts = row_files.collected(rows)
    assert len(parts) > 5
    assert [part[3] for part in parts] == list(range(len(parts)))
    assert parts[-1][4] == rows.size
    assert (sp.vstack([part[0] for part in parts]) != expected.X).nnz == 0
    assert np.array_equal(np.concatenate([part[1] for part in parts]), expected.y)
    lengths = np.concatenate([np.bincount(part[2]) for part in parts])
    changes = np.flatnonzero(np.diff(expected.qid)) + 1
    assert np.array_equal(lengths, np.diff(changes, prepend=0, append=expected.qid.size))


@pytest.mark.parametrize("kind", ["text", "cache"])
def test_shuffled_order_has_each_row_once_and_is_reproducible(kind, queries, small, tmp_path):
    rows = open_rows(queries, window=3, cache=tmp_path / "rows" if kind == "cache" else None)
    expected = load_letor(queries)
    passes = [row_files.collected(rows, order) for order in [(7, 1), (7, 1), (7, 2)]]
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
        parts = [(part.X.copy(), part.labels.copy()) for part in found]
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


def test_several_files_patterns_and_compressed_files_are_read(queries, tmp_path):
    text = queries.read_bytes()
    lines = text.splitlines(keepends=True)
    pieces = [b"".join(lines[:50]), b"".join(lines[50:90]), b"".join(lines[90:])]
    (tmp_path / "part-0.gz").write_bytes(gzip.compress(pieces[0]))
    (tmp_path / "part-1.bz2").write_bytes(bz2.compress(pieces[1]))
    (tmp_path / "part-2").write_bytes(pieces[2])
    expected = row_files.collected(open_rows(queries))
    # Query 90 of the rows may go on in the next file: it stays one.
    for source in [str(tmp_path / "part-*"), sorted(tmp_path.glob("part-*"))]:
        found = row_files.collected(open_rows(source))
        assert len(found) == len(expected) == 1
        assert (found[0][0] != expected[0][0]).nnz == 0
        assert np.array_equal(found[0][2], expected[0][2])


@pytest.mark.skipif(
    not (importlib.util.find_spec("compression") or importlib.util.find_spec("backports")),
    reason="needs Python 3.14 or backports.zstd",
)
def test_zstandard_files_are_read(queries, tmp_path):
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


def test_missing_zstandard_names_the_package_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(streams, "import_module", missing)
    path = tmp_path / "rows.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(ValueError, match=r"Zstandard.*pip install backports.zstd"):
        load_letor(path)


def test_statistics_of_files_equal_those_of_memory(queries, small, tmp_path):
    data = load_letor(queries)
    for rows in [open_rows(queries), open_rows(queries, cache=tmp_path / "rows")]:
        stats = rows.stats()
        labels, counts = np.unique(data.y, return_counts=True)
        assert (stats.n_rows, stats.n_features) == data.X.shape
        assert stats.labels.dtype == np.int64
        assert stats.labels.tolist() == labels.tolist()
        assert stats.counts.tolist() == counts.tolist()
        assert np.array_equal(stats.magnitudes, abs(data.X).max(axis=0).toarray()[0])
        mean = (data.X.data**2).sum() / data.X.shape[0]
        assert stats.mean_square == 2.0 ** round(np.log2(mean))
        assert stats.in_queries


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_statistics_in_parts_equal_those_of_all_rows(scale, dtype):
    rng = np.random.default_rng(0)
    X = sp.random(300, 40, 0.3, format="csr", random_state=1)
    X.data = (rng.normal(size=X.nnz) * scale * 2.0 ** rng.integers(-9, 9, X.nnz)).astype(dtype)
    X.data[::50] = np.nan
    collector = StatsCollector(None)
    for first in range(0, 300, 37):
        part = X[first : first + 37]
        collector.add(np.ones(part.shape[0]), part.indices, part.data)
    stats = collector.finish(False, "rows")
    dense = np.nan_to_num(X.toarray().astype(np.float64))
    assert np.array_equal(stats.magnitudes, np.abs(dense).max(axis=0))
    mean = (dense**2).sum() / 300
    assert stats.mean_square == 2.0 ** round(np.log2(mean))
    assert stats.n_values == X.nnz
    assert stats.n_nonzero == np.count_nonzero(X.data)  # NaN is not 0


def test_blocks_without_values_are_scanned(small, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1\n2\n" * 500)
    facts = open_rows(path, n_features=3).stats()
    assert (facts.n_rows, facts.n_values, facts.n_features) == (1000, 0, 3)
    assert facts.magnitudes.tolist() == [0, 0, 0]
    assert (facts.labels.tolist(), facts.counts.tolist()) == ([1, 2], [500, 500])


@pytest.mark.parametrize("value", [5e-324, 1e-320, 1e308, np.inf])
def test_statistics_of_extreme_values_are_finite(value):
    collector = StatsCollector(3)
    collector.add(np.ones(2), np.array([0, 2], np.int32), np.array([value, -value]))
    stats = collector.finish(False, "rows")
    assert stats.magnitudes.tolist() == [value, 0, value]
    # Within what a scale may be.
    assert stats.mean_square in (2.0**-664, 2.0**664, 1.0)


def test_kernels_of_a_scan_check_their_arrays():
    columns, values = np.array([0, 3], np.int32), np.ones(2)
    with pytest.raises(ValueError, match="found column 3; there are 3"):
        raise_sizes(columns, values, np.zeros(3))
    with pytest.raises(ValueError, match="found column -1"):
        raise_sizes(-columns[:1] - 1, values[:1], np.zeros(3))
    with pytest.raises(ValueError, match="found column 0; there are 0"):
        raise_sizes(columns, values, np.zeros(0))
    with pytest.raises(ValueError, match="2 values do not match 1 columns"):
        raise_sizes(columns[:1], values, np.zeros(3))
    assert raise_sizes(columns[:0], values[:0], np.zeros(0)) == 0.0
    assert sum_squares(np.arange(7.0), 0.5) == 91 / 4


def test_a_stream_is_kept_while_its_rows_are_used(queries):
    rows = open_rows(io.BytesIO(queries.read_bytes()))
    folder = rows.path
    assert folder.exists()
    assert len(row_files.collected(rows, (1, 1))) == len(row_files.collected(rows, (1, 2))) == 1
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
def test_invalid_sources_are_rejected(source, message):
    with pytest.raises(ValueError, match=message):
        open_rows(source)


def test_mixed_sources_are_rejected(queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    with pytest.raises(ValueError, match="cannot be read together"):
        open_rows([queries, tmp_path / "rows"])
    plain = tmp_path / "plain.txt"
    plain.write_text("1 1:1\n")
    with pytest.raises(ValueError, match="has no qid:, while the files before it have some"):
        open_rows([queries, plain]).stats()
    shutil.copy(queries, tmp_path / "again.txt")
    with pytest.raises(ValueError, match=r"again.txt, line 1: query .* continues after another"):
        row_files.collected(open_rows([queries, tmp_path / "again.txt"]))
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
        n_rows = sum(window.rows.n_rows for window in rows.windows(60, None))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n_rows == n
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 40e6


def test_number_of_features_is_checked_before_rows_are_read(tmp_path):
    dump_letor(np.eye(3), np.arange(3), tmp_path / "rows.txt")
    with pytest.raises(TypeError, match="zero_based must be True or False; got 'auto'"):
        open_rows(tmp_path / "rows.txt", zero_based="auto")
