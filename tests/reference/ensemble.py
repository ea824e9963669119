"""Voted PRank and OAP by the book: all hypotheses listed, a Python loop over members."""

import math

import numpy as np

from reference.prank import prank, threshold_steps

MASK = 2**64 - 1


def voted(X, y, k, tie="crammer", count_init=1, margin=0.0):
    """Hypotheses (w, b) in order of birth and their votes."""
    w, b, votes = np.zeros(X.shape[1]), np.zeros(k - 1), 0
    hypotheses, counts = [], []
    for x, true in zip(X, y, strict=True):
        tau = threshold_steps(w @ x, true, b, tie, margin)
        if not tau.any():
            votes += 1
            continue
        hypotheses.append((w, b))
        counts.append(votes)
        w, b, votes = w + tau.sum() * x, b - tau, count_init
    return [*hypotheses, (w, b)], np.array([*counts, votes])


def largest(counts, K):
    """Return the indices of the K largest counts, first come first of equals."""
    return sorted(sorted(range(len(counts)), key=lambda i: (-counts[i], i))[:K])


def mix(z):
    """splitmix64's finaliser in unbounded integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform32(seed, member, t):
    """Return the 32-bit draw of a member at a time."""
    key = mix((seed + 0x9E3779B97F4A7C15 * (t + 1)) & MASK)
    bits = mix(key ^ ((0xD1342543DE82EF95 * (member // 2 + 1)) & MASK))
    return bits >> 32 if member % 2 else bits & 0xFFFFFFFF


def times(seed, member, t, tau=None):
    """How often a member takes the example at a time: Bernoulli(tau), or Poisson(1) for None."""
    u = uniform32(seed, member, t)
    if tau is not None:
        return int(u >= round((1 - tau) * 2**32))
    cumulative = np.cumsum([math.exp(-1) / math.factorial(n) for n in range(13)])
    return sum(u >= round(p * 2**32) for p in cumulative)


def oap(X, y, k, masks, tie="crammer", margin=0.0):
    """Members trained on masked rows; masks (n_members, n_examples) say how often.

    Returns the members' results, and weights and thresholds of their mean after each example.
    """
    members = []
    trace_w, trace_b = [], []
    for t in range(len(X) + 1):
        members = []
        for mask in masks:
            rows = np.repeat(np.arange(t), mask[:t])
            members.append(prank(X[rows], y[rows], k, tie, margin=margin) if len(rows) else None)
        w = [m["w"] if m else np.zeros(X.shape[1]) for m in members]
        b = [m["b"] if m else np.zeros(k - 1) for m in members]
        trace_w.append(np.mean(w, axis=0))
        trace_b.append(np.mean(b, axis=0))
    return members, np.array(trace_w), np.array(trace_b)
