"""Data shared by the tests of measures of pairs."""

import numpy as np
from hypothesis import strategies as st

# One rounded division of exact counts.
ONE_ROUNDING = 2**-52


@st.composite
def judged(draw, max_size=40):
    """Labels and scores with many ties, zeros of both signs and numbers next to each other."""
    n = draw(st.integers(1, max_size))
    labels = st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0, 2.5])
    near = [1.0, 1.0 + 2**-52, 5e-324, -3e-300]
    scores = st.sampled_from([-0.0, 0.0, -1.0, 0.5, 7.25, *near]) | st.integers(-2000, 2000)
    return (
        draw(st.lists(labels, min_size=n, max_size=n)),
        [float(x) for x in draw(st.lists(scores, min_size=n, max_size=n))],
    )


def hard_scores(rng, n):
    """Scores that buckets might get wrong: tied, one heavy value, spread, outliers, in order."""
    normal = rng.normal(size=n)
    yield normal
    yield rng.integers(0, 5, n).astype(float)
    yield np.where(rng.random(n) < 0.7, 0.25, normal)
    yield np.exp(rng.normal(size=n) * 100)
    yield np.concatenate([normal[1:] * 1e-300, [1e300]])
    yield np.concatenate([normal[: n // 2], np.abs(normal[n // 2 :]) * 1e307])
    yield 5e-324 * rng.integers(0, 10**6, n)
    yield np.sort(normal)[::-1].copy()
    yield np.full(n, -0.0)
    yield np.where(normal > 0, 0.0, -0.0)
    yield normal.astype(np.float32)
    yield rng.integers(-(2**40), 2**40, n)
