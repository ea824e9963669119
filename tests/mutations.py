"""Changes of one token, for `mutants`: of Python by cosmic-ray, of Cython and C by patterns."""

import ast
import contextlib
import functools
import re
from collections import defaultdict

# Of sources that are not Python, by regular expressions.
KERNEL_RULES = [
    (" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "),
    (" != ", " == "), (r" \+ ", " - "), (" - ", " + "), (r" \* ", " + "), (" / ", " * "),
    (" and ", " or "), (" or ", " and "), (" && ", " || "), (r" \|\| ", " && "), (" not ", " "),
    (r" \+= ", " -= "), (" -= ", " += "), (r"(?<![\w.])0(?![\w.])", "1"),
    (r"(?<![\w.])1(?![\w.])", "2"), (r"\bmin\(", "max("), (r"\bmax\(", "min("),
]  # fmt: skip


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
    @functools.cache
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


@functools.cache
def changes(source):
    """Of each line the kinds of change, and their operators with a number."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    found = defaultdict(lambda: defaultdict(list))
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if "Variable" in name:
            continue  # they want variables named
        operator, number = get_operator(name)(), 0
        for node in nodes:
            for (at, _), _ in operator.mutation_positions(node):
                found[at][name.partition("_")[0]].append((name, number))
                number += 1
    return found


def python_mutant(path, line, rng):
    """Draw a mutant of a line, or None: any kind of change as likely as any other."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = path.read_text()
    kinds = dict(changes(source)[line])
    while kinds:
        name, number = rng.choice(kinds.pop(rng.choice(sorted(kinds))))
        mutated = mutate_code(source, get_operator(name)(), number)
        with contextlib.suppress(SyntaxError):
            if mutated is not None and _Bare.of(mutated) != _Bare.of(source):
                return mutated
    return None


def kernel_mutant(path, line, rng):
    """Draw a mutant of a line of Cython or C."""
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


def code_lines(source):
    """First lines of statements, docstrings aside."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            found.add(node.lineno)
    return sorted(found)
