"""Kernel learners by the book: every f(x) a sum over all support vectors, one row at a time.

A learner has outputs; ``alpha[i]`` holds the coefficients of example i for all of them. Budgets
look at this table alone; thresholds are the rule's.
"""

import numpy as np

from reference.ensemble import mix
from reference.prank import threshold_steps

GOLDEN = 0x9E3779B97F4A7C15  # step of SplitMix64


def rbf(gamma):
    return lambda x, z: np.exp(-gamma * ((x - z) ** 2).sum())


def poly(gamma, coef0, degree):
    return lambda x, z: (gamma * (x @ z) + coef0) ** degree


def linear(x, z):
    return x @ z


class Pool:
    """Support vectors in order of joining, coefficients, their sums over time, and a budget."""

    def __init__(
        self,
        kernel,
        n_outputs,
        budget=None,
        policy="oldest",
        decay=0.01,
        tol=1e-6,
        seed=0,
        free=None,
    ):
        self.kernel, self.n_outputs, self.budget, self.policy = kernel, n_outputs, budget, policy
        self.decay, self.tol, self.seed = decay, tol, seed
        self.free = n_outputs if free is None else free
        self.rows, self.names, self.alpha, self.late = [], [], [], []
        self.slots = []  # where a compiled pool has them: only "random" asks
        self.joined = self.updates = 0
        self.damage = 0.0

    def row(self, x):
        return np.array([self.kernel(x, z) for z in self.rows])

    def outputs(self, x):
        if not self.rows:
            return np.zeros(self.n_outputs)
        return self.row(x) @ np.array(self.alpha)

    def scale(self, factor, seen):
        for i, alpha in enumerate(self.alpha):
            self.late[i] = self.late[i] + seen * (factor - 1) * alpha
            self.alpha[i] = factor * alpha

    def leaving(self, x, change):
        """Return the index of the support vector to remove, or None for x itself."""
        if self.policy == "random":
            state = mix((self.seed + GOLDEN * (self.joined + 1)) % 2**64)
            while True:  # Lemire's draw below n, without bias
                state = (state + GOLDEN) % 2**64
                product = (mix(state) >> 32) * len(self.rows)
                if product % 2**32 >= (2**32 - len(self.rows)) % len(self.rows):
                    return self.slots.index(product >> 32)
        if self.policy == "smallest":
            sizes = [
                (a[: self.free] ** 2).sum() * self.kernel(z, z)
                for a, z in zip(self.alpha, self.rows, strict=True)
            ]
            sizes.append((change[: self.free] ** 2).sum() * self.kernel(x, x))
            place = int(np.argmin(sizes))  # of equal ones the first, the oldest
            return None if place == len(self.rows) else place
        return 0

    def learn(self, x, name, change, seen):
        """Add the changes of all outputs for x; seen: examples before it, for each output."""
        change, late = np.array(change, dtype=float), np.multiply(seen, change)
        if self.budget is not None and self.policy == "norma":
            self.scale(1 - self.decay, seen)
        if not change.any():
            return
        self.updates += np.count_nonzero(change[: self.free])
        if name in self.names:
            at = self.names.index(name)
            self.alpha[at] = self.alpha[at] + change
            self.late[at] = self.late[at] + late
            return
        if self.budget is not None and self.policy == "projectron" and self.rows:
            gram = np.array([self.row(z) for z in self.rows])
            d = np.linalg.solve(gram, self.row(x))
            distance = self.kernel(x, x) - d @ self.row(x)
            if distance <= self.tol * self.kernel(x, x) or len(self.rows) == self.budget:
                for i in range(len(self.rows)):
                    self.alpha[i] = self.alpha[i] + d[i] * change
                    self.late[i] = self.late[i] + d[i] * late
                return
        slot = len(self.rows)
        if self.budget is not None and slot == self.budget:
            place = self.leaving(x, change)
            if place is None:
                return
            if self.policy == "forgetron":
                f = self.outputs(self.rows[place]) + change * self.kernel(x, self.rows[place])
                a, own = self.alpha[place], self.kernel(self.rows[place], self.rows[place])

                def damage(p):
                    cost = p**2 * a**2 * own + 2 * p * abs(a) - 2 * p**2 * a * f
                    return cost[: self.free].sum()

                left = max(0.0, 15 / 32 * self.updates - self.damage)
                p = 1.0 if damage(1.0) <= left else bisect(lambda p: damage(p) - left)
                self.damage += damage(p)
                self.scale(p, seen)
                late, change = late + seen * (p - 1) * change, p * change
            slot = self.slots[place]
            for part in [self.rows, self.names, self.alpha, self.late, self.slots]:
                del part[place]
        self.joined += 1
        self.rows.append(x)
        self.names.append(name)
        self.alpha.append(change)
        self.late.append(late)
        self.slots.append(slot)


