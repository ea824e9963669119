"""rankcore_model.h and the shared library: model files score in C as in Python, to the bit."""

import contextlib
import ctypes
import io
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.fixes import parse_version

import rankcore as rc
from declared import ORDINAL, QID, RNG, SAVED, X, Y, fitted, walk
from model_files import put_together, rewrite, set_in, signed, taken_apart
from rankcore.io import contents
from shared_library import (
    CC,
    FLAGS,
    NO_FILE,
    OK,
    ROWS,
    STRICT,
    UNSUPPORTED,
    Model,
    needs_compiler,
    pointer,
)
from strategies import NIGHTLY

pytestmark = needs_compiler


def rows_of(dtype, form, model):
    """Rows that fall on thresholds, between them, beyond them, and on nothing."""
    rows = np.vstack([X, X[:20].round(1), np.zeros((2, 5)), 1e3 * X[:10]])
    rows = rows * (RNG.random(rows.shape) < 0.8)
    if isinstance(model, rc.RankBoost | rc.BipartiteRankBoost):
        rows[::7, 2] = np.nan
    return form(rows.astype(dtype))


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@walk(SAVED)
def test_every_learner_scores_in_c_as_in_python(library, tmp_path, learner, form):
    model = fitted(learner, form)
    rc.save(model, tmp_path / "m")
    found = Model(library, tmp_path / "m")
    assert found.text("rankcore_learner") == type(model).__name__
    assert library.rankcore_n_features(found.handle) == 5
    for dtype in (np.float64, np.float32):
        assert_scores_as(model, found, rows_of(dtype, form, model))
    found.close()


def assert_scores_as(model, found, rows):
    """Compare scores, ranks and probabilities in C with those of Python."""
    if getattr(model, "combine", "score") == "rank":
        assert found.answer(rows)[0] == UNSUPPORTED
        return
    ordinal = hasattr(model, "classes_")
    n_ranks = found.library.rankcore_n_ranks(found.handle)
    assert n_ranks == (model.classes_.size if ordinal else 0)
    code, scores, ranks = found.answer(rows, ranks=ordinal)
    assert code == OK
    if not ordinal:
        np.testing.assert_array_equal(scores, model.predict(rows))
        assert found.answer(rows)[0] == UNSUPPORTED
        return
    np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(found.probabilities(rows), model.predict_proba(rows))
        model = getattr(model, "estimator_", model)
    else:
        with pytest.raises(ValueError, match="no probabilities"):
            found.probabilities(rows)
    if hasattr(model, "project"):
        np.testing.assert_array_equal(scores, model.project(rows))
    else:
        assert np.isnan(scores).all() == (getattr(model, "tasks", "") != "shared")


@pytest.mark.parametrize("output", ["round", "mean", "median", "plurality"])
@pytest.mark.parametrize("learner", [rc.VotedPRank, rc.OAPBagging, rc.OAPVoting])
def test_voted_ranks_in_c_equal_those_of_python(library, tmp_path, learner, output):
    model = learner(random_state=0, max_iter=2).fit(X, Y)
    model.set_params(output="round" if output == "mean" else output)
    expected, project = model.predict(X), model.project(X)
    rc.save(model.set_params(output=output), tmp_path / "m")
    _, scores, ranks = Model(library, tmp_path / "m").answer(X)
    np.testing.assert_array_equal(model.ranks_[ranks], expected)
    np.testing.assert_array_equal(scores, project)


@pytest.mark.parametrize(
    ("learner", "params"),
    [
        (rc.CuSumRank, {"decision": "cusum", "tie_break": "low", "average": False}),
        (rc.CuSumRank, {"decision": "count", "average": False}),
        (rc.KernelCuSumRank, {"decision": "count", "kernel": "linear"}),
        (rc.KernelCuSumRank, {"tie_break": "low", "kernel": "poly", "degree": 3}),
    ],
)
def test_ties_and_decisions_in_c_equal_those_of_python(library, tmp_path, learner, params):
    rows = np.round(X)  # integers, of which many scores are equal
    model = learner.published(**params).fit(rows, Y)
    rc.save(model, tmp_path / "m")
    _, scores, ranks = Model(library, tmp_path / "m").answer(rows)
    np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))
    np.testing.assert_array_equal(scores, model.project(rows))


# scikit-learn clips from 1.9 on.
CLIPPING = []
if "clip" in MaxAbsScaler().get_params():
    CLIPPING.append((MaxAbsScaler(clip=True), [np.ascontiguousarray, sp.csr_array]))


