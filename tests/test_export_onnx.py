"""ONNX: what a graph holds, and pipelines that skl2onnx converts."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import rankcore as rc
from declared import QID, X, Y, fitted, ranks_queries, walk
from test_export import LEARNERS

onnx = pytest.importorskip("onnx", reason="no onnx")
runtime = pytest.importorskip("onnxruntime", reason="no onnxruntime")
SINGLE = X.astype(np.float32)


def outputs_of(file, rows, name="rows"):
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {name: rows}), strict=True))


@walk(LEARNERS)
def test_scores_ranks_and_labels_equal_those_of_python(tmp_path, learner):
    model = fitted(learner)
    rc.export(model, tmp_path / "m.onnx", "onnx")
    found = outputs_of(tmp_path / "m.onnx", SINGLE)
    rows = SINGLE.astype(np.float64)
    if ranks_queries(learner):
        assert found.keys() == {"score"}
        np.testing.assert_allclose(found["score"], model.predict(rows), rtol=1e-12, atol=1e-13)
        return
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    np.testing.assert_array_equal(model.ranks_[found["rank"]], model.predict(rows))
    if hasattr(model, "project"):
        np.testing.assert_allclose(found["score"], model.project(rows), rtol=1e-12, atol=1e-13)
    elif "scores" not in found:
        shares = model.predict_proba(rows)
        np.testing.assert_allclose(found["probabilities"], shares, rtol=1e-12, atol=1e-13)
    else:
        # There a class has its distance from the best of the others.
        scores = np.sort(found["scores"], axis=1)
        best = found["scores"] == scores[:, -1:]
        others = np.where(best, scores[:, -2:-1], scores[:, -1:])
        expected = model.decision_function(rows)
        np.testing.assert_allclose(found["scores"] - others, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "classes", [["schlecht", "mäßig", "gut", ""], [1, 2, 3, 4], [0.5, 1.0, 1.5, 2.0]]
)
def test_labels_of_any_kind_are_exported(tmp_path, classes):
    model = rc.PRank(random_state=0).fit(X, np.array(classes)[Y - 1], classes=classes)
    names = ["a", "b", "c", "d", "größe"]
    rc.export(model, tmp_path / "m.onnx", "onnx", feature_names=names)
    found = outputs_of(tmp_path / "m.onnx", SINGLE)["label"]
    assert found.tolist() == model.predict(SINGLE.astype(np.float64)).tolist()
    (properties,) = onnx.load(tmp_path / "m.onnx").metadata_props
    assert (properties.key, properties.value.split("\n")) == ("feature_names", names)


@pytest.mark.parametrize("output", ["round", "mean", "median", "plurality"])
@pytest.mark.parametrize("learner", [rc.VotedPRank, rc.OAPBagging])
def test_votes_equal_those_of_python(tmp_path, learner, output):
    model = learner(random_state=0, max_iter=2).fit(X, Y)
    model.set_params(output="round" if output == "mean" else output)
    expected, project = model.predict(SINGLE), model.project(SINGLE)
    rc.export(model.set_params(output=output), tmp_path / "m.onnx", "onnx")
    found = outputs_of(tmp_path / "m.onnx", SINGLE)
    np.testing.assert_array_equal(found["label"], expected)
    np.testing.assert_array_equal(found["score"], project)


@pytest.mark.parametrize("decision", ["cusum", "count"])
@pytest.mark.parametrize("tie", ["high", "low"])
def test_ties_and_decisions_equal_those_of_python(tmp_path, decision, tie):
    rows = np.round(X)  # integers, of which many scores are equal
    options = {"decision": decision, "tie_break": tie, "average": False}
    model = rc.CuSumRank.published(**options).fit(rows, Y)
    rc.export(model, tmp_path / "m.onnx", "onnx", check=rows)
    found = outputs_of(tmp_path / "m.onnx", rows.astype(np.float32))
    np.testing.assert_array_equal(found["label"], model.predict(rows))


def test_single_rows_batches_and_doubles_are_accepted(tmp_path):
    model = rc.RankBoost(20).fit(X, Y, qid=QID)
    rc.export(model, tmp_path / "m.onnx", "onnx", dtype="float64")
    for n in [1, 2, 90]:
        found = outputs_of(tmp_path / "m.onnx", X[:n])["score"]
        np.testing.assert_allclose(found, model.predict(X[:n]), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'; got 'int8'"):
        rc.export(model, tmp_path / "m.onnx", "onnx", dtype="int8")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("params", [{}, {"max_leaf_nodes": 6}, {"missing": "zero"}], ids=str)
def test_infinite_values_take_the_side_of_the_largest_numbers(tmp_path, params, dtype):
    # Splits of missing values from all numbers have the threshold -inf.
    rng = np.random.default_rng(0)
    rows = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    model = rc.RankBoost(60, **params).fit(rows, Y + 3 * np.isnan(rows[:, 0]), qid=QID)
    rc.export(model, tmp_path / "m.onnx", "onnx", dtype=np.dtype(dtype).name)
    picked = rng.choice([0.0, 1.0, np.nan, -np.inf, np.inf], size=(500, X.shape[1])).astype(dtype)
    largest = np.finfo(dtype).max
    expected = model.predict(np.clip(picked, -largest, largest).astype(np.float64))
    found = outputs_of(tmp_path / "m.onnx", picked)["score"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_model_without_stumps_is_exported(tmp_path):
    rows = np.ones((90, 5))
    model = rc.RankBoost(5).fit(rows, Y, qid=QID)
    rc.export(model, tmp_path / "m.onnx", "onnx", check=rows)


@walk(LEARNERS)
def test_skl2onnx_converts_learners_and_pipelines(learner):
    skl2onnx = pytest.importorskip("skl2onnx", reason="no skl2onnx")
    names = rc.exporters.register_onnx_converters()
    assert type(learner).__name__ in names
    model = fitted(learner)
    for front in [[], [MaxAbsScaler().fit(SINGLE)], [StandardScaler().fit(SINGLE)]]:
        whole = make_pipeline(*front, model) if front else model
        content = skl2onnx.to_onnx(whole, SINGLE[:1]).SerializeToString()
        found = outputs_of(content, SINGLE, "X")
        rows = make_pipeline(*front).transform(SINGLE) if front else SINGLE
        rows = rows.astype(np.float64)
        if ranks_queries(learner):
            np.testing.assert_allclose(found["score"], model.predict(rows), rtol=1e-4, atol=1e-6)
            continue
        # The scaler is skl2onnx's, in single precision: ranks next to a threshold may differ.
        assert np.mean(found["label"] == model.predict(rows)) > 0.98
        if not front:
            np.testing.assert_array_equal(found["label"], model.predict(rows))


def test_labels_without_an_onnx_type_are_rejected(tmp_path):
    days = np.array(["2020-01-01", "2021-05-05"], dtype="M8[D]")[(X[:, 0] > 0).astype(int)]
    model = rc.PRank(random_state=0).fit(X, days)
    with pytest.raises(ValueError, match="labels must be numbers or text; got datetime64"):
        rc.export(model, tmp_path / "m.onnx", "onnx")
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("learner", [rc.KernelPRank, rc.KernelCuSumRank])
def test_kernel_learners_keep_digits_of_columns_far_from_zero(tmp_path, learner, kernel):
    # The mean of the second column is 10,000 of its deviations.
    columns = (X + np.array([0, 1e4, 0, -3, 5])) * np.array([1, 1, 1e-3, 1, 1])
    model = learner(kernel, random_state=0).fit(columns, Y)
    for dtype in (np.float32, np.float64):
        rows = columns.astype(dtype)
        rc.export(model, tmp_path / "m.onnx", "onnx", dtype=np.dtype(dtype).name)
        found = outputs_of(tmp_path / "m.onnx", rows)
        # Only the input is rounded: the same rows give the same ranks in Python.
        np.testing.assert_array_equal(found["label"], model.predict(rows))
        np.testing.assert_allclose(found["score"], model.project(rows), rtol=1e-9, atol=1e-9)
    assert np.mean(model.predict(columns.astype(np.float32)) == model.predict(columns)) > 0.9
