"""Demonstration of the learners on real data: a table of measures and a plot of the online loss.

The data are the diabetes patients included in scikit-learn. `run` computes the results, `show` and
`write_png` display them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankcore._core.files import atomic_write
from rankcore.cli.registry import LEARNERS, RANKERS, Learner

if TYPE_CHECKING:
    from rich.console import Console

RANKS = 5
FOLDS = 5
# Enough for the online loss to converge on these 442 patients.
EPOCHS = 20
SEED = 0
# Curves drawn in a terminal; the PNG file has all.
TERMINAL_CURVES = 4


@dataclass(frozen=True)
class Row:
    """Row of the table for one method: means over the folds."""

    method: str
    rank_loss: float  # on the held-out folds
    spread: float  # its standard deviation from fold to fold
    accuracy: float  # share of patients ranked exactly
    within_1: float  # share of patients at most one rank off
    fit_seconds: float  # including standardisation


@dataclass(frozen=True)
class Ranking:
    """Row of the second table for one method, which orders patients: means over the folds."""

    method: str
    # share of concordant held-out pairs of different rank; ties count half
    pairs_right: float
    spread: float  # its standard deviation from fold to fold
    fit_seconds: float  # including standardisation


@dataclass(frozen=True)
class Result:
    """Results of the demo."""

    n_examples: int
    n_features: int
    rows: list[Row]  # the baselines, then every learner
    # of online learners, shape (n_points, 2): examples seen, time-averaged rank loss
    curves: dict[str, np.ndarray]
    constant_rank_loss: float  # loss of the best constant on the same stream
    rankings: list[Ranking]  # learners that only order patients, and least squares


def load_ranked_diabetes() -> tuple[np.ndarray, np.ndarray]:
    """Load diabetes patients of scikit-learn; ranks 1 to 5 of progression are equally frequent."""
    from sklearn.datasets import load_diabetes

    X, progression = load_diabetes(return_X_y=True)
    edges = np.quantile(progression, np.arange(1, RANKS) / RANKS)
    return X, np.digitize(progression, edges) + 1


def to_ranks(predicted: np.ndarray) -> np.ndarray:
    """Round real predictions half up and clip them to the ranks."""
    return np.clip(np.floor(predicted + 0.5), 1, RANKS)


def pairs_right(ranks: np.ndarray, scores: np.ndarray) -> float:
    """Return the fraction of pairs of different rank in the right order; ties count half."""
    above = ranks[:, None] > ranks
    gaps = scores[:, None] - scores
    return float(((gaps > 0) + 0.5 * (gaps == 0))[above].mean())


@dataclass(frozen=True)
class Measured:
    """Measures on held-out folds, by name."""

    means: dict[str, float]
    spreads: dict[str, float]  # standard deviations from fold to fold
    fit_seconds: float


def cross_validate(X: np.ndarray, ranks: np.ndarray, estimator: Any, measure: Any) -> Measured:
    """Measure an estimator on held-out folds; training folds standardise the features.

    ``measure(ranks, predicted)`` returns measures by name.
    """
    from sklearn.model_selection import KFold, cross_validate
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from rankcore.ranking.base import Ranker

    one_query = {"learner__qid": np.zeros(len(ranks))} if isinstance(estimator, Ranker) else {}
    results = cross_validate(
        Pipeline([("scaler", StandardScaler()), ("learner", estimator)]),
        X,
        ranks,
        params=one_query,
        cv=KFold(FOLDS, shuffle=True, random_state=SEED),
        scoring=lambda model, X, y: measure(y, model.predict(X)),
        error_score="raise",
    )
    folds = {
        name.removeprefix("test_"): values
        for name, values in results.items()
        if name.startswith("test_")
    }
    return Measured(
        means={name: float(np.mean(values)) for name, values in folds.items()},
        spreads={name: float(np.std(values, ddof=1)) for name, values in folds.items()},
        fit_seconds=float(np.mean(results["fit_time"])),
    )


def make_seeded(learner: Learner) -> Any:
    """Make the estimator of the demo: shuffled epochs if supported, fixed seed."""
    wanted = {"max_iter": EPOCHS, "shuffle": True, "random_state": SEED}
    accepted = learner.accepts()
    return learner.make(**{name: wanted[name] for name in wanted if name in accepted})


def loss_curves(
    X: np.ndarray, ranks: np.ndarray, learners: Sequence[Learner]
) -> dict[str, np.ndarray]:
    """Return examples seen and progressive loss of online learners over shuffled passes."""
    from sklearn.preprocessing import StandardScaler

    X = StandardScaler().fit_transform(X)
    models = {learner.name: make_seeded(learner).fit(X, ranks) for learner in learners}
    learned = {name: m for name, m in models.items() if hasattr(m, "update_loss_curve_")}
    return {name: m.update_loss_curve_ for name, m in learned.items()}


def run(learners: Sequence[Learner] = LEARNERS) -> Result:
    """Compute the demo; only the times differ between runs."""
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import LinearRegression

    from rankcore.cli.measuring import rank_measures
    from rankcore.metrics import rank_loss

    def measure_ranks(ranks: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
        return rank_measures(ranks, to_ranks(predicted))

    def measure_order(ranks: np.ndarray, scores: np.ndarray) -> dict[str, float]:
        return {"pairs_right": pairs_right(ranks, scores)}

    def row(name: str, estimator: Any) -> Row:
        measures = cross_validate(X, ranks, estimator, measure_ranks)
        return Row(
            method=name,
            rank_loss=measures.means["rank_loss"],
            spread=measures.spreads["rank_loss"],
            accuracy=measures.means["accuracy"],
            within_1=measures.means["within_1_rank"],
            fit_seconds=measures.fit_seconds,
        )

    def ranking(name: str, estimator: Any) -> Ranking:
        measures = cross_validate(X, ranks, estimator, measure_order)
        return Ranking(
            method=name,
            pairs_right=measures.means["pairs_right"],
            spread=measures.spreads["pairs_right"],
            fit_seconds=measures.fit_seconds,
        )

    X, ranks = load_ranked_diabetes()
    plain = {"least squares": LinearRegression()}
    methods = {"best constant": DummyRegressor(strategy="median"), **plain}
    methods |= {learner.name: make_seeded(learner) for learner in learners}
    orders = plain | {learner.name: make_seeded(learner) for learner in RANKERS}
    return Result(
        n_examples=X.shape[0],
        n_features=X.shape[1],
        rows=[row(name, estimator) for name, estimator in methods.items()],
        curves=loss_curves(X, ranks, learners),
        constant_rank_loss=rank_loss(ranks, np.full(ranks.shape, np.median(ranks))),
        rankings=[ranking(name, estimator) for name, estimator in orders.items()],
    )


# ---------------------------------------------------------------- showing


def show(result: Result, console: Console) -> None:
    """Print the table and, if plotext is installed, the plot."""
    from rich.text import Text

    from rankcore.metrics.tables import Table

    console.print(
        f"Diabetes: {result.n_examples} patients, {result.n_features} features, disease "
        f"progression in {RANKS} ranks.\n{FOLDS}-fold cross-validation, {EPOCHS} passes:"
    )
    shown = [
        (
            row.method,
            f"{row.rank_loss:.3f} ± {row.spread:.3f}",
            f"{row.accuracy:.3f}",
            f"{row.within_1:.3f}",
            f"{1000 * row.fit_seconds:.2f}",
        )
        for row in result.rows
    ]
    console.print(Table(["", "rank loss", "accuracy", "within 1", "fit, ms"], shown, "").rich())
    console.print("Ranking, with the patients of a fold as one query:")
    orders = [
        (
            ranking.method,
            f"{ranking.pairs_right:.3f} ± {ranking.spread:.3f}",
            f"{1000 * ranking.fit_seconds:.2f}",
        )
        for ranking in result.rankings
    ]
    console.print(Table(["", "pairs right", "fit, ms"], orders, "").rich())
    try:
        plot = terminal_plot(result, min(console.width, 100), 28)
    except ImportError:
        console.print("For the loss curve here: pip install 'rankcore[cli]'", markup=False)
    else:
        console.print(Text.from_ansi(plot), soft_wrap=True)


def terminal_curves(result: Result) -> dict[str, np.ndarray]:
    """Choose the curves that fit into a terminal with their names: the first of each kind."""
    return dict(list(_distinct(result.curves).items())[:TERMINAL_CURVES])


def terminal_plot(result: Result, width: int, height: int) -> str:
    """Draw the online loss with plotext 6 or newer, in ``height`` lines with terminal colours."""
    from plotext import figure, terminal

    terminal.limit(False, False)  # the requested size, even if the output is not a terminal
    figure.clear()
    figure.theme("simple")  # the terminal's own background
    figure.plot_size(width, height)
    figure.title("online rank loss, averaged over the examples seen")
    # Powers of ten on a linear axis: plotext's log scale misplaces given ticks.
    last = 0.0
    highest = result.constant_rank_loss
    for label, curve in terminal_curves(result).items():
        highest = max(highest, float(curve[:, 1].max()))
        powers = np.log10(curve[:, 0])
        last = max(last, float(powers[-1]))
        signal = figure.signal(powers.tolist(), curve[:, 1].tolist(), marker="braille")
        figure.draw(signal.lines().label(label))
    constant = figure.signal([0.0, last], [result.constant_rank_loss] * 2, marker="braille")
    figure.draw(constant.lines().label("best constant"))
    ticks = list(range(int(last) + 1))
    figure.ruler("x").ticks(ticks, [f"{10**power:,}" for power in ticks])
    figure.ruler("y").lim(lower=0, upper=1.1 * highest)
    figure.label("examples seen", "x")
    # Below the curves; at the top it would cover the title.
    figure.legend(x=last, y=0, ha="right", va="bottom", relative=True)
    return str(figure.build().string())


def write_png(result: Result, path: Path) -> None:
    """Draw the online loss with matplotlib, into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for label, curve in _distinct(result.curves).items():
        axes.plot(curve[:, 0], curve[:, 1], label=label)
    axes.axhline(
        result.constant_rank_loss, color="black", linestyle="--", linewidth=1, label="best constant"
    )
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("examples seen")
    axes.set_ylabel("rank loss, averaged over the examples seen")
    axes.set_title(f"Learning online: diabetes in {RANKS} ranks, {EPOCHS} shuffled passes")
    axes.grid(alpha=0.3)
    axes.legend()
    with atomic_write(path) as stream:
        figure.savefig(stream, format="png", dpi=150)


def _distinct(curves: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Merge equal curves, with both names: averaging changes only the predictions."""
    distinct: dict[str, np.ndarray] = {}
    for name, curve in curves.items():
        same = [label for label, other in distinct.items() if np.array_equal(other, curve)]
        label = ", ".join([*same, name])
        for old in same:
            del distinct[old]
        distinct[label] = curve
    return distinct
