"""Model files: to the bit, whole or not at all, and nothing in them runs."""

import errno
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import declared
import rankcore as rc
from declared import ONLINE, ONLINE_RANKERS, SAVED, walk
from model_files import rewrite, set_in, taken_apart
from rankcore.io import safetensors
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel


def fitted(**params):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), rng.integers(1, 6, size=150)
    return rc.PRank.published(**params).fit(X[:100], y[:100]), X[100:], y[100:]


def contents(model):
    """All that a model has learned, without free room and what is recomputed when asked for."""
    return model._describe()


def same(one, other):
    assert type(one) is type(other)
    assert one.get_params() == other.get_params()
    np.testing.assert_equal(contents(one), contents(other))
    np.testing.assert_array_equal(one.classes_, other.classes_)
    assert one.classes_.dtype == other.classes_.dtype
    assert one.n_features_in_ == other.n_features_in_


@given(problem=ordinal_problems(integers=False), average=st.booleans(), cut=st.integers(1, 29))
@settings(max_examples=examples(40), deadline=None)
def test_learning_after_loading_equals_learning_without_it(problem, average, cut, tmp_path_factory):
    X, y, k = problem
    path = tmp_path_factory.mktemp("models") / "model"
    cut = min(cut, len(y))
    model = rc.PRank.published(average=average, threshold_scale=0.3)
    model.partial_fit(X[:cut], y[:cut], classes=range(1, k + 1))
    rc.save(model, path)
    loaded = rc.load(path)
    same(model, loaded)
    np.testing.assert_array_equal(model.coef_, loaded.coef_)
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    if cut < len(y):
        same(model.partial_fit(X[cut:], y[cut:]), loaded.partial_fit(X[cut:], y[cut:]))
    assert model.history_ == loaded.history_
    assert loaded.n_iter_ == 1


@walk(ONLINE)
@pytest.mark.parametrize("width", [4, 12])
def test_partial_fit_continues_after_loading(tmp_path, monkeypatch, learner, width):
    # Members of ensembles in tiles as they were saved, whatever is the choice of today.
    monkeypatch.setattr("rankcore.ordinal._members.tile_width", lambda d, n: width)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), rng.integers(1, 6, size=150)
    model = clone(learner).fit(X[:100], y[:100])
    rc.save(model, tmp_path / "m")
    monkeypatch.setattr("rankcore.ordinal._members.tile_width", lambda d, n: 8)
    loaded = rc.load(tmp_path / "m")
    same(model, loaded)
    np.testing.assert_array_equal(model.decision_function(X), loaded.decision_function(X))
    same(model.partial_fit(X[100:], y[100:]), loaded.partial_fit(X[100:], y[100:]))
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    for name, array in loaded._state.model.arrays.items():
        if min(array.shape) > 1 and hasattr(model, "estimators_"):
            assert array.strides == model._state.model[name].strides


@walk(ONLINE)
def test_edited_arrays_of_every_learner_are_rejected(tmp_path, learner):
    rng = np.random.default_rng(0)
    model = clone(learner).fit(rng.normal(size=(100, 4)), rng.integers(1, 6, size=100))
    arrays, path = model._describe()[1], tmp_path / "m.rankcore"
    rc.save(model, path)
    content = path.read_bytes()
    # Each array has one fault of three, which the same code finds in all of them.
    for i, name in enumerate(sorted(arrays.keys() & model._state.model.forms.keys())):
        array = arrays[name]
        wrong = [array[:-1], np.zeros_like(array, dtype=np.int8), array[..., None]][i % 3]
        path.write_bytes(content)
        rewrite(path, nothing, {name: wrong})
        with pytest.raises(ValueError, match="damaged"):
            rc.load(path)


def test_edited_vote_counts_are_rejected(tmp_path):
    model = rc.VotedPRank.published().fit(np.ones((8, 1)), np.tile([1, 2], 4))
    path = tmp_path / "m.rankcore"
    for name, value in [
        ("progress", [3, -9, 8, 9]),
        ("progress", [99, 1, 8, 100]),
        ("progress", [3, 1, 8, 2]),
        ("born", [-1] * (len(model.votes_) - 1)),
    ]:
        rc.save(model, path)
        rewrite(path, nothing, {name: np.array(value)})
        with pytest.raises(ValueError, match=r"the votes must be .*hypotheses"):
            rc.load(path)


