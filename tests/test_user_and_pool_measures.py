"""ERR, RBP, and measures that tell unjudged documents apart: every order of ties, other tools."""

import math
import shutil
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankcore.metrics import CONVENTIONS, Convention, compare_evaluations, evaluate
from rankcore.metrics.names import greater_is_better, parse
from strategies import examples
from test_measures import orders

# The label of a document in no pool, in the plain measures.
NOBODYS = None


def plain_err(labels, k, most):
    value, left = Fraction(0), Fraction(1)
    for place, label in enumerate(labels[:k], 1):
        chance = Fraction(2 ** max(label or 0, 0) - 1, 2**most)
        value += left * chance / place
        left *= 1 - chance
    return value


def plain_rbp(labels, k, p, rel):
    if rel is None:
        most = max(1, *(label or 0 for label in labels))
        gains = [Fraction(max(label or 0, 0), most) for label in labels]
    else:
        gains = [Fraction(int((label or 0) >= rel)) for label in labels]
    return (1 - p) * sum(gain * p**i for i, gain in enumerate(gains[:k]))


def plain_residual(labels, p):
    unknown = [i for i, label in enumerate(labels) if label is NOBODYS or label < 0]
    if not unknown:
        return Fraction(0)
    return p ** len(labels) + (1 - p) * sum(p**i for i in unknown)


def relevant(label):
    return label is not NOBODYS and label >= 1


def plain_bpref(labels):
    n = sum(map(relevant, labels))
    others = sum(label == 0 for label in labels)
    if n == 0:
        return Fraction(0)
    value = Fraction(0)
    for i, label in enumerate(labels):
        if relevant(label):
            before = sum(one == 0 for one in labels[:i])
            value += 1 - Fraction(min(before, n), min(others, n)) if before else 1
    return value / n


def plain_found(labels, k):
    return sum(map(relevant, labels[:k]))


def plain_relative_precision(labels, k):
    n = sum(map(relevant, labels))
    return Fraction(plain_found(labels, k), min(n, k)) if n else Fraction(0)


def plain_r_multiple(labels, x):
    n = sum(map(relevant, labels))
    k = int(x * n + 0.9)
    return Fraction(plain_found(labels, k), k) if n and k else Fraction(0)


def plain_f1(labels, k):
    """Return the harmonic mean of precision and recall."""
    found, n = plain_found(labels, k), sum(map(relevant, labels))
    if not found:
        return Fraction(0)
    precision, recall = Fraction(found, k), Fraction(found, n)
    return 2 / (1 / precision + 1 / recall)


@st.composite
def pools(draw, max_size=6):
    n = draw(st.integers(1, max_size))
    label = st.sampled_from([0, 0, 1, 2, 3, -1, NOBODYS])
    labels = draw(st.lists(label, min_size=n, max_size=n))
    return labels, draw(st.lists(st.sampled_from([0.5, 1.5, 2.5]), min_size=n, max_size=n))


PLAIN = {
    "ERR@3": lambda o: plain_err(o, 3, 4),
    "ERR(max_rel=3)": lambda o: plain_err(o, 99, 3),
    "RBP@2": lambda o: plain_rbp(o, 2, Fraction(4, 5), None),
    "RBP(p=0.5,rel=2)": lambda o: plain_rbp(o, 99, Fraction(1, 2), 2),
    "rbp_resid(p=0.5)": lambda o: plain_residual(o, Fraction(1, 2)),
    "judged@3": lambda o: Fraction(sum(y is not NOBODYS for y in o[:3]), min(3, len(o))),
    "judged": lambda o: Fraction(sum(y is not NOBODYS for y in o), len(o)),
    "unj@3": lambda o: Fraction(sum(y is NOBODYS or y < 0 for y in o[:3]), 3),
    "bpref": plain_bpref,
    "hit_rate": lambda o: any(map(relevant, o)),
    "hits": lambda o: plain_found(o, 99),
    "hits@3": lambda o: plain_found(o, 3),
    "F1": lambda o: plain_f1(o, len(o)),
    "F1@3": lambda o: plain_f1(o, 3),
    "precision": lambda o: Fraction(plain_found(o, 99), len(o)),
    "relative_P@3": lambda o: plain_relative_precision(o, 3),
    "Rprec_mult@0.6": lambda o: plain_r_multiple(o, 0.6),
    "num_ret": len,
    "num_rel": lambda o: sum(map(relevant, o)),
    "num_nonrel_judged_ret": lambda o: sum(y == 0 for y in o),
}
MEANS = {
    "average": lambda values, greater: sum(values) / len(values),
    "first": lambda values, greater: values[0],
    "last": lambda values, greater: values[-1],
    "optimistic": lambda values, greater: (max if greater else min)(values),
    "pessimistic": lambda values, greater: (min if greater else max)(values),
}


