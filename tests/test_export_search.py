"""Exports to search engines: files written by hand, and plain readers on hostile values."""

import json
from contextlib import nullcontext
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import export_engines as engines
import rankcore as rc
from declared import QID, RNG, SAVED, X, Y, adds_up, first_of_each, walk
from rankcore._core.scoring import Scoring
from rankcore.exporters import boosters, expressions, search
from rankcore.exporters.described import Described
from rankcore.exporters.operations import Step

GOLDEN = Path(__file__).parent / "golden"
NAMES = ["title", "body", "age"]
FIVE = ["title", "titles", "body.x", "age", "bm25(title)"]


def described(form, arrays, facts=None, steps=()):
    arrays = {name: np.asarray(values) for name, values in arrays.items()}
    return Described(
        None, "PRank", Scoring(form, arrays, dict(facts or {})), [*steps], 3, NAMES, None
    )


LINEAR = described("linear", {"weights": [0.5, 0.0, -0.25]})
# With an intercept, that the feature of the largest weight carries.
SHIFTED = described("rounded", {"weights": [0.5, 0.0, -0.25], "intercept": [1.0]})
STANDARDIZED = described(
    "linear",
    {"weights": [0.5, 0.0, -0.25]},
    steps=[Step("subtract", np.array([2.0, 0.0, 8.0])), Step("divide", np.array([4.0, 1.0, 0.5]))],
)
# if title <= 64: (if age <= 128: 1 else 2), else 4; a NaN goes left, then right.
TREES = described(
    "trees",
    {
        "offsets": [0, 2, 2],
        "features": [0, 2],
        "children": [[1, -1], [-2, -3]],
        "sides": [0, 1],
        "thresholds": [64.0, 128.0],
        "values": [4.0, 1.0, 2.0, 0.5],
        "sets": np.empty(0, dtype=np.int64),
        "words": np.empty(0, dtype=np.uint32),
    },
    {"zero_missing": 0},
)


@pytest.mark.parametrize(
    ("write", "model", "file"),
    [
        (search.export_elasticsearch, LINEAR, "elasticsearch_linear.json"),
        (search.export_elasticsearch, SHIFTED, "elasticsearch_intercept.json"),
        (search.export_elasticsearch, STANDARDIZED, "elasticsearch_standard.json"),
        (search.export_elasticsearch, TREES, "elasticsearch_trees.json"),
        (search.export_opensearch, LINEAR, "elasticsearch_linear.json"),
        (search.export_opensearch, TREES, "elasticsearch_trees.json"),
        (search.export_solr, LINEAR, "solr_linear.json"),
        (search.export_solr, STANDARDIZED, "solr_standard.json"),
        (search.export_solr, TREES, "solr_trees.json"),
        (boosters.export_xgboost_dump, TREES, "xgboost_dump.json"),
        (boosters.export_ranklib, SHIFTED, "ranklib_linear.txt"),
        (boosters.export_ranklib, TREES, "ranklib_trees.txt"),
        (expressions.export_vespa, STANDARDIZED, "vespa_linear.txt"),
        (expressions.export_vespa, TREES, "vespa_trees.txt"),
    ],
    ids=lambda one: getattr(one, "__name__", one if isinstance(one, str) else ""),
)
def test_files_equal_the_documented_examples(tmp_path, write, model, file):
    (found,) = write(model, tmp_path / "ranker.out").values()
    expected = (GOLDEN / file).read_text()
    if file.endswith(".json"):
        found, expected = json.loads(found), json.loads(expected)
        if "model" in found:  # a definition is JSON in a string
            for body in (found, expected):
                body["model"]["model"]["definition"] = json.loads(
                    body["model"]["model"]["definition"]
                )
        assert found == expected
    else:
        assert found.split() == expected.split()


