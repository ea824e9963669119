"""OrdinalBoost in C, in exports and in contributions: as in Python, to the bit where it is said."""

import ctypes
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import rankcore as rc
from model_files import put_together, taken_apart
from rankcore._ext.trees import add_sums
from rankcore.exporters.exporting import FORMATS, WITH_PROBABILITIES
from shared_library import OK, Model, needs_compiler, pointer
from test_export_c import Exported
from test_ordinal_boost import FORMS as LEARNED
from test_ordinal_boost import data, small

pytestmark = needs_compiler


def hostile_rows(model):
    """Rows, values at thresholds and next to them, empty rows, large ones."""
    X, _ = data(seed=1)
    at = model._spec().scoring.arrays["thresholds"]
    rng = np.random.default_rng(2)
    near = rng.choice(at, size=(60, 4)) if at.size else np.zeros((60, 4))
    rows = [X, near, np.nextafter(near, np.inf), np.zeros((2, 4)), np.full((1, 4), np.nan)]
    return np.vstack([*rows, 1e6 * X[:20]])


def agrees(library, path, model, rows):
    """C's answers are those of Python to the bit."""
    found = Model(library, path)
    code, scores, ranks = found.answer(rows)
    assert code == OK
    np.testing.assert_array_equal(found.probabilities(rows), model._probabilities(rows))
    np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))
    expected = model._state.model.score(model._more_rows(rows))
    if len(expected) == 1:
        np.testing.assert_array_equal(scores, expected[0])
    else:
        assert np.isnan(scores).all()
    found.close()


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize(("tasks", "link"), LEARNED)
def test_c_predicts_as_python(library, tmp_path, tasks, link, k):
    model = small(tasks, link, learning_rate=0.5, n_estimators=11).fit(*data(k=k))
    rc.save(model, tmp_path / "m")
    rows = hostile_rows(model)
    assert np.unique(model.predict(rows)).size == k
    for form in (rows, rows.astype(np.float32), sp.csr_array(rows)):
        agrees(library, tmp_path / "m", model, form)


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "kappa"])
@pytest.mark.parametrize("missing", ["learn", "zero"])
def test_losses_and_missing_zeros_in_c_equal_those_of_python(library, tmp_path, loss, missing):
    model = small(loss=loss, missing=missing).fit(*data())
    rc.save(model, tmp_path / "m")
    agrees(library, tmp_path / "m", model, hostile_rows(model))


def test_categories_and_words_in_c_equal_those_of_python(library, tmp_path):
    X, y = data(missing=False)
    X[:, 3] = np.random.default_rng(3).integers(0, 40, len(X))
    y = np.where(X[:, 3] % 3 == 0, 3 - y, y)
    words = np.array(["low", "fair", "good", "best"])
    model = small(categorical_features=[3]).fit(X, words[y], classes=words)
    assert model._spec().scoring.arrays["words"].size
    rc.save(model, tmp_path / "m")
    X[:9, 3] = [-1, 2.5, 99, 1e9, np.nan, -0.0, 40, 0, 31]
    found = Model(library, tmp_path / "m")
    np.testing.assert_array_equal(found.probabilities(X), model._probabilities(X))
    assert found.text("rankcore_label", 3) == "best"


def test_models_without_trees_and_scaled_ones_score_in_c(library, tmp_path):
    X, y = data(missing=False)
    model = small(min_samples_leaf=1000).fit(X, y)
    assert not model._spec().scoring.arrays["features"].size
    rc.save(model, tmp_path / "m")
    agrees(library, tmp_path / "m", model, X)
    whole = make_pipeline(MaxAbsScaler(), small()).fit(X, y)
    rc.save(whole, tmp_path / "m")
    np.testing.assert_array_equal(
        Model(library, tmp_path / "m").probabilities(X),
        whole[-1]._probabilities(whole[0].transform(X)),
    )


