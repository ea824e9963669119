"""The names of measures, as trec_eval, LightGBM, XGBoost, ranx and ir-measures write them."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass, replace

# What a measure is called here, and what it is called elsewhere. Case does not matter.
_NAMES = {
    "ndcg": ["ndcg", "ndcg_score", "ndcg_cut"],
    "dcg": ["dcg", "dcg_score"],
    "average_precision": ["map", "ap", "map_cut", "average_precision", "mean_average_precision"],
    "precision": ["p", "pre", "precision", "precision_at_k", "prec"],
    "recall": ["r", "recall", "recall_at_k"],
    "r_precision": ["rprec", "r_precision", "r-precision"],
    "reciprocal_rank": ["mrr", "rr", "recip_rank", "reciprocal_rank"],
    "hit": ["hit", "hit_rate", "success"],
    "auc": ["auc", "auc_score"],
    "misranking": ["misranking", "pairwise_misranking"],
    "kendall_tau": ["kendall_tau", "tau", "kendall"],
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
# ranx and ir-measures have one name for each of the two gains of NDCG.
_KINDS["ndcg_burges"] = "ndcg"
_DCG = {"log2": "linear", "exp-log2": "exp2"}

# Positions are counted by 64 bits.
LARGEST_CUT = 2**63 - 1
CUT = {"ndcg", "dcg", "average_precision", "precision", "recall", "reciprocal_rank", "hit"}
NEEDS_CUT = {"precision", "recall", "hit"}
# What trec_eval calls the forms with a cut-off, and measures at nine of them if none is named.
_CUT_NAMES = {"ndcg_cut", "map_cut"}
LOSSES = {"misranking"}
BINARY = {
    "average_precision",
    "precision",
    "recall",
    "r_precision",
    "reciprocal_rank",
    "hit",
    "phi",
    "auc",
}

# Name, arguments in parentheses, cut-offs after "@", "_" or ".", XGBoost's "-".
_FORM = re.compile(
    r"""(?P<name> [a-z][a-z_-]*? [a-z] | [a-z])
        (?: \( (?P<arguments> [^()]*) \) )?
        (?: [@_.] (?P<cuts> \d+ (?:,\d+)*) )?
        (?P<minus> -)?""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Measure:
    """A measure of one query, and where it differs from the convention it is taken under.

    Parameters
    ----------
    kind : str
        What it is, such as ``"ndcg"``.
    k : int, optional
        Positions it looks at; None for all.
    rel : float, optional
        The smallest label that is relevant.
    gain : str, optional
        What a label is worth to DCG.
    empty : float, optional
        Its value for a query in which nothing is relevant.
    Z, m : int, optional
        The parameters of the Phi family.
    """

    kind: str
    k: int | None = None
    rel: float | None = None
    gain: str | None = None
    empty: float | None = None
    Z: int | None = None
    m: int | None = None


def parse(name: str) -> list[tuple[str, Measure]]:
    """Read the name of a measure.

    Parameters
    ----------
    name : str
        Such as ``"ndcg@10"``, ``"ndcg_cut_10"``, ``"nDCG(dcg='exp-log2')@10"``,
        ``"P(rel=2)@5"``, ``"P.5,10"`` (two measures) or ``"map@5-"``.

    Returns
    -------
    list of (str, Measure)
        One pair, named as it was asked for; of a list of cut-offs one pair each, named as
        trec_eval names them.

    Raises
    ------
    ValueError
        If there is no such measure, with the nearest name there is.

    Examples
    --------
    >>> from rankcore.metrics.names import parse
    >>> [(name, measure.kind, measure.k) for name, measure in parse("P.5,10")]
    [('P_5', 'precision', 5), ('P_10', 'precision', 10)]
    """
    if not isinstance(name, str):
        raise TypeError(f"a measure is asked for by name, found {name!r}")
    form = _FORM.fullmatch(name.strip())
    if form is None:
        raise ValueError(f"{name!r} is not the name of a measure{_nearest(name)}")
    kind = _KINDS.get(form["name"].lower())
    if kind is None:
        raise ValueError(f"there is no measure {name!r}{_nearest(form['name'])}")
    measure = Measure(kind, gain="exp2" if form["name"].lower() == "ndcg_burges" else None)
    measure = _with_arguments(measure, name, form["arguments"])
    if form["minus"]:
        if kind not in {"ndcg", "average_precision", "precision"}:
            raise ValueError(f"{name!r}: only ndcg, map and pre have a form that ends in '-'")
        measure = replace(measure, empty=0.0)
    if form["cuts"] is None:
        if kind in NEEDS_CUT or form["name"].lower() in _CUT_NAMES:
            raise ValueError(f"{name!r} needs a cut-off, such as {form['name']}@10")
        return [(name, measure)]
    if kind not in CUT:
        raise ValueError(f"{name!r}: {form['name']} has no cut-off")
    cuts = [int(k) for k in form["cuts"].split(",")]
    if min(cuts) < 1:
        raise ValueError(f"{name!r}: a cut-off is at least 1")
    if max(cuts) > LARGEST_CUT:
        raise ValueError(f"{name!r}: a cut-off is below 2**63")
    stem, mark = name.strip()[: form.start("cuts") - 1], name.strip()[form.start("cuts") - 1]
    if len(cuts) == 1 and mark != ".":
        return [(name, replace(measure, k=cuts[0]))]
    mark, end = mark.replace(".", "_"), form["minus"] or ""  # P.5 asks for what is called P_5
    return [(f"{stem}{mark}{k}{end}", replace(measure, k=k)) for k in cuts]


def greater_is_better(name: str) -> bool:
    """Whether a measure is no loss.

    Parameters
    ----------
    name : str
        As `parse` takes it; what is no name of a measure is taken for one that is no loss.

    Returns
    -------
    bool
    """
    try:
        return parse(name)[0][1].kind not in LOSSES
    except ValueError:
        return True


def _with_arguments(measure: Measure, name: str, text: str | None) -> Measure:
    """Take in what ir-measures writes in parentheses: ``rel=2``, ``dcg='exp-log2'``."""
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
        if key == "rel" and measure.kind in BINARY and type(value) in (int, float):
            measure = replace(measure, rel=float(value))
        elif key == "dcg" and measure.kind in {"dcg", "ndcg"} and value in _DCG:
            measure = replace(measure, gain=_DCG[value])
        else:
            raise ValueError(
                f"{name!r}: {argument.strip()!r} is not understood; binary measures take "
                "rel=NUMBER, dcg and ndcg take dcg='log2' (linear gain) or dcg='exp-log2'"
            )
    return measure


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _KINDS, n=1, cutoff=0.5)
    known = "ndcg@10, dcg, map, P@5, recall@20, Rprec, mrr, hit@10, auc, misranking, kendall_tau"
    return f"; did you mean {near[0]!r}?" if near else f"; there are {known}, and others' names"
