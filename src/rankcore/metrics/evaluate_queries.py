"""Validated labels and scores, and values of measures for each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.ids import as_column
from rankcore._core.inputs import reject_mask
from rankcore._core.labels import as_grades
from rankcore._core.numbers import Floats, as_reals, as_vector, check_lengths
from rankcore._core.queries import Queries, group_rows, query_numbers, run_blocks
from rankcore._ext import measures as kernels
from rankcore._ext.concordance import sort_queries
from rankcore.metrics.conventions import Convention
from rankcore.metrics.names import LARGEST_CUT
from rankcore.metrics.registry import MAXIMUM_LABEL, MEASURES, UNJUDGED_LABEL, Measure


@dataclass(frozen=True)
class Judged:
    """Labels and scores grouped by query; kernels check that they are finite."""

    labels: Floats
    scores: Floats
    queries: Queries

    def by_id(self, docid: Any) -> Judged:
        """Sort the rows of each query by ascending document id, if ids are given."""
        if docid is None:
            return self
        ids = as_column(docid, "docid")
        n = self.labels.size
        if ids.shape != (n,):
            raise ValueError(f"docid must have one entry for each of the {n} rows; got {ids.shape}")
        try:
            ascending = np.argsort(ids, kind="stable")
        except TypeError:
            raise TypeError(
                "docid must be of one type that can be sorted, such as strings"
            ) from None
        by_query = np.argsort(query_numbers(self.queries)[ascending], kind="stable")
        return replace(self, queries=replace(self.queries, rows=ascending[by_query]))

    def sorted(self, n_jobs: int | None) -> Judged:
        """Sort each query by descending score, so that kernels need not sort."""
        order = np.empty(self.scores.size, dtype=np.int64)

        def run(first: int, last: int) -> None:
            sort_queries(self.scores, self.queries.rows, self.queries.bounds, first, last, order)

        run_blocks(run, self.queries.bounds, n_jobs)
        queries = Queries(self.queries.ids, self.queries.bounds, None)
        return Judged(self.labels[order], self.scores[order], queries)


def judged(y_true: Any, y_score: Any, qid: Any, n_jobs: int | None = None) -> Judged:
    """Validate labels and scores, and group them by query."""
    labels, scores = as_vector(as_grades(y_true, None)[0], "y_true"), as_vector(y_score, "y_score")
    check_rows(labels, scores)
    return Judged(labels, scores, group_rows(qid, labels.size, n_jobs))


def check_rows(labels: NDArray[Any], scores: NDArray[Any]) -> None:
    """Raise ValueError unless labels and scores have the same length, above 0."""
    check_lengths(y_true=labels, y_score=scores)
    if labels.size == 0:
        raise ValueError("y_true and y_score are empty; a measure requires at least one row")


# The kernel's struct of a measure.
_LAYOUT = np.asarray(kernels.layout()).dtype


def measure_queries(
    data: Judged,
    measures: Sequence[Measure],
    convention: Convention,
    *,
    retrieved: Any = None,
    unjudged: Any = None,
    n_jobs: int | None = None,
) -> Floats:
    """Measure each query, shape (n_measures, n_queries); NaN for omitted queries.

    Queries are sorted once, or twice if only some measures distinguish unjudged documents. Ties are
    in row order (`Judged.by_id`).
    """
    labels, scores, queries = data.labels, data.scores, data.queries
    if convention.single_precision:
        with np.errstate(over="ignore"):  # reported as infinite, with its query
            scores = scores.astype(np.float32).astype(np.float64)
    n = labels.size
    retrieved_mask = None if retrieved is None else _as_mask(retrieved, n, "retrieved")
    task = _Task(scores, labels, queries, retrieved_mask, convention, n_jobs)
    if convention.cutoff is not None:
        measures = [
            replace(m, k=convention.cutoff) if m.k is None and MEASURES[m.kind].default_cut else m
            for m in measures
        ]
    values = np.empty((len(measures), queries.bounds.size - 1))
    groups: dict[Any, list[int]] = {}
    for i, m in enumerate(measures):
        apart = unjudged is not None and MEASURES[m.kind].judgments
        groups.setdefault((apart, m.gains), []).append(i)
    for (apart, gains), members in groups.items():
        query_task = task
        if apart:
            nobodys = _as_mask(unjudged, n, "unjudged").view(np.bool_)
            query_task = replace(query_task, labels=np.where(nobodys, UNJUDGED_LABEL, labels))
        if gains is not None:
            query_task = replace(
                query_task, convention=replace(convention, gain=partial(_named_gains, gains))
            )
        values[members] = _averaged(query_task, [measures[i] for i in members])
    return values


@dataclass(frozen=True)
class _Task:
    """Input of the kernel."""

    scores: Floats
    labels: Floats
    queries: Queries
    retrieved: NDArray[np.uint8] | None
    convention: Convention
    n_jobs: int | None


def _averaged(task: _Task, measures: Sequence[Measure]) -> Floats:
    """Compute measures; one with levels is the mean over these."""
    parts = [
        [replace(m, x=x, levels=None) for x in m.levels] if m.levels else [m] for m in measures
    ]
    values = _run(task, [measure for part in parts for measure in part])
    ends = np.cumsum([len(part) for part in parts])
    return np.stack([part.mean(axis=0) for part in np.split(values, ends[:-1])])


def _run(task: _Task, measures: Sequence[Measure]) -> Floats:
    """Compute measures by the kernel."""
    convention = task.convention
    queries = task.queries
    gains = _given_gains(measures, convention, task.labels)
    sizes = np.diff(queries.bounds)
    plan = _plan(measures, convention)
    functions = [MEASURES[m.kind].value for m in measures]
    discounts = _discounts(convention.discount, measures, int(sizes.max()))
    values = np.empty((len(measures), sizes.size))

    def run(first: int, last: int) -> None:
        status, query = kernels.measure(
            task.scores,
            task.labels,
            gains,
            queries.rows,
            task.retrieved,
            queries.bounds,
            first,
            last,
            plan,
            functions,
            discounts,
            kernels.Ties[convention.ties.upper()],
            values,
        )
        if status:
            said = kernels.Status(status).name.lower()
            raise _complaint(said, queries.ids[query], convention, measures)

    run_blocks(run, queries.bounds, task.n_jobs)
    for measure, value in zip(measures, values, strict=True):
        _settle(value, measure, convention, queries, sizes)
    return values


def _named_gains(gains: Sequence[tuple[float, float]], labels: Floats) -> Floats:
    """Replace some labels by their custom gains."""
    worth = labels.copy()
    for label, gain in gains:
        worth[labels == label] = gain
    return worth


def as_cutoff(k: Any, name: str = "k", *, needed: bool = False) -> int | None:
    """Return a valid cut-off: an integer from 1 to 2**63 - 1, or None if not ``needed``."""
    if k is None and not needed:
        return None
    if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)) or k < 1:
        allowed = "an integer of at least 1" + ("" if needed else ", or None")
        raise ValueError(f"{name} must be {allowed}; got {k!r}")
    if k > LARGEST_CUT:
        raise ValueError(f"{name} must be below 2**63; got {k!r}")
    return int(k)


def _as_mask(flags: Any, n: int, name: str) -> NDArray[np.uint8]:
    reject_mask(flags, name)
    mask = np.asarray(flags)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise ValueError(
            f"{name} must be {n} booleans, one for each row; got {mask.dtype} of shape {mask.shape}"
        )
    return np.ascontiguousarray(mask).view(np.uint8)


def _given_gains(
    measures: Sequence[Measure], convention: Convention, labels: Floats
) -> Floats | None:
    """Compute the gains of rows by a table or function; None for gains with a name."""
    gain = convention.gain
    gained = [m for m in measures if MEASURES[m.kind].gained]
    if isinstance(gain, str) or not any(m.gain is None for m in gained):
        return None
    if callable(gain):
        gains = as_reals(gain(labels), "the gains")
        if gains.shape != labels.shape:
            raise ValueError(
                f"gain must map {labels.size} labels to as many numbers; got shape {gains.shape}"
            )
        return np.require(gains, np.float64, ["C", "A"])
    table = np.asarray(gain, dtype=np.float64)
    in_table = (labels >= 0) & (labels < table.size)
    level = np.where(in_table, labels, 0).astype(np.int64)
    if not (in_table & (level == labels)).all():
        odd = labels[~(in_table & (level == labels))][0]
        raise ValueError(
            f"gain must have an entry for each label; its {table.size} entries are for labels 0 to "
            f"{table.size - 1}; got {odd:g}"
        )
    return table[level]


def _plan(measures: Sequence[Measure], convention: Convention) -> NDArray[Any]:
    """Convert measures to structs of the kernel."""
    plan = np.zeros(len(measures), dtype=_LAYOUT)
    for row, m in zip(plan, measures, strict=True):
        kind = MEASURES[m.kind]
        for name in ("whole", "gained", "ideal", "ordered", "counted", "bounded"):
            row[name] = getattr(kind, name)
        if kind.gained:
            gain = m.gain or convention.gain
            row["given"] = not isinstance(gain, str)
            row["exp2"] = isinstance(gain, str) and gain == "exp2"
        row["clipped"] = convention.negative == "zero"
        row["k"] = m.k or LARGEST_CUT
        row["rel"] = convention.rel if m.rel is None else m.rel
        row["up"] = convention.recall_points == "up"
        row["x"] = 1.0 if m.x is None else m.x
        row["weights"] = m.weights or 0.0
        if kind.settings is not None:
            kind.settings(row, m, convention)
    return plan


def _discounts(name: str, measures: Sequence[Measure], longest: int) -> Floats:
    """Return the reciprocal discounts of the positions, up to the maximum depth of DCG."""
    depth = max([m.k or longest for m in measures if MEASURES[m.kind].gained], default=0)
    position = np.arange(1, min(depth, longest) + 1, dtype=np.float64)
    if name == "letor":
        return 1.0 / np.maximum(np.log2(position), 1.0)
    return 1.0 / np.log2(1.0 + position)


def _complaint(
    status: str, query: Any, convention: Convention, measures: Sequence[Measure]
) -> Exception:
    if status == "memory":
        return MemoryError(f"{named(query)} does not fit into memory")
    ordered = {m.kind for m in measures if MEASURES[m.kind].ordered}
    bounds = [m.x or MAXIMUM_LABEL for m in measures if MEASURES[m.kind].bounded]
    what = {
        "score": "y_score must be finite" + " as float32" * convention.single_precision,
        "label": "y_true must be finite",
        "gain": "gain must be finite for every label",
        "negative": "ndcg is not defined for negative gains: shift the labels, or choose another "
        "gain; got one",
        "tied": f"{', '.join(sorted(ordered))} has no "
        "expectation over the orders of tied documents in closed form: choose another "
        "ties=, such as the one of convention='trec_eval' with docid=; got ties",
        "beyond": "ERR requires labels up to "
        f"{max(bounds, default=0):g}: name "
        "the maximum, as in 'ERR(max_rel=5)@10'; got one above",
        "huge": "y_true must be labels whose gains do not add up beyond float64 (choose "
        "gain='linear', or a table)",
    }
    return ValueError(f"{what[status]}, in {named(query)}")


def named(query: Any) -> str:
    """Name a query in messages."""
    return f"query {(query.item() if isinstance(query, np.generic) else query)!r}"


def _settle(
    values: Floats,
    measure: Measure,
    convention: Convention,
    queries: Queries,
    sizes: NDArray[np.int64],
) -> None:
    """Apply the convention to queries that are empty, short, or of one document."""
    empty = convention.empty if measure.empty is None else measure.empty
    undefined = np.isnan(values)
    if measure.kind == "ndcg" and convention.short_ndcg == "zero" and measure.k is not None:
        values[sizes < measure.k] = 0.0
    if measure.kind == "precision" and convention.short_precision == "zero":
        values[sizes < (measure.k or 0)] = 0.0
    if undefined.any():
        if empty == "raise":
            query = queries.ids[np.flatnonzero(undefined)[0]]
            raise ValueError(f"{named(query)} has nothing relevant, so {measure.kind} is undefined")
        number = 0.0 if MEASURES[measure.kind].defined else empty
        values[undefined] = np.nan if empty == "skip" else number
    if not MEASURES[measure.kind].dcg:
        return
    if convention.single != "value" and (sizes == 1).any():
        if convention.single == "raise":
            query = queries.ids[np.flatnonzero(sizes == 1)[0]]
            raise ValueError(f"{named(query)} has one document, so there is nothing to rank")
        values[sizes == 1] = np.nan
