"""`to_onnx`: the scores and the classes of a model as an ONNX graph."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankhinge.persistence.errors import ModelFileError

__all__ = ["register_converters", "to_onnx"]

_LINEAR = ("ApproximateRankSVC", "RankSVC", "RankSVCCV", "SVMRanker", "SVMRankerCV")
# Old enough for every runtime of the last years; the graph needs nothing newer.
_OPSET, _IR = 13, 8


class _Node(NamedTuple):
    """One operation: its name, inputs, output and attributes."""

    operation: str
    inputs: list[str]
    output: str
    attributes: dict[str, Any]


class _Recipe(NamedTuple):
    """The operations from ``X`` to ``scores`` (and ``label``), and the constants that they use."""

    nodes: list[_Node]
    constants: dict[str, NDArray[Any]]
    # Whether there is one score for each row, and what labels are: None for a ranker.
    one_score: bool
    labels: np.dtype[Any] | None


def _library(name: str, purpose: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        top = name.partition(".")[0]
        if error.name != top:
            raise
        install = "'rankhinge[onnx]'" if top == "onnx" else top
        raise ModuleNotFoundError(f"{purpose} needs {top}: pip install {install}", name=top) from None


def to_onnx(model: Any, *, dtype: DTypeLike = np.float64) -> Any:
    """Convert a model to an ONNX graph (extra ``onnx``; for pipelines also skl2onnx).

    The graph has an input ``X`` of shape (n, d) and an output ``scores``: `decision_function`, or `predict` of an
    `SVMRanker`. Classifiers also have an output ``label``, which is `predict`. Products are summed in float64 even for
    float32 input, so that only the rounding of the input and the output is lost.

    Parameters
    ----------
    model : fitted RankSVC, SVMRanker, their CV classes, ApproximateRankSVC, or a Pipeline that ends in one
    dtype : dtype, default float64
        The type of the input and the scores: float32 or float64.

    Returns
    -------
    onnx.ModelProto
        ``path.write_bytes(to_onnx(model).SerializeToString())`` writes it to a file.

    Raises
    ------
    ModelFileError
        If the model cannot be converted.
    ModuleNotFoundError
        Without onnx, and for pipelines without skl2onnx.

    Examples
    --------
    >>> import rankhinge
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> graph = rankhinge.to_onnx(rankhinge.RankSVC(bound="convex").fit(scale(X), y)).graph
    >>> [output.name for output in graph.output]
    ['label', 'scores']
    """
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        return _of_pipeline(model, np.dtype(dtype))
    onnx = _library("onnx", "to_onnx")
    recipe = _recipe(model, np.dtype(dtype))
    helper, number = onnx.helper, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node(node.operation, node.inputs, [node.output], name=f"{node.operation}_{k}", **node.attributes)
        for k, node in enumerate(recipe.nodes)
    ]
    scores = helper.make_tensor_value_info("scores", number, ["n"] if recipe.one_score else ["n", _width(model)])
    outputs = [scores]
    if recipe.labels is not None:
        is_indicator = "classes" not in recipe.constants
        shape = ["n", _width(model)] if is_indicator else ["n"]
        outputs = [helper.make_tensor_value_info("label", _tensor_type(onnx, recipe.labels), shape), scores]
    graph = helper.make_graph(
        nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("X", number, ["n", int(model.n_features_in_)])],
        outputs,
        [onnx.numpy_helper.from_array(array, name) for name, array in recipe.constants.items()],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR, producer_name="rankhinge"
    )
    onnx.checker.check_model(made, full_check=True)
    return made


def _tensor_type(onnx: Any, dtype: np.dtype[Any]) -> int:
    return onnx.TensorProto.STRING if dtype.kind in "OU" else onnx.helper.np_dtype_to_tensor_dtype(dtype)


def _width(model: Any) -> int:
    return int(np.atleast_2d(model.coef_).shape[0])


def _classes(model: Any) -> NDArray[Any]:
    """The classes as ONNX knows them: text as objects."""
    classes = np.asarray(model.classes_)
    if classes.dtype.kind in "OU":
        if not all(isinstance(name, str) for name in classes.tolist()):
            raise ModelFileError(f"classes_ are {classes.tolist()}: ONNX takes text or numbers, but not both")
        return classes.astype(object)
    return classes


def _recipe(model: Any, dtype: np.dtype[Any]) -> _Recipe:
    """What a linear model computes, from its public attributes alone."""
    name = type(model).__name__
    if name not in _LINEAR or type(model) is not getattr(importlib.import_module("rankhinge.svm"), name):
        hint = ": it looks for the best candidate of each bag" if name.startswith("Latent") else ""
        raise ModelFileError(f"{name} cannot be converted to ONNX{hint}. Estimators that can: {', '.join(_LINEAR)}")
    is_classifier = hasattr(model, "classes_")
    weights = np.atleast_2d(np.asarray(model.coef_, np.float64)).T
    if weights.shape[0] != int(model.n_features_in_):
        raise ModelFileError(
            f"the model has weights for {weights.shape[0]} of {model.n_features_in_} columns: an ONNX graph has no "
            "column of query ids. Fit without qid_column"
        )
    constants = {"weights": np.ascontiguousarray(weights)}
    nodes = [_Node("Cast", ["X"], "wide", {"to": 11})] if dtype == np.float32 else []
    nodes.append(_Node("MatMul", ["wide" if nodes else "X", "weights"], "products", {}))
    last = "products"
    if is_classifier:
        constants |= {"intercepts": np.asarray(model.intercept_, np.float64)}
        constants |= {"slopes": np.asarray(model.slope_, np.float64)}
        nodes += [_Node("Add", [last, "intercepts"], "cut", {}), _Node("Mul", ["cut", "slopes"], "calibrated", {})]
        last = "calibrated"
    origin = np.zeros((1, weights.shape[0]))
    one_score = not is_classifier or model.decision_function(origin).ndim == 1
    if one_score:
        constants["minus_one"] = np.array([-1], np.int64)
        nodes.append(_Node("Reshape", [last, "minus_one"], "flat", {}))
        last = "flat"
    narrow = {"to": 1} if dtype == np.float32 else None
    nodes.append(_Node("Cast", [last], "scores", narrow) if narrow else _Node("Identity", [last], "scores", {}))
    if not is_classifier:
        return _Recipe(nodes, constants, True, None)
    is_indicator = model.predict(origin).ndim == 2
    if not one_score and not is_indicator:
        nodes.append(_Node("ArgMax", [last], "place", {"axis": 1, "keepdims": 0}))
    else:
        constants["zero"] = np.zeros(1)
        # "At least 0": ONNX 13 has only "less".
        nodes += [_Node("Less", [last, "zero"], "below", {}), _Node("Not", ["below"], "above", {})]
        nodes.append(_Node("Cast", ["above"], "label" if is_indicator else "place", {"to": 7}))
    if is_indicator:
        return _Recipe(nodes, constants, one_score, np.dtype(np.int64))
    constants["classes"] = _classes(model)
    nodes.append(_Node("Gather", ["classes", "place"], "label", {}))
    return _Recipe(nodes, constants, one_score, constants["classes"].dtype)


def _of_pipeline(model: Any, dtype: np.dtype[Any]) -> Any:
    register_converters()
    skl2onnx = _library("skl2onnx", "to_onnx of a pipeline")
    kinds = skl2onnx.common.data_types
    kind = kinds.FloatTensorType if dtype == np.float32 else kinds.DoubleTensorType
    last = model.steps[-1][1]
    try:
        return skl2onnx.convert_sklearn(
            model, initial_types=[("X", kind([None, int(model.n_features_in_)]))], target_opset={"": _OPSET}
        )
    except (RuntimeError, NotImplementedError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelFileError(f"a step before {type(last).__name__} cannot be converted to ONNX: {reason}") from None


def register_converters() -> None:
    """Register rankhinge's estimators with skl2onnx, so that it converts pipelines that end in one.

    Examples
    --------
    >>> from rankhinge import persistence
    >>> persistence.register_converters()  # once; then skl2onnx.convert_sklearn(pipeline, …) works
    """
    skl2onnx = _library("skl2onnx", "to_onnx of a pipeline")
    room = importlib.import_module("rankhinge.svm")
    for name in _LINEAR:
        skl2onnx.update_registered_converter(
            getattr(room, name), f"Rankhinge{name}", _declare_shapes, _convert, parser=_declare_outputs
        )


def _declare_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Which outputs an operator has; skl2onnx would give every classifier probabilities."""
    operator = scope.declare_local_operator(f"Rankhinge{type(model).__name__}", model)
    operator.inputs.append(inputs[0])
    number = type(inputs[0].type)
    names = ["scores"] if not hasattr(model, "classes_") else ["label", "scores"]
    for name in names:
        operator.outputs.append(scope.declare_local_variable(name, number()))
    return operator.outputs


