"""OrdinalBoost in all its forms, compared with multiclass boosting and logistic regression.

``python -m reproduce.ordinal_boost --markdown PATH --png PATH`` reads Chu and Ghahramani's sets of
100 distinct rows or more from ``../shared/data`` or ``$RANKCORE_DATA``, in 5 and 10 bins, and
prints the ranked probability score, the mean absolute error of the median, and seconds of the
processor to fit, over the first ``--partitions`` published partitions (of abalone, seeded ones with
1000 rows to learn from). Rows that repeat another are left out. All but the form has its defaults.
``--keep PATH`` (JSON) writes each fit's figures down; a run that was cut off goes on from there.
Tools that are not installed are left out.
One thread: ``OMP_NUM_THREADS=1``.
"""

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice, product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import rankcore as rc
from rankcore.metrics import rank_loss, ranked_probability_score
from reproduce.data import require
from reproduce.pages import as_row, head
from reproduce.probabilities import chu
from reproduce.sets import median_ranks

SETS = ["stocks", "bostonhousing", "autompg", "machinecpu", "abalone", "triazines", "wisconsin"]
BINS = (5, 10)
FORMS = {
    "vector": {"tasks": "vector", "link": "adjacent"},
    "shared, cumulative": {"tasks": "shared", "link": "cumulative"},
    "shared": {"tasks": "shared", "link": "adjacent"},
}


def ours(**params: Any) -> Callable[[], Any]:
    """Make a form of OrdinalBoost."""
    return lambda: rc.OrdinalBoost(**params)


def models() -> dict[str, Callable[[], Any]]:
    """Return the models to compare, by name."""
    found = {name: ours(**params) for name, params in FORMS.items()}
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        found["LightGBM"] = lambda: LGBMClassifier(verbose=-1, n_jobs=1)
    if find_spec("xgboost") is not None:
        from xgboost import XGBClassifier

        found["XGBoost"] = lambda: XGBClassifier(n_jobs=1)
    if find_spec("catboost") is not None:
        from catboost import CatBoostClassifier

        found["CatBoost"] = lambda: CatBoostClassifier(
            thread_count=1, verbose=0, allow_writing_files=False, loss_function="MultiClass"
        )
    if find_spec("mord") is not None:
        from mord import LogisticAT

        found["mord"] = LogisticAT
    found["HistGradientBoosting"] = HistGradientBoostingClassifier
    found["RandomForest"] = lambda: RandomForestClassifier(random_state=0)
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
    score = ranked_probability_score(truth, table, labels=np.arange(labels.size))
    return score, rank_loss(truth, median_ranks(table)), seconds


def run(names: list[str], n: int, keep: Path | None) -> Iterator[dict[str, Any]]:
    """Figures by set, partition and model after each set; all sets of a partition go first."""
    done: dict[str, Any] = json.loads(keep.read_text()) if keep and keep.exists() else {}
    for at in range(n):
        for name, bins in product(names, BINS):
            of_set = done.setdefault(f"{name}, {bins} bins", {}).setdefault(str(at), {})
            missing = [one for one in models() if one not in of_set]
            if missing:
                split = next(islice(chu(name, bins), at, None))
                for one in missing:
                    of_set[one] = figures(models()[one], split)
                    if keep:
                        keep.write_text(json.dumps(done))
            yield done


def means_of(done: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Means over the partitions of each set, by model."""
    return {
        title: {one: np.mean([part[one] for part in parts.values()], axis=0) for one in models()}
        for title, parts in done.items()
    }


def ratios(results: dict[str, dict[str, Any]], name: str, at: int) -> str:
    """Return the ratio to the first model's figure, with its 95 % interval over tables.

    The two sets of a table, in 5 and in 10 bins, count as one.
    """
    first = next(iter(next(iter(results.values()))))
    of_table: dict[str, list[float]] = {}
    for title, means in results.items():
        ratio = np.log(means[name][at] / means[first][at])
        of_table.setdefault(title.split(",")[0], []).append(float(ratio))
    logs = np.array([np.mean(both) for both in of_table.values()])
    if name == first or logs.size == 1:
        return f"{np.exp(logs.mean()):.3f}"
    half = t.ppf(0.975, logs.size - 1) * logs.std(ddof=1) / logs.size**0.5
    return f"{np.exp(logs.mean()):.3f} ± {half:.3f}"


def rows_of(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Return the tables, in Markdown."""
    names = [*next(iter(results.values()))]
    for what, at in (("RPS", 0), ("MAE of the median", 1)):
        yield from head(what, *names)
        for title, means in results.items():
            yield as_row(title, *(f"{means[one][at]:.4f}" for one in names))
        overall = [np.mean([means[one][at] for means in results.values()]) for one in names]
        yield as_row("mean", *(f"{value:.4f}" for value in overall))
        yield as_row("ratio", *(ratios(results, one, at) for one in names))
        yield ""
    seconds = [sum(means[one][2] for means in results.values()) for one in names]
    yield from head("seconds, one fit of each set", *names)
    yield as_row("", *(f"{value:.1f}" for value in seconds))


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
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--partitions", type=int, default=6)
    arguments = parser.parse_args()
    require("chu-stocks", "chu-abalone")
    done: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for done in run(arguments.sets, arguments.partitions, arguments.keep):
            print(f"{sum(map(len, done.values()))} partitions of {len(done)} sets", flush=True)
    results = means_of(done)
    if arguments.markdown:
        arguments.markdown.write_text(page(results, arguments))
    if arguments.png:
        draw(results, arguments.png)
    print("\n".join(rows_of(results)))


def page(results: dict[str, dict[str, Any]], arguments: argparse.Namespace) -> str:
    """Return the tables with a heading."""
    n = arguments.partitions
    n_tables = len({title.split(",")[0] for title in results})
    sets = "" if arguments.sets == SETS else f" --sets {' '.join(arguments.sets)}"
    head = (
        "# Forms of ordinal boosting\n\n"
        f"`python -m reproduce.ordinal_boost{sets} --partitions {n}` prints these tables: means "
        f"over {n} partition{'s' * (n > 1)} of each of {len(results)} sets. The default is "
        "in the first column. The last row has the ratio to it, as the geometric mean over "
        f"{n_tables} tables, and its 95 % interval of Student's t over these. "
        "Rows that repeat another are left out.\n"
    )
    picture = [f"![RPS of each model]({arguments.png.name})", ""] if arguments.png else []
    return "\n".join([head, *picture, *rows_of(results), ""])


if __name__ == "__main__":
    main()
