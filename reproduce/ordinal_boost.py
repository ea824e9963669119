"""OrdinalBoost in all its forms beside multiclass boosting and logistic regression.

``python -m reproduce.ordinal_boost --markdown PATH --png PATH`` reads Chu and Ghahramani's sets of
200 rows or more from ``../shared/data`` or ``$RANKCORE_DATA``, in 5 and 10 bins, and prints the
ranked probability score, the mean absolute error of the median, and seconds of the processor to
fit, all by defaults, over the first ``--partitions`` published partitions (of abalone, seeded ones
with 1000 rows to learn from). LightGBM is left out where it is not installed. One thread:
``OMP_NUM_THREADS=1``.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import rankcore as rc
from rankcore.metrics import rank_loss, ranked_probability_score
from reproduce.data import require
from reproduce.probabilities import chu

SETS = ["stocks", "bostonhousing", "autompg", "machinecpu", "abalone"]
BINS = (5, 10)
FORMS = {
    "average": {"tasks": "average"},
    "average, cumulative": {"tasks": "average", "link": "cumulative"},
    "shared": {"tasks": "shared"},
    "shared, cumulative": {"tasks": "shared", "link": "cumulative"},
    "separate": {"tasks": "separate"},
    "mixed": {"tasks": "mixed"},
}


def ours(**params: Any) -> Callable[[], Any]:
    """A form of OrdinalBoost."""
    return lambda: rc.OrdinalBoost(**params)


def models() -> dict[str, Callable[[], Any]]:
    """What is compared, by name."""
    found = {name: ours(**params) for name, params in FORMS.items()}
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        found["LightGBM"] = lambda: LGBMClassifier(verbose=-1, n_jobs=1)
    found["HistGradientBoosting"] = HistGradientBoostingClassifier
    found["logistic"] = lambda: LogisticRegression(max_iter=1000)
    return found


def figures(make: Callable[[], Any], split: Any) -> tuple[float, float, float]:
    """RPS, MAE by the median, and seconds to fit."""
    X, y, X_test, y_test = split
    labels = np.unique(y)
    start = process_time()
    model = make().fit(X, np.searchsorted(labels, y))
    seconds = process_time() - start
    table = model.predict_proba(X_test)
    truth = np.searchsorted(labels, y_test)
    median = (table.cumsum(axis=1) >= 0.5 - 1e-12).argmax(axis=1)
    score = ranked_probability_score(truth, table, labels=np.arange(labels.size))
    return score, rank_loss(truth, median), seconds


def measured(names: list[str], n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Means over n partitions of each set, by model."""
    for name in names:
        for bins in BINS:
            found: dict[str, list[Any]] = {one: [] for one in models()}
            for split in islice(chu(name, bins), n):
                for one, make in models().items():
                    found[one].append(figures(make, split))
            means = {one: np.mean(values, axis=0) for one, values in found.items()}
            yield f"{name}, {bins} bins", means


def rows_of(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The tables, in Markdown."""
    names = [*next(iter(results.values()))]
    for what, at in (("RPS", 0), ("MAE of the median", 1)):
        yield f"| {what} | " + " | ".join(names) + " |"
        yield "|---|" + "---|" * len(names)
        for title, means in results.items():
            yield f"| {title} | " + " | ".join(f"{means[one][at]:.4f}" for one in names) + " |"
        overall = [np.mean([means[one][at] for means in results.values()]) for one in names]
        yield "| mean | " + " | ".join(f"{value:.4f}" for value in overall) + " |"
        yield ""
    seconds = [sum(means[one][2] for means in results.values()) for one in names]
    yield "| seconds, one fit of each set | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    yield "| | " + " | ".join(f"{value:.1f}" for value in seconds) + " |"


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """RPS of each model by that of the default, set by set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    names = [*next(iter(results.values()))]
    for i, means in enumerate(results.values()):
        values = [means[one][0] / means[names[0]][0] for one in names]
        axes.plot(values, range(len(names)), "o", color=f"C{i % 10}", alpha=0.7)
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("RPS, relative to the default; a point for each set")
    figure.savefig(path, dpi=100)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--png", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--partitions", type=int, default=2)
    arguments = parser.parse_args()
    require("chu-stocks", "chu-abalone")
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for title, means in measured(arguments.sets, arguments.partitions):
            results[title] = means
            shown = ", ".join(f"{one} {values[0]:.4f}" for one, values in means.items())
            print(f"{title}: {shown}", flush=True)
            if arguments.markdown:  # after each set, as all take long
                arguments.markdown.write_text(page(results, arguments))
            if arguments.png:
                draw(results, arguments.png)
    print("\n".join(rows_of(results)))


def page(results: dict[str, dict[str, Any]], arguments: argparse.Namespace) -> str:
    """The tables with a heading."""
    n = arguments.partitions
    sets = " ".join(arguments.sets)
    head = (
        "# Forms of ordinal boosting\n\n"
        f"`python -m reproduce.ordinal_boost --sets {sets} --partitions {n}` writes this page, set "
        f"by set: means over {n} partition{'s' * (n > 1)} of each of {len(results)} sets.\n"
    )
    picture = [f"![RPS of each model]({arguments.png.name})", ""] if arguments.png else []
    return "\n".join([head, *picture, *rows_of(results), ""])


if __name__ == "__main__":
    main()
