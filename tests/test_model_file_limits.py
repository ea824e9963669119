"""Limits of what a model file may use when loaded: memory, time, and room for more learning."""

import json
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import ORDINAL, QID, SAVED, X, Y, answer, fitted, name_of, walk
from model_files import CHECKSUM, DOCUMENTS, put_together, rewrite, set_in, signed, taken_apart
from rankcore._ext.online_model import MOST_COUNTED
from rankcore.io import safetensors, text_arrays

pytestmark = pytest.mark.kernel

N = 600_000  # about the bytes of a file below
TIMES, CONSTANT = 50, 2**20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rankcore"


def headed(text, data=b""):
    return len(text.encode()).to_bytes(8, "little") + text.encode() + data


def with_fact(name, text):
    """Return a file of a PRank, one of whose metadata has another text."""

    def content(document, arrays):
        metadata = {k: json.dumps(v) if k in DOCUMENTS else v for k, v in document.items()}
        arrays = {**arrays, CHECKSUM: np.zeros(4, dtype=np.uint8)}
        return signed(b"".join(safetensors.pack({**metadata, name: text}, arrays)))

    return content


def with_strings(kind, characters, ends):
    def content(document, arrays):
        document = {**document, "labels": {"classes": kind}}
        strings = {"classes": np.full(characters, 65, dtype=np.uint8), "classes.ends": ends}
        return put_together(document, {**arrays, **strings})

    return content


def listed(one, n=N):
    return f"[{(one + ',') * (n // (len(one) + 1))}1]"