@pytest.mark.parametrize("ties", MEANS)
@given(data=pools())
@settings(max_examples=examples(60), deadline=None)
def test_measures_are_means_over_all_orders_of_ties(ties, data):
    labels, scores = data
    unjudged = np.array([label is NOBODYS for label in labels])
    found = evaluate(
        [label or 0 for label in labels],
        scores,
        metrics=PLAIN,
        unjudged=unjudged,
        convention=Convention(ties=ties),
    )
    ranked = list(orders(labels, scores))
    for name, plain in PLAIN.items():
        expected = MEANS[ties]([plain(order) for order in ranked], greater_is_better(name))
        assert found[name] == pytest.approx(float(expected), abs=1e-13), name  # some tens of sums


def test_a_thousand_tied_documents_are_averaged():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 1000)
    tied = evaluate(labels, np.zeros(1000), metrics=["ERR", "RBP", "bpref"])
    drawn = [
        evaluate(labels, rng.random(1000), metrics=["ERR", "RBP", "bpref"]) for _ in range(2000)
    ]
    for name in tied:
        values = np.array([one[name] for one in drawn])
        assert abs(values.mean() - tied[name]) < 4 * values.std() / math.sqrt(len(values))


def test_measures_without_expectation_reject_ties():
    for name in ("infAP", "IPrec@0.5", "11pt_avg", "G", "binG", "ndcg_rel", "Rndcg"):
        with pytest.raises(ValueError, match="in closed form: choose another ties=.*'q'"):
            evaluate([1, 0], [1, 1], qid=["q", "q"], metrics=name)
        assert 0 < evaluate([1, 0], [2, 1], metrics=name)[name] <= 1


def test_labels_above_the_maximum_of_err_are_rejected():
    with pytest.raises(ValueError, match=r"labels up to 4: name the maximum, as in 'ERR\(max_r"):
        evaluate([5, 0], [1, 2], metrics="ERR@10")
    assert evaluate([5, 0], [2, 1], metrics="ERR(max_rel=5)")["ERR(max_rel=5)"] == 31 / 32


def test_versions_of_trec_eval_differ_as_documented():
    # Four relevant documents; .3 of them are 1 to version 10 and 2 to version 9.
    labels, scores = [1, 0, 0, 1, 1, 1], [6, 5, 4, 3, 2, 1]
    assert evaluate(labels, scores, metrics="IPrec@0.3", convention="trec_eval")["IPrec@0.3"] == 1
    old = evaluate(labels, scores, metrics="IPrec@0.3", convention="trec_eval-9")
    assert old["IPrec@0.3"] == pytest.approx(4 / 6)
    # Scores that differ in double precision only.
    apart = {"docid": ["a", "b"], "metrics": "mrr"}
    scores = [1.0 + 1e-12, 1.0]
    assert evaluate([1, 0], scores, convention="trec_eval", **apart)["mrr"] == 1
    assert evaluate([1, 0], scores, convention="trec_eval-10", **apart)["mrr"] == 1
    assert evaluate([1, 0], scores, convention="trec_eval-9", **apart)["mrr"] == 0.5
    assert CONVENTIONS["trec"] == CONVENTIONS["trec_eval"]


def test_short_queries_follow_the_letor_script():
    labels, scores, qid = [0, 1, 1, 1, 1], [2, 1, 3, 2, 1], [1, 1, 2, 2, 2]
    asked = {"qid": qid, "metrics": ["P@3", "ndcg@3"]}
    third = evaluate(labels, scores, convention="letor3", **asked)
    assert dict(third) == {"P@3": 0.5, "ndcg@3": 0.5}
    assert evaluate(labels, scores, convention="letor4", **asked)["P@3"] == pytest.approx(2 / 3)


