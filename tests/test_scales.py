"""Scales: of thresholds and intercepts, of features, and scalers that are kept with a model."""

import json
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import rankcore as rc
from declared import ONLINE, as_they_are, first_of_each, ranks_queries, walk, with_defaults
from model_files import put_together, taken_apart
from rankcore._core.inputs import as_rows
from rankcore._core.scales import (
    count_nonzero,
    largest_column,
    mean_square_length,
    rows_differ,
    share_of_nonzero,
    sizes_differ,
    square_lengths,
)
from rankcore.datasets import dump_letor, open_rows


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X @ [1, 2, -1, 0] + 0.5 * rng.normal(size=n), [-2, 0, 2])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("factor", [1e-30, 1e-3, 1.0, 77.0, 1e30])
def test_the_mean_square_is_the_nearest_power_of_two(form, dtype, factor):
    X = (data()[0] * factor * (np.random.default_rng(1).random((300, 4)) < 0.6)).astype(dtype)
    found = mean_square_length(as_rows(form(X)))
    exact = np.log2(np.square(X.astype(np.longdouble)).sum() / 300)
    assert np.log2(found) == round(float(exact))


def test_scales_of_empty_and_extreme_rows_are_finite():
    assert mean_square_length(as_rows(np.zeros((3, 2)))) == 1.0
    assert mean_square_length(as_rows(sp.csr_array((3, 2)))) == 1.0
    huge, tiny = (mean_square_length(as_rows(np.full((3, 2), v))) for v in (1e308, 1e-308))
    assert 1e199 < huge < 1e201  # what a threshold_scale may be
    assert 1e-201 < tiny < 1e-199


# Those that choose the scale of thresholds or intercepts by the rows.
@walk(
    [
        one
        for one in with_defaults(ONLINE)
        if hasattr(one, "threshold_scale") or hasattr(one, "intercept_scaling")
    ]
)
def test_the_unit_of_the_features_does_not_matter(learner):
    X, y = data()
    if hasattr(learner, "kernel"):
        learner = clone(learner).set_params(kernel="linear")
    if hasattr(learner, "C"):  # which limits steps in units of the features
        learner = clone(learner).set_params(update="perceptron", margin=0.0)
    for factor in [2.0**-20, 1024.0]:
        one, other = clone(learner).fit(X, y), clone(learner).fit(factor * X, y)
        np.testing.assert_array_equal(one.predict(X), other.predict(factor * X))
        assert one.history_ == other.history_


@pytest.mark.parametrize("average", [False, True], ids=["last", "averaged"])
@pytest.mark.parametrize("constant", [1.0, 0.5, 7.0])
@pytest.mark.parametrize(
    "learner",
    [
        rc.CuSumRank.published(max_iter=3),
        rc.CuSumRank.published(max_iter=3, update="pa1", C=0.1, margin=0.5),
        rc.WidrowHoff.published(max_iter=3, eta0=1e-3),
        rc.WidrowHoff.published(max_iter=3, step="normalized", eta0=0.7),
        rc.MulticlassPerceptron.published(max_iter=3, fit_intercept=True),
        rc.MulticlassPerceptron.published(max_iter=3, fit_intercept=True, update="uniform"),
    ],
    ids=str,
)
def test_intercepts_are_the_weights_of_a_constant_feature(learner, constant, average):
    X, y = data()
    learner = clone(learner).set_params(average=average)
    model = clone(learner).set_params(intercept_scaling=constant).fit(X, y)
    augmented = np.column_stack([X, np.full(len(y), constant)])
    other = clone(learner).set_params(fit_intercept=False).fit(augmented, y)
    close = {"rtol": 1e-9, "atol": 1e-9}  # the constant is added to another place in a sum
    np.testing.assert_allclose(model.coef_, other.coef_[..., :4], **close)
    np.testing.assert_allclose(model.intercept_, constant * other.coef_[..., 4], **close)
    assert model.history_ == other.history_