@pytest.mark.parametrize(
    ("change", "arrays"),
    [
        ({"scoring.tasks": "each"}, {}),
        ({"scoring.tasks": "vector"}, {}),
        ({"scoring.tasks": None}, {}),
        ({"scoring.link": "probit"}, {}),
        ({"scoring.link": None}, {}),
        ({"scoring.zero_missing": "2"}, {}),
        ({"scoring.costs": None}, {}),
        ({"scoring.biases": "biases"}, {}),
        ({"scoring": "calibrated", "scoring.of": "ordinal_trees"}, {}),
        ({}, {"scoring.biases": np.zeros(2)}),
        ({}, {"scoring.biases": np.zeros((3, 1))}),
        ({}, {"scoring.biases": np.full(3, np.inf)}),
        ({}, {"scoring.biases": np.array([0.0, 2.0, 1.0])}),
        ({}, {"costs": np.zeros((4, 3))}),
        ({}, {"costs": np.full((4, 4), np.nan)}),
        ({}, {"classes": np.arange(5)}),
        ({}, {"features": np.array([4] * 1000, dtype=np.int32)}),
    ],
)
def test_inconsistent_files_are_rejected(library, tmp_path, change, arrays):
    path = tmp_path / "m"
    rc.save(small("shared", "cumulative", n_estimators=7).fit(*data()), path)
    Model(library, path).close()
    document, found = taken_apart(path.read_bytes())
    document = {k: v for k, v in (document | change).items() if v is not None}
    path.write_bytes(put_together(document, found | arrays))
    with pytest.raises(ValueError, match=r"the scoring is damaged|NaN or infinity"):
        Model(library, path)


def test_trees_that_do_not_divide_among_scores_are_rejected(library, tmp_path):
    """A tree of one leaf more, so that they cannot be shared out among the scores."""
    path = tmp_path / "m"
    rc.save(small().fit(*data()), path)
    document, arrays = taken_apart(path.read_bytes())
    arrays["offsets"] = np.append(arrays["offsets"], arrays["offsets"][-1:])
    arrays["values"] = np.append(arrays["values"], 0.0)
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ValueError, match="the scoring is damaged"):
        Model(library, path)


# -------------------------------------------------------------------- trees of one structure


def by_task(model, rows):
    """Scores of rows, each score by its own trees."""
    state, rows = model._state.model, model._more_rows(rows)
    return np.array([one.score(rows) for one in state.sums])


@pytest.mark.parametrize("k", [3, 6, 70])  # with 70, no tile has all scores
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"missing": "zero"},
        {"max_leaf_nodes": 2},
        {"max_leaf_nodes": 40},
        {"max_leaf_nodes": 150, "min_samples_leaf": 1},
        {"categorical_features": [3], "max_leaf_nodes": 20},
        {"min_samples_leaf": 1000},
    ],
    ids=str,
)
def test_one_traversal_for_all_tasks_equals_one_per_task(library, tmp_path, params, k):
    X, y = data(600, k=k)
    if "categorical_features" in params:
        X[:, 3] = np.random.default_rng(3).integers(0, 40, len(X))
        y = (y + (X[:, 3] % 3 == 0)) % k
    model = small("vector", **params).fit(X, y)
    rc.save(model, tmp_path / "m")
    for form in (X, X.astype(np.float32), sp.csr_array(X)):
        for rows in (form, form[:100], form[:1]):
            expected = by_task(model, rows)
            np.testing.assert_array_equal(
                model._state.model.score(model._more_rows(rows)), expected
            )
            agrees(library, tmp_path / "m", model, rows)
    for last in [*model.staged_predict_proba(X)][-1:]:
        np.testing.assert_array_equal(last, model.predict_proba(X))