@pytest.mark.parametrize(
    "classes",
    [
        ["bad", "fair", "good"],
        [1, 2, 3],
        [0.5, 1.0, 1.5],
        np.array(["2020", "2021", "2022"], dtype="datetime64[Y]"),
        np.array(["bad", "", "größer"], dtype="U40"),
        np.array([b"bad", b"", b"good"], dtype="S9"),
    ],
)
def test_labels_are_restored_unchanged(tmp_path, classes):
    model = rc.PRank.published().fit(np.eye(3), classes, classes=classes)
    rc.save(model, tmp_path / "m")
    same(model, rc.load(tmp_path / "m"))


@pytest.mark.parametrize("seed", [7, None, np.int64(7)])
def test_load_restores_seeds(tmp_path, seed):
    model, X, y = fitted(shuffle=True, random_state=seed)
    rc.save(model, tmp_path / "m")
    loaded = rc.load(tmp_path / "m")
    assert loaded.random_state == seed
    if seed is not None:
        np.testing.assert_array_equal(model.fit(X, y).coef_, loaded.fit(X, y).coef_)


@pytest.mark.parametrize(
    "generator",
    [np.random.default_rng(7), np.random.Generator(np.random.MT19937(7)), np.random.RandomState(7)],
    ids=["PCG64", "MT19937", "RandomState"],  # their texts are addresses
)
def test_save_rejects_generators_and_accepts_seeds(tmp_path, generator):
    model, X, y = fitted(random_state=generator)
    calibrated = rc.CalibratedOrdinal(clone(model)).fit(X, y)
    for whole in (model, calibrated):
        with pytest.raises(TypeError, match=r"random_state=.*pass a seed.*set_params"):
            rc.save(whole, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    for one in (model, calibrated.estimator, calibrated.estimator_):
        one.set_params(random_state=0)
    for whole in (model, calibrated):
        rc.save(whole, tmp_path / "m")
        np.testing.assert_array_equal(rc.load(tmp_path / "m").predict(X), whole.predict(X))


def test_parameters_set_after_learning_are_kept(tmp_path):
    model, X, y = fitted()
    model.set_params(average=True, max_iter=9)
    rc.save(model, tmp_path / "m")
    loaded = rc.load(tmp_path / "m")
    same(model, loaded)
    with pytest.raises(ValueError, match="average=True"):
        loaded.partial_fit(X, y)


def test_feature_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    rc.save(rc.PRank.published().fit(frame, [1, 2, 3]), tmp_path / "m")
    loaded = rc.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    loaded.predict(frame)


def test_feature_names_of_all_kinds_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    names = ["a\0", "a", "", "größer \U0001f600"]
    frame = pd.DataFrame(np.eye(4)[:, :4], columns=names)
    for learner in [rc.PRank.published(), make_pipeline(StandardScaler(), rc.PRank.published())]:
        rc.save(learner.fit(frame, [1, 2, 3, 3]), tmp_path / "m")
        loaded = rc.load(tmp_path / "m")
        first = loaded[0] if hasattr(loaded, "steps") else loaded
        assert first.feature_names_in_.tolist() == names
        loaded.predict(frame)


def test_string_labels_much_wider_than_their_text_are_rejected(tmp_path):
    path = tmp_path / "m.rankcore"
    classes = np.array(["bad", "fair", "good"])
    rc.save(rc.PRank.published().fit(np.eye(3), classes, classes=classes), path)
    for width in [3, 1025, 10**9, -1]:
        rewrite(path, set_in("labels", "classes", value=f"U{width}"))
        with pytest.raises(ValueError, match="damaged: the strings classes have up to 4"):
            rc.load(path)
    wide = classes.astype("U2000")
    rc.save(rc.PRank.published().fit(np.eye(3), wide, classes=wide), path)
    assert rc.load(path).classes_.tolist() == classes.tolist()


def test_save_rejects_other_objects(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LinearRegression

    with pytest.raises(NotFittedError):
        rc.save(rc.PRank.published(), tmp_path / "m")
    with pytest.raises(TypeError, match="LinearRegression"):
        rc.save(LinearRegression(), tmp_path / "m")

    class Mine(rc.PRank):  # no load would find it
        pass

    with pytest.raises(TypeError, match="got Mine; use pickle"):
        rc.save(Mine().fit(np.eye(2), [1, 2]), tmp_path / "m")
    model, _, _ = fitted()
    model.set_params(random_state=np.random.SeedSequence(1))
    with pytest.raises(TypeError, match="random_state="):
        rc.save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_every_truncation_is_rejected(tmp_path):
    model, _, _ = fitted()
    path = tmp_path / "m"
    rc.save(model, path)
    content = path.read_bytes()
    for length in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="not a rankcore model file, or it is damaged"):
            rc.load(path)


def test_every_flipped_byte_is_rejected_or_harmless(tmp_path):
    # Bytes that nothing reads (dates, attributes of the archive) may flip; a model that loads
    # must be the one saved.
    model, _, _ = fitted(average=True)
    path = tmp_path / "m"
    rc.save(model, path)
    content = path.read_bytes()
    rejected = 0
    for where in range(0, len(content), 11):
        damaged = bytearray(content)
        damaged[where] ^= 0x55
        path.write_bytes(damaged)
        try:
            loaded = rc.load(path)
        except ValueError:
            rejected += 1
        else:
            same(model, loaded)
    assert rejected > len(content) / 11 / 2


def nothing(document):
    pass


ONE_NAME = {"feature_names": np.array([97], np.uint8), "feature_names.ends": np.array([1])}
NO_EPOCHS = {"log": np.zeros((0, 3), np.int64)}


@pytest.mark.parametrize(
    ("edit", "arrays", "message"),
    [
        (set_in("version", value="2"), {}, "reads up to 1: upgrade rankcore"),
        (set_in("version", value="one"), {}, "not a rankcore model file"),
        (set_in("format", value="other"), {}, "not a rankcore model file"),
        (set_in("learner", value="OSBomb"), {}, "learner 'OSBomb' is unknown"),
        (set_in("learner", value="save"), {}, "learner 'save' is unknown"),
        (set_in("n_features", value=10**12), {}, "damaged"),
        (set_in("n_features", value=5), {}, r"weights has shape \(4,\) .* for 5 features"),
        (set_in("n_features", value=-1), {}, "damaged"),
        (set_in("parameters", "tie", value="left"), {}, "tie must be one of"),
        (set_in("parameters", "colour", value=1), {}, "colour"),
        (set_in("facts", "settings", "threshold_scale", value="x"), {}, "damaged"),
        (set_in("facts", "settings", value={}), {}, "settings"),
        (
            set_in("labels", "feature_names", value="str"),
            ONE_NAME,
            "feature_names must have a name",
        ),
        (set_in("labels", "classes", value="U1"), {}, "array classes.ends is missing"),
        (set_in("labels", "classes", value="object"), {}, "classes cannot be of the type 'object'"),
        (set_in("hello", value="you"), {}, "no model has the metadata .'hello'"),
        (nothing, {"weights": np.full(4, np.nan)}, "NaN or infinity"),
        (nothing, {"thresholds": np.zeros(4)}, "no learner of this kind has the arrays"),
        (nothing, {"steps": np.zeros(4)}, "steps has .* dtype float64"),
        (nothing, {"steps": np.array([3, 2, 1, 0])}, "steps of the .* ascend"),
        (nothing, {"counts": np.zeros(2, np.int64)}, "counts has shape"),
        (nothing, {"counts": np.array([-1, 0, 0])}, "counts must be"),
        (set_in("n_features", value=10**30), {}, "damaged"),
        (nothing, {"curve": np.zeros(3, np.int64)}, "array curve has shape"),
        (nothing, {"log": np.zeros((1, 3))}, "array log has shape"),
        (
            set_in("facts", "streaming", value=True),
            NO_EPOCHS,
            "with a pass to continue",
        ),
        (nothing, {"log": np.array([[1, 0, -1]])}, "counts must be"),
        (nothing, {"curve": np.array([[2**60, 0]])}, "counts must be"),
        (nothing, {"classes": np.array([1, 1, 2, 2, 3])}, "must list each label once"),
        (nothing, {"classes": np.array([5, 4, 3, 2, 1])}, "must ascend"),
        (nothing, {"classes": np.array([1, 2, 3, 4, np.nan])}, "NaN"),
    ],
)
def test_edited_files_are_rejected(tmp_path, edit, arrays, message):
    model, _, _ = fitted()
    path = tmp_path / "m.rankcore"
    rc.save(model, path)
    rewrite(path, nothing)
    same(model, rc.load(path))  # rewriting alone is harmless
    rewrite(path, edit, arrays)
    with pytest.raises(ValueError, match=message):
        rc.load(path)


SIZED = {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([], "damaged"),
        ({"a": 1}, "lacks a dtype, a shape or offsets"),
        ({"a": {**SIZED, "more": 1}}, "lacks a dtype, a shape or offsets"),
        ({"a": {**SIZED, "dtype": "O"}}, "dtype 'O'"),
        ({"a": {**SIZED, "dtype": "F8_E4M3"}}, "dtype 'F8_E4M3'"),
        ({"a": {**SIZED, "dtype": ["F64"]}}, "damaged"),
        ({"a": {**SIZED, "shape": [10**22]}}, "invalid"),
        ({"a": {**SIZED, "shape": [-4]}}, "invalid"),
        ({"a": {**SIZED, "shape": [4.0]}}, "invalid"),
        ({"a": {**SIZED, "shape": [True] * 4}}, "invalid"),
        ({"a": {**SIZED, "shape": [2**40, 2**40]}}, "not have the length in its header"),
        ({"a": {**SIZED, "data_offsets": [0, 24]}}, "not have the length in its header"),
        ({"a": {**SIZED, "data_offsets": [8, 40]}}, "not start where the one before it ends"),
        ({"a": SIZED, "b": SIZED}, "not start where the one before it ends"),
        ({"a": SIZED, "b": {**SIZED, "data_offsets": [32, 64]}}, "arrays end at byte"),
        ({}, "arrays end at byte"),
        ({"a": SIZED, "__metadata__": {"format": 1}}, "all metadata must be text"),
        ({"a": SIZED, "__metadata__": [1]}, "damaged"),
        ({"a": SIZED, "__metadata__": {"format": "pt"}}, "lack the format 'rankcore model'"),
        ({"a": SIZED}, "lack the format 'rankcore model'"),
    ],
)
def test_contradictory_headers_are_rejected(tmp_path, header, message):
    text = json.dumps(header).encode()
    path = tmp_path / "m"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(32))
    with pytest.raises(ValueError, match=f"not a rankcore model file.*{message}"):
        rc.load(path)


