"""Standardised rows of linear learners: units from the moments of rows, for fits and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankcore._core.labels import encode
from rankcore._core.numbers import power_of_two
from rankcore._core.scales import warn_of_vanishing
from rankcore._core.sources import Source
from rankcore._core.standardization import Moments, Units
from rankcore.ordinal.scale import fix_scale, forget_scale

# Type of the parameter ``standardize``.
Standardize = Literal["auto", False]

# First rows of a stream. Their deviations are so uncertain that weights stay the same numbers when
# units change: converted from a unit that was a hundredth of the right one, a weight would be a
# hundred times too large. Automatic scales and margins follow the moments, and are fixed then.
FIRST_ROWS = 16
# Rows of a stream after which those that are left alone are left alone for good, so that the
# moments of many columns need neither time nor memory.
DECIDED_ROWS = 64
# A deviation that grows by more than this was that of rows that hardly moved. A weight keeps its
# number then, for the same reason as in the first rows.
MOST_GROWTH = 1.1
# Weights of rows up to which their products with squares of usual values do not overflow; larger
# ones are relative to the largest.
LARGEST_WEIGHT = 1e100


def moments_of(model: Any) -> Moments:
    """Return the moments of a model, which share its arrays."""
    return Moments(model.n_features, model["column_moments"], model["column_totals"])


def units_of(model: Any, moments: Moments) -> Units:
    """Return the units of a model for rows with these moments."""
    return moments.units(centered=model.settings.get("fit_intercept", True))


def change_units(learner: Any, model: Any, moments: Moments, *, first: bool) -> None:
    """Change a model to the units of moments.

    With ``first``, it has learned few rows, and automatic constants follow the moments.
    """
    n = moments.n_rows
    if moments.sparse and not model.rows_change and not (first and n & (n - 1) == 0):
        return  # rows are left alone, as before
    units = units_of(model, moments)
    if n < DECIDED_ROWS and not (model.rows_change or units.are_raw):
        model.restart()  # weights of rows left alone have the size of their values
    if not first:
        center, deviation = model["units"].copy()
        grown = units.deviation > MOST_GROWTH * deviation
        if grown.any():
            center[grown], deviation[grown] = units.center[grown], units.deviation[grown]
            model.set_units(center, deviation)
        model.refold(units.center, units.deviation)
        return
    if model.rows_change or not units.are_raw:
        model.set_units(units.center, units.deviation)
    forget_scale(model)
    fix_scale(
        model,
        learner,
        lambda: power_of_two(moments.mean_square(units)),
        lambda: float(moments.totals[2] / (moments.totals[0] * model.n_features)),
    )
    model.derive()


def renew_units(learner: Any, model: Any) -> None:
    """Change a model on a stream to the units of all rows up to the next one."""
    moments = moments_of(model)
    n = moments.n_rows
    if n >= FIRST_ROWS and n & (n - 1) == 0 and not moments.sparse:
        warn_of_vanishing(moments.vanishing().tolist(), None, type(learner).__name__)
    learner._change_units(model, moments, first=n <= FIRST_ROWS)
    if moments.sparse and moments.n_rows >= DECIDED_ROWS:
        model.leave_alone()


def standardize_fit(
    model: Any,
    learner: Any,
    source: Source,
    classes: NDArray[Any],
    of_rows: NDArray[np.float64] | None,
    of_classes: NDArray[np.float64] | None,
    known: bool,
) -> None:
    """Set the units of a new model by all rows of a fit, with their weights, in one pass.

    ``known`` is whether the source has statistics of its rows.
    """
    if not model.standardizes:
        return
    if known and source.known_sparse():
        model.leave_alone()
        return
    moments = Moments(model.n_features)
    if of_rows is not None and of_rows.max() > LARGEST_WEIGHT:
        of_rows = of_rows / of_rows.max()
    for window in source.windows(model.n_features, None):
        weights = of_rows
        if of_classes is not None:
            weights = of_classes[encode(window.labels, classes)]
        moments.add(window.rows, weights)
    standardize_by(model, learner, moments, source.names)


def standardize_by(
    model: Any, learner: Any, moments: Moments, names: Sequence[str] | None = None
) -> None:
    """Set the units of a new model from the moments of a fit's rows, or leave rows as they are.

    ``names`` are those of columns, for warnings.
    Raises ValueError if values are so large that their squares overflow.
    """
    if not moments.finite:
        raise ValueError(f"the squares of the values of X overflowed: {learner._overflow_hint}")
    if moments.sparse:
        model.leave_alone()
        return
    warn_of_vanishing(moments.vanishing().tolist(), names, type(learner).__name__)
    model["column_moments"][...], model["column_totals"][...] = moments.columns, moments.totals
    learner._change_units(model, moments, first=True)


def unite_units(models: Sequence[Any], base: Any) -> None:
    """Change models that continued ``base``, and ``base``, to the units of all their rows."""
    every = [*models, base]
    if not base.standardizes:
        return
    if not all(model.has_units for model in every):
        for continued in every:
            if continued.has_units:
                continued.leave_alone()
        return
    before, moments = moments_of(base).copy(), moments_of(base).copy()
    for continued in models:
        moments.combine(moments_of(continued).copy().combine(before, sign=-1))
    units = units_of(base, moments)
    for continued in every:
        continued.refold(units.center, units.deviation)
        continued["column_moments"][...], continued["column_totals"][...] = (
            moments.columns,
            moments.totals,
        )
