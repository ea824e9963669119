"""Plackett-Luce by maximum a posteriori, plainly: one choice after the other, dense Newton."""

import numpy as np


def plain_maximum(n, choices, scale, prior):
    """Strengths, bias of the first position, slope of the prior, and covariance of strengths."""
    size = n + 1 + (prior is not None)
    mean, precision = np.zeros(size), np.full(size, 1 / scale**2)
    precision[n] = 1 / 0.5**2
    if prior is not None:
        mean[-1] = precision[-1] = 1.0
    parameters = mean.copy()
    for _ in range(200):
        gradient = precision * (parameters - mean)
        hessian = np.diag(precision)
        for items, weight, first in zip(
            choices.items, choices.weights, choices.shown_first, strict=True
        ):
            items = items[items >= 0]
            design = np.zeros((items.size, size))
            design[np.arange(items.size), items] = 1.0
            if 0 <= first < items.size:
                design[first, n] = 1.0
            if prior is not None:
                design[:, -1] = prior[items]
            utility = design @ parameters
            p = np.exp(utility) / np.exp(utility).sum()
            gradient += weight * (design.T @ p - design[0])
            hessian += weight * design.T @ (np.diag(p) - np.outer(p, p)) @ design
        step = np.linalg.solve(hessian, gradient)
        parameters = parameters - step / max(1.0, np.abs(step).max())
        if np.abs(step).max() < 1e-13:
            break
    inverse = np.linalg.inv(hessian)
    to_theta = np.eye(size)[:n]
    slope = 1.0
    if prior is not None:
        slope = parameters[-1]
        to_theta[:, -1] = prior
    return to_theta @ parameters, parameters[n], slope, to_theta @ inverse @ to_theta.T
