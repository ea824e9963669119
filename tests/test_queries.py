"""Which rows form a query, whatever the ids are and where they lie; means; threads."""

import threading
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore._core import queries as module
from rankcore._core.queries import group_rows, query_mean, run_blocks
from strategies import examples


def assert_grouped(queries, qid):
    """Compare with a dictionary of lists."""
    expected = {}
    for i, one in enumerate(qid):
        expected.setdefault(one, []).append(i)
    assert queries.ids.tolist() == list(expected)
    assert queries.bounds.dtype == np.int64
    assert queries.bounds.tolist() == [
        0,
        *np.cumsum([len(rows) for rows in expected.values()]).tolist(),
    ]
    rows = [i for rows in expected.values() for i in rows]
    if queries.rows is None:
        assert rows == list(range(len(rows)))
    else:
        assert queries.rows.dtype == np.int64
        assert queries.rows.tolist() == rows


IDS = {
    "int": lambda i: i - 3,
    "float": lambda i: i / 2,
    "bool": lambda i: i % 2 == 0,
    "str": lambda i: "abcdefgh"[i] * i + "_",
    "bytes": lambda i: b"abcdefgh"[i : i + 1],
    "large": lambda i: 2**64 + i,
    "tuple": lambda i: (i, "x"),
    "mixed": lambda i: [1, "1", 1.5, (2,), b"1", 2, "x", 2**70][i],
}


@pytest.mark.parametrize("kind", IDS)
@given(numbers=st.lists(st.integers(0, 7), min_size=1, max_size=30))
@settings(max_examples=examples(40), deadline=None)
def test_rows_are_grouped_by_query(kind, numbers):
    qid = [IDS[kind](i) for i in numbers]
    objects = np.empty(len(qid), object)
    objects[:] = qid
    assert_grouped(group_rows(objects, len(qid)), qid)
    assert_grouped(group_rows(qid, len(qid)), qid)
    assert_grouped(group_rows(tuple(qid), len(qid)), qid)
    for dtype in {"int": ["i1", "i8", ">i4"], "float": ["f4", ">f8", "f2"]}.get(kind, []):
        assert_grouped(group_rows(np.array(qid, dtype=dtype), len(qid)), qid)
    if kind == "int":
        assert_grouped(group_rows(np.repeat(qid, 2)[::2], len(qid)), qid)
        for dtype in ("M8[D]", "m8[s]"):
            times = np.array(qid, dtype)
            assert_grouped(group_rows(times, len(qid)), times.tolist())


def test_rows_without_qid_are_one_query():
    queries = group_rows(None, 4)
    assert (queries.ids.tolist(), queries.bounds.tolist(), queries.rows) == ([0], [0, 4], None)


def test_ids_keep_their_type_and_contiguous_queries_are_not_reordered():
    assert group_rows(np.array([7, 5], np.uint8), 2).ids.dtype == np.uint8
    assert group_rows(["b", "a"], 2).ids.tolist() == ["b", "a"]
    assert group_rows([7, 7, 5, 5], 4).rows is None
    assert group_rows([7, 5, 7], 3).rows.tolist() == [0, 2, 1]
    assert group_rows([0.0, -0.0], 2).ids.size == 1
    assert group_rows([np.inf, -np.inf], 2).ids.size == 2


def test_queries_of_frames_are_read():
    pandas = pytest.importorskip("pandas")
    qid = ["q9", "q1", "q9", "q2", "q1"]
    index = [5, 5, 7, 1, 0]  # of a filtered frame: it says nothing about queries
    for form in (
        pandas.Series(qid, index=index),
        pandas.Series(qid, index=index, dtype="category"),
        pandas.Categorical(qid, categories=["q0", "q2", "q1", "q9"]),
        pandas.Index(qid),
        pandas.Series(qid, dtype="string"),
    ):
        assert_grouped(group_rows(form, 5), qid)
    for dtype in ("int64", "Int64", "category"):
        assert_grouped(group_rows(pandas.Series([3, 1, 3], dtype=dtype), 3), [3, 1, 3])
    for missing in (
        pandas.Series(["a", None], dtype="category"),
        pandas.Series(["a", None], dtype=object),
        pandas.Series([1.0, None]),
    ):
        with pytest.raises(ValueError, match="qid contains (NaN|NaT|None|<NA>) in row"):
            group_rows(missing, 2)


