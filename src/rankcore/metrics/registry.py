"""The measures: their names, their parameters, and the functions that compute them.

A new measure of the documents of a query is a function in a kernel, of the form `value_t` of
``_ext/_query.pxd``, and an entry of `MEASURES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._ext import (
    gain_measures,
    judgment_measures,
    relevance_measures,
    set_measures,
    user_measures,
)
from rankcore.metrics.conventions import Convention

# The label of unjudged documents for measures that distinguish these.
UNJUDGED_LABEL = -float(np.finfo(np.float64).max)
# Default maximum label of ERR, as in gdeval.
MAXIMUM_LABEL = 4.0


@dataclass(frozen=True)
class Measure:
    """A measure, and the choices in which it differs from the convention."""

    kind: str
    k: int | None = None  # cut-off; None: all positions
    rel: float | None = None  # smallest relevant label
    gain: str | None = None  # of a label in DCG
    empty: float | None = None  # value of queries without relevant documents
    Z: int | None = None  # divisor of the Phi family; likewise m
    m: int | None = None
    # RBP's persistence, ERR's maximum label, F's weight of recall, a recall, or a multiple of R
    x: float | None = None
    levels: tuple[float, ...] | None = None  # to average over
    weights: tuple[float, ...] | None = None  # of the four terms of utility
    # gains of some labels in DCG; others are their own gains
    gains: tuple[tuple[float, float], ...] | None = None
    over: str = "mean"  # aggregate over queries: "mean", "geometric" or "sum"


@dataclass(frozen=True)
class Number:
    """A number in a measure's name, as ``p`` in ``RBP(p=0.8)``; a measure has at most one."""

    key: str
    low: float
    high: float
    # Whether the name may end with it, as ``IPrec@0.1``, where others have a cut-off, and must.
    at_end: bool = False
    required: bool = False


@dataclass(frozen=True)
class Kind:
    """Names of a measure, its parameters, and the data that it reads."""

    names: tuple[str, ...]  # those of other tools included; case does not matter
    # The kernel's function of a query's documents; None for measures of pairs and of queries.
    value: Any = None
    # The measure of each query from its numbers of pairs, a `PairCounts`.
    of_pairs: Callable[[Any], Floats] | None = None
    # Sets the measure's own parameters in the struct of the kernel.
    settings: Callable[[Any, Measure, Convention], None] | None = None
    number: Number | None = None
    cut: Literal["none", "optional", "required"] = "none"  # a cut-off
    without_cut: str | None = None  # the measure that the name without a cut-off means
    binary: bool = False  # takes the smallest relevant label
    loss: bool = False  # smaller values are better
    summed: bool = False  # a count, summed over queries
    whole: bool = False  # reads all positions
    gained: bool = False  # reads gains of labels, and discounts
    ideal: bool = False  # reads the ideal order
    ordered: bool = False  # has no closed-form expectation over the orders of tied documents
    counted: bool = True  # reads the number of relevant documents
    bounded: bool = False  # labels are at most the number
    judgments: bool = False  # distinguishes unjudged documents from those judged not relevant
    defined: bool = False  # is 0, not undefined, in queries without relevant documents
    default_cut: bool = False  # has the cut-off of the convention if the name has none
    dcg: bool = False  # DCG or NDCG: its gain may be named, and one document is a special case
    minus: bool = False  # a name that ends in "-" counts queries without relevant documents as 0


def _precision(row: Any, _: Measure, convention: Convention) -> None:
    row["option"] = relevance_measures.Divisor[convention.precision_divisor.upper()]


def _average_precision(row: Any, _: Measure, convention: Convention) -> None:
    row["option"] = relevance_measures.Divisor[convention.ap_divisor.upper()]
    row["together"] = convention.ap_ties == "together"


def _phi(row: Any, measure: Measure, _: Convention) -> None:
    row["k"], row["z"] = measure.m or 0, measure.Z or 0


def _rank_biased(row: Any, measure: Measure, convention: Convention) -> None:
    row["x"] = convention.persistence if measure.x is None else measure.x
    row["option"] = measure.rel is not None  # binary gains


def _err(row: Any, measure: Measure, _: Convention) -> None:
    row["x"] = MAXIMUM_LABEL if measure.x is None else measure.x


def _judged(row: Any, _: Measure, __: Convention) -> None:
    row["rel"] = UNJUDGED_LABEL / 2


