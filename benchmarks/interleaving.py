"""Interleaved lists of ten documents in C and in Python.

    python -m benchmarks interleaving

Two rankings of ten documents, half of them in common; a list for each seed, and its credit for two
clicks. C is a loop over `rankcore_interleave.h`, compiled with -O2.
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, sized
from rankcore.interleaving import Balanced, Optimized, Probabilistic, TeamDraft

N, N_PYTHON = sized(1_000_000, 10_000), sized(2000, 20)
SOURCE = """
#include "rankcore_interleave.h"
int64_t timed(int32_t method, const rc_rankings *R, const double *weights, int64_t n)
{
    int64_t shown[10], sum = 0;
    int32_t owners[10], length;
    uint8_t taken[20];
    double clicks[10] = {0, 1, 0, 0, 1}, credit[2];
    for (int64_t i = 0; i < n; i++) {
        if (method == 0)
            length = rc_interleave_team_draft(R, 10, (uint64_t)i, shown, owners);
        else if (method == 1)
            length = rc_interleave_balanced(R, 10, (uint64_t)i, shown, owners);
        else if (method == 2)
            length = rc_interleave_probabilistic(R, weights, 10, (uint64_t)i, taken, shown, owners);
        else if (method == 3) {
            sum += rc_interleave_pick(weights, 10, (uint64_t)i);
            continue;
        } else if (method == 4) {
            rc_credit_owners(owners, clicks, 10, 2, credit);
            length = 0;
        } else {
            for (int32_t j = 0; j < 10; j++)
                shown[j] = R->documents[j];
            rc_credit_probabilistic(R, weights, shown, clicks, 10, taken, credit);
            sum += credit[0] > 1.0;
            continue;
        }
        sum += length + shown[9] + owners[9];
    }
    return sum;
}
"""


class Rankings(ctypes.Structure):
    _fields_ = [
        ("documents", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("n_rankings", ctypes.c_int32),
    ]


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    rng = np.random.default_rng(0)
    rankings = np.array([rng.permutation(10), rng.permutation(np.arange(5, 15))])
    offsets, weights = np.array([0, 10, 20]), 1 / np.arange(1.0, 11.0) ** 3
    R = Rankings(rankings.ctypes.data, offsets.ctypes.data, 2)
    cumulative = np.arange(1, 11) / 10
    with tempfile.TemporaryDirectory() as name:
        library = built(Path(name))
        for code, what in enumerate(
            ["team draft", "balanced", "probabilistic", "pick of a plan", "", "its credit"]
        ):
            if what:
                table = (cumulative if code == 3 else weights).ctypes.data_as(ctypes.c_void_p)
                arguments = code, ctypes.byref(R), table, ctypes.c_int64(N)
                seconds = min(once(library.timed, *arguments) for _ in range(repeat))
                print(f"C       {what:20} {seconds / N * 1e9:8.0f} ns")
    both = rankings.tolist()
    for method in [TeamDraft(), Balanced(), Probabilistic()]:

        def lists(method=method):
            for seed in range(N_PYTHON):
                method.interleave(both, seed=seed)

        seconds = min(once(lists) for _ in range(min(repeat, 3)))
        print(f"Python  {type(method).__name__:20} {seconds / N_PYTHON * 1e9:8.0f} ns")
    seconds = min(once(Optimized().plan, both) for _ in range(repeat))
    print(f"Python  {'plan of Optimized':20} {seconds * 1e9:8.0f} ns")


def built(folder):
    source, target = folder / "timed.c", folder / "timed.so"
    source.write_text(SOURCE)
    flags = ["-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, f"-I{rc.get_include()}", "-o", target, source, "-lm"], check=True)
    return ctypes.CDLL(str(target))


def once(function, *arguments):
    start = process_time()
    function(*arguments)
    return process_time() - start