def fitted(learner, steps=(), missing=0.0):
    rows = X.copy()
    if missing:
        rows[RNG.random(X.shape) < missing] = np.nan
    if not steps:
        return learner.fit(rows, Y, **_queries(learner))
    pipeline = make_pipeline(*steps, learner)
    last = pipeline.steps[-1][0]
    return pipeline.fit(rows, Y, **{f"{last}__{k}": v for k, v in _queries(learner).items()})


def _queries(learner):
    return {"qid": QID} if "qid" in signature(learner.fit).parameters else {}


def scores(model, rows):
    last, front = (model[-1], model[:-1]) if hasattr(model, "steps") else (model, None)
    rows = rows.astype(np.float32).astype(np.float64)
    rows = rows if front is None else front.transform(rows)
    return last.project(rows) if hasattr(last, "project") else last.predict(rows)


def warned(reads_zero, model, rows):
    """Context that expects a warning if a target reads NaN as 0 and this changes scores."""
    if reads_zero and (scores(model, rows) != scores(model, np.nan_to_num(rows))).any():
        return pytest.warns(UserWarning, match="this model scores NaN otherwise than 0")
    return nullcontext()


def hostile(model, n=2000):
    """Rows of 32-bit floats, many of which are thresholds or next to one."""
    spec = (model[-1] if hasattr(model, "steps") else model)._spec().scoring
    rows = RNG.normal(size=(n, 5)).astype(np.float32)
    if "thresholds" not in spec.arrays or spec.form not in ("stumps", "trees"):
        return rows
    # Where the steps in front bring a value to a threshold, found without our code.
    near = spec.arrays["thresholds"]
    if hasattr(model, "steps"):
        affine = model[:-1].transform(np.vstack([np.zeros(5), np.ones(5)]))
        slope, start = affine[1] - affine[0], affine[0]
        near = ((near[:, None] - start) / slope).ravel()
    near = near.astype(np.float32)
    for _ in range(3):
        near = np.concatenate([near, np.nextafter(near, F_MAX), np.nextafter(near, -F_MAX)])
        near = np.unique(near[np.abs(near) < F_MAX])
    places = RNG.random(rows.shape) < 0.8
    rows[places] = RNG.choice(near, size=int(places.sum()))
    rows[RNG.random(rows.shape) < 0.05] = 0
    return rows


F_MAX = np.float32(np.finfo(np.float32).max)
READERS = {
    "elasticsearch": lambda text, rows: engines.elasticsearch(text, rows, FIVE),
    "opensearch": lambda text, rows: engines.elasticsearch(text, rows, FIVE, False),
    "solr": lambda text, rows: engines.solr(text, rows, FIVE),
    "ranklib": engines.ranklib,
    "vespa": lambda text, rows: engines.vespa(text, rows.astype(np.float64), FIVE),
    "xgboost_dump": lambda text, rows: engines.dump(json.loads(text), engines.columns(rows, FIVE)),
}
SCALERS = [[], [StandardScaler()], [MinMaxScaler((-1, 3))], [MaxAbsScaler()]]
BOOSTED = [rc.RankBoost(60), rc.RankBoost(30, max_leaf_nodes=6)]
# Python's double scores and sums of up to 61 single-precision terms, each of which is rounded.
ROUNDING = 61 * np.finfo(np.float32).eps


@pytest.mark.parametrize("steps", [*SCALERS, [MinMaxScaler(clip=True)]], ids=str)
@pytest.mark.parametrize("learner", BOOSTED, ids=str)
@pytest.mark.parametrize("target", READERS)
def test_values_take_the_same_side_as_in_python(tmp_path, target, learner, steps):
    model = fitted(learner, steps)
    rows = hostile(model)
    rc.export(model, tmp_path / "m", target, feature_names=FIVE)
    found = READERS[target]((tmp_path / "m").read_text(), rows)
    expected = scores(model, rows)
    # A value on the other side of one threshold would be off by the weight of a stump or leaf.
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())
    assert len(np.unique(expected)) > 200


