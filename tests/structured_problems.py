"""Tasks shared by the tests of the structured perceptron."""

import numpy as np

from rankcore.structured import StructuredPerceptron

D0 = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), [1, 2, 2, 3]


UPDATES = ["perceptron", "pa", "pa1", "pa2"]


def dense(task, x, y, n):
    indices, values = task.features(x, y)
    return np.bincount(indices, values, n)


def run_to_the_end(task, X, Y, epochs, **params):
    """Losses of the rivals, and squared lengths of what was added, of every update."""
    inputs, outputs = task.examples(X, Y) if hasattr(task, "examples") else (list(X), Y)
    n = task.n_parameters(inputs)
    model = StructuredPerceptron(task, **params)
    margin = params.get("margin", 0.0)
    losses, norms, deficits = [], [], []
    for t in range(epochs * len(Y)):
        x, y = inputs[t % len(Y)], outputs[t % len(Y)]
        w = model.coef_ if t else np.zeros(n)
        rival = task.argmax(w, x, y, margin)
        if task.loss(y, rival):
            difference = dense(task, x, y, n) - dense(task, x, rival, n)
            losses.append(float(task.loss(y, rival)))
            norms.append(difference @ difference)
            deficits.append(losses[-1] - w @ difference)
        model.partial_fit([X[t % len(Y)]], [y])
        if losses and params.get("update") == "pa" and task.loss(y, rival):
            # The step makes the true output win by the loss, exactly.
            np.testing.assert_allclose(model.coef_ @ difference, losses[-1], rtol=1e-7)
    return np.array(losses), np.array(norms), np.array(deficits)
