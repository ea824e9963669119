"""A model as one C99 file and its header, without any dependency."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.exporters.c_front import front_function
from rankcore.exporters.c_parts import parts
from rankcore.exporters.described import Described
from rankcore.exporters.front import width_after
from rankcore.exporters.reduced import Refused

# A row after the steps in front lies on the stack, in doubles.
WIDEST = 100_000
_TYPES = {
    **{"f8": "double", "f4": "float", "i8": "int64_t", "i4": "int32_t"},
    **{"u1": "uint8_t", "u4": "uint32_t"},
}
# Of rankcore_forms.h, what the functions of two forms read.
_VOTES = """typedef struct rc_model {
    int32_t n_ranks, output; /* output: 0 round or mean, 1 median, 2 plurality */
    int64_t n_features, n_members, width;
    const double *weights, *others;
    const int64_t *votes;
} rc_model;
"""
_KERNEL = """typedef struct rc_model {
    rc_kernel kernel;
    rc_rows support;
    const double *norms;
    const int64_t *sizes;
    const int32_t *slots;
    int64_t longest;
    int32_t n_outputs;
    const double *weights;
} rc_model;
"""


def export_c(described: Described, path: Path, *, name: str | None = None) -> list[Path]:
    """Write ``path`` and the header beside it; all names begin with ``name``, or the file's."""
    if path.suffix != ".c":
        raise ValueError(f"path must end in .c; found {path.name!r}")
    prefix = prefix_of(path) if name is None else name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", prefix):
        raise ValueError(f"name must be an identifier of C; found {prefix!r}: give another name")
    header = path.with_suffix(".h")
    source = _Source(described, prefix)
    path.write_text(source.text(header.name), encoding="utf-8")
    header.write_text(source.header(), encoding="utf-8")
    return [path, header]


def prefix_of(path: Path) -> str:
    """Prefix of names in C, from the name of a file."""
    return re.sub(r"\W", "_", path.stem, flags=re.ASCII)


