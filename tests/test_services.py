"""Examples of rankcore inside other programs; each is skipped where its package is missing."""

import importlib.util
import json
import os
import shutil
import threading
import warnings
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import rankcore as rc

FOLDER = Path(__file__).parents[1] / "examples" / "services"
if not FOLDER.exists():
    pytest.skip("the sources are not here", allow_module_level=True)


def example(name, *packages):
    """Import an example as a module, if its dependencies are installed."""
    for package in packages:
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ranker():
    X, relevance, qid = rc.datasets.make_letor(30, 10, random_state=0)
    return rc.RankBoost(10).fit(X, relevance, qid=qid)


# ---------------------------------------------------------------- frames and databases


def test_documents_of_a_parquet_file_are_ranked_inside_duckdb(tmp_path):
    assert example("duckdb_parquet", "duckdb", "pyarrow", "pandas").main(tmp_path)


def test_pandas_and_polars_give_the_same_positions():
    frames = example("frames", "pandas", "polars")
    columns, names = frames.data()
    by_pandas = frames.rank_pandas(columns, names)
    by_polars = frames.rank_polars(columns, names)
    # StandardScaler sums a column in the order of memory, which differs.
    np.testing.assert_allclose(by_polars["score"], by_pandas["score"], rtol=1e-12)
    assert by_polars["position"].to_list() == by_pandas["position"].tolist()
    # The first document of a query is the one of maximum score.
    best = by_pandas.loc[by_pandas.groupby("qid")["score"].idxmax()]
    assert (best["position"] == 1).all()


# ---------------------------------------------------------------- a service


@pytest.fixture
def client(ranker, tmp_path):
    service = example("rank_service", "fastapi", "prometheus_client", "httpx")
    with warnings.catch_warnings(action="ignore"):  # of the next httpx
        from fastapi.testclient import TestClient

    rc.save(ranker, tmp_path / "model")
    with TestClient(service.make_app(rc.Predictor(tmp_path / "model"))) as client:
        yield client


def test_the_service_answers_with_the_scores_of_the_model(client, ranker):
    X = np.random.default_rng(1).normal(size=(7, ranker.n_features_in_))
    answer = client.post("/rank", json={"rows": X.tolist()}).json()
    scores = ranker.predict(X)
    assert answer["scores"] == scores.tolist()  # JSON keeps every bit of a float
    assert answer["order"] == np.argsort(-scores, kind="stable").tolist()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"X": []}, 'the body must be {"rows": [[...], ...]}'),
        ({"rows": [[1.0, 2.0]]}, "rows must have 136 numbers each; got shape (1, 2)"),
        ({"rows": [[1.0] * 135 + ["a"]]}, "could not convert string to float"),
        ({"rows": [[None] * 136]}, "rows must be finite numbers"),
    ],
)
def test_service_explains_bad_requests(client, ranker, body, message):
    assert ranker.n_features_in_ == 136
    answer = client.post("/rank", json=body)
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_waiting_requests_are_scored_together(client, ranker):
    rng = np.random.default_rng(2)
    rows = [rng.normal(size=(n, ranker.n_features_in_)) for n in range(1, 41)]
    answers = [None] * len(rows)

    def ask(i):
        answers[i] = client.post("/rank", json={"rows": rows[i].tolist()}).json()["scores"]

    threads = [threading.Thread(target=ask, args=[i]) for i in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for X, found in zip(rows, answers, strict=True):
        assert found == ranker.predict(X).tolist()
    figures = dict(
        line.rsplit(" ", 1)
        for line in client.get("/metrics").text.splitlines()
        if not line.startswith("#")
    )
    assert float(figures['rank_requests_total{status="200"}']) == len(rows)
    assert float(figures["rank_batch_rows_sum"]) == sum(map(len, rows))
    assert 1 <= float(figures["rank_batch_rows_count"]) <= len(rows)
    assert client.get("/health").json() == {"learner": "RankBoost", "n_features": 136}


class FailingModel:
    """A model whose first call fails, as after an error of memory."""

    learner, n_features_in_ = "RankBoost", 2

    def __init__(self):
        self.calls = 0

    def predict(self, X):
        self.calls += 1
        if self.calls == 1:
            raise MemoryError("no memory for the scores of a row")
        return X.sum(axis=1)


@pytest.mark.parametrize("n", [1, 3000])  # in this thread, and in another one
def test_service_continues_after_a_failed_call(n):
    service = example("rank_service", "fastapi", "prometheus_client", "httpx")
    with warnings.catch_warnings(action="ignore"):  # of the next httpx
        from fastapi.testclient import TestClient

    body = {"rows": [[1.0, 2.0]] * n}
    with TestClient(service.make_app(FailingModel())) as client:
        answer = client.post("/rank", json=body)
        assert answer.status_code == 500
        assert "no memory for the scores" in answer.json()["detail"]
        assert client.post("/rank", json=body).json()["scores"] == [3.0] * n
        assert 'rank_requests_total{status="500"} 1.0' in client.get("/metrics").text


# ---------------------------------------------------------------- other tools


@pytest.mark.filterwarnings("ignore::Warning")  # MLflow's own
def test_an_mlflow_model_predicts_as_the_model_file(tmp_path):
    saved = example("mlflow_model", "mlflow", "pandas")
    X, relevance, qid = rc.datasets.make_letor(30, 10, random_state=0)
    import mlflow
    import pandas as pd

    frame = pd.DataFrame(X.astype(np.float64), columns=[f"f{j}" for j in range(X.shape[1])])
    stars = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))
    for i, model in enumerate(
        [
            rc.RankBoost(10).fit(frame, relevance, qid=qid),
            rc.CalibratedOrdinal(rc.PRank()).fit(frame, stars),
        ]
    ):
        folder = tmp_path / str(i)
        saved.save_mlflow(model, folder, frame)
        assert not list(folder.rglob("*.pkl"))
        loaded = mlflow.pyfunc.load_model(str(folder))
        assert loaded.metadata.get_input_schema().input_names() == list(frame.columns)
        found = loaded.predict(frame)
        assert found.iloc[:, 0].tolist() == model.predict(frame).tolist()
        if i:
            assert np.array_equal(found.iloc[:, 1:], model.predict_proba(frame))
    with pytest.raises(mlflow.exceptions.MlflowException, match="missing inputs"):
        loaded.predict(frame.drop(columns="f3"))


