"""The compiled kernels. Everything declarative is in pyproject.toml.

Environment: RANKCORE_CHECKED=1 turns the bounds checks of Cython back on;
RANKCORE_WERROR=1 makes the C compiler's warnings errors (what CI builds with).
"""

import os
import sys
import sysconfig
from pathlib import Path
from threading import Lock

from Cython.Build import Dependencies
from Cython.Compiler import Options
from setuptools import Extension, setup

CHECKED = os.environ.get("RANKCORE_CHECKED") == "1"
WERROR = os.environ.get("RANKCORE_WERROR") == "1"
# The limited API has no free-threaded variant yet: those interpreters get wheels of their own.
ABI3 = not sysconfig.get_config_var("Py_GIL_DISABLED")

if sys.platform == "win32":
    # MSVC contracts a*b + c only when asked to (/fp:contract), so it needs no flag for that.
    cflags = ["/O2", "/W3"] + ["/WX"] * WERROR
    small, ldflags = [], []
else:
    # A fused multiply-add rounds once instead of twice: with contraction off a model is
    # the same to the bit on every architecture.
    # Checked kernels are compiled in half the time, and then run for a minute.
    level = "-O1" if CHECKED else "-O3"
    cflags = [level, "-g0", "-std=c99", "-ffp-contract=off", "-Wall", "-Wextra"]
    cflags += ["-Werror"] * WERROR
    small, ldflags = ["-Os"], []
    if sys.platform == "linux":
        # What nothing refers to, the names of what is not exported, tables for unwinding C++ and
        # pages of padding between sections stay out of the binaries.
        cflags += ["-ffunction-sections", "-fdata-sections", "-fno-asynchronous-unwind-tables"]
        ldflags = ["-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,-z,noseparate-code"]

# build_ext calls Cython from as many threads as there are processors, but Cython is for one at a
# time: now and then a kernel came out with what only another was to have. C compilers run at once.
translate, alone = Dependencies.cythonize, Lock()


def cythonize(*args, **kwargs):
    """Translate to C, one module after the other."""
    with alone:
        return translate(*args, **kwargs)


Dependencies.cythonize = cythonize
# Kernels are private: their docstrings are for who reads the source.
Options.docstrings = False

shared = "rankcore._ext._cyutility"
sources = {f"rankcore._ext.{p.stem}": p.as_posix() for p in sorted(Path("src/_ext").glob("*.pyx"))}
sources[shared] = "build/_cyutility.c"  # written by Cython: what the kernels have in common
# Run once, or between passes: built for size.
cold = {shared, "rankcore._ext.capi", "rankcore._ext.held_signals"}
private = sorted(str(p) for p in Path("src/rankcore").rglob("*") if p.suffix in {".pxd", ".h"})
directives = {
    "language_level": 3,
    "boundscheck": CHECKED,
    "wraparound": False,
    "initializedcheck": CHECKED,
    "cdivision": True,
    "autotestdict": False,
    "auto_pickle": False,
    "freethreading_compatible": True,
}
build_ext = {"cython_include_dirs": "src", "cython_c_in_temp": True, "parallel": os.cpu_count()}
build_ext |= {"cython_directives": directives, "shared_utility_qualified_name": shared}

setup(
    ext_modules=[
        Extension(
            name,
            sources=[source],
            include_dirs=["src/rankcore/include", "src/rankcore/_ext"],
            depends=private,
            define_macros=[("Py_LIMITED_API", "0x030B0000")] * ABI3,
            extra_compile_args=cflags + small * (name in cold),
            extra_link_args=ldflags,
            py_limited_api=ABI3,
        )
        for name, source in sources.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"} if ABI3 else {}, "build_ext": build_ext},
)
