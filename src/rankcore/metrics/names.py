"""The names of measures, as trec_eval, LightGBM, XGBoost, ranx and ir-measures write them."""

from __future__ import annotations

import ast
import difflib
import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from rankcore.metrics import trec_names


@dataclass(frozen=True)
class _Kind:
    """What a measure is called, and what its name may be combined with."""

    names: tuple[str, ...]  # those of other tools included; case does not matter
    cut: Literal["none", "optional", "required"] = "none"  # a cut-off
    binary: bool = False  # takes the smallest relevant label
    loss: bool = False  # smaller values are better
    summed: bool = False  # a count, summed over queries


_MEASURES = {
    "ndcg": _Kind(("ndcg", "ndcg_score", "ndcg_cut"), cut="optional"),
    "dcg": _Kind(("dcg", "dcg_score"), cut="optional"),
    "average_precision": _Kind(
        ("map", "ap", "map_cut", "average_precision", "mean_average_precision"),
        cut="optional",
        binary=True,
    ),
    "precision": _Kind(
        ("p", "pre", "precision", "precision_at_k", "prec"), cut="optional", binary=True
    ),
    "recall": _Kind(("r", "recall", "recall_at_k"), cut="required", binary=True),
    "r_precision": _Kind(("rprec", "r_precision", "r-precision"), binary=True),
    "reciprocal_rank": _Kind(
        ("mrr", "rr", "recip_rank", "reciprocal_rank"), cut="optional", binary=True
    ),
    "hit": _Kind(("hit", "hit_rate", "success"), cut="optional", binary=True),
    "hits": _Kind(("hits",), cut="optional", binary=True),
    "f1": _Kind(("f1",), cut="optional", binary=True),
    "auc": _Kind(("auc", "auc_score"), binary=True),
    "misranking": _Kind(("misranking", "pairwise_misranking"), loss=True),
    "kendall_tau": _Kind(("kendall_tau", "tau", "kendall")),
    "err": _Kind(("err",), cut="optional"),
    "rbp": _Kind(("rbp",), cut="optional", binary=True),
    "rbp_residual": _Kind(("rbp_resid",), loss=True),
    "judged": _Kind(("judged",), cut="optional"),
    "unjudged": _Kind(("unj",), cut="required", loss=True),
    "bpref": _Kind(("bpref", "gm_bpref"), binary=True),
    "inferred_ap": _Kind(("infap",), binary=True),
    "interpolated_precision": _Kind(("iprec", "iprec_at_recall", "11pt_avg"), binary=True),
    "relative_precision": _Kind(("relative_p",), cut="required", binary=True),
    "r_multiple": _Kind(("rprec_mult",), binary=True),
    "binary_g": _Kind(("bing",), binary=True),
    "graded_g": _Kind(("g",)),
    "ndcg_at_relevant": _Kind(("ndcg_rel",)),
    "ndcg_at_levels": _Kind(("rndcg",)),
    "set_precision": _Kind(("set_p", "setp"), binary=True),
    "set_recall": _Kind(("set_recall", "setr"), binary=True),
    "set_f": _Kind(("set_f", "setf"), binary=True),
    "set_ap": _Kind(("set_map", "setap"), binary=True),
    "set_relative_precision": _Kind(("set_relative_p", "setrelp"), binary=True),
    "utility": _Kind(("utility",)),
    "n_queries": _Kind(("num_q", "numq"), summed=True),
    "n_retrieved": _Kind(("num_ret", "numret"), summed=True),
    "n_relevant": _Kind(("num_rel", "numrel"), binary=True, summed=True),
    "n_relevant_retrieved": _Kind(("num_rel_ret", "numrelret"), binary=True, summed=True),
    "n_nonrelevant_retrieved": _Kind(("num_nonrel_judged_ret",), loss=True, summed=True),
}
_KINDS = {name: kind for kind, measure in _MEASURES.items() for name in measure.names}
_KINDS["gm_map"] = "average_precision"
# ranx and ir-measures have a separate name for each gain of NDCG.
_KINDS |= {"ndcg_burges": "ndcg", "dcg_burges": "dcg"}
_DCG = {"log2": "linear", "exp-log2": "exp2"}

