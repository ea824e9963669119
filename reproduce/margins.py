"""Margins, wider kernels and passive-aggressive steps as defaults: before and after, 20 seeds.

``python -m reproduce.margins --markdown PATH --keep PATH`` reads ``../shared/data`` or
``$RANKCORE_DATA`` and prints mean absolute errors of ranks on test rows: of each learner with the
settings that were its defaults before, of its defaults now, of mord's LogisticAT and scikit-learn's
SVC at theirs, and of the median rank. Sets are Chu and Ghahramani's in 5 and 10 bins, standardised
and raw, on the 20 published partitions (kernels are not fitted to abalone), and others of
`reproduce.defaults_sets` with linear learners. --keep (JSON) goes on from what is done. mord is
left out where it is not installed.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rankcore as rc
from reproduce.cusum_tables import data
from reproduce.data import require
from reproduce.defaults_sets import CHU, sst5, trials
from reproduce.oap_real import cystic_fibrosis, movielens
from reproduce.pages import as_row, head, publish

SEEDS = 20
Pair = tuple[Any, np.ndarray]
Make = Callable[[int], Any]
# Student's t of a two-sided test at 5 %, 19 degrees of freedom.
BEYOND = 2.093


def pair(learner: Any, **before: Any) -> dict[str, Make]:
    """A learner with its former and its present settings."""
    name = learner.__name__
    return {
        f"{name}, before": lambda seed: learner(random_state=seed, **before),
        name: lambda seed: learner(random_state=seed),
    }


def linear() -> dict[str, Make]:
    """Linear learners, and mord's."""
    found = pair(rc.PRank, margin=0.0) | pair(rc.VotedPRank, margin=0.0)
    if find_spec("mord") is not None:
        from mord import LogisticAT

        found["mord"] = lambda _: LogisticAT()
    return found


def kernels() -> dict[str, Make]:
    """Learners with kernels, and scikit-learn's."""
    return {
        **pair(rc.KernelPRank, margin=0.0, gamma="scale", max_iter=10),
        **pair(rc.KernelCuSumRank, update="perceptron", C=1.0, gamma="scale", max_iter=10),
        "SVC": lambda _: SVC(),
    }


def partitions(name: str, bins: int, scaled: bool) -> Iterator[tuple[Pair, Pair]]:
    """The partitions of a set."""
    X, y, parts = data(name, bins)
    for train, test in parts[:SEEDS]:
        scaler = StandardScaler(with_mean=scaled, with_std=scaled).fit(X[train])
        yield (scaler.transform(X[train]), y[train]), (scaler.transform(X[test]), y[test])


def others() -> dict[str, Callable[[], Iterator[Any]]]:
    """Sets that are sparse or have few features, not standardised."""
    return {
        "SST-5, development part": lambda: (one for one in sst5("dev") for _ in range(SEEDS)),
        "cystic fibrosis": lambda: trials(partial(cystic_fibrosis, shift=1.0), SEEDS),
        "MovieLens": lambda: trials(movielens, SEEDS),
    }


def sets(of_kernels: bool) -> Iterator[tuple[str, str, Callable[[], Iterator[tuple[Pair, Pair]]]]]:
    """Kind, name, and a function that yields training and test rows."""
    for kind, scaled in (("standardised", True), ("raw", False)):
        for bins in (5, 10):
            for name in CHU:
                if not (of_kernels and name == "abalone"):
                    yield kind, f"{name}, {bins} bins", partial(partitions, name, bins, scaled)
    for name, make in {} if of_kernels else others().items():
        yield "as they come", name, lambda make=make: ((s["train"], s["test"]) for s in make())


