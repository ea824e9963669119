"""RankBoost on OHSUMED (LETOR 3.0), five folds, beside the published row.

``python -m reproduce.letor_boosting`` prints the tables, --markdown writes a copy. The exit status
is 1 if a row misses its gate.

Features are normalised within queries (QueryLevelNorm), measures are the official ones of LETOR
3.0 (``convention="letor3"``); stumps have up to 254 thresholds a feature. The number of rounds, up
to 300, is the one of highest MAP on the validation fold; the test fold is only measured. There is
nothing random. BipartiteRankBoost takes labels 1 and 2 as relevant. The data are not part of the
project: put them into ../shared/data, or name their folder in RANKCORE_DATA.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np

import rankcore as rc
from reproduce.letor import DATA, FOLDS, METRICS, PUBLISHED, SHOWN, load, measured, number, table

ROUNDS = 300
MODELS = {
    "RankBoost, pairs alike": rc.RankBoost(ROUNDS, balance=None),
    "RankBoost, queries alike": rc.RankBoost(ROUNDS),
    "RankBoost, discrete": rc.RankBoost(ROUNDS, step="discrete"),
    "RankBoost, discrete, by normalizer": rc.RankBoost(
        ROUNDS, step="discrete", select="normalizer"
    ),
    "BipartiteRankBoost, third": rc.BipartiteRankBoost(ROUNDS, step="third", rel=1),
    "BipartiteRankBoost, exact": rc.BipartiteRankBoost(ROUNDS, rel=1),
    "BipartiteRankBoost, mohri": rc.BipartiteRankBoost(ROUNDS, step="mohri", rel=1),
}
# The published run weighs pairs alike, too.
GATES = {"RankBoost, pairs alike": (0.440, 0.430)}  # MAP, NDCG@10


def best_rounds(model, train, held, test):
    """Test measures and validation MAP at the best round, that round, and the bound after it."""
    model.fit(*train[:2], qid=train[2])
    values = [measured(held, scores, ["map"])[0] for scores in model.staged_predict(held[0])]
    best = int(np.argmax(values))
    scores = list(model.staged_predict(test[0]))[best]
    return [*measured(test, scores), values[best], best + 1, model.history_["bound"][best]]


def main():
    parser = argparse.ArgumentParser(prog="python -m reproduce.letor_boosting", description=__doc__)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    if not (DATA / "ohsumed-letor3").is_dir():
        sys.exit(f"the data are not at {DATA / 'ohsumed-letor3'}: set RANKCORE_DATA")
    folds = [tuple(load(part) for part in parts) for parts in FOLDS]
    found, seconds = {}, {}
    for name, model in MODELS.items():
        found[name] = np.array([best_rounds(model, *fold) for fold in folds])
        start = perf_counter()
        model.fit(*folds[0][0][:2], qid=folds[0][0][2])
        seconds[name] = perf_counter() - start
    where = [METRICS.index(name) for name in SHOWN]
    n = len(METRICS)
    rows = [
        [
            name,
            *(number(part[:, k].mean()) for k in where),
            number(part[:, n].mean()),
            " ".join(f"{rounds:.0f}" for rounds in part[:, n + 1]),
            f"{seconds[name]:.2f}",
        ]
        for name, part in found.items()
    ]
    rows += [[name, *map(number, values), "", "", ""] for name, values in PUBLISHED.items()]
    shown = [name.upper() if name == "map" else name.replace("ndcg", "NDCG") for name in SHOWN]
    head = ["", *shown, "validation MAP", "rounds", "seconds for 300"]
    lines = [
        "# RankBoost on OHSUMED",
        "",
        "    python -m reproduce.letor_boosting",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {version('numpy')}. "
        "Seconds are wall-clock, of the first fold, on a machine that does other things too.",
        "",
        *table(rows, head),
        "",
    ]
    failed = False
    for name, (least_map, least_ndcg) in GATES.items():
        values = found[name][:, [0, METRICS.index("ndcg@10")]].mean(axis=0)
        good = values[0] >= least_map and values[1] >= least_ndcg
        failed |= not good
        lines.append(
            f"{'Reached' if good else 'MISSED'}: {name}, MAP {values[0]:.4f} (at least "
            f"{least_map}), NDCG@10 {values[1]:.4f} (at least {least_ndcg})."
        )
    text = "\n".join(lines) + "\n"
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
