"""ONNX files, and pipelines that skl2onnx converts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankcore._core.declaration import public_learners
from rankcore._core.model_spec import has_description
from rankcore.exporters.checking import library
from rankcore.exporters.described import Described, Files, describe
from rankcore.exporters.onnx_graph import build
from rankcore.exporters.onnx_operators import ML, Node
from rankcore.exporters.reduced import UnsupportedModelError

# What the operators require.
OPSET = 18
ML_OPSET = 3
IR = 8
WIDE = ("scores", "probabilities")  # outputs with a column for each rank
_KINDS = {"f": 11, "i": 7, "U": 8}  # TensorProto's double, int64, string


def export_onnx(described: Described, path: Path, *, dtype: str = "float32") -> Files:
    """Write a graph from ``rows``, of this dtype, to the outputs of `onnx_graph.build`.

    All is computed in double precision.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {dtype!r}")
    classes = described.classes
    if classes is not None and classes.dtype.kind not in "biufUO":
        raise UnsupportedModelError(f"ONNX labels must be numbers or text; got {classes.dtype}")
    onnx = library("onnx", "onnx")
    helper = onnx.helper
    graph, outputs = build(described, "rows")
    nodes = []
    for node in graph.nodes:
        tensors = _tensors(onnx, node.attributes)
        nodes.append(
            helper.make_node(
                node.operator, node.inputs, [node.output], domain=node.domain, **tensors
            )
        )
    written = []
    for name, tensor in outputs.items():
        nodes.append(helper.make_node("Identity", [tensor], [name]))
        written.append(_output(onnx, name, described))
    kind = onnx.TensorProto.FLOAT if dtype == "float32" else onnx.TensorProto.DOUBLE
    model = helper.make_model(
        helper.make_graph(
            nodes,
            described.learner,
            [helper.make_tensor_value_info("rows", kind, ["n", described.n_features])],
            written,
            [_initializer(onnx, name, array) for name, array in graph.arrays.items()],
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
        ir_version=IR,
        producer_name="rankcore",
    )
    if described.names is not None:
        helper.set_model_props(model, {"feature_names": "\n".join(described.names)})
    onnx.checker.check_model(model, full_check=True)
    return {path: model.SerializeToString()}


def _tensors(onnx: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """Convert arrays among the attributes of an operator to tensors."""
    return {
        name: onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        for name, value in attributes.items()
    }


def _initializer(onnx: Any, name: str, array: np.ndarray) -> Any:
    if array.dtype.kind == "U":
        texts = [str(value).encode("utf-8") for value in array]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, texts)
    return onnx.numpy_helper.from_array(array, name)


def _output(onnx: Any, name: str, described: Described) -> Any:
    kind = _KINDS[_kind(name, described.classes)]
    shape = ["n", described.n_ranks] if name in WIDE else ["n"]
    return onnx.helper.make_tensor_value_info(name, kind, shape)


def _kind(name: str, classes: np.ndarray | None) -> str:
    """Return the kind of an output: f, i or U."""
    if name != "label" or classes is None:
        return "i" if name == "rank" else "f"
    return {"f": "f", "U": "U", "O": "U"}.get(classes.dtype.kind, "i")


# ------------------------------------------------------------------------ skl2onnx


def register_onnx_converters() -> list[str]:
    """Make ``skl2onnx.to_onnx`` convert the learners, alone or in pipelines.

    The outputs are those of ``rankcore.export(model, path, format="onnx")``. skl2onnx converts
    scalers before the learner, in the precision of its input.

    Returns
    -------
    list of str
        Names of the learners.

    Raises
    ------
    ModuleNotFoundError
        If skl2onnx is not installed.

    Examples
    --------
    >>> import rankcore as rc
    >>> "PRank" in rc.exporters.register_onnx_converters()
    True
    """
    skl2onnx = library("skl2onnx", "skl2onnx")
    kinds = [kind for kind in public_learners() if has_description(kind)]
    for kind in kinds:
        skl2onnx.update_registered_converter(
            kind, f"Rankcore{kind.__name__}", _shapes, _convert, parser=_parse
        )
    return [kind.__name__ for kind in kinds]


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of a learner; called by skl2onnx."""
    skl2onnx = library("skl2onnx", "skl2onnx")
    types = library("skl2onnx.common.data_types", "skl2onnx")
    kinds = {"f": types.DoubleTensorType, "i": types.Int64TensorType, "U": types.StringTensorType}
    operator = scope.declare_local_operator(skl2onnx.get_model_alias(type(model)), model)
    operator.inputs.append(inputs[0])
    described = describe(model)
    for name in _output_names(described):
        kind = kinds[_kind(name, described.classes)]
        operator.outputs.append(scope.declare_local_variable(name, kind()))
    return operator.outputs


def _output_names(described: Described) -> list[str]:
    first = "scores" if described.scoring.form == "classes" else "score"
    names = [] if described.scoring.has_trees_of_tasks else [first]
    names += ["rank", "label"] if described.n_ranks else []
    return [*names, "probabilities"] if described.has_probabilities else names


def _shapes(operator: Any) -> None:
    """Set the shapes of the outputs; called by skl2onnx."""
    n = operator.inputs[0].get_first_dimension()
    for output in operator.outputs:
        wide = output.raw_name in WIDE
        output.type.shape = [n, operator.raw_operator.classes_.size] if wide else [n]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the operators of a learner; called by skl2onnx."""
    onnx = library("onnx", "onnx")
    described = describe(operator.raw_operator)
    prefix = scope.get_unique_variable_name("rankcore") + "_"
    graph, outputs = build(described, operator.inputs[0].full_name, prefix)
    for name, array in graph.arrays.items():
        tensor = _initializer(onnx, name, array)
        texts = array.dtype.kind == "U"
        content = [value.encode("utf-8") for value in array.tolist()] if texts else array.ravel()
        container.add_initializer(name, tensor.data_type, [*array.shape], content)
    named = dict(zip(_output_names(described), operator.outputs, strict=True))
    for name, tensor in outputs.items():
        graph.nodes.append(Node("Identity", [tensor], named[name].full_name, "", {}))
    for node in graph.nodes:
        container.add_node(
            node.operator,
            node.inputs,
            [node.output],
            op_domain=node.domain,
            op_version=ML_OPSET if node.domain else OPSET,
            name=scope.get_unique_operator_name(f"rankcore_{node.operator}"),
            **_tensors(onnx, node.attributes),
        )
