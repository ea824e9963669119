"""Row caches: they are used again, and damage is found."""

import io
import json
import math
import os
import shutil
import tracemalloc
import zlib

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
        row_files.collected(open_rows(tmp_path / "rows"))
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
        row_files.collected(rows)


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
    whole = row_files.collected(open_rows(cache))
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
            for found, expected in zip(row_files.collected(rows), whole, strict=True):
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
