"""The headers and the shared library on other processors and systems, with other compilers.

`pytest tests/elsewhere` runs this, the suite does not. PyPI's ziglang compiles for other
processors, and QEMU's user mode (Debian's qemu-user) or Wine runs what it compiled; what is missing
is skipped by its name. RANKCORE_FUZZ_SECONDS is the time of the fuzzer on each processor: 10 if
unset.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import rankcore as rc
import test_c_header
from declared import QID, SAVED, X, Y, fitted
from shared_library import UNSUPPORTED
from test_c_header import EXAMPLE, SOURCES
from test_c_model import corpus

HERE = Path(__file__).parent
INCLUDE = Path(rc.get_include())
KERNELS = HERE.parents[1] / "src" / "rankcore" / "_ext"
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-ffp-contract=off"]
STANDARDS = {"c": ["c99", "c11", "c17"], "c++": ["c++11", "c++14", "c++17", "c++20"]}
FORMS = ["dense", "dense float32", "CSR", "CSR float32"]
FUZZ_SECONDS = float(os.environ.get("RANKCORE_FUZZ_SECONDS", "10"))


@dataclass(frozen=True)
class Machine:
    """A target of Zig, and what runs programs for it here."""

    target: str
    runner: str = ""
    ending: str = ""
    big_endian: bool = False

    def require(self):
        if importlib.util.find_spec("ziglang") is None:
            pytest.skip("no ziglang")
        if self.runner and shutil.which(self.runner) is None:
            pytest.skip(f"no {self.runner}")

    def build(self, program, *sources, flags=("-O2",)):
        program = program.with_name(program.name + self.ending)
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", self.target, "-std=c99"]
        done = call(*zig, *STRICT, *flags, f"-I{INCLUDE}", *sources, "-o", program, "-lm")
        assert (done.returncode, done.stderr) == (0, "")
        return program

    def command(self, program):
        """Return a one-word command that runs a program compiled for this machine."""
        command = program.with_name(program.name + ".sh")
        command.write_text(f'#!/bin/sh\nexec {shutil.which(self.runner)} "{program}" "$@"\n')
        command.chmod(0o755)
        return command


PROCESSORS = {
    "aarch64": Machine("aarch64-linux-musl", "qemu-aarch64"),
    "riscv64": Machine("riscv64-linux-musl", "qemu-riscv64"),
    "ppc64le": Machine("powerpc64le-linux-musl", "qemu-ppc64le"),
    "arm, 32 bits": Machine("arm-linux-musleabihf", "qemu-arm"),
    "s390x, big-endian": Machine("s390x-linux-musl", "qemu-s390x", big_endian=True),
}
# Debian's wine64 leaves the program where PATH does not lead.
WINE = "/usr/lib/wine/wine64" if os.path.exists("/usr/lib/wine/wine64") else "wine64"
SYSTEMS = PROCESSORS | {"Windows": Machine("x86_64-windows-gnu", WINE, ".exe")}
NOT_RUN = {
    "macOS, ARM": Machine("aarch64-macos"),
    "macOS, Intel": Machine("x86_64-macos"),
}


def call(*command, **options):
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)


def of(machines):
    return [pytest.param(machine, id=name) for name, machine in machines.items()]


@pytest.fixture(scope="module", params=of(PROCESSORS))
def machine(request):
    request.param.require()
    return request.param


@pytest.fixture(scope="module")
def program(machine, tmp_path_factory):
    """examples/c_pipeline for a processor, as the tests of test_c_header call it."""
    folder = tmp_path_factory.mktemp("pipeline")
    return machine.command(machine.build(folder / "rank", EXAMPLE / "main.c"))


# They run here with the program of each processor.
globals().update({k: v for k, v in vars(test_c_header).items() if k.startswith("test_example_")})


# ------------------------------------------------------------------ every form of model file


def rows_of_every_kind():
    """Rows full, empty, rounded and large, without missing values."""
    rng = np.random.default_rng(7)
    rows = np.vstack([X, X[:20].round(1), np.zeros((2, 5)), 1e3 * X[:30]])
    return rows * (rng.random(rows.shape) < 0.8)


def models():
    """Return a model of every form, with its name."""
    labels = ["schlecht", "mäßig", "gut", "sehr"]
    names = [f"{type(one).__name__} {i}" for i, one in enumerate(SAVED)]
    yield from zip(names, map(fitted, SAVED), strict=True)
    plain = rc.KernelPRank(max_iter=2, standardize=False, random_state=0)
    yield "sparse support vectors", fitted(plain, sp.csr_array)
    yield "labels", rc.PRank(random_state=0).fit(X, np.array(labels)[Y - 1], classes=labels)
    isotonic = rc.CalibratedOrdinal(rc.PRank(random_state=0), method="isotonic")
    yield "isotonic", isotonic.fit(X, Y)
    columns = np.column_stack([np.abs(X[:, :1]).round(0), X[:, 1:]])
    trees = rc.RankBoost(9, max_leaf_nodes=4, categorical_features=[0], min_samples_leaf=2)
    yield "categories", trees.fit(columns, Y, qid=QID)
    for scaler in (
        StandardScaler(with_mean=False),
        MaxAbsScaler(),
        StandardScaler(),
        MinMaxScaler((-0.3, 7.1), clip=True),
    ):
        yield str(scaler), make_pipeline(scaler, rc.PRank(random_state=0)).fit(X, Y)
    calibrated = rc.CalibratedOrdinal(rc.PRank(random_state=0))
    yield "calibrated behind a scaler", make_pipeline(MaxAbsScaler(), calibrated).fit(X, Y)


def expected(model, rows):
    """Python's scores, ranks and probabilities; None of what a model does not answer."""
    scaler, last = (model[0], model[-1]) if hasattr(model, "steps") else (None, model)
    try:
        rows = scaler.transform(rows) if scaler else rows
    except (TypeError, ValueError):  # centring would make sparse rows dense
        return None, None, None
    if getattr(last, "combine", "score") == "rank":
        return None, None, None
    if not hasattr(last, "ranks_"):
        return last.predict(rows), None, None
    probabilities = last.predict_proba(rows) if hasattr(last, "predict_proba") else None
    scored = getattr(last, "estimator_", last)
    if hasattr(scored, "project"):
        scores = scored.project(rows)
    elif getattr(scored, "tasks", "") == "shared":
        (scores,) = scored._state.model.score(scored._more_rows(rows))
    else:
        scores = np.full(rows.shape[0], np.nan)
    ranks = [last.ranks_.tolist().index(one) for one in last.predict(rows).tolist()]
    return scores, np.array(ranks), probabilities


