"""RankBoost with trees and stumps against LightGBM, XGBoost and CatBoost, at equal budgets.

``python -m reproduce.trees --cache FILE`` fits what FILE (JSON lines) does not hold yet and prints
the tables; --markdown writes them to a file, --png draws them; --sets and --learners name some of
them, --seconds ends a run early, to be gone on with later, --trials makes less than 20 of them.
A set's table is of the trials that all learners have made.

Sets: OHSUMED (LETOR 3.0) in its five folds; queries of `make_letor` in five draws; MovieLens 100k
as ranking in five draws: a query is a user, a document a film that the user rated, its label the
rating. Two fifths of the ratings only describe films and users (counts, means, shares of each
rating, and the products of 16 singular vectors), two fifths are learned from, one is for testing; a
fifth of the users is for validation.

Each learner has the first of 20 draws of its parameters, all learners as many as the head of the
table says, and the same draws where they have the same parameters (leaves, rate, rows in a leaf,
shares of queries or rows and, for each node, of features, L2); in each the number of rounds, up to
200. "Stumps or trees" is the better one of both by validation: it has twice as many trials as
another. The best by validation (MAP on OHSUMED, else NDCG@10) is measured on the test part. Means
over folds, with the 95% interval of Student's t over folds, and the median processor time of a
trial, of 200 rounds on one thread.
"""

import argparse
import json
import platform
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.stats import t as student

import rankcore as rc
from rankcore.datasets import make_letor
from rankcore.metrics import evaluate
from reproduce.data import DATA, require
from reproduce.ohsumed import FOLDS, load
from reproduce.pages import publish, table

FAMILY = ["RankBoost, stumps", "RankBoost, trees"]
ROUNDS = (10, 20, 40, 70, 100, 150, 200)
TRIALS = 20
MEASURES = ["map", "ndcg@10"]
CHOICES = {
    "leaves": [4, 8, 16, 31, 63],
    "rate": [0.03, 0.05, 0.1, 0.2, 0.3],
    "rows": [5, 20, 50, 100],
    "share": [0.6, 0.8, 1.0],
    "columns": [0.5, 0.8, 1.0],
    "l2": [0.0, 1.0, 10.0],
}


def draws():
    """Parameters of each trial."""
    rng = np.random.default_rng(17)
    return [{name: rng.choice(values) for name, values in CHOICES.items()} for _ in range(TRIALS)]


# ------------------------------------------------------------------ learners: scores after ROUNDS


def staged(model, parts):
    """Scores of several parts after each number of rounds; the last ones where it ended earlier."""
    found = []
    for part in parts:
        scores, all_scores = np.zeros(len(part[0])), []
        stages = model.staged_predict(part[0])
        for i in range(1, ROUNDS[-1] + 1):
            scores = next(stages, scores)
            if i in ROUNDS:
                all_scores.append(scores)
        found.append(all_scores)
    return found


def stumps(p, train, parts):
    # What stumps have to choose from.
    step = ["third", "discrete"][int(p["leaves"] > 8)]
    balance = ["query", None][int(p["share"] < 0.8)]
    model = rc.RankBoost(ROUNDS[-1], step=step, balance=balance, learning_rate=max(p["rate"], 0.1))
    return staged(model.fit(*train[:2], qid=train[2]), parts)


def trees(p, train, parts):
    model = rc.RankBoost(
        ROUNDS[-1],
        max_leaf_nodes=int(p["leaves"]),
        learning_rate=float(p["rate"]),
        min_samples_leaf=int(p["rows"]),
        subsample=float(p["share"]),
        max_features=float(p["columns"]),
        l2_leaf=float(p["l2"]) / 1000,  # all pairs weigh 1
        random_state=0,
    )
    return staged(model.fit(*train[:2], qid=train[2]), parts)


def grouped(train):
    """Return rows sorted by query, as peers require."""
    order = np.argsort(train[2], kind="stable")
    return train[0][order], train[1][order], np.unique(train[2], return_counts=True)[1], order


def lightgbm_of(objective):
    def fit(p, train, parts):
        import lightgbm

        X, y, group, _ = grouped(train)
        params = {
            "objective": objective,
            "num_leaves": int(p["leaves"]),
            "learning_rate": p["rate"],
            "min_data_in_leaf": int(p["rows"]),
            "bagging_fraction": p["share"],
            "bagging_freq": 1,
            "feature_fraction_bynode": p["columns"],
            "lambda_l2": p["l2"],
            "num_threads": 1,
            "seed": 0,
            "verbose": -1,
        }
        model = lightgbm.train(params, lightgbm.Dataset(X, y, group=group), ROUNDS[-1])
        return [[model.predict(part[0], num_iteration=n) for n in ROUNDS] for part in parts]

    return fit


