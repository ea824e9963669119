"""Dictionaries and JSON lines as chunks of hashed rows."""

import gzip
import io
import json

import numpy as np
import pytest
from sklearn.feature_extraction import FeatureHasher

import rankcore as rc
from rankcore.online import evaluate, hash_records

RECORDS = [
    {"stars": 4, "shop": "ACME", "price": 9.5, "new": True, "tags": ["late", "red"], "none": None},
    {"stars": 1, "shop": "Other", "price": 0, "buyer": {"age": 30, "city": "Köln"}, "sizes": [4]},
    {"stars": 3},
]
# The features of the records, as FeatureHasher takes them.
HASHED = [
    {"shop=ACME": 1, "price": 9.5, "new": 1, "tags=late": 1, "tags=red": 1},
    {"shop=Other": 1, "price": 0, "buyer.age": 30, "buyer.city=Köln": 1, "sizes=4": 1},
    {},
]


def lines():
    return [json.dumps(one) for one in RECORDS]


def gzipped(path):
    path.write_bytes(gzip.compress("\n\n".join(lines()).encode()))
    return path


@pytest.mark.parametrize(
    "records",
    [
        lambda path: RECORDS,
        lambda path: iter(lines()),
        lambda path: io.BytesIO("\n".join(lines()).encode()),
        gzipped,
    ],
    ids=["dictionaries", "texts", "binary file", "path"],
)
def test_hashed_columns_equal_those_of_scikit_learn(tmp_path, records):
    chunks = [*hash_records(records(tmp_path / "a.jsonl.gz"), "stars", n_features=64)]
    assert len(chunks) == 1
    expected = FeatureHasher(64).transform(HASHED)
    np.testing.assert_array_equal(chunks[0].X.toarray(), expected.toarray())
    assert chunks[0].y.tolist() == [4, 1, 3]
    assert chunks[0].qid is None


def test_chunks_have_the_requested_number_of_rows():
    records = ({"y": i % 3, "x": i} for i in range(25))
    sizes = [one.X.shape for one in hash_records(records, "y", n_features=8, rows_per_chunk=10)]
    assert sizes == [(10, 8), (10, 8), (5, 8)]


def test_queries_stay_whole():
    records = [{"y": i % 3, "q": f"q{i // 4}", "x": i} for i in range(20)]
    chunks = [*hash_records(records, "y", qid="q", rows_per_chunk=6)]
    assert [one.qid.tolist() for one in chunks] == [
        ["q0"] * 4 + ["q1"] * 4,
        ["q2"] * 4 + ["q3"] * 4,
        ["q4"] * 4,
    ]


def test_a_stream_of_dictionaries_is_learned():
    rng = np.random.default_rng(0)

    def shops(n):
        for shop in rng.integers(0, 20, n):
            yield {
                "shop": f"shop {shop}",
                "stars": "bad" if shop < 7 else "ok" if shop < 14 else "good",
            }

    found = evaluate(
        rc.PRank(),
        hash_records(shops(2000), "stars", n_features=1024, rows_per_chunk=50),
        classes=["bad", "ok", "good"],
        window=500,
    )
    assert found.windows[-1].latest["rank_loss"] == 0


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (["{"], "record 0 must be a JSON object"),
        (["[1]"], r"record 0 must be a dictionary; got \[1\]"),
        ([{"stars": 1}, {"x": 2}], "record 1 must have a value of 'stars'; it has x"),
        ([{"stars": 1, "x": {"y": 1j}}], "record 0: x.y must be a number.*got 1j"),
        ([{"stars": 1, "x": [[1]]}], r"record 0: x must be a number.*got \[\[1\]\]"),
        (['{"stars": 1}', '{"stars": 1, "x": NaN}'], "record 1: x must be a finite.*got nan"),
        (['{"stars": 1, "x": {"y": -Infinity}}'], "x.y must be a finite number.*got -inf"),
        (['{"stars": 1, "x": 1e400}'], "x must be a finite number.*got inf"),
        ([{"stars": 1, "x": 10**400}], "x must be a finite number.*got 1000"),
        (['{"stars": 1, "x": "\\ud800"}'], r"x must be valid Unicode; got '\\ud800'"),
        (['{"stars": 1, "x": ["a", "\\ud800"]}'], "x must be valid Unicode"),
        (['{"stars": NaN}'], "record 0: stars must be a finite number or a text; got nan"),
        ([{"stars": 10**400}], "record 0: stars must be a finite number or a text; got 1000"),
        ([{"stars": [1]}], r"record 0: stars must be a finite number or a text; got \[1\]"),
        (['{"stars": 1}', '{"stars": "2"}'], "record 1: stars must be one of numbers.*got '2'"),
        (['{"stars": "1"}', '{"stars": 2}'], "record 1: stars must be one of texts.*got 2"),
    ],
)
def test_invalid_records_are_named(records, message):
    with pytest.raises(ValueError, match=message):
        next(hash_records(records, "stars"))


def test_queries_that_are_numbers_and_texts_are_kept_apart():
    records = [{"stars": 1, "q": 1}, {"stars": 2, "q": "1"}]
    with pytest.raises(ValueError, match="record 1: q must be one of numbers.*got '1'"):
        next(hash_records(records, "stars", qid="q"))


def test_none_in_lists_is_left_out():
    with_none, without = (
        next(hash_records([{"stars": 1, "tags": tags}], "stars", n_features=16)).X.toarray()
        for tags in ([None, "late", None], ["late"])
    )
    np.testing.assert_array_equal(with_none, without)


@pytest.mark.parametrize("name", ["n_features", "rows_per_chunk"])
def test_sizes_are_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1"):
        next(hash_records(RECORDS, "stars", **{name: 0}))
