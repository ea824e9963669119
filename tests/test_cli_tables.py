"""CSV, and Parquet with categories: every command reads tables as the API reads frames."""

import json

import numpy as np
import pytest

import rankcore as rc

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from test_cli import fail, succeed

pandas = pytest.importorskip("pandas")

WORDS = ["bad", "fair", "good", "best"]
TRAIN = ("--label", "stars", "--categorical", "brand", "--classes", "bad,fair,good,best")
BOOST = ("--model", "ordinal-boost", "--epochs", 10, "--seed", 0)


def table(n, seed):
    """Make a number and a brand that matter, a number that does not, and grades in words."""
    rng = np.random.default_rng(seed)
    brand = rng.choice(["acme", "bolt", "core"], n)
    price = rng.normal(50, 20, n).round(2)
    score = price / 20 + np.select([brand == "acme", brand == "bolt"], [2, -1], 0)
    stars = np.array(WORDS)[np.searchsorted([1.5, 2.8, 4], score + rng.normal(0, 0.5, n))]
    columns = {"price": price, "brand": brand, "noise": rng.normal(size=n), "stars": stars}
    return pandas.DataFrame(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    train, test = table(300, 0), table(100, 1)
    train.to_csv(folder / "train.csv", index=False)
    train.to_csv(folder / "train.tsv.gz", index=False, sep="\t")
    train.to_csv(folder / "semicolons.csv", index=False, sep=";", encoding="utf-8-sig")
    train[:150].to_csv(folder / "first.csv", index=False)
    train[150:].to_csv(folder / "second.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    for name in ("train", "test"):
        try:
            (train if name == "train" else test).to_parquet(folder / f"{name}.parquet")
        except ImportError:
            continue
    succeed("train", folder / "train.csv", "-o", folder / "boost", *TRAIN, *BOOST)
    return folder


@pytest.fixture(scope="module")
def boost():
    frame = table(300, 0).astype({"brand": "category"})
    model = rc.OrdinalBoost(10, classes=WORDS, random_state=0)
    return model.fit(frame.drop(columns="stars"), frame["stars"])


def test_training_on_a_table_is_the_fit_on_its_frame(folder, boost):
    found = rc.load(folder / "boost")
    frame = table(100, 1).astype({"brand": "category"}).drop(columns="stars")
    assert found.feature_names_in_.tolist() == ["price", "brand", "noise"]
    assert np.array_equal(found.predict_proba(frame), boost.predict_proba(frame))


@pytest.mark.parametrize(
    "names",
    [["train.tsv.gz"], ["semicolons.csv"], ["first.csv", "second.csv"], ["train.parquet"]],
    ids=lambda names: names[0],
)
def test_formats_of_tables_give_the_same_model(folder, tmp_path, names):
    if names[0].endswith("parquet"):
        pytest.importorskip("pyarrow")
    paths = [folder / name for name in names]
    succeed("train", *paths, "-o", tmp_path / "model", *TRAIN, *BOOST)
    assert (tmp_path / "model").read_bytes() == (folder / "boost").read_bytes()


@pytest.mark.parametrize("name", ["test.csv", "test.parquet"])
def test_predictions_for_a_table_are_those_for_its_frame(folder, boost, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    frame = table(100, 1).drop(columns="stars")
    lines = succeed("predict", folder / "boost", folder / name).split()
    assert lines == boost.predict(frame.astype({"brand": "category"})).tolist()


def test_measures_of_words_are_those_of_their_ranks(folder, boost):
    frame = table(100, 1)
    X = frame.drop(columns="stars").astype({"brand": "category"})
    facts = json.loads(
        succeed("evaluate", folder / "boost", folder / "test.csv", "--label", "stars", "--json")
    )
    expected = rc.metrics.rank_loss(frame["stars"], boost.predict(X), labels=WORDS)
    assert facts["rank_loss"] == pytest.approx(expected)


def test_input_lines_follow_predictions_without_the_header(folder):
    given = (folder / "test.csv").read_text().splitlines()[1:]
    lines = succeed("predict", folder / "boost", folder / "test.csv", "--with-input").splitlines()
    assert [line.split("\t", 1)[1] for line in lines] == given


def test_cross_validation_and_explanations_take_tables(folder):
    words = ("--set", f"classes={WORDS}")
    given = ("--label", "stars", "--categorical", "brand", *words, "--folds", 3)
    found = json.loads(succeed("cv", folder / "train.csv", *BOOST, *given, "--json"))
    assert found["summary"]["rank_loss"]["mean"] < 0.5  # the best constant has .8
    told = succeed("explain", folder / "boost", folder / "test.csv", "--label", "stars")
    assert "brand" in told
    one = succeed("explain", folder / "boost", folder / "test.csv", "--label", "stars", "--row", 3)
    assert table(100, 1)["brand"][2] in one


def test_rankers_read_queries_and_documents_of_tables(folder, tmp_path):
    frame = table(300, 0)
    frame["grade"] = frame.pop("stars").map(WORDS.index)
    frame["query"] = np.repeat([f"{i:03}" for i in range(30)], 10)
    frame["docid"] = [f"{i:05}" for i in range(300)]
    frame.to_csv(tmp_path / "queries.csv", index=False)
    given = ("--label", "grade", "--categorical", "brand", "--model", "rankboost-trees")
    succeed("train", tmp_path / "queries.csv", "-o", tmp_path / "model", *given)
    succeed("predict", tmp_path / "model", tmp_path / "queries.csv", "--run", tmp_path / "run")
    run = rc.datasets.read_run(tmp_path / "run")
    assert set(run.qid) == set(frame["query"])
    assert set(run.docid) == set(frame["docid"])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,label\n", (), "has no rows below its header"),
        ("", (), "cannot be read as a table"),
        ("a,label\n1,2\n3,4,5\n", (), "cannot be read as a table"),
        ("a,b\n1,2\n3,4\n", (), "has no column 'label'; its columns are a, b"),
        ("a,label\n1,2\nx,3\n", (), "column 'a' holds '1': name it with --categorical"),
        ("a,label\n1,2\n,3\n", (), "row 2: feature 'a' is NaN"),
        ("a,label\n1,2\n2,\n", (), "1 labels are missing in column 'label'"),
        ("a,qid,label\n1,q,2\n2,,3\n", (), "1 ids are missing in column 'qid'"),
        ("label\n1\n2\n", (), "has no columns of features"),
        ("a,label\n1,low\n2,high\n", (), "lowest rank first"),
        ("a,label\n1,2\n2,3\n", ("--categorical", "b"), "has no column 'b'"),
        ("a,label\n1,2\n2,3\n", ("--stream",), "omit --stream and --cache"),
        ("a,label\n1,2\nx,3\n", ("--categorical", "a", "--model", "prank"), "'a' has dtype"),
    ],
)
def test_unlearnable_tables_are_named(tmp_path, text, options, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert message in fail("train", path, "-o", tmp_path / "model", *options)


def test_tables_of_other_columns_are_not_mixed(folder, tmp_path):
    table(10, 0)[["price", "stars"]].to_csv(tmp_path / "narrow.csv", index=False)
    given = ("-o", tmp_path / "model", *TRAIN[:2], *TRAIN[4:], "--columns")
    message = fail("train", folder / "train.csv", tmp_path / "narrow.csv", *given, "price,noise")
    assert "narrow.csv has no column 'noise'" in message
