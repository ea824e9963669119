"""Learners that limit the threads of BLAS, which all fits of a process share."""

import os
import subprocess
import sys
from pathlib import Path

import rankcore

# In a process of its own, whose main thread sets no limit: threadpoolctl lets only the first
# thread that does change the limit of OpenBLAS, as long as that thread lives.
OVERLAPPING = """
import sys, time, warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
import numpy, scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits
from declared import LEARNERS, declaration_of, first_of_each, fitted
from rankcore._core.threads import one_blas_thread

warnings.simplefilter("ignore")
limit, limits = ThreadpoolController.limit, []

def slow_limit(self, **kwargs):
    limits.append(limit(self, **kwargs))
    time.sleep(0.02)  # others begin meanwhile
    return limits[-1]

def threads_of_blas():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

def in_two_threads(job):
    barrier = Barrier(2)  # a thread that is ready first does not do both jobs

    def guarded(delay):
        barrier.wait()
        time.sleep(delay)
        job()
        barrier.wait()  # the first thread still lives when the second one leaves

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(guarded, [0, 0.01]))

def overlap():
    first_is_inside, second_is_inside, first_left, done = (Event() for _ in range(4))

    def first():
        with one_blas_thread():
            first_is_inside.set()
            second_is_inside.wait()
            print("inside", True, threads_of_blas() == {1})
        first_left.set()
        done.wait()

    def second():
        first_is_inside.wait()
        with one_blas_thread():
            second_is_inside.set()
            first_left.wait()
        done.set()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: job(), [first, second]))
    print("after", True, threads_of_blas() == {2})

with ThreadPoolExecutor(1) as pool:
    pool.submit(threadpool_limits, 2, "blas").result()
overlap()
ThreadpoolController.limit = slow_limit
for learner in first_of_each(one for kind in LEARNERS for one in declaration_of(kind).instances()):
    limits.clear()
    in_two_threads(lambda: fitted(learner))
    print(type(learner).__name__, bool(limits), threads_of_blas() == {2})
"""


def test_overlapping_fits_restore_the_threads_of_blas():
    paths = os.pathsep.join(filter(None, sys.path))
    output = subprocess.run(
        [sys.executable, "-c", OVERLAPPING],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not output.returncode, output.stderr
    lines = [line.split() for line in output.stdout.splitlines()]
    assert [name for name, _, restored in lines if restored != "True"] == []
    limited = {name for name, limits, _ in lines if limits == "True"}
    assert limited >= {"OrdinalBoost", "RankSVM", "RankSVMCV"}


def test_one_module_limits_blas():
    source = Path(rankcore.__file__).parent
    users = [path for path in source.rglob("*.py") if "threadpoolctl" in path.read_text()]
    assert [str(path.relative_to(source)) for path in users] == ["_core/threads.py"]
