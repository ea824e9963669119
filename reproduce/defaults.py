"""Which settings do best on all sets at hand: what the defaults are chosen by.

``python -m reproduce.defaults`` fits every learner with every setting of a small grid to every set
of ordered labels and of queries in ``../shared/data`` or ``$RANKCORE_DATA``, and measures on rows
that were held out: the mean rank loss, or NDCG at 10. The figure of a setting on a set is the mean
over splits. --keep writes what is done to a JSON file and goes on from it; --markdown and --png
write the report.

The sets are those of `reproduce.defaults_sets`, with features as they come and standardised. No test
part of SST-5 or of OHSUMED is looked at here: development and validation parts are measured.
"""

import argparse
import json
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import rankcore as rc
from rankcore.metrics import evaluate, rank_loss
from reproduce.defaults_sets import ordinal_sets, ranking_sets

SPLITS = 8


def grid(name: str, **options: list[Any]) -> dict[str, dict[str, Any]]:
    """Settings of a class by a label."""
    found = {}
    for values in product(*options.values()):
        params = dict(zip(options, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in params.items())] = params
    return found


def ordinal_grids() -> dict[str, dict[str, dict[str, Any]]]:
    """Settings of each ordinal learner; of those not named the default applies."""
    passes, scales = [1, 3, 10, 30], [1.0, "auto"]
    means = [True, False]
    ensemble = {
        "tau": [0.1, 0.3, 0.6],
        "average_members": means,
        "threshold_scale": scales,
        "max_iter": [3, 10],
    }
    return {
        "PRank": grid("PRank", average=means, threshold_scale=scales, max_iter=passes),
        "VotedPRank": grid(
            "VotedPRank",
            output=["round", "median", "plurality"],
            threshold_scale=scales,
            max_hypotheses=[100, "auto"],
            max_iter=[3, 10],
        ),
        "CuSumRank": {
            **grid(
                "CuSumRank",
                update=["perceptron"],
                margin=[0.0, 1.0],
                average=means,
                intercept_scaling=scales,
                max_iter=passes[1:],
            ),
            **grid(
                "CuSumRank",
                update=["pa1"],
                C=[0.001, 0.01, 0.1, 1.0],
                intercept_scaling=scales,
                max_iter=passes[1:],
            ),
        },
        "WidrowHoff": {
            **grid(
                "WidrowHoff",
                step=["normalized"],
                eta0=[0.01, 0.03, 0.1, 0.3, 1.0],
                average=means,
                intercept_scaling=scales,
                max_iter=passes[1:],
            ),
            **grid("WidrowHoff", step=["constant"], eta0=[0.01, 0.1], max_iter=[10]),
        },
        "MulticlassPerceptron": grid(
            "MulticlassPerceptron",
            update=["worst", "uniform"],
            average=means,
            intercept_scaling=scales,
            max_iter=passes[1:],
        ),
        "OAPBPM": grid("OAPBPM", **ensemble),
        "OAPBagging": grid("OAPBagging", **ensemble),
        "OAPVoting": grid("OAPVoting", **ensemble),
    }


def kernel_grids() -> dict[str, dict[str, dict[str, Any]]]:
    """The same of learners with kernels, which are fitted to the smaller dense sets."""
    return {
        "KernelPRank": grid("KernelPRank", average=[True, False], max_iter=[3, 10]),
        "KernelCuSumRank": grid(
            "KernelCuSumRank", average=[True, False], margin=[0.0, 1.0], max_iter=[3, 10]
        ),
        "KernelOAPBPM": grid("KernelOAPBPM", average_members=[True, False], max_iter=[3, 10]),
    }


