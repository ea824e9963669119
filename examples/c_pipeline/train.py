"""Fit a PRank on svmlight rows and write it as text, for main.c to read.

    python train.py rows.svm model.txt

The first number of a row is its grade, columns count from 1. Every number is written with 17
significant digits, which is enough to read the same double back.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

import rankcore as rc


def write_model(model: rc.PRank, path: str | Path) -> None:
    """Write what scoring needs: labels, thresholds and weights."""
    labels = [np.format_float_positional(label, trim="-") for label in model.classes_]
    lines = [
        "rankcore-prank 1",
        f"ranks {len(labels)}",
        " ".join(["labels", *labels]),
        " ".join(["thresholds", *(f"{threshold:.17g}" for threshold in model.thresholds_)]),
        f"features {model.n_features_in_}",
        *(f"{weight:.17g}" for weight in model.coef_),
    ]
    Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit a PRank and write it as text.")
    parser.add_argument("rows", help="svmlight file to learn from")
    parser.add_argument("model", help="file to write")
    parser.add_argument("--features", type=int, help="columns of the model, if not all are met")
    parser.add_argument("--passes", type=int, default=5, help="over the rows (%(default)s)")
    options = parser.parse_args()
    X, y = load_svmlight_file(options.rows, n_features=options.features, zero_based=False)
    write_model(rc.PRank.published(max_iter=options.passes, average=True).fit(X, y), options.model)


if __name__ == "__main__":
    main()