def test_measures_without_a_mean_have_values_by_query():
    y, s, qid = [1, 0, 0, 0, 1, 0], [2, 1, 1, 2, 1, 3], [1, 1, 2, 2, 3, 3]
    found = evaluate(y, s, qid=qid, metrics=["map", "gm_map", "num_q", "num_rel"])
    assert found.per_query["gm_map"].tolist() == found.per_query["map"].tolist() == [1, 0, 0.5]
    assert found["gm_map"] == pytest.approx((1 * 0.00001 * 0.5) ** (1 / 3))
    assert found["num_q"] == 3
    assert found["num_rel"] == 2
    assert str(found).splitlines()[3].split() == ["num_q", "3", "3"]
    comparison = compare_evaluations({"a": found, "b": found})
    assert [contrast.measure for contrast in comparison] == ["map"]
    counts = evaluate(y, s, qid=qid, metrics="num_q")
    with pytest.raises(ValueError, match="a measure with a mean over queries is required"):
        compare_evaluations({"a": counts, "b": counts})


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("P", [f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)]),
        ("success", ["success_1", "success_5", "success_10"]),
        ("unj", ["unj_5", "unj_10", "unj_20"]),
        ("P.5,7,3", ["P_3", "P_5", "P_7"]),
        ("Rprec_mult.5.0,0.2,0.35", ["Rprec_mult_0.20", "Rprec_mult_0.35", "Rprec_mult_5.00"]),
        ("11pt_avg..25,.5", ["11pt_avg_.25,.5"]),
        ("ndcg.1=3,2=9", ["ndcg_1=3,2=9"]),
        ("utility.2,-1,0,0", ["utility_2,-1,0,0"]),
        ("set_F.2", ["set_F_2"]),
        ("rbp.p=0.5", ["rbp_p=0.5"]),
        ("SetF(beta=2)", ["SetF(beta=2)"]),
        ("Judged@5", ["Judged@5"]),
    ],
)
def test_names_of_trec_eval_are_accepted(name, titles):
    assert [title for title, _ in parse(name)] == titles


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("utility.1,2", "4 numbers"),
        ("iprec_at_recall.x", "numbers from 0"),
        ("ndcg.1=3,2", "gains must be written LABEL=GAIN"),
        ("rbp.0.5", "takes p=NUMBER"),
        ("rbp.p=2", "1 number from 0 to 1"),
        ("RBP(p=2)", "p must be a number from 0 to 1"),
        ("IPrec", "requires a number, such as IPrec@0.5"),
        ("IPrec@7", "recall must be a number from 0 to 1"),
        ("P@2.5", "a cut-off must be a whole number; got '2.5'"),
        ("success.0", "at least 1"),
        ("set_P@5", "has no cut-off"),
        ("relative_P(rel=1)", "requires a cut-off"),
    ],
)
def test_unknown_names_are_rejected(name, message):
    with pytest.raises(ValueError, match=message):
        parse(name)


def test_masks_are_checked():
    with pytest.raises(ValueError, match="unjudged must be 2 booleans"):
        evaluate([1, 0], [1, 2], metrics="bpref", unjudged=[0, 1])


# ---------------------------------------------------------------- the tools


def pool(seed):
    """Return a run and judgments of which some are missing and some were left out of the sample."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(12):
        ids = [f"d{i}" for i in rng.permutation(60)]
        run[str(query)] = {one: float(rng.integers(0, 30)) for one in ids[:40]}
        labels = rng.choice([0, 0, 0, 1, 2, 4, -1], 30)
        labels[0] = query % 3  # some queries have nothing else
        qrels[str(query)] = {one: int(y) for one, y in zip(ids[15:45], labels, strict=True)} | {
            "never-found": int(query % 3 > 0)
        }
    return run, qrels


def joined(run, qrels, metrics, convention):
    from rankcore.datasets import Qrels, Run, join_run

    rows = join_run(Run.from_dict(run), Qrels.from_dict(qrels))
    return evaluate(
        rows.y,
        rows.s,
        qid=rows.qid,
        docid=rows.docid,
        retrieved=rows.retrieved,
        unjudged=rows.unjudged,
        metrics=metrics,
        convention=convention,
    )


@pytest.mark.parametrize("seed", range(4))
def test_measures_equal_trec_eval(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytrec_eval = pytest.importorskip("pytrec_eval")
    names = sorted(
        pytrec_eval.supported_measures - {"runid", "num_q", "relstring", "prefs_num_prefs_poss"}
    )
    names = [name for name in names if "prefs" not in name and "avgjg" not in name]
    names = [name for name in names if name not in ("ndcg_p", "yaap")]
    assert len(names) > 30
    run, qrels = pool(seed)
    expected = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    found = joined(run, qrels, names, "trec_eval-9")
    checked = set()
    for query, values in expected.items():
        row = found.qid.tolist().index(query)
        for name, value in values.items():
            got = found.per_query[name][row]
            if name.startswith("gm_"):
                got = math.log(max(got, 0.00001))
            assert got == pytest.approx(value, abs=1e-12), (query, name)
            checked.add(name)
    assert checked == set(found)


def test_measures_equal_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    run, qrels = pool(7)
    apart = {
        query: {one: score + i * 1e-3 for i, (one, score) in enumerate(found.items())}
        for query, found in run.items()
    }
    names = ["Judged@10", "Bpref", "infAP", "SetP", "SetF", "Success@5", "IPrec@0.2", "NumRel"]
    if shutil.which("perl"):
        names.append("ERR@20")
    asked = {name: ir_measures.parse_measure(name) for name in names}
    found = joined(apart, qrels, names, "trec_eval-9")
    for name, measure in asked.items():
        per_query = {
            one.query_id: one.value for one in ir_measures.iter_calc([measure], qrels, apart)
        }
        for query, value in zip(found.qid.tolist(), found.per_query[name], strict=True):
            # gdeval prints five digits
            digits = 5.1e-6 if name == "ERR@20" else 1e-12
            assert value == pytest.approx(per_query.get(query, 0.0), abs=digits), (query, name)
