"""Several measures of one ranking at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.labels import as_grades, check_words
from rankcore._core.queries import query_mean
from rankcore.metrics.auc import auc_score
from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluate_queries import judged, measure_queries
from rankcore.metrics.names import greater_is_better, parse
from rankcore.metrics.pairwise import count_pairs
from rankcore.metrics.registry import MEASURES
from rankcore.metrics.tables import Table, Tabular

if TYPE_CHECKING:
    from pandas import DataFrame

# Default measures.
_DEFAULT = ("ndcg@10", "map", "mrr", "P@10")
# The value that trec_eval uses instead of 0 in logarithms.
_LEAST = 0.00001


def _geometric_mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(np.exp(query_mean(np.log(np.maximum(values, _LEAST)), weights)))


def _sum(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(np.nansum(values))


_OVER: dict[str, Callable[[Any, Any], float]] = {
    "mean": query_mean,
    "geometric": _geometric_mean,
    "sum": _sum,
}


class Evaluation(Tabular, Mapping[str, float]):
    """Result of `evaluate`: a mapping from the names given to means over queries.

    Parameters
    ----------
    per_query : dict of str to ndarray, shape (n_queries,)
        The value of each measure for each query; NaN for omitted queries.
    qid : ndarray, shape (n_queries,)
        The queries, in order of first appearance.
    convention : Convention
        Convention of the measures.
    weights : ndarray, shape (n_queries,), optional
        Weights of the queries in the means.
    over : dict of str to {"mean", "geometric", "sum"}, optional
        Aggregate over queries, for measures whose aggregate is not the mean.
    by_docid : bool, default=False
        Whether document ids were given, whose order breaks ties instead of that of the rows.
    sizes : ndarray of int64, shape (n_queries,), optional
        Number of rows of each query.

    Attributes
    ----------
    per_query, qid, convention, weights, over, by_docid, sizes
        As above.
    unit, units : str
        What has the values: ``"query"`` and ``"queries"``.

    See Also
    --------
    evaluate
    """

    # What has the values, as plots and frames call it: one, many, and its ids.
    unit, units, _ids = "query", "queries", "qid"

    def __init__(
        self,
        per_query: dict[str, NDArray[np.float64]],
        qid: NDArray[Any],
        convention: Convention,
        weights: NDArray[np.float64] | None = None,
        over: dict[str, str] | None = None,
        by_docid: bool = False,
        sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self.per_query = per_query
        self.sizes = sizes
        self.qid = qid
        self.convention = convention
        self.weights = weights
        self.by_docid = by_docid
        self.over = {name: "mean" for name in per_query} | (over or {})
        self._means = {
            name: _OVER[self.over[name]](values, weights) for name, values in per_query.items()
        }

    def __getitem__(self, name: str) -> float:
        return self._means[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._means)

    def __len__(self) -> int:
        return len(self._means)

    def __repr__(self) -> str:
        return f"Evaluation({self._means!r})"

    def _table(self) -> Table:
        rows = [
            (
                name,
                f"{mean:.0f}" if self.over[name] == "sum" else f"{mean:.4f}",
                str(int(np.isfinite(self.per_query[name]).sum())),
            )
            for name, mean in self._means.items()
        ]
        return Table(("measure", "mean", self.units), rows, self._caption)

    @property
    def _caption(self) -> str:
        return self.convention._describe_with_ids() if self.by_docid else str(self.convention)

    def to_frame(self, worst_first: str | None = None) -> DataFrame:
        """Convert values per query to a pandas DataFrame, one column per measure.

        Parameters
        ----------
        worst_first : str, optional
            Measure to sort by, the worst query first; undefined values last. None: the order of
            the queries.

        Returns
        -------
        pandas.DataFrame
            Indexed by query. The first column, ``n_rows``, has the number of rows of each query.

        Raises
        ------
        KeyError
            If ``worst_first`` is not among the measures.
        ModuleNotFoundError
            If pandas is not installed.

        Examples
        --------
        >>> import rankcore as rc
        >>> found = rc.metrics.evaluate([1, 0, 0, 1], [2, 1, 2, 1], qid=["a", "a", "b", "b"],
        ...                             metrics="mrr")
        >>> print(found.to_frame(worst_first="mrr"))
             n_rows  mrr
        qid
        b         2  0.5
        a         2  1.0
        """
        import pandas

        columns = {} if self.sizes is None else {"n_rows": self.sizes}
        index = pandas.Index(self.qid, name=self._ids)
        frame = pandas.DataFrame({**columns, **self.per_query}, index=index)
        if worst_first is None:
            return frame
        if worst_first not in self.per_query:
            raise KeyError(
                f"worst_first must be one of {', '.join(self.per_query)}; got {worst_first!r}"
            )
        ascending = greater_is_better(worst_first)
        return frame.sort_values(worst_first, ascending=ascending, kind="stable")


def evaluate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    metrics: str | Iterable[str] | None = None,
    convention: str | Convention | None = None,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    retrieved: ArrayLike | None = None,
    unjudged: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Evaluation:
    """Evaluate a ranking with several measures, sorting each query once.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True labels, higher for better: any finite numbers; or words in the order of ``labels`` or
        of an ordered categorical, which are the grades 0, 1 ...
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    metrics : str or iterable of str, optional
        By default ``["ndcg@10", "map", "mrr", "P@10"]``. Names as trec_eval, LightGBM, XGBoost,
        ranx or ir-measures write them: ``"ndcg@10"``,
        ``"ndcg_cut_10"``, ``"nDCG(dcg='exp-log2')@10"``, ``"map"``, ``"map@5-"``, ``"P_5"``,
        ``"P.5,10"`` (two measures), ``"P(rel=2)@10"``, ``"recall@20"``, ``"Rprec"``, ``"mrr"``,
        ``"recip_rank"``, ``"hit@10"``, ``"success_1"``, ``"auc"``, ``"misranking"``,
        ``"kendall_tau"``, ``"ERR@10"``, ``"RBP(p=0.8)"``, ``"bpref"``, ``"infAP"``,
        ``"judged@10"``, ``"hits@10"``, ``"F1@10"``, ``"SetF"``, ``"IPrec@0.1"``, ``"gm_map"``,
        ``"num_rel_ret"``, and sets of trec_eval: ``"official"``, ``"set"``, ``"all_trec"``. The
        name selects the measure; the convention defines its details.
    convention : str or Convention, optional
        Convention of gains, ties, queries without relevant documents and more: ``"sklearn"``,
        ``"trec_eval"`` (version 10; ``"trec_eval-9"``), ``"lightgbm"``, ``"xgboost"``,
        ``"xgboost-"``, ``"letor3"``, ``"letor4"``, ``"ranx"``, or a `Convention`. None:
        `Convention` ``()``.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids. If the convention breaks ties by row order, their order is used instead:
        trec_eval sorts them in descending order.
    retrieved : array-like of bool, shape (n,), optional
        False for a document that was judged but is not in the ranking: it counts as a relevant
        document and in the ideal order, but is not found. Its score is ignored.
    unjudged : array-like of bool, shape (n,), optional
        True for a document that nobody judged; its label should be 0. Most measures treat it as not
        relevant; bpref, infAP and the shares of judged documents do not. None: all were judged. A
        label below 0 marks a document that was in the pool, but not in the judged sample.
    labels : array-like of str, shape (n_grades,), optional
        All labels, if they are words, lowest grade first; ``grades_`` of a model.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    Evaluation
        A mapping from the names to means over queries, with ``per_query`` values.

    Raises
    ------
    ValueError
        For an unknown name (the nearest is suggested), arrays that do not match, numbers that are
        not finite, or queries that the convention treats as an error.
    TypeError
        For labels or scores that are not numbers.

    Notes
    -----
    A query of n documents takes O(n log n) at most, and O(n) if all measures are cut off within the
    first 64 positions and n is several times that. Memory beyond the inputs (and float64 copies of
    other types) is proportional to the longest query. Rows that are not grouped by query are sorted
    first, with up to 60 bytes per row; ``docid`` takes 40.

    Examples
    --------
    >>> import rankcore as rc
    >>> y = [2, 0, 1, 0, 0, 1]
    >>> s = [0.3, 0.9, 0.1, 0.8, 0.2, 0.5]
    >>> result = rc.metrics.evaluate(y, s, qid=[1, 1, 1, 2, 2, 2], metrics=["ndcg@10", "mrr"])
    >>> print(result)
    measure    mean  queries
    ndcg@10  0.6450        2
    mrr      0.5000        2
    exp2 gain, log2 discount, ties averaged, empty queries 0
    """
    metrics = _DEFAULT if metrics is None else metrics
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise ValueError("metrics is empty; name at least one, such as 'ndcg@10'")
    measures = {name: measure for written in names for name, measure in parse(written)}
    meant = resolve(convention)
    words = None if labels is None else check_words(labels, "labels")
    truth, _ = as_grades(y_true, words, "evaluate", "labels")
    data = judged(truth, y_score, qid, n_jobs)
    ids = data.queries.ids
    ranked = data.by_id(docid)
    kinds = {name: MEASURES[m.kind] for name, m in measures.items()}
    ranking = {name: m for name, m in measures.items() if kinds[name].value is not None}
    pair_measures = {
        name: m for name, m in measures.items() if m.kind == "auc" or kinds[name].of_pairs
    }
    if pair_measures and retrieved is not None:
        raise ValueError(
            f"{next(iter(pair_measures))} compares the scores of all documents, and some were not "
            "retrieved"
        )
    walks = len({"areas" if kinds[name].of_pairs is None else "pairs" for name in pair_measures})
    if walks + bool(ranking) > 1 and not meant.single_precision and unjudged is None:
        data = ranked = ranked.sorted(n_jobs)
    per_query: dict[str, NDArray[np.float64]] = {}
    if ranking:
        values = measure_queries(
            ranked,
            [*ranking.values()],
            meant,
            retrieved=retrieved,
            unjudged=unjudged,
            n_jobs=n_jobs,
        )
        per_query.update(zip(ranking, values, strict=True))
    grouped: Any = None if qid is None else data.queries  # one huge query is handled separately
    counts = None
    for name, m in measures.items():
        if m.kind == "n_queries":
            per_query[name] = np.ones(ids.size)
    for name, m in pair_measures.items():
        count_pairs_by = kinds[name].of_pairs
        if count_pairs_by is None:
            rel = meant.rel if m.rel is None else m.rel
            area: Any = auc_score(
                data.labels, data.scores, qid=grouped, rel=rel, per_query=True, n_jobs=n_jobs
            )
            per_query[name] = area[1]
            continue
        counts = counts or count_pairs(data, n_jobs)
        per_query[name] = count_pairs_by(counts)
    values_of = {name: per_query[name] for name in measures}
    over = {name: m.over for name, m in measures.items()}
    weights: Any = query_weight  # checked there
    return Evaluation(
        values_of,
        ids,
        meant,
        weights,
        over,
        by_docid=docid is not None,
        sizes=np.diff(data.queries.bounds),
    )
