"""Validated conversion of random generators to plain numbers and back.

NumPy does not validate states: an invalid position makes it read outside a buffer, and some states
repeat one number forever.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Maximum of each integer of a state; the minimum is 0. A name in two generators has the same limit
# in both.
LIMITS = {
    "has_uint32": 1,
    "uinteger": 2**32 - 1,
    "has_gauss": 1,
    "pos": 624,
    "buffer_pos": 4,
    "inc": 2**128 - 1,
    "state": 2**128 - 1,
}
KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def encode_generator(generator: np.random.Generator | np.random.RandomState) -> dict[str, Any]:
    """Encode one of NumPy's generators as numbers, lists, strings and dicts."""
    state: Any
    if isinstance(generator, np.random.RandomState):
        state = generator.get_state(legacy=False)
    else:
        state = generator.bit_generator.state
    if state["bit_generator"] not in KINDS:
        raise TypeError(f"its bit generator {state['bit_generator']} is not one of NumPy's")
    return {
        "random": type(generator).__name__,
        "bit_generator": state["bit_generator"],
        "state": _as_lists(state),
    }


def decode_generator(written: dict[str, Any]) -> np.random.Generator | np.random.RandomState:
    """Restore a generator from the result of `encode_generator`.

    Raises ValueError, KeyError or TypeError if a field is missing, unknown, of the wrong type or
    shape or out of range, or if no seed leads to the state.
    """
    kind = written["bit_generator"]
    if kind not in KINDS:
        raise ValueError(f"its bit generator {kind!r} is not one of NumPy's")
    bits = getattr(np.random, kind)()
    if written["random"] not in ("RandomState", "Generator"):
        raise ValueError(f"its generator {written['random']!r} is not one of NumPy's")
    legacy = np.random.RandomState(bits) if written["random"] == "RandomState" else None
    form = bits.state if legacy is None else legacy.get_state(legacy=False)
    state = _checked(written["state"], form, "state")
    inner = state["state"]
    if kind.startswith("PCG64") and inner["inc"] % 2 == 0:
        raise ValueError("the increment of a PCG64 must be odd")
    if kind == "MT19937" and not (inner["key"][0] & 2**31 or inner["key"][1:].any()):
        raise ValueError("a Mersenne Twister of zeros makes only zeros")
    if legacy is not None:
        legacy.set_state(state)
        return legacy
    bits.state = state
    return np.random.Generator(bits)


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_lists(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def _checked(value: Any, form: Any, name: str) -> Any:
    """Validate and convert a part of a state by that of a new generator."""
    if isinstance(form, dict):
        if not isinstance(value, dict) or value.keys() != form.keys():
            raise ValueError(f"the {name} of a random generator must have {sorted(form)}")
        return {part: _checked(value[part], form[part], part) for part in form}
    if isinstance(form, np.ndarray):
        limit = int(np.iinfo(form.dtype).max)
        if not isinstance(value, list) or len(value) != form.size:
            raise ValueError(f"the {name} of a random generator must be {form.size} integers")
        return np.array([_integer(item, name, limit) for item in value], dtype=form.dtype)
    if isinstance(form, str):
        if value != form:
            raise ValueError(f"the {name} of a random generator must be {form!r}; found {value!r}")
        return value
    if isinstance(form, float):
        if type(value) not in (float, int) or not abs(value) < 100:  # a normal variate
            raise ValueError(f"the {name} of a random generator must be a number from -100 to 100")
        return float(value)
    return _integer(value, name, LIMITS[name])


def _integer(value: Any, name: str, limit: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        raise ValueError(
            f"the {name} of a random generator must be an integer from 0 to {limit}; found "
            f"{value!r:.60}"
        )
    return value
