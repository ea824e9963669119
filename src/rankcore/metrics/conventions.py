"""What a measure means where the tools disagree: one object that says it, and the tools' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

Gain = str | Sequence[float] | Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Choices that decide what a ranking measure is worth.

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence of floats, or callable
        What a label is worth to DCG: ``2**y - 1``, ``y``, the entry ``y`` of a table, or what
        the callable makes of the array of labels.
    discount : {"log2", "letor"}
        What position ``i`` divides it by: ``log2(1 + i)``; or 1 for the first two positions and
        ``log2(i)`` from the third on.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}
        Documents of equal score: the expectation over all their orders, in the order of the
        rows, in the reverse order, or the order that is best or worst for the measure.
    empty : float, "skip" or "raise"
        A query in which nothing is relevant (for NDCG: nothing has gain): its value; left out of
        the mean (NaN per query); an error.
    single : {"value", "skip", "raise"}
        A query of one document: what the formula gives; left out; an error.
    negative : {"raise", "zero"}
        A negative gain: an error, or worth nothing.
    rel : float
        The smallest label that binary measures call relevant.
    short_ndcg : {"value", "zero"}
        NDCG@k of a query with fewer than ``k`` documents: what the formula gives, or 0.
    precision_divisor : {"k", "available"}
        What P@k divides by: ``k``, or the smaller of ``k`` and the documents there are.
    ap_divisor : {"relevant", "reachable", "found"}
        What AP@k divides by: all relevant documents, the smaller of that and ``k``, or the
        relevant ones within the cut-off.
    single_precision : bool
        Whether scores are compared as float32, in which near ones tie.
    """

    gain: Gain = "exp2"
    discount: str = "log2"
    ties: str = "average"
    empty: float | str = 0.0
    single: str = "value"
    negative: str = "raise"
    rel: float = 1.0
    short_ndcg: str = "value"
    precision_divisor: str = "k"
    ap_divisor: str = "relevant"
    single_precision: bool = False

    def __str__(self) -> str:
        gain = self.gain if isinstance(self.gain, str) else "given"
        empty = f"empty query {self.empty:g}" if not isinstance(self.empty, str) else self.empty
        return f"{gain} gain, {self.discount} discount, ties {self.ties}, {empty}"


def resolve(convention: Convention | str | None = None, **overrides: Any) -> Convention:

    base = Convention() if convention is None else convention
    return replace(base, **{k: v for k, v in overrides.items() if v is not None})
