"""The command line on files that need not fit into memory: streams, caches, checkpoints."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import rankcore as rc
from rankcore.datasets import dump_letor, make_letor, make_ordinal

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from typer.testing import CliRunner

from rankcore.cli.app import app


def run(*args, stdin=None):
    return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)


def succeed(*args, stdin=None):
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def fail(*args, stdin=None):
    result = run(*args, stdin=stdin)
    assert result.exit_code == 1
    assert result.stderr.startswith("rankcore: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    X, y = make_ordinal(600, 8, mean_nnz=4, random_state=0)
    dump_letor(X, y, folder / "all.txt")
    lines = (folder / "all.txt").read_bytes().splitlines(keepends=True)
    (folder / "part-0").write_bytes(b"".join(lines[:250]))
    (folder / "part-1.gz").write_bytes(gzip.compress(b"".join(lines[250:])))
    X, y, qid = make_letor(30, 10, n_features=90, random_state=0)
    dump_letor(X, y, folder / "queries.txt", qid=qid)
    return folder


def model_bytes(path):
    return path.read_bytes()


ORDER = ("--no-shuffle", "--epochs", 2, "--json")


def test_every_reader_gives_the_model_of_rows_in_memory(folder, tmp_path):
    succeed("train", folder / "all.txt", "-o", tmp_path / "memory", *ORDER)
    expected = model_bytes(tmp_path / "memory")
    text = (folder / "all.txt").read_bytes()
    ways = [
        ([folder / "all.txt", "--stream"], None),
        ([folder / "part-0", folder / "part-1.gz"], None),
        ([f"{folder}/part-*"], None),
        (["-", "--stream"], text),
        ([folder / "all.txt", "--cache", tmp_path / "rows"], None),
        ([folder / "all.txt", "--cache", tmp_path / "rows"], None),
        ([tmp_path / "rows"], None),
    ]
    for number, (data, stdin) in enumerate(ways):
        output = tmp_path / f"model-{number}"
        facts = succeed("train", *data, "-o", output, *ORDER, stdin=stdin)
        assert facts["model"] == "prank"
        assert facts["chosen_because"] == "no line has qid:"
        assert model_bytes(output) == expected


@pytest.mark.parametrize("model", ["pairwise", "committee", "rankboost", "ranksvm"])
def test_rankers_learn_from_caches(model, folder, tmp_path):
    facts = succeed(
        "train",
        folder / "queries.txt",
        "--cache",
        tmp_path / "rows",
        "-o",
        tmp_path / "model",
        "--model",
        model,
        "--json",
    )
    assert facts["examples"] == 300
    assert rc.load(tmp_path / "model").n_features_in_ == 90


def test_declared_classes_avoid_a_scan(folder, tmp_path):
    given = ("--features", 8, "--classes", "1,2,3,4,5", "--model", "prank")
    facts = succeed("train", folder / "all.txt", "-o", tmp_path / "m", *given, *ORDER)
    assert facts["classes"] == [1, 2, 3, 4, 5]
    assert facts["features"] == 8
    assert "examples" not in facts


@pytest.mark.parametrize("scale", ["auto", "maxabs", "standard"])
def test_scales_equal_those_of_rows_in_memory(scale, folder, tmp_path, monkeypatch):
    """To the bit of maxabs, which "auto" is; to rounding of sums put together of blocks."""
    from rankcore.datasets import file_rows, row_cache_writer

    for module in (file_rows, row_cache_writer):
        monkeypatch.setattr(module, "BLOCK_VALUES", 400)
    lines = (folder / "all.txt").read_bytes().splitlines(keepends=True)
    text = tmp_path / "orders.txt"
    text.write_bytes(b"".join(line.rstrip() + b" 19:5000\n" for line in lines[:550]) + lines[-1])
    given = ("--scale", scale, *ORDER)
    in_memory = succeed("train", text, "-o", tmp_path / "memory", *given)
    for more in [["--stream"], ["--cache", tmp_path / "rows"]]:
        facts = succeed("train", text, *more, "-o", tmp_path / "model", *given)
        assert facts["scale"] == in_memory["scale"] == ("standard" if scale[0] == "s" else "maxabs")
        if scale != "standard":
            assert model_bytes(tmp_path / "model") == model_bytes(tmp_path / "memory")
        found, expected = (rc.load(tmp_path / name) for name in ("model", "memory"))
        assert np.allclose(found[0].scale_, expected[0].scale_, rtol=1e-13)
        assert np.allclose(found[1].coef_, expected[1].coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", ["none", "maxabs"])
@pytest.mark.parametrize("model", ["prank", "pairwise", "ranksvm"])
def test_held_out_rows_are_measured_as_in_memory(model, scale, folder, tmp_path, monkeypatch):
    file = folder / ("all.txt" if model == "prank" else "queries.txt")
    lines = file.read_bytes().splitlines(keepends=True)
    (tmp_path / "train.txt").write_bytes(b"".join(lines[:200]))
    # With more features than the rows to learn from.
    valid = tmp_path / "valid.txt"
    valid.write_bytes(b"".join(lines[200:299]) + lines[299].rstrip() + b" 95:0.5\n")
    order = [] if model == "ranksvm" else ["--no-shuffle", "--epochs", 12, "--patience", 2]
    given = ("--valid", valid, "--model", model, "--scale", scale, *order, "--json")
    if model == "pairwise":
        monkeypatch.setattr(rc.PairwisePerceptron, "_solver", "lazy")  # one order of sums
        given = (*given, "--metric", "map")
    expected = succeed("train", tmp_path / "train.txt", "-o", tmp_path / "memory", *given)
    ways = [["--cache", tmp_path / "rows"]] + ([] if model == "ranksvm" else [["--stream"]])
    for more in ways:
        facts = succeed("train", tmp_path / "train.txt", *more, "-o", tmp_path / "model", *given)
        assert facts["features"] == expected["features"] == 95
        names = [name for name in expected if name.startswith("valid") or "iteration" in name]
        assert names
        assert {name: facts[name] for name in names} == {name: expected[name] for name in names}
        if model != "ranksvm":  # which keeps the time of each step
            assert model_bytes(tmp_path / "model") == model_bytes(tmp_path / "memory")


def test_the_cache_command_writes_a_cache(folder, tmp_path):
    facts = succeed("cache", folder / "queries.txt", "-o", tmp_path / "rows", "--float32", "--json")
    assert facts["examples"] == 300
    assert facts["in_queries"]
    assert np.load(tmp_path / "rows" / "values.npy").dtype == np.float32


def test_streams_reject_options_of_memory(folder, tmp_path):
    out = ("-o", tmp_path / "model")
    text = folder / "all.txt"
    assert "--calibrate requires all rows in memory" in fail(
        "train", text, "--stream", "--calibrate", "isotonic", *out
    )
    assert "no file matches" in fail("train", f"{folder}/none-*", *out)
    assert "must list at least two labels" in fail(
        "train", text, "--classes", "3", "--features", 8, "--model", "prank", *out
    )


# The command sends Ctrl-C to itself, some milliseconds after it says that a pass has ended: a
# process that waits for the line would need passes that are longer than it may wait for its turn.
