"""Three choices of rankers: weights of pairs of trees, single hypotheses, and rounds of stumps.

``python -m reproduce.ranker_choices --markdown PATH`` reads OHSUMED of ``../shared/data`` or
``$RANKCORE_DATA``, generates sets of `make_letor`, and prints measures of held-out queries: of
trees with ``pair_weight="ndcg@10"`` and with plain pairs; of the last hypothesis of a pairwise
perceptron along its last pass, and of averages; and of stumps after fixed numbers of rounds, or
after the number that is best on a fifth of the training queries, which the model does not learn
from. Intervals are 95 % of Student's t over splits.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

import rankcore as rc
from rankcore.metrics import evaluate
from reproduce.data import require
from reproduce.pages import stream
from reproduce.pairwise_scales import letor
from reproduce.sets import Split, ohsumed

Sets = dict[str, Callable[[], Iterator[Split]]]
METRICS = ["ndcg@10", "map"]
ROUNDS = (25, 50, 100, 200, 300)
CHUNKS = 10


def sets() -> Sets:
    """Sets of queries by name."""
    return {
        "OHSUMED": partial(ohsumed, "norm", False, 5),
        "make_letor, 50 queries of 40": partial(letor, 50, 40),
        "make_letor, 200 queries of 20": partial(letor, 200, 20),
    }


def measured(scores: np.ndarray, part: Any) -> np.ndarray:
    """NDCG at 10, and MAP."""
    _, y, qid = part
    found = evaluate(y, scores, qid=qid, metrics=METRICS)
    return np.array([found[name] for name in METRICS])


def cells(values: np.ndarray, base: np.ndarray | None = None) -> str:
    """Means over splits, (splits, measures), and differences to a base with intervals."""
    if base is None:
        return " | ".join(f"{one:.4f}" for one in values.mean(axis=0))
    gains = values - base
    half = t.ppf(0.975, len(values) - 1) * gains.std(axis=0, ddof=1) / np.sqrt(len(values))
    return " | ".join(
        f"{one:.4f} ({gain:+.4f} ± {wide:.4f})"
        for one, gain, wide in zip(values.mean(axis=0), gains.mean(axis=0), half, strict=True)
    )


def trees(name: str, splits: list[Split]) -> Iterator[str]:
    """Trees with weights of pairs, after 100 rounds at a rate of 0.1."""
    base = None
    for weight in (None, "ndcg@10", "map"):
        if weight == "map" and "OHSUMED" not in name:
            continue
        values = []
        for split in splits:
            X, y, qid = split["train"]
            model = rc.RankBoost(
                100, max_leaf_nodes=16, learning_rate=0.1, pair_weight=weight, random_state=0
            ).fit(X, y, qid=qid)
            values.append(measured(model.predict(split["test"][0]), split["test"]))
        table = np.array(values)
        yield f"| {name} | {weight or 'plain pairs'} | {cells(table, base)} |"
        base = table if base is None else base


def hypotheses(name: str, splits: list[Split]) -> Iterator[str]:
    """The last hypothesis along the fifth pass, and averages."""
    found: dict[str, list[Any]] = {}
    for split in splits:
        X, y, qid = split["train"]
        order = np.random.default_rng(0)
        model = rc.PairwisePerceptron("last", random_state=0, feature_scale=None)
        ends, weights = [], []
        for epoch in range(5):
            for chosen in np.array_split(order.permutation(np.unique(qid)), CHUNKS):
                rows = np.isin(qid, chosen)
                model.partial_fit(X[rows], y[rows], qid=qid[rows])
                if epoch == 4:
                    ends.append(measured(model.predict(split["test"][0]), split["test"]))
                    weights.append(model.coef_)
        test = split["test"][0]
        found.setdefault("the end of the pass", []).append(ends[-1])
        found.setdefault("mean over ten places of the pass", []).append(np.mean(ends, axis=0))
        found.setdefault("the best of the ten by the test", []).append(np.max(ends, axis=0))
        pooled = measured(test @ np.mean(weights, axis=0), split["test"])
        found.setdefault("mean of the ten weights", []).append(pooled)
        for variant in ("pocket", "averaged"):
            model.set_params(variant=variant)
            found.setdefault(variant, []).append(measured(model.predict(test), split["test"]))
    base = np.array(found["the end of the pass"])
    for label, values in found.items():
        against = None if label == "the end of the pass" else base
        yield f"| {name} | {label} | {cells(np.array(values), against)} |"


def stumps(name: str, splits: list[Split]) -> Iterator[str]:
    """Stumps after fixed numbers of rounds, and by a fifth of the queries."""
    found: dict[str, list[Any]] = {}
    for split in splits:
        X, y, qid = split["train"]
        for n in ROUNDS:
            model = rc.RankBoost(n).fit(X, y, qid=qid)
            score = measured(model.predict(split["test"][0]), split["test"])
            found.setdefault(f"{n} rounds", []).append(score)
        held = np.isin(qid, np.random.default_rng(0).permutation(np.unique(qid))[::5])
        model = rc.RankBoost(300, early_stopping_rounds=50, eval_metric="map")
        model.fit(
            X[~held],
            y[~held],
            qid=qid[~held],
            eval_set=(X[held], y[held]),
            eval_qid=qid[held],
        )
        score = measured(model.predict(split["test"][0]), split["test"])
        found.setdefault("best on a fifth, without it", []).append(score)
        again = rc.RankBoost(model.best_iteration_).fit(X, y, qid=qid)
        score = measured(again.predict(split["test"][0]), split["test"])
        found.setdefault("the same number, a second fit", []).append(score)
    base = np.array(found[f"{ROUNDS[-1]} rounds"])
    for label, values in found.items():
        against = None if label == f"{ROUNDS[-1]} rounds" else base
        yield f"| {name} | {label} | {cells(np.array(values), against)} |"


TABLES = {
    "Weights of pairs of trees": (trees, "100 rounds of 16 leaves at a rate of 0.1."),
    "Single hypotheses of a pairwise perceptron": (
        hypotheses,
        "Five passes, ten places in the last one.",
    ),
    "Rounds of stumps": (stumps, "Held-out queries are a fifth of the training queries."),
}


def report(only: str) -> Iterator[str]:
    """The page, of tables with this in their titles."""
    yield from (
        "# Choices of rankers",
        "",
        "`python -m reproduce.ranker_choices`. Means over five splits; in brackets, the difference "
        "to the first row (of stumps,",
        "to 300 rounds) with a 95 % interval of Student's t.",
    )
    for title, (rows_of, about) in TABLES.items():
        if only not in title:
            continue
        yield from ("", f"## {title}", "", about, "")
        yield from ("| set | | NDCG@10 | MAP |", "|---|---|---|---|")
        for name, make in sets().items():
            yield from rows_of(name, list(make()))


def main() -> None:
    """Print the page, and write it if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--only", default="", help="part of the title of a table")
    args = parser.parse_args()
    require("ohsumed-letor3")
    warnings.simplefilter("ignore")
    stream(report(args.only), args.markdown)


if __name__ == "__main__":
    main()