def xgboost_of(objective):
    def fit(p, train, parts):
        import xgboost

        X, y, group, _ = grouped(train)
        data = xgboost.DMatrix(X, y, nthread=1)
        data.set_group(group)
        params = {
            "objective": objective,
            "max_leaves": int(p["leaves"]),
            "max_depth": 0,
            "grow_policy": "lossguide",
            "tree_method": "hist",
            "eta": p["rate"],
            "min_child_weight": p["rows"] / 20,
            "subsample": p["share"],
            "colsample_bynode": p["columns"],
            "lambda": p["l2"],
            "nthread": 1,
            "seed": 0,
        }
        model = xgboost.train(params, data, ROUNDS[-1])
        held = [xgboost.DMatrix(part[0], nthread=1) for part in parts]
        return [[model.predict(one, iteration_range=(0, n)) for n in ROUNDS] for one in held]

    return fit


def catboost_of(objective):
    def fit(p, train, parts):
        import catboost

        X, y, _, order = grouped(train)
        model = catboost.CatBoost(
            {
                "loss_function": objective,
                "iterations": ROUNDS[-1],
                "grow_policy": "Lossguide",
                "max_leaves": int(p["leaves"]),
                "learning_rate": p["rate"],
                "min_data_in_leaf": int(p["rows"]),
                "rsm": p["columns"],
                "l2_leaf_reg": p["l2"],
                "thread_count": 1,
                "random_seed": 0,
                "verbose": False,
                "allow_writing_files": False,
            }
        )
        model.fit(catboost.Pool(X, y, group_id=train[2][order]))
        return [[model.predict(part[0], ntree_end=n) for n in ROUNDS] for part in parts]

    return fit


LEARNERS = {
    "RankBoost, stumps": ("rankcore", stumps),
    "RankBoost, trees": ("rankcore", trees),
    "LightGBM, lambdarank": ("lightgbm", lightgbm_of("lambdarank")),
    "LightGBM, rank_xendcg": ("lightgbm", lightgbm_of("rank_xendcg")),
    "XGBoost, rank:ndcg": ("xgboost", xgboost_of("rank:ndcg")),
    "XGBoost, rank:pairwise": ("xgboost", xgboost_of("rank:pairwise")),
    "CatBoost, YetiRank": ("catboost", catboost_of("YetiRank")),
}

# ------------------------------------------------------------------ sets: train, held out, test


@cache
def ohsumed(fold):
    return tuple(load(part) for part in FOLDS[fold])


@cache
def letor(fold):
    X, y, qid = make_letor(300, random_state=fold)
    X = X.astype(np.float32)
    ends = (0, 150, 200, 300)
    parts = [(qid > a) & (qid <= b) for a, b in pairwise(ends)]
    return tuple((X[part], y[part], qid[part]) for part in parts)


@cache
def movielens(fold):
    """See above."""
    folder = DATA / "movielens-100k"
    ratings = np.loadtxt(folder / "u.data.tsv.gz", dtype=np.int64, usecols=(0, 1, 2))
    user, film, rating = ratings.T
    order = np.random.default_rng(fold).permutation(len(rating))
    described, learned, test = np.split(order, [int(0.4 * order.size), int(0.8 * order.size)])
    n_users, n_films = user.max() + 1, film.max() + 1
    known = np.zeros((n_users, n_films))
    known[user[described], film[described]] = rating[described] - rating[described].mean()
    u, s, v = np.linalg.svd(known, full_matrices=False)
    counts = np.array(
        [
            np.bincount(film[described][rating[described] == r], minlength=n_films)
            for r in range(1, 6)
        ]
    ).T
    n = counts.sum(axis=1)
    means = (counts @ np.arange(1, 6) + 3.5 * 2) / (n + 2)
    of_films = np.column_stack([n, means, (counts + 0.2) / (n + 1)[:, None]])
    held_users = np.random.default_rng(fold).random(n_users) < 0.2

    def rows(which):
        a, b = user[which], film[which]
        products = u[a, :16] * s[:16] * v[:16, b].T
        X = np.column_stack([of_films[b], products, products.sum(axis=1)])
        return X.astype(np.float32), rating[which], a

    held = held_users[user[learned]]
    return rows(learned[~held]), rows(learned[held]), rows(test)


# Parts of a fold, the measure that selects, and the convention of measures. LETOR's gives queries
# of fewer than 10 documents 0; a third of the users of MovieLens test fewer films.
SETS = {
    "OHSUMED": (ohsumed, "map", "letor3"),
    "make_letor": (letor, "ndcg@10", None),
    "MovieLens": (movielens, "ndcg@10", None),
}

# ------------------------------------------------------------------ trials and tables


def measured(part, scores, convention):
    results = evaluate(part[1], scores, qid=part[2], metrics=MEASURES, convention=convention)
    return [float(results[name]) for name in MEASURES]


def trial(fit, parameters, parts, convention):
    """Measures on the validation and the test part after each number of rounds, and seconds."""
    start = process_time()
    held, test = fit(parameters, parts[0], parts[1:])
    seconds = process_time() - start
    return {
        "held": [measured(parts[1], scores, convention) for scores in held],
        "test": [measured(parts[2], scores, convention) for scores in test],
        "seconds": seconds,
    }


