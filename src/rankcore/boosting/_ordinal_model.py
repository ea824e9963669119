"""Fitted models of `rankcore.OrdinalBoost`: attributes and model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from rankcore._core.inputs import check_classes
from rankcore._core.model_spec import (
    ModelSpec,
    Specified,
    array_like,
    check_n_features,
    outline,
)
from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore._core.state import log_array, restored_log, restored_validation, validation_arrays
from rankcore.boosting._categories import Categories, SplitsCategories
from rankcore.boosting._ordinal_sum import MAX_RANKS, Form, OrdinalSum
from rankcore.boosting._ordinal_training import (
    FIGURES,
)
from rankcore.ranking._base import ModelState

TASKS = ("vector", "shared", "separate", "mixed", "average")
LINKS = ("adjacent", "cumulative")

# Values of ``tasks`` that allow a cumulative link.
CUMULATIVE = ("shared", "average")


class OrdinalModel(SplitsCategories, Specified):
    """Attributes, files and exports of a fitted `OrdinalBoost`. Not public."""

    costs_: Floats
    ranks_: NDArray[Any]

    # ---------------------------------------------------------------- attributes

    @property
    def biases_(self) -> Floats:
        """Bias b_j of each rank but the lowest; with "average", of both models in turn."""
        found: Floats = self._fitted_state().model.biases[-1].copy()
        return found

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the sum of the gains of all splits, shape (n_features,)."""
        found: Floats = self._fitted_state().model.together().importances()
        return found

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self._fitted_state().log)

    @property
    def history_(self) -> dict[str, list[float]]:
        """Mean loss after each round, and measures of held-out rows."""
        found: dict[str, list[float]] = self._fitted_state().history(FIGURES)
        return found

    # ---------------------------------------------------------------- files

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state, categories = self._state, self._categories
        arrays = {
            **state.model.to_arrays(),
            "classes": self.ranks_,
            "costs": self.costs_,
            "log": log_array(state.log, FIGURES),
            **validation_arrays(state.validation),
        }
        if hasattr(self, "conformal_scores_"):
            arrays["conformal_scores"] = self.conformal_scores_
        return {
            "settings": state.settings,
            "categories": None if categories is None else categories.facts(),
            "validation": [*state.validation],
            "best_iteration": getattr(self, "best_iteration_", None),
        }, arrays

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return self._state.model.scoring(arrays)

    def _restore(self, spec: ModelSpec) -> None:
        arrays, settings, best = spec.arrays, spec.facts["settings"], spec.facts["best_iteration"]
        n_features, classes = check_n_features(spec.n_features), check_classes(arrays["classes"])
        zero_missing, tasks, link = (
            settings.get(name) for name in ("zero_missing", "tasks", "link")
        )
        mixed = link == "cumulative" and tasks not in CUMULATIVE
        whole = isinstance(zero_missing, bool) and tasks in TASKS and link in LINKS
        if not whole or mixed or len(settings) != 3 or classes.size > MAX_RANKS:
            raise ValueError(f"its settings {settings} are not those of {type(self).__name__}")
        form = Form(int(classes.size), tasks, link)
        model = OrdinalSum.from_arrays(arrays, form, n_features, zero_missing)
        log = restored_log(spec, FIGURES)
        if len(model) > len(log) or not (best is None or 0 <= int(best) <= len(log)):
            raise ValueError("its trees or its best_iteration exceed its rounds")
        categories = None
        if spec.facts["categories"] is not None:
            categories = Categories.restored(spec.facts["categories"], n_features)
        model.together().check_categories([] if categories is None else categories.numbers)
        self.costs_ = array_like(arrays, "costs", outline((classes.size, classes.size)))
        if "conformal_scores" in arrays:
            n = arrays["conformal_scores"].size
            self.conformal_scores_ = array_like(arrays, "conformal_scores", outline(n))
        validation = restored_validation(spec, len(log))
        self._state = ModelState(model, settings=settings, log=log, validation=validation)
        self.ranks_, self.n_features_in_, self._categories = classes, n_features, categories
        if best is not None:
            self.best_iteration_ = int(best)

    def _fit_summary(self) -> dict[str, Any]:
        log = self._state.log
        return {
            "classes": self.ranks_.tolist(),
            "rounds": len(log),
            "log_loss": log[-1][0] if log else None,
        }

    def _summary(self) -> dict[str, Any]:
        n_trees = len(self._state.model.together())
        return {"classes": self.ranks_.tolist(), "trees": n_trees, "rounds": self.n_iter_}
