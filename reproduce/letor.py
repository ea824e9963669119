"""Pairwise perceptrons, RankBoost and RankSVM on OHSUMED (LETOR 3.0), five folds.

``python -m reproduce.letor`` prints the tables; --png draws the Committee Perceptron paper's figure
"MAP for perceptron variants", --markdown writes a copy of it all. The exit status is 1 if a row
misses its gate.

Features are normalised within queries (QueryLevelNorm), measures are the official ones of LETOR
3.0 (``convention="letor3"``). Everything is chosen by MAP on the validation fold: the epoch of up
to 50, the margin and the size of the committee; the round of up to 300. The test fold is only
measured. A seed orders the perceptrons' pairs; their tables are means over folds and seeds. Nothing
is random in RankBoost; its stumps have up to 254 thresholds a feature, and BipartiteRankBoost takes
labels 1 and 2 as relevant. RankSVM follows a path of 12 values of C in each fold; its rbf kernel is
that of Nystroem's 300 features, of three widths. Published rows are quoted at second hand, not run
here. The data are not part of the project: put them into ../shared/data, or name their folder in
RANKCORE_DATA.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np

import rankcore as rc
from reproduce.data import require
from reproduce.letor_boosting import boosting
from reproduce.letor_ranksvm import ranksvm
from reproduce.ohsumed import CUTS, FOLDS, METRICS, PUBLISHED, SHOWN, load, measured, number
from reproduce.pages import publish, table

EPOCHS = 50
MARGINS = [0.0, 0.1, 0.3, 1.0, 3.0]
SIZES = [5, 20, 100]
# Epochs after which the voters are measured: each takes a ranking by every hypothesis.
VOTES_AT = [1, 2, 5, 10, 20, 50]
VOTERS = 300
# MAP, NDCG@10
GATES = {
    "averaged": (0.444, 0.440),
    "committee": (0.435, 0.430),
    "RankBoost": (0.440, 0.430),
    "RankBoost, pairs alike": (0.440, 0.430),
    "RankSVM": (0.445, 0.440),
}


def curves(folds, seed, epochs=EPOCHS, **params):
    """Measure all variants of one pass after every epoch: validation MAP and test measures.

    Returns {variant: array (n_folds, n_epochs, 1 + n_metrics)}, and the fitted models.
    """
    found, models = {}, []
    for train, held, test in folds:
        model = rc.PairwisePerceptron(
            committee_size=max(SIZES), max_iter=epochs, random_state=seed, **params
        )
        rows = []

        def look(now, rows=rows, held=held, test=test):
            answers = {}
            for variant in ["averaged", "last", "pocket"]:
                answers[variant] = now.set_params(variant=variant).coef_
            for size in SIZES:
                now.set_params(variant="committee", committee_size=size)
                answers[f"committee {size}"] = now.coef_
            now.set_params(committee_size=max(SIZES))
            rows.append(
                {
                    name: [*measured(held, held[0] @ w, ["map"]), *measured(test, test[0] @ w)]
                    for name, w in answers.items()
                }
            )

        eval_set = {"eval_set": held[:2], "eval_qid": held[2]} if "quality" in params else {}
        models.append(
            model.fit(*train[:2], qid=train[2], callbacks=[lambda now: look(now.model)], **eval_set)
        )
        for name in rows[0]:
            found.setdefault(name, []).append([row[name] for row in rows])
    return {name: np.array(values) for name, values in found.items()}, models


def votes(folds, seed, margin):
    """Measure the same for voters by rank."""
    found = []
    for train, held, test in folds:
        model = rc.PairwisePerceptron(
            "voted", combine="rank", max_hypotheses=VOTERS, max_iter=max(VOTES_AT), margin=margin
        )
        rows = []

        def look(now, rows=rows, held=held, test=test):
            if now.n_iter_ in VOTES_AT:
                scores = [now.predict(part[0], qid=part[2]) for part in (held, test)]
                rows.append([*measured(held, scores[0], ["map"]), *measured(test, scores[1])])

        model.set_params(random_state=seed).fit(
            *train[:2], qid=train[2], callbacks=[lambda now: look(now.model)]
        )
        found.append(rows)
    return np.array(found)


def chosen(options):
    """Test measures where validation MAP is best, fold by fold, over epochs and options."""
    stacked = np.concatenate(options, axis=1)  # folds, options * epochs, 1 + metrics
    best = stacked[:, :, 0].argmax(axis=1)
    picked = stacked[np.arange(len(best)), best]
    return picked[:, 1:].mean(axis=0), picked[:, 0].mean()


def main_table(all_curves, all_votes):
    """Tabulate MAP and NDCG@10 of the five variants, with the published rows."""
    groups = {
        "averaged": ["averaged"],
        "committee": [f"committee {size}" for size in SIZES],
        "voted": None,
        "pocket": ["pocket"],
        "last": ["last"],
    }
    means, held = {}, {}
    for name, members in groups.items():
        picked = []
        for seed in all_curves:
            options = (
                list(all_votes[seed].values())
                if members is None
                else [found[m] for found in all_curves[seed].values() for m in members]
            )
            picked.append(chosen(options))
        means[name] = np.mean([p[0] for p in picked], axis=0)
        held[name] = np.mean([p[1] for p in picked])
        spread = np.std([p[0][0] for p in picked], ddof=1) if len(picked) > 1 else 0.0
        means[name + " spread"] = spread
    where = [METRICS.index(name) for name in SHOWN]
    rows = [[name, *(number(means[name][k]) for k in where), number(held[name])] for name in groups]
    rows += [[name, *map(number, values), ""] for name, values in PUBLISHED.items()]
    best = max(groups, key=lambda name: held[name])
    full = [[name, *(number(v) for v in means[name][1:11])] for name in groups]
    precise = [[name, *(number(v) for v in means[name][11:21])] for name in groups]
    head = [
        "",
        *(name.upper() if name == "map" else name.replace("ndcg", "NDCG") for name in SHOWN),
    ]
    lines = [
        *table(rows, [*head, "validation MAP"]),
        "",
        "Standard deviation of MAP from seed to seed: "
        + ", ".join(f"{name} {means[name + ' spread']:.4f}" for name in groups)
        + f". Of the highest validation MAP: {best}.",
        "",
        *table(full, ["NDCG at", *map(str, CUTS)]),
        "",
        *table(precise, ["P at", *map(str, CUTS)]),
    ]
    at = [0, METRICS.index("ndcg@10")]
    return lines, {name: means[name][at] for name in groups}


STUDY = [
    ("the defaults, margin 1", {}),
    ("margin 0 (the paper)", {"margin": 0.0}),
    ("margin 0.1", {"margin": 0.1}),
    ("margin 0.3", {"margin": 0.3}),
    ("margin 3", {"margin": 3.0}),
    ("lexicographic pairs, margin 1", {"shuffle": False}),
    ("lexicographic pairs, margin 0", {"shuffle": False, "margin": 0.0}),
    ("steps of 1 / 4000 in all queries, margin 1", {"balance": None, "margin": 4000.0}),
    ("steps alike in all queries, margin 0", {"balance": None, "margin": 0.0}),
    ('count="query", margin 1', {"count": "query"}),
    ('count="query", margin 0', {"count": "query", "margin": 0.0}),
    ('quality="map", margin 1', {"quality": "map"}),
    ('quality="map", margin 0', {"quality": "map", "margin": 0.0}),
]


def study(folds, all_curves):
    """Effect of the options: validation and test MAP of the epoch chosen on validation."""
    names = ["averaged", "last", "pocket", *(f"committee {size}" for size in SIZES)]
    rows = []
    for title, params in STUDY:
        key = params.get("margin", 1.0)
        known = set(params) <= {"margin"}
        found = all_curves[0][key] if known else curves(folds, 0, **params)[0]
        cells = []
        for name in names:
            test, held = chosen([found[name]])
            cells.append(f"{number(held)} / {number(test[0])}")
        rows.append([title, *cells])
        print(rows[-1], file=sys.stderr)
    return table(rows, ["validation / test MAP", *names])


def lives(folds):
    """Lifetimes and quality of the members of a committee."""
    rows = []
    for margin in [0.0, 1.0]:
        longest, at_large, of_members, of_average, sizes = [], [], [], [], []
        for train, held, _ in folds:
            seen = []

            def look(now, seen=seen):
                seen.append(now.set_params(variant="last").coef_)

            model = rc.PairwisePerceptron("committee", margin=margin, max_iter=10, random_state=0)
            model.fit(*train[:2], qid=train[2], callbacks=[lambda now: look(now.model)])
            members = model.set_params(variant="committee").committee_
            n_queries = len(np.unique(train[2]))
            sizes.append(model.history_["pairs"][0] / n_queries)
            longest.append(members.successes[-1])
            at_large += [measured(held, held[0] @ w, ["map"])[0] for w in seen]
            of_members += [measured(held, held[0] @ w, ["map"])[0] for w in members.weights]
            average = model.set_params(variant="averaged").coef_
            of_average.append(measured(held, held[0] @ average, ["map"])[0])
        rows.append(
            [
                f"{margin:g}",
                f"{np.mean(longest):.0f} of {np.mean(sizes):.0f}",
                number(np.mean(of_members)),
                number(np.mean(at_large)),
                number(np.mean(of_average)),
            ]
        )
    head = [
        "margin",
        "successes of the 20th member, of pairs in a query",
        "validation MAP of a member",
        "of the last hypothesis of an epoch",
        "of the average",
    ]
    return table(rows, head)


def times(folds):
    """Seconds of 50 epochs, the median fold."""
    rows = []
    for title, params in [
        ("margin 1, shuffled", {}),
        ("margin 0, shuffled", {"margin": 0.0}),
        ("margin 0, lexicographic", {"margin": 0.0, "shuffle": False}),
    ]:
        seconds = []
        for train, _, _ in folds:
            model = rc.PairwisePerceptron("committee", max_iter=EPOCHS, random_state=0, **params)
            start = perf_counter()
            model.fit(*train[:2], qid=train[2])
            seconds.append(perf_counter() - start)
        pairs = sum(model.history_["pairs"])
        rows.append([title, f"{np.median(seconds):.2f} s", f"{pairs / 1e6:.1f} million pairs"])
    return table(rows, ["", f"{EPOCHS} epochs", "of the last fold"])


def draw(path, all_curves, all_votes):
    """Draw the paper's figure: test MAP after each epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, margin in zip(figure.subplots(1, 2, sharey=True), [0.0, 1.0], strict=True):
        for name in ["averaged", "committee 20", "pocket", "last"]:
            values = np.mean(
                [found[margin][name][:, :, 1].mean(axis=0) for found in all_curves.values()], axis=0
            )
            axes.plot(range(1, len(values) + 1), values, label=name)
        ballots = np.mean([v[margin][:, :, 1].mean(axis=0) for v in all_votes.values()], axis=0)
        axes.plot(VOTES_AT, ballots, "o--", markersize=4, label=f"voted ({VOTERS} by rank)")
        axes.axhline(PUBLISHED["RankSVM (published)"][0], color="black", linestyle=":", linewidth=1)
        axes.annotate("RankSVM, published", (1, 0.4335), fontsize=8)
        axes.set_title(f"margin {margin:g}")
        axes.set_xlabel("epochs")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("MAP on the test folds")
    figure.axes[1].legend(loc="lower right")
    figure.suptitle("OHSUMED: variants of one pass, pairs shuffled")
    figure.savefig(path, dpi=120)


