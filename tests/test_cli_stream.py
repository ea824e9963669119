"""``rankcore stream``: progressive validation of files."""

import json

import numpy as np
import pytest

import rankcore as rc
from rankcore.datasets import dump_letor, make_drift, make_letor

pytest.importorskip("typer", reason="the command line needs the cli extra")
pytest.importorskip("rich", reason="the command line needs the cli extra")

from typer.testing import CliRunner

from rankcore.cli.app import app

X, Y = make_drift(1000, 6, random_state=0)


def run(*args, stdin=None):
    result = CliRunner().invoke(app, ["stream", *map(str, args)], input=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def fail(*args, stdin=None):
    result = CliRunner().invoke(app, ["stream", *map(str, args)], input=stdin)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    dump_letor(X, Y, folder / "rows.svm.gz")
    rows, labels, qid = make_letor(30, 7, 90, random_state=0)
    dump_letor(rows.astype(np.float64), labels, folder / "queries.txt", qid=qid)
    header = ",".join([*(f"f{j}" for j in range(6)), "label"])
    np.savetxt(
        folder / "rows.csv", np.column_stack([X, Y]), "%.17g", ",", header=header, comments=""
    )
    lines = [json.dumps({"word": f"w{y}", "label": int(y)}) for y in Y]
    (folder / "rows.jsonl").write_text("\n".join(lines))
    return folder


def expected(model, size, window, **options):
    chunks = [(X[i : i + size], Y[i : i + size]) for i in range(0, 1000, size)]
    return rc.online.evaluate(model, chunks, window=window, classes=range(1, 6), **options)


def test_every_reader_gives_the_measures_of_rows_in_memory(folder, tmp_path):
    found = expected(rc.PRank(random_state=0), 50, 300, delay=120)
    text = (folder / "rows.svm.gz").read_bytes()
    ways = [
        ([folder / "rows.svm.gz"], None),
        ([folder / "rows.svm.gz", "--cache", tmp_path / "cache"], None),
        ([tmp_path / "cache"], None),
        ([f"{folder}/rows.svm*"], None),
        (["-"], text),
        ([folder / "rows.csv"], None),
        ([folder / "rows.svm.gz", "--features", 6, "--classes", "1,2,3,4,5"], None),
    ]
    for data, stdin in ways:
        options = ("--chunk", 50, "--window", 300, "--delay", 120, "--json")
        printed = json.loads(run(*data, *options, stdin=stdin))
        assert printed["model"] == "prank"
        assert [one["rows"] for one in printed["windows"]] == [300, 600, 900, 1000]
        for one, other in zip(printed["windows"], found.windows, strict=True):
            assert one["latest"] == other.latest
            assert one["overall"] == other.overall


def test_lines_are_printed_for_each_window(folder):
    found = expected(rc.OrdinalLogistic(random_state=0), 100, 500, metrics=["rank_loss", "rps"])
    printed = run(
        folder / "rows.svm.gz",
        "--model",
        "logistic",
        "--window",
        500,
        "-m",
        "rank_loss",
        "-m",
        "rps",
    )
    header, *lines = [line.split("\t") for line in printed.splitlines()]
    names = ["rank_loss", "rps"]
    assert header == ["seen", "seconds", *names, *(f"{name} (overall)" for name in names)]
    for line, one in zip(lines, found.windows, strict=True):
        values = [*one.latest.values(), *one.overall.values()]
        assert [line[0], *line[2:]] == [str(one.seen), *(f"{value:.4f}" for value in values)]


def test_the_model_is_saved(folder, tmp_path):
    run(folder / "rows.svm.gz", "-o", tmp_path / "model", "--set", "average=False")
    model = rc.PRank(average=False)
    expected(model, 100, 1000)
    assert (rc.load(tmp_path / "model").coef_ == model.coef_).all()


def test_queries_are_ranked(folder):
    printed = json.loads(
        run(folder / "queries.txt", "--chunk", 20, "--window", 15, "-m", "mrr", "--json")
    )
    assert printed["model"] == "pairwise"
    data = rc.datasets.load_letor(folder / "queries.txt", dense=True)
    chunks = [  # the smallest number of queries with at least 20 rows
        rc.online.Chunk(data.X[i : i + 21], data.y[i : i + 21], data.qid[i : i + 21])
        for i in range(0, 210, 21)
    ]
    found = rc.online.evaluate(
        rc.PairwisePerceptron(random_state=0), chunks, window=15, metrics="mrr"
    )
    assert [one["queries"] for one in printed["windows"]] == [15, 30]
    assert [one["latest"] for one in printed["windows"]] == [one.latest for one in found.windows]


def test_json_lines_are_hashed(folder):
    text = (folder / "rows.jsonl").read_bytes()
    for data, stdin in ((folder / "rows.jsonl", None), ("-", text)):
        options = ("--hash", 1024, "--classes", "1,2,3,4,5", "--window", 500, "--json")
        printed = json.loads(run(data, *options, stdin=stdin))
        assert printed["windows"][-1]["latest"]["rank_loss"] == 0


def test_a_learner_starts_again_after_drift(folder, tmp_path):
    pytest.importorskip("river")
    rows, labels = make_drift(2000, 6, drift=None, random_state=0)
    dump_letor(rows, np.where(np.arange(2000) < 1000, labels, 6 - labels), tmp_path / "rows.svm")
    printed = run(tmp_path / "rows.svm", "--drift", "--window", 500, "-o", tmp_path / "model")
    (line,) = [line for line in printed.splitlines() if line.startswith("drifts")]
    (at,) = map(int, line.split()[1:])
    assert 1000 < at <= 1300
    model = rc.load(tmp_path / "model")
    assert model.t_ == 2000 - at + 100  # from the 100 rows before the alarm
    queries = folder / "queries.txt"
    assert "--drift requires labels, which pairwise does not predict" in fail(queries, "--drift")


def test_options_that_exclude_each_other_are_errors(folder):
    assert "--hash requires --classes" in fail(folder / "rows.jsonl", "--hash", 64)
    assert "ordinal-boost does not learn streams" in fail(
        folder / "rows.svm.gz", "--model", "ordinal-boost"
    )


def test_measures_of_probabilities_require_a_learner_with_them(folder):
    error = fail(folder / "rows.svm.gz", "-m", "rank_loss", "-m", "rps")
    assert "rank_loss, rps require probabilities, which --model prank does not predict" in error


@pytest.mark.parametrize("name", ["rows.svm.gz", "rows.csv", "rows.jsonl"])
def test_rankers_require_queries(folder, name):
    hashed = ("--hash", 64) if name.endswith("jsonl") else ()
    error = fail(folder / name, *hashed, "--model", "pairwise")
    assert "pairwise compares the documents of a query, and DATA has none" in error