# Measures that need the number of retrieved documents if they have no cut-off.
_OF_ALL_RETRIEVED = {"precision": "set_precision", "f1": "set_f"}
# Positions are 64-bit integers.
LARGEST_CUT = 2**63 - 1
# Measures of predicted ranks, which have no queries.
_RANK_LOSSES = {"rank_loss", "macro_rank_loss", "max_rank_loss"}
# Keys of numbers in parentheses, with their ranges.
_NUMBERS = {
    ("rbp", "p"): (0.0, 1.0),
    ("rbp_residual", "p"): (0.0, 1.0),
    ("err", "max_rel"): (0.0, 1000.0),
    ("set_f", "beta"): (0.0, math.inf),
    ("interpolated_precision", "recall"): (0.0, 1.0),
    ("r_multiple", "multiple"): (0.0, math.inf),
}
# Measures for which a number after @, _ or . is not a cut-off, but this parameter.
_AT_NUMBER = {"interpolated_precision": "recall", "r_multiple": "multiple", "set_f": "beta"}

# Name, arguments in parentheses, cut-offs after "@", "_" or ".", ranx's relevance level "-l2",
# XGBoost's "-".
_FORM = re.compile(
    r"""(?P<name> f1 | (?: 11)? [a-z][a-z_-]*? [a-z] | [a-z])
        (?: \( (?P<arguments> [^()]*) \) )?
        (?: (?P<mark> [@_.]) (?P<cuts> [\d.]+ (?:,[\d.]+)*) )?
        (?: -l(?P<level> \d+) | (?P<minus> -))?""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Measure:
    """A measure, with its deviations from the convention."""

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


def parse(name: str) -> list[tuple[str, Measure]]:
    """Parse a name. Several cut-offs, or a set of trec_eval, give several measures.

    >>> from rankcore.metrics.names import parse
    >>> [(name, measure.kind, measure.k) for name, measure in parse("P.5,10")]
    [('P_5', 'precision', 5), ('P_10', 'precision', 10)]
    """
    if not isinstance(name, str):
        raise TypeError(f"a measure must be given by name; found {name!r}")
    if name.strip() in trec_names.SETS:
        members = trec_names.SETS[name.strip()]
        return [one for member in members if member != trec_names.STRING for one in parse(member)]
    found = trec_names.parse(name.strip())
    if found is not None:
        return [(title, _measure(kind, **parameters)) for title, kind, parameters in found]
    form = _FORM.fullmatch(name.strip())
    if form is None:
        raise ValueError(f"{name!r} is not the name of a measure{_nearest(name)}")
    kind = _KINDS.get(form["name"].lower())
    if kind is None:
        raise ValueError(f"there is no measure {name!r}{_nearest(form['name'], name.strip())}")
    if form["cuts"] is None:
        kind = _OF_ALL_RETRIEVED.get(kind, kind)
    measure = _measure(kind, gain="exp2" if form["name"].lower().endswith("_burges") else None)
    if form["name"].lower().startswith("gm_"):
        measure = replace(measure, over="geometric")
    measure = _with_arguments(measure, name, form["arguments"])
    if form["level"]:
        if not _MEASURES[kind].binary:
            raise ValueError(
                f"{name!r}: a relevance level, -l{form['level']}, requires a binary measure; "
                f"{form['name']} has none"
            )
        measure = replace(measure, rel=float(form["level"]))
    if form["minus"]:
        if kind not in {"ndcg", "average_precision", "precision"}:
            raise ValueError(f"{name!r}: only ndcg, map and pre have a form that ends in '-'")
        measure = replace(measure, empty=0.0)
    if form["cuts"] is None:
        if _MEASURES[kind].cut == "required" or form["name"].lower().endswith("_cut"):
            raise ValueError(f"{name!r} needs a cut-off, such as {form['name']}@10")
        if kind in _AT_NUMBER and kind != "set_f" and measure.x is None:
            raise ValueError(f"{name!r} needs a number, such as {form['name']}@0.5")
        return [(name, measure)]
    if kind in _AT_NUMBER:
        return [(name, _with_number(measure, name, _AT_NUMBER[kind], form["cuts"]))]
    if _MEASURES[kind].cut == "none":
        raise ValueError(f"{name!r}: {form['name']} has no cut-off")
    cuts = [_cut(name, k) for k in form["cuts"].split(",")]
    stem = name.strip()[: form.start("mark")]
    mark = form["mark"]
    if len(cuts) == 1 and mark != ".":
        return [(name, replace(measure, k=cuts[0]))]
    end = name.strip()[form.end("cuts") :]
    mark = mark.replace(".", "_")  # P.5 is another spelling of P_5
    return [(f"{stem}{mark}{k}{end}", replace(measure, k=k)) for k in cuts]


def _measure(kind: str, **parameters: Any) -> Measure:
    """Build a measure with the aggregate over queries that its kind implies."""
    return Measure(kind, over="sum" if _MEASURES[kind].summed else "mean", **parameters)


def _cut(name: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{name!r}: a cut-off is a whole number, found {text!r}")
    k = int(text)
    if k < 1:
        raise ValueError(f"{name!r}: a cut-off is at least 1")
    if k > LARGEST_CUT:
        raise ValueError(f"{name!r}: a cut-off is below 2**63")
    return k


def _with_number(measure: Measure, name: str, key: str, value: Any) -> Measure:
    """Add a numeric parameter."""
    low, high = _NUMBERS[measure.kind, key]
    try:
        x = float(value)
    except ValueError:
        x = math.nan
    if not low <= x <= high:
        raise ValueError(f"{name!r}: {key} must be a number from {low:g} to {high:g}")
    return replace(measure, x=x)


def greater_is_better(name: str) -> bool:
    """Return whether higher values of a measure are better; True for unknown names."""
    if name in _RANK_LOSSES:
        return False
    try:
        return not _MEASURES[parse(name)[0][1].kind].loss
    except ValueError:
        return True


def _with_arguments(measure: Measure, name: str, text: str | None) -> Measure:
    """Add parameters in parentheses, as in ir-measures: ``rel=2``, ``dcg='exp-log2'``."""
    for argument in (text or "").split(","):
        if not argument.strip():
            continue
        key, _, written = (part.strip() for part in argument.partition("="))
        try:
            value = ast.literal_eval(written)
        except (SyntaxError, ValueError):
            raise ValueError(
                f"{name!r}: {argument.strip()!r} is not of the form key=value"
            ) from None
        if key == "rel" and _MEASURES[measure.kind].binary and type(value) in (int, float):
            measure = replace(measure, rel=float(value))
        elif key == "dcg" and measure.kind in {"dcg", "ndcg"} and str(value) in _DCG:
            measure = replace(measure, gain=_DCG[str(value)])
        elif (measure.kind, key) in _NUMBERS and type(value) in (int, float):
            measure = _with_number(measure, name, key, value)
        else:
            raise ValueError(
                f"{name!r}: {argument.strip()!r} is not understood; binary measures take "
                "rel=NUMBER, dcg and ndcg take dcg='log2' (linear gain) or dcg='exp-log2', RBP "
                "takes p=NUMBER, ERR takes max_rel=NUMBER, SetF takes beta=NUMBER"
            )
    return measure


def _nearest(name: str, whole: str = "") -> str:
    """Return hint with the most similar known name, completed by the suffix of the whole name."""
    near = difflib.get_close_matches(name.lower(), _KINDS, n=1, cutoff=0.5)
    known = (
        "ndcg@10, dcg, map, P@5, recall@20, F1@10, Rprec, mrr, hit@10, hits@10, ERR@10, RBP, "
        "bpref, infAP, judged@10, auc, misranking, kendall_tau"
    )
    if not near:
        return f"; there are {known}, and others' names"
    return f"; did you mean {near[0] + whole.removeprefix(name)!r}?"
