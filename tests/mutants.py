"""Mutants: changes of one token in the sources, each of which a test should notice.

    python tests/mutants.py collect           # which tests execute which line, in build/mutants
    python tests/mutants.py run               # 300 mutants of Python, 60 of kernels, by a seed
    python tests/mutants.py run --only FILE

Sources are changed in a copy. Tests that execute the line run, of a kernel those that execute a
call of it, the fastest of each file first; results go to build/mutants/results.jsonl, and stay.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / "build" / "mutants"
TREE = HOME / "tree"
PACKAGE = TREE / "src" / "rankcore"
RESULTS = HOME / "results.jsonl"
ROOMS = ["_core", "io", "datasets", "preference", "dask", "cli"]
# Tests of a mutant, and seconds that they took under coverage: at first, and if it survives these.
LIMITS = [(150, 30.0), (3000, 400.0)]
# Of sources that are not Python, by regular expressions.
KERNEL_RULES = [
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "),
    (" != ", " == "), (r" \+ ", " - "), (" - ", " + "), (r" \* ", " + "), (" / ", " * "),
    (" and ", " or "), (" or ", " and "), (" && ", " || "), (r" \|\| ", " && "), (" not ", " "),
    (r" \+= ", " -= "), (" -= ", " += "), (r"(?<![\w.])0(?![\w.])", "1"),
    (r"(?<![\w.])1(?![\w.])", "2"), (r"\bmin\(", "max("), (r"\bmax\(", "min("),
]  # fmt: skip
PYTEST = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", "--no-header"]


def build_tree():
    """A copy of the sources, with kernels."""
    shutil.rmtree(TREE, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", TREE / "src", ignore=ignored)
    for name in ["setup.py", "pyproject.toml", "README.md", "LICENSE"]:
        shutil.copy2(ROOT / name, TREE)
    (TREE / "build").mkdir()
    if not compile_kernels():
        sys.exit("the kernels do not compile")


def compile_kernels(affected=None):
    """Build the kernels, all or some."""
    for built in TREE.glob("build/lib.*/rankcore/_ext/*.so") if affected is not None else ():
        if built.name.split(".")[0] in affected:
            built.unlink()
            (PACKAGE / "_ext" / built.name).unlink()
        else:  # newer than any header
            os.utime(built, (time.time() + 3600, time.time() + 3600))
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    return done.returncode == 0


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

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration if report.passed else 1e9

    def pytest_sessionfinish(self):
        (HOME / "seconds.json").write_text(json.dumps(self.seconds))


def collect():
    """Run all tests once, in one process. Interrupts would meet the locks of coverage."""
    import pytest

    os.environ["COVERAGE_FILE"] = str(HOME / "coverage")
    chosen = [*PYTEST[:1], *PYTEST[2:], "-k", "not interrupt and not signal", "--timeout=300"]
    coverage = [f"--cov={PACKAGE}", "--cov-context=test", "--cov-report="]
    return pytest.main([*chosen, *coverage, *sys.argv[2:]], plugins=[Durations()])


class Tests:
    """Which tests execute a line."""

    def __init__(self):
        from coverage import CoverageData

        data = CoverageData(str(HOME / "coverage"))
        data.read()
        self.seconds = json.loads((HOME / "seconds.json").read_text())
        self.lines = {}
        for path in data.measured_files():
            name = path.rpartition("/rankcore/")[2]
            lines = self.lines.setdefault(name, defaultdict(set))
            for line, contexts in data.contexts_by_lineno(path).items():
                lines[line] |= {one.rpartition("|")[0] for one in contexts} - {""}

    def of_line(self, name, line):
        """Of what runs on import all tests that execute something else of the file."""
        lines = self.lines.get(name, {})
        inside = in_functions((PACKAGE / name).read_text())
        if line in inside:
            return lines.get(line, set())
        return set().union(*(tests for at, tests in lines.items() if at in inside))

    def of_kernels(self, kernels):
        """Tests that execute a call of a kernel, or whose files import one."""
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

    def chosen(self, tests, most_tests, most_seconds):
        """The fastest of each file, in turns; then file by file."""
        files = defaultdict(list)
        for test in tests:
            if self.seconds.get(test, 1e9) < 1e8:
                files[test.partition("::")[0]].append(test)
        ranked = []
        for file in files.values():
            file.sort(key=self.seconds.__getitem__)
            ranked += [(place, self.seconds[test], test) for place, test in enumerate(file)]
        found, total = [], 0.0
        for _, seconds, test in sorted(ranked)[:most_tests]:
            if total + seconds <= most_seconds or not found:
                found.append(test)
                total += seconds
        cost = Counter()
        for test in found:
            cost[test.partition("::")[0]] += self.seconds[test]
        return sorted(found, key=lambda test: (cost[test.partition("::")[0]], test)), total


def in_functions(source):
    """Lines that run when a function is called."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            found |= set(range(body[0].lineno, body[-1].end_lineno + 1))
    return found


class _Bare(ast.NodeTransformer):
    """Without what does nothing: annotations."""

    @classmethod
    def of(cls, source):
        return ast.dump(cls().visit(ast.parse(source)))

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)


