"""Models for the Learning to Rank plugins of Elasticsearch and OpenSearch, and for Apache Solr."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankcore.exporters.boosters import (
    LARGEST,
    before_slack,
    dump,
    single,
    singles,
    strict_trees,
    trees_of_numbers,
)
from rankcore.exporters.described import Described, Files
from rankcore.exporters.reduced import Linear, Tree, UnsupportedModelError, as_linear

# Powers of two whose inverse is normal in single precision.
MOST_DOUBLINGS = 126


@dataclass(frozen=True)
class Term:
    """A term ``weight * (value - mean) / deviation`` of a sum."""

    name: str
    weight: float
    mean: float
    deviation: float

    @property
    def is_plain(self) -> bool:
        """Whether the value is not normalised."""
        return self.mean == 0.0 and self.deviation == 1.0


def terms(linear: Linear, described: Described, target: str) -> list[Term]:
    """Write a weighted sum for targets that normalise features but have no intercept.

    It is in single precision and has the features of nonzero weight, or all if there are none. The
    intercept is added to the mean of the feature with the maximum weight.
    """
    names = described.named(target)
    factor, summand = linear.columns.affine()
    source = linear.columns.source
    weights = linear.weights
    intercept = linear.intercept
    if np.unique(source).size < source.size:  # a repeated feature
        weights, intercept = linear.folded(described.n_features)
        source = np.arange(described.n_features)
        factor, summand = np.ones(source.size), np.zeros(source.size)
    used = weights != 0.0
    if not used.any():
        if intercept:
            raise UnsupportedModelError(
                f"{target} cannot express a constant model; all scores are {intercept!r}"
            )
        used[:] = True
    if intercept:
        strongest = int(np.argmax(np.abs(weights * factor)))
        summand = summand.copy()
        summand[strongest] += intercept / weights[strongest]
    written = []
    for column in np.flatnonzero(used).tolist():
        what = f"{target}: the feature {names[source[column]]!r}"
        deviation = single(1.0 / factor[column], what)
        if deviation <= 0.0:
            raise UnsupportedModelError(
                f"{what} requires a deviation that single precision can hold; got "
                f"{1.0 / factor[column]!r}: scale the feature"
            )
        written.append(
            Term(
                names[int(source[column])],
                single(float(weights[column]), what),
                single(float(-summand[column] / factor[column]) + 0.0, what),
                deviation,
            )
        )
    return written


# ------------------------------------------------------------------------ Elasticsearch, OpenSearch


def export_elasticsearch(described: Described, path: Path, *, name: str | None = None) -> Files:
    """Write the body of ``POST _ltr/_featureset/FEATURES/_createmodel``.

    ``name`` of the model defaults to the name of the file.
    """
    return _create_model(described, path, name, "elasticsearch")


def export_opensearch(described: Described, path: Path, *, name: str | None = None) -> Files:
    """Write what `export_elasticsearch` writes; absent features follow the path of NaN."""
    return _create_model(described, path, name, "opensearch")


def _create_model(described: Described, path: Path, name: str | None, target: str) -> Files:
    linear = as_linear(described, target)
    names = described.named(target)
    if linear is None:
        trees = strict_trees(described, target)
        if target == "elasticsearch":  # there an absent feature is 0
            trees = [tree.of_numbers() for tree in trees]
        definition: Any = dump(trees, names)
        model: dict[str, Any] = {"type": "model/xgboost+json"}
    else:
        sum_terms = terms(linear, described, target)
        definition = {term.name: term.weight for term in sum_terms}
        model = {"type": "model/linear"}
        normalizers = {
            term.name: {"standard": {"mean": term.mean, "standard_deviation": term.deviation}}
            for term in sum_terms
            if not term.is_plain
        }
        if normalizers:
            model["feature_normalizers"] = normalizers
    model["definition"] = json.dumps(definition, allow_nan=False)
    body = {"model": {"name": name or path.stem, "model": model}}
    return {path: json.dumps(body, allow_nan=False, indent=1) + "\n"}


# ------------------------------------------------------------------------ Solr


def export_solr(
    described: Described, path: Path, *, name: str | None = None, store: str | None = None
) -> Files:
    """Write a LinearModel or a MultipleAdditiveTreesModel for Solr's model store.

    ``name`` of the model defaults to the name of the file, ``store``, its feature store, to Solr's
    default.
    """
    linear = as_linear(described, "solr")
    names = described.named("solr")
    if linear is None:
        kind = "MultipleAdditiveTreesModel"
        trees = trees_of_numbers(described, "solr")
        scales = _solr_scales(trees, names)
        features = [Term(names[f], 1.0, 0.0, 1.0 / scale) for f, scale in scales.items()]
        params: dict[str, Any] = {"trees": [_solr_tree(tree, names, scales) for tree in trees]}
    else:
        kind = "LinearModel"
        features = terms(linear, described, "solr")
        params = {"weights": {term.name: term.weight for term in features}}
    model = {
        "class": f"org.apache.solr.ltr.model.{kind}",
        "name": name or path.stem,
        **({} if store is None else {"store": store}),
        "features": [_solr_feature(term) for term in features],
        "params": params,
    }
    return {path: json.dumps(model, allow_nan=False, indent=1) + "\n"}


def _solr_feature(term: Term) -> dict[str, Any]:
    if term.is_plain:
        return {"name": term.name}
    params = {"avg": repr(term.mean), "std": repr(term.deviation)}
    norm = {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": params}
    return {"name": term.name, "norm": norm}


def _solr_scales(trees: list[Tree], names: list[str]) -> dict[int, float]:
    """Find powers of two that make each feature's thresholds expressible in Solr.

    Solr adds 1e-6 to each threshold, in single precision: all numbers above 64 are expressible, but
    few small ones. Multiplication by a power of two is exact.
    """
    every = np.concatenate([tree.features for tree in trees])
    thresholds = np.concatenate([tree.thresholds for tree in trees])
    scales = {}
    for feature in np.unique(every[every >= 0]).tolist():
        wanted = np.unique(thresholds[every == feature])
        _, kept = before_slack(wanted)
        power = 0
        while not before_slack(np.ldexp(wanted, power))[1].all():
            power += 1
            # Normalisers divide by a single-precision number.
            if power > MOST_DOUBLINGS or np.ldexp(np.abs(wanted).max(), power) > LARGEST:
                raise UnsupportedModelError(
                    f"solr cannot express the threshold {float(wanted[~kept][0])!r} of the feature "
                    f"{names[feature]!r}, to which it adds 1e-6 in single precision: its "
                    f"thresholds, up to {float(np.abs(wanted).max())!r}, are too far apart for "
                    "one scale"
                )
        scales[feature] = 2.0**power
    return scales


def _solr_tree(tree: Tree, names: list[str], scales: dict[int, float]) -> dict[str, Any]:
    inner = ~tree.is_leaf
    bounds = np.zeros(tree.features.size)
    scale = np.array([scales[feature] for feature in tree.features[inner].tolist()])
    bounds[inner] = before_slack(tree.thresholds[inner] * scale)[0]
    values = singles(tree.values, "a leaf")

    def node(number: int) -> dict[str, Any]:
        if not inner[number]:
            return {"value": repr(float(values[number]))}
        left, right = tree.children[number].tolist()
        return {
            "feature": names[int(tree.features[number])],
            "threshold": repr(float(bounds[number])),
            "left": node(left),
            "right": node(right),
        }

    return {"weight": "1", "root": node(0)}
