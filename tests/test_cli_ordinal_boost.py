"""``--model ordinal-boost``: train, predict and info on a table with holes."""

import json

import numpy as np
import pytest

import rankcore as rc

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from test_cli import fail, succeed

SETTINGS = ("--model", "ordinal-boost", "--set", "min_samples_leaf=5", "--seed", 0)


def table(n, seed):
    """Three features, the last of them noise, and ranks 1 to 4."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = 1 + np.digitize(X[:, 0] * np.sign(X[:, 1]), [-0.7, 0, 0.7])
    X[rng.random((n, 3)) < 0.05] = np.nan
    return X, y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    for name, n, seed in (("train", 300, 0), ("valid", 200, 1)):
        X, y = table(n, seed)
        lines = (
            f"{label} " + " ".join(f"{j}:{value!r}" for j, value in enumerate(row, 1))
            for row, label in zip(X.tolist(), y.tolist(), strict=True)
        )
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def test_train_equals_the_fit_of_the_api(files, tmp_path):
    path = tmp_path / "model"
    arguments = ("train", files / "train", "-o", path, *SETTINGS, "--epochs", 20, "--json")
    # Thresholds need no scale.
    facts = json.loads(succeed(*arguments, "--scale", "auto"))
    assert "scale" not in facts
    assert (facts["model"], facts["examples"], facts["rounds"]) == ("ordinal-boost", 300, 20)
    X, y = table(300, 0)
    X_new, y_new = table(200, 1)
    model = rc.OrdinalBoost(20, min_samples_leaf=5, random_state=0).fit(X, y)
    assert facts["log_loss"] == model.history_["log_loss"][-1]
    labels = succeed("predict", path, files / "valid").split()
    assert labels == [str(label) for label in model.predict(X_new)]
    printed = succeed("predict", path, files / "valid", "--probabilities").splitlines()
    probabilities = [[float(p) for p in line.split()] for line in printed]
    assert probabilities == model.predict_proba(X_new).tolist()
    found = json.loads(succeed("evaluate", path, files / "valid", "--json"))
    score = rc.metrics.ranked_probability_score(y_new, model.predict_proba(X_new))
    assert found["ranked_probability_score"] == pytest.approx(score)
    told = json.loads(succeed("info", path, "--json"))
    assert list(told["largest_importances"].values()) == sorted(
        model.feature_importances_, reverse=True
    )


def test_held_out_rows_end_training(files, tmp_path):
    arguments = ("train", files / "train", "-o", tmp_path / "model", *SETTINGS, "--json")
    facts = json.loads(succeed(*arguments, "--valid", files / "valid", "--patience", 4))
    assert facts["iterations"] == facts["best_iteration"] + 4
    found = json.loads(succeed("evaluate", tmp_path / "model", files / "valid", "--json"))
    score = found["ranked_probability_score"]
    assert facts["valid_ranked_probability_score"] == pytest.approx(score)


def test_rows_of_a_file_and_of_a_cache_give_one_model(files, tmp_path):
    arguments = (files / "train", *SETTINGS, "--epochs", 4)
    succeed("train", *arguments, "-o", tmp_path / "one")
    succeed("train", *arguments, "-o", tmp_path / "other", "--cache", tmp_path / "cache")
    one, other = (rc.load(tmp_path / name) for name in ("one", "other"))
    X = table(50, 2)[0]
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_bad_parameters_raise_a_one_line_error(files, tmp_path):
    arguments = ("train", files / "train", "-o", tmp_path / "model", "--model", "ordinal-boost")
    assert "tasks must be one of" in fail(*arguments, "--set", "tasks=vectors")
    assert "--shuffle does not apply to ordinal-boost" in fail(*arguments, "--shuffle")
