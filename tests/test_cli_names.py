"""Names of the features of svmlight files: in the model, and wherever features are shown."""

import json

import numpy as np
import pytest

import rankcore as rc

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from test_cli import fail, succeed

NAMES = ["bm25", "page rank", "length", "age, days"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(120, 3)).round(3), np.repeat(np.arange(12), 10)
    y = np.digitize(X @ [1.0, 0.0, -2.0], [-1.0, 1.0])
    rc.datasets.dump_letor(X, y, folder / "queries.txt", qid=qid)
    rc.datasets.dump_letor(X, y, folder / "labels.txt")
    (folder / "names.txt").write_text("".join(f"{name}\n" for name in NAMES))
    return folder


def trained(folder, tmp_path, *options, data="queries.txt"):
    """Train a model with names, and return its file."""
    given = ("--names", folder / "names.txt", *options)
    succeed("train", folder / data, "-o", tmp_path / "model", *given)
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("queries.txt", ("--model", "rankboost", "--epochs", 5)),
        ("queries.txt", ("--model", "ranksvm", "--scale", "standard")),
        ("queries.txt", ("--model", "pairwise", "--stream")),
        ("labels.txt", ("--model", "prank", "--calibrate", "cumulative")),
        ("labels.txt", ("--model", "ordinal-boost", "--epochs", 5)),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_the_model_and_its_explanations_have_the_names(data, options, folder, tmp_path):
    path = trained(folder, tmp_path, *options, data=data)
    model = rc.load(path)
    assert model.n_features_in_ == 4  # the data lack the last one
    assert model.feature_names_in_.tolist() == NAMES
    assert rc.Predictor(path).feature_names_in_.tolist() == NAMES
    shown = succeed("explain", path, folder / data)
    assert "bm25" in shown
    assert "length" in shown
    # The predictions are those of the same fit without names.
    succeed("train", folder / data, "-o", tmp_path / "bare", "--features", 4, *options)
    for file in (folder / data,):
        assert succeed("predict", path, file) == succeed("predict", tmp_path / "bare", file)


def test_the_model_finds_columns_of_tables_by_their_names(folder, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = trained(folder, tmp_path, "--model", "rankboost", "--epochs", 5)
    X = rc.datasets.load_letor(folder / "queries.txt").X.toarray()
    frame = pandas.DataFrame(np.column_stack([X, np.zeros(len(X))]), columns=NAMES)
    frame[NAMES[::-1]].to_csv(tmp_path / "table.csv", index=False)
    found = succeed("predict", path, tmp_path / "table.csv")
    assert found == succeed("predict", path, folder / "queries.txt")


def test_pictures_have_the_names(folder, tmp_path):
    pytest.importorskip("matplotlib")
    path = trained(folder, tmp_path, "--model", "rankboost", "--epochs", 5)
    picture = tmp_path / "picture.svg"
    for options in (("--query", "3"), ("-m", "ndcg@5"), ()):
        succeed("explain", path, folder / "queries.txt", "--plot", picture, *options)
        assert "bm25" in picture.read_text()


def test_a_picture_without_matplotlib_is_rejected_before_files_are_read(tmp_path, monkeypatch):
    from rankcore.cli.commands import explain

    monkeypatch.setattr(explain, "find_spec", lambda name: None)
    (tmp_path / "model").write_bytes(b"not a model")
    (tmp_path / "rows.txt").write_text("1 1:2\n")
    given = ("explain", tmp_path / "model", tmp_path / "rows.txt", "--plot", tmp_path / "p.png")
    assert "--plot requires Matplotlib: pip install 'rankcore[plot]'" in fail(*given)


def test_info_and_explain_name_the_features_of_models_without_names(folder, tmp_path):
    options = ("--features", 4, "--model", "rankboost", "--epochs", 5)
    succeed("train", folder / "queries.txt", "-o", tmp_path / "bare", *options)
    named = ("--names", folder / "names.txt")
    found = json.loads(succeed("info", tmp_path / "bare", *named, "--json"))
    assert set(found["largest_importances"]) >= {"bm25", "length"}
    bare = json.loads(succeed("info", tmp_path / "bare", "--json"))["largest_importances"]
    by_number = {NAMES[int(j) - 1]: value for j, value in bare.items()}
    assert found["largest_importances"] == by_number
    shown = succeed("explain", tmp_path / "bare", folder / "queries.txt", *named)
    assert "length" in shown


def test_a_rejected_value_is_named(folder, tmp_path):
    (tmp_path / "bad.txt").write_text("1 qid:1 1:2 2:nan\n0 qid:1 1:1 2:3\n" * 3)
    for command in (("cv", "--folds", 2), ("train", "-o", tmp_path / "model")):
        name, *options = command
        given = ("--names", folder / "names.txt", "--model", "ranksvm", *options)
        assert "feature 'page rank' is NaN" in fail(name, tmp_path / "bad.txt", *given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm25\n\nlength\n", "line 2: every line must be the name of a feature"),
        ("bm25\nlength\nbm25\n", "line 3: every line must be the name of a feature, and names"),
        ("bm25\n", "must have at most 1 features, as --names; got 3"),
    ],
)
def test_names_of_another_number_are_rejected(text, message, folder, tmp_path):
    (tmp_path / "names.txt").write_text(text)
    given = ("-o", tmp_path / "model", "--names", tmp_path / "names.txt")
    assert message in fail("train", folder / "queries.txt", *given)


def test_number_of_names_must_equal_that_of_features(folder, tmp_path):
    succeed("train", folder / "queries.txt", "-o", tmp_path / "model", "--model", "ranksvm")
    named = ("--names", folder / "names.txt")
    assert "a name for each of 3 features; got 4" in fail("info", tmp_path / "model", *named)
    assert "3" in fail("explain", tmp_path / "model", folder / "queries.txt", *named)


def test_tables_reject_a_file_of_names(folder, tmp_path):
    pytest.importorskip("pandas")
    (tmp_path / "table.csv").write_text("bm25,label\n1,2\n2,1\n")
    given = ("-o", tmp_path / "model", "--names", folder / "names.txt")
    assert "whose columns have names: omit --names" in fail("train", tmp_path / "table.csv", *given)
