"""``rankcore clicks``: the commands print what the functions return."""

import csv
import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from rankcore.clicks import (
    CascadeModel,
    ClickFile,
    ClickRates,
    DynamicBayesianModel,
    Judged,
    PositionBasedModel,
    Propensities,
    User,
    evaluate,
    propensities,
    read_clicks,
    simulate_clicks,
    simulate_sessions,
    to_judgments,
)
from rankcore.datasets import read_qrels
from test_cli import fail, run, succeed

pytest.importorskip("typer", reason="the command is not installed")

HEAD = "session,query,document,position,clicked\n"
N_QUERIES, N_DOCUMENTS = 8, 6


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Return a log that identifies propensities, as CSV."""
    path = tmp_path_factory.mktemp("log") / "log.csv"
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)
    docid = np.tile([f"d{i}" for i in range(N_DOCUMENTS)], N_QUERIES)
    shown, row = simulate_sessions(qid, docid, rng.random(qid.size), 800, swap=0.5, random_state=0)
    log = simulate_clicks(shown, rng.beta(1, 2, qid.size)[row], random_state=1)
    columns = (log.session, log.query, log.documents[log.document], log.position)
    rows = zip(*(one.tolist() for one in columns), log.clicked.astype(int).tolist(), strict=True)
    path.write_text(HEAD + "".join(",".join(map(str, one)) + "\n" for one in rows))
    return path


@pytest.fixture(scope="module")
def ranking(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "new.run"
    rng = np.random.default_rng(1)
    rows = [
        f"{q} Q0 d{d} 0 {rng.random():.3f} new\n"
        for q in range(N_QUERIES)
        for d in range(N_DOCUMENTS)
    ]
    path.write_text("".join(rows))
    return path


@pytest.fixture(scope="module")
def theta(tmp_path_factory, log):
    path = tmp_path_factory.mktemp("theta") / "theta.csv"
    path.write_text(succeed("clicks", "propensity", log))
    return path


def table(text):
    return [*csv.DictReader(io.StringIO(text))]


def columns(rows, *names):
    return [np.array([float(row[name]) for row in rows]) for name in names]


@pytest.mark.parametrize("method", ["em", "swap", "allpairs"])
def test_command_prints_the_propensities_of_the_function(log, method):
    expected = propensities(read_clicks(log), method)
    found = json.loads(succeed("clicks", "propensity", log, "--method", method, "--json"))
    rows = found.pop("positions")
    assert found == {
        "method": method,
        "impressions": 4800,
        "sessions": 800,
        "clicks": int(read_clicks(log).clicked.sum()),
    }
    assert [row["position"] for row in rows] == [*range(1, 7)]
    assert [row["propensity"] for row in rows] == expected.theta.tolist()
    if method == "allpairs":
        assert {row["low"] for row in rows} == {None}
    else:
        both = [[row["low"], row["high"]] for row in rows]
        assert both == expected.interval.tolist()
    text = table(succeed("clicks", "propensity", log, "--method", method))
    # Printed with six digits.
    np.testing.assert_allclose(columns(text, "propensity")[0], expected.theta, rtol=1e-5)


def test_trust_of_judged_documents_is_used_by_the_evaluation(log, ranking, tmp_path):
    rng, rows = np.random.default_rng(2), read_clicks(log)
    grades = rng.integers(-1, 3, (N_QUERIES, N_DOCUMENTS))
    query = rows.queries[rows.query].astype(int)
    document = [int(one[1:]) for one in rows.documents[rows.document]]
    attraction = grades.clip(0)[query, document] / 2
    trusting = User(trust=0.4 / np.arange(1, 7))
    clicked = simulate_clicks(rows, attraction, user=trusting, random_state=0).clicked
    lines = log.read_text().splitlines()[1:]
    lines = [f"{line[:-1]}{int(click)}\n" for line, click in zip(lines, clicked, strict=True)]
    (tmp_path / "log.csv").write_text(HEAD + "".join(lines))
    qrels = [f"{q} 0 d{d} {grades[q, d]}\n" for q in range(N_QUERIES) for d in range(N_DOCUMENTS)]
    (tmp_path / "qrels").write_text("".join(qrels))

    command = ["clicks", "propensity", tmp_path / "log.csv", "--judged", tmp_path / "qrels"]
    assert "--method judged and --judged require each other" in fail(*command)
    text = succeed(*command, "--method", "judged")
    read = read_qrels(tmp_path / "qrels")
    expected = propensities(
        read_clicks(tmp_path / "log.csv"),
        "judged",
        judged=Judged(read.qid, read.docid, read.rel.clip(0) / 2),
    )
    theta, trust = columns(table(text), "propensity", "trust")
    np.testing.assert_allclose(theta, expected.theta, rtol=1e-5)
    np.testing.assert_allclose(trust, expected.trust, rtol=1e-5)

    (tmp_path / "theta.csv").write_text(text)
    run_rows = [line.split() for line in ranking.read_text().splitlines()]
    new = {name: [row[i] for row in run_rows] for name, i in [("query", 0), ("document", 2)]}
    (tmp_path / "new.csv").write_text(
        "query,document,score\n" + "".join(f"{row[0]},{row[2]},{row[4]}\n" for row in run_rows)
    )
    new["score"] = [float(row[4]) for row in run_rows]
    given = Propensities(theta, trust=trust)
    value = evaluate(read_clicks(tmp_path / "log.csv"), new, propensity=given)["mrr"].value
    for path in (ranking, tmp_path / "new.csv"):
        command = ["clicks", "evaluate", tmp_path / "log.csv", path, "--json", "-m", "mrr"]
        found = json.loads(succeed(*command, "--propensity", tmp_path / "theta.csv"))
        assert found["measures"][0]["value"] == pytest.approx(value, rel=1e-12)


MODELS = {
    "position": PositionBasedModel,
    "cascade": CascadeModel,
    "bayesian": DynamicBayesianModel,
    "simplified": lambda **given: DynamicBayesianModel(simplified=True, **given),
    "rates": ClickRates,
}


@pytest.mark.parametrize("kind", MODELS)
def test_command_fits_the_models_of_the_functions(log, kind, tmp_path):
    given = ["--kind", kind, "--smoothing", 2, "--held-out", log, "--json"]
    files = ["-o", tmp_path / "of.csv", "--qrels", tmp_path / "qrels", "--thresholds", "0.2,0.4"]
    found = json.loads(succeed("clicks", "model", log, *given, *files))
    whole = read_clicks(log)
    expected = MODELS[kind](smoothing=2).fit(whole)
    for prefix in ("", "held_out_"):
        value = expected.log_likelihood(whole)  # no session of the cascade has two clicks
        assert found[f"{prefix}log_likelihood"] == (None if kind == "cascade" else value)
        by_position = expected.perplexity(whole).tolist()
        assert found[f"{prefix}perplexity_by_position"] == by_position
    judgments = to_judgments(expected, thresholds=[0.2, 0.4])
    rows = table((tmp_path / "of.csv").read_text())
    keys = [(row["query"], row["document"], int(row["grade"])) for row in rows]
    assert keys == [
        *zip(
            judgments.qid.tolist(), judgments.docid.tolist(), judgments.grade.tolist(), strict=True
        )
    ]
    relevance, confidence = columns(rows, "relevance", "confidence")
    np.testing.assert_allclose(relevance, judgments.relevance, rtol=1e-5)
    np.testing.assert_allclose(confidence, judgments.confidence, rtol=1e-5)
    assert read_qrels(tmp_path / "qrels").to_dict() == judgments.qrels().to_dict()


def test_command_prints_the_evaluation_of_the_function(log, ranking, theta, tmp_path):
    succeed("clicks", "model", log, "-o", tmp_path / "m.csv")
    rows = table((tmp_path / "m.csv").read_text())
    known = {(row["query"], row["document"]): float(row["relevance"]) for row in rows}
    run_rows = [line.split() for line in ranking.read_text().splitlines()]
    new = {
        "query": [row[0] for row in run_rows],
        "document": [row[2] for row in run_rows],
        "score": [float(row[4]) for row in run_rows],
        "relevance": [known[row[0], row[2]] for row in run_rows],
    }
    (by_position,) = columns(table(theta.read_text()), "propensity")
    base = ["clicks", "evaluate", log, ranking, "--propensity", theta, "--json"]
    more = ["--estimator", "dr", "--relevance", tmp_path / "m.csv", "--clip", 3]
    for options, given in [([], {}), (more, {"estimator": "dr", "clip": 3})]:
        expected = evaluate(read_clicks(log), new, propensity=by_position, **given)
        found = json.loads(succeed(*base, *options))
        assert found["effective_sample_size"] == expected.effective_sample_size
        assert (found["queries"], found["never_shown"]) == (N_QUERIES, 0)
        assert found["measures"] == [
            {"measure": name, "value": one.value, "low": one.low, "high": one.high}
            for name, one in expected.items()
        ]
    result = run(*base[:-1], "-m", "dcg@3")
    assert [row["measure"] for row in table(result.stdout)] == ["dcg@3"]
    assert "0.0% of the ranking's documents never shown" in result.stderr


def test_log_read_in_windows_gives_the_model_of_the_whole_log(log, ranking, theta, monkeypatch):
    command = ["clicks", "evaluate", log, ranking, "--propensity", theta, "--json"]
    whole = json.loads(succeed(*command))
    monkeypatch.setattr(
        "rankcore.clicks.open_clicks",
        lambda path, columns, on_error: ClickFile(path, columns, 7, on_error),
    )
    parts = json.loads(succeed(*command))
    assert parts["effective_sample_size"] == pytest.approx(whole["effective_sample_size"])
    for one, other in zip(parts["measures"], whole["measures"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-12)  # sums in another order


def test_named_columns_and_compressed_json_are_read(log, tmp_path):
    rows = table(log.read_text())
    lines = [
        json.dumps(
            {
                "session": int(row["session"]),
                "query": int(row["query"]),
                "sku": row["document"],
                "position": int(row["position"]),
                "clicked": row["clicked"] == "1",
            }
        )
        for row in rows
    ]
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = succeed("clicks", "propensity", path, "--column", "document=sku")
    assert found == succeed("clicks", "propensity", log)


def test_user_behavior_insights_logs_are_read(tmp_path):
    queries, events = tmp_path / "queries", tmp_path / "events"
    shown = [["a", "b"], ["b", "a"]] * 6
    queries.write_text(
        "".join(
            json.dumps({"query_id": str(i), "user_query": "q", "query_response_hit_ids": hits})
            + "\n"
            for i, hits in enumerate(shown)
        )
    )
    events.write_text(
        "".join(
            json.dumps(
                {
                    "query_id": str(i),
                    "action_name": "click",
                    "event_attributes": {"object": {"object_id": hits[i % 4 == 3]}},
                }
            )
            + "\n"
            for i, hits in enumerate(shown)
        )
    )
    rows = table(succeed("clicks", "propensity", events, "--ubi", queries, "--method", "swap"))
    # Clicks on a: 6 of 6 first, 3 of 6 second; on b: 3 of 6 first, none second.
    assert float(rows[1]["propensity"]) == pytest.approx(1 / 3, rel=1e-5)
    message = fail("clicks", "propensity", events, "--ubi", queries, "--column", "document=sku")
    assert "--column cannot be used" in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("9,q,a,0,1", "line 3: positions must be integers from 1 to 100000; got 0"),
        ("9,q,a,x,1", "line 3: position must be a number; got 'x'"),
        ("9,q,a,1,2", "line 3: clicked must be 0 or 1; got 2"),
        ("9,q,a", "line 3: 3 fields; the header has 5"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, message):
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEAD}8,q,a,1,1\n{line}\n8,q,b,2,0\n")
    for command in ("propensity", "model"):
        assert message in fail("clicks", command, path)


def test_repeated_rows_are_dropped_on_request(log, ranking, theta, tmp_path):
    """Each command gives what it gives for the log without the repeated rows, and warns."""
    twice = tmp_path / "twice.csv"
    lines = log.read_text().splitlines(keepends=True)
    twice.write_text("".join([*lines, lines[-1], lines[-1]]))
    commands = [
        ["clicks", "propensity", "LOG"],
        ["clicks", "model", "LOG"],
        ["clicks", "model", log, "--held-out", "LOG"],
        ["clicks", "evaluate", "LOG", ranking, "--propensity", theta],
    ]
    for command in commands:
        of_log, of_twice = ([one if one != "LOG" else of for one in command] for of in (log, twice))
        assert 'on_error="drop" to keep the first' in fail(*of_twice)
        found = run(*of_twice, "--on-error", "drop", "--quiet")
        assert found.exit_code == 0, found.stderr
        assert found.stdout == run(*of_log, "--quiet").stdout != ""
        assert "2 rows repeat a document or a position" in found.stderr
        assert "on_error must be one of" in fail(*of_log, "--on-error", "keep")


def test_repeated_hits_are_dropped_on_request(tmp_path):
    queries, events, once = (tmp_path / name for name in ("queries", "events", "once"))
    row = {"user_query": "q", "query_response_hit_ids": ["a", "b", "a"]}
    queries.write_text("".join(json.dumps({"query_id": str(i), **row}) + "\n" for i in range(4)))
    once.write_text(queries.read_text().replace('"b", "a"]', '"b"]'))
    click = {"action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}
    events.write_text(json.dumps({"query_id": "0", **click}))
    command = ["clicks", "model", events, "--kind", "rates", "--quiet", "--ubi"]
    assert 'on_error="drop" to keep the first' in fail(*command, queries)
    found = run(*command, queries, "--on-error", "drop")
    assert found.stdout == succeed(*command, once)
    assert "4 rows repeat a document or a position" in found.stderr


@pytest.mark.parametrize("column", ["query", "document"])
@pytest.mark.parametrize("missing", ["null", "NaN", "1.5", "true", '""'])
def test_null_ids_are_rejected(log, theta, ranking, tmp_path, column, missing):
    """Not the document "None"; in rankings as in judgments of relevance."""
    path = tmp_path / "table.jsonl"
    row = {"query": '"q"', "document": '"a"', "relevance": "1"}
    text = ["{" + ", ".join(f'"{name}": {one}' for name, one in of.items()) + "}\n"
            for of in (row, {**row, column: missing})]  # fmt: skip
    path.write_text("".join(text))
    message = f"line 2: ids of {column} must be integers or words"
    command = ["clicks", "evaluate", log]
    assert message in fail(*command, path, "--propensity", theta)
    options = ["--propensity", theta, "--estimator", "dr", "--relevance", path]
    assert message in fail(*command, ranking, *options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: it must have a header"),
        ("position,theta\n1,1\n", "has no column 'propensity'; it has position, theta"),
        ("position,propensity\n", "has no rows below its header"),
        ("position,propensity\n1.5,1\n", "line 2: position must be an integer from 1 to 100000"),
        ("position,propensity,trust\n1,1,2\n", "trust must have a probability for each position"),
        ("position,propensity\n1,1\n2,0\n", "line 3: propensity must be finite and above 0"),
        ("position,propensity\n1,nan\n", "line 2: propensity must be finite and above 0"),
        ("position,propensity\n1,x\n", "line 2: propensity must be a number; got 'x'"),
        (
            "position,propensity\n0,1\n",
            "line 2: position must be an integer from 1 to 100000; got 0",
        ),
        ("position,propensity\n999999999999,1\n", "line 2: position must be an integer"),
        ("position,propensity\n1,1\n", "propensity must have one number for each position, 1 to 6"),
    ],
)
def test_bad_propensities_are_rejected(log, ranking, tmp_path, text, message):
    path = tmp_path / "theta.csv"
    path.write_text(text)
    assert message in fail("clicks", "evaluate", log, ranking, "--propensity", path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "dr"], "--estimator dr and --relevance require each other"),
        (["--estimator", "best"], "estimator must be one of"),
        (["-m", "map"], "metrics must be of ndcg, dcg, precision and mrr"),
        (["--column", "sku"], "--column must be NAME=COLUMN; got 'sku'"),
        (["--clip", 0.5], "clip"),
    ],
)
def test_bad_options_of_evaluate_are_rejected(log, ranking, theta, options, message):
    command = ["clicks", "evaluate", log, ranking, "--propensity", theta]
    assert message in fail(*command, *options)


def test_unsupported_logs_are_rejected(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEAD + "".join(f"{i},q,a,1,1\n{i},q,b,2,1\n" for i in range(9)))
    message = fail("clicks", "propensity", path)
    assert "does not identify the propensities of positions 2" in message
    assert "kind must be one of" in fail("clicks", "model", path, "--kind", "x")
    assert "--thresholds must be numbers" in fail("clicks", "model", path, "--thresholds", "x")
    assert "a pipe does not allow" in fail("clicks", "propensity", "-")
    assert "No such file" in fail("clicks", "propensity", tmp_path / "none")
    assert not [*tmp_path.glob("*.csv*")][1:]


def test_the_lines_of_the_guide_improve_the_ranker(tmp_path, monkeypatch):
    """From a log to a ranker that is better than the one that was in use."""
    pytest.importorskip("pandas", reason="no pandas")
    guide = Path(__file__).parents[2] / "docs" / "clicks.md"
    if not guide.is_file():
        pytest.skip("the guides are not part of what is installed")
    rng, n = np.random.default_rng(0), 40 * 10
    qid, docid = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    X = rng.normal(size=(n, 3))
    relevance = 1 / (1 + np.exp(1 - X[:, 0] - X[:, 1]))
    monkeypatch.chdir(tmp_path)
    for name, seed in (("log", 1), ("later", 2)):
        shown, row = simulate_sessions(qid, docid, X[:, 2], 4000, swap=0.3, random_state=seed)
        log = simulate_clicks(shown, relevance[row], random_state=seed)
        rows = zip(log.session, qid[row], docid[row], log.position, 1 * log.clicked, strict=True)
        text = "".join(",".join(map(str, one)) + "\n" for one in rows)
        (tmp_path / f"{name}.csv").write_text(HEAD + text)
    rows = zip(qid, docid, *X.T, strict=True)
    text = "".join(",".join(map(str, one)) + "\n" for one in rows)
    (tmp_path / "documents.csv").write_text("query,document,a,b,c\n" + text)

    parts = re.findall(r"^```(sh|py)\n(.*?)^```", guide.read_text(encoding="utf-8"), re.M | re.S)
    lines, names = 0, {}
    for kind, part in parts:
        lines += part.count("\n")
        if kind == "py":
            exec(part, names)
            continue
        for command in part.splitlines():
            words, _, target = command.partition(" > ")
            result = run(*words.split()[1:])
            assert result.exit_code == 0, result.stderr
            if target:
                Path(target).write_text(result.stdout)
    assert lines == 10
    assert (names["model"].coef_[:2] > 2 * abs(names["model"].coef_[2])).all()
    # What the last command prints is the truth, which is above that of the ranker in use.
    (found,) = [row for row in table(result.stdout) if row["measure"] == "ndcg@10"]

    def ndcg(scores):
        gains = [relevance[qid == q][np.argsort(-scores[qid == q])] for q in range(40)]
        best = [np.sort(one)[::-1] for one in gains]
        discounts = 1 / np.log2(np.arange(2, 12))
        return np.mean(np.array(gains) @ discounts / (np.array(best) @ discounts))

    new = ndcg(names["model"].predict(names["X"]))
    assert float(found["low"]) <= new <= float(found["high"])
    assert new > ndcg(X[:, 2]) + 0.05
