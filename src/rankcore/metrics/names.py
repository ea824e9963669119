"""The names of measures, as trec_eval, LightGBM, XGBoost, ranx and ir-measures write them."""

from __future__ import annotations

import ast
import difflib
import math
import re
from dataclasses import replace
from typing import Any

from rankcore.metrics import trec_names
from rankcore.metrics.registry import MEASURES, Measure, Number

_KINDS = {name: kind for kind, measure in MEASURES.items() for name in measure.names}
# ranx and ir-measures have a separate name for each gain of NDCG.
_KINDS |= {"ndcg_burges": "ndcg", "dcg_burges": "dcg"}
_DCG = {"log2": "linear", "exp-log2": "exp2"}

# Positions are 64-bit integers.
LARGEST_CUT = 2**63 - 1
# Measures of predicted ranks and probabilities, which have no queries, and whether each is a loss.
_OF_LABELS = {
    "rank_loss": True,
    "macro_rank_loss": True,
    "max_rank_loss": True,
    "quadratic_weighted_kappa": False,
    "accuracy": False,
    "accuracy_within": False,
    "ranked_probability_score": True,
    "brier_score": True,
    "log_loss": True,
}
_SHORT = {"rps": "ranked_probability_score"}
# Name, arguments in parentheses, cut-offs after "@", "_" or ".", ranx's relevance level "-l2",
# XGBoost's "-".
_FORM = re.compile(
    r"""(?P<name> f1 | (?: 11)? [a-z][a-z_-]*? [a-z] | [a-z])
        (?: \( (?P<arguments> [^()]*) \) )?
        (?: (?P<mark> [@_.]) (?P<cuts> [\d.]+ (?:,[\d.]+)*) )?
        (?: -l(?P<level> \d+) | (?P<minus> -))?""",
    re.VERBOSE | re.IGNORECASE,
)


def label_measure(name: str) -> str | None:
    """Return the full name of a measure of predicted ranks or probabilities; None for others."""
    full = _SHORT.get(name, name)
    return full if full in _OF_LABELS else None


def parse(name: str) -> list[tuple[str, Measure]]:
    """Parse a name. Several cut-offs, or a set of trec_eval, give several measures.

    >>> from rankcore.metrics.names import parse
    >>> [(name, measure.kind, measure.k) for name, measure in parse("P.5,10")]
    [('P_5', 'precision', 5), ('P_10', 'precision', 10)]
    """
    if not isinstance(name, str):
        raise TypeError(f"a measure must be given by name; got {name!r}")
    if label_measure(name) is not None:
        raise ValueError(
            f"{name!r} measures predicted ranks or their probabilities, not rankings of queries: "
            "choose a ranking measure here, such as ndcg@10 or map"
        )
    if name.strip() in trec_names.SETS:
        members = trec_names.SETS[name.strip()]
        return [
            measure
            for member in members
            if member != trec_names.STRING
            for measure in parse(member)
        ]
    trec_measure = trec_names.parse(name.strip())
    if trec_measure is not None:
        return [(title, _measure(kind, **parameters)) for title, kind, parameters in trec_measure]
    form = _FORM.fullmatch(name.strip())
    if form is None:
        # Such as ndcg10, without a mark before the cut-off.
        cut = re.fullmatch(r"([a-z_-]+)([0-9]+)", name.strip(), re.IGNORECASE)
        hint = _nearest(name) if cut is None else _nearest(cut[1], f"{cut[1]}@{cut[2]}")
        listed = re.split(r",\s*(?=[a-z])", name.strip(), flags=re.IGNORECASE)
        if len(listed) > 1:
            hint = f": name each measure on its own, as {', '.join(map(repr, listed))}"
        raise ValueError(f"{name!r} is not the name of a measure{hint}")
    kind = _KINDS.get(form["name"].lower())
    if kind is None:
        raise ValueError(f"there is no measure {name!r}{_nearest(form['name'], name.strip())}")
    if form["cuts"] is None:
        kind = MEASURES[kind].without_cut or kind
    measure_kind = MEASURES[kind]
    measure = _measure(kind, gain="exp2" if form["name"].lower().endswith("_burges") else None)
    if form["name"].lower().startswith("gm_"):
        measure = replace(measure, over="geometric")
    measure = _with_arguments(measure, name, form["arguments"])
    if form["level"]:
        if not measure_kind.binary:
            raise ValueError(
                f"{name!r}: a relevance level, -l{form['level']}, requires a binary measure; "
                f"{form['name']} has none"
            )
        measure = replace(measure, rel=float(form["level"]))
    if form["minus"]:
        if not measure_kind.minus:
            raise ValueError(f"{name!r}: only ndcg, map and pre have a form that ends in '-'")
        measure = replace(measure, empty=0.0)
    if form["cuts"] is None:
        if measure_kind.cut == "required" or form["name"].lower().endswith("_cut"):
            raise ValueError(f"{name!r} requires a cut-off, such as {form['name']}@10")
        if measure_kind.number and measure_kind.number.required and measure.x is None:
            raise ValueError(f"{name!r} requires a number, such as {form['name']}@0.5")
        return [(name, measure)]
    if measure_kind.number and measure_kind.number.at_end:
        return [(name, _with_number(measure, name, measure_kind.number, form["cuts"]))]
    if measure_kind.cut == "none":
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
    return Measure(kind, over="sum" if MEASURES[kind].summed else "mean", **parameters)


