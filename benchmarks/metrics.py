"""Measures of 10,000 queries of 1,000 documents, beside the peers that are installed."""

from importlib.util import find_spec

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, medians, peak_bytes, show, sized

N_QUERIES, N_DOCUMENTS = sized(10_000, 100), 1_000
TOGETHER = ["map", "mrr", "P@10", "ndcg@10"]


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    labels, scores = judged()
    show(arrays(labels, scores, repeat) + peers(labels, scores, max(3, repeat // 3)))


def judged():
    """Labels 0 to 4, 9.7 % of them above 0, and scores that agree with them in part."""
    rng = np.random.default_rng(404)
    latent = rng.normal(size=(N_QUERIES, N_DOCUMENTS))
    labels = np.searchsorted([1.3, 1.8, 2.3, 2.8], latent).astype(np.int8)
    return labels, latent + rng.normal(size=latent.shape)


def arrays(labels, scores, repeat):
    """Figures for whole arrays: one measure, four together, the sort alone."""
    from sklearn.metrics import ndcg_score

    y, s = labels.ravel().astype(np.float64), scores.ravel()
    qid = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)

    def measure(metrics, n_jobs=None):
        return rc.metrics.evaluate(y, s, qid=qid, metrics=metrics, n_jobs=n_jobs)

    gains = 2.0**labels - 1
    slow = medians(3, sklearn=lambda: ndcg_score(gains, scores, k=10))
    seconds = medians(
        repeat,
        ndcg=lambda: measure("ndcg@10"),
        # Looks at the first position of the whole order only: what is left is the sort.
        sort=lambda: measure("Rprec"),
        together=lambda: measure(TOGETHER),
        two=lambda: measure(TOGETHER, n_jobs=2),
        converted=lambda: rc.metrics.ndcg_score(labels.ravel(), scores.ravel(), qid=qid, k=10),
        argsort=lambda: np.argsort(scores, axis=1),
    )
    held = peak_bytes(lambda: measure(TOGETHER)) / s.size
    found = measure("ndcg@10")["ndcg@10"]
    assert abs(found - ndcg_score(gains, scores, k=10)) < 1e-12
    return [
        ("ndcg@10", f"{seconds['ndcg'] * 1e3:.0f} ms", ""),
        ("ndcg@10, labels int8", f"{seconds['converted'] * 1e3:.0f} ms", ""),
        (
            "sklearn.metrics.ndcg_score to ndcg@10",
            f"{slow['sklearn'] / seconds['ndcg']:.0f}x",
            "at least 10x",
        ),
        ("the order of every query, and R-precision", f"{seconds['sort'] * 1e3:.0f} ms", ""),
        ("numpy.argsort of every query", f"{seconds['argsort'] * 1e3:.0f} ms", ""),
        (
            "MAP, MRR, P@10, NDCG@10 together to that order",
            f"{seconds['together'] / seconds['sort']:.2f}x",
            "under 1.3x",
        ),
        ("two threads", f"{seconds['together'] / seconds['two']:.2f}x faster", "at least 1.7x"),
        ("memory beyond the inputs", f"{held:.1f} bytes per row", "at most 16"),
    ]


def peers(labels, scores, repeat):
    """Tools that want dictionaries: a tenth of the queries, for the sake of memory."""
    n = N_QUERIES // 10
    names = [f"d{i}" for i in range(N_DOCUMENTS)]
    qrels = {f"q{i}": dict(zip(names, labels[i].tolist(), strict=True)) for i in range(n)}
    runs = {f"q{i}": dict(zip(names, scores[i].tolist(), strict=True)) for i in range(n)}
    qid = np.repeat(np.arange(n), N_DOCUMENTS)
    y, s = labels[:n].ravel().astype(np.float64), scores[:n].ravel()
    ours = medians(repeat, ndcg=lambda: rc.metrics.ndcg_score(y, s, qid=qid, k=10, gain="linear"))[
        "ndcg"
    ]
    expected = rc.metrics.ndcg_score(y, s, qid=qid, k=10, gain="linear")
    rows = []
    if find_spec("pytrec_eval"):
        import pytrec_eval

        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
        values = evaluator.evaluate(runs).values()
        assert abs(np.mean([v["ndcg_cut_10"] for v in values]) - expected) < 1e-12
        seconds = medians(repeat, warm=lambda: evaluator.evaluate(runs))["warm"]
        rows.append(("pytrec_eval to ndcg@10", f"{seconds / ours:.0f}x", "at least 10x"))
    if find_spec("ranx"):
        import ranx

        made = medians(1, made=lambda: (ranx.Qrels(qrels), ranx.Run(runs)))["made"]
        judged, run = ranx.Qrels(qrels), ranx.Run(runs)
        assert abs(ranx.evaluate(judged, run, "ndcg@10") - expected) < 1e-12
        seconds = medians(repeat, warm=lambda: ranx.evaluate(judged, run, "ndcg@10"))["warm"]
        rows.append(("ranx to ndcg@10, warm", f"{seconds / ours:.0f}x", "at least 10x"))
        rows.append(("ranx, conversion included", f"{(seconds + made) / ours:.0f}x", ""))
    return rows
