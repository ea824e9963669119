"""One C99 file and its header, without dependencies, for a model and its preprocessing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rankcore
from rankcore.exporters.described import Described, Files
from rankcore.exporters.operations import ARITHMETIC, Step, width_after
from rankcore.exporters.reduced import UnsupportedModelError

# A preprocessed row is on the stack, in doubles.
WIDEST = 100_000
_TYPES = {
    **{"f8": "double", "f4": "float", "i8": "int64_t", "i4": "int32_t"},
    **{"u1": "uint8_t", "u4": "uint32_t"},
}


def export_c(described: Described, path: Path, *, name: str | None = None) -> Files:
    """Write source and header; names have the prefix ``name``, by default the file's."""
    if path.suffix.lower() != ".c":
        raise ValueError(f"path must end in .c; got {path.name!r}")
    prefix = prefix_of(path) if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", prefix):
        raise ValueError(f"name must be an identifier of C; got {prefix!r}: pass another name")
    header = path.with_suffix(".h")
    source = _Source(described, prefix)
    return {path: source.text(header.name), header: source.header()}


def prefix_of(path: Path) -> str:
    """Derive the prefix of names in C from the name of a file."""
    return re.sub(r"\W", "_", path.stem, flags=re.ASCII)


@dataclass(frozen=True)
class _Function:
    """A function of the model in C."""

    result: str  # its type
    name: str  # without the prefix
    arguments: str
    row: str  # expression of the row to score
    last: str  # the statements after the score

    def declaration(self, prefix: str) -> str:
        """Write the head of the function for its declaration and definition."""
        return f"{self.result} {prefix}_{self.name}({self.arguments})"


