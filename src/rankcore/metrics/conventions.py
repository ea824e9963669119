"""Conventions of ranking measures, and the conventions of other tools by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

Gain = str | Sequence[float] | Callable[[Any], Any]

_CHOICES = {
    "gain": ("exp2", "linear"),
    "discount": ("log2", "letor"),
    "ties": ("average", "first", "last", "optimistic", "pessimistic"),
    "single": ("value", "skip", "raise"),
    "negative": ("raise", "zero"),
    "short_ndcg": ("value", "zero"),
    "short_precision": ("value", "zero"),
    "precision_divisor": ("k", "available"),
    "ap_divisor": ("relevant", "reachable", "found"),
    "ap_ties": ("expected", "together"),
    "recall_points": ("rounded", "up"),
}


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Choices that define a ranking measure.

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence of floats, or callable, default="exp2"
        Gain of a label in DCG: ``2**y - 1``, ``y``, entry ``y`` of a table, or a function that maps
        the array of labels (float64, shape (n,)) to an array of gains of the same shape.
    discount : {"log2", "letor"}, default="log2"
        Divisor of the gain at position ``i``: ``log2(1 + i)``; or 1 for the first two positions and
        ``log2(i)`` from the third on.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, default="average"
        Order of documents with equal scores: the expectation over all orders, the order of the
        rows, its reverse, or the best or worst order for the measure.
    empty : float, "skip" or "raise", default=0.0
        Queries without relevant documents (for NDCG: without gain): their value; or omitted from
        the mean (NaN per query); or an error. Precision and hit rate are 0 for them, and DCG is
        the sum as usual.
    single : {"value", "skip", "raise"}, default="value"
        DCG and NDCG of queries with one document: the formula; omitted; or an error.
    negative : {"raise", "zero"}, default="raise"
        Negative gains: an error for NDCG; or set to 0, for NDCG and DCG.
    rel : float, default=1.0
        Smallest relevant label in binary measures.
    cutoff : int, optional
        Default ``k`` of NDCG and AP; None: all positions.
    short_ndcg : {"value", "zero"}, default="value"
        NDCG@k of queries with fewer than ``k`` documents: the formula, or 0.
    short_precision : {"value", "zero"}, default="value"
        P@k of queries with fewer than ``k`` documents: the formula, or 0.
    precision_divisor : {"k", "available"}, default="k"
        Divisor of P@k: ``k``, or the minimum of ``k`` and the number of documents.
    ap_divisor : {"relevant", "reachable", "found"}, default="relevant"
        Divisor of AP@k: the number of relevant documents, the minimum of that and ``k``, or the
        number of relevant documents in the first ``k`` (only with ``ties`` "first" or "last").
    ap_ties : {"expected", "together"}, default="expected"
        AP of tied documents: the expectation over their orders, or all at the position of the last
        of them, as with a threshold on the scores.
    recall_points : {"rounded", "up"}, default="rounded"
        Number of documents for recall x of R relevant ones in interpolated precision: ``x * R``
        rounded to the nearest integer, or ``x * R + .9`` rounded down.
    persistence : float, default=0.8
        Probability in rank-biased precision that the user continues to the next document.
    single_precision : bool, default=False
        Whether scores are compared as float32, in which close scores tie.

    Raises
    ------
    ValueError, TypeError
        For an invalid choice.

    See Also
    --------
    rankcore.metrics.CONVENTIONS : Conventions of other tools.

    Examples
    --------
    >>> import rankcore as rc
    >>> strict = rc.metrics.Convention(ties="pessimistic", empty="skip")
    >>> rc.metrics.reciprocal_rank([1, 0, 0, 0], [1, 1, 0, 0], qid=[1, 1, 2, 2], convention=strict)
    0.5
    """

    gain: Gain = "exp2"
    discount: str = "log2"
    ties: str = "average"
    empty: float | str = 0.0
    single: str = "value"
    negative: str = "raise"
    rel: float = 1.0
    cutoff: int | None = None
    short_ndcg: str = "value"
    short_precision: str = "value"
    precision_divisor: str = "k"
    ap_divisor: str = "relevant"
    ap_ties: str = "expected"
    recall_points: str = "rounded"
    persistence: float = 0.8
    single_precision: bool = False

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if name == "gain" and not isinstance(value, str):
                _check_gain(value)
            elif value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
        if self.empty not in ("skip", "raise") and not _is_finite(self.empty):
            raise ValueError(f"empty must be a finite number, skip or raise; got {self.empty!r}")
        if not _is_finite(self.rel):
            raise ValueError(f"rel must be a finite number; got {self.rel!r}")
        if self.cutoff is not None and not (type(self.cutoff) is int and 1 <= self.cutoff < 2**63):
            raise ValueError(
                f"cutoff must be an integer of at least 1, below 2**63; got {self.cutoff!r}"
            )
        if not (_is_finite(self.persistence) and 0 <= self.persistence <= 1):
            raise ValueError(f"persistence must be from 0 to 1; got {self.persistence!r}")
        if self.ap_divisor == "found" and self.ties not in ("first", "last"):
            raise ValueError(
                "ap_divisor='found' has no expectation in closed form, and no best or worst order "
                "by label; choose ties='first' or 'last'"
            )

    def __str__(self) -> str:
        return self._describe({"first": "in row order", "last": "in reverse row order"})

    def _describe_with_ids(self) -> str:
        """Describe the convention where document ids were given, whose order then breaks ties."""
        return self._describe(
            {
                "first": "in ascending order of document ids",
                "last": "in descending order of document ids",
            }
        )

    def _describe(self, orders: Mapping[str, str]) -> str:
        gain = self.gain if isinstance(self.gain, str) else "own"
        names = {"average": "averaged", **orders}
        empty = {"skip": "left out", "raise": "rejected"}.get(str(self.empty)) or f"{self.empty:g}"
        said = f"{gain} gain, {self.discount} discount, ties {names.get(self.ties, self.ties)}, "
        said += f"empty queries {empty}"
        shown = ("gain", "discount", "ties", "empty")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in shown and value != field.default:
                said += f", {field.name}={value}"
        return said


