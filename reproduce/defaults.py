"""Defaults before and after: 20 seeds, intervals, wins and losses, with other tools.

``python -m reproduce.defaults --markdown PATH --keep PATH`` reads ``../shared/data`` or
``$RANKCORE_DATA`` and measures, on rows that were held out, every learner with its defaults, with
those that it had before margins, wider kernels and scales of features (written as parameters), and
other tools with theirs: mord's LogisticAT, scikit-learn's SVC and logistic regression, LightGBM.
mord and LightGBM are left out where they are not installed. --keep (JSON) goes on from what is
done; --only measures sets with this in their names. `reproduce.ordinal_boost` has the defaults of
`OrdinalBoost`; the page ends with `earlier_studies.txt`.

Figures are mean absolute errors of ranks, of the median for tools with probabilities, or 1 - NDCG
at 10: less is better. Rows that repeat an earlier one are left out of Chu and Ghahramani's sets. A
seed shuffles the
rows into five folds, each of which is held out once, and is the learners' seed; its figure is the
mean over folds. Of sets with more than 2,000 rows (abalone, SST-5, OHSUMED's queries) a seed holds
out one fold. Of MovieLens a seed draws five tasks of `reproduce.oap_real`, of cystic fibrosis one,
and of MovieLens's people as queries one half. Differences are paired by seed, with 95 % intervals
of Student's t over seeds: they hold for these rows, the sign test over sets for others.

Sets of Chu and Ghahramani are standardised; linear learners are also fitted to them as they come
("raw"), kernels to all but abalone. `UNFIT` lists the sets to which slow tools are not fitted.
"KernelPRank, always 20 passes" is `KernelPRank` without its choice of passes.
"""

import argparse
import json
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import binomtest, t
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rankcore as rc
from rankcore.metrics import evaluate
from reproduce.cusum_tables import LogisticAT, data
from reproduce.data import require
from reproduce.oap_real import cystic_fibrosis, movielens
from reproduce.pages import as_row, head, publish
from reproduce.sets import (
    CHU,
    FOLDERS,
    distinct,
    median_ranks,
    movielens_queries,
    ohsumed_part,
    sst5,
)

SEEDS, FOLDS = 20, 5
# Rows of a set of which each seed holds out one fold.
MANY = 2000
# Parts of names of sets to which a tool is not fitted: mord takes dense rows, others long.
UNFIT = {
    "mord LogisticAT": ["SST-5"],
    "LogisticRegression": ["SST-5"],
    "LightGBM": ["10 bins", "as they come", "raw", "people"],
    "PairwisePerceptron, before": ["queries: OHSUMED, normalised"],
}
BEFORE, ALL_PASSES = ", before", "KernelPRank, always 20 passes"
Split = dict[str, Any]
# Fits a model with a seed to rows, ranks and perhaps queries.
Fit = Callable[..., Any]
# Figures by set and model: one per seed, and the median seconds of a fit.
Results = dict[str, dict[str, dict[str, Any]]]

# ---------------------------------------------------------------- models


def ours(learner: Any, **params: Any) -> Fit:
    """Fits of one of our learners."""
    return lambda seed, X, y, **groups: learner(random_state=seed, **params).fit(X, y, **groups)


def without_seed(make: Callable[[], Any]) -> Fit:
    """Fits of a model that does not depend on a seed."""
    return lambda seed, X, y, **groups: make().fit(X, y, **groups)


def lightgbm(ranker: bool, **params: Any) -> Fit:
    """LightGBM's classifier or ranker."""
    import lightgbm as lgb

    def fit(seed: int, X: Any, y: np.ndarray, qid: Any = None) -> Any:
        model = (lgb.LGBMRanker if ranker else lgb.LGBMClassifier)(verbose=-1, n_jobs=1, **params)
        if not ranker:
            return model.fit(X.astype(np.float64), y)
        order = np.argsort(qid, kind="stable")
        return model.fit(X[order], y[order], group=np.unique(qid, return_counts=True)[1])

    return fit


def linear(kind: str) -> dict[str, Fit]:
    """Linear learners."""
    found = {
        "PRank, before": ours(rc.PRank, margin=0.0),
        "PRank": ours(rc.PRank),
        "VotedPRank, before": ours(rc.VotedPRank, margin=0.0),
        "VotedPRank": ours(rc.VotedPRank),
    }
    for learner in (
        *(rc.OAPBPM, rc.OAPBagging, rc.OAPVoting),
        *(rc.CuSumRank, rc.WidrowHoff, rc.MulticlassPerceptron),
    ):
        found[learner.__name__] = ours(learner)
    return found if kind == "raw" else found | peers()


