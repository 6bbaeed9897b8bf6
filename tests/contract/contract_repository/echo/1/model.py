"""Returns each input as an output ``<name>_OUT``; an input string can make it raise an error."""

from typing import Any

import triton_python_backend_utils as pb_utils  # the server brings it

REFUSED = b"refuse this"


class TritonPythonModel:
    def execute(self, requests: list[Any]) -> list[Any]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Any) -> Any:
        arrays = {each.name(): each.as_numpy() for each in request.inputs()}
        if REFUSED in arrays.get("TEXTS", ()):
            raise ValueError("refused as asked")
        tensors = [pb_utils.Tensor(f"{name}_OUT", array) for name, array in arrays.items()]
        return pb_utils.InferenceResponse(tensors)
