"""Counterfactual evaluation, plainly: one impression after the other."""

from math import log2


def relevance(impressions, theta, estimator, clip, model, trust=None):
    """Relevance of a document: impressions are (position, clicked) pairs, the model's a number."""
    if trust is not None:
        impressions = [(p, c - trust[p - 1]) for p, c in impressions]
    if not impressions:
        return model if estimator == "dr" else 0
    weighted = [(min(1 / theta[p - 1], clip), theta[p - 1], c) for p, c in impressions]
    if estimator == "ips":
        return sum(w * c for w, _, c in weighted) / len(weighted)
    if estimator == "snips":
        return sum(w * c for w, _, c in weighted) / sum(w * t for w, t, _ in weighted)
    return model + sum(w * (c - t * model) for w, t, c in weighted) / len(weighted)


def dcg(gammas, k):
    return sum(g / log2(place + 1) for place, g in enumerate(gammas[:k], 1))


def ndcg(gammas, k):
    ideal = dcg(sorted(gammas, reverse=True), k)
    return dcg(gammas, k) / ideal if ideal > 0 else 0


def precision(gammas, k):
    return sum(gammas[:k]) / k


def mrr(gammas, k):
    total, none_yet = 0, 1
    for place, g in enumerate(gammas[:k], 1):
        total += none_yet * g / place
        none_yet *= 1 - g
    return total


MEASURES = {"dcg": dcg, "ndcg": ndcg, "precision": precision, "mrr": mrr}


def evaluate(log, ranking, theta, measure, estimator, clip, trust=None):
    """Values of queries, of a log of (query, document, position, clicked).

    A ranking has for each query its documents in the new order, with the model's relevance.
    """
    name, _, k = measure.partition("@")
    found = {}
    for query, documents in ranking.items():
        if not any(q == query for q, *_ in log):
            continue
        gammas = [
            relevance(
                [(p, c) for q, d, p, c in log if (q, d) == (query, document)],
                theta, estimator, clip, model, trust,
            )
            for document, model in documents
        ]  # fmt: skip
        found[query] = MEASURES[name](gammas, int(k) if k else len(gammas))
    return found
