"""``rankcore evaluate`` on TREC runs and judgments, as in trec_eval."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankcore.cli.terminal import complain, finite
from rankcore.metrics import Comparison, Convention, Evaluation, compare_evaluations, trec_names
from rankcore.metrics import evaluate as measure
from rankcore.metrics.names import parse

if TYPE_CHECKING:
    from rankcore.datasets import JoinedRun, Qrels, Run

# Default measures, as in trec_eval.
MEASURES = ("official",)


def is_run(path: Path) -> bool:
    """Return whether a file starts like a TREC run: at least six words, the fifth a number.

    Empty lines and comments are skipped. False if the file does not exist.
    """
    words = _first_words(path)
    try:
        return len(words) >= 6 and float(words[4]) is not None
    except ValueError:
        return False


def is_table(path: Path) -> bool:
    """Return whether a file starts like CSV, JSON lines or Parquet, and not like a TREC run."""
    from rankcore.datasets.parquet_rows import is_parquet

    if not path.is_file() or is_run(path):
        return False
    line = b" ".join(_first_words(path))
    return is_parquet(path) or line.startswith(b"{") or b"," in line or b";" in line


def _first_words(path: Path) -> list[bytes]:
    """Split the first line that is neither empty nor a comment; no words without a file."""
    from rankcore.datasets.streams import open_lines

    if not path.is_file():
        return []
    with open_lines(path) as blocks:
        lines = (line.split() for text, _ in blocks for line in bytes(text).splitlines())
        return next((words for words in lines if words and not words[0].startswith(b"#")), [])


def distinct(
    files: Sequence[Path], short: Callable[[Path], str] = lambda path: path.name
) -> list[str]:
    """Shorten paths to names of files, unless some names are the same."""
    names = [short(path) for path in files]
    return names if len({*names}) == len(names) else [*map(str, files)]


def _judgments(qrels: str) -> Qrels:
    """Read judgments from qrels, or from a LETOR file, whose second word is qid:.

    Documents of a LETOR file have the names of ``rankcore predict --run``.
    """
    from rankcore.datasets import Qrels, load_letor, read_qrels

    if qrels == "-":
        return read_qrels(sys.stdin.buffer)
    words = _first_words(Path(qrels))
    if len(words) != 4 and is_table(Path(qrels)):
        raise ValueError(
            f"{qrels} is a table; the judgments of a run are qrels (query 0 document grade, as "
            "rankcore.datasets.write_qrels writes them) or a LETOR file: convert it, or pass the "
            "model instead of its run"
        )
    if len(words) < 2 or not words[1].startswith(b"qid:"):
        return read_qrels(qrels)
    rows = load_letor(qrels, ensure_all_finite=False)  # only labels are used
    if rows.qid is None:
        raise ValueError(f"{qrels} has lines without qid:, and so no judgments of queries")
    if (rows.y % 1 != 0).any():
        label = rows.y[rows.y % 1 != 0][0]
        raise ValueError(f"{qrels}: judgments must be whole numbers; got {label:g}")
    ids = document_names(rows.qid, rows.docid)
    return Qrels(rows.qid.astype(str), ids, rows.y.astype("int64"))


def evaluate_runs(
    runs: Sequence[Path],
    qrels: str,
    convention: Convention,
    *,
    metrics: Sequence[str] = MEASURES,
    complete: bool = False,
    depth: int | None = None,
) -> Report:
    """Measure TREC runs on the same judgments: qrels or a LETOR file, or ``-``, qrels from stdin.

    ``complete`` counts judged queries that a run lacks as 0; ``depth`` is the maximum number of
    documents per query. Runs are named by their files, or by paths if names repeat.
    """
    from rankcore.datasets import join_run, read_run

    judged = _judgments(qrels)
    names = distinct(runs)
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{name} is passed twice")
    sets = trec_names.SETS
    members = [
        member for name in metrics for member in sets.get(name, (name,)) if member != "runid"
    ]
    # Named parameters override the default of a set.
    default = trec_names.STRING
    named = next((member for member in metrics if member.startswith(f"{default}.")), default)
    members = list(dict.fromkeys(named if _is_string(member) else member for member in members))
    numbers = [member for member in members if not _is_string(member)]
    length = _length(named)
    titles: list[str] = []
    for one in members:
        string = [one.replace(".", "_", 1)] if _is_string(one) else []
        titles += string or [title for title, _ in parse(one)]
    evaluations, tags, strings = {}, {}, {}
    for name, path in zip(names, runs, strict=True):
        run = read_run(path)
        tags[name] = run.tag
        run = _top(run, depth, convention)
        joined = join_run(run, judged, missing="zero" if complete else "skip")
        if not (joined.retrieved & ~joined.unjudged).any():
            complain(
                f"no document of {name} is judged, and so its measures are 0: the documents of the "
                f"run are named as {str(run.docid[0])!r}, those of the judgments as "
                f"{str(judged.docid[0])!r}"
            )
        evaluations[name] = measure(
            joined.y,
            joined.s,
            qid=joined.qid,
            # trec_eval's rule; if the order of rows matters, it is that of the file.
            docid=joined.docid if convention.ties == "last" else None,
            retrieved=joined.retrieved,
            unjudged=joined.unjudged,
            metrics=numbers or ["num_q"],
            convention=convention,
        )
        if len(numbers) < len(members):
            strings[name] = _relevance_strings(joined, length, convention)
    return Report(
        evaluations, titles, tags if {"runid", *trec_names.SETS} & set(metrics) else {}, strings
    )


@dataclass(frozen=True)
class Report:
    """Measured runs."""

    evaluations: dict[str, Evaluation]
    titles: list[str]  # measures to print, in this order
    tags: dict[str, str]  # comparison of the runs; empty unless requested
    # by run and query, the relevance of the first documents as letters; empty unless requested
    strings: dict[str, dict[str, str]]

    def lines(self, name: str, per_query: bool) -> Iterator[str]:
        """Yield the lines of trec_eval for a run: measure, query or ``all``, value.

        With ``per_query``, the values of queries, sorted by their bytes, precede the means.
        """
        evaluation = self.evaluations[name]
        queries = evaluation.qid.tolist()
        if per_query:
            keys = [query.encode("utf-8", "surrogateescape") for query in queries]
            for i in sorted(range(len(queries)), key=keys.__getitem__):
                for title in self.titles:
                    if _is_string(title):
                        value = f"'{self.strings[name][queries[i]]}'"
                    elif evaluation.over[title] == "geometric" or title.lower() in (
                        "num_q",
                        "numq",
                    ):
                        continue
                    else:
                        value = _number(evaluation, title, evaluation.per_query[title][i])
                    yield f"{title:<22}\t{queries[i]}\t{value}"
        if name in self.tags:
            yield f"{'runid':<22}\tall\t{self.tags[name]}"
        for title in self.titles:
            if not _is_string(title):
                yield f"{title:<22}\tall\t{_number(evaluation, title, evaluation[title])}"


def _number(evaluation: Evaluation, name: str, value: float) -> str:
    whole = evaluation.over[name] == "sum" and not math.isnan(value)
    return f"{value:.0f}" if whole else f"{value:6.4f}"


def _is_string(name: str) -> bool:
    string = trec_names.STRING
    return name == string or name.startswith((f"{string}.", f"{string}_"))


def _length(name: str) -> int:
    """Return the length of a relstring."""
    number = name.partition(".")[2] or "10"
    if not number.isdecimal():
        raise ValueError(f"{name!r}: relstring takes a number of documents, such as relstring.20")
    return int(number)


def _relevance_strings(joined: JoinedRun, length: int, convention: Convention) -> dict[str, str]:
    """Write relstrings by query: labels of the first documents, - for unjudged, . for omitted."""
    letters: dict[str, list[str]] = {query: [] for query in joined.qid.tolist()}
    for row in _ranked(joined.qid, joined.docid, joined.s, convention):
        word = letters[str(joined.qid[row])]
        if joined.retrieved[row] and len(word) < length:
            y = int(joined.y[row])
            word.append(
                "-" if joined.unjudged[row] else "." if y < 0 else str(y) if y < 10 else ">"
            )
    return {query: "".join(letters_of_query) for query, letters_of_query in letters.items()}


def _ranked(qid: Any, docid: Any, scores: Any, convention: Convention) -> Any:
    """Order rows query by query, the best document first."""
    import numpy as np

    if convention.single_precision:
        scores = scores.astype(np.float32)
    queries = np.unique(qid, return_inverse=True)[1]
    rows = np.arange(len(qid))
    if convention.ties == "last":
        rows = rows[np.argsort(docid, kind="stable")][::-1]
    return rows[np.lexsort((-scores[rows], queries[rows]))]


def document_names(qid: Any, ids: Any) -> Any:
    """Name rows in runs: document ids, or the index of each within its query."""
    import numpy as np

    from rankcore.datasets.ids import places

    if ids is None:
        order = np.argsort(qid, kind="stable")
        ids = np.empty(qid.size, dtype=np.int64)
        ids[order] = places(qid[order]) + 1
    return ids.astype(str)


def _top(run: Run, depth: int | None, convention: Convention) -> Run:
    """Select the best documents of each query."""
    import numpy as np

    from rankcore.datasets import Run
    from rankcore.datasets.ids import places

    if depth is None:
        return run
    rows = _ranked(run.qid, run.docid, run.score, convention)
    kept = np.sort(rows[places(run.qid[rows]) < depth])
    return Run(run.qid[kept], run.docid[kept], run.score[kept], run.tag)


def compared(evaluations: dict[str, Evaluation]) -> Comparison | None:
    """Compare the first run or model with each of the others, if there are any."""
    if len(evaluations) == 1:
        return None
    return compare_evaluations(evaluations, baseline=next(iter(evaluations)))


def as_object(
    evaluations: dict[str, Evaluation],
    comparison: Comparison | None,
    per_query: bool,
    systems: str = "runs",
) -> dict[str, Any]:
    """Convert results for JSON, with None for NaN."""
    result: dict[str, Any] = {systems: {}}
    for run, evaluation in evaluations.items():
        result[systems][run] = {"queries": len(evaluation.qid), "mean": means(evaluation)}
        if per_query:
            result[systems][run]["per_query"] = {
                query: {name: finite(float(x[i])) for name, x in evaluation.per_query.items()}
                for i, query in enumerate(evaluation.qid.tolist())
            }
    if comparison is not None:
        result["contrasts"] = [asdict(contrast) for contrast in comparison]
    return result


def means(evaluation: Evaluation) -> dict[str, float | None]:
    """Convert means for JSON, with None for NaN."""
    return {name: finite(float(mean)) for name, mean in evaluation.items()}
