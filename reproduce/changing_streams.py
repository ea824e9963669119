"""Learners on streams that change, beside river and Vowpal Wabbit: tables of the guide.

    python -m reproduce.changing_streams

Prints the tables of docs/changing_streams.md and writes its picture. Takes three minutes. The other
packages are measured if they are installed: ``pip install river vowpalwabbit``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.preprocessing import normalize

import rankcore as rc
from reproduce.data import DATA
from reproduce.real_ordinal import sst5

PICTURE = Path(__file__).parents[1] / "docs" / "changing_streams.png"
DRIFTS = ("abrupt", "gradual", "returning", None)
CHUNK = 50
LOWEST, HIGHEST = 1, 5


def learners() -> dict[str, Any]:
    return {
        "averaged": rc.PRank(),
        "last parameters": rc.PRank(average=False),
        "half-life of 100 rows": rc.PRank(half_life=100),
        "half-life chosen": rc.PRank(half_life="auto"),
        "averaged, monitored": rc.online.DriftMonitor(rc.PRank()),
    }


def chunks(drift: Any) -> Iterator[tuple[Any, Any]]:
    X, y = rc.datasets.make_drift(20_000, drift=drift, random_state=3)
    for start in range(0, y.size, CHUNK):
        yield X[start : start + CHUNK], y[start : start + CHUNK]


@dataclass
class Peer:
    """A learner of another package, which takes one row at a time in a form of its own."""

    form: Callable[[Any], Any]
    predict: Callable[[Any], float]
    learn: Callable[[Any, int], object]

    def loss(self, drift: Any) -> float:
        """Return the mean rank loss of rounded predictions, each chunk before it is learned."""
        losses: list[float] = []
        for number, (X, y) in enumerate(chunks(drift)):
            rows = [self.form(row) for row in X.tolist()]
            if number:
                found = np.array([self.predict(row) for row in rows])
                losses += np.abs(np.clip(np.rint(found), LOWEST, HIGHEST) - y).tolist()
            for row, label in zip(rows, y.tolist(), strict=True):
                self.learn(row, label)
        return float(np.mean(losses))


def of_river(model: Any) -> Peer:
    """Return a peer of a model of river."""
    return Peer(
        lambda row: dict(enumerate(row)),
        lambda row: model.predict_one(row) or LOWEST,
        model.learn_one,
    )


def of_vowpal_wabbit(options: str) -> Peer:
    """Return a peer of Vowpal Wabbit with some options."""
    from vowpalwabbit import Workspace

    model = Workspace(f"--quiet {options}")
    return Peer(
        lambda row: "| " + " ".join(f"{name}:{value}" for name, value in enumerate(row)),
        lambda row: float(model.predict(row)),
        lambda row, label: model.learn(f"{label} {row}"),
    )


def peers() -> dict[str, Callable[[], Peer]]:
    """Return functions that make new peers, of the packages that are installed."""
    found: dict[str, Callable[[], Peer]] = {}
    if find_spec("river"):
        from river import drift, linear_model, multiclass, optim, preprocessing

        def scaled(model: Any) -> Any:
            return preprocessing.StandardScaler() | model

        def classes() -> Any:
            one = linear_model.LogisticRegression(optim.SGD(0.05))
            return scaled(multiclass.OneVsRestClassifier(one))

        def monitored() -> Any:
            return drift.DriftRetrainingClassifier(classes(), drift.binary.DDM())

        found |= {
            "river, LinearRegression": lambda: of_river(scaled(linear_model.LinearRegression())),
            "river, PARegressor": lambda: of_river(scaled(linear_model.PARegressor(C=0.1))),
            "river, OneVsRestClassifier": lambda: of_river(classes()),
            "river, DriftRetrainingClassifier with DDM": lambda: of_river(monitored()),
        }
    if find_spec("vowpalwabbit"):
        found |= {
            f"vw {options}".strip(): lambda options=options: of_vowpal_wabbit(options)
            for options in ("", "--power_t 0", f"--oaa {HIGHEST}")
        }
    return found


def texts() -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield training and test rows with labels: 30 words a row by Zipf's law, and SST-5."""
    rng = np.random.default_rng(0)
    n, n_words, n_train = 24_000, 2000, 20_000
    often = 1 / np.arange(1, n_words + 1)
    words = rng.choice(n_words, size=(n, 30), p=often / often.sum()).ravel()
    counts = sp.csr_array((np.ones(words.size), words, np.arange(n + 1) * 30), shape=(n, n_words))
    X = sp.csr_array(normalize(counts))
    score = X @ rng.normal(size=n_words)
    score = (score - score.mean()) / score.std() + rng.normal(size=n) / 2
    y = np.digitize(score, np.quantile(score, [0.1, 0.3, 0.6, 0.85]))
    yield X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    if (DATA / "sst5").is_dir():
        X, y, more, labels = next(sst5())
        order = rng.permutation(y.size)
        yield normalize(X)[order], y[order], normalize(more), labels


def probabilities() -> Iterator[str]:
    """Yield lines of the ranked probability score on texts, relative to a fit of ten passes."""
    learners = {
        "CalibratedOrdinal(PRank(max_iter=1))": rc.CalibratedOrdinal(rc.PRank(max_iter=1)),
        "OnlineCalibration(PRank())": rc.online.OnlineCalibration(rc.PRank()),
        'OnlineCalibration(PRank(half_life="auto"))': rc.online.OnlineCalibration(
            rc.PRank(half_life="auto")
        ),
        "OrdinalLogistic()": rc.OrdinalLogistic(),
        'OrdinalLogistic(eta0=6, half_life="auto")': rc.OrdinalLogistic(eta0=6, half_life="auto"),
    }
    excess: dict[str, list[str]] = {name: [] for name in learners}
    for X, y, more, labels in texts():
        best = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X, y)
        lowest = rc.metrics.ranked_probability_score(labels, best.predict_proba(more))
        for name, learner in learners.items():
            model = clone(learner)
            if hasattr(model, "partial_fit"):
                for start in range(0, y.size, CHUNK):
                    rows = slice(start, start + CHUNK)
                    model.partial_fit(X[rows], y[rows], classes=range(5))
            else:
                model.fit(X, y)
            found = rc.metrics.ranked_probability_score(labels, model.predict_proba(more))
            excess[name].append(f"{100 * (found / lowest - 1):.0f} %")
    for name, values in excess.items():
        yield f"| {name} | {' | '.join(values)} |"


def line(name: str, losses: list[float]) -> str:
    return f"| {name} | " + " | ".join(f"{loss:.3f}".lstrip("0") for loss in losses) + " |"


def main() -> None:
    losses: dict[str, list[float]] = {name: [] for name in learners()}
    for drift in DRIFTS:
        found = {}
        for name, learner in learners().items():
            classes = range(LOWEST, HIGHEST + 1)
            found[name] = rc.online.evaluate(learner, chunks(drift), classes=classes)
            losses[name].append(found[name].overall["rank_loss"])
        if drift == "returning":
            ax = rc.plotting.plot_stream(found)
            ax.set_ylim(0, None)
            ax.figure.savefig(PICTURE, dpi=110, bbox_inches="tight")
    for name, values in losses.items():
        print(line(name, values))
    for name, new in peers().items():
        print(line(name, [new().loss(drift) for drift in DRIFTS]), flush=True)
    print(*probabilities(), sep="\n")


if __name__ == "__main__":
    main()
