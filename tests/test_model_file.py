"""Model files as other programs see them: the format, its document, large files."""

import json
import mmap
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import rankcore as rc
from declared import QID, SAVED, X, Y, answer, fitted, ranks_queries, walk
from model_files import CHECKSUM, rewrite, set_in, taken_apart
from rankcore._core import scoring as scoring_names
from rankcore.clicks.online import PairwiseGradientRanker
from rankcore.io import contents, model_file

pytestmark = pytest.mark.kernel

DOCUMENT = Path(__file__).parents[1] / "docs" / "model_file.md"
needs_document = pytest.mark.skipif(not DOCUMENT.exists(), reason="the sources are not here")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@walk(SAVED)
def test_the_library_of_the_format_reads_and_writes_them(tmp_path, learner, form):
    numpy_file = pytest.importorskip("safetensors.numpy", reason="no safetensors")
    from safetensors import safe_open

    model, path = fitted(learner, form), tmp_path / "m.safetensors"
    rc.save(model, path)
    document, arrays = taken_apart(path.read_bytes())
    found = numpy_file.load_file(path)
    assert found.pop(CHECKSUM).size == 4
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    with safe_open(path, "np") as stream:
        metadata = stream.metadata()
    assert metadata["learner"] == document["learner"] == type(learner).__name__
    # What the library writes has no checksum, and is a model file all the same.
    del metadata["checksum"]
    numpy_file.save_file(found, tmp_path / "theirs", metadata)
    loaded = rc.load(tmp_path / "theirs")
    np.testing.assert_array_equal(answer(loaded, X), answer(model, X))


@walk(SAVED)
def test_equal_models_have_equal_files(tmp_path, learner):
    for name in ["one", "two"]:
        rc.save(fitted(learner), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@walk(SAVED)
def test_large_files_are_mapped(tmp_path, monkeypatch, learner):
    model, path = fitted(learner), tmp_path / "m"
    rc.save(model, path)
    monkeypatch.setattr(contents, "LARGE", 0)
    for verify in [None, True, False]:
        loaded = rc.load(path, verify=verify)
        np.testing.assert_array_equal(answer(loaded, X), answer(model, X))
    if hasattr(model, "partial_fit"):
        queries = {"qid": QID} if ranks_queries(learner) else {}
        for one in (model, loaded):
            one.partial_fit(X, Y, **queries)
        np.testing.assert_array_equal(answer(loaded, X), answer(model, X))
    content = path.read_bytes()
    rc.save(rc.load(path), path)  # over the file that is mapped
    assert path.read_bytes() == content


def test_arrays_have_any_names():
    names = ["", "0", "Z", "__metadata", "__metadata___", "a", "é"]
    arrays = {name: np.arange(3.0) + place for place, name in enumerate(names)}
    content = b"".join(model_file.safetensors.pack({"of": "all"}, arrays))
    metadata, found = model_file.safetensors.unpack(content)
    assert metadata == {"of": "all"}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert content[found[name].first : found[name].last] == array.tobytes()


def test_large_files_are_verified_on_demand(tmp_path, monkeypatch):
    path = tmp_path / "m"
    rc.save(rc.PRank(average=False, random_state=0).fit(X, Y), path)
    content = bytearray(path.read_bytes())
    _, tensors = model_file.safetensors.unpack(bytes(content))
    content[tensors["weights"].first] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="the checksum does not match the content"):
        rc.load(path)
    monkeypatch.setattr(contents, "LARGE", 0)
    rc.load(path)
    with pytest.raises(ValueError, match="the checksum does not match the content"):
        rc.load(path, verify=True)
    weights = np.array([np.nan, 0, 0, 0, 0])
    rewrite(path, None, {"weights": weights})
    with pytest.raises(ValueError, match="NaN or infinity"):
        rc.load(path, verify=True)
    with pytest.raises(ValueError, match="overflow"):
        rc.load(path).predict(X)
    # What could lead beyond an array is checked even so.
    rewrite(path, None, {"weights": np.zeros(4)})
    with pytest.raises(ValueError, match=r"has shape \(4,\) .* for 5 features"):
        rc.load(path)


