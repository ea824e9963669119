"""Memory of fits that keep examples, beside what their documentation says."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# Labels that cannot be learned, so that nearly every row is a mistake.
FIT = """
import gc, sys
import numpy as np, rankcore as rc, scipy.sparse as sp
name, params, form = eval(sys.argv[1])
rng = np.random.default_rng(0)
n, d = 5000, 400
X = rng.normal(size=(n, d))
if form == "csr":
    X = sp.random_array((n, 20 * d), density=0.03, random_state=rng, format="csr")
y = rng.integers(0, 4, n)
def of(what):
    return 1024 * int(open("/proc/self/status").read().split(what + ":")[1].split()[0])
learner = getattr(rc, name)(random_state=0, **params)
learner.fit(X[:99], y[:99])
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = of("VmRSS")
learner.fit(X, y)
print(of("VmHWM") - before)
if name == "VotedPRank":
    print(8 * len(learner.votes_) * (d + 5))
else:
    support = len(learner.support_)
    print(support * (8 * (d + 6) if form == "dense" else 8 * 6 + 12 * 0.03 * 20 * d))
    if name == "KernelOAPBPM":
        print(12 * learner.member_dual_coef_.nnz)
"""

CASES = [
    ("KernelPRank", {"max_iter": 1}, "dense"),
    ("KernelPRank", {"max_iter": 1}, "csr"),
    ("KernelCuSumRank", {"max_iter": 1}, "dense"),
    ("KernelOAPBPM", {"n_estimators": 8, "max_iter": 1}, "dense"),
    ("VotedPRank", {"max_iter": 1, "max_hypotheses": None}, "dense"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_peak_of_a_fit_is_at_most_three_times_what_it_keeps(case):
    run = [sys.executable, "-W", "ignore", "-c", FIT, repr(case)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    peak, *kept = map(float, done.stdout.split())
    assert sum(kept) > 10 * 2**20  # enough to be seen beside what any fit takes
    assert peak < 3 * sum(kept) + 4 * 2**20, f"{peak / sum(kept):.2f} times {sum(kept)} bytes"
