"""What all stand-ins share: requests become batches of arrays, and arrays become responses."""

from __future__ import annotations

import gc
import json
import os
from itertools import chain
from typing import Any, Dict, List, Sequence

import numpy as np
import triton_python_backend_utils as pb_utils

Array = np.ndarray[Any, Any]
Arrays = Dict[str, Array]


class StandIn:
    """A model of another framework. A subclass loads the model and runs it on arrays."""

    config: Dict[str, Any]
    is_batched: bool

    def load(self, model_file: str) -> None:
        """Load the model, and compare it with ``self.config`` as the backend does."""
        raise NotImplementedError

    def run(self, inputs: Arrays, outputs: Sequence[str]) -> Arrays:
        """Return these outputs of the model."""
        raise NotImplementedError

    def message(self, error: Exception) -> str:
        """Return an error as the backend writes it."""
        return str(error)

    default_file = ""

    # --- called by the Python backend ---

    def initialize(self, args: Dict[str, str]) -> None:
        self.config = json.loads(args["model_config"])
        self.is_batched = self.config["max_batch_size"] > 0
        name = self.config["default_model_filename"] or self.default_file
        # Importing a framework creates many objects that all stay. Searching them for garbage takes
        # time.
        gc.disable()
        try:
            self.load(os.path.join(args["model_repository"], args["model_version"], name))
        except Exception as error:
            raise pb_utils.TritonModelException(self.message(error)) from None
        finally:
            gc.enable()

    def execute(self, requests: Sequence[Any]) -> List[Any]:
        inputs = [_arrays(request) for request in requests]
        responses: List[Any] = []
        for size in _batch_sizes(inputs) if self.is_batched else [1] * len(requests):
            batch = slice(len(responses), len(responses) + size)
            responses += self._answer(requests[batch], inputs[batch])
        return responses

    def _answer(self, requests: Sequence[Any], inputs: Sequence[Arrays]) -> List[Any]:
        """Run one batch. An error is the response to all of its requests, as in the backends."""
        try:
            wanted = [request.requested_output_names() for request in requests]
            names = list(dict.fromkeys(chain.from_iterable(wanted)))
            rows = []
            if len(inputs) > 1:
                rows = [next(iter(arrays.values())).shape[0] for arrays in inputs]
            found = self.run(_joined(inputs), names)
            parts = [_part(found, rows, index) for index in range(len(inputs))]
        except Exception as error:
            failure = pb_utils.TritonError(self.message(error))
            return [pb_utils.InferenceResponse([], failure) for _ in requests]
        return [_response(part, names) for part, names in zip(parts, wanted)]


def _batch_sizes(inputs: Sequence[Arrays]) -> List[int]:
    """Return how many requests in a row have the same tensors, apart from the batch dimension."""
    sizes: List[int] = []
    previous: object = None
    for arrays in inputs:
        shapes = {name: array.shape[1:] for name, array in arrays.items()}
        if sizes and arrays and shapes == previous:
            sizes[-1] += 1
        else:
            sizes.append(1)
        previous = shapes
    return sizes


def _arrays(request: Any) -> Arrays:
    return {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}


def _joined(inputs: Sequence[Arrays]) -> Arrays:
    if len(inputs) == 1:
        return inputs[0]
    joined = {}
    for name in inputs[0]:
        joined[name] = np.concatenate([arrays[name] for arrays in inputs])
    return joined


def _part(outputs: Arrays, rows: Sequence[int], index: int) -> Arrays:
    """Return the rows of one request."""
    if not rows:
        return outputs
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != sum(rows):
            raise ValueError(
                f"output '{name}' has shape {list(array.shape)}, but the batch has {sum(rows)} rows"
            )
    first = sum(rows[:index])
    return {name: array[first : first + rows[index]] for name, array in outputs.items()}


def _response(outputs: Arrays, names: Sequence[str]) -> Any:
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, outputs[name]) for name in names])