@pytest.mark.parametrize("steps", SCALERS, ids=str)
@walk([one for one in first_of_each(SAVED) if adds_up(one)])
@pytest.mark.parametrize("target", sorted({*READERS} - {"xgboost_dump"}))
def test_weighted_sums_are_exported(tmp_path, target, learner, steps):
    model = fitted(learner, steps)
    rows = hostile(model)
    rc.export(model, tmp_path / "m", target, feature_names=FIVE)
    found = READERS[target]((tmp_path / "m").read_text(), rows)
    expected = scores(model, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("learner", BOOSTED, ids=str)
@pytest.mark.parametrize("steps", [[], [StandardScaler()], [SimpleImputer()]], ids=str)
@pytest.mark.parametrize("target", ["opensearch", "vespa", "xgboost_dump"])
def test_missing_values_are_exported_where_the_target_has_them(tmp_path, target, learner, steps):
    model = fitted(learner, steps, missing=0.2)
    rows = RNG.normal(size=(2000, 5)).astype(np.float32)
    rows[RNG.random(rows.shape) < 0.3] = np.nan
    with warned(target == "vespa", model, rows):
        rc.export(model, tmp_path / "m", target, feature_names=FIVE)
    found = READERS[target]((tmp_path / "m").read_text(), rows)
    expected = scores(model, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        ([], 0.2),
        ([StandardScaler()], 0.2),
        ([SimpleImputer(strategy="constant", fill_value=1.0)], 0.0),
        ([SimpleImputer(strategy="constant", fill_value=0.0)], 0.2),  # as these engines do
        ([], 0.0),  # nothing was learned of NaN
    ],
    ids=str,
)
@pytest.mark.parametrize("learner", BOOSTED, ids=str)
@pytest.mark.parametrize("target", sorted({*rc.exporters.FORMATS} - {"c", "onnx", "xgboost"}))
def test_export_warns_where_missing_values_are_zero(tmp_path, target, learner, steps, missing):
    model = fitted(learner, steps, missing=missing)
    rows = np.where(RNG.random((200, 5)) < 0.3, np.nan, RNG.normal(size=(200, 5)))
    reads_zero = target in ("elasticsearch", "solr", "ranklib", "vespa")
    with warned(reads_zero and (missing > 0 or bool(steps)), model, rows):
        rc.export(model, tmp_path / "m", target, feature_names=FIVE)


@pytest.mark.parametrize("target", ["elasticsearch", "solr", "ranklib"])
def test_stumps_with_missing_zeros_are_exported_to_formats_without_nan(tmp_path, target):
    rows = X.round(0) * (RNG.random(X.shape) < 0.6)
    model = rc.RankBoost(40, missing="zero").fit(rows, Y, qid=QID)
    rc.export(model, tmp_path / "m", target, feature_names=FIVE)
    tiny = np.float32(1e-45)
    near = np.tile(np.array([[-tiny], [0], [tiny]], dtype=np.float32), 5)
    for given in (rows, near):
        found = READERS[target]((tmp_path / "m").read_text(), given)
        np.testing.assert_allclose(found, model.predict(given), rtol=0, atol=1e-5)


def test_trees_with_missing_zeros_are_rejected_by_formats_without_nan(tmp_path):
    rows = X * (RNG.random(X.shape) < 0.6)
    model = rc.RankBoost(20, missing="zero", max_leaf_nodes=4).fit(rows, Y, qid=QID)
    for target in READERS:
        with pytest.raises(ValueError, match=f"{target} cannot express missing=.zero."):
            rc.export(model, tmp_path / "m", target, feature_names=FIVE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e-8, 3e-6, 1e-3, 1.0, 1e30])
