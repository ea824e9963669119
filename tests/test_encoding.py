"""Labels to ranks and back: every dtype, near and far from each other."""

import numpy as np
import pytest

import rankcore._core.labels as labels_module
from rankcore._core.labels import encode, find_classes

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def cases():
    rng = np.random.default_rng(0)
    for dtype in INTEGERS:
        low, high = (int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        for pool in ([low, low + 1, low + 3], [high - 2, high], [low, high], [1, 2, 5, 100]):
            yield rng.choice(np.array(pool, dtype=dtype), 50)
    yield rng.random(50) < 0.5
    yield rng.choice([0.5, 1.0, -3.0], 50)
    yield rng.choice([1e300, -1e300], 50)
    yield rng.choice(np.array(["2020-01-01", "2021-05-05"], dtype="M8[D]"), 50)


@pytest.mark.parametrize("labels", list(cases()), ids=lambda labels: f"{labels.dtype}-{labels[0]}")
@pytest.mark.parametrize("block", [7, 8192])
def test_ranks_are_places_in_sorted_order(labels, block, monkeypatch):
    monkeypatch.setattr(labels_module, "LABEL_BLOCK", block)
    expected, places = np.unique(labels, return_inverse=True)
    found = find_classes(labels)
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(encode(labels, found), places)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_labels_outside_the_classes_are_named(dtype):
    classes = np.array([3, 5, 6], dtype=dtype)
    for odd in (2, 4, 7, 100, int(np.iinfo(dtype).max), int(np.iinfo(dtype).min)):
        for others in ([5], [5, 5, 5, 5]):
            labels = np.array([3, 6, odd, *others], dtype=dtype)
            with pytest.raises(ValueError, match=f"the label {odd} at row 2"):
                encode(labels, classes)


def test_classes_may_have_another_dtype_or_order():
    labels = np.array([3, -1, 7], dtype=np.int8)
    assert encode(labels, np.array([7, 3, -1])).tolist() == [1, 2, 0]
    assert encode(labels, np.array([-1.0, 3.0, 7.0])).tolist() == [1, 0, 2]
    assert encode(labels.astype(float), np.array([-1, 3, 7])).tolist() == [1, 0, 2]
    assert encode(np.array([2**64 - 1, 5], dtype=np.uint64), np.array([5, 2**64 - 1])).size == 2
    with pytest.raises(ValueError, match="not among"):
        encode(np.array([2**64 - 1], dtype=np.uint64), np.array([-1, 0]))
    assert encode(np.array(["b", "a"]), np.array(["b", "a"])).tolist() == [0, 1]
