"""Preprocessing steps in model files: every step of scikit-learn, and no code that is not named."""

import io
import json
import os
import subprocess
import sys
import zipfile
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import rankcore as rc
from model_files import put_together, rewrite, set_in, taken_apart
from rankcore.io import steps
from texts import TEXTS, Y, reviews, table

UNSEEN = [*reviews(40, seed=7)[0], "", "nothing known", "Café CAFÉ cafe\u0301 don't a1 _x_"]
NUMBERS = np.random.default_rng(0).normal(size=(len(Y), 4)) * [1, 10, 1000, 0.1]
HOLES = np.where(np.random.default_rng(1).random(NUMBERS.shape) < 0.2, np.nan, NUMBERS)
CATEGORIES = np.random.default_rng(1).integers(0, 6, size=(len(Y), 3))
WORDS = np.array(["x", "yy", "é", "", "映画", "z"], dtype=object)[CATEGORIES]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m"


def before(*front):
    return make_pipeline(*front, rc.PRank(random_state=0))


def through(model, rows):
    """Rows after the steps, one after the other."""
    for _, step in model.steps[:-1]:
        rows = rows if step == "passthrough" else step.transform(rows)
    return rows


def assert_same(one, two):
    """Assert that two results of transform are equal to the bit."""
    assert type(one) is type(two)
    if sp.issparse(one):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part), strict=True)
    else:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two), strict=True)


def assert_restored(path, model, X, *more, **options):
    """Assert that load restores rows, predictions, settings and a further fit."""
    rc.save(model, path)
    found = rc.load(path, **options)
    assert repr(found) == repr(model)
    for rows in (X, *more):
        assert_same(through(found, rows), through(model, rows))
        np.testing.assert_array_equal(found.predict(rows), model.predict(rows), strict=True)
    again = clone(found).fit(X, Y)
    np.testing.assert_array_equal(again.predict(X), clone(model).fit(X, Y).predict(X))
    return found


# ------------------------------------------------------------------------ steps of scikit-learn

COLUMNS = [
    ("words", TfidfVectorizer(), "text"),
    ("numbers", make_pipeline(StandardScaler(), MinMaxScaler()), ["age", "length"]),
    ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
]
OF_NUMBERS = [
    [SimpleImputer()],
    [SimpleImputer(strategy="median", add_indicator=True), StandardScaler()],
    [KNNImputer(n_neighbors=3)],
]
OF_WHOLE = [
    [RobustScaler()],
    [RobustScaler(quantile_range=(10.0, 90.0), unit_variance=True), Nystroem(n_components=9)],
    [Nystroem(kernel="poly", n_components=5, random_state=0)],
    [RBFSampler(n_components=9, random_state=0)],
    [QuantileTransformer(n_quantiles=20, output_distribution="normal")],
    [PowerTransformer()],
    [PolynomialFeatures(2), MaxAbsScaler()],
    [KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")],
    [Normalizer()],
    [VarianceThreshold(), PCA(2, random_state=0)],
    [FunctionTransformer(), FunctionTransformer(np.arctan)],  # a ufunc, which skops trusts
    [FeatureUnion([("a", StandardScaler()), ("b", make_pipeline(PCA(1), MinMaxScaler()))])],
    [StandardScaler(), MaxAbsScaler()],
    ["passthrough", StandardScaler()],
]
OF_TEXTS = [
    [TfidfVectorizer()],
    [TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, dtype=np.float32)],
    [CountVectorizer(vocabulary=["slow", "good", "bad"])],
    [CountVectorizer(stop_words=["good"], min_df=2, token_pattern=r"(?u)[^\s,!]+")],
    [CountVectorizer(), TfidfTransformer(norm="l1")],
    [HashingVectorizer(n_features=512, alternate_sign=False)],
    [TfidfVectorizer(), MaxAbsScaler()],
    [make_pipeline(TfidfVectorizer(), TruncatedSVD(3, random_state=0))],
]
OF_CATEGORIES = [
    [OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20)],
    [OneHotEncoder(drop="first", sparse_output=False)],
    [OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)],
]


