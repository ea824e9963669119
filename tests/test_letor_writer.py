"""Writing LETOR files: what is read back is the same, to the bit."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from letor_rows import load, same_bits
from rankcore._core.inputs import as_rows
from rankcore._ext.letor_writing import row_texts
from rankcore.datasets import dump_letor, load_letor
from rankcore.datasets.letor_writer import BLOCK_VALUES
from strategies import csr_matrices, examples

pytestmark = pytest.mark.kernel

IDS = st.text(st.characters(codec="utf-8", exclude_characters=" \t\n\r\v\f\0#="), min_size=1)


@given(
    X=csr_matrices(max_rows=10, max_features=6, integers=False),
    dtype=st.sampled_from([np.float32, np.float64, np.int16]),
    dense=st.booleans(),
    zero_based=st.booleans(),
    values=st.lists(
        st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=7, max_size=7
    ),
    ids=st.lists(IDS, min_size=3, max_size=3),
    words=st.booleans(),
    comments=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
def test_written_rows_are_read_back(X, dtype, dense, zero_based, values, ids, words, comments):
    # A few numbers and ids, again and again: each that is drawn takes time.
    n_rows, values, ids = X.shape[0], np.resize(values, 60), 4 * ids
    X = X.astype(np.float64)
    X.data[:] = values[: X.nnz]
    if dtype == np.int16:
        X.data %= 1000
    X = X.astype(dtype)
    y = np.array(values[:n_rows])
    qid = np.array(ids[:n_rows]) if words else np.arange(n_rows) - 2
    about = (
        {"comments": [f"{a} x = 1" for a in ids[:n_rows]]} if comments else {"docid": ids[:n_rows]}
    )
    file = io.BytesIO()
    dump_letor(X.toarray() if dense else X, y, file, qid=qid, zero_based=zero_based, **about)
    data = load(
        file.getvalue(),
        dtype=np.float32 if dtype == np.float32 else np.float64,
        n_features=X.shape[1],
        zero_based=zero_based,
        dense=dense,
        comments=True,
    )
    found = data.X if dense else data.X.toarray()
    assert same_bits(found, X.toarray().astype(found.dtype))
    if not dense:
        assert (data.X.indices == X.indices).all()
    assert same_bits(data.y, y)
    assert data.qid.tolist() == qid.tolist() or words
    if comments:
        assert data.comments == about["comments"]
    else:
        assert data.docid.tolist() == ids[:n_rows]


def test_every_float32_survives():
    # Ones whose shortest text, rounded to a double first, is near the middle of two of them.
    bits = np.random.default_rng(0).integers(0, 0x7F800000, 100_000, dtype=np.uint32)
    values = np.r_[bits.view(np.float32), np.float32([1e-45, 3.4028235e38, 7.038531e-26])]
    file = io.BytesIO()
    dump_letor(values[:, None], np.zeros(values.size), file)
    assert same_bits(load(file.getvalue(), dtype=np.float32, dense=True).X[:, 0], values)


def words_of(values):
    """Text written for each value of a column."""
    file = io.BytesIO()
    dump_letor(values[:, None], np.zeros(values.size), file)
    return [line.removeprefix("0 1:") for line in file.getvalue().decode().splitlines()]


def around(values):
    """Numbers, and their neighbours on both sides."""
    return np.r_[values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]


DRAWN = np.random.default_rng(0)
EXPONENTS = np.arange(-1074, 1024)
DOUBLES = {
    "bits": DRAWN.integers(0, 0x7FF0000000000000, 50_000).view(np.float64),
    "subnormal": DRAWN.integers(0, 2**52, 10_000).view(np.float64),
    "least": np.arange(2000) * 5e-324,
    "powers of two": around(2.0**EXPONENTS),
    "powers of ten": around(10.0 ** np.arange(-320, 308)),
    "normal": -DRAWN.normal(size=20_000),
    "six places": DRAWN.random(20_000).round(6),
    "whole": DRAWN.integers(-(10**17), 10**17, 20_000).astype(np.float64),
    "nearly too wide": around(2.0**53 + np.arange(-20, 20)),
    "at the ends of the form": around(10.0 ** np.array([-5, -4, 15, 16, 17, 22, 23])),
    "zeros": np.array([0.0, -0.0]),
}
FLOATS = {
    "bits": DRAWN.integers(0, 0x7F800000, 50_000, dtype=np.uint32).view(np.float32),
    "subnormal": DRAWN.integers(0, 2**23, 10_000, dtype=np.uint32).view(np.float32),
    # Of more than nine digits, many of which end in a 5: half way between two texts.
    "half way": np.ldexp(DRAWN.integers(10**6, 2**24, 50_000), DRAWN.integers(-40, 60, 50_000)),
    "powers of two": 2.0 ** np.arange(-149, 128),
    "powers of ten": 10.0 ** np.arange(-44, 39),
    "rounded up": np.array([0.99999999, 9.9999999, 999999999.0, 1e9, 99999999.0, 2.0**30]),
    "zeros": np.array([0.0, -0.0]),
}


@pytest.mark.parametrize("kind", DOUBLES)
def test_doubles_are_written_as_by_repr(kind):
    values = DOUBLES[kind]
    assert words_of(values) == [repr(value).removesuffix(".0") for value in values.tolist()]


@pytest.mark.parametrize("kind", FLOATS)
def test_floats_have_nine_digits(kind):
    values = FLOATS[kind].astype(np.float32)
    assert words_of(values) == [f"{value:.9g}" for value in values.tolist()]


def test_rows_longer_than_a_block_can_be_written():
    X = np.arange(3 * (BLOCK_VALUES + 1), dtype=np.float64).reshape(3, -1)
    file = io.BytesIO()
    dump_letor(X, [1, 2, 3], file, zero_based=True)
    lines = file.getvalue().decode().splitlines()
    assert lines == [
        f"{i + 1} " + " ".join(f"{j}:{value:.0f}" for j, value in enumerate(row))
        for i, row in enumerate(X)
    ]


def test_the_kernel_rejects_a_range_beyond_its_rows():
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        row_texts(as_rows(np.ones((2, 1))), 0, 3, 1)


def test_written_text_is_exact():
    X = sp.csr_array([[0.5, 0, -2], [0, 0, 0], [1e300, 1e-5, 3]])
    file = io.BytesIO()
    dump_letor(X, [1, 0.25, 2], file, qid=[7, 7, 8], docid=["a", "", "b"])
    assert file.getvalue() == (
        b"1 qid:7 1:0.5 3:-2 #docid = a\n0.25 qid:7\n2 qid:8 1:1e+300 2:1e-05 3:3 #docid = b\n"
    )
    file = io.BytesIO()
    dump_letor(np.array([[True, False]]), [True], file, zero_based=True, comments=["x y"])
    assert file.getvalue() == b"1 0:1 1:0 # x y\n"
    unsorted = sp.csr_array((np.ones(3), [2, 0, 2], [0, 3]), shape=(1, 3))
    file = io.BytesIO()
    dump_letor(unsorted, [1], file)
    assert file.getvalue() == b"1 1:1 3:2\n"
    assert unsorted.indices.tolist() == [2, 0, 2]
    file = io.BytesIO()
    dump_letor(np.empty((0, 3)), [], file)
    assert file.getvalue() == b""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_missing_values_are_written_if_allowed(dtype, form):
    X = np.array([[1.5, np.nan, 0], [np.nan, -2, 0.25]], dtype=dtype)
    file = io.BytesIO()
    dump_letor(form(X), [1, 0], file, qid=[3, 3], ensure_all_finite="allow-nan")
    assert b"1 qid:3 1:1.5 2:nan" in file.getvalue()
    file.seek(0)
    data = load_letor(file, dtype=dtype, dense=True, ensure_all_finite="allow-nan")
    np.testing.assert_array_equal(data.X, X)
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        dump_letor(form(X), [1, 0], io.BytesIO())
    X[0, 1] = np.inf
    with pytest.raises(ValueError, match="infinity at row 0, column 1"):
        dump_letor(form(X), [1, 0], io.BytesIO(), ensure_all_finite="allow-nan")
    with pytest.raises(ValueError, match="ensure_all_finite must be"):
        dump_letor(form(X), [1, 0], io.BytesIO(), ensure_all_finite=False)


def test_files_are_written_compressed_by_name(tmp_path):
    X = sp.random(10_000, 20, 0.5, format="csr", random_state=0)
    for name in ["data.txt", "data.txt.gz"]:
        dump_letor(X, np.zeros(10_000), tmp_path / name)
        assert (load_letor(tmp_path / name, n_features=20).X != X).nnz == 0
    assert (tmp_path / "data.txt.gz").read_bytes().startswith(b"\x1f\x8b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1]}, r"y must have shape \(2,\), an entry for each row of X; got \(1,\)"),
        ({"y": ["a", "b"]}, "y must be real numbers; got dtype <U1"),
        ({"X": [1, 2]}, r"X must have two dimensions; got shape \(2,\)"),
        ({"X": [["a"], ["b"]]}, "X must be numeric; got dtype <U1"),
        ({"qid": [1]}, r"qid must have shape \(2,\)"),
        ({"qid": ["a", "b c"]}, "qid 'b c' of row 1 cannot be written"),
        ({"qid": ["a", "b#"]}, "qid 'b#' of row 1 cannot be written"),
        ({"qid": ["", "b"]}, "qid '' of row 0 cannot be written"),
        ({"qid": ["", "b"], "docid": ["a", "b"]}, "it must be an integer or a str of 1 to 4096"),
        ({"docid": ["a", "b\nc"]}, "docid 'b\\\\nc' of row 1 cannot be written"),
        ({"docid": ["a", "b" * 4097]}, "cannot be written: .* of 1 to 4096 bytes"),
        ({"comments": ["a", "b\nc"]}, "the comment 'b\\\\nc' of row 1 cannot be written"),
        ({"comments": ["a", "b"], "docid": ["a", "b"]}, "docid and comments exclude each other"),
    ],
)
def test_unwritable_rows_are_rejected(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dump_letor(**{"X": [[1.0], [2.0]], "y": [0, 1], "target": io.BytesIO(), **arguments})
