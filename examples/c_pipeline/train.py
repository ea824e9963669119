"""Fit a PRank on svmlight rows and save it, for main.c to open.

    python train.py rows.svm model.rankcore

The first number of a row is its grade, columns count from 1.
"""

import argparse

from sklearn.datasets import load_svmlight_file

import rankcore as rc


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit a PRank and save it.")
    parser.add_argument("rows", help="svmlight file to learn from")
    parser.add_argument("model", help="file to write")
    parser.add_argument("--features", type=int, help="columns of the model, if not all are met")
    parser.add_argument("--passes", type=int, default=5, help="over the rows (%(default)s)")
    options = parser.parse_args()
    X, y = load_svmlight_file(options.rows, n_features=options.features, zero_based=False)
    rc.save(rc.PRank.published(max_iter=options.passes, average=True).fit(X, y), options.model)


if __name__ == "__main__":
    main()
