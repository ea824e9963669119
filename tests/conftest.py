"""Hypothesis profiles (HYPOTHESIS_PROFILE=quick, default or nightly), and costly fixtures."""

import gc
import os
import signal

import pytest
from hypothesis import settings

from strategies import examples

for name in ["quick", "default", "nightly"]:
    settings.register_profile(name, max_examples=examples(100, name), deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Pictures need no screen.
os.environ.setdefault("MPLBACKEND", "agg")

# A shell starts its background jobs, and what these start, with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Exempt tests and imported modules, which stay to the end, from garbage collection."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Let scikit-learn check NumPy's arrays under array API dispatch, which it skips otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        if "check_array_api_input" in item.name:
            patch.setenv("SCIPY_ARRAY_API", "1")
        return (yield)


@pytest.fixture(scope="module")
def client():
    """Start a Dask cluster of two workers in this process."""
    from distributed import Client

    with Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as client:
        # Tests send many small messages; the client would keep each for up to 10 ms.
        client.scheduler_comm.interval = 0.001
        yield client


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Compile the shared library of rankcore_model.h."""
    from shared_library import compile_library

    return compile_library(tmp_path_factory.mktemp("library") / "librankcore.so")
