"""Tables 1 and 2 of the CuSum Rank paper: nine data sets in 5 and in 10 bins, every learner.

``python -m reproduce.cusum_tables --jobs 2`` reads Chu and Ghahramani's benchmark from
``../shared/data`` or ``$RANKCORE_DATA`` and prints mean absolute test errors over the 20 published
partitions, with their standard errors, beside the paper's two columns. Of abalone the partitions
are not stored: 20 seeded ones of the published sizes, and equal-length bins, stand in.

As the paper says, parameters are chosen once for a data set and number of bins, on the first
partition: by cross-validation inside its training part. For the learned features these are the
normalisation, the number of epochs of the network, and margin and passes of the averaged CuSum
Rank on its hidden outputs. The network is scikit-learn's MLPRegressor: 1000 hidden units (ReLU;
the paper does not name them), trained for least squares by Adam with the paper's learning rate of
0.001 until the error of the held-out fold has not improved for 100 epochs, at most 500 in all;
then, for each partition, on all of the training part for as many epochs as that took.
"""

import argparse
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import rankcore as rc
from rankcore.datasets import load_letor
from rankcore.metrics import rank_loss
from reproduce.data import DATA, require
from reproduce.pages import as_row, head

# Published: the SVM of Chu and Ghahramani, and CuSum Rank; for 5 and for 10 bins.
PAPER = {
    "abalone": ((0.229, 0.228), (0.5160, 0.5169)),
    "diabetes": ((0.746, 0.680), (2.4577, 1.076)),
    "autompg": ((0.259, 0.251), (0.5081, 0.5765)),
    "pyrimidines": ((0.45, 0.522), (0.9187, 0.9729)),
    "machinecpu": ((0.1915, 0.1872), (0.4398, 0.4906)),
    "wisconsin": ((1.003, 0.979), (2.1250, 2.1171)),
    "stocks": ((0.1081, 0.160), (0.1804, 0.1778)),
    "triazines": ((0.6977, 0.720), (1.2308, 1.2058)),
    "bostonhousing": ((0.2672, 0.2766), (0.4971, 0.6075)),
}
ABALONE = 1000  # training rows
EPOCHS, PATIENCE, FOLDS = 500, 100, 3
SCALERS = {"z-score": StandardScaler(), "min-max": MinMaxScaler()}
LEARNED = "CuSum, learned features"
# Rows of which the better, by validation, is compared with the paper's column.
CANDIDATES = [LEARNED, "KernelPRank rbf", "KernelCuSum rbf"]


def data(name: str, bins: int) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, ...]]]:
    """Features, ranks from 1 and partitions."""
    folder = DATA / f"chu-{name}"
    if name == "abalone":
        raw = load_letor(folder / "abalone.raw.svm.gz", dense=True)
        width = (raw.y.max() - raw.y.min()) / bins
        y = np.clip(np.ceil((raw.y - raw.y.min()) / width), 1, bins).astype(int)
        orders = [np.random.default_rng(seed).permutation(y.size) for seed in range(20)]
        return raw.X, y, [(order[:ABALONE], order[ABALONE:]) for order in orders]
    file = load_letor(folder / f"{name}.{bins}bins.svm.gz", dense=True)
    parts: dict[str, dict[str, np.ndarray]] = {}
    for line in (folder / f"{name}.{bins}bins.partitions.txt").read_text().splitlines():
        if not line.startswith("#"):
            part, number, *rows = line.split()
            parts.setdefault(number, {})[part] = np.array(rows, dtype=int)
    return file.X, file.y.astype(int), [(p["train"], p["test"]) for p in parts.values()]


def negated_error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return 0.0 - rank_loss(y, model.predict(X))


