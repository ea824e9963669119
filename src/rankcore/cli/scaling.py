"""Features on one scale: what ``rankcore train --scale`` puts before a learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rankcore.cli.registry import Learner

SCALES = ("none", "auto", "standard", "maxabs")
ScaleOption = Annotated[
    str,
    typer.Option(
        help="Put features on one scale, and keep how with the model: standard (mean 0, "
        "deviation 1), maxabs (greatest magnitude 1), auto (which of them suits), or none."
    ),
]
# Learners that cut features at thresholds, whatever their scale.
INDIFFERENT = ("RankBoost", "BipartiteRankBoost")
# Where at least this share of the values is stored, centring costs no memory to speak of.
DENSE = 0.5


def check_scale(scale: str) -> None:
    """Raise for a scale that there is not."""
    if scale not in SCALES:
        raise typer.BadParameter(f"{scale!r} is none of {', '.join(SCALES)}", param_hint="--scale")


def scaler_for(scale: str, learner: Learner, X: Any) -> Any:
    """The scaler that an option asks for, or None.

    Parameters
    ----------
    scale : {"none", "auto", "standard", "maxabs"}
        "auto" standardises features that are mostly stored, and divides others by their greatest
        magnitude if they differ by orders of magnitude.
    learner : Learner
    X : scipy sparse matrix, or RowBlocks

    Returns
    -------
    StandardScaler, MaxAbsScaler or None
    """
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    from rankcore._core.inputs import as_rows
    from rankcore._core.scales import sizes_differ
    from rankcore._core.sources import RowBlocks
    from rankcore._core.survey import facts_of

    if scale == "none" or (scale == "auto" and learner.estimator in INDIFFERENT):
        return None
    known = X.facts() if isinstance(X, RowBlocks) else facts_of(as_rows(X), False)
    dense = known.n_values >= DENSE * known.n_rows * known.n_features
    if scale == "auto":
        scale = "maxabs" if sizes_differ(known.magnitudes) else "none"
        scale = "standard" if dense else scale
    if scale == "standard":
        return StandardScaler(with_mean=dense)
    return MaxAbsScaler() if scale == "maxabs" else None


def scaled(scaler: Any, X: Any, *, fit: bool = False) -> Any:
    """Rows as a scaler leaves them, fitted to them if asked for; dense where it centres."""
    from rankcore.datasets.scaled_rows import as_it_takes

    rows = as_it_takes(scaler, X)
    return scaler.fit_transform(rows) if fit else scaler.transform(rows)


def scale_fact(scaler: Any) -> dict[str, str]:
    """What was chosen, if anything was."""
    if scaler is None:
        return {}
    return {"scale": "maxabs" if type(scaler).__name__ == "MaxAbsScaler" else "standard"}