def ranking_grids() -> dict[str, dict[str, dict[str, Any]]]:
    """Settings of each ranker."""
    return {
        "PairwisePerceptron": grid(
            "PairwisePerceptron",
            variant=["averaged", "committee", "pocket", "last"],
            margin=[0.0, 0.1, 1.0],
            max_iter=[3, 10, 50],
        ),
        "RankSVM": grid(
            "RankSVM", loss=["squared_hinge", "hinge"], C=[0.001, 0.01, 0.1, 1.0, 10.0]
        ),
        "RankBoost": {
            **grid(
                "RankBoost",
                step=["third", "discrete"],
                n_estimators=[100, 300],
                learning_rate=[0.3, 1.0],
            ),
            **grid(
                "RankBoost",
                max_leaf_nodes=[4, 31],
                n_estimators=[100],
                learning_rate=[0.05, 0.1, 0.3],
            ),
        },
        "BipartiteRankBoost": grid(
            "BipartiteRankBoost",
            step=["exact", "third", "mohri"],
            n_estimators=[100, 300],
            learning_rate=[0.3, 1.0],
        ),
    }


def fitted_loss(name: str, params: dict[str, Any], split: dict[str, Any]) -> float:
    """Mean rank loss of an ordinal learner."""
    model = getattr(rc, name)(random_state=0, **params).fit(*split["train"])
    X, y = split["test"]
    return 0.0 - float(model.score(X, y))


def fitted_ndcg(name: str, params: dict[str, Any], split: dict[str, Any]) -> float:
    """1 - NDCG@10 of a ranker, so that less is better everywhere."""
    model = getattr(rc, name)(**params)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    X, y, qid = split["train"]
    model.fit(X, y, qid=qid)
    X, y, qid = split["test"]
    return 1.0 - evaluate(y, model.predict(X), qid=qid, metrics="ndcg@10")["ndcg@10"]


def constant_loss(split: dict[str, Any]) -> float:
    """What the best constant of the training part loses, or the order of the file."""
    y, y_test = split["train"][1], split["test"][1]
    if len(split["train"]) == 2:
        losses = [rank_loss(y, np.full(y.size, one)) for one in np.unique(y)]
        return float(rank_loss(y_test, np.full(y_test.size, np.unique(y)[np.argmin(losses)])))
    scores = np.random.default_rng(0).random(y_test.size)
    return 1.0 - evaluate(y_test, scores, qid=split["test"][2], metrics="ndcg@10")["ndcg@10"]


def jobs(n: int) -> Iterator[tuple[str, str, Any, Any]]:
    """Set, learner, its settings, and how it is measured."""
    kernels = kernel_grids()
    for set_name, splits in ordinal_sets(n).items():
        for learner, settings in {**ordinal_grids(), **kernels}.items():
            small = set_name.startswith("chu-") and "abalone" not in set_name
            if learner not in kernels or small:
                yield set_name, learner, settings, fitted_loss
    for set_name in ranking_sets(n):
        for learner, settings in ranking_grids().items():
            yield set_name, learner, settings, fitted_ndcg


def run(n: int, keep: Path | None, only: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Figures by set, learner and setting: one for each split, and the seconds of a fit."""
    done: dict[str, Any] = {}
    if keep is not None and keep.exists():
        done = json.loads(keep.read_text())
    makers = {**ordinal_sets(n), **ranking_sets(n)}
    splits: dict[str, list[Any]] = {}
    for set_name, learner, settings, measured in jobs(n):
        known = done.setdefault(set_name, {}).setdefault(learner, {})
        missing = {label: params for label, params in settings.items() if label not in known}
        if not missing or only not in f"{set_name} {learner}":
            continue
        if set_name not in splits:
            splits = {set_name: list(makers[set_name]())}
        done[set_name]["constant"] = [constant_loss(split) for split in splits[set_name]]
        for label, params in missing.items():
            begin = perf_counter()
            values = []
            for split in splits[set_name]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        values.append(measured(learner, params, split))
                    except ValueError as error:  # constant steps diverge on some sets
                        if "overflowed" not in str(error):
                            raise
                        values.append(np.inf)
            known[label] = {"values": values, "seconds": (perf_counter() - begin) / len(values)}
        if keep is not None:
            keep.write_text(json.dumps(done))
        best = min(known, key=lambda label: np.mean(known[label]["values"]))
        print(
            f"{set_name:<28} {learner:<20} best {np.mean(known[best]['values']):.4f} {best}",
            flush=True,
        )
    return done


def main() -> None:
    """Run the grid and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--only", default="", help="of sets and learners with this in their names")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    run(arguments.splits, arguments.keep, arguments.only)


if __name__ == "__main__":
    main()