class _Source:
    """The text of a source."""

    def __init__(self, described: Described, prefix: str) -> None:
        self.described, self.prefix = described, prefix
        self.form = described.scoring.form
        self.arrays: Mapping[str, NDArray[Any]] = described.scoring.arrays
        self.facts = described.scoring.facts
        self.width = width_after(described.steps, described.n_features)
        self.own: dict[str, str] = {}
        self.tables: list[str] = []
        self.model = ""
        # Scalers are another arithmetic of sparse rows, and zeros may not stay zeros.
        self.sparse = not described.steps
        if described.steps and max(self.width, described.n_features) > WIDEST:
            raise Refused(
                f"c puts a row on the stack where there are steps in front: up to {WIDEST} "
                f"features; found {max(self.width, described.n_features)}"
            )

    @property
    def has_score(self) -> bool:
        return self.form != "classes"

    # -------------------------------------------------------------- tables

    def table(self, name: str, values: NDArray[Any]) -> str:
        """Write an array; return its name, or NULL if it is empty."""
        values = np.ascontiguousarray(values).reshape(-1)
        if not values.size:
            return "NULL"
        kind = _TYPES[values.dtype.str[1:]]
        if values.dtype.kind == "f":
            suffix = "f" if kind == "float" else ""
            # Thresholds are infinite where a stump parts missing values from all others (-), and
            # of splits by category, where they are not looked at.
            texts = [
                f"{value.hex()}{suffix}"
                if math.isfinite(value)
                else ("-" if value < 0 else "") + "INFINITY"
                for value in values.astype(np.float64).tolist()
            ]
        else:
            texts = [*map(str, values.tolist())]
        lines, line = [], "   "
        for text in texts:
            if len(line) + len(text) > 97:
                lines.append(line)
                line = "   "
            line += f" {text},"
        lines.append(line)
        body = "\n".join(lines)
        self.tables.append(f"static const {kind} {name}[{values.size}] = {{\n{body}\n}};\n")
        return name

    def array(self, name: str) -> str:
        """Write an array of the scoring form."""
        return self.table(name, self.arrays[name])

    # -------------------------------------------------------------- forms

    def row(self) -> str:
        """C statements for score and rank of a row x; adds the tables that they need."""
        text: str = getattr(self, f"_{self.form}")(self.described.n_ranks)
        return text

    def _linear(self, k: int) -> str:
        weights = self.array("weights")
        return f"    *score = rc_dot(x, {weights});\n"

    def _thresholds(self, k: int) -> str:
        weights = self.array("weights")
        cuts = self.array("thresholds")
        return f"    *score = rc_dot(x, {weights});\n    *rank = rc_rank({cuts}, {k}, *score);\n"

    def _rounded(self, k: int) -> str:
        weights = self.array("weights")
        intercept = float(self.arrays["intercept"][0]).hex()
        return (
            f"    double nearest;\n    *score = rc_dot(x, {weights}) + {intercept};\n"
            "    nearest = floor(*score + 0.5);\n"
            f"    *rank = nearest >= {k} ? {k - 1} : nearest > 1.0 ? (int32_t)nearest - 1 : 0;\n"
        )

    def _tasks(self, k: int) -> str:
        weights = self.array("weights")
        cuts = self.array("thresholds")
        row = f"    double scores[{k}];\n    rc_dots(x, {weights}, {k - 1}, scores + 1);\n"
        return self._by_tasks(cuts, k, row)

    def _by_tasks(self, cuts: str, k: int, row: str) -> str:
        """C code of the rule of tasks, whose scores are at scores[1 ..]."""
        last = f"    rc_model_cumulate_(scores, {cuts}, {k});\n    *score = scores[{k - 1}];\n"
        if self.facts["decision"] == "count":
            count = (
                f"    *rank = 0;\n    for (r = 0; r < {k - 1}; r++)\n"
                f"        *rank += scores[r + 1] - {cuts}[r] >= 0.0;\n"
            )
            return "    int32_t r;\n" + row + count + last
        tie = "RC_TIE_LOW" if self.facts["tie"] == "low" else "RC_TIE_HIGH"
        return f"{row}{last}    *rank = rc_best(scores, {k}, {tie});\n"

    def _classes(self, k: int) -> str:
        weights = self.array("weights")
        intercepts = self.array("intercepts")
        return (
            f"    double scores[{k}];\n    int32_t r;\n    rc_dots(x, {weights}, {k}, scores);\n"
            f"    for (r = 0; r < {k}; r++)\n        scores[r] += {intercepts}[r];\n"
            f"    *rank = rc_best(scores, {k}, RC_TIE_LOW);\n"
        )

    def _votes(self, k: int) -> str:
        output = {"median": 1, "plurality": 2}.get(str(self.facts["output"]), 0)
        names = map(self.array, ("weights", "thresholds", "votes"))
        fields = [k, output, self.width, self.arrays["votes"].size, self.arrays["weights"].shape[2]]
        self.own["rc_model"] = _VOTES
        self.model = _struct("rc_model", [*fields, *names])
        return (
            f"    int64_t tally[{k}], sum = 0, total;\n    int32_t r;\n"
            "    total = rc_model_tally_(&model, x, tally);\n"
            f"    for (r = 0; r < {k}; r++)\n        sum += (r + 1) * tally[r];\n"
            "    *score = (double)sum / (double)total;\n"
            "    *rank = rc_model_elected_(&model, tally, total);\n"
        )

    def _stumps(self, k: int) -> str:
        tables = map(self.array, ("offsets", "thresholds", "values", "missing", "at_zero"))
        fields = [*tables, float(self.arrays["base"][0]).hex(), self.width]
        self.model = _struct("rc_stumps", fields)
        return "    *score = rc_stumps_score(&model, x);\n"

    def _trees(self, k: int) -> str:
        names = ("offsets", "features", "children", "sides", "thresholds", "values")
        tables, sets = [*map(self.array, names)], [*map(self.array, ("sets", "words"))]
        n_trees = self.arrays["offsets"].size - 1
        fields = [*tables, n_trees, self.width, self.facts["zero_missing"], *sets]
        self.model = _struct("rc_trees", fields)
        return "    *score = rc_trees_score(&model, x);\n"

    def _kernel(self, k: int) -> str:
        arrays, facts = self.arrays, self.facts
        sparse = "vectors" not in arrays
        data = np.asarray(arrays["values"] if sparse else arrays["vectors"])
        support = [self.table("support", data)]
        support += [
            self.table(name, arrays[name].astype(kind)) if sparse else "NULL"
            for name, kind in (("indices", np.int32), ("indptr", np.int64))
        ]
        dtype = "RC_FLOAT32" if data.dtype == np.float32 else "RC_FLOAT64"
        rows = [*support, self.width, arrays["norms"].size, self.width, dtype]
        gamma, coef0 = (float(value).hex() for value in arrays["constants"])
        kernel = [gamma, coef0, f"RC_KERNEL_{str(facts['kernel']).upper()}", facts["degree"]]
        m = arrays["sizes"].size
        rest = [*map(self.array, ("norms", "sizes", "slots"))]
        rest += [str(arrays["coefs"].shape[1]), str(m), self.array("coefs")]
        self.own["rc_model"] = _KERNEL
        self.model = _struct("rc_model", [_braced(kernel), _braced(rows), *rest])
        # Before the outputs a place for the first of the scores, behind them four sums of each and
        # its place in its list.
        row = f"    double scores[{6 * m + 1}];\n    rc_model_outputs_(&model, x, scores + 1);\n"
        if facts["rule"] == "score":
            return f"{row}    *score = scores[1];\n"
        cuts = self.array("thresholds")
        if facts["rule"] == "tasks":
            return self._by_tasks(cuts, k, row)
        return f"{row}    *score = scores[1];\n    *rank = rc_rank({cuts}, {k}, *score);\n"

    # -------------------------------------------------------------- files

    def _about(self) -> str:
        d = self.described
        ranks = f", {d.n_ranks} ranks" if d.n_ranks else ""
        return f"{d.learner}: {d.n_features} features{ranks}. Exported by rankcore."

    def _calibration(self) -> str:
        """C code of the curves and the rank of minimum expected cost; adds the pieces it needs."""
        found = self.described.calibration
        if found is None:
            return ""
        k = self.described.n_ranks
        tables = [self.table(name, getattr(found, name)) for name in ("curves", "knots")]
        numbers = [float(value).hex() for value in (found.slope, found.center, found.scale)]
        fields = [k, found.knots.size, *tables, *numbers, self.table("costs", found.costs)]
        return (
            f"static const rc_calibration calibration = {_braced(fields)};\n\n"
            f"static int32_t decided(double score)\n{{\n    double p[{k}];\n"
            "    rc_calibration_probabilities(&calibration, score, p);\n"
            "    return rc_calibration_rank(&calibration, p);\n}\n"
        )

    def _functions(self) -> list[tuple[str, str, str, str, str]]:
        """Result type, name, arguments, beginning and end of each function."""
        calibrated = self.described.calibration is not None
        found = []
        for kind, arguments, row in [
            ("", "const double *x", f"rc_row_f64({{x}}, NULL, {self.width})"),
            ("_sparse", "const double *values, const int32_t *columns, int64_t n", ""),
        ]:
            if kind and not self.sparse:
                continue
            row = row or "rc_row_f64(values, columns, n)"
            if self.has_score:
                found.append(("double", f"score{kind}", arguments, row, "return score;"))
            if self.described.n_ranks:
                last = "return decided(score);" if calibrated else "return rank;"
                found.append(("int32_t", f"rank{kind}", arguments, row, last))
            if calibrated:
                last = "rc_calibration_probabilities(&calibration, score, probabilities);"
                more = f"{arguments}, double *probabilities"
                found.append(("void", f"probabilities{kind}", more, row, last))
        return found

    def text(self, header: str) -> str:
        """The source."""
        row = self.row()
        steps = self.described.steps
        front = front_function(steps, self.described.n_features, self.table) if steps else ""
        calibration = self._calibration()
        functions = []
        for result, name, arguments, source, last in self._functions():
            value = source.format(x="y") if front else source.format(x="x")
            room = f"    double y[{self.described.n_features}];\n" if front else ""
            call = "    front(x, y);\n" if front else ""
            functions.append(
                f"{result} {self.prefix}_{name}({arguments})\n{{\n{room}    double score = 0.0;\n"
                f"    int32_t rank = 0;\n{call}    answer({value}, &score, &rank);\n"
                f"    {last}\n}}\n"
            )
        answer = (
            "static void answer(rc_row x, double *score, int32_t *rank)\n{\n"
            f"{row}{_unused(row)}}}\n"
        )
        code = [self.model, front, answer, calibration]
        blocks = [
            f"/* {self._about()}\n * Compile with -ffp-contract=off, for the numbers of Python to "
            "the bit. */\n"
            f'#include "{header}"\n\n#include <float.h>\n#include <math.h>\n#include <stddef.h>\n'
            "#include <string.h>\n",
            parts("\n".join(["rc_row_f64", *code]), self.own),  # which functions call
            *self.tables,
            *code,
            *functions,
            self._labels(),
            self._names(),
        ]
        return "\n".join(block for block in blocks if block)

    def _labels(self) -> str:
        classes = self.described.classes
        if classes is None:
            return ""
        kind, table = self._label_table(classes)
        return (
            f"{table}\n{kind}{self.prefix}_label(int32_t rank)\n{{\n    return labels[rank];\n}}\n"
        )

    def _label_table(self, classes: NDArray[Any]) -> tuple[str, str]:
        if classes.dtype.kind in "biu":
            table = ", ".join(f"{int(value)}" for value in classes.tolist())
            return "int64_t ", f"static const int64_t labels[] = {{{table}}};\n"
        if classes.dtype.kind == "f":
            table = ", ".join(float(value).hex() for value in classes)
            return "double ", f"static const double labels[] = {{{table}}};\n"
        table = ", ".join(_quoted(str(value)) for value in classes)
        return "const char *", f"static const char *const labels[] = {{{table}}};\n"

    def _names(self) -> str:
        if self.described.names is None:
            return ""
        table = ",\n    ".join(map(_quoted, self.described.names))
        d = self.described.n_features
        return f"const char *const {self.prefix}_features[{d}] = {{\n    {table},\n}};\n"

    def header(self) -> str:
        """The header."""
        prefix, guard = self.prefix, f"{self.prefix.upper()}_H"
        lines = []
        for result, name, arguments, *_ in self._functions():
            if name == "probabilities":
                last = self.described.n_ranks - 1
                lines.append(f"/* Writes probabilities[0 .. {last}], lowest rank first. */")
            lines.append(f"{result} {prefix}_{name}({arguments});")
        if self.described.classes is not None:
            kind, _ = self._label_table(self.described.classes)
            lines.append(f"/* Label of a rank, 0 .. {self.described.n_ranks - 1}. */")
            lines.append(f"{kind}{prefix}_label(int32_t rank);")
        if self.described.names is not None:
            lines.append(
                f"extern const char *const {prefix}_features[{self.described.n_features}];"
            )
        declarations = "\n".join(lines)
        sparse = "; columns of a sparse row ascend" if self.sparse else ""
        return f"""/* {self._about()}
 * A row has {self.described.n_features} values{sparse}. Any number of threads may call at once. */
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


def _braced(fields: Sequence[Any]) -> str:
    return f"{{{', '.join(map(str, fields))}}}"


def _struct(kind: str, fields: Sequence[Any]) -> str:
    return f"static const {kind} model = {_braced(fields)};\n"


def _unused(row: str) -> str:
    """Casts that silence warnings of unused parameters."""
    return "".join(f"    (void){name};\n" for name in ("score", "rank") if f"*{name}" not in row)


def _quoted(text: str) -> str:
    """C string literal in ASCII, with UTF-8 as octal escapes."""
    found = ""
    for byte in text.encode("utf-8"):
        plain = 32 <= byte < 127 and byte not in b'"\\?'
        found += chr(byte) if plain else f"\\{byte:03o}"
    return f'"{found}"'
