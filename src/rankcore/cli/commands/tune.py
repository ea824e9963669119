"""``rankcore tune``: random search within a time limit; saves the best model."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, inf, log
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore._core.files import atomic_write
from rankcore.cli.learning import Choice, Scale, ScaleOption, fit, on_scale
from rankcore.cli.options import (
    JsonOption,
    Layout,
    ManyDataArgument,
    MetricOption,
    QuietOption,
    SeedOption,
    SetOption,
    ValidOption,
    WeightsOption,
)
from rankcore.cli.paths import Writes
from rankcore.cli.registry import Learner, find_learner
from rankcore.cli.terminal import ProgressBar, complain, print_facts, progress_bar

if TYPE_CHECKING:
    import numpy as np

    from rankcore.cli.rows import Rows

    Draw = Callable[[np.random.Generator], Any]


def _logarithmic(low: float, high: float) -> Draw:
    """A log-uniform number with three digits."""

    def draw(rng: np.random.Generator) -> float:
        return float(f"{exp(rng.uniform(log(low), log(high))):.3g}")

    return draw


def _integer(low: int, high: int) -> Draw:
    """A log-uniform integer."""
    number = _logarithmic(low, high + 0.999)
    return lambda rng: int(number(rng))


def _one_of(*choices: Any) -> Draw:
    return lambda rng: choices[int(rng.integers(len(choices)))]


_PASSES = {"max_iter": _integer(2, 50)}
_STUMPS = {
    "n_estimators": _integer(20, 500),
    "learning_rate": _logarithmic(0.05, 1.0),
    "missing": _one_of("learn", "zero"),
}
# By the name of the learner in the registry.
SPACES: Mapping[str, Mapping[str, Draw]] = {
    "prank": {**_PASSES, "threshold_scale": _one_of("auto", 1.0), "margin": _one_of("auto", 0.0)},
    "cusum": {**_PASSES, "margin": _one_of(0.0, 0.3, 1.0, 3.0)},
    "pa-cusum": {**_PASSES, "C": _logarithmic(1e-3, 10), "margin": _one_of(0.0, 1.0)},
    "oap-bpm": {"max_iter": _integer(1, 10), "tau": _one_of(0.1, 0.3, 0.6)},
    "widrow-hoff": {**_PASSES, "eta0": _logarithmic(1e-3, 1.0)},
    "kernel-prank": {
        "max_iter": _integer(2, 20),
        "gamma": _logarithmic(1e-3, 10),
        "budget": _one_of(None, 1000),
    },
    "kernel-cusum": {"max_iter": _integer(2, 20), "gamma": _logarithmic(1e-3, 10)},
    "multiclass": _PASSES,
    "ordinal-boost": {
        "n_estimators": _integer(20, 300),
        "max_leaf_nodes": _integer(4, 63),
        "learning_rate": _logarithmic(0.02, 0.3),
        "min_samples_leaf": _integer(1, 50),
        "l2_leaf": _logarithmic(0.1, 10),
        "tasks": _one_of("vector", "shared"),
    },
    "pairwise": {
        "max_iter": _integer(1, 50),
        "margin": _one_of(0.0, 0.1, 1.0),
        "balance": _one_of("query", None),
    },
    "committee": {"max_iter": _integer(5, 50), "committee_size": _one_of(5, 20, 50)},
    "ranksvm": {"C": _logarithmic(1e-5, 100), "balance": _one_of("query", None)},
    "rankboost": _STUMPS,
    "bipartite-rankboost": {"n_estimators": _integer(20, 500)},
    "rankboost-trees": {
        "n_estimators": _integer(20, 300),
        "max_leaf_nodes": _integer(4, 63),
        "learning_rate": _logarithmic(0.02, 0.3),
        "min_samples_leaf": _integer(1, 50),
        "l2_leaf": _one_of(0.0, 0.01, 0.1),
    },
}
# Candidates if no learner is named: one of each family.
FOR_QUERIES = ("ranksvm", "pairwise", "rankboost", "rankboost-trees")
FOR_LABELS = ("prank", "cusum", "pa-cusum", "oap-bpm", "widrow-hoff")
# Their cost is quadratic in the number of rows: a trial with 5000 takes about 10 seconds.
FOR_FEW_LABELS, FEW = ("kernel-prank", "kernel-cusum"), 5000


def families(in_queries: bool, n_rows: int) -> tuple[str, ...]:
    """The learners tried if none is named."""
    if in_queries:
        return FOR_QUERIES
    return FOR_LABELS + (FOR_FEW_LABELS if n_rows <= FEW else ())


def draw(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """Parameters of a learner, drawn from its space; raise ValueError if it has none."""
    if name not in SPACES:
        raise ValueError(f"tune has no parameters to draw for {name}; it has {', '.join(SPACES)}")
    return {parameter: one(rng) for parameter, one in SPACES[name].items()}


COLUMNS = ("trial", "model", "value", "seconds", "params")
# Seconds between two writes of the whole table of trials.
WRITTEN = 5.0


def tune(
    data: ManyDataArgument,
    output: Annotated[
        Path,
        Writes(),
        typer.Option("--output", "-o", metavar="MODEL", help="Output file for the best model."),
    ],
    layout: Layout,
    minutes: Annotated[
        float, typer.Option(min=0.001, help="Time limit, after which no trial starts.")
    ] = 5.0,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Learner to search (repeatable). By default "
            f"{', '.join(FOR_QUERIES)} if every line has qid:, else {', '.join(FOR_LABELS)}, and "
            f"{', '.join(FOR_FEW_LABELS)} of at most {FEW} rows.",
        ),
    ] = None,
    valid: ValidOption = None,
    metric: MetricOption = None,
    folds: Annotated[
        int, typer.Option(min=2, help="Number of cross-validation folds, without --valid.")
    ] = 5,
    trials: Annotated[
        Path | None, Writes(), typer.Option(metavar="CSV", help="Write all trials to this file.")
    ] = None,
    scale: ScaleOption = Scale.NONE,
    weights: WeightsOption = None,
    seed: SeedOption = 0,
    set_: SetOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Try learners and parameters at random, and save the best model."""
    import numpy as np

    choice = Choice(seed=seed, set_=set_)
    choice.check()
    metric = _one(metric)
    for name in model or []:
        choice.make(find_learner(name))
        draw(name, np.random.default_rng(seed))

    import rankcore
    from rankcore.cli.rows import read, read_many, same_width
    from rankcore.io.scaled import with_scaler

    with progress_bar(quiet) as bar:
        rows, held_out = read_many(data, layout, bar).weighted(weights), None
        if valid is not None:
            held_out = read(valid, replace(layout, features=None), bar)
            same_width(rows, held_out)
        names = model or families(rows.in_queries, rows.X.shape[0])
        learners = [find_learner(name) for name in names]
        if _of_queries(learners, metric):
            rows.check_queries(data[0])
            if held_out is not None:
                held_out.check_queries(str(valid))
        metric = metric or ("ndcg@10" if learners[0].ranks_queries else "rank_loss")
        start = perf_counter()
        task = _Task(choice, rows, held_out, metric, scale, folds)
        table = _Trials(trials)
        try:
            best = task.search(learners, minutes, bar, table.add)
        finally:
            table.write()
        scaler, estimator = task.fitted(best)
        rankcore.save(with_scaler(scaler, estimator), output)
    facts = {
        "trials": best.count,
        "model": best.learner.name,
        **best.drawn,
        f"{'valid' if held_out is not None else 'cross_validated'}_{metric}": best.value,
        "seconds": perf_counter() - start,
        "path": str(output),
    }
    print_facts(facts, as_json)


