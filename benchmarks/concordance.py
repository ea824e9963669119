"""Measures of pairs: AUC of ten million rows beside scikit-learn, tau of a million beside SciPy."""

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, medians, peak_bytes, show, sized

N_AUC, N_TAU = sized(10_000_000, 100_000), sized(1_000_000, 10_000)


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    few = max(3, repeat // 3)
    show(auc(few) + queries(few) + long_queries(few))


def auc(repeat):
    """One ranking of ten million rows, half of them positive."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    y = (rng.random(N_AUC) < 0.5).astype(np.float64)
    s = rng.normal(size=N_AUC) + y
    rounded = np.round(s, 2)
    w = rng.random(N_AUC)
    auc_score = rc.metrics.auc_score
    seconds = medians(
        repeat,
        peer_plain=lambda: roc_auc_score(y, s),
        peer_weighted=lambda: roc_auc_score(y, s, sample_weight=w),
        peer_tied=lambda: roc_auc_score(y, rounded),
        plain=lambda: auc_score(y, s),
        two=lambda: auc_score(y, s, n_jobs=2),
        weighted=lambda: auc_score(y, s, sample_weight=w),
        tied=lambda: auc_score(y, rounded),
        sort=lambda: np.sort(s),
    )
    held = peak_bytes(lambda: auc_score(y, s)) / N_AUC
    held_weighted = peak_bytes(lambda: auc_score(y, s, sample_weight=w)) / N_AUC
    assert abs(auc_score(y, s) - roc_auc_score(y, s)) < 1e-12
    assert auc_score(y, s) == auc_score(y, s, n_jobs=2)
    rows = [
        ("AUC of 10 million", f"{seconds['plain'] * 1e3:.0f} ms", ""),
        ("numpy.sort of the scores", f"{seconds['sort'] * 1e3:.0f} ms", ""),
    ]
    for name, what in (
        ("plain", "AUC"),
        ("weighted", "weighted AUC"),
        ("tied", "AUC, 1200 distinct scores"),
    ):
        ratio = seconds[f"peer_{name}"] / seconds[name]
        rows.append((f"sklearn.metrics.roc_auc_score to {what}", f"{ratio:.0f}x", "at least 15x"))
    return [
        *rows,
        ("two threads", f"{seconds['plain'] / seconds['two']:.2f}x faster", ""),
        ("memory beyond the inputs", f"{held:.1f} bytes per row", "at most 16"),
        ("with weights", f"{held_weighted:.1f} bytes per row", "at most 16.5"),
    ]


def queries(repeat):
    """10,000 queries of 1,000 documents: all measures of pairs beside the sort they need."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 5, N_AUC).astype(np.float64)
    s = rng.normal(size=N_AUC) + y
    qid = np.repeat(np.arange(N_AUC // 1000), 1000)
    metrics = rc.metrics
    seconds = medians(
        repeat,
        sort=lambda: metrics.evaluate(y, s, qid=qid, metrics="Rprec"),
        auc=lambda: metrics.auc_score(y, s, qid=qid),
        misranking=lambda: metrics.pairwise_misranking(y, s, qid=qid),
        two=lambda: metrics.pairwise_misranking(y, s, qid=qid, n_jobs=2),
        margin=lambda: metrics.margin_loss(y, s, qid=qid),
        positions=lambda: metrics.weighted_ranking_loss(y, s, "dcg", qid=qid),
    )
    rows = [
        (
            f"{what}, 10,000 queries, to sorting them",
            f"{seconds[name] / seconds['sort']:.1f}x",
            "",
        )
        for name, what in [
            ("auc", "AUC"),
            ("misranking", "misranking of 5 grades"),
            ("margin", "margin loss"),
            ("positions", "L_w with weights of DCG"),
        ]
    ]
    gain = seconds["misranking"] / seconds["two"]
    return [*rows, ("misranking, two threads", f"{gain:.2f}x faster", "")]


def long_queries(repeat):
    """Kendall's tau of a million numbers."""
    from scipy.stats import kendalltau

    rng = np.random.default_rng(2)
    rows = []
    for what, y in [
        ("distinct labels", rng.normal(size=N_TAU)),
        ("5 grades", rng.integers(0, 5, N_TAU).astype(np.float64)),
    ]:
        noise = rng.normal(size=N_TAU)
        for s, tied in [(y + noise, ""), (np.round(y + noise, 1), ", tied")]:
            seconds = medians(
                repeat,
                ours=lambda y=y, s=s: rc.metrics.kendall_tau(y, s),
                scipy=lambda y=y, s=s: kendalltau(y, s),
            )
            assert abs(rc.metrics.kendall_tau(y, s) - kendalltau(y, s).statistic) < 1e-14
            ratio = seconds["scipy"] / seconds["ours"]
            rows.append(
                (f"scipy.stats.kendalltau, {what}{tied}, to tau", f"{ratio:.1f}x", "at least 1x")
            )
    return rows