@dataclass(frozen=True)
class Case:
    name: str
    path: Path
    head: str
    labels: list[str]
    answers: list[tuple]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Model files, what Python answers with each, and the file of the rows."""
    folder = tmp_path_factory.mktemp("models")
    dense = rows_of_every_kind()
    sparse = sp.csr_array(dense)
    lines = [f"{dense.shape[0]} {dense.shape[1]} {sparse.nnz}"]
    for i in range(dense.shape[0]):
        part = slice(sparse.indptr[i], sparse.indptr[i + 1])
        stored = zip(sparse.indices[part], sparse.data[part].view(np.uint64), strict=True)
        row = [f"{column} {bits:x}" for column, bits in stored]
        lines.append(" ".join([str(len(row)), *row]))
    (folder / "rows").write_text("\n".join(lines) + "\n")
    found = []
    for i, (name, model) in enumerate(models()):
        last = model[-1] if hasattr(model, "steps") else model
        classes = getattr(last, "ranks_", [])
        rc.save(model, folder / f"{i}.rankcore")
        head = f"model {type(last).__name__} 5 {len(classes)} damaged 0"
        given = [dense, dense.astype(np.float32), sparse, sparse.astype(np.float32)]
        answers = [expected(model, rows) for rows in given]
        labels = [str(one) for one in classes]
        found.append(Case(name, folder / f"{i}.rankcore", head, labels, answers))
    return folder / "rows", found


def answer_as_python(command, cases, **options):
    """Compare what the program says of all models with what Python says, to the bit."""
    rows, found = cases
    options = {"encoding": "utf-8"} | options
    done = call(*command, rows, *(case.path for case in found), **options)
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.splitlines())
    compared = 0
    for case in found:
        assert next(lines) == case.head, case.name
        assert next(lines).split()[1:] == case.labels, case.name
        for form, answers in zip(FORMS, case.answers, strict=True):
            for what, wanted in zip(["scores", "ranks", "probabilities"], answers, strict=True):
                name, code, *got = next(lines).split()
                assert name == what
                where = (case.name, form, what)
                if wanted is None:
                    assert int(code) == UNSUPPORTED, where
                    continue
                assert int(code) == 0, where
                if what == "ranks":
                    assert list(map(int, got)) == wanted.tolist(), where
                else:
                    bits = np.array([int(one, 16) for one in got], np.uint64)
                    np.testing.assert_array_equal(bits.view(float), wanted.ravel(), str(where))
                    signs = np.signbit(wanted.ravel()) & ~np.isnan(wanted.ravel())
                    assert (np.signbit(bits.view(float)) == signs).all(), where
                compared += len(got)
    assert next(lines, None) is None
    assert compared > 30_000


@pytest.mark.parametrize("machine", of(SYSTEMS), indirect=True)
def test_every_form_predicts_as_in_python(machine, cases, tmp_path):
    sources = HERE / "answers.c", INCLUDE / "librankcore.c"
    program = machine.build(tmp_path / "answers", *sources)
    environment = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEDEBUG": "-all"}
    answer_as_python([machine.runner, program], cases, env=environment)


@pytest.mark.parametrize("machine", of(NOT_RUN), indirect=True)
def test_other_systems_compile_and_link(machine, tmp_path):
    sources = HERE / "answers.c", INCLUDE / "librankcore.c"
    assert machine.build(tmp_path / "answers", *sources).stat().st_size > 10_000
    assert machine.build(tmp_path / "rank", EXAMPLE / "main.c").stat().st_size > 10_000


COMPILERS = [
    pytest.param(name, language, standard, id=f"{name} {standard}")
    for name, language in [("gcc", "c"), ("clang", "c"), ("g++", "c++"), ("clang++", "c++")]
    for standard in STANDARDS[language]
]


@pytest.mark.parametrize(("name", "language", "standard"), COMPILERS)
def test_compilers_and_standards_agree(name, language, standard, cases, tmp_path):
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    sources = ["-x", language, HERE / "answers.c", INCLUDE / "librankcore.c"]
    command = [name, f"-std={standard}", *STRICT, "-O1", f"-I{INCLUDE}", *sources]
    done = call(*command, "-o", tmp_path / "answers", "-lm")
    assert (done.returncode, done.stderr) == (0, "")
    answer_as_python([tmp_path / "answers"], cases)


# ------------------------------------------------------------------ the other programs


def test_rows_in_lanes_score_as_single_rows(machine, tmp_path):
    program = machine.build(tmp_path / "tree_rows", SOURCES / "tree_rows.c")
    done = call(machine.runner, program, "100", "1")
    assert (done.returncode, done.stdout) == (0, "")


def test_layouts_of_64_bit_platforms_are_equal(machine, tmp_path):
    """The numbers that test_layouts_are_frozen holds on to."""
    if machine.target.startswith("arm-"):
        pytest.skip("pointers of 32 bits")
    there = call(machine.runner, machine.build(tmp_path / "there", SOURCES / "layout.c"))
    command = ["cc", "-std=c99", f"-I{INCLUDE}", SOURCES / "layout.c", "-o", tmp_path / "here"]
    assert call(*command).returncode == 0
    here = call(tmp_path / "here")
    assert there.returncode == here.returncode == 0
    assert len(here.stdout.splitlines()) > 50
    assert there.stdout == here.stdout


PLATFORM = """
#include <stdio.h>
#include "_platform.h"
int main(void)
{
    const char *fault = rc_platform_fault();
    printf("%s\\n", fault ? fault : "none");
    return 0;
}
"""


@pytest.mark.skipif(not KERNELS.exists(), reason="the sources are not here")
@pytest.mark.parametrize("contract", ["off", "fast"])
def test_violated_assumptions_of_kernels_are_reported(machine, contract, tmp_path):
    """rows.pyx asks this at import. Where there is fused multiply-add it must not be used."""
    (tmp_path / "main.c").write_text(PLATFORM)
    flags = ["-O2", f"-I{KERNELS}", f"-ffp-contract={contract}"]
    done = call(machine.runner, machine.build(tmp_path / "a", tmp_path / "main.c", flags=flags))
    fuses = contract == "fast" and machine.runner != "qemu-arm"
    assert done.returncode == 0
    assert ("-ffp-contract=off" if fuses else "none") in done.stdout


OPENED_OFTEN = """
#include "rankcore_model.h"
static long pages(void)
{
    long found = -1;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*s %ld", &found) != 1)
        exit(100);
    fclose(file);
    return found;
}
int main(int argc, char **argv)
{
    rc_model model;
    long before = 0;
    int k, code = 0, swapped = 0;
    for (k = 0; argc == 2 && !code && k < 21; k++) {
        code = rc_model_open_file(&model, argv[1]);
        swapped = model.swapped != NULL;
        rc_model_close(&model);
        before = k ? before : pages();
    }
    printf("%d %ld\\n", swapped, pages() - before);
    return code;
}
"""


def test_closed_model_frees_all_memory(machine, tmp_path):
    """A big-endian machine copies numbers when it opens a file, and gives them back."""
    (tmp_path / "main.c").write_text(OPENED_OFTEN)
    rc.save(rc.RankSVM().fit(np.eye(2, 200_000), [1, 2], qid=[1, 1]), tmp_path / "m")
    size = (tmp_path / "m").stat().st_size
    assert size > 1_000_000
    program = machine.build(tmp_path / "often", tmp_path / "main.c")
    done = call(machine.runner, program, tmp_path / "m")
    assert (done.returncode, done.stderr) == (0, "")
    swapped, grown = map(int, done.stdout.split())
    assert swapped == machine.big_endian
    assert grown * os.sysconf("SC_PAGE_SIZE") < 5 * size  # 20 copies without rc_model_close


def test_no_damage_leads_to_undefined_behaviour(machine, tmp_path):
    """Clang's checks trap: of bounds, alignment, shifts, signed overflow and null pointers."""
    checks = ["-g", "-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined", "-DALONE"]
    checks += ["-Wno-conversion"]
    source = HERE.parent / "fuzz" / "model.c"
    program = machine.build(tmp_path / "fuzz", source, flags=checks)
    paths = corpus(tmp_path)
    end, seed = time.monotonic() + FUZZ_SECONDS, 0
    while seed == 0 or time.monotonic() < end:
        seed += 1
        done = call(machine.runner, program, "20", str(seed), *paths)
        assert done.returncode == 0, (seed, done.stderr[-500:])
        assert done.stdout == f"{20 * len(paths)}\n"
    print(f"{machine.target}: {20 * len(paths) * seed} damaged files")  # pytest -s or -rP
