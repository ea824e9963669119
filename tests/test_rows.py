"""The one door for examples: what comes in place, what is converted, what is rejected and how."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext import ordinal, rows
from rankcore._ext.online_loop import learn
from strategies import csr_matrices, examples

pytestmark = pytest.mark.kernel


def products(X, w):
    """Row products through the kernels."""
    checked = as_rows(X)
    out = np.empty(checked.n_rows)
    rows.project(checked, np.asarray(w, dtype=float), out)
    return out


@given(X=csr_matrices(max_features=12))
@settings(max_examples=examples(50), deadline=None)
def test_every_container_gives_the_same_matrix(X):
    dense = X.toarray()
    w = np.arange(1.0, X.shape[1] + 1)  # integers: exact in any order of summation
    expected = dense.astype(float) @ w
    forms = [X, dense, np.asfortranarray(dense), dense[::-1][::-1], dense.astype(int)]
    forms += [dense.astype(">f8"), dense.astype(np.float16), dense.astype(np.longdouble)]
    forms += [dense.tolist(), dense.astype(object)]
    forms += [X.asformat(name) for name in ["csc", "coo", "lil", "dok", "dia", "bsr"]]
    forms += [sp.csr_matrix(X), X.astype(np.int8)]
    wide = np.repeat(dense, 2, axis=1)
    forms += [wide[:, ::2], np.repeat(dense, 2, axis=0)[::2]]
    frozen = dense.copy()
    frozen.flags.writeable = False
    forms.append(frozen)
    for form in forms:
        np.testing.assert_array_equal(products(form, w), expected, str(type(form)))


def test_boolean_matrices_are_numbers():
    X = np.eye(3, dtype=bool)
    assert products(X, [1, 2, 3]).tolist() == [1, 2, 3]
    assert products(sp.csr_array(X), [1, 2, 3]).tolist() == [1, 2, 3]


def test_frames_are_converted_to_matrices():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    columns = {"a": [1.0, 2.0], "b": [3, 4], "c": [True, False]}
    w, expected = [1, 10, 100], [131, 42]
    assert products(pd.DataFrame(columns), w).tolist() == expected
    assert products(pl.DataFrame(columns), w).tolist() == expected
    nullable = pd.DataFrame(columns).convert_dtypes()
    assert products(nullable, w).tolist() == expected
    sparse = pd.DataFrame(columns).astype(pd.SparseDtype(float, 0.0))
    assert products(sparse, w).tolist() == expected
    nullable.loc[1, "b"] = pd.NA
    with pytest.raises(ValueError, match="NaN at row 1 in column 'b'; every value"):
        as_rows(nullable)
    infinite = pd.DataFrame({"a": [1.0, np.nan], "b": [2.0, -np.inf]})
    with pytest.raises(ValueError, match="infinity at row 1 in column 'b'; every value"):
        as_rows(infinite, nan=True)
    with pytest.raises(
        ValueError,
        match="X must be numeric; its column 'a' has dtype (str|object)|column 'a' of X must be",
    ):
        as_rows(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.raises(
        ValueError, match=r"X must be numeric; its column 'b' has dtype datetime64.*days"
    ):
        as_rows(pd.DataFrame({"a": [1.0, 2.0], "b": pd.date_range("2020", periods=2)}))
    with pytest.raises(ValueError, match="got a Series: .* texts require a vectorizer, as in"):
        as_rows(pd.Series(["a fine film", "dull"]))
    with pytest.raises(ValueError, match=r"got a Series: .*pass X.to_frame\(\)$"):
        as_rows(pd.Series([1.0, 2.0]))
    with pytest.raises(TypeError, match="got the class DataFrame"):
        as_rows(pd.DataFrame)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_are_read_in_place(dtype):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((2000, 500)) * (rng.random((2000, 500)) < 0.1)).astype(dtype)
    dense = X.toarray()
    for form, per_row in [(X, 8), (dense, 0), (dense[::2], 0), (dense[:, 100:300], 0)]:
        as_rows(form)
        tracemalloc.start()
        checked = as_rows(form)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < per_row * checked.n_rows + 5000  # int64 indptr, and small objects
    columns = np.asfortranarray(dense)  # must be converted: one copy, not two
    tracemalloc.start()
    as_rows(columns)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < dense.nbytes + 5000


@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint16])
def test_all_index_types_are_accepted(index):
    data, indices, indptr = [1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 2, 3]
    X = sp.csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=(3, 3))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    assert products(X, [1, 10, 100]).tolist() == [201, 0, 30]


def test_unsorted_and_repeated_columns_become_canonical_in_a_copy():
    data = np.array([1.0, 2.0, 4.0, 8.0])
    indices = np.array([2, 0, 1, 1], dtype=np.int32)
    indptr = np.array([0, 2, 4], dtype=np.int32)
    X = sp.csr_array((data, indices, indptr), shape=(2, 3))
    checked = as_rows(X)
    assert checked.canonical
    assert checked.columns.tolist() == [0, 2, 1]
    assert products(X, [1, 10, 100]).tolist() == [102, 120]
    assert data.tolist() == [1, 2, 4, 8]
    assert indices.tolist() == [2, 0, 1, 1]
    assert np.shares_memory(X.data, data)
    huge = sp.csr_array((np.full(2, 1.5e308), [0, 0], [0, 2]), shape=(1, 1))
    with pytest.raises(ValueError, match="infinity at row 0, column 0"):
        as_rows(huge)


def test_empty_rows_zero_columns_and_spare_capacity_are_accepted():
    X = sp.csr_array((3, 4))
    assert products(X, [1, 1, 1, 1]).tolist() == [0, 0, 0]
    X = sp.csr_array(np.diag([1.0, 0.0, 2.0]))
    X.data = np.append(X.data, [np.nan, np.nan])  # scipy allows arrays longer than indptr says
    X.indices = np.append(X.indices, [-7, 10**6]).astype(np.int32)
    assert products(X, [1, 1, 1]).tolist() == [1, 0, 2]
    assert as_rows(X).columns.tolist() == [0, 2]


def edited(**changes):
    X = sp.csr_array(
        (
            np.array([1.0, 2.0, 3.0, 4.0]),
            np.array([0, 2, 1, 3], dtype=np.int32),
            np.array([0, 2, 2, 4], dtype=np.int32),
        ),
        shape=(3, 4),
    )
    for name, value in changes.items():
        setattr(X, name, np.array(value))
    return X


MALFORMED = [
    ({"indices": [0, 2, 1, 4]}, "column index 4 in row 2; accepted are 0 to 3"),
    ({"indices": [0, 2, -1, 3]}, "column index -1 in row 2"),
    ({"indices": np.array([0, 2, 1, 2**31 - 1], np.int32)}, "column index 2147483647 in row 2"),
    ({"indices": np.array([0, 2, 1, 2**32 + 1])}, "column index 4294967297 in row 2"),
    ({"indices": np.array([0, -5, 1, 3])}, "column index -5 in row 0"),
    ({"indices": np.array([2, 9, 1, 3], np.int32)}, "column index 9 in row 0"),
    ({"indices": np.array([9, 2, 1, 3], np.int32)}, "column index 9 in row 0"),
    ({"indices": np.array([0, 2, 1], np.int32)}, "indices has 3 entries and X.data 4"),
    ({"indices": [0.0, 2.0, 1.0, 3.0]}, "indices must hold integers; got dtype float64"),
    ({"indices": [[0, 2, 1, 3]]}, "indices must have one dimension"),
    ({"indptr": [0, 2, 4]}, "indptr has 3 entries; 3 rows need 4"),
    ({"indptr": [0, 2, 2, 4, 4]}, "indptr has 5 entries"),
    ({"indptr": [1, 2, 2, 4]}, "must start at 0; got 1"),
    ({"indptr": [0, 3, 2, 4]}, "decreases at row 1, from 3 to 2"),
    ({"indptr": [0, 2, 2, 5]}, "ends row 2 at entry 5, beyond the 4 stored values"),
    ({"indptr": [0, -2, 2, 4]}, "decreases at row 0, from 0 to -2"),
    ({"indptr": np.array([0, 2, 2**63, 4], np.uint64)}, "decreases at row 1"),
    ({"indptr": [0, 10**17, 10**17, 4]}, "ends row 0 at entry"),
    ({"indptr": [0.0, 2.0, 2.0, 4.0]}, "indptr must hold integers"),
    ({"data": [1.0, np.nan, 3.0, 4.0]}, "contains NaN at row 0, column 2"),
    ({"data": [1.0, 2.0, 3.0, -np.inf]}, "contains infinity at row 2, column 3"),
    ({"data": [1.0, 2.0, 3.0]}, "indices has 4 entries and X.data 3"),
    ({"data": [1j, 2, 3, 4]}, "Complex data not supported"),
    ({"data": [["a"]] * 4}, "data must have one dimension"),
]


@pytest.mark.parametrize(("changes", "message"), MALFORMED)
def test_errors_of_malformed_csr_name_the_row(changes, message):
    as_rows(edited())
    with pytest.raises(ValueError, match=message):
        as_rows(edited(**changes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 3, 16, 36])
def test_nonfinite_values_are_found_anywhere(dtype, value, column):
    X = np.ones((3, 37), dtype=dtype)
    X[1, column] = value
    name = "NaN" if np.isnan(value) else "infinity"
    for form in [X, sp.csr_array(X)]:
        with pytest.raises(ValueError, match=f"X contains {name} at row 1, column {column};"):
            as_rows(form)
    largest = np.finfo(dtype).max
    as_rows(np.array([[largest, -largest, np.finfo(dtype).tiny / 2]]))


def break_format(name):
    X = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0]])).asformat(name)
    if name in {"csc", "bsr"}:
        X.indices = np.full_like(X.indices, 10**8)
    elif name == "coo":
        X.coords = (np.full_like(X.row, 10**8), X.col)
    elif name == "dia":
        X.offsets = X.offsets[:-1]
    elif name == "lil":
        X.rows[0] = [0, 2, 1]
    elif name == "dok":
        X._dict[(5, 10**8)] = 1.0
    return X


@pytest.mark.parametrize("name", ["csc", "bsr", "coo", "dia", "lil", "dok"])
def test_other_formats_edited_by_hand_are_rejected(name):
    X = break_format(name)
    with pytest.raises(ValueError, match=r"."):
        as_rows(X)
    assert as_rows(sp.csr_array(np.eye(2)).asformat(name)).n_values == 2


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([1.0, 2.0], ValueError, "Reshape your data"),
        (3.0, ValueError, "Reshape your data"),
        (np.zeros((2, 2, 2)), ValueError, "two dimensions; got 3"),
        (np.zeros((0, 3)), ValueError, r"0 sample\(s\)"),
        (np.zeros((3, 0)), ValueError, r"0 feature\(s\)"),
        (sp.csr_array((0, 3)), ValueError, r"0 sample\(s\)"),
        (sp.csr_array((3, 2**31)), ValueError, "at most 2147483647"),
        (np.array([["1"]]), ValueError, "must be numeric; got dtype <U1"),
        (np.array([["2020"]], dtype="M8[Y]"), ValueError, "must be numeric"),
        (np.array([[{}]]), TypeError, "float"),
        (np.array([[1j]]), ValueError, "Complex"),
        ([[1.0], [2.0, 3.0]], ValueError, "inhomogeneous"),
        (None, TypeError, "got None"),
        (sp.coo_array(np.ones(3)), ValueError, "Reshape"),
        (sp.csr_array, TypeError, "got the class csr_array"),
        # Each with one attribute of two by which a sparse matrix is known.
        ("1.0 2.0", TypeError, "got a str: read the file"),  # str.format
        (SimpleNamespace(format="csr", shape=(2, 2)), ValueError, "Reshape your data"),
        (SimpleNamespace(tocsr=lambda: sp.csr_array(np.eye(2))), ValueError, "Reshape your data"),
    ],
)
def test_non_numeric_matrices_are_rejected(X, error, message):
    with pytest.raises(error, match=message):
        as_rows(X)


def test_kernels_reject_arrays_of_wrong_length():
    checked, ranks, none = as_rows(np.eye(3)), np.zeros(3, np.int32), np.empty(0, np.int64)
    order = np.array([0, 99, 1], np.int32)

    def run(rows=checked, ranks=ranks, order=None, start=0, stop=3, d=3, losses=none):
        learner = rc.PRank.published()
        model = learner._new_model(d, 3)
        return learn(model, learner, rows, ranks, order, None, start, stop, none, losses)

    assert run() == 3
    assert run(order=order) == 1  # there is no row 99
    assert run(ranks=np.array([0, 1, 3], np.int32)) == 2  # there is no rank 3 of 3
    unsorted = rows.csr_rows(
        np.ones(2), np.array([1, 0], np.int32), np.array([0, 2], np.int64), 2, "X"
    )
    assert not unsorted.canonical
    for change in [
        {"ranks": ranks[:2]},
        {"order": order[:2]},
        {"stop": 4},
        {"start": -1},
        {"start": 3, "stop": 2},
        {"d": 4},
        {"losses": np.zeros(1, np.int64)},
        {"rows": unsorted, "ranks": ranks[:1], "stop": 1, "d": 2},
    ]:
        with pytest.raises(ValueError, match="are inconsistent"):
            run(**change)
    for name in ["rows", "ranks"]:
        with pytest.raises(TypeError):
            run(**{name: None})
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        rows.project(checked, np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        rows.project_many(checked, np.zeros(7), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        ordinal.threshold_ranks(np.zeros(3), np.zeros(2), np.zeros(4, np.int32))
    fake = type("Fake", (), {"capsule": rows, "canonical": True})()
    with pytest.raises(ValueError, match="invalid PyCapsule"):
        run(rows=fake)


def test_padding_zeros_are_not_stored():
    blocks = sp.csr_array(np.diag([1.0, 2.0, 3.0, 4.0])).tobsr((2, 2))
    assert blocks.data.size == 8
    assert as_rows(blocks).n_values == 4
    columns = sp.csc_array(([1.0, 0.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    assert as_rows(columns).n_values == 2  # a zero that is stored stays


@pytest.mark.parametrize("nan", [False, True], ids=["finite", "missing"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_first_nan_is_found(dtype, nan):
    """Rows that are empty come before it, and more values than are read at once."""
    rng = np.random.default_rng(0)
    for odd in [np.inf, -np.inf] + [np.nan] * (not nan):
        for density in (0.02, 0.5):
            X = sp.random_array(
                (60, 70), density=density, random_state=rng, dtype=dtype, format="csr"
            )
            row, column = (int(at) for at in rng.integers(0, (60, 70)))
            X = X.tolil()
            X[59, 69] = -np.inf
            if nan:
                X[0, 0] = np.nan
            X[row, column] = odd
            X = X.tocsr()
            for form in (X, X.toarray(), X.toarray()[::-1][::-1], X.tocsc()):
                with pytest.raises(ValueError, match=f"row {row}, column {column};"):
                    as_rows(form, nan=nan)


def test_large_finite_values_are_accepted():
    X = np.full((5, 9), 1e300)
    assert as_rows(X).squares == np.inf
    assert as_rows(sp.csr_array(X)).largest == 1e300
    assert as_rows(np.full((3, 9), 3e38, dtype=np.float32)).largest > 1e38
    X[3, 3] = np.nan
    assert as_rows(X, nan=True).largest == 1e300


def test_a_series_of_a_cluster_is_no_matrix():
    pd, dask = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    with pytest.raises(ValueError, match=r"got a Series: .*pass X.to_frame\(\)$"):
        as_rows(dask.from_pandas(pd.Series(["a", "b"]), npartitions=1))
