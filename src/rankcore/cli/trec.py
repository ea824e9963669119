"""What ``rankcore evaluate`` does with runs and judgments in TREC's form, as trec_eval does it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankcore.metrics import Comparison, Convention, Evaluation, compare_evaluations
from rankcore.metrics import evaluate as measure
from rankcore.metrics.conventions import resolve
from rankcore.metrics.scorers import ranking_scores

if TYPE_CHECKING:
    from rankcore.datasets import Qrels

# What is printed if no measure is asked for: the usual ones of trec_eval's report.
MEASURES = (
    "map",
    "Rprec",
    "recip_rank",
    "P.5,10,20",
    "recall.100",
    "ndcg",
    "ndcg_cut.5,10,20",
)


def is_run(path: Path) -> bool:
    """Whether a file begins with a line of a TREC run: six words, the fifth a number.

    Parameters
    ----------
    path : Path
        gzip and bzip2 are looked into; empty lines are skipped.

    Returns
    -------
    bool
        False if there is no such file.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is a damaged archive.
    """
    from rankcore.datasets.streams import open_lines

    if not path.is_file():
        return False
    with open_lines(path) as blocks:
        starts = (bytes(text[:4096]).lstrip() for text, _ in blocks)
        words = next(filter(None, starts), b"").split(b"\n", 1)[0].split()
    try:
        return len(words) == 6 and float(words[4]) is not None
    except ValueError:
        return False


def evaluate_runs(
    runs: Sequence[Path],
    qrels: str,
    *,
    metrics: Sequence[str] = MEASURES,
    convention: str | Convention = "trec_eval",
    rel: float | None = None,
    complete: bool = False,
) -> dict[str, Evaluation]:
    """Measure runs on the same judgments.

    Parameters
    ----------
    runs : sequence of Path
        TREC runs.
    qrels : str
        Path of the judgments, or ``-`` for standard input.
    metrics : sequence of str
        Names of measures.
    convention : str or Convention
        What they mean.
    rel : float, optional
        The smallest relevant label; None: the convention's.
    complete : bool
        Whether judged queries that a run lacks count (0), or are left out.

    Returns
    -------
    dict of str to Evaluation
        By the names of the files, or by their paths if names repeat.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a file is malformed or given twice, and as `rankcore.metrics.evaluate`.
    """
    from rankcore.datasets import read_qrels

    meant = resolve(convention, rel=rel)
    judged = read_qrels(sys.stdin.buffer if qrels == "-" else qrels)
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{name} is given twice")
    return {
        name: _evaluate(run, judged, metrics, meant, complete)
        for name, run in zip(names, runs, strict=True)
    }


def _evaluate(
    run: Path, qrels: Qrels, metrics: Sequence[str], convention: Convention, complete: bool
) -> Evaluation:
    from rankcore.datasets import join_run, read_run

    joined = join_run(read_run(run), qrels, missing="zero" if complete else "skip")
    return measure(
        joined.y,
        joined.s,
        qid=joined.qid,
        # trec_eval's rule; where the order of rows decides, it is that of the file.
        docid=joined.docid if convention.ties == "last" else None,
        retrieved=joined.retrieved,
        metrics=metrics,
        convention=convention,
    )


def evaluate_scores(
    model: Any,
    X: Any,
    y: Any,
    qid: Any,
    metrics: Sequence[str] | None,
    convention: Convention,
) -> Evaluation:
    """Measure how a model ranks rows within their queries.

    Parameters
    ----------
    model : estimator
        Fitted; a ranker, or a learner whose ``project`` or ``decision_function`` gives one number
        per row.
    X, y, qid
        Rows, labels and queries.
    metrics : sequence of str, optional
        Names of measures; by default a few usual ones.
    convention : Convention

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        As `rankcore.metrics.evaluate`.
    """
    scores = ranking_scores(model, X, qid)
    metrics = metrics or ["ndcg@10", "map", "mrr", "P@10"]
    return measure(y, scores, qid=qid, metrics=metrics, convention=convention)


def compared(evaluations: dict[str, Evaluation]) -> Comparison:
    """The first run against each of the others.

    Parameters
    ----------
    evaluations : dict of str to Evaluation

    Returns
    -------
    Comparison
    """
    return compare_evaluations(evaluations, baseline=next(iter(evaluations)))


def lines(evaluation: Evaluation, per_query: bool) -> Iterator[str]:
    """What trec_eval prints: measure, query or ``all``, value.

    Parameters
    ----------
    evaluation : Evaluation
    per_query : bool
        Whether the values of the queries come before the means.

    Yields
    ------
    str
        A line without its end.
    """
    queries: list[Any] = evaluation.qid.tolist()
    if per_query:
        for i, query in enumerate(queries):
            for name, values in evaluation.per_query.items():
                yield f"{name:<22}\t{query}\t{values[i]:6.4f}"
    yield f"{'num_q':<22}\tall\t{len(queries)}"
    for name, mean in evaluation.items():
        yield f"{name:<22}\tall\t{mean:6.4f}"


def as_object(
    evaluations: dict[str, Evaluation], comparison: Comparison | None, per_query: bool
) -> dict[str, Any]:
    """The same for JSON.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
    comparison : Comparison or None
    per_query : bool

    Returns
    -------
    dict
        Numbers that are not defined (NaN) are None.
    """
    found: dict[str, Any] = {"runs": {}}
    for run, evaluation in evaluations.items():
        found["runs"][run] = {
            "queries": len(evaluation.qid),
            "mean": means(evaluation),
        }
        if per_query:
            found["runs"][run]["per_query"] = {
                query: {name: _or_none(x[i]) for name, x in evaluation.per_query.items()}
                for i, query in enumerate(evaluation.qid.tolist())
            }
    if comparison is not None:
        found["contrasts"] = [asdict(contrast) for contrast in comparison]
    return found


def means(evaluation: Evaluation) -> dict[str, float | None]:
    """The means for JSON.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    dict
        None where none is defined (NaN), for which JSON has no number.
    """
    return {name: _or_none(mean) for name, mean in evaluation.items()}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
