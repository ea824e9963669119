"""The command line: every command, every exit status, files and streams of every kind."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankcore as rc
from rankcore.cli.registry import LEARNERS, MORE_LEARNERS, find_learner

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from typer.testing import CliRunner

from rankcore.cli.app import app

# Worked by hand. One pass: row 1 scores 0, reaches both thresholds, rank 3 is right; row 2 scores
# 0, is ranked 3 instead of 1 (loss 2), both thresholds rise to 1 and the weights become (0, -2);
# row 3 scores -2, is ranked 1 instead of 2 (loss 1), the lower threshold falls to 0 and the
# weights become (1, -1); row 4 scores 2, which is right. The second pass changes nothing.
STARS = """\
3 qid:1 1:1 # doc = a
1 qid:1 2:1 # doc = b

# a comment
2 qid:2 1:1 2:1
3 qid:2 1:2 2:0
"""


def run(*args, stdin=None):
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)


def succeed(*args, stdin=None):
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def fail(*args, stdin=None):
    """Return the one line on standard error of a command that must end with status 1."""
    result = run(*args, stdin=stdin)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("rankcore: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("rankcore: error: ").rstrip("\n")


def command_of(*args):
    return [sys.executable, "-m", "rankcore", *map(str, args)]


def spawn(*args, **options):
    return subprocess.run(
        command_of(*args), capture_output=True, timeout=60, check=False, **options
    )


def make_examples(n, seed):
    """Rows of five features and ranks 1 to 4 that depend on them, noisily."""
    source = random.Random(seed)
    X = [[round(source.gauss(0, 1), 3) for _ in range(5)] for _ in range(n)]
    scores = [x[0] - 2 * x[1] + source.gauss(0, 0.5) for x in X]
    return X, [1 + sum(score >= cut for cut in (-2, 0, 2)) for score in scores]


def as_svmlight(X, y, first=1):
    return "".join(
        f"{label} " + " ".join(f"{first + j}:{value}" for j, value in enumerate(x) if value) + "\n"
        for x, label in zip(X, y, strict=True)
    )


@pytest.fixture
def stars(tmp_path):
    path = tmp_path / "stars.svm"
    path.write_text(STARS)
    return path


@pytest.fixture
def model(tmp_path, stars):
    path = tmp_path / "stars.rankcore"
    succeed("train", stars, "-o", path, "--model", "prank-published", "--epochs", 2)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Write a file of 5000 examples, and a model of it."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "data.svm").write_text(as_svmlight(*make_examples(5000, seed=1)))
    succeed("train", folder / "data.svm", "-o", folder / "model", "--model", "prank-published")
    return folder / "data.svm", folder / "model"


# ---------------------------------------------------------------- train and info


def test_train_prints_a_summary(stars, tmp_path):
    path = tmp_path / "model"
    out = succeed("train", stars, "-o", path, "--model", "prank-published")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[:6] == [
        "model prank-published",
        "examples 4",
        "features 2",
        "classes 1, 2, 3",
        "passes 1",
        "rank loss of last pass 0.75",
    ]
    assert lines[7] == f"path {path}"


def test_train_writes_json(stars, tmp_path):
    options = ["--model", "prank-published", "--epochs", 2, "--json"]
    out = succeed("train", stars, "-o", tmp_path / "model", *options)
    assert '"classes": [1, 2, 3]' in out  # not 1.0, which equals 1 below
    facts = json.loads(out)
    assert facts.pop("seconds") > 0
    assert facts == {
        "model": "prank-published",
        "examples": 4,
        "features": 2,
        "classes": [1, 2, 3],
        "passes": 2,
        "rank_loss_of_last_pass": 0.0,
        "path": str(tmp_path / "model"),
    }


def test_info_writes_json(model):
    facts = json.loads(succeed("info", model, "--json"))
    assert facts["params"].pop("random_state") == 0
    assert facts["params"]["max_iter"] == 2
    del facts["params"]
    assert facts == {
        "learner": "PRank",
        "classes": [1, 2, 3],
        "examples_seen": 8,
        "passes": 2,
        "features": 2,
        "thresholds": [0.0, 1.0],
        "nonzero_weights": 2,
        "largest_weights": {"1": 1.0, "2": -1.0},
    }


def test_info_reports_an_averaged_model(stars, tmp_path):
    # Means over the eight states of the worked example.
    path = tmp_path / "model"
    succeed(
        "train",
        stars,
        "-o",
        path,
        "--model",
        "prank-published",
        "--set",
        "average=True",
        "--epochs",
        2,
    )
    facts = json.loads(succeed("info", path, "--json"))
    assert facts["thresholds"] == [1 / 8, 7 / 8]
    assert facts["largest_weights"] == {"2": -1.0, "1": 6 / 8}
    assert list(facts["largest_weights"]) == ["2", "1"]


def test_info_prints_a_readable_table(model):
    lines = [" ".join(line.split()) for line in succeed("info", model).splitlines()]
    assert "learner PRank" in lines
    assert "thresholds 0, 1" in lines
    assert "largest weights 1: 1, 2: -1" in lines


def test_info_uses_feature_names(tmp_path):
    pandas = pytest.importorskip("pandas", reason="names come with data frames")
    frame = pandas.DataFrame({"price": [1.0, 0, 1, 2], "age": [0.0, 1, 1, 0]})
    rc.save(rc.PRank.published(max_iter=2).fit(frame, [3, 1, 2, 3]), tmp_path / "model")
    facts = json.loads(succeed("info", tmp_path / "model", "--json"))
    assert facts["largest_weights"] == {"price": 1.0, "age": -1.0}


def test_train_passes_every_option_on(tmp_path):
    X, y = make_examples(80, seed=2)
    data, path = tmp_path / "data.svm", tmp_path / "model"
    data.write_text(as_svmlight(X, y))
    options = ["--epochs", 4, "--shuffle", "--seed", 3, "--set", "tie=strict"]
    succeed(
        "train",
        data,
        "-o",
        path,
        "--model",
        "prank-published",
        *options,
        "--set",
        "threshold_scale=2.5",
    )
    expected = rc.PRank.published(
        max_iter=4, shuffle=True, random_state=3, tie="strict", threshold_scale=2.5
    ).fit(X, y)
    loaded = rc.load(path)
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    np.testing.assert_array_equal(loaded.thresholds_, expected.thresholds_)
    assert loaded.get_params() == expected.get_params()


def test_set_wins_over_presets(stars, tmp_path):
    path = tmp_path / "model"
    options = ["--model", "pa-cusum", "--epochs", 7, "--set", "max_iter=2"]
    succeed("train", stars, "-o", path, *options, "--set", "update=pa2")
    facts = json.loads(succeed("info", path, "--json"))
    assert (facts["passes"], facts["params"]["update"]) == (2, "pa2")


def test_shuffling_repeats_by_default(large, tmp_path):
    for name in ["a", "b"]:
        succeed(
            "train",
            large[0],
            "-o",
            tmp_path / name,
            "--model",
            "prank-published",
            "--shuffle",
            "--epochs",
            2,
        )
    a, b = rc.load(tmp_path / "a"), rc.load(tmp_path / "b")
    np.testing.assert_array_equal(a.coef_, b.coef_)


def test_trailing_features_of_zero_are_kept(stars, tmp_path):
    path = tmp_path / "model"
    succeed("train", stars, "-o", path, "--model", "prank-published", "--features", 5)
    assert json.loads(succeed("info", path, "--json"))["features"] == 5
    assert fail("train", stars, "-o", path, "--features", 1) == (
        f"{stars} must have at most 1 features, as --features; got 2"
    )


@pytest.mark.parametrize("learner", [*LEARNERS, *MORE_LEARNERS], ids=lambda learner: learner.name)
def test_every_listed_learner_trains_and_predicts(learner, large, tmp_path):
    data, path = large[0], tmp_path / "model"
    succeed("train", data, "-o", path, "--model", learner.name, "--epochs", 2)
    assert type(rc.load(path)).__name__ == learner.estimator
    assert learner.summary in " ".join(run("train", "--help").stdout.replace("│", " ").split()), (
        "missing from --help"
    )


# ---------------------------------------------------------------- predict


@pytest.mark.parametrize("kind", ["plain", "gzip", "bzip2", "misnamed"])
@pytest.mark.parametrize("stream", [False, True], ids=["file", "stdin"])
def test_predictions_equal_those_of_the_api(kind, stream, tmp_path):
    X, y = make_examples(200, seed=3)
    expected = rc.PRank.published(max_iter=3).fit(X, y)
    text = as_svmlight(X, y).encode()
    content = {"gzip": gzip.compress, "bzip2": bz2.compress}.get(kind, bytes)(text)
    name = {"plain": "data", "gzip": "data.gz", "bzip2": "data.bz2", "misnamed": "data.gz"}[kind]
    data, path = tmp_path / name, tmp_path / "model"
    data.write_bytes(content)
    source, stdin = ("-", content) if stream else (data, None)
    succeed("train", source, "-o", path, "--model", "prank-published", "--epochs", 3, stdin=stdin)
    labels = succeed("predict", path, source, stdin=stdin)
    assert labels == "".join(f"{label}\n" for label in expected.predict(X).tolist())
    scores = succeed("predict", path, source, "--scores", stdin=stdin)
    assert [float(line) for line in scores.splitlines()] == expected.project(X).tolist()


def test_scores_of_several_outputs_are_columns(tmp_path):
    X, y = make_examples(60, 5)
    model = rc.MulticlassPerceptron(random_state=0).fit(X, y)
    rc.save(model, tmp_path / "model")
    (tmp_path / "data").write_text(as_svmlight(X, y))
    scores = succeed("predict", tmp_path / "model", tmp_path / "data", "--scores")
    found = [[float(number) for number in line.split()] for line in scores.splitlines()]
    assert found == model.decision_function(X).tolist()


def test_compared_models_have_the_same_names_of_features(stars, tmp_path):
    pd = pytest.importorskip("pandas")
    for name, columns in [("first", "abc"), ("second", "xyz")]:
        frame = pd.DataFrame(np.eye(3), columns=list(columns))
        rc.save(rc.PRank(random_state=0).fit(frame, [1, 2, 3]), tmp_path / name)
    first, second = tmp_path / "first", tmp_path / "second"
    message = fail("evaluate", first, stars, "--compare", second)
    assert f"{first} and {second} have features of different names" in message


def test_predict_writes_to_a_file(model, stars, tmp_path):
    assert succeed("predict", model, stars, "-o", tmp_path / "labels") == ""
    assert (tmp_path / "labels").read_bytes() == b"3\n1\n2\n3\n"


def test_names_before_a_hyphen_are_files_too(model, stars, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("+rows").write_bytes(stars.read_bytes())
    for command in ("predict", "evaluate"):
        assert succeed(command, model, "+rows") == succeed(command, model, stars)


def test_predict_needs_no_known_labels(model):
    assert succeed("predict", model, "-", stdin="0 1:3\n77 2:3\n0\n") == "3\n1\n2\n"


@pytest.mark.parametrize(
    ("labels", "printed"),
    [
        ([1, 2, 3], ["1", "2", "3"]),
        ([1.0, 2.0, 3.0], ["1", "2", "3"]),
        ([-1, 0.5, 3], ["-1", "0.5", "3"]),
        (["bad", "fair", "good"], ["bad", "fair", "good"]),
    ],
)
def test_labels_are_printed_as_users_write_them(labels, printed, tmp_path):
    low, middle, high = labels
    X = [[1, 0], [0, 1], [1, 1], [2, 0]]
    fitted = rc.PRank.published(max_iter=2).fit(X, [high, low, middle, high], classes=labels)
    rc.save(fitted, tmp_path / "model")
    out = succeed("predict", tmp_path / "model", "-", stdin="0 2:1\n0 1:1 2:1\n0 1:2\n")
    assert out.splitlines() == printed


def test_fractional_labels_in_a_file_are_learned(tmp_path):
    text = STARS.replace("2 qid", "2.5 qid")
    out = succeed(
        "train", "-", "-o", tmp_path / "model", "--model", "prank-published", "--json", stdin=text
    )
    assert json.loads(out)["classes"] == [1.0, 2.5, 3.0]


def test_zero_based_files_are_read(tmp_path):
    X, y = make_examples(60, seed=4)
    data, path = tmp_path / "data.svm", tmp_path / "model"
    data.write_text(as_svmlight(X, y, first=0))
    succeed("train", data, "-o", path, "--model", "prank-published", "--zero-based")
    expected = rc.PRank.published().fit(X, y)
    out = succeed("predict", path, data, "--zero-based")
    assert [int(line) for line in out.splitlines()] == expected.predict(X).tolist()
    for command in [("train", data, "-o", path), ("predict", path, data), ("evaluate", path, data)]:
        message = fail(*command)
        assert message.startswith(f"{data}, line 1: feature 0")
        assert "--zero-based" in message


# ---------------------------------------------------------------- rankers


def as_letor(X, y, qid):
    lines = as_svmlight(X, y).splitlines()
    return "".join(
        f"{label} qid:{query} {rest}\n"
        for query, (label, rest) in zip(qid, (line.split(" ", 1) for line in lines), strict=True)
    )


@pytest.mark.parametrize("name", ["committee", "pairwise"])
def test_rankers_learn_from_queries(name, tmp_path):
    X, y = make_examples(120, seed=3)
    qid = [k // 12 + 1 for k in range(120)]
    data, path = tmp_path / "data.txt", tmp_path / "model"
    data.write_text(as_letor(X, y, qid))
    facts = json.loads(
        succeed("train", data, "-o", path, "--model", name, "--epochs", 3, "--seed", 5, "--json")
    )
    variant = "committee" if name == "committee" else "averaged"
    # As the command reads them: sparse rows may take another way of forming sums.
    rows = rc.datasets.load_letor(data).X
    model = rc.PairwisePerceptron(variant, max_iter=3, random_state=5).fit(rows, y, qid=qid)
    assert {key: facts[key] for key in ["examples", "queries", "passes", "pairs"]} == {
        "examples": 120,
        "queries": 10,
        "passes": 3,
        "pairs": model.history_["pairs"][-1],
    }
    assert facts["mistakes_of_last_pass"] == model.history_["mistakes"][-1]
    scores = [float(line) for line in succeed("predict", path, data).split()]
    np.testing.assert_array_equal(scores, model.predict(rows))
    found = json.loads(succeed("evaluate", path, data, "--json"))
    measures = rc.metrics.evaluate(y, scores, qid=qid, metrics=["ndcg@10", "map", "mrr", "P@10"])
    assert found == {
        "examples": 120,
        "queries": 10,
        "ndcg@10": pytest.approx(measures["ndcg@10"]),
        "map": pytest.approx(measures["map"]),
        "mrr": pytest.approx(measures["mrr"]),
        "P@10": pytest.approx(measures["P@10"]),
    }
    info = json.loads(succeed("info", path, "--json"))
    assert info["learner"] == "PairwisePerceptron"
    assert info["pairs_seen"] == 3 * facts["pairs"]
    assert len(info["largest_weights"]) == 5


def test_rankers_need_queries(stars, tmp_path):
    path = tmp_path / "model"
    assert "lines without qid:" in fail(
        "train", "-", "-o", path, "--model", "committee", stdin="1 1:1\n0 1:2\n"
    )
    succeed("train", stars, "-o", path, "--model", "committee", "--set", "combine=rank")
    assert len(succeed("predict", path, stars).split()) == 4
    for command in ["predict", "evaluate"]:
        assert "lines without qid:" in fail(command, path, "-", stdin="1 1:1\n0 1:2\n")
    assert "has no coef_" not in succeed("info", path)


# ---------------------------------------------------------------- evaluate


def test_evaluate_equals_plain_python(tmp_path):
    X, y = make_examples(101, seed=5)
    data, path = tmp_path / "data.svm", tmp_path / "model"
    data.write_text(as_svmlight(X, y))
    succeed("train", data, "-o", path, "--model", "prank-published")
    predicted = rc.PRank.published().fit(X, y).predict(X).tolist()
    off = [abs(a - b) for a, b in zip(y, predicted, strict=True)]
    assert json.loads(succeed("evaluate", path, data, "--json")) == {
        "examples": 101,
        "rank_loss": pytest.approx(sum(off) / 101),
        "accuracy": pytest.approx(off.count(0) / 101),
        "within_1_rank": pytest.approx((off.count(0) + off.count(1)) / 101),
        "rank_loss_of_best_constant": pytest.approx(
            min(sum(abs(label - constant) for label in y) for constant in range(1, 5)) / 101
        ),
    }


def test_evaluate_counts_ranks_not_label_differences(tmp_path):
    # Labels 1, 10, 100: from 10 to 100 is one rank.
    fitted = rc.PRank.published(max_iter=2).fit([[1, 0], [0, 1], [1, 1], [2, 0]], [100, 1, 10, 100])
    rc.save(fitted, tmp_path / "model")
    data = "10 1:9\n1 2:9\n"  # predicted 100 and 1
    facts = json.loads(succeed("evaluate", tmp_path / "model", "-", "--json", stdin=data))
    assert (facts["rank_loss"], facts["accuracy"], facts["within_1_rank"]) == (0.5, 0.5, 1.0)


def test_evaluate_prints_a_readable_table(model, stars):
    lines = [" ".join(line.split()) for line in succeed("evaluate", model, stars).splitlines()]
    assert lines[0] == "examples 4"
    assert lines[1] == "rank loss 0"
    assert lines[-1] == "rank loss of best constant 0.75"


def test_evaluate_rejects_unknown_labels(model):
    assert fail("evaluate", model, "-", stdin="3 1:1\n9 1:1\n") == (
        f"standard input has the label 9, which is not among the classes of {model}: 1, 2, 3"
    )


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3 1:1\n\n1 two:2\n", "data, line 3: cannot read '1 two:2'"),
        ("3 1:1\n1 2\n", "data, line 2: cannot read '1 2'"),
        ("good 1:1\n", "data, line 1: cannot read 'good 1:1'"),
        ("3 0:1\n", "data, line 1: feature 0"),
        ("3 -4:1\n", "data, line 1: a feature has a negative number"),
        ("3 2:1 1:1\n", "data, line 1: feature numbers must ascend"),
        ("3 1:1 1:1\n", "data, line 1: feature numbers must ascend"),
        ("3 99999999999:1\n", "data, line 1: a feature number is too large"),
        ("", "data holds no examples"),
        ("# nothing\n\n", "data holds no examples"),
        (
            "3 1:2 # a\n2 1:1 2:nan\n",
            "data, row 2: feature 2 is NaN, and PRank requires finite values: impute it, or choose "
            "--model ordinal-boost",
        ),
        ("3 1:inf\n2 1:1\n", "data, row 1: feature 1 is infinity, and PRank requires"),
        (
            "label,a,b\n3,1,2\n",
            "(the command line reads CSV from a file named .csv or .tsv; convert",
        ),
        (
            "label;a;b\n3;1;2\n",
            "(the command line reads CSV from a file named .csv or .tsv; convert",
        ),
        (
            '{"label": 3, "a": 1}\n',
            "(the command line reads CSV from a file named .csv or .tsv; convert",
        ),
        ("inf 1:1\n2 1:1\n", "y contains infinity"),
        ("3 1:1\n3 1:2\n", "y has only one class"),
        ("\x00\x01\x02", "data, line 1: cannot read"),
    ],
)
def test_malformed_data_are_named(text, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").write_text(text)
    assert expected in fail("train", "data", "-o", "model", "--model", "prank-published")
    assert not Path("model").exists()


def test_missing_values_are_reported_with_file_row_and_feature(tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("whole").write_text("3 1:1 2:1\n2 1:2 2:3\n" * 10)
    Path("part").write_text("3 1:1 2:1\n2 1:2 2:3\n2 1:nan\n")
    pd.DataFrame({"label": [3, 2], "a": [1.0, 2.0], "b": [3.0, np.nan]}).to_parquet("table")
    succeed("train", "whole", "-o", "model.rankcore", "--model", "prank", "--quiet")
    where = "part, row 3: feature 1 is NaN, and PRank requires finite values"
    assert where in fail("train", "whole", "part", "-o", "other", "--model", "prank")
    assert where in fail("train", "whole", "--valid", "part", "-o", "other", "--model", "prank")
    assert where in fail("cv", "whole", "part", "--model", "prank", "--folds", "2")
    assert where in fail("predict", "model.rankcore", "part")
    assert where in fail("evaluate", "model.rankcore", "part")
    assert "table, row 2: feature 'b' is NaN" in fail("predict", "model.rankcore", "table")
    # What the hint names.
    succeed("train", "whole", "part", "-o", "trees", "--model", "ordinal-boost", "--quiet")
    assert len(succeed("predict", "trees", "part").split()) == 3


def test_every_reader_reports_missing_values(tmp_path, monkeypatch):
    """Rows on disk and trials are reported as those in memory: file, row, feature and hint."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("whole").write_text("3 qid:1 1:1 2:1\n2 qid:1 1:2 2:3\n" * 10)
    Path("part").write_text("3 qid:2 1:1 2:1\n# a comment\n2 qid:2 1:2 2:3\n2 qid:2 1:nan\n")
    table = {"label": [3, 2] * 10, "qid": 1, "a": [1.0, 2.0] * 10, "b": 3.0}
    pd.DataFrame(table).to_parquet("first.parquet")
    pd.DataFrame({**table, "qid": 2, "b": [*[3.0] * 11, np.nan, *[3.0] * 8]}).to_parquet("second")
    on_disk = [
        ["whole", "part", "--stream"],
        ["whole", "part", "--stream", "--scale", "standard"],
        ["first.parquet", "second"],
        ["first.parquet", "second", "--scale", "auto"],
        ["second", "--cache", "cache"],
        ["second", "--cache", "cache"],  # which exists
        ["part", "--stream", "--scale", "maxabs"],
    ]
    hint = "requires finite values: impute it, or choose --model ordinal-boost (of labels) or rank"
    for model in ("prank", "cusum", "oap-bpm", "pairwise", "ranksvm", "kernel-prank"):
        for options in on_disk:
            message = fail("train", *options, "-o", "model", "--model", model)
            text = "part" in options
            where = "part, row 3: feature 1" if text else "second, row 12: feature 'b'"
            assert f"{where} is NaN, and " in message, (model, options)
            assert hint in message, (model, options)
        found = fail("tune", "whole", "part", "-o", "model", "--model", model, "--trials", "2")
        assert f"part, row 3: feature 1 is NaN, and {find_learner(model).estimator} {hint}" in found
        options = ["--valid", "part", "-o", "model", "--model", model, "--trials", "2"]
        assert "part, row 3: feature 1 is NaN, and" in fail("tune", "whole", *options)
    pd.DataFrame({**table, "b": [*[np.inf] * 2, *[3.0] * 18]}).to_parquet("infinite")
    for model in ("ordinal-boost", "rankboost", "prank"):
        message = fail("train", "infinite", "-o", "model", "--model", model)
        assert "infinite, row 1: feature 'b' is infinity, and" in message
    assert not Path("model").exists()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_damaged_archives_are_named(pack, tmp_path):
    content = pack(as_svmlight(*make_examples(100, seed=6)).encode())
    message = fail(
        "train",
        "-",
        "-o",
        tmp_path / "model",
        "--model",
        "prank-published",
        stdin=content[: len(content) // 2],
    )
    assert message.startswith("standard input is damaged: ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "prnk"], "unknown model: prnk (did you mean prank?); accepted are prank, "),
        (["--model", "zzz"], "unknown model: zzz; accepted are prank, prank-published"),
        (
            ["--set", "tiee=strict"],
            "unknown parameter of prank-published: tiee (did you mean tie?); accepted ",
        ),
        (["--set", "tie=loose"], "tie must be one of 'crammer', 'strict'; got 'loose'"),
        (["--set", "max_iter=many"], "max_iter must be an integer >= 1; got 'many'"),
        (["--set", "max_iter=0"], "max_iter must be an integer >= 1; got 0"),
        (["--set", "average=3"], "average must be True or False; got 3"),
        (["--set", "random_state=[1, 2]"], "random_state=[1, 2] cannot be written"),
    ],
)
def test_wrong_parameters_are_rejected(options, expected, stars, tmp_path):
    assert expected in fail(
        "train", stars, "-o", tmp_path / "model", "--model", "prank-published", *options
    )
    assert not (tmp_path / "model").exists()


