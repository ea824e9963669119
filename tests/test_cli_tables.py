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


def queries_of_words(folder):
    """Write numbers, document ids and grades in words as CSV and Parquet; return the frame."""
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    columns = {
        "qid": np.repeat([f"q{i}" for i in range(20)], 15),
        "docid": [f"d{i}" for i in range(300)],
        "size": rng.normal(size=300),
        "age": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
    }
    frame = pandas.DataFrame(columns)
    latent = frame["size"] + 0.5 * frame["age"].fillna(0)
    frame["grade"] = np.array(WORDS)[np.digitize(latent, [-0.5, 0.3, 1.0])]
    frame.to_csv(folder / "words.csv", index=False)
    frame.to_parquet(folder / "words.parquet")
    return frame


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_grades_in_words_are_read_from_every_table(tmp_path, suffix):
    frame = queries_of_words(tmp_path)
    data, model = tmp_path / f"words.{suffix}", tmp_path / "model"
    options = ["--label", "grade", "--classes", ",".join(WORDS), "--model", "rankboost"]
    succeed("train", data, "--valid", data, *options, "-o", model, "--quiet")
    features = frame[["size", "age"]]
    held_out = {"eval_set": (features, frame["grade"]), "eval_qid": frame["qid"]}
    expected = rc.RankBoost(early_stopping_rounds=60, classes=WORDS, random_state=0)
    expected.fit(features, frame["grade"], qid=frame["qid"], **held_out)
    found = rc.load(model)
    assert found.feature_names_in_.tolist() == ["size", "age"]
    np.testing.assert_array_equal(found.predict(features), expected.predict(features))
    text = succeed("evaluate", model, data, "--label", "grade", "-m", "ndcg@10", "--json")
    score = expected.score(features, frame["grade"], qid=frame["qid"])
    assert json.loads(text)["ndcg@10"] == pytest.approx(score)
    succeed("predict", model, data, "--run", tmp_path / "a.run")
    assert len({line.split()[2] for line in (tmp_path / "a.run").read_text().splitlines()}) == 300
    if suffix == "parquet":
        message = fail("train", data, "--stream", *options, "-o", model)
        assert "is read into memory: omit --stream" in message


def test_tune_searches_learners_that_take_nan_if_there_is_some(tmp_path):
    pytest.importorskip("optuna")
    queries_of_words(tmp_path)
    options = ["--label", "grade", "--classes", ",".join(WORDS), "--max-trials", 2, "--json"]
    text = succeed("tune", tmp_path / "words.csv", *options, "-o", tmp_path / "model")
    assert json.loads(text)["model"] in ("rankboost", "rankboost-trees")
    table = pandas.read_csv(tmp_path / "words.csv").drop(columns=["qid", "docid"])
    table.to_csv(tmp_path / "labels.csv", index=False)
    text = succeed("tune", tmp_path / "labels.csv", *options, "-o", tmp_path / "model")
    assert json.loads(text)["model"] == "ordinal-boost"


def test_a_column_without_a_name_is_no_feature(folder, tmp_path):
    """An index that pandas wrote would be a feature; a model finds its own columns."""
    table(300, 0).to_csv(tmp_path / "train.csv")
    table(100, 1).to_csv(tmp_path / "test.csv")
    for command in ("train", "tune"):
        message = fail(command, tmp_path / "train.csv", "-o", tmp_path / "model", *TRAIN)
        assert "the header has no name for column 1" in message
        assert "index=False" in message
    found = succeed("predict", folder / "boost", tmp_path / "test.csv")
    assert found == succeed("predict", folder / "boost", folder / "test.csv")
    columns = ["--columns", "price,brand,noise"]
    succeed("train", tmp_path / "train.csv", "-o", tmp_path / "model", *TRAIN, *BOOST, *columns)