@pytest.mark.parametrize(
    ("qid", "n", "error", "message"),
    [
        ([1, 2], 3, ValueError, r"each of the 3 rows; got shape \(2,\) \(group sizes are not"),
        (5, 1, ValueError, r"got shape \(\)"),
        (np.zeros((3, 1)), 3, ValueError, r"got shape \(3, 1\)"),
        ([1.0, np.nan], 2, ValueError, "qid contains Na. in row"),
        ([np.nan, 1.0, 2.0], 3, ValueError, "qid contains Na. in row"),
        (["a", None], 2, ValueError, r"qid contains None in row 1"),
        (np.array(["a", np.nan], object), 2, ValueError, r"qid contains NaN in row 1"),
        (
            np.array(["2020", "NaT"], "M8[Y]"),
            2,
            ValueError,
            "qid contains (NaN|NaT|None|<NA>) in row",
        ),
        (np.array([{}, 1], object), 2, TypeError, "qid must hold hashable ids"),
    ],
)
def test_invalid_qid_is_rejected(qid, n, error, message):
    with pytest.raises(error, match=message):
        group_rows(qid, n)


def test_means_over_queries_equal_a_loop():
    values = np.array([1.0, np.nan, 3.0])
    assert query_mean(values) == 2.0
    assert query_mean(values, [3, 5, 1]) == 1.5
    assert np.isnan(query_mean(values, [0, 1, 0]))
    assert np.isnan(query_mean(np.array([np.nan])))
    for wrong in ([1, 2], [[1, 2, 3]], [1, -1, 1], [1, np.nan, 1], [1, np.inf, 1], [0, 0, 0]):
        with pytest.raises(ValueError, match="query_weight must"):
            query_mean(values, wrong)


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=40),
    n_jobs=st.none() | st.integers(-2, 5).filter(bool),
    rows=st.integers(1, 100),
)
@settings(max_examples=examples(60), deadline=None)
def test_every_query_is_run_once(sizes, n_jobs, rows):
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    runs, lock = [], threading.Lock()

    def run(first, last):
        with lock:
            runs.append((first, last))

    with mock.patch.object(module, "_BLOCK_ROWS", rows):
        run_blocks(run, bounds, n_jobs)
    assert all(first < last for first, last in runs)
    assert sorted(q for first, last in runs for q in range(first, last)) == list(range(len(sizes)))
    for first, last in runs:  # a block is a share of the rows, but for its longest query
        assert bounds[last] - bounds[first] <= rows + max(sizes)


def test_errors_of_a_block_are_raised():
    def run(first, last):
        raise ValueError(f"of {first}")

    for n_jobs in (None, 2):
        with pytest.raises(ValueError, match="of 0"):
            run_blocks(run, np.array([0, 3, 5]), n_jobs)
    for wrong, error in ((0, ValueError), (1.5, TypeError), ("2", TypeError)):
        with pytest.raises(error, match="n_jobs must be an integer >= 1, an integer <= -1 or None"):
            run_blocks(run, np.array([0, 3, 5]), wrong)


def test_values_of_different_types_stay_different():
    """NumPy would make one string of 1 and "1", and one float of neighbouring large integers."""
    assert group_rows([1, "1", 1.5], 3).ids.tolist() == [1, "1", 1.5]
    large = [2**53, 2**53 + 1, 0.5]
    assert group_rows(large, 3).ids.tolist() == large
    assert group_rows([2**63, -1, 2**63 + 1], 3).ids.size == 3
    assert group_rows([1, 2.0, 1.0], 3).ids.tolist() == [1, 2]


def test_missing_strings_of_pandas_are_rejected():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="qid contains (NaN|NaT|None|<NA>) in row"):
        group_rows(pd.Series(["a", pd.NA], dtype=object), 2)
    with pytest.raises(ValueError, match="qid contains (NaN|NaT|None|<NA>) in row"):
        group_rows(pd.Series(["a", None], dtype="string"), 2)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", [int, str])
def test_runs_of_equal_ids_continue_across_blocks(n_jobs, kind, monkeypatch):
    monkeypatch.setattr(module, "_RUN_ROWS", 5)
    rng = np.random.default_rng(0)
    for sizes in (rng.integers(1, 12, 30), [5, 5, 5], [1], [6], [4, 1, 1, 4]):
        ids = np.repeat(np.arange(len(sizes)), sizes).astype(kind)
        found = group_rows(ids, ids.size, n_jobs)
        assert found.rows is None
        assert np.array_equal(found.bounds, np.concatenate([[0], np.cumsum(sizes)]))
        assert np.array_equal(found.ids, np.arange(len(sizes)).astype(kind))
