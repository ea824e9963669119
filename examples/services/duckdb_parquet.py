"""Order the documents of a Parquet file inside DuckDB, by a model that was exported as SQL.

    python duckdb_parquet.py

Needs ``pip install rankcore duckdb pyarrow pandas``.
"""

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

import rankcore as rc

TOP = """
    SELECT qid, document, score
    FROM (SELECT qid, document, {expression} AS score FROM read_parquet('{file}'))
    QUALIFY row_number() OVER (PARTITION BY qid ORDER BY score DESC, document) <= {n}
    ORDER BY qid, score DESC, document
"""


def top_documents(model, names, file, n=3):
    """Return the n best documents of each query of a Parquet file, scored by the database."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ranker.sql"
        rc.export(model, path, "sql", feature_names=names)
        expression = path.read_text()
    return duckdb.sql(TOP.format(expression=expression, file=file, n=n)).df()


def main(folder):
    """Write documents to Parquet, rank them there, compare with Python."""
    X, relevance, qid = rc.datasets.make_letor(50, 20, random_state=0)
    names = [f"f{j}" for j in range(X.shape[1])]
    model = rc.RankBoost(50).fit(X, relevance, qid=qid)
    documents = pd.DataFrame(X, columns=names)
    documents.insert(0, "document", np.arange(len(X)))
    documents.insert(0, "qid", qid)
    file = Path(folder) / "documents.parquet"
    documents.to_parquet(file)
    found = top_documents(model, names, file)

    scored = documents[["qid", "document"]].assign(score=model.predict(X))
    scored = scored.sort_values(["qid", "score", "document"], ascending=[True, False, True])
    expected = scored.groupby("qid").head(3)
    same = found["document"].tolist() == expected["document"].tolist()
    print(found.head(6).to_string(index=False))
    print("same documents:", same)
    return same


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
