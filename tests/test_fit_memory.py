"""Memory of fits that keep examples, beside what their documentation says."""

import sys

import pytest

import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

# Labels that cannot be learned, so that nearly every row is a mistake.
FIT = """
import gc, sys, warnings
import numpy as np, rankcore as rc, scipy.sparse as sp
warnings.simplefilter("ignore")
name, params, form, _ = eval(sys.argv[1])
rng = np.random.default_rng(0)
# Kernels cost n * n * d, and what is kept is n * d: few rows of many columns are seen for less.
n, d = (2500, 400) if "budget_policy" in params else (1500, 1400)
n, d = {"RankSVM": (3000, 100), "VotedPRank": (5000, 400)}.get(name, (n, d))
X = rng.normal(size=(n, d))
if form == "csr":
    X = sp.random_array((n, 5 * d), density=0.12, random_state=rng, format="csr")
y = rng.integers(0, 4, n)
def of(what):
    return 1024 * int(open("/proc/self/status").read().split(what + ":")[1].split()[0])
learner = getattr(rc, name)(random_state=0, **params)
queries = {}
if name == "RankSVM":
    queries = {"qid": np.arange(n) // 20}
    X = X @ X.T if params["kernel"] == "precomputed" else X
learner.fit(X[:99, :99], y[:99], **{"qid": one[:99] for one in queries.values()})
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = of("VmRSS")
learner.fit(X, y, **queries)
print(of("VmHWM") - before)
if name == "VotedPRank":
    print(8 * len(learner.votes_) * (d + 5))
elif name == "RankSVM":
    print(8 * len(y) ** 2)
    print(2**26)
else:
    support = len(learner.support_)
    print(support * (8 * (d + 6) if form == "dense" else 8 * 6 + 12 * 0.12 * 5 * d))
    if name == "KernelOAPBPM":
        print(12 * learner.member_dual_coef_.nnz)
    if params.get("budget_policy") in ("forgetron", "projectron"):
        print(8 * support**2)
"""

# The last number: a fit takes at most that many times what it keeps, as arrays grow by copying.
CASES = [
    ("KernelPRank", {"max_iter": 1}, "dense", 3),
    ("KernelPRank", {"max_iter": 1}, "csr", 3),
    ("KernelPRank", {"budget": 1200, "max_iter": 1}, "dense", 3),
    ("KernelPRank", {"budget": 1500, "budget_policy": "forgetron", "max_iter": 1}, "dense", 3),
    ("KernelPRank", {"budget": 1500, "budget_policy": "projectron", "max_iter": 1}, "csr", 3),
    ("KernelCuSumRank", {"max_iter": 1}, "dense", 3),
    ("KernelOAPBPM", {"n_estimators": 8, "max_iter": 1}, "dense", 3),
    ("VotedPRank", {"max_iter": 1, "max_hypotheses": None}, "dense", 3),
    ("VotedPRank", {"max_iter": 1}, "dense", 3),
    ("RankSVM", {"kernel": "rbf"}, "dense", 1.2),
    ("RankSVM", {"kernel": "precomputed"}, "dense", 1.2),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_peak_memory_of_a_fit_is_proportional_to_the_examples_kept(case):
    status, output = children.run(FIT, repr(case))
    assert status == 0, output
    peak, *kept = map(float, output.split())
    assert sum(kept) > 10 * 2**20  # enough to be seen beside what any fit takes
    room = case[-1] * sum(kept) + 4 * 2**20
    assert peak < room, f"{peak / sum(kept):.2f} times {sum(kept)} bytes"
