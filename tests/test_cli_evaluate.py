"""``rankcore evaluate RUN QRELS``: the figures of trec_eval, files as they come, comparisons."""

import gzip
import json
import os
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from rankcore.cli.app import app
from rankcore.datasets import load_letor
from rankcore.metrics import CONVENTIONS, evaluate

DATA = Path(os.environ.get("RANKCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))
QRELS = "q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a 1\nq3 0 a 0\nq4 0 a 1\n"
RUN = """q1 Q0 b 1 3.0 mine
q1 Q0 a 2 2.0 mine
q1 Q0 x 3 1.0 mine
q2 Q0 z 1 0.5 mine
q2 Q0 a 2 0.5 mine
q3 Q0 a 1 1 mine
q9 Q0 a 1 1 mine
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "mine.run").write_text(RUN)
    (tmp_path / "best.run").write_text("q1 Q0 a 1 2 best\nq1 Q0 c 2 1 best\nq2 Q0 a 1 1 best\n")
    return tmp_path


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)], input=stdin)


def succeed(*arguments, stdin=None):
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def values(text):
    rows = [line.split("\t") for line in text.splitlines()]
    return {(name.strip(), query): float(value) for name, query, value in rows}


def test_lines_equal_those_of_trec_eval(files):
    found = succeed(files / "mine.run", files / "qrels", "-m", "map", "-m", "P.1,2", "-q")
    assert values(found) == {
        # a at 2 of two relevant ones; z stands above a, for its id is greater; nothing relevant.
        ("map", "q1"): 0.25,
        ("P_1", "q1"): 0,
        ("P_2", "q1"): 0.5,
        ("map", "q2"): 0.5,
        ("P_1", "q2"): 0,
        ("P_2", "q2"): 0.5,
        ("map", "q3"): 0,
        ("P_1", "q3"): 0,
        ("P_2", "q3"): 0,
        ("map", "all"): 0.25,
        ("P_1", "all"): 0,
        ("P_2", "all"): 0.3333,
    }
    assert found.splitlines()[0] == "map                   \tq1\t0.2500"


def test_complete_counts_queries_that_the_run_lacks(files):
    found = values(succeed(files / "mine.run", files / "qrels", "-c", "-m", "map"))
    assert found == {("map", "all"): 0.1875}
    options = ["-c", "-m", "num_q", "-m", "num_ret", "-q"]
    found = values(succeed(files / "mine.run", files / "qrels", *options))
    assert found["num_q", "all"] == 4
    assert found["num_ret", "q4"] == 0
    assert ("num_q", "q4") not in found


def test_documents_beyond_a_depth_do_not_count(files):
    found = values(succeed(files / "mine.run", files / "qrels", "-M1", "-q", "-m", "num_ret"))
    assert found == {("num_ret", q): 1 for q in ("q1", "q2", "q3")} | {("num_ret", "all"): 3}


def test_report_has_the_format_of_trec_eval(files):
    (files / "mine.run").write_text("# a comment\n" + (files / "mine.run").read_text())
    found = succeed(
        files / "mine.run", files / "qrels", "-q", "-m", "official", "-m", "relstring.3"
    )
    lines = [line.split("\t") for line in found.splitlines()]
    assert [name.strip() for name, query, _ in lines if query == "all"][:4] == [
        *("runid", "num_q", "num_ret", "num_rel")
    ]
    assert [value for name, query, value in lines if name.strip() == "runid"] == ["mine"]
    strings = [value for name, _, value in lines if name.strip() == "relstring_3"]
    assert strings == ["'02-'", "'-1'", "'0'"]
    queries = [query for _, query, _ in lines]
    assert queries == sorted(queries, key=lambda query: (query == "all", query))


def test_command_passes_levels_and_conventions(files):
    options = ["-m", "recip_rank", "-l", "2"]
    assert values(succeed(files / "mine.run", files / "qrels", *options))["recip_rank", "all"] == (
        pytest.approx(0.5 / 3, abs=1e-4)
    )
    options = ["-m", "recip_rank", "--convention", "xgboost"]
    found = values(succeed(files / "mine.run", files / "qrels", *options))["recip_rank", "all"]
    assert found == pytest.approx((0.5 + 0.5 + 1) / 3, abs=1e-4)  # z comes first


def test_compressed_runs_and_piped_judgments_are_read(files):
    packed = files / "packed"
    packed.write_bytes(gzip.compress(RUN.encode()))
    expected = succeed(files / "mine.run", files / "qrels")
    assert succeed(packed, files / "qrels") == expected
    assert succeed(packed, "-", stdin=QRELS) == expected
    assert "\nmap " in expected


def test_command_prints_the_comparison_of_the_function(files):
    arguments = [files / "best.run", files / "qrels", "-m", "map", "--compare", files / "mine.run"]
    text = succeed(*arguments).splitlines()
    assert text[0] == "file                  \tall\tbest.run"
    assert text[-1] == "only 2 of 3 queries are in all systems"
    assert "paired randomisation test" in text[-2]
    assert text[-3].split()[:3] == ["map", "best.run", "mine.run"]
    found = json.loads(succeed(*arguments, "--json", "--per-query"))
    assert found["runs"]["best.run"]["mean"] == {"map": 1}
    assert found["runs"]["mine.run"]["per_query"]["q2"] == {"map": 0.5}
    (contrast,) = found["contrasts"]
    assert contrast["n"] == 2
    assert contrast["difference"] == -0.625


def test_runs_may_begin_with_empty_lines(files):
    told = succeed(files / "mine.run", files / "qrels")
    (files / "mine.run").write_text("\n \n" + (files / "mine.run").read_text())
    assert succeed(files / "mine.run", files / "qrels") == told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.run", "gone"], "gone: No such file or directory"),
        (["mine.run", "mine.run"], "found 6 words, expected 4"),
        (["mine.run", "qrels", "-m", "ndgc"], "did you mean 'ndcg'"),
        (["mine.run", "qrels", "--convention", "trek"], "'trec'"),
        (["mine.run", "qrels", "--compare", "gone"], "gone: No such file or directory"),
        (["qrels", "mine.run", "-m", "map"], "nor is it a TREC run (query Q0"),
        (["mine.run", "qrels", "--compare", "mine.run"], "mine.run is passed twice"),
        (["mine.run", "qrels", "-m", "auc"], "some were not retrieved"),
        (["mine.run", "qrels", "-m", "ndcg@9223372036854775808"], "below 2**63"),
        (["gone", "qrels"], "gone: No such file or directory"),
    ],
)
def test_errors_take_one_line(files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("rankcore: error: ")
    assert message in result.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_run_from_a_pipe_is_rejected(files):
    os.mkfifo(files / "pipe")
    result = run(files / "pipe", files / "qrels")
    assert result.exit_code == 1
    assert "is a pipe" in result.stderr


def test_ohsumed_measures_equal_pytrec_eval(tmp_path):
    data = DATA / "ohsumed-letor3"
    if not data.is_dir():
        pytest.skip(f"no data in {data}; set RANKCORE_DATA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytrec_eval = pytest.importorskip("pytrec_eval")
    part = sorted(data.glob("*S1*"))[0]
    loaded = load_letor(part)
    X = loaded.X.toarray()
    docid = [f"d{i}" for i in range(X.shape[0])]
    qid = [f"q{q}" for q in loaded.qid.tolist()]
    names = ["map", "Rprec", "recip_rank", "P.5,10", "ndcg_cut.5,10", "recall.100", "success.1"]
    columns = [10, 24, 40]  # of many distinct values, and of few: ties
    assert min(np.unique(X[:, j]).size for j in columns) < X.shape[0] // 2
    qrels = "".join(
        f"{q} 0 {d} {label:.0f}\n" for q, d, label in zip(qid, docid, loaded.y, strict=True)
    )
    (tmp_path / "qrels").write_text(qrels)
    judged = {q: {} for q in qid}
    for q, d, label in zip(qid, docid, loaded.y, strict=True):
        judged[q][d] = int(label)
    for j in columns:
        lines = [
            f"{q} Q0 {d} 0 {x!r} c\n" for q, d, x in zip(qid, docid, X[:, j].tolist(), strict=True)
        ]
        (tmp_path / "run").write_text("".join(lines))
        ranked = {q: {} for q in qid}
        for q, d, x in zip(qid, docid, X[:, j].tolist(), strict=True):
            ranked[q][d] = x
        expected = pytrec_eval.RelevanceEvaluator(judged, set(names)).evaluate(ranked)
        options = [part for name in names for part in ("-m", name)]
        found = json.loads(
            succeed(tmp_path / "run", tmp_path / "qrels", *options, "--json", "--per-query")
        )
        for q, measured in found["runs"]["run"]["per_query"].items():
            # Sums of some tens of doubles, in another order.
            assert measured == pytest.approx(
                {name: expected[q][name] for name in measured}, abs=1e-12
            )


@pytest.mark.parametrize("named", [True, False])
def test_labels_of_letor_are_judgments_of_a_run(tmp_path, named):
    """The run that predict writes is measured on the file that it ranks, as on its qrels."""
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(3)} qid:{q} 1:{rng.random():.3f} 2:{rng.random():.3f}"
        + (f" #docid = d{q}_{d}" if named else "")
        for q in (7, 3)
        for d in range(9)
    ]
    rows, model, ranked = (str(tmp_path / name) for name in ("rows.txt", "model", "a.run"))
    Path(rows).write_text("\n".join(lines) + "\n")
    for command in (
        ["train", rows, "-o", model, "--model", "ranksvm", "--quiet"],
        ["predict", model, rows, "--run", ranked, "--quiet"],
    ):
        assert CliRunner().invoke(app, command).exit_code == 0
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(
        "".join(
            f"{q} 0 {f'd{q}_{d}' if named else d + 1} {lines[i * 9 + d][0]}\n"
            for i, q in enumerate((7, 3))
            for d in range(9)
        )
    )
    assert succeed(ranked, rows, "-q") == succeed(ranked, qrels, "-q")
    text = re.sub(r" 1:\S+ 2:\S+", " 1:nan 2:inf", "\n".join(lines))
    Path(rows).write_text(f"{text}\n")
    assert succeed(ranked, rows, "-q") == succeed(ranked, qrels, "-q")  # features do not matter
    Path(rows).write_text("0.5 qid:3 1:1\n")
    failed = run(ranked, rows)
    assert failed.exit_code == 1
    assert "judgments must be whole numbers" in failed.stderr
    assert "0.5" in failed.stderr


def test_a_table_is_rejected_as_judgments_of_a_run(files):
    (files / "rows.csv").write_text("qid,docid,grade\nq1,a,2\n")
    failed = run(files / "mine.run", files / "rows.csv")
    assert failed.exit_code == 1
    assert "rows.csv is a table; the judgments of a run are qrels" in failed.stderr
    (files / "commas").write_text(QRELS.replace(" a ", " a,a "))  # ids may have commas
    assert run(files / "mine.run", files / "commas").exit_code == 0


def test_a_run_without_judged_documents_is_reported(files):
    (files / "other.run").write_text("q1 Q0 1 1 2 other\nq1 Q0 2 2 1 other\n")
    found = run(files / "other.run", files / "qrels", "-m", "map")
    assert values(found.stdout) == {("map", "all"): 0}
    assert "no document of other.run is judged" in found.stderr
    assert "named as '1', those of the judgments as 'a'" in found.stderr


def test_models_rank_queries_too(tmp_path):
    import rankcore as rc

    rng = np.random.default_rng(0)
    qid, X = np.repeat([1, 2, 3, 4], 6), rng.integers(0, 4, (24, 3)).astype(float)
    y = np.clip(X[:, 0] + rng.integers(-1, 2, 24), 0, 3)
    rows = [
        f"{label:.0f} qid:{q} " + " ".join(f"{j}:{x:g}" for j, x in enumerate(row, 1)) + "\n"
        for label, q, row in zip(y, qid, X, strict=True)
    ]
    (tmp_path / "data").write_text("".join(rows))
    model = rc.PRank.published(max_iter=5).fit(X, y)
    rc.save(model, tmp_path / "model")
    options = ["-m", "ndcg@3", "-m", "P@2", "--convention", "lightgbm", "-l", "2", "--json"]
    found = json.loads(succeed(tmp_path / "model", tmp_path / "data", *options))
    expected = evaluate(
        y,
        model.project(X),
        qid=qid,
        metrics=["ndcg@3", "P@2"],
        convention=replace(CONVENTIONS["lightgbm"], rel=2),
    )
    assert found == {"examples": 24, "queries": 4, **expected}
    text = succeed(tmp_path / "model", tmp_path / "data", *options[:-1])
    assert text.splitlines()[-1].split(maxsplit=1) == [
        "convention",
        str(replace(CONVENTIONS["lightgbm"], rel=2.0)),
    ]
    text = run(tmp_path / "model", tmp_path / "data", "-l", "2")
    assert text.exit_code == 1
    assert "require a ranking measure" in text.stderr
    for of_runs in (["--complete"], ["--depth", "3"]):
        result = run(tmp_path / "model", tmp_path / "data", *of_runs)
        assert result.exit_code == 1
        assert "--complete and --depth require one" in result.stderr
    # JSON has no NaN.
    options = [tmp_path / "model", tmp_path / "data", "-m", "auc", "-l", "9"]
    assert json.loads(succeed(*options, "--json"))["auc"] is None
    assert "auc         nan" in succeed(*options)
    (tmp_path / "data").write_text("1 1:1\n2 1:2\n")
    result = run(tmp_path / "model", tmp_path / "data", "-m", "map")
    assert result.exit_code == 1
    assert "lines without qid" in result.stderr


def test_ids_in_other_encodings_are_preserved(files):
    (files / "qrels").write_bytes(b"q\xff 0 a 1\n")
    (files / "mine.run").write_bytes(b"q\xff Q0 a 1 1 mine\n")
    found = run(files / "mine.run", files / "qrels", "-m", "map", "--per-query")
    assert found.exit_code == 0, found.stderr
    assert found.stdout_bytes.splitlines()[0] == b"map                   \tq\xff\t1.0000"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_tables_on_terminals_show_whole_numbers(files):
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rankcore", "evaluate", "mine.run", "qrels", "-m", "map"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [*command, "--compare", "best.run"], stdout=theirs, cwd=files, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown.decode()).splitlines()
    assert max(map(len, lines)) <= 80
    words = [re.sub(r"[^ -~]", " ", line).split() for line in lines]
    # Of the two queries that both have: 0.25 and 0.5 against 1.
    assert ["map", "mine.run", "0.3750", "+0.6250", "0.5000", "2/0/0"] in words
    assert ["best.run", "1.0000", "[+0.5000,", "+0.7500]", "0.5000"] in words