@pytest.mark.filterwarnings("ignore::Warning")  # MLflow's own
def test_mlflow_saves_estimators_whose_types_are_listed(tmp_path):
    mlflow_sklearn = pytest.importorskip("mlflow.sklearn")
    sio, pd = pytest.importorskip("skops.io"), pytest.importorskip("pandas")
    if "skops_trusted_types" not in signature(mlflow_sklearn.save_model).parameters:
        pytest.skip("this MLflow writes pickles")
    X, relevance, qid = rc.datasets.make_letor(30, 10, random_state=0)
    frame = pd.DataFrame(X.astype(np.float64), columns=[f"f{j}" for j in range(X.shape[1])])
    model = rc.RankBoost(10).fit(frame, relevance, qid=qid)
    types = sio.get_untrusted_types(data=sio.dumps(model))
    mlflow_sklearn.save_model(
        model,
        str(tmp_path / "saved"),
        input_example=frame[:3],
        skops_trusted_types=types,
        pip_requirements=["rankcore"],  # which it would find by loading the model elsewhere
    )
    loaded = mlflow_sklearn.load_model(str(tmp_path / "saved"))
    assert np.array_equal(loaded.predict(frame), model.predict(frame))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning")  # MLflow's own
def test_mlflow_predicts_in_an_environment_of_its_own(tmp_path, monkeypatch):
    """What `pip_requirements` names is all that is there, beside MLflow."""
    saved = example("mlflow_model", "mlflow", "pandas")
    import mlflow
    import pandas as pd

    if shutil.which("uv") is None:
        pytest.skip("no uv")
    wheels = os.environ.get("RANKCORE_DIST")
    if wheels is None:
        pytest.skip("RANKCORE_DIST names no folder with a wheel")
    X, relevance, qid = rc.datasets.make_letor(30, 10, random_state=0)
    frame = pd.DataFrame(X.astype(np.float64), columns=[f"f{j}" for j in range(X.shape[1])])
    model = rc.RankBoost(10).fit(frame, relevance, qid=qid)
    saved.save_mlflow(model, tmp_path / "saved", frame)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    for name in ["PIP_FIND_LINKS", "UV_FIND_LINKS"]:
        monkeypatch.setenv(name, wheels)
    mlflow.models.predict(
        str(tmp_path / "saved"), frame, output_path=str(tmp_path / "found"), env_manager="uv"
    )
    found = json.loads((tmp_path / "found").read_text())["predictions"]
    assert [row["score"] for row in found] == model.predict(frame).tolist()