TENSOR = '"{:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
HEAVY = {
    "header of lists": headed(f'{{"a":{listed("[]")}}}'),
    "shape": headed(f'{{"a":{{"dtype":"U8","shape":{listed("1")},"data_offsets":[0,1]}}}}', b"x"),
    "arrays": headed(f"{{{','.join(map(TENSOR.format, range(N // 55)))}}}"),
    "metadata": headed(
        f'{{"__metadata__":{json.dumps({f"{i:x}": "ab" for i in range(N // 14)})}}}'
    ),
    "wide text": headed(f'{{"__metadata__":{{"a":"{"a" * N}\U0001f600"}}}}'),
    "deep header": headed('{"__metadata__":' * (N // 16)),
    "lists": with_fact("facts", listed("[]")),
    "objects": with_fact("parameters", listed("{}")),
    "names": with_fact("facts", json.dumps({f"{i:x}": 1 for i in range(N // 9)})),
    "numbers": with_fact("facts", listed("-9")),
    "deep": with_fact("facts", "[" * N),
    "kinds": with_fact("labels", listed("[]")),
    "empty strings": with_strings("U1024", 0, np.zeros(N // 8, dtype=np.int64)),
    "one long string": with_strings(f"U{N // 2}", N // 2, np.full(N // 16, N // 2)),
    # Ends whose differences leave int64: each fourth string is nearly all of the text.
    "ends": with_strings(
        "U9", N // 2, np.append(np.tile([2**63 - 1, -(2**63), -1], N // 24), N // 2)
    ),
    "log": lambda d, a: put_together(d, {**a, "log": np.tile([[1, 0, -1]], (N // 24, 1))}),
    "curve": lambda d, a: put_together(
        d, {**a, "curve": -np.arange(1, N // 16 * 2 + 1).reshape(-1, 2)}
    ),
    "classes": lambda d, a: put_together(d, {**a, "classes": np.arange(N // 8)}),
}


def assert_refused_in_little_memory(path, content):
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="damaged") as found:
            rc.load(path)
        assert tracemalloc.get_traced_memory()[1] < TIMES * len(content) + CONSTANT
    finally:
        tracemalloc.stop()
    assert len(str(found.value)) < 1000 + len(str(path))


@pytest.mark.parametrize("content", HEAVY.values(), ids=HEAVY.keys())
def test_memory_is_in_proportion_to_the_file(path, content):
    rc.save(rc.PRank(random_state=0).fit(X, Y), path)
    if callable(content):
        content = content(*taken_apart(path.read_bytes()))
    assert_refused_in_little_memory(path, content)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@walk(SAVED)
def test_sizes_are_compared_before_anything_is_allocated(path, learner, form):
    """A number in the metadata that stands for many gigabytes takes none."""
    rc.save(fitted(learner, form), path)
    rc.load(path)  # its modules take memory once
    document, arrays = taken_apart(path.read_bytes())
    loads = []
    for n in (8 * 10**6, 2**31 - 1):
        changes = {name: str(n) for name in document if name.endswith("n_features")}
        loads.append({**document, **changes, "n_features": n})
    for name in ("n_estimators", "max_hypotheses", "budget", "capacity"):
        for n in (10**8, 2**62):
            changed = json.loads(json.dumps(document))
            for part in (changed["parameters"], changed["facts"].get("settings", {})):
                part |= {name: n} if name in part else {}
            loads.append(changed)
    for changed in loads:
        if changed == document:
            continue
        content = put_together(changed, arrays)
        path.write_bytes(content)
        tracemalloc.start()
        try:
            rc.load(path)
        except ValueError:
            pass  # of those that are bounds, a greater one is possible
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < TIMES * len(content) + CONSTANT


def test_labels_are_compared_before_a_table_of_costs(path):
    rc.save(rc.CalibratedOrdinal(rc.WidrowHoff()).fit(X, Y), path)
    document, arrays = taken_apart(path.read_bytes())
    many = np.arange(50_000)
    arrays |= {"classes": many, "estimator.classes": many}
    arrays["estimator.n_ranks"] = np.array([many.size])
    assert_refused_in_little_memory(path, put_together(document, arrays))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "learner", [one for one in ORDINAL if type(one).__name__.startswith("Kernel")], ids=name_of
)
def test_kernel_models_without_support_vectors_are_loaded(path, learner, form):
    """They load without room for vectors, which is made when one joins."""
    nothing = form(np.zeros((4, 2)))
    model = clone(learner).set_params(kernel="linear", shuffle=False, standardize=False)
    if "margin" in model.get_params():
        model.set_params(margin=0.0)
    # Every rank is right from the beginning where all rows are of the highest.
    model.partial_fit(nothing, [2, 2, 2, 2], classes=[1, 2])
    assert not model.support_.size
    rc.save(model, path)
    loaded = rc.load(path)
    np.testing.assert_array_equal(loaded.predict(nothing), model.predict(nothing))
    more, labels = form(np.array([[1.0, 0], [0, 2], [-1, 1]])), [1, 2, 1]
    for one in (loaded, model):
        one.partial_fit(more, labels)
    assert loaded.support_.size
    np.testing.assert_array_equal(loaded.project(more), model.project(more))
    document, arrays = taken_apart(path.read_bytes())
    if arrays["vectors"].ndim == 2:
        arrays["vectors"] = np.zeros((0, 10**9))
        path.write_bytes(put_together({**document, "n_features": 10**9}, arrays))
        tracemalloc.start()
        rc.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
        tracemalloc.stop()


# ---------------------------------------------------------------- at the limit and one past it


@pytest.mark.parametrize("content", [b"", b"\x02\0\0\0\0\0\0", b"\x03\0\0\0\0\0\0\0{}"])
def test_header_must_end_within_the_file(content):
    assert safetensors.unpack(b"\x02\0\0\0\0\0\0\0{}") == ({}, {})
    message = f"{len(content)} bytes are fewer than the declared length of the header"
    with pytest.raises(ValueError, match=message):
        safetensors.unpack(content)


def test_more_than_32_dimensions_are_rejected():
    def unpacked(n):
        entry = {"dtype": "U8", "shape": [1] * n, "data_offsets": [0, 1]}
        return safetensors.unpack(headed(json.dumps({"a": entry}), b"x"))

    _, tensors = unpacked(32)
    assert tensors["a"].shape == (1,) * 32
    with pytest.raises(ValueError, match="the array a has 33 dimensions; at most 32"):
        unpacked(33)


def test_string_arrays_much_larger_than_their_text_are_rejected(path):
    content, ends = np.full(1024, 65, dtype=np.uint8), np.zeros(300, dtype=np.int64)
    ends[-1:] = 1024
    for n in range(1, 300):
        size = 4 * 1024 * n
        fits = size <= text_arrays.LARGEST + text_arrays.TIMES * (1024 + 8 * n)
        parts = {"a": content, "a.ends": ends[-n:]}
        if fits:
            assert text_arrays.decode("a", "U1024", parts.__getitem__).size == n
            last = n
        else:
            assert n == last + 1
            with pytest.raises(ValueError, match=f"take {size} bytes in one array"):
                text_arrays.decode("a", "U1024", parts.__getitem__)
            break
    # Labels that are not as wide as their type are written with the width that they need.
    wide = np.array(["a", "b", "c", "d"] * 100, dtype="U1000")
    assert text_arrays.encode({"a": wide})[1] == {"a": "U1"}
    assert text_arrays.encode({"a": wide[:4]})[1] == {"a": "U1000"}


@pytest.mark.parametrize(
    ("edit", "arrays", "message"),
    [
        (None, {"scoring.evil": np.arange(3)}, "has the arrays .'scoring.evil'"),
        (set_in("scoring.evil", value="classes"), {}, "no model has the metadata scoring.evil"),
        (
            set_in("scoring.evil", value="x"),
            {"x": np.arange(3)},
            "no model has the metadata scoring.evil",
        ),
        (set_in("scoring.votes", value="nowhere"), {}, "the array nowhere is missing"),
        (
            set_in("scoring.of", value="linear"),
            {"linear": np.arange(3)},
            "has the arrays .'linear'",
        ),
    ],
)
def test_scoring_arrays_are_those_named_by_the_metadata(path, edit, arrays, message):
    rc.save(rc.PRank(random_state=0).fit(X, Y), path)
    rewrite(path, edit, arrays)
    with pytest.raises(ValueError, match=message):
        rc.load(path)


# ---------------------------------------------------------------- room for learning on

ONE = 10  # examples and, of these, mistakes of the states below
MISTAKES = 3
FULL = np.array([MOST_COUNTED, 0, MOST_COUNTED])


def loads(path, arrays):
    """Whether a file with other arrays loads; what loads goes on learning."""
    content = path.read_bytes()
    rewrite(path, None, arrays)
    try:
        model = rc.load(path, verify=False)  # the scoring arrays are those before the change
    except ValueError:
        return False
    finally:
        path.write_bytes(content)
    queries = {"qid": QID} if "Pairwise" in str(model) else {}
    answer(model, X)
    model.partial_fit(X, Y, **queries)
    answer(model, X)
    return True


def counted(examples, mistakes):
    counts = np.array([examples, mistakes, mistakes])
    return {"counts": counts, "log": counts[None], "curve": np.empty((0, 2), dtype=np.int64)}


@pytest.fixture(params=[rc.PRank, rc.KernelPRank])
def begun(request, path):
    """Return the file of a model that has learned, whose thresholds are multiples of one."""
    model = request.param(threshold_scale=1.0, margin=0.0, max_iter=2, random_state=0)
    rc.save(model.fit(X, Y), path)
    rewrite(path, None, {**counted(ONE, MISTAKES), "validation.0": None, **moved(0)})
    return path


def moved(steps, sums=0):
    """Thresholds that are moved alike."""
    return {
        "steps": np.full(3, steps),
        "steps_sums": np.full(3, sums),
    }


@pytest.mark.parametrize("best", [0, -1, 2])
def test_best_pass_beyond_the_log_is_rejected(path, best):
    rc.save(rc.PRank(random_state=0).fit(X, Y), path)
    none = {**counted(ONE, MISTAKES), "counts": np.zeros(3, dtype=np.int64)}
    rewrite(path, set_in("facts", "best_iteration", value=best), none)
    with pytest.raises(ValueError, match=rf"best pass must be in 1 \.\. \d+; got {best}"):
        rc.load(path)


def test_load_rejects_thresholds_of_too_many_steps(begun):
    for sign in (1, -1):
        assert loads(begun, moved(sign * MOST_COUNTED))
        assert not loads(begun, moved(sign * (MOST_COUNTED + 1)))
    assert not loads(begun, moved(-(2**63)))


def test_counts_near_the_limit_of_int64_are_rejected(begun):
    """At the bound, steps times examples and their sums leave int64; what is kept is exact."""
    for steps, sums in [(0, 0), (MOST_COUNTED, 0), (-MOST_COUNTED, 2**63 - 1), (0, -(2**63))]:
        assert loads(begun, {**counted(MOST_COUNTED, MOST_COUNTED), **moved(steps, sums)})
    assert not loads(begun, counted(MOST_COUNTED + 1, MISTAKES))
    assert not loads(begun, counted(2**63 - 1, MISTAKES))
    far = np.array([ONE, MOST_COUNTED + 1, MISTAKES])
    assert not loads(begun, {"counts": far, "log": far[None]})
    far[1] = MOST_COUNTED
    assert loads(begun, {"counts": far, "log": far[None]})


def test_lazy_sums_are_exact_after_integer_overflow():
    """Steps times examples less their sums, by integers of any size."""
    model = rc.PRank(threshold_scale=1.0).partial_fit(X, Y)
    state, shift = model._state, 2**40
    expected = [
        (int(s) * (state.t + shift) - (int(u) + int(s) * shift)) / (state.t + shift)
        for s, u in zip(state.model["steps"], state.model["steps_sums"], strict=True)
    ]
    far = state.model["steps"].astype(object) * shift + state.model["steps_sums"]
    state.model["steps_sums"][:] = [int(one) for one in far]
    state.counts[0] += shift
    np.testing.assert_array_equal(state.model.mean("steps"), expected)
    # Learning on from here equals learning with integers that do not end.
    before = state.model["steps"].astype(object), far
    t = state.t
    model.partial_fit(X[:1], [1 if model.predict(X[:1])[0] != 1 else 4])
    change = state.model["steps"].astype(object) - before[0]
    exact = (before[1] + t * change + 2**63) % 2**64 - 2**63
    np.testing.assert_array_equal(state.model["steps_sums"].astype(object), exact)


@pytest.mark.parametrize("learner", [rc.OAPVoting, rc.KernelOAPBPM])
def test_member_counts_near_the_limit_of_int64_are_rejected(path, learner):
    rc.save(learner(4, threshold_scale=1.0, random_state=0).partial_fit(X, Y), path)
    arrays = taken_apart(path.read_bytes())[1]
    seen = arrays["seen"]
    for value, fits in [(MOST_COUNTED, True), (MOST_COUNTED + 1, False), (2**62, False)]:
        for column in range(3):
            far = seen.copy()
            far[0, [0, column]] = value  # examples, and what is counted among them
            assert loads(path, {"seen": far}) is fits
    far = arrays["steps"].copy()
    far[(0,) * far.ndim] = -MOST_COUNTED - 1  # the lowest threshold of the first member
    assert not loads(path, {"steps": far})
    if learner is rc.OAPVoting:
        survived = np.zeros_like(arrays["survived"])
        for values, fits in [
            ([MOST_COUNTED], True),
            ([MOST_COUNTED + 1], False),
            ([MOST_COUNTED, 1], False),
        ]:
            survived[: len(values)] = values
            assert loads(path, {"survived": survived}) is fits


@pytest.mark.parametrize("name", ["progress", "votes", "born"])
def test_votes_near_the_limit_of_int64_are_rejected(path, name):
    rc.save(rc.VotedPRank(max_hypotheses=4, random_state=0).partial_fit(X, Y), path)
    array = taken_apart(path.read_bytes())[1][f"{name}"]
    places = [1, 2] if name == "progress" else [0]
    for at in places:
        for value, fits in [(MOST_COUNTED, name != "votes"), (MOST_COUNTED + 1, False)]:
            far = array.copy()
            far[at] = value
            assert loads(path, {f"{name}": far}) is fits
    if name == "votes":
        for beyond in (0, 1):
            far = array.copy()
            far[0] = MOST_COUNTED - int(far[1:].sum()) + beyond
            assert loads(path, {f"{name}": far}) is not bool(beyond)


def test_support_counts_near_the_limit_of_int64_are_rejected(path):
    rc.save(rc.KernelPRank(random_state=0).partial_fit(X, Y), path)
    book = taken_apart(path.read_bytes())[1]["book"]
    for at in (2, 3, 4):  # vectors that joined, rows, updates
        for value, fits in [(MOST_COUNTED, True), (MOST_COUNTED + 1, False)]:
            far = book.copy()
            far[at] = value
            assert loads(path, {"book": far}) is fits


def test_sparse_support_vectors_out_of_range_are_rejected(path):
    rc.save(rc.KernelPRank(standardize=False, random_state=0).fit(sp.csr_array(X), Y), path)
    arrays = taken_apart(path.read_bytes())[1]
    starts, lengths = arrays["starts"], arrays["lengths"]
    last = starts.size - 1
    assert starts[last] + lengths[last] == arrays["vectors"].size
    for start, length in [(2**62, 2**62), (2**63 - 1, 2**63 - 1), (2**63 - 1, 1)]:
        far = starts.copy(), lengths.copy()
        far[0][last], far[1][last] = start, length
        assert not loads(path, {"starts": far[0], "lengths": far[1]})
    for change in ({"starts": starts + 1}, {"lengths": lengths + 1}):
        assert not loads(path, change)


def test_pair_counts_near_the_limit_of_int64_are_rejected(path):
    model = rc.PairwisePerceptron(max_iter=1, random_state=0).fit(X, Y, qid=QID)
    rc.save(model, path)
    counts = taken_apart(path.read_bytes())[1]["counts"]
    for value, fits in [(MOST_COUNTED, True), (MOST_COUNTED + 1, False), (2**63 - 1, False)]:
        for at in (0, 1, 2, 4, 5):  # 3 is the number of members, for which there is room
            changed = counts.copy()
            changed[at] = value
            assert loads(path, {"counts": changed}) is fits


def test_load_rejects_a_support_of_negative_rows(path):
    rc.save(rc.RankSVM(kernel="linear").fit(X, Y, qid=QID), path)
    support = taken_apart(path.read_bytes())[1]["support"]
    support[-2:] = 2**63 - 1, -(2**63)
    rewrite(path, None, {"support": support})
    with pytest.raises(ValueError, match="the array support must be row numbers"):
        rc.load(path)