def _declare_shapes(operator: Any) -> None:
    types = _library("skl2onnx.common.data_types", "to_onnx of a pipeline")
    recipe = _recipe(operator.raw_operator, _dtype_of(operator))
    width = [] if recipe.one_score else [_width(operator.raw_operator)]
    number = type(operator.inputs[0].type)
    *label, scores = operator.outputs
    scores.type = number([None, *width])
    for output in label:
        shape = [None] if "classes" in recipe.constants else [None, *width]
        output.type = _label_type(types, recipe)(shape)


def _label_type(types: Any, recipe: _Recipe) -> Any:
    assert recipe.labels is not None
    if recipe.labels.kind in "OU":
        return types.StringTensorType
    of_kind = {"b": types.BooleanTensorType, "f": types.DoubleTensorType}
    return of_kind.get(recipe.labels.kind, types.Int64TensorType)


def _dtype_of(operator: Any) -> np.dtype[Any]:
    is_narrow = type(operator.inputs[0].type).__name__ == "FloatTensorType"
    return np.dtype(np.float32 if is_narrow else np.float64)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of the recipe to skl2onnx's graph, under names that are unique in it."""
    onnx = _library("onnx", "to_onnx")
    recipe = _recipe(operator.raw_operator, _dtype_of(operator))
    names = {"X": operator.inputs[0].full_name, "scores": operator.outputs[-1].full_name}
    if recipe.labels is not None:
        names["label"] = operator.outputs[0].full_name
    for name, array in recipe.constants.items():
        names[name] = scope.get_unique_variable_name(name)
        if array.dtype.kind == "O":
            texts = [text.encode() for text in array.tolist()]
            container.add_initializer(names[name], onnx.TensorProto.STRING, list(array.shape), texts)
        else:
            container.add_initializer(names[name], None, None, onnx.numpy_helper.from_array(array, names[name]))
    for node in recipe.nodes:
        if node.output not in names:
            names[node.output] = scope.get_unique_variable_name(node.output)
        container.add_node(
            node.operation,
            [names[name] for name in node.inputs],
            names[node.output],
            op_version=_OPSET,
            name=scope.get_unique_operator_name(node.operation),
            **node.attributes,
        )