def _cut(name: str, text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{name!r}: a cut-off must be a whole number; got {text!r}")
    k = int(text)
    if k < 1:
        raise ValueError(f"{name!r}: a cut-off must be at least 1; got {k}")
    if k > LARGEST_CUT:
        raise ValueError(f"{name!r}: a cut-off must be below 2**63; got {k}")
    return k


def _with_number(measure: Measure, name: str, number: Number, value: Any) -> Measure:
    """Set the numeric parameter."""
    try:
        x = float(value)
    except ValueError:
        x = math.nan
    if not number.low <= x <= number.high:
        raise ValueError(
            f"{name!r}: {number.key} must be a number from {number.low:g} to {number.high:g}"
        )
    return replace(measure, x=x)


def greater_is_better(name: str) -> bool:
    """Return whether higher values of a measure are better; True for unknown names."""
    of_labels = label_measure(name)
    if of_labels is not None:
        return not _OF_LABELS[of_labels]
    try:
        return not MEASURES[parse(name)[0][1].kind].loss
    except ValueError:
        return True


def _with_arguments(measure: Measure, name: str, text: str | None) -> Measure:
    """Set the parameters in parentheses, as in ir-measures: ``rel=2``, ``dcg='exp-log2'``."""
    kind = MEASURES[measure.kind]
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
        if key == "rel" and kind.binary and type(value) in (int, float):
            measure = replace(measure, rel=float(value))
        elif key == "dcg" and kind.dcg and str(value) in _DCG:
            measure = replace(measure, gain=_DCG[str(value)])
        elif kind.number and kind.number.key == key and type(value) in (int, float):
            measure = _with_number(measure, name, kind.number, value)
        else:
            raise ValueError(
                f"{name!r} does not take {argument.strip()!r}; binary measures take "
                "rel=NUMBER, dcg and ndcg take dcg='log2' (linear gain) or dcg='exp-log2', RBP "
                "takes p=NUMBER, ERR takes max_rel=NUMBER, SetF takes beta=NUMBER"
            )
    return measure


def _nearest(name: str, whole: str = "") -> str:
    """Suggest the most similar known name, completed by the suffix of the whole name."""
    near = difflib.get_close_matches(name.lower(), _KINDS, n=1, cutoff=0.5)
    examples = (
        "ndcg@10, dcg, map, P@5, recall@20, F1@10, Rprec, mrr, hit@10, hits@10, ERR@10, RBP, "
        "bpref, infAP, judged@10, auc, misranking, kendall_tau"
    )
    if not near:
        return f"; there are {examples}, and others' names"
    return f"; did you mean {near[0] + whole.removeprefix(name)!r}?"