@pytest.mark.filterwarnings("ignore::Warning")  # PyTerrier's own
def test_pyterrier_stage_reranks_documents():
    pyterrier = example("pyterrier_reranker", "pyterrier", "pandas")
    import pandas as pd

    X, relevance, qid = rc.datasets.make_letor(30, 10, random_state=0)
    documents = pd.DataFrame(
        {"qid": qid.astype(str), "docno": [f"d{i}" for i in range(len(X))], "features": [*X]}
    )
    qrels = documents[["qid", "docno"]].assign(label=relevance)
    stage = pyterrier.Reranker(rc.RankBoost(10)).fit(documents, qrels)
    order = np.argsort(qid.astype(str), kind="stable")  # of queries, in which sums round
    expected = rc.RankBoost(10).fit(X[order], relevance[order], qid=qid[order].astype(str))
    found = stage(documents.sample(frac=1, random_state=0)).sort_index()
    assert found["score"].tolist() == expected.predict(X).tolist()
    first = found[found["rank"] == 0]
    assert (first["score"] == found.groupby("qid")["score"].transform("max")[first.index]).all()


def test_ir_datasets_collection_is_learned(tmp_path):
    ranker = example("ir_datasets_ranker", "ir_datasets")
    import ir_datasets

    rng = np.random.default_rng(0)
    documents = {f"d{i}": rng.integers(0, 200, size=rng.integers(10, 60)) for i in range(150)}
    queries = {f"q{i:02}": rng.integers(0, 200, size=3) for i in range(20)}
    for name, texts in {"docs": documents, "queries": queries}.items():
        lines = [f"{key}\t{' '.join(f'w{w}' for w in words)}" for key, words in texts.items()]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    # Long documents are relevant, which similarities of words do not know.
    lines = [f"{q} 0 {d} {int(len(documents[d]) > 40)}" for q in queries for d in documents]
    (tmp_path / "qrels").write_text("\n".join(lines) + "\n")
    dataset = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs"),
        queries_tsv=str(tmp_path / "queries"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    X, _, qid = ranker.pairs(dataset)
    assert X.shape == (20 * 150, 3)
    assert len(np.unique(qid)) == 20
    texts = [" ".join(f"w{w}" for w in documents[d]) for d in documents]
    assert np.allclose(np.sort(X[:150, 2]), np.sort(np.log1p([len(text) for text in texts])))
    before, after = ranker.main(dataset)
    assert before < 0.9 < after


def test_skops_finds_classes_of_rankcore_alone():
    """Types that skops does not trust by itself: our classes, no functions, no code."""
    sio = pytest.importorskip("skops.io")
    X, relevance, qid = rc.datasets.make_letor(20, 10, random_state=0)
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))
    models = [learner().fit(X, y) for learner in [rc.PRank, rc.CuSumRank, rc.VotedPRank]]
    models += [rc.KernelPRank(kernel="rbf").fit(X, y), rc.CalibratedOrdinal(rc.PRank()).fit(X, y)]
    models += [
        learner.fit(X, relevance, qid=qid)
        for learner in [rc.PairwisePerceptron(), rc.RankBoost(5), rc.RankSVM()]
    ]
    for model in models:
        content = sio.dumps(model)
        untrusted = sio.get_untrusted_types(data=content)
        assert f"{type(model).__module__}.{type(model).__name__}" in untrusted
        assert all(name.startswith("rankcore.") for name in untrusted)
        again = sio.loads(content, trusted=untrusted)
        assert np.array_equal(again.predict(X), model.predict(X))
        with pytest.raises(sio.exceptions.UntrustedTypesFoundException):
            sio.loads(content)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_examples_name_missing_packages(name):
    text = (FOLDER / f"{name}.py").read_text()
    assert "pip install rankcore" in text.partition('"""\n')[0]
    assert len(text.splitlines()) <= 150
