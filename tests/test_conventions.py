"""The conventions named after tools, against the tools themselves on random judged queries."""

import json
import math
import re
import warnings
from dataclasses import fields

import numpy as np
import pytest

from rankcore.metrics import CONVENTIONS, Convention, evaluate, ndcg_score
from rankcore.metrics.conventions import resolve
from reference import ranx_values

# The tools sum some tens of doubles in another order than we do.
ROUNDING = 1e-12


def tool(name):
    """Return a tool, imported without the warnings of others about itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def judged(seed, *, longest=40, highest=4, tied=True):
    """Labels, scores and sizes of queries: long, short, of one document, with nothing relevant."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[1, 1, 2, longest], rng.integers(1, longest + 1, 30)])
    n = sizes.sum()
    labels = rng.integers(0, highest + 1, n) * rng.integers(0, 2, n)
    labels[0], labels[1] = 0, highest
    ends = np.cumsum(sizes)
    for query in rng.choice(np.arange(4, sizes.size), 5, replace=False):
        labels[ends[query] - sizes[query] : ends[query]] = 0
    scores = rng.integers(0, 8, n) / 4 if tied else rng.normal(size=n)
    return labels, scores.astype(float), sizes


def row_queries(sizes):
    return np.repeat(np.arange(sizes.size), sizes)


