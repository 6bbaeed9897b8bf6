"""A TorchScript model in PyTorch, in place of Triton's pytorch backend.

Source: pytorch_backend r24.10, src/libtorch.cc.
"""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType
from typing import Any, Dict, List, Sequence

import numpy as np

from .model_config import boolean, count_inputs, integer
from .stand_in import Array, Arrays, StandIn

_INDEXED = re.compile(r".*__(\d+)")
_TYPES = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
    "TYPE_STRING": "object",
}


class TritonPythonModel(StandIn):
    """The class that the Python backend looks for."""

    default_file = "model.pt"

    def load(self, model_file: str) -> None:
        _skip_meta_tensors()
        import torch

        self._check_config()
        if not os.path.exists(model_file):
            raise ValueError(f"failed to find '{model_file}' for model '{self.config['name']}'")
        self._set_threads()
        try:
            self._module = torch.jit.load(model_file, map_location="cpu").eval()
        except RuntimeError as error:
            raise ValueError(f"failed to load model '{self.config['name']}': {error}") from None
        arguments = [argument.name for argument in self._module.forward.schema.arguments[1:]]
        self._is_dictionary = _takes_dictionary(self._module)
        if not self._is_dictionary and count_inputs(self.config) != len(arguments):
            raise ValueError(
                f"unable to load model '{self.config['name']}', configuration expects "
                f"{count_inputs(self.config)} inputs, model provides {len(arguments)}"
            )
        self._input_positions = _input_positions(self._input_names(), arguments)
        self._output_positions = _positions([tensor["name"] for tensor in self.config["output"]])

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        import torch

        tensors = {name: _tensor(array) for name, array in inputs.items()}
        with torch.inference_mode(mode=boolean(self.config, "INFERENCE_MODE") is not False):
            if self._is_dictionary:
                answer = self._module(tensors)
            else:
                ordered = sorted(tensors, key=lambda name: self._input_positions[name])
                answer = self._module(*(tensors[name] for name in ordered))
        values = list(answer) if isinstance(answer, tuple) else [answer]
        return {name: self._output(name, values) for name in outputs}

    def message(self, error: Exception) -> str:
        return (
            f"PyTorch execute failure: {error}" if isinstance(error, RuntimeError) else str(error)
        )

    def _check_config(self) -> None:
        for side in ("input", "output"):
            if not self.config[side]:
                raise ValueError(
                    f"model configuration must contain at least one {side}, none were specified."
                )
            for tensor in self.config[side]:
                if tensor["data_type"] not in _TYPES:
                    raise ValueError(
                        f"unsupported datatype {tensor['data_type']} for {side} '{tensor['name']}' "
                        f"for model '{self.config['name']}'"
                    )

    def _set_threads(self) -> None:
        import torch

        intra = integer(self.config, "INTRA_OP_THREAD_COUNT")
        inter = integer(self.config, "INTER_OP_THREAD_COUNT")
        if intra is not None and intra > 0:
            torch.set_num_threads(intra)
        if inter is not None and inter > 0:
            torch.set_num_interop_threads(inter)
        if boolean(self.config, "DISABLE_OPTIMIZED_EXECUTION"):
            torch.jit.set_fusion_strategy([])

    def _input_names(self) -> List[str]:
        controls = self.config.get("sequence_batching", {}).get("control_input", [])
        return [tensor["name"] for tensor in (*self.config["input"], *controls)]

    def _output(self, name: str, values: Sequence[Any]) -> Array:
        position = self._output_positions[name]
        if position >= len(values):
            raise ValueError(
                f"The output {name} in the model configuration refers to an output index which "
                f"doesn't exist. This model has {len(values)} outputs"
            )
        value = values[position]
        if isinstance(value, list):
            return np.array([element.encode() for element in value], dtype=np.object_)
        array: Array = value.detach().cpu().contiguous().numpy()
        wanted = next(
            tensor["data_type"] for tensor in self.config["output"] if tensor["name"] == name
        )
        if array.dtype != np.dtype(_TYPES[wanted]):
            raise ValueError(
                f"unexpected datatype {array.dtype} for inference "
                f"output '{name}', expecting {wanted}"
            )
        return array


def _skip_meta_tensors() -> None:
    """Leave out a module that only tensors without data need, such as those of ``torch.compile``.

    It takes a third of the time of ``import torch``. TorchScript does not use it.
    """
    sys.modules.setdefault("torch._meta_registrations", ModuleType("torch._meta_registrations"))


def _takes_dictionary(module: Any) -> bool:
    arguments = module.forward.schema.arguments[1:]
    return len(arguments) == 1 and str(arguments[0].type).startswith("Dict(str, Tensor")


def _input_positions(names: Sequence[str], arguments: Sequence[str]) -> Dict[str, int]:
    """Return the argument of each input: by the argument's name, by ``NAME__INDEX``,
    or in order.
    """
    if all(name in arguments for name in names):
        return {name: list(arguments).index(name) for name in names}
    return _positions(names)


def _positions(names: Sequence[str]) -> Dict[str, int]:
    """Return the position of each tensor: the number in its name if all have one, or its place."""
    numbered = {}
    for name in names:
        match = _INDEXED.fullmatch(name)
        if match is None:
            return {name: index for index, name in enumerate(names)}
        numbered[name] = int(match[1])
    return numbered


def _tensor(array: Array) -> Any:
    """Return a tensor of PyTorch, or a list of strings."""
    import torch

    if array.dtype == np.object_:
        return [
            element if isinstance(element, str) else element.decode() for element in array.ravel()
        ]
    # PyTorch warns about an array that cannot be written.
    if not array.flags.writeable:
        array = array.copy()
    return torch.from_numpy(array)
