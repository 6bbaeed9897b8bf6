"""An OpenVINO or ONNX model in OpenVINO, in place of Triton's openvino backend.

Source: openvino_backend r24.10, src/openvino.cc.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Sequence

import numpy as np
import triton_python_backend_utils as pb_utils

from .model_config import Config, TensorInfo, count_inputs, dims_of, parameter
from .stand_in import Arrays, StandIn

_TYPES = {
    "boolean": "BOOL",
    "u8": "UINT8",
    "u16": "UINT16",
    "u32": "UINT32",
    "u64": "UINT64",
    "i8": "INT8",
    "i16": "INT16",
    "i32": "INT32",
    "i64": "INT64",
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
}
_PROPERTIES = (
    "INFERENCE_NUM_THREADS",
    "COMPILATION_NUM_THREADS",
    "NUM_STREAMS",
    "PERFORMANCE_HINT",
)
_HINTS = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")


class TritonPythonModel(StandIn):
    """The class that the Python backend looks for."""

    default_file = "model.xml"

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        config = auto_complete_model_config.as_dict()
        if not (config["input"] and config["output"]):
            name = os.path.basename(
                config["default_model_filename"] or TritonPythonModel.default_file
            )
            try:
                model = _read(os.path.join(pb_utils.get_model_dir(), name))
            except Exception as error:
                raise pb_utils.TritonModelException(str(error)) from None
            is_batched = config["max_batch_size"] > 0
            for side, tensors in (("input", model.inputs), ("output", model.outputs)):
                config[side] = config[side] or [
                    _written(tensor, is_batched) for tensor in _signature(tensors)
                ]
        return auto_complete_model_config

    def load(self, model_file: str) -> None:
        import openvino

        model = _read(model_file)
        inputs = _signature(model.inputs)
        outputs = _signature(model.outputs)
        if count_inputs(self.config) != len(inputs):
            raise ValueError(
                f"unable to load model '{self.config['name']}', configuration expects "
                f"{count_inputs(self.config)} inputs, model provides {len(inputs)}"
            )
        _check_names(self.config, "input", inputs)
        _check_names(self.config, "output", outputs)
        if (parameter(self.config, "RESHAPE_IO_LAYERS") or "").lower() == "yes":
            batch = [-1] if self.is_batched else []
            model.reshape(
                {tensor["name"]: [*batch, *dims_of(tensor)] for tensor in self.config["input"]}
            )
        self._compiled = openvino.Core().compile_model(model, "CPU", _properties(self.config))
        self._types = {
            tensor.any_name: tensor.element_type.to_dtype() for tensor in self._compiled.inputs
        }

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        feeds = {
            name: array.astype(self._types[name], copy=False) for name, array in inputs.items()
        }
        found = self._compiled(feeds)
        types = {
            tensor["name"]: pb_utils.triton_string_to_numpy(tensor["data_type"])
            for tensor in self.config["output"]
        }
        return {name: np.array(found[name], dtype=types[name]) for name in outputs}


def _read(path: str) -> Any:
    import openvino

    if not os.path.exists(path):
        raise ValueError(f"failed to stat file {path}")
    return openvino.Core().read_model(path)


def _signature(tensors: Sequence[Any]) -> List[TensorInfo]:
    return [
        TensorInfo(tensor.any_name, _data_type(tensor), _shape(tensor.get_partial_shape()))
        for tensor in tensors
    ]


def _data_type(tensor: Any) -> str:
    name = tensor.element_type.get_type_name()
    return f"TYPE_{_TYPES[name]}" if name in _TYPES else "TYPE_INVALID"


def _shape(shape: Any) -> Any:
    """Return the sizes. One variable size makes all of them variable, as in the backend."""
    sizes = [size.get_length() if size.is_static else -1 for size in shape]
    return tuple([-1] * len(sizes) if -1 in sizes else sizes)


def _written(tensor: TensorInfo, is_batched: bool) -> Config:
    dims = list(tensor.shape[1:] if is_batched else tensor.shape)
    return {"name": tensor.name, "data_type": tensor.data_type, "dims": dims or [1]}


def _check_names(config: Config, side: str, tensors: Sequence[TensorInfo]) -> None:
    names = [tensor.name for tensor in tensors]
    for declared in config[side]:
        if declared["name"] not in names:
            raise ValueError(
                f"model '{config['name']}', unexpected inference {side} '{declared['name']}', "
                f"allowed {side}s are: {', '.join(names)}"
            )


def _properties(config: Config) -> Dict[str, str]:
    given = {key: parameter(config, key) for key in _PROPERTIES}
    found = {key: value for key, value in given.items() if value is not None}
    if "PERFORMANCE_HINT" in found:
        found["PERFORMANCE_HINT"] = found["PERFORMANCE_HINT"].upper()
        if found["PERFORMANCE_HINT"] not in _HINTS:
            raise ValueError(f"PERFORMANCE_HINT must be one of {', '.join(_HINTS)}")
    if "NUM_STREAMS" in found:
        found["NUM_STREAMS"] = found["NUM_STREAMS"].upper()
    return found
