"""Ordinal learners on real data, compared with the best constant.

``python -m reproduce.real_ordinal`` reads sst5 (bag of words, train and test as published) and the
5-bin partitions of Chu and Ghahramani's benchmark from ``../shared/data`` or ``$RANKCORE_DATA``,
and prints test mean absolute errors after 10 epochs. Dense features are standardised with the
training part's means and deviations, sparse ones are left as they are.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.datasets import load_letor
from rankcore.metrics import rank_loss
from reproduce.data import DATA, require

CHU = ["machinecpu", "stocks", "bostonhousing"]
LEARNERS = {"last": rc.PRank.published(), "averaged": rc.PRank.published(average=True)}


def sst5() -> Iterator[tuple]:
    """Return the one published split."""
    parts = [
        load_letor(DATA / "sst5" / f"{part}.bow.svm.gz", n_features=19536)
        for part in ["train", "test"]
    ]
    yield tuple(array for part in parts for array in [part.X, part.y])


def chu(name: str, bins: int = 5) -> Iterator[tuple]:
    """Return the 20 published partitions of a data set."""
    folder = DATA / f"chu-{name}"
    data = load_letor(folder / f"{name}.{bins}bins.svm.gz", dense=True)
    X, y = data.X, data.y
    parts: dict[str, dict[str, np.ndarray]] = {}
    for line in (folder / f"{name}.{bins}bins.partitions.txt").read_text().splitlines():
        if not line.startswith("#"):
            part, number, *rows = line.split()
            parts.setdefault(number, {})[part] = np.array(rows, dtype=int)
    for part in parts.values():
        scaler = StandardScaler().fit(X[part["train"]])
        train, test = part["train"], part["test"]
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def errors(splits: Iterator[tuple], epochs: int, seed: int) -> dict[str, np.ndarray]:
    """Test mean absolute error of each learner and of the training median, a value a split."""
    result: dict[str, list[float]] = {"best constant": []}
    for X, y, X_test, y_test in splits:
        constant = np.full(len(y_test), np.median(y))
        result["best constant"].append(rank_loss(y_test, constant))
        for name, learner in LEARNERS.items():
            model = learner.set_params(max_iter=epochs, shuffle=True, random_state=seed).fit(X, y)
            result.setdefault(name, []).append(rank_loss(y_test, model.predict(X_test)))
    return {name: np.array(values) for name, values in result.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    require("sst5", *(f"chu-{name}" for name in CHU))
    print(f"test MAE after {arguments.epochs} epochs; mean and standard deviation over partitions")
    for name in ["sst5", *(f"chu-{name}" for name in CHU)]:
        splits = sst5() if name == "sst5" else chu(name.removeprefix("chu-"))
        figures = errors(splits, arguments.epochs, arguments.seed)
        cells = [f"{k} {v.mean():.4f} ± {v.std():.4f}" for k, v in figures.items()]
        print(f"{name:<18} {'   '.join(cells)}   ({len(figures['last'])} splits)")


if __name__ == "__main__":
    main()