@pytest.mark.parametrize(
    ("scaler", "forms"),
    [
        (StandardScaler(), [np.ascontiguousarray]),
        (StandardScaler(with_mean=False), [np.ascontiguousarray, sp.csr_array]),
        (StandardScaler(with_std=False), [np.ascontiguousarray]),
        (StandardScaler(with_mean=False, with_std=False), [np.ascontiguousarray, sp.csr_array]),
        (MaxAbsScaler(), [np.ascontiguousarray, sp.csr_array]),
        (MinMaxScaler(), [np.ascontiguousarray]),
        (MinMaxScaler((-0.3, 7.1), clip=True), [np.ascontiguousarray]),
        *CLIPPING,
    ],
    ids=str,
)
@pytest.mark.parametrize("learner", [rc.PRank(), rc.RankBoost(20)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaled_rows_score_in_c_as_in_python(library, tmp_path, scaler, forms, learner, dtype):
    if dtype == np.float32 and parse_version(sklearn.__version__) < parse_version("1.9"):
        pytest.skip("scikit-learn before 1.9 rounds scaled float32 values otherwise")
    for form in forms:
        queries = {"rankboost__qid": QID} if isinstance(learner, rc.RankBoost) else {}
        pipeline = make_pipeline(scaler, learner).fit(form(X), Y, **queries)
        rc.save(pipeline, tmp_path / "m")
        found, rows = Model(library, tmp_path / "m"), form((3 * X).astype(dtype))
        _, scores, _ = found.answer(rows, ranks=False)
        expected = pipeline[-1].predict(pipeline[0].transform(rows))
        if isinstance(learner, rc.PRank):
            expected = pipeline[-1].project(pipeline[0].transform(rows))
        np.testing.assert_array_equal(scores, expected)
    if len(forms) == 1 and getattr(scaler, "with_mean", True):
        assert found.answer(sp.csr_array(X))[0] == UNSUPPORTED


@pytest.mark.parametrize("name", ["", "max", "max_abs_clip", "min_max"])
def test_scalers_that_are_unknown_are_rejected(library, tmp_path, name):
    path = tmp_path / "m"
    rc.save(make_pipeline(MaxAbsScaler(), rc.PRank()).fit(X, Y), path)
    content = path.read_bytes()
    document, arrays = taken_apart(content)
    assert document["scoring.scaler"] == "max_abs"
    document["scoring.scaler"] = name
    path.write_bytes(put_together(document, arrays))
    with pytest.raises(ValueError, match="the scaler is damaged"):
        Model(library, path)


@pytest.mark.parametrize(
    ("change", "arrays"),
    [
        ({"scoring.scaler": "min_max"}, {}),
        ({"scoring.scaler": "max_abs"}, {}),
        ({"scoring.scaler": "standard"}, {}),
        ({"scoring.shift": None}, {}),
        ({"scoring.scale": None}, {}),
        ({"scoring.bounds": None}, {}),
        ({"scoring.center": "scaler.min_"}, {}),
        ({"scoring.bounds": "scaler.min_"}, {}),
        ({}, {"scaler.bounds": np.zeros(1)}),
        ({}, {"scaler.min_": np.zeros(3)}),
        ({}, {"scaler.scale_": np.zeros(3)}),
    ],
)
def test_ranges_that_do_not_fit_are_rejected(library, tmp_path, change, arrays):
    path = tmp_path / "m"
    rc.save(make_pipeline(MinMaxScaler(clip=True), rc.PRank()).fit(X, Y), path)
    document, found = taken_apart(path.read_bytes())
    document = {k: v for k, v in (document | change).items() if v is not None}
    path.write_bytes(put_together(document, found | arrays))
    with pytest.raises(ValueError, match="the scaler is damaged"):
        Model(library, path)


def test_steps_that_only_python_opens_are_rejected_with_the_reason(library, tmp_path):
    model = make_pipeline(HashingVectorizer(n_features=16), rc.PRank()).fit(
        ["a b", "c", "d e"], [1, 2, 3]
    )
    rc.save(model, tmp_path / "m")
    found = Model(library, tmp_path / "m")
    assert found.answer(np.zeros((1, 16)))[0] == UNSUPPORTED
    reason = b"the preprocessing steps (HashingVectorizer) are objects of Python"
    assert reason in (tmp_path / "m").read_bytes()
    library.rankcore_message.restype = ctypes.c_char_p
    assert b"only rankcore.load in Python opens" in library.rankcore_message(UNSUPPORTED)


def test_probabilities_of_scaled_rows_in_c_equal_those_of_python(library, tmp_path):
    models = []
    for scaler in StandardScaler(), MinMaxScaler(clip=True):
        models.append(rc.CalibratedOrdinal(make_pipeline(scaler, rc.PRank(random_state=0))))
        models.append(make_pipeline(scaler, rc.CalibratedOrdinal(rc.PRank(random_state=0))))
    for model in models:
        rc.save(model.fit(X, Y), tmp_path / "m")
        found = Model(library, tmp_path / "m")
        np.testing.assert_array_equal(found.probabilities(3 * X), model.predict_proba(3 * X))
        _, _, ranks = found.answer(3 * X)
        np.testing.assert_array_equal(np.unique(Y)[ranks], model.predict(3 * X))


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["schlecht", "mäßig", "gut", ""], ["schlecht", "mäßig", "gut", ""]),
        ([1, 2, 3, 4], ["1", "2", "3", "4"]),
        ([0.5, 1.0, 1.5, 2.0], ["0.5", "1", "1.5", "2"]),
        ([False, True], ["0", "1"]),
    ],
)
def test_labels_and_names_in_c_equal_those_of_python(library, tmp_path, classes, labels):
    pandas = pytest.importorskip("pandas")
    names = ["höhe", "größe", "", "d", "e"]
    y = np.array(classes)[Y % len(classes)]
    model = rc.PRank().fit(pandas.DataFrame(X, columns=names), y, classes=classes)
    rc.save(model, tmp_path / "m")
    found = Model(library, tmp_path / "m")
    if classes != [False, True]:  # of one byte: a number to nobody
        assert [found.text("rankcore_label", k) for k in range(len(labels))] == labels
    assert found.text("rankcore_label", len(labels)) is None
    assert [found.text("rankcore_feature", ctypes.c_int64(j)) for j in range(5)] == names
    assert found.text("rankcore_feature", ctypes.c_int64(5)) is None