def _one(metric: str | None) -> str | None:
    """Name of the selected measure in results."""
    from rankcore.metrics.names import parse

    if metric is None or metric == "rank_loss":
        return metric
    titles = [title for title, _ in parse(metric)]
    if len(titles) > 1:
        raise ValueError(f"{metric} is {len(titles)} measures: choose one, such as {titles[0]}")
    return titles[0]


def _of_queries(learners: list[Learner], metric: str | None) -> bool:
    """Whether trials are measured by query; raise ValueError for unsuitable learners."""
    ranks = learners[0].ranks_queries
    if any(learner.ranks_queries != ranks for learner in learners):
        raise ValueError("--model names learners of labels and of queries: choose either kind")
    if ranks and metric == "rank_loss":
        raise ValueError("rank_loss is of labels, not of queries: choose a ranking measure")
    return ranks or metric not in (None, "rank_loss")


@dataclass
class _Trial:
    """The best trial so far, and the number of trials."""

    count: int
    value: float
    learner: Learner
    drawn: dict[str, Any]
    fitted: tuple[Any, Any] | None
    warned: list[warnings.WarningMessage]


class _Trials:
    """A CSV file of trials, if any, rewritten every few seconds and at the end."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._text = path, io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(COLUMNS)
        self._written, self._changed = -inf, False

    def add(self, row: list[Any]) -> None:
        """Append a trial."""
        self._writer.writerow(row)
        self._changed = True
        if perf_counter() - self._written > WRITTEN:
            self.write()

    def write(self) -> None:
        """Write all trials so far, if some are not written yet."""
        if self._path is not None and self._changed:
            with atomic_write(self._path) as stream:
                stream.write(self._text.getvalue().encode())
            self._written, self._changed = perf_counter(), False


@dataclass
class _Task:
    """Measurement of trials on held-out rows or by cross-validation."""

    choice: Choice
    rows: Rows
    held_out: Rows | None
    metric: str
    scale: Scale
    folds: int

    def search(
        self,
        learners: list[Learner],
        minutes: float,
        bar: ProgressBar,
        write: Callable[[list[Any]], None],
    ) -> _Trial:
        """Run trials until the time limit, or until Ctrl-C after at least one trial.

        A learner is dropped if its last trial took longer than the remaining time.
        """
        from rankcore.metrics.names import greater_is_better

        sign = 1 if greater_is_better(self.metric) else -1
        best, count, start = None, 0, perf_counter()
        took = dict.fromkeys([learner.name for learner in learners], 0.0)
        try:
            for learner, drawn in self._draws(learners):
                elapsed = perf_counter() - start
                left = 60 * minutes - elapsed
                if best is not None and (left <= 0 or min(took.values()) > left):
                    break
                if took[learner.name] > left:
                    continue
                bar.working(f"trial {count + 1}", elapsed, 60 * minutes, "s")
                begun = perf_counter()
                # The user has no use for warnings about models that are not saved.
                with warnings.catch_warnings(record=True) as caught:
                    value, fitted = self._measured(learner, drawn)
                count += 1
                took[learner.name] = perf_counter() - begun
                seconds = f"{took[learner.name]:.3f}"
                write([count, learner.name, value, seconds, json.dumps(drawn)])
                if best is None or sign * value > sign * best.value:
                    best = _Trial(count, value, learner, drawn, fitted, caught)
                    bar.note = f"best {self.metric} {value:.4f} ({learner.name})"
        except KeyboardInterrupt:
            if best is None:
                raise
            complain(f"interrupted: saving the best of {count} trials")
        assert best is not None
        return replace(best, count=count)

    def _draws(self, learners: list[Learner]) -> Iterator[tuple[Learner, dict[str, Any]]]:
        """The learners in turn: first with defaults, then with random parameters."""
        import numpy as np

        for learner in learners:
            yield learner, {}
        rng = np.random.default_rng(self.choice.seed)
        while True:
            for learner in learners:
                drawn = draw(learner.name, rng)
                yield learner, {k: x for k, x in drawn.items() if k not in self.choice.settings}

    def _measured(
        self, learner: Learner, drawn: dict[str, Any]
    ) -> tuple[float, tuple[Any, Any] | None]:
        """The measure, and the scaler and learner if they were fitted to all rows."""
        import numpy as np

        from rankcore.cli.measuring import measure, measured, split

        metrics = None if self.metric == "rank_loss" else [self.metric]
        if self.held_out is not None:
            scaler, estimator, (held_out,) = self.on_all(learner, drawn, self.held_out)
            found = measured(estimator, learner, held_out, metrics)
            return found[self.metric], (scaler, estimator)
        values = []
        for part in split(self.rows, self.rows.in_queries, self.folds, self.choice.seed):
            estimator = self.choice.make(learner, **drawn)
            found = measure(estimator, learner, self.scale, self.rows, part, metrics)
            values.append(found[self.metric])
        return float(np.mean(values)), None

    def fitted(self, best: _Trial) -> tuple[Any, Any]:
        """Scaler and learner of the best trial, with the warnings of their fit."""
        if best.fitted is None:
            return self.on_all(best.learner, best.drawn)[:2]
        for warning in best.warned:
            warnings.warn(warning.message, stacklevel=1)
        return best.fitted

    def on_all(
        self, learner: Learner, drawn: dict[str, Any], *others: Rows
    ) -> tuple[Any, Any, list[Rows]]:
        """Scaler and learner fitted to all training rows; and other rows, scaled."""
        estimator = self.choice.make(learner, **drawn)
        scaler, (rows, *others_scaled) = on_scale(self.scale, learner, self.rows, *others)
        fit(estimator, learner, rows)
        return scaler, estimator, others_scaled
