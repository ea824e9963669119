"""Exported C: compiles strictly, with any compiler of C99, and answers as Python to the bit."""

import ctypes
import shutil
import subprocess
import sys
from itertools import cycle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import rankcore as rc
from declared import RNG, X, Y, fitted, name_of, ranks_queries
from rankcore.exporters.c_source import parts
from test_export import LEARNERS, model_of
from test_export_search import FIVE, hostile

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or CC is None, reason="no C compiler that takes the options of Unix"
)
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
SHARED = ["-O2", "-ffp-contract=off", "-shared", "-fPIC"]


class Exported:
    """An exported model, compiled and loaded."""

    def __init__(self, model, folder, flags=(), **options):
        rc.export(model, folder / "ranker.c", "c", **options)
        shared = folder / "ranker.so"
        command = [CC, *STRICT, *SHARED, *flags, "-o", shared, folder / "ranker.c", "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.library = ctypes.CDLL(str(shared))

    def call(self, name, kind, rows):
        function = getattr(self.library, f"ranker_{name}")
        function.restype = kind
        if not sp.issparse(rows):
            rows = np.ascontiguousarray(rows, dtype=np.float64)
            return [function(row.ctypes.data_as(ctypes.c_void_p)) for row in rows]
        found, columns = [], rows.indices.astype(np.int32)
        for first, last in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            values, places = rows.data[first:last].copy(), columns[first:last].copy()
            pointers = (one.ctypes.data_as(ctypes.c_void_p) for one in (values, places))
            found.append(function(*pointers, ctypes.c_int64(last - first)))
        return found


@pytest.mark.parametrize(
    ("learner", "form"),
    [*zip(LEARNERS, cycle([np.asarray, sp.csr_array]), strict=False)],
    ids=name_of,
)
def test_dense_and_sparse_rows_score_as_in_python(tmp_path, learner, form):
    model = fitted(learner, form)
    found = Exported(model, tmp_path)
    dense = np.vstack([X, X[:20].round(1), np.zeros((2, 5)), 1e3 * X[:10]])
    rows = form(dense * (RNG.random(dense.shape) < 0.8))
    kind = "_sparse" if sp.issparse(rows) else ""
    if ranks_queries(learner):
        scores = found.call(f"score{kind}", ctypes.c_double, rows)
        np.testing.assert_array_equal(scores, model.predict(rows))
        return
    ranks = found.call(f"rank{kind}", ctypes.c_int32, rows)
    np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))
    if hasattr(model, "project"):
        scores = found.call(f"score{kind}", ctypes.c_double, rows)
        np.testing.assert_array_equal(scores, model.project(rows))


@pytest.mark.parametrize("nodes", [2, 8])
def test_values_next_to_thresholds_score_as_in_python(tmp_path, nodes):
    model = model_of(rc.RankBoost(60, max_leaf_nodes=nodes))
    rows = hostile(model).astype(np.float64)
    rows[RNG.random(rows.shape) < 0.05] = np.nan
    found = Exported(model, tmp_path).call("score", ctypes.c_double, rows)
    np.testing.assert_array_equal(found, model.predict(rows))


def test_categories_score_as_in_python(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=FIVE)
    table["age"] = pandas.Categorical.from_codes(Y - 1, list("abcd"))
    model = rc.RankBoost(20, max_leaf_nodes=5).fit(table, Y, qid=np.repeat(np.arange(9), 10))
    codes = table.assign(age=table["age"].cat.codes).to_numpy(dtype=np.float64)
    found = Exported(model, tmp_path).call("score", ctypes.c_double, codes)
    np.testing.assert_array_equal(found, model.predict(table))


@pytest.mark.parametrize("decision", ["cusum", "count"])
@pytest.mark.parametrize("tie", ["high", "low"])
@pytest.mark.parametrize("kernel", [False, True])
def test_ties_and_decisions_equal_those_of_python(tmp_path, decision, tie, kernel):
    learner = rc.KernelCuSumRank if kernel else rc.CuSumRank
    options = {"kernel": "linear"} if kernel else {"average": False}
    rows = np.round(X)  # integers, of which many scores are equal
    model = learner.published(decision=decision, tie_break=tie, **options).fit(rows, Y)
    ranks = Exported(model, tmp_path).call("rank", ctypes.c_int32, rows)
    np.testing.assert_array_equal(model.ranks_[ranks], model.predict(rows))


@pytest.mark.parametrize("output", ["round", "mean", "median", "plurality"])
@pytest.mark.parametrize("learner", [rc.VotedPRank, rc.OAPBagging])
def test_votes_equal_those_of_python(tmp_path, learner, output):
    model = learner(random_state=0, max_iter=2).fit(X, Y)
    model.set_params(output="round" if output == "mean" else output)
    expected, project = model.predict(X), model.project(X)
    found = Exported(model.set_params(output=output), tmp_path)
    np.testing.assert_array_equal(model.ranks_[found.call("rank", ctypes.c_int32, X)], expected)
    np.testing.assert_array_equal(found.call("score", ctypes.c_double, X), project)


