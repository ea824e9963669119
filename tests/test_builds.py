"""How the package is built: the same bytes each time, for which ABI, and without a compiler."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from builds import HAS_SOURCES, copy_sources, run

if not HAS_SOURCES:
    pytest.skip("no source tree beside the tests", allow_module_level=True)
pytest.importorskip("Cython")

# Two of the kernels: what makes bytes differ (times, paths, modes, owners, order) is in all.
FEW = {"rows", "pair_loss"}
BUILD = "-m", "build", "--no-isolation"
# Another umask, as another user may have: modes of files are in both archives.
MASKED = "import os, runpy, sys; os.umask(0o077); runpy.run_module('build', run_name='__main__')"
SETUP = """
import json, sys, sysconfig
import setuptools
version, threaded = json.loads(sys.argv[1])
sys.version_info = (*version, 0, "final", 0)
config = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: threaded if name == "Py_GIL_DISABLED" else config(name)
said = {}
setuptools.setup = said.update
exec(open("setup.py").read())
kernel = said["ext_modules"][0]
print(json.dumps({
    "macros": kernel.define_macros,
    "limited": kernel.py_limited_api,
    "tag": said["options"]["bdist_wheel"].get("py_limited_api"),
    "flags": kernel.extra_compile_args + kernel.extra_link_args,
}))
"""


def few_kernels(folder, names=FEW):
    """Return a copy of the sources, compiled in seconds."""
    copy_sources(folder)
    for path in (folder / "src/_ext").glob("*.pyx"):
        if path.stem not in names:
            path.unlink()
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return few_kernels(tmp_path_factory.mktemp("tree") / "rankcore")


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the MSVC linker writes times")
def test_two_builds_are_the_same_bytes(tmp_path):
    # RANKCORE_ALL_KERNELS=1 builds all of them twice, in some eight minutes of a processor.
    copy = copy_sources if os.environ.get("RANKCORE_ALL_KERNELS") == "1" else few_kernels
    env = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    here, there = tmp_path / "here", tmp_path / "a longer path/there"
    first, second = tmp_path / "first", tmp_path / "second"
    run(sys.executable, *BUILD, "--outdir", first, copy(here), env=env)
    for path in copy(there).rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    masked = "-c", MASKED, "--no-isolation"
    # What is tested with warnings as errors is what is released without.
    run(sys.executable, *masked, "--outdir", second, there, env=env | {"RANKCORE_WERROR": "1"})
    made = digests(first)
    assert sorted(name.rpartition(".")[2] for name in made) == ["gz", "whl"]
    assert digests(second) == made


def test_build_without_a_compiler_names_it(small, tmp_path):
    if sys.platform == "win32":
        pytest.skip("setuptools looks for MSVC, and says what it misses")
    done = subprocess.run(
        [
            sys.executable,
            "setup.py",
            "build_ext",
            "--build-temp",
            tmp_path,
            "--build-lib",
            tmp_path,
        ],
        cwd=small,
        env=os.environ | {"CC": "/nonexistent/cc"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "rankcore requires a C compiler to be built from source" in done.stderr
    assert "found no /nonexistent/cc" in done.stderr
    assert "pip install --only-binary rankcore rankcore" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("src/**/*.c"))  # said before the translation, which takes minutes


def built(tree):
    """Build what was edited; return when each kernel was built."""
    command = sys.executable, "setup.py", "build_ext", "--inplace"
    run(*command, cwd=tree, env=os.environ | {"CFLAGS": "-O0"})
    files = (tree / "build").glob("lib*/rankcore/_ext/[!_]*")
    return {path.name.partition(".")[0]: path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
def test_an_edited_file_rebuilds_only_the_kernels_that_read_it(tmp_path):
    tree = few_kernels(tmp_path / "tree")
    before = built(tree)
    assert before.keys() == FEW
    for edited, expected in [
        ("src/_ext/pair_loss.pyx", {"pair_loss"}),
        ("src/rankcore/_ext/_stream.h", {"pair_loss"}),
        ("src/rankcore/_ext/_platform.h", {"rows"}),
        ("src/rankcore/_ext/_docs.h", {"pair_loss"}),  # through another header
        ("src/rankcore/core.pxd", FEW),
        ("src/rankcore/_ext/_gram.h", set()),
    ]:
        path = tree / edited
        path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        after = built(tree)
        rebuilt = {name for name in FEW if after[name] != before[name]}
        assert rebuilt == expected, edited
        before = after


@pytest.mark.slow
def test_an_edited_declaration_of_a_kernel_rebuilds_it(tmp_path):
    tree = few_kernels(tmp_path / "tree", {"online_model"})
    before = built(tree)
    path = tree / "src/rankcore/_ext/online_model.pxd"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert built(tree)["online_model"] != before["online_model"]
    assert built(tree) == built(tree)


FAULT = """
static inline const char *rc_platform_fault(void)
{
    return "integers that a machine of this test does not have";
}
"""


@pytest.mark.slow
def test_kernels_are_not_imported_where_an_assumption_does_not_hold(tmp_path):
    """As on a machine whose header finds a fault; tests/elsewhere asks the real one there."""
    tree = few_kernels(tmp_path / "tree")
    (tree / "src/rankcore/_ext/_platform.h").write_text(FAULT)
    run(sys.executable, "setup.py", "build_ext", "--inplace", cwd=tree)
    done = subprocess.run(
        [sys.executable, "-c", "import rankcore._ext.rows"],
        env=os.environ | {"PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the kernels of rankcore require integers that a machine")
    assert last.endswith("this build or machine does not have them")


@pytest.mark.parametrize(
    ("version", "threaded", "environment", "tag", "macros"),
    [
        ((3, 13), 0, {}, "cp311", [["Py_LIMITED_API", "0x030B0000"]]),
        ((3, 14), 1, {}, None, []),
        ((3, 14), 1, {"RANKCORE_ABI3T": "1"}, None, []),  # the stable ABI of threads begins at 3.15
        ((3, 15), 1, {}, None, []),
        ((3, 15), 1, {"RANKCORE_ABI3T": "1"}, "cp315", [["Py_TARGET_ABI3T", "0x030F0000"]]),
        ((3, 14), 0, {"PYODIDE": "1"}, None, []),
    ],
)
def test_each_interpreter_gets_its_abi(version, threaded, environment, tag, macros, small):
    env = {name: value for name, value in os.environ.items() if not name.startswith("RANKCORE")}
    asked = json.dumps([version, threaded])
    said = json.loads(
        run(
            sys.executable,
            "-c",
            SETUP,
            asked,
            cwd=small,
            env=env | environment,
        )
    )
    assert said["macros"] == macros
    assert said["limited"] is bool(macros)
    assert said["tag"] == tag
    linked = [flag for flag in said["flags"] if flag.startswith("-Wl,")]
    assert bool(linked) == (sys.platform == "linux" and "PYODIDE" not in environment)
    if "PYODIDE" in environment:
        assert "-ffunction-sections" not in said["flags"]
    if sys.platform != "win32":
        assert "-ffp-contract=off" in said["flags"]  # the same model to the bit everywhere
