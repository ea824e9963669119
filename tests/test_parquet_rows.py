"""Parquet files: the models of the same tables in memory, whole queries, names of features."""

import io
import json
import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.cli.options import Layout
from rankcore.cli.rows import read
from rankcore.datasets import (
    dump_letor,
    file_rows,
    load_letor,
    open_rows,
    parquet_rows,
    row_cache_writer,
)

pa = pytest.importorskip("pyarrow", reason="needs the parquet extra", minversion="17")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ["age", "price", "rate", "a.b", "size"]


@pytest.fixture
def small(monkeypatch):
    """Blocks of few values, so that small data have many."""
    for module in (file_rows, row_cache_writer, parquet_rows):
        monkeypatch.setattr(module, "BLOCK_VALUES", 100)
    monkeypatch.setattr(parquet_rows, "DECODED_VALUES", 170)


@pytest.fixture
def frame():
    """Return queries of several sizes, features of several types, zeros among them."""
    rng = np.random.default_rng(0)
    qid = np.repeat(rng.permutation(60), rng.integers(1, 12, 60))
    n = qid.size
    table = pd.DataFrame(rng.normal(size=(n, 5)), columns=NAMES)
    table.loc[rng.random(n) < 0.3, "price"] = 0
    table["rate"] = table["rate"].astype(np.float32)
    table["size"] = rng.integers(0, 9, n)
    table["label"] = np.clip(np.round(table["age"] + 0.2 * table["size"]), 0, 3).astype(int)
    table.insert(2, "qid", [f"query {number}" for number in qid])
    return table


@pytest.fixture
def path(frame, tmp_path):
    more = {"row_group_size": 64, "write_page_checksum": True}
    frame.to_parquet(tmp_path / "rows.parquet", **more)
    return tmp_path / "rows.parquet"


def opened(path, kind, **more):
    return open_rows(path, cache=path.with_name("cache") if kind == "cache" else None, **more)


