"""Thresholds of binned columns: those of memory and those of groups, against the plain rule."""

import numpy as np
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankcore._core.inputs import as_rows
from rankcore.boosting._binning import Binning
from rankcore.boosting._streamed_bins import ValueGroups
from reference import bins as plain
from strategies import examples


def thresholds(binning):
    return [binning.threshold(0, b) for b in range(1, int(binning.n_bins[0]))]


@st.composite
def columns(draw):
    """Values of one or both signs, tied or not, some of them neighbours in float32."""
    value = draw(
        st.sampled_from(
            [
                st.integers(-6, 6),
                st.integers(-2, 20),
                st.integers(-20, 2),
                st.sampled_from([-2.0, -1.0 - 2**-40, -1.0, 1.0, 1.0 + 2**-40, 1.0 + 2**-20]),
                st.floats(-1e30, 1e30),
            ]
        )
    )
    return [float(x) for x in draw(st.lists(value, min_size=1, max_size=60))]


@given(columns(), st.integers(2, 9))
@example([-1.0] + [float(x) for x in range(1, 10)], 4)  # a share below 1 of the negative values
@example([-2.0, -1.0, 0.0, 1.0, 2.0], 2)  # two bins for three signs
@example([-2.0, -1.0, 1.0, 2.0], 2)
@settings(max_examples=examples(300), deadline=None)
def test_thresholds_equal_the_plain_rule(column, max_bins):
    X = np.array(column)[:, None]
    expected = plain.thresholds(column, max_bins)
    for form in (X, sp.csr_array(X)):
        rows, taken = as_rows(form), np.arange(len(column))
        assert thresholds(Binning(rows, taken, max_bins, False)) == expected
        assert thresholds(ValueGroups.of(rows, taken).edges(max_bins, False)) == expected
