"""Names of measures in trec_eval: sets, parameters after a dot, and default cut-offs.

Names are compared without regard to case.
"""

from __future__ import annotations

import re
from typing import Any

_NINE = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_CUTS = {
    "P": ("precision", _NINE),
    "recall": ("recall", _NINE),
    "ndcg_cut": ("ndcg", _NINE),
    "map_cut": ("average_precision", _NINE),
    "relative_P": ("relative_precision", _NINE),
    "success": ("hit", (1, 5, 10)),
    "unj": ("unjudged", (5, 10, 20)),
}
_ELEVEN = tuple(i / 10 for i in range(11))
_LEVELS = {
    "iprec_at_recall": ("interpolated_precision", _ELEVEN),
    "Rprec_mult": ("r_multiple", tuple(i / 5 for i in range(1, 11))),
}
# Kinds that may be followed by gains of labels.
_GAINED = {
    "ndcg": "ndcg",
    "ndcg_rel": "ndcg_at_relevant",
    "Rndcg": "ndcg_at_levels",
    "G": "graded_g",
}
_UTILITY = (1.0, -1.0, 0.0, 0.0)

_OFFICIAL = (
    "num_q",
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "map",
    "gm_map",
    "Rprec",
    "bpref",
    "recip_rank",
    "iprec_at_recall",
    "P",
)
#: A measure of text: the labels of the first documents.
STRING = "relstring"
#: Sets of measures by name, in the order in which trec_eval prints them, without the name of the
#: run (``runid``).
SETS: dict[str, tuple[str, ...]] = {
    "official": _OFFICIAL,
    "set": (
        "num_q",
        "num_ret",
        "num_rel",
        "num_rel_ret",
        "utility",
        "set_P",
        "set_relative_P",
        "set_recall",
        "set_map",
        "set_F",
    ),
    "all_trec": (
        *_OFFICIAL,
        STRING,
        "recall",
        "infAP",
        "gm_bpref",
        "Rprec_mult",
        "utility",
        "11pt_avg",
        "binG",
        "G",
        "ndcg",
        "ndcg_rel",
        "Rndcg",
        "ndcg_cut",
        "map_cut",
        "relative_P",
        "success",
        "set_P",
        "set_relative_P",
        "set_recall",
        "set_map",
        "set_F",
        "num_nonrel_judged_ret",
        "rbp",
        "rbp_resid",
        "unj",
    ),
}
_SPELLED = {
    name.lower(): name
    for name in (*_CUTS, *_LEVELS, *_GAINED, "11pt_avg", "utility", "set_F", "rbp", "rbp_resid")
}
_FORM = re.compile(r"(?P<name> (?: 11)? [a-z_]+) (?: \. (?P<given> .+))?", re.X | re.I)

Parsed = list[tuple[str, str, dict[str, Any]]]


def parse(name: str) -> Parsed | None:
    """Parse a name specific to trec_eval: title, kind and parameters; None for others.

    >>> from rankcore.metrics.trec_names import parse
    >>> parse("P.10,5")
    [('P_5', 'precision', {'k': 5}), ('P_10', 'precision', {'k': 10})]
    >>> [title for title, kind, given in parse("iprec_at_recall..5,.25")]
    ['iprec_at_recall_0.25', 'iprec_at_recall_0.50']
    """
    form = _FORM.fullmatch(name)
    spelled = form and _SPELLED.get(form["name"].lower())
    if form is None or spelled is None:
        return None
    given = form["given"]
    if spelled in _CUTS:
        return _with_cuts(spelled, given)
    if spelled in _LEVELS:
        kind, default = _LEVELS[spelled]
        levels = _numbers(name, given, default, low=0.0)
        return [(f"{spelled}_{level:.2f}", kind, {"x": level}) for level in sorted(levels)]
    title = spelled if given is None else f"{spelled}_{given}"
    if spelled in _GAINED:
        return (
            None if given is None else [(title, _GAINED[spelled], {"gains": _gains(name, given)})]
        )
    if spelled == "11pt_avg":
        levels = _numbers(name, given, _ELEVEN, low=0.0)
        return [(title, "interpolated_precision", {"levels": levels})]
    if spelled == "utility":
        return [(title, "utility", {"weights": _numbers(name, given, _UTILITY, n=4)})]
    if given is None:
        return None
    if spelled == "set_F":
        return [(title, "set_f", {"x": _numbers(name, given, (), n=1, low=0.0)[0]})]
    if spelled == "rbp" and given.isdecimal():  # ranx writes a persistence of .95 as rbp.95
        return [(name, "rbp", {"x": float(f"0.{given}")})]
    if not given.startswith("p="):
        raise ValueError(f"{name!r}: {spelled} takes p=NUMBER, such as {spelled}.p=0.8")
    (p,) = _numbers(name, given[2:], (), n=1, low=0.0, high=1.0)
    return [(title, "rbp" if spelled == "rbp" else "rbp_residual", {"x": p})]


def _with_cuts(spelled: str, text: str | None) -> Parsed | None:
    kind, cuts = _CUTS[spelled]
    if text is not None:
        try:
            cuts = tuple(sorted(int(float(k)) for k in text.split(",")))  # as trec_eval reads them
        except (ValueError, OverflowError):
            return None
        if min(cuts) < 1 or max(cuts) >= 2**63:
            return None  # rejected by the general parser
    return [(f"{spelled}_{k}", kind, {"k": k}) for k in cuts]


def _numbers(
    name: str,
    text: str | None,
    default: tuple[float, ...],
    *,
    n: int | None = None,
    low: float = -1e9,
    high: float = 1e9,
) -> tuple[float, ...]:
    if text is None:
        return default
    try:
        numbers = tuple(float(x) for x in text.split(","))
    except ValueError:
        numbers = ()
    if (
        not numbers
        or (n is not None and len(numbers) != n)
        or not all(low <= x <= high for x in numbers)
    ):
        many = "numbers" if n is None else f"{n} number" + "s" * (n > 1)
        raise ValueError(
            f"{name!r}: parameters must be {many} from {low:g} to {high:g}, separated by commas"
        )
    return numbers


def _gains(name: str, text: str) -> tuple[tuple[float, float], ...]:
    gains = []
    for part in text.split(","):
        label, equals, gain = part.partition("=")
        try:
            gains.append((float(label), float(gain)))
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(
                f"{name!r}: gains must be written LABEL=GAIN, such as ndcg.1=3,2=9; got {part!r}"
            )
    return tuple(gains)
