"""Measures of predicted ranks, by plain loops over rows and labels."""


def losses_by_rank(y, predicted, weights):
    """Mean distance for each true rank that weighs something."""
    losses = {}
    for rank in sorted(set(y)):
        rows = [i for i, label in enumerate(y) if label == rank]
        total = sum(weights[i] for i in rows)
        if total > 0:
            losses[rank] = sum(weights[i] * abs(y[i] - predicted[i]) for i in rows) / total
    return losses


def confusion(y, predicted, labels, weights):
    table = [[0.0] * len(labels) for _ in labels]
    for label, guess, weight in zip(y, predicted, weights, strict=True):
        table[labels.index(label)][labels.index(guess)] += weight
    return table


def normalized(table, normalize):
    k = len(table)
    total = sum(map(sum, table))
    made = [[0.0] * k for _ in range(k)]
    for i in range(k):
        for j in range(k):
            by = {
                "true": sum(table[i]),
                "pred": sum(row[j] for row in table),
                "all": total,
            }[normalize]
            made[i][j] = table[i][j] / by if by else 0.0
    return made


def kappa(y, predicted, labels, weights):
    """Observed and expected squared distances, from the table of counts."""
    table = confusion(y, predicted, labels, weights)
    total = sum(map(sum, table))
    columns = [sum(row[j] for row in table) for j in range(len(labels))]
    seen = expected = 0.0
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            seen += (i - j) ** 2 * count
            expected += (i - j) ** 2 * sum(row) * columns[j] / total
    return 1 - seen / expected if expected else None


def ranked_probability_scores(y, proba, labels):
    """Score of every row."""
    scores = []
    for label, row in zip(y, proba, strict=True):
        rank = labels.index(label)
        scores.append(sum((sum(row[: r + 1]) - (rank <= r)) ** 2 for r in range(len(labels) - 1)))
    return scores