class _Source:
    """The text of a source."""

    def __init__(self, described: Described, prefix: str) -> None:
        self.described = described
        self.prefix = prefix
        self.form = described.scoring.form
        self.arrays: Mapping[str, NDArray[Any]] = described.scoring.arrays
        self.facts = described.scoring.facts
        self.width = width_after(described.steps, described.n_features)
        self.tables: dict[str, str] = {}
        units = described.units
        self.steps = described.steps if units is None else described.steps[: -len(units.steps)]
        # Scalers compute differently on sparse rows, and may change zeros.
        self.sparse = not self.steps
        if described.steps and max(self.width, described.n_features) > WIDEST:
            raise UnsupportedModelError(
                f"c allocates rows on the stack if there are preprocessing steps: at most {WIDEST} "
                f"features; got {max(self.width, described.n_features)}"
            )

    # -------------------------------------------------------------- tables

    def table(self, name: str, values: NDArray[Any]) -> str:
        """Write an array; return its name, or NULL if it is empty."""
        values = np.ascontiguousarray(values).reshape(-1)
        if not values.size:
            return "NULL"
        kind = _TYPES[values.dtype.str[1:]]
        if values.dtype.kind == "f":
            suffix = "f" if kind == "float" else ""
            # Thresholds are infinite if a stump separates missing values from all others (-), and
            # for splits by category, where they are unused.
            infinite = {math.inf: "INFINITY", -math.inf: "-INFINITY"}
            numbers = values.astype(np.float64).tolist()
            texts = [infinite.get(value, f"{value.hex()}{suffix}") for value in numbers]
        else:
            texts = [*map(str, values.tolist())]
        lines = ["   "]
        for text in texts:
            if len(lines[-1]) + len(text) > 97:
                lines.append("   ")
            lines[-1] += f" {text},"
        body = "\n".join(lines)
        self.tables[name] = f"static const {kind} {name}[{values.size}] = {{\n{body}\n}};\n"
        return name

    def array(self, name: str) -> str:
        """Write an array of the scoring form; NULL if there is none of that name."""
        return self.table(name, self.arrays.get(name, np.empty(0)))

    # -------------------------------------------------------------- forms

    def fields(self) -> dict[str, Any]:
        """Return the fields of the struct ``rc_model`` that the form sets."""
        arrays = self.arrays
        facts = self.facts
        d = self.width
        k = self.described.n_ranks
        weights = self.array("weights")
        tie = "RC_TIE_LOW" if facts.get("tie") == "low" else "RC_TIE_HIGH"
        tasks: dict[str, Any] = {
            "tasks": [weights, self.array("thresholds"), d, k, tie],
            "counts": int(facts.get("decision") == "count"),
        }
        match self.form:
            case "linear" | "rounded":
                return {"linear": [weights, float(arrays.get("intercept", [0.0])[0]), d]}
            case "thresholds":
                return {"prank": [weights, self.array("thresholds"), d, k]}
            case "tasks":
                return tasks
            case "classes":
                return {"weights": weights, "others": self.array("intercepts")}
            case "votes":
                return {
                    "n_features": d,
                    "weights": weights,
                    "others": self.array("thresholds"),
                    "votes": self.array("votes"),
                    "n_members": arrays["votes"].size,
                    "width": arrays["weights"].shape[2],
                    "output": {"median": 1, "plurality": 2}.get(str(facts["output"]), 0),
                }
            case "stumps":
                names = ("offsets", "thresholds", "values", "missing", "at_zero")
                return {"stumps": [*map(self.array, names), float(arrays["base"][0]), d]}
            case "trees":
                return self._trees()
            case "ordinal_trees":
                return self._trees() | self._tasks()
        rules = {"score": "RC_MODEL_LINEAR", "tasks": "RC_MODEL_TASKS"}
        kind = f"RC_KERNEL_{str(facts['kernel']).upper()}"
        n = arrays["norms"].size
        data = np.asarray(arrays["vectors"] if "vectors" in arrays else arrays["values"])
        support = [self.table("support", data), "NULL", "NULL", d, n, d]
        if "vectors" not in arrays:
            support[1] = self.table("indices", arrays["indices"].astype(np.int32))
            support[2] = self.table("indptr", arrays["indptr"].astype(np.int64))
        means, factors = self.described.units or (np.empty(0), np.empty(0))
        return tasks | {
            "n_features": d,
            "means": self.table("means", means),
            "factors": self.table("factors", factors),
            "kernel": [*map(float, arrays["constants"]), kind, facts["degree"]],
            "support": [*support, "RC_FLOAT32" if data.dtype == np.float32 else "RC_FLOAT64"],
            "norms": self.array("norms"),
            "sizes": self.array("sizes"),
            "slots": self.array("slots"),
            "longest": arrays["coefs"].shape[1],
            "n_outputs": arrays["sizes"].size,
            "weights": self.array("coefs"),
            "rule": rules.get(str(facts["rule"]), "RC_MODEL_THRESHOLDS"),
        }

    def _trees(self) -> dict[str, Any]:
        nodes = ("offsets", "features", "children", "sides", "thresholds", "values")
        sizes = [self.arrays["offsets"].size - 1, self.width, self.facts["zero_missing"]]
        sets = map(self.array, ("sets", "words"))
        return {"trees": [*map(self.array, nodes), *sizes, *sets]}

    def _tasks(self) -> dict[str, Any]:
        """Return fields of the tasks of trees, as ``rc_model_read_ordinal_trees_`` sets them."""
        k = self.described.n_ranks
        shared = self.facts["tasks"] == "shared"
        cumulative = self.facts["link"] == "cumulative"
        costs = self.array("costs")
        return {
            "n_outputs": 1 if shared else k - 1,
            "ranks": [self.array("biases"), k, int(shared), int(cumulative)],
            "calibration": [k, 0, "NULL", "NULL", 0.0, 0.0, 1.0, costs],
        }

    # -------------------------------------------------------------- files

    def _about(self) -> str:
        d = self.described
        ranks = f", {d.n_ranks} ranks" if d.n_ranks else ""
        return f"{d.learner}: {d.n_features} features{ranks}. Exported by rankcore."

    def _calibration(self) -> str:
        """Write the calibration curves and the choice of the rank of minimum expected cost."""
        calibration = self.described.calibration
        if calibration is None:
            return ""
        k = self.described.n_ranks
        tables = [self.table(name, getattr(calibration, name)) for name in ("curves", "knots")]
        numbers = [calibration.slope, calibration.center, calibration.scale]
        fields = [
            k,
            calibration.knots.size,
            *tables,
            *numbers,
            self.table("costs", calibration.costs),
        ]
        return (
            f"static const rc_calibration calibration = {_initializer(fields)};\n\n"
            f"static int32_t decided(double score)\n{{\n    double p[{k}];\n"
            "    rc_calibration_probabilities(&calibration, score, p);\n"
            "    return rc_calibration_rank(&calibration, p);\n}\n"
        )

    def _functions(self) -> list[_Function]:
        """Write the functions of a dense row and, if it can be scored, of a sparse row."""
        calibrated = self.described.calibration is not None
        functions = []
        x = "y" if self.steps else "x"
        rows = [("", "const double *x", f"rc_row_f64({x}, NULL, {self.width})")]
        if self.sparse:
            sparse = "const double *values, const int32_t *columns, int64_t n"
            rows.append(("_sparse", sparse, "rc_row_f64(values, columns, n)"))
        for kind, arguments, row in rows:
            if self.described.scoring.has_one_score:
                functions.append(
                    _Function("double", f"score{kind}", arguments, row, "return score;")
                )
            if self.described.n_ranks:
                last = "(void)score;\n    return rank;"
                last = "return decided(score);" if calibrated else last
                functions.append(_Function("int32_t", f"rank{kind}", arguments, row, last))
            if self.described.has_probabilities:
                last = "rc_calibration_probabilities(&calibration, score, probabilities);"
                if not calibrated:  # they are in the buffer of results
                    size = f"{self.described.n_ranks} * sizeof *room"
                    last = f"(void)score;\n    memcpy(probabilities, room, {size});"
                more = f"{arguments}, double *probabilities"
                functions.append(_Function("void", f"probabilities{kind}", more, row, last))
        return functions

    def text(self, header: str) -> str:
        """Write the source."""
        fields = {"n_ranks": self.described.n_ranks, **self.fields()}
        size = self.described.n_ranks + 6 * fields.get("n_outputs", 0) + 2  # rc_model_sums_
        size += 0 if self.described.units is None else self.width
        kind = "rc_model"
        scored = f"rc_model_{self.form}_(&model, x, room, rank)"
        buffer = f"    double room[{size}];\n"
        # Probabilities of trees are left in the buffer, which then belongs to the caller.
        shared = self.form == "ordinal_trees"
        first = "" if shared else buffer
        body = "".join(f"    .{name} = {_initializer(field)},\n" for name, field in fields.items())
        body = f"{{\n{body}}}"
        if self.form in ("stumps", "trees"):
            kind = f"rc_{self.form}"
            scored = f"rc_{self.form}_score(&model, x)"
            first = "    (void)rank;\n"
            body = _initializer(fields[self.form])
        model = f"static const {kind} model = {body};\n"
        steps = self.steps
        variables = buffer if shared else ""
        front = call = ""
        if steps:
            front = front_function(steps, self.described.n_features, self.table)
            variables = f"    double y[{self.described.n_features}];\n{variables}"
            call = "    front(x, y);\n"
        calibration = self._calibration()
        functions = [
            f"{function.declaration(self.prefix)}\n{{\n{variables}    int32_t rank = 0;\n"
            f"    double score;\n{call}    score = answer({function.row}, "
            f"&rank{', room' * shared});\n"
            f"    {function.last}\n}}\n"
            for function in self._functions()
        ]
        answer = (
            f"static double answer(rc_row x, int32_t *rank{', double *room' * shared})\n{{\n"
            f"{first}    return {scored};\n}}\n"
        )
        code = [model, front, answer, calibration]
        blocks = [
            f"/* {self._about()}\n * Compile with -ffp-contract=off, for the numbers of Python to "
            "the bit. */\n"
            f'#include "{header}"\n\n#include <float.h>\n#include <math.h>\n#include <stddef.h>\n'
            "#include <string.h>\n",
            parts("\n".join(["rc_row_f64", *code]), fields),  # which functions call
            *self.tables.values(),
            *code,
            *functions,
            self._labels(),
            self._names(),
        ]
        return "\n".join(block for block in blocks if block)

    def _labels(self) -> str:
        if self.described.classes is None:
            return ""
        kind, table = self._label_table(self.described.classes)
        name = f"{self.prefix}_label(int32_t rank)"
        return f"{table}\n{kind}{name}\n{{\n    return labels[rank];\n}}\n"

    def _label_table(self, classes: NDArray[Any]) -> tuple[str, str]:
        """Return the type of the labels in C, and their table."""
        if classes.dtype.kind in "biu":
            kind = "int64_t "
            constants = "const int64_t "
            texts = [str(int(x)) for x in classes]
        elif classes.dtype.kind == "f":
            kind = "double "
            constants = "const double "
            texts = [float(x).hex() for x in classes]
        else:
            kind = "const char *"
            constants = "const char *const "
            texts = [_quoted(str(x)) for x in classes]
        return kind, f"static {constants}labels[] = {{{', '.join(texts)}}};\n"

    def _names(self) -> str:
        if self.described.names is None:
            return ""
        table = ",\n    ".join(map(_quoted, self.described.names))
        d = self.described.n_features
        return f"const char *const {self.prefix}_features[{d}] = {{\n    {table},\n}};\n"

    def header(self) -> str:
        """Write the header."""
        prefix = self.prefix
        guard = f"{prefix.upper()}_H"
        lines = []
        for function in self._functions():
            if function.name == "probabilities":
                last = self.described.n_ranks - 1
                lines.append(f"/* Writes probabilities[0 .. {last}], lowest rank first. */")
            lines.append(f"{function.declaration(prefix)};")
        if self.described.classes is not None:
            kind, _ = self._label_table(self.described.classes)
            lines.append(f"/* Label of a rank, 0 .. {self.described.n_ranks - 1}. */")
            lines.append(f"{kind}{prefix}_label(int32_t rank);")
        n = self.described.n_features
        if self.described.names is not None:
            lines.append(f"extern const char *const {prefix}_features[{n}];")
        declarations = "\n".join(lines)
        sparse = "; columns of a sparse row ascend" if self.sparse else ""
        return f"""/* {self._about()}
 * A row has {n} values{sparse}. Any number of threads may call at once. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{declarations}

#ifdef __cplusplus
}}
#endif

#endif /* {guard} */
"""


