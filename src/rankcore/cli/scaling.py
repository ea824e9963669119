"""Scales of features, for train, cv and tune."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.learning import named_values
from rankcore.cli.registry import Learner

if TYPE_CHECKING:
    from rankcore.cli.rows import Rows


class Scale(StrEnum):
    """Ways to put features on one scale."""

    NONE = "none"
    AUTO = "auto"
    STANDARD = "standard"
    MAXABS = "maxabs"


ScaleOption = Annotated[
    Scale,
    typer.Option(
        help="Put features on one scale, and store the scaler with the model: standard (mean 0, "
        "deviation 1), maxabs (maximum magnitude 1), auto (chosen by the data), or none."
    ),
]
# If at least this share of the values is stored, centring costs little memory.
DENSE = 0.5


def scaler_for(scale: Scale, learner: Learner, X: Any) -> Any:
    """Make the scaler of an option, or None, for a matrix or rows on disk.

    ``auto`` standardises features that are mostly stored, and divides others by their maximum
    magnitude if they differ by orders of magnitude.
    """
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    from rankcore._core.inputs import as_rows
    from rankcore._core.scales import rows_differ, sizes_differ
    from rankcore._core.sources import DatasetStats, RowBlocks

    if scale is Scale.NONE or (scale is Scale.AUTO and learner.scale_invariant):
        return None
    rows_or_stats = X.stats() if isinstance(X, RowBlocks) else as_rows(X)
    dense = rows_or_stats.n_values >= DENSE * rows_or_stats.n_rows * rows_or_stats.n_features
    if scale is Scale.STANDARD or (scale is Scale.AUTO and dense):
        return StandardScaler(with_mean=dense)
    differ = (
        sizes_differ(rows_or_stats.magnitudes)
        if isinstance(rows_or_stats, DatasetStats)
        else rows_differ(rows_or_stats)
    )
    return MaxAbsScaler() if scale is Scale.MAXABS or differ else None


def on_scale(scale: Scale, learner: Learner, rows: Rows, *others: Rows) -> tuple[Any, list[Rows]]:
    """Fit a scaler to rows; return it, or None, and these and other rows, scaled."""
    from rankcore.datasets.scaled_rows import ScaledRows, as_it_takes, fit_scaler

    for part in (rows, *others):
        part.check_values(learner.estimator, learner.scale_invariant)
    scaler = scaler_for(scale, learner, rows.X)
    if scaler is None:
        return None, [rows, *others]
    if rows.on_disk:
        with named_values(learner, rows):
            fit_scaler(scaler, rows.X)
    else:
        scaler.fit(as_it_takes(scaler, rows.X))
    in_memory = others if rows.on_disk else (rows, *others)
    # Before rows on disk, which give the scaler feature names.
    scaled = [replace(part, X=scaler.transform(as_it_takes(scaler, part.X))) for part in in_memory]
    if rows.on_disk:
        scaled.insert(0, replace(rows, X=ScaledRows(rows.X, scaler)))
    return scaler, scaled


def scale_fact(scaler: Any) -> dict[str, str]:
    """Return the scale that was chosen, if any."""
    if scaler is None:
        return {}
    return {"scale": "maxabs" if type(scaler).__name__ == "MaxAbsScaler" else "standard"}
