"""Random generators in model files: each as it was, and nothing that NumPy would trip over."""

import json

import numpy as np
import pytest

from rankcore._core.random_state import KINDS, decode_generator, encode_generator


def generators():
    for kind in KINDS:
        bits = getattr(np.random, kind)
        yield np.random.Generator(bits(5))
        yield np.random.RandomState(bits(5))


def named(generator):
    return repr(generator).split(" at ")[0]


@pytest.mark.parametrize("generator", list(generators()), ids=named)
def test_generators_come_back_as_they_were(generator):
    generator.standard_normal(size=3)
    generator.bytes(5)  # half of a 64-bit number is left over
    written = json.loads(json.dumps(encode_generator(generator)))
    again = decode_generator(written)
    assert type(again) is type(generator)
    assert encode_generator(again) == written
    np.testing.assert_array_equal(again.standard_normal(7), generator.standard_normal(7))


def leaves(value, path=()):
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, list):
        yield path, value
        yield (*path, 0), value[0]
        yield (*path, len(value) - 1), value[-1]
    else:
        yield path, value


HOSTILE = [
    -1,
    10**8,
    1000,
    625,
    5,
    2**32,
    2**64,
    2**128,
    10**4000,
    1.5,
    None,
    True,
    "1",
    [],
    {},
    [1],
]
VALID = {
    "pos": range(625),
    "buffer_pos": range(5),
    "has_uint32": range(2),
    "has_gauss": range(2),
}


@pytest.mark.parametrize("generator", list(generators()), ids=named)
def test_every_field_of_every_generator_is_checked(generator):
    written = encode_generator(generator)
    for path, value in leaves(written):
        for hostile in HOSTILE:
            edited = json.loads(json.dumps(written))
            part = edited
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = hostile
            try:
                made = decode_generator(edited)
            except (ValueError, TypeError):
                continue
            # What is accepted is a possible value of that field, and the generator works with it.
            assert type(hostile) in (type(value), int, float), (path, hostile)
            assert hostile in VALID.get(path[-1], [hostile]), (path, hostile)
            made.standard_normal(1000)
            encode_generator(made)


@pytest.mark.parametrize("part", ["random", "bit_generator", "state"])
def test_a_missing_or_unknown_part_is_refused(part):
    written = encode_generator(np.random.default_rng(0))
    with pytest.raises((ValueError, KeyError)):
        decode_generator({name: value for name, value in written.items() if name != part})
    with pytest.raises(ValueError, match="not one of|must be|must have"):
        decode_generator({**written, part: "Generator of mine"})


def test_states_that_repeat_one_number_for_ever_are_refused():
    twister = encode_generator(np.random.Generator(np.random.MT19937(0)))
    twister["state"]["state"]["key"] = [2**31 - 1] + [0] * 623  # only its highest bit counts
    with pytest.raises(ValueError, match="only zeros"):
        decode_generator(twister)
    for kind in ["PCG64", "PCG64DXSM"]:
        pcg = encode_generator(np.random.Generator(getattr(np.random, kind)(0)))
        pcg["state"]["state"] = {"state": 0, "inc": 0}
        with pytest.raises(ValueError, match="must be odd"):
            decode_generator(pcg)
