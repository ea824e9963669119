"""Plain readers of what we export, written from each engine's documentation and rules.

Elasticsearch, Solr and RankLib hold values, weights and thresholds as 32-bit floats and add in
them; Vespa in doubles. A row is a list of numbers, a name is a key of `row`.
"""

import json
import math
import re
from xml.etree import ElementTree

import numpy as np

F = np.float32


def columns(rows, names):
    return {name: rows[:, j].astype(F) for j, name in enumerate(names)}


def elasticsearch(text, rows, names, absent_is_zero=True):
    """Return the body of create-model: type, definition as a string, normalizers by feature."""
    body = json.loads(text)
    assert body.keys() == {"model"}
    assert body["model"].keys() == {"name", "model"}
    model = body["model"]["model"]
    definition = json.loads(model["definition"])
    values = columns(rows, names)
    if model["type"] == "model/linear":
        assert model.keys() <= {"type", "definition", "feature_normalizers"}
        for name, norm in model.get("feature_normalizers", {}).items():
            values[name] = _normalized(values[name], norm)
        assert definition.keys() <= {*names}  # an unknown feature raises there
        score = np.zeros(len(rows), dtype=F)
        for name, weight in definition.items():
            score = (score + values[name] * F(weight)).astype(F)
        return score
    assert model["type"] == "model/xgboost+json"
    assert model.keys() == {"type", "definition"}
    if absent_is_zero:
        values = {name: np.where(np.isnan(v), F(0), v) for name, v in values.items()}
    return dump(definition, values)


def _normalized(values, norm):
    assert norm.keys() == {"standard"}
    mean, deviation = F(norm["standard"]["mean"]), F(norm["standard"]["standard_deviation"])
    assert deviation > 0
    return ((values - mean) / deviation).astype(F)


def dump(trees, values):
    """XGBoost's dump: the way to `yes` is a value below; a NaN takes `missing`."""
    n = len(next(iter(values.values())))
    score = np.zeros(n, dtype=F)
    for tree in trees:
        score = (score + _dumped(tree, values, n)).astype(F)
    return score


def _dumped(node, values, n):
    if "leaf" in node:
        assert node.keys() == {"nodeid", "leaf"}
        return np.full(n, F(node["leaf"]))
    yes, no = node["children"]
    assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"])
    assert node["missing"] in (node["yes"], node["no"])
    x = values[node["split"]]
    left = np.where(np.isnan(x), node["missing"] == node["yes"], x < F(node["split_condition"]))
    return np.where(left, _dumped(yes, values, n), _dumped(no, values, n))


def solr(text, rows, names):
    """Return a model of Solr: each listed feature has a weight; thresholds are moved by 1e-6."""
    model = json.loads(text)
    kind = model["class"].removeprefix("org.apache.solr.ltr.model.")
    listed = [feature["name"] for feature in model["features"]]
    assert {*listed} <= {*names}
    values = columns(rows, names)
    for feature in model["features"]:  # before a model of either kind sees them
        if "norm" in feature:
            norm = feature["norm"]
            assert norm["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
            average, deviation = F(norm["params"]["avg"]), F(norm["params"]["std"])
            assert deviation > 0
            with np.errstate(over="ignore"):  # infinite, as in Java
                scaled = (values[feature["name"]] - average) / deviation
            values[feature["name"]] = scaled.astype(F)
    if kind == "LinearModel":
        assert {*listed} == model["params"]["weights"].keys()
        score = np.zeros(len(rows), dtype=F)
        for name in listed:
            score = (score + values[name] * F(model["params"]["weights"][name])).astype(F)
        return score
    assert kind == "MultipleAdditiveTreesModel"

    def walk(node):
        if "feature" not in node:
            assert node.keys() == {"value"}
            return np.full(len(rows), F(node["value"]))
        assert node["feature"] in listed
        left = values[node["feature"]] <= F(F(node["threshold"]) + F(1e-6))
        return np.where(left, walk(node["left"]), walk(node["right"]))

    score = np.zeros(len(rows), dtype=F)
    for tree in model["params"]["trees"]:
        score = (score + F(tree["weight"]) * walk(tree["root"])).astype(F)
    return score


def ranklib(text, rows):
    """Return a model file of RankLib: features from 1, values up to a threshold go left."""
    lines = text.splitlines()
    rows = np.nan_to_num(rows).astype(F)  # what is unknown there is 0
    if lines[0] == "## Linear Regression":
        (content,) = [line for line in lines if line and not line.startswith("##")]
        pairs = [pair.split(":") for pair in content.split()]
        score = np.full(len(rows), float(dict(pairs)["0"]))
        for number, weight in pairs:
            if number != "0":
                score += float(weight) * rows[:, int(number) - 1].astype(np.float64)
        return score
    assert lines[0] == "## LambdaMART"
    root = ElementTree.fromstring("\n".join(line for line in lines if not line.startswith("##")))
    assert root.tag == "ensemble"

    def walk(split):
        first = split[0]
        if first.tag == "output":
            return np.full(len(rows), F(first.text))
        assert [child.tag for child in split] == ["feature", "threshold", "split", "split"]
        assert [split[2].get("pos"), split[3].get("pos")] == ["left", "right"]
        left = rows[:, int(first.text) - 1] <= F(split[1].text)
        return np.where(left, walk(split[2]), walk(split[3]))

    score = np.zeros(len(rows), dtype=F)
    for tree in root:
        score = (score + F(tree.get("weight")) * walk(tree[0])).astype(F)
    return score


def vespa(text, rows, names):
    """Return the expression of a rank profile, as Python: comparisons with NaN are false."""
    found = re.fullmatch(
        r"rank-profile (\w+) \{\s+first-phase \{\s+expression \{(.*)\}\s+\}\s+\}\s*", text, re.S
    )
    expression = " ".join(found[2].split())
    # Longest first: one name may begin another.
    places = {name: f"x[{j}]" for j, name in enumerate(names)}
    pattern = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    expression = re.sub(rf"(?<![\w.])(?:{pattern})(?![\w(])", lambda m: places[m[0]], expression)
    code = compile(expression.replace("if (", "choose("), "expression", "eval")
    functions = {"choose": lambda c, a, b: a if c else b, "isNan": math.isnan}
    return np.array([eval(code, functions, {"x": row}) for row in rows.tolist()])
