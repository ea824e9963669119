"""Experiments on the command line: held-out rows, cross-validation, runs, comparisons."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from rankcore.datasets import load_letor, read_run
from rankcore.metrics import evaluate
from test_cli import as_svmlight, fail, make_examples, run, succeed


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Three files of queries."""
    folder = tmp_path_factory.mktemp("parts")
    X, y, qid = rc.datasets.make_letor(90, 12, 90, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for name, first, last in (("train", 1, 40), ("more", 41, 60), ("valid", 61, 90)):
        kept = (qid >= first) & (qid <= last)
        docid = np.array([f"d{i}" for i in range(len(y))])[kept]
        rc.datasets.dump_letor(X[kept], y[kept], folder / name, qid=qid[kept], docid=docid)
    return folder


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    for name, seed in (("train", 1), ("valid", 2)):
        (folder / name).write_text(as_svmlight(*make_examples(200, seed=seed)))
    return folder


def load(path, n_features):
    data = load_letor(path, n_features=n_features)
    return data.X, data.y, data.qid


@pytest.mark.parametrize("model", ["pairwise", "rankboost", "ranksvm"])
def test_held_out_queries_end_training(model, parts, tmp_path):
    out = json.loads(
        succeed(
            *("train", parts / "train", "-o", tmp_path / "m", "--model", model, "--json"),
            *("--valid", parts / "valid", "-m", "map", "--patience", 3),
        )
    )
    learned = rc.load(tmp_path / "m")
    X, y, qid = load(parts / "valid", learned.n_features_in_)
    found = evaluate(y, learned.predict(X), qid=qid, metrics="map")["map"]
    assert out["valid_map"] == pytest.approx(found)
    assert learned.eval_metric == "map"
    assert learned.early_stopping_rounds in (3, None)  # RankSVM stops by its gap
    if "best_iteration" in out:
        assert out["iterations"] <= out["best_iteration"] + 3


@pytest.mark.parametrize(
    ("model", "settings", "patience"),
    [
        ("rankboost", [], 60),
        ("rankboost-trees", [], 20),
        ("rankboost", ["--set", "max_leaf_nodes=4"], 20),
        ("rankboost-trees", ["--set", "n_estimators=35"], 7),
    ],
)
def test_patience_is_a_fifth_of_the_rounds(model, settings, patience, parts, tmp_path):
    arguments = ["--valid", parts / "valid", "--model", model, *settings]
    succeed("train", parts / "train", "-o", tmp_path / "m", *arguments)
    assert rc.load(tmp_path / "m").early_stopping_rounds == patience


# The second makes 20 passes with max_iter="auto".
@pytest.mark.parametrize(("model", "patience"), [("prank", 2), ("kernel-prank", 4)])
def test_held_out_labels_end_training(model, patience, labels, tmp_path):
    arguments = ["--valid", labels / "valid", "-m", "rank_loss", "--json", "--scale", "standard"]
    arguments += ["--model", model]
    out = json.loads(succeed("train", labels / "train", "-o", tmp_path / "m", *arguments))
    found = json.loads(succeed("evaluate", tmp_path / "m", labels / "valid", "--json"))
    assert out["valid_rank_loss"] == pytest.approx(found["rank_loss"])
    learned = rc.load(tmp_path / "m")[-1]
    assert learned.early_stopping_rounds == patience  # a fifth of the passes
    assert "requires held-out rows" in run("train", labels / "train", "-o", "x", "-m", "map").stderr


def test_several_files_are_concatenated(parts, tmp_path):
    both = (parts / "train").read_text() + (parts / "more").read_text()
    (tmp_path / "both").write_text(both)
    succeed("train", tmp_path / "both", "-o", tmp_path / "one")
    succeed("train", parts / "train", parts / "more", "-o", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    (tmp_path / "bare").write_text("1 1:1\n0 1:2\n")
    message = fail("train", parts / "train", tmp_path / "bare", "-o", tmp_path / "x")
    assert "bare has lines without qid:, and other files have it" in message


def test_parameters_are_read_from_a_file(parts, tmp_path):
    file = tmp_path / "params.toml"
    file.write_text('model = "ranksvm"\nC = 0.5\nmax_iter = 7\n')
    arguments = ["--params", file, "--set", "C=2.0"]
    succeed("train", parts / "train", "-o", tmp_path / "m", *arguments)
    learned = rc.load(tmp_path / "m")
    assert (type(learned).__name__, learned.C, learned.max_iter) == ("RankSVM", 2.0, 7)
    for text, message in [
        ("C = ", "params.toml is not a TOML file"),
        ("[C]\nx = 1\n", "has a table [C]"),
        ("model = 3\n", "model must be a name; got 3"),
        ('model = "ranksvm"\nc = 1\n', "did you mean C?"),
    ]:
        file.write_text(text)
        assert message in fail("train", parts / "train", "-o", tmp_path / "x", "--params", file)


def test_runs_of_a_model_are_written(parts, tmp_path):
    succeed("train", parts / "train", "-o", tmp_path / "mine.rankcore")
    succeed("predict", tmp_path / "mine.rankcore", parts / "valid", "--run", tmp_path / "run")
    written = read_run(tmp_path / "run")
    learned = rc.load(tmp_path / "mine.rankcore")
    data = load_letor(parts / "valid", n_features=learned.n_features_in_)
    expected = dict(zip(data.docid.tolist(), learned.predict(data.X).tolist(), strict=True))
    assert dict(zip(written.docid.tolist(), written.score.tolist(), strict=True)) == expected
    assert written.tag == "mine"
    # Without names, documents are numbered within their query.
    bare = "".join(line.split("#")[0] + "\n" for line in (parts / "valid").read_text().splitlines())
    (tmp_path / "bare").write_text(bare)
    succeed("predict", tmp_path / "mine.rankcore", tmp_path / "bare", "--run", tmp_path / "two")
    numbered = read_run(tmp_path / "two")
    assert sorted(set(numbered.docid.tolist()), key=int) == [str(i) for i in range(1, 13)]
    message = fail(
        "predict", tmp_path / "mine.rankcore", parts / "valid", "--run", "r", "--with-input"
    )
    assert "no other output" in message


def test_predictions_are_written_with_their_lines(labels, tmp_path):
    succeed("train", labels / "train", "-o", tmp_path / "m")
    plain = succeed("predict", tmp_path / "m", labels / "valid").splitlines()
    beside = succeed("predict", tmp_path / "m", labels / "valid", "--with-input").splitlines()
    lines = (labels / "valid").read_text().splitlines()
    assert beside == [f"{label}\t{line}" for label, line in zip(plain, lines, strict=True)]
    assert "name a file" in fail("predict", tmp_path / "m", "-", "--with-input", stdin="1 1:1\n")


def test_two_models_are_compared_by_query(parts, tmp_path):
    for name in ("ranksvm", "pairwise"):
        succeed("train", parts / "train", "-o", tmp_path / name, "--model", name)
    arguments = ["evaluate", tmp_path / "ranksvm", parts / "valid", "-m", "map"]
    out = json.loads(succeed(*arguments, "--compare", tmp_path / "pairwise", "--json", "-q"))
    assert set(out["models"]) == {"ranksvm", "pairwise"}
    learned = rc.load(tmp_path / "pairwise")
    X, y, qid = load(parts / "valid", learned.n_features_in_)
    found = evaluate(y, learned.predict(X), qid=qid, metrics="map")
    assert out["models"]["pairwise"]["mean"]["map"] == pytest.approx(found["map"])
    assert len(out["models"]["pairwise"]["per_query"]) == 30
    (contrast,) = out["contrasts"]
    assert contrast["difference"] == pytest.approx(
        found["map"] - out["models"]["ranksvm"]["mean"]["map"]
    )
    text = succeed(*arguments, "--compare", tmp_path / "pairwise")
    assert "paired randomisation test" in text
    per_query = succeed(*arguments, "--per-query").splitlines()
    assert per_query[0] == "query\tmap"
    assert per_query[1].split("\t")[0] == "61"


def test_two_models_of_labels_are_compared_by_row(labels, tmp_path):
    for name in ("prank", "widrow-hoff"):
        succeed("train", labels / "train", "-o", tmp_path / name, "--model", name)
    arguments = ["evaluate", tmp_path / "prank", labels / "valid", "--compare"]
    out = json.loads(succeed(*arguments, tmp_path / "widrow-hoff", "--json"))
    losses = [out["models"][name]["rank_loss"] for name in ("prank", "widrow-hoff")]
    (contrast,) = out["contrasts"]
    assert contrast["difference"] == pytest.approx(losses[1] - losses[0])
    better, worse = contrast["wins"], contrast["losses"]
    assert np.sign(better - worse) == -np.sign(contrast["difference"])  # a loss


def test_cross_validation_equals_the_function(parts, labels):
    out = json.loads(
        succeed("cv", parts / "train", "--model", "ranksvm", "-m", "map", "--folds", 4, "--json")
    )
    X, y, qid = load(parts / "train", None)
    cv = rc.model_selection.QueryKFold(4, shuffle=True, random_state=0)
    expected = rc.model_selection.cross_validate_queries(
        rc.RankSVM(random_state=0), X, y, qid, metrics="map", cv=cv
    )
    assert [fold["map"] for fold in out["folds"]] == pytest.approx(expected.values[:, 0].tolist())
    assert out["summary"]["map"]["mean"] == pytest.approx(expected.mean()["map"])
    text = succeed("cv", labels / "train", "--folds", 3).splitlines()
    assert text[0].split() == ["fold", "rank_loss", "accuracy", "within_1_rank"]
    assert [line.split()[0] for line in text[1:6]] == ["1", "2", "3", "mean", "deviation"]
    assert float(text[4].split()[1]) < 0.8


def test_folds_are_described(parts, labels, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for data, learner, unit in [(parts, "ranksvm", "queries"), (labels, "prank", "rows")]:
        shown = succeed("cv", data / "train", "--model", learner, "--folds", 3)
        assert re.search(rf"\b{unit}\b.* of each", shown.replace("\n", " "))


def test_the_experiment_of_the_guide_runs(tmp_path, monkeypatch):
    """The five commands of docs/command_line.md, on the data they name, with less time to tune."""
    data = Path(os.environ.get("RANKCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = data / "ohsumed-letor3"
    guide = Path(__file__).parents[1] / "docs" / "command_line.md"
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}; set RANKCORE_DATA")
    if not guide.is_file():
        pytest.skip("the guides are not part of what is installed")
    for part in range(1, 6):
        text = gzip.decompress((folder / f"norm.S{part}.txt.gz").read_bytes())
        (tmp_path / f"S{part}.txt").write_bytes(text)
    monkeypatch.chdir(tmp_path)
    commands = guide.read_text().split("```sh\n")[1].split("```")[0].splitlines()
    assert len(commands) == 5
    for command in commands:
        words = shlex.split(command.replace("--minutes 1 ", "--minutes 0.05 "))
        out = succeed(*words[1:])
    means = [line.split() for line in out.splitlines() if line.split()[0] in ("map", "ndcg@10")]
    assert len(means) == 6  # of each model, and of both compared
    assert all(float(words[1]) > 0.3 for words in means[:4])
    assert read_run("tuned.run").score.size == 3383


# ---------------------------------------------------------------- probabilities


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("method", ["cumulative", "isotonic"])
def test_predicted_probabilities_equal_those_of_python(labels, tmp_path, method, scale):
    succeed(
        *("train", labels / "train", "-o", tmp_path / "m", "--model", "cusum"),
        *("--calibrate", method, "--scale", scale, "--seed", 3, "--set", "C=0.5"),
    )
    printed = succeed("predict", tmp_path / "m", labels / "valid", "--probabilities")
    found = np.array([line.split() for line in printed.splitlines()], dtype=float)
    X, y, _ = load(labels / "train", None)
    held, truth, _ = load(labels / "valid", X.shape[1])
    X, held = X.toarray(), held.toarray()
    if scale == "standard":
        center, spread = X.mean(axis=0), X.std(axis=0)
        X, held = (X - center) / spread, (held - center) / spread
    model = rc.CalibratedOrdinal(
        rc.CuSumRank(C=0.5, random_state=3), method=method, random_state=3
    ).fit(X, y)
    # The moments that scikit-learn's scaler sums row by row round otherwise than NumPy's.
    np.testing.assert_allclose(found, model.predict_proba(held), rtol=1e-6, atol=1e-9)
    assert succeed("predict", tmp_path / "m", labels / "valid").split() == [
        f"{label:g}" for label in model.predict(held)
    ]
    scores = succeed("predict", tmp_path / "m", labels / "valid", "--scores").split()
    np.testing.assert_allclose(np.array(scores, dtype=float), model.project(held), rtol=1e-9)
    facts = json.loads(succeed("evaluate", tmp_path / "m", labels / "valid", "--json"))
    table = (model.classes_ == truth[:, None]).cumsum(axis=1)
    plain = ((found.cumsum(axis=1) - table) ** 2).sum(axis=1).mean()
    assert facts["ranked_probability_score"] == pytest.approx(plain, rel=1e-12)


def test_a_calibrated_learner_may_hold_a_centring_scaler(labels, tmp_path):
    X, y, _ = load(labels / "train", None)
    learner = make_pipeline(StandardScaler(), rc.PRank(random_state=0))
    model = rc.CalibratedOrdinal(learner, random_state=0).fit(X.toarray(), y)
    rc.save(model, tmp_path / "m")
    held, _, _ = load(labels / "valid", X.shape[1])
    printed = succeed("predict", tmp_path / "m", labels / "valid", "--probabilities")
    found = np.array([line.split() for line in printed.splitlines()], dtype=float)
    assert np.array_equal(found, model.predict_proba(held.toarray()))
    assert json.loads(succeed("evaluate", tmp_path / "m", labels / "valid", "--json"))
    assert json.loads(succeed("explain", tmp_path / "m", labels / "valid", "--json"))


def test_probabilities_require_a_model_that_has_them(labels, parts, tmp_path):
    succeed("train", labels / "train", "-o", tmp_path / "m")
    args = ("predict", tmp_path / "m", labels / "valid")
    assert "train it with --calibrate" in fail(*args, "--probabilities")
    assert "pass one of them" in fail(*args, "--probabilities", "--scores")
    message = fail("train", parts / "train", "-o", tmp_path / "n", "--calibrate", "isotonic")
    assert "--calibrate requires ordered labels, which pairwise does not predict" in message
    result = run(
        *("train", labels / "train", "-o", tmp_path / "n", "--calibrate", "isotonic"),
        *("--valid", labels / "valid"),
    )
    assert result.exit_code == 2
    assert "omit --valid" in result.stderr
    result = run("train", labels / "train", "-o", tmp_path / "n", "--calibrate", "platt")
    assert result.exit_code == 2
    assert "neither cumulative nor isotonic" in result.stderr
    assert not (tmp_path / "n").exists()