@pytest.mark.parametrize("front", OF_NUMBERS, ids=str)
def test_load_restores_steps_of_missing_values(path, front):
    assert_restored(path, before(*front).fit(HOLES, Y), HOLES, NUMBERS)


@pytest.mark.parametrize("front", OF_WHOLE, ids=str)
def test_load_restores_steps_of_numbers(path, front):
    model = before(*front)
    for step in model:
        if hasattr(step, "random_state"):
            step.set_params(random_state=0)
    assert_restored(path, model.fit(NUMBERS, Y), NUMBERS, 2 * NUMBERS)


@pytest.mark.parametrize("front", OF_TEXTS, ids=str)
def test_load_restores_steps_of_texts(path, front):
    assert_restored(path, before(*front).fit(TEXTS, Y), TEXTS, UNSEEN)


@pytest.mark.parametrize("front", OF_CATEGORIES, ids=str)
@pytest.mark.parametrize("X", [CATEGORIES, WORDS], ids=["numbers", "words"])
def test_load_restores_steps_of_categories(path, front, X):
    assert_restored(path, before(*front).fit(X, Y), X)


@pytest.mark.parametrize(
    "columns",
    [
        ColumnTransformer(COLUMNS),
        ColumnTransformer(COLUMNS, sparse_threshold=0, transformer_weights={"words": 2.0}),
        ColumnTransformer([COLUMNS[0], ("no", "drop", ["kind"])], remainder="passthrough"),
        ColumnTransformer([COLUMNS[0], COLUMNS[2]], remainder=StandardScaler()),
        ColumnTransformer([COLUMNS[0], ("n", "passthrough", slice(1, 3))]),
        ColumnTransformer([("w", CountVectorizer(), 0), ("n", MinMaxScaler(), [1, 2])]),
        ColumnTransformer([("n", RobustScaler(), slice("age", "length"))]).set_output(
            transform="pandas"
        ),
    ],
    ids=range(7),
)
def test_load_restores_column_transformers(path, columns):
    frame = table()
    model = before(columns).fit(frame, Y)
    found = assert_restored(path, model, frame)
    assert found[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()
    calibrated = rc.CalibratedOrdinal(clone(model)).fit(frame, Y)
    rc.save(calibrated, path)
    again = rc.load(path)
    np.testing.assert_array_equal(again.predict_proba(frame), calibrated.predict_proba(frame))
    assert again.feature_names_in_.tolist() == frame.columns.tolist()


def test_load_restores_learned_categories_of_a_learner_after_steps(path):
    pd = pytest.importorskip("pandas")
    frame = table()[["age", "kind"]].assign(kind=lambda one: one["kind"].astype("category"))
    columns = ColumnTransformer(
        [("age", SimpleImputer(), ["age"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    trees = rc.OrdinalBoost(5, categorical_features="from_dtype")
    model = make_pipeline(columns, trees).fit(frame, Y)
    assert model[-1].categories_ == {1: ["comedy", "doc", "drama"]}
    rc.save(model, path)
    found = rc.load(path)
    assert found[-1].categories_ == model[-1].categories_
    other = frame.assign(kind=pd.Categorical(frame["kind"], categories=["drama", "doc", "comedy"]))
    np.testing.assert_array_equal(found.predict_proba(other), model.predict_proba(frame))


@pytest.mark.parametrize(
    "make",
    [
        lambda: rc.CalibratedOrdinal(before(SimpleImputer())),
        lambda: make_pipeline(SimpleImputer(), rc.CalibratedOrdinal(rc.PRank(random_state=0))),
        lambda: make_pipeline(SimpleImputer(), rc.CalibratedOrdinal(before(StandardScaler()))),
        lambda: make_pipeline(SimpleImputer(), rc.CalibratedOrdinal(before(RobustScaler()))),
    ],
    ids=["inside", "before", "before and a scaler inside", "before and inside"],
)
def test_load_restores_steps_before_and_within_calibrated_learners(path, make):
    model = make().fit(HOLES, Y)
    rc.save(model, path)
    found = rc.load(path)
    assert repr(found) == repr(model)
    np.testing.assert_array_equal(found.predict_proba(HOLES), model.predict_proba(HOLES))
    again = clone(found).fit(HOLES, Y)
    np.testing.assert_array_equal(again.predict_proba(HOLES), model.predict_proba(HOLES))


def test_two_scalers_before_and_within_a_calibrated_learner_are_restored(path):
    model = make_pipeline(MaxAbsScaler(), rc.CalibratedOrdinal(before(StandardScaler())))
    rc.save(model.fit(NUMBERS, Y), path)
    np.testing.assert_array_equal(rc.load(path).predict(NUMBERS), model.predict(NUMBERS))


def test_load_restores_the_parameters_of_pipelines(path):
    nested = Pipeline([("in", before(SimpleImputer())[:-1]), ("out", rc.PRank())], verbose=True)
    rc.save(nested.fit(HOLES, Y), path)
    assert rc.load(path).get_params()["verbose"] is True
    ranker = make_pipeline(RobustScaler(), rc.RankSVM())
    ranker.fit(NUMBERS, Y, ranksvm__qid=np.zeros(len(Y)))
    rc.save(ranker, path)
    np.testing.assert_array_equal(rc.load(path).predict(NUMBERS), ranker.predict(NUMBERS))


def test_a_pipeline_of_a_learner_alone_keeps_its_scores(path):
    model = make_pipeline(rc.PRank()).fit(NUMBERS, Y)
    rc.save(model, path)
    assert repr(rc.load(path)) == repr(model)
    np.testing.assert_array_equal(rc.Predictor(path).predict(NUMBERS), model.predict(NUMBERS))


@pytest.mark.parametrize("scaler", [StandardScaler(), MaxAbsScaler(), MinMaxScaler(clip=True)])
def test_one_scaler_needs_no_skops(path, scaler, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for model in (before(scaler), rc.CalibratedOrdinal(before(scaler))):
        rc.save(model.fit(NUMBERS, Y), path)
        for found in (rc.load(path), rc.Predictor(path)):
            np.testing.assert_array_equal(found.predict(NUMBERS), model.predict(NUMBERS))
        assert steps.SKOPS not in taken_apart(path.read_bytes())[1]


def test_a_scaler_keeps_its_output(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(NUMBERS, columns=list("abcd"))
    model = before(MinMaxScaler((-2.0, 3.5)).set_output(transform="pandas")).fit(frame, Y)
    found = assert_restored(path, model, frame)
    assert isinstance(found[0].transform(frame), pd.DataFrame)


# ------------------------------------------------------------------------ readers without Python


def test_readers_without_skops_name_the_steps_in_the_archive(path):
    rc.save(before(SimpleImputer(), RobustScaler()).fit(HOLES, Y), path)
    document, arrays = taken_apart(path.read_bytes())
    assert document["scoring"] == "none"
    reason = "steps (SimpleImputer, RobustScaler) are objects of Python, which only rankcore.load"
    assert reason in document["scoring.reason"]
    assert document["steps"] == {"pipeline": 0, "classes": ["SimpleImputer", "RobustScaler"]}
    with pytest.raises(TypeError, match=r"SimpleImputer, RobustScaler.* use rankcore\.load"):
        rc.Predictor(path)
    # The bytes of the archive are not even read: others give the same error.
    rewrite(path, arrays={steps.SKOPS: np.zeros_like(arrays[steps.SKOPS])})
    with pytest.raises(TypeError, match="SimpleImputer, RobustScaler"):
        rc.Predictor(path)


def test_a_predictor_imports_no_skops(path):
    rc.save(before(SimpleImputer()).fit(HOLES, Y), path)
    program = (
        "import sys, rankcore as rc\n"
        f"try:\n    rc.Predictor({str(path)!r})\nexcept TypeError:\n    pass\n"
        "assert not {'skops', 'sklearn'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("call", ["save", "load"])
def test_without_skops_the_error_names_its_installation(path, call, monkeypatch):
    model = before(SimpleImputer()).fit(HOLES, Y)
    rc.save(model, path)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'rankcore\[skops\]'"):
        rc.load(path) if call == "load" else rc.save(model, path)


# ------------------------------------------------------------------------ code


class Doubled(TransformerMixin, BaseEstimator):
    """A step of a user."""

    def fit(self, X, y=None):
        self.n_features_in_ = 4
        return self

    def transform(self, X):
        return 2 * np.asarray(X)


def shout(text):
    return text.upper()


def test_load_takes_steps_of_users_that_are_trusted(path):
    model = before(Doubled(), FunctionTransformer(np.nan_to_num)).fit(NUMBERS, Y)
    rc.save(model, path)
    with pytest.raises(ValueError, match=r"numpy\.nan_to_num.*test_steps\.Doubled.*trusted="):
        rc.load(path)
    name = f"{Doubled.__module__}.Doubled"
    for trusted in ([name], ["numpy.nan_to_num"], [Doubled]):
        with pytest.raises(ValueError, match="Untrusted types found in the file"):
            rc.load(path, trusted=trusted)
    assert_restored(path, model, NUMBERS, trusted=[Doubled, "numpy.nan_to_num"])


@pytest.mark.parametrize(
    ("front", "name"),
    [
        (SelectKBest(f_regression, k=2), "sklearn.feature_selection._univariate_selection"),
        (FunctionTransformer(np.nan_to_num), "numpy.nan_to_num"),
        (FunctionTransformer(shout), "shout"),
    ],
    ids=["function of scikit-learn", "function of numpy", "function of a user"],
)
def test_load_rejects_functions_that_are_not_trusted(path, front, name):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(NUMBERS, columns=list("abcd"))
    front = clone(front)
    if getattr(front, "func", None) is shout:
        rc.save(before(TfidfVectorizer(preprocessor=shout)).fit(TEXTS, Y), path)
    else:
        rc.save(before(front).fit(X, Y), path)
    with pytest.raises(ValueError, match=rf"{name}.* pass their names to rankcore\.load"):
        rc.load(path)


@pytest.mark.parametrize(
    "selector",
    [
        make_column_selector(),
        make_column_selector("^[ab]$"),
        make_column_selector(dtype_include=np.number),
        make_column_selector(dtype_include="number", dtype_exclude=[object, np.integer]),
        make_column_selector(dtype_exclude=[np.bool_, np.object_, "category"]),
    ],
    ids=["all", "pattern", "numbers", "real numbers", "neither words nor categories"],
)
def test_load_takes_selectors_of_columns(path, selector):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(NUMBERS, columns=list("abcd"))
    rest = make_column_selector(dtype_include="datetime")
    front = ColumnTransformer([("n", RobustScaler(), selector), ("t", "passthrough", rest)])
    model = before(front).fit(X, Y)
    rc.save(model, path)
    again = rc.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    chosen = [one.named_steps["columntransformer"].transformers_[0][2] for one in (again, model)]
    assert list(chosen[0]) == list(chosen[1])


def archive(edit, function=None):
    """Return the archive of a FunctionTransformer whose description is edited."""
    model = steps.without_learner(before(FunctionTransformer(function)))
    content = io.BytesIO(steps.pack_steps([model]).tobytes())
    with zipfile.ZipFile(content) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    schema = parts["schema.json"].decode()
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as stream:
        for name, part in parts.items():
            stream.writestr(name, edit(schema) if name == "schema.json" else part)
    return np.frombuffer(target.getvalue(), dtype=np.uint8)


def named(module, name, loader="FunctionNode"):
    """Return an edit that replaces the function by another object."""

    def edit(schema):
        document = json.loads(schema)

        def walk(node):
            if isinstance(node, dict):
                if node.get("__class__") == "nan_to_num":
                    node.update({"__class__": name, "__module__": module, "__loader__": loader})
                for part in node.values():
                    walk(part)
            elif isinstance(node, list):
                for part in node:
                    walk(part)

        walk(document)
        assert name in json.dumps(document)
        return json.dumps(document)

    return edit


@pytest.mark.parametrize("loader", ["FunctionNode", "TypeNode", "ObjectNode"])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix" if os.name == "posix" else "nt", "system"),
        ("subprocess", "Popen"),
        ("builtins", "eval"),
        ("numpy", "load"),
        ("numpy", "fromfile"),
        ("numpy.testing._private.utils", "runstring"),
        ("sklearn.datasets", "load_files"),
        ("sklearn.utils", "resample"),
        ("rankcore", "load"),
        ("rankcore.io.model_file", "save"),
        ("rankcore", "PRank"),
    ],
)
def test_load_rejects_archives_that_name_code(path, module, name, loader):
    rc.save(before(SimpleImputer()).fit(HOLES, Y), path)
    rewrite(path, arrays={steps.SKOPS: archive(named(module, name, loader), np.nan_to_num)})
    with pytest.raises(ValueError, match=rf"Untrusted types found in the file: .*{name}"):
        rc.load(path)


def test_no_class_or_function_of_rankcore_is_trusted():
    """States of learners are checked by load alone, and kernels rely on them."""
    for name in steps.TRUSTED:
        assert not name.startswith("rankcore")
        module, _, found = name.rpartition(".")
        assert isinstance(getattr(import_module(module), found), type)


class Evil:
    """An object whose attribute, once pickle restores it, runs code."""

    def __reduce__(self):
        return os.system, ("touch owned",)


@pytest.mark.parametrize(
    "content",
    [
        np.zeros(0, dtype=np.uint8),
        np.zeros(100, dtype=np.uint8),
        np.zeros((3, 3)),
        np.frombuffer(__import__("pickle").dumps(Evil()), dtype=np.uint8),
        archive(lambda schema: "{}"),
        archive(lambda schema: "[" * 100_000),
        archive(lambda schema: schema.replace('"passthrough\\"', '"drop\\"')),
    ],
    ids=["empty", "zeros", "floats", "pickle", "no schema", "deep", "no learner"],
)
def test_load_rejects_damaged_archives(path, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rc.save(before(SimpleImputer()).fit(HOLES, Y), path)
    rewrite(path, arrays={steps.SKOPS: content})
    message = "(has preprocessing steps that skops|is damaged: .*without its learner)"
    with pytest.raises(ValueError, match=f"{path} {message}"):
        rc.load(path)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("place", [1, -1, None, "0", True, 0.0])
def test_load_rejects_missing_pipelines(path, place):
    rc.save(before(SimpleImputer()).fit(HOLES, Y), path)
    rewrite(path, set_in("steps", "pipeline", value=place))
    with pytest.raises(ValueError, match="the archive has no pipeline"):
        rc.load(path)


def test_load_rejects_a_pipeline_for_two_learners(path):
    rc.save(make_pipeline(SimpleImputer(), rc.CalibratedOrdinal(before(PCA()))).fit(HOLES, Y), path)
    document, arrays = taken_apart(path.read_bytes())
    document["estimator.steps"] = json.dumps({"pipeline": document["steps"]["pipeline"]})
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ValueError, match="not a pipeline without its learner"):
        rc.load(path)


# ------------------------------------------------------------------------ what save rejects


def test_save_rejects_functions_that_load_cannot_find(path):
    def split(text):
        return text.split()

    for function in (split, lambda text: text.split(), str.split):
        model = before(TfidfVectorizer(tokenizer=function, token_pattern=None)).fit(TEXTS, Y)
        with pytest.raises(TypeError, match=r"skops cannot save .*TfidfVectorizer.*or use pickle"):
            rc.save(model, path)
    assert not path.exists()


def test_save_rejects_steps_that_are_not_fitted(path):
    learner = rc.PRank().fit(NUMBERS, Y)
    with pytest.raises(NotFittedError):
        rc.save(make_pipeline(SimpleImputer(), learner), path)
    with pytest.raises(TypeError, match="got SimpleImputer"):
        rc.save(make_pipeline(StandardScaler(), SimpleImputer()).fit(HOLES), path)
