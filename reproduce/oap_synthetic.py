"""The synthetic experiment of the OAP paper (Harrington, ICML 2003, section 4.1), every learner.

``python -m reproduce.oap_synthetic --jobs 2`` prints the paper's table next to ours and the online
losses of its figure 2; --png draws the figure, --markdown writes a copy of it all. The exit status
is 1 if a row or a curve misses its gate; a run of fewer trials than the default has no gates.

A trial draws points of a square, their noisy ranks 1 .. 5 and quadratic features, makes one pass
over the training examples and takes the mean rank loss on 1000 others. Ensembles have 100 members.
The constant is a feature, so no learner has an intercept of its own. Where the paper is silent or
contradicts itself, the reading that fits its table was taken: 5000 training examples (it says
50,000 once and 5000 twice), real mean ranks for whatever votes, rounded ones for Widrow-Hoff, a
vote for the example that creates a hypothesis.

The reference is an earlier run by another implementation: 400 trials at 5000 examples, 200 at
50,000. A gate is three standard errors of the difference of independent runs, for curves with half
a unit of the last digit that the reference printed. These runs are not independent:
with --trials 400 the rows that do not sample agree in the printed digits (in one, CuSum of margin
5, but for a unit of the last), so the reference must have drawn the same data. --first-seed 1001 is
a fresh comparison.
"""

import argparse
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import chain, zip_longest
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import sem
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

import rankcore as rc
from rankcore.datasets import make_oap_synthetic, quadratic_features
from rankcore.datasets.generators import OAP_CUTS, OAP_NOISE
from rankcore.metrics import rank_loss
from reproduce.gates import not_gated
from reproduce.pages import as_row, head

RANKS = [1, 2, 3, 4, 5]
TAUS = [0.3, 0.6, 0.9]
N_TEST = 1000
# Runs of fewer are not held to gates.
TRIALS = 100
# Trials in which the votes of the members are followed example by example: half a second each.
VOTE_TRIALS = 20
REFERENCE_TRIALS = {5000: 400, 50000: 200}
MARKS = [100, 500, 1000, 2000, 5000]
TITLES = [
    "Test examples",
    "While learning, averaged over the first T examples: ours (reference ± gate)",
]


class Row(NamedTuple):
    """A row of the table, with the figures of the paper and of the reference."""

    name: str
    paper: str
    means: tuple[float | None, float | None]  # of the reference, as in REFERENCE_TRIALS
    sd: float | None = None  # of the reference's trials at 5000 examples, where it is known


ROWS = [
    Row("PRank", "0.37 ± 0.07", (0.332, 0.239), 0.131),
    Row("PRank-VP, votes from 1", "0.31 ± 0.00", (0.3155, 0.239), 0.0089),
    Row("PRank-VP, votes from 0", "0.31 ± 0.00", (0.293, None), 0.0086),
    Row("Widrow-Hoff, η = 0.1", "0.30 ± 0.2 (sic)", (0.294, 0.275), 0.030),
    Row("OAP-VP, τ = 0.3", "0.32 ± 0.01", (0.333, None), 0.032),
    Row("OAP-VP, τ = 0.6", "0.31 ± 0.02", (0.319, None), 0.052),
    Row("OAP-VP, τ = 0.9", "0.31 ± 0.03", (0.321, None), 0.078),
    Row("OAP-Bagg, τ = 0.3", "0.33 ± 0.01", (0.333, 0.248), 0.032),
    Row("OAP-Bagg, τ = 0.6", "0.31 ± 0.02", (0.319, 0.239), 0.052),
    Row("OAP-Bagg, τ = 0.9", "0.32 ± 0.03", (0.321, 0.236), 0.078),
    Row("OAP-BPM, τ = 0.3", "0.23 ± 0.01", (0.228, 0.177), 0.047),
    Row("OAP-BPM, τ = 0.6", "0.24 ± 0.03", (0.246, 0.192), 0.073),
    Row("OAP-BPM, τ = 0.9", "0.26 ± 0.03", (0.277, 0.210), 0.098),
    # What the paper's table does not have.
    Row("OAP-BPM, τ = 0.1", "", (0.295, 0.172)),
    Row("one member, τ = 0.3", "", (0.460, 0.277)),
    Row("averaged PRank", "", (0.178, 0.154), 0.0130),
    Row("PRank-VP, plurality", "", (0.168, 0.154)),
    Row("PRank-VP, median", "", (0.175, None)),
    Row("PRank-VP, round", "", (0.217, None)),
    Row("OAP-Bagg, τ = 0.3, round", "", (0.243, None)),
    Row("OAP-Bagg, τ = 0.6, round", "", (0.244, None)),
    Row("OAP-Bagg, τ = 0.9, round", "", (0.276, None)),
    Row("Widrow-Hoff, real", "", (0.394, None)),
    Row("multiclass perceptron", "", (0.565, 0.342), 0.14),
    Row("averaged multiclass perceptron", "", (0.259, 0.201)),
    Row("CuSum", "", (0.410, 0.265), 0.126),
    Row("averaged CuSum", "", (0.211, 0.164), 0.015),
    Row("averaged PA-CuSum, absolute loss", "", (0.207, 0.161)),
    Row("averaged PA-CuSum, zero-one loss", "", (0.215, 0.162)),
    Row("averaged CuSum, margin 1", "", (0.217, 0.166)),
    Row("averaged CuSum, margin 5", "", (0.302, 0.178)),
    Row("least squares, round", "", (0.247, 0.248)),
    Row("best (surface known)", "", (0.153, 0.153)),
]