MEASURES = {
    "ndcg": Kind(
        ("ndcg", "ndcg_score", "ndcg_cut"),
        gain_measures.ndcg,
        cut="optional",
        gained=True,
        ideal=True,
        counted=False,
        default_cut=True,
        dcg=True,
        minus=True,
    ),
    "dcg": Kind(
        ("dcg", "dcg_score"),
        gain_measures.dcg,
        cut="optional",
        gained=True,
        counted=False,
        dcg=True,
    ),
    "average_precision": Kind(
        ("map", "ap", "map_cut", "average_precision", "mean_average_precision", "gm_map"),
        relevance_measures.average_precision,
        settings=_average_precision,
        cut="optional",
        binary=True,
        default_cut=True,
        minus=True,
    ),
    "precision": Kind(
        ("p", "pre", "precision", "precision_at_k", "prec"),
        relevance_measures.precision,
        settings=_precision,
        cut="optional",
        without_cut="set_precision",
        binary=True,
        defined=True,
        minus=True,
    ),
    "recall": Kind(
        ("r", "recall", "recall_at_k"), relevance_measures.recall, cut="required", binary=True
    ),
    "r_precision": Kind(
        ("rprec", "r_precision", "r-precision"),
        relevance_measures.r_precision,
        binary=True,
        whole=True,
    ),
    "reciprocal_rank": Kind(
        ("mrr", "rr", "recip_rank", "reciprocal_rank"),
        relevance_measures.reciprocal_rank,
        cut="optional",
        binary=True,
    ),
    "hit": Kind(
        ("hit", "hit_rate", "success"),
        relevance_measures.hit,
        cut="optional",
        binary=True,
        defined=True,
    ),
    "hits": Kind(("hits",), relevance_measures.hits, cut="optional", binary=True),
    "f1": Kind(("f1",), relevance_measures.f1, cut="optional", without_cut="set_f", binary=True),
    "phi": Kind((), relevance_measures.phi, settings=_phi, binary=True, whole=True),
    "auc": Kind(("auc", "auc_score"), binary=True),
    "misranking": Kind(
        ("misranking", "pairwise_misranking"),
        of_pairs=lambda counts: counts.misranking(),
        loss=True,
    ),
    "kendall_tau": Kind(
        ("kendall_tau", "tau", "kendall"), of_pairs=lambda counts: counts.kendall_tau()
    ),
    "err": Kind(
        ("err",),
        user_measures.err,
        settings=_err,
        number=Number("max_rel", 0.0, 1000.0),
        cut="optional",
        bounded=True,
    ),
    "rbp": Kind(
        ("rbp",),
        user_measures.rbp,
        settings=_rank_biased,
        number=Number("p", 0.0, 1.0),
        cut="optional",
        binary=True,
    ),
    "rbp_residual": Kind(
        ("rbp_resid",),
        user_measures.rbp_residual,
        settings=_rank_biased,
        number=Number("p", 0.0, 1.0),
        loss=True,
        whole=True,
        judgments=True,
    ),
    "judged": Kind(
        ("judged",), relevance_measures.judged, settings=_judged, cut="optional", judgments=True
    ),
    "unjudged": Kind(
        ("unj",), relevance_measures.unjudged, cut="required", loss=True, judgments=True
    ),
    "bpref": Kind(
        ("bpref", "gm_bpref"), judgment_measures.bpref, binary=True, whole=True, judgments=True
    ),
    "inferred_ap": Kind(
        ("infap",),
        judgment_measures.inferred_ap,
        binary=True,
        whole=True,
        ordered=True,
        judgments=True,
    ),
    "interpolated_precision": Kind(
        ("iprec", "iprec_at_recall", "11pt_avg"),
        judgment_measures.interpolated_precision,
        number=Number("recall", 0.0, 1.0, at_end=True, required=True),
        binary=True,
        whole=True,
        ordered=True,
    ),
    "relative_precision": Kind(
        ("relative_p",), relevance_measures.relative_precision, cut="required", binary=True
    ),
    "r_multiple": Kind(
        ("rprec_mult",),
        relevance_measures.r_multiple,
        number=Number("multiple", 0.0, math.inf, at_end=True, required=True),
        binary=True,
        whole=True,
    ),
    "binary_g": Kind(("bing",), judgment_measures.binary_g, binary=True, whole=True, ordered=True),
    "graded_g": Kind(
        ("g",), gain_measures.graded_g, whole=True, gained=True, ideal=True, ordered=True
    ),
    "ndcg_at_relevant": Kind(
        ("ndcg_rel",),
        gain_measures.ndcg_at_relevant,
        whole=True,
        gained=True,
        ideal=True,
        ordered=True,
    ),
    "ndcg_at_levels": Kind(
        ("rndcg",),
        gain_measures.ndcg_at_levels,
        whole=True,
        gained=True,
        ideal=True,
        ordered=True,
    ),
    "set_precision": Kind(("set_p", "setp"), set_measures.set_precision, binary=True, whole=True),
    "set_recall": Kind(("set_recall", "setr"), set_measures.set_recall, binary=True, whole=True),
    "set_f": Kind(
        ("set_f", "setf"),
        set_measures.set_f,
        number=Number("beta", 0.0, math.inf, at_end=True),
        binary=True,
        whole=True,
    ),
    "set_ap": Kind(("set_map", "setap"), set_measures.set_ap, binary=True, whole=True),
    "set_relative_precision": Kind(
        ("set_relative_p", "setrelp"),
        set_measures.set_relative_precision,
        binary=True,
        whole=True,
    ),
    "utility": Kind(("utility",), set_measures.utility, whole=True),
    "n_queries": Kind(("num_q", "numq"), summed=True),
    "n_retrieved": Kind(("num_ret", "numret"), set_measures.n_retrieved, summed=True, whole=True),
    "n_relevant": Kind(
        ("num_rel", "numrel"), set_measures.n_relevant, binary=True, summed=True, whole=True
    ),
    "n_relevant_retrieved": Kind(
        ("num_rel_ret", "numrelret"),
        set_measures.n_relevant_retrieved,
        binary=True,
        summed=True,
        whole=True,
    ),
    "n_nonrelevant_retrieved": Kind(
        ("num_nonrel_judged_ret",),
        set_measures.n_nonrelevant_retrieved,
        loss=True,
        summed=True,
        whole=True,
        judgments=True,
    ),
}
