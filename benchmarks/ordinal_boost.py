"""OrdinalBoost beside LightGBM's multiclass objective, which grows a tree per class and round.

100,000 rows of 50 features, 10 ranks, 100 rounds of 31 leaves at a rate of .1, one thread. Seconds
are of the process. LightGBM is left out where it is not installed.
"""

from importlib.util import find_spec
from time import process_time

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, show, sized
from rankcore.metrics import rank_loss, ranked_probability_score

N, N_TEST, N_ROUNDS = sized((100_000, 10_000, 100), (1_000, 200, 10))
D, K = 50, 10


def task():
    """Rows and ranks of a curved score with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N + N_TEST, D))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3:8].sum(axis=1)
    score += rng.normal(size=len(X))
    return X, np.digitize(score, np.quantile(score, np.arange(1, K) / K))


def lightgbm():
    """LightGBM with the same trees."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=N_ROUNDS, n_jobs=1, verbose=-1, deterministic=True)


def run(repeat):
    """Measure and print."""
    print(machine(), "\n")
    X, y = task()
    models = {
        f"tasks={tasks!r}, link={link!r}": (
            lambda tasks=tasks, link=link: rc.OrdinalBoost(N_ROUNDS, tasks=tasks, link=link)
        )
        for tasks, link in [
            ("vector", "adjacent"),  # the default
            ("shared", "adjacent"),
            ("shared", "cumulative"),
        ]
    }
    if find_spec("lightgbm") is not None:
        models["LightGBM, multiclass"] = lightgbm
    rows = []
    for name, make in models.items():
        seconds = []
        for _ in range(max(1, repeat // 3)):
            start = process_time()
            model = make().fit(X[:N], y[:N])
            seconds.append(process_time() - start)
        table = model.predict_proba(X[N:])
        rps = ranked_probability_score(y[N:], table)
        error = rank_loss(y[N:], (table.cumsum(axis=1) >= 0.5).argmax(axis=1))
        rows.append((name, f"{min(seconds):.1f} s", f"RPS {rps:.4f}, MAE {error:.4f}"))
        print(*rows[-1], flush=True)
    show(rows)