def _initializer(value: Any) -> str:
    """Format a number, a name or a list of these in C."""
    if isinstance(value, list):
        return f"{{{', '.join(map(_initializer, value))}}}"
    return value.hex() if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    """Write a C string literal in ASCII, with UTF-8 as octal escapes."""
    quoted = ""
    for byte in text.encode("utf-8"):
        plain = 32 <= byte < 127 and byte not in b'"\\?'
        quoted += chr(byte) if plain else f"\\{byte:03o}"
    return f'"{quoted}"'


def front_function(
    steps: Sequence[Step], n_features: int, table: Callable[[str, NDArray[Any]], str]
) -> str:
    """Write a C function that preprocesses a row; ``table`` writes a named array."""
    lines = [f"    for (j = 0; j < {n_features}; j++)\n        y[j] = x[j];\n"]
    n = n_features
    norm = False
    for number, step in enumerate(steps):
        each = f"    for (j = 0; j < {n}; j++)\n        "
        constants = ""
        if step.kind not in ("normalize", "clip"):
            kind = np.int64 if step.kind == "select" else np.float64
            constants = table(f"step_{number}", step.values.astype(kind))
        if step.kind == "select":
            n = step.values.size
            lines.append(
                f"    for (j = 0; j < {n}; j++)\n        z[j] = y[{constants}[j]];\n"
                f"    for (j = 0; j < {n}; j++)\n        y[j] = z[j];\n"
            )
        elif step.kind == "impute":
            lines.append(f"{each}y[j] = y[j] != y[j] ? {constants}[j] : y[j];\n")
        elif step.kind == "clip":
            low, high = (float(value).hex() for value in step.values)
            lines.append(f"{each}y[j] = y[j] < {low} ? {low} : y[j] > {high} ? {high} : y[j];\n")
        elif step.kind == "normalize":
            norm = True
            lines.append(_normalized(step.norm, each))
        else:
            lines.append(f"{each}y[j] = y[j] {ARITHMETIC[step.kind][0]} {constants}[j];\n")
    variables = "    int64_t j;\n"
    if any(step.kind == "select" for step in steps):
        variables += f"    double z[{n_features}];\n"
    variables += "    double norm;\n" if norm else ""
    return (
        "/* Apply the preprocessing steps to a row. */\n"
        f"static void front(const double *x, double *y)\n{{\n{variables}{''.join(lines)}}}\n"
    )


