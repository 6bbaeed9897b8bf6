"""Examples of the checks of ONNX models and their configurations."""

from __future__ import annotations

from onnx import TensorProto, external_data_helper, helper

from check_examples.model_files import WEB_PAGE
from check_examples.onnx_models import (
    ModelBytes,
    model,
    node,
    relu,
    tensor,
    time_first,
    with_default,
)
from check_examples.repositories import ONNX, Example, Files, X, Y
from triton_model_check.model_config.target import Target

OLD = Target(default_model="m", image_version="24.10")
NEW = Target(default_model="m", image_version="26.05")
BACKEND = 'backend: "onnxruntime"\n'
OPTIONAL = '{ name: "K" data_type: TYPE_FP32 dims: [ 4 ] optional: true }'


def onnx(
    config: str, content: ModelBytes | str | None = None, **files: str | bytes | None
) -> Files:
    """A model of the ONNX Runtime backend; by default Y = Relu(X)."""
    return {
        "m/config.pbtxt": config,
        "m/1/model.onnx": relu() if content is None else content,
        **files,
    }


def parameter(key: str, value: str) -> str:
    """A configuration with a parameter of the backend."""
    return ONNX + f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def accelerator(name: str) -> str:
    """A configuration with an execution accelerator on the CPU."""
    return ONNX + (
        "optimization { execution_accelerators { cpu_execution_accelerator [ { name: "
        f'"{name}" }} ] }} }}\n'
    )


def configs(failing: str, fixed: str) -> Example:
    """Two configurations of the same model."""
    return Example(onnx(failing), onnx(fixed))


def models(
    failing: ModelBytes | str, fixed: ModelBytes | None = None, config: str = ONNX
) -> Example:
    """Two models with the same configuration."""
    return Example(onnx(config, failing), onnx(config, fixed))


def _external() -> ModelBytes:
    """Y = X + W, with W in another file."""
    weights = helper.make_tensor("W", TensorProto.FLOAT, [4], b"\0" * 16, raw=True)
    external_data_helper.set_external_data(weights, "model.onnx.data", 0, 16)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    return model(
        'ONNX: Y = X + W, with W in "model.onnx.data"',
        [node("Add", ["X", "W"], ["Y"])],
        [tensor("X")],
        [tensor("Y")],
        initializers=[weights],
    )


def _operator(name: str, domain: str, description: str) -> ModelBytes:
    opsets = {"": 13, domain: 1} if domain else None
    return model(
        description, [node(name, ["X"], ["Y"], domain)], [tensor("X")], [tensor("Y")], opsets=opsets
    )


UNKNOWN = _operator("Tokenize", "my.operators", "ONNX: Y = my.operators:Tokenize(X)")
CYCLE = model(
    "ONNX: Y = X + Z, Z = Relu(Y)",
    [node("Add", ["X", "Z"], ["Y"]), node("Relu", ["Y"], ["Z"])],
    [tensor("X")],
    [tensor("Y")],
)
SEQUENCE = model(
    "ONNX: Y = Relu(X), S = SequenceConstruct(Y)",
    [node("Relu", ["X"], ["Y"]), node("SequenceConstruct", ["Y"], ["S"])],
    [tensor("X")],
    [tensor("Y"), helper.make_tensor_sequence_value_info("S", TensorProto.FLOAT, None)],
)
SCALAR = model(
    "ONNX: Y = X + S, S is a scalar",
    [node("Add", ["X", "S"], ["Y"])],
    [tensor("X", dims=[4]), tensor("S", dims=[])],
    [tensor("Y", dims=[4])],
)
SCALAR_IO = f'input [ {X}, {{ name: "S" data_type: TYPE_FP32 dims: [ %s ] }} ]\noutput [ {Y} ]\n'

STARTED = model(
    "ONNX: Y = X + Cast(S), S is INT32 [batch, 1]",
    [helper.make_node("Cast", ["S"], ["C"], to=TensorProto.FLOAT), node("Add", ["X", "C"], ["Y"])],
    [tensor("X"), tensor("S", TensorProto.INT32, ["batch", 1])],
    [tensor("Y")],
)
CONTROLLED = ONNX + (
    'sequence_batching { control_input [ { name: "S" control [ { kind: CONTROL_SEQUENCE_START '
    "%s: [ 0, 1 ] } ] } ] }\n"
)
LIBRARY = ONNX + 'model_operations { op_library_filename: [ "/opt/ml/model/m/1/libmy.so" ] }\n'
CAST = model(
    "ONNX: Y = Relu(X) is declared as INT64",
    [node("Relu", ["X"], ["Y"])],
    [tensor("X")],
    [tensor("Y", TensorProto.INT64)],
)