def test_headers_other_than_json_are_rejected(tmp_path):
    path = tmp_path / "m"
    for text in [
        b'{"a": 1, "a": 2}',
        b"{",
        b"{" + b"[" * 10**6,
        b'{"a": ' + b"9" * 10**5 + b"}",
        b"\xff\xfe",
        b'{"\xff": 1}',
    ]:
        path.write_bytes(len(text).to_bytes(8, "little") + text)
        with pytest.raises(ValueError, match="not a rankcore model file"):
            rc.load(path)


def test_headers_longer_than_the_format_allows_are_rejected():
    library = pytest.importorskip("safetensors")
    longest = 100_000_000
    content = (longest + 1).to_bytes(8, "little") + b"{}".ljust(longest + 1)
    with pytest.raises(library.SafetensorError, match="(?i)too ?large"):
        library.deserialize(content)
    with pytest.raises(ValueError, match="header"):
        safetensors.unpack(content)


def test_header_of_maximum_length_is_read(monkeypatch):
    content = b"".join(safetensors.pack({"a": "b"}, {"c": np.zeros(2)}))
    size = int.from_bytes(content[:8], "little")
    monkeypatch.setattr(safetensors, "LONGEST_HEADER", size)
    assert safetensors.unpack(content)[0] == {"a": "b"}
    monkeypatch.setattr(safetensors, "LONGEST_HEADER", size - 1)
    with pytest.raises(ValueError, match=f"the header has {size} bytes; at most {size - 1}"):
        safetensors.unpack(content)


