"""Crafted files of steps for texts and tables: refused, in little memory and time."""

import tracemalloc

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

import rankcore as rc
from model_files import put_together, taken_apart
from test_text_files import CATEGORIES, COLUMNS, behind
from texts import TEXTS, Y, table


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m"


def damaged(path, edit=None, arrays=None):
    """Load a file whose description of steps, or arrays, are others."""
    document, found = taken_apart(path.read_bytes())
    if edit is not None:
        edit(document)
    found |= arrays or {}
    content = put_together(document, {k: v for k, v in found.items() if v is not None})
    bad = path.with_name("bad")
    bad.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="is damaged") as error:
            rc.load(bad)
        assert tracemalloc.get_traced_memory()[1] < 32 * len(content) + 2**20
    finally:
        tracemalloc.stop()
    return str(error.value)


def step(document, i=0):
    return document["steps"]["steps"][i][1]


def put(key, value, i=0, of=None):
    def edit(document):
        (step(document, i) if of is None else step(document, i)[of])[key] = value

    return edit


def strings(*words):
    content = np.frombuffer("".join(words).encode(), dtype=np.uint8)
    ends = np.cumsum([len(one.encode()) for one in words], dtype=np.int64)
    return {"steps.0.vocabulary": content, "steps.0.vocabulary.ends": ends}


@pytest.mark.parametrize(
    ("edit", "arrays", "message"),
    [
        (put("class", "FunctionTransformers"), {}, "is unknown; a newer rankcore"),
        (put("class", "__import__"), {}, "is unknown; a newer rankcore"),
        (put("class", ["TfidfVectorizer"]), {}, ""),
        (put("tokenizer", {"type": "float64"}, of="params"), {}, "code as its parameter"),
        (put("tokenizer", {"type": "builtin int"}, of="params"), {}, "code as its parameter"),
        (put("dtype", {"type": "builtin eval"}, of="params"), {}, ""),
        (put("dtype", {"type": "object"}, of="params"), {}, "is the type 'object'"),
        (put("dtype", {"array": ["a" * 9], "dtype": "U99999999"}, of="params"), {}, "an array of"),
        (
            put(
                "stop_words", {"array": ["a" * 9000, *["b"] * 9000], "dtype": "U9000"}, of="params"
            ),
            {},
            "an array of",
        ),
        (put("dtype", {"dtype": "(1000,1000)f8"}, of="params"), {}, "is the type"),
        (put("input", "filename", of="params"), {}, "reads files"),
        (put("evil", 1, of="params"), {}, "does not have"),
        (put("norm", {"slices": [1]}, of="params"), {}, ""),
        (put("norm", {"slice": [1] * 4}, of="params"), {}, ""),
        (None, strings("good"), "not one weight for each word"),
        (None, strings("good", "good"), "a repeated word, or none"),
        (None, {"steps.0.vocabulary": None}, ""),
        (None, {"steps.0.idf": np.zeros(3)}, "not one weight for each word"),
        (None, {"steps.0.idf": np.array([1])}, "not one weight for each word"),
        (None, {"steps.0.more": np.zeros(3)}, "does not have"),
        (lambda d: d["steps"]["steps"].insert(0, d["steps"]["steps"][0]), {}, ""),
        (lambda d: d["steps"].update(steps=[]), {}, "does not have"),
        (lambda d: d["steps"].update(steps=[["a", "drops"]]), {}, "unknown"),
        (lambda d: d["steps"].update(steps=[["a", "passthrough"]] * 1001), {}, "more than 1000"),
        (lambda d: d.update(scaler={"class": "StandardScaler"}), {}, ""),
    ],
)
def test_crafted_words_are_refused(path, edit, arrays, message):
    rc.save(behind(TfidfVectorizer()).fit(TEXTS, Y), path)
    assert message in damaged(path, edit, arrays)


def test_weights_of_other_kinds_are_refused(path):
    model = behind(TfidfVectorizer()).fit(TEXTS, Y)
    rc.save(model, path)
    idf = taken_apart(path.read_bytes())[1]["steps.0.idf"]
    for wrong in (np.full_like(idf, np.nan), idf.astype(np.int64), idf[:, None], idf[:-1]):
        damaged(path, None, {"steps.0.idf": wrong})