@pytest.mark.parametrize("name", ["features", "children", "sides", "thresholds", "words"])
def test_trees_of_a_round_that_differ_in_more_than_values_are_rejected(
    library,
    tmp_path,
    name,
):
    """A change of one node of the last task, in a file whose checksum fits."""
    X, y = data(missing=False)
    X[:, 3] = np.random.default_rng(3).integers(0, 40, len(X))
    y = np.where(X[:, 3] % 3 == 0, 3 - y, y)
    model = small("vector", categorical_features=[3]).fit(X, y)
    rc.save(model, tmp_path / "m")
    document, arrays = taken_apart((tmp_path / "m").read_bytes())
    first = arrays["offsets"][len(arrays["offsets"]) // 3 * 2]
    numbers = first + np.flatnonzero(arrays["features"][first:] != 3)
    changed = arrays[name]
    if name == "features":
        changed[numbers[0]] = (changed[numbers[0]] + 1) % 3
    elif name == "children":
        leaves = numbers[(changed[numbers] < 0).all(axis=1)]
        changed[leaves] = changed[leaves, ::-1]
    elif name == "sides":
        changed[numbers] ^= 1
    elif name == "thresholds":
        changed[numbers[0]] += 0.3
    else:
        changed[-1] ^= changed[-1] >> 1
    (tmp_path / "m").write_bytes(put_together(document, arrays))
    with pytest.raises(ValueError, match="the trees of 3 sums differ in more than their values"):
        rc.load(tmp_path / "m")
    with pytest.raises(ValueError, match="the scoring is damaged"):
        Model(library, tmp_path / "m")


def test_sums_of_inconsistent_trees_are_rejected():
    model = small("vector").fit(*data())
    whole = model._state.model.together()
    packed, facts = whole.packed(), (whole.n_features, whole.zero_missing)
    for n_sums in (0, 5):
        with pytest.raises(ValueError, match=f"24 trees cannot be divided among {n_sums} sums"):
            packed.trees(*facts, n_sums)
    rows = model._more_rows(data()[0])
    for shape in [(2, 300), (3, 299)]:
        with pytest.raises(ValueError, match="scores, rows and trees are inconsistent"):
            add_sums(rows, packed.trees(*facts, 3), np.zeros(shape))


# -------------------------------------------------------------------- exports


def exported(model, folder, rows):
    """Ranks, probabilities and the library of an exported source."""
    found = Exported(model, folder)
    table = np.full((len(rows), model.classes_.size), np.nan)
    for row, out in zip(np.ascontiguousarray(rows), table, strict=True):
        found.library.ranker_probabilities(*map(pointer, (row, out)))
    return np.array(found.call("rank", ctypes.c_int32, rows)), table, found


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(("tasks", "link"), LEARNED)
def test_c_source_predicts_as_python(tmp_path, tasks, link, k):
    model = small(tasks, link, learning_rate=0.5, n_estimators=11).fit(*data(k=k))
    rows = hostile_rows(model)
    ranks, table, found = exported(model, tmp_path, rows)
    np.testing.assert_array_equal(table, model._probabilities(rows))
    np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))
    sparse = sp.csr_array(rows)
    of_sparse = found.call("rank_sparse", ctypes.c_int32, sparse)
    np.testing.assert_array_equal(model.ranks_[of_sparse], model.predict(sparse))
    scores = model._scores(rows)
    assert hasattr(found.library, "ranker_score") == (len(scores) == 1)
    if len(scores) == 1:
        np.testing.assert_array_equal(found.call("score", ctypes.c_double, rows), scores[0])


def test_c_source_behind_a_scaler_is_checked(tmp_path):
    X, y = data()
    for tasks in ("shared", "vector"):
        model = make_pipeline(StandardScaler(), small(tasks)).fit(X, y)
        found = rc.export(model, tmp_path / "m.c", "c", check=X)
        assert (found.largest_difference, found.probability_difference) == (0.0, 0.0)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize(("tasks", "link"), LEARNED, ids="-".join)
@pytest.mark.parametrize("missing", ["learn", "zero"])
def test_onnx_predicts_as_python(tmp_path, tasks, link, missing, k):
    runtime = pytest.importorskip("onnxruntime", reason="no onnxruntime")
    model = small(tasks, link, missing=missing, learning_rate=0.5, n_estimators=11)
    model.fit(*data(k=k))
    rows = hostile_rows(model)
    check = rc.export(model, tmp_path / "m.onnx", "onnx", check=rows, dtype="float64")
    assert (check.largest_difference, check.probability_difference) == (0.0, 0.0)
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"rows": rows}), strict=True))
    np.testing.assert_array_equal(found["probabilities"], model._probabilities(rows))
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    np.testing.assert_array_equal(model.ranks_[found["rank"]], model.predict(rows))
    scores = model._scores(rows)
    assert ("score" in found) == (len(scores) == 1)
    if "score" in found:
        np.testing.assert_array_equal(found["score"], scores[0])


def test_onnx_has_models_without_trees_and_scaled_ones(tmp_path):
    X, y = data(missing=False)
    pytest.importorskip("onnxruntime", reason="no onnxruntime")
    for model in (
        small("vector", min_samples_leaf=1000).fit(X, y),
        make_pipeline(StandardScaler(), small("vector")).fit(X, y),
    ):
        rc.export(model, tmp_path / "m.onnx", "onnx", check=10 * X, dtype="float64")


def test_skl2onnx_converts_ordinal_boost():
    skl2onnx = pytest.importorskip("skl2onnx", reason="no skl2onnx")
    runtime = pytest.importorskip("onnxruntime", reason="no onnxruntime")
    assert "OrdinalBoost" in rc.exporters.register_onnx_converters()
    X, y = data()
    single, words = X.astype(np.float32), np.array(["low", "fair", "good", "best"])
    for tasks in ("vector", "shared"):
        model = small(tasks).fit(single, words[y], classes=words)
        content = skl2onnx.to_onnx(model, single[:1]).SerializeToString()
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(None, {"X": single}), strict=True))
        np.testing.assert_array_equal(found["label"], model.predict(single))
        np.testing.assert_array_equal(found["probabilities"], model._probabilities(single))


