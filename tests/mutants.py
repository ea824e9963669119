"""Mutants: changes of one token in the sources, each of which a test should notice.

    python tests/mutants.py collect           # which tests execute which line, in build/mutants
    python tests/mutants.py run               # 300 mutants of Python, 60 of kernels, by a seed
    python tests/mutants.py run --only FILE

Sources are changed in a copy. Tests that execute the line run, of a kernel those that execute a
call of it, the fastest of each file first; results go to build/mutants/results.jsonl, and stay. One
that fails must have passed without a mutant too.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import py_compile
import random
import re
import resource
import runpy
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from pathlib import Path

from mutations import code_lines, in_functions, kernel_mutant, python_mutant

ROOT = Path(__file__).parents[1]
HOME = ROOT / "build" / "mutants"
TREE = HOME / "tree"
PACKAGE = TREE / "src" / "rankcore"
COLLECTED = HOME / "collected"
LOG = HOME / "log"  # of the last child
RESULTS = HOME / "results.jsonl"
FAILED = 1e9  # seconds of a test that fails without a mutant
UNBUILT = "does not compile"
ROOMS = ["_core", "io", "datasets", "preference", "dask", "cli"]
# Tests of a mutant, their files, and seconds that they took under coverage: at first, and if it
# survives these.
LIMITS = [(30, 4, 5.0), (150, 30, 30.0), (1000, 200, 150.0)]
SHARED = [
    "distributed", "hypothesis.extra.numpy", "pandas", "pyarrow.parquet", "pytest", "pytest_cov",
    "scipy.optimize", "scipy.sparse.linalg", "sklearn.linear_model", "sklearn.model_selection",
    "sklearn.pipeline",
]  # fmt: skip
PYTEST = ["-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "-m", "not slow", "--no-header"]


def build_tree():
    """Copy the sources and build their kernels, unchanged ones not again."""
    TREE.mkdir(parents=True, exist_ok=True)
    lock = os.open(TREE, os.O_RDONLY)  # open until this process and its children end
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # and tests would run on the other's mutants
        sys.exit(f"another process uses {TREE}")
    names = ["setup.py", "pyproject.toml", "README.md", "LICENSE"]
    wanted = {ROOT / name for name in names}
    wanted |= {file for file in ROOT.glob("src/**/*") if file.is_file() and not ignored(file)}
    for file in TREE.glob("src/**/*"):
        if file.is_file() and file.suffix != ".so" and ROOT / file.relative_to(TREE) not in wanted:
            file.unlink()
    for file in wanted:
        copy = TREE / file.relative_to(ROOT)
        if not copy.exists() or copy.read_bytes() != file.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
    (TREE / "build").mkdir(exist_ok=True)
    if not compile_kernels():
        sys.exit("the kernels do not compile")
    # Of sources, not of times: a mutant is as large as the original, and a moment younger.
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(PACKAGE, quiet=1, invalidation_mode=mode)


def ignored(file):
    return file.suffix in {".so", ".pyc"} or ".egg-info" in str(file)


def compile_kernels(affected=None):
    """Build the kernels, or some of them, as fast as can be."""
    return os.waitstatus_to_exitcode(os.waitpid(forked(lambda: build(affected), LOG), 0)[1]) == 0


def build(affected):
    import setuptools

    def some(ext_modules, **others):
        if affected is not None:
            ext_modules = [one for one in ext_modules if one.name.rpartition(".")[2] in affected]
            for one in ext_modules:
                one.extra_compile_args.append("-O1")
        setup(ext_modules=ext_modules, **others)

    setup, setuptools.setup = setuptools.setup, some
    os.chdir(TREE)
    sys.argv = ["setup.py", "build_ext", "--inplace", *["--force"] * (affected is not None)]
    runpy.run_path("setup.py")
    return 0


def including(changed):
    """Names of the kernels that a file is, or that include it at any depth."""
    files = [*TREE.glob("src/_ext/*.pyx"), *PACKAGE.glob("**/*.pxd"), *PACKAGE.glob("**/*.h")]
    found, before = {changed.name, changed.stem}, set()
    while found != before:
        before = set(found)
        for file in files:
            text = file.read_text()
            names = set(re.findall(r'(?:include|from) ["<]([\w.]+)[">]', text))
            names |= set(re.findall(r"from rankcore(?:\._ext)?\.(\w+) cimport", text))
            if names & found:
                found |= {file.name, file.stem}
    return {file.stem for file in files if file.suffix == ".pyx" and file.name in found}


class Durations:
    """A plugin: how long each test takes."""

    def __init__(self, path):
        self.path, self.seconds = path, Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration if report.passed else FAILED

    def pytest_sessionfinish(self):
        self.path.write_text(json.dumps(self.seconds))


def collect(files, jobs):
    """Run the tests, each file in a process of its own; what has run already does not run again."""
    sources = sorted((ROOT / "src" / "rankcore").glob("**/*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    known = COLLECTED / "sources"
    if not known.exists() or known.read_text() != digest:  # lines have moved
        shutil.rmtree(COLLECTED, ignore_errors=True)
        COLLECTED.mkdir()
        known.write_text(digest)
    waiting = [
        file for file in files or sorted(ROOT.glob("tests/**/test_*.py"))
        if not collected(file, ".json").exists()
        or collected(file, ".json").stat().st_mtime < file.stat().st_mtime
    ]  # fmt: skip
    running = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                file = waiting.pop(0)
                child = forked(lambda file=file: covered(file), collected(file, ".log"))
                running[child] = file
            child, status = os.wait()
            file = running.pop(child)
            end(child)
            print(file.name, "exits with", os.waitstatus_to_exitcode(status), flush=True)
    finally:
        for child in running:
            end(child)


def collected(file, ending):
    """Where to find what is known of a file of tests."""
    return COLLECTED / (file.relative_to(ROOT / "tests").as_posix().replace("/", "-") + ending)


def covered(file):
    """Run a file of tests. Interrupts would meet the locks of coverage."""
    import pytest

    for ending in (".json", ".coverage"):
        collected(file, ending).unlink(missing_ok=True)
    os.environ["COVERAGE_FILE"] = str(collected(file, ".coverage"))
    options = ["-k", "not interrupt and not signal", "--timeout=300", "--timeout-method=signal"]
    options += [f"--cov={PACKAGE}", f"--cov-config={os.devnull}"]
    options += ["--cov-context=test", "--cov-report="]
    kept = [option for option in PYTEST if option != "-x"]
    return pytest.main([*kept, *options, str(file)], plugins=[Durations(collected(file, ".json"))])


def forked(work, log):
    """Fork a process that runs `work` and exits with its result."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    status = 1
    try:
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def end(child):
    """Kill a child, or what it left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


class Tests:
    """Which tests execute a line."""

    def __init__(self):
        from coverage import CoverageData

        self.seconds, self.lines = {}, {}
        for file in COLLECTED.glob("*.coverage"):
            seconds = file.with_suffix(".json")
            if not seconds.exists():  # still under way
                continue
            self.seconds |= json.loads(seconds.read_text())
            data = CoverageData(str(file))
            data.read()
            for path in data.measured_files():
                self.add(path.rpartition("/rankcore/")[2], data.contexts_by_lineno(path))
        self.sizes = Counter(test.partition("::")[0] for test in self.seconds)
        self.passed = set()

    def add(self, name, contexts_by_line):
        lines = self.lines.setdefault(name, defaultdict(set))
        for line, contexts in contexts_by_line.items():
            lines[line] |= {one.rpartition("|")[0] for one in contexts} - {""}

    def of_line(self, name, line):
        """All that execute something of the file if it runs on import, or in other processes."""
        lines = self.lines.get(name, {})
        inside = in_functions((PACKAGE / name).read_text())
        if line in inside and lines.get(line):
            return lines[line]
        return set().union(*(tests for at, tests in lines.items() if at in inside))

    def of_kernels(self, kernels):
        """Return tests that execute a call of a kernel, or whose files import one."""
        one = "|".join(sorted(kernels))
        pattern = rf"from rankcore\._ext(?:\.(?:{one}) import .*|\s+import .*\b(?:{one})\b.*)"
        found = set()
        for name in self.lines:
            text = (PACKAGE / name).read_text() if (PACKAGE / name).exists() else ""
            imports = re.findall(pattern, text)
            if not imports:
                continue
            words = set(re.findall(r"\w+", " ".join(i.partition("import")[2] for i in imports)))
            called = re.compile(rf"\b(?:{'|'.join(words - {'as'})})[.(]")
            for at, line in enumerate(text.splitlines(), 1):
                if called.search(line):
                    found |= self.lines[name].get(at, set())
        files = [f for f in ROOT.glob("tests/**/test_*.py") if re.search(pattern, f.read_text())]
        names = tuple(f"{f.relative_to(ROOT)}::" for f in files)
        return found | {test for test in self.seconds if test.startswith(names)}

    def chosen(self, tests, most_tests, most_files, most_seconds):
        """Order tests: the fastest of each file in turn, files with most of their tests first."""
        files = defaultdict(list)
        for test in tests:
            if self.seconds.get(test, FAILED) < FAILED:
                files[test.partition("::")[0]].append(test)
        share = {file: len(some) / self.sizes[file] for file, some in files.items()}
        ranked = []
        for file in sorted(files, key=lambda file: (-share[file], file))[:most_files]:
            files[file].sort(key=lambda test: (self.seconds[test], test))
            ranked += [(place, -share[file], test) for place, test in enumerate(files[file])]
        found, total = [], 0.0
        for _, _, test in sorted(ranked)[:most_tests]:
            if total + self.seconds[test] <= most_seconds or not found:
                found.append(test)
                total += self.seconds[test]
        cost = Counter()
        for test in found:
            cost[test.partition("::")[0]] += self.seconds[test]
        return sorted(found, key=lambda test: (cost[test.partition("::")[0]], test)), total

    def pass_without(self, chosen):
        """Whether tests pass without a mutant. One that does not is chosen no more.

        Each passes where it was collected; some would not in other company, or under load.
        """
        if self.passed >= set(chosen):
            return True
        outcome, again = self.tried(chosen, sum(self.seconds[test] for test in chosen))
        if outcome == "survived":
            return True
        print(outcome, "without a mutant:", again[-1], flush=True)
        self.seconds[again[-1]] = FAILED
        return False

    def tried(self, chosen, seconds):
        """Run tests. Return the outcome, and those to run again to see it without a mutant.

        Those that pass, even with a mutant, need not show again that they can.
        """
        outcome, passed, failed = tried(chosen, seconds)
        self.passed |= set(passed)
        return outcome, [*passed, *failed] if failed else chosen


def kernel_lines():
    """Lines of code of kernels: no comments, docstrings, declarations."""
    for file in sorted([*TREE.glob("src/_ext/*.pyx"), *PACKAGE.glob("_ext/*.[hp]*")]):
        if file.suffix not in {".pyx", ".pxd", ".h"}:
            continue
        quoted = re.compile(r'"""[\s\S]*?"""|/\*[\s\S]*?\*/')
        text = quoted.sub(lambda match: "\n" * match[0].count("\n"), file.read_text())
        for at, line in enumerate(text.splitlines(), 1):
            if not re.match(
                r"\s*(#|cdef extern|ctypedef|from |raise |static |cdef inline|$)", line
            ):
                yield file, at


def sample(args):
    """Mutants in an order that a seed draws: file, line and text."""
    sources = [path for room in ROOMS for path in sorted(PACKAGE.glob(f"{room}/**/*.py"))]
    lines = [(path, line) for path in sources for line in code_lines(path.read_text())]
    for wanted, found, make in [
        (args.python, lines, python_mutant),
        (args.kernels, list(kernel_lines()), kernel_mutant),
    ]:
        random.Random(args.seed).shuffle(found)
        for path, line in found:
            if args.only and not str(path).endswith(args.only):
                continue
            if not wanted:
                break
            text = make(path, line, random.Random(f"{args.seed} {path.name} {line}"))
            if text is not None:
                wanted -= 1
                yield path, line, text


class Reports:
    """A plugin: tests that ended, and how they failed."""

    def __init__(self, path):
        self.path = path
        path.write_text("")

    def pytest_runtest_logreport(self, report):
        if report.failed or report.when == "teardown":
            with self.path.open("a") as file:
                how = str(report.longrepr) if report.failed else ""
                file.write(json.dumps([report.nodeid, how]) + "\n")


def tried(chosen, seconds):
    """Run tests in a child of this process, which has imported what they share but the package.

    Return the outcome, which tests passed and which failed.
    """
    import pytest

    reports = Reports(TREE / "reports")

    def work():
        limit = int(20 + 5 * seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_DATA, (2**33, 2**33))
        options = [*PYTEST, f"--timeout={limit + 20}", f"--basetemp={TREE / 'tmp'}"]
        return pytest.main([*options, *chosen], plugins=[reports])

    child, latest = forked(work, LOG), time.monotonic() + 200 + 10 * seconds
    try:
        while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < latest:
            time.sleep(0.05)
    finally:
        end(child)
    if done[0] == 0:
        os.waitpid(child, 0)
        return "stalled", [], []  # too little processor time: says nothing
    status = os.waitstatus_to_exitcode(done[1])
    # 1: a test failed; 2 and 4: a test module could not be imported; -9: processor time ended.
    outcomes = {0: "survived", 1: "killed", 2: "killed", 4: "killed", -signal.SIGKILL: "hung"}
    outcome = outcomes.get(status, "crashed" if status < 0 else f"pytest exits with {status}")
    reported = [json.loads(line) for line in reports.path.open()]
    failed = [test for test, how in reported if how][:1]
    if any("Timeout (>" in how for _, how in reported):
        outcome = "hung"
    return outcome, [test for test, _ in reported if test not in failed], failed


def prepare():
    """Import here what every child would."""
    os.chdir(ROOT)
    sys.path.insert(0, str(PACKAGE.parent))
    os.environ |= {
        "PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true",
        "HYPOTHESIS_PROFILE": "quick", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    sys.dont_write_bytecode = True
    for shared in SHARED:
        importlib.import_module(shared)
    # Python remembers folders that were not there, and would import another package.
    found = importlib.util.find_spec("rankcore")
    if not (found and found.origin and Path(found.origin).parent == PACKAGE):
        sys.exit(f"tests would import {found and found.origin} instead of {PACKAGE}")


def run(args):
    tests = Tests()
    known = [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []
    # A survivor is tried again when other tests execute its line.
    done = {
        (one["file"], one["change"]): one["of"] if one["outcome"] == "survived" else None
        for one in known
        if one["outcome"] != "stalled"
    }
    for path, line, text in sample(args):
        original, name = path.read_text(), path.relative_to(TREE / "src").as_posix()
        change = difference(original, text)
        kernel = path.suffix != ".py"
        affected = including(path) if kernel else set()
        if kernel:
            found = tests.of_kernels(affected)
        else:
            found = tests.of_line(path.relative_to(PACKAGE).as_posix(), line)
        if done.get((name, change), -1) in {None, len(found)}:
            continue
        begun = sum(os.times()[:4])  # processor time, of children too
        outcome, passed = None, 0
        while outcome is None:
            with mutated(path, text, affected) as built:
                outcome, passed, again = outcome_of(tests, found) if built else (UNBUILT, 0, [])
            if outcome not in {"survived", "stalled", UNBUILT} and not tests.pass_without(again):
                outcome = None
        result = {
            "file": name, "line": line, "change": change, "outcome": outcome,
            "tests": passed, "of": len(found), "seconds": round(sum(os.times()[:4]) - begun, 1),
        }  # fmt: skip
        with RESULTS.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(outcome, name, line, change if outcome != "killed" else "", flush=True)


@contextlib.contextmanager
def mutated(path, text, affected):
    """Put a mutant in place and compile it; the next run mends what an interrupt leaves."""
    original = path.read_text()
    kept = {file: file.read_bytes() for one in affected for file in PACKAGE.glob(f"_ext/{one}.*so")}
    try:
        path.write_text(text)
        yield not affected or compile_kernels(affected)
    finally:
        path.write_text(original)
        for file, binary in kept.items():
            file.unlink(missing_ok=True)
            file.write_bytes(binary)


def outcome_of(tests, found):
    """Fate of a mutant, number of tests run, and those that show it."""
    left, ran, again = set(found), 0, []
    for limits in LIMITS:
        chosen, seconds = tests.chosen(left, *limits)
        if not chosen:
            break
        left -= set(chosen)
        ran += len(chosen)
        outcome, again = tests.tried(chosen, seconds)
        if outcome != "survived":
            return outcome, ran, again
    return "survived", ran, again


def difference(before, after):
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((f"{a.strip()} -> {b.strip()}" for a, b in lines if a != b), "lines dropped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["collect", "run"])
    parser.add_argument("files", nargs="*", type=lambda name: Path(name).absolute())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--python", type=int, default=300)
    parser.add_argument("--kernels", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="end of a file's name")
    args = parser.parse_intermixed_args()
    HOME.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    build_tree()
    prepare()
    sys.exit(collect(args.files, args.jobs) if args.step == "collect" else run(args))


if __name__ == "__main__":
    main()
