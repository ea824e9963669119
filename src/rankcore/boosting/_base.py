"""What RankBoost and its bipartite form share: the loop over rounds, and what was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, check_scalar

from rankcore._core.inputs import as_rows
from rankcore._core.model_spec import ModelSpec, check_n_features
from rankcore._core.numbers import check_scores
from rankcore._core.params import check_flag, check_option, check_real
from rankcore._core.queries import Queries
from rankcore._core.threads import check_n_jobs, n_threads
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import MAX_BINS
from rankcore.boosting._booster import Rounds
from rankcore.boosting._stump_sum import Contribution, StumpSum
from rankcore.progress import Progress, report
from rankcore.ranking._base import ModelState, Ranker, as_validation_log
from rankcore.ranking._pairs import Pairing, check_useful
from rankcore.ranking._watch import Watch, check_metric

# What `history_` has of each round, beside what is measured on held-out rows.
FIGURES = ("edge", "alpha", "normalizer", "bound", "cap")
BOUND = FIGURES.index("bound")


class StumpBoosting(Ranker):
    """What the two have in common. Not public.

    A subclass provides ``fit``, its parameters and ``_steps``, the rules for steps that it has.
    """

    best_iteration_: int
    _state: ModelState
    _figures = FIGURES

    n_estimators: int
    step: str
    select: str
    max_bins: int | None
    missing: str
    smoothing: Any
    balance: str | None
    early_stopping_rounds: int | None
    eval_metric: Any
    search: str
    warm_start: bool
    n_jobs: int | None
    verbose: int

    _steps: tuple[str, ...]

    # ---------------------------------------------------------------- learning

    def _fit(
        self,
        X: Any,
        rows: Rows,
        pairing: Pairing,
        with_qid: bool,
        eval_set: Any,
        eval_qid: Any,
        eval_group: Any,
        callbacks: Iterable[Callable[[Any], Any]] | None,
    ) -> Self:
        check_useful(pairing, rows.n_rows)
        validation = self._validation(X, rows, eval_set, eval_qid, eval_group)
        state = self._begin(rows.n_features)
        shadow = self._shadow(X, rows.n_features, with_qid, state)
        self._check_columns(shadow)
        run = Rounds(
            rows,
            pairing,
            state.model,
            step=self.step,
            select=self.select,
            max_bins=self.max_bins,
            smoothing=self.smoothing,
            balanced=self.balance == "query",
            plain=self.search == "plain",
            n_jobs=min(n_threads(self.n_jobs), rows.n_features),  # threads share the features
        )
        watch = Watch(shadow, validation, callbacks)
        try:
            held_out = HeldOut(watch, state.model)
            while len(state.model) < self.n_estimators and not run.done:
                figures = run.round()
                if figures is None:
                    break
                self._note(state, figures)
                held_out.follow()
                if self.verbose and len(state.model) % self.verbose == 0:
                    print(
                        f"[{type(self).__name__}] round {len(state.model)} of "
                        f"{self.n_estimators}: edge {figures['edge']:+.4f}, training error at most "
                        f"{state.log[-1][BOUND]:.4f}{watch.text()}"
                    )
                if watch.ends():
                    break
        finally:
            run.close()
        if self.early_stopping_rounds is not None:
            state.model = state.model.first(watch.best)
        if validation is not None:
            shadow.best_iteration_ = watch.best
        self._become(shadow)
        return self

    def _note(self, state: ModelState, figures: dict[str, float]) -> None:
        """Add a round to the log, and report it."""
        before = state.log[-1] if state.log else [1.0] * len(FIGURES)
        bound, cap = before[BOUND] * figures["normalizer"], before[BOUND + 1] * figures["cap"]
        state.log.append([figures["edge"], figures["alpha"], figures["normalizer"], bound, cap])
        n = len(state.model)
        what = "bound on the training error"
        report(Progress(n, self.n_estimators, 1, 1, bound, what, "rounds"))

    def _begin(self, n_features: int) -> ModelState:
        """A state that knows nothing, or what is to be continued."""
        settings = {"zero_missing": self.missing == "zero"}
        if not self.warm_start or "_state" not in self.__dict__:
            model = StumpSum(n_features, settings["zero_missing"])
            return ModelState(model, settings=settings)
        known = self._state
        n = len(known.model)
        if self.n_features_in_ != n_features:
            raise ValueError(
                f"X has {n_features} features, but warm_start continues a model of "
                f"{self.n_features_in_}"
            )
        if known.settings != settings:
            raise ValueError("warm_start requires the missing= that the model was fitted with")
        if self.n_estimators < n:
            raise ValueError(
                f"n_estimators={self.n_estimators} is below the {n} stumps of the "
                "model that warm_start continues"
            )
        validation = {name: values[:n] for name, values in known.validation.items()}
        log = [list(figures) for figures in known.log[:n]]
        return ModelState(known.model.first(n), settings=settings, log=log, validation=validation)

    def _check_columns(self, shadow: Self) -> None:
        """Raise unless a fit that goes on has the columns of the fit before."""
        if not self.warm_start:
            return
        names, known = (getattr(one, "feature_names_in_", None) for one in (shadow, self))
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                "warm_start requires the columns that the model was fitted on, "
                f"{known.tolist()}; found {names.tolist()}"
            )

    def _as_rows(self, X: Any) -> Rows:
        return as_rows(X, nan=True)

    def _check_params(self) -> None:
        check_option(self.step, "step", self._steps)
        check_option(self.select, "select", ("edge", "normalizer"))
        check_option(self.missing, "missing", ("learn", "zero"))
        check_option(self.search, "search", ("auto", "plain"))
        if self.balance is not None:
            check_option(self.balance, "balance", ("query",))
        check_scalar(self.n_estimators, "n_estimators", Integral, min_val=1)
        check_scalar(self.verbose, "verbose", Integral, min_val=0)
        if self.max_bins is not None:
            check_scalar(self.max_bins, "max_bins", Integral, min_val=2, max_val=MAX_BINS)
        if self.early_stopping_rounds is not None:
            check_scalar(self.early_stopping_rounds, "early_stopping_rounds", Integral, min_val=1)
        if not (isinstance(self.smoothing, str) and self.smoothing == "auto"):
            if isinstance(self.smoothing, str):
                raise ValueError(
                    f"smoothing must be 'auto' or a number from 0 on, found {self.smoothing!r}"
                )
            check_real(self.smoothing, "smoothing", 0, 1e100)
        check_flag(self.warm_start, "warm_start")
        check_n_jobs(self.n_jobs)
        check_metric(self.eval_metric, "eval_metric")

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._state
        return {
            "settings": state.settings,
            "with_qid": self._with_qid,
            "log": state.log,
            "validation": state.validation,
            "best_iteration": getattr(self, "best_iteration_", None),
        }, state.model.to_arrays()

    def _restore(self, spec: ModelSpec) -> None:
        settings, log = spec.facts["settings"], spec.facts["log"]
        n_features, best = check_n_features(spec.n_features), spec.facts["best_iteration"]
        zero_missing = settings.get("zero_missing")
        if not isinstance(zero_missing, bool) or len(settings) != 1:
            raise ValueError(f"its settings {settings} are not those of {type(self).__name__}")
        model = StumpSum.from_arrays(spec.arrays, n_features, zero_missing)
        log = [list(map(float, figures)) for figures in log]
        if any(len(figures) != len(FIGURES) for figures in log) or np.isnan(log).any():
            raise ValueError("its log is not that of a boosted model")
        if len(model) > len(log) or not (best is None or 0 <= int(best) <= len(log)):
            raise ValueError("it has more stumps than rounds")
        validation = as_validation_log(spec.facts["validation"], len(log))
        self._state = ModelState(model, settings=settings, log=log, validation=validation)
        self.n_features_in_, self._with_qid = n_features, bool(spec.facts["with_qid"])
        if best is not None:
            self.best_iteration_ = int(best)

    def _fit_summary(self) -> dict[str, Any]:
        log = self._state.log
        return {
            "stumps": len(self._state.model),
            "training_error_at_most": log[-1][BOUND] if log else 1.0,
        }

    def _summary(self) -> dict[str, Any]:
        return {"stumps": len(self._state.model), "rounds": self.n_iter_}

    # ---------------------------------------------------------------- what was learned

    def _scores(self, rows: Rows, queries: Queries) -> NDArray[np.float64]:
        return check_scores(self._fitted_state().model.score(rows))

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Scores after each round.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Yields
        ------
        ndarray of float64, shape (n_samples,)
            The last equals `predict` to rounding.
        """
        check_is_fitted(self)
        rows, stumps = self._more_rows(X), self._state.model
        scores, fires = np.zeros(rows.n_rows), np.empty(rows.n_rows, dtype=np.uint8)
        for i in range(len(stumps)):
            stumps.fire(i, rows, fires)
            scores += stumps.alphas[i] * fires
            yield scores.copy()

    def contribution(self, feature: int) -> Contribution:
        """What a feature adds to the score, as a function of its value.

        Parameters
        ----------
        feature : int
            Number of the column.

        Returns
        -------
        Contribution
            Thresholds, the values between them, and the value where the feature is missing; for
            example for ``matplotlib.pyplot.stairs``.
        """
        check_is_fitted(self)
        check_scalar(feature, "feature", Integral, min_val=0, max_val=self.n_features_in_ - 1)
        return self._state.model.contribution(int(feature))

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Each feature's share in the sum of |alpha|, shape (n_features,)."""
        return self._fitted_state().model.importances()

    @property
    def estimators_(self) -> NDArray[np.void]:
        """The stumps, a record each: feature, threshold, missing (1: fires there), alpha."""
        stumps = self._fitted_state().model
        kinds = [("feature", np.int32), ("threshold", np.float64)]
        kinds += [("missing", np.uint8), ("alpha", np.float64)]
        records = np.empty(len(stumps), dtype=kinds)
        records["feature"], records["threshold"] = stumps.features, stumps.thresholds
        records["missing"], records["alpha"] = stumps.sides, stumps.alphas
        return records

    @property
    def n_iter_(self) -> int:
        """Rounds made."""
        return len(self._fitted_state().log)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class HeldOut:
    """Scores of held-out rows, which grow with the model; measured after each round.

    Parameters
    ----------
    watch : Watch
    model : StumpSum
        Rounds of it that were not measured yet are, one by one.
    """

    def __init__(self, watch: Watch, model: StumpSum) -> None:
        self._watch, self._model, self._validation = watch, model, watch.validation
        if self._validation is None:
            return
        rows = self._validation.rows
        self._fires = np.empty(rows.n_rows, dtype=np.uint8)
        self._scores = model.score(rows) if watch.values else np.zeros(rows.n_rows)
        for i in range(len(watch.values), len(model)):
            self._add(i)

    def _add(self, i: int) -> None:
        assert self._validation is not None
        self._model.fire(i, self._validation.rows, self._fires)
        self._scores += self._model.alphas[i] * self._fires
        self._watch.measure(self._scores)

    def follow(self) -> None:
        """Add the latest stump, and measure."""
        if self._validation is not None:
            self._add(len(self._model) - 1)