def test_missing_files_are_named(model, stars, tmp_path):
    gone = tmp_path / "gone"
    for command in [
        ("train", gone, "-o", tmp_path / "m"),
        ("predict", gone, stars),
        ("predict", model, gone),
        ("evaluate", model, gone),
        ("info", gone),
    ]:
        assert fail(*command) == f"{gone}: No such file or directory"
    assert (
        fail("train", stars, "-o", gone / "m", "--model", "prank-published")
        == f"{gone} is not a directory; cannot write m there"
    )
    assert fail("train", stars, "-o", tmp_path).startswith(f"{tmp_path} exists and is not a file")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no device files")
def test_a_device_is_not_replaced(stars):
    assert fail("train", stars, "-o", os.devnull, "--model", "prank-published").startswith(
        f"{os.devnull} exists and is not a"
    )


def test_other_files_are_rejected_as_models(model, stars, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(model.read_bytes()[:-40])
    for path in [stars, damaged]:
        for command in [("predict", path, stars), ("evaluate", path, stars), ("info", path)]:
            assert f"{path} is not a rankcore model file, or it is damaged" in fail(*command)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_rows_with_more_features_than_the_model_are_rejected(command, model):
    message = fail(command, model, "-", stdin="3 1:1 7:1\n")
    assert message == f"standard input must have at most 2 features, as {model}; got 7"


def test_a_failed_training_keeps_the_old_model(model, tmp_path):
    before = model.read_bytes()
    fail("train", "-", "-o", model, "--model", "prank-published", stdin="1 1:1\n1 1:2\n")
    assert model.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stars.rankcore", "stars.svm"]


@pytest.mark.parametrize(
    "args",
    [
        ["fly"],
        ["train"],
        ["train", "data"],
        ["train", "data", "-o", "model", "--epochs", "0"],
        ["train", "data", "-o", "model", "--epochs", "many"],
        ["train", "data", "-o", "model", "--seed", "-1"],
        ["train", "data", "-o", "model", "--set", "tie"],
        ["train", "data", "-o", "model", "--scale", "mean"],
        ["cv", "data", "--scale", "mean"],
        ["cv", "data", "--expected", "x"],  # a field that is no option
        ["train", "data", "-o", "model", "--fast"],
        ["predict", "model"],
    ],
)
def test_usage_errors_end_with_status_2(args):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage: " in result.stderr
    assert "Traceback" not in result.stderr


def test_warnings_take_one_line(stars, tmp_path):
    result = run(
        "train",
        stars,
        "-o",
        tmp_path / "model",
        "--model",
        "prank-published",
        "--set",
        "tol=0.5",
        "--set",
        "verbose=1",
    )
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    assert first == "[PRank] epoch 1 of 1: rank loss 0.7500, 2 mistakes"
    assert second.startswith("rankcore: warning: max_iter=1 passes ended before")
    assert result.stdout.startswith("model")


def test_cross_validation_warns_once_for_all_folds(stars):
    settings = ["--set", "tol=1e-9", "--set", "max_iter=1"]
    result = run("cv", stars, "--model", "prank-published", "--folds", 2, *settings)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("max_iter=1 passes ended before") == 1, result.stderr


def test_learners_are_found_by_name():
    assert find_learner("prank-published").make(max_iter=3).get_params()["average"] is False
    with pytest.raises(ValueError, match="did you mean prank-published"):
        find_learner("prank-publish")


# ---------------------------------------------------------------- processes


def test_processes_end_with_the_right_status(stars, tmp_path):
    path = tmp_path / "model"
    trained = spawn("train", stars, "-o", path, "--model", "prank-published")
    assert (trained.returncode, trained.stderr) == (0, b"")
    predicted = spawn("predict", path, "-", input=gzip.compress(STARS.encode()))
    assert predicted.stdout.replace(b"\r\n", b"\n") == b"3\n1\n2\n3\n"
    wrong = spawn("predict", path, tmp_path / "gone")
    assert (wrong.returncode, wrong.stdout) == (1, b"")
    assert wrong.stderr.startswith(b"rankcore: error: ")
    assert wrong.stderr.count(b"\n") == 1
    version = spawn("--version")
    assert version.stdout.split() == [b"rankcore", rc.__version__.encode()]


def test_missing_extra_names_the_package_to_install(tmp_path):
    for module in ["typer", "rich"]:
        code = (
            f"import sys; sys.modules[{module!r}] = None; from rankcore.cli.app import main; main()"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert result.returncode == 1
        assert b"pip install 'rankcore[cli]'" in result.stderr
        assert result.stderr.count(b"\n") == 1


def test_help_does_not_wait_for_heavy_imports():
    code = (
        "import sys; from typer.testing import CliRunner; from rankcore.cli.app import app\n"
        "assert CliRunner().invoke(app, ['train', '--help']).exit_code == 0\n"
        "print([name for name in ('sklearn', 'scipy', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.split() == [b"[]"]


def test_a_closed_pipe_is_quiet(large):
    command = command_of("predict", large[1], large[0], "--scores")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert float(process.stdout.readline())
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_a_pipe_closed_before_the_first_line_is_quiet(model):
    ours, theirs = os.pipe()
    os.close(ours)
    command = command_of("info", model)
    buffered = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    result = subprocess.run(
        command, stdout=theirs, stderr=subprocess.PIPE, env=buffered, check=False
    )
    os.close(theirs)
    assert (result.returncode, result.stderr) == (1, b"")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a single process")
def test_ctrl_c_ends_with_status_130(large, tmp_path):
    command = command_of("train", large[0], "-o", tmp_path / "model", "--model", "prank-published")
    options = ["--epochs", "1000000", "--set", "verbose=1"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as p:
        p.stderr.readline()  # the first epoch is over: learning is under way
        p.send_signal(signal.SIGINT)
        try:
            _, errors = p.communicate(timeout=60)
        finally:
            p.kill()
        assert errors.splitlines()[-1] == b"rankcore: interrupted"
        assert p.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_progress_is_silent_without_a_terminal(large, tmp_path):
    forced = {**os.environ, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}
    result = spawn(
        "train",
        large[0],
        "-o",
        tmp_path / "model",
        "--model",
        "prank-published",
        "--epochs",
        50,
        env=forced,
    )
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_shown_on_a_terminal(quiet, large, tmp_path):
    import pty

    ours, theirs = pty.openpty()
    command = command_of("train", large[0], "-o", tmp_path / "model", "--model", "prank-published")
    options = ["--epochs", "200", "--json", *(["--quiet"] if quiet else [])]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
        assert json.loads(process.stdout.read())["passes"] == 200
    if quiet:
        assert shown == b""
    else:
        for word in [b"reading", b"epoch 200 of 200", b"examples/s", b"rank loss 0.", b"0:00:00"]:
            assert word in shown


# ---------------------------------------------------------------- nothing is overwritten


def test_commands_do_not_overwrite_their_input(stars, model, tmp_path):
    (tmp_path / "link").symlink_to(stars)
    os.link(model, tmp_path / "hard")
    before = stars.read_bytes(), model.read_bytes()
    for arguments in [
        ("train", stars, "-o", stars),
        ("train", stars, "-o", tmp_path / "link"),
        ("train", tmp_path / "link", "-o", stars),
        ("predict", model, stars, "-o", stars),
        ("predict", model, stars, "-o", model),
        ("predict", model, stars, "-o", tmp_path / "hard"),
        ("predict", model, stars, "-o", tmp_path / "." / "link"),
    ]:
        assert "is read by this command, too: choose another file" in fail(*arguments)
    assert (stars.read_bytes(), model.read_bytes()) == before


def test_a_circular_link_is_an_error(stars, model, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "leads back to itself" in fail("train", stars, "-o", loop, "--model", "prank-published")
    assert "leads back to itself" in fail("predict", model, stars, "-o", loop)
    for arguments in [
        ("predict", model, loop),
        ("predict", loop, stars),
        ("evaluate", loop, stars),
    ]:
        fail(*arguments)


@pytest.mark.parametrize(
    "setting",
    [
        "random_state={[]: 1}",
        "random_state={}",
        "tie=[1]",
        "tie={'a': []}",
        "max_iter=" + "9" * 5000,
        "max_iter=" + "(" * 100_000,
        "max_iter=" + "-" * 100_000 + "1",
        "max_iter=" + "[" * 5000 + "]" * 5000,
        "x" * 100_000 + "=1",
        "threshold_scale=1e400",
        "threshold_scale=" + "9" * 400,
        "tie=\0",
    ],
)
def test_contradictory_settings_are_rejected(stars, tmp_path, setting):
    message = fail(
        "train", stars, "-o", tmp_path / "model", "--model", "prank-published", "--set", setting
    )
    assert len(message) < 2000
    assert not (tmp_path / "model").exists()


def test_unsaveable_parameters_are_rejected_before_training(stars, tmp_path, monkeypatch):
    monkeypatch.setattr(rc.PRank, "fit", lambda *args: 1 / 0)
    setting = "random_state=[1, 2]"  # a seed for NumPy
    message = fail(
        "train", stars, "-o", tmp_path / "model", "--model", "prank-published", "--set", setting
    )
    assert "random_state=[1, 2] cannot be written to a model file" in message


@pytest.mark.skipif(os.name == "nt", reason="file descriptors are closed otherwise")
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams_cause_no_traceback(model, stars, closed):
    def close():
        for number in closed:
            os.close(number)

    command = command_of("predict", model, stars)
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, preexec_fn=close)
    assert b"Traceback" not in done.stderr
    if 1 in closed:
        assert done.returncode == 1
        assert 2 in closed or b"standard output is closed" in done.stderr
    else:
        assert done.returncode == 0
        assert done.stdout == b"3\n1\n2\n3\n"


def test_standard_input_is_not_written_over(stars, model):
    before = stars.read_bytes()
    for arguments in [("train", "-", "-o", stars), ("predict", model, "-", "-o", stars)]:
        with open(stars, "rb") as stream:
            done = spawn(*arguments, stdin=stream)
        assert done.returncode == 1
        assert b"is read by this command, too" in done.stderr
    assert stars.read_bytes() == before


@pytest.mark.parametrize("of", ["rows", "queries"])
def test_weights_of_a_file_are_used_by_the_fit(tmp_path, of):
    X, y, qid = rc.datasets.make_letor(12, 8, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    data, path = tmp_path / "rows.txt", tmp_path / "weights.txt"
    rc.datasets.dump_letor(X, y, data, qid=qid)
    weights = np.random.default_rng(0).integers(1, 9, size=12 if of == "queries" else 96)
    np.savetxt(path, weights)
    command = "--model", "ranksvm", "--weights", path, "--quiet"
    succeed("train", data, "-o", tmp_path / "model.rank", *command)
    X = rc.datasets.load_letor(data).X
    found = rc.load(tmp_path / "model.rank")
    expected = rc.RankSVM(random_state=0).fit(X, y, qid=qid, sample_weight=weights)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    measured = [json.loads(succeed("cv", data, *command[:n], "--quiet", "--json")) for n in (2, 4)]
    assert measured[0]["folds"] != measured[1]["folds"]


def test_weights_of_a_file_are_checked(tmp_path):
    data, path = tmp_path / "rows.txt", tmp_path / "weights.txt"
    data.write_text(STARS)
    output = "-o", tmp_path / "model.rank", "--model", "ranksvm", "--weights", path
    path.write_text("1\n2\n3\n")
    told = fail("train", data, *output)
    assert (
        "weights.txt: sample_weight must have length 4 (one per row) or 2 (one per query)" in told
    )
    path.write_text("1\nheavy\n")
    assert "weights.txt: could not convert string 'heavy'" in fail("train", data, *output)
    path.write_text("1\n2\n")
    told = fail("train", data, *output, "--stream")
    assert "--weights requires rows in memory" in told