PROGRAM = """#include <stdio.h>
#include "ranker.h"
int main(void)
{
    double x[5] = {1.0, -0.5, 0.25, 2.0, -1.0};
    int32_t rank = ranker_rank(x);
    printf("%a %d ", ranker_score(x), (int)rank);
    PRINT(ranker_label(rank));
    printf(" %s", ranker_features[3]);
    return 0;
}
"""


@pytest.mark.parametrize(
    ("classes", "show"),
    [
        (["schlecht", 'sehr "gut"?\\', "gut", "mäßig"], 'printf("%s", label)'),
        ([1, 2, 3, 4], 'printf("%d", (int)(label))'),
        ([0.5, 1.0, 1.5, 2.0], 'printf("%g", label)'),
    ],
)
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_a_program_prints_labels_and_names(tmp_path, classes, show, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    model = rc.PRank(random_state=0).fit(X, np.array(classes)[Y - 1], classes=classes)
    rc.export(model, tmp_path / "ranker.c", "c", feature_names=["a", "b", "c", "größe", "e"])
    show = "#define PRINT(label) " + show + "\n"
    main = tmp_path / ("main.c" if compiler == "cc" else "main.cpp")
    main.write_text(show + PROGRAM)
    subprocess.run([CC, *STRICT, "-c", "-ffp-contract=off", "ranker.c"], cwd=tmp_path, check=True)
    command = [compiler, "-Wall", "-Werror", "-o", "main", main.name, "ranker.o", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
    score, rank, rest = done.stdout.decode().split(" ", 2)
    x = [[1.0, -0.5, 0.25, 2.0, -1.0]]
    assert float.fromhex(score) == model.project(x)[0]
    label = classes[int(rank)]
    assert label == model.predict(x)[0]
    assert rest == f"{label if isinstance(label, str) else format(label, 'g')} größe"


def test_two_models_fit_in_one_program(tmp_path):
    for name in ["one", "two"]:
        model = rc.RankBoost(5).fit(X, Y, qid=np.repeat(np.arange(9), 10))
        rc.export(model, tmp_path / f"{name}.c", "c")
    rc.export(model, tmp_path / "three.c", "c", name="third")
    assert "third_score" in (tmp_path / "three.h").read_text()
    files = [tmp_path / f"{name}.c" for name in ["one", "two", "three"]]
    subprocess.run([CC, *STRICT, *SHARED, "-o", tmp_path / "all.so", *files, "-lm"], check=True)
    with pytest.raises(ValueError, match="name must be an identifier of C; got '2-b'"):
        rc.export(model, tmp_path / "four.c", "c", name="2-b")


@pytest.mark.parametrize("learner", [rc.PRank(random_state=0), rc.RankBoost(20)], ids=str)
def test_sanitizers_find_nothing(tmp_path, learner):
    flags = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
    try:
        subprocess.run([CC, *flags, "-x", "c", "-", "-o", tmp_path / "probe"], check=True,
                       input=b"int main(void) { return 0; }", capture_output=True)  # fmt: skip
    except subprocess.CalledProcessError:
        pytest.skip("the compiler has no sanitizer")
    model = model_of(clone(learner))
    rc.export(model, tmp_path / "ranker.c", "c")
    text = "double total = 0, x[5] = {0};\nfor (x[0] = -3; x[0] < 3; x[0] += 0.1)\n"
    main = f'#include "ranker.h"\nint main(void) {{ {text} total += ranker_score(x);\n'
    (tmp_path / "main.c").write_text(main + "return total != total; }\n")
    files = [tmp_path / "main.c", tmp_path / "ranker.c"]
    subprocess.run([CC, *flags, "-o", tmp_path / "main", *files, "-lm"], check=True)
    subprocess.run([tmp_path / "main"], check=True)


def test_too_wide_rows_are_rejected(tmp_path):
    wide = np.eye(4, 100_001)
    pipeline = rc.PRank(random_state=0).fit(wide, [1, 2, 1, 2])
    rc.export(pipeline, tmp_path / "a.c", "c")
    from sklearn.pipeline import make_pipeline

    scaled = make_pipeline(MinMaxScaler(), rc.PRank(random_state=0)).fit(wide, [1, 2, 1, 2])
    with pytest.raises(ValueError, match="at most 100000 features; got 100001"):
        rc.export(scaled, tmp_path / "b.c", "c")


def test_sparse_rows_need_a_learner_alone(tmp_path):
    model = model_of(rc.PRank(random_state=0), "StandardScaler")
    assert isinstance(model[0], StandardScaler)
    rc.export(model, tmp_path / "a.c", "c")
    assert "_sparse" not in (tmp_path / "a.h").read_text()


def test_unknown_header_piece_is_an_error():
    with pytest.raises(KeyError, match="no piece rc_nothing in rankcore.h, .*rankcore_model.h"):
        parts("rc_nothing();", [])


def test_a_file_whose_name_is_no_identifier_is_checked(tmp_path):
    X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [3, 1, 2]
    model = rc.PRank(random_state=0).fit(X, y)
    assert rc.export(model, tmp_path / "my-model.c", "c", check=X).largest_difference == 0.0
    assert "double my_model_score(const double *x);" in (tmp_path / "my-model.h").read_text()
