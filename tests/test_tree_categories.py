"""Categorical features of RankBoost's trees: from frames, arrays and sparse rows to files and C."""

import ctypes
import json
import pickle
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore.boosting._grower import GrowthParams
from rankcore.progress import watch
from reference import boosting as plain
from reference import trees as plain_trees
from strategies import examples

CITIES = ["oslo", "rome", "bonn", "lima", "kyiv", "cork"]
TREES = {"max_leaf_nodes": 6, "min_samples_leaf": 2, "learning_rate": 0.5}


def problem(seed=0, n=200):
    """Return a number and a category with missing values, graded labels that need both, queries."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.round(rng.normal(size=n), 1), rng.integers(0, len(CITIES), n)])
    effect = np.array([1.0, -1.0, 1.0, -1.0, 0.5, -0.5])[X[:, 1].astype(int)]
    z = effect * np.sign(X[:, 0]) + 0.5 * rng.normal(size=n)
    X[rng.random(n) < 0.1, 1] = np.nan
    return X, np.digitize(z, [-0.5, 0.5]), np.arange(n) // 20


def frame(X, kind, categories=CITIES):
    """Return the same rows with cities, missing ones included."""
    cities = [None if code != code else CITIES[int(code)] for code in X[:, 1]]
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        column = pandas.Categorical(cities, categories=categories)
        return pandas.DataFrame({"size": X[:, 0], "city": column})
    polars = pytest.importorskip("polars")
    dtype = polars.Enum(categories) if kind == "polars enum" else polars.Categorical
    return polars.DataFrame({"size": X[:, 0], "city": cities}).with_columns(
        polars.col("city").cast(dtype)
    )


def as_nodes(tree):
    """Return a tree as the plain form has it."""
    nodes = []
    for node in range(tree.features.size):
        categories = frozenset(tree.categories(node))
        threshold = categories or float(tree.thresholds[node])
        children = tree.children[node].tolist()
        nodes.append([int(tree.features[node]), threshold, int(tree.sides[node]), *children])
    return nodes


def plain_scores(model, X):
    scores = np.zeros(len(X))
    for tree in model._state.model.trees:
        nodes = as_nodes(tree)
        scores += [tree.values[plain_trees.find_leaf(nodes, x)] for x in X]
    return scores


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_first_tree_equals_the_plain_grower(seed, sparse):
    X, y, qid = problem(seed, 40)
    pairs, D = plain.label_pairs(y, qid)
    won, lost = np.zeros((2, len(X)))
    np.add.at(won, pairs[:, 0], D)
    np.add.at(lost, pairs[:, 1], D)
    rules = GrowthParams(6, None, 2)
    derivatives = won - lost, won + lost
    nodes, gains, _, _ = plain_trees.grow(
        X, *derivatives, rules, derivatives[1] > 0, categorical={1}
    )
    model = rc.RankBoost(4, categorical_features=[1], **TREES)
    model.fit(sp.csr_array(X) if sparse else X, y, qid=qid)
    first = model._state.model.trees[0]
    # Weights are rounded: with the order of the rows, sums of weights differ in the last place.
    np.testing.assert_allclose(first.gains[0], gains[0], atol=1e-8)
    if np.unique(gains).size == len(gains):
        assert [node[:1] for node in as_nodes(first)] == [node[:1] for node in nodes]
    np.testing.assert_array_equal(model.predict(X), plain_scores(model, X))
    scores, history = model.predict(X), model.history_
    assert plain.training_error(scores, pairs, D) <= history["bound"][-1] + 1e-9


@pytest.mark.parametrize("given", [[False, True], [1], ["city"], "from_dtype", ("city",)], ids=str)
@pytest.mark.parametrize("kind", ["pandas", "polars enum", "polars categorical"])
def test_frames_arrays_and_sparse_rows_give_one_model(kind, given):
    X, y, qid = problem()
    data = frame(X, kind)
    model = rc.RankBoost(8, categorical_features=given, **TREES).fit(data, y, qid=qid)
    order = CITIES if kind != "polars categorical" else sorted(CITIES)
    assert model.categories_ == {1: order}
    assert model.is_categorical_.tolist() == [False, True]
    coded = X.copy()
    here = X[:, 1] == X[:, 1]
    coded[here, 1] = [order.index(CITIES[int(code)]) for code in X[here, 1]]
    by_number = rc.RankBoost(8, categorical_features=[1], **TREES)
    below = np.where(np.isnan(coded), -1.0, coded)  # as missing as NaN
    for rows in (coded, below, sp.csr_array(coded)):
        numbers = clone(by_number).fit(rows, y, qid=qid)
        np.testing.assert_array_equal(numbers.predict(rows), model.predict(data))
        np.testing.assert_array_equal(numbers.estimators_, model.estimators_)
        assert numbers.categories_ == {}
    *_, last = model.staged_predict(data)
    np.testing.assert_array_equal(last, model.predict(data))


def test_columns_of_strings_can_be_named():
    pandas = pytest.importorskip("pandas")
    X, y, qid = problem()
    data = frame(X, "pandas", sorted(CITIES))
    expected = rc.RankBoost(5, **TREES).fit(data, y, qid=qid)
    strings = data.assign(city=data["city"].astype(object))
    model = rc.RankBoost(5, categorical_features=["city"], **TREES).fit(strings, y, qid=qid)
    np.testing.assert_array_equal(model.predict(strings), expected.predict(data))
    np.testing.assert_array_equal(model.predict(data), expected.predict(data))
    numbers = data.assign(city=pandas.Categorical(data["city"].cat.codes.replace(-1, np.nan)))
    by_number = rc.RankBoost(5, **TREES).fit(numbers, y, qid=qid)
    assert by_number.categories_ == {1: [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}
    np.testing.assert_array_equal(by_number.predict(numbers), expected.predict(data))


@pytest.mark.parametrize("kind", ["pandas", "polars enum", "polars categorical"])
def test_unseen_categories_are_missing(kind):
    X, y, qid = problem()
    seen = X[:, 1] != 3
    train = X[seen]
    model = rc.RankBoost(8, **TREES).fit(frame(train, kind), y[seen], qid=qid[seen])
    known = [city for city in CITIES if city != "lima"]
    declared = CITIES if kind != "polars categorical" else sorted(known)
    assert model.categories_ == {1: declared}
    rows = X[:6].copy()
    rows[:, 1] = np.nan
    expected = model.predict(frame(rows, kind))
    assert np.unique(expected).size > 1
    if kind == "pandas":  # more categories than before, in another order
        more = ["york", *CITIES[::-1]]
        new = frame(rows, kind, more)
        new["city"] = new["city"].fillna("york")
        np.testing.assert_array_equal(model.predict(new), expected)
        np.testing.assert_array_equal(model.predict(frame(X, kind, more)), model.predict(
            frame(X, kind)
        ))  # fmt: skip
    rows[:, 1] = 3
    np.testing.assert_array_equal(model.predict(frame(rows, kind)), expected)
    numbers = rc.RankBoost(8, categorical_features=[1], **TREES)
    numbers.fit(train, y[seen], qid=qid[seen])
    for odd in (np.nan, 3, 6, 999, 1e300, -1, 0.5, -1e300):
        rows[:, 1] = odd
        if kind != "polars categorical":  # the numbers of which differ
            np.testing.assert_array_equal(numbers.predict(rows), expected)


def test_unseen_missing_values_go_to_the_heavier_child():
    X = np.array([[0.0], [0], [1], [2], [2], [3]])
    y = [1, 1, 0, 0, 0, 1]
    model = rc.RankBoost(1, weak="tree", min_samples_leaf=1, categorical_features=[0]).fit(
        X, y, qid=np.zeros(len(y))
    )
    node = model.estimators_[0]
    # {0, 3} wins 9 pairs, {1, 2} loses them: equal weights, and missing values do not fire.
    assert (node["categories"], node["missing"]) == ((0, 3), 0)
    low, high = node["values"]
    assert low < high
    np.testing.assert_array_equal(model.predict([[np.nan], [7], [0], [1]]), [low, low, high, low])
    # Two more that lose: their side is heavier in rows, not in weight. One label between them
    # makes the losers' side the heavier one.
    X, y = np.r_[X, [[1], [2]]], [2, 2, 1, 0, 0, 2, 1, 0]
    node = model.fit(X, y, qid=np.zeros(len(y))).estimators_[0]
    pairs, D = plain.label_pairs(np.array(y), np.zeros(8))
    won, lost = np.zeros((2, 8))
    np.add.at(won, pairs[:, 0], D)
    np.add.at(lost, pairs[:, 1], D)
    fires = model.predict(X) == node["values"][1]
    heavier = (won + lost)[fires].sum() > (won + lost)[~fires].sum()
    assert (won + lost)[fires].sum() != pytest.approx((won + lost)[~fires].sum())
    assert model.predict([[np.nan]]) == node["values"][int(heavier)]


@pytest.mark.parametrize(
    "learner", [rc.RankBoost, rc.BipartiteRankBoost], ids=lambda one: one.__name__
)
def test_files_copies_and_warm_starts_keep_categories(tmp_path, learner):
    X, y, qid = problem()
    data, held = frame(X, "pandas"), frame(X[:60], "pandas")
    model = learner(6, random_state=0, subsample=0.7, max_features=0.9, **TREES)
    model.fit(data, y, qid=qid, eval_set=(held, y[:60]), eval_qid=qid[:60])
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    for one in (loaded, pickle.loads(pickle.dumps(model))):
        assert one.categories_ == model.categories_ == {1: CITIES}
        assert one.is_categorical_.tolist() == [False, True]
        np.testing.assert_array_equal(one.estimators_, model.estimators_)
        np.testing.assert_array_equal(one.predict(data), model.predict(data))
        np.testing.assert_array_equal(one.predict(frame(X, "polars enum")), model.predict(data))
    first = clone(model).set_params(n_estimators=3, warm_start=True).fit(data, y, qid=qid)
    whole = clone(model).fit(data, y, qid=qid)
    # Other categories come after the known ones, whatever their order in the frame.
    more = frame(X, "pandas", ["york", *CITIES[::-1]])
    first.set_params(n_estimators=6).fit(more, y, qid=qid)
    assert first.categories_ == {1: [*CITIES, "york"]}
    np.testing.assert_allclose(first.predict(data), whole.predict(data), rtol=1e-6, atol=1e-9)
    numbers = data.assign(city=data["city"].cat.codes)
    first.set_params(n_estimators=9)
    with pytest.raises(ValueError, match="warm_start requires the categorical features"):
        first.fit(numbers, y, qid=qid)
    with pytest.raises(ValueError, match="warm_start requires the categorical features"):
        first.set_params(categorical_features=["city"]).fit(numbers, y, qid=qid)
    assert first.categories_ == {1: [*CITIES, "york"]}


def test_parameters_that_list_columns_have_files(tmp_path):
    X, y, qid = problem()
    listed = [
        {"categorical_features": [1]},
        {"categorical_features": (False, True)},
        {"categorical_features": np.array([False, True])},
        {"categorical_features": None, "monotonic_cst": [1, 0]},
        {"monotonic_cst": np.array([1, 0])},
    ]
    for parameters in listed:
        model = rc.RankBoost(3, **TREES, **parameters).fit(X, y, qid=qid)
        rc.save(model, tmp_path / "model")
        loaded = rc.load(tmp_path / "model")
        for name, value in parameters.items():
            found = loaded.get_params()[name]
            assert found == (list(value) if value is not None else None)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_array_equal(clone(loaded).fit(X, y, qid=qid).predict(X), model.predict(X))
    data = frame(X, "pandas")
    model = rc.RankBoost(3, **TREES, monotonic_cst={"size": 1}).fit(data, y, qid=qid)
    rc.save(model, tmp_path / "model")
    assert rc.load(tmp_path / "model").monotonic_cst == {"size": 1}


C_SOURCE = """
#include <rankcore.h>
double score(const rc_trees *model, const double *x, int64_t n)
{
    return rc_trees_score(model, rc_row_f64(x, 0, n));
}
int32_t has(const rc_trees *model, int64_t node, double value)
{
    return rc_trees_has(model, node, value);
}
"""


class Trees(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in "ofcmtv"]
    _fields_ += [("n", ctypes.c_int64), ("d", ctypes.c_int64), ("z", ctypes.c_int32)]
    _fields_ += [("s", ctypes.c_void_p), ("w", ctypes.c_void_p)]


@pytest.mark.parametrize("scale", [1, 50], ids=["a word", "many words"])
def test_c_scores_equal_those_of_predict(tmp_path, scale):
    X, y, qid = problem()
    X[:, 1] *= scale
    (tmp_path / "trees.c").write_text(C_SOURCE)
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-shared"]
    command += ["-fPIC", f"-I{rc.get_include()}", tmp_path / "trees.c", "-o", tmp_path / "trees.so"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(tmp_path / "trees.so"))
    library.score.restype = ctypes.c_double
    library.has.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_double]
    model = rc.RankBoost(8, categorical_features=[1], **TREES).fit(X, y, qid=qid)
    packed = model._state.model.packed()
    arrays = [ctypes.c_void_p(array.ctypes.data) for array in packed]
    trees = Trees(*arrays[:6], len(model._state.model), 2, 0, *arrays[6:])
    odd = [np.nan, -1, 0.5, 1e9, 1e300, -1e300, 32 * scale]
    rows = np.vstack([X, np.column_stack([np.zeros(len(odd)), odd])])
    scores = [
        library.score(ctypes.byref(trees), ctypes.c_void_p(row.ctypes.data), ctypes.c_int64(2))
        for row in rows
    ]
    np.testing.assert_array_equal(scores, model.predict(rows))
    np.testing.assert_array_equal(model.predict(sp.csr_array(rows)), scores)
    single = np.where(np.abs(rows) > 1e30, np.nan, rows).astype(np.float32)
    np.testing.assert_array_equal(
        model.predict(single), plain_scores(model, single.astype(np.float64))
    )
    for at, node in enumerate(model.estimators_):
        for value in (*range(6), 31, 32, np.nan, -1, 0.5):
            has = library.has(ctypes.byref(trees), at, value)
            assert has == (value in node["categories"])


def test_wide_sparse_rows_are_searched():
    X, y, qid = problem()
    narrow = sp.csr_array(np.nan_to_num(X))
    wide = sp.csr_array((narrow.data, narrow.indices * 2**20, narrow.indptr), (200, 2**20 + 1))
    one = rc.RankBoost(4, categorical_features=[1], **TREES).fit(narrow, y, qid=qid)
    other = rc.RankBoost(4, categorical_features=[2**20], **TREES).fit(wide, y, qid=qid)
    np.testing.assert_array_equal(one.predict(narrow), other.predict(wide))


def test_contributions_and_importances_follow_from_the_trees():
    X, y, qid = problem()
    model = rc.RankBoost(8, weak="tree", min_samples_leaf=2, categorical_features=[1])
    model.fit(X, y, qid=qid)
    curve = model.contribution(1)
    assert curve.thresholds.tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5][: curve.thresholds.size]
    grid = np.column_stack([np.full(9, np.nan), [0, 1, 2, 3, 4, 5, 6, 99, np.nan]])
    scores = model.predict(grid)
    other = model.contribution(0).missing
    at = np.searchsorted(curve.thresholds, grid[:8, 1])
    np.testing.assert_allclose(curve.values[at] + other, scores[:8], atol=1e-12)
    assert curve.missing == curve.values[-1]
    nodes = model.estimators_
    split = nodes["feature"] == 1
    assert 0 < split.sum() < nodes.size
    assert np.isposinf(nodes["threshold"][split]).all()
    assert all(bool(one) == two for one, two in zip(nodes["categories"], split, strict=True))
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_categories_improve_on_their_numeric_codes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(3000, 1)).astype(float)
    y = (rng.permutation(40)[X[:, 0].astype(int)] % 2).astype(float)
    one_tree = {"n_estimators": 1, "weak": "tree", "min_samples_leaf": 1}
    sets = rc.BipartiteRankBoost(**one_tree, categorical_features=[0]).fit(X, y)
    numbers = rc.BipartiteRankBoost(**one_tree).fit(X, y)
    assert (
        rc.metrics.auc_score(y, sets.predict(X)) == 1 > rc.metrics.auc_score(y, numbers.predict(X))
    )


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_files_are_the_same_for_every_number_of_threads(tmp_path, sparse):
    X, y, qid = problem(n=600)
    rng = np.random.default_rng(0)
    X = np.hstack(
        [np.nan_to_num(X), rng.integers(0, 30, (600, 20)) * (rng.random((600, 20)) < 0.3)]
    )
    X = sp.csr_array(X) if sparse else X
    files = set()
    for n_jobs in (1, 2, 4):
        model = rc.RankBoost(6, categorical_features=list(range(1, 22, 2)), n_jobs=n_jobs, **TREES)
        rc.save(model.fit(X, y, qid=qid).set_params(n_jobs=None), tmp_path / "model")
        files.add((tmp_path / "model").read_bytes())
    assert len(files) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"categorical_features": "city"}, "None, 'from_dtype' or a list of columns"),
        ({"categorical_features": [2]}, "numbers of columns from 0 to 1"),
        ({"categorical_features": [-1]}, "numbers of columns from 0 to 1"),
        ({"categorical_features": ["city"]}, "a column not in X: 'city'"),
        ({"categorical_features": [True]}, "a mask of 1 columns, but X has 2"),
        ({"categorical_features": [0.5]}, "must be a mask, numbers or names"),
        ({"categorical_features": [[1]]}, "must be a mask, numbers or names"),
        ({"categorical_features": 1}, "must be a mask, numbers or names"),
        ({"categorical_features": [0]}, "column 0 must hold integers from 0 to 65535"),
        ({"categorical_features": [1], "missing": "zero"}, "incompatible"),
        ({"categorical_features": [1], "monotonic_cst": [0, 1]}, "must be 0 for categorical"),
        ({"categorical_features": [1], "max_bins": 5}, "6 categories .* more than max_bins=5"),
    ],
    ids=str,
)
def test_bad_parameters_are_rejected(parameters, message):
    X, y, qid = problem()
    model = rc.RankBoost(3, **{**TREES, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, qid=qid)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_bad_columns_are_rejected():
    pandas = pytest.importorskip("pandas")
    X, y, qid = problem()
    data = frame(X, "pandas")
    far = X.copy()
    far[5, 1] = 65536
    trees = rc.RankBoost(3, **TREES)
    with pytest.raises(ValueError, match="column 1 must hold integers .* got 65536"):
        clone(trees).set_params(categorical_features=[1]).fit(far, y, qid=qid)
    with pytest.raises(ValueError, match="column 1 must hold integers .* got 65536"):
        clone(trees).set_params(categorical_features=[1]).fit(sp.csr_array(far), y, qid=qid)
    with pytest.raises(ValueError, match="encode it first"):
        clone(trees).set_params(categorical_features=None).fit(data, y, qid=qid)
    with pytest.raises(ValueError, match="'city' has dtype category, but stumps have no"):
        rc.RankBoost(3).fit(data, y, qid=qid)
    with pytest.raises(ValueError, match="column 1 is categorical, but stumps have no"):
        rc.BipartiteRankBoost(3, categorical_features=[1]).fit(X, y, qid=qid)
    dates = data.assign(city=pandas.Categorical(pandas.to_datetime(["2020-01-01"] * 200)))
    with pytest.raises(ValueError, match="categories must be strings or numbers; column 'city'"):
        clone(trees).fit(dates, y, qid=qid)
    with pytest.raises(ValueError, match="'city' has 6 categories .* set max_bins=None"):
        clone(trees).set_params(max_bins=5).fit(data, y, qid=qid)
    trees.fit(data, y, qid=qid)
    with pytest.raises(ValueError, match="'city' must hold categories such as 'oslo'"):
        trees.predict(data.assign(city=1))
    polars = frame(X, "polars enum").with_columns(city=1)
    with pytest.raises(ValueError, match="'city' must hold categories such as 'oslo'"):
        trees.predict(polars)
    named = clone(trees).set_params(categorical_features=["size"])
    with pytest.raises(ValueError, match="categorical column 'size' must hold integers"):
        named.fit(data[["size"]], y, qid=qid)


def test_crafted_files_are_rejected():
    from rankcore.boosting._tree_model import TreeSum
    from rankcore.boosting.categories import Categories

    X, y, qid = problem()
    model = rc.RankBoost(3, **TREES).fit(frame(X, "pandas"), y, qid=qid)
    facts = json.loads(json.dumps(model._categories.facts()))
    assert Categories.restored(facts, 2).labels == {1: CITIES}
    for odd in (
        {"columns": []},
        {"columns": [1, 1]},
        {"columns": [2], "labels": {}},
        {"columns": [-1], "labels": {}},
        {"columns": [True]},
        {"labels": {"0": ["a"]}},
        {"labels": {"1": ["a", "a"]}},
        {"labels": {"1": [None]}},
    ):
        with pytest.raises(ValueError, match="the categorical features must be different columns"):
            Categories.restored({**facts, **odd}, 2)
    arrays = model._state.model.to_arrays()
    finite = np.where(np.isinf(arrays["thresholds"]), 0.0, arrays["thresholds"])
    for changes, message in [
        ({"thresholds": finite}, "either a set or a finite threshold"),
        ({"sets": arrays["sets"][1:]}, "do not form trees"),
        ({"sets": arrays["sets"][::-1].copy()}, "do not form trees"),
        ({"words": arrays["words"][1:]}, "do not form trees"),
        (
            {"words": arrays["words"].astype(np.int64)},
            "array words has .* and dtype int64; expected .* and uint32",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            TreeSum.from_arrays({**arrays, **changes}, 2, False)


def test_the_command_takes_columns_of_categories(tmp_path):
    pytest.importorskip("typer")
    from sklearn.datasets import dump_svmlight_file
    from typer.testing import CliRunner

    from rankcore.cli.app import app

    X, y, qid = problem()
    X = np.nan_to_num(X)
    with open(tmp_path / "rows.txt", "wb") as file:
        dump_svmlight_file(X, y, file, zero_based=False, query_id=qid)
    command = ["train", str(tmp_path / "rows.txt"), "-o", str(tmp_path / "model"), "--quiet"]
    command += ["--model", "rankboost-trees", "--epochs", "5", "--set", "categorical_features=[1]"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    loaded = rc.load(tmp_path / "model")
    assert loaded.is_categorical_.tolist() == [False, True]
    again = clone(loaded).fit(sp.csr_array(X), y, qid=qid)
    np.testing.assert_array_equal(loaded._state.model.score(as_rows(X)), again.predict(X))


BOTH = [rc.RankBoost, rc.BipartiteRankBoost]


@pytest.mark.parametrize("learner", BOTH, ids=lambda one: one.__name__)
def test_interruption_does_not_change_the_model(learner):
    X, y, qid = problem()
    data = frame(X, "pandas")
    model = learner(5, **TREES).fit(data, y, qid=qid)
    before = model.predict(data)

    def interrupt(progress):
        if progress.epoch == 7:  # a round, of more than there were
            raise KeyboardInterrupt

    more = frame(X, "pandas", ["york", *CITIES])
    for warm in (False, True):
        model.set_params(n_estimators=9, warm_start=warm)
        with watch(interrupt), pytest.raises(KeyboardInterrupt):
            model.fit(more[:100], y[:100], qid=qid[:100])
        assert model.categories_ == {1: CITIES}
        np.testing.assert_array_equal(model.predict(data), before)


@pytest.mark.parametrize("learner", BOTH, ids=lambda one: one.__name__)
def test_all_parameters_of_trees_work_together(learner, tmp_path):
    X, y, qid = problem(n=300)
    train, held = qid < 10, qid >= 10
    data = frame(X, "polars enum")
    model = learner(
        40,
        max_leaf_nodes=8,
        max_depth=4,
        learning_rate=0.3,
        leaf_step="newton",
        min_samples_leaf=3,
        min_pair_weight=0.001,
        l2_leaf=0.001,
        subsample=0.8,
        max_features=0.9,
        monotonic_cst={"size": 1},
        pair_weight="ndcg@5",
        eval_metric="map",
        early_stopping_rounds=5,
        random_state=1,
        n_jobs=2,
    )
    model.fit(
        data.filter(train),
        y[train],
        qid=qid[train],
        eval_set=(data.filter(held), y[held]),
        eval_qid=qid[held],
    )
    trees = model._state.model.trees
    assert len(trees) == model.best_iteration_ <= model.n_iter_ <= 40
    assert max(tree.features.size for tree in trees) <= 7
    stages = list(model.staged_predict(data))
    values = [
        rc.metrics.evaluate(y[held], one[held], qid=qid[held], metrics=["map"])["map"]
        for one in stages
    ]
    assert values == model.history_["valid_map"][: len(trees)]
    assert model.feature_importances_.shape == (2,)
    rows = np.column_stack([np.linspace(-3, 3, 50), np.zeros(50)])
    for city in (*range(6), np.nan):
        rows[:, 1] = city
        assert (np.diff(model._state.model.score(as_rows(rows, nan=True))) >= 0).all()
    rc.save(model, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(data), stages[-1])


@pytest.mark.parametrize("kind", ["pandas", "polars enum", "polars categorical"])
@pytest.mark.parametrize(
    "learner",
    [rc.RankBoost(8, **TREES), rc.BipartiteRankBoost(8, **TREES), rc.OrdinalBoost(30)],
    ids=str,
)
def test_predictor_accepts_the_frame_of_predict(tmp_path, capsys, learner, kind):
    X, y, qid = problem()
    y = y > 0 if isinstance(learner, rc.BipartiteRankBoost) else y
    queries = {"qid": qid} if isinstance(learner, rc.RankBoost) else {}
    known = CITIES[:-1]
    rows = X[X[:, 1] != len(known)]  # no category beyond the known ones
    kept = X[:, 1] != len(known)
    queries = {name: values[kept] for name, values in queries.items()}
    model = learner.fit(frame(rows, kind, known), y[kept], **queries)
    others = frame(X, kind)  # with a category that is new
    rc.save(model, tmp_path / "model")
    predictor = rc.Predictor(tmp_path / "model")
    np.testing.assert_array_equal(predictor.predict(others), model.predict(others))
    assert len({*model.predict(others).tolist()}) > 1
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(predictor.predict_proba(others), model.predict_proba(others))
    with pytest.raises(ValueError, match="must hold categories such as"):
        predictor.predict(others.assign(city=1.0) if kind == "pandas" else _with_number(others))
    check = rc.export(model, tmp_path / "ranker.c", "c", check=others)
    assert (check.n_rows, check.largest_difference) == (len(X), 0.0)
    assert "200 rows" in capsys.readouterr().out


def _with_number(data):
    import polars

    return data.with_columns(polars.lit(1.0).alias("city"))