EXAMPLES: dict[str, Example] = {
    "backend-config-name": Example(
        {"m/config.pbtxt.txt": ONNX, "m/1/model.onnx": relu()}, onnx(ONNX)
    ),
    "backend-config-name: by name": Example(
        {"m/potato.pbtxt": ONNX, "m/1/model.onnx": relu()}, onnx(ONNX)
    ),
    "model-file-missing": Example({"m/config.pbtxt": ONNX, "m/1": None}, onnx(ONNX)),
    "model-file-missing: another name": Example(
        {"m/config.pbtxt": ONNX, "m/1/resnet.onnx": relu()},
        {
            "m/config.pbtxt": ONNX + 'default_model_filename: "resnet.onnx"\n',
            "m/1/resnet.onnx": relu(),
        },
    ),
    "model-file-missing: default_model_filename": Example(
        {
            "m/config.pbtxt": ONNX + 'default_model_filename: "Resnet.onnx"\n',
            "m/1/resnet.onnx": relu(),
        },
        {
            "m/config.pbtxt": ONNX + 'default_model_filename: "resnet.onnx"\n',
            "m/1/resnet.onnx": relu(),
        },
    ),
    "onnx-not-a-model": models(WEB_PAGE),
    "onnx-version": Example(onnx(ONNX, relu(opset=23)), onnx(ONNX, relu(opset=21)), OLD),
    "onnx-operator": models(UNKNOWN),
    "onnx-invalid-graph": models(CYCLE),
    "onnx-not-a-tensor": models(SEQUENCE),
    "onnx-external-data": Example(
        onnx(ONNX, _external()), onnx(ONNX, _external(), **{"m/1/model.onnx.data": b"\0" * 16})
    ),
    "onnx-batching": Example(
        onnx(BACKEND + "max_batch_size: 8\n", relu([4])),
        onnx(BACKEND + "max_batch_size: 0\n", relu([4])),
    ),
    "onnx-batch-axis": Example(
        onnx(BACKEND + "max_batch_size: 8\n", time_first()),
        onnx(
            BACKEND
            + "max_batch_size: 0\n"
            + 'input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]\n'
            + 'output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]\n',
            time_first(),
        ),
    ),
    "onnx-input-count": configs(
        BACKEND + f"max_batch_size: 8\ninput [ {X}, {X.replace('X', 'Z')} ]\noutput [ {Y} ]\n", ONNX
    ),
    "onnx-input-count: other names": configs(
        BACKEND
        + (
            f"max_batch_size: 8\ninput [ {X.replace('X', 'V')}, "
            f"{X.replace('X', 'Z')} ]\noutput [ {Y} ]\n"
        ),
        ONNX,
    ),
    "onnx-input-name": configs(ONNX.replace('"X"', '"x"'), ONNX),
    "onnx-output-name": configs(ONNX.replace('"Y"', '"logits"'), ONNX),
    "onnx-optional-input": Example(
        onnx(
            BACKEND + f"max_batch_size: 8\ninput [ {X}, {OPTIONAL} ]\noutput [ {Y} ]\n",
            with_default(),
        ),
        onnx(BACKEND + f"input [ {X}, {OPTIONAL} ]\noutput [ {Y} ]\n", with_default([4])),
    ),
    "onnx-data-type": configs(ONNX.replace("FP32", "FP64", 1), ONNX),
    "onnx-unsupported-type": Example(
        onnx(ONNX.replace("FP32", "BF16"), relu(data_type=TensorProto.BFLOAT16)),
        onnx(ONNX.replace("FP32", "BF16"), relu(data_type=TensorProto.BFLOAT16)),
        OLD,
        NEW,
    ),
    "onnx-dims": configs(ONNX.replace("[ 4 ]", "[ 5 ]", 1), ONNX),
    "onnx-dims: batch dimension": models(relu([8, 4])),
    "onnx-dims: batch dimension in dims": configs(ONNX.replace("[ 4 ]", "[ -1, 4 ]"), ONNX),
    "onnx-dims: output": configs(ONNX.replace(Y, Y.replace("4", "-1")), ONNX),
    "onnx-dims: scalar": Example(
        onnx(BACKEND + SCALAR_IO % "-1", SCALAR), onnx(BACKEND + SCALAR_IO % "1", SCALAR)
    ),
    "onnx-dims: empty": Example(
        onnx(BACKEND, relu(["batch", 0])), onnx(BACKEND, relu(["batch", 4]))
    ),
    "onnx-dims: ragged": configs(ONNX.replace("[ 4 ]", "[ 4 ] allow_ragged_batch: true", 1), ONNX),
    "onnx-parameter": configs(
        parameter("enable_mem_arena", "yes"), parameter("enable_mem_arena", "true")
    ),
    "onnx-parameter: number": configs(
        parameter("intra_op_thread_count", "two"), parameter("intra_op_thread_count", "2")
    ),
    "onnx-parameter: 32 bits": configs(
        parameter("inter_op_thread_count", "3000000000"), parameter("inter_op_thread_count", "2")
    ),
    "onnx-parameter: threads": configs(
        parameter("intra_op_thread_count", "9999999"), parameter("intra_op_thread_count", "4")
    ),
    "onnx-control": Example(
        onnx(CONTROLLED % "fp32_false_true", STARTED),
        onnx(CONTROLLED % "int32_false_true", STARTED),
    ),
    "onnx-control: another name": Example(
        onnx(CONTROLLED.replace('"S"', '"START"') % "int32_false_true", STARTED),
        onnx(CONTROLLED % "int32_false_true", STARTED),
    ),
    "onnx-operator-library": Example(
        onnx(LIBRARY, UNKNOWN),
        onnx(LIBRARY, UNKNOWN, **{"m/1/libmy.so": "..."}),
        Target(default_model="m"),
    ),
    "onnx-operator-library: relative path": Example(
        onnx(LIBRARY.replace("/opt/ml/model/m/", ""), UNKNOWN, **{"m/1/libmy.so": "..."}),
        onnx(LIBRARY, UNKNOWN, **{"m/1/libmy.so": "..."}),
        OLD,
    ),
    "onnx-invalid-graph: declared type": models(CAST),
    "onnx-parameter: execution_mode": configs(
        parameter("execution_mode", "2"), parameter("execution_mode", "1")
    ),
    "onnx-accelerator": configs(accelerator("tensorrt"), accelerator("openvino")),
}