def parts(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


TIED = pytest.mark.parametrize("tied", [True, False])
SEEDS = pytest.mark.parametrize("seed", range(4))


@SEEDS
@TIED
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_sklearn_convention_equals_scikit_learn(seed, tied, k):
    metrics = tool("sklearn.metrics")
    labels, scores, sizes = judged(seed, tied=tied)
    name = "ndcg" if k is None else f"ndcg@{k}"
    with pytest.raises(ValueError, match="query 0 has one document"):
        evaluate(labels, scores, qid=row_queries(sizes), metrics=name, convention="sklearn")
    several = np.repeat(sizes > 1, sizes)
    labels, scores, sizes = labels[several], scores[several], sizes[sizes > 1]
    found = evaluate(
        labels,
        scores,
        qid=row_queries(sizes),
        metrics=[name, name[1:], "map"],
        convention="sklearn",
    )
    for query, rows in enumerate(parts(sizes)):
        pair = labels[None, rows], scores[None, rows]
        values = {metric: found.per_query[metric][query] for metric in found}
        assert values[name] == pytest.approx(metrics.ndcg_score(*pair, k=k), abs=ROUNDING)
        assert values[name[1:]] == pytest.approx(metrics.dcg_score(*pair, k=k), rel=ROUNDING)
        if k is not None:
            continue  # average precision is the same for every k
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a query without relevant documents
            expected = metrics.average_precision_score(labels[rows] >= 1, scores[rows])
        assert values["map"] == pytest.approx(expected, abs=ROUNDING)


@SEEDS
@TIED
def test_trec_eval_convention_equals_trec_eval(seed, tied):
    pytrec_eval = tool("pytrec_eval")
    labels, scores, sizes = judged(seed, tied=tied)
    rng = np.random.default_rng(seed)
    # Judged as spam, but never all of a query: trec_eval then reads what it has not written.
    first = np.cumsum(sizes) - sizes
    spam = rng.random(labels.size) < 0.1
    spam[first] = False
    labels[spam] = -1
    scores += rng.integers(-1, 2, scores.size) * 1e-9  # ties in float32
    retrieved = rng.random(labels.size) < 0.8
    qid = np.array([f"q{i}" for i in row_queries(sizes)])
    docid = rng.permutation([f"d{i}" for i in range(labels.size)])
    qrels = {q: {} for q in qid}
    run = {q: {} for q in qid}
    for q, d, label, score, there in zip(qid, docid, labels, scores, retrieved, strict=True):
        qrels[q][d] = int(label)
        if there:
            run[q][d] = float(score)
    run = {q: found for q, found in run.items() if found}
    names = ["map", "recip_rank", "Rprec", "ndcg", "P.5,10,100", "recall.5,100", "success.1,5"]
    names += ["ndcg_cut.5,10,100", "map_cut.5,100"]
    expected = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    found = evaluate(
        labels,
        scores,
        qid=qid,
        docid=docid,
        retrieved=retrieved,
        metrics=names,
        convention="trec_eval-9",
    )
    assert len(found) == 16
    for name, values in found.per_query.items():
        for q, value in zip(found.qid, values, strict=True):
            assert value == pytest.approx(expected.get(q, {}).get(name, 0.0), abs=ROUNDING)


def lightgbm_values(lightgbm, labels, scores, sizes, cuts):
    """Its own metrics of given scores: a training that adds nothing to them."""
    data = lightgbm.Dataset(
        np.zeros((labels.size, 1)),
        label=labels,
        group=sizes,
        init_score=scores,
        params={"verbosity": -1, "feature_pre_filter": False},
    )
    recorded = {}
    options = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": cuts}
    lightgbm.train(
        options | {"verbosity": -1, "learning_rate": 1e-300, "num_threads": 1},
        data,
        num_boost_round=1,
        valid_sets=[data],
        valid_names=["data"],
        callbacks=[lightgbm.record_evaluation(recorded)],
    )
    return {name: values[0] for name, values in recorded["data"].items()}


@SEEDS
@TIED
def test_lightgbm_convention_equals_lightgbm(seed, tied):
    lightgbm = tool("lightgbm")
    labels, scores, sizes = judged(seed, tied=tied)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that a constant column has no split
        expected = lightgbm_values(lightgbm, labels, scores, sizes, [1, 3, 10, 100])
    assert len(expected) == 8
    found = evaluate(
        labels, scores, qid=row_queries(sizes), metrics=list(expected), convention="lightgbm"
    )
    assert dict(found) == pytest.approx(expected, abs=ROUNDING)


@SEEDS
@TIED
@pytest.mark.parametrize("minus", ["", "-"])
def test_xgboost_convention_equals_xgboost(seed, tied, minus):
    xgboost = tool("xgboost")
    for highest, stems in [(4, ["ndcg"]), (1, ["ndcg", "map", "pre"])]:
        labels, scores, sizes = judged(seed, highest=highest, tied=tied)
        scores += np.random.default_rng(seed).integers(-1, 2, scores.size) * 1e-9
        names = [f"{stem}@{k}{minus}" for stem in stems for k in (1, 3, 10, 100)]
        names += [f"{stem}{minus}" for stem in stems[:2]]  # these stop at 32
        assert sizes.max() > 32
        data = xgboost.DMatrix(np.zeros((labels.size, 1)), label=labels, base_margin=scores)
        data.set_group(sizes)
        options = {"objective": "rank:ndcg", "eval_metric": names, "base_score": 0.0}
        booster = xgboost.train(options, data, num_boost_round=0)
        report = booster.eval_set([(data, "data")]).split("\t")[1:]
        expected = dict(part.removeprefix("data-").rsplit(":", 1) for part in report)
        assert list(expected) == names
        expected = {name: float(value) for name, value in expected.items()}
        found = evaluate(
            labels, scores, qid=row_queries(sizes), metrics=names, convention="xgboost"
        )
        assert dict(found) == pytest.approx(expected, abs=ROUNDING)
        plain = [name.removesuffix("-") for name in names]
        found = evaluate(
            labels,
            scores,
            qid=row_queries(sizes),
            metrics=plain,
            convention="xgboost" + minus,
        )
        assert list(found.values()) == pytest.approx(list(expected.values()), abs=ROUNDING)


RANX = json.loads(ranx_values.FILE.read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", RANX, ids=range(len(RANX)))
def test_ranx_convention_equals_ranx(case):
    sizes = np.array(case["sizes"])
    found = evaluate(
        case["labels"],
        case["scores"],
        qid=row_queries(sizes),
        metrics=ranx_values.NAMES,
        convention="ranx",
    )
    for name in ranx_values.NAMES:
        expected = np.array(case["values"][name])
        if name.startswith("rbp"):  # ranx does not divide gains by the maximum of the query
            best = [max(1, max(case["labels"][rows])) for rows in parts(sizes)]
            expected = expected / best
        np.testing.assert_allclose(found.per_query[name], expected, rtol=0, atol=ROUNDING)


def letor_ndcg(labels, k):
    """NDCG at k of LETOR's scripts, for labels in the order of the ranking."""
    best = sorted(labels, reverse=True)
    total = ideal = 0.0
    for i in range(min(k, len(labels))):
        divisor = 1.0 if i < 2 else math.log(i + 1) / math.log(2)
        total += (2.0 ** labels[i] - 1) / divisor
        ideal += (2.0 ** best[i] - 1) / divisor
    return total / ideal if ideal else 0.0


@SEEDS
@pytest.mark.parametrize("convention", ["letor3", "letor4"])
def test_letor_convention_equals_the_letor_script(seed, convention):
    labels, scores, sizes = judged(seed)
    names = ["ndcg@1", "ndcg@2", "ndcg@10", "P@10", "map"]
    found = evaluate(
        labels, scores, qid=row_queries(sizes), metrics=names, convention=convention
    ).per_query
    for query, rows in enumerate(parts(sizes)):
        ranked = labels[rows][np.argsort(-scores[rows], kind="stable")].tolist()
        for k in (1, 2, 10):
            expected = 0.0 if len(ranked) < k else letor_ndcg(ranked, k)
            assert found[f"ndcg@{k}"][query] == pytest.approx(expected, abs=ROUNDING)
        counted = convention == "letor4" or len(ranked) >= 10
        assert found["P@10"][query] == counted * sum(label >= 1 for label in ranked[:10]) / 10
        hits = [i for i, label in enumerate(ranked, 1) if label >= 1]
        precisions = [i / place for i, place in enumerate(hits, 1)]
        expected = sum(precisions) / len(precisions) if precisions else 0.0
        assert found["map"][query] == pytest.approx(expected, abs=ROUNDING)


def test_conventions_give_different_values_for_one_ranking():
    # Two queries, of which the second has nothing relevant; printed by the tools themselves.
    labels, scores, qid = [2, 0, 1, 0, 0, 0], [0.3, 0.9, 0.1, 0.3, 0.9, 0.1], [1, 1, 1, 2, 2, 2]
    expected = {
        ("ndcg", "sklearn"): 0.335,
        ("ndcg", "trec_eval"): 0.335,
        ("ndcg", "ranx"): 0.335,
        ("ndcg_burges", "ranx"): 0.330,
        ("ndcg@3-", "xgboost"): 0.330,
        ("ndcg@3", "xgboost-"): 0.330,
        ("ndcg@3", "xgboost"): 0.830,
        ("ndcg@3", "lightgbm"): 0.830,
    }
    for (name, convention), value in expected.items():
        found = evaluate(labels, scores, qid=qid, metrics=name, convention=convention)
        assert round(found[name], 3) == pytest.approx(value, abs=5.1e-4)
    skipping = ndcg_score(labels, scores, qid=qid, gain="linear", empty="skip")
    assert round(skipping, 2) == 0.67


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 0, 0], {"sklearn": 0.7103, "lightgbm": 1, "xgboost": 1, "trec_eval": 0.5, "ranx": 1}),
        (
            [0, 0, 1],
            {"sklearn": 0.7103, "lightgbm": 0.5, "xgboost": 0.5, "trec_eval": 1, "ranx": 0.5},
        ),
    ],
)
def test_constant_scores_follow_the_tie_rule(labels, expected):
    for convention, value in expected.items():
        found = ndcg_score(labels, [1, 1, 1], docid=["a", "b", "c"], convention=convention)
        assert round(found, 4) == value