def arguments():
    """Options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.letor", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="orders of the pairs (default: 5)")
    parser.add_argument("--png", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser.parse_args()


def head(n_seeds):
    """Title, command, method and machine."""
    return [
        "# Pairwise perceptrons, RankBoost and RankSVM on OHSUMED",
        "",
        f"    python -m reproduce.letor {' '.join(sys.argv[1:])}".rstrip(),
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {version('numpy')}, "
        f"{n_seeds} seeds.",
        "",
    ]


def judged(reached):
    """Return a line for each goal, and whether one is missed."""
    lines, failed = [], False
    for name, (least_map, least_ndcg) in GATES.items():
        good = reached[name][0] >= least_map and reached[name][1] >= least_ndcg
        failed |= not good
        lines.append(
            f"{'Reached' if good else 'MISSED'}: {name}, MAP {reached[name][0]:.4f} (at least "
            f"{least_map}), NDCG@10 {reached[name][1]:.4f} (at least {least_ndcg})."
        )
    return lines, failed


def main():
    options = arguments()
    require("ohsumed-letor3")
    folds = [tuple(load(part) for part in parts) for parts in FOLDS]
    timing = times(folds)
    all_curves = {
        seed: {margin: curves(folds, seed, margin=margin)[0] for margin in MARGINS}
        for seed in range(options.seeds)
    }
    all_votes = {
        seed: {margin: votes(folds, seed, margin) for margin in [0.0, 1.0]}
        for seed in range(options.seeds)
    }
    results, reached = main_table(all_curves, all_votes)
    boosted, of_boosting = boosting(folds)
    machines, of_machines = ranksvm(folds)
    reached |= of_boosting | of_machines
    lines = [
        *head(options.seeds),
        "## Pairwise perceptrons",
        "",
        *results,
        "",
        *([f"![MAP after each epoch]({options.png.name})", ""] if options.png else []),
        "## RankBoost",
        "",
        *boosted,
        "",
        "## RankSVM",
        "",
        *machines,
        "",
        "## Time of the perceptrons",
        "",
        "Wall-clock seconds of this run, one thread, the median fold; above as well.",
        "",
        *timing,
        "",
        "## What the options do",
        "",
        *study(folds, all_curves),
        "",
        "## Why the committee needs a margin",
        "",
        *lives(folds),
        "",
    ]
    goals, failed = judged(reached)
    text = "\n".join([*lines, *goals]) + "\n"
    publish(text, options.markdown)
    if options.png:
        draw(options.png, all_curves, all_votes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
