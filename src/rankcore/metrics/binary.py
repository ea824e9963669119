"""Measures of binary relevance: how high the relevant documents stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc, signature
from typing import Any, TypedDict, TypeVar, Unpack

from numpy.typing import ArrayLike

from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluate_queries import as_cutoff
from rankcore.metrics.judged import judged
from rankcore.metrics.names import Measure
from rankcore.metrics.one_measure import PerQuery, mean_or_values, query_values

_F = TypeVar("_F", bound=Callable[..., Any])

_SECTIONS = """\
Parameters
----------
{own}rel : float, optional
    The smallest label that is relevant; None: the convention's, 1.
y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
    As `ndcg_score`.

Returns
-------
float, or (ndarray of query ids, ndarray of values)
    {values}; the latter if ``per_query``.

Raises
------
ValueError, TypeError
    As `ndcg_score`.

Notes
-----
{notes}

Examples
--------
"""
_ANY_K = "k : int, optional\n    Positions looked at; None: all.\n"
_K = "k : int\n    Positions looked at, at least 1.\n"
_SELECTED = "O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents."
_SORTED = "O(n log n) for a query of n documents."
_TIED = f"""\
{_SELECTED}
In a group of g tied documents, r of them relevant, a document is relevant with probability
r/g, and then each other one with (r-1)/(g-1): the expectation is a sum over positions."""
_PHI_COST = """\
O(n log n) for a query of n documents; if the m-th relevant one is in a group of g tied
documents, that group takes O(g m)."""
_Z_AND_M = """\
Z : int, optional
    What the sum is divided by; None: the number of relevant documents.
m : int, optional
    How many relevant documents are looked at; None: all.
"""


class _Options(TypedDict, total=False):
    """Keywords of every measure; `_Chosen` has their defaults."""

    qid: ArrayLike | None
    rel: float | None
    ties: str | None
    empty: float | str | None
    convention: str | Convention | None
    per_query: bool
    query_weight: ArrayLike | None
    docid: ArrayLike | None
    n_jobs: int | None


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    """Values of these keywords."""

    qid: ArrayLike | None = None
    rel: float | None = None
    ties: str | None = None
    empty: float | str | None = None
    convention: str | Convention | None = None
    per_query: bool = False
    query_weight: ArrayLike | None = None
    docid: ArrayLike | None = None
    n_jobs: int | None = None


_SHARED = signature(_Chosen).parameters.values()


def _measured(
    measure: Measure, y_true: ArrayLike, y_score: ArrayLike, **options: Unpack[_Options]
) -> float | PerQuery:
    one = _Chosen(**options)
    meant = resolve(one.convention, rel=one.rel, ties=one.ties, empty=one.empty)
    values = query_values(measure, meant, judged(y_true, y_score, one.qid), one.docid, one.n_jobs)
    return mean_or_values(values, one.per_query, one.query_weight)


def _described(
    own: str, notes: str = _SELECTED, values: str = "Between 0 and 1"
) -> Callable[[_F], _F]:
    """Add the keywords that all measures share to a signature, and their sections to the docs."""

    def put(function: _F) -> _F:
        form = signature(function)
        *named, _ = form.parameters.values()
        function.__signature__ = form.replace(parameters=[*named, *_SHARED])  # type: ignore[attr-defined]
        if function.__doc__:  # not under python -OO
            first, prompt, example = cleandoc(function.__doc__).partition(">>>")
            sections = _SECTIONS.format(own=own, notes=notes, values=values)
            function.__doc__ = f"{first}{sections}{prompt}{example}\n"
        return function

    return put


@_described(_ANY_K, notes=_TIED)
def average_precision(
    y_true: ArrayLike, y_score: ArrayLike, *, k: int | None = None, **options: Unpack[_Options]
) -> float | PerQuery:
    """Average precision: the mean of the precisions at the relevant documents.

    Its mean over queries is MAP.

    >>> import rankcore as rc
    >>> round(rc.metrics.average_precision([1, 0, 1], [3, 2, 1]), 4)
    0.8333
    """
    return _measured(Measure("average_precision", k=as_cutoff(k)), y_true, y_score, **options)


@_described(_K)
def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: int, **options: Unpack[_Options]
) -> float | PerQuery:
    """Share of the first k documents that are relevant.

    A query of fewer documents still divides by k, unless the convention says otherwise.

    >>> import rankcore as rc
    >>> rc.metrics.precision_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2)
    0.5
    """
    return _measured(Measure("precision", k=as_cutoff(k, needed=True)), y_true, y_score, **options)


@_described(_K)
def recall_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: int, **options: Unpack[_Options]
) -> float | PerQuery:
    """Share of the relevant documents that are among the first k.

    >>> import rankcore as rc
    >>> round(rc.metrics.recall_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2), 4)
    0.3333
    """
    return _measured(Measure("recall", k=as_cutoff(k, needed=True)), y_true, y_score, **options)


@_described(_K)
def hit_rate(
    y_true: ArrayLike, y_score: ArrayLike, k: int, **options: Unpack[_Options]
) -> float | PerQuery:
    """Share of the queries that have a relevant document among the first k.

    Also called success at k. Of a query with ties at the edge, the probability.

    >>> import rankcore as rc
    >>> rc.metrics.hit_rate([0, 1, 1, 0], [2, 1, 2, 1], k=1, qid=[1, 1, 2, 2])
    0.5
    """
    return _measured(Measure("hit", k=as_cutoff(k, needed=True)), y_true, y_score, **options)


@_described("", notes=_SORTED)
def r_precision(
    y_true: ArrayLike, y_score: ArrayLike, **options: Unpack[_Options]
) -> float | PerQuery:
    """Precision among as many documents as are relevant.

    >>> import rankcore as rc
    >>> round(rc.metrics.r_precision([0, 1, 0, 1, 1], [5, 4, 3, 2, 1]), 4)
    0.3333
    """
    return _measured(Measure("r_precision"), y_true, y_score, **options)


@_described(_ANY_K)
def reciprocal_rank(
    y_true: ArrayLike, y_score: ArrayLike, *, k: int | None = None, **options: Unpack[_Options]
) -> float | PerQuery:
    """One over the position of the first relevant document.

    Its mean over queries is MRR.

    >>> import rankcore as rc
    >>> rc.metrics.reciprocal_rank([0, 1, 0, 1, 1], [5, 4, 3, 2, 1])
    0.5
    """
    return _measured(Measure("reciprocal_rank", k=as_cutoff(k)), y_true, y_score, **options)


@_described(_Z_AND_M, notes=_PHI_COST, values="At least 0")
def phi_measure(
    y_true: ArrayLike,
    y_score: ArrayLike,
    Z: int | None = None,
    m: int | None = None,
    **options: Unpack[_Options],
) -> float | PerQuery:
    """The family of Elsas, Carvalho and Carbonell (2008): the sum of i over r_i, over Z.

    Here r_i is the position of the i-th relevant document, and i goes up to m. It is average
    precision for Z and m the number of relevant documents, and reciprocal rank for Z = m = 1.
    With Z = k and m the relevant documents found, it is a lower bound of precision at k, equal to
    it if and only if these stand at the top.

    >>> import rankcore as rc
    >>> round(rc.metrics.phi_measure([1, 0, 1], [3, 2, 1], Z=3, m=2), 4)
    0.5556
    """
    return _measured(
        Measure("phi", Z=as_cutoff(Z, "Z"), m=as_cutoff(m, "m")), y_true, y_score, **options
    )