def test_rows_are_checked(library, tmp_path):
    rc.save(rc.PRank().fit(X, Y), tmp_path / "m")
    found = Model(library, tmp_path / "m")
    assert found.answer(X[:, :4].copy())[0] == ROWS
    bad = sp.csr_array(X)
    for name, at, value in [("indices", 3, 5), ("indices", 3, -1), ("indices", 3, 1),
                            ("indptr", 3, 40), ("indptr", 0, -1)]:  # fmt: skip
        rows = bad.copy()
        getattr(rows, name)[at] = value
        rows.data, rows.indices = rows.data.copy(), rows.indices.copy()
        assert found.answer(rows)[0] == ROWS
    assert library.rankcore_message(ROWS).startswith(b"the rows have other columns")


@pytest.mark.parametrize("n", [*range(1, 20), 50])
def test_invalid_columns_are_found_at_every_position(library, tmp_path, n):
    """Neighbours are compared eight at a time: each place must be looked at."""
    path = tmp_path / "m"
    rc.save(rc.RankSVM().fit(np.eye(4, 60), [1, 2, 1, 2], qid=[1, 1, 2, 2]), path)
    found = Model(library, path)
    good = np.sort(RNG.choice(60, size=n, replace=False)).astype(np.int32)

    def code(columns):
        # A good row behind it: what is wrong must not be forgotten.
        both = np.concatenate([columns, good]).astype(np.int32)
        rows = sp.csr_array((np.ones(2 * n), both, [0, n, 2 * n]), shape=(2, 60))
        return found.answer(rows, ranks=False)[0]

    assert code(good) == 0
    for at in range(n):
        faults = [-1, 60, -(2**31), 2**31 - 1]
        faults += [good[at - 1], 0] if at else []
        for fault in faults:
            columns = good.copy()
            columns[at] = fault
            if (np.diff(columns.astype(np.int64)) > 0).all() and columns[0] >= 0:
                continue  # columns[-1] is below 60 then, or the fault is 60 or beyond
            assert code(columns) == ROWS
    for beyond in (60, 2**31 - 1):
        assert code(np.append(good[:-1], beyond)) == ROWS


def test_offsets_are_checked_before_columns_are_read(library, tmp_path):
    rc.save(rc.PRank().fit(X, Y), tmp_path / "m")
    rows = sp.csr_array(X)
    rows.indptr[1] = 2**30
    assert Model(library, tmp_path / "m").answer(rows)[0] == ROWS