@pytest.mark.parametrize(
    ("edit", "arrays"),
    [
        (put("n_features", 2), {}),
        (put("n_features", 2**31 - 1), {}),
        (put("n_features", -1), {}),
        (put("n_features", 3.0), {}),
        (put("categories", []), {}),
        (put("categories", ["", "", "str"]), {}),
        (put("categories", ["", "", "+nan+None"]), {}),
        (put("infrequent", [9]), {}),
        (None, {"steps.0.infrequent.0": np.array([99])}),
        (None, {"steps.0.infrequent.0": np.array([-1])}),
        (None, {"steps.0.infrequent.0": np.array([1, 1])}),
        (None, {"steps.0.infrequent.0": np.array([], dtype=np.int64)}),
        (None, {"steps.0.infrequent.0": np.array([1.0])}),
        (None, {"steps.0.categories.1": np.array([], dtype=np.int64)}),
        (None, {"steps.0.categories.1": np.zeros((2, 2))}),
        (put("drop", [9, 9, 9], of="params"), {}),
        (put("max_categories", None, of="params"), {}),
    ],
)
def test_crafted_categories_are_refused(path, edit, arrays):
    model = behind(OneHotEncoder(max_categories=4, drop="first")).fit(CATEGORIES, Y)
    rc.save(model, path)
    damaged(path, edit, arrays)


def parts(document):
    return step(document)["transformers"]


@pytest.mark.parametrize(
    ("edit", "arrays"),
    [
        (put("n_features", 5), {}),
        (put("n_features", 2**31 - 1), {}),
        (lambda d: parts(d)[0].__setitem__(1, "passthrough"), {}),
        (lambda d: parts(d)[0].__setitem__(1, "drop"), {}),
        (lambda d: parts(d)[0].__setitem__(0, "numbers"), {}),
        (lambda d: parts(d)[0].__setitem__(0, "remainder"), {}),
        (lambda d: parts(d).pop(), {}),
        (lambda d: parts(d).append(parts(d)[0]), {}),
        (put("remainder", "pass"), {}),
        (put("sparse_threshold", [1], of="params"), {"steps.0.0.inputs": None}),
        (None, {"steps.0.0.inputs": np.array([7])}),
        (None, {"steps.0.0.inputs": np.array([-1])}),
        (None, {"steps.0.0.inputs": np.array([0.0])}),
        (None, {"steps.0.1.inputs": np.array([1])}),
        (None, {"steps.0.3.inputs": np.array([1])}),
        (None, {"steps.0.1.0.mean_": np.zeros(3)}),
        (None, {"steps.0.1.0.mean_": np.full(2, np.inf)}),
    ],
)
def test_crafted_columns_are_refused(path, edit, arrays):
    pytest.importorskip("pandas")
    rc.save(behind(ColumnTransformer(COLUMNS)).fit(table(), Y), path)
    damaged(path, edit, arrays)


def test_deep_and_many_steps_take_little_memory(path):
    rc.save(behind(TfidfVectorizer()).fit(TEXTS, Y), path)
    deep = {"class": "HashingVectorizer", "params": {}}
    many = [["a", deep]]
    for _ in range(200):
        deep = {"class": "Pipeline", "steps": [["a", deep]], "params": {}}
    for steps in (many * 900, many * 20_000, [["a", deep]], [["a", deep]] * 5):
        assert damaged(path, lambda d, steps=steps: d["steps"].update(steps=steps))


def test_vocabularies_take_memory_in_proportion(path):
    rng = np.random.default_rng(0)
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz0123456789"])
    words = sorted({"".join(one) for one in letters[rng.integers(0, 36, size=(60_000, 4))]})
    model = behind(TfidfVectorizer(vocabulary=words)).fit(["abcd", "efgh"] * 60, Y)
    rc.save(model, path)
    rc.load(path)
    tracemalloc.start()
    found = rc.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[0].vocabulary == words
    assert peak < 20 * path.stat().st_size + 2**20


def test_a_pattern_is_not_even_compiled_by_loading(path):
    """A regular expression that takes for ever: only texts run it, and the guide says so."""
    rc.save(behind(CountVectorizer()).fit(TEXTS, Y), path)
    document, arrays = taken_apart(path.read_bytes())
    for pattern in ("(a+)+$" * 20, "(?i)" + "[\x00-\U0010ffff]" * 2000, "(" * 500):
        step(document)["params"]["token_pattern"] = pattern
        path.write_bytes(put_together(document, arrays))
        assert rc.load(path)[0].token_pattern == pattern


def test_every_cut_and_every_changed_byte_is_refused(path):
    pytest.importorskip("pandas")
    frame = table()
    rc.save(behind(ColumnTransformer(COLUMNS)).fit(frame, Y), path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    bad = path.with_name("bad")
    for at in rng.integers(0, len(content), 60).tolist():
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        for one in (bytes(changed), content[:at]):
            bad.write_bytes(one)
            with pytest.raises(ValueError, match=r"damaged|version"):
                rc.load(bad)
