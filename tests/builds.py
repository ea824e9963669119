"""Copies of the source tree, virtual environments, and commands whose output tests read."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A wheel is also tested where only the tests are.
HAS_SOURCES = (ROOT / "setup.py").exists()
# Not part of a source tree, or made from it.
ARTIFACTS = [".*", "build", "dist", "out", "__pycache__", "*.egg-info", "*.so", "*.pyd"]


def run(*command, **kwargs):
    """Run a command; return its standard output, or raise an error with all it printed."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **kwargs
    )
    if done.returncode:
        raise AssertionError(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def python_of(venv):
    """Return the interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def new_venv(python, venv):
    """Make a virtual environment and return its interpreter."""
    run(python, "-m", "venv", venv)
    return python_of(venv)


def pip_install(python, *arguments, **kwargs):
    """Install into an environment, without the seconds that byte-compiling costs."""
    run(python, "-m", "pip", "install", "-q", "--no-compile", *arguments, **kwargs)


def copy_sources(folder):
    """Copy the source tree without what is made from it, and return the folder."""
    return shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*ARTIFACTS))


@functools.cache
def interpreters():
    """CPythons from 3.11 on that share the stable ABI: this one, pyenv's, those on PATH.

    One a version; no pre-releases, for which NumPy may have no wheels yet.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [sys.executable, *sorted(pyenv.glob("*/bin/python"))]
    candidates += [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    ask = (
        "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], "
        "sys.version_info.releaselevel, sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    )
    found = {}
    for python in filter(None, candidates):
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            name, major, minor, *level = done.stdout.split()
            version = int(major), int(minor)
            if name == "cpython" and version >= (3, 11) and level == ["final", "0"]:
                found.setdefault(version, python)
    return {"{}.{}".format(*version): python for version, python in sorted(found.items())}
