"""Rehearse a release: build it, install it from an index of its own, test it, print a checklist.

    python packaging/rehearse.py build/rehearsal [arguments for pytest]

Builds the last commit twice, with its time, and compares the files. Each CPython from 3.11 on that
is found gets an environment with the newest dependencies, and the oldest of them one with those of
tests/oldest-constraints.txt; the package comes from a static index of the files that were built.
The tests of the sdist run there, away from the sources: some 20 minutes of a processor for each
environment; less with arguments as tests/test_prank.py.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from builds import interpreters, new_venv, pip_install, run  # noqa: E402

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
# Where else the version stands, as a pattern around it.
STATED = {
    "src/rankcore/pkgconfig/rankcore.pc": r"^Version: {}$",
    "CITATION.cff": r"^version: {}$",
    "docs/citing.md": r"version\s*= \{{{}\}}",
    "packaging/conda-forge/recipe.yaml": r'^  version: "{}"$',
}
# Modules of extras that are not installed have none; the example of onnx_file.py needs skl2onnx.
DOCTESTS = ["--doctest-modules", "--doctest-ignore-import-errors"]
DOCTESTS += ["--ignore-glob=/*/exporters/onnx_file.py", "--pyargs", "rankcore"]
BY_HAND = [
    "the workflows `tests` and `wheels` pass by hand on this commit",
    "the recipe has the SHA-256 of the sdist above",
    "the tag is pushed: `wheels` attests and publishes once the environment `pypi` is approved",
    "`pip install rankcore` works in a new environment, and `gh attestation verify` on its wheel",
    "the site shows the version; the version in pyproject.toml is raised to the next one",
]


class Checklist:
    """Results as they come, printed again at the end."""

    def __init__(self) -> None:
        self.results: list[tuple[bool, str]] = []

    def add(self, good: bool, what: str) -> None:
        """Note and print a result."""
        self.results.append((good, what))
        print(f"[{'x' if good else ' '}] {what}", flush=True)

    def close(self) -> int:
        """Print everything; 1 if something failed."""
        print(f"\nrankcore {VERSION}, rehearsed:")
        for good, what in self.results:
            print(f"[{'x' if good else ' '}] {what}")
        for what in BY_HAND:
            print(f"[ ] by hand: {what}")
        return int(not all(good for good, _ in self.results))


def git(*arguments: str) -> str:
    """Output of git, without the line break."""
    return run("git", "-C", ROOT, *arguments).strip()


def check_texts(checklist: Checklist) -> None:
    """Check versions, the changelog and the state of the repository."""
    for name, pattern in STATED.items():
        found = re.search(
            pattern.format(re.escape(VERSION)), (ROOT / name).read_text(), re.MULTILINE
        )
        checklist.add(bool(found), f"{name} has the version")
    changelog = (ROOT / "CHANGELOG.md").read_text()
    dated = rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$"
    checklist.add(bool(re.search(dated, changelog, re.MULTILINE)), "CHANGELOG.md has the date")
    checklist.add(not git("status", "--porcelain"), "everything is committed")
    checklist.add(not git("tag", "--list", f"v{VERSION}"), f"there is no tag v{VERSION} yet")


def build(out: Path, checklist: Checklist) -> dict[str, str]:
    """Build twice, in two folders; the hashes of the files of the first build by name."""
    env = os.environ | {
        "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"),
        "RANKCORE_WERROR": "1",
    }
    tools = new_venv(sys.executable, out / "tools")
    pip_install(tools, "build==1.6.1")
    built = []
    # What is committed meanwhile comes into neither.
    commit = out / "commit"
    run("git", "clone", "-q", "--depth", "1", ROOT.as_uri(), commit)
    for name in ["dist", "again"]:
        tree = out / f"tree of {name}"
        run("git", "clone", "-q", commit, tree)
        run(tools, "-m", "build", "--outdir", out / name, tree, env=env)
        shutil.rmtree(tree)
        files = sorted((out / name).iterdir())
        built.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files})
    for name, digest in built[0].items():
        size = (out / "dist" / name).stat().st_size / 1e6
        checklist.add(
            built[1].get(name) == digest, f"{name} is the same twice: {size:.1f} MB, {digest}"
        )
    return built[0]


def make_index(out: Path, hashes: dict[str, str]) -> str:
    """Write a static index of the files that were built, as PEP 503 has it, and return its URL."""
    folder = out / "index" / "rankcore"
    folder.mkdir(parents=True)
    links = []
    for name, digest in hashes.items():
        shutil.copy2(out / "dist" / name, folder)
        links.append(f'<a href="{name}#sha256={digest}">{name}</a>')
    (folder / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    return folder.parent.as_uri()


def unpack_tests(out: Path) -> Path:
    """Unpack tests and settings of the sdist, without the sources, which pytest could import."""
    (sdist,) = (out / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(out / "sdist", filter="data")
    clean = out / "clean"
    clean.mkdir()
    (tree,) = (out / "sdist").iterdir()
    for name in ["tests", "pyproject.toml"]:
        (tree / name).rename(clean / name)
    shutil.rmtree(out / "sdist")
    return clean


def environments() -> list[tuple[str, str, list[str]]]:
    """Name, interpreter and constraints of each environment."""
    found = interpreters()
    newest = [(f"CPython {version}, newest", python, []) for version, python in found.items()]
    # The first release of scikit-learn that is supported has wheels for these.
    old = [version for version in found if version in ("3.11", "3.12")][:1]
    constraints = ["-c", str(ROOT / "tests/oldest-constraints.txt")]
    # The oldest first: they fail most often.
    return [(f"CPython {one}, oldest", found[one], constraints) for one in old] + newest


def rehearse(
    name: str, python: str, constraints: list[str], index: str, tests: list[str], out: Path
):
    """Install and test in a new environment; yields each result."""
    folder = out / re.sub(r"\W+", "-", name)
    interpreter = new_venv(python, folder)
    # Sources in PYTHONPATH would be imported, and installed for pip.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RANKCORE"))}
    env |= {"HYPOTHESIS_PROFILE": "quick", "PATH": f"{folder / 'bin'}:{env['PATH']}"}
    env |= {"OPENBLAS_NUM_THREADS": "1"}  # pytest has a worker for each processor
    pip_install(interpreter, "--no-deps", "--index-url", index, f"rankcore=={VERSION}", env=env)
    extras = "[test,dask,plot]" if constraints else "[test]"
    pip_install(interpreter, *constraints, f"rankcore{extras}=={VERSION}", env=env)
    clean = out / "clean"
    where = "import rankcore, sys; sys.exit(not rankcore.__file__.startswith(sys.prefix))"
    for what, command in [
        ("the installed package is imported", ["-c", where]),
        ("doctests pass", ["-m", "pytest", "-q", *DOCTESTS]),
        ("the tests pass", ["-m", "pytest", "-q", "-n", "auto", "-m", "not slow", *tests]),
    ]:
        done = subprocess.run(
            [interpreter, *command], cwd=clean, env=env, capture_output=True, text=True, check=False
        )
        with (out / f"{folder.name}.log").open("a") as log:
            log.write(done.stdout + done.stderr)
        last = (done.stdout.splitlines() or [""])[-1].strip("= ")
        yield done.returncode == 0, f"{name}: {what}{f' ({last})' if 'pytest' in command else ''}"
    shutil.rmtree(folder)


def main() -> int:
    """Rehearse all."""
    folder, *tests = sys.argv[1:]
    out = Path(folder).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    checklist = Checklist()
    check_texts(checklist)
    index = make_index(out, build(out, checklist))
    unpack_tests(out)
    for name, python, constraints in environments():
        try:
            for good, what in rehearse(name, python, constraints, index, tests, out):
                checklist.add(good, what)
        except AssertionError as error:  # of a command that failed
            checklist.add(False, f"{name}: {str(error).strip().splitlines()[-1]}")
    return checklist.close()


if __name__ == "__main__":
    sys.exit(main())