@pytest.mark.parametrize("kind", ["file", "cache"])
@pytest.mark.parametrize(
    "model",
    [
        rc.PRank(max_iter=3, shuffle=False),
        rc.CuSumRank(max_iter=2, shuffle=False),
        rc.PairwisePerceptron("averaged", shuffle=False, max_iter=3),
        rc.PairwisePerceptron("committee", shuffle=False, max_iter=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_equal_those_of_a_frame_in_memory(model, kind, path, frame, small, monkeypatch):
    monkeypatch.setattr(rc.PairwisePerceptron, "_solver", "lazy")  # one order of sums
    X, y = frame[NAMES], frame["label"]
    more = {"qid": frame["qid"]} if isinstance(model, rc.PairwisePerceptron) else {}
    expected = clone(model).fit(X, y, **more)
    found = clone(model).fit(opened(path, kind))
    assert np.array_equal(found.coef_, expected.coef_)
    assert found.history_ == expected.history_
    assert found.feature_names_in_.tolist() == NAMES
    assert np.array_equal(found.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(X.rename(columns={"age": "years"}))


@pytest.mark.parametrize(
    "model", [rc.RankBoost(5), rc.RankBoost(3, max_leaf_nodes=4), rc.RankSVM(random_state=0)]
)
@pytest.mark.parametrize("kind", ["parquet", "cache"])
def test_learners_of_all_rows_equal_fits_in_memory(model, kind, path, frame, small):
    found = clone(model).fit(opened(path, kind))
    assert found.feature_names_in_.tolist() == NAMES
    values = frame[NAMES].to_numpy(float)
    X = csr_array(
        (values.ravel(), np.tile(range(5), len(values)), np.arange(0, values.size + 1, 5))
    )
    X.indices = X.indices.astype(np.int32)
    # Queries in the order of the rows, which is that of their sums.
    expected = clone(model).fit(X, frame["label"], qid=pd.factorize(frame["qid"])[0])
    assert np.array_equal(found.predict(frame[NAMES]), expected.predict(X))


@pytest.mark.parametrize("kind", ["file", "cache"])
def test_windows_have_the_rows_of_the_file(kind, path, frame, small):
    rows = opened(path, kind)
    windows = []
    for window in rows.windows(5, None):
        values = window.rows.arrays[0].reshape(-1, 5).copy()
        windows.append((values, window.labels.copy(), window.queries.copy(), window.done))
    assert len(windows) > 5
    assert windows[-1][3] == rows.size
    assert np.array_equal(np.vstack([one[0] for one in windows]), frame[NAMES])
    assert np.array_equal(np.concatenate([one[1] for one in windows]), frame["label"])
    sizes = np.concatenate([np.bincount(one[2]) for one in windows])
    assert sizes.tolist() == frame.groupby("qid", sort=False).size().tolist()
    # Each but the last is full with its last query, and not before.
    for values, _, queries, _ in windows[:-1]:
        assert len(values) >= 20
        assert np.count_nonzero(queries < queries[-1]) < 20


def test_scan_covers_all_rows(path, frame, small):
    stats = open_rows(path).stats()
    assert (stats.n_rows, stats.n_features, stats.n_values) == (len(frame), 5, 5 * len(frame))
    assert stats.in_queries
    assert stats.labels.tolist() == [0, 1, 2, 3]
    assert np.array_equal(stats.magnitudes, frame[NAMES].abs().max())


def test_many_files_directories_and_patterns_are_read(frame, tmp_path, small, monkeypatch):
    monkeypatch.setattr(rc.PairwisePerceptron, "_solver", "lazy")  # one order of sums
    folder = tmp_path / "parts"
    folder.mkdir()
    for number, first in enumerate(range(0, len(frame), 70)):
        frame[first : first + 70].to_parquet(folder / f"part-{number}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").write_text("no table")
    model = rc.PairwisePerceptron(shuffle=False, max_iter=2)
    expected = clone(model).fit(frame[NAMES], frame["label"], qid=frame["qid"])
    for source in [folder, str(folder / "*.parquet"), sorted(folder.glob("*.parquet"))]:
        assert np.array_equal(clone(model).fit(open_rows(source)).coef_, expected.coef_)
    open_rows(folder, cache=tmp_path / "rows")
    assert np.array_equal(clone(model).fit(open_rows(tmp_path / "rows")).coef_, expected.coef_)
    frame[:3].to_parquet(folder / "part-9.parquet")
    with pytest.raises(ValueError, match="was made from other files"):
        open_rows(folder, cache=tmp_path / "rows")
    with pytest.raises(
        ValueError, match=r"part-9.parquet, row 0: query .* continues after another"
    ):
        clone(model).fit(open_rows(folder))


def test_query_ids_of_files_are_of_one_kind(tmp_path):
    # A query 1 and a query "1" would be two.
    for name, ids in [("a", [1, 1]), ("b", [2.0, 2.0]), ("c", ["1", "1"])]:
        table = pd.DataFrame({"x": [0.5, 1.5], "label": [0, 1], "qid": ids})
        table.to_parquet(tmp_path / f"{name}.parquet", index=False)
    learner = rc.PairwisePerceptron(max_iter=1)
    learner.fit(open_rows([tmp_path / "a.parquet", tmp_path / "b.parquet"]))
    with pytest.raises(
        ValueError, match=r"c.parquet: column 'qid' holds str, .* before it numbers"
    ):
        learner.fit(open_rows(tmp_path))


def test_columns_are_selected_by_name(frame, tmp_path):
    frame = frame.rename(columns={"label": "stars", "qid": "topic"})
    frame["docid"] = "d1"
    frame.to_parquet(tmp_path / "rows.parquet")
    path = tmp_path / "rows.parquet"
    taken = {"label": "stars", "qid": "topic", "columns": ["size", "age"]}
    model = rc.PRank(shuffle=False).fit(open_rows(path, **taken))
    expected = rc.PRank(shuffle=False).fit(frame[["size", "age"]], frame["stars"])
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.feature_names_in_.tolist() == ["size", "age"]
    with pytest.raises(ValueError, match=r"no columns named 'label'.*it has age, price"):
        rc.PRank().fit(open_rows(path))
    others = rc.PRank().fit(open_rows(path, label="stars", qid="topic"))
    assert others.feature_names_in_.tolist() == [
        name for name in frame.columns if name not in ("stars", "topic", "docid")
    ]
    frame["brand"] = "acme"
    frame.to_parquet(path)
    with pytest.raises(ValueError, match=r"column 'brand' is of type .*string.*columns="):
        rc.PRank().fit(open_rows(path, label="stars", qid="topic"))
    with pytest.raises(ValueError, match=r"column 'topic' is of type"):
        rc.PRank().fit(open_rows(path, label="stars"))
    with pytest.raises(ValueError, match="labels must be numbers; column 'topic'"):
        rc.PRank().fit(open_rows(path, label="topic", columns=["age"]))
    with pytest.raises(ValueError, match="must be different ones"):
        open_rows(path, label="stars", columns=["age", "stars"])
    with pytest.raises(ValueError, match="got n_features=3"):
        open_rows(path, **taken, n_features=3)
    cached = open_rows(path, **taken, cache=tmp_path / "cache")
    assert cached.feature_names.tolist() == ["size", "age"]
    with pytest.raises(ValueError, match="other settings"):
        open_rows(path, **(taken | {"columns": ["age", "size"]}), cache=tmp_path / "cache")
    with pytest.raises(ValueError, match="with fixed columns: omit"):
        open_rows(tmp_path / "cache", label="stars")


def test_all_types_of_numbers_are_read(tmp_path):
    columns = {
        "b": pa.array([True, False, None]),
        "d": pa.array([1, 2, 3], pa.decimal128(5, 2)),
        "u": pa.array([1, None, 3], pa.uint8()),
        "h": pa.array(np.array([1, 2, 0.5], np.float16)),
        "label": pa.array([True, False, True]),
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="contains NaN"):
        rc.PRank().fit(rows)
    part, *rest = rows.parts(None, 1000, 1000)
    nan = np.nan
    expected = [[1, 1, 1, 1], [0, 2, nan, 2], [nan, 3, 3, 0.5]]
    assert np.array_equal(part.X.toarray(), expected, equal_nan=True)
    assert part.labels.tolist() == [1, 0, 1]
    assert part.queries is None
    assert rest == []


def test_scaler_gets_the_column_names(path, frame, small):
    scaler = StandardScaler()
    learner = rc.PRank(shuffle=False).fit(open_rows(path, scaler=scaler))
    pipeline = make_pipeline(scaler, learner)
    assert scaler.feature_names_in_.tolist() == NAMES
    expected = make_pipeline(StandardScaler(), rc.PRank(shuffle=False))
    expected.fit(frame[NAMES], frame["label"])
    # Means and variances of blocks are put together, those of memory found at once.
    assert np.allclose(scaler.scale_, expected[0].scale_, rtol=1e-6)  # of a float32 column, too
    assert np.mean(pipeline.predict(frame[NAMES]) == expected.predict(frame[NAMES])) > 0.98


@pytest.mark.parametrize("damage", ["end", "middle"])
def test_damaged_files_are_named(damage, path):
    content = bytearray(path.read_bytes())
    if damage == "end":
        del content[-20:]
    else:
        content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows.parquet is damaged"):
        rc.PRank().fit(open_rows(path))


def test_files_that_are_not_parquet_are_rejected(path, frame, tmp_path):
    text = tmp_path / "rows.txt"
    dump_letor([[1.0], [2.0]], [1, 2], text)
    with pytest.raises(ValueError, match=r"rows.txt is not a Parquet file, unlike others"):
        open_rows([path, text])
    with pytest.raises(ValueError, match=r"are for Parquet files; .*rows.txt is not one"):
        open_rows(text, label="label")
    with pytest.raises(ValueError, match="zero_based is for text"):
        open_rows(path, zero_based=True)
    with pytest.raises(ValueError, match=r"Parquet, which is read from a path by open_rows"):
        load_letor(path)
    with pytest.raises(ValueError, match=r"Parquet, which is read from a path by open_rows"):
        open_rows(io.BytesIO(path.read_bytes()))
    frame[:0].to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match="holds no examples"):
        rc.PRank().fit(open_rows(tmp_path / "empty.parquet"))
    frame.drop(columns=NAMES).to_parquet(tmp_path / "bare.parquet")
    with pytest.raises(ValueError, match="has no columns of features besides label, qid"):
        open_rows(tmp_path / "bare.parquet")
    frame.assign(label=[None, *frame["label"][1:]]).to_parquet(tmp_path / "missing.parquet")
    with pytest.raises(ValueError, match="1 labels are missing in column 'label'"):
        rc.PRank().fit(open_rows(tmp_path / "missing.parquet"))


BIG = 2**53 + 1


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("x", pa.array([1, BIG, 3, 4]), "integers beyond 2\\*\\*53"),
        ("x", pa.array([1, -BIG, 3, 4]), "integers beyond 2\\*\\*53"),
        ("x", pa.array([1, 2**64 - 1, 3, 4], pa.uint64()), "integers beyond 2\\*\\*53"),
        ("label", pa.array([1, BIG, 3, 4]), "integers beyond 2\\*\\*53"),
        ("label", pa.array([1, np.nan, 3, 4]), "labels must be finite"),
        ("label", pa.array([1, np.inf, 3, 4]), "labels must be finite"),
        ("qid", pa.array([[1]] * 4), "ids must be numbers or text"),
        ("qid", pa.array([{"a": 1}] * 4), "ids must be numbers or text"),
        ("qid", pa.array([1.0, 1.0, np.nan, 2.0]), "1 queries are missing"),
    ],
)
def test_unsuitable_columns_are_named(name, column, message, tmp_path):
    columns = {"label": pa.array([1, 2, 1, 2]), "x": pa.array([1.0, 2.0, 3.0, 4.0])}
    pq.write_table(pa.table({**columns, name: column}), tmp_path / "rows.parquet")
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(ValueError, match=rf"rows.parquet: .*{name!r}.*") as found:
            open_rows(tmp_path / "rows.parquet", cache=cache).stats()
        assert re.search(message, str(found.value))


def test_integers_that_float64_represents_are_accepted(tmp_path):
    columns = {"label": [1, 2], "x": [2**53, -(2**53)], "y": [1, None]}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", columns=["x"])
    (window,) = rows.windows(1, None)
    assert window.rows.arrays[0].tolist() == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize("kind", ["ArrowInvalid", "ArrowNotImplementedError", "ArrowTypeError"])
def test_errors_of_arrow_name_the_file(kind, path, monkeypatch):
    def reject(*args, **kwargs):
        raise getattr(pa, kind)("no such codec")

    for name in ["iter_batches", "read"]:
        with monkeypatch.context() as patched:
            patched.setattr(pq.ParquetFile, name, reject)
            look = partial(read, str(path), Layout(), None)  # a bar only counts lines of text
            if name == "iter_batches":
                look = open_rows(path).stats
            with pytest.raises(ValueError, match=r"rows.parquet is damaged, or .*no such codec"):
                look()
    monkeypatch.setattr(pq, "ParquetFile", reject)
    with pytest.raises(ValueError, match=r"rows.parquet is damaged, or .*no such codec"):
        open_rows(path)


def test_missing_pyarrow_names_the_package_to_install(path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(parquet_rows, "import_module", missing)
    with pytest.raises(ValueError, match=r"pip install 'rankcore\[parquet\]'"):
        open_rows(path)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")
def test_memory_does_not_grow_with_row_groups(tmp_path):
    """A row group of 160 MB: what is resident beyond an idle interpreter is a part of it."""
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.parquet"
    n, d = 400_000, 50
    schema = pa.schema([(f"f{j}", pa.float64()) for j in range(d)] + [("label", pa.int64())])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        values = rng.normal(size=(d, n))
        columns = [*map(pa.array, values), pa.array(rng.integers(1, 4, n))]
        writer.write_table(pa.table(columns, schema=schema), row_group_size=n)
    del values, columns
    code = (
        "import rankcore as rc, pyarrow.parquet, scipy.sparse; rc.PRank; rows = rc.datasets.{}; "
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    fit = f"open_rows({str(path)!r}); rc.PRank(max_iter=1, shuffle=False).fit(rows)"

    def peak(what):
        command = [sys.executable, "-W", "ignore", "-c", code.format(what)]
        return int(subprocess.check_output(command)) * 1024

    assert os.path.getsize(path) > 160e6
    # Arrow's threads give memory back when they come to it, on a busy machine later: some 110 MB,
    # now and then 140. The least of several is what the rows take.
    idle = peak("open_rows")
    assert any(peak(fit) - idle < 140e6 for _ in range(4))


# ---------------------------------------------------------------- the command line


def run(*args):
    pytest.importorskip("typer", reason="the command line needs the cli extra")
    from typer.testing import CliRunner

    from rankcore.cli.app import app

    return CliRunner().invoke(app, list(map(str, args)))


def succeed(*args):
    result = run(*args)
    assert result.exit_code == 0, result.stderr
    assert "warning" not in result.stderr
    return result.stdout


@pytest.mark.parametrize("scale", ["none", "standard"])
def test_the_command_trains_evaluates_and_predicts(scale, path, frame, tmp_path):
    pytest.importorskip("rich")
    order = ("--no-shuffle", "--epochs", 3, "--model", "prank", "--scale", scale, "--json")
    facts = json.loads(succeed("train", path, "--valid", path, "-o", tmp_path / "model", *order))
    assert facts["features"] == 5
    assert facts["valid_rank_loss"] < 0.6
    model = rc.load(tmp_path / "model")
    expected = model.predict(frame[NAMES])
    # Columns are taken by name, in whatever order; labels need not be there.
    frame[["qid", *reversed(NAMES)]].to_parquet(tmp_path / "other.parquet")
    found = succeed("predict", tmp_path / "model", tmp_path / "other.parquet").split()
    assert list(map(int, found)) == expected.tolist()
    report = json.loads(succeed("evaluate", tmp_path / "model", path, "--json"))
    assert report["rank_loss"] == pytest.approx(np.abs(expected - frame["label"]).mean())
    dump_letor(frame[NAMES].to_numpy(float), frame["label"], tmp_path / "rows.txt")
    found = succeed("predict", tmp_path / "model", tmp_path / "rows.txt").split()
    assert list(map(int, found)) == expected.tolist()


def test_the_command_trains_a_ranker_and_writes_a_run(path, frame, tmp_path):
    pytest.importorskip("rich")
    facts = json.loads(succeed("train", path, "-o", tmp_path / "model", "--json"))
    assert facts["chosen_because"] == "there is a column of queries"
    assert facts["model"] == "pairwise"
    frame["qid"] = frame["qid"].str.replace(" ", "")
    frame["docid"] = [f"d{number}" for number in range(len(frame))]
    frame.to_parquet(tmp_path / "ids.parquet")
    succeed("predict", tmp_path / "model", tmp_path / "ids.parquet", "--run", tmp_path / "run")
    lines = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    assert {line[-4] for line in lines} == set(frame["docid"])


def test_the_command_takes_names_of_columns(frame, tmp_path):
    pytest.importorskip("rich")
    frame = frame.rename(columns={"label": "stars", "qid": "topic"})
    frame.to_parquet(tmp_path / "rows.parquet")
    named = ("--label", "stars", "--qid", "topic", "--columns", "age,size")
    out = (tmp_path / "rows.parquet", *named, "--json", "-o")
    facts = json.loads(succeed("train", *out, tmp_path / "model"))
    assert (facts["model"], facts["features"]) == ("pairwise", 2)
    facts = json.loads(succeed("cache", *out, tmp_path / "cache"))
    assert facts["in_queries"]
    result = run("train", tmp_path / "rows.parquet", "-o", tmp_path / "model")
    assert result.exit_code == 1
    assert "no columns named 'label'" in result.stderr


@pytest.mark.parametrize("scaled", [False, True])
def test_explanations_name_the_columns(scaled, path, frame, tmp_path):
    pytest.importorskip("rich")
    model = rc.PRank(shuffle=False)
    if scaled:
        model = make_pipeline(StandardScaler(), model)
    rc.save(model.fit(frame[NAMES], frame["label"]), tmp_path / "model")
    other = frame[[*reversed(NAMES), "label", "qid"]].rename(columns={"label": "stars"})
    other.to_parquet(tmp_path / "rows.parquet")
    args = ("explain", tmp_path / "model", tmp_path / "rows.parquet", "--json")
    found = json.loads(succeed(*args, "--label", "stars"))
    expected = rc.explain.global_importance(model, frame[NAMES])
    assert found["feature_names"] == NAMES
    assert found["importances"] == pytest.approx(expected.importances.tolist())
    assert json.loads(succeed(*args)) == found  # importances need no labels
    largest = frame["qid"].value_counts().index[0]
    named = json.loads(succeed(*args, "--label", "stars", "--qid", "qid", "--query", largest))
    assert named["feature_names"] == NAMES


def test_dask_reads_parquet(path, frame):
    dask_frames = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    import rankcore.dask as rd

    table = dask_frames.read_parquet(path)
    # Moments of columns would be summed by parts.
    settings = {"shuffle": False, "max_iter": 2, "standardize": False}
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ):
        found = rd.PRank(**settings).fit(table[NAMES], table["label"]).to_local()
    expected = rc.PRank(**settings).fit(frame[NAMES], frame["label"])
    assert np.array_equal(found.coef_, expected.coef_)