OF_ONE_SCORE = [name for name in FORMATS if name not in WITH_PROBABILITIES]


@pytest.mark.parametrize("target", OF_ONE_SCORE)
def test_formats_with_one_score_reject_several(tmp_path, target):
    model = small("vector").fit(*data())
    with pytest.raises(ValueError, match=f"{target} cannot express an OrdinalBoost with a score"):
        rc.export(model, tmp_path / "m.json", target, feature_names=list("abcd"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["onnx", "sql"])
def test_categories_are_rejected_by_formats_other_than_c(tmp_path, target):
    if target == "onnx":
        pytest.importorskip("onnx", reason="no onnx")
    X, y = data(missing=False)
    X[:, 3] = np.abs(np.round(3 * X[:, 3]))
    y = np.where(X[:, 3] % 3 == 0, 3 - y, y)
    model = small("shared", categorical_features=[3]).fit(X, y)
    with pytest.raises(ValueError, match=f"{target} cannot express splits by category"):
        rc.export(model, tmp_path / "m", target, feature_names=list("abcd"))


# -------------------------------------------------------------------- contributions


@pytest.mark.parametrize("link", ["adjacent", "cumulative"])
def test_contributions_of_one_score_add_up(link):
    X, y = data()
    model = small("shared", link).fit(X, y)
    rows, background = X[:20], X[20:30]
    found = model.contributions(rows, background)
    np.testing.assert_allclose(found.scores(), model._scores(rows)[0], rtol=0, atol=1e-12)
    assert found.base == pytest.approx(model._scores(background)[0].mean(), abs=1e-12)
    expected = shapley(lambda rows: model._scores(rows)[0], rows, background)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)


def test_two_classes_have_one_score_for_every_tasks_value():
    X, y = data(k=2)
    for tasks in ("shared", "vector"):
        model = small(tasks).fit(X, y)
        found = model.contributions(X[:9]).scores()
        np.testing.assert_allclose(found, model._scores(X[:9])[0], rtol=0, atol=1e-12)
        with pytest.raises(ValueError, match="one score per row"):
            model.contributions(X[:9], output=1)


def shapley(score, rows, background):
    """Contributions by all orders of the features: the mean over them and the background."""
    n_features, of = rows.shape[1], {}
    for size in range(n_features + 1):
        for part in combinations(range(n_features), size):
            mixed = np.repeat(background, len(rows), axis=0)
            mixed[:, part] = np.tile(rows, (len(background), 1))[:, part]
            of[part] = score(mixed).reshape(len(background), -1).mean(axis=0)
    found = np.zeros(rows.shape)
    orders = [*permutations(range(n_features))]
    for order in orders:
        for i, feature in enumerate(order):
            before, after = (tuple(sorted(order[:n])) for n in (i, i + 1))
            found[:, feature] += (of[after] - of[before]) / len(orders)
    return found


@pytest.mark.parametrize("categories", [None, [3]])
def test_contributions_to_the_odds_of_a_rank_add_up(categories):
    X, y = data(missing=categories is None)
    if categories:
        X[:, 3] = np.abs(np.round(3 * X[:, 3]))
    model = small(categorical_features=categories).fit(X, y)
    rows, background = X[:20], X[20:30]
    ranks = model.ranks_.tolist()
    for r, label in enumerate(ranks):

        def odds(rows, r=r):
            table = model.predict_proba(rows)
            return np.log(table[:, r]) - np.log(table[:, 0])

        found = model.contributions(rows, background, output=label)
        np.testing.assert_allclose(found.scores(), odds(rows), rtol=0, atol=1e-11)
        np.testing.assert_allclose(
            found.values, shapley(odds, rows, background), rtol=0, atol=1e-11
        )
        assert found.base == pytest.approx(odds(background).mean(), abs=1e-11)
    highest = model.contributions(rows, background)
    np.testing.assert_array_equal(highest.values, found.values)
    found = model.contributions(sp.csr_array(np.nan_to_num(rows)))
    dense = model.contributions(np.nan_to_num(rows), np.zeros((1, 4)))
    np.testing.assert_allclose(found.values.toarray(), dense.values, rtol=0, atol=1e-12)


def test_unused_features_have_the_least_importance():
    X, y = data()
    found = rc.explain.global_importance(small("vector").fit(X, y), X)
    assert found.importances.argmin() == 3  # which the labels do not depend on