def test_invalid_files_are_rejected(library, tmp_path):
    path = tmp_path / "m"
    with pytest.raises(ValueError, match="cannot be read"):
        Model(library, path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="cannot be read"):
        Model(library, path)
    path.write_bytes(b"hello" * 20)
    with pytest.raises(ValueError, match="not a rankcore model file"):
        Model(library, path)
    rc.save(rc.PRank(random_state=0).fit(X, Y), path)
    content = path.read_bytes()
    rewrite(path, set_in("version", value="2"))
    with pytest.raises(ValueError, match="format version 2"):
        Model(library, path)
    path.write_bytes(content)
    rewrite(path, None, {"scoring.weights": np.full(5, np.nan)})
    with pytest.raises(ValueError, match="NaN or infinity"):
        Model(library, path)
    path.write_bytes(content)
    for arrays in [{"scoring.weights": np.zeros(4)}, {"scoring.thresholds": None}]:
        rewrite(path, None, arrays)
        with pytest.raises(ValueError, match="scoring is damaged"):
            Model(library, path)
    for at in range(0, 8 * len(content), 5):
        bad = bytearray(content)
        bad[at // 8] ^= 1 << at % 8
        with pytest.raises(
            ValueError, match=r"damaged|checksum|header|version|do not match|are inconsistent"
        ):
            Model(library, bytes(bad))


def test_arrays_that_lead_beyond_others_are_rejected(library, tmp_path):
    path = tmp_path / "m"

    def rejected(name, array):
        document, arrays = taken_apart(path.read_bytes())
        assert name in arrays
        (tmp_path / "bad").write_bytes(put_together(document, {**arrays, name: array}))
        with pytest.raises(ValueError, match="damaged"):
            Model(library, tmp_path / "bad")

    rc.save(rc.RankBoost(20).fit(X, Y, qid=QID), path)
    offsets = taken_apart(path.read_bytes())[1]["scoring.offsets"]
    for change in [offsets[::-1].copy(), offsets - 1, offsets + 1, offsets[:-1]]:
        rejected("scoring.offsets", change)
    rc.save(rc.RankBoost(9, max_leaf_nodes=8).fit(X, Y, qid=QID), path)
    arrays = taken_apart(path.read_bytes())[1]
    for child in [0, -100, 100]:
        children = arrays["children"].copy()
        children[0, 0] = child
        rejected("children", children)
    rejected("features", arrays["features"] + 5)
    rejected("features", arrays["features"] - 5)
    rejected("sides", arrays["sides"] + 2)
    rejected("offsets", arrays["offsets"] + 1)
    rc.save(rc.KernelPRank(standardize=False, random_state=0).fit(sp.csr_array(X), Y), path)
    arrays = taken_apart(path.read_bytes())[1]
    rejected("indices", arrays["indices"] + 1)
    rejected("indices", arrays["indices"] - 1)
    rejected("scoring.indptr", arrays["scoring.indptr"] * 2)
    rc.save(rc.CalibratedOrdinal(rc.PRank(), method="isotonic").fit(X, Y), path)
    arrays = taken_apart(path.read_bytes())[1]
    rejected("knots", arrays["knots"][::-1].copy())
    rejected("knots", arrays["knots"][:-1].copy())
    rejected("curves", arrays["curves"][:, :-1].copy())
    rejected("costs", arrays["costs"][:-1].copy())
    rejected("moments", arrays["moments"][:-1].copy())
    rejected("moments", -arrays["moments"])
    rc.save(rc.OAPBagging(5, random_state=0).fit(X, Y), path)
    arrays = taken_apart(path.read_bytes())[1]
    rejected("scoring.votes", np.ones(100, dtype=np.int64))
    rejected("scoring.votes", np.full(5, 2**62))
    rejected("scoring.votes", np.full(5, -1))


def headed(document, arrays, edit):
    """Return a model file whose header, as text, was edited."""
    content = put_together(document, arrays)
    n = int.from_bytes(content[:8], "little")
    text = edit(content[8 : 8 + n])
    text += b" " * (-len(text) % 8)
    return signed(len(text).to_bytes(8, "little") + text + content[8 + n :])


def test_longest_header_equals_that_of_python(library, tmp_path):
    path = tmp_path / "m"
    model = rc.PRank(random_state=0).fit(X, Y)
    rc.save(model, path)
    parts = taken_apart(path.read_bytes())
    path.write_bytes(headed(*parts, lambda text: text.ljust(10**8)))
    np.testing.assert_array_equal(rc.load(path).predict(X), model.predict(X))
    found = Model(library, path)
    np.testing.assert_array_equal(found.answer(X)[1], model.project(X))
    found.close()
    path.write_bytes(headed(*parts, lambda text: text.ljust(10**8 + 8)))
    with pytest.raises(ValueError, match="the header has 100000008 bytes; at most 100000000"):
        rc.load(path)
    with pytest.raises(ValueError, match="not a rankcore model file"):
        Model(library, path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"scoring":"thresholds"', b'"scoring":"thresholds","scoring":"linear"'),
        (b'"learner":"PRank"', b'"learner":"PRank","learner":"PRank"'),
        (b'"classes":{', b'"classes":{"dtype":"I64","shape":[0],"data_offsets":[0,0]},"classes":{'),
        (
            b'"scoring.weights":{',
            b'"scoring.weights":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},'
            b'"scoring.weights":{',
        ),
    ],
)
def test_duplicate_names_are_rejected(library, tmp_path, old, new):
    path = tmp_path / "m"
    rc.save(rc.PRank(random_state=0).fit(X, Y), path)
    parts = taken_apart(path.read_bytes())
    path.write_bytes(headed(*parts, lambda text: text))
    Model(library, path).close()
    assert old in path.read_bytes()
    path.write_bytes(headed(*parts, lambda text: text.replace(old, new)))
    with pytest.raises(ValueError, match="not a rankcore model file, or damaged"):
        Model(library, path)
    with pytest.raises(ValueError, match="two entries of one name"):
        rc.load(path)


