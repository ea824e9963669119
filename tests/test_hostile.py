"""Invalid arguments: each call works or raises a clear error, and nothing is lost or crashes.

The corpus is walked by every learner, metric and writer; the sanitizers run it as well.
"""

import io
import json
import os
import re
import time
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, SAVED, SAVED_RANKERS, adds_up, first_of_each, ranks_queries
from model_files import put_together, rewrite, set_in, signed, taken_apart
from rankcore import metrics
from rankcore._core.declaration import public_learners
from rankcore.datasets import dump_letor, load_letor
from rankcore.structured import CuSumTask, PRankTask, StructuredPerceptron
from strategies import NIGHTLY

pytestmark = pytest.mark.kernel

try:
    import polars as pl
except ImportError:  # without wheels for free-threaded Python, and in no extra of users
    pl = None

N, D = 12, 4
RNG = np.random.default_rng(3)
X = RNG.integers(-2, 3, size=(N, D)).astype(float)
Y = np.arange(N) % 3
QID = np.arange(N) // 4


def data_of(learner, y=Y):
    """Return the other arguments of `fit`: ranks from 1 for tasks, and queries for rankers."""
    if isinstance(learner, StructuredPerceptron):
        return {"Y": y + 1}
    return {"y": y, **({"qid": QID} if ranks_queries(learner) else {})}


LEARNERS = [clone(one) for one in [*first_of_each(ONLINE), *first_of_each(SAVED_RANKERS)]]
for one in LEARNERS:
    if hasattr(one, "n_estimators"):
        one.set_params(n_estimators=3)
RANKERS = tuple({type(one) for one in SAVED_RANKERS})
TASKS = [StructuredPerceptron(CuSumTask(3)), StructuredPerceptron(PRankTask(3))]
FITTED = {str(one): clone(one).fit(X, **data_of(one)) for one in [*LEARNERS, *TASKS]}


def edited(matrix, **parts):
    """Return a sparse matrix whose arrays were replaced by hand, past SciPy's checks."""
    matrix = matrix.copy()
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def malformed():
    """Matrices by name, of the shape of X, that are not what they claim to be."""
    for form in ["csr", "csc", "bsr"]:
        good = getattr(sp, f"{form}_array")(X)
        far = np.array([2**31 - 1] * good.indices.size, dtype=good.indices.dtype)
        yield f"{form} far index", edited(good, indices=far)
        yield f"{form} negative index", edited(good, indices=-1 - good.indices)
        yield f"{form} far pointer", edited(good, indptr=good.indptr * 1000)
        yield f"{form} falling pointer", edited(good, indptr=good.indptr[::-1].copy())
        yield f"{form} short pointer", edited(good, indptr=good.indptr[:-2])
        yield f"{form} short data", edited(good, data=good.data[:1])
        yield f"{form} short indices", edited(good, indices=good.indices[:1])
        yield f"{form} float indices", edited(good, indices=good.indices + 0.5)
        yield f"{form} no data", edited(good, data=None)
    coo = sp.coo_array(X)
    rows, columns = coo.coords
    yield "coo far row", edited(coo, coords=(rows + 10**6, columns))
    yield "coo negative column", edited(coo, coords=(rows, columns - 10**6))
    yield "coo short row", edited(coo, coords=(rows[:2], columns))
    yield "coo short data", edited(coo, data=coo.data[:1])
    dia = sp.dia_array(X)
    for offset in [2**31 - 1, -(2**31), 2**62]:
        far = np.full(dia.offsets.size, offset, dtype=np.int64)
        yield f"dia offset {offset}", edited(dia, offsets=far)
    yield "dia short offsets", edited(dia, offsets=dia.offsets[:1])
    yield "dia flat data", edited(dia, data=dia.data.ravel())
    lil = sp.lil_array(X)
    lil.rows[0] = [10**9] * 3
    yield "lil far column", lil
    lil = sp.lil_array(X)
    lil.data[0] = [1.0] * 50
    yield "lil long row", lil


