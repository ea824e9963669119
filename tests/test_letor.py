"""LETOR files: the same numbers as Python's float and scikit-learn's reader, errors with lines."""

import bz2
import gzip
import io
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from letor_rows import assert_rows, load, same_bits
from rankcore._ext.letor import parse, scatter
from rankcore.datasets import dump_letor, iter_letor, load_letor, streams
from reference import letor as reference
from strategies import csr_matrices, examples

pytestmark = pytest.mark.kernel

DATA = Path(os.environ.get("RANKCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))
DTYPES = [np.float32, np.float64]


def matches_reference(text, first=1, **options):
    """Whether the reader agrees with the plain one: the same rows, or an error in both."""
    options["zero_based"] = {0: True, 1: False, "auto": "auto"}[first]
    finite = options.get("ensure_all_finite", True)
    try:
        labels, qids, rows, comments = reference.read(text, first, finite)
    except ValueError:
        with pytest.raises(
            ValueError, match=r"the stream(, line \d+:| holds no examples| is damaged| is Parquet)"
        ):
            load(text, **options)
        return
    data = load(text, comments=True, **options)
    assert same_bits(data.y, np.array(labels))
    assert (data.qid is None) == (qids is None)
    if qids is not None:
        assert data.qid.tolist() == qids
    X = data.X
    assert X.indptr.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    assert X.indices.tolist() == [column for row in rows for column in row]
    assert same_bits(X.data, np.array([v for row in rows for v in row.values()], dtype=float))
    assert X.shape == (len(rows), max([c + 1 for row in rows for c in row], default=0))
    expected = [(c or b"").decode("utf-8", "surrogateescape").strip(" \t\r\v\f") for c in comments]
    assert data.comments == expected


WORDS = st.one_of(
    st.builds("{}:{}".format, st.integers(0, 12), st.floats(width=32).map(repr)),
    st.builds("qid:{}".format, st.one_of(st.integers(-3, 3), st.text("ab07+-", max_size=3))),
    st.sampled_from(
        ["#", "1", "-2.5e3", "0", "1:", ":1", "-1:2", "x", "#docid = 7", "é", "\r", "\t"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=4),
)
LINES = st.builds(
    lambda label, qid, columns, rest: " ".join(
        [label, *qid, *(f"{c}:{v}" for c, v in sorted(columns.items())), *rest]
    ),
    st.one_of(st.integers(0, 4).map(str), st.just("")),
    st.one_of(st.just([]), st.just(["qid:1"]), st.just(["qid:2"])),
    st.dictionaries(st.integers(0, 20), st.floats(allow_nan=False, width=16).map(repr), max_size=5),
    st.lists(WORDS, max_size=2),
)


@given(
    lines=st.lists(LINES, max_size=8),
    ending=st.sampled_from(["\n", "\r\n", "\n\n", " \n"]),
    first=st.sampled_from([0, 1, "auto"]),
    finite=st.booleans(),
)
@settings(max_examples=examples(250), deadline=None)
def test_texts_agree_with_the_plain_reader(lines, ending, first, finite):
    matches_reference(ending.join(lines).encode(), first, ensure_all_finite=finite)


@given(text=st.binary(max_size=60), first=st.sampled_from([0, 1, "auto"]))
@settings(max_examples=examples(250), deadline=None)
def test_arbitrary_bytes_are_read_or_rejected(text, first):
    matches_reference(text, first)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(200), deadline=None)
def test_damaged_texts_are_read_as_the_plain_reader_does(seed):
    draw = random.Random(seed)
    text = bytearray(SAMPLE)
    for _ in range(draw.randrange(1, 4)):
        place = draw.randrange(len(text))
        text[place : place + draw.randrange(3)] = draw.choice(
            [
                b"",
                b"\n",
                b":",
                b"#",
                b" ",
                b"-",
                b"9" * 30,
                b"e",
                b".",
                b"\0",
                b"\xff",
                b"qid:",
                b"0",
            ]
        )
    matches_reference(bytes(text), draw.choice([0, 1, "auto"]))


SAMPLE = b"""\
# a file
2 qid:7 1:0.5 3:-1.25e-3 46:1000000 #docid = GX000-00-0000000 inc = 1 prob = 0.0246906
0 qid:7 2:4\t5:.25\t# docid=GX2

1.5 qid:-12 #docid = GX3
-1 qid:-12 1:12345678.87654321 2:1e-7\r
"""


def test_the_sample_is_read():
    data = load(SAMPLE, comments=True)
    assert repr(data) == "LetorData(4 x 46 CSR float64, qid, docid, comments)"
    assert data.y.tolist() == [2, 0, 1.5, -1]
    assert data.qid.dtype == np.int64
    assert data.qid.tolist() == [7, 7, -12, -12]
    assert data.docid.tolist() == ["GX000-00-0000000", "GX2", "GX3", ""]
    expected = np.zeros((4, 46))
    expected[0, [0, 2, 45]] = 0.5, -1.25e-3, 1e6
    expected[1, [1, 4]] = 4, 0.25
    expected[3, [0, 1]] = 12345678.87654321, 1e-7
    assert (data.X.toarray() == expected).all()
    assert data.X.indices.dtype == np.int32
    assert data.X.has_canonical_format
    assert data.comments[1:] == ["docid=GX2", "docid = GX3", ""]
    fields = data.comment_fields()
    assert list(fields) == ["docid", "inc", "prob"]
    assert fields["docid"].tolist() == data.docid.tolist()
    np.testing.assert_array_equal(fields["prob"], [0.0246906, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(fields["inc"], [1, np.nan, np.nan, np.nan])


@given(
    X=csr_matrices(max_rows=20, max_features=9, integers=False),
    zero_based=st.booleans(),
    with_qid=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
@settings(max_examples=examples(100), deadline=None)
def test_same_arrays_as_scikit_learn(X, zero_based, with_qid, dtype):
    datasets = pytest.importorskip("sklearn.datasets")
    y, qid = np.arange(X.shape[0]) % 3, np.arange(X.shape[0]) // 2
    file = io.BytesIO()
    datasets.dump_svmlight_file(
        sp.csr_matrix(X),
        y,
        file,
        zero_based=zero_based,
        comment="ours",
        query_id=qid if with_qid else None,
    )
    for numbered in [zero_based, "auto"]:
        options = {"dtype": dtype, "n_features": X.shape[1] + 1, "zero_based": numbered}
        file.seek(0)
        expected = datasets.load_svmlight_file(file, query_id=True, **options)
        assert_rows(load(file.getvalue(), **options), *expected)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}")
@pytest.mark.parametrize("part", ["norm.S1", "min.S2"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_ohsumed_is_read_as_by_scikit_learn(part, dtype):
    datasets = pytest.importorskip("sklearn.datasets")
    path = DATA / "ohsumed-letor3" / f"{part}.txt.gz"
    data = load_letor(path, dtype=dtype)
    assert_rows(data, *datasets.load_svmlight_file(str(path), query_id=True, dtype=dtype))
    assert data.X.shape[1] == 45
    assert np.unique(data.qid).size == 21
    with gzip.open(path, "rt") as file:
        assert data.docid.tolist() == [line.split("#docid = ")[1].strip() for line in file]
    dense = load_letor(path, dtype=dtype, dense=True)
    assert same_bits(dense.X, data.X.toarray())


# ---------------------------------------------------------------- forms of the file


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 64, 1000])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("dense", [False, True])
def test_block_boundaries_do_not_change_the_rows(size, n_jobs, dense, monkeypatch):
    text = SAMPLE * 5
    expected = load(text, comments=True)
    monkeypatch.setattr(streams, "BLOCK", size)
    found = load(text, comments=True, n_jobs=n_jobs, dense=dense)
    X = found.X if dense else found.X.toarray()
    np.testing.assert_array_equal(X, expected.X.toarray())
    for name in ["y", "qid", "docid", "comments"]:
        assert list(getattr(found, name)) == list(getattr(expected, name))


def test_threads_change_nothing():
    X = sp.random(20_000, 60, 0.3, format="csr", random_state=0)
    file = io.BytesIO()
    dump_letor(X, np.arange(20_000) % 5, file, qid=np.arange(20_000) // 9)
    assert len(file.getvalue()) > 3 * streams.BLOCK
    expected = load(file.getvalue(), n_features=60)
    assert (expected.X != X).nnz == 0
    for n_jobs in [1, 2, 3, -1]:
        found = load(file.getvalue(), n_jobs=n_jobs, n_features=60)
        assert_rows(found, expected.X, expected.y, expected.qid)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(load(file.getvalue()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in results:
        assert_rows(found, expected.X, expected.y, expected.qid)


class Dripping:
    """A stream that hands out a byte at a time, and can do nothing else."""

    def __init__(self, content):
        self.content = content

    def read(self, n):
        part, self.content = self.content[: min(n, 1)], self.content[1:]
        return part


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_every_kind_of_source_is_read(pack, tmp_path):
    content = pack(SAMPLE)
    path = tmp_path / "misnamed.txt"
    path.write_bytes(content)
    expected = load(SAMPLE)
    with open(path, "rb") as file:
        sources = [str(path), path, file, io.BytesIO(content), Dripping(content)]
        for source in sources:
            found = load_letor(source)
            assert_rows(found, expected.X, expected.y, expected.qid)
            assert found.docid.tolist() == expected.docid.tolist()
        assert not file.closed


@pytest.mark.parametrize("between", [b"", bytes(100)], ids=["joined", "padded"])
def test_members_of_an_archive_are_one_file(between, monkeypatch):
    member = gzip.compress(SAMPLE) + between
    expected = load(SAMPLE * 3).y.tolist()
    for size in [1, 20, 400, 10**6]:
        monkeypatch.setattr(streams, "BLOCK", size)
        assert load(member * 2 + gzip.compress(b"") + member).y.tolist() == expected
    with pytest.raises(ValueError, match="the stream is damaged: Not a gzipped file"):
        load(member + b"more")


def test_ends_of_lines_and_files_are_recognised():
    expected = load(SAMPLE)
    forms = [
        SAMPLE.rstrip(),
        SAMPLE + b"\n\n",
        SAMPLE.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + SAMPLE,
    ]
    for text in [*forms, SAMPLE + b"# end", SAMPLE + b"  \t"]:
        assert_rows(load(text), expected.X, expected.y, expected.qid)


def test_long_lines_are_read():
    # Longer than a block, which is a megabyte.
    values = np.random.default_rng(0).normal(size=200_000)
    line = (
        "1 qid:1 "
        + " ".join(f"{i}:{v!r}" for i, v in enumerate(values.tolist(), 1))
        + " # "
        + "c " * 10**6
    )
    data = load(f"{line}\n0 qid:1 7:1\n{line}".encode(), comments=True)
    assert data.X.shape == (3, 200_000)
    assert same_bits(data.X[[0]].data, values)
    assert same_bits(data.X[[2]].data, values)
    assert [len(comment) for comment in data.comments] == [2 * 10**6 - 1, 0, 2 * 10**6 - 1]


def test_rows_without_features_are_read():
    data = load(b"1\n0 # b\n")
    assert data.X.shape == (2, 0)
    assert data.qid is None
    assert load(b"1\n", dense=True).X.shape == (1, 0)
    assert load(b"1\n", n_features=3, dense=True).X.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("size", [1, 10**6])
def test_features_are_numbered_from_0_or_1(dense, size, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", size)

    def matrix(text, **options):
        X = load(text, dense=dense, **options).X
        return X.tolist() if dense else X.toarray().tolist()

    ones, zeros = b"1 1:5 2:6\n1 3:7\n", b"1 1:5 2:6\n1 0:7\n1 3:8"
    assert matrix(ones) == matrix(ones, zero_based=False) == [[5, 6, 0], [0, 0, 7]]
    assert matrix(ones, zero_based=True) == [[0, 5, 6, 0], [0, 0, 0, 7]]
    expected = [[0, 5, 6, 0], [7, 0, 0, 0], [0, 0, 0, 8]]
    assert (
        matrix(zeros) == matrix(zeros, zero_based=True) == matrix(zeros, n_features=4) == expected
    )
    assert matrix(ones, n_features=5) == [[5, 6, 0, 0, 0], [0, 0, 7, 0, 0]]
    with pytest.raises(ValueError, match="line 2: feature 0, but features count from 1"):
        matrix(zeros, zero_based=False)
    with pytest.raises(
        ValueError, match="line 2: features must be at most 2 with 2 features; got 3"
    ):
        matrix(ones, n_features=2)
    with pytest.raises(ValueError, match="features must be at most 1 with 2 features; got 2"):
        matrix(zeros[:-6], n_features=2)


def test_the_largest_feature_numbers_are_read():
    assert load(b"1 2147483647:1\n").X.shape == (1, 2**31 - 1)
    assert load(b"1 0:1 2147483646:1\n").X.shape == (1, 2**31 - 1)
    assert load(b"1 2147483646:1\n", zero_based=True).X.indices.tolist() == [2**31 - 2]
    for text, options in [
        (b"1 2147483648:1\n", {}),
        (b"1 2147483647:1\n", {"zero_based": True}),
        (b"1 99999999999999999999999:1\n", {}),
        (b"1 9223372036854775808:1\n", {}),
        (b"1 18446744073709551617:1\n", {}),
    ]:
        with pytest.raises(
            ValueError, match=r"line 1: a feature number is too large: '\d+:1'; at m"
        ):
            load(text, **options)
    with pytest.raises(
        ValueError, match="line 1: features must be at most 2147483646 .* got 2147483647"
    ):
        load(b"1 0:1 2147483647:1\n")


# ---------------------------------------------------------------- query ids


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "1", "2"], [1, 1, 2]),
        (["2", "1", "2"], [2, 1, 2]),
        (["007", "7", "+7"], [7, 7, 7]),
        (["-0", "0", "00"], [0, 0, 0]),
        (["9223372036854775807", "-9223372036854775807"], [2**63 - 1, -(2**63) + 1]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["a", "a", "b"], ["a", "a", "b"]),
        (["007", "7", "a", "+7", "-1"], ["007", "7", "a", "+7", "-1"]),
        (["1.0", "1e3", "0x1"], ["1.0", "1e3", "0x1"]),
        (["-", "+", "--1"], ["-", "+", "--1"]),
        (["qid:1", "é", ":"], ["qid:1", "é", ":"]),
    ],
)
@pytest.mark.parametrize("size", [1, 10**6])
def test_query_ids_keep_their_type(words, expected, size, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", size)
    qid = load("".join(f"1 qid:{word} 1:1\n" for word in words).encode()).qid
    assert qid.tolist() == expected
    assert qid.dtype.kind == ("i" if isinstance(expected[0], int) else "U")


# ---------------------------------------------------------------- comments


@pytest.mark.parametrize(
    ("comment", "docid"),
    [
        ("#docid = GX1", "GX1"),
        ("#docid=GX1", "GX1"),
        ("# DocID : GX1 inc = 1", "GX1"),
        ("#inc = 1 docid = GX1 prob = 0.5", "GX1"),
        ("# inc=1 docid= a=b", "a=b"),
        ("# 7555 rambo", "7555"),
        ("# 7555", "7555"),
        ("#7555\trambo iii", "7555"),
        ("# http://a/b?c=d e", "http://a/b?c=d"),
        ("# doc = a", ""),
        ("# inc = 1 words behind", ""),
        ("#docid =", ""),
        ("#docid", "docid"),
        ("#", ""),
        ("#  ", ""),
        ("", ""),
        ("# = 3", "="),
        ("# a ## docid = b", "a"),
        ("# größe rest", "größe"),
    ],
)
def test_document_ids_are_found_in_comments(comment, docid):
    text = f"1 1:1 {comment}\n0 1:1 # other\n".encode()
    assert load(text).docid.tolist() == [docid, "other"]
    alone = load(f"1 1:1 {comment}".encode())
    assert alone.docid is None if docid == "" else alone.docid.tolist() == [docid]
    assert load(text, docid=False).docid is None
    assert load(text).comments is None


def test_comments_that_are_not_utf8_are_kept():
    text = b"1 qid:\xe4 1:1 #docid = \xff\xfe\n1 qid:\xe4 #b\n"
    data = load(text, comments=True)
    assert [word.encode("utf-8", "surrogateescape") for word in data.docid] == [b"\xff\xfe", b"b"]
    assert data.qid[0].encode("utf-8", "surrogateescape") == b"\xe4"
    file = io.BytesIO()
    dump_letor(data.X, data.y, file, qid=data.qid, docid=data.docid)
    assert load(file.getvalue()).docid.tolist() == data.docid.tolist()


def test_fields_with_underscores_are_not_numbers():
    fields = load(b"1 # url = 12_3\n1 # url = 123", comments=True).comment_fields()
    assert fields["url"].tolist() == ["12_3", "123"]


def test_comment_fields_require_read_comments():
    with pytest.raises(ValueError, match="pass comments=True"):
        load(SAMPLE).comment_fields()
    fields = load(b"1 # a = 1 b = x\n1\n1 #a=2 b=3", comments=True).comment_fields()
    np.testing.assert_array_equal(fields["a"], [1, np.nan, 2])
    assert fields["b"].tolist() == ["x", "", "3"]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"x 1:1", "line 1: cannot read 'x 1:1': expected a label first, a number; got 'x'"),
        (b"1,2 1:1", "line 1: cannot read '1,2 1:1': expected a label first, a number (the"),
        (b"1:1", "line 1: cannot read '1:1': expected a label first, a number; got '1:1'"),
        (b"1 1:1\n# c\n\n1 2:x # y", "line 4: cannot read '1 2:x # y': expected number:val"),
        (b"1 1:\n", "line 1: cannot read '1 1:': expected number:value; got '1:'"),
        (b"1 1\n", "line 1: cannot read '1 1': expected number:value; got '1'"),
        (b"1 :1\n", "line 1: cannot read '1 :1': expected number:value; got ':1'"),
        (b"1 1: 2\n", "line 1: cannot read '1 1: 2': expected number:value; got '1:'"),
        (b"1 1:2:3\n", "line 1: cannot read '1 1:2:3': expected number:value; got '1:2:3'"),
        (b"1 1:1_0\n", "expected number:value; got '1:1_0'"),
        (b"1 1:0x10\n", "expected number:value; got '1:0x10'"),
        (b"1 1:1 qid:3\n", "expected number:value; got 'qid:3'"),
        (b"1 sid:1 1:1\n", "expected number:value; got 'sid:1'"),
        (b"1 " + b"y" * 100, "expected number:value; got '" + "y" * 40 + "...'"),
        (b"1 -4:1\n", "line 1: a feature has a negative number: '-4:1'"),
        (b"1 2:1 2:1\n", "line 1: feature numbers must ascend and not repeat; got 2 after 2"),
        (b"1 1:1\n1 5:1 2:1\n", "line 2: feature numbers must ascend and not repeat; got 2 aft"),
        (b"1 1:nan\n", "line 1: found '1:nan'; every value must be finite"),
        (b"1 1:-inf\n", "line 1: found '1:-inf'; every value must be finite"),
        (b"1 1:1e999\n", "line 1: found '1:1e999'; every value must be finite"),
        (b"nan 1:1\n", "line 1: label 'nan'; a label must be a finite number"),
        (b"1 qid: 1:1\n", "line 1: found 'qid:' without an id; expected qid:id"),
        (b"1 qid:1\n1 1:1\n", "line 2: the row has no qid:, while the rows before it have"),
        (b"1\n\n1 qid:1\n", "line 3: the row has a qid:, while the rows before it have none"),
        (b"1 1:1\n1 1:\x001\n", "line 2: cannot read '1 1:\\x001': expected number:value"),
        (b"1 qid:\x00 1:1\n", "line 1: found a NUL byte in 'qid:\\x00 1:1': is this a"),
        (b"1 1:1 # a\x00b\n", "line 1: found a NUL byte in '# a\\x00b': is this a text file?"),
        ("1 1:1\n".encode("utf-16"), "line 1: cannot read"),
        (b"1 1:1 # " + b"w" * 4097, "line 1: an id of 4097 bytes, which begins with 'www"),
        (b"1\n\n1 # " + b"w" * 4097, "line 3: an id of 4097 bytes, which begins with 'www"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 10**6])
def test_malformed_lines_are_named(text, message, size, monkeypatch, tmp_path):
    monkeypatch.setattr(streams, "BLOCK", size)
    path = tmp_path / "data"
    path.write_bytes(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        load_letor(path)
    assert str(caught.value).startswith(f"{path}, line ")
    assert message in str(caught.value)
    with pytest.raises(ValueError) as again:  # noqa: PT011
        load_letor(path, n_jobs=2)
    assert str(again.value) == str(caught.value)
    with pytest.raises(ValueError) as again:  # noqa: PT011
        list(iter_letor(path, n_features=9))
    assert str(again.value) == str(caught.value)


def test_values_that_float32_cannot_hold_are_rejected():
    text = b"1 1:1\n1 1:1e39\n"
    assert load(text).X.data.tolist() == [1, 1e39]
    with pytest.raises(ValueError, match="line 2: found '1:1e39', which float32 cannot hold"):
        load(text, dtype=np.float32)
    assert load(text, dtype=np.float32, ensure_all_finite=False).X.data.tolist() == [1, np.inf]


def test_missing_values_are_read_on_request():
    text = b"1 1:nan 2:1\n"
    for option in ["allow-nan", False]:
        np.testing.assert_array_equal(load(text, ensure_all_finite=option).X.data, [np.nan, 1])
    for wrong in [b"1 1:inf\n", b"nan 1:1\n", b"inf 1:1\n"]:
        with pytest.raises(ValueError, match="finite"):
            load(wrong, ensure_all_finite="allow-nan")
        load(wrong, ensure_all_finite=False)


@pytest.mark.parametrize("text", [b"", b"\n", b"# only\n\n# comments", b"\xef\xbb\xbf"])
def test_empty_files_are_rejected(text):
    with pytest.raises(ValueError, match="the stream holds no examples"):
        load(text)
    with pytest.raises(ValueError, match="the stream holds no examples"):
        load(gzip.compress(text))
    assert list(iter_letor(io.BytesIO(text), n_features=1)) == []


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_damaged_archives_are_rejected(pack):
    content = bytearray(pack(SAMPLE * 100))
    with pytest.raises(ValueError, match="the stream is damaged: "):
        load(content[: len(content) // 2])
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(ValueError, match="the stream is damaged: |line"):
        load(content)


def test_invalid_sources_are_rejected(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_letor(tmp_path / "gone")
    with pytest.raises(TypeError, match="gave str instead of bytes; open it in binary mode"):
        load_letor(io.StringIO("1 1:1"))
    for wrong in [None, 3, [b"1 1:1"]]:
        with pytest.raises(TypeError, match="expected a path or a file opened in binary mode; got"):
            load_letor(wrong)
    with pytest.raises(TypeError, match="expected a path or a file opened in binary mode; got"):
        dump_letor([[1]], [1], 3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_features": 0}, ValueError, r"n_features must be an integer in \[1, "),
        ({"n_features": 2**31}, ValueError, r"in \[1, 2147483647\]; got 2147483648"),
        ({"n_features": 1.5}, TypeError, r"n_features must be an integer in .*; got 1\.5"),
        ({"dtype": int}, ValueError, "dtype must be float32 or float64"),
        ({"zero_based": "no"}, ValueError, "zero_based must be True, False or 'auto'; got 'no'"),
        ({"ensure_all_finite": "nan"}, ValueError, "ensure_all_finite must be True, False or"),
    ],
)
def test_wrong_options_are_rejected(options, error, message):
    with pytest.raises(error, match=message):
        load(SAMPLE, **options)


def test_the_kernel_checks_its_arrays():
    def arrays(n):
        rows, values = 2, n // 4
        return [
            np.empty(rows),
            np.empty(rows, np.int64),
            np.empty(values, np.int32),
            np.empty(values),
            np.empty((rows, 6), np.int64),
            np.empty((rows, 2), np.int64),
        ]

    text = b"1 1:1\n"
    assert parse(text, "t", 1, 1, False, False, False, *arrays(len(text)))[:2] == (1, 1)
    for place, array in enumerate(arrays(len(text))):
        wrong = arrays(len(text))
        wrong[place] = array[:-1]
        with pytest.raises(ValueError, match="do not match|are inconsistent"):
            parse(text, "t", 1, 1, False, False, False, *wrong)
    with pytest.raises(ValueError, match="room for 2 rows, the text has more"):
        parse(3 * text, "t", 1, 1, False, False, False, *arrays(3 * len(text)))
    with pytest.raises(ValueError, match="does not end in a newline"):
        parse(text[:-1], "t", 1, 1, False, False, False, *arrays(len(text)))
    ends, columns, values = np.array([2]), np.array([0, 5], np.int32), np.ones(2)
    with pytest.raises(ValueError, match="row 0 has column 5 of 3"):
        scatter(ends, columns, values, 0, 0, np.empty((1, 3)))
    with pytest.raises(ValueError, match="row 0 ends at 9 after 0"):
        scatter(ends + 7, columns, values, 0, 0, np.empty((1, 6)))


def test_rows_labels_and_queries_are_returned_together():
    text = b"2 qid:7 1:0.5 3:-1 #docid = A\n0 qid:7 2:4 #docid = B\n1 qid:8 1:1 #docid = C\n"
    data = load_letor(io.BytesIO(text))
    X, y, qid = data
    assert X is data.X
    assert y is data.y
    assert qid is data.qid
    page = data._repr_html_()
    assert "3 rows; 3 features; 2 queries; 4 stored values; labels 0: 1, 1: 1, 2: 1" in page
    assert "<th>7</th><th>A</th><td>2</td><td>1: 0.5, 3: -1</td>" in page


def test_rows_are_returned_as_a_frame():
    pytest.importorskip("pandas")
    text = b"2 qid:7 1:0.5 3:-1 #docid = A\n0 qid:7 2:4 #docid = B\n"
    for dense in (True, False):
        frame = load_letor(io.BytesIO(text), dense=dense).to_pandas()
        assert list(frame.columns) == ["label", "qid", "docid", "1", "2", "3"]
        assert frame.values.tolist() == [[2, 7, "A", 0.5, 0, -1], [0, 7, "B", 0, 4, 0]]


@pytest.mark.parametrize("dense", [False, True])
def test_several_files_are_joined(dense, tmp_path):
    texts = [b"2 qid:7 1:0.5 3:-1 #docid = a\n", b"1 qid:7 2:1\n0 qid:x 5:4 #docid = c\n"]
    paths = [tmp_path / "one.txt", tmp_path / "two.txt.gz"]
    paths[0].write_bytes(texts[0])
    paths[1].write_bytes(gzip.compress(texts[1]))
    joined = load_letor(paths, dense=dense)
    whole = load_letor(io.BytesIO(b"".join(texts)), dense=dense)
    for part in ("y", "qid", "docid"):
        assert getattr(joined, part).tolist() == getattr(whole, part).tolist()
    assert joined.qid.tolist() == ["7", "7", "x"]
    if dense:
        assert same_bits(joined.X, whole.X)
    else:
        assert_rows(joined, whole.X, whole.y, whole.qid)
    assert load_letor(paths[:1]).y.tolist() == [2.0]
    # A feature 0 in the second file alone counts for the first one too.
    paths[1].write_bytes(b"1 qid:8 0:3\n")
    assert load_letor(paths, dense=True).X.tolist() == [[0, 0.5, 0, -1], [3, 0, 0, 0]]
    paths[1].write_bytes(b"1 1:3\n")
    with pytest.raises(ValueError, match=r"two.txt.gz has no qid:"):
        load_letor(paths)
    paths[1].write_bytes(b"1 qid:1 0:x\n")
    with pytest.raises(ValueError, match=r"two.txt.gz, line 1"):
        load_letor(paths)
    with pytest.raises(ValueError, match="an empty list holds no examples"):
        load_letor([])
