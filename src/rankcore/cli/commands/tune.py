"""``rankcore tune``: search learners and parameters with Optuna, and save the best model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.learning import Choice, fit
from rankcore.cli.options import (
    ClassesOption,
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
from rankcore.cli.scaling import Scale, ScaleOption, on_scale
from rankcore.cli.search_space import (
    FEW,
    FOR_FEW_LABELS,
    FOR_LABELS,
    FOR_QUERIES,
    check_space,
    families,
    suggest,
)
from rankcore.cli.terminal import ProgressBar, complain, print_facts, progress_bar
from rankcore.progress import Progress, watch

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.storages import BaseStorage
    from optuna.trial import BaseTrial, FrozenTrial

    from rankcore.cli.rows import Rows


def _lock_of(trials: Path, given: dict[str, Any]) -> list[Path]:
    """Return the file by which Optuna locks a journal of trials."""
    return [trials.with_name(f"{trials.name}.lock")]


def tune(
    data: ManyDataArgument,
    output: Annotated[
        Path,
        Writes(),
        typer.Option("--output", "-o", metavar="MODEL", help="Output file for the best model."),
    ],
    layout: Layout,
    minutes: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="Time limit of the search. A trial that exceeds it is stopped, unless it is the "
            "first; the final fit of the best model follows.",
        ),
    ] = 5.0,
    max_trials: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of trials of this run.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Learner to search (repeatable). By default "
            f"{', '.join(FOR_QUERIES)} if every line has qid:, else {', '.join(FOR_LABELS)}, and "
            f"{', '.join(FOR_FEW_LABELS)} of at most {FEW} rows; those of trees alone if there are "
            "categories; of rows with NaN those that learn from them.",
        ),
    ] = None,
    valid: ValidOption = None,
    metric: MetricOption = None,
    folds: Annotated[
        int, typer.Option(min=2, help="Number of cross-validation folds, without --valid.")
    ] = 5,
    trials: Annotated[
        Path | None,
        Writes(beside=_lock_of),
        typer.Option(
            metavar="FILE",
            help="Keep all trials in this file, a journal of Optuna. If it exists, the search "
            "continues from its trials.",
        ),
    ] = None,
    scale: ScaleOption = Scale.NONE,
    weights: WeightsOption = None,
    seed: SeedOption = 0,
    classes: ClassesOption = None,
    set_: SetOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Search learners and parameters, and save the best model."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ValueError("tune requires Optuna: pip install 'rankcore[tune]'") from error

    choice = Choice(seed=seed, set_=set_, classes=classes)
    choice.check()
    metric = _one(metric)
    for name in model or []:
        choice.make(find_learner(name))
        check_space(name)

    import rankcore
    from rankcore.cli.models import name_features
    from rankcore.cli.rows import read, read_many, same_width
    from rankcore.io.scaled import with_scaler

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # the command has its own output
    storage = None if trials is None else _journal(trials)
    with progress_bar(quiet) as bar:
        rows, held_out = read_many(data, layout, bar).weighted(weights), None
        if valid is not None:
            held_out = read(valid, replace(layout, features=None), bar)
            rows, held_out = same_width(rows, held_out)
        nan = rows.has_nan or (held_out is not None and held_out.has_nan)
        default = families(rows.in_queries, rows.X.shape[0], rows.has_categories, nan)
        names = list(dict.fromkeys(model or default))
        learners = {name: find_learner(name) for name in names}
        for learner in learners.values():
            for part in (rows, held_out):
                if part is not None:
                    part.check_values(learner.estimator, learner.scale_invariant)
        if _of_queries(list(learners.values()), metric):
            rows.check_queries(data[0])
            if held_out is not None:
                held_out.check_queries(str(valid))
        metric = metric or ("ndcg@10" if learners[names[0]].ranks_queries else "rank_loss")
        start = perf_counter()
        task = _Task(choice, learners, rows, held_out, metric, scale, folds)
        search = _Search(task, _study(storage, task, trials), minutes, bar)
        best = search.run(max_trials)
        learner, drawn = task.drawn(best)
        scaler, estimator, _ = task.on_all(learner, drawn)
        named = name_features(with_scaler(scaler, estimator), layout.listed_names)
        rankcore.save(named, output)
    facts = {
        "trials": search.n_finished,
        "model": learner.name,
        **drawn,
        f"{'valid' if held_out is not None else 'cross_validated'}_{metric}": best.value,
        "seconds": perf_counter() - start,
        "path": str(output),
    }
    print_facts(facts, as_json)


def _one(metric: str | None) -> str | None:
    """Return the name of the selected measure in results."""
    from rankcore.metrics.names import label_measure, parse

    if metric is None or label_measure(metric) is not None:
        return metric
    titles = [title for title, _ in parse(metric)]
    if len(titles) > 1:
        raise ValueError(f"{metric} is {len(titles)} measures: choose one, such as {titles[0]}")
    return titles[0]


def _of_queries(learners: Sequence[Learner], metric: str | None) -> bool:
    """Return whether trials are measured by query; raise ValueError for unsuitable learners."""
    from rankcore.metrics.names import label_measure

    ranks = learners[0].ranks_queries
    of_labels = metric is None or label_measure(metric) is not None
    if any(learner.ranks_queries != ranks for learner in learners):
        raise ValueError(
            "--model must name learners of ordered labels or of queries; got both kinds"
        )
    if ranks and metric is not None and of_labels:
        raise ValueError(
            f"{metric} measures ordered labels, not orders of documents: choose a ranking measure"
        )
    return ranks or not of_labels


def _journal(path: Path) -> BaseStorage:
    """Open or create a journal of trials; raise ValueError for any other file."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if any("op_code" not in json.loads(line) for line in text.splitlines()):
            raise ValueError("a line has no op_code")
        if text and not text.endswith("\n"):  # Optuna would append to this line
            raise ValueError("the last line is incomplete")
        return JournalStorage(JournalFileBackend(str(path), JournalFileOpenLock(str(path))))
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(
            f"{path} is not a journal of Optuna; choose another file for --trials ({error})"
        ) from error