def test_long_headers_are_read_twice_at_most(library, tmp_path):
    """And not once for each requested name, and each key that stands for one."""
    path = tmp_path / "m"
    rc.save(rc.PRank(random_state=0).fit(X, Y), path)
    empty = b'"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    more = b",".join(empty % i for i in range(2 * 10**5))
    parts = taken_apart(path.read_bytes())
    path.write_bytes(headed(*parts, lambda text: text.rstrip()[:-1] + b"," + more + b"}"))
    start = time.process_time()
    found = Model(library, path)
    assert time.process_time() - start < 1
    found.close()


ROWS_PROGRAM = """
#include "rankcore_model.h"
int32_t score(const char *path, const double *dense, const float *single, const double *data,
              const int32_t *indices, const int64_t *indptr, int64_t n, int64_t d, double *out)
{
    rc_model model;
    rc_rows X = rc_rows_dense(dense, RC_FLOAT64, n, d);
    int32_t code = rc_model_open_file(&model, path);
    code = code ? code : rc_model_check_rows(&model, &X);
    code = code ? code : rc_model_score(&model, &X, out);
    X = rc_rows_dense(single, RC_FLOAT32, n, d);
    code = code ? code : rc_model_check_rows(&model, &X);
    code = code ? code : rc_model_score(&model, &X, out + n);
    X = rc_rows_csr(data, indices, indptr, RC_FLOAT64, n, d);
    code = code ? code : rc_model_check_rows(&model, &X);
    code = code ? code : rc_model_score(&model, &X, out + 2 * n);
    /* Every other row; then rows that lie upon each other. */
    X = rc_rows_dense(dense, RC_FLOAT64, n / 2, d);
    X.stride = 2 * d;
    code = code ? code : rc_model_score(&model, &X, out + 3 * n);
    X.stride = d - 1;
    if (!code && rc_model_score(&model, &X, out) != RC_MODEL_ROWS)
        code = -1;
    X.stride = 0;
    if (!code && rc_model_score(&model, &X, out) != RC_MODEL_ROWS)
        code = -1;
    rc_model_close(&model);
    return code;
}
"""


def test_open_model_survives_an_overwritten_file(library, tmp_path):
    """``cp`` truncates the file in place: a mapping would end the process."""
    model = rc.RankBoost(20, max_leaf_nodes=6).fit(X, Y, qid=QID)
    rc.save(model, tmp_path / "m")
    found = Model(library, tmp_path / "m")
    with open(tmp_path / "m", "r+b") as file:
        file.truncate(0)
    code, scores, _ = found.answer(X, ranks=False)
    assert code == OK
    np.testing.assert_array_equal(scores, model.predict(X))
    found.close()
    for path in (tmp_path / "m", tmp_path, tmp_path / "none"):
        with pytest.raises(ValueError, match="the file cannot be read, or is empty"):
            Model(library, path)


def test_file_above_64_mb_is_mapped(library, tmp_path):
    """Its pages are read on use: opening must not cost its size."""
    n = contents.LARGE // 8 // 4 + 1
    rows = sp.csr_array((np.ones(2), ([0, 1], [0, n - 1])), shape=(2, n))
    model = rc.CuSumRank(classes=[1, 2, 3, 4, 5]).partial_fit(rows, [1, 5])
    rc.save(model, tmp_path / "m")
    assert (tmp_path / "m").stat().st_size > contents.LARGE
    found = Model(library, tmp_path / "m")
    maps = Path("/proc/self/maps").read_text() if sys.platform == "linux" else str(tmp_path / "m")
    assert str(tmp_path / "m") in maps
    np.testing.assert_array_equal(model.ranks_[found.answer(rows)[2]], model.predict(rows))
    found.close()


