"""Distributions: the sdist, the wheel, and how they install."""

import importlib
import json
import os
import re
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest

import rankcore
from builds import (
    HAS_SOURCES,
    ROOT,
    copy_sources,
    interpreters,
    new_venv,
    pip_install,
    run,
)
from rankcore import _ext

needs_sources = pytest.mark.skipif(not HAS_SOURCES, reason="no source tree beside the tests")

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
KERNELS = sorted({kernel.name for kernel in iter_modules(_ext.__path__)} - {"_cyutility"})
BINARY = (".so", ".pyd")
MEGABYTE = 10**6

# Run by several interpreters, which must print the same: numbers as hexadecimal floats.
SMOKE = """
import json, random
import numpy as np, scipy.sparse as sp
import rankcore as rc

draw = random.Random(0)
dense = np.array([[draw.random() * (draw.random() < 0.3) for _ in range(40)] for _ in range(500)])
y = [draw.randrange(1, 6) for _ in range(500)]
out = {}
for average in [False, True]:
    for X in [dense, dense.astype(np.float32), sp.csr_array(dense)]:
        model = rc.PRank.published(max_iter=2, average=average).fit(X, y)
        out[f"{average} {type(X).__name__} {X.dtype}"] = [
            [float(v).hex() for v in model.coef_],
            [float(v).hex() for v in model.thresholds_],
            model.predict(X).tolist(),
        ]
print(json.dumps(out))
"""


@pytest.fixture(scope="session")
def project():
    """Contents of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """Copy the sources, so that building does not change the tree that is tested."""
    if not HAS_SOURCES:
        pytest.skip("no source tree beside the tests")
    return copy_sources(tmp_path_factory.mktemp("tree") / "rankcore")


@pytest.fixture(scope="session")
def distributions(request, tmp_path_factory):
    """Build the sdist, and from it the wheel, in isolation; return their folder.

    RANKCORE_DIST names one that exists; otherwise both are built here.
    """
    if "RANKCORE_DIST" in os.environ:
        return Path(os.environ["RANKCORE_DIST"])
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, request.getfixturevalue("tree"))
    return out


@pytest.fixture(scope="session")
def sdist(distributions):
    """Return the path of the source distribution."""
    (path,) = distributions.glob("*.tar.gz")
    return path


@pytest.fixture(scope="session")
def wheel(distributions):
    """Return the path of the wheel."""
    (path,) = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def editable(tree, tmp_path_factory):
    """Install ``tree`` editable, compiled without optimisation; return the interpreter.

    With NumPy alone: the kernels need nothing else, and a cimport needs none.
    """
    python = new_venv(sys.executable, tmp_path_factory.mktemp("editable") / "venv")
    pip_install(python, "--no-deps", "-e", tree, env={**os.environ, "CFLAGS": "-O0"})
    pip_install(python, "numpy")
    return python


@pytest.mark.slow
def test_sdist_has_sources_and_nothing_generated(sdist):
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive}
        assert not [member.name for member in archive if member.issym()]
    sources = {name for name in names if name.endswith(".pyx") and name.startswith("src/")}
    assert sources == {f"src/_ext/{kernel}.pyx" for kernel in KERNELS}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "setup.py"} <= names
    assert "tests/test_distribution.py" in names
    c_files = [name for name in names if name.startswith(("src/", "build/")) and ".c" in name[-4:]]
    assert c_files == ["src/rankcore/include/librankcore.c"]  # written by hand
    assert not [name for name in names if name.endswith((*BINARY, ".pyc"))]


@needs_sources
def test_build_needs_only_setuptools_and_cython(project):
    # The wheel fixture builds in isolation, so this list is all that the build has.
    requires = project["build-system"]["requires"]
    assert {re.match(r"\w+", name).group() for name in requires} == {"setuptools", "Cython"}


@pytest.mark.slow
def test_wheel_serves_every_later_cpython(wheel):
    if FREE_THREADED:
        version = "cp{}{}".format(*sys.version_info[:2])
        assert f"-{version}-{version}t-" in wheel.name
    else:
        assert "-cp311-abi3-" in wheel.name


@pytest.mark.slow
def test_wheel_has_headers_declarations_and_types(wheel):
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    assert {
        "rankcore/py.typed",
        "rankcore/core.pxd",
        "rankcore/include/rankcore.h",
        "rankcore/include/rankcore_capi.h",
        *(
            f"rankcore/include/rankcore_{part}.h"
            for part in ("model", "open", "forms", "calibration", "tensors", "svmlight")
        ),
        *(f"rankcore/include/rankcore_{part}.h" for part in ("interleave", "random")),
        "rankcore/include/librankcore.h",
        "rankcore/include/librankcore.c",
        "rankcore/cmake/rankcore-config.cmake",
        "rankcore/cmake/rankcore-config-version.cmake",
        "rankcore/cmake/CMakeLists.txt",
        "rankcore/pkgconfig/rankcore.pc",
        "rankcore/plotting/rankcore.mplstyle",
        "rankcore/_ext/__init__.pyi",
        "rankcore/_ext/rows.pyi",
    } <= set(sizes)
    compiled = {Path(name).name.partition(".")[0] for name in sizes if name.endswith(BINARY)}
    assert compiled == {*KERNELS, "_cyutility"}
    sources = {name for name in sizes if name.endswith((".c", ".pyx"))}
    assert sources == {"rankcore/include/librankcore.c"}
    private = [name for name in sizes if name.startswith("rankcore/_ext/_")]
    assert not [name for name in private if name.endswith((".h", ".pxd"))]
    assert all(name.startswith(("rankcore/", "rankcore-")) for name in sizes)
    assert wheel.stat().st_size < 3 * MEGABYTE
    # Of 7.3 MB, 4.3 are binaries and 3.0 Python and headers, much of it docstrings.
    assert sum(sizes.values()) < 7.4 * MEGABYTE


@pytest.mark.slow
@pytest.mark.skipif(FREE_THREADED, reason="free-threaded wheels are not abi3")
def test_wheel_keeps_to_the_stable_abi(wheel):
    if find_spec("abi3audit") is None:
        pytest.skip("abi3audit is not installed")
    run(sys.executable, "-m", "abi3audit", "--strict", wheel)


@pytest.mark.slow
def test_every_module_declares_free_threading(tree, tmp_path):
    code = f"""
