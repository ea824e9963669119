"""The compiled kernels. Everything declarative is in pyproject.toml.

Environment: RANKCORE_CHECKED=1 turns the bounds checks of Cython back on;
RANKCORE_WERROR=1 makes the C compiler's warnings errors (what CI builds with);
RANKCORE_ABI3T=1 builds for the stable ABI of free-threaded CPython 3.15 and later;
SOURCE_DATE_EPOCH makes sdist and wheel the same bytes in each build.
"""

import gzip
import os
import re
import shutil
import sys
import sysconfig
import tarfile
from pathlib import Path
from threading import Lock

from Cython.Build import Dependencies
from Cython.Compiler import Options
from Cython.Compiler.Main import Context
from Cython.Compiler.Options import CompilationOptions, default_options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import PlatformError
from setuptools.modified import newer

CHECKED = os.environ.get("RANKCORE_CHECKED") == "1"
WERROR = os.environ.get("RANKCORE_WERROR") == "1"
EPOCH = os.environ.get("SOURCE_DATE_EPOCH")
# Pyodide is built by an interpreter of the machine that builds: sys.platform does not name it.
PLATFORM = "emscripten" if "PYODIDE" in os.environ else sys.platform
if PLATFORM == "emscripten":
    stable_abi = None  # its ABI changes with each release of Pyodide
elif not sysconfig.get_config_var("Py_GIL_DISABLED"):
    stable_abi = "cp311", ("Py_LIMITED_API", "0x030B0000")
elif os.environ.get("RANKCORE_ABI3T") == "1" and sys.version_info >= (3, 15):
    # PEP 803. Not the default: Cython 3.3 writes modules that read what abi3t hides.
    stable_abi = "cp315", ("Py_TARGET_ABI3T", "0x030F0000")
else:
    stable_abi = None
if EPOCH is not None:
    os.umask(0o022)  # modes of files are in a wheel

if PLATFORM == "win32":
    # MSVC contracts a*b + c only when asked to (/fp:contract), so it needs no flag for that.
    cflags = ["/O2", "/W3"] + ["/WX"] * WERROR
    small, ldflags = [], []
else:
    # A fused multiply-add rounds once instead of twice: with contraction off a model is
    # the same to the bit on every architecture.
    # Checked kernels are compiled in half the time, and then run for a minute.
    level = "-O1" if CHECKED else "-O3"
    cflags = [level, "-g0", "-std=c99", "-ffp-contract=off", "-Wall", "-Wextra"]
    small, ldflags = ["-Os"], []
    if PLATFORM == "linux":
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

HEADER_FOLDERS = ["src/rankcore/include", "src/rankcore/_ext"]
INCLUDE = re.compile(r'^\s*(?:#\s*include|cdef extern from)\s*"([\w.]+)"', re.MULTILINE)


def own_pxd(kernel):
    """Return the .pxd of a kernel, if it has one, in a list: Cython looks only beside the .pyx."""
    path = Path("src/rankcore/_ext", Path(kernel).with_suffix(".pxd").name)
    return [path.as_posix()] if path.exists() else []


def headers_of(kernel, tree):
    """Return the headers that a kernel includes: itself, through a .pxd or through a header.

    Cython finds out by itself which .pxd files a kernel reads, but not what the C compiler reads.
    """
    files = set(tree.all_dependencies(kernel)).union(*map(tree.all_dependencies, own_pxd(kernel)))
    unread = {Path(file) for file in files if not Path(file).is_absolute()}
    headers = set()
    while unread:
        names = INCLUDE.findall(unread.pop().read_text(encoding="utf-8"))
        paths = {Path(folder, name) for name in names for folder in HEADER_FOLDERS}
        new = {path for path in paths - headers if path.exists()}
        headers |= new
        unread |= new
    return sorted(path.as_posix() for path in headers)


class Kernels(build_ext):
    """Build each kernel again when a file that it reads has changed."""

    # distutils looks options up by it when it makes a command anew, as for an editable install.
    command_name = "build_ext"

    def finalize_options(self):
        """Build for an editable install where ``build_ext --inplace`` continues."""
        if self.editable_mode:
            usual = self.distribution.get_command_class("build")(self.distribution)
            usual.ensure_finalized()
            self.build_lib, self.build_temp = usual.build_lib, usual.build_temp
        super().finalize_options()

    def build_extensions(self):
        """Check for a compiler before minutes of translation; then build what has changed."""
        compiler = getattr(self.compiler, "compiler_so", [])  # MSVC is looked for by setuptools
        if compiler and shutil.which(compiler[0]) is None:
            raise PlatformError(
                f"rankcore requires a C compiler to be built from source; found no {compiler[0]}. "
                "Install GCC or Clang (Debian: build-essential, Fedora: gcc, macOS: xcode-select "
                "--install) or set CC to one, or install a wheel: "
                "pip install --only-binary rankcore rankcore"
            )
        if WERROR and PLATFORM != "win32":
            # Not a flag of the extensions: Cython writes those into the C file, and a line more in
            # front makes other line numbers, and so other binaries than those of a release.
            compiler.append("-Werror")
        paths = CompilationOptions(default_options, include_path=self.cython_include_dirs)
        tree = Dependencies.create_dependency_tree(Context.from_options(paths), quiet=True)
        for kernel in self.extensions:
            if kernel.sources[0].endswith(".pyx"):
                source = kernel.sources[0]
                kernel.depends = headers_of(source, tree) + own_pxd(source)
                translated = Path(self.build_temp, source).with_suffix(".c")
                for pxd in own_pxd(source):
                    if translated.exists() and newer(pxd, translated):
                        translated.unlink()
        super().build_extensions()


class SourceArchive(sdist):
    """With SOURCE_DATE_EPOCH, one archive whenever and by whomever it is made."""

    command_name = "sdist"

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **owner):
        """Write the archive and return its name."""
        if EPOCH is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, **owner)

        def anonymous(member):
            member.mtime, member.uid, member.gid = int(EPOCH), 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        archive = Path(f"{base_name}.tar.gz")
        with (
            archive.open("wb") as file,
            gzip.GzipFile("", "wb", mtime=int(EPOCH), fileobj=file) as packed,
            tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
        ):
            tar.add(base_dir, filter=anonymous)  # in the order of names
        return str(archive)


# Kernels are private: their docstrings are for who reads the source.
Options.docstrings = False

shared = "rankcore._ext._cyutility"
sources = {f"rankcore._ext.{p.stem}": p.as_posix() for p in sorted(Path("src/_ext").glob("*.pyx"))}
sources[shared] = "build/_cyutility.c"  # written by Cython: what the kernels have in common
# Run once, or between passes: built for size.
cold = {"capi", "interleave", "judge_noise", "letor_writing", "online_model", "streamed_bins"}
cold = {shared, *(f"rankcore._ext.{name}" for name in cold)}
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
building = {"cython_include_dirs": "src", "cython_c_in_temp": True, "parallel": os.cpu_count()}
building |= {"cython_directives": directives, "shared_utility_qualified_name": shared}

setup(
    ext_modules=[
        Extension(
            name,
            sources=[source],
            include_dirs=HEADER_FOLDERS,
            define_macros=[stable_abi[1]] if stable_abi else [],
            extra_compile_args=cflags + small * (name in cold),
            extra_link_args=ldflags,
            py_limited_api=bool(stable_abi),
        )
        for name, source in sources.items()
    ],
    options={
        "bdist_wheel": {"py_limited_api": stable_abi[0]} if stable_abi else {},
        "build_ext": building,
    },
    cmdclass={"build_ext": Kernels, "sdist": SourceArchive},
)