def test_normalised_steps_equal_the_plain_rule():
    X, y = data(60)
    w, b, sums = np.zeros(4), 0.0, np.zeros(5)
    for x, label in zip(X, y, strict=True):
        step = 0.4 * (label + 1 - (w @ x + b)) / (x @ x + 9.0)
        w, b = w + step * x, b + 9.0 * step
        sums += [*w, b]
    params = {"eta0": 0.4, "intercept_scaling": 3.0, "max_iter": 1, "shuffle": False}
    params["standardize"] = False
    model = rc.WidrowHoff(**params, average=False).fit(X, y, classes=range(4))
    np.testing.assert_allclose([*model.coef_, model.intercept_], [*w, b], rtol=1e-10)
    mean = rc.WidrowHoff(**params).fit(X, y, classes=range(4))
    np.testing.assert_allclose([*mean.coef_, mean.intercept_], sums / 60, rtol=1e-10)


def test_auto_chooses_a_scaler_by_the_data():
    X, y = data()
    square = mean_square_length(as_rows(X))
    model = rc.PRank(random_state=0).fit(X, y)
    assert model.threshold_scale_**2 == pytest.approx(4 * square, rel=1e-12)
    given = rc.PRank(threshold_scale=2 * np.sqrt(square), random_state=0).fit(X, y)
    np.testing.assert_allclose(given.coef_, model.coef_, rtol=1e-12)
    np.testing.assert_allclose(given.thresholds_, model.thresholds_, rtol=1e-12)
    stream = rc.PRank().partial_fit(X[:50], y[:50], range(4)).partial_fit(1000 * X[50:], y[50:])
    assert stream.threshold_scale_**2 == 4 * mean_square_length(as_rows(X[:50]))
    bpm = rc.OAPBPM(5, random_state=0).fit(X, y)
    assert bpm.threshold_scale_ == model.threshold_scale_
    assert {one.threshold_scale_ for one in bpm.estimators_} == {model.threshold_scale_}


@pytest.mark.parametrize("name", ["OAPBPM", "OAPBagging", "OAPVoting"])
@pytest.mark.parametrize(("n_filled", "factor"), [(99, 1), (100, 1), (101, 4)])
def test_ensembles_halve_their_automatic_scale_for_sparse_rows(name, n_filled, factor, tmp_path):
    # 40 rows of 20 columns: an eighth of the values are 100.
    places = np.random.default_rng(0).permutation(800)[:n_filled]
    X = np.zeros((40, 20))
    X.flat[places] = 1.0 + places % 3
    y = np.arange(40) % 3
    square = factor * mean_square_length(as_rows(X))
    learner = getattr(rc, name)(5, max_iter=2, shuffle=False, random_state=0, standardize=False)
    explicit = clone(learner).set_params(threshold_scale=np.sqrt(square)).fit(X, y)
    stored = sp.csr_array(np.ones_like(X))
    stored.data[:] = X.ravel()  # zeros that are stored do not count
    streams = {form: clone(learner) for form in ("dense", "stored")}
    for form, rows in (("dense", X), ("stored", stored)):
        streams[form].partial_fit(rows, y).partial_fit(np.ones_like(X), y)
    dump_letor(X, y, tmp_path / "rows.txt")
    dump_letor(stored, y, tmp_path / "stored.txt")
    on_disk = [
        open_rows(tmp_path / "rows.txt", n_features=20),
        open_rows(tmp_path / "stored.txt", n_features=20),
        open_rows(tmp_path / "rows.txt", n_features=20, cache=tmp_path / "cache"),
    ]
    models = [clone(learner).fit(rows, y) for rows in (X, sp.csr_array(X), stored)]
    models += [clone(learner).fit(rows) for rows in on_disk]
    for model in models:
        assert model._state.model["scale"][0] == square
        np.testing.assert_allclose(model.coef_, explicit.coef_, rtol=1e-12)
        np.testing.assert_allclose(model.thresholds_, explicit.thresholds_, rtol=1e-12)
    for model in streams.values():
        assert model._state.model["scale"][0] == square
    of_prank = rc.PRank(standardize=False).fit(X, y)._state.model["scale"][0]
    assert of_prank == 4 * mean_square_length(as_rows(X))


def test_models_of_different_scales_cannot_be_merged():
    X, y = data()
    one, other = (rc.PRank(random_state=0, standardize=False).fit(f * X, y) for f in (1.0, 100.0))
    with pytest.raises(ValueError, match="different scales of their thresholds"):
        rc.merge([one, other])


