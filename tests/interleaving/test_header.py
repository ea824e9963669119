"""rankcore_interleave.h without Python: it gives Python's lists and credits for the same seeds."""

import ctypes
import functools
import sys

import numpy as np
import pytest

import rankcore as rc
from rankcore._ext import interleave
from rankcore.interleaving import Balanced, Optimized, Probabilistic, TeamDraft
from test_c_header import C99, COMPILERS, SOURCES, STRICT, build, pytestmark, run  # noqa: F401


class Rankings(ctypes.Structure):
    _fields_ = [
        ("documents", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("n_rankings", ctypes.c_int32),
    ]


def loaded(path):
    library = ctypes.CDLL(str(path))
    library.probe_weights.argtypes = [ctypes.c_double, ctypes.c_int64, ctypes.c_void_p]
    library.probe_list.argtypes = [
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64,
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    library.probe_credit.argtypes = [
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
        ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    library.probe_pick.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint64]
    return library


@pytest.fixture(scope="module", params=COMPILERS)
def probe(request, tmp_path_factory):
    target = tmp_path_factory.mktemp("probe") / "interleave_probe.so"
    return loaded(build(request.param, SOURCES / "interleave_probe.c", target, "-shared", "-fPIC"))


def problems(rng, n):
    """Rankings of documents with large numbers, some shared, of unequal length."""
    for i in range(n):
        k = 2 if i % 2 else int(rng.integers(2, 7))
        pool = rng.permutation(2**62 - np.arange(20))
        yield [rng.permutation(pool)[: rng.integers(1, 15)].tolist() for _ in range(k)]


METHODS = [TeamDraft(), Balanced(), Probabilistic(), Probabilistic(2.5), Optimized()]


@functools.cache
def answers(number):
    """Python's lists and credits of a method, for the libraries of all compilers."""
    method, rng, found = METHODS[number], np.random.default_rng(1), []
    for rankings in problems(rng, 200):
        if isinstance(method, Balanced) and len(rankings) != 2:
            continue
        seed = int(rng.integers(2**64, dtype=np.uint64))
        # Of optimised lists Python draws from a plan.
        maker = TeamDraft() if isinstance(method, Optimized) else method
        shown = maker.interleave(rankings, length=10, seed=seed)
        n = len(shown.documents)
        clicks = (rng.random(n) < 0.3) * rng.random(n)
        found.append((rankings, seed, shown, clicks, method.credit(shown, clicks)))
    return found


@pytest.mark.parametrize("number", range(len(METHODS)), ids=map(repr, METHODS))
def test_lists_and_credits_equal_those_of_python(probe, number):
    method, made = METHODS[number], 0
    code = [TeamDraft, Balanced, Probabilistic, Optimized].index(type(method))
    for rankings, seed, expected, clicks, credits in answers(number):
        documents, n = np.concatenate(rankings), len(expected.documents)
        offsets = np.cumsum([0, *map(len, rankings)], dtype=np.int64)
        R = Rankings(documents.ctypes.data, offsets.ctypes.data, len(rankings))
        weights = np.empty(15)
        probe.probe_weights(getattr(method, "tau", 3.0), 15, weights.ctypes.data)
        room = np.full(interleave.n_room(offsets) + 1, 7.5)
        shown, owners = np.full(11, -7, np.int64), np.full(11, -7, np.int32)
        length = probe.probe_list(
            code, ctypes.addressof(R), weights.ctypes.data, 10, seed, room.ctypes.data,
            shown.ctypes.data, owners.ctypes.data,
        )  # fmt: skip
        assert shown[length:].tolist() == owners[length:].tolist() == [-7] * (11 - length)
        assert room[-1] == 7.5  # nothing is written behind the last
        if code < 3:
            assert shown[:length].tolist() == expected.documents
            assert owners[:length].tolist() == expected.owners.tolist()
        else:
            shown[:n] = expected.documents
        credit = np.full(len(rankings) + 1, np.nan)
        code_of_credit = probe.probe_credit(
            code, ctypes.addressof(R), weights.ctypes.data, shown.ctypes.data, owners.ctypes.data,
            clicks.ctypes.data, n, room.ctypes.data, credit.ctypes.data,
        )  # fmt: skip
        assert code_of_credit == 0
        assert np.isnan(credit[-1])
        assert credit[:-1].tobytes() == credits.tobytes()
        made += n > 3
    assert made > 50


BAD = -1


@pytest.mark.parametrize("number", [0, 65, 1000])
@pytest.mark.parametrize("code", range(4))
def test_credit_rejects_too_many_rankings(probe, code, number):
    documents, offsets = np.arange(number + 1), np.arange(number + 1)
    R = Rankings(documents.ctypes.data, offsets.ctypes.data, number)
    weights, clicks, credit = np.ones(1), np.ones(1), np.full(number + 1, np.nan)
    shown, owners, room = np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(5 * number + 5)
    found = probe.probe_credit(
        code, ctypes.addressof(R), weights.ctypes.data, shown.ctypes.data, owners.ctypes.data,
        clicks.ctypes.data, 1, room.ctypes.data, credit.ctypes.data,
    )  # fmt: skip
    assert found == BAD
    assert np.isnan(credit).all()


def test_draws_of_a_plan_equal_those_of_python(probe):
    plan = Optimized().plan([[1, 2, 3, 4], [3, 1, 5, 2]])
    cumulative = np.cumsum(plan.probabilities)
    for seed in range(200):
        i = probe.probe_pick(cumulative.ctypes.data, len(cumulative), seed)
        assert plan.lists[i] == plan.draw(seed).documents


def test_numbers_out_of_range_are_rejected(probe):
    documents, offsets = np.arange(4), np.array([0, 2, 4], np.int64)
    shown, owners = np.empty(5, np.int64), np.empty(5, np.int32)
    for n_rankings, length, bad in [
        (0, 3, {0, 1, 2, 3}), (65, 3, {0, 1, 2, 3}), (2, -1, {0, 1, 2, 3}), (1, 2, {1}), (2, 0, ())
    ]:  # fmt: skip
        R = Rankings(documents.ctypes.data, offsets.ctypes.data, n_rankings)
        for code in range(4):
            if code in bad:
                found = probe.probe_list(
                    code, ctypes.addressof(R), None, length, 1, None, shown.ctypes.data,
                    owners.ctypes.data,
                )  # fmt: skip
                assert found == -1


def test_header_needs_no_python_and_writes_to_no_other_memory(tmp_path):
    done = run("cc", *C99, "-M", f"-I{rc.get_include()}", SOURCES / "interleave_probe.c")
    assert done.returncode == 0, done.stderr
    assert "rankcore_random.h" in done.stdout
    assert "Python.h" not in done.stdout


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the numbers are those of 64-bit platforms")
def test_layout_is_frozen(tmp_path):
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stddef.h>\n#include <stdio.h>\n#include "rankcore_interleave.h"\n'
        "int main(void) {\n"
        '    printf("%d %d %d %d\\n", (int)sizeof(rc_rankings),\n'
        "           (int)offsetof(rc_rankings, documents), (int)offsetof(rc_rankings, offsets),\n"
        "           (int)offsetof(rc_rankings, n_rankings));\n"
        '    printf("%d %d %d %d\\n", RC_INTERLEAVE_BAD, RC_INTERLEAVE_MAX_RANKINGS,\n'
        "           RC_CREDIT_INVERSE, RC_CREDIT_NEGATIVE);\n"
        "    return 0;\n}\n"
    )
    command = ["cc", *C99, *STRICT, f"-I{rc.get_include()}", source, "-o", tmp_path / "layout"]
    assert run(*command, "-lm").returncode == 0
    # A compiled program has these numbers built in: lines may be added, never edited.
    assert run(tmp_path / "layout").stdout == "24 0 8 16\n-1 64 0 1\n"
