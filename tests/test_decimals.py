"""Decimal text: the nearest doubles, and exactly the texts that Python calls numbers."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letor_rows import load, same_bits
from strategies import examples

pytestmark = pytest.mark.kernel

DTYPES = [np.float32, np.float64]


def numbers(words, dtype=np.float64):
    text = b"".join(b"0 1:%b\n" % word for word in words)
    return load(text, dtype=dtype, ensure_all_finite=False).X.data


DIGITS = st.text("0123456789", max_size=30)


@st.composite
def decimals(draw):
    """Texts of numbers, of any length and size."""
    whole, fraction = draw(DIGITS), draw(DIGITS)
    point = draw(st.sampled_from(["", "."])) if whole or fraction else ""
    if not whole and not (point and fraction):
        whole = "0"
    exponent = draw(
        st.one_of(
            st.just(""),
            st.builds(
                "{}{}{:d}".format,
                st.sampled_from("eE"),
                st.sampled_from(["", "+", "-"]),
                st.integers(0, 400),
            ),
        )
    )
    sign = draw(st.sampled_from(["", "+", "-"]))
    return f"{sign}{whole}{point}{fraction if point else ''}{exponent}".encode()


def halfway(double, digits, nudge):
    """Return the point between a double and the next one, in so many digits, or a bit beside it."""
    middle = (Fraction(double) + Fraction(math.nextafter(double, math.inf))) / 2
    exponent = math.floor(math.log10(double or 5e-324)) - digits + 1
    scaled = middle / Fraction(10) ** exponent
    return f"{round(scaled) + nudge}e{exponent}".encode()


@given(words=st.lists(decimals(), min_size=1, max_size=50))
@settings(max_examples=examples(300), deadline=None)
def test_numbers_are_the_nearest_doubles(words):
    expected = np.array([float(word) for word in words])
    assert same_bits(numbers(words), expected)
    with np.errstate(over="ignore"):
        assert same_bits(numbers(words, np.float32), expected.astype(np.float32))


@given(
    double=st.floats(min_value=0, max_value=1.79e308),
    digits=st.sampled_from([1, 15, 16, 17, 18, 19, 20, 21, 25, 40, 300, 800]),
    nudge=st.integers(-1, 1),
)
@settings(max_examples=examples(300), deadline=None)
def test_numbers_half_way_between_doubles_round_to_even(double, digits, nudge):
    words = [halfway(double, digits, nudge), repr(double).encode(), b"%.40e" % double]
    assert same_bits(numbers(words), np.array([float(word) for word in words]))


def test_random_numbers_are_read_as_by_python():
    draw = random.Random(0)
    words = [
        b"%.*e" % (draw.randrange(22), draw.random() * 10.0 ** draw.randrange(-330, 308))
        for _ in range(100_000)
    ]
    words += [b"%d" % draw.getrandbits(draw.randrange(1, 100)) for _ in range(20_000)]
    words += [repr(draw.gauss(0, 1)).encode() for _ in range(50_000)]
    assert same_bits(numbers(words), np.array([float(word) for word in words]))


@pytest.mark.parametrize(
    "word",
    [
        "0", "-0", "+0", "0.0", ".0", "-.0", "0.", "1.", ".5", "00012", "1e5", "1E5", "1e+5",
        "1e0000000000000000005", "0e999999999999999999", "-0e-99999", "1e99999999999999999999",
        "1e-99999999999999999999", "9007199254740992", "9007199254740993", "9007199254740993.0",
        "9007199254740992.99999999999999999999999", "9007199254740993.00000000000000000000000001",
        "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308",
        "2.2250738585072014e-308", "2.2250738585072011e-308", "4.9e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "7.4109846876186981626e-324", "9999999999999999999",
        "18446744073709551615", "18446744073709551616", "12345678", "1234567.8", "0.12345678",
        "1" * 400, "0." + "0" * 400 + "1", "1" + "0" * 400 + "e-400", "0" * 400 + "7", "1e22",
        "1e23", "1e-5", "8.5e22", "123456789012345678e-340", "6929495644600919.5",
        "3.5028234666e38", "1e-46", "inf", "-inf", "+Infinity", "INF", "nan", "NaN", "-nan",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_and_unusual_numbers_are_read_as_by_python(word, dtype):
    with np.errstate(over="ignore"):
        expected = np.array([float(word)]).astype(dtype)
    assert same_bits(numbers([word.encode()], dtype), expected)
    label = load(f"{word} 1:1\n".encode(), ensure_all_finite=False).y
    assert same_bits(label, np.array([float(word)]))


@given(
    word=st.one_of(
        st.binary(min_size=1, max_size=12),
        st.text("0123456789+-.eExinfaty_", min_size=1).map(str.encode),
    )
)
@settings(max_examples=examples(300), deadline=None)
def test_accepted_numbers_equal_those_of_python(word):
    # Python's float() takes besides these what no other reader does: spaces and underscores.
    if set(word) & set(b" \t\n\r\v\f#\0"):
        return
    try:
        expected = None if b"_" in word else float(word)
    except ValueError:
        expected = None
    if expected is None:
        with pytest.raises(ValueError, match="line 1: cannot read"):
            numbers([word])
    else:
        assert same_bits(numbers([word]), np.array([expected]))