def test_rows_are_filled_by_functions(tmp_path):
    (tmp_path / "rows.c").write_text(ROWS_PROGRAM)
    built = tmp_path / "rows.so"
    command = [CC, *FLAGS, "-O0", "-fvisibility=default", f"-I{rc.get_include()}"]
    subprocess.run([*command, "-o", built, tmp_path / "rows.c", "-lm"], check=True)
    model = rc.PRank(random_state=0).fit(X, Y)
    rc.save(model, tmp_path / "m")
    n, d = X.shape
    sparse, single, out = sp.csr_array(X), X.astype(np.float32), np.empty(3 * n + n // 2)
    indices, indptr = sparse.indices.astype(np.int32), sparse.indptr.astype(np.int64)
    given = [pointer(one) for one in (X, single, sparse.data, indices, indptr)]
    path = str(tmp_path / "m").encode()
    sizes = ctypes.c_int64(n), ctypes.c_int64(d)
    assert ctypes.CDLL(str(built)).score(path, *given, *sizes, pointer(out)) == OK
    parts = [model.project(rows) for rows in (X, single, sparse, X[::2])]
    np.testing.assert_array_equal(out, np.concatenate(parts))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", ["learn", "zero"])
def test_few_and_many_rows_are_scored_by_trees_as_in_python(library, tmp_path, missing, dtype):
    model = rc.RankBoost(9, max_leaf_nodes=8, min_samples_leaf=2, missing=missing)
    rows = rows_of(dtype, np.ascontiguousarray, model)
    model.fit(rows[: len(X)], Y, qid=QID)
    rc.save(model, tmp_path / "m")
    found, expected = Model(library, tmp_path / "m"), model.predict(rows)
    assert np.unique(expected).size > 20
    wide = np.full((len(rows), 8), 1e30, dtype)  # what is behind the model's columns is not read
    wide[:, :5] = rows
    for n in (*range(18), 63, 64, 65, 72, 73, len(rows)):
        for given in (rows[:n], wide[:n]):
            scores = np.full(n + 1, np.nan)
            assert found.call(given, "", scores, None) == OK
            assert scores[:n].tobytes() == expected[:n].tobytes()
            assert np.isnan(scores[n])


EMPTY_PROGRAM = """
#include "rankcore_model.h"
int main(int argc, char **argv)
{
    const int64_t none[3] = {0, 0, 0}, one[3] = {0, 0, 1};
    const double zeros[5] = {0.0, 0.0, 0.0, 0.0, 0.0};
    double two[2], expected;
    rc_model model;
    rc_rows X = rc_rows_dense(zeros, RC_FLOAT64, 1, 5);
    int32_t code = argc == 2 ? rc_model_open_file(&model, argv[1]) : RC_MODEL_NO_FILE;
    code = code ? code : rc_model_score(&model, &X, &expected);
    X = rc_rows_csr(NULL, NULL, none, RC_FLOAT64, 2, 5);
    code = code ? code : rc_model_check_rows(&model, &X);
    code = code ? code : rc_model_score(&model, &X, two);
    if (!code && (two[0] != expected || two[1] != expected))
        return 100;
    X = rc_rows_csr(NULL, NULL, none, RC_FLOAT64, 0, 5);
    code = code ? code : rc_model_check_rows(&model, &X);
    X = rc_rows_csr(NULL, NULL, one, RC_FLOAT64, 2, 5);
    if (!code && rc_model_check_rows(&model, &X) != RC_MODEL_ROWS)
        return 101;
    rc_model_close(&model);
    return code;
}
"""


def test_rows_without_stored_values_need_no_arrays(library, tmp_path):
    """An empty std::vector has no address: that is not a matrix of other columns."""
    (tmp_path / "main.c").write_text(EMPTY_PROGRAM)
    command = [CC, *STRICT, "-ffp-contract=off", f"-I{rc.get_include()}", "-o", tmp_path / "main"]
    subprocess.run([*command, tmp_path / "main.c", "-lm"], check=True)
    offsets, scores = np.zeros(3, dtype=np.int64), np.empty(2)
    for learner in (rc.RankSVM(), rc.RankBoost(9), rc.RankBoost(9, max_leaf_nodes=4)):
        model = learner.fit(X, Y, qid=QID)
        rc.save(model, tmp_path / "m")
        assert subprocess.run([tmp_path / "main", tmp_path / "m"]).returncode == OK
        found = Model(library, tmp_path / "m")
        given = None, None, pointer(offsets), ctypes.c_int64(2), pointer(scores), None
        assert library.rankcore_csr(found.handle, *given) == OK
        np.testing.assert_array_equal(scores, model.predict(np.zeros((2, 5))))
        offsets[2] = 1
        assert library.rankcore_csr(found.handle, *given) == ROWS
        offsets[2] = 0


# ---------------------------------------------------------------- the shared library, elsewhere


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the shared library with CMake, from the folder that rankcore-config prints."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake")
    folder = tmp_path_factory.mktemp("cmake")
    where = config("--cmakedir")
    for command in [
        [cmake, "-S", where, "-B", folder, "-DCMAKE_BUILD_TYPE=Debug"],
        [cmake, "--build", folder],
        [cmake, "--install", folder, "--prefix", folder / "prefix"],
    ]:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "prefix" / "include" / "librankcore.h").is_file()
    return next(folder.glob("librankcore.*[oy]*"))


def config(*options):
    from rankcore._config_command import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(list(options))
    return out.getvalue().strip()


def svmlight(path):
    lines = [" ".join(["0", "qid:1", *(f"{j + 1}:{v!r}" for j, v in enumerate(x) if v)])
             for x in X.tolist()]  # fmt: skip
    path.write_text("\n# no row\n" + "".join(f"{line} # a comment\n" for line in lines))
    return path


