"""Train and measure a ranker on a collection of ir_datasets: documents, queries, judgments.

    python ir_datasets_ranker.py vaswani  # ir_datasets downloads it

Features are similarities of a query and a document, by words and by letters; each query ranks its
judged documents. Needs ``pip install rankcore ir-datasets``.
"""

import sys

import ir_datasets
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import rankcore as rc

SIMILARITIES = (
    {"analyzer": "word", "sublinear_tf": True},
    {"analyzer": "char_wb", "ngram_range": (3, 4)},
)


def pairs(dataset):
    """Features, relevances and queries of all judged pairs, in the order of the queries."""
    documents = {doc.doc_id: doc.default_text() for doc in dataset.docs_iter()}
    queries = {query.query_id: query.default_text() for query in dataset.queries_iter()}
    judged = [
        one for one in dataset.qrels_iter() if one.doc_id in documents and one.query_id in queries
    ]
    judged.sort(key=lambda one: one.query_id)
    columns = []
    for settings in SIMILARITIES:
        words = TfidfVectorizer(**settings).fit(documents.values())
        of_documents = words.transform([documents[one.doc_id] for one in judged])
        of_queries = words.transform([queries[one.query_id] for one in judged])
        columns.append(of_documents.multiply(of_queries).sum(axis=1))
    columns.append(np.log1p([len(documents[one.doc_id]) for one in judged]))
    X = np.column_stack([np.asarray(column).ravel() for column in columns])
    relevance = np.array([one.relevance for one in judged])
    return X, relevance, np.array([one.query_id for one in judged])


def main(dataset):
    """NDCG@10 of the first feature and of a ranker that learns from half of the queries."""
    X, relevance, qid = pairs(dataset)
    known = np.unique(qid)
    train = np.isin(qid, known[::2])
    ranker = rc.RankBoost(100).fit(X[train], relevance[train], qid=qid[train])
    test = ~train
    measured = []
    for scores in [X[test, 0], ranker.predict(X[test])]:
        found = rc.metrics.evaluate(relevance[test], scores, qid=qid[test], metrics="ndcg@10")
        measured.append(found["ndcg@10"])
    return measured


if __name__ == "__main__":
    before, after = main(ir_datasets.load(sys.argv[1]))
    print(f"NDCG@10 of TF-IDF {before:.3f}, of the ranker {after:.3f}")
