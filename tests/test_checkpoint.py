"""Checkpoints of train: what is in the folder is its own, whole and not followed."""

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from typer.testing import CliRunner

import rankcore as rc
from rankcore._core.sources import Position
from rankcore.cli.app import app
from rankcore.cli.checkpoint import Checkpoint, checkpoint_of
from rankcore.cli.source import Source
from rankcore.datasets import dump_letor, make_ordinal, open_rows


def succeed(*args):
    result = CliRunner().invoke(app, list(map(str, args)))
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def fail(*args):
    result = CliRunner().invoke(app, list(map(str, args)))
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("rankcore: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def folder(tmp_path):
    X, y = make_ordinal(600, 8, mean_nnz=4, random_state=0)
    (tmp_path / "rows").mkdir()
    dump_letor(X, y, tmp_path / "rows" / "all.txt")
    return tmp_path / "rows"


@pytest.fixture
def left(folder, tmp_path):
    """A checkpoint of pass 2 of 4 over a file, and the arguments that go on from it."""
    output = tmp_path / "model"
    command = ["train", folder / "all.txt", "-o", output, "--model", "prank", "--epochs", 4]
    disk = Source([str(folder / "all.txt")])
    model = rc.PRank(max_iter=1, random_state=0).fit(open_rows(folder / "all.txt"))
    model.set_params(max_iter=4)
    checkpoint = Checkpoint(checkpoint_of(output), disk, False)
    checkpoint._save(model, Position(2, 0, 1), True, None)
    return checkpoint, [*command, "--resume"]


def test_only_what_train_wrote_is_removed(left):
    checkpoint, command = left
    (checkpoint.folder / "notes.txt").write_text("mine")
    (checkpoint.folder / "old.rankcore").write_text("mine")
    succeed(*command, "--json")
    assert sorted(os.listdir(checkpoint.folder)) == ["notes.txt", "old.rankcore"]


def test_a_checkpoint_goes_with_the_last_of_its_files(left):
    checkpoint, command = left
    succeed(*command, "--json")
    assert not checkpoint.folder.exists()


@pytest.mark.parametrize("content", ["{}", '{"models": []}', '{"format": "other"}', "x", "[]"])
def test_a_folder_of_others_is_left_alone(content, folder, tmp_path):
    there = tmp_path / "model.checkpoint"
    there.mkdir()
    (there / "position.json").write_text(content)
    (there / "other").write_text("mine")
    message = fail("train", folder / "all.txt", "-o", tmp_path / "model", "--stream")
    assert "is not a checkpoint of train" in message
    assert not (tmp_path / "model").exists()
    assert sorted(os.listdir(there)) == ["other", "position.json"]
    (there / "position.json").rename(there / "model-0.rankcore")
    message = fail("train", folder / "all.txt", "-o", tmp_path / "model", "--stream")
    assert "has model-0.rankcore and no position.json" in message
    (there / "model-0.rankcore").unlink()
    succeed("train", folder / "all.txt", "-o", tmp_path / "model", "--stream", "--json")
    assert os.listdir(there) == ["other"]


@pytest.mark.skipif(os.name == "nt", reason="Windows grants links to administrators only")
def test_no_link_in_a_checkpoint_is_followed(left, tmp_path):
    checkpoint, _ = left
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (checkpoint.folder / "position.json.new").symlink_to(victim)
    for name in ["model-0.rankcore", "model-1.rankcore"]:
        (checkpoint.folder / name).unlink(missing_ok=True)
        (checkpoint.folder / name).symlink_to(victim)
    model = rc.PRank(random_state=0).fit([[0.0], [1.0]], [1, 2])
    for _ in range(3):
        checkpoint._save(model, Position(2, 0, 1), True, None)
    (checkpoint.folder / "position.json").unlink()
    (checkpoint.folder / "position.json").symlink_to(victim)
    checkpoint._save(model, Position(2, 0, 1), True, None)
    assert victim.read_text() == "precious"
    assert not (checkpoint.folder / "position.json").is_symlink()


def damage(folder, name, change):
    file = folder / name
    if change == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif change == "link":
        file.rename(folder.parent / "elsewhere")
        file.symlink_to(folder.parent / "elsewhere")
    elif change == "missing":
        file.unlink()
    elif isinstance(change, str):
        file.write_text(change)
    else:
        file.write_text(json.dumps(json.loads(file.read_text()) | change))


@pytest.mark.skipif(os.name == "nt", reason="makes pipes and links")
@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("position.json", "pipe", "neither pipes nor links"),
        ("position.json", "link", "neither pipes nor links"),
        ("position.json", "missing", "--resume requires"),
        ("position.json", "[" * 100_000, "is damaged"),
        ("position.json", '{"a":' * 100_000, "is damaged"),
        ("position.json", "\x00", "is damaged"),
        ("position.json", {"format": 3}, "lacks 'rankcore checkpoint'"),
        ("position.json", {"place": 2}, "its models are 2, 1"),
        ("position.json", {"place": "../x"}, "its models are ../x, 1"),
        ("position.json", {"place": [0]}, "is damaged"),
        ("position.json", {"models": 2}, "is damaged: .*best-0.rankcore"),
        ("position.json", {"epoch": 31}, "it is at pass 31, but its model has seen 1"),
        ("position.json", {"epoch": 0}, "its position is"),
        ("position.json", {"epoch": "2"}, "its position is"),
        ("position.json", {"epoch": 1e400}, "its position is"),
        ("position.json", {"window": 10**6}, "there is no window 1000000 of these rows"),
        ("position.json", {"window": 2**70}, "its position is"),
        ("position.json", {"seed": -1}, "its position is"),
        ("position.json", {"rows": None}, "is of other files"),
        ("model-0.rankcore", "pipe", "model-0.rankcore is not a file"),
        ("model-0.rankcore", "link", "model-0.rankcore is not a file"),
        ("model-0.rankcore", "missing", "model-0.rankcore"),
        ("model-0.rankcore", "x", "not a rankcore model file"),
    ],
)
def test_a_checkpoint_that_was_tampered_with(name, change, message, left):
    checkpoint, command = left
    damage(checkpoint.folder, name, change)
    assert re.search(message, fail(*command))
    assert not command[3].exists()


def test_a_pass_after_the_last(left):
    checkpoint, command = left
    model = rc.PRank(max_iter=4, random_state=0).fit(open_rows(command[1]))
    checkpoint._save(model, Position(5, 0, 1), True, None)
    assert "it is at pass 5 of 4" in fail(*command)


def test_a_save_that_was_killed_is_cleaned_up(left):
    checkpoint, command = left
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from rankcore._core.replacing import Workshop\n"
        "room = Workshop(Path(sys.argv[1]) / 'position.json')\n"
        "(room.path / 'model-1.rankcore').touch()\n"
        "(Path(sys.argv[1]) / 'model-1.rankcore').touch()\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code, checkpoint.folder], check=False)
    assert len(os.listdir(checkpoint.folder)) == 4
    succeed(*command, "--json")
    assert not checkpoint.folder.exists()