def peers() -> dict[str, Fit]:
    """Other tools for linear learners."""
    found = {"LogisticRegression": without_seed(lambda: LogisticRegression(max_iter=1000))}
    if find_spec("mord") is not None:
        found["mord LogisticAT"] = without_seed(LogisticAT)
    if find_spec("lightgbm") is not None:
        found["LightGBM"] = lightgbm(False)
    return found


def kernels(kind: str) -> dict[str, Fit]:
    """Learners with kernels."""
    perceptron = {"update": "perceptron", "C": 1.0, "gamma": "scale", "max_iter": 10}
    return {
        "KernelPRank, before": ours(rc.KernelPRank, margin=0.0, gamma="scale", max_iter=10),
        "KernelPRank": ours(rc.KernelPRank),
        ALL_PASSES: ours(rc.KernelPRank, max_iter=20),
        "KernelCuSumRank, before": ours(rc.KernelCuSumRank, **perceptron),
        "KernelCuSumRank": ours(rc.KernelCuSumRank),
        "KernelOAPBPM": ours(rc.KernelOAPBPM),
        "SVC": without_seed(SVC),
    }


def rankers(kind: str) -> dict[str, Fit]:
    """Rankers."""
    found = {
        "PairwisePerceptron, before": ours(rc.PairwisePerceptron, standardize=False),
        "PairwisePerceptron": ours(rc.PairwisePerceptron),
        "RankSVM": without_seed(rc.RankSVM),
        "RankBoost": ours(rc.RankBoost),
    }
    return found | ({"LightGBM": lightgbm(True)} if find_spec("lightgbm") else {})


# ---------------------------------------------------------------- sets


def chu(name: str, bins: int, scaled: bool) -> Iterator[Iterator[Split]]:
    """Yield the splits of each seed."""
    X, y, _ = data(name, bins)
    kept = distinct(X, y)
    X, y = X[kept], y[kept]
    held = FOLDS if len(y) < MANY else 1
    scale = StandardScaler(with_mean=scaled, with_std=scaled)
    for seed in range(SEEDS):
        parts = KFold(FOLDS, shuffle=True, random_state=seed).split(X)
        yield (
            {
                "train": (scale.fit(X[train]).transform(X[train]), y[train]),
                "test": (scale.transform(X[test]), y[test]),
            }
            for train, test in islice(parts, held)
        )


def texts() -> Iterator[Iterator[Split]]:
    """Return a fold of the training part of SST-5 for each seed."""
    X, y = next(sst5("dev"))["train"]
    for seed in range(SEEDS):
        train, test = next(KFold(FOLDS, shuffle=True, random_state=seed).split(X))
        yield iter([{"train": (X[train], y[train]), "test": (X[test], y[test])}])


def tasks(task: Callable[[int], Any], n: int) -> Iterator[Iterator[Split]]:
    """Tasks for each seed."""
    for seed in range(SEEDS):
        drawn = map(task, range(n * seed, n * (seed + 1)))
        yield ({"train": one[:2], "test": one[2:]} for one in drawn)


def documents(kind: str) -> Iterator[Iterator[Split]]:
    """Return a fold of OHSUMED's queries for each seed."""
    rows = ohsumed_part(kind, "12345")
    queries = np.unique(rows[2])
    for seed in range(SEEDS):
        _, test = next(KFold(FOLDS, shuffle=True, random_state=seed).split(queries))
        held = np.isin(rows[2], queries[test])
        yield iter([{"train": [one[~held] for one in rows], "test": [one[held] for one in rows]}])


def people() -> Iterator[Iterator[Split]]:
    """MovieLens's people as queries: a half for each seed."""
    return (iter([split]) for split in movielens_queries(SEEDS))


Sets = dict[str, Callable[[], Iterator[Iterator[Split]]]]


def chu_sets(scaled: bool, names: list[str]) -> Sets:
    """Chu and Ghahramani's sets by name."""
    kind = "standardised" if scaled else "raw"
    return {
        f"{kind}: {name}, {bins} bins": partial(chu, name, bins, scaled)
        for bins in (5, 10)
        for name in names
    }


def studies() -> Iterator[tuple[str, Callable[[str], dict[str, Fit]], Sets]]:
    """Title, models by the kind of a set, and sets."""
    small = [name for name in CHU if name != "abalone"]
    others: Sets = {
        "as they come: SST-5": texts,
        "as they come: cystic fibrosis": partial(tasks, partial(cystic_fibrosis, shift=1.0), 1),
        "as they come: MovieLens": partial(tasks, movielens, FOLDS),
    }
    queries: Sets = {
        "queries: OHSUMED, normalised": partial(documents, "norm"),
        "queries: OHSUMED, raw": partial(documents, "min"),
        "queries: MovieLens, people": people,
    }
    yield "Linear learners", linear, chu_sets(True, CHU) | others | chu_sets(False, CHU)
    yield "Kernels", kernels, chu_sets(True, small)
    yield "Rankers", rankers, queries