def _study(storage: BaseStorage | None, task: _Task, path: Path | None) -> Study:
    """Return the study of a journal, or a new one that begins with each learner's defaults."""
    import optuna

    from rankcore.metrics.names import greater_is_better

    study = optuna.create_study(
        storage=storage,
        study_name="tune",
        load_if_exists=True,
        direction="maximize" if greater_is_better(task.metric) else "minimize",
        pruner=optuna.pruners.MedianPruner(),
    )
    options = study.user_attrs.get("options")
    if options is None:
        study.set_user_attr("options", task.options)
        for name in task.learners:
            study.enqueue_trial({"model": name}, user_attrs={"defaults": True})
    for name, value in task.options.items():
        if options is not None and options.get(name) != value:
            raise ValueError(
                f"{path} has trials with {name}={options.get(name)!r}, this command has "
                f"{name}={value!r}: repeat the options of its trials, or choose another file for "
                "--trials"
            )
    # A search that continues must not repeat the random draws of the trials before.
    study.sampler = optuna.samplers.TPESampler(
        n_startup_trials=max(10, 4 * len(task.learners)),
        seed=task.choice.seed + len(study.trials),
    )
    return study


@dataclass
class _Task:
    """Measurement of trials on held-out rows or by cross-validation."""

    choice: Choice
    learners: dict[str, Learner]
    rows: Rows
    held_out: Rows | None
    metric: str
    scale: Scale
    folds: int

    @property
    def options(self) -> dict[str, Any]:
        """Settings, besides parameters, on which the values of trials depend."""
        return {
            "model": list(self.learners),
            "metric": self.metric,
            "scale": str(self.scale),
            "seed": self.choice.seed,
            "classes": self.choice.classes,
            "set": self.choice.set_ or [],
            "folds": self.folds if self.held_out is None else None,
            "rows": self.rows.n_rows,
            "weights": self.rows.weights is not None,
            "valid rows": None if self.held_out is None else self.held_out.n_rows,
        }

    def drawn(self, trial: BaseTrial) -> tuple[Learner, dict[str, Any]]:
        """Return the learner of a trial and its parameters that are not defaults."""
        name = trial.suggest_categorical("model", list(self.learners))
        if trial.user_attrs.get("defaults"):
            return self.learners[name], {}
        return self.learners[name], suggest(trial, name, self.choice.settings)

    def value(self, trial: Trial) -> float:
        """Return the measure of a trial, or prune it after some of the folds."""
        import numpy as np
        from optuna import TrialPruned

        from rankcore.cli.measuring import measure, measured, split

        learner, drawn = self.drawn(trial)
        if self.held_out is not None:
            _, estimator, (held_out,) = self.on_all(learner, drawn, self.held_out)
            return measured(estimator, learner, held_out, [self.metric])[self.metric]
        values: list[float] = []
        for part in split(self.rows, self.folds, self.choice.seed):
            if trial.should_prune():
                raise TrialPruned
            estimator = self.choice.make(learner, **drawn)
            measures = measure(estimator, learner, self.scale, self.rows, part, [self.metric])
            values.append(measures[self.metric])
            trial.report(float(np.mean(values)), len(values))
        return float(np.mean(values))

    def on_all(
        self, learner: Learner, drawn: dict[str, Any], *others: Rows
    ) -> tuple[Any, Any, list[Rows]]:
        """Fit scaler and learner to all training rows; scale other rows, too."""
        estimator = self.choice.make(learner, **drawn)
        scaler, (rows, *others_scaled) = on_scale(self.scale, learner, self.rows, *others)
        fit(estimator, learner, rows)
        return scaler, estimator, others_scaled


