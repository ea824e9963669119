"""Peers of `reproduce.defaults`: least squares, and two logistic regressions."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge


class RoundedRidge(Ridge):
    """Ridge regression on the labels, rounded and clipped to them."""

    def fit(self, X: Any, y: Any) -> "RoundedRidge":
        self.range_ = np.min(y), np.max(y)
        return super().fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        return np.clip(np.rint(super().predict(X)), *self.range_)


class AllThreshold:
    """The all-threshold logistic model, as mord's LogisticAT minimises it with its default alpha=1.

    The sum over rows and thresholds of log(1 + exp(-s (t - w.x))), s = 1 where the threshold lies
    at or above the label, else -1, plus |w|^2 / 2; thresholds kept in order by adding up their
    distances. mord itself is not needed; it uses the same L-BFGS.
    """

    def fit(self, X: Any, y: Any) -> "AllThreshold":
        self.classes_, ranks = np.unique(y, return_inverse=True)
        d, k = X.shape[1], self.classes_.size
        signs = np.where(np.arange(k - 1) >= ranks[:, None], 1.0, -1.0)
        below = np.tril(np.ones((k - 1, k - 1)))

        def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
            w, steps = v[:d], v[d:]
            margins = signs * ((below @ steps) - (X @ w)[:, None])
            slopes = -signs * expit(-margins)
            loss = np.logaddexp(0, -margins).sum() + w @ w / 2
            return loss, np.concatenate(
                [w - X.T @ slopes.sum(axis=1), below.T @ slopes.sum(axis=0)]
            )

        bounds = [(None, None)] * (d + 1) + [(0, None)] * (k - 2)
        found = minimize(
            objective, np.zeros(d + k - 1), jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": 1000},
        )  # fmt: skip
        self.coef_, self.thresholds_ = found.x[:d], below @ found.x[d:]
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[np.searchsorted(self.thresholds_, X @ self.coef_, side="right")]


PEERS = {
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "ridge, rounded": RoundedRidge,
    "all-threshold logistic": AllThreshold,
}
