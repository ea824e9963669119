"""Train on frames and rank inside them: pandas and Polars, queries as a column, names checked.

    python frames.py
    python frames.py polars

Needs ``pip install rankcore pandas`` or ``polars``.
"""

import sys

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc


def data():
    """Documents as columns: query, document, features, relevance."""
    X, relevance, qid = rc.datasets.make_letor(50, 20, random_state=0)
    columns = {"qid": qid, "document": range(len(X)), "relevance": relevance}
    names = [f"f{j}" for j in range(X.shape[1])]
    return columns | dict(zip(names, X.T.astype(float), strict=True)), names


def rank_pandas(columns, names):
    """Frame with the position of each document in its query, by pandas."""
    import pandas as pd

    documents = pd.DataFrame(columns)
    model = make_pipeline(StandardScaler(), rc.RankSVM())
    qid = documents["qid"]
    model.fit(documents[names], documents["relevance"], ranksvm__qid=qid)
    documents["score"] = model.predict(documents[names])
    by_query = documents.groupby("qid")["score"]
    documents["position"] = by_query.rank(ascending=False, method="first").astype(int)
    return documents


def rank_polars(columns, names):
    """Score the same rows by Polars."""
    import polars as pl

    documents = pl.DataFrame(columns)
    model = make_pipeline(StandardScaler(), rc.RankSVM())
    qid = documents["qid"].to_numpy()
    model.fit(documents.select(names), documents["relevance"].to_numpy(), ranksvm__qid=qid)
    scores = model.predict(documents.select(names))
    return documents.with_columns(score=pl.Series(scores)).with_columns(
        position=pl.col("score").rank("ordinal", descending=True).over("qid")
    )


if __name__ == "__main__":
    library = (sys.argv[1:] or ["pandas"])[0]
    ranked = {"pandas": rank_pandas, "polars": rank_polars}[library](*data())
    print(ranked[["qid", "document", "relevance", "score", "position"]].head(5))
