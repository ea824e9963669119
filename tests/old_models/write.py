"""Write a model file of each kind, and what the models predict, by the rankcore that is imported.

    git worktree add ../old COMMIT && cd ../old && python setup.py build_ext --inplace
    PYTHONPATH=src python .../tests/old_models/write.py .../tests/old_models/NAME [MODEL ...]

Run by the commits that changed what is in a model file, for the models that changed;
test_old_models.py loads what they wrote. A learner or a step that a commit could not save yet is
left out.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import rankcore as rc

DRAW = random.Random(37)
N_ROWS, N_FEATURES = 60, 4
N_ASKED = 15
WORDS = ["good", "fine", "plain", "bad", "poor", "bright", "dull", "long"]


def rows():
    """Rows, labels 1 to 3 that follow from them, and queries of ten rows."""
    X = np.array([[DRAW.gauss(0, 1) for _ in range(N_FEATURES)] for _ in range(N_ROWS)])
    y = np.digitize(X @ [1.0, -0.5, 0.25, 0.0], [-0.5, 0.5]) + 1
    return X, y, np.repeat(np.arange(N_ROWS // 10), 10)


def learners():
    """Learners by the names of their files: of ordered labels, and of rankings."""
    seeded = {"random_state": 0, "max_iter": 3}
    ordinal = {
        "prank": rc.PRank(**seeded),
        "prank_last": rc.PRank(average=False, tie="strict", **seeded),
        "cusum": rc.CuSumRank(**seeded),
        "cusum_pa": rc.CuSumRank(update="pa1", average=False, **seeded),
        "voted": rc.VotedPRank(max_hypotheses=20, **seeded),
        "oap": rc.OAPBPM(n_estimators=5, **seeded),
        "bagging": rc.OAPBagging(n_estimators=5, output="mean", **seeded),
        "voting": rc.OAPVoting(n_estimators=5, **seeded),
        "widrow_hoff": rc.WidrowHoff(**seeded),
        "multiclass": rc.MulticlassPerceptron(**seeded),
        "kernel_prank": rc.KernelPRank(kernel="rbf", budget=20, **seeded),
        "kernel_cusum": rc.KernelCuSumRank(kernel="poly", **seeded),
        "kernel_oap": rc.KernelOAPBPM(n_estimators=3, **seeded),
        "calibrated": rc.CalibratedOrdinal(rc.PRank(**seeded)),
        "scaled": make_pipeline(StandardScaler(), rc.PRank(**seeded)),
        "clipped": make_pipeline(MinMaxScaler(clip=True), rc.PRank(**seeded)),
    }
    ranking = {
        "pairwise": rc.PairwisePerceptron(random_state=0, max_iter=3),
        "committee": rc.PairwisePerceptron("committee", random_state=0, max_iter=3),
        "stumps": rc.RankBoost(10),
        "trees": rc.RankBoost(5, max_leaf_nodes=4, min_samples_leaf=5, random_state=0),
        "bipartite": rc.BipartiteRankBoost(10, rel=3),
        "svm": rc.RankSVM(random_state=0),
        "kernel_svm": rc.RankSVM(kernel="rbf", random_state=0),
    }
    if hasattr(rc, "OrdinalBoost"):
        small = {"n_estimators": 5, "max_leaf_nodes": 4, "min_samples_leaf": 5}
        for tasks in ["vector", "shared", "separate", "mixed", "average"]:
            ordinal[f"boost_{tasks}"] = rc.OrdinalBoost(tasks=tasks, **small)
        cumulative = rc.OrdinalBoost(tasks="shared", link="cumulative", **small)
        ordinal["boost_cumulative"] = cumulative
    return ordinal, ranking


def with_margin():
    """Learners with a margin of thresholds, if there are such."""
    try:
        seeded = {"random_state": 0, "max_iter": 3, "margin": 0.5}
        return {
            "margin": rc.PRank(**seeded),
            "margin_voted": rc.VotedPRank(max_hypotheses=20, **seeded),
            "margin_oap": rc.OAPBPM(n_estimators=5, **seeded),
            "margin_kernel": rc.KernelPRank(kernel="poly", budget=20, **seeded),
        }
    except TypeError:
        return {}


def from_clicks(X, qid):
    """A learner of clicks, if there is one."""
    try:
        from rankcore.clicks.online import PairwiseGradientRanker
    except ImportError:
        return {}
    ranker = PairwiseGradientRanker(length=5)
    for query in np.unique(qid):
        documents = X[qid == query]
        shown = ranker.rank(documents, seed=int(query))
        ranker.partial_fit(documents, shown, documents[shown, 0] > 0)
    return {"gradient": (ranker, X)}


def with_scale(X, y, qid):
    """Rankers that scale features of different deviations."""
    wide = X * [1.0, 300.0, 0.5, 4000.0]
    for variant in ("averaged", "committee"):
        model = rc.PairwisePerceptron(variant, random_state=0, max_iter=3)
        yield f"wide_{variant}", model.fit(wide, y, qid=qid), X


def named(X, y):
    """Learners of labels of text and dates, and of columns with names."""
    frame = pd.DataFrame(X, columns=["Größe", "ends in zero\0", "c d", ""])
    words = np.array(["schlecht", "gut", "sehr gut"])
    for name, classes in {
        "labels": words,
        "wide_labels": words.astype("U40"),
        "byte_labels": np.array([b"bad", b"good", b"fine"]),
        "dates": np.array(["2020", "2021", "2022"], dtype="datetime64[Y]"),
    }.items():
        yield name, rc.PRank(random_state=0).fit(X, classes[y - 1], classes=classes), X
    yield "names", rc.PRank(random_state=0).fit(frame, y), frame
    scaled = make_pipeline(StandardScaler(), rc.PRank(random_state=0))
    yield "scaled_names", scaled.fit(frame, y), frame


def online(X):
    """A ranker that learned from clicks on its own lists."""
    from rankcore.clicks import PairwiseGradientRanker

    ranker = PairwiseGradientRanker(0.1, length=5)
    for seed in range(20):
        shown = ranker.rank(X[:10], seed=seed)
        ranker.partial_fit(X[:10], shown, [DRAW.random() < 0.4 for _ in shown])
    return ranker


def texts(y):
    """Short texts that follow the labels."""
    return [" ".join(DRAW.choices(WORDS[label - 1 :], k=4)) for label in y]


def values(model, X):
    """Results of a model for rows by the name of the method, and the names of its columns."""
    said = {}
    if hasattr(model, "feature_names_in_"):
        said["feature_names_in_"] = model.feature_names_in_.tolist()
    for method in ["predict", "decision_function", "predict_proba"]:
        try:
            found = getattr(model, method)(X)
        except AttributeError:
            continue
        said[method] = [*map(as_text, np.ravel(found))]
    return said


def as_text(value):
    """A number as a hexadecimal float; a label in words."""
    return float(value).hex() if isinstance(value, np.number) else str(value)


def main(folder, *chosen):
    """Write the files of all models, or of those chosen."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    X, y, qid = rows()
    ordinal, ranking = learners()
    ordinal |= with_margin()
    fitted = {name: (model.fit(X, y), X) for name, model in ordinal.items()}
    fitted |= {name: (model.fit(X, y, qid=qid), X) for name, model in ranking.items()}
    fitted |= from_clicks(X, qid)
    fitted |= {name: (model, rows) for name, model, rows in with_scale(X, y, qid)}
    said = texts(y)
    fitted["texts"] = make_pipeline(TfidfVectorizer(), rc.PRank(random_state=0)).fit(said, y), said
    kinds = [[WORDS[label]] for label in y]
    fitted["kinds"] = make_pipeline(OneHotEncoder(), rc.PRank(random_state=0)).fit(kinds, y), kinds
    fitted |= {name: (model, rows_of_it) for name, model, rows_of_it in named(X, y)}
    fitted["online"] = online(X), X
    for old in folder.iterdir():
        old.unlink()
    written = {}
    for name, (model, rows_of_it) in fitted.items():
        if chosen and name not in chosen:
            continue
        try:
            rc.save(model, folder / f"{name}.rank")
        except (TypeError, ValueError) as error:
            print(f"{name}: {error}")
            continue
        written[name] = values(model, rows_of_it[:N_ASKED])
    asked = {"X": [[value.hex() for value in row] for row in X[:N_ASKED].tolist()]}
    asked |= {"texts": said[:N_ASKED], "kinds": kinds[:N_ASKED]}
    document = asked | {"models": written}
    (folder / "predictions.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