def odd_dense():
    """Arrays and frames by name, which may or may not be numbers."""
    yield "masked", np.ma.masked_equal(X, 1.0)
    yield "complex", X + 1j
    yield "dates", X.astype("datetime64[D]")
    yield "timedeltas", X.astype("timedelta64[s]")
    yield "strings", X.astype(str)
    yield "objects", X.astype(object)
    yield "numeric strings", X.astype(str).astype(object)
    yield "huge integers", np.array([[10**400] * D] * N, dtype=object)
    yield "complex objects", (X + 1j).astype(object)
    yield "NaN", np.where(X > 1, np.nan, X)
    yield "infinity", np.where(X > 1, np.inf, X)
    yield "records", np.zeros((N, D), dtype=[("a", float)])
    yield "one dimension", X[:, 0]
    yield "three dimensions", X[None]
    yield "nothing", None
    yield "a number", 3.0
    yield "ragged", [[1.0], [1.0, 2.0]] * (N // 2)
    buffer = np.zeros(8 * X.size + 1, dtype=np.uint8)
    misaligned = buffer[1:].view(np.float64).reshape(X.shape)
    misaligned[:] = X
    yield "misaligned", misaligned
    yield "swapped", X.astype(">f8")
    yield "backwards", X[::-1, ::-1]
    yield "by column", np.asfortranarray(X)
    yield "read-only", np.frombuffer(X.tobytes()).reshape(X.shape)
    yield "half", X.astype(np.float16)
    yield "long", X.astype(np.longdouble)
    yield "huge", np.sign(X) * 1e308
    yield "matrix", X.view(np.matrix)
    yield "frame", pd.DataFrame(X, columns=list("abcd"))
    yield "complex frame", pd.DataFrame({**dict.fromkeys("abc", X[:, 0]), "d": X[:, 1] + 1j})
    yield "frame of strings", pd.DataFrame({**dict.fromkeys("abc", X[:, 0]), "d": ["x"] * N})
    yield "frame of objects", pd.DataFrame({**dict.fromkeys("abc", X[:, 0]), "d": [{}] * N})
    yield "frame of dates", pd.DataFrame({"a": pd.date_range("2020", periods=N), "b": X[:, 0]})
    yield "frame of categories", pd.DataFrame({"a": pd.Categorical(["u", "v"] * 6), "b": X[:, 0]})
    if pl is not None:
        yield "polars", pl.DataFrame(X)
        yield "polars strings", pl.DataFrame({"a": ["x"] * N, "b": X[:, 0]})
        yield "polars dates", pl.DataFrame({"a": pd.date_range("2020", periods=N), "b": X[:, 0]})
    yield "Series", pd.Series(X[:, 0])
    yield "wide", np.empty((1, 2**31 + 5), dtype=np.uint8)[:, :0]


MATRICES = dict([*malformed(), *odd_dense()])
# Read by NumPy and rejected, with a ComplexWarning or a DeprecationWarning at most.
ACCEPTED = (ValueError, TypeError)


def settles(call, *args, **kwargs):
    """Return the result of a call, or the ValueError or TypeError that it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "X has feature names|A column-vector y")
        try:
            return call(*args, **kwargs)
        except ACCEPTED as error:
            return error


def calls(X, y=Y, qid=QID, weights=None):
    """Everything that takes a matrix, or labels and the like for it."""
    for learner in [*LEARNERS, *TASKS]:
        model = clone(learner)
        ranks = isinstance(learner, RANKERS)
        options = {"qid": qid, "sample_weight": weights} if ranks else {}
        labels = y + 1 if isinstance(learner, StructuredPerceptron) and y is Y else y
        yield f"{learner}.fit", lambda m=model, y=labels, o=options: m.fit(X, y, **o)
        fitted = FITTED[str(learner)]
        yield f"{learner}.predict", lambda m=fitted: m.predict(X)
        yield (
            f"{learner}.score",
            lambda m=fitted, o=options: m.score(X, y, **{k: v for k, v in o.items() if k == "qid"}),
        )
        if hasattr(fitted, "partial_fit"):
            yield (
                f"{learner}.partial_fit",
                lambda m=fitted, y=labels, o=options: deepcopy(m).partial_fit(X, y, **o),
            )
    yield "dump_letor", lambda: dump_letor(X, y, io.BytesIO(), qid=qid)


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_work_or_are_rejected(name):
    before = [str(part) for part in vars(MATRICES[name]).values()] if "csr" in name else None
    for called, call in calls(MATRICES[name]):
        result = settles(call)
        # Malformed ones are never taken for a matrix.
        if name.split()[0] in ("csr", "csc", "bsr", "coo", "dia", "lil"):
            assert isinstance(result, Exception), called
    if before is not None:
        assert [str(part) for part in vars(MATRICES[name]).values()] == before


ODD = {
    "masked": np.ma.masked_equal(Y, 1),
    "complex": Y + 1j,
    "dates": Y.astype("datetime64[D]"),
    "timedeltas": Y.astype("timedelta64[D]"),
    "strings": Y.astype(str),
    "numeric strings": Y.astype(str).astype(object),
    "huge": np.full(N, 1e308),
    "huge integers": np.array([10**400] * N, dtype=object),
    "NaN": np.full(N, np.nan),
    "infinity": np.full(N, np.inf),
    "negative": -1 - Y,
    "zeros": np.zeros(N),
    "tiny": np.full(N, 5e-324),
    "too short": Y[:5],
    "nested": Y.reshape(3, 4),
    "a number": 5,
    "objects": [object()] * N,
    "dicts": [{}] * N,
    "lists": [[1]] * N,
    "mixed": [1, "1", None] * 4,
    "records": np.zeros(N, dtype=[("a", float)]),
    "frame": pd.DataFrame({"y": Y}),
    "NA": pd.array([1, pd.NA, 2] * 4),
    "huge unsigned": np.full(N, 2**64 - 1, dtype=np.uint64),
}
MISALIGNED = np.zeros(8 * N + 1, dtype=np.uint8)[1:].view(np.float64)
MISALIGNED[:] = np.arange(N)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("argument", ["y", "qid", "weights"])
def test_labels_queries_and_weights_work_or_are_rejected(name, argument):
    for called, call in calls(X, **{argument: ODD[name]}):
        result = settles(call)
        rejected = name == "masked" or (argument == "weights" and name in WRONG_WEIGHTS)
        if rejected and "predict" not in called and takes(called, argument):
            assert isinstance(result, Exception), called
            assert {"weights": "sample_weight"}.get(argument, argument) in str(result), called


WRONG_WEIGHTS = [
    "masked", "complex", "dates", "timedeltas", "strings", "numeric strings", "huge integers",
    "NaN", "infinity", "negative", "zeros", "too short", "nested", "a number", "objects", "dicts",
    "lists", "mixed", "records",
]  # fmt: skip


def takes(called, argument):
    ranks = called.startswith(tuple(type(one).__name__ for one in SAVED_RANKERS))
    if argument == "weights":
        return ranks and "fit" in called
    if argument == "qid":
        return ranks or called == "dump_letor"
    return True


MEASURES = [
    lambda **a: metrics.ndcg_score(a["y"], a["s"], qid=a["qid"], query_weight=a["of_queries"]),
    lambda **a: metrics.phi_measure(a["y"], a["s"], qid=a["qid"], query_weight=a["of_queries"]),
    lambda **a: metrics.auc_score(a["y"], a["s"], qid=a["qid"], sample_weight=a["of_rows"]),
    lambda **a: metrics.auc_score(a["y"], a["s"], sample_weight=a["of_rows"]),
    lambda **a: metrics.kendall_tau(a["y"], a["s"], qid=a["qid"], query_weight=a["of_queries"]),
    lambda **a: metrics.pairwise_misranking(a["y"], a["s"], qid=a["qid"], pooled=True),
    lambda **a: metrics.rank_loss(a["y"], a["s"], sample_weight=a["of_rows"]),
    lambda **a: metrics.macro_rank_loss(a["y"], a["s"], sample_weight=a["of_rows"]),
    lambda **a: metrics.quadratic_weighted_kappa(a["y"], a["s"], sample_weight=a["of_rows"]),
    lambda **a: metrics.confusion_by_rank(a["y"], a["y"], sample_weight=a["of_rows"]),
    lambda **a: metrics.weighted_ranking_loss(a["y"], a["s"], "unit", qid=a["qid"]),
    lambda **a: metrics.margin_loss(a["y"], a["s"], 1.0, qid=a["qid"]),
    lambda **a: metrics.evaluate(
        a["y"], a["s"], qid=a["qid"], metrics=["map", "auc", "tau"], query_weight=a["of_queries"]
    ),
]
USUAL = {"y": Y, "s": np.arange(N) % 5, "qid": QID, "of_rows": np.ones(N), "of_queries": np.ones(3)}


@pytest.mark.parametrize("argument", USUAL)
@pytest.mark.parametrize("name", [*ODD, "misaligned"])
def test_measures_work_or_reject(name, argument):
    value = {**ODD, "misaligned": MISALIGNED}[name]
    for measure in MEASURES:
        result = settles(measure, **{**USUAL, argument: value})
        used = measure(**USUAL) is not None and measure.__code__.co_consts
        if argument in used and (name == "masked" or ("of" in argument and name in WRONG_WEIGHTS)):
            assert isinstance(result, Exception), (name, argument)


def test_misaligned_numbers_are_read_as_the_aligned_ones():
    aligned = MISALIGNED.copy()
    for measure in MEASURES:
        np.testing.assert_equal(
            measure(**{**USUAL, "s": MISALIGNED}), measure(**{**USUAL, "s": aligned})
        )


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2], "z": [1j, 2]}), "column 'z' has dtype complex128"),
        (pd.DataFrame({"a": [1.0, 2], "z": ["u", "v"]}), "column 'z'"),
        (pd.DataFrame({"a": [1.0, 2], "z": pd.date_range("2020", periods=2)}), "column 'z' has"),
        (pd.DataFrame({"a": [1.0, 2], "z": pd.Categorical(["u", "v"])}), "column 'z' has dt"),
        *(
            [(pl.DataFrame({"a": [1.0, 2], "z": ["u", "v"]}), "column 'z' has dtype String")]
            if pl is not None
            else []
        ),
        (pd.Series([1.0, 2]), "got a Series: for one row"),
        ([[1.0, 10**400], [1, 2]], "X has 1000.* at row 0, column 1"),
        ([[1.0, "3"], [1, 2]], "X must be numeric"),
        (np.array([[1.0, "3"], [1, 2]], dtype=object), "got '3' of type str at row 0, column 1"),
    ],
)  # fmt: skip
def test_messages_name_the_column_and_the_cause(frame, message):
    for learner in LEARNERS:
        with pytest.raises((ValueError, TypeError), match=message):
            clone(learner).fit(frame, [0, 1])


# ---------------------------------------------------------------- extreme numbers


def test_weights_of_any_magnitude_have_effect():
    y, s = [0, 1, 2, 2], [0.0, 2, 1, 2]
    for power in [-1060, -400, 0, 400, 1020]:
        w = np.ldexp([1.0, 2, 3, 1], power)
        for measure in [metrics.rank_loss, metrics.macro_rank_loss, metrics.auc_score,
                        metrics.quadratic_weighted_kappa]:  # fmt: skip
            usual = settles(measure, y, s, sample_weight=[1, 2, 3, 1])
            assert settles(measure, y, s, sample_weight=w) == usual
        by_query = {"qid": [0, 0, 1, 1], "query_weight": w[:2], "rel": 1}
        assert settles(metrics.average_precision, y, s, **by_query) == metrics.average_precision(
            y, s, **{**by_query, "query_weight": [1, 2]}
        )
    with pytest.raises(ValueError, match="sum of sample_weight must be finite"):
        metrics.confusion_by_rank(y, y, sample_weight=[1e308] * 4)


def test_auc_is_exact_for_weights_of_very_different_magnitude():
    y, s, qid = [1, 0, 1, 0, 0], [2.0, 1, 1, 2, 1], [0, 0, 1, 1, 1]
    weights = np.array([1e-300, 1e150, 1e-300, 2e-300, 1e-300])
    _, areas = settles(metrics.auc_score, y, s, qid=qid, sample_weight=weights, per_query=True)
    np.testing.assert_allclose(areas, [1.0, 0.5 / 3], rtol=1e-15)
    alone = [metrics.auc_score(np.array(y)[r], np.array(s)[r], sample_weight=weights[r])
             for r in (slice(2), slice(2, 5))]  # fmt: skip
    np.testing.assert_array_equal(alone, areas)


def test_scores_that_overflow_are_rejected():
    for learner in [one for one in LEARNERS if adds_up(one)]:
        # Weights grow with the features, or against them.
        models = [clone(learner).fit(factor * X, **data_of(learner)) for factor in (100, 1, 0.01)]
        model = max(models, key=lambda one: np.abs(one.coef_).sum())
        uphill = np.atleast_2d(model.coef_).sum(axis=0) >= 0
        far = np.where(uphill, 1.7e308, -1.7e308)[np.newaxis]
        for rows in [far, sp.csr_array(far)]:
            with pytest.raises(ValueError, match="score of row 0 of X overflowed"):
                model.predict(rows)


def test_parameters_of_float32_leak_no_warnings():
    for learner in LEARNERS:
        real = {
            name: np.float32(value)
            for name, value in learner.get_params().items()
            if isinstance(value, float)
        }
        model = clone(learner).set_params(**real)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, **data_of(learner))
        expected = clone(learner).fit(X, **data_of(learner)).predict(X)
        assert np.array_equal(model.predict(X), expected) or real


def test_ids_that_end_in_a_zero_byte_stay_different():
    ids, _ = metrics.ndcg_score(
        [1, 0, 1, 0], [1, 2, 3, 4], qid=["a\0", "a\0", "a", "a"], per_query=True
    )
    assert ids.tolist() == ["a\0", "a"]


# ---------------------------------------------------------------- model files


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.rankcore"
    rc.save(rc.PRank.published(random_state=0).fit(X, Y), path)
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"more": np.arange(3)}, "has the arrays .'more'"),
        ({"feature_names.ends": np.arange(4)}, "has the arrays .'feature_names.ends'"),
        ({"counts": None}, "the array counts is missing"),
    ],
)
def test_unexpected_arrays_in_model_files_are_rejected(saved, arrays, message):
    rewrite(saved)
    rc.load(saved)  # writing it anew is harmless
    rewrite(saved, None, arrays)
    with pytest.raises(ValueError, match=message):
        rc.load(saved)


def test_claimed_sizes_in_files_allocate_no_memory(saved):
    tracemalloc = pytest.importorskip("tracemalloc")
    document, arrays = taken_apart(saved.read_bytes())
    sizes = [("n_features", 2**31 - 1), ("n_features", 10**12)]
    bad = [put_together({**document, name: value}, arrays) for name, value in sizes]
    bad.append((2**62).to_bytes(8, "little") + saved.read_bytes()[8:])
    wide = {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}
    header = json.dumps({"counts": wide}).encode()
    bad.append(len(header).to_bytes(8, "little") + header)
    for content in bad:
        saved.write_bytes(content)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="damaged"):
                rc.load(saved)
            assert tracemalloc.get_traced_memory()[1] < 20 * len(content) + (1 << 22)
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("value", [{"random": "RandomState"}, {"evil": 1}, {}, {"a": 1, "b": 2}])
def test_load_rejects_parameters_of_unknown_kinds(saved, value):
    rewrite(saved, set_in("parameters", "random_state", value=value))
    with pytest.raises(ValueError, match="damaged: a parameter is of an unknown kind"):
        rc.load(saved)


def test_a_saved_file_keeps_the_mode_of_the_one_it_replaces(saved):
    os.chmod(saved, 0o600)
    rc.save(rc.load(saved), saved)
    assert saved.stat().st_mode & 0o777 == 0o600


def test_names_of_maximum_length_are_saved(tmp_path):
    path = tmp_path / ("m" * 255)
    rc.save(rc.PRank.published().fit(X, Y), path)
    assert rc.load(path).t_ == N
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_circular_link_is_an_error(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        rc.save(rc.PRank.published().fit(X, Y), loop)
    target = tmp_path / "target"
    (tmp_path / "link").symlink_to(target)
    rc.save(rc.PRank.published().fit(X, Y), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert rc.load(target).t_ == N


def damaged(content, rng):
    """Bytes with up to three places changed, dropped or repeated."""
    bad = bytearray(content)
    for _ in range(rng.integers(1, 4) if bad else 0):
        at = int(rng.integers(max(len(bad), 1)))
        match rng.integers(4):
            case 0 if bad:
                bad[at] = int(rng.integers(256))
            case 1 if bad:
                bad[at] ^= 1 << int(rng.integers(8))
            case 2:
                del bad[at : at + int(rng.integers(1, 50))]
            case _:
                bad[at:at] = bad[at : at + int(rng.integers(1, 50))]
    return bytes(bad)


VALUES = [None, -1, 0, 1, 2**31 - 1, 10**30, "x", [], {}, 1.5, True, float("nan")]


def edited_file(content, rng):
    """Return a file with one fact or array of other values, whose checksum fits."""
    document, arrays = taken_apart(content)
    if rng.random() < 0.4:
        where = [document, document["parameters"], document["facts"]][int(rng.integers(3))]
        where = where or document  # some learners have no facts
        name = list(where)[int(rng.integers(len(where)))]
        value = VALUES[int(rng.integers(len(VALUES)))]
        where[name] = str(value) if isinstance(where[name], str) else value
    else:
        name = list(arrays)[int(rng.integers(len(arrays)))]
        bad = damaged(arrays[name].tobytes(), rng)
        dtype = arrays[name].dtype
        whole = np.frombuffer(bad[: len(bad) // dtype.itemsize * dtype.itemsize], dtype)
        fits = whole.size == arrays[name].size
        arrays[name] = whole.reshape(arrays[name].shape) if fits else whole
    return put_together(document, arrays)


def known_by(model):
    """All that a model says of itself but for figures computed on the way."""
    spec = model._spec()
    return model.get_params(), spec.facts, {k: v.tolist() for k, v in spec.arrays.items()}


def test_damaged_files_load_unchanged_or_are_rejected(tmp_path):
    """Bytes changed, dropped, repeated; none crashes, hangs, warns, or loads another model.

    Where the checksum is made to fit the damage, another model of the right form may load.
    """
    rng = np.random.default_rng(0)
    files = []
    for learner in [one for one in SAVED if getattr(one, "combine", "") != "rank"]:
        path = tmp_path / "model"
        model = clone(learner)
        if hasattr(model, "cv"):
            model.set_params(cv=2)
        model.fit(X, **data_of(model))
        rc.save(model, path)
        files.append((path.read_bytes(), known_by(model)))
    target = tmp_path / "damaged"
    n_each = int(os.environ.get("RANKCORE_HOSTILE", "1")) * 60
    for content, known in files:
        for trial in range(n_each):
            if trial % 3 == 0:  # what the learners check
                bad = edited_file(content, rng)
            elif trial % 3 == 1:  # what the header's reader checks
                bad = signed(damaged(content, rng))
            else:
                bad = damaged(content, rng)
            target.write_bytes(bad)
            start = time.perf_counter()
            result = settles(rc.load, target)
            if not isinstance(result, Exception):
                settles(result.predict, X)
                assert trial % 3 < 2 or known_by(result) == known
            assert time.perf_counter() - start < 5


@pytest.mark.sampled
def test_a_flipped_bit_anywhere_is_detected(saved):
    content = saved.read_bytes()
    n_bits = 8 * len(content)
    for at in range(n_bits) if NIGHTLY else RNG.choice(n_bits, 1000, replace=False).tolist():
        bad = bytearray(content)
        bad[at // 8] ^= 1 << at % 8
        saved.write_bytes(bad)
        with pytest.raises(ValueError, match=r"damaged|upgrade"):
            rc.load(saved)


def test_dump_letor_writes_the_given_rows_and_does_not_change_x():
    matrix = sp.csr_array((np.arange(1.0, 5), [3, 1, 0, 0], [0, 2, 4]), shape=(2, 4))
    parts = [part.copy() for part in (matrix.data, matrix.indices, matrix.indptr)]
    file = io.BytesIO()
    dump_letor(matrix, [0, 1], file)
    file.seek(0)
    np.testing.assert_array_equal(load_letor(file).X.toarray(), matrix.toarray()[:, :4])
    for part, old in zip((matrix.data, matrix.indices, matrix.indptr), parts, strict=True):
        np.testing.assert_array_equal(part, old)


def test_a_failed_dump_leaves_the_older_file(tmp_path):
    for name in ["data.txt", "data.txt.gz"]:
        path = tmp_path / name
        dump_letor(X, Y, path, qid=QID)
        before = path.read_bytes()
        with pytest.raises(ValueError, match="qid 'b c' of row 11 cannot be written"):
            dump_letor(X, Y, path, qid=["a"] * 11 + ["b c"])
        assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.txt", "data.txt.gz"]
    with pytest.raises(FileNotFoundError, match="nowhere/data.txt"):
        dump_letor(X, Y, tmp_path / "nowhere" / "data.txt")


def test_rank_fractions_are_exact_for_weights_far_apart():
    for normalize in ["true", "pred"]:
        table = metrics.confusion_by_rank(
            [0, 1], [0, 1], normalize=normalize, sample_weight=[1e308, 1e-300]
        )
        np.testing.assert_array_equal(table, np.eye(2))


def test_masks_of_probabilities_labels_and_rows_are_rejected():
    proba = np.ma.array([[0.5, 0.5]] * 2, mask=[[0, 0], [1, 1]])
    with pytest.raises(TypeError, match="proba is a masked array"):
        metrics.ranked_probability_score([0, 1], proba)
    with pytest.raises(TypeError, match="labels is a masked array"):
        metrics.rank_loss([0, 1], [0, 1], labels=np.ma.array([0, 1, 2], mask=[0, 0, 1]))
    with pytest.raises(TypeError, match="X is a masked array"):
        rc.PRank.published().fit(list(proba), [0, 1])


@pytest.mark.parametrize("n_features", [2**31, 10**30, 0, -1, True, 2.0, "4", None])
def test_files_of_impossible_numbers_of_features_are_rejected(tmp_path, n_features):
    path = tmp_path / "model"
    rc.save(rc.RankBoost(3).fit(X, Y, qid=np.zeros(len(Y))), path)

    rewrite(path, set_in("n_features", value=n_features))
    with pytest.raises(ValueError, match="damaged"):
        rc.load(path)


def test_numbers_beyond_float64_are_values_out_of_range():
    for learner in [one for one in LEARNERS if hasattr(one, "tol")]:
        with pytest.raises(ValueError, match="tol must be a number"):
            clone(learner).set_params(tol=10**400).fit(X, Y)


@pytest.mark.parametrize(
    ("learner", "name", "hint"),
    [
        (rc.RankBoost, "num_leaves", "use max_leaf_nodes$"),
        (rc.BipartiteRankBoost, "reg_lambda", "use l2_leaf$"),
        (rc.PRank, "epochs", "use max_iter$"),
        (rc.CuSumRank, "max_iters", "use max_iter$"),
        (rc.RankBoost, "max_iter", "use n_estimators$"),
        (rc.OrdinalBoost, "max_iter", "use n_estimators$"),
        (rc.PRank, "n_estimators", "use max_iter$"),
        (rc.RankSVM, "num_leaves", "its parameters are C, loss, "),
        (rc.CalibratedOrdinal, "class_weight", r".*, classes; .* PRank\(class_weight=\.\.\.\)$"),
    ],
)
def test_names_of_other_libraries_are_explained(learner, name, hint):
    message = f"^{learner.__name__} has no parameter '{name}': {hint}"
    with pytest.raises(TypeError, match=message):
        learner(**{name: 3})
    with pytest.raises(ValueError, match=message):
        learner().set_params(**{name: 3})


def test_set_params_explains_names_of_a_contained_learner():
    model = rc.CalibratedOrdinal(rc.PRank()).set_params(estimator__max_iter=3)
    assert model.estimator.max_iter == 3
    with pytest.raises(ValueError, match="PRank has no parameter 'epochs': use max_iter"):
        model.set_params(estimator__epochs=3)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "score"])
@pytest.mark.parametrize("learner", list(public_learners()), ids=lambda learner: learner.__name__)
def test_errors_of_wrong_calls_name_no_private_class(learner, method):
    if not hasattr(learner, method):
        pytest.skip("the learner has no such method")
    with pytest.raises(TypeError) as error:
        getattr(learner, method)(object.__new__(learner), nonsense=1)
    named = re.match(r"(?:(\w+)\.)?\w+\(\)", str(error.value))
    assert named, str(error.value)
    assert named[1] in (None, learner.__name__)


def test_subclass_may_forward_keyword_arguments():
    class Mine(rc.PRank):
        def __init__(self, mine=1, **rest):
            self.mine = mine
            super().__init__(**rest)

    assert Mine(mine=2, max_iter=3).max_iter == 3


def test_measures_at_the_limits_of_float64_are_right_or_rejected():
    far, big = 1e308, 10**400
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.macro_rank_loss([0, 0, 0], [1.7e308] * 3) == pytest.approx(1.7e308)
        for measure in [metrics.rank_loss, metrics.macro_rank_loss, metrics.accuracy_within]:
            with pytest.raises(ValueError, match="distance of y_true and y_pred must be finite"):
                measure([far, 0], [-far, 0])
        assert metrics.accuracy_within([1, 0], [1, 5], big) == 1
        assert metrics.accuracy_within([1, 0], [1, 5], np.inf) == 1
        for call in [
            lambda: metrics.auc_score([1, 0], [1, 0], rel=big),
            lambda: metrics.auc_score([1, 1], [1, 0], empty=big),
            lambda: metrics.average_precision([1, 0], [1, 0], rel=big),
        ]:
            with pytest.raises(ValueError, match="must be a (finite )?number"):
                call()
        if np.finfo(np.longdouble).maxexp > 1024:
            long = np.array([np.longdouble(2) ** 2000, 1])
            for call in [
                lambda: rc.PRank.published().fit(long[:, None], [0, 1]),
                lambda: rc.PairwisePerceptron().fit(
                    [[1], [2]], [0, 1], sample_weight=long, qid=[0] * 2
                ),
                lambda: metrics.rank_loss([0, 1], long),
                lambda: metrics.ndcg_score([0, 1], long),
                lambda: metrics.auc_score([0, 1], long),
            ]:
                with pytest.raises(ValueError, match="infinity|finite"):
                    call()