def test_foreign_files_are_rejected(tmp_path):
    path = tmp_path / "m"
    for content in [b"", b"hello", pickle.dumps({"a": 1}), b"\x80\x04" * 50]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a rankcore model file"):
            rc.load(path)
    np.savez(tmp_path / "m.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="not a rankcore model file"):
        rc.load(tmp_path / "m.npz")
    with pytest.raises(FileNotFoundError):
        rc.load(tmp_path / "none")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    model, X, y = fitted()
    rc.save(model, path)
    content = path.read_bytes()

    def full_disk(handle):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        rc.save(model.partial_fit(X, y), path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["m"]


def test_unwritable_paths_are_errors(tmp_path):
    model, _, _ = fitted()
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere"):
        rc.save(model, tmp_path / "nowhere" / "m")
    with pytest.raises(ValueError, match="is not a file"):
        rc.save(model, tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows grants links to administrators only")
def test_a_link_stays_a_link(tmp_path):
    model, _, _ = fitted()
    (tmp_path / "latest").symlink_to(tmp_path / "m1")
    rc.save(model, tmp_path / "latest")
    assert (tmp_path / "latest").is_symlink()
    same(model, rc.load(tmp_path / "m1"))


CRASH = """
import os, sys
import numpy as np
import rankcore as rc
from rankcore.io import model_file
model = rc.PRank.published().fit(np.eye(3), [1, 2, 3])
model_file.os.replace = lambda *names: os._exit(9)  # dies with the new file all but in place
rc.save(model, sys.argv[1])
"""


def test_a_crash_while_writing_leaves_the_old_file(tmp_path):
    path = tmp_path / "m"
    model, _, _ = fitted()
    rc.save(model, path)
    done = subprocess.run([sys.executable, "-c", CRASH, str(path)], check=False)
    assert done.returncode == 9
    same(model, rc.load(path))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_saved_files_have_the_permissions_of_a_new_file(tmp_path):
    model, _, _ = fitted()
    rc.save(model, tmp_path / "m")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "other").stat().st_mode


# ---------------------------------------------------------------------------- rankers


def ranking_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    return X, np.digitize(X[:, 0] + rng.normal(size=120), [0, 1]), np.repeat(np.arange(8), 15)


@walk(ONLINE_RANKERS)
def test_rankers_continue_after_loading(tmp_path, learner):
    X, y, qid = ranking_data()
    model = clone(learner).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    for _ in range(2):
        rc.save(model, tmp_path / "model")
        loaded = rc.load(tmp_path / "model")
        assert loaded.get_params() == model.get_params()
        assert loaded.history_ == model.history_
        np.testing.assert_array_equal(loaded.predict(X, qid=qid), model.predict(X, qid=qid))
        np.testing.assert_equal(dict(loaded._spec().arrays), dict(model._spec().arrays))
        with pytest.raises(ValueError, match="score requires qid"):
            loaded.score(X, y)
        for one in (model, loaded):
            one.partial_fit(X[::-1], y[::-1], qid=qid[::-1])
    np.testing.assert_equal(dict(loaded._spec().arrays), dict(model._spec().arrays))


@walk(ONLINE_RANKERS)
def test_edited_files_of_rankers_are_rejected(tmp_path, learner):
    X, y, qid = ranking_data()
    rc.save(clone(learner).fit(X, y, qid=qid), tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    names = [name for name in taken_apart(whole)[1] if not name.startswith("scoring.")]
    edits = [lambda a: a[:-1], lambda a: a.astype(np.float32), lambda a: a * np.nan, lambda a: -a]
    edits += [lambda a: a.reshape(*a.shape, 1), lambda a: None]
    rejected = 0
    for name in names:
        for edit in edits:
            (tmp_path / "edited").write_bytes(whole)
            rewrite(tmp_path / "edited", None, {name: edit(taken_apart(whole)[1][name])})
            try:
                model = rc.load(tmp_path / "edited")
            except ValueError:
                rejected += 1
            else:  # other numbers of the right form: a model all the same
                assert np.isfinite(model.predict(X, qid=qid)).all()
                model.partial_fit(X, y, qid=qid)
    assert rejected > 3 * len(names)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", -1),
        ("seed", 2**63),
        ("n_features", 0),
        ("n_features", 5),
        ("settings", {}),
        ("settings", {"capacity": 0, "count": "pair", "shuffle": False, "judged": False}),
        ("settings", {"capacity": 1, "count": "pair", "shuffle": False, "judged": False}),
        ("settings", {"capacity": None, "count": "pair", "shuffle": False, "judged": False}),
    ],
)
def test_edited_metadata_of_rankers_are_rejected(tmp_path, name, value):
    X, y, qid = ranking_data()
    rc.save(clone(ONLINE_RANKERS[0]).fit(X, y, qid=qid), tmp_path / "model")
    where = (name,) if name == "n_features" else ("facts", name)
    rewrite(tmp_path / "model", set_in(*where, value=value))
    with pytest.raises(ValueError, match="is damaged"):
        rc.load(tmp_path / "model")


@walk(SAVED)
def test_types_of_skops_do_not_depend_on_predictions(learner):
    """A caller lists them before a tool that predicts rows, as MLflow does, writes the model."""
    sio = pytest.importorskip("skops.io")
    model = declared.fitted(learner)
    before = sio.get_untrusted_types(data=sio.dumps(model))
    declared.answer(model, declared.X)
    assert sio.get_untrusted_types(data=sio.dumps(model)) == before