@pytest.mark.parametrize("name", ["train.csv", "train.tsv.gz"])
def test_endings_of_tables_may_be_in_capitals(folder, tmp_path, name):
    capital = tmp_path / name.upper()
    capital.write_bytes((folder / name).read_bytes())
    out = tmp_path / "model"
    succeed("train", capital, "-o", out, *TRAIN, *BOOST)
    X = table(100, 1).astype({"brand": "category"}).drop(columns="stars")
    expected = rc.load(folder / "boost").predict(X)
    assert rc.load(out).predict(X).tolist() == expected.tolist()


def test_training_on_a_table_equals_the_fit_on_its_frame(folder, boost):
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
def test_predictions_for_a_table_equal_those_for_its_frame(folder, boost, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    frame = table(100, 1).drop(columns="stars")
    lines = succeed("predict", folder / "boost", folder / name).split()
    assert lines == boost.predict(frame.astype({"brand": "category"})).tolist()


def test_measures_of_words_equal_those_of_their_ranks(folder, boost):
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


def test_cross_validation_and_explanations_accept_tables(folder):
    given = (*TRAIN, "--folds", 3)
    found = json.loads(succeed("cv", folder / "train.csv", *BOOST, *given, "--json"))
    assert found["summary"]["rank_loss"]["mean"] < 0.5  # the best constant has .8
    told = succeed("explain", folder / "boost", folder / "test.csv", "--label", "stars")
    assert "brand" in told
    one = succeed("explain", folder / "boost", folder / "test.csv", "--label", "stars", "--row", 3)
    assert table(100, 1)["brand"][2] in one


@pytest.mark.parametrize("learner", ["prank", "ordinal-boost"])
def test_cross_validation_keeps_the_rows_of_a_group_together(tmp_path, learner):
    """A person's rows are equal, so a fold with some of them would know the others' labels."""
    rng = np.random.default_rng(0)
    persons = np.arange(60)
    frame = pandas.DataFrame(rng.normal(size=(60, 4)).round(3), columns=list("abcd"))
    frame = frame.assign(stars=rng.integers(1, 4, 60), person=persons)
    frame.loc[np.repeat(persons, 5)].to_csv(tmp_path / "visits.csv", index=False)
    given = ("--label", "stars", "--model", learner, "--epochs", 60, "--json")
    kept = json.loads(succeed("cv", tmp_path / "visits.csv", *given, "--qid", "person"))
    columns = ("--columns", "a,b,c,d")
    apart = json.loads(succeed("cv", tmp_path / "visits.csv", *given, *columns))
    losses = [found["summary"]["rank_loss"]["mean"] for found in (kept, apart)]
    constant = np.abs(frame["stars"] - 2).mean()
    assert losses[0] > 0.9 * constant  # nothing can be learned of a new person
    if learner == "ordinal-boost":
        assert losses[1] < 0.5 * constant


def expected_measures(model, frame):
    """Compute measures of words row by row."""
    X = frame.drop(columns="stars").astype({"brand": "category"})
    truth = [WORDS.index(word) for word in frame["stars"]]
    predicted = [WORDS.index(word) for word in model.predict(X)]
    table = model.predict_proba(X)[:, [model.classes_.tolist().index(word) for word in WORDS]]
    pairs = list(zip(truth, predicted, strict=True))
    rows = list(zip(truth, table.tolist(), strict=True))
    return {
        "rank_loss": np.mean([abs(a - b) for a, b in pairs]),
        "accuracy": np.mean([a == b for a, b in pairs]),
        "accuracy_within": np.mean([abs(a - b) <= 1 for a, b in pairs]),
        "rps": np.mean([sum((sum(p[: j + 1]) - (a <= j)) ** 2 for j in range(3)) for a, p in rows]),
        "brier_score": np.mean([sum((p[j] - (a == j)) ** 2 for j in range(4)) for a, p in rows]),
        "log_loss": np.mean([-np.log(p[a]) for a, p in rows]),
    }


def test_measures_of_labels_and_probabilities_are_computed_by_name(folder, boost):
    data = (folder / "test.csv", "--label", "stars")
    expected = expected_measures(boost, table(100, 1))
    chosen = [argument for name in expected for argument in ("-m", name)]
    facts = json.loads(succeed("evaluate", folder / "boost", *data, *chosen, "--json"))
    assert {name: facts[name] for name in expected} == pytest.approx(expected)
    folds = json.loads(succeed("cv", folder / "train.csv", *BOOST, *TRAIN, *chosen, "--json"))
    assert list(folds["summary"]) == list(expected)
    by_default = json.loads(succeed("cv", folder / "train.csv", *BOOST, *TRAIN, "--json"))
    for name, same in [("rps", "ranked_probability_score"), ("accuracy_within", "within_1_rank")]:
        assert folds["summary"][name] == by_default["summary"][same]


def test_models_are_compared_by_their_probabilities(folder, tmp_path):
    few = ("--model", "ordinal-boost", "--epochs", 2, "--seed", 0)
    succeed("train", folder / "train.csv", "-o", tmp_path / "few", *TRAIN, *few)
    data = (folder / "test.csv", "--label", "stars")
    compared = ("evaluate", folder / "boost", *data, "--compare", tmp_path / "few", "--json")
    found = json.loads(succeed(*compared))
    means = [model["ranked_probability_score"] for model in found["models"].values()]
    contrasts = {contrast["measure"]: contrast for contrast in found["contrasts"]}
    assert list(contrasts) == ["rank_loss", "ranked_probability_score"]
    difference = contrasts["ranked_probability_score"]["difference"]
    assert difference == pytest.approx(means[1] - means[0])
    (brier,) = json.loads(succeed(*compared, "-m", "brier_score"))["contrasts"]
    assert brier["measure"] == "brier_score"


def test_measures_of_other_learners_are_rejected(folder):
    given = (folder / "train.csv", "--label", "stars", "--classes", ",".join(WORDS))
    numbers = ("--columns", "price,noise", "--model", "prank")
    assert "requires probabilities" in fail("cv", *given, *numbers, "-m", "rps")
    assert "not rankings of queries" not in fail("cv", *given, *numbers, "-m", "rsp")
    assert "no column of queries" in fail("cv", *given, *numbers, "-m", "ndcg@10")
    data = (folder / "test.csv", "--label", "stars")
    both = fail("evaluate", folder / "boost", *data, "-m", "rps", "-m", "map")
    assert "evaluate each on its own" in both


def test_rankers_take_grades_in_words(tmp_path):
    frame = table(300, 0).assign(qid=np.repeat(np.arange(30), 10))
    frame.to_csv(tmp_path / "words.csv", index=False)
    frame.assign(stars=frame["stars"].map(WORDS.index)).to_csv(tmp_path / "grades.csv", index=False)
    learner = ("--label", "stars", "--categorical", "brand", "--model", "rankboost-trees")
    given = {"words": (*learner, "--classes", ",".join(WORDS)), "grades": learner}
    facts, folds = {}, {}
    for name, options in given.items():
        file, model = tmp_path / f"{name}.csv", tmp_path / name
        valid = ("--valid", file, "--metric", "ndcg@5")
        succeed("train", file, "-o", model, *options, *valid, "--epochs", 5)
        facts[name] = succeed("evaluate", model, file, "--label", "stars", "-m", "ndcg@5", "--json")
        cv = succeed("cv", file, *options, "-m", "ndcg@5", "--folds", 3, "--epochs", 3, "--json")
        folds[name] = json.loads(cv)["folds"]
    assert facts["words"] == facts["grades"]
    assert folds["words"] == folds["grades"]
    assert json.loads(succeed("info", tmp_path / "words", "--json"))["grades"] == WORDS
    explained = ("explain", tmp_path / "words", tmp_path / "words.csv", "--label", "stars")
    assert "brand" in succeed(*explained, "-m", "ndcg@5")
    assert "best" in succeed(*explained, "--query", "3")
    # A model of numbers measures words in the order of the option.
    other = ("evaluate", tmp_path / "grades", tmp_path / "words.csv", "--label", "stars")
    named = succeed(*other, "-m", "ndcg@5", "--classes", ",".join(WORDS), "--json")
    assert named == facts["grades"]
    assert "(--classes on the command line)" in fail(*other, "-m", "ndcg@5")
    assert "pass classes=" in fail("train", tmp_path / "words.csv", "-o", tmp_path / "m", *learner)
    unknown = ("--classes", "bad,fair,good")
    assert "'best' at row" in fail(
        "train", tmp_path / "words.csv", "-o", tmp_path / "m", *learner, *unknown
    )
    numbers = fail("train", tmp_path / "grades.csv", "-o", tmp_path / "m", *given["words"])
    assert "are words" in numbers


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
        ("a,label\n1,2,5\n3,4,5\n", (), "line 2 has 3 cells, and the header has 2"),
        ("a,b,label\n1,2,3\n\n4,5\n", (), "line 4 has 2 cells, and the header has 3"),
        ('a,label,b\n"x\ny",1,2\n3\n', (), "line 4 has 1 cells, and the header has 3"),
        ("a;label\n3,14;1\n2,5;2\n", (), "'3,14' in line 2, a number with a decimal comma"),
        ("a;label\n1;-3,14\n2;2,5\n", (), "'label' holds '-3,14' in line 2, a number with"),
        ("a,a,label\n1,2,5\n3,4,5\n", (), "must be different ones; got 'a' twice"),
        ("a,label\n1,2\n3,4\n", ("--columns", "a,label"), "different ones; got 'label' twice"),
        ("a,label\n1,2\n3,4\n", ("--columns", "a,a"), "different ones; got 'a' twice"),
        ("a,qid,label\n1,2,1\n3,4,2\n", ("--columns", "a,qid"), "got 'qid' twice"),
        ("a,label\n1,2\n3,4\n", ("--categorical", "label"), "different features; got 'label'"),
        ("a,qid,label\n1,2,1\n", ("--categorical", "qid"), "different features; got 'qid'"),
        ("a,label\n1,2\n3,4\n", ("--categorical", "a,a"), "different features; got 'a'"),
        ("a,label\n1,2\n", ("--model", "pairwise"), "no column of queries"),
        ("a,label\n1,2\n", ("--model", "pairwise"), "name the column with --qid"),
        ("a,b\n1,2\n3,4\n", (), "has no column 'label'; its columns are a, b"),
        ("a,label\n1,2\nx,3\n", (), "column 'a' holds 'x' in line 3: correct it, name the column"),
        ("a,label\n1,2\n,3\n", (), "line 3: feature 'a' is NaN"),
        ("a,label\n1,2\n\ninf,3\n", (), "line 4: feature 'a' is infinity"),
        ("a,label\n1,2\n2,\n", (), "labels are missing in column 'label', the first in line 3"),
        (
            "a,qid,label\n1,q,2\n2,,3\n",
            (),
            "1 ids are missing in column 'qid', the first in line 3",
        ),
        ("label\n1\n2\n", (), "has no columns of features"),
        ("a,label\n1,low\n2,high\n", (), "lowest rank first"),
        ("a,label\n1,2\n2,3\n", ("--categorical", "b"), "has no column 'b'"),
        ("a,label\n1,2\n2,3\n", ("--stream",), "omit --stream and --cache"),
        ("a,label\n1,2\nx,3\n", ("--categorical", "a", "--model", "prank"), "'a' has dtype"),
    ],
)
def test_unsuitable_tables_are_named(tmp_path, text, options, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert message in fail("train", path, "-o", tmp_path / "model", *options)


def test_tables_with_different_columns_are_rejected(folder, tmp_path):
    table(10, 0)[["price", "stars"]].to_csv(tmp_path / "narrow.csv", index=False)
    given = ("-o", tmp_path / "model", *TRAIN[:2], *TRAIN[4:], "--columns")
    message = fail("train", folder / "train.csv", tmp_path / "narrow.csv", *given, "price,noise")
    assert "narrow.csv has no column 'noise'" in message


CODES = ("--label", "grade", "--categorical", "code")


def coded(n, seed, codes=("1", "2", "3", "001")):
    """Make codes, which alone decide the grades."""
    code = np.random.default_rng(seed).choice(codes, n)
    grade = [1 + codes.index(one) for one in code]
    return pandas.DataFrame({"code": code, "x": np.arange(n) % 7, "grade": grade})


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Return a model of codes, and its folder."""
    folder = tmp_path_factory.mktemp("codes")
    coded(200, 0).to_csv(folder / "train.csv", index=False)
    succeed("train", folder / "train.csv", "-o", folder / "model", *CODES, *BOOST)
    return folder


@pytest.mark.parametrize("other", ["unknown", ""])
def test_categories_are_the_texts_of_cells(codes, tmp_path, other):
    test = coded(50, 1)
    extended = pandas.concat([test, pandas.DataFrame({"code": [other], "x": [0], "grade": [1]})])
    extended.to_csv(tmp_path / "test.csv", index=False)
    lines = succeed("predict", codes / "model", tmp_path / "test.csv").split()
    assert lines[:-1] == test["grade"].astype(str).tolist()
    assert rc.load(codes / "model")._categories.labels == {0: ["001", "1", "2", "3"]}


def test_files_whose_codes_look_different_are_concatenated(codes, tmp_path):
    train = coded(200, 0)
    part = train["code"] == "001"
    train[~part].to_csv(tmp_path / "numbers.csv", index=False)
    train[part].assign(code="word").to_csv(tmp_path / "words.csv", index=False)
    paths = tmp_path / "numbers.csv", tmp_path / "words.csv"
    succeed("train", *paths, "-o", tmp_path / "model", *CODES, *BOOST)
    assert rc.load(tmp_path / "model")._categories.labels == {0: ["1", "2", "3", "word"]}


@pytest.mark.parametrize("kind", [int, float, "Int64", str, "category"])
def test_categories_of_parquet_have_the_codes_of_csv(tmp_path, kind):
    pytest.importorskip("pyarrow")
    train = coded(200, 0, ("1", "2", "3", "4"))
    train.to_csv(tmp_path / "train.csv", index=False)
    train["code"] = train["code"].astype(int).astype(kind)
    train.to_parquet(tmp_path / "train.parquet")
    for name in ("train.csv", "train.parquet"):
        succeed("train", tmp_path / name, "-o", tmp_path / f"{name}.model", *CODES, *BOOST)
    models = [(tmp_path / f"{name}.model").read_bytes() for name in ("train.csv", "train.parquet")]
    assert models[0] == models[1]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [int, float])
def test_models_of_numbered_categories_find_them_in_files(tmp_path, kind, suffix):
    train = coded(200, 0, ("1", "2", "3", "4"))
    frame = train.assign(code=train["code"].astype(kind).astype("category"))
    model = rc.OrdinalBoost(10, random_state=0).fit(frame[["code", "x"]], frame["grade"])
    rc.save(model, tmp_path / "model")
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
        train.assign(code=train["code"].astype(int)).to_parquet(tmp_path / "test.parquet")
    else:
        train.iloc[0, 0] = "unknown"
        train.to_csv(tmp_path / "test.csv", index=False)
    lines = succeed("predict", tmp_path / "model", tmp_path / f"test.{suffix}").split()
    assert lines[1:] == train["grade"].astype(str).tolist()[1:]


@pytest.mark.parametrize("name", ["None", "NA", "nan"])
def test_names_of_missing_values_are_labels_ids_and_categories(tmp_path, name):
    train = coded(200, 0, (name, "2")).assign(grade=lambda frame: frame["code"])
    train.to_csv(tmp_path / "train.csv", index=False)
    given = (*CODES, *BOOST, "--classes", f"2,{name}")
    succeed("train", tmp_path / "train.csv", "-o", tmp_path / "words", *given)
    found = rc.load(tmp_path / "words")
    assert found._categories.labels == {0: sorted(["2", name])}
    lines = succeed("predict", tmp_path / "words", tmp_path / "train.csv").split()
    assert lines == train["code"].tolist()
    train.assign(grade=train["code"].eq("2").astype(int), qid=name).to_csv(
        tmp_path / "queries.csv", index=False
    )
    facts = succeed("train", tmp_path / "queries.csv", "-o", tmp_path / "ranker", *CODES, "--json")
    assert json.loads(facts)["queries"] == 1


@pytest.mark.parametrize(("query", "model"), [(False, "ordinal-boost"), (True, "rankboost-trees")])
def test_default_learner_for_categories_has_trees(tmp_path, query, model):
    train = coded(200, 0)
    if query:
        train["qid"] = np.repeat(np.arange(20), 10)
    train.to_csv(tmp_path / "train.csv", index=False)
    given = (tmp_path / "train.csv", "-o", tmp_path / "model", *CODES, "--json")
    assert json.loads(succeed("train", *given))["model"] == model
    pytest.importorskip("optuna")
    assert json.loads(succeed("tune", *given, "--max-trials", 1))["model"] == model


def test_explanations_without_measures_require_no_labels(codes, tmp_path):
    coded(50, 1).drop(columns="grade").to_csv(tmp_path / "test.csv", index=False)
    given = (codes / "model", tmp_path / "test.csv")
    assert "code" in succeed("explain", *given)
    assert "code" in succeed("explain", *given, "--row", 1)
    assert "has no column 'label'" in fail("explain", *given, "-m", "rank_loss")


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zip", "zst"])
@pytest.mark.parametrize("cut", [False, True])
def test_unreadable_compression_is_named(tmp_path, suffix, cut):
    path = tmp_path / f"table.csv.{suffix}"
    path.write_bytes(b"no archive at all")
    if cut and suffix != "zst":
        coded(2000, 0).to_csv(path, index=False)
        path.write_bytes(path.read_bytes()[:-500])
    message = fail("train", path, "-o", tmp_path / "model", "--label", "grade")
    assert f"{path} cannot be read as a table: " in message


def test_a_named_index_of_parquet_is_a_column(tmp_path):
    pytest.importorskip("pyarrow")
    train = coded(200, 0).assign(docid=np.arange(200, dtype=np.uint64) + np.uint64(2**63))
    train["qid"] = np.repeat(np.arange(20), 10)
    train.set_index("code").to_parquet(tmp_path / "train.parquet")
    succeed("train", tmp_path / "train.parquet", "-o", tmp_path / "model", *CODES)
    assert rc.load(tmp_path / "model").feature_names_in_.tolist() == ["code", "x"]
    succeed("predict", tmp_path / "model", tmp_path / "train.parquet", "--run", tmp_path / "run")
    assert set(rc.datasets.read_run(tmp_path / "run").docid) == set(train["docid"].astype(str))


def test_columns_of_further_files_are_found_by_name(codes, tmp_path):
    train, valid = coded(200, 0), coded(60, 1)
    train[:100].to_csv(tmp_path / "first.csv", index=False)
    train[100:][["x", "grade", "code"]].to_csv(tmp_path / "second.csv", index=False)
    paths = tmp_path / "first.csv", tmp_path / "second.csv"
    succeed("train", *paths, "-o", tmp_path / "model", *CODES, *BOOST)
    assert (tmp_path / "model").read_bytes() == (codes / "model").read_bytes()
    valid.to_csv(tmp_path / "same.csv", index=False)
    valid[["x", "grade", "code"]].to_csv(tmp_path / "other.csv", index=False)
    models = []
    for name in ("same", "other"):
        held_out = ("--valid", tmp_path / f"{name}.csv")
        succeed("train", *paths, "-o", tmp_path / name, *CODES, *BOOST, *held_out)
        models.append((tmp_path / name).read_bytes())
    assert models[0] == models[1]


def test_names_of_parameters_elsewhere_are_translated(codes, tmp_path):
    given = ("train", codes / "train.csv", "-o", tmp_path / "model", *CODES, *BOOST)
    for name in ("colsample", "colsample_bytree", "feature_fraction"):
        assert "did you mean max_features?" in fail(*given, "--set", f"{name}=0.5")