def learners() -> dict[str, tuple[Any, dict[str, list[Any]]]]:
    """Every learner of raw features, and the grid that is searched for it."""
    gammas = [f * 0.1 for f in (0.1, 0.3, 1.0, 3.0)]  # of standardised features, as below
    shared = {"average": True, "shuffle": True, "random_state": 0}
    grids: dict[str, tuple[Any, dict[str, list[Any]]]] = {
        "PRank averaged": (
            rc.PRank.published(**shared),
            {"max_iter": [3, 10, 30, 100], "threshold_scale": [0.3, 1.0, 3.0]},
        ),
        "CuSum averaged": (
            rc.CuSumRank.published(**shared),
            {"max_iter": [10, 30, 100], "margin": [0.0, 1.0, 10.0, 100.0]},
        ),
        "KernelPRank rbf": (
            rc.KernelPRank.published(**shared),
            {"gamma": gammas, "max_iter": [3, 10, 30], "threshold_scale": [0.3, 1.0]},
        ),
        "KernelCuSum rbf": (
            rc.KernelCuSumRank.published(**shared),
            {"gamma": gammas, "max_iter": [10, 40], "margin": [0.0, 0.5, 2.0, 8.0, 32.0]},
        ),
        "logistic regression": (LogisticRegression(max_iter=2000), {"C": [0.1, 1.0, 10.0, 100.0]}),
        "SVC rbf": (SVC(), {"gamma": gammas, "C": [1.0, 10.0, 100.0, 1000.0]}),
    }
    if find_spec("mord"):
        grids["mord LogisticAT"] = (LogisticAT(), {"alpha": [0.01, 0.1, 1.0, 10.0]})
    try:
        from skordinal.classifiers import REDSVM, SVOR

        wide = {"gamma": gammas, "C": [1.0, 10.0, 100.0]}
        grids["skordinal SVOR"] = (SVOR(), wide)
        grids["skordinal REDSVM"] = (REDSVM(), wide)
    except ImportError:
        pass
    return grids


class LogisticAT(BaseEstimator):
    """mord's, on ranks numbered without gaps, as it requires: a training part may lack a rank."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X: np.ndarray, y: np.ndarray) -> "LogisticAT":
        import mord

        self.ranks_, numbers = np.unique(y, return_inverse=True)
        self.model_ = mord.LogisticAT(self.alpha).fit(X, numbers)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.ranks_[self.model_.predict(X)]


class Features(BaseEstimator):
    """The hidden outputs of a network that was trained for least squares."""

    def __init__(self, epochs: int, seed: int = 0) -> None:
        self.epochs = epochs
        self.seed = seed

    def network(self, n: int) -> MLPRegressor:
        return MLPRegressor(
            hidden_layer_sizes=(1000,),
            alpha=0.0,
            learning_rate_init=0.001,
            batch_size=min(200, n),
            random_state=self.seed,
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Features":
        self.network_ = self.network(len(y))
        for _ in range(self.epochs):
            self.network_.partial_fit(X.astype(np.float32), y)
        return self

    def fit_until(self, X: np.ndarray, y: np.ndarray, X_held: Any, y_held: Any) -> "Features":
        """Stop when the held-out error has not improved for so long; note the best epoch."""
        self.network_ = self.network(len(y))
        best, self.epochs = np.inf, 1
        for epoch in range(1, EPOCHS + 1):
            self.network_.partial_fit(X.astype(np.float32), y)
            error = np.abs(self.network_.predict(X_held.astype(np.float32)) - y_held).mean()
            if error < best:
                best, self.epochs = error, epoch
            if epoch - self.epochs >= PATIENCE:
                break
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        weights, bias = self.network_.coefs_[0], self.network_.intercepts_[0]
        return np.maximum(X.astype(np.float32) @ weights + bias, 0.0).astype(np.float64)


def folds(n: int) -> Any:
    """Few rows are cut more often."""
    if n >= 300:
        return KFold(5, shuffle=True, random_state=0)
    return RepeatedKFold(n_splits=5, n_repeats=3, random_state=0)


def choose_features(X: np.ndarray, y: np.ndarray, bins: int) -> dict[str, Any]:
    """Normalisation, epochs of the network, margin and passes, by cross-validation."""
    found = []
    for scaler_name, scaler in SCALERS.items():
        errors: dict[tuple[float, int], list[float]] = {}
        epochs = []
        for train, held in KFold(FOLDS, shuffle=True, random_state=0).split(X):
            scaled = scaler.fit(X[train])
            A, B = scaled.transform(X[train]), scaled.transform(X[held])
            features = Features(EPOCHS).fit_until(A, y[train], B, y[held])
            epochs.append(features.epochs)
            A, B = features.transform(A), features.transform(B)
            length = float((A**2).sum(axis=1).mean())
            for margin in [0.0, 0.1, 1.0, 10.0]:
                for passes in [10, 50]:
                    model = cusum(margin * length, passes).fit(A, y[train], range(1, bins + 1))
                    error = rank_loss(y[held], model.predict(B))
                    errors.setdefault((margin, passes), []).append(error)
        means = {pair: float(np.mean(each)) for pair, each in errors.items()}
        pair = min(means, key=lambda one: means[one])
        found.append((means[pair], scaler_name, int(np.median(epochs)), *pair))
    error, scaler_name, n_epochs, margin, passes = min(found)
    return {
        "validation": error,
        "scaler": scaler_name,
        "epochs": n_epochs,
        "margin": margin,
        "passes": passes,
    }


def cusum(margin: float, passes: int) -> rc.CuSumRank:
    return rc.CuSumRank.published(
        margin=margin, average=True, max_iter=passes, shuffle=True, random_state=0
    )


def choose(job: tuple[str, int]) -> dict[str, Any]:
    """Parameters of every row, on the first partition's training part."""
    name, bins = job
    X, y, parts = data(name, bins)
    X, y = X[parts[0][0]], y[parts[0][0]]
    chosen: dict[str, Any] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, (learner, grid) in learners().items():
            pipeline = make_pipeline(StandardScaler(), learner)
            prefixed = {f"{pipeline.steps[-1][0]}__{key}": one for key, one in grid.items()}
            search = GridSearchCV(
                pipeline, prefixed, cv=folds(len(y)), scoring=negated_error, refit=False
            ).fit(X, y)
            params = {k.split("__")[1]: v for k, v in search.best_params_.items()}
            chosen[row] = {"validation": -search.best_score_, "params": params}
        chosen[LEARNED] = choose_features(X, y, bins)
    return chosen