EXAMPLE = Path(__file__).parents[1] / "examples" / "other_languages" / "python" / "score.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the example is not beside the tests")
@pytest.mark.parametrize("learner", [rc.PRank(random_state=0), rc.RankBoost(20)], ids=str)
def test_the_example_in_python_runs(built, tmp_path, learner):
    """The other languages: tests/elsewhere/test_languages.py."""
    command = [sys.executable, "-S", EXAMPLE, built, tmp_path / "m"]
    queries = {"qid": QID} if isinstance(learner, rc.RankBoost) else {}
    model = learner.fit(X, Y, **queries)
    rc.save(model, tmp_path / "m")
    rows = svmlight(tmp_path / "rows.svm").read_text()
    done = subprocess.run(command, input=rows, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    scores, labels = zip(*map(str.split, done.stdout.splitlines()), strict=True)
    if isinstance(model, rc.PRank):
        assert list(map(float, scores)) == model.project(X).tolist()
        assert list(map(int, labels)) == model.predict(X).tolist()
    else:
        assert list(map(float, scores)) == model.predict(X).tolist()
        assert set(labels) == {"-"}
    (tmp_path / "m").write_bytes(b"hello")
    done = subprocess.run(command, input=rows, capture_output=True, text=True)
    assert done.returncode == 1
    assert "not a rankcore model file" in done.stderr


PROGRAM = """
#include "rankcore_model.h"
int main(int argc, char **argv)
{
    rc_model model;
    const int32_t code = argc == 2 ? rc_model_open_file(&model, argv[1]) : RC_MODEL_NO_FILE;
    if (code == RC_MODEL_OK)
        printf("%ld %d\\n", (long)model.n_features, (int)model.n_ranks);
    rc_model_close(&model);
    return code;
}
"""


def test_a_project_finds_the_headers_with_cmake(built, tmp_path):
    rc.save(rc.PRank().fit(X, Y), tmp_path / "m")
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(user LANGUAGES C)\n"
        "find_package(rankcore 1 REQUIRED)\nadd_executable(main main.c)\n"
        "target_link_libraries(main rankcore::headers)\n"
    )
    where = f"-Drankcore_DIR={config('--cmakedir')}"
    for command in [["cmake", "-S", tmp_path, "-B", tmp_path / "b", where],
                    ["cmake", "--build", tmp_path / "b"]]:  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([tmp_path / "b" / "main", tmp_path / "m"], capture_output=True, text=True)
    assert done.stdout == "5 4\n"


