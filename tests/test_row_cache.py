"""Row caches: they are reused, and a damaged or changed file is an error."""

import io
import json
import os
import shutil
import tracemalloc

import numpy as np
import pytest

import rankcore as rc
import row_files
from rankcore.datasets import (
    load_letor,
    open_rows,
    row_cache,
)
from strategies import examples

queries, small = row_files.queries, row_files.small


def test_a_cache_is_used_again_until_files_change(queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    before = os.stat(cache / "values.npy").st_mtime_ns
    open_rows(queries, cache=cache)
    assert os.stat(cache / "values.npy").st_mtime_ns == before
    with pytest.raises(ValueError, match="other settings"):
        open_rows(queries, cache=cache, dtype=np.float32)
    queries.write_text(queries.read_text() + "1 qid:999 1:1\n")
    with pytest.raises(ValueError, match="was made from other files"):
        open_rows(queries, cache=cache)


def test_file_read_after_a_stream_must_not_change(queries, tmp_path):
    def opened():
        return open_rows([io.BytesIO(b"1 qid:900 1:1\n"), queries], cache=tmp_path / "rows")

    assert opened().stats().n_rows == opened().stats().n_rows
    queries.write_text(queries.read_text() + "1 qid:999 1:1\n")
    with pytest.raises(ValueError, match="was made from other files"):
        opened()


def test_cache_consists_of_plain_array_files(queries, tmp_path):
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


@pytest.mark.parametrize("name", row_cache.DTYPES)
def test_truncated_file_is_damaged(name, queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / f"{name}.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ValueError, match=f"{name}.npy is damaged"):
        open_rows(tmp_path / "rows")


@pytest.mark.parametrize("name", ["counts", "magnitudes"])
@pytest.mark.parametrize("value", [-1, 10**6, np.nan, np.inf], ids=str)
def test_impossible_statistics_are_rejected(name, value, queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / f"{name}.npy"
    array = np.load(file)
    if array.dtype.kind == "i" and not np.isfinite(value):
        pytest.skip("integers are finite")
    if name == "magnitudes" and value == 10**6:
        pytest.skip("a magnitude may be larger than the largest value")
    array[0] = value
    np.save(file, array)
    with pytest.raises(ValueError, match="the arrays are inconsistent"):
        open_rows(tmp_path / "rows")


@pytest.mark.parametrize("name", row_cache.PARTS)
@pytest.mark.parametrize("change", ["truncated", "overwritten"])
def test_file_changed_while_it_is_read_is_an_error(name, change, queries, small, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    rows, file = open_rows(tmp_path / "rows"), tmp_path / "rows" / f"{name}.npy"
    windows = rows.windows(12, None)
    next(windows)
    if change == "truncated":
        os.truncate(file, 200)
    else:
        file.write_bytes(file.read_bytes())
        os.utime(file, ns=(0, 0))  # the clock of a file system may be too coarse to tell
    with pytest.raises(ValueError, match=f"{name}.npy was changed while it was read"):
        next(windows)
    with pytest.raises(ValueError, match="was changed while it was read"):
        rows.whole()


def test_file_replaced_by_rename_is_read_to_its_end(queries, small, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    rows = open_rows(tmp_path / "rows")
    expected = row_files.collected(rows)
    for name in row_cache.PARTS:
        (tmp_path / "new").write_bytes(b"other")
        os.replace(tmp_path / "new", tmp_path / "rows" / f"{name}.npy")
    for found, one in zip(row_files.collected(rows), expected, strict=True):
        assert (found[0] != one[0]).nnz == 0


def test_columns_are_checked_as_for_rows_in_memory(queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    columns = np.load(cache / "columns.npy")
    columns[3] = 10**6
    np.save(cache / "columns.npy", columns)
    with pytest.raises(ValueError, match="X has column index 1000000"):
        row_files.collected(open_rows(cache))
    with pytest.raises(ValueError, match="X has column index 1000000"):
        rc.RankBoost(2).fit(open_rows(cache))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a row cache"),
        ({"version": 99}, "version 1; got 'rankcore row cache' and 99"),
        ({"n_rows": 3}, "are inconsistent"),
        ({"n_rows": 0}, "are inconsistent"),
        ({"n_rows": "3"}, "n_rows must be of type int; got '3'"),
        ({"n_features": 10**15}, "are inconsistent"),
        ({"in_queries": False}, "are inconsistent"),
    ],
)
def test_descriptions_are_checked(change, message, queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / "rows.json"
    about = json.loads(file.read_text()) | change
    file.write_text(json.dumps(about))
    with pytest.raises(ValueError, match=message):
        open_rows(tmp_path / "rows")


def test_missing_or_deeply_nested_description_is_rejected(queries, tmp_path):
    open_rows(queries, cache=tmp_path / "rows")
    file = tmp_path / "rows" / "rows.json"
    file.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="not a row cache, or it is damaged"):
        open_rows(tmp_path / "rows")
    file.unlink()
    with pytest.raises(ValueError, match="rows.json: the file is missing"):
        row_cache.read_description(tmp_path / "rows")


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("distinct", lambda a: a[::-1].copy(), "are inconsistent"),
        ("distinct", lambda a: changed(a, 0, np.nan), "are inconsistent"),
        ("distinct", lambda a: a[:-1].copy(), "are inconsistent"),
        ("distinct", lambda a: a.reshape(1, -1), "are inconsistent"),
        ("distinct", lambda a: changed(a, -1, a[-1] + 1), "labels that distinct.npy lacks"),
        ("labels", lambda a: changed(a, 3, 99), "labels that distinct.npy lacks"),
        ("magnitudes", lambda a: a[:-1].copy(), "are inconsistent"),
        ("queries", lambda a: changed(a, 0, 1), "are inconsistent"),
        ("queries", lambda a: changed(a, 1, 0), "are inconsistent"),
        ("queries", lambda a: changed(a, -1, 10**6), "are inconsistent"),
        ("queries", lambda a: a.astype(np.int32), "dtype must be int64; got int32"),
        ("starts", lambda a: changed(a, 0, 1), "are inconsistent"),
        ("starts", lambda a: changed(a, 1, 10**12), "ends row 0 at entry 1000000000000"),
    ],
)
def test_arrays_are_checked(name, change, message, queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    np.save(cache / f"{name}.npy", change(np.load(cache / f"{name}.npy")))
    with pytest.raises(ValueError, match=message):
        rc.PairwisePerceptron(max_iter=1).fit(open_rows(cache))


@pytest.mark.parametrize("name", row_cache.DTYPES)
def test_claimed_sizes_in_a_header_allocate_no_memory(name, queries, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    dtype = np.load(cache / f"{name}.npy").dtype
    for shape in [(10**9,), (2**32, 2**32), (-1,), (-8, -1), (1, 1, 1)]:
        header = io.BytesIO()
        form = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, form)
        (cache / f"{name}.npy").write_bytes(header.getvalue())
        tracemalloc.start()
        with pytest.raises(ValueError, match=f"{name}.npy is damaged"):
            open_rows(cache)
        assert tracemalloc.get_traced_memory()[1] < 2**20
        tracemalloc.stop()


def test_flipped_bits_are_an_error_or_other_rows(queries, small, tmp_path):
    """No damaged cache crashes a reader, and whatever is read is in its bounds."""
    cache, rng = tmp_path / "rows", np.random.default_rng(0)
    open_rows(queries, cache=cache)
    errors = 0
    for file in sorted(cache.iterdir()):
        content = file.read_bytes()
        for place in rng.integers(len(content), size=examples(30)).tolist():
            bad = bytearray(content)
            bad[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(bad)
            try:
                parts = row_files.collected(open_rows(cache))
            except ValueError:
                errors += 1
            else:
                assert sum(len(labels) for _, labels, *_ in parts) > 0
                assert all(X.indices.max(initial=0) < 12 for X, *_ in parts)
            file.write_bytes(content)
    assert errors > 5 * examples(30)  # most of those in each of eight files


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
    assert open_rows(tmp_path / "rows").stats().n_rows


def started_at(column):
    """Make an edit of the bounds of blocks after which the first does not begin at 0."""

    def edit(blocks):
        blocks[0, column] = 1
        return blocks

    return edit


def swapped(columns):
    """Make an edit after which a block ends before it begins."""

    def edit(blocks):
        blocks[1:3, columns] = blocks[2:0:-1, columns]
        return blocks

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
        lambda blocks: np.insert(blocks, 2, blocks[2], 0),
    ],
    ids=["row", "value", "query", "rows back", "values back", "queries back", "no rows"],
)
def test_blocks_out_of_order_are_rejected(change, queries, small, tmp_path):
    cache = tmp_path / "rows"
    open_rows(queries, cache=cache)
    blocks = np.load(cache / "blocks.npy")
    assert len(blocks) > 4
    np.save(cache / "blocks.npy", change(blocks))
    with pytest.raises(ValueError, match="are inconsistent"):
        open_rows(cache)
