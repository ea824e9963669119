"""A ranker in MLflow: a `pyfunc` model around a model file, with signature and input example.

MLflow keeps this file and the model file: nothing is pickled.

    python mlflow_model.py served  # writes the folder `served`
    mlflow models predict -m served -i rows.csv -t csv

Needs ``pip install rankcore mlflow``.
"""

import sys
import tempfile
from pathlib import Path

import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow.models import infer_signature

import rankcore as rc


class Scorer(mlflow.pyfunc.PythonModel):
    """Scores of rows; ranks and probabilities as well, where the model has them."""

    def load_context(self, context):
        """Open the model file, which holds no code."""
        self.model = rc.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        """Return a frame with one row for each row of the input."""
        return answers(self.model, model_input)


def answers(model, X):
    """Return all predictions of a model for rows, as columns."""
    if not hasattr(model, "classes_"):
        return pd.DataFrame({"score": model.predict(X)})
    columns = {"label": model.predict(X)}
    if hasattr(model, "predict_proba"):
        likely = model.predict_proba(X)
        columns |= {f"p({label})": likely[:, i] for i, label in enumerate(model.classes_)}
    return pd.DataFrame(columns)


def save_mlflow(model, folder, X):
    """Write a fitted model as an MLflow model; X, a frame of a few rows, is the input example."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "model.rank"
        rc.save(model, file)
        mlflow.pyfunc.save_model(
            folder,
            python_model=__file__,  # MLflow runs it, and takes what it hands to `set_model`
            artifacts={"model": str(file)},
            signature=infer_signature(X, answers(model, X)),
            input_example=X.head(3),
            # What loads the model in an environment of its own.
            pip_requirements=[f"rankcore=={rc.__version__}", "pandas"],
        )


def main(folder):
    """Train a ranker on synthetic queries and save it."""
    X, relevance, qid = rc.datasets.make_letor(50, 20, random_state=0)
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X.astype(np.float64), columns=names)  # what CSV and JSON are read as
    ranker = rc.RankBoost(50).fit(frame, relevance, qid=qid)
    save_mlflow(ranker, folder, frame)
    again = mlflow.pyfunc.load_model(folder).predict(frame)
    print("same scores:", np.array_equal(again["score"], ranker.predict(frame)))


mlflow.models.set_model(Scorer())

if __name__ == "__main__":
    main(sys.argv[1])
