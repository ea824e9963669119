"""Steps for texts and tables in model files: to the bit, without code, and only where they fit."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

import rankcore as rc
from model_files import taken_apart
from texts import TEXTS, Y, reviews, table

DOCUMENT = Path(__file__).parents[1] / "docs" / "model_file.md"
needs_document = pytest.mark.skipif(not DOCUMENT.exists(), reason="the sources are not here")
UNSEEN = [*reviews(40, seed=7)[0], "", "nothing known", "Café CAFÉ cafe\u0301 don't a1 _x_"]
NUMBERS = np.random.default_rng(0).normal(size=(len(Y), 4)) * [1, 10, 1000, 0.1]
CATEGORIES = np.random.default_rng(1).integers(0, 6, size=(len(Y), 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m"


def behind(*front):
    return make_pipeline(*front, rc.PRank(random_state=0))


def same(one, two):
    """Whether two results of transform are equal to the bit."""
    assert type(one) is type(two)
    if sp.issparse(one):
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part), strict=True)
    else:
        np.testing.assert_array_equal(one, two, strict=True)


def through(model, rows):
    """Rows behind the steps; scikit-learn 1.6 warns of pipelines that end in a stateless one."""
    for _, step in model.steps[:-1]:
        rows = step.transform(rows)
    return rows


def settings_of(step):
    """Settings as text, sets and dicts in one order."""

    def text(value):
        if isinstance(value, set | dict):
            value = (type(value), sorted(value.items() if isinstance(value, dict) else value))
        return repr(value)

    return {name: text(value) for name, value in step.get_params().items()}


def assert_kept(path, model, X, *more):
    """A model comes back from its file as it was: its answers, settings, state and bytes."""
    rc.save(model, path)
    found = rc.load(path)
    for rows in (X, *more):
        same(through(model, rows), through(found, rows))
        same(model.predict(rows), found.predict(rows))
    for one, two in zip(model[:-1], found[:-1], strict=True):
        assert vars(one).keys() - {"_stop_words_id"} == vars(two).keys() - {"_stop_words_id"}
        assert type(one) is type(two)
        assert settings_of(one) == settings_of(two)
        if hasattr(one, "get_feature_names_out"):
            assert one.get_feature_names_out().tolist() == two.get_feature_names_out().tolist()
    content = path.read_bytes()
    rc.save(found, path)
    assert path.read_bytes() == content
    # The settings are whole: what is fitted anew is the same, too.
    declared = {"ranksvm__qid": np.zeros(len(Y))} if "ranksvm" in model.named_steps else {}
    again = clone(found).fit(X, Y, **declared)
    same(through(clone(model).fit(X, Y, **declared), X), through(again, X))
    return found


# ------------------------------------------------------------------------ texts

SETTINGS = [
    {},
    {"ngram_range": (1, 3)},
    {"analyzer": "char", "ngram_range": (2, 4)},
    {"analyzer": "char_wb", "ngram_range": (3, 5)},
    {"stop_words": "english"},
    {"stop_words": ["good", "bad"]},
    {"min_df": 5},
    {"min_df": 0.05, "max_df": 0.6},
    {"max_features": 7},
    {"lowercase": False},
    {"binary": True},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii"},
    {"dtype": np.float32},
    {"token_pattern": r"(?u)[^\s,!]+"},
    {"decode_error": "replace", "encoding": "latin-1"},
    {"vocabulary": ["slow", "good", "bad"]},
    {"vocabulary": ("slow", "good", "bad")},
    {"vocabulary": {"slow", "good", "bad"}},
    {"vocabulary": {"slow": 2, "good": 0, "bad": 1}},
]
TFIDF = [
    {"sublinear_tf": True},
    {"norm": "l1"},
    {"norm": None},
    {"use_idf": False},
    {"smooth_idf": False},
    {"dtype": np.dtype("float32"), "sublinear_tf": True, "ngram_range": (1, 2)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=", ".join)
@pytest.mark.parametrize("kind", [CountVectorizer, TfidfVectorizer])
def test_words_are_kept_to_the_bit(path, kind, settings):
    assert_kept(path, behind(kind(**settings)).fit(TEXTS, Y), TEXTS, UNSEEN)


@pytest.mark.parametrize("settings", TFIDF, ids=str)
def test_weights_of_words_are_kept_to_the_bit(path, settings):
    assert_kept(path, behind(TfidfVectorizer(**settings)).fit(TEXTS, Y), TEXTS, UNSEEN)
    settings = {k: v for k, v in settings.items() if k not in ("dtype", "ngram_range")}
    model = behind(CountVectorizer(), TfidfTransformer(**settings)).fit(TEXTS, Y)
    assert_kept(path, model, TEXTS, UNSEEN)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alternate_sign": False, "norm": "l1"},
        {"norm": None, "binary": True, "dtype": np.float32},
        {"analyzer": "char_wb", "ngram_range": (2, 3), "strip_accents": "unicode"},
        {"stop_words": "english", "lowercase": False},
    ],
    ids=str,
)
def test_hashed_words_are_kept_to_the_bit(path, settings):
    vectorizer = HashingVectorizer(n_features=512, **settings)
    assert_kept(path, behind(vectorizer).fit(TEXTS, Y), TEXTS, UNSEEN)


def test_bytes_are_decoded_as_before(path):
    texts = [one.encode("utf-16") for one in TEXTS]
    assert_kept(path, behind(TfidfVectorizer(encoding="utf-16")).fit(texts, Y), texts)


def test_scalers_behind_texts_are_kept(path):
    assert_kept(path, behind(TfidfVectorizer(), MaxAbsScaler()).fit(TEXTS, Y), TEXTS, UNSEEN)


def test_every_ranker_keeps_its_texts(path):
    model = make_pipeline(TfidfVectorizer(), rc.RankSVM()).fit(
        TEXTS, Y, ranksvm__qid=np.zeros(len(Y))
    )
    assert_kept(path, model, TEXTS)


def test_calibrated_texts_are_kept(path):
    front = [TfidfVectorizer(min_df=2, stop_words=["a"]), rc.PRank(random_state=0)]
    model = rc.CalibratedOrdinal(make_pipeline(*front)).fit(TEXTS, Y)
    rc.save(model, path)
    found = rc.load(path)
    np.testing.assert_array_equal(found.predict_proba(UNSEEN), model.predict_proba(UNSEEN))
    assert repr(found) == repr(model)
    assert not hasattr(found, "n_features_in_")
    refitted = clone(found).fit(TEXTS, Y)
    np.testing.assert_array_equal(refitted.predict_proba(UNSEEN), model.predict_proba(UNSEEN))


# ------------------------------------------------------------------------ numbers and categories


@pytest.mark.parametrize(
    "scaler", [MinMaxScaler(), MinMaxScaler((-2.0, 3.5)), MinMaxScaler(clip=True)], ids=str
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ranges_are_kept_to_the_bit(path, scaler, dtype):
    X = NUMBERS.astype(dtype)
    assert_kept(path, behind(scaler).fit(X, Y), X, 2 * X)
    assert_kept(path, behind(StandardScaler(), scaler).fit(X, Y), X, 2 * X)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"drop": "first"},
        {"drop": "if_binary"},
        {"drop": [0, 1, 2]},
        {"handle_unknown": "ignore"},
        {"handle_unknown": "infrequent_if_exist", "min_frequency": 20},
        {"max_categories": 3, "drop": "first", "sparse_output": False},
        {"min_frequency": 0.15, "sparse_output": False, "dtype": np.float32},
        {"categories": [[*range(6)]] * 3},
    ],
    ids=str,
)
def test_categories_are_kept_to_the_bit(path, settings):
    pd = pytest.importorskip("pandas")
    as_text = np.array(["x", "yy", "é", "", "映画", "z"], dtype=object)[CATEGORIES]
    forms = [CATEGORIES, pd.DataFrame(CATEGORIES, columns=list("abc")), CATEGORIES.astype(object)]
    if "categories" not in settings and not isinstance(settings.get("drop"), list):
        missing = as_text.copy()
        missing[3, 0], missing[4, 1], missing[5, 1] = None, np.nan, None
        forms += [as_text, as_text.astype("U3"), missing, CATEGORIES / 2, CATEGORIES > 2]
        forms.append(pd.DataFrame({"a": as_text[:, 0], "b": CATEGORIES[:, 1]}))
    for X in forms:
        assert_kept(path, behind(OneHotEncoder(**settings)).fit(X, Y), X)


def test_unknown_categories_are_answered_as_before(path):
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=25)
    model = behind(encoder).fit(CATEGORIES, Y)
    assert_kept(path, model, CATEGORIES, np.full((2, 3), 77))


COLUMNS = [
    ("words", TfidfVectorizer(), "text"),
    ("numbers", make_pipeline(StandardScaler(), MinMaxScaler()), ["age", "length"]),
    ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
]


@pytest.mark.parametrize(
    "columns",
    [
        ColumnTransformer(COLUMNS),
        ColumnTransformer(COLUMNS, sparse_threshold=0, transformer_weights={"words": 2.0}),
        ColumnTransformer(COLUMNS[:1], remainder="drop"),
        ColumnTransformer([COLUMNS[0], ("no", "drop", ["kind"])], remainder="passthrough"),
        ColumnTransformer([COLUMNS[0], COLUMNS[2]], remainder=StandardScaler()),
        ColumnTransformer([COLUMNS[0], ("n", "passthrough", slice(1, 3))]),
        ColumnTransformer([("w", CountVectorizer(), 0), ("n", MinMaxScaler(), [1, 2])]),
        ColumnTransformer(
            [("n", MaxAbsScaler(), [False, True, True, False]), ("e", StandardScaler(), [])]
        ),
        ColumnTransformer(
            [("n", StandardScaler(), np.array([1, 2]))], verbose_feature_names_out=False
        ),
        ColumnTransformer([("n", StandardScaler(), slice("age", "length"))]).set_output(
            transform="pandas"
        ),
        ColumnTransformer(
            [("deep", ColumnTransformer([("n", StandardScaler(), ["age"])]), ["length", "age"])]
        ),
    ],
    ids=range(11),
)
def test_columns_are_kept_to_the_bit(path, columns):
    pd = pytest.importorskip("pandas")
    frame = table()
    model = behind(columns).fit(frame, Y)
    rc.save(model, path)
    found = rc.load(path)
    one, two = (pipeline[:-1].transform(frame) for pipeline in (model, found))
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
    else:
        same(one, two)
    np.testing.assert_array_equal(found.predict(frame), model.predict(frame))
    assert vars(found[0]).keys() == vars(model[0]).keys()
    assert found[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()
    assert found[0].output_indices_ == model[0].output_indices_
    assert repr(found) == repr(model)
    np.testing.assert_array_equal(clone(found).fit(frame, Y).predict(frame), model.predict(frame))
    content = path.read_bytes()
    rc.save(found, path)
    assert path.read_bytes() == content
    calibrated = rc.CalibratedOrdinal(model).fit(frame, Y)
    rc.save(calibrated, path)
    again = rc.load(path)
    np.testing.assert_array_equal(again.predict_proba(frame), calibrated.predict_proba(frame))
    assert again.feature_names_in_.tolist() == frame.columns.tolist()


def test_pipelines_within_and_around(path):
    nested = Pipeline(
        [("in", make_pipeline(TfidfVectorizer(), MaxAbsScaler())), ("out", rc.PRank())]
    )
    model = nested.fit(TEXTS, Y)
    rc.save(model, path)
    np.testing.assert_array_equal(rc.load(path).predict(UNSEEN), model.predict(UNSEEN))
    X = NUMBERS
    for model in (
        make_pipeline(rc.PRank()),
        make_pipeline("passthrough", FunctionTransformer(), rc.PRank()),
        make_pipeline(StandardScaler(), "passthrough", rc.PRank()),
        make_pipeline(StandardScaler(), MaxAbsScaler(), rc.CalibratedOrdinal()),
    ):
        rc.save(model.fit(X, Y), path)
        found = rc.load(path)
        assert repr(found) == repr(model)
        np.testing.assert_array_equal(found.predict(X), model.predict(X))


# ------------------------------------------------------------------------ what is refused


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = 4
        return self

    def transform(self, X):
        return X


def shout(text):
    return text.upper()


@pytest.mark.parametrize("name", ["tokenizer", "preprocessor", "analyzer", "strip_accents"])
def test_code_is_refused_by_name(path, name):
    def split(text):
        return shout(text).split()

    function = shout if name in ("preprocessor", "strip_accents") else split
    settings = {name: function} | ({"token_pattern": None} if name == "tokenizer" else {})
    model = behind(TfidfVectorizer(**settings)).fit(TEXTS, Y)
    with pytest.raises(TypeError, match=rf"TfidfVectorizer\({name}=<function .*is code"):
        rc.save(model, path)
    assert not path.exists()


def test_steps_that_files_do_not_hold_are_refused_by_name(path):
    pytest.importorskip("pandas")
    frame, X = table(), NUMBERS
    chosen = ColumnTransformer([("n", StandardScaler(), make_column_selector("age"))])
    with pytest.raises(TypeError, match=r"'n'\(columns=.*make_column_selector.* is code"):
        rc.save(behind(chosen).fit(frame, Y), path)
    with pytest.raises(TypeError, match="found Own: use pickle"):
        rc.save(behind(Own()).fit(X, Y), path)
    with pytest.raises(TypeError, match=r"FunctionTransformer\(func=.*is code"):
        rc.save(behind(FunctionTransformer(np.abs)).fit(X, Y), path)

    class StandardScaler2(StandardScaler):
        pass

    StandardScaler2.__name__ = "TfidfTransformer"
    with pytest.raises(TypeError, match="found TfidfTransformer: use pickle"):
        rc.save(behind(StandardScaler2(), MaxAbsScaler()).fit(X, Y), path)
    half = behind(CountVectorizer(token_pattern="[^ ]+")).fit(["\ud800 b", *TEXTS[1:]], Y)
    with pytest.raises(TypeError, match="an unpaired surrogate"):
        rc.save(half, path)
    objects = np.array([[bytes(1)] * 2, [b"b"] * 2] * (len(Y) // 2), dtype=object)
    with pytest.raises(TypeError, match="categories of column 0 .* are of bytes"):
        rc.save(behind(OneHotEncoder()).fit(objects, Y), path)
    assert not path.exists()


def test_a_model_must_not_read_files(path, tmp_path):
    names = []
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_text(text)
        names.append(str(tmp_path / f"{i}.txt"))
    model = behind(TfidfVectorizer(input="filename")).fit(names, Y)
    with pytest.raises(TypeError, match="reads files by name"):
        rc.save(model, path)


def test_settings_changed_after_a_fit_are_refused(path):
    model = behind(TfidfVectorizer()).fit(TEXTS, Y)
    model[0].norm = "l1"
    with pytest.raises(TypeError, match=r"TfidfVectorizer\(norm=\) was changed after fit"):
        rc.save(model, path)
    model = behind(CountVectorizer(vocabulary=["good", "bad"])).fit(TEXTS, Y)
    model[0].vocabulary = ["bad", "good"]
    with pytest.raises(TypeError, match="not the one it was fitted with"):
        rc.save(model, path)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        rc.save(make_pipeline(CountVectorizer(), model[-1]), path)


# ------------------------------------------------------------------------ the document


@needs_document
def test_arrays_and_keys_of_steps_are_in_the_document(path):
    pytest.importorskip("pandas")
    frame, arrays, keys = table(), set(), set()
    encoder = OneHotEncoder(max_categories=2)
    scaler = StandardScaler().set_output(transform="default")
    parts = [*COLUMNS[:2], ("kind", encoder, ["kind"]), ("age", scaler, ["age"])]
    whole = ColumnTransformer(parts, remainder="drop")
    given = CountVectorizer(vocabulary=["good", "bad"])
    for model in (
        behind(whole).fit(frame, Y),
        behind(make_pipeline(given, TfidfTransformer())).fit(TEXTS, Y),
    ):
        rc.save(model, path)
        document, found = taken_apart(path.read_bytes())
        for name in found:
            if name.startswith("steps."):
                plain = re.sub(r"^steps\.(\d+\.)+|\.ends$", "", name)
                arrays.add(re.sub(r"(?<=\.)\d+$", "J", plain))
        walked = [one for _, one in document["steps"]["steps"]]
        for one in walked:
            if isinstance(one, dict):
                keys |= one.keys()
                walked += [part[1] for part in one.get("transformers", one.get("steps", []))]
    text = DOCUMENT.read_text().split("## Steps\n")[1].split("\n## ")[0]
    of_keys, of_arrays = (
        {name for cell in re.findall(r"^\| (`.*?) \|", part, flags=re.M)
         for name in re.findall("`([^`]+)`", cell)}
        for part in text.split("| name |")
    )  # fmt: skip
    assert keys == of_keys
    scaler = {name for name in arrays if name.endswith("_")}
    assert arrays - scaler == {name for name in of_arrays if not name.endswith("_")}
    assert scaler >= {name for name in of_arrays if name.endswith("_")}


# ------------------------------------------------------------------------ readers of numbers alone


def test_readers_of_numbers_are_told_why_there_is_no_score(path):
    rc.save(behind(TfidfVectorizer(), MaxAbsScaler()).fit(TEXTS, Y), path)
    document, _ = taken_apart(path.read_bytes())
    assert document["scoring"] == "none"
    assert document["scoring.reason"].startswith("TfidfVectorizer and MaxAbsScaler in front")