# What the reference printed for the examples of MARKS: means of trials of 5000 examples, of which
# the first T are those of any trial.
ONLINE = {
    "PRank": "1.32 0.96 0.77 0.62 0.473",
    "Widrow-Hoff, η = 0.1": "1.09 0.92 0.79 0.63 0.449",
    "OAP-BPM, τ = 0.3": "1.22 0.94 0.76 0.57 0.387",
    "OAP-BPM, τ = 0.6": "1.24 0.88 0.68 0.52 0.369",
    "OAP-BPM, τ = 0.9": "",
    "OAP-Bagg, τ = 0.3": "1.09 0.94 0.80 0.65 0.480",
    "OAP-VP, τ = 0.3": "1.11 0.94 0.80 0.65 0.480",
    "multiclass perceptron": "1.30 1.15 1.02 0.89 0.728",
    "CuSum": "1.29 1.03 0.87 0.72 0.562",
}


class Trial(NamedTuple):
    """Results of one trial, by the names in `ROWS` and `ONLINE`."""

    losses: dict[str, float]  # mean rank loss on the test examples
    curves: dict[str, np.ndarray]  # time-averaged rank loss while learning
    seen: np.ndarray  # examples at the points of the curves
    updates: int  # mistakes of PRank


@threadpool_limits.wrap(limits=1)  # last digits of least squares may vary with the threads
def run_trial(seed: int, n_train: int, follow_votes: bool) -> Trial:
    """Draw data, let every learner pass over them once, and test it."""
    rng = np.random.default_rng(seed)
    points, y = make_oap_synthetic(n_train, random_state=rng)
    test_points, y_test = make_oap_synthetic(N_TEST, random_state=rng)
    X, X_test = quadratic_features(points), quadratic_features(test_points)
    losses: dict[str, float] = {}
    models: dict[str, Any] = {}

    def test(name: str, predicted: np.ndarray) -> None:
        losses[name] = rank_loss(y_test, predicted)

    for name, model in single_learners().items():
        models[name] = model.fit(X, y, classes=RANKS)
        test(name, model.predict(X_test))
    test("Widrow-Hoff, real", models["Widrow-Hoff, η = 0.1"].project(X_test))
    for output in ["plurality", "median", "round"]:
        voted = models["PRank-VP, votes from 1"].set_params(output=output)
        test(f"PRank-VP, {output}", voted.predict(X_test))
    for tau in [0.1, *TAUS]:
        name = f"OAP-BPM, τ = {tau}"
        models[name] = rc.OAPBPM.published(tau=tau, random_state=rng).fit(X, y, classes=RANKS)
        test(name, models[name].predict(X_test))
        if tau in TAUS:
            ranks, right = members(models[name], X_test)
            bagged = ranks.mean(axis=0)
            test(f"OAP-Bagg, τ = {tau}", bagged)
            test(f"OAP-Bagg, τ = {tau}, round", rounded(bagged))
            test(f"OAP-VP, τ = {tau}", right @ ranks / right.sum())
        if tau == 0.3:
            losses["one member, τ = 0.3"] = float(np.abs(ranks - y_test).mean())
    regression = LinearRegression(fit_intercept=False).fit(X, y)
    test("least squares, round", rounded(regression.predict(X_test)))
    test("best (surface known)", best_ranks(test_points))

    seen = models["PRank"].update_loss_curve_[:, 0].astype(int)
    curves = {name: models[name].update_loss_curve_[:, 1] for name in ONLINE if name in models}
    if follow_votes:
        seed = int(rng.integers(2**32))
        for name, learner in [("OAP-Bagg", rc.OAPBagging), ("OAP-VP", rc.OAPVoting)]:
            model = learner.published(tau=0.3, random_state=seed)
            curves[f"{name}, τ = 0.3"] = vote_curve(model, X, y)[seen - 1]
    return Trial(losses, curves, seen, models["PRank"].history_["mistakes"][0])