# ---------------------------------------------------------------- measures


def constant(seed: int, X: Any, y: np.ndarray, qid: Any = None) -> Any:
    """Return the median rank, or scores in random order."""

    class Constant:
        def predict(self, X: Any) -> np.ndarray:
            if qid is not None:
                return np.random.default_rng(seed).random(X.shape[0])
            return np.full(X.shape[0], np.sort(y)[(len(y) - 1) // 2])

    return Constant()


def figure(fit: Fit, split: Split, seed: int) -> tuple[float, float]:
    """Error on held-out rows, and the seconds of the fit."""
    X, y, *qid = split["train"]
    begin = process_time()
    model = fit(seed, X, y, **({"qid": qid[0]} if qid else {}))
    seconds = process_time() - begin
    X, y, *qid = split["test"]
    if qid:
        return 1.0 - evaluate(y, model.predict(X), qid=qid[0], metrics="ndcg@10")[
            "ndcg@10"
        ], seconds
    if hasattr(model, "predict_proba"):
        found = model.classes_[median_ranks(model.predict_proba(X))]
    else:
        found = np.asarray(model.predict(X))
    return float(np.abs(found - y).mean()), seconds


def measure(known: dict[str, Any], models: dict[str, Fit], seeds: Iterator[Any], n: int) -> None:
    """Add the figures of each model on the first n folds of each seed that are not known."""
    for seed, splits in enumerate(seeds):
        for fold, split in enumerate(islice(splits, n)):
            for name, fit in models.items():
                found = known.setdefault(name, {"losses": [], "seconds": []})
                losses = found["losses"]
                if len(losses) == seed:
                    losses.append([])
                if len(losses[seed]) == fold:
                    loss, seconds = figure(fit, split, seed)
                    losses[seed].append(loss)
                    found["seconds"].append(seconds)


def run(keep: Path | None, only: str, n: int) -> dict[str, Results]:
    """Figures by title, of all models that are not in a file of earlier ones."""
    done: dict[str, Any] = json.loads(keep.read_text()) if keep and keep.exists() else {}
    for title, models_of, sets in studies():
        for name, seeds in sets.items():
            if only not in f"{title}: {name}":
                continue
            models = models_of(name.split(":")[0]) | {"constant": constant}
            for slow, unfit in UNFIT.items():
                if any(part in name for part in unfit):
                    models.pop(slow, None)
            known = done.setdefault(title, {}).setdefault(name, {})
            before = json.dumps(known)
            measure(known, models, seeds(), n)
            if json.dumps(known) != before:
                print(f"{title}: {name}", flush=True)
                if keep:
                    keep.write_text(json.dumps(done))
    return done


# ---------------------------------------------------------------- report


def by_seed(found: dict[str, Any], name: str) -> np.ndarray:
    """Return a model's mean over the folds of each seed."""
    return np.mean(found[name]["losses"], axis=1)


def difference(found: dict[str, Any], one: str, other: str) -> tuple[float, float]:
    """Mean difference of two models' figures over seeds, and half of its 95 % interval."""
    gaps = np.subtract(by_seed(found, one), by_seed(found, other))
    half = t.ppf(0.975, gaps.size - 1) * gaps.std(ddof=1) / np.sqrt(gaps.size)
    return float(gaps.mean()), float(half)


def of_changes(results: Results, changed: list[str]) -> Iterator[str]:
    """Set by set, before and after."""
    yield from head("error before, change", *changed)
    for name, found in results.items():
        cells = []
        for learner in changed:
            if f"{learner}{BEFORE}" not in found:
                cells.append("")
                continue
            gap, half = difference(found, learner, f"{learner}{BEFORE}")
            mark = "" if abs(gap) <= half else "**" if gap < 0 else "*"
            before = by_seed(found, f"{learner}{BEFORE}").mean()
            cells.append(f"{before:.4f}, {mark}{gap:+.4f}{mark} ± {half:.4f}")
        yield as_row(name, *cells)
    yield ""


def of_models(results: Results, names: list[str]) -> Iterator[str]:
    """Set by set, every model with its defaults."""
    yield from head("error", *names)
    for name, found in results.items():
        means = {one: float(by_seed(found, one).mean()) for one in names if one in found}
        least = min(means.values())
        cells = [
            "" if one not in means else ("**" if means[one] == least else "") + f"{means[one]:.4f}"
            + ("**" if means[one] == least else "")
            for one in names
        ]  # fmt: skip
        yield as_row(name, *cells)
    seconds = [
        1e3
        * np.mean([np.median(found[one]["seconds"]) for found in results.values() if one in found])
        for one in names
    ]
    yield as_row("milliseconds of a fit", *(f"{one:.3g}" for one in seconds))
    yield ""


def of_pairs(results: Results, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Wins and losses by kind of set."""
    what = ("sets", "mean error of both", "change", "wins : losses", "sure", "p")
    yield from head("model", "against", *what)
    for one, other in pairs:
        for kind in dict.fromkeys(name.split(":")[0] for name in results):
            sets = [
                found
                for name, found in results.items()
                if name.startswith(kind) and one in found and other in found
            ]
            if sets:
                against = other.replace(f"{one}{BEFORE}", "before")
                cells = comparison(sets, one, other)
                yield as_row(one, against, f"{kind}, {len(sets)}", *cells)
    yield ""


def comparison(sets: list[dict[str, Any]], one: str, other: str) -> tuple[str, ...]:
    """Return the figures of a pair of models."""
    means = np.array([[by_seed(found, name).mean() for name in (one, other)] for found in sets])
    changes = means[:, 0] / means[:, 1] - 1
    gaps = [difference(found, one, other) for found in sets]
    wins, defeats = (changes < 0).sum(), (changes > 0).sum()
    sure = [sum(sign * gap > half for gap, half in gaps) for sign in (-1, 1)]
    p = binomtest(int(wins), int(wins + defeats)).pvalue if wins + defeats else 1.0
    first, second = means.mean(axis=0)
    change, mean = f"{changes.mean():+.1%}", f"{first:.4f}, {second:.4f}"
    return mean, change, f"{wins} : {defeats}", f"{sure[0]} : {sure[1]}", f"{p:.2g}"


def behind(results: Results, names: list[str]) -> Iterator[str]:
    """Return sets on which a default is behind the constant."""
    yield from head("default", "behind the constant")
    for one in names:
        cells = []
        for name, found in results.items():
            if one in found:
                gap, half = difference(found, one, "constant")
                if gap > 0:
                    mark = "**" if gap > half else ""
                    cells.append(f"{mark}{name} {gap:+.4f} ± {half:.4f}{mark}")
        yield as_row(one, "; ".join(cells) or "nowhere")
    yield ""


PEERS = ("mord LogisticAT", "SVC", "LogisticRegression", "LightGBM")


def report(done: dict[str, Results]) -> Iterator[str]:
    """Write the Markdown."""
    yield "# Defaults before and after, compared with other tools"
    yield ""
    held = {
        str(len(splits))
        for sets in done.values()
        for found in sets.values()
        for model in found.values()
        for splits in model["losses"]
    }
    yield (
        "Written by `python -m reproduce.defaults`; see its first lines for what is measured. Of "
        f"each of {SEEDS} seeds, held-out folds: {' or '.join(sorted(held))}."
    )
    yield (
        "Changes are differences with a 95 % interval over seeds, bold where the interval is "
        "below 0, in italics where it is above. A win is a set with a lower mean, a sure one "
        "with an interval below 0; p is of a two-sided sign test over sets."
    )
    for title, sets in done.items():
        results = {name: found for name, found in sets.items() if found}
        every = list(dict.fromkeys(name for found in results.values() for name in found))
        now = [name for name in every if not name.endswith(BEFORE) and name != "constant"]
        own = [name for name in now if name not in (*PEERS, ALL_PASSES)]
        changed = [name for name in own if f"{name}{BEFORE}" in every]
        pairs = [(one, f"{one}{BEFORE}") for one in changed]
        pairs += [("KernelPRank", ALL_PASSES)] if ALL_PASSES in now else []
        pairs += [(one, peer) for peer in PEERS if peer in now for one in own]
        if not results:
            continue
        yield from ("", f"## {title}", "")
        yield from of_pairs(results, pairs)
        yield from behind(results, now)
        yield from of_changes(results, changed)
        yield from of_models(results, [*now, "constant"])


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="", help="of titles and sets with this in their names")
    parser.add_argument("--folds", type=int, default=FOLDS, help="number held out for each seed")
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    require(*FOLDERS)
    warnings.simplefilter("ignore")
    done = run(arguments.keep, arguments.only, arguments.folds)
    text = re.sub(r"\n\n+", "\n\n", "\n".join(report(done))).rstrip()
    earlier = Path(__file__).with_name("earlier_studies.txt").read_text(encoding="utf-8")
    publish(f"{text}\n\n{earlier}", arguments.markdown)


if __name__ == "__main__":
    main()