import setuptools
said = {{}}
setuptools.setup = said.update
exec(open("setup.py").read())
options = said["options"]["build_ext"]
translate(
    [module for module in said["ext_modules"] if module.sources[0].endswith(".pyx")],
    include_path=["src"],
    compiler_directives=options["cython_directives"],
    build_dir={str(tmp_path)!r},
    quiet=True,
)
"""
    run(sys.executable, "-c", code, cwd=tree)
    generated = list(tmp_path.rglob("*.c"))
    assert {path.stem for path in generated} == {*KERNELS}
    # The slot's last definition is the one that follows the directive.
    for path in generated:
        code = path.read_text()
        assert "{Py_mod_gil, __Pyx_FREETHREADING_COMPATIBLE}" in code
        defined = re.findall(r"#define __Pyx_FREETHREADING_COMPATIBLE (\w+)", code)
        assert defined[-1] == "Py_MOD_GIL_NOT_USED", path


@pytest.mark.skipif(not FREE_THREADED, reason="this interpreter has a GIL")
def test_kernels_do_not_enable_the_gil():
    modules = ", ".join(f"rankcore._ext.{kernel}" for kernel in KERNELS)
    code = f"import sys, {modules}; print(sys._is_gil_enabled())"
    assert run(sys.executable, "-c", code).strip() == "False"


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_export_no_c_functions(kernel):
    # Third parties use the headers; what a kernel exports to others it could never change.
    assert not getattr(importlib.import_module(f"rankcore._ext.{kernel}"), "__pyx_capi__", {})


def test_public_names_resolve():
    extras = {"dask"} if find_spec("dask") is None else set()
    names = set(rankcore.__all__) - extras
    assert [name for name in names if not hasattr(rankcore, name)] == []
    for name in extras:
        with pytest.raises(ModuleNotFoundError, match=rf"pip install 'rankcore\[{name}\]'"):
            getattr(rankcore, name)
    assert set(rankcore.__all__) < set(dir(rankcore))


def test_misspelled_names_are_corrected():
    for name, meant in [("Prank", "PRank"), ("rankboost", "RankBoost"), ("RankSVm", "RankSVM")]:
        with pytest.raises(AttributeError, match=f"{name}': did you mean {meant}"):
            getattr(rankcore, name)
    with pytest.raises(AttributeError, match="attribute 'LambdaMART'$"):
        _ = rankcore.LambdaMART


@needs_sources
def test_docs_list_the_supported_versions_of_the_package(project):
    page = (ROOT / "docs/project/support.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w-]+) \| ([^|]+) \|", page, re.MULTILINE))
    pythons = re.findall(r"\d\.\d+", rows["CPython"].partition(";")[0])
    classifiers = "\n".join(project["project"]["classifiers"])
    assert pythons == re.findall(r":: Python :: (\d\.\d+)$", classifiers, re.MULTILINE)
    assert project["project"]["requires-python"] == f">={pythons[0]}"
    supported = {one.lower() + rows[one].split()[0] for one in ["NumPy", "SciPy", "scikit-learn"]}
    assert supported == {one.replace(">=", "") for one in project["project"]["dependencies"]}


@needs_sources
def test_version_equals_that_of_the_sources(project):
    assert rankcore.__version__ == project["project"]["version"]


@pytest.fixture(scope="session")
def expected():
    """Output of the smoke script here."""
    return json.loads(run(sys.executable, "-c", SMOKE))


@pytest.mark.slow
@pytest.mark.skipif(FREE_THREADED, reason="free-threaded wheels serve one version")
@pytest.mark.parametrize("version", interpreters() if HAS_SOURCES else [])
def test_one_wheel_runs_on_every_cpython(version, wheel, expected, tmp_path):
    python = new_venv(interpreters()[version], tmp_path / "venv")
    pip_install(python, "--only-binary=:all:", f"{wheel}[cli]")
    assert json.loads(run(python, "-c", SMOKE, cwd=tmp_path)) == expected
    usage = run(python.parent / "rankcore", "--help", cwd=tmp_path)
    assert "demo" in usage


@pytest.mark.slow
def test_editable_install_imports_the_sources(editable, tree, tmp_path):
    python = editable
    modules = ", ".join(f"rankcore._ext.{kernel}" for kernel in KERNELS)
    where = run(python, "-c", f"import {modules}; print(rankcore.__file__)", cwd=tmp_path)
    assert Path(where.strip()) == tree / "src/rankcore/__init__.py"
    c_files = [path.name for path in (tree / "src").rglob("*.c")]
    assert c_files == ["librankcore.c"]  # written by hand

    pip_install(python, "Cython>=3.3,<3.4")
    client = tmp_path / "client.pyx"
    client.write_text("from rankcore.core cimport rc_dot, rc_row_f64\n")
    run(python, "-m", "cython", "-3", client, cwd=tmp_path)


PLATFORMS = {
    "linux": ("x86_64,aarch64", ["{}linux_x86_64", "{}linux_aarch64"]),
    "macos": ("x86_64,arm64", ["macosx_x86_64", "macosx_arm64"]),
    "windows": ("AMD64,ARM64", ["win_amd64", "win_arm64"]),
    "pyodide": ("wasm32", ["pyodide_wasm32"]),
}


@needs_sources
@pytest.mark.parametrize("platform", PLATFORMS)
def test_release_builds_wheels_for_all_platforms(platform):
    if find_spec("cibuildwheel") is None:
        pytest.skip("cibuildwheel is not installed")
    archs, names = PLATFORMS[platform]
    command = ["-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform]
    listed = run(sys.executable, *command, "--archs", archs, ROOT).split()
    libcs = ["many", "musl"] if platform == "linux" else [""]
    expected = {
        f"{tag}-{name.format(libc)}"
        for tag in (["cp314"] if platform == "pyodide" else ["cp311", "cp314t", "cp315t"])
        for name in names
        for libc in libcs
    }
    assert sorted(listed) == sorted(expected)
