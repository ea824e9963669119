"""Pairwise differentiable gradient descent, plainly: probabilities of whole lists."""

from math import exp


def probability(scores, shown):
    """Of a list under the Plackett-Luce model."""
    left, p = list(range(len(scores))), 1.0
    for document in shown:
        p *= exp(scores[document]) / sum(exp(scores[d]) for d in left)
        left.remove(document)
    return p


def gradient(scores, shown, clicked):
    """By how much the score of each document is to grow."""
    step = [0.0] * len(scores)
    if not any(clicked):
        return step
    last = max(i for i, click in enumerate(clicked) if click)
    for i in range(len(shown)):
        for j in range(min(last + 2, len(shown))):
            if clicked[i] and not clicked[j]:
                swapped = list(shown)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                here, there = probability(scores, shown), probability(scores, swapped)
                k, loser = shown[i], shown[j]
                a, b = exp(scores[k]), exp(scores[loser])
                size = there / (here + there) * a * b / (a + b) ** 2
                step[k] += size
                step[loser] -= size
    return step