class _TimeIsUp(Exception):
    """Stops the fit of a trial at the time limit."""


class _Search:
    """Trials of a study, until the time limit, a number of trials, or Ctrl-C."""

    def __init__(self, task: _Task, study: Study, minutes: float, bar: ProgressBar) -> None:
        self._task, self._study, self._bar = task, study, bar
        self._start, self._seconds = perf_counter(), 60 * minutes

    def run(self, max_trials: int | None) -> FrozenTrial:
        """Run trials, and return the best of the study."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of the saved model repeats its own
            try:
                self._study.optimize(
                    self._value, max_trials, catch=(_TimeIsUp,), callbacks=[self._after]
                )
            except KeyboardInterrupt:
                if not self._has_value():
                    raise
                complain(f"interrupted: saving the best of {self.n_finished} trials")
        if not self._has_value():
            raise ValueError(
                f"{self._task.metric} was not a number in any trial: choose another --metric"
            )
        return self._study.best_trial

    @property
    def n_finished(self) -> int:
        """Number of trials of the study that were completed or pruned."""
        return self._count("COMPLETE", "PRUNED")

    def _count(self, *states: str) -> int:
        trials = self._study.get_trials(deepcopy=False)
        return sum(trial.state.name in states for trial in trials)

    def _has_value(self) -> bool:
        return self._count("COMPLETE") > 0

    def _elapsed(self) -> float:
        return perf_counter() - self._start

    def _value(self, trial: Trial) -> float:
        self._bar.working(f"trial {trial.number + 1}", self._elapsed(), self._seconds, "s")
        with watch(self._within_limit):
            return self._task.value(trial)

    def _within_limit(self, progress: Progress) -> None:
        if self._elapsed() >= self._seconds and self._has_value():
            raise _TimeIsUp
        self._bar.learning(progress)

    def _after(self, study: Study, trial: FrozenTrial) -> None:
        if self._has_value():
            best = study.best_trial
            self._bar.note = f"best {self._task.metric} {best.value:.4f} ({best.params['model']})"
        if self._elapsed() >= self._seconds:
            study.stop()
