"""Exported probabilities: C and ONNX say what Python says, and what curves say, read plainly."""

import ctypes
import shutil
import sys
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import rankcore as rc
from rankcore.exporters.checking import check_export
from rankcore.exporters.described import describe

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
Y = np.clip(np.round(X.sum(axis=1) + RNG.normal(size=400)) + 3, 1, 5).astype(int)
TARGETS = ["c", "onnx"]
INSIDE = {
    "PRank": rc.PRank(random_state=0),
    "WidrowHoff": rc.WidrowHoff(random_state=0),
    "scaled CuSumRank": make_pipeline(StandardScaler(), rc.CuSumRank(random_state=0)),
    "votes": rc.OAPVoting(5, random_state=0),
    "kernel": rc.KernelPRank(budget=20, random_state=0),
    "probabilities": rc.OrdinalLogistic(random_state=0),
    "calibrated": rc.CalibratedOrdinal(rc.PRank(random_state=0)),
    "frozen": FrozenEstimator(rc.PRank(margin=0.0, random_state=0).fit(X[:200], Y[:200])),
    "frozen pipeline": FrozenEstimator(
        make_pipeline(MaxAbsScaler(), rc.PRank(random_state=0)).fit(X[:200], Y[:200])
    ),
}
METHODS = ["cumulative", "isotonic"]


def calibrated(inside="PRank", method="cumulative", **options):
    return rc.CalibratedOrdinal(INSIDE[inside], method=method, **options)


def many_rows():
    """Random rows; some of equal scores, some of very large ones."""
    rows = np.vstack([X, RNG.normal(size=(600, 5)), np.zeros((2, 5)), 1e6 * X[:20]])
    return np.vstack([rows, np.round(rows[:400])])


def needs(target):
    if target == "onnx":
        pytest.importorskip("onnx", reason="no onnx")
        pytest.importorskip("onnxruntime", reason="no onnxruntime")
    elif sys.platform == "win32" or shutil.which("cc") is None:
        pytest.skip("no C compiler that takes the options of Unix")


def exported(model, folder, target, rows):
    needs(target)
    options = {"dtype": "float64"} if target == "onnx" else {}
    return rc.export(model, folder / f"m.{target}", target, check=rows, **options)


def in_onnxruntime(path, rows):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 2  # a warning would be of something we left in the graph
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    (given,) = session.get_inputs()
    return dict(zip(names, session.run(None, {given.name: rows}), strict=True))


def in_c(folder, model):
    from test_export_c import Exported

    return Exported(model, folder).library


def probabilities_in_c(library, rows, k):
    found = np.empty((len(rows), k))
    for row, out in zip(np.ascontiguousarray(rows, dtype=np.float64), found, strict=True):
        library.ranker_probabilities(*(one.ctypes.data_as(ctypes.c_void_p) for one in (row, out)))
    return found


def plainly(model, scores):
    """Return the curves of a model, as the literature has them."""
    z = (scores - model.center_) / model.scale_
    curves = model.curves_
    if model.method == "cumulative":
        below = expit(curves.thresholds - curves.slope * z[:, None])
        below = np.column_stack([np.zeros(z.size), below, np.ones(z.size)])
        return np.diff(below, axis=1)
    above = [np.interp(z, curves.knots, column) for column in curves.above.T]
    above = np.column_stack([np.ones(z.size), *above, np.zeros(z.size)])
    return -np.diff(above, axis=1)


@pytest.mark.parametrize(("method", "front"), [("cumulative", None), ("isotonic", MinMaxScaler())])
@pytest.mark.parametrize(("inside", "target"), [*zip(INSIDE, cycle(TARGETS), strict=False)])
def test_every_calibrated_learner_is_exported(tmp_path, capsys, target, inside, method, front):
    model = calibrated(inside, method)
    if front is not None:
        model = make_pipeline(front, model)
    model.fit(X, Y)
    found = exported(model, tmp_path, target, many_rows())
    assert "largest difference of a probability" in capsys.readouterr().out
    if target == "c":
        assert (found.largest_difference, found.probability_difference) == (0.0, 0.0)
    else:
        # A score to rounding; curves at most 400 times as steep as scores are large.
        assert found.ulps < 4
        assert found.probability_difference < 1e-11


