"""An ONNX model in ONNX Runtime, in place of Triton's onnxruntime backend."""

from __future__ import annotations

import os
import re
from typing import Any, List, Sequence

import numpy as np
import triton_python_backend_utils as pb_utils

from .completion import complete, is_complete
from .model_config import Config, TensorInfo, boolean, dims_of, integer, parameter
from .onnx_rules import check_inputs, check_outputs
from .stand_in import Array, Arrays, StandIn

# The names that the session has for the types of Triton.
_TYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float": "FP32",
    "double": "FP64",
    "string": "STRING",
}
_TENSOR_TYPE = re.compile(r"tensor\((\w+)\)")
_RUNTIME_ERROR = re.compile(r"\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)", re.DOTALL)
_SHRINKAGE = "memory.enable_memory_arena_shrinkage"


class TritonPythonModel(StandIn):
    """The class that the Python backend looks for."""

    default_file = "model.onnx"

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        config = auto_complete_model_config.as_dict()
        if not is_complete(config):
            name = os.path.basename(
                config["default_model_filename"] or TritonPythonModel.default_file
            )
            try:
                session = _open(os.path.join(pb_utils.get_model_dir(), name), config)
                complete(
                    config, _signature(session.get_inputs()), _signature(session.get_outputs())
                )
            except Exception as error:
                raise pb_utils.TritonModelException(_message(error)) from None
        return auto_complete_model_config

    def load(self, model_file: str) -> None:
        session = _open(model_file, self.config)
        inputs = _signature(session.get_inputs())
        outputs = _signature(session.get_outputs())
        check_inputs(self.config, inputs, _signature(session.get_overridable_initializers()))
        check_outputs(self.config, outputs)
        self._session = session
        self._scalar_inputs = {tensor.name for tensor in inputs if not tensor.shape}
        scalars = {output.name for output in outputs if not output.shape}
        self._scalar_outputs = {
            tensor["name"]: dims_of(tensor)
            for tensor in self.config["output"]
            if tensor["name"] in scalars
        }

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        import onnxruntime

        options = onnxruntime.RunOptions()
        if parameter(self.config, _SHRINKAGE):
            options.add_run_config_entry(_SHRINKAGE, parameter(self.config, _SHRINKAGE))
        feeds = {name: self._fed(name, array) for name, array in inputs.items()}
        found = dict(zip(outputs, self._session.run(list(outputs), feeds, options)))
        for name, dims in self._scalar_outputs.items():
            if name in found and np.ndim(found[name]) == 0:
                found[name] = np.reshape(found[name], dims)
        return found

    def _fed(self, name: str, array: Array) -> Array:
        if array.dtype == np.object_:
            array = _strings(array)
        return array.reshape(()) if name in self._scalar_inputs and array.size == 1 else array

    def message(self, error: Exception) -> str:
        return _message(error)


def _open(path: str, config: Config) -> Any:
    """Open the file, or ``model.onnx`` in a folder of this name."""
    import onnxruntime

    if not os.path.exists(path):
        raise ValueError(f"failed to stat file {path}")
    if os.path.isdir(path):
        path = os.path.join(path, "model.onnx")
        if not os.path.exists(path):
            raise ValueError(f"unable to find '{path}' for model '{config['name']}'")
    return onnxruntime.InferenceSession(path, _options(config), providers=["CPUExecutionProvider"])


def _options(config: Config) -> Any:
    """Return the session options of a configuration's parameters, as the backend does."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    intra = integer(config, "intra_op_thread_count")
    inter = integer(config, "inter_op_thread_count")
    options.intra_op_num_threads = max(0, intra or 0)
    options.inter_op_num_threads = max(0, inter or 0)
    _check_accelerators(config)
    mode = integer(config, "execution_mode") or 0
    if mode not in (0, 1):
        raise ValueError(f"unexpected execution_mode '{mode}', must be 0 or 1")
    options.execution_mode = onnxruntime.ExecutionMode(mode)
    for key, name in (("enable_mem_arena", "enable_cpu_mem_arena"), ("enable_mem_pattern",) * 2):
        given = boolean(config, key)
        if given is not None:
            setattr(options, name, given)
    options.graph_optimization_level = _level(config, onnxruntime.GraphOptimizationLevel)
    for library in config.get("model_operations", {}).get("op_library_filename", []):
        options.register_custom_ops_library(library)
    return options


def _check_accelerators(config: Config) -> None:
    """Refuse what the backend refuses.

    OpenVINO itself is not used, and those for GPUs are ignored.
    """
    accelerators = config.get("optimization", {}).get("execution_accelerators", {})
    for accelerator in accelerators.get("cpu_execution_accelerator", []):
        if accelerator["name"] != "openvino":
            raise ValueError(f"unknown Execution Accelerator '{accelerator['name']}' is requested")


def _level(config: Config, levels: Any) -> Any:
    level = config.get("optimization", {}).get("graph", {}).get("level", 0)
    named = {-1: levels.ORT_ENABLE_BASIC, 1: levels.ORT_ENABLE_EXTENDED, 2: levels.ORT_DISABLE_ALL}
    return named.get(level, levels.ORT_ENABLE_ALL)


def _signature(tensors: Sequence[Any]) -> List[TensorInfo]:
    return [TensorInfo(tensor.name, _data_type(tensor), _shape(tensor)) for tensor in tensors]


def _data_type(tensor: Any) -> str:
    """Return the data type of a tensor as in ``config.pbtxt``; ``""`` if Triton has none for it."""
    found = _TENSOR_TYPE.fullmatch(tensor.type)
    if found is None:
        raise ValueError(
            f"Unsupported ONNX Type '{tensor.type}' for I/O '{tensor.name}', expected 'tensor'"
        )
    return "TYPE_" + _TYPES[found[1]] if found[1] in _TYPES else ""


def _shape(tensor: Any) -> Any:
    """Return the sizes of a tensor of the runtime, with -1 for those that have a name or none."""
    sizes = []
    for size in tensor.shape or ():
        is_known = isinstance(size, int) and size >= 0
        sizes.append(size if is_known else -1)
    return tuple(sizes)


def _strings(array: Array) -> Array:
    """Return bytes as ``str``, which the runtime's Python package takes. They must be UTF-8."""
    decoded = [
        element if isinstance(element, str) else element.decode() for element in array.ravel()
    ]
    return np.array(decoded, dtype=np.object_).reshape(array.shape)


def _message(error: Exception) -> str:
    """Return an error of the runtime in the words of Triton's backend."""
    found = _RUNTIME_ERROR.search(str(error))
    if found is None:
        return str(error)
    return f"onnx runtime error {found[1]}: {found[2]}"