@pytest.mark.parametrize("finder", ["pkg-config", "rankcore-config"])
@pytest.mark.parametrize("compiler", [["cc", *STRICT], ["c++", "-x", "c++", "-std=c++11"]], ids=str)
def test_compilers_find_the_headers(tmp_path, finder, compiler):
    if shutil.which(compiler[0]) is None or (finder == "pkg-config" and not shutil.which(finder)):
        pytest.skip(f"no {compiler[0]} or no {finder}")
    if finder == "pkg-config":
        environment = {**os.environ, "PKG_CONFIG_PATH": config("--pkgconfigdir")}
        done = subprocess.run(
            [finder, "--cflags", "--libs", "rankcore"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        flags = done.stdout.split()
    else:
        flags = config("--cflags", "--libs").split()
    (tmp_path / "main.c").write_text(PROGRAM)
    command = [*compiler, "-o", tmp_path / "main", tmp_path / "main.c"]
    subprocess.run([*command, *flags], check=True)
    rc.save(rc.PRank().fit(X, Y), tmp_path / "m")
    done = subprocess.run([tmp_path / "main", tmp_path / "m"], capture_output=True, text=True)
    assert done.stdout == "5 4\n"
    assert subprocess.run([tmp_path / "main", tmp_path / "none"]).returncode == NO_FILE


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_cxx_compiles_the_headers_without_a_warning(standard):
    """C++20 deprecates operations between enumerations."""
    if shutil.which("c++") is None:
        pytest.skip("no c++")
    flags = ["-x", "c++", f"-std={standard}", *STRICT[1:], "-fsyntax-only"]
    source = Path(rc.get_include()) / "librankcore.c"
    done = subprocess.run(["c++", *flags, source], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_config_command_prints_its_usage(capsys):
    with pytest.raises(SystemExit):
        config()
    assert "--includedir" in capsys.readouterr().err
    assert config("--includedir") == rc.get_include()
    assert config("--version") == rc.__version__


def test_versions_of_headers_and_package_are_equal():
    path = Path(config("--pkgconfigdir")) / "rankcore.pc"
    lines = dict(line.split(": ", 1) for line in path.read_text().splitlines() if ": " in line)
    assert lines["Version"] == rc.__version__
    header = (Path(rc.get_include()) / "rankcore.h").read_text()
    abi = re.search(r"#define RANKCORE_ABI (\d+)", header)[1]
    assert f"abi={abi}\n" in path.read_text()
    if shutil.which("pkg-config"):
        environment = {**os.environ, "PKG_CONFIG_PATH": config("--pkgconfigdir")}
        for option, expected in (("--modversion", rc.__version__), ("--variable=abi", abi)):
            done = subprocess.run(
                ["pkg-config", option, "rankcore"],
                env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert done.stdout.strip() == expected


def test_threads_share_a_model(library, tmp_path):
    model = rc.KernelPRank(random_state=0).fit(X, Y)
    rc.save(model, tmp_path / "m")
    found = Model(library, tmp_path / "m")
    with ThreadPoolExecutor(4) as pool:  # ctypes gives the GIL back
        for _, scores, _ in pool.map(lambda _: found.answer(X), range(40)):
            np.testing.assert_array_equal(scores, model.project(X))


# ---------------------------------------------------------------- damaged files


def corpus(folder):
    """Return a small file of every form."""
    paths = []
    frame = sp.csr_array(X)
    models = [
        *(fitted(one) for one in SAVED),
        *(fitted(one, sp.csr_array) for one in ORDINAL if "Kernel" in repr(one)),
        make_pipeline(StandardScaler(), rc.PRank()).fit(X, Y),
        make_pipeline(MaxAbsScaler(), rc.PRank()).fit(frame, Y),
        rc.PRank().fit(X, np.array(["a", "bc", "d", "e"])[Y - 1], classes=["a", "bc", "d", "e"]),
    ]
    for i, model in enumerate(models):
        path = folder / f"{i}.rankcore"
        rc.save(model, path)
        if path.stat().st_size < 2**16:
            paths.append(path)
    assert len(paths) > 20
    return paths


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("compiler", ["cc", "clang"])
def test_damaged_files_are_never_read_out_of_bounds(tmp_path, compiler):
    """Sanitizers look on: RANKCORE_HOSTILE times as many trials, with Clang by libFuzzer."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    times = int(os.environ.get("RANKCORE_HOSTILE", "1"))
    source = Path(__file__).parent / "fuzz" / "model.c"
    # GCC needs ten times as long to optimise what sanitizers check.
    libfuzzer = ["-O1", "-fsanitize=fuzzer"] if compiler == "clang" else ["-O0", "-DALONE"]
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [compiler, "-std=c99", "-g", *sanitizers, *libfuzzer]
    probe = [*command, "-x", "c", "-", "-o", tmp_path / "probe"]
    done = subprocess.run(probe, input=b"int main(void) { return 0; }", capture_output=True)
    if done.returncode:
        pytest.skip(f"no sanitizers: {done.stderr.decode()[-200:]}")
    includes = f"-I{rc.get_include()}"
    subprocess.run([*command, includes, "-o", tmp_path / "fuzz", source, "-lm"], check=True)
    paths = corpus(tmp_path)
    if compiler == "clang":
        arguments = [f"-max_total_time={5 * times}", "-max_len=65536", tmp_path]
    else:
        arguments = [str((2000 if NIGHTLY else 500) * times), "1", *paths]
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    environment.pop("LD_PRELOAD", None)
    done = subprocess.run(
        [tmp_path / "fuzz", *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernel_models_standardise_rows_in_c_as_in_python(library, tmp_path, kernel, form, dtype):
    columns = X * [1, 1e4, 1e-3, 1, 1] + [0, 1e8, 0, -3, 5]
    for learner in (rc.KernelPRank, rc.KernelCuSumRank):
        model = learner(kernel, random_state=0).fit(columns, Y)
        assert model.mean_.any()
        rc.save(model, tmp_path / "m")
        rows = form((columns * (RNG.random(X.shape) < 0.9)).astype(dtype))
        _, scores, ranks = Model(library, tmp_path / "m").answer(rows)
        np.testing.assert_array_equal(scores, model.project(rows))
        np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))
        pipeline = make_pipeline(MinMaxScaler(), model).fit(columns, Y)
        rc.save(pipeline, tmp_path / "m")
        _, scores, _ = Model(library, tmp_path / "m").answer(columns)
        np.testing.assert_array_equal(scores, pipeline[-1].project(pipeline[0].transform(columns)))


@pytest.mark.parametrize(
    ("change", "arrays"),
    [
        ({"scoring.means": None}, {}),
        ({"scoring.factors": None}, {}),
        ({"scoring.factors": "scoring.norms"}, {}),
        ({}, {"scoring.means": np.zeros(4)}),
        ({}, {"scoring.factors": np.array([1, 1, 1, 1, 0.0])}),
        ({}, {"scoring.factors": np.array([1, 1, 1, 1, -1.0])}),
    ],
)
def test_units_of_another_length_are_rejected(library, tmp_path, change, arrays):
    path = tmp_path / "m"
    rc.save(rc.KernelPRank(random_state=0).fit(X, Y), path)
    document, found = taken_apart(path.read_bytes())
    assert {"scoring.means", "scoring.factors"} <= {*found}
    document = {k: v for k, v in (document | change).items() if v is not None}
    path.write_bytes(put_together(document, found | arrays))
    with pytest.raises(ValueError, match="the scoring is damaged"):
        Model(library, path)