def _check_gain(gain: Any) -> None:
    if callable(gain):
        return
    table = np.asarray(gain)
    if table.ndim != 1 or table.dtype.kind not in "biuf" or not np.isfinite(table).all():
        raise TypeError(
            "gain must be 'exp2', 'linear', a sequence of finite numbers (one for each label from "
            f"0 on) or a callable; got {gain!r}"
        )


def _is_finite(value: Any) -> bool:
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    number: Any = value
    return bool(abs(number) <= float(np.finfo(np.float64).max))  # an integer may exceed float64


_XGBOOST = Convention(
    ties="first",
    empty=1.0,
    cutoff=32,
    precision_divisor="available",
    ap_divisor="reachable",
    single_precision=True,
)
_LETOR = Convention(discount="letor", ties="first", short_ndcg="zero")
_TREC = Convention(gain="linear", ties="last", negative="zero", persistence=0.9)

#: Conventions of other tools, by name.
CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        # ndcg_score, dcg_score, and average_precision_score per query.
        "sklearn": Convention(gain="linear", single="raise", ap_ties="together"),
        # Version 10. Ties are in descending order of document ids: pass docid=.
        "trec_eval": _TREC,
        "trec": _TREC,
        "trec_eval-10": _TREC,
        # Up to 9.0.8.
        "trec_eval-9": replace(_TREC, single_precision=True, recall_points="up"),
        "lightgbm": Convention(ties="first", empty=1.0, ap_divisor="reachable"),
        "xgboost": _XGBOOST,
        "xgboost-": replace(_XGBOOST, empty=0.0),
        "letor3": replace(_LETOR, short_precision="zero"),
        "letor4": _LETOR,
        # Exact for ties in up to 15 documents per query; beyond that the sort of ranx is not
        # stable.
        "ranx": Convention(gain="linear", ties="first", negative="zero"),
    }
)


def resolve(convention: str | Convention | None, **choices: Any) -> Convention:
    """Look up a convention (None: the default), and replace the choices that are not None."""
    if convention is None:
        convention = Convention()
    elif isinstance(convention, str):
        named = CONVENTIONS.get(convention)
        if named is None:
            near = difflib.get_close_matches(convention, CONVENTIONS, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"there is no convention {convention!r}{hint} (there are {', '.join(CONVENTIONS)})"
            )
        convention = named
    elif not isinstance(convention, Convention):
        raise TypeError(f"convention must be a name or a Convention; got {convention!r}")
    return replace(convention, **{name: x for name, x in choices.items() if x is not None})
