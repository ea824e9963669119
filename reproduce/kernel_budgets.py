"""Gain by a kernel and loss by a budget, on two real sets; and the alternatives.

``python -m reproduce.kernel_budgets --png PATH --markdown PATH`` reads stocks and abalone in 10
bins from ``../shared/data`` or ``$RANKCORE_DATA``. Over the first partitions it prints mean
absolute test errors, features standardised, of averaged learners after 10 passes: a linear PRank;
a kernel PRank without and under budgets; and linear PRanks on as many random features
(`RBFSampler`) or landmarks (`Nystroem`) of the same kernel. ``gamma`` is the one of a few that an
unbudgeted kernel PRank likes best in cross-validation on the first training part. Budgets that
remove support vectors predict with the last parameters: an average would keep the thresholds of all
times and the direction of those that are left.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import rankcore as rc
from rankcore.metrics import rank_loss
from reproduce.cusum_tables import data
from reproduce.data import require
from reproduce.pages import as_row, head

SETS, BINS, PASSES = ["stocks", "abalone"], 10, 10
SIZES = [10, 25, 50, 100, 200, 400]
POLICIES = ["oldest", "random", "smallest", "forgetron", "norma", "projectron"]
GAMMAS = [0.01, 0.03, 0.1, 0.3, 1.0]
SHARED = {"average": True, "max_iter": PASSES, "shuffle": True, "random_state": 0}


def contestants(gamma: float) -> dict[str, Any]:
    """Functions of a size that make a learner."""

    def kernel(policy: str) -> Any:
        return lambda size: rc.KernelPRank.published(
            gamma=gamma,
            budget=size,
            budget_policy=policy,
            decay=1 / (4 * size),
            **{**SHARED, "average": policy == "projectron"},
        )

    rows: dict[str, Any] = {f"budget, {policy}": kernel(policy) for policy in POLICIES}
    rows["Nystroem + PRank"] = lambda size: make_pipeline(
        Nystroem(gamma=gamma, n_components=size, random_state=0), rc.PRank.published(**SHARED)
    )
    rows["RBFSampler + PRank"] = lambda size: make_pipeline(
        RBFSampler(gamma=gamma, n_components=size, random_state=0), rc.PRank.published(**SHARED)
    )
    return rows


def study(name: str, partitions: int) -> dict[str, Any]:
    X, y, parts = data(name, BINS)
    scaled = StandardScaler().fit(X[parts[0][0]])
    A, b = scaled.transform(X[parts[0][0]]), y[parts[0][0]]
    folds = KFold(5, shuffle=True, random_state=0)
    scores = [
        cross_val_score(rc.KernelPRank.published(gamma=gamma, **SHARED), A, b, cv=folds).mean()
        for gamma in GAMMAS
    ]
    gamma = GAMMAS[int(np.argmax(scores))]
    learners = {
        ("linear", 0): rc.PRank.published(**SHARED),
        ("kernel, no budget", 0): rc.KernelPRank.published(gamma=gamma, **SHARED),
    }
    for row, make in contestants(gamma).items():
        learners |= {(row, size): make(size) for size in SIZES if size < len(b)}
    errors: dict[tuple[str, int], list[float]] = {}
    seconds: dict[tuple[str, int], float] = {}
    support = []
    for train, test in parts[:partitions]:
        scaled = StandardScaler().fit(X[train])
        A, B = scaled.transform(X[train]), scaled.transform(X[test])
        for key, learner in learners.items():
            begin = process_time()
            model = learner.fit(A, y[train])
            seconds[key] = seconds.get(key, 0.0) + process_time() - begin
            errors.setdefault(key, []).append(rank_loss(y[test], model.predict(B)))
        support.append(learners["kernel, no budget", 0].support_.size)
    return {
        "gamma": gamma,
        "support": int(np.mean(support)),
        "errors": {key: float(np.mean(each)) for key, each in errors.items()},
        "seconds": {key: each / partitions for key, each in seconds.items()},
    }


def table(name: str, found: dict[str, Any]) -> str:
    errors, seconds = found["errors"], found["seconds"]
    sizes = [size for size in SIZES if ("budget, oldest", size) in errors]
    lines = [
        f"## {name}, {BINS} bins\n",
        f"gamma {found['gamma']}; linear {errors['linear', 0]:.3f}, kernel without budget "
        f"{errors['kernel, no budget', 0]:.3f} with {found['support']} support vectors "
        f"({1e3 * seconds['linear', 0]:.0f} and {1e3 * seconds['kernel, no budget', 0]:.0f} ms "
        "per fit). Support vectors, landmarks or random features:\n",
        *head("", *sizes, f"ms per fit at {sizes[-1]}", numbers=True),
    ]
    for learner in contestants(1.0):
        cells = [f"{errors[learner, size]:.3f}" for size in sizes]
        lines.append(as_row(learner, *cells, f"{1e3 * seconds[learner, sizes[-1]]:.0f}"))
    return "\n".join(lines)


def draw(studies: dict[str, dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(studies), figsize=(11, 4.4), layout="tight")
    for ax, (name, found) in zip(axes, studies.items(), strict=True):
        errors = found["errors"]
        for row in contestants(1.0):
            sizes = [size for size in SIZES if (row, size) in errors]
            style = "-o" if row.startswith("budget") else "--s"
            ax.plot(sizes, [errors[row, size] for size in sizes], style, label=row, ms=4)
        ax.axhline(errors["linear", 0], color="0.4", ls=":", label="linear PRank")
        ax.axhline(errors["kernel, no budget", 0], color="k", lw=1, label="kernel, no budget")
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.set_xlabel("support vectors, landmarks or random features")
        ax.set_ylabel("mean absolute test error")
        ax.set_title(f"{name}, {BINS} bins ({found['support']} support vectors without budget)")
        ax.grid(alpha=0.3)
    axes[-1].legend(fontsize=7)
    figure.savefig(path, format="png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--png", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    require(*(f"chu-{name}" for name in SETS))
    with threadpool_limits(1):
        studies = {name: study(name, options.partitions) for name in SETS}
    text = "\n\n".join(table(name, found) for name, found in studies.items())
    print(text)
    if options.png:
        draw(studies, options.png)
    if options.markdown:
        head = (
            "# Budgets of a kernel PRank, and approximations of the kernel\n\n"
            "`python -m reproduce.kernel_budgets` writes this file: mean absolute test errors over "
            f"{options.partitions} partitions, after {PASSES} passes; averaged, but for budgets "
            "that remove support vectors.\n\n"
        )
        picture = f"\n\n![errors by size]({options.png.name})\n" if options.png else "\n"
        options.markdown.write_text(head + text + picture)


if __name__ == "__main__":
    main()