def _normalized(norm: str, each: str) -> str:
    """Divide a row by its norm, unless it is close to zero, as scikit-learn does."""
    add = {
        "l1": "norm = norm + fabs(y[j]);",
        "l2": "norm = norm + y[j] * y[j];",
        "max": "norm = fabs(y[j]) > norm ? fabs(y[j]) : norm;",
    }[norm]
    root = "    norm = sqrt(norm);\n" if norm == "l2" else ""
    return (
        f"    norm = 0.0;\n{each}{add}\n{root}    if (norm < 10.0 * DBL_EPSILON)\n"
        f"        norm = 1.0;\n{each}y[j] = y[j] / norm;\n"
    )


# ------------------------------------------------------------------------ parts of the headers

HEADERS = (
    "rankcore.h",
    "rankcore_calibration.h",
    "rankcore_ordinal.h",
    "rankcore_forms.h",
    "rankcore_model.h",
)
# A piece includes the comment before it.
_COMMENT = r"(?:^/\*(?:[^*]|\*(?!/))*\*/\n)?"
_INLINE = "(?:static inline|RC_WITH_CONSTANTS_)"
_PIECES = re.compile(
    rf"(?P<function>{_COMMENT}^{_INLINE} [^;{{]*?\b(?P<name>rc_\w+)\([^;{{]*\)\n\{{\n.*?^\}}\n)"
    rf"|(?P<struct>{_COMMENT}^typedef struct \w+ \{{\n.*?^\}} (?P<type>\w+);\n)"
    rf"|(?P<enum>{_COMMENT}^enum \{{.*?\}};\n)"
    r"|(?P<switch>^#if defined\(__GNUC__\)[^\n]*\n(?:#define[^\n]*\n|#else\n)+#endif\n)"
    r"|(?P<macro>^#define RC_\w+(?:[^\n]*\\\n)*[^\n]*\n)",
    re.MULTILINE | re.DOTALL,
)
# A field of a struct, alone on its line.
_FIELD = re.compile(r"    [\w ]+[ *](\w+)(?:\[\d+\]|, \w+)?;")
_WORD = re.compile(r"\bRC_\w+|\brc_\w+")