@pytest.mark.parametrize(
    ("loss", "method"),
    [*zip(["absolute", "zero_one", "squared", "kappa"], cycle(METHODS), strict=False)],
)
@pytest.mark.parametrize("target", TARGETS)
def test_predictions_for_every_loss_equal_those_of_python(tmp_path, target, loss, method):
    model = calibrated("votes", method, loss=loss).fit(X, Y)
    found = exported(model, tmp_path, target, many_rows())
    # Votes are counted: scores are the same to the bit, and with them all that follows.
    assert (found.largest_difference, found.probability_difference) == (0.0, 0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", TARGETS)
def test_scores_on_and_next_to_knots_give_the_probabilities_of_python(tmp_path, target, method):
    """One feature, so that scores are one product: the same in every engine."""
    x = np.round(RNG.normal(size=(300, 1)), 1)  # many ties
    y = np.clip(np.round(2 * x[:, 0] + RNG.normal(size=300)) + 3, 1, 5).astype(int)
    learner = FrozenEstimator(rc.PRank(random_state=0).fit(x, y))
    model = rc.CalibratedOrdinal(learner, method=method).fit(x, y)
    rows = np.unique(x).reshape(-1, 1)
    curves = model.curves_
    if method == "isotonic":
        # Frozen: knots are scores of the rows themselves.
        z = (model.project(rows) - model.center_) / model.scale_
        assert np.isin(curves.knots, z).all()
    else:
        weight = learner.estimator.coef_[0]
        centers = curves.thresholds / curves.slope * model.scale_ + model.center_
        rows = np.vstack([rows, (centers / weight).reshape(-1, 1)])
    for _ in range(3):
        rows = np.vstack([rows, np.nextafter(rows, np.inf), np.nextafter(rows, -np.inf)])
        rows = np.unique(rows).reshape(-1, 1)
    rows = np.vstack([rows, [[0.0], [-0.0], [1e300], [-1e300], [5e-324]]])
    found = exported(model, tmp_path, target, rows)
    assert (found.largest_difference, found.probability_difference) == (0.0, 0.0)
    np.testing.assert_allclose(
        model.predict_proba(rows), plainly(model, model.project(rows)), rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("target", TARGETS)
def test_overflowing_scores_are_rejected(tmp_path, target, method):
    """Python rejects such rows; engines say what the curves have far out, and of NaN a NaN."""
    needs(target)
    model = calibrated("frozen", method).fit(X, Y)
    weights = INSIDE["frozen"].estimator.coef_
    assert np.abs(weights).max() > 10
    highest = np.where(weights > 0, 1.7e308, -1.7e308)
    rows = np.vstack([highest, -highest, np.full(5, np.nan), X[:2]])
    with pytest.raises(ValueError, match="NaN"):
        exported(model, tmp_path, target, rows)
    if target == "c":
        found = probabilities_in_c(in_c(tmp_path, model), rows, 5)
    else:
        rc.export(model, tmp_path / "m", "onnx", dtype="float64")
        found = in_onnxruntime(tmp_path / "m", rows)["probabilities"]
    scores = np.array([np.inf, -np.inf, np.nan, *model.project(X[:2])])
    with np.errstate(invalid="ignore"):
        expected = plainly(model, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("target", TARGETS)
def test_curves_with_one_or_two_knots_are_exported(tmp_path, target):
    model = calibrated("frozen", "isotonic").fit(np.ones((60, 5)), Y[:60], classes=[1, 2, 3, 4, 5])
    assert model.curves_.knots.size == 1
    rows = np.vstack([np.ones((2, 5)), X[:20]])
    assert exported(model, tmp_path, target, rows).n_rows == 22
    above = np.array([[0.8, 0.5, 0.3, 0.1], [0.9, 0.9, 0.4, 0.1]])
    model.curves_ = type(model.curves_)(np.array([-1.0, 1.0]), above)
    assert exported(model, tmp_path, target, rows).probability_difference < 1e-12


@pytest.mark.parametrize("target", TARGETS)
def test_constants_near_0_and_1_survive_single_precision(tmp_path, target):
    """The runtime leaves out what it takes for a product with 1, or a sum with 0."""
    model = make_pipeline(StandardScaler(), calibrated("frozen")).fit(X, Y)
    model[-1].center_, model[-1].scale_ = 1e-60, 1 + 1e-9
    model[-1].curves_ = type(model[-1].curves_)(np.array([-1e3, -1.0, 0.0, 1e3]), 1 - 1e-9)
    exported(model, tmp_path, target, many_rows())
    narrow = RNG.normal(size=(100, 1))
    scaler = StandardScaler().fit(narrow)
    scaler.mean_[:], scaler.scale_[:] = 1e-60, 1 + 1e-12
    learner = rc.CalibratedOrdinal(INSIDE["PRank"], method="isotonic")
    model = make_pipeline(scaler, learner.fit(narrow, Y[:100]))
    exported(model, tmp_path, target, narrow[:, :1])
    found = exported(make_pipeline(scaler, learner), tmp_path, target, 3 * narrow)
    assert (found.largest_difference, found.probability_difference) == (0.0, 0.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inside", ["PRank", "scaled CuSumRank"])
def test_c_functions_give_the_probabilities_of_python(tmp_path, inside, method):
    needs("c")
    model = calibrated(inside, method).fit(X, Y)
    library, rows = in_c(tmp_path, model), many_rows()
    found = probabilities_in_c(library, rows, 5)
    np.testing.assert_array_equal(found, model.predict_proba(rows))
    np.testing.assert_allclose(found, plainly(model, model.project(rows)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_in_c_give_the_probabilities_of_python(tmp_path, method):
    needs("c")
    model = calibrated("PRank", method).fit(sp.csr_array(X), Y)
    library = in_c(tmp_path, model)
    rows = sp.csr_array(many_rows() * (RNG.random((1422, 5)) < 0.5))
    expected, ranks = model.predict_proba(rows), model.predict(rows)
    for i in range(rows.shape[0]):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        row = rows.data[part].copy(), rows.indices[part].astype(np.int32)
        places = [one.ctypes.data_as(ctypes.c_void_p) for one in row]
        found = np.empty(5)
        n = ctypes.c_int64(row[0].size)
        library.ranker_probabilities_sparse(*places, n, found.ctypes.data_as(ctypes.c_void_p))
        np.testing.assert_array_equal(found, expected[i])
        assert model.ranks_[library.ranker_rank_sparse(*places, n)] == ranks[i]


@pytest.mark.parametrize("method", METHODS)
def test_onnx_outputs_probabilities_and_labels(tmp_path, capfd, method):
    needs("onnx")
    labels = np.array(["poor", "fair", "good", "very good", "best"])
    model = calibrated("PRank", method).fit(X, labels[Y - 1], classes=labels)
    rc.export(model, tmp_path / "m.onnx", "onnx")
    rows = many_rows().astype(np.float32)
    found = in_onnxruntime(tmp_path / "m.onnx", rows)
    assert [*found] == ["score", "rank", "label", "probabilities"]
    assert found["probabilities"].dtype == np.float64
    # Python's columns are those of classes_, in alphabetical order; those of ONNX are by rank.
    by_rank = np.searchsorted(model.classes_, model.ranks_)
    assert by_rank.tolist() != sorted(by_rank.tolist())
    expected = model.predict_proba(rows.astype(np.float64))[:, by_rank]
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-11)
    assert found["label"].tolist() == labels[found["rank"]].tolist()
    assert np.mean(found["label"] == model.predict(rows.astype(np.float64))) > 0.995
    assert "Removing initializer" not in capfd.readouterr().err


@pytest.mark.parametrize(("inside", "method"), [*zip(INSIDE, cycle(METHODS), strict=False)])
def test_skl2onnx_gives_probabilities(inside, method):
    skl2onnx = pytest.importorskip("skl2onnx", reason="no skl2onnx")
    needs("onnx")
    assert "CalibratedOrdinal" in rc.exporters.register_onnx_converters()
    rows = many_rows()[:1000].astype(np.float32)
    model = calibrated(inside, method).fit(X, Y)
    found = in_onnxruntime(skl2onnx.to_onnx(model, rows[:1]).SerializeToString(), rows)
    assert [*found] == ["score", "rank", "label", "probabilities"]
    expected = model.predict_proba(rows.astype(np.float64))
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-11)
    # A scaler of skl2onnx in front computes in single precision.
    whole = make_pipeline(MinMaxScaler(), calibrated(inside)).fit(X, Y)
    content = skl2onnx.to_onnx(whole, rows[:1]).SerializeToString()
    expected = whole.predict_proba(rows.astype(np.float64))
    different = np.abs(in_onnxruntime(content, rows)["probabilities"] - expected).max(axis=1)
    assert np.mean(different < 1e-4) > 0.98  # votes may change


@pytest.mark.parametrize("target", ["xgboost", "elasticsearch", "solr", "sql", "vespa", "ranklib"])
def test_formats_with_one_score_reject_by_name(tmp_path, target):
    model = calibrated().fit(X, Y)
    with pytest.raises(
        ValueError, match=f"{target} cannot express a CalibratedOrdinal: .* no probabilities"
    ):
        rc.export(model, tmp_path / "m.json", target, feature_names=list("abcde"))
    names = list("abcde")
    rc.export(model.estimator_, tmp_path / "m.json", target, feature_names=names)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("what", ["ranks", "probabilities"])
def test_check_detects_different_outputs(tmp_path, target, what):
    needs(target)
    model = calibrated("PRank", "isotonic").fit(X, Y)
    options = {"dtype": "float64"} if target == "onnx" else {}
    rc.export(model, tmp_path / "m.c", target, **options)
    if what == "ranks":
        model.costs_ = model.costs_[:, ::-1].copy()
    else:
        model.curves_.above[:] *= 1 - 2**-52
    files = [tmp_path / "m.c", tmp_path / "m.h"]
    with pytest.raises(ValueError, match=f"{target} changes {what}: .* of 400 rows"):
        check_export(describe(model), files, target, X, options)
