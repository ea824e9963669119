"""Ranking SVMs for many values of C: each fit starts at the previous solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import EvalSet, RowsLike
from rankcore._core.equal_rows import EQUAL_WITHIN_QUERIES, equal_in_groups
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count
from rankcore._core.sources import RowBlocks
from rankcore._core.warning import warn, warns_once
from rankcore._ext.rows import Rows
from rankcore.metrics.tables import Table
from rankcore.progress import Progress, report
from rankcore.ranking.base import ModelState
from rankcore.ranking.data import RankingData, held_out_sets, ranking_source
from rankcore.ranking.pairs import Pairing
from rankcore.ranking.svm._estimator import RankSVM, column_factors
from rankcore.ranking.svm._problems import Problem
from rankcore.ranking.svm.newton import Step, minimise, step_line
from rankcore.ranking.validation import Validation, merit

# Ends of the default path, as powers of ten.
LEAST, MOST = -4, 2


@dataclass(frozen=True)
class SVMPath:
    """Ranking SVMs in ascending order of C. ``print`` shows a table.

    Attributes
    ----------
    Cs : ndarray of float64, shape (n_models,)
    estimators : tuple of RankSVM
        Fitted estimators, one per C.
    lengths : ndarray of float64, shape (n_models,)
        Norms |w| of the weights of standardised features, or of the function.
    measure : str or None
        Measure of the held-out rows.
    values : ndarray of float64, shape (n_models,)
        Values of the measure; empty without held-out rows.
    best : int or None
        Index of the maximum value, with the smallest C among ties.
    """

    Cs: Floats
    estimators: tuple[RankSVM, ...]
    lengths: Floats
    measure: str | None
    values: Floats
    best: int | None

    def __str__(self) -> str:
        heads = ["C", "objective", "gap", "|w|", "steps", *([self.measure] if self.measure else [])]
        rows = []
        for k, estimator in enumerate(self.estimators):
            value = [f"{self.values[k]:.4f}" + " *" * (k == self.best)] if self.measure else []
            columns = f"{self.Cs[k]:.4g}", f"{estimator.objective_:.6g}", f"{estimator.gap_:.1e}"
            rows.append([*columns, f"{self.lengths[k]:.4g}", str(estimator.n_iter_), *value])
        return str(Table(heads, rows, "gap: maximum distance of the objective from its minimum"))


@warns_once
def ranksvm_path(
    X: RowsLike | RowBlocks,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    Cs: int | Sequence[float] = 12,
    sample_weight: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pairs_weight: ArrayLike | None = None,
    eval_set: EvalSet | None = None,
    eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
    eval_group: ArrayLike | Sequence[ArrayLike] | None = None,
    early_stopping_rounds: int | None = None,
    **params: Any,
) -> SVMPath:
    """Fit ranking SVMs for ascending values of C, each starting at the previous one.

    Parameters
    ----------
    X : array-like or scipy sparse, shape (n_samples, n_features)
        Finite. CSR and C-ordered float32 or float64 arrays are not copied: do not change them
        before the call returns. With ``kernel="precomputed"``, the kernel matrix, shape (n_samples,
        n_samples). Rows on disk, from `rankcore.datasets.open_rows`, include their labels and
        queries, and are read into memory.
    y : array-like, shape (n_samples,), optional
        Labels, higher for more relevant: any real numbers, or words in the order of ``classes`` or
        of an ordered categorical. Optional with ``pairs``.
    qid : array-like, shape (n_samples,), or str, optional
        Query of each row, of any type and in any order, or the name of a column of a DataFrame
        X; by default, a column named "qid" if X has one. None: all rows belong to one query.
    group : array-like of int, optional
        Sizes of queries with contiguous rows, instead of ``qid``.
    Cs : int or sequence of float, default=12
        Values of C, or the number of values from 1e-4 to 1e2 on a logarithmic scale.
    sample_weight : array-like, optional
        Weights of rows, shape (n_samples,); or of queries, in order of first appearance, shape
        (n_queries,), which are those of all of their rows. Rows of weight 0 are left out. With
        ``balance="query"`` the weight of a query is the mean of its rows' positive weights,
        relative to that of all rows, and its pairs share it in proportion to the products of their
        rows' weights. With ``balance=None`` the weight of a pair is this product.
    pairs : array-like of int, shape (n_pairs, 2), optional
        Rows of the winner and the loser of each pair to learn from, instead of labels.
    pairs_weight : array-like, shape (n_pairs,), optional
        Weights of ``pairs``.
    eval_set, eval_qid, eval_group
        Held-out rows, on which ``eval_metric`` is measured for each C.
    early_stopping_rounds : int, optional
        Stop after this many consecutive values of C that do not improve ``eval_metric``.
    **params
        Other parameters of `RankSVM`, such as ``verbose=1`` to print a line per step.

    Returns
    -------
    SVMPath

    Raises
    ------
    ValueError, TypeError
        If input or parameters are invalid.

    Notes
    -----
    Data are checked and grouped into pairs once, and a kernel matrix is computed once.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(40, 20, random_state=0)
    >>> train = qid <= 30
    >>> path = rc.ranksvm_path(X[train], y[train], qid=qid[train], Cs=[0.001, 0.01, 0.1],
    ...                        eval_set=(X[~train], y[~train]), eval_qid=qid[~train])
    >>> path.best, [one.n_iter_ > 0 for one in path.estimators]
    (1, [True, True, True])
    """
    if early_stopping_rounds is not None:
        check_count(early_stopping_rounds, "early_stopping_rounds")
        if eval_set is None:
            raise ValueError("early_stopping_rounds requires eval_set; got eval_set=None")
    if "C" in params:
        raise TypeError("ranksvm_path requires the values of C as Cs; got C")
    check_cs(Cs, "Cs")
    values_of_c = as_cs(Cs)
    model = RankSVM(float(values_of_c[0]), **params)
    model._check_params()
    column = qid if isinstance(qid, str) else None
    held_out = held_out_sets(eval_set, eval_qid=eval_qid, eval_group=eval_group, column=column)
    y, words = model._graded(y, X, unused=pairs is not None)
    held_out = model._graded_sets(held_out, words, labelled=y is not None and pairs is None)
    model = model._with_names(column, words)
    data = RankingData(X, y, qid, group, sample_weight, pairs, pairs_weight, held_out)
    source: Any = ranking_source(data, as_rows=model._as_rows)
    rows = source.window.rows
    pairing, shadow, sets = model._begin(source, held_out)
    factors = column_factors(source, model)
    warn_of_ties(rows, pairing, "ranksvm_path")
    held = sets[0] if sets else None
    fitted, values = [], []
    with Problem(model, rows, pairing, source.weighted, factors) as problem:
        for fit in along(shadow, problem, values_of_c):
            fitted.append(fit)
            if held is None:
                continue
            values.append(held.measure(fit._scores(held.rows, held.queries))[0])
            stale = len(values) - 1 - _best(held, values)
            if early_stopping_rounds is not None and stale >= early_stopping_rounds:
                break
        lengths = [_length(problem, fit) for fit in fitted]
    measure = best = None
    if held is not None:
        measure, best = held.names[0].removeprefix("valid_"), _best(held, values)
    tried, norms = values_of_c[: len(fitted)], np.array(lengths)
    return SVMPath(tried, tuple(fitted), norms, measure, np.array(values), best)


def warn_of_ties(rows: Rows, pairing: Pairing, learner: str) -> None:
    """Warn if nothing can be learned because all compared rows are equal."""
    if equal_in_groups(rows, pairing.docs, pairing.bounds):
        warn(f"{learner} learned nothing: {EQUAL_WITHIN_QUERIES}")


def check_cs(Cs: Any, name: str) -> None:
    """Raise unless a parameter lists values of C, or is their number."""
    if isinstance(Cs, Integral) and not isinstance(Cs, bool):
        check_count(Cs, name)
        return
    values = np.asarray(Cs)
    listed = values.ndim == 1 and values.size and values.dtype.kind in "iuf"
    if not listed or not np.isfinite(values).all() or (values <= 0).any():
        raise ValueError(f"{name} must list finite numbers > 0, or be their number; got {Cs!r}")


def as_cs(Cs: int | Sequence[float]) -> Floats:
    """Return checked values of C, ascending."""
    if isinstance(Cs, Integral):
        return np.logspace(LEAST, MOST, int(Cs))
    return np.unique(np.asarray(Cs, dtype=np.float64))


def along(
    shadow: RankSVM, problem: Problem, Cs: Floats, before: int = 0, planned: int | None = None
) -> Iterator[RankSVM]:
    """Yield fitted copies of a model for successive values of C.

    ``before`` and ``planned`` are the numbers of previous and of all fits, for the progress.
    """
    w = problem.start(None)
    planned = Cs.size if planned is None else planned
    for number, C in enumerate(Cs.tolist(), before + 1):
        fit = copy(shadow)
        fit.C, fit._state = C, ModelState(None, settings={})

        def watch(_: Any, step: Step, one: RankSVM = fit, number: int = number) -> None:
            one._note(step)
            n, most = len(one._state.log), int(one.max_iter)
            report(Progress(number, planned, n, most, step.share, "gap", "steps"))
            if one.verbose:
                print(f"[{type(one).__name__}] {step_line(one, n, step)}")

        with problem.limits():
            solution = minimise(problem.steps(fit, w), watch)
        fit._take(problem, solution)
        fit._warn(solution)
        w = solution.w
        yield fit


def _best(held: Validation, values: list[float]) -> int:
    return int(np.argmax(merit(held.metrics[0], np.array(values))))


def _length(problem: Problem, model: RankSVM) -> float:
    w = problem.start(model._state.model)
    return float(np.sqrt(max(problem.space.dot(w, w), 0.0)))