def _pieces() -> list[tuple[frozenset[str], str]]:
    """Return, for each piece of the headers in order, the names that it defines and its text."""
    pieces = []
    for header in HEADERS:
        text = (Path(rankcore.get_include()) / header).read_text(encoding="utf-8")
        for match in _PIECES.finditer(text):
            piece = match.group()
            if match["function"] or match["struct"]:
                defines = {match["name"] or match["type"]}
            elif match["enum"]:
                defines = {*_WORD.findall(piece[piece.index("enum {") :])}
            else:
                defines = {*re.findall(r"#define (\w+)", piece)}
            pieces.append((frozenset(defines), piece))
    return pieces


def parts(code: str, fields: Collection[str]) -> str:
    """Collect functions and structs that C code needs, in the order of dependencies.

    The struct ``rc_model`` has only some of its fields. KeyError if a name is in no header.
    """
    pieces = _pieces()
    piece_of = {name: at for at, (defines, _) in enumerate(pieces) for name in defines}
    for name in sorted(_words(code) - piece_of.keys()):
        raise KeyError(f"no piece {name} in {', '.join(HEADERS)}")
    texts = [piece for _, piece in pieces]
    texts[piece_of["rc_model"]] = "".join(
        line
        for line in texts[piece_of["rc_model"]].splitlines(keepends=True)
        if (match := _FIELD.match(line)) is None or match[1] in fields
    )
    needed: set[int] = set()
    left = [code]
    while left:
        for name in _words(left.pop()):
            if name in piece_of and piece_of[name] not in needed:
                needed.add(piece_of[name])
                left.append(texts[piece_of[name]])
    return "\n".join(texts[at] for at in sorted(needed))


def _words(text: str) -> set[str]:
    """Return the identifiers of rankcore in a piece of C, outside of comments."""
    return {*_WORD.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))}