@pytest.mark.parametrize("nodes", [2, 6])
def test_thresholds_within_solr_tolerance_are_rescaled(tmp_path, size, nodes):
    model = rc.RankBoost(60, max_leaf_nodes=nodes).fit(X * size, Y, qid=QID)
    rc.export(model, tmp_path / "m", "solr", feature_names=FIVE)
    text = (tmp_path / "m").read_text()
    rows = np.vstack([hostile(model), (X * size).astype(np.float32)])
    found = engines.solr(text, rows, FIVE)
    expected = scores(model, rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * np.abs(expected).max())
    if size <= 3e-6 or size >= 1:
        assert ("norm" in text) == (size < 1)
    for feature in json.loads(text)["features"]:
        if "norm" in feature:  # no digit of a value is lost
            assert np.frexp(float(feature["norm"]["params"]["std"]))[0] == 0.5
            assert feature["norm"]["params"]["avg"] == "0.0"


def test_single_precision_thresholds_are_found():
    """Against all numbers near, those that Solr's sum can be and those that it cannot."""
    from rankcore.exporters.boosters import SLACK, before_slack

    for start in (3e-6, -3e-6, 1.9e-6, -1e-6, -0.99999994, 0.5, -2.0, 1e-7, 5.0, -64.0):
        wanted = np.float32(start) + np.arange(-200, 200).astype(np.float32) * np.spacing(
            np.float32(start)
        )
        near = (wanted[0] - SLACK).astype(np.float32)
        for _ in range(2000):
            near = np.nextafter(near, np.float32(-np.inf))
        sums = set()
        for _ in range(8000):
            sums.add(float(near + SLACK))
            near = np.nextafter(near, np.float32(np.inf))
        found, there = before_slack(wanted.astype(np.float64))
        assert there.tolist() == [float(one) in sums for one in wanted]
        np.testing.assert_array_equal((found.astype(np.float32) + SLACK)[there], wanted[there])


def test_thresholds_of_very_different_magnitude_are_rejected(tmp_path):
    trees = {
        "offsets": np.array([0, 1, 2]),
        "features": np.array([0, 0]),
        "thresholds": np.array([1e-44, 1e30]),
        "children": np.array([[-1, -2], [-1, -2]]),
        "sides": np.zeros(2, dtype=np.uint8),
        "values": np.arange(4.0),
        "sets": np.empty(0, dtype=np.int64),
        "words": np.empty(0, dtype=np.uint32),
    }
    with pytest.raises(
        ValueError, match="threshold 9.8.*e-45 of the feature 'title'.* up to 9.99.*e.29"
    ):
        search.export_solr(described("trees", trees, {"zero_missing": 0}), tmp_path / "m")


def test_names_are_required_and_may_come_from_a_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    model = rc.PRank(random_state=0).fit(X, Y)
    for target in sorted({*READERS} - {"ranklib", "xgboost_dump"}):
        with pytest.raises(ValueError, match=f"{target} requires feature names"):
            rc.export(model, tmp_path / "m", target)
    named = rc.PRank(random_state=0).fit(pandas.DataFrame(X, columns=FIVE), Y)
    rc.export(named, tmp_path / "m", "elasticsearch")
    body = json.loads((tmp_path / "m").read_text())
    assert [*json.loads(body["model"]["model"]["definition"])] == FIVE
    assert body["model"]["name"] == "m"
    rc.export(named, tmp_path / "m", "elasticsearch", name="stars")
    assert json.loads((tmp_path / "m").read_text())["model"]["name"] == "stars"
    rc.export(named, tmp_path / "m", "solr", name="stars", store="mine")
    assert json.loads((tmp_path / "m").read_text())["store"] == "mine"
    with pytest.raises(ValueError, match="must be rank features, such as"):
        rc.export(model, tmp_path / "m", "vespa", feature_names=["a b", "c", "d", "e", "f"])


def test_models_without_weights_are_constant(tmp_path):
    zero = described("linear", {"weights": np.zeros(3)})
    (text,) = search.export_solr(zero, tmp_path / "m").values()
    assert engines.solr(text, X, [*NAMES, "d", "e"]).tolist() == [0] * 90
    constant = described("rounded", {"weights": np.zeros(3), "intercept": [2.0]})
    with pytest.raises(ValueError, match=r"cannot express a constant model; all scores are 2\.0"):
        search.export_elasticsearch(constant, tmp_path / "m")
