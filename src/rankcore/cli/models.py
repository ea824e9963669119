"""Model files, and rows for models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import rankcore
from rankcore._core.frames import is_frame
from rankcore.cli.options import Layout
from rankcore.cli.rows import Rows, read
from rankcore.cli.terminal import progress_bar
from rankcore.datasets.scaled_rows import as_it_takes
from rankcore.io.scaled import split_scaler


@dataclass(frozen=True)
class Model:
    """A model file."""

    whole: Any  # the learner, or a pipeline of a scaler and the learner
    scaler: Any
    learned: Any  # the learner
    # feature names, by which `read` selects columns; the estimators have them only for frames
    names: list[str] | None
    nameless: tuple[Any, ...] = ()  # estimators whose names were removed

    @property
    def categories(self) -> dict[str, list[Any]] | None:
        """Categories by the name of their feature; None if there are none."""
        encoder = getattr(_inner(self.learned)[1], "_categories", None)
        if encoder is None or self.names is None or not encoder.labels:
            return None
        return {self.names[j]: encoder.labels[j] for j in sorted(encoder.labels)}

    @property
    def learner(self) -> str:
        """Name of the class of the learner."""
        return self.learned.learner if _is_predictor(self.learned) else type(self.learned).__name__

    @property
    def takes_nan(self) -> bool:
        """Whether rows may have NaN."""
        if _is_predictor(self.learned):  # without scikit-learn, which `accepts_nan` imports
            return bool(self.learned._model.takes_nan)
        from rankcore.ordinal.held_out import accepts_nan

        return accepts_nan(self.learned)

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read a model file."""
        whole = rankcore.load(path)
        scaler, learned = split_scaler(whole)
        names = None
        nameless = []
        # `_inner` rejects texts within a calibrated learner, as `split_scaler` does before one.
        for estimator in (scaler, learned, *_inner(learned)):
            removed = None if estimator is None else vars(estimator).pop("feature_names_in_", None)
            if removed is not None:
                names = list(map(str, removed))
                nameless.append(estimator)
        return cls(whole, scaler, learned, names, tuple(nameless))

    def restore_names(self) -> None:
        """Give the estimators their feature names again, to predict frames."""
        for estimator in self.nameless:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)

    @classmethod
    def open(cls, path: Path) -> Model:
        """Open a model file for predictions, without its learner if possible."""
        try:
            predictor = rankcore.Predictor(path)
        except TypeError:  # only the learner can score rows
            return cls.load(path)
        names = predictor.feature_names_in_
        return cls(predictor, None, predictor, None if names is None else names.tolist())

    @property
    def ranks_queries(self) -> bool:
        """Whether the model ranks documents within queries."""
        if isinstance(self.learned, rankcore.Predictor):
            return self.learned.ranks_ is None
        return not hasattr(self.learned, "ranks_")

    @property
    def has_probabilities(self) -> bool:
        """Whether the model has probabilities of ranks."""
        if isinstance(self.learned, rankcore.Predictor):
            return self.learned.has_probabilities
        return hasattr(self.learned, "predict_proba")

    def takes(self, X: Any) -> Any:
        """Convert rows of a file; dense if a scaler before or within the learner centres."""
        if isinstance(self.learned, rankcore.Predictor):
            return X if self.learned.takes_sparse or is_frame(X) else X.toarray()
        return as_it_takes(self.scaler or _inner(self.learned)[0], X)

    def scaled(self, X: Any) -> Any:
        """Convert rows of a file to input of the learner."""
        rows = self.takes(X)
        return rows if self.scaler is None else self.scaler.transform(rows)


def name_features(model: Any, names: list[str] | None) -> Any:
    """Return a model whose features have names, if these are given."""
    if names is None:
        return model
    scaler, learned = split_scaler(model)
    if len(names) != learned.n_features_in_:
        raise ValueError(
            f"--names requires a name for each of {learned.n_features_in_} features; got "
            f"{len(names)}"
        )
    for estimator in (scaler, learned, *_inner(learned)):
        if estimator is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    return model


def _inner(learned: Any) -> tuple[Any, Any]:
    """Return the scaler, or None, and the learner; those within a model that calibrates them."""
    if type(learned).__name__ != "CalibratedOrdinal":
        return None, learned
    from rankcore._core.preprocessing import unwrap_frozen

    return split_scaler(unwrap_frozen(learned.estimator_))


def _is_predictor(learned: Any) -> bool:
    """Return whether a model predicts in C, without its learner."""
    return type(learned).__name__ == "Predictor"


def load_with_rows(
    paths: list[Path],
    data: str,
    layout: Layout,
    quiet: bool,
    read_model: Callable[[Path], Model] = Model.load,
) -> tuple[list[Model], Rows]:
    """Load models, and the rows of a file with their features."""
    models = [read_model(path) for path in paths]
    widths = [model.learned.n_features_in_ for model in models]
    if len({*widths}) > 1:
        widths_by_path = (f"{path} has {n}" for path, n in zip(paths, widths, strict=True))
        raise ValueError(
            f"the models have different numbers of features: {', '.join(widths_by_path)}; write a "
            "run of "
            "each by predict --run, and compare these"
        )
    names = models[0].names
    for path, loaded in zip(paths, models, strict=True):
        if loaded.names is not None and names is not None and loaded.names != names:
            raise ValueError(
                f"{paths[0]} and {path} have features of different names: compare models of the "
                "same features"
            )
    layout = replace(
        layout,
        features=widths[0],
        feature_names=names,
        known_categories=models[0].categories,
        expected=str(paths[0]),
    )
    with progress_bar(quiet) as bar:
        rows = read(data, layout, bar)
    for loaded in models:
        rows.check_values(loaded.learner, loaded.takes_nan)
        if is_frame(rows.X):
            loaded.restore_names()
    return models, rows