def measured(models: dict[str, Make], splits: Iterator[tuple[Pair, Pair]]) -> dict[str, Any]:
    """Errors by model and seed, and the seconds of all fits."""
    found: dict[str, Any] = {name: [[], 0.0] for name in models}
    found["median"] = [[], 0.0]
    for seed, (train, test) in enumerate(splits):
        labels, ranks = np.unique(train[1], return_inverse=True)  # mord requires 0, 1, ...
        for name, make in models.items():
            if name == "mord" and hasattr(train[0], "indptr") and train[0].shape[1] > 2000:
                continue  # it takes dense rows, and minutes of each of these
            start = process_time()
            model = make(seed).fit(train[0], ranks)
            found[name][1] += process_time() - start
            gaps = labels[model.predict(test[0])] - test[1]
            found[name][0].append(float(np.abs(gaps).mean()))
        median = np.sort(train[1])[(len(train[1]) - 1) // 2]
        found["median"][0].append(float(np.abs(test[1] - median).mean()))
    return found


def cell(errors: list[float], before: list[float] | None) -> str:
    """Format a mean, in bold or italics if it is significantly lower or higher than before."""
    if not errors:
        return ""
    text = f"{np.mean(errors):.4f}"
    if before is None:
        return text
    gaps = np.subtract(errors, before)
    spread = gaps.std(ddof=1) / len(gaps) ** 0.5
    if spread == 0 or abs(gaps.mean()) <= BEYOND * spread:
        return text
    return f"**{text}**" if gaps.mean() < 0 else f"*{text}*"


def table(results: dict[str, dict[str, Any]], names: list[str]) -> Iterator[str]:
    """Errors set by set, and a summary by kind of set."""
    yield from head("", *names, "median")
    for title, found in results.items():
        cells = []
        for name in [*names, "median"]:
            before = found.get(f"{name}, before")
            cells.append(cell(found[name][0], before and before[0]))
        yield as_row(title, *cells)
    yield ""
    yield (
        "| change by the new defaults | sets | mean ± its error between sets | better, worse | "
        "surely better, worse | seconds |"
    )
    yield "|---|---|---|---|---|---|"
    for name in names:
        if f"{name}, before" in names:
            for kind in dict.fromkeys(title.split(": ")[0] for title in results):
                yield summary(name, kind, [v for k, v in results.items() if k.startswith(kind)])


def summary(name: str, kind: str, found: list[dict[str, Any]]) -> str:
    """A row of the table of changes."""
    pairs = [(one[name][0], one[f"{name}, before"][0]) for one in found]
    changes = np.array([np.mean(now) / np.mean(then) - 1 for now, then in pairs])
    cells = [cell(now, then)[:1] for now, then in pairs]
    sure = sum(text == "*" for text in cells)
    lower = sum(cell(now, then).startswith("**") for now, then in pairs)
    seconds = (sum(one[key][1] for one in found) for key in (f"{name}, before", name))
    spread = changes.std(ddof=1) / len(changes) ** 0.5
    return (
        f"| {name} | {kind} | {len(changes)} | {changes.mean():+.2%} ± {spread:.2%} | "
        f"{(changes < 0).sum()}, {(changes > 0).sum()} | {lower}, {sure - lower} | "
        f"{' to '.join(f'{value:.1f}' for value in seconds)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    require(*(f"chu-{name}" for name in CHU), "sst5", "movielens-100k")
    keep = arguments.keep
    done: dict[str, Any] = json.loads(keep.read_text()) if keep and keep.exists() else {}
    lines = ["# Defaults before and after", ""]
    lines += [
        "Written by `python -m reproduce.margins`; see its first lines for what is measured.",
        "",
    ]
    lines += [
        "Bold: surely lower than before, by the differences over 20 seeds; italics: higher.",
        "",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, models, of_kernels in [
            ("Linear learners", linear(), False),
            ("Kernels", kernels(), True),
        ]:
            for kind, name, splits in sets(of_kernels):
                kept = done.setdefault(title, {})
                if f"{kind}: {name}" not in kept:
                    kept[f"{kind}: {name}"] = measured(models, splits())
                    print(kind, name, flush=True)
                    if keep:
                        keep.write_text(json.dumps(done))
            lines += [f"## {title}", "", *table(done[title], [*models]), ""]
    text = "\n".join(lines).rstrip() + "\n"
    publish(text, arguments.markdown)


if __name__ == "__main__":
    main()
