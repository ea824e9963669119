"""What RankBoost and its bipartite form share: the loop over rounds, and what was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, check_scalar, validate_data

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
from rankcore.ranking._base import Ranker, Validation, check_metric
from rankcore.ranking._pairs import Pairing, check_useful

# What `history_` tells of each round, beside what is measured on held-out rows.
FIGURES = ("edge", "alpha", "normalizer", "bound", "cap")


class StumpBoosting(Ranker):
    """What the two have in common. Not public.

    A subclass provides ``fit``, its parameters and ``_steps``, the rules for steps that it has.
    """

    best_iteration_: int
    _state: StumpSum
    _figures = FIGURES
    _history: dict[str, list[float]]

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
        callbacks = list(callbacks or [])
        validation = self._validation(X, rows, eval_set, eval_qid, eval_group)
        shadow = self._shadow(X, rows, with_qid)
        state, history = shadow._state, shadow._history
        n_jobs = n_threads(self.n_jobs)
        n_jobs = min(n_jobs, rows.n_features)  # features are what threads share
        run = Rounds(
            rows,
            pairing,
            state,
            step=self.step,
            select=self.select,
            max_bins=self.max_bins,
            smoothing=self.smoothing,
            balanced=self.balance == "query",
            plain=self.search == "plain",
            n_jobs=n_jobs,
        )
        values, held = self._held_out(state, history, validation)
        merits = [] if validation is None else [validation.merit(value) for value in values]
        best_round = int(np.argmax(merits)) + 1 if merits else 0
        try:
            while len(state) < self.n_estimators and not run.done:
                figures = run.round()
                if figures is None:
                    break
                bounds = {
                    name: (history[name][-1] if history[name] else 1.0) * figures[part]
                    for name, part in [("bound", "normalizer"), ("cap", "cap")]
                }
                for name, value in {**figures, **bounds}.items():
                    history[name].append(value)
                if validation is not None:
                    self._watch(state, len(state) - 1, validation, held, values)
                    merits.append(validation.merit(values[-1]))
                    if not best_round or merits[-1] > merits[best_round - 1]:
                        best_round = len(state)
                report(
                    Progress(
                        len(state),
                        self.n_estimators,
                        1,
                        1,
                        history["bound"][-1],
                        "bound on the training error",
                        "rounds",
                    )
                )
                if self.verbose and len(state) % self.verbose == 0:
                    self._tell(history, len(state))
                # A copy: what a callback sets is not for the user's estimator.
                stop = [bool(callback(copy(shadow))) for callback in callbacks]
                stale = self.early_stopping_rounds is not None and (
                    len(state) - best_round >= self.early_stopping_rounds
                )
                if any(stop) or stale:
                    break
        finally:
            run.close()
        if self.early_stopping_rounds is not None:
            shadow._state = state.first(best_round)
        if validation is not None:
            shadow.best_iteration_ = best_round
        else:
            shadow.__dict__.pop("best_iteration_", None)
        self._become(shadow)
        return self

    def _held_out(
        self, state: StumpSum, history: dict[str, list[float]], validation: Validation | None
    ) -> tuple[list[float], NDArray[np.float64]]:
        """The measure after each round that there was, and the held-out scores after the last."""
        watched = None if validation is None else self._metric_name()
        for name in history.keys() - {*FIGURES, watched}:
            del history[name]
        if validation is None or watched is None:
            return [], np.empty(0)
        values = history.setdefault(watched, [])
        if values:
            return values, state.score(validation.rows)
        held = np.zeros(validation.rows.n_rows)
        for i in range(len(state)):
            self._watch(state, i, validation, held, values)
        return values, held

    def _watch(
        self,
        state: StumpSum,
        i: int,
        validation: Validation,
        scores: NDArray[np.float64],
        values: list[float],
    ) -> None:
        """Add stump i to the held-out scores, and measure them."""
        fires = np.empty(scores.size, dtype=np.uint8)
        state.fire(i, validation.rows, fires)
        scores += state.alphas[i] * fires
        values.append(validation.measure(scores))

    def _shadow(self, X: Any, rows: Rows, with_qid: bool) -> Self:
        """A copy of this estimator, fitted with nothing yet, or with what is to be continued."""
        shadow = copy(self)
        validate_data(shadow, X, skip_check_array=True, reset=True)  # feature names
        shadow.n_features_in_ = rows.n_features
        shadow._with_qid = with_qid
        zero_missing = self.missing == "zero"
        if self.warm_start and "_state" in self.__dict__:
            if self.n_features_in_ != rows.n_features:
                raise ValueError(
                    f"X has {rows.n_features} features, but with warm_start the model goes on from "
                    f"{self.n_features_in_}"
                )
            names, known = (getattr(one, "feature_names_in_", None) for one in (shadow, self))
            if names is not None and known is not None and names.tolist() != known.tolist():
                raise ValueError(
                    "warm_start requires the columns that the model was fitted on, "
                    f"{known.tolist()}; found {names.tolist()}"
                )
            if self._state.zero_missing != zero_missing:
                raise ValueError("warm_start cannot go on with another missing=")
            if self.n_estimators < len(self._state):
                raise ValueError(
                    f"n_estimators={self.n_estimators} is below the {len(self._state)} stumps that "
                    "warm_start goes on from"
                )
            n = len(self._state)
            shadow._state = self._state.first(n)
            shadow._history = {name: values[:n] for name, values in self._history.items()}
        else:
            shadow._state = StumpSum(rows.n_features, zero_missing)
            shadow._history = {name: [] for name in FIGURES}
        return shadow

    def _tell(self, history: dict[str, list[float]], n: int) -> None:
        name = self._metric_name()
        value = f", {name} {history[name][-1]:.4f}" if history.get(name) else ""
        print(
            f"[{type(self).__name__}] round {n} of {self.n_estimators}: edge "
            f"{history['edge'][-1]:+.4f}, training error at most {history['bound'][-1]:.4f}{value}"
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
        return {
            "settings": {"zero_missing": self._state.zero_missing},
            "with_qid": self._with_qid,
            "history": self.history_,
            "best_iteration": getattr(self, "best_iteration_", None),
        }, self._state.to_arrays()

    def _restore(self, spec: ModelSpec) -> None:
        settings, history = spec.facts["settings"], spec.facts["history"]
        n_features, best = check_n_features(spec.n_features), spec.facts["best_iteration"]
        zero_missing = settings.get("zero_missing")
        if not isinstance(zero_missing, bool) or len(settings) != 1:
            raise ValueError(f"its settings {settings} are not those of {type(self).__name__}")
        state = StumpSum.from_arrays(spec.arrays, n_features, zero_missing)
        lengths = {len(values) for values in history.values()}
        if not set(FIGURES) <= history.keys() or len(lengths) != 1:
            raise ValueError("its history is not that of a boosted model")
        n_rounds = lengths.pop()
        if len(state) > n_rounds or not (best is None or 0 <= int(best) <= n_rounds):
            raise ValueError("it has more stumps than rounds")
        if np.isnan(np.array(list(history.values()), dtype=np.float64)).any():
            raise ValueError("its history holds NaN")
        self._state = state
        self._history = {name: list(map(float, values)) for name, values in history.items()}
        self.n_features_in_, self._with_qid = n_features, bool(spec.facts["with_qid"])
        if best is not None:
            self.best_iteration_ = int(best)

    def _fit_summary(self) -> dict[str, Any]:
        bounds = self._history["bound"]
        return {
            "stumps": len(self._state),
            "training_error_at_most": bounds[-1] if bounds else 1.0,
        }

    def _summary(self) -> dict[str, Any]:
        return {"stumps": len(self._state), "rounds": self.n_iter_}

    # ---------------------------------------------------------------- what was learned

    def _scores(self, rows: Rows, queries: Queries) -> NDArray[np.float64]:
        return check_scores(self._fitted_state().score(rows))

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
        rows, state = self._more_rows(X), self._state
        scores, fires = np.zeros(rows.n_rows), np.empty(rows.n_rows, dtype=np.uint8)
        for i in range(len(state)):
            state.fire(i, rows, fires)
            scores += state.alphas[i] * fires
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
        return self._state.contribution(int(feature))

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Each feature's share in the sum of |alpha|, shape (n_features,)."""
        return self._fitted_state().importances()

    @property
    def estimators_(self) -> NDArray[np.void]:
        """The stumps, a record each: feature, threshold, missing (1: fires there), alpha."""
        state = self._fitted_state()
        kinds = [("feature", np.int32), ("threshold", np.float64)]
        records = np.empty(len(state), dtype=[*kinds, ("missing", np.uint8), ("alpha", np.float64)])
        records["feature"], records["threshold"] = state.features, state.thresholds
        records["missing"], records["alpha"] = state.sides, state.alphas
        return records

    @property
    def n_iter_(self) -> int:
        """Rounds made."""
        self._fitted_state()
        return len(self._history["edge"])

    @property
    def history_(self) -> dict[str, list[float]]:
        """Figures of each round."""
        self._fitted_state()
        return {name: list(values) for name, values in self._history.items()}

    def _fitted_state(self) -> StumpSum:
        # AttributeError, as for any attribute that a fit has yet to set.
        if "_state" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