def collect(path, names, learners, trials, seconds):
    """Return all trials; run those missing from the file while there is time."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            one = json.loads(line)
            found[one["set"], one["fold"], one["learner"], one["trial"]] = one
    end = perf_counter() + seconds
    with path.open("a") as file:
        for number, parameters in enumerate(draws()[:trials]):
            for name in names:
                for fold in range(5):
                    parts = None
                    for learner in learners:
                        package, fit = LEARNERS[learner]
                        key = (name, fold, learner, number)
                        if key in found or not find_spec(package):
                            continue
                        if perf_counter() > end:
                            return found
                        parts = parts or SETS[name][0](fold)
                        found[key] = trial(fit, parameters, parts, SETS[name][2])
                        where = dict(zip(("set", "fold", "learner", "trial"), key, strict=True))
                        file.write(json.dumps({**where, **found[key]}) + "\n")
                        file.flush()
    return found


def best(found, name, fold, learners, trials):
    """Return test measures of the best trial on the validation part, of one learner or of two."""
    at = MEASURES.index(SETS[name][1])
    values = [
        (stage[at], found[name, fold, learner, number]["test"][i])
        for learner in learners
        for number in range(trials)
        for i, stage in enumerate(found[name, fold, learner, number]["held"])
    ]
    return max(values)[1]


def complete(found, name, learners):
    """Return the number of trials that all learners completed on all folds."""
    for number in range(TRIALS):
        keys = [(name, fold, learner, number) for fold in range(5) for learner in learners]
        if not all(key in found for key in keys):
            return number
    return TRIALS


def summary(found, name, learners, trials):
    """Lines of Markdown; means and half intervals by learner."""
    figures, rows = {}, []
    shown = {learner: [learner] for learner in learners}
    if set(FAMILY) <= set(learners):
        shown["RankBoost, stumps or trees"] = FAMILY
    for label, names in shown.items() if trials else ():
        values = np.array([best(found, name, fold, names, trials) for fold in range(5)])
        half = student.ppf(0.975, 4) * values.std(axis=0, ddof=1) / np.sqrt(5)
        seconds = np.median(
            [
                found[name, fold, learner, number]["seconds"]
                for learner in names
                for fold in range(5)
                for number in range(trials)
            ]
        )
        figures[label] = values.mean(axis=0), half
        cells = [f"{mean:.4f} ± {h:.4f}" for mean, h in zip(values.mean(axis=0), half, strict=True)]
        if name == "MovieLens":
            cells[0] = ""  # no rating is 0: all films are relevant
        rows.append([label, *cells, f"{seconds:.1f}"])
    head = [f"{name}, {trials} trials each", "MAP", "NDCG@10", "seconds per trial"]
    return table(rows, head), figures


def draw(figures, path):
    """NDCG@10 of all learners on all sets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.8), layout="constrained")
    for axes, (name, values) in zip(
        figure.subplots(1, len(figures), squeeze=False)[0], figures.items(), strict=True
    ):
        means = [mean[1] for mean, _ in values.values()]
        halves = [half[1] for _, half in values.values()]
        places = np.arange(len(values))[::-1]
        axes.errorbar(means, places, xerr=halves, fmt="o", capsize=3)
        axes.set_yticks(places, list(values) if axes.get_subplotspec().is_first_col() else [])
        axes.set(title=name, xlabel="NDCG@10")
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(prog="python -m reproduce.trees", description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path("trees.jsonl"))
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--trials", type=int, choices=range(1, TRIALS + 1), default=TRIALS)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--png", type=Path)
    arguments = parser.parse_args()
    trials = arguments.trials
    read = {"OHSUMED": "ohsumed-letor3", "MovieLens": "movielens-100k"}
    require(*(read[name] for name in arguments.sets if name in read))
    found = collect(arguments.cache, arguments.sets, arguments.learners, trials, arguments.seconds)
    names = [find for find in ("rankcore", "lightgbm", "xgboost-cpu", "catboost") if _has(find)]
    lines = ["# Trees and stumps on pairs, compared with LambdaMART and others", ""]
    lines += ["`python -m reproduce.trees`: " + " ".join(__doc__.split("\n\n", 2)[2].split()), ""]
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    lines += [f"{platform.machine()}, Python {platform.python_version()}, {versions}", ""]
    learners = [name for name in arguments.learners if find_spec(LEARNERS[name][0])]
    if not set(LEARNERS) <= set(learners):
        lines += ["Left out: " + "; ".join(name for name in LEARNERS if name not in learners), ""]
    figures = {}
    for name in arguments.sets:
        made = min(trials, complete(found, name, learners))
        rows, figures[name] = summary(found, name, learners, made)
        lines += [*rows, ""]
    publish("\n".join(lines), arguments.markdown)
    if arguments.png:
        draw(figures, arguments.png)


def _has(package):
    return bool(find_spec(package.removesuffix("-cpu")))


if __name__ == "__main__":
    main()
