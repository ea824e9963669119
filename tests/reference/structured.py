"""The structured perceptron as the papers state it: dense vectors, every candidate, every round."""

import numpy as np

from reference.kernel import Pool


def structured(
    X, Y, n, phi, candidates, loss, update="perceptron", C=1.0, margin=0.0, tie="first", epochs=1
):
    """All that the structured perceptron computes with n parameters.

    ``phi(x, y)`` is a dense vector, ``candidates`` a list for every input, in the order that the
    tie rule means.
    """
    pick = {"first": 0, "last": -1}[tie]
    w, total = np.zeros(n), np.zeros(n)
    losses, rival_losses, steps = [], [], []
    for _ in range(epochs):
        for x, y in zip(X, Y, strict=True):
            scores = np.array([w @ phi(x, z) for z in candidates])
            rival = candidates[np.flatnonzero(scores == scores.max())[pick]]
            losses.append(loss(y, rival))
            if margin > 0:
                scores = scores + margin * np.array([loss(y, z) for z in candidates])
                best = np.flatnonzero(scores == scores.max())
                rival = y if candidates.index(y) in best else candidates[best[pick]]
            step = 0.0
            rival_losses.append(loss(y, rival))
            if rival != y:
                delta = phi(x, y) - phi(x, rival)
                norm = delta @ delta
                deficit = loss(y, rival) - w @ delta
                if update == "perceptron":
                    step = 1.0
                elif deficit <= 0:
                    step = 0.0
                elif update == "pa2":
                    step = deficit / (norm + 1 / (2 * C))
                elif norm > 0:
                    step = deficit / norm if update == "pa" else min(C, deficit / norm)
                w = w + step * delta
            steps.append(step)
            total += w
    return {
        "w": w,
        "mean": total / len(losses),
        "losses": np.array(losses),
        "rival_losses": np.array(rival_losses),
        "steps": np.array(steps),
    }


def phi_cusum(x, y, k):
    """Return a copy of x for each of the tasks 2 .. y: blocks of the size of x, one a task."""
    blocks = np.zeros((k - 1, len(x)))
    blocks[: y - 1] = x
    return blocks.ravel()


def phi_prank(x, y, k):
    """``((y - 1) x, -1 for each of the first y - 1 thresholds, 0 for the others)``."""
    return np.concatenate([(y - 1) * x, -np.ones(y - 1), np.zeros(k - y)])


def kernel_structured(
    X,
    Y,
    parts,
    atoms,
    candidates,
    loss,
    kernel,
    n_labels,
    phi=lambda x, y: np.zeros(0),
    update="perceptron",
    C=1.0,
    margin=0.0,
    epochs=1,
    decay=0.01,
    **budget,
):
    """Learn in dual form: signed counts of part and label of each example, every sum in full.

    ``parts(x)`` lists vectors, ``atoms(x, y)`` pairs of part and label, ``phi(x, y)`` is a dense
    vector that no kernel sees, ``candidates(x)`` a list in which the first of equal ones wins.
    """
    pool = Pool(kernel, n_labels, decay=0.0, **budget)
    w = np.zeros(len(phi(X[0], Y[0])))
    w_sum, t = np.zeros_like(w), 0
    losses, rival_losses, sizes = [], [], []
    for _ in range(epochs):
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            vectors = [np.asarray(v) for v in parts(x)]
            table = [pool.outputs(v) for v in vectors]

            def score(z):
                return sum(table[p][a] for p, a in atoms(x, z)) + w @ phi(x, z)  # noqa: B023

            found = candidates(x)
            scores = np.array([score(z) for z in found])
            rival = found[int(scores.argmax())]
            losses.append(loss(y, rival))
            if margin > 0:
                scores = scores + margin * np.array([loss(y, z) for z in found])
                best = [z for z, s in zip(found, scores, strict=True) if s == scores.max()]
                rival = y if y in best else best[0]
            rival_losses.append(loss(y, rival))
            counts = np.zeros((len(vectors), n_labels))
            step, delta = 0.0, np.zeros_like(w)
            if loss(y, rival) > 0:
                for p, a in atoms(x, y):
                    counts[p, a] += 1
                for p, a in atoms(x, rival):
                    counts[p, a] -= 1
                delta = phi(x, y) - phi(x, rival)
                step = 1.0
            if step and update != "perceptron":
                deficit = loss(y, rival) - (score(y) - score(rival))
                norm = delta @ delta
                for p, u in enumerate(vectors):
                    for q, v in enumerate(vectors):
                        norm += counts[p] @ counts[q] * kernel(u, v)
                if deficit <= 0:
                    step = 0.0
                elif update == "pa2":
                    step = deficit / (norm + 1 / (2 * C))
                else:
                    step = deficit / norm if norm > 0 else 0.0
                    step = min(C, step) if update == "pa1" else step
            w = w + step * delta
            w_sum += w
            if pool.budget is not None and pool.policy == "norma":
                pool.scale(1 - decay, t)
            for p, v in enumerate(vectors):
                pool.learn(v, (i, p), step * counts[p], np.full(n_labels, t))
            t += 1
            sizes.append(len(pool.rows))
    alpha = np.array(pool.alpha).reshape(-1, n_labels)
    return {
        "pool": pool,
        "alpha": alpha,
        "alpha_mean": alpha - np.array(pool.late).reshape(-1, n_labels) / t,
        "w": w,
        "w_mean": w_sum / t,
        "losses": np.array(losses),
        "rival_losses": np.array(rival_losses),
        "sizes": np.array(sizes),
    }
