"""`rankcore train --checkpoint`: the model of each pass is saved, and a fit goes on from it."""

import json
import os

import pytest

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from typer.testing import CliRunner

import children
import rankcore as rc
from rankcore.cli.app import app
from rankcore.datasets import dump_letor, make_letor, make_ordinal


def succeed(*args):
    result = CliRunner().invoke(app, list(map(str, args)))
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def fail(*args):
    result = CliRunner().invoke(app, list(map(str, args)))
    assert result.exit_code != 0, result.output
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    X, y = make_ordinal(600, 8, mean_nnz=4, random_state=0)
    dump_letor(X, y, folder / "ordinal.txt")
    dump_letor(X[:200], y[:200], folder / "valid.txt")
    X, y, qid = make_letor(30, 10, random_state=0)
    dump_letor(X, y, folder / "queries.txt", qid=qid)
    return folder


@pytest.mark.parametrize(
    ("learner", "file", "more"),
    [
        ("prank", "ordinal.txt", ["--stream"]),
        ("oap-bpm", "ordinal.txt", ["--stream"]),
        ("cusum", "ordinal.txt", ["--stream", "--scale", "maxabs"]),
        ("prank", "ordinal.txt", ["--no-shuffle"]),
        ("voted-prank", "ordinal.txt", ["--no-shuffle", "--scale", "standard"]),
        ("pairwise", "queries.txt", ["--stream"]),
        ("ordinal-boost", "ordinal.txt", []),
    ],
)
def test_resumed_fit_equals_one_that_was_not_interrupted(learner, file, more, folder, tmp_path):
    command = ["train", folder / file, "--model", learner, "--json", *more]
    succeed(*command, "--epochs", 6, "-o", tmp_path / "whole")
    saved = ["--checkpoint", tmp_path / "checkpoint", "-o", tmp_path / "model"]
    succeed(*command, "--epochs", 3, *saved)
    (tmp_path / "model").unlink()
    succeed(*command, "--epochs", 6, *saved, "--resume")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()


def test_resumed_boosting_equals_one_that_was_not_interrupted_to_rounding(folder, tmp_path):
    """Weights of pairs are recomputed from the scores of the model."""
    command = ["train", folder / "queries.txt", "--model", "rankboost", "--json"]
    succeed(*command, "--epochs", 6, "-o", tmp_path / "whole")
    saved = ["--checkpoint", tmp_path / "checkpoint", "-o", tmp_path / "model"]
    succeed(*command, "--epochs", 3, *saved)
    succeed(*command, "--epochs", 6, *saved, "--resume")
    X = make_letor(5, 10, random_state=1)[0]
    expected = rc.load(tmp_path / "whole").predict(X)
    assert rc.load(tmp_path / "model").predict(X) == pytest.approx(expected, rel=1e-9)


def test_checkpoint_predicts_raw_rows(folder, tmp_path):
    """It has the scaler, as the model has."""
    paths = ["--checkpoint", tmp_path / "checkpoint", "-o", tmp_path / "model"]
    succeed("train", folder / "ordinal.txt", "--scale", "standard", "--epochs", 2, "--json", *paths)
    X, _ = make_ordinal(50, 8, mean_nnz=4, random_state=1)
    expected = rc.load(tmp_path / "model").predict(X.toarray())
    assert rc.load(tmp_path / "checkpoint").predict(X.toarray()).tolist() == expected.tolist()


def test_checkpoint_every_k_rounds(folder, tmp_path):
    command = ["train", folder / "queries.txt", "--model", "rankboost", "--epochs", 7, "--json"]
    paths = ["--checkpoint", tmp_path / "checkpoint", "-o", tmp_path / "model"]
    succeed(*command, *paths, "--checkpoint-every", 3)
    assert len(rc.load(tmp_path / "checkpoint").estimators_) == 6
    assert len(rc.load(tmp_path / "model").estimators_) == 7


def test_resume_without_a_file_starts_anew(folder, tmp_path):
    command = ["train", folder / "ordinal.txt", "--epochs", 2, "--json"]
    succeed(*command, "-o", tmp_path / "whole")
    succeed(*command, "-o", tmp_path / "model", "--checkpoint", tmp_path / "none", "--resume")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()


def test_best_pass_of_a_resumed_fit_is_measured_from_the_checkpoint_on(folder, tmp_path):
    command = ["train", folder / "ordinal.txt", "--stream", "--valid", folder / "valid.txt"]
    command += ["--patience", 30, "--json", "--checkpoint", tmp_path / "checkpoint"]
    succeed(*command, "--epochs", 3, "-o", tmp_path / "first")
    facts = succeed(*command, "--epochs", 8, "-o", tmp_path / "model", "--resume")
    model = rc.load(tmp_path / "model")
    losses = model.history_["valid_rank_loss"]
    assert len(losses) == 8
    assert facts["best_iteration"] == 3 + losses[2:].index(min(losses[2:]))
    X, y = make_ordinal(600, 8, mean_nnz=4, random_state=0)
    loss = rc.metrics.rank_loss(y[:200], model.predict(X[:200]))
    assert loss == pytest.approx(min(losses[2:]))


def test_resume_rejects_other_options_and_rows(folder, tmp_path):
    path, out = tmp_path / "checkpoint", ["-o", tmp_path / "model"]
    command = ["train", folder / "ordinal.txt", "--checkpoint", path, *out]
    succeed(*command, "--model", "prank", "--json")
    again = [*command, "--resume"]
    assert "PRank with other parameters (margin)" in fail(
        *again, "--model", "prank", "--set", "margin=2.0"
    )
    assert "PRank with other parameters" in fail(*again, "--model", "cusum")
    other = tmp_path / "other.txt"
    X, y = make_ordinal(60, 9, n_ranks=3, random_state=0)
    dump_letor(X, y, other)
    assert "the checkpoint is of 8 features" in fail(
        "train", other, "--checkpoint", path, *out, "--model", "prank", "--resume", "--epochs", 20
    )
    assert "requires the file to go on from" in fail("train", other, *out, "--resume")


INTERRUPTED = """
import os, sys
import rankcore
from rankcore.cli.app import main
save, saves, signal = rankcore.save, [], int(sys.argv.pop(1))
def counted(model, path):
    save(model, path)
    saves.append(path)
    if len(saves) == 2:
        os.kill(os.getpid(), signal)
rankcore.save = counted
sys.exit(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
@pytest.mark.parametrize("signal", [2, 9])
def test_killed_fit_resumes_from_its_last_pass(signal, folder, tmp_path):
    command = ["train", folder / "ordinal.txt", "--stream", "--epochs", 6]
    succeed(*command, "-o", tmp_path / "whole", "--json")
    paths = ["-o", tmp_path / "model", "--checkpoint", tmp_path / "checkpoint"]
    status, output = children.run(INTERRUPTED, signal, *command, *paths)
    assert status == (130 if signal == 2 else -9), output
    assert not (tmp_path / "model").exists()
    assert rc.load(tmp_path / "checkpoint").n_iter_ == 2
    succeed(*command, *paths, "--resume", "--json")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "whole").read_bytes()