def test_trees_without_shared_leaves_are_explained():
    X, y = data()
    model = small("vector", min_samples_leaf=10**6).fit(X, y)
    found = model.contributions(X[:3])
    assert not found.values.any()
    assert found.base == pytest.approx(-model.biases_.sum())


@pytest.mark.parametrize("loss", ["absolute", "zero_one"])
@pytest.mark.parametrize(("tasks", "link"), LEARNED, ids="-".join)
def test_values_that_change_the_rank_of_a_row_are_found(tasks, link, loss):
    X, y = data()
    model = small(tasks, link, loss=loss).fit(X, y)
    rng, background = np.random.default_rng(4), X[30:50]
    low, high = np.nanmin(background, axis=0), np.nanmax(background, axis=0)
    for row in X[:25]:
        why = rc.explain.rank(model, row, background=background)
        now = model.predict([row])[0]
        assert why.label == now
        scores = why.bases + why.contributions.sum(axis=0)
        np.testing.assert_allclose(why.distances, scores, rtol=0, atol=1e-12)
        table = model.predict_proba([row])[0]
        at_least = 1 - table.cumsum()[:-1]
        odds = at_least / (1 - at_least) if link == "cumulative" else table[1:] / table[:-1]
        np.testing.assert_allclose(why.distances, np.log(odds), rtol=0, atol=1e-9)
        for moved, sign in ((why.up, 1), (why.down, -1)):
            for feature in np.flatnonzero((low <= row) & (row <= high)):
                # At the value the rank changes; nearer values of the background's range leave it.
                far = 9.0 if np.isnan(moved[feature]) else abs(moved[feature] - row[feature])
                changed = np.repeat(row[np.newaxis], 400, axis=0)
                changed[:, feature] += rng.uniform(-far, far, 400) * (1 - 1e-9)
                changed[:, feature] = np.clip(changed[:, feature], low[feature], high[feature])
                assert not (sign * (model.predict(changed) - now) > 0).any()
                if not np.isnan(moved[feature]):
                    changed[0, feature] = moved[feature]
                    assert sign * (model.predict(changed[:1])[0] - now) > 0
            for feature in np.flatnonzero(np.isnan(row)):
                # Nothing is near a missing value: those of the background are tried.
                tried = background[~np.isnan(background[:, feature]), feature]
                changed = np.repeat(row[np.newaxis], tried.size, axis=0)
                changed[:, feature] = tried
                moving = tried[sign * (model.predict(changed) - now) > 0]
                assert moved[feature] in moving if moving.size else np.isnan(moved[feature])


def test_values_that_change_the_rank_of_a_row_are_drawn():
    pytest.importorskip("matplotlib", reason="no Matplotlib")
    X, y = data()
    rc.explain.rank(small("vector").fit(X, y), X[0], background=X[30:50]).plot()


def test_categories_that_change_a_rank_are_found():
    X, _ = data(missing=False)
    kinds = np.array(["a", "b", "c", "d", "e"])[np.abs(np.round(2 * X[:, 0])).astype(int) % 5]
    frame = pd.DataFrame({"kind": pd.Categorical(kinds), "z": X[:, 2]})
    model = small("vector").fit(frame, np.digitize(X[:, 2] + 2 * (kinds == "c"), [-1, 0, 1]))
    codes, found = range(5), []
    for i in range(40):
        why, row = rc.explain.rank(model, frame.iloc[[i]]), frame.iloc[[i] * 5].copy()
        row["kind"] = pd.Categorical(list("abcde"), categories=list("abcde"))
        higher = ["abcde"[code] for code in codes if (model.predict(row) > why.label)[code]]
        np.testing.assert_equal(why.up[0], min(higher, default=np.nan))
        found += higher
    assert found


def test_rank_changes_of_scaled_rows_are_given_before_scaling():
    X, y = data(missing=False)
    model = make_pipeline(StandardScaler(), small("vector")).fit(10 * X, y)
    explained = ((row, rc.explain.rank(model, row)) for row in 10 * X)
    row, why = next(one for one in explained if np.isfinite(one[1].up).any())
    now = model.predict([row])[0]
    changed = np.repeat(row[np.newaxis], 2, axis=0)
    at = np.flatnonzero(np.isfinite(why.up))[0]
    beyond = np.sign(why.up[at] - changed[0, at])
    changed[:, at] = why.up[at] + beyond * np.array([-1e-9, 1e-9])
    assert (model.predict(changed) > now).tolist() == [False, True]