def test_a_mapped_model_shares_its_memory_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "LARGE", 0)
    rc.save(rc.PRank(average=False, random_state=0).fit(X, Y), tmp_path / "m")
    array = rc.load(tmp_path / "m")._state.model["weights"]
    assert not array.flags.writeable
    while isinstance(array.base, np.ndarray):
        array = array.base
    assert isinstance(getattr(array.base, "obj", array.base), mmap.mmap)


# ---------------------------------------------------------------- the document


def rows_of(heading):
    """Names in the first column of the tables below a heading."""
    text = DOCUMENT.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", text, flags=re.M)
    return {name for cell in cells for name in re.findall("`([^`]+)`", cell)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path, found = tmp_path_factory.mktemp("models") / "m", []
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    models = [fitted(one, form) for one in SAVED for form in (np.asarray, sp.csr_array)]
    models += [
        make_pipeline(scaler, rc.PRank()).fit(frame, Y)
        for scaler in (StandardScaler(), MaxAbsScaler(), MinMaxScaler(clip=True))
    ]
    models.append(make_pipeline(StandardScaler(), MaxAbsScaler(), rc.PRank()).fit(frame, Y))
    texts = [" ".join(map(str, row)) for row in X]
    models.append(rc.CalibratedOrdinal(make_pipeline(CountVectorizer(), rc.PRank())).fit(texts, Y))
    models.append(rc.PRank().fit(frame, Y))
    models += [
        kind(average=True, half_life="auto").fit(X, Y)
        for kind in (
            rc.PRank,
            rc.CuSumRank,
            rc.WidrowHoff,
            rc.MulticlassPerceptron,
            rc.OrdinalLogistic,
        )
    ]
    words = np.array([f"grade {y}" for y in Y])
    models.append(rc.RankSVM(classes=np.unique(words)).fit(X, words, qid=np.arange(len(X)) // 10))
    models.append(rc.CalibratedOrdinal().fit(X, Y).conformalize(X, Y))
    models.append(rc.OrdinalBoost(3).fit(X, Y).conformalize(X, Y))
    models.append(PairwiseGradientRanker().fit(X, [0, 1], [0, 1]))
    queries = frame.assign(query=np.arange(len(X)) // 10)
    judged = rc.PairwisePerceptron(variant="committee", quality="ndcg@10")
    models.append(
        judged.fit(X, Y, qid=queries["query"], eval_set=[(X, Y)], eval_qid=[queries["query"]])
    )
    models.append(rc.RankSVM().fit(queries, Y, qid="query"))
    for model in models:
        rc.save(model, path)
        found.append(taken_apart(path.read_bytes()))
    return found


@needs_document
def test_every_array_and_key_is_in_the_document_and_none_else(files):
    numbered = re.compile(r"(?<=^validation\.)\d+$")
    # A model that asks another has its arrays and keys under `estimator.`.
    own = re.compile(r"^estimator\.")
    arrays = {numbered.sub("I", own.sub("", name)) for _, found in files for name in found}
    arrays = {name for name in arrays if not name.startswith(("scoring.", "steps."))} | {CHECKSUM}
    assert arrays == rows_of("Arrays")
    keys = {own.sub("", key) for document, _ in files for key in document}
    scoring = {key for key in keys if key.startswith("scoring")}
    parts = {f"scoring.{name}" for name in (*scoring_names.FACTS, *scoring_names.ARRAYS)}
    assert scoring == {"scoring", *parts}
    assert keys - scoring == rows_of("Metadata")
    assert scoring == rows_of("Scoring")
    assert {document["scoring"] for document, _ in files} == rows_of("Forms")
    facts = {name for document, _ in files for name in document["facts"]}
    assert facts == rows_of("Facts")


@needs_document
def test_dtypes_and_dimensions_equal_the_document(files):
    text = DOCUMENT.read_text().split("## Arrays\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| \((.*?)\) \|", text, flags=re.M)
    forms = {
        name: (dtype, shape)
        for names, dtype, shape in rows
        for name in re.findall("`([^`]+)`", names)
    }
    for _, arrays in files:
        for name, array in arrays.items():
            plain = name.removeprefix("estimator.")
            if not plain.startswith(("scoring.", "steps.")):
                dtype, shape = forms[re.sub(r"validation\.\d+", "validation.I", plain)]
                assert str(array.dtype) in dtype.split(" or "), name
                shapes = [
                    [axis for axis in one.split(", ") if axis] for one in shape.split(") or (")
                ]
                assert array.ndim in [len(one) for one in shapes], name


@needs_document
def test_documented_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rc.save(rc.PRank(random_state=0).fit(X, Y), "model.rankcore")
    code = re.search(r"```python\n(import json.*?)```", DOCUMENT.read_text(), flags=re.S)[1]
    scope = {}
    exec(code, scope)
    model = rc.load("model.rankcore")
    np.testing.assert_array_equal(scope["weights"], model.coef_)
    np.testing.assert_array_equal(scope["thresholds"], model.thresholds_)
    assert json.loads(scope["metadata"]["parameters"]) == model.get_params()


SCALED = [make_pipeline(one, rc.PRank()) for one in (StandardScaler(), MinMaxScaler(clip=True))]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@walk([*SAVED, *SCALED])
def test_load_verifies_the_scoring_arrays(tmp_path, learner, form):
    if learner in SCALED and form is not np.asarray:
        pytest.skip("scalers that centre take dense rows")
    path = tmp_path / "model"
    model = clone(learner).fit(X, Y) if learner in SCALED else fitted(learner, form)
    rc.save(model, path)
    content = path.read_bytes()
    document, arrays = taken_apart(content)
    keys = [key for key in document if key.startswith("scoring")]
    changed = 0
    for key in keys:
        name = document[key]
        if name in arrays:
            if not name.startswith("scoring.") or not arrays[name].size:
                continue  # the learner's own
            array = arrays[name]
            other = -array if array.dtype.kind == "f" and array.any() else array + 1
            rewrite(path, arrays={name: other.astype(array.dtype)})
        elif key == "scoring.reason":  # words
            continue
        else:
            rewrite(path, set_in(key, value="other"))
        changed += 1
        with pytest.raises(ValueError, match=f"{key} must be that of the learner"):
            rc.load(path)
        assert answer(rc.load(path, verify=False), X).size == len(X)
        path.write_bytes(content)
    assert changed
    rc.load(path, verify=True)


@pytest.mark.parametrize(
    ("scaler", "array"),
    [
        (StandardScaler(), "scale_"),
        (StandardScaler(), "mean_"),
        (StandardScaler(), "var_"),
        (MaxAbsScaler(), "scale_"),
        (MinMaxScaler(), "min_"),
    ],
    ids=str,
)
def test_load_rejects_a_scaler_without_fitted_attributes(tmp_path, scaler, array):
    path = tmp_path / "model"
    rc.save(make_pipeline(scaler, rc.PRank()).fit(X, Y), path)

    def edit(document):
        document["scaler"]["arrays"].remove(f"scaler.{array}")
        for key in [key for key, value in document.items() if value == f"scaler.{array}"]:
            del document[key]

    rewrite(path, edit, arrays={f"scaler.{array}": None})
    for verify in (True, False):
        with pytest.raises(ValueError, match=f"the array scaler.{array} is missing"):
            rc.load(path, verify=verify)


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("with_std", [True, False])
def test_scaler_without_optional_attributes_loads(tmp_path, with_mean, with_std):
    model = make_pipeline(StandardScaler(with_mean=with_mean, with_std=with_std), rc.PRank())
    rc.save(model.fit(X, Y), tmp_path / "model")
    np.testing.assert_array_equal(rc.load(tmp_path / "model").predict(X), model.predict(X))