def bisect(f):
    """Return the largest zero in [0, 1] of a quadratic with f(0) <= 0 < f(1)."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) <= 0 else (low, middle)
    return low


def rank_of(score, b):
    return 1 + int((score >= b).sum())


def kernel_prank(X, y, k, kernel, tie="crammer", epochs=1, margin=0.0, **budget):
    pool = Pool(kernel, 1, **budget)
    b, b_sum = np.zeros(k - 1), np.zeros(k - 1)
    predictions, sizes, t = [], [], 0
    for _ in range(epochs):
        for name, (x, true) in enumerate(zip(X, y, strict=True)):
            score = pool.outputs(x)[0]
            predictions.append(rank_of(score, b))
            tau = threshold_steps(score, true, b, tie, margin)
            b = b - tau
            pool.learn(x, name, [tau.sum()], np.array([t]))
            b_sum += b
            t += 1
            sizes.append(len(pool.rows))
    return {
        "pool": pool,
        "b": b,
        "b_mean": b_sum / t,
        "alpha": np.array(pool.alpha),
        "alpha_mean": np.array(pool.alpha) - np.array(pool.late) / t,
        "predictions": np.array(predictions),
        "sizes": np.array(sizes),
    }


def kernel_cusum(
    X, y, k, kernel, update="perceptron", C=1.0, margin=0.0, tie="high", epochs=1, **budget
):
    pool = Pool(kernel, k - 1, **budget)
    b = np.zeros(k - 1)
    predictions, t = [], 0
    for _ in range(epochs):
        for name, (x, true) in enumerate(zip(X, y, strict=True)):
            scores = np.append(0, np.cumsum(pool.outputs(x) - b))
            best = np.flatnonzero(scores == scores.max()) + 1
            predictions.append(int(best[-1] if tie == "high" else best[0]))
            augmented = scores + margin * abs(np.arange(1, k + 1) - true)
            best = np.flatnonzero(augmented == augmented.max()) + 1
            rival = int(best[-1] if tie == "high" else best[0])
            rival = true if true in best and margin > 0 else rival
            change = np.zeros(k - 1)
            if rival != true:
                low, high = min(true, rival), max(true, rival)
                size = 1.0
                if update != "perceptron":
                    deficit = (high - low) - (scores[true - 1] - scores[rival - 1])
                    norm = (high - low) * (kernel(x, x) + 1)
                    size = {
                        "pa": deficit / norm,
                        "pa1": min(C, deficit / norm),
                        "pa2": deficit / (norm + 1 / (2 * C)),
                    }[update]
                    size = max(0.0, size)
                change[low - 1 : high - 1] = np.sign(true - rival) * size
            b = b - change
            pool.learn(x, name, change, np.full(k - 1, t))
            t += 1
    return {
        "pool": pool,
        "b": b,
        "alpha": np.array(pool.alpha),
        "alpha_mean": np.array(pool.alpha) - np.array(pool.late) / t,
        "predictions": np.array(predictions),
    }


def kernel_oap(X, y, k, kernel, masks, tie="crammer", margin=0.0, **budget):
    """Members on masked rows, one pool; the last output is the sum of the members."""
    n = len(masks)
    pool = Pool(kernel, n + 1, free=n, **budget)
    b = np.zeros((n, k - 1))
    seen = np.zeros(n + 1)
    predictions = []
    for t, (x, true) in enumerate(zip(X, y, strict=True)):
        outputs = pool.outputs(x)
        predictions.append(rank_of(outputs[n] / n, b.sum(axis=0) / n))
        change = np.zeros(n + 1)
        for j in np.flatnonzero(masks[:, t]):
            tau = threshold_steps(outputs[j], true, b[j], tie, margin)
            b[j] -= tau
            change[j] = tau.sum()
        change[n] = change[:n].sum()
        pool.learn(x, t, change, seen)
        seen[:n] += masks[:, t]
    return {
        "pool": pool,
        "b": b,
        "alpha": np.array(pool.alpha),
        "predictions": np.array(predictions),
    }
