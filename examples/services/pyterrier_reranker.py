"""A ranker as a stage of a PyTerrier pipeline: it orders again what a first stage found.

    retriever >> features >> Reranker(rc.RankBoost()).fit(...)

PyTerrier's `apply_learned_model` fits models without queries; this stage hands them over as `qid`.
Needs ``pip install rankcore python-terrier``; this part of it needs no Java.
"""

import numpy as np
import pandas as pd
import pyterrier as pt

import rankcore as rc


class Reranker(pt.Estimator):
    """Documents in the order of a ranker of rankcore, from their column `features`."""

    def __init__(self, ranker):
        super().__init__()
        self.ranker = ranker

    def fit(self, topics_or_res, qrels, *valid):
        """Learn from documents with features and their judgments; those without are irrelevant."""
        judged = topics_or_res.merge(qrels[["qid", "docno", "label"]], "left", ["qid", "docno"])
        judged = judged.sort_values("qid", kind="stable")
        relevance = judged["label"].fillna(0).astype(int)
        self.ranker.fit(rows(judged), relevance, qid=judged["qid"])
        return self

    def transform(self, results):
        """Results with new scores and ranks."""
        if results.empty:
            return results
        scored = results.assign(score=self.ranker.predict(rows(results)))
        return pt.model.add_ranks(scored)


def rows(results):
    """Return the features of results as one array."""
    return np.stack(results["features"].to_numpy())


def main():
    """Rank synthetic documents again, and measure before and after."""
    X, relevance, qid = rc.datasets.make_letor(60, 20, random_state=0)
    documents = pd.DataFrame(
        {
            "qid": qid.astype(str),
            "docno": [f"d{i}" for i in range(len(X))],
            "features": [*X],
            "score": X[:, 0],
        }
    )
    qrels = documents[["qid", "docno"]].assign(label=relevance)
    topics = pd.DataFrame({"qid": documents["qid"].unique(), "query": "synthetic"})
    train = documents["qid"].astype(int) <= 40
    first = pt.Transformer.from_df(pt.model.add_ranks(documents))
    stage = Reranker(rc.RankBoost(50)).fit(documents[train], qrels)
    held_out = topics[topics["qid"].astype(int) > 40]
    return pt.Experiment(
        [first, first >> stage], held_out, qrels, ["ndcg_cut_10"], ["first", "reranked"]
    )


if __name__ == "__main__":
    print(main().to_string(index=False))
