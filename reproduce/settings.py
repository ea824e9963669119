"""Which settings do best on all sets at hand: what the defaults are chosen by.

``python -m reproduce.settings`` fits every learner with every setting of a small grid to every set
of ordered labels and of queries in ``../shared/data`` or ``$RANKCORE_DATA``, and measures on rows
that were held out: the mean rank loss, or NDCG at 10. The figure of a setting on a set is the mean
over splits. --keep writes what is done to a JSON file and goes on from it; --markdown and --png
write the report.

The sets are those of `reproduce.sets`, with features as they come and standardised. The defaults
alone, beside other tools and with more seeds, are in `reproduce.defaults`. No
setting is chosen on a test part of SST-5 or of OHSUMED: development and validation parts are
measured.
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
from scipy.stats import rankdata

import rankcore as rc
from rankcore.metrics import evaluate, rank_loss
from reproduce.data import require
from reproduce.pages import as_row, head, publish
from reproduce.sets import FOLDERS, ordinal_sets, ranking_sets

SPLITS = 8
Results = dict[str, dict[str, Any]]


def grid(**options: list[Any]) -> dict[str, dict[str, Any]]:
    """Settings by a label."""
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
        "PRank": grid(average=means, threshold_scale=scales, margin=[0.0, "auto"], max_iter=passes),
        "VotedPRank": grid(
            output=["round", "median", "plurality"],
            threshold_scale=scales,
            max_hypotheses=[100, "auto"],
            margin=[0.0, "auto"],
            max_iter=[3, 10],
        ),
        "CuSumRank": {
            **grid(
                update=["perceptron"],
                margin=[0.0, 1.0],
                average=means,
                intercept_scaling=scales,
                max_iter=passes[1:],
            ),
            **grid(
                update=["pa1"],
                C=[0.001, 0.01, 0.1, 1.0],
                intercept_scaling=scales,
                max_iter=passes[1:],
            ),
        },
        "WidrowHoff": {
            **grid(
                step=["normalized"],
                eta0=[0.01, 0.03, 0.1, 0.3, 1.0],
                average=means,
                intercept_scaling=scales,
                max_iter=passes[1:],
            ),
            **grid(step=["constant"], eta0=[0.01, 0.1], max_iter=[10]),
        },
        "MulticlassPerceptron": grid(
            update=["worst", "uniform"],
            average=means,
            intercept_scaling=scales,
            max_iter=passes[1:],
        ),
        "OAPBPM": grid(**ensemble),
        "OAPBagging": grid(**ensemble),
        "OAPVoting": grid(**ensemble),
    }


def kernel_grids() -> dict[str, dict[str, dict[str, Any]]]:
    """The same of learners with kernels, which are fitted to the smaller dense sets."""
    wide = {"gamma": ["scale", "half"], "max_iter": [3, 10, 20]}
    return {
        "KernelPRank": {
            **grid(average=[True, False], margin=[0.0, "auto"], **wide),
            **grid(gamma=["half"], max_iter=["auto"]),
        },
        "KernelCuSumRank": {
            **grid(average=[True, False], update=["perceptron"], margin=[0.0, 1.0], **wide),
            **grid(update=["pa1"], C=[1.0, 10.0], **wide),
        },
        "KernelOAPBPM": grid(average_members=[True, False], max_iter=[3, 10]),
    }


def ranking_grids() -> dict[str, dict[str, dict[str, Any]]]:
    """Settings of each ranker."""
    return {
        "PairwisePerceptron": grid(
            variant=["averaged", "committee", "pocket", "last"],
            margin=[0.0, 0.1, 1.0],
            max_iter=[3, 10, 50],
        ),
        "RankSVM": grid(loss=["squared_hinge", "hinge"], C=[0.001, 0.01, 0.1, 1.0, 10.0]),
        "RankBoost": {
            **grid(
                step=["third", "discrete"],
                n_estimators=[100, 300],
                learning_rate=[0.3, 1.0],
            ),
            **grid(
                max_leaf_nodes=[4, 31],
                n_estimators=[100],
                learning_rate=[0.05, 0.1, 0.3],
            ),
        },
        "BipartiteRankBoost": grid(
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
    """Loss of the best constant of the training part, or of the order of the file."""
    y, y_test = split["train"][1], split["test"][1]
    if len(split["train"]) == 2:
        losses = [rank_loss(y, np.full(y.size, one)) for one in np.unique(y)]
        return float(rank_loss(y_test, np.full(y_test.size, np.unique(y)[np.argmin(losses)])))
    scores = np.random.default_rng(0).random(y_test.size)
    return 1.0 - evaluate(y_test, scores, qid=split["test"][2], metrics="ndcg@10")["ndcg@10"]


def jobs(n: int) -> Iterator[tuple[str, str, Any, Any]]:
    """Set, learner, its settings, and how it is measured."""
    kernels = kernel_grids()
    for set_name in ordinal_sets(n):
        for learner, settings in {**ordinal_grids(), **kernels}.items():
            small = set_name.startswith("chu-") and "abalone" not in set_name
            if learner not in kernels or small:
                yield set_name, learner, settings, fitted_loss
    for set_name in ranking_sets(n):
        for learner, settings in ranking_grids().items():
            yield set_name, learner, settings, fitted_ndcg


def run(n: int, keep: Path | None, only: str) -> Results:
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


# ---------------------------------------------------------------- report


def means(done: Results, sets: list[str], learner: str) -> tuple[list[str], np.ndarray]:
    """Settings, and the mean figure of each on each set."""
    labels = list(done[sets[0]][learner])
    table = [[np.mean(done[one][learner][label]["values"]) for label in labels] for one in sets]
    return labels, np.array(table, dtype=float)


def default_label(learner: str, labels: list[str]) -> str:
    """The setting that is the default; of a grid that varies other parameters, the nearest."""
    params = getattr(rc, learner)().get_params()
    for label in labels:
        pairs = [pair.split("=") for pair in label.split()]
        if all(str(params[name]) == value for name, value in pairs):
            return label
    raise ValueError(f"the grid of {learner} lacks its default")


def of_learners(done: Results, sets: list[str]) -> Iterator[str]:
    """A row for each learner: what its default is worth among its settings."""
    what = ("rank among settings", "to the best setting", "within 3 % of it")
    yield from head("learner", "default", *what, "not above the constant")
    for learner in {name: None for one in sets for name in done[one] if name != "constant"}:
        known = [one for one in sets if learner in done[one]]
        labels, table = means(done, known, learner)
        constant = np.array([np.mean(done[one]["constant"]) for one in known])
        ranks = np.array([rankdata(row) for row in table]).mean(axis=0)
        at = labels.index(default_label(learner, labels))
        ratio = table[:, at] / table.min(axis=1)
        worse = [one for one, x, c in zip(known, table[:, at], constant, strict=True) if x >= c]
        place = int((ranks < ranks[at]).sum()) + 1
        yield (
            f"| {learner} | {labels[at]} | {place} of {len(labels)} | {ratio.mean():.3f} | "
            f"{np.mean(ratio <= 1.03):.0%} | {', '.join(worse) or 'none'} |"
        )


def of_settings(done: Results, sets: list[str], learner: str) -> Iterator[str]:
    """The settings of a learner, by mean rank."""
    known = [one for one in sets if learner in done[one]]
    labels, table = means(done, known, learner)
    ranks = np.array([rankdata(row) for row in table]).mean(axis=0)
    raw = np.array(["raw" in one for one in known])
    default = default_label(learner, labels)
    yield f"### {learner}"
    yield ""
    yield from head("setting", "mean rank", "mean, standardised or as usual", "mean, raw")
    for i in np.argsort(ranks, kind="stable"):
        if i not in np.argsort(ranks, kind="stable")[:8] and labels[i] != default:
            continue
        label = f"**{labels[i]}** (default)" if labels[i] == default else labels[i]
        cells = [f"{table[which, i].mean():.4f}" if which.any() else "" for which in (~raw, raw)]
        yield as_row(label, f"{ranks[i]:.1f}", *cells)
    yield ""


def draw(done: Results, sets: list[str], path: Path) -> None:
    """Mean ranks of the settings of each learner, the default marked."""
    from matplotlib.figure import Figure

    learners = list({name: None for one in sets for name in done[one] if name != "constant"})
    figure = Figure(figsize=(9, 0.55 * len(learners) + 1.2), layout="constrained")
    axes = figure.subplots()
    for height, learner in enumerate(reversed(learners)):
        known = [one for one in sets if learner in done[one]]
        labels, table = means(done, known, learner)
        ranks = np.array([rankdata(row) for row in table]).mean(axis=0)
        share = (ranks - 1) / (len(labels) - 1)
        at = labels.index(default_label(learner, labels))
        axes.plot(share, np.full(share.size, height), "o", color="0.75", markersize=5)
        axes.plot(share[at], height, "D", color="C0", markersize=8)
    axes.set_yticks(range(len(learners)), list(reversed(learners)))
    axes.set_xlabel("mean rank among a learner's settings over all sets: 0 best, 1 worst")
    axes.set_xlim(-0.02, 1.02)
    axes.plot([], [], "D", color="C0", label="default")
    axes.plot([], [], "o", color="0.75", label="other settings")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


def report(done: Results) -> Iterator[str]:
    """The Markdown."""
    ordinal = [one for one in done if not one.startswith(("ohsumed", "movielens people"))]
    ranking = [one for one in done if one not in ordinal]
    yield "# What the defaults are chosen by"
    yield ""
    yield "Written by `python -m reproduce.defaults`; see its first lines for what is measured."
    yield ""
    for title, sets in (
        ("Ordered labels: mean rank loss", ordinal),
        ("Queries: 1 - NDCG@10", ranking),
    ):
        yield f"## {title}"
        yield ""
        yield from of_learners(done, sets)
        yield ""
    yield "![Mean ranks of settings](defaults.png)"
    yield ""
    yield "## The settings of each learner, the first eight by mean rank"
    yield ""
    for sets in (ordinal, ranking):
        for learner in {name: None for one in sets for name in done[one] if name != "constant"}:
            yield from of_settings(done, sets, learner)


def main() -> None:
    """Run the grid and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--only", default="", help="of sets and learners with this in their names")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--png", type=Path)
    arguments = parser.parse_args()
    require(*FOLDERS)
    done = run(arguments.splits, arguments.keep, arguments.only)
    if arguments.only:
        return
    lines = list(report(done))
    publish("\n".join(lines) + "\n", arguments.markdown)
    if arguments.png:
        draw(done, [one for one in done], arguments.png)


if __name__ == "__main__":
    main()