# ---------------------------------------------------------------- conventions themselves


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"gain": "exp"}, "gain must be one of exp2, linear"),
        ({"discount": "log10"}, "discount must be one of"),
        ({"ties": "random"}, "ties must be one of average, first"),
        ({"empty": "zero"}, "empty must be a finite number, skip or raise"),
        ({"empty": math.nan}, "empty must be"),
        ({"rel": "2"}, "rel must be a finite number"),
        ({"rel": True}, "rel must be a finite number"),
        ({"single": "nan"}, "single must be one of"),
        ({"ap_divisor": "found"}, "no expectation in closed form"),
        ({"ap_divisor": "found", "ties": "pessimistic"}, "no best or worst order"),
        ({"ap_ties": "apart"}, "ap_ties must be one of"),
        ({"cutoff": 0}, "cutoff must be an integer of at least 1"),
        ({"cutoff": 10.0}, "cutoff must be an integer of at least 1"),
        ({"cutoff": 2**63}, r"below 2\*\*63"),
    ],
)
def test_unknown_choices_are_rejected(choice, message):
    with pytest.raises(ValueError, match=message):
        Convention(**choice)


@pytest.mark.parametrize("gain", [3, [[1]], ["a"], [0, math.inf], None])
def test_invalid_gains_are_rejected(gain):
    with pytest.raises(TypeError, match="gain must be"):
        Convention(gain=gain)


def test_options_override_the_convention():
    assert resolve(None) == Convention()
    assert resolve("trec") == CONVENTIONS["trec_eval"]
    assert resolve("ranx", ties="last", rel=None).ties == "last"
    own = Convention(ties="optimistic")
    assert resolve(own) == own
    assert resolve(own, empty=0) == Convention(ties="optimistic", empty=0)
    with pytest.raises(ValueError, match=r"'ligthgbm'; did you mean 'lightgbm'\?"):
        resolve("ligthgbm")
    with pytest.raises(TypeError, match="name or a Convention"):
        resolve(1)


def test_conventions_describe_themselves():
    assert str(Convention()) == "exp2 gain, log2 discount, ties averaged, empty queries 0"
    told = str(CONVENTIONS["trec_eval-9"])
    assert "linear gain" in told
    assert "single_precision=True" in told
    for field in fields(Convention):
        # Without the indentation from CPython 3.13 on.
        assert re.search(rf"^ *{field.name} : ", Convention.__doc__, re.MULTILINE)


def test_divisor_may_be_the_number_of_retrieved_documents():
    # Relevant at 1 and 3 of the first three, four in all.
    found = evaluate(
        [1, 0, 1, 0, 1, 1],
        [6, 5, 4, 3, 2, 1],
        metrics=["map@3"],
        convention=Convention(ties="first", ap_divisor="found"),
    )
    assert found["map@3"] == pytest.approx((1 + 2 / 3) / 2)


def test_short_and_empty_queries_follow_the_convention():
    # LETOR 4 counts short queries as 0; without gain they are left out if requested.
    labels, qid = [0, 0, 1, 0], [1, 1, 2, 2]
    asked = {"k": 3, "convention": "letor4", "per_query": True}
    _, values = ndcg_score(labels, [4, 3, 2, 1], qid=qid, empty="skip", **asked)
    np.testing.assert_array_equal(values, [math.nan, 0.0])
    with pytest.raises(ValueError, match="query 1 has nothing relevant"):
        ndcg_score(labels, [4, 3, 2, 1], qid=qid, empty="raise", **asked)