def test_load_rejects_negative_scales(tmp_path):
    X, y = data()
    model = rc.PRank(random_state=0).fit(X, y)
    model._state.model["scale"][0] = -3.0
    rc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"scale must be >= 0, .* got -3\.0"):
        rc.load(tmp_path / "model")


# Factors and offsets of six standard normal columns, and those that a warning names, five at most.
OFF_SCALE = {
    "one column 300 times as large": ([1, 1, 300, 1, 1, 1], [0] * 6, ["2"]),
    "one column around 2000": ([1] * 6, [0, 0, 0, 0, 2000, 0], ["4"]),
    "columns around 1000 to 6000": ([1] * 6, np.arange(1, 7) * 1000, ["5", "4", "3", "2", "1"]),
}
LEARNERS = [type(one) for one in first_of_each(ONLINE)]


def scales_warned_of(learner, X, y):
    """Return the columns that a fit names, and all texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        as_they_are(learner(max_iter=1, random_state=0)).fit(X, y)
    texts = [str(one.message) for one in caught]
    named = [re.search(r"\(column (.*?)( and \d+ more)?\)", text) for text in texts]
    return [found[1].split(", ") for found in named if found], texts


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("case", OFF_SCALE)
def test_columns_off_scale_are_named_first(learner, case):
    pd = pytest.importorskip("pandas")
    factors, offsets, columns = OFF_SCALE[case]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)) * factors + offsets, rng.integers(1, 4, 300)
    named, texts = scales_warned_of(learner, X, y)
    assert named == [columns]
    assert "StandardScaler" in texts[0]
    assert not any("best constant" in text for text in texts)  # which has another remedy
    named, _ = scales_warned_of(learner, pd.DataFrame(X, columns=[*"abcdef"]), y)
    assert named == [[repr("abcdef"[int(column)]) for column in columns]]


@pytest.mark.parametrize("learner", LEARNERS)
def test_tables_on_similar_scales_give_no_warning(learner):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 6)), rng.integers(1, 4, 300)
    hot = np.eye(6)[rng.integers(0, 6, 300)]
    rare = sp.random(300, 200, 0.02, format="csr", random_state=0)
    constant = np.column_stack([X, np.full(300, 50.0)])
    for usual in (X, np.hstack([X, hot]), hot, rare, constant, X * [1, 2, 5, 9, 1, 1]):
        assert scales_warned_of(learner, usual, y)[0] == []


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_dominating_features_are_named(form):
    X, y = data()
    X[:, 2] *= 1e5
    qid = np.arange(len(y)) % 2
    for learner in (
        rc.PRank(),
        rc.CuSumRank(),
        rc.PairwisePerceptron(standardize=False),
        rc.RankSVM(standardize=False),
        rc.RankSVM(kernel="rbf"),
        rc.RankSVMCV([0.1], cv=2, standardize=False),
    ):
        name = type(learner).__name__
        declared = {"qid": qid} if ranks_queries(learner) else {}
        with pytest.warns(UserWarning, match=rf"\(column 2\): put {name} behind a scaler"):
            as_they_are(learner).fit(form(X), y, **declared)
    with pytest.warns(UserWarning, match=r"\(column 2\): put RankSVM behind a scaler"):
        rc.ranksvm_path(form(X), y, qid=qid, Cs=[0.1], standardize=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        make_pipeline(MaxAbsScaler(), rc.PRank()).fit(form(X), y)
        rc.RankBoost(2).fit(form(X), y, qid=qid)  # cuts features at thresholds
        similarity = np.diag([1e5, *np.ones(len(y) - 1)])
        rc.RankSVM(kernel="precomputed").fit(similarity, y, qid=qid)
        rc.PRank().partial_fit(form(X), y)  # a stream is not looked at twice
    assert not rows_differ(as_rows(form(data()[0])))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array])
def test_a_few_rows_tell_whether_features_differ(form, dtype):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        n, d = rng.integers(1, 12, 2)
        sizes = rng.choice([0.0, 1e-3, 1.0, 999.0, 1000.0, 1001.0, 1e5], size=d)
        X = (rng.choice([-1.0, 1.0], (n, d)) * sizes * (rng.random((n, d)) < 0.7)).astype(dtype)
        rows, largest = as_rows(form(X)), np.abs(X).max(axis=0)
        found.append(rows_differ(rows))
        assert found[-1] == sizes_differ(largest.astype(np.float64))
        assert rows.largest == largest.max()
        assert rows.squares == pytest.approx(np.square(X, dtype=np.float64).sum(), rel=1e-14)
        assert largest_column(rows) == largest.argmax()
    assert 0.1 < np.mean(found) < 0.9


def test_overflowing_squares_are_scaled():
    for value in (1e200, 1e-200, 1e308, 5e-324):
        total, exponent = square_lengths(as_rows(np.full((4, 3), value)))
        assert np.log2(total) + 2 * exponent == pytest.approx(np.log2(12) + 2 * np.log2(value))


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        MaxAbsScaler(),
        MinMaxScaler(),
        MinMaxScaler((-3.0, 2.5), clip=True),
    ],
)
def test_scalers_are_saved_with_their_learner(scaler, tmp_path):
    X, y = data()
    X = 50 * X + 7
    pipeline = make_pipeline(scaler, rc.PRank(random_state=0)).fit(X, y)
    rc.save(pipeline, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    assert repr(loaded[0]) == repr(pipeline[0])
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    assert loaded[0].n_samples_seen_ == pipeline[0].n_samples_seen_
    rc.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    loaded[0].partial_fit(X)  # it goes on, too
    document, _ = taken_apart((tmp_path / "model").read_bytes())
    assert document["scaler"]["class"] == type(scaler).__name__


def test_names_and_types_of_scalers_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    rc.save(make_pipeline(StandardScaler(), rc.PRank()).fit(frame, y), tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert loaded[0].feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[list("abdc")])
    single = sp.csr_array(X.astype(np.float32))
    pipeline = make_pipeline(MaxAbsScaler(), rc.PRank()).fit(single, y)
    rc.save(pipeline, tmp_path / "model")
    found = rc.load(tmp_path / "model").decision_function(single)
    np.testing.assert_array_equal(found, pipeline.decision_function(single))
    frame["qid"] = np.repeat(np.arange(30), 10)
    mixed = make_pipeline(StandardScaler().set_output(transform="pandas"), rc.RankBoost(3))
    with pytest.raises(ValueError, match="keep a column of queries out of the scaler"):
        rc.save(mixed.fit(frame, y), tmp_path / "model")


def test_scalers_of_crafted_files_are_checked(tmp_path):
    X, y = data()
    rc.save(make_pipeline(StandardScaler(), rc.PRank()).fit(X, y), tmp_path / "model")
    for change in [
        lambda d: d["scaler"].update({"class": "Pipeline"}),
        lambda d: d["scaler"].update({"class": "FunctionTransformer"}),
        lambda d: d["scaler"].update({"arrays": []}),
        lambda d: d["scaler"].update({"params": {"func": 1}}),
    ]:
        document, arrays = taken_apart((tmp_path / "model").read_bytes())
        change(document)
        (tmp_path / "bad").write_bytes(put_together(document, arrays))
        with pytest.raises(ValueError, match="damaged"):
            rc.load(tmp_path / "bad")


# ------------------------------------------------------------------------------ the command line


@pytest.fixture
def command(tmp_path, monkeypatch):
    pytest.importorskip("typer", reason="the command line needs the cli extra")
    from typer.testing import CliRunner

    from rankcore.cli.app import app

    monkeypatch.chdir(tmp_path)

    def run(*args):
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return run


def write(path, X, y, qid=None):
    lines = [
        f"{label} "
        + ("" if qid is None else f"qid:{qid[i]} ")
        + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
        for i, (label, row) in enumerate(zip(y.tolist(), X.tolist(), strict=True))
    ]
    path.write_text("\n".join(lines) + "\n")


def test_default_learner_depends_on_the_file(command, tmp_path):
    X, y = data(120)
    write(tmp_path / "labels", X, y)
    write(tmp_path / "queries", X, y, np.repeat(np.arange(12), 10))
    for name, learner, why in [
        ("labels", "prank", "no line has qid:"),
        ("queries", "pairwise", "every line has qid:"),
    ]:
        done = command("train", name, "-o", "model", "--json")
        assert done.exit_code == 0, done.output
        facts = json.loads(done.stdout)
        assert (facts["model"], facts["chosen_because"]) == (learner, why)
        found = json.loads(command("evaluate", "model", name, "--json").stdout)
        assert found.get("ndcg@10", 1 - found.get("rank_loss", 0)) > 0.6
    named = json.loads(
        command("train", "queries", "-o", "model", "--model", "prank", "--json").stdout
    )
    assert "chosen_because" not in named


@pytest.mark.parametrize(
    ("scale", "of_one_size", "of_many"),
    [
        ("none", None, None),
        ("auto", None, MaxAbsScaler),
        ("maxabs", MaxAbsScaler, MaxAbsScaler),
        ("standard", StandardScaler, StandardScaler),
    ],
)
def test_few_values_are_scaled_if_their_sizes_differ(scale, of_one_size, of_many):
    pytest.importorskip("typer")
    from rankcore.cli.registry import find_learner
    from rankcore.cli.scaling import Scale, scaler_for

    learner = find_learner("prank")
    for sizes, kind in [([1, 1, 1, 1], of_one_size), ([1, 1, 1, 1e6], of_many)]:
        found = scaler_for(Scale(scale), learner, sp.csr_array(np.diag(np.array(sizes, float))))
        assert isinstance(found, kind or type(None))


@pytest.mark.parametrize("scale", ["standard", "maxabs", "auto", "none"])
def test_train_scales_and_keeps_the_scaler(command, tmp_path, scale):
    X, y = data(200)
    X[:, 1] *= 1e5
    write(tmp_path / "data", X, y)
    done = command("train", "data", "-o", "model", "--scale", scale)
    assert done.exit_code == 0, done.output
    assert "the features are not on one scale" not in done.stderr  # PRank standardises rows
    model = rc.load(tmp_path / "model")
    if scale == "none":
        assert isinstance(model, rc.PRank)
        return
    kind = MaxAbsScaler if scale == "maxabs" else StandardScaler
    expected = make_pipeline(kind(), rc.PRank(random_state=0)).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    predicted = command("predict", "model", "data").stdout.split()
    assert list(map(int, predicted)) == expected.predict(X).tolist()
    found = json.loads(command("evaluate", "model", "data", "--json").stdout)
    assert found["rank_loss"] == pytest.approx(-expected.score(X, y))
    assert json.loads(command("info", "model", "--json").stdout)["scaler"] == repr(kind())


def test_unknown_scales_are_rejected(command, tmp_path):
    X, y = data(20)
    write(tmp_path / "data", X, y)
    done = command("train", "data", "-o", "model", "--scale", "log")
    assert done.exit_code == 2
    for scale in ["none", "auto", "standard", "maxabs"]:
        assert f"'{scale}'" in done.stderr


def test_a_scaler_that_clips_has_a_file(tmp_path):
    scaler = MaxAbsScaler()
    if "clip" not in scaler.get_params():
        pytest.skip("this scikit-learn has no clip")
    model = make_pipeline(scaler.set_params(clip=True), rc.PRank(random_state=0))
    model.fit([[1.0, 0], [0, 1], [1, 1]], [1, 2, 3])
    rc.save(model, tmp_path / "model")
    loaded, rows = rc.load(tmp_path / "model"), np.array([[9.0, -9.0], [-0.5, 2.0]])
    assert loaded[0].clip
    np.testing.assert_array_equal(loaded[0].transform(rows), [[1.0, -1.0], [-0.5, 1.0]])
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_nonzero_values_are_counted(dtype):
    X = np.zeros((3, 4), dtype)
    X[0, 1], X[2, 0], X[2, 3] = 1e-40, -2.0, 3.0
    stored = sp.csr_array(np.ones_like(X))
    stored.data[:] = X.ravel()
    forms = [X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], sp.csr_array(X), stored]
    for rows in map(as_rows, forms):
        assert count_nonzero(rows) == 3
        assert share_of_nonzero(rows) == 0.25
