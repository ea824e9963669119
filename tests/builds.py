"""Copies of the source tree, virtual environments, and commands whose output tests read."""

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
    """Standard output of a command; what it printed is in the error if it fails."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **kwargs
    )
    if done.returncode:
        raise AssertionError(f"{command} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def python_of(venv):
    """The interpreter of a virtual environment."""
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