def single_learners() -> dict[str, Any]:
    """Everything but the ensembles, with features as given."""
    cusum = partial(rc.CuSumRank.published, fit_intercept=False)
    return {
        "PRank": rc.PRank.published(),
        "averaged PRank": rc.PRank.published(average=True),
        "PRank-VP, votes from 1": rc.VotedPRank.published(output="mean"),
        "PRank-VP, votes from 0": rc.VotedPRank.published(output="mean", count_init=0),
        "Widrow-Hoff, η = 0.1": rc.WidrowHoff.published(eta0=0.1, fit_intercept=False),
        "multiclass perceptron": rc.MulticlassPerceptron.published(),
        "averaged multiclass perceptron": rc.MulticlassPerceptron.published(average=True),
        "CuSum": cusum(),
        "averaged CuSum": cusum(average=True),
        "averaged PA-CuSum, absolute loss": cusum(update="pa", average=True),
        "averaged PA-CuSum, zero-one loss": cusum(update="pa", pa_loss="zero_one", average=True),
        "averaged CuSum, margin 1": cusum(margin=1.0, average=True),
        "averaged CuSum, margin 5": cusum(margin=5.0, average=True),
    }


def members(model: rc.OAPBPM, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranks that each member predicts, and how many examples it ranked rightly in its pass.

    OAP-Bagg and OAP-VP are their plain and weighted mean: one training serves three methods.
    """
    fitted = model.estimators_
    right = np.array([member.t_ - sum(member.history_["mistakes"]) for member in fitted])
    return np.array([member.predict(X) for member in fitted]), right


def rounded(scores: np.ndarray) -> np.ndarray:
    """Ranks nearest to real predictions, halves up."""
    return np.clip(np.floor(scores + 0.5), RANKS[0], RANKS[-1])


def vote_curve(
    model: rc.OAPBagging, X: np.ndarray, y: np.ndarray, ranks: Sequence[int] = RANKS
) -> np.ndarray:
    """Time-averaged loss of the real mean rank; the learner's own curve is of the mean member."""
    losses = np.empty(len(y))
    losses[0] = ranks[-1] - y[0]  # before learning all scores and thresholds are 0
    model.partial_fit(X[:1], y[:1], classes=ranks)
    for t in range(1, len(y)):
        losses[t] = abs(model.project(X[t : t + 1])[0] - y[t])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    return losses.cumsum() / np.arange(1, len(y) + 1)


def best_ranks(points: np.ndarray) -> np.ndarray:
    """Return the medians of the ranks at some points: no prediction has a smaller expected loss."""
    surface = 10 * (points[:, 0] - 0.5) * (points[:, 1] - 0.5)
    return 1 + (surface[:, None] > np.array(OAP_CUTS)).sum(axis=1)


def best_loss() -> float:
    """Return the expected loss of `best_ranks`, by quadrature.

    Each cut costs the probability that noise carries the surface 10 a b over it; v = |a b| has the
    density 4 log(1 / 4v) on (0, 1/4), and both signs are as likely.
    """

    def cost(v: float) -> float:
        across = [ndtr(-abs(s * 10 * v - cut) / OAP_NOISE) for s in (-1, 1) for cut in OAP_CUTS]
        return float(4 * np.log(1 / (4 * v)) * sum(across) / 2)

    return quad(cost, 0, 0.25, points=[abs(cut) / 10 for cut in OAP_CUTS], limit=200)[0]


def run(trials: int, n_train: int = 5000, jobs: int = 1, first_seed: int = 1) -> Iterator[Trial]:
    """Trials in the order of their seeds; results do not depend on ``jobs``."""
    seeds = range(first_seed, first_seed + trials)
    arguments = seeds, [n_train] * trials, [i < VOTE_TRIALS for i in range(trials)]
    if jobs == 1:
        yield from map(run_trial, *arguments)
        return
    # A forked child would inherit the locks of threads that it does not have.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_trial, *arguments)


def half_width(values: np.ndarray) -> np.ndarray:
    """Half of the 95 % confidence interval of the mean over the first axis."""
    return student.ppf(0.975, len(values) - 1) * sem(values)


def judge(row: Row, losses: np.ndarray, n_train: int) -> tuple[float, float, bool] | None:
    """Return the reference's mean, if any, the allowed distance, and if by this run's own sd."""
    mean = dict(zip(REFERENCE_TRIALS, row.means, strict=True)).get(n_train)
    if mean is None:
        return None
    sd = row.sd if n_train == 5000 else None
    return mean, gate(losses, REFERENCE_TRIALS[n_train], sd), sd is None


def gate(losses: np.ndarray, reference_trials: int, sd: float | None = None) -> float:
    """Three standard errors of the difference to the reference's mean; `sd` is that of a trial."""
    sd = float(losses.std(ddof=1)) if sd is None else sd
    return float(3 * sd * np.sqrt(1 / len(losses) + 1 / reference_trials))


def loss_table(trials: list[Trial], n_train: int) -> list[list[str]]:
    """Return the paper's table and the extra rows, header first."""
    cells = [["", "paper", "reference", "ours", "gate", ""]]
    for row in ROWS:
        losses = np.array([trial.losses[row.name] for trial in trials])
        line = [row.name, row.paper, "", f"{losses.mean():.4f} ± {half_width(losses):.4f}", "", ""]
        known = judge(row, losses, n_train)
        if known is not None:
            mean, limit, own = known
            line[2] = f"{mean:.4f}".removesuffix("0")  # most are known to three digits
            line[4] = f"{limit:.4f}" + ("*" if own else "")
            line[5] = "pass" if abs(losses.mean() - mean) <= limit else "MISS"
        cells.append(line)
    return cells


def online_table(curves: dict[str, np.ndarray], seen: np.ndarray) -> list[list[str]]:
    """Time-averaged losses at `MARKS` as ours ± half-width (reference ± gate), header first."""
    marks = [mark for mark in MARKS if mark <= seen[-1]]
    cells = [["", "trials", *(f"T = {mark}" for mark in marks), ""]]
    for name, reference in ONLINE.items():
        line, passed = [name, str(len(curves[name]))], []
        for mark, printed in zip_longest(marks, reference.split()[: len(marks)]):
            at = curves[name][:, np.searchsorted(seen, mark)]
            cell = f"{at.mean():.3f} ± {half_width(at):.3f}"
            if printed is not None:
                half_unit = 0.5 * 10.0 ** -len(printed.partition(".")[2])
                limit = gate(at, REFERENCE_TRIALS[5000]) + half_unit
                passed.append(abs(at.mean() - float(printed)) <= limit)
                cell += f" ({printed} ± {limit:.3f})"
            line.append(cell)
        verdict = ("pass" if all(passed) else "MISS") if passed else ""
        cells.append([*line, verdict])
    return cells


def facts(trials: list[Trial], n_train: int, seconds: float) -> list[str]:
    updates = np.array([trial.updates for trial in trials])
    known = "; reference 2034 ± 38" if n_train == 5000 else ""
    return [
        f"{len(trials)} trials of {n_train} training and {N_TEST} test examples: {seconds:.1f} s.",
        "Reference and ours: mean rank loss; ± is half a 95 % confidence interval (Student's t).",
        "Gate: 3 sd √(1/trials + 1/reference's trials), the sd that of this run where marked *.",
        "Curves: the sd is that of this run; half a unit of the reference's last digit is added.",
        f"The smallest expected loss, by quadrature: {best_loss():.4f}.",
        f"Updates of PRank: {updates.mean():.0f} ± {updates.std(ddof=1):.0f} (sd{known}).",
    ]


def write_png(curves: dict[str, np.ndarray], seen: np.ndarray, path: Path) -> None:
    """Draw the analogue of the paper's figure 2, with confidence bands."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    shown = seen >= 10  # fewer examples are mere noise
    x, n = seen[shown], len(curves["PRank"])
    for name, reference in ONLINE.items():
        if name.startswith("OAP-VP"):  # lies on OAP-Bagg
            continue
        mean, width = curves[name].mean(axis=0)[shown], half_width(curves[name])[shown]
        label = name if len(curves[name]) == n else f"{name} ({len(curves[name])} trials)"
        (line,) = axes.plot(x, mean, label=label, linewidth=1.5)
        axes.fill_between(x, mean - width, mean + width, color=line.get_color(), alpha=0.12, lw=0)
        known = [float(value) for value in reference.split()]
        axes.plot(MARKS[: len(known)], known, "x", color=line.get_color(), markersize=5)
    axes.axhline(best_loss(), color="black", linestyle="--", linewidth=1, label="best possible")
    axes.set(xscale="log", ylim=(0, None))
    axes.set(xlabel="examples seen", ylabel="rank loss, averaged over the examples seen")
    axes.set_title(f"Learning online, mean of {n} trials (crosses: reference)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    figure.savefig(path, format="png", dpi=120)


def document(tables: list[list[list[str]]], said: list[str], png: Path | None) -> str:
    """Write the Markdown copy."""
    names = ["rankcore", "numpy", "scipy", "scikit-learn"]
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    parts = [
        "# The synthetic experiment of the OAP paper",
        f"    python -m reproduce.oap_synthetic {shlex.join(sys.argv[1:])}",
        f"Python {platform.python_version()}, {versions}; {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} processors.",
        "\n".join(f"* {line}" for line in said),
    ]
    for title, (header, *lines) in zip(TITLES, tables, strict=True):
        parts.append(f"## {title}")
        parts.append("\n".join([*head(*header, numbers=True), *(as_row(*line) for line in lines)]))
    if png is not None:
        parts.append(f"![rank loss while learning]({png.as_posix()})")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--n-train", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--png", type=Path, help="where to draw the online losses")
    parser.add_argument("--markdown", type=Path, help="where to write a copy")
    arguments = parser.parse_args()
    if min(arguments.trials - 1, arguments.n_train - 99, arguments.jobs, arguments.first_seed) < 1:
        parser.error("needs at least 2 trials, 100 training examples, 1 job, and seeds from 1")

    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    start = perf_counter()
    found = run(arguments.trials, arguments.n_train, arguments.jobs, arguments.first_seed)
    trials = list(track(found, "trials", arguments.trials, console=Console(stderr=True)))
    said = facts(trials, arguments.n_train, perf_counter() - start)
    seen = trials[0].seen
    curves = {k: np.array([t.curves[k] for t in trials if k in t.curves]) for k in ONLINE}
    tables = [loss_table(trials, arguments.n_train), online_table(curves, seen)]
    small = not_gated(len(trials), TRIALS, "trials")
    if small:
        for line in chain.from_iterable(tables):
            line[-1] = ""
    verdicts = [line[-1] for table in tables for line in table if line[-1]]
    passed = f"{verdicts.count('pass')} of {len(verdicts)} gates passed"
    said.append(f"{small.capitalize() or passed}.")
    out = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    out.print(*said, sep="\n")
    for title, (header, *lines) in zip(TITLES, tables, strict=True):
        table = Table(*header, title=title, title_justify="left")
        for column in table.columns[1:]:
            column.justify = "right"
        for cells in lines:
            table.add_row(*cells, style="red" if "MISS" in cells else None)
        out.print(table)
    if arguments.png:
        write_png(curves, seen, arguments.png)
    if arguments.markdown:
        link = arguments.png and Path(os.path.relpath(arguments.png, arguments.markdown.parent))
        arguments.markdown.write_text(document(tables, said, link), encoding="utf-8")
    if "MISS" in verdicts:
        sys.exit("at least one row or curve misses its gate")


if __name__ == "__main__":
    main()