def python_mutant(path, line, rng):
    """A mutant of a line, or None: any kind of change as likely as any other."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    source, kinds = path.read_text(), defaultdict(list)
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if "Variable" in name:
            continue  # they want variables named
        operator, number = get_operator(name)(), 0
        for node in nodes:
            for (at, _), _ in operator.mutation_positions(node):
                if at == line:
                    kinds[name.partition("_")[0]].append((name, number))
                number += 1
    while kinds:
        kind = rng.choice(sorted(kinds))
        name, number = rng.choice(kinds.pop(kind))
        mutated = mutate_code(source, get_operator(name)(), number)
        if mutated is not None and _Bare.of(mutated) != _Bare.of(source):
            return mutated
    return None


def kernel_mutant(path, line, rng):
    """The same of Cython and C."""
    lines = path.read_text().splitlines(keepends=True)
    code = re.split(r"#|/\*|//", lines[line - 1])[0] if path.suffix == ".h" else lines[line - 1]
    code = code.split("  #")[0]
    found = [
        (match.start(), match.end(), new)
        for old, new in KERNEL_RULES
        for match in re.finditer(old, code)
    ]
    if not found:
        return None
    start, end, new = rng.choice(found)
    lines[line - 1] = lines[line - 1][:start] + new + lines[line - 1][end:]
    return "".join(lines)


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


def sample(tests, args):
    """Mutants in an order that a seed draws: file, line and text."""
    sources = [path for room in ROOMS for path in sorted(PACKAGE.glob(f"{room}/**/*.py"))]
    lines, missed = [], 0
    for path in sources:
        name = path.relative_to(PACKAGE).as_posix()
        for line in code_lines(path.read_text()):
            executed = line in tests.lines.get(name, {})
            missed += not executed
            lines += [(path, line)] * executed
    print(f"{len(lines)} lines are executed by a test, {missed} by none")
    for wanted, found, make in [
        (args.python, lines, python_mutant),
        (args.kernels, list(kernel_lines()), kernel_mutant),
    ]:
        rng = random.Random(f"{args.seed} {make.__name__}")
        rng.shuffle(found)
        for path, line in found:
            if args.only and not str(path).endswith(args.only):
                continue
            text = make(path, line, rng) if wanted else None
            if text is not None:
                wanted -= 1
                yield path, line, text


def code_lines(source):
    """First lines of statements, docstrings aside."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            found.add(node.lineno)
    return sorted(found)


def tried(chosen, seconds, log):
    """Run tests in a child of this process, which has imported what they share but the package."""
    child = os.fork()
    if child == 0:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        import pytest

        os._exit(pytest.main([*PYTEST, "--timeout=120", *chosen]))
    end = time.monotonic() + 60 + 5 * seconds
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)
    if done[0] == 0:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "hung"
    status = os.waitstatus_to_exitcode(done[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it left behind
    # 1: a test failed; 2 and 4: a test module could not be imported.
    return {0: "survived", 1: "killed", 2: "killed", 4: "killed"}.get(
        status, f"pytest exits with {status}"
    )


def prepare():
    """Import here what every child would."""
    os.chdir(ROOT)
    sys.path.insert(0, str(PACKAGE.parent))
    os.environ |= {
        "PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true",
        "HYPOTHESIS_PROFILE": "quick", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    sys.dont_write_bytecode = True


def run(args):
    for shared in ["scipy.sparse.linalg", "sklearn.model_selection", "sklearn.pipeline"]:
        importlib.import_module(shared)  # by the children, too

    tests = Tests()
    known = [json.loads(line) for line in RESULTS.open()] if RESULTS.exists() else []
    if tried(*tests.chosen(sorted(tests.seconds)[::50], *LIMITS[0]), HOME / "log") != "survived":
        sys.exit(f"tests fail without a mutant: {HOME / 'log'}")
    done, stale = {(one["file"], one["change"]) for one in known}, set()
    for path, line, text in sample(tests, args):
        original, name = path.read_text(), path.relative_to(TREE / "src").as_posix()
        change = difference(original, text)
        if (name, change) in done:
            continue
        kernel = path.suffix != ".py"
        affected = including(path) if kernel else set()
        if kernel:
            found = tests.of_kernels(affected)
        else:
            found = tests.of_line(path.relative_to(PACKAGE).as_posix(), line)
        begun = time.monotonic()
        path.write_text(text)
        outcome, chosen = "survived", []
        try:
            if kernel and not compile_kernels(affected | stale):
                outcome = "does not compile"
            for limits in LIMITS if outcome == "survived" and found else ():
                chosen, seconds = tests.chosen(found, *limits)
                outcome = tried(chosen, seconds, HOME / "log")
                if outcome != "survived" or len(chosen) == len(found):
                    break
        finally:
            path.write_text(original)
            stale = affected
        result = {
            "file": name, "line": line, "change": change, "outcome": outcome,
            "tests": len(chosen), "of": len(found), "seconds": round(time.monotonic() - begun, 1),
        }  # fmt: skip
        with RESULTS.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(outcome, name, line, change if outcome != "killed" else "", flush=True)


def difference(before, after):
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((f"{a.strip()} -> {b.strip()}" for a, b in lines if a != b), "lines dropped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["collect", "run"])
    parser.add_argument("--python", type=int, default=300)
    parser.add_argument("--kernels", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="end of a file's name")
    args, _ = parser.parse_known_args()
    HOME.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    prepare()
    build_tree()
    sys.exit(collect() if args.step == "collect" else run(args))


if __name__ == "__main__":
    main()
