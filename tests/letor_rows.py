"""Rows of a LETOR file, and their comparison."""

import io

from rankcore.datasets import load_letor


def load(text, **options):
    """Return the rows of a text."""
    return load_letor(io.BytesIO(text), **options)


def same_bits(found, expected):
    """Whether arrays are equal to the bit; any NaN equals any other."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    same = found.view(f"u{found.itemsize}") == expected.view(f"u{found.itemsize}")
    return (same | ((found != found) & (expected != expected))).all()


def assert_rows(data, X, y, qid=()):
    """Fail unless a result is what scikit-learn's reader gives, to the bit."""
    assert same_bits(data.y, y)
    assert (data.qid is None) == (len(qid) == 0)
    if data.qid is not None:
        assert data.qid.dtype == qid.dtype
        assert data.qid.tolist() == qid.tolist()
    assert data.X.shape == X.shape
    assert same_bits(data.X.data, X.data)
    assert (data.X.indices == X.indices).all()
    assert (data.X.indptr == X.indptr).all()
