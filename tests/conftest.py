"""Hypothesis profiles (HYPOTHESIS_PROFILE=quick, default or nightly), and a Dask cluster."""

import functools
import gc
import os
import signal
from collections import defaultdict

import pytest
from hypothesis import settings

from strategies import NIGHTLY, covering, examples

for name in ["quick", "default", "nightly"]:
    settings.register_profile(name, max_examples=examples(100, name), deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Pictures need no screen.
os.environ.setdefault("MPLBACKEND", "agg")

# A shell starts its background jobs, and what these start, with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """Leave out cases of tests marked `sampled(n)`, but for the nightly profile.

    The cases that stay hold all values of any n parameters together (of all, if there are fewer).
    """
    if NIGHTLY:
        return
    tests = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark and mark.args and hasattr(item, "callspec"):
            tests[item.parent, item.originalname, *mark.args].append(item)
    out = set()
    for (*_, n), cases in tests.items():
        values = [[_value(one) for one in case.callspec.params.values()] for case in cases]
        kept = covering(values, n)
        out.update(case for i, case in enumerate(cases) if i not in kept)
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


def pytest_collection_finish():
    """Exempt tests and imported modules, which stay to the end, from garbage collection."""
    gc.freeze()


def _value(one):
    """A parameter as a key; scikit-learn makes each check anew for each estimator."""
    if isinstance(one, functools.partial):
        return one.func, str(one.keywords)
    return id(one)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Let scikit-learn check NumPy's arrays under array API dispatch, which it skips otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        if "check_array_api_input" in item.name:
            patch.setenv("SCIPY_ARRAY_API", "1")
        return (yield)


@pytest.fixture(scope="module")
def client():
    """A Dask cluster of two workers in this process."""
    from distributed import Client

    with Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        # Tests send many small messages; the client would keep each for up to 10 ms.
        client.scheduler_comm.interval = 0.001
        yield client
