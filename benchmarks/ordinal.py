"""The ordinal family beside PRank: on sparse text-like rows (W1) and on six dense features (S)."""

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, medians, show
from benchmarks.prank import N_TRAIN, epoch
from rankcore._core.inputs import as_rows
from rankcore._core.labels import encode, find_classes
from rankcore._ext import ordinal
from rankcore._ext.ensemble import draws
from rankcore._ext.online_loop import learn
from rankcore.datasets import make_oap_synthetic, make_ordinal, quadratic_features
from rankcore.ordinal._members import least_draws

N_MEMBERS, TAU = 100, 0.3


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    rows: list[tuple[str, str, str]] = []
    X, y = make_ordinal()
    rows += sparse(X[:N_TRAIN], y[:N_TRAIN], repeat)
    X, y = make_oap_synthetic(50_000, random_state=0)
    rows += dense(np.ascontiguousarray(quadratic_features(X)), y, repeat)
    show(rows)


def sparse(X, y, repeat):
    """200,000 x 50,000 CSR, about 75 non-zeros a row, 5 ranks."""
    rows, ranks = as_rows(X), encode(y, find_classes(y))
    d, k, zeros = rows.n_features, 5, np.zeros
    states = {
        "cusum": lambda: ordinal.CuSumState(
            zeros(d * (k - 1)),
            zeros(k - 1),
            None,
            None,
            zeros(2 * k),
            1,
            1,
            0,
            False,
            0,
            False,
            True,
        ),
        "widrow_hoff": lambda: ordinal.WidrowHoffState(
            zeros(d), zeros(1), None, None, 0.1, k, False, 1.0
        ),
        "multiclass": lambda: ordinal.MulticlassState(
            zeros(d * k), zeros(k), None, None, zeros(k), False, 1.0
        ),
    }
    tasks = {
        name: (lambda make=make: one_pass(make(), rows, ranks)) for name, make in states.items()
    }
    seconds = medians(repeat, prank=lambda: epoch(rows, ranks), **tasks)
    slow = medians(
        max(3, repeat // 4),
        prank=lambda: epoch(rows, ranks),
        one=lambda: rc.OAPBPM.published(random_state=0).fit(X, y),
        two=lambda: rc.OAPBPM.published(random_state=0, n_jobs=2).fit(X, y),
    )

    def ratio(name):
        return f"{seconds[name] / seconds['prank']:.2f}x"

    return [
        ("W1: PRank epoch", f"{seconds['prank'] * 1e3:.1f} ms", ""),
        ("W1: CuSum epoch to PRank's", ratio("cusum"), "at most 2.5x"),
        ("W1: Widrow-Hoff", ratio("widrow_hoff"), "at most 1.8x"),
        ("W1: multiclass perceptron", ratio("multiclass"), "at most 3.5x"),
        (
            "W1: OAPBPM.fit, N=100, tau=0.3, one thread, to a PRank epoch",
            f"{slow['one'] / slow['prank']:.1f}x",
            "at most 30x",
        ),
        ("W1: two threads", f"{slow['one'] / slow['two']:.2f}x faster", "at least 1.7x"),
    ]


def dense(X, y, repeat):
    """50,000 rows of the synthetic task's six features."""
    rows, ranks = as_rows(X), encode(y, find_classes(y))
    model = rc.OAPBPM.published(n_estimators=N_MEMBERS, tau=TAU, random_state=0)
    seconds = medians(
        repeat,
        prank=lambda: epoch(rows, ranks),
        oap=lambda: model.fit(X, y),
    )
    state = model.fit(X, y)._state
    members: list[rc.PRank] = []

    def python_loop():
        members[:] = [rc.PRank.published().fit(X[mask], y[mask]) for mask in masks]

    def python_online():
        for t in range(online):
            for j in np.flatnonzero(masks[:, t]):
                streaming[j].partial_fit(X[t : t + 1], y[t : t + 1], classes=[1, 2, 3, 4, 5])

    masks = member_masks(state, len(y))
    online = 100
    streaming = [rc.PRank.published() for _ in range(N_MEMBERS)]
    loops = medians(3, batch=python_loop, online=python_online)
    python_loop()
    same = all(
        np.array_equal(one.coef_, other.coef_)
        and np.array_equal(one.thresholds_, other.thresholds_)
        for one, other in zip(members, model.estimators_, strict=True)
    )
    return [
        ("S: PRank epoch, a row", f"{seconds['prank'] / len(y) * 1e9:.0f} ns", ""),
        (
            "S: OAPBPM.fit, N=100, tau=0.3, to a PRank epoch",
            f"{seconds['oap'] / seconds['prank']:.1f}x",
            "at most 15x",
        ),
        (
            "S: Python loop of 100 PRank.fit on masked rows, to OAPBPM.fit",
            f"{loops['batch'] / seconds['oap']:.1f}x",
            "",
        ),
        (
            "S: the same loop, online (row by row), to OAPBPM.fit",
            f"{loops['online'] / online * len(y) / seconds['oap']:.0f}x",
            "at least 20x",
        ),
        ("S: members equal to the loop's to the bit", str(same), "True"),
    ]


def one_pass(state, rows, ranks):
    """One pass of a kernel."""
    none = np.empty(0, np.int64)
    learn(state, rows, ranks, None, None, 0, rows.n_rows, np.zeros(3, np.int64), none, none)


def member_masks(state, n):
    """Which examples each member takes, shape (N_MEMBERS, n)."""
    least = least_draws(state.settings)[0]
    drawn = np.empty((n, N_MEMBERS), np.int32)
    for t in range(n):
        draws(int(state.others["seed"][0]), t, least, drawn[t])
    return drawn.T > 0