def evaluate(job: tuple[str, int, int, dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Test error and seconds of fitting of every row on a partition."""
    name, bins, number, chosen = job
    X, y, parts = data(name, bins)
    train, test = parts[number]
    result = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = StandardScaler().fit(X[train])
        A, B = scaled.transform(X[train]), scaled.transform(X[test])
        for row, (learner, _) in learners().items():
            begin = process_time()
            model = learner.set_params(**chosen[row]["params"]).fit(A, y[train])
            seconds = process_time() - begin
            result[row] = rank_loss(y[test], model.predict(B)), seconds
        settings = chosen[LEARNED]
        begin = process_time()
        scaled = SCALERS[settings["scaler"]].fit(X[train])
        A, B = scaled.transform(X[train]), scaled.transform(X[test])
        features = Features(settings["epochs"], number).fit(A, y[train])
        A, B = features.transform(A), features.transform(B)
        length = float((A**2).sum(axis=1).mean())
        model = cusum(settings["margin"] * length, settings["passes"])
        model.fit(A, y[train], range(1, bins + 1))
        result[LEARNED] = rank_loss(y[test], model.predict(B)), process_time() - begin
    return result


def apart(results: dict[str, Any], names: list[str], bins: int) -> Iterator[str]:
    """Return sets with an error that differs from the paper's by two standard errors."""
    for name in names:
        errors = np.array(results[f"{name} {bins}"]["errors"][LEARNED])
        published, error = PAPER[name][bins // 10][1], errors.std(ddof=1) / errors.size**0.5
        if abs(errors.mean() - published) > 2 * error:
            yield f"{name} {errors.mean() - published:+.3f}"


def report(results: dict[str, Any]) -> Iterator[str]:
    """Write the tables and their summary in Markdown."""
    rows = [LEARNED, *learners()]
    for bins in [5, 10]:
        names = [name for name in PAPER if f"{name} {bins}" in results]
        if not names:
            continue
        runs = {len(results[f"{name} {bins}"]["errors"][LEARNED]) for name in names}
        yield (
            f"## {bins} bins: mean absolute error, mean and standard error over "
            f"{' or '.join(map(str, sorted(runs)))} partitions\n"
        )
        missing = [name for name in PAPER if name not in names]
        if missing:
            yield f"Not run: {', '.join(missing)}. All means are over the others.\n"
        yield from head("", *names, "mean", numbers=True)
        for place, title in enumerate(["SVM (published)", "CuSum Rank (published)"]):
            values = [PAPER[name][bins // 10][place] for name in names]
            cells = [f"{value:.3f}" for value in [*values, np.mean(values)]]
            yield as_row(title, *cells)
        means = {}
        for learner in rows:
            cells = []
            for name in names:
                errors = np.array(results[f"{name} {bins}"]["errors"][learner])
                means.setdefault(learner, []).append(errors.mean())
                cells.append(f"{errors.mean():.3f} ({errors.std(ddof=1) / errors.size**0.5:.3f})")
            yield as_row(learner, *cells, f"{np.mean(means[learner]):.3f}")
        best, picks, variances = [], [], []
        for place, name in enumerate(names):
            chosen = results[f"{name} {bins}"]["chosen"]
            pick = min(CANDIDATES, key=lambda row: chosen[row]["validation"])
            picks.append(f"{name}: {pick}")
            best.append(means[pick][place])
            errors = np.array(results[f"{name} {bins}"]["errors"][pick])
            variances.append(errors.var(ddof=1) / errors.size)
        cells = [f"{value:.3f}" for value in best]
        spread = np.sqrt(np.sum(variances)) / len(names)
        cells.append(f"{np.mean(best):.4f} ({spread:.4f})")
        yield as_row("**ours, chosen by validation**", *cells) + "\n"
        published = np.mean([PAPER[name][bins // 10][1] for name in names])
        yield (
            f"Mean of the paper's column {published:.4f}, of ours {np.mean(best):.4f}, with a "
            f"standard error of {spread:.4f}.\n"
        )
        yield "Chosen by validation: " + "; ".join(picks) + ".\n"
        yield (
            f"{LEARNED}: not within two standard errors of the paper on "
            + (", ".join(apart(results, names, bins)) or "no set")
            + " (ours minus the paper's). The paper names neither the function of the hidden units "
            "nor batches, initial weights, passes and margins; which of these makes the difference "
            "is not known.\n"
        )
        seconds = {
            row: np.mean([np.mean(results[f"{name} {bins}"]["seconds"][row]) for name in names])
            for row in rows
        }
        yield "Milliseconds per fit, mean over sets: " + ", ".join(
            f"{row} {1e3 * value:.0f}" for row, value in seconds.items()
        )
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sets", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--bins", type=int, nargs="+", choices=[5, 10], default=[5, 10])
    # A standard error takes two.
    parser.add_argument("--partitions", type=int, choices=range(2, 21), default=20)
    parser.add_argument("--keep", type=Path, help="JSON file: what it has is not run again")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    require(*(f"chu-{name}" for name in options.sets))
    results: dict[str, Any] = {}
    if options.keep and options.keep.exists():
        results = json.loads(options.keep.read_text())
    pairs = [(name, bins) for bins in options.bins for name in options.sets]
    pairs = [pair for pair in pairs if f"{pair[0]} {pair[1]}" not in results]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for name, bins in pairs:
            chosen = pool.submit(choose, (name, bins)).result()
            jobs = [(name, bins, number, chosen) for number in range(options.partitions)]
            each = list(pool.map(evaluate, jobs))
            results[f"{name} {bins}"] = {
                "chosen": chosen,
                "errors": {row: [one[row][0] for one in each] for row in each[0]},
                "seconds": {row: [one[row][1] for one in each] for row in each[0]},
            }
            print(f"{name} in {bins} bins", flush=True)
            if options.keep:
                options.keep.write_text(json.dumps(results))
    text = "\n".join(report(results))
    print(text)
    if options.markdown:
        head = "`python -m reproduce.cusum_tables` writes this file; its docstring says how."
        options.markdown.write_text(f"# CuSum Rank, tables 1 and 2\n\n{head}\n\n{text}")


if __name__ == "__main__":
    main()
