"""examples/other_languages: programs print Python's numbers, to the bit, and say what is wrong.

`pytest tests/elsewhere` runs this, the suite does not. Missing languages are skipped by name.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import rankcore as rc
from declared import QID, X

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "other_languages"
INCLUDE = Path(rc.get_include())


def call(*command, **options):
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)


def require(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return found


def compiled(*command, **options):
    done = call(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "librankcore.so"
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    compiled(require("cc"), *flags, INCLUDE / "librankcore.c", "-o", path, "-lm")
    return path


def python(library, folder):
    return [sys.executable, "-S", EXAMPLES / "python" / "score.py", library]


def rust(library, folder):
    rustc = require("rustc")
    if call(rustc, "--version").returncode:
        pytest.skip("rustc has no toolchain")
    search = ["-L", library.parent, "-l", "rankcore", "-C", f"link-arg=-Wl,-rpath,{library.parent}"]
    source = EXAMPLES / "rust" / "score.rs"
    compiled(rustc, "-D", "warnings", *search, source, "-o", folder / "score")
    return [folder / "score"]


def go(library, folder):
    flags = {
        "CGO_CFLAGS": f"-I{INCLUDE}",
        "CGO_LDFLAGS": f"-L{library.parent} -Wl,-rpath,{library.parent}",
    }
    source = EXAMPLES / "go" / "score.go"
    environment = {**os.environ, **flags}
    compiled(require("go"), "build", "-o", folder / "score", source, env=environment)
    return [folder / "score"]


def r(library, folder):
    require("Rscript")
    shutil.copy(EXAMPLES / "r" / "glue.c", folder)
    flags = {
        "PKG_CPPFLAGS": f"-I{INCLUDE}",
        "PKG_LIBS": f"-L{library.parent} -lrankcore -Wl,-rpath,{library.parent}",
    }
    environment = {**os.environ, **flags}
    compiled("R", "CMD", "SHLIB", folder / "glue.c", env=environment, cwd=folder)
    return ["Rscript", EXAMPLES / "r" / "score.R", folder / "glue.so"]


def java(library, folder):
    """Return the JDK of JAVA_HOME or PATH; Debian's ecj compiles for one that has no compiler."""
    home = os.environ.get("JAVA_HOME")
    program = Path(home) / "bin" / "java" if home else Path(require("java")).resolve()
    version = call(program, "-version").stderr.splitlines()[0]
    if int(re.search(r'"(\d+)', version)[1]) < 22:
        pytest.skip(f"no Java from 22 on, but {version}")
    source = EXAMPLES / "java" / "Score.java"
    if program.with_name("javac").exists():
        compiled(program.with_name("javac"), "-Xlint:all", "-Werror", "-d", folder, source)
    else:
        options = ["-proc:none", "-17", "--system", program.parents[1]]
        compiled(require("ecj"), *options, "-d", folder, source)
    return [program, "--enable-native-access=ALL-UNNAMED", "-cp", folder, "Score", library]


def node(library, folder):
    program = require("node")
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("no ziglang")
    # Without a package.json beside it, Node before 20.19 takes a module for a script.
    compiled(sys.executable, ROOT / "web" / "compile.py", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return [program, EXAMPLES / "node" / "score.mjs", folder]


@pytest.fixture(scope="module", params=[python, rust, go, r, java, node], ids=lambda f: f.__name__)
def score(request, library, tmp_path_factory):
    """Return the command of a language, which takes a model file and rows on its standard input."""
    return request.param(library, tmp_path_factory.mktemp("program"))


# Numbers with all their digits, some of them subnormal; rows without a stored value.
ROWS = np.vstack([X, X[:20].round(1), np.zeros((2, 5)), 1e3 * X[:10], 1e-310 * X[:3]])
ROWS = sp.csr_array(ROWS * (np.random.default_rng(3).random(ROWS.shape) < 0.8))


def svmlight(rows):
    lines = ["# no row", ""]
    for i in range(rows.shape[0]):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        stored = zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        lines.append(" ".join(["0", "qid:1", *(f"{j + 1}:{v!r}" for j, v in stored), "# 9:9"]))
    return "\n".join(lines) + "\n"


Y = 1 + np.digitize(X.sum(axis=1), [-1.5, 0.0, 1.5])
LABELS = ["schlecht", "mäßig", "gut", "sehr"]


def ordinal(learner):
    return learner.fit(sp.csr_array(X), Y)


MODELS = {
    "ranks": lambda: ordinal(rc.PRank(random_state=0)),
    "labels": lambda: rc.PRank(random_state=0).fit(X, np.array(LABELS)[Y - 1], classes=LABELS),
    "probabilities": lambda: ordinal(rc.CalibratedOrdinal(rc.CuSumRank(random_state=0))),
    "isotonic": lambda: ordinal(
        rc.CalibratedOrdinal(rc.KernelPRank(random_state=0), method="isotonic")
    ),
    "scaled": lambda: ordinal(
        make_pipeline(MaxAbsScaler(), rc.CalibratedOrdinal(rc.PRank(random_state=0)))
    ),
    "trees": lambda: rc.RankBoost(9, max_leaf_nodes=4).fit(X, Y, qid=QID),
}


@pytest.mark.parametrize("name", MODELS)
def test_scores_ranks_and_probabilities_equal_those_of_python(score, name, tmp_path):
    model = MODELS[name]()
    rc.save(model, tmp_path / "m")
    done = call(*score, tmp_path / "m", input=svmlight(ROWS), encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    scores, labels, *table = zip(*map(str.split, done.stdout.splitlines()), strict=True)

    rows, last = (model[0].transform(ROWS), model[-1]) if name == "scaled" else (ROWS, model)
    scored = getattr(last, "estimator_", last)
    expected = scored.project(rows) if hasattr(scored, "project") else scored.predict(rows)
    assert np.array(scores, float).tobytes() == expected.tobytes()
    if name == "trees":
        assert set(labels) == {"-"}
    else:
        assert list(labels) == [str(label) for label in model.predict(ROWS)]
        assert len(set(labels)) > 1
    if hasattr(last, "predict_proba"):
        got = np.ascontiguousarray(np.array(table, float).T)
        assert got.tobytes() == model.predict_proba(ROWS).tobytes()
    else:
        assert table == []


def test_programs_print_the_errors_of_the_library(score, tmp_path):
    (tmp_path / "m").write_bytes(b"hello")
    done = call(*score, tmp_path / "m", input=svmlight(ROWS))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{tmp_path / 'm'}: not a rankcore model file, or damaged" in done.stderr

    rc.save(rc.PRank(random_state=0).fit(X, Y), tmp_path / "m")
    for rows in ("0 6:1\n", "0 2:1 1:1\n"):
        done = call(*score, tmp_path / "m", input=rows)
        assert (done.returncode, done.stdout) == (1, "")
        assert "the rows have other columns than the model" in done.stderr


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/*.*")), ids=lambda p: p.name)
def test_programs_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 100
